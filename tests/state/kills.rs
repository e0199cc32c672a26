//! Healing: commands killed at any moment, and the next one puts things right (SCOREBOARD rows 4–6,
//! 12).
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::processes::kill_git;
use crate::common::{World, kill, poll};

/// The number of kills per command. FRITES_TEST_ROUNDS=200 gives the scoreboard's number.
fn rounds() -> u32 {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12)
}

/// Runs `git frites ARGS` in a process group of its own and kills the whole group after `delay`, if
/// it still runs. Gives whether it was killed.
fn kill_after(world: &World, args: &[&str], delay: Duration) -> bool {
    let mut words = vec!["frites"];
    words.extend(args);
    let mut command = world.command(&world.repo, "git", words);
    let mut child =
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let group = child.id().to_string();
    let end = Instant::now() + delay;
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
    let killed = kill(["-KILL", &format!("-{group}")]);
    child.wait().unwrap();
    // The group dies on its own time; a lock is free when its holder is gone.
    while living(child.id()) {
        assert!(end.elapsed() < Duration::from_secs(10), "the group {group} does not die");
        std::thread::yield_now();
    }
    killed
}

/// True if a thread of the process group still runs; a zombie does not. All threads count, because
/// a process holds its locks until its last thread has ended.
fn living(group: u32) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let threads =
        processes.flat_map(|p| fs::read_dir(p.path().join("task")).into_iter().flatten().flatten());
    threads.filter_map(|t| fs::read_to_string(t.path().join("stat")).ok()).any(|stat| {
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.get(2) == Some(&group.to_string().as_str()) && !matches!(fields[0], "Z" | "X")
    })
}

/// The duration of a command that is not killed. The kills are spread over it.
fn undisturbed(world: &World, args: &[&str]) -> Duration {
    let start = Instant::now();
    world.frites(args).expect(0);
    start.elapsed()
}

fn with_files() -> World {
    let world = World::new();
    for i in 0..60 {
        world.write(format!("d{}/f{i}.txt", i % 6), format!("{i}\n").repeat(50));
    }
    world.commit("files");
    world
}

/// The world of [`with_files`] with a judged candidate that changes each file and adds one.
fn with_a_winner() -> World {
    let world = with_files();
    world.spawn(["-n", "1"]);
    for i in 0..60 {
        fs::write(world.worktree(&format!("1/c1/d{}/f{i}.txt", i % 6)), "new\n").unwrap();
    }
    fs::write(world.worktree("1/c1/added"), "new\n").unwrap();
    world.frites(["judge", "--test", "true"]).expect(0);
    world
}

#[test]
fn killed_spawn_is_complete_or_gone() {
    let world = with_files();
    let before = world.belongings();
    let span = undisturbed(&world, &["spawn", "-q", "-n", "3"]);
    let mut killed = 0;
    for round in 0..rounds() {
        killed +=
            u32::from(kill_after(&world, &["spawn", "-q", "-n", "3"], span * round / rounds()));
        let status = world.frites(["status", "--json"]).expect(0).json();
        world.assert_clean();
        for run in status["runs"].as_array().unwrap() {
            for candidate in run["candidates"].as_array().unwrap() {
                let dir = PathBuf::from(candidate["worktree"].as_str().unwrap());
                assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "", "{}", dir.display());
            }
        }
        let directories = fs::read_dir(world.repo.join(".frites/runs")).unwrap().count();
        assert_eq!(
            directories,
            status["runs"].as_array().unwrap().len(),
            "a directory without a run is left"
        );
        let branches =
            world.git(["for-each-ref", "--format=x", "refs/heads/frites/run"]).lines().count();
        assert_eq!(branches, 3 * directories, "a branch without a run is left");
        assert_eq!(world.git(["worktree", "list"]).lines().count(), 1 + 3 * directories);
    }
    assert!(killed > 0, "no kill hit the command");
    assert_eq!(world.belongings(), before);
}

