//! The ways in which a tree gets the base's layers, and the tools that stumble over one of them.
use std::process::Stdio;

use serde_json::Value;

use crate::common::sealed::{sealed, stale_project};
use crate::common::{World, poll};
use crate::tool::{MAKE, NAMESPACES, PYTHON, trials};
use crate::traces::shared_lines;

trials! {
    a_tool_that_stumbles_over_the_overlay_gives_the_verdict_of_an_open_world: [NAMESPACES, PYTHON];
    a_silent_stumble_over_outputs_does_not_change_the_recommendation: [NAMESPACES, PYTHON];
    the_bases_files_are_older_than_all_that_is_written_later: [NAMESPACES];
    a_run_leaves_what_its_base_built_for_later_commands: [NAMESPACES, MAKE];
    what_the_base_built_beside_unguarded_attempts_is_not_kept: [NAMESPACES, MAKE];
    tests_that_did_not_run_again_on_the_base_are_expected_all_the_same: [NAMESPACES];
    each_round_is_judged_over_what_the_base_built: [NAMESPACES, MAKE];
    a_seed_that_changes_during_a_run_is_the_new_one_in_its_judging_and_in_later_ones: [NAMESPACES];
}

/// Commands that rename a directory of the base. The second one does not say why it fails.
const RENAMES: [&str; 2] = [
    "git mv src lib",
    "{ python3 -B -c 'import os; os.rename(\"src\", \"lib\")' 2>/dev/null || exit 3; }",
];

/// Two attempts of which one is right, if its test can rename a directory of the base.
fn renaming_project() -> World {
    let world = sealed();
    world.write(".gitignore", "out\n");
    world.commit("outputs are ignored");
    world.attempts(&["echo right >> src/lib.txt", "echo wrong > README"]);
    world
}

fn judged_with(world: &World, test: &str) -> Value {
    let answer = world.frites(["judge", "--json", "--no-cache", "--test", test]);
    assert!([0, 1].contains(&answer.code), "{}", answer.stderr);
    answer.json()
}

/// What a verdict says about the candidates and the base, without times and causes.
fn outcomes(verdict: &Value) -> Value {
    let of = |results: &Value| -> Vec<Value> {
        let results = results.as_array().cloned().unwrap_or_default();
        results.iter().map(|r| serde_json::json!([r["stage"], r["outcome"], r["code"]])).collect()
    };
    let candidates = verdict["candidates"].as_array().unwrap();
    let each: Vec<_> = candidates.iter().map(|c| of(&c["results"])).collect();
    serde_json::json!([verdict["recommended"], each, of(&verdict["baseline"]["results"])])
}

fn a_tool_that_stumbles_over_the_overlay_gives_the_verdict_of_an_open_world() {
    let [told, silent] = RENAMES;
    let renamed = "overlay refused a rename: ";
    let cases = [
        (told, "", renamed),
        (told, "echo built > out; ", renamed),
        (silent, "", "failed over the overlay: with the base's outputs it ended at test: exit 3"),
    ];
    for (rename, build, cause) in cases {
        let mut world = renaming_project();
        let test = format!("{build}{rename} && grep -q right lib/lib.txt");
        let sealed = judged_with(&world, &test);
        assert_eq!(sealed["terms"]["world"], "sealed");
        let stale = sealed["candidates"][0]["stale"].as_str().unwrap_or_default();
        assert!(stale.starts_with(cause), "{stale}");
        let table = world.frites(["judge", "--replay"]).expect(0).out();
        assert!(table.contains(cause.split(':').next().unwrap()), "{table}");
        world.set_env("FRITES_SANDBOX_MODE", "off");
        let open = judged_with(&world, &test);
        assert_eq!(outcomes(&sealed), outcomes(&open));
        world.assert_clean();
    }
}

/// Nobody can tell such a failure from one that a stale output causes.
fn a_silent_stumble_over_outputs_does_not_change_the_recommendation() {
    let world = renaming_project();
    let test = format!("echo built > out; {} && grep -q right lib/lib.txt", RENAMES[1]);
    let verdict = judged_with(&world, &test);
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert_eq!(verdict["baseline"]["results"][0]["code"], 1, "the base was judged again, too");
    world.assert_clean();
}

/// Python takes a compiled module for that of a source with the same size and second.
fn the_bases_files_are_older_than_all_that_is_written_later() {
    let world = sealed();
    world.write(".gitignore", "second\n");
    world.commit("outputs are ignored");
    world.attempts(&["echo more >> README"]);
    let second = "test -e second || stat -c %Y README > second";
    let differs = "touch now && test $(cat second) -lt $(stat -c %Y now) && rm now";
    let test =
        format!("{second}; {differs} && git diff --exit-code HEAD && git diff-files --quiet");
    let verdict = judged_with(&world, &test);
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert_eq!(verdict["baseline"]["results"][0]["outcome"], "passed", "{verdict:#}");
    world.assert_clean();
}

fn tests_that_did_not_run_again_on_the_base_are_expected_all_the_same() {
    let test = "! test -e stamp || exit 0; touch stamp; ! grep -q silent src/lib.txt || exit 0
                passed=3; if grep -q fewer src/lib.txt; then passed=1; fi
                echo \"=== $passed passed in 0.10s ===\"; ! grep -q wrong src/lib.txt";
    let silent = "echo silent >> src/lib.txt; echo more >> src/lib.txt";
    for attempts in [&["echo fewer >> src/lib.txt"][..], &["echo wrong >> src/lib.txt", silent]] {
        let world = sealed();
        world.write(".gitignore", "stamp\n");
        world.commit("outputs are ignored");
        world.attempts(attempts);
        // The second judging begins with the base's stamp.
        for _ in 0..2 {
            let verdict =
                world.frites(["judge", "--json", "--no-cache", "--test", test]).expect(3).json();
            assert_eq!(verdict["decision"], "missing-tests", "{verdict:#}");
        }
        world.assert_clean();
    }
}

