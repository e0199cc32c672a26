//! Reads the results of single tests from the output of well-known test runners.
//!
//! A command may run several test runners, and each of them several times, e.g. once for each
//! package. So a log may have several summaries, and all of them are added. Each runner's summary
//! has a different form, so the log is read once for each runner.
use std::collections::BTreeSet;
use std::ops::Range;

use crate::model::agent_output::LEFT_OUT;
use crate::model::plain;
use crate::model::test_report::{LONGEST_NAME, TestEnd, TestReport};

/// The length, in bytes, of the longest line that is read.
pub const LONGEST_LINE: usize = 4096;

/// Reads the output of one runner. Returns `None` if there is no summary of this runner.
type Reader = fn(&[String]) -> Option<TestReport>;

/// The runners, each with its name in reports.
const RUNNERS: [(&str, Reader); 17] = [
    ("cargo test", libtest),
    ("nextest", nextest),
    ("pytest", pytest),
    ("unittest", unittest),
    ("go test", go),
    ("TAP", tap),
    ("prove", prove),
    ("node", node),
    ("jest", jest),
    ("vitest", vitest),
    ("mocha", mocha),
    ("rspec", rspec),
    ("minitest", minitest),
    ("PHPUnit", phpunit),
    ("ExUnit", exunit),
    ("tox", tox),
    ("meson", meson),
];

/// The results in a log; `None` if no known runner printed any.
pub fn read(log: &str) -> Option<TestReport> {
    let lines = log.lines().filter(|line| line.len() <= LONGEST_LINE);
    let lines: Vec<String> = lines.map(|line| plain::line(line).trim_end().to_owned()).collect();
    let mut found: Option<TestReport> = None;
    for (name, reader) in RUNNERS {
        if let Some(report) = reader(&lines) {
            let report = TestReport { printed_by: Some(name.to_owned()), ..report };
            match &mut found {
                Some(all) => all.add(report),
                None => found = Some(report),
            }
        }
    }
    if let Some(report) = &mut found {
        report.finish();
        if lines.iter().any(|line| line.starts_with(LEFT_OUT)) {
            report.problem = Some(
                "the middle of its output was left out, so results of tests are missing".to_owned(),
            );
        }
    }
    found
}

/// The sum of the numbers before these words, e.g. 2 for `passed` in `1 failed, 2 passed`.
pub(super) fn number_before(line: &str, words: &[&str]) -> u64 {
    let parts = line.split([' ', ',', ';', '|', '(', ')', '=']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let pairs = parts.windows(2).filter(|pair| words.contains(&pair[1]));
    pairs.filter_map(|pair| number(pair[0])).sum()
}

/// A number. It is limited, so that the sum of all numbers in a log cannot overflow.
pub(super) fn number(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().map(|number| number.min(1 << 32))
}

/// The number after a text, e.g. 2 after `skipped=` in `skipped=2`.
pub(super) fn number_after(line: &str, name: &str) -> u64 {
    let rest = line.split_once(name).map_or("", |(_, rest)| rest);
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(number).unwrap_or_default()
}

/// The report with the sum of one runner's summaries, without the names of tests; `None` if there
/// is no summary. `read` is called for each line, with that line and all lines after it. If a
/// summary begins there, `read` returns two numbers of tests: the total, and the skipped ones.
fn summed(lines: &[String], read: impl Fn(&[String]) -> Option<(u64, u64)>) -> Option<TestReport> {
    let summaries = (0..lines.len()).filter_map(|at| read(&lines[at..]));
    let (total, skipped) = summaries.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))?;
    Some(TestReport { total, skipped, ..TestReport::default() })
}

/// The lines after index `after`, up to the first line that does not begin with `start`. The
/// beginning is removed.
fn block<'l>(lines: &'l [String], after: usize, start: &'l str) -> impl Iterator<Item = &'l str> {
    lines[after + 1..].iter().map_while(move |line| line.strip_prefix(start))
}

/// Rust's test harness. The report's names of tests begin with the name of their binary, which
/// cargo prints before it starts the binary.
fn libtest(lines: &[String]) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut binary = String::new();
    let mut is_there = false;
    let mut in_docs = false;
    // The number of passing names before those of the current binary.
    let mut before = 0;
    for (at, line) in lines.iter().enumerate() {
        let named = |name: &str| match binary.as_str() {
            "" => name.to_owned(),
            binary => format!("{binary}::{name}"),
        };
        if let Some(file) = line.trim_start().strip_prefix("Running ") {
            let file = file.rsplit_once('(').map_or("", |(_, file)| file.trim_end_matches(')'));
            let name = file.rsplit('/').next().unwrap_or_default();
            binary = name.rsplit_once('-').map_or("", |(name, _)| name).to_owned();
            in_docs = false;
        } else if let Some(library) = line.trim_start().strip_prefix("Doc-tests ") {
            binary = library.to_owned();
            in_docs = true;
        } else if line == "failures:" {
            block(lines, at, "    ").for_each(|name| report.name_failing(&named(name)));
        } else if line.starts_with("test result: ") {
            is_there = true;
            let tests = number_before(line, &["passed", "failed", "ignored", "measured"]);
            report.total += tests;
            let ignored = number_before(line, &["ignored"]);
            report.doctests += if in_docs { tests - ignored } else { 0 };
            report.skipped += ignored;
            let passed = number_before(line, &["passed"]);
            drop_printed_by_tests(&mut report.passing, before, passed);
            before = report.passing.len();
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... ok"))
        {
            // A test may have printed text without a line end before the harness prints its line.
            let name = name.rsplit(" ... test ").next().unwrap_or(name);
            report.name_passing(&named(name));
        } else if let Some((name, end)) =
            line.strip_prefix("test ").and_then(|l| l.split_once(" ... "))
            && end.starts_with("ignored")
        {
            report.name_skipped(&named(name));
        }
    }
    is_there.then_some(report)
}

/// Removes names that tests of one binary have printed themselves. For example, trybuild prints
/// lines in the form of the harness.
/// The names of the binary begin at index `first`. A name that is not a path of Rust is taken for a
/// printed one. Such names are removed only if the other names are exactly as many as the tests
/// that passed.
fn drop_printed_by_tests(names: &mut Vec<String>, first: usize, passed: u64) {
    let paths: Vec<String> =
        names[first..].iter().filter(|name| is_path_of_rust(name)).cloned().collect();
    if paths.len() as u64 == passed {
        names.truncate(first);
        names.extend(paths);
    }
}

