//! Sealed worlds: oracle commands run at the path of the user's checkout, with the base's outputs,
//! and everything that they write is thrown away.
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::sealed::{sealed, stale_project};
use crate::common::spread::{on_node, open, replay, with_remote};
use crate::common::{World, kill, poll, write};
use crate::tool::{
    MAKE, NAMESPACES, SECCOMP, UNREADABLE_DIRECTORY, WITHOUT_LANDLOCK, trials, without_namespaces,
};
use crate::traces::{assert_untouched, shared_lines, user_files};

trials! {
    commands_run_at_the_path_of_the_users_checkout_on_the_candidates_files: [NAMESPACES];
    nothing_that_commands_write_is_left: [NAMESPACES];
    tracked_files_that_a_command_changes_in_a_plain_directory_are_named: [NAMESPACES];
    no_process_outlives_its_command_or_reaches_another: [NAMESPACES];
    candidates_are_judged_over_the_bases_outputs_and_the_winner_without_them: [NAMESPACES, MAKE];
    a_pass_that_only_a_stale_output_explains_does_not_win: [NAMESPACES, MAKE];
    a_failure_that_only_a_stale_output_explains_can_still_win: [NAMESPACES, MAKE];
    a_stale_output_is_named_also_after_a_further_round: [NAMESPACES, MAKE];
    without_the_network_there_is_the_loopback_device_alone: [NAMESPACES];
    a_repository_without_a_checkout_and_a_linked_worktree_have_worlds_too: [NAMESPACES];
    no_world_shows_anything_else_in_the_cache: [NAMESPACES];
    a_world_has_no_more_mounts_with_more_worktrees: [NAMESPACES];
    what_a_killed_judge_leaves_is_removed_by_the_next_command: [NAMESPACES];
    an_interrupted_judge_leaves_nothing_of_the_tree_that_it_prepared: [NAMESPACES];
    only_confirmed_results_can_be_landed_or_replayed: [NAMESPACES, MAKE];
    no_descriptor_of_a_command_leads_out_or_forges_its_end: [NAMESPACES];
    outputs_that_cannot_be_read_or_kept_stop_no_judging: [NAMESPACES, UNREADABLE_DIRECTORY];
    landing_is_judged_in_a_world_of_this_machine: [NAMESPACES];
    a_home_that_is_open_stays_open_over_what_the_base_left: [NAMESPACES];
    outcomes_of_different_worlds_are_never_mixed: [NAMESPACES];
    outcomes_of_a_world_that_nothing_confines_are_kept_only_if_the_user_wants_no_other: [NAMESPACES, SECCOMP];
}

fn commands_run_at_the_path_of_the_users_checkout_on_the_candidates_files() {
    let world = sealed();
    world.write("untracked", "of the user");
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo changed > README"]).expect(0);
    let script = r#"
        echo "$FRITES_RUN $PWD $(cat README) $(ls -A | tr '\n' ' ')" >> ~/shared/seen
        git status --porcelain >> ~/shared/status
        git log --format=%s -1 >> ~/shared/log
        test "$(git rev-parse --show-toplevel)" = "$PWD"
    "#;
    let answer = world.frites(["judge", "--json", "--test", script]).expect(0);
    let repo = world.repo.display();
    let base = format!(" {repo} hello .git README src ");
    let candidate = format!(" {repo} changed .git README src ");
    assert_eq!(shared_lines(&world, "seen"), [candidate, base]);
    assert_eq!(shared_lines(&world, "status"), [""; 0], "the judged tree is clean");
    assert_eq!(shared_lines(&world, "log"), ["base", "frites: judged tree"]);
    assert_eq!(answer.json()["terms"]["world"], "sealed");
    world.assert_clean();
}

fn tracked_files_that_a_command_changes_in_a_plain_directory_are_named() {
    let world = sealed();
    world.write("gone", "soon");
    world.commit("a file");
    world.attempts(&["echo changed > new"]);
    let changed = |test: &str| {
        let answer = world.frites(["judge", "--cold", "--no-cache", "--json", "--test", test]);
        answer.expect(0).json()["candidates"][0]["results"][0]["changed"].clone()
    };
    assert_eq!(changed("true"), Value::Null);
    let same = "cp README saved; cat saved > README; echo x > untracked";
    assert_eq!(changed(same), Value::Null, "only the times are new");
    let test = format!("{same}; echo more >> src/lib.txt; rm gone");
    assert_eq!(changed(&test), serde_json::json!(["gone", "src/lib.txt"]));
    world.assert_clean();
}

