//! Disks that are full or read-only, directories that cannot be read, names that differ in case.
use std::fs;

use crate::common::transcript::judged_by_true;
use crate::common::{Answer, World, make_executable};
use crate::tool::{
    CASE_SENSITIVE_DISK, FILEFRAG, IMMUTABLE_FILE, PYTHON, READ_ONLY_MOUNT, REFLINKS, TMPFS,
    UNREADABLE_DIRECTORY, trials,
};

trials! {
    checkout_that_cannot_be_deleted_is_a_warning_until_it_can: [IMMUTABLE_FILE];
    read_only_repository_can_be_read: [READ_ONLY_MOUNT];
    unreadable_directory_is_flagged_and_kept: [UNREADABLE_DIRECTORY];
    names_that_differ_in_case_are_two_files_despite_ignorecase: [CASE_SENSITIVE_DISK];
    run_that_fills_the_disk_fails_and_leaves_other_runs_whole: [TMPFS];
    full_disk_of_the_cache_is_no_fault_of_a_candidate: [TMPFS];
    landing_and_undo_on_a_full_disk_leave_the_checkout_as_it_was: [TMPFS];
    writes_through_a_shared_map_are_captured: [PYTHON];
    new_worktrees_share_the_blocks_of_big_files_and_no_change: [REFLINKS, FILEFRAG];
}

fn checkout_that_cannot_be_deleted_is_a_warning_until_it_can() {
    let world = World::new();
    world.attempts(&["echo x >>README"]);
    let pin = "mkdir -p a/b; touch a/b/pinned; chattr +i a/b/pinned; echo $PWD >>$HOME/pinned";
    world.frites(["judge", "--test", pin]).expect(0);
    for words in [&["status", "1"][..], &["diff", "1"], &["judge", "1", "--test", "true"]] {
        // It is none of the others' business.
        let answer = world.frites(words).expect(0);
        for part in ["warning: could not delete", "pinned': Operation not permitted"] {
            assert_eq!(answer.stderr.contains(part), words[0] == "judge", "{}", answer.stderr);
        }
    }
    // A worktree in which such a file is: one failure is told, and everything else goes on.
    world.sh(&world.worktree("1/c1"), "touch pinned; chattr +i pinned").expect(0);
    let answer = world.frites(["clean", "1/c1"]);
    assert!(answer.stderr.contains("pinned"), "{} {}", answer.code, answer.stderr);
    world.frites(["status"]).expect(0);
    world.sh(&world.home(), "find . -name pinned -type f -exec chattr -i {} +").expect(0);
    world.frites(["clean", "1/c1"]).expect(0);
    let answer = world.frites(["clean", "--cache"]).expect(0);
    assert!(!answer.stderr.contains("could not delete"), "{}", answer.stderr);
    let _ = fs::remove_file(world.home().join("pinned"));
    world.assert_clean();
}

/// Such writes do not move the times of a file: never in memory, and elsewhere once only until the
/// page is written out.
fn writes_through_a_shared_map_are_captured() {
    let world = World::new();
    let script = r"
import mmap, subprocess, time
def saved(what):
    return subprocess.run(['git', 'show', 'refs/frites/1/c1:' + what], capture_output=True).stdout
readme = open('README', 'r+b')
mapped = mmap.mmap(readme.fileno(), 0)
before = mapped[0:1]
open('new', 'w').write('A' * 4096)
made = open('new', 'r+b')
new = mmap.mmap(made.fileno(), 0)
new[0:3] = b'BBB'
while saved('new')[:3] != b'BBB':
    time.sleep(0.01)
new[0:3] = b'CCC'
mapped[0:1] = b'X'
";
    let words = ["spawn", "-n", "1", "--auto-checkpoint", "30ms", "--", "python3", "-c", script];
    world.frites(words).expect(0);
    world.frites(["clean", "1"]).expect(0);
    let shown = |file: &str| world.git(["show", &format!("refs/frites/1/c1:{file}")]);
    assert!(shown("new").starts_with("CCCA"), "{}", &shown("new")[..8]);
    assert!(shown("README").starts_with('X'), "{}", shown("README"));
    world.assert_clean();
}

fn read_only_repository_can_be_read() {
    let world = judged_by_true();
    world.attempts(&["echo x >>README"]);
    world.frites(["judge"]).expect(0);
    let readonly = |words: &str| {
        let script = format!(
            "mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\" && exec git frites {words}"
        );
        world.run(&world.repo, "unshare", ["-rm", "sh", "-c", &script])
    };
    let belongings = world.belongings();
    for words in
        ["status", "status 1/c1", "diff", "diff --no-capture 1/c1", "log", "path 1/c1", "config"]
    {
        let answer = readonly(words);
        assert_eq!(answer.code, 0, "{words}: {}", answer.stderr);
        assert!(!answer.out().is_empty(), "{words}");
    }
    for words in [
        "spawn",
        "judge",
        "judge --replay",
        "apply",
        "apply --merge",
        "clean",
        "config --init",
        "run -n 1 -- true",
    ] {
        let answer = readonly(words);
        if words == "config --init" {
            answer.refuses(128, "exists already");
        } else {
            let answer = answer.refuses(128, "Read-only file system");
            assert!(answer.stderr.contains("mounted read-only"), "{words}: {}", answer.stderr);
            let hint = "hint: `git frites status`, `log` and `diff --no-capture` only read";
            assert!(answer.stderr.contains(hint), "{words}: {}", answer.stderr);
        }
    }
    assert_eq!(world.belongings(), belongings);
    world.assert_clean();
}

