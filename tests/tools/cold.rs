//! Cold results: nothing that the base's build, lint or test left below a tree that is judged cold,
//! and nothing of its own failed run below the base.
use std::fs;

use serde_json::Value;

use crate::common::World;
use crate::common::sealed::{confined, sealed};
use crate::tool::{LANDLOCK, MAKE, NAMESPACES, trials};
use crate::traces::shared_lines;

trials! {
    a_library_that_the_base_installs_in_home_helps_no_broken_candidate: [NAMESPACES];
    downloads_of_the_bases_setup_serve_cold_runs: [NAMESPACES];
    the_base_is_judged_over_nothing_of_its_own_failed_run: [NAMESPACES, MAKE];
    nor_where_landlock_confines_it: [LANDLOCK, MAKE];
    a_base_that_failed_once_is_judged_over_its_outputs_again_once_it_passes: [NAMESPACES];
    a_base_that_passes_over_its_own_outputs_is_confirmed_where_no_candidate_passes: [NAMESPACES];
    a_base_over_a_stamp_is_compared_by_the_tests_that_it_had_without: [NAMESPACES, MAKE];
    what_a_download_alone_leaves_serves_cold_runs: [NAMESPACES];
    of_a_tree_whose_dependencies_cannot_be_downloaded_nothing_can_be_told: [NAMESPACES];
    the_file_that_names_dependencies_tells_how_they_are_downloaded: [NAMESPACES];
    a_download_that_fails_on_the_base_changes_no_outcome: [NAMESPACES];
    a_file_that_changes_above_the_cache_disturbs_no_sealed_judging: [NAMESPACES];
}

fn judged(world: &World, code: i32, more: &[&str]) -> Value {
    let words = ["judge", "--json"];
    world.frites(words.iter().chain(more)).expect(code).json()
}

/// As `mvn install`, `go install` and `pip install --user` do it.
const INSTALL: &str = "mkdir -p ~/.m2; test ! -e lib || cp lib ~/.m2/lib; grep -q works ~/.m2/lib";

fn a_library_that_the_base_installs_in_home_helps_no_broken_candidate() {
    for options in [&[][..], &["--cold"], &["--no-cache"], &["-j", "2", "--no-cache"]] {
        let mut world = sealed();
        world.write("lib", "works\n");
        world.commit("a library");
        world.attempts(&["rm lib", "echo one >> lib; echo two >> lib"]);
        world.git(["config", "frites.oracle.test", INSTALL]);
        for warm in ["base", "never"] {
            world.set_env("FRITES_ORACLE_WARM", warm);
            let verdict = judged(&world, 0, options);
            assert_eq!(verdict["recommended"], "c2", "{options:?}: {verdict:#}");
            let broken = &verdict["candidates"][0];
            assert_eq!(broken["passed"], false, "{options:?}: {verdict:#}");
        }
        assert!(!world.home().join(".m2").exists());
        world.assert_clean();
    }
    let world = sealed();
    world.write("lib", "works\n");
    world.commit("a library");
    world.attempts(&["rm lib"]);
    let verdict = judged(&world, 1, &["--test", INSTALL]);
    let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
    assert!(stale.starts_with("stale build output: with the base's outputs it passed"), "{stale}");
}

fn downloads_of_the_bases_setup_serve_cold_runs() {
    let mut world = sealed();
    world.set_env("FRITES_SANDBOX_NETWORK", "setup");
    world.git(["config", "frites.oracle.build", "echo built > ~/built"]);
    world.git(["config", "frites.oracle.test", "grep -q got ~/file && test -e ~/built"]);
    world.attempts(&["echo more >> README"]);
    let setup = "test -e ~/file || echo got | tee -a ~/shared/downloads > ~/file";
    world.git(["config", "frites.spawn.setup", setup]);
    for options in [&[][..], &["--no-cache"], &["--cold", "--no-cache"]] {
        assert_eq!(judged(&world, 0, options)["recommended"], "c1");
    }
    assert_eq!(shared_lines(&world, "downloads"), ["got"]);
    assert!(!world.home().join("file").exists());
    world.assert_clean();
}

/// A project whose test make runs only once: it takes the log of a failed test for that of a pass.
fn project_with_a_stamp(mode: &str) -> World {
    let world = confined(mode);
    world.write("Makefile", "test: tests.log\ntests.log:\n\tsh tests.sh > tests.log\n");
    world.write("tests.sh", "echo tested; grep -q fixed src/lib.txt\n");
    world.write(".gitignore", "tests.log\n");
    world.commit("a project with a stamp");
    world
}

fn assert_base_fails_each_time(world: &World) {
    world.attempts(&["echo fixed >> src/lib.txt", "echo more > README"]);
    for options in [&[][..], &[], &["--no-cache"], &["-j", "2"], &["--cold"]] {
        let verdict = judged(world, 0, &[&["--test", "make test"], options].concat());
        assert_eq!(verdict["recommended"], "c1", "{options:?}: {verdict:#}");
        let base = &verdict["baseline"]["results"][0];
        assert_eq!(base["outcome"], "failed", "{options:?}: {verdict:#}");
        assert_ne!(base["cached"], true, "{options:?}: {verdict:#}");
        let reason = verdict["rationale"].as_str().unwrap_or_default();
        assert!(!reason.contains("the base passes"), "{reason}");
    }
    world.assert_clean();
}

