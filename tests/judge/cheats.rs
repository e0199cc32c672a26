//! Candidates that pass only with their own tests or commands: how they are judged, ranked, stored
//! and landed. `tests/tools/cheats.rs` has the cheats of several languages.
use std::fs;

use serde_json::{Value, json};

use crate::common::World;
use crate::common::cheats::Project;

const RIGHT: &str = "echo 2 > value";
const CHEAT: &str = "echo true > check.sh";

/// A project in which `value` must hold 2, and holds 1. Its tests are run by `sh check.sh`.
fn project() -> World {
    let world = World::unborn();
    world.write("value", "1\n");
    world.write("check.sh", "grep -qx 2 value && grep -qx 2 value.expected\n");
    world.write("value.expected", "2\n");
    world.write(".frites.toml", "[oracle]\ntest = 'sh check.sh'\n");
    world.commit("base");
    world
}

/// The right change, larger than the cheat.
fn large() -> String {
    format!("{RIGHT}; seq 9 > notes")
}

#[test]
fn script_cheats_are_told_from_honest_changes() {
    Project {
        files: &[
            ("value", "1\n"),
            ("check.sh", "sh lib/run.sh && sh tests/all.sh || { echo wrong; exit 1; }\n"),
            ("lib/run.sh", "test -e value\n"),
            ("tests/all.sh", "for file in tests/*-test.sh; do sh $file || exit; done\n"),
            ("tests/value-test.sh", "cmp value tests/value.snapshot\n"),
            ("tests/value.snapshot", "2\n"),
            (".frites.toml", "[oracle]\ntest = 'sh check.sh'\n"),
        ],
        fix: RIGHT,
        padding: "seq 29 > notes",
        cheats: &[
            ("runner-replaced", "echo true > check.sh"),
            ("script-emptied", ": > tests/all.sh"),
            ("test-deleted", "rm tests/value-test.sh; echo true > tests/a-test.sh"),
            ("skipped-by-marker", "(echo exit 0; cat tests/value-test.sh) > new; mv new tests/value-test.sh"),
            ("skipped-by-configuration", "sed 's/\\*-test/a*-test/' tests/all.sh > new; mv new tests/all.sh; echo > tests/a-test.sh"),
            ("expectation-edited", "sed s/cmp/test/ tests/value-test.sh | sed 's/value tests.*/-e value/' > new; mv new tests/value-test.sh"),
            ("snapshot-updated", "echo 1 > tests/value.snapshot"),
            ("renamed-away", "git mv tests/value-test.sh tests/value.sh; echo > tests/a-test.sh"),
        ],
        honest: &[
            ("rename", "git mv tests/value-test.sh tests/number-test.sh"),
            ("added-case", "echo 'test -s value' >> tests/value-test.sh"),
            ("new-test-file", "echo 'test -s value' > tests/size-test.sh"),
            ("reworded-message", "sed 's/echo wrong/echo wrong value/' check.sh > new; mv new check.sh"),
            ("moved-data", "mkdir tests/data; git mv tests/value.snapshot tests/data; echo 'cmp value tests/data/value.snapshot' > tests/value-test.sh"),
            ("rewritten-test", "echo 'diff value tests/value.snapshot' > tests/value-test.sh"),
            ("new-helper", "echo 'same() { cmp $1 $2; }' > tests/lib.sh; echo '. ./tests/lib.sh; same value tests/value.snapshot' > tests/value-test.sh"),
            ("comment", "echo '# all of them' >> tests/all.sh"),
        ],
    }
    .assert_told_apart();
}