fn nothing_that_commands_write_is_left() {
    let mut world = sealed();
    world.set_env("CLAUDE_CONFIG_DIR", world.home().join("elsewhere"));
    write(&world.home().join("elsewhere/.credentials.json"), "token");
    // An attempt's agent refreshed this login when the variable had another value.
    let refreshed = world.home().join("once/.credentials.json");
    write(&refreshed, "token");
    world.attempts(&["echo made > README"]);
    write(&world.repo.join(".frites/refreshed-logins"), format!("{}\n", refreshed.display()));
    fs::create_dir(world.home().join(".ssh")).unwrap();
    fs::write(world.home().join(".ssh/id"), "secret").unwrap();
    for login in [".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json"] {
        write(&world.home().join(login), "token");
    }
    world.write(".gitignore", "node_modules\n");
    world.commit("ignore");
    world.write("node_modules/left.js", "mine");
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo changed > README"]).expect(0);
    let before = user_files(&world);
    let script = r#"
        cat ~/.ssh/id && exit 7
        cat ~/elsewhere/.credentials.json ~/once/.credentials.json ~/.claude/.credentials.json ~/.codex/auth.json ~/.gemini/oauth_creds.json | grep token && exit 7
        rm -rf ~/.ssh ~/.gitconfig ~/shared/.. node_modules 2>/dev/null
        echo x > ~/dropped; echo x > /tmp/dropped-by-a-test; echo x > dropped
        git config --file .git/config core.hooksPath /evil
        git -c user.name=x -c user.email=x@y commit -qam mine
        git branch -q forged; git update-ref -d refs/heads/main; git gc -q --prune=now
        git stash -q; echo x > .git/info/attributes
        touch /etc/dropped-by-a-test && exit 8
        mkdir -p src; echo rewritten > src/lib.txt
    "#;
    let answer = world.frites(["judge", "--test", &format!("{script}\ntrue")]).expect(0);
    assert_untouched(&world, &before);
    assert!(!PathBuf::from("/tmp/dropped-by-a-test").exists());
    assert!(!answer.stderr.contains("while"), "nothing changed outside: {}", answer.stderr);
    assert!(answer.out().contains("oracle wrote"), "{}", answer.out());
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn no_process_outlives_its_command_or_reaches_another() {
    let world = sealed();
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo changed > README"]).expect(0);
    let script = r#"
        setsid sh -c 'trap "" TERM HUP; sleep 1000' &
        (setsid sleep 1000 &)
        kill -STOP 1; kill -KILL 1
        ls /proc | grep -c '^[0-9]' > ~/shared/processes
    "#;
    let answer = world.frites(["judge", "--json", "--test", script]);
    let sleeps = answer.json();
    assert_eq!(sleeps["candidates"][0]["results"][0]["leaky"], true, "{sleeps}");
    let few: u32 = shared_lines(&world, "processes")[0].parse().unwrap();
    assert!(few < 10, "the machine's processes cannot be seen: {few}");
    world.assert_clean();
}

fn candidates_are_judged_over_the_bases_outputs_and_the_winner_without_them() {
    let world = stale_project();
    let change = "echo more >> a.src; test $FRITES_CANDIDATE = x || echo more >> a.src";
    world.frites(["spawn", "-c", "x", "-c", "y", "--", "sh", "-c", change]).expect(0);
    let answer = world.frites(["judge", "--json", "--test", "make -s test"]).expect(0);
    let verdict = answer.json();
    assert_eq!(verdict["recommended"], "x");
    // The base compiles both sources, each candidate the one that it changed, and the winner both
    // again.
    let a = "a.obj";
    let b = "b.obj";
    assert_eq!(shared_lines(&world, "compiled"), [a, a, a, a, b, b]);
    let warm = |at: usize| verdict["candidates"][at]["results"][0]["warm"].clone();
    assert_eq!([warm(0), warm(1)], [Value::Null, true.into()]);
    let calls = world.frites(["judge", "-v", "--test", "make -s test"]).expect(0).stderr;
    assert!(!calls.contains("read-tree"), "what is cached needs no checkout:\n{calls}");
    assert_eq!(shared_lines(&world, "compiled").len(), 6);
    // The next judging finds the outputs in the cache directory.
    world.frites(["judge", "--no-cache", "--test", "make -s test"]).expect(0);
    assert_eq!(shared_lines(&world, "compiled").len(), 6 + 4, "nothing for the base");
    world.frites(["judge", "--no-cache", "--cold", "--test", "make -s test"]).expect(0);
    assert_eq!(shared_lines(&world, "compiled").len(), 10 + 6, "all sources of three trees");
    let outputs = || {
        let document = world.frites(["status", "--disk", "--json"]).expect(0).json();
        document["cache"]["layers"].as_u64().unwrap()
    };
    assert!(outputs() > 0);
    let freed = world.frites(["clean", "--cache", "--all"]).expect(0).out();
    assert!(freed.starts_with("freed ") && !freed.starts_with("freed 0"), "{freed}");
    assert_eq!(outputs(), 0);
    world.frites(["judge", "--test", "make -s test"]).expect(0);
    assert_eq!(shared_lines(&world, "compiled").len(), 16 + 6, "nothing was cached");
    world.assert_clean();
}

/// The message before candidates are judged a second time.
const ONCE_MORE: &str = "are judged once more, without the base's build outputs: ";

fn a_pass_that_only_a_stale_output_explains_does_not_win() {
    let world = stale_project();
    // The smaller change deletes a source that is needed; its object is left over from the base.
    let change =
        "case $FRITES_CANDIDATE in x) rm b.src;; y) echo 1 >> a.src; echo 2 >> a.src;; esac";
    world.frites(["spawn", "-c", "x", "-c", "y", "--", "sh", "-c", change]).expect(0);
    let answer = world.frites(["judge", "--json", "--test", "make -s test"]).expect(0);
    let verdict = answer.json();
    assert_eq!(verdict["recommended"], "y", "{verdict:#}");
    let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
    assert!(stale.starts_with("stale build output: with the base's outputs it passed"), "{stale}");
    let (over_outputs, once_more) = answer.stderr.split_once(ONCE_MORE).unwrap();
    for name in ["1/x", "1/y"] {
        let passed = format!("{name}: test passed");
        assert!(over_outputs.contains(&passed), "{}", answer.stderr);
        assert_eq!(once_more.contains(&passed), name == "1/y", "{}", answer.stderr);
    }
    let table = world.frites(["judge", "--replay"]).expect(0);
    assert!(table.out().contains("stale build output"), "{}", table.out());
    world.assert_clean();
}

fn a_failure_that_only_a_stale_output_explains_can_still_win() {
    let world = stale_project();
    world.write("broken.src", "broken\n");
    world.write(
        "Makefile",
        "test:\n\ttest ! -e left.obj || ! grep -q fixed a.src\n\tcp a.src left.obj\n",
    );
    world.commit("a test that an old output breaks");
    let change = "test $FRITES_CANDIDATE = x || echo more >> a.src; echo fixed >> a.src";
    world.frites(["spawn", "-c", "x", "-c", "y", "--", "sh", "-c", change]).expect(0);
    let answer = world.frites(["judge", "--json", "--test", "make -s test"]).expect(0);
    let verdict = answer.json();
    assert_eq!(verdict["recommended"], "x", "{verdict:#}");
    let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
    assert!(stale.contains("with the base's outputs it ended at test: exit 2"), "{stale}");
    world.assert_clean();
}

fn a_stale_output_is_named_also_after_a_further_round() {
    let world = stale_project();
    let change = "case $FRITES_CANDIDATE in
        x) rm -f b.src;;
        y) if grep -q needed b.src; then echo broken > b.src; else echo needed > b.src; echo 1 >> a.src; fi;;
        esac";
    let run = ["run", "--json", "--rounds", "1", "--test", "make -s test", "-c", "x", "-c", "y"];
    let verdict = world.frites([&run[..], &["--", "sh", "-c", change]].concat()).expect(0).json();
    assert_eq!(verdict["recommended"], "y", "{verdict:#}");
    let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
    assert!(
        stale.starts_with("stale build output: with the base's outputs it passed"),
        "{verdict:#}"
    );
    world.assert_clean();
}

