//! Flags for changes by which an attempt affects what judges it, from the paths that it changes and
//! their text.
//!
//! A flag is no proof: an honest attempt may have to change a test. But a reviewer should know.
use std::collections::BTreeSet;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::{Ecosystem, file_name};
use crate::model::flag::Flag;

/// A path that an attempt changes, with its content on both sides.
#[derive(Clone, Copy, Debug)]
pub struct TouchedPath<'a> {
    /// The path from the root.
    pub path: &'a str,
    /// The content before; none if there was no file.
    pub before: Option<&'a [u8]>,
    /// The content now; none if there is no file any more.
    pub after: Option<&'a [u8]>,
    /// True if the change removes a line, or bytes of a binary file.
    pub loses: bool,
}

/// The flags for one changed path. `scripts` are the files that the oracle's commands run.
pub fn flags(touched: TouchedPath<'_>, scripts: &BTreeSet<String>) -> Vec<Flag> {
    flags_among(ALL, touched, scripts)
}

/// True if a path belongs to a test or to a test's data, as far as its name shows.
pub fn is_test_path(path: &str) -> bool {
    is_test_path_among(ALL, path)
}

/// True if a symlink's target lies outside the checkout, so that its content is no part of the
/// tree.
pub fn leads_outside(path: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut depth = path.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn flags_among(
    ecosystems: &[&Ecosystem],
    touched: TouchedPath<'_>,
    scripts: &BTreeSet<String>,
) -> Vec<Flag> {
    let path = touched.path;
    let is_test = is_test_path_among(ecosystems, path);
    let before = touched.before.map(String::from_utf8_lossy);
    let after = touched.after.map(String::from_utf8_lossy);
    let (before, after) = (before.as_deref(), after.as_deref());
    let source = ecosystems.iter().copied().find(|ecosystem| ecosystem.has_source(path));
    let mut found = Vec::new();
    if scripts.contains(path) || defines_oracle(ecosystems, path, before, after) {
        found.push(Flag::OracleChanged { path: path.to_owned() });
    }
    let has_fewer_tests = source.is_some_and(|source| {
        count_marks(source, after, source.test_marks)
            < count_marks(source, before, source.test_marks)
    });
    let edits_test_file = is_test && before.is_some() && touched.loses;
    if (is_test && before.is_some() && after.is_none()) || has_fewer_tests {
        found.push(Flag::TestsDeleted { path: path.to_owned() });
    } else if edits_test_file || source.is_some_and(|s| edits_inner_tests(s, before, after)) {
        found.push(Flag::TestsEdited { path: path.to_owned() });
    }
    if let Some(marker) = source.and_then(|source| new_skip_mark(source, before, after)) {
        found.push(Flag::TestsSkipped { path: path.to_owned(), marker: marker.to_owned() });
    }
    found
}

fn is_test_path_among(ecosystems: &[&Ecosystem], path: &str) -> bool {
    const COMMON_DIRECTORIES: [&str; 6] = ["test", "tests", "testing", "spec", "specs", "e2e"];
    path.split('/').any(|part| COMMON_DIRECTORIES.contains(&part))
        || ecosystems.iter().any(|ecosystem| ecosystem.is_test_path(path))
}

/// True if a change to a path changes which commands run, or how. Of a manifest only the decisive
/// part counts.
fn defines_oracle(
    ecosystems: &[&Ecosystem],
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> bool {
    if ecosystems.iter().any(|ecosystem| ecosystem.is_decisive(path)) {
        return true;
    }
    let name = file_name(path);
    let Some(part) = ecosystems.iter().find_map(|ecosystem| (ecosystem.decisive_part)(name)) else {
        return false;
    };
    // A new manifest belongs to a new package, which had no commands that could change.
    let Some(before) = before else { return false };
    let Some(after) = after else { return true };
    match (part(before), part(after)) {
        (Some(before), Some(after)) => before != after,
        // A manifest that cannot be parsed is compared as a whole.
        _ => before != after,
    }
}

/// True if a source file loses lines of the tests that it holds beside the code.
fn edits_inner_tests(source: &Ecosystem, before: Option<&str>, after: Option<&str>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let kept = (source.inner_tests)(after);
    (source.inner_tests)(before).iter().any(|line| !kept.contains(line))
}

/// The first skip mark that a file has more often than before.
fn new_skip_mark(
    source: &Ecosystem,
    before: Option<&str>,
    after: Option<&str>,
) -> Option<&'static str> {
    source
        .skip_marks
        .iter()
        .copied()
        .find(|mark| count_marks(source, after, &[mark]) > count_marks(source, before, &[mark]))
}

/// The number of lines that hold one of these marks. A comment line counts only for marks that
/// are comments themselves.
fn count_marks(source: &Ecosystem, text: Option<&str>, marks: &[&str]) -> usize {
    let has_mark = |line: &&str| {
        let is_comment = line.trim_start().starts_with(source.comment);
        marks
            .iter()
            .any(|mark| (!is_comment || mark.starts_with(source.comment)) && holds_mark(line, mark))
    };
    text.unwrap_or_default().lines().filter(has_mark).count()
}

/// True if a line holds a mark that is not the end of a longer word, as in `submit(`, nor a
/// method of another object, as in `pattern.test(`.
fn holds_mark(line: &str, mark: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let continues = |c: char| is_word(c) || c == '$' || (c == '.' && mark.ends_with('('));
    line.match_indices(mark)
        .any(|(at, _)| !mark.starts_with(is_word) || !line[..at].ends_with(continues))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of the flags for a change, with `ci/check.sh` as the oracle's script.
    fn labels(path: &str, before: Option<&str>, after: Option<&str>) -> Vec<&'static str> {
        labels_among(ALL, path, before, after)
    }

    fn labels_among(
        ecosystems: &[&Ecosystem],
        path: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Vec<&'static str> {
        let loses = match (before, after) {
            (Some(before), Some(after)) => before.lines().any(|l| !after.lines().any(|a| a == l)),
            _ => after.is_none(),
        };
        let touched = TouchedPath {
            path,
            before: before.map(str::as_bytes),
            after: after.map(str::as_bytes),
            loses,
        };
        let scripts = BTreeSet::from(["ci/check.sh".to_owned()]);
        flags_among(ecosystems, touched, &scripts).iter().map(Flag::label).collect()
    }

    #[test]
    fn a_decisive_file_is_flagged_and_the_rest_of_a_manifest_is_not() {
        let changed: &[&str] = &["oracle changed"];
        let cases: [(&str, &str, &str, &[&str]); 16] = [
            ("Makefile", "a", "b", changed),
            ("sub/Makefile", "a", "b", changed),
            (".github/workflows/ci.yml", "a", "b", changed),
            ("web/jest.config.ts", "a", "b", changed),
            ("ci/check.sh", "a", "b", changed),
            ("ci/other.sh", "a", "b", &[]),
            (
                "package.json",
                r#"{"scripts": {"test": "jest"}}"#,
                r#"{"scripts": {"test": "true"}}"#,
                changed,
            ),
            (
                "package.json",
                r#"{"scripts": {"test": "jest"}}"#,
                r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}"#,
                &[],
            ),
            ("package.json", "{}", "{", changed),
            (
                "Cargo.toml",
                "[package]\nname = 'a'",
                "[package]\nname = 'a'\n[lib]\ntest = false",
                changed,
            ),
            (
                "Cargo.toml",
                "[package]\nname = 'a'",
                "[package]\nname = 'a'\n[dependencies]\nb = '1'",
                &[],
            ),
            ("Cargo.toml", "[[bin]]\nname = 'a'", "[[bin]]\nname = 'a'\ntest = false", changed),
            ("pyproject.toml", "[project]", "[project]\ndependencies = ['a']", &[]),
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]",
                "[tool.pytest.ini_options]\naddopts = '-k no'",
                changed,
            ),
            (
                "CMakeLists.txt",
                "add_library(a a.c)\nadd_test(a a)",
                "add_library(a a.c b.c)",
                changed,
            ),
            (
                "pom.xml",
                "<a/><dependencies>x</dependencies>",
                "<a/><dependencies>y</dependencies>",
                &[],
            ),
        ];
        for (path, before, after, expected) in cases {
            assert_eq!(labels(path, Some(before), Some(after)), expected, "{path}: {after}");
        }
        for new in [
            "conftest.py",
            "pytest.py",
            "unittest/__init__.py",
            ".gitattributes",
            "crates/a/build.rs",
            "web/tsconfig.json",
            "vite.config.ts",
        ] {
            assert_eq!(labels(new, None, Some("")), changed, "{new}");
        }
        assert_eq!(labels("src/unittest/a.py", None, Some("")), [""; 0]);
        assert_eq!(labels("crates/new/Cargo.toml", None, Some("[package]")), [""; 0]);
    }

    const INNER: &str = "fn a() {}\n#[cfg(test)]\nmod tests {\n    is(2);\n}\n";

    #[test]
    fn a_link_to_a_target_outside_the_checkout_leads_outside() {
        let cases = [
            ("a", "/etc/passwd", true),
            ("a", "b", false),
            ("a", "../b", true),
            ("d/a", "../b", false),
            ("d/a", "./../../b", true),
            ("d/a", "x/../../../b", true),
            ("d/a", "x/../../b", false),
        ];
        for (path, target, outside) in cases {
            assert_eq!(leads_outside(path, target), outside, "{path} -> {target}");
        }
    }

    #[test]
    fn deleted_edited_and_skipped_tests_are_flagged_and_new_ones_are_not() {
        let rust = "fn a() {}\n#[test]\nfn t() {}\n";
        /// The path, its text before and after, the labels.
        type Case<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
        let cases: [Case<'_>; 23] = [
            ("tests/a.rs", Some("a\n"), None, &["tests deleted"]),
            ("tests/a.rs", None, Some("a\n"), &[]),
            ("tests/a.rs", Some("a\n"), Some("a\nb\n"), &[]),
            ("tests/a.rs", Some("a\n"), Some("b\n"), &["tests edited"]),
            ("tests/data.txt", Some("a\n"), Some("b\n"), &["tests edited"]),
            ("src/a.rs", Some(rust), Some("fn a() {}\n"), &["tests deleted"]),
            (
                "src/a.rs",
                Some(rust),
                Some("fn a() {}\n// #[test]\nfn t() {}\n"),
                &["tests deleted"],
            ),
            (
                "src/a.rs",
                Some(rust),
                Some("fn a() {}\n#[test]\n#[ignore]\nfn t() {}\n"),
                &["tests skipped"],
            ),
            ("src/a.rs", Some(rust), Some("fn b() {}\n#[test]\nfn t() {}\n"), &[]),
            ("src/a.rs", Some("a"), Some("x.iter().skip(1)"), &[]),
            (
                "test_a.py",
                Some("def test_a(): pass"),
                Some("@pytest.mark.skip\ndef test_a(): pass"),
                &["tests skipped"],
            ),
            (
                "test_a.py",
                Some("def test_a(): pass\ndef test_b(): pass"),
                Some("def test_b(): pass"),
                &["tests deleted"],
            ),
            (
                "a.test.ts",
                Some("it('a')"),
                Some("it.skip('a')"),
                &["tests deleted", "tests skipped"],
            ),
            ("a.js", Some("submit('a')"), Some("a"), &[]),
            (
                "a_test.go",
                Some("func TestA() {}"),
                Some("func TestA() { t.Skip() }"),
                &["tests edited", "tests skipped"],
            ),
            (
                "src/test/java/ATest.java",
                Some("@Test"),
                Some("@Disabled\n@Test"),
                &["tests skipped"],
            ),
            ("src/contest.rs", Some("a\n"), Some("b\n"), &[]),
            (
                "src/a.rs",
                Some(INNER),
                Some("fn b() {}\n#[cfg(test)]\nmod tests {\n    is(1);\n}\n"),
                &["tests edited"],
            ),
            (
                "src/a.rs",
                Some(INNER),
                Some("fn b() {}\n#[cfg(test)]\nmod tests {\nis(2);\nis(3);\n}\n"),
                &[],
            ),
            ("src/a.rs", Some(INNER), Some("fn a() {}\n"), &["tests edited"]),
            ("src/a.rs", Some("#![x]"), Some("#![cfg(any())]"), &["tests skipped"]),
            (
                "main_test.go",
                None,
                Some("func TestMain(m *testing.M) { os.Exit(0) }"),
                &["tests skipped"],
            ),
            ("vendor/tests", Some("a"), Some("b"), &["tests edited"]),
        ];
        for (path, before, after, expected) in cases {
            assert_eq!(labels(path, before, after), expected, "{path}: {after:?}");
        }
    }

    #[test]
    fn a_new_ecosystem_needs_its_table_line_alone() {
        const FAKE: Ecosystem = Ecosystem {
            extensions: &["fake"],
            comment: ";",
            test_marks: &["TRY "],
            skip_marks: &["TRY LATER"],
            inner_tests: |text| {
                text.split_once("TESTS\n").map_or(vec![], |t| t.1.lines().collect())
            },
            is_test_file: |stem, extension| extension == "fake" && stem.ends_with("-try"),
            test_directories: &["tries"],
            decisive_files: &["fake.*", ".fake/"],
            decisive_part: |name| {
                (name == "manifest.fake").then_some(|text| Some(text[..1].into()))
            },
            shadows_tool: |path| path == "tool",
            ..Ecosystem::NOTHING
        };
        /// The path, its text before and after, the label.
        type Case<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a str);
        let cases: [Case<'_>; 10] = [
            ("fake.toml", None, Some(""), "oracle changed"),
            ("a/.fake/b", Some("a"), Some("b"), "oracle changed"),
            ("tool", None, Some(""), "oracle changed"),
            ("manifest.fake", Some("ab"), Some("bb"), "oracle changed"),
            ("manifest.fake", Some("ab"), Some("aa"), ""),
            ("tries/a", Some("a"), None, "tests deleted"),
            ("a-try.fake", Some("a"), Some("b"), "tests edited"),
            ("a.fake", Some("TRY a"), Some("; TRY a"), "tests deleted"),
            ("a.fake", Some("TRY a"), Some("TRY LATER a"), "tests skipped"),
            ("a.fake", Some("TESTS\na"), Some("TESTS\nb"), "tests edited"),
        ];
        for (path, before, after, label) in cases {
            assert_eq!(labels_among(&[&FAKE], path, before, after).concat(), label, "{path}");
            assert_eq!(labels_among(&[], path, before, after), [""; 0], "{path}");
        }
    }
}
