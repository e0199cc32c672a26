//! `apply --undo`: a merge is reverted, a fresh branch deleted; what came after stays.
use std::fs;

use crate::common::{World, answer, make_executable, write};

#[track_caller]
fn judged(world: &World, script: &str) -> String {
    world.judged("true", &[script])
}

fn landing(world: &World, run: &str) -> String {
    world.first_candidate(run)["landing"].as_str().unwrap().to_owned()
}

#[test]
fn undo_reverts_a_merge_as_git_would_and_only_once() {
    let world = World::new();
    judged(&world, "echo TWO > src/lib.txt; echo new > new.txt; rm README");
    let before = (world.tree("HEAD"), world.files());
    world.frites(["apply", "--merge"]).expect(0);
    let merge = world.git(["rev-parse", "HEAD"]);
    let answer = world.frites(["apply", "--undo"]).expect(0);
    assert_eq!(answer.out(), "main\n");
    assert!(!answer.stderr.contains("warning:"), "{}", answer.stderr);
    assert_eq!((world.tree("HEAD"), world.files()), before);
    assert_eq!(world.git(["status", "--porcelain"]), "");
    let ours = world.git(["log", "-1", "--format=%B"]);
    assert_eq!(landing(&world, "1"), "undone");
    world.frites(["apply", "--undo"]).refuses(1, "run 1 was undone already");
    world.frites(["apply", "--undo", "1/c1"]).refuses(1, "1/c1 was undone already");
    world.git(["reset", "-q", "--hard", &merge]);
    world.git(["revert", "--no-edit", "-m", "1", &merge]);
    assert_eq!(
        ours,
        format!(
            "{}\nFrites-Undone: 1/c1@1\nFrites-Into: main\n",
            world.git(["log", "-1", "--format=%B"])
        )
    );
    assert_eq!(world.tree("HEAD"), before.0);
    world.assert_clean();
}

/// A record tells of the last landing alone.
#[test]
fn undo_takes_the_last_landing_back_and_names_the_way_to_an_earlier_merge() {
    let world = World::new();
    world.git(["branch", "other"]);
    judged(&world, "echo TWO > src/lib.txt");
    let base = world.tree("main");
    let undo = || world.frites(["apply", "--undo", "1"]);
    world.frites(["apply", "--merge"]).expect(0);
    world.frites(["apply", "--merge", "--into", "other"]).expect(0);
    assert_eq!(undo().expect(0).out(), "other\n");
    assert_eq!(world.tree("other"), base);
    let answer = undo().refuses(1, "run 1 was undone already");
    let find = "git log --merges --grep 'Frites-Run: 1/'";
    assert!(answer.stderr.contains(find), "{}", answer.stderr);
    let merge = world.sh(&world.repo, &format!("{find} --format=%H main")).expect(0);
    world.git(["revert", "--no-edit", "-m", "1", merge.out().trim()]);
    assert_eq!(world.tree("main"), base);
    world.assert_clean();
}

#[test]
fn undo_names_later_landings_and_keeps_their_work() {
    let world = World::new();
    for i in 1..=3 {
        judged(&world, &format!("echo {i} > file{i}"));
    }
    for i in 1..=3 {
        world.frites(["apply", "--merge", &i.to_string()]).expect(0);
    }
    let answer = world.frites(["apply", "--undo", "1"]).expect(0);
    assert!(
        answer.stderr.contains("warning: 2 landings came after 1/c1 and stay: 3/c1@1, 2/c1@1"),
        "{}",
        answer.stderr
    );
    assert_eq!(world.git(["ls-tree", "--name-only", "HEAD"]), "README\nfile2\nfile3\nsrc");
    let json = world.frites(["apply", "--undo", "2", "--json"]).expect(0).json();
    assert_eq!(
        json["later"],
        serde_json::json!(["3/c1@1"]),
        "what was undone since does not count: {json:#}"
    );
    assert_eq!(world.git(["ls-tree", "--name-only", "HEAD"]), "README\nfile3\nsrc");
    assert_eq!(["1", "2", "3"].map(|run| landing(&world, run)), ["undone", "undone", "merged"]);
    // A run that was undone can be merged again.
    world.frites(["apply", "--merge", "1"]).expect(0);
    assert_eq!(world.git(["ls-tree", "--name-only", "HEAD"]), "README\nfile1\nfile3\nsrc");
    assert_eq!(landing(&world, "1"), "merged");
    world.assert_clean();
}

