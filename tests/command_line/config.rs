//! `config`: the sources, where each value comes from, and a starter file that never replaces
//! another file.
use std::fs;

use crate::common::World;

/// The line of a key in the table, its columns parted by single blanks.
fn line(world: &World, key: &str) -> String {
    let out = world.frites(["config"]).expect(0).out();
    let found = out
        .lines()
        .find(|l| l.split_whitespace().next() == Some(key))
        .unwrap_or_else(|| panic!("{out}"));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_setting_of_git_that_is_not_utf8_is_refused() {
    let world = World::new();
    world.sh(&world.repo, "git config frites.sandbox.hide \"$(printf 'secret\\377')\"").expect(0);
    let refused = world.frites(["config"]);
    refused.refuses(128, "the value of 'frites.sandbox.hide' is not UTF-8");
    world.sh(&world.repo, "git config --unset-all frites.sandbox.hide").expect(0);
    world.frites(["config"]).expect(0);
}

#[test]
fn each_configuration_layer_overrides_the_one_below() {
    let mut world = World::new();
    assert_eq!(line(&world, "oracle.timeout"), "oracle.timeout \"10m\" default");
    assert_eq!(
        line(&world, "spawn.jobs"),
        "spawn.jobs - (16 if agents make all candidates, else the number of processors) default"
    );
    world.write(
        ".frites.toml",
        "[oracle]\ntest = ['make', 'check']\ntimeout = \"1m\"\n\n[spawn]\njobs = 3\n",
    );
    assert_eq!(line(&world, "oracle.timeout"), "oracle.timeout \"1m\" .frites.toml:3");
    assert_eq!(line(&world, "oracle.test"), "oracle.test [\"make\", \"check\"] .frites.toml:2");
    world.git(["config", "frites.oracle.timeout", "2m"]);
    assert_eq!(
        line(&world, "oracle.timeout"),
        format!("oracle.timeout \"2m\" git config ({}/.git/config)", world.repo.display())
    );
    world.set_env("FRITES_ORACLE_TIMEOUT", "3m");
    assert_eq!(line(&world, "oracle.timeout"), "oracle.timeout \"3m\" FRITES_ORACLE_TIMEOUT");
    assert_eq!(line(&world, "spawn.jobs"), "spawn.jobs 3 .frites.toml:6");

    assert_eq!(world.frites(["config", "oracle.timeout"]).expect(0).out(), "3m\n");
    assert_eq!(world.frites(["config", "oracle.test"]).expect(0).out(), "make\ncheck\n");
    let unset = world.frites(["config", "oracle.build"]).expect(1);
    assert_eq!((unset.out(), unset.stderr), (String::new(), String::new()), "as git config has it");
    let unset = world.frites(["config", "oracle.build", "--json"]).expect(1).json();
    assert_eq!(unset["keys"][0]["value"], serde_json::Value::Null);
    world.assert_clean();
}

#[test]
fn array_in_git_config_and_variables_is_one_as_in_the_file() {
    let mut world = World::new();
    world.git(["config", "frites.oracle.test", r#"["make", "check it"]"#]);
    assert_eq!(world.frites(["config", "oracle.test"]).expect(0).out(), "make\ncheck it\n");
    world.git(["config", "frites.agents.mine.limit", r#"["*usage limit*", "no, not now"]"#]);
    world.git(["config", "--add", "frites.agents.mine.limit", "[a-z]*"]);
    let patterns = world.frites(["config", "agents.mine.limit"]).expect(0).out();
    assert_eq!(patterns, "*usage limit*\nno, not now\n[a-z]*\n");
    world.set_env("FRITES_ORACLE_TEST", "['true']");
    assert_eq!(world.frites(["config", "oracle.test"]).expect(0).out(), "true\n");
    world.set_env("FRITES_ORACLE_TEST", "[ -e README ]");
    let shell = world.frites(["config", "oracle.test"]).expect(0).out();
    assert_eq!(shell, "[ -e README ]\n", "a command, not an array");
}

#[test]
fn config_json_has_typed_values() {
    let world = World::new();
    world.write(".frites.toml", "[spawn]\njobs = 3\n[seed]\ncopy = ['.env*']\n");
    let document = world.frites(["config", "--json"]).expect(0).json();
    let key = |name: &str| {
        let keys = document["keys"].as_array().unwrap();
        keys.iter()
            .find(|k| k["key"] == name)
            .unwrap_or_else(|| panic!("{name}: {document:#}"))
            .clone()
    };
    assert_eq!(key("spawn.jobs")["value"], 3);
    assert_eq!(key("spawn.jobs")["place"], ".frites.toml:2");
    assert_eq!(key("seed.copy")["value"], serde_json::json!([".env*"]));
    assert_eq!(key("oracle.detect")["value"], true);
    assert_eq!(key("oracle.detect")["default"], true);
    assert_eq!(key("oracle.build")["value"], serde_json::Value::Null);
    assert_eq!(key("oracle.build")["variable"], "FRITES_ORACLE_BUILD");
    let one = world.frites(["config", "--json", "spawn.jobs"]).expect(0).json();
    assert_eq!(one["keys"].as_array().unwrap().len(), 1);
}

#[test]
fn starter_file_sets_nothing_and_never_overwrites() {
    let world = World::new();
    let sub = world.repo.join("src");
    let before = world.frites(["config"]).expect(0);
    assert!(before.stderr.contains("--init"), "{}", before.stderr);
    let path = world.frites_in(&sub, ["config", "--init"]).expect(0).out();
    let file = world.repo.join(".frites.toml");
    assert_eq!(path.trim_end(), file.to_str().unwrap(), "at the root, wherever it was asked for");
    let after = world.frites(["config"]).expect(0);
    assert_eq!(after.out(), before.out(), "the starter changes nothing");
    assert_eq!(after.stderr, "");

    fs::write(&file, "spawn.jobs = 7\n").unwrap();
    world.frites(["config", "--init"]).refuses(128, "exists already");
    assert_eq!(fs::read_to_string(&file).unwrap(), "spawn.jobs = 7\n");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    world.frites(["config", "--init"]).refuses(128, "is a link to nothing");
    assert!(!world.repo.join("nowhere").exists(), "nothing is written through a link");
}

#[test]
fn uncommented_starter_key_takes_effect() {
    let world = World::new();
    world.frites(["config", "--init"]).expect(0);
    let file = world.repo.join(".frites.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("#timeout = \"10m\"", "timeout = \"11m\"")).unwrap();
    assert_eq!(world.frites(["config", "oracle.timeout"]).expect(0).out(), "11m\n");
}

#[test]
fn mistake_is_named_with_its_place_and_nearest_key() {
    let world = World::new();
    let file = world.repo.join(".frites.toml");
    let path = file.to_str().unwrap();
    let cases = [
        (
            "[oracle]\ntests = 'x'\n",
            format!("{path}:2:1: unknown key 'oracle.tests'"),
            "did you mean 'oracle.test'?",
        ),
        (
            "[orakel]\ntest = 'x'\n",
            format!("{path}:1:2: unknown key 'orakel'"),
            "oracle.build, oracle.lint",
        ),
        (
            "[spawn]\n  jobs = 'many'\n",
            format!("{path}:2:10: 'spawn.jobs' takes a whole number from 1"),
            "correct",
        ),
        (
            "oracle.test = { a = 1 }\n",
            format!("{path}:1:15: 'oracle.test' takes a string"),
            "correct",
        ),
        ("oracle = 'x'\n", format!("{path}:1:1: unknown key 'oracle'"), "oracle.test"),
    ];
    for (text, words, hint) in cases {
        fs::write(&file, text).unwrap();
        let answer = world.frites(["config"]).refuses(128, &words);
        assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    }
    fs::remove_file(&file).unwrap();

    world.git(["config", "frites.spawn.job", "3"]);
    let answer = world.frites(["config"]).refuses(128, ".git/config): unknown key 'spawn.job'");
    assert!(answer.stderr.contains("did you mean 'spawn.jobs'?"), "{}", answer.stderr);
    world.git(["config", "--unset", "frites.spawn.job"]);
    let answer =
        world.frites(["config", "oracel.test"]).refuses(2, "there is no key 'oracel.test'");
    assert!(answer.stderr.contains("did you mean 'oracle.test'?"), "{}", answer.stderr);
}

#[test]
fn variable_that_resembles_a_key_is_refused() {
    let mut world = World::new();
    world.set_env("FRITES_RUN", "1");
    world.set_env("FRITES_PROMPT_FILE", "x");
    world.frites(["config"]).expect(0);
    world.set_env("FRITES_SPAWN_JOB", "3");
    let answer = world.frites(["config"]).refuses(128, "FRITES_SPAWN_JOB");
    assert!(answer.stderr.contains("did you mean 'FRITES_SPAWN_JOBS'?"), "{}", answer.stderr);
}

#[test]
fn configuration_in_a_candidates_worktree_has_no_effect() {
    let world = World::new();
    let run = world.attempts(&["echo 'spawn.jobs = 5' >.frites.toml"]);
    let inside = world.worktree(&format!("{run}/c1"));
    assert_eq!(world.frites_in(&inside, ["config", "spawn.jobs"]).expect(1).out(), "");
    world.frites_in(&inside, ["config", "--init"]).expect(0);
    assert_eq!(fs::read_to_string(inside.join(".frites.toml")).unwrap(), "spawn.jobs = 5\n");
    assert!(world.repo.join(".frites.toml").exists(), "it goes to the user's own checkout");
}

#[test]
fn init_proposes_seeds_that_the_checkout_ignores() {
    let world = World::new();
    world.write(".gitignore", ".env*\nnode_modules/\n.venv/\n*.log\ntarget/\n");
    for manifest in ["package.json", "web/[id]/package.json", "pyproject.toml"] {
        world.write(manifest, "");
    }
    world.commit("project");
    for path in [
        ".env",
        "web/.env.local",
        "node_modules/a/index.js",
        "web/[id]/node_modules/b.js",
        "no-manifest/node_modules/c.js",
        ".venv/pyvenv.cfg",
        "target/x",
        "a.log",
    ] {
        world.write(path, "x\n");
    }
    let answer = world.frites(["config", "--init"]).expect(0);
    assert!(
        answer.stderr.contains("the file proposes seeds that this checkout has"),
        "{}",
        answer.stderr
    );
    let file = world.repo.join(".frites.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("# Not proposed, because files in a copy would still contain the path of the original: .venv.\n"), "{text}");
    assert!(
        text.contains(": .env, node_modules, web/.env.local, web/[id]/node_modules.\n"),
        "{text}"
    );
    assert_eq!(world.frites(["config", "seed.copy"]).expect(0).out().trim(), "", "nothing is set");
    // Uncommented, the proposal brings what it names.
    fs::write(&file, text.replace("#copy = [\"", "copy = [\"")).unwrap();
    world.spawn(["-n", "1"]);
    let there = |path: &str| world.worktree("1/c1").join(path).exists();
    for path in [".env", "web/.env.local", "node_modules/a/index.js", "web/[id]/node_modules/b.js"]
    {
        assert!(there(path), "{path}");
    }
    assert!(!there("no-manifest") && !there(".venv") && !there("a.log"));
    world.assert_clean();
}
