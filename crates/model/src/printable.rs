//! Text of an experiment in a form safe for a terminal, a message or a chart.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with all invisible characters spelled out, and those that move what is visible.
///
/// Experiments may come from anyone. Their names and texts must not move the cursor, colour or hide
/// other text, set a terminal's title, change the direction of reading, or begin a new line that
/// looks like a message. Such characters become `\n` or `\u{202e}`; all others stay as they are.
///
/// ```
/// assert_eq!(tcplab_model::printable("flow\u{1b}[31m\u{202e}1"), "flow\\u{1b}[31m\\u{202e}1");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_hidden(c) => {
                write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("text takes everything");
            }
            _ => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is a control (Unicode category Cc), a format character (Cf: zero width,
/// bidirectional, tags), a line or paragraph separator, or a space without width or drawn as a
/// filler.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn letters_of_all_scripts_stay() {
        let text = "Größe, ποιότητα, 速度, שלום, cafe\u{301} \u{1F980} <b> & \\ \"x\" [red]";
        assert_eq!(printable(text), text);
    }

    #[test]
    fn control_and_format_characters_are_escaped() {
        for (text, expected) in [
            ("a\nerror: b", "a\\nerror: b"),
            ("a\r\tb", "a\\r\\tb"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{8}\u{7f}\u{9b}31m", "\\u{8}\\u{7f}\\u{9b}31m"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}", "\\u{202a}\\u{202e}\\u{2066}\\u{2069}"),
            ("\u{200b}\u{200d}\u{feff}\u{2028}", "\\u{200b}\\u{200d}\\u{feff}\\u{2028}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}
