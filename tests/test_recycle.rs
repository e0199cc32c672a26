//! Recycled worktrees: a run takes the files of removed worktrees, and nobody can tell.
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::common::{World, write};

/// A repository in which `clean` parks worktrees.
fn pooled() -> World {
    let world = World::new();
    for at in 0..40 {
        write(&world.repo.join(format!("d{}/f{at}", at % 4)), format!("{at}\n"));
    }
    write(&world.repo.join(".gitignore"), "*.log\n");
    symlink("d0/f0", world.repo.join("link")).unwrap();
    write(&world.repo.join("run.sh"), "exit\n");
    fs::set_permissions(world.repo.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    world.commit("files");
    world.git(["config", "frites.pool.size", "2"]);
    world
}

fn parked(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.repo.join(".frites/worktrees")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.file_name().unwrap().as_encoded_bytes().starts_with(b".parked"))
        .collect()
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

/// Asserts that a new worktree equals one that git makes: files, modes, directories, index.
#[track_caller]
fn assert_as_new(world: &World, worktree: &Path) {
    let by_git = world.home().join("by-git");
    world.git(["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "HEAD"]);
    assert_eq!(World::files_of(worktree), World::files_of(&by_git));
    let stages = |worktree: &Path| world.git_in(worktree, ["ls-files", "-z", "--stage", "-v"]);
    assert_eq!(stages(worktree), stages(&by_git));
    assert_eq!(world.git_in(worktree, ["status", "--porcelain", "--ignored"]), "");
    // Every file is read again.
    fs::remove_file(PathBuf::from(world.git_in(worktree, ["rev-parse", "--git-path", "index"])))
        .unwrap();
    world.git_in(worktree, ["reset", "-q"]);
    assert_eq!(world.git_in(worktree, ["status", "--porcelain", "--ignored"]), "");
    let list = |dir: &Path| world.sh(dir, "find . -type d | sort").expect(0).out();
    assert_eq!(list(worktree), list(&by_git));
    world.git(["worktree", "remove", "--force", by_git.to_str().unwrap()]);
}

/// Writes other bytes of the same number, and puts the time back.
fn edit_unseen(file: &Path) {
    let time = fs::metadata(file).unwrap().modified().unwrap();
    let bytes = fs::read(file).unwrap();
    fs::write(file, bytes.iter().map(|b| if *b == b'\n' { *b } else { b'x' }).collect::<Vec<_>>())
        .unwrap();
    fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

/// Does to a worktree what an attempt might.
fn spoil(world: &World, worktree: &Path) {
    edit_unseen(&worktree.join("d0/f4"));
    fs::hard_link(worktree.join("d0/f8"), world.home().join("hard-link")).unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(worktree.join("d0/f12"), mode).unwrap();
    fs::remove_file(worktree.join("link")).unwrap();
    symlink("d0/f4", worktree.join("link")).unwrap();
    fs::remove_dir_all(worktree.join("d1")).unwrap();
    write(&worktree.join("d1"), "a file in place of a directory\n");
    fs::remove_file(worktree.join("d2/f2")).unwrap();
    write(&worktree.join("d2/f2/inside"), "a directory in place of a file\n");
    write(&worktree.join("d2/new.log"), "ignored\n");
    write(&worktree.join("new/file"), "untracked\n");
    fs::create_dir(worktree.join("empty")).unwrap();
    world.git_in(worktree, ["init", "-q", "nested"]);
    write(&worktree.join("nested/file"), "nested\n");
    fs::rename(worktree.join("d3/f3"), worktree.join("d3/moved")).unwrap();
    fs::copy(worktree.join("d3/moved"), worktree.join("d3/f3")).unwrap();
}

#[test]
fn recycled_worktree_is_as_a_new_one_whatever_an_attempt_did_to_it() {
    let world = pooled();
    let first = world.worktree(&format!("{}/c1", world.spawn(["-n", "1"])));
    let untouched = inode(&first.join("d3/f7"));
    world.git_in(&first, ["update-index", "--skip-worktree", "d3/f11"]);
    write(&first.join("d3/f11"), "hidden\n");
    spoil(&world, &first);
    world.frites(["clean", "-q", "--discard"]).expect(0);
    assert_eq!(parked(&world).len(), 1);
    let second = world.worktree(&format!("{}/c1", world.spawn(["-n", "1"])));
    assert!(parked(&world).is_empty());
    assert_eq!(inode(&second.join("d3/f7")), untouched, "it is recycled");
    assert_as_new(&world, &second);
}

#[test]
fn recycled_worktree_is_as_a_new_one_whatever_was_done_to_it_while_it_was_parked() {
    let world = pooled();
    let first = world.worktree(&format!("{}/c1", world.spawn(["-n", "1"])));
    write(&first.join("d3/f15"), "work that is captured\n");
    let untouched = inode(&first.join("d3/f7"));
    world.frites(["clean", "-q"]).expect(0);
    spoil(&world, &parked(&world)[0].join("worktree"));
    let second = world.worktree(&format!("{}/c1", world.spawn(["-n", "1"])));
    assert_eq!(inode(&second.join("d3/f7")), untouched, "it is recycled");
    assert_as_new(&world, &second);
    assert_eq!(fs::read(world.home().join("hard-link")).unwrap(), b"8\n", "nobody wrote to it");
}

#[test]
fn recycled_worktree_gets_what_another_base_has() {
    let world = pooled();
    let run = world.spawn(["-n", "2"]);
    let untouched =
        ["c1", "c2"].map(|c| inode(&world.worktree(&format!("{run}/{c}")).join("d3/f7")));
    world.frites(["clean", "-q", "--discard"]).expect(0);
    assert_eq!(parked(&world).len(), 2);
    write(&world.repo.join("d0/f0"), "changed\n");
    write(&world.repo.join("d9/new"), "new\n");
    fs::remove_dir_all(world.repo.join("d1")).unwrap();
    world.commit("another base");
    // One more than there are parked worktrees.
    let run = world.spawn(["-n", "3"]);
    let all = ["c1", "c2", "c3"].map(|c| world.worktree(&format!("{run}/{c}")));
    let recycled = all.iter().filter(|w| untouched.contains(&inode(&w.join("d3/f7")))).count();
    assert_eq!(recycled, 2);
    all.iter().for_each(|worktree| assert_as_new(&world, worktree));
}

#[test]
fn only_as_many_worktrees_are_parked_as_wanted_and_an_emptied_cache_has_none() {
    let world = pooled();
    world.spawn(["-n", "3"]);
    world.frites(["clean", "-q", "--discard"]).expect(0);
    assert_eq!(parked(&world).len(), 2);
    world.frites(["clean", "-q", "--cache"]).expect(0);
    assert!(parked(&world).is_empty());
    world.git(["config", "frites.pool.size", "0"]);
    world.spawn(["-n", "1"]);
    world.frites(["clean", "-q", "--discard"]).expect(0);
    assert!(parked(&world).is_empty());
}

#[test]
fn damaged_parked_worktree_is_thrown_away() {
    let world = pooled();
    for damage in
        ["rm index", "rm filled", "echo x > index", "rm -r worktree", "rm index; mkfifo index"]
    {
        world.spawn(["-n", "1"]);
        world.frites(["clean", "-q", "--discard"]).expect(0);
        world.sh(&parked(&world)[0], damage).expect(0);
        let run = world.spawn(["-n", "1"]);
        assert!(parked(&world).is_empty());
        assert_as_new(&world, &world.worktree(&format!("{run}/c1")));
        world.git(["config", "frites.pool.size", "0"]);
        world.frites(["clean", "-q", "--discard"]).expect(0);
        world.git(["config", "frites.pool.size", "2"]);
    }
}
