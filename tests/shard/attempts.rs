//! A run whose attempts are made later, by machines that share nothing but a repository to push to.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::common::spread::{node, with_remote};
use crate::common::{Answer, World, answer, make_executable, poll, source, write};

/// A world with a run `fix` at its remote, of three candidates with this script; and the URL.
fn later(script: &str) -> (World, String) {
    let world = World::new();
    let url = with_remote(&world);
    let words =
        ["shard", "open", "--attempts", "--remote", "origin", "--run", "fix", "-n", "3", "--"];
    let made = world.frites(words.into_iter().chain(["sh", "-c", script])).expect(0);
    assert_eq!(made.out(), "fix/c1\nfix/c2\nfix/c3\n");
    (world, url)
}

#[test]
fn a_run_that_the_remote_has_taken_stays_although_its_maker_is_killed() {
    let world = World::new();
    let url = with_remote(&world);
    let hook = Path::new(&url).join("hooks/post-receive");
    write(&hook, "#!/bin/sh\nkill -9 $(cat \"$HOME/opener\")\n");
    make_executable(&hook);
    let open = "shard open --attempts --remote origin -n 1 -- true";
    let script = format!("echo $$ > ~/opener; exec git-frites {open}");
    assert_ne!(world.sh(&world.repo, &script).code, 0);
    fs::remove_file(&hook).unwrap();
    assert!(world.frites(["status", "1"]).expect(0).out().contains(" not started "));
    assert_eq!(world.frites(open.split(' ')).expect(0).out(), "2/c1\n");
    let there =
        world.git_in(Path::new(&url), ["for-each-ref", "--format=%(refname)", "refs/frites"]);
    assert_eq!(there, "refs/frites/1/@record\nrefs/frites/2/@record");
    world.assert_clean();
}

/// Makes one attempt on a node that has nothing.
fn resume(world: &World, url: &str, name: &str) -> Answer {
    world.frites_in(&node(world), ["shard", "run", &format!("fix/{name}"), "--remote", url])
}

/// Makes the remote refuse each push, until the hook is removed.
fn close(url: &str) -> PathBuf {
    let hook = Path::new(url).join("hooks/pre-receive");
    write(&hook, "#!/bin/sh\necho closed for today\nexit 1\n");
    make_executable(&hook);
    hook
}

