//! The user's configuration, hooks and attributes change neither captured trees nor patches nor
//! what is judged; only the user's own commit obeys them.
use std::fs;
use std::sync::OnceLock;

use crate::common::{World, make_executable};

/// The results that must not depend on the configuration.
#[derive(Debug, PartialEq)]
struct Results {
    captured: String,
    patch: Vec<u8>,
    kept_patch: Vec<u8>,
    stat: String,
    json: String,
    /// Checksums of the files that the test command saw.
    judged: String,
    winner: String,
    staged: String,
}

/// A base whose files, edits and names a configuration could bend.
fn world() -> World {
    let world = World::new();
    // What is compared is not whether the odd files below are source.
    world.git(["config", "frites.oracle.source", "*"]);
    world.write("blank.txt", "first\n\n\n\n");
    world.write("crlf.txt", "one\r\ntwo\r\n");
    world.write("mixed.txt", "one\r\ntwo\n");
    world.write("space.txt", "trailing  \n\tx\n");
    world.write("nöt-ascii", "ö\n");
    world.write("copied", (0..40).map(|n| format!("line {n}\n")).collect::<String>());
    world.write("moved", (0..40).map(|n| format!("other {n}\n")).collect::<String>());
    world.write("script.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n");
    world.commit("more");
    world
}

const EDIT: &str = "printf 'second\\n\\n\\n\\n' >blank.txt; printf '2\\r\\n' >>crlf.txt; printf '3\\r\\n4\\n' >>mixed.txt
    printf 'more  \\n \\t\\n\\n\\n' >>space.txt; echo ü >>nöt-ascii; cp copied copy; echo 1 >>copied; mv moved moved-away
    printf 'a\\0b' >binary; chmod +x README; printf 'new\\r\\n' >new.txt; printf 'x' >no-newline; sed -i s/1/3/ script.py";

/// The checksums of the files of a checkout.
const CHECKSUMS: &str = "find . -name .git -prune -o -type f -print | LC_ALL=C sort | xargs cksum";

/// Spawns, edits, diffs, judges and applies.
fn work(world: &World) -> Results {
    world.spawn(["-n", "1"]);
    world.sh(&world.worktree("1/c1"), EDIT).expect(0);
    let frites = |args: &[&str]| world.frites(args).expect(0).stdout;
    let patch = frites(&["diff", "1/c1"]);
    let stat = String::from_utf8(frites(&["diff", "--stat", "1"])).unwrap();
    let json = String::from_utf8(frites(&["diff", "--json", "1"])).unwrap();
    let winner = String::from_utf8(frites(&["judge", "-q", "--test", CHECKSUMS])).unwrap();
    let kept = |file: &str| fs::read(world.repo.join(".frites/runs/1/c1").join(file)).unwrap();
    frites(&["apply", "1"]);
    Results {
        captured: world.tree("refs/frites/1/c1"),
        patch,
        kept_patch: kept("candidate.diff"),
        stat,
        json,
        judged: String::from_utf8(kept("test.log")).unwrap(),
        winner,
        // The test's own call runs no hook, either.
        staged: world.git([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
            "write-tree",
        ]),
    }
}

/// The results with nothing configured, which are what they should be.
fn plain() -> &'static Results {
    static PLAIN: OnceLock<Results> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let world = world();
        let results = work(&world);
        assert_eq!(results.winner, "1/c1\n");
        assert_eq!(results.captured, results.staged);
        assert_eq!(results.patch, results.kept_patch);
        assert!(results.judged.contains(" ./binary\n"), "{}", results.judged);
        let seen = world.sh(&world.worktree("1/c1"), CHECKSUMS).expect(0).out();
        assert_eq!(results.judged, seen, "what is judged are the worktree's bytes");
        let patch = String::from_utf8_lossy(&results.patch);
        for line in [
            "--- a/blank.txt",
            "+++ b/blank.txt",
            "GIT binary patch",
            "old mode 100644",
            "+++ b/moved-away",
            "\"a/n\\303",
        ] {
            assert!(patch.contains(line), "{line}:\n{patch}");
        }
        results
    })
}

/// Asserts that a configuration changes nothing.
#[track_caller]
fn same_under(settings: &[(&str, &str)]) {
    let world = world();
    for (key, value) in settings {
        world.git(["config", "--global", key, value]);
    }
    assert_eq!(&work(&world), plain(), "{settings:?}");
    world.assert_clean();
}

/// Everything of the checkout that a refused landing must leave: bytes, times, refs, index.
fn checkout(world: &World) -> String {
    format!(
        "{}{}{}",
        world.belongings(),
        world.sh(&world.repo, &CHECKSUMS.replace(".git ", ".frites -prune -o -name .git ")).out(),
        world.git(["branch", "--list", "frites/apply/*"])
    )
}

