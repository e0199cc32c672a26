//! The published schema: every command's JSON is what it says, nothing more, and all of it is seen.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::sealed::{sealed, stale_project};
use crate::common::{Answer, World, make_executable, poll, source, write};

fn schema() -> Value {
    let file = source().join("schema/git-frites.schema.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Makes what may grow for others strict for us: a field that nobody described is a mistake.
fn seal(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.insert("additionalProperties".into(), json!(false));
            }
            fields.values_mut().for_each(seal);
        }
        Value::Array(items) => items.iter_mut().for_each(seal),
        _ => {}
    }
}

struct Checker {
    sealed: Value,
    /// One for each definition, made when it is first asked.
    validators: BTreeMap<String, jsonschema::Validator>,
    seen: BTreeSet<String>,
}

impl Checker {
    fn new() -> Checker {
        let mut sealed = schema();
        seal(&mut sealed);
        Checker { sealed, validators: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// One document against its definition.
    #[track_caller]
    fn check(&mut self, definition: &str, document: &Value) {
        let sealed = &self.sealed;
        let validator = self.validators.entry(definition.to_owned()).or_insert_with(|| {
            let mut root = sealed.clone();
            root["$ref"] = json!(format!("#/$defs/{definition}"));
            jsonschema::options().should_validate_formats(true).build(&root).unwrap()
        });
        let errors: Vec<String> = validator
            .iter_errors(document)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(
            errors.is_empty(),
            "{definition} is not what schema/git-frites.schema.json says; a new field is described there, then `make \
             man`:\n{}\n{document:#}",
            errors.join("\n")
        );
        let root = self.sealed["$defs"][definition].clone();
        self.visit(&format!("#/$defs/{definition}"), &root, document);
    }

    /// A command's answer with this exit code.
    #[track_caller]
    fn answer(&mut self, definition: &str, code: i32, answer: Answer) -> Value {
        let document = answer.expect(code).json();
        self.check(definition, &document);
        document
    }

    /// Notes which described fields there are.
    fn visit(&mut self, at: &str, schema: &Value, instance: &Value) {
        if let Some(target) = schema["$ref"].as_str() {
            let referred = self.sealed.pointer(target.trim_start_matches('#')).unwrap().clone();
            self.visit(target, &referred, instance);
        }
        for key in ["anyOf", "oneOf"] {
            for (n, one) in schema[key].as_array().into_iter().flatten().enumerate() {
                let event = &one["properties"]["event"]["const"];
                if event.is_null() || *event == instance["event"] {
                    self.visit(&format!("{at}/{key}/{n}"), one, instance);
                }
            }
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = instance.get(name) {
                let place = format!("{at}/properties/{name}");
                self.visit(&place, field, value);
                self.seen.insert(place);
            }
        }
        for item in instance.as_array().into_iter().flatten() {
            self.visit(&format!("{at}/items"), &schema["items"], item);
        }
    }
}

/// Every field that the schema describes.
fn described(at: &str, schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                let place = format!("{at}/{name}");
                if at.ends_with("/properties") {
                    found.insert(place.clone());
                }
                described(&place, value, found);
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, item)| described(&format!("{at}/{n}"), item, found));
        }
        _ => {}
    }
}

#[test]
fn every_json_document_matches_the_schema_and_covers_it() {
    crate::common::in_the_open_world();
    let mut checker = Checker::new();
    let world = World::new();
    world.write(".frites.toml", "[oracle]\nbuild = 'true'\ntest = ['sh', '-c', 'test ! -e BAD']\n");
    world.write("binary", b"\0\x01");
    world.commit("configuration");
    checker.answer("doctor", 0, world.frites(["doctor", "--json"]));
    world.write("Makefile", "test:\n\ttrue\n");
    world.commit("a command to pass over");
    checker.answer("plan", 0, world.frites(["judge", "--dry-run", "--json"]));
    spawned_and_judged(&mut checker, &world);
    judged_in_every_way(&mut checker);
    judged_in_part(&mut checker);
    judged_with_a_seed_that_leads_back(&mut checker);
    judged_beside_what_attempts_write(&mut checker);
    judged_over_outputs(&mut checker);
    stopped_by_enough(&mut checker);
    only_built(&mut checker);
    changed_only_what_runs(&mut checker);
    judged_by_reports(&mut checker);
    judged_across(&mut checker);
    landed(&mut checker, &world);
    renamed_on_one_side(&mut checker);
    spawned_again_and_failed(&mut checker, &world);
    running(&mut checker, &world);
    limited(&mut checker);
    paid(&mut checker);
    in_an_odd_place(&mut checker);
    unseen_and_refused(&mut checker);
    checker.answer("status", 0, world.frites(["status", "--json", "--disk"]));
    cleaned(&mut checker, &world);

    for event in world.events() {
        checker.check("log", &event);
    }
    let mut all = BTreeSet::new();
    described("#", &checker.sealed, &mut all);
    let unseen: Vec<&String> = all.difference(&checker.seen).collect();
    assert!(unseen.is_empty(), "described and never printed:\n{unseen:#?}");
}

