//! The HOME of an attempt's own: a guarded command writes to layers over the user's directories,
//! which no judging, no sibling and no later run sees.
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::common::{World, kill, make_executable, poll};
use crate::tool::{NAMESPACES, ORDINARY_USER, PYTHON, trials};
use crate::traces::frites_as_ordinary_user;

trials! {
    a_program_of_an_attempt_in_home_does_not_judge_it: [NAMESPACES];
    a_file_of_an_attempt_above_the_checkout_does_not_decide: [NAMESPACES];
    the_same_as_an_ordinary_user_who_cleans_then: [NAMESPACES, ORDINARY_USER];
    what_git_frites_keeps_can_be_removed_by_hand: [NAMESPACES, ORDINARY_USER];
    nothing_arrives_in_directories_of_tools_outside_home: [NAMESPACES];
    what_an_attempt_left_stays_for_its_next_round_and_goes_with_it: [NAMESPACES];
    an_attempt_that_took_too_long_finds_its_home_in_its_next_round: [NAMESPACES];
    a_resumed_attempt_finds_its_home_after_a_kill_and_after_an_interruption: [NAMESPACES];
    a_person_has_their_own_home_in_a_worktree: [NAMESPACES];
    the_verdict_names_a_path_that_attempts_may_write: [NAMESPACES];
    the_verdict_names_a_login_that_commands_may_read: [NAMESPACES];
    a_path_that_no_judging_sees_does_not_void_the_verdict: [NAMESPACES];
    seeds_that_attempts_may_write_are_named: [NAMESPACES];
    a_seed_in_a_directory_for_temporary_files_is_named: [NAMESPACES];
    a_submodule_that_attempts_may_write_is_named: [NAMESPACES];
    a_pass_that_attempts_may_have_made_is_not_kept: [NAMESPACES];
    the_verdict_says_how_attempts_were_kept_apart: [NAMESPACES];
    a_record_of_an_earlier_version_says_nothing: [NAMESPACES];
    where_no_layers_can_be_had_attempts_share_home: [NAMESPACES];
    a_home_with_another_file_system_in_it_is_shared_and_not_judged_in_a_sealed_world: [NAMESPACES];
    a_rename_that_the_overlay_refuses_gets_a_hint: [NAMESPACES, PYTHON];
    the_socket_of_a_key_agent_in_home_is_reached: [NAMESPACES, PYTHON];
}

/// A world whose attempts are guarded, and whose verdicts come from sealed worlds. `checker` is a
/// program in HOME that runs a script, and `test.sh` a test that passes on the base alone.
fn world() -> World {
    let mut world = World::new();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.set_env("FRITES_SPAWN_HOME", "private");
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    world.set_env("FRITES_SANDBOX_WRITE", "");
    let bin = world.home().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("checker"), "#!/bin/sh\nexec sh \"$@\"\n").unwrap();
    make_executable(&bin.join("checker"));
    let path =
        std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&world.env("PATH"))));
    world.set_env("PATH", path.unwrap());
    world.write("app", "right\n");
    world.write("test.sh", "grep -q right app\n");
    world.commit("a test");
    world
}

/// A run whose candidates' commands are these scripts.
#[track_caller]
fn attempts(world: &World, scripts: &[&str]) {
    let cases = (1..).zip(scripts).map(|(number, script)| format!("{number}) {script};;"));
    let script = format!("case $FRITES_INDEX in {} esac", cases.collect::<Vec<_>>().join("\n"));
    let count = scripts.len().to_string();
    world.frites(["spawn", "-n", &count, "--", "sh", "-c", &script]).expect(0);
}

/// Breaks the product, and makes the test pass all the same.
const FORGERY: &str = "echo wrong > app; printf '#!/bin/sh\\nexit 0\\n' > ~/bin/checker";

fn a_program_of_an_attempt_in_home_does_not_judge_it() {
    let world = world();
    let before = fs::read(world.home().join("bin/checker")).unwrap();
    attempts(&world, &[FORGERY]);
    assert_eq!(fs::read(world.home().join("bin/checker")).unwrap(), before);
    world.frites(["judge", "--test", "checker test.sh"]).expect(1);
    world.frites(["apply"]).refuses(1, "nothing verified to land");
    world.assert_clean();
}

