//! `apply`: what passed is what lands, on a fresh branch; or nothing has changed.
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::common::edits::TWO;
use crate::common::{Answer, TestWorld, World, make_executable, poll, write};

/// The test that candidates must pass; it counts its runs in `$HOME/judged`.
const TEST: &str = "echo ran >> \"$HOME/judged\"; grep -q TWO src/lib.txt && ! grep -q BAD src/lib.txt && ! test -e bad";

fn judgements(world: &World) -> usize {
    fs::read_to_string(world.home().join("judged")).unwrap_or_default().lines().count()
}

fn branches(world: &World) -> String {
    world.git(["for-each-ref", "--format=%(refname)", "refs/heads/frites/apply/"])
}

/// Everything of the user's, and that no branch was made.
fn state(world: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    (world.belongings(), world.files(), branches(world))
}

/// Asserts that the checkout is on `branch`, which is still at `base`, with exactly `tree` staged
/// and checked out.
#[track_caller]
fn assert_staged(world: &World, branch: &str, base: &str, tree: &str) {
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), format!("refs/heads/{branch}"));
    assert_eq!(world.git(["rev-parse", "HEAD"]), base);
    assert_eq!(world.git(["write-tree"]), tree);
    assert_eq!(world.git(["diff-files", "--name-only"]), "", "the files are those of the index");
}

#[test]
fn apply_stages_the_judged_tree_on_a_fresh_branch() {
    let world = World::new();
    world.write("README", "stashed\n");
    world.git(["stash", "-q"]);
    world.write("notes.txt", "mine\n");
    let (base, stash) =
        (world.git(["rev-parse", "HEAD"]), world.git(["stash", "list", "--format=%H"]));
    world.judged(TEST, &[&format!("{TWO}; echo new > new.txt; rm README")]);
    let answer = world.frites(["apply"]).expect(0);
    assert_eq!(answer.out(), "frites/apply/1\n");
    assert!(answer.stderr.contains("hint: staged on frites/apply/1; "), "{}", answer.stderr);
    assert_staged(&world, "frites/apply/1", &base, &world.tree("refs/frites/1/c1"));
    assert_eq!(
        world.git(["status", "--porcelain"]),
        "D  README\nA  new.txt\nM  src/lib.txt\n?? notes.txt"
    );
    assert_eq!(world.git(["rev-parse", "main"]), base, "the user's branch is where it was");
    assert_eq!(world.git(["stash", "list", "--format=%H"]), stash);
    assert_eq!(fs::read_to_string(world.repo.join("notes.txt")).unwrap(), "mine\n");
    assert_eq!(world.first_candidate("1")["landing"], "landed");
    world.assert_clean();
}

#[test]
fn configuration_that_git_frites_cannot_read_does_not_land() {
    let world = World::new();
    let own = "printf '[hooks]\\nverdict = \"true\"\\n' > .frites.toml";
    world.judged(
        TEST,
        &[
            &format!("{TWO}; {own}"),
            &format!("{TWO}; echo 'spawn.jobs = 1' > .frites.toml; echo x > x"),
        ],
    );
    let before = state(&world);
    let refused = world.frites(["apply", "1/c1"]);
    let answer = refused.refuses(128, "1/c1 would land a configuration that cannot be used: ");
    assert!(answer.stderr.contains("'hooks.verdict' cannot be set in"), "{}", answer.stderr);
    assert!(answer.stderr.contains("hint: correct .frites.toml in `git frites path 1/c1`"));
    assert_eq!(state(&world), before);
    world.frites(["apply", "--allow-unverified", "1/c2"]).expect(0);
    world.frites(["status"]).expect(0);
}

#[test]
fn apply_prints_only_the_branch_or_one_json_document() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let json = world.frites(["apply", "--json", "--no-switch", "-m", "x"]).expect(0).json();
    assert_eq!(json["version"], 1);
    assert_eq!(json["branch"], "frites/apply/1");
    assert_eq!(json["tree"], world.tree("refs/frites/1/c1"));
    assert_eq!(json["commit"], world.git(["rev-parse", "frites/apply/1"]));
    assert_eq!((&json["run"], &json["candidate"]), (&"1".into(), &"c1".into()));
    assert_eq!(json["verified"], true);
    let quiet = world.frites(["apply", "-q", "--branch", "other"]).expect(0);
    assert_eq!((quiet.out().as_str(), quiet.stderr.as_str()), ("other\n", ""));
    world.assert_clean();
}

#[test]
fn apply_with_message_commits_as_the_user_with_trailers() {
    let world = World::new();
    world.hook("pre-commit", "echo ran >> \"$HOME/hooked\"");
    let base = world.git(["rev-parse", "HEAD"]);
    world.judged(TEST, &[TWO]);
    let tree = world.tree("refs/frites/1/c1");
    world.frites(["apply", "-m", "Shout", "-m", "It is louder."]).expect(0);
    assert_eq!(
        world.git(["log", "-1", "--format=%an <%ae>|%cn|%P|%T|%B"]),
        format!(
            "Test User <test@example.com>|Test User|{base}|{tree}|Shout\n\nIt is louder.\n\nFrites-Run: 1/c1@1\nFrites-Base: {base}\n\
             Frites-Tree: {tree}\nFrites-Oracle: test: {TEST}\nFrites-World: {}\n",
            TestWorld::of_this_test().name()
        )
    );
    assert_eq!(fs::read_to_string(world.home().join("hooked")).unwrap(), "ran\n");
    assert_staged(&world, "frites/apply/1", &world.git(["rev-parse", "frites/apply/1"]), &tree);
    assert_eq!(world.git(["rev-parse", "main"]), base);
    world.assert_clean();
}

#[test]
fn apply_with_commit_takes_the_attempts_own_message_or_its_prompt() {
    crate::common::in_the_open_world();
    let world = World::new();
    let commit = "git commit -qam \"fix: shout$(printf '\\033[31m')\" -m 'It is louder.' -m 'Frites-Oracle: unverified' -m 'Co-authored-by: an agent <a@b>'";
    let script =
        format!("{TWO}; if [ $FRITES_INDEX = 1 ]; then {commit}; else echo more > more; fi");
    world.spawn(["-n", "2", "-p", "  Shout\nand more", "--", "sh", "-c", &script]);
    world.frites(["judge", "-q", "--test", TEST]).expect(0);
    let landed = |words: &[&str]| {
        world.frites(words).expect(0);
        let message = world.git(["log", "-1", "--format=%B"]);
        world.git(["switch", "-q", "main"]);
        world.frites(["apply", "--undo", words[1]]).expect(0);
        message.split("\n\nFrites-Run: ").next().unwrap().to_owned()
    };
    assert_eq!(landed(&["apply", "1/c1", "--commit"]), "fix: shout\n\nIt is louder.");
    assert_eq!(landed(&["apply", "1/c2", "--commit"]), "Shout");
    assert_eq!(landed(&["apply", "1/c1", "-m", "Mine"]), "Mine");
    world.assert_clean();
}

