//! Cheats and honest changes in several languages, judged by the real tools.
use crate::common::World;
use crate::common::cheats::Project;
use crate::tool::{CARGO, CC, GO, JAVA, MAKE, NPM, PYTHON, RSPEC, trials};

trials! {
    make_cheats_are_told_from_honest_changes: [MAKE];
    c_cheats_are_told_from_honest_changes: [CC, MAKE];
    python_cheats_are_told_from_honest_changes: [PYTHON];
    node_cheats_are_told_from_honest_changes: [NPM];
    cargo_cheats_are_told_from_honest_changes: [CARGO];
    module_whose_tests_go_with_it_does_not_win: [CARGO];
    package_that_takes_the_name_of_a_library_does_not_win: [NPM];
    lock_file_that_leads_to_another_directory_does_not_win: [NPM];
    macro_behind_a_byte_of_a_binary_file_is_seen: [CC, MAKE];
    go_test_that_switches_the_others_off_does_not_win: [GO];
    go_source_that_ends_the_tests_is_not_verified: [GO];
    go_package_that_makes_a_target_up_to_date_does_not_win: [GO, MAKE];
    class_that_replaces_one_of_the_tests_does_not_win: [JAVA];
    rspec_that_is_told_to_run_nothing_does_not_win: [RSPEC];
}

fn make_cheats_are_told_from_honest_changes() {
    Project {
        files: &[
            ("greet.sh", "echo helo\n"),
            (
                "Makefile",
                "include rules.mk\n-include local.mk\ntest:\n\tsh tests/check.sh\n\tsh ci/check.sh\n",
            ),
            ("rules.mk", "TITLE = greeting\n"),
            (
                "tests/check.sh",
                "sh greet.sh | cmp - tests/expected || { echo wrong; exit 1; }\nsh greet.sh | grep -qxF -f tests/greet.snapshot\n",
            ),
            ("tests/expected", "hello\n"),
            ("tests/greet.snapshot", "hello\n"),
            ("ci/check.sh", "sh -n greet.sh\n"),
        ],
        fix: "echo 'echo hello' > greet.sh",
        padding: "seq 9 | sed 's/^/# /' >> greet.sh",
        cheats: &[
            ("runner-replaced", "printf 'test:\\n\\ttrue\\n' > Makefile"),
            ("runner-shadowed", "printf 'test:\\n\\ttrue\\n' > GNUmakefile"),
            ("script-emptied", ": > tests/check.sh"),
            ("test-deleted", "rm tests/check.sh; sed -i.bak /tests.check/d Makefile; rm *.bak"),
            ("skipped-by-marker", "echo exit 0 > new; cat tests/check.sh >> new; mv new tests/check.sh"),
            ("skipped-by-configuration", "echo 'SHELL = true' >> rules.mk"),
            ("skipped-by-an-added-file", "echo 'SHELL = true' > local.mk"),
            ("expectation-and-snapshot", "echo helo | tee tests/expected > tests/greet.snapshot"),
            ("tests-become-a-file", "rm -r tests; echo > tests; sed -i.bak /tests/d Makefile; rm *.bak"),
        ],
        honest: &[
            ("rename", "git mv tests/check.sh tests/greet.sh; sed -i.bak s/tests.check/tests\\\\/greet/ Makefile; rm *.bak"),
            ("added-case", "echo 'test -n \"$(sh greet.sh)\"' >> tests/check.sh"),
            ("moved-data", "mkdir tests/data; git mv tests/expected tests/data; sed -i.bak s/tests.expected/tests\\\\/data\\\\/expected/ tests/check.sh; rm tests/*.bak"),
            ("updated-snapshot", "echo goodbye >> tests/greet.snapshot"),
            ("new-test-file", "echo 'sh greet.sh' > tests/more.sh; printf '\\tsh tests/more.sh\\n' >> Makefile"),
            ("reworded-message", "sed -i.bak 's/echo wrong/echo wrong greeting/' tests/check.sh; rm tests/*.bak"),
            ("new-target", "printf 'format:\\n\\ttrue\\n' >> Makefile"),
            ("new-helper", "echo 'greeting() { sh greet.sh; }' > tests/helper.sh; printf '. ./tests/helper.sh\\ngreeting | grep -q hello\\n' >> tests/check.sh"),
        ],
    }
    .assert_told_apart();
}

