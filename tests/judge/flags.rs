//! `judge` as a judge that cannot be fooled: protected paths, flags, what oracles write,
//! attributes.
use std::fs;

use serde_json::Value;

use crate::common::World;

/// A project whose test is wrong about nothing: `value` must hold 2, and holds 1.
fn project() -> World {
    let world = World::unborn();
    world.write("value", "1\n");
    world.write("tests/check.sh", "grep -qx 2 value\n");
    world.write("Makefile", "test:\n\tsh tests/check.sh\n");
    world.commit("base");
    world
}

const RIGHT: &str = "echo 2 > value";

fn flags(json: &Value, at: usize) -> Vec<String> {
    let flags = json["candidates"][at]["flags"].as_array().cloned().unwrap_or_default();
    flags
        .iter()
        .map(|f| format!("{} {}", f["flag"].as_str().unwrap(), f["path"].as_str().unwrap()))
        .collect()
}

#[test]
fn attempt_that_edits_its_tests_is_flagged_everywhere() {
    // The attempt's command, the words about it in the rationale, and its flag.
    let cases = [
        (
            "echo true > tests/check.sh",
            "edits tests in tests/check.sh",
            "tests-edited tests/check.sh",
        ),
        (
            "printf 'test:\\n\\ttrue\\n' > Makefile",
            "changes Makefile (which can decide what is run)",
            "oracle-changed Makefile",
        ),
        (
            "printf 'test:\\n' > GNUmakefile",
            "changes GNUmakefile (which can decide what is run)",
            "oracle-changed GNUmakefile",
        ),
        (
            "rm -r tests; printf 'test:\\n\\ttrue\\n' > Makefile",
            "changes Makefile (which can decide what is run) and deletes tests in tests/check.sh",
            "oracle-changed Makefile",
        ),
        (
            "echo true > tests/check.sh; printf '# unittest.skip\\nraise SkipTest\\n' > conftest.py",
            "changes conftest.py (which can decide what is run), edits tests in tests/check.sh and skips tests in conftest.py (SkipTest)",
            "oracle-changed conftest.py",
        ),
    ];
    for (script, words, flag) in cases {
        let world = project();
        world.attempts(&[script, "echo 3 > value; echo more > more"]);
        let answer = world.frites(["judge", "--explain"]).expect(3);
        let out = answer.out();
        assert!(out.lines().last().unwrap().ends_with(&format!("; check c1: it {words}")), "{out}");
        let label = flag.split_whitespace().next().unwrap().replace('-', " ");
        assert!(out.split("   c2").next().unwrap().contains(&label), "{label}: {out}");
        assert!(
            answer.stderr.contains("c1 before c2: it passed, the other failed test (exit 2)"),
            "{}",
            answer.stderr
        );
        let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
        assert!(flags(&json, 0).contains(&flag.to_owned()), "{json}");
        assert_eq!(flags(&json, 1), [""; 0]);
        world.assert_clean();
    }
}

#[test]
fn edited_manifest_scripts_decide_and_dependencies_do_not() {
    let world = World::unborn();
    world.write("package.json", "{\"scripts\": {\"test\": \"false\"}}\n");
    world.commit("base");
    world.attempts(&[
        "echo '{\"scripts\": {\"test\": \"true\"}}' > package.json",
        "echo '{\"scripts\": {\"test\": \"false\"}, \"dependencies\": {\"a\": \"1\"}}' > package.json",
    ]);
    let json = world.frites(["judge", "--test", "true", "--json"]).expect(0).json();
    assert_eq!(flags(&json, 0), ["oracle-changed package.json"]);
    assert_eq!(flags(&json, 1), ["new-dependency package.json"]);
    world.assert_clean();
}

#[test]
fn edited_script_that_the_test_runs_is_flagged() {
    let world = World::new();
    for path in ["check", "ci/test.sh", "slug.sh"] {
        world.write(path, "true\n");
        crate::common::make_executable(&world.repo.join(path));
    }
    world.commit("scripts");
    world.attempts(&["echo : >> check", "echo : >> ci/test.sh", "echo : >> slug.sh"]);
    let words = [
        "judge",
        "--json",
        "--build",
        "sh -n slug.sh && ./check",
        "--test",
        "sh -e ci/test.sh; sh slug.sh | cat",
    ];
    let json = world.frites(words).expect(0).json();
    assert_eq!(flags(&json, 0), ["oracle-changed check"]);
    assert_eq!(flags(&json, 1), ["oracle-changed ci/test.sh"]);
    assert_eq!(flags(&json, 2), [""; 0]);
    world.assert_clean();
}

