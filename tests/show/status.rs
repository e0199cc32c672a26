//! `status` and `log`: what is shown, its JSON, and an event log that only tells what happened.
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::World;
use crate::common::transcript::{assert_shown, shown};

fn log_file(world: &World) -> PathBuf {
    world.repo.join(".frites/events.jsonl")
}

/// The events' names and what they are about.
#[track_caller]
fn told(world: &World) -> Vec<String> {
    let name = |e: &Value| {
        let candidate = e["candidate"].as_str().map(|c| format!("/{c}")).unwrap_or_default();
        format!("{} {}{candidate}", e["event"].as_str().unwrap(), e["run"].as_str().unwrap())
    };
    world.events().iter().map(name).collect()
}

/// One attempt that passes.
fn edited() -> World {
    let world = World::new();
    world.spawn(["-c", "alpha", "beta"]);
    fs::write(world.worktree("1/alpha").join("README"), "one\ntwo\n").unwrap();
    world
}

#[test]
fn status_and_log_without_a_run_are_empty_and_hint_at_spawn() {
    let world = World::new();
    let status = world.frites(["status"]).expect(0);
    assert_eq!(status.out(), "");
    assert_eq!(status.stderr, "there is no run yet\nhint: start one with `git frites spawn`\n");
    assert_eq!(
        world.frites(["status", "--json"]).expect(0).json(),
        json!({ "version": 1, "runs": [] })
    );
    let log = world.frites(["log"]).expect(0);
    let words = "nothing has happened yet\nhint: start a run with `git frites spawn`\n";
    assert_eq!((log.out().as_str(), log.stderr.as_str()), ("", words));
    assert_eq!(world.frites(["log", "--json"]).expect(0).out(), "");
    assert!(world.events().is_empty());
    assert!(!world.repo.join(".frites").exists(), "looking leaves no trace");
    world.frites(["status", "1"]).refuses(128, "there is no run yet");
}