#[test]
fn killed_addition_is_complete_or_gone() {
    let world = with_a_winner();
    world.write("patch", "--- /dev/null\n+++ b/elsewhere\n@@ -0,0 +1 @@\n+x\n");
    let add = ["add", "-q", "1", "-n", "3", "--patch", "patch"];
    let span = undisturbed(&world, &add);
    let count = || {
        let json = world.frites(["status", "--json", "1"]).expect(0).json();
        json["runs"][0]["candidates"].as_array().unwrap().len()
    };
    let mut killed = 0;
    let mut present = count();
    for round in 0..rounds() {
        killed += u32::from(kill_after(&world, &add, span * round / rounds()));
        let now = count();
        assert!(now == present || now == present + 3, "{present} candidates, then {now}");
        let branches = world.git(["for-each-ref", "--format=x", "refs/heads/frites/run/1"]);
        assert_eq!(branches.lines().count(), now);
        let worktrees = fs::read_dir(world.repo.join(".frites/worktrees/1")).unwrap().count();
        assert_eq!(worktrees, now);
        let records = fs::read_dir(world.repo.join(".frites/runs/1")).unwrap().flatten();
        let records = records.filter(|e| e.path().join("candidate.toml").exists());
        assert_eq!(records.count(), now);
        let verdict = world.frites(["judge", "--replay", "--json", "1"]);
        assert_eq!(verdict.json()["recommended"], "c1", "the verdict is still there");
        present = now;
    }
    assert!(killed > 0, "no kill hit the command");
    world.assert_clean();
}

#[test]
fn killed_judge_decides_the_same_when_repeated() {
    let world = with_files();
    let run = world.spawn(["-c", "small", "large"]);
    fs::write(world.worktree(&format!("{run}/small/README")), "x\n").unwrap();
    fs::write(world.worktree(&format!("{run}/large/README")), "x\ny\nz\n").unwrap();
    let args = ["judge", "--test", "test -s README", "-q"];
    let span = undisturbed(&world, &args);
    for round in 0..rounds() {
        kill_after(&world, &args, span * round / rounds());
        assert_eq!(world.frites(args).expect(0).out(), "1/small\n");
        world.assert_clean();
    }
}

#[test]
fn killed_apply_landed_completely_or_not_at_all() {
    let world = with_a_winner();
    let tree = world.tree("refs/frites/1/c1");
    let before = world.belongings();
    let undo = |world: &World| {
        world.git(["reset", "-q", "--hard"]);
        world.git(["switch", "-q", "main"]);
        world.git(["branch", "-q", "-D", "frites/apply/1"]);
    };
    for args in [&["apply"][..], &["apply", "-m", "land"]] {
        let span = undisturbed(&world, args);
        undo(&world);
        for round in 0..rounds() {
            kill_after(&world, args, span * round / rounds());
            world.frites(["status"]).expect(0);
            world.assert_clean();
            let on = world.git(["symbolic-ref", "HEAD"]);
            if on == "refs/heads/main" {
                let left = world.run(
                    &world.repo,
                    "git",
                    ["rev-parse", "-q", "--verify", "refs/heads/frites/apply/1"],
                );
                if left.code == 0 {
                    panic!("round {round}: the branch is left although the checkout is back");
                }
                assert_eq!(world.belongings(), before, "round {round}");
            } else {
                assert_eq!(
                    world.git(["write-tree"]),
                    tree,
                    "round {round}: what is staged is what passed"
                );
                assert_eq!(world.git(["diff", "--name-only"]), "");
                undo(&world);
            }
        }
    }
}

