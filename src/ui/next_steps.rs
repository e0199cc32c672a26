//! Hints about the next step after a verdict.
use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::model::base_tests::{MODE_OF, SUBMODULE};
use crate::model::candidate::{Landing, State};
use crate::model::count::{count, some_of};
use crate::model::cross_score::failed_proofs;
use crate::model::declared_source::DeclaredSource;
use crate::model::flag::FlagKind;
use crate::model::name::Name;
use crate::model::oracle::shell_quoted;
use crate::model::outcome::Stage;
use crate::model::path::quoted;
use crate::model::terms::{ATTEMPTS_WRITE_HINT, Terms};
use crate::model::test_comparison::Comparison;
use crate::model::test_report::TestReport;
use crate::model::verdict::{DecisionKind, Entry, Verdict};

/// The hint for a command that exits with 0 although its report says that tests failed.
pub const KEEP_EXIT_CODE: &str = "keep the exit code of the tests (`set -o pipefail`); or, if these \
                                  failures are known, let the exit code decide: \
                                  `git config frites.oracle.trust-exit true`";

/// The hints after a verdict. `landing` is the landing state of the recommended candidate.
pub fn hints(verdict: &Verdict, landing: Landing) -> Vec<String> {
    let Verdict { run, decision, terms, .. } = verdict;
    let states = format!("`git frites status {run}` shows each candidate's state");
    let Some(name) = &decision.recommended else { return vec![states] };
    let address = format!("{run}/{name}");
    let judge = terms.judge_command(run, "");
    let output = |purpose: &str| format!("{purpose}: `git frites output {address}`");
    let land = format!("`git frites apply --allow-unverified {address}`");
    let land_anyway = format!("to land it all the same: {land}");
    match decision.decision {
        DecisionKind::OwnTests => {
            let land = format!("if that change is right, land it with {land}");
            let more_source = more_source(verdict, name);
            let look = look_at_own_tests(&address, verdict.entry(name));
            [look, land].into_iter().chain(more_source).collect()
        }
        DecisionKind::ReportedFailures => {
            vec![output("see what failed"), KEEP_EXIT_CODE.to_owned(), land_anyway]
        }
        DecisionKind::MissingTests => vec![
            output("see where its tests end"),
            format!("if it is right that fewer tests are reported, land it: {land}"),
        ],
        DecisionKind::BrokenBase | DecisionKind::NearMiss
            if let Some(stage) = stage_broken_on_all(verdict) =>
        {
            broken_base_hints(terms, run, stage)
        }
        DecisionKind::BrokenBase | DecisionKind::NearMiss => {
            let why = near_miss_that_did_not_start(verdict, name).unwrap_or_else(|| {
                format!("{}{}", output("see why"), output_of_base(verdict, name))
            });
            let go_on = format!(
                "continue in the worktree: `cd \"$(git frites path {address})\"`, then judge again: `{judge}`"
            );
            [why, go_on].into_iter().chain(failing_as_the_base(verdict, name, &land)).collect()
        }
        DecisionKind::Undecided if decision.undecided.is_empty() && !verdict.lacks_base() => vec![
            output("see why a command could not tell"),
            format!("judge again when it can: `{judge}`; {land_anyway}"),
        ],
        DecisionKind::Undecided => vec![hint_on_missing(verdict)],
        DecisionKind::NoTests => vec![
            format!(
                "name a test: `git frites judge {run} --test CMD`, or oracle.test in .frites.toml"
            ),
            land_anyway,
        ],
        DecisionKind::NoOracle => vec![format!(
            "name the commands: `git frites judge {run} --test CMD`, or [oracle] in .frites.toml"
        )],
        DecisionKind::None => vec![states],
        DecisionKind::Single
        | DecisionKind::Tests
        | DecisionKind::Judge
        | DecisionKind::Synthesis => hints_for_verified(verdict, name, landing),
    }
}

/// The hints for a recommended candidate that passed.
fn hints_for_verified(verdict: &Verdict, name: &Name, landing: Landing) -> Vec<String> {
    let next = hint_for_verified(verdict, name, landing);
    let products = hint_at_products(verdict, name);
    [next].into_iter().chain(products).chain(hint_at_tests_of_others(verdict, name)).collect()
}

/// The hint for a winner that adds binary files without an extension, which would land: a build in
/// the worktree may have written these programs. `None` for another winner.
fn hint_at_products(verdict: &Verdict, name: &Name) -> Option<String> {
    let program = verdict.entry(name)?.flags.iter().find(|flag| {
        let name = flag.path.rsplit('/').next().unwrap_or_default();
        flag.kind == FlagKind::BinaryAdded && !name.contains('.')
    })?;
    Some(format!(
        "if {} is the product of a build, it should not land: remove such files in \
         `$(git frites path {}/{name})`, and judge again",
        quoted(program.path.as_bytes()),
        verdict.run
    ))
}

