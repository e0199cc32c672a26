//! Attempts that break what they stand on, and what git-frites itself cannot do: the run goes on,
//! every record says what is so, and nothing is left half done.
use std::fs;
use std::os::unix::fs::symlink;

use crate::common::World;
use crate::common::sealed::confined;

/// The candidates of a run as `status --json` tells of them: name, state and reason.
fn told(world: &World, run: &str) -> Vec<String> {
    let json = world.frites(["status", "--json", run]).expect(0).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    let candidates = json["runs"][0]["candidates"].as_array().unwrap();
    candidates
        .iter()
        .map(|c| ["candidate", "state", "reason"].map(|key| text(&c[key])).join(" "))
        .collect()
}

#[test]
fn state_behind_a_link_is_refused_before_anything_is_made() {
    for name in [".frites", ".frites/worktrees"] {
        let world = World::new();
        let elsewhere = world.home().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir_all(world.repo.join(name).parent().unwrap()).unwrap();
        symlink(&elsewhere, world.repo.join(name)).unwrap();
        let link = world.repo.join(name).display().to_string();
        let answer =
            world.frites(["run", "-n", "1", "--test", "true", "--", "sh", "-c", "echo x > x"]);
        let answer = answer.refuses(128, &format!("'{link}' is a symbolic link"));
        let hint =
            "hint: to have worktrees elsewhere: `git config frites.spawn.worktree-root DIR`\n";
        assert!(answer.stderr.ends_with(hint), "{}", answer.stderr);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        fs::remove_file(world.repo.join(name)).unwrap();
        world.git(["config", "frites.spawn.worktree-root", elsewhere.to_str().unwrap()]);
        world
            .frites(["run", "-n", "1", "--test", "true", "--", "sh", "-c", "echo x > x"])
            .expect(0);
    }
}

#[test]
fn file_in_the_place_of_state_or_settings_is_refused_and_stays() {
    for name in [".frites", ".frites/worktrees"] {
        let world = World::new();
        world.write(name, "the user's\n");
        let path = world.repo.join(name);
        for command in [&["spawn", "-n", "1"][..], &["status"], &["judge"]] {
            let message = format!("'{}' is not a directory", path.display());
            world.frites(command).refuses(128, &message);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "the user's\n");
    }
    let world = World::new();
    symlink("nowhere", world.repo.join(".frites.toml")).unwrap();
    world.frites(["spawn", "-n", "1"]).refuses(128, ".frites.toml' is a link to nothing");
    assert!(!world.repo.join(".frites").exists());
    world.write("nowhere", "limits.candidates = 1\n");
    world.frites(["spawn", "-n", "2"]).refuses(128, "limits.candidates");
    world.frites(["spawn", "-n", "1"]).expect(0);
}

#[test]
fn lost_worktree_or_branch_does_not_stop_judging_of_others() {
    let world = World::new();
    let run = |script: &str| {
        world
            .frites(["run", "-q", "-n", "3", "-j", "1", "--test", "true", "--", "sh", "-c", script])
    };
    // By a sibling before it began; by itself after its work.
    let script = "case $FRITES_INDEX in 1) rm -rf ../c2; echo x > x;; 3) echo y > y; cd /; rm -rf \"$FRITES_WORKTREE\";; esac";
    assert_eq!(run(script).expect(0).out(), "1/c1\n");
    assert_eq!(
        told(&world, "1"),
        [
            "c1 succeeded -",
            "c2 failed could not start: No such file or directory",
            "c3 failed its worktree is gone"
        ]
    );
    // Committed first, its work is there, and it is not a failure.
    let script = "echo z > z; git add -A; git commit -qm z; git worktree remove -f -f .";
    world
        .frites(["run", "-q", "-n", "1", "--test", "test -e z", "--", "sh", "-c", script])
        .expect(0);
    assert_eq!(told(&world, "2"), ["c1 succeeded -"]);
    // The branch of an empty one is checked out elsewhere: it stays, and that is said.
    let script = "[ $FRITES_INDEX = 2 ] && echo x > x || { git checkout -q --detach; git worktree add -q \"$HOME/held$FRITES_INDEX\" frites/run/3/c$FRITES_INDEX; }";
    let answer = run(script).expect(0);
    assert_eq!(answer.out(), "3/c2\n");
    assert!(
        answer.stderr.contains(
            "warning: 3/c1: its worktree stays: the branch 'frites/run/3/c1' is checked out in"
        ),
        "{}",
        answer.stderr
    );
    assert!(world.worktree("3/c1").exists());
}

