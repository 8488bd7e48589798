//! Properties of every algorithm in the table.

use proptest::prelude::*;
use serde_json::{Value, json};
use tcplab_cc::testing::{INIT, LINUX, Path, windows};
use tcplab_cc::{
    ALGORITHMS, Ack, Algorithm, BuildError, Cause, Congestion, CongestionControl, Control, CutBase,
    Flavour, FlowState, Init, Lost, Params, Phase, RateSample, Round, Timestamps, build,
};
use tcplab_units::{Duration, Rate, Time};

const CAUSES: [Cause; 3] = [Cause::Loss, Cause::Ecn, Cause::Timeout];

/// Algorithms that ignore losses, so that their windows grow during recovery.
const GROW_IN_RECOVERY: [&str; 1] = ["copa"];

fn start(algorithm: &Algorithm, init: &Init) -> Box<dyn CongestionControl> {
    build(algorithm.name, init, &Params::default()).expect("defaults are allowed")
}

fn refusal(algorithm: &Algorithm, params: Value) -> BuildError {
    build(algorithm.name, &INIT, &Params(params)).expect_err("this is not allowed")
}

#[test]
fn keeps_at_least_one_segment_through_repeated_loss() {
    for algorithm in ALGORITHMS {
        let seen = windows(start(algorithm, &INIT).as_mut(), 60, &[0; 40]);
        assert!(seen.iter().all(|&cwnd| cwnd >= 1), "{}: {seen:?}", algorithm.name);
        for cause in CAUSES {
            let mut cc = start(algorithm, &INIT);
            let mut path = Path::new(cc.as_mut(), Duration::from_millis(100));
            for _ in 0..40 {
                path.congestion(cause);
                assert!(path.cwnd() >= 1, "{} after {cause:?}", algorithm.name);
            }
        }
    }
}

#[test]
fn grows_again_after_repeated_loss() {
    for algorithm in ALGORITHMS {
        let seen = windows(start(algorithm, &INIT).as_mut(), 60, &[0; 40]);
        assert!(seen[59] > seen[40], "{}: {seen:?}", algorithm.name);
    }
}

#[test]
fn every_algorithm_is_deterministic() {
    for algorithm in ALGORITHMS {
        // Few rounds: on a path without queues, delay-based algorithms keep doubling their windows.
        let run = || windows(start(algorithm, &INIT).as_mut(), 20, &[100, 60]);
        assert_eq!(run(), run(), "{}", algorithm.name);
    }
}

#[test]
fn undo_restores_cwnd_and_ssthresh_of_a_spurious_reduction() {
    for algorithm in ALGORITHMS {
        for cause in CAUSES {
            let mut cc = start(algorithm, &INIT);
            if cc.samples_rate() {
                // For a model of the path a loss is no signal that could be spurious: the part held
                // back for recovery returns at its end, and the model continues in between.
                continue;
            }
            windows(cc.as_mut(), 12, &[80]);
            let before = cc.control();
            let mut path = Path::new(cc.as_mut(), Duration::from_millis(100));
            path.congestion(cause);
            path.undo();
            let mut after = cc.control();
            if GROW_IN_RECOVERY.contains(&algorithm.name) && after.cwnd > before.cwnd {
                after = before;
            }
            assert_eq!(after, before, "{} after {cause:?}", algorithm.name);
        }
    }
}

#[test]
fn every_algorithm_refuses_unknown_parameters() {
    for algorithm in ALGORITHMS {
        let error = refusal(algorithm, json!({ "no_such": 1 }));
        assert!(matches!(error, BuildError::UnknownParameter { .. }), "{}", algorithm.name);
        assert!(error.to_string().contains("`no_such`"), "{}: {error}", algorithm.name);
    }
}

