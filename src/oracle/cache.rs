//! The outcome cache: remembers for a day which trees passed. It is in the user's cache directory.
//!
//! Failures are not stored, because their cause may be the machine, a service that was down, or a
//! flaky test. After a failure, the next `judge` runs the commands again.
//!
//! The cache is neither under `.frites/` nor in refs, because attempts can write to both. An
//! unguarded attempt can also write to the cache directory. So an outcome is not trusted if it
//! appeared while an attempt's command ran. Its change time (ctime) shows when it appeared, and
//! programs cannot set a change time.
//!
//! While commands run, two kinds of outcomes are trusted: outcomes that existed before the first
//! command, and outcomes that git-frites has stored since. They are in a list in memory, where code
//! under test cannot change them.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::fs::tree;
use crate::fs::tree::{TimeSpan, change_time};
use crate::git::repo::{Repo, digest};
use crate::model::FORMAT;
use crate::model::env;
use crate::model::layout::OUTCOME;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::{Outcome, Results, StageResult};
use crate::model::terms::{ResultTerms, Terms};
use crate::oracle::pool::{self, OUTCOMES};
use crate::oracle::run::OracleOptions;
use crate::oracle::sealed::kept::{self, LayerName};
use crate::process;
use crate::process::environment::Policy;
use crate::store::logs::{self, JudgingLogs};

/// The age up to which an outcome is trusted. It is limited, because outcomes also depend on
/// installed software that is not part of the key.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Variables that describe the terminal or the session, and do not affect the results of commands.
const OF_THE_TERMINAL: &str = "
    PWD OLDPWD SHLVL _ TERM TERMINFO COLORTERM COLUMNS LINES WINDOWID DISPLAY WAYLAND_DISPLAY STY
    GPG_TTY LS_COLORS PAGER EDITOR VISUAL NO_COLOR CLICOLOR_FORCE";

/// Name prefixes of more variables that describe the terminal or the session. `FRITES_*` variables
/// are left out as well, because the configuration that they set is already part of the key.
const OF_THE_TERMINAL_BEGINNINGS: [&str; 9] =
    ["FRITES_", "TERM_", "SSH_", "TMUX", "XDG_SESSION_", "DBUS_", "VTE_", "KITTY_", "VSCODE_"];

/// The cached outcomes of one oracle under one set of conditions.
pub struct Cache<'r> {
    repo: &'r Repo,
    dir: PathBuf,
    /// The user's checkout, from which judge checkouts get their submodules.
    home: Option<PathBuf>,
    terms: Terms,
    conditions: Conditions,
    pub known: KnownOutcomes,
    /// The spans of time in which attempts' commands may have run. Files that changed in one of
    /// them are not trusted.
    pub distrusted: Vec<TimeSpan>,
}

/// A tree, and a commit with this tree that can be checked out.
pub struct JudgedTree {
    pub tree: Oid,
    /// A commit with this tree.
    pub commit: Oid,
}

impl JudgedTree {
    /// The judged tree of this commit.
    pub fn of(repo: &Repo, commit: Oid) -> Result<JudgedTree> {
        Ok(JudgedTree { tree: repo.commit(&commit)?.tree, commit })
    }
}

/// The conditions on which an outcome depends, in addition to its terms, the tree and the
/// submodules. They are specific to one machine.
#[derive(Clone, Serialize)]
pub struct Conditions {
    /// The version of git-frites, because another version may judge differently.
    version: &'static str,
    format: u32,
    options: OracleOptions,
    programs: Vec<Program>,
    machine: String,
    /// The name of each variable and a digest of its value, because values may be secret.
    environment: BTreeMap<String, String>,
}

/// A program that is started without a shell. An update of the program changes its size or its
/// modification time.
#[derive(Clone, Serialize)]
struct Program {
    path: String,
    bytes: u64,
    modified: i64,
}