fn a_base_over_a_stamp_is_compared_by_the_tests_that_it_had_without() {
    let mut world = sealed();
    world.set_env("FRITES_ORACLE_WARM", "base");
    // The first suite leaves a stamp. A tree with `stop` ends it before its test.
    let suite =
        "if grep -q stop src/lib.txt; then n=0; else n=1; fi; echo \"=== $$n passed in 0.10s ===\"";
    let stamp = format!("one.log: src/lib.txt\n\t{suite}\n\ttouch one.log\n");
    let other = "\t@echo '=== 1 passed in 0.10s ==='\n";
    world.write("Makefile", format!(".PHONY: test\ntest: one.log\n{other}{stamp}"));
    world.write(".gitignore", "*.log\n");
    world.commit("a project with a stamp");
    world.attempts(&["echo stop >> src/lib.txt"]);
    for options in [&[][..], &["--no-cache"], &["--no-cache", "-j", "2"]] {
        let verdict = judged(&world, 3, &[&["--test", "make test"], options].concat());
        assert_eq!(verdict["decision"], "missing-tests", "{options:?}: {verdict:#}");
    }
    // The outputs of an ancestor hide a test in the same way.
    world.write("README", "moved\n");
    world.commit("moved");
    world.attempts(&["echo stop >> src/lib.txt"]);
    let verdict = judged(&world, 3, &["--test", "make test"]);
    assert_eq!(verdict["decision"], "missing-tests", "{verdict:#}");
    world.assert_clean();
}

fn the_base_is_judged_over_nothing_of_its_own_failed_run() {
    assert_base_fails_each_time(&project_with_a_stamp("sealed"));
}

fn nor_where_landlock_confines_it() {
    assert_base_fails_each_time(&project_with_a_stamp("landlock"));
}

fn a_base_that_failed_once_is_judged_over_its_outputs_again_once_it_passes() {
    let world = sealed();
    world.write(".gitignore", "out\n");
    world.commit("outputs are ignored");
    world.attempts(&["echo more > README", "seq 9 > README"]);
    let broken = world.home().join("shared/broken");
    fs::write(&broken, "").unwrap();
    let test = "echo built > out; test ! -e ~/shared/broken";
    judged(&world, 1, &["--test", test]);
    fs::remove_file(broken).unwrap();
    let inherited: Vec<Value> = [&[][..], &[], &["--no-cache"]]
        .map(|options| judged(&world, 0, &[&["--test", test], options].concat()))
        .map(|verdict| verdict["baseline"]["inherited"].clone())
        .into();
    // With nothing of the failure, then anew with nothing, then with the outputs of the pass.
    assert_eq!(inherited, [Value::Null, Value::Null, Value::Bool(true)]);
    world.assert_clean();
}

/// Its tests pass once, and after that only over what they left.
fn a_base_that_passes_over_its_own_outputs_is_confirmed_where_no_candidate_passes() {
    let world = sealed();
    world.write(".gitignore", "out\n");
    world.commit("outputs are ignored");
    world.attempts(&["echo more > README"]);
    let test =
        "test ! -e ~/shared/broken || test -e out && echo built > out && ! grep -q more README";
    judged(&world, 1, &["--test", test]);
    fs::write(world.home().join("shared/broken"), "").unwrap();
    let verdict = judged(&world, 1, &["--no-cache", "--test", test]);
    assert_eq!(verdict["baseline"]["results"][0]["outcome"], "failed", "{verdict:#}");
    assert_eq!(verdict["baseline"]["inherited"], Value::Null);
    world.assert_clean();
}

fn the_file_that_names_dependencies_tells_how_they_are_downloaded() {
    for (file, command) in [
        ("Cargo.lock", "cargo fetch --locked"),
        ("go.sum", "go mod download"),
        ("deno.lock", "deno install --frozen --node-modules-dir=none"),
    ] {
        let mut world = sealed();
        let bin = world.home().join("bin");
        let program = bin.join(command.split(' ').next().unwrap());
        let script = "#!/bin/sh\necho \"${0##*/} $*\" | tee -a ~/shared/ran > ~/downloaded\n";
        crate::common::write(&program, script);
        crate::common::make_executable(&program);
        let path = format!("{}:{}", bin.display(), world.env("PATH").to_string_lossy());
        world.set_env("PATH", path);
        world.write(file, "");
        world.commit("a file that names dependencies");
        world.attempts(&["echo more >> README"]);
        let verdict = judged(&world, 0, &["--test", "test -s ~/downloaded"]);
        assert_eq!(verdict["recommended"], "c1", "{file}: {verdict:#}");
        assert_eq!(shared_lines(&world, "ran"), [command]);
    }
}

