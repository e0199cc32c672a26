//! Supervision: time limits, whole trees, leftovers, output, Ctrl-C (SCOREBOARD rows 13–17).
//! Processes are counted by a mark in their environment, so nothing that a command started can
//! hide.
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::processes::{living, marked};
use crate::common::{Answer, LONG, World, answer, kill, poll};

/// Starts `git-frites` itself, so that its process id is known.
fn start(world: &World, args: &[&str]) -> Child {
    let mut command: Command = world.command(&world.repo, "git-frites", args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(name: &str, pid: u32) {
    assert!(kill([name, &pid.to_string()]));
}

/// True if a process ignores the signal with this number, so that one which is sent to it has no
/// effect.
fn ignores(pid: u32, signal: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    // A bit for each signal, from 1.
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn process_tree_that_ignores_term_is_killed_after_the_grace_period() {
    let (world, mark) = marked();
    let begun = Instant::now();
    let stubborn = "trap '' TERM; echo begun >> README; (trap '' TERM; setsid sh -c 'sleep 500; sleep 501') & (sleep 502 &) ; sleep 503; sleep 504";
    world.frites(["spawn", "-n", "1", "--timeout", "1s", "--", "sh", "-c", stubborn]).expect(4);
    let took = begun.elapsed();
    assert!(took > 6 * SECOND && took < LONG, "timeout 1 s + grace 5 s, and it took {took:?}");
    assert_eq!(living(&mark), []);
    let status = world.frites(["status", "--json", "1/c1"]).expect(0).json();
    assert_eq!(status["runs"][0]["candidates"][0]["state"], "timed-out");
    assert_eq!(
        world.git(["show", "refs/frites/1/c1:README"]),
        "hello\nbegun",
        "what it did is kept"
    );
    world.assert_clean();
}

#[test]
fn idle_timeout_restarts_at_every_byte_and_a_hard_one_does_not() {
    let (world, mark) = marked();
    let talks = "for i in $(seq 16); do printf .; sleep 0.25; done; echo done > README";
    world.frites(["spawn", "-n", "1", "--idle-timeout", "3s", "--", "sh", "-c", talks]).expect(0);
    world
        .frites([
            "spawn",
            "-n",
            "1",
            "--idle-timeout",
            "1s",
            "--",
            "sh",
            "-c",
            "echo hello; exec sleep 500",
        ])
        .expect(4);
    world.frites(["spawn", "-n", "1", "--timeout", "1s", "--", "sh", "-c", talks]).expect(4);
    world.git(["config", "frites.spawn.timeout", "1s"]);
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", talks]).expect(4);
    let states = world.frites(["status", "--json"]).expect(0).json();
    let states: Vec<&str> =
        (0..4).map(|i| states["runs"][i]["candidates"][0]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["succeeded", "timed-out", "timed-out", "timed-out"]);
    let words = |run: &str| world.frites(["status", run]).expect(0).out();
    assert!(words("2").contains(" timed-out (no output for 1.0s) "), "{}", words("2"));
    assert!(words("3").contains(" timed-out ") && !words("3").contains("no output for"));
    assert_eq!(living(&mark), []);
    world
        .frites(["spawn", "--timeout", "soon"])
        .refuses(2, "a duration is written 90s, 10m or 1h30m");
}

#[test]
fn test_command_that_times_out_does_not_pass() {
    let (world, mark) = marked();
    world.spawn(["-n", "1", "--", "sh", "-c", "echo x > README"]);
    let answer = world
        .frites(["judge", "--timeout", "1s", "--build", "true", "--test", "sleep 500"])
        .expect(1);
    let words = "near-miss: the one usable candidate did not pass, and test fails on the base in the same way (timed \
                 out): the base or this machine may lack something; c1 passed build and then timed out in test";
    assert!(answer.out().contains(words), "{}", answer.out());
    assert_eq!(living(&mark), []);
    world.assert_clean();
}

#[test]
fn no_process_survives_a_killed_judge() {
    let (world, mark) = marked();
    world.spawn(["-n", "1", "--", "sh", "-c", "echo x > README"]);
    let mut child =
        start(&world, &["judge", "--test", "setsid sleep 500 & (sleep 501 &); sleep 502"]);
    let sleeping = || living(&mark).iter().filter(|(_, line)| line.contains("sleep 50")).count();
    poll(|| sleeping() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    poll(|| living(&mark).is_empty());
    let answer = world.frites(["judge", "--test", "true", "-q"]).expect(0);
    assert_eq!(answer.out(), "1/c1\n");
    world.assert_clean();
}

#[test]
fn leftover_processes_are_ended_and_flagged() {
    let (world, mark) = marked();
    let begun = Instant::now();
    let leaves = "setsid sleep 500 & (sleep 501 &); echo x > README; exit 0";
    let answer = world.frites(["spawn", "-n", "1", "--", "sh", "-c", leaves]).expect(0);
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    assert!(
        answer.stderr.contains("warning: 1/c1: it left processes behind, which were ended"),
        "{}",
        answer.stderr
    );
    let answer = world.frites(["judge", "--test", "sleep 500 & exit 0"]).expect(0);
    assert!(answer.out().contains("leaky"), "{}", answer.out());
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(verdict["candidates"][0]["results"][0]["leaky"], true);
    assert_eq!(living(&mark), []);
    world.frites(["judge", "--test", "exit 0"]).expect(0);
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(verdict["candidates"][0]["results"][0]["leaky"], serde_json::Value::Null);
}

#[test]
fn background_process_that_ends_at_once_is_no_leftover() {
    let (world, mark) = marked();
    let script = "(sleep 0.05; echo late > late) & echo x > README; git commit -qam x";
    // It has a quarter of a second on the clock, which a loaded machine may not give it each time.
    let run = (1..=3).find(|_| {
        let answer = world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).expect(0);
        !answer.stderr.contains("left processes behind")
    });
    let run = run.expect("each was taken for one that is left behind");
    assert_eq!(
        world.git(["show", &format!("refs/frites/{run}/c1:late")]),
        "late",
        "it is captured after all have ended"
    );
    assert_eq!(living(&mark), []);
}

#[test]
fn hangup_or_interrupt_ends_a_run_unless_it_is_ignored() {
    let (world, mark) = marked();
    let gate = world.home().join("gate");
    let script =
        format!("echo begun > begun; until test -e '{}'; do sleep 0.01; done", gate.display());
    for (run, name, number, ignored, code) in [
        ("1", "HUP", 1, true, 0),
        ("2", "HUP", 1, false, 129),
        ("3", "INT", 2, true, 0),
        ("4", "INT", 2, false, 130),
    ] {
        let trap = if ignored { format!("trap '' {name}; ") } else { String::new() };
        let line = format!("{trap}exec git-frites spawn -n 1 -- sh -c \"$0\"");
        let mut command = world.command(&world.repo, "sh", ["-c", &line, &script]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = world.worktree(&format!("{run}/c1/begun"));
        poll(|| begun.exists());
        assert_eq!(ignores(child.id(), number), ignored);
        signal(&format!("-{name}"), child.id());
        if ignored {
            fs::write(&gate, "").unwrap();
        }
        answer(&child.wait_with_output().unwrap()).expect(code);
        fs::remove_file(&gate).ok();
    }
    assert_eq!(living(&mark), []);
    world.assert_clean();
}

/// The answer of this test program for one test of its own, started by a shell after `prepare`.
fn own_test(prepare: &str, name: &str, mark: &str) -> Answer {
    let line = format!("{prepare}; exec \"$0\" --include-ignored --exact {name}");
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", &line]).arg(program).env("FRITES_TEST_MARK", mark);
    answer(&command.output().unwrap())
}

#[test]
fn tests_do_not_depend_on_signals_that_are_ignored_where_they_are_started() {
    for name in [
        "process::supervision::hangup_or_interrupt_ends_a_run_unless_it_is_ignored",
        "command_line::scripts::interrupt_exits_130_and_work_survives_it_and_a_kill",
    ] {
        // As `nohup` does, and a script for what it starts with `&`.
        own_test("trap '' HUP INT QUIT", name, "").expect(0);
    }
}

#[test]
fn failing_test_leaves_no_process() {
    let (_world, mark) = marked();
    own_test(":", "process::supervision::test_that_fails_while_commands_run", &mark).expect(101);
    assert_eq!(living(&mark), []);
}

#[test]
#[ignore = "it fails, for the test before"]
fn test_that_fails_while_commands_run() {
    let mut world = World::new();
    world.set_env("MARK", std::env::var("FRITES_TEST_MARK").unwrap());
    let mut child =
        start(&world, &["spawn", "-n", "1", "--", "sh", "-c", "touch begun; sleep 600"]);
    poll(|| world.worktree("1/c1/begun").exists());
    // It fails before it waits for its end.
    assert!(child.try_wait().unwrap().is_some());
    child.wait().unwrap();
}

#[test]
fn large_output_fills_neither_memory_nor_disk() {
    let (world, mark) = marked();
    // The scoreboard's gigabyte with FRITES_TEST_OUTPUT=1073741824.
    let total: u64 =
        std::env::var("FRITES_TEST_OUTPUT").ok().and_then(|n| n.parse().ok()).unwrap_or(200 << 20);
    let size = total / 16;
    let script = format!("echo first; cat; head -c {size} /dev/zero; echo last; echo x > README");
    let mut child =
        start(&world, &["spawn", "-q", "-n", "16", "-j", "16", "--", "sh", "-c", &script]);
    // Of all our processes together; what they share counts once. One that is just being started
    // shares all its memory with its parent until it becomes something else: only our children that
    // are supervisors count.
    let field = |text: &str, name: &str| -> Option<u64> {
        text.lines().find_map(|l| l.strip_prefix(name)?.trim().trim_end_matches(" kB").parse().ok())
    };
    let resident = |pid: u32| {
        field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default(), "Pss:")
            .unwrap_or(0)
    };
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let supervisors = living(&mark).into_iter().filter(|(pid, line)| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            line.contains(" __supervise ") && field(&status, "PPid:") == Some(u64::from(child.id()))
        });
        peak =
            peak.max(resident(child.id()) + supervisors.map(|(pid, _)| resident(pid)).sum::<u64>());
    }
    assert_eq!(answer(&child.wait_with_output().unwrap()).expect(0).out(), "1\n");
    // Seventeen processes of a build with debugging information take about 64 MiB by themselves.
    assert!(peak > 0 && peak < 96 << 10, "{peak} KiB resident");
    let log = fs::read(world.repo.join(".frites/runs/1/c1/agent.log")).unwrap();
    assert!(log.len() < (8 << 20) + 100, "{} bytes", log.len());
    assert!(log.starts_with(b"first\n\0") && log.ends_with(b"\0last\n"));
    let left_out = size + 11 - (8 << 20);
    let gap = format!("\n[git-frites: {left_out} bytes are left out here]\n");
    assert!(log.windows(gap.len()).any(|w| w == gap.as_bytes()), "no line says '{}'", gap.trim());
}

/// True if a process is stopped, by its state in `/proc`.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
}

