//! The findings of `git frites doctor`.
use serde::Serialize;

use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::world::WorldKind;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Health {
    /// All is well.
    #[serde(rename = "ok")]
    #[strum(serialize = "ok")]
    Good,
    /// Something optional is missing.
    Missing,
    /// git-frites cannot work until this is corrected.
    Broken,
}

/// One thing that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The thing that was checked, e.g. `git`.
    pub what: String,
    /// How much the finding matters.
    pub health: Health,
    /// The finding, in words.
    pub found: String,
    /// Hints that say what a person can do about the finding; empty if there is nothing to do.
    pub advice: Vec<String>,
}

/// A command that would judge, and the missing programs that it needs.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedCommand {
    #[serde(flatten)]
    pub command: OracleCommand,
    /// The missing programs, and the missing module of an interpreter: `python3 -m pytest`.
    pub missing: Vec<String>,
}

/// Build outputs that an earlier judging kept, and that the base's commands would start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartOutputs {
    /// The commit from which they were built.
    pub commit: Oid,
    /// True if they are the base's own; else they are an ancestor's.
    pub is_own: bool,
}

impl StartOutputs {
    /// A clause that says from which commit the outputs were built.
    pub fn in_words(self) -> String {
        match self.is_own {
            true => "the base's build outputs are kept".to_owned(),
            false => format!("the base starts from the build outputs of {}", self.commit.short()),
        }
    }
}

/// The findings about a repository.
#[derive(Clone, Debug, Default)]
pub struct ProjectCheckup {
    pub findings: Vec<Finding>,
    /// The kind of world in which commands would run, i.e. how they would be confined; `None` if
    /// the system cannot make the configured world.
    pub world: Option<WorldKind>,
    /// The commands that would judge.
    pub commands: Vec<CheckedCommand>,
    /// The entries at the top of the checkout that are seeds or contain seeds.
    pub seeds: Vec<String>,
    /// The disk space that all kept build outputs take, and the limit on it, in bytes.
    pub layers: (u64, u64),
    /// The kept build outputs from which judging would start.
    pub start: Option<StartOutputs>,
}

/// All findings.
#[derive(Clone, Debug)]
pub struct Checkup {
    /// The findings about the machine.
    pub machine: Vec<Finding>,
    /// The findings about the repository; `None` outside of one.
    pub project: Option<ProjectCheckup>,
}

impl Finding {
    fn new(what: &str, health: Health, found: impl Into<String>) -> Finding {
        Finding { what: what.to_owned(), health, found: found.into(), advice: Vec::new() }
    }

    /// A finding that all is well.
    pub fn good(what: &str, found: impl Into<String>) -> Finding {
        Finding::new(what, Health::Good, found)
    }

    /// A finding that something optional is missing.
    pub fn missing(what: &str, found: impl Into<String>) -> Finding {
        Finding::new(what, Health::Missing, found)
    }

    /// A finding that something keeps git-frites from working.
    pub fn broken(what: &str, found: impl Into<String>) -> Finding {
        Finding::new(what, Health::Broken, found)
    }

    /// Adds a hint.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Finding {
        self.advice.push(advice.into());
        self
    }
}

impl Checkup {
    /// The findings about the machine and the repository.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.machine.iter().chain(self.project.iter().flat_map(|project| &project.findings))
    }

    /// True if git-frites can work here.
    pub fn works(&self) -> bool {
        self.findings().all(|finding| finding.health != Health::Broken)
    }
}
