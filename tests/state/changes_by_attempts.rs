//! Changes that attempts make through the shared git directory: each is named, none is reverted,
//! and git-frites runs nothing that they plant.
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use crate::common::processes::kill_git;
use crate::common::{Answer, World, make_executable, poll, write};

/// Runs one command in `n` worktrees, where `$BAD` leaves a trace in `$HOME/canary`; gives what was
/// said.
fn spawn(world: &World, n: &str, script: &str) -> Answer {
    world.frites(["spawn", "-n", n, "--keep", "--", "sh", "-euc", script])
}

/// A world with a program that leaves a trace whoever starts it, and hands its input on as a filter
/// does.
fn world() -> World {
    let mut world = World::new();
    let bad = world.home().join("bad");
    fs::write(
        &bad,
        "#!/bin/sh\necho \"${0##*/} $*\" >>\"$HOME/canary\"\ntest $# -eq 0 || exit 1\nexec cat\n",
    )
    .unwrap();
    make_executable(&bad);
    world.set_env("BAD", bad);
    world
}

fn canary(world: &World) -> String {
    fs::read_to_string(world.home().join("canary")).unwrap_or_default()
}

#[track_caller]
fn assert_nothing_ran(world: &World, when: &str) {
    assert_eq!(canary(world), "", "planted programs ran: {when}");
}

/// The differences of the newest event `escaped`, in words.
fn event(world: &World) -> BTreeSet<String> {
    let events = world.events();
    let Some(event) = events.iter().rev().find(|e| e["event"] == "escaped") else {
        return BTreeSet::new();
    };
    let list = event["differences"].as_array().unwrap();
    assert_eq!(event["count"], list.len());
    list.iter().map(|d| d["what"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn names(world: &World, script: &str, expected: &[&str]) {
    let answer = spawn(world, "1", script).expect(0);
    let expected: BTreeSet<String> = expected.iter().map(|s| (*s).to_owned()).collect();
    assert_eq!(answer.changes_warned_of(), expected, "{}", answer.stderr);
    assert_eq!(event(world), expected);
    assert_eq!(
        answer.stderr.contains("hint: an attempt or you did that; nothing was reverted"),
        !expected.is_empty()
    );
}

#[test]
fn attempt_that_stays_in_its_worktree_causes_no_warning() {
    crate::common::in_the_open_world();
    let world = world();
    world.write("untracked", "1\n");
    world.write("README", "edited\n");
    world.git(["config", "alias.x", "log"]);
    let script = "echo 1 >>README; echo 2 >new; git add -A; git commit -qm mine; git commit -q --amend -m again
        git checkout -q --detach; git branch -f \"frites/run/$FRITES_RUN/$FRITES_CANDIDATE\"; git status; git gc -q --auto";
    names(&world, script, &[]);
    let answer = world.frites(["spawn", "--json", "-n", "2", "--", "true"]).expect(4);
    assert_eq!(answer.json()["escaped"], serde_json::json!([]));
}

#[test]
fn changes_of_configuration_hooks_and_git_directory_are_named() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "user.old", "1"]);
    world.git(["config", "user.gone", "1"]);
    write(&world.repo.join(".git/hooks/pre-push"), "#!/bin/sh\n");
    write(&world.repo.join(".git/hooks/commit-msg"), "#!/bin/sh\n");
    let script = "g=$(git rev-parse --git-common-dir); echo 1 >>README
        git config core.fsmonitor \"$BAD\"; git config user.old 2; git config --unset user.gone
        git config http.extraHeader 'Authorization: secret'; git config remote.o.url https://me:secret@host/
        git config --global alias.st status
        echo : >$g/hooks/pre-commit; chmod +x $g/hooks/pre-push; rm $g/hooks/commit-msg; echo : >$g/hooks/x.sample
        mkdir -p $g/info $g/objects/info; echo '* -diff' >$g/info/attributes; echo new >>$g/info/exclude
        echo /nowhere >$g/objects/info/alternates";
    let bad = world.home().join("bad");
    names(
        &world,
        script,
        &[
            &format!("config 'core.fsmonitor' was set to '{}'", bad.display()),
            "config 'user.old' was set to '2'",
            "config 'user.gone' was removed",
            "config 'http.extraheader' was set",
            "config 'remote.o.url' was set",
            "global config 'alias.st' was set to 'status'",
            "hook 'pre-commit' was added",
            "hook 'pre-push' was changed",
            "hook 'commit-msg' was removed",
            "'info/attributes' was added",
            "'info/exclude' was changed",
            "'objects/info/alternates' was added",
        ],
    );
    let log = fs::read_to_string(world.repo.join(".frites/events.jsonl")).unwrap();
    assert!(!log.contains("secret"), "secrets are not told: {log}");
    assert_eq!(world.git(["config", "user.old"]), "2", "nothing is reverted");
    assert!(
        world.repo.join(".git/hooks/pre-commit").exists()
            && !world.repo.join(".git/hooks/commit-msg").exists()
    );
}