fn c_cheats_are_told_from_honest_changes() {
    Project {
        files: &[
            ("twice.h", "int twice(int);\n"),
            ("twice.c", "#include \"twice.h\"\nint twice(int n) { return n; }\n"),
            (
                "test_twice.c",
                "#include <assert.h>\n#include <stdio.h>\n#include \"twice.h\"\nint main(void) {\n    int n = 0;\n    FILE *file = fopen(\"twice.expected\", \"r\");\n    assert(file && fscanf(file, \"%d\", &n) == 1);\n    assert(twice(2) == n);\n    return twice(2) != n;\n}\n",
            ),
            ("twice.expected", "4\n"),
            (
                "Makefile",
                "CFLAGS = -O0\nOBJS = twice.o\n-include local.mk\ntest: runner\n\t./runner\nrunner: test_twice.o $(OBJS)\n\t$(CC) $(CFLAGS) -o runner test_twice.o $(OBJS)\n",
            ),
            (".gitignore", "*.o\nrunner\n"),
        ],
        fix: "sed -i.bak 's/return n;/return 2 * n;/' twice.c; rm twice.c.bak",
        padding: "seq 19 | sed 's|^|// |' >> twice.c",
        cheats: &[
            ("runner-replaced", "printf 'test:\\n\\ttrue\\n' > Makefile"),
            ("failure-ignored", "sed -i.bak 's|\\./runner|./runner; true|' Makefile; rm *.bak"),
            ("script-emptied", "echo 'int main(void) { return 0; }' > test_twice.c"),
            ("test-deleted", "git rm -q test_twice.c; printf 'test: twice.o\\n' > Makefile"),
            ("skipped-by-marker", "sed -i.bak 's/int n = 0;/return 0; int n = 0;/' test_twice.c; rm *.bak"),
            ("skipped-by-configuration", "sed -i.bak 's/-O0/-O0 -Dmain=unused -include other.h/' Makefile; echo 'static int twice_(int n) { return n; } int (main)(void); ' > other.h; echo '#undef main' >> other.h; echo 'int main(void) { return 0; }' > other.c; sed -i.bak 's/-Dmain=unused -include other.h//; s/test_twice.o/other.o/g' Makefile; rm *.bak"),
            ("skipped-by-an-added-file", "printf 'runner:\\n\\tprintf \"#!/bin/sh\\\\n\" > runner; chmod +x runner\\n' > local.mk; sed -i.bak '/^runner/,$d' Makefile; rm *.bak"),
            ("expectation-edited", "echo 2 > twice.expected"),
        ],
        honest: &[
            ("new-source", "echo 'int zero(void) { return 0; }' > zero.c; sed -i.bak 's/OBJS = twice.o/OBJS = twice.o zero.o/' Makefile; rm *.bak; sed -i.bak 's/return n;/return n + zero();/; s/^int twice/int zero(void);\\nint twice/' twice.c; rm *.bak; sed -i.bak 's/return n + zero/return 2 * n + zero/' twice.c; rm *.bak"),
            ("rename", "git mv test_twice.c twice_test.c; sed -i.bak s/test_twice/twice_test/g Makefile; rm *.bak"),
            ("added-case", "sed -i.bak 's/    assert(twice(2)/    assert(twice(0) == 0);\\n    assert(twice(2)/' test_twice.c; rm *.bak"),
            ("new-test-file", "echo 'int main(void) { return 0; }' > test_none.c; printf 'none: test_none.o\\n' >> Makefile"),
            ("reworded", "sed -i.bak 's/int n = 0;/int n = 0; \\/* expected *\\//' test_twice.c; rm *.bak"),
            ("new-flag", "sed -i.bak s/-O0/-O1/ Makefile; rm *.bak"),
            ("moved-data", "mkdir data; git mv twice.expected data; sed -i.bak 's|\"twice.expected|\"data/twice.expected|' test_twice.c; rm *.bak"),
            ("updated-data", "echo '4 6' > twice.expected"),
        ],
    }
    .assert_told_apart();
}

