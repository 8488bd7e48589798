//! Resegmentation: segments are cut into smaller ones, or joined.

use super::{Resent, Scoreboard, Sent};
use std::collections::VecDeque;
use tcplab_units::Time;

impl Scoreboard {
    /// Marks segments lost that are not SACKed and have more than `most` bytes of data below
    /// `written`, with all other segments of their packets, which end at `ends`. Returns how many
    /// were not marked before.
    pub fn mark_larger_lost(&mut self, written: u64, most: u16, ends: &[u64]) -> u64 {
        let before = self.lost_not_resent;
        let packet = |segment: &Sent| ends.partition_point(|&end| end <= segment.start);
        let is_larger = |segment: &Sent| {
            let payload = segment.end().min(written).saturating_sub(segment.start);
            !segment.sacked && payload > u64::from(most)
        };
        let larger: Vec<usize> =
            self.segments.iter().filter(|it| is_larger(it)).map(packet).collect();
        let is_of_larger = |segment: &Sent| {
            let place = packet(segment);
            place < ends.len() && !segment.sacked && larger.binary_search(&place).is_ok()
        };
        for segment in &mut self.segments {
            if is_larger(segment) || is_of_larger(segment) {
                (segment.lost, segment.is_resent) = (true, false);
            }
        }
        self.count_anew();
        self.lost_not_resent.saturating_sub(before)
    }

    /// Cuts data of the packet at `start` into segments of `size`, as far as it waits for
    /// retransmission. Other packets keep their segments until they leave, because the receiver may
    /// still SACK them. Without packets, all data that waits for retransmission is cut.
    pub fn cut_lost(&mut self, start: u64, size: u16, ends: &[u64]) {
        let packet = |place: u64| ends.partition_point(|&end| end <= place);
        let is_cut = |it: &Sent| it.lost && !it.is_resent && packet(it.start) == packet(start);
        self.resegment(|segment| is_cut(segment).then_some(size), ends);
    }

    /// The segment that starts at `start` and the one after it, unless that is SACKed.
    pub fn pair(&self, start: u64) -> Option<(Sent, Sent)> {
        let index = self.segments.partition_point(|segment| segment.start < start);
        let (first, second) = (self.segments.get(index)?, self.segments.get(index + 1)?);
        (first.start == start && !second.sacked).then_some((*first, *second))
    }

    /// Joins the segment that starts at `start` and the one after it.
    pub fn join(&mut self, start: u64) {
        let index = self.segments.partition_point(|segment| segment.start < start);
        let Some(second) = self.segments.remove(index + 1) else { return };
        let first = &mut self.segments[index];
        first.length += second.length;
        first.retransmitted |= second.retransmitted;
        if let Some(rates) = &mut self.rates {
            let places: Vec<_> =
                (0..=self.segments.len()).filter(|&place| place != index + 1).collect();
            rates.resegment(&places);
        }
        self.count_anew();
    }

    /// Marks segments lost for which `size` returns one, and cuts consecutive ones into segments of
    /// that size.
    fn resegment(&mut self, size: impl Fn(&Sent) -> Option<u16>, ends: &[u64]) {
        let mut segments: VecDeque<Sent> = VecDeque::with_capacity(self.segments.len());
        // For each new segment the old one in which it begins; and how many bytes the last one may
        // still take.
        let (mut places, mut room) = (Vec::new(), 0);
        for (place, mut segment) in self.segments.drain(..).enumerate() {
            let Some(size) = size(&segment) else {
                segments.push_back(segment);
                places.push(place);
                room = 0;
                continue;
            };
            (segment.lost, segment.is_resent) = (true, false);
            while segment.length > 0 {
                let end = ends.get(ends.partition_point(|&end| end <= segment.start));
                let left = end.map_or(u16::MAX, |end| (end - segment.start).min(65_535) as u16);
                let length = if room > 0 { room } else { size }.min(segment.length).min(left);
                if let Some(last) = segments.back_mut().filter(|_| room > 0) {
                    last.length += length;
                } else {
                    segments.push_back(Sent { length, ..segment });
                    places.push(place);
                }
                room = if room > 0 { room - length } else { size - length };
                if length == left {
                    room = 0;
                }
                segment.start += u64::from(length);
                segment.length -= length;
            }
        }
        self.segments = segments;
        if let Some(rates) = &mut self.rates {
            rates.resegment(&places);
        }
        self.count_anew();
    }

    /// Recomputes counters and cursors after segments were renumbered.
    fn count_anew(&mut self) {
        let count = |of: fn(&Sent) -> bool| self.segments.iter().filter(|it| of(it)).count() as u64;
        self.sacked = count(|it| it.sacked);
        self.lost = count(|it| it.lost);
        self.retrans_out = count(|it| it.is_resent);
        self.lost_not_resent = count(|it| it.lost && !it.is_resent);
        (self.checked_below, self.next_retransmission) = (self.first, self.first);
        (self.next_seg_rule3, self.rack_checked_below) = (self.first, self.first);
        let numbers = self.first..;
        let again = numbers.zip(&self.segments).filter(|(_, it)| it.retransmitted && !it.sacked);
        let before = |left_at: Time| {
            let is_earlier = |it: &Sent| !it.retransmitted && it.left_at <= left_at;
            self.segments.iter().rposition(is_earlier).map_or(0, |place| place as u64 + 1)
        };
        let mut resent: Vec<_> = again
            .map(|(number, &Sent { left_at, .. })| Resent {
                left_at,
                number,
                before: self.first + before(left_at),
            })
            .collect();
        resent.sort_unstable_by_key(|resent| (resent.left_at, resent.number));
        self.resent = resent.into();
    }
}
