//! Guarded attempts: their commands can write to their own worktree and to a HOME of their own, and
//! git works there, but not to the user's checkouts, to other worktrees or to the repository.
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::common::processes::living;
use crate::common::{Answer, World};
use crate::tool::{NAMESPACES, SECCOMP, STRACE, WITHOUT_LANDLOCK, trials, without_namespaces};
use crate::traces::files_below;

trials! {
    commands_write_to_their_worktree_and_home_and_to_nothing_else: [NAMESPACES];
    every_git_command_works_and_reaches_nothing_of_the_repository: [NAMESPACES];
    commits_staged_content_and_own_branches_are_captured: [NAMESPACES];
    commits_in_a_worktree_that_an_attempt_made_are_kept: [NAMESPACES];
    objects_that_only_files_of_git_name_are_kept: [NAMESPACES];
    objects_that_the_repository_borrows_cannot_be_changed: [NAMESPACES];
    a_later_round_finds_what_an_earlier_one_left: [NAMESPACES];
    a_setup_command_is_guarded_too: [NAMESPACES];
    processes_end_with_their_command: [NAMESPACES];
    attempts_at_the_same_time_have_different_process_ids: [NAMESPACES];
    a_time_limit_and_an_interrupt_end_a_guarded_command: [NAMESPACES];
    what_a_killed_supervisor_or_git_frites_leaves_is_captured: [NAMESPACES];
    a_git_directory_that_is_being_deleted_is_not_taken_for_whole: [NAMESPACES, STRACE];
    submodules_can_be_updated: [NAMESPACES];
    the_configuration_opens_paths_or_requires_the_guard: [NAMESPACES, SECCOMP];
    a_bare_repository_and_a_worktree_root_elsewhere_are_guarded: [NAMESPACES];
    gc_of_the_user_does_not_disturb_a_guarded_attempt: [NAMESPACES];
    codex_has_the_guard_as_its_sandbox: [NAMESPACES];
    filters_can_write_to_the_store_of_git_lfs: [NAMESPACES];
    filters_that_run_code_of_an_attempt_are_confined: [NAMESPACES];
    a_merge_into_an_attempt_writes_through_no_link: [NAMESPACES];
    nothing_takes_the_place_of_a_directory_above_the_checkout_or_the_cache: [NAMESPACES];
    nothing_waits_for_what_is_no_file_in_the_git_directory: [NAMESPACES];
    a_commit_that_cannot_be_read_is_named_and_kept: [NAMESPACES];
    many_objects_are_fetched_beside_a_damaged_one_and_few_gits_are_started: [NAMESPACES];
    files_that_are_too_long_for_memory_are_named_and_kept: [NAMESPACES];
    state_that_git_would_stumble_over_is_not_brought_back: [NAMESPACES];
    an_attempt_cannot_take_all_that_the_user_may_have: [NAMESPACES];
    a_program_can_make_a_sandbox_of_its_own: [NAMESPACES];
    no_attempt_mounts_cgroups_anew_or_fills_memory: [NAMESPACES];
    a_round_that_is_taken_back_writes_through_no_link: [NAMESPACES];
    an_agent_writes_its_own_state_and_no_other_and_no_judge_sees_it: [NAMESPACES];
}

/// A world whose candidates' commands are guarded, and can write to the directory `shared` in the
/// home directory.
fn guarded() -> World {
    let mut world = World::new();
    fs::create_dir(world.home().join("shared")).unwrap();
    world.set_env("FRITES_SPAWN_WRITE", world.home().join("shared"));
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.set_env("FRITES_SPAWN_HOME", "private");
    world
}

/// The repository's files that no attempt may change, with their contents.
pub fn of_the_user(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let ours = [".frites", ".git/objects", ".git/worktrees", ".git/logs"];
    let refs = [".git/refs/frites", ".git/refs/heads/frites"];
    let state = [".git/frites-changing-refs", ".git/frites-packed"];
    let ours: Vec<PathBuf> =
        ours.iter().chain(&refs).chain(&state).map(|name| world.repo.join(name)).collect();
    files_below(&world.repo, |path| ours.iter().any(|ours| ours == path))
}

fn commands_write_to_their_worktree_and_home_and_to_nothing_else() {
    let mut world = guarded();
    world.hook("pre-push", "exit 0");
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    world.set_env("LINKED", &linked);
    world.frites(["spawn", "-q", "-c", "other"]).expect(0);
    let before = of_the_user(&world);
    let script = r#"
        refuses() { if (eval "$1") 2>>refusals; then echo "$1" >> ~/shared/written; fi; }
        top=$HOME/repo; git=$top/.git
        refuses 'echo x > $top/README'
        refuses 'echo x > $top/new'
        refuses 'mv $top/src $top/moved'
        refuses 'chmod 0 $top/README'
        refuses 'echo x > $LINKED/README'
        refuses 'echo x > $top/.frites/worktrees/1/other/README'
        case $FRITES_CANDIDATE in a) sibling=b;; *) sibling=a; esac
        refuses 'echo x > $top/.frites/worktrees/2/$sibling/README'
        refuses 'echo x >> $top/.frites/events.jsonl'
        refuses 'rm $top/.frites/runs/1/run.toml'
        refuses 'mkdir -p $HOME/cache/git-frites/x'
        refuses 'ls $top/.frites/locks | grep .'
        refuses 'ls $HOME/cache/git-frites | grep .'
        refuses 'echo x > /etc/frites-test'
        refuses 'mount -o remount,rw $top'
        refuses 'umount $git'
        refuses 'git frites spawn -n 1'
        echo own > README; echo home > ~/mine; echo temporary > $TMPDIR/frites-test-$FRITES_INDEX
        rm $TMPDIR/frites-test-$FRITES_INDEX
    "#;
    fs::create_dir_all(world.home().join("cache/git-frites")).unwrap();
    let answer = world.frites(["spawn", "-c", "a", "-c", "b", "--", "sh", "-c", script]).expect(0);
    let written = fs::read_to_string(world.home().join("shared/written")).unwrap_or_default();
    assert_eq!(written, "", "nothing else can be written to");
    assert_eq!(of_the_user(&world), before);
    assert!(answer.changes_warned_of().is_empty(), "{}", answer.stderr);
    let refusals = fs::read_to_string(world.worktree("2/a").join("refusals")).unwrap();
    assert!(refusals.contains("Read-only file system"), "{refusals}");
    // Its run is not interrupted, and cannot be recovered from there.
    let nested = "fatal: this is an attempt, which may only change its worktree: could not lock";
    assert!(refusals.contains(nested) && !refusals.contains("interrupted"), "{refusals}");
    assert!(!world.home().join("mine").exists(), "it is in a HOME of the attempt's own");
    assert_eq!(world.git(["show", "refs/frites/2/a:README"]), "own");
    assert_eq!(world.git_in(&linked, ["status", "--porcelain"]), "");
    world.assert_clean();
}

