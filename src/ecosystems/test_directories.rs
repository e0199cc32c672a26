//! The directories whose names say that tests are in them.

/// True if a directory in the path has a name that means tests in any language. Below `src` and `lib`,
/// `testing` and `spec` do not mean tests: a part of the product may have these names.
pub fn is_in_test_directory(path: &str) -> bool {
    let mut is_below_sources = false;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        is_below_sources |= matches!(part, "src" | "lib");
        let next = parts.peek().copied();
        if matches!(part, "test" | "tests" | "Tests" | "e2e")
            || !is_below_sources && matches!(part, "testing" | "spec" | "specs")
            || next.is_some_and(|next| names_tests(part, next, is_below_sources))
        {
            return true;
        }
    }
    false
}

/// True if the words in a directory's name say that it has tests, or files that tests need: `unit_tests`,
/// `Calc.UnitTests`, `testFixtures`. `next` is the next part of the path. Below `src` and `lib`, only the
/// names of .NET's test projects and of Gradle's source sets count.
fn names_tests(part: &str, next: &str, is_below_sources: bool) -> bool {
    const SOURCE_SETS: [&str; 5] = ["groovy", "java", "kotlin", "resources", "scala"];
    const NEEDED_BY_TESTS: [&str; 8] =
        ["data", "fixtures", "helper", "helpers", "resources", "support", "util", "utils"];
    let is_cucumber = part == "features" && matches!(next, "step_definitions" | "support");
    // A cheap check first: a base has many paths, and most names do not contain `test`.
    if !part.as_bytes().windows(4).any(|letters| letters.eq_ignore_ascii_case(b"test")) {
        return is_cucumber && !is_below_sources;
    }
    let words = words_of_name(part);
    let is_test = |word: &String| matches!(word.as_str(), "test" | "tests");
    let has_tests = words.len() > 1 && words.last().is_some_and(is_test)
        || words.len() == 2 && is_test(&words[0]) && NEEDED_BY_TESTS.contains(&words[1].as_str());
    match is_below_sources {
        true => {
            has_tests
                && (SOURCE_SETS.contains(&next)
                    || part.ends_with(".Test")
                    || part.contains('.') && part.ends_with("Tests"))
        }
        false => has_tests,
    }
}

/// The words of a name, in lower case. A word ends at a character that is no letter or digit, and before a
/// capital letter that follows a small one.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_lower {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_tests_is_known_by_the_words_of_its_name() {
        let cases = [
            ("unit_tests/util.py", true),
            ("UnitTests/Util.cs", true),
            ("Calc.UnitTests/Util.cs", true),
            ("src/Calc.UnitTests/Util.cs", true),
            ("src/integrationTest/java/Util.java", true),
            ("src/jvmTest/kotlin/Util.kt", true),
            ("src/testFixtures/java/Util.java", true),
            ("test-support/util.js", true),
            ("features/support/checks.rb", true),
            ("src/Tests/Util.php", true),
            ("src/ab_test/util.py", false),
            ("src/features/support/util.js", false),
            ("lib/Test/More.pm", false),
            ("test_runner/main.py", false),
            ("pytest/main.py", false),
            ("latest/main.py", false),
            ("run-tests", false),
            ("unit_test.txt", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_in_test_directory(path), expected, "{path}");
        }
    }
}
