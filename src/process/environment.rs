//! The environment of users' commands: the variables that they get from git-frites.
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::model::env;
use crate::process::ancestry;

/// The variables that `git rev-parse --local-env-vars` lists (git 2.47): they tie a process to one
/// repository. A candidate's command must find its own worktree's repository, not the one of the
/// hook or alias that git-frites was started from.
pub const LOCAL_ENV_VARS: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
];

/// The filter of our own log, as `tracing_subscriber::EnvFilter` reads it.
pub const LOG: &str = "FRITES_LOG";

/// The file that our own log goes to instead of standard error.
pub const LOG_FILE: &str = "FRITES_LOG_FILE";

/// The beginning of the names of the variables that make git trace its work.
pub const GIT_TRACE: &str = "GIT_TRACE";

/// The variables by which a program finds other programs, its user, its terminal, its language and
/// its directory for temporary files: `env.mode = "clean"` starts from them.
const CLEAN: [&str; 12] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
    "XDG_*",
];

/// `[env]`: the variables that pass to candidates' commands and to oracle commands.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The variables that pass; all if this is `None`.
    only: Option<GlobSet>,
    /// The variables that never pass.
    deny: GlobSet,
}

impl Policy {
    /// With `clean`, passes the few variables that every program needs and those that match `pass`;
    /// otherwise all. In both cases `deny` takes variables away. A pattern that is not a valid glob is an
    /// error, which names the pattern.
    pub fn new(
        clean: bool,
        pass: &[String],
        deny: &[String],
    ) -> Result<Policy, (String, globset::Error)> {
        let only = clean
            .then(|| globs(CLEAN.iter().copied().chain(pass.iter().map(String::as_str))))
            .transpose()?;
        Ok(Policy { only, deny: globs(deny.iter().map(String::as_str))? })
    }

    fn passes(&self, name: &OsStr) -> bool {
        self.only.as_ref().is_none_or(|set| set.is_match(name)) && !self.deny.is_match(name)
    }

    /// The environment of a command: the variables of git-frites that pass, and then `set`. Variables that
    /// tie it to our repository, that trace git-frites, or that `hide` names do not pass.
    pub fn environment(
        &self,
        hide: &[&str],
        set: &[(String, OsString)],
    ) -> HashMap<OsString, OsString> {
        let hidden =
            |name: &OsStr| traces_us(name) || LOCAL_ENV_VARS.iter().chain(hide).any(|h| *h == name);
        let ours = std::env::vars_os().filter(|(name, _)| self.passes(name) && !hidden(name));
        ours.chain(set.iter().map(|(name, value)| (name.into(), value.clone()))).collect()
    }
}

/// True for a variable that traces git-frites. A command that got it would print more than usual, and its
/// outcome would not be found in the cache.
fn traces_us(name: &OsStr) -> bool {
    name == LOG || name == LOG_FILE || name.as_bytes().starts_with(GIT_TRACE.as_bytes())
}

/// The candidate, as `RUN/CAND`, whose own command or oracle command called us; `None` if a person did.
/// `runs` is the directory with the logs of the repository's runs.
///
/// On systems where ancestors cannot be seen, only an attempt's own command is found, and it can hide
/// itself. A command that a person started with `exec` has no depth variable.
pub fn caller(runs: &Path) -> Option<String> {
    let inside = ancestry::surrounding_logs().iter().find_map(|log| {
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