fn every_git_command_works_and_reaches_nothing_of_the_repository() {
    let world = guarded();
    world.git(["tag", "v1"]);
    world.git(["branch", "topic"]);
    world.hook("pre-push", "exit 0");
    let before = of_the_user(&world);
    let script = r#"
        set -eux
        git config user.name Somebody; git config core.hooksPath /evil; git config --unset core.hooksPath
        echo x > "$(git rev-parse --git-common-dir)/hooks/post-commit"
        echo '* -diff' > "$(git rev-parse --git-common-dir)/info/attributes"
        test -z "$(git status --porcelain)"
        test "$(git rev-parse v1)" = "$(git rev-parse topic)"
        echo one >> README; git add README; git commit -qm one
        echo two >> README; git stash -q; git stash pop -q; git commit -qam two
        git branch other; git tag mine; git branch -D topic; git tag -d v1
        git update-ref refs/heads/main HEAD
        git checkout -q -b own; echo three >> README; git commit -qam three
        git checkout -q -; git merge -q own
        for n in $(seq 9); do echo $n > n; git add n; done; git rm -q --cached n; rm n
        git gc -q --prune=now; git gc -q --auto; git repack -adq; git pack-refs --all; git fsck --strict
        git reflog expire --expire=now --all
        git log --format=%s > ../../../../log-of-attempt 2>/dev/null || git log --format=%s > log
    "#;
    let answer = world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert!(answer.changes_warned_of().is_empty(), "{}", answer.stderr);
    assert_eq!(of_the_user(&world), before);
    let worktree = world.worktree("1/a");
    assert_eq!(fs::read_to_string(worktree.join("log")).unwrap(), "three\ntwo\none\nbase\n");
    assert_eq!(world.git(["log", "--format=%s", "frites/run/1/a"]), "three\ntwo\none\nbase");
    assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "?? log");
    assert_eq!(world.git_in(&worktree, ["symbolic-ref", "--short", "HEAD"]), "frites/run/1/a");
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn commits_staged_content_and_own_branches_are_captured() {
    let world = guarded();
    let script = r#"
        set -eu
        printf 'a\0b\377' > binary; ln -s README link; echo run > run; chmod +x run
        git add -A; git commit -qm first; git commit -q --amend -m amended
        git checkout -q -b side; echo side > side; git add side; git commit -qm side
        git rev-parse HEAD > ~/shared/side
        echo stashed > side; git stash -q; git rev-parse stash > ~/shared/stash
        git checkout -q --detach HEAD~; echo detached > d; git add d; git commit -qm detached
        git rev-parse HEAD > ~/shared/detached; git rev-parse 'HEAD@{3}' > ~/shared/logged
        git commit-tree -m odd HEAD: > ~/shared/odd; git branch "$(printf 'caf\351')" $(cat ~/shared/odd)
        git commit-tree -m main HEAD: > ~/shared/main
        git --git-dir="$(git rev-parse --git-common-dir)" update-ref refs/bisect/bad $(cat ~/shared/main)
        echo staged > staged; git add staged; git rev-parse :staged > ~/shared/staged; echo later > staged
    "#;
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    let saved = |name: &str| {
        fs::read_to_string(world.home().join("shared").join(name)).unwrap().trim().to_owned()
    };
    let worktree = world.worktree("1/a");
    assert_eq!(world.git_in(&worktree, ["rev-parse", "HEAD"]), saved("detached"));
    assert_eq!(
        world.git_in(&worktree, ["rev-parse", "worktree/attempt/heads/side"]),
        saved("side")
    );
    assert_eq!(world.git_in(&worktree, ["show", ":staged"]), "staged");
    world.frites(["clean", "1"]).expect(0);
    assert!(!worktree.exists());
    for commit in ["side", "stash", "detached", "logged", "odd", "main"].map(saved) {
        world.git(["merge-base", "--is-ancestor", &commit, "refs/frites/1/a"]);
    }
    world.git(["reflog", "expire", "--expire=now", "--all"]);
    world.git(["gc", "-q", "--prune=now"]);
    assert_eq!(world.git(["cat-file", "blob", &saved("staged")]), "staged");
    assert_eq!(world.git(["show", "refs/frites/1/a:staged"]), "later");
    let binary = world.run(&world.repo, "git", ["show", "refs/frites/1/a:binary"]).expect(0);
    assert_eq!(binary.stdout, b"a\0b\xff");
    let tree = world.git(["ls-tree", "refs/frites/1/a", "link", "run"]);
    assert!(tree.contains("120000") && tree.contains("100755"), "{tree}");
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

/// No branch leads to the commits of a worktree whose HEAD is detached.
fn commits_in_a_worktree_that_an_attempt_made_are_kept() {
    let world = guarded();
    let script = "
        echo 1 > README; git worktree add -q --detach $TMPDIR/frites-own; cd $TMPDIR/frites-own
        commit() { echo $1 > file; git add file; git commit -qm $1; git rev-parse HEAD >> ~/shared/commits; }
        commit first; git reset -q --hard HEAD~1; commit second; rm -r $TMPDIR/frites-own";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-euc", script]).expect(0);
    world.frites(["clean"]).expect(0);
    world.git(["gc", "-q", "--prune=now"]);
    let commits = fs::read_to_string(world.home().join("shared/commits")).unwrap();
    assert_eq!(commits.lines().count(), 2);
    for (commit, content) in commits.lines().zip(["first", "second"]) {
        assert_eq!(world.git(["show", &format!("{commit}:file")]), content);
    }
    world.assert_clean();
}

