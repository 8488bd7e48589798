//! The end of CDG's slow start: the kernel's second `HyStart`.
//!
//! Slow start ends when a train of ACKs that follow each other within 3 ms is as long as half the
//! minimum RTT, or when the minimum RTT of a round is an eighth above the overall minimum.

const TRAIN: u64 = 1;
const DELAY: u64 = 2;

/// A train of ACKs of one round that follow each other closely, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Train {
    /// The minimum RTT of the connection; 0 for none.
    delay_min: i32,
    begun: u64,
    /// 0 for none.
    last_ack: u64,
    samples: u32,
}

impl Train {
    pub fn begin_round(&mut self) {
        self.last_ack = 0;
        self.samples = 0;
    }

    /// Whether slow start ends, given the minimum RTT of this round (`tcp_cdg_hystart_update`).
    pub fn is_over(&mut self, now: u64, round_min: i32, limited: bool, detect: u64) -> bool {
        self.delay_min = least(self.delay_min, round_min);
        let delay_min = self.delay_min;
        if delay_min == 0 {
            return false;
        }
        if detect & TRAIN > 0 {
            if self.last_ack == 0 || !limited {
                (self.last_ack, self.begun) = (now, now);
            } else if now < self.last_ack + 3000 {
                self.last_ack = now;
                if now > self.begun + (delay_min as u64 / 2).max(125) {
                    return true;
                }
            }
        }
        if detect & DELAY > 0 {
            if self.samples < 8 {
                self.samples += 1;
            } else {
                return round_min > delay_min.saturating_add(delay_min / 8).max(125);
            }
        }
        false
    }
}

/// The smaller of two values, of which zero means none.
pub(super) fn least(one: i32, other: i32) -> i32 {
    if one == 0 || (other != 0 && other < one) { other } else { one }
}