#[test]
fn edited_file_that_a_make_recipe_runs_or_includes_is_flagged() {
    let world = World::unborn();
    world.write(
        "Makefile",
        "include rules.inc\ntest: app\n\t@./scripts/run-tests $(APP)\napp: app.c src/checkout.c\n",
    );
    for path in ["rules.inc", "scripts/run-tests", "app.c", "src/checkout.c"] {
        world.write(path, "\n");
    }
    world.commit("base");
    world.attempts(&[
        "echo x >> rules.inc",
        "echo x >> scripts/run-tests",
        "echo x >> app.c; echo x >> src/checkout.c",
    ]);
    let json = world.frites(["judge", "--test", "make -n test", "--json"]).expect(0).json();
    assert_eq!(flags(&json, 0), ["oracle-changed rules.inc"]);
    assert_eq!(flags(&json, 1), ["oracle-changed scripts/run-tests"]);
    assert_eq!(flags(&json, 2), [""; 0]);
    world.assert_clean();
}

#[test]
fn link_out_of_the_tree_is_flagged() {
    let world = project();
    world.attempts(&[
        "echo 2 > \"$HOME/right\"; ln -sf \"$HOME/right\" value",
        "echo 2 > two; ln -sf two value; mkdir d; ln -s ../two d/two",
    ]);
    // A link is not source, so each passes only with its own.
    let answer = world.frites(["judge"]).expect(3);
    assert!(answer.out().contains("links outside"), "{}", answer.out());
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!(flags(&json, 0), ["links-outside value"]);
    assert_eq!(flags(&json, 1), [""; 0]);
    world.assert_clean();
}

#[test]
fn added_file_that_the_base_ignores_is_flagged() {
    let world = project();
    world.write(".gitignore", "build/\n*.o\n!kept.o\n");
    world.commit("what is ignored");
    world.attempts(&[
        "echo 2 > value; mkdir -p build/deep; echo x > build/deep/a; echo x > build/b; echo x > c.o; git add -f build c.o",
        "echo 2 > value; echo : > .gitignore; echo x > c.o",
        "echo 2 > value; echo x > kept.o; echo x > d.o; echo x > new",
    ]);
    let answer = world.frites(["judge"]).expect(0);
    assert!(answer.out().contains("ignored added"), "{}", answer.out());
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(flags(&json, 0), ["ignored-added build", "ignored-added c.o"]);
    assert_eq!(flags(&json, 1), ["ignored-added c.o"]);
    assert_eq!(flags(&json, 2), [""; 0]);
    world.assert_clean();
}

/// An outcome that says that it is from the future.
#[test]
fn judging_a_run_discards_outcomes_stored_before() {
    let world = World::new();
    world.attempts(&["echo 2 > value"]);
    let test = ["--no-cache", "--test", "test -e \"$HOME/pass\""];
    let judge = |more: &[&str]| world.frites(["judge"].iter().chain(&test).chain(more));
    crate::common::write(&world.home().join("pass"), "");
    judge(&["--candidate", "c1"]).expect(0);
    let forge = "f=refs/frites/1/@results/c1; blob=$(git show $f:outcome.toml | sed 's/^judged = .*/judged = \"2099-01-01T00:00:00Z\"/' | git hash-object -w --stdin)
        tree=$(printf '100644 blob %s\\toutcome.toml\\n' $blob | git mktree); git update-ref $f $(git commit-tree -m forged $tree)";
    world.sh(&world.repo, forge).expect(0);
    assert!(world.git(["show", "refs/frites/1/@results/c1:outcome.toml"]).contains("2099-"));
    fs::remove_file(world.home().join("pass")).unwrap();
    judge(&[]).expect(1);
    world.frites(["judge", "--replay"]).expect(1);
    world.frites(["apply"]).refuses(1, "nothing verified to land");
    world.assert_clean();
}

