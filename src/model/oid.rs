//! An object id as text, so that records and the ranking need no git library.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A full object id in lowercase hex.
///
/// Ids in records are also checked: a record may have been fetched, and an id becomes an argument
/// of git, which would take `--output=FILE` for an option.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid {
    /// The digits in ASCII, then zero bytes.
    digits: [u8; LONGEST],
    len: u8,
}

/// The number of hex digits of a SHA-256 id.
const LONGEST: usize = 64;

impl Oid {
    /// Takes `hex` if it is a full lowercase object id (SHA-1 or SHA-256).
    pub fn parse(hex: &str) -> Option<Self> {
        let len = u8::try_from(hex.len()).ok().filter(|len| [40, 64].contains(len))?;
        if !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        let mut digits = [0; LONGEST];
        digits.iter_mut().zip(hex.bytes()).for_each(|(to, from)| *to = from);
        Some(Oid { digits, len })
    }

    /// The full id in hex.
    pub fn as_str(&self) -> &str {
        let digits = self.digits.get(..self.len.into()).unwrap_or(&self.digits);
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        self.as_str().get(..10).unwrap_or_default()
    }

    /// The id that consists of zeros, as long as this id: git's notation for "no such object" and
    /// "no such ref".
    pub fn null(&self) -> Self {
        let mut null = *self;
        null.digits.iter_mut().take(self.len.into()).for_each(|digit| *digit = b'0');
        null
    }

    /// True if every digit is zero.
    pub fn is_null(&self) -> bool {
        *self == self.null()
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
        oid.as_str().to_owned()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_both_hashes_keep_their_digits_and_their_order() {
        let ids = [
            "0".repeat(40),
            "0".repeat(64),
            "0123456789abcdef0123456789abcdef01234567".to_owned(),
            "f".repeat(64),
        ];
        let parsed: Vec<Oid> = ids.iter().filter_map(|id| Oid::parse(id)).collect();
        assert_eq!(parsed.iter().map(Oid::as_str).collect::<Vec<_>>(), ids);
        assert!(parsed.is_sorted());
        assert_eq!(parsed.iter().map(Oid::is_null).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(parsed[3].null(), parsed[1]);
        assert_eq!(parsed[2].short(), "0123456789");
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
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
