//! The verdict: the candidates that were judged, their results, and the decision, which
//! `decision.rs` makes.
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::model::base_tests::BaseTestsResult;
use crate::model::blast::Blast;
use crate::model::candidate::{CommandEnd, State};
use crate::model::cross::{CrossResult, Proof};
use crate::model::error_line::tells_of_lack;
use crate::model::flag::Flag;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::{Outcome, Results, Stage, StageResult};
use crate::model::rank::Rank;
use crate::model::run_costs::RunCosts;
use crate::model::separation::Separation;
use crate::model::terms::Terms;
use crate::model::usage::UsageSum;

/// The kind of a decision (docs/DECIDING.md, "The decisions").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum DecisionKind {
    /// There is one usable candidate, and it passed.
    Single,
    /// Exactly one of several candidates passed.
    Tests,
    /// Several candidates passed, or one passed and others were not run. The ranking decides.
    Judge,
    /// A synthesis (a candidate that was made from others) passed, and is not larger than
    /// `synthesis.ceiling` allows.
    Synthesis,
    /// The best candidate passes only with its own tests or commands, not with the base's.
    OwnTests,
    /// No candidate passed. The best candidate's commands exited 0, although its tests' report has
    /// failures.
    ReportedFailures,
    /// No candidate passed. The best candidate's commands exited 0, although its tests' report
    /// lacks tests of the base.
    MissingTests,
    /// The base and every usable candidate fail in the same command before the tests. The candidate
    /// that came closest is shown.
    BrokenBase,
    /// No candidate passed. The candidate that came closest is shown.
    NearMiss,
    /// A candidate passed, but nothing tests its change: no test ran for it or for the base, there
    /// is no test command, or the test command does not enter the project that it changes.
    NoTests,
    /// There was no command to run. The first candidate in the ranking is shown.
    NoOracle,
    /// There are two cases. A missing outcome could change the recommendation. Or no candidate
    /// passed, and for at least one of them a command could not tell whether it is right
    /// ([`Outcome::CannotTell`], exit code 125). The best candidate so far is shown.
    Undecided,
    /// There is no usable candidate.
    None,
}

impl DecisionKind {
    /// True if the recommended candidate passed the oracle.
    pub fn verified(self) -> bool {
        use DecisionKind::*;
        matches!(self, Single | Tests | Judge | Synthesis)
    }
}

/// One candidate as the decision sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    pub candidate: Name,
    /// The candidate's position in spawn order, the last tie-break.
    pub index: u32,
    /// The candidate's state when it was judged.
    pub state: State,
    /// The agent or the command that made the candidate's present files, perhaps in a further
    /// round; `None` if a person did.
    pub maker: Option<String>,
    /// The end of the candidate's own command.
    #[serde(flatten)]
    pub end: CommandEnd,
    /// True if a person must start the candidate's command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_started: bool,
    /// True if the command was ended, or not started, because enough other candidates had passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The iteration that was judged; `None` if nothing was ever captured.
    pub iteration: Option<u32>,
    /// The tree that was captured.
    pub tree: Option<Oid>,
    /// The tree that was judged and may land, if it differs from the captured one because changes
    /// were dropped.
    pub judged_tree: Option<Oid>,
    /// The size of the judged tree's change.
    #[serde(flatten)]
    pub blast: Blast,
    /// The overlap of the change with the other candidates' changes, from 0 to 1; `None` if there
    /// is no other candidate.
    pub agreement: Option<f64>,
    /// The reason why the worktree could not be captured. Such a candidate cannot win.
    pub problem: Option<String>,
    /// If the commands did not run for this candidate, because another candidate has the same tree:
    /// that other candidate. `None` if the commands ran for this candidate.
    pub same_as: Option<Name>,
    /// If the candidate changes files of a project that the test commands do not enter: the
    /// manifest of that project. Changed documents and tests do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
    /// The passing candidates from which this one was synthesised; empty for an ordinary attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drew_on: Vec<Name>,
    /// Protected paths whose change was dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// The changes that a reviewer should look at.
    #[serde(default)]
    pub flags: Vec<Flag>,
    /// The results of the commands, in order; empty if they were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Results,
    /// If the results over the base's layers differ from the cold results: the difference and its
    /// cause, in words. The decision uses the cold results.
    pub stale: Option<String>,
    /// The second judging, with the base's tests and commands put back; `None` if the candidate
    /// does not change any file that needs it.
    pub base_tests: Option<BaseTestsResult>,
    /// The results of the other candidates' tests on the candidate, and of its tests on the other
    /// candidates; `None` if tests were not run across candidates.
    pub cross: Option<CrossResult>,
    /// The results of the candidate's tests on the base; `None` if they were not judged there.
    pub proof: Option<Proof>,
    /// The usage of the candidate's agents; `None` if none of them has a known format of reports.
    pub usage: Option<UsageSum>,
    /// How the candidate's commands were kept apart from other files; `None` if there was no
    /// command, or if this is not known.
    pub separation: Option<Separation>,
}

