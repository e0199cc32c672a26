//! A disk that is nearly or wholly full (SCOREBOARD row 11): nothing starts that has no room, and
//! nothing old is lost.
use std::fs;

use crate::common::{World, write};

#[test]
fn judge_with_too_little_free_disk_is_refused() {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    world.git(["config", "frites.limits.min-free-disk", "900TiB"]);
    let before = world.belongings();
    let answer = world.frites(["judge", "--test", "true"]).refuses(128, "the disk is too full: ");
    assert!(answer.stderr.contains("for checkouts, 900.0 TiB to stay free)"), "{}", answer.stderr);
    assert!(
        answer
            .stderr
            .contains("hint: make room with `git frites clean RUN`, or ask for fewer at once"),
        "{}",
        answer.stderr
    );
    assert_eq!(world.belongings(), before);
    world.assert_clean();
    world.git(["config", "frites.limits.min-free-disk", "1KiB"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    world.assert_clean();
}

#[test]
fn large_build_outputs_that_stay_in_the_cache_are_mentioned_when_all_runs_are_cleaned() {
    let world = World::new();
    world.attempts(&["echo x > x"]);
    world.frites(["judge", "--test", "true"]).expect(0);
    let repositories = fs::read_dir(world.home().join("cache/git-frites")).unwrap();
    let repository = repositories.map(|entry| entry.unwrap().path()).next().unwrap();
    let size = repository.join("layers/0123/size");
    write(&size, "900000000");
    let hint = "hint: 1.0 GiB of build outputs stay in the cache: `git frites clean --cache` removes them\n";
    assert!(!world.frites(["clean", "--all"]).expect(0).stderr.contains("clean --cache"));
    write(&size, "1073741824");
    for words in [&["clean", "--all"][..], &["clean", "--all", "--forget"]] {
        assert!(world.frites(words).expect(0).stderr.contains(hint), "{words:?}");
    }
    world.frites(["clean", "--cache"]).expect(0);
    assert!(!world.frites(["clean", "--all"]).expect(0).stderr.contains("clean --cache"));
}

#[test]
fn run_is_refused_before_an_attempt_starts_if_the_cache_has_too_little_room() {
    let world = World::new();
    world.git(["config", "frites.limits.min-free-disk", "900TiB"]);
    let before = world.belongings();
    let answer = world
        .frites(["run", "--test", "true", "--", "sh", "-c", "touch \"$HOME/started\""])
        .refuses(128, "the disk is too full: ");
    // The checkouts are in the cache: worktrees are not even looked at.
    assert!(answer.stderr.contains("for checkouts, 900.0 TiB to stay free)"), "{}", answer.stderr);
    assert_eq!(world.belongings(), before);
    assert!(!world.home().join("started").exists());
}
