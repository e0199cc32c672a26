//! Detected commands of minimal real projects, run with the real tools.
use std::fs;

use crate::common::edits::SMALL;
use crate::common::{World, make_executable, write};
use crate::tool::{CARGO, MAKE, NODE, NPM, PYTHON, trials};

trials! {
    make_project_passes_and_fails_by_its_own_commands: [MAKE];
    cargo_project_passes_and_fails_by_its_own_commands: [CARGO];
    npm_project_passes_and_fails_by_its_own_commands: [NPM];
    python_project_passes_and_fails_by_its_own_commands: [PYTHON];
    a_module_that_python_lacks_is_told_before_anything_runs: [PYTHON];
    node_finds_no_module_of_the_users_checkout: [NODE];
}

/// Judges two attempts at a project by its own commands: `right` must pass, and `wrong` must end
/// with the words `failure`; then lands what passed.
#[track_caller]
fn assert_tells_right_from_wrong(files: &[(&str, &str)], right: &str, wrong: &str, failure: &str) {
    let mut world = World::unborn();
    for (path, text) in files {
        world.write(path, text);
    }
    world.commit("base");
    world.set_env("CARGO_NET_OFFLINE", "true");
    world.attempts(&[right, wrong]);
    let answer = world.frites(["judge"]).expect(0);
    let last = answer.out().lines().last().unwrap().to_owned();
    assert!(
        last.starts_with("tests: only c1 of 2 passed") && last.ends_with(failure),
        "{last}\n{}",
        answer.stderr
    );
    world.frites(["apply"]).expect(0);
    let captured = world.tree("refs/frites/1/c1");
    assert_eq!(world.git(["write-tree"]), captured, "no build output lands");
    world.assert_clean();
}

fn make_project_passes_and_fails_by_its_own_commands() {
    let files = [
        ("Makefile", "build:\n\tcp value built\ntest: built\n\tgrep -q 2 built\nbuilt: build\n"),
        (".gitignore", "built\n"),
        ("value", "1\n"),
    ];
    let right = "sed -i.bak s/1/2/ value; rm value.bak";
    assert_tells_right_from_wrong(&files, right, "echo 3 > value", "c2 failed test (exit 2)");
}

fn cargo_project_passes_and_fails_by_its_own_commands() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"tiny\"\nversion = \"0.1.0\"\n"),
        (".gitignore", "target\n"),
        (
            "src/lib.rs",
            "pub fn two() -> i32 { 1 }\n#[test]\nfn is_two() { assert_eq!(two(), 2); }\n",
        ),
    ];
    let right = "sed -i.bak 's/{ 1 }/{ 2 }/' src/lib.rs; rm src/lib.rs.bak";
    let wrong = "echo 'fn broken( {' >> src/lib.rs";
    assert_tells_right_from_wrong(&files, right, wrong, "c2 failed build (exit 101)");
}

fn npm_project_passes_and_fails_by_its_own_commands() {
    let package = r#"{"name": "tiny", "version": "1.0.0", "scripts": {"test": "node test.js"}}"#;
    let files = [
        ("package.json", package),
        ("value.js", "module.exports = 1;\n"),
        ("test.js", "if (require('./value') !== 2) process.exit(1);\n"),
    ];
    let right = "sed -i.bak s/1/2/ value.js; rm value.js.bak";
    let wrong = "echo '// more' >> value.js";
    assert_tells_right_from_wrong(&files, right, wrong, "c2 failed test (exit 1)");
}

fn python_project_passes_and_fails_by_its_own_commands() {
    let test = "import unittest, value
class T(unittest.TestCase):
    def test(self): self.assertEqual(value.VALUE, 2)
";
    let files = [("value.py", "VALUE = 1\n"), ("test_value.py", test)];
    let right = "sed -i.bak s/1/2/ value.py; rm value.py.bak";
    let wrong = "echo '# more' >> value.py";
    assert_tells_right_from_wrong(&files, right, wrong, "c2 failed test (exit 1; 1 of 1 test)");
}

/// Makes `python3` find no installed packages.
fn without_packages(world: &mut World) {
    let real =
        world.sh(&world.repo, "python3 -c 'import sys; print(sys.executable)'").expect(0).out();
    let python = world.home().join("bin/python3");
    write(&python, format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", real.trim()));
    make_executable(&python);
    let path = format!("{}:{}", world.home().join("bin").display(), world.env("PATH").display());
    world.set_env("PATH", path);
}

fn a_module_that_python_lacks_is_told_before_anything_runs() {
    let mut world = World::unborn();
    world.write("conftest.py", "");
    world.write(".gitignore", "__pycache__\n");
    // The search must not run it.
    world.write("importlib.py", "raise SystemExit(5)\n");
    world.commit("a project that needs pytest");
    without_packages(&mut world);
    world.attempts(&["echo x > value"]);
    let doctor = world.frites(["doctor"]).expect(1);
    assert!(doctor.out().contains("python3 -m pytest is not installed\n"), "{}", doctor.out());
    for command in [&["judge"][..], &["judge", "-n"], &["run", "-n", "1", "--", "touch", "ran"]] {
        let told = world.frites(command).expect(128).stderr;
        let fatal = "fatal: the test command cannot run: python3 has no module 'pytest'\nhint: install it, ";
        assert!(told.contains(fatal), "{command:?}: {told}");
    }
    assert_eq!(
        world.frites(["status", "--json"]).expect(0).json()["runs"].as_array().unwrap().len(),
        1
    );
    // Who names a command knows better, and setup may install the module.
    world.frites(["judge", "--test", "python3 -m pytest"]).expect(1);
    world.git(["config", "frites.spawn.setup", "true"]);
    world.frites(["judge"]).expect(1);
    world.git(["config", "--unset", "frites.spawn.setup"]);
    // A module of the project's own counts.
    fs::remove_file(world.repo.join("importlib.py")).unwrap();
    world.write("pytest.py", "");
    world.commit("pytest");
    world.attempts(&["echo x > value"]);
    world.frites(["judge"]).expect(0);
    world.assert_clean();
}

fn node_finds_no_module_of_the_users_checkout() {
    let world = World::new();
    world.write(".gitignore", "node_modules\n");
    world.write("require.js", "require('helper');\n");
    world.commit("a script that needs a module");
    world.write("node_modules/helper/index.js", "module.exports = 1;\n");
    world.attempts(&[SMALL]);
    let test = "node require.js";
    world.sh(&world.worktree("1/c1"), test).expect(0);
    world.frites(["judge", "--test", test]).expect(1);
    world.assert_clean();
}
