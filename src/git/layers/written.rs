//! Finds the tracked files that commands have changed in a judged tree.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use filetime::FileTime;
use gix::bstr::ByteSlice;
use gix::index::State;
use gix::index::entry::Mode;
use rustix::fs::AtFlags;

use crate::error::{IoContext, Result};
use crate::fs::tree::change_time;
use crate::fs::walk::visit;
use crate::fs::{parallel, regular};
use crate::git::cli::Git;
use crate::git::index::{ScratchIndex, entry_stat, parse_index};
use crate::git::layers::is_opaque;
use crate::model::path::TreePath;

/// The pause between two looks at a file system's clock.
const STEP: Duration = Duration::from_millis(1);

/// The index of a judged tree at the moment when all files of the tree were written. It is kept in
/// memory, because commands may be able to write to every file on the disk.
pub struct CompleteIndex {
    bytes: Vec<u8>,
    modified: SystemTime,
}

impl CompleteIndex {
    /// Reads the `index` of a complete tree before commands run in the tree.
    ///
    /// From now on, every entry of the file is racily clean, so a git that a command runs always
    /// compares contents. This matters if attributes have changed, because git might then check out
    /// a file differently.
    pub fn hand_out(index: &Path) -> io::Result<CompleteIndex> {
        let (bytes, meta) = regular::read_with_metadata(index)?;
        let modified = meta.modified()?;
        make_racy(&File::options().write(true).open(index)?)?;
        Ok(CompleteIndex { bytes, modified })
    }

    /// The tracked files that commands have changed in an overlay, sorted. `upper` is the layer
    /// that got every write.
    pub fn changed_over(&self, git: &Git, upper: &Path) -> Result<Vec<TreePath>> {
        if has_only_git(upper).could_not("read", upper)? {
            return Ok(Vec::new());
        }
        let index = self.parse()?;
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
        .could_not("read", upper)?;
        for directory in hidden {
            let below = index.prefixed_entries(directory.as_bstr()).unwrap_or_default();
            let paths = below.iter().map(|entry| TreePath::new(entry.path(&index)));
            gone.extend(paths.filter(|path| fs::symlink_metadata(path.on_disk(upper)).is_err()));
        }
        let mut changed = self.with_other_content(git, upper, &rewritten)?;
        changed.extend(gone);
        changed.sort();
        changed.dedup();
        Ok(changed)
    }

    /// The tracked files of a plain directory that have changed since they were checked out,
    /// sorted. Before commands start, the caller must have called [`wait_for_next_step`].
    ///
    /// A file with the stat data of its index entry has not changed, because no program can set a
    /// change time. This holds even if git would now check out the file differently.
    pub fn changed_in(&self, git: &Git, directory: &Path) -> Result<Vec<TreePath>> {
        let root = File::open(directory).could_not("open", directory)?;
        let index = self.parse()?;
        let touched = parallel::map_chunks(index.entries(), |entries| {
            let touched = entries.iter().filter(|entry| {
                let path = OsStr::from_bytes(entry.path(&index));
                let now = rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW);
                entry.mode != Mode::COMMIT && !now.is_ok_and(|now| entry_stat(&now) == entry.stat)
            });
            Ok(touched.map(|entry| TreePath::new(entry.path(&index))).collect::<Vec<_>>())
        })?;
        self.with_other_content(git, directory, &touched.concat())
    }

    /// The paths of all tracked files, sorted.
    pub fn paths(&self) -> Result<Vec<TreePath>> {
        let index = self.parse()?;
        let files = index.entries().iter().filter(|entry| entry.mode != Mode::COMMIT);
        Ok(files.map(|entry| TreePath::new(entry.path(&index))).collect())
    }

    fn parse(&self) -> Result<State> {
        parse_index(&self.bytes, FileTime::from_system_time(self.modified))
    }

    /// The files in `written` whose content or mode differs from the index, sorted.
    fn with_other_content(
        &self,
        git: &Git,
        directory: &Path,
        written: &[TreePath],
    ) -> Result<Vec<TreePath>> {
        // In most cases no file was written. Then git need not read every file.
        if written.is_empty() {
            return Ok(Vec::new());
        }
        let written: BTreeSet<&TreePath> = written.iter().collect();
        let scratch = ScratchIndex::empty(&git.clone().work_tree(directory))?;
        // The copy gets the time of the original index. So git rereads the files that may have been
        // written in the same moment as the index.
        fs::write(&scratch.file, &self.bytes)
            .and_then(|()| File::options().write(true).open(&scratch.file))
            .and_then(|file| file.set_modified(self.modified))
            .context(|| "could not write a temporary index".into())?;
        let git = scratch.git();
        // A file with new stat data may still have its old content.
        git.refresh()?;
        let mut differ: Vec<TreePath> = git.modified("all")?;
        differ.retain(|path| written.contains(path));
        differ.sort();
        Ok(differ)
    }
}

