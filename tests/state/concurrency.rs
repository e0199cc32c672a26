//! Many at once, and git's own housekeeping beside them (SCOREBOARD rows 2, 7, 9, 10 and 28).
//!
//! Short by default; `FRITES_TEST_SECONDS=1200` is the scoreboard's twenty minutes.
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::processes::{living, marked};
use crate::common::{Answer, LONG, World, answer, poll};

/// Says that it is over, also to those who wait for it when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` while `git` with these arguments runs again and again beside it; it must have run.
fn beside(world: &World, arguments: &[&str], work: impl FnOnce()) {
    let (stop, times) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = world.run(&world.repo, "git", arguments);
                times.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _over = Over(&stop);
        work();
    });
    assert!(times.into_inner() > 1, "nothing ran beside");
}

#[test]
fn concurrent_worktree_prune_breaks_no_spawn() {
    let world = World::new();
    beside(&world, &["worktree", "prune", "--expire", "now"], || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| world.frites(["spawn", "-q", "-n", "3"]).expect(0));
            }
        });
    });
    for run in 1..=8 {
        for candidate in ["c1", "c2", "c3"] {
            let path = world.worktree(&format!("{run}/{candidate}"));
            assert_eq!(
                world.git_in(&path, ["status", "--porcelain", "--branch"]),
                format!("## frites/run/{run}/{candidate}")
            );
        }
    }
    world.assert_clean();
}

#[test]
fn concurrent_gc_breaks_no_capture() {
    let world = World::new();
    let run = world.spawn(["-n", "4"]);
    beside(&world, &["gc", "-q", "--prune=now"], || {
        for round in 0..3 {
            for candidate in 1..=4 {
                let file = world.worktree(&format!("{run}/c{candidate}")).join("file");
                fs::write(file, format!("{candidate} in round {round}\n")).unwrap();
            }
            // One that never pauses can win thirty times: that is told, and the next capture has
            // it.
            let diff = world.frites(["diff", "--numstat", &run]);
            assert!(diff.code == 0, "{}", diff.stderr);
        }
    });
    // Nothing runs beside it any more.
    let last = world.frites(["diff", "--numstat", &run]).expect(0);
    assert_eq!(last.stderr, "");
    for candidate in 1..=4 {
        let refname = format!("refs/frites/{run}/c{candidate}");
        assert_eq!(
            world.git(["show", &format!("{refname}:file")]),
            format!("{candidate} in round 2")
        );
        world.git(["rev-list", "--objects", "--quiet", &refname]);
    }
    world.assert_clean();
}

#[test]
fn concurrent_writers_and_readers_of_a_run_lose_nothing() {
    let world = World::new();
    let run = world.spawn(["-n", "4"]);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (world, run) = (&world, &run);
            scope.spawn(move || {
                for round in 0..3 {
                    let address = format!("{run}/c{}", writer % 4 + 1);
                    fs::write(world.worktree(&address).join(format!("w{writer}-{round}")), "x\n")
                        .unwrap();
                    world.frites(["diff", "--name-only", &address]).expect(0);
                }
            });
            scope.spawn(move || {
                for _ in 0..3 {
                    let json = world.frites(["status", "--json", run]).expect(0).json();
                    assert_eq!(json["runs"][0]["candidates"].as_array().unwrap().len(), 4);
                    // Each line is whole.
                    world.events();
                }
            });
        }
    });
    for candidate in 0..4 {
        let files =
            world.git(["ls-tree", "--name-only", &format!("refs/frites/{run}/c{}", candidate + 1)]);
        for writer in [candidate, candidate + 4] {
            assert_eq!(
                files.lines().filter(|f| f.starts_with(&format!("w{writer}-"))).count(),
                3,
                "{files}"
            );
        }
    }
    let events = fs::read_to_string(world.repo.join(".frites/events.jsonl")).unwrap();
    let captured = events.lines().filter(|l| l.contains("\"event\":\"captured\"")).count();
    let iterations: usize = (1..=4)
        .map(|c| {
            world
                .git([
                    "rev-list",
                    "--count",
                    "--first-parent",
                    &format!("main..refs/frites/{run}/c{c}"),
                ])
                .parse::<usize>()
                .unwrap()
        })
        .sum();
    assert_eq!(captured, iterations, "each capture is an event, once");
    world.assert_clean();
}

/// Records are written whole: each writer must begin with what the one before it wrote.
#[test]
fn concurrent_verdicts_and_bindings_of_a_run_lose_nothing() {
    let world = World::new();
    let scripts: Vec<String> = (1..=8).map(|n| format!("seq {n} > new")).collect();
    let run = world.attempts(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    world.frites(["judge", "-q", "--test", "true", &run]).expect(0);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (world, run) = (&world, &run);
            scope.spawn(move || {
                for candidate in [2 * part + 1, 2 * part + 2] {
                    let (address, id) = (format!("{run}/c{candidate}"), format!("T-{candidate}"));
                    // Another writer may hold the run: then nothing is bound, and the exit code
                    // says so.
                    poll(|| world.frites(["task", &address, &id]).code == 0);
                }
            });
            scope.spawn(move || {
                for rank in ["agreement", "blast-radius"].repeat(6) {
                    let code = world.frites(["judge", "-q", "--replay", "--rank", rank, run]).code;
                    assert!(matches!(code, 0 | 128), "{code}");
                }
            });
        }
    });
    let tasks = world.frites(["task", &run, "--json"]).expect(0).json()["candidates"].take();
    let bound: Vec<_> = tasks.as_object().unwrap().values().map(|t| t.as_str().unwrap()).collect();
    let expected: Vec<_> = (1..=8).map(|n| format!("T-{n}")).collect();
    assert_eq!(bound, expected);
    world.assert_clean();
}

