//! `spawn`: names, numbers, all or nothing, commands, races.
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{LONG, World, answer, make_executable, write};

/// Every ref, worktree, run directory and event of ours.
fn ours(world: &World) -> String {
    let names = |dir: &str| -> Vec<_> {
        let listing =
            fs::read_dir(world.repo.join(".frites").join(dir)).into_iter().flatten().flatten();
        listing.map(|e| e.file_name()).collect()
    };
    format!(
        "{}\n{}\n{:?}\n{:?}\n{}",
        world.git(["for-each-ref"]),
        world.git(["worktree", "list", "--porcelain"]),
        names("runs"),
        names("worktrees"),
        fs::read_to_string(world.repo.join(".frites/events.jsonl")).unwrap_or_default()
    )
}

/// One candidate of `status --json`.
fn candidate(world: &World, run: &str, index: usize) -> serde_json::Value {
    world.frites(["status", "--json", run]).expect(0).json()["runs"][0]["candidates"][index].clone()
}

#[test]
fn file_of_a_command_that_no_worktree_will_have_is_warned_of() {
    let world = World::new();
    world.write("agent.sh", "echo x >>README\n");
    let warning = "warning: 'agent.sh' is not committed, so no worktree has it\n\
                   hint: commit it, give its absolute path, or add it to `seed.copy`\n";
    let spawn = |word: &str, code| world.frites(["spawn", "--", "sh", word]).expect(code).stderr;
    for word in ["agent.sh", "./agent.sh"] {
        let told = spawn(word, 4);
        assert!(told.contains(warning), "{told}");
    }
    let add = ["add", "1", "-c", "more", "--", "sh", "agent.sh"];
    let told = world.frites(add).expect(4).stderr;
    assert!(told.contains(warning), "{told}");
    let whole = world.repo.join("agent.sh");
    assert!(!spawn(whole.to_str().unwrap(), 0).contains("is not committed"));
    world.git(["config", "frites.seed.copy", "agent.sh"]);
    assert!(!spawn("agent.sh", 0).contains("is not committed"));
    world.git(["config", "--unset", "frites.seed.copy"]);
    world.commit("with the script");
    assert!(!spawn("agent.sh", 0).contains("is not committed"));
}

#[test]
fn changes_that_attempts_do_not_begin_with_are_named_once() {
    let world = World::new();
    world.write("more", "1\n");
    world.commit("more");
    let told = |words: &[&str]| world.frites(words).expect(0).stderr;
    world.write("untracked", "1\n");
    assert!(!told(&["spawn"]).contains("your checkout"), "an untracked file");
    world.write("more", "2\n");
    world.write("README", "2\n");
    world.git(["add", "README"]);
    let note = "your checkout has changes that are not committed (README and 1 more); attempts begin without them\n";
    for words in [&["spawn"][..], &["add", "1"], &["spawn", "--base", "HEAD"]] {
        assert_eq!(told(words).matches(note).count(), 1, "{words:?}");
    }
    world.git(["checkout", "-q", "more"]);
    let one = note.replace(" and 1 more", "");
    assert!(told(&["run", "-n", "1", "--test", "true", "--", "touch", "x"]).contains(&one));
    for words in [&["spawn", "--base", "HEAD~1"][..], &["spawn", "--from", "4/c1"]] {
        assert!(!told(words).contains("your checkout"), "{words:?}");
    }
    let patch = world.git(["diff", "--binary", "HEAD"]);
    let file = world.home().join("change.patch");
    write(&file, patch + "\n");
    assert!(!told(&["add", "1", "--patch", file.to_str().unwrap()]).contains("your checkout"));
}

#[test]
fn program_of_the_users_checkout_runs_uncommitted_without_a_warning() {
    let world = World::new();
    world.write("codemod", "#!/bin/sh\ncat \"$1\" >/dev/null && echo x >>README\n");
    make_executable(&world.repo.join("codemod"));
    world.write("more", "text\n");
    let told = world.frites(["spawn", "-n", "1", "--", "./codemod", "README"]).expect(0).stderr;
    assert!(!told.contains("is not committed"), "{told}");
    // What the program reads is another matter, even if it is the program once more.
    for file in ["more", "codemod"] {
        let told = world.frites(["spawn", "-n", "1", "--", "./codemod", file]).expect(4).stderr;
        assert!(told.contains(&format!("warning: '{file}' is not committed")), "{told}");
    }
    // Below the root there is no such program: the root's is not the one that starts.
    let below = world.repo.join("below");
    fs::create_dir(&below).unwrap();
    let told = world.frites_in(&below, ["spawn", "-n", "1", "--", "./codemod", "README"]);
    let told = told.expect(4).stderr;
    assert!(told.contains("warning: 'codemod' is not committed"), "{told}");
}

