//! Closing: FIN in every order, reset, TIME-WAIT.

use crate::world::*;
use tcplab_tcp::{Ended, Flags, Settings, State};

#[test]
fn active_closer_enters_time_wait() {
    let mut world = World::new(Settings::default()).established();
    world.write(CLIENT, 3_000);
    world.close(CLIENT);
    world.run(millis(120));
    assert_eq!(world.states(), [State::FinWait2, State::CloseWait]);
    assert!(world.ends[SERVER].is_at_end());
    world.ends[SERVER].close();
    world.run(millis(120));
    assert_eq!(world.states(), [State::TimeWait, State::Closed]);
    assert!(world.settle(millis(61_000)));
    assert_eq!(world.ends[CLIENT].ended(), Some(Ended::Normally));
    assert_eq!(world.ends[SERVER].ended(), Some(Ended::Normally));
    assert_eq!(world.received[SERVER], 3_000);
}

#[test]
fn a_half_closed_connection_still_carries_data_the_other_way() {
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].close();
    world.run(millis(200));
    world.ends[SERVER].write(200_000);
    world.ends[SERVER].close();
    assert!(world.settle(millis(70_000)));
    assert_eq!(world.received[CLIENT], 200_000);
    assert_eq!(world.states(), [State::Closed; 2]);
}

#[test]
fn both_may_close_at_once() {
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].write(10);
    for end in [CLIENT, SERVER] {
        world.ends[end].close();
    }
    world.run(millis(60));
    assert_eq!(world.states(), [State::Closing; 2]);
    world.run(millis(60));
    assert_eq!(world.states(), [State::TimeWait; 2]);
    assert!(world.settle(millis(61_000)));
    assert_eq!(world.received[SERVER], 10);
}

#[test]
fn a_fin_rides_on_the_last_data() {
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].write(2_000);
    world.ends[CLIENT].close();
    world.run(millis(120));
    let data: Vec<_> = world.sent_by(CLIENT).into_iter().map(|(_, segment)| segment).collect();
    assert_eq!(data.len(), 2);
    assert!(!data[0].flags.has(Flags::FIN) && data[1].flags.has(Flags::FIN));
}

#[test]
fn lost_fins_are_sent_again() {
    let mut fins = 0;
    let mut world = World::new(Settings::default())
        .wire(move |sent| {
            fins += usize::from(sent.segment.flags.has(Flags::FIN));
            // The first FIN of each side, and the second of the side that retransmits third, are
            // lost.
            if sent.segment.flags.has(Flags::FIN) && [1, 3].contains(&fins) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        })
        .established();
    world.ends[CLIENT].close();
    world.run(millis(5_000));
    world.ends[SERVER].close();
    assert!(world.settle(millis(130_000)));
    assert_eq!(world.states(), [State::Closed; 2]);
    assert_eq!(world.ends[SERVER].ended(), Some(Ended::Normally));
}

#[test]
fn time_wait_answers_a_repeated_fin_and_starts_over() {
    let mut lost = true;
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].close();
    world.run(millis(200));
    // The client's last ACK is lost: the server retransmits its FIN after its RTO of a second.
    world = world.wire(move |sent| {
        if sent.from == CLIENT && std::mem::take(&mut lost) { Fate::Drop } else { Fate::Pass }
    });
    world.ends[SERVER].close();
    world.run(millis(500));
    assert_eq!(world.states(), [State::TimeWait, State::LastAck]);
    world.run(millis(1_000));
    assert_eq!(world.states(), [State::TimeWait, State::Closed]);
    // TIME-WAIT restarts with the retransmitted FIN and ends after its full length.
    world.run(millis(59_000));
    assert_eq!(world.states()[CLIENT], State::TimeWait);
}

#[test]
fn a_reset_ends_both_sides_at_once() {
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].write(1_000_000);
    world.run(millis(300));
    world.ends[CLIENT].abort();
    assert!(world.settle(millis(1_000)));
    assert_eq!(world.ends[SERVER].ended(), Some(Ended::Reset));
    assert_eq!(world.states(), [State::Closed; 2]);
}

#[test]
fn unacknowledged_data_times_out_after_retries() {
    let mut world = World::new(Settings { retries: 4, ..Settings::default() }).established();
    world.ends[CLIENT].write(5_000);
    world = world.wire(|_| Fate::Drop);
    assert!(world.settle(millis(600_000)));
    assert_eq!(world.ends[CLIENT].ended(), Some(Ended::TimedOut));
    assert_eq!(world.ends[CLIENT].counters().timeouts, 4);
}
