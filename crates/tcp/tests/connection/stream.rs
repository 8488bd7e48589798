//! Properties: with any wire each byte arrives exactly once and the connection closes; and no
//! sequence of segments, however senseless, makes an endpoint panic.

use crate::world::*;
use proptest::prelude::*;
use std::sync::Arc;
use tcplab_tcp::{
    AckCounting, Behaviour, Capable, Ecn, Endpoint, Feedback, Flags, Identity, Keepalive,
    LossRecovery, Segment, SeqNumber, Settings, SynOptions, Timestamps, WindowReduction,
};
use tcplab_units::Time;

/// The parts of modern senders and receivers, in any combination.
fn any_modern(settings: impl Strategy<Value = Settings>) -> impl Strategy<Value = Settings> {
    let keepalive = || Keepalive { idle: millis(3_000), interval: millis(1_000), probes: u32::MAX };
    (settings, any::<[bool; 13]>(), any::<bool>()).prop_map(move |(settings, parts, keeps)| {
        Settings {
            behaviour: if parts[0] { Behaviour::LINUX } else { Behaviour::RFC },
            dsack: parts[1],
            rack: parts[2],
            tlp: parts[3],
            reduction: if parts[4] { WindowReduction::Proportional } else { settings.reduction },
            frto: parts[5],
            undo: parts[6],
            tso: parts[7],
            pacing: parts[8],
            ecn: match (parts[9], parts[10]) {
                (true, _) => Ecn::Asks,
                (false, true) => Ecn::Answers,
                (false, false) => Ecn::Off,
            },
            feedback: match (parts[11], parts[12]) {
                (true, true) => Feedback::Accurate,
                (true, false) => Feedback::Changes,
                (false, _) => Feedback::Classic,
            },
            capable: if parts[12] { Capable::All } else { Capable::NewData },
            keepalive: keeps.then(keepalive),
            ..settings
        }
    })
}

fn any_settings() -> impl Strategy<Value = Settings> {
    any_modern(any_classic())
}

fn any_classic() -> impl Strategy<Value = Settings> {
    (
        any::<[bool; 8]>(),
        any_repair(),
        prop_oneof![Just(None), (1u64..300).prop_map(Some)],
        prop_oneof![500u64..5_000, 20_000u64..70_000, Just(1 << 30)],
        100u16..3_000,
        prop_oneof![
            Just(AckCounting::PerAck),
            Just(AckCounting::PerSegment),
            (1u32..3).prop_map(|limit| AckCounting::PerByte { limit })
        ],
    )
        .prop_map(|(flags, (recovery, reduction), delay, receive_buffer, mss, counting)| {
            Settings {
                sack: flags[0],
                timestamps: flags[1],
                window_scaling: flags[2],
                nagle: flags[3],
                limited_transmit: flags[4],
                restart_after_idle: flags[5],
                fack: flags[7],
                recovery,
                reduction,
                quick_ack: if flags[6] { 4 } else { 0 },
                delayed_ack: delay.map(millis),
                receive_buffer,
                mss,
                counting,
                syn_retries: 100,
                syn_ack_retries: 100,
                retries: 100,
                ..Settings::default()
            }
        })
}

