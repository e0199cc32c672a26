//! How the results of single tests are learnt: from files that the configuration names, from files
//! that build tools write by themselves, from a file that the runner is asked for, or from what the
//! runner prints.
//!
//! The code under test can write all of these. So nothing of them makes a tree pass; but tests that
//! failed contradict an exit code of 0.
mod asked;
mod closing;
mod junit;
mod outputs;
mod printed;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fs::regular;
use crate::model::oracle::CommandLine;
use crate::model::test_report::TestReport;
use crate::oracle::test_reports::asked::AskedReport;
use crate::oracle::test_reports::junit::{EndedTests, ExpectedReport, files_at};
use crate::oracle::test_reports::outputs::OutputPlaces;
use crate::process::environment::Policy;
use crate::process::world_spec::Confinement;

/// The ways by which a command's test results are learnt.
pub struct TestReports {
    /// The configured file, or directory of files: as it is called, and its path.
    configured: Option<(String, PathBuf)>,
    /// The directory in which files appear that the command writes to the checkout.
    written: PathBuf,
    /// The checkout as the command sees it.
    dir: PathBuf,
    asked: Option<AskedReport>,
    outputs: Option<OutputPlaces>,
}

/// The results of one try of a command, before it runs.
pub struct ExpectedTests<'a> {
    reports: &'a TestReports,
    files: Option<ExpectedReport>,
}

impl TestReports {
    /// The ways for this command. `dir` is the checkout as it sees it, and `configured` the file that
    /// the configuration names, from the checkout's root.
    pub fn of(
        command: &CommandLine,
        configured: Option<&str>,
        (dir, written): (&Path, &Path),
        confinement: Option<&Confinement>,
        policy: &Policy,
    ) -> TestReports {
        let configured = configured.map(|name| (name.to_owned(), written.join(name)));
        let mut reports = TestReports {
            configured,
            written: written.to_owned(),
            dir: dir.to_owned(),
            asked: None,
            outputs: None,
        };
        if reports.configured.is_none() {
            reports.outputs = OutputPlaces::of(command);
            reports.asked = AskedReport::of(command, dir, confinement, policy);
        }
        reports
    }

    /// The variables by which the runner is asked for a report.
    pub fn variables(&self) -> Vec<(String, OsString)> {
        self.asked.iter().map(AskedReport::variable).collect()
    }

    /// Looks at the files that are there before the command runs.
    pub fn expect(&self) -> ExpectedTests<'_> {
        let files = if let Some((_, path)) = self.configured.clone() {
            Some(ExpectedReport::of(move || files_at(&path)))
        } else if let Some(asked) = &self.asked {
            let file = asked.file.clone();
            Some(ExpectedReport::of(move || vec![file.clone()]))
        } else {
            let written = self.written.clone();
            self.outputs.map(|places| ExpectedReport::of(move || places.find(&written)))
        };
        ExpectedTests { reports: self, files }
    }
}

impl ExpectedTests<'_> {
    /// The results after the command has ended and left this log. Names have the paths of the
    /// checkout's files from its root: every checkout is at another place.
    pub fn read(&self, log: &Path) -> EndedTests {
        let mut ended = self.find(log);
        if let Some(report) = &mut ended.report {
            report.cut_from_names(&format!("{}/", self.reports.dir.display()));
        }
        ended
    }

    fn find(&self, log: &Path) -> EndedTests {
        let files = self.files.as_ref().and_then(ExpectedReport::read);
        if let Some((name, _)) = &self.reports.configured {
            return files.unwrap_or_else(|| EndedTests {
                report: Some(TestReport {
                    problem: Some(format!("the tests wrote no '{name}'")),
                    ..TestReport::default()
                }),
                failed: 0,
            });
        }
        if let Some(asked) = &self.reports.asked {
            asked.hide_in(log);
        }
        // A file that is damaged tells no more than the output.
        let is_whole = |report: &TestReport| report.problem.is_none() && report.total > 0;
        if let Some(files) = files.filter(|files| files.report.as_ref().is_some_and(is_whole)) {
            return files;
        }
        let Ok(text) = regular::read_own(log) else { return EndedTests::default() };
        let text = String::from_utf8_lossy(&text);
        EndedTests { report: printed::read(&text), failed: closing::failures(&text) }
    }
}