#[test]
fn apply_with_commit_writes_its_message_from_the_verdict() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.frites(["apply", "--commit"]).expect(0);
    assert_eq!(
        world.git(["log", "-1", "--format=%s%n%w(0,0,0)%b"]).lines().take(2).collect::<Vec<_>>(),
        ["Land 1/c1", "c1 is the only usable candidate, and it passed test: 2 lines in 1 file."]
    );
    assert_eq!(
        world.git(["log", "-1", "--format=%(trailers:key=Frites-Run,valueonly)"]).trim(),
        "1/c1@1"
    );
    world.assert_clean();
}

#[test]
fn apply_with_no_switch_leaves_the_checkout_untouched() {
    let world = World::new();
    // The hook sees the files, in a worktree that is not the user's.
    world.hook("pre-commit", "cat src/lib.txt new.txt > \"$HOME/seen\"; pwd > \"$HOME/where\"");
    world.judged(TEST, &[&format!("{TWO}; echo new > new.txt")]);
    world.write("README", "being edited\n");
    world.write("new.txt", "in the way of a switch\n");
    world.git(["add", "README"]);
    let before = (world.belongings(), world.files());
    let answer = world.frites(["apply", "--no-switch", "-m", "Aside"]).expect(0);
    assert_eq!(answer.out(), "frites/apply/1\n");
    assert_eq!((world.belongings(), world.files()), before);
    assert_eq!(world.tree("frites/apply/1"), world.tree("refs/frites/1/c1"));
    assert_eq!(
        world.git(["log", "--format=%s|%an", "-2", "frites/apply/1"]),
        "Aside|Test User\nbase|Test User"
    );
    assert_eq!(fs::read_to_string(world.home().join("seen")).unwrap(), "one\nTWO\nthree\nnew\n");
    let place = fs::read_to_string(world.home().join("where")).unwrap();
    assert!(!std::path::Path::new(place.trim()).starts_with(&world.repo), "{place}");
    assert!(!std::path::Path::new(place.trim()).exists(), "{place} is gone");
    world.assert_clean();
}

