//! Throughput under independent loss, against the inverse square root and the full PFTK model.

use crate::{acked_per_second, assert_within, flows, mean, run_all};

const RTT: f64 = 0.1;
const MSS: f64 = 1448.0;

/// Results of NewReno at a loss probability.
struct Measured {
    /// Segments carried in a round trip.
    segments: f64,
    /// Loss indications for each segment sent.
    indications: f64,
}

/// NewReno at loss probability `p`, without delayed ACKs and without a queue: the mean of ten
/// seeds, each with some hundred losses.
fn measure(p: f64) -> Measured {
    let losses = 400.0;
    // There is a loss every 1/p segments, and about 1.22/sqrt(p) segments in a round trip.
    let seconds = (losses / p / (1.22 / p.sqrt()) * RTT).ceil() + 100.0;
    let tables = run_all(&format!(
        r#"
        duration = "{seconds} s"
        repeat = 10
        stack = {{ cc = "newreno", delayed_ack = "off", min_rto = "200 ms" }}
        record = {{ samples = "1 s", links = "off" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Gbit/s"
        delay = "50 ms"
        queue = "10000 packets"
        forward = {{ loss = {p} }}
        [[flows]]
        from = "a"
        to = "b"
        "#
    ));
    let rates: Vec<f64> =
        tables.iter().map(|tables| acked_per_second(tables, 100.0, seconds) / MSS).collect();
    let sum = |column| tables.iter().map(|tables| flows(tables, column)[0]).sum::<f64>();
    Measured {
        segments: mean(&rates) * RTT,
        indications: sum("loss_episodes") / sum("sent_segments"),
    }
}

/// The full model of Padhye, Firoiu, Towsley and Kurose (1998), eq. 30, for an ACK per segment
/// (b = 1) and no other window limit; in segments per round trip.
fn pftk(p: f64, timeout: f64) -> f64 {
    let q = 1.0 - p;
    let w = 1.0 + (8.0 * q / (3.0 * p) + 1.0).sqrt();
    // The probability that a loss in a window of w is detected by timeout (eq. 24).
    let power = |exponent: f64| libm::pow(q, exponent);
    let by_timer =
        (1.0 - power(3.0)) * (1.0 + power(3.0) * (1.0 - power(w - 3.0))) / (1.0 - power(w));
    let by_timer = by_timer.min(1.0);
    // Backoff: the expected length of a sequence of timeouts (eq. 29).
    let f = 1.0 + p + 2.0 * p * p + 4.0 * p * p * p + 8.0 * p * p * p * p;
    let segments = q / p + w + by_timer / q;
    let round_trips = w / 2.0 + 1.0 + by_timer * timeout / RTT * f / q;
    segments / round_trips
}

#[test]
fn follows_the_inverse_square_root_where_loss_is_rare() {
    for p in [1e-4, 3e-4, 1e-3] {
        let expected = (1.5_f64 / p).sqrt();
        assert_within(0.10, measure(p).segments, expected, &format!("p = {p}"));
    }
}

#[test]
fn follows_the_full_model_where_timeouts_count() {
    for p in [1e-3, 3e-3, 1e-2] {
        let measured = measure(p);
        // The model's p counts loss indications: several losses in a window are one (§IV of the
        // paper). The timeout is the minimum RTO: twice the RTT, which hardly varies.
        let expected = pftk(measured.indications, 0.2);
        assert_within(0.15, measured.segments, expected, &format!("p = {p}"));
    }
}
