//! CachedOutcome outcomes: what the oracle said of a tree, kept in the user's cache directory for a day.
//!
//! Not under `.frites/` and not in refs: an attempt can write there. Nor is this directory out of its reach,
//! for nothing is sandboxed; but an outcome that appeared while an attempt's command ran is not believed, by
//! its change time, which a program cannot choose.
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::tree;
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::model::FORMAT;
use crate::model::env;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Outcome, StageResult};
use crate::oracle::pool;
use crate::oracle::run::OracleOptions;
use crate::process;
use crate::process::environment::Policy;

/// How long an outcome is believed: what is installed on the machine changes, and is not looked at.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Variables that say who works where, not how: they differ from terminal to terminal.
const OF_THE_TERMINAL: [&str; 20] = [
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "TERMINFO",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "STY",
    "GPG_TTY",
    "LS_COLORS",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "NO_COLOR",
    "CLICOLOR_FORCE",
];

/// The same, by how they begin. What git-frites is told by `FRITES_*` is in the oracle's definition already.
const OF_THE_TERMINAL_BEGINNINGS: [&str; 9] =
    ["FRITES_", "TERM_", "SSH_", "TMUX", "XDG_SESSION_", "DBUS_", "VTE_", "KITTY_", "VSCODE_"];

/// The outcomes of one oracle under the same conditions.
pub struct Cache {
    dir: PathBuf,
    home: Option<PathBuf>,
    conditions: String,
    /// When attempts' commands ran.
    distrusted: Vec<(SystemTime, SystemTime)>,
}

/// `outcome.toml` in the cache.
#[derive(Serialize, Deserialize)]
struct CachedOutcome {
    version: u32,
    key: String,
    results: Vec<StageResult>,
}

impl Cache {
    /// The outcomes under these conditions.
    pub fn open(
        repo: &Repo,
        home: Option<&Path>,
        oracle: &[OracleCommand],
        manner: &OracleOptions,
        seeds: &Seeds,
        policy: &Policy,
        distrusted: Vec<(SystemTime, SystemTime)>,
    ) -> Result<Cache> {
        let seeds = seeds.digest()?;
        let dir = pool::home(repo)?.join("outcomes");
        forget_old(&dir);
        let conditions = format!(
            "{FORMAT} {oracle:?} {manner:?} {seeds} {:?} {:?}",
            programs(oracle),
            surroundings(policy)
        );
        Ok(Cache { dir, home: home.map(Path::to_owned), conditions, distrusted })
    }

    fn key(&self, repo: &Repo, tree: &Oid, commit: &Oid) -> Result<String> {
        let submodules = pool::submodules(repo, self.home.as_deref(), commit)?;
        Ok(crate::git::repo::digest(
            format!("{tree} {submodules:?} {}", self.conditions).as_bytes(),
        ))
    }

    /// How the oracle ended on `tree`, if that is known; its logs are put into the directory `logs`.
    pub fn find(
        &self,
        repo: &Repo,
        tree: &Oid,
        commit: &Oid,
        logs: &Path,
    ) -> Result<Option<Vec<StageResult>>> {
        let key = self.key(repo, tree, commit)?;
        let directory = self.dir.join(&key);
        let file = directory.join("outcome.toml");
        if !(self.is_trusted(&directory) && self.is_trusted(&file)) {
            return Ok(None);
        }
        let known = fs::read_to_string(&file)
            .ok()
            .and_then(|text| toml::from_str::<CachedOutcome>(&text).ok());
        let Some(mut known) = known.filter(|k| k.key == key && k.version == FORMAT) else {
            return Ok(None);
        };
        for result in &mut known.results {
            result.cached = result.outcome != Outcome::Skipped;
        }
        fs::create_dir_all(logs).context(|| format!("could not make '{}'", logs.display()))?;
        for log in logs_in(&directory) {
            if let Some(name) = log.file_name() {
                let to = logs.join(name);
                let _ = fs::remove_file(&to);
                let _ = reflink_copy::reflink_or_copy(&log, &to);
            }
        }
        Ok(Some(known.results))
    }

