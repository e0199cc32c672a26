//! Children and their parents: `apply --merge --into RUN/CAND`, and landing a child with what it
//! inherited.
use std::fs;
use std::process::Stdio;

use crate::common::{World, answer, poll, write};

/// A parent `1/c1` with work that is committed, staged, unstaged and untracked, and its child
/// `2/c1`, judged.
fn family(child: &str) -> World {
    let world = World::new();
    world.write("other", "one\n");
    world.commit("other");
    world.spawn(["-n", "1"]);
    let parent = world.worktree("1/c1");
    let work = "echo committed > committed; git add committed; git commit -qm attempt; \
        echo staged > staged; git add staged; echo unstaged >> README; echo untracked > untracked";
    world.sh(&parent, work).expect(0);
    world.spawn(["-n", "1", "--from", "1/c1"]);
    world.sh(&world.worktree("2/c1"), child).expect(0);
    world.frites(["judge", "-q", "--test", "! test -e bad", "2"]).expect(0);
    world
}

/// The parent's files, what it has staged, its index to the byte, and all branches.
fn parent(world: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    let dir = world.worktree("1/c1");
    // First: it refreshes the index.
    let status = world.git_in(&dir, ["status", "--porcelain"]);
    let index = fs::read(world.repo.join(".git/worktrees/c1/index")).unwrap();
    (World::files_of(&dir), status, index, world.git(["for-each-ref", "refs/heads"]))
}

#[test]
fn child_merges_into_its_parent_beside_the_parents_own_work() {
    let world = family("echo two > other; echo more >> staged; echo new > new; rm committed");
    let before = (world.belongings(), world.files());
    let tip = world.git(["rev-parse", "frites/run/1/c1"]);
    let answer = world.frites(["apply", "--merge", "--into", "1/c1", "2"]).expect(0);
    assert_eq!(answer.out(), "frites/run/1/c1\n");
    assert_eq!((world.belongings(), world.files()), before, "the user's checkout is not touched");
    let dir = world.worktree("1/c1");
    assert_eq!(world.git_in(&dir, ["symbolic-ref", "HEAD"]), "refs/heads/frites/run/1/c1");
    assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "");
    assert_eq!(World::files_of(&dir), World::files_of(&world.worktree("2/c1")));
    // The parent's uncommitted work becomes a commit of its own; the merge brings only the child's
    // change.
    assert_eq!(world.git(["rev-parse", "frites/run/1/c1~2"]), tip);
    assert_eq!(
        world.git(["diff", "--name-status", "frites/run/1/c1^", "frites/run/1/c1"]),
        "D\tcommitted\nA\tnew\nM\tother\nM\tstaged"
    );
    assert_eq!(world.tree("frites/run/1/c1^2"), world.tree("refs/frites/2/c1"));
    assert_eq!(world.git(["rev-parse", "frites/run/1/c1^2^"]), world.git(["rev-parse", "main"]));
    assert_eq!(
        world.git(["log", "--format=%an", "-3", "frites/run/1/c1"]),
        "Test User\nTest User\nTest User"
    );
    let diff = world.frites(["diff", "1/c1", "--name-status"]).expect(0).out();
    assert_eq!(diff, "M\tREADME\nA\tnew\nM\tother\nA\tstaged\nA\tuntracked\n");
    assert_eq!(world.first_candidate("2")["landing"], "merged");
    // And it can be taken back.
    assert_eq!(world.frites(["apply", "--undo", "2/c1"]).expect(0).out(), "frites/run/1/c1\n");
    assert_eq!(fs::read_to_string(dir.join("staged")).unwrap(), "staged\n");
    assert_eq!(
        world.frites(["diff", "1/c1", "--name-only"]).expect(0).out(),
        "README\ncommitted\nstaged\nuntracked\n"
    );
    assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn parent_with_newer_work_is_merged_and_judged() {
    let world = family("echo two > other");
    world.sh(&world.worktree("1/c1"), "echo later > later; echo more >> README").expect(0);
    let answer = world.frites(["apply", "--merge", "--into", "1/c1", "2"]).expect(0);
    assert!(
        answer.stderr.contains("1/c1 has moved since the run started: re-running the checks"),
        "{}",
        answer.stderr
    );
    let dir = world.worktree("1/c1");
    assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "hello\nunstaged\nmore\n");
    assert_eq!(fs::read_to_string(dir.join("other")).unwrap(), "two\n");
    assert!(dir.join("later").exists());
    world.assert_clean();
}

