//! The state of an endpoint as an observer sees it.

use crate::endpoint::Endpoint;
use crate::sender::SenderCounters;
use tcplab_units::{Duration, Rate};

/// The state of a sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Congestion window in segments.
    pub cwnd: u64,
    /// Slow-start threshold in segments; none before the first reduction.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT; zero until the first sample.
    pub srtt: Duration,
    /// The latest RTT of a segment that was sent once; zero until there is one.
    pub rtt: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Segments in flight.
    pub in_flight: u64,
    /// Bytes acknowledged by the peer.
    pub acked_bytes: u64,
    /// Pacing rate, if the sender paces.
    pub pacing: Option<Rate>,
    /// The latest delivery rate of the path, where it is sampled: of a sample that was not
    /// application-limited, or was as fast (`tcpi_delivery_rate` of Linux).
    pub delivery_rate: Option<Rate>,
}

/// RTT samples of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSummary {
    /// Number of samples.
    pub count: u64,
    /// Sum in nanoseconds.
    pub sum_nanos: u64,
    /// Minimum.
    pub min: Duration,
    /// Mean.
    pub mean: Duration,
    /// Maximum.
    pub max: Duration,
}

impl Endpoint {
    /// The counters of the sender.
    pub fn counters(&self) -> SenderCounters {
        self.send.counters()
    }

    /// The RTT samples; none if there are none.
    pub fn rtt(&self) -> Option<RttSummary> {
        let (min, max, count, sum_nanos) = self.send.rtt.recorded();
        (count > 0).then(|| RttSummary { min, mean: self.send.rtt.mean(), max, count, sum_nanos })
    }

    /// Clears the RTT statistics; they cover what the application sends from now on.
    pub fn restart_rtt_record(&mut self) {
        self.send.rtt.restart_record();
    }

    /// Whether the peer has acknowledged the SYN.
    pub fn has_connected(&self) -> bool {
        self.send.una > 0
    }

    /// Bytes that the application has written.
    pub fn written_bytes(&self) -> u64 {
        // The SYN has the first sequence number.
        self.send.written - 1
    }

    /// Bytes sent, without retransmissions.
    pub fn sent_bytes(&self) -> u64 {
        self.send.nxt.min(self.send.written).saturating_sub(1)
    }

    /// The sender's present state.
    pub fn snapshot(&self) -> Snapshot {
        let own = || Rate::from_bits_per_second(self.send.departure().rate().saturating_mul(8));
        let decided =
            self.send.congestion().pacing().map(|rate| match self.settings.max_pacing_rate {
                Some(most) => rate.min(most),
                None => rate,
            });
        let pacing = decided.or_else(|| self.settings.pacing.then(own));
        Snapshot {
            cwnd: self.send.cwnd(),
            ssthresh: self.send.congestion().ssthresh(),
            srtt: self.send.rtt.srtt(),
            rtt: self.send.rtt.latest(),
            rto: self.send.rtt.rto(&self.settings.rto_limits()),
            in_flight: self.send.in_flight(),
            acked_bytes: self.send.una.min(self.send.written).saturating_sub(1),
            pacing,
            delivery_rate: self.send.delivery_rate(),
        }
    }

    /// Records the congestion controller's internals, by name.
    pub fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        if let Some(cc) = self.send.cc() {
            cc.probe(record);
        }
    }
}
