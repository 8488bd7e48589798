//! Reads the output of `make`: progress and compiler errors.

/// The approximate number of compiled files: 815 were counted in 6.12 without tcplab's own.
pub(super) const EXPECTED: u64 = 820;

/// The most lines of errors that are shown.
const MOST_LINES: usize = 24;

/// The step in a line of `make`: `CC` and `net/ipv4/tcp.o`.
pub(super) fn step(line: &str) -> Option<(&str, &str)> {
    let (kind, file) = line.strip_prefix("  ")?.split_once(' ')?;
    let is_kind = kind.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
    (is_kind && !kind.is_empty()).then(|| (kind, file.trim()))
}

/// The errors in a log, each with the source lines below it; without any, the end of the log.
pub(super) fn complaints(log: &str) -> String {
    let mut found = Vec::new();
    let mut is_inside = false;
    for line in log.lines().filter(|line| step(line).is_none()) {
        if is_error(line) {
            is_inside = true;
        } else if !(is_inside && is_context(line)) {
            is_inside = false;
        }
        if is_inside {
            found.push(line);
        }
    }
    if found.is_empty() {
        let all: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        return all[all.len().saturating_sub(8)..].join("\n");
    }
    let left_out = found.len().saturating_sub(MOST_LINES);
    found.truncate(MOST_LINES);
    let text = found.join("\n");
    match left_out {
        0 => text,
        _ => format!("{text}\n... and {left_out} more lines"),
    }
}

/// Whether a line is an error of a compiler, linker or other program. `make` itself only reports
/// that another program failed.
fn is_error(line: &str) -> bool {
    let said = [": error: ", ": fatal error: ", "undefined reference to", "multiple definition of"];
    (said.iter().any(|words| line.contains(words)) || line.contains("No space left on device"))
        && !line.starts_with("make")
}

/// Whether a line belongs to the error above it: source, or a note.
fn is_context(line: &str) -> bool {
    let after_number = line.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit());
    line.starts_with(' ') && after_number.trim_start().starts_with('|') || line.contains(": note: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
  SYNC    include/config/auto.conf.cmd
  CC      net/ipv4/tcp_mine.o
net/ipv4/tcp_mine.c: In function 'mine_cong_avoid':
net/ipv4/tcp_mine.c:12:9: error: implicit declaration of function 'tcp_wrong' [-Werror=implicit-function-declaration]
   12 |         tcp_wrong(sk);
  CC      net/ipv4/tcp_cong.o
      |         ^~~~~~~~~
net/ipv4/tcp_mine.c:13:1: warning: unused
   13 | int x;
cc1: some warnings being treated as errors
make[4]: *** [scripts/Makefile.build:229: net/ipv4/tcp_mine.o] Error 1
make: *** [Makefile:224: __sub-make] Error 2
";

    #[test]
    fn build_steps_are_recognised() {
        assert_eq!(step("  CC      net/ipv4/tcp_mine.o"), Some(("CC", "net/ipv4/tcp_mine.o")));
        assert_eq!(step("  LD      vmlinux.o"), Some(("LD", "vmlinux.o")));
        assert_eq!(step("  LINK linux"), Some(("LINK", "linux")));
        assert_eq!(step("   12 |         tcp_wrong(sk);"), None);
        assert_eq!(step("make: Entering directory"), None);
    }

    #[test]
    fn compiler_errors_are_shown_with_their_source() {
        assert_eq!(
            complaints(LOG),
            "net/ipv4/tcp_mine.c:12:9: error: implicit declaration of function 'tcp_wrong' \
             [-Werror=implicit-function-declaration]\n   12 |         tcp_wrong(sk);\n      \
             |         ^~~~~~~~~"
        );
    }

    #[test]
    fn without_errors_the_end_of_the_log_is_shown() {
        let log = "one\n\ntwo\nmake: *** No rule to make target 'x'.  Stop.\n";
        assert_eq!(complaints(log), "one\ntwo\nmake: *** No rule to make target 'x'.  Stop.");
    }

    #[test]
    fn many_errors_are_cut() {
        let log = "a.c:1:1: error: no\n".repeat(30);
        let shown = complaints(&log);
        assert_eq!(shown.lines().count(), MOST_LINES + 1);
        assert!(shown.ends_with("... and 6 more lines"), "{shown}");
    }
}