/// The problem of a candidate whose worktree was removed by hand.
pub const GONE: &str = "its worktree is gone";

impl Entry {
    /// Text about the candidate with the cause of its state in brackets, if the cause is known.
    pub fn with_cause(&self, words: &str) -> String {
        match self.end.cause(self.state) {
            Some(cause) => format!("{words} ({cause})"),
            None => words.to_owned(),
        }
    }

    /// The reason why the agent of a `limited` candidate could not go on.
    pub fn why_limited(&self) -> String {
        match self.end.fault {
            Some(fault) => format!("its agent {fault}"),
            None => self.with_cause("its agent is at its limit"),
        }
    }

    /// True if the candidate's worktree was removed by hand before the first capture.
    pub fn is_gone(&self) -> bool {
        self.problem.as_deref() == Some(GONE)
    }

    /// True if the candidate can win at all.
    pub fn usable(&self) -> bool {
        self.problem.is_none() && self.state.usable(self.blast.files)
    }

    /// True if the candidate's files are those of the base, and the attempt ended well or a person
    /// works on the candidate.
    pub fn changed_nothing(&self) -> bool {
        let is_known = self.problem.is_none() && !self.is_gone() && self.dropped.is_empty();
        let has_ended_well = matches!(self.state, State::Open | State::Succeeded | State::Empty);
        is_known && has_ended_well && self.blast.files == 0
    }

    /// True if the candidate can win, and no command was run on its tree.
    pub fn not_run(&self) -> bool {
        self.usable() && self.results.is_empty()
    }

    /// True if the candidate can win, and in the first or in the second judging a command could not
    /// tell whether the candidate is right (exit code 125).
    pub fn skipped(&self) -> bool {
        self.usable() && (self.results.cannot_tell() || self.skipped_with_base_tests().is_some())
    }

    /// True if the candidate can win, and did not pass because the tests' report contradicts an
    /// exit code of 0. A candidate that also fails in the second judging, with the base's tests,
    /// cannot win.
    pub fn is_contradicted(&self) -> bool {
        let second = self.base_tests.as_ref().filter(|second| second.failed());
        let fails = second.is_some_and(|second| !second.results.is_contradicted());
        self.usable() && self.results.is_contradicted() && !fails
    }

    /// The command that could not tell (exit code 125) in the second judging. `None` if there is no
    /// such command, or if the candidate did not pass with its own tests.
    pub fn skipped_with_base_tests(&self) -> Option<&StageResult> {
        if !self.results.passed() {
            return None;
        }
        let second = self.base_tests.as_ref()?;
        second.results.stopped_at().filter(|result| result.outcome == Outcome::CannotTell)
    }

    /// True if the candidate can win, and every command ran and exited 0. In the second judging, no
    /// command may have exited with 125 (cannot tell).
    pub fn passed(&self) -> bool {
        self.usable() && self.results.passed() && self.skipped_with_base_tests().is_none()
    }

    /// True if the candidate passed, but perhaps only because of its own tests or commands. Either
    /// it failed with the base's tests and commands, or these could not be put back.
    pub fn passed_own_tests_only(&self) -> bool {
        let second = self.base_tests.as_ref();
        self.passed() && second.is_some_and(|second| !second.passed() && !second.is_pending())
    }

    /// True if the candidate passed only with its own tests or commands. Also true if it was not
    /// run and can pass only with these.
    pub fn own_tests_only_at_best(&self) -> bool {
        let fails = |second: &BaseTestsResult| second.problem.is_some() || second.failed();
        self.passed_own_tests_only()
            || self.not_run() && self.base_tests.as_ref().is_some_and(fails)
    }