fn without_the_network_there_is_the_loopback_device_alone() {
    let mut world = sealed();
    world.set_env("FRITES_SANDBOX_NETWORK", "false");
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo changed > README"]).expect(0);
    let script = "grep -c : /proc/net/dev > ~/shared/devices; grep lo: /proc/net/dev";
    world.frites(["judge", "--test", script]).expect(0);
    assert_eq!(shared_lines(&world, "devices"), ["1"]);
}

fn a_repository_without_a_checkout_and_a_linked_worktree_have_worlds_too() {
    let world = sealed();
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    let bare = world.home().join("bare.git");
    world.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    for dir in [linked, bare] {
        world
            .run(&dir, "git", ["frites", "spawn", "-c", "a", "--", "sh", "-c", "echo 1 > README"])
            .expect(0);
        let script =
            "test -z \"$(git status --porcelain)\" && git log -1 --format=%s && cat README";
        let answer =
            world.run(&dir, "git", ["frites", "judge", "--json", "--test", script]).expect(0);
        assert_eq!(answer.json()["terms"]["world"], "sealed");
    }
}

fn no_world_shows_anything_else_in_the_cache() {
    let world = sealed();
    let test = r#"
        find ~/cache -name README -o -name HEAD > all
        ! grep -v -e "^$PWD/" -e "^$(git rev-parse --git-common-dir)/" all"#;
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("configured");
    let url = with_remote(&world);
    world.attempts(&["echo 1 > README", "echo 2 > README"]);
    open(&world);
    let both = serde_json::json!(["c1", "c2"]);
    // A mirror is in the cache, and so is the directory in place of a missing checkout.
    on_node(&world, &url, &["judge", "-j", "2", "1", "1/1"]).expect(0);
    let collected = replay(&world, &["--json"]).expect(0).json();
    assert_eq!(collected["passed"], both, "{collected:#}");
    let bare = world.home().join("bare.git");
    world.git(["clone", "-q", "--mirror", ".", bare.to_str().unwrap()]);
    for dir in [&bare, &world.repo] {
        let judge = ["judge", "-j", "2", "--no-cache", "--json", "--test", test, "1"];
        let verdict = world.frites_in(dir, judge).expect(0).json();
        assert_eq!(verdict["passed"], both, "{verdict:#}");
        assert_eq!(verdict["terms"]["world"], "sealed");
    }
    world.assert_clean();
}