/// The lines that commands added to a file in `shared` since the last call, sorted.
fn new_lines(world: &World, name: &str) -> Vec<String> {
    let lines = shared_lines(world, name);
    let _ = std::fs::remove_file(world.home().join("shared").join(name));
    lines
}

/// A test that downloads a file and compiles.
const DOWNLOADS: &str =
    "test -e ~/file || echo file | tee -a ~/shared/downloads > ~/file; make -s test";

/// Runs an attempt that adds this line to a source.
fn run_with(world: &World, line: &str) {
    run_attempt(world, &format!("echo {line} >> a.src"));
}

fn run_attempt(world: &World, attempt: &str) {
    let options = ["run", "--json", "-c", "x", "--timeout", "2m", "--test", DOWNLOADS, "--"];
    let options = options.into_iter().chain(["sh", "-c", attempt]);
    assert_eq!(world.frites(options).expect(0).json()["recommended"], "x");
}

fn a_run_leaves_what_its_base_built_for_later_commands() {
    // What is downloaded beside attempts is believed only if they have a HOME of their own.
    // The base's pass is cached, so that it does not run again.
    for (home, in_runs, later) in [("private", 3, [1, 1]), ("shared", 5, [2, 1])] {
        let mut world = stale_project();
        world.set_env("FRITES_SPAWN_GUARD", "required");
        world.set_env("FRITES_SPAWN_HOME", home);
        run_with(&world, "one");
        // The base, the candidate, and its confirmation without outputs.
        assert_eq!(new_lines(&world, "compiled"), ["a.obj", "a.obj", "a.obj", "b.obj", "b.obj"]);
        run_with(&world, "two");
        assert_eq!(new_lines(&world, "compiled"), ["a.obj", "a.obj", "b.obj"]);
        assert_eq!(new_lines(&world, "downloads").len(), in_runs, "{home}");
        // The confirmation has what a setup downloads, and this is a test.
        for downloads in later {
            world.frites(["judge", "--no-cache", "--test", DOWNLOADS, "2"]).expect(0);
            assert_eq!(new_lines(&world, "compiled"), ["a.obj", "a.obj", "b.obj"]);
            assert_eq!(new_lines(&world, "downloads").len(), downloads, "{home}");
        }
        world.assert_clean();
    }
}

fn what_the_base_built_beside_unguarded_attempts_is_not_kept() {
    let world = stale_project();
    // Until the pass of the base is kept: what is kept later, no attempt can have changed.
    let wait = "until find \"$XDG_CACHE_HOME\" -name outcome.toml -newer ~/shared/compiled | grep -q .; \
                do sleep 0.02; done";
    for line in ["one", "two"] {
        run_attempt(&world, &format!("echo {line} >> a.src; {wait}"));
        assert_eq!(new_lines(&world, "compiled"), ["a.obj", "a.obj", "a.obj", "b.obj", "b.obj"]);
    }
    world.assert_clean();
}

fn each_round_is_judged_over_what_the_base_built() {
    let world = stale_project();
    let attempt = "if test -e again; then echo needed > b.src; echo more >> a.src; \
                   else touch again; echo broken > b.src; fi";
    let options = ["run", "--rounds", "1", "-c", "x", "--test", "make -s test", "--"];
    world.frites(options.into_iter().chain(["sh", "-c", attempt])).expect(0);
    // The base, two judgings of the candidate without outputs, and the changed source over them.
    let expected = [["a.obj"; 4], ["b.obj"; 4]].concat();
    assert_eq!(new_lines(&world, "compiled"), expected);
    world.assert_clean();
}

fn a_seed_that_changes_during_a_run_is_the_new_one_in_its_judging_and_in_later_ones() {
    let mut world = sealed();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    // The attempts wait for a file that appears there.
    world.set_env("FRITES_SPAWN_HOME", "shared");
    world.write(".gitignore", ".env\n");
    world.write("f", "base\n");
    world.commit("a project with settings");
    world.write(".env", "1\n");
    world.git(["config", "frites.seed.copy", ".env"]);
    let test =
        "touch ~/shared/$(cat f); case $(cat .env) in 1) grep -q one f;; *) grep -q two f;; esac";
    world.git(["config", "frites.oracle.test", test]);
    let attempt = "case $FRITES_CANDIDATE in c1) echo one > f;; *) echo two > f;; esac; \
                   until test -e ~/shared/go; do sleep 0.02; done";
    let mut run =
        world.command(&world.repo, "git-frites", ["run", "-n", "2", "--", "sh", "-c", attempt]);
    let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let shared = world.home().join("shared");
    poll(|| shared.join("base").exists());
    world.write(".env", "2\n");
    std::fs::write(shared.join("go"), "").unwrap();
    assert!(run.wait_with_output().unwrap().status.success());
    let status = world.frites(["status", "1", "--json"]).expect(0).json();
    assert_eq!(status["runs"][0]["verdict"]["recommended"], "c2");
    for options in [&[][..], &["--no-cache"], &["--cold"]] {
        let judged = world.frites([&["judge", "-q", "1"], options].concat()).expect(0);
        assert_eq!(judged.out(), "1/c2\n", "{options:?}");
    }
    world.assert_clean();
}
