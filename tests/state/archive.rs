//! Runs that go elsewhere: `git push REMOTE 'refs/frites/*:refs/frites/*'` carries all that is
//! needed to go on.
use std::fs;
use std::path::PathBuf;

use crate::common::{World, source};

const ALL: &str = "refs/frites/*:refs/frites/*";

/// A judged run, pushed to a bare repository, and a clone that fetched nothing else of it.
fn archived() -> (World, PathBuf) {
    let world = World::new();
    world.spawn(["-c", "small", "large", "wrong", "--task", "T-1"]);
    world.sh(&world.worktree("1/small"), "echo NEW > new; chmod +x new").expect(0);
    world
        .sh(
            &world.worktree("1/large"),
            "seq 20 > new; git add new; git commit -qm attempt; echo more >> README",
        )
        .expect(0);
    world.sh(&world.worktree("1/wrong"), "echo one > one").expect(0);
    world.frites(["diff", "1"]).expect(0);
    world.sh(&world.worktree("1/wrong"), "rm one; touch bad").expect(0);
    world.frites(["judge", "-q", "--test", "test -e new"]).expect(0);
    let bare = world.home().join("bare.git");
    world.git(["init", "-q", "--bare", bare.to_str().unwrap()]);
    world.git(["push", "-q", bare.to_str().unwrap(), "main", ALL]);
    let clone = world.home().join("clone");
    world.git(["clone", "-q", "-b", "main", bare.to_str().unwrap(), clone.to_str().unwrap()]);
    world.git_in(&clone, ["fetch", "-q", "origin", ALL]);
    (world, clone)
}

#[test]
fn clone_with_only_the_refs_shows_judges_and_lands() {
    let (world, clone) = archived();
    // Not even the old repository is there any more.
    let old: Vec<String> = ["small", "large", "wrong"]
        .iter()
        .map(|name| world.frites(["diff", &format!("1/{name}")]).expect(0).out())
        .collect();
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    fs::rename(&world.repo, world.home().join("gone")).unwrap();
    let there = |args: &[&str]| world.frites_in(&clone, args);

    let status = there(&["status", "--json"]).expect(0).json();
    let run = &status["runs"][0];
    assert_eq!(
        (&run["run"], &run["task"], &run["verdict"]["decision"]),
        (&"1".into(), &"T-1".into(), &"judge".into())
    );
    let states: Vec<_> =
        run["candidates"].as_array().unwrap().iter().map(|c| c["state"].clone()).collect();
    assert_eq!(states, ["open", "open", "open"]);
    let iterations: Vec<_> =
        run["candidates"].as_array().unwrap().iter().map(|c| c["iteration"].clone()).collect();
    assert_eq!(iterations, [1, 1, 2]);
    for (name, patch) in ["small", "large", "wrong"].iter().zip(&old) {
        assert_eq!(&there(&["diff", &format!("1/{name}")]).expect(0).out(), patch, "{name}");
    }
    assert_eq!(there(&["diff", "1/wrong@1", "--name-only"]).expect(0).out(), "one\n");
    // The clone has no commands of its own.
    there(&["judge", "--replay"])
        .refuses(128, "run 1 was judged on other terms than those given here");
    let replay = ["judge", "--replay", "--json", "--test", "test -e new"];
    assert_eq!(there(&replay).expect(0).json(), verdict);
    assert_eq!(there(&["judge", "-q", "--test", "test -e new"]).expect(0).out(), "1/small\n");
    assert_eq!(
        there(&["apply", "--no-switch", "-m", "Land", "1/large"]).expect(0).out(),
        "frites/apply/1\n"
    );
    assert_eq!(
        world.git_in(&clone, ["rev-parse", "frites/apply/1^{tree}"]),
        world.git_in(&clone, ["rev-parse", "refs/frites/1/large^{tree}"])
    );
    assert_eq!(world.git_in(&clone, ["rev-list", "--count", "frites/apply/1"]), "2");
    assert_eq!(world.git_in(&clone, ["status", "--porcelain"]), "");
    // And a person works on from there.
    assert_eq!(there(&["spawn", "-q", "-n", "1", "--from", "1/small"]).expect(0).out(), "2\n");
    assert!(clone.join(".frites/worktrees/2/c1/new").exists());
    there(&["clean", "--forget", "1"]).expect(0);
    there(&["clean", "-q", "2"]).expect(0);
    world.git_in(&clone, ["fsck", "--no-dangling", "--no-progress"]);
}

