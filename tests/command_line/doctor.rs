//! `git frites doctor`: what the machine gives, and what a run in the repository would have.
use std::fs;

use serde_json::Value;

use crate::common::{Answer, World, make_executable, write};

/// The finding about this, of the machine or the repository.
#[track_caller]
fn finding(document: &Value, what: &str) -> Value {
    let all = [&document["machine"], &document["repository"]["findings"]];
    let mut findings = all.into_iter().filter_map(Value::as_array).flatten();
    findings.find(|f| f["what"] == what).unwrap_or_else(|| panic!("{what}: {document:#}")).clone()
}

fn doctor(world: &World) -> Answer {
    world.frites(["doctor", "--json"])
}

#[test]
fn doctor_names_what_a_run_would_have_and_changes_nothing() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.write(".frites.toml", "oracle.build = 'true'\noracle.test = ['sh', '-c', 'true']\n");
    world.write(".gitignore", ".env\n");
    world.commit("configuration");
    world.write(".env", "secret");
    world.git(["config", "frites.seed.copy", ".env"]);
    let document = doctor(&world).expect(0).json();
    assert_eq!(document["works"], true);
    assert_eq!(finding(&document, "git")["health"], "ok");
    assert_eq!(finding(&document, "cache")["health"], "ok");
    let version = world.git(["version"]);
    assert!(version.contains(finding(&document, "git")["found"].as_str().unwrap()), "{version}");
    let repository = &document["repository"];
    assert_eq!(repository["seeds"], serde_json::json!([".env"]));
    assert_eq!(repository["layers"]["bytes"], 0);
    assert_eq!(repository["commands"][0]["command"], "true");
    assert_eq!(repository["commands"][1]["source"], ".frites.toml");
    let text = world.frites(["doctor"]).expect(0).out();
    for row in ["  test ", "`sh -c true`, from .frites.toml\n", "  seeds ", " .env\n"] {
        assert!(text.contains(row), "{text}");
    }
    assert_eq!(fs::read_dir(world.home().join("cache")).unwrap().count(), 0, "{text}");
    assert!(!world.repo.join(".frites").exists());
    world.assert_clean();
}

#[test]
fn without_a_test_or_a_shell_doctor_warns_and_works() {
    let mut world = World::new();
    world.set_env("SHELL", "/bin/sh");
    let answer = doctor(&world).expect(0);
    let document = answer.json();
    assert_eq!(finding(&document, "commands")["health"], "missing");
    assert_eq!(finding(&document, "completion")["health"], "missing");
    assert_eq!(document["works"], true);
    let told = world.frites(["doctor"]).expect(0).stderr;
    assert!(
        told.contains("hint: commands: name a test: `git config frites.oracle.test CMD`\n"),
        "{told}"
    );
    world.set_env("SHELL", "/bin/zsh");
    write(&world.home().join(".zfunc/_git-frites"), "");
    assert_eq!(finding(&doctor(&world).expect(0).json(), "completion")["health"], "ok");
    world.set_env("SHELL", "/usr/bin/bash");
    assert_eq!(finding(&doctor(&world).expect(0).json(), "completion")["health"], "missing");
    write(&world.home().join(".bashrc"), "source <(git frites completions bash)\n");
    assert_eq!(finding(&doctor(&world).expect(0).json(), "completion")["health"], "ok");
}

#[test]
fn missing_manual_is_named_with_the_way_to_read_it() {
    let mut world = World::new();
    let document = doctor(&world).expect(0).json();
    assert_eq!(finding(&document, "manual")["health"], "missing", "{document:#}");
    let told = world.frites(["doctor"]).expect(0).stderr;
    assert!(told.contains("hint: manual: read it with `git frites man`; "), "{told}");
    assert!(world.frites(["-h"]).expect(0).out().contains("`git frites man judge`"));
    for (place, variable) in [("share/man", "PATH"), ("manuals", "MANPATH")] {
        let page = world.home().join(place).join("man1/git-frites.1.gz");
        write(&page, "");
        let before = world.env(variable);
        let own = if variable == "PATH" { "bin" } else { place };
        let own = world.home().join(own);
        world.set_env(variable, format!("{}:{}", own.display(), before.display()));
        let document = doctor(&world).expect(0).json();
        assert_eq!(finding(&document, "manual")["health"], "ok", "{document:#}");
        fs::remove_file(&page).unwrap();
        let document = doctor(&world).expect(0).json();
        assert_eq!(finding(&document, "manual")["health"], "missing", "{document:#}");
    }
}

