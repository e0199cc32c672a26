//! The directories in which agents keep their state: one for each attempt. Stand-ins on PATH write
//! there as the agents of these names do.
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{World, answer, files_below, make_executable, poll, write};

/// The login of Claude Code, with a token.
fn login(token: &str) -> String {
    format!(
        r#"{{"claudeAiOauth":{{"accessToken":"{token}","refreshToken":"r","expiresAt":1,"scopes":["a"]}}}}"#
    )
}

/// A world with a stand-in for each of these agents, which changes a file and then does as told.
fn world_with(agents: &[(&str, &str)]) -> World {
    let mut world = World::new();
    let bin = world.home().join("bin");
    let path = std::env::join_paths(
        std::iter::once(bin.clone()).chain(std::env::split_paths(&world.env("PATH"))),
    );
    world.set_env("PATH", path.unwrap());
    for (agent, script) in agents {
        set_agent(&world, agent, script);
    }
    world
}

fn set_agent(world: &World, agent: &str, script: &str) {
    let file = world.home().join("bin").join(agent);
    write(&file, format!("#!/bin/sh\ncat > /dev/null\necho work >> README\n{script}\n"));
    make_executable(&file);
}

/// Runs one attempt of an agent.
fn attempt(world: &World, agent: &str) -> String {
    world.frites(["spawn", "--agent", agent, "-p", "x"]).expect(0).stderr
}