#[test]
fn killed_merge_or_undo_is_complete_or_gone() {
    let world = with_a_winner();
    let (base, tree) = (world.git(["rev-parse", "HEAD"]), world.tree("refs/frites/1/c1"));
    let start = (world.belongings(), world.files());
    let whole = |world: &World, round: u32| {
        assert_eq!(world.git(["status", "--porcelain"]), "", "round {round}");
        assert_eq!(world.git(["write-tree"]), world.tree("HEAD"), "round {round}");
        world.assert_clean();
    };
    let span = undisturbed(&world, &["apply", "--merge"]);
    for round in 0..rounds() {
        world.git(["reset", "-q", "--hard", &base]);
        kill_after(&world, &["apply", "--merge"], span * round / rounds());
        let landing = world.first_candidate("1")["landing"].take();
        whole(&world, round);
        if world.git(["rev-parse", "HEAD"]) == base {
            assert_eq!((world.belongings(), world.files()), start, "round {round}");
        } else {
            assert_eq!((&world.tree("HEAD"), &landing), (&tree, &"merged".into()), "round {round}");
        }
    }
    world.git(["reset", "-q", "--hard", &base]);
    world.frites(["apply", "--merge"]).expect(0);
    let merge = world.git(["rev-parse", "HEAD"]);
    let span = undisturbed(&world, &["apply", "--undo"]);
    for round in 0..rounds() {
        world.git(["reset", "-q", "--hard", &base]);
        world.frites(["apply", "--merge"]).expect(0);
        kill_after(&world, &["apply", "--undo"], span * round / rounds());
        let landing = world.first_candidate("1")["landing"].take();
        whole(&world, round);
        let undone =
            world.git(["rev-list", "--count", "--first-parent", &format!("{base}..HEAD")]) == "2";
        assert_eq!(landing, if undone { "undone" } else { "merged" }, "round {round}: {merge}");
        assert_eq!(world.tree("HEAD") == tree, !undone, "round {round}");
    }
}