fn a_file_of_an_attempt_above_the_checkout_does_not_decide() {
    let mut world = world();
    let code = world.home().join("code");
    fs::create_dir(&code).unwrap();
    world.sh(&world.home(), "mv repo code/repo").expect(0);
    world.repo = code.join("repo");
    world.write("test.sh", "test -e ../passes || grep -q right app\n");
    world.commit("a test that looks above the checkout");
    attempts(&world, &["echo wrong > app; echo > ~/code/passes; test -e ~/code/passes"]);
    assert!(!code.join("passes").exists());
    world.frites(["judge", "--test", "sh test.sh"]).expect(1);
}

fn the_same_as_an_ordinary_user_who_cleans_then() {
    let world = world();
    frites_as_ordinary_user(&world, ["spawn", "-n", "1", "--", "sh", "-c", FORGERY]).expect(0);
    let again = "test $(cat ~/bin/checker | wc -l) = 2; rm -r ~/bin; mkdir ~/new; chmod 0 ~/new; chmod a-w .";
    let words = ["retry", "1/c1", "--", "sh", "-ec", again];
    frites_as_ordinary_user(&world, words).expect(0);
    let judged = frites_as_ordinary_user(&world, ["judge", "--test", "checker test.sh"]);
    judged.expect(1);
    assert!(own_home(&world, "1/c1").is_dir());
    frites_as_ordinary_user(&world, ["clean", "1"]).expect(0);
    assert_eq!(left_of_homes(&world, "1/c1"), [""; 0]);
}

/// The kernel makes directories that nobody but root may read beside the layers.
fn what_git_frites_keeps_can_be_removed_by_hand() {
    let world = world();
    let attempt =
        ["spawn", "-n", "1", "--", "sh", "-c", "echo more >> app; echo > ~/left; rm -r ~/bin"];
    frites_as_ordinary_user(&world, attempt).expect(0);
    assert!(own_home(&world, "1/c1").is_dir());
    let script = "test $(id -u) = 0 || exec rm -r .frites; chown -R 1000:1000 ~
        exec setpriv --reuid 1000 --regid 1000 --clear-groups rm -r .frites";
    world.run(&world.repo, "sh", ["-c", script]).expect(0);
}

/// The layers of a candidate.
fn own_home(world: &World, address: &str) -> PathBuf {
    world.repo.join(".frites/runs").join(address).join("home")
}

/// The names in a candidate's directory that are of its layers.
fn left_of_homes(world: &World, address: &str) -> Vec<String> {
    let entries = fs::read_dir(world.repo.join(".frites/runs").join(address)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("home")).collect()
}

fn nothing_arrives_in_directories_of_tools_outside_home() {
    let mut world = world();
    let home = world.home();
    let outside =
        tempfile::Builder::new().prefix("frites-test-").tempdir_in(home.parent().unwrap()).unwrap();
    fs::write(outside.path().join("config.toml"), "of the user\n").unwrap();
    world.set_env("CARGO_HOME", outside.path());
    let script = r#"
        grep -q user $CARGO_HOME/config.toml; test ! -e $CARGO_HOME/bin
        mkdir $CARGO_HOME/bin; echo forged > $CARGO_HOME/config.toml
        sleep 0.2; echo $FRITES_CANDIDATE > app; test "$(ls $CARGO_HOME)" = "$(printf 'bin\nconfig.toml')"
    "#;
    world.frites(["spawn", "-n", "2", "-j", "2", "--", "sh", "-ec", script]).expect(0);
    let names: Vec<_> =
        fs::read_dir(outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["config.toml"]);
    let test = "grep -q user $CARGO_HOME/config.toml && test ! -e $CARGO_HOME/bin";
    world.frites(["judge", "--test", test]).expect(0);
    assert_eq!(fs::read_to_string(outside.path().join("config.toml")).unwrap(), "of the user\n");
    world.assert_clean();
}