fn a_world_has_no_more_mounts_with_more_worktrees() {
    let world = sealed();
    for attempts in ["1", "6"] {
        let change = "echo $FRITES_CANDIDATE > README";
        world.frites(["spawn", "-n", attempts, "--", "sh", "-c", change]).expect(0);
        let script = "wc -l < /proc/self/mountinfo >> ~/shared/mounts";
        world.frites(["judge", "--test", script]).expect(0);
    }
    let mut mounts = shared_lines(&world, "mounts");
    assert!(mounts.len() > 2, "{mounts:?}");
    mounts.dedup();
    assert_eq!(mounts.len(), 1, "{mounts:?}");
}

fn what_a_killed_judge_leaves_is_removed_by_the_next_command() {
    let world = sealed();
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo changed > README"]).expect(0);
    let script = "mkfifo ~/shared/started 2>/dev/null
        git-frites judge --test 'grep -q hello README || { echo > ~/shared/started; sleep 4321; }' &
        read line < ~/shared/started
        kill -KILL $!; wait $! || :
        while pgrep -f '^sleep 4321$'; do :; done";
    world.sh(&world.repo, script).expect(0);
    world.frites(["judge", "--test", "true"]).expect(0);
    world.assert_clean();
}

/// The number of trees whose checkouts for sealed worlds are whole.
fn prepared(world: &World) -> usize {
    let rooms = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let repositories = rooms(&world.home().join("cache/git-frites"));
    let worlds = repositories.flat_map(|repository| rooms(&repository.join("worlds")));
    worlds.filter(|room| room.join("git/index").exists()).count()
}

