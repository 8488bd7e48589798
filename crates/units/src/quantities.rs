//! Rates in bits per second and sizes in bytes.

use crate::decimal::{Notation, written_as};
use crate::time::Duration;

/// A transmission or sending rate, in whole bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An amount of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const PICOBITS_PER_BYTE: u64 = 8_000_000_000_000;

const RATE: Notation = Notation {
    quantity: "rate",
    example: "10 Mbit/s",
    limit: "18 Ebit/s",
    step: "a bit per second",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
    also: &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)],
};

const BYTES: Notation = Notation {
    quantity: "size",
    example: "64 kB",
    limit: "18 EB",
    step: "a byte",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ],
    also: &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
};

written_as!(Rate, RATE);
written_as!(Bytes, BYTES);

impl Rate {
    /// This many bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that `bytes` take at this rate, to the nearest picosecond.
    ///
    /// At a rate of zero the time is infinite.
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // Packets of any real size fit 64 bits, where division is several times cheaper.
        if bytes <= u64::MAX / PICOBITS_PER_BYTE / 2 {
            return Duration::from_picos((bytes * PICOBITS_PER_BYTE + self.0 / 2) / self.0);
        }
        let picos =
            (bytes as u128 * PICOBITS_PER_BYTE as u128 + self.0 as u128 / 2) / self.0 as u128;
        Duration::from_picos(if picos > u64::MAX as u128 { u64::MAX } else { picos as u64 })
    }

    /// The bytes transmitted in `time`: the bandwidth-delay product if that is a round trip.
    /// Saturates at the largest size.
    pub const fn bytes_in(self, time: Duration) -> Bytes {
        let bits = self.0 as u128 * time.as_picos() as u128 / 1_000_000_000_000;
        let bytes = bits / 8;
        Bytes(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitError;
    use proptest::prelude::*;

    #[test]
    fn a_packet_takes_its_bits_over_the_rate() {
        let rate: Rate = "10 Mbit/s".parse().unwrap();
        assert_eq!(rate.time_for(1500), Duration::from_micros(1200));
        assert_eq!(rate.bytes_in(Duration::from_millis(40)), Bytes(50_000));
    }

    #[test]
    fn long_transfers_do_not_overflow() {
        let rate: Rate = "8 bit/s".parse().unwrap();
        assert_eq!(rate.time_for(u64::MAX), Duration::MAX);
        assert_eq!(rate.time_for(10_000_000), Duration::from_secs(10_000_000));
    }

    #[test]
    fn sizes_are_decimal_unless_they_say_binary() {
        assert_eq!("64 kB".parse(), Ok(Bytes(64_000)));
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!(
            "10 mb/s".parse::<Rate>().unwrap_err().to_string(),
            "`mb/s` is not a unit of rate; the units are bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, k, M, G, T"
        );
    }

    #[test]
    fn rates_may_omit_the_period_and_sizes_need_a_unit() {
        for (short, long) in [("100M", "100 Mbit/s"), ("1.5 G", "1.5 Gbit/s"), ("64k", "64 kbit/s")]
        {
            assert_eq!(short.parse::<Rate>(), long.parse());
        }
        // 10,000,000 bytes to `dd`, 10,485,760 to iperf3.
        assert_eq!(
            "10M".parse::<Bytes>().unwrap_err().to_string(),
            "`M` is not a unit of size; the units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
        );
        // Either millibit or lower-case Mbit; and Mbps means 8 Mbit/s to `tc`.
        assert!("10m".parse::<Rate>().is_err() && "10 Mbps".parse::<Rate>().is_err());
    }

    #[test]
    fn exponents_shift_the_point_exactly() {
        for (text, bits) in [
            ("1e9 bit/s", 1_000_000_000),
            ("2.5E3 kbit/s", 2_500_000),
            ("1e+1M", 10_000_000),
            ("0.00012e7 bit/s", 1_200),
            ("125e-2 kbit/s", 1_250),
            ("1000000000000000000000000e-18 Mbit/s", 1_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Rate::from_bits_per_second(bits)), "{text}");
        }
        let error = |text: &str| text.parse::<Rate>().unwrap_err();
        assert!(matches!(error("1e30 bit/s"), UnitError::TooLarge { .. }));
        assert!(matches!(error("1e99999999999999999999 bit/s"), UnitError::TooLarge { .. }));
        assert!(matches!(error("1e-99999999999999999999 bit/s"), UnitError::TooFine { .. }));
        assert!(matches!(error("1e bit/s"), UnitError::UnknownUnit { .. }));
        assert!(matches!(error("e9 bit/s"), UnitError::NoNumber { .. }));
    }

    proptest! {
        #[test]
        fn printed_values_are_read_back(value: u64) {
            let (rate, bytes) = (Rate::from_bits_per_second(value), Bytes(value));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
