//! The meaning of a path's name for tests and commands.
use std::collections::BTreeSet;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::paths::{directories_above, directory_of, file_name};
use crate::ecosystems::test_names::is_in_test_directory;
use crate::model::pattern::matches;

/// True if a path belongs to a test or to a test's data, by its name.
pub fn is_test_path(path: &str) -> bool {
    let name = file_name(path).rsplit_once('.');
    is_in_test_directory(path)
        || ALL.iter().any(|ecosystem| ecosystem.is_test_path(path, name))
        // Directories in `src` or `lib` do not count, because they may be part of the product.
        || is_expectation(directory_of(path))
            && !directory_of(path).split('/').any(|part| matches!(part, "src" | "lib"))
        || (is_expectation(path) && source_of(path).is_none())
}

/// True if a word in the path means expected output of tests: files with which tests compare.
fn is_expectation(path: &str) -> bool {
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| matches!(word, "expected" | "golden" | "snapshot" | "snapshots" | "fixtures"))
}

pub fn source_of(path: &str) -> Option<&'static Ecosystem> {
    ALL.iter().copied().find(|ecosystem| ecosystem.has_source(path))
}

/// True if a path is one of `names`, or matches a pattern among them. Also true if the path is
/// below one of them, because a directory can replace a script.
pub fn is_named(path: &str, names: &BTreeSet<String>) -> bool {
    let mut patterns = names.iter().filter(|name| name.contains('*'));
    directories_above(path).chain([path]).any(|path| names.contains(path))
        || patterns.any(|pattern| matches(pattern, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_tests_is_known_by_the_words_of_its_name() {
        let tests = "\
            sumSpec.js sum-spec.js sum_spec.js sum.e2e-spec.ts sum.tests.js index.test-d.ts sum.spec-d.ts test.ts sum.cy.js testUtils.ts \
            TestSum.java ITSum.java SumIT.java SumITCase.java SumTestCase.kt SumSpec.groovy SumTests.swift \
            tst_sum.cpp sum_gtest.cc sum-unittest.cpp test_sum.h sum_test.go testutil.go sum_tests.erl \
            sum_SUITE.erl sum_spec.lua sum_test.lua SumCest.php SumTest.php SumTests.cs test_sum.py tests.py \
            sum_test.exs sum_tests.rs test-sum.sh sum.bats sum.t sum.snap";
        let others = "\
            spec.js latest.js TestSum.cs Item.java Edit.java CipherSuite.java SnakeCase.java Test.pm \
            contest.c testimony.py attest.rs test_sum.rs job_spec.proto pod_spec.go openapi_spec.py \
            test.txt.md support.rb";
        for (names, expected) in [(tests, true), (others, false)] {
            for name in names.split_whitespace() {
                assert_eq!(is_test_path(&format!("src/{name}")), expected, "{name}");
            }
        }
    }
}
