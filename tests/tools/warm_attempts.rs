//! New worktrees start with the build outputs that judging has kept of their base (`spawn.warm`).
use std::fs;

use crate::common::World;
use crate::common::sealed::{sealed, stale_project};
use crate::tool::{MAKE, NAMESPACES, NO_REFLINKS, REFLINKS, trials};
use crate::traces::shared_lines;

trials! {
    an_attempts_first_build_makes_only_what_the_attempt_changed: [NAMESPACES, MAKE];
    outputs_never_replace_a_seed_and_none_leads_to_the_users_checkout: [NAMESPACES];
    outputs_that_an_attempt_stops_ignoring_are_not_its_work: [NAMESPACES, MAKE];
    outputs_are_given_only_where_they_are_asked_for_or_cost_no_space: [NAMESPACES, MAKE, NO_REFLINKS];
    outputs_are_given_by_themselves_where_they_share_blocks: [NAMESPACES, MAKE, REFLINKS];
}

/// A world whose base was judged by this command.
fn judged(mut world: World, test: &str) -> World {
    world.attempts(&["echo changed > README"]);
    world.frites(["judge", "--test", test]).expect(0);
    let _ = fs::remove_file(world.home().join("shared/compiled"));
    world.set_env("FRITES_SPAWN_WARM", "on");
    world
}

fn an_attempts_first_build_makes_only_what_the_attempt_changed() {
    let world = judged(stale_project(), "make -s test");
    let attempt = "make -s test; echo more >> a.src; make -s test";
    let answer = world.frites(["spawn", "-c", "x", "--", "sh", "-c", attempt]).expect(0);
    assert!(
        answer.stderr.contains("the worktrees start with what judging has built"),
        "{answer:?}"
    );
    assert_eq!(shared_lines(&world, "compiled"), ["a.obj"]);
    // Neither git nor a capture sees the outputs.
    let worktree = world.worktree("2/x");
    assert!(worktree.join("b.obj").exists());
    assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), " M a.src");
    let diff = world.frites(["diff", "--name-only", "2/x"]).expect(0).out();
    assert_eq!(diff.trim(), "a.src");
    // What the attempt left there changes no outcome.
    fs::write(worktree.join("b.obj"), "broken by hand").unwrap();
    let verdict = world.frites(["judge", "--json", "--test", "make -s test", "2"]).expect(0).json();
    assert_eq!(verdict["recommended"], "x");
    // The next attempt is not affected either: the files are copies.
    world
        .frites(["spawn", "-c", "y", "--", "sh", "-c", "echo more >> a.src; make -s test"])
        .expect(0);
    assert_eq!(fs::read_to_string(world.worktree("3/y").join("b.obj")).unwrap(), "needed\n");
    world.assert_clean();
}

fn outputs_never_replace_a_seed_and_none_leads_to_the_users_checkout() {
    let world = sealed();
    world.write(".gitignore", "/env/\n/.venv/\n/build/\n/out/\n");
    world.write(".worktreeinclude", "env/**\n");
    world.commit("outputs are ignored");
    world.write("env/token", "of the user");
    // A young seed may be an output itself.
    world.sh(&world.repo, "touch -d '1 hour ago' env/token").expect(0);
    let test = r#"
        mkdir -p .venv/bin build out
        echo of the base > env/token; echo of the base > env/more; echo of the base > untracked
        printf '#!%s/.venv/bin/python\n' "$PWD" > .venv/bin/tool; echo left > .venv/left
        echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/CMakeCache.txt; echo left > build/left
        ln -s kept out/link; echo '#!/bin/sh' > out/kept; chmod 755 out/kept
        echo changed by the test >> README
    "#;
    let world = judged(world, test);
    world.frites(["spawn", "-n", "1"]).expect(0);
    let worktree = world.worktree("2/c1");
    let found =
        world.sh(&worktree, "find . -name .git -prune -o ! -type d -print | sort").expect(0);
    let expected = "./.gitignore\n./.worktreeinclude\n./README\n./env/token\n./out/kept\n./out/link\n./src/lib.txt\n";
    assert_eq!(found.out(), expected);
    let states =
        "cat env/token README; readlink out/link; test -x out/kept; test README -ot out/kept";
    assert_eq!(world.sh(&worktree, states).expect(0).out(), "of the userhello\nkept\n");
    world.assert_clean();
}

fn outputs_that_an_attempt_stops_ignoring_are_not_its_work() {
    let world = judged(stale_project(), "make -s test");
    let stops = "echo app > .gitignore; echo more >> a.src; make -s test";
    for (attempt, staged) in [("x", ""), ("y", "; git add -A"), ("z", "; git add -f app b.obj")] {
        let script = format!("{stops}{staged}");
        let answer = world.frites(["spawn", "-c", attempt, "--", "sh", "-c", &script]).expect(0);
        // The attempt has built the other object and the program itself.
        let words = "left out: 1 build output that the worktree began with, such as 'b.obj'";
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
        let diff = world.frites(["diff", "--name-only", attempt]).expect(0).out();
        let app = if attempt == "z" { "app\n" } else { "" };
        assert_eq!(diff, format!(".gitignore\na.obj\na.src\n{app}"));
    }
    // The hint says how to take it all the same.
    world.frites(["exec", "2/x", "--", "touch", "b.obj"]).expect(0);
    world.frites(["capture", "2/x"]).expect(0);
    let diff = world.frites(["diff", "--name-only", "2/x"]).expect(0).out();
    assert_eq!(diff, ".gitignore\na.obj\na.src\nb.obj\n");
    // A file with the same content is not the one that was given.
    let script = format!("{stops}; cp b.obj new && mv new b.obj");
    world.frites(["spawn", "-c", "w", "--", "sh", "-c", &script]).expect(0);
    let diff = world.frites(["diff", "--name-only", "w"]).expect(0).out();
    assert_eq!(diff, ".gitignore\na.obj\na.src\nb.obj\n");
    world.assert_clean();
}

fn has_outputs(world: &World, run: &str) -> bool {
    world.frites(["spawn", "-n", "1"]).expect(0);
    world.worktree(&format!("{run}/c1")).join("b.obj").exists()
}

fn outputs_are_given_only_where_they_are_asked_for_or_cost_no_space() {
    let mut world = judged(stale_project(), "make -s test");
    for (run, (warm, given)) in
        ["2", "3", "4"].into_iter().zip([("on", true), ("auto", false), ("off", false)])
    {
        world.set_env("FRITES_SPAWN_WARM", warm);
        assert_eq!(has_outputs(&world, run), given, "{warm}");
    }
    world.set_env("FRITES_SPAWN_WARM", "on");
    world.write("c.src", "of another base\n");
    world.commit("a base that was not judged");
    assert!(!has_outputs(&world, "5"));
}

fn outputs_are_given_by_themselves_where_they_share_blocks() {
    let mut world = judged(stale_project(), "make -s test");
    world.set_env("FRITES_SPAWN_WARM", "auto");
    assert!(has_outputs(&world, "2"));
}
