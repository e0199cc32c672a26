//! What the test runners of other languages tell, each in a project with the same three tests.
use std::fs;

use serde_json::json;

use crate::common::World;
use crate::test_reports::{below_row, project, tests_of};
use crate::tool::{
    EXUNIT, GO, GOTESTSUM, GRADLE, JEST, MAVEN, MOCHA, PHPUNIT, RSPEC, RUNNERS, VITEST, trials,
};

trials! {
    jest_tells_which_tests_fail: [JEST];
    vitest_tells_which_tests_fail: [VITEST];
    mocha_tells_which_tests_fail: [MOCHA];
    rspec_tells_which_tests_fail: [RSPEC];
    phpunit_tells_which_tests_fail: [PHPUNIT];
    exunit_tells_which_tests_fail: [EXUNIT];
    go_test_names_the_failing_tests_and_counts_only_if_it_says_more: [GO];
    gotestsum_is_asked_and_says_nothing_of_it: [GOTESTSUM];
    maven_tells_which_tests_fail: [MAVEN];
    gradle_tells_which_tests_fail: [GRADLE];
}

/// What a runner tells of a project whose value is 1, in which one test wants 2, one wants more
/// than 0, and one is skipped where the value is 7.
struct Told<'a> {
    /// The name of the test that wants 2.
    two: &'a str,
    /// The name of the test that wants more than 0.
    positive: &'a str,
    /// Who printed it; none of a JUnit file.
    printed_by: Option<&'a str>,
    /// True if the tests that pass are named, too.
    names_passing: bool,
}

/// Judges attempts that make the value -1 and 7, by the project's own commands or by this one for
/// the tests.
#[track_caller]
fn assert_told(world: &World, test: Option<&str>, attempts: [&str; 2], told: &Told<'_>) {
    let run = world.attempts(&attempts);
    let options = test.iter().flat_map(|test| ["--test", test]);
    let answer = world.frites(["judge", "--json", &run].into_iter().chain(options)).expect(1);
    let verdict = answer.json();
    let failing = &verdict["candidates"][0]["failing_tests"];
    let broken = if told.names_passing { "broken" } else { "only_here" };
    assert_eq!(failing["before"], json!([told.two]), "{failing} {}", answer.stderr);
    assert_eq!(failing[broken], json!([told.positive]), "{failing} {}", answer.stderr);
    for (candidate, failing) in [(None, 1), (Some(0), 2), (Some(1), 1)] {
        let report = tests_of(&verdict, candidate);
        let names = report["failing"].as_array().unwrap();
        assert_eq!((&report["total"], names.len()), (&json!(3), failing), "{report}");
        assert_eq!(report["printed_by"].as_str(), told.printed_by, "{report}");
    }
    let more = &verdict["candidates"][1]["more_skipped"];
    assert_eq!((&more["base"], &more["candidate"]), (&json!(0), &json!(1)), "{}", answer.stderr);
    let table = world.frites(["judge", "--replay", &run]).expect(1).out();
    let (broke, kept) = (told.positive, told.two);
    let how = if told.names_passing { "passes" } else { "does not fail" };
    let row = below_row(&table, &format!("{run}/c1"));
    let words =
        format!("2 of 3 tests fail: {broke} ({how} on the base), {kept} (fails on the base, too)");
    assert!(row.ends_with(&words), "{table}");
    let row = below_row(&table, &format!("{run}/c2"));
    let named = more["tests"].as_array().map(|names| names[0].as_str().unwrap());
    let skips = match named {
        Some(name) => format!("skips 1 test that the base runs: {name}, 1 of 3 tests fails: "),
        None => "skips 1 test, where the base skips 0, 1 of 3 tests fails: ".to_owned(),
    };
    assert!(row.contains(&skips), "{table}");
    world.assert_clean();
}

