//! An object id as text, so that records and the ranking need no git library.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A full object id in lowercase hex.
///
/// Records are read with the same care: they are fetched from elsewhere, and what is in the place of an id becomes
/// an argument of git's, to which `--output=FILE` is an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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

impl TryFrom<String> for Oid {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Oid::parse(&text).ok_or("an object id is 40 or 64 lowercase hex digits")
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> String {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_id_is_not_read_as_one() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(serde_json::from_str::<Oid>(&format!("\"{id}\"")).ok(), Oid::parse(id));
        let upper = id.to_uppercase();
        for text in [
            "",
            "--output=/tmp/x",
            "-",
            "HEAD",
            &id[1..],
            &format!("{id}\n"),
            &upper,
            &"é".repeat(20),
        ] {
            let json = serde_json::Value::from(text);
            assert!(serde_json::from_value::<Oid>(json).is_err(), "{text}");
        }
    }
}
