//! The explanation of a verdict in paragraphs: the decision and the reason for it, the commands,
//! the facts about each candidate, and the candidates that other rankings would recommend.
use crate::model::base_tests::BaseTestsResult;
use crate::model::count::count;
use crate::model::cross_score;
use crate::model::decision::{self, decide};
use crate::model::name::{BASE, Name};
use crate::model::outcome::{Results, StageResult};
use crate::model::rank::Rank;
use crate::model::ranking::Rules;
use crate::model::rationale::{why_judged_twice, why_unusable, without_own_tests};
use crate::model::test_comparison::{Comparison, left_out};
use crate::model::test_report::some_tests;
use crate::model::verdict::{Entry, Verdict};
use crate::ui::{comparison, effort_words};

/// The paragraphs for a run: the decision and the first step of the ranking, the commands, the
/// candidates, the further steps, and other rankings.
pub fn of_verdict(verdict: &Verdict, commands: Vec<String>) -> Vec<Vec<String>> {
    let rules = Rules::of(&verdict.terms);
    let mut steps = decision::steps(&verdict.candidates, rules);
    let mut decisive = vec![comparison::sentence(verdict)];
    decisive.extend(steps.drain(..steps.len().min(1)));
    let base = verdict.baseline.as_ref();
    let base = base.and_then(|base| failed_beside_tests(verdict, BASE, &base.results));
    let candidates = verdict.candidates.iter().flat_map(|entry| about(verdict, entry));
    let candidates = base.into_iter().chain(candidates).collect();
    let mut all = vec![decisive, commands, candidates, steps, other_rules(verdict)];
    all.retain(|paragraph| !paragraph.is_empty());
    all
}

/// The paragraphs for one candidate: the decision, and the reason why it ranks behind the
/// recommended one.
pub fn of_candidate(verdict: &Verdict, name: &Name) -> Vec<Vec<String>> {
    let rules = Rules::of(&verdict.terms);
    let mut decisive = vec![comparison::sentence(verdict)];
    decisive.extend(decision::why_before(&verdict.candidates, &verdict.decision, name, rules));
    let own = match verdict.entry(name) {
        Some(entry) => about(verdict, entry),
        None => vec![format!("{name} came after the last judging")],
    };
    if own.is_empty() { vec![decisive] } else { vec![decisive, own] }
}

/// The lines about the commands: which ran, in which world, with which settings, and how many.
pub fn commands(verdict: &Verdict) -> Vec<String> {
    let terms = &verdict.terms;
    if terms.oracle.is_empty() {
        return vec!["no command was given, configured or detected in the base's files".to_owned()];
    }
    let command = terms.oracle.iter();
    let mut lines: Vec<String> =
        command.map(|c| format!("{}: `{}`, from {}", c.stage, c.command, c.source)).collect();
    let doubt = verdict.doubt_about_attempts();
    lines.push(format!("the commands ran {}", comparison::places(&terms.settings, doubt)));
    lines.extend(terms.settings.in_words().map(|words| format!("settings: {words}")));
    lines.extend(effort_words::line(verdict.effort));
    let costs = verdict.costs.as_ref();
    lines.extend(costs.and_then(|costs| costs.in_words(verdict.candidates.len())));
    lines
}

/// Lines about a candidate, except its place in the ranking.
fn about(verdict: &Verdict, entry: &Entry) -> Vec<String> {
    let name = &entry.candidate;
    let mut lines = Vec::new();
    if !entry.usable() {
        lines.push(format!("{}: it cannot be recommended", why_unusable(entry)));
    }
    lines.extend(entry.same_as.as_ref().map(|twin| {
        format!("{name} has the same tree as {twin}, so its commands ran once for both")
    }));
    lines.extend(entry.flags.iter().map(|flag| format!("{name} {flag}")));
    lines.extend(failed_beside_tests(verdict, name.as_str(), &entry.results));
    lines.extend(entry.base_tests.as_ref().map(|second| judged_twice(entry, second)));
    lines.extend(confirmed(verdict, entry));
    if !entry.dropped.is_empty() {
        lines.push(format!(
            "{name} changed protected paths; these changes were dropped: {}",
            entry.dropped.join(", ")
        ));
    }
    lines.extend(entry.proof.as_ref().map(|proof| format!("{name} {}", proof.in_words())));
    lines.extend(cross_score::findings(entry, &verdict.candidates));
    let Some(base) = &verdict.baseline else { return lines };
    if let Some(comparison) = Comparison::of(base, entry) {
        for (what, tests) in comparison.kinds() {
            match tests {
                [] => {}
                [_] => {
                    let test = some_tests(tests, tests);
                    lines.push(format!("{name}: {test} fails; it {what}"));
                }
                tests => lines.push(format!(
                    "{name}: {} tests fail, each of which {what}: {}",
                    tests.len(),
                    some_tests(tests, tests)
                )),
            }
        }
    }
    lines.extend(left_out(base, entry).iter().map(|clause| format!("{name} {clause}")));
    lines
}

