//! Landings that a person finishes: `apply --conflicts`, then a commit and a merge by hand.
use std::fs;

use crate::common::World;

const CHANGE: &str = "printf 'one\\nTWO\\nthree\\n' > src/lib.txt; echo new > new.txt";

/// A change of `main` with which [`CHANGE`] is in conflict.
const MOVED: &str = "printf 'one\\nzwei\\nthree\\n' > src/lib.txt; git commit -qam moved";

/// A judged candidate in conflict with `main`, whose conflicts are on `frites/apply/1`.
fn in_conflict() -> World {
    let world = World::new();
    world.judged("true", &[CHANGE]);
    world.sh(&world.repo, MOVED).expect(0);
    world.frites(["apply", "--conflicts"]).refuses(1, "1/c1 conflicts with HEAD in src/lib.txt");
    world
}

/// Resolves and commits with a message of the person's own; gives the commit.
fn resolve(world: &World) -> String {
    let script = "printf 'one\\nZWEI\\nthree\\n' > src/lib.txt; git add -A; git commit -qm mine";
    world.sh(&world.repo, script).expect(0);
    world.git(["rev-parse", "HEAD"])
}

#[track_caller]
fn assert_landing(world: &World, landing: &str, commit: Option<&str>, branch: Option<&str>) {
    let candidate = world.first_candidate("1");
    assert_eq!(candidate["landing"], landing, "{candidate}");
    assert_eq!(candidate["landing_commit"].as_str(), commit, "{candidate}");
    let full = branch.map(|branch| format!("refs/heads/{branch}"));
    assert_eq!(candidate["landing_branch"].as_str(), full.as_deref(), "{candidate}");
}

