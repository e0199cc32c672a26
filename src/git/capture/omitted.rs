//! The paths that a capture leaves out, with the reasons. The files at these paths may be work, so
//! the paths are always shown.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::Mode;

use crate::error::{Error, Result};
use crate::fs::tree;
use crate::fs::walk::{self, is_nameable};
use crate::git::capture::source::CaptureSource;
use crate::git::cli::{Git, nul_separated};
use crate::git::ignored;
use crate::git::own_dir;
use crate::git::repo::Repo;
use crate::git::worktree;
use crate::model::count::{count, some_of};
use crate::model::path::{TreePath, file_name};
use crate::model::plain;
use crate::model::size::size;

pub(super) const ONLY_ITS_ID: &str = "a nested repository: only its commit id is captured";

/// A message shows at most this many characters of a path.
const MOST_SHOWN: usize = 200;

const IN_NO_SUBMODULE: &str = "files in a submodule that is not initialised";

const TOO_LONG: &str = "its path is too long";

const DAMAGED: &str = "git does not recognise it as a repository";

/// The paths that a capture left out. They are always shown. `clean` refuses to remove a worktree
/// where work would be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omissions {
    /// The paths and directories that `diff.exclude` hid.
    pub excluded: BTreeSet<TreePath>,
    /// The paths that git cannot hold, with the reasons, e.g. nested repositories, dirty submodules
    /// and FIFOs.
    pub unholdable: BTreeMap<TreePath, &'static str>,
    /// The paths that are ignored only because of rules that the attempt added.
    pub newly_ignored: BTreeSet<TreePath>,
    /// The ignored files that look like the project's source. The key is the path that git ignores:
    /// the file itself, or a directory above it. The path of a directory ends in a slash.
    pub ignored_source: BTreeMap<TreePath, Vec<TreePath>>,
    /// A line for each submodule whose git directory is deleted with the worktree, if the directory
    /// has commits that are nowhere else, or if it cannot be read.
    pub submodules: Vec<String>,
    /// A line about unreadable commits in the attempt's own git directory.
    pub unread: Option<String>,
    /// A line about entries of the attempt's own git directory that are not regular files. Such an
    /// entry is not work.
    pub special: Option<String>,
}

impl Omissions {
    /// True if work would be lost if the worktree were removed.
    pub fn loses_work(&self) -> bool {
        !self.unholdable.is_empty()
            || !self.newly_ignored.is_empty()
            || !self.submodules.is_empty()
            || self.unread.is_some()
    }

    /// A line for each kind of omission, for people.
    pub fn lines(&self) -> Vec<String> {
        let show =
            |path: &[u8]| plain::cut(&path.to_str_lossy().escape_debug().to_string(), MOST_SHOWN);
        let mut lines = Vec::new();
        if !self.excluded.is_empty() {
            let paths: Vec<String> = self.excluded.iter().map(|path| show(path)).collect();
            lines.push(format!("left out by diff.exclude: {}", some_of(&paths)));
        }
        lines.extend(
            self.unholdable
                .iter()
                .map(|(path, why)| format!("not captured: '{}' ({why})", show(path))),
        );
        if let Some(first) = self.newly_ignored.first() {
            lines.push(format!(
                "not captured: {} ignored because of the attempt's changes to .gitignore, such as '{}'",
                count(self.newly_ignored.len(), "path"),
                show(first)
            ));
        }
        if !self.ignored_source.is_empty() {
            let paths =
                self.ignored_source.iter().map(|(path, files)| match path.ends_with(b"/") {
                    true => format!("{} ({})", show(path), count(files.len(), "file")),
                    false => show(path),
                });
            let paths: Vec<String> = paths.collect();
            lines.push(format!("ignored by git and not captured: {}", some_of(&paths)));
        }
        lines.extend(self.submodules.iter().chain(&self.special).chain(&self.unread).cloned());
        lines
    }

    /// The hint for a path that was left out although a capture can hold it. `address` is the
    /// address of the candidate.
    pub fn hint(&self, address: &str) -> Option<String> {
        let path = self.newly_ignored.first().or_else(|| self.ignored_source.keys().next());
        let lossy = path?.lossy();
        let path = shell_words::quote(&lossy);
        Some(format!(
            "to capture such a file: `git frites exec {address} -- git add -f -- {path}`, and then `git frites capture {address}`"
        ))
    }
}

