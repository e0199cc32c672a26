//! `apply --merge`: one commit with what passed, merged where it belongs; or nothing has changed.
use std::fs;

use crate::common::edits::TWO;
use crate::common::{Answer, TestWorld, World, make_executable, write};

/// The test that the candidates must pass.
const TEST: &str = "! grep -rq BAD src && ! test -e bad";

/// The user's belongings to the byte, their stash and files included, and all branches of landings.
fn state(world: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    let index = fs::read(world.repo.join(".git/index")).unwrap();
    let branches = world.git(["for-each-ref", "refs/heads", "refs/stash"]);
    let heads = ["ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "logs/HEAD"]
        .map(|f| fs::read(world.repo.join(".git").join(f)).ok());
    (world.belongings(), world.files(), branches, index, heads)
}

/// `apply --merge` with this script of a shell in place of git, in which `git` is the real one.
fn merge_with_git(world: &mut World, script: &str) -> Answer {
    let programs = world.home().join("bin");
    let git = "git() { PATH=${PATH#*:} command git \"$@\"; }";
    write(&programs.join("git"), format!("#!/bin/sh\n{git}\n{script}\n"));
    make_executable(&programs.join("git"));
    let path = world.env("PATH");
    world.set_env("REPO", world.repo.clone());
    world.set_env("BASE", world.git(["rev-parse", "HEAD"]));
    world.set_env("PATH", format!("{}:{}", programs.display(), path.display()));
    let answer = world.run(&world.repo, "git-frites", ["apply", "--merge"]);
    world.set_env("PATH", path);
    answer
}

/// `git commit` deletes AUTO_MERGE under the lock of the packed refs.
#[test]
fn commit_that_is_killed_in_a_worktree_of_ours_leaves_no_lock_of_the_packed_refs() {
    let mut world = World::new();
    world.judged("true", &["echo 1 >> README"]);
    let killed = "case $* in *commit\\ --quiet*) cd \"$REPO\"/.git && touch worktrees/frites-judge-tree/AUTO_MERGE.lock &&
        touch packed-refs.lock && kill -9 $$; esac\ngit \"$@\"";
    let _ = merge_with_git(&mut world, killed).expect(1);
    world.assert_clean();
    world.frites(["apply", "--merge"]).expect(0);
}

/// A git that is killed after it has moved the branch fails, although the branch is at the merge.
#[test]
fn merge_whose_git_is_killed_after_it_moved_the_branch_is_finished() {
    let mut world = World::new();
    world.judged("true", &["echo 1 >> README"]);
    let killed = "git \"$@\" || exit\n\
        case $* in *update-ref*) test \"$(git rev-parse main)\" = $BASE || kill -9 $$; esac";
    let answer = merge_with_git(&mut world, killed).expect(128);
    assert!(answer.stderr.contains("git frites status"), "{}", answer.stderr);
    world.frites(["status"]).expect(0);
    assert_eq!(world.git(["status", "--porcelain"]), "");
    assert_eq!(world.tree("HEAD"), world.tree("refs/frites/1/c1"));
    assert_eq!(world.first_candidate("1")["landing"], "merged");
    world.assert_clean();
}

#[test]
fn winner_is_merged_as_one_commit_of_the_user() {
    let world = World::new();
    let base = world.git(["rev-parse", "HEAD"]);
    world.write("notes.txt", "mine\n");
    world.judged(TEST, &[&format!("{TWO}; git commit -qam attempt; echo new > new.txt")]);
    let tree = world.tree("refs/frites/1/c1");
    let answer = world.frites(["apply", "--merge"]).expect(0);
    assert_eq!(answer.out(), "main\n");
    assert!(answer.stderr.contains("git frites apply --undo 1/c1"), "{}", answer.stderr);
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(world.git(["rev-parse", "HEAD^1", "HEAD^2^1"]), format!("{base}\n{base}"));
    assert_eq!(
        world.git(["rev-list", "--count", "HEAD"]),
        "3",
        "iterations and attempts' commits stay out of history"
    );
    assert_eq!((world.tree("HEAD"), world.tree("HEAD^2")), (tree.clone(), tree.clone()));
    assert_eq!(
        world.git(["log", "-1", "--format=%an <%ae>|%cn|%aI"]),
        "Test User <test@example.com>|Test User|2026-01-02T03:04:05Z"
    );
    assert_eq!(
        world.git(["log", "-1", "--format=%B"]),
        format!(
            "Merge 1/c1\n\nc1 is the only usable candidate, and it passed test: 3 lines in 2 files; the base passes, \
             too: this alone shows only that nothing broke.\n\nFrites-Run: 1/c1@1\n\
             Frites-Base: {base}\nFrites-Tree: {tree}\nFrites-Oracle: test: {TEST}\nFrites-World: {}\nFrites-Into: main\n",
            TestWorld::of_this_test().name()
        )
    );
    assert_eq!(world.git(["log", "-1", "--format=%s", "HEAD^2"]), "attempt");
    assert_eq!(world.git(["status", "--porcelain"]), "?? notes.txt", "files and index went along");
    assert_eq!(fs::read_to_string(world.repo.join("new.txt")).unwrap(), "new\n");
    let record = world.first_candidate("1");
    assert_eq!(
        (&record["landing"], &record["landing_commit"]),
        (&"merged".into(), &world.git(["rev-parse", "HEAD"]).into())
    );
    assert!(
        world
            .frites(["status"])
            .expect(0)
            .out()
            .contains(&format!("merged {}", &world.git(["rev-parse", "HEAD"])[..10]))
    );
    assert!(world.git(["reflog", "-1", "--format=%gs"]).starts_with("merge 1/c1: "));
    assert_eq!(world.events().last().unwrap()["event"], "merged");
    world.assert_clean();
}

#[test]
fn merge_uses_the_given_message_and_json_names_its_commits() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let json = world
        .frites(["apply", "--merge", "-m", "Shout", "-m", "Louder.", "--json"])
        .expect(0)
        .json();
    assert_eq!(world.git(["log", "--format=%s", "--first-parent"]), "Shout\nbase");
    assert_eq!(json["commit"], world.git(["rev-parse", "HEAD"]));
    assert_eq!(json["merged"], world.git(["rev-parse", "HEAD^2"]));
    assert_eq!(json["previous"], world.git(["rev-parse", "HEAD^1"]));
    assert_eq!((&json["branch"], &json["verified"]), (&"main".into(), &true.into()));
    world.assert_clean();
}

