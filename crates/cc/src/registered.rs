//! Algorithms from outside of this crate, registered in a process by name and then used like those
//! of the table.

use crate::{Algorithm, BuildError, CongestionControl, Init, Params};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, PoisonError, RwLock};

/// Starts an algorithm that is not in the table.
pub trait Factory: Send + Sync {
    /// Starts the algorithm for one flow.
    ///
    /// # Errors
    ///
    /// The algorithm rejects the parameters.
    fn build(&self, init: &Init, params: &Params)
    -> Result<Box<dyn CongestionControl>, BuildError>;

    /// The version: results of equal versions are equal.
    fn version(&self) -> &str;
}

/// The origin of an algorithm.
#[derive(Clone)]
pub enum Origin {
    /// The table.
    Table(&'static Algorithm),
    /// The factory that was registered.
    Registered(Arc<dyn Factory>),
}

impl Origin {
    /// Starts the algorithm for one flow.
    ///
    /// # Errors
    ///
    /// The algorithm rejects the parameters.
    pub fn build(
        &self,
        init: &Init,
        params: &Params,
    ) -> Result<Box<dyn CongestionControl>, BuildError> {
        match self {
            Self::Table(algorithm) => (algorithm.build)(init, params),
            Self::Registered(factory) => factory.build(init, params),
        }
    }

    /// Whether the algorithm is known to have a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        match self {
            Self::Table(algorithm) => (algorithm.defaults)().get(name).is_some(),
            Self::Registered(_) => false,
        }
    }

    /// The version of a registered algorithm; those of the table have the program's.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Table(_) => None,
            Self::Registered(factory) => Some(factory.version()),
        }
    }
}

impl Debug for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(algorithm) => f.write_str(algorithm.name),
            Self::Registered(factory) => f.write_str(factory.version()),
        }
    }
}

static REGISTERED: RwLock<BTreeMap<String, Arc<dyn Factory>>> = RwLock::new(BTreeMap::new());

/// Registers an algorithm by `name`, replacing an earlier one of that name.
///
/// # Errors
///
/// The name is one of the table's, or one that an experiment could not write.
pub fn register(name: &str, factory: Arc<dyn Factory>) -> Result<(), BuildError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+.".contains(letter);
    let problem = if name.is_empty() || !name.chars().all(is_plain) {
        "is not a name: letters, digits, `_`, `-`, `+` and `.` make one"
    } else if crate::ALGORITHMS.iter().any(|algorithm| algorithm.name == name) {
        "is one of tcplab's own; choose another name"
    } else {
        let mut known = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.into(), factory);
        return Ok(());
    };
    Err(BuildError::WrongValue { name: format!("`{name}`"), problem: problem.into() })
}

/// The algorithm registered by this name.
pub(crate) fn registered(name: &str) -> Option<Arc<dyn Factory>> {
    let known = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    known.get(name).cloned()
}

/// The names of registered algorithms.
pub fn registered_names() -> Vec<String> {
    let known = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    known.keys().cloned().collect()
}

/// No parameters.
pub(crate) fn nothing() -> Params {
    Params(Value::Object(serde_json::Map::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::INIT;
    use crate::{build, newreno};

    struct Toy(&'static str);

    impl Factory for Toy {
        fn build(
            &self,
            init: &Init,
            params: &Params,
        ) -> Result<Box<dyn CongestionControl>, BuildError> {
            (newreno::ALGORITHM.build)(init, params)
        }

        fn version(&self) -> &str {
            self.0
        }
    }

    #[test]
    fn last_registration_of_a_name_is_built() {
        register("toy-built", Arc::new(Toy("one"))).unwrap();
        register("toy-built", Arc::new(Toy("two"))).unwrap();
        assert!(build("toy-built", &INIT, &Params::default()).is_ok());
        let (origin, _) = crate::resolve("toy-built", &Params::default()).unwrap();
        assert_eq!(origin.version(), Some("two"));
        assert!(registered_names().contains(&"toy-built".to_owned()));
    }

    #[test]
    fn built_in_and_malformed_names_cannot_be_registered() {
        for (name, said) in [("cubic", "one of tcplab's own"), ("a/b", "not a name"), ("", "not a")]
        {
            let error = register(name, Arc::new(Toy("one"))).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn registered_algorithm_has_no_presets() {
        register("toy-plain", Arc::new(Toy("one"))).unwrap();
        let error = build("toy-plain/2008", &INIT, &Params::default()).unwrap_err();
        assert_eq!(error.to_string(), "toy-plain has no presets");
    }
}
