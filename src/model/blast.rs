//! Blast radius: the size of an attempt's change.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::count::count;

/// The size of a change, ordered by lines and then by files: smaller is better.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Blast {
    /// Lines added plus lines deleted, counted by [`Blast::and`].
    pub lines: u64,
    /// The number of changed files. A renamed file counts once, with the lines that differ.
    pub files: u64,
}

impl Blast {
    /// Adds a changed path (docs/DECIDING.md). A text file counts its added and deleted lines. A
    /// file that git counts as binary counts one line for each 64 of its bytes, before and after,
    /// rounded up. Each path counts at least one line, even for a mode change or an empty file.
    pub fn and(self, lines: Option<(u64, u64)>, bytes: impl FnOnce() -> [u64; 2]) -> Blast {
        let lines = match lines {
            Some((added, deleted)) => added + deleted,
            None => bytes().into_iter().map(|bytes| bytes.div_ceil(64)).sum(),
        };
        Blast { lines: self.lines + lines.max(1), files: self.files + 1 }
    }
}

impl fmt::Display for Blast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", count(self.lines, "line"), count(self.files, "file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_follows_the_contract() {
        let lines = |lines, bytes| Blast::default().and(lines, || bytes).lines;
        assert_eq!(lines(Some((3, 2)), [9, 9]), 5);
        assert_eq!(lines(Some((0, 0)), [9, 9]), 1, "a mode change or an empty file");
        assert_eq!([[0, 1], [64, 65], [0, 0]].map(|bytes| lines(None, bytes)), [1, 3, 1]);
    }

    #[test]
    fn lines_come_before_files() {
        assert!(Blast { lines: 3, files: 9 } < Blast { lines: 4, files: 1 });
        assert!(Blast { lines: 3, files: 1 } < Blast { lines: 3, files: 2 });
    }
}
