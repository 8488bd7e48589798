//! Finds the names of the congestion controls that C sources register.

/// The longest name: `TCP_CA_NAME_MAX` includes the terminating zero.
const LONGEST: usize = 15;

/// The names that a source registers, or the variable of the first one whose name is not found.
pub(super) fn registered(source: &str) -> Result<Vec<String>, String> {
    let code = without_comments(source);
    let mut names = Vec::new();
    for (_, rest) in occurrences(&code, "tcp_register_congestion_control") {
        let argument = rest.trim_start().strip_prefix('(').map(str::trim_start);
        let Some(variable) = argument.and_then(|text| text.strip_prefix('&')).map(identifier)
        else {
            // The declaration of the function, or a pointer from another place.
            continue;
        };
        if let Some(definition) = definition(&code, variable) {
            names.push(name(definition).ok_or(variable)?);
        }
    }
    Ok(names)
}

/// The text between the braces of `struct tcp_congestion_ops VARIABLE ... = { ... }`.
fn definition<'a>(code: &'a str, variable: &str) -> Option<&'a str> {
    occurrences(code, "struct tcp_congestion_ops").find_map(|(_, rest)| {
        let rest = rest.trim_start();
        if identifier(rest) != variable {
            return None;
        }
        let (head, body) = rest.split_once('{')?;
        let is_definition = head.contains('=') && !head.contains(';');
        is_definition.then(|| body.split('}').next().unwrap_or(body))
    })
}

/// The text in `.name = "..."`.
fn name(definition: &str) -> Option<String> {
    let (_, rest) = occurrences(definition, ".name").next()?;
    let text = rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    let name = text.split('"').next()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let fits = !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_plain);
    fits.then(|| name.to_owned())
}

/// The positions of whole words, with the text that follows them.
fn occurrences<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.match_indices(words).filter_map(move |(start, _)| {
        let rest = &text[start + words.len()..];
        let is_whole = !text[..start].ends_with(is_word) && !rest.starts_with(is_word);
        is_whole.then_some((start, rest))
    })
}

fn identifier(text: &str) -> &str {
    text.split(|letter| !is_word(letter)).next().unwrap_or_default()
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The source with its comments replaced by blanks, except in string literals.
fn without_comments(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '/' if rest.starts_with("/*") => {
                code.push(' ');
                rest = rest[2..].split_once("*/").map_or("", |(_, behind)| behind);
                continue;
            }
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '"' => {
                let mut is_escaped = false;
                let end = rest[1..].find(|letter| {
                    let is_end = letter == '"' && !is_escaped;
                    is_escaped = letter == '\\' && !is_escaped;
                    is_end
                });
                end.map_or(rest.len(), |end| end + 2)
            }
            _ => first.len_utf8(),
        };
        code.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = r#"
/* static struct tcp_congestion_ops mine = { .name = "not this" }; */
static struct tcp_congestion_ops fallback = { .name = "mine-fallback" };
static struct tcp_congestion_ops mine __read_mostly = {
	.ssthresh	= tcp_reno_ssthresh, // .name = "nor this",
	.owner		= THIS_MODULE,
	.name		= "mine",
};
static int __init mine_register(void)
{
	return tcp_register_congestion_control(&mine);
}
static void __exit mine_unregister(void)
{
	tcp_unregister_congestion_control(&fallback);
}
"#;

    #[test]
    fn the_registered_name_is_found() {
        assert_eq!(registered(MINE), Ok(vec!["mine".to_owned()]));
    }

    #[test]
    fn a_source_may_register_several() {
        let second = "struct tcp_congestion_ops b = {.name=\"b\"}; \
                      int f(void) { tcp_register_congestion_control( &b ); }";
        let both = format!("{MINE}{second}");
        assert_eq!(registered(&both), Ok(vec!["mine".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn sources_without_any_register_none() {
        let elsewhere = "BUG_ON(tcp_register_congestion_control(&tcp_reno) != 0);
int tcp_register_congestion_control(struct tcp_congestion_ops *ca) { }
int x(void) { return tcp_register_congestion_control(kdata); }";
        assert_eq!(registered(elsewhere), Ok(vec![]));
        assert_eq!(registered("/* never closed"), Ok(vec![]));
        assert_eq!(registered("\"never closed"), Ok(vec![]));
    }

    #[test]
    fn names_must_be_plain_text_that_a_kernel_takes() {
        for wrong in ["MACRO", "\"\"", "\"two words\"", "\"sixteen-letters-\""] {
            let source = MINE.replace("\"mine\"", wrong);
            assert_eq!(registered(&source), Err("mine".to_owned()), "{wrong}");
        }
        let longest = MINE.replace("\"mine\"", "\"fifteen-letters\"");
        assert_eq!(registered(&longest), Ok(vec!["fifteen-letters".to_owned()]));
    }
}