/// True for the name of a test that Rust's own harness runs.
fn is_path_of_rust(name: &str) -> bool {
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    name.chars().all(|c| c.is_alphanumeric() || "_:#".contains(c))
}

/// The status and the rest of a line of nextest: `PASS [   0.003s] tiny fine`.
fn nextest_line(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.trim_start().split_once(" [")?;
    Some((word.trim_end(), rest.split_once("] ")?.1.trim_start()))
}

fn nextest(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let (_, counts) = nextest_line(&rest[0]).filter(|(word, _)| *word == "Summary")?;
        let skipped = number_before(counts, &["skipped"]);
        Some((number_before(counts, &["tests", "test"]) + skipped, skipped))
    })?;
    for (word, name) in lines.iter().filter_map(|line| nextest_line(line)) {
        // The test's position in the list of all tests, e.g. `( 1/20)`, may stand before its name.
        let name = match name.split_once(") ") {
            Some((place, name)) if place.starts_with('(') => name,
            _ => name,
        };
        match word {
            "PASS" => report.name_passing(name),
            "FAIL" | "TIMEOUT" | "SIGABRT" | "SIGSEGV" | "ABORT" => report.name_failing(name),
            _ => {}
        }
    }
    Some(report)
}

/// The words after numbers of tests in pytest's last line.
const PYTEST: [&str; 7] = ["failed", "passed", "skipped", "xfailed", "xpassed", "error", "errors"];

/// The counts in pytest's last line: `1 failed, 3 passed`. `None` for any other line.
pub(super) fn pytest_counts(line: &str) -> Option<&str> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    let is_count =
        |part: &str| part.split_once(' ').is_some_and(|(number, _)| number.parse::<u64>().is_ok());
    let is_summary = seconds.parse::<f64>().is_ok()
        && counts.split(", ").all(is_count)
        && number_before(counts, &PYTEST) > 0;
    is_summary.then_some(counts)
}

fn pytest(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let counts = pytest_counts(&rest[0])?;
        Some((number_before(counts, &PYTEST), number_before(counts, &["skipped", "xfailed"])))
    })?;
    for line in lines {
        if line.trim_matches(['_', ' ']).starts_with("ERROR at teardown of ") {
            // pytest counts an error in teardown in addition to the test itself.
            report.total = report.total.saturating_sub(1);
        } else if let Some(test) =
            line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))
        {
            report.name_failing(test.split(" - ").next().unwrap_or(test));
        }
    }
    Some(report)
}

fn unittest(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let [ran, _, end, ..] = rest else { return None };
        let (count, time) = ran.strip_prefix("Ran ")?.split_once(" test")?;
        let is_end = ["OK", "FAILED", "NO TESTS"].iter().any(|word| end.starts_with(word));
        let skipped = || number_after(end, "skipped=") + number_after(end, "expected failures=");
        (time.contains(" in ") && is_end).then_some((number(count)?, skipped()))
    })?;
    for pair in lines.windows(2).filter(|pair| pair[0].starts_with("=====")) {
        let line = &pair[1];
        if let Some(test) = line.strip_prefix("FAIL: ").or(line.strip_prefix("ERROR: ")) {
            let (name, place) = test.split_once(" (").unwrap_or((test, ""));
            let place = place.split(')').next().unwrap_or_default();
            match place {
                "" => report.name_failing(name),
                // Since Python 3.11, the text in parentheses ends with the test's name.
                place if place.rsplit('.').next() == Some(name) => report.name_failing(place),
                place => report.name_failing(&format!("{place}.{name}")),
            }
        }
    }
    Some(report)
}

/// `go test`, with and without `-v` or `-json`, and gotestsum. Without these options, `go test`
/// does not print the number of tests.
pub(super) fn go(lines: &[String]) -> Option<TestReport> {
    let mut report = TestReport::default();
    let is_verbose = lines.iter().any(|line| line.starts_with("=== RUN"));
    let is_done = |line: &String| line.starts_with("DONE ") && line.contains(" in ");
    let done = summed(lines, |rest| {
        let counts = |words| number_before(&rest[0], words);
        is_done(&rest[0]).then(|| (counts(&["tests", "test"]), counts(&["skipped"])))
    });
    // Tests that have ended, but whose package is printed later.
    let mut ended: Vec<(&str, TestEnd)> = Vec::new();
    let name_ended = |report: &mut TestReport, name: &str, end| {
        report.count(name, end);
        // Without `-v`, passed tests are not printed, so the total is not known. Take back the 1
        // that `count` has added to it.
        report.total -= u64::from(!is_verbose && end == TestEnd::Failed);
    };
    for line in lines {
        let text = line.trim_start();
        // The test's own output may stand before its result in the same line.
        let is_end = is_verbose && text.ends_with("s)");
        let named = |start: &str| {
            let (before, rest) = text.split_once(start)?;
            (before.is_empty() || is_end).then(|| rest.split(" (").next())?
        };
        if let Some((name, end)) = go_event(text) {
            report.count(&name, end);
        } else if let Some((package, name)) = named("=== FAIL: ").and_then(|t| t.split_once(' ')) {
            // gotestsum calls the package at the root of the module `.`.
            match package {
                "." => report.name_failing(name),
                package => report.name_failing(&format!("{package}.{name}")),
            }
        } else if done.is_some() {
            continue;
        } else if let Some(name) = named("--- FAIL: ") {
            ended.push((name, TestEnd::Failed));
        } else if let Some(name) = named("--- PASS: ") {
            ended.push((name, TestEnd::Passed));
        } else if let Some(name) = named("--- SKIP: ") {
            ended.push((name, TestEnd::Skipped));
        } else if let Some(package) = line.strip_prefix("FAIL ").or(line.strip_prefix("ok ")) {
            let package = package.trim_start().split(' ').next().unwrap_or_default();
            for (name, end) in ended.drain(..) {
                name_ended(&mut report, &format!("{package}.{name}"), end);
            }
        }
    }
    if let Some(done) = done {
        (report.total, report.skipped) = (done.total, done.skipped);
        let is_again = |line: &String| is_done(line) && line.contains(" runs,");
        if lines.iter().any(is_again) && report.failing.is_empty() {
            report.problem =
                Some("if a test ran again, it counts each run as a test of its own".to_owned());
        }
    }
    ended.into_iter().for_each(|(name, end)| name_ended(&mut report, name, end));
    // If a subtest failed, the test around it is left out.
    let mut all = report.failing.clone();
    all.sort();
    report.failing.retain(|name| !has_part(name, &all));
    let unbuilt = |line: &String| line.starts_with("FAIL") && line.ends_with(" [build failed]");
    if report.total == 0 && report.failing.is_empty() && lines.iter().any(unbuilt) {
        report.problem = Some("a package did not build".to_owned());
    }
    let has_results = report.total > 0 || !report.failing.is_empty() || report.problem.is_some();
    (has_results || no_package_has_tests(lines)).then_some(report)
}

