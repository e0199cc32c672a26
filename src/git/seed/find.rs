//! Seeds: files of the user's own checkout that the base does not track and that a worktree needs,
//! such as `.env` or `node_modules`. They are found in that checkout and copied into worktrees and
//! judged checkouts.
//!
//! Nothing is read or written through a link, and no existing file is replaced.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use gix::bstr::ByteSlice;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::{Error, IoContext, Result};
use crate::fs::regular;
use crate::fs::tree;
use crate::fs::tree::path_bytes;
use crate::git::cli::{Git, nul_separated};
use crate::git::repo::{Repo, digest};
use crate::git::seed::placed::{PlacedSeeds, SeedContents, redirected};
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// Patterns of files to copy, shared with other tools: only what git ignores is taken.
pub const INCLUDE: &str = ".worktreeinclude";

/// The seeds of a checkout, by their paths.
#[derive(Default)]
pub struct Seeds {
    root: PathBuf,
    /// The original of each seed: a file below the root, or the target of a link that is the seed.
    found: BTreeMap<TreePath, PathBuf>,
    /// Messages for the user.
    pub notes: Vec<String>,
}

impl Seeds {
    /// Finds the seeds in the checkout at `root`: untracked files that `copy` matches, ignored
    /// files that [`INCLUDE`] matches, and the paths that `link` names; never a file that `base`
    /// tracks.
    ///
    /// A linked seed is copied, too. A symbolic link would hand the user's own files to every
    /// command that runs in the worktree: `npm ci` begins by deleting everything below
    /// `node_modules`.
    pub fn find(
        repo: &Repo,
        root: &Path,
        copy: &[String],
        link: &[String],
        base: &Oid,
    ) -> Result<Seeds> {
        let mut seeds = Seeds { root: root.to_owned(), ..Seeds::default() };
        let links = linked_paths(root, link)?;
        let own = Patterns::parse(copy)?;
        let shared = Patterns::read(&root.join(INCLUDE), &mut seeds.notes)?;
        if links.is_empty() && own.is_empty() && shared.is_empty() {
            return Ok(seeds);
        }
        let listing =
            SeedSearch { root, patterns: [&own, &shared], checkouts: worktree::checkouts(repo)? };
        let mut copies = BTreeSet::new();
        if !own.is_empty() || !shared.is_empty() {
            copies = listing.read(repo)?;
        }
        let base = repo.index_of(base)?;
        let linked: BTreeSet<TreePath> = links.iter().cloned().collect();
        for path in links {
            if is_tracked(&base, &path) {
                seeds.notes.push(format!(
                    "seed.link: the base tracks '{}', so it is not a seed",
                    path.quoted()
                ));
            } else if path.on_disk(root).is_dir() {
                listing.add_directory(&path, true, &mut copies)?;
            } else {
                copies.insert(path);
            }
        }
        for path in copies.into_iter().filter(|path| !is_tracked(&base, path)) {
            let original = path.on_disk(root);
            let named =
                own.matches_itself(&path) || shared.matches_itself(&path) || linked.contains(&path);
            let original = if named { file_to_copy(original, root) } else { original };
            seeds.found.insert(path, original);
        }
        Ok(seeds)
    }

    /// Reads the contents of the seeds, once for all worktrees.
    pub fn contents(&self) -> Result<SeedContents> {
        SeedContents::read(&self.found.iter().collect::<Vec<_>>())
    }

    /// A name for the contents of all seeds.
    pub fn digest(&self) -> Result<String> {
        Ok(digest(format!("{:?}", self.originals()?).as_bytes()))
    }

    /// The record of a worktree at `dir` in which all seeds were placed.
    pub fn as_if_placed(&self, dir: &Path) -> Result<PlacedSeeds> {
        let mut seeded = self.originals()?;
        seeded.redirect_links(&self.root, dir);
        Ok(seeded)
    }

    fn originals(&self) -> Result<PlacedSeeds> {
        PlacedSeeds::read(
            self.found.iter().map(|(path, original)| (path.clone(), original.clone())),
            &SeedContents::default(),
        )
    }

