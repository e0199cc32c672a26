//! The verdict: a pure function from stored outcomes to the recommended candidate and a sentence.
//!
//! Nothing here reads a clock, a file or a hash map: the same records give the same verdict, in
//! the same words, whatever order the commands finished in (SCOREBOARD row 27).
use std::fmt;

use serde::{Deserialize, Serialize};

use super::blast::Blast;
use super::candidate::State;
use super::name::Name;
use super::oid::Oid;
use super::oracle::OracleCommand;
use super::outcome::{Outcome, Stage, StageResult};

/// The table of DESIGN.md §3 "judge".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// One usable candidate, and it passed.
    Single,
    /// Exactly one of several passed.
    Tests,
    /// Several passed; ranked.
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
    /// The tree that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Oid>,
    /// How much it changes.
    #[serde(flatten)]
    pub blast: Blast,
    /// Why it could not be captured as it was: then it cannot win.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Where the tree's commands ran, if not for this candidate itself: one with the same tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<Name>,
    /// The passing candidates it was synthesised from; empty for an ordinary attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drew_on: Vec<Name>,
    /// The commands' ends, in order; empty if it was not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<StageResult>,
}

impl Entry {
    /// Whether it may win at all.
    pub fn usable(&self) -> bool {
        self.problem.is_none() && self.state.usable(self.blast.files)
    }

    /// Whether every command ran and exited 0.
    pub fn passed(&self) -> bool {
        self.usable() && !self.results.is_empty() && self.results.iter().all(|r| r.outcome.passed())
    }

    /// Whether it passed only on a second try.
    pub fn flaky(&self) -> bool {
        self.results.iter().any(|r| r.outcome == Outcome::Flaky)
    }

    /// The first command that said no.
    pub fn stopped_at(&self) -> Option<&StageResult> {
        self.results.iter().find(|r| !r.outcome.passed())
    }

    /// How many commands passed before one did not: how far it got.
    fn reached(&self) -> usize {
        self.results.iter().take_while(|r| r.outcome.passed()).count()
    }
}

/// What the ranking may be told from outside the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// `synthesis.ceiling`: how large a synthesised winner may be, as a multiple of the combined
    /// size of the passing candidates that it drew on.
    pub ceiling: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { ceiling: 1.5 }
    }
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
    /// What was run, in order; empty if nothing was found to run.
    #[serde(default)]
    pub oracle: Vec<OracleCommand>,
    /// Every candidate of the run, in spawn order.
    #[serde(default)]
    pub candidates: Vec<Entry>,
}

impl Verdict {
    /// The recommended candidate, if it passed.
    pub fn winner(&self) -> Option<&Name> {
        self.decision.recommended.as_ref().filter(|_| self.decision.decision.verified())
    }

    /// What the verdict says of a candidate.
    pub fn entry(&self, candidate: &Name) -> Option<&Entry> {
        self.candidates.iter().find(|e| e.candidate == *candidate)
    }

    /// Whether this very tree passed.
    pub fn tree_passed(&self, tree: &Oid) -> bool {
        self.candidates.iter().any(|e| e.tree.as_ref() == Some(tree) && e.passed())
    }
}

/// Decides over a run's outcomes.
///
/// `entries` may come in any order. Whether there was an oracle is read off the records: a usable
/// candidate without any result means that nothing was run.
pub fn decide(entries: &[Entry], rules: Rules) -> Decision {
    let mut usable: Vec<&Entry> = entries.iter().filter(|e| e.usable()).collect();
    usable.sort_by_key(|e| {
        let passed = e.passed();
        // Those that passed: clean before flaky. The others: the furthest first. Then, for both,
        // the smallest, and spawn order.
        let reached = if passed { 0 } else { usize::MAX - e.reached() };
        (!passed, passed && e.flaky(), reached, e.blast, e.index)
    });
    let passing: Vec<&Entry> = usable.iter().copied().filter(|e| e.passed()).collect();
    let mut ranking: Vec<Name> = usable.iter().map(|e| e.candidate.clone()).collect();

    let Some(&first) = usable.first() else {
        return Decision { decision: DecisionKind::None, recommended: None, rationale: no_usable(entries), ranking };
    };
    let (decision, winner, rationale) = if usable.iter().all(|e| e.results.is_empty()) {
        (DecisionKind::NoOracle, first, no_oracle(first, usable.len()))
    } else if passing.is_empty() {
        (DecisionKind::NearMiss, first, near_miss(first, usable.len()))
    } else if let Some(synthesis) = preferred_synthesis(&passing, rules) {
        (DecisionKind::Synthesis, synthesis, synthesised(synthesis, &passing, rules))
    } else if usable.len() == 1 {
        (DecisionKind::Single, first, single(first))
    } else if passing.len() == 1 {
        (DecisionKind::Tests, first, only_one(first, &usable))
    } else {
        (DecisionKind::Judge, first, smallest(&passing, usable.len()))
    };
    if let Some(at) = ranking.iter().position(|n| *n == winner.candidate) {
        let name = ranking.remove(at);
        ranking.insert(0, name);
    }
    Decision { decision, recommended: Some(winner.candidate.clone()), rationale, ranking }
}

