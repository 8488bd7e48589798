//! The scoreboard (RFC 6675): the segments that were sent and are not cumulatively acknowledged.
//!
//! The cost of an ACK does not depend on the window. Acknowledged segments are removed at the
//! front, a SACK block visits only the segments that it newly reports, and cursors that only move
//! forward select segments for loss detection (RFC 6675, RFC 8985) and retransmission.

mod progress;
mod split;

use crate::ranges::RangeSet;
use progress::Run;
pub(crate) use progress::{AckState, Progress};
use std::collections::VecDeque;
use tcplab_transport::DeliveryRate;
use tcplab_units::{Duration, Time};

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Offset of the first byte.
    pub start: u64,
    /// When the segment last left.
    pub left_at: Time,
    /// Sequence numbers of the segment: its payload, and one for a FIN.
    length: u16,
    sacked: bool,
    lost: bool,
    /// The segment was sent more than once (`TCPCB_EVER_RETRANS`).
    pub retransmitted: bool,
    /// The segment was retransmitted since it was marked lost, or on suspicion
    /// (`TCPCB_SACKED_RETRANS`).
    is_resent: bool,
    /// RACK marked the segment lost since it last left. It does not do so again, even after an undo
    /// (`tcp_rack_detect_loss` removes the packet from its list).
    timed_out: bool,
}

impl Sent {
    /// Whether the segment was sent once, and is neither SACKed nor lost.
    #[inline]
    fn is_untouched(&self) -> bool {
        !(self.sacked | self.lost | self.retransmitted | self.is_resent)
    }

    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    pub fn is_sacked(&self) -> bool {
        self.sacked
    }
}

/// The result of loss detection by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RackResult {
    /// Segments newly found lost.
    pub lost: u64,
    /// Retransmissions among the lost segments.
    pub retransmissions: u64,
    /// Time until the last segment that may be lost is lost, too.
    pub wait: Option<Duration>,
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug)]
struct Resent {
    left_at: Time,
    number: u64,
    /// Segments from this number on were first sent after the retransmission.
    before: u64,
}

/// The segments from SND.UNA to SND.NXT.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Number of the first of `segments`, counted from the start of the connection. Cursors are
    /// such numbers, so they stay valid when segments are removed.
    first: u64,
    sacked_ranges: RangeSet,
    sacked: u64,
    lost: u64,
    /// Segments retransmitted since they were marked lost, or on suspicion (`tp->retrans_out`).
    retrans_out: u64,
    /// Segments lost and not retransmitted since.
    lost_not_resent: u64,
    /// Segments below this number are checked against the SACK blocks above them.
    checked_below: u64,
    /// No segment below this number waits for retransmission.
    next_retransmission: u64,
    /// No segment below this number is a candidate for `NextSeg` rule 3.
    next_seg_rule3: u64,
    /// Segments below this number that were sent once are checked by time.
    rack_checked_below: u64,
    /// Retransmitted segments in the order in which they left.
    resent: VecDeque<Resent>,
    /// The delivery-rate state of each segment, if rates are sampled.
    pub(super) rates: Option<Box<DeliveryRate>>,
}