impl Conditions {
    /// The conditions under which these commands run now.
    pub fn new(oracle: &[OracleCommand], options: &OracleOptions, policy: &Policy) -> Conditions {
        Conditions {
            version: env!("CARGO_PKG_VERSION"),
            format: FORMAT,
            options: options.clone(),
            programs: programs(oracle),
            machine: machine(),
            environment: environment(policy),
        }
    }
}

/// `conditions.json` in the cache: everything that an outcome depends on. The digest of this file
/// is the outcome's key. The file is stored next to the outcome. If an outcome is not found, a
/// person can compare two such files to find out why.
#[derive(Serialize)]
struct KeyedBy<'a> {
    /// The tree; `None` in the key of layers, so that the layers of a tree can start from the
    /// layers of another tree.
    tree: Option<Oid>,
    /// The submodules' paths and commits.
    submodules: Vec<(String, Oid)>,
    terms: ResultTerms<'a>,
    #[serde(flatten)]
    conditions: &'a Conditions,
}

/// A key, and the text whose digest it is.
struct CacheKey {
    digest: String,
    text: String,
}

/// `outcome.toml` in the cache.
#[derive(Serialize, Deserialize)]
struct CachedOutcome {
    version: u32,
    key: String,
    results: Results,
}

impl<'r> Cache<'r> {
    /// Opens the cache for these terms and conditions. `home` is the user's checkout. Outcomes that
    /// appeared in one of the `distrusted` spans of time are ignored.
    pub fn open(
        repo: &'r Repo,
        home: Option<&Path>,
        terms: Terms,
        conditions: Conditions,
        distrusted: Vec<TimeSpan>,
    ) -> Result<Cache<'r>> {
        let caches = pool::home(repo)?;
        pool::remove_gone(&caches);
        let dir = caches.join(OUTCOMES);
        forget_old(&dir);
        let known = KnownOutcomes::list(&dir);
        let home = home.map(Path::to_owned);
        Ok(Cache { repo, dir, home, terms, conditions, known, distrusted })
    }

    /// The name of the layers of a tree under these conditions.
    pub fn layer_name(&self, judged: &JudgedTree) -> Result<LayerName> {
        let conditions = self.key_of(None, self.submodules(judged)?).digest;
        Ok(LayerName { conditions, tree: judged.tree })
    }

    fn key(&self, judged: &JudgedTree) -> Result<CacheKey> {
        Ok(self.key_of(Some(judged.tree), self.submodules(judged)?))
    }

    fn key_of(&self, tree: Option<Oid>, submodules: Vec<(String, Oid)>) -> CacheKey {
        let terms = self.terms.of_results();
        key(&KeyedBy { tree, submodules, terms, conditions: &self.conditions })
    }

    fn submodules(&self, judged: &JudgedTree) -> Result<Vec<(String, Oid)>> {
        let found = pool::submodules(self.repo, self.home.as_deref(), &judged.commit)?;
        Ok(found.iter().map(|(path, oid)| (escaped(path), *oid)).collect())
    }

    /// The cached results of the oracle on a tree. Unless `warm` is true, claims are ignored.
    /// Copies the logs of the results to `logs`.
    pub fn find(
        &self,
        judged: &JudgedTree,
        logs: &JudgingLogs,
        warm: bool,
    ) -> Result<Option<Results>> {
        let Some((directory, mut outcome)) = self.stored(judged)? else { return Ok(None) };
        if outcome.results.is_claim() && !warm {
            return Ok(None);
        }
        for result in outcome.results.0.iter_mut() {
            result.cached = result.outcome != Outcome::Skipped;
        }
        logs.copy_from(&directory)?;
        tracing::debug!(tree = %judged.tree, key = outcome.key, "cached outcome");
        Ok(Some(outcome.results))
    }

    /// Takes the [`Turn`] to judge a tree. If another process has it, returns the id of that
    /// process as the inner error. An outcome that another process has stored meanwhile is trusted
    /// if `trusts` returns true.
    pub fn take_turn(
        &self,
        judged: &JudgedTree,
        trusts: impl FnOnce() -> Result<bool>,
    ) -> Result<std::result::Result<Turn, String>> {
        let key = self.key(judged)?.digest;
        let mut turn = Turn::take(&self.dir, &key)?;
        let place = self.dir.join(&key);
        if let Ok(turn) = &mut turn
            && place.is_dir()
            && !self.known.holds(&key)
            && trusts()?
        {
            self.known.believe(&key, stamp_of(&place));
            turn.is_answered = true;
        }
        Ok(turn)
    }

    /// True if a pass of a tree is cached, even if it is a claim.
    pub fn has(&self, judged: &JudgedTree) -> Result<bool> {
        Ok(self.stored(judged)?.is_some())
    }

    /// The cached outcome of a tree, and the outcome's directory; `None` if there is no outcome, or
    /// if it is not trusted.
    fn stored(&self, judged: &JudgedTree) -> Result<Option<(PathBuf, CachedOutcome)>> {
        let key = self.key(judged)?.digest;
        let directory = self.dir.join(&key);
        let file = directory.join(OUTCOME);
        if !(self.is_trusted(&directory) && self.is_trusted(&file) && self.known.holds(&key)) {
            tracing::debug!(tree = %judged.tree, key, "no cached outcome");
            return Ok(None);
        }
        let Ok(text) = regular::read_text(&file) else { return Ok(None) };
        let Ok(outcome) = toml::from_str::<CachedOutcome>(&text) else { return Ok(None) };
        // Earlier versions stored failures, too.
        let is_usable =
            outcome.key == key && outcome.version == FORMAT && outcome.results.is_lasting_pass();
        Ok(is_usable.then_some((directory, outcome)))
    }

    /// Stores the results of a pass that depended only on the tree. Other results remove an earlier
    /// pass from the cache, unless a command said that it cannot tell, and no try failed. It is not
    /// an error if the results cannot be written.
    pub fn keep(&self, judged: &JudgedTree, results: &Results, logs: &Path) -> Result<()> {
        if results.cannot_tell() && results.iter().all(|r| r.earlier.is_empty()) {
            return Ok(());
        }
        if !results.is_lasting_pass() {
            // The tree does not always pass, so an earlier pass must not be used any more.
            return self.forget(judged);
        }
        let _ = self.write(&self.key(judged)?, results, logs);
        let _ = self.dir.parent().map(|caches| pool::note_repository(self.repo, caches));
        Ok(())
    }

    fn write(&self, key: &CacheKey, results: &Results, from: &Path) -> io::Result<()> {
        let outcome =
            CachedOutcome { version: FORMAT, key: key.digest.clone(), results: results.clone() };
        fs::create_dir_all(&self.dir)?;
        let directory = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.dir)?;
        let text = toml::to_string(&outcome).map_err(io::Error::other)?;
        let file = directory.path().join(OUTCOME);
        fs::write(&file, &text)?;
        fs::write(directory.path().join("conditions.json"), &key.text)?;
        for name in logs::judging_files(from) {
            if results.iter().any(|result| is_log_of(&name, result)) {
                reflink_copy::reflink_or_copy(from.join(&name), directory.path().join(&name))?;
            }
        }
        let stamp = stamp_of(directory.path());
        // Another process may have changed the file since it was written. If a process changes the
        // file later, the stamp shows that.
        if fs::read(&file)? != text.as_bytes() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let place = self.dir.join(&key.digest);
        tree::delete_tree(&place)?;
        fs::rename(directory.path(), place)?;
        self.known.believe(&key.digest, stamp);
        Ok(())
    }

    /// Removes a tree's outcome from the cache, because it may be wrong.
    pub fn forget(&self, judged: &JudgedTree) -> Result<()> {
        let place = self.dir.join(self.key(judged)?.digest);
        tree::delete_tree(&place).could_not("delete", &place)
    }

    /// True if a file is less than a day old and did not change while an attempt's command ran.
    fn is_trusted(&self, path: &Path) -> bool {
        let Ok(meta) = fs::symlink_metadata(path) else { return false };
        let changed = change_time(&meta);
        let planted = self.distrusted.iter().any(|span| span.contains(&changed));
        !planted && changed.elapsed().is_ok_and(|age| age < LIFETIME)
    }
}

