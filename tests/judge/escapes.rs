//! Changes that oracle commands, which run attempts' code, make through the shared git directory:
//! each is named, git-frites runs nothing that they plant, and a verdict that they may have
//! influenced verifies nothing.
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{World, answer, make_executable, poll};

/// Two attempts: the first has the file `bad`, and its `$BAD` leaves a trace in `$HOME/canary`.
fn world() -> World {
    let mut world = World::new();
    let bad = world.home().join("bad");
    fs::write(&bad, "#!/bin/sh\necho \"${0##*/} $*\" >>\"$HOME/canary\"\nexec cat\n").unwrap();
    make_executable(&bad);
    world.set_env("BAD", bad);
    // Each tree is judged once, in spawn order.
    world.set_env("FRITES_ORACLE_BASE_TESTS", "never");
    world.attempts(&[
        "echo 1 >bad",
        "echo 1 >good; echo 2 >>good; echo 'good filter=own' >.gitattributes",
    ]);
    world
}

/// A test that does `script` in the first attempt, with `$g` for the shared git directory.
fn if_bad(script: &str) -> String {
    format!("g=$(git rev-parse --git-common-dir); if test -e bad; then {script}; fi")
}

fn words(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

fn escaped(world: &World) -> Vec<Value> {
    world.events().into_iter().filter(|e| e["event"] == "escaped").collect()
}

const PLANT: &str =
    "git config filter.x.smudge \"$BAD\"; mkdir -p $g/info; echo '* filter=x' >$g/info/attributes
    cp \"$BAD\" $g/hooks/post-checkout";

#[test]
fn change_planted_while_judging_is_named_and_unverifies_the_run() {
    crate::common::in_the_open_world();
    // With a job for each, and one for the base.
    for (jobs, when) in [("1", "1/c1"), ("3", "run 1")] {
        let world = world();
        // Where all run at once, the others end after it; else the base comes first.
        let base_fails = if jobs == "1" { "test -e bad || test -e good || exit 1;" } else { "" };
        let test = format!(
            "{}\n{base_fails} until test -e $g/hooks/post-checkout; do sleep 0.01; done",
            if_bad(PLANT)
        );
        let judge = ["judge", "--json", "-j", jobs, "--test", &test];
        let answer = world.frites(judge).expect(3);
        let bad = world.home().join("bad");
        let changes = [
            format!("config 'filter.x.smudge' was set to '{}'", bad.display()),
            "'info/attributes' was added".into(),
            "hook 'post-checkout' was added".into(),
        ];
        let expected = changes.clone().map(|change| format!("{when} was judged: {change}"));
        assert_eq!(answer.warnings(), expected.into(), "{}", answer.stderr);
        assert!(
            answer.stderr.contains("hint: an attempt or you did that; nothing was reverted"),
            "{}",
            answer.stderr
        );
        let (verdict, event) = (answer.json(), &escaped(&world)[0]);
        assert_eq!(
            (&verdict["terms"]["disturbed"], &verdict["verified"]),
            (&true.into(), &false.into())
        );
        assert_eq!((&event["judging"], &event["count"]), (&true.into(), &3.into()));
        assert_eq!(event["candidate"], if jobs == "1" { "c1".into() } else { Value::Null });
        world.frites(["apply"]).refuses(1, "changed while the oracle's commands ran");
        world.frites(["apply", "1/c2"]).refuses(1, "changed while the oracle's commands ran");
        let again = world.frites(["judge", "--replay"]).expect(3).stderr;
        assert!(again.contains("is not verified"), "{again}");

        // Under settled conditions, and with nothing from before.
        let verdict = world.frites(judge).expect(0).json();
        assert_eq!(
            (&verdict["effort"]["ran"], &verdict["verified"]),
            (&2.into(), &true.into()),
            "{verdict}"
        );
        assert_eq!(escaped(&world).len(), 1);
        assert!(!world.home().join("canary").exists(), "planted programs ran");
        // They would have.
        world.sh(&world.repo, "rm README; git checkout -q README").expect(0);
        assert!(world.home().join("canary").exists());
    }
}

#[test]
fn change_planted_by_the_last_command_leaves_the_verdict_verified() {
    crate::common::in_the_open_world();
    let world = world();
    let test = "! test -e good || git config alias.x log";
    let answer = world.frites(["judge", "--test", test]).expect(0);
    assert_eq!(
        answer.warnings(),
        words(&["1/c2 was judged: config 'alias.x' was set to 'log'"]),
        "{}",
        answer.stderr
    );
    world.frites(["apply", "-m", "land"]).expect(0);
}

#[test]
fn change_that_the_base_makes_first_holds_for_all_and_leaves_the_verdict_verified() {
    crate::common::in_the_open_world();
    let world = world();
    let test = "git config alias.x log";
    let answer = world.frites(["judge", "-j", "1", "--json", "--test", test]).expect(0);
    assert_eq!(
        answer.warnings(),
        words(&["run 1 was judged: config 'alias.x' was set to 'log'"]),
        "{}",
        answer.stderr
    );
    assert_eq!(answer.json()["terms"]["disturbed"], Value::Null);
    // What a candidate changes after it counts as ever.
    let test = "git config alias.y log; ! test -e bad || git config alias.x show";
    let verdict = world.frites(["judge", "-j", "1", "--json", "--test", test]).expect(3).json();
    assert_eq!(verdict["terms"]["disturbed"], true, "{verdict}");
}

#[test]
fn branches_tags_worktrees_gc_and_hooks_of_a_test_are_no_tampering() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "user.x", "0"]);
    let test = "git branch old; git tag v1; git worktree add -q \"$HOME/aside\"; git worktree remove \"$HOME/aside\"
        git branch -D aside; git gc -q; git pack-refs --all; git config branch.x.remote .; git config user.name ci
        git config alias.x log; git config --unset alias.x; git config submodule.a.url b; git config --global --add safe.directory \"$PWD\"
        git config core.hooksPath .husky; cp \"$BAD\" $g/hooks/pre-push";
    let answer = world.frites(["judge", "--json", "--test", &if_bad(test)]).expect(0);
    assert!(answer.stderr.contains("config 'safe.directory' was set to"), "{}", answer.stderr);
    let mut found = answer.warnings();
    found.retain(|words| !words.contains("safe.directory"));
    let expected = [
        "1/c1 was judged: config 'branch.x.remote' was set to '.'",
        "1/c1 was judged: config 'user.name' was set to 'ci'",
        "1/c1 was judged: config 'submodule.a.url' was set to 'b'",
        "1/c1 was judged: config 'core.hookspath' was set to '.husky'",
        "1/c1 was judged: hook 'pre-push' was added",
    ];
    assert_eq!(found, words(&expected), "{}", answer.stderr);
    let json = answer.json();
    assert_eq!(
        (&json["verified"], &json["terms"]["disturbed"]),
        (&true.into(), &Value::Null),
        "{json}"
    );
    // A warning is not repeated, and cached outcomes need no watch.
    let known = world.frites(["judge", "--json", "--test", &if_bad(test)]).expect(0);
    assert_eq!(
        (known.warnings(), &known.json()["effort"]["saved_cached"]),
        (BTreeSet::new(), &2.into())
    );
}