/// A candidate whose agent is at its limit until a time that it tells, and one that was killed.
fn limited(checker: &mut Checker) {
    let world = World::new();
    world.git(["config", "frites.agents.mine.limit", "at its limit"]);
    let command = "sh -c 'echo at its limit, try again in 2 hours; exit 1'";
    world.git(["config", "frites.agents.mine.command", command]);
    let spawn = ["spawn", "--json", "--agent", "mine", "-p", "x"];
    checker.answer("spawn", 4, world.frites(spawn));
    checker.answer("status", 0, world.frites(["status", "--json"]));
    checker.answer("judge", 4, world.frites(["judge", "--json", "--test", "true"]));
    let command = "sh -c 'echo Not inside a trusted directory; exit 1'";
    world.git(["config", "frites.agents.codex.command", command]);
    checker.answer("spawn", 4, world.frites(["spawn", "--json", "--agent", "codex", "-p", "x"]));
    checker.answer("status", 0, world.frites(["status", "--json"]));
    checker.answer("judge", 4, world.frites(["judge", "--json", "--test", "true"]));
    let killed = ["spawn", "--json", "-n", "1", "--", "sh", "-c", "kill -9 $$"];
    checker.answer("spawn", 4, world.frites(killed));
    checker.answer("judge", 4, world.frites(["judge", "--json", "--test", "true"]));
}

/// Candidates whose agent tells what it used, and one whose agent does not.
fn paid(checker: &mut Checker) {
    let world = World::new();
    let mine = r#"["sh", "-c", "echo $FRITES_CANDIDATE >> README; echo '{\"in\":5,\"out\":6,\"usd\":0.5}'"]"#;
    world.write(
        ".frites.toml",
        format!("[agents.mine]\ncommand = {mine}\nusage = 'in=/in,out=/out,cost=/usd'\n"),
    );
    let spawn = ["spawn", "--json", "--agent", "mine", "-p", "x"];
    checker.answer("spawn", 0, world.frites(spawn));
    checker.answer("judge", 0, world.frites(["judge", "--json", "--test", "true"]));
    checker.answer("status", 0, world.frites(["status", "--json"]));
}

/// A run that ends the other attempt once one has passed.
fn stopped_by_enough(checker: &mut Checker) {
    let mut world = sealed();
    world.set_env("FRITES_SANDBOX_MODE", "auto");
    let attempt = "case $FRITES_CANDIDATE in c1) echo new > new;; *) sleep 600;; esac";
    let words = ["run", "--json", "-n", "2", "-j", "2", "--enough", "1", "--test", "test -e new"];
    let answer = world.frites([&words[..], &["--", "sh", "-c", attempt]].concat());
    // Where the system refuses namespaces, nothing is judged beside attempts.
    if answer.code == 128 {
        checker.seen.insert("#/$defs/entry/properties/stopped".into());
    } else {
        checker.answer("run", 0, answer);
    }
}

