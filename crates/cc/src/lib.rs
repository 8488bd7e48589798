//! Congestion control: how much a flow may have in flight.
//!
//! | file | what it is |
//! |---|---|
//! | `seam` | what a sender tells a controller, and what it answers |
//! | `window` | the arithmetic that ack-clocked algorithms share |
//! | `hystart` | when slow start should end, for any algorithm to hold |
//! | `params` | how an algorithm's parameters are read and refused |
//! | `newreno`, `cubic` | one algorithm each |
//! | `testing` | a path of constant delay, to drive a controller by hand |
//!
//! A new algorithm is one file and two lines here: its `pub mod` and its place in [`ALGORITHMS`].
//! `tests/battery.rs` then covers it.

use serde_json::Value;

mod params;
mod seam;

pub mod cubic;
pub mod hystart;
pub mod newreno;
pub mod testing;
pub mod window;

pub use params::{BuildError, Params, above_zero, defaults, share};
pub use seam::{
    Ack, Cause, Congestion, CongestionControl, Control, CutBase, Flavour, FlowState, Init, Lost,
    RateSample, Round,
};
pub use window::Window;

/// Every algorithm there is, by name. Listings, documentation and the test battery follow it.
pub const ALGORITHMS: &[Algorithm] = &[cubic::ALGORITHM, newreno::ALGORITHM];

/// One algorithm, as the table describes it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// What experiments call it.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it is defined.
    pub reference: &'static str,
    /// When it was first published.
    pub year: u16,
    /// Its parameters and their defaults.
    pub defaults: fn() -> Value,
    /// Starts it for one flow.
    pub build: Build,
}

/// Starts an algorithm for one flow.
pub type Build = fn(&Init, &Params) -> Result<Box<dyn CongestionControl>, BuildError>;

/// Starts the algorithm called `name` for one flow.
///
/// # Errors
///
/// No algorithm has that name, or it refuses the parameters.
pub fn build(
    name: &str,
    init: &Init,
    params: &Params,
) -> Result<Box<dyn CongestionControl>, BuildError> {
    let known = || ALGORITHMS.iter().map(|algorithm| algorithm.name);
    let algorithm =
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name).ok_or_else(|| {
            BuildError::UnknownAlgorithm { name: name.into(), known: known().collect() }
        })?;
    (algorithm.build)(init, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: Init = Init {
        mss: 1460,
        initial_window: 10,
        cut_base: CutBase::FlightSize,
        flavour: Flavour::Rfc,
        seed: 0,
    };

    #[test]
    fn names_are_unique_and_sorted() {
        assert!(ALGORITHMS.is_sorted_by(|one, next| one.name < next.name));
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_there_are() {
        let error = build("qubic", &INIT, &Params::default()).unwrap_err();
        let known: Vec<_> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        assert_eq!(
            error.to_string(),
            format!("no congestion control is called `qubic`; there are {}", known.join(", "))
        );
    }
}