/// The best passing synthesis that is at most `ceiling` times as large as what it drew on.
fn preferred_synthesis<'a>(passing: &[&'a Entry], rules: Rules) -> Option<&'a Entry> {
    passing.iter().copied().find(|e| {
        let combined = combined_lines(e, passing);
        combined.is_some_and(|lines| e.blast.lines as f64 <= rules.ceiling * lines as f64)
    })
}

/// The lines of the passing candidates that `entry` drew on; `None` if it is no synthesis.
fn combined_lines(entry: &Entry, passing: &[&Entry]) -> Option<u64> {
    if entry.drew_on.is_empty() {
        return None;
    }
    Some(passing.iter().filter(|p| entry.drew_on.contains(&p.candidate)).map(|p| p.blast.lines).sum())
}

fn single(winner: &Entry) -> String {
    format!("{} is the only usable candidate, and it passed {}: {}", winner.candidate, stages(winner), winner.blast)
}

fn only_one(winner: &Entry, usable: &[&Entry]) -> String {
    let others: Vec<String> = in_spawn_order(usable).filter(|e| e.candidate != winner.candidate).map(stopped).collect();
    format!(
        "only {} of {} passed {}: {}; {}",
        winner.candidate,
        usable.len(),
        stages(winner),
        winner.blast,
        others.join(", ")
    )
}

fn smallest(passing: &[&Entry], usable: usize) -> String {
    let (winner, next) = (passing[0], passing[1]);
    let lead = format!("{} of {usable} passed; {}", passing.len(), winner.candidate);
    if winner.flaky() != next.flaky() {
        return format!(
            "{lead} is the smallest that passed at once, with {}; {} needed a retry",
            winner.blast, next.candidate
        );
    }
    if winner.blast.lines != next.blast.lines {
        return format!(
            "{lead} changes the fewest lines, with {}; next is {} with {}",
            winner.blast, next.candidate, next.blast
        );
    }
    if winner.blast.files != next.blast.files {
        return format!(
            "{lead} touches the fewest files, with {}; next is {} with {}",
            winner.blast, next.candidate, next.blast
        );
    }
    let same = if winner.tree == next.tree { "made the same tree" } else { "are the same size" };
    format!("{lead} and {} {same}, with {}; {} was spawned first", next.candidate, winner.blast, winner.candidate)
}

fn synthesised(winner: &Entry, passing: &[&Entry], rules: Rules) -> String {
    let from: Vec<&str> = winner.drew_on.iter().map(Name::as_str).collect();
    let combined = combined_lines(winner, passing).unwrap_or_default();
    format!(
        "{} integrates {} and passed {}: {}, within {} times the {combined} lines that it drew on",
        winner.candidate,
        from.join(", "),
        stages(winner),
        winner.blast,
        rules.ceiling
    )
}

fn near_miss(closest: &Entry, usable: usize) -> String {
    let subject =
        if usable == 1 { "the one usable candidate did not pass".into() } else { format!("none of {usable} passed") };
    let before: Vec<&str> =
        closest.results.iter().take_while(|r| r.outcome.passed()).map(|r| r.stage.as_str()).collect();
    let got = if before.is_empty() { String::new() } else { format!("passed {} and then ", and(&before)) };
    format!("{subject}; {} came closest: it {got}{}, with {}", closest.candidate, failed_at(closest), closest.blast)
}

