//! The sessions of a web page, and how many go on at once. Nothing here is left to chance.

use tcplab_model::schema::{Sessions, Web};

/// One thing that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'a> {
    /// What tables call its class.
    pub class: &'a str,
    /// Its size in bytes.
    pub size: u64,
}

/// All sessions, class by class, in the order of the file: each is begun in this order, as soon as
/// there is room for it.
pub fn sessions(web: &Web) -> impl Iterator<Item = Session<'_>> {
    web.classes.iter().flat_map(|class| {
        let session = Session { class: &class.name, size: class.size.0 };
        (0..class.count).map(move |_| session)
    })
}

/// How many sessions there are.
pub fn count(web: &Web) -> u64 {
    web.classes.iter().fold(0, |sum, class| sum.saturating_add(class.count))
}

/// The most sessions that go on at once.
pub fn at_once(web: &Web) -> u64 {
    match web.order {
        Sessions::Parallel => web.connections.min(count(web)),
        Sessions::Sequential => 1,
    }
}

/// How many connections are opened in all.
pub fn connections(web: &Web) -> u64 {
    if web.persistent { at_once(web) } else { count(web) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_model::schema::SessionClass;
    use tcplab_units::Bytes;

    fn web(order: Sessions, connections: u64, persistent: bool) -> Web {
        let class =
            |name: &str, count, size| SessionClass { name: name.into(), count, size: Bytes(size) };
        let classes = vec![class("large", 2, 100_000), class("small", 3, 4_000)];
        Web { classes, order, connections, persistent, request: Bytes(400) }
    }

    #[test]
    fn sessions_stand_in_the_order_of_the_file() {
        let web = web(Sessions::Parallel, 6, true);
        let all: Vec<_> = sessions(&web).map(|session| (session.class, session.size)).collect();
        let [large, small] = [("large", 100_000), ("small", 4_000)];
        assert_eq!(all, [large, large, small, small, small]);
        assert_eq!(count(&web), 5);
    }

    #[test]
    fn connections_follow_from_order_and_persistence() {
        for (order, most, persistent, together, opened) in [
            (Sessions::Parallel, 6, true, 5, 5),
            (Sessions::Parallel, 2, true, 2, 2),
            (Sessions::Parallel, 2, false, 2, 5),
            (Sessions::Sequential, 6, true, 1, 1),
            (Sessions::Sequential, 6, false, 1, 5),
        ] {
            let web = web(order, most, persistent);
            assert_eq!(
                (at_once(&web), connections(&web)),
                (together, opened),
                "{order:?} {most} {persistent}"
            );
        }
    }
}
