//! The watch over oracle commands looks at the files of the user's checkouts where these commands
//! can write to them, and only there.
use std::collections::BTreeSet;
use std::fs;

use crate::common::{World, poll};
use crate::tool::{LANDLOCK, NAMESPACES, trials};

trials! {
    files_that_no_sealed_command_can_reach_are_not_looked_at: [NAMESPACES];
    a_file_that_sandbox_write_opens_is_watched: [NAMESPACES];
    a_killed_judge_in_sealed_worlds_reports_no_file: [NAMESPACES];
    a_file_whose_mode_changes_in_spite_of_landlock_is_named: [LANDLOCK];
}

/// A repository with one attempt, a directory `kept` and a file that the user edits, whose commands are
/// confined in this way.
fn world(mode: &str) -> World {
    let mut world = World::new();
    world.set_env("FRITES_SANDBOX_MODE", mode);
    world.write("kept/file", "1\n");
    world.commit("a directory");
    world.write("README", "edited by the user\n");
    world.attempts(&["echo changed >> src/lib.txt"]);
    world
}

fn judge(world: &World, test: &str) -> BTreeSet<String> {
    let judged = world.frites(["judge", "--no-cache", "--test", test]).expect(0);
    judged.warnings()
}

fn changed(name: &str) -> BTreeSet<String> {
    [format!("run 1 was judged: a file of your checkout was changed: '{name}'")].into()
}

fn files_that_no_sealed_command_can_reach_are_not_looked_at() {
    let mut world = world("sealed");
    let calls = |world: &World, call: &str| {
        let judged = world.frites(["judge", "-v", "--no-cache", "--test", "true"]).expect(0);
        judged.stderr.lines().filter(|line| line.starts_with(call)).count()
    };
    assert_eq!(calls(&world, "git status"), 0);
    // Once before for the watch, once for our own calls meanwhile, and once after.
    assert_eq!(calls(&world, "git config --list"), 3);
    fs::create_dir(world.home().join("opened")).unwrap();
    world.set_env("FRITES_SANDBOX_WRITE", world.home().join("opened"));
    assert_eq!(calls(&world, "git status"), 2);
    world.set_env("FRITES_SANDBOX_MODE", "landlock");
    assert_eq!(calls(&world, "git status"), 2);
}

fn a_file_that_sandbox_write_opens_is_watched() {
    let mut world = world("sealed");
    world.set_env("FRITES_SANDBOX_WRITE", world.repo.join("kept"));
    assert_eq!(judge(&world, "echo more >> kept/file"), changed("kept/file"));
    let side = world.home().join("side");
    world.git(["worktree", "add", "-q", side.to_str().unwrap(), "-b", "side"]);
    world.set_env("FRITES_SANDBOX_WRITE", &side);
    let test = format!("echo more >> '{}/README'", side.display());
    let side = side.display();
    assert_eq!(
        judge(&world, &test),
        [format!("run 1 was judged: a file of the checkout '{side}' was changed: 'README'")].into()
    );
}

fn a_killed_judge_in_sealed_worlds_reports_no_file() {
    let world = world("sealed");
    let mut command = world.command(&world.repo, "git-frites", ["judge", "--test", "sleep 4322"]);
    let mut child = command.spawn().unwrap();
    poll(|| world.sh(&world.repo, "pgrep -f '^sleep 4322$'").code == 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(judge(&world, "true"), BTreeSet::new());
    world.assert_clean();
}

fn a_file_whose_mode_changes_in_spite_of_landlock_is_named() {
    let world = world("landlock");
    let test = format!("chmod +x '{}/kept/file'", world.repo.display());
    assert_eq!(judge(&world, &test), changed("kept/file"));
}