#[test]
fn every_algorithm_refuses_parameter_values_of_the_wrong_type() {
    for algorithm in ALGORITHMS {
        let defaults = (algorithm.defaults)();
        for name in defaults.as_object().expect("parameters have names").keys() {
            let mut refused = 0;
            for value in [json!([1]), json!("x"), json!({}), json!(-1), json!(1.5), json!(true)] {
                let params = Params(json!({ name: value }));
                let Err(error) = build(algorithm.name, &INIT, &params) else { continue };
                let message = error.to_string();
                refused += 1;
                assert!(
                    message.starts_with(&format!("{name}: ")) && message.contains(" is not "),
                    "{}: {message}",
                    algorithm.name
                );
                // No words of the parser, no names of Rust's types.
                for word in ["expected", "invalid", "variant", "struct", "map", "f64", "u32", "u64"]
                {
                    assert!(!message.contains(word), "{}: {message}", algorithm.name);
                }
            }
            assert!(refused >= 4, "{}: {name}: {refused}", algorithm.name);
        }
    }
}

#[test]
fn every_algorithm_accepts_its_defaults() {
    for algorithm in ALGORITHMS {
        let written = build(algorithm.name, &INIT, &Params((algorithm.defaults)()));
        assert!(written.is_ok(), "{}: {written:?}", algorithm.name);
    }
}

#[test]
fn every_algorithm_accepts_its_presets() {
    for algorithm in ALGORITHMS {
        for preset in algorithm.presets {
            let name = format!("{}/{}", algorithm.name, preset.name);
            let built = build(&name, &INIT, &Params::default());
            assert!(built.is_ok(), "{name}: {built:?}");
            assert!(!preset.summary.is_empty() && !preset.source.is_empty(), "{name}");
        }
    }
}

#[test]
fn every_algorithm_parameter_and_probe_is_described() {
    for algorithm in ALGORITHMS {
        assert!(algorithm.explanation().lines().count() >= 3, "{}", algorithm.name);
        for parameter in algorithm.parameters() {
            let name = format!("{}.{}", algorithm.name, parameter.name);
            assert!(!parameter.meaning.is_empty(), "{name} says nothing of what it means");
        }
        let probes = algorithm.probes();
        for probe in &probes {
            let name = format!("{}_{}", algorithm.name, probe.name);
            assert!(!probe.meaning.is_empty(), "{name} says nothing of what it means");
        }
        for init in [INIT, LINUX] {
            start(algorithm, &init).probe(&mut |name, _| {
                let is_known = probes.iter().any(|probe| probe.name == name);
                assert!(is_known, "{}_{name} is recorded and not described", algorithm.name);
            });
        }
        assert!(!algorithm.summary.is_empty() && !algorithm.reference.is_empty());
        assert!((1988..2100).contains(&algorithm.year), "{}", algorithm.name);
    }
}

/// One call of the interface.
#[derive(Clone, Debug)]
enum Event {
    Begin,
    Arrival(Ack),
    Ack(Ack),
    Congestion(Congestion),
    Recovered,
    Undo,
    Restart(Duration),
    TransmitStart(Duration),
    Unused(u64),
    Lost(Lost),
}

fn apply(cc: &mut dyn CongestionControl, flow: &FlowState, event: &Event) {
    match event {
        Event::Begin => cc.on_begin(flow),
        Event::Arrival(ack) => cc.on_arrival(flow, ack),
        Event::Ack(ack) => cc.on_ack(flow, ack),
        Event::Congestion(congestion) => cc.on_congestion(flow, *congestion),
        Event::Recovered => cc.on_recovered(flow),
        Event::Undo => cc.on_undo(flow),
        Event::Restart(idle) => cc.on_restart(flow, *idle),
        Event::TransmitStart(idle) => cc.on_transmit_start(flow, *idle),
        Event::Unused(used) => cc.on_unused(flow, *used),
        Event::Lost(lost) => cc.on_lost(flow, lost),
    }
}