/// True if `go test` says of each package that it has no tests.
fn no_package_has_tests(lines: &[String]) -> bool {
    let mut packages = lines.iter().filter(|line| {
        line.starts_with("ok ") || line.starts_with("FAIL") || line.ends_with("[no test files]")
    });
    packages.clone().next().is_some()
        && packages
            .all(|line| line.ends_with("[no test files]") || line.ends_with("[no tests to run]"))
}

/// Reads the output of Meson only if the project has no test. Otherwise, Meson writes a JUnit file.
fn meson(lines: &[String]) -> Option<TestReport> {
    lines.iter().any(|line| line == "No tests defined.").then(TestReport::default)
}

/// Reads the output of tox only if it ran no command, because its environment has none. Otherwise,
/// the commands report their tests.
fn tox(lines: &[String]) -> Option<TestReport> {
    let ends_well = lines.iter().any(|line| line.trim_start().starts_with("congratulations :)"));
    let has_command = lines.iter().any(|line| line.contains(": commands["));
    (ends_well && !has_command).then(TestReport::default)
}

/// True if `sorted` has a subtest of this test.
fn has_part(name: &str, sorted: &[String]) -> bool {
    let parts = format!("{name}/");
    let first = sorted.partition_point(|other| *other < parts);
    sorted.get(first).is_some_and(|other| other.starts_with(&parts))
}

/// The name and result of a test in a line of `go test -json`.
fn go_event(line: &str) -> Option<(String, TestEnd)> {
    if !line.starts_with("{\"Time\":") && !line.starts_with("{\"Action\":") {
        return None;
    }
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    let end = match event["Action"].as_str()? {
        "pass" => TestEnd::Passed,
        "fail" => TestEnd::Failed,
        "skip" => TestEnd::Skipped,
        _ => return None,
    };
    let name = format!("{}.{}", event["Package"].as_str()?, event["Test"].as_str()?);
    Some((name, end))
}

/// The Test Anything Protocol (TAP), which `node --test`, prove and bats print. A test with
/// subtests is a group. A group is counted as a test only if it fails although none of its subtests
/// does.
fn tap(lines: &[String]) -> Option<TestReport> {
    let is_plan =
        |line: &str| line.strip_prefix("1..").is_some_and(|number| number.parse::<u64>().is_ok());
    lines.iter().find(|line| line.starts_with("TAP version") || is_plan(line))?;
    // The tests that have ended, each with its depth, name and result. The groups around them may
    // not have ended yet.
    let mut ended: Vec<(usize, String, TestEnd)> = Vec::new();
    let mut unnamed = 0;
    let is_of_prove = lines.iter().any(|line| is_summary_of_prove(line));
    for line in lines {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        let (rest, mut end) = match (text.strip_prefix("not ok"), text.strip_prefix("ok")) {
            (Some(rest), _) => (rest, TestEnd::Failed),
            (_, Some(rest)) => (rest, TestEnd::Passed),
            _ => continue,
        };
        // After each file that passes, `prove -v` prints `ok`.
        let is_of_file = rest.is_empty() && is_of_prove && end == TestEnd::Passed;
        if is_of_file || !rest.is_empty() && !rest.starts_with(' ') {
            continue;
        }
        let (text, directive) = tap_directive(rest);
        if directive == Some("SKIP") || directive == Some("TODO") && end == TestEnd::Failed {
            end = TestEnd::Skipped;
        }
        let text = text.split_once(" # ").map_or(text, |(text, _)| text);
        let name = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
        let mut name = name.trim_start().trim_start_matches("- ").to_owned();
        if name.is_empty() && end != TestEnd::Skipped {
            // Each needs a name of its own, because tests are counted by their names. The numbers
            // in the lines begin anew in each file.
            unnamed += 1;
            name = format!("test {unnamed}");
        }
        let parts = Range {
            start: ended.iter().rposition(|(d, ..)| *d <= depth).map_or(0, |at| at + 1),
            end: ended.len(),
        };
        // A file or group may fail although its tests pass, e.g. because it takes too long.
        let fails_alone = end == TestEnd::Failed
            && ended[parts.clone()].iter().all(|(.., part)| *part != TestEnd::Failed);
        if parts.is_empty() || fails_alone {
            ended.push((depth, name.clone(), end));
        }
        if !parts.is_empty() {
            for part in &mut ended[parts] {
                *part = (depth, joined(&name, &part.1), part.2);
            }
        }
    }
    let mut report = TestReport::default();
    ended.iter().for_each(|(_, name, end)| report.count(name, *end));
    let has_none = ended.is_empty() && lines.iter().any(|line| line == "1..0");
    (report.total > 0 || has_none).then_some(report)
}

/// A line of TAP without its directive, and the directive: `TODO` or `SKIP`. The directive begins
/// at the last `#` before one of these words.
pub(super) fn tap_directive(line: &str) -> (&str, Option<&'static str>) {
    for (at, _) in line.rmatch_indices(" #") {
        let rest = line[at + 2..].trim_start();
        let is = |word: &str| rest.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        if is("SKIP") {
            return (&line[..at], Some("SKIP"));
        }
        if is("TODO") && !rest[4..].starts_with(|c: char| c.is_alphanumeric()) {
            return (&line[..at], Some("TODO"));
        }
    }
    (line, None)
}