#[test]
fn named_candidate_that_passed_lands_although_another_won() {
    let world = World::new();
    world.judged(TEST, &[TWO, &format!("{TWO}; echo more > more.txt")]);
    assert_eq!(world.frites(["judge", "-q", "--replay"]).expect(0).out(), "1/c1\n");
    world.frites(["apply", "1/c2"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c2"));
    assert_ne!(world.tree("refs/frites/1/c1"), world.tree("refs/frites/1/c2"));
    world.assert_clean();
}

#[test]
fn unverified_candidate_lands_only_with_allow_unverified() {
    let world = World::new();
    world.judged(TEST, &[TWO, "echo BAD >> src/lib.txt"]);
    let before = state(&world);
    let answer = world.frites(["apply", "1/c2"]).refuses(1, "1/c2 failed test (exit 1)");
    assert!(
        answer.stderr.contains("git frites apply --allow-unverified 1/c2"),
        "{}",
        answer.stderr
    );
    assert_eq!(state(&world), before);
    world.frites(["apply", "1/c2", "--allow-unverified", "-m", "All the same"]).expect(0);
    assert_eq!(world.tree("HEAD"), world.tree("refs/frites/1/c2"));
    assert_eq!(
        world.git(["log", "-1", "--format=%(trailers:key=Frites-Oracle,valueonly)"]).trim(),
        "unverified"
    );
    world.assert_clean();
}

#[test]
fn near_miss_and_unverified_pick_are_refused() {
    for (judge, code, words) in [
        (vec!["judge", "--test", "false"], 1, "none of 2 passed"),
        (vec!["judge"], 3, "nothing is verified"),
    ] {
        let world = World::new();
        world.attempts(&[TWO, "echo x > x"]);
        world.frites(judge).expect(code);
        let before = state(&world);
        world.frites(["apply"]).refuses(1, words);
        world.frites(["apply", "1/c1"]).refuses(1, "nothing verified to land");
        assert_eq!(state(&world), before);
        world.frites(["apply", "--allow-unverified"]).expect(0);
        world.assert_clean();
    }
}

#[test]
fn run_without_a_verdict_is_refused() {
    let world = World::new();
    world.attempts(&[TWO, "true"]);
    let before = state(&world);
    for words in [vec!["apply"], vec!["apply", "1/c1"], vec!["apply", "--judged", "1/c1"]] {
        world.frites(words).refuses(1, "run 1 was not judged");
    }
    world.frites(["apply", "--allow-unverified", "1/c2"]).refuses(1, "1/c2 changed nothing");
    assert_eq!(state(&world), before);
    world.assert_clean();
}

#[test]
fn worktree_edited_after_judging_lands_only_as_it_was_judged() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let tree = world.tree("refs/frites/1/c1");
    world.sh(&world.worktree("1/c1"), "echo BAD >> src/lib.txt").expect(0);
    let before = state(&world);
    let answer = world.frites(["apply"]).refuses(1, "1/c1 has changed since it was judged");
    assert!(
        answer.stderr.contains("git frites judge 1") && answer.stderr.contains("--judged 1/c1"),
        "{}",
        answer.stderr
    );
    assert_eq!(state(&world), before);
    assert_ne!(world.tree("refs/frites/1/c1"), tree, "the edit is captured all the same");
    world.frites(["apply", "--judged"]).expect(0);
    assert_eq!(world.git(["write-tree"]), tree);
    world.assert_clean();
}

#[test]
fn iteration_lands_by_its_number() {
    let world = World::new();
    world.attempts(&["echo BAD > src/lib.txt"]);
    world.frites(["diff", "1"]).expect(0);
    world.sh(&world.worktree("1/c1"), TWO).expect(0);
    world.frites(["judge", "-q", "--test", TEST]).expect(0);
    world.sh(&world.worktree("1/c1"), "echo BAD > src/lib.txt; echo later > later").expect(0);
    world.frites(["diff", "1"]).expect(0);
    let first = world.tree("refs/frites/1/c1~2");
    let before = state(&world);
    world.frites(["apply", "1/c1@1"]).refuses(1, "this state of 1/c1 was not judged");
    world.frites(["apply", "1/c1@3"]).refuses(1, "this state of 1/c1 was not judged");
    world
        .frites(["apply", "1/c1@9"])
        .refuses(128, "1/c1 has no iteration 9: it was captured 3 times");
    assert_eq!(state(&world), before);
    world.frites(["apply", "1/c1@2"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1~1"));
    world.git(["commit", "-qm", "x"]);
    world.git(["switch", "-q", "main"]);
    world.frites(["apply", "c1@1", "--allow-unverified", "--branch", "first"]).expect(0);
    assert_eq!(world.git(["write-tree"]), first);
    world.assert_clean();
}

#[test]
fn apply_deletes_no_file_of_a_submodule() {
    for (new, merge) in [("echo x > sub", false), ("ln -s src sub", true)] {
        let world = World::new();
        world
            .sh(&world.repo, "git init -q sub && git -C sub commit -q --allow-empty -m sub")
            .expect(0);
        world.sh(&world.repo, "git add sub && git commit -qm submodule").expect(0);
        world.attempts(&[&format!("git rm -q --cached sub; rm -rf sub; {new}; git add -A")]);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        world.write("sub/mine", "mine\n");
        let args = ["apply", "--allow-unverified", if merge { "--merge" } else { "-q" }];
        let refusal = "landing would overwrite files that git does not track: sub";
        world.frites(args).refuses(1, refusal);
        assert!(world.repo.join("sub/mine").exists());
        world.sh(&world.repo, "mv sub ../elsewhere; mkdir sub").expect(0);
        world.frites(args).expect(0);
        assert!(!world.repo.join("sub").is_dir() || merge, "{new}");
    }
}

#[test]
fn apply_overwrites_no_untracked_or_ignored_file() {
    // The user's file, the attempt's command, and the path that the refusal names.
    let cases = [
        ("echo SECRET > .env", "echo x > .env; git add -f .env", ".env"),
        ("echo mine > new.txt", "echo x > new.txt", "new.txt"),
        ("echo same > new.txt", "echo same > new.txt", "new.txt"),
        ("mkdir thing; echo mine > thing/notes", "echo x > thing", "thing/notes"),
        (
            "mkdir -p ignored/deep; echo mine > ignored/deep/a",
            "echo x > ignored; git add -f ignored",
            "ignored/deep/a",
        ),
        ("echo mine > thing", "mkdir thing; echo x > thing/file", "thing"),
        (
            "mkdir ../elsewhere; ln -s ../elsewhere way",
            "mkdir -p way/in; echo x > way/in/file",
            "way",
        ),
        ("ln -s nowhere new.txt", "echo x > new.txt", "new.txt"),
        ("echo mine > src/sub", "mkdir -p src/sub; echo x > src/sub/file", "src/sub"),
        ("echo mine > src/extra", "rm -r src; echo x > src", "src/extra"),
    ];
    for (user, attempt, path) in cases {
        let world = World::new();
        world.write(".gitignore", ".env\nignored\n");
        world.commit("ignore");
        world.attempts(&[attempt]);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        world.sh(&world.repo, user).expect(0);
        let before = state(&world);
        let answer = world
            .frites(["apply"])
            .refuses(1, "landing would overwrite files that git does not track: ");
        assert!(
            answer.stderr.lines().next().unwrap().ends_with(&format!(": {path}")),
            "{user}:\n{}",
            answer.stderr
        );
        assert_eq!(state(&world), before, "{user}");
        let made = world.frites(["apply", "--no-switch", "-m", "x"]).expect(0).stderr;
        for hints in [answer.stderr, made] {
            assert!(
                !hints.contains("merge it with") && hints.contains("move "),
                "{user}:\n{hints}"
            );
        }
        assert_eq!(world.tree("frites/apply/1"), world.tree("refs/frites/1/c1"), "{user}");
        world.assert_clean();
    }
}

/// git refuses, or fails when it has put a file for a directory already, and a directory for a
/// file.
#[test]
fn apply_that_git_cannot_check_out_changes_nothing() {
    let cases = [
        (
            "git update-index --skip-worktree src/lib.txt; echo mine > src/lib.txt",
            "changes to 'src/lib.txt' would be",
        ),
        (
            "git update-index --assume-unchanged src/lib.txt; echo mine > src/lib.txt",
            "changes to 'src/lib.txt' would be",
        ),
        (
            "git config filter.f.smudge false; git config filter.f.required true; echo 'new.txt filter=f' > .git/info/attributes",
            "git read-tree failed: external filter 'false' failed",
        ),
    ];
    for (script, words) in cases {
        let world = World::new();
        world.write("a/b/c", "a file in a directory\n");
        world.write("d", "a file\n");
        world.commit("more");
        world.judged(
            TEST,
            &[&format!(
                "{TWO}; rm -r a d; mkdir d; echo file > a; echo in > d/in; echo new > new.txt"
            )],
        );
        world.sh(&world.repo, script).expect(0);
        let before = state(&world);
        world.frites(["apply"]).refuses(128, &format!("your checkout is as it was: {words}"));
        assert_eq!(state(&world), before, "{script}");
        world.assert_clean();
    }
}

#[test]
fn untracked_files_elsewhere_survive_apply() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    world.commit("ignore");
    world.judged(TEST, &[&format!("{TWO}; mkdir d; echo x > d/new")]);
    world.write("d/mine", "mine\n");
    world.write(".env", "SECRET\n");
    world.frites(["apply"]).expect(0);
    assert_eq!(fs::read_to_string(world.repo.join("d/mine")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(world.repo.join(".env")).unwrap(), "SECRET\n");
    assert_eq!(fs::read_to_string(world.repo.join("d/new")).unwrap(), "x\n");
    world.assert_clean();
}

#[test]
fn checkout_in_the_middle_of_an_operation_is_refused() {
    let cases = [
        ("echo edited > README", "your checkout has uncommitted changes: README"),
        ("echo edited > README; git add README", "your checkout has uncommitted changes: README"),
        ("rm README; echo x >> src/lib.txt", "your checkout has uncommitted changes: README and 1 more"),
        (
            "git checkout -qb side; git commit -q --allow-empty -m s; git checkout -q main; git commit -q --allow-empty -m m; git merge -q --no-commit --no-ff side",
            "a merge is in progress",
        ),
        (
            "echo patched > README; git commit -qam p; git format-patch -q -1 -o \"$HOME\"; git reset -q --hard HEAD^
             echo x > README; git commit -qam x; git am -q \"$HOME\"/*.patch 2>/dev/null || true",
            "an application of patches is in progress",
        ),
        ("git bisect start -q", "a bisection is in progress"),
    ];
    for (script, words) in cases {
        let world = World::new();
        world.judged(TEST, &[TWO]);
        world.sh(&world.repo, script).expect(0);
        let before = state(&world);
        let answer = world.frites(["apply"]).refuses(128, words);
        assert_eq!(state(&world), before, "{script}");
        // Following the hint resolves the refusal.
        if let Some((_, rest)) = answer.stderr.split_once("stop it with `") {
            world.sh(&world.repo, rest.split('`').next().unwrap()).expect(0);
            world.frites(["apply"]).expect(0);
        }
        world.assert_clean();
    }
}

#[test]
fn apply_inside_a_candidates_worktree_is_refused() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.sh(&world.worktree("1/c1"), "git checkout -q .").expect(0);
    let before = state(&world);
    world
        .frites_in(&world.worktree("1/c1"), ["apply", "--judged"])
        .refuses(128, "this is a candidate's worktree");
    assert_eq!(state(&world), before);
    world.assert_clean();
}

#[test]
fn conflict_with_a_moved_head_changes_nothing() {
    let world = World::new();
    world.judged(TEST, &[&format!("{TWO}; echo theirs > both")]);
    world.write("src/lib.txt", "one\nzwei\nthree\n");
    world.write("both", "ours\n");
    world.commit("elsewhere");
    let before = state(&world);
    for words in [vec!["apply"], vec!["apply", "-m", "x"], vec!["apply", "--no-switch", "-m", "x"]]
    {
        let answer = world
            .frites(words)
            .refuses(1, "1/c1 conflicts with HEAD in both (add/add), src/lib.txt (content); nothing was changed");
        assert!(answer.stderr.contains("git switch --detach "), "{}", answer.stderr);
        assert!(answer.stderr.contains("`git frites apply --conflicts 1/c1`"), "{}", answer.stderr);
        assert_eq!(state(&world), before);
    }
    world.assert_clean();
}

/// A judged candidate, and a base that moved under it without a conflict. Gives the merged tree.
fn moved(world: &World, file: &str) -> String {
    let base = world.git(["rev-parse", "HEAD"]);
    world.judged(TEST, &[TWO]);
    world.write(file, "moved\n");
    world.commit("elsewhere");
    world.git([
        "merge-tree",
        "--write-tree",
        &format!("--merge-base={base}"),
        "HEAD",
        "refs/frites/1/c1",
    ])
}

#[test]
fn merged_tree_is_judged_again_before_it_lands() {
    let world = World::new();
    let merged = moved(&world, "other");
    let head = world.git(["rev-parse", "HEAD"]);
    assert_eq!(judgements(&world), 2);
    let answer = world.frites(["apply"]).expect(0);
    assert!(
        answer.stderr.contains("re-running the checks on the merged tree"),
        "{}",
        answer.stderr
    );
    assert_eq!(judgements(&world), 3);
    assert_ne!(merged, world.tree("refs/frites/1/c1"));
    assert_staged(&world, "frites/apply/1", &head, &merged);
    world.assert_clean();
}

#[test]
fn merged_tree_that_fails_changes_nothing() {
    let world = World::new();
    moved(&world, "bad");
    let before = state(&world);
    for words in [vec!["apply"], vec!["apply", "--no-switch", "-m", "x"]] {
        let answer = world
            .frites(words)
            .refuses(1, "1/c1 passed on its base, but merged with HEAD it failed test (exit 1)");
        assert!(answer.stderr.contains(".frites/runs/1/apply/test.log"), "{}", answer.stderr);
        assert_eq!(state(&world), before);
    }
    world.assert_clean();
}

#[test]
fn no_rejudge_lands_the_merged_tree_as_unverified() {
    let world = World::new();
    let merged = moved(&world, "bad");
    let answer = world.frites(["apply", "--no-rejudge", "-m", "x"]).expect(0);
    assert!(
        answer.stderr.contains("warning: HEAD has moved since the run started"),
        "{}",
        answer.stderr
    );
    assert_eq!(judgements(&world), 2);
    assert_eq!(world.tree("HEAD"), merged);
    assert_eq!(
        world.git(["log", "-1", "--format=%(trailers:key=Frites-Oracle,valueonly)"]).trim(),
        "unverified"
    );
    world.assert_clean();
}

#[test]
fn change_that_head_already_holds_is_refused() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.sh(&world.repo, TWO).expect(0);
    world.commit("by hand");
    let before = state(&world);
    for words in [vec!["apply"], vec!["apply", "--no-switch", "-m", "x"]] {
        world.frites(words).refuses(1, "the whole change of 1/c1 is already in HEAD");
    }
    assert_eq!(state(&world), before);
    world.assert_clean();
}

#[test]
fn hook_that_refuses_or_rewrites_the_commit_rolls_apply_back() {
    let cases = [
        ("pre-commit", "exit 1", "git did not make the commit"),
        ("commit-msg", "exit 1", "git did not make the commit"),
        (
            "pre-commit",
            "echo formatted >> src/lib.txt; git add src/lib.txt",
            "a hook changed the files to be committed",
        ),
        (
            "pre-commit",
            "echo more > README; git add README",
            "a hook changed the files to be committed",
        ),
        ("pre-commit", "git add -A; exit 1", "git did not make the commit"),
        ("pre-commit", "git rm -qf --cached new.txt; exit 1", "git did not make the commit"),
    ];
    for (name, script, words) in cases {
        let world = World::new();
        world.write("g/file", "a file\n");
        world.commit("more");
        let link = "mv g moved; ln -s moved g";
        world.judged(TEST, &[&format!("{TWO}; echo new > new.txt; rm README; {link}")]);
        world.hook(name, script);
        world.write("notes.txt", "mine\n");
        let before = state(&world);
        for options in [&["-m", "x"][..], &["--commit"], &["--no-switch", "-m", "x"]] {
            world.frites(["apply"].iter().chain(options)).refuses(1, words);
            assert_eq!(state(&world), before, "{script} {options:?}");
            assert_eq!(
                world.git(["status", "--porcelain"]),
                "?? notes.txt",
                "{script} {options:?}"
            );
        }
        world
            .frites(["apply", "--no-verify", "--no-switch", "--branch", "aside", "-m", "x"])
            .expect(0);
        world.frites(["apply", "--no-verify", "-m", "x"]).expect(0);
        for branch in ["aside", "frites/apply/1"] {
            assert_eq!(world.tree(branch), world.tree("refs/frites/1/c1"), "{script}");
        }
        world.assert_clean();
    }
}

#[test]
fn rollback_returns_to_a_detached_head() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.hook("pre-commit", "exit 1");
    world.git(["switch", "-q", "--detach"]);
    let before = state(&world);
    world.frites(["apply", "-m", "x"]).refuses(1, "git did not make the commit");
    assert_eq!(state(&world), before);
    world.assert_clean();
}

