//! Where the user's own agents keep their state.
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::agents::built_in::{StateDirectory, StateFile, StateFileKind};
use crate::model::env;
use crate::ops::session::Session;

/// The variables of the user's that decide where agents keep their state.
pub struct UsersState {
    environment: HashMap<OsString, OsString>,
}

impl UsersState {
    /// As a command without variables of ours would find it.
    pub fn of(session: &Session) -> UsersState {
        UsersState { environment: session.policy.environment(&env::ALL, &[]) }
    }

    /// As a command would find it that gets all variables of this process.
    pub fn of_process() -> UsersState {
        UsersState { environment: std::env::vars_os().collect() }
    }

    /// True if the variable has a value.
    pub fn has(&self, name: &str) -> bool {
        self.environment.get(OsStr::new(name)).is_some_and(|value| !value.is_empty())
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        let value = PathBuf::from(self.environment.get(OsStr::new(name))?);
        value.is_absolute().then_some(value)
    }

    /// The user's directory; `None` without HOME.
    pub fn directory(&self, state: &StateDirectory) -> Option<PathBuf> {
        let of_variable = self.variable(state.variable);
        of_variable.or_else(|| Some(self.variable("HOME")?.join(state.default)))
    }

    /// The user's file, if it has a place.
    fn file(&self, state: &StateDirectory, file: &StateFile) -> Option<PathBuf> {
        match file.kind {
            StateFileKind::SettingInHome if self.variable(state.variable).is_none() => {
                Some(self.variable("HOME")?.join(file.path))
            }
            _ => Some(self.directory(state)?.join(file.path)),
        }
    }

    /// The user's settings, each with its path in the state directory.
    pub fn settings(
        &self,
        state: &'static StateDirectory,
    ) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let settings = state.files.iter().filter(|file| file.tokens().is_none());
        settings.filter_map(|file| Some((self.file(state, file)?, file.path)))
    }

    /// The user's logins, each with its path in the state directory.
    pub fn logins(
        &self,
        state: &'static StateDirectory,
    ) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let logins = state.files.iter().filter(|file| file.tokens().is_some());
        logins.filter_map(|file| Some((self.file(state, file)?, file.path)))
    }
}
