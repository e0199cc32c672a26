//! The state directories of an attempt's agents. Each attempt has its own state directories, so
//! that its agents do not write to the user's state directories. A state directory starts with
//! copies of the user's settings. While a command runs, it also has a copy of the user's login. The
//! state directories are kept as long as the run.
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
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::ops::agent_state::copies::Copies;
use crate::ops::agent_state::login::{CopiedLogin, Settled};
use crate::ops::agent_state::users::UsersState;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::records::{read_toml, write_toml};

/// `agent.toml`: the record of the state directories. Guarded commands cannot write to it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct AgentStateRecord {
    /// The record's format.
    version: u32,
    /// The agents that have state directories, in the order of their first commands.
    agents: Vec<Name>,
    /// The copied logins that are in the attempt's state directories now.
    logins: Vec<CopiedLogin>,
    /// The copied logins that are in a person's state directories now.
    logins_of_person: Vec<CopiedLogin>,
    /// The moment at which a person's directories were made; `None` if there are none.
    made_for_person: Option<AttemptMoment>,
}

/// A moment in an attempt's work, which changes when its command starts or ends. It is taken from
/// the candidate's record, because a git-frites that is killed cannot write to `agent.toml` that
/// the command has ended.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct AttemptMoment {
    /// The time at which the last command started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<jiff::Timestamp>,
    /// True while the command runs.
    is_running: bool,
}

/// The name of the directory that holds a person's state directories. It is beside the attempt's
/// state directories.
const OF_PERSON: &str = "person";

/// The owner of state directories: the attempt, or a person who works in its worktree. Each has
/// copied logins of its own, so that a person can work while a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Attempt,
    Person,
}

impl Owner {
    /// The parent of the owner's state directories.
    fn root(self, candidate: CandidateRef<'_>) -> PathBuf {
        let of_attempt = candidate.directory().agent_state();
        if self == Owner::Person { of_attempt.join(OF_PERSON) } else { of_attempt }
    }

    /// The owner's logins in the record.
    fn logins(self, record: &mut AgentStateRecord) -> &mut Vec<CopiedLogin> {
        match self {
            Owner::Attempt => &mut record.logins,
            Owner::Person => &mut record.logins_of_person,
        }
    }
}

/// Makes the state directories of an agent for its next command, with a copy of the user's current
/// login. Returns the environment variables that name the directories. Returns none if there is no
/// agent, or if no variable decides where the agent keeps its state.
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
    let _lock = candidate.lock()?;
    let mut record = read(candidate);
    settle_of(session, candidate, Owner::Attempt, &mut record);
    if !record.agents.contains(agent) {
        record.agents.push(agent.clone());
    }
    StateDirectories { session, candidate, agent, owner: Owner::Attempt, is_made_anew: false }
        .make(&variables, &mut record)
}

/// Prepares state directories for a person who goes on working in a candidate's worktree, and whose
/// commands are not guarded. Returns the environment variables that name them.
///
/// An agent runs and obeys files in its state directory, and the attempt can write to the attempt's
/// state directories. So the person gets separate ones, with the user's settings and the attempt's
/// conversations. If a command of the attempt has run since these were made, they are made anew,
/// and the old ones are kept beside them. If git-frites does not know which files of a state
/// directory are conversations, its variable is not set. If conversations are stored together with
/// data that the agent obeys, they are not copied, and a note says where they are.
pub fn prepare_for_person(
    session: &Session,
    candidate: CandidateRef<'_>,
) -> Result<Vec<(String, OsString)>> {
    let _lock = candidate.lock()?;
    let mut record = read(candidate);
    settle_of(session, candidate, Owner::Person, &mut record);
    let attempt = candidate.record()?;
    let is_running = attempt.state == State::Running;
    let moment = Some(AttemptMoment { started: attempt.started, is_running });
    // A login that could not be given back stays in these directories until it can be.
    let is_made_anew = record.made_for_person != moment && record.logins_of_person.is_empty();
    if is_made_anew {
        record.made_for_person = moment;
    }
    let mut variables = Vec::new();
    for agent in &record.agents.clone() {
        let (known, unknown): (Vec<_>, Vec<_>) = agents::state(&session.config, agent)
            .into_iter()
            .partition(|variable| variable.known.is_some());
        for name in unknown.into_iter().map(|variable| variable.name) {
            let directory = candidate.directory().agent_state().join(&name);
            session.ui.note(format!("{name} is not set: the attempt could write to '{}', where the agent '{agent}' may find programs and settings", directory.display()));
        }
        for variable in &known {
            let Some(place) = variable.known.and_then(|state| state.conversations_left) else {
                continue;
            };
            let place = candidate.directory().agent_state().join(&variable.name).join(place);
            if fs::symlink_metadata(&place).is_ok() {
                session.ui.note(format!("the conversation of the agent '{agent}' stays with the attempt, in '{}': what the attempt wrote there is more than a conversation, and your agent would obey it", place.display()));
            }
        }
        let owner = Owner::Person;
        let made = StateDirectories { session, candidate, agent, owner, is_made_anew };
        variables.extend(made.make(&known, &mut record)?);
    }
    Ok(variables)
}

