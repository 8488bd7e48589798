//! The scoreboard (RFC 6675): each segment that was sent and is not cumulatively acknowledged.
//!
//! The cost of an ACK does not grow with the window. Segments leave at the front as they are
//! acknowledged; a SACK block touches only what it newly reports; segments are judged lost by a
//! cursor that moves forward (RFC 6675, RFC 8985), and found for retransmission by another.

mod progress;
mod split;

use crate::ranges::RangeSet;
use progress::Run;
pub(crate) use progress::{Arrival, Progress};
use std::collections::VecDeque;
use tcplab_transport::DeliveryRate;
use tcplab_units::{Duration, Time};

/// One segment under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Offset of its first byte.
    pub start: u64,
    /// When it last left.
    pub left_at: Time,
    /// Offsets it takes: its payload, and one for a FIN.
    length: u16,
    sacked: bool,
    lost: bool,
    /// Was sent more than once.
    pub retransmitted: bool,
    /// Was sent again: since it was judged lost, or on suspicion.
    repaired: bool,
    /// Time found it lost since it last left, and does not do so twice, not even where that was a
    /// false alarm (`tcp_rack_detect_loss` takes it off its list).
    timed_out: bool,
}

impl Sent {
    /// Whether the segment was sent once, and neither SACKed nor found lost.
    #[inline]
    fn is_untouched(&self) -> bool {
        !(self.sacked | self.lost | self.retransmitted | self.repaired)
    }

    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    pub fn is_sacked(&self) -> bool {
        self.sacked
    }
}

/// The result of looking for losses by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// Segments newly found lost.
    pub lost: u64,
    /// Retransmissions among the segments found lost.
    pub repairs: u64,
    /// How long to wait until the last of those under suspicion is lost too.
    pub wait: Option<Duration>,
}

/// A segment sent again.
#[derive(Clone, Copy, Debug)]
struct Resent {
    left_at: Time,
    number: u64,
    /// Segments from this one on were first sent after it.
    before: u64,
}

/// The segments between the oldest not acknowledged and the newest sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Number of the first of `segments`, counted from the start of the connection. Cursors are
    /// such numbers, so that they stay right when segments leave.
    first: u64,
    sacked_ranges: RangeSet,
    sacked: u64,
    lost: u64,
    /// Sent again since they were judged lost, or while it was not known.
    repaired: u64,
    /// Lost and not sent again since.
    unrepaired: u64,
    /// Segments before this one have been judged by the SACK blocks above them.
    judged: u64,
    /// No segment before this one waits for retransmission.
    next_repair: u64,
    /// No segment before this one is under suspicion.
    next_suspect: u64,
    /// Segments before this one that were sent once have been judged by time.
    timed: u64,
    /// Retransmitted segments in the order in which they left.
    resent: VecDeque<Resent>,
    /// The rate sampler's state of each of `segments`, where the rate is sampled.
    pub(super) rates: Option<Box<DeliveryRate>>,
}