fn unreadable_directory_is_flagged_and_kept() {
    let world = World::new();
    world.attempts(&["mkdir locked; echo work >locked/work; chmod 0 locked; echo 1 >>README"]);
    let locked = world.worktree("1/c1/locked");
    // root reads everything, but without these capabilities.
    let unprivileged = match fs::read_dir(&locked) {
        Err(_) => "",
        Ok(_) => "setpriv --bounding-set=-dac_override,-dac_read_search",
    };
    let frites =
        |words: &str| world.sh(&world.repo, &format!("{unprivileged} git-frites {words} 1/c1"));
    let said = frites("diff").expect(0).left_out();
    assert_eq!(said, "warning: 1/c1: not captured: 'locked' (it may not be read)\n");
    for words in ["clean -n", "clean"] {
        frites(words).refuses(1, "'locked' (it may not be read)");
        assert!(locked.exists());
    }
    frites("clean --discard").expect(0);
    world.assert_clean();
}

/// As after a copy from a Mac: git believes the setting, and takes two files for one.
fn names_that_differ_in_case_are_two_files_despite_ignorecase() {
    let world = World::new();
    world.git(["config", "core.ignoreCase", "true"]);
    world.attempts(&["mv README readme; echo x >SRC; echo x >src/LIB.txt"]);
    let names = world.frites(["diff", "1/c1", "--name-status"]).expect(0).out();
    assert_eq!(names, "D\tREADME\nA\tSRC\nA\treadme\nA\tsrc/LIB.txt\n");
    let test = "test -e SRC && test -e src/LIB.txt && test -e src/lib.txt && ! test -e README";
    world.frites(["judge", "-q", "--test", test]).expect(0);
    world.assert_clean();
}