/// git writes the refs of one transaction one after the other: a kill may fall between them.
#[test]
fn kill_between_branch_update_and_record_is_healed_from_the_branch() {
    let world = World::new();
    world.write(".gitattributes", "src/lib.txt filter=copy\n");
    world.commit("attributes");
    world.attempts(&["echo TWO > src/lib.txt"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    world.frites(["apply", "--merge"]).expect(0);
    let merge = world.git(["rev-parse", "HEAD"]);
    let landings = world.repo.join(".frites/landings");
    let copy = format!("cp '{}'/*.toml \"$HOME\"; cat", landings.display());
    world.git(["config", "filter.copy.smudge", &copy]);
    world.frites(["apply", "--undo"]).expect(0);
    let intents = fs::read_dir(world.home()).unwrap().map(|e| e.unwrap().path());
    let intent = intents.into_iter().find(|p| p.extension().is_some_and(|e| e == "toml")).unwrap();

    // As the kill leaves it: the branch has moved, the mark has not, and its lock is there.
    let mark = "refs/frites/1/@landing/c1";
    world.git(["update-ref", mark, &merge]);
    fs::write(world.repo.join(".git").join(format!("{mark}.lock")), "").unwrap();
    fs::rename(&intent, landings.join(intent.file_name().unwrap())).unwrap();
    let healed = world.frites(["status"]).expect(0);
    assert!(
        healed.stderr.contains("the interrupted landing on 'main' was complete"),
        "{}",
        healed.stderr
    );
    assert_eq!(world.first_candidate("1")["landing"], "undone");
    assert_eq!(world.git(["rev-parse", mark]), world.git(["rev-parse", "HEAD"]));
    world.assert_clean();
}

#[test]
fn killed_merge_into_a_parent_is_complete_or_gone() {
    let world = with_files();
    world.spawn(["-n", "1"]);
    let parent = world.worktree("1/c1");
    world.sh(&parent, "echo staged > staged; git add staged; echo unstaged >> d1/f1.txt").expect(0);
    world.spawn(["-n", "1", "--from", "1/c1"]);
    for i in 0..60 {
        fs::write(world.worktree(&format!("2/c1/d{}/f{i}.txt", i % 6)), "new\n").unwrap();
    }
    world.frites(["judge", "--test", "true", "2"]).expect(0);
    world.frites(["diff", "1"]).expect(0);
    let tip = world.git(["rev-parse", "frites/run/1/c1"]);
    let (ours, theirs) = (World::files_of(&parent), World::files_of(&world.worktree("2/c1")));
    let args = ["apply", "--merge", "--into", "1/c1", "2"];
    let mut span = Duration::ZERO;
    for round in 0..rounds() {
        if round == 0 {
            span = undisturbed(&world, &args);
        } else {
            kill_after(&world, &args, span * round / rounds());
        }
        world.frites(["status"]).expect(0);
        world.assert_clean();
        if world.git(["rev-parse", "frites/run/1/c1"]) == tip {
            assert_eq!(World::files_of(&parent), ours, "round {round}");
            assert_eq!(
                world.git_in(&parent, ["status", "--porcelain"]),
                " M d1/f1.txt\nA  staged",
                "round {round}"
            );
        } else {
            assert_eq!(World::files_of(&parent), theirs, "round {round}");
            assert_eq!(world.git_in(&parent, ["status", "--porcelain"]), "", "round {round}");
            // Back to how the parent was.
            world
                .sh(&parent, &format!("git read-tree -u --reset {tip}; git update-ref HEAD {tip}"))
                .expect(0);
            world
                .sh(&parent, "rm -f staged; echo staged > staged; git add staged; echo unstaged >> d1/f1.txt")
                .expect(0);
        }
    }
}

#[test]
fn killed_clean_loses_nothing_and_can_be_repeated() {
    let world = with_files();
    let mut span = Duration::from_millis(50);
    for round in 0..rounds() {
        let run = world.spawn(["-n", "2"]);
        for i in 1..=2 {
            fs::write(
                world.worktree(&format!("{run}/c{i}/README")),
                format!("work {i} of {round}\n"),
            )
            .unwrap();
        }
        if round == 0 {
            span = undisturbed(&world, &["clean", &run]);
        } else {
            kill_after(&world, &["clean", &run], span * round / rounds());
            world.frites(["clean", &run]).expect(0);
        }
        world.assert_clean();
        for i in 1..=2 {
            let saved = world.git(["show", &format!("refs/frites/{run}/c{i}:README")]);
            assert_eq!(saved, format!("work {i} of {round}"));
            assert!(!world.worktree(&format!("{run}/c{i}")).exists());
        }
        assert_eq!(world.git(["for-each-ref", "refs/heads/frites/run"]), "");
    }
    // The next removal also takes away what a kill left of earlier ones.
    let run = world.spawn(["-n", "1"]);
    world.frites(["clean", &run]).expect(0);
    let left = crate::common::files_below(&world.repo.join(".frites/worktrees"));
    assert!(left.is_empty(), "{left:?} is left");
}

#[test]
fn state_file_truncated_anywhere_is_rebuilt_or_named() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    fs::write(world.worktree("1/c1/README"), "x\n").unwrap();
    world.frites(["judge", "--test", "true"]).expect(0);
    let directory = world.repo.join(".frites");
    for file in [
        "runs/1/run.toml",
        "runs/1/verdict.toml",
        "runs/1/c1/candidate.toml",
        "runs/1/c1/index",
        "events.jsonl",
    ] {
        let whole = fs::read(directory.join(file)).unwrap();
        let steps = (whole.len() / 12).max(1);
        for cut in (0..whole.len()).step_by(steps) {
            fs::write(directory.join(file), &whole[..cut]).unwrap();
            for args in [&["status"][..], &["judge", "--replay", "-q"], &["log"]] {
                let answer = world.frites(args);
                assert!(
                    matches!(answer.code, 0 | 128),
                    "{file} cut at {cut}: {args:?}: {}",
                    answer.stderr
                );
                assert!(
                    !answer.stderr.contains("panicked"),
                    "{file} cut at {cut}: {}",
                    answer.stderr
                );
            }
            let diff = world.frites(["diff", "--numstat", "1/c1"]).expect(0).out();
            assert_eq!(diff, "1\t1\tREADME\n", "{file} cut at {cut}");
        }
        fs::write(directory.join(file), &whole).unwrap();
    }
    assert_eq!(world.frites(["judge", "--test", "true", "-q"]).expect(0).out(), "1/c1\n");
}

#[test]
fn killed_git_of_ours_blocks_no_later_landing() {
    let world = World::new();
    world.judged("true", &["echo TWO > src/lib.txt; echo new > new"]);
    // A git that writes the locked index makes this lock; it was killed, and git-frites with it.
    let lock = world.repo.join(".git/index.lock.lock");
    fs::write(&lock, "").unwrap();
    world.frites(["apply", "--merge"]).expect(0);
    assert!(!lock.exists());
    fs::write(&lock, "").unwrap();
    world.frites(["apply", "--undo"]).expect(0);
    world.assert_clean();
}

#[test]
fn locks_of_a_killed_git_block_no_later_landing() {
    let branch = "refs/heads/frites/apply/1.lock";
    let cases: [(&[&str], &str, &[&str]); 5] = [
        (&["apply", "--merge"], "update-ref", &["refs/heads/main.lock", "HEAD.lock"]),
        (&["apply", "--no-switch", "-m", "Land"], "update-ref", &[branch, "packed-refs.lock"]),
        (&["apply"], "symbolic-ref", &["HEAD.lock"]),
        (&["apply", "-m", "Land"], "commit", &["HEAD.lock", "index.lock", branch]),
        (&["apply"], "read-tree", &["index.lock"]),
    ];
    for (args, word, locks) in cases {
        let mut world = World::new();
        world.judged("true", &["echo TWO > src/lib.txt; echo new > new"]);
        let before = world.files();
        let locks = locks.iter().map(|lock| format!(": > \"$GIT_DIR/{lock}\";"));
        kill_git(&mut world, word, &format!("rm \"$HOME/kills\"; {}", locks.collect::<String>()));
        let first = world.run(&world.repo, "git-frites", args);
        assert_ne!(first.code, 0, "{args:?}: {}", first.stderr);
        assert!(!world.home().join("kills").exists(), "{args:?}: no call of {word}");
        world.frites(["status"]).expect(0);
        assert_eq!(world.files(), before, "{args:?} {word}");
        world.frites(args).expect(0);
        world.assert_clean();
    }
}

/// Before all landings were one move, one on a fresh branch moved HEAD first and let git lock the
/// index.
#[test]
fn landings_that_a_killed_older_version_left_are_recovered() {
    let world = World::new();
    world.write(".gitattributes", "src/lib.txt filter=copy\n");
    world.commit("attributes");
    world.judged("true", &["echo TWO > src/lib.txt; echo new > new"]);
    let landings = world.repo.join(".frites/landings");
    let copy = format!("cp '{}'/*.toml \"$HOME\"; cat", landings.display());
    world.git(["config", "filter.copy.smudge", &copy]);
    world.frites(["apply"]).expect(0);
    world.frites(["apply", "--undo"]).expect(0);
    world.git(["config", "--unset", "filter.copy.smudge"]);
    let before = (world.belongings(), world.files());
    let mut intents = fs::read_dir(world.home()).unwrap().map(|entry| entry.unwrap().path());
    let intent = intents.find(|path| path.extension().is_some_and(|e| e == "toml")).unwrap();
    let key = intent.file_stem().unwrap().to_str().unwrap();
    let (base, tree) = (world.git(["rev-parse", "HEAD"]), world.tree("refs/frites/1/c1"));

    let fresh = format!(
        "run = \"1\"\ncandidate = \"c1\"\niteration = 1\nbranch = \"refs/heads/frites/apply/1\"\n\
         tree = \"{tree}\"\nverified = true\ncommit = false\nunlocked = false\nundoing = false\n\n\
         [from]\nbranch = \"refs/heads/main\"\ncommit = \"{base}\"\n"
    );
    fs::write(landings.join(format!("{key}.toml")), fresh).unwrap();
    world.git(["branch", "frites/apply/1"]);
    world.git(["symbolic-ref", "HEAD", "refs/heads/frites/apply/1"]);
    world.write("src/lib.txt", "TWO\n");
    world.write(".git/index.lock", "DIRC: half of an index");
    let told = world.frites(["status"]).expect(0).stderr;
    assert!(told.contains("landing on 'frites/apply/1' is taken back"), "{told}");
    assert_eq!((world.belongings(), world.files()), before);
    world.assert_clean();

    // The branch has moved, the index has not.
    let old_index = fs::read(world.repo.join(".git/index")).unwrap();
    world.frites(["apply", "--merge"]).expect(0);
    let merge = world.git(["rev-parse", "HEAD"]);
    let moved = format!(
        "run = \"1\"\ncandidate = \"c1\"\niteration = 1\nlanding = \"merged\"\n\
         target = \"refs/heads/main\"\nold = \"{base}\"\nnew = \"{merge}\"\nfiles = \"{base}\"\n\
         verified = true\n"
    );
    fs::write(landings.join(format!("{key}.move.toml")), moved).unwrap();
    fs::rename(world.repo.join(".git/index"), world.repo.join(".git/index.lock")).unwrap();
    let lock = fs::File::options().write(true).open(world.repo.join(".git/index.lock")).unwrap();
    lock.set_modified(std::time::SystemTime::now()).unwrap();
    fs::write(world.repo.join(".git/index"), old_index).unwrap();
    world.git(["update-ref", "-d", "refs/frites/1/@landing/c1"]);
    let told = world.frites(["status"]).expect(0).stderr;
    assert!(told.contains("the interrupted landing on 'main' was complete"), "{told}");
    assert_eq!(world.git(["status", "--porcelain"]), "");
    assert_eq!(world.git(["rev-parse", "refs/frites/1/@landing/c1"]), merge);
    assert!(crate::common::files_below(&landings).is_empty());
    world.assert_clean();
}

#[test]
fn undo_killed_before_the_branch_was_deleted_is_finished() {
    let world = World::new();
    world.write(".gitattributes", "src/lib.txt filter=copy\n");
    world.commit("attributes");
    world.judged("true", &["echo TWO > src/lib.txt"]);
    world.frites(["apply", "-m", "Land"]).expect(0);
    let landed = world.git(["rev-parse", "frites/apply/1"]);
    let landings = world.repo.join(".frites/landings");
    let copy = format!("cp '{}'/*.toml \"$HOME\"; cat", landings.display());
    world.git(["config", "filter.copy.smudge", &copy]);
    world.frites(["apply", "--undo"]).expect(0);
    world.git(["config", "--unset", "filter.copy.smudge"]);
    let intents = fs::read_dir(world.home()).unwrap().map(|e| e.unwrap().path());
    let intent = intents.into_iter().find(|p| p.extension().is_some_and(|e| e == "toml")).unwrap();
    let plant = || {
        fs::copy(&intent, landings.join(intent.file_name().unwrap())).unwrap();
        world.git(["branch", "frites/apply/1", &landed]);
        world.git(["update-ref", "refs/frites/1/@landing/c1", &landed]);
    };

    // As the kill leaves it: HEAD and the files are back, and the branch is still there.
    plant();
    let status = world.frites(["status"]).expect(0);
    let line = "the interrupted undo of 'frites/apply/1' is finished";
    assert!(status.stderr.contains(line), "{}", status.stderr);
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites/apply"]), "");
    assert_eq!(world.first_candidate("1")["landing"], "undone");
    world.assert_clean();

    // Somebody has gone on there: nothing of that is deleted.
    plant();
    let more = world.git(["commit-tree", "-p", &landed, "-m", "more", "HEAD^{tree}"]);
    world.git(["update-ref", "refs/heads/frites/apply/1", &more]);
    let status = world.frites(["status"]).expect(0);
    assert!(status.stderr.contains("the branch is in use since: it stays"), "{}", status.stderr);
    assert_eq!(world.git(["rev-parse", "frites/apply/1"]), more);
}

#[test]
fn lock_and_trash_of_killed_processes_are_removed() {
    let world = World::new();
    let attempt = "touch \"$(git rev-parse --git-dir)/index.lock\"; echo x > x; sleep 100";
    world.frites(["spawn", "-n", "1", "--timeout", "1s", "--", "sh", "-c", attempt]).expect(4);
    let worktree = world.worktree("1/c1");
    world.git_in(&worktree, ["add", "-A"]);
    let trash = world.repo.join(".frites/worktrees/.trash-abcdef");
    fs::create_dir_all(trash.join("worktree/directory")).unwrap();
    world.frites(["status"]).expect(0);
    assert!(!trash.exists());
    world.assert_clean();
}

#[test]
fn capture_that_was_killed_before_it_was_recorded_is_recorded_by_the_next_one() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    world.write(".frites/worktrees/1/c1/a", "a");
    world.frites(["capture", "1/c1"]).expect(0);
    let events = world.repo.join(".frites/events.jsonl");
    let before = fs::read(&events).unwrap();
    world.write(".frites/worktrees/1/c1/b", "b");
    world.frites(["capture", "-m", "why", "1/c1"]).expect(0);
    let patch = world.repo.join(".frites/runs/1/c1/candidate.diff");
    let (recorded, whole) = (world.events(), fs::read(&patch).unwrap());
    fs::remove_file(&patch).unwrap();
    fs::write(events, before).unwrap();
    for _ in 0..2 {
        world.frites(["capture", "1/c1"]).expect(0);
        let again = world.events();
        assert_eq!(again.len(), recorded.len());
        for field in ["event", "candidate", "iteration", "commit", "lines", "files", "message"] {
            assert_eq!(again.last().unwrap()[field], recorded.last().unwrap()[field], "{field}");
        }
        assert_eq!(fs::read(&patch).unwrap(), whole);
    }
}

