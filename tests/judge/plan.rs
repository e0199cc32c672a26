//! `judge -n`: what would judge, shown without running anything.
use serde_json::{Value, json};

use crate::common::{TestWorld, World};

/// The lines that `judge -n` prints, with these arguments and this exit code.
#[track_caller]
fn plan(world: &World, words: &[&str], code: i32) -> Vec<String> {
    let answer = world.frites([&["judge", "-n"], words].concat()).expect(code);
    answer.out().lines().map(str::to_owned).collect()
}

#[test]
fn oracle_is_shown_before_the_first_run_and_nothing_is_made_or_run() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.write("Makefile", "test:\n\techo ran >> $(HOME)/ran\n.PHONY: test\n");
    let head = world.commit("a test");
    let lines = plan(&world, &[], 0);
    let expected = [
        &format!("base: {} (HEAD)", &head[..10]),
        "setup: none",
        "build: none",
        "lint: none",
        "test: `make test`, from Makefile",
        "seeds: none",
        "world: open; the commands run with your permissions",
        "cached: nothing",
        "limits: 1 at once, each command for at most 10m00s",
    ];
    assert_eq!(lines, expected);
    assert!(!world.home().join("ran").exists() && !world.repo.join(".frites/runs").exists());
    let lines = plan(&world, &["--base", "HEAD~1"], 3);
    assert!(lines.contains(&"test: none".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("nothing can be verified")), "{lines:?}");
    world.frites(["judge", "-n", "--base", "nosuch"]).refuses(128, "nosuch");
    let document = world.frites(["judge", "-n", "--json"]).expect(0).json();
    assert_eq!((&document["base"], &document["run"]), (&json!(head), &Value::Null));
    let make = json!([{
        "stage": "test", "command": ["make", "test"], "source": "Makefile", "missing": [],
    }]);
    assert_eq!(document["commands"], make);
    assert_eq!((&document["world"], &document["verifies"]), (&json!("open"), &json!(true)));
    assert_eq!(document["limits"], json!({ "jobs": 1, "seconds": 600.0 }));
    let doctor = &world.frites(["doctor", "--json"]).expect(0).json()["repository"];
    for field in ["world", "commands", "seeds"] {
        assert_eq!(doctor[field], document[field], "{field}");
    }
    world.frites(["judge", "--base", "HEAD"]).refuses(2, "--dry-run");
    world.assert_clean();
}