#[test]
fn landing_can_be_undone_in_a_clone() {
    let (world, clone) = archived();
    let bare = world.home().join("bare.git");
    world.frites(["apply", "--no-switch", "-m", "x", "1/large"]).expect(0);
    world.frites(["apply", "--merge", "1/small"]).expect(0);
    world.git(["push", "-q", bare.to_str().unwrap(), "main", "frites/apply/1", ALL]);
    world.git_in(&clone, ["fetch", "-q", "origin", ALL, "frites/apply/1:frites/apply/1"]);
    world.git_in(&clone, ["pull", "-q"]);
    let landings = || -> Vec<String> {
        let status = world.frites_in(&clone, ["status", "--json"]).expect(0).json();
        let candidates = status["runs"][0]["candidates"].as_array().unwrap().clone();
        candidates.iter().map(|c| c["landing"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(landings(), ["merged", "landed", "pending"]);
    assert_eq!(world.frites_in(&clone, ["apply", "--undo", "1/small"]).expect(0).out(), "main\n");
    assert_eq!(
        world.frites_in(&clone, ["apply", "--undo", "1/large"]).expect(0).out(),
        "frites/apply/1\n"
    );
    assert_eq!(landings(), ["undone", "undone", "pending"]);
    assert!(!clone.join("new").exists());
    assert_eq!(world.git_in(&clone, ["for-each-ref", "refs/heads/frites"]), "");
}

#[test]
fn bare_repository_merges_into_its_branches() {
    let (world, _) = archived();
    let bare = world.home().join("bare.git");
    let before = world.git(["rev-parse", "main"]);
    world
        .frites_in(&bare, ["apply", "--merge"])
        .refuses(128, "this repository has no checkout here: it is bare");
    assert_eq!(
        world.frites_in(&bare, ["apply", "--merge", "--into", "main", "1/large"]).expect(0).out(),
        "main\n"
    );
    assert_eq!(world.git_in(&bare, ["rev-parse", "main^1"]), before);
    assert_eq!(
        world.git_in(&bare, ["rev-parse", "main^{tree}"]),
        world.tree("refs/frites/1/large")
    );
    world.frites_in(&bare, ["apply", "--undo"]).expect(0);
    assert_eq!(world.git_in(&bare, ["rev-parse", "main^{tree}"]), world.tree("main"));
}

/// The line of the recipes that begins with these words, without its comment.
fn recipe_line(start: &str) -> String {
    let recipes = fs::read_to_string(source().join("docs/RECIPES.md")).unwrap();
    let line = recipes.lines().map(str::trim).find(|line| line.starts_with(start)).unwrap();
    line.split(" #").next().unwrap().trim().to_owned()
}

#[test]
fn documented_push_and_fetch_work_after_each_judging() {
    let (world, clone) = archived();
    let bare = world.home().join("bare.git");
    world.git(["remote", "add", "origin", bare.to_str().unwrap()]);
    let push = recipe_line("git push origin 'refs/frites");
    let fetch = recipe_line("git fetch origin 'refs/frites");
    for page in ["git-frites.1", "git-frites-tutorial.7"] {
        let page = fs::read_to_string(source().join("man").join(page)).unwrap();
        let page = page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\(aq", "'");
        assert!(page.contains(&push) && page.contains(&fetch), "{page}");
    }
    for round in 0..2 {
        world.sh(&world.worktree("1/small"), &format!("echo {round} >> new")).expect(0);
        for judge in [
            &["--candidate", "small"][..],
            &["--replay"],
            &["--protect", "README"],
            &[],
            &["--candidate", "small"],
            &["--candidate", "large"],
            &["--replay"],
        ] {
            let test = ["--test", "test -e new"].iter().filter(|_| judge != ["--replay"]);
            world.frites(["judge", "-q", "1"].iter().chain(judge).chain(test)).expect(0);
            world.sh(&world.repo, &push).expect(0);
        }
    }
    world.sh(&clone, &fetch).expect(0);
    let names = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/frites/1/@record"];
    assert_eq!(world.git_in(&clone, names), world.git(names));
    let here = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    let replay = ["judge", "--replay", "--json", "--test", "test -e new"];
    let there = world.frites_in(&clone, replay).expect(0).json();
    assert_eq!(
        (&there["recommended"], &there["decision"]),
        (&here["recommended"], &here["decision"])
    );

    // All that the chain of records keeps goes with the run.
    let record = world.git(["rev-parse", "refs/frites/1/@record"]);
    let capture = world.git(["rev-parse", "refs/frites/1/small"]);
    world.frites(["clean", "-q", "--forget", "1"]).expect(0);
    world.git(["gc", "-q", "--prune=now"]);
    for gone in [record, capture] {
        assert_ne!(world.run(&world.repo, "git", ["cat-file", "-e", &gone]).code, 0, "{gone}");
    }
}

#[test]
fn run_whose_refs_were_pruned_is_rebuilt() {
    let (world, _) = archived();
    let other = world.home().join("other.git");
    world.git(["init", "-q", "--bare", other.to_str().unwrap()]);
    world.frites(["clean", "-q", "1/large"]).expect(0);
    world.sh(&world.worktree("1/small"), "echo unsaved >> new").expect(0);
    let captures =
        || world.git(["for-each-ref", "--format=%(refname) %(objectname)", "refs/frites/1/"]);
    let captures_only = || -> Vec<String> {
        captures().lines().filter(|line| !line.contains('@')).map(str::to_owned).collect()
    };
    let before = captures_only();
    world.git(["fetch", "-q", "--prune", other.to_str().unwrap(), "+refs/frites/*:refs/frites/*"]);
    assert_eq!(captures(), "");

    let status = world.frites(["status", "--json"]).expect(0);
    assert_eq!(status.json()["runs"][0]["run"], "1");
    let line = "warning: run 1 had lost its refs, and was rebuilt from its worktrees and captures; \
                judge it again\n";
    assert!(status.stderr.contains(line), "{}", status.stderr);
    assert_eq!(captures_only(), before);
    assert!(!world.frites(["status"]).expect(0).stderr.contains("rebuilt"));
    // No file of `.frites/` makes a verdict.
    world.frites(["apply", "1/small"]).refuses(1, "run 1 was not judged");
    let judged = world.frites(["judge", "-q", "--test", "grep -q unsaved new"]).expect(0);
    assert_eq!(judged.out(), "1/small\n");
    world.assert_clean();
}
