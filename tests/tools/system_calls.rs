//! The files that commands open: what is read twice, or for nothing, costs every user time.
use std::collections::BTreeMap;
use std::fs;

use crate::common::World;
use crate::tool::{STRACE, trials};

trials! {
    each_loose_blob_is_opened_once_and_not_mapped: [STRACE];
    each_record_is_read_once_and_only_that_of_a_run_that_is_named: [STRACE];
    trash_is_emptied_with_idle_priority: [STRACE];
    capture_maps_no_object_and_starts_no_thread_to_read_an_index: [STRACE];
}

/// The system calls of these names that a command makes.
fn calls(world: &World, names: &str, args: &[&str]) -> Vec<String> {
    let log = world.home().join("calls");
    let trace = ["-f", "-o", log.to_str().unwrap(), "-e", names, "git-frites"];
    world.run(&world.repo, "strace", trace.iter().chain(args)).expect(0);
    fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

/// The names of loose objects that were opened, and how often.
fn opened_objects(calls: &[String]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for call in calls.iter().filter(|call| call.contains("open")) {
        let path = call.split('"').nth(1).unwrap_or_default();
        let mut parts = path.rsplit('/');
        let (Some(file), Some(directory)) = (parts.next(), parts.next()) else { continue };
        if file.len() == 38 && directory.len() == 2 && !call.contains("ENOENT") {
            *found.entry(format!("{directory}{file}")).or_default() += 1;
        }
    }
    found
}

fn each_loose_blob_is_opened_once_and_not_mapped() {
    let world = World::new();
    for at in 0..80 {
        world.write(format!("many/{at}"), format!("file {at}\n"));
    }
    world.commit("many files");
    let calls = calls(&world, "openat,mmap", &["spawn", "-q", "-n", "2"]);
    let opened = opened_objects(&calls);
    let blobs = world.git(["ls-tree", "--format=%(objectname)", "HEAD", "many/"]);
    for blob in blobs.lines() {
        assert_eq!(opened.get(blob), Some(&1), "{blob}");
    }
    let mapped = calls
        .iter()
        .filter(|call| call.contains("mmap(NULL, ") && call.contains(", MAP_PRIVATE, "));
    assert!(mapped.count() < 40);
    world.assert_clean();
}

fn each_record_is_read_once_and_only_that_of_a_run_that_is_named() {
    let world = World::new();
    let runs: Vec<String> = (0..5).map(|_| world.spawn(["-n", "1"])).collect();
    let record = |run: &String| {
        let id = world.git(["rev-parse", &format!("refs/frites/{run}/@record")]);
        let blob = world.git(["rev-parse", &format!("{id}:run.toml")]);
        [id, blob]
    };
    let all: Vec<String> = runs.iter().flat_map(record).collect();
    for command in ["status", "log"] {
        let calls = calls(&world, "openat,open", &[command]);
        let refs =
            calls.iter().filter(|call| call.contains("@record\"") && !call.contains("ENOENT"));
        assert_eq!(refs.count(), runs.len(), "{command}");
        let opened = opened_objects(&calls);
        assert!(all.iter().all(|id| opened.get(id).is_none_or(|times| *times == 1)), "{command}");
        assert_eq!(all.iter().any(|id| opened.contains_key(id)), command == "status");
    }
    let named = format!("{}/c1", runs[2]);
    let opened = opened_objects(&calls(&world, "openat,open", &["path", &named]));
    let of_named = record(&runs[2]);
    let read: Vec<&String> = all.iter().filter(|id| opened.contains_key(*id)).collect();
    assert_eq!(read, of_named.iter().collect::<Vec<_>>());
    world.assert_clean();
}

/// Linux takes the priority for the disk from this policy, too. The threads that delete inherit it.
fn trash_is_emptied_with_idle_priority() {
    let world = World::new();
    let root = world.home().join("worktrees");
    fs::create_dir_all(root.join(".trash-old/worktree/a")).unwrap();
    let calls = calls(
        &world,
        "sched_setscheduler,unlinkat,clone3,clone",
        &["__empty-trash", root.to_str().unwrap()],
    );
    assert!(calls[0].contains("SCHED_IDLE") && calls[0].contains("= 0"), "{calls:?}");
    assert!(!root.join(".trash-old").exists());
}

fn capture_maps_no_object_and_starts_no_thread_to_read_an_index() {
    let world = World::new();
    for at in 0..60 {
        world.write(format!("d{at}/file"), format!("file {at}\n"));
    }
    world.commit("many files");
    let run = world.spawn(["-n", "1"]);
    let file = world.worktree(&format!("{run}/c1")).join("d7/file");
    fs::write(&file, "first\n").unwrap();
    world.frites(["capture", &run]).expect(0);
    fs::write(&file, "second\n").unwrap();
    let calls = calls(&world, "mmap,prctl", &["capture", &run]);
    assert!(!calls.iter().any(|call| call.contains("gix-index")), "a thread for an index");
    let mapped = calls.iter().filter(|call| call.contains(", PROT_READ, MAP_PRIVATE, "));
    // Each directory's tree is read once, for the base.
    assert!(mapped.count() < 80);
    assert_eq!(world.git(["show", &format!("refs/frites/{run}/c1:d7/file")]), "second");
    world.assert_clean();
}
