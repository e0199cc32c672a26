//! JUnit files: what a test command tells of single tests.
//!
//! The attempt's own code may write them: whatever they hold decides nothing but which near-miss is shown
//! first, and none can hurt.
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use junit_parser::TestSuite;
use quick_xml::events::Event;

use crate::model::outcome::TestReport;

/// More than this is no report.
const LARGEST: u64 = 64 << 20;

/// Deeper than this is no report: the parser would run out of stack.
const DEEPEST: usize = 64;

/// Files that a command is about to write.
pub struct ExpectedReport {
    path: PathBuf,
    name: String,
    /// What was there before; the same again is not the command's.
    before: Vec<(PathBuf, FileMark)>,
}

/// Tells a file from the one that was there before: inode and change time.
type FileMark = (u64, i64, i64);

/// Looks at what lies at `path` of the checkout: a file, or a directory of `.xml` files.
pub fn expect(checkout: &Path, name: &str) -> ExpectedReport {
    let path = checkout.join(name);
    ExpectedReport { before: files(&path), path, name: name.to_owned() }
}

impl ExpectedReport {
    /// Reads what is new there; what is wrong with it is part of the report.
    pub fn read(&self) -> TestReport {
        let new: Vec<PathBuf> = files(&self.path)
            .into_iter()
            .filter(|file| !self.before.contains(file))
            .map(|(path, _)| path)
            .collect();
        let mut report = TestReport::default();
        if new.is_empty() {
            report.problem = Some(format!("the tests wrote no '{}'", self.name));
        }
        for file in new {
            match read(&file).and_then(|bytes| parse(&bytes)) {
                Ok(suites) => suites.iter().for_each(|suite| add(&mut report, suite)),
                Err(why) => {
                    report.problem = Some(format!("'{}' is no JUnit file: {why}", self.name));
                }
            }
        }
        for names in [&mut report.failing, &mut report.passing] {
            names.sort();
            names.dedup();
        }
        // A test of two results has failed.
        let failing = std::mem::take(&mut report.failing);
        report.passing.retain(|name| failing.binary_search(name).is_err());
        report.failing = failing;
        report
    }
}

fn files(path: &Path) -> Vec<(PathBuf, FileMark)> {
    let mark = |path: PathBuf| {
        let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((path, (meta.ino(), meta.ctime(), meta.ctime_nsec())))
    };
    if !path.is_dir() {
        return mark(path.to_owned()).into_iter().collect();
    }
    let listing = fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path());
    let mut found: Vec<_> =
        listing.filter(|p| p.extension().is_some_and(|e| e == "xml")).filter_map(mark).collect();
    found.sort();
    found
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let describe = |e: io::Error| crate::error::describe(&e);
    if fs::symlink_metadata(file).map_err(describe)?.len() > LARGEST {
        return Err("it is too large".into());
    }
    fs::read(file).map_err(describe)
}

/// The suites of a file.
fn parse(bytes: &[u8]) -> Result<Vec<TestSuite>, String> {
    let mut reader = quick_xml::Reader::from_reader(bytes);
    let mut depth = 0usize;
    let mut buffer = Vec::new();
    loop {
        match reader.read_event_into(&mut buffer).map_err(|e| first_line(&e))? {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Eof => break,
            _ => {}
        }
        if depth > DEEPEST {
            return Err("it is too deep".into());
        }
        buffer.clear();
    }
    junit_parser::from_reader(bytes).map(|document| document.suites).map_err(|e| first_line(&e))
}

fn first_line(e: &dyn std::error::Error) -> String {
    e.to_string().lines().next().unwrap_or_default().to_owned()
}

fn add(report: &mut TestReport, suite: &TestSuite) {
    for case in &suite.cases {
        report.total += 1;
        // One line each, whatever a test is called.
        let name: String =
            case.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if case.status.is_skipped() {
            report.skipped += 1;
        } else if case.status.is_success() {
            report.passing.push(name);
        } else {
            report.failing.push(name);
        }
    }
    for suite in &suite.suites {
        add(report, suite);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report(text: &str) -> TestReport {
        let dir = tempfile::tempdir().expect("a directory");
        let expected = expect(dir.path(), "r.xml");
        fs::write(dir.path().join("r.xml"), text).expect("a file");
        expected.read()
    }

    #[test]
    fn what_test_runners_write_is_read() {
        // pytest, jest-junit, surefire, nextest and gotestsum all write subsets of this.
        let text = r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="all" tests="5"><testsuite name="s" time="1.5">
            <testcase classname="m.T" name="ok" time="0.1"/><testcase classname="m.T" name="bad &lt;1&gt;"><failure message="x"><![CDATA[<testsuite>]]></failure></testcase>
            <testcase name="boom"><error/></testcase><testcase name="later"><skipped/></testcase>
            <testsuite name="inner"><testcase name="deep"><system-out>x</system-out></testcase></testsuite></testsuite></testsuites>"#;
        let read = report(text);
        assert_eq!((read.total, read.skipped, &read.problem), (5, 1, &None));
        assert_eq!(read.failing, ["boom", "m.T::bad <1>"]);
        assert_eq!(read.passing, ["deep", "m.T::ok"]);
    }

    #[test]
    fn what_is_no_report_says_so() {
        let deep = "<testsuite>".repeat(200_000);
        for text in ["", "nothing", "<testsuite><testcase name='a'>", "<a></b>", &deep] {
            let read = report(text);
            assert!(
                read.problem.is_some_and(|p| p.starts_with("'r.xml' is no JUnit file: ")),
                "{text:.30}"
            );
        }
    }

    #[test]
    fn what_lay_there_before_is_not_the_commands() {
        let dir = tempfile::tempdir().expect("a directory");
        let one = "<testsuite><testcase name='a'/></testsuite>";
        fs::create_dir(dir.path().join("out")).expect("a directory");
        fs::write(dir.path().join("out/old.xml"), one).expect("a file");
        let expected = expect(dir.path(), "out");
        assert_eq!(expected.read().problem.as_deref(), Some("the tests wrote no 'out'"));
        fs::write(dir.path().join("out/new.xml"), one.replace("'a'", "'b'")).expect("a file");
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("out/zero.xml")).expect("a link");
        assert_eq!(expected.read().passing, ["b"]);
    }

    proptest! {
        #[test]
        fn nothing_that_is_written_there_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "<testsuites>", "</testsuites>", "<testsuite name='s'>", "</testsuite>", "<testcase name='a'", ">", "/>", "</testcase>",
            "<failure>", "</failure>", "<![CDATA[", "]]>", "<!--", "-->", "&lt;", "&", "'", "\u{0}", "é", "time='x'", "<?xml?>",
        ]), 0..30)) {
            drop(report(&parts.concat()));
        }
    }
}
