//! Synthesis: one more candidate, made from those that passed. Each way it can end, with its
//! sentence.
use crate::common::{World, make_executable, write};

/// A world with an agent whose candidates `maker-1` and `maker-2` pass with 1 and 2 lines, and
/// whose synthesis does what `script` says.
fn world_with(script: &str) -> World {
    let mut world = World::new();
    let program = world.home().join("bin/maker");
    let text = format!(
        "#!/bin/sh\ncat > \"$HOME/asked-$FRITES_CANDIDATE\"\ncase $FRITES_CANDIDATE in\nmaker-1) echo good >> README;;\n\
         maker-2) printf 'good\\nbetter\\n' >> README;;\nmaker-3) echo bad >> README;;\n*) {script};;\nesac\n"
    );
    write(&program, text);
    make_executable(&program);
    let path = std::env::join_paths(
        std::iter::once(world.home().join("bin")).chain(std::env::split_paths(&world.env("PATH"))),
    )
    .unwrap();
    world.set_env("PATH", path);
    let settings = r#"
        [agents.maker]
        command = ["maker"]
        framing = ["Be quick.", "Be slow."]
        [oracle]
        test = "grep -q good README && ! grep -q broken README"
    "#;
    world.write(".frites.toml", settings);
    world.commit("settings");
    world
}

fn run(world: &World, more: &[&str]) -> crate::common::Answer {
    world.frites([&["run", "--agent", "maker=3", "-p", "make it good"], more].concat())
}