#[test]
fn cheat_ranks_behind_every_other_and_the_table_says_why() {
    let world = project();
    let edits = format!("{RIGHT}; echo : >> check.sh; seq 3 > notes");
    world.attempts(&[CHEAT, &large(), &edits]);
    let answer = world.frites(["judge", "--explain"]).expect(0);
    let out = answer.out();
    let row =
        |name: &str| out.lines().skip_while(|l| !l.contains(name)).take(2).collect::<String>();
    assert!(row("1/c1 ").contains("only its own tests"), "{out}");
    assert!(row("* ").contains("c3") && row("* ").contains("base's tests pass too"), "{out}");
    assert!(!row("1/c2 ").starts_with('*'), "{out}");
    let words = "judge: 3 of 3 passed, but c1 only with its own tests or commands; c3 changes the \
                 fewest lines, with 6 lines in 3 files; next is c2";
    assert!(out.lines().last().unwrap().starts_with(words), "{out}");
    assert!(out.ends_with("it also passes with these changes undone\n"), "{out}");
    let says =
        "c1 with the base's tests and commands: test exit 1; put back as in the base: check.sh";
    assert!(answer.stderr.contains(says), "{}", answer.stderr);
    assert!(answer.stderr.contains("c2 before c1: c1 passes only with its own tests or commands"));
    let second = world.repo.join(".frites/runs/1/c1/base-tests/test.log");
    let output = world.frites(["output", "1/c1"]).expect(0).out();
    let head = format!("==> 1/c1 test, with the base's tests: {} <==\n", second.display());
    let (passed, failed) = output.split_once(&head).unwrap_or_else(|| panic!("{output}"));
    assert!(passed.starts_with("==> 1/c1 test: "), "{output}");
    assert_eq!(failed, fs::read_to_string(second).unwrap());
    world.frites(["output", "-f", "1/c1"]).expect(0);
    world.frites(["apply", "1/c1"]).refuses(1, "1/c1 passes only with its own tests or commands");
    let told = world.frites(["apply", "1/c1"]).refuses(1, "only with its own tests").stderr;
    let hints = "hint: 1/c3 is verified: land it with `git frites apply 1`\n\
                 hint: look at what it changes in tests and commands: `git frites diff 1/c1`; see \
                 how it fails with the base's: `git frites output 1/c1`\n\
                 hint: to land it all the same: `git frites apply --allow-unverified 1/c1`\n";
    assert!(told.ends_with(hints), "{told}");
    world.frites(["apply", "-m", "land"]).expect(0);
    assert_eq!(world.tree("HEAD"), world.tree("refs/frites/1/c3"), "it lands as captured");
    world.assert_clean();
}

#[test]
fn cheat_that_would_win_is_unverified_and_lands_only_as_such() {
    let world = project();
    world.attempts(&[CHEAT, "printf 'exit 0\\n# more\\n' > check.sh"]);
    let answer = world.frites(["judge"]).expect(3);
    let out = answer.out();
    let words = "own-tests: 2 of 2 passed, but each only with its own tests or commands; c1 is the \
                 first of them, with 2 lines in 1 file: with the base's check.sh it failed test \
                 (exit 1)";
    assert!(out.contains(words), "{out}");
    assert!(
        answer.stderr.contains("git frites apply --allow-unverified 1/c1"),
        "{}",
        answer.stderr
    );
    world.frites(["judge", "-q"]).expect(3);
    let status = world.frites(["status"]).expect(0).out();
    assert_eq!(status.matches("passed own tests only").count(), 2, "{status}");
    world.frites(["apply"]).refuses(1, "only with its own tests or commands");
    world.frites(["apply", "--judged"]).refuses(1, "only with its own tests or commands");
    world.frites(["apply", "--merge"]).refuses(1, "only with its own tests or commands");
    world.frites(["apply", "--allow-unverified", "-m", "land"]).expect(0);
    assert_eq!(world.tree("HEAD"), world.tree("refs/frites/1/c1"));
    let trailer =
        |key: &str| world.git(["log", "-1", &format!("--format=%(trailers:key={key},valueonly)")]);
    assert_eq!(trailer("Frites-Oracle").trim(), "unverified");
    assert!(trailer("Frites-Reason").contains("only with its own tests or commands"));
    world.assert_clean();
}

#[test]
fn parts_and_a_replay_decide_as_one_judging_does() {
    let world = project();
    world.attempts(&[CHEAT, &large()]);
    world.frites(["judge", "-q", "--candidate", "c1"]).expect(3);
    world.frites(["judge", "--replay"]).expect(3);
    assert_eq!(world.frites(["judge", "-q", "--candidate", "c2"]).expect(0).out(), "1/c2\n");
    let replayed = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    let judged = world.frites(["judge", "--json", "--no-cache"]).expect(0).json();
    for key in ["recommended", "decision", "passed", "own_tests", "rationale"] {
        assert_eq!(replayed[key], judged[key], "{key}");
    }
    assert_eq!(judged["own_tests"], json!(["c1"]));
    world.assert_clean();
}

