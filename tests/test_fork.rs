//! Candidates whose worktrees are repositories of their own (`--isolate fork`): every command gives the
//! same results as with linked worktrees.
use std::fs;
use std::path::Path;

use crate::common::World;

/// Spawns `a`, a fork, with this command.
fn spawn(world: &World, script: &str) {
    world.frites(["spawn", "--isolate", "fork", "-c", "a", "--", "sh", "-euc", script]).expect(0);
}

#[test]
fn fork_is_captured_byte_for_byte_with_all_that_it_committed() {
    let world = World::new();
    world.hook("post-checkout", "exit 0");
    let before = fs::read(world.repo.join(".git/config")).unwrap();
    spawn(
        &world,
        r#"
        test -d .git; test "$(git rev-parse --git-common-dir)" = .git
        printf 'a\0b\377' > binary; ln -s README link; git add -A; git commit -qm first; git commit -q --amend -m second
        git config a.b c; git checkout -q -b side; echo side > side; git add side; git commit -qm side; git rev-parse HEAD > ~/side
        git checkout -q -; echo stashed > README; git stash -q; git rev-parse stash > ~/stash
        echo staged > staged; git add staged; git rev-parse :staged > ~/staged; echo later > staged
        "#,
    );
    let worktree = world.worktree("1/a");
    let saved = |name: &str| fs::read_to_string(world.home().join(name)).unwrap().trim().to_owned();
    assert_eq!(fs::read(world.repo.join(".git/config")).unwrap(), before);
    assert_eq!(world.git(["log", "--format=%s", "frites/run/1/a"]), "second\nbase");
    let binary = world.run(&world.repo, "git", ["show", "refs/frites/1/a:binary"]).expect(0);
    assert_eq!(binary.stdout, b"a\0b\xff");
    assert_eq!(world.git(["show", "refs/frites/1/a:staged"]), "later");
    assert!(world.git(["ls-tree", "refs/frites/1/a", "link"]).starts_with("120000"));
    assert!(world.git(["worktree", "list"]).contains(worktree.to_str().unwrap()));
    world.frites(["clean", "1"]).expect(0);
    assert!(!worktree.exists() && !world.repo.join(".frites/runs/1/a/own").exists());
    for commit in ["side", "stash"].map(saved) {
        world.git(["merge-base", "--is-ancestor", &commit, "refs/frites/1/a"]);
    }
    world.git(["reflog", "expire", "--expire=now", "--all"]);
    world.git(["gc", "-q", "--prune=now"]);
    assert_eq!(world.git(["cat-file", "blob", &saved("staged")]), "staged");
    world.assert_clean();
}

#[test]
fn forks_and_linked_worktrees_give_the_same_verdict_and_landing() {
    let mut landed = Vec::new();
    for kind in ["fork", "worktree"] {
        let world = World::new();
        world.git(["config", "frites.spawn.isolate", kind]);
        let script = "echo $FRITES_INDEX > n; test $FRITES_INDEX = 1 || echo more >> README; git add -A; git commit -qm mine; echo x >> src/lib.txt";
        world.frites(["spawn", "-n", "2", "--", "sh", "-euc", script]).expect(0);
        assert_eq!(world.worktree("1/c1").join(".git").is_dir(), kind == "fork");
        assert_eq!(world.frites(["status", "1/c1"]).expect(0).stderr, "");
        let diff = world.frites(["diff", "1/c2"]).expect(0).out();
        let path = world.frites(["path", "1/c1"]).expect(0).out();
        assert_eq!(Path::new(path.trim()), world.worktree("1/c1"));
        world.frites(["judge", "--test", "grep -q x src/lib.txt", "1"]).expect(0);
        world.frites(["apply", "-m", "land it", "1"]).expect(0);
        landed.push((diff, world.git(["rev-parse", "HEAD^{tree}"])));
        world.frites(["clean", "1"]).expect(0);
        world.assert_clean();
    }
    assert_eq!(landed[0], landed[1]);
}

#[test]
fn later_rounds_and_a_resumed_run_work_in_forks() {
    let world = World::new();
    spawn(&world, "echo one >> README; git commit -qam one; git branch own");
    let second = "git log -1 --format=%s own; echo two >> README; git commit -qam two; git gc -q --prune=now";
    world.frites(["spawn", "--again", "1/a", "--", "sh", "-euc", second]).expect(0);
    assert_eq!(world.git(["log", "--format=%s", "frites/run/1/a"]), "two\none\nbase");
    world
        .frites(["spawn", "--add", "--run", "1", "-c", "b", "--", "sh", "-c", "echo b > b"])
        .expect(0);
    assert!(world.worktree("1/b/.git").is_dir(), "one that is added later is a fork, too");
    let attempt = "echo 1 >> README; git commit -qam killed; git rev-parse HEAD > ~/killed; test -e ~/go-on || { echo > ~/started; exec sleep 1000; }";
    let script = format!(
        "git-frites run --isolate fork -q --test true -c a -- sh -c '{attempt}' & child=$!
         until test -e ~/started; do :; done; kill -TERM $child; wait $child || :
         echo > ~/go-on; cat ~/killed > ~/first; git-frites run -q --resume 2"
    );
    world.sh(&world.repo, &script).expect(0);
    let first = fs::read_to_string(world.home().join("first")).unwrap();
    world.git(["merge-base", "--is-ancestor", first.trim(), "refs/frites/2/a"]);
    assert!(world.worktree("2/a/.git").is_dir());
    assert_eq!(world.git(["log", "--format=%s", "frites/run/2/a"]), "killed\nbase");
    world.assert_clean();
}

