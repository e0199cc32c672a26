//! Files of the product whose names mean tests.
use std::collections::BTreeSet;

use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::languages::{is_hidden_or_installed, language_of};
use crate::ecosystems::loading::code_lines::{LOADS, is_comment};
use crate::ecosystems::loading::settings::names_commands;
use crate::ecosystems::manifest::words;
use crate::ecosystems::paths::{
    below, directories_above, directory_of, file_name, is_of_word, place_of_word,
    stem_and_extension,
};
use crate::ecosystems::test_names::is_in_test_directory;
use crate::ecosystems::touched::is_test_path;

/// The paths of those parts of `path` whose names mean tests: `app/testing` and
/// `app/testing/test_sum` for `app/testing/test_sum.py`.
fn parts_named_as_tests(path: &str) -> impl Iterator<Item = &str> {
    let directories = directories_above(path);
    let directories =
        directories.filter(|part| is_in_test_directory(&format!("{}/x", file_name(part))));
    // `twice.expected` is no module, so `#include "twice.h"` does not load it.
    let is_module = language_of(path).is_some() && is_test_path(file_name(path));
    directories.chain(is_module.then_some(stem_and_extension(path).0))
}

/// The search for lines that load one of these files, whose names mean tests.
pub fn search_for_tests<'p>(paths: impl Iterator<Item = &'p str>) -> LineSearch {
    let names: BTreeSet<String> =
        paths.flat_map(parts_named_as_tests).map(|part| file_name(part).to_owned()).collect();
    let (types, modules) = names.into_iter().partition(|name| name.starts_with(char::is_uppercase));
    LineSearch { words: types, pairs: modules, beside: words(LOADS), ..LineSearch::default() }
}

/// True if these lines of the product load the file at `path`. Each part of the path whose name
/// means tests must be loaded: by the name of its type (`TestResult`), or as a module. For example,
/// `from calc.testing import close` loads `calc/testing`.
pub fn loads_test(path: &str, lines: &[(String, String)]) -> bool {
    let own = language_of(path);
    let is_product = |other: &str| {
        let is_related = language_of(other)
            .is_some_and(|language| own.is_none_or(|own| language.is_related_to(own)));
        is_related
            && !is_test_path(other)
            && !is_hidden_or_installed(other)
            && !names_commands(other)
    };
    let lines: Vec<&(String, String)> =
        lines.iter().filter(|(other, line)| is_product(other) && !is_comment(line)).collect();
    let mut parts = parts_named_as_tests(path).peekable();
    parts.peek().is_some()
        && parts.all(|part| lines.iter().any(|(other, line)| loads_part(part, other, line)))
}

/// True if a line of `other` loads the module at the path `part`, whose name means tests. A usual
/// name such as `tests` does not identify a module. So either the line must also name the directory
/// above, or `other` must be in or below that directory.
fn loads_part(part: &str, other: &str, line: &str) -> bool {
    let name = file_name(part);
    let above = directory_of(part);
    if name.starts_with(char::is_uppercase) {
        return place_of_word(line, name).is_some();
    }
    let Some(at) = place_of_word(line, name) else { return false };
    if !LOADS.split_whitespace().any(|word| place_of_word(line, word).is_some()) {
        return false;
    }
    let before = line[..at].trim_end_matches(['/', '.', ':']);
    let before = if before.len() == at { "" } else { before };
    let before = before.rsplit(|c| !is_of_word(c)).next().unwrap_or_default();
    !is_in_test_directory(name)
        || before == file_name(above)
        || matches!(before, "" | "crate" | "self" | "super")
            && (below(other, above).is_some() || place_of_word(line, file_name(above)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_loads_files_whose_names_mean_tests() {
        let cases = [
            ("calc/testing/a.py", "calc/b.py", "from calc.testing import close", true),
            ("calc/testing/a.py", "calc/b.py", "from .testing import close", true),
            ("calc/testing/a.json", "app.py", "from calc import testing", true),
            ("calc/testing/a.py", "app.py", "from numpy.testing import close", false),
            ("calc/testing/tests/a.py", "calc/b.py", "from calc.testing import close", false),
            ("calc/test_utils.py", "app.py", "from calc.test_utils import close", true),
            ("calc/test_utils.py", "app.py", "test_utils = 1", false),
            ("twice.expected", "twice.c", "#include \"twice.h\"", false),
            ("calc/test_utils.py", "calc/test_a.py", "from .test_utils import close", false),
            ("app/models/test.rb", "app/main.rb", "require_relative \"models/test\"", true),
            ("test/helper.rb", "app/main.rb", "require \"minitest/test\"", false),
            ("app/test-utils/index.js", "app/a.js", "const a = require('./test-utils')", true),
            ("src/TestResult.java", "src/A.java", "TestResult last;", true),
            ("src/test/java/A.java", "src/main/java/A.java", "package com.test;", false),
        ];
        for (path, other, line, expected) in cases {
            let lines = [(other.to_owned(), line.to_owned())];
            assert_eq!(loads_test(path, &lines), expected, "{path} in {other}: {line}");
        }
    }
}