#[test]
fn protected_path_is_judged_and_landed_as_in_the_base() {
    let cheat = "echo true > tests/check.sh; echo new > tests/new; chmod +x Makefile";
    for (protect, configured) in [(&["--protect", "tests/**"][..], false), (&[][..], true)] {
        let world = project();
        // The first cheats and is wrong, the second cheats and is right, the third does nothing but
        // cheat.
        world.attempts(&[
            &format!("{cheat}; echo 3 > value"),
            &format!("{cheat}; {RIGHT}; rm -r tests; echo file > tests"),
            "echo true > tests/check.sh",
        ]);
        if configured {
            world.write(".frites.toml", "[oracle]\nprotect = ['tests']\n");
        }
        let before = world.belongings();
        let answer = world.frites(["judge"].iter().chain(protect)).expect(0);
        // The last column is broken into lines.
        let out = answer.out().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("tests: only c2 of 2 passed test"), "{out}");
        assert!(out.contains("dropped 2 1/c1") && out.contains("dropped 1 1/c3"), "{out}");
        assert!(out.contains("c3 - - 0 0 changed only protected paths, dropped 1"), "{out}");
        let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
        assert_eq!(json["candidates"][0]["dropped"], serde_json::json!(["tests/check.sh"]));
        // A file cannot stay beside the directory of its name.
        assert_eq!(
            json["candidates"][1]["dropped"],
            serde_json::json!(["tests", "tests/check.sh"])
        );
        assert_eq!(json["candidates"][2]["usable"], false);
        // 2 for value, and the mode of the Makefile.
        assert_eq!(
            (&json["candidates"][1]["lines"], &json["candidates"][1]["files"]),
            (&3.into(), &2.into())
        );
        assert_eq!(world.belongings(), before);
        if configured {
            fs::remove_file(world.repo.join(".frites.toml")).unwrap();
        }
        let answer = world.frites(["apply", "-m", "land"]).expect(0);
        let says = "as in the base, because they are protected: tests, tests/check.sh\n";
        assert!(answer.stderr.contains(says), "{}", answer.stderr);
        assert_eq!(world.tree("HEAD"), json["candidates"][1]["judged_tree"].as_str().unwrap());
        assert_ne!(world.tree("HEAD"), json["candidates"][1]["tree"].as_str().unwrap());
        assert_eq!(world.git(["diff", "--name-only", "main"]), "Makefile\nvalue");
        world
            .frites(["apply", "1/c1", "--branch", "other"])
            .refuses(1, "1/c1 failed test (exit 2)");
        world.assert_clean();
    }
}

#[test]
fn added_files_below_protected_paths_stay_unless_they_decide() {
    let world = project();
    let fix = "echo 2 > value; echo true > tests/new.sh";
    world.attempts(&[
        fix,
        "echo 2 > value; git mv tests/check.sh tests/moved.sh; echo : >> tests/moved.sh",
        "echo 2 > value; touch tests/conftest.py tests/pytest.ini",
        "echo 2 > value; mkdir tests/a; echo 'import os; os._exit(0)' > tests/a/test_a.py",
    ]);
    // With `--cold`, each is judged without the tests that it adds, and not only the one that would
    // win.
    let judge = ["judge", "--json", "--cold", "--protect", "tests"];
    let json = world.frites(judge).expect(0).json();
    let dropped = |at: usize| json["candidates"][at]["dropped"].clone();
    assert_eq!(dropped(0), Value::Null);
    assert_eq!(dropped(1), serde_json::json!(["tests/check.sh", "tests/moved.sh"]));
    assert_eq!(dropped(2), serde_json::json!(["tests/conftest.py", "tests/pytest.ini"]));
    assert_eq!(dropped(3), serde_json::json!(["tests/a/test_a.py"]));
    let answer = world.frites(["apply", "1/c1", "-m", "land"]).expect(0);
    assert!(!answer.stderr.contains("protected"), "{}", answer.stderr);
    assert_eq!(world.git(["diff", "--name-only", "main"]), "tests/new.sh\nvalue");
    world.assert_clean();
}

#[test]
fn protected_path_keeps_the_content_of_a_moved_base() {
    let world = project();
    world.attempts(&[&format!("{RIGHT}; echo true > tests/check.sh")]);
    world.frites(["judge", "-q", "--protect", "tests"]).expect(0);
    world.write("tests/check.sh", "grep -qx 2 value && test -e moved\n");
    world.write("moved", "");
    world.commit("moved");
    world.frites(["apply", "-m", "land"]).expect(0);
    assert_eq!(world.git(["diff", "--name-only", "main"]), "value");
    world.assert_clean();
}

#[test]
fn invalid_pathspec_is_fatal_before_anything_runs() {
    let world = project();
    world.attempts(&[RIGHT]);
    let answer = world.frites(["judge", "--protect", ":(nonsense)x"]).refuses(128, "nonsense");
    assert!(answer.stderr.contains("git help glossary"), "{}", answer.stderr);
    world.frites(["judge", "--in-place", "--protect", "x"]).refuses(2, "--protect");
    world.assert_clean();
}

#[test]
fn test_that_edits_tracked_files_is_flagged_if_git_is_to_ignore_edits() {
    let world = World::new();
    world.git(["config", "core.ignoreStat", "true"]);
    world.attempts(&["echo 2 > value"]);
    let answer = world.frites(["judge", "--cold", "--test", "echo x > README"]).expect(0).out();
    let flagged = answer.lines().filter(|line| line.contains("oracle wrote"));
    assert_eq!(flagged.count(), 2, "with the base: {answer}");
}