/// A candidate that only an output of the base lets pass, one that passes, and one that writes too
/// much.
fn judged_over_outputs(checker: &mut Checker) {
    let mut world = stale_project();
    world.set_env("FRITES_SANDBOX_MODE", "auto");
    world.attempts(&["rm b.src", "seq 9 >> a.src", "seq 10 >> a.src"]);
    let answer = world.frites(["judge", "--json", "--test", "make -s test"]).expect(0);
    // Where the system refuses namespaces, there are no results with outputs.
    if answer.json()["terms"]["world"] == "open" {
        checker.seen.insert("#/$defs/entry/properties/stale".into());
        checker.seen.insert("#/$defs/result/properties/warm".into());
        for name in ["", "/properties/kind", "/properties/directory"] {
            checker.seen.insert(format!("#/$defs/result/properties/obstacle{name}"));
        }
        checker.seen.insert("#/$defs/result/properties/bytes".into());
        checker.seen.insert("#/$defs/baseline/properties/inherited".into());
        for place in ["judge", "run", "verdict"] {
            checker.seen.insert(format!("#/$defs/{place}/properties/costs"));
        }
        for way in ["warm", "cold"] {
            checker.seen.insert(format!("#/$defs/costs/properties/{way}"));
        }
    }
    checker.answer("judge", 0, answer);
    world.set_env("FRITES_ORACLE_WARM", "auto");
    world.set_env("FRITES_RUN_EAGER", "false");
    let words = ["--no-cache", "--test", "make -s test"];
    checker.answer("judge", 0, world.frites([&["judge", "--json"], &words[..]].concat()));
    checker.answer("status", 0, world.frites(["status", "--json"]));
    let attempt = ["-n", "2", "--", "sh", "-c", "echo $FRITES_CANDIDATE >> a.src"];
    let run = [&["run", "--json"], &words[1..], &attempt[..]].concat();
    checker.answer("run", 0, world.frites(run));
    world.set_env("FRITES_ORACLE_WARM", "base");
    world.write("c.src", "of the next base\n");
    world.commit("another base");
    world.attempts(&["seq 9 >> a.src"]);
    let next = world.frites(["judge", "--json", "--test", "make -s test"]);
    checker.answer("judge", 0, next);
    fs::create_dir(world.home().join("closed")).unwrap();
    world.set_env("FRITES_SANDBOX_HIDE", "~/closed");
    let refused = world.frites(["judge", "--json", "--test", "echo x > ~/closed/new"]);
    let code = if refused.json()["terms"]["world"] == "open" { 0 } else { 3 };
    checker.answer("judge", code, refused);
    world.set_env("FRITES_SANDBOX_DISK", "1MiB");
    let fill = "head -c 2M /dev/zero > big; exit 1";
    checker.answer("judge", 1, world.frites(["judge", "--json", "--test", fill]));
}

/// A run of which only the larger candidate has a result.
fn judged_in_part(checker: &mut Checker) {
    let world = World::new();
    world.attempts(&["seq 9 > new", "seq 3 > new"]);
    world.git(["config", "frites.oracle.test", "true"]);
    let part = world.frites(["judge", "--json", "--candidate", "c1"]);
    checker.answer("judge-candidate", 0, part);
    checker.answer("judge", 3, world.frites(["judge", "--json", "--replay"]));
    checker.answer("status", 0, world.frites(["status", "--json"]));
    world.frites(["shard", "open", "--attempts", "-n", "1", "--", "true"]).expect(0);
    checker.answer("judge", 4, world.frites(["judge", "--json"]));
}

/// A virtual environment whose path file leads back to the checkout.
fn judged_with_a_seed_that_leads_back(checker: &mut Checker) {
    let world = World::new();
    world.git(["config", "frites.seed.copy", ".venv"]);
    world.write(".venv/lib/site-packages/own.pth", format!("{}/src\n", world.repo.display()));
    world.attempts(&["seq 9 > new"]);
    checker.answer("judge", 3, world.frites(["judge", "--json", "--test", "true"]));
}

fn judged_beside_what_attempts_write(checker: &mut Checker) {
    let mut world = World::new();
    world.set_env("FRITES_SPAWN_GUARD", "auto");
    world.set_env("FRITES_SPAWN_WRITE", "src");
    let spawn = ["spawn", "--json", "-n", "1", "--", "sh", "-c", "seq 9 > new"];
    checker.answer("spawn", 0, world.frites(spawn));
    checker.answer("status", 0, world.frites(["status", "--json"]));
    let answer = world.frites(["judge", "--json", "--test", "true"]);
    // Where the system allows no guard, no path is opened.
    if answer.json()["candidates"][0]["separation"] == "unguarded" {
        let runs = "#/$defs/status/properties/runs/items/properties/candidates/items/properties";
        checker.seen.insert(format!("{runs}/access/properties/writes"));
        checker.seen.insert("#/$defs/terms/properties/attempts_write".into());
        return;
    }
    checker.answer("judge", 3, answer);
}

