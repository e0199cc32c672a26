//! Decides by names whether a file or a directory is about tests.

/// The words that stand beside `test` in such names, without a final `s`: `test_support`,
/// `unittests`.
const BESIDE_TEST: &str = "\
    all auto base case common data e2e fixture func functional g harness helper i infra integration
    kit lib mock regression resource self spec suite support system unit util utility";

/// Directories with a name like `__mocks__` that hold no files of tests.
const MADE_BY_TOOLS: [&str; 3] = ["__generated__", "__pycache__", "__pypackages__"];

/// True if a directory in the path has a name that means tests in any language. The last part
/// counts, too, if it is one word, because a submodule or a link may have a test directory's name.
pub fn is_in_test_directory(path: &str) -> bool {
    let mut is_below_sources = false;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        is_below_sources |= matches!(part, "src" | "lib");
        if means_tests(part, parts.peek().copied(), is_below_sources) {
            return true;
        }
    }
    false
}

/// True if a word in a directory's name means tests: `unit_tests`, `Test-Support`, `testutil`.
/// `next` is the next part of the path. `spec` and `testing` count only if all words are about
/// tests. Below `src` and `lib`, a part of the product may have such a name (`ab_test`,
/// `Test::More`). So there, all words must be about tests. In Gradle's source sets and .NET's test
/// projects, they need not be.
fn means_tests(part: &str, next: Option<&str>, is_below_sources: bool) -> bool {
    const SOURCE_SETS: [&str; 5] = ["groovy", "java", "kotlin", "resources", "scala"];
    let is_source_set = is_below_sources && next.is_some_and(|next| SOURCE_SETS.contains(&next));
    match part {
        "features" => {
            return !is_below_sources && matches!(next, Some("step_definitions" | "support"));
        }
        "it" => return is_source_set,
        // The regression tests of BSD systems and of PostgreSQL.
        "regress" => return !is_below_sources,
        // `__fixtures__`, `__stubs__`
        _ if part.starts_with("__") && part.ends_with("__") => {
            return next.is_some() && !MADE_BY_TOOLS.contains(&part);
        }
        _ => {}
    }
    // A cheap check first: a base has many paths, and most names contain none of these.
    let mut sought = [&b"test"[..], b"spec", b"e2e"].into_iter();
    if !sought.any(|text| part.as_bytes().windows(text.len()).any(|w| w.eq_ignore_ascii_case(text)))
    {
        return false;
    }
    let words = words_of_name(part);
    let has_test = words.iter().any(|word| is_test_word(word));
    match next {
        None => {
            words.len() == 1 && !part.contains('.') && means_tests(part, Some(""), is_below_sources)
        }
        _ if is_below_sources => {
            has_test
                && (is_source_set
                    || words.iter().all(|word| is_about_tests(word)) && part != "Test")
                || part.contains('.') && words.last().is_some_and(|word| is_test_word(word))
        }
        _ => has_test || words.iter().all(|word| word == "testing" || is_about_tests(word)),
    }
}

/// True if the name of a source file, without its extension, means a test or a helper of tests.
/// That is so if its first word is one of `begins`, if its last word is one of `ends`, or if all
/// its words are about tests. In these lists, `test` stands for all words that `is_test_word`
/// accepts, and `test…` for all words that begin like this. Any other word counts only if the name
/// has a further word.
pub fn is_name_of_test(stem: &str, (begins, ends): (&[&str], &[&str])) -> bool {
    let mut words = words_of_name(stem);
    let is_helper = !ends.is_empty()
        && words.iter().any(|word| is_test_word(word))
        && words.iter().all(|word| is_about_tests(word));
    // `SumTestCase`, `sum.test-d`
    words.pop_if(|word| matches!(word.as_str(), "case" | "cases" | "d"));
    let is = |word: Option<&String>, known: &[&str]| {
        word.is_some_and(|word| {
            known.iter().any(|known| match *known {
                "test" => is_test_word(word),
                "test…" => word.starts_with("test"),
                known => words.len() > 1 && singular(word) == known,
            })
        })
    };
    is_helper || is(words.first(), begins) || is(words.last(), ends)
}

