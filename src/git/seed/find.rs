//! Seeds: files of the user's own checkout that the base does not track and that a worktree needs, such
//! as `.env` or `node_modules`. Found in that checkout, put into worktrees and judged checkouts.
//!
//! Nothing is ever read or written through a link, and nothing that git tracks is touched: what lies in
//! a worktree already stays.
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
use crate::git::seed::placed::{Known, Seeded};
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// Patterns of files to copy, shared with other tools: only what git ignores is taken.
pub const INCLUDE: &str = ".worktreeinclude";

/// What there is to seed, by its path.
#[derive(Default)]
pub struct Seeds {
    root: PathBuf,
    /// Where the original of each lies: below the root, or where a link leads that stands for the seed.
    found: BTreeMap<TreePath, PathBuf>,
    /// What the user should be told.
    pub notes: Vec<String>,
}

impl Seeds {
    /// Finds the seeds in the checkout at `root`: what `copy` matches and git does not track, what
    /// [`INCLUDE`] matches and git ignores, and what `link` names; never what `base` tracks.
    ///
    /// A linked seed is copied, too. A symbolic link would hand the user's own files to every command
    /// that runs in the worktree: `npm ci` begins by deleting all that lies below `node_modules`.
    pub fn find(
        repo: &Repo,
        root: &Path,
        copy: &[String],
        link: &[String],
        base: &Oid,
    ) -> Result<Seeds> {
        let mut seeds = Seeds { root: root.to_owned(), ..Seeds::default() };
        let links = links(root, link)?;
        let own = Patterns::of(copy)?;
        let shared = Patterns::of_file(&root.join(INCLUDE), &mut seeds.notes)?;
        if links.is_empty() && own.is_empty() && shared.is_empty() {
            return Ok(seeds);
        }
        let listing =
            Listing { root, patterns: [&own, &shared], checkouts: worktree::checkouts(repo)? };
        let mut copies = BTreeSet::new();
        if !own.is_empty() || !shared.is_empty() {
            copies = listing.read(repo)?;
        }
        let base = repo.index_of(base)?;
        let linked: BTreeSet<TreePath> = links.iter().cloned().collect();
        for path in links {
            if tracked(&base, &path) {
                seeds.notes.push(format!(
                    "seed.link: the base tracks '{}', so it is not a seed",
                    path.quoted()
                ));
            } else if path.on_disk(root).is_dir() {
                listing.enter(&path, true, &mut copies)?;
            } else {
                copies.insert(path);
            }
        }
        for path in copies.into_iter().filter(|path| !tracked(&base, path)) {
            let original = path.on_disk(root);
            let named =
                own.name_itself(&path) || shared.name_itself(&path) || linked.contains(&path);
            let original = if named { followed(original, root) } else { original };
            seeds.found.insert(path, original);
        }
        Ok(seeds)
    }

    /// What the seeds hold, read once for all worktrees.
    pub fn known(&self) -> Result<Known> {
        Known::read(&self.found.iter().collect::<Vec<_>>())
    }

    /// A name for what all of them hold.
    pub fn digest(&self) -> Result<String> {
        Ok(digest(format!("{:?}", self.originals()?).as_bytes()))
    }

    /// What the worktree `dir` would hold if it got all of them.
    pub fn as_if_put(&self, dir: &Path) -> Result<Seeded> {
        let mut seeded = self.originals()?;
        seeded.move_links(&self.root, dir);
        Ok(seeded)
    }

    fn originals(&self) -> Result<Seeded> {
        Seeded::read(
            self.found.iter().map(|(path, original)| (path.clone(), original.clone())),
            &Known::default(),
        )
    }

    /// Puts the seeds into a checkout; gives the paths that it got. What lies there already stays, and so
    /// does what could only be reached through a link.
    ///
    /// Copies keep their modes and their times: a build output that was copied must look older than the
    /// sources that were just checked out, or it would be taken for theirs (GIT-FACTS, "Not safe for
    /// build tools"). An absolute link that leads into the user's checkout leads to the same place in
    /// `into`, so that no path of a worktree is a way to the user's own files.
    pub fn put(&self, into: &Path) -> Result<Vec<TreePath>> {
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
                copy(from, &to, |target| moved(target, &self.root, into), &mut clones)
            };
            if attempt_of(attempt).context(|| format!("could not seed '{}'", to.display()))? {
                got.push(path.clone());
            }
        }
        Ok(got)
    }
}

/// A seed that vanishes while it is copied was missing: that is fine.
fn attempt_of(attempt: impl FnOnce() -> io::Result<bool>) -> io::Result<bool> {
    match attempt() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        other => other,
    }
}