#[test]
fn gc_in_either_repository_loses_nothing_that_the_other_needs() {
    let world = World::new();
    world.write("later", "1\n");
    world.commit("later");
    spawn(&world, "echo 1 >> README; git commit -qam mine; echo staged > s; git add s");
    let worktree = world.worktree("1/a");
    world.git(["reset", "-q", "--hard", "HEAD~"]);
    world.git(["reflog", "expire", "--expire=now", "--all"]);
    world.git(["gc", "-q", "--prune=now"]);
    world.git_in(&worktree, ["fsck", "--strict"]);
    assert_eq!(world.git_in(&worktree, ["log", "--format=%s"]), "mine\nlater\nbase");
    world.git_in(&worktree, ["reflog", "expire", "--expire=now", "--all"]);
    world.git_in(&worktree, ["gc", "-q", "--prune=now"]);
    world.git_in(&worktree, ["commit", "-qm", "after"]);
    world.frites(["capture", "1/a"]).expect(0);
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/run/1/a"]), "after");
    assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn commands_in_a_fork_and_landings_into_it_reach_the_run() {
    let world = World::new();
    spawn(&world, "echo 1 > one; git add -A; git commit -qm one");
    let worktree = world.worktree("1/a");
    fs::write(worktree.join("two"), "2\n").unwrap();
    let answer = world.frites_in(&worktree, ["capture"]).expect(0);
    assert!(answer.out().contains("1/a@2"), "{}", answer.out());
    world
        .frites(["spawn", "--from", "1/a", "-c", "b", "--", "sh", "-c", "echo 3 > three"])
        .expect(0);
    world.frites(["judge", "--test", "true", "2"]).expect(0);
    world.frites(["apply", "--merge", "--into", "parent", "2/b"]).expect(0);
    assert_eq!(fs::read_to_string(worktree.join("three")).unwrap(), "3\n");
    assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "");
    let tip = world.git(["rev-parse", "frites/run/1/a"]);
    assert_eq!(world.git_in(&worktree, ["rev-parse", "HEAD"]), tip);
    fs::write(worktree.join("four"), "4\n").unwrap();
    world.git_in(&worktree, ["add", "four"]);
    world.git_in(&worktree, ["commit", "-qm", "four"]);
    world.frites(["capture", "1/a"]).expect(0);
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/run/1/a"]), "four");
    world.assert_clean();
}

#[test]
fn fork_with_fifos_in_its_git_directory_is_captured_and_cleaned() {
    let world = World::new();
    let script = r#"
        echo 1 > one; git add -A; git commit -qm mine
        for file in alternates commit-graph; do rm -f .git/objects/info/$file; mkfifo .git/objects/info/$file; done
        mkfifo .git/refs/heads/x .git/frites-new
    "#;
    let limited = |words: &[&str]| {
        let limit = ["--kill-after=1", "60", "git-frites"];
        world.run(&world.repo, "timeout", limit.iter().chain(words).copied())
    };
    let words = ["spawn", "--isolate", "fork", "-c", "a", "--", "sh", "-euc", script];
    let answer = limited(&words).expect(0);
    let line = "warning: 1/a: not read, because it is no regular file: '";
    let line = answer.stderr.lines().find(|found| found.starts_with(line));
    assert!(line.is_some_and(|line| line.contains(".git/objects/info/commit-graph'")));
    assert_eq!(world.git(["log", "--format=%s", "frites/run/1/a"]), "mine\nbase");
    let alternates = world.worktree("1/a/.git/objects/info/alternates");
    let objects = world.repo.join(".git/objects");
    assert_eq!(fs::read_to_string(alternates).unwrap().trim(), objects.to_str().unwrap());
    // What the repository has now is given to the fork.
    world.git(["update-ref", "refs/heads/frites/run/1/a", "HEAD"]);
    let admin = fs::read_dir(world.repo.join(".git/worktrees")).unwrap().next().unwrap().unwrap();
    world.git(["--git-dir", admin.path().to_str().unwrap(), "read-tree", "HEAD"]);
    limited(&["capture", "1/a"]).expect(0);
    assert_eq!(world.git_in(&world.worktree("1/a"), ["ls-files", "one"]), "");
    limited(&["clean", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn links_in_the_git_directory_of_a_fork_lead_no_write_elsewhere() {
    let world = World::new();
    spawn(&world, "echo 1 > one; git add -A; git commit -qm mine");
    let worktree = world.worktree("1/a");
    let links = "mkdir -p ~/other/heads ~/other/logs; rm -rf .git/refs/heads .git/logs
        ln -s ~/other/heads .git/refs/heads; ln -s ~/other/logs .git/logs";
    world.sh(&worktree, links).expect(0);
    // What the repository has now is given to the fork.
    world.git(["update-ref", "refs/heads/frites/run/1/a", "HEAD"]);
    world.frites(["capture", "1/a"]).expect(0);
    assert_eq!(world.git_in(&worktree, ["log", "--format=%s", "frites/run/1/a"]), "base");
    assert!(worktree.join(".git/logs/HEAD").is_file());
    let elsewhere = world.sh(&world.home(), "find other ! -type d").expect(0);
    assert_eq!(elsewhere.out(), "");
    world.assert_clean();
}
