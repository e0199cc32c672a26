//! Hostile names, addresses, arguments, configuration, `.worktreeinclude`, JUnit files, event logs
//! and records: no panic, a clear error each, and no effect (SCOREBOARD row 29).
//!
//! The parsers alone have properties of their own beside them in `src/`; here the program is asked.
//! `FRITES_TEST_SEED` makes other words and other damage.
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;

use fastrand::Rng;

use crate::common::{Answer, World, files_below};

/// The random numbers of a test: in each run those of one seed.
fn random_numbers() -> Rng {
    let seed = std::env::var("FRITES_TEST_SEED").ok().and_then(|n| n.parse().ok());
    Rng::with_seed(seed.unwrap_or(29))
}

/// One to `most` + 1 of the `parts`, one after the other.
fn some_of(parts: &[&[u8]], most: usize, random: &mut Rng) -> Vec<u8> {
    (0..=random.usize(..most)).flat_map(|_| parts[random.usize(..parts.len())].to_vec()).collect()
}

/// Bytes that no name, number, pattern or option contains.
const ODD: [&[u8]; 12] = [
    b"\x1b[31m",
    b"\n",
    b"\r",
    b"\xff",
    b"\xc3\xa9",
    b"..",
    b"/",
    b"@",
    b"{",
    b"'",
    b"fatal: it is a trap",
    b" ",
];

/// Runs the program, which must end in a documented way and say what is wrong, if anything is, in
/// one line.
#[track_caller]
fn ask<S: AsRef<OsStr>>(world: &World, args: impl IntoIterator<Item = S>) -> Answer {
    let args: Vec<OsString> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
    let answer = world.run(&world.repo, "git-frites", &args);
    let all = format!("{args:?}: {answer:?}");
    assert!([0, 1, 2, 3, 4, 128].contains(&answer.code), "{all}");
    assert!(!answer.stderr.contains("panicked"), "{all}");
    let lines = |word: &str| answer.stderr.lines().filter(|l| l.starts_with(word)).count();
    assert_eq!(lines("fatal: "), usize::from(matches!(answer.code, 2 | 128)), "{all}");
    assert!(lines("hint: ") > 0 || lines("fatal: ") == 0, "{all}");
    assert!(!answer.stderr.replace('\n', "").contains(char::is_control), "{all}");
    assert!(!answer.stdout.contains(&0x1b), "{all}");
    answer
}

/// Everything of the user's, and everything of ours but the directory of locks.
fn everything(world: &World) -> String {
    let ours = ["runs", "worktrees"]
        .map(|directory| files_below(&world.repo.join(".frites").join(directory)));
    let events = fs::read(world.repo.join(".frites/events.jsonl")).unwrap_or_default();
    format!("{}{}{ours:?}{events:?}", world.belongings(), world.git(["for-each-ref"]))
}

/// Two candidates, captured and judged.
fn world_with_a_verdict() -> World {
    let world = World::new();
    world.spawn(["-c", "a", "b"]);
    fs::write(world.worktree("1/a").join("README"), "better\n").unwrap();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world
}

#[test]
fn fuzzed_arguments_are_refused_in_one_line_without_effect() {
    let world = world_with_a_verdict();
    let before = everything(&world);
    let slots: [&[&str]; 25] = [
        &["spawn", "--run="],
        &["spawn", "-c", "good", "--candidate="],
        &["spawn", "--base="],
        &["spawn", "--from="],
        &["spawn", "--from=1/"],
        &["spawn", "-p", "x", "--agent="],
        &["spawn", "-n", "1", "--timeout="],
        &["spawn", "-n"],
        &["spawn", "--prompt-file=", "--", "true"],
        &["run", "--resume="],
        &["judge", "--retries="],
        &["judge", "--rank="],
        &["judge", "--candidate="],
        &["diff", ""],
        &["diff", "1/"],
        &["diff", "1/a@"],
        &["diff", "1/a", ""],
        &["apply", "1/"],
        &["apply", "--branch="],
        &["clean", "1/"],
        &["log", ""],
        &["config", ""],
        &["man", ""],
        &["--color="],
        &[""],
    ];
    let mut random = random_numbers();
    for slot in slots {
        for _ in 0..2 {
            let mut word = some_of(&[&ODD[..], &[b"1", b"a", b"h", b"-"]].concat(), 4, &mut random);
            // Whatever the numbers are, no slot takes this.
            word.extend(b"\x1b\n");
            let at =
                slot.iter().rposition(|part| part.is_empty() || part.ends_with(['=', '/', '@']));
            let fill = |(n, part): (usize, &&str)| {
                let word = if Some(n) == at { &word[..] } else { b"" };
                OsString::from_vec([part.as_bytes(), word].concat())
            };
            let mut args: Vec<OsString> = slot.iter().enumerate().map(fill).collect();
            args.extend(at.is_none().then(|| OsString::from_vec(word.clone())));
            let answer = ask(&world, &args);
            assert!([2, 128].contains(&answer.code), "{args:?}: {answer:?}");
            assert_eq!(answer.out(), "", "{args:?}");
        }
    }
    assert_eq!(everything(&world), before);
}

