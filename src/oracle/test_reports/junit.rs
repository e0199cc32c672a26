//! Reads JUnit files with the results of single tests.
//!
//! The attempt's own code may write these files. So they never make a tree pass, and reading them
//! must be safe whatever they contain.
use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use crate::fs::regular;
use crate::model::test_report::{TestEnd, TestReport, is_doctest};

/// The files of one report may have at most this many bytes together.
const LARGEST: u64 = 64 << 20;

/// A file, and its inode and change time, which show whether the file was written again.
pub type MarkedFile = (PathBuf, (u64, i64, i64));

/// Reads the `marked` files that are not in `before`: the command has written these. Returns `None`
/// if there are none. If a file cannot be read, the report says so as its problem.
pub fn read_new(mut marked: Vec<MarkedFile>, before: &[MarkedFile]) -> Option<EndedTests> {
    let before: HashSet<&MarkedFile> = before.iter().collect();
    marked.retain(|file| !before.contains(file));
    if marked.is_empty() {
        return None;
    }
    let mut report = TestReport::default();
    let mut failed = HashSet::new();
    let mut passed = HashSet::new();
    let mut left = LARGEST;
    for (file, _) in marked {
        match read_cases(&file, &mut left) {
            Ok(cases) => {
                for case in cases {
                    let name = case.full_name();
                    report.count(&name, case.result);
                    let ran = case.result != TestEnd::Skipped;
                    report.doctests += u64::from(ran && case.is_doctest());
                    match case.result {
                        TestEnd::Passed => passed.insert(name),
                        TestEnd::Failed => failed.insert(name),
                        TestEnd::Skipped => false,
                    };
                }
            }
            Err(why) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                report.problem = Some(format!("'{name}' is no JUnit file: {why}"));
            }
        }
    }
    report.finish();
    // Some runners list a test once for each time that it ran. Such a test has failed only if it
    // never passed.
    let failed = failed.difference(&passed).count() as u64;
    Some(EndedTests { report: Some(report), failed })
}

/// The files at a path: if the path is a directory, the `.xml` files in it, otherwise the path
/// itself.
pub fn files_at(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut found: Vec<PathBuf> = xml_files(path).collect();
    found.sort();
    found
}

pub fn xml_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "xml"))
}

/// The regular files among these paths, each with its inode and change time.
pub fn marked(paths: Vec<PathBuf>) -> Vec<MarkedFile> {
    let mark = |path: PathBuf| {
        let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((path, (meta.ino(), meta.ctime(), meta.ctime_nsec())))
    };
    paths.into_iter().filter_map(mark).collect()
}

/// The test results of one try of a command.
#[derive(Debug, Default)]
pub struct EndedTests {
    /// The single tests; `None` if they are not known.
    pub report: Option<TestReport>,
    /// The number of tests that failed and did not pass in a rerun. It comes from the report file,
    /// or else from the summary at the end of the output.
    pub failed: u64,
}

/// One `<testcase>` element.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestCase {
    name: String,
    /// The test's class or group, which tells tests of the same name apart.
    class: Option<String>,
    /// The test's source file, which some runners write instead of a class.
    file: Option<String>,
    result: TestEnd,
}

impl TestCase {
    fn new(element: &BytesStart<'_>) -> Result<TestCase, String> {
        let mut case = TestCase::default();
        let mut group = None;
        // The check for duplicates would compare each attribute with all others.
        for attribute in element.attributes().with_checks(false) {
            let attribute = attribute.map_err(|e| first_line(&e))?;
            let value = || match unescape(&attribute.value) {
                Ok(text) => Ok(text.into_owned()),
                Err(e) => Err(first_line(&e)),
            };
            match attribute.key.0 {
                "name" => case.name = value()?,
                "classname" => case.class = Some(value()?),
                "group" => group = Some(value()?),
                "file" => case.file = Some(value()?),
                _ => {}
            }
        }
        // pytest writes an empty class for a test file that it cannot read.
        case.class = case.class.or(group).filter(|class| !class.is_empty());
        Ok(case)
    }

    fn is_doctest(&self) -> bool {
        is_doctest(self.class.as_deref().unwrap_or_default(), &self.name)
    }