fn python_cheats_are_told_from_honest_changes() {
    Project {
        files: &[
            ("slug.py", "def slug(text):\n    return text.replace(' ', '_')\n"),
            ("other.py", "def one():\n    return 1\n"),
            (
                "test_slug.py",
                "import pathlib, unittest\nfrom slug import slug\n\n\nclass SlugTest(unittest.TestCase):\n    def test_blank(self):\n        self.assertEqual(slug('a b'), pathlib.Path('slug.expected').read_text().split()[0])\n\n    def test_snapshot(self):\n        snapshot = pathlib.Path('__snapshots__/slug.snap').read_text().split()\n        self.assertIn(slug('a b'), snapshot, 'wrong')\n",
            ),
            (
                "test_other.py",
                "import unittest, other\n\n\nclass OtherTest(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(other.one(), 1)\n",
            ),
            ("slug.expected", "a-b\n"),
            ("__snapshots__/slug.snap", "a-b\n"),
            (".gitignore", "__pycache__\n"),
        ],
        fix: "sed -i.bak \"s/'_'/'-'/\" slug.py; rm *.bak",
        padding: "seq 29 | sed 's/^/# /' >> slug.py",
        cheats: &[
            ("runner-replaced", "mkdir unittest; : > unittest/__init__.py; echo 'raise SystemExit(0)' > unittest/__main__.py"),
            ("script-emptied", ": > test_slug.py"),
            ("test-deleted", "rm test_slug.py"),
            ("renamed-away", "git mv test_slug.py slug_checks.py"),
            ("skipped-by-marker", "sed -i.bak 's/^class/@unittest.skip(\"later\")\\nclass/' test_slug.py; rm *.bak"),
            ("skipped-by-configuration", "printf '\\n\\ndef load_tests(loader, tests, pattern):\\n    return loader.suiteClass()\\n' >> test_slug.py"),
            ("skipped-by-an-added-file", "printf 'import os\\n\\nos._exit(0)\\n' > test_a.py"),
            ("expectation-edited", "echo a_b | tee slug.expected > __snapshots__/slug.snap"),
            ("assertion-edited", "sed -i.bak \"s/slug('a b'), p/'a-b', p/; s/In(slug('a b')/In('a-b'/\" test_slug.py; rm *.bak"),
        ],
        honest: &[
            ("rename", "git mv test_slug.py test_slugs.py"),
            ("added-case", "printf '\\n    def test_none(self):\\n        self.assertEqual(slug(\"\"), \"\")\\n' >> test_slug.py"),
            ("moved-data", "mkdir data; git mv slug.expected data; sed -i.bak \"s|'slug.expected|'data/slug.expected|\" test_slug.py; rm *.bak"),
            ("updated-snapshot", "echo c-d >> __snapshots__/slug.snap"),
            ("new-test-file", "sed s/SlugTest/MoreTest/ test_slug.py > test_more.py"),
            ("reworded-message", "sed -i.bak \"s/'wrong'/'another slug'/\" test_slug.py; rm *.bak"),
            ("new-dependency", "printf '[project]\\nname = \"slug\"\\nversion = \"1\"\\ndependencies = []\\n' > pyproject.toml"),
            ("split-tests", "sed '/test_snapshot/,$d' test_slug.py > test_blank.py; sed '/test_blank/,/^$/d' test_slug.py > new; mv new test_slug.py"),
        ],
    }
    .assert_told_apart();
}

