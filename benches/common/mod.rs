//! What the benchmarks share: a repository, programs in it, and the comparison of two ways.
//!
//! `BENCH_DIR` says where repositories are made, and so on which file system; `BENCH_FILES` lists
//! their sizes. With `--json`, each comparison is one JSON object on a line of its own, of which
//! `examples/figures.rs` draws tables.
use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::path::Arg;

/// The number of candidates of a run.
pub const CANDIDATES: usize = 8;

const ROUNDS: usize = 5;

/// A repository in a home directory of its own.
pub struct Bench {
    /// The home directory.
    pub home: tempfile::TempDir,
    /// The repository in it.
    pub repo: PathBuf,
}

impl Bench {
    /// A repository of `files` small files.
    pub fn new(files: usize) -> Bench {
        let home = match std::env::var_os("BENCH_DIR") {
            Some(directory) => tempfile::tempdir_in(directory),
            None => tempfile::tempdir(),
        };
        let home = home.expect("a temporary directory");
        let repo = home.path().canonicalize().expect("it exists").join("repo");
        let bench = Bench { home, repo };
        fs::create_dir_all(bench.repo.join("src")).expect("a directory");
        for i in 0..files {
            let dir = bench.repo.join(format!("src/d{}", i % 50));
            fs::create_dir_all(&dir).expect("a directory");
            fs::write(dir.join(format!("f{i}.txt")), format!("line {i}\n").repeat(40))
                .expect("a file");
        }
        // A repository at rest. Left alone, `git commit` would start a `gc` beside all that is
        // measured.
        for args in ["init -q -b main", "config gc.auto 0", "add -A", "commit -q -m base", "gc -q"]
        {
            bench.git(args);
        }
        bench.run("touch", "-d 2020-01-01 .git/objects/pack");
        bench
    }

    /// A program in the repository.
    pub fn command(&self, program: &str, args: &str) -> Command {
        let mut command = Command::new(program);
        command.args(args.split_whitespace()).current_dir(&self.repo).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path());
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "B"),
            ("GIT_AUTHOR_EMAIL", "b@example.com"),
            ("GIT_COMMITTER_NAME", "B"),
            ("GIT_COMMITTER_EMAIL", "b@example.com"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a program in the repository; gives its output.
    pub fn run(&self, program: &str, args: &str) -> String {
        let output = self.command(program, args).output().expect("the program starts");
        assert!(output.status.success(), "{program} {args}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs git.
    pub fn git(&self, args: &str) -> String {
        self.run("git", args)
    }

    /// Runs git-frites.
    pub fn frites(&self, args: &str) -> String {
        self.run(env!("CARGO_BIN_EXE_git-frites"), args)
    }

    /// Removes a run with its worktrees.
    pub fn forget(&self, run: &str) {
        self.frites(&format!("clean -q --discard --forget {run}"));
    }
}

/// Lists all directories of these worktrees and takes the stat of each file, with two threads:
/// whatever believes no watcher, and has to know that no file has changed, cannot be faster.
pub fn look_at_all(worktrees: &[PathBuf]) {
    std::thread::scope(|scope| {
        for half in worktrees.chunks(worktrees.len().div_ceil(2)) {
            scope.spawn(|| half.iter().for_each(|worktree| look_below(CWD, worktree)));
        }
    });
}

fn look_below(parent: impl AsFd, directory: impl Arg) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(parent, directory, flags, Mode::empty()).expect("a directory");
    let mut listing = Dir::new(opened).expect("readable");
    while let Some(entry) = listing.read() {
        let entry = entry.expect("readable");
        let name = entry.file_name();
        let handle = listing.fd().expect("open");
        match entry.file_type() {
            FileType::Directory if ![c".", c".."].contains(&name) => look_below(handle, name),
            FileType::Directory => {}
            _ => drop(rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW).expect("a file")),
        }
    }
}

/// The time that `work` takes.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The sizes of repositories, in files.
pub fn sizes() -> Vec<usize> {
    numbers("BENCH_FILES", "1000 10000")
}

/// The numbers that a variable lists.
pub fn numbers(variable: &str, default: &str) -> Vec<usize> {
    let list = std::env::var(variable).unwrap_or_else(|_| default.into());
    list.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
}

fn is_json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}

/// Prints a line between comparisons.
pub fn heading(text: &str) {
    if is_json() {
        println!("{}", serde_json::json!({ "heading": text }));
    } else {
        println!("{text}");
    }
}

/// Prints the heads of the columns, with the file system and the number of processors.
pub fn columns(bench: &Bench) {
    let system = bench.run("stat", &format!("-f -c %T {}", bench.repo.display()));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let where_from = format!("file system {system}, {processors} processors");
    heading(&where_from);
    if !is_json() {
        println!(
            "{:<58} {:>11} {:>11} {:>6} {:>13}",
            "", "git frites", "by hand", "ratio", "min to max"
        );
    }
}

/// Prints a figure that has no rival.
pub fn figure(what: &str, value: f64, unit: &str) {
    let what = what.trim();
    if is_json() {
        println!("{}", serde_json::json!({ "what": what, "value": value, "unit": unit }));
    } else {
        println!("  {what:<56} {value:>8.1} {unit}");
    }
}

/// The median of several measurements.
pub fn middle_of(mut measure: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..ROUNDS).map(|_| measure()).collect();
    all.sort_by(f64::total_cmp);
    all[ROUNDS / 2]
}

/// Compares both ways, taken in turns so that a slow moment hits both: medians of the times and of
/// the ratios of each turn.
pub fn compare(
    what: &str,
    mut ours: impl FnMut() -> Duration,
    mut by_hand: impl FnMut() -> Duration,
) {
    let pairs: Vec<(f64, f64)> =
        (0..ROUNDS).map(|_| (ours().as_secs_f64() * 1e3, by_hand().as_secs_f64() * 1e3)).collect();
    let sorted = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (a, b, ratios) = (sorted(|p| p.0), sorted(|p| p.1), sorted(|p| p.0 / p.1));
    let middle = ROUNDS / 2;
    if is_json() {
        let row = serde_json::json!({
            "what": what.trim(), "ours_ms": a, "by_hand_ms": b, "ratios": ratios, "ratio": ratios[middle],
        });
        println!("{row}");
    } else {
        println!(
            "{what:<58} {:>8.1} ms {:>8.1} ms {:>6.2} {:>6.2} {:>6.2}",
            a[middle],
            b[middle],
            ratios[middle],
            ratios[0],
            ratios[ROUNDS - 1]
        );
    }
}
