//! Landlock and the base's outputs: each candidate gets a copy of them, and what it says over them is a
//! claim.
use std::fs;

use serde_json::Value;

use crate::common::World;
use crate::common::sealed::{confined, stale_project_in};
use crate::tool::{LANDLOCK, MAKE, trials};
use crate::traces::{assert_untouched, shared_lines, user_files};

trials! {
    only_the_difference_is_built_over_copies_of_the_bases_outputs: [LANDLOCK, MAKE];
    a_stale_output_does_not_change_the_recommendation: [LANDLOCK, MAKE];
    an_output_that_names_the_bases_path_does_not_change_the_recommendation: [LANDLOCK];
    seeds_are_there_and_never_changed: [LANDLOCK];
    outputs_that_lead_to_the_bases_path_are_not_given_to_attempts: [LANDLOCK];
}

fn judged(world: &World, test: &str, more: &[&str]) -> Value {
    let words = ["judge", "--json", "--no-cache", "--test", test];
    world.frites(words.iter().chain(more)).expect(0).json()
}

fn only_the_difference_is_built_over_copies_of_the_bases_outputs() {
    let world = stale_project_in(confined("landlock"));
    world.attempts(&["echo more >> a.src", "seq 9 > c.src"]);
    let before = user_files(&world);
    let compiled = |more: &[&str]| {
        let _ = fs::remove_file(world.home().join("shared/compiled"));
        let verdict = judged(&world, "make -s test", more);
        assert_eq!(verdict["terms"]["world"], "landlock");
        assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
        assert_eq!(verdict["candidates"][0]["stale"], Value::Null);
        shared_lines(&world, "compiled").join(" ")
    };
    // The base, what is new in each candidate, and the confirmation of the first.
    let first = "a.obj a.obj a.obj b.obj b.obj c.obj";
    assert_eq!(compiled(&[]), first);
    // The base's outputs are kept.
    assert_eq!(compiled(&[]), "a.obj a.obj b.obj c.obj");
    assert_eq!(compiled(&["--cold"]), "a.obj a.obj a.obj b.obj b.obj b.obj c.obj");
    // Beside each other, candidates get the same.
    compiled(&["-j", "2"]);
    assert_untouched(&world, &before);
    world.assert_clean();
}

fn a_stale_output_does_not_change_the_recommendation() {
    let world = stale_project_in(confined("landlock"));
    world.attempts(&["rm b.src", "seq 9 > c.src"]);
    let verdict = judged(&world, "make -s test", &[]);
    assert_eq!(verdict["recommended"], "c2", "{verdict:#}");
    let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
    assert!(stale.starts_with("stale build output: over the base's outputs it passed"), "{stale}");
    world.assert_clean();
}

/// A copy lies at another path than the base did.
fn an_output_that_names_the_bases_path_does_not_change_the_recommendation() {
    let world = confined("landlock");
    world.attempts(&["echo changed > README"]);
    let test = "test -e where || pwd > where; test \"$(cat where)\" = \"$PWD\" && git status";
    let verdict = judged(&world, test, &[]);
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
    assert!(stale.starts_with("stale build output: over the base's outputs it ended"), "{stale}");
    let changed = &verdict["candidates"][0]["results"][0]["changed"];
    assert_eq!(changed, &Value::Null, "no tracked file was changed");
    world.assert_clean();
}

fn seeds_are_there_and_never_changed() {
    let mut world = confined("landlock");
    world.write(".git/info/exclude", "data\nlinked\n");
    world.write("data/table", "mine");
    world.write("linked/table", "mine");
    world.set_env("FRITES_SEED_COPY", "data");
    world.set_env("FRITES_SEED_LINK", "linked");
    world.attempts(&["echo changed > README", "echo more >> README; echo x > new"]);
    let before = user_files(&world);
    // The base's commands change seeds, which is an output like others.
    let test = "grep -q mine linked/table; cat data/table >> ~/shared/seen; echo >> ~/shared/seen
        echo other > data/table; test \"$(git status --porcelain)\" = ''";
    let verdict = judged(&world, test, &[]);
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    // The base, both candidates over its outputs, and the first without them.
    assert_eq!(shared_lines(&world, "seen").join(" ").trim(), "mine mine other other");
    assert_untouched(&world, &before);
    world.assert_clean();
}

fn outputs_that_lead_to_the_bases_path_are_not_given_to_attempts() {
    let mut world = confined("landlock");
    world.write(".gitignore", "/env/\n/out/\n");
    world.commit("outputs are ignored");
    world.attempts(&["echo changed > README"]);
    let build = "mkdir -p env out; echo \"$PWD/src\" > env/own.pth; echo x > out/object";
    judged(&world, build, &[]);
    world.set_env("FRITES_SPAWN_WARM", "on");
    world.frites(["spawn", "-c", "x"]).expect(0);
    let worktree = world.worktree("2/x");
    assert!(worktree.join("out/object").is_file());
    assert!(!worktree.join("env").exists(), "its path file leads to a checkout that is gone");
    world.assert_clean();
}
