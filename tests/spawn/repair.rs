//! Rounds of repair: `run --rounds`, and `retry`.
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use serde_json::json;

use crate::common::{Answer, World, answer, in_the_open_world, kill, poll};

/// The test of these runs: each word of `wanted` has to be in `work`. It prints as pytest does.
const TEST: &str = "bad=0; good=1; for word in $(cat wanted); do \
    if grep -q $word work; then good=$((good+1)); else bad=$((bad+1)); echo \"FAILED t.py::$word - missing\"; fi; done; \
    echo \"== $bad failed, $good passed in 0.10s ==\"; test $bad = 0";

/// A repository in which an attempt has to write three words.
fn world() -> World {
    let world = World::new();
    world.write("wanted", "one two three\n");
    world.write("work", "\n");
    world.commit("a task");
    world
}

/// A stand-in for an agent: what it does in its first round, and what when its prompt tells of a
/// failure.
fn agent(first: &str, repair: &str) -> String {
    format!(
        "prompt=$(cat); if echo \"$prompt\" | grep -q 'does not pass yet'; then {repair}; else {first}; fi"
    )
}

/// Runs this agent with so many rounds; gives the exit code and the document.
#[track_caller]
fn run(world: &World, rounds: &str, agent: &str, more: &[&str], code: i32) -> serde_json::Value {
    let words =
        ["run", "--json", "-n", "1", "--rounds", rounds, "-p", "Write all words", "--test", TEST];
    let command = ["--", "sh", "-c", agent];
    let answer = world.frites([&words[..], more, &command[..]].concat());
    answer.expect(code).json()
}

fn ends(document: &serde_json::Value) -> Vec<(&str, u64)> {
    let rounds = document["repairs"].as_array().unwrap().iter();
    rounds.map(|r| (r["end"].as_str().unwrap(), r["iteration"].as_u64().unwrap())).collect()
}

#[test]
fn rounds_repair_until_the_tests_pass_and_keep_every_round() {
    let world = world();
    // Each round adds the first test that is named, and keeps its prompt.
    let next = "echo \"$prompt\" | sed -n 's/^- t.py:://p' | head -1 >> work";
    let document = run(&world, "5", &agent("echo one >> work", next), &[], 0);
    assert_eq!(ends(&document), [("further", 2), ("passed", 3)]);
    assert_eq!(document["recommended"], "c1");
    assert_eq!(world.git(["show", "refs/frites/1/c1:work"]), "\none\nthree\ntwo");
    assert_eq!(world.git(["show", "refs/frites/1/c1~2:work"]), "\none");
    let rounds = world.repo.join(".frites/runs/1/c1/rounds");
    let prompt = |name: &str| fs::read_to_string(rounds.join(name).join("prompt.md")).unwrap();
    assert_eq!(prompt("1"), "Write all words");
    let told = prompt("2");
    for words in [
        "Write all words\n\n---\n",
        "ends with: exit 1.",
        "- t.py::three\n- t.py::two\n",
        "    FAILED t.py::two - missing\n",
    ] {
        assert!(told.contains(words), "{words}:\n{told}");
    }
    let log = world.frites(["output", "1/c1@1", "test"]).expect(0).out();
    assert!(log.contains("== 2 failed"), "{log}");
    world.assert_clean();
}

#[test]
fn rounds_end_when_nothing_changes_or_nothing_gets_better() {
    let world = world();
    let document = run(&world, "5", &agent("echo one >> work", "true"), &[], 1);
    assert_eq!(ends(&document), [("unchanged", 1)]);
    let document = run(&world, "5", &agent("echo one >> work", "echo more >> work"), &[], 1);
    assert_eq!(ends(&document), [("no-further", 2)]);
    let none = run(&world, "0", &agent("echo one >> work", "echo two three >> work"), &[], 1);
    assert_eq!(none["repairs"], json!(null));
    world.assert_clean();
}