#[test]
fn synthesis_that_passes_within_the_size_limit_is_recommended() {
    let world = world_with("echo best >> README");
    let answer = run(&world, &[]).expect(0);
    let sentence = "synthesis: synthesis-1 integrates maker-1, maker-2 and passed test: \
        2 lines in 1 file, within 1.5 times the 3 lines of the candidates that it drew on";
    assert!(answer.out().contains(sentence), "{}", answer.out());
    // It began with the best one's files, as changes that are not committed.
    assert_eq!(world.git(["show", "refs/frites/1/synthesis-1:README"]), "hello\ngood\nbest");
    assert_eq!(
        world.git_in(&world.worktree("1/synthesis-1"), ["rev-parse", "HEAD"]),
        world.git(["rev-parse", "main"])
    );
    let asked = std::fs::read_to_string(world.home().join("asked-synthesis-1")).unwrap();
    for part in [
        "# The task\n\nmake it good\n",
        "# maker-1, which stands in this worktree: 1 line in 1 file\n\n- README\n",
        "# maker-2: 2 lines in 1 file\n\n```diff\ndiff --git a/README b/README\n",
        "Integrate, do not concatenate",
        "test: `grep -q good README",
    ] {
        assert!(asked.contains(part), "no {part:?} in:\n{asked}");
    }
    let places = format!(
        "Its patch is in {}, its files are in {}.\n",
        world.repo.join(".frites/runs/1/maker-2/candidate.diff").display(),
        world.worktree("1/maker-2").display()
    );
    assert!(asked.contains(&places), "{asked}");
    let base = world.git(["rev-parse", "main"]);
    assert!(asked.contains(&format!("All attempts began at the commit {base}; ")), "{asked}");
    assert!(!asked.contains("maker-3") && !asked.contains("Be quick."), "{asked}");
    let json = world.frites(["status", "--json", "1"]).expect(0).json();
    let candidate = &json["runs"][0]["candidates"][3];
    assert_eq!(
        (candidate["candidate"].as_str(), candidate["index"].as_u64()),
        (Some("synthesis-1"), Some(4))
    );
    // The landed tree is the tree that passed.
    world.frites(["apply", "1"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/synthesis-1"));
    // Asked once is enough.
    world.frites(["run", "--resume", "1"]).expect(0);
    assert_eq!(
        world.frites(["status", "--json", "1"]).expect(0).json()["runs"][0]["candidates"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn other_synthesis_leaves_the_best_attempt_recommended_with_the_reason() {
    let cases = [
        ("echo broken >> README", "synthesis-1 is not preferred: it failed test (exit 1)"),
        (
            "seq 20 >> README",
            "synthesis-1 is not preferred: its 21 lines are more than 1.5 times the 3 lines of the candidates that it drew on",
        ),
        ("true", "synthesis-1 is not preferred: it made the same tree as maker-1"),
        ("echo better >> README; exit 3", "synthesis-1 is not preferred: its command failed"),
        ("git checkout -q HEAD -- README", "synthesis-1 is not preferred: it changed nothing"),
    ];
    for (script, sentence) in cases {
        let world = world_with(script);
        let out = run(&world, &[]).expect(0).out();
        assert!(out.contains("*  1/maker-1 ") && out.contains("judge: "), "{script}: {out}");
        assert!(out.contains(sentence), "{script}: no '{sentence}' in\n{out}");
        let replayed = world.frites(["judge", "--replay", "--json"]).expect(0).json();
        assert!(replayed["rationale"].as_str().unwrap().contains(sentence), "{replayed:#}");
        assert_eq!(replayed["recommended"], "maker-1");
    }
}

#[test]
fn synthesis_is_skipped_when_off_or_without_two_passes_or_an_agent() {
    let world = world_with("true");
    let candidates = |run: &str| {
        world.frites(["status", "--json", run]).expect(0).json()["runs"][0]["candidates"]
            .as_array()
            .unwrap()
            .len()
    };
    world.git(["config", "frites.synthesis.mode", "off"]);
    run(&world, &[]).expect(0);
    assert_eq!(candidates("1"), 3);
    world.git(["config", "--unset", "frites.synthesis.mode"]);
    // Only one passes.
    run(&world, &["--test", "grep -q better README"]).expect(0);
    assert_eq!(candidates("2"), 3);
    // A codemod is not told by a prompt what to do.
    world
        .frites(["run", "-n", "2", "--", "sh", "-c", "echo good $FRITES_INDEX >> README"])
        .expect(0);
    assert_eq!(candidates("3"), 2);
    // A command with a prompt is.
    world
        .frites([
            "run",
            "-n",
            "2",
            "-p",
            "x",
            "--",
            "sh",
            "-c",
            "echo good $FRITES_INDEX >> README",
        ])
        .expect(0);
    assert_eq!(candidates("4"), 3);
}

#[test]
fn each_skipped_synthesis_is_explained() {
    let world = world_with("exit 3");
    let maker = ["--agent", "maker=3", "-p", "make it good"];
    let script = ["-n", "2", "--", "sh", "-c", "echo good $FRITES_INDEX >> README"];
    let explained = |words: &[&str], code: i32, reason: &str| {
        let answer = world.frites([&["run", "--json"], words].concat()).expect(code);
        let json = answer.json();
        assert_eq!(json["no_synthesis"], reason, "{json:#}");
        let told = answer.stderr.contains(&format!(": no synthesis: {reason}\n"));
        assert_eq!(told, words.contains(&"-p"), "{}", answer.stderr);
        // The verdict in the record says it, too.
        let run = json["run"].as_str().unwrap();
        let status = world.frites(["status", "--json", run]).expect(0).json();
        assert_eq!(status["runs"][0]["verdict"]["no_synthesis"], reason);
        let replayed = world.frites(["judge", "--replay", "--json", run]).expect(code).json();
        assert_eq!(replayed["no_synthesis"], reason);
    };
    let one = [&["--test", "grep -q better README"], &maker[..]].concat();
    explained(&one, 0, "one distinct tree passed: nothing to combine");
    let none = [&["--test", "false"], &maker[..]].concat();
    explained(&none, 1, "no candidate passed: nothing to combine");
    let nobody = "no agent made the best candidate, and the run has no prompt for its command";
    explained(&script, 0, nobody);
    world.git(["config", "frites.synthesis.mode", "off"]);
    explained(&maker, 0, "synthesis.mode is off");
    world.git(["config", "--unset", "frites.synthesis.mode"]);
    // With a synthesis there is nothing to explain.
    let json = world.frites([&["run", "--json"], &maker[..]].concat()).expect(0).json();
    assert!(json["no_synthesis"].is_null(), "{json:#}");
    world.git(["config", "frites.synthesis.agent", "absent"]);
    world.git(["config", "frites.agents.absent.command", "no-such-program"]);
    let json = world.frites([&["run", "--json"], &maker[..]].concat()).expect(0).json();
    let reason = json["no_synthesis"].as_str().unwrap();
    assert!(reason.starts_with("it failed: the agent 'absent' cannot start"), "{reason}");
    world.git(["config", "frites.synthesis.agent", "makr"]);
    let runs = world.git(["for-each-ref", "refs/frites"]);
    let words = [&["run"], &maker[..]].concat();
    let refused = world.frites(words).refuses(128, "synthesis.agent: there is no agent 'makr'");
    assert!(refused.stderr.contains("hint: did you mean 'maker'?"), "{}", refused.stderr);
    assert_eq!(world.git(["for-each-ref", "refs/frites"]), runs, "nothing was begun");
}

#[test]
fn synthesis_has_an_agent_a_time_limit_and_a_prompt_of_its_own() {
    let world = world_with("exit 3");
    let set = |key: &str, value: &str| world.git(["config", &format!("frites.{key}"), value]);
    set("agents.other.command", "sh -c 'cat > \"$HOME/other\"; echo best >> README'");
    set("agents.other.framing", "Be brief.");
    set("synthesis.agent", "other");
    set("synthesis.prompt-limit", "10B");
    let out = run(&world, &[]).expect(0).out();
    assert!(out.contains("synthesis: synthesis-1 integrates maker-1, maker-2"), "{out}");
    let asked = std::fs::read_to_string(world.home().join("other")).unwrap();
    assert!(asked.contains("- README\n\nIt is too long to be shown. Its patch is in "), "{asked}");
    assert!(!asked.contains("```diff") && !asked.contains("Be brief."), "{asked}");
    // A codemod has no prompt; the agent is told its command. A cleaned attempt is in git.
    let script = ["run", "-n", "2", "--", "sh", "-c", "echo good $FRITES_INDEX >> README"];
    let out = world.frites(script).expect(0).out();
    assert!(out.contains("synthesis-1"), "{out}");
    world.frites(["clean", "-q", "2/c2"]).expect(0);
    world.frites(["add", "-q", "--synthesize", "2"]).expect(0);
    let asked = std::fs::read_to_string(world.home().join("other")).unwrap();
    assert!(asked.contains("What the command `sh -c "), "{asked}");
    assert!(asked.contains("Its files are in git: `git show refs/frites/2/c2:PATH`."), "{asked}");
    // Its own time limit; an option has precedence.
    set("agents.other.command", "sh -c 'echo best >> README; exec sleep 600'");
    set("synthesis.timeout", "300ms");
    let answer = run(&world, &[]).expect(0);
    assert!(answer.stderr.contains("3/synthesis-1: timed-out"), "{}", answer.stderr);
    assert!(answer.out().contains("synthesis-1 is not preferred: "), "{}", answer.out());
    set("synthesis.timeout", "10m");
    let spawn = ["add", "--synthesize", "3", "--timeout", "300ms"];
    let answer = world.frites(spawn).expect(4);
    assert!(answer.stderr.contains("3/synthesis-2: timed-out"), "{}", answer.stderr);
}

#[test]
fn file_of_a_synthesis_that_its_worktree_will_not_have_is_warned_of() {
    let world = World::new();
    world.attempts(&["echo exit 0 > made.sh", "seq 2 > two"]);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    for file in ["combine.sh", "made.sh"] {
        world.write(file, "exit 0\n");
    }
    let by_hand = |file: &str, code| {
        let words = ["add", "--synthesize", "1", "--", "sh", file];
        world.frites(words).expect(code).stderr
    };
    let told = by_hand("combine.sh", 4);
    let warning = "warning: 'combine.sh' is not committed, so no worktree has it\n\
                   hint: commit it, give its absolute path, or add it to `seed.copy`\n";
    assert!(told.contains(warning), "{told}");
    let told = by_hand("made.sh", 0);
    assert!(!told.contains("is not committed"), "it begins with the files of the best one: {told}");
    world.assert_clean();
}

#[test]
fn synthesis_can_be_run_by_hand_and_names_what_was_shortened() {
    let world = World::new();
    let big = "seq 60000 > big; echo good >> README";
    world.attempts(&["echo good >> README", big, "printf 'good\\n```\\n' >> README"]);
    let before = world.git(["for-each-ref"]);
    world
        .frites(["add", "--synthesize", "1", "--", "sh", "-c", "cat > asked"])
        .refuses(1, "run 1 was not judged");
    world.frites(["judge", "-q", "--test", "test -e big"]).expect(0);
    world
        .frites(["add", "--synthesize", "1", "--", "true"])
        .refuses(1, "there is nothing to integrate in run 1: only c2 of 3 passed");
    world.frites(["judge", "-q", "--test", "grep -q good README"]).expect(0);
    world
        .frites(["add", "--synthesize", "1"])
        .refuses(2, "a synthesis needs an agent or a command");
    world.frites(["add", "--synthesize", "--", "true"]).refuses(2, "<RUN>");
    world.git(["config", "frites.limits.candidates", "3"]);
    world
        .frites(["add", "--synthesize", "1", "--", "true"])
        .refuses(128, "4 candidates are more than limits.candidates = 3");
    world.git(["config", "--unset", "frites.limits.candidates"]);
    let made = |refs: &str| refs.lines().filter(|l| l.contains("synthesis")).count();
    assert_eq!((made(&before), made(&world.git(["for-each-ref"]))), (0, 0));

    let out =
        world.frites(["add", "--synthesize", "1", "--", "sh", "-c", "cat > asked"]).expect(0).out();
    assert_eq!(out, format!("1/synthesis-1\t{}\n", world.worktree("1/synthesis-1").display()));
    let asked = world.git(["show", "refs/frites/1/synthesis-1:asked"]);
    assert!(
        asked.contains("\n# c3: 2 lines in 1 file\n\n````diff\n"),
        "a fence longer than what it holds:\n{asked}"
    );
    assert!(
        asked.contains(
            "# c2: 60001 lines in 2 files\n\n- README\n- big\n\nIt is too long to be shown."
        ),
        "{asked}"
    );
    assert!(
        asked.contains("runs/1/c2/candidate.diff") && asked.len() < 10_000,
        "{} bytes",
        asked.len()
    );
    assert_eq!(
        world.git(["show", "refs/frites/1/@record:prompt-synthesis-1.md"]).trim_end(),
        asked.trim_end()
    );
    // A second one, which is made from the attempts, not from the first.
    world.frites(["judge", "-q", "--test", "grep -q good README"]).expect(0);
    world.frites(["add", "-q", "--synthesize", "1", "--", "sh", "-c", "cat > asked"]).expect(0);
    let asked = world.git(["show", "refs/frites/1/synthesis-2:asked"]);
    assert!(!asked.contains("synthesis-1"), "{asked}");
    world.assert_clean();
}

#[test]
fn synthesize_with_a_record_commit_without_parents_goes_on() {
    let world = world_with("echo best >> README");
    world.git(["config", "frites.synthesis.mode", "off"]);
    run(&world, &[]).expect(0);
    world.git(["config", "--unset", "frites.synthesis.mode"]);
    let record = world.git(["commit-tree", "refs/frites/1/@record^{tree}", "-m", "by hand"]);
    world.git(["update-ref", "refs/frites/1/@record", &record]);
    let _ = world.frites(["add", "--synthesize", "1", "--agent", "maker"]).expect(0);
}

#[test]
fn synthesis_is_announced_with_who_would_make_it() {
    let world = world_with("exit 3");
    let told = |more: &[&str]| {
        let words = [&["run", "--test", "false"], more].concat();
        let told = world.frites(&words).expect(1).stderr;
        let mut opening = told.lines().take_while(|line| !line.starts_with("run "));
        opening.find(|line| line.starts_with("synthesis: ")).map(str::to_owned)
    };
    let agent = ["--agent", "maker=2", "-p", "x"];
    let line = "synthesis: if several pass, the agent maker makes one more attempt from them; `--synthesis off` prevents it";
    assert_eq!(told(&agent).as_deref(), Some(line));
    assert_eq!(told(&[&agent[..], &["--synthesis", "off"]].concat()), None);
    assert_eq!(told(&["--agent", "maker", "-p", "x"]), None, "one candidate");
    let script = ["-n", "2", "--", "sh", "-c", "echo $FRITES_INDEX >> README"];
    assert_eq!(told(&script), None, "nobody would make it");
    assert!(told(&[&["-p", "x"], &script[..]].concat()).unwrap().contains(", the same command "));
}
