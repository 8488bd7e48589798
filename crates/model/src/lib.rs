//! The model of an experiment: its schema, and the translation from what a user wrote to what a
//! backend runs.
//!
//! The schema is defined once, in Rust. TOML files, Python objects and the command line are
//! notations of it.
//!
//! | step | file |
//! |---|---|
//! | text to a tree of values, with lines | [`document`](from_toml), `toml_tree` |
//! | all variants, swept and named | `sweep` |
//! | settings that change during a run | `change` |
//! | values in the place of parameters | `parameters` |
//! | tree to typed settings, with all mistakes | `read` (readers), `schema` (settings) |
//! | files of networks to links | `files`, `graph` |
//! | shapes to links, paths, sizes, stacks | `shapes`, `fat_tree`, `routes`, `profile`, `resolve` |
//! | random parts of a network | [`spread`] |
//! | the result, and its id | [`Plan`], `id` |
//! | a stored result, read back | `stored` |
//! | features that not every backend runs | [`support`] |
//! | mistakes and their places; the line of a place | [`Mistake`], `suggest`, `origin`; `document` (`located`), `toml_tree` |
//!
//! ```
//! let document = tcplab_model::from_toml(r#"
//!     duration = "60 s"
//!
//!     [network.dumbbell]
//!     rate = "10 Mbit/s"
//!     delay = "20 ms"
//!
//!     [[flows]]
//!     from = "left1"
//!     to = "right1"
//! "#)?;
//! let backend = tcplab_model::Backend {
//!     name: "sim",
//!     profile: tcplab_model::Profile::Rfc,
//!     version: &|_| "1".into(),
//!     unsupported: &|_| Vec::new(),
//! };
//! let plans = document.plans(&backend)?;
//! assert_eq!(plans[0].flows[0].base_rtt.to_string(), "44 ms");
//! # Ok::<(), tcplab_model::Mistakes>(())
//! ```

mod backend;
mod change;
mod document;
mod fat_tree;
mod files;
mod graph;
mod id;
pub mod memory;
mod mistake;
mod origin;
mod parameters;
mod plan;
mod printable;
mod profile;
mod read;
mod resolve;
mod routes;
pub mod schema;
mod shapes;
pub mod spread;
mod stored;
mod suggest;
pub mod support;
mod sweep;
mod toml_tree;

pub use backend::{Backend, Stopped, Watch};
pub use change::{CcChange, ChangePlan, LaneChange};
pub use document::{Document, from_json, from_toml, value};
pub use mistake::{Mistake, Mistakes, Problem};
pub use plan::{
    FlowPlan, HostPlan, LanePlan, MeasurePlan, Plan, QueueLimit, QueuePlan, RecordPlan, TcpPlan,
    Transport,
};
pub use printable::printable;
pub use profile::Setting;
pub use schema::{
    AckCounting, CongestionControl, CutBase, Discipline, Ecn, Experiment, Flavour, Keepalive, Loss,
    Memory, MtuProbing, OrOff, PathMtu, Probability, Profile, RateChanges, Recovery, Reduction,
    Reordering, Repeat, Samples, StackPlan, Target, TrafficPlan, Until, schema, schema_of_values,
};
pub use suggest::suggest;
