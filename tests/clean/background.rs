//! The removal of worktrees: the names are free at once, and the files go in the background if they
//! are many.
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{World, poll, write};

/// More files than are deleted at once.
const MANY: usize = 1100;

/// A repository with so many files that a worktree of it is deleted in the background.
fn large() -> World {
    let world = World::new();
    for at in 0..MANY {
        write(&world.repo.join(format!("d{}/{at}", at % 7)), "x\n");
    }
    world.commit("many files");
    world
}

/// The directory of all worktrees.
fn root(world: &World) -> PathBuf {
    world.repo.join(".frites/worktrees")
}

/// What is left of removed worktrees.
fn trash(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(root(world)).into_iter().flatten().flatten().map(|e| e.path());
    let is_trash =
        |path: &PathBuf| path.file_name().unwrap().as_encoded_bytes().starts_with(b".trash");
    entries.filter(is_trash).collect()
}

#[test]
fn many_files_are_deleted_in_the_background_and_their_names_are_free_at_once() {
    let world = large();
    let run = world.attempts(&["echo x >> README", "echo y > new", "true"]);
    let answer = world.frites(["clean", "--json"]).expect(0).json();
    assert!(!root(&world).join(&run).exists());
    assert_eq!(world.git(["worktree", "list"]).lines().count(), 1);
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites"]), "");
    for candidate in 0..3 {
        // A block of 4 KiB for each file.
        let bytes = answer["candidates"][candidate]["bytes"].as_u64().unwrap();
        assert!(bytes >= MANY as u64 * 4096, "{answer}");
    }
    assert_eq!(world.git(["show", &format!("refs/frites/{run}/c2:new")]), "y");
    // The names are free, also while files are still being deleted.
    world.frites(["spawn", "-q", "--run", "again"]).expect(0);
    poll(|| trash(&world).is_empty());
    assert!(root(&world).join("again/c1/README").exists());
    world.assert_clean();
}

#[test]
fn deletion_that_was_killed_is_finished_by_the_next_command() {
    let world = large();
    let run = world.spawn(["-n", "1"]);
    let left = root(&world).join(".trash-abcdef/worktree");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    world
        .run(
            &world.repo,
            "cp",
            ["-r".as_ref(), world.worktree(&format!("{run}/c1")).as_os_str(), left.as_os_str()],
        )
        .expect(0);
    world.frites(["spawn", "-q"]).expect(0);
    poll(|| trash(&world).is_empty());
    assert!(world.worktree(&format!("{run}/c1/README")).exists());
    world.assert_clean();
}

/// A process that an attempt left behind would be ended, and the attempt flagged for it.
#[test]
fn attempt_that_cleans_waits_for_the_deletion() {
    let world = large();
    let run = world.spawn(["-n", "1"]);
    let clean = format!("git frites clean {run} && ls -A ../..");
    // It changes nothing, so that no candidate is usable.
    world.frites(["spawn", "-q", "-n", "1", "--run", "by", "--", "sh", "-c", &clean]).expect(4);
    assert_eq!(world.first_candidate("by")["state"], "empty");
    let log = fs::read_to_string(world.repo.join(".frites/runs/by/c1/agent.log")).unwrap();
    assert!(log.contains("by") && !log.contains(".trash"), "{log}");
    assert!(!root(&world).join(&run).exists());
}

/// The git processes that a command starts to move refs.
fn ref_updates(world: &mut World, args: &[&str]) -> Vec<String> {
    let trace = world.home().join("trace2");
    let _ = fs::remove_file(&trace);
    world.set_env("GIT_TRACE2_EVENT", &trace);
    world.frites(args).expect(0);
    world.unset_env("GIT_TRACE2_EVENT");
    let trace = fs::read_to_string(trace).unwrap_or_default();
    let events = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let started = events.filter(|e| e["event"] == "start").map(|e| e["argv"].to_string());
    started.filter(|argv| argv.contains("update-ref")).collect()
}