/// git keeps the objects that a reflog, an autostash or the index of another worktree names.
fn objects_that_only_files_of_git_name_are_kept() {
    let world = guarded();
    world.git(["branch", "topic"]);
    let script = "
        echo 1 > README; at() { git worktree add -q \"$@\"; cd $TMPDIR/frites-$n; }
        n=a; at $TMPDIR/frites-a topic; echo moved > file; git add file; git commit -qm moved
        git reset -q --hard HEAD~; cd -; git worktree remove --force $TMPDIR/frites-a
        n=b; at -b one $TMPDIR/frites-b; echo one > file; git add file; git commit -qm one
        git checkout -qb two HEAD~; echo two > file; git add file; git commit -qm two
        echo stashed > README; git rebase --autostash one && exit 1; cd -
        n=c; at --detach $TMPDIR/frites-c; echo staged > README; git add README; cd -
        rm -rf $TMPDIR/frites-[abc]; git config gc.reflogExpire never
        git config gc.reflogExpireUnreachable never; git gc -q --prune=now
        for content in moved stashed staged; do
            echo $content | git hash-object --stdin >> ~/shared/blobs; done
        git cat-file --batch-check < ~/shared/blobs | grep missing && exit 1; true";
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-euc", script]).expect(0);
    world.frites(["clean"]).expect(0);
    world.git(["gc", "-q", "--prune=now"]);
    let blobs = fs::read_to_string(world.home().join("shared/blobs")).unwrap();
    assert_eq!(blobs.lines().count(), 3);
    for (blob, content) in blobs.lines().zip(["moved", "stashed", "staged"]) {
        assert_eq!(world.git(["cat-file", "blob", blob]), content);
    }
    world.assert_clean();
}

/// git does not compare the content of an object with its id when it reads a loose one.
fn objects_that_the_repository_borrows_cannot_be_changed() {
    let world = guarded();
    let lender = world.home().join("shared/lender");
    world.git(["clone", "-q", "--bare", ".", lender.to_str().unwrap()]);
    let borrower = world.home().join("borrower");
    world.git(["clone", "-q", "--shared", lender.to_str().unwrap(), borrower.to_str().unwrap()]);
    let before = files_below(&lender, |_| false);
    let script = "echo 1 > README; chmod -R u+w ~/shared/lender/objects; rm -rf ~/shared/lender/objects/*; true";
    world.frites_in(&borrower, ["spawn", "-q", "-n", "1", "--", "sh", "-c", script]).expect(0);
    assert!(files_below(&lender, |_| false) == before);
    assert_eq!(world.git_in(&borrower, ["show", "refs/frites/1/c1:README"]), "1");
}

/// The branch `in` becomes a directory, and `out/1` a file. `.git/packed-refs` has both `both` and
/// `both/1`.
fn a_later_round_finds_what_an_earlier_one_left() {
    let world = guarded();
    let first = r#"
        set -eu
        echo one >> README; git commit -qam one; git branch own; git branch in; git branch out/1
        packed=$(git rev-parse --git-common-dir)/packed-refs
        for name in both both/1; do echo "$(git rev-parse HEAD) refs/heads/$name" >> $packed; done
        echo s > src/lib.txt; git stash -q
    "#;
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", first]).expect(0);
    let worktree = world.worktree("1/a");
    fs::write(worktree.join("by-hand"), "1\n").unwrap();
    world.git_in(&worktree, ["add", "by-hand"]);
    world.git_in(&worktree, ["commit", "-qm", "by hand"]);
    let second = r#"
        set -eu
        test "$(git log --format=%s | tr '\n' ,)" = 'by hand,one,base,'
        test "$(git log -1 --format=%s own)" = one
        git stash pop -q; test "$(cat src/lib.txt)" = s
        git commit -qam two; git branch -D own; git branch -m in in/1; git branch -m out/1 out
    "#;
    world.frites(["retry", "1/a", "--", "sh", "-c", second]).expect(0);
    assert_eq!(world.git(["log", "--format=%s", "frites/run/1/a"]), "two\nby hand\none\nbase");
    let own =
        world.run(&worktree, "git", ["rev-parse", "-q", "--verify", "worktree/attempt/heads/own"]);
    assert_eq!(own.code, 1, "a branch that the attempt deleted is gone");
    for name in ["heads/in/1", "heads/out", "heads/both", "heads+both+1"] {
        world.git_in(
            &worktree,
            ["rev-parse", "-q", "--verify", &format!("worktree/attempt/{name}")],
        );
    }
    world.assert_clean();
}

fn a_setup_command_is_guarded_too() {
    let world = guarded();
    let before = of_the_user(&world);
    let setup =
        "echo x > $HOME/repo/README; git config a.b c; echo made > made; git add -f made; exit 0";
    world.git(["config", "frites.spawn.setup", setup]);
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", "echo 1 > README"]).expect(0);
    let mut now = of_the_user(&world);
    let mut before = before;
    let config = world.repo.join(".git/config");
    assert!(!fs::read_to_string(&config).unwrap().contains("[a]"));
    now.remove(&config);
    before.remove(&config);
    assert_eq!(now, before);
    let worktree = world.worktree("1/a");
    assert_eq!(fs::read_to_string(worktree.join("made")).unwrap(), "made\n");
    assert_eq!(world.git_in(&worktree, ["show", ":made"]), "made");
    world.assert_clean();
}

/// They share `/tmp`, where scripts name files by their process id.
fn attempts_at_the_same_time_have_different_process_ids() {
    let world = guarded();
    world.spawn(["-n", "3", "--", "sh", "-c", "echo $$ > id"]);
    let id =
        |name: &str| fs::read_to_string(world.worktree(&format!("1/{name}")).join("id")).unwrap();
    let ids: BTreeMap<String, &str> = ["c1", "c2", "c3"].map(|name| (id(name), name)).into();
    assert_eq!(ids.len(), 3, "{ids:?}");
    world.assert_clean();
}

fn processes_end_with_their_command() {
    let mut world = guarded();
    world.set_env("MARK", "guarded-processes");
    let script =
        "setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & (setsid sleep 1000 &); echo 1 > README";
    let answer = world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert!(
        answer.stderr.contains("it left processes behind, which were ended"),
        "{}",
        answer.stderr
    );
    assert_eq!(living("guarded-processes"), []);
    world.assert_clean();
}

fn a_time_limit_and_an_interrupt_end_a_guarded_command() {
    let world = guarded();
    let script = "echo 1 > README; git commit -qam mine; echo 2 > README; echo > ~/shared/started; exec sleep 1000";
    let words = ["spawn", "-c", "a", "--timeout", "2s", "--", "sh", "-c", script];
    let answer = world.frites(words).expect(4);
    assert!(answer.stderr.contains("timed-out"), "{}", answer.stderr);
    assert_eq!(world.git(["show", "refs/frites/1/a:README"]), "2");
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/run/1/a"]), "mine");
    fs::remove_file(world.home().join("shared/started")).unwrap();
    let script = format!(
        "set -m; git-frites spawn -c a -- sh -c '{script}' & child=$!
         until test -e ~/shared/started; do :; done; kill -INT $child; wait $child"
    );
    let code = world.run(&world.repo, "bash", ["-c", &script]).code;
    assert_eq!(code, 130);
    assert_eq!(world.git(["show", "refs/frites/2/a:README"]), "2");
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/run/2/a"]), "mine");
    world.assert_clean();
}

fn what_a_killed_supervisor_or_git_frites_leaves_is_captured() {
    let mut world = guarded();
    world.set_env("MARK", "guarded-killed");
    let script = "echo 1 > README; git commit -qam mine; echo staged > new; git add new; echo 2 > new; git rev-parse HEAD > ~/shared/commit; echo > ~/shared/started; exec sleep 1000";
    for (run, victim) in [("1", "git-frites spawn"), ("2", "git-frites __supervise")] {
        let _ = fs::remove_file(world.home().join("shared/started"));
        let script = format!(
            "git-frites spawn -q -c a -- sh -c '{script}' & until test -e ~/shared/started; do :; done"
        );
        let mut started = world.command(&world.repo, "bash", ["-c", &script]).spawn().unwrap();
        started.wait().unwrap();
        let all = living("guarded-killed");
        let found = all.iter().find(|(_, words)| words.contains(victim));
        let (id, _) = found.unwrap_or_else(|| panic!("{victim}: {all:?}"));
        world.run(&world.repo, "sh", ["-c", &format!("kill -KILL {id}")]).expect(0);
        crate::common::poll(|| living("guarded-killed").is_empty());
        let _ = world.frites(["diff", run]);
        let commit = fs::read_to_string(world.home().join("shared/commit")).unwrap();
        assert_eq!(world.git(["rev-parse", &format!("frites/run/{run}/a")]), commit.trim());
        let capture = format!("refs/frites/{run}/a");
        assert_eq!(world.git(["show", &format!("{capture}:new")]), "2");
        world.git(["merge-base", "--is-ancestor", commit.trim(), &capture]);
        assert_eq!(world.git_in(&world.worktree(&format!("{run}/a")), ["show", ":new"]), "staged");
        assert!(!world.repo.join(format!(".frites/runs/{run}/a/own")).exists());
    }
    world.git(["fsck", "--strict"]);
}

/// git-frites is killed when it deletes the first file of the directory.
fn a_git_directory_that_is_being_deleted_is_not_taken_for_whole() {
    let world = guarded();
    let own = world.repo.join(".frites/runs/1/a/own");
    let git = own.join("git");
    let script = "echo 1 > README; git branch side $(git commit-tree -m side HEAD:)";
    let kill = ["-f", "-o", "/dev/null", "-e", "inject=unlinkat,rmdir:signal=KILL:when=1", "-P"];
    let spawn = ["git-frites", "spawn", "-q", "-c", "a", "--", "sh", "-euc", script];
    let words = kill.into_iter().chain([git.to_str().unwrap()]).chain(spawn);
    assert_ne!(world.run(&world.repo, "strace", words).code, 0);
    assert!(git.exists() && !own.join("entry").exists());
    world.frites(["capture", "1/a"]).expect(0);
    let side = world.git_in(&world.worktree("1/a"), ["rev-parse", "worktree/attempt/heads/side"]);
    world.git(["merge-base", "--is-ancestor", &side, "refs/frites/1/a"]);
}

fn submodules_can_be_updated() {
    let world = guarded();
    let library = world.home().join("library");
    fs::create_dir(&library).unwrap();
    world.git_in(&library, ["init", "-q"]);
    fs::write(library.join("code"), "1\n").unwrap();
    world.git_in(&library, ["add", "-A"]);
    world.git_in(&library, ["commit", "-qm", "library"]);
    let allow = ["-c", "protocol.file.allow=always"];
    let add = ["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"];
    world.git(allow.into_iter().chain(add));
    world.commit("with a submodule");
    let script = "set -eu; git -c protocol.file.allow=always submodule --quiet update --init; cat lib/code >> README; git commit -qam mine";
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    let worktree = world.worktree("1/a");
    assert_eq!(world.git_in(&worktree.join("lib"), ["log", "-1", "--format=%s"]), "library");
    assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "");
    assert_eq!(world.git(["show", "refs/frites/1/a:README"]), "hello\n1");
    world.assert_clean();
}