#[test]
fn worktree_that_was_removed_by_hand_is_gone_and_has_not_changed_nothing() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo y > y; echo y >> y", "echo z > z"]);
    world.frites(["capture", "1/c2"]).expect(0);
    for address in ["1/c1", "1/c2"] {
        fs::remove_dir_all(world.worktree(address)).unwrap();
    }
    let status = world.frites(["status"]).expect(0).out();
    let state = |address: &str| {
        let row = status.lines().find(|line| line.contains(address)).unwrap();
        row.split("  ").map(str::trim).find(|cell| cell.contains("gone")).map(str::to_owned)
    };
    let states = ["1/c1", "1/c2", "1/c3"].map(state);
    assert_eq!(states, [Some("gone".to_owned()), Some("open, gone".to_owned()), None], "{status}");
    let json = world.frites(["status", "--json"]).expect(0).json();
    assert_eq!(json["runs"][0]["candidates"][0]["gone"], true);
    assert_eq!(json["runs"][0]["candidates"][2]["gone"], false);

    let lost = world.frites(["capture", "1/c1"]).expect(1);
    assert_eq!(lost.out(), "1/c1\tgone\n");
    assert!(lost.stderr.contains("is gone, and nothing of it was captured"), "{}", lost.stderr);
    let kept = world.frites(["capture", "1/c2"]).expect(0).out();
    assert!(kept.starts_with("1/c2@1\tgone; before that: "), "{kept}");
    let path =
        world.frites(["path", "1/c1"]).refuses(128, "1/c1 has no worktree any more: it is gone");
    assert!(path.stderr.contains("nothing of it was captured"), "{}", path.stderr);
    let path =
        world.frites(["path", "1/c2"]).refuses(128, "1/c2 has no worktree any more: it is gone");
    assert!(path.stderr.contains("`git frites diff 1/c2`"), "{}", path.stderr);

    let judged = world.frites(["judge", "--test", "test -e y"]).expect(0);
    assert!(!judged.out().contains("changed nothing"), "{}", judged.out());
    assert!(judged.out().contains("tests: "), "{}", judged.out());
    assert!(judged.stderr.contains("1/c2: its worktree is gone; its last capture counts: 1/c2@1"));
    world.attempts(&["echo x > x"]);
    fs::remove_dir_all(world.worktree("2/c1")).unwrap();
    let judged = world.frites(["judge", "--test", "true"]).expect(4);
    assert!(judged.out().contains("no usable candidate: the worktree of c1 is gone"));
    world.frites(["clean", "--all"]).expect(0);
    world.assert_clean();
}

#[test]
fn run_with_deleted_records_is_still_judged() {
    let world = World::new();
    let script = "echo x > x; rm -rf ../../../runs";
    let answer = world
        .frites(["run", "-q", "-n", "1", "--test", "test -e x", "--", "sh", "-c", script])
        .expect(0);
    assert_eq!(answer.out(), "1/c1\n");
    assert_eq!(world.git(["show", "refs/frites/1/c1:x"]), "x");
    world.assert_clean();
}

#[test]
fn too_long_arguments_are_refused_or_fail_their_candidate() {
    let world = World::new();
    let run = |prompt: usize, arguments: &[&str]| {
        fs::write(world.home().join("prompt"), "a".repeat(prompt)).unwrap();
        let file = world.home().join("prompt").display().to_string();
        let words = [
            "run",
            "-n",
            "2",
            "--test",
            "true",
            "--prompt-file",
            &file,
            "--",
            "sh",
            "-c",
            "echo x > x",
            "sh",
        ];
        world.frites([&words[..], arguments].concat())
    };
    // The words around the prompt count, too.
    run(131_071, &["do: {prompt}"]).refuses(
        128,
        "the prompt cannot be an argument: it would have 131075 bytes, and 131071 is the limit",
    );
    assert_eq!(world.frites(["status", "--json"]).expect(0).json()["runs"], serde_json::json!([]));
    run(131_067, &["do: {prompt}"]).expect(0);
    // All together they may still be more than the system takes: nothing ran, and nothing says that
    // it runs.
    let answer = run(130_000, &["{prompt}"; 100]).expect(4);
    assert!(
        answer.stderr.contains("2/c1: failed (could not start: Argument list too long)"),
        "{}",
        answer.stderr
    );
    let failed = "failed could not start: Argument list too long";
    assert_eq!(told(&world, "2"), [format!("c1 {failed}"), format!("c2 {failed}")]);
    world.assert_clean();
}

