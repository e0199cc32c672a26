//! The environment of candidates' and oracle commands: `[env]`, and the variables of git-frites.
use std::collections::BTreeMap;

use crate::common::{OF_THE_TESTS, World, make_executable, write};

/// The environment that a command wrote with `env -0`.
fn variables(bytes: &str) -> BTreeMap<String, String> {
    bytes
        .split('\0')
        .filter_map(|v| v.split_once('='))
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

/// The variables that a candidate's command and the test command saw under a configuration.
fn seen(settings: &str) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let mut world = World::new();
    for (name, value) in
        [("AWS_SECRET", "s3"), ("OPENAI_API_KEY", "k"), ("EDITOR", "ed"), ("LC_TIME", "C")]
    {
        world.set_env(name, value);
    }
    let oracle = world.home().join("oracle-env");
    world.write(".frites.toml", settings);
    world.commit("settings");
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", "env -0 > env"]).expect(0);
    world.frites(["judge", "--test", &format!("env -0 > '{}'", oracle.display())]).expect(0);
    let read = |bytes: Vec<u8>| variables(&String::from_utf8(bytes).unwrap());
    let candidate = read(
        world.run(&world.repo, "git", ["cat-file", "-p", "refs/frites/1/c1:env"]).expect(0).stdout,
    );
    (candidate, read(std::fs::read(oracle).unwrap()))
}

#[test]
fn command_inherits_every_variable_that_is_not_denied() {
    crate::common::in_the_open_world();
    let (candidate, oracle) = seen("[env]\ndeny = [\"AWS_*\", \"EDITOR\"]\n");
    for sees in [&candidate, &oracle] {
        assert_eq!(sees.get("OPENAI_API_KEY").map(String::as_str), Some("k"));
        assert!(
            sees.keys().all(|name| !name.starts_with("AWS_") && name != "EDITOR"),
            "{:?}",
            sees.keys()
        );
    }
    assert_eq!(candidate["FRITES_CANDIDATE"], "c1");
    // Settings of the user's reach commands: here the tests' own.
    let ours =
        |name: &String| name.starts_with("FRITES_") && !OF_THE_TESTS.contains(&name.as_str());
    assert!(!oracle.keys().any(ours), "{:?}", oracle.keys());
}

#[test]
fn clean_environment_has_only_basic_and_passed_variables() {
    let (candidate, oracle) =
        seen("[env]\nmode = \"clean\"\npass = [\"*_API_KEY\", \"AWS_*\"]\ndeny = [\"AWS_*\"]\n");
    for sees in [&candidate, &oracle] {
        for name in ["PATH", "HOME", "TERM", "LC_ALL", "LC_TIME", "TZ", "TMPDIR", "OPENAI_API_KEY"]
        {
            assert!(sees.contains_key(name), "{name} is missing: {:?}", sees.keys());
        }
        for name in ["AWS_SECRET", "EDITOR", "CARGO_HOME", "GIT_AUTHOR_DATE"] {
            assert!(!sees.contains_key(name), "{name} has passed");
        }
    }
    assert_eq!(candidate["FRITES_RUN"], "1", "ours are always there");
}

#[test]
fn invalid_environment_mode_or_pattern_is_refused() {
    let world = World::new();
    world.write(".frites.toml", "[env]\nmode = \"cleam\"\n");
    world
        .frites(["spawn"])
        .refuses(128, ".frites.toml:2:8: 'env.mode' takes one of inherit, clean");
    world.write(".frites.toml", "[env]\ndeny = [\"A[\"]\n");
    world.frites(["spawn"]).refuses(128, "[env]: 'A[' is not a pattern");
}

#[test]
fn ceiling_elsewhere_a_namespace_and_ignored_children_change_nothing() {
    let mut world = World::new();
    world.attempts(&["echo x >> README"]);
    let work = |world: &World| {
        let script = "trap '' CHLD; git-frites judge -q --test true && git-frites spawn -q -n 1 -- sh -c 'echo y > NEW; exit 0' && git-frites clean -q --all";
        world.sh(&world.repo, script).expect(0).out()
    };
    assert_eq!(work(&world), "1/c1\n2\n");
    for (name, value) in [("GIT_CEILING_DIRECTORIES", "/nowhere:/usr"), ("GIT_NAMESPACE", "ours")] {
        world.set_env(name, value);
        world.frites(["status"]).expect(0);
        let run = world.spawn(["-n", "1", "--", "sh", "-c", "echo x >> README"]);
        world.frites(["judge", "-q", "--test", "true", &run]).expect(0);
        assert_ne!(world.git(["for-each-ref", &format!("refs/frites/{run}/c1")]), "", "{name}");
        assert_eq!(world.git(["for-each-ref", "refs/namespaces"]), "");
        world.unset_env(name);
        assert!(world.frites(["status"]).expect(0).out().contains(&format!("run {run}")));
    }
    world.assert_clean();
}

#[test]
fn git_that_is_too_old_is_fatal_for_every_command_that_starts_it_before_anything_happens() {
    let mut world = World::new();
    let real = world.sh(&world.repo, "command -v git").expect(0).out();
    let bin = world.home().join("old");
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\nif test \"$last\" = version; then echo 'git version 2.39.5 (Apple Git-154)'; else exec {} \"$@\"; fi\n",
        real.trim()
    );
    write(&bin.join("git"), script);
    make_executable(&bin.join("git"));
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(world.env("PATH"));
    world.set_env("PATH", path);
    for args in [&["spawn"][..], &["judge"], &["run", "--", "true"], &["clean"], &["diff"]] {
        // Not through git, which would put its own directory first on PATH.
        let answer = world.run(&world.repo, "git-frites", args);
        answer.refuses(128, "git 2.39.5 is too old: git-frites needs git 2.41 or newer");
    }
    assert!(!world.repo.join(".frites").exists());
    world.run(&world.repo, "git-frites", ["status"]).expect(0);
}