fn an_interrupted_judge_leaves_nothing_of_the_tree_that_it_prepared() {
    let world = sealed();
    world.attempts(&["echo 1 > README", "echo 2 > README", "echo 3 > README"]);
    let test = "grep -q hello README || { cat README >> ~/shared/began; sleep 4323; }";
    let judge = ["judge", "--test", test];
    let mut child = world.command(&world.repo, "git-frites", judge).spawn().unwrap();
    poll(|| shared_lines(&world, "began").len() == 1 && prepared(&world) == 2);
    assert!(kill(["-INT", &child.id().to_string()]));
    child.wait().unwrap();
    assert_eq!(shared_lines(&world, "began"), ["1"], "one command at a time");
    assert_eq!(prepared(&world), 0);
    world.assert_clean();
}

fn only_confirmed_results_can_be_landed_or_replayed() {
    let world = stale_project();
    world.attempts(&["echo 1 >> a.src", "seq 2 >> a.src"]);
    world.frites(["judge", "--test", "make -s test"]).expect(0);
    let refused = world.frites(["apply", "1/c2"]).refuses(
        1,
        "nothing verified to land: 1/c2 passed with what the base's commands left behind, and was not judged without it",
    );
    let again = "confirm it: `git frites judge 1 --cold --test 'make -s test'`";
    assert!(refused.stderr.contains(again), "{}", refused.stderr);
    world.frites(["apply", "--no-switch", "1"]).expect(0);
}

fn no_descriptor_of_a_command_leads_out_or_forges_its_end() {
    let world = sealed();
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo changed > README"]).expect(0);
    let script = r#"
        ls /proc/$$/fd > ~/shared/open
        for n in 3 4 5 6 7 8 9; do
            (eval "echo '{\"exited\":{\"code\":0,\"signal\":null}}' >&$n") 2>/dev/null
        done
        exit 5
    "#;
    // `exec 9<` in the shell that starts git-frites is inherited by all of its children.
    let judge = format!("exec 9< .; git frites judge --test '{}'", script.replace('\'', "'\\''"));
    let answer = world.sh(&world.repo, &judge).expect(1);
    assert!(answer.out().contains("exit 5"), "{}", answer.out());
    // No pipe in the script: a shell has both ends of one open until it has started all commands of
    // it. dash reads its script from 10.
    let mut open = shared_lines(&world, "open");
    open.retain(|n| n != "10");
    assert_eq!(open, ["0", "1", "2"]);
    world.assert_clean();
}

/// The base's commands leave a directory that nobody may read, and put a directory in the place of
/// a tracked file.
fn outputs_that_cannot_be_read_or_kept_stop_no_judging() {
    let world = sealed();
    world.attempts(&["echo changed > src/lib.txt"]);
    let test = "mkdir -p out/unreadable; echo x > out/unreadable/x; chmod 0 out/unreadable
        grep -q hello README; rm README; mkdir README; echo x > README/x";
    // Root reads everything, but without these capabilities.
    let words =
        ["--bounding-set=-dac_override,-dac_read_search", "git", "frites", "judge", "--test"];
    let judge = words.into_iter().chain([test]);
    let answer = world.run(&world.repo, "setpriv", judge.clone()).expect(0);
    assert!(answer.out().contains("oracle wrote"), "{}", answer.out());
    let answer = world.run(&world.repo, "setpriv", judge.chain(["--no-cache"])).expect(0);
    assert!(!answer.stderr.contains("warning: "), "{}", answer.stderr);
    world.assert_clean();
}

