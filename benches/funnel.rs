//! The time that git-frites takes, divided by that of plain git commands for the same work.
//!
//! Machines are noisy, so nothing here is asserted: `make bench` prints medians, and a person reads them.
#![expect(clippy::print_stdout, reason = "a benchmark answers on stdout")]

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;

use common::{Bench, CANDIDATES, columns, compare, heading, sizes, timed};

/// Edits one file of each candidate.
fn edit_all(bench: &Bench, run: &str, text: &str) {
    for i in 1..=CANDIDATES {
        let dir = bench.repo.join(format!(".frites/worktrees/{run}/c{i}/src/d1"));
        fs::write(dir.join("f1.txt"), format!("{text} {i}\n")).expect("a file");
    }
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
    for files in sizes() {
        let bench = Bench::new(files);
        columns(&bench);
        heading(&format!("{files} files, {CANDIDATES} candidates"));
        let run = bench.frites(&format!("spawn -q -n {CANDIDATES}"));
        let round = std::cell::Cell::new(0);
        compare(
            "  capture 8 edits (diff RUN), against add -A, write-tree, diff",
            || {
                round.set(round.get() + 1);
                edit_all(&bench, &run, &format!("round {}", round.get()));
                timed(|| drop(bench.frites(&format!("diff {run}"))))
            },
            || {
                round.set(round.get() + 1);
                edit_all(&bench, &run, &format!("round {}", round.get()));
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
