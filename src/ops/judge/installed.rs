//! Before judging, checks whether dependencies are installed. Without them, the commands would fail
//! on every judged tree, and no candidate would be the cause. Two kinds are checked:
//! * the Python module that a detected command starts (`python3 -m pytest`);
//! * directories of dependencies that exist only in the user's checkout.
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::ecosystems::{self, InstalledDirectory};
use crate::error::{Error, Result};
use crate::fs::scratch;
use crate::model::env;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Outcome, Stage};
use crate::ops::session::Session;
use crate::oracle::ResolvedOracle;
use crate::process::{self, Job, Limits};

/// The interpreter whose modules are looked for. Commands that begin with `uv` or `poetry` use
/// another interpreter with its own packages, so their modules are not looked for.
const INTERPRETER: &str = "python3";

/// The exit code of [`FIND`] for a missing module. If Python itself fails, its exit code is 1.
const NOT_FOUND: i32 = 3;

/// A program that looks for a module as `-m` would, but runs no code of the checkout.
const FIND: &str = "import sys
paths = sys.path[:]
sys.path[:] = [path for path in paths if path]
import importlib.util
sys.path[:] = paths
sys.exit(0 if importlib.util.find_spec(sys.argv[1]) else 3)";

/// If the interpreter takes longer than this, the module is assumed to be installed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fails if a detected command starts a module that is not installed, or if the interpreter cannot
/// be run.
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
            "'{module}' on PATH belongs to another Python; if that Python has the packages that the project \
             needs, use it: `--{stage} {line}`"
        )),
        None => error,
    })
}

/// The same command by the program that has the module's name (`pytest` instead of `python3 -m
/// pytest`), quoted as one shell word. `None` if this program is not on PATH. The program may use
/// an interpreter without the packages of the project, so this is only a proposal to the user.
pub fn of_another_python(command: &OracleCommand) -> Option<String> {
    let module = module_of(&command.command).filter(|module| process::on_path(module.as_ref()))?;
    let CommandLine::Argv(words) = &command.command else { return None };
    let rest = words.iter().skip(3).map(String::as_str);
    let line = shell_words::join(std::iter::once(module).chain(rest));
    Some(shell_words::quote(&line).into_owned())
}

/// The first command whose module is not installed, and this module. `None` in these cases:
/// * every module is installed;
/// * a setup command or seeds may bring the module;
/// * the interpreter is not installed, or does not answer.
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

/// The module that a command starts, unless it belongs to Python itself.
fn module_of(command: &CommandLine) -> Option<&str> {
    let CommandLine::Argv(words) = command else { return None };
    match words.as_slice() {
        [python, option, module, ..] if python == INTERPRETER && option == "-m" => {
            (module != "unittest").then_some(module)
        }
        _ => None,
    }
}

/// True if the interpreter finds a module, or does not answer.
fn is_found(session: &Session, module: &str) -> Result<bool> {
    let scratch = scratch::directory()?;
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

/// True if the seeds contain a virtual environment.
fn brings_environment(session: &Session, base: &Oid) -> Result<bool> {
    let seeds = session.seeds(base)?;
    let tied = ecosystems::installed().filter(|installed| installed.is_tied_to_its_place);
    let below: Vec<String> = tied.map(|installed| format!("{}/", installed.directory)).collect();
    Ok(seeds.paths().any(|path| below.iter().any(|dir| path.starts_with(dir.as_bytes()))))
}

/// If the user's checkout has installed dependencies that no setup command installs and no seed
/// contains, hints how the attempts and the checks can get them.
pub fn hint_at_unseeded(session: &Session, base: &Oid, oracle: &[OracleCommand]) -> Result<()> {
    let Some(home) = &session.home else { return Ok(()) };
    if oracle.is_empty() || oracle.iter().any(|c| c.stage == Stage::Setup) {
        return Ok(());
    }
    let tree = session.repo.commit(base)?.tree;
    let entries = session.repo.root_entries(&tree)?;
    for InstalledDirectory { directory, manifests, is_tied_to_its_place } in ecosystems::installed()
    {
        let is_needed = entries.iter().any(|(name, _)| manifests.contains(&name.as_str()));
        let is_tracked = entries.iter().any(|(name, _)| name == directory);
        let below = format!("{directory}/");
        if !is_needed || is_tracked || !home.join(directory).is_dir() {
            continue;
        }
        if session.seeds(base)?.paths().any(|path| path.starts_with(below.as_bytes())) {
            continue;
        }
        session.ui.hint(if *is_tied_to_its_place {
            format!(
                "'{directory}' exists only in your checkout: let `spawn.setup` make one for the attempts and the checks, or activate yours"
            )
        } else {
            format!(
                "'{directory}' exists only in your checkout: if the attempts and the checks need it, `git config --add frites.seed.copy /{directory}/`"
            )
        });
    }
    Ok(())
}
