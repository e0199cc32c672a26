//! Lines of a command's output that look like an error: the first such line usually says why the
//! command failed, and tools write many lines after it.

/// In any programming language, the title before a message ends in one of these words: `error: x`,
/// `TypeError: x`, `error[E0308]: x`, `error TS2304: x`.
const TITLES: [&str; 7] = ["error", "Error", "ERROR", "Exception", "fatal", "FATAL", "panic"];

/// The beginnings of lines that name a test that failed, or its error: of pytest, Go, TAP, jest,
/// unittest and Perl.
const FAILED_TEST: [&str; 8] =
    ["FAILED ", "ERROR ", "E   ", "--- FAIL: ", "not ok ", "FAIL: ", "FAIL ", "Can't locate "];

/// A line with one of these texts says that something is missing. The texts are in lower case.
const MISSING: [&str; 16] = [
    "can't locate",
    "can't open",
    "cannot find",
    "cannot load such",
    "cannot open",
    "could not find",
    "could not open",
    "couldn't find",
    "does not exist",
    "failed to resolve",
    "is missing",
    "no module named",
    "no such",
    "not found",
    "not installed",
    "unresolved import",
];

/// The ends of lines that name a test that failed: of Rust and unittest.
const TEST_THAT_FAILED: [&str; 3] = [" ... FAILED", " ... FAIL", " ... ERROR"];

/// make, npm, pnpm, cargo, just and bun print lines that only say: a command that the tool started
/// has failed. These are the beginnings of such lines.
const ABOUT_OTHERS: [&str; 13] = [
    "make: ***",
    "make: Target",
    "make[",
    "gmake: ***",
    "gmake: Target",
    "gmake[",
    "npm ",
    "ELIFECYCLE",
    "error: could not compile",
    "error: test failed",
    "error: recipe",
    "error: Recipe",
    "error: script",
];

/// True if a line, without colours, looks like an error, and not like a summary of errors. A wrong
/// answer only costs the reader one line.
pub fn looks_like_error(line: &str) -> bool {
    let line = line.trim();
    let begins = |words: &[&str]| words.iter().any(|begin| line.starts_with(begin));
    !is_about_others(line)
        && (begins(&FAILED_TEST)
            || TEST_THAT_FAILED.iter().any(|end| line.ends_with(end))
            || (line.starts_with("thread '") && line.contains(" panicked at "))
            || TITLES.iter().any(|word| has_title(line, word)))
}

/// True if a line, without colours, only says that something else has failed.
pub fn is_about_others(line: &str) -> bool {
    ABOUT_OTHERS.iter().any(|begin| line.trim_start().starts_with(begin))
}

/// True if a line says that a module, a program or a file is missing. Assertions do not count: they
/// are about something that a test looked for.
pub fn tells_of_lack(line: &str) -> bool {
    let line = line.to_lowercase();
    !line.contains("assert") && MISSING.iter().any(|words| line.contains(words))
}

/// True if a line has this word as the title of a message, perhaps with the code of an error:
/// `error[E0308]: x`, `TypeError [ERR_INVALID_ARG_TYPE]: x`.
fn has_title(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        after.starts_with(": ")
            || after == ":"
            || after.strip_prefix(" [").is_some_and(has_name_of_node)
            || after.strip_prefix([' ', '[']).is_some_and(has_code)
    })
}

/// True if a text begins with the name that Node.js gives to an error, and the end of the title:
/// `ERR_ASSERTION]: x`.
fn has_name_of_node(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_uppercase() || c == '_');
    rest.len() < text.len() && rest.starts_with("]:")
}

/// True if a text begins with a code such as `E0308` or `TS2304`, followed by a colon. Reads no
/// further than the code, because a long line may have the title's word many times.
fn has_code(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let code = &text[..text.len() - rest.len()];
    code.starts_with(|c: char| c.is_ascii_uppercase())
        && code.ends_with(|c: char| c.is_ascii_digit())
        && rest.trim_start_matches(']').starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_about_something_missing_is_told_from_one_of_a_test_that_failed() {
        for (line, expected) in [
            ("/bin/python3: No module named suite", true),
            ("E   ModuleNotFoundError: No module named 'suite'", true),
            ("sh: 1: suite: not found", true),
            ("Can't locate Suite.pm in @INC (you may need to install the Suite module)", true),
            ("in 'require': cannot load such file -- suite (LoadError)", true),
            ("Error: Cannot find module 'suite'", true),
            ("x.c:1:10: fatal error: suite.h: No such file or directory", true),
            ("tool: could not open 'suite'", true),
            ("AssertionError: 'a' not found in 'b'", false),
            ("E   NameError: name 'twice' is not defined", false),
            ("--- FAIL: TestGreets (0.00s)", false),
        ] {
            assert_eq!(tells_of_lack(line), expected, "{line}");
        }
    }

    #[test]
    fn errors_of_many_tools_are_recognised_and_their_summaries_are_not() {
        for error in [
            "src/x.c:3:5: error: 'y' undeclared (first use in this function)",
            "src/x.c:1:10: fatal error: y.h: No such file or directory",
            "error[E0308]: mismatched types",
            "src/a.ts(1,5): error TS2304: Cannot find name 'x'.",
            "TypeError: undefined is not a function",
            "    AssertionError: 1 == 2",
            "AssertionError [ERR_ASSERTION]: 1 == 2",
            "Caused by: java.lang.IllegalStateException: no",
            "panic: runtime error: index out of range",
            "Can't locate Suite.pm in @INC (you may need to install the Suite module)",
            "thread 'tests::adds' panicked at src/lib.rs:9:9:",
            "test adds ... FAILED",
            "test_adds (test_x.Adding.test_adds) ... FAIL",
            "--- FAIL: TestAdd (0.00s)",
            "not ok 3 - adds",
            "FAIL src/x.test.js",
            "FAILED tests/test_x.py::test_adds - assert 1 == 2",
            "E   ModuleNotFoundError",
            "fatal: not a git repository",
        ] {
            assert!(looks_like_error(error), "{error}");
        }
        for other in [
            "make: *** [Makefile:3: test] Error 1",
            "make[1]: *** [all] Error: 2",
            " ELIFECYCLE  Test failed. See above for more details.",
            "npm ERR! Test failed.  See above for more details.",
            "npm error Lifecycle script `test` failed with error:",
            "error: could not compile `x` (lib) due to 1 previous error",
            "error: test failed, to rerun pass `--lib`",
            "error: Recipe `test` failed on line 2 with exit code 1",
            "0 errors, 2 warnings",
            "an error [of the kind]: no",
            "an error of the kind that is expected",
            "std::error::Error",
            "DeprecationWarning: use x",
            "   Compiling thiserror v2.0.0",
            "test error_is_shown ... ok",
            "FAIL",
            "",
        ] {
            assert!(!looks_like_error(other), "{other}");
        }
        // If each title were compared with the rest of the line, this would read many GB.
        assert!(!looks_like_error(&"error ".repeat(100_000)));
    }
}