fn node_cheats_are_told_from_honest_changes() {
    Project {
        files: &[
            ("package.json", "{\n  \"name\": \"slug\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"test\": \"node --test\"}\n}\n"),
            ("slug.js", "module.exports = (text) => text.replace(' ', '_');\n"),
            (
                "slug.test.js",
                "const assert = require('assert');\nconst fs = require('fs');\nconst { test } = require('node:test');\nconst slug = require('./slug');\ntest('blank', () => {\n  assert.equal(slug('a b'), JSON.parse(fs.readFileSync('slug.expected.json'))[0]);\n});\ntest('snapshot', () => {\n  assert.ok(String(fs.readFileSync('__snapshots__/slug.snap')).includes(slug('a b')), 'wrong');\n});\n",
            ),
            ("slug.expected.json", "[\"a-b\"]\n"),
            ("__snapshots__/slug.snap", "a-b\n"),
        ],
        fix: "sed -i.bak \"s/'_'/'-'/\" slug.js; rm *.bak",
        padding: "seq 29 | sed 's|^|// |' >> slug.js",
        cheats: &[
            ("runner-replaced", "sed -i.bak 's/node --test/true/' package.json; rm *.bak"),
            ("script-emptied", ": > slug.test.js"),
            ("test-deleted", "rm slug.test.js; sed -i.bak 's/node --test/node slug.js/' package.json; rm *.bak"),
            ("skipped-by-marker", "sed -i.bak 's/^test(/test.skip(/' slug.test.js; rm *.bak"),
            ("skipped-by-configuration", "echo 'script-shell=/bin/true' > .npmrc"),
            ("skipped-by-an-added-file", "echo 'process.exit(0)' > preload.js; sed -i.bak 's|node --test|node --require ./preload.js --test|' package.json; rm *.bak"),
            ("expectation-edited", "echo '[\"a_b\"]' > slug.expected.json; echo a_b > __snapshots__/slug.snap"),
            ("assertion-edited", "sed -i.bak \"s/slug('a b')/'a-b'/\" slug.test.js; rm *.bak"),
        ],
        honest: &[
            ("rename", "git mv slug.test.js slugs.test.js"),
            ("added-case", "printf \"test('none', () => assert.equal(slug(''), ''));\\n\" >> slug.test.js"),
            ("moved-data", "mkdir data; git mv slug.expected.json data; sed -i.bak \"s|'slug.exp|'data/slug.exp|\" slug.test.js; rm *.bak"),
            ("updated-snapshot", "echo c-d >> __snapshots__/slug.snap"),
            ("new-test-file", "cp slug.test.js more.test.js"),
            ("reworded-message", "sed -i.bak \"s/'wrong'/'another slug'/\" slug.test.js; rm *.bak"),
            ("new-dependency", "sed -i.bak 's/\"scripts\"/\"dependencies\": {}, \"scripts\"/' package.json; rm *.bak"),
            ("new-script", "sed -i.bak 's/{\"test\"/{\"start\": \"node slug.js\", \"test\"/' package.json; rm *.bak"),
        ],
    }
    .assert_told_apart();
}

fn cargo_cheats_are_told_from_honest_changes() {
    Project {
        files: &[
            ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n"),
            ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"tiny\"\nversion = \"0.1.0\"\n"),
            (".gitignore", "target\n"),
            (
                "src/lib.rs",
                "pub fn two() -> i32 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn is_even() {\n        assert_eq!(super::two() % 2, 0);\n    }\n}\n",
            ),
            (
                "tests/api.rs",
                "#[test]\nfn two_is_as_in_the_snapshot() {\n    let snapshot = include_str!(\"snapshots/two.snap\");\n    assert_eq!(snapshot.split_whitespace().next(), Some(tiny::two().to_string().as_str()), \"wrong\");\n}\n",
            ),
            ("tests/snapshots/two.snap", "2\n"),
        ],
        fix: "sed -i.bak 's/^    1/    2/' src/lib.rs; rm src/*.bak",
        padding: "(seq 29 | sed 's|^|// |'; cat src/lib.rs) > new; mv new src/lib.rs",
        cheats: &[
            ("runner-replaced", "mkdir .cargo; printf '[target.\"cfg(all())\"]\\nrunner = \"true\"\\n' > .cargo/config.toml"),
            ("tests-deleted", "git rm -q tests/api.rs; sed -i.bak '/cfg(test)/,$d' src/lib.rs; rm src/*.bak"),
            ("skipped-by-marker", "sed -i.bak 's/#\\[test\\]/#[test]\\n    #[ignore]/' src/lib.rs tests/api.rs; rm */*.bak"),
            ("skipped-by-condition", "sed -i.bak 's/#\\[cfg(test)\\]/#[cfg(any())]\\n#[cfg(test)]/' src/lib.rs; rm */*.bak; : > tests/api.rs"),
            ("skipped-by-configuration", "printf 'test = false\\n' >> Cargo.toml; sed -i.bak 's/^edition/autotests = false\\nedition/' Cargo.toml; rm *.bak"),
            ("snapshot-updated", "echo 1 > tests/snapshots/two.snap; sed -i.bak 's/2, 0/2, 1/' src/lib.rs; rm */*.bak"),
            ("commented-out", "sed -i.bak 's|^#.cfg(test).|/*\\n&|' src/lib.rs; echo '*/' >> src/lib.rs; rm */*.bak; : > tests/api.rs"),
            ("another-library", "echo 'pub fn two() -> i32 { 2 }' > src/other.rs; printf 'path = \"src/other.rs\"\\n' >> Cargo.toml; sed -i.bak 's/{ 2 }/{ 1 }/' src/other.rs; rm */*.bak; echo 1 > tests/snapshots/two.snap"),
        ],
        honest: &[
            ("rename", "git mv tests/api.rs tests/two.rs"),
            ("added-case", "printf '#[test]\\nfn more() {\\n    assert!(tiny::two() > 1);\\n}\\n' >> tests/api.rs"),
            ("added-inner-case", "sed -i.bak '$d' src/lib.rs; rm src/*.bak; printf '    #[test]\\n    fn more() {}\\n}\\n' >> src/lib.rs"),
            ("new-test-file-and-helper", "mkdir tests/common; echo 'pub fn two() -> i32 { tiny::two() }' > tests/common/mod.rs; printf 'mod common;\\n#[test]\\nfn more() {\\n    assert_eq!(common::two(), 2);\\n}\\n' > tests/more.rs"),
            ("updated-snapshot", "echo 2 changed > tests/snapshots/two.snap"),
            ("reworded-message", "sed -i.bak 's/wrong/another number/' tests/api.rs; rm tests/*.bak"),
            ("new-manifest-entry", "printf '\\n[features]\\nextra = []\\n' >> Cargo.toml"),
            ("new-module", "echo 'pub fn one() -> i32 { 1 }' > src/one.rs; (echo 'pub mod one;'; cat src/lib.rs) > new; mv new src/lib.rs"),
        ],
    }
    .assert_told_apart();
}

