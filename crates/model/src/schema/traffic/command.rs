//! Programs of the machine as traffic.

use super::Setting;
use crate::mistake::Problem;
use crate::read::table;
use crate::stored::as_written;

table! {
    /// Real programs, started on real hosts.
    pub struct Command {
        /// The command line on the host `from`, started first: "iperf3 -s -1".
        pub server: String,
        /// The command line on the host `to`: "iperf3 -R -c {server}".
        pub client: String,
    }
}

as_written!(Command);

impl Command {
    pub(super) fn plan(&self, _setting: &Setting<'_>) -> Result<Self, Problem> {
        for (side, line) in [("server", &self.server), ("client", &self.client)] {
            if let Some(word) = unknown_place(line) {
                return Err(unknown(side, word));
            }
        }
        Ok(self.clone())
    }
}

/// The placeholders of command lines, which stand for addresses.
const PLACES: [&str; 2] = ["server", "client"];

/// The first unknown placeholder. Variables of a shell, `${NAME}`, are left to the shell.
fn unknown_place(line: &str) -> Option<&str> {
    line.match_indices('{').find_map(|(open, _)| {
        let (word, _) = line[open + 1..].split_once('}')?;
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (is_word && !line[..open].ends_with('$') && !PLACES.contains(&word)).then_some(word)
    })
}

fn unknown(side: &str, word: &str) -> Problem {
    Problem::Invalid(format!(
        "has a `{side}` in which nothing stands for {{{word}}}; there are {{server}} and {{client}}, the \
         addresses of the two sides (braces of the program's own need a space: {{ {word} }})"
    ))
}
