//! The kernel of a plan.

use crate::kernel::{Cache, DEFAULT, Error, Kernel};
use crate::translate::{self, Abilities};
use tcplab_model::{Mistake, Plan, Problem};

/// The congestion controls of the default configuration, for plans made before it is built.
const USUAL: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// The available kernels, and one that overrides the experiments' choice, if any.
#[derive(Clone, Debug)]
pub struct Kernels {
    known: Vec<Kernel>,
    instead: Option<String>,
}

impl Kernels {
    /// The kernels in the user's cache.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn open(instead: Option<&str>) -> Result<Self, Error> {
        Ok(Self { known: Cache::open()?.list()?, instead: instead.map(String::from) })
    }

    /// The name of a plan's kernel.
    pub fn name_for<'a>(&'a self, plan: &'a Plan) -> &'a str {
        self.instead.as_deref().or(plan.kernel.as_deref()).unwrap_or(DEFAULT)
    }

    /// The kernel of a plan, if it has been built.
    pub fn kernel_for(&self, plan: &Plan) -> Option<&Kernel> {
        let name = self.name_for(plan);
        self.known.iter().find(|kernel| kernel.name == name)
    }

    /// The version of a plan's results: the kernel's, and that of this crate.
    pub fn version(&self, plan: &Plan) -> String {
        let kernel = self.kernel_for(plan);
        let kernel = kernel.map(|kernel| format!("{} {}", kernel.release, kernel.key));
        format!("{} {}", kernel.as_deref().unwrap_or("not built"), env!("CARGO_PKG_VERSION"))
    }

    /// The features of a plan that Linux, or the plan's kernel, cannot run, each with its place.
    pub fn unsupported(&self, plan: &Plan) -> Vec<Mistake> {
        let usual: Vec<String>;
        let abilities = match self.kernel_for(plan) {
            Some(kernel) => Abilities::new(&kernel.release, &kernel.congestion_controls),
            // The default kernel will be built when needed.
            None if self.name_for(plan) == DEFAULT => {
                usual = USUAL.map(String::from).into();
                Abilities::new(DEFAULT, &usual)
            }
            None => return vec![self.unknown(self.name_for(plan)).at("kernel")],
        };
        translate::job(plan, abilities).err().unwrap_or_default()
    }

    fn unknown(&self, name: &str) -> Problem {
        let names = self.known.iter().map(|kernel| kernel.name.as_str());
        if self.known.is_empty() {
            let reason = format!(
                "there is no kernel \"{name}\" yet; `tcplab kernel build` builds \"{DEFAULT}\" and others"
            );
            return Problem::Invalid(reason);
        }
        Problem::unknown("kernel of `tcplab kernel list`", name, names)
    }
}