#[test]
fn fuzzed_configuration_is_read_or_refused_with_its_place() {
    let mut world = world_with_a_verdict();
    let before = everything(&world);
    let whole = "[oracle]\ntest = [\"true\"]\ntimeout = \"10m\"\n[agents.\"m\"]\ncommand = 'x'\n[spawn]\njobs = 4\n";
    let mut texts: Vec<Vec<u8>> = vec![
        [b"a = ", "[".repeat(50_000).as_bytes()].concat(),
        "a.".repeat(50_000).into_bytes(),
        b"\"a\\nfatal: forged \\u001b[31m\" = 1\n".to_vec(),
        b"[agents.\"x\\ny\"]\ncommand = 3\n".to_vec(),
        b"[spawn]\njobs = 99999999999999999999\n".to_vec(),
        b"\xff\xfe".to_vec(),
    ];
    let mut random = random_numbers();
    for _ in 0..24 {
        let mut text = whole.as_bytes().to_vec();
        let at = random.usize(..text.len());
        let end = (at + random.usize(..4)).min(text.len());
        text.splice(
            at..end,
            some_of(&[&ODD[..], &[b"\"", b"=", b"[", b"#", b"\0"]].concat(), 3, &mut random),
        );
        texts.push(text);
    }
    let file = world.repo.join(".frites.toml");
    for text in texts {
        fs::write(&file, &text).unwrap();
        let answer = ask(&world, ["config"]);
        let place = format!("fatal: {}:", file.display());
        assert!(
            answer.code == 0 || answer.stderr.starts_with(&place),
            "{}: {answer:?}",
            text.escape_ascii()
        );
    }
    fs::remove_file(&file).unwrap();
    // Neither is a pipe waited for that nobody writes into.
    world.run(&world.repo, "mkfifo", [".frites.toml"]).expect(0);
    let answer = ask(&world, ["config"]);
    assert!(
        answer.stderr.contains("could not read")
            && answer.stderr.contains("it is not a regular file"),
        "{}",
        answer.stderr
    );
    fs::remove_file(&file).unwrap();
    for (key, value) in [
        ("frites.diff.exclude", "[z-a"),
        ("frites.seed.copy", "[z-a"),
        ("frites.seed.link", "a\n\u{1b}/../../x"),
        ("frites.env.deny", "[z-a"),
        ("frites.agents.x\u{1b}.command", "'"),
        ("frites.limits.min-free-disk", "1e999TiB"),
        ("frites.spawn.timeout", "99999999999999999999h"),
    ] {
        world.git(["config", key, value]);
        let answer = ask(&world, ["spawn", "-n", "1"]);
        assert_eq!(answer.code, 128, "{key}: {answer:?}");
        world.git(["config", "--unset", key]);
    }
    world.set_env("FRITES_DEPTH", "4294967295");
    world.set_env("FRITES_SPAWN_\u{1b}\nfatal: x", "1");
    assert_eq!(ask(&world, ["spawn", "-n", "1"]).code, 128);
    assert_eq!(everything(&world), before);
}

