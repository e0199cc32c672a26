//! Reads random worktrees in process and by git, and compares the results.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fastrand::Rng;

use super::*;
use crate::git::capture::excludes::{Excludes, HiddenPaths};
use crate::git::seed::placed::PlacedSeeds;

const DIRECTORIES: [&str; 7] = ["", "src", "src/deep", "a-b", "a", "node_modules", "build"];

const NAMES: [&str; 16] = [
    "one.txt",
    "two.c",
    "three",
    "a",
    "a.b",
    "b",
    "x.log",
    "keep.log",
    "with blank",
    "new\nline",
    "é",
    "back\\slash",
    ".hidden",
    ".gitx",
    "z.bin",
    "lf.crlf",
];

const RULES: [&str; 8] = [
    "*.log\n",
    "!keep.log\n",
    "/build/\n",
    "a/\n",
    "deep\n",
    "src/*\n!src/deep\n",
    "# none\n",
    "\\!b\n*.b ",
];

const ATTRIBUTES: [&str; 4] =
    ["*.crlf text eol=crlf\n", "*.txt text=auto\n", "*.bin -diff binary\n", "*.c ident\n"];

struct Place {
    directory: PathBuf,
    worktree: PathBuf,
    base: Oid,
}

fn git(directory: &Path, args: &[&str]) -> String {
    let call = duct::cmd("git", args).dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let names =
        ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    let call = names.iter().fold(call, |call, name| call.env(name, "t@example.com"));
    call.stderr_capture().read().expect("git works")
}

fn any_path(random: &mut Rng) -> PathBuf {
    let directory = DIRECTORIES[random.usize(..DIRECTORIES.len())];
    Path::new(directory).join(NAMES[random.usize(..NAMES.len())])
}

fn any_bytes(random: &mut Rng) -> Vec<u8> {
    let lines = (0..random.usize(..5)).map(|_| format!("line {}\n", random.usize(..9)));
    let mut bytes = lines.collect::<String>().into_bytes();
    match random.usize(..12) {
        0 => bytes.extend(b"\r\nx\r\n"),
        1 => bytes.extend(b"\0\x01"),
        2 => bytes.extend(b"$Id$\n"),
        _ => {}
    }
    bytes
}

/// Removes everything at a path, and every file or link above it. Then makes the directory for the
/// path.
fn clear(full: &Path, root: &Path) {
    for above in full.ancestors().take_while(|above| *above != root) {
        match fs::symlink_metadata(above) {
            Ok(meta) if meta.is_dir() && above == full => drop(fs::remove_dir_all(above)),
            Ok(meta) if !meta.is_dir() => drop(fs::remove_file(above)),
            _ => {}
        }
    }
    fs::create_dir_all(full.parent().expect("below the root")).expect("a directory");
}

/// Makes one random change in a directory, as an attempt might.
fn edit(root: &Path, random: &mut Rng) {
    let full = root.join(any_path(random));
    match random.usize(..20) {
        0 => drop(fs::remove_dir_all(root.join(DIRECTORIES[1 + random.usize(..6)]))),
        1 | 2 => drop(fs::remove_file(&full)),
        3 => {
            clear(&full, root);
            symlink(any_path(random), &full).expect("a link");
        }
        4 => {
            let mode = if random.bool() { 0o755 } else { 0o644 };
            if fs::symlink_metadata(&full).is_ok_and(|m| m.is_file()) {
                fs::set_permissions(&full, fs::Permissions::from_mode(mode)).expect("a mode");
            }
        }
        5 => {
            clear(&full, root);
            fs::create_dir(&full).expect("a directory");
            if random.bool() {
                fs::write(full.join("inside"), any_bytes(random)).expect("a file");
            }
        }
        6 => {
            // Changes the content, but neither the size nor the mtime.
            if let Ok(old) = fs::symlink_metadata(&full).and_then(|m| m.modified())
                && let Ok(bytes) = fs::read(&full)
            {
                let bytes: Vec<u8> =
                    bytes.iter().map(|b| if *b == b'l' { b'L' } else { *b }).collect();
                fs::write(&full, bytes).expect("a file");
                let file = fs::File::options().write(true).open(&full).expect("a file");
                file.set_modified(old).expect("a time");
            }
        }
        7 => {
            let rules = root.join(DIRECTORIES[random.usize(..3)]).join(".gitignore");
            clear(&rules, root);
            fs::write(rules, RULES[random.usize(..RULES.len())]).expect("rules");
        }
        8 if random.usize(..3) == 0 => {
            let rules = root.join(".gitattributes");
            fs::write(rules, ATTRIBUTES[random.usize(..4)]).expect("attributes");
        }
        9 if random.usize(..4) == 0 => {
            clear(&full, root);
            fs::create_dir(&full).expect("a directory");
            git(&full, &["init", "-q"]);
        }
        _ => {
            clear(&full, root);
            fs::write(&full, any_bytes(random)).expect("a file");
        }
    }
}

