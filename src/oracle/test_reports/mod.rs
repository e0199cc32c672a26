//! Finds the results of single tests. They are in one of these places:
//! * files that the configuration names;
//! * a file that is requested from the runner;
//! * files that build tools write by themselves;
//! * the runner's output.
//!
//! The code under test can write all of these. So they never make a tree pass. But if they report
//! failed tests, an exit code of 0 is not believed.
mod asked;
mod closing;
mod junit;
mod printed;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::fs::regular;
use crate::model::oracle::CommandLine;
use crate::model::test_report::TestReport;
use crate::oracle::test_reports::asked::AskedReport;
use crate::oracle::test_reports::junit::{
    EndedTests, MarkedFile, files_at, marked, read_new, xml_files,
};
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
    /// Where the test results of this command are looked for. `dir` is the path of the checkout as
    /// the command sees it. `written` is the directory where the command's writes to it really go.
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

    /// The results of a try that has ended and written this log. `before` are the report files from
    /// before the try: a file that has not changed is not a report of this try. Paths in the names
    /// of tests become relative to the checkout's root, because each checkout has a different path.
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
        let text = regular::read_own(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let printed = printed::read(&text);
        // A report file has the results of one runner. If several runners printed results, the
        // output is used instead. It is also used if a report file is damaged or empty.
        let is_whole = |report: &TestReport| report.problem.is_none() && report.total > 0;
        let are_all = !printed.as_ref().is_some_and(TestReport::is_of_several_runners);
        match files.filter(|files| are_all && files.report.as_ref().is_some_and(is_whole)) {
            Some(files) => files,
            None => EndedTests { report: printed, failed: closing::failures(&text) },
        }
    }
}

/// The directories in which a build tool leaves JUnit files.
#[derive(Clone, Copy, Debug)]
pub struct OutputPlaces {
    /// The programs that start the tool.
    programs: &'static [&'static str],
    /// The name of the tool's output directory, which each part of the project has.
    output: &'static str,
    /// The directories below the output directory that contain report files, or directories of
    /// report files.
    reports: &'static [&'static str],
}

const fn places(
    programs: &'static [&'static str],
    output: &'static str,
    reports: &'static [&'static str],
) -> OutputPlaces {
    OutputPlaces { programs, output, reports }
}

const WRITERS: [OutputPlaces; 5] = [
    // ctest has its own files in this directory, and a detected command makes it write the report
    // there, too.
    places(&["ctest"], "Testing", &["Temporary"]),
    places(&["mvn", "mvnw", "mvnd"], "target", &["surefire-reports", "failsafe-reports"]),
    places(&["gradle", "gradlew"], "build", &["test-results"]),
    places(&["meson"], "meson-logs", &["."]),
    places(&["nextest", "cargo-nextest"], "target", &["nextest"]),
];

/// At most this many directories are searched.
const MOST_DIRECTORIES: usize = 10_000;

/// At most this many files are returned.
const MOST_FILES: usize = 10_000;

/// Directories are searched down to this depth.
const DEEPEST: usize = 8;

impl OutputPlaces {
    /// Finds the first word of a command that is a program of `WRITERS`, and returns the places of
    /// that program's files. `None` if there is no such word.
    pub fn of(command: &CommandLine) -> Option<OutputPlaces> {
        let writer = |word: &String| WRITERS.iter().find(|of| of.programs.contains(&word.as_str()));
        command.words().iter().find_map(writer).copied()
    }

    /// The JUnit files at these places below a checkout. Does not follow links.
    pub fn find(self, checkout: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut left = MOST_DIRECTORIES;
        self.search(checkout, 0, &mut left, &mut found);
        found.sort();
        found.truncate(MOST_FILES);
        found
    }

    fn search(self, dir: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
        if depth > DEEPEST || *left == 0 {
            return;
        }
        *left -= 1;
        for path in directories(dir) {
            let name = path.file_name().unwrap_or_default();
            if name == self.output {
                for reports in self.reports.iter().map(|reports| path.join(reports)) {
                    if fs::symlink_metadata(&reports).is_ok_and(|meta| meta.is_dir()) {
                        let mut places = directories(&reports);
                        places.push(reports);
                        let files = places.iter().flat_map(|place| xml_files(place));
                        found.extend(files.take(MOST_FILES));
                    }
                }
            } else if name != "node_modules" && !name.as_encoded_bytes().starts_with(b".") {
                self.search(&path, depth + 1, left, found);
            }
        }
    }
}

/// The directories in a directory, without links.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let directories = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> CommandLine {
        CommandLine::Shell(text.to_owned())
    }

    #[test]
    fn the_words_of_a_command_show_which_tool_writes_files() {
        let writer = |text| OutputPlaces::of(&shell(text)).map(|places| places.programs[0]);
        assert_eq!(writer("cd a && sh ./mvnw -B test"), Some("mvn"));
        assert_eq!(writer("gradle --no-daemon check"), Some("gradle"));
        assert_eq!(writer("cargo nextest run;true"), Some("nextest"));
        assert_eq!(writer("ctest --test-dir build"), Some("ctest"));
        assert_eq!(writer("make test"), None);
    }

    #[test]
    fn files_are_found_in_every_part_and_never_through_a_link() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, "x").expect("a file");
        };
        for path in [
            "target/surefire-reports/TEST-a.xml",
            "part/target/surefire-reports/TEST-b.xml",
            "part/target/surefire-reports/b.txt",
            "part/target/other/TEST-c.xml",
            "node_modules/x/target/surefire-reports/TEST-d.xml",
            "elsewhere/surefire-reports/TEST-e.xml",
        ] {
            write(path);
        }
        std::os::unix::fs::symlink("elsewhere", dir.path().join("linked")).expect("a link");
        fs::create_dir(dir.path().join("third")).expect("a directory");
        std::os::unix::fs::symlink("../elsewhere", dir.path().join("third/target")).expect("link");
        let found = WRITERS[1].find(dir.path());
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["TEST-b.xml", "TEST-a.xml"]);
    }
}