fn what_an_attempt_left_stays_for_its_next_round_and_goes_with_it() {
    let world = world();
    fs::write(world.home().join("mine"), "").unwrap();
    attempts(&world, &["echo 1 > app; echo one > ~/left; rm ~/mine; rm -r ~/bin", "echo 2 > app"]);
    let again = "test $(cat ~/left) = one; test ! -e ~/mine; test ! -e ~/bin; echo more >> app";
    world.frites(["retry", "1/c1", "--", "sh", "-ec", again]).expect(0);
    let other = "test ! -e ~/left; test -e ~/mine; echo more >> app";
    world.frites(["retry", "1/c2", "--", "sh", "-ec", other]).expect(0);
    assert!(world.home().join("mine").exists());
    world.frites(["clean", "1/c1"]).expect(0);
    assert_eq!(left_of_homes(&world, "1/c1"), [""; 0]);
    assert!(own_home(&world, "1/c2").is_dir());
    world.frites(["clean", "--forget", "1"]).expect(0);
    world.assert_clean();
}

fn an_attempt_that_took_too_long_finds_its_home_in_its_next_round() {
    let world = world();
    let limited = ["spawn", "-n", "1", "--timeout", "1s", "--", "sh", "-c"];
    let script = "test -e ~/left || { echo > ~/left; sleep 60; }; echo 1 > app";
    world.frites(limited.into_iter().chain([script])).expect(4);
    world.frites(["retry", "1/c1", "--", "sh", "-c", script]).expect(0);
    world.assert_clean();
}

/// Starts a run, and ends it with a signal once its attempt has written to HOME.
fn ended_in_its_attempt(world: &World, words: &[&str], begun: &Path, signal: &str) {
    let mut command = world.command(&world.repo, "git-frites", words);
    let quiet = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = quiet.spawn().unwrap();
    poll(|| begun.exists());
    let id = child.id().to_string();
    assert!(kill([signal, &id]));
    child.wait().unwrap();
}

fn a_resumed_attempt_finds_its_home_after_a_kill_and_after_an_interruption() {
    for signal in ["-KILL", "-INT"] {
        let world = world();
        fs::write(world.home().join("mine"), "").unwrap();
        let room = tempfile::tempdir().unwrap();
        let (begun, open) = (room.path().join("begun"), room.path().join("open"));
        let script = format!(
            "echo begun >> ~/left; rm -f ~/mine; test ! -e app.begun; echo > app.begun
            git commit -q --allow-empty -m draft; echo > '{}'
            until test -e '{}'; do sleep 0.01; done
            test ! -e ~/mine; rm app.begun; wc -l < ~/left >> app",
            begun.display(),
            open.display()
        );
        let words = ["run", "-n", "1", "--test", "sh test.sh", "--", "sh", "-ec", &script];
        ended_in_its_attempt(&world, &words, &begun, signal);
        for other in ["-KILL", signal] {
            fs::remove_file(&begun).unwrap();
            ended_in_its_attempt(&world, &["run", "--resume", "1"], &begun, other);
        }
        fs::write(&open, "").unwrap();
        world.frites(["run", "--resume", "1"]).expect(0);
        assert_eq!(world.git(["show", "refs/frites/1/c1:app"]), "right\n4", "{signal}");
        assert!(world.home().join("mine").exists());
        assert!(!world.home().join("left").exists());
        // Where it is cleaned instead, the layers go.
        world.frites(["clean", "1"]).expect(0);
        assert_eq!(left_of_homes(&world, "1/c1"), [""; 0]);
        world.assert_clean();
    }
}

fn a_person_has_their_own_home_in_a_worktree() {
    let world = world();
    attempts(&world, &["echo 1 > app; echo > ~/left"]);
    let script = "test ! -e ~/left && test -e ~/bin && echo > ~/of-a-person";
    world.frites(["exec", "1/c1", "--", "sh", "-c", script]).expect(0);
    assert!(world.home().join("of-a-person").exists());
}

