//! `judge`: clean checkouts, the order of commands, the decision, its words and its record.
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::edits::{LARGE, MIDDLE, SMALL};
use crate::common::transcript::{assert_shown, shown};
use crate::common::{Answer, World, make_executable, poll, sentence, write};

/// The words of the row of a candidate of the first run in the table.
fn row<'a>(out: &'a str, candidate: &str) -> Vec<&'a str> {
    let address = format!("1/{candidate}");
    let address = address.as_str();
    let words = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .into_iter()
        .find(|w| {
            w.first() == Some(&address)
                || w.get(..2).is_some_and(|w| ["*", "~"].contains(&w[0]) && w[1] == address)
        })
        .unwrap()
}

/// A JSON verdict without what differs from one judging to the next: times, and what was known
/// already.
fn timeless(mut verdict: Value) -> Value {
    verdict["judged"].take();
    verdict["effort"].take();
    verdict["round"].take();
    let timeless = |results: &mut Value| {
        for result in results.as_array_mut().into_iter().flatten() {
            result["seconds"].take();
            result["cached"].take();
        }
    };
    timeless(&mut verdict["baseline"]["results"]);
    for candidate in verdict["candidates"].as_array_mut().unwrap() {
        timeless(&mut candidate["results"]);
    }
    verdict
}

fn lines_of(world: &World, file: &str) -> Vec<String> {
    let text = fs::read_to_string(world.home().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_decision_has_its_word_sentence_and_exit_code() {
    let test = &["--test", "grep -q TWO src/lib.txt"][..];
    /// The attempts, judge's arguments, the exit code, the sentence, the recommended candidate.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], i32, &'a str, Value);
    let cases: [Case<'_>; 8] = [
        (
            &[SMALL],
            test,
            0,
            "single: c1 is the only usable candidate, and it passed test: 2 lines in 1 file",
            "c1".into(),
        ),
        (
            &["true", SMALL],
            test,
            0,
            "single: c2 is the only usable candidate, and it passed test: 2 lines in 1 file",
            "c2".into(),
        ),
        (
            &["echo x > README", MIDDLE],
            test,
            0,
            "tests: only c2 of 2 passed test: 3 lines in 1 file; c1 failed test (exit 1)",
            "c2".into(),
        ),
        (
            &[LARGE, MIDDLE, SMALL],
            test,
            0,
            "judge: 3 of 3 passed; c3 changes the fewest lines, with 2 lines in 1 file; next is c2 with 3 lines in 1 file",
            "c3".into(),
        ),
        (
            &[MIDDLE, "printf 'one\\nTWO\\nthree\\n' > src/lib.txt; echo x > x"],
            test,
            0,
            "judge: 2 of 2 passed; c1 touches the fewest files, with 3 lines in 1 file; next is c2 with 3 lines in 2 files",
            "c1".into(),
        ),
        (
            &[LARGE, SMALL],
            &["--build", "true", "--test", "exit 7"],
            1,
            "near-miss: none of 2 passed; c2 came closest: it passed build and then failed test (exit 7), with 2 lines in 1 file; test fails on the base, too (exit 7)",
            "c2".into(),
        ),
        (
            &[LARGE, SMALL],
            &[],
            3,
            "no-oracle: no build, lint or test command was found, so nothing is verified; c2 is the smallest of 2: 2 lines in 1 file",
            "c2".into(),
        ),
        (
            &["true", "true"],
            test,
            4,
            "none: no usable candidate: c1 changed nothing, c2 changed nothing",
            Value::Null,
        ),
    ];
    for (scripts, options, code, words, winner) in cases {
        let world = World::new();
        world.attempts(scripts);
        let before = world.belongings();
        let answer = world.frites(["judge"].iter().chain(options)).expect(code);
        assert_eq!(sentence(&answer.out()), words);
        assert!(answer.stderr.contains("hint: "), "{}", answer.stderr);
        let json = world.frites(["judge", "--json"].iter().chain(options)).expect(code).json();
        assert_eq!((&json["version"], &json["exit_code"]), (&1.into(), &code.into()));
        assert_eq!(json["recommended"], winner, "{words}");
        assert_eq!(json["verified"], code == 0);
        assert_eq!(
            format!(
                "{}: {}",
                json["decision"].as_str().unwrap(),
                json["rationale"].as_str().unwrap()
            ),
            words
        );
        let quiet = world.frites(["judge", "-q"].iter().chain(options)).expect(code);
        let (address, why) = match code {
            0 => (format!("1/{}\n", winner.as_str().unwrap()), String::new()),
            _ => (String::new(), format!("{words}\n")),
        };
        assert_eq!((quiet.out(), quiet.stderr.clone()), (address, why));
        assert_eq!(world.belongings(), before);
        world.assert_clean();
    }
}

#[test]
fn table_has_a_row_per_candidate_and_marks_the_winner() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&[MIDDLE, "true", "echo x > README", SMALL]);
    // c1 and c4 lose the same run of words and gain others: 1 / (1 + ½ + 1), and nothing with c3.
    let judge = ["judge", "-q", "--lint", "true", "--test", "grep -q TWO src/lib.txt"];
    world.frites(judge).expect(0);
    assert_shown("verdict", shown(&world, &["judge", "--replay"]));
    world.assert_clean();
}

