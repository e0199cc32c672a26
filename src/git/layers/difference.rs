//! Writes the overlay layer that turns the files of a base into those of another tree. It has the
//! files that differ, and marks (whiteouts) for deleted files.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use rustix::fs::{CWD, FileType};

use crate::error::{IoContext, Result};
use crate::git::fan_out;
use crate::git::index::encoded_with_checksum;
use crate::git::layers::base::BaseLayer;
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::git::trees::{self, TreeDifference};
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// Writes the difference from a base to a commit into the directory `into`, and the commit's index
/// to the file `index`. The written files have the present time.
///
/// In three cases, writes nothing and returns false:
///
/// - Attributes differ. Then git could write other files from unchanged blobs.
/// - A submodule differs. Its files are in another repository.
/// - The trees cannot be read in process.
pub fn write(
    repo: &Repo,
    layer: &BaseLayer,
    [base, commit]: [&Oid; 2],
    seeds: &Seeds,
    into: &Path,
    index: &Path,
) -> Result<bool> {
    let Some(differences) = trees::differences(repo, base, commit) else { return Ok(false) };
    if differences.iter().any(changes_other_files) {
        return Ok(false);
    }
    let own = index_of(layer.tracked()?, &differences);
    fs::write(index, encoded_with_checksum(&own, None)?).could_not("write", index)?;
    fs::create_dir_all(into).could_not("write", into)?;
    let mut some = State::new(own.object_hash());
    add(&mut some, &differences);
    let some = gix::index::File::from_state(some, index.to_owned());
    if !fan_out::check_out_some(repo, base, &own, some, into) {
        check_out_by_git(repo, layer, &differences, into, index)?;
    }
    let deleted = differences.iter().filter(|d| d.new.is_none()).map(|d| &d.path);
    for place in paths_to_mark(deleted, &own, seeds) {
        mark_as_deleted(into, &place).could_not("write", into)?;
    }
    Ok(true)
}

/// Lets git write the files. All attributes files are the same, so the attributes of the base's
/// checkout hold for the other tree, too.
fn check_out_by_git(
    repo: &Repo,
    layer: &BaseLayer,
    differences: &[TreeDifference],
    into: &Path,
    index: &Path,
) -> Result<()> {
    let git = repo.git().work_tree(&layer.sources()).index(index);
    let written = differences.iter().filter(|d| d.new.is_some()).map(|d| &d.path);
    let list = TreePath::nul_terminated(written);
    if list.is_empty() {
        return Ok(());
    }
    let mut option = OsString::from("--prefix=");
    option.push(into);
    option.push("/");
    git.call("checkout-index").args(["-f", "-z", "--stdin"]).arg(option).stdin(list).run()
}

/// Makes the index of the other tree from the base's index and the differences. git would have to
/// read all trees for this. A new or changed entry has no stat data.
fn index_of(base: &State, differences: &[TreeDifference]) -> State {
    let mut index = base.clone();
    let paths: BTreeSet<&[u8]> = differences.iter().map(|d| d.path.as_bytes()).collect();
    index.remove_entries(|_, path, _| paths.contains(path.as_bytes()));
    add(&mut index, differences);
    index
}

/// Adds the new and changed files to an index, without stat data.
fn add(index: &mut State, differences: &[TreeDifference]) {
    for TreeDifference { path, new, .. } in differences {
        let Some((mode, id)) = *new else { continue };
        let mode = match mode {
            EntryMode::Executable => Mode::FILE_EXECUTABLE,
            EntryMode::Link => Mode::SYMLINK,
            _ => Mode::FILE,
        };
        let path = path.as_bytes().as_bstr();
        index.dangerously_push_entry(Stat::default(), id, Flags::empty(), mode, path);
    }
    index.sort_entries();
}

/// True if this difference can change how other paths are checked out, or if it is a submodule.
fn changes_other_files(difference: &TreeDifference) -> bool {
    let TreeDifference { path, old, new } = difference;
    let is_submodule = old.iter().chain(new).any(|(mode, _)| *mode == EntryMode::Submodule);
    is_submodule || [&b".gitattributes"[..], b".gitmodules"].contains(&path.file_name())
}

