//! Commands that are killed before each of their changes to the disk, one after the other. The timed kills of
//! `test_heal.rs` meet few of these moments.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{World, files_below, poll};
use crate::tool::{STRACE, trials};

trials! {
    spawn_leaves_no_lock_wherever_it_is_killed: [STRACE];
    addition_leaves_no_lock_wherever_it_is_killed: [STRACE];
    recycling_leaves_no_lock_wherever_it_is_killed: [STRACE];
    capture_leaves_no_lock_wherever_it_is_killed: [STRACE];
    judge_leaves_no_lock_wherever_it_is_killed: [STRACE];
    apply_leaves_no_lock_wherever_it_is_killed: [STRACE];
    undo_leaves_no_lock_wherever_it_is_killed: [STRACE];
    clean_leaves_no_lock_wherever_it_is_killed: [STRACE];
    resume_leaves_no_lock_wherever_it_is_killed: [STRACE];
    attempts_leaves_no_lock_wherever_it_is_killed: [STRACE];
    next_round_leaves_no_lock_wherever_it_is_killed: [STRACE];
    later_run_leaves_no_lock_wherever_it_is_killed: [STRACE];
    run_leaves_no_lock_wherever_it_is_killed: [STRACE];
    judging_of_one_leaves_no_lock_wherever_it_is_killed: [STRACE];
    opening_of_parts_leaves_no_lock_wherever_it_is_killed: [STRACE];
    part_leaves_no_lock_wherever_it_is_killed: [STRACE];
    commit_leaves_no_lock_wherever_it_is_killed: [STRACE];
    merge_leaves_no_lock_wherever_it_is_killed: [STRACE];
    merge_into_a_candidate_leaves_no_lock_wherever_it_is_killed: [STRACE];
    undo_of_a_merge_leaves_no_lock_wherever_it_is_killed: [STRACE];
    forgetting_leaves_no_lock_wherever_it_is_killed: [STRACE];
    binding_leaves_no_lock_wherever_it_is_killed: [STRACE];
    report_leaves_no_lock_wherever_it_is_killed: [STRACE];
}

/// The system calls that change the names, the sizes or the bytes of files.
const CHANGES: &str = "rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,rmdir,symlink,symlinkat,\
                       ftruncate,write,pwrite64,writev,copy_file_range,fsync,fdatasync";