/// Run 1, whose commands end in every way, judged in several ways.
fn spawned_and_judged(checker: &mut Checker, world: &World) {
    let frites = |args: &[&str]| world.frites(args);
    // Commands that end in every way; one leaves a process behind, one changes git's configuration.
    let script = "case $FRITES_CANDIDATE in \
        good) echo 1 >>README; printf '\\0\\2' >binary; printf x >\"$(printf 'odd\\377')\"; git config demo.x 1;; \
        twin) echo 1 >>README; printf '\\0\\2' >binary; printf x >\"$(printf 'odd\\377')\";; \
        bad) echo 1 >BAD; sleep 60 & ;; \
        fails) exit 3;; \
        killed) kill -9 $$;; \
        empty) ;; esac";
    let first = [
        "spawn",
        "--json",
        "--run",
        "first",
        "-n",
        "1",
        "--auto-checkpoint",
        "1h",
        "--",
        "rm",
        "README",
    ];
    checker.answer("spawn", 0, frites(&first));
    let names = ["good", "twin", "bad", "fails", "killed", "empty"];
    let args =
        [&["spawn", "--json", "--task", "T-1", "-c"][..], &names, &["--", "sh", "-c", script]]
            .concat();
    let spawned = checker.answer("spawn", 0, frites(&args));
    assert_eq!(spawned["candidates"][3]["state"], "failed");
    assert_eq!(spawned["escaped"].as_array().unwrap().len(), 1);
    let diff = checker.answer("diff", 0, frites(&["diff", "--json"]));
    assert_eq!(diff["diffs"][0]["files"][2]["path_hex"], "6f6464ff");
    checker.answer("diff", 0, frites(&["diff", "--json", "good", "bad"]));
    checker.answer("judge", 0, frites(&["judge", "--json", "--trust-config"]));
    world.git(["branch", "elsewhere", "refs/frites/1/good"]);
    checker.answer("task", 0, frites(&["task", "--json", "first", "T-0"]));
    checker.answer("task", 0, frites(&["task", "--json", "first/c1", "T-2"]));
    let add = ["add", "--json", "first", "--commit", "elsewhere"];
    checker.answer("add", 0, frites(&add));
    checker.answer("judge", 0, frites(&["judge", "--json", "--replay"]));
    // Signalled, timed out, not startable.
    checker.answer("judge", 1, frites(&["judge", "--json", "--test", "kill -9 $$"]));
    checker.answer(
        "judge",
        1,
        frites(&["judge", "--json", "--test", "sleep 60", "--timeout", "100ms", "-j", "4"]),
    );
    checker.answer(
        "judge",
        0,
        frites(&["judge", "--json", "--test", "sleep 60 & true", "-j", "4"]),
    );
    // The first of two candidates changes git's configuration.
    checker.answer(
        "judge",
        3,
        frites(&["judge", "--json", "--test", "! grep -q 1 README || git config demo.y 1"]),
    );
    checker.answer("status", 0, frites(&["status", "--json"]));
    let capture = ["capture", "--json", "-m", "as it was judged"];
    checker.answer("capture", 0, frites(&[&capture[..], &["1/twin"]].concat()));
    checker.answer("status", 0, frites(&["status", "--json", "1/twin"]));
    let shown = checker.answer("status", 0, frites(&["status", "--json", "1/good"]));
    assert_eq!(shown["runs"][0]["candidates"][0]["iterations"].as_array().unwrap().len(), 1);
}

/// A candidate that changes only what runs the tests.
fn changed_only_what_runs(checker: &mut Checker) {
    let world = World::new();
    world.write("Makefile", "test:\n\ttrue\n");
    world.commit("a Makefile");
    world.attempts(&["echo >> Makefile"]);
    checker.answer("judge", 3, world.frites(["judge", "--json"]));
}

