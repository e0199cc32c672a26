//! Commands that are killed before each of their changes to the disk, one after the other. The
//! timed kills of `test_heal.rs` meet few of these moments.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{World, files_below};
use crate::tool::{STRACE, trials};

trials! {
    spawn_leaves_no_lock_wherever_it_is_killed: [STRACE];
    addition_leaves_no_lock_wherever_it_is_killed: [STRACE];
    capture_leaves_no_lock_wherever_it_is_killed: [STRACE];
    judge_leaves_no_lock_wherever_it_is_killed: [STRACE];
    apply_leaves_no_lock_wherever_it_is_killed: [STRACE];
    committed_apply_leaves_no_lock_wherever_it_is_killed: [STRACE];
    apply_with_conflicts_leaves_no_lock_wherever_it_is_killed: [STRACE];
    apply_without_the_checkout_leaves_no_lock_wherever_it_is_killed: [STRACE];
    merge_leaves_no_lock_wherever_it_is_killed: [STRACE];
    undo_leaves_no_lock_wherever_it_is_killed: [STRACE];
    undo_of_a_commit_leaves_no_lock_wherever_it_is_killed: [STRACE];
    undo_of_a_merge_leaves_no_lock_wherever_it_is_killed: [STRACE];
    clean_leaves_no_lock_wherever_it_is_killed: [STRACE];
    resume_leaves_no_lock_wherever_it_is_killed: [STRACE];
}

/// The system calls that change the names, the sizes or the bytes of files.
const CHANGES: &str = "rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,rmdir,symlink,symlinkat,\
                       ftruncate,write,pwrite64,writev,copy_file_range,fsync,fdatasync";

/// The number of moments at which each command is killed; FRITES_TEST_ROUNDS=1000 stands for all.
fn rounds() -> usize {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// Runs `git-frites ARGS` with these options of strace, and gives the calls, each after its
/// process.
fn trace(world: &World, options: &[&str], args: &[&str]) -> Vec<String> {
    let log = world.home().join("calls");
    let trace = format!("trace=execve,{CHANGES}");
    let common = ["-f", "-o", log.to_str().unwrap(), "-e", &trace];
    let words = common.iter().chain(options).chain(&["git-frites"]).chain(args);
    let _ = world.run(&world.repo, "strace", words);
    let calls = fs::read_to_string(&log).unwrap();
    fs::remove_file(&log).unwrap();
    calls.lines().map(str::to_owned).collect()
}

/// The changes of the process of a command that makes the most: the name of each system call, and
/// how many of that name came before it, as strace counts.
fn changes(world: &World, args: &[&str]) -> Vec<(String, usize)> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in trace(world, &[], args) {
        let mut words = call.split_whitespace();
        let (process, rest) = (words.next().unwrap(), words.next().unwrap());
        if let Some((name, _)) = rest.split_once('(')
            && name != "execve"
        {
            found.entry(process.to_owned()).or_default().push(name.to_owned());
        }
    }
    let names = found.into_values().max_by_key(Vec::len).unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let numbered = names.into_iter().map(|name| {
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        (name, *count)
    });
    numbered.collect()
}

/// Makes locks old, and the record of those who took them: recovery would wait until they are. What
/// says that a landing had begun is older.
fn age_locks(world: &World) {
    let now = SystemTime::now();
    let hours_ago = |hours: u64| now - Duration::from_secs(hours * 3600);
    let age = |file: PathBuf, time| {
        fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    };
    let is_lock = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "lock" || e == "new")
            || path.ends_with("frites-changing-refs")
    };
    for lock in files_below(&world.repo.join(".git")).into_iter().filter(is_lock) {
        age(lock, hours_ago(1));
    }
    for intent in files_below(&world.repo.join(".frites/landings")) {
        age(intent, hours_ago(2));
    }
}

