//! `add`: more candidates for a run that exists, also with changes that were made elsewhere.
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use serde_json::json;

use crate::common::edits::{LARGE, MIDDLE, SMALL};
use crate::common::{World, make_executable, sentence, write};

/// A run of two candidates that was judged: `c1` passed.
fn judged() -> World {
    let world = World::new();
    world.judged("grep -q TWO src/lib.txt", &[LARGE, "echo x > README"]);
    world
}

#[test]
fn added_candidates_start_at_the_runs_base_and_compete() {
    let world = judged();
    let base = world.git(["rev-parse", "HEAD"]);
    world.write("README", "later\n");
    world.commit("later");
    let before = world.belongings();
    let answer = world.frites(["add", "1"]).expect(0);
    assert_eq!(answer.out(), format!("1/c3\t{}\n", world.worktree("1/c3").display()));
    world.frites(["add", "1", "-n", "2", "-q"]).expect(0);
    world.frites(["add", "1", "-c", "mine", "-q"]).expect(0);
    assert_eq!(world.belongings(), before);
    for name in ["c3", "c4", "c5", "mine"] {
        let worktree = world.worktree(&format!("1/{name}"));
        assert_eq!(world.git_in(&worktree, ["rev-parse", "HEAD"]), base, "{name}");
        assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "", "{name}");
    }
    // The verdict stays what it was until the run is judged again.
    world.frites(["apply", "--branch", "before", "--no-switch", "-m", "x"]).expect(0);
    world.sh(&world.worktree("1/c4"), SMALL).expect(0);
    world.sh(&world.worktree("1/mine"), MIDDLE).expect(0);
    let out = world.frites(["judge", "--test", "grep -q TWO src/lib.txt"]).expect(0).out();
    assert!(
        sentence(&out).starts_with("judge: 3 of 4 passed; c4 changes the fewest lines"),
        "{out}"
    );
    let states: Vec<_> =
        world.frites(["status", "--json", "1"]).expect(0).json()["runs"][0]["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| (c["candidate"].clone(), c["index"].clone(), c["state"].clone()))
            .collect();
    assert_eq!(states[4], (json!("c5"), json!(5), json!("open")));
    let added: Vec<_> = world.events().into_iter().filter(|e| e["event"] == "added").collect();
    assert_eq!(added[1]["candidates"], json!(["c4", "c5"]));
    world.assert_clean();
}

#[test]
fn change_that_was_made_elsewhere_competes() {
    let world = judged();
    // A branch that left the base's history before it, with two commits.
    world.git(["switch", "-q", "-c", "elsewhere"]);
    world.sh(&world.repo, "sed -i s/two/TWO/ src/lib.txt && git commit -qam one").expect(0);
    let two =
        "printf '\\0\\1' > bin; printf 'a  \\nb\\t\\n' > c.md; git add -A; git commit -qm two";
    world.sh(&world.repo, two).expect(0);
    world.git(["config", "apply.whitespace", "fix"]);
    let patch = world.home().join("change.patch");
    let bytes = world.run(&world.repo, "git", ["diff", "--binary", "main", "elsewhere"]);
    fs::write(&patch, &bytes.stdout).unwrap();
    let mail = world.run(&world.repo, "git", ["format-patch", "--stdout", "main..elsewhere~1"]);
    world.git(["switch", "-q", "main"]);
    let before = world.belongings();
    let add = ["add", "1", "-q"];
    let patch = patch.to_str().unwrap();
    world.frites(add.iter().chain(&["-c", "patch", "--patch", patch])).expect(0);
    world.frites(add.iter().chain(&["-c", "commit", "--commit", "elsewhere"])).expect(0);
    let words = ["frites"].iter().chain(&add).chain(&["-c", "mail", "--patch", "-"]);
    let mut command = world.command(&world.repo, "git", words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&mail.stdout).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(world.belongings(), before);
    for (name, revision) in
        [("patch", "elsewhere"), ("commit", "elsewhere"), ("mail", "elsewhere~1")]
    {
        // It was captured at once.
        assert_eq!(world.tree(&format!("refs/frites/1/{name}")), world.tree(revision), "{name}");
    }
    let worktree = world.worktree("1/commit");
    assert_eq!(
        world.git_in(&worktree, ["status", "--porcelain"]),
        "A  bin\nA  c.md\nM  src/lib.txt"
    );
    let out = world.frites(["judge", "--test", "grep -q TWO src/lib.txt"]).expect(0).out();
    assert!(sentence(&out).starts_with("judge: 4 of 5 passed; mail changes"), "{out}");
    world.frites(["apply", "-m", "landed"]).expect(0);
    assert_eq!(world.tree("HEAD"), world.tree("elsewhere~1"));
    world.assert_clean();
}