/// Adds the files that no git command lists, such as FIFOs and files in a submodule. `index` is the
/// private index, or `None` if it cannot be read.
pub(super) fn add_unlisted_files(
    repo: &Repo,
    source: &CaptureSource<'_>,
    index: Option<&gix::index::File>,
    omissions: &mut Omissions,
) -> Result<()> {
    index.map_or(Ok(()), |index| add_submodules(repo, source, index, omissions))?;
    add_special_files(source, index, omissions);
    if fs::symlink_metadata(source.worktree.join(".git")).is_ok_and(|m| m.is_dir()) {
        omissions
            .unholdable
            .insert(TreePath::new(".git"), "the worktree was made a repository of its own");
    }
    Ok(())
}

/// The names of files whose content tells git what to do with other files.
pub(super) const RULES: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// The files of rules in a worktree may have at most this many bytes together, because git reads
/// them into memory. git skips a file of more than 100 MiB, but does not limit the sum.
const MOST_RULES: u64 = 16 << 20;

/// Fails if a `.gitignore`, `.gitattributes` or `.gitmodules` of the worktree is a FIFO, a socket
/// or a device. git would wait for ever for a FIFO. Also fails if these files together are longer
/// than [`MOST_RULES`].
pub(super) fn require_readable_rules(source: &CaptureSource<'_>) -> Result<()> {
    let mut left = MOST_RULES;
    let is_skipped =
        |path: &Path| is_in(".git", path) || source.hidden.hides(tree::path_bytes(path));
    for (path, kind) in walk::list(source.worktree, is_skipped) {
        let file = source.worktree.join(&path);
        if path.ends_with(".git") {
            if path != Path::new(".git") {
                require_readable_repository(&file)?;
            }
            continue;
        }
        if kind.is_dir() || !RULES.iter().any(|rules| path.ends_with(rules)) {
            continue;
        }
        let Some(meta) = metadata_of_file(&file)? else { continue };
        let shown = file.display();
        let bytes = if meta.is_file() { meta.len() } else { 0 };
        left = left.checked_sub(bytes).ok_or_else(|| {
            let most = size(MOST_RULES);
            Error::fatal(format!(
                "'{shown}' and other files of rules together have more than {most}"
            ))
            .hint("git would read all of them into memory: shorten or remove them")
        })?;
    }
    Ok(())
}

/// True if a path lies directly in a directory of this name.
fn is_in(name: &str, path: &Path) -> bool {
    path.parent().is_some_and(|directory| directory.ends_with(name))
}

/// Fails if the git directory of a repository inside the worktree has a FIFO or a device, or a link
/// to one. git reads the files there when a capture lists or adds the repository. It does not read
/// the objects then.
fn require_readable_repository(git_dir: &Path) -> Result<()> {
    metadata_of_file(git_dir)?;
    let inside = walk::list(git_dir, |path| is_in("objects", path) && !path.ends_with("info"));
    inside.iter().try_for_each(|(path, _)| metadata_of_file(&git_dir.join(path)).map(drop))
}

/// The metadata of a file, or of the file to which a link leads. `None` if there is no such file.
/// Fails if it is a FIFO, a socket or a device.
fn metadata_of_file(path: &Path) -> Result<Option<fs::Metadata>> {
    let Ok(meta) = fs::metadata(path) else { return Ok(None) };
    if special_kind(meta.file_type()).is_some() {
        return Err(Error::fatal(format!("'{}' is not a regular file", path.display()))
            .hint("git would wait for ever if it read this file: remove it"));
    }
    Ok(Some(meta))
}

/// The reason why git cannot hold the file at a path; `None` if git can hold it.
pub(super) fn why_unholdable(worktree: &Path, path: &TreePath) -> Option<&'static str> {
    special_kind(fs::symlink_metadata(path.on_disk(worktree)).ok()?.file_type())
}

