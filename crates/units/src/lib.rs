//! The quantities of an experiment: points in time, durations, rates and sizes.
//!
//! Every quantity is an integer, so that sums do not depend on their order and a run repeats to the
//! last bit. People write them as text with a unit: `"25 ms"`, `"10 Mbit/s"`, `"64 kB"`. What is
//! written is read exactly, and what is printed reads back as the same value.
//!
//! An exponent may stand behind the number (`"1e9 bit/s"`), and a rate has a short form, `"10M"`. A
//! size has none: `10M` is 10 MB to some tools and 10 MiB to others.

mod decimal;
mod quantities;
mod time;

pub use decimal::{UnitError, split};
pub use quantities::{Bytes, Rate};
pub use time::{Duration, Time};