/// The file that a seed stands for which is itself a link to a file outside the checkout, as `cp -H` has it: a
/// command that writes to the seed must not write to that file.
fn followed(original: PathBuf, root: &Path) -> PathBuf {
    let target = fs::canonicalize(&original)
        .ok()
        .filter(|target| target.is_file() && !target.starts_with(root));
    target.filter(|_| original.is_symlink()).unwrap_or(original)
}

/// The target of a link as it is below `into`, if it leads to something below `root`.
pub fn moved(target: PathBuf, root: &Path, into: &Path) -> PathBuf {
    match target.strip_prefix(root) {
        Ok(relative) => into.join(relative),
        Err(_) => target,
    }
}

/// Copies a file, or a link with the target that `moved` gives; anything else is no seed. `clones` is whether
/// the file system shares blocks, as far as is known: asking for every file would double the work where it
/// does not.
fn copy(
    from: &Path,
    to: &Path,
    moved: impl Fn(PathBuf) -> PathBuf,
    clones: &mut bool,
) -> io::Result<bool> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        symlink(moved(fs::read_link(from)?), to)?;
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

/// Makes the directories of `path` below `into` as they are below `root`; false if a link or a file is in the way.
fn make_directories(root: &Path, into: &Path, path: &Path) -> io::Result<bool> {
    let (mut from, mut to) = (root.to_owned(), into.to_owned());
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

/// Whether a commit tracks a path, something below it, or a file or submodule on the way to it.
fn tracked(base: &gix::index::File, path: &TreePath) -> bool {
    base.path_is_directory(path.as_bstr())
        || base.entry_by_path(path.as_bstr()).is_some()
        || path.parents().any(|above| base.entry_by_path(above.as_bstr()).is_some())
}

/// What `seed.link` names that is there.
fn links(root: &Path, named: &[String]) -> Result<Vec<TreePath>> {
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
                return Err(refuse(name, "is no seed"));
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

/// A pattern that is longer than a path can be fits none, and could take minutes to compile.
const LONGEST: usize = 4096;

/// Says why a line is no pattern.
fn check(line: &str) -> std::result::Result<(), String> {
    if line.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    GitignoreBuilder::new("").add_line(None, line).map(drop).map_err(|e| match e {
        ignore::Error::Glob { err, .. } => err,
        other => other.to_string(),
    })
}

/// Patterns in the syntax of `.gitignore`.
struct Patterns {
    /// What is wanted.
    wanted: Gitignore,
    /// The directories that a pattern names on its way down: `/data/*.json` looks into `data`. A pattern
    /// without a slash names none.
    named: Gitignore,
}

impl Patterns {
    /// Those of `seed.copy`.
    fn of(lines: &[String]) -> Result<Patterns> {
        let refuse = |line: &str, why: &str| {
            Error::fatal(format!("seed.copy: '{line}' {why}"))
                .hint("write patterns as in a .gitignore, from the root of your checkout: `.env*`, `/config/*.key`")
        };
        for line in lines {
            if line.split('/').any(|part| part == "..") {
                return Err(refuse(line, "leaves the checkout"));
            }
            if let Err(why) = check(line) {
                return Err(refuse(
                    line.get(..60).unwrap_or(line),
                    &format!("is no pattern: {why}"),
                ));
            }
        }
        Ok(Patterns::compile(lines.iter().map(String::as_str)))
    }

    /// Those of a file. A line that is no pattern is left out: the file is other tools', too.
    fn of_file(file: &Path, notes: &mut Vec<String>) -> Result<Patterns> {
        let bytes = match regular::read(file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e).context(|| format!("could not read '{}'", file.display())),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match check(line) {
                Ok(()) => lines.push(line),
                Err(why) => {
                    notes.push(format!("{INCLUDE}:{}: left out, it is no pattern: {why}", at + 1));
                }
            }
        }
        Ok(Patterns::compile(lines.into_iter()))
    }

    fn compile<'a>(lines: impl Iterator<Item = &'a str>) -> Patterns {
        let (mut wanted, mut named) = (GitignoreBuilder::new(""), GitignoreBuilder::new(""));
        for line in lines {
            let _ = wanted.add_line(None, line);
            if line.starts_with(['#', '!']) {
                continue;
            }
            let parts: Vec<&str> =
                line.trim_start_matches('/').trim_end_matches('/').split('/').collect();
            for end in 1..parts.len() {
                if parts[..end] != ["**"] {
                    let _ = named.add_line(None, &format!("/{}/", parts[..end].join("/")));
                }
            }
        }
        // A set that cannot be compiled (it is too large) matches nothing.
        let build =
            |builder: GitignoreBuilder| builder.build().unwrap_or_else(|_| Gitignore::empty());
        Patterns { wanted: build(wanted), named: build(named) }
    }

    fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    fn want(&self, path: &[u8], is_dir: bool) -> bool {
        self.wanted.matched_path_or_any_parents(OsStr::from_bytes(path), is_dir).is_ignore()
    }

    /// Whether a pattern matches the path, and not only a directory above it.
    fn name_itself(&self, path: &[u8]) -> bool {
        self.wanted.matched(OsStr::from_bytes(path), false).is_ignore()
    }

    fn name(&self, directory: &[u8]) -> bool {
        self.named.matched(OsStr::from_bytes(directory), true).is_ignore()
    }
}

