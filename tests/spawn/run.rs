//! `git frites run`: the whole funnel in one go, interrupted and resumed.
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::common::processes::{living, marked};
use crate::common::{World, answer, kill, make_executable, poll, write};

/// `c1` breaks the test, `c2` and `c3` pass it, `c2` with fewer lines.
const ATTEMPT: &str = "case $FRITES_CANDIDATE in
    c1) echo bad > src/lib.txt;; c2) echo good >> src/lib.txt;; c3) printf 'good\\nand more\\n' >> src/lib.txt;; esac";
const TEST: &str = "grep -q good src/lib.txt";

#[test]
fn run_goes_from_attempts_to_a_verdict_and_hints_at_apply() {
    let world = World::new();
    let before = world.belongings();
    let answer =
        world.frites(["run", "-n", "3", "--test", TEST, "--", "sh", "-c", ATTEMPT]).expect(0);
    let out = answer.out();
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["candidate", "outcome", "time"], "{out}");
    assert_eq!(rows[1][..4], ["1/@base", "test", "exit", "1"], "{out}");
    assert_eq!(rows[2][..3], ["*", "1/c2", "passed"], "{out}");
    assert_eq!(rows[3][..2], ["1/c3", "passed"], "the second in rank: {out}");
    assert_eq!(rows[4][..4], ["1/c1", "test", "exit", "1"], "{out}");
    assert!(
        out.contains("judge: 2 of 3 passed; c2 changes the fewest lines, with 1 line in 1 file"),
        "{out}"
    );
    for line in [
        "run 1: 3 candidates from ",
        "1/c2: succeeded in ",
        "1/c1: test exit 1 (",
        "hint: look at it with `git frites diff 1/c2`, land it with `git frites apply 1`",
    ] {
        assert!(answer.stderr.contains(line), "no '{line}' in:\n{}", answer.stderr);
    }
    assert!(
        !answer.stderr.contains('\r') && !answer.stderr.contains('\x1b'),
        "plain lines in a pipe"
    );
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}

#[test]
fn run_has_the_exit_codes_and_short_answers_of_judge() {
    let world = World::new();
    let run = |words: &[&str], script: &str| {
        world.frites([&["run", "-n", "2"], words, &["--", "sh", "-c", script]].concat())
    };
    assert_eq!(run(&["-q", "--test", "true"], "echo x >> README").expect(0).out(), "1/c1\n");
    assert_eq!(run(&["-q", "--test", "false"], "echo x >> README").expect(1).out(), "");
    assert_eq!(run(&["-q"], "echo x >> README").expect(3).out(), "");
    assert_eq!(run(&["-q", "--test", "true"], "true").expect(4).out(), "");
    let json = run(
        &["--json", "--build", "true", "--lint", "true", "--test", "true", "--oracle-jobs", "2"],
        "echo x >> README",
    )
    .expect(0)
    .json();
    assert_eq!(
        (json["version"].as_u64(), json["recommended"].as_str(), json["verified"].as_bool()),
        (Some(1), Some("c1"), Some(true))
    );
    assert_eq!(json["escaped"], serde_json::json!([]));
    assert_eq!(json["oracle"].as_array().unwrap().len(), 3);
    world.frites(["run", "--test", "true"]).refuses(2, "there is no command to run");
    world.frites(["run", "--resume", "9"]).refuses(128, "there is no run '9'");
    world.frites(["run", "--resume", "1", "-n", "2"]).refuses(2, "cannot be used with");
    // The run's first options are remembered, even with a prompt of `--`; options given now are
    // added.
    world
        .frites([
            "run", "-q", "-n", "1", "-p", "--", "--test", "false", "--", "sh", "-c", "cat > p",
        ])
        .expect(1);
    world.frites(["run", "--resume", "6"]).expect(1);
    world.frites(["run", "--resume", "6", "--test", "true"]).expect(0);
    world.spawn(["-n", "1"]);
    world.frites(["run", "--resume", "7"]).refuses(2, "run 7 has no command to resume");
    world.git(["config", "frites.agents.mine.command", "sh -c 'echo x >> README'"]);
    world.frites(["run", "-q", "--agent", "mine", "-p", "hi", "--test", "false", "--"]).expect(1);
    world.frites(["run", "--resume", "8", "--timeout", "1h"]).expect(1);
    // A record cannot hold these words, so nothing else runs in their place.
    let odd = ["run", "-q", "-n", "1", "--test", "false", "--", "sh", "-c", "echo x >> README"];
    let odd = odd.iter().map(OsStr::new).chain([OsStr::from_bytes(b"\xff")]);
    world.frites(odd).expect(1);
    world.frites(["run", "--resume", "9"]).refuses(128, "options of run 9 cannot be used again");
    world.frites(["retry", "--yes", "9/c1"]).refuses(128, "in the command is not UTF-8");
    let slow =
        run(&["--oracle-timeout", "1s", "--test", "sleep 500"], "echo x >> README").expect(1);
    assert!(slow.out().contains("timed out"), "{}", slow.out());
}

