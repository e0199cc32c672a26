//! Chatter: lines at the end of a tool's output that are about the tool itself, or about tests that
//! did not fail. Such lines do not say why a command failed.

/// The beginnings of chatter lines, without colours.
const BEGINNINGS: [&str; 20] = [
    "npm notice",
    "npm warn",
    "npm WARN",
    // pip
    "[notice]",
    // yarn 1
    "info Visit https://yarnpkg.com",
    "npm error A complete log of this run can be found in",
    // `go test -v`
    "=== RUN ",
    "=== PAUSE ",
    "=== CONT ",
    "=== NAME ",
    "--- PASS: ",
    "--- SKIP: ",
    // TAP of `node --test`
    "# cancelled ",
    "# duration_ms ",
    "# skipped ",
    "# todo ",
    "duration_ms: ",
    "failureType: ",
    "location: '",
    "type: '",
];

/// The lines of TAP around the details of a test, without their indentation.
const AROUND_DETAILS: [&str; 3] = ["---", "...", "error: |-"];

/// The last `count` lines that are not chatter. If all lines are chatter, simply the last `count`
/// lines.
pub fn last_telling(lines: Vec<String>, count: usize) -> Vec<String> {
    let mut telling = telling(lines);
    telling.split_off(telling.len().saturating_sub(count))
}

/// The first `count` lines that are not chatter. If all lines are chatter, simply the first `count`
/// lines.
pub fn first_telling(lines: Vec<String>, count: usize) -> Vec<String> {
    let mut telling = telling(lines);
    telling.truncate(count);
    telling
}

fn telling(lines: Vec<String>) -> Vec<String> {
    let (chatter, telling): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| is_chatter(line.trim_start()));
    if telling.is_empty() { chatter } else { telling }
}

fn is_chatter(line: &str) -> bool {
    AROUND_DETAILS.contains(&line) || BEGINNINGS.iter().any(|begin| line.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tools_about_themselves_make_room_for_others() {
        let last =
            |text: &str, count| last_telling(text.lines().map(str::to_owned).collect(), count);
        // npm 11.5.1 below a test that fails.
        let npm = "1 failing\nAssertionError: 1 == 2\nnpm error Lifecycle script `test` failed with error:\n\
            npm error code 1\nnpm notice\nnpm notice New minor version of npm available! 11.5.1 -> 11.6.0\n\
            npm notice To update run: npm install -g npm@11.6.0\nnpm notice";
        assert_eq!(
            last(npm, 2),
            ["npm error Lifecycle script `test` failed with error:", "npm error code 1"]
        );
        assert_eq!(last(npm, 3)[0], "AssertionError: 1 == 2");
        // `go test -v`, where a test that fails comes before other tests.
        let go = "=== RUN   TestBad\n    a_test.go:3: no\n--- FAIL: TestBad (0.00s)\n=== RUN   TestFine\n\
            === PAUSE TestFine\n=== CONT  TestFine\n=== NAME  TestFine\n    --- PASS: TestFine/a (0.00s)\n\
            --- SKIP: TestNo (0.00s)\nFAIL\nFAIL p 0.1s\nFAIL";
        assert_eq!(last(go, 5)[..2], ["    a_test.go:3: no", "--- FAIL: TestBad (0.00s)"]);
        assert_eq!(last("npm notice\nnpm warn x", 1), ["npm warn x"], "nothing else was said");
        assert_eq!(last("noticed\nin npm notice", 5).len(), 2);
        assert!(last("", 3).is_empty());
    }

    #[test]
    fn details_of_a_test_in_tap_are_its_error() {
        // `node --test` of Node 20.
        let node = "not ok 1 - adds\n  ---\n  duration_ms: 1.6\n  type: 'test'\n  location: '/x/a.test.js:2:3'\n  \
            failureType: 'testCodeFailure'\n  error: |-\n    Expected values to be strictly equal:\n    -1 !== 3\n  \
            code: 'ERR_ASSERTION'\n  ...\n# pass 2\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 291";
        let lines = || node.lines().map(str::to_owned).collect();
        assert_eq!(
            first_telling(lines(), 3),
            ["not ok 1 - adds", "    Expected values to be strictly equal:", "    -1 !== 3"]
        );
        assert_eq!(last_telling(lines(), 1), ["# fail 1"]);
    }
}