/// True if the layer has nothing except `.git`, which is a directory or a file.
fn has_only_git(upper: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(upper)? {
        if entry?.file_name() != ".git" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes every entry of an index racily clean.
fn make_racy(index: &File) -> io::Result<()> {
    index.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
}

/// Waits until the clock of this directory's file system has moved on. The clock goes in steps of
/// milliseconds. Files that are written after the wait have a later time than all files from
/// before.
pub fn wait_for_next_step(directory: &Path) -> io::Result<()> {
    let file = tempfile::tempfile_in(directory)?;
    let last = change_time(&file.metadata()?);
    loop {
        make_racy(&file)?;
        if change_time(&file.metadata()?) > last {
            return Ok(());
        }
        thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::fan_out;
    use crate::git::file_times::FileTimes;
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
    fn every_change_of_a_complete_tree_counts_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        let git = |line: &str| {
            let call = duct::cmd("git", line.split(' ')).dir(at("repo"));
            call.env("GIT_CONFIG_GLOBAL", "/dev/null").read().expect("git works")
        };
        for name in ["repo/one", "repo/other", "tree"] {
            fs::create_dir_all(at(name)).expect("made");
        }
        for name in ["a", "one/f", "other/f"] {
            fs::write(at("repo").join(name), name).expect("written");
        }
        git("init -q");
        git("add -A");
        git("-c user.name=a -c user.email=a@b commit -qm base");
        let repo = Repo::discover(&at("repo")).expect("a repository");
        let commit = repo.resolve_commit("HEAD").expect("a commit");
        let (tree, index) = (at("tree"), at("index"));
        fan_out::check_out(&repo, &commit, &tree, &index, FileTimes::Current).expect("written");
        let complete = CompleteIndex::hand_out(&index).expect("handed out");
        wait_for_next_step(dir.path()).expect("waited");
        let changed = || complete.changed_in(&repo.git(), &tree).expect("the changed files");
        assert_eq!(changed(), []);
        // `complete` no longer needs the index on the disk.
        fs::remove_file(&index).expect("removed");
        fs::write(tree.join("untracked"), "x").expect("written");
        fs::write(tree.join("a"), "a").expect("written as it was");
        assert_eq!(changed(), []);
        fs::write(tree.join("a"), "b").expect("written");
        assert_eq!(changed(), [TreePath::new(b"a")]);
        // Renaming a directory does not change the change times of the files in it.
        fs::rename(tree.join("one"), tree.join("third")).expect("renamed");
        fs::rename(tree.join("other"), tree.join("one")).expect("renamed");
        fs::rename(tree.join("third"), tree.join("other")).expect("renamed");
        let all = [&b"a"[..], b"one/f", b"other/f"].map(TreePath::new);
        assert_eq!(changed(), all);
        assert_eq!(complete.paths().expect("parsed"), all);
    }
}