/// A verdict may come from another machine, and the configuration may have changed since.
fn landing_is_judged_in_a_world_of_this_machine() {
    let mut world = sealed();
    world.attempts(&["echo changed > README"]);
    let test = "pwd >> \"$HOME/shared/places\"";
    world.frites(["judge", "--test", test]).expect(0);
    let place = world.repo.display().to_string();
    assert_eq!(shared_lines(&world, "places"), [place.as_str(), place.as_str()]);
    world.write("other", "moved");
    world.commit("main has moved");
    world.set_env("FRITES_SANDBOX_MODE", "off");
    world.frites(["apply"]).expect(0);
    let places = shared_lines(&world, "places");
    assert_eq!(places.iter().filter(|line| **line == place).count(), 2, "{places:?}");
    assert_eq!(places.len(), 3, "the merged tree was judged below the cache directory");
    world.assert_clean();
}

/// What the base leaves in the home directory becomes a layer of it, on which the candidates' lies.
fn a_home_that_is_open_stays_open_over_what_the_base_left() {
    let mut world = sealed();
    world.set_env("FRITES_SANDBOX_WRITE", world.home());
    world.attempts(&["echo changed > README", "echo more > README; echo x > new"]);
    world.frites(["judge", "--test", "echo x >> ~/shared/seen; echo x > left"]).expect(0);
    // The base, both candidates with its outputs, and the recommended one without them.
    assert_eq!(shared_lines(&world, "seen"), ["x"; 4]);
}

fn outcomes_of_different_worlds_are_never_mixed() {
    let mut world = sealed();
    world.attempts(&["echo changed > README", "echo more > README; echo x > new"]);
    let part = |world: &World, name| {
        world.frites(["judge", "--candidate", name, "--test", "true"]).expect(0).out()
    };
    let table = part(&world, "c1");
    assert!(table.contains("the commands ran in sealed worlds\n"), "{table}");
    world.set_env("FRITES_SANDBOX_MODE", "off");
    let table = part(&world, "c2");
    assert!(table.contains("the commands ran unconfined, in the open world\n"), "{table}");
    let replay = ["judge", "--replay", "--json", "--test", "true"];
    world.frites(replay).refuses(
        128,
        "1/c2 was judged on other terms than those given here: its commands ran unconfined, in the open \
         world, but those of other outcomes ran in sealed worlds",
    );
    // The deciding side may insist on a world, too.
    world.set_env("FRITES_SANDBOX_MODE", "landlock");
    world.frites(replay).refuses(
        128,
        "1/c1 was judged on other terms than those given here: its commands ran in sealed worlds, and \
         here sandbox.mode is landlock",
    );
    world.set_env("FRITES_SANDBOX_MODE", "required");
    part(&world, "c2");
    let verdict = world.frites(replay).expect(0).json();
    assert_eq!(verdict["terms"]["world"], "sealed");
    // So does a part beside a verdict that was reached here.
    world.set_env("FRITES_SANDBOX_MODE", "off");
    part(&world, "c2");
    world.frites(replay).refuses(128, "1/c2 was judged on other terms than those given here");
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    let verdict = world.frites(["judge", "--test", "true"]).expect(0).out();
    assert!(verdict.contains("the commands ran in sealed worlds\n"), "{verdict}");
    world.frites(["apply", "--no-switch", "-m", "land"]).expect(0);
    let message = world.git(["log", "-1", "--format=%B", "frites/apply/1"]);
    assert!(message.contains("\nFrites-World: sealed\n"), "{message}");
    world.assert_clean();
}

/// Code under test can write to the cache directory where nothing confines it.
fn outcomes_of_a_world_that_nothing_confines_are_kept_only_if_the_user_wants_no_other() {
    let world = sealed();
    world.attempts(&["echo changed > README"]);
    let judge = |mode: &str| {
        let judge = format!("python3 -c '{WITHOUT_LANDLOCK}' git frites judge --json --test true");
        let judge = format!("FRITES_SANDBOX_MODE={mode} {judge}");
        let verdict = without_namespaces(&world, &judge).expect(0).json();
        assert_eq!(verdict["terms"]["world"], "open");
        verdict["effort"]["saved_cached"].as_u64().unwrap()
    };
    assert_eq!(judge("auto"), 0);
    assert_eq!(judge("auto"), 0, "nothing was kept");
    assert_eq!(judge("off"), 0);
    assert_eq!(judge("off"), 1);
    assert_eq!(judge("auto"), 0, "what was kept is not used");
    world.assert_clean();
}
