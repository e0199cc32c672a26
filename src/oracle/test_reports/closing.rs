//! Reads the number of failed tests from the summary at the end of a test command's output.
//!
//! A test or a script may run another test runner whose tests fail on purpose, and print the
//! summary of that runner. So only the end of the whole output is read, which comes from the runner
//! that ended last. After its summary, only further lines of this runner may follow, and lines of
//! make and similar programs that started the runner.
use crate::model::plain;
use crate::oracle::test_reports::printed::{
    LONGEST_LINE, go, number, number_after, number_before, pytest_counts, tap_directive,
};

/// Reads the number of failed tests from the end of one runner's output. Returns `None` if the
/// output does not end with a summary of this runner.
type Reader = fn(&[String]) -> Option<u64>;

const RUNNERS: [Reader; 13] = [
    libtest, nextest, pytest, unittest, go_test, gotestsum, prove, tap, node, counts, jest, vitest,
    mocha,
];

/// The number of failed tests, according to the summary at the end of an output; 0 if there is no
/// summary.
pub fn failures(log: &str) -> u64 {
    let shown = |line: &str| match line.len() {
        0..=LONGEST_LINE => plain::line(line).trim_end().to_owned(),
        _ => "no summary is as long as this line".to_owned(),
    };
    let mut lines: Vec<String> = log.lines().map(shown).collect();
    while lines.last().is_some_and(|line| line.is_empty() || is_of_caller(line)) {
        lines.pop();
    }
    RUNNERS.iter().find_map(|reader| reader(&lines)).unwrap_or_default()
}

/// True for a line of a program that runs recipes or scripts, such as make. In the line, the
/// program reports that one of them has ended or failed.
fn is_of_caller(line: &str) -> bool {
    let is_of_make = line.starts_with("make")
        && [": Leaving directory", ": *** [", " not remade because of errors"]
            .iter()
            .any(|words| line.contains(words));
    let others = " ELIFECYCLE |npm error|npm ERR!|error Command failed with exit code|\
        info Visit https://yarnpkg.com/|error: Recipe `";
    is_of_make || others.split('|').any(|start| line.starts_with(start))
}

/// The index of the last line of a runner's summary. Lines after the summary are skipped: empty
/// ones, and those for which `is_behind` returns true.
fn before(lines: &[String], is_behind: impl Fn(&str) -> bool) -> Option<usize> {
    lines.iter().rposition(|line| !line.is_empty() && !is_behind(line))
}

fn begins(line: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| line.starts_with(start))
}

/// Rust's test harness, alone or started by cargo, which prints at the end which targets failed.
fn libtest(lines: &[String]) -> Option<u64> {
    let cargo =
        ["error: test failed, to rerun", "error: doctest failed, to rerun", "    `", "Caused by:"];
    let is_of_cargo = |line: &str| {
        begins(line, &cargo)
            || line.starts_with("error: ") && line.ends_with(" failed:")
            || line.starts_with("  process didn't exit successfully: ")
    };
    let last = before(lines, is_of_cargo)?;
    lines[last].strip_prefix("test result: ")?;
    let failed = |line: &String| {
        line.starts_with("test result: FAILED").then(|| number_before(line, &["failed"]))
    };
    let has_errors = lines[last + 1..].iter().any(|line| line.starts_with("error: "));
    match failed(&lines[last]) {
        None if !has_errors => Some(0),
        // The last target or an earlier one failed.
        _ => Some(lines.iter().filter_map(failed).sum::<u64>().max(1)),
    }
}

fn nextest(lines: &[String]) -> Option<u64> {
    // After its summary, nextest lists the failed tests again: `FAIL [ 0.004s] tiny inner::bad`.
    let is_behind = |line: &str| {
        line == "error: test run failed"
            || line.starts_with("warning: ") && line.contains("not run due to ")
            || line.starts_with(' ') && line.contains("s] ") && !line.contains(" Summary [")
    };
    let summary = lines[before(lines, is_behind)?].trim_start().strip_prefix("Summary [")?;
    Some(number_before(summary, &["failed", "timed"]))
}

fn pytest(lines: &[String]) -> Option<u64> {
    pytest_counts(lines.last()?).map(|counts| number_before(counts, &["failed", "error", "errors"]))
}

fn unittest(lines: &[String]) -> Option<u64> {
    let [.., ran, _, end] = lines else { return None };
    let counts = end.strip_prefix("FAILED (")?.strip_suffix(')')?;
    if !ran.starts_with("Ran ") || !ran.contains(" in ") {
        return None;
    }
    let of_failures = |part: &str| {
        let (kind, count) = part.split_once('=')?;
        let is_failure = ["failures", "errors", "unexpected successes"].contains(&kind);
        is_failure.then(|| number(count)).flatten()
    };
    Some(counts.split(", ").filter_map(of_failures).sum())
}

