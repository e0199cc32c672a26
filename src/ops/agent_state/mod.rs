//! The state directories of an attempt's agents. Each attempt has its own state directories, so that its
//! agents do not write to the user's state directories. A state directory starts with copies of the user's
//! settings. While a command runs, it also has a copy of the user's login. The state directories are kept as
//! long as the run.
mod copies;
mod login;
pub mod users;

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agents::{self, StateVariable};
use crate::error::{Error, IoContext, Result};
use crate::fs::tree::{delete_tree, nearest_real};
use crate::model::FORMAT;
use crate::model::name::Name;
use crate::ops::agent_state::copies::Copies;
use crate::ops::agent_state::login::{CopiedLogin, Settled};
use crate::ops::agent_state::users::UsersState;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::records::{read_toml, write_toml};

/// `agent.toml`: the record of the state directories. Guarded commands cannot write to it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct AgentStateRecord {
    /// The record's format.
    version: u32,
    /// The agents that have state directories, in the order of their first commands.
    agents: Vec<Name>,
    /// The copied logins that are in the state directories now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    logins: Vec<CopiedLogin>,
}

/// Makes the state directories of an agent for its next command, with a copy of the user's current login.
/// Returns the environment variables that name the directories. Returns none if there is no agent, or if no
/// variable decides where the agent keeps its state.
pub fn prepare(
    session: &Session,
    candidate: CandidateRef<'_>,
    agent: Option<&Name>,
) -> Result<Vec<(String, OsString)>> {
    let Some(agent) = agent else { return Ok(Vec::new()) };
    let variables = agents::state(&session.config, agent);
    if variables.is_empty() {
        return Ok(Vec::new());
    }
    settle(session, candidate);
    let root = candidate.directory().agent_state();
    let failed = || format!("could not make the state directory of the agent '{agent}'");
    make_private(&root).context(failed)?;
    let users = UsersState::of(session);
    let mut copies = Copies::default();
    for variable in &variables {
        begin(&root, variable, &users, &mut copies).context(failed)?;
    }
    for path in copies.left_out {
        let path = path.display();
        session.ui.warn(format!("{candidate}: its agent '{agent}' runs without '{path}': it cannot be copied, or is too large"));
    }
    let logins: Vec<(CopiedLogin, Vec<u8>)> =
        variables.iter().flat_map(|variable| login::of_user(variable, &users)).collect();
    // The record is written before the logins, so that after a kill, the next git-frites command can find and
    // remove them.
    let mut record = read(candidate);
    if !record.agents.contains(agent) {
        record.agents.push(agent.clone());
    }
    record.logins = logins.iter().map(|(login, _)| login.clone()).collect();
    write_toml(&candidate.directory().agent_record(), &record)?;
    for (login, bytes) in &logins {
        login.write(&root, bytes).context(failed)?;
    }
    Ok(variables
        .into_iter()
        .map(|variable| (variable.name.clone(), root.join(variable.name).into()))
        .collect())
}

/// Prepares a candidate's existing state directories for a person who goes on working in its worktree.
/// Returns the environment variables that name them.
pub fn prepare_again(
    session: &Session,
    candidate: CandidateRef<'_>,
) -> Result<Vec<(String, OsString)>> {
    let agents = read(candidate).agents;
    let mut variables = Vec::new();
    for agent in &agents {
        variables.extend(prepare(session, candidate, Some(agent))?);
    }
    Ok(variables)
}

/// The parent directory of a candidate's state directories, with links resolved; `None` if it does not exist.
pub fn directory(candidate: CandidateRef<'_>) -> Option<PathBuf> {
    let root = candidate.directory().agent_state();
    let is_real = fs::symlink_metadata(&root).is_ok_and(|meta| meta.is_dir());
    is_real.then(|| nearest_real(&root))
}

/// The names of the environment variables that name a candidate's state directories.
pub fn variables(session: &Session, candidate: CandidateRef<'_>) -> Vec<String> {
    let agents = read(candidate).agents;
    let variables = agents.iter().flat_map(|agent| agents::state(&session.config, agent));
    variables.map(|variable| variable.name).collect()
}

/// Removes the logins from a candidate's state directories. If an agent has refreshed a login, and the user's
/// login has not changed since it was copied, puts the new tokens into the user's login. A failure is only a
/// warning.
pub fn settle(session: &Session, candidate: CandidateRef<'_>) {
    let mut record = read(candidate);
    if record.logins.is_empty() {
        return;
    }
    let users = UsersState::of(session);
    for login in std::mem::take(&mut record.logins) {
        match login.settle(&candidate.directory().agent_state(), &users) {
            Ok(Settled::Kept) => {}
            Ok(Settled::GivenBack(file)) => {
                let file = file.display();
                session
                    .ui
                    .note(format!("{candidate}: its agent has refreshed the login in '{file}'"));
            }
            Err(e) => {
                let path = login.in_state(&candidate.directory().agent_state());
                let error = Error::io(format!("could not remove '{}'", path.display()), e);
                session.ui.warn(format!("{candidate}: {}", error.message));
            }
        }
    }
    if let Err(error) = write_toml(&candidate.directory().agent_record(), &record) {
        session.ui.warn(error.message);
    }
}

/// Makes the state directory that one variable names, unless it exists, with copies of the user's settings.
/// If other programs share the user's directory (as with `XDG_CONFIG_HOME`), also makes links to its other
/// entries.
fn begin(
    root: &Path,
    variable: &StateVariable,
    users: &UsersState,
    copies: &mut Copies,
) -> io::Result<()> {
    let directory = root.join(&variable.name);
    if fs::symlink_metadata(&directory).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    // Fill it under a temporary name, so that a kill cannot leave an incomplete directory.
    let new = root.join(".new");
    delete_tree(&new)?;
    make_private(&new)?;
    if let Some(known) = variable.known {
        for (from, path) in users.settings(known) {
            copies.copy(&from, &new.join(path));
        }
        if let (Some(own), Some(of_user)) = (known.own, users.directory(known)) {
            copies::link_others(&of_user, own, &new)?;
        }
    }
    delete_tree(&directory)?;
    fs::rename(new, directory)
}

/// Makes a directory that only this user can enter, unless the directory exists.
fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(directory)
}

/// Reads the record. Returns an empty record if there is none, or if it is damaged. An unguarded command can
/// write to the record, so a damaged record is not an error.
fn read(candidate: CandidateRef<'_>) -> AgentStateRecord {
    let record = read_toml(&candidate.directory().agent_record());
    record.unwrap_or(AgentStateRecord { version: FORMAT, agents: Vec::new(), logins: Vec::new() })
}