#[test]
fn change_is_merged_onto_an_older_or_newer_base() {
    let world = World::new();
    world.git(["switch", "-q", "-c", "elsewhere"]);
    world.sh(&world.repo, "echo made >> README && git commit -qam made").expect(0);
    let patch = world.run(&world.repo, "git", ["show"]).expect(0);
    fs::write(world.home().join("p"), &patch.stdout).unwrap();
    world.git(["switch", "-q", "main"]);
    world.sh(&world.repo, "sed -i s/three/3/ src/lib.txt").expect(0);
    world.commit("moved");
    world.spawn(["-n", "1"]);
    world.frites(["add", "1", "--commit", "elsewhere"]).expect(0);
    let patch = world.home().join("p");
    world.frites(["add", "1", "--patch", patch.to_str().unwrap()]).expect(0);
    for name in ["c2", "c3"] {
        let diff = world.frites(["diff", "--numstat", &format!("1/{name}")]).expect(0).out();
        assert_eq!(diff, "1\t0\tREADME\n", "{name}");
    }
    world.assert_clean();
}

#[test]
fn command_of_an_added_candidate_goes_on_from_the_change() {
    let mut world = World::new();
    let program = world.home().join("bin/claude");
    write(&program, "#!/bin/sh\ncat >> README; echo $FRITES_INDEX/$FRITES_COUNT >> README\n");
    make_executable(&program);
    let path = format!("{}:{}", world.home().join("bin").display(), world.env("PATH").display());
    world.set_env("PATH", path);
    world.spawn(["--agent", "claude=2", "-p", "the task\n"]);
    world.git(["switch", "-q", "-c", "elsewhere"]);
    world.sh(&world.repo, "echo x > x && git add x && git commit -qm x").expect(0);
    let add = ["add", "1", "--commit", "elsewhere"];
    world.frites(add.iter().chain(&["--agent", "claude"])).expect(0);
    let readme = |address: &str| world.git(["show", &format!("refs/frites/1/{address}:README")]);
    // The next number, and the run's prompt.
    assert_eq!(readme("claude-3"), "hello\nthe task\n3/3");
    assert_eq!(readme("claude-3^"), "hello", "the change is an iteration of its own");
    assert_eq!(world.git(["show", "refs/frites/1/claude-3^:x"]), "x");
    world.frites(add.iter().chain(&["-p", "another\n", "--", "sh", "-c", "cat > y"])).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:y"]), "another");
    let odd = OsStr::from_bytes(b"printf %s \"$1\" > y # \xff");
    let words = ["add", "1", "-c", "odd", "--", "sh", "-c"].map(OsStr::new);
    let words = words.into_iter().chain([odd, "sh".as_ref(), OsStr::from_bytes(b"\xff")]);
    world.frites(words).expect(0);
    let bytes = world.run(&world.repo, "git", ["cat-file", "-p", "refs/frites/1/odd:y"]);
    assert_eq!(bytes.stdout, b"\xff");
    world.frites(["retry", "1/c1", "--yes"]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:y"]), "another", "the same prompt again");
    world.assert_clean();
}

#[test]
fn interrupted_command_of_an_added_candidate_is_resumed_from_the_change() {
    let world = judged();
    world.git(["switch", "-q", "-c", "elsewhere"]);
    world.sh(&world.repo, "echo x > x && git add x && git commit -qm x").expect(0);
    let script = "test -e \"$HOME/go\" || { touch \"$HOME/go\"; echo half > half; kill -INT $PPID; \
                  while :; do sleep 1; done; }; cat x > y";
    // The command's parent is its supervisor; the signal goes to git-frites, which started that.
    let script = script.replace("$PPID", "$(cut -d' ' -f4 /proc/$PPID/stat)");
    let add = ["add", "1", "-c", "late", "--commit", "elsewhere", "--"];
    world.frites(add.iter().chain(&["sh", "-c", &script])).expect(130);
    let state = || {
        let json = world.frites(["status", "--json", "1/late"]).expect(0).json();
        json["runs"][0]["candidates"][0]["state"].clone()
    };
    assert_eq!(state(), "cancelled");
    world.frites(["run", "--resume", "1", "--test", "test -e y"]).expect(0);
    assert_eq!(state(), "succeeded");
    assert_eq!(world.git(["ls-tree", "--name-only", "refs/frites/1/late"]), "README\nsrc\nx\ny");
    world.assert_clean();
}

#[test]
fn impossible_additions_are_refused_before_anything_is_made() {
    let world = judged();
    world.git(["switch", "-q", "--orphan", "unrelated"]);
    world.write("unrelated", "x\n");
    world.commit("unrelated");
    world.git(["switch", "-q", "main"]);
    world.git(["switch", "-q", "-c", "conflict"]);
    world.git(["branch", "-q", "behind", "HEAD"]);
    world.write("src/lib.txt", "one\nother\nthree\n");
    world.commit("conflict");
    world.git(["switch", "-q", "main"]);
    world.git(["branch", "frites/run/1/stray"]);
    let bad = world.home().join("bad.patch");
    fs::write(&bad, "--- a/src/lib.txt\n+++ b/src/lib.txt\n@@ -1 +1 @@\n-absent\n+x\n").unwrap();
    let outside = world.home().join("outside.patch");
    fs::write(&outside, "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n").unwrap();
    let (bad, outside) = (bad.to_str().unwrap(), outside.to_str().unwrap());
    let state = || (world.belongings(), world.git(["for-each-ref"]), world.events().len());
    let before = state();
    let cases: [(&[&str], i32, &str); 15] = [
        (&["9"], 128, "there is no run '9'"),
        (&["1", "-c", "C2"], 2, "run 1 has a candidate 'c2' already"),
        (&["1", "-c", "a", "A"], 2, "the same name on file systems"),
        (&["1", "-c", "stray"], 128, "the branch 'frites/run/1/stray' has a name"),
        (&["1", "-n", "63"], 128, "65 candidates are more than limits.candidates = 64"),
        (&["1", "--patch", "absent"], 128, "could not read the patch from 'absent'"),
        (
            &["1", "--patch", bad],
            1,
            "bad.patch' does not apply to the base of run 1: git apply failed: ",
        ),
        (&["1", "--patch", outside], 1, "does not apply to the base of run 1"),
        (&["1", "--patch", "-"], 1, "the patch on standard input does not apply"),
        (&["1", "--patch", "-", "-p", "-"], 2, "cannot both be standard input"),
        (&["1", "--commit", "absent"], 128, "absent"),
        (&["1", "--commit", "unrelated"], 128, "shares no history with the base"),
        (&["1", "--commit", "behind"], 1, "'behind' changes nothing on the base of run 1"),
        (&["1", "--", "no-such-program"], 128, "'no-such-program' is not on PATH"),
        (&["1", "--agent", "claude"], 2, "needs a prompt"),
    ];
    for (args, code, words) in cases {
        world.frites(["add"].iter().chain(args)).refuses(code, words);
        assert_eq!(state(), before, "{args:?}");
    }
    world.write("src/lib.txt", "one\nmine\nthree\n");
    world.commit("mine");
    world.spawn(["-n", "1"]);
    world
        .frites(["add", "2", "--commit", "conflict"])
        .refuses(1, "'conflict' conflicts with the base of run 2 in src/lib.txt");
    for args in [
        &[][..],
        &["1", "--base", "HEAD"],
        &["1", "--task", "x"],
        &["1", "--synthesize", "--patch", "x"],
        &["1", "--synthesize", "-c", "x"],
        &["1", "--patch", "x", "--commit", "x"],
    ] {
        world.frites(["add"].iter().chain(args)).expect(2);
    }
    assert_eq!(world.frites(["status", "-q"]).code, 2);
    world.assert_clean();
}
