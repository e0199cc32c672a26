//! The ways in which a tree gets the base's layers, and the tools that stumble over one of them.
use serde_json::Value;

use crate::common::World;
use crate::common::sealed::{sealed, stale_project};
use crate::tool::{MAKE, NAMESPACES, NO_REFLINKS, PYTHON, trials};

trials! {
    a_tool_that_stumbles_over_the_overlay_gives_the_verdict_of_an_open_world: [NAMESPACES, PYTHON];
    a_silent_stumble_over_outputs_does_not_change_the_recommendation: [NAMESPACES, PYTHON];
    the_bases_files_are_older_than_all_that_is_written_later: [NAMESPACES];
    with_copied_layers_no_tool_stumbles: [NAMESPACES, PYTHON];
    copies_are_judged_over_the_bases_outputs_and_keep_nothing_that_a_tree_deletes: [NAMESPACES, MAKE];
    layers_that_cannot_share_blocks_are_refused: [NAMESPACES, NO_REFLINKS];
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
        (silent, "", "failed over the overlay: over the base's layer it ended at test: exit 3"),
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

fn with_copied_layers_no_tool_stumbles() {
    let mut world = renaming_project();
    world.set_env("FRITES_WORLD_LAYER", "copy");
    for rename in RENAMES {
        let test = format!("echo built > out; {rename} && grep -q right lib/lib.txt");
        let verdict = judged_with(&world, &test);
        assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
        assert_eq!(verdict["candidates"][0]["stale"], Value::Null);
    }
    world.assert_clean();
}

fn copies_are_judged_over_the_bases_outputs_and_keep_nothing_that_a_tree_deletes() {
    let mut world = stale_project();
    world.set_env("FRITES_WORLD_LAYER", "copy");
    let change =
        "case $FRITES_CANDIDATE in x) echo more >> a.src;; y) rm a.src b.src; seq 9 > c.src;; esac";
    world.frites(["spawn", "-c", "x", "-c", "y", "--", "sh", "-c", change]).expect(0);
    let test = "test -e a.src || ! test -e b.src || exit 7; make -s test";
    let verdict = judged_with(&world, test);
    assert_eq!(verdict["recommended"], "x", "{verdict:#}");
    let compiled = std::fs::read_to_string(world.home().join("shared/compiled")).unwrap();
    let count = |name: &str| compiled.lines().filter(|line| *line == name).count();
    // The base, the first candidate, and its confirmation; the other source is not compiled by the
    // first candidate.
    assert_eq!([count("a.obj"), count("b.obj"), count("c.obj")], [3, 2, 1], "{compiled}");
    world.assert_clean();
}

fn layers_that_cannot_share_blocks_are_refused() {
    let mut world = sealed();
    world.attempts(&["echo changed > README"]);
    world.set_env("FRITES_WORLD_LAYER", "reflink");
    let answer = world.frites(["judge", "--test", "true"]);
    answer.refuses(128, "`world.layer` is reflink, and files in '");
}