    /// True if the candidate passed, and not only with its own tests or commands.
    pub fn passed_base_tests_too(&self) -> bool {
        self.passed() && !self.passed_own_tests_only()
    }

    /// True if the candidate passed, and no claim is left to confirm ([`Entry::is_claim`]). If the
    /// candidate needs a second judging, it must also have passed that.
    pub fn verified(&self) -> bool {
        self.passed_base_tests_too() && !self.is_claim()
    }

    /// The reason why the base's tests say nothing about the candidate; `None` if they say
    /// something.
    pub fn why_untested(&self, base: Option<&Baseline>) -> Option<String> {
        match &self.untested {
            Some(manifest) => Some(format!(
                "it changes the project of '{manifest}', which no test command enters"
            )),
            None if self.results.ran_no_test() => Some("the test command ran no test".to_owned()),
            None if base.is_some_and(|base| base.results.ran_no_test() && !base.inherited) => {
                Some("no test ran on the base, and a candidate's own tests do not count".to_owned())
            }
            None => None,
        }
    }

    /// True if any result was found over the layers of the base's commands, and not confirmed
    /// without them. Also true if the candidate passed, but has not been judged without its added
    /// tests yet.
    pub fn is_claim(&self) -> bool {
        let mut second = self.base_tests.iter();
        self.is_pending()
            || self.results.is_claim()
            || second.any(|second| second.results.is_claim())
    }

    /// True if the candidate passed, and its second judging was not needed so far.
    pub fn is_pending(&self) -> bool {
        self.results.passed() && self.base_tests.as_ref().is_some_and(BaseTestsResult::is_pending)
    }

    /// True if a command passed only after a retry. Retries of the setup do not count: the tree is
    /// not their cause.
    pub fn flaky(&self) -> bool {
        let flaky =
            |r: &StageResult| matches!(r.outcome, Outcome::Flaky { .. }) && r.stage != Stage::Setup;
        let second = self.base_tests.iter().flat_map(|second| &second.results.0);
        self.results.iter().chain(second).any(flaky)
    }

    /// The trees of the second judging, and the reason why it does not fully compare the candidate
    /// with the base, if there is such a reason. `None` if there is no second judging.
    pub fn second_judging(&self) -> Option<(Vec<Oid>, Option<&str>)> {
        let second = self.base_tests.as_ref()?;
        Some((second.trees().copied().collect(), second.problem.as_deref()))
    }

    /// The tree that was judged and may land.
    pub fn judged(&self) -> Option<&Oid> {
        self.judged_tree.as_ref().or(self.tree.as_ref())
    }
}

/// The results of the oracle's commands on the base itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The results of the commands, in order.
    pub results: Results,
    /// True if the results were found with build outputs of an earlier judging, and not confirmed
    /// without them. The outputs can be those of the base or of its ancestor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherited: bool,
}

impl Baseline {
    /// Makes the results final, because nothing has contradicted them. Results that were found with
    /// build outputs of an earlier judging stay claims.
    pub fn settle(&mut self) {
        if !self.inherited {
            self.results.0.iter_mut().for_each(|result| result.warm = false);
        }
    }

    /// True if the base's report may lack tests, because the base was judged over build outputs of
    /// an earlier judging. A build tool may have found that nothing has changed, and run no test.
    ///
    /// This is true only if two more conditions hold: a candidate has passed; and the base's report
    /// has fewer tests than the report of a candidate, or than `cold_tests`, the number of tests
    /// without outputs.
    pub fn may_lack_tests(&self, entries: &[Entry], cold_tests: u64) -> bool {
        let own = self.results.reported_tests();
        self.inherited
            && self.results.is_claim()
            && entries.iter().any(Entry::passed)
            && (cold_tests > own || entries.iter().any(|e| e.results.reported_tests() > own))
    }

    /// The command that could not be started on the base, nor on any candidate that got as far as
    /// this command. Its outcomes say nothing about the candidates. `None` if no candidate got that
    /// far.
    pub fn starts_nowhere(&self, entries: &[Entry]) -> Option<&StageResult> {
        let stopped = self.results.stopped_at().filter(|r| r.outcome.could_not_start())?;
        let all = entries.iter().flat_map(|entry| &entry.results.0);
        let there = all.filter(|r| r.stage == stopped.stage && r.outcome != Outcome::Skipped);
        let mut there = there.peekable();
        there.peek()?;
        there.all(|r| r.outcome.could_not_start()).then_some(stopped)
    }