#[test]
fn run_accepts_every_option_of_judge() {
    let world = World::new();
    world.write("tests/check", "grep -q good README\n");
    world.commit("a test");
    let script =
        "case $FRITES_CANDIDATE in c1) echo true > tests/check;; *) echo good >> README;; esac";
    let mut words = vec!["run", "--json", "-n", "3", "--test", "sh tests/check"];
    words.extend([
        "--protect",
        "tests",
        "--retries",
        "1",
        "--until-pass",
        "--rank",
        "agreement",
        "--no-cache",
    ]);
    let json = world.frites([&words[..], &["--", "sh", "-c", script]].concat()).expect(0).json();
    assert_eq!(json["recommended"], "c2");
    assert_eq!(json["candidates"][0]["dropped"], serde_json::json!(["tests/check"]));
    assert_eq!(json["terms"]["rank"], "agreement");
    assert_eq!(json["terms"]["retries"], 1);
    assert_eq!(json["baseline"]["results"][0]["outcome"], "failed");
    // The winner would stay so whatever the third did; the first is judged, for it comes before.
    assert_eq!(json["candidates"][2]["same_as"], "c2");
}

/// A run whose commands wait at a gate the first time; a world in which the gate is closed.
struct Gated {
    world: World,
    mark: String,
    gate: String,
}

impl Gated {
    fn new() -> Gated {
        let (world, mark) = marked();
        let gate = world.home().join("gate").display().to_string();
        Gated { world, mark, gate }
    }

    /// Every attempt appends a line before the gate and does the rest behind it: going on where it
    /// was would show two lines.
    fn words(&self) -> Vec<String> {
        let script = format!(
            "echo begun >> README; case $FRITES_CANDIDATE in c1) ;; *) until test -e '{}'; do sleep 0.01; done;; esac; {ATTEMPT}",
            self.gate
        );
        ["run", "-n", "3", "-j", "3", "--test", TEST, "--", "sh", "-c", &script]
            .map(str::to_owned)
            .to_vec()
    }

    /// Starts the run, and waits until one candidate has ended and two wait at the gate.
    fn start(&self) -> Child {
        let mut command = self.world.command(&self.world.repo, "git-frites", self.words());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        poll(|| {
            let begun = |c: &str| {
                fs::read_to_string(self.world.worktree(c).join("README"))
                    .is_ok_and(|t| t.ends_with("begun\n"))
            };
            begun("1/c2")
                && begun("1/c3")
                && self
                    .world
                    .run(
                        &self.world.repo,
                        "git",
                        ["rev-parse", "--verify", "-q", "refs/frites/1/c1"],
                    )
                    .code
                    == 0
        });
        child
    }

    /// The decision of an undisturbed run, and the trees that it judged.
    fn undisturbed() -> (serde_json::Value, Vec<String>) {
        let gated = Gated::new();
        fs::write(&gated.gate, "").unwrap();
        gated.world.frites(gated.words()).expect(0);
        gated.decided()
    }

    fn decided(&self) -> (serde_json::Value, Vec<String>) {
        let json = self.world.frites(["judge", "--replay", "--json", "1"]).expect(0).json();
        let trees = ["c1", "c2", "c3"].map(|c| self.world.tree(&format!("refs/frites/1/{c}")));
        (
            serde_json::json!([
                json["decision"],
                json["recommended"],
                json["rationale"],
                json["ranking"]
            ]),
            trees.to_vec(),
        )
    }

    /// Kills the run, and waits until its commands are gone, too: the gate must not open for them.
    fn kill(&self, mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
        poll(|| living(&self.mark).is_empty());
    }

    fn iterations(&self, candidate: &str) -> u64 {
        let json =
            self.world.frites(["status", "--json", &format!("1/{candidate}")]).expect(0).json();
        json["runs"][0]["candidates"][0]["iteration"].as_u64().unwrap()
    }
}

fn signal(name: &str, child: &Child) {
    assert!(kill([name, &child.id().to_string()]));
}

