//! Hooks of git-frites (`hooks.*`), not of git: user commands that run at certain events, with a
//! JSON document on their standard input. Only the user's own configuration can set them, not
//! `.frites.toml`.
//!
//! Their logs are in the run's directory, not in a candidate's. If an ancestor process of
//! git-frites writes to a candidate's log, git-frites concludes that an attempt called it. But a
//! git-frites command in a hook counts as the user's.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::config::keys::{self, Key};
use crate::config::value::Argv;
use crate::error::{Error, Result};
use crate::fs::atomic;
use crate::fs::tree::{named_files, nearest_real};
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

/// Runs the hook `candidate-ended` for a candidate.
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

/// True if the hook `before-clean` is configured.
pub fn is_asked_to_remove(session: &Session) -> bool {
    session.config.get(keys::HOOKS_BEFORE_CLEAN).is_some()
}

/// Asks the hook `before-clean` whether a candidate's worktree may be removed. Fails if the hook
/// fails or is interrupted. Does nothing if the hook is not configured or if there is no worktree.
pub fn allow_removal(session: &Session, candidate: CandidateRef<'_>) -> Result<()> {
    if !is_asked_to_remove(session) || !candidate.worktree().exists() {
        return Ok(());
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
        None => Ok(()),
        Some(Failure { words, log, .. }) => Err(Error::no(format!(
            "hooks.before-clean refuses that {candidate} is removed: {words}"
        ))
        .hint(format!("its output is in '{}'", log.display()))),
    }
}

/// Runs a hook on which nothing depends. If the hook fails, only warns.
pub fn tell(session: &Session, hook: HookKey, run: &Name, candidate: Option<&Name>, fields: Value) {
    let name = hook.name;
    match run_hook(session, hook, run, candidate, fields) {
        Ok(None | Some(Failure { is_interrupted: true, .. })) => {}
        Ok(Some(Failure { words, log, .. })) => {
            log_excerpt::warn(session, &format!("{name} failed: {words}"), &log);
        }
        Err(error) => session.ui.warn(format!("{name} was not run: {error}")),
    }
}

/// How a hook failed, and the log file with its output.
struct Failure {
    words: String,
    log: PathBuf,
    is_interrupted: bool,
}

/// Refuses a hook if it names a file in the checkout `dir` that a landing of this process has
/// changed: the attempt's version would run with the user's permissions. Also finds such names in
/// scripts (`sh -c`).
fn refuse_landed_program(session: &Session, dir: &Path, argv: &[String]) -> Result<()> {
    let changed = session.changed_by_landing()?;
    let words: Vec<PathBuf> =
        argv.iter().flat_map(|word| named_files(word.as_bytes(), dir)).collect();
    let dir = nearest_real(dir);
    match changed.into_iter().find(|path| words.contains(&path.on_disk(&dir))) {
        None => Ok(()),
        Some(path) => {
            Err(Error::no(format!("it names '{}', which the landing has changed", path.quoted())))
        }
    }
}

/// Runs a hook to its end. Returns the failure if the hook failed; `None` if it succeeded or did
/// not have to run.
fn run_hook(
    session: &Session,
    hook: HookKey,
    run: &Name,
    candidate: Option<&Name>,
    mut fields: Value,
) -> Result<Option<Failure>> {
    let Some(Argv(argv)) = session.config.get(hook) else { return Ok(None) };
    // The name in JSON documents and file names, e.g. `before-clean`.
    let hook = hook.name.trim_start_matches("hooks.");
    // Without this check, a hook that judges or lands would start itself again and again.
    let around = std::env::var(env::HOOK).unwrap_or_default();
    if around.split(' ').any(|name| name == hook) {
        return Ok(None);
    }
    // A command of an attempt may have changed the configuration, and with it the hook's command.
    trust::require_trust(session.integrity(), None)?;
    let dir = session.home.clone().unwrap_or_else(|| session.repo.common_dir().to_owned());
    refuse_landed_program(session, &dir, &argv)?;
    fields["hook"] = json!(hook);
    let directory = session.store.run_dir(run);
    let input = directory.hook_input(hook, candidate);
    let log = directory.hook_log(hook, candidate);
    atomic::write(&input, json::document(fields).as_bytes())?;
    let argv: Vec<OsString> = argv.into_iter().map(OsString::from).collect();
    let mut variables = vec![(env::HOOK, format!("{around} {hook}").trim().to_owned())];
    variables.push((env::RUN, run.to_string()));
    variables.extend(candidate.map(|name| (env::CANDIDATE, name.to_string())));
    // A hook does not get the variables of an attempt, except `FRITES_DEPTH`. The hook of a nested
    // git-frites is nested as deeply as that git-frites, and `limits.nesting` applies to it.
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
    // If git-frites is killed, the next git-frites finds the hook's surviving processes by this
    // directory.
    let work = WatchDir::create(&session.store, run)?;
    let ended = process::run(&job);
    work.close(&session.store)?;
    let End { outcome, cancelled, .. } = ended?;
    let words = if cancelled { "interrupted".to_owned() } else { outcome.to_string() };
    let failed = cancelled || !outcome.passed();
    Ok(failed.then_some(Failure { words, log, is_interrupted: cancelled }))
}