/// A git that is killed in the user's checkout leaves the lock of its index. Then git and
/// git-frites tell the user to remove it, because only the user knows which git is still at work.
fn remove_lock_of_killed_git(world: &World, calls: &[String]) {
    let process = |call: &String| call.split_whitespace().next().unwrap().to_owned();
    let programs = calls.iter().filter(|call| call.contains(" execve("));
    let gits: Vec<String> = programs.skip(1).map(process).collect();
    let killed = calls.iter().filter(|call| call.contains("+++ killed by SIGKILL +++"));
    if killed.map(process).any(|killed| gits.contains(&killed)) {
        let _ = fs::remove_file(world.repo.join(".git/index.lock"));
    }
}

/// The records of all candidates that have a worktree.
fn records_of_worktrees(world: &World) -> Vec<PathBuf> {
    let status = world.frites(["status", "--json", "--all"]).expect(0).json();
    let mut records = Vec::new();
    for run in status["runs"].as_array().unwrap() {
        let directory = world.repo.join(".frites/runs").join(run["run"].as_str().unwrap());
        for candidate in run["candidates"].as_array().unwrap() {
            if candidate["worktree"].as_str().is_some_and(|worktree| Path::new(worktree).exists()) {
                let name = candidate["candidate"].as_str().unwrap();
                records.push(directory.join(name).join("candidate.toml"));
            }
        }
    }
    records
}

/// Kills a command before many of its changes, each time in the world as it is now, after `before`.
/// Then `next` must succeed, and nothing may be left that is in git's way.
fn kill_everywhere(mut world: World, before: &[&[&str]], args: &[&str], next: &[&str]) {
    // Where there is such a file, refs are moved under its lock.
    world.git(["pack-refs", "--all"]);
    world.keep();
    let prepare = |world: &World| {
        world.again();
        before.iter().for_each(|command| drop(world.frites(*command).expect(0)));
    };
    prepare(&world);
    let all = changes(&world, args);
    let moments = all.iter().step_by((all.len() / rounds()).max(1));
    let mut killed = 0;
    for (name, number) in moments.clone() {
        prepare(&world);
        let inject = format!("inject={name}:signal=KILL:when={number}");
        let calls = trace(&world, &["-e", &inject], args);
        killed += usize::from(calls.iter().any(|call| call.contains("+++ killed by SIGKILL +++")));
        remove_lock_of_killed_git(&world, &calls);
        age_locks(&world);
        let place = format!("{args:?}, killed before {name} {number}:\n{}", calls.join("\n"));
        let answer = world.frites(next);
        assert_eq!(answer.code, 0, "{place}\n{}", answer.stderr);
        let packed = world.run(&world.repo, "git", ["pack-refs", "--all"]);
        assert_eq!(packed.code, 0, "{place}\n{}", packed.stderr);
        for record in records_of_worktrees(&world) {
            assert!(record.exists(), "{place}\n{} is missing", record.display());
        }
        if args[0] == "apply" {
            assert_whole_landing(&world, &place);
        }
        world.assert_clean();
    }
    // The changes are not always the same.
    assert!(killed > moments.len() / 2, "{killed} of {} were killed", moments.len());
}

/// Asserts that the checkout, the branches and the record of `1/c1` tell of one and the same
/// landing.
fn assert_whole_landing(world: &World, place: &str) {
    let candidate = world.first_candidate("1");
    let changed = world.git(["status", "--porcelain", "--untracked-files=no"]);
    let fresh = world.git(["for-each-ref", "--format=x", "refs/heads/frites/apply/1"]);
    let merges = world.git(["rev-list", "--count", "--first-parent", "--grep=Frites-Into", "HEAD"]);
    let on_fresh = world.git(["symbolic-ref", "HEAD"]) == "refs/heads/frites/apply/1";
    let is_left = candidate["conflicts"] == "frites/apply/1";
    let landing = candidate["landing"].as_str().unwrap();
    let told = match (on_fresh || !fresh.is_empty(), merges.as_str()) {
        (true, _) => (landing == "landed") != (landing == "pending" && is_left),
        (false, "0") => ["pending", "undone"].contains(&landing) && !is_left,
        (false, "1") => landing == "merged",
        (false, _) => landing == "undone",
    };
    assert!(told, "{place}\n{candidate:#}\nfresh: {fresh:?}, merges: {merges}");
    let is_committed =
        !fresh.is_empty() && world.tree("frites/apply/1") == world.tree("refs/frites/1/c1");
    let is_staged = on_fresh && !is_committed && !is_left;
    let is_changed = is_staged || (on_fresh && is_left);
    assert_eq!(!changed.is_empty(), is_changed, "{place}\n{changed}");
    if is_staged {
        assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1"), "{place}");
        assert_eq!(world.git(["diff", "--name-only"]), "", "{place}");
    }
    if is_left {
        assert!(changed.starts_with("UU "), "{place}\n{changed}");
    }
}

