//! The tests of candidates on each other, by real test runners.
use serde_json::{Value, json};

use crate::common::World;
use crate::common::sealed::sealed;
use crate::test_reports::project;
use crate::tool::{CARGO, GO, NAMESPACES, NODE, PYTEST, trials};

trials! {
    pytest_judges_five_authors_by_each_others_tests: [PYTEST];
    cargo_judges_candidates_by_each_others_tests: [CARGO];
    node_judges_candidates_by_each_others_tests: [NODE];
    go_judges_candidates_by_each_others_tests_without_their_names: [GO];
    cross_judging_over_outputs_takes_one_more_run_for_each_tree: [NAMESPACES];
}

/// The tests of a candidate, each with its end on the base and with those that pass and fail it.
fn tests_of(verdict: &Value, at: usize) -> Vec<String> {
    let tests = verdict["candidates"][at]["cross"]["tests"].as_array();
    let names = |names: &Value| -> String {
        names.as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    };
    let line = |test: &Value| {
        let (name, base) = (test["name"].as_str().unwrap(), test["base"].as_str().unwrap());
        format!(
            "{name}: base {base}; pass {}; fail {}",
            names(&test["passes"]),
            names(&test["fails"])
        )
    };
    tests.into_iter().flatten().map(line).collect()
}

fn scores(verdict: &Value) -> Vec<Value> {
    let all = verdict["candidates"].as_array().unwrap();
    all.iter().map(|entry| entry["cross"]["score"].clone()).collect()
}

#[track_caller]
fn judged_across(world: &World, test: &str, scripts: &[&str]) -> Value {
    world.attempts(scripts);
    let words = ["judge", "--json", "--rank", "cross", "--test", test];
    let verdict = world.frites(words).expect(0).json();
    let by_size = world.frites(["judge", "--replay", "--rank", "blast-radius", "--json"]).json();
    assert_eq!(by_size["recommended"], "c1", "the wrong one is the smallest: {by_size:#}");
    verdict
}

