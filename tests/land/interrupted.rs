//! Landings that are interrupted while git writes the files.
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use crate::common::{World, answer, kill, poll};

/// A judged candidate that changes `src/lib.txt`. Once [`start`] has run, git makes the file
/// `started` in the home directory when it writes that version, and waits for the file `go` there.
fn slow_landing() -> World {
    let world = World::new();
    world.write(".gitattributes", "*.txt filter=slow\n");
    world.commit("attributes");
    let filter = "text=$(cat); echo \"$text\"; test \"$text\" != landed || test ! -e ~/armed || \
                  { touch ~/started; until test -e ~/go; do :; done; }";
    world.git(["config", "filter.slow.smudge", filter]);
    world.judged("true", &["echo landed > src/lib.txt; echo new > new", "seq 9 > other"]);
    world
}

/// Starts a landing in a process group of its own, and waits until git writes.
fn start(world: &World, arguments: &[&str]) -> Child {
    world.write("../armed", "");
    let mut command = world.command(&world.repo, "git-frites", ["apply"].iter().chain(arguments));
    let child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| world.home().join("started").exists());
    child
}

#[test]
fn recovery_waits_for_the_git_process_of_a_killed_landing() {
    let world = slow_landing();
    let mut child = start(&world, &["1", "-m", "x"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = world.frites(["status"]).expect(0).stderr;
    assert!(said.contains("a git process of an interrupted landing still writes to '"), "{said}");
    assert!(world.repo.join(".git/index.lock").exists());
    world.frites(["apply", "1"]).refuses(128, "");
    // Nobody commits what is half written.
    assert_ne!(world.run(&world.repo, "git", ["commit", "-qam", "mine"]).code, 0);
    world.write("../go", "");
    world.run(&world.repo, "flock", [".git", "true"]).expect(0);
    // It waits for the user's edits, and no other landing takes its place.
    world.sh(&world.repo, "echo mine > new; git show HEAD:src/lib.txt > src/lib.txt").expect(0);
    let words = "a landing on 'frites/apply/1' was interrupted here, and is not taken back yet";
    let refused = world.frites(["apply", "1/c2"]).refuses(128, words);
    assert!(refused.stderr.contains("'new' has been edited since"), "{}", refused.stderr);
    world.sh(&world.repo, "rm new").expect(0);
    let said = world.frites(["status"]).expect(0).stderr;
    assert!(said.contains("taken back"), "{said}");
    assert_eq!(world.git(["status", "--porcelain"]), "");
    assert_eq!(world.git(["branch", "--show-current"]), "main");
    world.frites(["apply", "1", "-m", "x"]).expect(0);
    world.assert_clean();
}

#[test]
fn commit_on_the_branch_of_a_killed_landing_is_never_taken_back() {
    let world = World::new();
    world.judged("true", &["echo landed > src/lib.txt"]);
    world.hook("pre-commit", "touch ~/started; until test -e ~/go; do :; done; exit 1");
    let mut child = start(&world, &["1", "-m", "x"]);
    child.kill().unwrap();
    child.wait().unwrap();
    world.write("../go", "");
    world.run(&world.repo, "flock", [".git", "true"]).expect(0);
    world.sh(&world.repo, "rm .git/hooks/pre-commit").expect(0);
    world.write("README", "mine\n");
    // The lock of the index is that of the commit while its editor is open.
    let editor = "env -u GIT_INDEX_FILE git frites status 2> ~/told; echo mine | tee";
    world.sh(&world.repo, &format!("GIT_EDITOR='{editor}' git commit -qa")).expect(0);
    let told = std::fs::read_to_string(world.home().join("told")).unwrap();
    assert!(told.contains("could not be recovered: another git process is at work"), "{told}");
    let said = world.frites(["status"]).expect(0).stderr;
    assert!(said.contains("was committed there since"), "{said}");
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/apply/1"]), "mine");
    assert_eq!(world.git(["branch", "--show-current"]), "frites/apply/1");
    assert_eq!(world.frites(["status"]).expect(0).stderr, "", "it is told once");
    world.assert_clean();
}

#[test]
fn signal_after_the_commit_was_made_does_not_hide_that_the_change_has_landed() {
    let world = World::new();
    world.judged("true", &["echo landed > src/lib.txt"]);
    world.hook("post-commit", "touch ~/started; until test -e ~/go; do :; done");
    let child = start(&world, &["1", "-m", "x"]);
    assert!(kill(["-INT", &child.id().to_string()]));
    world.write("../go", "");
    let answer = answer(&child.wait_with_output().unwrap()).expect(0);
    assert!(answer.stderr.contains("landed on the new branch"), "{}", answer.stderr);
    assert_eq!(world.git(["show", "frites/apply/1:src/lib.txt"]), "landed");
    world.assert_clean();
}

#[test]
fn ctrl_c_takes_the_landing_back_at_once() {
    let world = slow_landing();
    for arguments in [&["1", "-m", "x"][..], &["1", "--merge"]] {
        let child = start(&world, arguments);
        assert!(kill(["-INT", &format!("-{}", child.id())]));
        let answer = answer(&child.wait_with_output().unwrap()).expect(130);
        // Of git and its filter, either may end first.
        let told = ["error: interrupted\n", "failed 130"].iter().any(|t| answer.stderr.contains(t));
        assert!(told, "{}", answer.stderr);
        assert_eq!(world.git(["status", "--porcelain"]), "");
        assert_eq!(
            world.git(["branch", "--list", "--format=%(refname:short)", "frites/apply/*"]),
            ""
        );
        assert!(!world.repo.join(".git/index.lock").exists());
        world.sh(&world.home(), "rm started").expect(0);
    }
    world.assert_clean();
}