#[test]
fn candidate_of_a_newer_version_does_not_land() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let record = world.repo.join(".frites/runs/1/c1/candidate.toml");
    let text = fs::read_to_string(&record).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    assert!(text.starts_with("version = "), "{text}");
    write(&record, format!("version = 99\n{rest}"));
    let before = state(&world);
    world.frites(["apply", "-m", "x"]).refuses(128, "1/c1 was written by a newer git-frites");
    assert_eq!(state(&world), before);
}

#[test]
fn edit_made_after_apply_was_killed_in_a_hook_survives() {
    let world = World::new();
    world.judged(TEST, &[&format!("{TWO}; echo new > new.txt")]);
    let before = state(&world);
    let (started, go) = (world.home().join("started"), world.home().join("go"));
    let wait = "touch \"$HOME/started\"; i=0; until test -e \"$HOME/go\" || test $i = 1000; do i=$((i+1)); sleep 0.01; done; exit 1";
    for edited in [None, Some("new.txt"), Some("src/lib.txt")] {
        world.hook("pre-commit", wait);
        let mut apply =
            world.command(&world.repo, "git-frites", ["apply", "-m", "x"]).spawn().unwrap();
        poll(|| started.exists());
        apply.kill().unwrap();
        apply.wait().unwrap();
        write(&go, "");
        // Until git has ended.
        world.run(&world.repo, "flock", [".git", "true"]).expect(0);
        fs::remove_file(world.repo.join(".git/hooks/pre-commit")).unwrap();
        // While a filter of `git add` runs, git has written nothing to its lock.
        let lock = fs::File::create(world.repo.join(".git/index.lock")).unwrap();
        let told = world.frites(["status"]).expect(0).stderr;
        assert!(told.contains("could not be recovered: another git process is at work"), "{told}");
        drop(lock);
        if let Some(path) = edited {
            let file = world.repo.join(path);
            let assert_edited = || {
                let told = world.frites(["status"]).expect(0).stderr;
                assert!(told.contains(&format!("'{path}' has been edited since")), "{told}");
            };
            world.write(path, "edited since\n");
            assert_edited();
            assert_eq!(fs::read_to_string(&file).unwrap(), "edited since\n");
            // Nor is something that cannot be read the landing's.
            fs::remove_file(&file).unwrap();
            world.run(&world.repo, "mkfifo", [path]).expect(0);
            assert_edited();
            fs::remove_file(&file).unwrap();
            let _ = fs::remove_file(world.repo.join(".git/index.lock"));
            world.git(["restore", path]);
        }
        let answer = world.frites(["status"]).expect(0);
        // The commit that was asked for was never made.
        assert!(
            answer.stderr.contains("landing on 'frites/apply/1' is taken back"),
            "{}",
            answer.stderr
        );
        assert_eq!(state(&world), before, "{edited:?}");
        fs::remove_file(&started).unwrap();
        fs::remove_file(&go).unwrap();
    }
    world.assert_clean();
}

