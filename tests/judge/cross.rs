//! The tests of candidates on each other and on the base, with a test runner of a few lines.
use serde_json::{Value, json};

use crate::common::{World, in_the_open_world};

/// Runs each `tests/*.t` with sh and reports it by name; counts its runs. One that exits with 77
/// ends it without a report.
const CHECK: &str = "echo >> \"$HOME/runs\"
rm -f report.xml
{ echo '<testsuite>'
for t in tests/*.t; do
  sh $t; end=$?; test $end != 77 || exit 1
  echo \"<testcase name='$t'>\"; test $end = 0 || echo '<failure/>'; echo '</testcase>'
done
echo '</testsuite>'; } > report.tmp || exit 1
mv report.tmp report.xml
! grep -q failure report.xml
";

/// A project whose change is the file `value.rs`, of which candidates write tests.
fn project() -> World {
    in_the_open_world();
    let world = World::new();
    world.write("check.sh", CHECK);
    world.write("tests/old.t", "test -e value.rs\n");
    world.write("value.rs", "1\n");
    world.write(".frites.toml", "[oracle]\njunit = 'report.xml'\ntest = 'sh check.sh'\n");
    world.write(".gitignore", "report.*\n");
    world.commit("a project");
    world
}

/// The number of times that the tests ran in a judging.
#[track_caller]
fn runs_of(world: &World, words: &[&str]) -> usize {
    let file = world.home().join("runs");
    std::fs::write(&file, "").unwrap();
    world.frites(["judge", "-q", "--no-cache"].iter().chain(words)).expect(0);
    std::fs::read_to_string(file).unwrap().lines().count()
}

fn named<'v>(verdict: &'v Value, candidate: &str) -> &'v Value {
    let mut all = verdict["candidates"].as_array().unwrap().iter();
    all.find(|entry| entry["candidate"] == candidate).unwrap()
}

#[test]
fn cross_judging_takes_one_more_run_for_each_tree_and_a_proof_one_at_all() {
    let world = project();
    let with_test =
        |n: usize| format!("echo 1{n} > value.rs; echo 'grep -q 1 value.rs' > tests/{n}.t");
    let without = |n: usize| format!("echo 1{n} > value.rs; printf 'x{n}\\n\\n' >> value.rs");
    let scripts: Vec<String> = (1..=4).map(with_test).chain((5..=8).map(without)).collect();
    world.attempts(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    world.git(["config", "frites.oracle.proof", "never"]);
    let never = runs_of(&world, &[]);
    assert_eq!(runs_of(&world, &["--cross"]), never + 9);
    world.git(["config", "frites.oracle.proof", "auto"]);
    assert_eq!(runs_of(&world, &[]), never + 1);
    assert_eq!(runs_of(&world, &["--cross"]), never + 9);
    world.git(["config", "frites.oracle.proof", "always"]);
    assert_eq!(runs_of(&world, &[]), never + 4);
    // Two that write the same file collide: each is judged apart on all eight and the base.
    world.sh(&world.worktree("1/c2"), "mv tests/2.t tests/1.t; echo true >> tests/1.t").expect(0);
    let pairs = runs_of(&world, &["--cross"]) - never;
    assert!((17..=9 + 9 + 9).contains(&pairs), "{pairs}");
    world.assert_clean();
}

#[test]
fn hint_names_the_tests_of_another_candidate_that_the_winner_was_not_run_on_or_fails() {
    let world = project();
    let half = "echo 12 > value.rs";
    let whole = "printf '12\n3\n' > value.rs; echo 'grep -q 3 value.rs' > tests/3.t";
    world.attempts(&[half, whole]);
    let alone = world.frites(["judge", "1"]).expect(0).stderr;
    assert!(
        alone.contains("hint: c2 ran 1 test more than c1: `git frites judge 1 --cross` runs"),
        "{alone}"
    );
    let crossed = world.frites(["judge", "1", "--cross"]).expect(0).stderr;
    let hint = "hint: c1 fails c2's test tests/3.t, as the base does: if that should pass, land c2 instead: \
                `git frites judge 1 --candidate c2 && git frites judge 1 --replay && git frites apply 1/c2`";
    assert!(crossed.contains(hint), "{crossed}");
    let explained = world.frites(["explain", "1"]).expect(0).stderr;
    assert!(explained.contains(hint), "{explained}");
    let refused = world.frites(["apply", "1/c2"]).expect(1).stderr;
    assert!(
        refused.contains("`git frites judge 1 --candidate c2 && git frites judge 1 --replay`"),
        "{refused}"
    );
    world.frites(["judge", "1", "--candidate", "c2"]).expect(0);
    world.frites(["judge", "1", "--replay"]).expect(0);
    world.frites(["apply", "1/c2"]).expect(0);
    assert_eq!(world.git(["diff", "--staged", "--name-only"]).trim(), "tests/3.t\nvalue.rs");
    world.git(["switch", "-q", "-f", "-"]);
    // Nothing is asked about tests that pass on the winner, too.
    world.attempts(&[half, "printf '12\n\n' > value.rs; echo 'grep -q 2 value.rs' > tests/3.t"]);
    let crossed = world.frites(["judge", "2", "--cross"]).expect(0).stderr;
    assert!(!crossed.contains("hint: c1 fails"), "{crossed}");
    // A candidate that passes only with its own tests may be right, too; and it need not have more
    // tests.
    world.write("tests/old.t", "! grep -q 3 value.rs\n");
    world.commit("a test that expects something else");
    world.attempts(&[half, "printf '12\n3\n' > value.rs; echo 'grep -q 3 value.rs' > tests/old.t"]);
    let alone = world.frites(["judge", "3"]).expect(0).stderr;
    assert!(alone.contains("hint: c2 edits tests: `git frites judge 3 --cross` runs"), "{alone}");
    let crossed = world.frites(["judge", "3", "--cross"]).expect(0).stderr;
    let hint = "hint: c1 fails c2's test tests/old.t, as the base does: if that should pass, look at c2: `git frites \
                diff 3/c2`";
    assert!(crossed.contains(hint), "{crossed}");
}

#[test]
fn winner_proves_itself_by_tests_that_fail_on_the_base() {
    let world = project();
    let test = |words: &str| format!("echo 2 > value.rs; echo '{words}' > tests/new.t");
    let cases = [
        (
            "grep -q 2 value.rs",
            "c1 proves itself: its own tests fail on the base and pass here: tests/new.t",
            "proves itself",
        ),
        (
            "true",
            "c1 changes tests, but they pass on the base, too, so they do not show that the change works",
            "its tests pass on the base",
        ),
        (
            "grep -q 2 value.rs || exit 77",
            "c1 proves itself weakly: its tests do not run on the base",
            "its tests do not run on the base",
        ),
    ];
    for (words, sentence, label) in cases {
        let run = world.attempts(&[&test(words)]);
        let answer = world.frites(["judge", &run]).expect(0);
        assert!(answer.stderr.contains(sentence), "{}", answer.stderr);
        // The table comes first; it is told from then on.
        assert!(!answer.out().contains(label), "{}", answer.out());
        let told = world.frites(["status", &run]).expect(0).out();
        assert!(told.contains(label), "{told}");
        let json = world.frites(["judge", "--json", &run]).expect(0).json();
        let shows = json["candidates"][0]["proof"]["shows"].as_str();
        // The reason does not say less than the proof.
        let open =
            json["rationale"].as_str().unwrap().contains("alone shows only that nothing broke");
        assert_eq!(open, shows.unwrap() != "change", "{json}");
    }
    // A test that was changed counts as the base's does not.
    let run = world.attempts(&["echo 3 > value.rs; echo 'grep -q 3 value.rs' > tests/old.t"]);
    let answer = world.frites(["judge", &run]).expect(0);
    assert!(
        answer.stderr.contains("fail on the base and pass here: tests/old.t"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("the tests of c1 are judged on the base, where they should fail"),
        "{}",
        answer.stderr
    );
    // Without tests of its own there is nothing to say.
    let run = world.attempts(&["echo 4 > value.rs"]);
    let answer = world.frites(["judge", &run]).expect(0);
    assert!(!answer.stderr.contains("its tests"), "{}", answer.stderr);
    let json = world.frites(["judge", "--json", &run]).expect(0).json();
    assert_eq!(json["candidates"][0]["proof"], json!(null));
    world.assert_clean();
}

#[test]
fn tests_of_the_others_rank_tell_apart_and_are_shown() {
    let world = project();
    // c1 is wrong and small; c2 and c3 want 2, and each has a test of it; c4's test ends the stage
    // elsewhere.
    let run = world.attempts(&[
        "echo 3 > value.rs",
        "printf '2\\n\\n\\n' > value.rs; echo 'grep -q 2 value.rs' > tests/two.t",
        "printf '2\\n\\n\\n\\n' > value.rs; echo '! grep -q 3 value.rs' > tests/three.t; echo 'grep -q 2 value.rs' > tests/more.t",
        "printf '2\\n\\n\\n\\n\\nfour' > value.rs; echo 'grep -q four value.rs || exit 77' > tests/four.t",
    ]);
    let by_size = world.frites(["judge", "--cross", "--explain"]).expect(0);
    assert!(
        by_size.out().contains("judge: 4 of 4 passed; c1 changes the fewest lines"),
        "{}",
        by_size.out()
    );
    assert!(
        by_size.stderr.contains("--rank cross would recommend c2 (1.000; c1 has 0.000)"),
        "{}",
        by_size.stderr
    );
    // A failure of such tests is a finding, whose output nobody has to look at.
    assert!(
        by_size.stderr.contains("1/@base with the tests of all: test exit 1"),
        "{}",
        by_size.stderr
    );
    assert!(!by_size.stderr.contains("the whole output"), "{}", by_size.stderr);
    let told =
        "c2's test tests/two.t is a proof: it fails on the base; passes on c2, c3, c4; fails on c1";
    assert!(by_size.stderr.contains(told), "{}", by_size.stderr);
    assert!(by_size.out().contains("fails c2's test tests/two.t"), "{}", by_size.out());
    assert!(by_size.out().contains("fails c3's test tests/more.t and 1 more"), "{}", by_size.out());
    let verdict = world.frites(["judge", "--rank", "cross", "--json"]).expect(0).json();
    assert_eq!(
        (&verdict["recommended"], &verdict["terms"]["rank"]),
        (&json!("c2"), &json!("cross"))
    );
    // c1 is smaller, and has a lower score.
    let why = verdict["rationale"].as_str().unwrap();
    assert!(
        why.contains("; of those with cross 1.000, c2 changes the fewest lines, with"),
        "{why}"
    );
    let score = |name: &str| named(&verdict, name)["cross"]["score"].clone();
    assert_eq!(
        ["c1", "c2", "c3", "c4"].map(score),
        [json!(0.0), json!(1.0), json!(1.0), json!(1.0)]
    );
    let four = &named(&verdict, "c4")["cross"]["tests"][0];
    assert_eq!((&four["base"], &four["passes"]), (&json!("unknown"), &json!(["c4"])));
    assert_eq!(four["fails"], json!([]), "what was not run has not failed");
    let explained = world.frites(["explain"]).expect(0).out();
    let told = "weak proof: it does not run on the base; passes on c4; not run on c1, c2, c3";
    assert!(explained.contains(told), "{explained}");
    let differing = world.frites(["diff", "1/c1", "c2", "--tests"]).expect(0).out();
    assert_eq!(
        differing,
        "c1 fails, c2 passes: c2's test tests/two.t\nc1 fails, c2 passes: c3's test tests/more.t\n\
         c1 fails, c2 passes: c3's test tests/three.t\n"
    );
    let same = world.frites(["diff", "1/c2", "c3", "--tests"]).expect(0);
    assert_eq!(
        (same.out().as_str(), same.stderr.as_str()),
        ("", "no test tells c2 and c3 apart\n")
    );
    let auto = world.frites(["judge", "--replay", "--rank", "auto", "--json"]).expect(0).json();
    assert_eq!(auto["recommended"], "c2");
    world.frites(["judge", &run]).expect(0);
    world.frites(["diff", "1/c1", "c2", "--tests"]).refuses(1, "judge");
    world.assert_clean();
}

/// Two candidates with tests, and a wrong one that is the smallest.
fn wrong_small_and_right_large(world: &World) {
    world.attempts(&[
        "echo 3 > value.rs",
        "printf '2\n\n\n' > value.rs; echo 'grep -q 2 value.rs' > tests/two.t",
        "printf '2\n\n\n\n' > value.rs; echo '! grep -q 3 value.rs' > tests/three.t",
    ]);
}

/// Nothing is decided by lines where the user asks for the tests of others.
#[test]
fn ranking_by_cross_is_refused_where_the_tests_were_not_judged() {
    let world = project();
    wrong_small_and_right_large(&world);
    for words in [
        ["--cross", "--replay"].as_slice(),
        &["--cross", "--in-place"],
        &["--cross", "--candidate", "c1"],
        &["--rank", "cross", "--in-place"],
        // These options would do nothing.
        &["--rank", "agreement", "--candidate", "c1"],
        &["--explain", "--candidate", "c1"],
        &["--until-pass", "--candidate", "c1"],
        &["--until-pass", "-n"],
        &["--cross", "-n"],
        &["--rank", "agreement", "-n"],
        &["--explain", "-q"],
        &["-j", "4", "--replay"],
    ] {
        world.frites(["judge"].iter().chain(words)).refuses(2, "cannot be used with");
    }
    world.frites(["judge"]).expect(0);
    let refused = world
        .frites(["judge", "--replay", "--rank", "cross"])
        .refuses(128, "run 1 cannot be ranked by cross: its candidates were not judged");
    assert!(refused.stderr.contains("`git frites judge 1 --rank cross`"), "{}", refused.stderr);
    // Judged across by another rule, the winner by cross has a pass that nobody confirmed.
    world.frites(["judge", "--cross"]).expect(0);
    let before = world.frites(["status", "--json"]).expect(0).out();
    let refused = world.frites(["judge", "--replay", "--rank", "cross"]).refuses(
        128,
        "ranked by cross, the verdict of run 1 depends on c2 and c3, whose results are not confirmed",
    );
    assert!(
        refused.stderr.contains("`git frites judge 1 --cross --rank cross`"),
        "{}",
        refused.stderr
    );
    assert_eq!(world.frites(["status", "--json"]).expect(0).out(), before, "nothing is recorded");
    let verdict = world.frites(["judge", "--rank", "cross", "--json", "1"]).expect(0).json();
    assert_eq!(verdict["recommended"], "c2");
    world.frites(["judge", "--replay", "--rank", "cross"]).expect(0);
    // A candidate that was judged by itself has no results of others' tests.
    world.frites(["judge", "--candidate", "c1"]).expect(0);
    world.frites(["judge", "--replay"]).refuses(128, "run 1 cannot be ranked by cross");
    world.frites(["judge", "--replay", "--rank", "blast-radius"]).expect(0);
    world.assert_clean();
}

#[test]
fn parts_are_not_ranked_by_cross() {
    let world = project();
    wrong_small_and_right_large(&world);
    world.git(["config", "frites.oracle.rank", "cross"]);
    let refused = world
        .frites(["shard", "open"])
        .refuses(128, "oracle.rank is cross, but parts of run 1 cannot be ranked so");
    assert!(refused.stderr.contains("git -c frites.oracle.rank=auto"), "{}", refused.stderr);
    world.git(["-c", "frites.oracle.rank=auto", "frites", "shard", "open", "1"]);
    world.git(["config", "--unset", "frites.oracle.rank"]);
    world.frites(["shard", "judge", "1", "1/1"]).expect(0);
    let refused = world
        .frites(["shard", "collect", "--rank", "cross", "1"])
        .refuses(2, "parts cannot be ranked by cross");
    assert!(refused.stderr.contains("`git frites judge --rank cross 1`"), "{}", refused.stderr);
    world
        .frites(["judge", "--replay", "--rank", "cross"])
        .refuses(128, "cannot be ranked by cross");
    world.frites(["shard", "collect", "1"]).expect(0);
    let verdict = world.frites(["judge", "--rank", "cross", "--json", "1"]).expect(0).json();
    assert_eq!(verdict["recommended"], "c2");
    world.assert_clean();
}

/// What is said of one tree is said of all candidates that have it, and equal trees are no second
/// voice.
#[test]
fn candidates_with_one_tree_have_the_same_tests() {
    let world = project();
    let wrong = "echo 3 > value.rs; echo 'grep -q 3 value.rs' > tests/wrong.t";
    let right = |n: usize| {
        format!("printf '2\n\n\n{n}' > value.rs; echo '! grep -q 3 value.rs' > tests/{n}.t")
    };
    world.attempts(&[wrong, wrong, &right(4), &right(5)]);
    let verdict = world.frites(["judge", "--rank", "cross", "--json"]).expect(0).json();
    assert_eq!(verdict["recommended"], "c3");
    let table = world.frites(["judge", "--replay"]).expect(0).out();
    assert_eq!(table.matches("fails c3's test tests/4.t").count(), 2, "{table}");
    assert_eq!(table.matches("only its author passes tests/wrong.t").count(), 1, "{table}");
    let of = |one: &str| world.frites(["diff", one, "c3", "--tests"]).expect(0).out();
    assert!(of("1/c2").contains("c2 fails, c3 passes: c3's test tests/4.t\n"), "{}", of("1/c2"));
    assert_eq!(of("1/c1"), of("1/c2").replace("c2", "c1"));
    world.assert_clean();
}

/// The wrong and smallest candidate brings test files that change what other tests say.
#[test]
fn test_files_of_a_candidate_neither_raise_its_score_nor_lower_that_of_others() {
    let all_others = "for t in tests/*.t; do test $t = $0 || echo";
    let is_mine = "grep -q 3 value.rs";
    let right = |n: usize| {
        format!("printf '2\n\n\n\n{n}' > value.rs; echo '! grep -q 3 value.rs' > tests/z{n}.t")
    };
    let attacks: [(String, &str, Value); 5] = [
        // On it every test passes, with a new test or with one of the base. The new test rewrites
        // that of the base, so the candidate does not pass itself.
        (format!("{all_others} true > $t; done"), "tests/a.t", Value::Null),
        (format!("{is_mine} || exit 0; {all_others} true > $t; done"), "tests/a.t", Value::Null),
        (format!("{is_mine} || exit 0; {all_others} true > $t; done"), "tests/old.t", json!(0.0)),
        // On the others every test fails, or those of one author.
        (format!("{is_mine} || {{ {all_others} false > $t; done; }}"), "tests/a.t", json!(0.0)),
        (
            "grep -q [345] value.rs || ! test -e tests/z4.t || echo false > tests/z4.t".into(),
            "tests/a.t",
            json!(0.0),
        ),
    ];
    for (attack, file, score_of_wrong) in attacks {
        let world = project();
        let wrong = format!("echo 3 > value.rs; echo '{attack}' > {file}");
        world.attempts(&[&wrong, &right(4), &right(5), &right(6)]);
        let verdict = world.frites(["judge", "--rank", "cross", "--json"]).expect(0).json();
        let score = |name: &str| named(&verdict, name)["cross"]["score"].clone();
        assert_eq!(
            ["c1", "c2", "c3", "c4"].map(score),
            [score_of_wrong, json!(1.0), json!(1.0), json!(1.0)],
            "{attack}: {verdict:#}"
        );
        assert_eq!(verdict["recommended"], "c2", "{attack}");
        world.assert_clean();
    }
}