impl Scoreboard {
    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Segments believed to be in the network: the pipe of RFC 6675 §4, in segments.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.outstanding() + self.repaired - self.sacked - self.lost
    }

    #[inline]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Segments sent again and not yet reported.
    #[inline]
    pub fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Whether a segment is lost and was not sent again since.
    #[inline]
    pub fn has_unrepaired(&self) -> bool {
        self.unrepaired > 0
    }

    /// The newest segment.
    #[inline]
    pub fn back(&self) -> Option<&Sent> {
        self.segments.back()
    }

    /// The oldest segment.
    #[inline]
    pub fn front(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// When the segment that begins here last left.
    pub fn left_at(&self, start: u64) -> Option<Time> {
        let place = self.segments.partition_point(|segment| segment.start < start);
        self.segments.get(place).map(|segment| segment.left_at)
    }

    /// The receiver dropped what it reported: the oldest segment is marked as delivered.
    #[inline]
    pub fn is_front_sacked(&self) -> bool {
        self.front().is_some_and(|segment| segment.sacked)
    }

    /// The end of the highest block reported.
    #[inline]
    pub fn highest_sacked(&self) -> Option<u64> {
        self.sacked_ranges.end()
    }

    /// A new segment left.
    #[inline]
    pub fn send(&mut self, now: Time, start: u64, length: u16) {
        self.segments.push_back(Sent {
            start,
            left_at: now,
            length,
            sacked: false,
            lost: false,
            retransmitted: false,
            repaired: false,
            timed_out: false,
        });
    }

    /// All offsets below `una` were received.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, progress: &mut Progress) {
        let before = progress.acked;
        self.acknowledge_run(una, progress);
        if self.front().is_some_and(|first| first.start < una) {
            self.acknowledge_others(una, progress);
        }
        self.first += progress.acked - before;
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(una);
        }
        if self.segments.is_empty() {
            self.resent.clear();
            self.repaired = 0;
        }
    }

    /// Acknowledges untouched segments at the front: nearly always all.
    #[inline]
    fn acknowledge_run(&mut self, una: u64, progress: &mut Progress) {
        let mut run = Run::default();
        while let Some(segment) = self.segments.front()
            && segment.end() <= una
            && segment.is_untouched()
        {
            if run.count == 0 {
                (run.start, run.first_end) = (segment.start, segment.end());
                run.first_left = segment.left_at;
            }
            (run.end, run.last_left) = (segment.end(), segment.left_at);
            run.count += 1;
            self.segments.pop_front();
        }
        if run.count > 0 {
            if let Some(rates) = &mut self.rates {
                // The last of them left last.
                let last = run.count as usize - 1;
                rates.deliver(last, progress.arrival.departure(run.last_left), run.end);
                rates.forget_oldest(run.count);
            }
            progress.deliver_run(&run);
        }
    }

    /// Whole segments or the first part of one, whatever became of them.
    #[inline(never)]
    fn acknowledge_others(&mut self, una: u64, progress: &mut Progress) {
        while let Some(segment) = self.segments.front_mut().filter(|first| first.start < una) {
            if segment.end() > una {
                // A part of it: what is left is a segment of its own.
                segment.length = (segment.end() - una) as u16;
                segment.start = una;
                break;
            }
            progress.acked += 1;
            progress.repairs_acked |= segment.retransmitted;
            if segment.sacked {
                self.sacked -= 1;
            } else {
                progress.deliver(segment, false);
                if let Some(rates) = &mut self.rates {
                    rates.deliver(0, progress.arrival.departure(segment.left_at), segment.end());
                }
                if !segment.retransmitted && segment.start < progress.arrival.highest {
                    progress.overtake(segment.start);
                }
                self.lost -= u64::from(segment.lost);
                self.repaired -= u64::from(segment.repaired);
                self.unrepaired -= u64::from(segment.lost && !segment.repaired);
            }
            self.segments.pop_front();
            if let Some(rates) = &mut self.rates {
                rates.forget_oldest(1);
            }
        }
    }

    /// The segments of a block.
    pub fn within(&self, block: &std::ops::Range<u64>) -> impl Iterator<Item = &Sent> {
        let from = self.segments.partition_point(|segment| segment.start < block.start);
        let end = block.end;
        self.segments.range(from..).take_while(move |segment| segment.end() <= end)
    }

    /// The receiver reports a block beyond `una`.
    pub fn sack(&mut self, block: std::ops::Range<u64>, progress: &mut Progress) {
        let Self { segments, sacked_ranges, sacked, lost, repaired, unrepaired, rates, .. } = self;
        let highest = sacked_ranges.end().unwrap_or(0);
        sacked_ranges.insert(block, |new| {
            let from = segments.partition_point(|segment| segment.start < new.start);
            for (number, segment) in segments.range_mut(from..).enumerate() {
                if segment.end() > new.end {
                    break;
                }
                if segment.sacked {
                    continue;
                }
                progress.deliver(segment, true);
                if let Some(rates) = rates {
                    let left_at = progress.arrival.departure(segment.left_at);
                    rates.deliver(from + number, left_at, segment.end());
                }
                if !segment.retransmitted && segment.start < highest {
                    progress.overtake(segment.start);
                }
                *sacked += 1;
                *lost -= u64::from(segment.lost);
                *repaired -= u64::from(segment.repaired);
                *unrepaired -= u64::from(segment.lost && !segment.repaired);
                (segment.sacked, segment.lost, segment.repaired) = (true, false, false);
            }
        });
    }

    /// Judges segments by what was SACKed above them: lost if that is `dup_thresh` separate blocks
    /// or more than `dup_thresh - 1` full segments (`IsLost` of RFC 6675 §4). Returns how many are
    /// found lost.
    pub fn judge(&mut self, dup_thresh: u32, mss: u64) -> u64 {
        let (mut blocks, mut bytes) = (0, 0);
        let threshold = self.sacked_ranges.descending().find(|range| {
            blocks += 1;
            bytes += range.end - range.start;
            blocks >= dup_thresh || bytes > u64::from(dup_thresh - 1) * mss
        });
        threshold.map(|range| range.start).map_or(0, |below| self.lose_below(below))
    }

    /// Judges segments by how many above them were SACKed: lost if that is so many
    /// (`tcp_mark_head_lost`). Returns how many are found lost.
    pub fn judge_by_count(&mut self, reordering: u64) -> u64 {
        let place = |offset| self.segments.partition_point(|segment| segment.start < offset) as u64;
        let mut left = reordering;
        let lowest = self.sacked_ranges.descending().find_map(|range| {
            let (from, to) = (place(range.start), place(range.end));
            let count = to - from;
            if count >= left {
                return self.segments.get((to - left) as usize);
            }
            left -= count;
            None
        });
        lowest.map(|lowest| lowest.start).map_or(0, |below| self.lose_below(below))
    }

    /// Marks as lost the segments that lie `dup_thresh` segments or more below the highest SACKed
    /// sequence number, whether or not those between were SACKed (FACK). Returns their number.
    pub fn detect_by_fack(&mut self, dup_thresh: u32) -> u64 {
        let Some(forward) = self.sacked_ranges.end() else { return 0 };
        let below_forward = self.segments.partition_point(|segment| segment.start < forward);
        let first_spared = below_forward.checked_sub(dup_thresh as usize);
        let below = first_spared.and_then(|index| self.segments.get(index)).map(|it| it.start);
        below.map_or(0, |below| self.lose_below(below))
    }

    /// Segments that start below `below` and were not SACKed are lost. Returns how many were not
    /// known to be.
    fn lose_below(&mut self, below: u64) -> u64 {
        let mut found = 0;
        let from = (self.judged.saturating_sub(self.first) as usize).min(self.segments.len());
        for (number, segment) in self.segments.range_mut(from..).enumerate() {
            if segment.start >= below {
                break;
            }
            if !segment.sacked && !segment.lost {
                segment.lost = true;
                if let Some(rates) = &mut self.rates {
                    rates.lose(from + number);
                }
                found += 1;
                self.unrepaired += u64::from(!segment.repaired);
            }
            self.judged = self.judged.max(self.first) + 1;
        }
        self.lost += found;
        found
    }

    /// Judges segments by time (RFC 8985 §6.2 step 5): of those sent before the latest delivered,
    /// by time and end, a segment is lost if there is no time `left` for one that left when it did.
    ///
    /// Segments are judged in the order in which they left, and none behind the first that
    /// `is_later`: of those that left at the same time, a repair is behind data with a higher end,
    /// as on the list of Linux (`tcp_rack_detect_loss`).
    pub fn judge_by_time(
        &mut self,
        is_later: impl Fn(&Sent) -> bool,
        left: impl Fn(Time) -> Duration,
    ) -> Overdue {
        let mut found = Overdue::default();
        self.timed = self.timed.max(self.first);
        let end = self.first + self.segments.len() as u64;
        // Segments sent once are in the order of time as well.
        let (mut number, mut index, mut is_settled) = (self.timed, 0, true);
        loop {
            let resent = self.resent.get(index).copied();
            if number < end && resent.is_none_or(|resent| number < resent.before) {
                let segment = self.segments[(number - self.first) as usize];
                if !segment.sacked && !segment.lost && !segment.retransmitted && !segment.timed_out
                {
                    if is_later(&segment) {
                        break;
                    }
                    let wait = left(segment.left_at);
                    if wait.is_zero() {
                        self.lose(number, &mut found);
                    } else {
                        is_settled = false;
                        found.wait = found.wait.max(Some(wait));
                    }
                }
                number += 1;
                if is_settled {
                    self.timed = number;
                }
                continue;
            }
            let Some(Resent { left_at, number: again, .. }) = resent else { break };
            let segment =
                again.checked_sub(self.first).and_then(|at| self.segments.get(at as usize));
            let Some(segment) =
                segment.filter(|it| it.left_at == left_at && !it.sacked && !it.timed_out)
            else {
                // The segment has been delivered, found lost, or sent once more.
                self.forget_resent(&mut index);
                continue;
            };
            if segment.lost && !segment.repaired {
                // A timeout found it lost, which may have been a false alarm.
                index += 1;
                continue;
            }
            if is_later(segment) {
                break;
            }
            let wait = left(left_at);
            if wait.is_zero() {
                self.lose(again, &mut found);
                self.forget_resent(&mut index);
            } else {
                found.wait = found.wait.max(Some(wait));
                index += 1;
            }
        }
        found
    }

    /// The entry of `resent` at `index` is of no use any more.
    fn forget_resent(&mut self, index: &mut usize) {
        if *index == 0 {
            self.resent.pop_front();
        } else {
            *index += 1;
        }
    }

    /// The segment of this number is lost, or its repair is.
    fn lose(&mut self, number: u64, found: &mut Overdue) {
        let segment = &mut self.segments[(number - self.first) as usize];
        if segment.sacked || (segment.lost && !segment.repaired) {
            return;
        }
        if segment.lost {
            segment.repaired = false;
            self.repaired -= 1;
            self.unrepaired += 1;
            found.repairs += 1;
        } else {
            segment.lost = true;
            self.lost += 1;
            self.unrepaired += u64::from(!segment.repaired);
        }
        segment.timed_out = true;
        found.lost += 1;
        if let Some(rates) = &mut self.rates {
            rates.lose((number - self.first) as usize);
        }
        self.next_repair = self.next_repair.min(number);
    }

    /// The oldest segment is lost, whatever was SACKed.
    pub fn lose_front(&mut self) -> u64 {
        let Some(segment) = self.segments.front_mut().filter(|s| !s.sacked && !s.lost) else {
            return 0;
        };
        segment.lost = true;
        self.lost += 1;
        if !segment.repaired {
            self.unrepaired += 1;
            self.next_repair = self.first;
        }
        if let Some(rates) = &mut self.rates {
            rates.lose(0);
        }
        1
    }

    /// The timer ran out: what was not SACKed is to be sent again, but for what left after
    /// `recent`, the oldest always. `spares_unlost`: what was resent without being lost stays in
    /// flight, the oldest even when it is resent once more (`tcp_mark_skb_lost`). Returns how many
    /// were not known to be lost.
    pub fn lose_all(&mut self, recent: Time, spares_unlost: bool) -> u64 {
        if self.is_front_sacked() {
            // The receiver has dropped what it reported (RFC 2018 §8).
            self.sacked_ranges.clear();
            self.sacked = 0;
            for segment in &mut self.segments {
                segment.sacked = false;
            }
        }
        let mut found = 0;
        for (place, segment) in self.segments.iter_mut().enumerate() {
            let is_spared = place > 0 && segment.left_at > recent;
            if is_spared || segment.sacked || (segment.lost && !segment.repaired) {
                continue;
            }
            found += 1;
            if segment.lost || !spares_unlost {
                self.repaired -= u64::from(segment.repaired);
                segment.repaired = false;
            } else {
                segment.repaired &= place > 0;
            }
            self.lost += u64::from(!segment.lost);
            segment.lost = true;
            self.unrepaired += u64::from(!segment.repaired);
            if let Some(rates) = &mut self.rates {
                rates.lose(place);
            }
        }
        self.next_repair = self.first;
        self.judged = self.first + self.outstanding();
        self.next_suspect = self.judged;
        found
    }

    /// Nothing is lost after all.
    pub fn forget_losses(&mut self) {
        for segment in &mut self.segments {
            segment.lost = false;
        }
        self.lost = 0;
        self.unrepaired = 0;
        self.judged = self.first;
        self.timed = self.first;
    }

    /// The last segment leaves once more, as a probe: it does not count as sent twice.
    pub fn probe_last(&mut self, now: Time) -> Option<Sent> {
        let number = self.first + self.segments.len() as u64 - 1;
        let segment = self.segments.back_mut()?;
        segment.left_at = now;
        segment.retransmitted = true;
        segment.timed_out = false;
        self.resent.push_back(Resent { left_at: now, number, before: number + 1 });
        Some(*segment)
    }

    /// The first segment that is lost and was not sent again since (`NextSeg` rule 1).
    pub fn next_lost(&mut self) -> Option<Sent> {
        if !self.has_unrepaired() {
            return None;
        }
        let from = self.next_repair.saturating_sub(self.first) as usize;
        let rest = self.segments.range(from.min(self.segments.len())..);
        let offset = rest.take_while(|segment| !segment.lost || segment.repaired).count();
        self.next_repair = self.first + (from + offset) as u64;
        self.segments.get(from + offset).copied()
    }

    /// The first segment below the highest SACKed byte that was neither SACKed, nor sent again, nor
    /// found lost (`NextSeg` rule 3).
    pub fn next_suspect(&mut self) -> Option<Sent> {
        let highest = self.sacked_ranges.end()?;
        self.next_suspect = self.next_suspect.max(self.judged).max(self.first);
        while let Some(segment) = self.segments.get((self.next_suspect - self.first) as usize) {
            if segment.start >= highest {
                break;
            }
            if segment.sacked {
                // Past the whole block at once: it may be most of the window.
                let end = self.sacked_ranges.around(segment.start)?.end;
                let behind = self.segments.partition_point(|segment| segment.start < end);
                self.next_suspect = self.first + behind as u64;
            } else if segment.lost || segment.repaired {
                self.next_suspect += 1;
            } else {
                return Some(*segment);
            }
        }
        None
    }

    /// The last segment that was neither SACKed nor sent again: for a rescue (`NextSeg` rule 4).
    pub fn last_suspect(&self) -> Option<Sent> {
        self.segments.iter().rev().find(|segment| !segment.sacked && !segment.repaired).copied()
    }

    /// The segment that starts at `start` leaves once more. On suspicion, without being lost, it is
    /// in the network twice (`SetPipe` of RFC 6675 §4). Returns its place.
    pub fn resend(&mut self, now: Time, start: u64) -> usize {
        let index = self.segments.partition_point(|segment| segment.start < start);
        let before = self.first + self.segments.len() as u64;
        let segment = &mut self.segments[index];
        segment.left_at = now;
        segment.retransmitted = true;
        segment.timed_out = false;
        while self.resent.front().is_some_and(|resent| resent.number < self.first) {
            self.resent.pop_front();
        }
        let number = self.first + index as u64;
        self.resent.push_back(Resent { left_at: now, number, before });
        if !segment.repaired {
            segment.repaired = true;
            self.repaired += 1;
            self.unrepaired -= u64::from(segment.lost);
        }
        index
    }
}

#[cfg(test)]
#[path = "scoreboard/tests.rs"]
mod tests;