#[test]
fn test_that_needs_an_ignored_generated_file_fails() {
    let world = World::new();
    world.write(".gitignore", "generated\n");
    world.commit("ignore");
    world.attempts(&[&format!("{SMALL}; echo x > generated")]);
    world.sh(&world.worktree("1/c1"), "test -e generated").expect(0);
    let answer = world.frites(["judge", "--test", "test -e generated"]).expect(1);
    assert!(sentence(&answer.out()).contains("it failed test (exit 1)"), "{}", answer.out());
    world.assert_clean();
}

#[test]
fn judged_command_finds_nothing_of_the_users_checkout_above_it() {
    let world = World::new();
    world.write(".gitignore", "helper.txt\n");
    let climb = "while [ \"$PWD\" != / ]; do [ -e helper.txt ] && exit 0; cd ..; done; exit 1\n";
    world.write("climb.sh", climb);
    world.commit("a script that climbs");
    world.write("helper.txt", "the user's\n");
    world.attempts(&[SMALL]);
    world.sh(&world.worktree("1/c1"), "sh climb.sh").expect(0);
    world.frites(["judge", "--test", "sh climb.sh"]).expect(1);
    world.assert_clean();
}

#[test]
fn equal_trees_are_judged_once() {
    for count in [2, 5] {
        let world = World::new();
        let run = world.attempts(&vec![SMALL; count]);
        let out = world
            .frites([
                "judge",
                "-j",
                "4",
                "--test",
                "sed -n 2p src/lib.txt >> \"$HOME/runs\"; grep -q TWO src/lib.txt",
            ])
            .expect(0)
            .out();
        assert_eq!(lines_of(&world, "runs").iter().filter(|line| *line == "TWO").count(), 1);
        assert!(!row(&out, "c1").contains(&"same"), "{out}");
        for i in 2..=count {
            assert!(row(&out, &format!("c{i}")).ends_with(&["same", "tree", "as", "c1"]), "{out}");
        }
        let all = if count == 2 { "c1 and c2" } else { "c1, c2, c3, c4 and c5" };
        assert_eq!(
            sentence(&out),
            format!(
                "judge: {count} of {count} passed; {all} made the same tree, with 2 lines in 1 file; c1 was spawned first"
            )
        );
        world.frites(["apply", &format!("{run}/c2")]).expect(0);
        assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c2"));
        world.assert_clean();
    }
}

/// Of trees of one size, the one that several attempts arrived at independently is likelier right.
#[test]
fn tree_that_more_attempts_made_wins_a_tie() {
    let world = World::new();
    world.attempts(&["echo a > new", "echo b > new", "echo c > new", "echo b > new"]);
    let answer = world.frites(["judge", "--explain", "--test", "test -e new"]).expect(0);
    assert_eq!(
        sentence(&answer.out()),
        "judge: 4 of 4 passed; c2 and c4 made the same tree, with 1 line in 1 file; c2 was spawned \
         first; c1 is the same size, but fewer attempts made its tree"
    );
    let step = "c4 before c1: 2 attempts made its tree, not 1\n";
    assert!(answer.stderr.contains(step), "{}", answer.stderr);
    // That tree is the first that runs, and no other can win then.
    let json =
        world.frites(["judge", "--until-pass", "--no-cache", "--json", "--test", "test -e new"]);
    let json = json.expect(0).json();
    assert_eq!((&json["recommended"], &json["effort"]["ran"]), (&"c2".into(), &1.into()));
    world.assert_clean();
}

