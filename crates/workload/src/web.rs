//! The sessions of a web page. Nothing here is random.

use tcplab_model::schema::WebPlan;

/// One object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'a> {
    /// The name of its class in tables.
    pub class: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// The size of the request.
    pub request: u64,
}

/// All sessions, class by class, in the order of the file. They begin in this order, as soon as a
/// connection is free.
pub fn sessions(web: &WebPlan) -> impl Iterator<Item = Session<'_>> {
    web.classes.iter().flat_map(|class| {
        let (size, request) = (class.size.0, class.request.0);
        let session = Session { class: &class.name, size, request };
        (0..class.count).map(move |_| session)
    })
}

/// The number of sessions.
pub fn count(web: &WebPlan) -> u64 {
    web.classes.iter().map(|class| class.count).sum()
}

/// The total number of connections.
pub fn connections(web: &WebPlan) -> u64 {
    if web.persistent { web.at_once } else { count(web) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_model::schema::ClassPlan;
    use tcplab_units::{Bytes, Duration};

    fn web(at_once: u64, persistent: bool) -> WebPlan {
        let class = |name: &str, count, size| ClassPlan {
            name: name.into(),
            count,
            size: Bytes(size),
            request: Bytes(400),
        };
        let classes = vec![class("large", 2, 100_000), class("small", 3, 4_000)];
        WebPlan { classes, at_once, persistent, server_time: Duration::ZERO }
    }

    #[test]
    fn sessions_stand_in_the_order_of_the_file() {
        let web = web(5, true);
        let all: Vec<_> = sessions(&web).map(|session| (session.class, session.size)).collect();
        let [large, small] = [("large", 100_000), ("small", 4_000)];
        assert_eq!(all, [large, large, small, small, small]);
        assert_eq!(count(&web), 5);
    }

    #[test]
    fn connections_follow_from_persistence() {
        for (at_once, persistent, opened) in
            [(5, true, 5), (2, true, 2), (2, false, 5), (1, true, 1), (1, false, 5)]
        {
            let web = web(at_once, persistent);
            assert_eq!(connections(&web), opened, "{at_once} {persistent}");
        }
    }
}