fn start(world: &World, url: &str, name: &str) -> Child {
    let candidate = format!("fix/{name}");
    let words = ["shard", "run", &candidate, "--remote", url];
    let mut command = world.command(&node(world), "git-frites", words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The refs of the run there, and what they point to.
fn refs(world: &World, url: &str) -> Vec<(String, String)> {
    let format = "--format=%(refname:lstrip=3) %(objectname)";
    let all = world.git_in(Path::new(url), ["for-each-ref", format, "refs/frites/fix/"]);
    let pair =
        |line: &str| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    all.lines().map(pair).collect()
}

fn names(refs: &[(String, String)]) -> Vec<&str> {
    refs.iter().map(|(name, _)| name.as_str()).collect()
}

fn show(world: &World, url: &str, what: &str) -> String {
    world.git_in(Path::new(url), ["show", "-s", "--format=%B", &format!("refs/frites/fix/{what}")])
}

#[test]
fn attempts_are_made_by_machines_that_have_nothing_and_judged_where_the_run_was_made() {
    let (world, url) =
        later("case $FRITES_INDEX in 1) seq 9 > new;; 2) ;; 3) seq 3 > new; exit 7;; esac");
    let before = refs(&world, &url);
    assert_eq!(names(&before), ["@record"]);
    assert!(!world.repo.join(".frites/worktrees").exists());
    assert_eq!(world.git(["branch", "--list", "frites/*"]), "");
    let status = world.frites(["status", "fix"]).expect(0).out();
    assert_eq!(status.matches(" not started ").count(), 3, "{status}");
    assert!(!status.contains("cancelled"), "{status}");
    let exec = world.frites(["exec", "fix/c1", "--", "true"]).refuses(128, "c1 was not started");
    assert!(exec.stderr.contains("hint: start it with `git frites run --resume fix`"), "{exec:?}");
    let early = world.frites(["judge", "--test", "true", "fix"]).expect(4);
    let words =
        "none: no usable candidate: c1 was not started, c2 was not started, c3 was not started\n";
    assert_eq!(early.out(), words);
    let json = world.frites(["status", "--json", "fix"]).expect(0).json();
    assert_eq!(
        json["runs"][0]["candidates"][0]["state"], "cancelled",
        "as `run --resume` takes it"
    );
    for (name, state) in [("c1", "succeeded"), ("c2", "empty"), ("c3", "failed")] {
        assert_eq!(resume(&world, &url, name).expect(0).out(), format!("fix/{name}\t{state}\n"));
    }
    let after = refs(&world, &url);
    assert_eq!(names(&after), ["@record", "c1", "c2", "c3"]);
    assert_eq!(after[0], before[0], "no node pushes the record");
    // Repeated, as an engine does, it only says so.
    assert_eq!(resume(&world, &url, "c2").expect(0).out(), "fix/c2\tempty\tstored before\n");
    assert_eq!(refs(&world, &url), after);
    resume(&world, &url, "c4").refuses(128, "run fix has no candidate 'c4'");
    let open = ["shard", "open", "--remote", "origin", "--test", "test -e new", "fix"];
    let opened = world.frites(open).expect(0);
    assert_eq!(opened.out(), "2\n");
    let words = "not to be judged: fix/c2 (empty), fix/c3 (failed)";
    assert!(opened.stderr.contains(words), "{}", opened.stderr);
    let json = world.frites(["status", "--json", "fix"]).expect(0).json();
    let states = |key: &str| -> Vec<serde_json::Value> {
        let all = json["runs"][0]["candidates"].as_array().unwrap();
        all.iter().map(|candidate| candidate[key].clone()).collect()
    };
    assert_eq!(states("state"), ["succeeded", "empty", "failed"]);
    let shard = ["shard", "judge", "--remote", &url, "fix", "1/1"];
    world.frites_in(&node(&world), shard).expect(0);
    let replay = ["shard", "collect", "--remote", "origin", "-q", "fix"];
    assert_eq!(world.frites(replay).expect(0).out(), "fix/c1\n");
    world.frites(["apply", "--no-switch", "-m", "land", "fix"]).expect(0);
    assert_eq!(world.git(["show", "frites/apply/fix:new"]).lines().count(), 9);
    world.assert_clean();
}

#[test]
fn command_line_that_makes_no_sense_is_refused_and_nothing_is_made() {
    let world = World::new();
    let url = with_remote(&world);
    let words = ["shard", "open", "--attempts", "--remote", "origin", "-n", "2"];
    world.frites(words).refuses(2, "there is no command to run later");
    let nowhere = ["shard", "open", "--attempts", "--remote", "/nowhere/at.all", "--", "true"];
    // A power cut has damaged the entry of the user's own worktree, which has the name of a
    // candidate.
    world.git(["worktree", "add", "-q", "--detach", "../c1"]);
    world.write(".git/worktrees/c1/gitdir", "");
    world.frites(nowhere).refuses(128, "'/nowhere/at.all'");
    assert!(world.repo.join(".git/worktrees/c1/HEAD").exists());
    world
        .frites(["shard", "open", "--remote", "origin", "--", "true"])
        .refuses(2, "describe a new run");
    world.frites(["shard", "open", "--attempts", "1"]).refuses(2, "cannot be used with");
    world
        .frites(["shard", "open", "--attempts", "--test", "true"])
        .refuses(2, "cannot be used with");
    world
        .frites(["shard", "open", "--attempts", "--timeout", "1m", "--", "true"])
        .refuses(2, "--timeout");
    world.frites(["shard", "run", "fix/c1"]).refuses(2, "--remote");
    world.frites(["shard", "run", "fix", "--remote", "origin"]).refuses(2, "one candidate");
    resume(&world, &url, "c1").refuses(128, "there is no run 'fix'");
    assert_eq!(world.git(["for-each-ref", "refs/frites/"]), "");
    // Another clone has a run of that name.
    let clone = world.home().join("clone");
    world.git(["clone", "-q", &url, clone.to_str().unwrap()]);
    let later =
        ["shard", "open", "--attempts", "--remote", "origin", "--run", "fix", "--", "touch", "new"];
    world.frites(later).expect(0);
    let before = refs(&world, &url);
    world.frites_in(&clone, later).refuses(128, "'origin' did not take run fix");
    assert_eq!(refs(&world, &url), before);
    assert_eq!(world.frites_in(&clone, ["status", "-q"]).out(), "");
    assert_eq!(world.git_in(&clone, ["for-each-ref", "refs/frites/"]), "");
}

#[test]
fn capture_that_could_not_be_pushed_is_pushed_by_the_next_call_and_nothing_runs_again() {
    let (world, url) = later("echo >> \"$HOME/ran\"; test $FRITES_INDEX = 3 || seq 4 > new");
    let hook = close(&url);
    resume(&world, &url, "c3").refuses(128, "did not take the capture of fix/c3");
    let refused = resume(&world, &url, "c2");
    assert!(refused.stderr.contains("push"), "{}", refused.stderr);
    refused.refuses(128, "did not take the capture of fix/c2");
    assert_eq!(names(&refs(&world, &url)), ["@record"]);
    fs::remove_file(&hook).unwrap();
    assert_eq!(resume(&world, &url, "c2").expect(0).out(), "fix/c2\tsucceeded\n");
    assert_eq!(resume(&world, &url, "c3").expect(0).out(), "fix/c3\tempty\n");
    assert_eq!(fs::read_to_string(world.home().join("ran")).unwrap().lines().count(), 2);
    assert_eq!(world.git_in(Path::new(&url), ["show", "refs/frites/fix/c2:new"]), "1\n2\n3\n4");
}

/// A run can be forgotten, and another one can get its name.
#[test]
fn attempt_of_a_run_that_was_replaced_is_kept_until_it_is_given_up() {
    let (world, url) = later("echo > old");
    resume(&world, &url, "c3").expect(0);
    let hook = close(&url);
    resume(&world, &url, "c1").refuses(128, "did not take the capture of fix/c1");
    resume(&world, &url, "c2").refuses(128, "did not take the capture of fix/c2");
    fs::remove_file(&hook).unwrap();
    let there = Path::new(&url);
    world.frites(["clean", "-q", "--forget", "fix"]).expect(0);
    world.sh(there, "git update-ref -d refs/frites/fix/@record").expect(0);
    resume(&world, &url, "c1").refuses(128, "there is no run 'fix' at");
    assert_eq!(names(&refs(&world, &url)), ["c3"]);
    world.sh(there, "git update-ref -d refs/frites/fix/c3").expect(0);
    let again = ["shard", "open", "--attempts", "--remote", "origin", "--run", "fix", "-n", "3"];
    world.frites(again.into_iter().chain(["--", "sh", "-c", "echo > new"])).expect(0);
    world.frites(["clean", "--cache"]).expect(0);
    let words = "has work of fix/c1 in an earlier run 'fix', which was not pushed";
    let refused = resume(&world, &url, "c1").refuses(128, words);
    let give_up = refused.stderr.split('`').nth(1).unwrap().to_owned();
    let mirror = give_up.split(' ').nth(2).unwrap();
    assert_eq!(world.git_in(Path::new(mirror), ["show", "refs/frites/fix/c2:old"]), "");
    world.sh(&world.repo, &give_up).expect(0);
    for candidate in ["c1", "c2", "c3"] {
        resume(&world, &url, candidate).expect(0);
        let capture = format!("refs/frites/fix/{candidate}");
        let files = world.git_in(there, ["log", "-m", "--format=", "--name-only", &capture]);
        assert!(files.contains("new") && !files.contains("old"), "{files}");
    }
}

#[test]
fn of_two_machines_on_one_candidate_the_first_stays_and_the_second_is_kept() {
    let script = "n=$(ls \"$HOME/begun\" | wc -l); echo $n > new; touch \"$HOME/begun/$n\"; i=0
        until test -e \"$HOME/go$n\" || test $i = 6000; do i=$((i+1)); sleep 0.01; done";
    let (world, url) = later(script);
    let begun = world.home().join("begun");
    fs::create_dir(&begun).unwrap();
    let count = || fs::read_dir(&begun).unwrap().count();
    let first = start(&world, &url, "c1");
    poll(|| count() == 1);
    let second = start(&world, &url, "c1");
    poll(|| count() == 2);
    write(&world.home().join("go0"), "");
    answer(&first.wait_with_output().unwrap()).expect(0);
    let tip = refs(&world, &url)[1].1.clone();
    write(&world.home().join("go1"), "");
    let second = answer(&second.wait_with_output().unwrap()).expect(0);
    let words = "fix/c1: another machine stored its capture first; this one, ";
    assert!(second.stderr.contains(words), "{}", second.stderr);
    let there = Path::new(&url);
    assert_eq!(world.git_in(there, ["show", "refs/frites/fix/c1:new"]), "0");
    assert_eq!(world.git_in(there, ["rev-parse", "refs/frites/fix/c1^1"]), tip);
    assert_eq!(world.git_in(there, ["show", "refs/frites/fix/c1^2:new"]), "1");
    let open = ["shard", "open", "--remote", "origin", "--test", "test -e new", "fix"];
    assert_eq!(world.frites(open).expect(0).out(), "2\n");
}

/// A batch system that takes its machine back sends a signal first.
#[test]
fn interrupted_attempt_is_stored_as_such_and_started_again_from_the_base() {
    let script = "echo half > half; touch \"$HOME/begun\"
        test -e \"$HOME/go\" || exec sleep 600; ! test -e half.txt && mv half whole";
    let (world, url) = later(script);
    let first = start(&world, &url, "c1");
    poll(|| world.home().join("begun").exists());
    world.sh(&world.repo, &format!("kill -TERM {}", first.id())).expect(0);
    answer(&first.wait_with_output().unwrap()).expect(143);
    assert!(show(&world, &url, "c1").contains("Frites-State: cancelled"));
    let open = ["shard", "open", "--remote", "origin", "--test", "true", "fix"];
    world.frites(open).expect(4);
    write(&world.home().join("go"), "");
    assert_eq!(resume(&world, &url, "c1").expect(0).out(), "fix/c1\tsucceeded\n");
    assert!(show(&world, &url, "c1").contains("Frites-State: succeeded"));
    let files = |commit: &str| {
        let tree = format!("refs/frites/fix/{commit}");
        world.git_in(Path::new(&url), ["ls-tree", "--name-only", &tree])
    };
    assert!(files("c1").contains("whole") && !files("c1").contains("half"));
    assert!(files("c1^").contains("half"), "what was interrupted is an iteration");
    assert_eq!(world.frites(open).expect(0).out(), "2\n");
}

#[test]
fn machine_that_lacks_a_program_stores_nothing() {
    let (world, url) = later("test -e \"$HOME/tool\" || exec no-such-tool; touch new");
    resume(&world, &url, "c1").refuses(128, "fix/c1: failed (exit 127)");
    assert_eq!(names(&refs(&world, &url)), ["@record"]);
    let words = [
        "shard",
        "open",
        "--attempts",
        "--remote",
        "origin",
        "--run",
        "other",
        "--",
        "no-such-tool",
    ];
    world.frites(words).expect(0);
    let words = ["shard", "run", "other/c1", "--remote", &url];
    world.frites_in(&node(&world), words).refuses(128, "'no-such-tool' is not on PATH");
    write(&world.home().join("tool"), "");
    assert_eq!(resume(&world, &url, "c1").expect(0).out(), "fix/c1\tsucceeded\n");
}

#[test]
fn capture_that_the_record_does_not_list_is_named_and_not_judged() {
    let (world, url) = later("seq $FRITES_INDEX > new");
    resume(&world, &url, "c1").expect(0);
    let there = Path::new(&url);
    world.git_in(there, ["update-ref", "refs/frites/fix/planted", "refs/frites/fix/c1"]);
    let open = ["shard", "open", "--remote", "origin", "--test", "true", "fix"];
    let opened = world.frites(open).expect(0);
    assert_eq!(opened.out(), "2\n");
    let words = "'origin' has a capture fix/planted, which the record of the run does not list";
    assert!(opened.stderr.contains(words), "{}", opened.stderr);
}

/// What git makes of such a tree depends on the command, so another tree could be judged than
/// lands.
#[test]
fn capture_with_an_entry_twice_or_too_many_paths_is_neither_judged_nor_landed() {
    let (world, url) = later("seq $FRITES_INDEX > new");
    resume(&world, &url, "c1").expect(0);
    resume(&world, &url, "c2").expect(0);
    let there = Path::new(&url);
    let mut tree = Vec::new();
    for capture in ["c1", "c2"] {
        let file = world.git_in(there, ["rev-parse", &format!("refs/frites/fix/{capture}:new")]);
        let digits = (0..file.len()).step_by(2).map(|at| &file[at..at + 2]);
        tree.extend_from_slice(b"100644 new\0");
        tree.extend(digits.map(|two| u8::from_str_radix(two, 16).unwrap()));
    }
    write(&world.home().join("tree"), tree);
    resume(&world, &url, "c3").expect(0);
    let push = r#"set_tree() { c=$(git cat-file commit $1 | sed "s/^tree .*/tree $2/" |
            git hash-object -t commit -w --stdin) && git update-ref $1 $c; }
        set_tree refs/frites/fix/c1 $(git hash-object -t tree -w --literally "$HOME/tree")
        t=$(git rev-parse refs/frites/fix/c2^{tree})
        for level in $(seq 12); do t=$(printf "040000 tree $t\t%s\n" 0 1 2 3 4 5 6 7 8 9 | git mktree); done
        set_tree refs/frites/fix/c3 $t"#;
    world.sh(there, push).expect(0);
    let open = ["shard", "open", "--remote", "origin", "--test", "true", "fix"];
    world.frites(open).refuses(128, "duplicateEntries: contains duplicate file entries");
    // The user may have fetched it by other means.
    world.git(["fetch", "-q", &url, "+refs/frites/fix/*:refs/frites/fix/*"]);
    let answer = world.frites(["judge", "--json", "--test", "true", "fix"]).expect(0);
    assert_eq!(answer.json()["passed"], serde_json::json!(["c2"]), "{}", answer.stderr);
    assert!(
        answer.stderr.contains(" has an entry twice, or not in its place"),
        "{}",
        answer.stderr
    );
    for (address, words) in [("fix/c1", "the tree "), ("fix/c3", "it has too many paths, ")] {
        world
            .frites(["apply", "--no-switch", "--allow-unverified", "-m", "land", address])
            .refuses(1, &format!("{address} cannot land: {words}"));
    }
}

