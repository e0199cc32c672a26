//! The trees that are judged once more without the base's outputs: those that the recommendation
//! depends on, and no others.
use crate::common::World;
use crate::common::sealed::sealed;
use crate::terminal::Terminal;
use crate::tool::{NAMESPACES, TERMINAL, trials};

trials! {
    a_cheat_costs_the_run_that_refutes_it: [NAMESPACES];
    who_ranks_behind_the_confirmed_winner_is_not_judged_again: [NAMESPACES];
    a_cheat_by_added_tests_costs_the_run_without_them: [NAMESPACES];
    the_verdict_is_provisional_while_a_smaller_one_is_judged_again: [NAMESPACES, TERMINAL];
}

/// Says who is judged over what, leaves an output, and runs the tests that there are.
const TEST: &str = "if test -e out; then echo warm; else echo cold; fi >> ~/shared/ways; \
                    echo \"$(tail -n 1 ~/shared/ways) $(cat who)\" >> ~/shared/runs; echo built > out; \
                    test ! -e ~/shared/gate || . ~/shared/gate; for file in tests/*-test.sh; do sh $file || exit; done";

/// An attempt that names itself and has so many lines of notes.
fn attempt(who: &str, lines: u32, does: &str) -> String {
    format!("echo {who} > who; seq {lines} > notes; {does}")
}

const WRONG: &str = "echo 8 > value";
const RIGHT: &str = "echo 2 > value";
const CHEAT: &str = "echo 9 > value; sed -i s/12/129/ tests/value-test.sh";

/// A project whose value must be 1 or 2.
fn project() -> World {
    let world = sealed();
    for (path, text) in [
        (".gitignore", "out\n"),
        ("value", "1\n"),
        ("who", "base\n"),
        ("tests/value-test.sh", "grep -qx '[12]' value\n"),
    ] {
        world.write(path, text);
    }
    world.commit("a project with outputs");
    world.git(["config", "frites.oracle.test", TEST]);
    world
}

/// Judges the attempts with the outputs that an earlier judging of the base left; gives the winner,
/// those that were judged without outputs, in order, and what was said.
fn judged_cold(attempts: &[String]) -> (String, Vec<String>, String) {
    let world = project();
    let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
    world.attempts(&["echo > other"]);
    world.frites(["judge", "-q", "1"]).expect(0);
    std::fs::remove_file(world.home().join("shared/runs")).unwrap();
    world.attempts(&attempts);
    let answer = world.frites(["judge", "-j", "1", "--json", "--no-cache"]).expect(0);
    let winner = answer.json()["recommended"].as_str().unwrap().to_owned();
    (winner, cold(&world), answer.stderr)
}

/// The candidates that were judged without outputs, in order.
fn cold(world: &World) -> Vec<String> {
    let runs = std::fs::read_to_string(world.home().join("shared/runs")).unwrap();
    let cold = runs.lines().filter_map(|run| run.strip_prefix("cold "));
    cold.map(str::to_owned).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn four(cheat: u32, fails: u32) -> [String; 4] {
    [
        attempt("cheat", cheat, CHEAT),
        attempt("fails", fails, WRONG),
        attempt("small", 20, RIGHT),
        attempt("large", 40, RIGHT),
    ]
}

fn a_cheat_costs_the_run_that_refutes_it() {
    let (winner, cold, said) = judged_cold(&four(1, 9));
    assert_eq!((winner.as_str(), cold), ("c3", names(&["small", "cheat", "fails"])), "{said}");
    let depends = "run 2: c3 leads; candidates on which the verdict depends are judged once more, without \
                   the base's build outputs: c3, c1, c2\n";
    assert!(said.contains(depends), "{said}");
    let provisional = "run 2: c3 is confirmed; the verdict is provisional until these are judged once \
                       more: c1, c2\n";
    assert!(said.contains(provisional), "{said}");
}

fn who_ranks_behind_the_confirmed_winner_is_not_judged_again() {
    let (winner, cold, said) = judged_cold(&four(30, 30));
    assert_eq!((winner.as_str(), cold), ("c3", names(&["small"])), "{said}");
    assert!(!said.contains("provisional"), "{said}");
}

fn a_cheat_by_added_tests_costs_the_run_without_them() {
    // It repairs what it was to be judged by.
    let added = "echo 8 > value; echo 'echo 2 > value' > tests/a-test.sh";
    let attempts = [attempt("cheat", 1, added), attempt("small", 20, RIGHT)];
    let (winner, cold, said) = judged_cold(&attempts);
    assert_eq!((winner.as_str(), cold), ("c2", names(&["cheat", "small"])), "{said}");
    // An honest one lands with its tests, and is verified without them.
    let more = format!("{RIGHT}; echo 'test -s value' > tests/more-test.sh");
    let attempts = [attempt("honest", 1, &more), attempt("large", 20, "")];
    let (winner, cold, said) = judged_cold(&attempts);
    assert_eq!((winner.as_str(), cold), ("c1", names(&["honest", "honest"])), "{said}");
}

fn the_verdict_is_provisional_while_a_smaller_one_is_judged_again() {
    let world = project();
    let gate = "test \"$(tail -n 1 ~/shared/runs)\" != 'cold fails' || until test -e ~/shared/go; \
                do sleep 0.01; done\n";
    std::fs::write(world.home().join("shared/gate"), gate).unwrap();
    let attempts = four(30, 1);
    world.attempts(&attempts.each_ref().map(String::as_str));
    let line = "stty rows 24 cols 100; TERM=xterm git frites judge -j 1; echo \"exit $?\"";
    let shown = Terminal::start(&world, line);
    let lines = shown.wait_for_lines((24, 100), |lines| {
        lines.iter().any(|line| line.ends_with("; the verdict is provisional"))
            && lines.iter().any(|line| line.starts_with("● 1/c2 "))
    });
    assert!(lines.iter().any(|l| l.starts_with("* 1/c3  passed")), "{lines:#?}");
    assert!(lines.iter().any(|l| l.starts_with("judging: 1 of 2 done, ")), "{lines:#?}");
    std::fs::write(world.home().join("shared/go"), "").unwrap();
    shown.wait_for("exit 0");
    assert_eq!(cold(&world), ["base", "small", "fails"]);
}
