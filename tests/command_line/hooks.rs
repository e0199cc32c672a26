//! Hooks: the user's own commands at certain moments. tests/tools/hooks.rs has the manual's
//! recipes.
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{World, answer, kill, make_executable, poll, write};

const NAMES: [&str; 4] = ["candidate-ended", "verdict", "landed", "before-clean"];

/// Sets a hook to a shell script, for the user and not for the repository.
fn set(world: &World, name: &str, script: &str) {
    let file = world.home().join(format!("hook-{name}"));
    write(&file, script);
    let words = format!("sh '{}'", file.display());
    world.git(["config", "--global", &format!("frites.hooks.{name}"), &words]);
}

/// A world whose hooks append their documents to files, after the variables and the directory; each
/// candidate has a file, because their hooks run at the same time.
fn watched() -> World {
    let world = World::new();
    for name in NAMES {
        let to = world.home().join(format!("seen-{name}"));
        let told = r#"{ echo "$FRITES_RUN/${FRITES_CANDIDATE-} $PWD"; cat; }"#;
        set(&world, name, &format!("{told} >>'{}'-${{FRITES_CANDIDATE-}}", to.display()));
    }
    world
}

/// What a hook has seen: for each time the run and candidate, and the document.
fn seen(world: &World, name: &str) -> Vec<(String, Value)> {
    let read = |of: &str| fs::read_to_string(world.home().join(format!("seen-{name}-{of}")));
    let text: String = ["", "c1", "c2"].map(|of| read(of).unwrap_or_default()).concat();
    let mut found = Vec::new();
    for part in text.split_inclusive("\n}\n") {
        let (line, document) = part.split_once('\n').unwrap();
        let (of, dir) = line.split_once(' ').unwrap();
        assert_eq!(dir, world.repo.to_str().unwrap(), "in the user's checkout");
        let document: Value = serde_json::from_str(document).unwrap();
        assert_eq!((&document["hook"], &document["version"]), (&name.into(), &1.into()));
        found.push((of.to_owned(), document));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn each_moment_has_its_hook_and_its_document() {
    let world = watched();
    let attempt = "test $FRITES_CANDIDATE = c1 || exit 3; echo good >>README";
    let run = ["run", "-q", "-n", "2", "--test", "grep -q good README", "--", "sh", "-c", attempt];
    world.frites(run).expect(0);
    let ended = seen(&world, "candidate-ended");
    assert_eq!(ended.iter().map(|(of, _)| of.as_str()).collect::<Vec<_>>(), ["1/c1", "1/c2"]);
    assert_eq!((&ended[0].1["state"], &ended[0].1["lines"]), (&"succeeded".into(), &1.into()));
    assert_eq!((&ended[1].1["state"], &ended[1].1["exit_code"]), (&"failed".into(), &3.into()));
    assert!(ended[1].1["log"].as_str().unwrap().ends_with("/runs/1/c2/agent.log"));
    let verdict = seen(&world, "verdict");
    assert_eq!((verdict.len(), verdict[0].0.as_str()), (1, "1/"));
    assert_eq!(verdict[0].1["recommended"], "c1");

    world.frites(["judge", "-q", "--replay", "1"]).expect(0);
    assert_eq!(seen(&world, "verdict").len(), 2, "a new decision is a verdict");
    world.frites(["apply", "-q", "-m", "good"]).expect(0);
    let landed = seen(&world, "landed");
    assert_eq!((landed.len(), landed[0].0.as_str()), (1, "1/c1"));
    assert_eq!(landed[0].1["branch"], "frites/apply/1");
    assert_eq!(landed[0].1["commit"], world.git(["rev-parse", "HEAD"]));

    world.frites(["clean", "-n"]).expect(0);
    assert_eq!(seen(&world, "before-clean").len(), 0, "nothing is removed yet");
    world.frites(["clean", "-q"]).expect(0);
    let cleaned = seen(&world, "before-clean");
    assert_eq!(cleaned.iter().map(|(of, _)| of.as_str()).collect::<Vec<_>>(), ["1/c1", "1/c2"]);
    assert_eq!(cleaned[0].1["worktree"], world.worktree("1/c1").to_str().unwrap());
    assert_eq!(cleaned[0].1["landing"], "landed");
}

#[test]
fn merges_of_run_and_apply_have_landed() {
    let world = watched();
    let attempt = ["--", "sh", "-c", "echo good >>README"];
    let run = ["run", "-q", "--merge", "-n", "1", "--test", "true"].into_iter().chain(attempt);
    world.frites(run).expect(0);
    world.judged("true", &["echo more >>src/lib.txt"]);
    world.frites(["apply", "-q", "--merge", "2"]).expect(0);
    let branches: Vec<Value> = seen(&world, "landed")
        .into_iter()
        .map(|(_, mut document)| document["branch"].take())
        .collect();
    assert_eq!(branches, ["main", "main"]);
}

#[test]
fn hook_that_fails_is_a_warning_with_the_end_of_its_output() {
    let world = World::new();
    world.attempts(&["echo x >>README"]);
    set(&world, "verdict", "echo no connection; exit 4");
    let answer = world.frites(["judge", "--test", "true"]).expect(0);
    let warned = answer.stderr.split_once("warning: hooks.verdict failed: exit 4\n").unwrap().1;
    assert!(warned.starts_with("  | no connection\n"), "{}", answer.stderr);
    world.git(["config", "--global", "frites.hooks.verdict", "/no/such/program"]);
    let answer = world.frites(["judge", "-q", "--test", "false"]).expect(1);
    assert!(
        answer.stderr.contains("warning: hooks.verdict failed: could not start"),
        "{}",
        answer.stderr
    );
}

#[test]
fn hook_has_a_time_limit_and_leaves_nothing_behind() {
    let world = World::new();
    world.attempts(&["echo x >>README"]);
    let id = world.home().join("id");
    set(&world, "verdict", &format!("sleep 1000 & echo $! >'{}'; wait", id.display()));
    world.git(["config", "--global", "frites.hooks.timeout", "1s"]);
    let answer = world.frites(["judge", "-q", "--test", "true"]).expect(0);
    assert!(
        answer.stderr.contains("warning: hooks.verdict failed: timed out"),
        "{}",
        answer.stderr
    );
    let id = fs::read_to_string(id).unwrap();
    assert!(!kill(["-0", id.trim()]), "{id} is ended");
}

#[test]
fn hook_can_keep_a_worktree() {
    let world = World::new();
    world.attempts(&["echo x >>README", "echo y >>README"]);
    set(&world, "before-clean", "test $FRITES_CANDIDATE != c1 || { echo in use; exit 1; }");
    let kept = world.worktree("1/c1").join("README");
    for words in [&["clean", "1"][..], &["clean", "--discard", "1"]] {
        let answer = world.frites(words).expect(1);
        let words = "hooks.before-clean refuses that 1/c1 is removed: exit 1";
        assert!(answer.stderr.contains(words) || answer.out().contains(words), "{answer:?}");
        assert!(kept.exists() && !world.worktree("1/c2").exists());
    }
    world.frites(["clean", "1/c1"]).refuses(1, "refuses that 1/c1 is removed");
    assert_eq!(world.git(["branch", "--list", "frites/run/1/*"]).lines().count(), 1);
    world.git(["config", "--global", "--unset", "frites.hooks.before-clean"]);
    world.frites(["clean", "1"]).expect(0);
    assert!(!kept.exists());
}

#[test]
fn what_is_written_while_a_hook_decides_is_captured() {
    let world = World::new();
    world.attempts(&["echo x >>README"]);
    let dump = world.worktree("1/c1").join("dump");
    set(&world, "before-clean", &format!("echo rows >'{}'", dump.display()));
    world.frites(["clean", "1"]).expect(0);
    assert!(!dump.exists());
    assert_eq!(world.git(["show", "refs/frites/1/c1:dump"]), "rows");
}

#[test]
fn candidate_that_is_added_while_another_run_is_removed_is_not_forgotten() {
    let world = World::new();
    world.attempts(&["echo a >a"]);
    world.attempts(&["echo b >b"]);
    let add = "test $FRITES_RUN = 1 || exit 0; git frites add 2 -c late -- sh -c 'echo x >late'";
    set(&world, "before-clean", add);
    let cleaned = world.frites(["clean", "--forget", "1", "2"]).expect(1);
    assert!(
        cleaned.out().contains(
            "forgot run 1
"
        ),
        "{cleaned:?}"
    );
    assert!(cleaned.stderr.contains("run 2 has got other candidates meanwhile"), "{cleaned:?}");
    assert_eq!(world.git(["show", "refs/frites/2/late:late"]), "x");
    assert!(world.worktree("2/c1").exists() && world.worktree("2/late").exists());
}

#[test]
fn hook_is_not_asked_about_a_worktree_that_cannot_be_captured() {
    let world = World::new();
    world.attempts(&["git init -q inner && echo x >inner/file"]);
    set(&world, "before-clean", "echo asked >\"$HOME/asked\"");
    world.frites(["clean", "1"]).expect(1);
    assert!(world.worktree("1/c1").join("inner/file").exists());
    assert!(!world.home().join("asked").exists());
}

#[test]
fn worktree_stays_if_its_hook_is_interrupted() {
    let world = World::new();
    world.attempts(&["echo x >>README"]);
    let begun = world.home().join("begun");
    let script = format!("trap 'exit 0' TERM; echo >'{}'; sleep 600 & wait", begun.display());
    set(&world, "before-clean", &script);
    let mut clean = world.command(&world.repo, "git-frites", ["clean", "--discard", "1"]);
    let child = clean.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    poll(|| begun.exists());
    assert!(kill([child.id().to_string()]));
    let ended = answer(&child.wait_with_output().unwrap()).expect(143);
    let words = "hooks.before-clean refuses that 1/c1 is removed: interrupted";
    assert!(ended.stderr.contains(words) || ended.out().contains(words), "{ended:?}");
    assert!(world.worktree("1/c1").join("README").exists());
}

#[test]
fn hooks_may_use_git_frites_and_do_not_start_themselves() {
    let world = World::new();
    set(
        &world,
        "verdict",
        "echo judged >>$HOME/seen; git frites judge -q --replay; git frites apply -q -m good",
    );
    set(&world, "landed", "echo landed >>$HOME/seen; git frites clean -q $FRITES_RUN");
    set(&world, "before-clean", "echo cleaned >>$HOME/seen");
    world.judged("true", &["echo good >>README"]);
    assert_eq!(fs::read_to_string(world.home().join("seen")).unwrap(), "judged\nlanded\ncleaned\n");
    assert_eq!(world.git(["log", "-1", "--format=%s %D"]), "good HEAD -> frites/apply/1");
    let reflog = world.git(["reflog", "frites/apply/1"]);
    assert!(!reflog.contains("attempt"), "it is the user's doing: {reflog}");
}

#[test]
fn nobody_else_names_a_hook() {
    let world = World::new();
    world.write(".frites.toml", "[hooks]\nverdict = 'touch owned'\n");
    world.frites(["config"]).refuses(128, "'hooks.verdict' cannot be set in");
    fs::remove_file(world.repo.join(".frites.toml")).unwrap();
    // An attempt that is not guarded can write to the repository's configuration.
    let owned = world.home().join("owned");
    let plant = format!(
        "echo x >>README; git config frites.hooks.before-clean 'touch {}'",
        owned.display()
    );
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", &plant]).expect(0);
    let answer = world.frites(["clean", "1"]).expect(1);
    assert!(answer.stderr.contains("the configuration of git-frites changed"), "{}", answer.stderr);
    assert!(!owned.exists() && world.worktree("1/c1").exists());
}

#[test]
fn a_hook_that_a_landing_has_changed_does_not_run_after_it() {
    let world = World::new();
    for (at, words) in ["./notify", "sh notify", "sh -c 'exec ./notify now'"].iter().enumerate() {
        let notify = format!("#!/bin/sh\ncat >/dev/null\necho {at} >>\"$HOME/ran\"\n");
        write(&world.repo.join("notify"), &notify);
        make_executable(&world.repo.join("notify"));
        world.commit("a hook");
        world.git(["config", "frites.hooks.landed", words]);
        let honest =
            ["run", "--merge", "-n", "1", "--test", "true", "--", "sh", "-c", "echo x >>README"];
        world.frites(honest).expect(0);
        let forged = "echo x >>README; echo 'echo forged >>\"$HOME/ran\"' >notify";
        let merged =
            world.frites(["run", "--merge", "-n", "1", "--test", "true", "--", "sh", "-c", forged]);
        let said = merged.expect(0).stderr;
        assert!(
            said.contains(
                "hooks.landed was not run: it names 'notify', which the landing has changed"
            ),
            "{said}"
        );
        let ran = fs::read_to_string(world.home().join("ran")).unwrap();
        assert!(ran.ends_with(&format!("{at}\n")) && !ran.contains("forged"), "{words}: {ran}");
    }
}