#[test]
fn ctrl_z_stops_commands_and_their_time_limits_until_they_go_on() {
    let (world, mark) = marked();
    let ticks = "(setsid sh -c 'while sleep 0.05; do echo x >> beside; done' &); i=0
        while [ $i -lt 10 ]; do i=$((i+1)); echo $i >> ticks; sleep 0.05; done; echo x > README";
    let limits = ["--timeout", "5s", "--idle-timeout", "5s"];
    let command = ["--", "sh", "-c", ticks];
    let child = start(&world, &[&["spawn", "-n", "1"], &limits[..], &command[..]].concat());
    let written = |file: &str| fs::read(world.worktree("1/c1").join(file)).unwrap_or_default();
    poll(|| !written("ticks").is_empty() && !written("beside").is_empty());
    signal("-TSTP", child.id());
    // The supervisor alone goes on: it has the clock.
    let others = || living(&mark).into_iter().filter(|(_, line)| !line.contains(" __supervise "));
    poll(|| others().all(|(pid, _)| is_stopped(pid)));
    let before = (written("ticks"), written("beside"));
    // Longer than either limit.
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!((written("ticks"), written("beside")), before, "nothing has run meanwhile");
    signal("-CONT", child.id());
    let ended = answer(&child.wait_with_output().unwrap()).expect(0);
    assert!(ended.stderr.contains("left processes behind"), "{}", ended.stderr);
    assert_eq!(world.first_candidate("1")["state"], "succeeded");
    assert_eq!(living(&mark), []);
}