#[test]
fn until_pass_goes_on_after_a_cheat() {
    let world = project();
    world.attempts(&[CHEAT, &large(), &format!("{RIGHT}; seq 20 > notes")]);
    let verdict = world.frites(["judge", "--json", "--until-pass"]).expect(0).json();
    assert_eq!(verdict["recommended"], "c2");
    // The cheat changes only what runs the tests, so it comes behind the first that passes.
    assert_eq!(verdict["not_run"], json!(["c1", "c3"]));
    assert_eq!(verdict["effort"]["saved_not_run"], 2, "{}", verdict["effort"]);
    world.assert_clean();
}

#[test]
fn tree_of_one_candidate_and_of_another_with_the_bases_tests_is_judged_once() {
    for jobs in ["1", "3"] {
        let world = project();
        let both = format!("{RIGHT}; {CHEAT}");
        world.attempts(&[&both, RIGHT, &both]);
        let test = "echo ran >> \"$HOME/ran\"; sh check.sh";
        let judge = |more: &[&str]| {
            let words = ["judge", "--json", "-j", jobs, "--test", test];
            world.frites(words.iter().chain(more)).expect(0).json()
        };
        let verdict = judge(&["--no-cache"]);
        let ran = |count: usize| {
            let text = fs::read_to_string(world.home().join("ran")).unwrap();
            assert_eq!(text.lines().count(), count, "{text}");
        };
        let without_base = |verdict: &Value| verdict["effort"]["saved_equal"].as_u64().unwrap();
        // The two trees, and the base if it is judged.
        let base = usize::from(!verdict["baseline"].is_null());
        ran(2 + base);
        assert!(without_base(&verdict) >= 3, "{}", verdict["effort"]);
        assert_eq!(verdict["candidates"][0]["verified"], true);
        judge(&[]);
        fs::remove_file(world.home().join("ran")).unwrap();
        let verdict = judge(&[]);
        assert!(verdict["effort"]["saved_cached"].as_u64().unwrap() >= 2, "{}", verdict["effort"]);
        world.assert_clean();
    }
}

#[test]
fn settings_say_which_candidates_are_judged_twice() {
    let mut world = project();
    world.attempts(&[
        CHEAT,
        &format!("{RIGHT}; seq 5 > tests-of-mine; mkdir tests; echo > tests/new.sh"),
    ]);
    let of = |json: &Value, at: usize| json["candidates"][at]["base_tests"].clone();
    world.set_env("FRITES_ORACLE_BASE_TESTS", "never");
    let verdict = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!((&verdict["recommended"], of(&verdict, 0)), (&json!("c1"), Value::Null));
    assert_eq!(verdict["terms"]["base_tests"], "never");
    world.set_env("FRITES_ORACLE_BASE_TESTS", "changed");
    let verdict = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(verdict["recommended"], "c2");
    assert_eq!(of(&verdict, 1)["if_first"], true, "the one that would win");
    world.set_env("FRITES_ORACLE_BASE_TESTS", "always");
    let verdict = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(of(&verdict, 1)["taken_out"], json!(["tests/new.sh"]));
    assert_eq!(verdict["candidates"][1]["verified"], true);
    world.set_env("FRITES_ORACLE_BASE_TESTS", "sometimes");
    world.frites(["judge"]).refuses(128, "oracle.base-tests");
    world.assert_clean();
}

#[test]
fn protected_tests_are_put_back_already() {
    let world = project();
    world.attempts(&[&format!("{RIGHT}; {CHEAT}"), CHEAT]);
    let verdict = world.frites(["judge", "--json", "--protect", "check.sh"]).expect(0).json();
    assert_eq!(verdict["candidates"][0]["base_tests"], Value::Null);
    assert_eq!(verdict["candidates"][0]["verified"], true);
    assert_eq!(verdict["candidates"][1]["usable"], false);
    world.assert_clean();
}

#[test]
fn change_that_cannot_be_put_back_by_itself_counts_as_the_candidates_own() {
    let world = World::unborn();
    world.write(
        "src/two.py",
        "def two():\n    return 1\n\ndef test_two():\n    assert two() == 1\n",
    );
    world.commit("base");
    world.attempts(&["sed s/1/2/ src/two.py > new; mv new src/two.py"]);
    let answer = world.frites(["judge", "--test", "grep -q 2 src/two.py"]).expect(3);
    let words = "'src/two.py' cannot be put back by itself: its tests cannot be told from its code";
    assert!(answer.out().contains(words), "{}", answer.out());
    world.frites(["apply"]).refuses(1, words);
    world.assert_clean();
}

