//! All integration tests in one program: real git, real repositories in temporary directories.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod architecture;
mod common;
mod test_add;
mod test_agent_state;
mod test_agents;
mod test_apply;
mod test_archive;
mod test_bad_input;
mod test_base;
mod test_broken_base;
mod test_by_hand;
mod test_cannot_tell;
mod test_capture;
mod test_cheats;
mod test_clean;
mod test_complete;
mod test_compose;
mod test_config;
mod test_cross;
mod test_detect;
mod test_diff;
mod test_disk;
mod test_doctor;
mod test_environment;
mod test_escape;
mod test_exec;
mod test_explain;
mod test_fan_out;
mod test_fuzzed_input;
mod test_heal;
mod test_hooks;
mod test_hostile_config;
mod test_housekeeping;
mod test_inherit;
mod test_into;
mod test_iterations;
mod test_judge;
mod test_judge_again;
mod test_judge_effort;
mod test_judge_escape;
mod test_judge_parts;
mod test_judge_surroundings;
mod test_judge_trust;
mod test_junit;
mod test_later;
mod test_load;
mod test_logs;
mod test_man;
mod test_merge;
mod test_mishaps;
mod test_missing_tests;
mod test_newest_wins;
mod test_old_state;
mod test_orphans;
mod test_output;
mod test_own_refs;
mod test_places;
mod test_plan;
mod test_readme;
mod test_real_project;
mod test_removal;
mod test_repair;
mod test_report;
mod test_reported_failures;
mod test_retention;
mod test_run;
mod test_schema;
mod test_seed;
mod test_seed_leads_back;
mod test_source;
mod test_spawn;
mod test_spread;
mod test_spread_machines;
mod test_spread_replay;
mod test_status;
mod test_supervise;
mod test_synthesis;
mod test_task;
mod test_trace;
mod test_undo;
mod test_usage;

/// A file that is not named above would never run.
#[test]
fn no_test_file_is_forgotten() {
    let runner = include_str!("runner.rs");
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|m| *m != "runner") {
            assert!(
                runner.contains(&format!("\nmod {module};\n")),
                "tests/runner.rs does not name {module}"
            );
        }
    }
}
