//! Landlock, where namespaces are refused: oracle commands write to their checkout and to
//! directories that are thrown away, and to nothing else.
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::sealed::{confined, stale_project_in};
use crate::common::{Answer, World};
use crate::tool::{
    LANDLOCK, LANDLOCK_SIGNALS, MAKE, NAMESPACES, SECCOMP, TERMINAL, WITHOUT_LANDLOCK, trials,
    without_namespaces,
};
use crate::traces::{assert_untouched, shared_lines, user_files};

trials! {
    writes_reach_the_checkout_and_directories_that_are_thrown_away: [LANDLOCK];
    a_private_home_is_empty_and_thrown_away: [LANDLOCK];
    processes_outside_get_no_signal: [LANDLOCK_SIGNALS];
    a_terminal_can_be_made: [LANDLOCK, TERMINAL];
    shared_memory_is_refused_unless_it_is_opened: [LANDLOCK];
    home_shows_what_the_user_has_and_takes_writes_that_are_thrown_away: [LANDLOCK];
    caches_lead_to_directories_that_are_thrown_away: [LANDLOCK];
    a_command_that_cannot_start_is_told_as_such: [LANDLOCK];
    a_pass_is_kept_for_later_commands_of_the_same_world: [LANDLOCK];
    what_landlock_cannot_enforce_is_named: [LANDLOCK];
    each_tree_is_judged_without_outputs_of_another: [LANDLOCK, MAKE];
    seeds_are_there_and_never_changed: [LANDLOCK];
    directories_of_killed_judges_are_removed_and_no_others: [LANDLOCK];
    landlock_takes_the_place_of_namespaces_that_are_refused: [LANDLOCK, NAMESPACES];
    a_run_that_landlock_confines_is_judged_in_parts_wherever_landlock_can_be_had: [LANDLOCK, NAMESPACES, SECCOMP];
    doctor_says_which_setting_refuses_namespaces: [LANDLOCK, NAMESPACES];
    where_neither_can_be_had_commands_run_unconfined_or_not_at_all: [NAMESPACES, SECCOMP];
}

/// A world in which commands are confined by Landlock.
fn restricted() -> World {
    confined("landlock")
}

