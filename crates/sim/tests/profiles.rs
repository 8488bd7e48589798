//! Properties of every profile: whatever the wire does, each byte arrives once and both ends close.

// The two endpoints and the wire between them are those of the tests of `tcp`.
#[expect(dead_code, reason = "not all of it is of use here")]
#[path = "../../tcp/tests/connection/world.rs"]
mod world;

use proptest::prelude::*;
use tcplab_cc::Marks;
use tcplab_model::{CongestionControl, Profile, StackPlan};
use tcplab_tcp::{BuildControl, Settings, State};
use world::{CLIENT, Fate, SERVER, World, millis};

/// An endpoint with the options of a profile, which does not give up while the wire is bad.
fn end(stack: &StackPlan) -> (Settings, BuildControl) {
    let settings = tcplab_sim::settings(stack, 1460, Marks::AsSet);
    let patient = Settings { syn_retries: 100, syn_ack_retries: 100, retries: 100, ..settings };
    (patient, tcplab_sim::build_control(stack))
}

fn any_stack() -> impl Strategy<Value = StackPlan> {
    let cc = prop_oneof![Just("newreno"), Just("cubic")];
    (prop::sample::select(Profile::ALL), cc, any::<[bool; 2]>()).prop_map(|(profile, cc, flip)| {
        let mut stack = profile.options();
        stack.cc = CongestionControl::named(cc);
        // Options of one profile must interoperate with an end that has them or lacks them.
        stack.sack ^= flip[0];
        stack.timestamps ^= flip[1];
        stack
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_byte_arrives_once_and_both_ends_close(
        stacks in [any_stack(), any_stack()],
        bytes in [0u64..200_000, 0u64..200_000],
        // The fates of the first segments. After them the wire is good, so that every connection
        // must end.
        fates in prop::collection::vec(0u8..20, 0..300),
    ) {
        let mut fates = fates.into_iter();
        let mut world = World::with([end(&stacks[0]), end(&stacks[1])]).wire(move |_| {
            match fates.next() {
                Some(0..=2) => Fate::Drop,
                Some(3..=4) => Fate::Twice,
                Some(late @ 5..=8) => Fate::Late(millis(u64::from(late) * 7)),
                _ => Fate::Pass,
            }
        });
        world.run(millis(2_000_000));
        for end in [CLIENT, SERVER] {
            world.write(end, bytes[end]);
            world.close(end);
        }
        prop_assert!(world.settle(millis(10_000_000)), "{:?}", world.ends);
        prop_assert_eq!(world.received, [bytes[SERVER], bytes[CLIENT]]);
        prop_assert_eq!(world.states(), [State::Closed; 2]);
    }
}

#[test]
fn each_profile_recovers_losses_in_its_own_way() {
    for &profile in Profile::ALL {
        let stack = profile.options();
        let lost = world::drop_data(CLIENT, &[4, 6, 7, 12, 13, 14]);
        let mut world = World::with([end(&stack), end(&stack)]).established().wire(lost);
        world.write(CLIENT, 100_000);
        world.run(millis(60_000));
        assert_eq!(world.received[SERVER], 100_000, "{profile:?}");
    }
}