#[test]
fn rollback_touches_only_files_of_the_landing() {
    let world = World::new();
    world.write("mine", "committed\n");
    world.commit("mine");
    world.judged(TEST, &[TWO]);
    // Hidden from `git status`, so that the checkout counts as clean; and written while the hook
    // runs.
    world.git(["update-index", "--assume-unchanged", "mine"]);
    world.write("mine", "precious\n");
    world.hook("pre-commit", "echo reformatted >> src/lib.txt; echo meanwhile >> README; exit 1");
    let answer = world.frites(["apply", "-m", "x"]).refuses(1, "git did not make the commit");
    assert_eq!(fs::read_to_string(world.repo.join("mine")).unwrap(), "precious\n");
    assert_eq!(fs::read_to_string(world.repo.join("README")).unwrap(), "hello\nmeanwhile\n");
    assert!(
        answer.stderr.contains("hint: modified meanwhile, and left so: README"),
        "{}",
        answer.stderr
    );
    assert_eq!(fs::read_to_string(world.repo.join("src/lib.txt")).unwrap(), "one\ntwo\nthree\n");
    let kept = world.git(["show", "refs/frites/1/@withdrawn:src/lib.txt"]);
    assert!(kept.ends_with("reformatted"), "what the hook made of it is kept: {kept}");
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/main");
    world.assert_clean();
}

#[test]
fn rollback_keeps_a_link_that_a_hook_put_in_place_of_a_directory() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.hook("pre-commit", "mv src .git/src; ln -s .git/src src; echo x >> src/lib.txt; exit 1");
    let before = state(&world);
    world.frites(["apply", "-m", "x"]).refuses(1, "git did not make the commit");
    assert_eq!(state(&world), before);
    let kept = world.git(["ls-tree", "-r", "refs/frites/1/@withdrawn", "src"]);
    assert!(kept.starts_with("120000 blob ") && kept.ends_with("\tsrc"), "{kept}");
    assert!(fs::read_to_string(world.repo.join(".git/src/lib.txt")).unwrap().ends_with("x\n"));
    world.assert_clean();
}

#[test]
fn checkout_that_moves_while_the_merge_is_judged_is_refused() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.git(["branch", "other"]);
    world.judged(TEST, &[TWO]);
    world.write("moved", "on\n");
    world.commit("main moves");
    // The oracle itself stands for another terminal: it moves the user's checkout.
    let switch =
        format!("unset GIT_CEILING_DIRECTORIES; git -C '{}' switch -q other", world.repo.display());
    world.git(["config", "frites.oracle.test", &switch]);
    world.frites(["judge"]).expect(0);
    world.git(["switch", "-q", "main"]);
    world.frites(["apply"]).refuses(128, "your checkout has changed meanwhile");
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/other");
    assert_eq!(world.git(["status", "--porcelain"]), "");
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites/apply"]), "");
    world.assert_clean();
}

#[test]
fn message_without_words_or_with_a_line_of_ours_is_refused() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    for (message, words) in [("", "the message is empty"), (" \n", "the message is empty")] {
        world.frites(["apply", "-m", message]).refuses(2, words);
        world.frites(["apply", "--merge", "-m", "x", "-m", message]).refuses(2, words);
    }
    world.frites(["apply", "-m", "x\n\nFrites-Run: 9/c9@9"]).refuses(2, "may begin with 'Frites-'");
}

#[test]
fn apply_on_a_candidates_commit_or_a_taken_branch_is_refused() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let inside = world.worktree("1/c1");
    for args in [&["apply"][..], &["apply", "--no-switch", "-m", "x"]] {
        world.frites_in(&inside, args).refuses(128, "this is a candidate's worktree");
    }
    world.git(["branch", "topic/a/b"]);
    for (name, blocker) in [("topic/a", "topic/a/b"), ("main/x", "main")] {
        world
            .frites(["apply", "--branch", name])
            .refuses(128, &format!("a branch named '{blocker}' is in the way"));
    }
    for name in ["HEAD", "frites/run/1/x"] {
        world.frites(["apply", "--branch", name]).refuses(2, "is not a valid branch name");
    }
    world.assert_clean();
    world.sh(&world.repo, "git switch -q -c \"$(printf 'caf\\351')\"").expect(0);
    for args in [&["apply"][..], &["apply", "--merge"]] {
        world.frites(args).refuses(128, "the name of the current branch is not UTF-8");
        assert_eq!(world.git(["status", "--porcelain"]), "");
    }
}

