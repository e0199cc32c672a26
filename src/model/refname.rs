//! Names of git's refs.
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// The full name of a ref, such as `refs/heads/main`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RefName(String);

impl RefName {
    /// The prefix of the full names of branches.
    const HEADS: &str = "refs/heads/";

    /// Takes a full name as it is.
    pub fn new(full: impl Into<String>) -> Self {
        RefName(full.into())
    }

    /// The full name of a branch, given as people write it.
    pub fn of_branch(short: impl fmt::Display) -> Self {
        RefName(format!("{}{short}", Self::HEADS))
    }

    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A branch as people write it; the full name of any other ref.
    pub fn short(&self) -> &str {
        self.0.strip_prefix(Self::HEADS).unwrap_or(&self.0)
    }
}

impl Deref for RefName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_drops_the_prefix_of_branches_and_of_nothing_else() {
        assert_eq!(RefName::of_branch("a/b").as_str(), "refs/heads/a/b");
        assert_eq!(RefName::of_branch("a/b").short(), "a/b");
        assert_eq!(RefName::new("refs/frites/1/c1").short(), "refs/frites/1/c1");
        assert_eq!(
            serde_json::to_string(&RefName::of_branch("a")).ok().as_deref(),
            Some("\"refs/heads/a\"")
        );
    }
}
