//! Attempting: running commands in candidates' worktrees, and capturing what they did.
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fs::atomic;
use crate::git::capture::omitted::Omissions;
use crate::git::repo::Repo;
use crate::integrity::watch;
use crate::model::candidate::{Candidate, State};
use crate::model::env;
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::model::run::{Assignment, PROMPT, PROMPT_FILE, Run};
use crate::ops::session::{Captured, Session};
use crate::ops::spawn::checkpoint;
use crate::ops::{clean, progress, spawn};
use crate::process::{self, End, Job, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::events::{Event, HowEnded};
use crate::store::intents::{Active, Phase};
use crate::ui::table;

/// How long one argument may be: Linux takes 128 KiB with the byte that ends it (MAX_ARG_STRLEN).
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// How commands run.
pub struct Terms {
    /// How many at once.
    pub jobs: usize,
    /// For how long each.
    pub limits: Limits,
    /// How often running candidates are captured; never if none.
    pub checkpoint: Option<Duration>,
    /// Whether a candidate whose command changed nothing keeps its worktree.
    pub keep: bool,
}

/// What runs in one candidate's worktree.
#[derive(Clone, Debug)]
pub struct Order {
    /// The agent that it is, if any.
    pub agent: Option<Name>,
    /// Program and arguments, with their placeholders.
    pub argv: Vec<OsString>,
    /// Whether the prompt is its standard input.
    pub stdin: bool,
    /// Words before the prompt.
    pub framing: Option<String>,
    /// What it is asked to do. One text for many candidates.
    pub prompt: Option<Arc<[u8]>>,
}

impl Order {
    /// A command as it was typed. It reads the prompt, unless its arguments take it.
    pub fn command(argv: &[OsString], prompt: Option<Arc<[u8]>>) -> Order {
        let takes_it = |arg: &OsString| [PROMPT, PROMPT_FILE].iter().any(|key| holds(arg, key));
        Order {
            agent: None,
            argv: argv.to_vec(),
            stdin: !argv.iter().any(takes_it),
            framing: None,
            prompt,
        }
    }

    /// A command for a record, as one candidate's. Bytes that are not UTF-8 are replaced.
    pub fn assignment(argv: &[OsString]) -> Assignment {
        let command = argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        Assignment { agent: None, command, stdin: Order::command(argv, None).stdin, framing: None }
    }

    /// A command that is one candidate's.
    pub fn assigned(assignment: &Assignment, prompt: Option<Arc<[u8]>>) -> Order {
        let Assignment { agent, command, stdin, framing } = assignment.clone();
        Order {
            agent,
            argv: command.into_iter().map(OsString::from).collect(),
            stdin,
            framing,
            prompt,
        }
    }

    /// What a run's record says of a candidate; none if people work there.
    pub fn recorded(repo: &Repo, candidate: CandidateRef<'_>) -> Result<Option<Order>> {
        let prompt = candidate
            .run
            .synthesis
            .get(candidate.name)
            .map(|s| &s.prompt)
            .or(candidate.run.prompt.as_ref());
        let prompt = prompt.map(|blob| repo.blob(blob)).transpose()?.map(Arc::from);
        let argv: Vec<OsString> = candidate.run.command.iter().map(OsString::from).collect();
        Ok(match candidate.run.agents.get(candidate.name) {
            Some(assignment) => Some(Order::assigned(assignment, prompt)),
            None => (!argv.is_empty()).then(|| Order::command(&argv, prompt)),
        })
    }

    /// Refuses a command that waits for a prompt when there is none, and a prompt that no argument can hold.
    pub fn check(&self) -> Result<()> {
        let asks = |key: &str| self.argv.iter().any(|arg| holds(arg, key));
        let Some(prompt) = self.text() else {
            // An agent without anything to do would wait for it, or make something up.
            let why = match (&self.agent, [PROMPT, PROMPT_FILE].iter().find(|key| asks(key))) {
                (Some(agent), key) if self.stdin || key.is_some() => {
                    format!("the agent '{agent}' needs a prompt")
                }
                (_, Some(key)) => format!("the command has {key} in it, and there is no prompt"),
                _ => return Ok(()),
            };
            return Err(Error::usage(why)
                .hint("say what is to be done: `-p TEXT`, `--prompt-file FILE`, or `-p -` to read it from a pipe"));
        };
        // As long as the longest argument will be, with the words around the prompt.
        let filled = self
            .argv
            .iter()
            .filter(|arg| holds(arg, PROMPT))
            .map(|arg| fill_in(arg, &[(PROMPT.as_bytes(), &prompt)]).len());
        let Some(length) = filled.max() else { return Ok(()) };
        let why = match () {
            () if prompt.contains(&0) => "it holds a NUL byte".to_owned(),
            () if length > LONGEST_ARGUMENT => {
                format!("{length} bytes are more than the {LONGEST_ARGUMENT} of one")
            }
            () => return Ok(()),
        };
        Err(Error::fatal(format!("the prompt cannot be an argument: {why}"))
            .hint("let the command read {prompt_file} instead of {prompt}, or its standard input"))
    }

    /// The prompt as this candidate gets it.
    fn text(&self) -> Option<Vec<u8>> {
        let prompt = self.prompt.as_ref()?;
        Some(match &self.framing {
            Some(framing) => [framing.trim_end().as_bytes(), b"\n\n", prompt].concat(),
            None => prompt.to_vec(),
        })
    }
}

/// What came of the commands.
#[derive(Default)]
pub struct Worked {
    /// The candidates that they ran for, in the order asked.
    pub results: Vec<Captured>,
    /// What changed outside of the worktrees meanwhile.
    pub escaped: Vec<String>,
}

/// Runs commands in worktrees, and captures each as its command ends. The caller holds the run's lock, and the
/// run is marked as running.
pub fn work(
    session: &Session,
    run: &Run,
    orders: &[(Name, Order)],
    terms: &Terms,
) -> Result<Worked> {
    let store = &session.store;
    let watch = watch::begin(session, run, false)?;
    let names: Vec<Name> = orders.iter().map(|(name, _)| name.clone()).collect();
    let results = progress::live(session, run, &names, || {
        checkpoint::beside(session, run, &names, terms.checkpoint, || {
            process::in_parallel(terms.jobs, orders, |(name, order)| {
                let candidate = store.candidate(run, name);
                attempt(session, candidate, order, terms).or_else(|e| give_up(candidate, e))
            })
        })
    });
    // Told also when a capture failed: a broken configuration may be why.
    let escaped = watch.end(session, run)?.words;
    let at_work =
        |name: &Name| store.candidate(run, name).record().is_ok_and(|c| c.state == State::Running);
    // A record that could not be written still says so: then the next command finds nobody at work, and mends it.
    if results.is_ok() || !names.iter().any(at_work) {
        store.clear_active(&run.run)?;
    }
    Ok(Worked { results: results?, escaped })
}

/// Nothing runs for a candidate whose attempt we could not see to its end: it can be resumed. Gives that error back.
fn give_up(candidate: CandidateRef<'_>, error: Error) -> Result<Captured> {
    candidate
        .update(|c| {
            if c.state == State::Running {
                (c.state, c.reason) = (State::Cancelled, Some(error.message.clone()));
            }
        })
        .ok(); // that fails for the same reason, most likely
    Err(error)
}

/// Another round in a candidate's own worktree. What it holds now is captured first, so that the round before
/// and the one to come are iterations of their own.
pub fn again(
    session: &Session,
    candidate: CandidateRef<'_>,
    order: Order,
    terms: &Terms,
) -> Result<Worked> {
    let store = &session.store;
    watch::require_trust(session, Some(candidate.run))?;
    spawn::require_depth(session)?;
    spawn::require_program(&order)?;
    let _lock = store.lock_run(&candidate.run.run)?;
    let worktree = candidate.worktree();
    if !worktree.is_dir() {
        return Err(Error::fatal(format!("{candidate} has no worktree any more"))
            .hint(format!("start from what it was: `git frites spawn --from {candidate}`")));
    }
    session.tell_notes(&session.capture(candidate)?);
    store.set_active(&candidate.run.run, &Active { phase: Phase::Running, entries: Vec::new() })?;
    candidate.update(|c| (c.state, c.again) = (State::Running, true))?;
    work(session, candidate.run, &[(candidate.name.clone(), order)], terms)
}

fn attempt(
    session: &Session,
    candidate: CandidateRef<'_>,
    order: &Order,
    terms: &Terms,
) -> Result<Captured> {
    if candidate.record()?.state == State::Failed {
        return session.stored(candidate); // its setup failed
    }
    let dir = candidate.worktree();
    let prompt = order.text();
    let prompt_file = candidate.prompt();
    if let Some(text) = &prompt {
        atomic::write(&prompt_file, text)?;
    }
    let started = jiff::Timestamp::now();
    let record = candidate.update(|c| {
        c.started = Some(started);
        (c.ended, c.exit_code, c.signal, c.reason, c.leaky) = (None, None, None, None, false);
    })?;
    let told = Told {
        run: candidate.run,
        candidate: &record,
        dir: &dir,
        prompt: prompt.as_deref(),
        prompt_file: &prompt_file,
    };
    let (argv, env) = (told.argv(&order.argv), told.variables()?);
    let (policy, log) = (&session.policy, candidate.log("agent"));
    let stdin = prompt.is_some() && order.stdin;
    let stdin = stdin.then_some(prompt_file.as_path());
    // What another candidate's command told us, if we run in one, is not this one's.
    let hide = &env::ALL;
    let job =
        Job { argv: &argv, dir: &dir, policy, env, hide, stdin, log: &log, limits: terms.limits };
    // It is this candidate alone that cannot be worked on: its directory may be gone, or its arguments too long.
    let end = process::run(&job).unwrap_or_else(|e| End::not_started(crate::error::describe(&e)));
    candidate.update(|c| {
        c.ended = Some(jiff::Timestamp::now());
        c.leaky = end.leaky;
        (c.state, c.exit_code, c.signal, c.reason) = match &end.outcome {
            _ if end.cancelled => (State::Cancelled, None, None, Some("interrupted".into())),
            Outcome::TimedOut => (State::TimedOut, None, None, None),
            Outcome::Passed => (State::Succeeded, Some(0), None, None),
            Outcome::Failed { code } => (State::Failed, Some(*code), None, None),
            Outcome::Signalled { signal } => (State::Failed, None, Some(*signal), None),
            other => (State::Failed, None, None, Some(other.to_string())),
        };
    })?;
    let mut captured = session.capture_or_tell(candidate)?;
    if captured.candidate.state == State::Succeeded
        && captured.changes.is_empty()
        && captured.problem.is_none()
    {
        // A worktree with nothing in it would have been `empty`: there was none to look at.
        captured.candidate = candidate.update(|c| {
            (c.state, c.exit_code, c.reason) =
                (State::Failed, None, Some("its worktree is gone".into()));
        })?;
    }
    tell(session, candidate.run, &captured, end.elapsed.as_secs_f64())?;
    if captured.candidate.state == State::Empty
        && captured.capture.is_none()
        && captured.problem.is_none()
        // What a note tells of lies in the worktree and nowhere else.
        && captured.omissions == Omissions::default()
        && !terms.keep
        && let Err(error) = clean::remove(session, candidate, false)
    {
        // One worktree that stays does not keep the others from being judged.
        session.ui.warn(format!(
            "{}: its worktree stays: {}",
            captured.candidate.address(),
            error.message
        ));
    }
    Ok(captured)
}

/// Tells how a candidate's command ended.
fn tell(session: &Session, run: &Run, captured: &Captured, seconds: f64) -> Result<()> {
    let Candidate { candidate: name, state, exit_code, signal, leaky, .. } = &captured.candidate;
    let event = Event::Ended {
        candidate: name.clone(),
        state: *state,
        how: HowEnded::Ran { exit_code: *exit_code, signal: *signal, leaky: *leaky, seconds },
    };
    session.store.record_event(&run.run, &event)?;
    let (address, words) = (captured.candidate.address(), captured.candidate.state_in_words());
    session.ui.note(format!(
        "{address}: {words} in {}, {}",
        table::duration(seconds),
        captured.blast
    ));
    if *leaky {
        session.ui.warn(format!("{address}: it left processes behind, which were ended"));
    }
    session.tell_notes(captured);
    Ok(())
}

fn holds(arg: &OsStr, key: &str) -> bool {
    arg.as_bytes().windows(key.len()).any(|window| window == key.as_bytes())
}

/// What a command is told, by its arguments and its environment (DESIGN.md §2).
struct Told<'a> {
    run: &'a Run,
    candidate: &'a Candidate,
    dir: &'a Path,
    prompt: Option<&'a [u8]>,
    prompt_file: &'a Path,
}

