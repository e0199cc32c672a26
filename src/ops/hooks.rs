//! Hooks of git-frites (`hooks.*`), not of git: user commands that run at certain events, with a
//! JSON document on their standard input. Only the user's own configuration names them.
//!
//! Their logs are in the run's directory, not in a candidate's: git-frites commands inside a hook
//! count as commands of the user, not of an attempt.
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::config::keys::{self, Key};
use crate::config::value::Argv;
use crate::error::{Error, Result};
use crate::fs::atomic;
use crate::integrity::baseline::WatchDir;
use crate::integrity::trust;
use crate::model::env;
use crate::model::layout::AGENT;
use crate::model::name::Name;
use crate::ops::capture::Captured;
use crate::ops::log_excerpt;
use crate::ops::session::Session;
use crate::process::environment::Policy;
use crate::process::{self, End, Job, Limits};
use crate::store::candidate::CandidateRef;
use crate::ui::json;

/// The configuration key of a hook.
type HookKey = Key<Option<Argv>>;

/// The name of a hook in documents and file names.
fn hook_name(hook: HookKey) -> &'static str {
    hook.name.trim_start_matches("hooks.")
}

/// Runs the hook for a candidate whose command has ended.
pub fn tell_ended(session: &Session, candidate: CandidateRef<'_>, captured: &Captured) {
    let record = &captured.candidate;
    let mut fields = json!({
        "run": record.run, "candidate": record.candidate, "state": record.state,
        "exit_code": record.end.exit_code, "signal": record.end.signal, "reason": record.reason,
        "seconds": record.run_time().map(|time| time.as_secs_f64()),
        "iteration": captured.capture.as_ref().map(|capture| capture.iteration),
        "lines": captured.blast.lines, "files_touched": captured.blast.files,
    });
    json::put_file(&mut fields, "worktree", &candidate.worktree());
    json::put_file(&mut fields, "log", &candidate.directory().logs().log(AGENT));
    tell(session, keys::HOOKS_CANDIDATE_ENDED, &record.run, Some(&record.candidate), fields);
}

/// True if a hook is configured that is asked before a worktree is removed.
pub fn is_asked_to_remove(session: &Session) -> bool {
    session.config.get(keys::HOOKS_BEFORE_CLEAN).is_some()
}

/// Asks the hook whether a candidate's worktree may be removed; true if it ran. A hook that fails or
/// is interrupted refuses.
pub fn allow_removal(session: &Session, candidate: CandidateRef<'_>) -> Result<bool> {
    if !is_asked_to_remove(session) || !candidate.worktree().exists() {
        return Ok(false);
    }
    let record = candidate.record()?;
    let mut fields = json!({
        "run": record.run, "candidate": record.candidate, "state": record.state,
        "landing": record.landing, "port": record.port,
        "branch": candidate.branch().short(),
    });
    json::put_file(&mut fields, "worktree", &candidate.worktree());
    let run = &candidate.run.run;
    match run_hook(session, keys::HOOKS_BEFORE_CLEAN, run, Some(candidate.name), fields)? {
        None => Ok(true),
        Some(Failure { words, log, .. }) => Err(Error::no(format!(
            "hooks.before-clean refuses that {candidate} is removed: {words}"
        ))
        .hint(format!("its output is in '{}'", log.display()))),
    }
}

/// Runs a hook. Only warns if it fails, because nothing depends on it.
pub fn tell(session: &Session, hook: HookKey, run: &Name, candidate: Option<&Name>, fields: Value) {
    let name = hook.name;
    match run_hook(session, hook, run, candidate, fields) {
        Ok(None | Some(Failure { is_interrupted: true, .. })) => {}
        Ok(Some(Failure { words, log, .. })) => {
            log_excerpt::warn(session, &format!("{name} failed: {words}"), &log);
        }
        Err(error) => session.ui.warn(format!("{name} was not run: {}", error.message)),
    }
}

/// How a hook failed, and the log file with its output.
struct Failure {
    words: String,
    log: PathBuf,
    is_interrupted: bool,
}

/// Runs a hook to its end; gives the failure if it failed.
fn run_hook(
    session: &Session,
    hook: HookKey,
    run: &Name,
    candidate: Option<&Name>,
    mut fields: Value,
) -> Result<Option<Failure>> {
    let Some(Argv(argv)) = session.config.get(hook) else { return Ok(None) };
    let hook = hook_name(hook);
    // Without this, a hook that judges or lands would start itself again.
    let around = std::env::var(env::HOOK).unwrap_or_default();
    if around.split(' ').any(|name| name == hook) {
        return Ok(None);
    }
    // A command of an attempt may have changed the configuration that names the hook.
    trust::require_trust(session.integrity(), None)?;
    fields["hook"] = json!(hook);
    let directory = session.store.run_dir(run);
    let input = directory.hook_input(hook, candidate);
    let log = directory.hook_log(hook, candidate);
    atomic::write(&input, json::document(fields).as_bytes())?;
    let argv: Vec<OsString> = argv.into_iter().map(OsString::from).collect();
    let dir = session.home.clone().unwrap_or_else(|| session.repo.common_dir().to_owned());
    let mut variables = vec![(env::HOOK, format!("{around} {hook}").trim().to_owned())];
    variables.push((env::RUN, run.to_string()));
    variables.extend(candidate.map(|name| (env::CANDIDATE, name.to_string())));
    // A hook does not get the variables of an attempt, except for the depth: git-frites inside the
    // hook must still count as nested.
    let hide: Vec<&str> = env::ALL.into_iter().filter(|name| *name != env::DEPTH).collect();
    let job = Job {
        argv: &argv,
        dir: &dir,
        policy: &Policy::default(),
        env: variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
        hide: &hide,
        stdin: Some(&input),
        log: &log,
        limits: Limits { hard: Some(session.config.get(keys::HOOKS_TIMEOUT)), ..Limits::default() },
        confinement: None,
    };
    // If git-frites is killed, the next one looks in this directory for processes that are still
    // running.
    let work = WatchDir::create(&session.store, run)?;
    let ended = process::run(&job);
    work.close(&session.store)?;
    let End { outcome, cancelled, .. } = ended?;
    let words = if cancelled { "interrupted".to_owned() } else { outcome.to_string() };
    let failed = cancelled || !outcome.passed();
    Ok(failed.then_some(Failure { words, log, is_interrupted: cancelled }))
}
