//! The verdict: what was judged, how it ended, and what was decided. The deciding is in `ranking`.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::blast::Blast;
use crate::model::candidate::State;
use crate::model::flag::Flag;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::{Outcome, Stage, StageResult};
use crate::model::ranking::Rank;

/// The table of DESIGN.md §3 "judge".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// One usable candidate, and it passed.
    Single,
    /// Exactly one of several passed.
    Tests,
    /// Several passed, or were not run because they could not rank first: ranked.
    Judge,
    /// A synthesised candidate passed within the ceiling.
    Synthesis,
    /// None passed; the closest is shown.
    NearMiss,
    /// Nothing to run: best effort by blast radius.
    NoOracle,
    /// No usable candidate.
    None,
}

impl DecisionKind {
    /// The word used in records and output.
    pub fn as_str(self) -> &'static str {
        match self {
            DecisionKind::Single => "single",
            DecisionKind::Tests => "tests",
            DecisionKind::Judge => "judge",
            DecisionKind::Synthesis => "synthesis",
            DecisionKind::NearMiss => "near-miss",
            DecisionKind::NoOracle => "no-oracle",
            DecisionKind::None => "none",
        }
    }

    /// Whether the recommended candidate passed the oracle.
    pub fn verified(self) -> bool {
        use DecisionKind::*;
        matches!(self, Single | Tests | Judge | Synthesis)
    }
}

impl fmt::Display for DecisionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One candidate as the decision sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// The candidate.
    pub candidate: Name,
    /// Its place in spawn order, the last tie-break.
    pub index: u32,
    /// Its state when it was judged.
    pub state: State,
    /// The capture that was judged; none if nothing was ever captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The tree that was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Oid>,
    /// The tree that was judged and may land, where that is another: without what was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_tree: Option<Oid>,
    /// How much the judged tree changes.
    #[serde(flatten)]
    pub blast: Blast,
    /// How much of what the others do it does, too; none if there is nothing to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// Why it could not be captured as it was: then it cannot win.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Where the tree's commands ran, if not for this candidate itself: one with the same tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<Name>,
    /// The passing candidates it was synthesised from; empty for an ordinary attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drew_on: Vec<Name>,
    /// Protected paths whose change was dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// What it does to what it is judged by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The commands' ends, in order; empty if they were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<StageResult>,
}

impl Entry {
    /// Whether it may win at all.
    pub fn usable(&self) -> bool {
        self.problem.is_none() && self.state.usable(self.blast.files)
    }

    /// Whether it may win, and no command was run on its tree.
    pub fn not_run(&self) -> bool {
        self.usable() && self.results.is_empty()
    }

    /// Whether every command ran and exited 0.
    pub fn passed(&self) -> bool {
        self.usable() && passed(&self.results)
    }

    /// Whether it passed only on a second try. Preparing may be retried: that is not the tree's doing.
    pub fn flaky(&self) -> bool {
        let flaky =
            |r: &StageResult| matches!(r.outcome, Outcome::Flaky { .. }) && r.stage != Stage::Setup;
        self.results.iter().any(flaky)
    }

    /// The first command that said no.
    pub fn stopped_at(&self) -> Option<&StageResult> {
        stopped_at(&self.results)
    }

    /// The tree that was judged, and that lands.
    pub fn judged(&self) -> Option<&Oid> {
        self.judged_tree.as_ref().or(self.tree.as_ref())
    }

    /// The names of the tests that failed, if they are known.
    pub fn failing_tests(&self) -> Option<&[String]> {
        failing_tests(&self.results)
    }
}

fn passed(results: &[StageResult]) -> bool {
    !results.is_empty() && results.iter().all(|r| r.outcome.passed())
}

fn stopped_at(results: &[StageResult]) -> Option<&StageResult> {
    results.iter().find(|r| !r.outcome.passed())
}

/// A report that names none, of a command that failed, tells nothing.
fn failing_tests(results: &[StageResult]) -> Option<&[String]> {
    let (result, report) = results.iter().find_map(|r| Some((r, r.tests.as_ref()?)))?;
    let told = report.problem.is_none() && (result.outcome.passed() || !report.failing.is_empty());
    told.then_some(report.failing.as_slice())
}

/// How the base itself is judged by the same commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The commands' ends, in order.
    pub results: Vec<StageResult>,
}

impl Baseline {
    /// Whether the base passes: then passing shows no regression, and nothing more.
    pub fn passed(&self) -> bool {
        passed(&self.results)
    }

    /// Whether the base, too, is stopped by that command.
    pub fn stops_at(&self, stage: Stage) -> Option<&StageResult> {
        stopped_at(&self.results).filter(|r| r.stage == stage)
    }

    /// Parts the failing tests of a candidate: those that fail on the base, too, those that pass there,
    /// and those that are not there. None without reports of both.
    pub fn compare(&self, entry: &Entry) -> Option<Comparison> {
        let base = self.results.iter().find_map(|r| r.tests.as_ref())?;
        let mut comparison = Comparison::default();
        for name in entry.failing_tests()? {
            let list = if base.failing.binary_search(name).is_ok() {
                &mut comparison.before
            } else if base.passing.binary_search(name).is_ok() {
                &mut comparison.broken
            } else {
                &mut comparison.new
            };
            list.push(name.clone());
        }
        Some(comparison)
    }
}

