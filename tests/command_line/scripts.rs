//! In scripts: exit codes, stdout that carries the answer alone, sh, bash and make.
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

use crate::common::{World, answer, make_executable, until};

const ORACLE: &str = "[oracle]\ntest = \"grep -qx fixed src/lib.txt\"\n";

/// A repository whose test command is configured and fails on the base.
fn project() -> World {
    let world = World::new();
    world.write(".frites.toml", ORACLE);
    world.commit("configure");
    world
}

/// Runs `git frites` and asserts the exit code and every byte of stdout.
#[track_caller]
fn says(world: &World, args: &[&str], code: i32, stdout: &str) -> String {
    let answer = world.frites(args).expect(code);
    assert_eq!(answer.out(), stdout, "{args:?}");
    answer.stderr
}

/// True if a process runs; a zombie does not.
fn runs(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
        Err(_) if Path::new("/proc/self/stat").exists() => false,
        Err(_) => test_kill_process(Pid::from_raw(pid).unwrap()).is_ok(),
    }
}

#[test]
fn exit_code_0_means_done() {
    let world = project();
    let path = |c: &str| world.worktree(c).display().to_string();
    says(&world, &["spawn", "-c", "a"], 0, &format!("1/a\t{}\n", path("1/a")));
    says(&world, &["path", "1"], 0, &format!("{}\n", path("1/a")));
    says(&world, &["diff", "1", "--exit-code"], 0, "1/a\t0 lines in 0 files\topen\n");
    fs::write(world.worktree("1/a").join("src/lib.txt"), "fixed\n").unwrap();
    says(&world, &["diff", "1", "--numstat"], 0, "# 1/a\n1\t3\tsrc/lib.txt\n");
    for verb in
        [vec!["judge", "1"], vec!["status"], vec!["log"], vec!["apply", "1"], vec!["clean", "1"]]
    {
        assert_ne!(world.frites(&verb).expect(0).out(), "", "{verb:?}");
    }
    for help in [vec!["help"], vec!["-h"], vec!["judge", "--help"], vec!["--version"]] {
        assert!(world.frites(&help).expect(0).out().contains("frites"), "{help:?}");
    }
    world.assert_clean();
}

#[test]
fn exit_code_1_means_nothing_passed() {
    let world = project();
    let run = world.spawn(["-n", "2"]);
    world.frites(["apply"]).refuses(1, "run 1 was not judged");
    fs::write(world.worktree("1/c2").join("src/lib.txt"), "wrong\n").unwrap();
    says(
        &world,
        &["diff", "1", "--exit-code"],
        1,
        "1/c1\t0 lines in 0 files\topen\n1/c2\t4 lines in 1 file\topen\n",
    );
    says(&world, &["diff", "1/c2", "--exit-code", "--name-only"], 1, "src/lib.txt\n");
    says(&world, &["diff", "1/c1", "--exit-code"], 0, "");
    let judged = world.frites(["judge"]).expect(1);
    assert!(judged.out().contains("\nnear-miss: "), "{}", judged.out());
    says(&world, &["judge", "-q"], 1, "");
    assert_eq!(world.frites(["judge", "--json"]).expect(1).json()["exit_code"], 1);
    let before = world.belongings();
    world.frites(["apply", &run]).refuses(1, "nothing verified to land");
    world.frites(["apply", "1/c2"]).refuses(1, "it failed test (exit 1)");
    world.frites(["apply", "1/c1"]).refuses(1, "1/c1 changed nothing");
    assert_eq!(world.belongings(), before);
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites/apply"]), "");
    world.assert_clean();
}

#[test]
fn exit_code_2_means_usage_and_128_fatal() {
    let world = World::new();
    world.frites(["spawn", "-n"]).refuses(2, "a value is required");
    world.frites(["spawn", "--run", "a/b"]).refuses(2, "not a valid name");
    world.frites(["diff", "1"]).refuses(128, "there is no run yet");
    world.spawn(["-n", "1"]);
    world.frites(["diff", "2"]).refuses(128, "there is no run '2'");
}

