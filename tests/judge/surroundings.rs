//! Things around the judge's checkouts that code under test writes: files in the directories above,
//! where build tools search, other checkouts, and cached outcomes. Each is named, and what lies in
//! a directory of git-frites is removed before the next command runs.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{World, write};

/// Two attempts: the first has the file `bad`.
fn world() -> World {
    let world = World::new();
    world.attempts(&["echo 1 >bad", "echo 1 >good; echo 2 >>good"]);
    world
}

/// The directory of this repository in the cache directory, which a judging has made.
fn cache(world: &World) -> PathBuf {
    let mut found = fs::read_dir(world.home().join("cache/git-frites")).unwrap();
    found.next().unwrap().unwrap().path()
}

fn outcomes(world: &World) -> BTreeSet<String> {
    let listing = fs::read_dir(cache(world).join("outcomes")).into_iter().flatten().flatten();
    listing.map(|e| e.file_name().into_string().unwrap()).collect()
}

#[test]
fn file_above_the_checkouts_is_named_removed_and_unverifies_the_verdict() {
    crate::common::in_the_open_world();
    for (path, jobs) in [("..", "1"), ("../..", "1"), ("../../..", "1"), ("../..", "2")] {
        for name in ["conftest.py", ".cargo/config.toml", "node_modules/x/index.js"] {
            let world = world();
            // With two jobs, the good one ends after the bad one has written.
            let wait = "i=0; until test -e \"$HOME/wrote\" || test $i = 500; do sleep 0.02; i=$((i+1)); done";
            let test = format!(
                "f={path}/{name}
                if test -e bad; then mkdir -p $(dirname $f); echo x >$f; touch \"$HOME/wrote\"
                elif test {jobs} = 2; then {wait}; else test ! -e $f; fi"
            );
            let answer = world.frites(["judge", "--json", "-j", jobs, "--test", &test]).expect(3);
            let top = name.split('/').next().unwrap();
            let warnings: Vec<String> = answer.warnings().into_iter().collect();
            assert_eq!(warnings.len(), 1, "{}", answer.stderr);
            let when = if jobs == "1" { "1/c1 was judged: '" } else { "run 1 was judged: '" };
            assert!(
                warnings[0].starts_with(when)
                    && warnings[0].ends_with(&format!(
                        "/{top}' was added above the judge's checkouts; it was removed"
                    )),
                "{warnings:?}"
            );
            let verdict = answer.json();
            assert_eq!(
                (&verdict["terms"]["disturbed"], &verdict["verified"]),
                (&true.into(), &false.into())
            );
            assert_eq!(verdict["candidates"][1]["results"][0]["outcome"], "passed", "{verdict}");
            let refused =
                world.frites(["apply"]).refuses(1, "changed while the oracle's commands ran");
            assert!(refused.stderr.contains("above the checkouts"), "{}", refused.stderr);
            world.frites(["judge", "--test", "test -e README"]).expect(0);
            world.assert_clean();
        }
    }
}

/// The places further up are the user's own: what appears there is named, and stays.
#[test]
fn file_above_the_cache_is_named_and_stays() {
    crate::common::in_the_open_world();
    let world = world();
    let test =
        "if test -e bad; then echo x >../../../../conftest.py; echo y >../../../../notes; fi";
    let answer = world.frites(["judge", "--json", "--test", test]).expect(3);
    let file = world.home().join("cache/conftest.py");
    let words =
        format!("1/c1 was judged: '{}' was added above the judge's checkouts", file.display());
    assert_eq!(answer.warnings(), [words].into(), "{}", answer.stderr);
    assert!(file.exists(), "it may be the user's");
    assert!(answer.stderr.contains("hint: an attempt or you did that; nothing was reverted"));
    world.frites(["judge", "--test", "test -e README"]).expect(0);
}

