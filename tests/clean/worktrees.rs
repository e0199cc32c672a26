//! `clean`: worktrees and branches go, captures stay, and nothing unsaved is lost.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::common::{World, files_below, poll, write};

/// The branches of candidates, by their short names.
fn branches(world: &World) -> Vec<String> {
    let all = world.git(["for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/frites/run/"]);
    all.lines().map(str::to_owned).collect()
}

/// The number of worktrees registered with git, without the user's checkout.
fn registered(world: &World) -> usize {
    fs::read_dir(world.repo.join(".git/worktrees")).into_iter().flatten().count()
}

#[track_caller]
fn assert_removed(world: &World, address: &str) {
    assert!(!world.worktree(address).exists(), "{address}");
    assert!(!branches(world).contains(&address.to_owned()), "{address}");
}

#[test]
fn clean_removes_the_temporary_files_of_killed_commands_and_no_others() {
    let world = World::new();
    world.attempts(&["true"]);
    let state = world.repo.join(".frites");
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, state.join("landings")).unwrap();
    let old = ["", "runs/1", "runs/1/c1", "landings/candidates/1"].map(|directory| {
        let file = state.join(directory).join(".tmpAbCdEf");
        write(&file, "cut");
        let file_of = fs::File::options().write(true).open(&file).unwrap();
        file_of.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
        file
    });
    let young = state.join("runs/1/c1/.tmpYoung");
    write(&young, "being written");
    world.frites(["clean", "-q", "1"]).expect(0);
    assert_eq!(old.map(|file| file.exists()), [false, false, false, true]);
    assert!(young.exists());
}

#[test]
fn clean_captures_unsaved_work_first() {
    let world = World::new();
    world.attempts(&["echo unsaved > new; echo more >> README; rm src/lib.txt", "true"]);
    let before = world.belongings();
    let answer = world.frites(["clean"]).expect(0);
    let lines: Vec<String> = answer.out().lines().map(str::to_owned).collect();
    assert!(
        lines[0].starts_with("removed 1/c1 (") && lines[1].starts_with("removed 1/c2 ("),
        "{lines:?}"
    );
    assert!(lines[2].starts_with("freed ") && lines[2].ends_with("KiB"), "{lines:?}");
    let hint = "hint: captures stay: `git frites diff 1/c1` shows the work\n";
    assert_eq!(answer.stderr.matches(hint).count(), 1, "{}", answer.stderr);
    assert!(world.frites(["status"]).expect(0).out().contains("not landed"));
    assert_removed(&world, "1/c1");
    assert_removed(&world, "1/c2");
    assert_eq!(registered(&world), 0);
    let diff = world.frites(["diff", "1/c1", "--name-status"]).expect(0).out();
    assert_eq!(diff, "M\tREADME\nA\tnew\nD\tsrc/lib.txt\n");
    assert_eq!(world.git(["show", "refs/frites/1/c1:new"]), "unsaved");
    assert_eq!(world.first_candidate("1")["landing"], "discarded");
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}

#[test]
fn what_is_written_while_clean_waits_is_captured() {
    let mut world = World::new();
    world.attempts(&["echo x >>README"]);
    let log = world.home().join("log");
    world.set_env("FRITES_LOG", "debug");
    world.set_env("FRITES_LOG_FILE", &log);
    let lock = world.repo.join(".frites/locks/repository");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let mut clean = world.command(&world.repo, "git-frites", ["clean", "1"]);
    let mut clean = clean.stdout(Stdio::null()).spawn().unwrap();
    poll(|| fs::read_to_string(&log).is_ok_and(|text| text.contains("waiting for a lock")));
    write(&world.worktree("1/c1").join("late"), "precious");
    drop(lock);
    assert!(clean.wait().unwrap().success());
    assert_removed(&world, "1/c1");
    assert_eq!(world.git(["show", "refs/frites/1/c1:late"]), "precious");
}