#[test]
fn candidates_without_a_round_are_named_with_the_reason() {
    let world = world();
    let script = "case $FRITES_CANDIDATE in c1) cat wanted > work;; c2) echo one > work;; c3) exit 7;; c4) ;; esac";
    let told = |rounds: &str, more: &[&str]| {
        let words = ["run", "-n", "4", "--rounds", rounds, "-p", "x", "--test", TEST];
        world.frites([&words[..], more, &["--", "sh", "-c", script]].concat()).expect(0).stderr
    };
    let lines = [
        "run 1: no round of repair for c3: its own command failed (exit 7)\n",
        "run 1: no round of repair for c4: its own command changed nothing\n",
        "1/c2: round 1 changed nothing; no further round follows\n",
    ];
    let first = told("2", &[]);
    lines.iter().for_each(|line| assert!(first.contains(line), "{line}:\n{first}"));
    assert!(told("1", &[]).contains("2/c2: round 1 changed nothing\n"), "there is no other anyway");
    assert!(!told("0", &[]).contains("no round"));
    let verified = told("2", &["--until-pass", "-j", "1"]);
    assert!(verified.contains(": no round of repair for c2: not judged\n"), "{verified}");
    world.assert_clean();
}

#[test]
fn round_that_makes_it_worse_is_taken_back_and_kept_as_an_iteration() {
    let world = world();
    let worse = "echo > work; echo x > other; rm wanted; echo one two three four five >> wanted";
    let document = run(&world, "3", &agent("echo one >> work; echo new > new", worse), &[], 1);
    assert_eq!(ends(&document), [("worse", 2)]);
    assert_eq!(document["candidates"][0]["iteration"], 3);
    assert_eq!(
        document["candidates"][0]["failing_tests"]["before"],
        json!(["t.py::three", "t.py::two"])
    );
    assert_eq!(world.tree("refs/frites/1/c1"), world.tree("refs/frites/1/c1~2"));
    assert_eq!(world.git(["show", "refs/frites/1/c1~1:other"]), "x");
    let worktree = world.worktree("1/c1");
    assert!(!worktree.join("other").exists() && worktree.join("new").exists());
    assert_eq!(fs::read_to_string(worktree.join("wanted")).unwrap(), "one two three\n");
    world.assert_clean();
}

/// A test that counts in the user's home on which content of `work` it ran.
fn counting(world: &World) -> String {
    let judged = world.home().join("judged");
    format!("tr '\\n' ' ' <work >>{0}; echo >>{0}; {TEST}", judged.display())
}

/// The contents on which that test ran, sorted.
fn judged(world: &World) -> Vec<String> {
    let judged = fs::read_to_string(world.home().join("judged")).unwrap();
    let mut trees: Vec<String> = judged.lines().map(|line| line.trim().to_owned()).collect();
    trees.sort();
    trees
}

#[test]
fn each_tree_is_judged_once_however_many_rounds_follow() {
    in_the_open_world();
    let world = world();
    let mark = world.home().join("mark");
    // The third attempt passes at the second try only.
    let test = format!(
        "if grep -q flaky work && ! [ -e {0} ]; then : >{0}; exit 1; fi; {1}",
        mark.display(),
        counting(&world)
    );
    let first = "case $FRITES_CANDIDATE in c1) echo one;; c2) echo two;; *) echo one two three flaky;; esac >work";
    let next =
        "[ $FRITES_CANDIDATE = c1 ] || echo \"$prompt\" | sed -n 's/^- t.py:://p' | head -1 >>work";
    let words = ["run", "-n", "3", "--rounds", "3", "--retries", "1", "--no-cache", "-p", "Do it"];
    let agent = agent(first, next);
    let more = ["--test", &test, "--", "sh", "-c", &agent];
    let answer = world.frites([&words[..], &more].concat()).expect(0);
    // Each failure is tried twice.
    let all = [
        "",
        "",
        "one",
        "one",
        "one two three flaky",
        "two",
        "two",
        "two one",
        "two one",
        "two one three",
    ];
    assert_eq!(judged(&world), all, "{}", answer.stderr);
    let told = |begin: &str| answer.stderr.lines().filter(|line| line.starts_with(begin)).count();
    assert_eq!(
        (told("1/c1: test"), told("1/c2: test"), told("1/c3: test")),
        (1, 3, 1),
        "{}",
        answer.stderr
    );
    for line in [
        "run 1: 1 of 3 passed; round 1 of 3 repairs c1, c2",
        "run 1: 1 of 3 passed; round 2 of 3 repairs c2",
    ] {
        assert!(answer.stderr.lines().any(|one| one == line), "{line}: {}", answer.stderr);
    }
    assert!(
        answer.stderr.contains("1/c1: succeeded")
            && answer.stderr.contains("; this round changed nothing")
    );
    let status = world.frites(["status", "1", "--json"]).expect(0).json();
    let verdict = &status["runs"][0]["verdict"];
    assert_eq!(verdict["recommended"], "c2", "{verdict:#}");
    assert_eq!(verdict["candidates"][2]["results"][0]["outcome"], "flaky");
    assert_eq!(verdict["effort"]["ran"], 9);
    for (place, tail) in
        [("1/c1", "== 2 failed"), ("1/c2@2", "== 1 failed"), ("1/c3", "== 0 failed")]
    {
        let log = world.frites(["output", place, "test"]).expect(0).out();
        assert!(log.contains(tail), "{place}: {log}");
    }
    world.assert_clean();
}