#[test]
fn file_that_an_attempt_left_above_the_checkouts_is_removed_before_anything_is_judged() {
    crate::common::in_the_open_world();
    let world = world();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    let dir = cache(&world);
    write(&dir.join("conftest.py"), "x\n");
    write(&dir.parent().unwrap().join("node_modules/x.js"), "x\n");
    // Marks of backup programs and file systems are not part of any build.
    write(&dir.join("CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    let test = "test ! -e ../../conftest.py && test ! -e ../../../node_modules";
    let answer = world.frites(["judge", "--json", "--test", test]).expect(0);
    for path in [dir.join("conftest.py"), dir.parent().unwrap().join("node_modules")] {
        let words = format!(
            "warning: '{}' lay above the judge's checkouts, where build tools find it; it was removed",
            path.display()
        );
        assert!(answer.stderr.lines().any(|l| l == words), "{words}:\n{}", answer.stderr);
        assert!(!path.exists());
    }
    assert!(dir.join("CACHEDIR.TAG").exists());
    assert_eq!(answer.json()["verified"], true);
}

#[test]
fn each_judged_tree_has_a_parent_directory_of_its_own() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo 1 >a", "echo 2 >a", "echo 3 >a"]);
    let test = "pwd >>\"$HOME/where\"; ls -A .. >>\"$HOME/beside\"; git rev-parse --show-toplevel >>\"$HOME/tops\"; git status --porcelain";
    world.frites(["judge", "--no-cache", "--test", test]).expect(0);
    let read = |name: &str| fs::read_to_string(world.home().join(name)).unwrap();
    let places = read("where");
    let parents: BTreeSet<&Path> =
        places.lines().map(|line| Path::new(line).parent().unwrap()).collect();
    // Three attempts and the base.
    assert_eq!(parents.len(), 4, "{places}");
    assert_eq!(places, read("tops"), "git knows where it is");
    let beside = read("beside");
    let beside: BTreeSet<&str> = beside.lines().collect();
    assert_eq!(beside, ["frites-judge-tree", "lock"].into());
    world.assert_clean();
}

/// Attempts that still run can write to TMPDIR, so nothing of a judging lies there.
#[test]
fn judging_and_landing_keep_no_temporary_file_where_attempts_write() {
    let mut world = World::new();
    world.write("tests/check.sh", "grep -q good app\n");
    world.write("app", "bad\n");
    world.commit("base");
    world.attempts(&["echo good >app; echo '# more' >>tests/check.sh"]);
    world.set_env("TMPDIR", world.home().join("missing"));
    world.frites(["judge", "--test", "sh tests/check.sh"]).expect(0);
    world.frites(["apply", "1", "-m", "fix"]).expect(0);
    assert_eq!(fs::read_dir(world.repo.join(".frites/scratch")).unwrap().count(), 0);
}

const EDIT: &str =
    "for d in \"$HOME\"/cache/git-frites/*/outcomes/*; do echo '# edited' >>$d/outcome.toml
        cp -r $d $d-2; done";

#[test]
fn cached_outcome_that_code_under_test_wrote_is_named_removed_and_never_used() {
    crate::common::in_the_open_world();
    let world = world();
    let test = format!("if test -e bad; then {EDIT}; fi");
    let judge = |more: &[&str]| {
        let words = [&["judge", "--json", "--test", &test], more].concat();
        world.frites(words).expect(0)
    };
    judge(&["--candidate", "c2"]);
    let before = outcomes(&world);
    assert_eq!(before.len(), 2, "of c2 and the base");
    let answer = judge(&[]);
    assert_eq!(answer.json()["effort"]["saved_cached"], 1);
    let expected = before.iter().flat_map(|edited| {
        [
            format!("1/c1 was judged: the cached outcome '{edited}' was changed; it was removed"),
            format!("1/c1 was judged: the cached outcome '{edited}-2' was added; it was removed"),
        ]
    });
    let warnings = answer.warnings();
    assert_eq!(warnings, expected.collect(), "{}", answer.stderr);
    let after = outcomes(&world);
    assert!(after.is_disjoint(&before) && after.len() == 1, "its own outcome is kept: {after:?}");
    let kept = cache(&world).join("outcomes").join(after.first().unwrap()).join("outcome.toml");
    assert!(!fs::read_to_string(kept).unwrap().contains("# edited"));
    // c2 runs again.
    let again = judge(&[]).json();
    assert_eq!((&again["effort"]["ran"], &again["effort"]["saved_cached"]), (&1.into(), &1.into()));
}

#[test]
fn outcomes_are_not_believed_after_a_judge_was_killed() {
    crate::common::in_the_open_world();
    let world = world();
    let test = "test ! -e \"$HOME/wait\" || { touch \"$HOME/ready\"; sleep 60; }";
    world.frites(["judge", "--test", test]).expect(0);
    assert_eq!(outcomes(&world).len(), 3, "of two attempts and the base");
    write(&world.home().join("wait"), "");
    let mut command =
        world.command(&world.repo, "git-frites", ["judge", "--no-cache", "--test", test]);
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    crate::common::poll(|| world.home().join("ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    world.frites(["status"]).expect(0);
    assert_eq!(outcomes(&world).len(), 0);
    world.assert_clean();
}
