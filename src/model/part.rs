//! The parts of a run that can be judged by themselves, its base and its candidates, and the terms on
//! which they are judged, on whatever machines.
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::name::{BASE, InvalidName, Name};
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::terms::{JudgeSettings, Terms};

/// One part of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Part {
    /// The candidate of that name.
    Candidate(Name),
    /// The run's base.
    Base,
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

/// `terms.toml`: what `shard open` wrote. Each machine judges by it, and never by its own
/// configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SharedTerms {
    /// The record's format.
    pub version: u32,
    /// The run.
    pub run: Name,
    /// The run's base.
    pub base: Oid,
    /// The time at which they were written.
    pub opened: jiff::Timestamp,
    /// The round of judging that they began.
    pub round: u32,
    /// The time limit of each command, in milliseconds.
    pub timeout_ms: u64,
    /// The seeds.
    pub seeds: SharedSeeds,
    /// The settings.
    #[serde(rename = "terms")]
    pub settings: JudgeSettings,
    /// The commands, in order.
    pub oracle: Vec<OracleCommand>,
    /// The candidates to judge, one for each distinct tree, in spawn order.
    pub trees: Vec<TreeToJudge>,
}

/// The seeds that each machine needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SharedSeeds {
    /// `seed.copy`.
    pub copy: Vec<String>,
    /// `seed.link`.
    pub link: Vec<String>,
    /// The paths that these patterns matched, with replacement characters where they are not UTF-8.
    pub paths: Vec<String>,
    /// A digest of the paths and their contents.
    pub digest: String,
}

/// A captured tree to judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TreeToJudge {
    /// The candidate under whose name the outcome is stored.
    pub candidate: Name,
    /// The number of its capture.
    pub iteration: u32,
    /// Its capture.
    pub commit: Oid,
    /// The captured tree.
    pub tree: Oid,
    /// The other candidates whose trees are judged by this outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<Name>,
}

impl TreeToJudge {
    /// True if it is the tree of this candidate.
    pub fn is_judged_for(&self, candidate: &Name) -> bool {
        self.candidate == *candidate || self.same.contains(candidate)
    }
}

impl SharedTerms {
    /// The parts to judge: the candidates, and the base at last, because nothing is decided by it.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let candidates = self.trees.iter().map(|tree| Part::Candidate(tree.candidate.clone()));
        candidates.chain([Part::Base])
    }

    /// The capture to judge for a candidate; `None` if it is judged under another's name, or not at
    /// all.
    pub fn tree_of(&self, candidate: &Name) -> Option<&TreeToJudge> {
        self.trees.iter().find(|tree| tree.candidate == *candidate)
    }

    /// The time limit of each command.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// The terms of the judging.
    pub fn terms(&self) -> Terms {
        let seeds = Some(self.seeds.digest.clone());
        Terms { seeds, settings: self.settings.clone(), oracle: self.oracle.clone() }
    }

    /// True if outcomes judged on the `other` terms are valid on these.
    pub fn ask_the_same_as(&self, other: &SharedTerms) -> bool {
        (self.base, self.timeout_ms) == (other.base, other.timeout_ms)
            && self.seeds == other.seeds
            && self.terms().first_difference(&other.terms()).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_read_as_it_is_written() {
        for text in ["c1", "@base"] {
            assert_eq!(text.parse::<Part>().expect("a part").to_string(), text);
        }
        for text in ["@results", "a/b", "", "@base/c1"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
