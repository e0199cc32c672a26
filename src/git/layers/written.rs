//! The tracked files that commands changed, as their upper layer shows.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use gix::bstr::ByteSlice;
use gix::index::Entry;

use crate::error::{IoContext, Result};
use crate::fs::parallel;
use crate::fs::stat::change_time;
use crate::fs::walk::visit;
use crate::git::cli::{Git, nul_separated};
use crate::git::index::{ScratchIndex, read_index};
use crate::git::layers::is_opaque;
use crate::model::path::TreePath;

/// The pause between two looks at a file system's clock.
const STEP: Duration = Duration::from_millis(1);

/// The tracked files that are not as they were checked out, sorted. `upper` is the layer that got
/// every write, and `index` the index file of the tree below it.
pub fn changed(git: &Git, index: &Path, upper: &Path) -> Result<Vec<TreePath>> {
    let failed = || format!("could not read '{}'", upper.display());
    if has_only_git(upper).context(failed)? {
        return Ok(Vec::new());
    }
    let file = index;
    let index = read_index(file)?;
    let mut rewritten = Vec::new();
    let mut gone = Vec::new();
    let mut hidden = Vec::new();
    visit(upper, &mut |path, meta| {
        let is_directory = index.path_is_directory(path.as_bstr());
        if is_directory && (!meta.is_dir() || is_opaque(&upper.join(OsStr::from_bytes(path)))) {
            hidden.push([path, b"/"].concat());
        } else if index.entry_by_path(path.as_bstr()).is_some() {
            let is_gone = meta.is_whiteout() || meta.is_dir();
            (if is_gone { &mut gone } else { &mut rewritten }).push(TreePath::new(path));
        }
    })
    .context(failed)?;
    for directory in hidden {
        let below = index.prefixed_entries(directory.as_bstr()).unwrap_or_default();
        let paths = below.iter().map(|entry| TreePath::new(entry.path(&index)));
        gone.extend(paths.filter(|path| fs::symlink_metadata(path.on_disk(upper)).is_err()));
    }
    let mut changed = with_other_content(git, file, upper, &rewritten)?;
    changed.extend(gone);
    changed.sort();
    changed.dedup();
    Ok(changed)
}