/// A project whose dependencies a program named cargo downloads: into `~/registry`, unless there is
/// a file `offline`.
fn project_with_dependencies() -> World {
    let mut world = sealed();
    let bin = world.home().join("bin");
    let cargo = "#!/bin/sh\ntest \"$*\" = 'fetch --locked' || exit 9\n\
                 echo $(git log -1 --format=%s) >> ~/shared/fetched\n\
                 test ! -e ~/shared/offline || { echo 'error: no network'; exit 101; }\n\
                 mkdir -p ~/registry; for name in $(cat Cargo.lock); do touch ~/registry/$name; done\n";
    crate::common::write(&bin.join("cargo"), cargo);
    crate::common::make_executable(&bin.join("cargo"));
    let path = format!("{}:{}", bin.display(), world.env("PATH").to_string_lossy());
    world.set_env("PATH", path);
    world.write("Cargo.lock", "one\n");
    world.commit("base");
    let test = "for name in $(cat Cargo.lock); do test -e ~/registry/$name || exit 3; done; \
                echo tested > ~/left";
    world.git(["config", "frites.oracle.test", test]);
    world
}

fn fetched(world: &World) -> usize {
    let lines = shared_lines(world, "fetched").len();
    let _ = fs::remove_file(world.home().join("shared/fetched"));
    lines
}

fn what_a_download_alone_leaves_serves_cold_runs() {
    let world = project_with_dependencies();
    world.attempts(&["echo more >> README", "echo two >> Cargo.lock; seq 9 >> README"]);
    let verdict = judged(&world, 0, &[]);
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    assert_eq!(verdict["candidates"][1]["passed"], true, "{verdict:#}");
    // The base, and the candidate with another dependency.
    assert_eq!(fetched(&world), 2);
    for options in [&["--no-cache"][..], &["--no-cache", "--cold"]] {
        judged(&world, 0, options);
        assert_eq!(fetched(&world), 1, "{options:?}");
    }
    assert!(!world.home().join("registry").exists());
    world.assert_clean();
}

fn of_a_tree_whose_dependencies_cannot_be_downloaded_nothing_can_be_told() {
    let world = project_with_dependencies();
    world.attempts(&["echo two >> Cargo.lock"]);
    judged(&world, 0, &[]);
    fs::write(world.home().join("shared/offline"), "").unwrap();
    let answer = world.frites(["judge", "--json", "--no-cache"]).expect(3);
    let verdict = answer.json();
    assert_eq!(verdict["decision"], "undecided", "{verdict:#}");
    let result = &verdict["candidates"][0]["results"][0];
    assert_eq!(result["outcome"], "cannot-tell", "{verdict:#}");
    assert_eq!(result["obstacle"]["kind"], "download", "{verdict:#}");
    let words = "its dependencies could not be downloaded";
    assert!(verdict["rationale"].as_str().unwrap().contains(words), "{verdict:#}");
    assert_eq!(verdict["baseline"]["results"][0]["outcome"], "passed", "{verdict:#}");
    world.assert_clean();
}

fn a_download_that_fails_on_the_base_changes_no_outcome() {
    let world = project_with_dependencies();
    fs::write(world.home().join("shared/offline"), "").unwrap();
    world.git(["config", "frites.oracle.test", "! grep -q bad README"]);
    world.attempts(&["echo bad >> README", "echo two >> Cargo.lock; echo bad >> README"]);
    let verdict = judged(&world, 1, &[]);
    assert_eq!(fetched(&world), 1);
    for candidate in verdict["candidates"].as_array().unwrap() {
        assert_eq!(candidate["results"][0]["outcome"], "failed", "{verdict:#}");
    }
    world.git(["config", "frites.oracle.test", "true || tool --offline"]);
    judged(&world, 0, &["--no-cache"]);
    assert_eq!(fetched(&world), 0, "a command that goes without the network needs none");
    world.assert_clean();
}

fn a_file_that_changes_above_the_cache_disturbs_no_sealed_judging() {
    let world = sealed();
    world.attempts(&["echo 1 > one", "echo 1 > two; echo 2 >> two"]);
    let home = world.home();
    let test = "if test -e one; then touch ~/shared/ready; until test -e ~/shared/go; do sleep 0.02; done; fi";
    world.git(["config", "frites.oracle.test", test]);
    let mut judge = world.command(&world.repo, "git-frites", ["judge", "--json"]);
    let judge = judge.stdout(std::process::Stdio::piped()).spawn().unwrap();
    crate::common::poll(|| home.join("shared/ready").exists());
    for name in [".npmrc", "cache/conftest.py", ".cargo/config.toml"] {
        crate::common::write(&home.join(name), "# of the user, in another terminal\n");
    }
    fs::write(home.join("shared/go"), "").unwrap();
    let output = judge.wait_with_output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["verified"], true, "{verdict:#}");
    assert_eq!(verdict["terms"]["disturbed"], Value::Null, "{verdict:#}");
}