    /// The setup, build or lint command in which the base and each of these candidates fail: its
    /// outcomes say nothing about the candidates.
    pub fn fails_like_all(&self, candidates: &[&Entry]) -> Option<&StageResult> {
        let stopped = self.results.stopped_at()?;
        // If the command itself says that it cannot tell (exit 125), it has not failed.
        let is_skipped = stopped.outcome == Outcome::CannotTell && stopped.obstacle.is_none();
        if stopped.stage >= Stage::Test || is_skipped {
            return None;
        }
        let stage = |entry: &Entry| entry.results.stopped_at().map(|r| r.stage);
        candidates.iter().all(|entry| stage(entry) == Some(stopped.stage)).then_some(stopped)
    }

    /// The test command, if the base or the machine is at fault for its failures, not the
    /// candidates. The command fails on the base and on each of these candidates with the same
    /// error line, and no test passed anywhere. The error line also names something missing. This
    /// is not required if the command timed out on the base, or if a fault of the place where it
    /// ran is known ([`Obstacle`](crate::model::outcome::Obstacle)).
    pub fn lacks_on_all(&self, candidates: &[&Entry]) -> Option<&StageResult> {
        let stopped = self.stops_at(Stage::Test)?;
        let tells = stopped.obstacle.is_some() || stopped.outcome == Outcome::TimedOut;
        if !tells && !stopped.error.as_deref().is_some_and(tells_of_lack) {
            return None;
        }
        let mut of_candidates = candidates.iter().map(|entry| entry.results.stopped_at());
        of_candidates.all(|result| result.is_some_and(|r| r.fails_like(stopped))).then_some(stopped)
    }

    /// The failure of the base, if it is in this stage.
    pub fn stops_at(&self, stage: Stage) -> Option<&StageResult> {
        self.results.stopped_at().filter(|r| r.stage == stage)
    }
}

/// A candidate that another rule of ranking would recommend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OtherPick {
    /// The rule.
    pub rank: Rank,
    /// The candidate that the rule would recommend.
    pub candidate: Name,
    /// The figures by which the rule ranks that candidate and the recommended candidate.
    pub figures: String,
}

impl fmt::Display for OtherPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--rank {} would recommend {} ({})", self.rank, self.candidate, self.figures)
    }
}

/// The recommended candidate, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
    pub decision: DecisionKind,
    /// Depending on the kind of decision: the winner, the candidate that came closest to passing,
    /// the first in the ranking, or the best one so far. `None` only for [`DecisionKind::None`].
    pub recommended: Option<Name>,
    /// A sentence on which a reviewer can act.
    pub rationale: String,
    /// The candidates that other rules of ranking would recommend instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_picks: Vec<OtherPick>,
    /// All usable candidates, best first. A synthesis that passed is left out in these cases: it is
    /// larger than `synthesis.ceiling` allows, has the tree of another candidate, passed only with
    /// its own tests, or leaves out tests.
    pub ranking: Vec<Name>,
    /// The candidates that passed, in spawn order.
    #[serde(default)]
    pub passed: Vec<Name>,
    /// The candidates that passed only with their own tests or commands, in spawn order.
    #[serde(default)]
    pub own_tests: Vec<Name>,
    /// The candidates that failed, in spawn order.
    #[serde(default)]
    pub failed: Vec<Name>,
    /// The candidates for which a command could not tell, perhaps only in the second judging, in
    /// spawn order.
    #[serde(default)]
    pub skipped: Vec<Name>,
    /// The candidates for which nothing was run, in spawn order.
    #[serde(default)]
    pub not_run: Vec<Name>,
    /// The candidates whose missing outcome could change the recommendation, in the order in which
    /// to judge them; only for [`DecisionKind::Undecided`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Name>,
}

