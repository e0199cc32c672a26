//! Candidates are judged with the base's outputs only where that costs less than judging them
//! without.
use crate::common::World;
use crate::common::sealed::sealed;
use crate::tool::{NAMESPACES, trials};
use crate::traces::shared_lines;

trials! {
    a_suite_that_outputs_do_not_make_faster_is_judged_without_them: [NAMESPACES];
    the_candidate_that_would_win_last_shows_the_time: [NAMESPACES];
    a_slow_build_is_judged_over_the_bases_outputs: [NAMESPACES];
    a_single_candidate_is_judged_without_outputs_at_once: [NAMESPACES];
    an_explicit_value_uses_outputs_always: [NAMESPACES];
    a_base_over_outputs_of_an_ancestor_has_its_time_without_them: [NAMESPACES];
    a_lint_that_fails_everywhere_runs_once_for_each_candidate: [NAMESPACES];
    where_the_base_fails_and_leaves_nothing_each_candidate_is_judged_once: [NAMESPACES];
}

/// Takes time: longer than it takes to begin a command.
const WORK: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";

/// Says over what the test runs, and leaves an output.
const TRACED: &str =
    "if test -e out; then echo warm; else echo cold; fi >> ~/shared/runs; test -e out";

fn project(attempts: &[&str]) -> World {
    let mut world = sealed();
    world.set_env("FRITES_ORACLE_WARM", "auto");
    world.write(".gitignore", "out\n");
    world.commit("outputs are ignored");
    world.attempts(attempts);
    world
}

const THREE: [&str; 3] = ["seq 3 > new", "seq 2 > new", "seq 1 > new"];

/// The numbers of runs without outputs and over them, the base's included.
fn counted(world: &World) -> [usize; 2] {
    let runs = shared_lines(world, "runs");
    ["cold", "warm"].map(|way| runs.iter().filter(|run| *run == way).count())
}

/// Judges by this test; gives the numbers of runs.
fn runs(world: &World, test: &str, options: &[&str]) -> [usize; 2] {
    let words = ["judge", "-j", "1", "--json", "--test", test];
    let verdict = world.frites(words.iter().chain(options)).expect(0).json();
    assert_eq!(
        verdict["recommended"],
        format!("c{}", verdict["candidates"].as_array().unwrap().len())
    );
    counted(world)
}

fn a_suite_that_outputs_do_not_make_faster_is_judged_without_them() {
    let world = project(&THREE);
    let test = format!("{TRACED}; {WORK}; echo built > out");
    // The base, two of the three at once, and the winner if it was the one that showed the time.
    let [cold, warm] = runs(&world, &test, &[]);
    assert_eq!(warm, 1);
    assert!((3..=4).contains(&cold), "{cold}");
    let said = world.frites(["explain"]).expect(0).out();
    assert!(said.contains("it costs less to judge without outputs from the start"), "{said}");
    // All that was found is known.
    assert_eq!(runs(&world, &test, &[]), [cold, warm]);
    world.assert_clean();
}

fn the_candidate_that_would_win_last_shows_the_time() {
    let world = project(&["seq 1 > new", "seq 3 > new", "seq 2 > new"]);
    let test = format!("{TRACED}; {WORK}; echo built > out");
    let words = ["judge", "-j", "1", "--json", "--test", &test];
    let verdict = world.frites(words).expect(0).json();
    assert_eq!(verdict["recommended"], "c1", "{verdict:#}");
    // Nothing depends on its claim, so that it is not judged once more: the base and two without
    // outputs.
    assert_eq!(counted(&world), [3, 1]);
    world.assert_clean();
}

fn a_slow_build_is_judged_over_the_bases_outputs() {
    let world = project(&THREE);
    // Much slower than a run with outputs, also on a busy machine.
    let test = format!("{TRACED} || {{ {WORK}; {WORK}; {WORK}; {WORK}; echo built > out; }}");
    // The base and the winner without outputs, all three over them.
    assert_eq!(runs(&world, &test, &[]), [2, 3]);
    let said = world.frites(["explain"]).expect(0).out();
    assert!(said.contains("it costs less to judge with outputs first"), "{said}");
    assert_eq!(runs(&world, &test, &[]), [2, 3]);
    world.assert_clean();
}

fn a_single_candidate_is_judged_without_outputs_at_once() {
    let world = project(&THREE[2..]);
    let test = format!("{TRACED} || {{ {WORK}; echo built > out; }}");
    assert_eq!(runs(&world, &test, &[]), [2, 0]);
    world.assert_clean();
}

fn an_explicit_value_uses_outputs_always() {
    let mut world = project(&THREE);
    world.set_env("FRITES_ORACLE_WARM", "base");
    let test = format!("{TRACED}; {WORK}; echo built > out");
    assert_eq!(runs(&world, &test, &[]), [2, 3]);
    world.assert_clean();
}

fn a_base_over_outputs_of_an_ancestor_has_its_time_without_them() {
    let world = project(&THREE);
    let test = format!("{TRACED}; {WORK}; echo built > out");
    let before = runs(&world, &test, &[]);
    world.write("other", "other\n");
    world.commit("the base moves on");
    world.attempts(&THREE);
    let after = runs(&world, &test, &["2"]);
    // The base shows the time with outputs, and the ancestor showed that without.
    assert_eq!([after[0] - before[0], after[1] - before[1]], [3, 1]);
    world.assert_clean();
}

fn a_lint_that_fails_everywhere_runs_once_for_each_candidate() {
    let world = project(&THREE);
    let lint = format!("{TRACED}; {WORK}; echo built > out; echo 'error: no rule'; exit 1");
    let words = ["judge", "-j", "1", "--json", "--lint", &lint, "--test", "true"];
    let verdict = world.frites(words).expect(3).json();
    assert_eq!(verdict["decision"], "broken-base", "{verdict:#}");
    // The base, all three, and with outputs the one that showed the time.
    assert_eq!(counted(&world), [4, 1]);
    assert!(verdict["costs"]["warm"].is_number(), "{verdict:#}");
    world.assert_clean();
}

fn where_the_base_fails_and_leaves_nothing_each_candidate_is_judged_once() {
    let world = project(&THREE);
    let test = format!("{TRACED}; grep -q right new");
    let words = ["judge", "-j", "1", "--json", "--test", &test];
    let verdict = world.frites(words).expect(1).json();
    assert_eq!(verdict["decision"], "near-miss", "{verdict:#}");
    assert_eq!(counted(&world), [4, 0]);
    world.write("new", "none\n");
    world.commit("a file that is wrong");
    world.attempts(&["echo wrong > new", "echo right > new; seq 9 >> new"]);
    let verdict = world.frites([&words[..], &["2"]].concat()).expect(0).json();
    assert_eq!(verdict["recommended"], "c2", "{verdict:#}");
    assert_eq!(counted(&world), [7, 0]);
    world.assert_clean();
}
