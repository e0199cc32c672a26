//! The terms of DESIGN.md §1 as plain types and pure functions: no files, no git, no printing.
pub mod address;
pub mod agent_output;
pub mod agent_stop;
pub mod agreement;
pub mod base_tests;
pub mod blast;
pub mod board;
pub mod candidate;
pub mod changed_file;
pub mod chatter;
pub mod checkup;
pub mod count;
pub mod cross;
pub mod cross_score;
pub mod decision;
pub mod declared_source;
pub mod env;
pub mod error_line;
pub mod flag;
pub mod layout;
pub mod missing_tests;
pub mod name;
pub mod nearest;
pub mod oid;
pub mod oracle;
pub mod outcome;
pub mod part;
pub mod path;
pub mod pattern;
pub mod plain;
pub mod protected_text;
pub mod rank;
pub mod ranking;
pub mod rationale;
pub mod refname;
pub mod repair;
pub mod run;
pub mod run_costs;
pub mod separation;
pub mod shard;
pub mod shell;
pub mod size;
pub mod terms;
pub mod test_comparison;
pub mod test_report;
pub mod trailer;
pub mod usage;
pub mod verdict;
pub mod world;

/// The version of every record that this program writes. A record with a newer version can be read,
/// but not written.
pub const FORMAT: u32 = 1;

/// True for the value that a record leaves out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