#[test]
fn fuzzed_worktreeinclude_lines_are_named_and_skipped() {
    let world = World::new();
    world.write(".gitignore", "*.key\n");
    world.commit("ignore");
    world.write("a.key", "k\n");
    let mut lines: Vec<Vec<u8>> =
        vec![b"{".repeat(99), b"[z-a]\x1b[31m".to_vec(), b"**/".repeat(20_000), b"\\".to_vec()];
    let bad = lines.len();
    let mut random = random_numbers();
    lines.extend((0..40).map(|_| {
        let odd = some_of(&[&ODD[..], &[b"*", b"[", b"!", b"**", b"}"]].concat(), 6, &mut random);
        odd.split(|b| *b == b'\n').collect::<Vec<_>>().concat()
    }));
    lines.push(b"*.key".to_vec());
    world.write(".worktreeinclude", lines.join(&b'\n'));
    let answer = ask(&world, ["spawn", "-q", "-n", "1"]).expect(0);
    for line in 1..=bad {
        let named = format!("warning: .worktreeinclude:{line}: left out, it is not a pattern: ");
        assert!(answer.stderr.contains(&named), "{line}:\n{}", answer.stderr);
    }
    assert_eq!(fs::read(world.worktree("1/c1").join("a.key")).unwrap(), b"k\n");
    fs::remove_file(world.repo.join(".worktreeinclude")).unwrap();
    world.run(&world.repo, "mkfifo", [".worktreeinclude"]).expect(0);
    let before = everything(&world);
    assert!(
        ask(&world, ["spawn", "-n", "1"])
            .expect(128)
            .stderr
            .contains(".worktreeinclude': it is not a regular file")
    );
    assert_eq!(everything(&world), before);
    fs::remove_file(world.repo.join(".worktreeinclude")).unwrap();
    world.assert_clean();
}

#[test]
fn fuzzed_junit_files_decide_nothing() {
    let world = World::new();
    let mut random = random_numbers();
    let tags: [&[u8]; 10] = [
        b"<testsuite>",
        b"</testsuite>",
        b"<testcase name='\x1b[31m&#10;'>",
        b"<failure>",
        b"</failure>",
        b"</testcase>",
        b"<![CDATA[",
        b"&",
        b"\xff",
        b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    ];
    let mut files = vec![b"<a>".repeat(100_000), b"\0".repeat(100), Vec::new()];
    files.extend((0..5).map(|_| some_of(&tags, 12, &mut random)));
    let run = world.spawn(["-n", &files.len().to_string()]);
    for (at, bytes) in files.iter().enumerate() {
        fs::write(world.worktree(&format!("{run}/c{}", at + 1)).join("r"), bytes).unwrap();
    }
    world.git(["config", "frites.oracle.junit", "r.xml"]);
    let answer = ask(&world, ["judge", "--json", "--test", "cp r r.xml; exit 1"]).expect(1);
    let entries = answer.json()["candidates"].clone();
    for entry in &entries.as_array().unwrap()[..3] {
        let problem = entry["results"][0]["tests"]["problem"].as_str().unwrap_or_default();
        assert!(problem.starts_with("'r.xml' is no JUnit file: "), "{entry}");
    }
    ask(&world, ["judge", "--replay"]).expect(1);
    world.assert_clean();
}

#[test]
fn fuzzed_event_log_hides_no_event_and_prints_no_control_codes() {
    let world = world_with_a_verdict();
    let file = world.repo.join(".frites/events.jsonl");
    let mut random = random_numbers();
    let mut log = fs::read(&file).unwrap();
    let told = ask(&world, ["log"]).expect(0).out();
    log.extend(
        b"{\"event\":\"\\n\\u001b[31mfatal: x\",\"run\":\"1\\u009b\",\"k\\u001b\":{\"\\u007f\":1},\"time\":\"x\"}\n",
    );
    log.extend(
        [&b"[".repeat(50_000)[..], b"\n{\"seconds\":1e308,\"run\":\"99999999999999999999\"}\n"]
            .concat(),
    );
    for _ in 0..30 {
        log.extend(some_of(
            &[&ODD[..], &[b"{", b"\"run\":", b"1,", b"}", b"\0"]].concat(),
            8,
            &mut random,
        ));
    }
    fs::write(&file, &log).unwrap();
    let text = ask(&world, ["log"]).expect(0).out();
    assert!(
        text.starts_with(&told) && !text.replace('\n', "").contains(char::is_control),
        "{text}"
    );
    assert_eq!(ask(&world, ["log", "1"]).expect(0).out(), told);
    let lines = ask(&world, ["log", "--json"]).expect(0).out();
    assert!(
        lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
        "{lines}"
    );
    // An event appended to a damaged log is a line of its own.
    world.spawn(["-n", "1"]);
    assert_eq!(ask(&world, ["log", "2"]).expect(0).out().lines().count(), 1);
    assert!(fs::read(&file).unwrap().starts_with(&log));
    fs::remove_file(&file).unwrap();
    world.run(&world.repo, "mkfifo", [".frites/events.jsonl"]).expect(0);
    for verb in ["log", "spawn"] {
        assert!(
            ask(&world, [verb])
                .expect(128)
                .stderr
                .contains("events.jsonl': it is not a regular file")
        );
    }
}