/// One writes a toxic test, one a trivial one, one none, one that does not build elsewhere, and one
/// changes a test of the base. The first is wrong, as its test is.
fn pytest_judges_five_authors_by_each_others_tests() {
    let files = [
        ("calc.py", "def clamp(x, low, high):\n    return x\n"),
        (
            "tests/test_calc.py",
            "from calc import clamp\n\n\ndef test_inside():\n    assert clamp(5, 0, 10) == 5\n",
        ),
        ("conftest.py", ""),
    ];
    let world = project(&files, "off");
    let right = "printf 'def clamp(x, low, high):\\n    # Below,\\n    # above,\\n    # or inside.\\n    if x < low:\\n        return low\\n    if x > high:\\n        return high\\n    return x\\n' > calc.py";
    let with = |more: &str| format!("{right}; {more}");
    let test = |file: &str, names: &str, line: &str| {
        format!("printf 'from calc import {names}\\n\\n\\n{line}\\n' > tests/test_{file}.py")
    };
    let toxic = test("one", "clamp", "def test_toxic(): assert clamp(-1, 0, 10) == -1");
    let trivial = test("two", "clamp", "def test_trivial(): assert clamp");
    let limit = test("four", "limit", "def test_limit(): assert limit(-1) == 0");
    let edit = "printf '    assert clamp(-1, 0, 10) == 0\\n' >> tests/test_calc.py";
    let verdict = judged_across(
        &world,
        "pytest",
        &[
            &format!("sed -i 's/return x/return min(x, high)/' calc.py; {toxic}"),
            &with(&trivial),
            right,
            &with(&format!(
                "printf '\\ndef limit(x): return clamp(x, 0, 1)\\n' >> calc.py; {limit}"
            )),
            &with(edit),
        ],
    );
    assert_eq!(
        tests_of(&verdict, 0),
        ["tests.test_one::test_toxic: base pass; pass c1; fail c2 c3 c4 c5"]
    );
    assert_eq!(
        tests_of(&verdict, 1),
        ["tests.test_two::test_trivial: base pass; pass c1 c2 c3 c4 c5; fail "]
    );
    assert_eq!(tests_of(&verdict, 2), [""; 0]);
    assert_eq!(
        tests_of(&verdict, 3),
        ["tests.test_four::test_limit: base unknown; pass c4; fail "]
    );
    assert_eq!(
        tests_of(&verdict, 4),
        ["tests.test_calc::test_inside: base fail; pass c2 c3 c4 c5; fail c1"]
    );
    // c1: the trivial one, and not the changed one. The toxic one counts for nobody, and that of c4
    // was run nowhere else. c5 has only the trivial one of another.
    assert_eq!(scores(&verdict), [json!(0.5), json!(1.0), json!(1.0), json!(1.0), json!(1.0)]);
    assert_eq!(verdict["recommended"], "c3");
    let shows = |at: usize| verdict["candidates"][at]["proof"]["shows"].clone();
    assert_eq!(
        [0, 1, 3, 4].map(shows),
        [json!("nothing"), json!("nothing"), json!("weak"), json!("change")]
    );
    let table = world.frites(["judge", "--replay"]).out();
    for words in [
        "only its author passes tests.test_one::test_toxic",
        "fails c5's test tests.test_calc::test_inside",
        "its tests pass on the base",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    world.assert_clean();
}

fn cargo_judges_candidates_by_each_others_tests() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/lib.rs", "pub fn double(x: i32) -> i32 { x }\n"),
        ("tests/old.rs", "#[test] fn zero() { assert_eq!(tiny::double(0), 0); }\n"),
        (".gitignore", "target\nCargo.lock\n"),
    ];
    let world = project(&files, "off");
    let right = |more: &str| {
        format!("printf 'pub fn double(x: i32) -> i32 {{\\n    x + x\\n}}\\n{more}' > src/lib.rs")
    };
    let test = |name: &str, x: i32| {
        format!(
            "echo '#[test] fn {name}() {{ assert_eq!(tiny::double({x}), {x} * 2); }}' > tests/{name}.rs"
        )
    };
    let verdict = judged_across(
        &world,
        "cargo test",
        &[
            "echo 'pub fn double(x: i32) -> i32 { x * x }' > src/lib.rs",
            &format!("{}; {}", right("// two\\n"), test("three", 3)),
            &format!(
                "{}; {}",
                right("#[cfg(test)]\\nmod t {\\n    #[test]\\n    fn t() {}\\n}\\n"),
                test("four", 4)
            ),
        ],
    );
    assert_eq!(tests_of(&verdict, 1), ["three::three: base fail; pass c2 c3; fail c1"]);
    let own = tests_of(&verdict, 2);
    assert!(own.contains(&"four::four: base fail; pass c2 c3; fail c1".to_owned()), "{own:?}");
    assert_eq!(verdict["candidates"][2]["cross"]["inseparable"], json!(["src/lib.rs"]));
    assert_eq!((&scores(&verdict)[0], &verdict["recommended"]), (&json!(0.0), &json!("c2")));
    world.assert_clean();
}

fn node_judges_candidates_by_each_others_tests() {
    let head = "const test = require('node:test'), assert = require('node:assert'), m = require('./src/m.js');";
    let files = [
        ("package.json", "{}\n"),
        ("src/m.js", "exports.double = x => x;\n"),
        ("a.test.js", &format!("{head}\ntest('zero', () => assert.equal(m.double(0), 0));\n")),
    ];
    let world = project(&files, "off");
    let right =
        |more: &str| format!("printf 'exports.double = x =>\\n  x + x;\\n// {more}\\n' > src/m.js");
    let verdict = judged_across(
        &world,
        "node --test",
        &[
            "echo 'exports.double = x => x * x;' > src/m.js",
            &format!("{}; sed -i 's/m.double(0), 0/m.double(3), 6/' a.test.js", right("a")),
            &format!(
                "{}; echo \"{head}\" > b.test.js; echo \"test('four', () => assert.equal(m.double(4), 8));\" >> b.test.js",
                right("b")
            ),
        ],
    );
    assert_eq!(tests_of(&verdict, 1), ["zero: base fail; pass c2 c3; fail c1"]);
    assert_eq!(tests_of(&verdict, 2), ["four: base fail; pass c2 c3; fail c1"]);
    assert_eq!(scores(&verdict), [json!(0.0), json!(1.0), json!(1.0)]);
    assert_eq!(verdict["recommended"], "c2");
    world.assert_clean();
}