fn is_log_of(name: &str, result: &StageResult) -> bool {
    let of_this =
        name.strip_prefix(result.stage.as_str()).is_some_and(|rest| rest.starts_with('.'));
    of_this && result.outcome != Outcome::Skipped
}

/// Removes outcomes that are too old, and unfinished directories that killed processes left.
fn forget_old(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|m| m.elapsed().ok());
        if age.is_some_and(|age| age >= LIFETIME) {
            let _ = tree::delete_tree(&entry.path());
        }
    }
}

fn key(keyed_by: &KeyedBy<'_>) -> CacheKey {
    let text =
        serde_json::to_string_pretty(keyed_by).expect("text and numbers have a form in JSON");
    CacheKey { digest: digest(text.as_bytes()), text }
}

/// A path as text. All bytes that are not printable ASCII are escaped.
fn escaped(path: &Path) -> String {
    path.as_os_str().as_bytes().escape_ascii().to_string()
}

fn programs(oracle: &[OracleCommand]) -> Vec<Program> {
    let found = oracle.iter().filter_map(|command| {
        let CommandLine::Argv(words) = &command.command else { return None };
        let path = process::find(words.first()?.as_ref())?;
        let meta = fs::metadata(&path).ok()?;
        Some(Program { path: escaped(&path), bytes: meta.len(), modified: meta.mtime() })
    });
    found.collect()
}