/// A project that has nothing but a build.
fn only_built(checker: &mut Checker) {
    let world = World::new();
    world.write("Makefile", "all:\n\ttrue\n");
    world.commit("recipes");
    world.attempts(&["echo x > x"]);
    checker.answer("judge", 3, world.frites(["judge", "--json"]));
}

/// A test command whose exit code is lost, trusted and not.
fn judged_by_reports(checker: &mut Checker) {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    let judge = ["judge", "--json", "--test", "echo '=== 1 failed in 0.10s ==='"];
    checker.answer("judge", 3, world.frites(judge));
    world.git(["config", "frites.oracle.trust-exit", "true"]);
    checker.answer("judge", 0, world.frites(judge));
    let world = World::new();
    world.attempts(&["echo stop >> src/lib.txt"]);
    let ends_early = "grep -q stop src/lib.txt || { echo 'test result: ok. 2 passed'; \
                      echo '   Doc-tests t'; echo 'test result: ok. 1 passed'; }";
    checker.answer("judge", 3, world.frites(["judge", "--json", "--test", ends_early]));
    world.write("Makefile", "test:\n\ttrue\n");
    world.commit("a file that decides");
    world.attempts(&["echo stop >> src/lib.txt"]);
    let rewrites = "! grep -q stop src/lib.txt || echo 'test: ; true' > Makefile";
    let judge = ["judge", "--json", "--no-cache", "--test", rewrites];
    checker.answer("judge", 3, world.frites(judge));
}

/// Landings: staged, committed, merged, in conflict, undone.
fn landed(checker: &mut Checker, world: &World) {
    let frites = |args: &[&str]| world.frites(args);
    checker.answer("judge", 0, frites(&["judge", "--json"]));
    checker.answer("apply", 0, frites(&["apply", "--json"]));
    world.git(["switch", "-q", "-f", "main"]);
    checker.answer(
        "apply",
        0,
        frites(&["apply", "--json", "--branch", "aside", "--no-switch", "-m", "x"]),
    );
    world.write("README", "mine\n");
    world.write(OsStr::from_bytes(b"odd\xff"), "mine\n");
    world.commit("in the way");
    world.git(["branch", "-q", "-D", "frites/apply/1"]);
    checker.answer("apply", 1, frites(&["apply", "--json", "--conflicts"]));
    world.git(["reset", "-q", "--hard"]);
    world.git(["switch", "-q", "-f", "main"]);
    let merged = checker.answer(
        "apply",
        0,
        frites(&[
            "apply",
            "--json",
            "--merge",
            "--no-rejudge",
            "--allow-unverified",
            "--strategy",
            "newest-file-wins",
            "-m",
            "x",
        ]),
    );
    assert_eq!(merged["choices"].as_array().unwrap().len(), 2, "{merged:#}");
    checker.answer("undo", 0, frites(&["apply", "--json", "--undo", "1/good"]));
}

/// Merges of a file that one side renamed, with names that are not UTF-8; each side wins once.
fn renamed_on_one_side(checker: &mut Checker) {
    for newer in ["child", "parent"] {
        let mut world = World::new();
        world.write(OsStr::from_bytes(b"old\xff"), "1\n2\n3\n4\n5\n");
        world.commit("file");
        let change = |who: &str| match who == newer {
            true => {
                "git mv old* \"$(printf 'new\\377')\"; for f in new*; do echo 1 >> \"$f\"; done"
            }
            false => "for f in old*; do echo 2 >> \"$f\"; done",
        };
        world.attempts(&[change("child")]);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        world.sh(&world.repo, change("parent")).expect(0);
        let year = if newer == "parent" { "2040" } else { "2020" };
        world.set_env("GIT_COMMITTER_DATE", format!("{year}-01-02T03:04:05Z"));
        world.commit("parent");
        world.frites(["task", "1", "T-6"]).expect(0);
        world.frites(["apply", "--merge"]).refuses(1, "1/c1 conflicts with main");
        let merge = ["apply", "--merge", "--json", "--strategy", "newest-file-wins"];
        let merged = checker.answer("apply", 0, world.frites(merge));
        assert_eq!(merged["choices"][0]["side"], newer, "{merged:#}");
        for event in world.events() {
            checker.check("log", &event);
        }
    }
}