#[test]
fn merge_onto_a_moved_branch_is_judged_again() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.write("other", "moved\n");
    world.commit("elsewhere");
    let answer = world.frites(["apply", "--merge"]).expect(0);
    assert!(
        answer.stderr.contains("main has moved since the run started: re-running the checks"),
        "{}",
        answer.stderr
    );
    assert_eq!(world.git(["show", "HEAD:other"]), "moved");
    assert_eq!(world.git(["show", "HEAD:src/lib.txt"]), "one\nTWO\nthree");
    assert_eq!(
        world.tree("HEAD^2"),
        world.tree("refs/frites/1/c1"),
        "the second parent is what passed on the base"
    );
    assert_eq!(world.git(["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn merge_warns_if_other_commands_are_named_by_now() {
    let world = World::new();
    world.write(".frites.toml", "[oracle]\ntest = 'test -e src/lib.txt'\n");
    world.commit("a test");
    let warning = |words: &[&str]| {
        world.write("other", format!("{words:?}\n"));
        world.commit("elsewhere");
        let said = world.frites(["apply", "--merge"].iter().chain(words)).expect(0).stderr;
        assert!(said.contains("re-running the checks"), "{said}");
        said.lines().find(|line| line.starts_with("warning")).map(str::to_owned)
    };
    world.attempts(&[TWO]);
    world.frites(["judge"]).expect(0);
    assert_eq!(warning(&["1"]), None);
    world.attempts(&["echo more >> src/lib.txt"]);
    world.frites(["judge"]).expect(0);
    world.write(".frites.toml", "[oracle]\ntest = 'false'\nlint = 'true'\n");
    let said = "warning: main is judged by other commands now (--lint 'true' --test 'false'); the commands of the run \
                judge the merged tree";
    assert_eq!(warning(&["2"]).as_deref(), Some(said));
    // Options name the commands, whatever the configuration names.
    world.attempts(&["echo most >> src/lib.txt"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    assert_eq!(warning(&["3"]), None);
}

#[test]
fn merge_into_a_branch_without_checkout_moves_only_refs() {
    let world = World::new();
    world.git(["branch", "release"]);
    world.judged(TEST, &[TWO]);
    world.write("README", "being edited\n");
    let before = (
        world.git(["rev-parse", "HEAD"]),
        world.files(),
        fs::read(world.repo.join(".git/index")).unwrap(),
    );
    // A branch that gets a checkout while the merge is made does not move under it.
    let late = world.home().join("late");
    world.hook(
        "commit-msg",
        &format!("unset $(git rev-parse --local-env-vars)\ntest -e {0} || git -C {1} worktree add -q {0} release", late.display(), world.repo.display()),
    );
    let into = ["apply", "--merge", "--into", "release"];
    world.frites(into).refuses(128, "the branch 'release' is checked out in");
    world.git(["worktree", "remove", late.to_str().unwrap()]);
    fs::remove_file(world.repo.join(".git/hooks/commit-msg")).unwrap();
    assert_eq!(world.frites(into).expect(0).out(), "release\n");
    assert_eq!(
        (
            world.git(["rev-parse", "HEAD"]),
            world.files(),
            fs::read(world.repo.join(".git/index")).unwrap()
        ),
        before
    );
    assert_eq!(world.tree("release"), world.tree("refs/frites/1/c1"));
    assert_eq!(world.git(["rev-list", "--count", "release"]), "3");
    assert_eq!(world.first_candidate("1")["landing_branch"], "refs/heads/release");
    world.assert_clean();
}

/// Everything that `--merge` and `--undo` refuse, or fail at: the user's things are as they were,
/// to the byte.
#[test]
fn merge_that_is_refused_or_fails_changes_nothing() {
    // The user's command since judging, the arguments, the exit code and the message.
    let moved = "printf 'one\\nzwei\\nthree\\n' > src/lib.txt; git commit -qam moved";
    let cases: &[(&str, &[&str], i32, &str)] = &[
        (
            moved,
            &["--merge"],
            1,
            "1/c1 conflicts with main in src/lib.txt (content); nothing was changed",
        ),
        (
            "git rm -q src/lib.txt; git commit -qm gone",
            &["--merge"],
            1,
            "src/lib.txt (modify/delete)",
        ),
        (
            "echo x > bad; git add bad; git commit -qm bad",
            &["--merge"],
            1,
            "merged with main it failed test (exit 1)",
        ),
        (
            "echo edited > README",
            &["--merge"],
            128,
            "your checkout has uncommitted changes: README",
        ),
        (
            "echo edited > README; git add README",
            &["--merge"],
            128,
            "your checkout has uncommitted changes: README",
        ),
        (
            "echo mine > new.txt",
            &["--merge"],
            1,
            "landing would overwrite files that git does not track: new.txt",
        ),
        (
            "git update-index --skip-worktree src/lib.txt; echo mine > src/lib.txt",
            &["--merge"],
            128,
            "changes to 'src/lib.txt' would be overwritten",
        ),
        (
            "git update-index --assume-unchanged src/lib.txt; echo mine > src/lib.txt",
            &["--merge"],
            128,
            "changes to 'src/lib.txt' would be overwritten",
        ),
        (
            "git config filter.f.clean cat
             git config filter.f.smudge false
             git config filter.f.required true
             echo 'new.txt filter=f' > .git/info/attributes",
            &["--merge"],
            128,
            "git read-tree failed: external filter 'false' failed",
        ),
        ("git switch -q --detach", &["--merge"], 128, "HEAD is detached"),
        (
            "printf 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
            &["--merge"],
            1,
            "git did not make the commit",
        ),
        (
            "printf '#!/bin/sh\\nexit 1' > .git/hooks/pre-merge-commit; chmod +x .git/hooks/pre-merge-commit",
            &["--merge"],
            1,
            "git did not make the commit",
        ),
        (
            "printf '#!/bin/sh\\necho x > x; git add x' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
            &["--merge"],
            1,
            "a hook changed the files to be committed",
        ),
        ("touch .git/index.lock", &["--merge"], 128, "another git process is at work here"),
        ("touch .git/refs/heads/main.lock", &["--merge"], 128, "git update-ref failed"),
        (
            "git switch -q -c x; git checkout -q -b y; git commit -q --allow-empty -m y
             git merge -q --no-commit --no-ff -s ours x main 2>/dev/null || true
             echo $(git rev-parse main) > .git/MERGE_HEAD",
            &["--merge"],
            128,
            "a merge is in progress",
        ),
        ("true", &["--merge", "1/c2"], 1, "1/c2 failed test (exit 1)"),
        (
            "true",
            &["--merge", "--into", "nowhere"],
            128,
            "--into: 'nowhere' is neither a candidate nor a branch",
        ),
        (
            "true",
            &["--merge", "--into", "frites/run/1/c1"],
            128,
            "the branch 'frites/run/1/c1' is checked out in",
        ),
        (
            // A rebase that stopped: HEAD is detached, and the branch is still taken.
            "git worktree add -q -b topic ../linked; cd ../linked
             git commit -q --allow-empty -m x
             GIT_SEQUENCE_EDITOR='echo break >' git rebase -q -i HEAD~1
             ! git symbolic-ref -q HEAD",
            &["--merge", "--into", "topic"],
            128,
            "the branch 'topic' is checked out in",
        ),
        (
            // A bisection returns to the branch.
            "git worktree add -q -b bisected ../bisecting; cd ../bisecting
             for m in x y z; do git commit -q --allow-empty -m $m; done
             git bisect start HEAD HEAD~3 >/dev/null
             ! git symbolic-ref -q HEAD",
            &["--merge", "--into", "bisected"],
            128,
            "the branch 'bisected' is checked out in",
        ),
        (
            // A rebase moves a branch on its way.
            "git worktree add -q -b upper ../stacked; cd ../stacked
             git commit -q --allow-empty -m x; git branch lower
             git commit -q --allow-empty -m y
             GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --update-refs HEAD~2
             ! git symbolic-ref -q HEAD",
            &["--merge", "--into", "lower"],
            128,
            "the branch 'lower' is checked out in",
        ),
        ("true", &["--undo"], 1, "run 1 has not landed"),
        ("true", &["--into", "main"], 2, "--merge"),
        ("true", &["--merge", "--strategy", "ours"], 2, "invalid value 'ours'"),
        ("true", &["--merge", "--branch", "x"], 2, "cannot be used with"),
        (moved, &["-m", "x"], 1, "1/c1 conflicts with HEAD"),
        (moved, &["--no-switch"], 1, "1/c1 conflicts with HEAD"),
        (
            "echo mine > new.txt",
            &["--conflicts"],
            1,
            "landing would overwrite files that git does not track: new.txt",
        ),
    ];
    let mut world = World::new();
    world.write("README", "stashed\n");
    world.git(["stash", "-q"]);
    world.judged(
        TEST,
        &[&format!("{TWO}; echo more >> README; echo new > new.txt"), "echo BAD >> src/lib.txt"],
    );
    world.keep();
    for (script, words, code, message) in cases {
        world.again();
        world.sh(&world.repo, script).expect(0);
        let before = state(&world);
        world.frites(["apply"].iter().chain(*words)).refuses(*code, message);
        assert_eq!(state(&world), before, "{script} {words:?}");
        assert_eq!(world.first_candidate("1")["landing"], "pending", "{script}");
        for lock in ["index.lock", "refs/heads/main.lock"] {
            let _ = fs::remove_file(world.repo.join(".git").join(lock));
        }
        world.assert_clean();
    }
}

/// As git does: a file that was only touched is not a file that was changed.
#[test]
fn files_with_only_a_new_mtime_do_not_block_a_merge() {
    for options in [&["--merge"][..], &[]] {
        let world = World::new();
        world.judged(TEST, &[TWO]);
        world.sh(&world.repo, "touch -d '2030-01-01 00:00' src/lib.txt").expect(0);
        world.frites(["apply"].iter().chain(options)).expect(0);
        assert_eq!(
            fs::read_to_string(world.repo.join("src/lib.txt")).unwrap(),
            "one\nTWO\nthree\n"
        );
        world.assert_clean();
    }
}

#[test]
fn merge_with_a_failing_signature_changes_nothing() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.git(["config", "commit.gpgsign", "true"]);
    world.git(["config", "gpg.program", "false"]);
    let before = state(&world);
    // gpg's own words come first.
    let answer = world.frites(["apply", "--merge"]).expect(1);
    assert!(
        answer.stderr.contains("error: git did not make the commit; nothing was changed\n"),
        "{}",
        answer.stderr
    );
    assert_eq!(state(&world), before);
    world.assert_clean();
}

#[test]
fn no_verify_skips_hooks_and_no_rejudge_skips_judging() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.hook("pre-commit", "exit 1");
    world.hook("pre-merge-commit", "exit 1");
    world.write("bad", "x\n");
    world.git(["add", "-A"]);
    world.git(["commit", "-qnm", "bad"]);
    world.frites(["apply", "--merge", "--no-rejudge"]).refuses(1, "git did not make the commit");
    let answer = world.frites(["apply", "--merge", "--no-verify", "--no-rejudge"]).expect(0);
    assert!(
        answer.stderr.contains(
            "warning: main has moved since the run started, and the merged tree was not judged"
        ),
        "{}",
        answer.stderr
    );
    assert_eq!(
        world.git(["log", "-1", "--format=%(trailers:key=Frites-Oracle,valueonly)"]).trim(),
        "unverified"
    );
    world.assert_clean();
}

#[test]
fn hooks_and_signatures_of_a_merge_are_those_of_git() {
    let world = World::new();
    for name in ["pre-commit", "pre-merge-commit", "commit-msg", "prepare-commit-msg", "post-merge"]
    {
        world.hook(name, &format!("echo {name} >> \"$HOME/hooked\"; test -e README"));
    }
    world.hook("commit-msg", "echo 'Signed-off-by: H <h@example.com>' >> \"$1\"");
    world.judged(TEST, &[TWO]);
    world.frites(["apply", "--merge"]).expect(0);
    let ran = fs::read_to_string(world.home().join("hooked")).unwrap();
    let ran: Vec<&str> = ran.lines().filter(|l| *l != "prepare-commit-msg").collect();
    assert_eq!(ran, ["pre-commit", "pre-merge-commit", "pre-commit", "post-merge"]);
    assert!(
        world.git(["log", "-1", "--format=%B"]).ends_with("Signed-off-by: H <h@example.com>\n")
    );
    assert_eq!(world.git(["rev-list", "--parents", "-1", "HEAD"]).split(' ').count(), 3);
    world.assert_clean();
}

#[test]
fn concurrent_merges_land_one_after_another() {
    let world = World::new();
    for i in 1..=4 {
        world.judged(TEST, &[&format!("echo {i} > file{i}")]);
    }
    let answers: Vec<_> = std::thread::scope(|scope| {
        let world = &world;
        let racers: Vec<_> = (1..=4)
            .map(|i| scope.spawn(move || world.frites(["apply", "--merge", &i.to_string()])))
            .collect();
        racers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    for answer in answers {
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    assert_eq!(
        world.git(["rev-list", "--count", "--first-parent", "HEAD"]),
        "5",
        "each saw the tip of the one before"
    );
    assert_eq!(
        world.git(["ls-tree", "--name-only", "HEAD"]),
        "README\nfile1\nfile2\nfile3\nfile4\nsrc"
    );
    assert_eq!(world.git(["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn second_of_two_conflicting_merges_is_refused() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.judged(TEST, &["printf 'one\\nzwei\\nthree\\n' > src/lib.txt"]);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let world = &world;
        let racers: Vec<_> = ["1", "2"]
            .map(|run| scope.spawn(move || world.frites(["apply", "--merge", run])))
            .into();
        racers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    let lost: Vec<_> = answers.into_iter().filter(|a| a.code != 0).collect();
    assert_eq!(lost.len(), 1);
    for answer in lost {
        answer.refuses(1, "conflicts with main in src/lib.txt (content); nothing was changed");
    }
    assert_eq!(world.git(["rev-list", "--count", "HEAD"]), "3");
    assert_eq!(world.git(["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn conflicts_are_left_on_the_fresh_branch_as_git_would() {
    let world = World::new();
    world.write("gone", "x\n");
    world.commit("more");
    world.judged(TEST, &[&format!("{TWO}; echo theirs > both; echo y > gone; echo clean > clean")]);
    world.sh(&world.repo, "printf 'one\\nzwei\\nthree\\n' > src/lib.txt; echo ours > both; git rm -q gone; git add -A; git commit -qm moved").expect(0);
    let head = world.git(["rev-parse", "HEAD"]);
    let answer = world.frites(["apply", "--conflicts"]).refuses(
        1,
        "1/c1 conflicts with HEAD in both (add/add), gone (modify/delete), src/lib.txt (content)",
    );
    assert_eq!(answer.out(), "frites/apply/1\n");
    let ours = (world.git(["ls-files", "--stage"]), world.git(["status", "--porcelain"]));
    assert_eq!(ours.1, "AA both\nA  clean\nDU gone\nUU src/lib.txt");
    assert_eq!(
        fs::read_to_string(world.repo.join("src/lib.txt")).unwrap(),
        "one\n<<<<<<< HEAD\nzwei\n=======\nTWO\n>>>>>>> frites/1/c1\nthree\n"
    );
    assert_eq!(world.first_candidate("1")["landing"], "pending");
    // The worktree is as `git merge` itself leaves it.
    let other = world.home().join("other");
    world.git(["worktree", "add", "-q", "--detach", other.to_str().unwrap(), "main"]);
    let merge =
        world.run(&other, "git", ["merge", "-q", "--no-commit", "--no-ff", "refs/frites/1/c1"]);
    assert_eq!(merge.code, 1, "{}", merge.stderr);
    assert_eq!(
        (
            world.git_in(&other, ["ls-files", "--stage"]),
            world.git_in(&other, ["status", "--porcelain"])
        ),
        ours
    );
    // A person resolves and commits: one parent, the message is there.
    let resolve = "echo ours > both; git rm -q gone 2>/dev/null
        printf 'one\\nZWEI\\nthree\\n' > src/lib.txt
        git add -A; git commit -q --no-edit";
    world.sh(&world.repo, resolve).expect(0);
    assert_eq!(
        world.git(["rev-list", "--parents", "-1", "HEAD"]).split(' ').nth(1),
        Some(head.as_str())
    );
    assert_eq!(world.git(["rev-list", "--parents", "-1", "HEAD"]).split(' ').count(), 2);
    assert_eq!(
        world.git(["log", "-1", "--format=%s|%(trailers:key=Frites-Run,valueonly)"]).trim(),
        "Land 1/c1|1/c1@1"
    );
    assert_eq!(
        world.git(["log", "-1", "--format=%(trailers:key=Frites-Tree)"]),
        "",
        "nobody knew what it would be"
    );
    world.git(["worktree", "remove", "--force", other.to_str().unwrap()]);
    world.assert_clean();
}

/// A judged candidate that conflicts with `main`, which has moved.
fn in_conflict() -> World {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let moved = "printf 'one\\nzwei\\nthree\\n' > src/lib.txt; echo m > main.txt; git add -A; git commit -qm moved";
    world.sh(&world.repo, moved).expect(0);
    world.frites(["apply", "--merge"]).refuses(1, "1/c1 conflicts with main in src/lib.txt");
    world
}

/// Merges `main` in the candidate's worktree, resolves the conflict, and judges again.
fn resolve_in_the_attempt(world: &World) {
    let resolve = "git commit -qam attempt; git merge -q main && exit 1
        printf 'one\\nTWO und zwei\\nthree\\n' > src/lib.txt; git commit -qam resolved";
    world.sh(&world.worktree("1/c1"), resolve).expect(0);
    world.frites(["judge", "-q", "--test", TEST]).expect(0);
}

#[test]
fn conflict_that_the_attempt_resolved_by_merging_the_target_lands() {
    for more in [false, true] {
        let world = in_conflict();
        let moved = world.git(["rev-parse", "main"]);
        resolve_in_the_attempt(&world);
        if more {
            world.write("later.txt", "l\n");
            world.commit("later");
        }
        let said = world.frites(["apply", "--merge"]).expect(0).stderr;
        assert!(
            said.contains("itself; read how it resolved the conflicts in src/lib.txt"),
            "{said}"
        );
        assert_eq!(world.git(["show", "HEAD:src/lib.txt"]), "one\nTWO und zwei\nthree");
        assert_eq!(world.git(["show", "HEAD:main.txt"]), "m");
        assert_eq!(more, world.repo.join("later.txt").exists());
        // The landed commit holds the attempt's own change alone.
        assert_eq!(world.git(["rev-parse", "HEAD^2^"]), moved);
        assert_eq!(world.git(["diff", "--name-only", "HEAD^2^", "HEAD^2"]), "src/lib.txt");
        assert_eq!(world.first_candidate("1")["landing"], "merged");
        world.frites(["apply", "--undo", "1/c1"]).expect(0);
        assert_eq!(world.git(["show", "HEAD:src/lib.txt"]), "one\nzwei\nthree");
        assert_eq!(world.git(["show", "HEAD:main.txt"]), "m");
        world.assert_clean();
    }
    let world = in_conflict();
    resolve_in_the_attempt(&world);
    world.frites(["apply", "-m", "x"]).expect(0);
    assert_eq!(world.git(["show", "HEAD:src/lib.txt"]), "one\nTWO und zwei\nthree");
    assert_eq!(world.git(["diff", "--name-only", "main", "HEAD"]), "src/lib.txt");
    world.assert_clean();
}

#[test]
fn merge_that_leaves_out_the_changes_of_the_target_takes_none_of_them_back() {
    for landing in [&["--merge"][..], &["-m", "land"]] {
        let world = World::new();
        world.judged(TEST, &[TWO]);
        world.write("fixed.txt", "fixed\n");
        world.commit("a fix of the user's");
        let merge = "git commit -qam attempt; git merge -q -s ours -m merged main";
        world.sh(&world.worktree("1/c1"), merge).expect(0);
        world.frites(["judge", "-q", "--test", TEST]).expect(0);
        world.frites([&["apply"], landing].concat()).expect(0);
        assert_eq!(world.git(["show", "HEAD:fixed.txt"]), "fixed");
        assert_eq!(world.git(["show", "HEAD:src/lib.txt"]), "one\nTWO\nthree");
        world.assert_clean();
    }
    // Conflicts are resolved by the attempt, and the rest is not.
    let world = in_conflict();
    let resolve = "git commit -qam attempt; git merge -q main && exit 1
        printf 'one\nTWO und zwei\nthree\n' > src/lib.txt; git rm -qf main.txt; git commit -qam resolved";
    world.sh(&world.worktree("1/c1"), resolve).expect(0);
    world.frites(["judge", "-q", "--test", TEST]).expect(0);
    world.frites(["apply", "--merge"]).refuses(1, "1/c1 conflicts with main in src/lib.txt");
}

#[test]
fn merge_that_the_attempt_took_back_does_not_count() {
    let world = in_conflict();
    resolve_in_the_attempt(&world);
    let inside = world.worktree("1/c1");
    world.sh(&inside, "git reset -q --hard HEAD^; echo more > more.txt").expect(0);
    world.frites(["judge", "-q", "--test", TEST]).expect(0);
    world.frites(["apply", "--merge"]).refuses(1, "1/c1 conflicts with main in src/lib.txt");
    assert_eq!(world.git(["show", "HEAD:main.txt"]), "m");
    world.assert_clean();
}

#[test]
fn two_commits_of_a_merge_have_different_subjects() {
    let world = World::new();
    world.judged(TEST, &["echo new > new.txt"]);
    world.frites(["apply", "--merge", "-m", "feat: add a file\nas asked", "-m", "body"]).expect(0);
    assert_eq!(world.git(["log", "-1", "--format=%B"]).lines().next(), Some("feat: add a file"));
    let merged = world.git(["log", "-1", "--format=%B", "HEAD^2"]);
    assert!(merged.starts_with("feat: add a file (1/c1)\nas asked\n\nbody\n"), "{merged}");
}