    /// Copies the seeds into a checkout and returns the paths of the copies. Existing files stay,
    /// and a path that leads through a link is left out.
    ///
    /// Copies keep their modes and their times: a copied build output must look older than the
    /// sources that were just checked out, or a build would take it for theirs (GIT-FACTS, "Not
    /// safe for build tools"). A link into the user's checkout leads to the same path in `into`, so
    /// that no path of a worktree leads to the user's own files.
    pub fn place(&self, into: &Path) -> Result<Vec<TreePath>> {
        let mut got = Vec::new();
        let mut ready = PathBuf::new();
        let mut clones = true;
        for (path, from) in &self.found {
            let to = path.on_disk(into);
            let relative = to.strip_prefix(into).unwrap_or(&to);
            let attempt = || -> io::Result<bool> {
                let directory = relative.parent().unwrap_or(relative);
                if fs::symlink_metadata(from).is_err()
                    || (ready != directory && !make_directories(&self.root, into, directory)?)
                    || fs::symlink_metadata(&to).is_ok()
                {
                    return Ok(false);
                }
                ready = directory.to_owned();
                copy(from, &to, |target| redirected(target, path, &self.root, into), &mut clones)
            };
            if unless_vanished(attempt).context(|| format!("could not seed '{}'", to.display()))? {
                got.push(path.clone());
            }
        }
        Ok(got)
    }
}

/// Treats a seed that vanishes while it is copied like one that was missing before.
fn unless_vanished(attempt: impl FnOnce() -> io::Result<bool>) -> io::Result<bool> {
    match attempt() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        other => other,
    }
}

/// The file to copy for a seed: the target, as with `cp -H`, if the seed is a link to a file
/// outside the checkout, so that a command that writes to the seed does not write to that file.
fn file_to_copy(original: PathBuf, root: &Path) -> PathBuf {
    if !original.is_symlink() {
        return original;
    }
    match fs::canonicalize(&original) {
        Ok(target) if target.is_file() && !target.starts_with(root) => target,
        _ => original,
    }
}

/// Copies a file, or a link with the target that `redirect` returns; returns false for anything
/// else. `clones` is true until the file system has refused to share blocks: to ask it for every
/// file would double the work where it cannot.
fn copy(
    from: &Path,
    to: &Path,
    redirect: impl Fn(PathBuf) -> PathBuf,
    clones: &mut bool,
) -> io::Result<bool> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        symlink(redirect(fs::read_link(from)?), to)?;
    } else if meta.is_file() {
        *clones = *clones && reflink_copy::reflink(from, to).is_ok();
        if !*clones {
            fs::copy(from, to)?;
        }
        fs::File::open(to)?.set_modified(meta.modified()?)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Makes the directories of `path` below `into` with the modes that they have below `root`; returns
/// false if a link or a file is in the way.
fn make_directories(root: &Path, into: &Path, path: &Path) -> io::Result<bool> {
    let mut from = root.to_owned();
    let mut to = into.to_owned();
    for component in path {
        from.push(component);
        to.push(component);
        match fs::symlink_metadata(&to) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(_) => {
                // The user's own directory may be a link to one elsewhere.
                let mode = fs::metadata(&from)?.permissions().mode();
                fs::create_dir(&to)?;
                fs::set_permissions(&to, fs::Permissions::from_mode(mode | 0o700))?;
            }
        }
    }
    Ok(true)
}

/// True if a commit tracks a path, a path below it, or a file or a submodule above it.
fn is_tracked(base: &gix::index::File, path: &TreePath) -> bool {
    base.path_is_directory(path.as_bstr())
        || base.entry_by_path(path.as_bstr()).is_some()
        || path.parents().any(|above| base.entry_by_path(above.as_bstr()).is_some())
}

/// The existing paths that `seed.link` names.
fn linked_paths(root: &Path, named: &[String]) -> Result<Vec<TreePath>> {
    let refuse = |name: &str, why: &str| {
        Error::fatal(format!("seed.link: '{name}' {why}"))
            .hint("name files and directories of your checkout, from its root: `node_modules`, `web/node_modules`")
    };
    let mut found = Vec::new();
    for name in named {
        let mut path = PathBuf::new();
        for component in Path::new(name).components() {
            match component {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                _ => return Err(refuse(name, "leaves the checkout")),
            }
        }
        match path.iter().next() {
            None => return Err(refuse(name, "is the checkout itself")),
            Some(first) if first == ".git" || first == ".frites" => {
                return Err(refuse(name, "cannot be a seed"));
            }
            _ => {}
        }
        let full = root.join(&path);
        if fs::symlink_metadata(&full).is_err() {
            continue;
        }
        if !full.parent().is_some_and(|directory| tree::is_real_directory(root, directory)) {
            return Err(refuse(name, "lies behind a link"));
        }
        found.push(TreePath::new(path_bytes(&path)));
    }
    Ok(found)
}