fn machine() -> String {
    let uname = rustix::system::uname();
    let [name, release, kind] = [uname.nodename(), uname.release(), uname.machine()];
    format!("{} {} {}", name.to_string_lossy(), release.to_string_lossy(), kind.to_string_lossy())
}

/// The environment of the oracle's commands, without the variables of the terminal.
fn environment(policy: &Policy) -> BTreeMap<String, String> {
    let mut all = policy.environment(&env::ALL, &[]);
    all.retain(|name, _| !is_of_the_terminal(name));
    let named = all.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    named.map(|(name, value)| (name.escape_ascii().to_string(), digest(value))).collect()
}

fn is_of_the_terminal(name: &OsStr) -> bool {
    OF_THE_TERMINAL.split_whitespace().any(|other| name == other)
        || OF_THE_TERMINAL_BEGINNINGS.iter().any(|n| name.as_bytes().starts_with(n.as_bytes()))
}

/// The cache of one repository, or of all the user's repositories.
pub struct UserCache {
    /// The directory of each repository in the cache.
    homes: Vec<PathBuf>,
}

impl UserCache {
    /// The cache of this repository.
    pub fn of(repo: &Repo) -> Result<UserCache> {
        Ok(UserCache { homes: vec![pool::home(repo)?] })
    }

    /// The cache of all the user's repositories, including `repo`.
    pub fn of_all(repo: &Repo) -> Result<UserCache> {
        let homes = fs::read_dir(pool::home_of_all(repo)?).into_iter().flatten().flatten();
        Ok(UserCache { homes: homes.map(|entry| entry.path()).collect() })
    }

    /// The disk space of build outputs in bytes, which `limits.layers` limits.
    pub fn layers(&self) -> u64 {
        self.homes.iter().flat_map(|home| kept::list(home)).map(|(_, size, _)| size).sum()
    }

    /// The disk space of outcomes in bytes.
    pub fn outcomes(&self) -> u64 {
        self.homes.iter().map(|home| disk_usage(home)).sum()
    }