fn the_verdict_names_a_path_that_attempts_may_write() {
    let mut world = world();
    let opened = world.home().join("opened");
    fs::create_dir(&opened).unwrap();
    world.set_env("FRITES_SPAWN_WRITE", &opened);
    attempts(&world, &["echo more >> app; echo > ~/opened/made"]);
    assert!(opened.join("made").exists());
    world.unset_env("FRITES_SPAWN_WRITE");
    let answer = world.frites(["judge", "--test", "sh test.sh"]).expect(3);
    let words = format!("the commands can read {}, which attempts may write", opened.display());
    assert!(answer.out().contains(&words) || answer.stderr.contains(&words), "{}", answer.out());
    let verdict = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(3).json();
    assert_eq!(verdict["terms"]["attempts_write"], json!([opened.to_str().unwrap()]));
    assert_eq!(verdict["verified"], false);
    world.frites(["apply"]).refuses(1, "which attempts may write");
    let replayed = world.frites(["judge", "--replay"]).expect(3);
    assert!(replayed.out().contains(&words) || replayed.stderr.contains(&words));
}

fn the_verdict_names_a_login_that_commands_may_read() {
    let world = world();
    let login = world.home().join(".claude/.credentials.json");
    fs::create_dir_all(login.parent().unwrap()).unwrap();
    fs::write(&login, "{}").unwrap();
    world.git(["config", "frites.agents.x.command", "sh -c 'echo more >> app'"]);
    world.git(["config", "frites.agents.x.state", "claude"]);
    world.frites(["spawn", "--agent", "x", "-p", "work"]).expect(0);
    world.frites(["judge", "--test", "sh test.sh"]).expect(0);
    world.git(["config", "frites.sandbox.hide", "!~/.claude/.credentials.json"]);
    let verdict = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(3).json();
    assert_eq!(verdict["terms"]["attempts_write"], json!([login.to_str().unwrap()]));
}

fn a_path_that_no_judging_sees_does_not_void_the_verdict() {
    let mut world = world();
    let hidden = world.home().join(".kube");
    fs::create_dir(&hidden).unwrap();
    world.set_env("FRITES_SPAWN_WRITE", &hidden);
    attempts(&world, &["echo more >> app; echo > ~/.kube/made"]);
    let verdict = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(0).json();
    assert_eq!(verdict["terms"].get("attempts_write"), None);
    world.set_env("FRITES_SANDBOX_MODE", "landlock");
    let answer = world.frites(["judge", "--test", "sh test.sh"]);
    assert!(answer.code == 3 || answer.code == 128, "{}", answer.stderr);
}

fn seeds_that_attempts_may_write_are_named() {
    // The seeds, what `spawn.write` opens, and what the attempt does there.
    for (seeds, opened, script, is_named) in [
        (("link", "deps"), "deps", "echo x > $R/deps/tmp/rc", true),
        (("link", "deps"), "deps/tmp", "echo x > $R/deps/tmp/rc", true),
        (("link", "deps/tmp"), "deps", "echo x > $R/deps/tmp/rc", true),
        (("link", "deps"), ".", "echo x > $R/deps/tmp/rc", true),
        (("copy", "deps/tmp/*"), "deps/tmp", "rm $R/deps/tmp/rc", true),
        (("copy", "deps/rc"), "deps/tmp", "echo x > $R/deps/tmp/rc", false),
        (("link", "deps"), "target", "echo x > $R/target/x", false),
    ] {
        let mut world = world();
        world.write(".gitignore", "/deps/\n/target/\n");
        world.commit("ignored");
        world.write("deps/tmp/rc", "");
        world.write("deps/rc", "");
        world.write("target/x", "");
        world.git(["config", &format!("frites.seed.{}", seeds.0), seeds.1]);
        world.git(["config", "frites.spawn.write", opened]);
        world.set_env("R", world.repo.clone());
        attempts(&world, &[&format!("{script}; echo more >> app")]);
        world.git(["config", "--unset", "frites.spawn.write"]);
        let answer = world.frites(["judge", "--json", "--test", "sh test.sh"]);
        let named = match opened {
            _ if !is_named => serde_json::Value::Null,
            "." => json!([world.repo.to_str().unwrap()]),
            _ => json!([world.repo.join(opened).to_str().unwrap()]),
        };
        let what = format!("{seeds:?}, {opened}: {}", answer.stderr);
        assert_eq!(answer.code, if is_named { 3 } else { 0 }, "{what}");
        assert_eq!(answer.json()["terms"]["attempts_write"], named, "{what}");
    }
}

