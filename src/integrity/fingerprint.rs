//! Fingerprints of what a candidate can reach through the shared git directory and must not change:
//! configuration, hooks, refs, HEADs, worktrees, and the files of checkouts that are no candidate's.
//!
//! One is taken before a run's commands start and one after they have ended; [`crate::integrity::diff`]
//! names what is different. Nothing here fails: a part that cannot be read is a fact like any other, for an
//! attempt may have broken it.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config;
use crate::error::Result;
use crate::fs::tree;
use crate::git::cli::{Git, nul_separated};
use crate::git::refs;
use crate::git::repo::{Repo, digest};
use crate::git::worktree;
use crate::integrity::overrides;
use crate::model::path::quoted;

/// The file of a checkout that configures git-frites.
/// How many changed files of one checkout are looked at.
const MOST_FILES: usize = 2_000;
/// How many files of one directory of hooks are, and how many submodules.
const MOST_ENTRIES: usize = 500;
/// Above this size a file's size and time stand for its bytes.
const LARGEST_HASHED: u64 = 4 << 20;

/// What kind of thing a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `.frites.toml` of a checkout.
    OwnFile,
    /// A setting of git's.
    Config,
    /// A hook.
    Hook,
    /// A file of the git directory that changes what git sees: `info/exclude`, alternates, ….
    Info,
    /// What a checkout's HEAD names.
    Head,
    /// A ref.
    Ref,
    /// A worktree.
    Worktree,
    /// A file of a checkout that differs from its index.
    File,
}

/// What one fact is about: its kind, the place it was found at (empty for the usual one), its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// Its kind.
    pub kind: Kind,
    /// A scope of configuration, a checkout or a directory.
    pub place: String,
    /// A key, a ref, a path.
    pub name: String,
}

/// What was found: two are equal when their digests are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Value {
    pub(super) digest: String,
    /// In words or in full, where that is of use; never kept for settings that may be secrets.
    pub(super) text: Option<String>,
}

/// Everything found at one time.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint(pub(super) BTreeMap<Subject, Value>);

/// What to look at.
pub struct Scope<'a> {
    /// The user's own checkout, whose configuration counts; none in a bare repository.
    pub home: Option<&'a Path>,
    /// Whether a checkout is a candidate's, or one that is being judged.
    pub is_ours: &'a dyn Fn(&Path) -> bool,
    /// The run's candidates: address, worktree, and whether we removed that ourselves.
    pub candidates: &'a [(String, PathBuf, bool)],
}

/// The name of a fact about configuration that git refuses to read.
pub(super) const UNREADABLE: &str = "(unreadable)";

/// Takes the whole fingerprint.
pub fn take(repo: &Repo, scope: &Scope<'_>) -> Fingerprint {
    let mut found = decisive(repo, scope);
    found.refs(repo);
    for checkout in checkouts(repo, scope) {
        let root = checkout.root.as_deref();
        let place = root.map(|root| place_of(root, scope.home)).unwrap_or_default();
        if let Ok(head) = fs::read(checkout.git_dir.join("HEAD")) {
            let head = String::from_utf8_lossy(&head).trim().to_owned();
            found.put(Kind::Head, &place, "HEAD", head.clone(), Some(head));
        }
        if let Some(root) = root.filter(|root| root.is_dir()) {
            found.files(&checkout.git_dir, root, &place, scope);
        }
    }
    let known: BTreeSet<PathBuf> = worktree::entries(repo)
        .unwrap_or_default()
        .iter()
        .filter_map(|admin| worktree::points_to(admin))
        .collect();
    for (address, path, removed) in scope.candidates {
        if *removed || (path.is_dir() && known.contains(&path.join(".git"))) {
            found.put(Kind::Worktree, "candidate", address, String::new(), None);
        }
    }
    found
}

/// The part that decides what git does in any checkout: configuration, hooks, and the files of git directories;
/// and which worktrees there are, for of one that comes or goes that is all there is to say.
pub fn decisive(repo: &Repo, scope: &Scope<'_>) -> Fingerprint {
    let mut found = configuration(repo, scope);
    let common = repo.common_dir();
    found.hooks("", &common.join("hooks"));
    for (directory, text) in found.hook_directories(repo, scope) {
        found.hooks(&text, &directory);
    }
    found.info(common, "", &["objects/info/alternates", "objects/info/http-alternates", "shallow"]);
    for (name, git_dir) in submodules(common) {
        found.hooks(&name, &git_dir.join("hooks"));
        found.info(&git_dir, &name, &[]);
    }
    for checkout in checkouts(repo, scope).iter().filter(|c| c.git_dir != common) {
        let root = checkout.root.as_deref();
        let place = root.map(|root| place_of(root, scope.home)).unwrap_or_default();
        let at = quoted(tree::path_bytes(root.unwrap_or(&checkout.git_dir)));
        found.put(Kind::Worktree, "", &at, String::new(), None);
        found.info(&checkout.git_dir, &place, &["commondir"]);
        if let Some(digest) = root.and_then(|root| file_digest(&root.join(".git"))) {
            found.put(Kind::Info, &place, ".git", digest, None);
        }
    }
    found
}