#[test]
fn merge_that_would_lose_the_parents_work_is_refused() {
    // Commands run in the parent after the child was spawned.
    let cases = [
        (
            "echo zwei > other",
            1,
            "2/c1 conflicts with 1/c1 in other (content); nothing was changed",
        ),
        ("echo bad > bad", 1, "merged with 1/c1 it failed test (exit 1)"),
        (
            "echo a > README; git add README; echo b > README",
            1,
            "1/c1 has staged a version of 'README' that is in no file and no commit",
        ),
        (
            "echo /new >> \"$(git rev-parse --git-common-dir)/info/exclude\"; echo secret > new",
            1,
            "landing would overwrite files that git does not track: new",
        ),
        ("git switch -q -c elsewhere", 128, "the worktree of 1/c1 is not on its branch"),
        (
            "git merge -q --no-commit --no-ff -s ours HEAD~1 2>/dev/null || true; git rev-parse HEAD > \"$(git rev-parse --git-dir)/MERGE_HEAD\"",
            128,
            "a merge is in progress in the worktree of 1/c1",
        ),
        (
            "touch \"$(git rev-parse --git-dir)/index.lock\"",
            128,
            "another git process is at work here",
        ),
    ];
    let mut world = family("echo two > other; echo new > new");
    world.keep();
    for (script, code, words) in cases {
        world.again();
        world.sh(&world.worktree("1/c1"), script).expect(0);
        let before = (parent(&world), world.belongings(), world.files());
        let answer = world.frites(["apply", "--merge", "--into", "1/c1", "2"]).refuses(code, words);
        assert_eq!(
            words.contains("conflicts"),
            answer.stderr.contains("`git frites spawn --from 1/c1`")
        );
        assert!(!answer.stderr.contains("--conflicts"), "that is for the user's own checkout");
        assert_eq!((parent(&world), world.belongings(), world.files()), before, "{script}");
        let _ = fs::remove_file(world.repo.join(".git/worktrees/c1/index.lock"));
        world.assert_clean();
    }
}

#[test]
fn parent_is_a_word_also_after_the_parent_was_cleaned() {
    let world = family("echo two > other; echo new > new");
    world.git(["branch", "parent"]);
    world.frites(["apply", "--merge", "--into", "parent", "2"]).expect(0);
    assert_eq!(world.git(["rev-parse", "parent"]), world.git(["rev-parse", "main"]));
    assert_eq!(fs::read_to_string(world.worktree("1/c1").join("new")).unwrap(), "new\n");
    world
        .frites(["apply", "--merge", "--into", "parent", "1"])
        .refuses(2, "run 1 was not spawned from");
    world.frites(["apply", "--merge", "--into", "refs/heads/parent", "2"]).expect(0);
    world.frites(["clean", "-q", "1", "--forget"]).expect(0);
    world
        .frites(["apply", "--merge", "--into", "parent", "2"])
        .refuses(128, "1/c1, from which run 2 was spawned, is forgotten");

    // Cleaned: the capture becomes a branch again, and a failed merge makes none.
    let world = family("echo two > other; echo new > new");
    let before = (world.belongings(), world.files());
    world.frites(["clean", "-q", "1"]).expect(0);
    let capture = world.git(["rev-parse", "refs/frites/1/c1"]);
    world.hook("pre-merge-commit", "exit 1");
    world
        .frites(["apply", "--merge", "--into", "parent", "2"])
        .refuses(1, "git did not make the commit");
    assert_eq!(world.git(["branch", "--list", "frites/run/1/*"]), "");
    fs::remove_file(world.repo.join(".git/hooks/pre-merge-commit")).unwrap();
    let answer = world.frites(["apply", "--merge", "--into", "parent", "2"]).expect(0);
    assert_eq!(answer.out(), "frites/run/1/c1\n");
    assert_eq!(world.git(["rev-parse", "frites/run/1/c1^1"]), capture);
    assert_eq!(world.tree("frites/run/1/c1"), world.tree("refs/frites/2/c1"));
    assert_eq!(world.first_candidate("2")["landing_branch"], "refs/heads/frites/run/1/c1");
    assert_eq!(
        (world.files(), world.belongings()),
        (before.1, before.0),
        "the user's checkout is not touched"
    );
    // The parent is a candidate like any other: what was merged is its next iteration, and lands.
    assert_eq!(
        world.frites(["diff", "1/c1", "--name-only"]).expect(0).out(),
        "README\ncommitted\nnew\nother\nstaged\nuntracked\n"
    );
    // Another child merges into the branch that exists now.
    world.spawn(["-n", "1", "--from", "1/c1"]);
    world.sh(&world.worktree("3/c1"), "echo third > third").expect(0);
    world.frites(["judge", "-q", "--test", "true", "3"]).expect(0);
    world.frites(["apply", "--merge", "--into", "parent", "3"]).expect(0);
    assert_eq!(world.git(["show", "frites/run/1/c1:third", "frites/run/1/c1:new"]), "third\nnew");
    world.frites(["apply", "--undo", "3"]).expect(0);
    world.frites(["apply", "--undo", "2"]).expect(0);
    assert_eq!(world.tree("frites/run/1/c1"), world.tree(&capture));
    world.frites(["clean", "-q", "1"]).expect(0);
    assert_eq!(world.git(["branch", "--list", "frites/run/1/*"]), "");
    world.assert_clean();
}

