//! An object id as text, so that records and the ranking need no git library.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A full object id in lowercase hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Oid(String);

impl Oid {
    /// Takes `hex` if it is a full lowercase object id (SHA-1 or SHA-256).
    pub fn parse(hex: &str) -> Option<Self> {
        let full = matches!(hex.len(), 40 | 64);
        let digits = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (full && digits).then(|| Oid(hex.to_owned()))
    }

    /// The full hex.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }

    /// The id of zeros, as long as this one: git's word for "no such ref".
    pub fn null(&self) -> String {
        "0".repeat(self.0.len())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
