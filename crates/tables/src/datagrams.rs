//! Statistics of one flow's datagrams: loss, order, delay and its variation.

use crate::measure::Window;
use crate::quantiles::Quantiles;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcplab_units::{Duration, Time};

/// The most datagrams after the last arrived one whose sending times are kept. Older ones count as
/// lost.
const MOST_OUTSTANDING: usize = 1 << 20;

/// The number of datagrams before the highest arrived one whose delays are kept, for late arrivals.
const MOST_RECENT: usize = 128;

/// Follows the datagrams of one flow, numbered from 0 in sending order, in constant memory.
#[derive(Clone, Debug, Default)]
pub struct Datagrams {
    sent: u64,
    arrived: u64,
    bytes: u64,
    last_sent: Option<Time>,
    last_arrival: Option<Time>,
    reordered: u64,
    /// The number after the highest that has arrived.
    next: u64,
    /// Sending times from `next` on, except for `forgotten` of them.
    outstanding: VecDeque<Time>,
    forgotten: u64,
    delays: Quantiles,
    least: Option<Duration>,
    greatest: Duration,
    /// The delay of the last arrived datagram.
    last: Option<Duration>,
    /// Delays of the last ones before `next`, in the order of their numbers; `None` for those that
    /// have not arrived.
    recent: VecDeque<Option<Duration>>,
    /// RFC 3550 §6.4.1, in picoseconds.
    jitter: f64,
    /// The sum of the delay differences behind the jitter, in picoseconds, and their number.
    differences: (u128, u64),
    /// Pairs of RFC 3393, and the sum of their variations in picoseconds.
    pairs: u64,
    variation: u128,
}

/// What happened to a flow's datagrams: lost, reordered, delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramFacts {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived.
    pub arrived: u64,
    /// The data in those.
    pub bytes: u64,
    /// Datagrams lost; `None` if they have no numbers.
    pub lost: Option<u64>,
    /// Datagrams that arrived after one with a higher number; `None` if they have no numbers.
    pub reordered: Option<u64>,
    /// Their delays; `None` if none arrived or they carry no sending times.
    pub delays: Option<Delays>,
}

/// One-way delays, from the sending call to the arrival at the receiving host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// The minimum.
    pub min: Duration,
    /// The mean.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// The 95th percentile.
    pub p95: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The interarrival jitter of RFC 3550 at the end.
    pub jitter: Duration,
    /// The mean of the delay differences behind the jitter; `None` with fewer than two arrivals.
    pub mean_jitter: Option<Duration>,
    /// The mean absolute variation of RFC 3393; `None` without two consecutive arrivals.
    pub ipdv: Option<Duration>,
}

impl Datagrams {
    /// The next datagram is sent.
    pub fn on_sent(&mut self, now: Time) {
        self.sent += 1;
        self.last_sent = Some(now);
        self.outstanding.push_back(now);
        if self.outstanding.len() > MOST_OUTSTANDING {
            self.outstanding.pop_front();
            self.forgotten += 1;
        }
    }

    /// A datagram arrives in full.
    pub fn on_arrival(&mut self, number: u64, sent_at: Time, arrived_at: Time, bytes: u64) {
        self.arrived += 1;
        self.bytes += bytes;
        self.last_arrival = Some(arrived_at);
        let delay = arrived_at.since(sent_at);
        if number < self.next {
            self.reordered += 1;
        } else {
            let passed = number + 1 - self.next;
            self.next = number + 1;
            let forgotten = passed.min(self.forgotten);
            self.forgotten -= forgotten;
            for _ in forgotten..passed {
                self.outstanding.pop_front();
            }
            let kept = passed.min(MOST_RECENT as u64);
            self.recent.extend((0..kept).map(|_| None));
        }
        self.pair(number, delay);
        self.delays.add(delay.as_picos());
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
        self.greatest = self.greatest.max(delay);
        if let Some(earlier) = self.last.replace(delay) {
            let difference = delay.as_picos().abs_diff(earlier.as_picos());
            self.jitter += (difference as f64 - self.jitter) / 16.0;
            self.differences.0 += u128::from(difference);
            self.differences.1 += 1;
        }
    }

