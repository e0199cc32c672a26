//! Patterns in which a star stands for any characters.

/// True if a text matches a pattern, in which each `*` stands for any characters.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*');
    let end = parts.next_back().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_pattern_stands_for_any_characters() {
        let cases = [
            ("Makefile", "Makefile", true),
            ("Makefile", "Makefile2", false),
            ("*.mk", "a.mk", true),
            ("*.mk", "a.mkd", false),
            ("jest.config.*", "jest.config.ts", true),
            ("jest.config.*", "my.jest.config.ts", false),
            ("a*a", "a", false),
            ("*.config.*", "my.jest.config.ts", true),
            ("*.config.*", "config.ts", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} and {name}");
        }
    }
}