/// Common numbers, and those at which arithmetic overflows.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..100_u64,
        1 => 0..1_u64 << 40,
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        6 => (0..1000_u64).prop_map(Duration::from_millis),
        1 => number().prop_map(Duration::from_picos),
    ]
}

fn flow() -> impl Strategy<Value = FlowState> {
    let counts = (0..10_000_u64, number(), number());
    let times = (duration(), duration(), duration(), duration());
    let offsets = (number(), number(), number(), number());
    let phase = prop_oneof![
        6 => Just(Phase::Open),
        1 => Just(Phase::Disorder),
        1 => Just(Phase::Reduced),
        1 => Just(Phase::Recovery),
        1 => Just(Phase::Loss),
    ];
    let signs = (any::<[bool; 3]>(), phase, number(), duration());
    (counts, times, offsets, signs).prop_map(|(counts, times, (una, nxt, cwnd, rate), signs)| {
        let (mss, in_flight, delivered) = counts;
        let (now, srtt, min_rtt, rto) = times;
        let ([app_limited, cwnd_limited, is_paced], phase, lost, later) = signs;
        let next_departure = Time::ZERO + later;
        let now = Time::ZERO + now;
        FlowState {
            now,
            mss,
            cwnd,
            rate,
            is_paced,
            in_flight,
            sacked: 0,
            delivered,
            srtt,
            min_rtt,
            rto,
            una,
            nxt,
            lost,
            next_departure,
            app_limited,
            cwnd_limited,
            phase,
        }
    })
}

fn rate_sample() -> impl Strategy<Value = RateSample> {
    let counts = (number(), number(), number(), number());
    (number(), duration(), any::<[bool; 2]>(), counts).prop_map(
        |(rate, interval, [app_limited, is_ack_delayed], counts)| {
            let (delivered, delivered_at_send, in_flight_at_send, lost) = counts;
            RateSample {
                rate: Rate::from_bits_per_second(rate),
                delivered,
                interval,
                delivered_at_send,
                is_ack_delayed,
                app_limited,
                in_flight_at_send,
                lost,
            }
        },
    )
}

fn round() -> impl Strategy<Value = Round> {
    let rtts = (prop::option::of(duration()), prop::option::of(duration()));
    (duration(), rtts, any::<u32>(), (number(), number(), number())).prop_map(
        |(duration, (min_rtt, max_rtt), rtt_samples, (delivered, lost, ce))| Round {
            duration,
            min_rtt,
            mean_rtt: min_rtt,
            max_rtt,
            rtt_samples,
            delivered,
            lost,
            ce,
        },
    )
}

