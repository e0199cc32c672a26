//! `diff` in every form, its addresses, its exit codes and its pager; `path`.
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use serde_json::json;

use crate::common::{World, answer};

/// Run 1: c1 changes two files, c2 one, c3 none.
fn world() -> World {
    let world = World::new();
    world.spawn(["-n", "3"]);
    world.sh(&world.worktree("1/c1"), "echo more >>README; echo x >new").expect(0);
    world.sh(&world.worktree("1/c2"), "echo 4 >src/lib.txt").expect(0);
    world
}

/// A patch without its index lines.
fn without_ids(patch: &str) -> String {
    patch.lines().filter(|l| !l.starts_with("index ")).map(|l| format!("{l}\n")).collect()
}

const PATCH_1: &str = "diff --git a/README b/README\n--- a/README\n+++ b/README\n@@ -1 +1,2 @@\n hello\n+more\n\
    diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
const PATCH_2: &str = "diff --git a/src/lib.txt b/src/lib.txt\n--- a/src/lib.txt\n+++ b/src/lib.txt\n\
    @@ -1,3 +1 @@\n-one\n-two\n-three\n+4\n";

#[test]
fn diff_of_a_run_prints_a_line_per_candidate() {
    let world = world();
    let before = world.belongings();
    let wanted = "1/c1\t2 lines in 2 files\topen\n1/c2\t4 lines in 1 file\topen\n1/c3\t0 lines in 0 files\topen\n";
    for (args, notes) in
        [(&["diff"][..], "captured 1/c1@1\ncaptured 1/c2@1\n"), (&["diff", "1"], "")]
    {
        let answer = world.frites(args).expect(0);
        assert_eq!((answer.out().as_str(), answer.stderr.as_str()), (wanted, notes));
    }
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}

#[test]
fn summary_says_how_a_command_ended() {
    let world = World::new();
    let script =
        "case {candidate} in c1) echo x >new;; c2) exit 3;; c3) echo y >new; kill -9 $$;; esac";
    world.frites(["spawn", "-n", "4", "--", "sh", "-c", script]).expect(0);
    let wanted = "1/c1\t1 line in 1 file\tsucceeded\n1/c2\t0 lines in 0 files\tfailed (exit 3)\n\
                  1/c3\t1 line in 1 file\tfailed (signal 9)\n1/c4\t0 lines in 0 files\tempty\n";
    assert_eq!(world.frites(["diff"]).expect(0).out(), wanted);
    world.assert_clean();
}

#[test]
fn each_format_equals_gits() {
    let world = world();
    world
        .sh(
            &world.worktree("1/c1"),
            "printf 'a\\0b' >bin; printf 'b\\0c' >'o d\td'; chmod +x src/lib.txt",
        )
        .expect(0);
    world.frites(["diff", "1/c1"]).expect(0);
    for format in ["--stat", "--numstat", "--name-status", "--name-only", "--patch"] {
        for nul in [&[][..], &["-z"]] {
            let mut git = vec!["diff-tree", "-r", "--no-renames", "--full-index", format];
            // git's `--binary` brings a patch with it.
            git.extend((format == "--patch").then_some("--binary"));
            git.extend(nul);
            git.extend(["main", "refs/frites/1/c1"]);
            let wanted = world.run(&world.repo, "git", &git).expect(0).stdout;
            assert!(!wanted.is_empty());
            let mut args = vec!["diff", "1/c1", format];
            args.extend(nul);
            let got = world.frites(&args).expect(0).stdout;
            assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&wanted), "{args:?}");
        }
    }
}

#[test]
fn format_for_a_run_follows_each_candidates_name() {
    let world = world();
    let of = |args: &[&str]| world.frites([&["diff"], args].concat()).expect(0).out();
    assert_eq!(of(&["--name-only"]), "# 1/c1\nREADME\nnew\n# 1/c2\nsrc/lib.txt\n# 1/c3\n");
    assert_eq!(
        of(&["--name-status", "1"]),
        "# 1/c1\nM\tREADME\nA\tnew\n# 1/c2\nM\tsrc/lib.txt\n# 1/c3\n"
    );
    assert_eq!(
        of(&["--numstat", "1"]),
        "# 1/c1\n1\t0\tREADME\n1\t0\tnew\n# 1/c2\n1\t3\tsrc/lib.txt\n# 1/c3\n"
    );
    assert_eq!(
        of(&["-z", "--name-only", "1"]),
        "# 1/c1\0README\0new\0# 1/c2\0src/lib.txt\0# 1/c3\0"
    );
    assert!(of(&["--stat", "1"]).contains(
        "# 1/c2\n src/lib.txt | 4 +---\n 1 file changed, 1 insertion(+), 3 deletions(-)\n# 1/c3\n"
    ));
    assert_eq!(
        without_ids(&of(&["--patch", "1"])),
        format!("# 1/c1\n{PATCH_1}# 1/c2\n{PATCH_2}# 1/c3\n")
    );
    assert_eq!(of(&["-p", "1"]), of(&["--patch", "1"]));
    assert_eq!(without_ids(&of(&["1/c1"])), PATCH_1);
    assert_eq!(of(&["1/c3"]), "");
}

