//! Takes fingerprints of everything that decides which programs git and git-frites run, and which
//! outcomes count. This is the configuration, hooks, the files in `info/`, and our own refs. A
//! fingerprint is a set of facts. Each fact is about one thing, such as a setting, a hook or a ref.
//!
//! One fingerprint is taken before commands start, and another one after they have ended.
//! [`crate::integrity::diff`] compares the two. No function here fails. If something cannot be
//! read, that is a fact, too, because an attempt may have damaged it.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::config;
use crate::error::Result;
use crate::fs::regular;
use crate::fs::tree;
use crate::git::config_key::key_text;
use crate::git::overrides::names_a_program;
use crate::git::ref_list::OF_RUNS;
use crate::git::refs;
use crate::git::repo::{Repo, digest};
use crate::git::worktree;
use crate::integrity::{IntegrityContext, WatchedCommands};
use crate::model::path::quoted;
use serde::{Deserialize, Serialize};

/// A fingerprint covers at most this many entries of one directory, and at most this many
/// submodules.
const MOST_ENTRIES: usize = 500;

/// The [`Fact::place`] of settings that git keeps for one worktree, and git's name of their scope.
const OF_WORKTREE: &str = "worktree";

/// All facts at one time, with their values.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint(pub(super) BTreeMap<Fact, FactValue>);

/// Takes the fingerprint for a watch over these commands. Confined commands cannot write to git's
/// files, so their fingerprint leaves git's files out.
pub fn take(context: IntegrityContext<'_>, commands: WatchedCommands) -> Fingerprint {
    let mut found =
        if commands.are_confined() { configuration(context) } else { decisive(context) };
    found.refs(context.repo());
    found
}

/// The facts of [`configuration`], the hooks, and other files of git directories that decide what
/// git does.
pub fn decisive(context: IntegrityContext<'_>) -> Fingerprint {
    let mut found = configuration(context);
    found.git_files(context);
    found
}