#[test]
fn outcome_and_log_of_a_tree_come_back_with_its_files() {
    in_the_open_world();
    let world = world();
    let test = counting(&world);
    let agent = agent("echo one >work", "echo x >work");
    let words = ["run", "-n", "1", "--rounds", "1", "--no-cache", "-p", "Do it", "--test", &test];
    world.frites([&words[..], &["--", "sh", "-c", &agent]].concat()).expect(1);
    assert_eq!(judged(&world), ["", "one", "x"]);
    let log = |place: &str| world.frites(["output", place, "test"]).expect(0).out();
    assert!(log("1/c1").contains("== 2 failed") && log("1/c1@2").contains("== 3 failed"));
    let entry = &world.first_candidate("1");
    assert_eq!(entry["iteration"], 3, "{entry:#}");
    world.assert_clean();
}

#[test]
fn prompt_of_a_round_has_the_log_also_after_one_that_changed_nothing() {
    let world = world();
    let first = agent("echo one >> work", "true");
    let answer = world.frites([
        "run", "-n", "1", "--rounds", "1", "-p", "Do it", "--test", TEST, "--", "sh", "-c", &first,
    ]);
    answer.expect(1);
    let told = "echo \"$prompt\" >told";
    let command = agent("true", told);
    world.frites(["retry", "1/c1", "--", "sh", "-c", &command]).expect(0);
    let told = fs::read_to_string(world.worktree("1/c1").join("told")).unwrap();
    assert!(told.contains("The end of its output:\n\n    FAILED t.py::"), "{told}");
    let rounds: Vec<_> = world.events().into_iter().filter(|e| e["event"] == "round").collect();
    assert_eq!(rounds.len(), 2, "one by `--rounds`, and one by hand");
    assert_eq!(rounds[1]["command"], json!(["sh", "-c", command]));
    let idle = world.frites(["retry", "1/c1", "--", "true"]).expect(0);
    assert!(idle.stderr.contains("; this round changed nothing\n"), "{}", idle.stderr);
    world.assert_clean();
}

#[test]
fn prompt_of_a_round_names_the_changes_that_were_undone() {
    let world = World::unborn();
    world.write("pkg/__init__.py", "\n");
    world.write("pkg/de.json", "Halo\n");
    world.commit("base");
    let agent =
        "cat > \"$HOME/told\"; cat \"$HOME/told\"; echo Hallo > pkg/de.json; echo > pkg/fr.json";
    let words = ["run", "-n", "1", "--rounds", "1", "-p", "Do it", "--test"];
    let test = ["grep -q Hallo pkg/*.json", "--", "sh", "-c", agent];
    world.frites([&words[..], &test[..]].concat()).expect(3);
    let told = world.frites(["output", "1/c1", "agent"]).expect(0).out();
    let base = world.git(["rev-parse", "--short=7", "HEAD"]);
    for words in [
        "It does not pass yet. ",
        "With all its changes it passes.",
        &format!("- pkg/de.json: as in commit {base}"),
        "- pkg/fr.json: taken out\n",
        "Without these changes, the test command `grep -q Hallo pkg/*.json` ends with: exit 1.",
    ] {
        assert!(told.contains(words), "{words}:\n{told}");
    }
    world.assert_clean();
}

#[test]
fn maker_is_the_command_that_made_what_is_there_now() {
    let world = world();
    let maker = || {
        let judged = world.frites(["judge", "--test", "true", "--json"]).expect(0).json();
        judged["candidates"][0]["maker"].clone()
    };
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", "echo one >> work"]).expect(0);
    assert_eq!(maker(), "sh -c echo one >> work");
    world.frites(["retry", "1/c1", "--", "sh", "-c", "echo two >> work"]).expect(0);
    assert_eq!(maker(), "sh -c echo two >> work");
    world.frites(["retry", "1/c1", "--", "true"]).expect(0);
    assert_eq!(maker(), "sh -c echo two >> work", "`true` made nothing of it");
    world.frites(["retry", "1/c1", "--yes"]).expect(0);
    assert_eq!(maker(), "sh -c echo one >> work");
}