/// Asserts that the user's own commit is refused with the checkout as it was, and that landing
/// staged works.
#[track_caller]
fn refuses_to_commit_and_stages(world: &World) {
    let before = checkout(world);
    for args in [&["apply", "-m", "land"][..], &["apply", "--no-switch", "-m", "land"]] {
        let said = world.frites(args).expect(1).stderr;
        let (ours, hint) =
            ("error: git did not make the commit; ", "hint: see git's message above");
        assert!(
            said.lines().any(|l| l.starts_with(ours)) && said.lines().any(|l| l.starts_with(hint)),
            "{said}"
        );
        assert_eq!(checkout(world), before, "{args:?}");
        world.assert_clean();
    }
    world.frites(["apply"]).expect(0);
    let write_tree = ["-c", "core.hooksPath=/dev/null", "write-tree"];
    assert_eq!(world.git(write_tree), world.tree("refs/frites/1/c1"));
}

#[test]
fn prefix_and_path_settings_change_nothing() {
    same_under(&[("diff.noprefix", "true"), ("core.quotePath", "false")]);
    same_under(&[
        ("diff.mnemonicPrefix", "true"),
        ("diff.srcPrefix", "x/"),
        ("diff.dstPrefix", "y/"),
        ("diff.relative", "true"),
    ]);
}

#[test]
fn diff_program_settings_change_nothing() {
    same_under(&[
        ("diff.external", "false"),
        ("diff.tool", "none"),
        ("pager.diff", "false"),
        ("core.pager", "false"),
        ("interactive.diffFilter", "false"),
    ]);
}

#[test]
fn colour_and_column_settings_change_nothing() {
    same_under(&[
        ("color.ui", "always"),
        ("color.diff", "always"),
        ("column.ui", "always"),
        ("diff.colorMoved", "zebra"),
        ("diff.wordRegex", "."),
    ]);
}

#[test]
fn rename_copy_and_algorithm_settings_change_nothing() {
    same_under(&[
        ("diff.renames", "copies"),
        ("diff.renameLimit", "0"),
        ("diff.algorithm", "patience"),
        ("diff.indentHeuristic", "false"),
    ]);
}

#[test]
fn patch_shape_settings_change_nothing() {
    same_under(&[
        ("diff.suppressBlankEmpty", "true"),
        ("diff.context", "0"),
        ("diff.interHunkContext", "9"),
        ("diff.orderFile", "/dev/null"),
        ("core.abbrev", "5"),
    ]);
}

#[test]
fn statistics_settings_change_nothing() {
    same_under(&[
        ("diff.statGraphWidth", "3"),
        ("diff.statNameWidth", "3"),
        ("diff.dirstat", "files"),
        ("diff.noIndex", "true"),
    ]);
}

#[test]
fn white_space_settings_change_nothing() {
    same_under(&[
        ("apply.whitespace", "fix"),
        ("core.whitespace", "trailing-space,cr-at-eol,tab-in-indent"),
        ("diff.wsErrorHighlight", "all"),
        ("apply.ignoreWhitespace", "change"),
    ]);
}

#[test]
fn line_end_settings_change_nothing() {
    same_under(&[("core.autocrlf", "true")]);
    same_under(&[("core.autocrlf", "input"), ("core.safecrlf", "true")]);
    same_under(&[("core.eol", "crlf"), ("core.safecrlf", "warn")]);
}

#[test]
fn users_attributes_change_nothing() {
    for rule in ["* -diff", "* text=auto eol=crlf", "*.py diff=python"] {
        let world = world();
        fs::write(world.home().join("attributes"), format!("{rule}\n")).unwrap();
        world.git([
            "config",
            "--global",
            "core.attributesFile",
            world.home().join("attributes").to_str().unwrap(),
        ]);
        world.git(["config", "--global", "diff.python.textconv", "false"]);
        world.git(["config", "--global", "diff.python.xfuncname", "^nothing$"]);
        assert_eq!(&work(&world), plain(), "{rule}");
        world.assert_clean();
    }
}

#[test]
fn submodule_and_untracked_settings_change_nothing() {
    same_under(&[
        ("status.showUntrackedFiles", "no"),
        ("diff.ignoreSubmodules", "all"),
        ("status.relativePaths", "false"),
        ("advice.addIgnoredFile", "false"),
    ]);
}

#[test]
fn branch_and_tracking_settings_change_nothing() {
    same_under(&[
        ("branch.autoSetupMerge", "always"),
        ("branch.autoSetupRebase", "always"),
        ("checkout.defaultRemote", "none"),
        ("checkout.guess", "false"),
        ("core.logAllRefUpdates", "false"),
        ("worktree.guessRemote", "true"),
    ]);
}

#[test]
fn cache_settings_change_nothing() {
    same_under(&[
        ("core.untrackedCache", "true"),
        ("core.fsmonitor", "false"),
        ("core.splitIndex", "true"),
        ("index.version", "4"),
        ("feature.manyFiles", "true"),
        ("index.threads", "2"),
        ("core.preloadIndex", "false"),
        ("core.checkStat", "minimal"),
        ("core.trustctime", "false"),
        ("core.ignoreStat", "true"),
        ("index.skipHash", "true"),
    ]);
}