#[test]
fn interrupted_run_resumes_and_decides_as_an_undisturbed_one() {
    let gated = Gated::new();
    let child = gated.start();
    signal("-INT", &child);
    let ended = answer(&child.wait_with_output().unwrap()).expect(130);
    assert!(
        ended.stderr.contains("hint: continue with `git frites run --resume 1`"),
        "{}",
        ended.stderr
    );
    let json = gated.world.frites(["status", "--json", "1"]).expect(0).json();
    let states: Vec<&str> =
        (0..3).map(|at| json["runs"][0]["candidates"][at]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["succeeded", "cancelled", "cancelled"]);
    assert_eq!(
        gated.world.git(["show", "refs/frites/1/c2:README"]),
        "hello\nbegun",
        "what it had done is kept"
    );

    gated.world.frites(["clean", "--keep", "1/c2"]).expect(0);
    fs::write(&gated.gate, "").unwrap();
    let resumed = gated.world.frites(["run", "--resume", "1"]).expect(0);
    assert!(
        !resumed.stderr.contains("1/c1: succeeded"),
        "what had ended is not started again:\n{}",
        resumed.stderr
    );
    assert_eq!(gated.decided(), Gated::undisturbed());
    assert_eq!(
        (gated.iterations("c1"), gated.iterations("c2")),
        (1, 2),
        "the half of the attempt is the first iteration"
    );
    let json = gated.world.frites(["status", "--json", "1/c2"]).expect(0).json();
    assert_eq!(json["runs"][0]["candidates"][0]["kept"], true, "it is still kept for review");
    gated.world.assert_clean();
}

#[test]
fn killed_run_resumes_and_decides_as_an_undisturbed_one() {
    let gated = Gated::new();
    gated.kill(gated.start());
    fs::write(&gated.gate, "").unwrap();
    // The timeout is more than was asked for first; the test command is remembered.
    let resumed = gated.world.frites(["run", "--resume", "1", "--timeout", "5m"]).expect(0);
    assert!(
        resumed.stderr.contains("their work is kept; continue it with `git frites run --resume 1`")
    );
    assert_eq!(gated.decided(), Gated::undisturbed());
    assert_eq!(gated.iterations("c2"), 2, "the half of the attempt is the first iteration");
    // There is nothing to go on with now: it is judged again, and that is all.
    gated.world.frites(["run", "--resume", "1"]).expect(0);
    assert_eq!(gated.iterations("c2"), 2);
    gated.world.assert_clean();
}

#[test]
fn candidate_whose_work_would_be_lost_stops_no_other_one_that_is_resumed() {
    let gated = Gated::new();
    let child = gated.start();
    gated.world.sh(&gated.world.worktree("1/c2"), "git init -q nested; echo 1 >nested/f").expect(0);
    gated.kill(child);
    fs::write(&gated.gate, "").unwrap();
    let resumed = gated.world.frites(["run", "--resume", "1"]).expect(0);
    let why = "warning: 1/c2 is not started again: 1/c2 has files that cannot be captured";
    assert!(resumed.stderr.contains(why), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("1/c3: succeeded"), "{}", resumed.stderr);
    assert!(gated.world.worktree("1/c2").join("nested/f").exists());
    // If it is the only one, that is an error.
    gated
        .world
        .frites(["run", "--resume", "1"])
        .refuses(1, "1/c2 has files that cannot be captured");
}