impl Scoreboard {
    /// Segments sent and not cumulatively acknowledged (`tp->packets_out`).
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Segments believed to be in the network: the pipe of RFC 6675 §4, in segments.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.outstanding() + self.retrans_out - self.sacked - self.lost
    }

    #[inline]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Segments retransmitted and not yet reported (`tp->retrans_out`).
    #[inline]
    pub fn retrans_out(&self) -> u64 {
        self.retrans_out
    }

    /// Whether a segment is lost and was not retransmitted since.
    #[inline]
    pub fn has_unsent_losses(&self) -> bool {
        self.lost_not_resent > 0
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

    /// Whether the oldest segment is SACKed: the receiver has dropped data that it had reported
    /// (reneging).
    #[inline]
    pub fn is_front_sacked(&self) -> bool {
        self.front().is_some_and(|segment| segment.sacked)
    }

    /// The end of the highest SACK block.
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
            is_resent: false,
            timed_out: false,
        });
    }

    /// All offsets below `una` are acknowledged.
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
            self.retrans_out = 0;
        }
    }

    /// Acknowledges untouched segments at the front, nearly always all there are.
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
                // The last of these segments left last.
                let last = run.count as usize - 1;
                rates.on_delivered(last, progress.ack_state.departure(run.last_left), run.end);
                rates.remove_oldest(run.count);
            }
            progress.deliver_run(&run);
        }
    }

    /// Acknowledges whole segments in any state, or the first part of one.
    #[inline(never)]
    fn acknowledge_others(&mut self, una: u64, progress: &mut Progress) {
        while let Some(segment) = self.segments.front_mut().filter(|first| first.start < una) {
            if segment.end() > una {
                // A partial acknowledgment: the rest becomes a segment of its own.
                segment.length = (segment.end() - una) as u16;
                segment.start = una;
                break;
            }
            progress.acked += 1;
            progress.retransmissions_acked |= segment.retransmitted;
            if segment.sacked {
                self.sacked -= 1;
            } else {
                progress.on_delivered(segment, false);
                if let Some(rates) = &mut self.rates {
                    rates.on_delivered(
                        0,
                        progress.ack_state.departure(segment.left_at),
                        segment.end(),
                    );
                }
                if !segment.retransmitted && segment.start < progress.ack_state.highest {
                    progress.overtake(segment.start);
                }
                self.lost -= u64::from(segment.lost);
                self.retrans_out -= u64::from(segment.is_resent);
                self.lost_not_resent -= u64::from(segment.lost && !segment.is_resent);
            }
            self.segments.pop_front();
            if let Some(rates) = &mut self.rates {
                rates.remove_oldest(1);
            }
        }
    }

    /// The segments within a SACK block.
    pub fn within(&self, block: &std::ops::Range<u64>) -> impl Iterator<Item = &Sent> {
        let from = self.segments.partition_point(|segment| segment.start < block.start);
        let end = block.end;
        self.segments.range(from..).take_while(move |segment| segment.end() <= end)
    }

    /// A SACK block beyond `una`.
    pub fn sack(&mut self, block: std::ops::Range<u64>, progress: &mut Progress) {
        let Self {
            segments, sacked_ranges, sacked, lost, retrans_out, lost_not_resent, rates, ..
        } = self;
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
                progress.on_delivered(segment, true);
                if let Some(rates) = rates {
                    let left_at = progress.ack_state.departure(segment.left_at);
                    rates.on_delivered(from + number, left_at, segment.end());
                }
                if !segment.retransmitted && segment.start < highest {
                    progress.overtake(segment.start);
                }
                *sacked += 1;
                *lost -= u64::from(segment.lost);
                *retrans_out -= u64::from(segment.is_resent);
                *lost_not_resent -= u64::from(segment.lost && !segment.is_resent);
                (segment.sacked, segment.lost, segment.is_resent) = (true, false, false);
            }
        });
    }

    /// Marks segments lost by the SACKed data above them: `dup_thresh` separate blocks, or more
    /// than `dup_thresh - 1` full segments (`IsLost` of RFC 6675 §4). Returns how many are newly
    /// lost.
    pub fn detect_by_blocks(&mut self, dup_thresh: u32, mss: u64) -> u64 {
        let (mut blocks, mut bytes) = (0, 0);
        let threshold = self.sacked_ranges.descending().find(|range| {
            blocks += 1;
            bytes += range.end - range.start;
            blocks >= dup_thresh || bytes > u64::from(dup_thresh - 1) * mss
        });
        threshold.map(|range| range.start).map_or(0, |below| self.mark_lost_below(below))
    }

    /// Marks segments lost that have `reordering` SACKed segments above them
    /// (`tcp_mark_head_lost`). Returns how many are newly lost.
    pub fn detect_by_count(&mut self, reordering: u64) -> u64 {
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
        lowest.map(|lowest| lowest.start).map_or(0, |below| self.mark_lost_below(below))
    }

    /// Marks segments lost that are `dup_thresh` segments or more below the highest SACKed one,
    /// whatever the state of those between (FACK). Returns how many are newly lost.
    pub fn detect_by_fack(&mut self, dup_thresh: u32) -> u64 {
        let Some(forward) = self.sacked_ranges.end() else { return 0 };
        let below_forward = self.segments.partition_point(|segment| segment.start < forward);
        let first_spared = below_forward.checked_sub(dup_thresh as usize);
        let below = first_spared.and_then(|index| self.segments.get(index)).map(|it| it.start);
        below.map_or(0, |below| self.mark_lost_below(below))
    }

    /// Marks segments lost that start below `below` and are not SACKed. Returns how many were not
    /// marked before.
    fn mark_lost_below(&mut self, below: u64) -> u64 {
        let mut found = 0;
        let from =
            (self.checked_below.saturating_sub(self.first) as usize).min(self.segments.len());
        for (number, segment) in self.segments.range_mut(from..).enumerate() {
            if segment.start >= below {
                break;
            }
            if !segment.sacked && !segment.lost {
                segment.lost = true;
                if let Some(rates) = &mut self.rates {
                    rates.on_lost(from + number);
                }
                found += 1;
                self.lost_not_resent += u64::from(!segment.is_resent);
            }
            self.checked_below = self.checked_below.max(self.first) + 1;
        }
        self.lost += found;
        found
    }

    /// Marks segments lost by time (RFC 8985 §6.2 step 5). Of the segments sent before the latest
    /// delivered one, by time and end, a segment is lost if `left` returns zero for its departure
    /// time.
    ///
    /// Segments are checked in the order in which they left, up to the first for which `is_later`
    /// holds. Of segments that left at the same time, a retransmission comes after data with a
    /// higher end, as on the list of Linux (`tcp_rack_detect_loss`).
    pub fn detect_by_time(
        &mut self,
        is_later: impl Fn(&Sent) -> bool,
        left: impl Fn(Time) -> Duration,
    ) -> RackResult {
        let mut found = RackResult::default();
        self.rack_checked_below = self.rack_checked_below.max(self.first);
        let end = self.first + self.segments.len() as u64;
        // Segments that were sent once are in the order of their departure.
        let (mut number, mut index, mut is_settled) = (self.rack_checked_below, 0, true);
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
                        self.mark_lost(number, &mut found);
                    } else {
                        is_settled = false;
                        found.wait = found.wait.max(Some(wait));
                    }
                }
                number += 1;
                if is_settled {
                    self.rack_checked_below = number;
                }
                continue;
            }
            let Some(Resent { left_at, number: again, .. }) = resent else { break };
            let segment =
                again.checked_sub(self.first).and_then(|at| self.segments.get(at as usize));
            let Some(segment) =
                segment.filter(|it| it.left_at == left_at && !it.sacked && !it.timed_out)
            else {
                // The segment was delivered, marked lost, or retransmitted again.
                self.forget_resent(&mut index);
                continue;
            };
            if segment.lost && !segment.is_resent {
                // A timeout marked the segment lost, which an undo may revert.
                index += 1;
                continue;
            }
            if is_later(segment) {
                break;
            }
            let wait = left(left_at);
            if wait.is_zero() {
                self.mark_lost(again, &mut found);
                self.forget_resent(&mut index);
            } else {
                found.wait = found.wait.max(Some(wait));
                index += 1;
            }
        }
        found
    }

    /// Skips the entry of `resent` at `index`, and removes it at the front.
    fn forget_resent(&mut self, index: &mut usize) {
        if *index == 0 {
            self.resent.pop_front();
        } else {
            *index += 1;
        }
    }

    /// Marks the segment with this number, or its retransmission, lost.
    fn mark_lost(&mut self, number: u64, found: &mut RackResult) {
        let segment = &mut self.segments[(number - self.first) as usize];
        if segment.sacked || (segment.lost && !segment.is_resent) {
            return;
        }
        if segment.lost {
            segment.is_resent = false;
            self.retrans_out -= 1;
            self.lost_not_resent += 1;
            found.retransmissions += 1;
        } else {
            segment.lost = true;
            self.lost += 1;
            self.lost_not_resent += u64::from(!segment.is_resent);
        }
        segment.timed_out = true;
        found.lost += 1;
        if let Some(rates) = &mut self.rates {
            rates.on_lost((number - self.first) as usize);
        }
        self.next_retransmission = self.next_retransmission.min(number);
    }

    /// Marks the oldest segment lost, whatever was SACKed.
    pub fn mark_head_lost(&mut self) -> u64 {
        let Some(segment) = self.segments.front_mut().filter(|s| !s.sacked && !s.lost) else {
            return 0;
        };
        segment.lost = true;
        self.lost += 1;
        if !segment.is_resent {
            self.lost_not_resent += 1;
            self.next_retransmission = self.first;
        }
        if let Some(rates) = &mut self.rates {
            rates.on_lost(0);
        }
        1
    }

    /// The retransmission timer expired: marks the segments lost that are not SACKed and did not
    /// leave after `recent`, the oldest in any case. `spares_unlost`: segments that were
    /// retransmitted without being lost stay in flight, the oldest even while it is retransmitted
    /// again (`tcp_mark_skb_lost`). Returns how many were not marked before.
    pub fn mark_all_lost(&mut self, recent: Time, spares_unlost: bool) -> u64 {
        if self.is_front_sacked() {
            // Reneging: the receiver has dropped SACKed data (RFC 2018 §8).
            self.sacked_ranges.clear();
            self.sacked = 0;
            for segment in &mut self.segments {
                segment.sacked = false;
            }
        }
        let mut found = 0;
        for (place, segment) in self.segments.iter_mut().enumerate() {
            let is_spared = place > 0 && segment.left_at > recent;
            if is_spared || segment.sacked || (segment.lost && !segment.is_resent) {
                continue;
            }
            found += 1;
            if segment.lost || !spares_unlost {
                self.retrans_out -= u64::from(segment.is_resent);
                segment.is_resent = false;
            } else {
                segment.is_resent &= place > 0;
            }
            self.lost += u64::from(!segment.lost);
            segment.lost = true;
            self.lost_not_resent += u64::from(!segment.is_resent);
            if let Some(rates) = &mut self.rates {
                rates.on_lost(place);
            }
        }
        self.next_retransmission = self.first;
        self.checked_below = self.first + self.outstanding();
        self.next_seg_rule3 = self.checked_below;
        found
    }

    /// Clears all loss marks.
    pub fn forget_losses(&mut self) {
        for segment in &mut self.segments {
            segment.lost = false;
        }
        self.lost = 0;
        self.lost_not_resent = 0;
        self.checked_below = self.first;
        self.rack_checked_below = self.first;
    }

    /// The last segment is retransmitted as a tail loss probe, which does not count in
    /// `retrans_out`.
    pub fn resend_last_as_probe(&mut self, now: Time) -> Option<Sent> {
        let number = self.first + self.segments.len() as u64 - 1;
        let segment = self.segments.back_mut()?;
        segment.left_at = now;
        segment.retransmitted = true;
        segment.timed_out = false;
        self.resent.push_back(Resent { left_at: now, number, before: number + 1 });
        Some(*segment)
    }

    /// The first lost segment that was not retransmitted since (`NextSeg` rule 1).
    pub fn next_lost(&mut self) -> Option<Sent> {
        if !self.has_unsent_losses() {
            return None;
        }
        let from = self.next_retransmission.saturating_sub(self.first) as usize;
        let rest = self.segments.range(from.min(self.segments.len())..);
        let offset = rest.take_while(|segment| !segment.lost || segment.is_resent).count();
        self.next_retransmission = self.first + (from + offset) as u64;
        self.segments.get(from + offset).copied()
    }

    /// The first segment below the highest SACKed byte that is not SACKed, lost or retransmitted
    /// (`NextSeg` rule 3).
    pub fn next_seg_rule3(&mut self) -> Option<Sent> {
        let highest = self.sacked_ranges.end()?;
        self.next_seg_rule3 = self.next_seg_rule3.max(self.checked_below).max(self.first);
        while let Some(segment) = self.segments.get((self.next_seg_rule3 - self.first) as usize) {
            if segment.start >= highest {
                break;
            }
            if segment.sacked {
                // Skips the whole SACK block: it may be most of the window.
                let end = self.sacked_ranges.around(segment.start)?.end;
                let behind = self.segments.partition_point(|segment| segment.start < end);
                self.next_seg_rule3 = self.first + behind as u64;
            } else if segment.lost || segment.is_resent {
                self.next_seg_rule3 += 1;
            } else {
                return Some(*segment);
            }
        }
        None
    }

    /// The last segment that is neither SACKed nor retransmitted: for the rescue retransmission
    /// (`NextSeg` rule 4).
    pub fn last_suspect(&self) -> Option<Sent> {
        self.segments.iter().rev().find(|segment| !segment.sacked && !segment.is_resent).copied()
    }

    /// The segments from `place` on have not left after all. `beginning`: that of the next rate
    /// sample before them.
    pub fn take_back(&mut self, place: usize, beginning: Option<(Time, Time)>) {
        let taken = self.segments.len().saturating_sub(place);
        self.segments.truncate(place);
        if let (Some(rates), Some(beginning)) = (&mut self.rates, beginning) {
            rates.take_back(taken, beginning);
        }
    }

    /// The newest retransmissions, of the segments in `range`, have not left after all. The
    /// segments count as retransmitted nevertheless, and keep the time of the attempt
    /// (`__tcp_retransmit_skb`, `__tcp_transmit_skb`).
    pub fn take_retransmissions_back(&mut self, range: std::ops::Range<u64>) {
        let from = self.segments.partition_point(|segment| segment.start < range.start);
        for place in from..self.segments.len() {
            let segment = &mut self.segments[place];
            if segment.start >= range.end {
                break;
            }
            if std::mem::take(&mut segment.is_resent) {
                self.retrans_out -= 1;
                self.lost_not_resent += u64::from(segment.lost);
                self.resent.pop_back();
            }
        }
        self.next_retransmission = self.next_retransmission.min(self.first + from as u64);
    }

    /// The segment that starts at `start` is retransmitted. If it is not lost, it is in the network
    /// twice (`SetPipe` of RFC 6675 §4). Returns its place.
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
        if !segment.is_resent {
            segment.is_resent = true;
            self.retrans_out += 1;
            self.lost_not_resent -= u64::from(segment.lost);
        }
        index
    }
}

#[cfg(test)]
#[path = "scoreboard/tests.rs"]
mod tests;
