//! `exec`: a person's command in a candidate's worktree.
use crate::common::World;

#[test]
fn command_runs_in_the_worktree_with_the_environment_of_the_candidate() {
    let mut world = World::new();
    world.set_env("MINE", "passes");
    world.set_env("AWS_SECRET", "hidden");
    world.git(["config", "frites.env.deny", "AWS_*"]);
    world
        .frites(["spawn", "-n", "2", "-p", "the task\n", "--", "sh", "-c", "env > seen"])
        .expect(0);
    let script = "pwd; echo $FRITES_RUN/$FRITES_CANDIDATE $FRITES_INDEX of $FRITES_COUNT; cat $FRITES_PROMPT_FILE; \
                  echo $MINE [$AWS_SECRET] [$FRITES_DEPTH] $1; git rev-parse --show-toplevel";
    let answer =
        world.frites(["exec", "c2", "--", "sh", "-c", script, "sh", "{candidate}"]).expect(0);
    let worktree = world.worktree("1/c2");
    let worktree = worktree.display();
    let expected = format!("{worktree}\n1/c2 2 of 2\nthe task\npasses [] [] c2\n{worktree}\n");
    assert_eq!(answer.out(), expected);
    let port =
        |words: &[&str]| world.frites([&["exec", "1/c1", "--"], words].concat()).expect(0).out();
    let seen = std::fs::read_to_string(world.worktree("1/c1").join("seen")).unwrap();
    let attempt = seen.lines().find_map(|line| line.strip_prefix("FRITES_PORT=")).unwrap();
    assert_eq!(port(&["printenv", "FRITES_PORT"]), format!("{attempt}\n"));
    world.assert_clean();
}

#[test]
fn exit_code_and_changes_are_those_of_the_command() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    world.frites(["exec", "--", "sh", "-c", "echo by hand > new; exit 7"]).expect(7);
    world.frites(["exec", "--", "sh", "-c", "kill -TERM $$"]).expect(128 + 15);
    assert_eq!(world.frites(["diff", "--name-only", "c1"]).expect(0).out(), "new\n");
    // It is a person who judges and lands from there, not an attempt.
    let judge = ["exec", "--", "git", "frites", "judge", "-q", "--test", "test -e new"];
    assert_eq!(world.frites(judge).expect(0).out(), "1/c1\n");
    world.frites(["exec", "--", "git", "frites", "spawn", "-q", "-n", "1"]).expect(0);
    world.frites(["apply", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn shell_is_the_default_and_refusals_say_what_to_type() {
    let mut world = World::new();
    world.spawn(["-n", "2"]);
    let shell = world.home().join("shell");
    crate::common::write(&shell, "#!/bin/sh\necho shell of $FRITES_CANDIDATE in $PWD\n");
    crate::common::make_executable(&shell);
    world.set_env("SHELL", &shell);
    let said = world.frites(["exec", "1/c1"]).expect(0).out();
    assert_eq!(said, format!("shell of c1 in {}\n", world.worktree("1/c1").display()));
    world.frites(["exec"]).refuses(2, "run 1 has 2 candidates");
    world
        .frites(["exec", "c1", "--", "no-such-program"])
        .refuses(128, "'no-such-program' is not on PATH");
    world.frites(["exec", "c1", "--", "./none"]).refuses(128, "'./none' cannot be started");
    world.frites(["clean", "1/c1"]).expect(0);
    world.frites(["exec", "1/c1"]).refuses(128, "1/c1 has no worktree any more");
    world.assert_clean();
}

#[test]
fn worktree_stays_while_a_command_runs_there_but_not_for_what_it_left_behind() {
    let world = World::new();
    world.spawn(["-n", "2"]);
    let script = "
        git frites exec 1/c1 -- sh -c ': > ready; exec sleep 60' & p=$!
        until test -e .frites/worktrees/1/c1/ready; do sleep 0.01; done
        git frites clean -qn 1/c1 || echo $?; git frites clean -q 1/c1 || echo $?
        kill $p; wait $p || git frites clean -q 1/c1; echo $?
        git frites exec 1/c2 -- sh -c 'sleep 3 >&- 2>&- &'; git frites clean -q 1/c2; echo $?";
    let answer = world.sh(&world.repo, script).expect(0);
    assert_eq!(answer.out(), "1\n1\n0\n0\n", "{}", answer.stderr);
    let refused = "1/c1 is in use by `git frites exec`, process ";
    assert_eq!(answer.stderr.matches(refused).count(), 2, "{}", answer.stderr);
    assert_eq!(world.git(["show", "refs/frites/1/c1:ready"]), "");
    world.assert_clean();
}

#[test]
fn worktree_with_the_repository_of_a_command_is_warned_of() {
    for (script, warns) in [
        ("true", false),
        ("rm .git", false),
        ("rm .git; git init -q", true),
        ("rm .git; mkfifo .git", true),
        ("git init -q ../other; ln -sf ../other/.git .git", true),
        ("git init -q ../other; echo gitdir: ../other/.git > .git", true),
        ("echo gitdir: ../../../../.git/worktrees/c1 > .git", false),
    ] {
        let world = World::new();
        world.spawn(["-n", "1"]);
        world.sh(&world.worktree("1/c1"), script).expect(0);
        for command in [&["path", "1/c1"][..], &["exec", "1/c1", "--", "true"]] {
            let said = world.frites(command).expect(0).stderr;
            assert_eq!(said.contains("1/c1: a command replaced '"), warns, "{script}: {said}");
        }
    }
}
