//! Output for people: its words do not depend on where it goes, only a terminal's are cut and
//! coloured, and a command ends cleanly if its output cannot be written.
use std::fs;
use std::process::{Command, Stdio};

use crate::common::transcript::{assert_shown, judged_by_true, transcript};
use crate::common::{Answer, World, answer, poll};

fn plain(command: &mut Command) -> Answer {
    answer(&command.output().unwrap())
}

fn frites(world: &World, words: &[&str]) -> Command {
    let words: Vec<&str> = std::iter::once("frites").chain(words.iter().copied()).collect();
    world.command(&world.repo, "git", words)
}

#[test]
fn every_command_prints_the_transcript() {
    crate::common::in_the_open_world();
    let seen = transcript(|world, words| {
        let answer = plain(&mut frites(world, words));
        // These grow with every option and key, and are held against the manual elsewhere.
        if [&["-h"][..], &["config"]].contains(&words) {
            Answer { stdout: b"...\n".to_vec(), ..answer }
        } else {
            answer
        }
    });
    assert!(!seen.contains('\x1b'), "no colour without a terminal");
    assert_shown("transcript", seen);
}

#[test]
fn output_to_a_pipe_is_never_cut_or_coloured() {
    let expected = transcript(|world, words| plain(&mut frites(world, words)));
    // -h is clap's, which breaks its lines to COLUMNS as it should.
    let without_help = |text: &str| text.split_once("$ git frites --version").unwrap().1.to_owned();
    for (name, value) in [("COLUMNS", "40"), ("NO_COLOR", "1"), ("TERM", "xterm-256color")] {
        let seen = transcript(|world, words| plain(frites(world, words).env(name, value)));
        assert_eq!(without_help(&seen), without_help(&expected), "{name}={value}");
    }
}

#[test]
fn colours_obey_options_and_environment() {
    let world = judged_by_true();
    world.attempts(&["echo x >>README"]);
    let colored = |words: &[&str], env: &[(&str, &str)]| {
        let mut command = frites(&world, words);
        let answer = plain(command.envs(env.iter().copied())).expect(0);
        answer.out().contains('\x1b')
    };
    assert!(!colored(&["judge"], &[]));
    /// Options, variables, whether there is colour.
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], bool);
    let cases: &[Case<'_>] = &[
        (&["--color=always"], &[], true),
        (&["--color=always"], &[("NO_COLOR", "1")], true),
        (&["--color=never"], &[("CLICOLOR_FORCE", "1")], false),
        (&[], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "0")], false),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")], true),
    ];
    for (options, env, expected) in cases {
        for verb in [&["status"][..], &["judge", "--replay"], &["config"], &["diff", "1/c1"]] {
            assert_eq!(
                colored(&[verb, *options].concat(), env),
                *expected,
                "{verb:?} {options:?} {env:?}"
            );
        }
    }
    // An error's first word is coloured, and says the same without.
    let refused = plain(frites(&world, &["status", "nothing"]).env("CLICOLOR_FORCE", "1"));
    assert!(
        refused.stderr.starts_with("\x1b[31mfatal:\x1b[0m there is no run"),
        "{}",
        refused.stderr
    );
}

#[test]
fn closed_or_full_stdout_ends_a_command_cleanly() {
    let full = cfg!(target_os = "linux");
    let world = judged_by_true();
    world.attempts(&["echo x >>README", "seq 5000 >>README"]);
    world.frites(["judge"]).expect(0);
    let commands: &[&str] = &[
        "-h",
        "--version",
        "config",
        "status",
        "diff",
        "diff 1/c2",
        "judge --replay",
        "log",
        "path 1/c1",
        "completions zsh",
    ];
    for words in commands {
        let line =
            |redirection: &str| world.sh(&world.repo, &format!("git-frites {words} {redirection}"));
        let closed = line(">&-");
        assert_eq!(
            (closed.code, closed.stderr.contains("fatal")),
            (0, false),
            "{words}: {}",
            closed.stderr
        );
        if full {
            let answer = line(">/dev/full")
                .refuses(128, "could not write the output: No space left on device");
            assert!(answer.stderr.contains("free disk space"), "{}", answer.stderr);
        }
        let answer = without_reader(&world, words);
        assert!(
            answer.out().starts_with("141\n") && !answer.out().contains("fatal"),
            "{words}: {}",
            answer.out()
        );
    }
    world.assert_clean();
}

/// Runs a command whose reader is gone before anything is written: the shell itself holds the pipe
/// for a moment longer than the reader. Prints its exit code and its standard error.
fn without_reader(world: &World, words: &str) -> Answer {
    let line = "{ until test -e gone && ! (printf x) 2>/dev/null; do sleep 0.01; done; code=0; git-frites WORDS 2>err || code=$?; echo $code >code; } \
                | { exec <&-; : >gone; }; cat code err; rm gone code err";
    world.sh(&world.repo, &line.replace("WORDS", words)).expect(0)
}

