//! Failures that the confinement of a command explains: a refused write is named with the way out,
//! and nothing can be told of the candidate. Credentials are hidden, and the settings beside them
//! are not.
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::sealed::{confined, sealed};
use crate::common::{Answer, World, make_executable, write};
use crate::tool::{LANDLOCK, NAMESPACES, trials};

trials! {
    a_write_that_a_sealed_world_refuses_is_named_and_nothing_can_be_told: [NAMESPACES];
    so_is_one_that_landlock_refuses: [LANDLOCK];
    a_file_that_a_sealed_world_hides_is_named_where_it_is_missed: [NAMESPACES];
    a_failure_that_speaks_of_a_refusal_of_nobody_stays_a_failure: [NAMESPACES];
    a_candidate_that_says_so_itself_gets_neither_a_pass_nor_a_repair: [NAMESPACES];
    of_npms_settings_the_credentials_alone_are_hidden: [NAMESPACES];
    a_setup_that_fails_says_which_credentials_it_does_not_see: [NAMESPACES];
}

/// A directory of the user that commands cannot write to.
fn closed(world: &World) -> PathBuf {
    let closed = world.home().join("closed");
    fs::create_dir_all(&closed).unwrap();
    closed
}

fn assert_named(mut world: World, who: &str) {
    let closed = closed(&world);
    let dir = closed.display();
    world.set_env("FRITES_SANDBOX_HIDE", format!("['{dir}']"));
    world.git(["config", "frites.oracle.test", &format!("echo x > {dir}/new && cat {dir}/new")]);
    world.attempts(&["echo one > README", "echo two >> README"]);
    for _ in 0..2 {
        let answer = world.frites(["judge", "--json"]).expect(3);
        let hint = format!(
            "hint: {who} refused a write to {dir}: `git config --add frites.sandbox.write {dir}`"
        );
        let told = answer.stderr.lines().filter(|line| *line == hint).count();
        assert_eq!(told, 1, "{hint}\n{}", answer.stderr);
        let verdict = answer.json();
        assert_eq!(verdict["decision"], "undecided", "{verdict:#}");
        let base = &verdict["baseline"]["results"][0];
        let candidates = verdict["candidates"].as_array().unwrap();
        for result in candidates.iter().map(|c| &c["results"][0]).chain([base]) {
            assert_eq!(result["outcome"], "cannot-tell", "{verdict:#}");
            assert_eq!(result["obstacle"]["directory"], dir.to_string(), "{verdict:#}");
            assert_eq!(result["cached"], Value::Null, "{verdict:#}");
        }
        let reason = verdict["rationale"].as_str().unwrap();
        assert!(reason.contains(&format!("a write to '{dir}' was refused")), "{reason}");
    }
    assert!(!closed.join("new").exists());
    let write = world.env("FRITES_SANDBOX_WRITE").to_string_lossy().into_owned();
    world.set_env("FRITES_SANDBOX_WRITE", format!("['{write}', '{dir}']"));
    world.frites(["judge"]).expect(0);
}

fn a_write_that_a_sealed_world_refuses_is_named_and_nothing_can_be_told() {
    assert_named(sealed(), "the sealed world");
}

fn so_is_one_that_landlock_refuses() {
    assert_named(confined("landlock"), "Landlock");
}

fn a_file_that_a_sealed_world_hides_is_named_where_it_is_missed() {
    let mut world = sealed();
    let closed = closed(&world);
    world.set_env("FRITES_SANDBOX_HIDE", format!("['{}']", closed.display()));
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    world.attempts(&["echo one > README"]);
    for directory in [temporary.path(), &closed] {
        let script = directory.join("check.sh");
        write(&script, "#!/bin/sh\ntrue\n");
        make_executable(&script);
        let path = script.display();
        let argv = format!("['{path}']");
        for (test, code) in [
            (path.to_string(), 128),
            (argv, 128),
            (format!("sh {path}"), 1),
            (format!("cat {path}; exit 127"), 128),
        ] {
            world.git(["config", "frites.oracle.test", &test]);
            let answer = world.frites(["judge", "--no-cache"]).expect(code);
            let told = answer.stderr.clone();
            // The last word says so, too: the sentence of the verdict, or the error.
            let lines = format!("{}{told}", answer.out());
            let is_last =
                |line: &str| line.starts_with("near-miss: ") || line.starts_with("fatal: ");
            let last = lines.lines().find(|line| is_last(line)).unwrap_or_default();
            assert!(last.contains(&format!("'{path}' is hidden from the commands")), "{lines}");
            let hint =
                format!("hint: the sealed world hides {path}: keep it where commands see it");
            let times = told.lines().filter(|line| line.starts_with(&hint)).count();
            assert_eq!(times, 1, "{test}: {told}");
        }
        // A path that is nowhere, and one that nobody calls missing, are no matter of the world.
        for test in [format!("cat {path}.gone; exit 1"), format!("echo {path} is mine; exit 1")] {
            world.git(["config", "frites.oracle.test", &test]);
            let told = world.frites(["judge", "--no-cache"]).expect(1).stderr;
            assert!(!told.contains("hides"), "{test}: {told}");
        }
    }
    world.assert_clean();
}

