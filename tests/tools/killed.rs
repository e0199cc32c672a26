//! Commands that are killed before each of their changes to the disk, one after the other. The timed kills of
//! `test_heal.rs` meet few of these moments.
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
    undo_leaves_no_lock_wherever_it_is_killed: [STRACE];
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

/// Runs `git-frites ARGS` with these options of strace, and gives the calls, each after its process.
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

/// The changes of the process of a command that makes the most: the name of each system call, and how many of that name
/// came before it, as strace counts.
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

/// Makes locks old, and the record of those who took them: recovery would wait until they are.
fn age_locks(git_dir: &Path) {
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let ages = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "lock" || e == "new")
            || path.ends_with("frites-changing-refs")
    };
    for file in files_below(git_dir).into_iter().filter(ages) {
        fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
}

/// A git that is killed in the user's checkout leaves the lock of its index. Then git and git-frites tell the user to
/// remove it, because only the user knows which git is still at work.
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

/// Kills a command before many of its changes, each time in the world as it is now, after `before`. Then `next` must
/// succeed, and nothing may be left that is in git's way.
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
        age_locks(&world.repo.join(".git"));
        let place = format!("{args:?}, killed before {name} {number}:\n{}", calls.join("\n"));
        let answer = world.frites(next);
        assert_eq!(answer.code, 0, "{place}\n{}", answer.stderr);
        let packed = world.run(&world.repo, "git", ["pack-refs", "--all"]);
        assert_eq!(packed.code, 0, "{place}\n{}", packed.stderr);
        for record in records_of_worktrees(&world) {
            assert!(record.exists(), "{place}\n{} is missing", record.display());
        }
        world.assert_clean();
    }
    // The changes are not always the same.
    assert!(killed > moments.len() / 2, "{killed} of {} were killed", moments.len());
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
