//! Suggests a known word for a misspelt one.

/// The word of `known` nearest to `word`, if it is similar enough.
pub fn suggest<'a, K: AsRef<str>>(word: &str, known: &'a [K]) -> Option<&'a str> {
    let length = word.chars().count();
    if length > 60 {
        return None;
    }
    // "reno", the end of a name, means that name rather than a similar one, "veno".
    let is_part = |name: &&str| length > 3 && name.to_lowercase().ends_with(&word.to_lowercase());
    let mut whole = known.iter().map(AsRef::as_ref).filter(is_part);
    if let (Some(name), None) = (whole.next(), whole.next()) {
        return Some(name);
    }
    let most = (length / 3).clamp(1, 3);
    let near = known.iter().map(|name| (distance(word, name.as_ref()), name.as_ref()));
    near.filter(|(distance, _)| *distance <= most).min_by_key(|(d, _)| *d).map(|(_, name)| name)
}

/// A longer list is truncated.
const SHOWN: usize = 30;

/// "did you mean ...?" or the list of known words.
pub(crate) fn or_known(word: &str, known: &[String]) -> String {
    if let Some(near) = suggest(word, known) {
        return format!("did you mean \"{near}\"?");
    }
    let names: Vec<_> = known.iter().take(SHOWN).map(|name| format!("\"{name}\"")).collect();
    match (names.as_slice(), known.len()) {
        ([], _) => "there are none".into(),
        ([only], 1) => format!("there is only {only}"),
        (names, total) if total > SHOWN => {
            format!("there are {} and {} more", names.join(", "), total - SHOWN)
        }
        (names, _) => format!("there are {}", names.join(", ")),
    }
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn `from` into
/// `to`, ignoring case.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.to_lowercase().chars().collect();
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let same = from[i - 1] == to[j - 1];
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1);
            best = best.min(rows[i - 1][j - 1] + usize::from(!same));
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested() {
        let known = ["newreno", "cubic", "vegas"];
        assert_eq!(suggest("qubic", &known), Some("cubic"));
        assert_eq!(suggest("New-Reno", &known), Some("newreno"));
        assert_eq!(suggest("vgeas", &known), Some("vegas"));
        assert_eq!(suggest("bbr", &known), None);
    }

    #[test]
    fn the_end_of_a_name_suggests_that_name() {
        assert_eq!(suggest("reno", &["veno", "newreno", "cubic"]), Some("newreno"));
        assert_eq!(suggest("Reno", &["veno", "NewReno"]), Some("NewReno"));
        // The end of two names suggests neither of them.
        assert_eq!(suggest("reno", &["veno", "newreno", "oldreno"]), Some("veno"));
    }
}
