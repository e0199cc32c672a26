//! Removal by age with `clean`: what expires, what is kept, and what a dry run announces.
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{World, poll};

fn there(world: &World, addresses: &[&str]) -> Vec<bool> {
    addresses.iter().map(|a| world.worktree(a).exists()).collect()
}

#[test]
fn worktrees_expire_by_age_and_state() {
    let world = World::new();
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", "echo x > x; exit 1"]).expect(4);
    world.attempts(&["echo open > open", "echo kept > kept"]);
    world.attempts(&["echo landed > landed"]);
    world.frites(["judge", "-q", "--test", "true", "3"]).expect(0);
    world.frites(["apply", "-q", "--merge", "3"]).expect(0);
    world.frites(["clean", "--keep", "2/c2"]).expect(0);
    let all = ["1/c1", "2/c1", "2/c2", "3/c1"];
    let answer = world.frites(["clean", "--expired"]).expect(0);
    assert_eq!(
        (answer.out().as_str(), answer.stderr.as_str()),
        ("freed 0 B\n", "nothing has expired\n")
    );
    assert_eq!(there(&world, &all), [true; 4], "nothing is old by the defaults");
    for (key, gone) in [
        ("failed", [false, true, true, true]),
        ("landed", [false, true, true, false]),
        ("abandoned", [false, false, true, false]),
    ] {
        world.git(["config", &format!("frites.retention.{key}"), "1ms"]);
        let before = world.git(["for-each-ref"]);
        let dry = world.frites(["clean", "--expired", "-n"]).expect(0).out();
        assert_eq!(dry.matches("would remove ").count(), 1, "{key}: {dry}");
        assert_eq!(world.git(["for-each-ref"]), before);
        world.frites(["clean", "--expired"]).expect(0);
        assert_eq!(there(&world, &all), gone, "{key}");
    }
    // Captures stay, the uncaptured included.
    for (address, file) in [("1/c1", "x"), ("2/c1", "open"), ("3/c1", "landed")] {
        world.git(["show", &format!("refs/frites/{address}:{file}")]);
    }
    let status = world.frites(["status", "--json"]).expect(0).json();
    let landings: Vec<_> =
        (0..3).map(|run| status["runs"][run]["candidates"][0]["landing"].clone()).collect();
    assert_eq!(landings, ["discarded", "discarded", "merged"]);
    world.frites(["clean", "--no-keep", "2/c2"]).expect(0);
    world.frites(["clean", "--expired", "2"]).expect(0);
    assert_eq!(there(&world, &all), [false; 4]);
    world.assert_clean();
}

#[test]
fn recent_work_keeps_a_worktree_from_expiring() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo y > y"]);
    world.git(["config", "frites.retention.abandoned", "300ms"]);
    poll(|| world.frites(["clean", "--expired", "-n"]).out().contains("1/c2"));
    fs::write(world.worktree("1/c1/README"), "at work\n").unwrap();
    let out = world.frites(["clean", "--expired"]).expect(0).out();
    assert!(out.contains("removed 1/c2 (") && !out.contains("1/c1"), "{out}");
    world.assert_clean();
}