fn special_kind(kind: fs::FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a FIFO")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}

/// Adds the submodules with work that the capture does not have. git records only the id of a
/// submodule's commit, and the submodule's repository is deleted with the worktree.
fn add_submodules(
    repo: &Repo,
    source: &CaptureSource<'_>,
    index: &gix::index::File,
    omissions: &mut Omissions,
) -> Result<()> {
    if !index.entries().iter().any(|e| e.mode == Mode::COMMIT) {
        return Ok(());
    }
    let base = repo.index_of(source.base)?;
    for entry in index.entries().iter().filter(|e| e.mode == Mode::COMMIT) {
        let path = TreePath::new(entry.path(index));
        let directory = path.on_disk(source.worktree);
        if !tree::is_real_directory(source.worktree, &directory) {
            continue;
        }
        if !directory.join(".git").exists() {
            // git does not list the files in such a directory.
            if fs::read_dir(&directory).is_ok_and(|mut files| files.next().is_some()) {
                omissions.unholdable.entry(path).or_insert(IN_NO_SUBMODULE);
            }
            continue;
        }
        let in_base = base.entry_by_path(entry.path(index)).filter(|e| e.mode == Mode::COMMIT);
        let why = match in_base {
            // The base does not have this submodule; an earlier capture may have added it to the
            // private index.
            None => Some(ONLY_ITS_ID),
            Some(_) => unsaved_submodule_work(repo, source, &directory)?,
        };
        if let Some(why) = why {
            omissions.unholdable.entry(path).or_insert(why);
        }
    }
    Ok(())
}

/// Describes the work in a submodule's directory that is stored nowhere else; `None` if there is no
/// such work. A git directory in the worktree's administrative entry is not searched for commits,
/// because [`own_dir::modules::unsaved`] searches all of these.
fn unsaved_submodule_work(
    repo: &Repo,
    source: &CaptureSource<'_>,
    directory: &Path,
) -> Result<Option<&'static str>> {
    let git_dir = directory.join(".git");
    let git = repo.git_at(&git_dir).work_tree(directory).without_own_filters()?;
    if has_uncommitted_work(&git, directory)? {
        return Ok(Some("a submodule with uncommitted changes"));
    }
    let named = worktree::named_by(directory).map(|named| directory.join(named));
    let git_dir = tree::nearest_real(&named.unwrap_or(git_dir));
    let admin = worktree::admin_of(repo, source.worktree)?;
    if admin.is_some_and(|admin| git_dir.starts_with(admin.join(own_dir::MODULES))) {
        return Ok(None);
    }
    let unsaved = own_dir::modules::unsaved_in(repo, source.base, &git_dir)?;
    Ok(unsaved.map(|_| "a submodule with commits that are nowhere else"))
}

/// True if a submodule's directory has work that no commit has, or if git fails. `git` is for the
/// submodule's git directory. The attempt can change the settings, the `info/exclude` and the index
/// there, so these must not hide a file. Only a `.gitignore` hides files, as in the worktree.
fn has_uncommitted_work(git: &Git, directory: &Path) -> Result<bool> {
    let tracked = git.call("status").words("--porcelain -z --ignore-submodules=none -uno");
    let tracked = tracked.output()?;
    let listing = git.call("ls-files").words("-z -v -c -o --exclude-per-directory=.gitignore");
    let listing = listing.output()?;
    if tracked.code != 0 || !tracked.stdout.is_empty() || listing.code != 0 {
        return Ok(true);
    }
    Ok(nul_separated(&listing.stdout).any(|record| may_be_work(record, directory)))
}

/// True for a path that may have uncommitted work, by its record in the output of
/// `git ls-files -v`. `?` stands for an untracked path, a letter in lower case for the bit
/// assume-unchanged, and `S` for the bit skip-worktree. git does not look at a file with one of
/// these bits.
fn may_be_work(record: &[u8], directory: &Path) -> bool {
    match record.first() {
        Some(b'H') | None => false,
        Some(b'S') => {
            let path = TreePath::new(record.get(2..).unwrap_or_default());
            fs::symlink_metadata(path.on_disk(directory)).is_ok()
        }
        Some(_) => true,
    }
}

/// Adds the paths of `staged` that git has left out of the index without an error. git skips names
/// such as `git~1`, and a `.gitmodules` that is a link.
pub(super) fn add_refused_names(
    source: &CaptureSource<'_>,
    index: &gix::index::File,
    staged: &BTreeSet<TreePath>,
    omissions: &mut Omissions,
) {
    for path in staged {
        let there = fs::symlink_metadata(path.on_disk(source.worktree)).is_ok_and(|m| !m.is_dir());
        if there && index.entry_by_path(path.as_bstr()).is_none() {
            omissions.unholdable.insert(path.clone(), "git refuses that name");
        }
    }
}