/// The part that decides what runs: git's configuration, and ours. Cheap enough for every command.
pub fn configuration(repo: &Repo, scope: &Scope<'_>) -> Fingerprint {
    let mut found = Fingerprint::default();
    let checkouts = checkouts(repo, scope);
    let home = checkouts.iter().find(|c| c.root.as_deref() == scope.home).or(checkouts.first());
    if let Some(home) = home {
        let git = Git::at(&home.git_dir).in_checkout();
        let git = match home.root.as_deref().filter(|root| root.is_dir()) {
            Some(root) => git.work_tree(root),
            None => git,
        };
        let list = git.call("config").args(["--list", "-z", "--show-scope", "--includes"]).bytes();
        found.settings(list, true, "");
    }
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for checkout in &checkouts {
        let place =
            checkout.root.as_deref().map(|root| place_of(root, scope.home)).unwrap_or_default();
        let file = checkout.git_dir.join("config.worktree");
        if home.is_none_or(|home| home.git_dir != checkout.git_dir) && file.is_file() {
            files.push((place.clone(), file));
        }
        if let Some(digest) =
            checkout.root.as_ref().and_then(|root| file_digest(&root.join(config::FILE)))
        {
            found.put(Kind::OwnFile, &place, config::FILE, digest, None);
        }
    }
    files.extend(
        submodules(repo.common_dir()).into_iter().map(|(name, dir)| (name, dir.join("config"))),
    );
    for (place, file) in files {
        let call =
            repo.git().call("config").arg("--file").arg(&file).args(["--list", "-z", "--includes"]);
        found.settings(call.bytes(), false, &place);
    }
    found
}

/// What shows without calling git whether [`decisive`] may have changed: the files that most of it is read from,
/// with what a program cannot leave as it was when it writes one.
pub fn stamps(repo: &Repo, scope: &Scope<'_>) -> Vec<(PathBuf, Option<[i64; 4]>)> {
    let common = repo.common_dir();
    let mut files = vec![common.join("config"), common.join("config.worktree")];
    for directory in [common.join("hooks"), common.join("info")] {
        files.extend(listing(&directory));
        files.push(directory);
    }
    files.extend(scope.home.map(|home| home.join(config::FILE)));
    let directory = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    files.extend(directory("GIT_CONFIG_GLOBAL"));
    files.extend(
        directory("HOME")
            .into_iter()
            .flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]),
    );
    files.extend(directory("XDG_CONFIG_HOME").map(|xdg| xdg.join("git/config")));
    let stamp = |path: &PathBuf| {
        let meta = fs::metadata(path).ok()?;
        Some([meta.ino().cast_signed(), meta.ctime(), meta.ctime_nsec(), meta.len().cast_signed()])
    };
    files.into_iter().map(|path| (path.clone(), stamp(&path))).collect()
}

impl Subject {
    /// Whether it is part of what [`decisive`] finds.
    pub fn is_decisive(&self) -> bool {
        match self.kind {
            Kind::OwnFile | Kind::Config | Kind::Hook | Kind::Info => true,
            Kind::Worktree => self.place.is_empty(),
            Kind::Head | Kind::Ref | Kind::File => false,
        }
    }
}

impl Fingerprint {
    /// Replaces what [`decisive`] finds by what it found now.
    pub fn replace_decisive(&mut self, now: Fingerprint) {
        self.0.retain(|subject, _| !subject.is_decisive());
        self.0.extend(now.0);
    }

    /// The digest of a fact; none if there is none.
    pub fn digest(&self, subject: &Subject) -> Option<&str> {
        self.0.get(subject).map(|v| v.digest.as_str())
    }

    /// The last value of a setting in one place.
    fn setting(&self, subject: &Subject) -> Option<String> {
        let text = self.0.get(subject)?.text.as_deref()?;
        text.rsplit('\n').next().map(str::to_owned)
    }

    /// The value that counts for a setting: of all scopes the nearest that has it.
    pub fn effective(&self, subject: &Subject) -> Option<String> {
        let scopes = ["worktree", "", "global", "system"];
        let places = scopes.iter().filter(|_| scopes.contains(&subject.place.as_str()));
        let own = std::iter::once(subject.place.as_str());
        places.copied().chain(own).find_map(|place| {
            self.setting(&Subject {
                kind: subject.kind,
                place: place.to_owned(),
                name: subject.name.clone(),
            })
        })
    }