#[test]
fn command_does_all_its_work_without_a_reader() {
    let world = judged_by_true();
    world.git(["config", "frites.hooks.verdict", "sh -c 'cat >../verdict.json'"]);
    world.git(["config", "frites.hooks.landed", "sh -c 'cat >>../landed.json'"]);
    world.attempts(&["echo x >>README"]);
    let is_written = |name: &str| world.repo.join("..").join(name).exists();
    without_reader(&world, "judge --junit ../junit.xml");
    assert!(is_written("junit.xml") && is_written("verdict.json"));
    for (words, told) in [
        ("apply --commit", "landed on the new branch"),
        ("apply --undo 1/c1", "the branch is deleted"),
        ("apply --merge", "is merged into"),
        ("run --merge -- sh -c 'echo y >>README'", "2/c1@1 is merged into"),
    ] {
        let answer = without_reader(&world, words);
        assert!(
            answer.out().starts_with("141\n") && answer.out().contains(told),
            "{}",
            answer.out()
        );
        world.git(["switch", "-q", "main"]);
    }
    let landed = fs::read_to_string(world.repo.join("../landed.json")).unwrap();
    assert_eq!(landed.matches("\"hook\": \"landed\"").count(), 3, "{landed}");
}

#[test]
fn closed_stderr_does_not_stop_a_command() {
    let world = judged_by_true();
    let answer = world
        .sh(&world.repo, "git-frites spawn -q 2>&-; git-frites judge 2>&- || echo $?")
        .expect(0);
    assert_eq!(answer.out(), "1\n4\n".replace("4\n", &answer.out()[2..]), "{}", answer.out());
    assert!(answer.out().ends_with("4\n"), "{}", answer.out());
}

#[test]
fn status_watch_prints_each_change_once_and_ends() {
    let world = judged_by_true();
    let script = "until test -e go; do sleep 0.01; done; echo x >>README";
    let mut spawn = world.command(
        &world.repo,
        "git-frites",
        ["spawn", "-q", "-n", "1", "--", "sh", "-c", script],
    );
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.frites(["status", "1"]).out().contains("running"));
    let watch = world
        .command(&world.repo, "git-frites", ["status", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(world.worktree("1/c1").join("go"), "").unwrap();
    let told = answer(&watch.wait_with_output().unwrap()).expect(0).out();
    assert!(
        ["1/c1\trunning\n1/c1\tsucceeded\n", "1/c1\tsucceeded\n"].contains(&told.as_str()),
        "{told}"
    );
    assert!(spawn.wait().unwrap().success());
    world.frites(["status", "--watch", "--json"]).refuses(2, "cannot be used with");
}

#[test]
fn failure_is_a_document_where_json_is_wanted() {
    let world = World::new();
    let failed = |words: &[&str], code: i32| {
        let answer = world.frites(words).expect(code);
        let json = answer.json();
        assert_eq!(json["error"]["exit_code"], code, "{words:?}");
        let message = json["error"]["message"].as_str().unwrap().to_owned();
        assert!(answer.stderr.contains(&message), "{words:?}: {}", answer.stderr);
        assert!(json["error"]["hints"][0].is_string(), "{words:?}");
        message
    };
    assert_eq!(failed(&["judge", "--json"], 128), "there is no run yet");
    assert!(failed(&["judge", "--json", "--jobs", "x"], 2).contains("'x'"));
    world.judged("true", &["echo x > README"]);
    world.write("README", "changed\n");
    failed(&["apply", "--json"], 128);
    assert_eq!(world.frites(["judge", "9"]).expect(128).out(), "", "nobody asked for JSON");
    // A command of the user's that is called so has nothing to do with it.
    assert_eq!(world.frites(["spawn", "-n", "x", "--", "a", "--json"]).expect(2).out(), "");
}

#[test]
fn document_that_was_printed_is_the_only_one() {
    let world = World::new();
    world.judged("true", &["echo theirs > README"]);
    world.write("README", "ours\n");
    world.commit("conflict");
    let answer = world.frites(["apply", "--json", "--conflicts"]).expect(1);
    assert!(answer.json()["error"].is_null(), "{}", answer.out());
}

#[test]
fn quiet_says_in_one_line_why_there_is_no_winner() {
    let world = World::new();
    world.attempts(&["echo x > README"]);
    let failed = world.frites(["judge", "-q", "--test", "false"]).expect(1);
    assert_eq!(failed.out(), "");
    assert!(
        failed.stderr.starts_with("near-miss: c1 is the one usable candidate, and it "),
        "{}",
        failed.stderr
    );
    assert_eq!(failed.stderr.lines().count(), 1);
    let passed = world.frites(["judge", "-q", "--test", "true"]).expect(0);
    assert_eq!((passed.out().as_str(), passed.stderr.as_str()), ("1/c1\n", ""));
}

#[test]
fn setup_of_worktrees_is_announced_and_so_is_the_end_of_each() {
    let world = World::new();
    world.git(["config", "frites.spawn.setup", "echo made > made"]);
    let answer = world.frites(["spawn", "-n", "3"]).expect(0);
    let line = "run 1: setup of 3 worktrees with `echo made > made`\n";
    assert!(answer.stderr.contains(line), "{}", answer.stderr);
    for candidate in ["1/c1", "1/c2", "1/c3"] {
        let line = format!("\n{candidate}: set up in ");
        assert!(answer.stderr.contains(&line), "{}", answer.stderr);
    }
    assert_eq!(world.frites(["spawn", "-q", "-n", "1"]).expect(0).stderr, "");
}