#[test]
fn two_formats_at_once_are_refused() {
    world().frites(["diff", "--stat", "--patch", "1"]).refuses(2, "--stat");
}

#[test]
fn json_agrees_with_the_patch() {
    let world = World::new();
    world.spawn(["-n", "2"]);
    let dir = world.worktree("1/c1");
    world
        .sh(&dir, "rm README; echo 4 >>src/lib.txt; printf 'a\\0b' >bin; : >\"$(printf 'b\\377d')\"; : >'ü'")
        .expect(0);
    let document = world.frites(["diff", "--json", "1"]).expect(0).json();
    let base = world.git(["rev-parse", "main"]);
    let blob = |path: &str| world.git(["rev-parse", path]);
    let (none, capture) = ("0".repeat(40), "refs/frites/1/c1");
    let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let wanted = json!({
        "version": 1, "run": "1", "base": base,
        "diffs": [
            {
                "address": "1/c1", "iteration": 1, "from": base, "to": world.tree(capture), "lines": 5, "files_touched": 5,
                "files": [
                    { "path": "README", "status": "D", "added": 0, "deleted": 1, "old": blob("main:README"), "new": none },
                    { "path": "b\u{fffd}d", "path_hex": "62ff64", "status": "A", "added": 0, "deleted": 0, "old": none, "new": empty },
                    { "path": "bin", "status": "A", "added": null, "deleted": null, "old": none, "new": blob(&format!("{capture}:bin")) },
                    { "path": "src/lib.txt", "status": "M", "added": 1, "deleted": 0, "old": blob("main:src/lib.txt"), "new": blob(&format!("{capture}:src/lib.txt")) },
                    { "path": "ü", "status": "A", "added": 0, "deleted": 0, "old": none, "new": empty },
                ],
            },
            { "address": "1/c2", "iteration": null, "from": base, "to": base, "lines": 0, "files_touched": 0, "files": [] },
        ],
    });
    let mut sorted = document.clone();
    let by_path = |f: &serde_json::Value| {
        f["path_hex"].as_str().map_or_else(|| f["path"].to_string(), |_| "\"b".into())
    };
    sorted["diffs"][0]["files"].as_array_mut().unwrap().sort_by_key(by_path);
    assert_eq!(sorted, wanted);
    world.frites(["diff", "--json", "--stat", "1"]).refuses(2, "--json");
}

#[test]
fn exit_code_option_reports_differences() {
    let world = world();
    world.frites(["diff", "1"]).expect(0); // which tells what it captures
    for (args, code) in [
        (&["1/c1"][..], 1),
        (&["1/c3"], 0),
        (&["1"], 1),
        (&["--stat", "1/c1"], 1),
        (&["--json", "1/c1"], 1),
        (&["--json", "1/c3"], 0),
        (&["1/c1", "c1"], 0),
        (&["1/c1", "c2"], 1),
    ] {
        let answer = world.frites([&["diff", "--exit-code"], args].concat()).expect(code);
        assert_eq!(answer.stderr, "", "{args:?}: no message, for differences are an answer");
        assert_eq!(
            world.frites([&["diff"], args].concat()).expect(0).stdout,
            answer.stdout,
            "{args:?}"
        );
    }
}

#[test]
fn no_capture_shows_the_last_capture() {
    let world = world();
    assert_eq!(world.frites(["diff", "--no-capture", "1/c1"]).expect(0).out(), "");
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/c1"]), "");
    let first = world.frites(["diff", "1/c1"]).expect(0).stdout;
    world.sh(&world.worktree("1/c1"), "echo later >later").expect(0);
    assert_eq!(world.frites(["diff", "--no-capture", "1/c1"]).expect(0).stdout, first);
    let tip = world.git(["rev-parse", "refs/frites/1/c1"]);
    assert!(world.frites(["diff", "1/c1"]).expect(0).out().contains("+later\n"));
    assert_eq!(world.git(["rev-parse", "refs/frites/1/c1^"]), tip);
    world.assert_clean();
}