/// The state directories of one agent of a candidate.
struct StateDirectories<'a> {
    session: &'a Session,
    candidate: CandidateRef<'a>,
    agent: &'a Name,
    owner: Owner,
    /// True if directories that exist are replaced.
    is_made_anew: bool,
}

impl StateDirectories<'_> {
    /// Makes the directories of these variables with the user's logins, which it adds to `record`.
    /// Writes the record, and returns the variables with their values.
    fn make(
        &self,
        variables: &[StateVariable],
        record: &mut AgentStateRecord,
    ) -> Result<Vec<(String, OsString)>> {
        let StateDirectories { session, candidate, agent, owner, .. } = *self;
        let root = &owner.root(candidate);
        let failed = || format!("could not make the state directory of the agent '{agent}'");
        make_private(root).context(failed)?;
        let users = UsersState::of(session);
        let mut copies = Copies::default();
        for variable in variables {
            self.begin(variable, &users, &mut copies).context(failed)?;
        }
        for path in copies.left_out {
            let path = path.display();
            session.ui.warn(format!("{candidate}: its agent '{agent}' runs without '{path}': it cannot be copied, or is too large"));
        }
        let left = owner.logins(record).clone();
        let mut logins: Vec<(CopiedLogin, Vec<u8>)> =
            variables.iter().flat_map(|variable| login::of_user(variable, &users)).collect();
        // The agent goes on with its new tokens if they could not be put into the user's login yet.
        logins.retain(|(login, _)| {
            let is_left = left.iter().any(|left| left.is_at_path_of(login));
            !is_left || fs::symlink_metadata(login.in_state(root)).is_err()
        });
        // The record is written before the logins, so that after a kill, the next git-frites
        // command can find and remove them.
        owner.logins(record).extend(logins.iter().map(|(login, _)| login.clone()));
        write_toml(&candidate.directory().agent_record(), record)?;
        for (login, bytes) in &logins {
            login.write(root, bytes).context(failed)?;
        }
        Ok(variables
            .iter()
            .map(|variable| (variable.name.clone(), root.join(&variable.name).into()))
            .collect())
    }

    /// Makes the directory of one variable with copies of the user's settings. If other programs
    /// share the user's directory, adds links to their entries in it. If the attempt has a
    /// directory for this variable, adds the conversations in that directory. An old directory is
    /// kept under another name.
    fn begin(
        &self,
        variable: &StateVariable,
        users: &UsersState,
        copies: &mut Copies,
    ) -> io::Result<()> {
        let root = &self.owner.root(self.candidate);
        let directory = root.join(&variable.name);
        let exists = fs::symlink_metadata(&directory).is_ok_and(|meta| meta.is_dir());
        if exists && !self.is_made_anew {
            return Ok(());
        }
        // A temporary name, so that a kill cannot leave an incomplete directory.
        let new = root.join(".new");
        delete_tree(&new)?;
        make_private(&new)?;
        if let Some(known) = variable.known {
            for (from, path) in users.settings(known) {
                copies.copy_settings(&from, &new.join(path));
            }
            let of_attempt = self.candidate.directory().agent_state().join(&variable.name);
            for pattern in known.conversations {
                copies.copy_conversations(&of_attempt, &new, pattern);
            }
            if let (Some(own), Some(of_user)) = (known.own, users.directory(known)) {
                copies::link_others(&of_user, own, &new)?;
            }
        }
        if exists {
            let mut names = (1..).map(|number| root.join(format!("{}.{number}", variable.name)));
            let free = names.find(|path| fs::symlink_metadata(path).is_err());
            fs::rename(&directory, free.unwrap_or_default())?;
        } else {
            delete_tree(&directory)?;
        }
        fs::rename(new, directory)
    }
}

