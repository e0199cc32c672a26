//! The time that git-frites takes, divided by that of plain git commands for the same work.
//!
//! Machines are noisy, so nothing here is asserted: `make bench` prints medians, and a person reads them.
#![expect(clippy::print_stdout, reason = "a benchmark answers on stdout")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CANDIDATES: usize = 8;
const ROUNDS: usize = 5;

struct Bench {
    home: tempfile::TempDir,
    repo: PathBuf,
}

impl Bench {
    /// A repository of `files` small files.
    fn new(files: usize) -> Bench {
        let home = tempfile::tempdir().expect("a temporary directory");
        let repo = home.path().canonicalize().expect("it exists").join("repo");
        let bench = Bench { home, repo };
        fs::create_dir_all(bench.repo.join("src")).expect("a directory");
        for i in 0..files {
            let dir = bench.repo.join(format!("src/d{}", i % 50));
            fs::create_dir_all(&dir).expect("a directory");
            fs::write(dir.join(format!("f{i}.txt")), format!("line {i}\n").repeat(40))
                .expect("a file");
        }
        for args in ["init -q -b main", "add -A", "commit -q -m base"] {
            bench.git(args);
        }
        bench
    }

    fn command(&self, program: &str, args: &str) -> Command {
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

    fn run(&self, program: &str, args: &str) -> String {
        let output = self.command(program, args).output().expect("the program starts");
        assert!(output.status.success(), "{program} {args}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn git(&self, args: &str) -> String {
        self.run("git", args)
    }

    fn frites(&self, args: &str) -> String {
        self.run(env!("CARGO_BIN_EXE_git-frites"), args)
    }

    fn edit_all(&self, run: &str, text: &str) {
        for i in 1..=CANDIDATES {
            let dir = self.repo.join(format!(".frites/worktrees/{run}/c{i}/src/d1"));
            fs::write(dir.join("f1.txt"), format!("{text} {i}\n")).expect("a file");
        }
    }

    fn forget(&self, run: &str) {
        self.frites(&format!("clean -q --discard --forget {run}"));
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Medians of both ways, taken in turns so that a slow moment hits both.
fn compare(what: &str, mut ours: impl FnMut() -> Duration, mut by_hand: impl FnMut() -> Duration) {
    let (mut a, mut b): (Vec<Duration>, Vec<Duration>) =
        (0..ROUNDS).map(|_| (ours(), by_hand())).unzip();
    a.sort();
    b.sort();
    let (a, b) = (a[ROUNDS / 2].as_secs_f64() * 1e3, b[ROUNDS / 2].as_secs_f64() * 1e3);
    println!("{what:<58} {a:>8.1} ms {b:>8.1} ms {:>6.2}", a / b);
}

fn add_and_remove(bench: &Bench, after: impl Fn(&Path)) {
    for i in 0..CANDIDATES {
        let path = bench.home.path().join(format!("by-hand-{i}"));
        bench.git(&format!("worktree add -q --detach {} HEAD", path.display()));
        after(&path);
        bench.git(&format!("worktree remove --force {}", path.display()));
    }
}

/// One worktree by hand, which becomes each of 16 trees, clean, and runs the oracle.
fn judge_sixteen(bench: &Bench) {
    let run = bench.frites("spawn -q -n 16");
    let worktrees = bench.repo.join(".frites/worktrees").join(&run);
    for i in 1..=16 {
        fs::write(worktrees.join(format!("c{i}/src/d1/f1.txt")), format!("{i}\n").repeat(i))
            .expect("a file");
        fs::write(worktrees.join(format!("c{i}/src/d2/new{i}.txt")), "new\n").expect("a file");
    }
    bench.frites(&format!("diff {run}"));
    let path = bench.home.path().join("sixteen");
    let path = path.display();
    compare(
        "  judge 16 --test true, against 16 x checkout, clean, true",
        || timed(|| drop(bench.frites(&format!("judge -q --no-cache --test true {run}")))),
        || {
            timed(|| {
                bench.git(&format!("worktree add -q --detach {path} HEAD"));
                for i in 1..=16 {
                    bench.git(&format!("-C {path} checkout -q --detach refs/frites/{run}/c{i}"));
                    bench.git(&format!("-C {path} clean -ffdxq"));
                    bench.run("true", "");
                }
                bench.git(&format!("worktree remove --force {path}"));
            })
        },
    );
    bench.forget(&run);
}

fn main() {
    println!("{:<58} {:>11} {:>11} {:>6}", "", "git frites", "by hand", "ratio");
    for files in [1_000, 10_000] {
        let bench = Bench::new(files);
        println!("{files} files, {CANDIDATES} candidates");
        compare(
            "  spawn, against 8 x git worktree add",
            || {
                let mut run = String::new();
                let time = timed(|| run = bench.frites(&format!("spawn -q -n {CANDIDATES}")));
                bench.forget(&run);
                time
            },
            || {
                let paths: Vec<PathBuf> =
                    (0..CANDIDATES).map(|i| bench.home.path().join(format!("add-{i}"))).collect();
                let time = timed(|| {
                    for (i, path) in paths.iter().enumerate() {
                        bench.git(&format!(
                            "worktree add -q -b by-hand-{i} {} HEAD",
                            path.display()
                        ));
                    }
                });
                for (i, path) in paths.iter().enumerate() {
                    bench.git(&format!("worktree remove --force {}", path.display()));
                    bench.git(&format!("branch -q -D by-hand-{i}"));
                }
                time
            },
        );
        let run = bench.frites(&format!("spawn -q -n {CANDIDATES}"));
        let round = std::cell::Cell::new(0);
        compare(
            "  capture 8 edits (diff RUN), against add -A, write-tree, diff",
            || {
                round.set(round.get() + 1);
                bench.edit_all(&run, &format!("round {}", round.get()));
                timed(|| drop(bench.frites(&format!("diff {run}"))))
            },
            || {
                round.set(round.get() + 1);
                bench.edit_all(&run, &format!("round {}", round.get()));
                timed(|| {
                    for i in 1..=CANDIDATES {
                        let dir = format!("-C .frites/worktrees/{run}/c{i}");
                        bench.git(&format!("{dir} add -A"));
                        let tree = bench.git(&format!("{dir} write-tree"));
                        bench.git(&format!("diff-tree -r -p --numstat HEAD {tree}"));
                    }
                })
            },
        );
        bench.frites(&format!("diff {run}"));
        compare(
            "  judge --test true, against 8 x add, true, remove",
            || timed(|| drop(bench.frites(&format!("judge -q --no-cache --test true {run}")))),
            || timed(|| add_and_remove(&bench, |_| drop(bench.run("true", "")))),
        );
        compare(
            "  judge --test true again, all known, against 8 x true",
            || timed(|| drop(bench.frites(&format!("judge -q --test true {run}")))),
            || timed(|| (0..CANDIDATES).for_each(|_| drop(bench.run("true", "")))),
        );
        judge_sixteen(&bench);
        let count = std::cell::Cell::new(0);
        let next = || {
            count.set(count.get() + 1);
            count.get()
        };
        let by_hand = |n: u32| {
            let capture = format!("refs/frites/{run}/c1");
            let tree =
                bench.git(&format!("merge-tree --write-tree --merge-base=HEAD HEAD {capture}"));
            let commit = bench.git(&format!("commit-tree {tree} -p HEAD -m land"));
            bench.git(&format!("update-ref refs/heads/by-hand-{n} {commit}"));
        };
        let apply = |options: &str, n: u32| {
            drop(bench.frites(&format!(
                "apply -q {options} --no-switch -m land --branch landed-{n} {run}"
            )));
        };
        compare(
            "  apply --judged, against merge-tree, commit-tree, update-ref",
            || timed(|| apply("--judged", next())),
            || timed(|| by_hand(next())),
        );
        compare(
            "  apply, against git status in the worktree and those",
            || timed(|| apply("", next())),
            || {
                timed(|| {
                    bench.git(&format!("-C .frites/worktrees/{run}/c1 status --porcelain"));
                    by_hand(next());
                })
            },
        );
    }
}