/// The number of moments at which each command is killed; FRITES_TEST_ROUNDS=1000 stands for all.
fn rounds() -> usize {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// A moment before a change: a system call, and which of those of one thread it is, as strace counts; with a path, which
/// of those that are about it.
struct Moment {
    call: String,
    number: usize,
    path: Option<String>,
}

impl Moment {
    /// The options by which strace kills the process that comes to it, or stops it if it is not git-frites.
    fn options(&self) -> Vec<String> {
        let signal = if self.path.is_some() { "STOP" } else { "KILL" };
        let inject = format!("inject={}:signal={signal}:when={}", self.call, self.number);
        let path = self.path.iter().flat_map(|path| ["-P".to_owned(), path.clone()]);
        ["-e".to_owned(), inject].into_iter().chain(path).collect()
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Moment { call, number, path } = self;
        write!(f, "killed before {call} {number} {}", path.as_deref().unwrap_or_default())
    }
}

/// Runs `git-frites ARGS` with these options of strace, and gives the calls, each after its process. Once a process is
/// stopped, all are killed.
fn trace(world: &World, options: &[String], args: &[&str]) -> Vec<String> {
    let log = world.home().join("calls");
    let trace = format!("trace=execve,{CHANGES}");
    let common = ["-f", "-y", "-o", log.to_str().unwrap(), "-e", &trace];
    let options = options.iter().map(String::as_str);
    let words =
        common.iter().copied().chain(options).chain(["git-frites"]).chain(args.iter().copied());
    let mut command = world.command(&world.repo, "strace", words);
    let mut strace = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let calls = || fs::read_to_string(&log).unwrap_or_default();
    poll(|| {
        if calls().contains("--- stopped by SIGSTOP ---") {
            kill_all(&calls());
        }
        strace.try_wait().unwrap().is_some()
    });
    let calls = calls();
    fs::remove_file(&log).unwrap();
    calls.lines().map(str::to_owned).collect()
}

/// Kills all processes that have begun in this log, and not ended.
fn kill_all(calls: &str) {
    let mut alive = BTreeSet::new();
    for (process, call) in calls.lines().filter_map(|call| call.split_once(' ')) {
        if call.trim_start().starts_with("+++") {
            alive.remove(process);
        } else {
            alive.insert(process);
        }
    }
    let processes = alive.into_iter().filter_map(|process| Pid::from_raw(process.parse().ok()?));
    for process in processes {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// The moments before the changes of a command: all of the thread that makes the most, and one for each file that
/// another thread or process changes.
fn moments(world: &World, args: &[&str]) -> Vec<Moment> {
    let calls = trace(world, &[], args);
    let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for call in &calls {
        let Some((thread, rest)) = call.split_once(' ') else { continue };
        if let Some((name, rest)) = rest.trim_start().split_once('(')
            && name != "execve"
        {
            found.entry(thread).or_default().push((name, rest));
        }
    }
    let busiest = *found.iter().max_by_key(|(_, calls)| calls.len()).unwrap().0;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let numbered = found.remove(busiest).unwrap().into_iter().map(|(call, _)| {
        let number = counts.entry(call).or_default();
        *number += 1;
        Moment { call: call.to_owned(), number: *number, path: None }
    });
    let mut moments: Vec<Moment> = numbered.collect();
    let home = world.home();
    let others = found.into_values().flatten();
    let paths: BTreeSet<(&str, &str)> = others
        .filter_map(|(call, rest)| Some((call, changed_path(rest, home.to_str()?)?)))
        .collect();
    moments.extend(paths.into_iter().map(|(call, path)| Moment {
        call: call.to_owned(),
        number: 1,
        path: Some(path.to_owned()),
    }));
    moments
}

/// The last path in the arguments of a call, if it is in the home directory and the same in each run.
fn changed_path<'c>(arguments: &'c str, home: &str) -> Option<&'c str> {
    let mut words = arguments.split(['"', '<', '>']);
    let is_path = |word: &&str| word.starts_with(home) || word.starts_with(".git/");
    let path = words.rfind(is_path)?;
    // A `git commit` that is killed between the removals of these two locks leaves `packed-refs.lock`, and no trace of
    // its own.
    let others = ["/.tmp", "tmp_obj", "AUTO_MERGE.lock"];
    (!others.iter().any(|other| path.contains(other))).then_some(path)
}

/// A git that is killed in the user's checkout, while git-frites goes on, leaves the lock of its index. Then both tell the
/// user to remove it, because only the user knows which git is still at work.
fn remove_lock_of_killed_git(world: &World, calls: &[String]) {
    if calls.iter().any(|call| call.contains("si_code=CLD_KILLED")) {
        let _ = fs::remove_file(world.repo.join(".git/index.lock"));
    }
}

/// Makes locks, temporary files, intents and the record of changed refs old, all by the same time: recovery would wait
/// until they are.
fn age(world: &World) {
    let ages = |path: &PathBuf| {
        if path.is_symlink() {
            return false;
        }
        path.extension().is_some_and(|e| e == "lock" || e == "new")
            || path.ends_with("frites-changing-refs")
            || path.components().any(|part| part.as_os_str() == "landings")
            || path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".tmp"))
    };
    for directory in [".git", ".frites"] {
        for file in files_below(&world.repo.join(directory)).into_iter().filter(ages) {
            let file = fs::File::options().write(true).open(file).unwrap();
            let written = file.metadata().unwrap().modified().unwrap();
            file.set_modified(written - Duration::from_secs(7200)).unwrap();
        }
    }
}

/// All that a kill may not cost: the user's reflogs, and the captures.
struct Held {
    reflogs: Vec<(PathBuf, String)>,
    captures: Vec<(String, String)>,
}

impl Held {
    fn of(world: &World) -> Held {
        let logs = ["HEAD", "refs/heads/main"].map(|name| world.repo.join(".git/logs").join(name));
        let listed =
            world.git(["for-each-ref", "--format=%(refname) %(objectname)", "refs/frites"]);
        let captures = listed.lines().filter(|line| !line.contains("/@"));
        let captures = captures.filter_map(|line| line.split_once(' '));
        Held {
            reflogs: logs.map(|log| (log.clone(), fs::read_to_string(log).unwrap())).into(),
            captures: captures.map(|(name, at)| (name.to_owned(), at.to_owned())).collect(),
        }
    }