fn the_configuration_opens_paths_or_requires_the_guard() {
    let mut world = guarded();
    world.set_env("FRITES_SPAWN_WRITE", "src");
    let script = "echo 1 > README; echo opened > ~/repo/src/opened; ! echo x > ~/repo/new";
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert_eq!(fs::read_to_string(world.repo.join("src/opened")).unwrap(), "opened\n");
    let refused = |mode: &str| {
        let spawn = "git frites spawn -c a -- sh -c 'echo 1 > README; echo x > ~/repo/escaped; echo : > ~/repo/.git/hooks/escaped'";
        let without_landlock = format!("python3 -c '{WITHOUT_LANDLOCK}'");
        let script = format!("FRITES_SPAWN_GUARD={mode} exec {without_landlock} {spawn}");
        without_namespaces(&world, &script)
    };
    refused("required").refuses(128, "attempts cannot be guarded: no world can be made here");
    assert!(!world.repo.join("escaped").exists());
    let answer = refused("auto").expect(0);
    assert_eq!(answer.stderr.matches("attempts run unguarded").count(), 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("escaped"), "the report about escapes stays: {}", answer.stderr);
    world.set_env("FRITES_LIMITS_NESTING", "2");
    world.frites(["spawn", "-c", "a", "--", "true"]).refuses(128, "limits.nesting");
}

/// As agents do for the commands that they run.
fn a_program_can_make_a_sandbox_of_its_own() {
    let world = guarded();
    let script = "unshare --user --map-root-user --mount sh -euc '
        mount -t tmpfs none /var/tmp; echo x > /var/tmp/x; echo 1 > README; ! echo x > ~/repo/README'";
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert_eq!(world.first_candidate("1")["exit_code"], 0);
    assert_eq!(world.git(["show", "refs/frites/1/a:README"]), "1");
    world.assert_clean();
}