/// Adds the entries that git does not list: FIFOs, sockets, devices, unreadable directories, and
/// entries named `.git` outside of any repository. Ignored and excluded directories are not
/// searched.
fn add_special_files(
    source: &CaptureSource<'_>,
    index: Option<&gix::index::File>,
    omissions: &mut Omissions,
) {
    let root = source.worktree.to_owned();
    let excludes = source.hidden.excludes().clone();
    let walk = ignore::WalkBuilder::new(source.worktree)
        .standard_filters(false)
        .git_ignore(true)
        .require_git(false)
        .filter_entry(move |entry| {
            let path = entry.path().strip_prefix(&root).map(tree::path_bytes).unwrap_or_default();
            path != b".git"
                && entry.path().parent().is_none_or(|above| !above.ends_with(".git"))
                && (path.is_empty() || !excludes.matches(path))
        })
        .build();
    for entry in walk {
        let found = match &entry {
            Ok(entry) if entry.file_name() == ".git" => Some((entry.path(), DAMAGED)),
            // git does not report a file whose path is too long.
            Ok(entry) if !is_nameable(entry.path()) => Some((entry.path(), TOO_LONG)),
            Ok(entry) => entry.file_type().and_then(special_kind).map(|why| (entry.path(), why)),
            Err(error) => unreadable(error),
        };
        let Some((path, why)) = found else { continue };
        let Ok(path) = path.strip_prefix(source.worktree).map(tree::path_bytes) else { continue };
        let path = TreePath::new(path);
        if why != DAMAGED || !is_in_repository(&path, index, omissions) {
            omissions.unholdable.insert(path, why);
        }
    }
}

/// True if a directory above a path is a submodule in `index`, or is in `omissions` as a nested
/// repository.
fn is_in_repository(
    path: &TreePath,
    index: Option<&gix::index::File>,
    omissions: &Omissions,
) -> bool {
    path.parents().any(|directory| {
        let entry = index.and_then(|index| index.entry_by_path(directory.as_bstr()));
        entry.is_some_and(|entry| entry.mode == Mode::COMMIT)
            || omissions.unholdable.contains_key(&directory)
    })
}

/// The directory that a walk could not read, with the reason.
fn unreadable(error: &ignore::Error) -> Option<(&Path, &'static str)> {
    match error {
        ignore::Error::WithDepth { err, .. } => unreadable(err),
        ignore::Error::WithPath { path, err } => match err.io_error()?.kind() {
            std::io::ErrorKind::PermissionDenied => Some((path, "it may not be read")),
            std::io::ErrorKind::InvalidFilename => Some((path, TOO_LONG)),
            _ => None,
        },
        _ => None,
    }
}

/// True if this is the path of a `.gitignore`.
pub(super) fn is_ignore_file(path: &[u8]) -> bool {
    path.ends_with(b".gitignore") && file_name(path) == b".gitignore"
}

/// True if a `.gitignore` differs between two trees, given as indexes.
pub(super) fn ignore_rules_differ(one: &gix::index::File, other: &gix::index::File) -> bool {
    fn rules(index: &gix::index::File) -> impl Iterator<Item = (&BStr, gix::ObjectId)> {
        index
            .entries()
            .iter()
            .map(|e| (e.path(index), e.id))
            .filter(|(path, _)| is_ignore_file(path))
    }
    !rules(one).eq(rules(other))
}

/// The ignored paths of the worktree that `git` uses. A directory ends in a slash, and stands for
/// all paths in it.
pub(super) fn ignored<B: FromIterator<TreePath>>(git: &Git) -> Result<B> {
    git.call("ls-files").args(["-z", "-o", "-i", "--directory", "--exclude-standard"]).paths()
}

/// The ignored paths that the ignore rules of the base would not ignore. Called only if the attempt
/// changed a `.gitignore`.
pub(super) fn newly_ignored(
    repo: &Repo,
    git: &Git,
    source: &CaptureSource<'_>,
) -> Result<BTreeSet<TreePath>> {
    let mut hidden: BTreeSet<TreePath> = ignored(git)?;
    hidden.retain(|path| !source.hidden.hides(path));
    hidden.retain(|path| !source.seeds.still_hold(source.worktree, path));
    // While commands run, an attempt may just have planted rules in `info/exclude`.
    if !repo.overrides().has_other_rules() {
        let known = ignored::ignored(repo, source.base, &hidden)?.into_keys().cloned();
        let known: BTreeSet<TreePath> = known.collect();
        hidden.retain(|path| !known.contains(path));
    }
    Ok(hidden)
}