#[test]
fn killed_resume_can_be_resumed() {
    let expected = Gated::undisturbed();
    for round in 0..2u64 {
        let gated = Gated::new();
        gated.kill(gated.start());
        fs::write(&gated.gate, "").unwrap();
        for moment in 1..5u64 {
            let mut child = gated
                .world
                .command(&gated.world.repo, "git-frites", ["run", "--resume", "1"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let until = std::time::Instant::now()
                + std::time::Duration::from_millis(moment * (19 + 13 * round));
            while std::time::Instant::now() < until && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let _ = child.kill();
            child.wait().unwrap();
        }
        gated.world.frites(["run", "--resume", "1"]).expect(0);
        assert_eq!(gated.decided(), expected, "round {round}");
        gated.world.assert_clean();
    }
}

#[test]
fn work_in_a_worktree_that_resume_kept_or_made_is_captured_before_its_removal() {
    let gated = Gated::new();
    gated.kill(gated.start());
    fs::write(&gated.gate, "").unwrap();
    let old = gated.world.worktree("1/c2");
    gated.world.frites_in(&old, ["run", "--resume", "1"]).refuses(1, "you are in the worktree");
    write(&old.join("by-hand"), "precious");
    fs::remove_dir_all(gated.world.worktree("1/c3")).unwrap();
    gated.world.git(["config", "--global", "frites.spawn.setup", "echo >set-up; sleep 600"]);
    let mut resume = gated.world.command(&gated.world.repo, "git-frites", ["run", "--resume", "1"]);
    let mut resume = resume.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| old.join("set-up").exists());
    signal("-INT", &resume);
    assert_eq!(resume.wait().unwrap().code(), Some(130));
    gated.world.git(["config", "--global", "--unset", "frites.spawn.setup"]);
    write(&old.join("later"), "precious");
    gated.world.frites(["run", "--resume", "1"]).expect(0);
    assert_eq!(gated.world.git(["show", "refs/frites/1/c2^^:by-hand"]), "precious");
    assert_eq!(gated.world.git(["show", "refs/frites/1/c2^:later"]), "precious");
    assert_eq!(gated.decided(), Gated::undisturbed());
}

/// A process that the killed command was about to start can hold the run's lock while the next
/// command recovers, and let it go before that command takes it.
#[test]
fn resume_recovers_a_run_whose_lock_was_still_held_when_it_began() {
    let mut gated = Gated::new();
    gated.kill(gated.start());
    fs::write(&gated.gate, "").unwrap();
    let lock = gated.world.repo.join(".frites/locks/run/1");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    // The settings are read before the recovery and once more after it: there git waits.
    let bin = gated.world.home().join("bin");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'config --list'*) echo >> {0}/settings;; esac\n\
         if [ \"$(cat {0}/settings | wc -l)\" = 2 ]; then until [ -e {0}/go ]; do sleep 0.01; done; fi\n\
         exec {1} \"$@\"\n",
        bin.display(),
        gated.world.sh(&gated.world.repo, "command -v git").expect(0).out().trim()
    );
    write(&bin.join("git"), script);
    make_executable(&bin.join("git"));
    let path = format!("{}:{}", bin.display(), gated.world.env("PATH").display());
    gated.world.set_env("PATH", path);
    let mut command =
        gated.world.command(&gated.world.repo, "git-frites", ["run", "--resume", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| fs::read_to_string(bin.join("settings")).is_ok_and(|text| text.len() == 2));
    drop(lock);
    fs::write(bin.join("go"), "").unwrap();
    let resumed = answer(&child.wait_with_output().unwrap()).expect(0);
    assert!(resumed.stderr.contains("run 1 was interrupted while its commands ran"));
    assert_eq!(gated.decided(), Gated::undisturbed());
    assert_eq!(gated.iterations("c2"), 2);
}

#[test]
fn status_shows_the_progress_of_a_running_run() {
    let gated = Gated::new();
    let mut child = gated.start();
    let json = gated.world.frites(["status", "--json", "1"]).expect(0).json();
    let candidates = &json["runs"][0]["candidates"];
    assert_eq!(candidates[1]["state"], "running");
    assert_eq!(candidates[1]["doing"]["stage"], "agent");
    assert!(candidates[1]["doing"]["seconds"].as_f64().unwrap() < 60.0);
    assert_eq!(candidates[0]["doing"], serde_json::Value::Null);
    let text = gated.world.frites(["status", "1"]).expect(0).out();
    // The columns are wider while the base is judged, too.
    let is_row = |line: &&str| line.split_whitespace().take(3).eq(["●", "1/c2", "running"]);
    assert_eq!(text.lines().filter(is_row).count(), 1, "{text}");
    gated
        .world
        .frites(["run", "--resume", "1"])
        .refuses(128, "run 1 is still at work in another process");
    fs::write(&gated.gate, "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn run_leaves_a_change_with_fewer_tests_to_a_person() {
    let world = World::new();
    world.write("tests/a.t", "ok 1 - a\n");
    world.write("tests/b.t", "ok 2 - b\n");
    world.commit("tests");
    let tip = world.git(["rev-parse", "main"]);
    // The base's tests pass on the change. But its own tree runs only one of them, and that tree
    // would land.
    let test = "echo TAP version 13; cat tests/*.t; echo 1..$(cat tests/*.t | wc -l)";
    for (hide, why) in [
        ("mv tests/b.t tests/b.off", "runs only 1 of the base's 2 tests"),
        ("sed -i 's/$/ # SKIP no/' tests/b.t", "skips 1 test"),
    ] {
        let script = format!("echo x >> src/lib.txt; {hide}");
        let words = ["run", "-n", "1", "--merge", "--test", test, "--", "sh", "-c", &script];
        let answer = world.frites(words).expect(1);
        let said = &answer.stderr;
        assert!(said.contains("/c1 was not merged, because it ") && said.contains(why), "{said}");
        assert_eq!(world.git(["rev-parse", "main"]), tip);
    }
    let entry = world.frites(["judge", "--json", "1", "--replay"]).expect(0).json();
    assert_eq!(entry["candidates"][0]["fewer_tests"], json!({"base": 2, "candidate": 1}));
    world.assert_clean();
}

#[test]
fn run_leaves_a_change_to_what_decides_to_a_person() {
    let world = World::new();
    world.write("Makefile", "test:\n\ttrue\n");
    world.commit("make");
    let tip = world.git(["rev-parse", "main"]);
    for file in [".frites.toml", "Makefile"] {
        let script = format!("echo x >> src/lib.txt; echo '# more' >> {file}");
        let words = ["run", "-n", "1", "--merge", "--clean", "--test", "true"];
        let answer = world.frites(words.iter().chain(&["--", "sh", "-c", &script])).expect(1);
        let run = if file == "Makefile" { "2" } else { "1" };
        let why = format!(
            "error: {run}/c1 was not merged, because it changes files that decide how the next run is judged: \
             {file}\nhint: read the change, `git frites diff {run}/c1`\nhint: then land it yourself: \
             `git frites apply --merge {run}/c1`\n"
        );
        assert!(answer.stderr.ends_with(&why), "{}", answer.stderr);
        assert!(answer.out().contains(&format!("*  {run}/c1")), "{}", answer.out());
        assert_eq!(world.git(["rev-parse", "main"]), tip);
    }
    // What a chain of attempts lands counts from where it began.
    let words = ["run", "-n", "1", "--from", "2/c1", "--merge", "--test", "true"];
    let answer = world.frites(words.iter().chain(&["--", "sh", "-c", "echo y >> README"]));
    assert!(answer.expect(1).stderr.contains("3/c1 was not merged"));
    world.frites(["apply", "--merge", "2/c1"]).expect(0);
    world.assert_clean();
}

#[test]
fn run_leaves_a_change_to_what_git_runs_to_a_person() {
    let world = World::new();
    world.write("hooks/v1/post-merge", "#!/bin/sh\n");
    world.write("tools/settings", "");
    std::os::unix::fs::symlink("v1", world.repo.join("hooks/current")).unwrap();
    world.commit("hooks");
    world.git(["config", "core.hooksPath", "hooks/current"]);
    world.git(["config", "include.path", "../tools/settings"]);
    let tip = world.git(["rev-parse", "main"]);
    let retarget = "mkdir x; echo 'echo > ~/ran' > x/post-merge; chmod +x x/post-merge; ln -sfn ../x hooks/current";
    for (script, why) in [
        (
            "echo 'echo > ~/ran' > hooks/v1/commit-msg",
            "'hooks/v1/commit-msg', a hook that git would run",
        ),
        (
            "echo '[core]' > tools/settings",
            "'tools/settings', which git's setting include.path names",
        ),
        (
            retarget,
            "was not merged, because it changes files that decide how the next run is judged: hooks/current",
        ),
    ] {
        let words = ["run", "-n", "1", "--merge", "--test", "true", "--", "sh", "-c", script];
        let answer = world.frites(words).expect(1);
        assert!(answer.stderr.contains(why), "{}", answer.stderr);
        assert_eq!(world.git(["rev-parse", "main"]), tip);
    }
    assert!(!world.home().join("ran").exists());
}

#[test]
fn verified_winner_is_merged_and_a_conflict_leaves_it_pending() {
    let world = World::new();
    let words = |form: &str, test: &str, script: &str| -> Vec<String> {
        ["run", form, "-n", "2", "--merge", "--test", test, "--", "sh", "-c", script]
            .map(str::to_owned)
            .to_vec()
    };
    let base = world.git(["rev-parse", "main"]);
    let answer = world.frites(words("--json", "true", "echo x$FRITES_INDEX >> README")).expect(0);
    assert_eq!(answer.json()["commit"], world.git(["rev-parse", "main"]));
    assert!(!answer.stderr.contains("hint:"), "a program needs no hint: {}", answer.stderr);
    assert_eq!(world.git(["rev-parse", "main^1"]), base);
    assert_eq!(world.tree("main"), world.tree("refs/frites/1/c1"));
    assert_eq!(world.git(["status", "--porcelain"]), "");
    assert_eq!(world.first_candidate("1")["landing"], "merged");
    let answer = world.frites(words("--color=never", "true", "echo y >> README")).expect(0);
    assert!(answer.stderr.contains("2/c1@1 is merged into 'main' as "), "{}", answer.stderr);
    assert!(!answer.stderr.contains("land it with"), "it has landed: {}", answer.stderr);

    // Nothing passed: nothing is merged, and that is judge's answer.
    let tip = world.git(["rev-parse", "main"]);
    world.frites(words("-q", "false", "echo y >> README")).expect(1);
    assert_eq!(world.git(["rev-parse", "main"]), tip);

    // Somebody else was quicker, and elsewhere on the same lines.
    let script = "[ $FRITES_INDEX = 2 ] || { cd \"$HOME/repo\" && echo w > README && git commit -qam other && cd -; }; echo z >> README";
    let answer = world.frites(words("-q", "true", script)).refuses(1, "4/c1 conflicts with");
    assert_eq!(answer.out(), "4/c1\n", "the winner is told all the same");
    assert_eq!(world.first_candidate("4")["landing"], "pending");
    assert_eq!(world.git(["show", "main:README"]), "w");
    assert_eq!(world.git(["status", "--porcelain"]), "");

    // An obstacle to landing is reported before anything runs.
    world.write("README", "uncommitted\n");
    world.frites(words("-q", "true", "echo y >> README")).refuses(128, "README");
    assert!(!world.repo.join(".frites/runs/5").exists());
    world.assert_clean();
}

#[test]
fn run_works_in_a_hook_a_linked_worktree_and_a_subdirectory() {
    // The command commits and the oracle asks git: each must find its own checkout.
    let attempt = "git rev-parse --show-toplevel > top; echo good >> src/lib.txt; git add -A; git commit -qm mine";
    let oracle = "git rev-parse --is-inside-work-tree > /dev/null && test \"$(git show HEAD:src/lib.txt | tail -1)\" = good";
    let words = ["run", "-q", "-n", "1", "--test", oracle, "--", "sh", "-c", attempt];
    let mut world = World::new();
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    world.write("staged", "staged\n");
    world.git(["add", "staged"]);
    world.write("README", "edited\n");
    let before = world.belongings();
    let index = fs::read(world.repo.join(".git/index")).unwrap();
    let check = |world: &World, run: u32, answer: crate::common::Answer| {
        assert_eq!(answer.expect(0).out(), format!("{run}/c1\n"));
        let place = world.worktree(&format!("{run}/c1"));
        assert_eq!(Path::new(&world.git(["show", &format!("refs/frites/{run}/c1:top")])), place);
        assert_eq!(world.git_in(&place, ["log", "-1", "--format=%s"]), "mine");
        assert_eq!(fs::read(world.repo.join(".git/index")).unwrap(), index, "run {run}");
        assert_eq!(world.belongings(), before, "run {run}");
    };
    check(&world, 1, world.frites_in(&world.repo.join("src"), words));
    check(&world, 2, world.frites_in(&linked, words));
    check(&world, 3, world.frites_in(&linked.join("src"), words));
    for (name, value) in
        [("GIT_DIR", ".git"), ("GIT_WORK_TREE", ""), ("GIT_INDEX_FILE", ".git/index")]
    {
        world.set_env(name, world.repo.join(value));
    }
    let answer = world.frites_in(&world.home(), words);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        world.unset_env(name);
    }
    check(&world, 4, answer);

    // In a real hook, whose index is the one that is being committed.
    let hook = world.repo.join(".git/hooks/pre-commit");
    let script = r#"#!/bin/sh
test -z "$FRITES_DEPTH" || exit 0 # the attempt commits, too
test -n "$GIT_INDEX_FILE" || exit 1
git frites run -q -n 1 --test "$ORACLE" -- sh -c "$ATTEMPT" > "$HOME/winner"
"#;
    write(&hook, script);
    make_executable(&hook);
    world.set_env("ORACLE", oracle);
    world.set_env("ATTEMPT", attempt);
    world.git(["commit", "-qm", "staged alone"]);
    assert_eq!(fs::read_to_string(world.home().join("winner")).unwrap(), "5/c1\n");
    assert_eq!(world.git(["show", "--format=", "--name-status", "HEAD"]), "A\tstaged");
    assert_eq!(world.git(["status", "--porcelain"]), " M README");
    world.assert_clean();
}

#[test]
fn command_without_its_git_file_never_touches_the_users_index() {
    let world = World::new();
    let before = world.belongings();
    // Deleted, replaced, led astray. What follows must not climb into the user's checkout.
    let script = "case $FRITES_CANDIDATE in
        deleted) rm .git;;
        replaced) rm .git; git init -q;;
        astray) git init -q \"$HOME/other\"; echo \"gitdir: $HOME/other/.git\" > .git;;
        gone) echo 'gitdir: /nowhere' > .git;;
        esac; echo good >> src/lib.txt; git add -A 2> said; git commit -qm mine 2>> said; true";
    let words = [
        "run",
        "-q",
        "-c",
        "deleted",
        "replaced",
        "astray",
        "gone",
        "--test",
        "tail -1 src/lib.txt | grep -qx good",
    ];
    let answer = world.frites([&words[..], &["--", "sh", "-c", script]].concat()).expect(0);
    let json = world.frites(["status", "--json"]).expect(0).json();
    for (at, name) in ["deleted", "replaced", "astray", "gone"].iter().enumerate() {
        assert_eq!(
            json["runs"][0]["candidates"][at]["state"], "succeeded",
            "{name}: {}",
            answer.stderr
        );
        let changes =
            world.git(["diff", "--name-status", "main", &format!("refs/frites/1/{name}")]);
        assert_eq!(changes, "A\tsaid\nM\tsrc/lib.txt", "{name}");
    }
    assert!(world.git(["show", "refs/frites/1/deleted:said"]).contains("not a git repository"));
    assert_eq!(world.belongings(), before);
    assert_eq!(world.git(["rev-list", "--count", "main"]), "1");
}