#[test]
fn change_in_an_included_file_counts_and_fills_no_cache() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "include.path", &world.home().join("more").display().to_string()]);
    let test = if_bad("git config --file \"$HOME/more\" filter.own.smudge \"$BAD\"");
    let answer = world.frites(["judge", "--json", "--test", &test]).expect(3);
    let words = format!(
        "1/c1 was judged: config 'filter.own.smudge' was set to '{}'",
        world.env("BAD").display()
    );
    assert_eq!(answer.warnings(), [words].into(), "{}", answer.stderr);
    assert!(!world.home().join("canary").exists(), "a planted filter ran in the next checkout");
    let verdict = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
    assert_eq!(
        (&verdict["effort"]["ran"], &verdict["terms"]["disturbed"]),
        (&2.into(), &Value::Null),
        "{verdict}"
    );
}

/// Sealed commands cannot make such a change, but others can meanwhile.
#[test]
fn change_beside_sealed_commands_is_found_at_their_end_and_empties_the_cache() {
    let mut world = World::new();
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    // A path that can be written to would make the commands count as unconfined.
    world.unset_env("FRITES_SANDBOX_WRITE");
    world.set_env("FRITES_ORACLE_WARM", "never");
    world.attempts(&["echo 1 >good", "echo 2 >good; echo 3 >>good"]);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let test = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; read line <&3'");
    let judge = ["judge", "--json", "--test", &test];
    let mut judging = world.command(&world.repo, "git-frites", judge);
    let child = judging.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for count in 0..3 {
        let (mut command, _) = server.accept().unwrap();
        if count == 1 {
            world.git(["config", "alias.x", "log"]);
        }
        command.write_all(b"go\n").unwrap();
    }
    let answer = answer(&child.wait_with_output().unwrap()).expect(3);
    let change = words(&["run 1 was judged: config 'alias.x' was set to 'log'"]);
    assert_eq!(answer.warnings(), change, "{}", answer.stderr);
    let verdict = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
    assert_eq!(verdict["terms"]["disturbed"], Value::Null, "{verdict}");
    drop(server);
    let again = world.frites(judge).json();
    assert_eq!(again["effort"]["saved_cached"], 0, "{again}");
}

