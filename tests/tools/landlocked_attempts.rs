//! Attempts where namespaces are refused: Landlock keeps their commands from everything but their
//! worktree, and git works there.
use std::fs;

use crate::common::{Answer, World};
use crate::guard::of_the_user;
use crate::tool::{LANDLOCK, NAMESPACES, trials, without_namespaces};

trials! {
    commands_write_to_their_worktree_and_to_nothing_of_the_users: [LANDLOCK, NAMESPACES];
    git_works_and_what_it_made_is_captured: [LANDLOCK, NAMESPACES];
    a_setup_is_confined_as_well: [LANDLOCK, NAMESPACES];
    what_is_opened_can_be_written_to: [LANDLOCK, NAMESPACES];
    submodules_stay_with_the_worktree: [LANDLOCK, NAMESPACES];
    what_a_killed_git_frites_leaves_is_captured: [LANDLOCK, NAMESPACES];
    doctor_says_that_landlock_guards: [LANDLOCK, NAMESPACES];
    an_agent_writes_its_own_state_and_no_other: [LANDLOCK, NAMESPACES];
    nothing_but_the_base_is_judged_while_attempts_work: [LANDLOCK, NAMESPACES];
}

/// A run of this shell script in a candidate, where the system allows no further user namespace.
fn spawned(world: &World, options: &str, script: &str) -> Answer {
    fs::write(world.home().join("script"), script).unwrap();
    without_namespaces(
        world,
        &format!(
            "git frites spawn -c a -c b {options} -- sh -eu {}/script",
            world.home().display()
        ),
    )
}

fn guarded() -> World {
    let mut world = World::new();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    fs::write(world.home().join("settings"), "mine").unwrap();
    world
}

fn commands_write_to_their_worktree_and_to_nothing_of_the_users() {
    let mut world = guarded();
    world.set_env("USER_HOME", world.home());
    fs::create_dir_all(world.home().join("cache/git-frites")).unwrap();
    let before = of_the_user(&world);
    let script = r#"
        refuses() { if (eval "$1") 2>>refusals; then echo "$1" >> written; fi; }
        top=$USER_HOME/repo
        refuses 'echo x > $USER_HOME/settings'
        refuses 'echo x > ~/settings'
        refuses 'echo x > $USER_HOME/new'
        refuses 'rm $USER_HOME/settings'
        refuses 'echo x > $USER_HOME/cache/git-frites/x'
        refuses 'echo x > $top/README'
        refuses 'echo x > $top/.git/hooks/post-checkout'
        refuses 'git --git-dir=$top/.git update-ref refs/heads/forged HEAD'
        refuses 'echo x >> $top/.frites/events.jsonl'
        case $FRITES_CANDIDATE in a) sibling=b;; *) sibling=a; esac
        refuses 'echo x > $top/.frites/worktrees/1/$sibling/README'
        refuses 'echo x > /tmp/frites-test-$$'
        refuses 'echo x > /dev/shm/frites-test-$$'
        grep -q mine ~/settings; echo x > ~/own; echo x > $TMPDIR/own; echo $FRITES_CANDIDATE > README
    "#;
    let answer = spawned(&world, "", script).expect(0);
    let line = "attempts are confined by Landlock alone: no world can be made here";
    assert!(answer.stderr.contains(line), "{}", answer.stderr);
    assert!(answer.changes_warned_of().is_empty(), "{}", answer.stderr);
    for name in ["a", "b"] {
        let worktree = world.worktree(&format!("1/{name}"));
        assert!(
            !worktree.join("written").exists(),
            "{:?}",
            fs::read_to_string(worktree.join("written"))
        );
        let refusals = fs::read_to_string(worktree.join("refusals")).unwrap();
        assert!(refusals.contains("Permission denied"), "{refusals}");
        assert_eq!(world.git(["show", &format!("refs/frites/1/{name}:README")]), name);
    }
    assert_eq!(of_the_user(&world), before);
    assert_eq!(fs::read_to_string(world.home().join("settings")).unwrap(), "mine");
    for name in ["new", "own", "cache/git-frites/x"] {
        assert!(!world.home().join(name).exists(), "{name}");
    }
    world.assert_clean();
}