#[test]
fn a_git_file_that_an_attempt_changed_is_as_before_after_its_command() {
    let world = World::new();
    let script = "git init -q \"$HOME/other\"; cp .git \"$HOME/before\"
        case $FRITES_CANDIDATE in
        other) echo \"gitdir: $HOME/other/.git\" >.git;;
        link) rm .git; ln -s \"$HOME/other/.git\" .git;;
        gone) rm .git;;
        esac; echo good >>src/lib.txt";
    let words = ["run", "-q", "-c", "other", "link", "gone", "kept", "--test", "true"];
    let answer = world.frites([&words[..], &["--", "sh", "-c", script]].concat()).expect(0);
    for name in ["other", "link", "gone", "kept"] {
        let dir = world.worktree(&format!("1/{name}"));
        let found = world.git_in(&dir, ["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        assert_eq!(found, world.repo.join(".git").to_str().unwrap(), "{name}: {}", answer.stderr);
        let is_told =
            answer.stderr.contains(&format!("1/{name}: a command had changed the worktree's .git"));
        assert_eq!(is_told, name != "kept", "{name}: {}", answer.stderr);
    }
}

#[test]
fn run_whose_attempts_all_fail_does_not_wait_for_the_base() {
    // Nothing but the end of the attempts ends this command of the base in time.
    let hang = "tail -f /dev/null";
    let words = ["run", "-n", "2", "--test", "true", "--oracle-timeout", "60s"];
    for setup_fails in [false, true] {
        let world = World::new();
        let mut words = words.to_vec();
        if setup_fails {
            world.git(["config", "frites.spawn.setup", "exit 3"]);
            world.git(["config", "frites.oracle.setup", hang]);
        } else {
            words.extend(["--lint", hang]);
        }
        let answer = world.frites([&words[..], &["--", "sh", "missing.sh"]].concat()).expect(4);
        for candidate in ["1/c1", "1/c2"] {
            assert!(answer.stderr.contains(&format!("{candidate}: failed (")), "{}", answer.stderr);
        }
        assert!(!answer.stderr.contains("on the base"), "{}", answer.stderr);
        assert!(answer.out().contains("none: no usable candidate"), "{}", answer.out());
    }
}

#[test]
fn run_shows_what_it_will_do_before_the_first_attempt() {
    let world = World::new();
    world.write("Makefile", "all:\n\ttrue\ntest:\n\tgrep -q 1 x\n");
    world.write(".gitignore", ".env\n");
    world.commit("recipes");
    world.write(".env", "KEY=1\n");
    world.git(["config", "frites.seed.copy", ".env"]);
    let run = ["run", "-n", "2", "-j", "1", "--timeout", "5m", "--oracle-timeout", "90s"];
    let command = ["--", "sh", "-c", "echo $FRITES_INDEX > x"];
    let answer = world.frites([&run[..], &command].concat()).expect(0);
    let block = "attempts: 2 of `sh`; 1 at once, each for at most 5m00s\n\
                 build: `make all`, from Makefile\n\
                 test: `make test`, from Makefile\n\
                 checks: 1 candidate at once, each command for at most 1m30s; they begin when ";
    assert!(answer.stderr.starts_with(block), "{}", answer.stderr);
    let rest = "\nseeds: .env\nrun 1: 2 candidates from ";
    assert!(answer.stderr.contains(rest), "{}", answer.stderr);
    for quiet in ["-q", "--json"] {
        let answer = world.frites([&run[..], &[quiet], &command].concat()).expect(0);
        assert!(!answer.stderr.contains("attempts: "), "{}", answer.stderr);
    }
    let answer = world.frites([&run[..], &["--test", "./made && true"], &command].concat());
    // An earlier command of the line may make it, or lead to its directory.
    for line in ["true && ./made || true", "cd . && ./made"] {
        let made = world.frites([&run[..], &["--test", line], &command].concat());
        assert!(!made.stderr.contains("is not in the base"), "{}", made.stderr);
    }
    let warning = "warning: './made' of the test command is not in the base\n";
    assert!(answer.stderr.contains(warning), "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn run_with_a_program_that_is_missing_is_fatal_before_the_first_attempt() {
    let world = World::new();
    let attempt = ["--", "sh", "-c", "touch \"$HOME/attempted\"; echo x > x"];
    let run = |options: &[&str]| world.frites([&["run", "-n", "1"], options, &attempt].concat());
    run(&["--test", "CI=1 no-such-program -v"])
        .refuses(128, "the test command cannot run: 'no-such-program' is not on PATH");
    run(&["--build", "true && no-such-program", "--test", "true"])
        .refuses(128, "the build command cannot run: 'no-such-program' is not on PATH");
    run(&["--test", "/no/such/program"])
        .refuses(128, "the test command cannot run: '/no/such/program' is not a program");
    world.write(".frites.toml", "spawn.setup = ['no-such-program']\n");
    run(&["--test", "true"]).refuses(128, "the setup command cannot run: 'no-such-program'");
    world.write(".frites.toml", "oracle.setup = ['no-such-program']\n");
    let setup = run(&["--test", "true"]).expect(128).stderr;
    assert!(setup.contains("or set `oracle.setup` to another command"), "{setup}");
    world.write(".frites.toml", "agents.mine.command = ['no-such-program']\n");
    world
        .frites(["run", "--agent", "mine", "-p", "x", "--test", "true"])
        .refuses(128, "the agent 'mine' cannot start: 'no-such-program' is not on PATH");
    assert!(!world.home().join("attempted").exists());
    assert_eq!(world.frites(["status", "--json"]).expect(0).json()["runs"], serde_json::json!([]));
    // A program whose absence the line itself provides for is no mistake.
    run(&["--test", "no-such-program || true"]).expect(0);
    world.assert_clean();
}

#[test]
fn run_merges_as_configured_and_cleans_up_after_itself() {
    let world = World::new();
    world.git(["config", "frites.run.merge", "true"]);
    let run = |options: &[&str], test: &str, script: &str| {
        let words = [&["run", "--json"], options, &["-n", "2", "--test", test]].concat();
        world.frites([words.as_slice(), &["--", "sh", "-c", script]].concat())
    };
    let left = || {
        let worktrees = world.git(["worktree", "list", "--porcelain"]);
        let branches = world.git(["for-each-ref", "--format=%(refname)", "refs/heads/frites"]);
        (worktrees.matches("worktree ").count() - 1, branches.lines().count())
    };
    let landing = |run| world.first_candidate(run)["landing"].as_str().unwrap().to_owned();
    run(&["--no-merge"], "true", "echo a > a").expect(0);
    assert_eq!((landing("1").as_str(), left()), ("pending", (2, 2)));
    let json = run(&["--clean"], "true", "echo b > b$FRITES_INDEX").expect(0).json();
    assert_eq!(json["cleaned"].to_string(), "[\"2/c1\",\"2/c2\"]");
    assert_eq!((landing("2").as_str(), left()), ("merged", (2, 2)));
    assert_eq!(world.git(["show", "main:b1"]), "b");
    // Captures stay, so that the other candidate lands all the same.
    world.frites(["apply", "--merge", "--clean", "2/c2"]).expect(0);
    assert_eq!(world.git(["show", "main:b2"]), "b");
    // A failed merge removes nothing: its worktree is where the conflicts are resolved.
    let meanwhile = "[ $FRITES_INDEX = 2 ] || { cd \"$HOME/repo\" && echo w > README && git commit -qam other && cd -; }; echo z >> README";
    run(&["--clean"], "true", meanwhile).refuses(1, "3/c1 conflicts with main in README");
    assert_eq!(left(), (4, 4));
    // Without a winner, too, all goes: the captures stay.
    run(&["--clean"], "false", "echo d > d").expect(1);
    assert_eq!(left(), (4, 4));
    world.git(["switch", "-q", "-c", "release"]);
    world.frites(["run", "--resume", "4"]).refuses(128, "run 4 merges into 'main'");
    world.git(["switch", "-q", "main"]);
    assert_eq!(world.frites(["diff", "4/c1", "--name-only"]).expect(0).out(), "d\n");
    // What is kept stays, and what cannot be saved.
    world.frites(["clean", "--keep", "1/c1"]).expect(0);
    world.sh(&world.worktree("1/c2"), "mkfifo pipe").expect(0);
    let answer = world.frites(["apply", "--merge", "--clean", "1/c1"]).expect(0);
    assert!(
        answer.stderr.contains("warning: 1/c2 stays: 1/c2 has files that cannot be captured"),
        "{}",
        answer.stderr
    );
    assert_eq!(left(), (4, 4));
    world.frites(["clean", "--no-keep", "1/c1"]).expect(0);
    world.assert_clean();
}

#[test]
fn winner_is_not_merged_into_a_branch_that_was_switched_to_meanwhile() {
    let world = World::new();
    let script = format!("echo x > README; git -C {} switch -qc other", world.repo.display());
    let words = ["run", "--merge", "--test", "true", "-n", "1", "--", "sh", "-c", &script];
    let said = world.frites(words).refuses(1, "your checkout is no longer on 'main'");
    let hint = "git frites apply --merge --into main 1";
    assert!(said.stderr.contains(hint), "{}", said.stderr);
    assert_eq!(world.git(["rev-parse", "other"]), world.git(["rev-parse", "main"]));
    world.sh(&world.repo, hint).expect(0);
    assert_eq!(world.git(["show", "main:README"]), "x");
    world.assert_clean();
}

#[test]
fn command_that_is_not_in_the_base_is_named_as_the_mistake() {
    let world = World::new();
    let answer = world.frites(["run", "-n", "1", "--", "./nowhere.sh"]).expect(4);
    let hint = "hint: the command could not start in the worktree, which begins with the files of the base";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    assert!(!answer.stderr.contains("correct it in"), "{}", answer.stderr);
    world.git(["config", "frites.spawn.setup", "false"]);
    let answer = world.frites(["run", "-n", "1", "--", "true"]).expect(4);
    let hint = "hint: the setup failed before the command could start: `git frites output 2/c1`";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    world.assert_clean();
}
