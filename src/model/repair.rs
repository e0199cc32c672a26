//! Repair: which candidates get another round, the prompt of the round, and its result.
use std::cmp::Reverse;
use std::fmt::Write;

use serde::Serialize;

use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::StageResult;
use crate::model::test_comparison::Comparison;
use crate::model::verdict::{Baseline, Entry, Verdict};

/// The maximum number of tests of one kind, and of undone changes, that a prompt names.
const MOST_NAMED: usize = 30;

/// The end of a round of repair. It is displayed as a clause about the round, without the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
pub enum RepairEnd {
    /// The candidate passes now.
    #[strum(serialize = "led to a pass")]
    Passed,
    /// The candidate got further than before.
    #[strum(serialize = "got further")]
    Further,
    /// The candidate changed, and got no further.
    #[strum(serialize = "got no further")]
    NoFurther,
    /// The candidate got less far, so its earlier files were restored.
    #[strum(serialize = "made it worse, so its earlier files are restored")]
    Worse,
    /// The round changed nothing.
    #[strum(serialize = "changed nothing")]
    Unchanged,
    /// The round's command was not started: while other candidates worked, the run or the agent
    /// reached a limit, or enough candidates passed.
    #[strum(serialize = "was not started")]
    NotStarted,
}

/// A round of repair of one candidate.
#[derive(Clone, Debug, Serialize)]
pub struct RepairRound {
    /// The round, from 1.
    pub round: u32,
    pub candidate: Name,
    /// The iteration that the round made; the previous iteration if the round changed nothing.
    pub iteration: Option<u32>,
    /// How it ended.
    pub end: RepairEnd,
}

/// How many of the usable candidates passed, also with the base's tests: `1 of 3 passed`.
pub fn passes_in_words(entries: &[Entry]) -> String {
    let usable = || entries.iter().filter(|entry| entry.usable());
    let passed = usable().filter(|entry| entry.passed_base_tests_too()).count();
    let all = usable().count();
    match passed {
        0 => format!("none of {all} passed"),
        _ => format!("{passed} of {all} passed"),
    }
}

/// True if a command failed on a candidate, and the candidate can be the cause.
pub fn can_be_repaired(entry: &Entry) -> bool {
    log_to_show(entry).is_some()
}

/// True if it is known whether the candidate needs a further round: it passed, a command failed on
/// it, or it is not usable.
pub fn is_told(entry: &Entry) -> bool {
    !entry.usable() || entry.passed_base_tests_too() || can_be_repaired(entry)
}

/// True if at least `enough` candidates have passed, so that no other attempt is needed. Always
/// false if the base passes, too, because then a pass proves little. Also false while the base has
/// no result.
pub fn enough_passed(enough: Option<u32>, entries: &[Entry], base: Option<&Baseline>) -> bool {
    let Some(enough) = enough else { return false };
    let passed = entries.iter().filter(|entry| entry.verified() && !entry.flaky()).count();
    passed >= enough as usize && base.is_some_and(|base| !base.results.passed())
}

/// The reason why a candidate that did not pass gets no further round, as far as judging shows it;
/// `None` if it passed, or can have a round.
pub fn why_no_round(entry: &Entry) -> Option<String> {
    if entry.passed_base_tests_too() || can_be_repaired(entry) {
        return None;
    }
    let why = match bad_end(entry.state) {
        _ if entry.problem.is_some() => "not captured",
        Some(end) => return Some(entry.with_cause(end)),
        None if !entry.usable() && !entry.dropped.is_empty() => "only protected paths changed",
        None if !entry.usable() => "nothing changed",
        None if entry.skipped() => "a command says that it cannot tell",
        None if entry.not_run() => "not judged",
        None => "the base's tests could not be put back",
    };
    Some(why.to_owned())
}

/// The end of an attempt that did not end well; `None` if it ended well, or has not ended.
pub fn bad_end(state: State) -> Option<&'static str> {
    match state {
        State::Open | State::Running | State::Succeeded => None,
        State::Failed => Some("its own command failed"),
        State::TimedOut => Some("its own command timed out"),
        State::Empty => Some("its own command changed nothing"),
        State::Cancelled => Some("its own command was interrupted"),
        State::Limited => Some("its agent could not go on"),
    }
}

/// The failed command that a round is to repair. The flag is true if it failed only in the second
/// judging, with the base's tests.
fn failure(entry: &Entry) -> Option<(&StageResult, bool)> {
    if let Some(own) = entry.results.stopped_at() {
        return Some((own, false));
    }
    Some((entry.base_tests.as_ref()?.results.stopped_at()?, true))
}

/// The result of a round, from the judgings before and after it.
pub fn compare(before: &Entry, after: &Entry) -> RepairEnd {
    let was = progress(before);
    let is = progress(after);
    match () {
        () if before.tree == after.tree && after.usable() => RepairEnd::Unchanged,
        () if after.passed_base_tests_too() => RepairEnd::Passed,
        () if is > was => RepairEnd::Further,
        () if is == was => RepairEnd::NoFurther,
        () => RepairEnd::Worse,
    }
}