/// SCOREBOARD row 25.
#[test]
fn test_that_edits_tracked_files_is_flagged_and_lands_nothing_else() {
    let world = World::new();
    world.attempts(&["echo 2 > value", "echo 3 > value; echo x > x"]);
    // The time that it sets is that of before, and the size is the same.
    let test = "cp -p README old; printf 'HELLO\\n' > README; touch -r old README; touch -d @1 src/lib.txt; git update-index --assume-unchanged README";
    let answer = world.frites(["judge", "--build", "true", "--test", test]).expect(0);
    assert_eq!(
        answer.stderr.matches("it changed tracked files (README), which will not land").count(),
        3,
        "with the base"
    );
    assert!(
        answer.out().lines().filter(|l| l.contains("oracle wrote")).count() == 3,
        "{}",
        answer.out()
    );
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(json["candidates"][0]["results"][1]["changed"], serde_json::json!(["README"]));
    assert_eq!(
        json["candidates"][0]["results"][0]["changed"],
        Value::Null,
        "build changed nothing"
    );
    world.frites(["apply"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c1"));
    assert_eq!(fs::read_to_string(world.repo.join("README")).unwrap(), "hello\n");
    world.assert_clean();
}

#[test]
fn attributes_of_an_attempt_do_not_shrink_its_line_count() {
    let world = World::new();
    world.attempts(&[
        "echo '*.txt binary' > .gitattributes; seq 200 > src/lib.txt",
        "seq 150 > src/lib.txt",
        "echo '*.txt -diff' > .gitattributes; seq 3 > src/lib.txt",
    ]);
    let json = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
    let lines: Vec<u64> =
        (0..3).map(|at| json["candidates"][at]["lines"].as_u64().unwrap()).collect();
    assert_eq!(lines, [204, 153, 7]);
    world.assert_clean();
}

#[test]
fn what_a_patch_does_not_show_is_flagged_and_ranks_as_before() {
    let world = World::new();
    world.write("Cargo.toml", "[dependencies]\nold = \"1\"\n");
    world.commit("manifest");
    world.attempts(&[
        "printf '\\0\\1' > logo; seq 3 > notes",
        "head -c 1000001 /dev/zero | tr '\\0' x > large; seq 4 > notes",
        "printf '[dependencies]\\nold = \"2\"\\nadded = \"1\"\\n' > Cargo.toml; seq 5 > notes",
    ]);
    let answer = world.frites(["judge", "--build", "true", "--test", "true"]).expect(0);
    let out = answer.out();
    for words in ["adds a binary", "adds a large file", "new dependency"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(out.contains("; check c1: it adds binary logo; "), "{out}");
    let told = &answer.stderr;
    assert!(told.contains("hint: if logo is the product of a build, it should not land"), "{told}");
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(json["ranking"], serde_json::json!(["c1", "c2", "c3"]));
    assert_eq!(flags(&json, 2), ["new-dependency Cargo.toml"]);
    assert_eq!(json["candidates"][2]["flags"][0]["dependencies"][0], "added");
    world.assert_clean();
}

/// On a base that passes, the base's tests pass with anything that only changes what runs them.
#[test]
fn candidate_that_changes_only_tests_and_commands_is_not_verified() {
    let world = World::unborn();
    world.write("calc.py", "def add(a, b):\n    return a + b\n");
    world.write("README.md", "calc\n");
    world.write("ci/run.sh", "grep -q a calc.py\n");
    world.write("Makefile", "test:\n\tsh ci/run.sh\n");
    world.commit("base");
    let honest = "printf '\\n\\ndef sub(a, b):\\n    return a - b\\n' >> calc.py";
    world.attempts(&[
        "printf 'test:\\n\\ttrue\\n' > Makefile",
        "sed -i '1i exit 0' ci/run.sh; echo more >> README.md",
        honest,
        // With a change of source, the base's tests say something.
        &format!("sed -i '1i exit 0' ci/run.sh; {honest}; echo '# x' >> calc.py"),
    ]);
    let judged = world.frites(["judge"]).expect(0);
    let out = judged.out();
    assert_eq!(out.matches("not compared").count(), 1, "{out}");
    let json = world.frites(["judge", "--json"]).expect(0).json();
    assert_eq!(json["recommended"], "c3", "{json:#}");
    // A script that the commands run may be the product, but it does not come before source.
    let explained = world.frites(["explain"]).expect(0).out();
    let why = "it leaves out no tests, the other changes only tests, or what runs them";
    assert!(explained.contains(&format!("c4 before c2: {why}")), "{explained}");
    world.frites(["spawn", "-n", "1", "--", "sh", "-c", "echo >> Makefile"]).expect(0);
    let alone = world.frites(["judge", "2"]).expect(3);
    assert!(
        alone.out().contains("it changes only tests and files that decide what is run"),
        "{}",
        alone.out()
    );
    world.frites(["apply", "2"]).refuses(1, "c1");
    // A change that only adds tests disables none of the base's.
    world
        .frites([
            "spawn",
            "-n",
            "1",
            "--",
            "sh",
            "-c",
            "mkdir tests; echo true > tests/more_test.sh",
        ])
        .expect(0);
    world.frites(["judge", "3"]).expect(0);
    world.assert_clean();
}
