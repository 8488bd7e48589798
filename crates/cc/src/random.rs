//! Random numbers for randomized algorithms. This crate depends on none with a generator, and needs
//! only a few numbers per flow: SplitMix64 (Steele, Lea, Flood 2014), seeded by `Init::seed`.

/// A repeatable source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number below `limit`, which is small.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// 32 random bits (`get_random_u32`).
    pub fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// 8 random bits.
    pub fn byte(&mut self) -> u8 {
        (self.bits() >> 56) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_matches_published_splitmix64_numbers() {
        // The first numbers of seed 1234567, on which implementations of SplitMix64 agree.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }
    #[test]
    fn random_numbers_are_uniformly_distributed() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 7];
        for _ in 0..7_000 {
            counts[random.below(7) as usize] += 1;
        }
        // A thousand of each, with a standard deviation of 29 (the root of 7000 * 1/7 * 6/7); five
        // of these are rare.
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 150), "{counts:?}");
    }
}