#[test]
fn merge_and_commit_settings_change_nothing() {
    same_under(&[
        ("merge.ff", "only"),
        ("merge.conflictStyle", "zdiff3"),
        ("commit.cleanup", "verbatim"),
        ("commit.template", "/nowhere"),
        ("commit.status", "false"),
        ("i18n.commitEncoding", "ISO-8859-1"),
        ("trailer.separators", "#"),
        ("log.showSignature", "true"),
        ("rerere.enabled", "true"),
    ]);
}

#[test]
fn failing_signature_stops_only_the_users_commit() {
    let hostile = [
        ("commit.gpgsign", "true"),
        ("tag.gpgsign", "true"),
        ("gpg.program", "false"),
        ("user.signingKey", "none"),
    ];
    same_under(&hostile);
    let world = world();
    for (key, value) in hostile {
        world.git(["config", "--global", key, value]);
    }
    world.judged("true", &[EDIT]);
    refuses_to_commit_and_stages(&world);
}

#[test]
fn missing_identity_stops_only_the_users_commit() {
    let nobody = |world: &World| {
        fs::write(world.home().join(".gitconfig"), "[user]\n\tuseConfigOnly = true\n").unwrap();
    };
    let world_1 = world();
    nobody(&world_1);
    assert_eq!(&work(&world_1), plain());
    let world_2 = world();
    nobody(&world_2);
    world_2.judged("true", &[EDIT]);
    refuses_to_commit_and_stages(&world_2);
}

/// Every hook of git's, failing, and leaving a trace.
fn plant_hooks(world: &World, hooks: &[&str]) {
    for hook in hooks {
        let file = world.repo.join(".git/hooks").join(hook);
        fs::write(&file, "#!/bin/sh\necho \"${0##*/}\" >>\"$HOME/hooks-ran\"\nexit 1\n").unwrap();
        make_executable(&file);
    }
}

const HOOKS: [&str; 14] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "applypatch-msg",
    "sendemail-validate",
];

#[test]
fn hooks_run_only_for_the_users_own_commit() {
    let world = world();
    plant_hooks(&world, &HOOKS);
    world.git([
        "config",
        "core.fsmonitor",
        world.repo.join(".git/hooks/fsmonitor-watchman").to_str().unwrap(),
    ]);
    assert_eq!(&work(&world), plain());
    world.frites(["clean", "1"]).expect(0);
    assert_eq!(fs::read_to_string(world.home().join("hooks-ran")).unwrap_or_default(), "");
    // They would have run: the trace proves itself.
    world.run(&world.repo, "git", ["commit", "-qm", "by the user"]).expect(1);
    assert!(fs::read_to_string(world.home().join("hooks-ran")).unwrap().contains("pre-commit\n"));
}

#[test]
fn failing_hook_stops_the_users_commit_and_leaves_the_checkout() {
    for hook in ["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction"] {
        let world = world();
        world.judged("true", &[EDIT]);
        plant_hooks(&world, &[hook]);
        refuses_to_commit_and_stages(&world);
        assert!(fs::read_to_string(world.home().join("hooks-ran")).unwrap().contains(hook));
    }
}

/// Also not from inside its worktree, nor by what lies in the checkout from which it is asked.
#[test]
fn binary_attribute_of_an_attempt_does_not_shrink_its_diff() {
    let world = World::new();
    world.write("data", "1\n2\n");
    world.write(".gitattributes", "data -diff\n");
    world.commit("attributes");
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    world
        .sh(
            &dir,
            "for i in $(seq 100); do echo $i >>README; echo $i >>src/lib.txt; done; echo 3 >>data",
        )
        .expect(0);
    for rule in ["data -diff", "* -diff", "*.txt binary\nREADME binary", "* -text -diff\ndata diff"]
    {
        fs::write(dir.join(".gitattributes"), format!("{rule}\n# more\n")).unwrap();
        world.write(".gitattributes", format!("{rule}\n"));
        for from in [&world.repo, &dir] {
            let diff = world.frites_in(from, ["diff", "--json", "1/c1"]).expect(0).json()["diffs"]
                [0]
            .clone();
            let of = |path: &str| {
                let file =
                    diff["files"].as_array().unwrap().iter().find(|f| f["path"] == path).unwrap();
                file["added"].as_u64()
            };
            let counts = (of("README"), of("src/lib.txt"), of("data"));
            assert_eq!(counts, (Some(100), Some(100), None), "{rule:?} in {}", from.display());
            let patch = world.frites_in(from, ["diff", "1/c1"]).expect(0).out();
            assert_eq!(patch.matches("\n+99\n").count(), 2, "the patch shows the lines:\n{patch}");
        }
    }
}