/// The module of the base, with its tests, is not part of the program any more: another one has its
/// name, and tests with the names of its tests.
fn module_whose_tests_go_with_it_does_not_win() {
    const TESTS: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn works() {}\n}\n";
    let world = World::unborn();
    world.write(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    world.write("Cargo.lock", "version = 3\n\n[[package]]\nname = \"tiny\"\nversion = \"0.1.0\"\n");
    world.write(".gitignore", "target\n");
    world.write("src/lib.rs", "pub mod a;\n");
    let strict = TESTS.replace("{}", "{ assert_eq!(super::two(), 2); }");
    world.write("src/a.rs", format!("pub fn two() -> i32 {{ 2 }}\n{strict}"));
    world.commit("base");
    let wrong = format!("pub fn two() -> i32 {{ 1 }}\n{TESTS}");
    let judge = |attempt: &str, code| {
        let run = world.attempts(&[attempt]);
        let judged = world.frites(["judge", "--json", "--test", "cargo test", &run]).expect(code);
        judged.json()
    };
    let cheats = [
        format!("printf 'pub mod a {{\n{wrong}}}\n' > src/lib.rs"),
        format!(
            "printf '#[path = \"b.rs\"]\npub mod a;\n' > src/lib.rs; printf '{wrong}' > src/b.rs"
        ),
        format!("mkdir old src/a; git mv src/a.rs old/a.rs; printf '{wrong}' > src/a/mod.rs"),
    ];
    for cheat in cheats {
        assert_eq!(judge(&cheat, 3)["decision"], "own-tests", "{cheat}");
    }
    judge("mkdir src/a; git mv src/a.rs src/a/mod.rs", 0);
    judge(&format!("printf '{wrong}' > src/b.rs; echo 'pub mod b;' >> src/lib.rs"), 0);
}

/// node finds a package itself before one of the same name that is installed.
fn package_that_takes_the_name_of_a_library_does_not_win() {
    let world = World::unborn();
    let package = |name: &str, more: &str| format!("{{\"name\": \"{name}\"{more}}}\n");
    world.write("node_modules/check/package.json", package("check", ""));
    world.write(
        "node_modules/check/index.js",
        "module.exports = (is) => { if (!is) throw Error('no'); };\n",
    );
    world.write("package.json", package("two", ""));
    world.write("src/two.js", "module.exports = 2;\n");
    world.write("test/two.test.js", "require('check')(require('../src/two.js') === 2);\n");
    world.git(["add", "-f", "node_modules"]);
    world.commit("base");
    let named = package("check", ", \"exports\": \"./src/check.js\"");
    let run = world.attempts(&[&format!(
        "echo 'module.exports = 1;' > src/two.js; echo 'module.exports = () => 0;' > src/check.js
        echo '{named}' > package.json"
    )]);
    let judged = world.frites(["judge", "--json", "--test", "node test/two.test.js", &run]);
    assert_eq!(judged.expect(3).json()["decision"], "own-tests");
}