fn no_attempt_mounts_cgroups_anew_or_fills_memory() {
    let world = guarded();
    let script = r#"
        unshare --user --map-root-user --mount true || exit 8
        ! unshare --user --map-root-user --mount --cgroup true || exit 9
        memory=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
        size=$(df --output=size /dev/shm | tail -1)
        test $((size * 3)) -lt $memory || exit 10
        echo 1 > README"#;
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert_eq!(world.first_candidate("1")["exit_code"], 0);
}

/// Runs `command` in a shell, in a repository with a filter for `*.swap`. While the filter runs in
/// a worktree that has a file `armed`, something else changes the worktree's `dir` into a link to
/// the repository's hooks, as another attempt can do that has the worktree open: between the moment
/// at which git looked at the directory and the moment at which git writes there.
fn with_swapped_directory(world: &World, worktree: &str, command: &str) -> Answer {
    // A world in `/dev/shm` shows only the repository and its state.
    let pipe = world.repo.join(".frites/pipe");
    let pipe = pipe.display();
    // The shell opens the pipe when the filter does.
    let script = format!(
        "mkdir .frites; mkfifo {pipe}
         (exec 3>{pipe}; cd {worktree} && rm armed && mv dir moved && ln -s {}/.git/hooks dir) & other=$!
         code=0; ({command}) || code=$?
         kill $other 2>/dev/null || true; exit $code",
        world.repo.display()
    );
    world.git(["config", "filter.swap.smudge", &format!("! test -e armed || cat {pipe} >&2; cat")]);
    world.write(".gitattributes", "*.swap filter=swap\n");
    world.commit("attributes");
    fs::write(world.repo.join(".git/info/exclude"), "armed\n").unwrap();
    let answer = world.sh(&world.repo, &script);
    assert!(!world.repo.join(".git/hooks/planted.swap").exists(), "{}", answer.stderr);
    let worktree = world.repo.join(worktree);
    assert!(worktree.join("moved").exists(), "{}", answer.stderr);
    answer
}

fn a_round_that_is_taken_back_writes_through_no_link() {
    let world = guarded();
    let script = "if ! test -e built; then mkdir dir; touch built dir/kept dir/planted.swap
        else rm built dir/planted.swap; touch armed; fi";
    let run = "git frites run -n 1 --rounds 1 --build 'test -e built' --test false";
    let command = format!("{run} -- sh -c '{script}'");
    let answer = with_swapped_directory(&world, ".frites/worktrees/1/c1", &command).expect(3);
    let line = "1/c1: could not restore the files from before round 1: git read-tree failed: unable to create";
    assert!(answer.stderr.contains(line), "{}", answer.stderr);
}

fn a_merge_into_an_attempt_writes_through_no_link() {
    let world = guarded();
    let script = "
        git frites spawn -q -n 1 -- sh -c 'mkdir dir; touch dir/kept'
        git frites spawn -q --from 1/c1 -n 1 -- touch dir/planted.swap
        git frites judge -q --test true 1; git frites judge -q --test true 2
        touch .frites/worktrees/1/c1/armed
        git frites apply --merge --into parent --allow-unverified -m x 2";
    let answer = with_swapped_directory(&world, ".frites/worktrees/1/c1", script).expect(128);
    assert!(answer.stderr.contains("git read-tree failed: unable to create"), "{}", answer.stderr);
}

