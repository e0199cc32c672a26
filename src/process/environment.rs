//! The environment variables of the commands that git-frites runs for users.
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::model::env;
use crate::process::descendants;

/// The variables that `git rev-parse --local-env-vars` lists (git 2.47). They tie a process to one
/// repository. If a hook or an alias started git-frites, they name the repository of that hook or
/// alias. But a candidate's command must find the repository of its own worktree.
pub const LOCAL_ENV_VARS: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG
    GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_DIR GIT_WORK_TREE
    GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS
    GIT_REPLACE_REF_BASE GIT_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_INTERNAL_SUPER_PREFIX";

/// The variable with the filter of our own log, which `tracing_subscriber::EnvFilter` parses.
pub const LOG: &str = "FRITES_LOG";

/// The variable with the file to which our own log goes instead of standard error.
pub const LOG_FILE: &str = "FRITES_LOG_FILE";

/// The beginning of the names of the variables that make git trace its work.
pub const GIT_TRACE: &str = "GIT_TRACE";

/// The variables that are passed even with `env.mode = "clean"`. From them, a program learns its
/// user, terminal, language, time zone and directories, and where other programs are.
const CLEAN: &str = "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE LC_* TZ TMPDIR XDG_*";

/// The configuration `[env]`. It decides which of our variables are passed to candidates' commands
/// and to oracle commands.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The variables that are passed; `None` means all.
    only: Option<GlobSet>,
    /// The variables that are never passed.
    deny: GlobSet,
}

impl Policy {
    /// With `clean`, passes only the few variables that every program needs, and those that match
    /// `pass`. Without `clean`, passes all variables. In both cases, variables that match `deny`
    /// are not passed. Fails with the pattern if a pattern is not a valid glob.
    pub fn new(
        clean: bool,
        pass: &[String],
        deny: &[String],
    ) -> Result<Policy, (String, globset::Error)> {
        let only = clean
            .then(|| globs(CLEAN.split_whitespace().chain(pass.iter().map(String::as_str))))
            .transpose()?;
        Ok(Policy { only, deny: globs(deny.iter().map(String::as_str))? })
    }

    fn passes(&self, name: &OsStr) -> bool {
        self.only.as_ref().is_none_or(|set| set.is_match(name)) && !self.deny.is_match(name)
    }

    /// The environment of a command: our own variables, as far as they are passed, and the
    /// variables in `set`, which override ours. Three kinds of our variables are never passed:
    ///
    /// - variables that would tie the command to our repository;
    /// - variables that make git-frites trace its work;
    /// - variables that `hide` names.
    pub fn environment(
        &self,
        hide: &[&str],
        set: &[(String, OsString)],
    ) -> HashMap<OsString, OsString> {
        let hidden = |name: &OsStr| {
            traces_us(name)
                || hide.iter().copied().chain(LOCAL_ENV_VARS.split_whitespace()).any(|h| h == name)
        };
        let ours = std::env::vars_os().filter(|(name, _)| self.passes(name) && !hidden(name));
        ours.chain(set.iter().map(|(name, value)| (name.into(), value.clone()))).collect()
    }
}

/// True for a variable that makes git-frites trace its work. Such a variable could make a command
/// print more than usual. Also, the command's outcome would not be found in the cache.
fn traces_us(name: &OsStr) -> bool {
    name == LOG || name == LOG_FILE || name.as_bytes().starts_with(GIT_TRACE.as_bytes())
}

/// The candidate (`RUN/CAND`) whose command or oracle command has called us. `None` if a person has
/// called us. `runs` is the directory with the logs of the repository's runs.
///
/// If the ancestors of this process cannot be seen, environment variables name the candidate. Then
/// only an attempt's own command is found, and it could hide itself by changing the variables. A
/// command that a person started with `exec` is not an attempt's: it has no depth variable.
pub fn caller(runs: &Path) -> Option<String> {
    let inside = descendants::surrounding_logs().iter().find_map(|log| {
        let of = log.strip_prefix(runs).ok()?.parent()?;
        (of.components().count() == 2).then(|| of.display().to_string())
    });
    if inside.is_some() {
        return inside;
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable(env::DEPTH)?;
    Some(format!("{}/{}", variable(env::RUN)?, variable(env::CANDIDATE)?))
}

fn globs<'a>(patterns: impl Iterator<Item = &'a str>) -> Result<GlobSet, (String, globset::Error)> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).map_err(|e| (pattern.to_owned(), e))?);
    }
    set.build().map_err(|e| (String::new(), e))
}
