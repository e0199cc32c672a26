//! `FRITES_LOG`, `-v` and `GIT_TRACE*`: what a maintainer sees of the program's inside, on standard
//! error or in a file.
use std::fs;

use serde_json::Value;

use crate::common::{Answer, World};

/// A run of one candidate with a change.
fn one_attempt() -> World {
    let world = World::new();
    world.attempts(&["echo x >> README"]);
    world
}

/// The git processes that git-frites itself started: from git's own event trace, where a process
/// that another git started has a `/` in its session id. The id of git-frites' parent `git` is the
/// first.
fn traced_calls(world: &World) -> Vec<String> {
    let trace = fs::read_to_string(world.home().join("trace2")).unwrap();
    let events = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter(|e| e["event"] == "start" && !e["sid"].as_str().unwrap().contains('/'))
        .map(|e| e["argv"].to_string())
        .collect()
}

/// `git-frites …`, started without git, with more variables.
fn frites(world: &World, args: &[&str], env: &[(&str, &str)]) -> Answer {
    let mut command = world.command(&world.repo, "git-frites", args);
    command.envs(env.iter().copied());
    crate::common::answer(&command.output().unwrap())
}

#[test]
fn log_debug_names_each_git_call_once_with_its_time() {
    let world = one_attempt();
    let trace = world.home().join("trace2");
    let env = [("FRITES_LOG", "debug"), ("GIT_TRACE2_EVENT", trace.to_str().unwrap())];
    let test = "git status && git log";
    let answer = frites(&world, &["judge", "--test", test], &env).expect(0);
    let of_calls = |line: &&str| line.contains("git_frites::git::call: git ");
    let lines: Vec<&str> = answer.stderr.lines().filter(of_calls).collect();
    let traced = traced_calls(&world);
    assert!(traced.len() > 3, "{traced:?}");
    assert_eq!(lines.len(), traced.len(), "{}\n{traced:#?}", answer.stderr);
    for line in lines {
        assert!(
            line.contains(" exit=") && line.contains(" ms=") && line.contains(" DEBUG "),
            "{line}"
        );
    }
    let process = |what: &str| format!("git_frites::process: {what} sh -c 'git status && git log'");
    for what in ["starting", "ended"] {
        assert!(answer.stderr.contains(&process(what)), "{}", answer.stderr);
    }
    assert!(answer.stderr.contains(" judge{run=1}: "), "{}", answer.stderr);
    assert!(answer.out().contains("passed test"), "{}", answer.out());
}

#[test]
fn verbose_shows_each_git_call_in_one_line_and_standard_output_is_the_same() {
    let world = one_attempt();
    frites(&world, &["diff"], &[]).expect(0);
    let plain = frites(&world, &["diff", "--stat"], &[]).expect(0);
    let trace = world.home().join("trace2");
    let env = [("GIT_TRACE2_EVENT", trace.to_str().unwrap())];
    for args in
        [["diff", "--stat", "-v"], ["-v", "diff", "--stat"], ["diff", "--verbose", "--stat"]]
    {
        let _ = fs::remove_file(&trace);
        let answer = frites(&world, &args, &env).expect(0);
        assert_eq!(answer.out(), plain.out());
        let lines: Vec<&str> = answer.stderr.lines().collect();
        assert!(!lines.is_empty());
        assert_eq!(lines.len(), traced_calls(&world).len(), "{}", answer.stderr);
        for line in lines {
            assert!(
                line.starts_with("git ") && line.contains(" exit=") && line.contains(" ms="),
                "{line}"
            );
        }
    }
    // A log on standard error has the calls already.
    let answer = frites(&world, &["diff", "--stat", "-v"], &[("FRITES_LOG", "debug")]).expect(0);
    assert!(answer.stderr.lines().all(|line| !line.starts_with("git ")), "{}", answer.stderr);
}

#[test]
fn commands_that_only_look_start_no_process_and_git_is_asked_for_its_version_once() {
    let world = one_attempt();
    world.git(["config", "frites.oracle.test", "true"]);
    frites(&world, &["judge"], &[]).expect(0);
    frites(&world, &["apply", "-m", "Land"], &[]).expect(0);
    let trace = world.home().join("trace2");
    let env = [("GIT_TRACE2_EVENT", trace.to_str().unwrap())];
    let calls = |args: &[&str], more: &[(&str, &str)]| {
        fs::write(&trace, "").unwrap();
        frites(&world, args, &[&env[..], more].concat()).expect(0);
        traced_calls(&world)
    };
    for args in
        [&["status"][..], &["status", "1"], &["status", "--json"], &["log"], &["path", "1/c1"]]
    {
        assert_eq!(calls(args, &[]), [""; 0], "{args:?}");
    }
    let offers = &["--", "git-frites", "status", ""];
    assert_eq!(calls(offers, &[("FRITES_COMPLETE", "fish")]), [""; 0]);
    let others = calls(&["diff", "--stat"], &[]);
    assert!(
        !others.is_empty() && others.iter().all(|call| !call.contains("version")),
        "{others:?}"
    );
    fs::remove_file(world.repo.join(".frites/git-program")).unwrap();
    let asked =
        |calls: Vec<String>| calls.iter().filter(|call| call.contains("\"version\"")).count();
    assert_eq!(asked(calls(&["diff"], &[])), 1);
    assert_eq!(asked(calls(&["diff"], &[])), 0);
}