/// What git does not track in the user's own checkout.
///
/// A directory that git ignores as a whole is opened only where a pattern wants it or names it: `.env*`
/// must not cost a walk through node_modules.
struct Listing<'a> {
    root: &'a Path,
    /// `seed.copy`, and those of [`INCLUDE`].
    patterns: [&'a Patterns; 2],
    /// Every checkout of the repository: none is part of another.
    checkouts: Vec<PathBuf>,
}

impl Listing<'_> {
    fn read(&self, repo: &Repo) -> Result<BTreeSet<TreePath>> {
        let git = if repo.work_tree() == Some(self.root) {
            repo.checkout()
        } else {
            Git::at(repo.common_dir()).in_checkout().work_tree(self.root)
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
                    let whole = self.want(directory, true);
                    self.enter(&TreePath::new(directory), whole, &mut found)?;
                }
                None if self.want(entry, false) => {
                    found.insert(TreePath::new(entry));
                }
                None => {}
            }
        }
        let [own, _] = self.patterns;
        if !own.is_empty() {
            let untracked = list(&[])?;
            // With a slash at the end it is a repository of its own.
            found.extend(
                nul_separated(&untracked)
                    .filter(|p| !p.ends_with(b"/") && own.want(p, false))
                    .map(TreePath::new),
            );
        }
        Ok(found)
    }

    fn want(&self, path: &[u8], is_dir: bool) -> bool {
        self.patterns.iter().any(|p| p.want(path, is_dir))
    }

    /// Takes what is wanted of an ignored directory: all of it when `whole`.
    fn enter(
        &self,
        directory: &TreePath,
        whole: bool,
        found: &mut BTreeSet<TreePath>,
    ) -> Result<()> {
        let full = directory.on_disk(self.root);
        if self.checkouts.contains(&full)
            || !(whole || self.patterns.iter().any(|p| p.name(directory)))
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
            let taken = whole || self.want(&path, kind.is_dir());
            if kind.is_dir() {
                self.enter(&path, taken, found)?;
            } else if taken && (kind.is_file() || kind.is_symlink()) {
                found.insert(path);
            }
        }
        Ok(())
    }
}

/// What setup left in a worktree.
pub struct Leftovers {
    /// The untracked files, seeds among them: all but those in directories that git ignores as a whole, which
    /// no capture looks into.
    pub untracked: Vec<TreePath>,
    /// A tracked file that is not as it was checked out.
    pub changed: Option<TreePath>,
}

/// Looks at a worktree that was just set up, by its private index.
pub fn left_by_setup(git: &Git) -> Result<Leftovers> {
    let list = |options: &[&str]| {
        git.call("ls-files").args(["-z", "--exclude-standard"]).args(options).bytes()
    };
    let (plain, ignored, changed) =
        (list(&["-o"])?, list(&["-o", "-i", "--directory"])?, list(&["-m"])?);
    let untracked =
        nul_separated(&plain).chain(nul_separated(&ignored)).filter(|path| !path.ends_with(b"/"));
    Ok(Leftovers {
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
        fn a_line_is_a_pattern_or_it_is_named_and_none_is_lost(
            lines in prop::collection::vec(
                prop_oneof!["[a-z*?/!#\\\\{},\\[\\]. -]{0,12}", any::<String>(), Just("**/".repeat(2000))],
                0..6,
            ),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join(INCLUDE);
            fs::write(&file, lines.join("\n")).expect("written");
            let mut notes = Vec::new();
            let patterns = Patterns::of_file(&file, &mut notes).expect("readable");
            let text = lines.join("\n");
            let (good, bad): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| check(line).is_ok());
            let count = |patterns: &Patterns| patterns.wanted.num_ignores() + patterns.wanted.num_whitelists();
            let alone = good.iter().map(|line| count(&Patterns::compile([*line].into_iter())));
            prop_assert_eq!(count(&patterns), alone.sum::<u64>());
            prop_assert_eq!(notes.len(), bad.len());
            prop_assert!(notes.iter().all(|note| note.len() < 300), "{notes:?}");
        }
    }
}
