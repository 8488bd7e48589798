//! The dual-queue coupled AQM of L4S (RFC 9332).

use crate::plan::QueueLimit;
use crate::read::{table, words};
use crate::schema::{Limit, SOME_TIME};
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tcplab_units::Duration;

/// The gains that `sch_dualpi2` of Linux takes, in hertz.
const GAIN: RangeInclusive<f64> = 0.003_906_25..=8_388_607.0;

table! {
    /// Two queues: packets with ECT(1) or CE (L4S) are marked early and leave first, all others are
    /// under `PI2`. The L4S queue is marked in proportion to the square root of what the classic queue
    /// drops, so that flows of both kinds share the link.
    pub struct DualPi2 {
        /// How much both queues hold together: "10000 packets".
        pub limit: Limit = Limit::Packets(10_000),
        /// The waiting time in the classic queue to aim for: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// How often the base probability is set anew: "16 ms".
        pub update: Duration [Duration::from_millis(1)..=Duration::MAX] = Duration::from_millis(16),
        /// The weight of how far the waiting time is from its target, in hertz: 0.16.
        pub alpha: f64 [GAIN] = 0.16,
        /// The weight of how far the waiting time has moved, in hertz: 3.2.
        pub beta: f64 [GAIN] = 3.2,
        /// The coupling factor k: L4S packets are marked with k times the base probability, classic
        /// packets dropped or marked with its square.
        pub coupling: f64 [0.0..=255.0] = 2.0,
        /// The waiting time in the L4S queue from which packets are marked: "1 ms".
        pub threshold: Duration = Duration::from_millis(1),
        /// Over how much more waiting time the probability of these marks climbs from 0 to 1. With
        /// "0 ms", all are marked from the threshold on; RFC 9332 has a threshold of "800 us" and a
        /// ramp of "400 us".
        pub ramp: Duration = Duration::ZERO,
        /// Packets that must wait behind a packet of the L4S queue, for it to be marked for its
        /// waiting time: 1, as in RFC 9332. Linux has 0, with which packets that wait for one in
        /// transmission are marked on slow links.
        pub behind: u64 = 1,
        /// Which queue is served: "wrr" (weighted round robin) or "time-shifted".
        pub scheduler: DualScheduler = DualScheduler::Wrr,
        /// With "wrr": the percentage of the link that the classic queue has while both queues wait.
        pub protection: u64 [0..=100] = 10,
        /// With "time-shifted": how much longer a classic packet must have waited to go first.
        pub shift: Duration = Duration::from_millis(50),
        /// What happens when all L4S packets would be marked: with `true`, packets of both queues are
        /// dropped as classic packets are; with `false`, the queue fills up.
        pub drop_on_overload: bool = true,
    }
}

words! {
    /// Which of the two queues of `DualPI2` is served.
    #[what("scheduler")]
    pub enum DualScheduler {
        /// The L4S queue first, but for a share of the classic queue.
        "wrr" => Wrr,
        /// The packet that came first, where L4S packets count as having come earlier.
        "time-shifted" => TimeShifted,
    }
}

as_written!(DualScheduler);

/// The dual-queue coupled AQM of L4S (RFC 9332).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DualPi2Plan {
    /// The waiting time in the classic queue to aim for.
    pub target: Duration,
    /// How often the base probability is set anew.
    pub update: Duration,
    /// The weight of how far the waiting time is from its target, in hertz.
    pub alpha: f64,
    /// The weight of how far the waiting time has moved, in hertz.
    pub beta: f64,
    /// The coupling factor.
    pub coupling: f64,
    /// The waiting time in the L4S queue from which packets are marked.
    pub threshold: Duration,
    /// Over how much more of it the probability of these marks climbs to 1.
    pub ramp: Duration,
    /// Packets that must wait behind one that is marked for its waiting time.
    pub behind: u64,
    /// Which queue is served.
    pub scheduler: DualScheduler,
    /// The percentage of the classic queue with weighted round robin.
    pub protection: u64,
    /// How much earlier L4S packets count as having come with a time-shifted queue.
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