#[test]
fn undo_that_conflicts_or_is_refused_changes_nothing() {
    let cases = [
        (
            "echo more >> src/lib.txt; git commit -qam more",
            1,
            "undoing 1/c1 conflicts with later changes in src/lib.txt (content)",
        ),
        ("echo edited > README", 128, "your checkout has uncommitted changes: README"),
        ("git reset -q --hard HEAD^1", 1, "the merge of 1/c1 is not in 'main' any more"),
        ("git revert --no-edit -m 1 HEAD >/dev/null", 1, "'main' holds nothing of 1/c1 any more"),
        (
            "git switch -q -c other; git worktree add -q ../linked main",
            128,
            "the branch 'main' is checked out in",
        ),
        ("git switch -q -c other; git branch -q -D main", 128, "there is no branch 'main'"),
    ];
    for (script, code, words) in cases {
        let world = World::new();
        judged(&world, "echo TWO > src/lib.txt; rm README; echo kept > README");
        world.frites(["apply", "--merge"]).expect(0);
        world.sh(&world.repo, script).expect(0);
        let state = || {
            (
                world.belongings(),
                world.files(),
                fs::read(world.repo.join(".git/index")).unwrap(),
                world.git(["for-each-ref"]),
            )
        };
        let before = state();
        world.frites(["apply", "--undo"]).refuses(code, words);
        assert_eq!(state(), before, "{script}");
        assert_eq!(landing(&world, "1"), "merged");
        world.assert_clean();
    }
}

#[test]
fn undo_of_a_merge_into_a_branch_without_checkout_moves_only_the_branch() {
    let world = World::new();
    world.git(["branch", "release"]);
    judged(&world, "echo new > new.txt");
    world.frites(["apply", "--merge", "--into", "release"]).expect(0);
    let before =
        (world.belongings().replace(&world.git(["rev-parse", "release"]), "R"), world.files());
    assert_eq!(world.frites(["apply", "--undo"]).expect(0).out(), "release\n");
    assert_eq!(
        (world.belongings().replace(&world.git(["rev-parse", "release"]), "R"), world.files()),
        before
    );
    assert_eq!(world.tree("release"), world.tree("main"));
    world.assert_clean();
}

#[test]
fn undo_deletes_the_fresh_branch_and_returns_to_the_old_one() {
    for (options, leave) in [
        (&["apply"][..], false),
        (&["apply", "-m", "x"], false),
        (&["apply", "-m", "x"], true),
        (&["apply", "--no-switch", "-m", "x"], false),
    ] {
        let world = World::new();
        world.write("a/b/c", "a file in a directory\n");
        world.write("f", "a file\n");
        world.write("g/file", "a file\n");
        world.commit("more");
        world.write("notes.txt", "mine\n");
        let swap = "rm -r a f; echo file > a; mkdir f; ln -s in f/link; mv g moved; ln -s moved g";
        judged(
            &world,
            &format!("echo TWO > src/lib.txt; rm README; mkdir d; echo new > d/new; {swap}"),
        );
        let before = (world.belongings(), world.files());
        world.frites(options).expect(0);
        if leave {
            world.git(["switch", "-q", "main"]);
        }
        let answer = world.frites(["apply", "--undo"]).expect(0);
        assert_eq!(answer.out(), "frites/apply/1\n");
        assert_eq!((world.belongings(), world.files()), before, "{options:?}");
        assert_eq!(world.git(["for-each-ref", "refs/heads/frites/apply"]), "");
        assert!(!world.repo.join("d").exists());
        assert_eq!(landing(&world, "1"), "undone");
        world.frites(["apply", "--undo"]).refuses(1, "was undone already");
        world.frites(options).expect(0);
        assert_eq!(landing(&world, "1"), "landed");
        world.assert_clean();
    }
}