#[test]
fn newest_file_wins_against_a_parent_that_was_cleaned() {
    for (parent, wins) in [("2026-02-01", "zwei"), ("2025-02-01", "two")] {
        let world = family("echo two > other; touch -d 2026-01-15 other");
        world.frites(["diff", "2"]).expect(0);
        let edit = format!("echo zwei > other; touch -d {parent} other");
        world.sh(&world.worktree("1/c1"), &edit).expect(0);
        world.frites(["clean", "-q", "1"]).expect(0);
        let conflict = world.frites(["apply", "--merge", "--into", "parent", "2"]);
        conflict.refuses(1, "2/c1 conflicts with 1/c1 in other (content)");
        world.git(["config", "frites.merge.strategy", "newest-file-wins"]);
        world.frites(["apply", "--merge", "--into", "parent", "2"]).expect(0);
        assert_eq!(world.git(["show", "frites/run/1/c1:other"]), wins);
        world.assert_clean();
    }
}

#[test]
fn newest_file_wins_between_parent_and_child() {
    for (parent, wins) in [("2026-02-01", "zwei\n"), ("2025-02-01", "two\n")] {
        let world = family("echo two > other; touch -d 2026-01-15 other");
        world.frites(["diff", "2"]).expect(0);
        world
            .sh(&world.worktree("1/c1"), &format!("echo zwei > other; touch -d {parent} other"))
            .expect(0);
        // The child's own time is that of its capture while it was judged.
        world.sh(&world.worktree("2/c1"), "touch -d 2026-01-15 other").expect(0);
        let args = ["apply", "--merge", "--into", "1/c1", "--strategy", "newest-file-wins", "2"];
        let judged = world.git(["show", "refs/frites/2/@mtimes/c1:times"]);
        assert!(judged.contains("mtime 17"), "{judged}");
        world.frites(args).expect(0);
        assert_eq!(
            fs::read_to_string(world.worktree("1/c1").join("other")).unwrap(),
            wins,
            "{judged}"
        );
        world.assert_clean();
    }
}

#[test]
fn child_lands_with_the_changes_it_inherited() {
    let world = family("echo two > other");
    let base = world.git(["rev-parse", "HEAD"]);
    world.frites(["apply", "--merge", "2"]).expect(0);
    assert_eq!(world.git(["rev-parse", "HEAD^1", "HEAD^2^"]), format!("{base}\n{base}"));
    assert_eq!(
        world.git(["diff", "--name-status", &base, "HEAD"]),
        "M\tREADME\nA\tcommitted\nM\tother\nA\tstaged\nA\tuntracked"
    );
    assert_eq!(world.git(["rev-list", "--count", "HEAD"]), "4");
    world.git(["reset", "-q", "--hard", &base]);
    world.frites(["apply", "2"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/2/c1"));
    world.assert_clean();
}

/// An attempt that has children of its own, while its command runs.
#[test]
fn candidates_command_can_merge_its_children_into_its_worktree() {
    let world = World::new();
    world.git(["config", "frites.limits.nesting", "2"]);
    let script = "echo mine > mine; me=$FRITES_RUN/$FRITES_CANDIDATE; \
        run=$(git frites spawn -q -n 1 --from $me -- sh -c 'echo child > child'); \
        git frites judge -q --test 'test -e child' $run; git frites apply -q --merge --into $me $run; test -e child";
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).expect(0);
    assert_eq!(
        world.frites(["diff", "1/c1", "--name-status"]).expect(0).out(),
        "A\tchild\nA\tmine\n"
    );
    assert_eq!(world.git(["rev-list", "--count", "--merges", "frites/run/1/c1"]), "1");
    world.assert_clean();
}

#[test]
fn merge_into_a_running_parent_by_others_is_refused() {
    let world = World::new();
    let wait = "echo x > x; touch \"$HOME/started\"; i=0; until test -e \"$HOME/go\" || test $i = 2000; do i=$((i+1)); sleep 0.01; done";
    let mut spawn =
        world.command(&world.repo, "git-frites", ["spawn", "-n", "1", "--", "sh", "-c", wait]);
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.home().join("started").exists());
    world.spawn(["-n", "1", "--from", "1/c1"]);
    world.sh(&world.worktree("2/c1"), "echo y > y").expect(0);
    world.frites(["judge", "-q", "--test", "true", "2"]).expect(0);
    world.frites(["apply", "--merge", "--into", "1/c1", "2"]).refuses(128, "1/c1 is still at work");
    assert!(!world.worktree("1/c1").join("y").exists());
    fs::write(world.home().join("go"), "").unwrap();
    assert!(spawn.wait().unwrap().success());
    world.frites(["apply", "--merge", "--into", "1/c1", "2"]).expect(0);
    assert!(world.worktree("1/c1").join("y").exists());
    world.assert_clean();
}