#[test]
fn candidate_without_writable_records_can_be_resumed() {
    let world = World::new();
    let script = "echo x$FRITES_INDEX > x; cd ../../../runs/$FRITES_RUN; test -e \"$HOME/once\" || test $FRITES_INDEX = 2 \
        || { touch \"$HOME/once\"; rm -rf c1; echo > c1; }";
    let words = ["run", "-n", "2", "--test", "true", "--", "sh", "-c", script];
    assert_eq!(
        world.frites(words).expect(0).out().lines().filter(|l| l.contains("passed")).count(),
        4,
        "the base, two candidates and the decision"
    );
    // After a kill, every command's healing meets the damage.
    let broken = world.repo.join(".frites/runs/1/c1");
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join("candidate.toml/kept")).unwrap();
    fs::remove_dir_all(&broken).unwrap();
    symlink(&elsewhere, &broken).unwrap();
    fs::remove_file(world.repo.join(".frites/runs/1/c2/candidate.toml")).unwrap();
    fs::create_dir_all(world.repo.join(".frites/runs/1/c2/candidate.toml/x")).unwrap();
    fs::write(world.repo.join(".frites/runs/1/active"), "phase = \"running\"\nentries = []\n")
        .unwrap();
    let status = world.frites(["status"]).expect(0);
    assert!(status.out().contains("1/c2"), "{}", status.out());
    assert!(elsewhere.join("candidate.toml/kept").exists(), "what a link leads to is not ours");
    world.frites(["judge", "-q", "1", "--test", "test -e x"]).expect(0);
    world.frites(["spawn", "-q", "-n", "1"]).expect(0);
    world.frites(["clean", "-q", "--forget", "1"]).expect(0);
    assert_eq!(
        world.frites(["status", "--json"]).expect(0).json()["runs"].as_array().unwrap().len(),
        1
    );
    world.assert_clean();
}

#[test]
fn attempt_that_cannot_start_is_cancelled_and_can_be_resumed() {
    let world = World::new();
    let script =
        "echo x$FRITES_INDEX > x; test $FRITES_INDEX = 2 || mkdir -p ../../../runs/1/c2/prompt.md";
    let words =
        ["run", "-n", "2", "-j", "1", "-p", "do it", "--test", "true", "--", "sh", "-c", script];
    let answer = world.frites(words).refuses(128, "prompt.md': Is a directory");
    assert!(
        answer.stderr.contains("hint: continue with `git frites run --resume 1`"),
        "{}",
        answer.stderr
    );
    let all = told(&world, "1");
    assert!(
        all[0] == "c1 succeeded -" && all[1].starts_with("c2 cancelled could not write"),
        "{all:?}"
    );
    fs::remove_dir(world.repo.join(".frites/runs/1/c2/prompt.md")).unwrap();
    world.frites(["run", "-q", "--resume", "1"]).expect(0);
    assert_eq!(told(&world, "1")[..2], ["c1 succeeded -", "c2 succeeded -"]);
    // Damage that cannot be repaired is reported, and hinders nothing else.
    fs::write(world.repo.join(".frites/runs/1/active"), "phase = \"running\"\nentries = []\n")
        .unwrap();
    let lock = world.repo.join(".frites/locks/run/1");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let answer = world.frites(["spawn", "-q", "-n", "1"]).expect(0);
    assert!(
        answer
            .stderr
            .contains("warning: run 1 was interrupted and could not be recovered: could not lock")
    );
}

