//! `git frites run` judges each attempt when it has ended, while the others work.
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Instant;

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
    a_failed_attempt_gets_its_next_rounds_while_others_work: [NAMESPACES];
    a_round_that_makes_it_worse_is_taken_back_while_others_work: [NAMESPACES];
    a_round_can_win_the_race: [NAMESPACES];
    status_in_another_terminal_shows_the_same_rows: [NAMESPACES];
    a_run_that_is_killed_at_any_moment_decides_the_same_and_judges_no_pass_twice: [NAMESPACES];
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
        self.start_with(options, test, "echo right $FRITES_CANDIDATE > who")
    }

    /// A run in which the first command of each attempt writes to `who`, and its further rounds do
    /// `round`.
    fn start_rounds(&self, options: &[&str], first: &str, round: &str) -> Child {
        let does = format!("if grep -q 'does not pass yet'; then {round}; else {first}; fi");
        let prompt = ["--synthesis", "off", "-p", "Be right"];
        self.start_with(&[options, &prompt].concat(), TEST, &does)
    }

    fn start_with(&self, options: &[&str], test: &str, does: &str) -> Child {
        let script = format!(
            "case $FRITES_CANDIDATE in c1) ;; *) until test -e {}/$FRITES_CANDIDATE; do sleep 0.01; done;; esac; \
             {does}",
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
    assert!(
        ended.stderr.contains("; attempts ran beside it, so it runs again"),
        "{}",
        ended.stderr
    );
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
    assert!(ended.stderr.contains("the base passes, so no attempt is stopped"), "{}", ended.stderr);
    assert_eq!(ended.json()["candidates"][1]["state"], "succeeded");
}

/// What the first commands of these attempts do: all but the last are wrong.
const FIRST: &str = "case $FRITES_CANDIDATE in c1) echo wrong;; *) echo right $FRITES_CANDIDATE longer;; esac > who";

fn rounds_of(document: &Value) -> Vec<(&str, u64, &str)> {
    let rounds = document["repairs"].as_array().unwrap().iter();
    let of = |round: &'_ Value| round["round"].as_u64().unwrap();
    rounds.map(|r| (r["candidate"].as_str().unwrap(), of(r), r["end"].as_str().unwrap())).collect()
}

fn a_failed_attempt_gets_its_next_rounds_while_others_work() {
    let waiting = Waiting::new();
    let test = "cat who >> ~/shared/judged; \
                good=1; for n in one two; do \
                if grep -q $n who; then good=$((good+1)); else echo \"FAILED t.py::$n - missing\"; bad=1$bad; fi; done; \
                echo \"== ${#bad} failed, $good passed in 0.10s ==\"; test -z \"$bad\"";
    let first =
        "case $FRITES_CANDIDATE in c1) echo nothing;; *) echo one two and much more;; esac > who";
    let next = "case $(cat who) in nothing) echo one;; *) echo one two;; esac > new; mv new who";
    let does = format!("if grep -q 'does not pass yet'; then {next}; else {first}; fi");
    let options = ["-n", "2", "-j", "2", "--rounds", "2", "--synthesis", "off", "-p", "Be right"];
    let run = waiting.start_with(&options, test, &does);
    // Both rounds are over, and the other attempt still works.
    waiting.wait_for("one two", 1);
    waiting.open("c2");
    let ended = ended(run, 0);
    let verdict = ended.json();
    assert_eq!(rounds_of(&verdict), [("c1", 1, "further"), ("c1", 2, "passed")], "{verdict:#}");
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert!(
        ended.stderr.contains("none of 1 passed so far; round 1 of 2 repairs c1"),
        "{}",
        ended.stderr
    );
    // A failure that was found with little time does not begin a round.
    assert_eq!(waiting.judged().iter().filter(|line| *line == "nothing").count(), 2);
    let prompt = waiting.world.repo.join(".frites/runs/1/c1/prompt.md");
    let prompt = fs::read_to_string(prompt).unwrap();
    assert!(
        prompt.contains("- t.py::two") && prompt.contains("    FAILED t.py::two - missing"),
        "{prompt}"
    );
    let afterwards = waiting.frites(&["judge", "--json", "--test", test]).json();
    for key in ["recommended", "decision", "rationale", "ranking"] {
        assert_eq!(verdict[key], afterwards[key]);
    }
    waiting.world.assert_clean();
}

fn a_round_that_makes_it_worse_is_taken_back_while_others_work() {
    let waiting = Waiting::new();
    let options = ["-n", "2", "-j", "2", "--rounds", "2"];
    let run = waiting.start_rounds(&options, FIRST, "echo spoilt > who; exit 1");
    // What the round did, and what it was before, are iterations.
    let count = ["rev-list", "--count", "refs/frites/1/c1", "--not", "HEAD"];
    poll(|| waiting.world.run(&waiting.world.repo, "git", count).out().trim() == "3");
    waiting.open("c2");
    let ended = ended(run, 0);
    let verdict = ended.json();
    assert_eq!(rounds_of(&verdict), [("c1", 1, "worse")], "{verdict:#}");
    assert_eq!(verdict["candidates"][0]["iteration"], 3, "{verdict:#}");
    assert_eq!(verdict["recommended"], "c2");
    let (before, _) = ended.stderr.split_once("1/c2: succeeded").unwrap();
    assert!(
        before.contains("1/c1: round 1 made it worse, so its earlier files are restored"),
        "{}",
        ended.stderr
    );
    waiting.world.assert_clean();
}

fn a_round_can_win_the_race() {
    let waiting = Waiting::new();
    let options = ["-n", "3", "-j", "3", "--rounds", "1", "--enough", "1"];
    let run = waiting.start_rounds(&options, FIRST, "echo right > who");
    let ended = ended(run, 0);
    let verdict = ended.json();
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert_eq!(rounds_of(&verdict), [("c1", 1, "passed")], "{verdict:#}");
    let all = verdict["candidates"].as_array().unwrap();
    assert!(all[1..].iter().all(|candidate| candidate["stopped"] == true), "{verdict:#}");
    waiting.world.assert_clean();
}

fn status_in_another_terminal_shows_the_same_rows() {
    let waiting = Waiting::new();
    let run = waiting.start(&["-n", "3", "-j", "2"], TEST);
    waiting.wait_for("right c1", 1);
    let watch = waiting
        .world
        .command(&waiting.world.repo, "git-frites", ["status", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = || waiting.world.frites(["status", "1"]).expect(0).out();
    poll(|| status().contains("* 1/c1  passed"));
    let shown = status();
    assert!(shown.contains("● 1/c2  running"), "{shown}");
    assert!(shown.contains("\nattempts: 1 of 3 done\n"), "{shown}");
    // Time for one more look.
    poll(|| status().contains("● 1/c2  running  2s"));
    waiting.open("c2");
    waiting.open("c3");
    ended(run, 0);
    let told = answer(&watch.wait_with_output().unwrap()).expect(0).out();
    for line in ["1/c1\tpassed, leads\n", "1/c2\trunning\n"] {
        assert!(told.contains(line), "{line}:\n{told}");
    }
    let left = waiting.world.repo.join(".frites/runs/1/board.json");
    assert!(!left.exists(), "nothing is left of it");
}

/// The number of moments at which a run is killed.
fn kills() -> u32 {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

/// A world in which nothing that judging starts can write outside: otherwise the outcomes of a
/// judging that is killed are not believed.
fn race() -> (World, String) {
    let (mut world, mark) = marked();
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.write("who", "base\n");
    world.commit("who");
    (world, mark)
}

/// Starts a run of which one attempt is right, one is right in its second round, and one is right
/// late.
fn start_race(world: &World) -> Child {
    let does = "if grep -q 'does not pass yet'; then echo right at last > who; else \
                case $FRITES_CANDIDATE in c1) echo right > who;; c2) echo wrong > who;; \
                *) sleep 0.6; echo right but late > who;; esac; fi";
    let options = ["-n", "3", "-j", "3", "--rounds", "1", "--synthesis", "off", "-p", "Be right"];
    let test = ["--test", "sleep 0.1; grep -q right who", "--", "sh", "-c", does];
    let words = [&["run"], &options[..], &test].concat();
    let mut command = world.command(&world.repo, "git-frites", words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How often commands have run on each candidate that passed, by what was said of it.
fn passes(said: &str) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for line in said.lines() {
        if let Some((who, how)) = line.split_once(": test passed")
            && !how.contains("cached")
        {
            *found.entry(who).or_default() += 1;
        }
    }
    found
}

fn decided(world: &World) -> (Value, Vec<String>) {
    let words = ["judge", "--replay", "--json", "1"];
    let verdict = world.run(&world.repo, "git-frites", words).expect(0).json();
    let trees = ["c1", "c2", "c3"].map(|c| world.tree(&format!("refs/frites/1/{c}")));
    (json!([verdict["decision"], verdict["recommended"], verdict["ranking"]]), trees.to_vec())
}

fn a_run_that_is_killed_at_any_moment_decides_the_same_and_judges_no_pass_twice() {
    let (undisturbed, _) = race();
    let began = Instant::now();
    let said = ended(start_race(&undisturbed), 0).stderr;
    let whole = began.elapsed();
    let expected = decided(&undisturbed);
    assert_eq!(passes(&said), BTreeMap::from([("1/c1", 1), ("1/c2", 1), ("1/c3", 1)]), "{said}");
    let mut killed = 0;
    for round in 0..kills() {
        let (world, mark) = race();
        let mut run = start_race(&world);
        // Spread over the run as evenly as few numbers can be.
        let moment = whole.mul_f64((f64::from(round) * 0.618_034).fract());
        let until = Instant::now() + moment;
        while Instant::now() < until && run.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = run.kill();
        let mut said = answer(&run.wait_with_output().unwrap()).stderr;
        poll(|| living(&mark).is_empty());
        let status = world.frites(["status", "--json", "--all"]).expect(0).json();
        if status["runs"].as_array().unwrap().is_empty() {
            continue;
        }
        killed += 1;
        let resumed = world.run(&world.repo, "git-frites", ["run", "--resume", "1"]);
        said.push_str(&resumed.expect(0).stderr);
        let place = format!("round {round}, killed after {moment:?} of {whole:?}:\n{said}");
        assert_eq!(decided(&world), expected, "{place}");
        // One pass can have been about to be kept.
        let again: usize = passes(&said).values().map(|times| times - 1).sum();
        assert!(again <= 1, "{place}");
        world.assert_clean();
    }
    let told = format!("{killed} of {} runs had begun when they were killed", kills());
    assert!(killed > kills() / 3, "only {told}");
    let _ = writeln!(std::io::stderr(), "{told}");
}
