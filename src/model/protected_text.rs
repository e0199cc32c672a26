//! The lines of a log that show text of protected files.
use std::collections::HashSet;

/// A line of a file is searched for only if it has at least this number of characters that are not
/// spaces. Shorter lines are too common.
const SHORTEST_LINE: usize = 8;

/// A line of a log shows text of a file if it shares this number of characters in a row with a line
/// of the file. Spaces do not count. A shorter line of a file is searched for as a whole.
const RUN: usize = 16;

/// For each line of a log: true if it shows distinctive text of these files. Test runners indent,
/// number, mark and shorten the lines that they show, and sometimes show only the message in a
/// line.
pub fn lines_that_show<'a>(log: &[String], files: impl IntoIterator<Item = &'a str>) -> Vec<bool> {
    let log: Vec<Vec<char>> = log.iter().map(|line| squeezed(line)).collect();
    let runs: HashSet<&[char]> = log.iter().flat_map(|line| line.windows(RUN)).collect();
    let mut shown: HashSet<&[char]> = HashSet::new();
    let mut short: HashSet<Vec<char>> = HashSet::new();
    for line in files.into_iter().flat_map(str::lines).map(squeezed) {
        match line.len() {
            0..SHORTEST_LINE => {}
            SHORTEST_LINE..RUN => drop(short.insert(line)),
            _ => shown.extend(line.windows(RUN).filter_map(|run| runs.get(run))),
        }
    }
    log.iter()
        .map(|line| {
            line.windows(RUN).any(|run| shown.contains(run))
                || short.iter().any(|whole| line.windows(whole.len()).any(|part| part == whole))
        })
        .collect()
}

/// A line without the characters that runners change when they show it: spaces, and backslashes
/// before quotes.
fn squeezed(line: &str) -> Vec<char> {
    line.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "from shop import total\n\n\ndef test_total():\n\tbasket = [\"apple\", \"pear\"]\n\
        \tassert total(basket) == 42, \"a secret sum of the basket\"\n\tx = 1\n";

    fn shown(log: &[&str]) -> Vec<bool> {
        let log: Vec<String> = log.iter().map(|line| (*line).to_owned()).collect();
        lines_that_show(&log, [TEST, ""])
    }

    /// The output of pytest 7.2.1 for [`TEST`].
    #[test]
    fn neither_lines_nor_messages_of_a_test_are_left_in_what_pytest_prints() {
        let pytest = [
            (
                "=================================== FAILURES ===================================",
                false,
            ),
            (
                "__________________________________ test_total __________________________________",
                false,
            ),
            ("    def test_total():", true),
            ("        basket = [\"apple\", \"pear\"]", true),
            (">       assert total(basket) == 42, \"a secret sum of the basket\"", true),
            ("E       AssertionError: a secret sum of the basket", true),
            ("E       assert 41 == 42", false),
            ("E        +  where 41 = total(['apple', 'pear'])", false),
            ("test_shop.py:6: AssertionError", false),
            ("FAILED test_shop.py::test_total - AssertionError: a secret sum of the basket", true),
            ("1 failed in 0.03s", false),
        ];
        let (lines, expected): (Vec<&str>, Vec<bool>) = pytest.into_iter().unzip();
        assert_eq!(shown(&lines), expected);
    }

    #[test]
    fn lines_that_runners_reshape_are_seen_and_others_stay() {
        let quoted = [
            "  12 |     assert total(basket) == 42, \"a secret sum of the basket\"",
            "> 3: \tbasket   =   [\"apple\",  \"pear\"]",
            "'\\tassert total(basket) == 42, \\\"a secret sum of the basket\\\"'",
            "   3 │ assert total(basket) =…",
            "E   total(basket) == 42, \"a se...",
        ];
        assert_eq!(shown(&quoted), [true; 5]);
        assert_eq!(shown(&["", "x = 1", "AssertionError", "import total", "1 passed"]), [false; 5]);
    }
}
