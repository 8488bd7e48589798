//! The configuration that tcplab requests of a kernel, and a check of the result.

use super::error::Error;
use std::collections::BTreeSet;

/// The options that tcplab sets. Part of a kernel's key.
pub(super) const FRAGMENT: &str = include_str!("../../kernel/config");

/// Marks options that a source may lack.
const OPTIONAL: &str = "# if known";

/// An option of the fragment.
#[derive(Debug, PartialEq)]
struct Wish<'a> {
    name: &'a str,
    is_on: bool,
    is_optional: bool,
}

/// Reads the options of a fragment.
fn wishes(fragment: &str) -> impl Iterator<Item = Wish<'_>> {
    fragment.lines().filter_map(|line| {
        let (line, is_optional) = match line.strip_suffix(OPTIONAL) {
            Some(line) => (line.trim_end(), true),
            None => (line, false),
        };
        let off = line.strip_prefix("# CONFIG_").and_then(|rest| rest.strip_suffix(" is not set"));
        let on = line.strip_prefix("CONFIG_").and_then(|rest| rest.strip_suffix("=y"));
        let name = on.or(off)?;
        Some(Wish { name, is_on: on.is_some(), is_optional })
    })
}

/// The lines to append to a configuration, for a source that has these options.
pub(super) fn lines(known: &BTreeSet<String>, hz: u32) -> String {
    let asked = wishes(FRAGMENT).map(|Wish { name, is_on, .. }| {
        if is_on { format!("CONFIG_{name}=y\n") } else { format!("# CONFIG_{name} is not set\n") }
    });
    let controls = known.iter().filter(|name| name.starts_with("TCP_CONG_"));
    let controls = controls.map(|name| format!("CONFIG_{name}=y\n"));
    // In some sources the frequency is a constant, which tcplab edits, in others an option.
    asked.chain(controls).chain([format!("CONFIG_HZ_{hz}=y\n")]).collect()
}

/// The options that a Kconfig file defines.
pub(super) fn defined(kconfig: &str) -> impl Iterator<Item = &str> {
    kconfig.lines().filter_map(|line| {
        let name = line.strip_prefix("config ").or_else(|| line.strip_prefix("menuconfig "))?;
        Some(name.trim())
    })
}

/// Checks that a finished configuration has the requested options.
pub(super) fn check(
    configuration: &str,
    known: &BTreeSet<String>,
    hz: u32,
    source: &str,
) -> Result<(), Error> {
    let set: BTreeSet<&str> = configuration.lines().collect();
    let mut unknown = Vec::new();
    let mut refused = Vec::new();
    for Wish { name, is_on, is_optional } in wishes(FRAGMENT) {
        if set.contains(format!("CONFIG_{name}=y").as_str()) == is_on {
        } else if known.contains(name) {
            refused.push(name);
        } else if !is_optional {
            unknown.push(name);
        }
    }
    let hz_there = configuration.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="));
    if hz_there != Some(hz.to_string().as_str()) {
        refused.push("HZ");
    }
    let problem = match (unknown.is_empty(), refused.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => format!("this kernel has no option {}, which tcplab needs", list(&unknown)),
        (true, false) => {
            format!(
                "this kernel's configuration does not allow the value that tcplab needs for {}",
                list(&refused)
            )
        }
    };
    Err(Error::refused(source, problem))
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The file that defines `HZ`, with its default replaced.
pub(super) fn with_hz(kconfig: &str, hz: u32) -> String {
    let mut is_inside = false;
    let lines = kconfig.split_inclusive('\n').map(|line| {
        if line.starts_with("config ") {
            is_inside = line.trim_end() == "config HZ";
        }
        match line.split_once("default ") {
            Some((indent, _)) if is_inside => format!("{indent}default {hz}\n"),
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source with all options, and a configuration that sets them.
    fn granted() -> (BTreeSet<String>, String) {
        let known = wishes(FRAGMENT).map(|wish| wish.name.to_owned()).collect();
        let configuration = format!("{}CONFIG_HZ=1000\n", lines(&known, 1000));
        (known, configuration)
    }

    #[test]
    fn every_line_of_the_config_fragment_is_parsed() {
        let options = FRAGMENT.lines().filter(|line| line.contains("CONFIG_")).count();
        assert_eq!(wishes(FRAGMENT).count(), options);
        let names: BTreeSet<_> = wishes(FRAGMENT).map(|wish| wish.name).collect();
        assert_eq!(names.len(), options, "an option is there twice");
        assert!(names.contains("UML_TIME_TRAVEL_SUPPORT"));
    }

    #[test]
    fn config_options_are_on_off_or_optional() {
        let text = "# Words.\nCONFIG_A=y\n\n# CONFIG_B is not set\nCONFIG_C=y # if known\n";
        let expected = [("A", true, false), ("B", false, false), ("C", true, true)];
        let expected = expected.map(|(name, is_on, is_optional)| Wish { name, is_on, is_optional });
        assert_eq!(wishes(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_configuration_with_all_options_is_accepted() {
        let (known, configuration) = granted();
        assert!(check(&configuration, &known, 1000, "linux").is_ok());
    }

    #[test]
    fn a_missing_config_option_is_named() {
        let (mut known, configuration) = granted();
        let without = configuration.replace("CONFIG_VETH=y\n", "");
        let refused = check(&without, &known, 1000, "linux").unwrap_err().to_string();
        let needed = "does not allow the value that tcplab needs for `VETH`";
        assert!(refused.ends_with(needed), "{refused}");
        known.remove("VETH");
        let unknown = check(&without, &known, 1000, "linux").unwrap_err().to_string();
        assert_eq!(unknown, "linux: this kernel has no option `VETH`, which tcplab needs");
        known.remove("MPTCP");
        let without = configuration.replace("CONFIG_MPTCP=y\n", "");
        assert!(check(&without, &known, 1000, "linux").is_ok());
        let on = configuration.replace("# CONFIG_SMP is not set", "CONFIG_SMP=y");
        assert!(check(&on, &known, 1000, "linux").is_err());
        let slow = check(&configuration, &known, 250, "linux").unwrap_err().to_string();
        assert!(slow.ends_with("`HZ`"), "{slow}");
    }

    #[test]
    fn congestion_controls_come_from_the_source() {
        let kconfig = "menuconfig TCP_CONG_ADVANCED\n\tbool\nconfig TCP_CONG_MINE\n\ttristate\n";
        let known: BTreeSet<_> = defined(kconfig).map(str::to_owned).collect();
        assert!(lines(&known, 1000).contains("\nCONFIG_TCP_CONG_MINE=y\n"));
    }

    #[test]
    fn hz_is_replaced_where_it_is_defined() {
        let kconfig =
            "config NR\n\tdefault 1\n\nconfig HZ\n\tint\n\tdefault 100\n\nconfig X\n\tdefault 2\n";
        assert_eq!(with_hz(kconfig, 250), kconfig.replace("100", "250"));
        assert_eq!(with_hz("config X\n\tdefault 100\n", 250), "config X\n\tdefault 100\n");
    }
}
