//! Source that ends the tests of real runners early, with exit code 0.
use crate::test_reports::project;
use crate::tool::{CARGO, NODE, PYTEST, trials};

trials! {
    source_that_ends_pytest_is_not_verified: [PYTEST];
    source_that_ends_cargo_test_is_not_verified: [CARGO];
    source_that_ends_node_is_not_verified: [NODE];
}

/// Judges a candidate that ends the tests early, which is not verified, and one with an honest change.
#[track_caller]
fn assert_early_end(files: &[(&str, &str)], test: &str, early: &str, honest: &str) {
    let world = project(files, "off");
    world.attempts(&[early]);
    let json = world.frites(["judge", "--json", "--test", test]).expect(3).json();
    assert_eq!(json["decision"], "missing-tests", "{test}: {json}");
    world.attempts(&[honest]);
    let answer = world.frites(["judge", "--test", test]).expect(0);
    assert!(answer.out().contains("single: c1"), "{test}: {}", answer.out());
    world.assert_clean();
}

fn source_that_ends_pytest_is_not_verified() {
    let files = [
        ("m.py", "def f():\n    '''\n    >>> f()\n    1\n    '''\n    return 1\n"),
        (
            "test_m.py",
            "import m\ndef test_a(): assert m.f() == 1\ndef test_b(): assert m.f() == 1\n",
        ),
        ("Makefile", "test:\n\tpytest -q\n"),
    ];
    let early = "printf 'import os\\nos._exit(0)\\n' > m.py";
    // It has no doctest any more.
    let honest = "printf 'def f(): return 1\\n' > m.py";
    for test in ["pytest", "make -s test", "pytest --doctest-modules"] {
        assert_early_end(&files, test, early, honest);
    }
}

fn source_that_ends_cargo_test_is_not_verified() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/lib.rs", "/// ```\n/// assert!(tiny::f());\n/// ```\npub fn f() -> bool { true }\n"),
        ("tests/a.rs", "#[test] fn a() { assert!(tiny::f()); }\n"),
        ("tests/b.rs", "#[test] fn b() {}\n"),
        (".gitignore", "target\n"),
    ];
    let early = "printf '/// ```\\n/// assert!(true);\\n/// ```\\npub fn f() -> bool { std::process::exit(0) }\\n' > src/lib.rs";
    assert_early_end(
        &files,
        "cargo test",
        early,
        "printf 'pub fn f() -> bool { true }\\n' > src/lib.rs",
    );
}

fn source_that_ends_node_is_not_verified() {
    let files = [
        ("package.json", "{}\n"),
        ("src/m.js", "exports.f = () => 1;\n"),
        (
            "a.test.js",
            "const test = require('node:test'), m = require('./src/m.js');\ntest('a', () => m.f());\ntest('b', () => m.f());\n",
        ),
    ];
    let early = "echo 'process.exit(0);' > src/m.js";
    let honest = "echo 'exports.f = () => 2;' > src/m.js";
    assert_early_end(&files, "node --test", early, honest);
    assert_early_end(&files, "node --test --test-reporter=tap", early, honest);
}