impl Told<'_> {
    /// The arguments, with their placeholders filled in.
    fn argv(&self, argv: &[OsString]) -> Vec<OsString> {
        let index = self.candidate.index.to_string();
        let mut values: Vec<(&[u8], &[u8])> = vec![
            (b"{run}", self.run.run.as_str().as_bytes()),
            (b"{candidate}", self.candidate.candidate.as_str().as_bytes()),
            (b"{index}", index.as_bytes()),
            (b"{worktree}", self.dir.as_os_str().as_bytes()),
        ];
        if let Some(prompt) = self.prompt {
            values.extend([
                (PROMPT.as_bytes(), prompt),
                (PROMPT_FILE.as_bytes(), self.prompt_file.as_os_str().as_bytes()),
            ]);
        }
        let mut argv: Vec<OsString> = argv.iter().map(|arg| fill_in(arg, &values)).collect();
        // `./codemod` is what the user sees under that name; if there is none, it is the worktree's.
        if let Some(program) = argv.first_mut().filter(|p| p.as_bytes().contains(&b'/'))
            && let Ok(real) = std::path::absolute(&*program)
            && real.is_file()
        {
            *program = real.into();
        }
        argv
    }

    fn variables(&self) -> Result<Vec<(String, OsString)>> {
        let mut variables: Vec<(String, OsString)> = vec![
            (env::RUN.into(), self.run.run.as_str().into()),
            (env::CANDIDATE.into(), self.candidate.candidate.as_str().into()),
            (env::INDEX.into(), self.candidate.index.to_string().into()),
            (env::COUNT.into(), self.run.candidates.len().to_string().into()),
            (env::BASE.into(), self.run.base.as_str().into()),
            (env::WORKTREE.into(), self.dir.into()),
            (env::DEPTH.into(), spawn::depth()?.saturating_add(1).to_string().into()),
        ];
        variables
            .extend(self.candidate.port.map(|port| (env::PORT.into(), port.to_string().into())));
        variables.extend(self.prompt.map(|_| (env::PROMPT_FILE.into(), self.prompt_file.into())));
        Ok(variables)
    }
}

/// Replaces placeholders, in one pass: a value that looks like one stays as it is.
fn fill_in(arg: &OsStr, values: &[(&[u8], &[u8])]) -> OsString {
    let mut rest = arg.as_bytes();
    let mut filled = Vec::new();
    while let Some((&first, tail)) = rest.split_first() {
        match values.iter().find(|(key, _)| rest.starts_with(key)) {
            Some((key, value)) => {
                filled.extend_from_slice(value);
                rest = &rest[key.len()..];
            }
            None => {
                filled.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(filled)
}
