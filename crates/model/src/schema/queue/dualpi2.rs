//! The dual-queue coupled AQM of L4S (RFC 9332).

use crate::plan::QueueLimit;
use crate::read::{table, words};
use crate::schema::{Limit, SOME_TIME};
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tcplab_units::Duration;

/// The gains that Linux `sch_dualpi2` accepts, in hertz.
const GAIN: RangeInclusive<f64> = 0.003_906_25..=8_388_607.0;

table! {
    /// Two queues: packets with ECT(1) or CE (L4S) are marked early and leave first, and all others
    /// are under `PI2`. L4S packets are marked in proportion to the square root of the classic
    /// queue's drop probability, so that flows of both kinds share the link.
    pub struct DualPi2 {
        /// The limit of both queues together: "10000 packets".
        pub limit: Limit = Limit::Packets(10_000),
        /// The target sojourn time of the classic queue: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// The update interval of the base probability: "16 ms".
        pub update: Duration [Duration::from_millis(1)..=Duration::MAX] = Duration::from_millis(16),
        /// The integral gain, for the distance of the sojourn time from its target, in hertz: 0.16.
        pub alpha: f64 [GAIN] = 0.16,
        /// The proportional gain, for the change of the sojourn time, in hertz: 3.2.
        pub beta: f64 [GAIN] = 3.2,
        /// The coupling factor k: L4S packets are marked with k times the base probability, and
        /// classic packets dropped or marked with its square.
        pub coupling: f64 [0.0..=255.0] = 2.0,
        /// The sojourn time in the L4S queue from which packets are marked: "1 ms".
        pub threshold: Duration = Duration::from_millis(1),
        /// The range above the threshold over which the marking probability rises from 0 to 1. With
        /// "0 ms", all packets are marked from the threshold on; RFC 9332 has a threshold of "800
        /// us" and a ramp of "400 us".
        pub ramp: Duration = Duration::ZERO,
        /// The number of packets that must wait behind an L4S packet for it to be marked for its
        /// sojourn time: 1, as in RFC 9332. Linux has 0, with which packets that only wait for one
        /// in transmission are marked on slow links.
        pub behind: u64 = 1,
        /// The scheduler between the queues: "wrr" (weighted round robin) or "time-shifted".
        pub scheduler: DualScheduler = DualScheduler::Wrr,
        /// With "wrr": the percentage of the link reserved for the classic queue while both queues
        /// are backlogged.
        pub protection: u64 [0..=100] = 10,
        /// With "time-shifted": how much longer a classic packet must have waited to go first.
        pub shift: Duration = Duration::from_millis(50),
        /// Whether overload, when every L4S packet would be marked, leads to drops: with `true`,
        /// packets of both queues are dropped with the classic probability; with `false`, the queue
        /// fills up.
        pub drop_on_overload: bool = true,
    }
}

words! {
    /// The scheduler between the two queues of `DualPI2`.
    #[what("scheduler")]
    pub enum DualScheduler {
        /// The L4S queue first, except for a share of the classic queue.
        "wrr" => Wrr,
        /// The packet that came first, with L4S packets counted as older.
        "time-shifted" => TimeShifted,
    }
}

as_written!(DualScheduler);

/// The dual-queue coupled AQM of L4S (RFC 9332).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DualPi2Plan {
    /// The target sojourn time of the classic queue.
    pub target: Duration,
    /// The update interval of the base probability.
    pub update: Duration,
    /// The integral gain, in hertz.
    pub alpha: f64,
    /// The proportional gain, in hertz.
    pub beta: f64,
    /// The coupling factor.
    pub coupling: f64,
    /// The sojourn time in the L4S queue from which packets are marked.
    pub threshold: Duration,
    /// The range above the threshold over which the marking probability rises to 1.
    pub ramp: Duration,
    /// Packets that must wait behind a packet marked for its sojourn time.
    pub behind: u64,
    /// The scheduler between the queues.
    pub scheduler: DualScheduler,
    /// The percentage of the classic queue with weighted round robin.
    pub protection: u64,
    /// How much older L4S packets count in a time-shifted queue.
    pub shift: Duration,
    /// Whether an overload leads to drops in both queues.
    pub drop_on_overload: bool,
}

impl DualPi2 {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> DualPi2Plan {
        let Self { target, update, alpha, beta, coupling, threshold, ramp, behind, .. } = *self;
        let Self { scheduler, protection, shift, drop_on_overload, .. } = *self;
        DualPi2Plan {
            target,
            update,
            alpha,
            beta,
            coupling,
            threshold,
            ramp,
            behind,
            scheduler,
            protection,
            shift,
            drop_on_overload,
        }
    }
}
