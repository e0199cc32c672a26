//! A module of Python that a detected command starts (`python3 -m pytest`) and that its interpreter
//! does not have: the command fails on every tree, and no candidate is the cause.
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::ecosystems;
use crate::error::{Error, IoContext, Result};
use crate::model::env;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Outcome, Stage};
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::process::{self, Job, Limits};

/// The interpreter of detected commands. Those that uv and poetry start have packages of their own.
const INTERPRETER: &str = "python3";

/// The exit code of [`FIND`] for a module that is not there. A failure of Python itself is 1.
const NOT_FOUND: i32 = 3;

/// Looks for a module where `-m` would, without running anything of the checkout.
const FIND: &str = "import sys
paths = sys.path[:]
sys.path[:] = [path for path in paths if path]
import importlib.util
sys.path[:] = paths
sys.exit(0 if importlib.util.find_spec(sys.argv[1]) else 3)";

/// The longest that the interpreter may take; then nothing is known.
const PATIENCE: Duration = Duration::from_secs(10);

/// Refuses detected commands of which one starts a module that is not installed. Fails if the
/// interpreter cannot be asked.
pub fn require(session: &Session, base: &Oid, oracle: &ResolvedOracle) -> Result<()> {
    let Some((command, module)) = missing(session, base, oracle)? else { return Ok(()) };
    let stage = command.stage;
    let error = Error::fatal(format!(
        "the {stage} command cannot run: {INTERPRETER} has no module '{module}'"
    ))
    .hint(format!(
        "install it, let `oracle.setup` do so, or name another command with `--{stage} CMD` (this one is from {})",
        command.source
    ));
    Err(match of_another_python(command) {
        Some(line) => error.hint(format!(
            "'{module}' on PATH is of another Python; if that has what the project needs: `--{stage} {line}`"
        )),
        None => error,
    })
}

/// The command without its interpreter as a word to type, if a program on PATH has the name of its module: that program
/// brings an interpreter of its own, which may lack the packages of the project. So nobody but the
/// user takes it.
pub fn of_another_python(command: &OracleCommand) -> Option<String> {
    let module = module_of(&command.command).filter(|module| process::on_path(module.as_ref()))?;
    let CommandLine::Argv(words) = &command.command else { return None };
    let rest = words.iter().skip(3).map(String::as_str);
    let line = shell_words::join(std::iter::once(module).chain(rest));
    Some(shell_words::quote(&line).into_owned())
}

/// The command and its module, if nothing can bring it: neither a setup command nor seeds. Nobody is
/// asked if the interpreter is not installed or gives no answer.
pub fn missing<'o>(
    session: &Session,
    base: &Oid,
    oracle: &'o ResolvedOracle,
) -> Result<Option<(&'o OracleCommand, &'o str)>> {
    let has_setup = oracle.commands.iter().any(|c| c.stage == Stage::Setup);
    if !oracle.is_detected || has_setup || !process::on_path(INTERPRETER.as_ref()) {
        return Ok(None);
    }
    for command in &oracle.commands {
        let Some(module) = module_of(&command.command) else { continue };
        if !is_found(session, module)? && !brings_environment(session, base)? {
            return Ok(Some((command, module)));
        }
    }
    Ok(None)
}

/// The module that a command starts and that Python does not come with.
fn module_of(command: &CommandLine) -> Option<&str> {
    let CommandLine::Argv(words) = command else { return None };
    match words.as_slice() {
        [python, option, module, ..] if python == INTERPRETER && option == "-m" => {
            (module != "unittest").then_some(module)
        }
        _ => None,
    }
}

/// True if the interpreter finds a module, or cannot tell.
fn is_found(session: &Session, module: &str) -> Result<bool> {
    let scratch = tempfile::tempdir().context(|| "could not make a temporary directory".into())?;
    let argv: Vec<OsString> = [INTERPRETER, "-c", FIND, module].map(OsString::from).to_vec();
    let job = Job {
        argv: &argv,
        dir: session.home.as_deref().unwrap_or_else(|| scratch.path() as &Path),
        policy: &session.policy,
        env: Vec::new(),
        hide: &env::ALL,
        stdin: None,
        log: &scratch.path().join("log"),
        limits: Limits { hard: Some(PATIENCE), ..Limits::default() },
        confinement: None,
    };
    Ok(process::run(&job)?.outcome != Outcome::Failed { code: NOT_FOUND })
}

/// True if the seeds hold a virtual environment.
fn brings_environment(session: &Session, base: &Oid) -> Result<bool> {
    let seeds = session.seeds(base)?;
    let tied = ecosystems::installed().filter(|installed| installed.is_tied_to_its_place);
    let below: Vec<String> = tied.map(|installed| format!("{}/", installed.directory)).collect();
    Ok(seeds.paths().any(|path| below.iter().any(|dir| path.starts_with(dir.as_bytes()))))
}
