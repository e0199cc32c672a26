//! Differences of texts in git's own words: the same lines, hunks and headers as `git diff-tree`
//! writes, or nothing where that is not certain.
//!
//! The algorithm is a port of git's (GIT-FACTS, "Capture and diff"); a test compares both on random texts.
//!
//! This is for the row "capture of 8" of `make bench`, which takes 1.6 times the processor time with `git diff-tree`
//! (1,000 files).
use std::ops::Range;

use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput};

use crate::git::mode::EntryMode;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The unchanged lines around a change in a patch.
const CONTEXT: u32 = 3;

/// The bytes at the beginning of a file in which git looks for a NUL to tell binary files.
const LOOKED_AT: usize = 8000;

/// The largest file that is compared in process.
pub(super) const LARGEST: usize = 16 << 20;

/// The longest heading of a hunk.
const LONGEST_HEADING: usize = 80;

/// A file that differs, as a text.
pub(super) struct TextChange<'a> {
    input: InternedInput<&'a [u8]>,
    diff: Diff,
}

impl<'a> TextChange<'a> {
    /// Compares two texts; `None` if one of them is binary or very large.
    pub fn new(old: &'a [u8], new: &'a [u8]) -> Option<Self> {
        let is_text = |bytes: &[u8]| {
            bytes.len() <= LARGEST && !bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
        };
        if !is_text(old) || !is_text(new) {
            return None;
        }
        let input = InternedInput::new(byte_lines(old), byte_lines(new));
        let diff = Diff::compute(Algorithm::Myers, &input);
        Some(TextChange { input, diff })
    }

    /// Lines added and deleted.
    pub fn lines(&self) -> (u64, u64) {
        (self.diff.count_additions().into(), self.diff.count_removals().into())
    }

    /// Appends the hunks of a patch.
    fn write_hunks(mut self, patch: &mut Vec<u8>) {
        self.diff.postprocess_lines(&self.input);
        let changes: Vec<Hunk> = self.diff.hunks().collect();
        let old = &self.input.before;
        let new = &self.input.after;
        let old_count = old.len() as u32;
        let new_count = new.len() as u32;
        let old_line = |at: u32| self.input.interner[old[at as usize]];
        let new_line = |at: u32| self.input.interner[new[at as usize]];
        let mut heading: Vec<u8> = Vec::new();
        let mut searched: Option<u32> = None;
        let mut rest = changes.as_slice();
        while let Some(first) = rest.first() {
            let together = 1 + rest
                .windows(2)
                .take_while(|pair| pair[1].before.start - pair[0].before.end <= 2 * CONTEXT)
                .count();
            let (group, later) = rest.split_at(together);
            rest = later;
            let Some(last) = group.last() else { break };
            let above = CONTEXT.min(first.before.start).min(first.after.start);
            let below = CONTEXT.min(old_count - last.before.end).min(new_count - last.after.end);
            let olds = first.before.start - above..last.before.end + below;
            let news = first.after.start - above..last.after.end + below;
            // Searches the lines between the starts of the last hunk and this one, from below.
            let from = searched.map_or(0, |at| at + 1);
            let line = (from..olds.start).rev().find_map(|at| heading_of(old_line(at)));
            heading = line.map_or(heading, <[u8]>::to_vec);
            searched = olds.start.checked_sub(1).or(searched);
            write_header(patch, &olds, &news, &heading);
            let mut at = news.start;
            for change in group {
                (at..change.after.start).for_each(|at| write_line(patch, b' ', new_line(at)));
                change.before.clone().for_each(|at| write_line(patch, b'-', old_line(at)));
                change.after.clone().for_each(|at| write_line(patch, b'+', new_line(at)));
                at = change.after.end;
            }
            (at..news.end).for_each(|at| write_line(patch, b' ', new_line(at)));
        }
    }
}

/// A line that git shows as the heading of a hunk below it; `None` for any other line.
fn heading_of(line: &[u8]) -> Option<&[u8]> {
    let first = line.first()?;
    if !first.is_ascii_alphabetic() && !b"_$".contains(first) {
        return None;
    }
    let line = &line[..line.len().min(LONGEST_HEADING)];
    let end = line.iter().rposition(|b| !b" \t\n\r".contains(b)).map_or(0, |at| at + 1);
    Some(&line[..end])
}

fn write_header(patch: &mut Vec<u8>, olds: &Range<u32>, news: &Range<u32>, heading: &[u8]) {
    let range = |lines: &Range<u32>| {
        let start = lines.start;
        let count = lines.end - lines.start;
        match count {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{count}", start + 1),
        }
    };
    patch.extend(format!("@@ -{} +{} @@", range(olds), range(news)).into_bytes());
    if !heading.is_empty() {
        patch.push(b' ');
        patch.extend(heading);
    }
    patch.push(b'\n');
}

fn write_line(patch: &mut Vec<u8>, mark: u8, line: &[u8]) {
    patch.push(mark);
    patch.extend(line);
    if !line.ends_with(b"\n") {
        patch.extend(b"\n\\ No newline at end of file\n");
    }
}

/// True if git writes a path into a patch as it is.
pub(super) fn is_plain_path(path: &[u8]) -> bool {
    path.iter().all(|b| b.is_ascii_alphanumeric() || b"/._-+=@,".contains(b))
}

/// The modes and ids of a file that differs; `Absent` and the null id where there is no file.
pub(super) struct FileIds {
    /// The mode before.
    pub old_mode: EntryMode,
    /// The mode after.
    pub new_mode: EntryMode,
    /// The blob before.
    pub old: Oid,
    /// The blob after.
    pub new: Oid,
}

/// Appends the patch of one file to `patch`. Its path is plain, and it is neither a link nor a submodule.
pub(super) fn write_patch(
    patch: &mut Vec<u8>,
    path: &TreePath,
    ids: &FileIds,
    text: TextChange<'_>,
) {
    let FileIds { old_mode, new_mode, old, new } = ids;
    let name = path.lossy();
    let mut head = format!("diff --git a/{name} b/{name}\n");
    let mut from = format!("a/{name}");
    let mut to = format!("b/{name}");
    let mut after_ids = String::new();
    if *old_mode == EntryMode::Absent {
        head.push_str(&format!("new file mode {new_mode}\n"));
        from = "/dev/null".into();
    } else if *new_mode == EntryMode::Absent {
        head.push_str(&format!("deleted file mode {old_mode}\n"));
        to = "/dev/null".into();
    } else if old_mode == new_mode {
        after_ids = format!(" {new_mode}");
    } else {
        head.push_str(&format!("old mode {old_mode}\nnew mode {new_mode}\n"));
    }
    if old != new {
        head.push_str(&format!("index {old}..{new}{after_ids}\n"));
    }
    if text.lines() != (0, 0) {
        head.push_str(&format!("--- {from}\n+++ {to}\n"));
    }
    patch.extend(head.into_bytes());
    text.write_hunks(patch);
}
