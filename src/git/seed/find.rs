//! Finds seeds in the user's own checkout, and copies them into worktrees and judge checkouts.
//! Seeds are files such as `.env` or `node_modules`. The base does not track them, but a worktree
//! needs them.
//!
//! Nothing is written through a link, and no existing file is replaced.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use gix::bstr::ByteSlice;

use crate::error::{Error, IfExists, IoContext, Result};
use crate::fs::tree;
use crate::fs::tree::path_bytes;
use crate::git::cli::Git;
use crate::git::repo::{Repo, digest};
use crate::git::seed::patterns::{INCLUDE, Patterns};
use crate::git::seed::placed::{PlacedSeeds, SeedContents, redirected};
use crate::git::seed::search::SeedSearch;
use crate::git::worktree;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The user's own checkout, and the configured patterns for its seeds.
#[derive(Clone, Debug)]
pub struct SeedPatterns {
    pub root: PathBuf,
    /// The patterns of `seed.copy`.
    pub copy: Vec<String>,
    /// The paths and patterns of `seed.link`.
    pub link: Vec<String>,
}

/// The seeds of a checkout.
#[derive(Clone, Default)]
pub struct Seeds {
    /// The checkout that the seeds were found in.
    pub root: PathBuf,
    /// The paths of the seeds, each with the file to copy. In most cases, this is the file at that
    /// path below `root`. If that file is a link to a file outside the checkout, it is the target
    /// of the link.
    found: BTreeMap<TreePath, PathBuf>,
    /// Messages for the user.
    pub notes: Vec<String>,
}

impl Seeds {
    /// Finds the seeds in a checkout:
    ///
    /// - untracked files that `copy` matches;
    /// - ignored files that [`INCLUDE`] matches;
    /// - paths that `link` names or matches.
    ///
    /// A file that `base` tracks is never a seed.
    ///
    /// Seeds of `link` are copied, too, and not linked. Through a symbolic link, every command in
    /// the worktree could change the user's own files. For example, `npm ci` first deletes
    /// everything below `node_modules`.
    pub fn find(repo: &Repo, patterns: &SeedPatterns, base: &Oid) -> Result<Seeds> {
        let SeedPatterns { root, copy, link } = patterns;
        let mut seeds = Seeds { root: root.clone(), ..Seeds::default() };
        let (globs, names): (Vec<&String>, Vec<&String>) =
            link.iter().partition(|entry| is_pattern(root, entry));
        let links = linked_paths(root, &names, &mut seeds.notes)?;
        let copied = copy.iter().map(|line| ("seed.copy", line));
        let linked = globs.iter().map(|line| ("seed.link", *line));
        let own = Patterns::parse(&copied.chain(linked).collect::<Vec<_>>())?;
        let shared = Patterns::read(&root.join(INCLUDE), &mut seeds.notes)?;
        if links.is_empty() && own.is_empty() && shared.is_empty() {
            return Ok(seeds);
        }
        let checkouts = worktree::checkouts(repo)?.iter().map(|c| tree::nearest_real(c)).collect();
        let patterns = [&own, &shared];
        let found = BTreeSet::new();
        let mut search = SeedSearch { root, patterns, checkouts, found, notes: Vec::new() };
        if !own.is_empty() || !shared.is_empty() {
            search.read(repo)?;
        }
        let base = repo.index_of(base)?;
        let linked: BTreeSet<TreePath> = links.iter().cloned().collect();
        let mut refuse =
            |why: String| seeds.notes.push(format!("seed.link: {why}, so it is not a seed"));
        for path in links {
            let name = path.quoted();
            if is_tracked(&base, &path) {
                refuse(format!("the base tracks '{name}'"));
            } else if search.is_checkout(&path) {
                refuse(format!("'{name}' leads to a checkout of this repository"));
            } else if path.on_disk(root).is_dir() {
                search.add(&path, true)?;
            } else {
                search.found.insert(path);
            }
        }
        seeds.notes.append(&mut search.notes);
        for path in search.found.into_iter().filter(|path| !is_tracked(&base, path)) {
            let original = path.on_disk(root);
            let named =
                own.matches_itself(&path) || shared.matches_itself(&path) || linked.contains(&path);
            let original = if named { file_to_copy(original, root) } else { original };
            seeds.found.insert(path, original);
        }
        for line in globs {
            let own = Patterns::parse(&[("seed.link", line)])?;
            if !line.starts_with('!') && !seeds.found.keys().any(|path| own.matches(path, false)) {
                let note = format!("seed.link: '{line}' matches nothing that could be a seed");
                seeds.notes.push(note);
            }
        }
        Ok(seeds)
    }

