//! What commands printed: shown under each failure, kept with its iteration, and found again.
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::common::{World, answer, poll};

/// A command of a shell that prints the numbers up to `last` and fails.
fn fails_after(last: u32) -> String {
    format!("seq {last}; exit 3")
}

#[test]
fn output_of_a_silent_command_says_that_it_printed_nothing() {
    let world = World::new();
    world.frites(["spawn", "--", "sh", "-c", "echo x >>README"]).expect(0);
    let silent = world.frites(["output", "1/c1"]).expect(0);
    assert_eq!(
        (silent.out().as_str(), silent.stderr.as_str()),
        ("", "1/c1 agent printed nothing\n")
    );
}

#[test]
fn a_failed_attempt_shows_the_end_of_its_output_and_where_all_of_it_is() {
    let world = World::new();
    let run = |options: &[&str]| {
        let command = fails_after(30);
        let words = [&["spawn", "-n", "1"], options, &["--", "sh", "-c", &command]].concat();
        world.frites(words).expect(4).stderr
    };
    let told = run(&[]);
    let end = "  | 28\n  | 29\n  | 30\n  the whole output: git frites output 1/c1 agent\n";
    let (line, rest) = told.split_once('\n').unwrap();
    assert!(line.starts_with("1/c1: failed (exit 3) in "), "{told}");
    assert!(rest.starts_with(end), "{told}");
    let told = run(&["-v"]);
    assert!(told.contains("  | 11\n") && !told.contains("  | 10\n"), "20 lines:\n{told}");
    assert!(!run(&["-q"]).contains("  | "));
    let silent = world.frites(["spawn", "-n", "1", "--", "false"]).expect(4).stderr;
    assert!(!silent.contains("the whole output"), "there is none:\n{silent}");
    let late =
        ["spawn", "-n", "1", "--timeout", "1s", "--", "sh", "-c", "echo began; exec sleep 99"];
    let told = world.frites(late).expect(4).stderr;
    assert!(told.contains("timed-out") && told.contains("\n  | began\n"), "{told}");
    world.assert_clean();
}

#[test]
fn a_failed_stage_shows_the_end_of_its_output_on_the_base_and_on_a_candidate() {
    let world = World::new();
    world.attempts(&["echo good > new", "echo bad > new"]);
    let test = "test -e new || { echo no new; exit 1; }; cat new; grep -q good new";
    let told = world.frites(["judge", "--test", test]).expect(0).stderr;
    assert!(
        told.contains("\n  | no new\n  the whole output: git frites output 1/@base test\n"),
        "{told}"
    );
    assert!(
        told.contains("\n  | bad\n  the whole output: git frites output 1/c2 test\n"),
        "{told}"
    );
    assert!(!told.contains("  | good"), "c1 passed:\n{told}");
    let back = "or send it back: `git frites retry 2/c1`";
    assert!(!told.contains("retry"), "another one passed:\n{told}");
    world.frites(["spawn", "--", "sh", "-c", "echo bad > new"]).expect(0);
    let told = world.frites(["judge", "--test", test]).expect(1).stderr;
    assert!(told.contains(back), "{told}");
    let setup = [
        "-c",
        "frites.spawn.setup=echo cannot; exit 4",
        "frites",
        "spawn",
        "-n",
        "1",
        "--",
        "true",
    ];
    let told = world.run(&world.repo, "git", setup).expect(4).stderr;
    assert!(told.contains("setup: exit 4)\n  | cannot\n"), "{told}");
    world.assert_clean();
}

#[test]
fn first_error_of_a_failed_stage_and_the_lines_after_it_are_shown_before_an_end_without_one() {
    let world = World::new();
    world.attempts(&["echo bad > new"]);
    let first = "x.c:3:5: error: no y";
    let test = format!(
        "test ! -e new || {{ printf 'make x\n{first}\nx.c:9:1: error: no z\n'; seq 99; exit 1; }}"
    );
    let file = world.home().join("junit.xml");
    let junit = ["judge", "--test", &test, "--junit", file.to_str().unwrap()];
    let told = world.frites(junit).expect(1).stderr;
    let second = "x.c:9:1: error: no z";
    let shown = format!("\n  | {first}\n  | {second}\n  | 1\n  | …\n  | 99\n");
    assert!(told.contains(&shown), "{told}");
    let report = world.frites(["report", "-o", "-"]).expect(0).out();
    let cause = format!("{first}\n{second}\n1\n");
    assert!(report.contains(&cause) && report.contains("…\n94\n"), "{report}");
    let reported = fs::read_to_string(file).unwrap();
    assert!(reported.contains(&cause) && reported.contains("…\n87\n"), "{reported}");
    world.frites(["judge", "--test", "seq 9; echo 'error: no x'; exit 1"]).expect(1);
    let told = world.frites(["-v", "judge", "--test", "echo 'error: a'; echo 'error: b'; exit 1"]);
    assert!(!told.expect(1).stderr.contains("…"), "it stands in the end anyway");
    world.assert_clean();
}