#[test]
fn first_ctrl_c_terminates_commands_and_keeps_their_work() {
    let (world, mark) = marked();
    let polite =
        "trap 'echo saved > saved; exit 0' TERM; echo begun > begun; while :; do sleep 0.05; done";
    let child = start(&world, &["spawn", "-n", "3", "-j", "2", "--", "sh", "-c", polite]);
    let begun = |i: u32| world.worktree(&format!("1/c{i}/begun")).exists();
    poll(|| begun(1) && begun(2));
    signal("-INT", child.id());
    let ended = answer(&child.wait_with_output().unwrap()).expect(130);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("hint: the work so far is kept; continue with `git frites run --resume 1`")
    );
    assert_eq!(living(&mark), []);
    let status = world.frites(["status", "--json"]).expect(0).json();
    for i in 0..3 {
        assert_eq!(status["runs"][0]["candidates"][i]["state"], "cancelled");
    }
    for i in 1..=2 {
        assert_eq!(world.git(["show", &format!("refs/frites/1/c{i}:saved")]), "saved");
    }
    assert!(!begun(3), "the third was never started");
    world.assert_clean();
}

#[test]
fn second_ctrl_c_kills_a_command_that_ignores_the_first() {
    let (world, mark) = marked();
    world.spawn(["-n", "1", "--", "sh", "-c", "echo x > README"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    let verdict = world.git(["rev-parse", "refs/frites/1/@record"]);
    // The shell notes the first signal and goes on; `wait` returns for a signal, `sleep` does not.
    let script = "trap '' INT; trap 'echo > \"$HOME/asked\"' TERM
        echo > \"$HOME/ready\"; while :; do sleep 500 & wait; done";
    let there = |file: &str| world.home().join(file).exists();
    // The grace is over after 5 seconds on the clock, whatever else the machine does: one of three
    // is in time.
    let in_time = (0..3).any(|_| {
        for file in ["ready", "asked"] {
            let _ = fs::remove_file(world.home().join(file));
        }
        let child = start(&world, &["judge", "--no-cache", "--test", script]);
        poll(|| there("ready"));
        let begun = Instant::now();
        signal("-INT", child.id());
        poll(|| there("asked"));
        signal("-INT", child.id());
        let ended = answer(&child.wait_with_output().unwrap()).expect(130);
        let words = "error: interrupted; nothing was decided\nhint: judge again: `git frites judge 1 --test ";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        begun.elapsed() < 4 * SECOND
    });
    assert!(in_time, "the second signal did not end the grace");
    let _ = fs::remove_file(world.home().join("ready"));
    let waits = "echo > \"$HOME/ready\"; sleep 500";
    let child = start(&world, &["judge", "--candidate", "c1", "--test", waits]);
    poll(|| there("ready"));
    signal("-INT", child.id());
    let ended = answer(&child.wait_with_output().unwrap()).expect(130);
    let again = "hint: judge again: `git frites judge 1 --candidate c1 --test ";
    assert!(ended.stderr.contains(again), "{}", ended.stderr);
    assert_eq!(living(&mark), []);
    assert_eq!(
        world.git(["rev-parse", "refs/frites/1/@record"]),
        verdict,
        "the old verdict stands"
    );
    world.assert_clean();
}

/// Asks for the status until a spawn ends; gives the candidates that it named as running at some
/// time. Each whose processes were there before and after the question must be among them.
fn running_by_status(world: &World, mark: &str, child: &mut Child) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    while child.try_wait().unwrap().is_none() {
        let before = commands_of(mark);
        let json = world.frites(["status", "--json"]).expect(0).json();
        let after = commands_of(mark);
        let Some(candidates) = json["runs"][0]["candidates"].as_array() else { continue };
        let doing = candidates.iter().filter(|c| !c["doing"].is_null());
        let told: BTreeSet<String> =
            doing.map(|c| c["candidate"].as_str().unwrap().to_owned()).collect();
        assert!(told.len() <= 4, "{told:?}");
        for candidate in before.intersection(&after) {
            assert!(told.contains(candidate), "{candidate} runs, and status tells of {told:?}");
        }
        for candidate in
            candidates.iter().filter(|c| told.contains(c["candidate"].as_str().unwrap()))
        {
            assert_eq!(candidate["state"], "running");
        }
        seen.extend(told);
    }
    seen
}

#[test]
fn sixteen_candidates_end_as_expected_and_status_shows_them_running() {
    let (world, mark) = marked();
    let script = "case $FRITES_INDEX in \
        11|12) exec sleep 500;; \
        13) setsid sleep 501 & echo x > README;; \
        14) trap '' TERM; while :; do sleep 0.1; done;; \
        15) echo out; echo err >&2; echo x > README; exit 3;; \
        16) echo x > README; kill -SEGV $$;; \
        *) for i in 1 2 3; do echo line $i; sleep 0.2; done; echo $FRITES_INDEX > README;; esac";
    let args = [
        "spawn",
        "-n",
        "16",
        "-j",
        "4",
        "--idle-timeout",
        "3s",
        "--json",
        "--",
        "sh",
        "-c",
        script,
    ];
    let begun = Instant::now();
    let mut child = start(&world, &args);
    let seen_running = running_by_status(&world, &mark, &mut child);
    let elapsed = begun.elapsed();
    let spawned = answer(&child.wait_with_output().unwrap()).expect(0).json();
    assert_eq!(living(&mark), []);
    assert!(seen_running.len() > 8, "{seen_running:?}");
    assert!(
        elapsed > 8 * SECOND && elapsed < LONG,
        "three idle seconds, five of grace, and it took {elapsed:?}"
    );
    let told: Vec<String> =
        world.frites(["status", "--json"]).expect(0).json()["runs"][0]["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                let leaky = if c["leaky"] == true { " leaky" } else { "" };
                format!(
                    "{} {} {}{leaky}",
                    c["state"].as_str().unwrap(),
                    c["exit_code"],
                    c["signal"]
                )
            })
            .collect();
    let mut expected = vec!["succeeded 0 null"; 10];
    expected.extend([
        "timed-out null null",
        "timed-out null null",
        "succeeded 0 null leaky",
        "timed-out null null",
    ]);
    expected.extend(["failed 3 null", "failed null 11"]);
    assert_eq!(told, expected);
    assert_eq!(spawned["candidates"][15]["signal"], 11);
    let log = |i: u32| {
        fs::read_to_string(world.repo.join(format!(".frites/runs/1/c{i}/agent.log"))).unwrap()
    };
    assert_eq!((log(1), log(15)), ("line 1\nline 2\nline 3\n".into(), "out\nerr\n".into()));
    let events = world.events();
    let seconds = |candidate: &str| {
        let ended = |e: &&serde_json::Value| e["event"] == "ended" && e["candidate"] == candidate;
        events.iter().find(ended).unwrap()["seconds"].as_f64().unwrap()
    };
    for (candidate, least) in [("c1", 0.6), ("c11", 3.0), ("c14", 8.0), ("c15", 0.0)] {
        let took = seconds(candidate);
        assert!((least..elapsed.as_secs_f64()).contains(&took), "{candidate} took {took} s");
    }
    world.assert_clean();
}

