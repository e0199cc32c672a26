//! The results of tests after a command has ended.
use crate::model::test_report::TestReport;

/// The results of one try of a command that has ended.
#[derive(Debug, Default)]
pub struct EndedTests {
    /// The single tests; `None` if nothing tells any.
    pub report: Option<TestReport>,
    /// The number of tests that failed, and passed on no rerun, by the report file, or without one by
    /// the summary with which the output ends.
    pub failed: u64,
}