/// A project for node, whose tests are run by `npm run test`. The test runners are on PATH.
fn node_project(runner: &str, files: &[(&str, &str)]) -> World {
    let package =
        format!(r#"{{"name": "tiny", "version": "1.0.0", "scripts": {{"test": "{runner}"}}}}"#);
    let value = ("value.js", "module.exports = 1;\n");
    let mut world = project(&[&[("package.json", &package[..]), value], files].concat(), "off");
    let path = format!("{RUNNERS}/.bin:{}", world.env("PATH").display());
    world.set_env("PATH", path);
    world
}

const NODE_ATTEMPTS: [&str; 2] =
    ["echo 'module.exports = -1;' >value.js", "echo 'module.exports = 7;' >value.js"];

fn jest_tells_which_tests_fail() {
    let tests = "const value = require('./value');
describe('the value', () => {
  test('is two', () => { expect(value).toBe(2); });
  test('is positive', () => { expect(value).toBeGreaterThan(0); });
});
(value === 7 ? test.skip : test)('is small', () => {});
";
    let told = Told {
        two: "the value › is two",
        positive: "the value › is positive",
        printed_by: Some("jest"),
        names_passing: false,
    };
    assert_told(&node_project("jest", &[("value.test.js", tests)]), None, NODE_ATTEMPTS, &told);
}

fn vitest_tells_which_tests_fail() {
    let tests = "import value from './value.js';
describe('the value', () => {
  test('is two', () => { expect(value).toBe(2); });
  test('is positive', () => { expect(value).toBeGreaterThan(0); });
});
test.skipIf(value === 7)('is small', () => {});
";
    // Without a `node_modules`, no file of the project can import vitest.
    let settings = "export default { test: { globals: true } };\n";
    let files = [("value.test.js", tests), ("vitest.config.mjs", settings)];
    let told = Told {
        two: "value.test.js > the value > is two",
        positive: "value.test.js > the value > is positive",
        printed_by: Some("vitest"),
        names_passing: false,
    };
    assert_told(&node_project("vitest run", &files), None, NODE_ATTEMPTS, &told);
}

fn mocha_tells_which_tests_fail() {
    let tests = "const assert = require('assert'), value = require('../value');
describe('the value', () => {
  it('is two', () => assert.equal(value, 2));
  it('is positive', () => assert(value > 0));
  it('is small', function () { if (value === 7) this.skip(); });
});
";
    let told = Told {
        two: "the value > is two",
        positive: "the value > is positive",
        printed_by: Some("mocha"),
        names_passing: false,
    };
    assert_told(&node_project("mocha", &[("test/value.js", tests)]), None, NODE_ATTEMPTS, &told);
}

fn rspec_tells_which_tests_fail() {
    let tests = "require_relative '../value'
RSpec.describe 'the value' do
  it('is two') { expect(VALUE).to eq 2 }
  it('is positive') { expect(VALUE).to be > 0 }
  it('is small') { skip 'seven' if VALUE == 7 }
end
";
    let files =
        [(".rspec", "--color\n"), ("value.rb", "VALUE = 1\n"), ("spec/value_spec.rb", tests)];
    let told = Told {
        two: "the value is two",
        positive: "the value is positive",
        printed_by: Some("rspec"),
        names_passing: false,
    };
    let attempts = ["echo 'VALUE = -1' >value.rb", "echo 'VALUE = 7' >value.rb"];
    assert_told(&project(&files, "off"), None, attempts, &told);
}

fn phpunit_tells_which_tests_fail() {
    let tests = "<?php
require_once __DIR__ . '/../src/value.php';
final class ValueTest extends PHPUnit\\Framework\\TestCase {
    public function testIsTwo(): void { $this->assertSame(2, VALUE); }
    public function testIsPositive(): void { $this->assertGreaterThan(0, VALUE); }
    public function testIsSmall(): void {
        if (VALUE == 7) $this->markTestSkipped('seven');
        $this->assertLessThan(100, VALUE);
    }
}
";
    let source = ("src/value.php", "<?php const VALUE = 1;\n");
    let told = Told {
        two: "ValueTest::testIsTwo",
        positive: "ValueTest::testIsPositive",
        printed_by: Some("PHPUnit"),
        names_passing: false,
    };
    let attempts = [
        "echo '<?php const VALUE = -1;' >src/value.php",
        "echo '<?php const VALUE = 7;' >src/value.php",
    ];
    let world = project(&[source, ("tests/ValueTest.php", tests)], "off");
    assert_told(&world, Some("phpunit tests"), attempts, &told);
}

fn exunit_tells_which_tests_fail() {
    let mix = "defmodule Tiny.MixProject do
  use Mix.Project
  def project, do: [app: :tiny, version: \"0.1.0\"]
end
";
    let tests = "defmodule ValueTest do
  use ExUnit.Case
  test \"is two\", do: assert Value.value() == 2
  test \"is positive\", do: assert Value.value() > 0
  if Value.value() == 7 do
    @tag :skip
  end
  test \"is small\", do: assert Value.value() < 100
end
";
    let source = |value: i32| {
        format!("defmodule Value do\n  def value, do: Process.get(:value, {value})\nend\n")
    };
    let files = [
        ("mix.exs", mix),
        ("lib/value.ex", &source(1)),
        ("test/test_helper.exs", "ExUnit.start()\n"),
        ("test/value_test.exs", tests),
        (".gitignore", "_build\n"),
    ];
    let told = Told {
        two: "test is two (ValueTest)",
        positive: "test is positive (ValueTest)",
        printed_by: Some("ExUnit"),
        names_passing: false,
    };
    let [less, seven] = [-1, 7].map(|value| format!("echo '{}' >lib/value.ex", source(value)));
    assert_told(&project(&files, "off"), None, [&less, &seven], &told);
}

const GO_FILES: [(&str, &str); 3] = [
    ("go.mod", "module example.com/tiny\n\ngo 1.19\n"),
    ("value.go", "package tiny\n\nconst Value = 1\n"),
    (
        "value_test.go",
        "package tiny

import \"testing\"

func TestTwo(t *testing.T) {
	if Value != 2 {
		t.Fatal(\"not two\")
	}
}

func TestPositive(t *testing.T) {
	if Value <= 0 {
		t.Fatal(\"not positive\")
	}
}

func TestSmall(t *testing.T) {
	if Value == 7 {
		t.Skip(\"seven\")
	}
}
",
    ),
];

const GO_ATTEMPTS: [&str; 2] = [
    "printf 'package tiny\n\nconst Value = -1\n' >value.go",
    "printf 'package tiny\n\nconst Value = 7\n' >value.go",
];

/// A module with tests. The cache directory of the test's home is for git-frites alone.
fn go_project() -> World {
    let mut world = project(&GO_FILES, "off");
    world.set_env("GOCACHE", world.home().join("go-build"));
    world
}

fn go_test_names_the_failing_tests_and_counts_only_if_it_says_more() {
    let world = go_project();
    world.attempts(&GO_ATTEMPTS);
    let answer = world.frites(["judge", "--test", "go test ./..."]).expect(1);
    let words = "2 tests fail: example.com/tiny.TestPositive (does not fail on the base), \
                 example.com/tiny.TestTwo (fails on the base, too)";
    assert!(below_row(&answer.out(), "1/c1").ends_with(words), "{}", answer.out());
    let told = Told {
        two: "example.com/tiny.TestTwo",
        positive: "example.com/tiny.TestPositive",
        printed_by: Some("go test"),
        names_passing: true,
    };
    for test in [None, Some("go test -json ./..."), Some("go test -v ./...")] {
        assert_told(&world, test, GO_ATTEMPTS, &told);
    }
}

fn gotestsum_is_asked_and_says_nothing_of_it() {
    let told = |printed| Told {
        two: if printed { "TestTwo" } else { "example.com/tiny::TestTwo" },
        positive: if printed { "TestPositive" } else { "example.com/tiny::TestPositive" },
        printed_by: printed.then_some("go test"),
        names_passing: !printed,
    };
    let mut world = go_project();
    assert_told(&world, Some("gotestsum"), GO_ATTEMPTS, &told(false));
    let log = fs::read_to_string(world.repo.join(".frites/runs/1/c1/test.log")).unwrap();
    assert!(log.contains("DONE 3 tests, 2 failures") && !log.contains("xml"), "{log}");
    // Who wants a file already gets that one, and no other.
    let own = world.home().join("own.xml");
    world.set_env("GOTESTSUM_JUNITFILE", &own);
    assert_told(&world, Some("gotestsum"), GO_ATTEMPTS, &told(true));
    assert!(own.exists());
}

/// A test for JUnit 4 in a project of Maven or Gradle.
const JUNIT_TEST: &str = "package tiny;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.Assume;
import org.junit.Test;

public class ValueTest {
    @Test public void two() { assertEquals(2, Value.get()); }
    @Test public void positive() { assertTrue(Value.get() > 0); }
    @Test public void small() { Assume.assumeTrue(Value.get() != 7); }
}
";

pub const JAVA: [(&str, &str); 2] = [
    (
        "src/main/java/tiny/Value.java",
        "package tiny;\n\npublic class Value {\n    public static int get() {\n        return 1;\n    }\n}\n",
    ),
    ("src/test/java/tiny/ValueTest.java", JUNIT_TEST),
];

pub const JAVA_ATTEMPTS: [&str; 2] = [
    "sed -i.bak 's/return 1/return -1/' src/main/java/tiny/Value.java; rm src/main/java/tiny/*.bak",
    "sed -i.bak 's/return 1/return 7/' src/main/java/tiny/Value.java; rm src/main/java/tiny/*.bak",
];

const JAVA_TOLD: Told<'static> = Told {
    two: "tiny.ValueTest::two",
    positive: "tiny.ValueTest::positive",
    printed_by: None,
    names_passing: true,
};

/// The versions are those of Debian's packages.
pub const POM: &str = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">
<modelVersion>4.0.0</modelVersion> <groupId>example</groupId> <artifactId>tiny</artifactId> <version>1</version>
<properties>
  <maven.compiler.source>8</maven.compiler.source> <maven.compiler.target>8</maven.compiler.target>
  <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
</properties>
<dependencies><dependency>
  <groupId>junit</groupId> <artifactId>junit</artifactId> <version>4.x</version> <scope>test</scope>
</dependency></dependencies>
<build><plugins>
  <plugin><artifactId>maven-resources-plugin</artifactId> <version>3.3.0</version></plugin>
  <plugin><artifactId>maven-compiler-plugin</artifactId> <version>3.10.1</version></plugin>
  <plugin><artifactId>maven-surefire-plugin</artifactId> <version>2.22.3</version></plugin>
</plugins></build>
</project>
";

fn maven_tells_which_tests_fail() {
    let files = [&JAVA[..], &[("pom.xml", POM), (".gitignore", "target/\n")]].concat();
    let mut world = project(&files, "off");
    // Maven writes to its repository, also offline, and takes the user's home from the system.
    let home = world.home();
    world.sh(&home, "cp -rs /usr/share/maven-repo repository").expect(0);
    let settings = "<settings><offline>true</offline></settings>";
    fs::create_dir(home.join(".m2")).unwrap();
    fs::write(home.join(".m2/settings.xml"), settings).unwrap();
    let home = home.display();
    world.set_env("MAVEN_OPTS", format!("-Duser.home={home} -Dmaven.repo.local={home}/repository"));
    assert_told(&world, None, JAVA_ATTEMPTS, &JAVA_TOLD);
}

fn gradle_tells_which_tests_fail() {
    let build = "apply plugin: 'java'
sourceCompatibility = 8
dependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }
";
    let files =
        [&JAVA[..], &[("build.gradle", build), (".gitignore", "build/\n.gradle/\n")]].concat();
    let mut world = project(&files, "off");
    world.set_env("GRADLE_USER_HOME", world.home().join("gradle"));
    assert_told(&world, None, JAVA_ATTEMPTS, &JAVA_TOLD);
}