/// Plain `go test` names only what fails, so all tests of an author are one.
fn go_judges_candidates_by_each_others_tests_without_their_names() {
    let test = |name: &str, x: i32| {
        format!(
            "package tiny\nimport \"testing\"\nfunc Test{name}(t *testing.T) {{ if Double({x}) != {x} + {x} {{ t.Fail() }} }}\n"
        )
    };
    let files = [
        ("go.mod", "module tiny\n\ngo 1.18\n"),
        ("m.go", "package tiny\nfunc Double(x int) int { return x }\n"),
        ("m_test.go", &test("Zero", 0)),
    ];
    let world = project(&files, "off");
    let right = |more: &str| {
        format!(
            "printf 'package tiny\\nfunc Double(x int) int {{\\n\\treturn x + x\\n}}\\n// {more}\\n' > m.go"
        )
    };
    let with_test = |more: &str, name: &str, x: i32| {
        format!("{}; printf '%s' '{}' > {more}_test.go", right(more), test(name, x))
    };
    let verdict = judged_across(
        &world,
        "go test ./...",
        &[
            "sed -i 's/return x/return x * x/' m.go",
            &with_test("three", "Three", 3),
            &with_test("four", "Four", 4),
            &format!(
                "{}; printf 'package tiny\\nimport \"testing\"\\nfunc TestMore(t *testing.T) {{ More() }}\\n' > more_test.go; printf '\\nfunc More() {{}}\\n' >> m.go",
                right("more")
            ),
        ],
    );
    assert_eq!(tests_of(&verdict, 1), ["three_test.go: base fail; pass c2 c3 c4; fail c1"]);
    assert_eq!(tests_of(&verdict, 2), ["four_test.go: base fail; pass c2 c3 c4; fail c1"]);
    assert_eq!(tests_of(&verdict, 3), ["more_test.go: base unknown; pass c4; fail "]);
    assert_eq!(scores(&verdict), [json!(0.0), json!(1.0), json!(1.0), json!(1.0)]);
    assert_eq!(verdict["recommended"], "c2");
}

/// Eight candidates, of which four have a test. A pass with outputs of the base is a claim.
fn cross_judging_over_outputs_takes_one_more_run_for_each_tree() {
    let world = sealed();
    let check = "echo >> ~/shared/runs; cat value.rs > built\n{ echo '<testsuite>'\nfor t in tests/*.t; do\n  \
        echo \"<testcase name='$t'>\"; sh $t || echo '<failure/>'; echo '</testcase>'\ndone\n\
        echo '</testsuite>'; } > report.xml\n! grep -q failure report.xml\n";
    world.write("check.sh", check);
    world.write("tests/old.t", "test -e value.rs\n");
    world.write("value.rs", "2\n");
    world.write(".gitignore", "report.xml\nbuilt\n");
    world.write(
        ".frites.toml",
        "[oracle]\njunit = 'report.xml'\ntest = 'sh check.sh'\nproof = 'never'\n",
    );
    world.commit("a project");
    let with_test =
        |n: usize| format!("echo 1{n} > value.rs; echo 'grep -q 1 value.rs' > tests/{n}.t");
    let without = |n: usize| format!("printf '1{n}\\nx\\n\\n' > value.rs");
    let scripts: Vec<String> = (1..=4).map(with_test).chain((5..=8).map(without)).collect();
    world.attempts(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    let runs = world.home().join("shared/runs");
    let judged = |more: &[&str]| {
        std::fs::write(&runs, "").unwrap();
        let words = ["judge", "--json", "--no-cache"];
        let verdict = world.frites(words.iter().chain(more)).expect(0).json();
        (verdict, std::fs::read_to_string(&runs).unwrap().lines().count())
    };
    let (verdict, alone) = judged(&[]);
    assert_eq!(verdict["terms"]["world"], "sealed");
    let results = verdict["candidates"].as_array().unwrap().iter().map(|c| &c["results"][0]);
    assert!(results.filter(|result| result["warm"] == true).count() >= 4, "{verdict:#}");
    let (verdict, across) = judged(&["--cross"]);
    assert_eq!(
        tests_of(&verdict, 3),
        ["tests/4.t: base fail; pass c1 c2 c3 c4 c5 c6 c7 c8; fail "]
    );
    // The base is confirmed, too, because candidates have more tests.
    assert!(across <= alone + 10, "{across} runs, {alone} without --cross");
    world.assert_clean();
}