#[test]
fn round_is_not_taken_back_over_what_no_capture_holds() {
    let ignored = "mkdir \"$o\"; echo '/o*' >>.gitignore; echo x >\"$o/kept\"";
    for (name, other) in [
        ("other", "git init -q $o; echo x >$o/.git/kept"),
        ("other", ignored),
        ("$(printf 'o\\377')", ignored),
    ] {
        let world = world();
        let good = format!("o=\"{name}\"; echo one >>work; echo x >\"$o\"");
        let worse = format!("o=\"{name}\"; echo >work; echo x >more; rm \"$o\"; {other}");
        let document = run(&world, "1", &agent(&good, &worse), &[], 1);
        assert_eq!(ends(&document), [("no-further", 2)], "{name}: {other}");
        let find = "find . -name kept";
        assert_ne!(world.sh(&world.worktree("1/c1"), find).expect(0).out(), "", "{name}: {other}");
    }
}

#[test]
fn round_that_hangs_counts_as_the_state_before_it() {
    let world = world();
    let hang = "echo x > other; sleep 600";
    let document = run(&world, "2", &agent("echo one >> work", hang), &["--timeout", "3s"], 1);
    assert_eq!(ends(&document), [("worse", 2)]);
    assert_eq!(document["decision"], "near-miss");
    assert_eq!(document["candidates"][0]["usable"], true);
    let quiet = run(&world, "2", &agent("echo one >> work", "sleep 600"), &["--timeout", "3s"], 1);
    assert_eq!(quiet["candidates"][0]["usable"], true, "{:#}", quiet["repairs"]);
    world.assert_clean();
}

#[test]
fn prompt_never_quotes_a_protected_file() {
    let world = world();
    // Its name is not UTF-8.
    world.write(OsStr::from_bytes(b"secret\xe9"), "the expected answer is 42\n");
    world.commit("a protected file");
    let first = agent("echo one >> work", "echo more >> work");
    let test = format!("cat secret*; sed 's/^/> /' secret*; {TEST}");
    let words = [
        "run",
        "-n",
        "1",
        "--rounds",
        "1",
        "--protect",
        "secret*",
        "--test",
        &test,
        "--",
        "sh",
        "-c",
    ];
    world.frites(words.into_iter().chain([first.as_str()])).expect(1);
    let prompt = fs::read_to_string(world.repo.join(".frites/runs/1/c1/prompt.md")).unwrap();
    assert!(!prompt.contains("42") && prompt.contains("[a line of a protected file]"), "{prompt}");
    world.assert_clean();
}

#[test]
fn repair_by_hand_takes_the_last_verdict_and_more_words() {
    let world = world();
    let agent = agent("echo one >> work", "echo two three >> work; echo \"$prompt\" > told");
    world.frites(["spawn", "-n", "1", "-p", "Do it", "--", "sh", "-c", &agent]).expect(0);
    let again = ["retry", "1/c1", "-p", "Mind the order"];
    world.frites(["judge", "--test", TEST]).expect(1);
    world.frites(again).expect(0);
    let told = || fs::read_to_string(world.repo.join(".frites/runs/1/c1/prompt.md")).unwrap();
    assert!(told().contains("Do it\n\n---\n") && told().ends_with("Mind the order\n"));
    // Nothing is known of this state, and later that it passed: the words are all that is new.
    let why = |answer: Answer| answer.expect(0).stderr.lines().next().unwrap().to_owned();
    let nothing = "1/c1: the new prompt names no failure: ";
    assert_eq!(
        why(world.frites(again)),
        format!("{nothing}the candidate has changed since it was judged")
    );
    assert_eq!(told(), "Do it\n\nMind the order");
    world.frites(["judge", "--test", TEST]).expect(0);
    assert_eq!(why(world.frites(again)), format!("{nothing}the candidate passed"));
    world.assert_clean();
}

