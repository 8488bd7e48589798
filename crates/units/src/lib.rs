//! The quantities of an experiment: points in time, durations, rates and sizes.
//!
//! Every quantity is an integer, so that sums do not depend on their order and a run repeats to the
//! last bit. People write quantities as text with a unit: `"25 ms"`, `"10 Mbit/s"`, `"64 kB"`.
//! Parsing is exact, and printed values parse back to the same value.
//!
//! An exponent may follow the number (`"1e9 bit/s"`), and a rate has a short form, `"10M"`. A size
//! has none: `10M` is 10 MB to some tools and 10 MiB to others.

mod decimal;
mod quantities;
mod time;

pub use decimal::{UnitError, split};
pub use quantities::{Bytes, Rate};
pub use time::{Duration, Time};