fn ack() -> impl Strategy<Value = Ack> {
    let counts = (number(), number(), number(), number(), number());
    let timestamps = (number(), number()).prop_map(|(sent, echoed)| Timestamps { sent, echoed });
    let delays = (
        prop::option::of(duration()),
        prop::option::of(duration()),
        prop::option::of(timestamps),
        any::<bool>(),
        (number(), prop::option::of(number())),
    );
    (counts, delays, prop::option::of(rate_sample()), prop::option::of(round())).prop_map(
        |((acked, credit, delivered, lost, ce), delays, rate, round)| {
            let (rtt, one_way_delay, timestamps, is_predicted, at_send) = delays;
            let (in_flight_before, delivered_at_send) = at_send;
            Ack {
                acked,
                credit,
                delivered,
                lost,
                ce,
                rtt,
                one_way_delay,
                timestamps,
                is_idle: false,
                is_predicted,
                in_flight_before,
                delivered_at_send,
                rate,
                round,
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let congestion = (prop::sample::select(&CAUSES[..]), number(), prop::bool::weighted(0.1))
        .prop_map(|(cause, flight, again)| {
            // Only a timeout repeats an episode already handled.
            let again = again && cause == Cause::Timeout;
            Event::Congestion(Congestion { cause, flight, again })
        });
    let lost = (number(), number(), number(), any::<bool>()).prop_map(
        |(in_flight_at_send, delivered_at_send, lost, app_limited)| {
            Event::Lost(Lost { in_flight_at_send, delivered_at_send, lost, app_limited })
        },
    );
    prop_oneof![
        1 => Just(Event::Begin),
        4 => ack().prop_map(Event::Arrival),
        8 => ack().prop_map(Event::Ack),
        2 => congestion,
        1 => Just(Event::Recovered),
        1 => Just(Event::Undo),
        1 => duration().prop_map(Event::Restart),
        1 => duration().prop_map(Event::TransmitStart),
        1 => number().prop_map(Event::Unused),
        1 => lost,
    ]
}

fn init() -> impl Strategy<Value = Init> {
    let cut_base = prop::sample::select(&[CutBase::Cwnd, CutBase::FlightSize][..]);
    let flavour = prop::sample::select(&[Flavour::Rfc, Flavour::Linux][..]);
    (number(), number(), cut_base, flavour, any::<u64>()).prop_map(
        |(mss, initial_window, cut_base, flavour, seed)| Init {
            mss,
            initial_window,
            cut_base,
            flavour,
            seed,
            max_pacing: None,
        },
    )
}

/// The decision and the probes, with floats as bits so that equal means the same.
fn state(cc: &dyn CongestionControl) -> (Control, Vec<(&'static str, u64)>) {
    let mut probes = Vec::new();
    cc.probe(&mut |name, value| {
        assert!(value.is_finite(), "{name} is {value} in {cc:?}");
        probes.push((name, value.to_bits()));
    });
    (cc.control(), probes)
}

/// The window at which a reduction of the kernel ends, however small it was before:
/// `tcp_end_cwnd_reduction` goes to `ssthresh`, of at least two segments, and `tcp_enter_loss`
/// leaves room for one more segment than those in flight.
fn room(event: Congestion, flow: &FlowState) -> u64 {
    match event.cause {
        Cause::Loss | Cause::Ecn => 2,
        Cause::Timeout => flow.in_flight.saturating_add(1),
    }
}

proptest! {
    #[test]
    fn arbitrary_events_keep_bounds_and_determinism(
        init in init(),
        events in prop::collection::vec((flow(), event()), 0..100),
    ) {
        for algorithm in ALGORITHMS {
            let (mut one, mut other) = (start(algorithm, &init), start(algorithm, &init));
            let names = |cc: &dyn CongestionControl| {
                state(cc).1.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
            };
            let columns = names(one.as_ref());
            for (flow, event) in &events {
                apply(one.as_mut(), flow, event);
                apply(other.as_mut(), flow, event);
                let control = one.control();
                prop_assert!(control.cwnd >= 1, "{}: {one:?}", algorithm.name);
                prop_assert!(control.ssthresh != Some(0), "{}: {one:?}", algorithm.name);
                let pacing = control.pacing.map(Rate::bits_per_second);
                prop_assert!(pacing != Some(0), "{}: {one:?}", algorithm.name);
                prop_assert_eq!(state(one.as_ref()), state(other.as_ref()), "{}", algorithm.name);
            }
            prop_assert_eq!(names(one.as_ref()), columns, "{}", algorithm.name);
        }
    }

    #[test]
    fn congestion_never_widens_the_window(
        init in init(),
        events in prop::collection::vec((flow(), event()), 0..100),
    ) {
        for algorithm in ALGORITHMS {
            let mut cc = start(algorithm, &init);
            for (flow, event) in &events {
                let before = cc.control().cwnd;
                apply(cc.as_mut(), flow, event);
                let most = match (event, init.flavour) {
                    (Event::Congestion(event), Flavour::Linux) => before.max(room(*event, flow)),
                    (Event::Congestion(_) | Event::Restart(_), _) => before,
                    _ => continue,
                };
                prop_assert!(cc.control().cwnd <= most, "{}: {cc:?}", algorithm.name);
            }
        }
    }
}
