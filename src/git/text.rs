//! Differences of texts in git's own words: the same lines, hunks and headers as `git diff-tree`
//! writes, or nothing where that is not certain.
//!
//! The algorithm is a port of git's (GIT-FACTS, "Capture and diff"); a test compares both on random texts.
//!
//! This is for the row "capture of 8" of `make bench`, which takes 1.6 times the processor time with `git diff-tree`
//! (1,000 files).
use std::io;

use gix::ObjectId;
use gix::diff::blob::UnifiedDiff;
use gix::diff::blob::unified_diff::{ConsumeHunk, ContextSize, DiffLineKind, HunkHeader};
use gix::hash::Kind;
use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput};

use crate::git::repo::TreeEntry;
use crate::git::trees::TreeDifference;

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

    /// Appends the hunks of a patch; `None` if they cannot be made.
    fn write_hunks(mut self, patch: &mut Vec<u8>) -> Option<()> {
        self.diff.postprocess_lines(&self.input);
        let hunks = HunkWriter { patch, input: &self.input, heading: b"", searched: 0 };
        let context = ContextSize::symmetrical(CONTEXT);
        UnifiedDiff::new(&self.diff, &self.input, hunks, context).consume().ok()
    }
}

/// Writes hunks in git's form.
struct HunkWriter<'a> {
    patch: &'a mut Vec<u8>,
    input: &'a InternedInput<&'a [u8]>,
    /// The heading of the last hunk.
    heading: &'a [u8],
    /// The number of lines at the beginning of the old text that were searched for a heading.
    searched: usize,
}

impl ConsumeHunk for HunkWriter<'_> {
    type Out = ();

    fn consume_hunk(
        &mut self,
        header: HunkHeader,
        lines: &[(DiffLineKind, &[u8])],
    ) -> io::Result<()> {
        // Searches the lines between the starts of the last hunk and this one, from below.
        let above = header.before_hunk_start as usize - 1;
        let mut between = self.input.before[self.searched..above].iter().rev();
        let found = between.find_map(|line| heading_of(self.input.interner[*line]));
        self.heading = found.unwrap_or(self.heading);
        self.searched = above;
        let old = range(header.before_hunk_start, header.before_hunk_len);
        let new = range(header.after_hunk_start, header.after_hunk_len);
        self.patch.extend(format!("@@ -{old} +{new} @@").into_bytes());
        if !self.heading.is_empty() {
            self.patch.push(b' ');
            self.patch.extend(self.heading);
        }
        self.patch.push(b'\n');
        for (kind, line) in lines {
            self.patch.push(kind.to_prefix() as u8);
            self.patch.extend(*line);
            if !line.ends_with(b"\n") {
                self.patch.extend(b"\n\\ No newline at end of file\n");
            }
        }
        Ok(())
    }

    fn finish(self) {}
}

/// The lines of one side of a hunk, as git writes them.
fn range(start: u32, count: u32) -> String {
    match count {
        0 => format!("{},0", start - 1),
        1 => start.to_string(),
        _ => format!("{start},{count}"),
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

/// True if git writes a path into a patch as it is.
pub(super) fn is_plain_path(path: &[u8]) -> bool {
    path.iter().all(|b| b.is_ascii_alphanumeric() || b"/._-+=@,".contains(b))
}

/// Appends the patch of one file to `patch`; `None` if it cannot be made. The file's path is plain, and the
/// file is neither a link nor a submodule.
pub(super) fn write_patch(
    patch: &mut Vec<u8>,
    difference: &TreeDifference,
    text: TextChange<'_>,
) -> Option<()> {
    let TreeDifference { path, old, new } = difference;
    let name = path.lossy();
    let mut head = format!("diff --git a/{name} b/{name}\n");
    let mut from = format!("a/{name}");
    let mut to = format!("b/{name}");
    let mut after_ids = String::new();
    match (old, new) {
        (None, Some((mode, _))) => {
            head.push_str(&format!("new file mode {mode}\n"));
            from = "/dev/null".into();
        }
        (Some((mode, _)), None) => {
            head.push_str(&format!("deleted file mode {mode}\n"));
            to = "/dev/null".into();
        }
        (Some((old, _)), Some((new, _))) if old == new => after_ids = format!(" {new}"),
        (Some((old, _)), Some((new, _))) => {
            head.push_str(&format!("old mode {old}\nnew mode {new}\n"));
        }
        (None, None) => return None,
    }
    let id = |entry: &Option<TreeEntry>| entry.map_or(ObjectId::null(Kind::Sha1), |(_, id)| id);
    let [old, new] = [id(old), id(new)];
    if old != new {
        head.push_str(&format!("index {old}..{new}{after_ids}\n"));
    }
    if text.lines() != (0, 0) {
        head.push_str(&format!("--- {from}\n+++ {to}\n"));
    }
    patch.extend(head.into_bytes());
    text.write_hunks(patch)
}
