//! `git frites judge`: runs the project's own commands on each distinct tree, and decides.
use serde_json::json;

pub use crate::commands::judge_args::JudgeArgs;
use crate::commands::judge_args::{VerdictArgs, require_trust};
use crate::commands::verdict::{self, next_steps, tell_proof, write_junit};
use crate::commands::{
    explain, judge_plan, note_lacks, opened, preflight, require_jobs_within_limit,
};
use crate::error::{ErrorKind, Result, exit};
use crate::model::address::Address;
use crate::model::part::PartOutcome;
use crate::model::run::Run;
use crate::model::verdict::{Entry, Verdict};
use crate::ops::judge::{self, RepeatedJudging};
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::store::select::{Matching, Scope};
use crate::ui::{comparison, json};

pub fn run(session: &Session, args: &JudgeArgs) -> Result<u8> {
    args.require_rankable()?;
    preflight::require_writable(session, "--junit", args.show.output.junit.as_deref())?;
    if args.dry_run {
        return judge_plan::show(session, args);
    }
    let selected = session.store.select(args.address.as_ref(), Scope::Run, Matching::Prefix);
    let run = selected
        .map_err(|error| match (&args.address, error.kind) {
            (Some(Address::Pair { run, candidate, .. }), ErrorKind::Usage) => error
                .hint(format!("`git frites judge {run} --candidate {candidate}` judges it alone")),
            _ => error,
        })?
        .run;
    require_jobs_within_limit(session, args.jobs as usize, "-j")?;
    require_trust(session, &run, args.trust_config)?;
    let on_oracle = |oracle: &ResolvedOracle| note_lacks(session, run.root(), oracle);
    if !args.candidates.is_empty() {
        opened::require_unopened(session, &run, &args.candidates)?;
        let parts = judge::judge_some(session, &run, &args.candidates, &args.options(), on_oracle)?;
        return Ok(render_parts(session, &run, &parts, args));
    }
    let options = args.options();
    if args.replay {
        let verdict = judge::replay(session, &run, &options)?;
        return show_verdict(session, &run, &verdict, &args.show, None);
    }
    let mut verdict = RepeatedJudging::new(session, options.clone()).judge(&run, on_oracle)?;
    if session.store.verdict(&run.run)?.is_some_and(|last| last.judged != verdict.judged) {
        let as_before = session.store.judge_command(&run.run);
        session.ui.hint(format!("this verdict without commands does not replace the last one; to judge as before: `{as_before}`"));
    }
    // The JSON document includes how the winner's tests end on the base, so judge them first.
    if args.show.output.json {
        tell_proof(session, &options, &mut verdict);
        return show_verdict(session, &run, &verdict, &args.show, None);
    }
    let code = show_verdict(session, &run, &verdict, &args.show, None)?;
    tell_proof(session, &options, &mut verdict);
    Ok(code)
}

/// Shows candidates that were judged singly, in a comparison table without a decision. Returns the
/// exit code.
fn render_parts(session: &Session, run: &Run, parts: &[PartOutcome], args: &JudgeArgs) -> u8 {
    let ui = &session.ui;
    let entries = || parts.iter().filter_map(|part| part.candidate.as_ref());
    let code = if !entries().any(Entry::usable) {
        exit::UNUSABLE
    } else if entries().all(|e| e.results.is_empty()) {
        exit::UNVERIFIED
    } else if !entries().any(Entry::passed) {
        let is_open = |e: &Entry| e.skipped() || e.is_contradicted();
        if entries().any(is_open) { exit::UNVERIFIED } else { exit::NO }
    } else if !entries().any(Entry::verified)
        || parts.iter().any(|part| !part.terms.settings.can_verify())
    {
        exit::UNVERIFIED
    } else {
        exit::OK
    };
    if args.show.output.json {
        let candidates: Vec<_> = parts.iter().map(json::record).collect();
        let names = |is: fn(&Entry) -> bool| -> Vec<_> {
            entries().filter(|e| is(e)).map(|e| &e.candidate).collect()
        };
        let passed = names(Entry::passed);
        let skipped = names(Entry::skipped);
        let document = json!({ "run": run.run, "exit_code": code, "passed": passed, "skipped": skipped, "candidates": candidates });
        ui.answer_json(document);
    } else if args.show.output.quiet {
        let (passed, others): (Vec<_>, Vec<_>) =
            entries().partition(|e| e.verified() && code == exit::OK);
        let address = |e: &Entry| format!("{run}/{}", e.candidate);
        ui.answer(passed.iter().map(|e| address(e) + "\n").collect::<String>());
        for entry in others {
            let verified = if entry.passed() { ", not verified" } else { "" };
            ui.tell(format!("{}: {}{verified}", address(entry), comparison::outcome(entry).0));
        }
    } else {
        let terms = parts.first().map(|part| part.terms.clone()).unwrap_or_default();
        ui.answer(comparison::table(ui.out, &run.run, &terms.settings, entries()));
        let decide = terms.judge_command(&run.run, " --replay");
        ui.hint(format!("when all are judged, decide with `{decide}`"));
    }
    code
}

/// Shows a verdict in the form that the options ask for. Returns the exit code. `remote` is the
/// repository that has outcomes of the run, if any.
pub fn show_verdict(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    args: &VerdictArgs,
    remote: Option<&str>,
) -> Result<u8> {
    let hints = next_steps(session, run, verdict, remote)?;
    verdict::show(session, verdict, &args.output, json!({}), &hints);
    write_junit(session, run, verdict, args.output.junit.as_deref())?;
    if args.explain {
        // Skip the first line, which is the verdict, because it was already printed.
        let lines = explain::paragraphs(session, verdict, None)?.into_iter().flatten().skip(1);
        lines.for_each(|line| session.ui.note(line));
    }
    Ok(comparison::exit_code(verdict))
}
