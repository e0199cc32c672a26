//! Compares two texts line by line. In replaced lines, the differing words are marked.
use std::mem;
use std::ops::Range;

use gix_imara_diff::sources::lines;
use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput};

/// The number of unchanged lines around a change.
const CONTEXT: u32 = 3;

/// A replaced block is compared word by word only if it has at most this many lines and this many
/// bytes.
const MOST_MARKED: usize = 200;
const LONGEST_MARKED: usize = 64 * 1024;

/// The part of a difference that is shown.
pub struct LineDifference {
    /// Groups of changed lines, each with the unchanged lines around them.
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

pub struct DiffLine {
    /// The line's number in the old text, from 1; `None` if the line is new.
    pub old: Option<usize>,
    /// The line's number in the new text, from 1; `None` if the line was removed.
    pub new: Option<usize>,
    /// The parts of the line, without its line end. Two lines are compared if one of them replaces
    /// the other. A part is marked (true) if the other line lacks it.
    pub parts: Vec<(bool, String)>,
}

/// Compares two texts. The result has at most `most` lines.
pub fn difference(before: &str, after: &str, most: usize) -> LineDifference {
    let input = InternedInput::new(lines(before), lines(after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<Hunk> = diff.hunks().collect();
    let mut found = LineDifference { hunks: Vec::new(), left_out: 0 };
    let mut room = most;
    for group in changes.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT) {
        let mut hunk = Vec::new();
        let mut unchanged = group[0].before.start.saturating_sub(CONTEXT);
        for change in group {
            let above = unchanged..change.before.start;
            hunk.extend(unchanged_lines(&input, above, change.after.start).take(room - hunk.len()));
            unchanged = change.before.end;
            let changed = changed_lines(&input, change);
            let shown = changed.len().min(room - hunk.len());
            found.left_out += changed.len() - shown;
            hunk.extend(changed.into_iter().take(shown));
        }
        if let Some(last) = group.last() {
            let end = (unchanged + CONTEXT).min(input.before.len() as u32);
            let below = unchanged_lines(&input, unchanged..end, last.after.end + end - unchanged);
            hunk.extend(below.take(room - hunk.len()));
        }
        room -= hunk.len();
        if !hunk.is_empty() {
            found.hunks.push(hunk);
        }
    }
    found
}

/// The unchanged lines `old` of the first text. In the second text, they end before line `end`.
fn unchanged_lines<'a>(
    input: &'a InternedInput<&str>,
    old: Range<u32>,
    end: u32,
) -> impl Iterator<Item = DiffLine> + 'a {
    let first = end - (old.end - old.start);
    old.clone().map(move |at| DiffLine {
        old: Some(at as usize + 1),
        new: Some((first + at - old.start) as usize + 1),
        parts: vec![(false, without_end(input.interner[input.before[at as usize]]).to_owned())],
    })
}

/// The lines of a change: first the removed ones, then the new ones.
fn changed_lines(input: &InternedInput<&str>, change: &Hunk) -> Vec<DiffLine> {
    let gone = input.before[change.before.start as usize..change.before.end as usize].iter();
    let new = input.after[change.after.start as usize..change.after.end as usize].iter();
    let texts: Vec<&str> = gone.chain(new).map(|line| input.interner[*line]).collect();
    let mut parts: Vec<Vec<(bool, String)>> =
        texts.iter().map(|text| vec![(false, without_end(text).to_owned())]).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let is_replaced = !change.before.is_empty() && !change.after.is_empty();
    if is_replaced && texts.len() <= MOST_MARKED && bytes <= LONGEST_MARKED {
        parts = marked_words(input, change).unwrap_or(parts);
    }
    let old_numbers = change.before.clone().map(|at| (Some(at as usize + 1), None));
    let new_numbers = change.after.clone().map(|at| (None, Some(at as usize + 1)));
    old_numbers
        .chain(new_numbers)
        .zip(parts)
        .map(|((old, new), parts)| DiffLine { old, new, parts })
        .collect()
}

/// For each line of a change, its parts, in which differing words are marked; `None` if most words
/// differ.
fn marked_words(input: &InternedInput<&str>, change: &Hunk) -> Option<Vec<Vec<(bool, String)>>> {
    let mut words = InternedInput::default();
    let mut diff = Diff::default();
    change.latin_word_diff(input, &mut words, &mut diff);
    let differing = diff.count_removals() + diff.count_additions();
    if differing as usize * 2 > words.before.len() + words.after.len() {
        return None;
    }
    let old = words.before.iter().enumerate().map(|(at, word)| (diff.is_removed(at as u32), word));
    let new = words.after.iter().enumerate().map(|(at, word)| (diff.is_added(at as u32), word));
    let mut all = Vec::new();
    for side in [old.collect::<Vec<_>>(), new.collect()] {
        let mut line: Vec<(bool, String)> = Vec::new();
        for (marked, word) in side {
            let word = words.interner[*word];
            match line.last_mut() {
                _ if word == "\n" => all.push(mem::take(&mut line)),
                Some((mark, text)) if *mark == marked => text.push_str(word),
                _ => line.push((marked, word.to_owned())),
            }
        }
        // The last line of a text may have no line end.
        if !line.is_empty() {
            all.push(line);
        }
    }
    Some(all)
}

fn without_end(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
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