    /// As JSON. Settings that calls of ours never start keep their digest alone: some are secrets.
    pub fn to_json(&self) -> Vec<u8> {
        let facts: Vec<(&Subject, Value)> = self
            .0
            .iter()
            .map(|(subject, value)| {
                let kept = subject.kind != Kind::Config || overrides::names_a_program(subject);
                (
                    subject,
                    Value {
                        digest: value.digest.clone(),
                        text: value.text.clone().filter(|_| kept),
                    },
                )
            })
            .collect();
        serde_json::to_vec(&facts).unwrap_or_default()
    }

    /// Reads what [`Fingerprint::to_json`] wrote; none if it is damaged.
    pub fn from_json(bytes: &[u8]) -> Option<Fingerprint> {
        let facts: Vec<(Subject, Value)> = serde_json::from_slice(bytes).ok()?;
        Some(Fingerprint(facts.into_iter().collect()))
    }

    fn put(&mut self, kind: Kind, place: &str, name: &str, digest: String, text: Option<String>) {
        let subject = Subject { kind, place: place.to_owned(), name: name.to_owned() };
        self.0.insert(subject, Value { digest, text });
    }

    /// The settings of a list that git wrote with `-z`.
    fn settings(&mut self, list: Result<Vec<u8>>, scoped: bool, place: &str) {
        let list = match list {
            Ok(list) => list,
            Err(e) => {
                return self.put(
                    Kind::Config,
                    place,
                    UNREADABLE,
                    e.message.clone(),
                    Some(e.message),
                );
            }
        };
        let mut values: BTreeMap<(String, String), String> = BTreeMap::new();
        let text = String::from_utf8_lossy(&list);
        let mut fields = text.split_terminator('\0');
        while let Some(first) = fields.next() {
            let (scope, record) =
                if scoped { (first, fields.next().unwrap_or_default()) } else { ("", first) };
            let (key, value) = record.split_once('\n').unwrap_or((record, "true"));
            // What the command line says is ours or this command's alone.
            let place = match scope {
                "command" => continue,
                "" | "local" => place.to_owned(),
                other => other.to_owned(),
            };
            let all = values.entry((place, key.to_owned())).or_default();
            if !all.is_empty() {
                all.push('\n');
            }
            all.push_str(value);
        }
        for ((place, key), value) in values {
            self.put(Kind::Config, &place, &key, digest(value.as_bytes()), Some(value));
        }
    }

    /// Directories that hold hooks beside the usual one, because `core.hooksPath` says so.
    fn hook_directories(&self, repo: &Repo, scope: &Scope<'_>) -> Vec<(PathBuf, String)> {
        let configured =
            self.0.keys().filter(|s| s.kind == Kind::Config && s.name == "core.hookspath");
        let directories = configured.filter_map(|subject| self.setting(subject)).map(|text| {
            let path = match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
                (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
                _ => scope.home.unwrap_or(repo.common_dir()).join(&text),
            };
            (path, text)
        });
        directories.collect()
    }

    fn hooks(&mut self, place: &str, directory: &Path) {
        for path in listing(directory) {
            let name = quoted(path.file_name().unwrap_or_default().as_bytes());
            let is_file = fs::metadata(&path).is_ok_and(|m| m.is_file());
            // git's own samples never run under that name.
            if let (true, false, Some(digest)) =
                (is_file, name.ends_with(".sample"), file_digest(&path))
            {
                self.put(Kind::Hook, place, &name, digest, None);
            }
        }
    }

    /// The files of `info/` and those that are named.
    fn info(&mut self, git_dir: &Path, place: &str, more: &[&str]) {
        let mut files: Vec<PathBuf> = listing(&git_dir.join("info"));
        files.extend(more.iter().map(|name| git_dir.join(name)));
        for path in files {
            let name = path.strip_prefix(git_dir).unwrap_or(&path);
            // Written by `git gc` for web servers; git itself never reads it.
            if let Some(digest) = file_digest(&path).filter(|_| name != Path::new("info/refs")) {
                self.put(Kind::Info, place, &quoted(tree::path_bytes(name)), digest, None);
            }
        }
    }