/// The candidates whose commands run, by the variables that their processes have.
fn commands_of(mark: &str) -> BTreeSet<String> {
    let name = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let text = String::from_utf8_lossy(&environment).into_owned();
        text.split('\0').find_map(|v| v.strip_prefix("FRITES_CANDIDATE=").map(str::to_owned))
    };
    living(mark)
        .into_iter()
        .filter(|(_, line)| line.starts_with("sh -c"))
        .filter_map(|(pid, _)| name(pid))
        .collect()
}

/// The supervisors of a world's commands.
fn supervisors(mark: &str) -> Vec<u32> {
    let all = living(mark).into_iter();
    all.filter(|(_, line)| line.contains(" __supervise ")).map(|(pid, _)| pid).collect()
}

#[test]
fn pass_with_output_that_was_not_stored_is_an_error_and_no_outcome() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo x > README"]);
    // The system lets no file have more bytes than this, as a full disk would. In the second case
    // this process holds the output open.
    let held = "echo $$ > \"$HOME/new\"; mv \"$HOME/new\" \"$HOME/pid\"; until test -e \"$HOME/held\"; do sleep 0.01; done; seq 1000000";
    for test in ["seq 1000000", held] {
        let limited = "trap '' XFSZ; ulimit -f 4000; exec git-frites judge -j 1 --test \"$0\"";
        let mut command = world.command(&world.repo, "sh", ["-c", limited, test]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let holder = (test == held).then(|| {
            poll(|| world.home().join("pid").exists());
            let pid = fs::read_to_string(world.home().join("pid")).unwrap();
            let output = File::options().write(true).open(format!("/proc/{}/fd/1", pid.trim()));
            fs::write(world.home().join("held"), "").unwrap();
            output.unwrap()
        });
        answer(&child.wait_with_output().unwrap()).refuses(
            128,
            ": the test command: it is not known how it ended: its output could not be stored (File too large)",
        );
        drop(holder);
    }
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/@results"]), "");
    world.assert_clean();
}