    /// Adds the pairs of RFC 3393 that a datagram completes: with its predecessor and its
    /// successor, in whatever order they arrived.
    fn pair(&mut self, number: u64, delay: Duration) {
        let behind = (self.next - number) as usize;
        // Too late: its neighbours are no longer known.
        let Some(place) = self.recent.len().checked_sub(behind) else { return };
        if self.recent[place].is_some() {
            return;
        }
        self.recent[place] = Some(delay);
        let before = place.checked_sub(1).and_then(|before| self.recent[before]);
        let after = self.recent.get(place + 1).copied().flatten();
        for other in before.into_iter().chain(after) {
            self.pairs += 1;
            self.variation += u128::from(delay.as_picos().abs_diff(other.as_picos()));
        }
        // Of the complete ones, the last is still needed.
        let complete = self.recent.iter().take_while(|one| one.is_some()).count();
        let rest = self.recent.len().saturating_sub(MOST_RECENT);
        self.recent.drain(..complete.saturating_sub(1).max(rest));
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Datagrams that arrived so far.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Bytes that arrived so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the last one was sent.
    pub fn last_sent(&self) -> Option<Time> {
        self.last_sent
    }

    /// When the last one arrived.
    pub fn last_arrival(&self) -> Option<Time> {
        self.last_arrival
    }

    /// The statistics of the datagrams, where nothing is observed after `end`.
    pub fn facts(&self, end: Time) -> DatagramFacts {
        // After the last arrival, datagrams count as lost that had as much time as the slowest one
        // took.
        let is_over = |sent: &&Time| **sent + self.greatest < end;
        let late = self.forgotten + self.outstanding.iter().take_while(is_over).count() as u64;
        let before = self.next.saturating_sub(self.arrived);
        DatagramFacts {
            sent: self.sent,
            arrived: self.arrived,
            bytes: self.bytes,
            lost: Some(before + late),
            reordered: Some(self.reordered),
            delays: self.delays(),
        }
    }

    fn delays(&self) -> Option<Delays> {
        let of = |percent| self.delays.percentile(percent, 0).map(Duration::from_picos);
        // The middle of a bucket may exceed all values.
        let within = |value: Duration| value.min(self.greatest);
        let mean = |sum: u128, number: u64| {
            (number > 0).then(|| Duration::from_picos((sum / u128::from(number)) as u64))
        };
        let least = self.least?;
        Some(Delays {
            min: least,
            mean: Duration::from_picos(self.delays.mean()?),
            p50: within(of(50)?).max(least),
            p95: within(of(95)?).max(least),
            p99: within(of(99)?).max(least),
            jitter: Duration::from_picos(self.jitter as u64),
            mean_jitter: mean(self.differences.0, self.differences.1),
            ipdv: mean(self.variation, self.pairs),
        })
    }
}

/// All datagrams of one flow, and separately those sent in the measuring window.
#[derive(Clone, Debug, Default)]
pub struct MeasuredDatagrams {
    all: Datagrams,
    part: Option<Box<Part>>,
}

/// Datagrams sent in a window.
#[derive(Clone, Debug)]
struct Part {
    window: Window,
    /// How many were sent before the window.
    before: u64,
    seen: Datagrams,
}

impl MeasuredDatagrams {
    /// Datagrams of a run with results of this part.
    pub fn within(window: Window) -> Self {
        let part = Part { window, before: 0, seen: Datagrams::default() };
        let part = (!window.is_whole()).then(|| Box::new(part));
        Self { all: Datagrams::default(), part }
    }

    /// The next datagram is sent.
    pub fn on_sent(&mut self, now: Time) {
        self.all.on_sent(now);
        if let Some(part) = &mut self.part {
            if part.window.holds(now) {
                part.seen.on_sent(now);
            } else if now < part.window.from() {
                part.before += 1;
            }
        }
    }

    /// A datagram arrives in full.
    pub fn on_arrival(&mut self, number: u64, sent_at: Time, arrived_at: Time, bytes: u64) {
        self.all.on_arrival(number, sent_at, arrived_at, bytes);
        if let Some(part) = &mut self.part
            && part.window.holds(sent_at)
        {
            part.seen.on_arrival(number - part.before, sent_at, arrived_at, bytes);
        }
    }

    /// All datagrams.
    pub fn all(&self) -> &Datagrams {
        &self.all
    }