/// The hint for a winner that may lack a part of the change; `None` if nothing suggests that. If
/// the candidates' tests were run on the other candidates, there must be a test of another passing
/// candidate that the winner fails. Otherwise, another passing candidate must have run more tests
/// than the winner, or must edit tests while the winner does not.
///
/// A test that only its author passes does not count in the ranking, because the author may have
/// misread the task. A person who reads the test can tell whether the author did.
fn hint_at_tests_of_others(verdict: &Verdict, name: &Name) -> Option<String> {
    let run = &verdict.run;
    let entries = &verdict.candidates;
    let winner = verdict.entry(name)?;
    if winner.cross.is_some() {
        let (author, tests) = failed_proofs(winner, entries)?;
        let named = if tests.len() == 1 { "test" } else { "tests" };
        let entry = verdict.entry(author)?;
        let next = if entry.passed_own_tests_only() {
            format!("look at {author}: `git frites diff {run}/{author}`")
        } else {
            let confirm = match entry.is_pending() {
                true => format!("{} && ", confirm_pending(&verdict.terms, run, author)),
                false => String::new(),
            };
            format!("land {author} instead: `{confirm}git frites apply {run}/{author}`")
        };
        return Some(format!(
            "{name} fails {author}'s {named} {}, as the base does: if that should pass, {next}",
            some_of(&tests)
        ));
    }
    let ran = |entry: &Entry| entry.results.report().map_or(0, TestReport::ran_in_files);
    let edits_tests = |e: &Entry| e.flags.iter().any(|flag| flag.kind == FlagKind::TestsEdited);
    let others = entries.iter().filter(|e| e.passed() && e.drew_on.is_empty());
    let most = others.clone().max_by_key(|entry| (ran(entry), Reverse(entry.index)))?;
    let more = ran(most).saturating_sub(ran(winner));
    let does = if more > 0 && ran(winner) > 0 {
        format!("{} ran {} more than {name}", most.candidate, count(more, "test"))
    } else {
        let edits = others.clone().find(|e| edits_tests(e) && !edits_tests(winner))?;
        format!("{} edits tests", edits.candidate)
    };
    let command = verdict.terms.judge_command(run, " --cross");
    Some(format!("{does}: `{command}` runs the tests of each candidate on the others"))
}

/// The commands that judge a candidate without its added tests, and then decide again. The decision
/// so far did not need this judging.
pub fn confirm_pending(terms: &Terms, run: &Name, name: &Name) -> String {
    let judge = terms.judge_command(run, &format!(" --candidate {name}"));
    format!("{judge} && {}", terms.judge_command(run, " --replay"))
}

/// The hint for a candidate whose failing tests all fail on the base, too; `None` if another test
/// fails.
fn failing_as_the_base(verdict: &Verdict, name: &Name, land: &str) -> Option<String> {
    let comparison = Comparison::of(verdict.baseline.as_ref()?, verdict.entry(name)?)?;
    comparison.fails_as_the_base().then(|| {
        format!(
            "if these tests have nothing to do with the change, leave them out of the test command, or land it: {land}"
        )
    })
}

/// The end of the hint on a failed command: how to see why the same command fails on the base, too.
/// Empty if the command does not fail there.
fn output_of_base(verdict: &Verdict, name: &Name) -> String {
    let stopped = verdict.entry(name).and_then(|entry| entry.results.stopped_at());
    let base = verdict.baseline.as_ref().zip(stopped);
    match base.and_then(|(base, stopped)| base.stops_at(stopped.stage)) {
        Some(base) => format!(
            "; and why it fails on the base, too: `git frites output {}/@base {}`",
            verdict.run, base.stage
        ),
        None => String::new(),
    }
}

/// The hint that tells the user how to get the missing outcomes that could change the
/// recommendation.
fn hint_on_missing(verdict: &Verdict) -> String {
    let Verdict { run, decision, terms, .. } = verdict;
    let mut names: Vec<&Name> = decision.undecided.iter().collect();
    if names.is_empty() {
        // Only the base is missing. It is judged with any candidate that passes.
        names.extend(&decision.recommended);
    }
    let missing: String = names.iter().map(|name| format!(" --candidate {name}")).collect();
    format!(
        "judge what is missing: `{}`; then decide: `{}`",
        terms.judge_command(run, &missing),
        terms.judge_command(run, " --replay")
    )
}

/// The hint for a recommended candidate that passed: how to land it. If there is a doubt about the
/// verdict, the hint says how to remove the doubt.
fn hint_for_verified(verdict: &Verdict, name: &Name, landing: Landing) -> String {
    let run = &verdict.run;
    let settings = &verdict.terms.settings;
    let doubts = &settings.doubts;
    let judge = verdict.terms.judge_command(run, "");
    if settings.in_place {
        return format!("judge it in a checkout of its own: `{judge}`");
    }
    if !doubts.leads_back.is_empty() {
        return format!("change the seeds, then judge again: `{judge}`");
    }
    if !doubts.attempts_write.is_empty() {
        return ATTEMPTS_WRITE_HINT.to_owned();
    }
    if doubts.tainted {
        return format!("undo or accept the change, then judge again: `{judge}`");
    }
    let next = match landing {
        Landing::Landed | Landing::Merged => {
            format!("; it has landed: take it back with `git frites apply --undo {run}/{name}`")
        }
        Landing::Undone => {
            format!("; its landing was undone: land it again with `git frites apply {run}`")
        }
        Landing::Pending | Landing::Discarded => {
            format!(", land it with `git frites apply {run}`")
        }
    };
    format!("look at it with `git frites diff {run}/{name}`{next}")
}

