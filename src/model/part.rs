//! The parts of a run that can be judged separately: its base and its candidates. This file has the
//! terms on which the parts are judged on any machine, and the outcomes of the parts.
use std::fmt;
use std::mem::{self, Discriminant};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::base_tests::BaseTestsResult;
use crate::model::name::{BASE, InvalidName, Name};
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Outcome, Results, StageResult};
use crate::model::terms::{JudgeSettings, Terms};
use crate::model::verdict::Entry;

/// One part of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// `terms.toml`, which `shard open` writes. Each machine judges by these terms. But some settings
/// describe the machine, so each machine takes them from its own configuration: `[env]`,
/// `[limits]`, `oracle.warm`, and `[sandbox]` without its mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SharedTerms {
    /// The record's format.
    pub version: u32,
    pub run: Name,
    /// The run's base.
    pub base: Oid,
    /// The time at which the terms were written.
    pub opened: jiff::Timestamp,
    /// The round of judging that began with these terms.
    pub round: u32,
    /// The time limit of each command, in milliseconds.
    pub timeout_ms: u64,
    pub seeds: SharedSeeds,
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
    /// The commit of the capture.
    pub commit: Oid,
    /// The captured tree.
    pub tree: Oid,
    /// The other candidates that have this tree, so that the outcome counts for them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<Name>,
}

impl TreeToJudge {
    /// True if the outcome of this tree counts for this candidate.
    pub fn is_judged_for(&self, candidate: &Name) -> bool {
        self.candidate == *candidate || self.same.contains(candidate)
    }
}

impl SharedTerms {
    /// The parts to judge: first the candidates, then the base. The decision depends on the base
    /// only if a candidate passed.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let candidates = self.trees.iter().map(|tree| Part::Candidate(tree.candidate.clone()));
        candidates.chain([Part::Base])
    }

    /// The capture to judge for a candidate; `None` if it is judged under another candidate's name,
    /// or not at all.
    pub fn tree_of(&self, candidate: &Name) -> Option<&TreeToJudge> {
        self.trees.iter().find(|tree| tree.candidate == *candidate)
    }

    /// The terms of the judging.
    pub fn terms(&self) -> Terms {
        let seeds = Some(self.seeds.digest.clone());
        Terms { seeds, settings: self.settings.clone(), oracle: self.oracle.clone() }
    }

    /// True if outcomes on the `other` terms are valid on these terms.
    pub fn ask_the_same_as(&self, other: &SharedTerms) -> bool {
        (self.base, self.timeout_ms) == (other.base, other.timeout_ms)
            && self.seeds == other.seeds
            && self.terms().first_difference(&other.terms()).is_none()
    }
}

/// The place where commands ran. It is recorded for people; no decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// The name of the host.
    pub host: String,
    /// The operating system and the processor, such as `linux x86_64`.
    pub platform: String,
    /// The version of git.
    pub git: String,
    /// The version of git-frites.
    pub git_frites: String,
}

/// `outcome.toml`: the outcome of one part, with the time, place and terms of its judging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartOutcome {
    /// The record's format.
    pub version: u32,
    pub run: Name,
    /// The run's base.
    pub base: Oid,
    /// The time of the judging.
    pub judged: jiff::Timestamp,
    /// The round of judging; see [`crate::model::verdict::Verdict::round`].
    #[serde(default)]
    pub round: u32,
    /// The machine that judged; `None` in old records.
    pub machine: Option<Machine>,
    /// The terms of the judging.
    #[serde(flatten)]
    pub terms: Terms,
    /// The candidate that was judged; `None` if it was the base.
    pub candidate: Option<Entry>,
    /// The results of the commands on the base, in order.
    #[serde(default, rename = "results", skip_serializing_if = "Vec::is_empty")]
    pub on_base: Results,
}

impl PartOutcome {
    pub fn part(&self) -> Part {
        self.candidate.as_ref().map_or(Part::Base, |entry| Part::Candidate(entry.candidate.clone()))
    }

    /// The results of the commands, in order, without the results of a second judging
    /// (`base_tests.rs`).
    pub fn results(&self) -> &Results {
        self.candidate.as_ref().map_or(&self.on_base, |entry| &entry.results)
    }

    /// The results of the commands, in order, then the results of a second judging
    /// (`base_tests.rs`).
    pub fn all_results(&self) -> impl Iterator<Item = &StageResult> {
        let second = self.second().into_iter().flat_map(|second| &second.results.0);
        self.results().iter().chain(second)
    }

    /// The second judging of a candidate.
    fn second(&self) -> Option<&BaseTestsResult> {
        self.candidate.as_ref()?.base_tests.as_ref()
    }

    /// The reason why these results cannot come from a judging on these terms; `None` if they can.
    /// Each command has one result on each tree, and the terms limit the number of its tries.
    pub fn excess(&self) -> Option<&'static str> {
        let most = self.terms.oracle.len();
        let trees = self.second().map_or(0, |second| second.trees().count());
        let second = self.second().map_or(0, |second| second.results.len());
        if self.results().len() > most || second > most.saturating_mul(trees) {
            return Some("it has more results than its terms allow");
        }
        let retries = self.terms.settings.commands.retries as usize;
        let has_more_tries = self.all_results().any(|result| result.earlier.len() > retries);
        has_more_tries.then_some("it has more tries than its terms allow")
    }

    /// How the part ended, in a few words: `passed`, or the command that did not pass.
    pub fn words(&self) -> String {
        if let Some(problem) = self.candidate.as_ref().and_then(|entry| entry.problem.clone()) {
            return problem;
        }
        match self.results().stopped_at() {
            Some(failed) => format!("{}: {}", failed.stage, failed.outcome),
            None if self.results().is_empty() => "nothing was run".into(),
            None if self.second().is_some_and(BaseTestsResult::is_not_compared) => {
                "passed, not compared with the base".into()
            }
            None if self.second().is_some_and(|second| !second.passed()) => {
                "passed with its own tests only".into()
            }
            None => "passed".into(),
        }
    }

    /// True if both outcomes have the same result for each command, as far as decisions depend on
    /// the results.
    pub fn agrees_with(&self, other: &PartOutcome) -> bool {
        let [own, others] = [self, other].map(|part| {
            part.all_results().map(|result| (result.stage, deciding_end(&result.outcome)))
        });
        own.eq(others)
    }

    /// Describes this outcome and a later one that disagrees with it.
    pub fn disagreement(&self, later: &PartOutcome) -> String {
        let found = |outcome: &PartOutcome| {
            let host = outcome.machine.as_ref().map_or("?", |machine| &machine.host);
            format!("{} ({host})", outcome.words())
        };
        format!(
            "{}/{}: it was judged twice, and the outcomes disagree: first {}, then {}; the first one stays",
            self.run,
            self.part(),
            found(self),
            found(later)
        )
    }
}

/// The part of a command's end on which decisions depend: all failures count as the same.
fn deciding_end(outcome: &Outcome) -> Discriminant<Outcome> {
    match outcome {
        Outcome::Failed { .. }
        | Outcome::Signalled { .. }
        | Outcome::WroteTooMuch { .. }
        | Outcome::CouldNotStart { .. } => mem::discriminant(&Outcome::TimedOut),
        other => mem::discriminant(other),
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