#[test]
fn repair_of_an_attempt_that_did_not_end_well_leads_to_a_round_as_it_is() {
    let world = world();
    let words = [
        "run",
        "-n",
        "1",
        "-p",
        "Do it",
        "--test",
        TEST,
        "--",
        "sh",
        "-c",
        "echo one >> work; exit 3",
    ];
    world.frites(words).expect(4);
    let why = "1/c1: the new prompt names no failure: the candidate was not judged, because its own command failed";
    let answer = world.frites(["retry", "1/c1"]);
    assert!(answer.stderr.lines().any(|line| line == why), "{}", answer.stderr);
    answer.refuses(2, "the same command needs --yes");
    world.frites(["clean", "1"]).expect(0);
    let again = world.frites(["retry", "1/c1"]);
    let gone = again.refuses(128, "1/c1 has no worktree any more");
    let hint = "hint: start from what it was: `git frites spawn --from 1/c1`";
    assert!(gone.stderr.lines().any(|line| line == hint), "{}", gone.stderr);
    world.assert_clean();
}

/// Runs two rounds, and ends git-frites with this signal in the second one, which has no end.
fn interrupted_round(signal: &str) -> World {
    let world = world();
    let may_end = world.home().join("may-end");
    let hang = format!(
        "echo x > other; until [ -e {} ]; do sleep 0.1; done; echo two three >> work",
        may_end.display()
    );
    let agent = agent("echo one >> work", &hang);
    let words = ["run", "-n", "1", "--rounds", "3", "-p", "Write all words", "--test", TEST];
    let words = [&words[..], &["--", "sh", "-c", &agent]].concat();
    let mut command = world.command(&world.repo, "git-frites", words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| world.worktree("1/c1/other").exists());
    assert!(kill([signal, &child.id().to_string()]));
    let ended = child.wait_with_output().unwrap();
    if signal != "-KILL" {
        let hint = "hint: continue with `git frites run --resume 1`";
        assert!(answer(&ended).stderr.contains(hint), "{}", answer(&ended).stderr);
    }
    world
}

#[test]
fn interrupted_round_is_taken_back_when_the_run_is_resumed() {
    for signal in ["-INT", "-TERM", "-KILL"] {
        let world = interrupted_round(signal);
        let retry = world.frites(["retry", "1/c1"]).refuses(2, "the same command needs --yes");
        let why = "its own command was interrupted; `git frites run --resume 1` ";
        assert!(retry.stderr.contains(why), "{}", retry.stderr);
        let hint = "hint: continue with `git frites run --resume 1`";
        // A judging in between knows of no usable candidate, and changes nothing of that.
        let none = world.frites(["judge", "1", "--test", TEST]).expect(4);
        assert!(none.stderr.contains(hint), "{}", none.stderr);
        let resumed = world.frites(["run", "--resume", "1", "--rounds", "0", "--json"]).expect(1);
        let told = "warning: 1/c1: another round of it was interrupted; its files are again those of iteration 1";
        assert!(resumed.stderr.lines().any(|line| line == told), "{}", resumed.stderr);
        let work = "hint: its work is kept: `git frites diff 1/c1@2`";
        assert!(resumed.stderr.lines().any(|line| line == work), "{}", resumed.stderr);
        let document = resumed.json();
        assert_eq!(document["decision"], "near-miss");
        assert_eq!(document["recommended"], "c1");
        assert_eq!(document["candidates"][0]["state"], "succeeded");
        assert_eq!(world.git(["show", "refs/frites/1/c1~1:other"]), "x", "{signal}");
        assert_eq!(world.tree("refs/frites/1/c1"), world.tree("refs/frites/1/c1~2"));
        assert!(!world.worktree("1/c1/other").exists());
        // The rounds go on from there.
        fs::write(world.home().join("may-end"), "").unwrap();
        let passed = world.frites(["run", "--resume", "1", "--json"]).expect(0).json();
        assert_eq!(ends(&passed), [("passed", 4)]);
        world.assert_clean();
    }
}

#[test]
fn another_round_of_the_same_command_is_said_and_wants_a_yes() {
    let world = world();
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", "echo one >> work"]).expect(0);
    let answer = world.frites(["retry", "1/c1"]);
    let said = "1/c1 runs this again: sh -c 'echo one >> work'";
    assert!(answer.stderr.lines().any(|line| line == said), "{}", answer.stderr);
    answer.refuses(2, "the same command needs --yes");
    assert_eq!(world.git(["show", "refs/frites/1/c1:work"]), "\none");
    world.frites(["retry", "1/c1", "--yes"]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:work"]), "\none\none");
    world.assert_clean();
}