/// The longest pattern: a longer one than a path can be matches none, and could take minutes to
/// compile.
const LONGEST_PATTERN: usize = 4096;

/// Fails with the reason if a line is no pattern.
fn check_pattern(line: &str) -> std::result::Result<(), String> {
    if line.len() > LONGEST_PATTERN {
        return Err(format!("it is longer than {LONGEST_PATTERN} bytes"));
    }
    GitignoreBuilder::new("").add_line(None, line).map(drop).map_err(|e| match e {
        ignore::Error::Glob { err, .. } => err,
        other => other.to_string(),
    })
}

/// Patterns in the syntax of `.gitignore`.
struct Patterns {
    /// The patterns.
    wanted: Gitignore,
    /// The directories above the last part of a pattern: `/data/*.json` leads into `data`. A
    /// pattern without a slash leads into none.
    leading: Gitignore,
}

impl Patterns {
    /// Compiles `seed.copy`; fails on a line that is no pattern.
    fn parse(lines: &[String]) -> Result<Patterns> {
        let refuse = |line: &str, why: &str| {
            Error::fatal(format!("seed.copy: '{line}' {why}"))
                .hint("write patterns as in a .gitignore, from the root of your checkout: `.env*`, `/config/*.key`")
        };
        for line in lines {
            if line.split('/').any(|part| part == "..") {
                return Err(refuse(line, "leaves the checkout"));
            }
            if let Err(why) = check_pattern(line) {
                return Err(refuse(
                    line.get(..60).unwrap_or(line),
                    &format!("is no pattern: {why}"),
                ));
            }
        }
        Ok(Patterns::compile(lines.iter().map(String::as_str)))
    }

    /// Reads the patterns of a file. A line that is no pattern is skipped with a note, because
    /// other tools read the file, too.
    fn read(file: &Path, notes: &mut Vec<String>) -> Result<Patterns> {
        let bytes = match regular::read(file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e).context(|| format!("could not read '{}'", file.display())),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match check_pattern(line) {
                Ok(()) => lines.push(line),
                Err(why) => {
                    notes.push(format!("{INCLUDE}:{}: left out, it is no pattern: {why}", at + 1));
                }
            }
        }
        Ok(Patterns::compile(lines.into_iter()))
    }

    fn compile<'a>(lines: impl Iterator<Item = &'a str>) -> Patterns {
        let mut wanted = GitignoreBuilder::new("");
        let mut leading = GitignoreBuilder::new("");
        for line in lines {
            let _ = wanted.add_line(None, line);
            if line.starts_with(['#', '!']) {
                continue;
            }
            let parts: Vec<&str> =
                line.trim_start_matches('/').trim_end_matches('/').split('/').collect();
            for end in 1..parts.len() {
                if parts[..end] != ["**"] {
                    let _ = leading.add_line(None, &format!("/{}/", parts[..end].join("/")));
                }
            }
        }
        // A set that is too large to compile matches nothing.
        let build =
            |builder: GitignoreBuilder| builder.build().unwrap_or_else(|_| Gitignore::empty());
        Patterns { wanted: build(wanted), leading: build(leading) }
    }

    fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        self.wanted.matched_path_or_any_parents(OsStr::from_bytes(path), is_dir).is_ignore()
    }

    /// True if a pattern matches the path itself, not only a directory above it.
    fn matches_itself(&self, path: &[u8]) -> bool {
        self.wanted.matched(OsStr::from_bytes(path), false).is_ignore()
    }

    /// True if a pattern leads into a directory.
    fn lead_into(&self, directory: &[u8]) -> bool {
        self.leading.matched(OsStr::from_bytes(directory), true).is_ignore()
    }
}

/// A search for untracked files in the user's own checkout.
///
/// A directory that git ignores as a whole is opened only where a pattern matches it or leads into
/// it: `.env*` must not cost a walk through node_modules.
struct SeedSearch<'a> {
    root: &'a Path,
    /// `seed.copy`, and those of [`INCLUDE`].
    patterns: [&'a Patterns; 2],
    /// Every checkout of the repository; none is part of another.
    checkouts: Vec<PathBuf>,
}

