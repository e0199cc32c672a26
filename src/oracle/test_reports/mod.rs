//! Finds the results of single tests: in files that the configuration names, in a file that is requested from
//! the runner, in files that build tools write by themselves, or in the runner's output.
//!
//! The code under test can write all of these. So they never make a tree pass. But if they report failed
//! tests, an exit code of 0 is not believed.
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
use crate::oracle::test_reports::junit::{EndedTests, MarkedFile, files_at, marked, read_new};
use crate::oracle::test_reports::outputs::OutputPlaces;
pub(super) use crate::oracle::test_reports::printed::LONGEST_LINE;
use crate::process::environment::Policy;
use crate::process::world_spec::Confinement;

/// Where the test results of a command are looked for.
pub struct TestReports {
    /// The configured file, or directory of files: the name in the configuration, and the path.
    configured: Option<(String, PathBuf)>,
    /// The directory where the command's writes to the checkout really go.
    written: PathBuf,
    /// The path of the checkout, as the command sees it.
    dir: PathBuf,
    asked: Option<AskedReport>,
    outputs: Option<OutputPlaces>,
}

impl TestReports {
    /// Where the test results of this command are looked for. `dir` is the path of the checkout as the
    /// command sees it, `written` is the directory where the command's writes to it really go, and
    /// `configured` is the configured file, relative to the checkout's root.
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

    /// The environment variables that request a report from the runner.
    pub fn variables(&self) -> Vec<(String, OsString)> {
        self.asked.iter().map(|asked| asked.variable.clone()).collect()
    }

    /// The report files that exist now.
    pub fn files(&self) -> Vec<MarkedFile> {
        marked(match (&self.configured, &self.asked, self.outputs) {
            (Some((_, path)), ..) => files_at(path),
            (None, Some(asked), _) => vec![asked.file.clone()],
            (None, None, Some(places)) => places.find(&self.written),
            (None, None, None) => Vec::new(),
        })
    }

    /// The results of a try that has ended and written this log. `before` are the report files from before the
    /// try: a file that has not changed is not a report of this try. Paths in the names of tests become relative
    /// to the checkout's root, because each checkout has a different path.
    pub fn read(&self, before: &[MarkedFile], log: &Path) -> EndedTests {
        let mut ended = self.find(before, log);
        if let Some(report) = &mut ended.report {
            report.cut_from_names(&format!("{}/", self.dir.display()));
        }
        ended
    }

    fn find(&self, before: &[MarkedFile], log: &Path) -> EndedTests {
        let files = read_new(self.files(), before);
        if let Some((name, _)) = &self.configured {
            return files.unwrap_or_else(|| EndedTests {
                report: Some(TestReport {
                    problem: Some(format!("the tests wrote no '{name}'")),
                    ..TestReport::default()
                }),
                failed: 0,
            });
        }
        if let Some(asked) = &self.asked {
            asked.hide_in(log);
        }
        // If a report file is damaged or empty, the output is used instead.
        let is_whole = |report: &TestReport| report.problem.is_none() && report.total > 0;
        if let Some(files) = files.filter(|files| files.report.as_ref().is_some_and(is_whole)) {
            return files;
        }
        let Ok(text) = regular::read_own(log) else { return EndedTests::default() };
        let text = String::from_utf8_lossy(&text);
        EndedTests { report: printed::read(&text), failed: closing::failures(&text) }
    }
}