#[test]
fn undo_keeps_a_fresh_branch_with_later_work() {
    let cases = [
        (&["apply"][..], "git commit -qm mine", "has commits that 1/c1 did not bring"),
        (
            &["apply", "-m", "x"],
            "git commit -q --allow-empty -m mine",
            "has commits that 1/c1 did not bring",
        ),
        (
            &["apply", "-m", "x"],
            "git commit -q --amend -m mine",
            "has commits that 1/c1 did not bring",
        ),
        (&["apply"], "echo mine > README", "would overwrite files that git does not track: README"),
        (
            &["apply", "-m", "x"],
            "echo mine > README",
            "would overwrite files that git does not track: README",
        ),
        (&["apply"], "echo more > src/lib.txt", "holds more than 1/c1 brought"),
        (&["apply"], "echo more > more; git add more", "holds more than 1/c1 brought"),
        (
            &["apply", "-m", "x"],
            "git switch -q main; git worktree add -q ../linked frites/apply/1",
            "is checked out in",
        ),
    ];
    for (options, script, words) in cases {
        let world = World::new();
        judged(&world, "echo TWO > src/lib.txt; rm README");
        world.frites(options).expect(0);
        world.sh(&world.repo, script).expect(0);
        let state = || (world.belongings(), world.files(), world.git(["for-each-ref"]));
        let before = state();
        world.frites(["apply", "--undo"]).refuses(1, words);
        assert_eq!(state(), before, "{script}");
        world.assert_clean();
    }
}