/// A world with a run of two attempts that both did something.
fn attempted() -> World {
    let world = World::new();
    world.attempts(&["echo 1 >> README", "echo 2 > new"]);
    world
}

fn spawn_leaves_no_lock_wherever_it_is_killed() {
    let spawn = ["spawn", "-q", "-n", "2"];
    kill_everywhere(World::new(), &[], &spawn, &spawn);
}

fn addition_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    let add = ["add", "-q", "1", "-n", "2"];
    // Only a verdict that was recorded here is decided again without its commands.
    kill_everywhere(world, &[], &add, &["judge", "--replay", "-q", "1"]);
}

fn capture_leaves_no_lock_wherever_it_is_killed() {
    let world = World::new();
    let run = world.spawn(["-n", "2"]);
    fs::write(world.worktree(&format!("{run}/c1/new")), "new\n").unwrap();
    fs::write(world.worktree(&format!("{run}/c2/README")), "other\n").unwrap();
    kill_everywhere(world, &[], &["capture", &run], &["capture", &run]);
}

fn judge_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    kill_everywhere(attempted(), &[], &judge, &judge);
}

fn apply_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    kill_everywhere(attempted(), &[&judge], &["apply"], &["status"]);
}

fn undo_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    kill_everywhere(attempted(), &[&judge, &["apply"]], &["apply", "--undo"], &["status"]);
}

fn committed_apply_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    kill_everywhere(world, &[], &["apply", "-m", "x", "1/c1"], &["status"]);
}

fn apply_with_conflicts_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.write("README", "moved\n");
    world.commit("moved");
    kill_everywhere(world, &[], &["apply", "--conflicts", "1/c1"], &["status"]);
}

fn apply_without_the_checkout_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    kill_everywhere(world, &[], &["apply", "--no-switch", "-m", "x", "1/c1"], &["status"]);
}

fn merge_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    kill_everywhere(world, &[], &["apply", "--merge", "1/c1"], &["status"]);
}

fn undo_of_a_commit_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    kill_everywhere(world, &[&["apply", "-m", "x", "1/c1"]], &["apply", "--undo"], &["status"]);
}

fn undo_of_a_merge_leaves_no_lock_wherever_it_is_killed() {
    let world = attempted();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    kill_everywhere(world, &[&["apply", "--merge", "1/c1"]], &["apply", "--undo"], &["status"]);
}

fn clean_leaves_no_lock_wherever_it_is_killed() {
    kill_everywhere(attempted(), &[], &["clean", "-q", "1"], &["clean", "-q", "1"]);
}

fn resume_leaves_no_lock_wherever_it_is_killed() {
    let world = World::new();
    let attempt =
        "echo half >> README; test -e ../../../../../gate || kill -9 $PPID; echo done > new";
    let run = ["run", "-n", "2", "-j", "1", "--test", "true", "--", "sh", "-c", attempt];
    world.frites(run).expect(4);
    world.write("../gate", "");
    let resume = ["run", "-q", "--resume", "1"];
    kill_everywhere(world, &[], &resume, &resume);
}