#[test]
fn end_of_a_command_that_kills_its_supervisor_is_an_error_and_no_outcome() {
    crate::common::in_the_open_world();
    let (world, mark) = marked();
    world.attempts(&["echo x > README", "echo longer > README; echo y > MORE"]);
    let report = r#"{"code":0,"signal":null,"reason":null,"timed_out":false,"cancelled":false,"leaky":false}"#;
    // The first process holds the supervisor's output open: nobody may wait for its end.
    let forged = format!(
        "! grep -q hello README || exit 1; test -e MORE && exit 0; setsid sleep 500 > /proc/$PPID/fd/1 & sleep 501 & printf '%s' '{report}' > /proc/$PPID/fd/1; kill -9 $PPID; exit 1"
    );
    world.frites(["judge", "--test", &forged]).refuses(
        128,
        "1/c1: the test command: its supervising process was ended by signal 9, so it is not known how the command ended",
    );
    assert_eq!(living(&mark), []);
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/@results"]), "");
    world.frites(["apply"]).refuses(1, "");
    // The same with one candidate alone, whose outcome has a ref of its own.
    world.frites(["judge", "--candidate", "c1", "--test", &forged]).refuses(128, "1/c1: the test");
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/@results"]), "");
    world
        .frites(["spawn", "-n", "1", "--", "sh", "-c", "echo y > README; kill -9 $PPID; sleep 502"])
        .expect(4);
    assert_eq!(living(&mark), []);
    let attempt = world.first_candidate("2");
    assert_eq!(attempt["state"], "cancelled");
    assert_eq!(world.git(["show", "refs/frites/2/c1:README"]), "y", "the work is kept");
    world.assert_clean();
}