/// The hint for a candidate that passes only with its own tests or commands, or is not compared
/// with the base.
pub fn look_at_own_tests(address: &str, entry: Option<&Entry>) -> String {
    let second = entry.and_then(|entry| entry.base_tests.as_ref());
    let look = format!("`git frites diff {address}`");
    let see = format!("`git frites output {address}`");
    match second {
        Some(second) if second.is_not_compared() => format!("look at what it changes: {look}"),
        Some(second) if let Some(files) = second.needs() => {
            format!("look at {files}: {look}; see how it fails without that change: {see}")
        }
        _ => format!(
            "look at what it changes in tests and commands: {look}; see how it fails with the base's: {see}"
        ),
    }
}

/// The hint for a candidate that changed nothing.
pub fn after_no_change(address: &str, state: State) -> String {
    match state {
        State::Open => {
            format!(
                "change files in the worktree: `cd \"$(git frites path {address})\"`, then judge again"
            )
        }
        _ => format!("see what its command printed: `git frites output {address}`"),
    }
}

/// The stage of a command that fails on the base and on all usable candidates. Either it comes
/// before the tests, or each tree lacks the same thing. `None` if there is no such command.
fn stage_broken_on_all(verdict: &Verdict) -> Option<Stage> {
    let base = verdict.baseline.as_ref()?;
    let usable: Vec<&Entry> = verdict.candidates.iter().filter(|entry| entry.usable()).collect();
    let is_broken = verdict.decision.decision == DecisionKind::BrokenBase
        || base.lacks_on_all(&usable).is_some();
    if is_broken { Some(base.results.stopped_at()?.stage) } else { None }
}

/// The hints for a command that does not pass on a run's base: where to see why, and how to judge
/// all the same.
pub fn broken_base_hints(terms: &Terms, run: &Name, stage: Stage) -> Vec<String> {
    vec![
        format!("see why: `git frites output {run}/@base {stage}`"),
        format!(
            "install what it needs, fix it in a commit and start the run from that commit, or {}",
            judging_without(terms, run, stage)
        ),
    ]
}

/// A part of a hint: how to judge a run without the command of this stage.
fn judging_without(terms: &Terms, run: &Name, stage: Stage) -> String {
    match stage {
        Stage::Setup => "set `oracle.setup` to another command".to_owned(),
        Stage::Test => {
            format!("judge with another command: `{}`", terms.judge_command(run, " --test CMD"))
        }
        // Do not propose another command: with `--build CMD` alone, no test would run.
        Stage::Build | Stage::Lint => {
            let without = format!(" --{stage} ''");
            format!("leave it out: `{}`", terms.judge_command(run, &without))
        }
    }
}

/// The hint that proposes a pattern for `oracle.source`, so that changed files count as source and
/// are not put back; `None` if there is no file for which a pattern would help.
fn more_source(verdict: &Verdict, name: &Name) -> Option<String> {
    let patterns = &verdict.terms.settings.source;
    let declared = DeclaredSource::of(patterns).ok()?;
    let files = verdict.entry(name)?.base_tests.as_ref()?.no_source.iter();
    let files = files.filter(|file| {
        ![MODE_OF, SUBMODULE].iter().any(|word| file.starts_with(word))
            && declared.is_source(file) != Some(true)
    });
    let patterns_of: BTreeSet<String> = files
        .map(|file| match file.rsplit_once('/') {
            Some((directory, _)) => format!("{}/**", globset::escape(directory)),
            None => globset::escape(file),
        })
        .collect();
    let pattern = match Vec::from_iter(patterns_of).as_slice() {
        [] => return None,
        [one] => one.clone(),
        several => format!("{{{}}}", several.join(",")),
    };
    let add = match patterns.as_slice() {
        [] => format!("`git config --add frites.oracle.source {}`", shell_quoted(&pattern)),
        // The list may be set in a file, and `git config --add` would replace the whole list.
        _ => format!("add '{pattern}' to the end of `oracle.source`"),
    };
    Some(format!(
        "if such files belong to the product and cannot switch a test off: {add}, then judge again"
    ))
}

/// The hint for a closest candidate on which a command did not start at all; `None` if all started.
fn near_miss_that_did_not_start(verdict: &Verdict, name: &Name) -> Option<String> {
    let stopped = verdict.entry(name)?.results.stopped_at()?;
    let why = stopped.outcome.why_not_started()?;
    let stage = stopped.stage;
    let other = judging_without(&verdict.terms, &verdict.run, stage);
    Some(format!(
        "the {stage} command did not start on this candidate ({why}): install what it needs, or {other}"
    ))
}