fn place(random: &mut Rng, directory: PathBuf) -> Place {
    let (main, worktree) = (directory.join("main"), directory.join("worktree"));
    fs::create_dir(&main).expect("a directory");
    git(&main, &["init", "-q"]);
    fs::write(main.join("README"), "read\n").expect("a file");
    (0..random.usize(1..25)).for_each(|_| edit(&main, random));
    for nested in DIRECTORIES.iter().flat_map(|d| NAMES.map(|n| main.join(d).join(n).join(".git")))
    {
        let _ = fs::remove_dir_all(nested);
    }
    git(&main, &["add", "-A"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "base"]);
    let base = Oid::parse(&git(&main, &["rev-parse", "HEAD"])).expect("a commit");
    git(&main, &["worktree", "add", "-q", "--detach", worktree.to_str().expect("UTF-8")]);
    Place { directory, worktree, base }
}

/// `FRITES_TEST_ROUNDS` sets the number of worktrees; each is captured three times.
#[test]
fn files_read_in_process_are_those_that_git_reads() {
    let rounds = std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok());
    let rounds: usize = rounds.unwrap_or(12);
    let excludes = Excludes::new(&["node_modules".to_owned()]).expect("patterns");
    let (mut in_process, mut by_git) = (0, 0);
    for _ in 0..rounds {
        let seed = fastrand::u64(..);
        let mut random = Rng::with_seed(seed);
        let room = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
        let directory = tempfile::tempdir_in(room).expect("a directory");
        let place = place(&mut random, directory.path().canonicalize().expect("real"));
        let repo = Repo::discover(&place.directory.join("main")).expect("a repository");
        let indexes = ["ours", "theirs"].map(|name| place.directory.join(name));
        let own = repo.common_dir().join("worktrees/worktree/index");
        indexes.iter().for_each(|copy| copy_index(&own, copy).expect("copied"));
        let branch = RefName::new("refs/heads/none");
        let seeds = PlacedSeeds::default();
        let hidden = HiddenPaths::new(&repo, place.base, &excludes);
        let source = |index| CaptureSource {
            worktree: &place.worktree,
            branch: &branch,
            base: &place.base,
            index,
            previous: None,
            hidden: &hidden,
            seeds: &seeds,
            ran_command: false,
        };
        for capture in 0..3 {
            (0..random.usize(..8)).for_each(|_| edit(&place.worktree, &mut random));
            let (ours, theirs) = (source(&indexes[0]), source(&indexes[1]));
            let [ours, theirs] =
                [&ours, &theirs].map(|of| CaptureInputs::read(&repo, of).expect("readable"));
            let read = read_in_process(&ours).expect("read");
            let expected = read_by_git(&theirs).expect("read by git");
            let Some(read) = read else {
                by_git += 1;
                fs::copy(&indexes[1], &indexes[0]).expect("copied");
                continue;
            };
            in_process += 1;
            let list = |tree: &Oid| git(&place.worktree, &["ls-tree", "-r", tree.as_str()]);
            let what = format!("seed {seed}, capture {capture}");
            assert_eq!(list(&read.tree), list(&expected.tree), "{what}");
            assert_eq!(read.tree, expected.tree, "{what}");
            assert_eq!(read.omissions, expected.omissions, "{what}");
            let index = read.index.expect("an index");
            assert!(index.verify_entries().is_ok(), "{what}");
            let git = repo.git().work_tree(&place.worktree).index(&indexes[0]);
            assert_eq!(git.call("write-tree").oid().expect("a tree"), expected.tree, "{what}");
        }
        let fsck = repo.git().call("fsck").args(["--no-dangling", "--strict"]).output();
        assert_eq!(fsck.expect("git runs").code, 0, "seed {seed}");
    }
    // Usually two of three captures are read in process. git reads every capture of a worktree that
    // has something unusual.
    assert!(3 * in_process > by_git, "{in_process} in process, {by_git} by git");
}