/// The facts about git's configuration and ours. They can be read quickly enough for every command.
/// The list of checkouts is included, because the facts of a new or removed checkout are not
/// reported.
pub fn configuration(context: IntegrityContext<'_>) -> Fingerprint {
    let mut found = Fingerprint::default();
    let repo = context.repo();
    let checkouts = checkouts(context);
    let home = checkouts.iter().find(|c| c.root.as_deref() == context.home).or(checkouts.first());
    if let Some(home) = home {
        let git = repo.git_at(&home.git_dir).in_checkout();
        let git = match home.root.as_deref().filter(|root| root.is_dir()) {
            Some(root) => git.work_tree(root),
            None => git,
        };
        let list = git.call("config").args(["--list", "-z", "--show-scope", "--includes"]).bytes();
        found.settings(list, true, "");
    }
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    // git reads this file only with `extensions.worktreeConfig`. A command like
    // `git sparse-checkout` may switch that on later.
    let ignored = home.map(|home| home.git_dir.join("config.worktree"));
    let is_read = found.0.keys().any(|fact| fact.place == OF_WORKTREE);
    files
        .extend(ignored.filter(|file| !is_read && file.is_file()).map(|f| (OF_WORKTREE.into(), f)));
    for checkout in &checkouts {
        let place =
            checkout.root.as_deref().map(|root| place_of(root, context.home)).unwrap_or_default();
        if !place.is_empty() {
            found.put(FactKind::Worktree, "", &place, String::new(), vec![]);
        }
        let file = checkout.git_dir.join("config.worktree");
        if home.is_none_or(|home| home.git_dir != checkout.git_dir) && file.is_file() {
            files.push((place.clone(), file));
        }
        let own_file = checkout.root.as_ref().map(|root| root.join(config::FILE));
        if let Some(file) = own_file.filter(|file| file.is_file()) {
            match regular::read(&file) {
                Ok(_) => {
                    let digest = file_digest(&file).unwrap_or_default();
                    found.put(FactKind::OwnFile, &place, config::FILE, digest, vec![]);
                }
                Err(error) => {
                    let why = format!("{}: {}", file.display(), crate::error::describe(&error));
                    found.put_unreadable(FactKind::Config, "", why);
                }
            }
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

impl Fingerprint {
    /// Replaces the facts of [`decisive`] by those of `now`. If the configuration in `now` is not
    /// readable, the old facts about it are kept, because a later comparison needs them.
    pub fn replace_decisive(&mut self, now: Fingerprint) {
        let is_readable = now.has_readable_configuration();
        self.0.retain(|fact, _| match fact.is_configuration() && fact.name != UNREADABLE {
            true => !is_readable,
            false => !fact.is_decisive(),
        });
        for (fact, value) in now.0 {
            self.0.entry(fact).or_insert(value);
        }
    }

    /// True if git-frites' own configuration could be read. It is in git's configuration and in
    /// `.frites.toml`.
    pub fn has_readable_configuration(&self) -> bool {
        !self.0.contains_key(&unreadable_configuration())
    }

    /// The facts of [`configuration`] alone, without facts about unreadable things.
    pub fn of_configuration(&self) -> Fingerprint {
        let kept = self.0.iter();
        let kept = kept.filter(|(fact, _)| fact.is_configuration() && fact.name != UNREADABLE);
        Fingerprint(kept.map(|(fact, value)| (fact.clone(), value.clone())).collect())
    }

    /// The digest of a fact; `None` if the fingerprint does not have the fact.
    pub fn digest(&self, fact: &Fact) -> Option<&str> {
        self.0.get(fact).map(|v| v.digest.as_str())
    }

    /// The last value of a setting in the scope or repository that [`Fact::place`] names.
    fn setting(&self, fact: &Fact) -> Option<String> {
        self.0.get(fact)?.text().map(str::to_owned)
    }

    /// The effective value of a setting: its value in the scope with the highest priority that has
    /// it.
    pub fn effective(&self, fact: &Fact) -> Option<String> {
        const SCOPES: [&str; 4] = [OF_WORKTREE, "", "global", "system"];
        if !SCOPES.contains(&fact.place.as_str()) {
            return self.setting(fact);
        }
        SCOPES.iter().find_map(|place| self.setting(&Fact::new(fact.kind, place, &fact.name)))
    }

    /// The fingerprint as JSON. Some settings are secrets. So the text of a setting is left out,
    /// unless the setting names a program.
    pub fn to_json(&self) -> Vec<u8> {
        let facts: Vec<(&Fact, FactValue)> = self
            .0
            .iter()
            .map(|(fact, value)| {
                let keeps_text = fact.kind != FactKind::Config || names_a_program(&fact.name);
                let texts = if keeps_text { value.texts.clone() } else { Vec::new() };
                (fact, FactValue { digest: value.digest.clone(), texts })
            })
            .collect();
        serde_json::to_vec(&facts).unwrap_or_default()
    }

    /// Parses the JSON of [`Fingerprint::to_json`]; `None` if it is damaged.
    pub fn from_json(bytes: &[u8]) -> Option<Fingerprint> {
        let facts: Vec<(Fact, FactValue)> = serde_json::from_slice(bytes).ok()?;
        Some(Fingerprint(facts.into_iter().collect()))
    }

    fn put(&mut self, kind: FactKind, place: &str, name: &str, digest: String, texts: Vec<String>) {
        self.0.insert(Fact::new(kind, place, name), FactValue { digest, texts });
    }

    fn put_unreadable(&mut self, kind: FactKind, place: &str, why: String) {
        self.put(kind, place, UNREADABLE, why.clone(), vec![why]);
    }

    /// Adds the settings in `list`, the output of `git config --list -z`. `scoped` is true if git
    /// was called with `--show-scope`.
    fn settings(&mut self, list: Result<Vec<u8>>, scoped: bool, place: &str) {
        let list = match list {
            Ok(list) => list,
            Err(e) => return self.put_unreadable(FactKind::Config, place, e.message),
        };
        let mut values: BTreeMap<(String, String), Vec<&[u8]>> = BTreeMap::new();
        let mut fields = list.split(|byte| *byte == 0);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        while let Some(first) = fields.next().filter(|field| !field.is_empty()) {
            let (scope, record) =
                if scoped { (first, fields.next().unwrap_or_default()) } else { (&b""[..], first) };
            let (key, value) = record.split_once_str(b"\n").unwrap_or((record, b"true"));
            // Settings with the scope `command` were passed by this call itself, by `-c` and
            // GIT_CONFIG_COUNT.
            let place = match scope {
                b"command" => continue,
                b"" | b"local" => place.to_owned(),
                other => text(other),
            };
            values.entry((place, key_text(key))).or_default().push(value);
        }
        for ((place, key), values) in values {
            // A value may contain any separator. So a digest of joined values could be the same for
            // another list.
            let digests: Vec<String> = values.iter().map(|value| digest(value)).collect();
            let texts = values.into_iter().map(text).collect();
            self.put(FactKind::Config, &place, &key, digests.join(" "), texts);
        }
    }

    /// Adds the hooks, and the other files of git directories that decide what git does.
    fn git_files(&mut self, context: IntegrityContext<'_>) {
        let common = context.repo().common_dir();
        self.hooks("", &common.join("hooks"));
        for (directory, text) in self.hook_directories(context) {
            self.hooks(&text, &directory);
        }
        self.info(
            common,
            "",
            &["objects/info/alternates", "objects/info/http-alternates", "shallow"],
        );
        for (name, git_dir) in submodules(common) {
            self.info(&git_dir, &name, &[]);
        }
    }

    /// The directories that `core.hooksPath` names, each with the text of the setting.
    fn hook_directories(&self, context: IntegrityContext<'_>) -> Vec<(PathBuf, String)> {
        let configured =
            self.0.keys().filter(|s| s.kind == FactKind::Config && s.name == "core.hookspath");
        let directories = configured.filter_map(|fact| self.setting(fact)).map(|text| {
            let path = match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
                (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
                _ => context.home.unwrap_or(context.repo().common_dir()).join(&text),
            };
            (path, text)
        });
        directories.collect()
    }

    fn hooks(&mut self, place: &str, directory: &Path) {
        for path in listing(directory) {
            let name = quoted(path.file_name().unwrap_or_default().as_bytes());
            let is_file = fs::metadata(&path).is_ok_and(|m| m.is_file());
            // git never runs its samples, which end in `.sample`.
            if let (true, false, Some(digest)) =
                (is_file, name.ends_with(".sample"), file_digest(&path))
            {
                self.put(FactKind::Hook, place, &name, digest, vec![]);
            }
        }
    }

    /// Adds the files in `info/`, and the files of the git directory that `more` names.
    fn info(&mut self, git_dir: &Path, place: &str, more: &[&str]) {
        let mut files: Vec<PathBuf> = listing(&git_dir.join("info"));
        files.extend(more.iter().map(|name| git_dir.join(name)));
        for path in files {
            let name = path.strip_prefix(git_dir).unwrap_or(&path);
            if is_gits_own(name) {
                continue;
            }
            if let Some(digest) = file_digest(&path) {
                self.put(FactKind::Info, place, &quoted(tree::path_bytes(name)), digest, vec![]);
            }
        }
    }

    /// Adds two kinds of refs: those with captures, which keep work, and those with records, terms
    /// and outcomes. The latter could be used to forge a verdict.
    fn refs(&mut self, repo: &Repo) {
        let values = match repo.ref_values(OF_RUNS) {
            Ok(values) => values,
            Err(e) => return self.put_unreadable(FactKind::Ref, "", e.message),
        };
        for (name, value) in values.into_iter().filter(|(name, _)| refs::run_of(name).is_some()) {
            self.put(FactKind::Ref, "", &name, value.clone(), vec![value]);
        }
    }
}

/// The fact that git-frites' own configuration could not be read; see
/// [`Fingerprint::has_readable_configuration`].
pub(super) fn unreadable_configuration() -> Fact {
    Fact::new(FactKind::Config, "", UNREADABLE)
}

/// A checkout that git-frites did not make.
struct OtherCheckout {
    git_dir: PathBuf,
    root: Option<PathBuf>,
}

/// True for files in `info/` that git's housekeeping writes, and that git itself never reads. They
/// are `info/refs` (for web servers), temporary versions of it, and lock files.
fn is_gits_own(name: &Path) -> bool {
    let name = name.as_os_str().as_bytes();
    let temporary = name.strip_prefix(b"info/refs_").is_some_and(|random| random.len() == 6);
    name == b"info/refs" || temporary || name.ends_with(b".lock")
}

/// The checkouts that git-frites did not make. The first is the main worktree (or the bare
/// repository). Linked worktrees follow.
fn checkouts(context: IntegrityContext<'_>) -> Vec<OtherCheckout> {
    let repo = context.repo();
    let common = repo.common_dir();
    let root = repo.main_worktree().map(Path::to_owned);
    let mut found = vec![OtherCheckout { git_dir: common.to_owned(), root }];
    for admin in worktree::entries(repo).unwrap_or_default() {
        let root = worktree::root_of(&admin);
        // A killed `git worktree add` leaves a damaged entry, which does not name a checkout.
        if root.as_deref().is_some_and(|root| !context.is_ours(root)) {
            found.push(OtherCheckout { git_dir: admin, root });
        }
    }
    found
}

/// The names and git directories of submodules, including nested ones.
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

/// The [`Fact::place`] for a checkout; empty for the user's own checkout.
fn place_of(root: &Path, home: Option<&Path>) -> String {
    if Some(root) == home { String::new() } else { quoted(tree::path_bytes(root)) }
}

/// The paths of the entries of a directory, sorted; empty if it cannot be read.
fn listing(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found.truncate(MOST_ENTRIES);
    found
}

/// A text that changes with a file's mode, link target or content; `None` if there is no file at
/// the path.
fn file_digest(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let link = fs::read_link(path).map(|to| to.display().to_string()).unwrap_or_default();
    let content = regular::read(path).map_or_else(|e| e.kind().to_string(), |bytes| digest(&bytes));
    Some(format!("{:o} {link} {content}", meta.mode()))
}

/// The kind of thing that a fact is about. Differences are reported in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactKind {
    /// The file `.frites.toml` of a checkout.
    OwnFile,
    /// A setting of git.
    Config,
    Hook,
    /// A file of a git directory that decides which files and objects git sees, e.g.
    /// `info/exclude`.
    Info,
    /// A file or directory above the judge checkouts, where build tools look for settings.
    Surroundings,
    /// A cached outcome.
    Outcome,
    /// A ref of ours.
    Ref,
    /// A checkout that git-frites did not make. Such a fact is never reported. It only shows that a
    /// checkout was added or removed.
    Worktree,
}

/// Names a fact, without its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fact {
    pub kind: FactKind,
    /// The place of the thing: a scope of configuration, a checkout or a directory. Empty for the
    /// usual place.
    pub place: String,
    /// The name of the thing: a key, a ref or a path.
    pub name: String,
}

/// The value of a fact at one time. Values are compared by their digests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FactValue {
    pub(super) digest: String,
    /// The value itself, or a message about it. Empty if the digest is enough. A setting has all
    /// its values in their order. The texts of a setting that may be a secret are never written to
    /// a file.
    #[serde(default)]
    pub(super) texts: Vec<String>,
}