#[test]
fn kept_candidate_is_shown_and_removed_only_by_name() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo y > y"]);
    assert_eq!(world.frites(["clean", "--keep", "1/c1"]).expect(0).out(), "kept 1/c1\n");
    assert!(world.frites(["status"]).expect(0).out().contains("pending, kept"));
    let status = world.frites(["status", "--json"]).expect(0).json();
    assert_eq!(
        (0..2).map(|i| status["runs"][0]["candidates"][i]["kept"].clone()).collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(there(&world, &["1/c1", "1/c2"]), [true, true]);
    world.frites(["clean", "--keep", "--expired"]).refuses(2, "cannot be used with");
    world.frites(["clean", "--forget", "--expired"]).refuses(2, "cannot be used with");
    for whole in [&["clean", "-n"][..], &["clean"], &["clean", "--all"], &["clean", "1"]] {
        let answer = world.frites(whole).expect(0);
        assert!(answer.stderr.contains("1/c1 stays, because it is kept"), "{answer:?}");
        assert!(answer.stderr.contains("hint: `git frites clean 1/c1` removes"), "{answer:?}");
        assert!(there(&world, &["1/c1"])[0]);
    }
    assert_eq!(there(&world, &["1/c1", "1/c2"]), [true, false]);
    for forget in [&["clean", "--forget", "1"][..], &["clean", "--forget", "--all"]] {
        world.frites(forget).refuses(1, "1/c1 is kept, so nothing is forgotten");
    }
    world.frites(["clean", "1/c1"]).expect(0);
    assert_eq!(there(&world, &["1/c1", "1/c2"]), [false, false]);
    world.frites(["clean", "--forget", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn dry_run_names_refusals_and_writes_nothing() {
    let cases = [
        ("mkfifo pipe", "'pipe' (a FIFO)"),
        ("git init -q nested; echo x > nested/x", "'nested' (a nested repository)"),
        ("echo '*.log' >> .gitignore; echo work > work.log", "such as 'work.log'"),
        (
            "git switch -q --detach; git worktree add -q ../../../../elsewhere frites/run/1/c2",
            "is checked out in",
        ),
    ];
    for (script, words) in cases {
        let world = World::new();
        world.attempts(&["echo a > a", script, "echo b > b"]);
        let state = || {
            let git = crate::common::files_below(&world.repo.join(".git"));
            let private = fs::read(world.repo.join(".frites/runs/1/c2/index")).unwrap();
            (world.git(["for-each-ref"]), World::files_of(&world.worktree("1/c1")), git, private)
        };
        let before = state();
        let answer = world.frites(["clean", "-n"]).refuses(1, words);
        assert!(
            answer.out().contains("would remove 1/c1 (")
                && answer.out().contains("would remove 1/c3 (")
        );
        assert!(!answer.out().contains("1/c2"), "{}", answer.out());
        assert_eq!(state(), before, "{script}");
        world.frites(["clean"]).refuses(1, words);
        assert_eq!(there(&world, &["1/c1", "1/c2", "1/c3"]), [false, true, false]);
    }
}

#[test]
fn landing_states_survive_the_loss_of_every_file() {
    let world = World::new();
    world.judged("true", &["echo a > a.txt", "echo bb > b.txt; echo more >> b.txt"]);
    world.frites(["apply", "--undo", "1/c1"]).refuses(1, "1/c1 has not landed");
    world.frites(["apply"]).expect(0);
    world.frites(["apply", "--undo"]).expect(0);
    world.frites(["clean", "1"]).expect(0);
    let landings = || -> Vec<String> {
        let status = world.frites(["status", "--json", "1"]).expect(0).json();
        let candidates = status["runs"][0]["candidates"].as_array().unwrap();
        candidates.iter().map(|c| c["landing"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(landings(), ["undone", "discarded"]);
    let lose = || fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    lose();
    assert_eq!(landings(), ["undone", "discarded"]);
    // A discarded candidate can still land, and is discarded no longer.
    world.frites(["apply", "-m", "x", "1/c2"]).expect(0);
    assert_eq!(landings(), ["undone", "landed"]);
    lose();
    assert_eq!(landings(), ["undone", "landed"]);
    // A staged landing has no commit at all.
    let world = World::new();
    world.judged("true", &["echo a > a.txt", "echo bb > b.txt; echo more >> b.txt"]);
    let remote = world.home().join("remote");
    world.git(["init", "-q", "--bare", remote.to_str().unwrap()]);
    let push =
        || world.git(["push", "-q", remote.to_str().unwrap(), "refs/frites/*:refs/frites/*"]);
    world.frites(["clean", "1"]).expect(0);
    push();
    world.frites(["apply", "1/c1"]).expect(0);
    push();
    let landed = world.first_candidate("1");
    let intent = fs::read(world.repo.join(".frites/runs/1/c1/landed.toml")).unwrap();
    fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    let now = world.first_candidate("1");
    assert_eq!(
        (&now["landing"], &now["landing_branch"]),
        (&"landed".into(), &landed["landing_branch"])
    );
    world.git(["switch", "-q", "-f", "main"]);
    world
        .frites(["apply", "--undo", "1/c1"])
        .refuses(1, "no record says at which commit 'frites/apply/1' was made");
    world.write(".frites/runs/1/c1/landed.toml", intent);
    world.frites(["apply", "--undo", "1/c1"]).expect(0);
    assert_eq!(world.first_candidate("1")["landing"], "undone");
    // The ref moves forward only, so no push needs force.
    push();
    fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    assert_eq!(world.first_candidate("1")["landing"], "undone");
    world.assert_clean();
}

#[test]
fn candidate_that_is_made_again_is_no_longer_discarded() {
    let world = World::new();
    let wait = "test -e ../../../../../go || kill -9 $PPID; echo x > x.txt";
    let run = world.frites(["spawn", "-n", "1", "--", "sh", "-c", wait]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let landing = || world.first_candidate("1")["landing"].clone();
    world.frites(["clean", "1"]).expect(0);
    assert_eq!(landing(), "discarded");
    world.write("../go", "");
    world.frites(["run", "--resume", "1", "--test", "true"]).expect(0);
    assert_eq!(landing(), "pending");
    world.assert_clean();
}

#[test]
fn expired_worktrees_go_in_the_background_at_most_once_per_interval() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo kept > kept"]);
    world.attempts(&["mkfifo pipe"]);
    world.frites(["clean", "--keep", "1/c2"]).expect(0);
    let log = world.repo.join(".frites/auto-clean.log");
    let told = || fs::read_to_string(&log).unwrap_or_default();
    let age = || world.sh(&world.repo, "touch -d '2 hours ago' .frites/auto-clean.log").expect(0);
    world.git(["config", "frites.retention.abandoned", "1ms"]);
    world.frites(["diff", "1"]).expect(0);
    assert!(!log.exists(), "it is off by default");
    world.git(["config", "frites.clean.auto", "1h"]);
    world.frites(["status", "1"]).expect(0);
    assert!(!log.exists(), "a command that only looks starts nothing");
    world.frites(["diff", "1"]).expect(0);
    poll(|| told().contains("freed"));
    assert_eq!(there(&world, &["1/c1", "1/c2", "2/c1"]), [false, true, true], "{}", told());
    assert!(told().contains("2/c1 has files that cannot be captured: "), "{}", told());
    assert_eq!(world.git(["show", "refs/frites/1/c1:x"]), "x");
    // Not again within the hour.
    let first = told();
    world.attempts(&["echo y > y"]);
    world.frites(["diff", "3"]).expect(0);
    assert_eq!(told(), first);
    assert_eq!(there(&world, &["3/c1"]), [true]);
    // Not by the command of an attempt, which would end it; but by what comes after it.
    age();
    let script = "git frites diff 1 > /dev/null; cp ../../../auto-clean.log seen";
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).expect(0);
    poll(|| told() != first && told().contains("freed"));
    assert_eq!(world.git(["show", "refs/frites/4/c1:seen"]), first.trim_end());
    assert_eq!(there(&world, &["3/c1", "1/c2", "2/c1"]), [false, true, true], "{}", told());
    world.git(["config", "frites.clean.auto", "soon"]);
    world.frites(["diff", "1"]).refuses(128, "'clean.auto' takes \"off\", or a duration");
    world.git(["config", "frites.clean.auto", "off"]);
    age();
    let old = told();
    world.frites(["diff", "1"]).expect(0);
    assert_eq!(told(), old);
    world.assert_clean();
}

#[test]
fn cached_outcomes_are_removed_and_nothing_else() {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    let ran = || {
        let json = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
        json["effort"]["ran"].as_u64().unwrap()
    };
    assert_eq!((ran(), ran()), (1, 0));
    let dry = world.frites(["clean", "--cache", "-n"]).expect(0).out();
    assert!(dry.starts_with("would free ") && dry.contains("of the cache"), "{dry}");
    assert_eq!(ran(), 0);
    let json = world.frites(["clean", "--cache", "--json"]).expect(0).json();
    assert!(json["cache"].as_u64().unwrap() > 0, "{json}");
    let left = "find \"$XDG_CACHE_HOME\"/git-frites/*/outcomes \"$XDG_CACHE_HOME\"/git-frites/*/layers -mindepth 1 -type d 2> /dev/null";
    assert_eq!(world.sh(&world.repo, left).out(), "");
    assert_eq!(ran(), 1);
    assert_eq!(there(&world, &["1/c1"]), [true]);
    world.frites(["clean", "--cache", "1"]).refuses(2, "cannot be used with");
    world.frites(["clean", "--cache"]).expect(0);
    assert_eq!(world.frites(["clean", "--cache"]).expect(0).out(), "freed 0 B of the cache\n");
    world.assert_clean();
}

/// A second repository of the user, with one candidate.
fn another_repository(world: &World) -> PathBuf {
    let other = world.home().join("another repository");
    world.git([OsStr::new("clone"), OsStr::new("-q"), OsStr::new("."), other.as_os_str()]);
    world.frites_in(&other, ["spawn", "-n", "1", "--", "sh", "-c", "echo y > y"]).expect(0);
    other
}

#[test]
fn cache_of_all_repositories_is_shown_and_emptied() {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    let other = another_repository(&world);
    let ran_in = |dir: &Path| {
        let json = world.frites_in(dir, ["judge", "--json", "--test", "true"]).expect(0).json();
        json["effort"]["ran"].as_u64().unwrap()
    };
    let ran = || [ran_in(&world.repo), ran_in(&other)];
    assert_eq!((ran(), ran()), ([1, 1], [0, 0]));
    let cached = || {
        let document = world.frites(["status", "--disk", "--json"]).expect(0).json();
        ["layers", "outcomes"].map(|kind| document["cache"][kind].as_u64().unwrap())
    };
    let of_both = cached();
    world.git(["config", "frites.limits.layers", "3GiB"]);
    let answer = world.frites(["status", "--disk"]).expect(0);
    let line = answer.out().lines().last().unwrap_or_default().to_owned();
    assert!(line.starts_with("cache of all your repositories: build outputs "), "{line}");
    assert!(line.contains(" of at most 3.0 GiB, outcomes "), "{line}");
    let hint = "hint: `git frites clean --cache --all` empties it";
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    assert!(!world.frites(["status"]).expect(0).out().contains("cache of all"));

    world.frites(["clean", "--cache"]).expect(0);
    let of_other = cached();
    assert!(0 < of_other[1] && of_other[1] < of_both[1], "{of_both:?}, {of_other:?}");
    assert_eq!(ran(), [1, 0]);
    world.frites(["clean", "--cache", "--all", "-n"]).expect(0);
    assert_eq!(cached(), of_both);
    world.frites(["clean", "--cache", "--all"]).expect(0);
    assert_eq!(cached(), [0, 0]);
    assert_eq!(ran(), [1, 1]);
    world.assert_clean();
}

#[test]
fn cache_of_a_repository_that_is_gone_goes_with_the_next_judging() {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    let other = another_repository(&world);
    let caches = || {
        let homes =
            fs::read_dir(Path::new(&world.env("XDG_CACHE_HOME")).join("git-frites")).unwrap();
        homes.filter(|home| home.as_ref().unwrap().path().join("outcomes").exists()).count()
    };
    world.frites_in(&other, ["judge", "--test", "true"]).expect(0);
    world.frites(["judge", "--test", "true"]).expect(0);
    assert_eq!(caches(), 2, "both repositories are there");
    fs::remove_dir_all(&other).unwrap();
    world.frites(["status"]).expect(0);
    assert_eq!(caches(), 2, "a command that only reads removes nothing");
    world.frites(["judge", "--test", "true"]).expect(0);
    assert_eq!(caches(), 1);
    world.assert_clean();
}

#[test]
fn worktree_is_locked_while_a_command_runs_in_it() {
    let world = World::new();
    let script = "git worktree list --porcelain > list; git worktree remove --force . 2> refused || echo $? > code";
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).expect(0);
    let show = |file: &str| world.git(["show", &format!("refs/frites/1/c1:{file}")]);
    assert!(
        show("list").contains("locked git-frites: the command of 1/c1 runs here"),
        "{}",
        show("list")
    );
    assert!(show("refused").contains("git-frites: the command of 1/c1 runs here"));
    let lock = world.repo.join(".git/worktrees/c1/locked");
    assert!(!lock.exists());
    // A lock of the user stays.
    let path = world.worktree("1/c1");
    world.git(["worktree", "lock", "--reason", "mine", path.to_str().unwrap()]);
    world.frites(["retry", "1/c1", "--", "sh", "-c", "echo again > again"]).expect(0);
    assert_eq!(fs::read_to_string(&lock).unwrap(), "mine\n");
    world.git(["worktree", "unlock", path.to_str().unwrap()]);
    // That of a killed process goes with the next command.
    let wait = "touch \"$HOME/started\"; exec sleep 600";
    let words = ["retry", "1/c1", "--", "sh", "-c", wait];
    let mut command = world.command(&world.repo, "git-frites", words);
    let mut running = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    poll(|| world.home().join("started").exists());
    assert!(lock.exists());
    running.kill().unwrap();
    running.wait().unwrap();
    let answer = world.frites(["status"]).expect(0);
    assert!(
        answer.stderr.contains("run 1 was interrupted while its commands ran"),
        "{}",
        answer.stderr
    );
    assert!(!lock.exists());
    world.assert_clean();
}