/// The output of `go test` ends with the line of the last package. If any of several packages
/// failed, a line `FAIL` follows.
fn go_test(lines: &[String]) -> Option<u64> {
    let is_package = |line: &String| begins(line, &["FAIL ", "ok ", "? "]);
    let failed = match lines {
        [.., last] if last.starts_with("FAIL ") && last.ends_with(['s', ']']) => true,
        [.., package, last] => last == "FAIL" && is_package(package),
        _ => false,
    };
    let names = || go(lines).map_or(0, |report| report.failing.len() as u64);
    failed.then(|| names().max(1))
}

/// gotestsum. `None` if it ran tests again, because its number then includes tests that passed in
/// the end.
fn gotestsum(lines: &[String]) -> Option<u64> {
    let done = lines.last()?.strip_prefix("DONE ").filter(|done| !done.contains(" runs,"))?;
    Some(number_before(done, &["failure", "failures", "error", "errors"]))
}

fn prove(lines: &[String]) -> Option<u64> {
    let is_failed = lines.last()? == "Result: FAIL";
    let files = lines.iter().filter(|line| line.contains("(Wstat: "));
    is_failed.then(|| files.map(|line| number_after(line, "Failed: ")).sum::<u64>().max(1))
}

/// The Test Anything Protocol, if its plan matches the number of tests.
fn tap(lines: &[String]) -> Option<u64> {
    let is_test = |line: &&String| {
        let rest = line.strip_prefix("not ").unwrap_or(line).strip_prefix("ok");
        let name = rest.map(|rest| rest.trim_start_matches(' '));
        name.is_some_and(|name| {
            name.is_empty() || name.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        })
    };
    let last = lines.last()?;
    if !is_test(&last) && !begins(last, &["1..", "# "]) {
        return None;
    }
    let plan = |line: &String| line.strip_prefix("1..").and_then(number);
    let mut plans = lines.iter().filter_map(plan);
    let planned = plans.next().filter(|_| plans.next().is_none())?;
    let tests: Vec<&String> = lines.iter().filter(is_test).collect();
    let failed = |line: &&&String| line.starts_with("not ok") && tap_directive(line).1.is_none();
    (tests.len() as u64 == planned).then(|| tests.iter().filter(failed).count() as u64)
}

/// The longer form of the output of `node --test`, which lists the failed tests after the counts.
fn node(lines: &[String]) -> Option<u64> {
    let at = before(lines, |line| begins(line, &["✖ ", "test at ", "  "]))?;
    lines[at].strip_prefix("ℹ ")?;
    let counts = lines[..=at].iter().rev().map_while(|line| line.strip_prefix("ℹ "));
    counts.filter_map(|line| number(line.strip_prefix("fail ")?)).next()
}

fn jest(lines: &[String]) -> Option<u64> {
    let behind = ["Snapshots: ", "Time: ", "Ran all test suites"];
    let at = before(lines, |line| begins(line, &behind))?;
    let tests = lines[at].strip_prefix("Tests: ")?;
    let files = at.checked_sub(1).and_then(|at| lines[at].strip_prefix("Test Suites: "));
    let failed = |text: &str| number_before(text, &["failed"]);
    Some(match failed(tests) {
        0 => files.map_or(0, failed),
        failed => failed,
    })
}

fn vitest(lines: &[String]) -> Option<u64> {
    let behind = ["Start at ", "Duration ", "Errors ", "Type Errors "];
    let at = before(lines, |line| begins(line.trim_start(), &behind))?;
    let tests = lines[at].trim_start().strip_prefix("Tests ")?;
    let files = lines[at.checked_sub(1)?].trim_start().strip_prefix("Test Files ")?;
    let failed = |text: &str| number_before(text, &["failed"]);
    Some(if failed(tests) > 0 { failed(tests) } else { failed(files) })
}

/// mocha prints the number of failed tests, and then each failed test, indented.
fn mocha(lines: &[String]) -> Option<u64> {
    let failing = |line: &String| number(line.strip_prefix("  ")?.strip_suffix(" failing")?);
    let at = lines.iter().rposition(|line| failing(line).is_some())?;
    let is_mocha = |line: &String| {
        line.starts_with("  ") && (line.contains(" passing (") || line.ends_with(" pending"))
    };
    let is_below = |line: &String| line.is_empty() || line.starts_with("  ");
    let is_whole = is_mocha(&lines[at.checked_sub(1)?]) && lines[at + 1..].iter().all(is_below);
    is_whole.then(|| failing(&lines[at])).flatten()
}