/// The line about a command that failed although no test fails in its report; `None` if there is no
/// such command.
fn failed_beside_tests(verdict: &Verdict, name: &str, results: &Results) -> Option<String> {
    let stopped = results.stopped_at()?;
    let StageResult { stage, outcome, .. } = stopped;
    let tests = count(stopped.tests_without_failure()?, "test");
    Some(format!(
        "{name}: no test fails in the report of {stage} ({tests}), so another part of the command ended \
         with {outcome}: `git frites output {}/{name} {stage}`",
        verdict.run
    ))
}

/// The line that says whether the candidate was judged with or without the base's build outputs, or
/// how the two results differ.
fn confirmed(verdict: &Verdict, entry: &Entry) -> Option<String> {
    let name = &entry.candidate;
    let is_warm = |entry: &Entry| entry.results.iter().any(|result| result.warm);
    if let Some(stale) = &entry.stale {
        return Some(format!("{name}: {stale}"));
    }
    if is_warm(entry) {
        return Some(format!(
            "{name} was judged only with the base's build outputs: the decision does not depend on this result"
        ));
    }
    let is_second = !entry.results.is_empty() && verdict.candidates.iter().any(is_warm);
    is_second.then(|| format!("{name} was judged without the base's build outputs"))
}

/// The line about the second judging of a candidate: its outcome, and the files that were put back
/// or taken out for it.
fn judged_twice(entry: &Entry, second: &BaseTestsResult) -> String {
    let name = &entry.candidate;
    if second.is_not_compared() {
        return format!("{name} is not compared with the base: {}", without_own_tests(entry));
    }
    if second.is_pending() {
        return format!("{name} is judged without its added tests only if it would be recommended");
    }
    let mut changes: Vec<String> = why_judged_twice(second).into_iter().collect();
    if !second.put_back.is_empty() {
        changes.push(format!("put back as in the base: {}", second.put_back.join(", ")));
    }
    if !second.taken_out.is_empty() {
        changes.push(format!("taken out: {}", second.taken_out.join(", ")));
    }
    let end = match second.results.stopped_at() {
        Some(failed) if let Some(path) = second.failed_beside() => {
            format!("{} {}, with its source and {path} alone", failed.stage, failed.outcome)
        }
        Some(failed) => format!("{} {}", failed.stage, failed.outcome),
        None if second.passed() => "passed".into(),
        None => "not run".into(),
    };
    format!("{name} with the base's tests and commands: {end}; {}", changes.join("; "))
}

/// The lines about which candidates other rankings would recommend; empty unless several candidates
/// passed.
fn other_rules(verdict: &Verdict) -> Vec<String> {
    let Verdict { decision, terms, baseline, candidates, .. } = verdict;
    if decision.passed.len() < 2 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    let ranked_by = Rules::of(terms).settled(candidates).rank;
    for rank in Rank::ALL.into_iter().filter(|rank| *rank != ranked_by) {
        let rules = Rules { rank, ..Rules::of(terms) }.settled(candidates);
        if rules.rank != rank {
            continue;
        }
        if let Some(pick) = decision.other_picks.iter().find(|pick| pick.rank == rank) {
            lines.push(pick.to_string());
            continue;
        }
        let other = decide(candidates, baseline.as_ref(), rules).recommended;
        lines.extend(other.map(|name| match decision.recommended == Some(name.clone()) {
            true => format!("--rank {rank} would recommend {name}, too"),
            false => format!("--rank {rank} would recommend {name}"),
        }));
    }
    lines
}