#[test]
fn status_shows_runs_and_candidates_and_captures_nothing() {
    crate::common::in_the_open_world();
    let world = edited();
    let base = world.git(["rev-parse", "--short=10", "HEAD"]);
    let first = world.frites(["status"]).expect(0).out();
    let lines: Vec<&str> = first.lines().collect();
    assert!(lines[0].starts_with("run 1, ") && lines[0].contains(" s ago, from "), "{first}");
    assert!(
        lines[0].ends_with("; not judged") && base.starts_with(between(lines[0], "from ", ";")),
        "{first}"
    );
    let row = |text: &str, address: &str| -> Vec<String> {
        let line = text.lines().find(|l| l.contains(address)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(
        row(&first, "1/alpha")[..6],
        ["1/alpha", "open", "-", "0", "0", "pending"],
        "not captured yet"
    );
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/alpha"]), "");

    world.frites(["diff", "1"]).expect(0);
    world.spawn(["--run", "named", "-n", "1"]);
    let all = world.frites(["status"]).expect(0).out();
    assert_eq!(row(&all, "1/alpha")[..6], ["1/alpha", "open", "1", "3", "1", "pending"]);
    assert_eq!(all.matches("not judged").count(), 2);
    assert!(all.find("run 1,").unwrap() < all.find("run named,").unwrap(), "oldest first:\n{all}");

    world.frites(["judge", "1", "--test", "true"]).expect(0);
    world.frites(["apply", "1", "-q"]).expect(0);
    world.frites(["clean", "-q", "1/beta"]).expect(0);
    assert_shown("status_of_a_run", shown(&world, &["status", "1"]));
    assert_shown("status_of_a_candidate", shown(&world, &["status", "1/beta"]));
    assert_eq!(world.frites(["status", "nam"]).expect(0).out().matches("named/c1").count(), 1);
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).unwrap().1;
    rest.split_once(to).unwrap().0
}

/// All keys of a document, at any depth.
fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(k, v)| [vec![k.clone()], keys(v)].concat()).collect()
        }
        Value::Array(items) => items.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn status_has_every_field_in_json() {
    let world = edited();
    let script = "echo x > README; test $FRITES_INDEX = 1 || exit 3";
    world.frites(["spawn", "-q", "--", "sh", "-c", script]).expect(0);
    world.frites(["judge", "1", "--test", "true"]).expect(0);
    world.frites(["clean", "-q", "1/beta"]).expect(0);
    let document = world.frites(["status", "--json"]).expect(0).json();
    assert_eq!(document["version"], 1);
    let (one, two) = (&document["runs"][0], &document["runs"][1]);
    let base = world.git(["rev-parse", "HEAD"]);
    for run in [one, two] {
        assert_eq!(run["base"], base.as_str());
        run["created"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    }
    assert_eq!((&one["run"], &one["command"]), (&json!("1"), &json!([])));
    assert_eq!((&two["run"], &two["command"]), (&json!("2"), &json!(["sh", "-c", script])));
    assert_eq!(
        (&one["verdict"]["decision"], &one["verdict"]["recommended"]),
        (&json!("single"), &json!("alpha"))
    );
    assert_eq!(two["verdict"], Value::Null);
    let alpha = &one["candidates"][0];
    for (key, value) in [
        ("candidate", json!("alpha")),
        ("index", json!(1)),
        ("state", json!("open")),
        ("landing", json!("pending")),
        ("cleaned", json!(false)),
        ("branch", json!("frites/run/1/alpha")),
        ("iteration", json!(1)),
        ("capture", json!(world.git(["rev-parse", "refs/frites/1/alpha"]))),
        ("tree", json!(world.tree("refs/frites/1/alpha"))),
        ("lines", json!(3)),
        ("files_touched", json!(1)),
        ("worktree", json!(world.worktree("1/alpha").to_str().unwrap())),
    ] {
        assert_eq!(alpha[key], value, "{key} of {alpha:#}");
    }
    assert!(alpha["bytes"].as_u64().unwrap() > 0);
    let beta = &one["candidates"][1];
    assert_eq!(
        (&beta["cleaned"], &beta["landing"], &beta["bytes"]),
        (&json!(true), &json!("discarded"), &json!(0))
    );
    assert_eq!(
        (&beta["iteration"], &beta["capture"], &beta["tree"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let states: Vec<&Value> =
        two["candidates"].as_array().unwrap().iter().map(|c| &c["state"]).collect();
    assert_eq!(states, ["succeeded", "failed"]);
    assert_eq!(
        (&two["candidates"][1]["exit_code"], &two["candidates"][1]["signal"]),
        (&json!(3), &Value::Null)
    );
    assert_eq!(
        keys(&document).into_iter().find(|key| key.contains('-')),
        None,
        "one spelling of keys: {document:#}"
    );
    let only = world.frites(["status", "--json", "2/c2"]).expect(0).json();
    let mut only = only["runs"][0]["candidates"].clone();
    let iterations = only[0].as_object_mut().unwrap().remove("iterations").unwrap();
    assert_eq!(
        only,
        json!([two["candidates"][1]]),
        "one candidate is told of as in its run, and its iterations"
    );
    assert_eq!(iterations.as_array().unwrap().len(), 1);
}

#[test]
fn log_lists_events_in_order() {
    let world = edited();
    world.frites(["judge", "--test", "true"]).expect(0);
    world.frites(["apply", "-q", "-m", "Land"]).expect(0);
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", "echo x > README; exit 3"]).expect(4);
    world.frites(["clean", "-q", "--forget", "1"]).expect(0);
    let expected = [
        "spawned 1",
        "captured 1/alpha",
        "judged 1",
        "landed 1/alpha",
        "spawned 2",
        "captured 2/c1",
        "ended 2/c1",
        "cleaned 1/alpha",
        "cleaned 1/beta",
        "forgotten 1",
    ];
    assert_eq!(told(&world), expected);
    let all = world.events();
    let mut last = jiff::Timestamp::MIN;
    for event in &all {
        assert_eq!(event["version"], 1);
        let time: jiff::Timestamp = event["time"].as_str().unwrap().parse().unwrap();
        assert!(time >= last, "oldest first");
        last = time;
    }
    assert_eq!(all[0]["candidates"], json!(["alpha", "beta"]));
    assert_eq!((&all[2]["decision"], &all[2]["recommended"]), (&json!("single"), &json!("alpha")));
    assert_eq!((&all[3]["branch"], &all[3]["verified"]), (&json!("frites/apply/1"), &json!(true)));
    assert_eq!(all[3]["commit"], world.git(["rev-parse", "frites/apply/1"]).as_str());
    assert_eq!((&all[6]["state"], &all[6]["exit_code"]), (&json!("failed"), &json!(3)));

    assert_shown("log", shown(&world, &["log"]));
    let text = world.frites(["log"]).expect(0).out();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), expected.len());
    for (line, event) in lines.iter().zip(&all) {
        let time = event["time"].as_str().unwrap();
        assert!(
            line.starts_with(&format!("{} {}  ", &time[..10], &time[11..19])),
            "in local time (here UTC): {line}"
        );
        assert!(
            line.contains(event["event"].as_str().unwrap()) && *line == line.trim_end(),
            "{line}"
        );
    }
    assert!(
        lines[3].contains("1/alpha") && lines[3].contains("branch=frites/apply/1"),
        "{}",
        lines[3]
    );
    // A run that is gone still has its events; another has its own alone.
    assert_eq!(world.frites(["log", "1"]).expect(0).out().lines().count(), 7);
    assert_eq!(
        world.frites(["log", "2"]).expect(0).out(),
        [lines[4], "\n", lines[5], "\n", lines[6], "\n"].concat()
    );
    world.frites(["log", "1/alpha"]).refuses(2, "'1/alpha' is not a run");
    world.assert_clean();
}

#[test]
fn refused_command_logs_no_event() {
    let world = edited();
    let before = fs::read(log_file(&world)).unwrap();
    world.frites(["spawn", "--run", "1"]).refuses(128, "a run named '1' exists");
    world.frites(["spawn", "--base", "nosuch"]).refuses(128, "does not name a commit");
    world.frites(["spawn", "--", "nosuchprogram"]).refuses(128, "not on PATH");
    world.frites(["judge", "7"]).refuses(128, "there is no run '7'");
    world.frites(["apply"]).refuses(1, "was not judged");
    world.frites(["clean", "--dry-run"]).expect(0);
    world.frites(["status"]).expect(0);
    world.frites(["path", "1/alpha"]).expect(0);
    assert_eq!(fs::read(log_file(&world)).unwrap(), before);

    world.frites(["judge", "--test", "true"]).expect(0);
    let before = fs::read(log_file(&world)).unwrap();
    world.frites(["judge", "-q", "--replay"]).expect(0);
    world.frites(["diff", "1"]).expect(0);
    world.write("README", "mine\n");
    world.frites(["apply"]).refuses(128, "uncommitted changes");
    world.git(["checkout", "-q", "README"]);
    world.git(["branch", "frites/apply/1"]);
    world.frites(["apply"]).refuses(128, "a branch named 'frites/apply/1' exists");
    world.git(["config", "user.useConfigOnly", "true"]);
    world.git(["config", "--global", "--unset", "user.email"]);
    world.frites(["apply", "--branch", "mine", "-m", "x"]).expect(1);
    assert_eq!(world.git(["for-each-ref", "refs/heads/mine"]), "");
    assert_eq!(fs::read(log_file(&world)).unwrap(), before);
    assert_eq!(world.first_candidate("1")["landing"], "pending");
    world.assert_clean();
}

#[test]
fn torn_last_line_of_the_log_is_skipped_and_kept_apart() {
    let world = edited();
    let whole = told(&world);
    let mut log = fs::OpenOptions::new().append(true).open(log_file(&world)).unwrap();
    log.write_all(b"{\"version\":1,\"event\":\"sp").unwrap();
    assert_eq!(told(&world), whole);
    assert_eq!(world.frites(["log"]).expect(0).out().lines().count(), whole.len());
    assert_eq!(world.spawn(["-n", "1"]), "2");
    let text = fs::read_to_string(log_file(&world)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[lines.len() - 2], "{\"version\":1,\"event\":\"sp");
    assert_eq!(serde_json::from_str::<Value>(lines[lines.len() - 1]).unwrap()["run"], "2");
    assert!(text.ends_with('\n'));
    // Other nonsense, too, and bytes that are no text.
    log.write_all(b"[1]\n\n\xff\xfe\nnull").unwrap();
    assert_eq!(world.spawn(["-n", "1"]), "3");
    assert_eq!(told(&world), [&whole[..], &["spawned 2".into(), "spawned 3".into()]].concat());
    // And none at all.
    fs::remove_file(log_file(&world)).unwrap();
    assert_eq!(world.spawn(["-n", "1"]), "4");
    assert_eq!(told(&world), ["spawned 4"]);
}

#[test]
fn status_never_calls_succeeded_what_failed_its_tests() {
    let world = World::new();
    let script = "case $FRITES_CANDIDATE in c1) echo good >f;; c2) echo bad >f;; *) exit 3;; esac";
    world.frites(["spawn", "-n", "3", "--", "sh", "-c", script]).expect(0);
    let shown = |candidate: &str| {
        let all = world.frites(["status"]).expect(0).out();
        let row = all.lines().find(|line| line.contains(candidate)).unwrap();
        row.split(candidate).nth(1).unwrap().trim().split("  ").next().unwrap().to_owned()
    };
    assert_eq!((shown("1/c1").as_str(), shown("1/c2").as_str()), ("succeeded", "succeeded"));
    world.frites(["judge", "--test", "grep -q good f"]).expect(0);
    assert_eq!((shown("1/c1").as_str(), shown("1/c2").as_str()), ("passed", "test exit 1"));
    assert_eq!(shown("1/c3"), "failed (exit 3)");
    // What has changed since is not what was judged.
    let older = "hint: c2 changed since this verdict: `git frites judge 1 --test 'grep -q good f'`";
    let told = || world.frites(["status", "1"]).expect(0).stderr;
    assert!(!told().contains("since this verdict"), "{}", told());
    world.sh(&world.worktree("1/c2"), "echo good > f").expect(0);
    world.frites(["capture", "1"]).expect(0);
    assert_eq!((shown("1/c1").as_str(), shown("1/c2").as_str()), ("passed", "succeeded"));
    assert!(told().contains(older), "{}", told());
    let json = world.frites(["status", "--json"]).expect(0).json();
    assert_eq!(json["runs"][0]["candidates"][1]["state"], "succeeded");
    world.assert_clean();
}

#[test]
fn status_shows_the_newest_run_and_those_with_worktrees_unless_asked_for_all() {
    let world = World::new();
    for run in ["gone", "kept", "newest"] {
        world.spawn(["-n", "1", "--run", run]);
    }
    world.frites(["clean", "gone", "newest"]).expect(0);
    let headings = |args: &[&str]| -> Vec<String> {
        let text = world.frites(args).expect(0).out();
        let headings = text.lines().filter_map(|line| line.strip_prefix("run "));
        headings.filter_map(|rest| Some(rest.split_once(',')?.0.to_owned())).collect()
    };
    assert_eq!(headings(&["status"]), ["kept", "newest"]);
    assert_eq!(headings(&["status", "--all"]), ["gone", "kept", "newest"]);
    assert_eq!(headings(&["status", "gone"]), ["gone"]);
    let hint = world.frites(["status"]).expect(0).stderr;
    assert!(
        hint.contains("1 older run has no worktree any more: `git frites status --all`"),
        "{hint}"
    );
    assert!(!world.frites(["status", "-a"]).expect(0).stderr.contains("older"));
    let all = world.frites(["status", "--json"]).expect(0).json();
    assert_eq!(all["runs"].as_array().unwrap().len(), 3, "a script sees all");
}