#[test]
fn failed_synthesis_keeps_the_decision() {
    let world = World::new();
    world.git(["config", "frites.limits.worktrees", "2"]);
    let words =
        ["-n", "2", "-p", "x", "--test", "true", "--", "sh", "-c", "echo $FRITES_INDEX > x"];
    let answer = world.frites([&["run"], &words[..]].concat()).expect(0);
    assert!(answer.out().contains("judge: 2 of 2 passed"), "{}", answer.out());
    let warning = "warning: run 1: the synthesis failed: 2 worktrees and 1 new ones are more than limits.worktrees = 2\nhint: ";
    assert!(answer.stderr.contains(warning), "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn too_many_jobs_are_refused_before_anything_is_made() {
    let world = World::new();
    world.git(["config", "frites.limits.jobs", "3"]);
    for verb in ["spawn", "run"] {
        world
            .frites([verb, "-j", "4", "--", "true"])
            .refuses(128, "4 commands at once are more than limits.jobs = 3");
    }
    world.git(["config", "frites.spawn.jobs", "4"]);
    world
        .frites(["spawn", "--", "true"])
        .refuses(128, "4 commands at once are more than limits.jobs = 3");
    assert!(!world.repo.join(".frites/runs").exists());
    world
        .frites(["run", "--oracle-jobs", "4", "--test", "true", "--", "true"])
        .refuses(128, "4 commands at once are more than limits.jobs = 3");
    assert!(!world.repo.join(".frites/runs").exists());
    world.frites(["spawn", "-q", "-j", "3", "--", "sh", "-c", "echo x > x"]).expect(0);
    world
        .frites(["judge", "-j", "4", "--test", "true"])
        .refuses(128, "4 commands at once are more than limits.jobs = 3");
    world.frites(["judge", "-j", "3", "--test", "true"]).expect(0);
}

#[test]
fn spawn_when_the_work_and_its_watch_both_fail_reports_the_error_of_the_work() {
    let world = World::new();
    // The watch cannot record that the configuration changed, and the candidate's record cannot be
    // written.
    let script = "cd \"$(git rev-parse --path-format=absolute --git-common-dir)/..\"
        git config alias.planted status
        rm -r .frites/events.jsonl .frites/runs/1
        mkdir .frites/events.jsonl && touch .frites/runs/1";
    let answer =
        world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]).refuses(128, "could not make");
    assert!(answer.stderr.contains("events.jsonl"), "{}", answer.stderr);
}

