//! A disk that is nearly or wholly full (SCOREBOARD row 11): nothing starts that has no room, and nothing old is lost.
use crate::common::{World, skipped};

#[test]
fn judge_refuses_to_start_where_too_little_would_stay_free() {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    world.git(["config", "frites.limits.min-free-disk", "900TiB"]);
    let before = world.belongings();
    let answer = world.frites(["judge", "--test", "true"]).refuses(128, "the disk is too full: ");
    assert!(answer.stderr.contains("for checkouts, 900.0 TiB to stay free)"), "{}", answer.stderr);
    assert!(
        answer
            .stderr
            .contains("hint: make room with `git frites clean RUN`, or judge fewer at once"),
        "{}",
        answer.stderr
    );
    assert_eq!(world.belongings(), before);
    world.assert_clean();
    world.git(["config", "frites.limits.min-free-disk", "1KiB"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    world.assert_clean();
}

/// On a file system of four megabytes, which a command fills to the last byte.
#[test]
fn a_run_that_fills_the_disk_fails_loudly_and_leaves_the_others_whole() {
    let world = World::empty("disk");
    let script = r#"
        mount -t tmpfs -o size=4m tmpfs disk || exit 77
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
    let answer = world.run(
        &world.home(),
        "unshare",
        ["--user", "--map-root-user", "--mount", "sh", "-euc", script],
    );
    if matches!(answer.code, 1 | 77) && answer.stderr.contains("unshare") || answer.code == 77 {
        return skipped(&format!(
            "no file system of one's own can be mounted here: {}",
            answer.stderr
        ));
    }
    let answer = answer.expect(0);
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
    let read = |name: &str| std::fs::read_to_string(world.home().join(name)).unwrap();
    assert!(read("before").contains("+old"));
    assert_eq!((read("full"), read("after")), (read("before"), read("before")));
}
