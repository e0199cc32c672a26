//! The parts of a run that can be judged by themselves: its base and its candidates.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::name::{InvalidName, Name};

/// The word that stands for the base. No candidate can have this name.
pub const BASE: &str = "@base";

/// One part of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Part {
    /// The candidate of that name.
    Candidate(Name),
    /// The run's base.
    Base,
}

/// A part as a user types it: perhaps with its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAddress {
    /// The run, if it was named.
    pub run: Option<Name>,
    /// The part.
    pub part: Part,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Candidate(name) => write!(f, "{name}"),
            Part::Base => f.write_str(BASE),
        }
    }
}

impl FromStr for Part {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Part, InvalidName> {
        if text == BASE { Ok(Part::Base) } else { text.parse().map(Part::Candidate) }
    }
}

impl TryFrom<String> for Part {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Part, InvalidName> {
        text.parse()
    }
}

impl From<Part> for String {
    fn from(part: Part) -> String {
        part.to_string()
    }
}

/// Reads `PART` and `RUN/PART`.
impl FromStr for PartAddress {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<PartAddress, InvalidName> {
        Ok(match text.split_once('/') {
            Some((run, part)) => PartAddress { run: Some(run.parse()?), part: part.parse()? },
            None => PartAddress { run: None, part: text.parse()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_read_as_it_is_written_with_its_run_or_without() {
        for text in ["c1", "@base"] {
            assert_eq!(text.parse::<Part>().expect("a part").to_string(), text);
        }
        let address: PartAddress = "fix/@base".parse().expect("an address");
        assert_eq!(address.run.as_ref().map(Name::as_str), Some("fix"));
        assert_eq!(address.part, Part::Base);
        for text in ["@results", "a/b/c", "/c1", "fix/", "@base/c1"] {
            assert!(text.parse::<PartAddress>().is_err(), "{text}");
        }
    }
}