#[test]
fn stale_locks_of_ours_are_removed_and_others_named() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo y > y"]);
    let git = world.repo.join(".git");
    let common = git.join("refs/frites/1");
    fs::create_dir_all(&common).unwrap();
    let old = |path: &PathBuf| {
        fs::write(path, "").unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    };
    // Nobody but us writes there: gone without a word.
    let ours = common.join("c1.lock");
    old(&ours);
    world.frites(["diff", "--stat", "1"]).expect(0);
    assert!(!ours.exists());
    // A private index' lock, of a capture that was killed.
    let index = world.repo.join(".frites/runs/1/c1/index.lock");
    old(&index);
    fs::write(world.worktree("1/c1").join("x"), "more\n").unwrap();
    world.frites(["diff", "--stat", "1/c1"]).expect(0);
    assert!(!index.exists());
    // The user's index and all refs are git's: whoever needs them says so, soon, and changes
    // nothing.
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    for (lock, words) in [("index.lock", "index.lock"), ("packed-refs.lock", "packed-refs")] {
        let lock = git.join(lock);
        old(&lock);
        let (before, begun) = (world.belongings(), Instant::now());
        let arguments: &[&str] =
            if words == "index.lock" { &["apply", "1"] } else { &["clean", "1"] };
        let answer = world.frites(arguments);
        assert!(begun.elapsed() < LONG, "{arguments:?} took {:?}", begun.elapsed());
        if words == "index.lock" {
            assert!(answer.code != 0 && answer.stderr.contains(words), "{}", answer.stderr);
        }
        assert_eq!(world.belongings(), before);
        let _ = fs::remove_file(&lock);
    }
    world.frites(["apply", "1"]).expect(0);
}

#[test]
fn random_commands_of_eight_processes_with_kills_lose_nothing() {
    let seconds =
        std::env::var("FRITES_TEST_SECONDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (world, mark) = marked();
    let (before, promised) = (world.belongings(), Mutex::new(Vec::<(String, String)>::new()));
    std::thread::scope(|scope| {
        for worker in 0..8u64 {
            let (world, promised) = (&world, &promised);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(worker + 1);
                let mut round = 0;
                while Instant::now() < end {
                    round += 1;
                    act(world, &mut random, promised, &format!("{worker}-{round}"));
                }
            });
        }
    });
    let kept = promised.into_inner().unwrap();
    assert!(kept.len() > 4, "only {} spawns came to their end", kept.len());
    let first = world.frites(["status", "--json"]).expect(0).json();
    let running = |json: &serde_json::Value| json.to_string().matches("\"running\"").count();
    assert_eq!(running(&first), 0, "whatever was killed is healed");
    for (run, word) in &kept {
        for candidate in ["c1", "c2"] {
            assert_eq!(
                world.git(["show", &format!("refs/frites/{run}/{candidate}:word")]),
                *word,
                "{run}/{candidate}"
            );
        }
    }
    assert_eq!(living(&mark), []);
    assert_eq!(world.belongings(), before);
    world.frites(["clean", "--all"]).expect(0);
    // Many files are deleted in the background.
    poll(|| fs::read_dir(world.repo.join(".frites/worktrees")).map_or(0, Iterator::count) == 0);
    world.assert_clean();
}

/// Does one thing of many, perhaps kills it, and notes what must be kept from then on.
fn act(
    world: &World,
    random: &mut fastrand::Rng,
    promised: &Mutex<Vec<(String, String)>>,
    word: &str,
) {
    let known = |random: &mut fastrand::Rng| -> Option<String> {
        let all = promised.lock().unwrap();
        let at = random.usize(..all.len().max(1));
        all.get(at).map(|(run, _)| run.clone())
    };
    let script = format!("echo {word} > word");
    let arguments: Vec<String> = match (random.u8(..6), known(random)) {
        (0 | 1, _) | (_, None) => {
            ["spawn", "-q", "-n", "2", "--", "sh", "-c", &script].map(String::from).to_vec()
        }
        (2, Some(run)) => {
            ["judge", "-q", &run, "--test", "test -s word"].map(String::from).to_vec()
        }
        (3, Some(run)) => {
            let branch = format!("frites/landed-{word}");
            [
                "apply",
                "-q",
                "--no-switch",
                "--allow-unverified",
                "--branch",
                &branch,
                &format!("{run}/c1"),
            ]
            .map(String::from)
            .to_vec()
        }
        (4, Some(run)) => ["clean", &run].map(String::from).to_vec(),
        (_, Some(run)) => ["status", "--json", &run].map(String::from).to_vec(),
    };
    let mut command: Command = world.command(&world.repo, "git-frites", &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let kill = random.u8(..4) == 0;
    if kill {
        let until = Instant::now() + Duration::from_millis(random.u64(..250));
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = child.kill();
    }
    let Answer { code, stdout, stderr } = answer(&child.wait_with_output().unwrap());
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    assert!(kill || [0, 1, 3, 4, 128].contains(&code), "{arguments:?} exits {code}: {stderr}");
    if arguments[0] == "spawn" && code == 0 {
        let run = String::from_utf8(stdout).unwrap().trim().to_owned();
        promised.lock().unwrap().push((run, word.to_owned()));
    }
}