/// The paths to mark as deleted, so that the files `deleted` are hidden. If a directory has no file
/// in `index`, the index of the new tree, the directory itself is marked. git would also remove
/// such a directory.
fn paths_to_mark<'a>(
    deleted: impl Iterator<Item = &'a TreePath>,
    index: &State,
    seeds: &Seeds,
) -> BTreeSet<TreePath> {
    let is_kept = |directory: &TreePath| {
        index.path_is_directory(directory.as_bytes().as_bstr()) || seeds.hold(directory)
    };
    let mut marks = BTreeSet::new();
    for path in deleted {
        let parents: Vec<TreePath> = path.parents().collect();
        // A directory at this path, or a file at a path above it, hides the deleted file anyway.
        if is_kept(path)
            || parents.iter().any(|path| index.entry_by_path(path.as_bytes().as_bstr()).is_some())
        {
            continue;
        }
        let outermost = parents.into_iter().find(|parent| !is_kept(parent));
        marks.insert(outermost.unwrap_or_else(|| path.clone()));
    }
    marks
}

/// Makes a whiteout: a character device with the number 0:0. Making it needs no privileges.
fn mark_as_deleted(layer: &Path, path: &TreePath) -> io::Result<()> {
    let full = path.on_disk(layer);
    if let Some(parent) = full.parent() {
        fs::create_dir_all(parent)?;
    }
    let no_mode = rustix::fs::Mode::empty();
    Ok(rustix::fs::mknodat(CWD, full, FileType::CharacterDevice, no_mode, 0)?)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::fs::walk::visit;
    use crate::git::repo::from_oid;

    /// Makes a repository. Its first commit has these attributes. Its second commit changes, adds
    /// and deletes files.
    fn repository(directory: &Path, attributes: &str) -> (Repo, [Oid; 2]) {
        let git = |line: &str| {
            let call = duct::cmd("git", line.split(' ')).dir(directory);
            call.env("GIT_CONFIG_GLOBAL", "/dev/null").read().expect("git works")
        };
        let commit = |message: &str| {
            git("add -A");
            git(&format!("-c user.name=a -c user.email=a@b commit -qm {message}"));
            Oid::parse(&git("rev-parse HEAD")).expect("an object")
        };
        let put = |path: &str, text: &str| {
            let file = directory.join(path);
            fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            fs::write(file, text).expect("written");
        };
        git("init -q");
        for path in ["kept", "changed", "gone/deep/x", "was-file", "was-directory/x", "lines.txt"] {
            put(path, "base\n");
        }
        put(".gitattributes", attributes);
        let base = commit("base");
        for gone in ["gone/deep/x", "was-file", "was-directory/x"] {
            fs::remove_file(directory.join(gone)).expect("there");
        }
        fs::remove_dir(directory.join("was-directory")).expect("empty");
        for path in ["changed", "new/deep/file", "was-file/x", "new\nline", "lines.txt"] {
            put(path, "one\ntwo\n");
        }
        put("empty", "");
        put("run", "#!/bin/sh\n");
        fs::set_permissions(directory.join("run"), PermissionsExt::from_mode(0o755)).expect("set");
        symlink("../elsewhere", directory.join("was-directory")).expect("linked");
        let new = commit("new");
        (Repo::discover(directory).expect("a repository"), [base, new])
    }

    /// Stores an object, even if it is invalid.
    fn store(repo: &Repo, kind: &str, content: &[u8]) -> Oid {
        let call = repo.git().call("hash-object").args(["-t", kind, "-w", "--literally"]);
        let stored = call.arg("--stdin").stdin(content).bytes().expect("stored");
        Oid::parse(String::from_utf8_lossy(&stored).trim()).expect("an object")
    }

    /// Stores a tree with these modes, names and objects.
    fn tree(repo: &Repo, entries: &[(&str, &str, Oid)]) -> Oid {
        let mut content = Vec::new();
        for (mode, name, id) in entries {
            content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            content.extend_from_slice(from_oid(id).expect("an id").as_slice());
        }
        store(repo, "tree", &content)
    }

    #[test]
    fn nothing_is_written_outside_of_the_layer() {
        const DIRECTORY: &str = "40000";
        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: &str| directory.path().join(name);
        fs::create_dir(place("repo")).expect("made");
        let (repo, [base, _]) = repository(&place("repo"), "");
        let layer = BaseLayer::at(place("base"));
        layer.check_out(&repo, &base).expect("checked out");
        fs::create_dir_all(place("room/outside")).expect("made");
        let file = tree(&repo, &[("100644", "file", store(&repo, "blob", b"hostile\n"))]);
        let link = store(&repo, "blob", place("room/outside").as_os_str().as_bytes());
        let above = |name: &str, id: Oid| tree(&repo, &[(DIRECTORY, name, id)]);
        // This file is the same as in the base, because `write` refuses trees with other
        // attributes.
        let attributes = ("100644", ".gitattributes", store(&repo, "blob", b""));
        for hostile in [
            vec![(DIRECTORY, "..", file)],
            vec![(DIRECTORY, "x", above("..", above("..", file)))],
            vec![(DIRECTORY, ".git", file)],
            vec![(DIRECTORY, "x/../..", file)],
            vec![("120000", "way", link), (DIRECTORY, "way", file)],
        ] {
            let hostile = tree(&repo, &[&hostile[..], &[attributes]].concat());
            let (into, index) = (place("room/into"), place("room/index"));
            let done = write(&repo, &layer, [&base, &hostile], &Seeds::default(), &into, &index);
            assert!(!done.expect("no failure"), "{hostile}");
            let there: Vec<_> =
                listing(&place("room")).into_iter().map(|(path, ..)| path).collect();
            assert_eq!(there, [b"outside"], "{hostile}");
        }
    }

    /// The path, mode and content of everything in a directory.
    fn listing(directory: &Path) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
        let mut found = Vec::new();
        visit(directory, &mut |path, meta| {
            let file = directory.join(OsStr::from_bytes(path));
            let link = || Ok(fs::read_link(&file)?.into_os_string().into_encoded_bytes());
            let content = if meta.is_symlink() { link() } else { fs::read(&file) };
            found.push((path.to_vec(), meta.mode(), content.unwrap_or_default()));
        })
        .expect("readable");
        found
    }

    #[test]
    fn layer_has_the_files_and_the_index_of_the_other_tree() {
        for attributes in ["", "*.txt text=auto -diff\n", "*.txt eol=crlf\n", "*.txt ident\n"] {
            let directory = tempfile::tempdir().expect("a directory");
            let place = |name: &str| directory.path().join(name);
            fs::create_dir(place("repo")).expect("made");
            let (repo, [base, new]) = repository(&place("repo"), attributes);
            let layer = BaseLayer::at(place("base"));
            layer.check_out(&repo, &base).expect("checked out");
            let (into, index) = (place("into"), place("index"));
            let done = write(&repo, &layer, [&base, &new], &Seeds::default(), &into, &index);
            assert!(done.expect("written"));
            let tree =
                duct::cmd!("git", "write-tree").dir(place("repo")).env("GIT_INDEX_FILE", &index);
            let wanted = repo.commit(&new).expect("readable").tree;
            assert_eq!(tree.read().expect("git reads the index"), wanted.as_str());
            // The layer has the files that differ; it also has the marks of deleted files.
            let whole = place("whole");
            BaseLayer::at(whole.clone()).check_out(&repo, &new).expect("checked out");
            let whole = listing(&BaseLayer::at(whole).sources());
            let mut written = listing(&into);
            written.retain(|(_, mode, _)| [0o100_000, 0o120_000].contains(&(mode & 0o170_000)));
            assert_eq!(written.len(), 8, "{attributes}: {written:?}");
            for file in written {
                assert!(whole.contains(&file), "{attributes}: {file:?}");
            }
        }
    }
}