/// A clone that is used by the name of its remote works as a mirror does, and so does the place
/// where the run was made.
#[test]
fn clones_make_attempts_too_and_the_rest_can_be_made_where_the_run_was_made() {
    let (world, url) = later("seq $FRITES_INDEX > new");
    let clone = world.home().join("clone");
    world.git(["clone", "-q", &url, clone.to_str().unwrap()]);
    let by_name = |dir: &Path, name: &str| {
        let candidate = format!("fix/{name}");
        let words = ["shard", "run", &candidate, "--remote", "origin"];
        world.frites_in(dir, words).expect(0).out()
    };
    assert_eq!(by_name(&clone, "c1"), "fix/c1\tsucceeded\n");
    assert_eq!(by_name(&world.repo, "c2"), "fix/c2\tsucceeded\n");
    let fetch = ["fetch", "-q", "origin", "refs/frites/fix/*:refs/frites/fix/*"];
    world.git(fetch);
    let done = world.frites(["run", "--resume", "fix", "--test", "true", "-q"]).expect(0);
    assert_eq!(done.out(), "fix/c1\n");
    let json = world.frites(["judge", "--replay", "--json", "fix"]).expect(0).json();
    assert_eq!(json["passed"], serde_json::json!(["c1", "c2", "c3"]));
    world.assert_clean();
}