#[test]
fn git_frites_that_a_killed_supervisor_left_behind_is_ended_too() {
    let (mut world, mark) = marked();
    world.set_env("FRITES_LIMITS_NESTING", "3");
    let nested = "git init -q inner; git -C inner commit -q --allow-empty -m x
        git -C inner frites spawn -n 1 -- sh -c 'echo > ready; sleep 500' &
        until test -e inner/.frites/worktrees/1/c1/ready ; do sleep 0.05; done; kill -9 $PPID; sleep 501";
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", nested]).expect(4);
    poll(|| living(&mark).is_empty());
}

#[test]
fn supervisor_outlives_signals_and_its_command_has_the_default_actions() {
    let (world, mark) = marked();
    world.attempts(&["echo x > README"]);
    let test = "for signal in TERM INT HUP QUIT USR1 USR2 TSTP; do kill -$signal $PPID; done
        grep ^SigIgn /proc/self/status > \"$HOME/masks\"";
    world.frites(["judge", "-q", "--test", test]).expect(0);
    let ignored = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    let masks = fs::read_to_string(world.home().join("masks")).unwrap();
    // As by `nohup`, which is meant for commands, too.
    let from_outside = ignored(&fs::read_to_string("/proc/self/status").unwrap());
    let own = ignored(&masks) & !from_outside;
    assert_eq!(own & 0x7fff_ffff, 0, "of the signals below 32: {masks}");
    assert_eq!(living(&mark), []);
}