impl FactValue {
    /// The text. A setting with several values has the last one, because git uses that one where it
    /// needs one value.
    pub(super) fn text(&self) -> Option<&str> {
        self.texts.last().map(String::as_str)
    }
}

/// The name of the fact that something could not be read. The text of this fact is the error.
pub(super) const UNREADABLE: &str = "(unreadable)";

impl Fact {
    /// The fact about `name` at `place`.
    pub fn new(kind: FactKind, place: &str, name: &str) -> Fact {
        Fact { kind, place: place.to_owned(), name: name.to_owned() }
    }

    /// True for a setting that includes another file. It can bring any setting later: when the file
    /// is made, or when the condition of an `includeIf` becomes true.
    pub fn is_include(&self) -> bool {
        let sections = ["include.", "includeif."];
        self.kind == FactKind::Config && sections.iter().any(|s| self.name.starts_with(s))
    }

    /// True if the fact is part of [`configuration`].
    pub fn is_configuration(&self) -> bool {
        matches!(self.kind, FactKind::Config | FactKind::OwnFile | FactKind::Worktree)
    }

    /// True if the fact is part of [`decisive`].
    pub fn is_decisive(&self) -> bool {
        !matches!(self.kind, FactKind::Surroundings | FactKind::Outcome | FactKind::Ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest, and the effective value, of the list `frites.x.y` with these values.
    fn list(values: &[&[u8]]) -> (String, String) {
        let records = values.iter().map(|value| [b"local\0frites.x.y\n", *value, b"\0"].concat());
        let mut found = Fingerprint::default();
        found.settings(Ok(records.collect::<Vec<_>>().concat()), true, "");
        let fact = Fact::new(FactKind::Config, "", "frites.x.y");
        let digest = found.digest(&fact).expect("there").to_owned();
        (digest, found.effective(&fact).expect("there"))
    }

    #[test]
    fn lists_have_the_same_digest_only_if_all_their_values_are_the_same() {
        let (two, last) = list(&[b"a", b"b"]);
        assert_eq!(last, "b");
        let (joined, whole) = list(&[b"a\nb"]);
        assert_eq!(whole, "a\nb");
        let others: [&[&[u8]]; 4] = [&[b"b", b"a"], &[b"", b"a", b"b"], &[two.as_bytes()], &[b"b"]];
        let mut digests: Vec<String> = others.iter().map(|values| list(values).0).collect();
        digests.extend([two, joined, list(&[b"\xfe"]).0, list(&[b"\xff"]).0]);
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 8);
    }
}