    /// The name of this test with its class or file, which is unique in the report.
    fn full_name(&self) -> String {
        match self.class.as_ref().or(self.file.as_ref()) {
            Some(place) => format!("{place}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Reads the test cases in a file, and subtracts the file's size from `left`. Fails if the file has
/// more bytes than `left`.
fn read_cases(file: &Path, left: &mut u64) -> Result<Vec<TestCase>, String> {
    let describe = |e: io::Error| crate::error::describe(&e);
    let length = fs::symlink_metadata(file).map_err(describe)?.len();
    *left = left.checked_sub(length).ok_or("it is too large")?;
    let file = regular::open(file).map_err(describe)?;
    parse(BufReader::new(file.take(length)))
}

/// The test cases directly below `<testsuites>` and `<testsuite>`, read in one pass. Of the
/// children of a case, only those that tell its result are used.
fn parse(file: impl BufRead) -> Result<Vec<TestCase>, String> {
    let mut reader = quick_xml::Reader::from_reader(file);
    let mut buffer = Vec::new();
    let mut cases: Vec<TestCase> = Vec::new();
    let mut has_suite = false;
    // `depth` is the number of open elements. `suites` is the number of suites among them, which
    // are the outermost ones. `in_case` is true if a case is open directly below these suites.
    let mut depth = 0usize;
    let mut suites = 0usize;
    let mut in_case = false;
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(|e| first_line(&e))?;
        let (element, is_open) = match &event {
            Event::Start(element) => (element, true),
            Event::Empty(element) => (element, false),
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                suites = suites.min(depth);
                in_case &= depth > suites;
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        match element.name().0 {
            "testsuites" | "testsuite" if depth == suites => {
                has_suite = true;
                suites += usize::from(is_open);
            }
            "testcase" if depth == suites && depth > 0 => {
                cases.push(TestCase::new(element)?);
                in_case = is_open;
            }
            child if in_case && depth == suites + 1 => {
                let result = match child {
                    "failure" | "error" => TestEnd::Failed,
                    "skipped" => TestEnd::Skipped,
                    _ => TestEnd::Passed,
                };
                if let Some(case) = cases.last_mut()
                    && result != TestEnd::Passed
                {
                    case.result = result;
                }
            }
            _ => {}
        }
        depth += usize::from(is_open);
    }
    if depth > 0 {
        return Err("it ends too early".into());
    }
    if !has_suite {
        return Err("it has no test suite".into());
    }
    Ok(cases)
}

fn first_line(e: &dyn std::error::Error) -> String {
    e.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report(text: &str) -> TestReport {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("r.xml");
        fs::write(&file, text).expect("a file");
        read_new(marked(vec![file]), &[]).and_then(|ended| ended.report).expect("a new file")
    }

    #[test]
    fn a_report_of_a_test_runner_is_read() {
        // pytest, jest-junit, surefire, nextest and gotestsum all write subsets of this format.
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
    fn a_file_that_is_no_report_is_a_problem() {
        let deep = "<testsuite>".repeat(200_000);
        let texts = [
            "",
            "nothing",
            "<a/>",
            "<testcase name='a'/>",
            "<testsuite><testcase name='a'>",
            "<a></b>",
            &deep,
        ];
        for text in texts {
            let read = report(text);
            assert!(
                read.problem.is_some_and(|p| p.starts_with("'r.xml' is no JUnit file: ")),
                "{text:.30}"
            );
        }
    }

    #[test]
    fn the_name_of_a_test_has_its_class_its_group_or_its_file() {
        let text = r#"<testsuite><testcase name="a" classname="C" group="g" file="f"/>
            <testcase name="b" group="g" file="f"/><testcase name="c" file="f&amp;"/>
            <testcase name="d&#9;"/><testcase name="e" classname=""/></testsuite>"#;
        assert_eq!(report(text).passing, ["C::a", "d ", "e", "f&::c", "g::b"]);
    }

    #[test]
    fn doctests_are_recognised_by_the_name_of_their_module() {
        let text = r#"<testsuite><testcase classname="src.p.m" name="p.m.f"/><testcase classname="m" name="m.C.f"/>
            <testcase classname="p.m" name="p.m"/><testcase classname="t.T" name="x[1.5]"/><testcase classname="a b" name="a b"/>
            <testcase classname="t" name="1.5 is a number"/></testsuite>"#;
        assert_eq!(report(text).doctests, 3);
    }

    #[test]
    fn only_cases_in_suites_count_and_only_their_own_children() {
        let text = r#"<testsuites><testsuite><properties><testcase name="no"/></properties>
            <testcase name="ok"><system-out><failure/><testcase name="no"/></system-out>
            <rerunFailure/></testcase><failure/><testcase name="bad"><a/><error>x</error><b/></testcase>
            </testsuite><testsuite/><testsuite><testcase name="last"/></testsuite></testsuites>"#;
        let read = report(text);
        assert_eq!((read.total, read.problem), (3, None));
        assert_eq!(
            (read.passing, read.failing),
            (vec!["last".into(), "ok".into()], vec!["bad".to_owned()])
        );
    }

    #[test]
    fn deep_nesting_is_read() {
        let deep = 100_000;
        let text = [
            "<testsuite>".repeat(deep),
            "<testcase name='a'/>".into(),
            "</testsuite>".repeat(deep),
        ];
        assert_eq!(report(&text.concat()).passing, ["a"]);
    }

    #[test]
    fn a_file_that_was_there_before_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let one = "<testsuite><testcase name='a'/></testsuite>";
        fs::create_dir(dir.path().join("out")).expect("a directory");
        fs::write(dir.path().join("out/old.xml"), one).expect("a file");
        let now = || marked(files_at(&dir.path().join("out")));
        let before = now();
        assert!(read_new(now(), &before).is_none());
        fs::write(dir.path().join("out/new.xml"), one.replace("'a'", "'b'")).expect("a file");
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("out/zero.xml")).expect("a link");
        let report = read_new(now(), &before).and_then(|ended| ended.report);
        assert_eq!(report.expect("a new file").passing, ["b"]);
    }

    proptest! {
        #[test]
        fn no_content_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "<testsuites>", "</testsuites>", "<testsuite name='s'>", "</testsuite>", "<testcase name='a'", ">", "/>", "</testcase>",
            "<failure>", "</failure>", "<![CDATA[", "]]>", "<!--", "-->", "&lt;", "&", "'", "\u{0}", "é", "time='x'", "<?xml?>",
        ]), 0..30)) {
            drop(report(&parts.concat()));
        }
    }
}