#[test]
fn command_that_is_terminated_together_with_its_supervisor_has_no_outcome() {
    let (world, mark) = marked();
    world.attempts(&["echo x > README", "echo longer > README; echo y > MORE"]);
    let test = "! grep -q hello README || exit 1; test -e MORE && exit 0; echo > \"$HOME/ready\"; exec sleep 500";
    let child = start(&world, &["judge", "--test", test]);
    poll(|| world.home().join("ready").exists());
    poll(|| living(&mark).iter().any(|(_, line)| line.starts_with("sleep 500")));
    // As a batch system ends a whole job, but for git-frites itself.
    for pid in supervisors(&mark) {
        signal("-TERM", pid);
    }
    let others = living(&mark).into_iter().filter(|(_, line)| line.starts_with("sleep 500"));
    for (pid, _) in others {
        signal("-TERM", pid);
    }
    answer(&child.wait_with_output().unwrap())
        .refuses(128, "1/c1: the test command: signal 15 from outside reached it");
    world.frites(["apply"]).refuses(1, "");
    assert_eq!(living(&mark), []);
    world.assert_clean();
}

#[test]
fn signal_to_all_processes_at_once_ends_everything_in_order() {
    let (world, mark) = marked();
    let begin = "echo x > README; echo > begun; exec sleep 500";
    let child = start(&world, &["spawn", "-n", "2", "--", "sh", "-c", begin]);
    poll(|| (1..=2).all(|i| world.worktree(&format!("1/c{i}/begun")).exists()));
    // Commands first, and git-frites last.
    let mut all = living(&mark);
    all.sort_by_key(|(pid, line)| (*pid == child.id(), !line.starts_with("sleep")));
    let pids = all.iter().map(|(pid, _)| pid.to_string());
    kill(["-TERM".to_owned()].into_iter().chain(pids));
    answer(&child.wait_with_output().unwrap()).expect(143);
    assert_eq!(living(&mark), []);
    for i in 0..2 {
        let status = world.frites(["status", "--json"]).expect(0).json();
        assert_eq!(status["runs"][0]["candidates"][i]["state"], "cancelled");
    }
    let resumed = world.frites(["run", "--resume", "1", "--timeout", "1s", "--test", "true"]);
    assert_ne!(resumed.code, 128, "{}", resumed.stderr);
    world.assert_clean();
}

#[test]
fn command_that_stops_its_supervisor_has_its_time_limit_all_the_same() {
    let (world, mark) = marked();
    world.attempts(&["echo x > README"]);
    let begun = Instant::now();
    for test in ["kill -STOP $PPID; sleep 500", "while :; do kill -STOP $PPID; done"] {
        let answer = world.frites(["judge", "--timeout", "1s", "--test", test]).expect(1);
        assert!(answer.out().contains("timed out"), "{}", answer.out());
        assert_eq!(living(&mark), []);
    }
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    // Without a limit, the supervisor goes on.
    world
        .frites(["spawn", "-n", "1", "--", "sh", "-c", "kill -STOP $PPID; echo y > README"])
        .expect(0);
    let child = start(
        &world,
        &["spawn", "-n", "1", "--", "sh", "-c", "echo > begun; while :; do kill -STOP $PPID; done"],
    );
    poll(|| world.worktree("3/c1/begun").exists());
    signal("-TERM", child.id());
    answer(&child.wait_with_output().unwrap()).expect(143);
    assert_eq!(living(&mark), []);
    world.assert_clean();
}