fn git_works_and_what_it_made_is_captured() {
    let world = guarded();
    world.git(["tag", "v1"]);
    fs::create_dir(world.repo.join(".git/of-a-tool")).unwrap();
    let before = world.git(["for-each-ref", "refs/heads/main", "refs/tags"]);
    let script = r#"
        git config user.name Somebody
        echo 'touch $0.ran' > "$(git rev-parse --git-common-dir)/hooks/post-checkout"
        test "$(git rev-parse v1)" = "$(git rev-parse HEAD)"; test -z "$(git status --porcelain)"
        echo one >> README; git add README; git commit -qm one
        echo two >> README; git stash -q; git stash pop -q; git commit -qam two
        git update-ref refs/heads/main HEAD; git tag mine; git gc -q --prune=now
        git checkout -q -b own; echo three >> README; git commit -qam three
        git checkout -q -; git merge -q own; git fsck --strict
        echo staged > staged; git add staged; git config core.fsmonitor "$PWD/planted"
    "#;
    let answer = spawned(&world, "", script).expect(0);
    assert!(!answer.stderr.contains("warning"), "{}", answer.stderr);
    for name in ["a", "b"] {
        let worktree = world.worktree(&format!("1/{name}"));
        let branch = format!("frites/run/1/{name}");
        assert_eq!(world.git(["log", "--format=%s", &branch]), "three\ntwo\none\nbase");
        assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "A  staged");
        assert_eq!(world.git_in(&worktree, ["symbolic-ref", "--short", "HEAD"]), branch);
        let common =
            world.git_in(&worktree, ["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        assert_eq!(common, world.repo.join(".git").display().to_string(), "the repository's again");
    }
    assert_eq!(world.git(["for-each-ref", "refs/heads/main", "refs/tags"]), before);
    assert!(!world.git(["config", "--list"]).contains("fsmonitor"));
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn submodules_stay_with_the_worktree() {
    let world = guarded();
    let add = "git init -q ../lib; git -C ../lib commit -q --allow-empty -m lib
        git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm lib";
    world.sh(&world.repo, add).expect(0);
    let script = r#"
        git -c protocol.file.allow=always submodule --quiet update --init
        git -C lib commit -q --allow-empty -m mine
        case $FRITES_CANDIDATE in b) git submodule --quiet deinit -f lib; esac
    "#;
    let answer = spawned(&world, "", script).expect(0);
    let lost = answer.stderr.matches("commits of a submodule that are nowhere else").count();
    assert_eq!(lost, 2, "{}", answer.stderr);
    let lib = world.worktree("1/a").join("lib");
    assert_eq!(world.git_in(&lib, ["log", "-1", "--format=%s"]), "mine");
    for address in ["1/a", "1/b"] {
        let clean = world.frites(["clean", address]);
        clean.refuses(1, "commits of a submodule that are nowhere else");
    }
}

fn a_setup_is_confined_as_well() {
    let mut world = guarded();
    let escaped = world.home().join("escaped");
    let refused = format!("! echo x > {}", escaped.display());
    world.set_env("FRITES_SPAWN_SETUP", format!("{refused}; echo made > made"));
    let script = format!("{refused}; test -e made; echo 1 > README; git commit -qam mine");
    spawned(&world, "-q", &script).expect(0);
    assert!(!escaped.exists());
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/run/1/a"]), "mine");
    world.assert_clean();
}

fn what_is_opened_can_be_written_to() {
    let mut world = guarded();
    fs::create_dir(world.home().join("shared")).unwrap();
    world.set_env("FRITES_SPAWN_WRITE", "~/shared");
    spawned(&world, "-q", "echo x > ~/shared/$FRITES_CANDIDATE; echo 1 > README").expect(0);
    assert!(world.home().join("shared/a").exists() && world.home().join("shared/b").exists());
}

fn what_a_killed_git_frites_leaves_is_captured() {
    let world = guarded();
    let ready = world.worktree("1/a").join("ready");
    let script = "echo one >> README; git commit -qam one; echo > ready; exec sleep 1000";
    fs::write(world.home().join("script"), script).unwrap();
    let killed = format!(
        "git frites spawn -q -c a -- sh -eu {}/script & while ! test -e {}; do :; done; kill -9 $!",
        world.home().display(),
        ready.display()
    );
    without_namespaces(&world, &killed);
    let own = || {
        let cache = fs::read_dir(world.home().join("cache/git-frites")).unwrap();
        let names = cache.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.as_encoded_bytes().starts_with(b"own-")).count()
    };
    assert_eq!(own(), 1);
    world.frites(["capture", "1"]).expect(0);
    assert_eq!(world.git(["log", "--format=%s", "frites/run/1/a"]), "one\nbase");
    let worktree = world.worktree("1/a");
    let common =
        world.git_in(&worktree, ["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    assert_eq!(common, world.repo.join(".git").display().to_string(), "the repository's again");
    assert_eq!(own(), 0, "the private directories of its commands");
    world.assert_clean();
}

fn doctor_says_that_landlock_guards() {
    let world = guarded();
    let guard = |document: serde_json::Value| {
        let mut findings =
            document["repository"]["findings"].as_array().unwrap().clone().into_iter();
        findings.find(|finding| finding["what"] == "guard").unwrap()["found"].to_string()
    };
    let without = without_namespaces(&world, "exec git frites doctor --json").expect(0).json();
    assert!(guard(without).contains("attempts are confined by Landlock"));
    let with = world.frites(["doctor", "--json"]).expect(0).json();
    assert!(guard(with).contains("attempts are guarded"));
}

fn an_agent_writes_its_own_state_and_no_other() {
    let mut world = guarded();
    world.set_env("XDG_CONFIG_HOME", world.home().join(".config"));
    let script = r#"#!/bin/sh
        cat > /dev/null
        refuses() { if (eval "$1") 2>>refusals; then echo "$1" >> written; fi; }
        case $FRITES_CANDIDATE in opencode-1) sibling=opencode-2;; *) sibling=opencode-1; esac
        refuses 'echo x > $XDG_DATA_HOME/../../../$sibling/agent/XDG_DATA_HOME/x'
        refuses 'echo x > $XDG_DATA_HOME/../../agent.toml'
        echo mine > $XDG_DATA_HOME/mine; echo mine > $XDG_CONFIG_HOME/mine; echo 1 >> README"#;
    let program = world.home().join("agent");
    crate::common::write(&program, script);
    crate::common::make_executable(&program);
    world.git(["config", "frites.agents.opencode.command", program.to_str().unwrap()]);
    without_namespaces(&world, "git frites spawn --agent opencode=2 -p x").expect(0);
    for name in ["opencode-1", "opencode-2"] {
        let state = world.repo.join(format!(".frites/runs/1/{name}/agent"));
        assert_eq!(fs::read_to_string(state.join("XDG_DATA_HOME/mine")).unwrap(), "mine\n");
        assert_eq!(fs::read_to_string(state.join("XDG_CONFIG_HOME/mine")).unwrap(), "mine\n");
        let files = world.git(["ls-tree", "--name-only", &format!("refs/frites/1/{name}")]);
        assert!(files.contains("refusals") && !files.contains("written"), "{files}");
    }
    world.assert_clean();
}

/// Landlock does not keep an attempt from changing the modes of a judged tree's files.
fn nothing_but_the_base_is_judged_while_attempts_work() {
    let mut world = guarded();
    world.set_env("FRITES_SANDBOX_MODE", "landlock");
    let run = "git frites run -j 1 -n 2 --test true -- sh -c 'echo 1 > README'";
    let told = without_namespaces(&world, run).expect(0).stderr;
    let why =
        "when all attempts have ended: attempts confined by Landlock alone can change the modes";
    assert!(told.contains(why), "{told}");
    let (_, afterwards) = told.split_once("1/c2: succeeded").unwrap();
    assert!(afterwards.contains("1/c1: test passed"), "{told}");
}