fn a_bare_repository_and_a_worktree_root_elsewhere_are_guarded() {
    let mut world = guarded();
    let bare = world.home().join("bare.git");
    world.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let script = "set -eu; echo 1 > README; git commit -qam mine; ! echo x > ~/bare.git/.frites/x; git config a.b c";
    world.frites_in(&bare, ["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert_eq!(world.git_in(&bare, ["log", "-1", "--format=%s", "frites/run/1/a"]), "mine");
    assert!(!fs::read_to_string(bare.join("config")).unwrap().contains("[a]"));
    world.set_env("FRITES_SPAWN_WORKTREE_ROOT", "../elsewhere");
    let script = "set -eu; echo 1 > README; git commit -qam mine; ! echo x > ~/elsewhere/x; ! echo x > ~/repo/x";
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    assert_eq!(world.git(["log", "-1", "--format=%s", "frites/run/1/a"]), "mine");
    world.assert_clean();
}

/// In between, a failure to note where the branch is does not keep it from moving on.
fn gc_of_the_user_does_not_disturb_a_guarded_attempt() {
    let world = guarded();
    world.write("later", "1\n");
    world.commit("later");
    let attempt = "set -eu; echo 1 > README; git commit -qam first; echo > ~/shared/started; until test -e ~/shared/go-on; do :; done; git log -p > /dev/null; git fsck --strict; echo 2 >> README; git commit -qam second";
    let script = format!(
        "git-frites spawn -c a -- sh -c '{attempt}' > ~/out 2>&1 & child=$!
         until test -e ~/shared/started; do :; done
         git reflog expire --expire=now --all; git gc -q --prune=now; git pack-refs --all
         mkdir .frites/runs/1/a/own/branch; ! git-frites capture 1/a; rmdir .frites/runs/1/a/own/branch
         git-frites capture 1/a; git gc -q --prune=now
         echo > ~/shared/go-on; wait $child || {{ cat ~/out; exit 1; }}"
    );
    world.run(&world.repo, "bash", ["-c", &script]).expect(0);
    assert_eq!(world.git(["log", "--format=%s", "-2", "frites/run/1/a"]), "second\nfirst");
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

/// Codex's own sandbox would keep it from committing.
fn codex_has_the_guard_as_its_sandbox() {
    let world = guarded();
    let bin = world.home().join("bin");
    let program = "#!/bin/sh\necho \"$@\" > args; git add args; git commit -qm mine\n";
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("codex"), program).unwrap();
    let script = r#"chmod +x ~/bin/codex; PATH=~/bin:$PATH
        git-frites spawn -q --agent codex -p x
        FRITES_SPAWN_GUARD=off git-frites spawn -q --agent codex -p x"#;
    world.sh(&world.repo, script).expect(0);
    for (run, mode) in [("1", "danger-full-access"), ("2", "workspace-write")] {
        let args = world.git(["show", &format!("frites/run/{run}/codex-1:args")]);
        assert_eq!(args, format!("exec --json --skip-git-repo-check -s {mode} -"));
    }
    world.assert_clean();
}

/// git-frites finds the checkout and its cache by their paths: a copy with other content must not
/// appear there.
fn nothing_takes_the_place_of_a_directory_above_the_checkout_or_the_cache() {
    let world = guarded();
    let clone =
        "mkdir -p deep/src && git clone -q repo deep/src/project && git init -q --bare deep/bare";
    world.sh(&world.home(), clone).expect(0);
    let project = world.home().join("deep/src/project");
    let script = r#"
        for directory in deep deep/src deep/src/project cache cache/git-frites; do
            perl -e 'exit !rename $ARGV[0], $ARGV[1]' ~/$directory ~/$directory.old &&
                echo $directory >> ~/shared/moved
        done
        echo kept > ~/deep/src/file; mv ~/deep/src/file ~/deep/src/renamed && echo x > done"#;
    world.frites_in(&project, ["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    let moved = fs::read_to_string(world.home().join("shared/moved")).unwrap_or_default();
    assert_eq!(moved, "", "other files can be put there");
    assert!(
        !world.home().join("deep/src/renamed").exists(),
        "it is in a HOME of the attempt's own"
    );
    let files = world.frites_in(&project, ["diff", "--stat", "a"]).expect(0);
    assert!(files.out().contains("done"), "{}", files.out());
    world.assert_clean();
}

/// git-lfs keeps the contents of files in `lfs` of the common git directory.
fn filters_can_write_to_the_store_of_git_lfs() {
    let world = guarded();
    let clean = "lfs=\"$(git rev-parse --git-common-dir)/lfs\"; cat > \"$lfs/stored\"; mkdir -p \"$lfs/objects\"
        s=$(sha256sum < \"$lfs/stored\" | cut -c1-64); cp \"$lfs/stored\" \"$lfs/objects/$s\"
        printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $s $(wc -c < \"$lfs/stored\")";
    world.git(["config", "filter.lfs.clean", clean]);
    world.git(["config", "filter.lfs.required", "true"]);
    world.write(".gitattributes", "*.bin filter=lfs\n");
    world.write(".git/lfs/stored", "before");
    world.commit("attributes");
    let wrong = "0".repeat(64);
    let script = format!(
        "commit() {{ echo $1 > a.bin; git add a.bin; git commit -qm $1; }}; commit old; commit content
        lfs=$(git rev-parse --git-common-dir)/lfs; cat $lfs/stored > seen; echo wrong > $lfs/objects/{wrong}
        echo unnamed > $lfs/objects/$(echo unnamed | sha256sum | cut -c1-64)"
    );
    world.frites(["spawn", "-n", "1", "--", "sh", "-euc", &script]).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:seen"]), "content");
    let pointer = world.git(["show", "refs/frites/1/c1:a.bin"]);
    assert!(pointer.ends_with("size 8"), "{pointer}");
    // The filter itself stored the current content; the old one was taken from the attempt's store.
    let stored = "cd .git/lfs/objects; find . -type f | sort; cat */*/*";
    let stored = world.sh(&world.repo, stored).expect(0).out();
    let hash = world.sh(&world.repo, "echo old | sha256sum | cut -c1-64").expect(0).out();
    let [first, second] = [&hash[..2], &hash[2..4]];
    assert!(stored.contains(&format!("./{first}/{second}/{hash}")), "{stored}");
    assert!(stored.contains("\nold\n") && !stored.contains("unnamed"), "{stored}");
    assert!(!stored.contains(&wrong), "{stored}");
    // So can filters of a git of ours that writes into an attempt's worktree.
    let smudge = "cd \"$(git rev-parse --git-common-dir)\" && touch kept/new annex/new && cat";
    world.git(["config", "filter.lfs.clean", "cat"]);
    world.git(["config", "filter.lfs.smudge", smudge]);
    world.git(["config", "lfs.storage", "kept"]);
    world.sh(&world.repo, "mkdir .git/kept .git/annex").expect(0);
    world.spawn(["-n", "1", "--from", "1/c1"]);
    world.sh(&world.worktree("2/c1"), "echo b > b.bin").expect(0);
    world.frites(["judge", "-q", "--test", "true", "2"]).expect(0);
    world.sh(&world.repo, "rm -f .git/kept/new .git/annex/new").expect(0);
    world.frites(["apply", "--merge", "--into", "1/c1", "2"]).expect(0);
    world.sh(&world.repo, "test -e .git/kept/new && test -e .git/annex/new").expect(0);
    world.frites(["clean"]).expect(0);
    world.assert_clean();
}

/// A filter finds programs of the attempt beside the files that it reads: here by its current
/// directory, as `python3 -m` finds modules.
fn filters_that_run_code_of_an_attempt_are_confined() {
    let world = guarded();
    let filter = "if test -e tool; then . ./tool; fi; printf '<%s>' \"$TMPDIR\" > \"$TMPDIR/x\"; cat; printf '%s %%%%' ";
    world.git(["config", "filter.own.clean", &format!("{filter} %f")]);
    world.git(["config", "filter.own.smudge", &format!("{filter} >&2")]);
    world.git(["config", "filter.own.required", "true"]);
    world.write(".gitattributes", "*.own filter=own\n");
    world.commit("attributes");
    let planted = [".git/hooks/post-checkout", ".frites/planted", "README"];
    let tool =
        planted.map(|path| format!("(echo x > {}/{path}) 2>/dev/null", world.repo.display()));
    let name = "a'$(touch injected) b.own";
    fs::write(world.home().join("shared/tool"), tool.join("; ")).unwrap();
    let script = format!("cp ~/shared/tool tool; echo content > \"{}\"", name.replace('$', "\\$"));
    let before = of_the_user(&world);
    let words = ["spawn", "-q", "-n", "1", "--", "sh", "-c", &script];
    world.frites(words).expect(0);
    let captured = world.git(["show", &format!("refs/frites/1/c1:{name}")]);
    assert_eq!(captured, format!("content\n{name} %"));
    assert_eq!(of_the_user(&world), before);
    assert!(!world.repo.join(".frites/planted").exists());
    assert!(!world.worktree("1/c1").join("injected").exists());
}

/// `git-frites` with an end, if a git process waits for a FIFO.
fn limited<'a>(world: &World, words: impl IntoIterator<Item = &'a str>) -> Answer {
    let all = ["--kill-after=1", "60", "git-frites"].into_iter().chain(words);
    world.run(&world.repo, "timeout", all)
}

fn nothing_waits_for_what_is_no_file_in_the_git_directory() {
    let world = guarded();
    let script = r#"
        echo $FRITES_CANDIDATE > greeting; git add greeting; git commit -qm mine; git branch own
        git=$(git rev-parse --git-common-dir); own=$(git rev-parse --git-dir)
        replace() { rm -rf $1; mkfifo $1; }
        case $FRITES_CANDIDATE in
        alternates) replace $git/objects/info/alternates;;
        graph) replace $git/objects/info/commit-graph;;
        packs) replace $git/objects/info/packs; replace $git/objects/pack/pack-1.idx; replace $git/objects/pack/multi-pack-index;;
        refs) replace $git/packed-refs; replace $git/refs/heads/x; replace $own/logs/HEAD; replace $own/frites-new;;
        link) mv $git/objects/info ~/info; ln -s ~/info $git/objects/info; ln -s /dev/zero $git/objects/info/commit-graph;;
        esac
    "#;
    let names = ["alternates", "graph", "packs", "refs", "link"];
    let candidates = names.iter().flat_map(|name| ["-c", *name]);
    let words = ["run", "--test", "false"].into_iter().chain(candidates);
    let answer = limited(&world, words.chain(["--", "sh", "-c", script])).expect(1);
    for (name, file) in
        names.iter().zip(["info/alternates", "info/commit-graph", "info/packs", "HEAD", "info"])
    {
        let line = answer.stderr.lines().find(|line| {
            line.contains(&format!("1/{name}: not read, because it is not a regular"))
        });
        assert!(line.is_some_and(|line| line.contains(file)), "{name}: {}", answer.stderr);
        assert_eq!(world.git(["show", &format!("refs/frites/1/{name}:greeting")]), *name);
        let log = world.git(["log", "--format=%s", &format!("frites/run/1/{name}")]);
        assert_eq!(log, "mine\nbase");
    }
    limited(&world, ["clean", "1"]).expect(0);
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn files_that_are_too_long_for_memory_are_named_and_kept() {
    let world = guarded();
    let script = r#"
        echo mine > README; git commit -qam mine
        own=$(git rev-parse --git-dir); git=$(git rev-parse --git-common-dir)
        if test $FRITES_CANDIDATE = entry; then truncate -s 1023M $own/long1 $own/long2 $own/logs/HEAD
        else truncate -s 1023M $git/packed-refs $git/logs/long1 $git/refs/heads/long2; fi
    "#;
    let run = "ulimit -v 3145728; exec git-frites run -c entry -c refs --test 'grep mine README' -- sh -c \"$1\"";
    let answer = world.run(&world.repo, "sh", ["-c", run, "sh", script]).expect(3);
    for (name, file) in [("entry", "/long1'"), ("refs", "/packed-refs'")] {
        let line = format!("warning: 1/{name}: files that were not brought back: '");
        let line = answer.stderr.lines().find(|found| found.starts_with(&line));
        assert!(line.is_some_and(|line| line.contains(file)), "{name}: {}", answer.stderr);
        let log = world.git(["log", "--format=%s", &format!("refs/frites/1/{name}")]);
        assert!(log.contains("mine"), "{log}");
    }
    let log = world.git_in(&world.worktree("1/entry"), ["rev-parse", "--git-path", "logs/HEAD"]);
    assert!(fs::metadata(log).is_ok_and(|log| log.len() < 1000), "the reflog from before stays");
    world.frites(["clean", "-n", "1/entry"]).refuses(1, "files that were not brought back");
    world.frites(["clean", "--discard", "1"]).expect(0);
    world.assert_clean();
}

fn state_that_git_would_stumble_over_is_not_brought_back() {
    let world = guarded();
    world.git(["switch", "-q", "-c", "dev"]);
    let script = r#"
        mkdir a; echo $FRITES_CANDIDATE > a/made; git add a; git commit -qm mine
        git=$(git rev-parse --git-common-dir); own=$(git rev-parse --git-dir); tip=$(git rev-parse HEAD)
        case $FRITES_CANDIDATE in
        missing) git update-index --add --cacheinfo 100644,1111111111111111111111111111111111111111,missing;;
        tree) git write-tree > /dev/null; rm -f $git/objects/??/*; git update-index --refresh; git reset -q;;
        extension) (head -c -20 $own/index; printf 'zzzz\0\0\0\4aaaa'; head -c 20 /dev/zero) > x; mv x $own/index;;
        sparse) git sparse-checkout set --cone --sparse-index src;;
        branch) mkdir $own/rebase-merge; echo refs/heads/main > $own/rebase-merge/head-name
            echo main > $own/BISECT_START; : > $own/BISECT_LOG; echo ref: refs/heads/main > $own/HEAD;;
        refs) seq 10001 11200 | sed "s|^|$tip refs/heads/n|" >> $git/packed-refs;;
        esac
    "#;
    let names = ["missing", "tree", "extension", "sparse", "branch", "refs"];
    let candidates = names.iter().flat_map(|name| ["-c", *name]);
    let words = ["run", "--test", "false"].into_iter().chain(candidates);
    let answer = limited(&world, words.chain(["--", "sh", "-c", script])).expect(1);
    for name in names {
        let made = world.git(["show", &format!("refs/frites/1/{name}:a/made")]);
        assert_eq!(made, name, "{}", answer.stderr);
    }
    let left_out = "warning: 1/refs: commits that were not brought back, kept in '";
    assert!(answer.stderr.contains(left_out), "{}", answer.stderr);
    world.git(["switch", "-q", "main"]);
    world.git(["gc", "-q", "--prune=now"]);
    world.git(["fsck", "--strict"]);
    limited(&world, ["clean", "1", "--discard"]).expect(0);
    world.assert_clean();
}

fn an_attempt_cannot_take_all_that_the_user_may_have() {
    let world = guarded();
    let script = "ulimit -u 4000; ulimit -i 8000; ulimit -q 800000
        git-frites spawn -n 1 -- bash -c 'ulimit -u > limit; ulimit -i >> limit; ulimit -q >> limit
        cat /proc/sys/user/max_inotify_instances >> limit'";
    world.run(&world.repo, "bash", ["-c", script]).expect(0);
    let most = fs::read_to_string("/proc/sys/user/max_inotify_instances").unwrap();
    let quarter = most.trim().parse::<u64>().unwrap() / 4;
    let limits = format!("3500\n1000\n100000\n{quarter}");
    assert_eq!(world.git(["show", "refs/frites/1/c1:limit"]), limits);
}

fn many_objects_are_fetched_beside_a_damaged_one_and_few_gits_are_started() {
    // The index lists 400 objects, and HEAD a commit without its tree.
    let script = r#"
        for i in $(seq 1001 1400); do printf 'blob\nmark :%s\ndata 4\n%s\n' $((i - 1000)) $i; done |
            git fast-import --quiet --export-marks=/tmp/marks
        sed 's/:\(.*\) \(.*\)/100644 \2\tzz\/\1/' /tmp/marks | git update-index --index-info
        bad=$(printf 'tree 1111111111111111111111111111111111111111\nauthor a <a@a> 1 +0000\ncommitter a <a@a> 1 +0000\n\nx\n' |
            git hash-object -t commit -w --stdin --literally)
        echo $bad > $(git rev-parse --git-dir)/HEAD; echo more >> README
    "#;
    let mut world = guarded();
    let log = world.home().join("log");
    world.set_env("FRITES_LOG", "debug");
    world.set_env("FRITES_LOG_FILE", &log);
    limited(&world, ["spawn", "-n", "1", "--", "bash", "-euc", script]).expect(0);
    let calls = fs::read_to_string(log).unwrap().matches("fetch-pack").count();
    assert!((2..60).contains(&calls), "{calls}");
    // The content that is only staged is kept.
    let kept = world.git(["rev-list", "--objects", "refs/frites/1/c1"]);
    let staged =
        world.sh(&world.repo, "echo 1234 | tr -d '\\n' | git hash-object --stdin").expect(0);
    assert!(kept.contains(staged.out().trim()), "{calls}: {kept}");
}

fn a_commit_that_cannot_be_read_is_named_and_kept() {
    let world = guarded();
    // The second commit's object is replaced: by a FIFO, and by another object's bytes.
    let script = r#"
        echo 1 > README; git commit -qam good; echo 2 > README; git commit -qam bad
        git rev-parse HEAD > ~/shared/bad-$FRITES_CANDIDATE
        objects=$(git rev-parse --git-common-dir)/objects
        object() { git rev-parse $1 | sed "s|^..|$objects/&/|"; }
        bad=$(object HEAD); other=$(object HEAD~)
        rm -f $bad
        if test $FRITES_CANDIDATE = fifo; then mkfifo $bad; else cp $other $bad; fi
    "#;
    let words = ["spawn", "-c", "fifo", "-c", "wrong", "--", "sh", "-c", script];
    let answer = limited(&world, words).expect(0);
    for name in ["fifo", "wrong"] {
        let bad = fs::read_to_string(world.home().join(format!("shared/bad-{name}"))).unwrap();
        let line = format!("warning: 1/{name}: commits that were not brought back, kept in '");
        let line = answer.stderr.lines().find(|found| found.starts_with(&line));
        assert!(line.is_some_and(|line| line.ends_with(bad.trim())), "{}", answer.stderr);
        assert_eq!(world.git(["show", &format!("refs/frites/1/{name}:README")]), "2");
        let worktree = world.worktree(&format!("1/{name}"));
        let log = world.git_in(&worktree, ["reflog", "--format=%s"]);
        assert!(log.contains("good") && !log.contains("bad"), "{log}");
        let again = limited(&world, ["retry", &format!("1/{name}"), "--", "true"]);
        assert!(again.code != 0 && again.stderr.contains(bad.trim()), "{}", again.stderr);
        assert!(world.repo.join(format!(".frites/runs/1/{name}/own/git")).is_dir());
    }
    world.git(["fsck", "--strict"]);
    limited(&world, ["clean", "-n", "1/fifo"]).refuses(1, "commits that were not brought back");
    let refused = limited(&world, ["clean", "1"]);
    assert!(refused.code == 1 && world.worktree("1/fifo").exists(), "{}", refused.stderr);
    limited(&world, ["clean", "--discard", "1"]).expect(0);
    assert!(!world.repo.join(".frites/runs/1/wrong/own").exists());
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn an_agent_writes_its_own_state_and_no_other_and_no_judge_sees_it() {
    let mut world = guarded();
    let script = r#"
        case $FRITES_CANDIDATE in mine-1) sibling=mine-2;; *) sibling=mine-1; esac
        refuses() { if (eval "$1") 2>>refusals; then echo "$1" >> written; fi; }
        refuses 'echo x > $MINE_HOME/../../../$sibling/agent/MINE_HOME/x'
        refuses 'echo x > $MINE_HOME/../../agent.toml'
        refuses 'mv $MINE_HOME/../../agent $MINE_HOME/../../moved'
        echo mine > $MINE_HOME/old; mv $MINE_HOME/old $MINE_HOME/new; echo 1 >> README"#;
    let bin = world.home().join("agent");
    crate::common::write(&bin, format!("#!/bin/sh\ncat > /dev/null\n{script}\n"));
    crate::common::make_executable(&bin);
    world.git(["config", "frites.agents.mine.command", bin.to_str().unwrap()]);
    world.git(["config", "frites.agents.mine.state", "MINE_HOME"]);
    let bare = world.home().join("bare.git");
    world.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    for name in ["command", "state"] {
        let key = format!("frites.agents.mine.{name}");
        let value = world.git(["config", &key]);
        world.git_in(&bare, ["config", &key, &value]);
    }
    world.set_env("FRITES_SANDBOX_MODE", "sealed");
    world.unset_env("FRITES_SPAWN_WRITE");
    for (dir, root) in [(&world.repo, world.repo.clone()), (&bare, bare.clone())] {
        world.frites_in(dir, ["spawn", "--agent", "mine=2", "-p", "x"]).expect(0);
        for candidate in ["mine-1", "mine-2"] {
            let state = root.join(format!(".frites/runs/1/{candidate}/agent/MINE_HOME"));
            assert_eq!(fs::read_to_string(state.join("new")).unwrap(), "mine\n");
            let tree = format!("refs/frites/1/{candidate}");
            let files = world.git_in(dir, ["ls-tree", "--name-only", &tree]);
            assert!(files.contains("refusals") && !files.contains("written"), "{files}");
            let test = format!("test ! -e '{}'", state.display());
            world.frites_in(dir, ["judge", "-q", "1", "--test", &test]).expect(0);
        }
    }
    world.assert_clean();
}