/// A child; a setup that fails; a command that cannot be started; a worktree that cannot be
/// captured.
fn spawned_again_and_failed(checker: &mut Checker, world: &World) {
    let frites = |args: &[&str]| world.frites(args);
    let child = ["spawn", "--json", "--from", "1/good", "-n", "1"];
    let spawned = checker.answer("spawn", 0, frites(&child));
    assert_eq!(spawned["parent"]["candidate"], "good");
    checker.answer("judge", 4, frites(&["judge", "--json", "2"]));
    checker.answer("judge", 3, {
        fs::write(world.worktree("2/c1").join("README"), "child\n").unwrap();
        world.write(".frites.toml", "oracle.detect = false\n");
        frites(&["judge", "--json", "2"])
    });
    checker.answer(
        "spawn",
        0,
        frites(&["retry", "--json", "2/c1", "--", "sh", "-c", "echo more >> README"]),
    );
    frites(&["task", "2/c1", "T-9"]).expect(0);
    frites(&["retry", "2/c1", "--", "true"]).expect(0);
    checker.answer("status", 0, frites(&["status", "--json"]));
    for args in [&["config", "--json"][..], &["config", "--json", "oracle.detect"]] {
        checker.answer("config", 0, frites(args));
    }
    world.write(".frites.toml", "spawn.setup = 'false'\n");
    checker.answer("spawn", 4, frites(&["spawn", "--json", "-n", "1"]));
    // A test that starts on the base, and on nothing after it.
    let tool = world.home().join("tool");
    fs::write(&tool, "#!/bin/sh\nrm \"$0\"; exit 1\n").unwrap();
    make_executable(&tool);
    world.write(".frites.toml", format!("oracle.test = ['{}']\n", tool.display()));
    checker.answer("spawn", 0, frites(&["spawn", "--json", "-n", "2"]));
    fs::write(world.worktree("4/c1").join("README"), "x\n").unwrap();
    world.git(["config", "filter.broken.clean", "false"]);
    world.git(["config", "filter.broken.required", "true"]);
    fs::write(world.worktree("4/c2").join(".gitattributes"), "README filter=broken\n").unwrap();
    fs::write(world.worktree("4/c2").join("README"), "y\n").unwrap();
    checker.answer("judge", 1, frites(&["judge", "--json", "4"]));
    fs::remove_file(world.repo.join(".frites.toml")).unwrap();
}

/// Worktrees kept, not kept, shown, removed and forgotten; once as a candidate's command would.
fn cleaned(checker: &mut Checker, world: &World) {
    let frites = |args: &[&str]| world.frites(args);
    checker.answer("clean", 0, frites(&["clean", "--json", "--keep", "1/good"]));
    checker.answer("clean", 0, frites(&["clean", "--json", "--no-keep", "1/good"]));
    checker.answer("clean", 0, frites(&["clean", "--json", "-n", "2"]));
    checker.answer("clean", 0, frites(&["clean", "--json", "-n", "--cache"]));
    checker.answer("clean", 0, frites(&["clean", "--json", "1/twin"]));
    checker.answer("task", 0, frites(&["task", "--json", "2", "T-3"]));
    checker.answer("clean", 0, frites(&["clean", "--json", "--forget", "2"]));
    world
        .sh(
            &world.repo,
            "FRITES_DEPTH=1 FRITES_RUN=1 FRITES_CANDIDATE=good git frites clean -q --discard --forget 3",
        )
        .expect(0);
}

