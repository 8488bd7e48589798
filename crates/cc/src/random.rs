//! Random numbers for algorithms that ask for them, from `Init::seed`.

/// SplitMix64 (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Evenly from all numbers below `limit`, which is small.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_about_as_often() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 7];
        for _ in 0..7_000 {
            counts[random.below(7) as usize] += 1;
        }
        // A thousand of each, give or take 29 (the root of 7000 * 1/7 * 6/7); five of these are rare.
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 150), "{counts:?}");
    }
}