/// How far a candidate got: more is better.
fn progress(entry: &Entry) -> (bool, bool, usize, Reverse<usize>) {
    let passed = entry.results.iter().take_while(|result| result.outcome.passed()).count();
    let failing = entry.results.failing_tests().map_or(usize::MAX, <[String]>::len);
    (entry.usable(), entry.results.passed(), passed, Reverse(failing))
}

/// The stage whose log shows why a candidate failed. The flag is true if the log is of the second
/// judging, with the base's tests. `None` if the candidate cannot be repaired.
pub fn log_to_show(entry: &Entry) -> Option<(&StageResult, bool)> {
    if entry.usable() && !entry.skipped() { failure(entry) } else { None }
}

/// The prompt of a round: the task, why the attempt failed, and the request. `log` is the end of
/// the failed command's output, and `more` is text that a person adds. `root` is the base of the
/// first run, whose tests were put back.
pub fn prompt(
    task: Option<&str>,
    (verdict, root): (&Verdict, &Oid),
    entry: &Entry,
    log: &[String],
    more: Option<&str>,
) -> String {
    let mut text = String::new();
    if let Some(task) = task {
        let _ = writeln!(text, "{}\n\n---\n", task.trim_end());
    }
    let _ = writeln!(
        text,
        "This worktree holds an earlier attempt at the task above, as changes from commit {}. It does not pass yet. \
         Repair it: keep what is right, and change as little as possible.\n",
        verdict.base.short()
    );
    if let Some((result, with_base_tests)) = failure(entry) {
        let command =
            verdict.terms.oracle.iter().find(|c: &&OracleCommand| c.stage == result.stage);
        let command = command.map_or(String::new(), |c| format!(" `{}`", c.command));
        if with_base_tests {
            text.push_str(&undone_changes(entry, root));
        }
        let then = if with_base_tests { "Without these changes, the" } else { "The" };
        let _ = writeln!(
            text,
            "{then} {} command{command} ends with: {}.",
            result.stage, result.outcome
        );
    }
    text.push_str(&failing_tests(entry, verdict.baseline.as_ref()));
    if !log.is_empty() {
        let _ = writeln!(text, "\nThe end of its output:\n\n    {}", log.join("\n    "));
    }
    if !entry.flags.is_empty() || !entry.dropped.is_empty() {
        let _ = writeln!(text, "\nA reviewer will object to these changes of the attempt:\n");
        for flag in &entry.flags {
            let _ = writeln!(text, "- it {flag}");
        }
        for path in &entry.dropped {
            let _ =
                writeln!(text, "- it changes {path}, which is protected: the change is put back");
        }
    }
    if let Some(more) = more {
        let _ = writeln!(text, "\n{}", more.trim_end());
    }
    text
}

/// The changes that were undone in the second judging of a candidate, and why. With all its
/// changes, the candidate passes.
fn undone_changes(entry: &Entry, base: &Oid) -> String {
    let mut text = String::from(
        "With all its changes it passes. It was judged once more with the original tests and commands, because \
         changes to other files than source may hide a fault. These changes were undone for that:\n\n",
    );
    let Some(second) = &entry.base_tests else { return text };
    let put_back =
        second.put_back.iter().map(|path| format!("{path}: as in commit {}", base.short()));
    let undone = put_back.chain(second.taken_out.iter().map(|path| format!("{path}: taken out")));
    add_list(&mut text, &undone.collect::<Vec<_>>());
    if let Some(path) = second.failed_beside() {
        let _ = writeln!(text, "\nOf these files, only {path} was kept as the attempt has it.");
    }
    text.push_str(
        "\nMake it pass without them, if the task allows that. If the task needs them, leave the files as they are: \
         a person can then accept the changes.\n\n",
    );
    text
}

fn add_list(text: &mut String, names: &[String]) {
    for name in names.iter().take(MOST_NAMED) {
        let _ = writeln!(text, "- {name}");
    }
    if names.len() > MOST_NAMED {
        let _ = writeln!(text, "- and {} more", names.len() - MOST_NAMED);
    }
}

/// The failing tests: first those that pass without the attempt.
fn failing_tests(entry: &Entry, base: Option<&Baseline>) -> String {
    let failing = entry.results.failing_tests().unwrap_or_default();
    let mut text = String::new();
    let mut list = |what: &str, tests: &[String]| {
        if tests.is_empty() {
            return;
        }
        let _ = writeln!(text, "\nFailing tests{what}:\n");
        add_list(&mut text, tests);
    };
    match base.and_then(|base| Comparison::of(base, entry)) {
        None => list("", failing),
        Some(comparison) => {
            list(" that pass without the attempt", &comparison.broken);
            list(" that do not fail without the attempt", &comparison.only_here);
            list(" that are new", &comparison.new);
            list(" that did not run without the attempt", &comparison.not_run);
            list(" that fail without the attempt, too", &comparison.before);
        }
    }
    text
}
