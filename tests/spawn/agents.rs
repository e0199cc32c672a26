//! Agents and prompts: stand-ins on PATH under the agents' names write down how they are called and
//! what they read. No real agent ran here.
use std::fs;

use crate::common::{World, make_executable, write};

/// A world in which each of these programs is a stand-in. It writes its arguments (a line each) to
/// `args`, and its standard input to `stdin`, in its worktree.
fn world_with(programs: &[&str]) -> World {
    let mut world = World::new();
    let bin = world.home().join("bin");
    for program in programs {
        let file = bin.join(program);
        write(
            &file,
            "#!/bin/sh\nprintf '%s\\n' \"$@\" > args\ncat > stdin\nprintf %s \"$FRITES_PROMPT_FILE\" > where\n",
        );
        make_executable(&file);
    }
    let old = world.env("PATH");
    let path =
        std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&old))).unwrap();
    world.set_env("PATH", path);
    world
}

/// A file of a candidate's capture.
fn captured(world: &World, candidate: &str, file: &str) -> String {
    let answer = world.run(
        &world.repo,
        "git",
        ["cat-file", "-p", &format!("refs/frites/{candidate}:{file}")],
    );
    String::from_utf8(answer.expect(0).stdout).unwrap()
}

#[test]
fn builtin_agent_gets_the_prompt_and_runs_non_interactively() {
    let world = world_with(&["claude", "codex", "gemini", "aider", "opencode"]);
    let agents = ["claude", "codex", "gemini", "aider", "opencode"];
    let mut words = vec!["spawn", "-q", "-p", "fix the bug"];
    words.extend(agents.iter().flat_map(|agent| ["--agent", agent]));
    world.frites(words).expect(0);
    let file = world.repo.join(".frites/runs/1/aider-1/prompt.md");
    let aider = format!(
        "--message-file\n{}\n--yes-always\n--no-auto-commits\n--no-dirty-commits\n--no-gitignore\n--no-pretty\n\
         --no-detect-urls\n--no-check-update\n",
        file.display()
    );
    let cases = [
        (
            "claude",
            "-p\n--permission-mode\nbypassPermissions\n--output-format\njson\n",
            "fix the bug",
        ),
        ("codex", "exec\n--json\n--skip-git-repo-check\n-s\nworkspace-write\n-\n", "fix the bug"),
        (
            "gemini",
            "--output-format\nstream-json\n--approval-mode\nyolo\n--skip-trust\n-p\n\n",
            "fix the bug",
        ),
        ("aider", aider.as_str(), ""),
        ("opencode", "run\n--format\njson\n--auto\n", "fix the bug"),
    ];
    for (agent, arguments, stdin) in cases {
        let candidate = format!("1/{agent}-1");
        assert_eq!(captured(&world, &candidate, "args"), arguments, "{agent}");
        assert_eq!(captured(&world, &candidate, "stdin"), stdin, "{agent}");
        assert!(
            captured(&world, &candidate, "where").ends_with(&format!("/{agent}-1/prompt.md")),
            "{agent}"
        );
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "fix the bug");
    world.assert_clean();
}

