//! Making and removing worktrees: the time that git-frites takes, divided by that of git by hand.
//!
//! Machines are noisy, so nothing here is asserted: `make bench` prints medians, and a person reads
//! them.
#![expect(clippy::print_stdout, reason = "a benchmark answers on stdout")]

#[path = "common/mod.rs"]
#[expect(dead_code, reason = "the other benchmark uses the rest")]
mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use common::{Bench, CANDIDATES, columns, compare, figure, heading, numbers, sizes, timed};

/// The runs among which a command looks.
const RUNS: usize = 100;

/// Worktrees that git makes one after the other, each with a branch.
fn add_by_git(bench: &Bench, count: usize) -> Duration {
    timed(|| {
        for i in 0..count {
            let path = by_git(bench, i);
            bench.git(&format!("worktree add -q -b by-git-{i} {} HEAD", path.display()));
        }
    })
}

fn remove_by_git(bench: &Bench, count: usize) -> Duration {
    timed(|| {
        for i in 0..count {
            bench.git(&format!("worktree remove --force {}", by_git(bench, i).display()));
            bench.git(&format!("branch -q -D by-git-{i}"));
        }
    })
}

/// The time that git takes to make worktrees, which are removed again.
fn add_and_remove_by_git(bench: &Bench, count: usize) -> Duration {
    let time = add_by_git(bench, count);
    remove_by_git(bench, count);
    time
}

fn by_git(bench: &Bench, i: usize) -> PathBuf {
    bench.home.path().join(format!("by-git-{i}"))
}

/// A run of `count` candidates, and the time that it took to make it.
fn spawn(bench: &Bench, count: usize) -> (String, Duration) {
    let mut run = String::new();
    let time = timed(|| run = bench.frites(&format!("spawn -q -n {count}")));
    (run, time)
}

fn spawn_against_git(bench: &Bench, count: usize) {
    compare(
        &format!("  spawn of {count}, against {count} x git worktree add"),
        || {
            let (run, time) = spawn(bench, count);
            remove(bench, &run);
            time
        },
        || add_and_remove_by_git(bench, count),
    );
}

/// Removes a run and waits until its files are gone, so that nothing runs beside what is measured
/// next.
fn remove(bench: &Bench, run: &str) -> Duration {
    let time = timed(|| bench.forget(run));
    let is_trash = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".trash");
    let root = bench.repo.join(".frites/worktrees");
    while fs::read_dir(&root).into_iter().flatten().flatten().any(is_trash) {
        std::thread::sleep(Duration::from_millis(5));
    }
    time
}

/// The files below a directory, with their contents.
fn contents(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            contents(&path, found);
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.push((path, bytes));
        }
    }
}

/// Writes the files of all worktrees from memory, with two threads: nothing can be faster.
fn write_floor(bench: &Bench, files: &[(PathBuf, Vec<u8>)]) -> Duration {
    let root = bench.home.path().join("floor");
    let write = |i: usize| {
        let root = root.join(i.to_string());
        for (path, bytes) in files {
            let path = root.join(path.strip_prefix(&bench.repo).expect("below"));
            if fs::write(&path, bytes).is_err() {
                fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
                fs::write(&path, bytes).expect("a file");
            }
        }
    };
    let time = timed(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..CANDIDATES / 2).for_each(write));
            scope.spawn(|| (CANDIDATES / 2..CANDIDATES).for_each(write));
        });
    });
    fs::remove_dir_all(&root).expect("removed");
    time
}

/// The commands that only look, in a repository with many runs.
fn look_at_many_runs() {
    let bench = Bench::new(10);
    columns(&bench);
    heading(&format!("{RUNS} runs"));
    (0..RUNS).for_each(|_| drop(spawn(&bench, 1)));
    for (what, command) in [
        ("  status, against git rev-parse", "status"),
        ("  log, against git rev-parse", "log"),
        ("  path, against git rev-parse", "path 1/c1"),
    ] {
        compare(
            what,
            || timed(|| drop(bench.frites(command))),
            || timed(|| drop(bench.git("rev-parse HEAD"))),
        );
    }
    compare(
        "  the same records by for-each-ref and cat-file, against rev-parse",
        || timed(|| read_records_by_git(&bench)),
        || timed(|| drop(bench.git("rev-parse HEAD"))),
    );
}

/// git reads the records that `status` shows: the list of refs, and a file of each.
fn read_records_by_git(bench: &Bench) {
    let refs = bench.git("for-each-ref --format=%(refname):run.toml refs/frites");
    let mut batch = bench.command("git", "cat-file --batch");
    let mut child = batch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git starts");
    child.stdin.take().expect("piped").write_all(refs.as_bytes()).expect("written");
    let records = child.wait_with_output().expect("git ends");
    assert!(records.stdout.len() > RUNS * 100, "the records are there");
}

/// The growth with the number of worktrees.
fn grow() {
    let bench = Bench::new(1000);
    columns(&bench);
    heading("growth, 1000 files");
    let counts = numbers("BENCH_GROWTH", "1 4 16 64");
    counts.into_iter().for_each(|count| spawn_against_git(&bench, count));
}

/// The most memory that a spawn of 16 takes, as the system counts it on Linux.
fn measure_memory() {
    for files in numbers("BENCH_MEMORY_FILES", "50000") {
        let bench = Bench::new(files);
        let program = env!("CARGO_BIN_EXE_git-frites");
        let mut command = bench.command(program, "spawn -q -n 16");
        let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        let mut peak = 0.0f64;
        while child.try_wait().expect("a child").is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            peak = peak.max(kib.unwrap_or_default() / 1024.0);
            std::thread::sleep(Duration::from_millis(1));
        }
        heading("memory");
        figure(&format!("peak memory, spawn of 16 x {files} files"), peak, "MiB");
    }
}

fn main() {
    for size in sizes() {
        let bench = Bench::new(size);
        columns(&bench);
        heading(&format!("{size} files"));
        let counts = numbers("BENCH_CANDIDATES", "8 1");
        counts.into_iter().for_each(|count| spawn_against_git(&bench, count));
        heading("cold:");
        let mut files = Vec::new();
        contents(&bench.repo.join("src"), &mut files);
        compare(
            "  spawn of 8, against writing the same bytes from memory",
            || {
                let (run, time) = spawn(&bench, CANDIDATES);
                remove(&bench, &run);
                time
            },
            || write_floor(&bench, &files),
        );
        compare(
            "  first git status after spawn, after git worktree add",
            || {
                let (run, _) = spawn(&bench, 1);
                let path = bench.repo.join(".frites/worktrees").join(&run).join("c1");
                let status = format!("-C {} status --porcelain", path.display());
                let time = timed(|| drop(bench.git(&status)));
                remove(&bench, &run);
                time
            },
            || {
                add_by_git(&bench, 1);
                let status = format!("-C {} status --porcelain", by_git(&bench, 0).display());
                let time = timed(|| drop(bench.git(&status)));
                remove_by_git(&bench, 1);
                time
            },
        );
        compare(
            "  clean of 8 until the prompt is back, against git's removal",
            || {
                let (run, _) = spawn(&bench, CANDIDATES);
                remove(&bench, &run)
            },
            || {
                add_by_git(&bench, CANDIDATES);
                remove_by_git(&bench, CANDIDATES)
            },
        );
    }
    look_at_many_runs();
    grow();
    measure_memory();
}
