//! The quantities of an experiment: points in time, durations, rates and sizes.
//!
//! Every quantity is an integer, so that sums do not depend on their order and a run repeats to the
//! last bit. People write them as text with a unit (`"25 ms"`, `"10 Mbit/s"`, `"64 kB"`); what is
//! written is read exactly, and what is printed reads back as the same value.

mod decimal;
mod quantities;
mod time;

pub use decimal::UnitError;
pub use quantities::{Bytes, Rate};
pub use time::{Duration, Time};