    /// Keeps an outcome, if it is one that the tree is to blame for: a time limit or a signal may be the
    /// machine's doing. That it cannot be kept is no error.
    pub fn keep(
        &self,
        repo: &Repo,
        tree: &Oid,
        commit: &Oid,
        results: &[StageResult],
        logs: &Path,
    ) -> Result<()> {
        let lasting = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Passed | Outcome::Flaky { .. } | Outcome::Failed { .. } | Outcome::Skipped
            )
        };
        let all =
            results.iter().flat_map(|r| r.earlier.iter().map(|a| &a.outcome).chain([&r.outcome]));
        if !all.into_iter().all(lasting) {
            return Ok(());
        }
        let key = self.key(repo, tree, commit)?;
        let known = CachedOutcome { version: FORMAT, key: key.clone(), results: results.to_vec() };
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.dir)?;
            let directory = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.dir)?;
            let text = toml::to_string(&known).map_err(io::Error::other)?;
            fs::write(directory.path().join("outcome.toml"), text)?;
            for log in logs_in(logs).filter(|log| results.iter().any(|r| is_log_of(log, r))) {
                if let Some(name) = log.file_name() {
                    reflink_copy::reflink_or_copy(&log, directory.path().join(name))?;
                }
            }
            let place = self.dir.join(&key);
            tree::delete_tree(&place)?;
            fs::rename(directory.path(), place)
        };
        let _ = write();
        Ok(())
    }

    /// Forgets what was kept of a tree: it may not mean what it says.
    pub fn forget(&self, repo: &Repo, tree: &Oid, commit: &Oid) -> Result<()> {
        let place = self.dir.join(self.key(repo, tree, commit)?);
        tree::delete_tree(&place).context(|| format!("could not delete '{}'", place.display()))
    }

    /// Whether a file is young enough, and did not appear while an attempt's command ran.
    fn is_trusted(&self, path: &Path) -> bool {
        let Ok(meta) = fs::symlink_metadata(path) else { return false };
        let seconds = u64::try_from(meta.ctime()).unwrap_or_default();
        let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or_default();
        let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
        let planted = self.distrusted.iter().any(|(start, end)| (*start..=*end).contains(&changed));
        !planted && changed.elapsed().is_ok_and(|age| age < LIFETIME)
    }
}

fn is_log_of(log: &Path, result: &StageResult) -> bool {
    let name = log.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let of_this =
        name.strip_prefix(result.stage.as_str()).is_some_and(|rest| rest.starts_with('.'));
    of_this && result.outcome != Outcome::Skipped
}

fn logs_in(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    files.filter(|path| path.extension().is_some_and(|e| e == "log"))
}

/// Removes what is too old to be believed, and what killed processes left.
fn forget_old(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|m| m.elapsed().ok());
        if age.is_some_and(|age| age >= LIFETIME) {
            let _ = tree::delete_tree(&entry.path());
        }
    }
}

/// The programs that are started as they stand, with their sizes and times: updated, they are others.
fn programs(oracle: &[OracleCommand]) -> Vec<(PathBuf, u64, i64)> {
    let look = |command: &OracleCommand| {
        let CommandLine::Argv(words) = &command.command else { return None };
        let path = process::find(words.first()?.as_ref())?;
        let meta = fs::metadata(&path).ok()?;
        Some((path, meta.len(), meta.mtime()))
    };
    oracle.iter().filter_map(look).collect()
}

/// The machine, and the environment as the oracle's commands see it.
fn surroundings(policy: &Policy) -> (String, Vec<(OsString, OsString)>) {
    let uname = rustix::system::uname();
    let machine = format!("{:?} {:?} {:?}", uname.nodename(), uname.release(), uname.machine());
    let of_the_terminal = |name: &[u8]| {
        OF_THE_TERMINAL.iter().any(|n| n.as_bytes() == name)
            || OF_THE_TERMINAL_BEGINNINGS.iter().any(|n| name.starts_with(n.as_bytes()))
    };
    let seen = policy.environment(&env::ALL, &[]).into_iter();
    let mut seen: Vec<_> = seen.filter(|(name, _)| !of_the_terminal(name.as_bytes())).collect();
    seen.sort();
    (machine, seen)
}
