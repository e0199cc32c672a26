//! Tests of walks over directories that an earlier walk has listed.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::fs::directory::DIRECTORY;
use crate::git::capture::known_directories::{DirectoryState, ListedDirectories};
use crate::git::capture::walk::{Listing, list};
use crate::git::index::open_index;
use crate::git::repo::Repo;
use crate::model::path::TreePath;

/// A worktree in memory, where the kernel gives change times, with the directories that its first
/// walks have listed.
struct Place {
    _room: tempfile::TempDir,
    root: PathBuf,
    repo: Repo,
    index: gix::index::File,
    listed: ListedDirectories,
}

fn git(directory: &Path, line: &str) -> String {
    let call = duct::cmd("git", line.split(' ')).dir(directory);
    let call = call.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_AUTHOR_NAME", "T");
    let call = call.env("GIT_AUTHOR_EMAIL", "t@example.com").env("GIT_COMMITTER_NAME", "T");
    call.env("GIT_COMMITTER_EMAIL", "t@example.com").read().expect("git works")
}

fn place() -> Place {
    let room = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let main = room.path().canonicalize().expect("real").join("main");
    let root = main.with_file_name("worktree");
    fs::create_dir_all(main.join("a/b")).expect("directories");
    for file in ["top", "a/one", "a/two", "a/b/three"] {
        fs::write(main.join(file), "first\n").expect("a file");
    }
    for line in ["init -q", "add -A", "commit -q -m base"] {
        git(&main, line);
    }
    git(&main, &format!("worktree add -q --detach {}", root.display()));
    for file in ["top", "a/one", "a/two", "a/b/three"] {
        put_time_back(&root.join(file), SystemTime::UNIX_EPOCH);
    }
    git(&root, "update-index --refresh");
    let repo = Repo::discover(&main).expect("a repository");
    let index = main.join(".git/worktrees/worktree/index");
    let index = open_index(&index).expect("an index");
    let listed = ListedDirectories::default();
    let mut place = Place { _room: room, root, repo, index, listed };
    // A walk lists a directory again until the directory's change time is old enough.
    let end = Instant::now() + Duration::from_secs(20);
    while place.listed.len() < 3 {
        assert!(Instant::now() < end, "they are never old enough");
        let listing = place.list().expect("nothing is unusual");
        assert_eq!((listing.changed, listing.deleted, listing.untracked), Default::default());
        place.listed = listing.listed;
    }
    place
}

impl Place {
    fn list(&self) -> Option<Listing> {
        list(&self.repo, &self.root, &self.index, &self.listed).expect("it can be read")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

fn put_time_back(path: &Path, time: SystemTime) {
    fs::File::open(path).and_then(|file| file.set_modified(time)).expect("a time");
}

/// Does `work`, and then sets the time of the path to its old value.
fn unseen(path: &Path, work: impl FnOnce()) {
    let before = fs::metadata(path).and_then(|meta| meta.modified()).expect("a time");
    work();
    put_time_back(path, before);
}

#[track_caller]
fn assert_finds(edit: impl FnOnce(&Place), changed: &[&str], deleted: &[&str], new: &[&str]) {
    let place = place();
    edit(&place);
    let listing = place.list().expect("nothing is unusual");
    let found = [listing.changed, listing.deleted, listing.untracked];
    let expected =
        [changed, deleted, new].map(|all| all.iter().map(TreePath::new).collect::<Vec<_>>());
    assert_eq!(found, expected);
}

#[test]
fn change_in_a_directory_that_was_listed_before_is_found_whatever_hides_it() {
    let write = |path: PathBuf, text: &str| fs::write(path, text).expect("written");
    assert_finds(
        |at| unseen(&at.path("a/b"), || write(at.path("a/b/new"), "new\n")),
        &[],
        &[],
        &["a/b/new"],
    );
    assert_finds(
        |at| unseen(&at.path("a/two"), || write(at.path("a/two"), "later\n")),
        &["a/two"],
        &[],
        &[],
    );
    assert_finds(
        |at| {
            write(at.path("../other"), "first\n");
            unseen(&at.path("a"), || {
                fs::rename(at.path("../other"), at.path("a/one")).expect("renamed");
            });
            put_time_back(&at.path("a/one"), SystemTime::UNIX_EPOCH);
        },
        &["a/one"],
        &[],
        &[],
    );
    assert_finds(
        |at| {
            let one = at.path("a/one");
            fs::remove_file(&one).and_then(|()| fs::create_dir(&one)).expect("replaced");
            write(one.join("inside"), "new\n");
        },
        &[],
        &["a/one"],
        &["a/one/inside"],
    );
    assert_finds(
        |at| fs::hard_link(at.path("a/one"), at.path("a/link")).expect("linked"),
        &["a/one"],
        &[],
        &["a/link"],
    );
    // The number of names in `a` stays the same.
    assert_finds(
        |at| {
            fs::remove_file(at.path("a/two")).expect("removed");
            write(at.path("a/too"), "first\n");
        },
        &[],
        &["a/two"],
        &["a/too"],
    );
    assert_finds(
        |at| fs::rename(at.path("a/b"), at.path("a/c")).expect("renamed"),
        &[],
        &["a/b/three"],
        &["a/c/three"],
    );
    assert_finds(
        |at| {
            fs::rename(at.path("a/b"), at.path("../b")).expect("renamed");
            symlink("../../b", at.path("a/b")).expect("linked");
        },
        &[],
        &["a/b/three"],
        &["a/b"],
    );
    let executable = fs::Permissions::from_mode(0o755);
    assert_finds(
        |at| fs::set_permissions(at.path("top"), executable).expect("a mode"),
        &["top"],
        &[],
        &[],
    );
}

#[test]
fn repository_in_a_directory_that_was_listed_before_is_left_to_git() {
    let place = place();
    fs::create_dir(place.path("a/.git")).expect("a directory");
    assert!(place.list().is_none());
}

/// A false record says that `a` has three names. Once the walk no longer finds the new name, it has relied on
/// the record and has not listed `a`.
#[test]
fn directory_with_the_names_of_the_index_is_not_listed_again() {
    let mut place = place();
    fs::write(place.path("a/new"), "new\n").expect("written");
    let directory = rustix::fs::open(place.path("a"), DIRECTORY, rustix::fs::Mode::empty());
    let state = DirectoryState::of(&directory.expect("a directory")).expect("readable");
    let new = |place: &Place| place.list().expect("nothing is unusual").untracked;
    assert_eq!(new(&place), [TreePath::new("a/new")]);
    // The index has two files and a directory in `a`.
    place.listed.extend([(state, 3)]);
    assert_eq!(new(&place), [TreePath::new("a/new")], "the change is too young");
    let end = Instant::now() + Duration::from_secs(20);
    while !new(&place).is_empty() {
        assert!(Instant::now() < end, "it is listed again and again");
    }
    place.listed.extend([(state, 2)]);
    assert_eq!(new(&place), [TreePath::new("a/new")], "the index has more names there");
}
