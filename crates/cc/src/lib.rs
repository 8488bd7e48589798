//! Congestion control: how much a flow may have in flight.
//!
//! | file | job |
//! |---|---|
//! | `interface` | the interface between sender and controller |
//! | `table` | the description of an algorithm: kind, presets, parameters, page |
//! | `window` | window arithmetic that ack-clocked algorithms share |
//! | `slow_start` | slow-start variants, for any algorithm to hold |
//! | `kernel` | the kernel's units |
//! | `registered` | algorithms registered by name in a process |
//! | `params` | reading and checking of an algorithm's parameters |
//! | `max_filter`, `random` | the recent maximum; random numbers |
//! | `delays` | RTTs as in the kernel's Vegas and related algorithms |
//! | `newreno`, `cubic`, ... | one algorithm each |
//! | `testing` | a path of constant delay, to drive a controller by hand |
//!
//! A new algorithm is one file and two lines here: its `pub mod` and its place in [`ALGORITHMS`].
//! `tests/battery.rs` then covers it.

mod delays;
mod interface;
mod kernel;
mod max_filter;
mod params;
mod random;
mod registered;
mod table;

pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod cdg;
pub mod compound;
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod ledbat;
pub mod lp;
pub mod newreno;
pub mod nv;
pub mod prague;
pub mod scalable;
pub mod slow_start;
pub mod testing;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod westwood_plus;
pub mod window;
pub mod yeah;

pub use interface::{
    Ack, Cause, Congestion, CongestionControl, Control, Copied, CutBase, Flavour, FlowState, Init,
    Left, Lost, Phase, RateSample, Round, Timestamps,
};
pub use params::{
    BuildError, Params, above_zero, defaults, share, share_of_1024, whole, whole_above_zero,
};
pub use registered::{Factory, Origin, register, registered_names};
pub use table::{Algorithm, Build, Kind, Marks, Parameter, Preset, Probe};
pub use window::Window;

/// All algorithms by name. Listings, documentation and the test battery follow it.
pub const ALGORITHMS: &[Algorithm] = &[
    bbr::ALGORITHM,
    bbr3::ALGORITHM,
    bic::ALGORITHM,
    cdg::ALGORITHM,
    compound::ALGORITHM,
    copa::ALGORITHM,
    cubic::ALGORITHM,
    dctcp::ALGORITHM,
    highspeed::ALGORITHM,
    htcp::ALGORITHM,
    hybla::ALGORITHM,
    illinois::ALGORITHM,
    ledbat::ALGORITHM,
    lp::ALGORITHM,
    newreno::ALGORITHM,
    nv::ALGORITHM,
    prague::ALGORITHM,
    scalable::ALGORITHM,
    vegas::ALGORITHM,
    veno::ALGORITHM,
    westwood::ALGORITHM,
    westwood_plus::ALGORITHM,
    yeah::ALGORITHM,
];

/// Starts the algorithm called `name` for one flow: `cubic`, or with a preset, `cubic/2008`.
///
/// # Errors
///
/// No algorithm or preset has that name, or the algorithm rejects the parameters.
pub fn build(
    name: &str,
    init: &Init,
    params: &Params,
) -> Result<Box<dyn CongestionControl>, BuildError> {
    let (origin, params) = resolve(name, params)?;
    origin.build(init, &params)
}

/// The algorithm called `name` and its parameters: those of the preset with which the name may end,
/// overridden by the given ones.
///
/// # Errors
///
/// No algorithm or preset has that name, or the parameters are not a table.
pub fn resolve(name: &str, given: &Params) -> Result<(Origin, Params), BuildError> {
    let (name, preset) = match name.split_once('/') {
        Some((name, preset)) => (name, Some(preset)),
        None => (name, None),
    };
    if let Some(factory) = registered::registered(name) {
        return match preset {
            None => Ok((Origin::Registered(factory), registered::nothing().with(given)?)),
            Some(preset) => Err(BuildError::UnknownPreset {
                algorithm: name.into(),
                name: preset.into(),
                known: Vec::new(),
            }),
        };
    }
    let found = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
    let algorithm = found.ok_or_else(|| BuildError::UnknownAlgorithm {
        name: name.into(),
        known: names().collect(),
    })?;
    let base = preset.map(|preset| algorithm.preset(preset)).transpose()?.unwrap_or_default();
    Ok((Origin::Table(algorithm), base.with(given)?))
}

/// The names of all algorithms, including registered ones.
pub fn names() -> impl Iterator<Item = String> {
    let table = ALGORITHMS.iter().map(|algorithm| algorithm.name.to_owned());
    table.chain(registered_names())
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
        max_pacing: None,
    };

    #[test]
    fn names_are_unique_and_sorted() {
        assert!(ALGORITHMS.is_sorted_by(|one, next| one.name < next.name));
    }

    #[test]
    fn unknown_algorithm_error_lists_all_algorithms() {
        let error = build("qubic", &INIT, &Params::default()).unwrap_err().to_string();
        assert!(
            error.starts_with("no congestion control is called `qubic`; there are "),
            "{error}"
        );
        for algorithm in ALGORITHMS {
            assert!(error.contains(algorithm.name), "{error}");
        }
    }

    #[test]
    fn given_parameters_override_those_of_the_preset() {
        let given = Params(serde_json::json!({ "c": 1.0, "beta": 0.5 }));
        let (_, params) = resolve("cubic/2008", &given).unwrap();
        assert_eq!(params.0["beta"], 0.5);
        assert_eq!(params.0["c"], 1.0);
        assert_eq!(params.0["fast_convergence"], true);
    }

    #[test]
    fn unknown_preset_error_lists_the_presets() {
        let error = build("cubic/2009", &INIT, &Params::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cubic has no preset `2009`; there are 2008, freebsd-9.2, linux-2.6.20, linux-2.6.26"
        );
        let error = build("newreno/2009", &INIT, &Params::default()).unwrap_err();
        assert_eq!(error.to_string(), "newreno has no presets");
    }
}