#[test]
fn what_git_frites_cannot_work_with_is_broken() {
    let mut world = World::new();
    world.git(["config", "frites.oracle.lint", "no-such-program-here --all"]);
    let answer = world.frites(["doctor"]).expect(1);
    assert!(answer.out().contains("no-such-program-here is not installed\n"), "{}", answer.out());
    assert!(answer.stderr.contains("hint: lint: install it, or "), "{}", answer.stderr);
    world.git(["config", "frites.oracle.nonsense", "x"]);
    let document = doctor(&world).expect(1).json();
    let found = finding(&document, "repository");
    assert!(found["found"].as_str().unwrap().contains("unknown key"), "{found}");
    world.set_env("XDG_CACHE_HOME", world.repo.join("README"));
    let document = doctor(&world).expect(1).json();
    assert_eq!(finding(&document, "cache")["health"], "broken");
    // An old git.
    let bin = world.home().join("bin");
    write(&bin.join("git"), "#!/bin/sh\necho git version 2.30.0\n");
    make_executable(&bin.join("git"));
    let path =
        std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&world.env("PATH"))));
    world.set_env("PATH", path.unwrap());
    let answer = world.run(&world.repo, "git-frites", ["doctor"]).expect(1);
    assert!(answer.out().contains("git 2.30.0 is too old"), "{}", answer.out());
    assert!(answer.stderr.contains("hint: git: update git"), "{}", answer.stderr);
}

#[test]
fn doctor_works_outside_of_a_repository_and_before_the_first_commit() {
    let world = World::empty("elsewhere");
    let document = world.run(&world.repo, "git-frites", ["doctor", "--json"]).expect(0).json();
    assert!(document.get("repository").is_none(), "{document:#}");
    assert_eq!(finding(&document, "git")["health"], "ok");
    let document = doctor(&World::unborn()).expect(1).json();
    assert_eq!(finding(&document, "commit")["health"], "broken");
}

#[test]
fn program_of_another_python_is_named_where_the_module_is_missing() {
    let mut world = World::new();
    world.write("pytest.ini", "[pytest]\n");
    world.commit("a project that needs pytest");
    let bin = world.home().join("bin");
    write(&bin.join("python3"), "#!/bin/sh\nexit 3\n");
    make_executable(&bin.join("python3"));
    let path = format!("{}:{}", bin.display(), world.env("PATH").display());
    world.set_env("PATH", path);
    write(&bin.join("pytest"), "#!/bin/sh\n");
    make_executable(&bin.join("pytest"));
    let doctor = world.frites(["doctor"]).expect(1);
    assert!(doctor.out().contains("python3 -m pytest is not installed\n"), "{}", doctor.out());
    assert!(
        doctor.stderr.contains("`git config frites.oracle.test pytest`\n"),
        "{}",
        doctor.stderr
    );
    for command in [&["judge", "-n"][..], &["run", "-n", "1", "--", "touch", "ran"]] {
        let told = world.frites(command).expect(128).stderr;
        let fatal = "fatal: the test command cannot run: python3 has no module 'pytest'\n";
        assert!(told.contains(fatal) && told.contains(": `--test pytest`\n"), "{told}");
    }
    world.git(["config", "frites.oracle.test", "pytest"]);
    let doctor = world.frites(["doctor"]).expect(0).out();
    assert!(doctor.contains("`pytest`, from "), "{doctor}");
    world.frites(["judge", "-n"]).expect(0);
}

/// An agent that costs something with each call that does not ask for its version.
const AGENT: &str =
    "#!/bin/sh\ntest \"$*\" = --version && echo 1.2.3 || echo \"$*\" >>\"$HOME/called\"\n";

#[test]
fn agent_is_listed_with_version_and_login_and_without_a_call_that_costs() {
    let mut world = World::new();
    let bin = world.home().join("bin");
    fs::create_dir(&bin).unwrap();
    write(&bin.join("claude"), AGENT);
    make_executable(&bin.join("claude"));
    let path = format!("{}:{}", bin.display(), world.env("PATH").to_str().unwrap());
    world.set_env("PATH", path);
    for name in ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"] {
        world.set_env(name, "");
    }
    world.set_env("IS_SANDBOX", "1");
    let without = finding(&doctor(&world).expect(0).json(), "agent claude");
    assert_eq!(without["health"], "missing", "{without}");
    assert_eq!(without["found"], "1.2.3; it is not logged in");
    world.set_env("ANTHROPIC_API_KEY", "a key");
    let with = finding(&doctor(&world).expect(0).json(), "agent claude");
    assert_eq!((&with["health"], &with["found"]), (&"ok".into(), &"1.2.3; it has a login".into()));
    assert!(!world.home().join("called").exists());
    // A run says it before anything starts.
    world.set_env("ANTHROPIC_API_KEY", "");
    let told = world.frites(["run", "--agent", "claude", "-p", "x", "--test", "true"]).stderr;
    let at = |words: &str| told.find(words).unwrap_or_else(|| panic!("{words}: {told}"));
    assert!(at("the agent 'claude' is not logged in") < at("run 1: 1 candidate"), "{told}");
    world.assert_clean();
}