/// Verdicts with everything that they can hold: on the base, too, with retries, single tests,
/// protected paths.
fn judged_in_every_way(checker: &mut Checker) {
    let world = World::new();
    world.write("tests/a.py", "def test_a(): pass\n");
    world.write("results", "bad a\nok b\n");
    world.write("tests/protected", "1\n");
    world.write("main.rs", "#[test]\nfn t() {}\n");
    world.commit("tests");
    world.attempts(&[
        "echo // >> main.rs; printf 'bad b\\nskip a\\n' > results; printf '@skip\\ndef test_a(): pass\\n' > tests/a.py; echo x > x",
        "echo // >> main.rs; printf 'bad a\\nbad b\\nbad c\\nok c\\n' > results; echo x > tests/protected; echo > conftest.py",
        "echo x > x; rm main.rs",
        "echo // >> main.rs; echo x > tests/more.py",
    ]);
    let near = |test: &str, more: &[&str]| {
        world.frites(["judge", "--json", "--test", test].iter().chain(more))
    };
    let printed =
        "test ! -e x || echo 'FAILED a.py::b - no'; echo '= 1 failed, 2 passed in 0.10s ='; exit 1";
    checker.answer("judge", 1, near(printed, &[]));
    let report = "{ echo '<testsuite>'; while read how name; do echo \"<testcase name='$name'>\"; test $how != bad || echo '<failure/>'; test $how != skip || echo '<skipped/>'; \
        echo \"</testcase><testcase name='later'><skipped/></testcase>\"; done < results; echo '</testsuite>'; } > report.xml";
    world.write(
        ".frites.toml",
        "[oracle]\njunit = 'report.xml'\nflaky = 'fail'\nretries = 1\nprotect = ['tests/protected']\nsource = ['x.dat']\n",
    );
    checker.answer("judge", 1, near(&format!("{report}; ! grep -q bad results"), &[]));
    checker.answer("status", 0, world.frites(["status", "--json"]));
    let once = "echo >> README; test -e \"$HOME/once\" || { touch \"$HOME/once\"; kill -9 $$; }";
    checker.answer("judge", 3, near(once, &["--retries", "1"]));
    checker.answer("judge", 3, near("true", &["--cold", "--until-pass", "--rank", "agreement"]));
    let in_place = "FRITES_SANDBOX_MODE=auto git-frites judge --json --test true --in-place";
    checker.answer("judge", 3, world.sh(&world.repo, in_place));
    world.frites(["task", "1", "T-5"]).expect(0);
    checker.answer("judge-candidate", 0, near("true", &["--candidate", "c1"]));
    checker.answer("judge-candidate", 3, near("exit 125", &["--candidate", "c1"]));
    let script = "echo $FRITES_CANDIDATE > README";
    checker.answer(
        "run",
        1,
        world.frites([
            "run",
            "--json",
            "--rounds",
            "1",
            "--test",
            "echo error: no; false",
            "--",
            "sh",
            "-c",
            script,
        ]),
    );
    checker.answer("status", 0, world.frites(["status", "--json"]));
    checker.answer("judge", 1, world.frites(["judge", "--json", "--replay"]));
    for event in world.events() {
        checker.check("log", &event);
    }
    judged_without_a_test(checker);
}

/// A change in a module that the tests of the root do not enter.
fn judged_without_a_test(checker: &mut Checker) {
    let mut world = World::new();
    for (path, text) in [("go.mod", "module a\n"), ("b/go.mod", "module b\n"), ("b/b.go", "\n")] {
        world.write(path, text);
    }
    world.commit("two modules");
    let go = world.home().join("bin/go");
    write(&go, "#!/bin/sh\n");
    make_executable(&go);
    let [bin, ours] =
        [&go, Path::new(env!("CARGO_BIN_EXE_git-frites"))].map(|path| path.parent().unwrap());
    let path = std::env::var("PATH").unwrap();
    world.set_env("PATH", format!("{}:{}:{path}", bin.display(), ours.display()));
    world.attempts(&["echo // >> b/b.go"]);
    checker.answer("judge", 3, world.frites(["judge", "--json", "--test", "go test ./..."]));
}