/// A candidate's state directories, with links resolved. Commands of the attempt can write to
/// these. They cannot write to the parent directory, in which git-frites makes new state
/// directories.
pub fn directories(session: &Session, candidate: CandidateRef<'_>) -> Vec<PathBuf> {
    let root = candidate.directory().agent_state();
    let all = variables(session, candidate).into_iter().map(|name| root.join(name));
    let real = all.filter(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()));
    real.map(|path| nearest_real(&path)).collect()
}

/// The names of the environment variables that name a candidate's state directories.
pub fn variables(session: &Session, candidate: CandidateRef<'_>) -> Vec<String> {
    let agents = read(candidate).agents;
    let variables = agents.iter().flat_map(|agent| agents::state(&session.config, agent));
    variables.map(|variable| variable.name).collect()
}

/// Removes the logins of a candidate's attempt after its command has ended. If an agent has
/// refreshed a login, puts the new tokens into the user's login. If the user's login has changed
/// since it was copied, the new tokens are lost. A failure is only a warning.
pub fn settle(session: &Session, candidate: CandidateRef<'_>) {
    match candidate.lock() {
        Ok(_lock) => settle_all(session, candidate, &[Owner::Attempt]),
        Err(error) => session.ui.warn(error.message),
    }
}

/// As [`settle`], but also removes the logins of persons. The caller holds the candidate's lock.
pub fn settle_for_removal(session: &Session, candidate: CandidateRef<'_>) {
    settle_all(session, candidate, &[Owner::Attempt, Owner::Person]);
}

fn settle_all(session: &Session, candidate: CandidateRef<'_>, owners: &[Owner]) {
    let mut record = read(candidate);
    if owners.iter().all(|owner| owner.logins(&mut record).is_empty()) {
        return;
    }
    for owner in owners {
        settle_of(session, candidate, *owner, &mut record);
    }
    if let Err(error) = write_toml(&candidate.directory().agent_record(), &record) {
        session.ui.warn(error.message);
    }
}

/// Removes one owner's logins, except those whose new tokens could not be put into the user's
/// logins. The caller writes the record.
fn settle_of(
    session: &Session,
    candidate: CandidateRef<'_>,
    owner: Owner,
    record: &mut AgentStateRecord,
) {
    let logins = std::mem::take(owner.logins(record));
    if logins.is_empty() {
        return;
    }
    let users = UsersState::of(session);
    let root = owner.root(candidate);
    for login in logins {
        match login.settle(&root, &users) {
            Ok(Settled::Kept) => {}
            Ok(Settled::Left(e)) => {
                let path = login.in_state(&root);
                let error = Error::io("could not write to your login".to_owned(), e);
                let error = error.message;
                session.ui.warn(format!("{candidate}: its agent has refreshed its login, and git-frites {error}; the new one stays in '{}' until the candidate's next command, or `clean`, tries again", path.display()));
                owner.logins(record).push(login);
            }
            Ok(Settled::GivenBack(file)) => {
                let words = format!(
                    "{candidate}: its agent has refreshed the login in '{}'",
                    file.display()
                );
                session.ui.note(words);
                if let Err(error) = users::remember_refreshed(session, &file) {
                    session.ui.warn(format!("{candidate}: {error}"));
                }
            }
            Err(e) => {
                let path = login.in_state(&root);
                let error = Error::io(format!("could not remove '{}'", path.display()), e);
                session.ui.warn(format!("{candidate}: {error}"));
            }
        }
    }
}

/// Makes a directory that only this user can enter, unless the directory exists.
fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(directory)
}

/// Reads the record. Returns an empty record if there is none, or if it is damaged. An unguarded
/// command can write to the record, so a damaged record is not an error.
fn read(candidate: CandidateRef<'_>) -> AgentStateRecord {
    let record = read_toml(&candidate.directory().agent_record());
    record.unwrap_or(AgentStateRecord { version: FORMAT, ..AgentStateRecord::default() })
}
