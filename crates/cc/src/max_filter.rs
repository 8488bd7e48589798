//! The recent maximum, in constant space.
//!
//! Kathleen Nichols' filter, as in `lib/win_minmax.c` of Linux: the best value, the best after it,
//! and the best after that. These are kept apart in time, so that when the best one expires the
//! next is not about to. The result is nearly always the true maximum of the window.

/// A value and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    at: u64,
    value: u64,
}

/// The maximum over a window of time, in any unit that counts up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowedMax {
    best: [Seen; 3],
}

impl WindowedMax {
    /// The maximum; zero before the first value.
    pub fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds a value; those before the last `window` expire.
    pub fn update(&mut self, window: u64, at: u64, value: u64) {
        let new = Seen { at, value };
        let age = |seen: Seen| at.wrapping_sub(seen.at);
        if value >= self.best[0].value || age(self.best[2]) > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best = [self.best[0], new, new];
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        let oldest = age(self.best[0]);
        if oldest > window {
            self.shift(new);
            if age(self.best[0]) > window {
                self.shift(new);
            }
        } else if self.best[1].at == self.best[0].at && oldest > window / 4 {
            self.best = [self.best[0], new, new];
        } else if self.best[2].at == self.best[1].at && oldest > window / 2 {
            self.best[2] = new;
        }
    }

    /// The best value has expired: the next takes its place.
    fn shift(&mut self, new: Seen) {
        self.best = [self.best[1], self.best[2], new];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn maxima(values: &[u64]) -> Vec<u64> {
        let mut filter = WindowedMax::default();
        let update = |(at, &value): (usize, &u64)| {
            filter.update(10, at as u64, value);
            filter.get()
        };
        values.iter().enumerate().map(update).collect()
    }

    #[test]
    fn a_maximum_lasts_for_the_window() {
        let mut values = vec![5; 20];
        values[2] = 9;
        // Seen at 2: the maximum until 12, and expired at 13.
        let expected: Vec<u64> =
            (0..20).map(|at| if (2..=12).contains(&at) { 9 } else { 5 }).collect();
        assert_eq!(maxima(&values), expected);
    }

    #[test]
    fn second_best_becomes_maximum_when_the_first_expires() {
        let mut values = vec![1; 16];
        (values[0], values[4]) = (9, 7);
        let seen = maxima(&values);
        assert_eq!((seen[10], seen[11], seen[14], seen[15]), (9, 7, 7, 1));
    }

    proptest! {
        #[test]
        fn maximum_is_a_window_value_and_not_below_the_latest(
            values in prop::collection::vec(0..100_u64, 1..60),
        ) {
            for (at, seen) in maxima(&values).into_iter().enumerate() {
                let window = &values[at.saturating_sub(10)..=at];
                prop_assert!(window.contains(&seen), "{seen} at {at}");
                prop_assert!(seen >= values[at]);
            }
        }
    }
}