#[test]
fn killed_apply_is_rolled_back_in_its_own_checkout() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "linked"]);
    world.hook(
        "pre-commit",
        "touch \"$HOME/started\"; i=0; until test -e \"$HOME/go\" || test $i = 1000; do i=$((i+1)); sleep 0.01; done; exit 1",
    );
    let mut apply = world
        .command(&linked, "git-frites", ["apply", "-m", "x", "--branch", "killed"])
        .spawn()
        .unwrap();
    poll(|| world.home().join("started").exists());
    apply.kill().unwrap();
    apply.wait().unwrap();
    write(&world.home().join("go"), "");
    poll(|| !world.repo.join(".git/worktrees/linked/index.lock").exists());
    fs::remove_file(world.repo.join(".git/hooks/pre-commit")).unwrap();
    world.frites(["apply", "-m", "x"]).expect(0);
    let answer = world.frites_in(&linked, ["status"]).expect(0);
    assert!(answer.stderr.contains("landing on 'killed' is taken back"), "{}", answer.stderr);
    assert_eq!(world.git_in(&linked, ["symbolic-ref", "HEAD"]), "refs/heads/linked");
    assert_eq!(world.git_in(&linked, ["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn branch_option_names_the_branch_which_must_be_new() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let before = state(&world);
    for bad in ["a..b", "a b", "-x", "", "x.lock", "@{-1}"] {
        world
            .frites(["apply", &format!("--branch={bad}")])
            .refuses(2, "is not a valid branch name");
    }
    world.frites(["apply", "--branch", "main"]).refuses(128, "a branch named 'main' exists");
    assert_eq!(state(&world), before);
    assert_eq!(
        world.frites(["apply", "--branch", "topic/louder"]).expect(0).out(),
        "topic/louder\n"
    );
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/topic/louder");
    world.assert_clean();
}

#[test]
fn second_apply_is_refused_as_the_branch_exists() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.frites(["apply"]).expect(0);
    let before = state(&world);
    let answer = world.frites(["apply"]).refuses(128, "a branch named 'frites/apply/1' exists");
    let hints = "hint: 1/c1 landed there: take that back with `git frites apply --undo 1/c1`\n\
                 hint: or land on another branch: `--branch frites/apply/1-2`\n";
    assert!(answer.stderr.ends_with(hints), "{}", answer.stderr);
    assert_eq!(state(&world), before);
    // Both ways work.
    let beside = ["apply", "--no-switch", "-m", "x", "--branch", "frites/apply/1-2"];
    world.frites(beside).expect(0);
    let again = world.frites(["apply"]).refuses(128, "a branch named 'frites/apply/1' exists");
    assert!(again.stderr.contains("`--branch frites/apply/1-3`"), "{}", again.stderr);
    world.assert_clean();
}

#[test]
fn a_branch_that_a_checkout_is_on_is_not_to_be_deleted() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let answer = world.frites(["apply", "--branch", "main"]);
    let answer = answer.refuses(128, "a branch named 'main' exists");
    assert!(!answer.stderr.contains("branch -D"), "{}", answer.stderr);
    let place = format!("hint: it is checked out in '{}'\n", world.repo.display());
    assert!(answer.stderr.contains(&place), "{}", answer.stderr);
    assert!(answer.stderr.contains("`--branch main-2`"), "{}", answer.stderr);
}

#[test]
fn what_did_not_pass_is_told_before_a_branch_that_exists_or_a_dirty_checkout() {
    let world = World::new();
    world.attempts(&["echo BAD > src/lib.txt"]);
    world.frites(["judge", "--test", TEST]).expect(1);
    world.git(["branch", "frites/apply/1"]);
    world.write("README", "mine\n");
    for words in [&["apply"][..], &["apply", "1/c1", "--no-switch", "-m", "x"]] {
        world.frites(words).refuses(1, "1");
    }
    world.frites(["apply", "--allow-unverified", "1/c1"]).refuses(128, "'frites/apply/1' exists");
    world.git(["branch", "-D", "-q", "frites/apply/1"]);
    world.frites(["apply", "--allow-unverified", "1/c1"]).refuses(128, "uncommitted changes");
}

#[test]
fn apply_says_what_landed_and_what_is_next() {
    let world = World::new();
    world.judged(TEST, &[&format!("{TWO}; echo new > new.txt")]);
    let told = |words: &[&str]| world.frites(words).expect(0).stderr;
    let staged = told(&["apply"]);
    let line = "1/c1@1 is staged on the new branch 'frites/apply/1': 3 lines in 2 files (new.txt, src/lib.txt)\n";
    assert!(staged.contains(line), "{staged}");
    assert!(
        staged.ends_with("hint: take it back with `git frites apply --undo 1/c1`\n"),
        "{staged}"
    );
    world.frites(["apply", "--undo", "1/c1"]).expect(0);
    let committed = told(&["apply", "-m", "x"]);
    let commit = &world.git(["rev-parse", "HEAD"])[..10];
    assert!(committed.contains(&format!(", committed as {commit}\n")), "{committed}");
    assert!(committed.contains("`git merge frites/apply/1`"), "{committed}");
    world.git(["switch", "-q", "main"]);
    world.frites(["apply", "--undo", "1/c1"]).expect(0);
    let aside = told(&["apply", "--no-switch", "-m", "x"]);
    assert!(aside.contains("; your checkout is as it was\n"), "{aside}");
    world.frites(["apply", "--undo", "1/c1"]).expect(0);
    let merged = told(&["apply", "--merge"]);
    let commit = &world.git(["rev-parse", "HEAD"])[..10];
    let line = format!(
        "1/c1@1 is merged into 'main' as {commit}: 3 lines in 2 files (new.txt, src/lib.txt)\n"
    );
    assert!(merged.contains(&line), "{merged}");
    world.attempts(&["echo BAD > src/lib.txt"]);
    let doubtful = told(&["apply", "--allow-unverified", "2/c1"]);
    assert!(
        doubtful.contains("2/c1@1 is staged on the new branch 'frites/apply/2', unverified: "),
        "{doubtful}"
    );
}

#[test]
fn undo_after_a_switch_says_that_the_staged_change_may_be_among_those_of_the_checkout() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.frites(["apply"]).expect(0);
    world.git(["switch", "-q", "main"]);
    let told = world.frites(["apply", "--undo"]).expect(0).stderr;
    let warning = "warning: the change of 1/c1 was not committed: if a switch took it along, it is among the changes here (src/lib.txt)\n";
    assert!(told.contains(warning), "{told}");
    world.git(["stash", "-q"]);
    world.frites(["apply"]).expect(0);
    world.git(["switch", "-q", "--discard-changes", "main"]);
    let told = world.frites(["apply", "--undo"]).expect(0).stderr;
    assert!(!told.contains("warning:"), "{told}");
    assert_eq!(world.git(["status", "--porcelain"]), "");
}

/// SCOREBOARD row 8.
#[test]
fn concurrent_applies_create_the_branch_exactly_once() {
    for (count, words) in [
        (16, &["apply"][..]),
        (8, &["apply", "-m", "x"]),
        (8, &["apply", "--no-switch", "-m", "x"]),
    ] {
        let world = World::new();
        world.judged(TEST, &[TWO]);
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..count).map(|_| scope.spawn(|| world.frites(words))).collect();
            racers.into_iter().map(|r| r.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|a| a.code == 0);
        assert_eq!(won.len(), 1, "{words:?}: {lost:?}");
        assert_eq!(won[0].out(), "frites/apply/1\n");
        for answer in lost {
            answer.refuses(128, "a branch named 'frites/apply/1' exists");
        }
        assert_eq!(branches(&world), "refs/heads/frites/apply/1");
        let tree = world.tree("refs/frites/1/c1");
        if words.contains(&"-m") {
            assert_eq!(world.tree("frites/apply/1"), tree);
        } else {
            assert_eq!(world.git(["write-tree"]), tree);
        }
        world.assert_clean();
    }
}