/// Puts another `run.toml` into a run's record, as a fetch from somebody else could.
fn plant(world: &World, edit: impl Fn(&str) -> String) {
    let record = "refs/frites/1/@record";
    fs::write(
        world.home().join("run.toml"),
        edit(&world.git(["show", &format!("{record}:run.toml")])),
    )
    .unwrap();
    let script = format!(
        "blob=$(git hash-object -w \"$HOME/run.toml\"); tree=$(printf '100644 blob %s\\trun.toml\\n' $blob | git mktree)
         git update-ref {record} $(git commit-tree $tree -p {record}^1 -m x)"
    );
    world.sh(&world.repo, &script).expect(0);
}

#[test]
fn fuzzed_records_never_become_git_arguments() {
    let world = world_with_a_verdict();
    let victim = world.home().join("victim");
    let whole = world.git(["rev-parse", "refs/frites/1/@record"]);
    let base = world.git(["rev-parse", "HEAD"]);
    let commands: [&[&str]; 7] = [
        &["status"],
        &["diff", "1"],
        &["diff", "1/a"],
        &["judge", "--test", "true", "1"],
        &["apply", "1", "--no-switch", "-m", "x", "--branch", "x"],
        &["spawn", "--from", "1/a"],
        &["clean", "1"],
    ];
    for id in [&format!("--output={}", victim.display()), "\u{1b}[31m", "", "HEAD"] {
        plant(&world, |text| text.replace(&base, &id.escape_default().to_string()));
        for command in commands {
            let answer = ask(&world, command).expect(128);
            assert!(
                answer.stderr.contains("run.toml in refs/frites/1/@record is damaged"),
                "{}",
                answer.stderr
            );
            assert!(!victim.exists(), "{command:?} has written a file");
        }
        world.git(["update-ref", "refs/frites/1/@record", &whole]);
    }
    // Numbers at their ends.
    let parent = format!(
        "\n[parent]\nrun = \"1\"\ncandidate = \"a\"\nroot = \"{base}\"\ndepth = 4294967295\n"
    );
    plant(&world, |text| format!("{text}{parent}"));
    assert!(
        ask(&world, ["spawn", "--from", "1/a"]).expect(128).stderr.contains("limits.inheritance")
    );
    world.git(["update-ref", "refs/frites/1/@record", &whole]);
    let tree = world.tree("refs/frites/1/a");
    let message = "x\n\nFrites-Iteration: 4294967295\nFrites-State: open";
    let capture = world.git(["commit-tree", &tree, "-p", &base, "-m", message]);
    world.git(["update-ref", "refs/frites/1/a", &capture]);
    fs::write(world.worktree("1/a").join("README"), "best\n").unwrap();
    ask(&world, ["diff", "1"]).expect(0);
    // A record that is a file is rebuilt, whatever lies in its place.
    for file in ["1/a/candidate.toml", "1/a/index", "1/a/seeds.toml", "1/run.toml", "1/active"] {
        let file = world.repo.join(".frites/runs").join(file);
        let _ = fs::remove_file(&file);
        world.run(&world.repo, "mkfifo", [&file]).expect(0);
        for command in [&["status"][..], &["diff", "1"]] {
            ask(&world, command).expect(0);
        }
    }
    // The way out that the hint shows.
    plant(&world, |_| "nonsense".into());
    let hint = "hint: `git update-ref -d refs/frites/1/@record` deletes it";
    assert!(ask(&world, ["spawn", "-n", "1"]).expect(128).stderr.contains(hint));
    world.git(["update-ref", "-d", "refs/frites/1/@record"]);
    ask(&world, ["status"]).expect(0);
    assert_eq!(world.spawn(["-n", "1"]), "2");
    assert_eq!(world.git(["show", "refs/frites/1/a:README"]), "best");
}