    /// The paths of the seeds, each with the file that is copied.
    pub fn files(&self) -> impl Iterator<Item = (&TreePath, &Path)> {
        self.found.iter().map(|(path, original)| (path, original.as_path()))
    }

    /// The real paths that the seeds are copied from. If the last part of a path is a link, the
    /// link itself is copied.
    pub fn sources(&self) -> BTreeSet<PathBuf> {
        let mut above = PathBuf::new();
        let mut real = PathBuf::new();
        let mut sources = BTreeSet::new();
        for from in self.found.values() {
            let (Some(parent), Some(name)) = (from.parent(), from.file_name()) else { continue };
            if parent != above {
                above = parent.to_owned();
                real = tree::nearest_real(parent);
            }
            sources.insert(real.join(name));
        }
        sources
    }

    /// True if a path is a seed, or a directory with seeds below it.
    pub fn hold(&self, path: &TreePath) -> bool {
        let below = path.join("");
        self.found.contains_key(path)
            || self.found.range(below.clone()..).next().is_some_and(|(p, _)| p.starts_with(&below))
    }

    /// The paths of the seeds, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.found.keys().map(|path| path.as_bytes())
    }

    /// Reads the contents of the seeds, once for all worktrees.
    pub fn contents(&self) -> Result<SeedContents> {
        SeedContents::read(&self.found.iter().collect::<Vec<_>>())
    }

    /// A digest of the paths and contents of all seeds.
    pub fn digest(&self) -> Result<String> {
        // The paths are hashed, too, because `originals` leaves out empty directories.
        let paths: Vec<&TreePath> = self.found.keys().collect();
        Ok(digest(format!("{:?} {paths:?}", self.originals()?).as_bytes()))
    }

    /// The record that a worktree would have if all seeds were placed in it.
    pub fn as_if_placed(&self) -> Result<PlacedSeeds> {
        let mut seeded = self.originals()?;
        seeded.redirect_links(&self.root);
        Ok(seeded)
    }

    fn originals(&self) -> Result<PlacedSeeds> {
        PlacedSeeds::read(self.found.clone(), &SeedContents::default())
    }

    /// Copies the seeds into a checkout, and returns the paths of the copies. Existing files are
    /// kept. A seed is left out if a directory above its path in `into` is a link.
    ///
    /// Copies have the modes and mtimes of the originals. A copied build output must look older
    /// than the sources that were just checked out. Otherwise a build tool would think that the
    /// output is up to date (GIT-FACTS, "Not safe for build tools").
    ///
    /// If a link leads into the user's checkout, its copy leads to the same path in `into`. So no
    /// path of a worktree leads to the user's own files.
    pub fn place(&self, into: &Path) -> Result<Vec<TreePath>> {
        let mut got = Vec::new();
        let mut ready = PathBuf::new();
        let mut clones = true;
        for (path, from) in &self.found {
            let to = path.on_disk(into);
            let relative = to.strip_prefix(into).unwrap_or(&to);
            let mut attempt = || -> io::Result<bool> {
                let directory = relative.parent().unwrap_or(relative);
                if fs::symlink_metadata(from).is_err()
                    || (ready != directory && !make_directories(&self.root, into, directory)?)
                    || fs::symlink_metadata(&to).is_ok()
                {
                    return Ok(false);
                }
                ready = directory.to_owned();
                copy(from, &to, |target| redirected(target, path, &self.root), &mut clones)
            };
            // If a file is missing, a seed vanished during the copying.
            let done = attempt().if_exists();
            if done.could_not("seed", &to)? == Some(true) {
                got.push(path.clone());
            }
        }
        Ok(got)
    }
}

/// The file to copy for a seed. If the seed is a link to a file outside the checkout, this is the
/// target of the link, as with `cp -H`. If the link itself were copied, a command that writes to
/// the copy would write to the user's file.
fn file_to_copy(original: PathBuf, root: &Path) -> PathBuf {
    if !original.is_symlink() {
        return original;
    }
    match fs::canonicalize(&original) {
        Ok(target) if target.is_file() && !target.starts_with(root) => target,
        _ => original,
    }
}

