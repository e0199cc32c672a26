//! Runs from candidates (`--from`), further rounds (`retry`), tasks, ports, and how deep runs may
//! go.
use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use crate::common::{World, answer, kill, poll};

#[test]
fn child_starts_from_its_parents_files_and_shows_only_its_own_change() {
    let world = World::new();
    // Partly staged, partly not, a new file, a deletion, a mode, a link, and a commit of its own.
    world.attempts(&["echo committed > committed; git add -A; git commit -qm own
        printf 'one\nTWO\nthree\n' > src/lib.txt; git add src/lib.txt; printf 'one\nTWO\nTHREE\n' > src/lib.txt
        git rm -q --cached README; rm README; echo new > 'with space'; chmod +x 'with space'; ln -s src link"]);
    let parent = World::files_of(&world.worktree("1/c1"));
    let child = world.spawn(["-n", "1", "--from", "1/c1", "--task", "GH-17"]);
    let files = World::files_of(&world.worktree("2/c1"));
    let strip = |files: &[(std::path::PathBuf, u32, Vec<u8>)]| {
        files.iter().map(|(p, m, b)| (p.clone(), m & 0o100, b.clone())).collect::<Vec<_>>()
    };
    assert_eq!(strip(&files), strip(&parent));
    assert_eq!(world.git_in(&world.worktree("2/c1"), ["status", "--porcelain"]), "");
    assert_eq!(world.tree("refs/heads/frites/run/2/c1"), world.tree("refs/frites/1/c1"));

    fs::write(world.worktree("2/c1").join("with space"), "newer\n").unwrap();
    assert_eq!(
        world.frites(["diff", "--numstat", &child]).expect(0).out(),
        "# 2/c1\n1\t1\twith space\n"
    );
    let json = world.frites(["status", "--json", "2"]).expect(0).json();
    let run = &json["runs"][0];
    assert_eq!(run["task"], "GH-17");
    assert_eq!(run["parent"]["run"], "1");
    assert_eq!(run["parent"]["candidate"], "c1");
    assert_eq!(run["parent"]["iteration"], 1);
    assert_eq!(run["parent"]["depth"], 1);
    assert_eq!(run["parent"]["root"].as_str().unwrap(), world.git(["rev-parse", "main"]));
    let text = world.frites(["status", "2"]).expect(0).out();
    assert!(
        text.starts_with("run 2, ") && text.contains("from 1/c1@1") && text.contains("for GH-17"),
        "{text}"
    );
    world.assert_clean();
}

#[test]
fn child_of_an_attempt_is_judged_by_the_tests_of_the_commit_on_which_it_lands() {
    let broken = "echo 'more = 1 # bad' > a.py";
    let no_tests = "printf 'test:\\n\\ttrue\\ncheck:\\n\\ttrue\\n' > Makefile";
    for weaken in ["echo true > tests/t.sh", no_tests] {
        let world = World::unborn();
        world.write("a.py", "bad\n");
        world.write("Makefile", "test:\n\tsh tests/t.sh\n");
        world.write("tests/t.sh", "grep -q good a.py\n");
        world.commit("base");
        let spawn = |from: &str, script: &str| {
            world.spawn(["-n", "1", "--from", from, "--", "sh", "-c", script])
        };
        let run = world.attempts(&[weaken]);
        world.frites(["judge", &run]).expect(3);
        let child = spawn(&format!("{run}/c1"), broken);
        world.frites(["judge", &child]).expect(3);
        let fixed = spawn(&format!("{child}/c1"), "echo good > a.py");
        world.frites(["judge", &fixed]).expect(0);
        // A verified parent has also passed with the tests of the base: they count for its
        // children.
        let last = spawn(&format!("{fixed}/c1"), broken);
        world.frites(["judge", &last]).expect(3);
    }
}

#[test]
fn base_that_only_an_attempt_has_makes_a_child_of_that_attempt() {
    let world = World::unborn();
    world.write("a.py", "bad\n");
    world.write("tests/t.sh", "grep -q good a.py\n");
    world.write(".frites.toml", "[oracle]\ntest = 'sh tests/t.sh'\n");
    world.commit("base");
    world.attempts(&["echo true > tests/t.sh; git commit -qam weak"]);
    world.frites(["judge", "1"]).expect(3);
    let words = |base| ["spawn", "-n", "1", "--base", base, "--", "sh", "-c", "echo more >> a.py"];
    for base in ["frites/run/1/c1", "refs/frites/1/c1", "HEAD"] {
        let spawned = world.frites_in(&world.worktree("1/c1"), words(base)).expect(0);
        let said = format!("'{base}' was made by 1/c1, and no branch of yours has it");
        assert!(spawned.stderr.contains(&said), "{}", spawned.stderr);
        let run = spawned.out().split('/').next().unwrap().to_owned();
        let json = world.frites(["judge", "--json", &run]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{base}: {json:#}");
        let json = world.frites(["status", "--json", &run]).expect(0).json();
        assert_eq!(json["runs"][0]["parent"]["candidate"], "c1", "{json:#}");
        assert_eq!(json["runs"][0]["parent"]["root"], world.git(["rev-parse", "main"]).trim());
    }
    // The stash does not vouch for the commit on which it was made, nor does a commit of the user's
    // on top of it.
    world.sh(&world.worktree("1/c1"), "echo x >> a.py; git stash -q").expect(0);
    world.git(["update-ref", "refs/notes/x", "frites/run/1/c1"]);
    world
        .sh(&world.worktree("1/c1"), "git switch -q --detach; echo y >> a.py; git commit -qam y")
        .expect(0);
    for base in ["frites/run/1/c1", "HEAD"] {
        let spawned = world.frites_in(&world.worktree("1/c1"), words(base)).expect(0);
        assert!(spawned.stderr.contains("was made by 1/c1"), "{base}: {}", spawned.stderr);
        world.frites(["judge", spawned.out().split('/').next().unwrap()]).expect(3);
    }
    // A branch of the user's vouches for it, and so does a base that only a detached HEAD has.
    world.git(["branch", "mine", "frites/run/1/c1"]);
    let run = world.frites(words("mine")).expect(0).out();
    let run = run.split('/').next().unwrap();
    world.frites(["judge", run]).expect(0);
    world.git(["switch", "-q", "--detach"]);
    world.git(["commit", "-q", "--allow-empty", "-m", "detached"]);
    for _ in 0..2 {
        let run = world.spawn(["-n", "1"]);
        let json = world.frites(["status", "--json", &run]).expect(0).json();
        assert!(json["runs"][0]["parent"].is_null(), "{json:#}");
    }
}

#[test]
fn checkout_at_an_attempts_commit_does_not_choose_the_commands() {
    let world = World::unborn();
    world.write("a.py", "bad\n");
    world.write(".frites.toml", "[oracle]\ntest = 'grep -q good a.py'\n");
    world.commit("base");
    let weak = "printf '[oracle]\\ntest = \"true\"\\n' > .frites.toml; echo x >> a.py; git commit -qam weak";
    world.attempts(&[weak, "echo y >> a.py; git commit -qam y"]);
    world.git(["switch", "-q", "--detach", "frites/run/1/c1"]);
    let refusal = "the checkout is at a commit of 1/c1, which has another .frites.toml than";
    world.git(["remote", "add", "origin", "."]);
    let attempt_of_another = ["shard", "run", "9/c1", "--remote", "origin"];
    for words in [&["judge", "1"][..], &["spawn", "-n", "1"], &attempt_of_another] {
        world.frites(words).refuses(128, refusal);
    }
    world.frites(["status", "1"]).expect(0);
    // An attempt that leaves the file as it is chooses nothing.
    world.git(["switch", "-q", "--detach", "frites/run/1/c2"]);
    world.frites(["judge", "1"]).expect(1);
    // A trial merge has the file of the user's own branch, which has moved on.
    world.git(["switch", "-q", "main"]);
    world.write(".frites.toml", "[oracle]\ntest = 'grep -q y a.py'\n");
    world.commit("another test");
    world.git(["switch", "-q", "--detach"]);
    world.git(["merge", "-q", "-m", "trial", "frites/run/1/c2"]);
    world.frites(["judge", "1"]).expect(0);
    world.git(["switch", "-q", "--detach", "frites/run/1/c1"]);
    // Neither does a branch that an attempt pushed under its own name.
    world.git(["update-ref", "refs/remotes/origin/frites/run/1/c1", "frites/run/1/c1"]);
    world.frites(["judge", "1"]).refuses(128, refusal);
    // In an attempt's worktree, the file of the user's checkout counts.
    world.frites_in(&world.worktree("1/c2"), ["judge", "1"]).refuses(128, refusal);
    // A branch of the user's vouches for the file.
    world.git(["switch", "-q", "-c", "mine", "frites/run/1/c1"]);
    world.frites(["judge", "1"]).expect(0);
}

#[test]
fn child_of_an_unchanged_parent_starts_at_the_parents_base() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    world.spawn(["-n", "1", "--from", "1/c1"]);
    assert_eq!(world.git(["rev-parse", "frites/run/2/c1"]), world.git(["rev-parse", "main"]));
    let json = world.frites(["status", "--json", "2"]).expect(0).json();
    assert_eq!(json["runs"][0]["parent"]["iteration"], serde_json::Value::Null);
}

#[test]
fn chain_of_parents_is_limited() {
    let world = World::new();
    world.git(["config", "frites.limits.inheritance", "2"]);
    world.attempts(&["echo 1 > f"]);
    world.spawn(["-n", "1", "--from", "1/c1"]);
    world.spawn(["-n", "1", "--from", "2/c1"]);
    world.frites(["spawn", "--from", "3/c1"]).refuses(
        128,
        "3/c1 has 2 generations of parents: one more is beyond limits.inheritance = 2",
    );
    for (arguments, code, words) in [
        (["--from", "1"], 2, "--from takes a candidate, and '1' is a run"),
        (["--from", "1/c9"], 128, "run 1 has no candidate 'c9'"),
        (["--task", "two\nlines"], 2, "--task: a task's id is 1 to 200 printable characters"),
        (["--task", " "], 2, "--task: a task's id is 1 to 200 printable characters"),
    ] {
        world.frites([&["spawn"], &arguments[..]].concat()).refuses(code, words);
    }
    assert_eq!(
        world.frites(["status", "--json"]).expect(0).json()["runs"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn again_reruns_in_the_same_worktree_as_the_next_iteration() {
    let world = World::new();
    world
        .frites([
            "spawn",
            "-q",
            "-n",
            "1",
            "-p",
            "first",
            "--",
            "sh",
            "-c",
            "cat >> log; echo >> log",
        ])
        .expect(0);
    // A person's edit in between is an iteration of its own.
    fs::write(world.worktree("1/c1").join("note"), "by hand\n").unwrap();
    let again = world.frites(["retry", "1/c1", "--yes", "-p", "second"]).expect(0);
    assert_eq!(again.out(), format!("1/c1\t{}\n", world.worktree("1/c1").display()));
    assert_eq!(world.git(["show", "refs/frites/1/c1:log"]), "first\nfirst\n\nsecond");
    assert_eq!(world.git(["show", "refs/frites/1/c1:note"]), "by hand");
    let json = world.frites(["status", "--json", "1/c1"]).expect(0).json();
    assert_eq!(json["runs"][0]["candidates"][0]["iteration"], 3);
    // Another command, which fails: its state is of the last round.
    world.frites(["retry", "c1", "--", "sh", "-c", "echo more >> log; exit 3"]).expect(4);
    let json = world.frites(["status", "--json", "1/c1"]).expect(0).json();
    let candidate = &json["runs"][0]["candidates"][0];
    assert_eq!(
        (
            candidate["iteration"].as_u64(),
            candidate["state"].as_str(),
            candidate["exit_code"].as_i64()
        ),
        (Some(4), Some("failed"), Some(3))
    );
    world.assert_clean();
}

#[test]
fn interrupted_again_keeps_earlier_iterations() {
    let world = World::new();
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", "echo one > one"]).expect(0);
    let again = ["retry", "1/c1", "--", "sh", "-c", "echo two > two; sleep 500"];
    let child =
        world.command(&world.repo, "git-frites", again).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| fs::read_to_string(world.worktree("1/c1/two")).is_ok_and(|text| text == "two\n"));
    assert!(kill(["-INT", &child.id().to_string()]));
    let ended = answer(&child.wait_with_output().unwrap()).expect(130);
    let hint = "hint: the work so far is kept; continue with another `git frites retry 1/c1 -- …`";
    assert!(ended.stderr.contains(hint), "{}", ended.stderr);
    // Resuming would begin afresh with the run's own command, so what was before is judged.
    let resumed = world.frites(["run", "--resume", "1", "--test", "true"]).expect(0);
    assert!(
        resumed.stderr.contains("warning: 1/c1: another round of it was interrupted"),
        "{}",
        resumed.stderr
    );
    assert!(world.worktree("1/c1/one").exists() && !world.worktree("1/c1/two").exists());
    assert_eq!(world.git(["show", "refs/frites/1/c1~1:two"]), "two");
    world.frites(["retry", "-q", "1/c1", "--", "sh", "-c", "echo three > three"]).expect(0);
    world
        .frites([
            "run",
            "-q",
            "--resume",
            "1",
            "--test",
            "test -e one && test ! -e two && test -e three",
        ])
        .expect(0);
    world.assert_clean();
}

#[test]
fn again_without_a_worktree_or_a_command_is_refused() {
    let world = World::new();
    world.spawn(["-n", "2"]);
    world.frites(["retry", "1/c1"]).refuses(2, "1/c1 has no command to run again");
    world
        .frites(["retry", "1", "--", "true"])
        .refuses(2, "retry takes a candidate, and '1' is a run");
    world.frites(["retry", "1/c1", "-n", "2", "--", "true"]).refuses(2, "'-n'");
    world
        .frites(["retry", "1/c1", "--", "nosuchprogram"])
        .refuses(128, "'nosuchprogram' is not on PATH");
    world.frites(["clean", "1/c1"]).expect(0);
    world.frites(["retry", "1/c1", "--", "true"]).refuses(128, "1/c1 has no worktree any more");
}

#[test]
fn each_candidate_gets_ten_ports_of_its_own() {
    let world = World::new();
    let script = "echo $FRITES_PORT > port";
    world.frites(["spawn", "-q", "-n", "3", "--", "sh", "-c", script]).expect(0);
    let port = |address: &str| {
        world.git(["show", &format!("refs/frites/{address}:port")]).parse::<u16>().unwrap()
    };
    let first: Vec<u16> = ["1/c1", "1/c2", "1/c3"].map(port).to_vec();
    // Somebody listens on what would be next; nobody is given it.
    let _listener = TcpListener::bind(("127.0.0.1", first[2] + 14)).unwrap();
    world.frites(["spawn", "-q", "-n", "2", "--", "sh", "-c", script]).expect(0);
    let mut all: Vec<u16> = first.iter().copied().chain(["2/c1", "2/c2"].map(port)).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{all:?}");
    assert!(all.iter().all(|p| !(p..=&(p + 9)).contains(&&(first[2] + 14))), "{all:?}");
    let json = world.frites(["status", "--json", "1"]).expect(0).json();
    assert_eq!(json["runs"][0]["candidates"][1]["port"], first[1]);
    // A worktree that is gone needs none.
    world.frites(["clean", "--all"]).expect(0);
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", script]).expect(0);
    assert_eq!(port("3/c1"), first[0]);
}

#[test]
fn nested_run_is_refused_unless_nesting_allows_it() {
    let world = World::new();
    let nested = "git frites spawn -q -n 1 -- sh -c 'echo $FRITES_DEPTH > depth' > inner 2> err || echo $? > code";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", nested]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:code"]), "128");
    let said = world.git(["show", "refs/frites/1/c1:err"]);
    assert!(
        said.contains(
            "fatal: this runs inside a candidate's command (depth 1), and limits.nesting = 1"
        ),
        "{said}"
    );

    world.git(["config", "frites.limits.nesting", "2"]);
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", nested]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/2/c1:inner"]), "3");
    assert_eq!(world.git(["show", "refs/frites/3/c1:depth"]), "2");
    // The inner command does not inherit the outer command's prompt.
    let nested =
        "test -n \"$FRITES_PROMPT_FILE\" && git frites spawn -q -n 1 -- sh -c 'env > env' > inner";
    world.frites(["spawn", "-q", "-n", "1", "-p", "outer", "--", "sh", "-c", nested]).expect(0);
    let seen = world.git(["show", "refs/frites/5/c1:env"]);
    assert!(seen.contains("FRITES_RUN=5\n") && !seen.contains("FRITES_PROMPT_FILE"), "{seen}");
    let mut world = world;
    world.set_env("FRITES_DEPTH", "deep");
    world.frites(["spawn"]).refuses(128, "FRITES_DEPTH is not a number: 'deep'");
}