/// A branch or a file of the user's runs nothing and decides nothing; what a person changes there
/// is no news, and `git status` shows what an attempt changed.
#[test]
fn changes_of_the_users_refs_files_and_worktrees_are_not_looked_for() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["branch", "gone"]);
    let script = format!(
        "echo 1 >>README; git branch -D gone; git branch new; git tag v1; git stash -q; echo 3 >>README
        cd {}; echo 2 >>src/lib.txt; git worktree add -q ../third -b third",
        world.repo.display()
    );
    names(&world, &script, &[]);
}

const HOOKS: [&str; 10] = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "commit-msg",
    "prepare-commit-msg",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
];

/// Plants all that can name a program, in the repository and for the user.
fn plant(settings: &str) -> String {
    format!(
        "echo 1 >>README; g=$(git rev-parse --git-common-dir)
        for h in {}; do cp \"$BAD\" $g/hooks/$h; done
        put() {{ until git config \"$@\" 2>/dev/null; do :; done; }}; for s in {settings}; do put $s \"$BAD\"; done
        put core.untrackedCache true; put commit.gpgSign true; put log.showSignature true
        put submodule.recurse true; put diff.submodule log",
        HOOKS.join(" ")
    )
}

const SETTINGS: &str = "core.fsmonitor core.pager pager.diff pager.status core.editor core.sshCommand core.askPass \
     credential.helper diff.external diff.x.command diff.x.textconv difftool.x.cmd gpg.program gpg.ssh.program \
     alias.diff alias.status alias.frites merge.x.driver mergetool.x.cmd sequence.editor core.alternateRefsCommand \
     uploadpack.packObjectsHook core.gitProxy interactive.diffFilter trailer.Frites-Run.command trailer.x.cmd \
     filter.x.clean filter.x.smudge filter.x.process";

/// All that git-frites does but the user's own commit.
fn everything(world: &World, run: &str) {
    for args in [
        &["diff", run][..],
        &["diff", "--stat", run],
        &["judge", "--test", "true", run],
        &["status"],
        &["log"],
    ] {
        world.frites(args).expect(0);
        assert_nothing_ran(world, &format!("{args:?}"));
    }
    world.frites(["apply", run]).expect(0);
    assert_nothing_ran(world, "apply");
    world.frites(["spawn", "-n", "2"]).expect(0);
    assert_nothing_ran(world, "spawn");
    world.frites(["clean", run]).expect(0);
    assert_nothing_ran(world, "clean");
}

#[test]
fn planted_programs_and_hooks_do_not_run() {
    crate::common::in_the_open_world();
    let world = world();
    world.write(".gitattributes", "* diff=x merge=x filter=x\n");
    world.commit("attributes");
    spawn(&world, "2", &plant(SETTINGS)).expect(0);
    assert_nothing_ran(&world, "spawn with a command");
    assert_eq!(event(&world).len(), SETTINGS.split_whitespace().count() + HOOKS.len() + 5);
    everything(&world, "1");
    // They would have run: the trace proves itself.
    let _ = world.run(&world.repo, "git", ["status"]);
    assert!(canary(&world).contains("bad "), "{}", canary(&world));
}

#[test]
fn planted_hooks_path_is_not_used() {
    crate::common::in_the_open_world();
    let world = world();
    let script = format!(
        "echo 1 >>README; mkdir \"$HOME/hooks\"; for h in {}; do cp \"$BAD\" \"$HOME/hooks/$h\"; done
        git config core.hooksPath \"$HOME/hooks\"",
        HOOKS.join(" ")
    );
    let answer = spawn(&world, "1", &script).expect(0);
    let directory = world.home().join("hooks").display().to_string();
    assert!(
        answer
            .changes_warned_of()
            .contains(&format!("config 'core.hookspath' was set to '{directory}'")),
        "{}",
        answer.stderr
    );
    assert!(
        answer
            .changes_warned_of()
            .contains(&format!("hook 'pre-commit' in '{directory}' was added")),
        "{}",
        answer.stderr
    );
    everything(&world, "1");
}

#[test]
fn users_commit_runs_planted_hooks_after_a_warning() {
    crate::common::in_the_open_world();
    for args in
        [&["apply", "-m", "land"][..], &["apply", "--no-switch", "--no-verify", "-m", "land"]]
    {
        let world = world();
        spawn(
            &world,
            "1",
            "echo 1 >>README; cp \"$BAD\" $(git rev-parse --git-common-dir)/hooks/post-commit",
        )
        .expect(0);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        assert_nothing_ran(&world, "judge");
        let warned = "warning: your commit uses settings that changed while run 1's commands ran: hook 'post-commit' was added";
        let said = world.frites(args).expect(0).stderr;
        assert_eq!(said.lines().filter(|l| *l == warned).count(), 1, "{said}");
        assert_eq!(canary(&world), "post-commit \n", "{args:?}");
    }
    // Nothing is said once the user has removed it.
    let world = world();
    spawn(
        &world,
        "1",
        "echo 1 >>README; cp \"$BAD\" $(git rev-parse --git-common-dir)/hooks/post-commit",
    )
    .expect(0);
    fs::remove_file(world.repo.join(".git/hooks/post-commit")).unwrap();
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    let said = world.frites(["apply", "-m", "land"]).expect(0).stderr;
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn run_merges_nothing_while_a_planted_hook_would_run() {
    crate::common::in_the_open_world();
    let world = world();
    let tip = world.git(["rev-parse", "main"]);
    let plant = "echo 1 >>README; cp \"$BAD\" $(git rev-parse --git-common-dir)/hooks/post-commit";
    let words = ["run", "-n", "1", "--merge", "--test", "true", "--", "sh", "-c", plant];
    let said = world.frites(words).expect(1).stderr;
    let why = "error: 1/c1 was not merged, because its commit would use settings that changed while \
               run 1's commands ran: hook 'post-commit' was added\n";
    assert!(said.contains(why), "{said}");
    assert_nothing_ran(&world, "run --merge");
    assert_eq!(world.git(["rev-parse", "main"]), tip);
    fs::remove_file(world.repo.join(".git/hooks/post-commit")).unwrap();
    world.frites(["apply", "--merge", "1/c1"]).expect(0);
    assert_nothing_ran(&world, "apply");
    let merge = |script: &str, code| {
        let words = ["run", "-n", "1", "--merge", "--test", "true", "--", "sh", "-c", script];
        world.frites(words).expect(code).stderr
    };
    let said = merge("echo 2 >>README; git config branch.main.description x", 0);
    assert!(said.contains("warning: your commit uses settings that changed"), "{said}");
    // A hook that may refuse commits is gone.
    let hook = world.repo.join(".git/hooks/commit-msg");
    write(&hook, "#!/bin/sh\n");
    make_executable(&hook);
    let said = merge("echo 3 >>README; rm $(git rev-parse --git-common-dir)/hooks/commit-msg", 1);
    assert!(said.contains("hook 'commit-msg' was removed\n"), "{said}");
}

#[test]
fn planted_filter_changes_neither_capture_nor_judging() {
    crate::common::in_the_open_world();
    // Where the attributes come from: the attempt's own tree, or the shared git directory.
    // The name of one filter is not UTF-8.
    for attributes in [".gitattributes", "$g/info/attributes"] {
        for driver in ["clean smudge", "process", "clean smudge process"] {
            let world = world();
            let script = format!(
                "g=$(git rev-parse --git-common-dir); echo text >new.txt; echo 1 >>README; echo 1 >new.bytes
                mkdir -p $g/info; printf '*.txt filter=evil\\nREADME filter=a=b.c\\n*.bytes filter=\\377\\n' >{attributes}
                printf '[filter \"\\377\"]\\nclean = %s\\nsmudge = %s\\n' \"$BAD\" \"$BAD\" >>$g/config
                for d in {driver}; do git config filter.evil.$d \"$BAD\"; git config filter.a=b.c.$d \"$BAD\"; done
                git config filter.evil.required true; git config filter.a=b.c.required true"
            );
            spawn(&world, "2", &script).expect(0);
            assert_nothing_ran(&world, &format!("spawn: {driver} by {attributes}"));
            assert_eq!(world.git(["show", "refs/frites/1/c2:new.txt"]), "text");
            world
                .frites(["judge", "-q", "--test", "test \"$(cat new.txt)\" = text", "1"])
                .expect(0);
            assert_nothing_ran(&world, &format!("judge: {driver} by {attributes}"));
            everything(&world, "1");
            // It would have run.
            world
                .sh(
                    &world.worktree("2/c1"),
                    "echo '* filter=evil' >.gitattributes; echo 2 >>README; git add -A || :",
                )
                .expect(0);
            assert!(canary(&world).contains("bad "), "{driver} by {attributes}");
        }
    }
}

#[test]
fn users_filter_keeps_its_setting_from_before_the_attempt() {
    crate::common::in_the_open_world();
    let world = world();
    world.write(".gitattributes", "*.rot filter=rot\n");
    world.git(["config", "filter.rot.clean", "tr a-m n-z"]);
    world.git(["config", "filter.rot.smudge", "tr n-z a-m"]);
    world.git(["config", "filter.gone.clean", "tr a b"]);
    world.write("x.gone", "a\n");
    world.write("old.rot", "abc\n");
    world.commit("filters");
    assert_eq!(world.git(["show", "HEAD:old.rot"]), "nop");
    let script = "echo cab >new.rot; echo bca >old.rot; git config filter.rot.clean \"$BAD\"; git config filter.rot.smudge \"$BAD\"
        git config filter.rot.required true";
    spawn(&world, "1", script).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:new.rot"]), "pno", "as the filter was");
    world
        .frites([
            "judge",
            "-q",
            "--test",
            "test \"$(cat new.rot old.rot)\" = \"$(printf 'cab\\nbca')\"",
        ])
        .expect(0);
    assert_nothing_ran(&world, "judge");
    // A setting that the user makes again counts as the user's.
    world.git(["config", "filter.rot.clean", "tr a-m N-Z"]);
    world.sh(&world.worktree("1/c1"), "echo bab >new.rot").expect(0);
    world.frites(["diff", "1"]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:new.rot"]), "ONO");
    assert_nothing_ran(&world, "diff");
}

/// As Git LFS does: what a commit holds is a pointer to it.
#[test]
fn file_that_a_filter_keeps_in_the_git_directory_survives() {
    crate::common::in_the_open_world();
    let world = world();
    let clean = world.home().join("clean");
    fs::write(&clean, "#!/bin/sh\nd=$(git rev-parse --git-common-dir)/lfs\nmkdir -p $d && tee $d/$(basename \"$1\")\n")
        .unwrap();
    make_executable(&clean);
    world.git(["config", "filter.lfs.clean", &format!("{} %f", clean.display())]);
    for at in ["first", "next"] {
        // The first time the filter's directory is not there yet.
        spawn(
            &world,
            "1",
            &format!("echo '*.bin filter=lfs' >.gitattributes; echo {at} >{at}.bin"),
        )
        .expect(0);
        assert_eq!(
            fs::read_to_string(world.repo.join(format!(".git/lfs/{at}.bin"))).unwrap(),
            format!("{at}\n")
        );
    }
    // A judge checkout gets the file's content from there.
    let smudge = "cat >/dev/null; sed s/next/kept/ $(git rev-parse --git-common-dir)/lfs/%f";
    world.git(["config", "filter.lfs.smudge", smudge]);
    // The attempt added the attributes, which decide what is checked out.
    world.git(["config", "frites.oracle.base-tests", "never"]);
    world.frites(["judge", "-q", "--test", "grep kept next.bin"]).expect(0);
}

#[test]
fn planted_filter_does_not_override_the_users_global_one() {
    crate::common::in_the_open_world();
    let world = world();
    world.write(".gitattributes", "*.rot filter=rot\n");
    world.commit("attributes");
    world.git(["config", "--global", "filter.rot.clean", "tr a-m n-z"]);
    spawn(&world, "1", "echo abc >new.rot; git config filter.rot.clean \"$BAD\"").expect(0);
    world.sh(&world.worktree("1/c1"), "echo cba >new.rot").expect(0);
    world.frites(["diff", "1"]).expect(0);
    assert_eq!(
        world.git(["show", "refs/frites/1/c1~1:new.rot", "refs/frites/1/c1:new.rot"]),
        "nop\npon"
    );
    assert_nothing_ran(&world, "diff");
}

#[test]
fn accepted_changes_take_effect() {
    crate::common::in_the_open_world();
    let world = world();
    let script =
        "echo 'new filter=f' >.gitattributes; echo a >new; git config filter.f.clean 'tr a b'";
    spawn(&world, "1", script).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:new"]), "a");
    let said = world.frites(["judge", "-q", "--trust-config", "--test", "true"]).expect(0);
    assert_eq!(said.out(), "1/c1\n");
    world.sh(&world.worktree("1/c1"), "echo aa >new").expect(0);
    world.frites(["diff", "1"]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:new"]), "bb");
}

#[test]
fn planted_merge_driver_does_not_run_on_landing() {
    crate::common::in_the_open_world();
    let world = world();
    world.write(".gitattributes", "README merge=x\n");
    world.commit("attributes");
    for (key, conflicts) in [("merge.x.driver", true), ("merge.default", false)] {
        let set = if conflicts {
            "git config merge.x.driver \"$BAD\""
        } else {
            "git config merge.default y; git config merge.y.driver \"$BAD\""
        };
        let run = world.frites([
            "spawn",
            "-q",
            "-n",
            "1",
            "--",
            "sh",
            "-euc",
            &format!("echo mine >README; echo more >>src/lib.txt; {set}"),
        ]);
        let run = run.expect(0).out().trim().to_owned();
        let before = fs::read_to_string(world.repo.join("src/lib.txt")).unwrap();
        world.write("src/lib.txt", format!("top\n{before}"));
        if conflicts {
            world.write("README", "theirs\n");
        }
        world.commit("the base moves");
        world.frites(["judge", "-q", "--test", "true", &run]).expect(0);
        let answer = world.frites(["apply", &run]);
        assert_nothing_ran(&world, key);
        if conflicts {
            answer.refuses(1, "conflicts with HEAD in README");
        } else {
            assert_eq!(
                world.git(["show", ":src/lib.txt"]),
                format!("top\n{before}more"),
                "{}",
                answer.expect(0).stderr
            );
        }
    }
}

#[test]
fn missing_object_is_not_fetched_from_a_planted_remote() {
    crate::common::in_the_open_world();
    let world = world();
    // A commit whose tree is nowhere: git would fetch it.
    let script = "echo 1 >>README; git config core.repositoryFormatVersion 1; git config extensions.partialClone evil
        git config remote.evil.promisor true; git config remote.evil.url \"$HOME\"; git config remote.evil.uploadpack \"$BAD\"
        printf 'tree %s\nparent %s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n' \
          1111111111111111111111111111111111111111 $FRITES_BASE >\"$HOME/object\"
        c=$(git hash-object -t commit -w --literally \"$HOME/object\"); echo $c >\"$HOME/commit\"
        echo $c >$(git rev-parse --git-common-dir)/refs/heads/frites/run/$FRITES_RUN/$FRITES_CANDIDATE";
    let answer = spawn(&world, "1", script);
    assert!(
        answer.changes_warned_of().contains("config 'remote.evil.promisor' was set to 'true'"),
        "{}",
        answer.stderr
    );
    assert_nothing_ran(&world, "spawn");
    for args in [&["diff", "1"][..], &["judge", "--test", "true", "1"], &["clean", "1"]] {
        let _ = world.frites(args);
        assert_nothing_ran(&world, args[0]);
    }
    let commit = fs::read_to_string(world.home().join("commit")).unwrap();
    let _ = world.run(&world.repo, "git", ["rev-list", "--objects", commit.trim()]);
    assert!(canary(&world).contains("bad "), "it would have been fetched");
}

#[test]
fn planted_replacement_or_graft_changes_no_capture_or_verdict() {
    crate::common::in_the_open_world();
    let world = world();
    let base = world.git(["rev-parse", "HEAD"]);
    let tree = world.tree("HEAD");
    let script = "echo 1 >>README; echo other >src/lib.txt; git add -A; git commit -qm other; other=$(git rev-parse HEAD)
        git reset -q --hard $FRITES_BASE; echo 1 >>README
        git replace $FRITES_BASE $other; git replace $FRITES_BASE^{tree} $other^{tree} || git update-ref \
          refs/replace/$(git --no-replace-objects rev-parse $FRITES_BASE^{tree}) $(git rev-parse $other^{tree})
        mkdir -p $(git rev-parse --git-common-dir)/info; echo \"$FRITES_BASE $other\" >$(git rev-parse --git-common-dir)/info/grafts";
    let answer = spawn(&world, "1", script).expect(0);
    assert!(answer.changes_warned_of().contains("'info/grafts' was added"), "{}", answer.stderr);
    let plain = |args: &[&str]| {
        world
            .run(&world.repo, "git", [&["--no-replace-objects"][..], args].concat())
            .expect(0)
            .out()
    };
    assert_eq!(plain(&["rev-parse", &format!("{base}^{{tree}}")]).trim(), tree);
    assert_eq!(
        plain(&["diff", "--name-only", &tree, "refs/frites/1/c1^{tree}"]),
        "README\n",
        "captured against the base as it is"
    );
    assert_eq!(world.frites(["diff", "--name-only", "1/c1"]).expect(0).out(), "README\n");
    let test = "test \"$(git --no-replace-objects diff --name-only HEAD~1 HEAD)\" = README && test \"$(sed -n 2p src/lib.txt)\" = two";
    let verdict = world.frites(["judge", "--json", "--test", test]).expect(0).json();
    assert_eq!(verdict["candidates"][0]["lines"], 1, "{verdict}");
    // Another process, where the replacements were there from the start.
    world.sh(&world.worktree("1/c1"), "echo 2 >>README").expect(0);
    let diff = world.frites(["diff", "--json", "1/c1"]).expect(0).json()["diffs"][0].clone();
    assert_eq!((&diff["lines"], &diff["files_touched"]), (&2.into(), &1.into()), "{diff}");
    let patch = fs::read_to_string(world.repo.join(".frites/runs/1/c1/candidate.diff")).unwrap();
    assert_eq!(patch.matches("diff --git ").count(), 1, "{patch}");
}

#[test]
fn commit_hidden_by_a_graft_is_captured() {
    crate::common::in_the_open_world();
    let world = world();
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let script = "echo 1 >>README; git commit -qam work; g=$(git rev-parse --git-common-dir); mkdir -p $g/info
        work=$(git rev-parse HEAD); echo \"$(git rev-parse HEAD~1) $work\" >$g/info/grafts; git reset -q --hard $work~1; echo $work";
    let work = world.sh(&dir, script).expect(0).out();
    world.frites(["diff", "1"]).expect(0);
    let reached = world
        .sh(&world.repo, "GIT_GRAFT_FILE=/dev/null git rev-list refs/frites/1/c1")
        .expect(0)
        .out();
    assert!(reached.lines().any(|l| l == work.trim()), "{work}{reached}");
}

/// Its repository is the attempt's own, configuration and all.
#[test]
fn planted_filter_in_a_submodule_does_not_run() {
    crate::common::in_the_open_world();
    let world = world();
    let library = world.home().join("library");
    world
        .sh(
            &world.home(),
            "git init -q library; cd library; echo 1 >file; git add .; git commit -qm library",
        )
        .expect(0);
    let file = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    world.git([&file[..], &["add", library.to_str().unwrap(), "lib"]].concat());
    world.commit("submodule");
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    world.git_in(&dir, [&file[..], &["update", "--init"]].concat());
    // In the submodule of one attempt, and in the user's, from which what is judged gets its files.
    let plant = "git config filter.x.clean \"$BAD\"; git config filter.x.smudge \"$BAD\"
        mkdir -p $(git rev-parse --git-dir)/info; echo '* filter=x' >$(git rev-parse --git-dir)/info/attributes";
    world.sh(&dir.join("lib"), &format!("{plant}; echo 2 >file")).expect(0);
    let said = world.frites(["diff", "1"]).expect(0).stderr;
    assert!(said.contains("'lib' (a submodule with uncommitted changes)"), "{said}");
    assert_nothing_ran(&world, "diff");
    let _ = world.run(&dir.join("lib"), "git", ["status"]);
    assert!(canary(&world).contains("bad "), "it would have run");
    fs::remove_file(world.home().join("canary")).unwrap();

    let script = format!("echo 1 >>README; cd {}/lib; {plant}", world.repo.display());
    let answer = spawn(&world, "1", &script).expect(0);
    let smudge = format!(
        "config 'filter.x.smudge' of submodule 'lib' was set to '{}'",
        world.home().join("bad").display()
    );
    assert!(answer.changes_warned_of().contains(&smudge), "{}", answer.stderr);
    assert!(
        answer.changes_warned_of().contains("'info/attributes' of submodule 'lib' was added"),
        "{}",
        answer.stderr
    );
    world.frites(["judge", "-q", "--test", "test \"$(cat lib/file)\" = 1", "2"]).expect(0);
    assert_nothing_ran(&world, "judge");
}

#[test]
fn planted_pager_is_not_used_and_the_users_is() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "--global", "core.pager", "sed s/^/PAGED:/"]);
    let diff = |env: &str| {
        let call = format!("{env} git frites diff --name-only 1/c1");
        let args = ["-qefc", &call, "/dev/null"];
        world.command(&world.repo, "script", args).env("SHELL", "/bin/sh").output().unwrap()
    };
    spawn(&world, "1", "echo 1 >>README; git config core.pager \"$BAD\"").expect(0);
    let shown = |env: &str| String::from_utf8(diff(env).stdout).unwrap().replace('\r', "");
    assert_eq!(shown(""), "PAGED:README\n");
    assert_eq!(shown("GIT_PAGER='sed s/^/MINE:/'"), "MINE:README\n");
    assert_nothing_ran(&world, "diff");
    world.frites(["judge", "-q", "--trust-config", "--test", "true"]).expect(0);
    shown("");
    assert_eq!(canary(&world), "bad \n", "it would have run");
}

#[test]
fn judge_refuses_until_changed_frites_settings_are_accepted() {
    crate::common::in_the_open_world();
    let changes = [
        ("git config frites.oracle.test true", "config 'frites.oracle.test' was set to 'true'"),
        (
            "git config --global frites.oracle.test true",
            "global config 'frites.oracle.test' was set to 'true'",
        ),
        ("git config --unset frites.oracle.detect", "config 'frites.oracle.detect' was removed"),
        ("echo 'oracle.test = \"true\"' >>\"$MAIN/.frites.toml\"", "'.frites.toml' was changed"),
        ("rm \"$MAIN/.frites.toml\"", "'.frites.toml' was removed"),
    ];
    for (change, words) in changes {
        let mut world = world();
        world.set_env("MAIN", world.repo.clone());
        world.git(["config", "frites.oracle.detect", "false"]);
        world.write(".frites.toml", "spawn.jobs = 1\n");
        world.write(".git/info/exclude", ".frites.toml\n");
        world.spawn(["-n", "1"]);
        let answer = spawn(&world, "1", &format!("echo 1 >>README; {change}")).expect(0);
        assert_eq!(answer.changes_warned_of(), [words.to_owned()].into(), "{}", answer.stderr);
        // The configuration is every run's, and forgetting one run makes it no better.
        for run in ["2", "1"] {
            let refused = world
                .frites(["judge", "--test", "true", run])
                .refuses(128, &format!("run 2's commands ran: {words}"));
            assert!(
                refused.stderr.contains(&format!("`git frites judge --trust-config {run}`")),
                "{}",
                refused.stderr
            );
        }
        world.sh(&world.worktree("1/c1"), "echo 2 >>README").expect(0);
        world.frites(["clean", "--forget", "2"]).expect(0);
        world.frites(["judge", "--test", "true", "1"]).refuses(128, words);
        let accepted = world.frites(["judge", "--trust-config", "--test", "true", "1"]).expect(0);
        assert!(accepted.stderr.contains(&format!("accepted: {words}")), "{}", accepted.stderr);
        world.frites(["judge", "--test", "true", "1"]).expect(0);
        let log = world.frites(["log", "1"]).expect(0).out();
        assert_eq!(log.matches("  trusted  ").count(), 1, "{log}");
    }
}

/// The tree that lands may be judged again, in the world that the configuration names.
#[test]
fn landing_waits_until_changed_frites_settings_are_accepted() {
    crate::common::in_the_open_world();
    let world = world();
    spawn(&world, "1", "echo 1 >>README").expect(0);
    world.frites(["judge", "-q", "--test", "true", "1"]).expect(0);
    let head = world.git(["rev-parse", "HEAD"]);
    spawn(&world, "2", "echo 2 >>README; git config frites.sandbox.mode off").expect(0);
    for options in
        [&["apply", "1"][..], &["apply", "--merge", "1"], &["apply", "--allow-unverified", "1/c1"]]
    {
        let refused = world
            .frites(options)
            .refuses(128, "run 2's commands ran: config 'frites.sandbox.mode'");
        assert!(
            refused.stderr.contains("`git frites judge --trust-config 1`"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(world.git(["rev-parse", "HEAD"]), head);
    assert_eq!(world.git(["branch", "--list", "frites/apply/*"]), "");
    world.frites(["judge", "-q", "--trust-config", "--test", "true", "1"]).expect(0);
    world.frites(["apply", "1"]).expect(0);
}

/// It would run in every new worktree.
#[test]
fn spawn_does_not_run_a_planted_setup() {
    crate::common::in_the_open_world();
    let world = world();
    spawn(&world, "1", "echo 1 >>README; git config frites.spawn.setup \"$BAD\"").expect(0);
    let refused = world
        .frites(["spawn"])
        .refuses(128, "while run 1's commands ran: config 'frites.spawn.setup' was set");
    assert!(refused.stderr.contains("`git frites judge --trust-config 1`"), "{}", refused.stderr);
    assert_nothing_ran(&world, "spawn");
    assert_eq!(
        world.frites(["status", "--json"]).expect(0).json()["runs"].as_array().unwrap().len(),
        1
    );
    world.frites(["judge", "-q", "--test", "true", "--trust-config"]).expect(0);
    fs::remove_file(world.home().join("canary")).unwrap();
    world.frites(["spawn", "-n", "1"]).expect(0);
    assert!(canary(&world).contains("bad "), "it would have run");
}

/// Settings that git does not use yet when the attempt has ended.
#[test]
fn settings_that_become_active_later_run_nothing() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["branch", "topic"]);
    let script = "echo 1 >>README; g=$(git rev-parse --git-common-dir); echo '* filter=p' >$g/info/attributes
        printf '[frites \"hooks\"]\nbefore-clean = %s\n[filter \"p\"]\nclean = %s\nsmudge = %s\n' \
            \"$BAD\" \"$BAD\" \"$BAD\" >$g/x
        git config includeIf.onbranch:topic.path x; git config 'includeIf.onbranch:frites/**.path' x
        git config -f $g/config.worktree frites.oracle.test true";
    spawn(&world, "1", script).expect(0);
    world.git(["config", "extensions.worktreeConfig", "true"]);
    for branch in ["main", "topic"] {
        world.git(["switch", "-q", branch]);
        let _ = fs::remove_file(world.home().join("canary"));
        for words in [&["judge", "--test", "true"][..], &["apply"], &["spawn", "-n", "1"]] {
            let refused = world.frites(words).expect(128).stderr;
            assert!(refused.contains("the configuration of git-frites changed while"), "{refused}");
        }
        world.sh(&world.worktree("1/c1"), &format!("echo {branch} >>README")).expect(0);
        world.frites(["diff", "1"]).expect(0);
        assert_nothing_ran(&world, branch);
    }
    let log = world.frites(["log", "1"]).expect(0).out();
    for name in ["includeif.onbranch:topic.path", "includeif.onbranch:frites/**.path"] {
        assert!(log.contains(&format!("config '{name}' was set to 'x'")), "{log}");
    }
    assert!(log.contains("worktree config 'frites.oracle.test' was set to 'true'"), "{log}");
    let clean = world.frites(["clean", "1"]);
    assert_nothing_ran(&world, &clean.stderr);
    let _ = world.run(&world.repo, "git", ["add", "--renormalize", "."]);
    assert!(canary(&world).contains("bad "), "it would have run");
}

#[test]
fn changes_of_other_settings_do_not_stop_judge() {
    crate::common::in_the_open_world();
    let world = world();
    spawn(
        &world,
        "1",
        "echo 1 >>src/lib.txt; git config user.x 1; echo 'oracle.test = \"false\"' >.frites.toml",
    )
    .expect(0);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
}

#[test]
fn broken_configuration_is_named_and_capture_goes_on() {
    crate::common::in_the_open_world();
    let world = world();
    let script = "echo 1 >>README; echo '[broken' >>$(git rev-parse --git-common-dir)/config";
    let answer = spawn(&world, "1", script).expect(0);
    let config = world.repo.join(".git/config").display().to_string();
    let words = format!(
        "the configuration cannot be read: git config failed: bad config line 6 in file {config}"
    );
    assert_eq!(answer.changes_warned_of(), [words].into(), "{}", answer.stderr);
    assert!(answer.stderr.contains("1/c1: succeeded in "), "{}", answer.stderr);
    assert!(world.repo.join(".git/refs/frites/1/c1").exists());
    // git itself refuses from here on.
    world.frites(["status"]).expect(128);
}

#[test]
fn configuration_that_could_not_be_read_once_is_compared_again() {
    crate::common::in_the_open_world();
    for (script, refuses) in [
        ("", None),
        ("git config frites.oracle.test true;", Some("config 'frites.oracle.test' was set")),
        ("echo 'ui.notify = \"off\"' > .frites.toml;", None),
    ] {
        let mut world = world();
        kill_git(&mut world, "--show-scope", ":");
        fs::remove_file(world.home().join("kills")).unwrap();
        let frites = |args: &[&str]| world.run(&world.repo, "git-frites", args);
        let attempt = format!("echo 1 >>src/lib.txt; {script} touch \"$HOME/kills\"");
        let answer = frites(&["spawn", "-n", "1", "--", "sh", "-euc", &attempt]).expect(0);
        assert!(answer.stderr.contains("the configuration cannot be read"), "{}", answer.stderr);
        frites(&["judge", "--test", "true"])
            .refuses(128, "the configuration of git-frites changed");
        fs::remove_file(world.home().join("kills")).unwrap();
        let judged = frites(&["judge", "--test", "true"]);
        match refuses {
            None => {
                judged.expect(0);
                assert!(!world.repo.join(".frites/untrusted.json").exists());
            }
            Some(words) => drop(judged.refuses(128, words)),
        }
    }
}

#[test]
fn judging_that_could_not_read_the_configuration_first_has_compared_nothing() {
    let mut world = World::new();
    world.attempts(&["echo 1 >>README"]);
    kill_git(&mut world, "--show-scope", ":");
    let judge = || world.run(&world.repo, "git-frites", ["judge", "--test", "true"]);
    judge().refuses(128, "the configuration cannot be read");
    fs::remove_file(world.home().join("kills")).unwrap();
    judge().expect(0);
}

/// Starts a run whose attempt plants something, says so by `$HOME/ready`, and ends when `$HOME/go`
/// is there.
fn start(world: &World, script: &str) -> Child {
    let script =
        format!("{script}; touch \"$HOME/ready\"; until test -e \"$HOME/go\"; do sleep 0.02; done");
    let args = ["frites", "spawn", "-n", "1", "--run", "slow", "--", "sh", "-euc", &script];
    let mut command = world.command(&world.repo, "git-frites", &args[1..]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.home().join("ready").exists());
    child
}

#[test]
fn planted_programs_do_not_run_in_concurrent_commands() {
    crate::common::in_the_open_world();
    let world = world();
    world.attempts(&["echo 2 >>README"]);
    let plant = "echo '* filter=x' >.gitattributes; echo text >new; git config filter.x.clean \"$BAD\"; git config filter.x.smudge \"$BAD\"
        git config frites.oracle.test true";
    let mut child = start(&world, plant);
    world.frites(["diff", "slow/c1"]).expect(0);
    assert_nothing_ran(&world, "diff");
    world
        .frites(["judge", "--test", "true", "1"])
        .refuses(128, "since run slow's commands started: config 'frites.oracle.test' was set");
    world.sh(&world.home(), "touch go").expect(0);
    assert!(child.wait().unwrap().success());
    world.frites(["judge", "--test", "true", "1"]).refuses(128, "while run slow's commands ran");
    assert_nothing_ran(&world, "judge");
}

#[test]
fn changes_during_a_killed_spawn_are_reported_by_the_next_command() {
    crate::common::in_the_open_world();
    let world = world();
    let mut child = start(&world, "echo 1 >>README; git config frites.oracle.test true");
    child.kill().unwrap();
    child.wait().unwrap();
    world.sh(&world.home(), "touch go").expect(0);
    let said = world.frites(["status"]).expect(0);
    let expected = ["config 'frites.oracle.test' was set to 'true'".to_owned()];
    assert_eq!(said.changes_warned_of(), expected.into(), "{}", said.stderr);
    assert_eq!(event(&world), said.changes_warned_of());
    assert!(world.frites(["status"]).expect(0).changes_warned_of().is_empty(), "once");
    let names = |dir: &str| {
        fs::read_dir(world.repo.join(dir))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        names(".frites/runs/slow"),
        ["c1", "run.toml"].map(Into::into).into(),
        "nothing is left"
    );
    world.frites(["judge", "--test", "true", "slow"]).refuses(128, "run slow's commands ran");
}

#[test]
fn many_changes_are_summarised() {
    crate::common::in_the_open_world();
    let world = world();
    let answer =
        spawn(&world, "1", "echo 1 >>README; for i in $(seq 30); do git config a.b$i c; done")
            .expect(0);
    let said = answer.changes_warned_of();
    assert_eq!(said.len(), 21, "{}", answer.stderr);
    assert!(
        said.contains("10 more changes; `git frites log --json 1` names them"),
        "{}",
        answer.stderr
    );
    assert_eq!(event(&world).len(), 30);
}