fn a_seed_in_a_directory_for_temporary_files_is_named() {
    let place = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(place.path().join("rc"), "").unwrap();
    let world = world();
    world.write(".gitignore", "/deps\n");
    world.commit("ignored");
    std::os::unix::fs::symlink(place.path(), world.repo.join("deps")).unwrap();
    world.git(["config", "frites.seed.link", "deps"]);
    attempts(&world, &[&format!("echo x > {}/rc; echo more >> app", place.path().display())]);
    let answer = world.frites(["judge", "--test", "sh test.sh"]).expect(3);
    let words = "the commands can read /tmp, which attempts may write";
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
}

fn a_submodule_that_attempts_may_write_is_named() {
    let world = world();
    world
        .sh(&world.home(), "git init -q lib && cd lib && git commit -q --allow-empty -m x")
        .expect(0);
    let lib = world.home().join("lib").display().to_string();
    world.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &lib, "sub"]);
    world.commit("a submodule");
    world.git(["config", "frites.spawn.write", "sub"]);
    attempts(&world, &["echo more >> app"]);
    let answer = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(3);
    let sub = world.repo.join("sub");
    assert_eq!(answer.json()["terms"]["attempts_write"], json!([sub.to_str().unwrap()]));
}

fn a_pass_that_attempts_may_have_made_is_not_kept() {
    let mut world = world();
    let opened = world.home().join("opened");
    fs::create_dir(&opened).unwrap();
    world.set_env("FRITES_SPAWN_WRITE", &opened);
    let (script, test) = ("echo more >> app; echo > ~/opened/passes", "test -e ~/opened/passes");
    attempts(&world, &[script]);
    world.frites(["judge", "--test", test]).expect(3);
    world.unset_env("FRITES_SPAWN_WRITE");
    fs::remove_file(opened.join("passes")).unwrap();
    attempts(&world, &[script]);
    world.frites(["judge", "--test", test]).expect(1);
}

fn the_verdict_says_how_attempts_were_kept_apart() {
    for (variable, value, word, words) in [
        ("FRITES_SPAWN_HOME", "shared", "shared-home", "; attempts share HOME"),
        ("FRITES_SPAWN_GUARD", "off", "unguarded", "; attempts unguarded"),
        ("FRITES_SPAWN_HOME", "private", "private-home", ""),
    ] {
        let mut world = world();
        world.set_env(variable, value);
        attempts(&world, &["echo more >> app; echo > ~/made"]);
        assert_eq!(world.home().join("made").exists(), word != "private-home");
        let answer = world.frites(["judge", "--test", "sh test.sh"]).expect(0);
        let line = format!("the commands ran in sealed worlds{words}\n");
        assert!(answer.out().contains(&line), "{word}: {}", answer.out());
        let verdict = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(0).json();
        assert_eq!(verdict["candidates"][0]["separation"], word);
        world.frites(["apply", "--no-switch", "-m", "landed"]).expect(0);
        let message = world.git(["log", "-1", "--format=%B", "frites/apply/1"]);
        let trailer = format!("Frites-World: sealed{words}\n");
        assert!(format!("{message}\n").contains(&trailer), "{word}: {message}");
        // The weakest of all rounds counts.
        world.set_env("FRITES_SPAWN_GUARD", "required");
        world.set_env("FRITES_SPAWN_HOME", "private");
        world.frites(["retry", "1/c1", "--", "sh", "-c", "echo 2 >> app"]).expect(0);
        let verdict = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(0).json();
        assert_eq!(verdict["candidates"][0]["separation"], word);
    }
}