#[test]
fn exit_code_3_means_an_unverified_pick() {
    let world = World::new();
    world.spawn(["-n", "2"]);
    fs::write(world.worktree("1/c1").join("README"), "1\n2\n3\n").unwrap();
    fs::write(world.worktree("1/c2").join("README"), "small\n").unwrap();
    let judged = world.frites(["judge"]).expect(3);
    assert!(judged.out().contains("\nno-oracle: "), "{}", judged.out());
    assert!(judged.stderr.contains("hint: name the commands"), "{}", judged.stderr);
    says(&world, &["judge", "-q"], 3, "");
    let json = world.frites(["judge", "--json"]).expect(3).json();
    assert_eq!((&json["verified"], &json["exit_code"]), (&false.into(), &3.into()));
    assert_eq!(json["recommended"], "c2", "{json:#}");
    world.frites(["apply"]).refuses(1, "nothing verified to land");
    world.assert_clean();
}

#[test]
fn exit_code_4_means_no_usable_candidate() {
    let world = project();
    let failing = world
        .frites(["spawn", "-q", "--", "sh", "-c", "echo fixed > src/lib.txt; exit 7"])
        .expect(4);
    assert_eq!(failing.out(), "1\n", "the run is there to be looked at");
    assert!(failing.stderr.contains("no candidate is usable"), "{}", failing.stderr);
    let add = ["add", "-q", "1", "-c", "more", "--", "false"];
    let more = world.frites(add).expect(4);
    assert!(more.stderr.contains("no candidate of this round is usable"), "{}", more.stderr);
    world.frites(["spawn", "--", "true"]).expect(4);
    world.spawn(["-n", "2"]);
    for run in ["1", "2", "3"] {
        let judged = world.frites(["judge", run]).expect(4);
        assert!(judged.out().starts_with("none: "), "{}", judged.out());
        says(&world, &["judge", "-q", run], 4, "");
        world.frites(["apply", run]).refuses(1, "there is nothing to land");
    }
    // One that can be judged is enough.
    world
        .frites(["spawn", "--", "sh", "-c", "echo fixed > src/lib.txt; test $FRITES_INDEX = 2"])
        .expect(0);
    says(&world, &["judge", "-q"], 0, "4/c2\n");
    world.assert_clean();
}

/// Ctrl-C is passed on and everything is put in order; after SIGKILL the next command does that.
#[test]
fn interrupt_exits_130_and_work_survives_it_and_a_kill() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::KILL, 137)] {
        what_was_done_is_kept_after(signal, code);
    }
}