/// prove, if it prints only the number of tests, and not each test (as TAP). A skipped file has no
/// tests.
fn prove(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        is_summary_of_prove(&rest[0]).then(|| (number_after(&rest[0], ", Tests="), 0))
    })?;
    for (at, line) in lines.iter().enumerate() {
        let Some((file, _)) = line.split_once(" (Wstat: ") else { continue };
        let about: Vec<&str> =
            lines[at + 1..].iter().map_while(|line| line.strip_prefix("  ")).collect();
        let names = failed_in_file(file.trim_end(), &about);
        // A file may fail without a failed test. Such a file counts as a test, because prove's
        // number does not include it.
        if names.is_empty() && about.iter().any(|line| !line.starts_with("TODO passed:")) {
            report.count(file.trim_end(), TestEnd::Failed);
        }
        names.iter().for_each(|name| report.name_failing(name));
    }
    // Only `prove -v` prints lines of TAP. If prove ran without `-v`, lines of TAP in the log come
    // from another program.
    let is_short = lines.iter().any(|line| line.ends_with(".. ok"));
    (is_short || tap(lines).is_none()).then_some(report)
}

fn is_summary_of_prove(line: &str) -> bool {
    line.starts_with("Files=") && line.contains(", Tests=")
}

/// The maximum number of failed tests that are read for one file in prove's summary.
const MOST_FAILED: usize = 10_000;

/// The names of a file's failed tests in prove's summary, e.g. for `Failed tests:  2, 4-6`. A long
/// list goes on in the next lines.
fn failed_in_file(file: &str, about: &[&str]) -> Vec<String> {
    let Some(at) = about.iter().position(|line| line.starts_with("Failed test")) else {
        return Vec::new();
    };
    let first = about[at].split_once(':').map(|(_, numbers)| numbers);
    let others = about[at + 1..].iter().copied().take_while(|line| line.starts_with(' '));
    let numbers = first.into_iter().chain(others).flat_map(|list| list.split([',', ' ']));
    let ranges = numbers.filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(number(first)?..=number(last)?)
    });
    ranges.flatten().take(MOST_FAILED).map(|number| format!("{file} test {number}")).collect()
}

/// The longer form of the output of `node --test`, which is meant for people.
fn node(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let total = number(rest[0].strip_prefix("ℹ tests ")?)?;
        let counts = rest.iter().map_while(|line| line.strip_prefix("ℹ "));
        let skipped = counts.filter_map(|count| {
            number(count.strip_prefix("skipped ").or(count.strip_prefix("todo "))?)
        });
        Some((total, skipped.sum()))
    })?;
    // The suites around the current line, the outermost first, each with its full name.
    let mut suites: Vec<(&str, String)> = Vec::new();
    // The failed tests follow the summary. Behind them, the results of another run may begin.
    let mut are_failures = false;
    for line in lines {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        let Some((mark, name)) = text.split_once(' ') else { continue };
        let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
        let ends_suite = suites.get(depth).is_some_and(|(suite, _)| *suite == name);
        are_failures &= depth > 0 || !["▶", "✔"].contains(&mark);
        match mark {
            "ℹ" => suites.clear(),
            "✖" if line == "✖ failing tests:" => are_failures = true,
            "✖" if are_failures && depth == 0 => report.name_failing(name),
            "▶" if !are_failures && depth <= suites.len() => {
                suites.truncate(depth);
                let full = within(suites.last(), name);
                suites.push((name, full));
            }
            "✔" if !are_failures && depth <= suites.len() && !ends_suite => {
                suites.truncate(depth);
                report.name_passing(&within(suites.last(), name));
            }
            _ => {}
        }
    }
    Some(report)
}

/// The name of a test or suite of `node --test` with the suites around it.
fn within(suite: Option<&(&str, String)>, name: &str) -> String {
    suite.map_or_else(|| name.to_owned(), |(_, suite)| joined(suite, name))
}

/// The name of a test in a group. Its length is limited, because the names of many nested groups
/// could fill the memory.
fn joined(group: &str, name: &str) -> String {
    [group, " > ", name].iter().flat_map(|text| text.chars()).take(4 * LONGEST_NAME).collect()
}

/// Adds the files that failed before any of their tests ran, each as one failed test. A runner may
/// print such a file twice before its summary.
fn count_files<'l>(
    report: &mut TestReport,
    lines: &'l [String],
    summary: &str,
    mut file: impl FnMut(&'l str) -> Option<&'l str>,
) {
    for run in lines.split(|line| line.trim_start().starts_with(summary)) {
        let files: BTreeSet<&str> = run.iter().filter_map(|line| file(line)).collect();
        files.iter().for_each(|file| report.count(file, TestEnd::Failed));
    }
}

fn jest(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let counts = rest[0].strip_prefix("Tests:  ")?;
        Some((number_before(counts, &["total"]), number_before(counts, &["skipped", "todo"])))
    })?;
    let names = lines.iter().filter_map(|line| line.strip_prefix("  ● "));
    for name in names.filter(|name| *name != "Console" && !name.starts_with("Test suite failed")) {
        report.name_failing(name);
    }
    let mut file = None;
    count_files(&mut report, lines, "Tests:  ", |line| {
        if let Some(named) = line.strip_prefix("FAIL ") {
            // If the file was slow, its time follows its name.
            file = Some(named.split_once(" (").map_or(named, |(path, _)| path));
        }
        line.starts_with("  ● Test suite failed").then(|| file.take())?
    });
    (report.total > 0).then_some(report)
}

fn vitest(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let counts = rest[0].trim_start().strip_prefix("Tests  ")?;
        let total = match counts.rsplit_once('(') {
            Some((_, total)) => number(total.trim_end_matches(')'))?,
            None => (counts == "no tests").then_some(0)?,
        };
        Some((total, number_before(counts, &["skipped", "todo"])))
    })?;
    let named = lines.iter().filter_map(|line| line.trim_start().strip_prefix("FAIL  "));
    named.filter(|name| name.contains(" > ")).for_each(|name| report.name_failing(name));
    // A file that failed as a whole: `FAIL a.test.ts [ a.test.ts ]`.
    count_files(&mut report, lines, "Tests  ", |line| {
        let name = line.trim_start().strip_prefix("FAIL  ")?;
        Some(name.strip_suffix(" ]")?.split_once(" [ ")?.0)
    });
    (report.total > 0).then_some(report)
}

