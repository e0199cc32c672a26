//! The words of DESIGN.md §1 as plain types and pure functions: no files, no git, no printing.
pub mod address;
pub mod agreement;
pub mod base_tests;
pub mod blast;
pub mod board;
pub mod candidate;
pub mod checkup;
pub mod decision;
pub mod env;
pub mod flag;
pub mod machine;
pub mod name;
pub mod nearest;
pub mod oid;
pub mod oracle;
pub mod outcome;
pub mod part;
pub mod partial;
pub mod path;
pub mod plain;
pub mod rank;
pub mod ranking;
pub mod rationale;
pub mod refname;
pub mod run;
pub mod shard;
pub mod shell;
pub mod size;
pub mod task;
pub mod terms;
pub mod test_comparison;
pub mod test_report;
pub mod trailer;
pub mod verdict;

/// The version of every record that this program writes. A newer one is readable and not writable.
pub const FORMAT: u32 = 1;
pub mod world;
