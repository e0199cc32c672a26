//! Repositories with runs in them that tests of several files begin with.
use std::fs;

use super::World;

/// Run 1 with candidates c1 and c2, run `fixer` with alpha (captured twice) and beta, run 2 with
/// c1; a branch and a tag.
pub fn runs_to_complete() -> World {
    let world = World::new();
    world.git(["branch", "side"]);
    world.git(["tag", "v1"]);
    world.spawn(["-n", "2"]);
    world.spawn(["--run", "fixer", "-c", "alpha", "beta"]);
    for text in ["one\n", "two\n"] {
        fs::write(world.worktree("fixer/alpha").join("README"), text).unwrap();
        world.frites(["diff", "fixer/alpha"]).expect(0);
    }
    world.spawn(["-n", "1"]);
    world
}