/// The counts of tests that passed, are pending and failed in mocha's summary, which begins with
/// `  4 passing (5ms)`.
fn mocha_counts(rest: &[String]) -> Option<[u64; 3]> {
    let words = ["passing", "pending", "failing"];
    let counted = |line: &String| {
        let (count, word) = line.strip_prefix("  ")?.split_once(' ')?;
        let kind = words.iter().position(|known| word.split(' ').next() == Some(known))?;
        Some((kind, number(count)?))
    };
    counted(&rest[0]).filter(|(kind, _)| *kind == 0 && rest[0].ends_with(')'))?;
    let mut counts = [0; 3];
    rest.iter().take(3).map_while(counted).for_each(|(kind, count)| counts[kind] += count);
    Some(counts)
}

fn mocha(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let counts = mocha_counts(rest)?;
        Some((counts.iter().sum(), counts[1]))
    })?;
    // After the summary, a failed test is printed as ` 1) the suite`, followed by the titles of the
    // inner suites and of the test. The last title ends with a colon. Behind them, another run may
    // print its own results.
    let mut titles: Option<String> = None;
    let mut next = 1;
    let mut last = 0;
    for (at, line) in lines.iter().enumerate() {
        if let Some([.., failing]) = mocha_counts(&lines[at..]) {
            next = 1;
            last = failing;
        }
        let text = line.trim_start();
        if line.starts_with("  ")
            && let Some((place, suite)) = text.split_once(") ")
            && number(place) == Some(next)
            && next <= last
        {
            next += 1;
            titles = Some(suite.to_owned());
        } else if let Some(above) = &mut titles {
            above.push_str(&format!(" > {}", text.trim_end_matches(':')));
        }
        if text.ends_with(':') || text.is_empty() {
            titles.take().iter().for_each(|name| report.name_failing(name.trim_end_matches(':')));
        }
    }
    Some(report)
}

/// True for rspec's summary: `10 examples, 1 failure, 2 pending`.
fn is_rspec_summary(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    matches!(
        words[..],
        [_, "examples," | "example,", _, "failures" | "failures," | "failure" | "failure,", ..]
    )
}

fn rspec(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let counts = |words| number_before(&rest[0], words);
        is_rspec_summary(&rest[0]).then(|| (counts(&["examples", "example"]), counts(&["pending"])))
    })?;
    for line in lines.iter().filter_map(|line| line.strip_prefix("rspec ")) {
        report.name_failing(line.split_once(" # ").map_or(line, |(_, name)| name));
    }
    Some(report)
}

/// The counts in PHPUnit's last line: `Tests: 5, Assertions: 2, Failures: 1.`.
fn phpunit_counts(line: &str) -> Option<&str> {
    line.strip_suffix('.')
        .filter(|line| line.starts_with("Tests: ") && line.contains(", Assertions: "))
}

/// PHPUnit. If all tests passed, it prints `OK (1 test, 2 assertions)`.
fn phpunit(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let line = &rest[0];
        if let Some(counts) = phpunit_counts(line) {
            let skipped = number_after(counts, ", Skipped: ");
            let skipped = skipped + number_after(counts, ", Incomplete: ");
            return Some((number_after(counts, "Tests: "), skipped));
        }
        let is_pass = [" assertions)", " assertion)"].iter().any(|end| line.ends_with(end));
        (is_pass && line.starts_with("OK (")).then(|| (number_before(line, &["test", "tests"]), 0))
    })?;
    let mut are_failures = false;
    for line in lines {
        let is_heading = line.starts_with("There was 1 ") || line.starts_with("There were ");
        are_failures = match line.as_str() {
            "--" => false,
            _ if phpunit_counts(line).is_some() => false,
            _ if is_heading => [" failure", " error"].iter().any(|kind| line.contains(kind)),
            _ => are_failures,
        };
        if are_failures
            && let Some((place, name)) = line.split_once(") ")
            && number(place).is_some()
        {
            report.name_failing(name);
        }
    }
    Some(report)
}

/// The counts in ExUnit's last line: `1 doctest, 4 tests, 1 failure, 1 skipped`.
fn exunit_counts(line: &str) -> Option<&str> {
    let is_summary = line.contains(" test") && line.contains(" failure");
    let mut parts = line.split(", ").map(|part| part.split_once(' ').unwrap_or_default());
    let are_counts = parts.all(|(count, word)| {
        number(count).is_some() && (EXUNIT_TESTS.contains(&word) || EXUNIT_ENDS.contains(&word))
    });
    (is_summary && are_counts).then_some(line)
}

/// The words after numbers of tests, and after numbers of results, in ExUnit's last line.
const EXUNIT_TESTS: [&str; 6] = ["doctest", "doctests", "property", "properties", "test", "tests"];
const EXUNIT_ENDS: [&str; 5] = ["failure", "failures", "excluded", "invalid", "skipped"];

fn exunit(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let counts = exunit_counts(&rest[0])?;
        Some((
            number_before(counts, &EXUNIT_TESTS),
            number_before(counts, &["skipped", "excluded"]),
        ))
    })?;
    let summaries = lines.iter().filter_map(|line| exunit_counts(line));
    report.doctests = summaries.map(|counts| number_before(counts, &["doctest", "doctests"])).sum();
    for line in lines.iter().filter_map(|line| line.strip_prefix("  ")) {
        // A failed test is printed as ` 1) test two (VTest)`.
        if let Some((place, name)) = line.split_once(") ")
            && number(place.trim_start()).is_some()
            && name.ends_with(')')
        {
            report.name_failing(name);
        }
    }
    Some(report)
}