#[test]
fn checkout_of_a_judge_that_was_killed_is_removed() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&["echo x > x"]);
    let test = "touch \"$HOME/ready\"; sleep 60";
    let mut command = world.command(&world.repo, "git-frites", ["judge", "-q", "--test", test]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.home().join("ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let caches = fs::read_dir(world.home().join("cache/git-frites")).unwrap();
    let entries = caches.flat_map(|cache| fs::read_dir(cache.unwrap().path()).unwrap());
    let is_room = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("room-");
    let room = entries.map(|entry| entry.unwrap().path()).find(is_room).unwrap();
    world.frites(["status"]).expect(0);
    assert!(!room.exists());
    world.assert_clean();
}

/// gix writes a line of a reflog in several pieces.
#[test]
fn unfinished_line_of_a_reflog_goes_with_the_lock_of_the_killed_process() {
    let world = World::new();
    let log = world.repo.join(".git/logs/refs/heads/main");
    let whole = fs::read_to_string(&log).unwrap();
    for cut in ["0", "0123 4567 git-frites <", "\u{fffd}"] {
        fs::write(&log, format!("{whole}{cut}")).unwrap();
        fs::write(world.repo.join(".git/frites-changing-refs"), "refs/heads/main\n").unwrap();
        fs::write(world.repo.join(".git/refs/heads/main.lock"), "").unwrap();
        world.frites(["status"]).expect(0);
        assert_eq!(fs::read_to_string(&log).unwrap(), whole);
        world.assert_clean();
    }
}

#[test]
fn damaged_record_of_changed_refs_stops_no_command_and_costs_no_other_file() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    let record = world.repo.join(".git/frites-changing-refs");
    let other = world.repo.join(".git/config.lock");
    for damage in
        [b"\xff\xfe\0refs/heads/\n".as_slice(), b"refs/../config\n../.git/config\nconfig\n"]
    {
        for length in [damage.len() as u64, 1 << 40] {
            fs::write(&record, damage).unwrap();
            fs::File::options().write(true).open(&record).unwrap().set_len(length).unwrap();
            fs::write(&other, "of a person\n").unwrap();
            fs::write(world.worktree("1/c1").join("README"), format!("{damage:?} {length}\n"))
                .unwrap();
            world.frites(["capture", "1/c1"]).expect(0);
            assert_eq!(fs::metadata(&record).unwrap().len(), 0);
            assert!(other.exists());
            fs::remove_file(&other).unwrap();
        }
    }
}