/// The state directory of the first candidate of an agent in run 1.
fn state(world: &World, agent: &str, variable: &str) -> PathBuf {
    world.repo.join(format!(".frites/runs/1/{agent}-1/agent/{variable}"))
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

fn in_home(world: &World, path: &str, text: &str) -> PathBuf {
    let file = world.home().join(path);
    write(&file, text);
    file
}

#[test]
fn each_attempt_of_an_agent_has_a_state_directory_that_stays_with_the_run() {
    let keep = r#"cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/p; echo kept > projects/p/talk.jsonl; cat projects/p/talk.jsonl > "$OLDPWD/seen""#;
    let codex = r#"echo kept > "$CODEX_HOME/state.sqlite""#;
    let gemini = r#"mkdir "$GEMINI_CLI_HOME/.gemini"; echo kept > "$GEMINI_CLI_HOME/.gemini/x""#;
    let opencode = r#"for of in "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME"
        do mkdir "$of/opencode"; echo kept > "$of/opencode/x"; done"#;
    let world = world_with(&[
        ("claude", keep),
        ("codex", codex),
        ("gemini", gemini),
        ("opencode", opencode),
        ("aider", r#"test -z "$CLAUDE_CONFIG_DIR$CODEX_HOME$GEMINI_CLI_HOME""#),
    ]);
    let home = files_below(&world.home());
    let agents = ["claude=2", "codex", "gemini", "opencode", "aider"];
    let words = agents.iter().flat_map(|agent| ["--agent", agent]);
    world.frites(["spawn", "-p", "x"].into_iter().chain(words)).expect(0);
    for (agent, files) in [
        ("claude", &["CLAUDE_CONFIG_DIR/projects/p/talk.jsonl"][..]),
        ("codex", &["CODEX_HOME/state.sqlite"]),
        ("gemini", &["GEMINI_CLI_HOME/.gemini/x"]),
        ("opencode", &["XDG_CONFIG_HOME/opencode/x", "XDG_DATA_HOME/opencode/x"]),
        ("opencode", &["XDG_STATE_HOME/opencode/x", "XDG_CACHE_HOME/opencode/x"]),
    ] {
        for file in files {
            assert_eq!(read(state(&world, agent, file)), "kept\n");
        }
        let directory = state(&world, agent, files[0].split('/').next().unwrap());
        assert_eq!(directory.metadata().unwrap().mode() & 0o777, 0o700);
    }
    assert!(!world.repo.join(".frites/runs/1/aider-1/agent").exists());
    let changed: Vec<PathBuf> = files_below(&world.home());
    let in_repo = |path: &&PathBuf| path.starts_with(&world.repo);
    assert_eq!(
        changed.iter().filter(|path| !in_repo(path)).collect::<Vec<_>>(),
        home.iter().filter(|path| !in_repo(path)).collect::<Vec<_>>(),
        "nothing is written to HOME"
    );
    let names = world.git(["ls-tree", "-r", "--name-only", "refs/frites/1/claude-1"]);
    assert!(names.contains("seen") && !names.contains("talk"), "{names}");
    // A later round goes on with it, and so does a person.
    set_agent(&world, "claude", r#"echo again >> "$CLAUDE_CONFIG_DIR/projects/p/talk.jsonl""#);
    let again = ["retry", "1/claude-1", "--agent", "claude", "-p", "more"];
    world.frites(again).expect(0);
    let show =
        ["exec", "1/claude-1", "--", "sh", "-c", "cat $CLAUDE_CONFIG_DIR/projects/p/talk.jsonl"];
    assert_eq!(world.frites(show).expect(0).out(), "kept\nagain\n");
    assert_eq!(
        read(state(&world, "claude", "CLAUDE_CONFIG_DIR/projects/p/talk.jsonl")),
        "kept\nagain\n"
    );
    // It goes with the records.
    world.frites(["clean", "1"]).expect(0);
    assert!(state(&world, "claude", "CLAUDE_CONFIG_DIR/projects/p/talk.jsonl").exists());
    world.frites(["clean", "1", "--forget"]).expect(0);
    assert!(!world.repo.join(".frites/runs/1").exists());
    world.assert_clean();
}

#[test]
fn login_goes_even_if_the_command_cannot_be_started() {
    let wait = "i=0; until test -e go || test $i = 1000; do i=$((i+1)); sleep 0.01; done";
    let mut world = world_with(&[("claude", wait)]);
    world.set_env("FRITES_SPAWN_GUARD", "required");
    in_home(&world, ".claude/.credentials.json", "the login\n");
    let words = ["spawn", "-j", "1", "--agent", "claude=2", "-p", "x"];
    let mut command = world.command(&world.repo, "git-frites", words);
    let spawn = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let [first, second] =
        ["claude-1", "claude-2"].map(|name| world.repo.join(".frites/worktrees/1").join(name));
    let has_begun =
        || fs::read_to_string(first.join("README")).is_ok_and(|text| text.contains("work"));
    poll(has_begun);
    let link = read(second.join(".git"));
    let entry = Path::new(link.trim().strip_prefix("gitdir: ").unwrap());
    let aside = world.home().join("entry");
    fs::rename(entry, &aside).unwrap();
    write(&first.join("go"), "");
    let said = answer(&spawn.wait_with_output().unwrap()).stderr;
    fs::rename(&aside, entry).unwrap();
    assert!(said.contains("git does not know"), "{said}");
    let directory = world.repo.join(".frites/runs/1/claude-2/agent/CLAUDE_CONFIG_DIR");
    assert!(directory.exists() && !directory.join(".credentials.json").exists());
    world.assert_clean();
}

#[test]
fn state_begins_with_copies_of_the_users_login_and_settings() {
    let look = r#"cd "$CLAUDE_CONFIG_DIR"; cat .credentials.json .claude.json settings.json skills/a/SKILL.md >> "$OLDPWD/README"
        stat -c %a .credentials.json hooks/hook >> "$OLDPWD/README"; test ! -e projects"#;
    let mut world = world_with(&[("claude", look)]);
    let home = world.home();
    in_home(&world, ".claude/.credentials.json", "the login\n");
    in_home(&world, ".claude/projects/p/1.jsonl", "a conversation\n");
    in_home(&world, ".claude.json", "the account\n");
    let dotfiles = in_home(&world, "dotfiles/settings.json", "settings\n");
    symlink(&dotfiles, home.join(".claude/settings.json")).unwrap();
    in_home(&world, "dotfiles/skill/SKILL.md", "a skill\n");
    fs::create_dir_all(home.join(".claude/skills")).unwrap();
    symlink(home.join("dotfiles/skill"), home.join(".claude/skills/a")).unwrap();
    symlink("nowhere", home.join(".claude/skills/broken")).unwrap();
    make_executable(&in_home(&world, ".claude/hooks/hook", "#!/bin/sh\n"));
    let said = attempt(&world, "claude");
    let made = world.git(["cat-file", "-p", "refs/frites/1/claude-1:README"]);
    let seen = "the login\nthe account\nsettings\na skill\n600\n700";
    assert!(made.ends_with(seen), "{made}");
    assert!(!said.contains("warning"), "{said}");
    // The login is there for the command alone.
    let login = state(&world, "claude", "CLAUDE_CONFIG_DIR/.credentials.json");
    assert!(!login.exists());
    let show = ["exec", "1/claude-1", "--", "sh", "-c", "cat $CLAUDE_CONFIG_DIR/.credentials.json"];
    assert_eq!(world.frites(show).expect(0).out(), "the login\n");
    world.frites(["clean", "1"]).expect(0);
    assert!(!login.exists());
    // Where the user has the variable, its directory is the user's.
    let other = home.join("other");
    fs::create_dir(&other).unwrap();
    for (file, text) in [
        (".credentials.json", "login 2\n"),
        (".claude.json", "account 2\n"),
        ("settings.json", "2\n"),
    ] {
        write(&other.join(file), text);
    }
    world.set_env("CLAUDE_CONFIG_DIR", &other);
    set_agent(
        &world,
        "claude",
        r#"cat "$CLAUDE_CONFIG_DIR"/.c*.json "$CLAUDE_CONFIG_DIR/settings.json" > README"#,
    );
    attempt(&world, "claude");
    let made = world.git(["cat-file", "-p", "refs/frites/2/claude-1:README"]);
    assert_eq!(made, "account 2\nlogin 2\n2");
}

#[test]
fn person_beside_an_agent_sees_the_end_of_its_conversation_later() {
    let wait = r#"cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/p; echo one > projects/p/s.jsonl
        until test -e "$HOME/go"; do sleep 0.01; done; echo two >> projects/p/s.jsonl"#;
    let world = world_with(&[("claude", wait)]);
    let words = ["spawn", "--agent", "claude", "-p", "x"];
    let mut spawn = world.command(&world.repo, "git-frites", words);
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let talk = state(&world, "claude", "CLAUDE_CONFIG_DIR/projects/p/s.jsonl");
    poll(|| fs::read_to_string(&talk).is_ok_and(|text| text == "one\n"));
    let show = ["exec", "1/claude-1", "--", "sh", "-c", "cat $CLAUDE_CONFIG_DIR/projects/p/*"];
    assert_eq!(world.frites(show).expect(0).out(), "one\n");
    in_home(&world, "go", "");
    assert!(spawn.wait().unwrap().success());
    assert_eq!(world.frites(show).expect(0).out(), "one\ntwo\n");
}

#[test]
fn person_beside_an_agent_leaves_it_its_login() {
    let wait = r#"until test -e "$HOME/go"; do sleep 0.01; done; cd "$CLAUDE_CONFIG_DIR"
        cat .credentials.json >> "$OLDPWD/README"; echo new > .credentials.json"#;
    let world = world_with(&[("claude", wait)]);
    in_home(&world, ".claude/.credentials.json", "the login\n");
    let words = ["spawn", "--agent", "claude", "-p", "x"];
    let mut spawn = world.command(&world.repo, "git-frites", words);
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let login = state(&world, "claude", "CLAUDE_CONFIG_DIR/.credentials.json");
    poll(|| login.exists());
    let show = ["exec", "1/claude-1", "--", "sh", "-c", "cat $CLAUDE_CONFIG_DIR/.credentials.json"];
    assert_eq!(world.frites(show).expect(0).out(), "the login\n");
    in_home(&world, "go", "");
    assert!(spawn.wait().unwrap().success());
    let made = world.git(["show", "refs/frites/1/claude-1:README"]);
    assert!(made.ends_with("the login"), "{made}");
    assert!(!login.exists());
    let of_person = state(&world, "claude", "person/CLAUDE_CONFIG_DIR/.credentials.json");
    assert!(of_person.exists());
    world.frites(["clean", "1"]).expect(0);
    assert!(!of_person.exists());
}

#[test]
fn a_login_that_was_refreshed_goes_back_and_nothing_that_an_agent_obeys_does() {
    let world = world_with(&[]);
    let refresh = format!(
        r#"cd "$CLAUDE_CONFIG_DIR"; echo '{}' > new; mv new .credentials.json
        echo evil > settings.json; echo evil > CLAUDE.md; echo evil > hooks/hook; echo evil > .claude.json"#,
        login("new").replace("[\"a\"]", "[\"evil\"],\"server\":\"evil\"")
    );
    set_agent(&world, "claude", &refresh);
    let real = in_home(&world, "dotfiles/login", &login("old"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let file = world.home().join(".claude/.credentials.json");
    let settings = in_home(&world, ".claude/settings.json", "mine");
    let hook = in_home(&world, ".claude/hooks/hook", "mine");
    let account = in_home(&world, ".claude.json", "mine");
    symlink(&real, &file).unwrap();
    let said = attempt(&world, "claude");
    assert!(said.contains("1/claude-1: its agent has refreshed the login in"), "{said}");
    let got: serde_json::Value = serde_json::from_str(&read(&real)).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&login("new")).unwrap();
    assert_eq!(got, expected);
    assert!(file.is_symlink());
    assert_eq!(real.metadata().unwrap().mode() & 0o777, 0o640);
    // Judging hides it from now on, whatever variables say then.
    let refreshed = read(world.repo.join(".frites/refreshed-logins"));
    assert_eq!(refreshed, format!("{}\n", file.display()));
    for file in [settings, hook, account] {
        assert_eq!(read(&file), "mine", "{}", file.display());
    }
    assert!(!world.home().join(".claude/CLAUDE.md").exists());
    assert!(!state(&world, "claude", "CLAUDE_CONFIG_DIR/.credentials.json").exists());
}

#[test]
fn a_login_stays_as_it_is_if_the_user_has_another_one_meanwhile_or_the_new_one_is_none() {
    let new = login("new");
    let write_new = format!(r#"echo '{new}' > "$CLAUDE_CONFIG_DIR/.credentials.json""#);
    let users = format!(r#"echo '{}' > "$LOGIN"; {write_new}"#, login("by hand"));
    let cases: [(&str, &str, &str); 7] = [
        ("removed by the user", &format!(r#"rm "$LOGIN"; {write_new}"#), ""),
        ("changed by the user", &users, "by hand"),
        ("removed", r#"rm "$CLAUDE_CONFIG_DIR/.credentials.json""#, "old"),
        ("no JSON", r#"echo text > "$CLAUDE_CONFIG_DIR/.credentials.json""#, "old"),
        (
            "a link",
            &format!(
                r#"cd "$CLAUDE_CONFIG_DIR"; echo '{new}' > other; ln -sf other .credentials.json"#
            ),
            "old",
        ),
        (
            "a FIFO",
            r#"cd "$CLAUDE_CONFIG_DIR"; rm .credentials.json; mkfifo .credentials.json"#,
            "old",
        ),
        (
            "too large",
            r#"dd if=/dev/zero bs=1M count=2 2>&1 | tr '\0' ' ' >> "$CLAUDE_CONFIG_DIR/.credentials.json""#,
            "old",
        ),
    ];
    for (case, script, expected) in cases {
        let mut world = world_with(&[("claude", script)]);
        // `changed by the user` is done by the attempt itself, which must be able to.
        world.set_env("FRITES_SPAWN_GUARD", "off");
        let file = in_home(&world, ".claude/.credentials.json", &format!("{}\n", login("old")));
        world.set_env("LOGIN", &file);
        attempt(&world, "claude");
        let left = fs::read_to_string(&file).unwrap_or_default();
        let expected = if expected.is_empty() { "" } else { &format!("{}\n", login(expected)) };
        assert_eq!(left, expected, "{case}");
    }
}

/// The service may have made the user's own tokens invalid.
#[test]
fn a_refreshed_login_that_cannot_go_back_yet_stays_until_it_can() {
    let script = r#"cd "$CLAUDE_CONFIG_DIR"; cat .credentials.json >> "$OLDPWD/README"
        sed s/old/new/ .credentials.json > new; mv new .credentials.json"#;
    let world = world_with(&[("claude", script)]);
    let file = in_home(&world, ".claude/.credentials.json", &login("old"));
    let lock = fs::File::open(world.home().join(".claude")).unwrap();
    lock.lock().unwrap();
    let spawn = ["spawn", "--agent", "claude", "-p", "x"];
    let said = world.frites(spawn).expect(0).stderr;
    assert!(said.contains("could not write to your login"), "{said}");
    let copy = state(&world, "claude", "CLAUDE_CONFIG_DIR/.credentials.json");
    assert!(read(&file).contains("old") && read(&copy).contains("new"));
    // The agent's next command goes on with its own tokens.
    world.frites(["retry", "1/claude-1", "--agent", "claude", "-p", "more"]).expect(0);
    assert!(world.git(["show", "refs/frites/1/claude-1:README"]).contains("new"));
    drop(lock);
    world.frites(["clean", "1"]).expect(0);
    assert!(read(&file).contains("new") && !copy.exists());
}

#[test]
fn a_refreshed_login_goes_back_after_a_kill_too() {
    let script = r#"cd "$CLAUDE_CONFIG_DIR"; sed s/old/new/ .credentials.json > new; mv new .credentials.json
        kill -9 $(cat "$HOME/pid"); sleep 60"#;
    let mut world = world_with(&[("claude", script)]);
    world.set_env("FRITES_SPAWN_GUARD", "off");
    let file = in_home(&world, ".claude/.credentials.json", &login("old"));
    let spawn = r#"echo $$ > "$HOME/pid"; exec git-frites spawn --agent claude -p x"#;
    assert_ne!(world.sh(&world.repo, spawn).code, 0);
    assert_eq!(read(&file), login("old"));
    set_agent(&world, "claude", "");
    world.frites(["run", "--resume", "1", "--test", "true"]).expect(0);
    assert!(read(&file).contains("\"new\""), "{}", read(&file));
}

#[test]
fn no_link_of_an_attempt_leads_the_next_login_elsewhere() {
    let script = r#"cd "$GEMINI_CLI_HOME"; rm -rf .gemini; ln -s "$HOME/else" .gemini"#;
    let world = world_with(&[("gemini", script)]);
    in_home(&world, ".gemini/oauth_creds.json", r#"{"access_token":"old"}"#);
    let other = in_home(&world, "else/oauth_creds.json", "mine");
    attempt(&world, "gemini");
    let again = ["retry", "1/gemini-1", "--agent", "gemini", "-p", "more"];
    let said = world.frites(again).expect(4).stderr;
    let why = "failed (could not make the state directory of the agent 'gemini'";
    assert!(said.contains(why), "{said}");
    assert_eq!(read(other), "mine");
}

#[test]
fn the_directories_of_all_programs_lead_to_the_users_but_for_the_agents_own() {
    let script = r#"git config --get user.pet >> README; cat "$XDG_DATA_HOME/opencode/auth.json" >> README
        echo '{"a":{"type":"wellknown","access":"new","key":"PATH"},"https://evil":{"type":"wellknown"}}' > "$XDG_DATA_HOME/opencode/auth.json"
        echo x > "$XDG_CACHE_HOME/opencode/mine"; ls "$XDG_CONFIG_HOME/opencode" >> README"#;
    let mut world = world_with(&[("opencode", script)]);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        world.unset_env(name);
    }
    world.unset_env("GIT_CONFIG_GLOBAL");
    in_home(&world, ".config/git/config", "[user]\npet = cat\nname = n\nemail = e@x\n");
    in_home(&world, ".config/opencode/opencode.json", "{}");
    in_home(&world, ".config/opencode/node_modules/x/index.js", "");
    let file = in_home(
        &world,
        ".local/share/opencode/auth.json",
        r#"{"a":{"type":"oauth","access":"old"}}"#,
    );
    in_home(&world, ".cache/opencode/models.json", "{}");
    attempt(&world, "opencode");
    let made = world.git(["cat-file", "-p", "refs/frites/1/opencode-1:README"]);
    assert!(
        made.ends_with("cat\n{\"a\":{\"type\":\"oauth\",\"access\":\"old\"}}opencode.json"),
        "{made}"
    );
    let got: serde_json::Value = serde_json::from_str(&read(&file)).unwrap();
    assert_eq!(got, serde_json::json!({"a": {"type": "oauth", "access": "new"}}));
    assert!(!world.home().join(".cache/opencode/mine").exists());
}

#[test]
fn variables_of_other_agents_are_configured() {
    let world = world_with(&[("mine", r#"env | grep -e ^MINE -e ^CLAUDE >> README; exit 0"#)]);
    world.git(["config", "frites.agents.mine.command", "mine"]);
    in_home(&world, ".claude/settings.json", "mine");
    let readme =
        |run: &str| world.git(["cat-file", "-p", &format!("refs/frites/{run}/mine-1:README")]);
    let at = |run: &str, variable: &str| {
        let directory = format!(".frites/runs/{run}/mine-1/agent/{variable}");
        format!("{variable}={}", world.repo.join(directory).display())
    };
    attempt(&world, "mine");
    assert!(readme("1").ends_with("work"), "{}", readme("1"));
    world.git(["config", "frites.agents.mine.state", "MINE_HOME"]);
    attempt(&world, "mine");
    assert!(readme("2").ends_with(&at("2", "MINE_HOME")), "{}", readme("2"));
    world.git(["config", "--add", "frites.agents.mine.state", "MINE_DATA"]);
    attempt(&world, "mine");
    assert!(
        readme("3").contains(&at("3", "MINE_DATA")) && readme("3").contains(&at("3", "MINE_HOME"))
    );
    world.git(["config", "--unset-all", "frites.agents.mine.state"]);
    world.git(["config", "frites.agents.mine.state", "claude"]);
    attempt(&world, "mine");
    assert!(readme("4").ends_with(&at("4", "CLAUDE_CONFIG_DIR")), "{}", readme("4"));
    let settings = world.repo.join(".frites/runs/4/mine-1/agent/CLAUDE_CONFIG_DIR/settings.json");
    assert_eq!(read(settings), "mine");
    world.git(["config", "frites.agents.mine.state", "off"]);
    attempt(&world, "mine");
    assert!(readme("5").ends_with("work"));
    world.git(["config", "frites.agents.mine.state", "../x"]);
    world.frites(["diff"]).refuses(128, "'agents.mine.state' takes off");
    assert_eq!(
        World::new().frites(["config", "agents.codex.state"]).expect(0).out(),
        "CODEX_HOME\n"
    );
}

#[test]
fn a_person_goes_on_with_the_conversation_and_obeys_nothing_that_the_attempt_wrote() {
    let script = r#"cd "$CLAUDE_CONFIG_DIR"; mkdir -p projects/p plugins; echo one > projects/p/1.jsonl
        echo evil > settings.json; echo evil > settings.local.json; echo evil > plugins/p
        ln -s "$HOME/secret" projects/p/2.jsonl; echo evil > projects/p/run; echo evil > projects/p/MEMORY.md
        echo evil > projects/p/settings.json; mkdir projects/p/d.jsonl; ln -s "$HOME" projects/q
        echo evil > history.jsonl"#;
    let world = world_with(&[("claude", script)]);
    in_home(&world, ".claude/settings.json", "mine");
    in_home(&world, "secret", "secret");
    attempt(&world, "claude");
    let person = |script: &str| {
        let script = format!("cd \"$CLAUDE_CONFIG_DIR\" && {script}");
        world.frites(["exec", "1/claude-1", "--", "sh", "-c", &script]).expect(0).out()
    };
    let list = "find . -type f -o -type l | sort; cat settings.json";
    let fresh = "./projects/p/1.jsonl\n./settings.json\nmine";
    assert_eq!(person(&format!("{list}; echo two >> projects/p/1.jsonl; echo > own")), fresh);
    // Nothing is lost, and what the person did stays while no command of the attempt runs.
    assert_eq!(read(state(&world, "claude", "CLAUDE_CONFIG_DIR/settings.json")), "evil\n");
    assert_eq!(person("ls"), "own\nprojects\nsettings.json\n");
    set_agent(&world, "claude", "echo three >> \"$CLAUDE_CONFIG_DIR/projects/p/1.jsonl\"");
    world.frites(["retry", "1/claude-1", "--agent", "claude", "-p", "more"]).expect(0);
    assert_eq!(person(&format!("{list}; cat projects/p/1.jsonl")), format!("{fresh}one\nthree\n"));
    assert_eq!(read(state(&world, "claude", "person/CLAUDE_CONFIG_DIR.1/own")), "\n");
}

#[test]
fn a_person_gets_conversations_alone_however_an_agent_stores_them() {
    let codex = r#"cd "$CODEX_HOME"; mkdir -p sessions/2026/01/02 archived_sessions sessions/hooks
        echo one > sessions/2026/01/02/rollout-1.jsonl; echo two > archived_sessions/2.jsonl
        echo evil > state_5.sqlite; echo evil > sessions/hooks/x.jsonl; echo evil > sessions/2026/01/02/x.json"#;
    let gemini = r#"cd "$GEMINI_CLI_HOME"; mkdir -p .gemini/tmp/g/chats/s .gemini/tmp/g/checkpoints
        echo one > .gemini/tmp/g/chats/1.json; echo two > .gemini/tmp/g/chats/2.jsonl
        echo three > .gemini/tmp/g/chats/s/3.jsonl; echo evil > .gemini/tmp/g/checkpoints/1.json
        echo evil > .gemini/tmp/settings.json; echo evil > .gemini/projects.json
        mkdir -p .gemini/tmp/.gemini; echo evil > .gemini/tmp/.gemini/settings.json"#;
    let world = world_with(&[("codex", codex), ("gemini", gemini)]);
    let found = |run: &str, agent: &str, variable: &str| {
        let script = format!("cd \"${variable}\" && find . -type f | sort | xargs cat");
        let name = format!("{run}/{agent}-1");
        world.frites(["exec", &name, "--", "sh", "-c", &script]).expect(0)
    };
    attempt(&world, "codex");
    assert_eq!(found("1", "codex", "CODEX_HOME").out(), "two\none\n");
    attempt(&world, "gemini");
    assert_eq!(found("2", "gemini", "GEMINI_CLI_HOME").out(), "one\ntwo\nthree\n");
}

#[test]
fn conversations_that_are_stored_with_permissions_stay_with_the_attempt() {
    let script = r#"mkdir -p "$XDG_DATA_HOME/opencode"; cd "$XDG_DATA_HOME/opencode"
        mkdir -p storage/permission storage/session/p; echo evil > storage/permission/p.json
        echo evil > storage/session/p/s.json; for end in '' -wal -shm; do echo evil > opencode.db$end; done"#;
    let mut world = world_with(&[("opencode", script)]);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        world.unset_env(name);
    }
    attempt(&world, "opencode");
    let script = "ls -A \"$XDG_DATA_HOME/opencode\" 2> /dev/null; echo \"$XDG_DATA_HOME\"";
    let answer = world.frites(["exec", "1/opencode-1", "--", "sh", "-c", script]).expect(0);
    let person = state(&world, "opencode", "person/XDG_DATA_HOME");
    assert_eq!(answer.out(), format!("{}\n", person.display()));
    let place = state(&world, "opencode", "XDG_DATA_HOME/opencode");
    let note = format!("stays with the attempt, in '{}'", place.display());
    assert_eq!(answer.stderr.matches(&note).count(), 1, "{}", answer.stderr);
}

#[test]
fn a_persons_programs_read_none_of_their_settings_where_an_attempt_could_write() {
    let script = r#"rm -f "$XDG_CONFIG_HOME/git"; mkdir -p "$XDG_CONFIG_HOME/git"
        printf '[user]\n\tpet = dog\n' > "$XDG_CONFIG_HOME/git/config""#;
    let mut world = world_with(&[("opencode", script), ("mine", "exit 0")]);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        world.unset_env(name);
    }
    world.unset_env("GIT_CONFIG_GLOBAL");
    in_home(&world, ".config/git/config", "[user]\npet = cat\nname = n\nemail = e@x\n");
    attempt(&world, "opencode");
    let git = ["exec", "1/opencode-1", "--", "git", "config", "user.pet"];
    assert_eq!(world.frites(git).expect(0).out(), "cat\n");
    // Nobody told git-frites which files of this agent are conversations.
    world.git(["config", "frites.agents.mine.command", "mine"]);
    world.git(["config", "frites.agents.mine.state", "MINE_HOME"]);
    attempt(&world, "mine");
    let answer =
        world.frites(["exec", "2/mine-1", "--", "sh", "-c", "echo \"<$MINE_HOME>\""]).expect(0);
    assert_eq!(answer.out(), "<>\n");
    assert!(answer.stderr.contains("MINE_HOME is not set"), "{}", answer.stderr);
}

#[test]
fn an_attempt_cannot_write_where_the_next_state_directory_is_made() {
    let script = r#"cd "$CLAUDE_CONFIG_DIR"; echo > inside; mkdir ../.new 2>> "$OLDPWD/README"
        cd /; rm -rf "$CLAUDE_CONFIG_DIR"; test -d "$CLAUDE_CONFIG_DIR""#;
    let mut world = world_with(&[("claude", script)]);
    world.set_env("FRITES_SPAWN_GUARD", "required");
    attempt(&world, "claude");
    let made = world.git(["cat-file", "-p", "refs/frites/1/claude-1:README"]);
    assert!(made.contains("ead-only file system") || made.contains("ermission denied"), "{made}");
}
