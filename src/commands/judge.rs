//! `git frites judge`: runs the project's own commands on each distinct tree, and decides.
use serde_json::json;

pub use crate::commands::judge_args::JudgeArgs;
use crate::commands::judge_args::{VerdictArgs, require_trust};
use crate::commands::{
    judge_plan, junit, next_steps, note_left_out, opened, preflight, print_verdict,
    require_jobs_within_limit,
};
use crate::error::{Error, Result, exit};
use crate::model::base_tests::BaseTestsResult;
use crate::model::decision;
use crate::model::partial::PartialVerdict;
use crate::model::ranking::Rules;
use crate::model::rationale::why_judged_twice;
use crate::model::run::Run;
use crate::model::test_comparison::{Comparison, MoreSkipped};
use crate::model::verdict::{Entry, Verdict};
use crate::ops::hooks;
use crate::ops::judge::{self, unseeded};
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::store::select::Matching;
use crate::ui::{Ui, comparison, json};

/// Runs the command.
pub fn run(session: &Session, args: &JudgeArgs) -> Result<u8> {
    preflight::require_writable("--junit", args.show.junit.as_deref())?;
    if args.dry_run {
        return judge_plan::show(session, args);
    }
    let selection = session.store.select(args.address.as_ref(), Matching::Prefix)?;
    if let Some(name) = &selection.candidate {
        let run = &selection.run.run;
        return Err(Error::usage(format!(
            "judge decides over a whole run, and '{run}/{name}' is a candidate"
        ))
        .hint(format!(
            "write `git frites judge {run}`; `--candidate {name}` judges it by itself"
        )));
    }
    require_jobs_within_limit(session, args.jobs as usize, "-j")?;
    let run = selection.run;
    require_trust(session, &run, args.trust_config)?;
    let on_oracle = |oracle: &ResolvedOracle| {
        if args.show.explain {
            judge_plan::explain_oracle(session, &run, oracle, args)?;
        } else {
            note_left_out(&session.ui, oracle);
        }
        unseeded::hint(session, &run.base, &oracle.commands)
    };
    if !args.candidates.is_empty() {
        opened::require_unopened(session, &run, &args.candidates)?;
        let parts = judge::judge_some(session, &run, &args.candidates, &args.options(), on_oracle)?;
        return render_parts(session, &run, &parts, args);
    }
    let verdict = if args.replay {
        judge::replay(session, &run, &args.options())?
    } else {
        judge::judge(session, &run, &args.options(), on_oracle)?
    };
    show_verdict(session, &verdict, &args.show, None)
}

fn explain_ranking(ui: &Ui, verdict: &Verdict) {
    for entry in &verdict.candidates {
        for flag in &entry.flags {
            ui.note(format!("{} {flag}", entry.candidate));
        }
        if let Some(second) = &entry.base_tests {
            ui.note(explain_base_tests(entry, second));
        }
        if !entry.dropped.is_empty() {
            ui.note(format!(
                "{} changed protected paths; these changes were dropped: {}",
                entry.candidate,
                entry.dropped.join(", ")
            ));
        }
        let base = verdict.baseline.as_ref();
        if let Some(comparison) = base.and_then(|base| Comparison::of(base, entry)) {
            for (what, tests) in comparison.kinds() {
                for test in tests {
                    ui.note(format!("{}: {test} fails; it {what}", entry.candidate));
                }
            }
        }
        if let Some(more) = base.and_then(|base| MoreSkipped::of(base, entry)) {
            ui.note(format!("{} {}", entry.candidate, more.in_words()));
        }
    }
    for line in decision::steps(&verdict.candidates, Rules::from_settings(&verdict.terms.settings))
    {
        ui.note(line);
    }
}

/// What was put back for the second judging of a candidate.
fn explain_base_tests(entry: &Entry, second: &BaseTestsResult) -> String {
    let name = &entry.candidate;
    if let Some(problem) = &second.problem {
        return format!("{name} cannot be judged with the base's tests: {problem}");
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

/// Shows candidates that were judged alone: the table of comparison, without a decision.
fn render_parts(
    session: &Session,
    run: &Run,
    parts: &[PartialVerdict],
    args: &JudgeArgs,
) -> Result<u8> {
    let ui = &session.ui;
    let entries = || parts.iter().map(|p| &p.candidate);
    let code = if !entries().any(Entry::usable) {
        exit::UNUSABLE
    } else if entries().all(|e| e.results.is_empty()) {
        exit::UNVERIFIED
    } else if !entries().any(Entry::passed) {
        let is_open = |e: &Entry| e.skipped() || e.is_contradicted();
        if entries().any(is_open) { exit::UNVERIFIED } else { exit::NO }
    } else if !entries().any(Entry::verified)
        || parts.iter().any(|part| !part.judging.terms.settings.allow_verification())
    {
        exit::UNVERIFIED
    } else {
        exit::OK
    };
    if args.show.json {
        let candidates: Vec<_> = parts.iter().map(|part| json!(part)).collect();
        let names = |is: fn(&Entry) -> bool| -> Vec<_> {
            entries().filter(|e| is(e)).map(|e| &e.candidate).collect()
        };
        let (passed, skipped) = (names(Entry::passed), names(Entry::skipped));
        let document = json!({ "run": run.run, "exit_code": code, "passed": passed, "skipped": skipped, "candidates": candidates });
        ui.answer(json::document(document))?;
    } else if args.show.quiet {
        let passed = entries().filter(|e| e.verified() && code == exit::OK);
        ui.answer(passed.map(|e| format!("{}/{}\n", run.run, e.candidate)).collect::<String>())?;
    } else {
        let settings =
            parts.first().map(|part| part.judging.terms.settings.clone()).unwrap_or_default();
        ui.answer(comparison::table(ui.out, &run.run, &settings, entries()))?;
        ui.hint(format!(
            "when all are judged, decide with `git frites judge --replay {}{}`",
            run.run,
            args.judging.terms()
        ));
    }
    Ok(code)
}

/// Shows a verdict as the options say; gives its exit code. `remote` has outcomes of the run.
pub fn show_verdict(
    session: &Session,
    verdict: &Verdict,
    args: &VerdictArgs,
    remote: Option<&str>,
) -> Result<u8> {
    if args.explain {
        explain_ranking(&session.ui, verdict);
    }
    let document = args.json.then(|| comparison::as_json(verdict));
    let hints = match opened::hint_on_missing(session, verdict, remote)? {
        Some(hint) => vec![hint],
        None => next_steps(session, verdict),
    };
    print_verdict(session, verdict, document, args.quiet, &hints)?;
    hooks::tell_verdict(session, &verdict.run, comparison::as_json(verdict));
    junit::write(session, verdict, args.junit.as_deref())?;
    Ok(comparison::exit_code(verdict))
}
