//! The time that git-frites takes, divided by that of plain git commands for the same work.
//!
//! Machines are noisy, so nothing here is asserted: `make bench` prints medians, and a person reads
//! them.
#![expect(clippy::print_stdout, reason = "a benchmark answers on stdout")]

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{
    Bench, CANDIDATES, columns, compare, figure, heading, look_at_all, middle_of, sizes, timed,
};

/// Changes three files of each of these worktrees.
fn edit_all(worktrees: &[PathBuf], text: &str) {
    for (i, worktree) in worktrees.iter().enumerate() {
        for file in ["src/d1/f1.txt", "src/d2/f2.txt", "src/d3/new.txt"] {
            fs::write(worktree.join(file), format!("{text} {i}\n")).expect("a file");
        }
    }
}

/// A capture of every candidate, against the same by hand in other worktrees: what git stages there
/// is nothing that a capture must keep.
fn capture_all(bench: &Bench, run: &str) {
    let ours: Vec<PathBuf> = (1..=CANDIDATES)
        .map(|i| bench.repo.join(format!(".frites/worktrees/{run}/c{i}")))
        .collect();
    let by_hand: Vec<PathBuf> =
        (0..CANDIDATES).map(|i| bench.home.path().join(format!("edited-{i}"))).collect();
    for path in &by_hand {
        bench.git(&format!("worktree add -q --detach {} HEAD", path.display()));
    }
    let round = std::cell::Cell::new(0);
    let edit = |worktrees: &[PathBuf]| {
        round.set(round.get() + 1);
        edit_all(worktrees, &format!("round {}", round.get()));
    };
    let capture_by_hand = || {
        edit(&by_hand);
        timed(|| {
            for path in &by_hand {
                let at = format!("-C {}", path.display());
                bench.git(&format!("{at} add -A"));
                bench.git(&format!("{at} write-tree"));
                bench.git(&format!("{at} diff --staged"));
                bench.git(&format!("{at} diff --staged --numstat"));
            }
        })
    };
    let capture = || {
        edit(&ours);
        timed(|| drop(bench.frites(&format!("capture {run}"))))
    };
    compare(
        "  capture of 8 x 3 edits, against add -A, write-tree, 2 x diff",
        capture,
        capture_by_hand,
    );
    compare(
        "  a stat of each of their files by two threads, against the same",
        || timed(|| look_at_all(&ours)),
        capture_by_hand,
    );
    for path in &by_hand {
        bench.git(&format!("worktree remove --force {}", path.display()));
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

/// 16 trees judged in sealed worlds, which is what `auto` does where it can, and in the open one;
/// by hand one worktree becomes each of the trees, clean, and runs the oracle. Each turn by hand
/// makes and removes that worktree, while ours finds the layer or the checkouts of the turn before.
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
    let by_hand = || {
        bench.git(&format!("worktree add -q --detach {path} HEAD"));
        for i in 1..=16 {
            bench.git(&format!("-C {path} checkout -q --detach refs/frites/{run}/c{i}"));
            bench.git(&format!("-C {path} clean -ffdxq"));
            bench.run("true", "");
        }
        bench.git(&format!("worktree remove --force {path}"));
    };
    let judge = format!("judge -q --no-cache --test true {run}");
    for (mode, world) in [("sealed", "sealed"), ("off", "open")] {
        bench.git(&format!("config frites.sandbox.mode {mode}"));
        // A system without namespaces has no sealed worlds to measure.
        let once = bench.command(env!("CARGO_BIN_EXE_git-frites"), &judge).output();
        if mode == "sealed" && !once.expect("git-frites starts").status.success() {
            continue;
        }
        compare(
            &format!("  judge 16 {world} --test true, against 16 x checkout, clean"),
            || timed(|| drop(bench.frites(&judge))),
            || timed(by_hand),
        );
    }
    bench.git("config --unset frites.sandbox.mode");
    bench.forget(&run);
}

/// The time that a command takes in a sealed world, beyond that of the same command outside.
fn enter_worlds() {
    let bench = Bench::new(10);
    columns(&bench);
    heading(&format!("sealed worlds, {CANDIDATES} candidates"));
    let run = bench.frites(&format!("spawn -q -n {CANDIDATES}"));
    for i in 1..=CANDIDATES {
        let path = format!(".frites/worktrees/{run}/c{i}/src/new");
        fs::write(bench.repo.join(path), format!("{i}\n").repeat(i)).expect("a file");
    }
    bench.frites(&format!("diff {run}"));
    // Those of the candidates and of their base.
    let commands = 3 * (CANDIDATES + 1);
    let judged = |mode: &str| {
        bench.git(&format!("config frites.sandbox.mode {mode}"));
        let options = "judge -q --no-cache --cold --build true --lint true --test true";
        timed(|| drop(bench.frites(&format!("{options} {run}"))))
    };
    let each = middle_of(|| {
        let sealed = judged("sealed").as_secs_f64();
        (sealed - judged("off").as_secs_f64()) * 1e3 / commands as f64
    });
    figure("  entering a world, for each command, beside true", each, "ms");
}

/// The time from the end of the last attempt to the verdict, divided by that of one run of the
/// checks: each attempt that ends two of these after the one before is judged while the others
/// work.
fn judge_beside_attempts() {
    let bench = Bench::new(10);
    columns(&bench);
    heading("attempts that end far apart");
    let attempt = "n=${FRITES_CANDIDATE#c}; sleep $((2 * n)); test $1 = last && n=$((9 - n))\n\
                   while test $n -gt 0; do echo right >> who; n=$((n - 1)); done\n";
    for (name, text) in [("attempt", attempt), ("check", "#!/bin/sh\nsleep 1; grep -q right who\n")]
    {
        fs::write(bench.repo.join(name), text).expect("a file");
    }
    bench.run("chmod", "+x check");
    bench.git("add .");
    bench.git("commit -qm scripts");
    let check = timed(|| drop(bench.command("sh", "check").status())).as_secs_f64();
    for count in [4, 8] {
        for (winner, words) in [("first", "the first wins"), ("last", "the last wins")] {
            let waited = middle_of(|| {
                let options =
                    format!("run --json --no-cache -n {count} -j {count} --oracle-jobs 1");
                let run = bench.frites(&format!("{options} --test ./check -- sh attempt {winner}"));
                let run: serde_json::Value = serde_json::from_str(&run).expect("a document");
                let run = run["run"].as_str().expect("a name").to_owned();
                let waited = from_last_end_to_verdict(&bench, &run);
                bench.forget(&run);
                waited / check
            });
            figure(
                &format!("  {count} attempts, {words}: verdict after the last, in checks"),
                waited,
                "",
            );
        }
    }
}

fn from_last_end_to_verdict(bench: &Bench, run: &str) -> f64 {
    let log = bench.frites(&format!("log --json {run}"));
    let events = log.lines().map(serde_json::from_str::<serde_json::Value>);
    let events: Vec<serde_json::Value> = events.map(|event| event.expect("an event")).collect();
    let last = |kind: &str| -> jiff::Timestamp {
        let of_kind = events.iter().rfind(|event| event["event"] == kind).expect("it happened");
        of_kind["time"].as_str().expect("a time").parse().expect("a time")
    };
    last("judged").duration_since(last("ended")).as_secs_f64()
}

fn main() {
    for files in sizes() {
        let bench = Bench::new(files);
        columns(&bench);
        heading(&format!("{files} files, {CANDIDATES} candidates"));
        let run = bench.frites(&format!("spawn -q -n {CANDIDATES}"));
        capture_all(&bench, &run);
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
    enter_worlds();
    judge_beside_attempts();
}
