//! Where commands are confined, the watch looks at the configuration and at our refs alone.
use crate::common::{World, poll};
use crate::tool::{NAMESPACES, trials};

trials! {
    hooks_that_no_confined_command_can_reach_are_not_looked_at: [NAMESPACES];
    hooks_are_looked_at_if_paths_are_opened_to_attempts: [NAMESPACES];
    hooks_are_looked_at_if_paths_are_opened_to_judged_code: [NAMESPACES];
    configuration_is_looked_at_while_confined_commands_run: [NAMESPACES];
    a_killed_judge_in_sealed_worlds_reports_nothing: [NAMESPACES];
}

/// A repository with one attempt.
fn world() -> World {
    let mut world = World::new();
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.set_env("FRITES_SPAWN_HOME", "private");
    world.attempts(&["echo changed >> src/lib.txt"]);
    world
}

/// Runs git-frites with `words`, and `script` in the repository once its command runs: it waits for
/// the end of that. Gives what was said.
fn meanwhile(world: &World, words: &str, script: &str) -> String {
    // A guarded command writes to no other directory that it shares with the user.
    let shared = tempfile::tempdir().unwrap();
    let fifo = |name: &str| shared.path().join(name).display().to_string();
    let command = format!("echo 1 > new; echo > {}; read x < {}", fifo("ready"), fifo("go"));
    let script = format!(
        "rm -f {ready} {go}; mkfifo {ready} {go}
        git-frites {words} sh -c '{command}' 2> ~/said & child=$!
        read x < {ready}; {script}; echo > {go}; wait $child || :; cat ~/said",
        words = words,
        ready = fifo("ready"),
        go = fifo("go"),
    );
    world.sh(&world.repo, &script).expect(0).out()
}

fn hooks_that_no_confined_command_can_reach_are_not_looked_at() {
    let mut world = world();
    let change = "echo : > .git/hooks/pre-push; echo x >> .git/info/exclude; git branch new";
    let said = meanwhile(&world, "spawn -n 1 --", change);
    assert!(!said.contains("warning"), "{said}");
    // Without a guard they can be reached.
    world.set_env("FRITES_SPAWN_GUARD", "off");
    let change = "echo : > .git/hooks/pre-commit; echo x >> .git/info/exclude";
    let said = meanwhile(&world, "spawn -n 1 --", change);
    assert!(said.contains("hook 'pre-commit' was added"), "{said}");
    assert!(said.contains("'info/exclude' was changed"), "{said}");
}

fn hooks_are_looked_at_if_paths_are_opened_to_attempts() {
    let change = "echo : > .git/hooks/pre-push; echo x >> .git/info/exclude";
    let opened = tempfile::tempdir().unwrap();
    let opened = opened.path().display().to_string();
    for (setting, value) in [("FRITES_SPAWN_WRITE", &*opened), ("FRITES_SPAWN_HOME", "shared")] {
        let mut world = world();
        world.set_env(setting, value);
        let said = meanwhile(&world, "spawn -n 1 --", change);
        assert!(said.contains("hook 'pre-push' was added"), "{setting}: {said}");
        assert!(said.contains("'info/exclude' was changed"), "{setting}: {said}");
    }
}

fn hooks_are_looked_at_if_paths_are_opened_to_judged_code() {
    for mode in ["sealed", "landlock"] {
        let mut world = world();
        let hooks = world.repo.join(".git/hooks").display().to_string();
        world.set_env("FRITES_SANDBOX_MODE", mode);
        world.set_env("FRITES_SANDBOX_WRITE", &hooks);
        let test = format!("echo : > {hooks}/pre-push");
        let said = world.frites(["judge", "--test", &test]).stderr;
        assert!(said.contains("hook 'pre-push' was added"), "{mode}: {said}");
    }
}

fn configuration_is_looked_at_while_confined_commands_run() {
    let world = world();
    let said = meanwhile(&world, "spawn -n 1 --", "git config frites.oracle.test true");
    assert!(said.contains("config 'frites.oracle.test' was set to 'true'"), "{said}");
    world.frites(["judge", "--test", "true", "1"]).refuses(128, "the configuration of git-frites");
}

fn a_killed_judge_in_sealed_worlds_reports_nothing() {
    let world = world();
    let mut command = world.command(&world.repo, "git-frites", ["judge", "--test", "sleep 4322"]);
    let mut child = command.spawn().unwrap();
    poll(|| world.sh(&world.repo, "pgrep -f '^sleep 4322$'").code == 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let judged = world.frites(["judge", "--no-cache", "--test", "true"]).expect(0);
    assert!(judged.warnings().is_empty(), "{}", judged.stderr);
    world.assert_clean();
}
