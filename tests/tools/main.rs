//! The tests that need a tool which may be missing; without it, they are ignored with the reason.
//!
//! libtest knows when it compiles which tests it ignores. libtest-mimic lets a test find it out
//! when it runs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod agents;
mod attempt_downloads;
mod cheats;
mod cold;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "tests/runner.rs uses the rest")]
mod common;
mod completion;
mod confirmed;
mod cross;
mod eager;
mod evaluation;
mod file_systems;
mod guard;
mod hooks;
mod killed;
mod landlock;
mod landlock_tools;
mod landlocked_attempts;
mod live_view;
mod lost_exit_codes;
mod manual;
mod missing_tests;
mod odd_paths;
mod packages;
mod power_cut;
mod private_home;
mod refused;
mod report;
mod sealed;
mod sealed_ancestors;
mod sealed_attacks;
mod sealed_layers;
mod sealed_suites;
mod spread;
mod system_calls;
mod terminal;
mod terminal_output;
mod test_reports;
mod test_runners;
mod tool;
mod toolchains;
mod traces;
mod turns;
mod typing;
mod user_directories;
mod warm_pays;
mod watched;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let mut trials = agents::trials();
    trials.extend(attempt_downloads::trials());
    trials.extend(cheats::trials());
    trials.extend(cold::trials());
    trials.extend(confirmed::trials());
    trials.extend(completion::trials());
    trials.extend(cross::trials());
    trials.extend(eager::trials());
    trials.extend(evaluation::trials());
    trials.extend(file_systems::trials());
    trials.extend(guard::trials());
    trials.extend(hooks::trials());
    trials.extend(killed::trials());
    trials.extend(landlock::trials());
    trials.extend(landlock_tools::trials());
    trials.extend(landlocked_attempts::trials());
    trials.extend(live_view::trials());
    trials.extend(lost_exit_codes::trials());
    trials.extend(manual::trials());
    trials.extend(missing_tests::trials());
    trials.extend(odd_paths::trials());
    trials.extend(packages::trials());
    trials.extend(power_cut::trials());
    trials.extend(private_home::trials());
    trials.extend(refused::trials());
    trials.extend(report::trials());
    trials.extend(sealed::trials());
    trials.extend(sealed_ancestors::trials());
    trials.extend(sealed_attacks::trials());
    trials.extend(spread::trials());
    trials.extend(sealed_layers::trials());
    trials.extend(sealed_suites::trials());
    trials.extend(system_calls::trials());
    trials.extend(terminal_output::trials());
    trials.extend(test_reports::trials());
    trials.extend(test_runners::trials());
    trials.extend(toolchains::trials());
    trials.extend(turns::trials());
    trials.extend(warm_pays::trials());
    trials.extend(watched::trials());
    trials.extend(typing::trials());
    trials.extend(user_directories::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
