//! Names of runs and candidates, and the rule for them.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The rule, as shown to a user who broke it.
pub const RULE: &str = "a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with `-` or `.`, \
holds no `..`, does not end in `.` or `.lock`, and is not `run` or `apply`";

/// The word that stands for the base. No candidate can have this name.
pub const BASE: &str = "@base";

/// A run's or candidate's name: safe as one path component and as one component of a ref.
///
/// `run` and `apply` are reserved because `frites/apply/1` would name two refs at once
/// (GIT-FACTS, "Landing").
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

/// A text that is not a name. Whoever reports it shows [`RULE`] in a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not a valid name")]
pub struct InvalidName(String);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number of a numbered run (`7`, not `007`); `None` for any other name.
    pub fn number(&self) -> Option<u64> {
        let n: u64 = self.0.parse().ok()?;
        (n.to_string() == self.0).then_some(n)
    }

    /// The next run number; 1 if this name is not a number.
    #[must_use]
    pub fn next_number(&self) -> Name {
        Name(self.number().map_or(1, |n| n.saturating_add(1)).to_string())
    }

    /// True if two names are the same on a file system that ignores case.
    pub fn collides(&self, other: &Name) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// The name of the first run.
impl Default for Name {
    fn default() -> Name {
        Name("1".to_owned())
    }
}

/// The names for which a word can stand: the equal name, or else those that begin with the word.
/// Numbers must be equal: `1` does not stand for `10`.
pub fn matching_names<'a>(
    names: impl IntoIterator<Item = &'a Name, IntoIter: Clone>,
    word: &Name,
) -> Vec<&'a Name> {
    let names = names.into_iter();
    let begun =
        |name: &&Name| word.number().or(name.number()).is_none() && name.0.starts_with(&word.0);
    match names.clone().find(|name| *name == word) {
        Some(exact) => vec![exact],
        None => names.filter(begun).collect(),
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let lower = text.to_ascii_lowercase();
        let ok = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && !text.starts_with(['-', '.'])
            && !text.contains("..")
            && !text.ends_with('.')
            && !lower.ends_with(".lock")
            && !matches!(lower.as_str(), "run" | "apply");
        if ok {
            Ok(Name(text.to_owned()))
        } else {
            Err(InvalidName(text.escape_debug().to_string()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rule_holds_at_its_edges() {
        let longest = "a".repeat(64);
        for good in ["1", "c1", "claude-2", "A_b.c", longest.as_str(), "runs", "x.lockd"] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        let long = "a".repeat(65);
        for bad in [
            "", "-a", ".a", "a..b", "a.", "a.lock", "a.LOCK", "a/b", "a b", "é", "a\n", "run",
            "Apply", &long,
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_word_means_a_name_or_its_beginning_and_numbers_exactly() {
        let name = |text: &str| text.parse::<Name>().expect("valid");
        let names = ["1", "10", "2nd", "fix", "fixer", "fixes"].map(name);
        let cases = [
            ("1", vec!["1"]),
            ("fix", vec!["fix"]),
            ("fixe", vec!["fixer", "fixes"]),
            ("fixer", vec!["fixer"]),
            ("2", vec![]),
            ("2n", vec!["2nd"]),
        ];
        for (word, expected) in cases {
            let found: Vec<&str> =
                matching_names(&names, &name(word)).into_iter().map(Name::as_str).collect();
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn only_plain_decimals_are_numbers() {
        let number = |s: &str| s.parse::<Name>().expect("valid").number();
        assert_eq!(number("7"), Some(7));
        assert_eq!(number("007"), None);
        assert_eq!(number("7a"), None);
    }

    proptest! {
        #[test]
        fn valid_name_is_kept_and_is_safe_in_paths_and_refs(text in "[A-Za-z0-9._-]{0,66}") {
            if let Ok(name) = text.parse::<Name>() {
                prop_assert_eq!(name.as_str(), &text);
                prop_assert_eq!(std::path::Path::new(&text).components().count(), 1);
                let full = gix::refs::FullName::try_from(format!("refs/frites/{text}/{text}"));
                prop_assert!(full.is_ok());
                prop_assert_eq!(name.next_number().number(), Some(name.number().unwrap_or(0).saturating_add(1)));
            }
        }

        #[test]
        fn invalid_name_is_refused_in_one_line_that_shows_it(text in any::<String>()) {
            if let Err(error) = text.parse::<Name>() {
                let error = error.to_string();
                prop_assert!(!error.contains(char::is_control), "{error}");
                let beginning = format!("'{}'", text.escape_debug());
                prop_assert!(error.starts_with(&beginning), "{error}");
            }
        }
    }
}
