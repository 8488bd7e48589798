//! A random generator for each element that needs one, seeded from the run's seed and the element's
//! name. Adding an element never changes the draws of the others.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tcplab_units::Duration;

/// A repeatable source of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The generator of the element called `name` in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        Self(Pcg64Mcg::from_seed(Self::seed_of(seed, name)))
    }

    /// The generator's initial state, for the kernel's side of a lane, which draws the same
    /// numbers.
    pub fn seed_of(seed: u64, name: &str) -> [u8; 16] {
        // FNV-1a separates names; the generator's own seeding mixes the bits.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&mix(seed).to_le_bytes());
        bytes[8..].copy_from_slice(&mix(seed ^ mix(name)).to_le_bytes());
        bytes
    }

    /// The initial sequence number of one end of a flow and the seed of its congestion control, on
    /// either backend. `sends`: the end sends the data.
    pub fn of_end(seed: u64, sends: bool, flow: &str) -> (u32, u64) {
        let mut random =
            Self::new(seed, &format!("{} {flow}", if sends { "sender" } else { "receiver" }));
        (random.bits() as u32, random.bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A random whole number from 0 up to and including `most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        // Multiply and shift: a bias of at most most/2^64, far below anything a run can show.
        ((u128::from(self.bits()) * (u128::from(most) + 1)) >> 64) as u64
    }

    /// An exponentially distributed time: -mean ln(u). Fixed point with 40 fractional bits, because
    /// the kernel's side of a lane has no floating point.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        /// ln(2) 2^40.
        const LN_2: u128 = 762_123_384_786;
        let value = self.bits() | 1;
        let zeros = value.leading_zeros();
        let mut value = value << zeros;
        // log2 of the value over 2^63, with 40 fractional bits: bit by bit, by squaring.
        let mut log = 0_u64;
        for bit in (0..40).rev() {
            let product = u128::from(value) * u128::from(value);
            if product >> 127 == 1 {
                value = (product >> 64) as u64;
                log |= 1 << bit;
            } else {
                value = (product >> 63) as u64;
            }
        }
        // -log2(u) = 1 + zeros - log, with u below 1 in 64 bits.
        let minus_log_2 = (u64::from(1 + zeros) << 40) - log;
        let means = (u128::from(minus_log_2) * LN_2) >> 40;
        Duration::from_picos(((means * u128::from(mean.as_picos())) >> 40) as u64)
    }

    /// A random number strictly between 0 and 1: the middle of one of 2^52 equal steps.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_seed_and_name_only() {
        let draw = |seed, name| Random::new(seed, name).bits();
        assert_eq!(draw(1, "loss a>b"), draw(1, "loss a>b"));
        assert_ne!(draw(1, "loss a>b"), draw(2, "loss a>b"));
        assert_ne!(draw(1, "loss a>b"), draw(1, "loss b>a"));
    }

    #[test]
    fn up_to_includes_both_ends() {
        let mut random = Random::new(1, "test");
        let drawn: Vec<u64> = (0..200).map(|_| random.up_to(3)).collect();
        assert!((0..=3).all(|value| drawn.contains(&value)));
        assert!(drawn.iter().all(|&value| value <= 3));
        assert_eq!(random.up_to(0), 0);
    }

    #[test]
    fn exponential_times_are_exponential() {
        let mut random = Random::new(1, "test");
        let mean = Duration::from_millis(10);
        let mut drawn: Vec<f64> =
            (0..100_000).map(|_| random.exponential(mean).as_millis_f64() / 10.0).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        // Kolmogorov and Smirnov: the greatest distance from 1 - e^-x is below 1.95/sqrt(n) with a
        // probability of 0.999.
        let distance = drawn.iter().enumerate().map(|(place, x)| {
            let share = -libm::expm1(-x);
            (share - place as f64 / 1e5).abs().max((share - (place + 1) as f64 / 1e5).abs())
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / 1e5_f64.sqrt(), "{distance}");
    }

    #[test]
    fn units_are_spread_evenly() {
        let mut random = Random::new(1, "test");
        let drawn: Vec<f64> = (0..100_000).map(|_| random.unit()).collect();
        assert!(drawn.iter().all(|&value| 0.0 < value && value < 1.0));
        // Standard deviation of the mean: sqrt(1/12 / 1e5) = 0.00091. The bound is five of them.
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
    }
}
