//! What was sent and is not yet acknowledged, segment by segment, and what became of it.
//!
//! The cost of an ACK does not grow with the window. Segments leave at the front as they are
//! acknowledged; a SACK block touches only what it newly reports; segments are judged lost by a
//! cursor that moves forward, and found for retransmission by another (RFC 6675).

use crate::ranges::RangeSet;
use std::collections::VecDeque;
use tcplab_units::Time;

/// One segment under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Offset of its first byte.
    pub start: u64,
    /// When it last left.
    left_at: Time,
    /// Offsets it takes: its payload, and one for a FIN.
    length: u16,
    sacked: bool,
    lost: bool,
    /// Was sent more than once.
    retransmitted: bool,
    /// Was sent again: since it was judged lost, or on suspicion.
    repaired: bool,
}

impl Sent {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }
}

/// What an ACK changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Segments cumulatively acknowledged.
    pub acked: u64,
    /// Segments delivered for the first time, cumulatively or by SACK.
    pub delivered: u64,
    /// When the oldest and the newest delivered segment were sent, if each was sent only once and
    /// delivered just now.
    pub oldest: Option<Time>,
    pub newest: Option<Time>,
}

impl Progress {
    #[inline]
    fn deliver(&mut self, segment: &Sent) {
        self.delivered += 1;
        if !segment.retransmitted {
            self.oldest = Some(self.oldest.map_or(segment.left_at, |at| at.min(segment.left_at)));
            self.newest = Some(self.newest.map_or(segment.left_at, |at| at.max(segment.left_at)));
        }
    }
}

/// The segments between the oldest not acknowledged and the newest sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Number of the first of `segments`, counted from the start of the connection. Cursors are such
    /// numbers, so that they stay right when segments leave.
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

    /// Whether a segment is lost and was not sent again since.
    #[inline]
    pub fn has_unrepaired(&self) -> bool {
        self.unrepaired > 0
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
        });
    }

    /// All offsets below `una` were received.
    #[inline]
    pub fn acknowledge(&mut self, una: u64) -> Progress {
        let mut progress = Progress::default();
        let mut repaired = false;
        while let Some(segment) = self.segments.front_mut().filter(|first| first.start < una) {
            if segment.end() > una {
                // A part of it: what is left is a segment of its own.
                segment.length = (segment.end() - una) as u16;
                segment.start = una;
                break;
            }
            progress.acked += 1;
            repaired |= segment.retransmitted;
            if segment.sacked {
                self.sacked -= 1;
            } else {
                progress.deliver(segment);
                self.lost -= u64::from(segment.lost);
                self.repaired -= u64::from(segment.repaired);
                self.unrepaired -= u64::from(segment.lost && !segment.repaired);
            }
            self.segments.pop_front();
        }
        self.first += progress.acked;
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(una);
        }
        if repaired {
            // What waited behind a hole tells how long the repair took, not the path.
            progress.oldest = None;
            progress.newest = None;
        }
        progress
    }

    /// The receiver reports a block beyond `una`.
    pub fn sack(&mut self, block: std::ops::Range<u64>, progress: &mut Progress) {
        let Self { segments, sacked_ranges, sacked, lost, repaired, unrepaired, .. } = self;
        sacked_ranges.insert(block, |new| {
            let from = segments.partition_point(|segment| segment.start < new.start);
            for segment in segments.range_mut(from..) {
                if segment.end() > new.end {
                    break;
                }
                if segment.sacked {
                    continue;
                }
                progress.deliver(segment);
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
        let Some(below) = threshold.map(|range| range.start) else { return 0 };
        let mut found = 0;
        let from = self.judged.saturating_sub(self.first) as usize;
        for segment in self.segments.range_mut(from.min(self.segments.len())..) {
            if segment.start >= below {
                break;
            }
            if !segment.sacked && !segment.lost {
                segment.lost = true;
                found += 1;
                self.unrepaired += u64::from(!segment.repaired);
            }
            self.judged = self.judged.max(self.first) + 1;
        }
        self.lost += found;
        found
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
        1
    }

    /// The timer ran out: everything that was not SACKed is to be sent again. Returns how many were
    /// not known to be lost.
    pub fn lose_all(&mut self) -> u64 {
        if self.segments.front().is_some_and(|segment| segment.sacked) {
            // The receiver has dropped what it reported (RFC 2018 §8).
            self.sacked_ranges.clear();
            self.sacked = 0;
            for segment in &mut self.segments {
                segment.sacked = false;
            }
        }
        let before = self.unrepaired;
        for segment in &mut self.segments {
            segment.lost = !segment.sacked;
            segment.repaired = false;
        }
        self.lost = self.outstanding() - self.sacked;
        self.repaired = 0;
        self.unrepaired = self.lost;
        self.next_repair = self.first;
        self.judged = self.first + self.outstanding();
        self.next_suspect = self.judged;
        self.lost - before
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

    /// The segment that starts at `start` leaves once more. On suspicion, without being lost, it is in
    /// the network twice (`SetPipe` of RFC 6675 §4).
    pub fn resend(&mut self, now: Time, start: u64) {
        let index = self.segments.partition_point(|segment| segment.start < start);
        let segment = &mut self.segments[index];
        segment.left_at = now;
        segment.retransmitted = true;
        if !segment.repaired {
            segment.repaired = true;
            self.repaired += 1;
            self.unrepaired -= u64::from(segment.lost);
        }
    }
}

#[cfg(test)]
#[path = "scoreboard/tests.rs"]
mod tests;