/// minitest prints the failed tests, and then
/// `4 runs, 2 assertions, 1 failures, 0 errors, 1 skips`.
fn minitest(lines: &[String]) -> Option<TestReport> {
    let mut report = summed(lines, |rest| {
        let is_summary = rest[0].contains(" runs, ") && rest[0].contains(" assertions, ");
        is_summary
            .then(|| (number_before(&rest[0], &["runs"]), number_before(&rest[0], &["skips"])))
    })?;
    for pair in lines.windows(2) {
        let number = pair[0].trim_start().split_once(") ").filter(|(n, _)| number(n).is_some());
        let kind = number.map_or("", |(_, kind)| kind);
        if ["Failure:", "Error:"].contains(&kind) {
            let name = pair[1].split_once(" [").map_or(pair[1].as_str(), |(name, _)| name);
            report.name_failing(name.trim_end_matches(':'));
        }
        if let Some((name, _)) =
            pair[0].split_once(" = ").filter(|(_, end)| end.ends_with(" s = ."))
            && name.contains('#')
        {
            report.name_passing(name);
        }
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a log. Asserts that the same log twice has twice as many tests of the same names.
    #[track_caller]
    fn read_both(log: &str) -> TestReport {
        let once = read(log).expect("a summary");
        let twice = read(&format!("{log}\n{log}")).expect("two summaries");
        let mut expected = once.clone();
        expected.total *= 2;
        expected.skipped *= 2;
        expected.doctests *= 2;
        assert_eq!(twice, expected, "{log}");
        once
    }

    /// Asserts that `log` has these numbers of tests in total and skipped, and these failing tests.
    /// `by` is the runner that printed the log.
    #[track_caller]
    fn assert_read(log: &str, (total, skipped): (u64, u64), failing: &[&str], by: &str) {
        let report = read_both(log);
        assert_eq!((report.total, report.skipped), (total, skipped), "{log}");
        assert_eq!(report.failing, failing, "{log}");
        assert_eq!(report.printed_by.as_deref(), Some(by), "{log}");
    }

    #[test]
    fn cargo_test_is_read() {
        let log = "   Compiling tiny v0.1.0 (/x)\n     Running unittests src/lib.rs (target/debug/deps/tiny-9a3b)\n\nrunning 3 tests\n\
            test inner::bad ... FAILED\ntest later ... ignored, slow\ntest fine ... ok\n\nfailures:\n\n---- inner::bad stdout ----\nthread panicked\n\n\n\
            failures:\n    inner::bad\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
            error: test failed, to rerun pass `--lib`\n   Doc-tests tiny\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_read(log, (3, 1), &["tiny::inner::bad"], "cargo test");
        assert_eq!(read_both(log).passing, ["tiny::fine"]);
    }

    #[test]
    fn lines_that_tests_print_like_the_harness_of_rust_name_no_tests() {
        let read_names = |printed: &str, passed: usize| {
            let log = format!(
                "     Running tests/c.rs (target/debug/deps/c-1)\n\nrunning {passed} tests\n{printed}\n\
                 test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 92.58s\n"
            );
            read_both(&log).passing
        };
        let cases: [(&str, &[&str]); 5] = [
            ("test ui/a.rs ... ok\ntest ui/b.rs ... ok\n\ntest pass ... ok", &["c::pass"]),
            (
                "test ui/a.rs ... test pass has been running for over 60 seconds\nok\ntest ui/b.rs ... ok\n\ntest pass ... ok",
                &["c::pass"],
            ),
            (
                "test ui/a.rs ... test pass ... ok\nok\ntest no - should panic ... ok",
                &["c::no - should panic", "c::pass"],
            ),
            // Other harnesses name tests by files.
            ("test ui/a.rs ... ok\ntest unit ... ok", &["c::ui/a.rs", "c::unit"]),
            ("test ui/a.rs ... ok\ntest ui/b.rs ... ok", &["c::ui/a.rs", "c::ui/b.rs"]),
        ];
        for (printed, names) in cases {
            assert_eq!(read_names(printed, names.len()), names, "{printed}");
        }
    }

    #[test]
    fn nextest_is_read() {
        let log = "    Starting 3 tests across 1 binary (1 test skipped)\n        PASS [   0.003s] (1/3) tiny fine\n        FAIL [   0.004s] (2/3) tiny inner::bad\n\
            \n     Summary [   0.005s] 3 tests run: 2 passed, 1 failed, 1 skipped\n        FAIL [   0.004s] (2/3) tiny inner::bad\nerror: test run failed\n";
        assert_read(log, (4, 1), &["tiny inner::bad"], "nextest");
    }

    #[test]
    fn pytest_is_read() {
        let log = "=== short test summary info ===\nFAILED tests/test_a.py::test_x[1 - a] - assert 1 == 2\nERROR tests/test_b.py::test_y\n\
            ====== 1 failed, 3 passed, 2 skipped, 1 warning, 1 error in 61.20s (0:01:01) ======\n";
        let failing = ["tests/test_a.py::test_x[1", "tests/test_b.py::test_y"];
        assert_read(log, (7, 2), &failing, "pytest");
        assert_read("...\n3 passed in 0.01s\n", (3, 0), &[], "pytest");
        assert_eq!(read("I took 3 apples in 5s\n== no tests ran in 0.01s ==\n"), None);
    }

    #[test]
    fn unittest_is_read() {
        let log = "F.s\n======================================================================\nFAIL: test_x (tests.test_a.A.test_x)\n----------\nTraceback\n\
            ======================================================================\nERROR: test_y (test_a.A)\n----------\n\nRan 4 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n";
        assert_read(log, (4, 1), &["test_a.A.test_y", "tests.test_a.A.test_x"], "unittest");
        assert_read("Ran 1 test in 0.000s\n\nOK\n", (1, 0), &[], "unittest");
    }

    #[test]
    fn go_test_is_read() {
        let log = "--- FAIL: TestAdd (0.00s)\n    --- FAIL: TestAdd/big (0.00s)\n        a_test.go:9: no\nFAIL\nFAIL\texample.com/a\t0.002s\nok  \texample.com/b\t0.001s\nFAIL\n";
        assert_read(log, (0, 0), &["example.com/a.TestAdd/big"], "go test");
        let log = "=== RUN   TestAdd\n--- PASS: TestAdd (0.00s)\n=== RUN   TestNo\n--- SKIP: TestNo (0.00s)\n=== RUN   TestBad\n--- FAIL: TestBad (0.00s)\nFAIL\nFAIL\tp\t0.1s\n";
        assert_read(log, (3, 1), &["p.TestBad"], "go test");
        assert_eq!(read_both(log).passing, ["p.TestAdd"]);
        assert_read("?   \tp\t[no test files]\n", (0, 0), &[], "go test");
        assert_eq!(read("?   \tp\t[no test files]\nok  \tq\t0.1s\n"), None);
        assert_read("ok  \tp\t0.002s [no tests to run]\n", (0, 0), &[], "go test");
        // A test prints text without a newline.
        let log = "=== RUN   TestA\nsome--- PASS: TestA (0.00s)\n=== RUN   TestB\nsome more--- FAIL: TestB (0.00s)\nFAIL\nFAIL\tp\t0.1s\n";
        assert_read(log, (2, 0), &["p.TestB"], "go test");
        let log = "{\"Time\":\"t\",\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n{\"Time\":\"t\",\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"TestA\",\"Output\":\"--- FAIL: TestA (0.00s)\\n\"}\n\
            {\"Time\":\"t\",\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"TestA\",\"Elapsed\":0}\n{\"Time\":\"t\",\"Action\":\"skip\",\"Package\":\"p\",\"Test\":\"TestB\",\"Elapsed\":0}\n{\"Time\":\"t\",\"Action\":\"fail\",\"Package\":\"p\",\"Elapsed\":0}\n";
        assert_read(log, (2, 1), &["p.TestA"], "go test");
        let log = "✖  p (2ms)\n\n=== Failed\n=== FAIL: p TestA (0.00s)\n--- FAIL: TestA (0.00s)\n\nDONE 5 tests, 1 skipped, 1 failure in 0.213s\n";
        assert_read(log, (5, 1), &["p.TestA"], "go test");
        assert_eq!(read("ok  \texample.com/b\t0.001s\n"), None);
    }

    #[test]
    fn meson_without_tests_ran_none() {
        assert_read("ninja: no work to do.\nNo tests defined.\n", (0, 0), &[], "meson");
    }

    #[test]
    fn tox_without_a_command_ran_no_test() {
        let end = "  py: OK (0.63 seconds)\n  congratulations :) (0.70 seconds)\n";
        assert_read(end, (0, 0), &[], "tox");
        assert_eq!(read(&format!("py: commands[0]> make check\n{end}")), None);
    }

    #[test]
    fn the_test_anything_protocol_is_read() {
        assert_read("TAP version 13\n1..0\n# tests 0\n# pass 0\n", (0, 0), &[], "TAP");

        let log = "TAP version 13\nok 1 - adds\nnot ok 2 - bad\n  ---\n  name: 'x'\n  ...\nok 3 - later # SKIP\nnot ok 4 - some day # TODO\n# Subtest: suite\n    ok 1 - in\n    not ok 2 - out\n    1..2\nnot ok 5 - suite\n1..5\n# tests 7\n";
        assert_read(log, (6, 2), &["bad", "suite > out"], "TAP");
        assert_eq!(read("1..2\nok 1\nnot ok 2\n").expect("TAP").failing, ["test 2"]);
        // Each test without a name is a test of its own. It can be skipped, too.
        let log = "1..1\nok 1\nok\n1..3\nok 1 # skip no x\nok 2 - fixes #5\nok 3 #SKIP\nok # skip\n\
            ok 4 fixes #6 # skip no docker\nnot ok 5 - x #7 # TODO\nnot ok 6 - lists #todos\n";
        let report = read(log).expect("TAP");
        assert_eq!((report.total, report.skipped), (9, 5));
        assert_eq!(report.passing, ["fixes #5", "test 1", "test 2"]);
        assert_eq!(report.failing, ["lists #todos"]);
        // `prove -v` ends a file with `ok`; a failing test may have neither number nor name.
        let log = "t/a.t ..\n1..2\nok 1 - a\nnot ok\nok\nFiles=1, Tests=2,  0 wallclock secs\nResult: FAIL\n";
        let report = read(log).expect("TAP");
        assert_eq!((report.total, report.failing), (2, vec!["test 1".to_owned()]));
        // A group has a test that is expected to fail, and a file takes too long.
        let log = "TAP version 14\n# Subtest: a.js\n    # Subtest: in\n        ok 1 - one\n        not ok 2 - two # TODO\n        1..2\n    ok 1 - in\n    1..1\nok 1 - a.js\n\
            # Subtest: b.js\n    ok 1 - three\nnot ok 2 - b.js # time=30245ms\n1..2\n";
        assert_read(log, (4, 1), &["b.js"], "TAP");
        assert_eq!(read("ok 1 - I think\nok\n"), None);
    }

    #[test]
    fn prove_is_read() {
        let log = "t/a.t .. skipped: no\nt/b.t .. ok\nAll tests successful.\nFiles=2, Tests=3,  0 wallclock secs\nResult: PASS\n";
        assert_read(log, (3, 0), &[], "prove");
        let log = "t/a.t .. skipped: no\nFiles=1, Tests=0,  0 wallclock secs\nResult: NOTESTS\n";
        assert_read(log, (0, 0), &[], "prove");
        let log = "t/a.t .. \nt/a.t (Wstat: 512 (exited 2) Tests: 4 Failed: 2)\n  Failed tests:  2, 4\nFiles=1, Tests=4,  0 wallclock secs\nResult: FAIL\n";
        assert_read(log, (4, 0), &["t/a.t test 2", "t/a.t test 4"], "prove");
        let log = "t/a.t (Wstat: 65280 (exited 255) Tests: 1 Failed: 0)\n  Non-zero exit status: 255\nt/b.t (Wstat: 0 Tests: 9 Failed: 4)\n  Failed tests:  1, 3-4\n                9\n  TODO passed:   2\nt/c.t (Wstat: 0 Tests: 1 Failed: 0)\n  TODO passed:   1\nFiles=3, Tests=11,  0 wallclock secs\nResult: FAIL\n";
        let failed = ["t/a.t", "t/b.t test 1", "t/b.t test 3", "t/b.t test 4", "t/b.t test 9"];
        assert_read(log, (12, 0), &failed, "prove");
        let log =
            "t/b.t ..\n1..1\nok 1 - a\nok\nFiles=1, Tests=1,  0 wallclock secs\nResult: PASS\n";
        assert_read(log, (1, 0), &[], "TAP");
        let log =
            "1..1\nok 1 - a\nt/b.t .. ok\nFiles=1, Tests=3,  0 wallclock secs\nResult: PASS\n";
        assert_read(log, (4, 0), &[], "TAP, prove");
    }

    #[test]
    fn runners_for_javascript_are_read() {
        let node = "✔ a (1ms)\n✖ b c (1.2ms)\nℹ tests 7\nℹ fail 1\nℹ skipped 1\n\n✖ failing tests:\n\ntest at a.test.js:2:23\n✖ b c (1.2ms)\n  Error\n";
        assert_read(node, (7, 1), &["b c"], "node");
        let node = "▶ s\n  ▶ t\n    ✔ a (1ms)\n  ✔ t (1ms)\n  ✔ b (1ms)\n✔ s (2ms)\n✔ /x/c.js (3ms)\nℹ tests 3\n";
        assert_eq!(read_both(node).passing, ["/x/c.js", "s > b", "s > t > a"]);
        let jest = "  ● suite › adds\n\n    expect\n\n  ● Console\n\nTests:       1 failed, 1 skipped, 4 passed, 6 total\nTime:        1 s\n";
        assert_read(jest, (6, 1), &["suite › adds"], "jest");
        let vitest = " FAIL  src/a.test.ts > suite > adds\nAssertionError\n\n Test Files  1 failed (1)\n      Tests  1 failed | 4 passed | 1 skipped (6)\n";
        assert_read(vitest, (6, 1), &["src/a.test.ts > suite > adds"], "vitest");
        let jest = "FAIL test/a.test.js (5.2 s)\n  ● Test suite failed to run\n\n    no\n\nFAIL b.test.js\n  ● adds\n\nSummary of all failing tests\nFAIL test/a.test.js\n  ● Test suite failed to run\n\nTests:       1 failed, 1 total\n";
        assert_read(jest, (2, 0), &["adds", "test/a.test.js"], "jest");
        let jest = "FAIL a.test.js\n  ● Test suite failed to run\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n";
        assert_read(jest, (1, 0), &["a.test.js"], "jest");
        let vitest = " FAIL  src/a.test.ts [ src/a.test.ts ]\nError: no\n\n Test Files  1 failed (1)\n      Tests  no tests\n";
        assert_read(vitest, (1, 0), &["src/a.test.ts"], "vitest");
        let mocha = "  suite\n    ✔ fine\n    1) adds\n\n\n  4 passing (5ms)\n  1 pending\n  2 failing\n\n  1) suite\n       adds:\n     AssertionError: no\n      at x\n\n  2) suite\n       deep\n         two:\n\n     Error\n";
        assert_read(mocha, (7, 1), &["suite > adds", "suite > deep > two"], "mocha");
    }

    #[test]
    fn rspec_is_read() {
        let log = "Finished in 0.01 seconds (files took 0.1 seconds to load)\n10 examples, 1 failure, 2 pending\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3 # Foo adds\n";
        assert_read(log, (10, 2), &["Foo adds"], "rspec");
    }

    #[test]
    fn minitest_is_read() {
        let log = "# Running:\n\nFS.E\n\n  1) Failure:\nA#test_bad [t.rb:4]:\nExpected: 1\n  Actual: 2\n\n  2) Error:\nA#test_err:\n\
            RuntimeError: x\n    t.rb:5\n\n4 runs, 2 assertions, 1 failures, 1 errors, 1 skips\n\nYou have skipped tests.\n";
        assert_read(log, (4, 1), &["A#test_bad", "A#test_err"], "minitest");
        let verbose = format!("A#test_good = 0.00 s = .\nA#test_skip = 0.00 s = S\n{log}");
        assert_eq!(read_both(&verbose).passing, ["A#test_good"]);
    }

    #[test]
    fn runners_for_php_and_elixir_are_read() {
        let log = "There was 1 error:\n\n1) VTest::testErr\nException: x\n\nERRORS!\nTests: 5, Assertions: 2, Errors: 1, Skipped: 1.\n";
        assert_read(log, (5, 1), &["VTest::testErr"], "PHPUnit");
        assert_read("OK (3 tests, 4 assertions)\n", (3, 0), &[], "PHPUnit");
        let log = "  1) test two (VTest)\n     v.exs:3\n\nFinished in 0.02 seconds\n1 doctest, 4 tests, 1 failure, 1 skipped\n";
        assert_read(log, (5, 1), &["test two (VTest)"], "ExUnit");
    }

    #[test]
    fn two_runners_in_one_log_are_added_and_colours_do_not_matter() {
        let log = "\x1b[1mRan 2 tests in 0.000s\x1b[0m\n\nOK (skipped=1)\nTests:       \x1b[32m3 passed\x1b[39m, 3 total\n";
        assert_read(log, (5, 1), &[], "unittest, jest");
        assert_eq!(read("all good\n"), None);
    }

    #[test]
    fn output_made_to_take_long_is_read_all_the_same() {
        let failing: String = (0..100_000).map(|n| format!("--- FAIL: {n}\n")).collect();
        assert_eq!(read(&failing).expect("failing tests").total, 0);
        // 300 nested groups: each contains all groups and tests before it.
        let test = format!("{}ok\n", " ".repeat(300));
        let group = |depth| format!("{}ok - {}\n", " ".repeat(depth), "x".repeat(3000));
        let groups: String = (0..300).rev().map(group).collect();
        let report = read(&format!("1..1\n{}{groups}", test.repeat(1_000))).expect("TAP");
        assert_eq!((report.total, report.failing.len()), (1_000, 0));
    }

    proptest! {
        #[test]
        fn no_output_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "test result: ", "99999999999999999999 passed", "18446744073709551615 failed; ", "\n", "failures:", "    a", "TAP version 13", "not ok", " - a # SKIP",
            "1..", "=====", "FAIL: a (", "Ran 1 test in 1s", "ℹ tests ", "✖ ", "Tests:  ", " 3 total", "Tests  (", ")", "  1 passing (", "  1) a", "rspec ", "2 examples, 1 failure",
            "Summary [", "] ", "(1/2) ", "{\"Action\":", "--- FAIL: ", "DONE ", " in 1s", "Running (", "\u{1b}[31m", "é", "\r", "\t",
        ]), 0..40)) {
            drop(read(&parts.concat()));
        }
    }
}
