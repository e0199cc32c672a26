//! The second judging of a candidate: its change with the base's tests and commands put back.
//!
//! A candidate that changes what judges it proves little by passing. That it passes as well where
//! exactly those changes are put back is evidence; suspicion of the changes themselves is not.
use serde::{Deserialize, Serialize};

use crate::model::oid::Oid;
use crate::model::outcome::{self, StageResult};

/// `oracle.base-tests`: the candidates that are judged a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseTests {
    /// Those that change existing tests, or what decides which commands run.
    #[default]
    Changed,
    /// Those that add tests, too, which are then taken out.
    Always,
    /// None.
    Never,
}

/// The second judging of a candidate, with the base's tests and commands put back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct BaseTestsResult {
    /// The tree that is judged; none if it cannot be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<Oid>,
    /// The paths that are as in the base, or whose deciding part is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// The added paths that are taken out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_out: Vec<String>,
    /// The reason why a change cannot be put back by itself. The candidate then counts as one that
    /// passes only with its own tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The results of the commands, in order; empty if they were not run, because the candidate
    /// itself failed or was not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<StageResult>,
}

impl BaseTestsResult {
    /// True if every command ran on the tree and exited 0.
    pub fn passed(&self) -> bool {
        self.problem.is_none() && outcome::all_passed(&self.results)
    }

    /// The first command that failed.
    pub fn stopped_at(&self) -> Option<&StageResult> {
        outcome::first_failure(&self.results)
    }
}