    /// Removes all outcomes, and all build outputs that are not in use.
    pub fn clear(&self) -> Result<()> {
        for home in &self.homes {
            forget_all(home);
            kept::remove_oldest(kept::list(home), 0)?;
        }
        Ok(())
    }
}

/// The names of outcomes that are still being written begin with this.
pub const UNFINISHED: &str = ".new-";

/// The names of the files that [`Turn`] locks begin with this.
const TURN: &str = ".turn-";

/// The right of one process at a time to judge a tree on some terms. It is a file lock: a killed
/// process loses it. No process waits for it.
pub struct Turn {
    path: PathBuf,
    _lock: Lock,
    /// True if another process had the turn before, and has stored an outcome.
    pub is_answered: bool,
}

/// The files of one outcome, each with inode, mode or size, and change time. Programs cannot set a
/// change time.
pub type OutcomeStamp = Vec<(OsString, [i64; 4])>;

/// The outcomes that are trusted, each with the stamp by which a later change is detected.
#[derive(Clone, Debug)]
pub struct KnownOutcomes {
    dir: PathBuf,
    known: Arc<Mutex<BTreeMap<OsString, OutcomeStamp>>>,
}

/// An outcome in the cache that is not trusted.
pub struct ForeignOutcome {
    pub name: OsString,
    /// True if the outcome has replaced a trusted outcome with this name.
    pub replaced: bool,
    /// True if the outcome could be removed.
    pub removed: bool,
}

impl Turn {
    /// Takes the turn to judge the tree of the outcome with this name in `dir`. If another process
    /// has it, returns the id of that process as the inner error.
    pub fn take(dir: &Path, name: &str) -> Result<std::result::Result<Turn, String>> {
        let path = dir.join(format!("{TURN}{name}"));
        let Some(lock) = lock::attempt(&path)? else {
            return Ok(Err(regular::read_text(&path).unwrap_or_default()));
        };
        // The id is only shown to the user, so an error is ignored.
        let _ = fs::write(&path, std::process::id().to_string());
        Ok(Ok(Turn { path, _lock: lock, is_answered: false }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl KnownOutcomes {
    /// Trusts all outcomes that are in `dir` now.
    pub fn list(dir: &Path) -> KnownOutcomes {
        let known = KnownOutcomes { dir: dir.to_owned(), known: Arc::default() };
        known.believe_all();
        known
    }

    /// Trusts all outcomes that exist now. This is called before code under test runs.
    pub fn believe_all(&self) {
        let now = self.read();
        *self.known.lock() = now;
    }

    /// Trusts one more outcome, with the stamp that it had when it was written.
    pub fn believe(&self, name: &str, stamp: OutcomeStamp) {
        self.known.lock().insert(name.into(), stamp);
    }

    /// True if an outcome is trusted and has not changed since.
    pub fn holds(&self, name: &str) -> bool {
        let known = self.known.lock();
        known.get(OsStr::new(name)).is_some_and(|stamp| *stamp == stamp_of(&self.dir.join(name)))
    }

    /// Removes every outcome that is not trusted or has changed. Returns the removed outcomes.
    pub fn remove_foreign(&self) -> Vec<ForeignOutcome> {
        let now = self.read();
        let mut known = self.known.lock();
        let mut found = Vec::new();
        for (name, stamp) in now {
            let ours = known.get(&name);
            if ours == Some(&stamp) {
                continue;
            }
            let replaced = ours.is_some();
            known.remove(&name);
            let removed = tree::delete_tree(&self.dir.join(&name)).is_ok();
            found.push(ForeignOutcome { name, replaced, removed });
        }
        found
    }

    fn read(&self) -> BTreeMap<OsString, OutcomeStamp> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            // No outcome is ever read from files with these names.
            let others = [UNFINISHED, TURN].map(str::as_bytes);
            if !others.iter().any(|prefix| name.as_bytes().starts_with(prefix)) {
                found.insert(name, stamp_of(&entry.path()));
            }
        }
        found
    }
}

/// The stamp of the outcome at a path. It includes the outcome's directory, except the directory's
/// change time. That time is set later than the stamp is taken, when the directory is renamed.
pub fn stamp_of(path: &Path) -> OutcomeStamp {
    let Ok(meta) = fs::symlink_metadata(path) else { return Vec::new() };
    let mut stamp = vec![(OsString::new(), [meta.ino().cast_signed(), meta.mode().into(), 0, 0])];
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
            let [ino, size] = [meta.ino(), meta.len()].map(u64::cast_signed);
            stamp.push((entry.file_name(), [ino, size, meta.ctime(), meta.ctime_nsec()]));
        }
    }
    stamp.sort();
    stamp
}