#[test]
fn what_is_passed_over_is_named_with_the_reason() {
    let world = World::new();
    world.write("package.json", r#"{"scripts": {"test": "true", "lint": "true"}}"#);
    world.write("package-lock.json", "{}");
    world.write("Makefile", "all:\ntest:\n\ttrue\n.PHONY: all test\n");
    world.commit("two ways to test");
    let passed_over = |words: &[&str]| -> Vec<String> {
        let answer = world.frites([&["judge", "-n"], words].concat());
        let lines = answer.out();
        let lines = lines.lines().filter_map(|line| line.strip_prefix("passed over: "));
        lines.map(str::to_owned).collect()
    };
    let found = passed_over(&[]);
    let reason = "from Makefile: package.json (npm by package-lock.json) comes before Makefile";
    assert!(found.contains(&format!("test `make test`, {reason}")), "{found:?}");
    let found = passed_over(&["--test", "true"]);
    let lint = found.iter().find(|line| line.starts_with("lint `")).unwrap();
    assert!(lint.ends_with(": options name the commands"), "{found:?}");
    let found = passed_over(&["--test", "make test"]);
    assert!(!found.iter().any(|line| line.starts_with("test `make test`")), "{found:?}");
    world.git(["config", "frites.oracle.lint", "echo lint"]);
    let found = passed_over(&["--test", "true"]);
    assert!(found.iter().any(|l| l.starts_with("lint `echo lint`, from ")), "{found:?}");
    let found = passed_over(&[]);
    assert!(
        found.iter().any(|l| l.ends_with(": the configuration names the commands")),
        "{found:?}"
    );
    world.git(["config", "frites.oracle.lint", ""]);
    let found = passed_over(&[]);
    assert!(
        found.iter().any(|l| l.starts_with("lint `") && l.ends_with(": lint is empty")),
        "{found:?}"
    );
    world.git(["config", "frites.oracle.detect", "false"]);
    assert!(passed_over(&[]).iter().all(|l| l.ends_with(": oracle.detect is false")));
    world.attempts(&["echo x > x"]);
    let told = world.frites(["judge", "--explain", "--test", "true"]).expect(0).stderr;
    assert!(
        told.contains("\npassed over: test `make test`, from Makefile: options name"),
        "{told}"
    );
}

#[test]
fn ci_file_without_a_step_that_tests_is_named_if_nothing_else_is_found() {
    let world = World::new();
    let path = ".github/workflows/ci.yml";
    let steps = "steps:\n    - run: |\n        cd tests\n        ./unit.sh\n";
    world.write(path, format!("jobs:\n  t:\n    runs-on: ubuntu\n    {steps}"));
    world.commit("CI");
    let line = format!(
        "passed over: {path}: git-frites knows no command for tests there; give one: `--test CMD`\n"
    );
    let plan = |words: &[&str]| world.frites([&["judge", "-n"], words].concat()).out();
    assert!(plan(&[]).contains(&line), "{}", plan(&[]));
    assert!(!plan(&["--test", "true"]).contains(path));
}

#[test]
fn missing_program_is_named_after_the_plan() {
    let world = World::new();
    let answer =
        world.frites(["judge", "-n", "--test", "no-such-program-here --all", "--lint", "true"]);
    let answer = answer.refuses(128, "the test command cannot run: 'no-such-program-here'");
    let out = answer.out();
    assert!(
        out.contains("missing: 'no-such-program-here', which the test command needs\n"),
        "{out}"
    );
    assert!(out.contains("lint: `true`, from --lint\n"), "{out}");
    let words = ["judge", "-n", "--json", "--test", "no-such-program-here --all"];
    let document = world.frites(words).refuses(128, "no-such-program-here").json();
    assert_eq!(document["commands"][0]["missing"], json!(["no-such-program-here"]));
}

#[test]
fn plan_of_a_run_knows_its_base_the_seeds_and_what_passed() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    let base = world.commit("ignore");
    world.write(".env", "KEY=1\n");
    world.git(["config", "frites.seed.copy", ".env"]);
    world.attempts(&["echo good > new", "echo bad > new"]);
    world.write("README", "moved on\n");
    world.commit("after the run");
    let test = ["--test", "! grep -qs bad new"];
    let words = |more: &[&'static str]| [more, &test].concat();
    let lines = plan(&world, &words(&[]), 0);
    assert_eq!(lines[0], format!("base: {} (of run 1)", &base[..10]));
    assert!(
        lines.contains(&"seeds: .env".into()) && lines.contains(&"cached: nothing".into()),
        "{lines:?}"
    );
    world.frites(["judge", "--test", test[1]]).expect(0);
    let lines = plan(&world, &words(&["1"]), 0);
    let document = world.frites(["judge", "-n", "--json", "--test", test[1]]).expect(0).json();
    // Layers without any outputs save the checkout of sealed worlds alone.
    let is_kept = TestWorld::of_this_test() == TestWorld::Sealed;
    let outputs_of = is_kept.then(|| base.trim());
    let known = json!({
        "base": true, "outputs": is_kept, "outputs_of": outputs_of, "captured": 2, "passing": 1
    });
    assert_eq!((&document["known"], &document["seeds"]), (&known, &json!([".env"])));
    assert_eq!(document["passed_over"], json!([]));
    let kept = if is_kept { ", the base's build outputs are kept" } else { "" };
    let known = format!("cached: the base passes, 1 of 2 captured candidates pass{kept}");
    assert!(lines.contains(&known), "{lines:?}");
    let lines = plan(&world, &words(&["--base", "HEAD"]), 0);
    assert!(lines.contains(&"cached: nothing".into()), "another base: {lines:?}");
}

#[test]
fn status_of_a_run_prints_its_verdict_again() {
    let world = World::new();
    world.judged("grep -q good new", &["echo good > new", "echo bad > new"]);
    let one = world.frites(["status", "1"]).expect(0).out();
    assert!(
        one.contains(
            "\ntests: only c1 of 2 passed test: 1 line in 1 file; c2 failed test (exit 1)\n"
        ),
        "{one}"
    );
    assert!(one.contains("test exit 1"), "the table, too:\n{one}");
    for words in [&["status"][..], &["status", "1/c1"]] {
        assert!(!world.frites(words).expect(0).out().contains("only c1 of 2"), "{words:?}");
    }
}