/// The number of commands that were run, and for each reason, the number of commands that did not
/// have to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Effort {
    /// Commands that were started for candidates, including retries.
    pub ran: u64,
    /// Commands that were started for the base, including retries. Older records count them in
    /// `ran`.
    #[serde(default)]
    pub ran_base: u64,
    /// Commands that did not have to run because another candidate has the same tree.
    pub saved_equal: u64,
    /// Commands that did not have to run because their results were cached.
    pub saved_cached: u64,
    /// Commands that did not have to run because the candidate could not be recommended any more.
    /// Each such candidate counts as all commands of the oracle, because it is not known how many
    /// would have run.
    pub saved_not_run: u64,
}

impl Effort {
    /// Counts more commands.
    pub fn add(&mut self, more: Effort) {
        self.ran += more.ran;
        self.ran_base += more.ran_base;
        self.saved_equal += more.saved_equal;
        self.saved_cached += more.saved_cached;
        self.saved_not_run += more.saved_not_run;
    }
}

/// The doubt, in words, if these attempts could change files that the commands read.
pub fn doubt_about_attempts<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Option<&'static str> {
    let weakest = entries.into_iter().filter_map(|entry| entry.separation).min();
    weakest.and_then(Separation::in_words)
}

/// `verdict.toml`: the outcomes, the oracle that ran, the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// The record's format.
    pub version: u32,
    pub run: Name,
    /// The run's base.
    pub base: Oid,
    /// The time of the judging.
    pub judged: jiff::Timestamp,
    /// The number of times that the whole run was judged. It shows which stored outcomes came after
    /// the last judging of the whole run. The time cannot show this, because clocks of machines
    /// differ.
    #[serde(default)]
    pub round: u32,
    /// The terms of the judging. If they have no command, there was nothing to run.
    #[serde(flatten)]
    pub terms: Terms,
    /// The recommended candidate, and the reason for it.
    #[serde(flatten)]
    pub decision: Decision,
    /// The reason why `run` made no synthesis; `None` if it made one, or if `judge` made the
    /// verdict.
    pub no_synthesis: Option<String>,
    /// The numbers of commands that were run, and of commands that did not have to run.
    #[serde(default)]
    pub effort: Effort,
    /// The times that decided whether to judge with the base's build outputs; `None` if no times
    /// were compared.
    pub costs: Option<RunCosts>,
    /// The results of the base; `None` if it was not judged, as with `--in-place`.
    pub baseline: Option<Baseline>,
    /// Every candidate of the run, in spawn order.
    #[serde(default)]
    pub candidates: Vec<Entry>,
}

impl Verdict {
    /// The recommended candidate, if it is verified.
    pub fn winner(&self) -> Option<&Name> {
        if self.verified() { self.decision.recommended.as_ref() } else { None }
    }

    /// The doubt to name in the verdict if attempts could change files that the commands read.
    /// `None` if no such possibility is known.
    pub fn doubt_about_attempts(&self) -> Option<&'static str> {
        doubt_about_attempts(&self.candidates)
    }

    pub fn entry(&self, candidate: &Name) -> Option<&Entry> {
        self.candidates.iter().find(|e| e.candidate == *candidate)
    }

    /// True if the recommended candidate passed in a clean checkout, and nothing else could have
    /// influenced the results.
    pub fn verified(&self) -> bool {
        self.decision.decision.verified() && self.terms.settings.can_verify()
    }

    /// True if passes do not count yet, because the base has no results with which they could be
    /// compared. (A verdict of an older version may have been decided without a base.)
    pub fn lacks_base(&self) -> bool {
        let is_open = self.decision.decision == DecisionKind::Undecided;
        is_open && self.baseline.is_none() && self.terms.settings.needs_base()
    }

    /// True if exactly this tree passed, and the pass counts as verified.
    pub fn tree_passed(&self, tree: &Oid) -> bool {
        self.terms.settings.can_verify()
            && !self.lacks_base()
            && self.candidates.iter().any(|entry| {
                entry.judged() == Some(tree)
                    && entry.verified()
                    && entry.why_untested(self.baseline.as_ref()).is_none()
            })
    }

    /// The tree that was judged for a captured tree: the captured tree without the dropped changes,
    /// or the captured tree itself if it was not judged.
    pub fn judged_for<'a>(&'a self, captured: &'a Oid) -> &'a Oid {
        let entry = self.candidates.iter().find(|e| e.tree.as_ref() == Some(captured));
        entry.and_then(Entry::judged).unwrap_or(captured)
    }
}