/// The disk space that all outcomes use.
pub fn disk_usage(home: &Path) -> u64 {
    tree::disk_usage(&home.join(OUTCOMES))
}

/// Removes all outcomes.
pub fn forget_all(home: &Path) {
    let _ = tree::delete_tree(&home.join(OUTCOMES));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::Stage;
    use crate::model::world::WorldKind;

    fn conditions() -> Conditions {
        let options = OracleOptions { timeout: LIFETIME, sandbox: None };
        Conditions::new(&terms().oracle, &options, &Policy::default())
    }

    fn terms() -> Terms {
        let command = CommandLine::Argv(vec!["sh".into(), "-c".into(), "true".into()]);
        let oracle = vec![OracleCommand { stage: Stage::Test, command, source: "--test".into() }];
        Terms { oracle, seeds: Some("none".into()), ..Terms::default() }
    }

    fn key_of(terms: &Terms, conditions: &Conditions, submodules: &[(&str, Oid)]) -> CacheKey {
        let tree = Oid::parse(&"a".repeat(40)).expect("a valid id");
        let submodules = submodules.iter().map(|(path, oid)| ((*path).to_owned(), *oid)).collect();
        key(&KeyedBy { tree: Some(tree), submodules, terms: terms.of_results(), conditions })
    }

    #[test]
    fn every_condition_is_part_of_the_key() {
        let usual = conditions();
        assert_eq!(usual.version, env!("CARGO_PKG_VERSION"));
        let changes: [fn(&mut Terms, &mut Conditions); 9] = [
            |_, c| c.version = "another",
            |_, c| c.format += 1,
            |_, c| c.programs[0].modified += 1,
            |_, c| c.machine.push('x'),
            |_, c| drop(c.environment.insert("NEW".into(), digest(b""))),
            |t, _| t.oracle[0].stage = Stage::Lint,
            |t, _| t.settings.commands.retries = 1,
            |t, _| t.settings.commands.world = WorldKind::Landlock,
            |t, _| t.seeds = None,
        ];
        let first = key_of(&terms(), &usual, &[]).digest;
        assert_eq!(key_of(&terms(), &usual.clone(), &[]).digest, first);
        for (at, change) in changes.iter().enumerate() {
            let (mut other_terms, mut other) = (terms(), usual.clone());
            change(&mut other_terms, &mut other);
            assert_ne!(key_of(&other_terms, &other, &[]).digest, first, "change {at}");
        }
        let commit = Oid::parse(&"b".repeat(40)).expect("a valid id");
        assert_ne!(key_of(&terms(), &usual, &[("sub", commit)]).digest, first);
    }

    #[test]
    fn the_stored_conditions_can_be_read_and_hold_no_value_of_a_variable() {
        let mut conditions = conditions();
        conditions.environment = [("TOKEN".to_owned(), digest(b"secret"))].into();
        let CacheKey { text, digest: key } = key_of(&terms(), &conditions, &[]);
        assert_eq!(digest(text.as_bytes()), key);
        assert!(text.contains("\"TOKEN\"") && text.contains("\"sh\""), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