    /// The statistics of the datagrams in the window, where nothing is observed after `end`.
    pub fn facts(&self, end: Time) -> DatagramFacts {
        self.part.as_ref().map_or(&self.all, |part| &part.seen).facts(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// One datagram every 10 ms from 0 on with these delays in milliseconds, without losses. They
    /// arrive in the order of their arrival times.
    fn stream(delays: &[Option<u64>]) -> Datagrams {
        let mut datagrams = Datagrams::default();
        let mut arrivals = Vec::new();
        for (number, delay) in delays.iter().enumerate() {
            let sent = 10 * number as u64;
            datagrams.on_sent(at(sent));
            arrivals.extend(delay.map(|delay| (sent + delay, number as u64, sent)));
        }
        arrivals.sort_unstable();
        for (arrived, number, sent) in arrivals {
            datagrams.on_arrival(number, at(sent), at(arrived), 100);
        }
        datagrams
    }

    #[test]
    fn statistics_of_a_periodic_pattern_match_arithmetic() {
        // Delays of 20 and 24 ms in turn: 5 of each.
        let pattern: Vec<_> = (0..10).map(|k| Some(20 + 4 * (k % 2))).collect();
        let facts = stream(&pattern).facts(at(1000));
        assert_eq!((facts.sent, facts.arrived, facts.bytes), (10, 10, 1000));
        assert_eq!((facts.lost, facts.reordered), (Some(0), Some(0)));
        let delays = facts.delays.unwrap();
        assert_eq!((delays.min, delays.mean), (ms(20), ms(22)));
        assert_eq!((delays.p50, delays.p95, delays.p99), (ms(20), ms(24), ms(24)));
        // |D| is 4 ms nine times: 4 (1 - (15/16)^9) = 1.7622 ms, and every variation is 4 ms.
        let expected = 4.0 * (1.0 - libm::pow(15.0 / 16.0, 9.0));
        assert!((delays.jitter.as_millis_f64() - expected).abs() < 1e-9);
        assert_eq!((delays.mean_jitter, delays.ipdv), (Some(ms(4)), Some(ms(4))));
    }

    #[test]
    fn an_overtaken_datagram_is_reordered_and_not_lost() {
        // Number 1 arrives at 45, after numbers 2 at 40 and before 3 at 50.
        let facts = stream(&[Some(20), Some(35), Some(20), Some(20)]).facts(at(1000));
        assert_eq!((facts.lost, facts.reordered), (Some(0), Some(1)));
        // Pairs of delays: 20 and 35 ms, 35 and 20 ms, and 20 ms twice: (15 + 15 + 0) / 3.
        let delays = facts.delays.unwrap();
        assert_eq!(delays.ipdv, Some(ms(10)));
        // The delays in order of arrival are 20, 20, 35 and 20 ms: differences of 0, 15 and 15 ms.
        assert_eq!(delays.mean_jitter, Some(ms(10)));
    }

    #[test]
    fn delay_variation_is_of_consecutively_sent_pairs() {
        // Number 1 is lost, so 2 and 3 are a pair with a difference of 2 ms. 301 and 302 are
        // another pair, with 5 ms; the second arrival of 301 is a copy. 100 is too late for its
        // neighbours to be known.
        let mut datagrams = Datagrams::default();
        for number in 0..400 {
            datagrams.on_sent(at(10 * number));
        }
        for (number, delay) in [(0, 20), (2, 20), (3, 22), (302, 20), (301, 25), (301, 40)] {
            datagrams.on_arrival(number, at(10 * number), at(10 * number + delay), 100);
        }
        assert_eq!(
            datagrams.facts(at(9000)).delays.unwrap().ipdv,
            Some(Duration::from_micros(3500))
        );
        datagrams.on_arrival(399, at(3990), at(4010), 100);
        datagrams.on_arrival(100, at(1000), at(4020), 100);
        let ipdv = datagrams.facts(at(9000)).delays.unwrap().ipdv;
        assert_eq!(
            (ipdv, datagrams.recent.len()),
            (Some(Duration::from_micros(3500)), MOST_RECENT)
        );
    }

    #[test]
    fn a_datagram_is_lost_if_it_had_time_to_arrive() {
        let pattern = [Some(20), None, Some(25), None, None];
        // Sent at 30 and 40; the slowest took 25 ms, so the first counts as lost from 60 on.
        assert_eq!(stream(&pattern).facts(at(60)).lost, Some(2));
        assert_eq!(stream(&pattern).facts(at(55)).lost, Some(1));
        assert_eq!(stream(&pattern).facts(at(70)).lost, Some(3));
        // Without arrivals, all datagrams sent before the end are lost.
        let none = stream(&[None, None]).facts(at(10));
        assert_eq!((none.lost, none.delays), (Some(1), None));
    }

    #[test]
    fn a_window_counts_datagrams_by_sending_time() {
        let from_30_to_60 = Window::new(ms(30), ms(60), None, ms(1000));
        let mut datagrams = MeasuredDatagrams::within(from_30_to_60);
        // One every 10 ms: numbers 3, 4 and 5 are sent from 30 ms on and before 60 ms. Number 4 is
        // lost. Number 2, sent before, arrives after 3: it is not in the window, and does not make
        // 3 reordered.
        for number in 0..10 {
            datagrams.on_sent(at(10 * number));
        }
        for (number, arrived) in [(0, 20), (1, 30), (3, 55), (2, 58), (5, 90), (6, 95), (9, 200)] {
            datagrams.on_arrival(number, at(10 * number), at(arrived), 100);
        }
        let facts = datagrams.facts(at(1000));
        assert_eq!((facts.sent, facts.arrived, facts.bytes), (3, 2, 200));
        assert_eq!((facts.lost, facts.reordered), (Some(1), Some(0)));
        let delays = facts.delays.unwrap();
        // 25 ms of number 3, 40 ms of number 5.
        assert_eq!((delays.min, delays.p99), (ms(25), ms(40)));
        let all = datagrams.all().facts(at(1000));
        assert_eq!((all.sent, all.arrived, all.reordered), (10, 7, Some(1)));
    }

    #[test]
    fn memory_does_not_grow_with_an_outage() {
        let mut datagrams = Datagrams::default();
        for number in 0..(MOST_OUTSTANDING as u64 + 1000) {
            datagrams.on_sent(Time::from_picos(number));
        }
        assert_eq!(datagrams.outstanding.len(), MOST_OUTSTANDING);
        assert_eq!(datagrams.facts(at(1)).lost, Some(MOST_OUTSTANDING as u64 + 1000));
        // A forgotten datagram arrives after all: those before and after it are lost.
        datagrams.on_arrival(10, Time::from_picos(10), Time::from_picos(20), 1);
        assert_eq!(datagrams.facts(at(1)).lost, Some(MOST_OUTSTANDING as u64 + 999));
    }
}