/// A line that consists only of counts. Most other runners print one at the end:
/// `10 examples, 1 failure`, `Tests: 5, Failures: 1.`, `6 failures; 0 errors.` or
/// `5 Tests 2 Failures 0 Ignored`.
fn counts(lines: &[String]) -> Option<u64> {
    let behind = ["Failed examples:", "rspec ", "Randomized with seed "];
    let at = before(lines, |line| begins(line, &behind) || line == "FAIL")?;
    let line = lines[at].trim_end_matches(['.', ' ']);
    // Check prints the passed tests in per cent before its counts.
    let line = line.split_once("%: ").map_or(line, |(_, counts)| counts);
    let mut ends = Vec::new();
    for part in line.split([',', ';', '|']).map(str::trim) {
        if let Some((name, count)) = part.rsplit_once(": ") {
            ends.push((name.rsplit(' ').next()?.to_lowercase(), number(count)?));
            continue;
        }
        let mut words = part.split_whitespace().peekable();
        while let Some(count) = words.next() {
            ends.push((words.next()?.to_lowercase(), number(count)?));
            while words.next_if(|word| number(word).is_none()).is_some() {}
        }
    }
    let of_tests = ["test", "tests", "runs", "checks", "assertions"];
    let of_failures = ["failed", "failing", "failure", "failures"];
    let of_errors = ["error", "errors", "invalid"];
    let count = |names: &[&str]| {
        let named = ends.iter().filter(|(name, _)| names.contains(&name.as_str()));
        named.map(|(_, count)| *count).reduce(|sum, count| sum + count)
    };
    // A linter's last line has only errors and warnings, which are no tests.
    let is_of_tests = count(&of_tests).or(count(&of_failures)).is_some();
    let failed = [count(&of_failures), count(&of_errors)].into_iter().flatten().sum();
    (is_of_tests && ends.len() > 1).then_some(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_at_the_end_tells_how_many_tests_failed() {
        let ends = [
            (
                2,
                "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n\nerror: test failed, to rerun pass `--lib`\n",
            ),
            (
                1,
                "test result: FAILED. 1 passed; 1 failed; 0 ignored\n\n   Doc-tests x\n\ntest result: ok. 0 passed; 0 failed\n\nerror: 1 target failed:\n    `--lib`\n",
            ),
            (
                0,
                "test result: FAILED. 0 passed; 1 failed; 0 ignored\n\ntest result: ok. 3 passed; 0 failed; 0 ignored\n",
            ),
            (
                1,
                "     Summary [   0.005s] 3 tests run: 2 passed, 1 failed, 1 skipped\n        FAIL [   0.004s] (2/3) tiny inner::bad\nerror: test run failed\n",
            ),
            (
                1,
                "     Summary [   0.005s] 1/3 tests run: 0 passed, 1 failed, 0 skipped\n        FAIL [   0.004s] (1/3) tiny bad\nwarning: 2/3 tests were not run due to test failure (run with --no-fail-fast to run all tests, or run with --max-fail)\nerror: test run failed\n",
            ),
            (
                0,
                "     Summary [   0.005s] 3 tests run: 3 passed (1 flaky), 0 skipped\n   FLAKY 2/3 [   0.004s] tiny a\n",
            ),
            (2, "FAILED t.py::a - x\n=== 1 failed, 3 passed, 1 xfailed, 1 error in 0.20s ===\n"),
            (0, "=== 3 passed, 1 xfailed, 2 rerun in 0.20s ===\n"),
            (
                3,
                "Ran 4 tests in 0.001s\n\nFAILED (failures=1, errors=1, expected failures=7, unexpected successes=1)\n",
            ),
            (0, "Ran 4 tests in 0.001s\n\nOK (expected failures=1)\n"),
            (
                2,
                "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\tx/a\t0.002s\nok  \tx/b\t0.001s\nFAIL\n",
            ),
            (1, "# x/a\na.go:1: no\nFAIL\tx/a [build failed]\nFAIL\n"),
            (1, "--- FAIL: TestA (0.00s)\nFAIL\nexit status 1\nFAIL\tx/a\t0.002s\n"),
            (1, "DONE 5 tests, 1 skipped, 1 failure in 0.213s\n"),
            (0, "DONE 2 runs, 6 tests, 1 failure in 0.213s\n"),
            (
                2,
                "t/a.t (Wstat: 512 (exited 2) Tests: 4 Failed: 2)\n  Failed tests:  2, 4\nFiles=1, Tests=4,  0 wallclock secs\nResult: FAIL\n",
            ),
            (
                1,
                "TAP version 13\nok 1 - a\nnot ok 2 - b\nnot ok 3 - c # TODO some day\n    not ok 1 - inner\nok 4 - d\n1..4\n# fail 1\n",
            ),
            (0, "not ok 1 - b\n1..2\n"),
            (
                1,
                "ℹ tests 7\nℹ fail 1\nℹ duration_ms 5\n\n✖ failing tests:\n\ntest at a.test.js:2:23\n✖ b c (1.2ms)\n  Error\n",
            ),
            (
                1,
                "Test Suites: 1 failed, 1 total\nTests:       1 failed, 4 passed, 5 total\nSnapshots:   0 total\nTime:        1 s\nRan all test suites.\n",
            ),
            (1, "Test Suites: 1 failed, 1 total\nTests:       0 total\nTime:        1 s\n"),
            (
                1,
                " Test Files  1 failed (1)\n      Tests  1 failed | 4 passed (5)\n   Start at  10:00\n   Duration  1s\n",
            ),
            (1, " Test Files  1 failed (1)\n      Tests  no tests\n   Duration  1s\n"),
            (2, "  4 passing (5ms)\n  2 failing\n\n  1) suite\n       adds:\n     Error\n"),
            (
                1,
                "10 examples, 1 failure, 2 pending\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3 # Foo adds\n\nRandomized with seed 7\n",
            ),
            (
                2,
                "There was 1 error:\n\n1) VTest::testErr\nException: x\n\nERRORS!\nTests: 5, Assertions: 2, Errors: 1, Failures: 1, Skipped: 1.\n",
            ),
            (
                1,
                "Finished in 0.02 seconds (0.00s async, 0.02s sync)\n1 doctest, 4 tests, 1 failure, 1 skipped\n\nRandomized with seed 280810\n",
            ),
            (2, "1 example, 1 failure, 1 error occurred outside of examples\n"),
            (1, "Tests: 2, Assertions: 2, Failures: 1, PHPUnit Deprecations: 1.\n"),
            (1, "Tests: 5, Assertions: 2, Errors: 1.\n"),
            (3, "5 runs, 10 assertions, 1 failures, 2 errors, 0 skips\n"),
            (6, "6 failures; 0 errors.\n"),
            (2, "-----------------------\n5 Tests 2 Failures 0 Ignored \nFAIL\n"),
            (1, "66%: Checks: 3, Failures: 1, Errors: 0\n"),
            (1, "test cases: 2 | 1 passed | 1 failed\nassertions: 4 | 3 passed | 1 failed\n"),
            (0, "12 tests, 0 failures\n"),
        ];
        for (failed, log) in ends {
            assert_eq!(failures(log), failed, "{log}");
            let in_make = format!(
                "make[1]: Entering directory '/x'\n{log}\nmake[1]: Leaving directory '/x'\n"
            );
            assert_eq!(failures(&in_make), failed, "{in_make}");
            let failed_in_make = format!("{log}\nmake: *** [Makefile:2: test] Error 1\n");
            assert_eq!(failures(&failed_in_make), failed, "{failed_in_make}");
            // Lines that a test or a script may print after a runner whose failures it expected.
            for outer in [
                "as expected",
                "== 1 passed in 0.10s ==",
                "ok  \tx/b\t0.001s",
                "test result: ok. 1 passed; 0 failed",
            ] {
                assert_eq!(failures(&format!("{log}{outer}\n")), 0, "{log}{outer}");
            }
        }
    }

    #[test]
    fn lines_that_only_look_like_the_end_of_a_summary_tell_nothing() {
        let logs = [
            "",
            "FAIL\n",
            "test 1\nFAIL\n",
            "FAILED (failures=1)\n",
            "I failed 3 times in 5 s\n",
            "  2 failing\n",
            "not ok\n",
            "1 failed in the end\n",
            "error: test failed, to rerun pass `--lib`\n",
            "DONE 1 failure\nbye\n",
            "FAIL: 2\n",
            "2 errors, 3 warnings\n",
            "3 failures\n",
            "1 failed, see above\n",
            "Done: a, 2 failures\n",
        ];
        for log in logs {
            assert_eq!(failures(log), 0, "{log}");
        }
        let long = format!("=== 1 failed in 0.2s ===\n{}\n", "x".repeat(LONGEST_LINE + 1));
        assert_eq!(failures(&long), 0);
    }
}
