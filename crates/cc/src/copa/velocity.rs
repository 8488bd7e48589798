//! The velocity of Copa's window, which rises the longer the window moves in one direction (§2.1 of
//! the paper).

use std::cmp::Ordering;

/// Round trips in one direction before the velocity doubles.
const PATIENCE: u32 = 3;
/// A limit far beyond useful values.
const MOST: u64 = 1 << 30;

/// The velocity of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Velocity {
    value: u64,
    /// The window when the round trip began.
    from: u64,
    direction: Ordering,
    /// Round trips in that direction.
    rounds: u32,
}

impl Velocity {
    /// The initial velocity of one, with a window of `cwnd`.
    pub fn new(cwnd: u64) -> Self {
        Self { value: 1, from: cwnd, direction: Ordering::Equal, rounds: 0 }
    }

    /// Segments by which the window moves in a round trip, times delta.
    pub fn get(&self) -> f64 {
        self.value as f64
    }

    /// Sets the direction of the window. A change of direction resets the velocity. The paper waits
    /// for the end of the round trip, and lets a window that grew fast fall as fast.
    pub fn head(&mut self, direction: Ordering) {
        if direction != self.direction && self.value > 1 {
            (self.direction, self.rounds, self.value) = (direction, 0, 1);
        }
    }

    /// A round trip has ended with a window of `cwnd`.
    pub fn on_round(&mut self, cwnd: u64) {
        let direction = cwnd.cmp(&self.from);
        self.from = cwnd;
        if direction == self.direction && direction.is_ne() {
            self.rounds = self.rounds.saturating_add(1);
            if self.rounds >= PATIENCE {
                self.value = (self.value * 2).min(MOST);
            }
        } else {
            (self.direction, self.rounds, self.value) = (direction, 1, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocity_doubles_from_the_third_round_and_resets_on_reversal() {
        let mut velocity = Velocity::new(10);
        let mut after = |cwnd| {
            velocity.on_round(cwnd);
            velocity.value
        };
        assert_eq!([12, 14, 16, 20, 28, 26].map(&mut after), [1, 1, 2, 4, 8, 1]);
        assert_eq!([24, 22, 22].map(&mut after), [1, 2, 1]);
    }

    #[test]
    fn velocity_resets_when_an_ack_reverses_the_direction() {
        let mut velocity = Velocity::new(10);
        for cwnd in [12, 14, 16] {
            velocity.on_round(cwnd);
        }
        velocity.head(Ordering::Greater);
        assert_eq!(velocity.value, 2);
        velocity.head(Ordering::Less);
        assert_eq!(velocity.value, 1);
    }
}