fn events(world: &World, name: &str) -> Vec<serde_json::Value> {
    world.events().into_iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn conflicts_that_a_person_commits_and_merges_are_landed_and_then_merged() {
    let world = in_conflict();
    assert_landing(&world, "pending", None, None);
    assert_eq!(world.first_candidate("1")["conflicts"], "frites/apply/1");
    assert!(world.frites(["status", "1"]).expect(0).out().contains("pending (conflicts)"));
    let commit = resolve(&world);
    assert_landing(&world, "landed", Some(&commit), Some("frites/apply/1"));
    assert!(world.first_candidate("1")["conflicts"].is_null());
    world.git(["switch", "-q", "main"]);
    world.frites(["clean", "1"]).expect(0);
    assert_landing(&world, "landed", Some(&commit), Some("frites/apply/1"));
    world.write("later.txt", "l\n");
    world.commit("later");
    world.git(["merge", "-q", "--no-edit", "frites/apply/1"]);
    assert_landing(&world, "merged", Some(&commit), Some("main"));
    world.git(["branch", "-q", "-d", "frites/apply/1"]);
    assert_landing(&world, "merged", Some(&commit), Some("main"));
    // Each is one event, however often it is seen.
    let (landed, merged) = (events(&world, "landed"), events(&world, "merged"));
    assert_eq!((landed.len(), merged.len()), (1, 1));
    assert_eq!(
        (&landed[0]["branch"], &landed[0]["verified"]),
        (&"frites/apply/1".into(), &false.into())
    );
    assert_eq!(
        (&merged[0]["branch"], &merged[0]["commit"]),
        (&"main".into(), &commit.as_str().into())
    );
    // Refs alone tell it, too.
    fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    assert_landing(&world, "merged", Some(&commit), Some("main"));
    world.assert_clean();
}

#[test]
fn landing_whose_event_cannot_be_written_is_not_forgotten() {
    let world = World::new();
    world.judged("true", &[CHANGE, "seq 9 > nine"]);
    world.sh(&world.repo, &format!("git branch rel; {MOVED}")).expect(0);
    let events = ".frites/events.jsonl";
    world.sh(&world.repo, &format!("mv {events} ../kept && mkdir {events}")).expect(0);
    let merge = world.frites(["apply", "--merge", "--into", "rel", "1/c2"]);
    let merge = merge.refuses(128, "events.jsonl");
    let hint = "hint: the landing itself is done: 'rel' is where it put the change of 1/c2\n";
    assert!(merge.stderr.contains(hint), "{}", merge.stderr);
    world.frites(["apply", "--conflicts", "1/c1"]).refuses(128, "events.jsonl");
    world.sh(&world.repo, &format!("rmdir {events} && mv ../kept {events}")).expect(0);
    let said = world.frites(["status"]).expect(0).stderr;
    assert!(said.contains("'frites/apply/1' has left its conflicts there"), "{said}");
    let commit = resolve(&world);
    assert_landing(&world, "landed", Some(&commit), Some("frites/apply/1"));
    let status = world.frites(["status", "--json", "1"]).expect(0).json();
    assert_eq!(status["runs"][0]["candidates"][1]["landing"], "merged");
    assert_eq!(self::events(&world, "merge-failed").len(), 0);
    world.assert_clean();
}

#[test]
fn resolution_is_recognised_although_nothing_looked_before_the_branch_went() {
    for (merge, branch) in [
        (
            "git switch -q main; git merge -q frites/apply/1; git branch -q -d frites/apply/1",
            "main",
        ),
        (
            "git switch -q main; git merge -q --no-ff --no-edit frites/apply/1; git branch -qD frites/apply/1",
            "main",
        ),
        ("git branch -m fix; git switch -q main; git merge -q fix", "main"),
        ("git branch -m fix", "fix"),
        ("git branch further", "further"),
    ] {
        let world = in_conflict();
        let commit = resolve(&world);
        world.sh(&world.repo, merge).expect(0);
        assert_landing(&world, "merged", Some(&commit), Some(branch));
        world.assert_clean();
    }
}

#[test]
fn commit_that_was_amended_is_still_the_landing() {
    let world = in_conflict();
    resolve(&world);
    world.git(["commit", "-q", "--amend", "-m", "better"]);
    let amended = world.git(["rev-parse", "HEAD"]);
    assert_landing(&world, "landed", Some(&amended), Some("frites/apply/1"));
    // Further commits are not part of it, and a rebased one is not followed.
    world.write("more.txt", "m\n");
    world.commit("more");
    assert_landing(&world, "landed", Some(&amended), Some("frites/apply/1"));
    world.git(["switch", "-q", "main"]);
    world.write("later.txt", "l\n");
    world.commit("later");
    world.git(["rebase", "-q", "main", "frites/apply/1"]);
    assert_landing(&world, "landed", Some(&amended), Some("frites/apply/1"));
    world.assert_clean();
}

#[test]
fn other_peoples_commits_are_no_resolution() {
    // The branch is moved to commits that were made elsewhere.
    let world = in_conflict();
    world.sh(&world.repo, "git switch -qf main; echo x > x; git add x; git commit -qm 'Land 1/c1' -m 'Frites-Run: 1/c1@1'").expect(0);
    assert_landing(&world, "pending", None, None);
    world.sh(&world.repo, "git switch -q frites/apply/1; git merge -q main").expect(0);
    assert_landing(&world, "pending", None, None);
    world.frites(["apply", "--undo", "1/c1"]).refuses(1, "are not committed yet");
    // Given up.
    world.sh(&world.repo, "git switch -q main; git branch -qD frites/apply/1").expect(0);
    assert_landing(&world, "pending", None, None);
    assert!(world.first_candidate("1")["conflicts"].is_null());
    world.frites(["apply", "--undo", "1/c1"]).refuses(1, "1/c1 has not landed");
    world.frites(["clean", "1"]).expect(0);
    assert_landing(&world, "discarded", None, None);
    world.assert_clean();
}

#[test]
fn undo_takes_a_resolution_back_and_keeps_it() {
    let world = in_conflict();
    let before = world.git(["rev-parse", "main"]);
    let commit = resolve(&world);
    let answer = world.frites(["apply", "--undo"]).expect(0);
    assert!(
        answer.stderr.contains("your resolution of the conflicts is kept"),
        "{}",
        answer.stderr
    );
    assert_eq!(world.git(["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(world.git(["rev-parse", "HEAD"]), before);
    assert_eq!(world.git(["status", "--porcelain"]), "");
    assert_eq!(world.git(["rev-parse", "refs/frites/1/@withdrawn^1"]), commit);
    assert_eq!(world.git(["branch", "--list", "frites/apply/*"]), "");
    assert_eq!(world.first_candidate("1")["landing"], "undone");
    world.frites(["apply", "--undo"]).refuses(1, "run 1 was undone already");
    world.assert_clean();
}

#[test]
fn undo_reverts_a_resolution_where_a_person_merged_it() {
    for merge in ["git merge -q --no-ff --no-edit frites/apply/1", "git merge -q frites/apply/1"] {
        let world = in_conflict();
        let commit = resolve(&world);
        world.sh(&world.repo, "git switch -q main").expect(0);
        let before = world.tree("main");
        world.sh(&world.repo, merge).expect(0);
        assert_eq!(world.frites(["apply", "--undo"]).expect(0).out(), "main\n");
        assert_eq!(world.tree("main"), before);
        let message = world.git(["log", "-1", "--format=%B"]);
        assert_eq!(
            message,
            format!(
                "Revert \"mine\"\n\nThis reverts commit {commit}.\n\nFrites-Undone: 1/c1@1\nFrites-Into: main\n"
            )
        );
        assert_eq!(world.first_candidate("1")["landing"], "undone");
        world.frites(["apply", "--undo"]).refuses(1, "run 1 was undone already");
        assert_eq!(world.first_candidate("1")["landing"], "undone");
        world.assert_clean();
    }
}

#[test]
fn damaged_landing_is_named_and_stops_no_command() {
    let world = in_conflict();
    resolve(&world);
    world.attempts(&["echo other > other"]);
    let blob = world.git(["hash-object", "-w", "README"]);
    let tree =
        world.sh(&world.repo, &format!("printf '100644 blob {blob}\\trun.toml\\n' | git mktree"));
    let tree = tree.expect(0).out().trim().to_owned();
    let record = world.git(["commit-tree", "-m", "damaged", &tree]);
    world.git(["update-ref", "refs/frites/1/@record", &record]);
    let answer = world.frites(["diff", "2/c1", "--name-only"]);
    assert!(
        answer.stderr.contains("warning: the landing of 1/c1 cannot be looked at: run.toml in"),
        "{answer:?}"
    );
}
