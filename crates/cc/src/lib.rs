//! Congestion control: how much a flow may have in flight.
//!
//! | file | what it is |
//! |---|---|
//! | `seam` | what a sender tells a controller, and what it answers |
//! | `table` | what is said of an algorithm: its kind, presets, parameters, its page |
//! | `window` | the arithmetic that ack-clocked algorithms share |
//! | `hystart` | when slow start should end, for any algorithm to hold |
//! | `kernel` | the kernel's units |
//! | `windowed`, `random` | the greatest of late; random numbers |
//! | `params` | how an algorithm's parameters are read and refused |
//! | `newreno`, `cubic`, ... | one algorithm each |
//! | `testing` | a path of constant delay, to drive a controller by hand |
//!
//! A new algorithm is one file and two lines here: its `pub mod` and its place in [`ALGORITHMS`].
//! `tests/battery.rs` then covers it.

mod kernel;
mod params;
mod random;
mod seam;
mod table;
mod windowed;

pub mod bbr;
pub mod bbr3;
pub mod cubic;
pub mod hystart;
pub mod newreno;
pub mod testing;
pub mod window;

pub use params::{BuildError, Params, above_zero, defaults, share};
pub use seam::{
    Ack, Cause, Congestion, CongestionControl, Control, CutBase, Flavour, FlowState, Init, Lost,
    Phase, RateSample, Round, Timestamps,
};
pub use table::{Algorithm, Build, Kind, Marks, Parameter, Preset};
pub use window::Window;

/// Every algorithm there is, by name. Listings, documentation and the test battery follow it.
pub const ALGORITHMS: &[Algorithm] =
    &[bbr::ALGORITHM, bbr3::ALGORITHM, cubic::ALGORITHM, newreno::ALGORITHM];

/// Starts the algorithm called `name` for one flow: `cubic`, or with a preset, `cubic/2008`.
///
/// # Errors
///
/// No algorithm or preset has that name, or it refuses the parameters.
pub fn build(
    name: &str,
    init: &Init,
    params: &Params,
) -> Result<Box<dyn CongestionControl>, BuildError> {
    let (algorithm, params) = resolve(name, params)?;
    (algorithm.build)(init, &params)
}

/// The algorithm called `name`, and its parameters: those of the preset that the name may end in, with
/// what is given in their place.
///
/// # Errors
///
/// No algorithm or preset has that name, or the parameters are not a table.
pub fn resolve(name: &str, given: &Params) -> Result<(&'static Algorithm, Params), BuildError> {
    let (name, preset) = match name.split_once('/') {
        Some((name, preset)) => (name, Some(preset)),
        None => (name, None),
    };
    let known = || ALGORITHMS.iter().map(|algorithm| algorithm.name);
    let algorithm =
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name).ok_or_else(|| {
            BuildError::UnknownAlgorithm { name: name.into(), known: known().collect() }
        })?;
    let base = preset.map(|preset| algorithm.preset(preset)).transpose()?.unwrap_or_default();
    Ok((algorithm, base.with(given)?))
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

    #[test]
    fn a_preset_gives_parameters_and_what_is_written_counts_more() {
        let given = Params(serde_json::json!({ "c": 1.0, "beta": 0.5 }));
        let (_, params) = resolve("cubic/2008", &given).unwrap();
        assert_eq!(params.0["beta"], 0.5);
        assert_eq!(params.0["c"], 1.0);
        assert_eq!(params.0["fast_convergence"], true);
    }

    #[test]
    fn an_unknown_preset_is_answered_with_those_there_are() {
        let error = build("cubic/2009", &INIT, &Params::default()).unwrap_err();
        assert_eq!(error.to_string(), "cubic has no preset `2009`; there is 2008");
        let error = build("newreno/2009", &INIT, &Params::default()).unwrap_err();
        assert_eq!(error.to_string(), "newreno has no presets");
    }
}