/// On a file system of four megabytes, which a command fills to the last byte.
fn run_that_fills_the_disk_fails_and_leaves_other_runs_whole() {
    let world = World::empty("disk");
    let script = r#"
        mount -t tmpfs -o size=4m tmpfs disk
        cd disk; git init -q repo; cd repo
        git config frites.limits.min-free-disk 1
        echo base > base; git add base; git commit -qm base
        git frites spawn -q -n 1; echo old > .frites/worktrees/1/c1/old
        git frites judge -q --test 'test -e old'
        git frites diff 1/c1 > ../../before
        git frites spawn -q -n 2 -- sh -c 'cat /dev/zero > big' && exit 1
        code=$?
        # Full or not: what was there is there.
        git frites diff --no-capture 1/c1 > ../../full
        git fsck --no-dangling --no-progress >&2
        # Room is made, and everything works again.
        rm -f .frites/worktrees/2/*/big
        git frites status > /dev/null
        git frites diff 1/c1 > ../../after
        git frites apply -q --no-switch -m x 1
        git frites clean -q --discard 2
        git fsck --no-dangling --no-progress >&2
        git worktree list | wc -l
        echo $code
    "#;
    let answer = with_own_mounts(&world, script);
    let out = answer.out();
    let last: Vec<&str> = out.lines().rev().take(2).collect();
    assert!(matches!(last[0], "128" | "4" | "1"), "{out}{}", answer.stderr);
    assert_eq!(last[1], "2", "the user's checkout and that of the old run are left");
    assert!(
        answer.stderr.contains("No space left on device") || answer.stderr.contains("failed (exit"),
        "{}",
        answer.stderr
    );
    assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
    let read = |name: &str| fs::read_to_string(world.home().join(name)).unwrap();
    assert!(read("before").contains("+old"));
    assert_eq!((read("full"), read("after")), (read("before"), read("before")));
}

/// The cache is on a file system of eight megabytes, on which the tests of one candidate find no
/// room.
fn full_disk_of_the_cache_is_no_fault_of_a_candidate() {
    let world = World::empty("cache");
    let script = r#"
        mount -t tmpfs -o size=8m tmpfs cache
        git init -q -b main repo; cd repo
        git config frites.limits.min-free-disk 1
        echo base > base; git add base; git commit -qm base
        git frites spawn -q -n 1; echo good > .frites/worktrees/1/c1/base
        test='grep -q good base || exit 0; head -c 16000000 /dev/zero > out'
        FRITES_SANDBOX_MODE=off git frites judge --test "$test" && exit 1
        echo $?
        # A full disk is no reason to confine commands less strictly.
        free=$(df --output=avail -k ../cache | tail -n 1)
        head -c $(((free - 20) * 1024)) /dev/zero > ../cache/filler
        FRITES_SANDBOX_MODE=auto git frites judge --test true && exit 1
        echo $?
    "#;
    let answer = with_own_mounts(&world, script);
    assert!(answer.out().contains("undecided"), "{}{}", answer.out(), answer.stderr);
    assert!(answer.out().ends_with("\n3\n128\n"), "{}{}", answer.out(), answer.stderr);
    assert!(answer.stderr.contains("cache' is full"), "{}", answer.stderr);
    assert!(answer.stderr.contains("; the disk was full"), "{}", answer.stderr);
    assert!(answer.stderr.contains("make room, for example with `git frites clean --cache`"));
}

/// On a file system of eight megabytes with room for a part of the landing: first for an apply that
/// adds many files, then for the undo of a landing that deletes them.
fn landing_and_undo_on_a_full_disk_leave_the_checkout_as_it_was() {
    let world = World::empty("disk");
    let script = r#"
        mount -t tmpfs -o size=8m tmpfs disk
        cd disk; git init -q -b main repo; cd repo
        git config frites.limits.min-free-disk 1
        echo base > base; git add base; git commit -qm base
        refused=0
        try() {
            before=$(git rev-parse HEAD)
            for room in 60 90 130 180 250; do
                free=$(df --output=avail -k . | tail -n 1)
                head -c $(((free - room) * 1024)) /dev/zero > ../filler
                if git frites "$@"; then rm ../filler; echo "too much room: $room"; exit 1; fi
                rm ../filler
                refused=$((refused + 1))
                test "$(git rev-parse HEAD)" = "$before"
                test -z "$(git status --porcelain)"
                test ! -e .git/index.lock
            done
            git frites "$@"
        }
        git frites spawn -q -n 1
        for i in $(seq 300); do head -c 3000 /dev/urandom > .frites/worktrees/1/c1/new$i; done
        echo two > .frites/worktrees/1/c1/base
        git frites judge -q --test true
        try apply --merge
        git frites clean -q
        git frites spawn -q -n 1
        rm .frites/worktrees/2/c1/new*
        git frites judge -q --test true
        git frites apply --merge
        git frites clean -q
        try apply --undo 2
        test "$(ls | wc -l)" = 301
        git fsck --no-dangling --no-progress >&2
        echo "refused $refused"
    "#;
    let answer = with_own_mounts(&world, script);
    assert!(answer.out().ends_with("refused 10\n"), "{}{}", answer.out(), answer.stderr);
    assert!(answer.stderr.contains("unable to write file"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("could not be put back"), "{}", answer.stderr);
}

fn new_worktrees_share_the_blocks_of_big_files_and_no_change() {
    let world = World::new();
    let big = "no line is as long as this one\n".repeat(40_000);
    for path in ["big", "run.sh", "below/big", "below/lines.crlf"] {
        world.write(path, format!("{path}\n{big}"));
    }
    make_executable(&world.repo.join("run.sh"));
    world.write(".gitattributes", "*.crlf text eol=crlf\n");
    world.commit("big files");
    let by_git = world.home().join("by-git");
    world.git(["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "HEAD"]);
    world.frites(["spawn", "-n", "3"]).expect(0);
    let worktrees = ["1/c1", "1/c2", "1/c3"].map(|name| world.worktree(name));
    for worktree in &worktrees {
        assert_eq!(World::files_of(worktree), World::files_of(&by_git));
        // An entry whose stat data are not those of its file would be listed.
        assert_eq!(world.git_in(worktree, ["diff-files", "--raw"]), "");
        for path in ["big", "run.sh", "below/big", "below/lines.crlf"] {
            let extents = world.run(worktree, "filefrag", ["-v", path]).expect(0).out();
            assert!(extents.contains("shared"), "{path}:\n{extents}");
        }
    }
    // Each file is its own all the same.
    for (worktree, change) in worktrees.iter().zip(["printf x >> big", ": > big"]) {
        world.sh(worktree, change).expect(0);
        assert_eq!(World::files_of(&worktrees[2]), World::files_of(&by_git));
    }
    assert_eq!(world.git_in(&worktrees[0], ["diff", "--numstat"]), "1\t0\tbig");
    assert_eq!(world.git_in(&worktrees[1], ["diff", "--numstat"]), "0\t40001\tbig");
    world.assert_clean();
}

/// Runs a script in the home, in a shell that may mount file systems.
fn with_own_mounts(world: &World, script: &str) -> Answer {
    let shell = ["--user", "--map-root-user", "--mount", "sh", "-euc", script];
    world.run(&world.home(), "unshare", shell).expect(0)
}