/// True if there is nothing but git's own directory, or the file that names it.
fn has_only_git(upper: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(upper)? {
        if entry?.file_name() != ".git" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies the index of a tree to the place where the tree's commands use it.
pub fn hand_out_index(index: &Path, to: &Path) -> io::Result<()> {
    fs::copy(index, to)?;
    make_racy(&fs::File::options().write(true).open(to)?)
}

/// Makes every entry of an index racily clean: a git that a command runs then compares contents,
/// always.
fn make_racy(index: &fs::File) -> io::Result<()> {
    index.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
}

/// A time after all changes before, and not after any that comes: a command may write within the same
/// step of the clock. `index` is one that was handed out.
pub fn after_changes(index: &Path) -> io::Result<SystemTime> {
    next_step(&fs::File::options().write(true).open(index)?)
}

/// Waits until a file that is written in this directory is younger than all that were written there
/// before.
pub(super) fn wait_for_next_step(directory: &Path) -> io::Result<()> {
    next_step(&tempfile::tempfile_in(directory)?).map(drop)
}

/// Waits for the next step of the clock of a file system, which goes in steps of milliseconds. Gives
/// the new time. The file becomes racy.
fn next_step(file: &fs::File) -> io::Result<SystemTime> {
    let last = change_time(&file.metadata()?);
    loop {
        make_racy(file)?;
        let now = change_time(&file.metadata()?);
        if now > last {
            return Ok(now);
        }
        thread::sleep(STEP);
    }
}

/// The tracked files of a plain directory that are not as they were checked out, sorted. `index` is
/// the index file of the tree in it, and `since` a time after that at which the directory was
/// complete, and not after the first change that counts.
///
/// A file that nobody has touched since is not changed, even if git would write it differently.
pub fn changed_in(
    git: &Git,
    index: &Path,
    directory: &Path,
    since: SystemTime,
) -> Result<Vec<TreePath>> {
    let tracked = read_index(index)?;
    let is_touched = |entry: &Entry| {
        let file = directory.join(OsStr::from_bytes(entry.path(&tracked)));
        fs::symlink_metadata(file).map_or(true, |meta| change_time(&meta) >= since)
    };
    let touched = parallel::map_chunks(tracked.entries(), |entries| {
        let touched = entries.iter().filter(|entry| is_touched(entry));
        Ok(touched.map(|entry| TreePath::new(entry.path(&tracked))).collect::<Vec<_>>())
    })?;
    with_other_content(git, index, directory, &touched.concat())
}

/// Those of the written files, sorted, that have another content or mode than the tree.
fn with_other_content(
    git: &Git,
    index: &Path,
    upper: &Path,
    written: &[TreePath],
) -> Result<Vec<TreePath>> {
    // Mostly there is none, and then git need not read every file.
    if written.is_empty() {
        return Ok(Vec::new());
    }
    let written: BTreeSet<&TreePath> = written.iter().collect();
    let mut differ = differing(git, index, upper)?;
    differ.retain(|path| written.contains(path));
    differ.sort();
    Ok(differ)
}

/// The tracked files that a directory lacks, or has with another content or mode.
fn differing(git: &Git, index: &Path, directory: &Path) -> Result<Vec<TreePath>> {
    let scratch = ScratchIndex::empty(&git.clone().work_tree(directory))?;
    // With its own time: git reads files again that may have been written in the same moment as the
    // index.
    fs::copy(index, scratch.file())
        .and_then(|_| fs::metadata(index)?.modified())
        .and_then(|time| fs::File::options().write(true).open(scratch.file())?.set_modified(time))
        .context(|| "could not write a temporary index".into())?;
    let git = scratch.git();
    // A file with new stat data may have its old content.
    git.call("update-index").args(["-q", "--refresh"]).output()?;
    let list =
        git.call("diff-files").args(["-z", "--name-only", "--ignore-submodules=all"]).bytes()?;
    Ok(nul_separated(&list).map(TreePath::new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::Repo;

    #[test]
    fn a_file_written_after_a_step_of_the_clock_is_younger() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str| {
            fs::write(dir.path().join(name), name).expect("written");
            fs::metadata(dir.path().join(name)).and_then(|meta| meta.modified()).expect("a time")
        };
        for _ in 0..5 {
            let before = write("before");
            wait_for_next_step(dir.path()).expect("waited");
            assert!(write("after") > before);
        }
    }

    #[test]
    fn every_write_after_the_index_was_handed_out_counts_and_none_before() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        let git = |words: &[&str]| {
            let done =
                std::process::Command::new("git").current_dir(dir.path()).args(words).status();
            assert!(done.expect("git").success(), "{words:?}");
        };
        git(&["init", "-q"]);
        for name in ["a", "b"] {
            fs::write(at(name), "as it was").expect("written");
        }
        git(&["add", "."]);
        let repo = Repo::discover(dir.path()).expect("a repository");
        let index = at(".git/index");
        let changed =
            |since| changed_in(&repo.git(), &index, dir.path(), since).expect("the changed files");
        fs::write(at("a"), "before").expect("written");
        let handed_out = at(".git/handed-out");
        hand_out_index(&index, &handed_out).expect("handed out");
        let since = after_changes(&handed_out).expect("a time");
        assert_eq!(changed(since), []);
        fs::write(at("b"), "after").expect("written");
        assert_eq!(changed(since), [TreePath::new(b"b")]);
        // The clock goes in steps: this is a write in the same one.
        let same = change_time(&fs::metadata(at("b")).expect("a file"));
        assert_eq!(changed(same), [TreePath::new(b"b")]);
    }
}