#[test]
fn capture_of_plain_files_starts_no_process() {
    let world = World::new();
    world.attempts(&["echo x >> README; echo y > src/lib.txt; echo z > new"; 2]);
    // git reads the configuration where there are settings of ours.
    world.git(["config", "--global", "--remove-section", "frites.limits"]);
    // A git that is known to be new enough.
    frites(&world, &["config"], &[]).expect(0);
    let trace = world.home().join("trace2");
    let env = [("GIT_TRACE2_EVENT", trace.to_str().unwrap())];
    let diff = || {
        fs::write(&trace, "").unwrap();
        let answer = frites(&world, &["diff", "--json", "1"], &env).expect(0);
        assert_eq!(traced_calls(&world), [""; 0]);
        answer
    };
    let first = diff();
    assert_eq!(first.stderr, "captured 1/c1@1\ncaptured 1/c2@1\n");
    let again = diff();
    assert_eq!((again.stderr.as_str(), again.out()), ("", first.out()));
    assert_eq!(world.git(["show", "refs/frites/1/c1:src/lib.txt"]), "y");
    world.assert_clean();
}

#[test]
fn log_file_takes_the_log_instead_of_standard_error() {
    let world = one_attempt();
    let file = world.home().join("log");
    let env =
        [("FRITES_LOG", "git_frites::git=debug"), ("FRITES_LOG_FILE", file.to_str().unwrap())];
    let answer = frites(&world, &["judge", "--test", "true"], &env).expect(0);
    assert!(!answer.stderr.contains("DEBUG"), "{}", answer.stderr);
    let log = fs::read_to_string(&file).unwrap();
    assert!(log.contains("git_frites::git::call: git "), "{log}");
    assert!(!log.contains("git_frites::process"), "the filter names git alone:\n{log}");
    let nowhere = [("FRITES_LOG", "debug"), ("FRITES_LOG_FILE", "/nowhere/log")];
    frites(&world, &["status"], &nowhere).refuses(128, "could not open '/nowhere/log'");
    frites(&world, &["status"], &[("FRITES_LOG", "a=b=c")])
        .refuses(2, "FRITES_LOG is not a valid filter");
}

#[test]
fn commands_see_nothing_of_a_log_and_their_outcomes_stay_cached() {
    let world = World::new();
    let log = [("FRITES_LOG", "debug"), ("FRITES_LOG_FILE", "/dev/null"), ("GIT_TRACE", "1")];
    let script = "env > env; echo x >> README";
    frites(&world, &["spawn", "-n", "1", "--", "sh", "-c", script], &log).expect(0);
    let seen = world.git(["cat-file", "-p", "refs/frites/1/c1:env"]);
    assert!(!seen.contains("FRITES_LOG") && !seen.contains("GIT_TRACE"), "{seen}");
    let test = "! env | grep -e FRITES_LOG -e GIT_TRACE";
    frites(&world, &["judge", "--test", test], &log).expect(0);
    let answer = frites(&world, &["judge", "--json", "--test", test], &[]).expect(0);
    assert_eq!(answer.json()["candidates"][0]["results"][0]["cached"], true, "{}", answer.out());
}

#[test]
fn git_traces_reach_standard_error_and_no_message() {
    let world = one_attempt();
    for variable in ["GIT_TRACE", "GIT_TRACE2", "GIT_TRACE_SETUP"] {
        let answer = frites(&world, &["diff", "1/c1"], &[(variable, "1")]).expect(0);
        assert!(answer.stderr.contains("git"), "{variable}: {}", answer.stderr);
        assert!(answer.out().starts_with("diff --git"), "{}", answer.out());
    }
    let bare = frites(&world, &["diff", "1/c1"], &[("GIT_TRACE", "0")]).expect(0);
    assert!(!bare.stderr.contains("trace:"), "{}", bare.stderr);
    // A git that fails says why in its first line: no trace comes before it.
    fs::write(world.repo.join(".git/packed-refs"), "broken\n").unwrap();
    let words = |env: &[(&str, &str)]| {
        let answer = frites(&world, &["spawn"], env);
        let mut lines = answer.stderr.lines().map(str::to_owned);
        lines.find(|line| line.starts_with("fatal: ")).unwrap_or(answer.stderr)
    };
    assert_eq!(words(&[("GIT_TRACE", "1")]), words(&[]));
}