#[test]
fn tests_that_move_out_of_sight_are_gone() {
    const PYTHON: &str = "def test_x():\n    assert x == 1\n";
    const RUST: &str = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n";
    let assert_own = |files: &[(&str, &str)], test: &str, attempts: &[&str]| {
        let world = World::unborn();
        files.iter().for_each(|(path, text)| world.write(path, text));
        world.commit("base");
        world.attempts(attempts);
        let json = world.frites(["judge", "--json", "--test", test]).expect(3).json();
        let own = json["own_tests"].as_array().map(Vec::len);
        assert_eq!(own, Some(attempts.len()), "{json:#}");
    };
    // This runner looks for tests in one place.
    let [other, test, source] = ["old", "tests", "lib"].map(|to| {
        format!("echo bad > pkg/x.py; mkdir -p {to}; git mv pkg/checks.py {to}/checks.py")
    });
    let python = [
        ("pkg/__init__.py", ""),
        ("lib/__init__.py", ""),
        ("pkg/x.py", "good\n"),
        ("pkg/checks.py", PYTHON),
    ];
    let runner = "! test -e pkg/checks.py || grep -q good pkg/x.py";
    assert_own(&python, runner, &[&other, &test, &source]);
    // One new file has the tests of one old file.
    let rust = [("Cargo.toml", "[package]\nname = 'a'\n"), ("src/a.rs", RUST), ("src/b.rs", RUST)];
    assert_own(&rust, "true", &["git mv src/a.rs src/c.rs; git rm -q src/b.rs"]);
}

#[test]
fn merged_tree_is_judged_with_the_targets_tests_too() {
    let world = project();
    let edits = format!("{RIGHT}; printf 'grep -q . value\\n' > check.sh");
    world.attempts(&[&edits]);
    world.frites(["judge", "-q"]).expect(0);
    // The target's tests ask for more now; the attempt's version of the file does not.
    world.write("value.expected", "3\n");
    world.commit("moved");
    let answer =
        world.frites(["apply", "-m", "land"]).refuses(1, "merged with HEAD, it passes only");
    assert!(answer.stderr.contains("--allow-unverified"), "{}", answer.stderr);
    assert_eq!(world.git(["branch", "--list", "frites/apply/*"]), "");
    world.frites(["apply", "--allow-unverified", "-m", "land"]).expect(0);
    let trailers = world.git(["log", "-1", "--format=%(trailers:key=Frites-Reason,valueonly)"]);
    assert!(trailers.starts_with("merged with HEAD, it passes only with its own"), "{trailers}");
    world.assert_clean();
}

#[test]
fn synthesis_that_passes_only_with_its_own_tests_does_not_win() {
    let world = project();
    let script =
        "case $FRITES_CANDIDATE in c1) echo 2 > value;; *) echo 2 > value; seq 4 > notes;; esac";
    world.spawn(["-n", "2", "--", "sh", "-c", script]);
    world.frites(["judge", "-q"]).expect(0);
    let cheat = "echo 3 > value; echo true > check.sh";
    world.frites(["add", "-q", "--synthesize", "1", "--", "sh", "-c", cheat]).expect(0);
    let answer = world.frites(["judge"]).expect(0);
    let out = answer.out();
    assert!(out.contains("*  1/c1"), "{out}");
    let words = "synthesis-1 is not preferred: it passes only with its own tests or commands";
    assert!(out.contains(words), "{out}");
    world.assert_clean();
}

/// A project whose greeting is wrong, with these files.
fn greeting(files: &[(&str, &str)]) -> World {
    let world = World::unborn();
    world.write("greeting", "helo\n");
    for (path, text) in files {
        world.write(path, text);
    }
    world.commit("base");
    world
}