#[test]
fn escape_sequences_of_a_command_are_not_shown() {
    let world = World::new();
    let evil = r"printf '\033[31mred\033[0m \033]0;title\007 10%%\r\033[2Kdone\n'; exit 1";
    let told = world.frites(["spawn", "-n", "1", "--", "sh", "-c", evil]).expect(4).stderr;
    assert!(told.contains("\n  | done\n") && !told.contains('\x1b'), "{told:?}");
    let raw = world.frites(["output", "1/c1"]).expect(0).stdout;
    assert!(raw.starts_with(b"\x1b[31mred"), "a pipe gets what was written");
}

#[test]
fn each_round_keeps_its_output_and_its_prompt() {
    let world = World::new();
    let round = |n: u32, extra: &[&str]| {
        let command = format!("cat; echo round {n}; echo {n} > new");
        [extra, &["-p", &format!("prompt {n}\n"), "--", "sh", "-c", &command]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    world.frites(round(1, &["spawn", "-n", "1"])).expect(0);
    world.frites(["judge", "--test", "cat new; exit 1"]).expect(1);
    world.frites(round(2, &["retry", "1/c1"])).expect(0);
    world.frites(["judge", "--test", "cat new; exit 1"]).expect(1);
    // A change by hand is an iteration without a round.
    world.sh(&world.worktree("1/c1"), "echo by hand > new").expect(0);
    world.frites(["capture", "1/c1"]).expect(0);
    world.frites(round(4, &["retry", "1/c1"])).expect(0);
    let output = |words: &[&str]| world.frites([&["output"], words].concat()).expect(0).out();
    for (at, n) in [("1/c1@1", 1), ("1/c1@2", 2), ("1/c1@4", 4), ("1/c1", 4), ("c1", 4)] {
        let log = output(&[at, "agent"]);
        assert!(log.ends_with(&format!("prompt {n}\nround {n}\n")), "{at}: {log}");
    }
    assert_eq!(output(&["1/c1@1", "test"]), "1\n");
    assert_eq!(output(&["1/c1@1"]), "1\n", "the judging tells more");
    assert_eq!(output(&["1/c1@2"]), "2\n");
    let last = "prompt 1\n\nprompt 4\nround 4\n";
    assert_eq!(output(&["1/c1"]), last, "the last round was not judged");
    let kept = world.frites(["output", "1/c1", "test"]).expect(0);
    assert_eq!(kept.out(), "2\n");
    assert!(
        kept.stderr
            .contains("test has not run on the newest state of 1/c1: this is its output on @2"),
        "{}",
        kept.stderr
    );
    world.frites(["output", "1/c1@3"]).refuses(128, "1/c1@3 has no output");
    let prompt = |n: u32| {
        fs::read_to_string(world.repo.join(format!(".frites/runs/1/c1/rounds/{n}/prompt.md")))
            .unwrap()
    };
    assert_eq!(prompt(1), "prompt 1\n");
    assert!(prompt(2).ends_with("prompt 2\n"), "{}", prompt(2));
    world.assert_clean();
}

#[test]
fn a_candidate_called_base_has_output_of_its_own() {
    let world = World::new();
    world.frites(["spawn", "-c", "base", "--", "sh", "-c", "echo attempt > new"]).expect(0);
    world.frites(["judge", "--test", "cat new || echo none; exit 1"]).expect(1);
    let output = |place: &str| world.frites(["output", place, "test"]).expect(0).out();
    assert_eq!([output("1/base"), output("1/@base")].concat().matches("none").count(), 1);
    assert!(output("1/base").starts_with("attempt\n"));
}

#[test]
fn each_judging_keeps_its_output_and_a_cached_one_is_not_kept_twice() {
    let world = World::new();
    world.attempts(&["echo good > new"]);
    let test = |word: &str| format!("echo {word} $(cat new 2>/dev/null); exit 1");
    for word in ["first", "second", "third"] {
        world.frites(["judge", "--lint", "echo linted", "--test", &test(word)]).expect(1);
    }
    let read =
        |path: &str| fs::read_to_string(world.repo.join(".frites/runs/1").join(path)).unwrap();
    assert_eq!(read("c1/test.log"), "third good\n");
    assert_eq!(read("c1/judgings/1/test.log"), "first good\n");
    assert_eq!(read("c1/judgings/1.2/test.log"), "second good\n");
    assert_eq!(read("c1/judgings/1/lint.log"), "linted\n");
    assert_eq!(
        (read("@base/test.log").as_str(), read("@base/judgings/1/test.log").as_str()),
        ("third\n", "first\n")
    );
    let told = world.frites(["output", "1/c1@1", "test"]).expect(0);
    assert_eq!(told.out(), "third good\n");
    assert!(told.stderr.contains("judgings/1.2/test.log', '"), "{}", told.stderr);
    // What passes is cached: judging it again runs nothing, and keeps nothing.
    for _ in 0..3 {
        world.frites(["judge", "--test", "cat new 2>/dev/null || true"]).expect(0);
    }
    assert_eq!(read("c1/judgings/1.3/test.log"), "third good\n");
    assert!(!world.repo.join(".frites/runs/1/c1/judgings/1.4").exists());
    assert!(!world.repo.join(".frites/runs/1/c1/lint.log").exists(), "it was not run this time");
    world.assert_clean();
}

#[test]
fn damaged_record_of_the_logs_hides_none_of_them() {
    let world = World::new();
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", "echo 1; echo 1 > new"]).expect(0);
    world.frites(["judge", "--test", "echo judged; false"]).expect(1);
    fs::write(world.repo.join(".frites/runs/1/c1/logs.toml"), "nonsense").unwrap();
    let output = |words: &[&str]| world.frites([&["output"], words].concat()).expect(0).out();
    assert_eq!(output(&["1/c1", "test"]), "judged\n");
    world.frites(["retry", "1/c1", "--", "sh", "-c", "echo 2; echo 2 > new"]).expect(0);
    assert_eq!(output(&["1/c1", "agent"]), "2\n");
    let kept = world.repo.join(".frites/runs/1/c1/rounds/0/agent.log");
    assert_eq!(fs::read_to_string(kept).unwrap(), "1\n");
    world.assert_clean();
}

#[test]
fn output_without_a_command_tells_how_each_candidate_ended() {
    let world = World::new();
    let script = "echo attempt $FRITES_INDEX; echo $FRITES_INDEX > new; test $FRITES_INDEX != 3";
    world.frites(["spawn", "-n", "3", "--", "sh", "-c", script]).expect(0);
    let output = |words: &[&str]| world.frites([&["output"], words].concat()).expect(0).out();
    assert_eq!(output(&["c2"]), "attempt 2\n");
    world
        .frites(["judge", "--lint", "echo lint; ! grep -q 1 new", "--test", "echo test; exit 1"])
        .expect(1);
    assert_eq!(
        (output(&["c1"]), output(&["c2"]), output(&["c3"])),
        ("lint\n".into(), "test\n".into(), "attempt 3\n".into())
    );
    assert_eq!(output(&["1/@base"]), "test\n");
    assert_eq!(output(&["@base", "lint"]), output(&["1/@base", "lint"]));
    assert_eq!(world.frites(["logs", "c2", "lint", "--tail", "1"]).expect(0).out(), "lint\n");
    let all = output(&[]);
    let titles: Vec<&str> = all.lines().filter(|line| line.starts_with("==> ")).collect();
    assert_eq!(titles.len(), 3, "{all}");
    assert!(
        titles[0].starts_with("==> 1/c1 lint: /") && titles[0].ends_with("/c1/lint.log <=="),
        "{all}"
    );
    assert_eq!(output(&["agent"]).matches("==> ").count(), 3, "a lone word that is a command");
    world.frites(["output", "-f"]).refuses(2, "-f follows the output of one candidate");
    world.frites(["output", "c2", "build"]).refuses(128, "1/c2 has no output of build");
    world.frites(["output", "c9"]).refuses(128, "c9");
    world.frites(["output", "1/c1/x"]).refuses(2, "not a valid name");
    world.assert_clean();
}

#[test]
fn output_is_followed_until_the_command_ends() {
    let world = World::new();
    let gate = world.home().join("gate");
    let script =
        format!("echo began; until test -e '{}'; do sleep 0.01; done; echo ended", gate.display());
    let words = ["spawn", "-n", "1", "--keep", "--", "sh", "-c", &script];
    let mut spawn = world.command(&world.repo, "git-frites", words);
    let spawn = spawn.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let log = world.repo.join(".frites/runs/1/c1/agent.log");
    poll(|| fs::read(&log).is_ok_and(|text| text == b"began\n"));
    let seen = world.home().join("seen");
    let mut follow = world.command(&world.repo, "git-frites", ["output", "-f", "1/c1"]);
    let mut follow = follow.stdout(fs::File::create(&seen).unwrap()).spawn().unwrap();
    poll(|| fs::read(&seen).is_ok_and(|text| text == b"began\n"));
    assert!(follow.try_wait().unwrap().is_none(), "it waits for more");
    fs::write(&gate, "").unwrap();
    assert!(follow.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&seen).unwrap(), "began\nended\n");
    answer(&spawn.wait_with_output().unwrap()).expect(4);
}

#[test]
fn nothing_is_moved_through_a_link_of_an_attempt() {
    let world = World::new();
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", "echo 1; echo 1 > new"]).expect(0);
    let records = world.repo.join(".frites/runs/1/c1");
    for name in ["rounds", "judgings"] {
        symlink(&elsewhere, records.join(name)).unwrap();
    }
    world.frites(["judge", "--test", "echo 1; false"]).expect(1);
    world.frites(["retry", "1/c1", "--", "sh", "-c", "echo 2; echo 2 > new"]).expect(0);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(records.join("rounds/1/agent.log")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(records.join("judgings/1/test.log")).unwrap(), "1\n");
}