/// A signal that ends git is no answer to the question that git was asked.
#[test]
fn interrupted_apply_does_not_say_that_another_branch_has_the_commit() {
    let mut world = World::new();
    judged(&world, "echo TWO > src/lib.txt");
    world.frites(["apply", "--no-switch", "-m", "x"]).expect(0);
    let bin = world.home().join("bin");
    let before = world.env("PATH");
    let own = "#!/bin/sh\nfor word; do
        if [ \"$word\" = --contains ]; then kill -INT $PPID $$; sleep 60; fi
        done\nPATH=${PATH#*:}\nexec git \"$@\"\n";
    write(&bin.join("git"), own);
    make_executable(&bin.join("git"));
    let path = std::env::split_paths(&before);
    let path = std::env::join_paths(std::iter::once(bin).chain(path)).unwrap();
    world.set_env("PATH", path);
    // `git frites` would find git in its own directory first.
    let mut apply = world.command(&world.repo, "git-frites", ["apply"]);
    let told = answer(&apply.output().unwrap()).expect(130).stderr;
    assert_eq!(told, "error: interrupted\nhint: nothing is damaged; try again\n");
}

#[test]
fn undo_of_a_fresh_branch_that_was_merged_waits_until_the_change_is_reverted_there() {
    for (merge, delete) in [("merge -q", false), ("merge -q", true), ("merge -q --no-ff", false)] {
        let world = World::new();
        judged(&world, "echo TWO > src/lib.txt");
        world.frites(["apply", "--no-switch", "-m", "x"]).expect(0);
        let landed = world.git(["rev-parse", "frites/apply/1"]);
        world.sh(&world.repo, &format!("git {merge} frites/apply/1")).expect(0);
        if delete {
            world.git(["branch", "-q", "-d", "frites/apply/1"]);
        }
        let before = world.git(["for-each-ref"]);
        let told = world
            .frites(["apply", "--undo"])
            .refuses(1, "'main' has the commit of 1/c1, too, and would keep its change")
            .stderr;
        let revert = format!("hint: on 'main' `git revert {}` takes it back", &landed[..10]);
        assert!(told.contains(&revert), "{told}");
        assert_eq!(told.contains("`git branch -D frites/apply/1`"), !delete, "{told}");
        if !delete {
            // The hint names nothing that has just been refused.
            let taken = world.frites(["apply"]).refuses(128, "'frites/apply/1' exists").stderr;
            let way = "another branch has its commit, too: `git branch -D frites/apply/1`";
            assert!(taken.contains(way) && !taken.contains("--undo"), "{taken}");
        }
        assert_eq!(world.git(["for-each-ref"]), before);
        assert_eq!(landing(&world, "1"), "landed");
        world.git(["revert", "--no-edit", &landed]);
        world.frites(["apply", "--undo"]).expect(0);
        assert_eq!(landing(&world, "1"), "undone");
        world.frites(["apply", "--no-switch", "-m", "again"]).expect(0);
        assert_eq!(world.git(["show", "frites/apply/1:src/lib.txt"]), "TWO");
        world.assert_clean();
    }
}

/// The records are gone, as in a clone: which branch it was can be told from where the commit is.
#[test]
fn undo_finds_a_named_branch_without_records() {
    let world = World::new();
    judged(&world, "echo TWO > src/lib.txt");
    let lose = || fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    world.frites(["apply", "--no-switch", "--branch", "mine"]).expect(0);
    lose();
    assert_eq!(world.frites(["apply", "--undo"]).expect(0).out(), "mine\n");
    assert_eq!(world.git(["for-each-ref", "refs/heads/mine"]), "");
    world.frites(["apply", "--no-switch", "--branch", "mine"]).expect(0);
    world.git(["switch", "-q", "mine"]);
    world.commit("more");
    world.git(["switch", "-q", "main"]);
    lose();
    world.frites(["apply", "--undo"]).refuses(1, "'mine' has the commit of 1/c1, too");
    assert_eq!(landing(&world, "1"), "landed");
}

#[test]
fn one_of_several_landings_is_undone_by_its_name() {
    let world = World::new();
    world.judged("true", &["echo 1 > one", "echo 2 > two"]);
    world.frites(["apply", "--no-switch", "-m", "x", "1/c1"]).expect(0);
    world.frites(["apply", "--no-switch", "-m", "x", "1/c2", "--branch", "other"]).expect(0);
    let several = "several candidates of run 1 landed: 1/c1, 1/c2";
    let answer = world.frites(["apply", "--undo"]).refuses(2, several);
    assert!(answer.stderr.contains("`git frites apply --undo 1/c1`"), "{}", answer.stderr);
    world.frites(["apply", "--undo", "1/c1"]).expect(0);
    assert_eq!(world.frites(["apply", "--undo"]).expect(0).out(), "other\n");
    world.assert_clean();
}

#[test]
fn undo_where_nothing_landed_names_what_did() {
    let world = World::new();
    world.judged("true", &["echo 1 > one"]);
    let told = world.frites(["apply", "--undo"]).refuses(1, "run 1 has not landed").stderr;
    assert!(told.contains("hint: `git frites status` shows what landed\n"), "{told}");
    world.frites(["apply", "-m", "x"]).expect(0);
    world.git(["switch", "-q", "-"]);
    world.attempts(&["echo 2 > two"]);
    let hint = "hint: 1/c1 landed: `git frites apply --undo 1/c1`\n";
    for words in [&["apply", "--undo"][..], &["apply", "--undo", "2"]] {
        let told = world.frites(words).refuses(1, "run 2 has not landed").stderr;
        assert!(told.contains(hint), "{told}");
    }
    world.frites(["apply", "--undo", "1/c1"]).expect(0);
    world.assert_clean();
}

#[test]
fn verdict_hints_at_what_a_landing_left_to_do() {
    let world = World::new();
    world.judged("true", &["echo 1 > one"]);
    let hint = || world.frites(["judge", "--replay", "1"]).expect(0).stderr;
    let look = "hint: look at it with `git frites diff 1/c1`";
    assert_eq!(hint(), format!("{look}, land it with `git frites apply 1`\n"));
    for options in [&["apply", "-m", "x", "1"][..], &["apply", "--merge", "-m", "x", "1"]] {
        world.frites(options).expect(0);
        let back = "it has landed: take it back with `git frites apply --undo 1/c1`";
        assert_eq!(hint(), format!("{look}; {back}\n"));
        world.frites(["apply", "--undo", "1"]).expect(0);
        let again = "its landing was undone: land it again with `git frites apply 1`";
        assert_eq!(hint(), format!("{look}; {again}\n"));
    }
    world.assert_clean();
}