    /// Asserts that nothing of it is gone.
    fn assert_whole(&self, world: &World) {
        for (log, old) in &self.reflogs {
            let now = fs::read_to_string(log).unwrap();
            let added = now.strip_prefix(old.as_str());
            let is_whole = |line: &str| line.ends_with('\n') && line.split(' ').count() > 4;
            let is_whole = added.is_some_and(|lines| lines.split_inclusive('\n').all(is_whole));
            assert!(is_whole, "{} is:\n{now}", log.display());
        }
        for (name, at) in &self.captures {
            let kept = world.run(&world.repo, "git", ["merge-base", "--is-ancestor", at, name]);
            assert_eq!(kept.code, 0, "{name} has lost {at}:\n{}", kept.stderr);
        }
    }
}

/// Shows the moment of a kill if what follows fails.
struct Killed<'m> {
    args: &'m [&'m str],
    moment: &'m Moment,
    calls: Vec<String>,
}

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Killed { args, moment, calls } = self;
            let _ = writeln!(std::io::stderr(), "{args:?}, {moment}:\n{}", calls.join("\n"));
        }
    }
}

/// Asserts that each candidate with a worktree has all files of its record.
fn assert_whole_candidates(world: &World) {
    let answer = world.frites(["status", "--json", "--all"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    for run in answer.json()["runs"].as_array().unwrap() {
        let directory = world.repo.join(".frites/runs").join(run["run"].as_str().unwrap());
        for candidate in run["candidates"].as_array().unwrap() {
            let exists = |worktree| Path::new(worktree).exists();
            if !candidate["worktree"].as_str().is_some_and(exists) {
                continue;
            }
            let directory = directory.join(candidate["candidate"].as_str().unwrap());
            for file in ["candidate.toml", "index"].map(|file| directory.join(file)) {
                assert!(file.exists(), "{} is missing", file.display());
            }
            let record = fs::read_to_string(directory.join("candidate.toml")).unwrap();
            assert!(record.contains("port"), "{record}");
        }
    }
}

/// Asserts that the commands work, and that no file is left once everything is cleaned.
fn assert_usable(world: &World) {
    let branch = world.git(["symbolic-ref", "--short", "HEAD"]);
    if branch == "main" {
        let changed = world.git(["status", "--porcelain"]);
        assert_eq!(changed, "", "in the user's checkout");
    }
    if !world.git(["for-each-ref", "refs/frites/*/@record"]).is_empty() {
        let answer = world.frites(["diff"]);
        assert_eq!(answer.code, 0, "diff\n{}", answer.stderr);
        let answer = world.frites(["judge", "-q", "--test", "true"]);
        assert!([0, 4].contains(&answer.code), "judge\n{}", answer.stderr);
        if branch == "main" && answer.code == 0 {
            let words = ["apply", "-q", "--branch", "other", "--no-switch"];
            let answer = world.frites(words);
            // It may have landed already.
            assert!([0, 1].contains(&answer.code), "apply\n{}", answer.stderr);
        }
    }
    let answer = world.frites(["clean", "-q", "--all"]);
    assert_eq!(answer.code, 0, "clean\n{}", answer.stderr);
    let is_left = |path: &PathBuf| {
        let path = path.strip_prefix(&world.repo).unwrap().to_str().unwrap();
        let ends = [".lock", ".new"].iter().any(|end| path.ends_with(end));
        let begins = ["/.tmp", "/.trash", "/active", "/landings/", "/own/"];
        let is_git_s = path.contains("tmp_obj_") || path.starts_with(".frites/locks/");
        (ends || begins.iter().any(|begin| path.contains(begin))) && !is_git_s
    };
    let mut left = files_below(&world.repo.join(".git"));
    left.extend(files_below(&world.repo.join(".frites")));
    left.retain(is_left);
    assert!(left.is_empty(), "left: {left:?}");
}

/// Kills a command before many of its changes, each time in the world as it is now, after `before`. Then `next` must
/// succeed, nothing may be left that is in git's way, and nothing may be lost.
fn kill_everywhere(mut world: World, before: &[&[&str]], args: &[&str], next: &[&str]) {
    // Where there is such a file, refs are moved under its lock.
    world.git(["pack-refs", "--all"]);
    world.keep();
    let prepare = |world: &World| {
        world.again();
        before.iter().for_each(|command| drop(world.frites(*command).expect(0)));
    };
    prepare(&world);
    let all = moments(&world, args);
    let chosen: Vec<&Moment> = all.iter().step_by((all.len() / rounds()).max(1)).collect();
    let mut killed = 0;
    for moment in &chosen {
        prepare(&world);
        let held = Held::of(&world);
        let calls = trace(&world, &moment.options(), args);
        killed += usize::from(calls.iter().any(|call| call.contains("+++ killed by SIGKILL +++")));
        remove_lock_of_killed_git(&world, &calls);
        age(&world);
        let mut killed_now = Killed { args, moment, calls };
        let answer = world.frites(next);
        killed_now.calls.push(answer.stderr.clone());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let packed = world.run(&world.repo, "git", ["pack-refs", "--all"]);
        assert_eq!(packed.code, 0, "{}", packed.stderr);
        held.assert_whole(&world);
        assert_whole_candidates(&world);
        world.assert_clean();
        assert_usable(&world);
    }
    // The changes are not always the same.
    assert!(killed > chosen.len() / 2, "{killed} of {} were killed", chosen.len());
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
    let add = ["spawn", "-q", "--run", "1", "--add", "-n", "2"];
    // Only a verdict that was recorded here is decided again without its commands.
    kill_everywhere(world, &[], &add, &["judge", "--replay", "-q", "1"]);
}

fn recycling_leaves_no_lock_wherever_it_is_killed() {
    let world = World::new();
    world.git(["config", "frites.pool.size", "2"]);
    let spawn = ["spawn", "-q", "-n", "2"];
    kill_everywhere(world, &[&spawn, &["clean", "-q", "1"]], &spawn, &spawn);
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

fn attempts_leaves_no_lock_wherever_it_is_killed() {
    let spawn = ["spawn", "-q", "-n", "2", "--", "sh", "-c", "echo $FRITES_INDEX > new"];
    kill_everywhere(World::new(), &[], &spawn, &["status"]);
}

fn next_round_leaves_no_lock_wherever_it_is_killed() {
    let again = ["spawn", "-q", "--again", "1/c1", "--", "sh", "-c", "echo more >> README"];
    kill_everywhere(attempted(), &[], &again, &["status"]);
}

fn later_run_leaves_no_lock_wherever_it_is_killed() {
    let later = ["spawn", "-q", "--later", "-n", "2", "--", "sh", "-c", "echo 1 > new"];
    kill_everywhere(World::new(), &[], &later, &["status"]);
}

fn run_leaves_no_lock_wherever_it_is_killed() {
    let attempt = "echo $FRITES_INDEX >> new";
    let run = [
        "run",
        "-q",
        "-n",
        "2",
        "--rounds",
        "2",
        "--test",
        "test $(wc -l < new) = 2",
        "--",
        "sh",
        "-c",
        attempt,
    ];
    kill_everywhere(World::new(), &[], &run, &["status"]);
}

fn judging_of_one_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--candidate", "1/c1", "--test", "true"];
    kill_everywhere(attempted(), &[], &judge, &["judge", "-q", "--test", "true"]);
}

fn opening_of_parts_leaves_no_lock_wherever_it_is_killed() {
    let open = ["judge", "-q", "--open", "--test", "true", "1"];
    kill_everywhere(attempted(), &[], &open, &open);
}

fn part_leaves_no_lock_wherever_it_is_killed() {
    let open = ["judge", "-q", "--open", "--test", "true", "1"];
    let part = ["judge", "-q", "--shard", "1/2", "1"];
    kill_everywhere(attempted(), &[&open], &part, &part);
}

fn commit_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    kill_everywhere(attempted(), &[&judge], &["apply", "-m", "Land"], &["status"]);
}

fn merge_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    kill_everywhere(attempted(), &[&judge], &["apply", "--merge"], &["status"]);
}

fn merge_into_a_candidate_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    let merge = ["apply", "--merge", "--into", "1/c2", "--no-rejudge", "1/c1"];
    kill_everywhere(attempted(), &[&judge], &merge, &["status"]);
}

fn undo_of_a_merge_leaves_no_lock_wherever_it_is_killed() {
    let judge = ["judge", "-q", "--test", "true"];
    kill_everywhere(
        attempted(),
        &[&judge, &["apply", "--merge"]],
        &["apply", "--undo"],
        &["status"],
    );
}

fn forgetting_leaves_no_lock_wherever_it_is_killed() {
    let forget = ["clean", "-q", "--forget", "1"];
    kill_everywhere(attempted(), &[], &forget, &["status"]);
}

fn binding_leaves_no_lock_wherever_it_is_killed() {
    kill_everywhere(attempted(), &[], &["task", "1", "GH-17"], &["task", "1", "GH-17"]);
}

fn report_leaves_no_lock_wherever_it_is_killed() {
    kill_everywhere(attempted(), &[], &["report"], &["report"]);
}
