//! The terms on which a run is judged in parts, on whatever machines.
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::part::Part;
use crate::model::verdict::JudgeSettings;

/// `terms.toml`: what `judge --open` wrote. Each machine judges by it, and never by its own
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

impl SharedTerms {
    /// The parts to judge: the candidates, and the base at last, because nothing is decided by it.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let candidates = self.trees.iter().map(|tree| Part::Candidate(tree.candidate.clone()));
        candidates.chain([Part::Base])
    }

    /// The capture to judge for a candidate; none if it is judged under another's name, or not at
    /// all.
    pub fn tree_of(&self, candidate: &Name) -> Option<&TreeToJudge> {
        self.trees.iter().find(|tree| tree.candidate == *candidate)
    }

    /// The time limit of each command.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// True if outcomes that were found on these terms answer the same question as on others.
    pub fn ask_the_same_as(&self, other: &SharedTerms) -> bool {
        let question = |terms: &SharedTerms| {
            let commands: Vec<_> =
                terms.oracle.iter().map(|c| (c.stage, c.command.clone())).collect();
            (terms.base, terms.timeout_ms, terms.seeds.clone(), terms.settings.clone(), commands)
        };
        question(self) == question(other)
    }
}