impl SeedSearch<'_> {
    fn read(&self, repo: &Repo) -> Result<BTreeSet<TreePath>> {
        let git = if repo.work_tree() == Some(self.root) {
            repo.checkout()
        } else {
            repo.git_at(repo.common_dir()).in_checkout().work_tree(self.root)
        };
        let list = |options: &[&str]| {
            git.call("ls-files").args(["-z", "-o", "--exclude-standard"]).args(options).bytes()
        };
        let mut found = BTreeSet::new();
        let ignored = list(&["-i", "--directory"])?;
        let ignored: BTreeSet<&[u8]> =
            nul_separated(&ignored).filter(|p| !p.starts_with(b".frites/")).collect();
        let mut entries = ignored.iter().peekable();
        while let Some(entry) = entries.next() {
            match entry.strip_suffix(b"/") {
                // git also names directories that merely hold something ignored, which follows.
                Some(_) if entries.peek().is_some_and(|next| next.starts_with(entry)) => {}
                Some(directory) => {
                    let whole = self.matches(directory, true);
                    self.add_directory(&TreePath::new(directory), whole, &mut found)?;
                }
                None if self.matches(entry, false) => {
                    found.insert(TreePath::new(entry));
                }
                None => {}
            }
        }
        let [own, _] = self.patterns;
        if !own.is_empty() {
            let untracked = list(&[])?;
            // With a slash at the end the path is itself a repository.
            found.extend(
                nul_separated(&untracked)
                    .filter(|p| !p.ends_with(b"/") && own.matches(p, false))
                    .map(TreePath::new),
            );
        }
        Ok(found)
    }

    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        self.patterns.iter().any(|p| p.matches(path, is_dir))
    }

    /// Adds the matching files of an ignored directory; every file if `whole`.
    fn add_directory(
        &self,
        directory: &TreePath,
        whole: bool,
        found: &mut BTreeSet<TreePath>,
    ) -> Result<()> {
        let full = directory.on_disk(self.root);
        if self.checkouts.contains(&full)
            || !(whole || self.patterns.iter().any(|p| p.lead_into(directory)))
        {
            return Ok(());
        }
        let listing = match fs::read_dir(&full) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.context(|| format!("could not list '{}'", full.display()))?,
        };
        for entry in listing.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = directory.join(entry.file_name().as_bytes());
            let taken = whole || self.matches(&path, kind.is_dir());
            if kind.is_dir() {
                self.add_directory(&path, taken, found)?;
            } else if taken && (kind.is_file() || kind.is_symlink()) {
                found.insert(path);
            }
        }
        Ok(())
    }
}

/// The files that setup made or changed in a worktree.
pub struct SetupChanges {
    /// The untracked files, including seeds, except those in directories that git ignores as a
    /// whole, which no capture reads.
    pub untracked: Vec<TreePath>,
    /// A tracked file that differs from its checkout.
    pub changed: Option<TreePath>,
}

/// Lists the files that setup made or changed. `git` uses the worktree and its private index.
pub fn changes_by_setup(git: &Git) -> Result<SetupChanges> {
    let list = |options: &[&str]| {
        git.call("ls-files").args(["-z", "--exclude-standard"]).args(options).bytes()
    };
    let untracked = list(&["-o"])?;
    let ignored = list(&["-o", "-i", "--directory"])?;
    let changed = list(&["-m"])?;
    let untracked = nul_separated(&untracked)
        .chain(nul_separated(&ignored))
        .filter(|path| !path.ends_with(b"/"));
    Ok(SetupChanges {
        untracked: untracked.map(TreePath::new).collect(),
        changed: nul_separated(&changed).next().map(TreePath::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_line_is_a_pattern_or_has_a_note(
            lines in prop::collection::vec(
                prop_oneof!["[a-z*?/!#\\\\{},\\[\\]. -]{0,12}", any::<String>(), Just("**/".repeat(2000))],
                0..6,
            ),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join(INCLUDE);
            fs::write(&file, lines.join("\n")).expect("written");
            let mut notes = Vec::new();
            let patterns = Patterns::read(&file, &mut notes).expect("readable");
            let text = lines.join("\n");
            let (good, bad): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| check_pattern(line).is_ok());
            let count = |patterns: &Patterns| patterns.wanted.num_ignores() + patterns.wanted.num_whitelists();
            let alone = good.iter().map(|line| count(&Patterns::compile([*line].into_iter())));
            prop_assert_eq!(count(&patterns), alone.sum::<u64>());
            prop_assert_eq!(notes.len(), bad.len());
            prop_assert!(notes.iter().all(|note| note.len() < 300), "{notes:?}");
        }
    }
}