/// A candidate's failing tests, by what the base makes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// They pass on the base.
    pub broken: Vec<String>,
    /// They fail on the base, too.
    pub before: Vec<String>,
    /// The base has no such tests.
    pub new: Vec<String>,
}

/// Which candidate is recommended, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
    /// The row of the table.
    pub decision: DecisionKind,
    /// The winner, the closest, or the best effort; none only for [`DecisionKind::None`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended: Option<Name>,
    /// A sentence that a reviewer can act on.
    pub rationale: String,
    /// All usable candidates, best first.
    pub ranking: Vec<Name>,
    /// Those that passed, in spawn order.
    #[serde(default)]
    pub passed: Vec<Name>,
    /// Those that did not.
    #[serde(default)]
    pub failed: Vec<Name>,
    /// Those that nothing was run for.
    #[serde(default)]
    pub not_run: Vec<Name>,
}

/// How many commands were run, and how many were not, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Effort {
    /// Commands that were started, retries and those for the base included.
    pub ran: u64,
    /// Saved because another candidate has the same tree.
    pub saved_equal: u64,
    /// Saved because the outcome was known from an earlier judging.
    pub saved_cached: u64,
    /// Saved because the candidate could not be recommended any more; each counts as many commands as the
    /// oracle has, for how far it would have got is not known.
    pub saved_not_run: u64,
}

/// What an outcome depends on beside the tree and the commands, and how far it can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct JudgeSettings {
    /// What ranks those that passed.
    pub rank: Rank,
    /// How large a synthesis may be, as a multiple of what it drew on; 1.5 if none is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<f64>,
    /// Paths that were put back to the base's version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// How often a command that failed was tried again.
    #[serde(skip_serializing_if = "is_none_at_all")]
    pub retries: u32,
    /// Whether a pass after a failure counted as a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refuse_flaky: bool,
    /// The JUnit file, or directory of such files, that tests leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub junit: Option<String>,
    /// Judged in the worktrees themselves: whatever lay there had a part in the outcome.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
    /// Ignored build directories were kept from one candidate to the next.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// What git goes by (configuration, `info/` files) changed, and oracle commands ended after that: not all were
    /// judged alike, and one may have made another fail or pass.
    #[serde(rename = "disturbed", skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

impl JudgeSettings {
    /// Whether a pass on these terms tells that the tree passes.
    pub fn allow_verification(&self) -> bool {
        !self.in_place && !self.tainted
    }
}

fn is_none_at_all(n: &u32) -> bool {
    *n == 0
}

/// `verdict.toml`: the outcomes, the oracle that ran, the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// The record's format.
    pub version: u32,
    /// The run.
    pub run: Name,
    /// Its base.
    pub base: Oid,
    /// When it was judged.
    pub judged: jiff::Timestamp,
    /// Which candidate is recommended, and why.
    #[serde(flatten)]
    pub decision: Decision,
    /// The settings it was judged with.
    #[serde(default, rename = "terms")]
    pub settings: JudgeSettings,
    /// What that took.
    #[serde(default)]
    pub effort: Effort,
    /// What was run, in order; empty if nothing was found to run.
    #[serde(default)]
    pub oracle: Vec<OracleCommand>,
    /// How the base does; none if it was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Every candidate of the run, in spawn order.
    #[serde(default)]
    pub candidates: Vec<Entry>,
}

impl Verdict {
    /// The recommended candidate, if it passed.
    pub fn winner(&self) -> Option<&Name> {
        self.decision.recommended.as_ref().filter(|_| self.verified())
    }

    /// What the verdict says of a candidate.
    pub fn entry(&self, candidate: &Name) -> Option<&Entry> {
        self.candidates.iter().find(|e| e.candidate == *candidate)
    }

    /// Whether the recommended candidate is verified: it passed, in a pristine checkout, and undisturbed.
    pub fn verified(&self) -> bool {
        self.decision.decision.verified() && self.settings.allow_verification()
    }

    /// Whether this very tree passed so.
    pub fn tree_passed(&self, tree: &Oid) -> bool {
        self.settings.allow_verification()
            && self.candidates.iter().any(|e| e.judged() == Some(tree) && e.passed())
    }

    /// What was judged for a captured tree: the tree without the changes that were dropped; the tree
    /// itself if it was not judged.
    pub fn judged_for<'a>(&'a self, captured: &'a Oid) -> &'a Oid {
        let entry = self.candidates.iter().find(|e| e.tree.as_ref() == Some(captured));
        entry.and_then(Entry::judged).unwrap_or(captured)
    }
}

/// `outcome.toml`: one candidate's part of a verdict, judged by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartialVerdict {
    /// The record's format.
    pub version: u32,
    /// The run.
    pub run: Name,
    /// Its base.
    pub base: Oid,
    /// When it was judged.
    pub judged: jiff::Timestamp,
    /// The settings it was judged with.
    #[serde(default, rename = "terms")]
    pub settings: JudgeSettings,
    /// What was run, in order.
    #[serde(default)]
    pub oracle: Vec<OracleCommand>,
    /// The candidate.
    pub candidate: Entry,
}
