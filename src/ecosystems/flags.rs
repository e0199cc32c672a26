//! Flags for changes with which an attempt affects what judges it. The flags are found by the
//! changed paths and by the texts of the changed files.
//!
//! A flag proves nothing, because an honest attempt may have to change a test. But a reviewer
//! should see it.
use std::collections::BTreeSet;

use crate::ecosystems::dependencies;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::marks::{has_fewer_tests, new_skip_mark};
use crate::ecosystems::paths::{directory_of, resolved};
use crate::ecosystems::put_back::{PutBack, deciding_change};
use crate::ecosystems::touched::{is_test_path, source_of};
use crate::model::changed_file::ChangedFile;
use crate::model::flag::{Flag, FlagKind};

/// The flags for one changed file. `path` is one of the paths that lead to it. `scripts` are the
/// files that the oracle's commands run.
pub fn flags(file: &ChangedFile, path: &str, scripts: &BTreeSet<String>) -> Vec<Flag> {
    let is_test = is_test_path(path);
    let (before, after) = (file.before.text(), file.after.text());
    let (before, after) = (before.as_deref(), after.as_deref());
    let source = source_of(path);
    let mut found = Vec::new();
    if deciding_change(path, before, after, scripts) != PutBack::Keep {
        found.push(FlagKind::OracleChanged.at(path));
    }
    let edits_test_file = is_test && before.is_some() && file.loses;
    if (is_test && before.is_some() && after.is_none())
        || source.is_some_and(|source| has_fewer_tests(source, path, before, after))
    {
        found.push(FlagKind::TestsDeleted.at(path));
    } else if edits_test_file || source.is_some_and(|s| edits_inner_tests(s, before, after)) {
        found.push(FlagKind::TestsEdited.at(path));
    }
    let dependencies = after.map(|after| dependencies::gained(path, before, after));
    let dependencies: Vec<String> = dependencies.into_iter().flatten().collect();
    if !dependencies.is_empty() {
        found.push(FlagKind::NewDependency { dependencies }.at(path));
    }
    if let Some(marker) = source.and_then(|source| new_skip_mark(source, is_test, before, after)) {
        found.push(FlagKind::TestsSkipped { marker: marker.to_owned() }.at(path));
    }
    found
}

/// True if a symlink's target is outside the checkout, so that its content is not part of the tree.
pub fn leads_outside(path: &str, target: &str) -> bool {
    resolved(directory_of(path), target).is_none()
}

/// True if a change removes lines of the tests that a source file contains beside its code.
fn edits_inner_tests(source: &Ecosystem, before: Option<&str>, after: Option<&str>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    fn lines(parts: Vec<&str>) -> impl Iterator<Item = &str> {
        parts.into_iter().flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty())
    }
    // If the tests cannot be told from the code, as in a file that does not compile, any line may
    // be of a test.
    let kept = source.inner_tests_of(after).unwrap_or_else(|| vec![after]);
    let kept: BTreeSet<&str> = lines(kept).collect();
    lines(source.inner_tests_of(before).unwrap_or_default()).any(|line| !kept.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::changed_file::FileContent;
    use crate::model::path::TreePath;

    /// The labels of the flags for a change, with `ci/check.sh` as the oracle's script.
    fn labels(path: &str, before: Option<&str>, after: Option<&str>) -> Vec<&'static str> {
        let loses = match (before, after) {
            (Some(before), Some(after)) => before.lines().any(|l| !after.lines().any(|a| a == l)),
            _ => after.is_none(),
        };
        let content = |text: Option<&str>| match text {
            Some(text) => FileContent::Text(text.into()),
            None => FileContent::Missing,
        };
        let file = ChangedFile {
            path: TreePath::new(path),
            before: content(before),
            after: content(after),
            loses,
            changes_mode: false,
            is_submodule: false,
            is_link: false,
        };
        let scripts = BTreeSet::from(["ci/check.sh".to_owned()]);
        flags(&file, path, &scripts).iter().map(Flag::label).collect()
    }

    /// The lists of decisive files are string literals, which cannot name a constant.
    #[test]
    fn files_whose_names_are_constants_are_decisive() {
        for name in [crate::config::FILE].into_iter().chain(crate::ecosystems::just::JUSTFILES) {
            assert_eq!(labels(name, Some("a"), Some("b")), ["oracle changed"], "{name}");
        }
    }

    #[test]
    fn a_decisive_file_is_flagged_and_the_rest_of_a_manifest_is_not() {
        let changed: &[&str] = &["oracle changed"];
        let cases: [(&str, &str, &str, &[&str]); 17] = [
            ("Makefile", "a", "b", changed),
            ("Makefile", "OBJS = a.o", "OBJS = a.o b.o", &[]),
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
                &["new dependency"],
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
                &["new dependency"],
            ),
            ("Cargo.toml", "[[bin]]\nname = 'a'", "[[bin]]\nname = 'a'\ntest = false", changed),
            ("pyproject.toml", "[project]", "[project]\ndependencies = ['a']", &["new dependency"]),
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
        let skipped: &[&str] = &["tests skipped"];
        let rust = "fn a() {}\n#[test]\nfn t() {}\n";
        /// The path, its text before and after, the labels.
        type Case<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
        let cases: [Case<'_>; 28] = [
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
            ("x.go", Some("import \"encoding/xml\""), Some("d.Skip()"), &[]),
            ("x.go", Some("import \"testing\""), Some("import \"testing\"\nt.Skip()"), skipped),
            ("lex.js", Some("a"), Some("if (/b/.test(c)) this.skip()"), &[]),
            ("hooks.js", Some("a"), Some("beforeEach(function () { this.skip() })"), skipped),
            ("lib/lex.rb", Some("a"), Some("skip \"x\""), &[]),
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
            assert_eq!(labels(path, before, after).concat(), label, "{path}");
        }
    }
}