/// The hook of the manual, for a server that knows its users.
#[test]
fn hook_of_the_manual_lets_each_user_move_nothing_but_what_is_theirs() {
    let (mut world, url) = later("seq $FRITES_INDEX > new");
    let manual = fs::read_to_string(source().join("src/manual/spread.txt")).unwrap();
    let from = manual.find("    #!/bin/sh\n").unwrap();
    let lines = manual[from..].lines().take_while(|line| line.starts_with("    "));
    let hook = Path::new(&url).join("hooks/pre-receive");
    write(&hook, lines.map(|line| format!("{}\n", &line[4..])).collect::<String>());
    make_executable(&hook);
    world.set_env("REMOTE_USER", "judge");
    resume(&world, &url, "c1").refuses(128, "did not take the capture of fix/c1");
    world.set_env("REMOTE_USER", "attempt");
    resume(&world, &url, "c1").expect(0);
    let open = ["shard", "open", "--remote", "origin", "--test", "test -e new", "fix"];
    world.frites(open).refuses(128, "did not take run fix");
    world.set_env("REMOTE_USER", "owner");
    world.frites(open).expect(0);
    let judge = |world: &World, name: &str| {
        let part = format!("fix/{name}");
        world.frites_in(&node(world), ["shard", "judge", "--remote", &url, &part])
    };
    world.set_env("REMOTE_USER", "attempt");
    judge(&world, "c1").refuses(128, "did not take the outcome of fix/c1");
    world.set_env("REMOTE_USER", "judge");
    judge(&world, "c1").expect(0);
}