/// Copies a file, an empty directory, or a link. A link gets the target that `redirect` returns.
/// Returns false for anything else.
///
/// When the file system refuses to share blocks, `clones` becomes false. A new try for every file
/// would double the work.
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
    } else if meta.is_dir() {
        fs::create_dir(to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(meta.permissions().mode() | 0o700))?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Makes the directories of `path` below `into`, with the modes that they have below `root`.
/// Returns false if a link or a file is in the way.
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
                // The user's directory `from` may be a link to a directory elsewhere.
                // `fs::metadata` follows it.
                let mode = fs::metadata(&from)?.permissions().mode();
                fs::create_dir(&to)?;
                fs::set_permissions(&to, fs::Permissions::from_mode(mode | 0o700))?;
            }
        }
    }
    Ok(true)
}

/// True if the base tracks a path, a path below it, or a file or submodule above it.
pub(super) fn is_tracked(base: &gix::index::File, path: &TreePath) -> bool {
    base.path_is_directory(path.as_bstr())
        || base.entry_by_path(path.as_bstr()).is_some()
        || path.parents().any(|above| base.entry_by_path(above.as_bstr()).is_some())
}

/// True if an entry of `seed.link` is a pattern in the syntax of `.gitignore`. False if it is an
/// existing path: a directory may be called `[id]`.
fn is_pattern(root: &Path, entry: &str) -> bool {
    let may_be = entry.starts_with('!') || entry.contains(['*', '?', '[']);
    may_be && fs::symlink_metadata(root.join(below_root(root, entry))).is_err()
}

/// Converts an entry of `seed.link` to a path relative to the root of the checkout. A leading slash
/// means that root, as in `.gitignore`, unless only the absolute path exists. An absolute path into
/// the checkout is also converted.
fn below_root<'a>(root: &Path, entry: &'a str) -> &'a str {
    if let Some(below) = Path::new(entry).strip_prefix(root).ok().and_then(Path::to_str) {
        return below;
    }
    let below = entry.trim_start_matches('/');
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let is_elsewhere = !is_there(&root.join(below)) && is_there(Path::new(entry));
    if is_elsewhere { entry } else { below }
}

/// The existing paths that these entries of `seed.link` name.
fn linked_paths(root: &Path, named: &[&String], notes: &mut Vec<String>) -> Result<Vec<TreePath>> {
    let refuse = |name: &str, why: &str| {
        Error::fatal(format!("seed.link: '{name}' {why}"))
            .hint("name files and directories of your checkout, from its root: `node_modules`, `web/node_modules`")
    };
    let mut found = Vec::new();
    for name in named {
        let mut path = PathBuf::new();
        for component in Path::new(below_root(root, name)).components() {
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
            notes.push(format!("seed.link: your checkout has no '{name}'"));
            continue;
        }
        if !full.parent().is_some_and(|directory| tree::is_real_directory(root, directory)) {
            return Err(refuse(name, "lies behind a link"));
        }
        found.push(TreePath::new(path_bytes(&path)));
    }
    Ok(found)
}

/// The files that the setup command made or changed in a worktree.
pub struct SetupChanges {
    /// The untracked files, including seeds, without the files in `ignored` directories.
    pub untracked: Vec<TreePath>,
    /// The directories that git ignores as a whole. No capture reads them. The paths end in a
    /// slash.
    pub ignored: Vec<TreePath>,
    /// The first tracked file that differs from its checked-out version, if any.
    pub changed: Option<TreePath>,
}

/// Lists the files that the setup command made or changed. `git` uses the worktree and its private
/// index.
pub fn changes_by_setup(git: &Git) -> Result<SetupChanges> {
    let list = |options: &[&str]| -> Result<Vec<TreePath>> {
        git.call("ls-files").args(["-z", "--exclude-standard"]).args(options).paths()
    };
    let mut untracked = list(&["-o"])?;
    untracked.retain(|path| !path.ends_with(b"/"));
    let all = list(&["-o", "-i", "--directory"])?.into_iter();
    let (ignored, files): (Vec<_>, Vec<_>) = all.partition(|path| path.ends_with(b"/"));
    untracked.extend(files);
    let changed = list(&["-m"])?.into_iter().next();
    Ok(SetupChanges { untracked, ignored, changed })
}