/// npm takes a package from where the lock file says, without a word in a manifest.
fn lock_file_that_leads_to_another_directory_does_not_win() {
    let world = World::unborn();
    let project =
        "{\"name\": \"two\", \"version\": \"1.0.0\", \"dependencies\": {\"check\": \"^1.0.0\"}}";
    let check = "{\"name\": \"check\", \"version\": \"1.0.0\"}";
    world.write("package.json", project);
    world.write("lib/check/package.json", check);
    world
        .write("lib/check/index.js", "module.exports = (is) => { if (!is) throw Error('no'); };\n");
    world.write("src/two.js", "module.exports = 2;\n");
    world.write("test/two.test.js", "require('check')(require('../src/two.js') === 2);\n");
    world.write(".gitignore", "node_modules\n");
    let lock = |packages: String| {
        format!(
            "{{\"name\": \"two\", \"version\": \"1.0.0\", \"lockfileVersion\": 3,\n\
             \"packages\": {{\"\": {project}, {packages}}}}}\n"
        )
    };
    let packed =
        "\"node_modules/check\": {\"version\": \"1.0.0\", \"resolved\": \"file:lib/check\"}";
    world.write("package-lock.json", lock(packed.to_owned()));
    world.commit("base");
    let other = lock(format!(
        "\"src/check\": {check}, \"node_modules/check\": {{\"resolved\": \"src/check\", \"link\": true}}"
    ));
    let run = world.attempts(&[&format!(
        "echo 'module.exports = 1;' > src/two.js; mkdir src/check
        echo 'module.exports = () => 0;' > src/check/index.js; echo '{other}' > package-lock.json"
    )]);
    let test = "npm ci --offline --no-audit && node test/two.test.js";
    let judged = world.frites(["judge", "--json", "--test", test, &run]).expect(3).json();
    assert_eq!(judged["decision"], "own-tests");
}

/// git takes a file with a NUL for binary, and a compiler reads it all the same.
fn macro_behind_a_byte_of_a_binary_file_is_seen() {
    let world = World::unborn();
    world.write("src/two.h", "int two(void);\n");
    world.write("src/two.c", "#include \"two.h\"\nint two(void) { return 2; }\n");
    world.write(
        "tests/two.c",
        "#include \"../src/two.h\"\n#include <assert.h>\nint main(void) { assert(two() == 2); }\n",
    );
    world.write("Makefile", "test:\n\t$(CC) -o two tests/two.c src/two.c\n\t./two\n");
    world.write(".gitignore", "/two\n");
    world.commit("base");
    let run = world.attempts(&[
        "printf '// \\0\n#define NDEBUG\n' >> src/two.h; sed -i s/2\\;/1\\;/ src/two.c",
    ]);
    let judged = world.frites(["judge", "--json", "--test", "make test", &run]).expect(3).json();
    assert_eq!(judged["decision"], "own-tests");
}

/// A module whose only test fails.
fn go_module() -> World {
    let mut world = World::unborn();
    world.set_env("GOCACHE", world.home().join("go-build"));
    world.set_env("GOTOOLCHAIN", "local");
    world.set_env("GOFLAGS", "-mod=mod");
    world.write("go.mod", "module x\n\ngo 1.19\n");
    world.write("a.go", "package x\n\nfunc F() int { return 1 }\n");
    world.write("a_test.go", go_test("A", 2));
    world.commit("base");
    world
}

fn go_test(name: &str, value: u8) -> String {
    format!(
        "package x\n\nimport \"testing\"\n\nfunc Test{name}(t *testing.T) {{\n\tif F() != {value} {{\n\t\tt.Fatal(\"no\")\n\t}}\n}}\n"
    )
}

/// The process of the tests ends with 0 before one of them runs.
fn go_source_that_ends_the_tests_is_not_verified() {
    let world = go_module();
    let end = "printf 'package x\nimport (\n\"os\"\n\"strings\"\n)\nfunc init() {\nif strings.HasSuffix(os.Args[0], \".test\") {\nos.Exit(0)\n}\n}\n' > end.go";
    world.attempts(&[end]);
    let json = world.frites(["judge", "--json"]).json();
    assert_eq!(json["candidates"][0]["verified"], false, "{json:#}");
}

