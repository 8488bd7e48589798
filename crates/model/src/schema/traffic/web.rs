//! Web pages.

use super::{Setting, invalid};
use crate::mistake::Problem;
use crate::read::{table, words};
use crate::schema::{AT_LEAST_ONE, MILLION};
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Duration};

table! {
    /// Loads objects like a web browser: each session requests one object, which flows from `from`
    /// to `to`. Either `classes` or `sizes` is required.
    pub struct Web {
        /// The objects by class of size.
        pub classes: Vec<SessionClass> = Vec::new(),
        /// The objects one by one, like those of a page: `["12 kB", "3 kB", "80 kB"]`.
        pub sizes: Vec<Bytes> = Vec::new(),
        /// Whether all sessions run at once ("parallel") or one after another ("sequential").
        pub order: Sessions = Sessions::Parallel,
        /// The most connections open at once: 6.
        pub connections: u64 [AT_LEAST_ONE] = 6,
        /// Whether a connection serves several sessions, as in HTTP/1.1.
        pub persistent: bool = true,
        /// The size of a request: "400 B".
        pub request: Bytes = Bytes(400),
        /// The time from the arrival of a request to the first byte of the response: "20 ms".
        pub server_time: Duration = Duration::ZERO,
    }
}

table! {
    /// Sessions with objects of the same size.
    pub struct SessionClass {
        /// The name in tables, like "large".
        pub name: String,
        /// The number of sessions: 2.
        pub count: u64 [1..=MILLION],
        /// The size of each object: "120 kB".
        pub size: Bytes,
        /// The size of a request, if it differs from that of other classes: "1 kB".
        pub request: Option<Bytes> = None,
    }
}

words! {
    /// Whether sessions run at once or one after another.
    #[what("order of sessions")]
    pub enum Sessions {
        /// At once, as far as connections allow.
        "parallel" => Parallel,
        /// One after another.
        "sequential" => Sequential,
    }
}

/// Loads objects like a web browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebPlan {
    /// The objects, in this order.
    pub classes: Vec<ClassPlan>,
    /// The most sessions at once.
    pub at_once: u64,
    /// Whether a connection serves several sessions; otherwise each has its own.
    pub persistent: bool,
    /// The time from the arrival of a request to the first byte of the response.
    pub server_time: Duration,
}

/// Sessions with objects of the same size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassPlan {
    /// The name in tables.
    pub name: String,
    /// The number of sessions.
    pub count: u64,
    /// The size of each object.
    pub size: Bytes,
    /// The size of a request.
    pub request: Bytes,
}

impl Web {
    pub(super) fn plan(&self, setting: &Setting<'_>) -> Result<WebPlan, Problem> {
        let classes: Vec<_> = match (self.classes.as_slice(), self.sizes.as_slice()) {
            ([], []) => return Err(invalid("needs `classes` or `sizes`: one at least")),
            ([_, ..], [_, ..]) => {
                return Err(invalid("has `classes` and `sizes`; give one of them"));
            }
            (classes, []) => classes
                .iter()
                .map(|class| ClassPlan {
                    name: class.name.clone(),
                    count: class.count,
                    size: class.size,
                    request: class.request.unwrap_or(self.request),
                })
                .collect(),
            ([], sizes) => sizes
                .iter()
                .map(|&size| ClassPlan {
                    name: setting.class.into(),
                    count: 1,
                    size,
                    request: self.request,
                })
                .collect(),
        };
        let count = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.count));
        if count > MILLION {
            let number = count.into();
            return Err(Problem::TooMany { what: "sessions", number, most: MILLION });
        }
        let at_once = match self.order {
            Sessions::Parallel => self.connections.min(count),
            Sessions::Sequential => 1,
        };
        let (persistent, server_time) = (self.persistent, self.server_time);
        Ok(WebPlan { classes, at_once, persistent, server_time })
    }
}