#[test]
fn judged_candidate_lands_after_clean() {
    let world = World::new();
    world.attempts(&["echo new > new"]);
    world.frites(["judge", "-q", "--test", "test -e new"]).expect(0);
    world.frites(["clean", "-q"]).expect(0);
    world.frites(["apply"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1"));
    world.assert_clean();
}

#[test]
fn clean_inside_the_worktree_is_refused() {
    let world = World::new();
    world.attempts(&["mkdir d; echo new > d/new.txt", "echo x > x"]);
    let inside = world.worktree("1/c1").join("d");
    for dry_run in [true, false] {
        let words = ["clean", "1", "--dry-run"];
        let answer = world.frites_in(&inside, &words[..if dry_run { 3 } else { 2 }]);
        let answer = answer.refuses(1, "you are in the worktree of 1/c1");
        assert!(answer.out().contains("remove"), "the other one goes: {}", answer.out());
        assert_eq!(fs::read_to_string(inside.join("new.txt")).unwrap(), "new\n");
    }
    assert_eq!(
        world.git(["for-each-ref", "--format=%(refname)", "refs/heads/frites"]),
        "refs/heads/frites/run/1/c1"
    );
    world.frites(["clean", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn clean_keeps_the_branchs_commits_reachable() {
    let world = World::new();
    // A committed file that is deleted again; an amended commit; a worktree that is deleted by
    // hand.
    world.attempts(&[
        "echo one > one; git add one; git commit -qm one; git rm -q one; git commit -qm gone",
        "echo old > f; git add f; git commit -qm old; echo new > f; git commit -qa --amend -m new",
        "echo kept > kept; git add kept; git commit -qm kept; echo lost > lost",
    ]);
    let commits: Vec<String> = ["1/c1", "1/c2", "1/c2@{1}", "1/c3"]
        .iter()
        .map(|b| world.git(["rev-parse", &format!("frites/run/{b}")]))
        .collect();
    fs::remove_dir_all(world.worktree("1/c3")).unwrap();
    world.frites(["clean"]).expect(0);
    for (commit, candidate) in commits.iter().zip(["c1", "c2", "c2", "c3"]) {
        world.git(["merge-base", "--is-ancestor", commit, &format!("refs/frites/1/{candidate}")]);
    }
    assert_eq!(world.git(["show", "refs/frites/1/c3:kept"]), "kept");
    assert_eq!((branches(&world).len(), registered(&world)), (0, 0));
    world.assert_clean();
}

#[test]
fn clean_with_discard_drops_unsaved_work() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo y > y; git add y; git commit -qm y"]);
    world.frites(["clean", "--discard"]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/c1", "refs/frites/1/c2"]), "");
    assert_removed(&world, "1/c1");
    assert_removed(&world, "1/c2");
    world.assert_clean();
}

#[test]
fn worktree_that_cannot_be_captured_is_kept_and_others_are_cleaned() {
    let cases = [
        ("mkfifo pipe", "'pipe' (a FIFO)"),
        ("git init -q nested; echo x > nested/x", "'nested' (a nested repository)"),
        (
            "git init -q nested; echo x > nested/x; git -C nested add x; git -C nested commit -qm x",
            "'nested' (a nested repository)",
        ),
        (
            "git init -q nested; rm nested/.git/HEAD",
            "'nested/.git' (git does not recognise it as a repository)",
        ),
        ("mkdir d; echo x > d/.git", "'d/.git' (git does not recognise it as a repository)"),
        ("echo '*.log' >> .gitignore; echo work > work.log", "such as 'work.log'"),
    ];
    for (script, words) in cases {
        let world = World::new();
        world.attempts(&["echo a > a", script, "echo b > b"]);
        let kept = world.worktree("1/c2");
        let files = files_below(&kept);
        let answer = world.frites(["clean", "1"]).refuses(1, words);
        assert!(
            answer.stderr.contains("1/c2 has files that cannot be captured"),
            "{}",
            answer.stderr
        );
        assert!(
            answer.out().contains("removed 1/c1 (") && answer.out().contains("removed 1/c3 ("),
            "{}",
            answer.out()
        );
        assert!(!answer.out().contains("1/c2"), "{}", answer.out());
        assert_eq!(files_below(&kept), files);
        assert_eq!(branches(&world), ["1/c2"]);
        assert_removed(&world, "1/c1");
        assert_removed(&world, "1/c3");
        let json = world.frites(["clean", "1", "--json"]).expect(1).json();
        let removed: Vec<_> =
            (0..3).map(|i| json["candidates"][i]["removed"].as_bool().unwrap()).collect();
        assert_eq!(removed, [true, false, true]);
        assert!(json["candidates"][1]["error"].as_str().unwrap().contains(words), "{json:#}");
        world.frites(["clean", "1", "--forget"]).refuses(1, words);
        assert_eq!(
            world.git(["show", "refs/frites/1/c1:a"]),
            "a",
            "a run that is not wholly clean is not forgotten"
        );
        world.frites(["clean", "1/c2", "--discard"]).expect(0);
        assert_removed(&world, "1/c2");
        world.assert_clean();
    }
}

#[test]
fn clean_dry_run_changes_nothing_and_shows_bytes() {
    let world = World::new();
    world.attempts(&["head -c 3000000 /dev/zero > big", "true"]);
    let state = || {
        (
            world.git(["for-each-ref"]),
            World::files_of(&world.worktree("1/c1")),
            files_below(&world.repo.join(".git")),
        )
    };
    let before = state();
    let out = world.frites(["clean", "-n"]).expect(0).out();
    assert!(out.starts_with("would remove 1/c1 (2.9 MiB)\nwould remove 1/c2 ("), "{out}");
    assert!(out.ends_with("\nwould free 2.9 MiB\n"), "{out}");
    assert!(
        world.frites(["clean", "-n", "--forget"]).expect(0).out().contains("would forget run 1\n")
    );
    let json = world.frites(["clean", "-n", "--json"]).expect(0).json();
    assert!(
        json["dry_run"].as_bool().unwrap() && !json["candidates"][0]["removed"].as_bool().unwrap(),
        "{json:#}"
    );
    assert_eq!(state(), before);
    assert!(world.frites(["clean"]).expect(0).out().ends_with("\nfreed 2.9 MiB\n"));
    world.assert_clean();
}

#[test]
fn new_worktree_has_the_same_size_wherever_it_is_told() {
    let world = World::new();
    for path in ["a/b/one", "a/b/two", "a/three", "a-b/c/d/four"] {
        world.write(path, "x\n");
    }
    world.write(".gitignore", "/seed/\n");
    world.commit("directories");
    for seed in [false, true] {
        if seed {
            world.write("seed/large", vec![7; 100_000]);
            world.git(["config", "frites.seed.copy", "/seed/"]);
        }
        let run = world.spawn(["-n", "1"]);
        let size = |document: serde_json::Value| document["candidates"][0]["bytes"].clone();
        let shown = world.frites(["status", "--json", &run]).expect(0).json();
        let shown = size(shown["runs"][0].clone());
        let would_free = world.frites(["clean", "-n", "--json", &run]).expect(0).json();
        let freed = world.frites(["clean", "--json", &run]).expect(0).json();
        assert_eq!([&shown, &size(would_free)], [&size(freed.clone()); 2], "{shown}");
        assert_eq!(freed["bytes"].as_u64() > Some(100_000), seed, "{freed}");
    }
    world.assert_clean();
}

#[test]
fn clean_twice_succeeds_and_frees_nothing() {
    let world = World::new();
    world.attempts(&["echo a > a", "true"]);
    world.frites(["clean", "1/c1"]).expect(0);
    assert_eq!(branches(&world), ["1/c2"]);
    for words in [["clean", "1/c1"], ["clean", "-n"]] {
        let answer = world.frites(words).expect(0);
        assert!(!answer.out().contains("1/c1"), "{}", answer.out());
    }
    let answer = world.frites(["clean", "1/c1"]).expect(0);
    assert_eq!(
        (answer.out().as_str(), answer.stderr.as_str()),
        ("freed 0 B\n", "nothing is left to remove\n")
    );
    world.frites(["clean", "1", "1/c2", "c2", "-q"]).expect(0);
    assert_eq!(branches(&world).len(), 0);
    world.assert_clean();
}

#[test]
fn clean_all_cleans_every_run() {
    let world = World::new();
    world.attempts(&["echo a > a"]);
    world.spawn(["--run", "named", "-n", "1"]);
    world.frites(["clean", "--all", "1"]).refuses(2, "--all");
    assert_eq!(branches(&world).len(), 2);
    world.frites(["clean", "--all"]).expect(0);
    assert_eq!((branches(&world).len(), registered(&world)), (0, 0));
    assert_eq!(world.git(["show", "refs/frites/1/c1:a"]), "a");
    world.assert_clean();
}

#[test]
fn clean_with_forget_removes_a_run_except_its_number() {
    let world = World::new();
    world.attempts(&["echo a > a", "true"]);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.frites(["clean", "--forget", "1/c1"]).refuses(2, "--forget removes whole runs");
    assert_eq!(branches(&world).len(), 2);
    assert!(world.frites(["clean", "--forget"]).expect(0).out().contains("forgot run 1\n"));
    assert_eq!(world.git(["for-each-ref", "refs/frites", "refs/heads/frites"]), "");
    assert!(!world.repo.join(".frites/runs/1").exists());
    world.frites(["diff", "1"]).refuses(128, "there is no run yet");
    assert_eq!(world.spawn(["-n", "1"]), "2", "a number is never used twice");
    world.assert_clean();
}

#[test]
fn running_run_is_not_cleaned() {
    let world = World::new();
    let script = "touch \"$HOME/started\"; i=0; until test -e \"$HOME/go\" || test $i = 2000; do i=$((i+1)); sleep 0.01; done; echo x > x";
    let mut spawn =
        world.command(&world.repo, "git-frites", ["spawn", "-n", "1", "--", "sh", "-c", script]);
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.home().join("started").exists());
    for words in [&["clean"][..], &["clean", "1/c1", "--discard"], &["clean", "--all", "--forget"]]
    {
        world.frites(words).refuses(128, "run 1 is still at work in another process");
    }
    assert!(world.worktree("1/c1").exists());
    write(&world.home().join("go"), "");
    assert!(spawn.wait().unwrap().success());
    world.frites(["clean"]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:x"]), "x");
    world.assert_clean();
}

#[test]
fn candidate_branch_that_the_user_checked_out_is_kept() {
    let world = World::new();
    world.attempts(&["echo x > x", "true"]);
    let linked = world.home().join("linked");
    world.sh(&world.worktree("1/c1"), "git switch -q --detach").expect(0);
    world.git(["worktree", "add", "-q", linked.to_str().unwrap(), "frites/run/1/c1"]);
    for words in [&["clean", "1"][..], &["clean", "1/c1", "--discard"]] {
        let answer =
            world.frites(words).refuses(1, "the branch 'frites/run/1/c1' is checked out in");
        assert!(answer.stderr.contains(linked.to_str().unwrap()), "{}", answer.stderr);
        assert!(world.worktree("1/c1/x").exists());
        assert_eq!(branches(&world)[0], "1/c1");
    }
    assert_removed(&world, "1/c2");
    world.git_in(&linked, ["switch", "-q", "--detach"]);
    world.frites(["clean", "1/c1"]).expect(0);
    assert_removed(&world, "1/c1");
    assert_eq!(registered(&world), 1, "the user's own worktree");
    world.assert_clean();
}

/// SCOREBOARD row 23.
#[test]
fn link_in_place_of_a_worktree_or_its_parent_is_not_followed() {
    // The path that becomes a link, and where the candidate's worktree then seems to be.
    for (replaced, below) in [("1/c1", ""), ("1", "c1"), ("", "1/c1")] {
        for options in [&[][..], &["--discard"]] {
            let world = World::new();
            world.attempts(&["echo x > x"]);
            let target = world.home().join("precious");
            write(&target.join(below).join("keep"), "mine\n");
            write(&target.join(below).join("deep/keep"), "mine\n");
            let before = (World::files_of(&target), world.belongings());
            // Without a slash at its end, which would follow the link.
            let place: PathBuf = world.worktree(replaced).components().collect();
            fs::rename(&place, world.home().join("moved")).unwrap();
            symlink(&target, &place).unwrap();
            let answer = world.frites(["clean", "1"].iter().chain(options));
            let answer = match replaced {
                "" => answer.refuses(128, ".frites/worktrees' is a symbolic link"),
                _ => answer.refuses(
                    1,
                    "is not a directory of ours any more: a link or a file is in its place",
                ),
            };
            assert!(!answer.out().contains("removed"), "{}", answer.out());
            assert_eq!((World::files_of(&target), world.belongings()), before);
            assert_eq!(branches(&world), ["1/c1"]);
            // Moved back, it is an ordinary worktree.
            fs::remove_file(&place).unwrap();
            fs::rename(world.home().join("moved"), &place).unwrap();
            world.frites(["clean", "1"].iter().chain(options)).expect(0);
            assert_removed(&world, "1/c1");
            assert_eq!(registered(&world), 0);
            world.assert_clean();
        }
    }
}

#[test]
fn links_inside_a_worktree_are_not_followed() {
    let world = World::new();
    write(&world.home().join("precious/keep"), "mine\n");
    world.attempts(&[
        "ln -s \"$HOME/precious\" way; ln -s \"$HOME/precious\" src/way; ln -s ../../../.. up",
    ]);
    world.frites(["clean"]).expect(0);
    assert_eq!(fs::read_to_string(world.home().join("precious/keep")).unwrap(), "mine\n");
    assert_eq!(world.git(["cat-file", "-p", "refs/frites/1/c1:up"]), "../../../..");
    world.assert_clean();
}

#[test]
fn read_only_directories_are_removed() {
    let world = World::new();
    world.attempts(&[
        "mkdir -p mod/deep/er; echo x > mod/deep/er/x; chmod 444 mod/deep/er/x; chmod 555 mod/deep/er mod/deep mod",
    ]);
    world.frites(["clean"]).expect(0);
    assert_removed(&world, "1/c1");
    assert_eq!(world.git(["show", "refs/frites/1/c1:mod/deep/er/x"]), "x");
    assert_eq!(trash(&world), Vec::<PathBuf>::new());
    world.assert_clean();
}

fn trash(world: &World) -> Vec<PathBuf> {
    files_below(&world.repo.join(".frites/worktrees"))
}

#[test]
fn worktree_that_is_gone_or_without_git_file_is_cleaned() {
    let cases = [
        "rm -r .frites/worktrees/1/c1",
        "rm -r .frites/worktrees/1",
        "rm -r .frites/worktrees/1/c1; git worktree prune --expire now",
        "git worktree remove --force .frites/worktrees/1/c1",
        "rm .frites/worktrees/1/c1/.git",
        "echo 'gitdir: /nowhere' > .frites/worktrees/1/c1/.git",
        "chmod 555 .frites/worktrees/1/c1",
    ];
    for script in cases {
        let world = World::new();
        world.attempts(&["echo x > x"]);
        world.frites(["diff", "1"]).expect(0);
        world.sh(&world.repo, script).expect(0);
        world.frites(["clean"]).expect(0);
        assert_removed(&world, "1/c1");
        assert_eq!(registered(&world), 0, "{script}");
        assert_eq!(world.git(["show", "refs/frites/1/c1:x"]), "x", "{script}");
        world.assert_clean();
    }
}

#[test]
fn foreign_repository_at_the_worktrees_path_is_kept() {
    let world = World::new();
    world.attempts(&["true"]);
    let place = world.worktree("1/c1");
    fs::remove_dir_all(&place).unwrap();
    world.sh(&world.repo, "git init -q .frites/worktrees/1/c1; cd .frites/worktrees/1/c1; echo theirs > f; git add f; git commit -qm f").expect(0);
    let before = files_below(&place);
    world.frites(["clean"]).refuses(1, "the worktree was made a repository of its own");
    assert_eq!(files_below(&place), before);
    assert_eq!(world.git_in(&place, ["show", "HEAD:f"]), "theirs");
    world.assert_clean();
}

#[test]
fn directory_that_is_no_registered_worktree_is_kept() {
    let world = World::new();
    world.attempts(&["true"]);
    let place = world.worktree("1/c1");
    world.sh(&world.repo, "git worktree remove .frites/worktrees/1/c1; mkdir -p .frites/worktrees/1/c1; echo mine > .frites/worktrees/1/c1/keep").expect(0);
    for words in [&["clean"][..], &["clean", "--discard"]] {
        world.frites(words).refuses(1, "as a worktree of this repository");
        assert_eq!(fs::read_to_string(place.join("keep")).unwrap(), "mine\n");
    }
    fs::remove_dir_all(&place).unwrap();
    world.frites(["clean"]).expect(0);
    assert_removed(&world, "1/c1");
    world.assert_clean();
}

#[test]
fn failed_spawn_on_a_taken_path_removes_nothing() {
    let world = World::new();
    write(&world.worktree("mine/c2/keep"), "mine\n");
    world.frites(["spawn", "--run", "mine", "-n", "3"]).refuses(128, "exists already");
    assert_eq!(fs::read_to_string(world.worktree("mine/c2/keep")).unwrap(), "mine\n");
    assert!(!world.worktree("mine/c1").exists() && !world.worktree("mine/c3").exists());
    assert_eq!((branches(&world).len(), registered(&world)), (0, 0));
    world.assert_clean();
}

#[test]
fn worktree_root_may_be_relative_or_behind_a_link() {
    let world = World::new();
    world.sh(&world.home(), "mkdir real; ln -s real link").expect(0);
    for (at, (configured, real)) in
        [("../outside", "outside"), ("../link", "real"), ("../link/deep", "real/deep")]
            .iter()
            .enumerate()
    {
        world.git(["config", "frites.spawn.worktree-root", configured]);
        let run = world.spawn(["-n", "1"]);
        let place = world.home().join(real).join(&run).join("c1");
        assert_eq!(world.frites(["path"]).expect(0).out(), format!("{}\n", place.display()));
        write(&place.join("new"), "x\n");
        assert_eq!(registered(&world), 1);
        world.frites(["clean"]).expect(0);
        assert!(!place.exists());
        // The trash of a killed command.
        let left = world.home().join(real).join(".trash-abcdef");
        fs::create_dir_all(left.join("worktree/directory")).unwrap();
        world.frites(["clean"]).expect(0);
        assert!(!left.exists());
        assert_eq!((branches(&world).len(), registered(&world)), (0, 0));
        assert_eq!(world.git(["show", &format!("refs/frites/{}/c1:new", at + 1)]), "x");
    }
    world.assert_clean();
}

#[test]
fn clean_matches_only_a_runs_whole_name() {
    let world = World::new();
    world.spawn(["--run", "rename-field", "-n", "1"]);
    world.frites(["diff", "rename"]).expect(0);
    for words in [&["clean", "rename"][..], &["clean", "rename/c1"], &["clean", "-n", "rename-"]] {
        world.frites(words).refuses(128, "there is no run 'rename");
    }
    // Names are looked up before anything is removed.
    world.frites(["clean", "rename-field", "nothing"]).refuses(128, "there is no run 'nothing'");
    assert!(world.worktree("rename-field/c1").exists());
    world.frites(["clean", "rename-field"]).expect(0);
    assert_removed(&world, "rename-field/c1");
    world.assert_clean();
}

#[test]
fn failed_capture_keeps_the_worktree_and_names_its_size() {
    let world = World::new();
    world.attempts(&["echo x > x", "echo secret > locked; chmod 000 locked"]);
    if fs::read(world.worktree("1/c2/locked")).is_ok() {
        // The superuser reads everything: a filter that fails does as well.
        world.git(["config", "filter.broken.clean", "false"]);
        world.git(["config", "filter.broken.required", "true"]);
        write(&world.worktree("1/c2/.gitattributes"), "locked filter=broken\n");
    }
    let answer = world.frites(["clean"]).refuses(1, "1/c2 could not be captured");
    assert!(
        answer.stderr.contains("its worktree of ") && answer.stderr.contains("KiB is kept"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains("`--discard` removes it"), "{}", answer.stderr);
    assert_removed(&world, "1/c1");
    let locked = world.worktree("1/c2/locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(fs::read_to_string(locked).unwrap(), "secret\n");
    world.frites(["clean", "--discard"]).expect(0);
    assert_removed(&world, "1/c2");
    world.assert_clean();
}

#[test]
fn empty_directories_of_cleaned_runs_are_removed() {
    let world = World::new();
    world.attempts(&["true", "true"]);
    world.frites(["clean", "1/c1"]).expect(0);
    assert!(world.worktree("1").exists());
    world.frites(["clean"]).expect(0);
    let left: Vec<_> = fs::read_dir(world.repo.join(".frites/worktrees"))
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(Path::new(&world.repo.join(".frites/runs/1/run.toml")).exists(), "the record stays");
    world.assert_clean();
}

#[test]
fn busy_run_or_wrong_address_is_refused_before_anything_is_removed() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    world.spawn(["-n", "2"]);
    let script = "touch \"$HOME/started\"; i=0; until test -e \"$HOME/go\" || test $i = 2000; do i=$((i+1)); sleep 0.01; done; echo x > x";
    let mut spawn =
        world.command(&world.repo, "git-frites", ["spawn", "-n", "1", "--", "sh", "-c", script]);
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.home().join("started").exists());
    world.spawn(["-n", "1"]);
    world.frites(["clean", "--forget", "1", "2/c2"]).refuses(2, "--forget removes whole runs");
    assert!(
        world.worktree("1/c1").exists() && world.worktree("2/c2").exists(),
        "nothing was removed before that"
    );
    let answer = world.frites(["clean", "--all"]).expect(1);
    assert!(answer.stderr.contains("run 3 is still at work"), "{}", answer.stderr);
    assert!(
        answer.out().contains("removed 1/c1") && answer.out().contains("removed 4/c1"),
        "{}",
        answer.out()
    );
    assert!(world.worktree("3/c1").exists() && !world.worktree("4/c1").exists());
    write(&world.home().join("go"), "");
    assert!(spawn.wait().unwrap().success());
}

#[test]
fn state_directory_is_ignored_again_after_it_was_deleted() {
    let world = World::new();
    world.spawn(["-n", "1", "--", "sh", "-c", "echo x > x"]);
    world.git(["clean", "-ffdxq"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    assert_eq!(world.git(["status", "--porcelain"]), "");
}

#[test]
fn lock_from_the_future_or_stray_cache_file_stops_nothing() {
    let world = World::new();
    world.spawn(["-n", "1", "--", "sh", "-c", "echo x > x"]);
    let lock = world.repo.join(".git/refs/frites/1/c1.lock");
    write(&lock, "");
    world.run(&world.repo, "touch", ["-d", "2199-01-01", lock.to_str().unwrap()]).expect(0);
    world.frites(["judge", "--test", "true"]).expect(0);
    assert!(!lock.exists());
    let rooms = world.home().join("cache/git-frites");
    for repository in fs::read_dir(rooms).unwrap().flatten() {
        write(&repository.path().join(".DS_Store"), "");
    }
    world.frites(["status"]).expect(0);
}

/// SCOREBOARD row 26: unsaved work, a user branch on it, read-only directories, a foreign
/// repository at the path.
#[test]
fn clean_all_loses_no_unsaved_work() {
    let world = World::new();
    world.attempts(&[
        "echo unsaved > unsaved; git add unsaved; echo more >> unsaved",
        "git switch -q -c mine; echo committed > committed; git add committed; git commit -qm mine; echo after > after",
        "mkdir locked; echo deep > locked/file; chmod a-w locked; git checkout -q --detach; git commit -q --allow-empty -m lost",
        "true",
    ]);
    let lost = world.git_in(&world.worktree("1/c3"), ["rev-parse", "HEAD"]);
    // A repository of somebody else's, where the fourth was.
    let foreign = world.worktree("1/c4");
    fs::remove_dir_all(&foreign).unwrap();
    world.sh(&world.repo, "git init -q .frites/worktrees/1/c4; cd .frites/worktrees/1/c4; echo theirs > theirs; git add .; git commit -qm theirs").expect(0);
    let theirs = World::files_of(&foreign);
    let before = (world.belongings(), world.files());
    let rehearsed = world.frites(["clean", "-n"]);
    let answer = world.frites(["clean"]);
    assert_eq!(
        (rehearsed.code, rehearsed.out().matches("would remove").count()),
        (answer.code, answer.out().matches("removed ").count())
    );
    assert_eq!((world.belongings(), world.files()), before, "a branch of the user's own stays");
    assert_eq!(world.git(["show", "mine:committed"]), "committed");
    assert_eq!(world.git(["show", "refs/frites/1/c1:unsaved"]), "unsaved\nmore");
    assert_eq!(world.git(["show", "refs/frites/1/c2:after"]), "after");
    assert_eq!(world.git(["show", "refs/frites/1/c3:locked/file"]), "deep");
    world.git(["merge-base", "--is-ancestor", &lost, "refs/frites/1/c3"]);
    assert_eq!(World::files_of(&foreign), theirs, "{}\n{}", answer.out(), answer.stderr);
    for name in ["c1", "c2", "c3"] {
        assert_removed(&world, &format!("1/{name}"));
    }
    world.git_in(&foreign, ["fsck", "--no-progress"]);
}

#[test]
fn worktree_that_a_person_has_locked_stays() {
    let world = World::new();
    world.attempts(&["echo one > README", "echo two > README"]);
    world.git(["worktree", "lock", "--reason", "in\nreview", ".frites/worktrees/1/c1"]);
    world.git(["config", "frites.retention.abandoned", "1ms"]);
    for words in [&["clean", "-n", "1/c1"][..], &["clean", "1/c1"], &["clean", "--discard", "1/c1"]]
    {
        world.frites(words).refuses(1, "the worktree of 1/c1 is locked: \"in\\nreview\"");
    }
    world.frites(["clean", "--expired"]).expect(0);
    assert!(world.worktree("1/c1").exists());
    assert!(!world.worktree("1/c2").exists());
    world.git(["worktree", "unlock", ".frites/worktrees/1/c1"]);
    world.frites(["clean", "1/c1"]).expect(0);
    assert!(!world.worktree("1/c1").exists());
    world.assert_clean();
}

#[test]
fn cleaning_one_run_names_the_others_that_still_have_worktrees() {
    let world = World::new();
    for _ in 0..3 {
        world.spawn(["-n", "1"]);
    }
    let told = world.frites(["clean", "2"]).expect(0).stderr;
    let others = "runs 1, 3 still have worktrees\nhint: `git frites clean --all` removes those of every run\n";
    assert!(told.ends_with(others), "{told}");
    let told = world.frites(["clean"]).expect(0).stderr;
    assert!(told.contains("run 1 still has worktrees\n"), "{told}");
    world.frites(["clean", "--keep", "1"]).expect(0);
    assert!(!world.frites(["clean", "2"]).expect(0).stderr.contains("still"), "--all leaves it");
    world.frites(["clean", "--no-keep", "1"]).expect(0);
    assert_eq!(world.frites(["clean", "-q", "2"]).expect(0).stderr, "");
    assert!(!world.frites(["clean", "--all"]).expect(0).stderr.contains("still"), "none is left");
}