#[test]
fn spawn_prints_a_line_per_candidate_and_leaves_the_user_alone() {
    let world = World::new();
    let before = world.belongings();
    let answer = world.frites(["spawn", "-n", "3"]).expect(0);
    let lines: Vec<String> = (1..=3)
        .map(|i| format!("1/c{i}\t{}\n", world.worktree(&format!("1/c{i}")).display()))
        .collect();
    assert_eq!(answer.out(), lines.concat());
    assert_eq!(world.belongings(), before);
    for i in 1..=3 {
        let dir = world.worktree(&format!("1/c{i}"));
        assert_eq!(
            world.git_in(&dir, ["symbolic-ref", "HEAD"]),
            format!("refs/heads/frites/run/1/c{i}")
        );
        assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "");
    }
    world.assert_clean();
}

#[test]
fn run_candidates_and_base_can_be_named() {
    let world = World::new();
    let base = world.git(["rev-parse", "HEAD"]);
    world.write("README", "newer\n");
    let head = world.commit("newer");
    world.git(["tag", "-a", "-m", "a tag", "v1", &base]);
    let answer = world
        .frites(["spawn", "--run", "fix-1", "-c", "alpha", "beta", "-c", "gamma", "--base", "v1"]);
    let line =
        |c: &str| format!("fix-1/{c}\t{}\n", world.worktree(&format!("fix-1/{c}")).display());
    assert_eq!(answer.expect(0).out(), [line("alpha"), line("beta"), line("gamma")].concat());
    for name in ["alpha", "beta", "gamma"] {
        let dir = world.worktree(&format!("fix-1/{name}"));
        assert_eq!(world.git_in(&dir, ["rev-parse", "HEAD"]), base, "the commit, not the tag");
        assert_eq!(fs::read(dir.join("README")).unwrap(), b"hello\n");
    }
    let run = world.frites(["status", "--json", "fix-1"]).expect(0).json()["runs"][0].clone();
    assert_eq!((&run["base"], &run["run"]), (&base.as_str().into(), &"fix-1".into()));
    assert_eq!(world.spawn([""; 0]), "1", "a named run takes no number");
    assert_eq!(world.git(["rev-parse", "frites/run/1/c2"]), head);
    assert_eq!(world.spawn(["-n", "1", "--base=HEAD~1", "--run=007"]), "007");
    assert_eq!(world.spawn(["-n", "1"]), "2");
    world.assert_clean();
}

#[test]
fn spawn_is_all_or_nothing() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    let before = (world.belongings(), ours(&world));
    let blocked = world.worktree("fix/c2");
    for file in [blocked.join("notes.txt"), blocked.clone()] {
        write(&file, "somebody's\n");
        let answer = world
            .frites(["spawn", "--run", "fix", "-n", "3"])
            .refuses(128, "fix/c2' exists already");
        assert_eq!(answer.out(), "");
        assert_eq!(
            fs::read(&file).unwrap(),
            b"somebody's\n",
            "what was in the way is not ours to remove"
        );
        assert!(!world.worktree("fix/c1").exists() && !world.worktree("fix/c3").exists());
        if blocked.is_dir() {
            fs::remove_dir_all(&blocked).unwrap();
        } else {
            fs::remove_file(&blocked).unwrap();
        }
        fs::remove_dir(blocked.parent().unwrap()).unwrap();
        assert_eq!((world.belongings(), ours(&world)), before);
    }
    assert_eq!(world.spawn(["--run", "fix", "-n", "3"]), "fix", "the name is free again");
    world.assert_clean();
}