#[test]
fn two_addresses_compare_two_candidates() {
    let world = world();
    let of = |args: &[&str]| world.frites([&["diff"], args].concat()).expect(0).out();
    let wanted = "M\tREADME\nD\tnew\nM\tsrc/lib.txt\n";
    for pair in [["1/c1", "1/c2"], ["1/c1", "c2"], ["c1", "c2"]] {
        assert_eq!(of(&["--name-status", pair[0], pair[1]]), wanted, "{pair:?}");
    }
    assert_eq!(of(&["--name-status", "c2", "c1"]), "M\tREADME\nA\tnew\nM\tsrc/lib.txt\n");
    let patch = world.run(
        &world.repo,
        "git",
        ["diff-tree", "-r", "-p", "--full-index", "refs/frites/1/c1", "refs/frites/1/c2"],
    );
    assert_eq!(of(&["1/c1", "1/c2"]), patch.expect(0).out());
    let diffs = world.frites(["diff", "--json", "1/c1", "1/c3"]).expect(0).json()["diffs"].clone();
    assert_eq!(diffs[0]["address"], "1/c1..1/c3");
    assert_eq!(
        (diffs[0]["lines"].as_u64(), diffs[0]["files_touched"].as_u64()),
        (Some(2), Some(2))
    );
    assert_eq!(diffs[0]["from"].as_str(), Some(world.tree("refs/frites/1/c1").as_str()));

    world.spawn(["-c", "other"]);
    world.sh(&world.worktree("2/other"), "echo 4 >src/lib.txt").expect(0);
    assert_eq!(of(&["1/c2", "2/other"]), "", "of two runs");
    world.frites(["diff", "1", "c2"]).refuses(2, "'1' is a run");
    world.frites(["diff", "1/c1", "other"]).refuses(128, "run 1 has no candidate 'other'");
}

#[test]
fn iteration_is_shown_as_it_was_captured() {
    let world = world();
    let first = world.frites(["diff", "1/c1"]).expect(0).stdout;
    world.sh(&world.worktree("1/c1"), "rm new; echo 5 >src/lib.txt").expect(0);
    let second = world.frites(["diff", "1/c1"]).expect(0).stdout;
    assert_ne!(first, second);
    world.sh(&world.worktree("1/c1"), "echo third >third").expect(0);
    for (address, wanted) in [("1/c1@1", &first), ("c1@1", &first), ("1/c1@2", &second)] {
        assert_eq!(&world.frites(["diff", address]).expect(0).stdout, wanted, "{address}");
    }
    assert_eq!(
        world.frites(["diff", "--name-status", "1/c1@1", "1/c1@2"]).expect(0).out(),
        "D\tnew\nM\tsrc/lib.txt\n"
    );
    assert_eq!(
        world.frites(["diff", "--json", "1/c1@1"]).expect(0).json()["diffs"][0]["iteration"],
        1
    );
    world.frites(["diff", "1/c1@9"]).refuses(128, "1/c1");
    world.frites(["diff", "1@1"]).refuses(2, "'1' is a run");
    world.frites(["diff", "1/c1@0"]).refuses(2, "iteration");
}

#[test]
fn address_matches_exact_names_before_prefixes() {
    let world = World::new();
    for (run, candidate) in [("fix", "a"), ("fix-parser", "b"), ("10", "c"), ("speed-up", "fix")] {
        world.spawn(["--run", run, "-c", candidate]);
        world.sh(&world.worktree(&format!("{run}/{candidate}")), "echo x >new").expect(0);
    }
    let found = |address: &str| {
        let json = world.frites(["diff", "--json", address]).expect(0).json();
        json["diffs"][0]["address"].as_str().unwrap().to_owned()
    };
    for (address, wanted) in [
        ("fix", "fix/a"), // an exact run before a candidate of the newest run, and before fix-parser
        ("fix-", "fix-parser/b"),
        ("fix-p/b", "fix-parser/b"),
        ("sp", "speed-up/fix"),
        ("10/c", "10/c"),
    ] {
        assert_eq!(found(address), wanted, "{address}");
    }
    world.spawn(["-c", "mine"]);
    world.sh(&world.worktree("11/mine"), "echo x >new").expect(0);
    assert_eq!(found("mine"), "11/mine", "a candidate of the newest run");
    world.frites(["diff", "1"]).refuses(128, "there is no run '1'");
    world.frites(["diff", "fi"]).refuses(128, "several runs: fix, fix-parser");
    world.frites(["diff", "fix/b"]).refuses(128, "run fix has no candidate 'b'");
    world.frites(["diff", "a"]).refuses(128, "there is no run 'a'");
    world.frites(["diff", "speed-pu"]).refuses(128, "there is no run 'speed-pu'");
}