#[test]
fn child_can_start_from_a_running_candidate() {
    let world = World::new();
    let go = world.home().join("go");
    let script = format!(
        "echo half > f; until test -e '{}'; do sleep 0.01; done; echo whole > f",
        go.display()
    );
    let mut child = world
        .command(&world.repo, "git-frites", ["spawn", "-q", "-n", "1", "--", "sh", "-c", &script])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    poll(|| fs::read(world.worktree("1/c1").join("f")).is_ok_and(|b| b == b"half\n"));
    let answer = world.frites(["spawn", "-q", "-n", "1", "--from", "1/c1"]).expect(0);
    assert!(
        answer.stderr.contains("warning: 1/c1 is still at work: this is its current state"),
        "{}",
        answer.stderr
    );
    world.frites(["retry", "1/c1", "--", "true"]).refuses(128, "run 1 is still at work");
    fs::write(go, "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(world.worktree("2/c1").join("f")).unwrap(), "half\n");
    assert_eq!(world.git(["show", "refs/frites/1/c1:f"]), "whole");
    world.assert_clean();
}

#[test]
fn further_round_has_the_time_limit_of_the_first_unless_it_is_given_another() {
    let world = World::new();
    world
        .frites(["spawn", "-n", "1", "--timeout", "3s", "--", "sh", "-c", "seq 9 > new"])
        .expect(0);
    world.frites(["retry", "1/c1", "--", "sleep", "500"]).expect(4);
    assert_eq!(world.first_candidate("1")["state"], "timed-out");
    let longer = ["retry", "1/c1", "--timeout", "1h", "--", "sleep", "4"];
    world.frites(longer).expect(0);
    let add = ["add", "1", "-c", "more", "--timeout", "2s", "--", "touch", "x"];
    world.frites(add).expect(0);
    world.frites(["retry", "1/more", "--", "sleep", "500"]).expect(4);
}