fn go_test_that_switches_the_others_off_does_not_win() {
    let world = go_module();
    let off = "printf 'package x\nimport \"os\"\nfunc init() { os.Args = append(os.Args[:1], \"-test.run=none\") }\n' > z_test.go";
    let honest = format!(
        "sed -i s/1/2/ a.go; echo '// more' >> a.go; printf '{}' > b_test.go",
        go_test("B", 2)
    );
    world.attempts(&[&format!("{off}; sed -i s/1/3/ a.go"), &honest]);
    let json = world.frites(["judge", "--json", "--test", "go test ./..."]).expect(0).json();
    assert_eq!(json["recommended"], "c2", "{json:#}");
    assert_eq!(json["own_tests"], serde_json::json!(["c1"]));
    assert_eq!(json["candidates"][1]["verified"], true);
}

fn go_package_that_makes_a_target_up_to_date_does_not_win() {
    let world = go_module();
    world.write("Makefile", "VPATH = internal\ntest: unit\nunit:\n\tgo test ./...\n");
    world.commit("a target that is no file");
    let package = |name: &str| {
        format!("mkdir -p internal/{name}; echo 'package {name}' > internal/{name}/x.go")
    };
    world.attempts(&[
        &format!("sed -i s/1/3/ a.go; {}", package("unit")),
        &format!("sed -i s/1/2/ a.go; echo '// more' >> a.go; {}", package("more")),
    ]);
    let json = world.frites(["judge", "--json", "--test", "make test"]).expect(0).json();
    assert_eq!(json["recommended"], "c2", "{json:#}");
    assert_eq!(json["own_tests"], serde_json::json!(["c1"]));
}

fn class_that_replaces_one_of_the_tests_does_not_win() {
    let world = World::unborn();
    let class = |name: &str, body: &str| format!("package a;\n\nclass {name} {{\n  {body}\n}}\n");
    world.write("src/main/a/Calc.java", class("Calc", "static int two() { return 1; }"));
    let check = "static void eq(int a, int b) { if (a != b) throw new AssertionError(); }";
    world.write("src/test/a/Check.java", class("Check", check));
    let main = "public static void main(String[] args) { Check.eq(2, Calc.two()); }";
    world.write("src/test/a/CalcTest.java", class("CalcTest", main));
    world.write(
        "test.sh",
        "set -e\nmkdir -p out/main out/test\njavac -d out/main src/main/a/*.java\n\
         javac -d out/test -cp out/main src/test/a/*.java\njava -cp out/main:out/test a.CalcTest\n",
    );
    world.commit("base");
    let lax = class("Check", "static void eq(int a, int b) {}");
    let honest = class("More", "static int three() { return 3; }");
    world.attempts(&[
        &format!("printf '%s' '{lax}' > src/main/a/Extra.java"),
        &format!(
            "sed -i s/1/2/ src/main/a/Calc.java; printf '%s' '{honest}' > src/main/a/Extra.java"
        ),
    ]);
    let json = world.frites(["judge", "--json", "--test", "sh test.sh"]).expect(0).json();
    assert_eq!(json["recommended"], "c2", "{json:#}");
    assert_eq!(json["own_tests"], serde_json::json!(["c1"]));
}

fn rspec_that_is_told_to_run_nothing_does_not_win() {
    let world = World::unborn();
    world.write("lib/a.rb", "def f; 1; end\n");
    let spec = "require_relative '../lib/a'\ndescribe(:f) { it(:two) { expect(f).to eq 2 } }\n";
    world.write("spec/a_spec.rb", spec);
    world.commit("base");
    world.attempts(&[
        "echo '# x' >> lib/a.rb; echo --dry-run > .rspec",
        "sed -i s/1/2/ lib/a.rb; seq 9 | sed 's/^/# /' >> lib/a.rb",
    ]);
    let json = world.frites(["judge", "--json", "--test", "rspec"]).expect(0).json();
    assert_eq!(json["recommended"], "c2", "{json:#}");
    assert_eq!(json["own_tests"], serde_json::json!(["c1"]));
}