#[test]
fn stages_run_in_order_and_stop_at_the_first_failure() {
    let world = World::new();
    let step = |name: &str| {
        format!(
            "echo {name} >> \"$HOME/order\"; echo out-{name}; echo err-{name} >&2; ! test -e no-{name}"
        )
    };
    world.attempts(&[
        SMALL,
        "echo x > no-lint",
        "echo x > no-setup",
        "kill() { :; }; echo x > no-build",
    ]);
    // After `spawn`, which would run it in each worktree.
    world.git(["config", "frites.spawn.setup", &step("setup")]);
    let (build, lint, test) = (step("build"), step("lint"), step("test"));
    let json = world
        .frites(["judge", "--test", &test, "--lint", &lint, "--build", &build, "--json"])
        .expect(0)
        .json();
    assert_eq!(
        lines_of(&world, "order").join(" "),
        "setup build lint test setup build lint test setup build lint setup setup build",
        "the base and the candidates are judged one after the other, in spawn order"
    );
    let outcomes = |at: usize| -> Vec<&str> {
        let results = json["candidates"][at]["results"].as_array().unwrap();
        results.iter().map(|r| r["outcome"].as_str().unwrap()).collect()
    };
    assert_eq!(outcomes(0), ["passed"; 4]);
    assert_eq!(outcomes(1), ["passed", "passed", "failed", "skipped"]);
    assert_eq!(outcomes(2), ["failed", "skipped", "skipped", "skipped"]);
    assert_eq!(outcomes(3), ["passed", "failed", "skipped", "skipped"]);
    let log = |candidate: &str, stage: &str| {
        fs::read_to_string(world.repo.join(format!(".frites/runs/1/{candidate}/{stage}.log"))).ok()
    };
    for stage in ["setup", "build", "lint", "test"] {
        assert_eq!(log("c1", stage), Some(format!("out-{stage}\nerr-{stage}\n")));
    }
    assert_eq!(log("c2", "test"), None);
    world.assert_clean();
}

#[test]
fn command_that_is_killed_or_missing_does_not_pass() {
    let world = World::new();
    world.attempts(&[SMALL]);
    for (end, words) in [
        ("kill -KILL $$", "failed test (signal 9)"),
        ("no-such-program-here", "failed test (exit 127: command not found)"),
        ("./src/lib.txt", "failed test (exit 126: not executable)"),
    ] {
        let test = format!("if grep -q two src/lib.txt; then exit 1; else {end}; fi");
        let answer = world.frites(["judge", "--test", &test]).expect(1);
        assert!(sentence(&answer.out()).contains(words), "{}", answer.out());
    }
    world.assert_clean();
}

#[test]
fn checkout_is_clean_and_detached_and_removed_afterwards() {
    crate::common::in_the_open_world();
    let mut world = World::new();
    world.write(".gitattributes", "*.crlf text eol=crlf\n");
    world.write("a.crlf", "x\n");
    let base = world.commit("attributes");
    // The report is that of the only judging.
    world.git(["config", "frites.oracle.base-tests", "never"]);
    world.attempts(&["echo x >> a.crlf; chmod +x README; ln -s README link"]);
    // As if judge ran inside of another candidate's command, in a hook of git's.
    for name in
        ["RUN", "CANDIDATE", "INDEX", "COUNT", "BASE", "WORKTREE", "PROMPT_FILE", "PORT", "DEPTH"]
    {
        world.set_env(&format!("FRITES_{name}"), "leaked");
    }
    world.set_env("GIT_DIR", world.repo.join(".git"));
    world.set_env("GIT_WORK_TREE", world.repo.clone());
    world.set_env("GIT_INDEX_FILE", world.repo.join(".git/index"));
    world.set_env("GIT_PREFIX", "src/");
    let test = "exec > \"$HOME/report\"; pwd; git rev-parse HEAD^{tree}; git rev-parse HEAD^; git symbolic-ref -q HEAD || echo detached; \
        git rev-parse --show-toplevel; git status --porcelain --ignored; echo end of status; \
        env | grep -v -E '^FRITES_(SANDBOX|SPAWN_GUARD|SPAWN_HOME)' | grep -E '^(FRITES_|GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX)=)'; echo end of env; wc -c";
    world.frites(["judge", "-q", "--test", test]).expect(0);
    let report = lines_of(&world, "report");
    let place = PathBuf::from(&report[0]);
    let tree = world.tree("refs/frites/1/c1");
    assert_eq!(
        report[1..],
        [&tree, &base, "detached", &report[0], "end of status", "end of env", "0"]
    );
    assert!(
        !place.starts_with(&world.repo) && place.starts_with(world.home().join("cache")),
        "{}",
        place.display()
    );
    assert!(!place.exists());
    assert_eq!(
        world.git(["worktree", "list", "--porcelain"]).matches("worktree ").count(),
        2,
        "the user's and c1's"
    );
    world.assert_clean();
}

