//! `git frites run` judges each attempt when it has ended, while the others work.
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::processes::{living, marked};
use crate::common::sealed::confined;
use crate::common::{Answer, World, answer, poll};
use crate::tool::{LANDLOCK, NAMESPACES, trials};
use crate::traces::shared_lines;

trials! {
    each_attempt_is_judged_when_it_has_ended_and_nothing_runs_twice: [NAMESPACES];
    the_same_where_landlock_confines_commands: [LANDLOCK];
    a_failure_beside_attempts_runs_again_before_it_counts: [NAMESPACES];
    a_judge_beside_attempts_has_a_third_of_a_share: [NAMESPACES];
    after_a_kill_no_pass_is_judged_again: [NAMESPACES];
    nothing_but_the_base_is_judged_beside_attempts_that_nothing_keeps_apart: [NAMESPACES];
    enough_passes_end_the_other_attempts: [NAMESPACES];
    where_the_base_passes_nobody_is_stopped: [NAMESPACES];
}

/// Says in `shared/judged` which tree is judged, and passes if that is right.
const TEST: &str = "cat who >> ~/shared/judged; grep -q right who";

/// A run whose attempts wait: `c1` is right at once, and each other one once its gate is open.
struct Waiting {
    world: World,
    gates: tempfile::TempDir,
}

impl Waiting {
    fn of(mut world: World) -> Waiting {
        world.set_env("FRITES_SPAWN_GUARD", "required");
        world.write("who", "base\n");
        world.commit("who");
        Waiting { world, gates: tempfile::tempdir().unwrap() }
    }

    fn new() -> Waiting {
        Waiting::of(confined("sealed"))
    }

    fn gate(&self, candidate: &str) -> PathBuf {
        self.gates.path().join(candidate)
    }

    fn open(&self, candidate: &str) {
        fs::write(self.gate(candidate), "").unwrap();
    }