fn writes_reach_the_checkout_and_directories_that_are_thrown_away() {
    let world = restricted();
    world.attempts(&["echo changed > README", "echo more >> src/lib.txt"]);
    let before = user_files(&world);
    let (repo, home) = (world.repo.display(), world.home());
    let home = home.display();
    let script = format!(
        r#"
        refused() {{ ! "$@" 2>/dev/null || echo "$*" >> ~/shared/escaped; }}
        write() {{ echo x > "$1"; }}
        for file in '{repo}/README' '{repo}/.frites/worktrees/1/c1/README' '{home}/.gitconfig'; do
            refused write "$file"
            refused rm -f "$file"
            refused truncate -s 0 "$file"
            refused mv "$file" taken
            refused ln "$file" taken
            refused mv README "$file"
        done
        for dir in '{repo}' '{repo}/.frites' '{repo}/.git' '{home}' "${{PWD%/*}}" /tmp /etc /dev/shm; do
            refused write "$dir/dropped-by-a-test"
            refused mkdir "$dir/dropped-by-a-test"
        done
        refused git update-ref refs/heads/forged HEAD
        refused git update-ref -d refs/heads/main
        refused git config core.hooksPath /evil
        refused git gc -q
        test -z "$(ls -A "$TMPDIR")"
        echo "$TMPDIR" >> ~/shared/temporary
        mkdir a b "$TMPDIR/c"
        echo x > a/x
        mv a/x b/x
        mkfifo "$TMPDIR/c/pipe"
        echo x > /dev/null
        git status --porcelain | grep -q b/
        grep -q . ~/.gitconfig
    "#
    );
    world.frites(["judge", "--test", &script]).expect(0);
    assert_eq!(shared_lines(&world, "escaped"), [""; 0]);
    assert_untouched(&world, &before);
    let temporary = shared_lines(&world, "temporary");
    assert_eq!(temporary.len(), 3, "one for the base, and one for each candidate");
    for (at, dir) in temporary.iter().enumerate() {
        assert!(!temporary[..at].contains(dir), "{dir} was used twice");
        assert!(!Path::new(dir).parent().unwrap().exists(), "{dir} is left");
    }
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn a_private_home_is_empty_and_thrown_away() {
    let mut world = restricted();
    world.set_env("FRITES_SANDBOX_HOME", "private");
    world.attempts(&["echo changed > README"]);
    let shared = world.home().join("shared");
    let script = format!(
        "test -z \"$(ls -A ~)\"; test \"$XDG_CACHE_HOME\" = ~/.cache; echo x > ~/.dropped\n\
         echo \"$HOME\" >> '{}/homes'",
        shared.display()
    );
    world.frites(["judge", "--test", &script]).expect(0);
    let homes = shared_lines(&world, "homes");
    assert_eq!(homes.len(), 2);
    assert!(homes.iter().all(|home| !Path::new(home).exists()), "{homes:?}");
    assert!(!world.home().join(".dropped").exists());
    world.assert_clean();
}

fn processes_outside_get_no_signal() {
    let world = restricted();
    world.attempts(&["echo changed > README"]);
    // The parent of the command is its supervisor.
    let script = "for signal in 0 STOP KILL; do ! kill -$signal $PPID 2>/dev/null; done
        sleep 1000 & kill $!";
    world.frites(["judge", "--test", script]).expect(0);
    world.assert_clean();
}

fn a_terminal_can_be_made() {
    let world = restricted();
    world.attempts(&["echo changed > README"]);
    let script = "script -qec 'test -t 1 && stty -echo' /dev/null >/dev/null
        echo 1000 > /proc/self/oom_score_adj";
    world.frites(["judge", "--test", script]).expect(0);
}

/// What a candidate left there, the next would find.
fn shared_memory_is_refused_unless_it_is_opened() {
    let mut world = restricted();
    world.attempts(&["echo changed > README"]);
    let name = format!("/dev/shm/frites-test-{}", std::process::id());
    let script = format!("! echo x > {name}");
    world.frites(["judge", "--test", &script]).expect(0);
    assert!(!Path::new(&name).exists());
    world.set_env("FRITES_SANDBOX_WRITE", "/dev/shm");
    let script = format!("echo x > {name}; rm {name}");
    world.frites(["judge", "--test", &script]).expect(0);
}

fn home_shows_what_the_user_has_and_takes_writes_that_are_thrown_away() {
    let world = restricted();
    let home = world.home();
    fs::create_dir_all(home.join(".config/tool")).unwrap();
    fs::write(home.join(".config/tool/settings"), "mine").unwrap();
    fs::write(home.join(".profile"), "mine").unwrap();
    world.attempts(&["echo changed > README"]);
    let before = user_files(&world);
    let script = "set -e; grep -q mine ~/.profile ~/.config/tool/settings; grep -q . ~/.gitconfig
        test ! -e ~/.new; echo x > ~/.new; mkdir -p ~/.config/other ~/.local/state/x
        ! echo x > ~/.profile; ! echo x > ~/.config/tool/settings; ! echo x > ~/.config/tool/more
        rm ~/.profile; echo own > ~/.profile";
    world.frites(["judge", "--test", script]).expect(0);
    assert_untouched(&world, &before);
    world.assert_clean();
}

fn caches_lead_to_directories_that_are_thrown_away() {
    let mut world = restricted();
    let home = world.home();
    let elsewhere = home.join("elsewhere");
    let artifact = "org/thing/1.0/thing.pom";
    for file in [".m2/repository/".to_owned() + artifact, ".gradle/gradle.properties".to_owned()] {
        fs::create_dir_all(home.join(&file).parent().unwrap()).unwrap();
        fs::write(home.join(file), "mine").unwrap();
    }
    for dir in [".npm/_cacache", "cache/pip", ".gradle/caches/modules-2", "elsewhere/go-build"] {
        fs::create_dir_all(home.join(dir)).unwrap();
        fs::write(home.join(dir).join("kept"), "mine").unwrap();
    }
    world.set_env("GOCACHE", elsewhere.join("go-build"));
    world.write("pom.xml", "<project/>");
    world.commit("a project of Maven");
    world.attempts(&["echo changed > README"]);
    let before = user_files(&world);
    let script = format!(
        r#"set -e
        for dir in "$GOCACHE" ~/.npm "$XDG_CACHE_HOME/pip"; do
            case $dir in "$HOME"/*) test -z "$(ls -A "$dir")"; echo x > "$dir/written" ;; *) exit 7 ;; esac
        done
        repository=$HOME/.m2/repository
        grep -q mine "$repository/{artifact}"; ! echo x > "$repository/{artifact}"
        mkdir "$repository/org/thing/1.1"; mkdir "$repository/com"
        grep -q mine ~/.gradle/gradle.properties "$GRADLE_RO_DEP_CACHE/modules-2/kept"
        test ! -e ~/.gradle/caches/modules-2; mkdir ~/.gradle/caches/modules-2
        "#
    );
    world.frites(["judge", "--test", &script]).expect(0);
    assert_untouched(&world, &before);
    // What is opened stays the user's.
    world.set_env("FRITES_SANDBOX_WRITE", home.join(".npm"));
    world
        .frites(["judge", "--test", "grep -q mine ~/.npm/_cacache/kept; echo x > ~/.npm/y"])
        .expect(0);
    assert!(home.join(".npm/y").exists());
    fs::remove_dir_all(home.join("cache/pip")).unwrap();
    world.assert_clean();
}

fn a_command_that_cannot_start_is_told_as_such() {
    let world = restricted();
    world.write(".frites.toml", "oracle.test = ['./tool']\n");
    world.commit("a test that attempts make");
    world.attempts(&["printf '#!/bin/sh\\nexit 0\\n' > tool; chmod +x tool"]);
    let answer = world.frites(["judge", "--json"]);
    let base = answer.json()["baseline"]["results"][0]["outcome"].to_string();
    assert!(base.contains("could-not-start"), "{base}");
    let log = fs::read_to_string(world.repo.join(".frites/runs/1/@base/test.log")).unwrap();
    assert_eq!(log, "git-frites: could not start ./tool: No such file or directory\n");
    assert_eq!(answer.json()["candidates"][0]["passed"], true);
}

fn a_pass_is_kept_for_later_commands_of_the_same_world() {
    let mut world = restricted();
    world.attempts(&["echo changed > README"]);
    let judge = |world: &World| {
        let verdict = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
        (verdict["terms"]["world"].clone(), verdict["effort"]["saved_cached"].clone())
    };
    assert_eq!(judge(&world), ("landlock".into(), 0.into()));
    assert_eq!(judge(&world), ("landlock".into(), 1.into()));
    world.set_env("FRITES_SANDBOX_MODE", "off");
    assert_eq!(judge(&world), ("open".into(), 0.into()));
    world.assert_clean();
}

fn what_landlock_cannot_enforce_is_named() {
    let mut world = restricted();
    world.set_env("FRITES_SANDBOX_NETWORK", "false");
    world.set_env("FRITES_SANDBOX_PROCESSES", "100");
    world.attempts(&["echo changed > README"]);
    let answer = world.frites(["judge", "--test", "true"]).expect(0);
    let line = "warning: Landlock cannot enforce sandbox.network, sandbox.processes\n";
    assert!(answer.stderr.contains(line), "{}", answer.stderr);
    world.set_env("FRITES_SANDBOX_MEMORY", "1GiB");
    let limit = "test \"$(ulimit -v)\" = 1048576";
    world.frites(["judge", "--test", limit]).expect(0);
}

fn each_tree_is_judged_without_outputs_of_another() {
    let world = stale_project_in(restricted());
    world.attempts(&["rm b.src", "seq 9 > c.src"]);
    let before = user_files(&world);
    for jobs in ["1", "2"] {
        let words = ["judge", "--json", "--no-cache", "-j", jobs, "--test", "make -s test"];
        let verdict = world.frites(words).expect(0).json();
        assert_eq!(verdict["terms"]["world"], "landlock");
        assert_eq!(verdict["recommended"], "c2", "{verdict:#}");
        for candidate in verdict["candidates"].as_array().unwrap() {
            assert_eq!(candidate["stale"], Value::Null, "{verdict:#}");
            assert_eq!(candidate["results"][0]["warm"], Value::Null, "{verdict:#}");
        }
        // The base and each candidate, once, with all of their sources.
        let compiled = "a.obj a.obj a.obj b.obj b.obj c.obj";
        assert_eq!(shared_lines(&world, "compiled").join(" "), compiled);
        fs::remove_file(world.home().join("shared/compiled")).unwrap();
    }
    assert_untouched(&world, &before);
    world.assert_clean();
}

fn seeds_are_there_and_never_changed() {
    let mut world = restricted();
    world.write(".git/info/exclude", "data\nlinked\n");
    world.write("data/table", "mine");
    world.write("linked/table", "mine");
    world.set_env("FRITES_SEED_COPY", "data");
    world.set_env("FRITES_SEED_LINK", "linked");
    world.attempts(&["echo changed > README", "echo more >> README; echo x > new"]);
    let before = user_files(&world);
    let test = "grep -q mine linked/table; cat data/table >> ~/shared/seen; echo >> ~/shared/seen
        echo other > data/table; test \"$(git status --porcelain)\" = ''";
    let answer = world.frites(["judge", "--json", "--no-cache", "--test", test]).expect(0);
    assert_eq!(answer.json()["recommended"], "c1", "{answer:?}");
    assert_eq!(shared_lines(&world, "seen").join(" ").trim(), "mine mine mine");
    assert_untouched(&world, &before);
    world.assert_clean();
}

fn directories_of_killed_judges_are_removed_and_no_others() {
    let world = restricted();
    let place = world.home().join("cache/git-frites");
    for (name, has_lock) in [("own-killed", true), ("own-of-the-user", false)] {
        let dir = place.join(name);
        fs::create_dir_all(dir.join("tmp/deep")).unwrap();
        if has_lock {
            fs::write(dir.join("lock"), "").unwrap();
        }
    }
    world.attempts(&["echo changed > README"]);
    let left = fs::read_dir(&place).unwrap().map(|e| e.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.as_encoded_bytes().starts_with(b"own-")).collect();
    assert_eq!(left, ["own-of-the-user"]);
}

/// `git frites judge` in this mode where the system allows no further user namespace. `before` are
/// the words before it. The test passes where nothing can be written to HOME.
fn judged_without_namespaces(world: &World, before: &str, mode: &str) -> Answer {
    let test = format!("! touch {}/escaped", world.home().display());
    let judge = format!("{before} git frites judge --json --no-cache --test '{test}'");
    without_namespaces(world, &format!("FRITES_SANDBOX_MODE={mode} exec {judge}"))
}

fn landlock_takes_the_place_of_namespaces_that_are_refused() {
    let world = restricted();
    world.attempts(&["echo changed > README"]);
    for mode in ["auto", "required"] {
        let answer = judged_without_namespaces(&world, "", mode).expect(0);
        assert_eq!(answer.json()["terms"]["world"], "landlock");
        assert_eq!(answer.json()["candidates"][0]["passed"], true, "a write is refused");
        let line = "commands are confined by Landlock alone: no sealed world can be made here: \
                    making namespaces: ";
        assert!(answer.stderr.contains(line), "{}", answer.stderr);
    }
    judged_without_namespaces(&world, "", "sealed")
        .refuses(128, "no sealed world can be made here: making namespaces");
    world.assert_clean();
}

fn a_run_that_landlock_confines_is_judged_in_parts_wherever_landlock_can_be_had() {
    let world = restricted();
    world.attempts(&["echo changed > README"]);
    let test = format!("! touch {}/escaped", world.home().display());
    world.frites(["shard", "open", "--test", &test, "1"]).expect(0);
    let share = format!("python3 -c '{WITHOUT_LANDLOCK}' git frites shard judge 1 1/1");
    world.sh(&world.repo, &share).refuses(
        128,
        "the run was opened to be judged confined by Landlock, which is impossible here",
    );
    let share = "FRITES_SANDBOX_MODE=auto exec git frites shard judge 1 1/1";
    let out = without_namespaces(&world, share).expect(0).out();
    assert_eq!(out, "1/c1\tpassed\n1/@base\tpassed\n");
    let decided = world.frites(["judge", "--replay", "--json", "1"]).expect(0).json();
    assert_eq!(decided["terms"]["world"], "landlock");
}

fn doctor_says_which_setting_refuses_namespaces() {
    let world = restricted();
    let doctor = "FRITES_SANDBOX_MODE=auto exec git frites doctor --json";
    let document = without_namespaces(&world, doctor).expect(0).json();
    let of = |what: &str| {
        let mut machine = document["machine"].as_array().unwrap().iter();
        machine.find(|finding| finding["what"] == what).unwrap().clone()
    };
    assert_eq!(of("namespaces")["health"], "missing");
    let advice = of("namespaces")["advice"].to_string();
    assert!(advice.contains("`sudo sysctl user.max_user_namespaces=10000`"), "{advice}");
    assert_eq!(of("overlay")["health"], "missing");
    assert_eq!(document["repository"]["world"], "landlock");
    let document = world.frites(["doctor", "--json"]).expect(0).json();
    assert_eq!(document["machine"][2]["what"], "namespaces");
    assert_eq!(document["machine"][2]["health"], "ok");
}

fn where_neither_can_be_had_commands_run_unconfined_or_not_at_all() {
    let world = restricted();
    world.attempts(&["echo changed > README"]);
    let before = format!("python3 -c '{WITHOUT_LANDLOCK}'");
    let answer = judged_without_namespaces(&world, &before, "auto").expect(1);
    assert_eq!(answer.json()["terms"]["world"], "open");
    assert!(world.home().join("escaped").exists(), "nothing confines the test");
    let line = "commands run unconfined: no sealed world can be made here: making namespaces: ";
    assert!(answer.stderr.contains(line), "{}", answer.stderr);
    assert!(answer.stderr.contains("; Landlock cannot be used: "), "{}", answer.stderr);
    judged_without_namespaces(&world, &before, "landlock")
        .refuses(128, "Landlock cannot be used: ");
    judged_without_namespaces(&world, &before, "required")
        .refuses(128, "no sealed world can be made here: making namespaces");
    world.assert_clean();
}