/// True for `test`, `tests` and `e2e`. Also true for a word that consists of `test` and another
/// word about tests, such as `testutils` and `unittest`. False for `latest` and `contest`.
fn is_test_word(word: &str) -> bool {
    word == "e2e"
        || ["test", "tests"].into_iter().any(|test| {
            let others = [word.strip_prefix(test), word.strip_suffix(test)];
            others.into_iter().flatten().any(|other| other.is_empty() || is_beside_test(other))
        })
}

/// True if a name has a word about tests: `test-util`, `mocks`.
pub fn names_tests(name: &str) -> bool {
    words_of_name(name).iter().any(|word| is_about_tests(word))
}

fn is_about_tests(word: &str) -> bool {
    is_test_word(word) || is_beside_test(word)
}

fn is_beside_test(word: &str) -> bool {
    BESIDE_TEST.split_whitespace().any(|beside| beside == word || beside == singular(word))
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

/// The words of a name, in lower case, without digits around them. A word ends at a character that
/// is no letter or digit. It also ends before a capital letter that follows a small one or precedes
/// one.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    let mut letters = name.chars().peekable();
    while let Some(c) = letters.next() {
        let begins = was_lower || letters.peek().is_some_and(|next| next.is_lowercase());
        if !c.is_alphanumeric() || c.is_uppercase() && begins {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        was_lower = c.is_lowercase();
    }
    let words = words.iter().map(|word| word.trim_matches(|c: char| c.is_ascii_digit()).to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_in_c_needs_no_word_of_its_own() {
        let of_c = crate::ecosystems::make::TEST_WORDS;
        for (stem, expected) in [
            ("testserv", true),
            ("test_list", true),
            ("list_test", true),
            ("unittest", true),
            ("latest", false),
            ("attested", false),
            ("serv", false),
        ] {
            assert_eq!(is_name_of_test(stem, of_c), expected, "{stem}");
        }
        assert!(!is_name_of_test("testserv", (&["test"], &["test"])));
    }

    #[test]
    fn directory_of_tests_is_known_by_the_words_of_its_name() {
        let of_tests = "\
            unit_tests/util.py UnitTests/Util.cs Calc.UnitTests/Util.cs src/Calc.UnitTests/Util.cs \
            src/integrationTest/java/Util.java src/jvmTest/kotlin/Util.kt src/it/java/Util.java \
            src/testFixtures/java/Util.java src/testDebug/java/Util.java src/itest/scala/Util.scala \
            test-support/util.js features/support/checks.rb src/Tests/Util.php src/UnitTests/Util.php \
            tests-integration/a.py test_suite/a.py Test/a.py TEST/a.py TestSuite/a.py tests.d/a.sh \
            test2/a.py tests_e2e/a.js a/testutil/a.go src/testutil/a.go unittests/a.cc spec-support/a.rb \
            specs/a.rb testing/a.py a/__testutils__/a.js __test__/a.js \
            src/__fixtures__/a.js a/__stubs__/b/a.json src/__tests__/a.js testdata/a.go \
            test_runner/a.py a/tests";
        let others = "\
            src/ab_test/util.py src/features/support/util.js lib/Test/More.pm src/testing/a.go \
            src/spec/parser.py lib/test_runner/a.rb pytest/main.py latest/main.py contest/a.py \
            spectrum/a.py openapi_spec_validator/a.py flask_testing/a.py attestation/a.go \
            support/a.py it/java/A.java run-tests unit_test.txt \
            src/__generated__/a.ts __main__.py a/__init__ src/__a/a.js";
        for (paths, expected) in [(of_tests, true), (others, false)] {
            for path in paths.split_whitespace() {
                assert_eq!(is_in_test_directory(path), expected, "{path}");
            }
        }
    }
}