#[test]
fn merge_into_a_parent_that_goes_on_meanwhile_is_refused() {
    crate::common::in_the_open_world();
    let world = family("echo two > other");
    let dir = world.worktree("1/c1");
    world.sh(&dir, "echo later > later").expect(0);
    let home = world.home();
    let wait = |file: &str| format!("until test -e ~/{file}; do sleep 0.01; done");
    // Waits only while the merged tree is judged.
    let test = format!("test ! -e later || {{ touch ~/judging; {}; }}", wait("judged"));
    world.git(["config", "frites.oracle.test", &test]);
    world.frites(["judge", "-q", "2"]).expect(0);
    let retry = ["retry", "1/c1", "--", "sh", "-c", &format!("touch ~/at-work; {}", wait("go"))];
    for (words, is_at_work) in
        [("1/c1 is still at work", true), ("1/c1 has changed meanwhile", false)]
    {
        let tip = world.git(["rev-parse", "frites/run/1/c1"]);
        let merge = ["apply", "--merge", "--into", "1/c1", "2"];
        let mut merge = world.command(&world.repo, "git-frites", merge);
        let merge = merge.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        poll(|| home.join("judging").exists());
        let mut retry = world.command(&world.repo, "git-frites", retry);
        let mut retry = retry.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        poll(|| home.join("at-work").exists());
        if !is_at_work {
            write(&dir.join("more"), "more\n");
            write(&home.join("go"), "");
            assert!(retry.wait().unwrap().success());
        }
        write(&home.join("judged"), "");
        answer(&merge.wait_with_output().unwrap()).refuses(128, words);
        write(&home.join("go"), "");
        assert!(retry.wait().unwrap().success());
        assert_eq!(world.git(["rev-parse", "frites/run/1/c1"]), tip);
        assert_eq!(fs::read_to_string(dir.join("other")).unwrap(), "one\n");
        world.sh(&home, "rm judging judged at-work go").expect(0);
    }
    world.assert_clean();
}

/// An intent that was never put in its place has had no effect yet, so there is nothing to recover.
#[test]
fn landing_that_is_killed_while_it_writes_its_intent_has_not_begun() {
    let world = World::new();
    world.attempts(&["echo 1 >> README", "echo 2 > new"]);
    let [base, tree] = [world.git(["rev-parse", "HEAD"]), world.tree("HEAD")];
    let intent = format!(
        "run = '1'\ncandidate = 'c1'\niteration = 1\nlanding = 'merged'\ntarget = 'refs/heads/frites/run/1/c2'\n\
         old = '{base}'\nnew = '{base}'\nfiles = '{tree}'\nverified = true\nholder = {{ run = '1', candidate = 'c2' }}\n"
    );
    let begun = world.repo.join(".frites/landings/candidates/1/c2.toml");
    write(&begun.with_file_name(".tmpAbCdEf"), &intent);
    assert_eq!(world.frites(["status"]).expect(0).stderr.matches("interrupted landing").count(), 0);
    write(&begun, &intent);
    let told = world.frites(["status"]).expect(0).stderr;
    assert!(told.contains("the interrupted landing on 'frites/run/1/c2'"), "{told}");
}
