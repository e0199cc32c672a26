//! Source that ends, skips or hides the tests of real runners, with exit code 0.
use crate::common::World;
use crate::test_reports::project;
use crate::tool::{CARGO, NODE, PHPUNIT, PROVE, PYTEST, PYTHON, RSPEC, trials};

trials! {
    source_that_ends_pytest_is_not_verified: [PYTEST];
    source_that_ends_cargo_test_is_not_verified: [CARGO];
    source_that_ends_node_is_not_verified: [NODE];
    source_that_drops_the_tests_to_fix_is_not_verified_by_pytest: [PYTEST];
    source_that_skips_the_test_to_fix_is_not_verified_by_unittest: [PYTHON];
    source_that_skips_the_test_to_fix_is_not_verified_by_rspec: [RSPEC];
    source_that_skips_the_test_to_fix_is_not_verified_by_prove: [PROVE];
    source_that_skips_the_test_to_fix_is_not_verified_by_phpunit: [PHPUNIT];
}

/// Judges a candidate that ends the tests early, which is not verified, and one with an honest
/// change.
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

/// Judges a candidate that fixes the failing test of the base, after others that keep it from
/// running, which are smaller.
#[track_caller]
fn assert_dropped(world: &World, test: &str, drops: &[&str], fix: &str) {
    for drop in drops {
        let run = world.attempts(&[drop, fix]);
        let json = world.frites(["judge", "--json", "--test", test, &run]).expect(0).json();
        assert_eq!(json["passed"], serde_json::json!(["c2"]), "{drop}: {json:#}");
        let outcome = &json["candidates"][0]["results"][0]["outcome"];
        assert_eq!(outcome, "missing-tests", "{drop}: {json:#}");
        let alone = world.attempts(&[drop]);
        let answer = world.frites(["judge", "-q", "--test", test, &alone]).expect(3);
        assert!(answer.stderr.contains("missing-tests"), "{drop}: {}", answer.stderr);
    }
    world.assert_clean();
}

const VALUE_TEST: &str = "import pkg.value
def test_one(): assert pkg.value.f(1) == 1
def test_two(): assert pkg.value.f(2) == 2
def test_three(): assert pkg.value.f(3) == 3
";

fn source_that_drops_the_tests_to_fix_is_not_verified_by_pytest() {
    let world = project(
        &[
            ("pkg/value.py", "def f(n):\n    return n if n < 3 else 0\n"),
            ("pkg/__init__.py", ""),
            ("test_value.py", VALUE_TEST),
            ("Makefile", "test:\n\tpytest -q\n"),
        ],
        "off",
    );
    let calls = |line: &str| {
        format!("printf 'def f(n):\\n    if n == 3: {line}\\n    return n\\n' > pkg/value.py")
    };
    let hides = "printf 'import _pytest.python as p\\nold = p.PyCollector.collect\\n\
                 p.PyCollector.collect = lambda s: [t for t in old(s) if t.name != \"test_three\"]\\n\
                 def f(n): return n if n < 3 else 0\\n' > pkg/value.py";
    let drops = [
        &calls("__import__(\"pytest\").skip(\"\")"),
        &calls("__import__(\"pytest\").xfail(\"\")"),
        &calls("raise __import__(\"unittest\").SkipTest"),
        hides,
    ];
    let fix = "printf '# It is\\n# what it\\n# gets, for\\n# all\\n# values\\n\
               def f(n):\\n    return n\\n' > pkg/value.py";
    assert_dropped(&world, "make -s test", &drops, fix);
    // By its file, which names each test.
    assert_dropped(&world, "pytest -q", &drops, fix);
}

fn source_that_skips_the_test_to_fix_is_not_verified_by_unittest() {
    let test = "import unittest, value
class T(unittest.TestCase):
    def test_one(self): self.assertEqual(value.f(1), 1)
    def test_two(self): self.assertEqual(value.f(2), 2)
";
    let base = "def f(n):\n    return n if n < 2 else 0\n";
    let world = project(&[("value.py", base), ("test_value.py", test)], "off");
    let skip = "sed -i 's/return.*/return n if n < 2 else exec(\"import unittest; raise unittest.SkipTest\")/' value.py";
    let fix = "sed -i 's/return.*/return n/; 1i # a\\n# b' value.py";
    assert_dropped(&world, "python3 -m unittest", &[skip], fix);
}

fn source_that_skips_the_test_to_fix_is_not_verified_by_rspec() {
    let test = "require_relative '../lib/value'
RSpec.describe 'the value' do
  it('is one') { expect(value(1)).to eq 1 }
  it('is two') { expect(value(2)).to eq 2 }
end
";
    let base = "def value(n)\n  n < 2 ? n : 0\nend\n";
    let world = project(&[("lib/value.rb", base), ("spec/value_spec.rb", test)], "off");
    let skip = "sed -i 's/n < 2.*/n < 2 ? n : RSpec.current_example.example_group_instance.skip(\"\")/' lib/value.rb";
    let fix = "sed -i 's/n < 2.*/n/; 1i # a\\n# b' lib/value.rb";
    assert_dropped(&world, "rspec", &[skip], fix);
}

fn source_that_skips_the_test_to_fix_is_not_verified_by_prove() {
    let test = "use Test::More tests => 2;\nuse Value;\nis(Value::f(1), 1, 'one');\nis(Value::f(2), 2, 'two');\n";
    let base = "package Value;\nsub f { $_[0] < 2 ? $_[0] : 0 }\n1;\n";
    let world = project(&[("lib/Value.pm", base), ("t/value.t", test)], "off");
    let expected =
        "sed -i 's/^sub f.*/sub f { $main::TODO = 1; $_[0] < 2 ? $_[0] : 0 }/' lib/Value.pm";
    let fix = "sed -i 's/^sub f.*/sub f { $_[0] }/; 1i # a\\n# b' lib/Value.pm";
    assert_dropped(&world, "prove -lv", &[expected], fix);
}

fn source_that_skips_the_test_to_fix_is_not_verified_by_phpunit() {
    let test = "<?php
require_once __DIR__ . '/../src/value.php';
final class ValueTest extends PHPUnit\\Framework\\TestCase {
    public function testOne(): void { $this->assertSame(1, value(1)); }
    public function testTwo(): void { $this->assertSame(2, value(2)); }
}
";
    let base = "<?php
function value($n) {
    return $n < 2 ? $n : 0;
}
";
    let world = project(&[("src/value.php", base), ("tests/ValueTest.php", test)], "off");
    let skip =
        "sed -i 's/: 0/: throw new PHPUnit\\\\Framework\\\\SkippedTestError(\"\")/' src/value.php";
    let fix = "sed -i 's/: 0/: $n/; 1a // a\\n// b' src/value.php";
    assert_dropped(&world, "phpunit tests", &[skip], fix);
}