/// Nests directories deeper than any path can be long, with a file in the last.
fn nest(root: &std::path::Path) {
    use rustix::fs::{Mode, OFlags};
    let mut at = rustix::fs::open(root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..20_000 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    rustix::fs::openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
}

#[test]
fn directories_nested_deeper_than_any_path_are_named_kept_and_then_deleted() {
    crate::common::in_the_open_world();
    let world = World::new();
    let run = world.attempts(&["echo x >> README"]);
    nest(&world.worktree("1/c1"));
    let outside = world.home().join("nested");
    fs::create_dir(&outside).unwrap();
    nest(&outside);
    let test = format!("test ! -e '{0}' || mv '{0}' .", outside.display());
    world.frites(["judge", "-q", "--test", &test, &run]).expect(0);
    let answer = world.frites(["diff", "1/c1"]).expect(0);
    assert!(answer.stderr.contains("warning: 1/c1: not captured: 'd/d/d/"), "{}", answer.stderr);
    assert!(answer.stderr.contains("(its path is too long)"), "{}", answer.stderr);
    world.frites(["clean", "1/c1"]).refuses(1, "1/c1 has files that cannot be captured");
    assert!(world.worktree("1/c1/README").exists());
    world.frites(["clean", "--discard", "1/c1"]).expect(0);
    assert!(!world.worktree("1/c1").exists());
    world.assert_clean();
    // It is deleted in the background, beside `rm`. The standard library would delete the rest
    // recursively when the test ends, deeper than this thread's stack.
    crate::common::poll(|| {
        let removed = world.command(&world.home(), "rm", ["-rf", "repo", "cache"]).output();
        removed.unwrap().status.success()
    });
}

/// Nests directories deeper than any path can be long, as a test does that an attempt brought.
const NEST: &str =
    "n=$(printf 'dddddddd/%.0s' $(seq 200)); mkdir -p a/$n b/$n c/$n; mv a b/$n; mv b c/$n";

#[test]
fn directories_nested_by_one_command_leave_all_others_their_verdict() {
    for mode in ["sealed", "landlock"] {
        // Of one candidate alone, and of the base, whose outputs lie below all candidates.
        for file in ["deep", "README"] {
            let world = confined(mode);
            world.attempts(&["echo x > deep; echo y > y; echo z > z", "echo x > good"]);
            let test = format!("test ! -e {file} || {{ {NEST}; }}");
            let answer = world.frites(["judge", "-q", "--test", &test]).expect(0);
            assert_eq!(answer.out(), "1/c2\n", "{mode} {file}: {}", answer.stderr);
            world.run(&world.home(), "rm", ["-rf", "cache"]).expect(0);
        }
    }
}

#[test]
fn broken_refs_are_left_out_with_a_warning() {
    let world = World::new();
    world.attempts(&["echo x >> README", "echo y >> README; echo z >> README"]);
    for broken in
        ["heads/broken", "tags/broken", "remotes/origin/broken", "frites/1/c9", "frites/7/@record"]
    {
        crate::common::write(&world.repo.join(".git/refs").join(broken), "");
    }
    for words in [
        &["status"][..],
        &["diff"],
        &["judge", "--test", "true"],
        &["log"],
        &["apply", "--no-switch", "-m", "x"],
        &["spawn", "-n", "1"],
    ] {
        let answer = world.frites(words).expect(0);
        if words[0] == "judge" {
            let warning = "warning: ignoring broken ref refs/frites/1/c9";
            assert!(answer.stderr.contains(warning), "{words:?}: {}", answer.stderr);
        }
    }
    world.frites(["clean", "--all"]).expect(0);
}

#[test]
fn fifo_in_place_of_any_file_makes_no_command_wait() {
    let world = World::new();
    world.judged("true", &["echo x >> README", "echo y >> README; echo z >> README"]);
    let waits = std::cell::RefCell::new(Vec::new());
    // It may fail, but it ends.
    let all = |what: &str| {
        for words in [
            &["status"][..],
            &["judge", "--test", "true"],
            &["spawn", "-n", "1", "--", "sh", "-c", "echo x > NEW"],
            &["clean", "-n", "--all"],
        ] {
            let mut command = world.command(&world.repo, "timeout", ["20", "git", "frites"]);
            let ended = crate::common::answer(&command.args(words).output().unwrap());
            if ended.code == 124 {
                waits.borrow_mut().push(format!("{words:?} waits for {what}"));
            }
            assert!(!ended.stderr.contains("panicked"), "{words:?}: {}", ended.stderr);
        }
    };
    let admin = world.git_in(&world.worktree("1/c1"), ["rev-parse", "--absolute-git-dir"]);
    let state = world.repo.join(".frites");
    let mut places: Vec<std::path::PathBuf> = crate::common::files_below(&state)
        .into_iter()
        .filter(|path| !path.starts_with(state.join("worktrees")))
        .filter(|path| !path.starts_with(state.join("runs/1/c2")))
        .collect();
    places.extend(
        ["HEAD", "gitdir", "index", "logs/HEAD"]
            .map(|name| std::path::Path::new(&admin).join(name)),
    );
    places.extend(
        [".gitignore", ".gitattributes", "sub/.gitignore"]
            .map(|name| world.worktree("1/c1").join(name)),
    );
    places.push(world.home().join("cache/git-frites"));
    for place in places {
        world
            .sh(
                &world.home(),
                &format!(
                    "rm -rf moved; mv '{0}' moved || :; mkdir -p '{1}'; mkfifo '{0}'",
                    place.display(),
                    place.parent().unwrap().display()
                ),
            )
            .expect(0);
        all(&place.display().to_string());
        world
            .sh(
                &world.home(),
                &format!("rm -rf '{0}'; test ! -e moved || mv moved '{0}'", place.display()),
            )
            .expect(0);
    }
    assert_eq!(waits.into_inner(), [""; 0]);
}