#[test]
fn links_modes_bytes_and_odd_names_land_unchanged() {
    let world = World::new();
    world.write("tool.sh", "#!/bin/sh\n");
    world.write("gone/deep/file", "x\n");
    world.write("becomes-directory", "x\n");
    world.commit("more");
    let script = "chmod +x tool.sh; ln -s ../README src/link; ln -sf nowhere dangling; rm -r gone becomes-directory; \
        mkdir becomes-directory; echo x > becomes-directory/in; printf '\\000\\377\\r\\n\\001' > bin; printf 'no newline' > end; : > empty; \
        printf 'a\\r\\nb\\n' > crlf; echo n > \"$(printf 'new\\nline')\"; echo f > \"$(printf 'bad\\377name')\"; echo q > '\"quoted\" name'";
    world.attempts(&[script]);
    // Such names and modes are believed by no judging that asks about them.
    world.git(["config", "frites.oracle.base-tests", "never"]);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.frites(["apply"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1"));
    let theirs = World::files_of(&world.worktree("1/c1"));
    assert_eq!(World::files_of(&world.repo), theirs);
    assert_eq!(theirs.len(), 13, "{theirs:?}");
    let mode = fs::metadata(world.repo.join("tool.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    assert!(!world.repo.join("gone").exists(), "an emptied directory goes");
    world.assert_clean();
}

#[test]
fn apply_lands_in_the_checkout_it_was_called_from() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let before = (world.belongings(), world.files());
    world.frites_in(&linked.join("src"), ["apply", "-m", "x"]).expect(0);
    assert_eq!(world.git_in(&linked, ["symbolic-ref", "HEAD"]), "refs/heads/frites/apply/1");
    assert_eq!(fs::read_to_string(linked.join("src/lib.txt")).unwrap(), "one\nTWO\nthree\n");
    assert_eq!((world.belongings(), world.files()), before);
    world.assert_clean();
}

/// The look at a worktree before it lands is quick; it must not be hasty.
#[test]
fn every_change_of_a_judged_worktree_is_noticed_before_landing() {
    let same = "touch -r src/lib.txt ../stamp; printf 'one\\nOWT\\nthree\\n' > src/lib.txt; touch -r ../stamp src/lib.txt";
    let cases = [
        ("the same size and time", same),
        ("a mode", "chmod +x README"),
        ("a file that is gone", "rm README"),
        ("a new file", "touch src/new"),
        ("a new directory with a file", "mkdir -p a/b; touch a/b/c"),
        ("a link in place of a file", "rm README; ln -s src/lib.txt README"),
        ("a file in place of a directory", "rm -r src; touch src"),
        ("a directory moved through a link", "mv src ../moved; ln -s ../moved src"),
        (
            "hidden from its own index",
            "git update-index --assume-unchanged README; echo x > README",
        ),
        ("an edit, committed", "echo x > README; git commit -qam x"),
        ("an ignored file that it tracks", "echo kept > kept.log; git add -f kept.log"),
    ];
    for (what, script) in cases {
        let world = World::new();
        world.write(".gitignore", "*.log\n");
        world.commit("ignore");
        world.judged(TEST, &[TWO]);
        world.frites(["diff", "1"]).expect(0);
        world.sh(&world.worktree("1/c1"), script).expect(0);
        let answer = world.frites(["apply", "--no-switch", "-m", "x"]);
        answer.refuses(1, "1/c1 has changed since it was judged");
        assert_eq!(branches(&world), "", "{what}");
    }
    // Neither new times nor an ignored file is a change; the attempt's commits are kept.
    let quiet = "touch README; git commit -q --allow-empty -m empty; touch ignored.log; mkdir -p empty/directory";
    let world = World::new();
    world.write(".gitignore", "*.log\n");
    world.commit("ignore");
    world.judged(TEST, &[TWO]);
    world.sh(&world.worktree("1/c1"), quiet).expect(0);
    let commit = world.git(["rev-parse", "frites/run/1/c1"]);
    world.frites(["apply", "--no-switch", "-m", "x"]).expect(0);
    world.git(["merge-base", "--is-ancestor", &commit, "refs/frites/1/c1"]);
    world.assert_clean();
}

/// Changes outside the sparse checkout land and are rolled back, and none of their files appears.
#[test]
fn sparse_checkout_stays_sparse_after_apply() {
    let world = World::new();
    world.write("in/file", "1\n");
    world.write("out/file", "1\n");
    world.commit("more");
    world.judged(
        TEST,
        &[&format!("{TWO}; echo 2 >> in/file; echo 2 >> out/file; echo new > out/new")],
    );
    world.git(["sparse-checkout", "set", "in"]);
    let before = state(&world);
    world.hook("pre-commit", "exit 1");
    world.frites(["apply", "-m", "x"]).refuses(1, "git did not make the commit");
    fs::remove_file(world.repo.join(".git/hooks/pre-commit")).unwrap();
    assert_eq!(state(&world), before);
    world.frites(["apply"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1"));
    world.frites(["apply", "--undo"]).expect(0);
    assert_eq!(state(&world), before);
    assert!(!world.repo.join("out").exists());
    world.assert_clean();
}

/// The worktree in which it is made has no files.
#[test]
fn commit_without_the_checkout_looks_for_no_file() {
    let mut world = World::new();
    world.judged(TEST, &[&format!("{TWO}; mkdir -p new/deep; echo new >new/deep/file")]);
    let trace = world.home().join("trace");
    world.set_env("GIT_TRACE2_EVENT", &trace);
    world.frites(["apply", "--no-switch", "-m", "land"]).expect(0);
    let text = fs::read_to_string(&trace).unwrap();
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let commit = events.iter().find(|event| event["name"] == "commit").expect("git commit ran");
    let looks = events
        .iter()
        .filter(|event| event["sid"] == commit["sid"] && event["key"] == "refresh/sum_lstat");
    let looks: Vec<&str> = looks.map(|event| event["value"].as_str().unwrap()).collect();
    assert!(!looks.is_empty() && looks.iter().all(|number| *number == "0"), "{looks:?}");
    assert_eq!(world.tree("frites/apply/1"), world.tree("refs/frites/1/c1"));
    world.git(["fsck", "--strict"]);
}

#[test]
fn way_back_to_a_detached_head_is_told() {
    let world = World::new();
    world.judged(TEST, &[TWO]);
    world.git(["switch", "-q", "--detach"]);
    let landed = world.frites(["apply", "-m", "x"]).expect(0);
    let told = "merge it with `git switch --detach -` and `git merge frites/apply/1`";
    assert!(landed.stderr.contains(told), "{}", landed.stderr);
    world.git(["switch", "-q", "--detach", "-"]);
    world.assert_clean();
}

#[test]
fn tracked_file_that_a_made_hook_runs_is_a_hook() {
    let world = World::new();
    world.write(".husky/pre-commit", "true\n");
    world.write("tools/hooks/pre-commit", "#!/bin/sh\n");
    make_executable(&world.repo.join("tools/hooks/pre-commit"));
    world.commit("hooks");
    // As husky makes it.
    world.write(".husky/_/.gitignore", "*\n");
    world.write(".husky/_/pre-commit", "#!/bin/sh\n. \"${0%/*/*}/pre-commit\"\n");
    make_executable(&world.repo.join(".husky/_/pre-commit"));
    let ran = world.home().join("ran");
    let hook = format!("echo \"touch '{}'\" > .husky/pre-commit", ran.display());
    world.attempts(&[&format!("{hook}; echo x > tools/x")]);
    world.frites(["judge", "--test", "true"]).expect(0);
    world.git(["config", "core.hooksPath", ".husky/_"]);
    world
        .frites(["apply", "-m", "x"])
        .refuses(1, "1/c1 changes '.husky/pre-commit', a hook that git would run");
    assert!(!ran.exists());
    // Beside hooks that are tracked lies anything.
    world.git(["config", "core.hooksPath", "tools/hooks"]);
    world.frites(["apply", "-m", "x"]).expect(0);
    assert!(!ran.exists());
}

#[test]
fn tracked_file_to_which_a_hook_links_is_a_hook() {
    for directory in [".git/hooks", "hooks"] {
        let world = World::new();
        world.write("scripts/check", "#!/bin/sh\n");
        make_executable(&world.repo.join("scripts/check"));
        fs::create_dir_all(world.repo.join(directory)).unwrap();
        let target = world.repo.join("scripts/check");
        std::os::unix::fs::symlink(target, world.repo.join(directory).join("pre-commit")).unwrap();
        world.commit("hooks");
        world.git(["config", "core.hooksPath", directory]);
        let ran = world.home().join("ran");
        world.attempts(&[&format!("echo \"touch '{}'\" >> scripts/check", ran.display())]);
        world.frites(["judge", "--test", "true"]).expect(0);
        world
            .frites(["apply", "-m", "x"])
            .refuses(1, "1/c1 changes 'scripts/check', a hook that git would run");
        assert!(!ran.exists(), "{directory}");
    }
}

#[test]
fn link_on_the_way_to_a_hook_is_a_hook() {
    for (hooks_path, link) in [(true, None), (false, Some("../../hooks/current/pre-commit"))] {
        let world = World::new();
        world.write("hooks/v1/pre-commit", "#!/bin/sh\n");
        make_executable(&world.repo.join("hooks/v1/pre-commit"));
        std::os::unix::fs::symlink("v1", world.repo.join("hooks/current")).unwrap();
        world.commit("hooks");
        if hooks_path {
            world.git(["config", "core.hooksPath", "hooks/current"]);
        }
        if let Some(target) = link {
            let hook = world.repo.join(".git/hooks/pre-commit");
            fs::create_dir_all(hook.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, hook).unwrap();
        }
        let ran = world.home().join("ran");
        let hook =
            format!("printf '#!/bin/sh\\ntouch {}\\n' > x/$name; chmod +x x/$name", ran.display());
        let names = "pre-commit prepare-commit-msg post-commit reference-transaction";
        world.attempts(&[&format!(
            "mkdir x; for name in {names}; do {hook}; done; ln -sfn ../x hooks/current"
        )]);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        world
            .frites(["apply", "-m", "x"])
            .refuses(1, "1/c1 changes 'hooks/current', a hook that git would run");
        // No hook runs at all, also none of those that `git commit --no-verify` runs.
        world.frites(["apply", "-m", "x", "--no-verify"]).expect(0);
        assert!(!ran.exists());
    }
}

#[test]
fn file_that_a_setting_of_git_names_is_not_used_in_the_attempts_version() {
    let mut world = World::new();
    world.write("tools/sign", "#!/bin/sh\nexit 1\n");
    world.write("tools/settings", "");
    make_executable(&world.repo.join("tools/sign"));
    std::os::unix::fs::symlink("tools/sign", world.repo.join("signer")).unwrap();
    world.commit("tools");
    let ran = world.home().join("ran");
    let program = format!("echo \"touch '{}'\" >> tools/sign", ran.display());
    world.attempts(&[&program, "echo '[x]' > tools/settings", "echo x > other"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    // For a hook, the attempt's files are checked out beside the user's checkout.
    world.hook("pre-commit", "exit 0");
    let cases = [
        ("gpg.program", "./signer", "1/c1", "tools/sign"),
        ("trailer.x.command", "sh -c 'exec tools/sign'", "1/c1", "tools/sign"),
        ("trailer.x.command", "sh -c 'cd tools && ./sign'", "1/c1", "tools/sign"),
        ("include.path", "../tools/settings", "1/c2", "tools/settings"),
    ];
    for (key, value, candidate, path) in cases {
        world.git(["config", key, value]);
        let reason = format!("{candidate} changes '{path}', which git's setting {key} names");
        world.frites(["apply", "-m", "x", "--no-verify", candidate]).refuses(1, &reason);
        let reason = format!("the commit's version of '{path}', which git's setting {key} names");
        for way in ["--no-switch", "--merge"] {
            world.frites(["apply", way, candidate]).refuses(1, &reason);
        }
        assert!(!ran.exists(), "{key}");
        world.git(["config", "--unset", key]);
    }
    // As with `git -c`.
    world.set_env("GIT_CONFIG_COUNT", "1");
    world.set_env("GIT_CONFIG_KEY_0", "gpg.program");
    world.set_env("GIT_CONFIG_VALUE_0", "./signer");
    world.frites(["apply", "-m", "x", "1/c1"]).refuses(1, "git's setting gpg.program names");
    world.unset_env("GIT_CONFIG_COUNT");
    // A candidate that does not change the named file lands.
    world.git(["config", "trailer.x.command", "tools/sign"]);
    world.frites(["apply", "-m", "x", "1/c3"]).expect(0);
}

#[test]
fn hook_that_an_attempt_changes_does_not_run_outside_of_its_world() {
    let world = World::new();
    let ran = world.home().join("ran");
    world.write(".githooks/pre-commit", "#!/bin/sh\nexit 0\n");
    world.write(".githooks/post-merge", "#!/bin/sh\nexit 0\n");
    for hook in ["pre-commit", "post-merge"] {
        make_executable(&world.repo.join(".githooks").join(hook));
    }
    world.commit("hooks");
    world.git(["config", "core.hooksPath", ".githooks"]);
    let hook = format!("#!/bin/sh\ntouch '{}'\n", ran.display());
    world.attempts(&[&format!(
        "echo x >> README; printf \"{hook}\" | tee .githooks/post-merge > .githooks/pre-commit"
    )]);
    world.frites(["judge", "--test", "true"]).expect(0);
    let land = |args: &[&str]| world.frites([&["apply"], args].concat());
    land(&["-m", "x"]).refuses(1, "a hook that git would run");
    land(&["-m", "x", "--no-switch"]).expect(0);
    land(&["-m", "x", "--no-verify", "--branch", "second"]).expect(0);
    world.git(["switch", "-q", "main"]);
    let merged = land(&["--merge"]).expect(0);
    assert!(merged.stderr.contains("post-merge is not run"), "{}", merged.stderr);
    assert!(!ran.exists());
    world.assert_clean();
}

#[test]
fn current_directory_stays_if_the_change_deletes_it() {
    let world = World::new();
    world.write("sub/f", "x\n");
    world.commit("sub");
    world.attempts(&["git rm -qr sub; echo x >> src/lib.txt"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    let sub = world.repo.join("sub");
    let inode = fs::metadata(&sub).unwrap().ino();
    world.frites_in(&sub, ["apply", "-m", "x"]).expect(0);
    assert_eq!(fs::metadata(&sub).unwrap().ino(), inode);
    assert_eq!(world.git_in(&sub, ["status", "--porcelain"]), "");
    world.frites_in(&sub, ["apply", "--undo"]).expect(0);
    assert_eq!(fs::read_to_string(sub.join("f")).unwrap(), "x\n");
    world.assert_clean();
}
