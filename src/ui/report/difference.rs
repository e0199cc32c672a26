//! The difference of two texts, line by line, with the words that differ inside of replaced lines.
use std::time::{Duration, Instant};

use similar::{ChangeTag, DiffOp, TextDiff};

/// The unchanged lines around a change.
const CONTEXT: usize = 3;

/// The time after which a difference is given that is right, and longer than it could be.
const TIME: Duration = Duration::from_millis(300);

/// The most lines of a replaced block that are compared word by word, and the most bytes.
const MOST_MARKED: usize = 200;
const LONGEST_MARKED: usize = 64 * 1024;

/// The time for the words of one block.
const TIME_FOR_WORDS: Duration = Duration::from_millis(50);

/// A difference, as far as it is shown.
pub struct LineDifference {
    /// Groups of changed lines with those around them.
    pub hunks: Vec<Vec<DiffLine>>,
    /// The number of changed lines that are left out.
    pub left_out: usize,
}

impl LineDifference {
    /// The number of lines that are shown.
    pub fn lines(&self) -> usize {
        self.hunks.iter().map(Vec::len).sum()
    }
}

/// A line of a difference.
pub struct DiffLine {
    /// The line's number before, from 1; none if it is new.
    pub old: Option<usize>,
    /// The line's number now; none if it is gone.
    pub new: Option<usize>,
    /// The line's parts, without its end; those that differ from the line in its place are marked.
    pub parts: Vec<(bool, String)>,
}

/// Compares two texts; at most so many lines are shown.
pub fn difference(before: &str, after: &str, most: usize) -> LineDifference {
    let diff = TextDiff::configure().timeout(TIME).diff_lines(before, after);
    let mut found = LineDifference { hunks: Vec::new(), left_out: 0 };
    let mut room = most;
    for group in diff.grouped_ops(CONTEXT) {
        let mut hunk = Vec::new();
        for op in group {
            let changed = match op {
                DiffOp::Equal { .. } => 0,
                _ => op.old_range().len() + op.new_range().len(),
            };
            if room == 0 {
                found.left_out += changed;
                continue;
            }
            let lines = lines_of(&diff, &op, room);
            found.left_out += changed.saturating_sub(lines.len());
            room -= lines.len();
            hunk.extend(lines);
        }
        if !hunk.is_empty() {
            found.hunks.push(hunk);
        }
    }
    found
}

/// The lines of one operation, at most so many.
fn lines_of(diff: &TextDiff<'_, '_, str>, op: &DiffOp, most: usize) -> Vec<DiffLine> {
    let is_short = || {
        let old: usize = op.old_range().filter_map(|at| diff.old_slice(at)).map(str::len).sum();
        let new: usize = op.new_range().filter_map(|at| diff.new_slice(at)).map(str::len).sum();
        old + new <= LONGEST_MARKED
    };
    let lines = op.old_range().len() + op.new_range().len();
    if matches!(op, DiffOp::Replace { .. }) && lines <= MOST_MARKED && is_short() {
        let deadline = Some(Instant::now() + TIME_FOR_WORDS);
        let changes = diff.iter_inline_changes_deadline(op, deadline).take(most);
        return changes
            .map(|change| DiffLine {
                old: change.old_index().map(|at| at + 1),
                new: change.new_index().map(|at| at + 1),
                parts: change
                    .values()
                    .iter()
                    .map(|(marked, s)| (*marked, without_end(s)))
                    .collect(),
            })
            .collect();
    }
    diff.iter_changes(op)
        .take(most)
        .map(|change| DiffLine {
            old: change.old_index().filter(|_| change.tag() != ChangeTag::Insert).map(|at| at + 1),
            new: change.new_index().filter(|_| change.tag() != ChangeTag::Delete).map(|at| at + 1),
            parts: vec![(false, without_end(change.value()))],
        })
        .collect()
}

fn without_end(text: &str) -> String {
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: &LineDifference) -> Vec<String> {
        let line = |line: &DiffLine| {
            let sign = match (line.old, line.new) {
                (Some(_), Some(_)) => ' ',
                (Some(_), None) => '-',
                _ => '+',
            };
            let parts: String = line
                .parts
                .iter()
                .map(|(marked, text)| if *marked { format!("[{text}]") } else { text.clone() })
                .collect();
            format!("{sign}{parts}")
        };
        found.hunks.iter().flatten().map(line).collect()
    }

    #[test]
    fn words_that_differ_are_marked() {
        let found = difference("one\nlet a = 1;\nend\n", "one\nlet b = 1;\nend\n", 99);
        assert_eq!(shown(&found), [" one", "-let [a] = 1;", "+let [b] = 1;", " end"]);
        assert_eq!(found.left_out, 0);
        let gone = difference("a\n", "", 99);
        assert_eq!((shown(&gone), gone.lines()), (vec!["-a".to_owned()], 1));
    }

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let text: String = (0..50).map(|n| format!("{n}\n")).collect();
        let found = difference("", &text, 20);
        assert_eq!((found.lines(), found.left_out), (20, 30));
        assert_eq!(difference(&text, &text, 20).lines(), 0);
    }
}