#[test]
fn ref_that_cannot_be_created_rolls_spawn_back() {
    let world = World::new();
    let before = (world.belongings(), ours(&world));
    // The third branch is locked: git cannot make it.
    let lock = world.repo.join(".git/refs/heads/frites/run/fix/c3.lock");
    write(&lock, "");
    let answer =
        world.frites(["spawn", "--run", "fix", "-n", "3"]).refuses(128, "git update-ref failed");
    assert!(answer.stderr.contains("hint: nothing was made"), "{}", answer.stderr);
    // Taking the run back also takes the locks on its own refs: nobody else writes those.
    assert!(!lock.exists());
    assert_eq!((world.belongings(), ours(&world)), before);
    assert_eq!(world.spawn(["--run", "fix", "-n", "3"]), "fix");
    world.assert_clean();
}

#[test]
fn spawn_whose_rollback_fails_too_reports_the_first_error() {
    let world = World::new();
    // Neither the candidate's record nor the lock for taking the run back can be written.
    let harm = "cd ../../../..; f=.frites/runs/fix/c1/candidate.toml; rm -rf $f; mkdir -p $f/x
        rm .frites/locks/repository; mkdir .frites/locks/repository";
    world.git(["config", "frites.spawn.setup", harm]);
    let answer = world.frites(["spawn", "--run", "fix", "-n", "1"]).refuses(128, "candidate.toml");
    assert!(
        answer.stderr.contains("the unfinished parts of run fix could not be removed: "),
        "{}",
        answer.stderr
    );
    assert!(!answer.stderr.contains("nothing was made"), "{}", answer.stderr);
}

#[test]
fn spawn_that_cannot_record_its_event_still_gives_the_run() {
    let world = World::new();
    let harm = "cd ../../../..; rm -rf .frites/events.jsonl; mkdir -p .frites/events.jsonl";
    world.git(["config", "frites.spawn.setup", harm]);
    let answer = world.frites(["spawn", "--run", "fix", "-n", "1"]).expect(0);
    assert!(answer.stderr.contains("events.jsonl"), "{}", answer.stderr);
    assert!(world.worktree("fix/c1").is_dir());
}

#[test]
fn command_gets_its_candidate_in_variables_and_arguments_without_a_shell() {
    let world = World::new();
    world.write(
        "show.sh",
        "env | grep ^FRITES_ | sort > env.txt; printf '%s\\n' \"$PWD\" \"$@\" > args.txt\n",
    );
    let base = world.commit("script");
    let args = [
        "{run}",
        "x{candidate}-{index}.txt",
        "{worktree}",
        "{other} {",
        "$HOME `id` *",
        "a  b",
        "",
        "-n",
        "--",
    ];
    let words =
        ["spawn", "-q", "-c", "alpha", "beta", "--", "sh", "show.sh"].into_iter().chain(args);
    world.frites(words).expect(0);
    for (index, name) in [(1, "alpha"), (2, "beta")] {
        let dir = world.worktree(&format!("1/{name}"));
        let path = dir.display();
        let seen = fs::read_to_string(dir.join("args.txt")).unwrap();
        let wanted = format!(
            "{path}\n1\nx{name}-{index}.txt\n{path}\n{{other}} {{\n$HOME `id` *\na  b\n\n-n\n--\n"
        );
        assert_eq!(seen, wanted);
        let seen = fs::read_to_string(dir.join("env.txt")).unwrap();
        let index = index.to_string();
        let wanted = [
            ("RUN", "1"),
            ("CANDIDATE", name),
            ("INDEX", &index),
            ("COUNT", "2"),
            ("BASE", &base),
            ("WORKTREE", &path.to_string()),
            ("DEPTH", "1"),
        ];
        for (key, value) in wanted {
            assert!(
                seen.lines().any(|l| l == format!("FRITES_{key}={value}")),
                "{key}={value}:\n{seen}"
            );
        }
    }
    world.assert_clean();
}

#[test]
fn placeholder_is_replaced_once_and_other_bytes_are_kept() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let odd = std::ffi::OsStr::from_bytes(b"\xff{run}\xfe");
    let script = std::ffi::OsStr::new("printf %s \"$1\" > odd");
    let words =
        ["spawn", "-q", "--run", "r", "-n", "1", "--", "sh", "-c"].map(std::ffi::OsStr::new);
    world.frites(words.into_iter().chain([script, std::ffi::OsStr::new("sh"), odd])).expect(0);
    assert_eq!(fs::read(world.worktree("r/c1").join("odd")).unwrap(), b"\xffr\xfe");
}

