//! Finds where a setting of a flow or a link was written: backends see only the resolved value.

use crate::mistake::Mistake;
use crate::read::Place;
use serde_json::Value;

/// Moves a mistake at `flows[0].cc` or `flows[0].stack.x` to the place in `tree` that sets the
/// value: the flow, a host at one of its ends, or the common stack. A mistake of a link moves as in
/// [`of_link`].
pub(crate) fn trace(mistake: Mistake, tree: &Value) -> Mistake {
    match origin(&mistake.at, tree) {
        Some(at) => Mistake { at, ..mistake },
        None => of_link(mistake, tree),
    }
}

/// Moves a mistake at `network.links[0].back.x` to `network.links[0].x`, unless `back` itself has
/// this key.
pub(crate) fn of_link(mistake: Mistake, tree: &Value) -> Mistake {
    match link(&mistake.at, tree) {
        Some(at) => Mistake { at, ..mistake },
        None => mistake,
    }
}

fn link(at: &str, tree: &Value) -> Option<String> {
    // A shared medium has a name, which may be any word, and no directions.
    let inside = at.strip_prefix("network.").filter(|inside| !inside.starts_with("lan."))?;
    let (link, side, setting) = ["forward", "back"].iter().find_map(|side| {
        let (link, setting) = inside.split_once(&format!(".{side}."))?;
        Some((link, *side, setting))
    })?;
    let network = tree.get("network");
    let (network, inner) = match link.strip_prefix("graph.") {
        Some(inner) => (network.and_then(|it| it.get("graph")), inner),
        None => (network, link),
    };
    let table = match inner.strip_prefix("links[").and_then(|index| index.strip_suffix(']')) {
        Some(index) => network.and_then(|it| it.get("links")?.get(index.parse::<usize>().ok()?)),
        None => network.and_then(|it| it.get(inner)),
    };
    let key = setting.split(['.', '[']).next()?;
    let has = table.and_then(|it| it.get(side)?.get(key)).is_some();
    (!has).then(|| format!("network.{link}.{setting}"))
}

fn origin(at: &str, tree: &Value) -> Option<String> {
    let (index, option) = at.strip_prefix("flows[")?.split_once("].")?;
    let flow = tree.get("flows")?.get(index.parse::<usize>().ok()?)?;
    let option = option.strip_prefix("stack.").unwrap_or(option);
    let key = option.split('.').next()?;
    if key == "cc" && flow.get("cc").is_some() {
        return Some(format!("flows[{index}].{option}"));
    }
    let sets = |table: &Value| table.get("stack").is_some_and(|stack| stack.get(key).is_some());
    if sets(flow) {
        return Some(format!("flows[{index}].stack.{option}"));
    }
    let is_end = |name: &str| {
        name.contains('*')
            || ["from", "to"].iter().any(|end| flow.get(end).is_some_and(|n| n == name))
    };
    let mut hosts = tree.get("hosts").and_then(Value::as_object).into_iter().flatten();
    if let Some((name, _)) = hosts.find(|(name, host)| is_end(name) && sets(host)) {
        return Some(format!("{}.stack.{option}", Place::Root.key("hosts").key(name)));
    }
    sets(tree).then(|| format!("stack.{option}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_setting_of_a_link_is_traced_to_where_it_was_written() {
        let tree = json!({
            "network": {
                "links": [{ "loss": 0.1, "back": { "queue": { "kind": "cake" } } }],
                "dumbbell": { "back": { "mtu": 500 }, "access": { "mtu": 600 } },
            },
        });
        let link = |at| link(at, &tree);
        assert_eq!(link("network.links[0].back.queue.limit"), None);
        assert_eq!(link("network.links[0].back.loss").as_deref(), Some("network.links[0].loss"));
        assert_eq!(
            link("network.links[0].forward.queue.limit").as_deref(),
            Some("network.links[0].queue.limit")
        );
        assert_eq!(link("network.dumbbell.back.mtu"), None);
        assert_eq!(link("network.dumbbell.back.icmp").as_deref(), Some("network.dumbbell.icmp"));
        assert_eq!(link("network.dumbbell.access.icmp"), None);
        assert_eq!(link("network.lan.back.queue"), None);
    }

    #[test]
    fn an_option_is_traced_to_where_it_was_written() {
        let tree = json!({
            "stack": { "ecn": true, "cc": "vegas", "rack": true },
            "hosts": { "b": { "stack": { "rack": true } }, "c": { "stack": { "ecn": true } } },
            "flows": [{ "from": "a", "to": "b", "cc": { "name": "cubic" }, "stack": { "tlp": true } }],
        });
        let origin = |at| origin(at, &tree);
        assert_eq!(origin("flows[0].cc.beta").as_deref(), Some("flows[0].cc.beta"));
        assert_eq!(origin("flows[0].stack.cc").as_deref(), Some("flows[0].cc"));
        assert_eq!(origin("flows[0].stack.tlp").as_deref(), Some("flows[0].stack.tlp"));
        assert_eq!(origin("flows[0].stack.rack").as_deref(), Some("hosts.b.stack.rack"));
        assert_eq!(origin("flows[0].stack.ecn").as_deref(), Some("stack.ecn"));
        assert_eq!(origin("flows[0].stack.pacing"), None);
        assert_eq!(origin("flows[0].traffic"), None);
    }
}