/// Candidates that were judged by each other's tests; two change one line of one test file.
fn judged_across(checker: &mut Checker) {
    let world = World::new();
    let test = "{ echo '<testsuite>'; for t in tests/*.t; do echo \"<testcase name='$t'>\"; sh $t || echo '<failure/>'; \
        echo '</testcase>'; done; echo '</testsuite>'; } > r.xml; ! grep -q failure r.xml";
    world.write("tests/a.t", "true\n");
    world.write("tests/z.t", "true\n");
    world.write("lib.rs", "1\n");
    world.commit("tests");
    world.git(["config", "frites.oracle.junit", "r.xml"]);
    world.attempts(&[
        "echo 'grep -q 2 lib.rs' > tests/a.t; printf '2\\n#[test]\\nfn t() {}\\n' > lib.rs; echo 'grep -q 2 lib.rs' > tests/b.t",
        "echo 'grep -q [23] lib.rs' > tests/a.t; echo 3 > lib.rs; rm tests/z.t",
    ]);
    let words = ["judge", "--cross", "--json", "--test", test];
    let verdict = checker.answer("judge", 0, world.frites(words));
    assert_eq!(verdict["candidates"][0]["cross"]["inseparable"], json!(["lib.rs"]), "{verdict:#}");
    let apart =
        checker.answer("diff", 0, world.frites(["diff", "--json", "--tests", "1/c1", "c2"]));
    let test = json!({ "name": "tests/b.t", "author": "c1", "passes": "c1", "fails": "c2" });
    assert!(apart["tests"].as_array().unwrap().contains(&test), "{apart:#}");
    world.git(["config", "--unset", "frites.oracle.junit"]);
    // The two that are larger agree.
    let script = "case $FRITES_CANDIDATE in c1) echo x > a.rs;; c2) echo x > b.rs; echo y > c.rs;; *) echo x > b.rs; echo y > d.rs;; esac";
    let options = ["run", "--json", "-n", "3", "--test", "true", "--", "sh", "-c", script];
    checker.answer("run", 0, world.frites(options));
}

/// The status of a running command; then its run is interrupted, resumed, and synthesised.
fn running(checker: &mut Checker, world: &World) {
    let script = "echo working; until test -e \"$HOME/go\"; do sleep 0.01; done; echo $FRITES_CANDIDATE >>README";
    let words = [
        "run", "-q", "--run", "long", "--task", "T-4", "-n", "2", "--test", "true", "-p", "do it",
        "--", "sh", "-c", script,
    ];
    let mut command = world.command(&world.repo, "git-frites", words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let doing = || {
        let answer = world.frites(["status", "--json", "long"]);
        if answer.code == 0 {
            answer.json()["runs"][0]["candidates"][0]["doing"]["last_line"].clone()
        } else {
            json!(null)
        }
    };
    poll(|| doing() == "working");
    checker.answer("status", 0, world.frites(["status", "--json", "long"]));
    world.sh(&world.repo, &format!("kill -INT {}", child.id())).expect(0);
    assert!(!child.wait().unwrap().success());
    fs::write(world.home().join("go"), "").unwrap();
    let verdict = checker.answer("run", 0, world.frites(["run", "--json", "--resume", "long"]));
    assert_eq!(
        verdict["candidates"].as_array().unwrap().len(),
        3,
        "one is synthesised: {verdict:#}"
    );
}

/// Paths that are not UTF-8.
fn in_an_odd_place(checker: &mut Checker) {
    let world = World::empty(OsStr::from_bytes(b"odd\xff"));
    world.git(["init", "-q", "-b", "main"]);
    world.write("README", "x\n");
    world.commit("base");
    let spawned = checker.answer("spawn", 0, world.frites(["spawn", "--json"]));
    assert!(
        spawned["candidates"][0]["worktree_hex"].as_str().unwrap().contains("6f6464ff2f"),
        "{spawned:#}"
    );
    checker.answer("status", 0, world.frites(["status", "--json"]));
    checker.answer("path", 0, world.frites(["path", "1/c1", "--json"]));
}

/// Changes that a patch does not show, and commands that fail.
fn unseen_and_refused(checker: &mut Checker) {
    let world = World::new();
    world.attempts(&["head -c 1000001 /dev/zero > large; echo 'a.b/c v1 h1:x=' > go.sum"]);
    checker.answer("judge", 0, world.frites(["judge", "--json", "--test", "true"]));
    checker.answer("error", 128, world.frites(["judge", "--json", "9"]));
}

/// The definition of each command that takes `--json` is there, and no other.
#[test]
fn schema_describes_each_command_with_json() {
    let world = World::empty("no repository");
    let help = world.run(&world.repo, "git-frites", ["-h"]).expect(0).out();
    let list =
        help.split("Start attempts:\n").nth(1).unwrap().split("\nOptions:\n").next().unwrap();
    let definitions = schema()["$defs"].clone();
    let names = list.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    for verb in names.filter_map(|l| l.split_whitespace().next()).filter(|name| *name != "help") {
        let takes_json =
            world.run(&world.repo, "git-frites", [verb, "-h"]).expect(0).out().contains("--json");
        assert_eq!(takes_json, definitions.get(verb).is_some(), "{verb}");
    }
}