#[test]
fn command_reads_nothing_and_its_output_goes_to_its_log() {
    let world = World::new();
    let script = "cat > stdin.txt; echo to stdout; echo to stderr >&2; test -t 0 && echo terminal; echo $FRITES_INDEX";
    let mut command =
        world.command(&world.repo, "git", ["frites", "spawn", "--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"for somebody else\n").unwrap();
    // The pipe stays open: a command that waited for its end would wait for ever.
    let answer = answer(&child.wait_with_output().unwrap()).expect(0);
    drop(stdin);
    assert!(!answer.out().contains("to std") && !answer.stderr.contains("to std"), "{answer:?}");
    for index in 1..=2 {
        let name = format!("1/c{index}");
        assert_eq!(fs::read(world.worktree(&name).join("stdin.txt")).unwrap(), b"");
        let log = fs::read_to_string(world.repo.join(".frites/runs").join(&name).join("agent.log"))
            .unwrap();
        assert_eq!(log, format!("to stdout\nto stderr\n{index}\n"));
    }
}

#[test]
fn grandchild_that_keeps_the_output_open_does_not_delay_spawn() {
    let world = World::new();
    let start = Instant::now();
    let script = "sleep 600 & echo $! > \"$HOME/pid\"; echo done > README";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", script]).expect(0);
    let pid = fs::read_to_string(world.home().join("pid")).unwrap().trim().parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    // The grandchild may survive its parent or not; spawn waits for it in neither case.
    let _ = kill_process(pid, Signal::KILL);
    assert!(start.elapsed() < LONG, "spawn waited for the grandchild");
    assert_eq!(candidate(&world, "1", 0)["state"], "succeeded");
    assert_eq!(world.frites(["diff", "1"]).expect(0).out(), "1/c1\t2 lines in 1 file\tsucceeded\n");
}

#[test]
fn end_of_a_command_is_recorded() {
    let world = World::new();
    let script = "echo $FRITES_CANDIDATE > README; case $FRITES_CANDIDATE in \
        fails) exit 7;; dies) kill -TERM $$;; undoes) git checkout -q README;; esac";
    let names = ["works", "fails", "dies", "undoes"];
    let words =
        ["spawn", "-j", "4", "-c"].into_iter().chain(names).chain(["--", "sh", "-c", script]);
    let told = world.frites(words).expect(0).stderr;
    let cases = [
        ("succeeded", Some(0), None, "succeeded"),
        ("failed", Some(7), None, "failed (exit 7)"),
        ("failed", None, Some(15), "failed (signal 15)"),
        ("empty", Some(0), None, "empty"),
    ];
    let table = world.frites(["status", "1"]).expect(0).out();
    for (at, (state, code, signal, words)) in cases.into_iter().enumerate() {
        let seen = candidate(&world, "1", at);
        assert_eq!((&seen["candidate"], &seen["state"]), (&names[at].into(), &state.into()));
        let number = |key: &str| seen.get(key).and_then(serde_json::Value::as_i64);
        assert_eq!((number("exit_code"), number("signal")), (code, signal), "{seen:#}");
        let address = format!("1/{}", names[at]);
        assert!(told.contains(&format!("{address}: {words} in ")), "{words}:\n{told}");
        let row = table.lines().find(|l| l.contains(&address)).unwrap();
        assert!(row.contains(words), "{row}");
    }
    // The files of a command that failed are captured as well.
    assert_eq!(world.git(["show", "refs/frites/1/fails:README"]), "fails");
    assert_eq!(world.git(["show", "refs/frites/1/dies:README"]), "dies");
    world.assert_clean();
}

#[test]
fn unchanged_candidate_loses_its_worktree_unless_kept() {
    let world = World::new();
    let script = "test $FRITES_INDEX = 1 || echo x > README";
    world.frites(["spawn", "-q", "--", "sh", "-c", script]).expect(0);
    assert!(!world.worktree("1/c1").exists() && world.worktree("1/c2").exists());
    assert_eq!(
        world.git(["for-each-ref", "--format=%(refname)", "refs/heads/frites"]),
        "refs/heads/frites/run/1/c2"
    );
    assert_eq!(candidate(&world, "1", 0)["cleaned"], true);
    world.frites(["path", "1/c1"]).refuses(128, "1/c1 has no worktree any more");
    world.frites(["spawn", "-q", "--keep", "--", "sh", "-c", script]).expect(0);
    assert!(world.worktree("2/c1").exists());
    let kept = candidate(&world, "2", 0);
    assert_eq!((&kept["state"], &kept["cleaned"]), (&"empty".into(), &false.into()));
    // A failed one stays to be looked at, whatever it changed.
    world.frites(["spawn", "-q", "-n", "1", "--", "false"]).expect(4);
    assert!(world.worktree("3/c1").exists());
    world.assert_clean();
}

#[test]
fn run_number_is_never_used_twice() {
    let world = World::new();
    assert_eq!(world.spawn(["-n", "1"]), "1");
    assert_eq!(world.spawn(["--run", "7", "-n", "1"]), "7");
    assert_eq!(world.spawn(["-n", "1"]), "8");
    world.frites(["clean", "-q", "--forget", "8"]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites/8", "refs/heads/frites/run/8"]), "");
    assert_eq!(world.spawn(["-n", "1"]), "9", "the event log remembers");
    world.frites(["clean", "-q", "--all", "--forget"]).expect(0);
    // Without the log, what was landed still does.
    fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    world.git(["branch", "frites/apply/20"]);
    assert_eq!(world.spawn(["-n", "1"]), "21");
    // And captures that came from elsewhere.
    world.git(["update-ref", "refs/frites/40/c1", "HEAD"]);
    assert_eq!(world.spawn(["-n", "1"]), "41");
    world.assert_clean();
}

/// Spawns with the same candidate names from many processes at once; all of it is there afterwards.
fn race(world: &World, processes: usize, base: &str) {
    let before = world.belongings();
    let start = |_| {
        let mut command = world.command(
            &world.repo,
            "git",
            ["frites", "spawn", "-q", "--base", base, "-c", "c1", "c2"],
        );
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..processes).map(start).collect();
    let answers = children.into_iter().map(|c| answer(&c.wait_with_output().unwrap()).expect(0));
    let mut runs: Vec<u32> = answers.map(|a| a.out().trim().parse().unwrap()).collect();
    runs.sort_unstable();
    assert_eq!(
        runs,
        (1..=u32::try_from(processes).unwrap()).collect::<Vec<_>>(),
        "distinct, and none left out"
    );
    let listed = world.git(["worktree", "list", "--porcelain"]);
    for run in runs {
        for name in ["c1", "c2"] {
            let dir = world.worktree(&format!("{run}/{name}"));
            let entry = format!(
                "worktree {}\nHEAD {}\nbranch refs/heads/frites/run/{run}/{name}\n",
                dir.display(),
                head(world)
            );
            assert!(listed.contains(&entry), "{entry}\n{listed}");
            assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "");
            assert_eq!(fs::read(dir.join("src/lib.txt")).unwrap(), b"one\ntwo\nthree\n");
        }
    }
    assert_eq!(world.belongings(), before);
    let events = fs::read_to_string(world.repo.join(".frites/events.jsonl")).unwrap();
    let spawned = events.lines().filter(|l| l.contains("\"event\":\"spawned\""));
    assert_eq!(spawned.count(), processes);
}

fn head(world: &World) -> String {
    world.git(["rev-parse", "HEAD"])
}

#[test]
fn sixteen_concurrent_spawns_make_sixteen_complete_runs() {
    let world = World::new();
    race(&world, 16, "HEAD");
    world.assert_clean();
}

#[test]
fn spawn_does_not_need_the_configuration_lock() {
    let world = World::new();
    // With this setting, git would write a branch's upstream into the configuration.
    world.git(["config", "branch.autoSetupMerge", "always"]);
    world.git(["remote", "add", "origin", "."]);
    world.git(["fetch", "-q", "origin"]);
    let lock = world.repo.join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    race(&world, 8, "origin/main");
    assert!(Path::new(&lock).exists(), "it is not ours to remove");
    fs::remove_file(&lock).unwrap();
    world.assert_clean();
}

#[test]
fn no_path_is_printed_of_a_worktree_that_is_gone() {
    let world = World::new();
    let script = "test $FRITES_INDEX = 1 || echo more >>README";
    let told = world.frites(["spawn", "-n", "2", "--", "sh", "-c", script]).expect(0).out();
    let path = world.worktree("1/c2");
    assert_eq!(told, format!("1/c1\t\n1/c2\t{}\n", path.display()));
}