fn no_oracle(best: &Entry, usable: usize) -> String {
    let among = if usable == 1 { "the only usable candidate".into() } else { format!("the smallest of {usable}") };
    format!(
        "no build, lint or test command was found, so nothing is verified; {} is {among}: {}",
        best.candidate, best.blast
    )
}

fn no_usable(entries: &[Entry]) -> String {
    let all: Vec<&Entry> = entries.iter().collect();
    let why: Vec<String> = in_spawn_order(&all)
        .map(|e| match e.state {
            _ if e.problem.is_some() => format!("{} could not be captured", e.candidate),
            State::Open | State::Succeeded => format!("{} changed nothing", e.candidate),
            state => format!("{} is {state}", e.candidate),
        })
        .collect();
    format!("no usable candidate: {}", why.join(", "))
}

fn in_spawn_order<'a>(entries: &[&'a Entry]) -> impl Iterator<Item = &'a Entry> + use<'a> {
    let mut sorted = entries.to_vec();
    sorted.sort_by_key(|e| e.index);
    sorted.into_iter()
}

fn stopped(entry: &Entry) -> String {
    format!("{} {}", entry.candidate, failed_at(entry))
}

fn failed_at(entry: &Entry) -> String {
    match entry.stopped_at() {
        Some(r) if r.outcome == Outcome::TimedOut => format!("timed out in {}", r.stage),
        Some(r) => format!("failed {} ({})", r.stage, r.outcome),
        None => "was not judged".into(),
    }
}

/// The stages that count, in words: `build, lint and test`.
fn stages(entry: &Entry) -> String {
    let names: Vec<&str> = entry.results.iter().filter(|r| r.stage != Stage::Setup).map(|r| r.stage.as_str()).collect();
    and(&names)
}