#[test]
fn outcome_of_a_base_that_makes_a_change_is_not_cached() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo 1 >good"]);
    let test = "test -e good || git config alias.x log; true";
    let ran = |count: u64| {
        let verdict = world.frites(["judge", "--json", "--test", test]).expect(0).json();
        let effort = &verdict["effort"];
        assert_eq!((&effort["ran"], &effort["ran_base"]), (&count.into(), &count.into()));
    };
    // The candidate's outcome, from after the change, is not cached either.
    ran(1);
    ran(1);
    ran(0);
}

#[test]
fn judging_a_single_candidate_is_watched() {
    crate::common::in_the_open_world();
    let world = world();
    let test = if_bad("git config alias.x log");
    let judge = |candidates: &[&str]| {
        world.frites([&["judge", "--no-cache", "--test", &test][..], candidates].concat())
    };
    let answer = judge(&["--candidate", "c1", "--candidate", "c2"]).expect(3);
    assert_eq!(
        answer.warnings(),
        words(&["1/c1 was judged: config 'alias.x' was set to 'log'"]),
        "{}",
        answer.stderr
    );
    world.frites(["judge", "--replay", "--test", &test]).expect(3);
    world.frites(["apply"]).refuses(1, "changed while the oracle's commands ran");
    // By itself it can have bent nothing but its own outcome.
    world.git(["config", "--unset", "alias.x"]);
    let answer = judge(&["--candidate", "c1"]).expect(0);
    assert_eq!(answer.warnings().len(), 1, "{}", answer.stderr);
}

#[test]
fn frites_settings_changed_by_a_test_need_acceptance() {
    crate::common::in_the_open_world();
    let world = world();
    let test = if_bad("git config frites.oracle.test true");
    world.frites(["judge", "--test", &test]).expect(3);
    let words = "while 1/c1 was judged: config 'frites.oracle.test' was set to 'true'";
    let refused = world.frites(["judge", "--test", &test]).refuses(128, words);
    assert!(refused.stderr.contains("`git frites judge --trust-config 1`"), "{}", refused.stderr);
    world.frites(["spawn"]).refuses(128, words);
    let accepted = world.frites(["judge", "--trust-config", "--test", &test]).expect(0).stderr;
    assert!(accepted.contains(
        "accepted: config 'frites.oracle.test' was set to 'true', while 1/c1 was judged"
    ));
}

#[test]
fn judging_a_merged_tree_is_watched_and_warns_before_the_commit() {
    crate::common::in_the_open_world();
    let world = world();
    let test = if_bad("test ! -e moved || cp \"$BAD\" $g/hooks/post-commit");
    world.frites(["judge", "-q", "--test", &test]).expect(0);
    world.write("moved", "1\n");
    world.commit("moved");
    let said = world.frites(["apply", "--merge"]).expect(0).stderr;
    let expected = [
        "warning: while run 1 was judged",
        "warning: your commit uses settings that changed while run 1 was judged",
    ];
    for words in expected.map(|words| format!("{words}: hook 'post-commit' was added")) {
        assert_eq!(said.lines().filter(|l| *l == words).count(), 1, "{said}");
    }
}

#[test]
fn changes_during_a_killed_judge_are_reported_by_the_next_command() {
    crate::common::in_the_open_world();
    let world = world();
    let test = "git config frites.oracle.test true; touch \"$HOME/ready\"; until test -e \"$HOME/go\"; do sleep 0.02; done";
    let mut command = world.command(&world.repo, "git-frites", ["judge", "--test", test]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.home().join("ready").exists());
    let words = "config 'frites.oracle.test' was set to 'true'";
    world.frites(["spawn"]).refuses(128, &format!("since run 1's judging started: {words}"));
    child.kill().unwrap();
    child.wait().unwrap();
    world.sh(&world.home(), "touch go").expect(0);
    let said = world.frites(["status"]).expect(0);
    assert_eq!(said.warnings(), [format!("run 1 was judged: {words}")].into(), "{}", said.stderr);
    assert!(world.frites(["status"]).expect(0).warnings().is_empty(), "once");
    assert_eq!(fs::read_dir(world.repo.join(".frites/watches")).unwrap().count(), 0);
    world
        .frites(["judge", "--test", "true"])
        .refuses(128, &format!("while run 1 was judged: {words}"));
}