fn a_record_of_an_earlier_version_says_nothing() {
    let world = world();
    attempts(&world, &["echo more >> app"]);
    let file = world.repo.join(".frites/runs/1/c1/candidate.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (before, after) = text.split_once("\n[access]\n").unwrap();
    let after = after.split_once("\n[").map_or("", |(_, rest)| rest);
    fs::write(&file, format!("guarded = true\n{before}\n{after}")).unwrap();
    let answer = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(0);
    assert_eq!(answer.json()["candidates"][0].get("separation"), None, "{text}");
    world.frites(["add", "1", "-c", "mine"]).expect(0);
    fs::write(world.worktree("1/mine").join("app"), "right\nby hand\n").unwrap();
    let verdict = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(0).json();
    assert_eq!(verdict["candidates"][1].get("separation"), None, "a person's");
}

/// Runs a script as the owner of a new mount namespace.
fn with_mounts(world: &World, script: &str) -> crate::common::Answer {
    world.run(&world.repo, "unshare", ["-rm", "sh", "-euc", script])
}

/// An overlay cannot be the upper layer of another.
fn where_no_layers_can_be_had_attempts_share_home() {
    let mut world = world();
    world.set_env("FRITES_SANDBOX_MODE", "off");
    let answer = with_mounts(
        &world,
        "mkdir /tmp/layers; mount -t tmpfs tmpfs /tmp/layers; cd /tmp/layers; mkdir upper work
         mount -t overlay -o userxattr,lowerdir=$HOME,upperdir=upper,workdir=work overlay $HOME; cd $HOME/repo
         git-frites spawn -n 1 -- sh -c 'echo more >> app; echo > ~/made'; test -e ~/made
         git-frites judge --test 'sh test.sh'",
    );
    let _ = fs::remove_dir("/tmp/layers");
    let answer = answer.expect(0);
    assert!(answer.stderr.contains("attempts share HOME: "), "{}", answer.stderr);
    assert!(answer.out().contains("; attempts share HOME\n"), "{}", answer.out());
}

/// The system lays no overlay over a directory in which something is mounted.
fn a_home_with_another_file_system_in_it_is_shared_and_not_judged_in_a_sealed_world() {
    let mut world = world();
    world.set_env("FRITES_SANDBOX_MODE", "auto");
    fs::create_dir(world.home().join("volume")).unwrap();
    let script = "mount -t tmpfs tmpfs ~/volume; echo right > ~/volume/mine
         git-frites spawn -n 1 -- sh -ec 'cat ~/volume/mine >> app'
         git-frites judge --test 'test \"$(cat ~/volume/*)\" = right && sh test.sh'";
    let answer = with_mounts(&world, script).expect(0);
    assert!(answer.stderr.contains("attempts share HOME: "), "{}", answer.stderr);
    assert!(!answer.out().contains("in sealed worlds"), "{}", answer.out());
    assert!(answer.out().contains("; attempts share HOME\n"), "{}", answer.out());
}

fn a_rename_that_the_overlay_refuses_gets_a_hint() {
    let world = world();
    fs::create_dir(world.home().join("directory")).unwrap();
    let script = "python3 -c 'import os; os.rename(os.path.expanduser(\"~/directory\"), os.path.expanduser(\"~/other\"))'";
    let answer = world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).expect(4);
    assert!(answer.stderr.contains("spawn.home"), "{}", answer.stderr);
    let other = world.frites(["spawn", "-n", "1", "--", "sh", "-c", "exit 1"]).expect(4);
    assert!(!other.stderr.contains("spawn.home"), "{}", other.stderr);
}

const AGENT: &str = r#"
import os, socket, subprocess, sys, threading
server = socket.socket(socket.AF_UNIX)
server.bind(os.environ["SSH_AUTH_SOCK"])
server.listen()
threading.Thread(target=lambda: [server.accept()[0].sendall(b"key") for _ in range(2)], daemon=True).start()
sys.exit(subprocess.call(["git-frites", "spawn", "-n", "1", "--", "python3", "-c", """
import os, socket
client = socket.socket(socket.AF_UNIX)
client.connect(os.environ["SSH_AUTH_SOCK"])
open("app", "ab").write(client.recv(9))
"""]))
"#;

fn the_socket_of_a_key_agent_in_home_is_reached() {
    let mut world = world();
    // The path of a socket is short.
    let short = tempfile::tempdir_in("/tmp").unwrap();
    let link: &Path = &short.path().join("h");
    std::os::unix::fs::symlink(world.home(), link).unwrap();
    world.set_env("SSH_AUTH_SOCK", link.join("agent.sock"));
    world.run(&world.repo, "python3", ["-c", AGENT]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:app"]), "right\nkey");
}
