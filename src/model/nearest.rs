//! Guesses at misspelled names, for "did you mean".

/// The name closest to `word`: it begins with `word`, or differs from it in at most a third of the
/// letters, and in at most three. `None` if no name is that close.
pub fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, word: &str) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).min(3);
    let scored = names.into_iter().map(|name| match word.len() > 1 && name.starts_with(word) {
        true => (0, name),
        false => (strsim::damerau_levenshtein(name, word), name),
    });
    scored.min().filter(|(distance, _)| *distance <= allowed).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_prefix_or_a_typo_finds_its_name_and_nothing_else_does() {
        let near = |word| nearest(["judge", "oracle.build", "c1", "c12"], word);
        assert_eq!(near("jugde"), Some("judge"), "two letters changed places");
        assert_eq!(near("oracle.biuld"), Some("oracle.build"));
        assert_eq!(near("c2"), None, "a short name is another name, not a typo");
        assert_eq!(near("jud"), Some("judge"));
        assert_eq!(near("grape"), None);
        assert_eq!(nearest([], "judge"), None);
    }
}