fn and(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(name: &str, index: u32, lines: u64, files: u64, outcomes: &[Outcome]) -> Entry {
        let stages = [Stage::Build, Stage::Lint, Stage::Test];
        Entry {
            candidate: name.parse().expect("valid name"),
            index,
            state: State::Open,
            iteration: Some(1),
            tree: None,
            blast: Blast { lines, files },
            problem: None,
            same_as: None,
            drew_on: Vec::new(),
            results: stages
                .into_iter()
                .zip(outcomes)
                .map(|(stage, outcome)| StageResult { stage, seconds: 0.0, leaky: false, outcome: outcome.clone() })
                .collect(),
        }
    }

    const PASS: [Outcome; 3] = [Outcome::Passed, Outcome::Passed, Outcome::Passed];
    const FAIL_BUILD: [Outcome; 3] = [Outcome::Failed { code: 101 }, Outcome::Skipped, Outcome::Skipped];
    const FAIL_TEST: [Outcome; 3] = [Outcome::Passed, Outcome::Passed, Outcome::Failed { code: 1 }];

    fn told(entries: &[Entry]) -> (DecisionKind, String, String) {
        let d = decide(entries, Rules::default());
        (d.decision, d.recommended.map(String::from).unwrap_or_default(), d.rationale)
    }

    #[test]
    fn each_row_of_the_table() {
        use DecisionKind::*;
        let cases: [(&[Entry], DecisionKind, &str, &str); 7] = [
            (
                &[entry("c1", 1, 4, 1, &PASS)],
                Single,
                "c1",
                "c1 is the only usable candidate, and it passed build, lint and test: 4 lines in 1 file",
            ),
            (
                &[entry("c1", 1, 4, 1, &FAIL_BUILD), entry("c2", 2, 9, 2, &PASS), entry("c3", 3, 1, 1, &FAIL_TEST)],
                Tests,
                "c2",
                "only c2 of 3 passed build, lint and test: 9 lines in 2 files; c1 failed build (exit 101), c3 failed test (exit 1)",
            ),
            (
                &[entry("c1", 1, 9, 1, &PASS), entry("c2", 2, 4, 2, &PASS), entry("c3", 3, 1, 1, &FAIL_TEST)],
                Judge,
                "c2",
                "2 of 3 passed; c2 changes the fewest lines, with 4 lines in 2 files; next is c1 with 9 lines in 1 file",
            ),
            (
                &[entry("c1", 1, 1, 1, &FAIL_BUILD), entry("c2", 2, 7, 1, &FAIL_TEST)],
                NearMiss,
                "c2",
                "none of 2 passed; c2 came closest: it passed build and lint and then failed test (exit 1), with 7 lines in 1 file",
            ),
            (
                &[entry("c1", 1, 9, 1, &[]), entry("c2", 2, 7, 1, &[])],
                NoOracle,
                "c2",
                "no build, lint or test command was found, so nothing is verified; c2 is the smallest of 2: 7 lines in 1 file",
            ),
            (&[entry("c1", 1, 0, 0, &[])], None, "", "no usable candidate: c1 changed nothing"),
            (&[], None, "", "no usable candidate: "),
        ];
        for (entries, kind, recommended, rationale) in cases {
            assert_eq!(told(entries), (kind, recommended.to_owned(), rationale.to_owned()));
        }
    }

    #[test]
    fn ties_fall_back_to_files_and_then_spawn_order() {
        let (_, winner, why) = told(&[entry("a", 1, 4, 3, &PASS), entry("b", 2, 4, 1, &PASS)]);
        assert_eq!((winner.as_str(), why.contains("touches the fewest files")), ("b", true));
        let (_, winner, why) = told(&[entry("b", 2, 4, 1, &PASS), entry("a", 1, 4, 1, &PASS)]);
        assert_eq!((winner.as_str(), why.contains("a was spawned first")), ("a", true));
    }

    #[test]
    fn a_flaky_pass_ranks_behind_a_clean_one() {
        let flaky = [Outcome::Passed, Outcome::Passed, Outcome::Flaky];
        let (kind, winner, _) = told(&[entry("a", 1, 1, 1, &flaky), entry("b", 2, 50, 1, &PASS)]);
        assert_eq!((kind, winner.as_str()), (DecisionKind::Judge, "b"));
    }

    #[test]
    fn a_synthesis_wins_only_within_its_ceiling() {
        let with_size = |lines| {
            let mut synthesis = entry("synthesis-1", 3, lines, 2, &PASS);
            synthesis.drew_on = vec!["a".parse().expect("valid"), "b".parse().expect("valid")];
            told(&[entry("a", 1, 4, 1, &PASS), entry("b", 2, 6, 1, &PASS), synthesis])
        };
        assert_eq!(with_size(15).0, DecisionKind::Synthesis);
        assert_eq!(with_size(15).1, "synthesis-1");
        assert_eq!((with_size(16).0, with_size(16).1.as_str()), (DecisionKind::Judge, "a"));
    }

    #[test]
    fn a_candidate_that_failed_or_timed_out_is_never_recommended() {
        for state in [State::Failed, State::TimedOut, State::Cancelled, State::Empty, State::Running] {
            let mut e = entry("c1", 1, 4, 1, &PASS);
            e.state = state;
            assert_eq!(told(&[e]).0, DecisionKind::None, "{state}");
        }
    }

    fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
        let end = prop_oneof![
            4 => Just(Outcome::Passed),
            1 => Just(Outcome::Flaky),
            1 => Just(Outcome::Failed { code: 1 }),
            1 => Just(Outcome::TimedOut),
        ];
        prop::collection::vec(end, 3).prop_map(|mut ends| {
            if let Some(at) = ends.iter().position(|o| !o.passed()) {
                ends[at + 1..].fill(Outcome::Skipped);
            }
            ends
        })
    }

    proptest! {
        #[test]
        fn the_order_of_the_records_never_matters(
            raw in prop::collection::vec((0u64..6, 0u64..3, outcomes()), 0..8),
            seed in any::<prop::sample::Index>(),
        ) {
            let entries: Vec<Entry> = raw
                .iter()
                .zip(1u32..)
                .map(|((lines, files, ends), i)| entry(&format!("c{i}"), i, *lines, *files, ends))
                .collect();
            let expected = decide(&entries, Rules::default());
            let mut shuffled = entries.clone();
            if !shuffled.is_empty() {
                let by = seed.index(shuffled.len());
                shuffled.rotate_left(by);
                shuffled.reverse();
            }
            prop_assert_eq!(&decide(&shuffled, Rules::default()), &expected);

            // A naive reading of the contract finds the same winner.
            let best = entries.iter().filter(|e| e.passed()).min_by_key(|e| (e.flaky(), e.blast.lines, e.blast.files, e.index));
            if let Some(best) = best {
                prop_assert_eq!(expected.recommended.as_ref(), Some(&best.candidate));
                prop_assert!(expected.decision.verified());
            } else {
                prop_assert!(!expected.decision.verified());
            }
        }
    }
}
