//! `git frites judge`: runs the project's own commands on each distinct tree, and decides.
use std::time::Duration;

use clap_complete::engine::ArgValueCompleter;
use serde_json::json;

use crate::commands::judge_args::SharedJudgeArgs;
use crate::commands::{note_left_out, print_verdict, require_jobs_within_limit, values};
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::integrity::trust;
use crate::model::address::Address;
use crate::model::base_tests::BaseTestsResult;
use crate::model::decision;
use crate::model::name::Name;
use crate::model::oracle::OracleCommand;
use crate::model::ranking::Rules;
use crate::model::run::Run;
use crate::model::verdict::{Entry, PartialVerdict, Verdict};
use crate::ops::judge::{self, JudgeOptions, unseeded};
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::store::select::Matching;
use crate::ui::{Ui, comparison, json};

/// `git frites judge`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs setup, build, lint and test on each distinct tree, up to the first one that fails. The \
commands come from these options, or else from the configuration, or else they are detected \
from the files of the base.\n\n\
Exit status: 0 a verified winner, 1 no candidate passed, 3 unverified (no command to run, \
no test among the detected commands, passed only with its own tests, judged --in-place, a seed leads back to a checkout, a missing result \
could still win, or git's configuration or files above the checkouts changed meanwhile), 4 no usable \
candidate."
)]
pub struct JudgeArgs {
    /// Run to judge  [default: the newest]
    #[arg(
        value_name = "RUN",
        value_parser = values::address,
        add = ArgValueCompleter::new(complete::runs),
    )]
    pub address: Option<Address>,
    /// Judge this candidate alone and store its results; --replay decides once all are judged
    #[arg(
        long = "candidate",
        value_name = "CAND",
        value_parser = values::name,
        add = ArgValueCompleter::new(complete::candidates),
    )]
    pub candidates: Vec<Name>,
    /// The options of judging
    #[command(flatten)]
    pub judging: SharedJudgeArgs,
    /// Number of candidates that are judged at once
    #[arg(short, long, value_name = "JOBS", default_value_t = 1, value_parser = values::count)]
    pub jobs: u32,
    /// Kill a command, and all processes that it started, after this time  [default:
    /// oracle.timeout, or 10m]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Judge in the worktrees themselves: faster, but never verified
    #[arg(long, conflicts_with = "protect")]
    pub in_place: bool,
    /// Show which commands run and why, and how the ranking was made
    #[arg(long)]
    pub explain: bool,
    /// Accept git-frites' configuration as it is now, although it changed while commands ran
    #[arg(long)]
    pub trust_config: bool,
    /// Decide again from the stored results, without running anything
    #[arg(
        long,
        conflicts_with_all = [
            "candidates", "until_pass", "in_place", "cold", "no_cache", "timeout"
        ],
    )]
    pub replay: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the winner's address; nothing if there is no winner
    #[arg(short, long)]
    pub quiet: bool,
}

/// Runs the command.
pub fn run(session: &Session, args: &JudgeArgs) -> Result<u8> {
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
    if args.trust_config {
        trust::accept(session.integrity(), &run)?;
    }
    trust::require_trust(session.integrity(), Some(&run))?;
    let on_oracle = |oracle: &ResolvedOracle| {
        if args.explain {
            explain_oracle(&session.ui, &oracle.commands);
        }
        note_left_out(&session.ui, oracle);
        unseeded::hint(session, &run.base, &oracle.commands)
    };
    if !args.candidates.is_empty() {
        let parts = judge::judge_some(session, &run, &args.candidates, &options(args), on_oracle)?;
        return render_parts(session, &run, &parts, args);
    }
    let verdict = if args.replay {
        judge::replay(session, &run, &options(args))?
    } else {
        judge::judge(session, &run, &options(args), None, on_oracle)?
    };
    if args.explain {
        explain_ranking(&session.ui, &verdict);
    }
    print_verdict(
        session,
        &verdict,
        args.json.then(|| comparison::as_json(&verdict)),
        args.quiet,
        true,
    )?;
    Ok(comparison::exit_code(&verdict))
}

fn options(args: &JudgeArgs) -> JudgeOptions {
    JudgeOptions {
        jobs: args.jobs as usize,
        timeout: args.timeout,
        in_place: args.in_place,
        ..args.judging.options()
    }
}

fn explain_oracle(ui: &Ui, oracle: &[OracleCommand]) {
    if oracle.is_empty() {
        ui.note("no command was given, configured or detected in the base's files");
    }
    for command in oracle {
        ui.note(format!("{}: `{}`, from {}", command.stage, command.command, command.source));
    }
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
        if let Some(comparison) = verdict.baseline.as_ref().and_then(|b| b.compare(entry)) {
            let kinds = [
                ("fails, and passed on the base", &comparison.broken),
                ("fails, as it does on the base", &comparison.before),
                ("fails, and is not in the base", &comparison.new),
            ];
            for (what, test) in
                kinds.iter().flat_map(|(what, tests)| tests.iter().map(move |t| (what, t)))
            {
                ui.note(format!("{}: {test} {what}", entry.candidate));
            }
        }
    }
    for line in decision::steps(&verdict.candidates, Rules::from_settings(&verdict.settings)) {
        ui.note(line);
    }
}

/// What was put back for the second judging of a candidate.
fn explain_base_tests(entry: &Entry, second: &BaseTestsResult) -> String {
    let name = &entry.candidate;
    if let Some(problem) = &second.problem {
        return format!("{name} cannot be judged with the base's tests: {problem}");
    }
    let mut changes = Vec::new();
    if !second.put_back.is_empty() {
        changes.push(format!("put back as in the base: {}", second.put_back.join(", ")));
    }
    if !second.taken_out.is_empty() {
        changes.push(format!("taken out: {}", second.taken_out.join(", ")));
    }
    let end = match second.stopped_at() {
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
        if entries().any(Entry::skipped) { exit::UNVERIFIED } else { exit::NO }
    } else if !entries().any(Entry::verified)
        || parts.iter().any(|part| !part.settings.allow_verification())
    {
        exit::UNVERIFIED
    } else {
        exit::OK
    };
    if args.json {
        let candidates: Vec<_> = parts.iter().map(|part| json!(part)).collect();
        let names = |is: fn(&Entry) -> bool| -> Vec<_> {
            entries().filter(|e| is(e)).map(|e| &e.candidate).collect()
        };
        let (passed, skipped) = (names(Entry::passed), names(Entry::skipped));
        let document = json!({ "run": run.run, "exit_code": code, "passed": passed, "skipped": skipped, "candidates": candidates });
        ui.answer(json::document(document))?;
    } else if args.quiet {
        let passed = entries().filter(|e| e.verified() && code == exit::OK);
        ui.answer(passed.map(|e| format!("{}/{}\n", run.run, e.candidate)).collect::<String>())?;
    } else {
        let settings = parts.first().map(|part| part.settings.clone()).unwrap_or_default();
        ui.answer(comparison::table(ui.out, &settings, entries()))?;
        ui.hint(format!(
            "when all are judged, decide with `git frites judge --replay {}{}`",
            run.run,
            args.judging.terms()
        ));
    }
    Ok(code)
}
