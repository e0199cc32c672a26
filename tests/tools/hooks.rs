//! The manual's recipes for hooks, with stand-ins for the programs that they call.
use std::fs;

use crate::common::{World, make_executable, write};
use crate::tool::{JQ, trials};

trials! {
    desktop_shows_the_verdict: [JQ];
    pull_request_has_the_verdict_as_its_text: [JQ];
    database_goes_with_its_worktree: [];
}

/// The lines to type below the words that introduce them in git-frites-config(1).
fn recipe(begins: &str) -> String {
    let text = include_str!("../../src/manual/config.txt");
    let (_, rest) = text.split_once(&format!("\n{begins}")).unwrap();
    let lines = rest.lines().skip(2).take_while(|line| line.starts_with("    "));
    lines.map(|line| format!("{}\n", &line[4..])).collect()
}

/// A world with the recipe, and a program that writes its arguments and its input to a file.
fn world_with(begins: &str, program: &str) -> World {
    let mut world = World::new();
    let bin = world.home().join("bin");
    let stand_in = bin.join(program);
    write(&stand_in, "#!/bin/sh\n{ printf '<%s>' \"$@\"; echo; cat; } >>\"$HOME/seen\"\n");
    make_executable(&stand_in);
    let path = world.env("PATH").into_string().unwrap();
    world.set_env("PATH", format!("{}:{path}", bin.display()));
    world.sh(&world.repo, &recipe(begins)).expect(0);
    world
}

fn seen(world: &World) -> String {
    fs::read_to_string(world.home().join("seen")).unwrap_or_default()
}

fn desktop_shows_the_verdict() {
    let world = world_with("A notification", "notify-send");
    world.judged("grep -q good README", &["echo good >>README", "echo bad >>README"]);
    let seen = seen(&world);
    assert!(seen.starts_with("<Run 1><only c1 of 2 passed test: 1 line in 1 file; "), "{seen}");
}

fn pull_request_has_the_verdict_as_its_text() {
    let world = world_with("A pull request", "gh");
    world.git(["init", "-q", "--bare", "../theirs"]);
    world.git(["remote", "add", "origin", "../theirs"]);
    world.judged("true", &["echo good >>README"]);
    world.frites(["apply", "-q"]).expect(0);
    assert_eq!(seen(&world), "", "what is only staged is not pushed");
    world.frites(["apply", "-q", "--undo"]).expect(0);
    world.frites(["apply", "-q", "-m", "Say more"]).expect(0);
    let body = world.frites(["report", "--markdown", "1"]).expect(0).out();
    let call = "<pr><create><--title><Say more><--body-file><->";
    assert_eq!(seen(&world), format!("{call}\n{body}"));
    assert!(body.contains("c1"));
    let pushed = world.git(["ls-remote", "origin", "frites/apply/1"]);
    assert!(pushed.starts_with(&world.git(["rev-parse", "HEAD"])), "{pushed}");
}

fn database_goes_with_its_worktree() {
    let world = world_with("Remove the database", "dropdb");
    world.attempts(&["echo x >>README", "echo y >>README"]);
    world.frites(["clean", "-q", "1/c2"]).expect(0);
    let seen = seen(&world);
    assert_eq!(seen.lines().next(), Some("<--if-exists><app_1_c2>"), "{seen}");
    assert!(!seen.contains("c1"), "{seen}");
}