#[test]
fn loose_refs_of_a_run_are_deleted_without_a_git_process() {
    let mut world = World::new();
    let run = world.spawn(["-n", "4"]);
    assert_eq!(ref_updates(&mut world, &["clean", "-q", "--discard", "--forget"]), [""; 0]);
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites", "refs/frites"]), "");
    // As git does, it leaves no log that a new ref of that name would continue, and no directory.
    for left in ["refs/heads/frites", "logs/refs/heads/frites"] {
        assert!(!world.repo.join(".git").join(left).exists(), "{left}");
    }
    for directory in ["refs/frites", "logs/refs/frites"] {
        assert!(!world.repo.join(".git").join(directory).join(&run).exists(), "{directory}");
    }
    world.assert_clean();
}

/// What is forgotten next is not recorded first, and a run that stays is recorded as it is.
#[test]
fn states_of_candidates_are_recorded_only_if_their_run_stays() {
    let world = World::new();
    let objects = || world.git(["count-objects"]).split(' ').next().unwrap().to_owned();
    let forgotten = world.spawn(["-n", "3"]);
    let before = objects();
    world.frites(["clean", "-q", "--discard", "--forget", &forgotten]).expect(0);
    assert_eq!(objects(), before, "no state was stored");
    let run = world.spawn(["-n", "3"]);
    let kept = world.worktree(&format!("{run}/c2"));
    world.git(["worktree", "lock", kept.to_str().unwrap()]);
    world.frites(["clean", "-q", "--discard", "--forget", &run]).expect(1);
    let states =
        world.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/frites/*/@state/*"]);
    assert_eq!(states, "@state/c1\n@state/c3");
    world.git(["worktree", "unlock", kept.to_str().unwrap()]);
    world.frites(["clean", "-q", "--discard", "--forget", &run]).expect(0);
    world.assert_clean();
}

#[test]
fn packed_branches_of_a_run_are_deleted_in_one_transaction() {
    let mut world = World::new();
    world.spawn(["-n", "4"]);
    world.git(["pack-refs", "--all"]);
    let processes = ref_updates(&mut world, &["clean", "-q", "--discard"]);
    assert_eq!(processes.len(), 1, "{processes:#?}");
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites"]), "");
}

/// Another git packs refs all the time: no ref of the run comes back, and none of the user is lost.
#[test]
fn refs_that_are_packed_while_they_are_deleted_stay_deleted() {
    let world = World::new();
    for i in 0..20 {
        world.git(["update-ref", &format!("refs/heads/user-{i}"), "HEAD"]);
    }
    let go = world.home().join("go");
    write(&go, "");
    let pack = "while [ -e \"$0\" ]; do git pack-refs --all || exit 1; git update-ref refs/heads/x HEAD; done";
    let mut packing = std::process::Command::new("sh")
        .args(["-c", pack, go.to_str().unwrap()])
        .current_dir(&world.repo)
        .spawn()
        .unwrap();
    for _ in 0..12 {
        let run = world.spawn(["-n", "4"]);
        world.frites(["clean", "-q", "--discard", "--forget", &run]).expect(0);
        assert_eq!(world.git(["for-each-ref", "refs/heads/frites", "refs/frites"]), "");
        let users = world.git(["for-each-ref", "--format=%(refname)", "refs/heads/user-*"]);
        assert_eq!(users.lines().count(), 20);
    }
    fs::remove_file(go).unwrap();
    assert!(packing.wait().unwrap().success());
    world.assert_clean();
}

/// A branch that git cannot delete keeps only its own candidate.
#[test]
fn branch_that_cannot_be_deleted_does_not_stop_the_others() {
    let world = World::new();
    let run = world.spawn(["-n", "3"]);
    let lock = world.repo.join(format!(".git/refs/heads/frites/run/{run}/c2.lock"));
    // It is taken while the run is cleaned, after locks of killed processes were removed.
    let hook = "frites.hooks.before-clean";
    world.git(["config", hook, &format!("touch '{}'", lock.display())]);
    let all = world.frites(["clean", "--json", &run]).expect(1).json();
    world.git(["config", "--unset", hook]);
    let removed = |at: usize| all["candidates"][at]["removed"].as_bool().unwrap();
    assert_eq!([removed(0), removed(1), removed(2)], [true, false, true], "{all}");
    assert_eq!(
        world.git(["for-each-ref", "--format=%(refname)", "refs/heads/frites"]),
        format!("refs/heads/frites/run/{run}/c2")
    );
    fs::remove_file(lock).unwrap();
    world.frites(["clean", "-q", &run]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites"]), "");
    world.assert_clean();
}