#[test]
fn diff_before_the_first_run_is_refused() {
    World::new().frites(["diff"]).refuses(128, "there is no run yet");
}

#[test]
fn closed_pipe_ends_diff_silently() {
    let world = world();
    world.sh(&world.worktree("1/c1"), "seq 200000 >long").expect(0);
    world.frites(["diff", "1"]).expect(0); // which tells what it captures
    for args in [&["diff", "1/c1"][..], &["diff", "--json", "1"], &["diff", "--patch"]] {
        let mut command = world.command(&world.repo, "git-frites", args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(16, child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        drop(reader);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = answer(&child.wait_with_output().unwrap()).code;
        if args.contains(&"--json") {
            // Its document may fit into the pipe.
            assert!(code == 141 || code == 0, "{args:?}: {code}");
        } else {
            assert_eq!(code, 141, "{args:?}");
        }
        assert_eq!(stderr, "", "{args:?}");
    }
    world.assert_clean();
}

#[test]
fn path_prints_a_candidates_worktree() {
    let world = world();
    for address in ["1/c2", "c2"] {
        let answer = world.frites(["path", address]).expect(0);
        let wanted = [world.worktree("1/c2").as_os_str().as_bytes(), b"\n"].concat();
        assert_eq!((answer.stdout, answer.stderr.as_str()), (wanted, ""));
    }
    // From a directory deep in a candidate's worktree, too.
    let deep = world.worktree("1/c1").join("src");
    assert_eq!(
        world.frites_in(&deep, ["path", "1/c2"]).expect(0).out(),
        format!("{}\n", world.worktree("1/c2").display())
    );
    world.frites(["path"]).refuses(2, "run 1 has 3 candidates");
    world.frites(["path", "1/c9"]).refuses(128, "run 1 has no candidate 'c9'");
    world.spawn(["-c", "only"]);
    assert_eq!(
        world.frites(["path"]).expect(0).out(),
        format!("{}\n", world.worktree("2/only").display())
    );
    world.frites(["clean", "2/only"]).expect(0);
    world.frites(["path", "2/only"]).refuses(128, "2/only has no worktree any more");
}

#[test]
fn renamed_file_counts_as_one_file_with_the_lines_that_differ() {
    let world = World::new();
    let lines = |from: u32| (from..from + 1000).map(|n| format!("line {n}\n")).collect::<String>();
    world.write("large", lines(0));
    world.write("other", lines(5000));
    world.write("binary", [&b"\0"[..], &[7; 6400]].concat());
    world.commit("files");
    // Neither the user's configuration nor the attempt's attributes change the measure.
    world.git(["config", "diff.renames", "false"]);
    world.git(["config", "diff.renameLimit", "1"]);
    let run = world.attempts(&[
        "git mv large moved",
        "git mv large moved; sed -i 's/line 9$/LINE 9/' moved; git mv other \"$(printf 'o\\tr\\n')\"",
        "git mv binary b2; printf x >> b2; echo 'moved binary' > .gitattributes; git mv large moved",
        "rm large; seq 1000 > moved",
        "cp large copy",
        "git mv binary b2",
    ]);
    let out = world.frites(["diff", &run, "--json"]).expect(0).json();
    let sizes: Vec<(u64, u64)> = out["diffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|diff| (diff["lines"].as_u64().unwrap(), diff["files_touched"].as_u64().unwrap()))
        .collect();
    // Of a binary file old and new count, one line for each 64 bytes.
    let binary = 101 + 101;
    assert_eq!(sizes, [(1, 1), (3, 2), (binary + 1 + 1, 3), (2000, 2), (1000, 1), (1, 1)]);
    let verdict = world.frites(["judge", "--json", "--test", "true", &run]).expect(0).json();
    assert_eq!(verdict["recommended"], "c1");
    assert_eq!(verdict["terms"]["renames"], true);
    world.assert_clean();
}

#[test]
fn diff_of_a_run_says_how_its_candidates_were_judged() {
    let world = world();
    world.frites(["judge", "--test", "test -e new"]).expect(0);
    let lines = world.frites(["diff", "1"]).expect(0).out();
    let words: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    assert_eq!(words[..2], ["passed", "test exit 1"], "{lines}");
    let status = world.frites(["status", "1"]).expect(0).out();
    assert!(words.iter().all(|word| status.contains(word)), "{status}");
    world.sh(&world.worktree("1/c2"), "echo 5 >new").expect(0);
    let lines = world.frites(["diff", "1"]).expect(0).out();
    assert!(lines.contains("\topen\n"), "the verdict does not know it: {lines}");
}