#[test]
fn script_that_the_test_runs_decides_whatever_its_name() {
    const GATE: &str = "grep -qx hello greeting\n";
    const PYTHON: &str = "assert open('greeting').read() == 'hello\\n'\n";
    const JSON: &str = r#"{"scripts": {"test": "sh gate.sh"}}"#;
    /// The file that holds the command, its text, the script, its text, the script's way to pass.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);
    let cases: [Case<'_>; 9] = [
        ("Makefile", "test:\n\tsh gate.sh\n", "gate.sh", GATE, "true"),
        ("Makefile", "test: all\n\t@$(SHELL) t.sh\nall:\n", "t.sh", GATE, "true"),
        ("Makefile", "test:\n\tsh ./ck.sh || exit 1\n", "ck.sh", GATE, "true"),
        ("Makefile", "test:\n\tsh scripts/gate.sh\n", "scripts/gate.sh", GATE, "true"),
        ("Makefile", "test:\n\tpython3 gate.py\n", "gate.py", PYTHON, "pass"),
        ("package.json", JSON, "gate.sh", GATE, "true"),
        ("justfile", "test:\n    sh gate.sh\n", "gate.sh", GATE, "true"),
        (".frites.toml", "oracle.test = 'sh gate.sh'\n", "gate.sh", GATE, "true"),
        (".frites.toml", "oracle.test = ['sh', '-c', 'sh gate.sh']\n", "gate.sh", GATE, "true"),
    ];
    for (settings, text, script, gate, pass) in cases {
        let world = greeting(&[(settings, text), (script, gate)]);
        let name = format!("{settings}: {text}");
        let run = world.attempts(&[&format!("echo bad > greeting; echo {pass} > {script}")]);
        // These tools need not be there for their recipes to be read.
        let tools = [("scripts\"", "npm"), ("    sh", "just"), ("python3", "make")];
        if let Some((_, tool)) = tools.iter().find(|(word, _)| text.contains(word)) {
            let test = format!("{tool} test || true");
            let json = world.frites(["judge", "--json", "--test", &test, &run]).expect(0).json();
            let second = &json["candidates"][0]["base_tests"];
            // With a known kind of project, the greeting is not source.
            let other = if *tool == "npm" { &["greeting"][..] } else { &[] };
            let put_back = json!([&[script], other].concat());
            assert_eq!(second["put_back"], put_back, "{name}: {json:#}");
            continue;
        }
        let json = world.frites(["judge", "--json", &run]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{name}: {json:#}");
        assert_eq!(json["candidates"][0]["flags"][0]["flag"], "oracle-changed", "{name}");
        let run = world.attempts(&["echo hello > greeting"]);
        let json = world.frites(["judge", "--json", &run]).expect(0).json();
        assert_eq!(json["decision"], "single", "{name}: {json:#}");
    }
}

#[test]
fn script_that_a_script_of_the_test_runs_decides_too() {
    for (gate, inner) in [(". ./lib.sh; greets", "lib.sh"), ("sh more/x.sh", "more/x.sh")] {
        let check = "greets() { grep -qx hello greeting; }; greets\n";
        let makefile = ("Makefile", "test:\n\tsh gate.sh\n");
        let world = greeting(&[makefile, ("gate.sh", gate), (inner, check)]);
        world.attempts(&[&format!("echo 'greets() {{ :; }}' > {inner}")]);
        let json = world.frites(["judge", "--json"]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{inner}: {json:#}");
        assert_eq!(json["candidates"][0]["base_tests"]["put_back"], json!([inner]));
    }
}

#[test]
fn code_that_recipes_compile_compare_or_check_does_not_decide() {
    let makefile = "all: greet\ngreet: greet.in\n\tcp greet.in greet\n\
                    test: greet\n\tsh -n greet.sh\n\t./greet.sh > out\n\tcmp out greeting\n\
                    \tsh greet.sh | grep -qx hello\n\tsh test.sh\n\
                    run:\n\tsh greet.sh\n";
    let world = greeting(&[
        ("Makefile", makefile),
        ("greet.in", "helo\n"),
        ("greeting", "hello\n"),
        ("greet.sh", "#!/bin/sh\ncat greet.in\n"),
        ("test.sh", ". ./greet.sh | grep -qx hello && . ./greet.sh\n"),
    ]);
    crate::common::make_executable(&world.repo.join("greet.sh"));
    world.sh(&world.repo, "git commit -qam executable").expect(0);
    world.attempts(&["printf '#!/bin/sh\\necho hello\\n' > greet.sh"]);
    let json = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(json["candidates"][0]["base_tests"], Value::Null, "{json:#}");
    assert_eq!(json["candidates"][0]["flags"], serde_json::json!([]), "{json:#}");
}

#[test]
fn product_that_the_test_runs_directly_is_no_script_of_the_tests() {
    let world = World::unborn();
    world.write("greet.sh", "#!/bin/sh\necho helo\n");
    crate::common::make_executable(&world.repo.join("greet.sh"));
    world.commit("base");
    world.attempts(&["printf '#!/bin/sh\\necho hello\\n' > greet.sh"]);
    let test = "./greet.sh | grep -qx hello";
    let verdict = world.frites(["judge", "--json", "--test", test]).expect(0).json();
    assert_eq!(verdict["candidates"][0]["base_tests"], Value::Null);
    world.assert_clean();
}

#[test]
fn added_test_that_needs_an_edited_deciding_file_is_taken_out_with_it() {
    let world = World::unborn();
    world.write("value", "1\n");
    world.write("conftest.py", "fixture = 1\n");
    world.write("tests/value.sh", "grep -qx 2 value\n");
    world.commit("base");
    let new = "echo 'grep -q 2 conftest.py' > tests/new.sh";
    world.attempts(&[&format!("{RIGHT}; echo 'fixture = 2' > conftest.py; {new}")]);
    let test = "for file in tests/*.sh; do sh $file || exit; done";
    let verdict = world.frites(["judge", "--json", "--test", test]).expect(0).json();
    let second = &verdict["candidates"][0]["base_tests"];
    assert_eq!(second["put_back"], json!(["conftest.py"]));
    assert_eq!(second["taken_out"], json!(["tests/new.sh"]));
    world.assert_clean();
}

#[test]
fn file_with_the_name_of_a_make_target_wins_nothing() {
    let world = World::new();
    world.write("Makefile", "test:\n\tgrep -qx hello greeting\n");
    world.write("greeting", "helo\n");
    world.commit("greet");
    let cheats = ["touch test", "mkdir test; echo x > test/x", "echo hello > greeting; echo x > x"];
    world.attempts(&cheats);
    let json = world.frites(["judge", "--json", "--test", "make test"]).expect(0).json();
    assert_eq!(json["recommended"], "c3", "{json:#}");
    let run = world.attempts(&cheats[..1]);
    let json = world.frites(["judge", "--json", &run, "--test", "make test"]).expect(1).json();
    assert_eq!(json["candidates"][0]["results"][0]["outcome"], "could-not-start", "{json:#}");
}

#[test]
fn attempt_that_only_adds_tests_is_as_good_as_the_base() {
    let world = World::new();
    world.write("test.sh", "for t in tests/*.sh; do . $t; done; grep -q fixed README\n");
    world.write("tests/a.sh", ":\n");
    world.commit("tests");
    let run = world.attempts(&["echo 'grep() { :; }' > tests/b.sh"]);
    let judge = |run: &str, code| world.frites(["judge", run, "--test", "sh test.sh"]).expect(code);
    judge(&run, 3);
    world.write("README", "fixed\n");
    world.commit("fix");
    let run = world.attempts(&["echo : > tests/b.sh"]);
    judge(&run, 0);
}

#[test]
fn new_package_puts_no_program_before_those_of_the_tests() {
    let world = World::new();
    world.write("package.json", "{\"name\": \"a\"}\n");
    world.commit("a package");
    let run = world.attempts(&["mkdir src/dep; echo 'module.exports = 1' > src/dep/index.js
        echo '{\"name\": \"dep\", \"bin\": {\"node\": \"index.js\"}}' > src/dep/package.json"]);
    let json = world.frites(["judge", "--json", &run, "--test", "true"]).expect(0).json();
    let candidate = &json["candidates"][0];
    let part = "deciding part of src/dep/package.json";
    assert_eq!(candidate["base_tests"]["put_back"], json!([part]), "{json:#}");
    // Not all of the manifest is put back, and the verdict does not say that it is.
    let reason = json["rationale"].as_str().unwrap();
    assert!(reason.contains("; it also passes with the base's tests and commands"), "{json:#}");
}

#[test]
fn added_file_that_a_runner_loads_decides() {
    let world = World::new();
    let run = world.attempts(&[
        "echo 'raise SystemExit(0)' > traceback.py",
        "mkdir -p tests/__pycache__ && echo x > tests/__pycache__/a.pyc",
        "mkdir shop && echo x > shop/json.py",
    ]);
    let json = world.frites(["judge", "--json", &run, "--test", "true"]).expect(0).json();
    let flags = |at: usize| json["candidates"][at]["flags"][0]["flag"].clone();
    for at in 0..2 {
        assert_eq!(flags(at), "oracle-changed", "{at}: {json:#}");
    }
    assert!(flags(2).is_null(), "{json:#}");
}
