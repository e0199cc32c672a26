//! Paths that are not UTF-8: commands are confined below them as anywhere else.
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::common::World;
use crate::common::sealed::confined;
use crate::tool::{LANDLOCK, NAMESPACES, trials};
use crate::traces::{assert_untouched, shared_lines, user_files};

trials! {
    commands_are_sealed_wherever_the_repository_home_and_cache_are: [NAMESPACES];
    landlock_confines_commands_wherever_the_repository_home_and_cache_are: [LANDLOCK];
    attempts_are_guarded_wherever_the_repository_is: [NAMESPACES];
}

const ODD: &[u8] = b"not-\xff-\\xff";

/// The directories whose path is made one that is not UTF-8.
#[derive(Clone, Copy, Debug)]
enum Odd {
    Repository,
    Home,
    Cache,
}

/// Gives a world such a path.
fn with(mut world: World, odd: Odd) -> World {
    let odd_name = OsStr::from_bytes(ODD);
    let path = world.home().join(odd_name);
    match odd {
        Odd::Repository => {
            fs::create_dir(&path).unwrap();
            fs::rename(&world.repo, path.join("repo")).unwrap();
            world.repo = path.join("repo");
        }
        Odd::Home => {
            fs::create_dir(&path).unwrap();
            world.set_env("HOME", path);
        }
        Odd::Cache => world.set_env("XDG_CACHE_HOME", world.home().join("cache").join(odd_name)),
    }
    world
}

/// Judges one attempt by a command that writes wherever it can, to its home, and to `shared`.
#[track_caller]
fn judged(mode: &str, odd: Odd) {
    let mut world = with(confined(mode), odd);
    world.set_env("FRITES_SANDBOX_HOME", "private");
    world.attempts(&["echo better > README"]);
    let before = user_files(&world);
    let user = world.env("HOME");
    world.set_env("USERS_HOME", user);
    let shared = world.home().join("shared");
    let script = format!(
        r#"
        echo x > written && echo x > ~/written && echo x > "$TMPDIR/written"
        (echo x > "$USERS_HOME/written") 2> /dev/null
        git status --porcelain >> '{0}/status'
        grep -qx better README && echo "$PWD" >> '{0}/passed'
        "#,
        shared.display()
    );
    let answer = world.frites(["judge", "--json", "--test", &script]).expect(0);
    assert_eq!(answer.json()["terms"]["world"], mode, "{odd:?}");
    let mut seen = shared_lines(&world, "status");
    seen.dedup();
    assert_eq!(seen, ["?? written"], "{odd:?}");
    assert!(!fs::read(shared.join("passed")).unwrap().is_empty(), "{odd:?}");
    assert_untouched(&world, &before);
    world.frites(["apply", "-q", "-m", "Land"]).expect(0);
    assert_eq!(fs::read(world.repo.join("README")).unwrap(), b"better\n");
}

fn commands_are_sealed_wherever_the_repository_home_and_cache_are() {
    for odd in [Odd::Repository, Odd::Home, Odd::Cache] {
        judged("sealed", odd);
    }
}

fn landlock_confines_commands_wherever_the_repository_home_and_cache_are() {
    for odd in [Odd::Repository, Odd::Home, Odd::Cache] {
        judged("landlock", odd);
    }
}

fn attempts_are_guarded_wherever_the_repository_is() {
    let mut world = with(World::new(), Odd::Repository);
    world.set_env("FRITES_SPAWN_GUARD", "required");
    let script = "echo one > one; git add one; git commit -qm one; echo two > two
            ! (echo x > ../../../../README) 2> /dev/null";
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", script]).expect(0);
    let names = world.frites(["diff", "1", "--name-only"]).expect(0).out();
    assert_eq!(names, "# 1/a\none\ntwo\n");
    assert_eq!(fs::read(world.repo.join("README")).unwrap(), b"hello\n");
    // Asked within a worktree, too, the repository is found.
    let worktree = world.worktree("1/a");
    world.frites_in(&worktree, ["diff", "1/a", "--stat"]).expect(0);
    assert_eq!(world.git_in(&worktree, ["log", "--format=%s", "-1"]), "one");
    world.frites(["clean", "-q", "--forget", "1"]).expect(0);
    assert!(!worktree.exists());
}