    fn start(&self, options: &[&str], test: &str) -> Child {
        let script = format!(
            "case $FRITES_CANDIDATE in c1) ;; *) until test -e {}/$FRITES_CANDIDATE; do sleep 0.01; done;; esac; \
             echo right $FRITES_CANDIDATE > who",
            self.gates.path().display()
        );
        let words = [&["run", "--json"], options, &["--test", test, "--", "sh", "-c", &script]];
        let mut command = self.world.command(&self.world.repo, "git-frites", words.concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs git-frites as the run was started: git changes PATH, on which outcomes depend.
    fn frites(&self, words: &[&str]) -> Answer {
        self.world.run(&self.world.repo, "git-frites", words).expect(0)
    }

    /// The lines that tests have written so far.
    fn judged(&self) -> Vec<String> {
        let file = self.world.home().join("shared/judged");
        fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn wait_for(&self, line: &str, times: usize) {
        poll(|| self.judged().iter().filter(|judged| *judged == line).count() == times);
    }
}

fn ended(child: Child, code: i32) -> Answer {
    answer(&child.wait_with_output().unwrap()).expect(code)
}

fn outcomes(verdict: &Value) -> Vec<&Value> {
    let all = verdict["candidates"].as_array().unwrap();
    all.iter().map(|candidate| &candidate["results"][0]["outcome"]).collect()
}

fn judges_at_once(waiting: &Waiting) {
    let run = waiting.start(&["-n", "3", "-j", "3"], TEST);
    waiting.wait_for("right c1", 1);
    waiting.open("c2");
    waiting.wait_for("right c2", 1);
    waiting.open("c3");
    let ended = ended(run, 0);
    let verdict = ended.json();
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert_eq!(verdict["escaped"], json!([]), "{verdict:#}");
    assert_eq!(outcomes(&verdict), ["passed"; 3]);
    let judged = shared_lines(&waiting.world, "judged");
    assert_eq!(judged, ["base", "right c1", "right c2", "right c3"]);
    let afterwards = waiting.frites(&["judge", "--json", "--test", TEST]).json();
    for key in ["recommended", "decision", "rationale", "ranking"] {
        assert_eq!(verdict[key], afterwards[key]);
    }
    waiting.world.assert_clean();
}

fn each_attempt_is_judged_when_it_has_ended_and_nothing_runs_twice() {
    let waiting = Waiting::new();
    judges_at_once(&waiting);
    let judged = waiting.judged();
    let again: Vec<&String> = judged.iter().skip(4).collect();
    assert!(again.iter().all(|line| *line == "base"), "only what failed: {again:?}");
}

fn the_same_where_landlock_confines_commands() {
    let mut world = confined("landlock");
    world.set_env("FRITES_SPAWN_HOME", "shared");
    judges_at_once(&Waiting::of(world));
}

fn a_failure_beside_attempts_runs_again_before_it_counts() {
    let waiting = Waiting::new();
    let slow = format!("{TEST} && test $(grep -c c1 ~/shared/judged) != 1");
    let run = waiting.start(&["-n", "2", "-j", "2"], &slow);
    waiting.wait_for("right c1", 2);
    waiting.open("c2");
    let ended = ended(run, 0);
    let verdict = ended.json();
    assert_eq!(outcomes(&verdict), ["passed"; 2], "{verdict:#}");
    assert_eq!(verdict["candidates"][0]["results"][0]["attempts"], Value::Null, "{verdict:#}");
    assert!(ended.stderr.contains("attempts work, so it runs again"), "{}", ended.stderr);
    waiting.world.assert_clean();
}

fn a_judge_beside_attempts_has_a_third_of_a_share() {
    let waiting = Waiting::new();
    let shares = "echo $(cat who) $(nice) $(cat /proc/self/autogroup 2>/dev/null | sed 's/.*nice //') >> ~/shared/shares";
    let run = waiting.start(&["-n", "2", "-j", "2"], &format!("{shares}; {TEST}"));
    waiting.wait_for("right c1", 1);
    waiting.open("c2");
    ended(run, 0);
    let shares = shared_lines(&waiting.world, "shares");
    let has_groups = fs::exists("/proc/self/autogroup").unwrap();
    let of = |who: &str, nice: &str| match has_groups {
        true => format!("{who} {nice} {nice}"),
        false => format!("{who} {nice}"),
    };
    assert!(shares.contains(&of("base", "0")), "{shares:?}");
    assert!(shares.contains(&of("right c1", "5")), "{shares:?}");
}

fn after_a_kill_no_pass_is_judged_again() {
    let (mut world, mark) = marked();
    fs::create_dir(world.home().join("shared")).unwrap();
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    world.set_env("FRITES_SANDBOX_WRITE", world.home().join("shared"));
    let waiting = Waiting::of(world);
    let mut run = waiting.start(&["-n", "3", "-j", "3"], TEST);
    waiting.wait_for("right c1", 1);
    waiting.open("c2");
    // By now the outcome of the first is kept.
    waiting.wait_for("right c2", 1);
    run.kill().unwrap();
    run.wait().unwrap();
    poll(|| living(&mark).is_empty());
    waiting.open("c3");
    let resumed = waiting.frites(&["run", "--resume", "1", "--json"]).json();
    assert_eq!(resumed["recommended"], "c1");
    let judged = waiting.judged();
    assert_eq!(judged.iter().filter(|line| *line == "right c1").count(), 1, "{judged:?}");
    waiting.world.assert_clean();
}

fn nothing_but_the_base_is_judged_beside_attempts_that_nothing_keeps_apart() {
    for (name, value, why) in [
        ("FRITES_RUN_EAGER", "false", "run.eager is off"),
        ("FRITES_SPAWN_GUARD", "off", "attempts are not guarded"),
        ("FRITES_SANDBOX_MODE", "off", "nothing confines the commands that judge"),
    ] {
        let mut waiting = Waiting::new();
        waiting.world.set_env(name, value);
        let world = &waiting.world;
        let late = world.frites(["run", "-n", "1", "--enough", "1", "--test", TEST, "--", "true"]);
        late.refuses(128, &format!("--enough cannot end attempts here: {why}"));
        let words = ["run", "-j", "1", "-n", "2", "--test", TEST, "--", "sh", "-c"];
        let told = world.frites([&words[..], &["echo right > who"]].concat()).expect(0).stderr;
        assert!(told.contains(&format!("when all attempts have ended: {why}")), "{told}");
        let (_, afterwards) = told.split_once("1/c2: succeeded").unwrap();
        assert!(afterwards.contains("1/c1: test passed"), "{told}");
    }
}

fn enough_passes_end_the_other_attempts() {
    let (mut world, mark) = marked();
    fs::create_dir(world.home().join("shared")).unwrap();
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    world.set_env("FRITES_SANDBOX_WRITE", world.home().join("shared"));
    let waiting = Waiting::of(world);
    let run = waiting.start(&["-n", "5", "-j", "4", "--enough", "1"], TEST);
    let ended = ended(run, 0);
    let verdict = ended.json();
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert!(living(&mark).is_empty(), "no process is left");
    let all = verdict["candidates"].as_array().unwrap();
    assert!(all[1..].iter().all(|candidate| candidate["stopped"] == true), "{verdict:#}");
    let status = waiting.world.frites(["status", "1"]).expect(0).out();
    assert!(status.contains("stopped: enough passed"), "{status}");
    assert!(status.contains("stopped, because enough passed: c2, c3, c4, c5"), "{status}");
    // A run that has enough is not continued by itself.
    let resumed = waiting.world.frites(["run", "--resume", "1", "--json"]).expect(0).json();
    assert_eq!(resumed["recommended"], "c1", "{verdict:#}");
    waiting.world.assert_clean();
}

fn where_the_base_passes_nobody_is_stopped() {
    let waiting = Waiting::new();
    let run = waiting.start(&["-n", "2", "-j", "2", "--enough", "1"], "cat who >> ~/shared/judged");
    waiting.wait_for("right c1", 1);
    waiting.open("c2");
    let ended = ended(run, 0);
    assert!(ended.stderr.contains("the base passes, so nobody is stopped"), "{}", ended.stderr);
    assert_eq!(ended.json()["candidates"][1]["state"], "succeeded");
}
