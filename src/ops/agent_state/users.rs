//! Finds where the user's own agents keep their state, and faults that would stop an agent.
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::agents::built_in::{BUILT_IN, BuiltInAgent, StateDirectory};
use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::model::agent_stop::AgentFault;
use crate::model::env;
use crate::ops::session::Session;

/// The user's environment variables, which decide where agents keep their state.
pub struct UsersState {
    environment: HashMap<OsString, OsString>,
}

impl UsersState {
    /// The environment that a candidate's command gets, without the variables of git-frites.
    pub fn of(session: &Session) -> UsersState {
        UsersState { environment: session.policy.environment(&env::ALL, &[]) }
    }

    /// The environment of this process.
    pub fn of_process() -> UsersState {
        UsersState { environment: std::env::vars_os().collect() }
    }

    /// True if the variable is set and not empty.
    pub fn has(&self, name: &str) -> bool {
        self.environment.get(OsStr::new(name)).is_some_and(|value| !value.is_empty())
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        let value = PathBuf::from(self.environment.get(OsStr::new(name))?);
        value.is_absolute().then_some(value)
    }

    /// The path of the user's directory for this state; `None` if neither its variable nor HOME is
    /// set.
    pub fn directory(&self, state: &StateDirectory) -> Option<PathBuf> {
        let of_variable = self.variable(state.variable);
        of_variable.or_else(|| Some(self.variable("HOME")?.join(state.default)))
    }

    /// The user's files and directories with settings, each with its path in the state directory.
    pub fn settings(&self, state: &StateDirectory) -> Vec<(PathBuf, &'static str)> {
        let directory = self.directory(state);
        let around = match self.variable(state.variable) {
            Some(_) => directory.clone(),
            None => self.variable("HOME"),
        };
        let mut found = files_in(directory, state.settings.split_whitespace());
        found.extend(files_in(around, state.settings_in_home.split_whitespace()));
        found
    }

    /// The user's files with logins, each with its path in the state directory.
    pub fn logins(&self, state: &StateDirectory) -> Vec<(PathBuf, &'static str)> {
        files_in(self.directory(state), state.paths_of_logins())
    }

    /// The user's login files into which git-frites may write tokens from the attempt's agent.
    /// `variables` are the environment variables that name the agent's state directories.
    pub fn refreshed_logins(&self, variables: &[String]) -> Vec<PathBuf> {
        let states = BUILT_IN.iter().flat_map(|agent| agent.state);
        let states = states.filter(|state| variables.iter().any(|name| name == state.variable));
        let logins = states.flat_map(|state| self.logins(state).into_iter().zip(state.logins));
        let refreshed = logins.filter(|(_, (_, tokens))| !tokens.is_empty());
        refreshed.map(|((file, _), _)| file).collect()
    }

    /// The paths of the login files of all built-in agents, in the form of `sandbox.hide`: the
    /// usual paths, and the paths that the environment selects. A login that an attempt has
    /// refreshed is included even if the environment has changed since. It has tokens that an
    /// attempt wrote, so judged code must not read it.
    pub fn login_files(&self, session: &Session) -> Vec<String> {
        let states = || BUILT_IN.iter().flat_map(|agent| agent.state);
        let usual = states()
            .flat_map(|state| files_in(Some(state.default.into()), state.paths_of_logins()));
        let usual = usual.map(|(file, _)| Path::new("~").join(file));
        let home = self.variable("HOME").unwrap_or_default();
        let real = states().flat_map(|state| self.logins(state)).map(|(file, _)| file);
        let real = real.chain(refreshed(session)).map(|file| {
            file.strip_prefix(&home).map(|below| Path::new("~").join(below)).unwrap_or(file)
        });
        let all = usual.chain(real).map(|file| file.to_string_lossy().into_owned());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The logins that [`remember_refreshed`] has remembered.
fn refreshed(session: &Session) -> BTreeSet<PathBuf> {
    let text = regular::read(&session.store.dir().refreshed_logins()).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect()
}

/// Remembers that an attempt's tokens were written into this login, so that no judged code sees the
/// file.
pub fn remember_refreshed(session: &Session, file: &Path) -> Result<()> {
    if refreshed(session).contains(file) {
        return Ok(());
    }
    // Several attempts can end at the same time, so each appends its line in one write.
    let path = session.store.dir().refreshed_logins();
    let line = [file.as_os_str().as_bytes(), b"\n"].concat();
    let opened = File::options().create(true).append(true).open(&path);
    opened.and_then(|mut opened| opened.write_all(&line)).could_not("write", &path)
}

fn files_in(
    directory: Option<PathBuf>,
    paths: impl Iterator<Item = &'static str>,
) -> Vec<(PathBuf, &'static str)> {
    let Some(directory) = directory else { return Vec::new() };
    paths.map(|path| (directory.join(path), path)).collect()
}

/// True if the user has a login for an agent; `None` if git-frites cannot tell.
pub fn is_logged_in(agent: &BuiltInAgent, users: &UsersState) -> Option<bool> {
    let files: Vec<_> = agent.state.iter().flat_map(|state| users.logins(state)).collect();
    if agent.login_variables.is_empty() || files.is_empty() {
        return None;
    }
    let has_variable = agent.login_variables.split_whitespace().any(|name| users.has(name));
    Some(has_variable || files.iter().any(|(file, _)| file.is_file()))
}

/// The faults that would stop an agent in this environment. Finds only the faults that show without
/// starting the agent.
pub fn faults(agent: &BuiltInAgent, users: &UsersState) -> Vec<AgentFault> {
    let mut found = Vec::new();
    let refuses_root = agent.root_variable.is_some_and(|variable| !users.has(variable));
    if refuses_root && rustix::process::geteuid().is_root() {
        found.push(AgentFault::RefusesRoot);
    }
    if is_logged_in(agent, users) == Some(false) {
        found.push(AgentFault::NotLoggedIn);
    }
    found
}