    fn refs(&mut self, repo: &Repo) {
        let format = "--format=%(refname) %(objectname) %(symref)";
        let list = match repo.git().call("for-each-ref").arg(format).bytes() {
            Ok(list) => list,
            Err(e) => {
                return self.put(Kind::Ref, "", UNREADABLE, e.message.clone(), Some(e.message));
            }
        };
        for line in String::from_utf8_lossy(&list).lines() {
            let Some((name, value)) = line.split_once(' ') else { continue };
            // Of ours, what work can be lost with, or a verdict forged.
            let ours = name.starts_with("refs/frites/") || name.starts_with("refs/heads/frites/");
            if ours && refs::run_of(name).is_none() {
                continue;
            }
            let mut value = value.trim_end().to_owned();
            if let Some((_, target)) = value.split_once(' ') {
                // One that names another: what that holds is told there.
                value = format!("ref: {target}");
            }
            let mut digest = value.clone();
            if name == "refs/stash" {
                // Older entries live in its log alone.
                digest.extend(file_digest(&repo.common_dir().join("logs/refs/stash")));
            }
            self.put(Kind::Ref, "", name, digest, Some(value));
        }
    }

    /// What `git status` lists, and for each such file whether it was written again.
    fn files(&mut self, git_dir: &Path, root: &Path, place: &str, scope: &Scope<'_>) {
        let call = Git::at(git_dir).in_checkout().work_tree(root).call("status");
        let list =
            call.args(["--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames"]).bytes();
        let list = match list {
            Ok(list) => list,
            Err(e) => {
                return self.put(Kind::File, place, UNREADABLE, e.message.clone(), Some(e.message));
            }
        };
        for record in nul_separated(&list).take(MOST_FILES) {
            let (state, path) =
                (record.get(..2).unwrap_or_default(), record.get(3..).unwrap_or_default());
            let full = root.join(OsStr::from_bytes(path));
            let of_ours =
                |worktree: &Path| worktree.starts_with(&full) || full.starts_with(worktree);
            let ours =
                (scope.is_ours)(&full) || scope.candidates.iter().any(|(_, path, _)| of_ours(path));
            if !ours && path != config::FILE.as_bytes() {
                let digest = format!("{} {}", state.escape_ascii(), shape(&full));
                self.put(Kind::File, place, &quoted(path), digest, None);
            }
        }
    }
}

/// A checkout that is no candidate's.
struct Checkout {
    git_dir: PathBuf,
    root: Option<PathBuf>,
}

/// The main checkout (or the bare repository) first, then linked ones.
fn checkouts(repo: &Repo, scope: &Scope<'_>) -> Vec<Checkout> {
    let common = repo.common_dir();
    let root = if common.file_name().is_some_and(|n| n == ".git") {
        common.parent()
    } else {
        repo.work_tree().filter(|_| repo.git_dir() == common)
    };
    let mut found = vec![Checkout { git_dir: common.to_owned(), root: root.map(Path::to_owned) }];
    for admin in worktree::entries(repo).unwrap_or_default() {
        let root = worktree::points_to(&admin).and_then(|p| Some(p.parent()?.to_owned()));
        // A damaged entry is what a killed `git worktree add` leaves; it belongs to nobody yet.
        if root.as_deref().is_some_and(|root| !(scope.is_ours)(root)) {
            found.push(Checkout { git_dir: admin, root });
        }
    }
    found
}

/// The git directories of submodules, by name, nested ones too.
fn submodules(common: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut directories = vec![(common.join("modules"), String::new(), 0)];
    while let Some((directory, prefix, depth)) = directories.pop() {
        for path in listing(&directory) {
            if found.len() >= MOST_ENTRIES
                || depth > 6
                || !fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir())
            {
                continue;
            }
            let name =
                format!("{prefix}{}", quoted(path.file_name().unwrap_or_default().as_bytes()));
            if path.join("HEAD").is_file() {
                directories.push((path.join("modules"), format!("{name}/"), depth + 1));
                found.push((format!("submodule '{name}'"), path));
            } else {
                directories.push((path, format!("{name}/"), depth + 1));
            }
        }
    }
    found
}

/// How a checkout is called in a difference: the user's own one not at all.
fn place_of(root: &Path, home: Option<&Path>) -> String {
    if Some(root) == home { String::new() } else { quoted(tree::path_bytes(root)) }
}

/// The entries of a directory, sorted; nothing if it cannot be read.
fn listing(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found.truncate(MOST_ENTRIES);
    found
}

/// The mode and the bytes of a file (where a link leads, too); none if there is no such file.
fn file_digest(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let link = fs::read_link(path).map(|to| to.display().to_string()).unwrap_or_default();
    let content = if meta.len() <= LARGEST_HASHED {
        fs::read(path).map_or_else(|e| e.kind().to_string(), |bytes| digest(&bytes))
    } else {
        shape(path)
    };
    Some(format!("{:o} {link} {content}", meta.mode()))
}

/// What tells a written file from one that was left alone, without reading it.
fn shape(path: &Path) -> String {
    match fs::symlink_metadata(path) {
        Ok(meta) => {
            format!("{:o} {} {}.{:09}", meta.mode(), meta.len(), meta.mtime(), meta.mtime_nsec())
        }
        Err(e) => e.kind().to_string(),
    }
}