fn what_was_done_is_kept_after(signal: Signal, code: i32) {
    let killed = signal == Signal::KILL;
    let world = World::new();
    let before = world.belongings();
    let script = r#"echo draft > work.txt; echo $$ > "$HOME/new-$FRITES_CANDIDATE"
        mv "$HOME/new-$FRITES_CANDIDATE" "$HOME/pid-$FRITES_CANDIDATE"; sleep 600; echo late > late.txt"#;
    let mut command =
        world.command(&world.repo, "git", ["frites", "spawn", "-j", "2", "--", "sh", "-c", script]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pids = ["c1", "c2"].map(|c| {
        let file = world.home().join(format!("pid-{c}"));
        until("the command has started", || {
            fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok()
        })
    });
    let busy = world.frites(["judge", "1"]);
    kill_process_group(Pid::from_child(&child), signal).unwrap();
    let ended = answer(&child.wait_with_output().unwrap()).expect(code);
    busy.refuses(128, "run 1 is still at work");
    assert_eq!(ended.out().lines().count(), if killed { 0 } else { 2 });
    for pid in pids {
        until("the command is gone", || (!runs(pid)).then_some(()));
    }

    let healed = world.frites(["status", "--json"]).expect(0);
    assert_eq!(healed.stderr.contains("run 1 was interrupted"), killed, "{}", healed.stderr);
    for candidate in healed.json()["runs"][0]["candidates"].as_array().unwrap() {
        assert_eq!(candidate["state"], "cancelled");
    }
    let shown = world.frites(["status", "1"]).expect(0);
    assert!(
        shown.out().contains(if killed {
            "cancelled (git-frites was interrupted)"
        } else {
            "cancelled (interrupted)"
        }),
        "{}",
        shown.out()
    );
    assert_eq!(shown.stderr, "", "once is enough");
    assert!(world.frites(["diff", "1/c1"]).expect(0).out().contains("\n+draft\n"));
    assert_eq!(world.git(["show", "refs/frites/1/c1:work.txt"]), "draft");
    world.frites(["judge", "1", "--test", "true"]).expect(4);
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}

/// Three attempts: one that is wrong, one that is right, one that is right and larger.
const EDIT: &str = r#"echo wrong > "$(git frites path "$run/c1")/src/lib.txt"
echo fixed > "$(git frites path "$run/c2")/src/lib.txt"
printf '%s\n' fixed and more > "$(git frites path "$run/c3")/src/lib.txt"
"#;

/// The line of the README, `edit` between its steps.
fn line(edit: &str) -> String {
    format!(
        r#"run=$(git frites spawn -q -n 3) && {edit} && git frites judge "$run" && git frites apply "$run" -m "Fix it""#
    )
}

fn landed(world: &World) {
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/frites/apply/1");
    assert_eq!(world.git(["show", "HEAD:src/lib.txt"]), "fixed");
    assert_eq!(world.git(["log", "-1", "--format=%s"]), "Fix it");
    assert_eq!(world.tree("HEAD"), world.tree("refs/frites/1/c2"), "what passed is what lands");
    assert_eq!(world.git(["rev-parse", "HEAD^"]), world.git(["rev-parse", "main"]));
    assert_eq!(world.git(["status", "--porcelain"]), "");
    world.assert_clean();
}

#[test]
fn spawn_to_apply_works_as_one_line_of_sh_and_bash() {
    for shell in ["sh", "bash"] {
        let world = project();
        world.write("edit.sh", format!("set -eu\nrun=$1\n{EDIT}"));
        world.commit("edit");
        let done = world.run(&world.repo, shell, ["-euc", &line("sh edit.sh \"$run\"")]).expect(0);
        let lines: Vec<_> = done.stdout.split(|b| *b == b'\n').collect();
        assert_eq!(lines[lines.len() - 2..], [b"frites/apply/1".as_slice(), b""], "{}", done.out());
        landed(&world);
    }
}

#[test]
fn spawn_to_apply_works_as_a_make_recipe() {
    let world = project();
    world.write("edit.sh", format!("set -eu\nrun=$1\n{EDIT}"));
    let recipe = line("sh edit.sh \"$run\"").replace('$', "$$");
    world.write("Makefile", format!("all: fix\n\techo done > done.txt\nfix:\n\t{recipe}\n"));
    world.commit("make");
    world.run(&world.repo, "make", ["-s"]).expect(0);
    assert_eq!(fs::read(world.repo.join("done.txt")).unwrap(), b"done\n");
    fs::remove_file(world.repo.join("done.txt")).unwrap();
    landed(&world);
}

#[test]
fn judge_without_a_winner_stops_the_shell_line_and_the_recipe() {
    let world = project();
    let script = line("echo wrong > \"$(git frites path \"$run/c1\")/src/lib.txt\"");
    world.write(
        "Makefile",
        format!("all: fix\n\techo done > done.txt\nfix:\n\t{}\n", script.replace('$', "$$")),
    );
    world.commit("make");
    let before = world.belongings();
    for shell in ["sh", "bash"] {
        for script in [script.clone(), script.replace(" && ", "\n")] {
            let stopped = world.run(&world.repo, shell, ["-euc", &script]).expect(1);
            assert!(
                stopped.out().contains("near-miss: ") && !stopped.out().contains("apply"),
                "{}",
                stopped.out()
            );
        }
    }
    let made = world.run(&world.repo, "make", [""; 0]).expect(2);
    assert!(made.stderr.contains("[Makefile:4: fix] Error 1"), "{}", made.stderr);
    assert_eq!(world.belongings(), before, "nothing landed, nothing was written");
    let none =
        world.sh(&world.repo, "winner=$(git frites judge -q) && echo \"won: $winner\"").expect(1);
    assert_eq!(none.out(), "");
    world.assert_clean();
}

#[test]
fn stdout_of_spawn_holds_only_the_worktrees() {
    let world = project();
    let path = |c: &str| world.worktree(c).display().to_string();
    says(
        &world,
        &["spawn", "-n", "2"],
        0,
        &format!("1/c1\t{}\n1/c2\t{}\n", path("1/c1"), path("1/c2")),
    );
    assert_eq!(says(&world, &["spawn", "-q", "-n", "1"], 0, "2\n"), "");
    let said = says(
        &world,
        &[
            "spawn",
            "-n",
            "1",
            "--",
            "sh",
            "-c",
            "echo fixed > src/lib.txt; echo noise; echo noise >&2",
        ],
        0,
        &format!("3/c1\t{}\n", path("3/c1")),
    );
    assert!(said.contains("3/c1: succeeded in ") && !said.contains("noise"), "{said}");
    let quiet = [
        "spawn",
        "-q",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "echo fixed > src/lib.txt; echo noise; echo noise >&2",
    ];
    assert_eq!(says(&world, &quiet, 0, "4\n"), "");
    assert_eq!(says(&world, &["clean", "-q", "1"], 0, ""), "");
    world.assert_clean();
}

#[test]
fn stdout_of_judge_diff_apply_and_clean_holds_only_the_answer() {
    let world = project();
    world.attempts(&["echo fixed > src/lib.txt"]);
    let judged = world.frites(["judge", "1"]).expect(0);
    assert!(
        judged.out().contains("\nsingle: ") && judged.stderr.contains("1/c1: test passed"),
        "{judged:?}"
    );
    assert_eq!(says(&world, &["judge", "-q", "1"], 0, "1/c1\n"), "");
    assert_eq!(world.frites(["judge", "1", "--json"]).expect(0).json()["version"], 1);

    let patch = world.frites(["diff", "1/c1"]).expect(0);
    assert_eq!(
        patch.out(),
        world.git(["diff", "--full-index", "--binary", "HEAD", "refs/frites/1/c1"]) + "\n"
    );
    assert_eq!(patch.stderr, "");
    says(&world, &["diff", "1"], 0, "1/c1\t4 lines in 1 file\tpassed\n");

    let said = says(&world, &["apply", "1", "--branch", "loud"], 0, "loud\n");
    assert!(said.contains("\nhint: staged on loud; "), "{said}");
    world.git(["reset", "-q", "--hard"]);
    world.git(["switch", "-q", "main"]);
    assert_eq!(says(&world, &["apply", "1", "-q"], 0, "frites/apply/1\n"), "");

    let cleaned = world.frites(["clean", "1"]).expect(0);
    assert!(
        cleaned.out().starts_with("removed 1/c1 (") && cleaned.out().contains("\nfreed "),
        "{}",
        cleaned.out()
    );
    assert_eq!(cleaned.stderr, "");
    let logged = world.frites(["log"]).expect(0);
    assert!(logged.out().contains("landed") && logged.stderr.is_empty(), "{logged:?}");
    world.assert_clean();
}

#[test]
fn closed_pipe_is_not_reported() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    let big: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    fs::write(world.worktree("1/c1").join("big"), big).unwrap();
    world.write("head.sh", "git frites diff 1/c1 2> err.txt; echo $? > code.txt\n");
    make_executable(&world.repo.join("head.sh"));
    world.sh(&world.repo, "sh head.sh | head -n 1").expect(0);
    assert_eq!(fs::read_to_string(world.repo.join("err.txt")).unwrap(), "captured 1/c1@1\n");
    assert_eq!(fs::read_to_string(world.repo.join("code.txt")).unwrap(), "141\n");
}
