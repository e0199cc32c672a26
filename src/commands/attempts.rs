//! The code that `spawn`, `add` and `retry` share at their end: runs the commands of attempts, and
//! prints the candidates.
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use crate::commands::{limited_hints, notify, resume_hint, status};
use crate::error::{Result, exit};
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::ops::spawn::SpawnedRun;
use crate::ops::spawn::attempts::{AttemptOptions, AttemptReport, Attempts};
use crate::process::interrupt;
use crate::ui::json;

// How candidates are printed.
#[derive(Debug, clap::Args)]
pub struct AnswerArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the run's id
    #[arg(short, long)]
    pub quiet: bool,
}

/// The answer about candidates: new ones, or one that had another round.
pub struct RoundAnswer<'a> {
    pub run: &'a Run,
    pub candidates: &'a [Name],
    /// The results of the candidates' commands.
    pub report: &'a AttemptReport,
    /// True if checkpoints were made while the commands ran.
    pub checkpoints: bool,
}

impl RoundAnswer<'_> {
    /// Prints each candidate with the path of its worktree. If the options ask for it, prints the
    /// JSON document or the run's id instead.
    pub fn print(&self, session: &Session, args: &AnswerArgs) -> Result<()> {
        if args.json {
            session.ui.answer_json(self.as_json(session)?);
            return Ok(());
        }
        if args.quiet {
            session.ui.answer(format!("{}\n", self.run.run));
            return Ok(());
        }
        for name in self.candidates {
            let candidate = session.store.candidate(self.run, name);
            let path = candidate.worktree();
            // The path is empty if the worktree was removed, as after an attempt without changes.
            let path = if path.exists() { path.as_os_str().as_bytes() } else { b"" };
            session.ui.answer([format!("{candidate}\t").as_bytes(), path, b"\n"].concat());
        }
        Ok(())
    }

    /// Prints the candidates, and a hint for the next step. Returns the exit code. `go_on` is the
    /// hint if git-frites was interrupted.
    pub fn conclude(&self, session: &Session, args: &AnswerArgs, go_on: &str) -> Result<u8> {
        self.print(session, args)?;
        let ui = &session.ui;
        let run = &self.run.run;
        let results = &self.report.results;
        let usable = results.iter().filter(|captured| captured.usable()).count();
        notify(session, &format!("run {run}: {usable} of {} usable", results.len()));
        if usable == 0 {
            let all = self.run.candidates.len() == self.candidates.len();
            let of_round = if all { "" } else { " of this round" };
            ui.warn(format!("no candidate{of_round} is usable"));
        }
        limited_hints(session, self.run).iter().for_each(|hint| ui.hint(hint));
        if interrupt::signal().is_some() {
            ui.hint(format!("the work so far is kept; {go_on}"));
        } else if usable > 0 {
            ui.hint(format!(
                "compare with `git frites diff {run}`, decide with `{}`",
                session.store.judge_command(run)
            ));
        } else {
            ui.hint(format!(
                "`git frites status {run}` shows why; `git frites output {run}` shows what they printed"
            ));
        }
        Ok(if usable > 0 { exit::OK } else { exit::UNUSABLE })
    }

    fn as_json(&self, session: &Session) -> Result<serde_json::Value> {
        let run = self.run;
        let mut candidates = Vec::new();
        for name in self.candidates {
            let candidate = session.store.candidate(run, name);
            let record = candidate.record()?;
            let mut object = json!({
                "candidate": name, "index": record.index, "state": record.state,
                "branch": candidate.branch().short(),
                "agent": run.agents.get(name).and_then(|a| a.agent.as_ref()), "port": record.port,
                "exit_code": record.end.exit_code, "signal": record.end.signal,
                "cleaned": record.cleaned,
            });
            if self.checkpoints {
                object["checkpoints"] = status::history_as_json(&session.repo, candidate)?;
            }
            json::put_file(&mut object, "worktree", &candidate.worktree());
            candidates.push(object);
        }
        Ok(json!({
            "run": run.run, "base": run.base, "task": run.task, "parent": json::record(&run.parent),
            "candidates": candidates, "escaped": self.report.escaped,
        }))
    }
}

/// Runs the commands of new candidates, and prints the candidates. Returns the exit code.
pub fn run_new(
    session: &Session,
    SpawnedRun { run, names, commands, prepared, lock }: SpawnedRun,
    options: &AttemptOptions,
    args: &AnswerArgs,
) -> Result<u8> {
    let report = match commands.as_slice() {
        [] => AttemptReport::default(),
        _ => Attempts { session, run: &run, options, beside: &() }
            .run(&commands)
            .map_err(|e| e.hint(resume_hint(&run)))?,
    };
    drop(lock);
    let checkpoints = options.checkpoint.is_some();
    let round = RoundAnswer { run: &run, candidates: &names, report: &report, checkpoints };
    if commands.is_empty() && prepared.iter().any(|p| p.failure.is_none()) {
        round.print(session, args)?;
        if names.len() < run.candidates.len() {
            let again = session.store.judge_command(&run.run);
            session.ui.hint(format!("decide again with `{again}`"));
        }
        return Ok(exit::OK);
    }
    round.conclude(session, args, &resume_hint(&run))
}