#[test]
fn several_agents_number_their_candidates_by_agent() {
    let world = world_with(&["claude", "codex"]);
    let out = world
        .frites(["spawn", "--agent", "claude=2", "--agent", "codex", "-p", "x"])
        .expect(0)
        .out();
    let names: Vec<&str> = out.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(names, ["1/claude-1", "1/claude-2", "1/codex-1"]);
    let json = world
        .frites(["spawn", "--json", "--agent", "codex", "--agent", "codex=2", "-p", "x"])
        .expect(0)
        .json();
    let agents: Vec<_> = json["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["agent"].as_str().unwrap())
        .collect();
    assert_eq!(agents, ["codex"; 3]);
    assert_eq!(json["candidates"][2]["candidate"], "codex-3");
}

#[test]
fn agents_are_started_all_at_once() {
    let world = World::new();
    let met = tempfile::tempdir().unwrap();
    let agents = std::thread::available_parallelism().unwrap().get() + 3;
    // Each one waits for all others, and fails if one does not come.
    let waiting = format!(
        "touch {0}/$FRITES_CANDIDATE; until test $(ls {0} | wc -l) = {agents}; do sleep 0.01; done; echo met > x",
        met.path().display()
    );
    world.write(
        ".frites.toml",
        format!("[agents.mine]\ncommand = [\"sh\", \"-c\", \"{waiting}\"]\n"),
    );
    world.commit("an agent");
    let some = format!("mine={agents}");
    let words = ["spawn", "--json", "--agent", &some, "-p", "meet", "--timeout", "60s"];
    let json = world.frites(words).expect(0).json();
    for candidate in json["candidates"].as_array().unwrap() {
        assert_eq!(candidate["state"], "succeeded", "{json}");
    }
}

#[test]
fn configured_agent_is_added_or_replaces_a_builtin_one() {
    let world = world_with(&["claude", "my agent"]);
    world.write(
        ".frites.toml",
        "[agents.mine]\ncommand = [\"my agent\", \"--say\", \"{prompt}\", \"in {worktree}\"]\nframing = [\"Be brief.\", \"Be thorough.\\n\"]\n\
         [agents.claude]\nframing = [\"Take care.\"]\n",
    );
    world.commit("settings");
    world.git(["config", "frites.agent.claude.command", "claude 'two words' --flag"]);
    world
        .frites(["spawn", "-q", "--agent", "mine=3", "--agent", "claude", "-p", "do it"])
        .expect(0);
    for (candidate, prompt) in [
        ("mine-1", "Be brief.\n\ndo it"),
        ("mine-2", "Be thorough.\n\ndo it"),
        ("mine-3", "Be brief.\n\ndo it"),
    ] {
        let place = world.worktree(&format!("1/{candidate}"));
        let expected = format!("--say\n{prompt}\nin {}\n", place.display());
        assert_eq!(captured(&world, &format!("1/{candidate}"), "args"), expected);
        assert_eq!(
            captured(&world, &format!("1/{candidate}"), "stdin"),
            "",
            "the prompt came as an argument"
        );
    }
    assert_eq!(captured(&world, "1/claude-1", "args"), "two words\n--flag\n");
    assert_eq!(captured(&world, "1/claude-1", "stdin"), "Take care.\n\ndo it");
}

#[test]
fn prompt_of_3_megabytes_arrives_whole_by_stdin_and_by_file() {
    let world = world_with(&["claude", "by-file"]);
    let prompt: Vec<u8> = (0..3_000_000u32).map(|n| b"a\xff\n\0 z"[(n % 6) as usize]).collect();
    let file = world.home().join("prompt");
    fs::write(&file, &prompt).unwrap();
    let file = file.to_str().unwrap();
    let digest = "sha256sum | cut -c-64 > digest";
    let by_stdin = ["spawn", "-q", "-n", "1", "--prompt-file", file, "--", "sh", "-c", digest];
    world.frites(by_stdin).expect(0);
    let by_file = [
        "spawn",
        "-q",
        "-n",
        "1",
        "--prompt-file",
        file,
        "--",
        "sh",
        "-c",
        "cat \"$1\" | sha256sum | cut -c-64 > digest",
        "sh",
        "{prompt_file}",
    ];
    world.frites(by_file).expect(0);
    let piped = format!("git frites spawn -q --agent claude -p - < '{file}'");
    world.sh(&world.repo, &piped).expect(0);
    let expected =
        world.sh(&world.repo, &format!("sha256sum < '{file}' | cut -c-64")).expect(0).out();
    assert_eq!(captured(&world, "1/c1", "digest"), expected);
    assert_eq!(captured(&world, "2/c1", "digest"), expected);
    let stdin = world
        .run(&world.repo, "git", ["cat-file", "-p", "refs/frites/3/claude-1:stdin"])
        .expect(0)
        .stdout;
    assert!(stdin == prompt, "the agent read {} bytes", stdin.len());
    // The record keeps it, for a run that goes on later.
    let kept = world
        .run(&world.repo, "git", ["cat-file", "-p", "refs/frites/1/@record:prompt.md"])
        .expect(0)
        .stdout;
    assert!(kept == prompt);
}

#[test]
fn prompt_that_cannot_be_an_argument_is_refused() {
    let world = World::new();
    let file = world.home().join("prompt");
    fs::write(&file, "a\0b").unwrap();
    let file = file.to_str().unwrap();
    let before = world.belongings();
    let argument = ["spawn", "-n", "1", "--prompt-file", file, "--", "echo", "{prompt}"];
    world.frites(argument).refuses(128, "the prompt cannot be an argument: it holds a NUL byte");
    fs::write(file, "x".repeat(131_072)).unwrap();
    world.frites(argument).refuses(
        128,
        "the prompt cannot be an argument: it would have 131072 bytes, and 131071 is the limit",
    );
    assert_eq!(world.belongings(), before);
    assert!(!world.repo.join(".frites/runs").exists());
    fs::write(file, "x".repeat(131_071)).unwrap();
    world
        .frites([
            "spawn",
            "-n",
            "1",
            "--prompt-file",
            file,
            "--",
            "sh",
            "-c",
            "printf %s \"$1\" > prompt",
            "sh",
            "{prompt}",
        ])
        .expect(0);
    assert_eq!(captured(&world, "1/c1", "prompt").len(), 131_071);
}

#[test]
fn impossible_agent_options_are_refused_before_anything_is_made() {
    let world = world_with(&["claude"]);
    let cases: [(&[&str], i32, &str); 14] = [
        (
            &["--agent", "nosuch", "-p", "x"],
            2,
            "there is no agent 'nosuch'; the agents are aider, claude, codex, gemini, opencode",
        ),
        (&["--agent", "clade", "-p", "x"], 2, "there is no agent 'clade'"),
        (&["--agent", "claude"], 2, "the agent 'claude' needs a prompt"),
        (&["--agent", "aider"], 2, "the agent 'aider' needs a prompt"),
        (
            &["--agent", "codex", "-p", "x"],
            128,
            "the agent 'codex' cannot start: 'codex' is not on PATH",
        ),
        (&["--agent", "claude=0", "-p", "x"], 2, "'0' is not a number of candidates"),
        (&["--agent", "claude=x", "-p", "x"], 2, "'x' is not a number of candidates"),
        (
            &["--agent", "claude=65", "-p", "x"],
            128,
            "65 candidates are more than limits.candidates = 64",
        ),
        (&["--agent", "cl/aude", "-p", "x"], 2, "--agent: 'cl/aude' is not a valid name"),
        (&["--agent", "claude", "-p", "x", "--", "true"], 2, "cannot be used with"),
        (&["--agent", "claude", "-p", "  \n"], 2, "the prompt is empty"),
        (&["--agent", "claude", "-p", "x", "--prompt-file", "README"], 2, "cannot be used with"),
        (
            &["--agent", "claude", "--prompt-file", "nowhere"],
            128,
            "could not read the prompt from 'nowhere'",
        ),
        (
            &["-n", "1", "--", "echo", "{prompt_file}"],
            2,
            "the command has {prompt_file} in it, and there is no prompt",
        ),
    ];
    for (arguments, code, words) in cases {
        let all: Vec<&str> = std::iter::once("spawn").chain(arguments.iter().copied()).collect();
        world.frites(&all).refuses(code, words);
        assert!(!world.repo.join(".frites/runs").exists(), "{arguments:?} has left something");
    }
    let hint = world.frites(["spawn", "--agent", "clade", "-p", "x"]).expect(2).stderr;
    assert!(hint.contains("did you mean 'claude'?"), "{hint}");
    world.write(".frites.toml", "[agents.claude]\ncommand = \"claude 'unclosed\"\n");
    world
        .frites(["diff"])
        .refuses(128, "'agents.claude.command' takes a program and its arguments");
}

#[test]
fn prompt_reaches_a_command_with_its_braces_unchanged() {
    let world = World::new();
    let script = "cat > stdin; printf '%s' \"$1\" > one";
    world
        .frites([
            "spawn",
            "-q",
            "-n",
            "1",
            "-p",
            "say {run} and {prompt}",
            "--",
            "sh",
            "-c",
            script,
            "sh",
            "{run}",
        ])
        .expect(0);
    assert_eq!(captured(&world, "1/c1", "stdin"), "say {run} and {prompt}");
    assert_eq!(captured(&world, "1/c1", "one"), "1");
    world
        .frites([
            "spawn",
            "-q",
            "-n",
            "1",
            "-p",
            "say {run}",
            "--",
            "sh",
            "-c",
            script,
            "sh",
            "<{prompt}>",
        ])
        .expect(0);
    assert_eq!(captured(&world, "2/c1", "stdin"), "", "it came as an argument");
    assert_eq!(captured(&world, "2/c1", "one"), "<say {run}>");
}

/// Stand-ins that write to `~/started` which of them was started, and then do as told.
fn world_of_started(programs: &[(&str, &str)]) -> World {
    let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    let world = world_with(&names);
    for (name, script) in programs {
        set_agent(&world, name, script);
    }
    world
}

fn set_agent(world: &World, name: &str, script: &str) {
    let file = world.home().join("bin").join(name);
    write(&file, format!("#!/bin/sh\necho {name} >>\"$HOME/started\"\n{script}\n"));
    make_executable(&file);
}

fn started(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.home().join("started")).unwrap_or_default();
    let _ = fs::remove_file(world.home().join("started"));
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

fn states(world: &World) -> Vec<(String, Option<String>)> {
    let status = world.frites(["status", "--json", "1"]).expect(0).json();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let candidates = status["runs"][0]["candidates"].as_array().unwrap().clone();
    candidates.iter().map(|c| (text(&c["state"]).unwrap(), text(&c["resets"]))).collect()
}

const WORKS: &str = "echo \"$FRITES_CANDIDATE\" >>README";

#[test]
fn an_agent_at_its_limit_is_not_started_again_and_resume_starts_just_its_candidates() {
    let limited =
        "echo half >>README; echo \"You've hit your limit · resets 1:30am (Asia/Dhaka)\"; exit 1";
    let world = world_of_started(&[("claude", limited), ("codex", WORKS)]);
    let run = [
        "run", "-j", "1", "--agent", "claude=3", "--agent", "codex=2", "-p", "x", "--test", "true",
    ];
    let words: Vec<&str> = run.into_iter().chain(["--synthesis", "off"]).collect();
    let answer = world.frites(&words).expect(0);
    assert_eq!(started(&world), ["claude", "codex", "codex"], "the others go on");
    let at_limit = ("limited".to_owned(), Some("1:30am (Asia/Dhaka)".to_owned()));
    let works = ("succeeded".to_owned(), None);
    assert_eq!(states(&world), [&at_limit, &at_limit, &at_limit, &works, &works].map(Clone::clone));
    for words in [
        "agent claude: `claude -p --permission-mode bypassPermissions --output-format json`",
        "1/claude-1: limited (resets 1:30am (Asia/Dhaka)) in ",
        "1/claude-2: not started: the agent 'claude' is at its limit",
        "when the limit of the agent is over, `git frites run --resume 1` starts 3 candidates again",
    ] {
        assert!(answer.stderr.contains(words), "{words}: {}", answer.stderr);
    }
    assert_eq!(answer.stderr.matches("agent claude: `").count(), 1, "{}", answer.stderr);
    assert_eq!(
        captured(&world, "1/claude-1", "README").lines().last(),
        Some("half"),
        "nothing is lost"
    );
    assert!(
        world.frites(["output", "1/claude-1"]).expect(0).out().contains("You've hit your limit")
    );
    let waiting = world.frites(["output", "1/claude-2"]);
    let waiting = waiting.refuses(128, "1/claude-2 has no output: its command was not started");
    assert!(waiting.stderr.contains("git frites run --resume 1"), "{}", waiting.stderr);
    set_agent(&world, "claude", WORKS);
    let resumed = world.frites(["run", "--resume", "1", "-j", "1"]).expect(0).stderr;
    assert!(resumed.contains("attempts: 3 of `claude`; 1 at once"), "{resumed}");
    assert!(!resumed.contains("agent codex"), "{resumed}");
    assert_eq!(started(&world), ["claude", "claude", "claude"], "just those");
    assert_eq!(states(&world), vec![works; 5]);
    assert_eq!(captured(&world, "1/claude-1", "README").lines().last(), Some("claude-1"));
    world.assert_clean();
}

#[test]
fn a_limit_is_told_by_the_end_of_the_output_of_an_attempt_that_made_nothing() {
    // It exits 0, and has changed nothing.
    let world = world_of_started(&[("mine", "echo 'Out of  credit: try again in 2 hours.'")]);
    world.git(["config", "frites.agents.mine.command", "mine"]);
    world.git(["config", "frites.agents.mine.limit", "out of*credit"]);
    let spawn = |world: &World| world.frites(["spawn", "-j", "1", "--agent", "mine=2", "-p", "x"]);
    spawn(&world).expect(4);
    assert_eq!(states(&world), vec![("limited".to_owned(), Some("in 2 hours".to_owned())); 2]);
    assert_eq!(started(&world), ["mine"]);
    // What it says while it works well is no limit, and neither is what another agent would say.
    let world = world_of_started(&[("mine", &format!("{WORKS}; echo 'out of credit'"))]);
    world.git(["config", "frites.agents.mine.command", "mine"]);
    world.git(["config", "frites.agents.mine.limit", "out of credit"]);
    spawn(&world).expect(0);
    assert_eq!(states(&world), vec![("succeeded".to_owned(), None); 2]);
    let world = world_of_started(&[("mine", "echo 'usage limit reached'; exit 1")]);
    world.git(["config", "frites.agents.mine.command", "mine"]);
    spawn(&world).expect(4);
    assert_eq!(states(&world), vec![("failed".to_owned(), None); 2]);
}

fn faults(world: &World) -> Vec<Option<String>> {
    let status = world.frites(["status", "--json", "1"]).expect(0).json();
    let candidates = status["runs"][0]["candidates"].as_array().unwrap().clone();
    candidates.iter().map(|c| c["fault"].as_str().map(str::to_owned)).collect()
}

#[test]
fn an_agent_whose_environment_is_at_fault_is_named_at_once_and_not_started_again() {
    let no_login = r#"echo '{"type":"result","is_error":true,"result":"Not logged in · Please run /login"}'; exit 1"#;
    let no_root = "echo '--dangerously-skip-permissions cannot be used with root/sudo privileges' >&2; exit 1";
    let no_auth = "echo 'Please set an Auth method in your settings.json'; exit 41";
    let no_trust = "echo 'Not inside a trusted directory and --skip-git-repo-check was not specified.'; exit 1";
    for (agent, script, fault, words, remedy) in [
        (
            "claude",
            no_login,
            "not-logged-in",
            "is not logged in",
            "start `claude` and type `/login`",
        ),
        ("claude", no_root, "refuses-root", "refuses to run as root", "be an ordinary user"),
        ("gemini", no_auth, "not-logged-in", "is not logged in", "start `gemini`"),
        (
            "codex",
            no_trust,
            "distrusts",
            "does not trust its directory",
            "give its command `--skip-git",
        ),
    ] {
        let world = world_of_started(&[(agent, script)]);
        let twice = format!("{agent}=2");
        let spawn = ["spawn", "-j", "1", "--agent", &twice, "-p", "x"];
        let said = world.frites(spawn).expect(4).stderr;
        assert_eq!(started(&world), [agent]);
        assert_eq!(states(&world), vec![("limited".to_owned(), None); 2]);
        assert_eq!(faults(&world), vec![Some(fault.to_owned()); 2]);
        for told in [
            format!("1/{agent}-1: limited (the agent {words}) in "),
            format!("1/{agent}-2: not started: the agent '{agent}' {words}"),
            format!("the agent '{agent}' {words}: {remedy}"),
            "then `git frites run --resume 1` starts 2 candidates again".to_owned(),
        ] {
            assert!(said.contains(&told), "{told}: {said}");
        }
        let judged = world.frites(["judge", "1", "--test", "true"]).expect(4).stdout;
        let judged = String::from_utf8(judged).unwrap();
        assert!(judged.contains(&format!("the agent of {agent}-1 {words}")), "{judged}");
        set_agent(&world, agent, WORKS);
        let resume = ["run", "--resume", "1", "--test", "true", "--synthesis", "off"];
        world.frites(resume).expect(0);
        assert_eq!(faults(&world), [None, None]);
        world.assert_clean();
    }
}

const WAITS: &str = r#"echo '{"type":"error","message":"Reconnecting... waiting for network (Connection failed)"}'"#;

#[test]
fn an_agent_that_says_for_ever_that_it_waits_for_the_network_is_ended() {
    let waits = format!("echo half >>README; while {WAITS}; do sleep 0.05; done");
    let world = world_of_started(&[("codex", &waits)]);
    let spawn = ["spawn", "-j", "1", "--agent", "codex=2", "--idle-timeout", "1s", "-p", "x"];
    let said = world.frites(spawn).expect(4).stderr;
    assert_eq!(started(&world), ["codex"]);
    assert_eq!(faults(&world), vec![Some("no-network".to_owned()); 2]);
    assert!(said.contains("1/codex-1 waits for the network; after 1"), "{said}");
    assert!(said.contains("1/codex-2: not started: the agent 'codex' has no network"), "{said}");
    assert_eq!(captured(&world, "1/codex-1", "README").lines().last(), Some("half"));
    // One that works between such lines goes on, and so does one that is no built-in agent.
    let works = format!("for i in 1 2 3 4 5 6; do {WAITS}; sleep 0.3; echo $i; done; {WORKS}");
    let world = world_of_started(&[("codex", &works), ("mine", &waits)]);
    world.git(["config", "frites.agents.mine.command", "mine"]);
    world.frites(["spawn", "--agent", "codex", "--idle-timeout", "1s", "-p", "x"]).expect(0);
    assert_eq!(states(&world), [("succeeded".to_owned(), None)]);
    world.frites(["spawn", "--agent", "mine", "--timeout", "2s", "-p", "x"]).expect(4);
    let status = world.frites(["status", "--json", "2"]).expect(0).json();
    assert_eq!(status["runs"][0]["candidates"][0]["state"], "timed-out");
}

#[test]
fn config_shows_what_a_builtin_agent_is_given() {
    let world = World::new();
    let shown = |key: &str| world.frites(["config", key]).expect(0).out();
    assert_eq!(
        shown("agents.claude.command"),
        "claude\n-p\n--permission-mode\nbypassPermissions\n--output-format\njson\n"
    );
    assert_eq!(shown("agents.gemini.usage"), "gemini\n");
    assert!(shown("agents.codex.limit").contains("you've hit your usage limit\n"));
    let json = world.frites(["config", "--json", "agents.opencode.command"]).expect(0).json();
    assert_eq!(
        json["keys"][0]["value"],
        serde_json::json!(["opencode", "run", "--format", "json", "--auto"])
    );
    assert_eq!(json["keys"][0]["default"], true);
    world.git(["config", "frites.agents.claude.command", "claude --model small"]);
    assert_eq!(shown("agents.claude.command"), "claude --model small\n");
    world.frites(["config", "agents.nobody.command"]).refuses(2, "there is no key");
}

#[test]
fn resumed_attempts_have_the_time_limit_that_the_run_was_spawned_with() {
    let limited = "echo \"You've hit your limit · resets 1:30am (Asia/Dhaka)\"; exit 1";
    let world = world_of_started(&[("claude", limited)]);
    world.frites(["spawn", "--agent", "claude", "--timeout", "7m", "-p", "x"]).expect(4);
    let resumed = world.frites(["run", "--resume", "1", "--test", "true"]).stderr;
    assert!(resumed.contains("each for at most 7m00s"), "{resumed}");
}