fn judged(world: &World, code: i32, test: &str) -> Answer {
    world.frites(["judge", "--json", "--no-cache", "--test", test]).expect(code)
}

fn a_failure_that_speaks_of_a_refusal_of_nobody_stays_a_failure() {
    let mut world = sealed();
    let closed = closed(&world);
    let dir = closed.display();
    world.set_env("FRITES_SANDBOX_HIDE", format!("['{dir}']"));
    world.attempts(&["echo one > README"]);
    for test in [
        // A test of an error of another kind, and one of a file of its own.
        format!("echo 'open {dir}/new: Permission denied'; exit 1"),
        "touch own; echo \"$PWD/own: Read-only file system\"; exit 1".to_owned(),
        "touch ~/own; echo ~/own: Read-only file system; exit 1".to_owned(),
        "echo /missing/directory/new: Read-only file system; exit 1".to_owned(),
        "echo /proc/sys/kernel/x: Read-only file system; exit 1".to_owned(),
        "echo Read-only file system; exit 1".to_owned(),
    ] {
        let answer = judged(&world, 1, &test);
        assert!(!answer.stderr.contains("refused a write"), "{test}: {}", answer.stderr);
    }
    // A missing program is named as ever.
    judged(&world, 128, &format!("echo {dir}/new: Read-only file system; exit 127"));
    world.assert_clean();
}

fn a_candidate_that_says_so_itself_gets_neither_a_pass_nor_a_repair() {
    let mut world = sealed();
    let closed = closed(&world);
    let dir = closed.display();
    world.set_env("FRITES_SANDBOX_HIDE", format!("['{dir}']"));
    let test = format!(
        "! grep -q liar README || {{ echo {dir}/new: Read-only file system; exit 1; }}; \
         ! grep -q bad README"
    );
    world.attempts(&["echo liar > README", "echo bad > README; echo more >> README"]);
    let verdict = judged(&world, 3, &test).json();
    assert_eq!(verdict["decision"], "undecided", "{verdict:#}");
    assert_eq!(verdict["verified"], false);
    world.attempts(&["echo liar > README", "echo good > README; seq 9 >> README"]);
    let verdict = judged(&world, 0, &test).json();
    assert_eq!(verdict["recommended"], "c2", "{verdict:#}");
    let attempt = "echo started >> \"$HOME/shared/rounds\"; echo liar > README";
    let words = ["run", "-n", "1", "--rounds", "2", "--test", &test, "--", "sh", "-c", attempt];
    let _ = world.frites(words).expect(3);
    let rounds = fs::read_to_string(world.home().join("shared/rounds")).unwrap();
    assert_eq!(rounds, "started\n");
}

fn of_npms_settings_the_credentials_alone_are_hidden() {
    let mut world = sealed();
    let home = world.home();
    let settings = "@team:registry=https://me:secret@npm.example.com/\n\
                    //npm.example.com/:_authToken=secret\nsave-exact=true\n";
    fs::write(home.join(".npmrc"), settings).unwrap();
    fs::write(home.join(".netrc"), "machine example.com password secret\n").unwrap();
    let shown = "@team:registry=https://npm.example.com/\nsave-exact=true\n";
    world.attempts(&["echo one > README"]);
    let test = "cat ~/.npmrc ~/.netrc > ~/shared/seen; echo x >> ~/.npmrc; exit 0";
    let seen = |world: &World| {
        world.frites(["judge", "--no-cache", "--test", test]).expect(0);
        fs::read_to_string(home.join("shared/seen")).unwrap()
    };
    assert_eq!(seen(&world), shown);
    world.set_env("FRITES_SANDBOX_HIDE", "['!~/.netrc']");
    assert_eq!(seen(&world), format!("{shown}machine example.com password secret\n"));
    world.set_env("FRITES_SANDBOX_HIDE", "['!~/.npmrc']");
    assert_eq!(seen(&world), settings);
    world.set_env("FRITES_SANDBOX_HIDE", "['~/.npmrc', '~/.netrc']");
    assert_eq!(seen(&world), "");
    assert_eq!(fs::read_to_string(home.join(".npmrc")).unwrap(), settings);
}

fn a_setup_that_fails_says_which_credentials_it_does_not_see() {
    let world = sealed();
    let home = world.home();
    world.attempts(&["echo one > README"]);
    world.git(["config", "frites.oracle.test", "true"]);
    world.git(["config", "frites.spawn.setup", "exit 1"]);
    let hints = || {
        let answer = world.frites(["judge"]).expect(3);
        let about = |line: &&str| line.starts_with("hint: commands do not see the credentials");
        answer.stderr.lines().filter(about).map(str::to_owned).collect::<Vec<_>>()
    };
    fs::write(home.join(".npmrc"), "save-exact=true\n").unwrap();
    assert!(hints().is_empty());
    fs::write(home.join(".netrc"), "machine example.com\n").unwrap();
    fs::write(home.join(".npmrc"), "_auth=secret\n").unwrap();
    let hint = "hint: commands do not see the credentials in ~/.netrc, ~/.npmrc: to show a file \
                whole, `git config --add frites.sandbox.hide '!~/.netrc'`";
    assert_eq!(hints(), [hint]);
}