#[test]
fn next_command_ends_what_outlived_a_killed_git_frites() {
    let (world, mark) = marked();
    let attempt =
        "echo x > README; echo > begun; sleep 500 & setsid sleep 501 & sleep 502; sleep 503";
    for (run, with_supervisor, doing) in [("1", "STOP", "agent"), ("2", "KILL", "agent")] {
        let mut child = start(&world, &["spawn", "-n", "1", "--", "sh", "-c", attempt]);
        poll(|| world.worktree(&format!("{run}/c1/begun")).exists());
        poll(|| living(&mark).iter().filter(|(_, line)| line.starts_with("sleep")).count() == 3);
        // At once, so that git-frites has no time to notice.
        let line = format!(
            "kill -STOP {0}; kill -{with_supervisor} {1}; kill -KILL {0}",
            child.id(),
            supervisors(&mark)[0]
        );
        world.sh(&world.repo, &line).expect(0);
        child.wait().unwrap();
        // The kernel itself lets a stopped process go on whose group has lost its last parent.
        assert!(with_supervisor == "STOP" || !living(&mark).is_empty(), "they survive");
        let told = world.frites(["status"]).expect(0).stderr;
        let ended = format!("{run}/c1: its {doing} command had outlived git-frites, and is ended");
        assert!(with_supervisor == "STOP" || told.contains(&ended), "{told}");
        // What called setsid, and lost its supervisor, is out of reach.
        poll(|| with_supervisor == "KILL" || living(&mark).is_empty());
        let left = living(&mark);
        assert!(
            left.iter().all(|(_, line)| with_supervisor == "KILL" && line.starts_with("sleep 501")),
            "{left:?}"
        );
        left.iter().for_each(|(pid, _)| signal("-KILL", *pid));
        let told = world.frites(["status"]).expect(0).stderr;
        assert!(!told.contains("outlived"), "{told}");
    }
    assert_eq!(world.attempts(&["echo x > README"]), "3");
    let mut child = start(&world, &["judge", "3", "--test", "sleep 500; sleep 501"]);
    poll(|| living(&mark).iter().any(|(_, line)| line.starts_with("sleep 500")));
    let line = format!(
        "kill -STOP {0}; kill -STOP {1}; kill -KILL {0}",
        child.id(),
        supervisors(&mark)[0]
    );
    world.sh(&world.repo, &line).expect(0);
    child.wait().unwrap();
    let told = world.frites(["judge", "3", "--test", "true"]).expect(0).stderr;
    poll(|| living(&mark).is_empty());
    assert!(!told.contains("cannot be ended"), "{told}");
    world.assert_clean();
}

#[test]
fn next_command_ends_hooks_and_second_judgings_that_outlived_git_frites() {
    crate::common::in_the_open_world();
    let (world, mark) = marked();
    world.write("check.sh", "test ! -e new || sleep 600\n");
    world.commit("a check that waits for what is new");
    assert_eq!(world.attempts(&["echo > new; echo true > check.sh"]), "1");
    let hook = ["config", "--global", "frites.hooks.verdict", "sleep 600"];
    let of_hook = "1: its hook-verdict command had outlived git-frites, and is ended";
    let of_second = "1/c1: its base's test command had outlived git-frites, and is ended";
    for (test, expected, log) in [
        ("sh check.sh", of_second, "c1/base-tests/test.log"),
        ("true", of_hook, "hook-verdict.log"),
    ] {
        let mut child = start(&world, &["judge", "1", "--test", test]);
        poll(|| living(&mark).iter().any(|(_, line)| line.starts_with("sleep 600")));
        let doing = world.frites(["status", "1"]).expect(0).out();
        let what = if log.starts_with("hook") { "hook-verdict" } else { "base's test" };
        assert!(doing.lines().any(|l| l.starts_with("● ") && l.contains(what)), "{doing}");
        let line = format!(
            "kill -STOP {0}; kill -KILL {1}; kill -KILL {0}",
            child.id(),
            supervisors(&mark)[0]
        );
        world.sh(&world.repo, &line).expect(0);
        child.wait().unwrap();
        assert!(!living(&mark).is_empty(), "it survives");
        let told = world.frites(["status"]).expect(0).stderr;
        assert!(told.contains(expected), "{told}");
        assert_eq!(living(&mark), []);
        let mark_of = world.repo.join(format!(".frites/runs/1/{log}.running"));
        assert!(!mark_of.exists(), "{}", mark_of.display());
        let told = world.frites(["status"]).expect(0);
        assert!(!told.stderr.contains("outlived") && !told.out().contains("● "), "{told:?}");
        // The second judging ends, and its hook waits.
        world.git(hook);
    }
    world.assert_clean();
}