#[test]
fn files_left_in_the_checkout_reach_no_other_candidate() {
    let world = World::new();
    world.attempts(&[SMALL, MIDDLE]);
    // An oracle that edits tracked files and leaves others, some in directories that cannot be
    // written.
    let test = "! test -e left; echo edited > README; mkdir -p left/deep; echo x > left/deep/x; chmod -R a-w left; git commit -qam hijack; exit 0";
    let before = world.belongings();
    world.frites(["judge", "-q", "--test", &format!("{test}; test ! -e left")]).expect(0);
    assert_eq!(world.belongings(), before);
    world.frites(["apply"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1"));
    assert_eq!(fs::read_to_string(world.repo.join("README")).unwrap(), "hello\n");
    world.assert_clean();
}

#[test]
fn verdict_is_the_same_from_any_directory() {
    let mut world = World::new();
    world.attempts(&[LARGE, SMALL, "echo x > README"]);
    let words = [
        "judge",
        "1",
        "--json",
        "--test",
        "test \"$(pwd -P)\" = \"$PWD\" && grep -q TWO src/lib.txt",
    ];
    let first = timeless(world.frites(words).expect(0).json());
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    for place in [
        world.repo.join("src"),
        linked.clone(),
        linked.join("src"),
        world.worktree("1/c3"),
        world.repo.join(".git"),
    ] {
        assert_eq!(
            timeless(world.frites_in(&place, words).expect(0).json()),
            first,
            "{}",
            place.display()
        );
    }
    world.set_env("GIT_DIR", world.repo.join(".git"));
    world.set_env("GIT_WORK_TREE", world.repo.clone());
    assert_eq!(timeless(world.frites_in(&world.home(), words).expect(0).json()), first);
    assert_eq!(first["recommended"], "c2");
    world.assert_clean();
}

#[test]
fn judge_captures_the_worktree_first() {
    let world = World::new();
    world.attempts(&[
        "echo x > README; git commit -qam committed; printf 'staged\\n' > src/lib.txt; git add -A; printf 'TWO\\n' > src/lib.txt; echo new > untracked",
    ]);
    let test = "test \"$(cat src/lib.txt README untracked)\" = \"$(printf 'TWO\\nx\\nnew')\"";
    world.frites(["judge", "-q", "--test", test]).expect(0);
    world.sh(&world.worktree("1/c1"), "echo later > untracked").expect(0);
    world.frites(["judge", "-q", "--test", test]).expect(1);
    assert_eq!(world.git(["show", "refs/frites/1/c1:untracked"]), "later");
    assert_eq!(world.git(["show", "refs/frites/1/c1~1:untracked"]), "new");
    world.assert_clean();
}

#[test]
fn candidates_that_changed_nothing_are_told_where_to_go_on() {
    let world = World::new();
    world.attempts(&["true"]);
    let hints = |words: &[&str], code| -> Vec<String> {
        let told = world.frites(words).expect(code).stderr;
        told.lines().filter_map(|line| line.strip_prefix("hint: ")).map(str::to_owned).collect()
    };
    let judge = ["judge", "--test", "true", "1"];
    let states = |run| format!("`git frites status {run}` shows each candidate's state");
    let open = "change files in the worktree: `cd \"$(git frites path 1/c1)\"`, then judge again"
        .to_owned();
    assert_eq!(hints(&judge, 4), [states(1), open.clone()]);
    assert_eq!(hints(&["apply", "--allow-unverified", "1/c1"], 1), std::slice::from_ref(&open));
    // The change may have been made in the wrong place.
    world.write("README", "changed here\n");
    let told = hints(&judge, 4);
    let here = "your checkout has changes that are not committed, so no attempt has them; make \
                an attempt of them: `git diff --binary HEAD | git frites add --patch - 1`";
    assert_eq!(told, [states(1), open, here.to_owned()]);
    let line = here.rsplit('`').nth(1).unwrap();
    world.sh(&world.repo, line).expect(0);
    world.frites(judge).expect(0);
    world.git(["checkout", "-q", "."]);
    // A command that changed nothing may have said why.
    world.frites(["spawn", "-n", "1", "--", "echo", "why"]).expect(4);
    let output = "see what its command printed: `git frites output 2/c1`".to_owned();
    assert_eq!(hints(&["judge", "--test", "true", "2"], 4), [states(2), output]);
    world.assert_clean();
}

#[test]
fn candidate_whose_command_failed_cannot_win() {
    let world = World::new();
    let script = "printf 'TWO\\n' > src/lib.txt; case {index} in 1) exit 3;; 2) echo more > more;; 3) git checkout -q src;; esac";
    world.frites(["spawn", "-n", "3", "--", "sh", "-c", script]).expect(0);
    let out = world
        .frites(["judge", "--test", "echo ran >> \"$HOME/runs\"; grep -q TWO src/lib.txt"])
        .expect(0)
        .out();
    assert!(sentence(&out).starts_with("single: c2 is the only usable candidate"), "{out}");
    assert!(row(&out, "c1").join(" ").ends_with("failed (exit 3)"), "{out}");
    assert_eq!(row(&out, "c3").last(), Some(&"empty"));
    assert_eq!(lines_of(&world, "runs").len(), 2, "for the base and c2");
    world.frites(["apply", "1/c1"]).refuses(1, "1/c1 was not judged");
    world.assert_clean();
}

#[test]
fn record_commit_has_the_base_and_judged_commits_as_parents() {
    let world = World::new();
    let base = world.git(["rev-parse", "HEAD"]);
    world.attempts(&[SMALL, LARGE, SMALL, "true"]);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    let record = world.git(["show", "refs/frites/1/@record:verdict.toml"]);
    assert_eq!(
        fs::read_to_string(world.repo.join(".frites/runs/1/verdict.toml")).unwrap().trim_end(),
        record.trim_end()
    );
    let verdict: toml::Table = record.parse().unwrap();
    assert_eq!(verdict["recommended"].as_str(), Some("c1"));
    assert_eq!(verdict["oracle"][0]["command"].as_str(), Some("true"));
    assert_eq!(
        verdict["candidates"][1]["tree"].as_str(),
        Some(world.tree("refs/frites/1/c2").as_str())
    );
    let parents = world.git(["log", "-1", "--format=%P", "refs/frites/1/@record"]);
    let mut parents: Vec<&str> = parents.split(' ').collect();
    assert_eq!(parents.remove(0), base);
    // The last one is the record that was made with the run.
    let first = parents.pop().unwrap();
    let previous = world.git(["log", "-1", "--format=%B", "refs/frites/1/@record"]);
    assert!(previous.contains(&format!("Frites-Previous: {first}")), "{previous}");
    assert_eq!(world.git(["rev-parse", &format!("{first}^@")]), base);
    let mut judged: Vec<String> = parents.iter().map(|p| world.tree(p)).collect();
    let mut trees = vec![world.tree("refs/frites/1/c1"), world.tree("refs/frites/1/c2")];
    judged.sort();
    trees.sort();
    assert_eq!(judged, trees);
    for parent in parents {
        assert_eq!(world.git(["rev-parse", &format!("{parent}^@")]), base);
    }
    world.assert_clean();
}

#[test]
fn judge_replay_decides_without_running_anything() {
    let world = World::new();
    world.attempts(&[LARGE, SMALL]);
    world.frites(["judge", "--replay"]).refuses(128, "run 1 was never judged");
    let first =
        world.frites(["judge", "--json", "--test", "echo ran >> \"$HOME/runs\""]).expect(0).json();
    // Neither the worktree nor the files under .frites/ have a say.
    world.sh(&world.worktree("1/c2"), "git checkout -q .").expect(0);
    fs::remove_dir_all(world.repo.join(".frites/runs")).unwrap();
    let mut replayed = world.frites(["judge", "--json", "--replay"]).expect(0).json();
    assert_eq!((&first["effort"]["ran"], &replayed["effort"]["ran"]), (&2.into(), &0.into()));
    replayed["effort"] = first["effort"].clone();
    assert_eq!(replayed, first);
    assert_eq!(
        lines_of(&world, "runs").len(),
        3,
        "one for the base and for each tree, and none for the replay"
    );
    world.frites(["judge", "--replay", "--test", "true"]).refuses(
        128,
        "run 1 was judged on other terms than those given here: its test command is `echo",
    );
    world.assert_clean();
}

#[test]
fn judge_twice_prints_the_same() {
    let world = World::new();
    world.attempts(&[LARGE, SMALL, "echo x > README"]);
    let words = ["judge", "--json", "--test", "grep -q TWO src/lib.txt"];
    let first = world.frites(words).expect(0).json();
    assert_eq!(timeless(world.frites(words).expect(0).json()), timeless(first));
    world.assert_clean();
}

/// SCOREBOARD row 27: the commands end in an order that files in HOME decide.
#[test]
fn finishing_order_does_not_change_the_verdict() {
    let world = World::new();
    world.write("id", "base\n");
    world.commit("a name");
    let scripts = ["c1", "c2", "c3", "c4"].map(|id| format!("echo {id} > id; {SMALL}"));
    world.attempts(&scripts.each_ref().map(String::as_str));
    // With a job for each, and one for the base.
    let test = "! grep -q base id || exit 1; place=$(cat \"$HOME/place-$(cat id)\"); i=0
        until test $place = 1 || test -e \"$HOME/done-$((place-1))\"; do i=$((i+1)); test $i -lt 2000 || exit 9; sleep 0.01; done
        cat id >> \"$HOME/ended\"; touch \"$HOME/done-$place\"; ! grep -q c1 id";
    let mut verdicts = Vec::new();
    for order in [[1, 2, 3, 4], [4, 3, 2, 1], [3, 1, 4, 2]] {
        world.sh(&world.home(), "rm -f done-* ended").expect(0);
        for (at, place) in order.iter().enumerate() {
            write(&world.home().join(format!("place-c{}", at + 1)), place.to_string());
        }
        verdicts.push(timeless(
            world
                .frites(["judge", "-j", "5", "--no-cache", "--json", "--test", test])
                .expect(0)
                .json(),
        ));
        let mut expected: Vec<(i32, String)> =
            (1..=4).map(|i| (order[i - 1], format!("c{i}"))).collect();
        expected.sort();
        assert_eq!(
            lines_of(&world, "ended"),
            expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        );
    }
    assert_eq!(verdicts[0]["recommended"], "c2");
    assert!(verdicts.iter().all(|v| *v == verdicts[0]));
    world.assert_clean();
}

#[test]
fn options_override_environment_git_config_file_and_detection() {
    let mut world = World::new();
    world.write("Makefile", "test:\n\ttrue\n");
    world.commit("make");
    world.attempts(&[SMALL]);
    let told = |world: &World, options: &[&str]| {
        let answer = world.frites(["judge", "--explain"].iter().chain(options)).expect(0);
        answer
            .stderr
            .lines()
            .filter(|l| l.contains(", from ") && !l.starts_with("passed over"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&world, &[]), ["test: `make test`, from Makefile"]);
    world.write(".frites.toml", "[oracle]\ntest = ['test', '1', '=', '1']\nlint = 'true'\n");
    assert_eq!(
        told(&world, &[]),
        ["lint: `true`, from .frites.toml", "test: `test 1 = 1`, from .frites.toml"]
    );
    world.git(["config", "frites.oracle.test", "true from git"]);
    assert_eq!(
        told(&world, &[]),
        [
            "lint: `true`, from .frites.toml",
            "test: `true from git`, from git config frites.oracle.test"
        ]
    );
    world.set_env("FRITES_ORACLE_TEST", "true from env");
    assert_eq!(
        told(&world, &[]),
        ["lint: `true`, from .frites.toml", "test: `true from env`, from FRITES_ORACLE_TEST"]
    );
    assert_eq!(
        told(&world, &["--build", "true"]),
        ["build: `true`, from --build"],
        "flags name all that runs"
    );
    world.assert_clean();
}

#[test]
fn detection_can_be_switched_off() {
    let world = World::new();
    world.write("Makefile", "test:\n\tfalse\n");
    world.commit("make");
    world.attempts(&[SMALL]);
    world.frites(["judge", "-q"]).expect(1);
    world.git(["config", "frites.oracle.detect", "false"]);
    let answer = world.frites(["judge", "--explain"]).expect(3);
    assert!(
        answer.stderr.contains("no command was given, configured or detected"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("hint: name the commands: `git frites judge 1 --test CMD`"),
        "{}",
        answer.stderr
    );
    world.assert_clean();
}

#[test]
fn configuration_of_an_attempt_does_not_choose_the_test() {
    let world = World::new();
    world.write(".frites.toml", "[oracle]\ntest = 'false'\n");
    world.write("Makefile", "test:\n\tfalse\n");
    world.commit("configured");
    world.attempts(&[
        "printf '[oracle]\\ntest = \"true\"\\n' > .frites.toml; printf 'test lint:\\n\\ttrue\\n' > Makefile",
    ]);
    for place in [world.repo.clone(), world.worktree("1/c1")] {
        world.frites_in(&place, ["judge", "-q"]).expect(1);
        assert!(
            world
                .git(["show", "refs/frites/1/@record:verdict.toml"])
                .contains("command = \"false\"")
        );
    }
    // Detection, too, looks at the base.
    fs::remove_file(world.repo.join(".frites.toml")).unwrap();
    let answer = world.frites(["judge", "--explain"]).expect(3);
    assert!(answer.stderr.contains("test: `make test`, from Makefile"), "{}", answer.stderr);
    world.assert_clean();
}

#[test]
fn forged_verdict_file_lands_nothing() {
    let world = World::new();
    world.attempts(&[SMALL]);
    world.frites(["judge", "-q", "--test", "false"]).expect(1);
    let file = world.repo.join(".frites/runs/1/verdict.toml");
    let text = fs::read_to_string(&file).unwrap();
    let forged = text
        .replace("\"near-miss\"", "\"single\"")
        .replace("outcome = \"failed\"\ncode = 1", "outcome = \"passed\"");
    assert!(
        forged.contains("outcome = \"passed\"") && forged.contains("decision = \"single\""),
        "{forged}"
    );
    fs::write(&file, forged).unwrap();
    world.frites(["apply"]).refuses(1, "failed test (exit 1)");
    world.frites(["apply", "1/c1"]).refuses(1, "failed test (exit 1)");
    assert_eq!(
        world.frites(["judge", "--replay", "--json"]).expect(1).json()["decision"],
        "near-miss"
    );
    world.assert_clean();
}

#[test]
fn unknown_program_is_fatal_before_anything_runs() {
    let world = World::new();
    world.write(
        ".frites.toml",
        "[oracle]\nbuild = 'echo ran >> \"$HOME/runs\"'\ntest = ['no-such-program-here', '-x']\n",
    );
    world.commit("configured");
    world.attempts(&[SMALL]);
    let answer = world
        .frites(["judge"])
        .refuses(128, "the test command cannot run: 'no-such-program-here' is not on PATH");
    assert!(
        answer.stderr.contains("--test CMD") && answer.stderr.contains(".frites.toml"),
        "{}",
        answer.stderr
    );
    assert_eq!(lines_of(&world, "runs").len(), 0);
    world.assert_clean();
}

#[test]
fn program_of_the_project_is_looked_up_in_each_checkout() {
    let world = World::new();
    world.write(".frites.toml", "[oracle]\ntest = ['./check', 'src/lib.txt']\n");
    world.write("check", "#!/bin/sh\ngrep -q TWO \"$1\"\n");
    make_executable(&world.repo.join("check"));
    world.commit("a check of its own");
    world.attempts(&[SMALL, "rm check"]);
    let answer = world.frites(["judge"]).expect(0);
    assert!(sentence(&answer.out()).starts_with("tests: only c1 of 2 passed"), "{}", answer.out());
    assert!(
        answer.out().contains("c2 failed test (could not start: No such file or directory)"),
        "{}",
        answer.out()
    );
    assert!(row(&answer.out(), "c2").windows(2).any(|w| w == ["no", "start"]), "{}", answer.out());
    world.assert_clean();
}

#[test]
fn running_run_is_not_judged() {
    let world = World::new();
    let script = "touch \"$HOME/started-{index}\"; i=0; until test -e \"$HOME/go\" || test $i = 2000; do i=$((i+1)); sleep 0.01; done; echo x > x";
    let mut spawn = world.command(
        &world.repo,
        "git-frites",
        ["spawn", "-n", "2", "-j", "2", "--", "sh", "-c", script],
    );
    let null = std::process::Stdio::null;
    let mut spawn = spawn.stdout(null()).stderr(null()).spawn().unwrap();
    poll(|| (1..=2).all(|i| world.home().join(format!("started-{i}")).exists()));
    let answer = world
        .frites(["judge", "--test", "true"])
        .refuses(128, "run 1 is still at work in another process");
    assert!(answer.stderr.contains("git frites status 1"), "{}", answer.stderr);
    write(&world.home().join("go"), "");
    assert!(spawn.wait().unwrap().success());
    world.frites(["judge", "--test", "test -e x"]).expect(0);
    world.assert_clean();
}

#[test]
fn judge_decides_over_runs_not_candidates() {
    let world = World::new();
    world.frites(["judge"]).refuses(128, "there is no run yet");
    world.attempts(&[SMALL]);
    let answer = world.frites(["judge", "1/c1"]).refuses(2, "'1/c1' is a candidate");
    assert!(answer.stderr.contains("judge 1 --candidate c1"), "{}", answer.stderr);
    world.frites(["judge", "7"]).refuses(128, "there is no run '7'");
    world.assert_clean();
}

#[test]
fn near_miss_is_not_marked_like_a_winner() {
    let world = World::new();
    world.attempts(&["echo new > new"]);
    let judged = world.frites(["judge", "--test", "exit 7"]).expect(1).out();
    let status = world.frites(["status"]).expect(0).out();
    for text in [judged, status] {
        assert!(text.contains("\n~  1/c1") && !text.contains('*'), "{text}");
    }
    let report = world.frites(["report", "--markdown"]).expect(0).out();
    assert!(report.contains("| \\~ | ") && !report.contains('→'), "{report}");
}

#[test]
fn judging_without_commands_replaces_no_verdict_that_had_some() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    let test = ["judge", "--test", "grep -qx new src/lib.txt || true"];
    world.frites(test).expect(0);
    for again in 1..=2 {
        let without = world.frites(["judge"]).expect(3);
        assert!(without.out().contains("\nno-oracle: "), "{again}: {}", without.out());
    }
    let status = world.frites(["status", "1", "--json"]).expect(0).json();
    assert_eq!(status["runs"][0]["verdict"]["decision"], "judge", "{status:#}");
    assert_eq!(world.events().iter().filter(|event| event["event"] == "judged").count(), 1);
    world.frites(["apply", "1"]).expect(0);
}

#[test]
fn hints_that_judge_again_name_the_commands_that_options_named() {
    let world = World::new();
    world.attempts(&[SMALL, LARGE]);
    let command = "grep -qx 'a new line' src/lib.txt";
    let test = r"--test 'grep -qx '\''a new line'\'' src/lib.txt'";
    let hinted = |answer: &Answer, hint: &str| {
        assert!(answer.stderr.contains(hint), "{hint}\n{}", answer.stderr);
    };
    let near_miss = world.frites(["judge", "--test", command]).expect(1);
    hinted(&near_miss, &format!(", then judge again: `git frites judge 1 {test}`\n"));
    world.sh(&world.worktree("1/c1"), "echo a new line >> src/lib.txt").expect(0);
    let refused = world.frites(["apply", "--judged", "1/c2"]).expect(1);
    hinted(&refused, "see why: `git frites output 1/c2`");
    let added = world.frites(["add", "1", "-n", "1"]).expect(0);
    hinted(&added, &format!("decide again with `git frites judge 1 {test}`\n"));
    let retried = world.frites(["retry", "1/c2", "--", "sed", "-i", "1d", "src/lib.txt"]).expect(0);
    hinted(&retried, &format!("decide with `git frites judge 1 {test}`\n"));
    let without = world.frites(["judge", "1"]).expect(3);
    hinted(
        &without,
        &format!(
            "hint: this verdict without commands does not replace the last one; to judge as before: `git frites judge 1 {test}`\n"
        ),
    );
    // What a hint names can be typed.
    world.sh(&world.repo, &format!("git frites judge 1 {test}")).expect(0);
    let plain = "git -c frites.oracle.test=false frites judge 1";
    hinted(&world.sh(&world.repo, plain).expect(1), "then judge again: `git frites judge 1`\n");
}