fn any_repair() -> impl Strategy<Value = (LossRecovery, WindowReduction)> {
    (
        prop_oneof![
            Just(LossRecovery::Tahoe),
            Just(LossRecovery::Reno),
            Just(LossRecovery::NewReno),
            Just(LossRecovery::NewRenoSteady)
        ],
        prop_oneof![
            Just(WindowReduction::AtOnce),
            Just(WindowReduction::Halving),
            Just(WindowReduction::Proportional)
        ],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_byte_arrives_once_and_both_ends_close(
        settings in [any_settings(), any_settings()],
        bytes in [0u64..200_000, 0u64..200_000],
        // The fates of the first segments. After them the wire is lossless, so that every
        // connection must end.
        fates in prop::collection::vec(0u8..20, 0..300),
    ) {
        let mut fates = fates.into_iter();
        let mut world = World::of(settings).wire(move |_| match fates.next() {
            Some(0..=2) => Fate::Drop,
            Some(3..=4) => Fate::Twice,
            Some(9..=10) => Fate::Marked,
            Some(late @ 5..=8) => Fate::Late(millis(u64::from(late) * 7)),
            _ => Fate::Pass,
        });
        // However many SYNs are lost, one arrives.
        world.run(millis(2_000_000));
        for end in [CLIENT, SERVER] {
            world.write(end, bytes[end]);
            world.close(end);
        }
        prop_assert!(world.settle(millis(10_000_000)), "{:?}", world.ends);
        prop_assert_eq!(world.received, [bytes[SERVER], bytes[CLIENT]]);
        prop_assert_eq!(world.states(), [tcplab_tcp::State::Closed; 2]);
    }

    #[test]
    fn arbitrary_segments_cause_no_panic_or_endless_timer(
        settings in any_settings(),
        server: bool,
        written in 0u64..100_000,
        segments in prop::collection::vec(any_segment(), 0..60),
    ) {
        let mut end = Endpoint::new(Arc::new(settings), newreno(), Identity { initial_sequence: 1_000, seed: 1 });
        if server { end.listen() } else { end.connect() }
        let mut now = Time::ZERO;
        for (wait, segment) in segments {
            while end.poll_transmit(now).is_some() {}
            // Every due timer has been handled; one that stays due would loop forever.
            prop_assert!(end.next_timer() > now, "{:?}", end);
            now += millis(wait);
            end.on_timer(now);
            end.on_segment(now, &segment);
            end.write(written);
            end.read(now, u64::MAX);
            if wait == 77 { end.close() }
            let _ = end.snapshot();
        }
    }
}

/// Numbers near those in use, so that segments are often acceptable.
fn any_number() -> impl Strategy<Value = SeqNumber> {
    prop_oneof![
        4 => (995u32..1_010).prop_map(SeqNumber),
        4 => (1_000u32..60_000).prop_map(SeqNumber),
        1 => any::<u32>().prop_map(SeqNumber),
    ]
}

fn any_segment() -> impl Strategy<Value = (u64, Segment)> {
    let header = (any_number(), any_number(), any::<u16>(), 0u16..3_000, 0u16..256, 0u64..400);
    let sack = prop::collection::vec((any_number(), any_number()), 0..5);
    let options = (any::<bool>(), any::<bool>(), any::<u16>(), prop::option::of(any::<u8>()));
    (header, sack, options).prop_map(|((seq, ack, window, payload, flags, wait), sack, options)| {
        let (timestamps, sack_permitted, mss, window_scale) = options;
        let pick = |bit, flag| if flags & bit != 0 { flag } else { Flags::NONE };
        // SYN, FIN and RST are rare and end most connections; most segments are ACKs.
        let marks = pick(16, Flags::ECE).with(pick(32, Flags::CWR));
        let marks = marks.with(pick(64, Flags::ECT)).with(pick(128, Flags::CE));
        let marks = marks.with(if window % 2 == 0 { Flags::AE } else { Flags::NONE });
        let flags = match flags % 16 {
            0..8 => Flags::ACK,
            _ => pick(1, Flags::SYN).with(pick(2, Flags::ACK)).with(pick(4, Flags::FIN)),
        };
        let flags = flags.with(marks);
        let mut segment = Segment::new(flags, seq, ack).with_payload(payload).with_window(window);
        if timestamps {
            segment = segment.with_timestamps(Timestamps { value: ack.0 % 7, echo: 1 });
        }
        if flags.has(Flags::SYN) {
            segment = segment.with_syn_options(SynOptions { mss, window_scale, sack_permitted });
        }
        (wait, segment.with_sack(sack))
    })
}
