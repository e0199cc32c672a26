//! Blast radius: the size of an attempt's change.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::count::count;

/// The size of a change, ordered by lines and then by files: smaller is better.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Blast {
    /// Lines added plus lines deleted, counted by [`lines_of`].
    pub lines: u64,
    /// The number of changed files. A renamed file counts once, with the lines that differ.
    pub files: u64,
}

/// The size of the change of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Lines added and deleted.
    Text {
        /// Lines added.
        added: u64,
        /// Lines deleted.
        deleted: u64,
    },
    /// Bytes before and after, for a file that git counts as binary.
    Binary {
        /// Size before, in bytes; 0 if there was no file.
        old: u64,
        /// Size after, in bytes; 0 if there is no file.
        new: u64,
    },
}

/// The number of lines that a changed path counts as (docs/DECIDING.md): a binary file counts one
/// line for each 64 bytes, old and new, rounded up; a mode change or an empty file counts one.
pub fn lines_of(extent: Extent) -> u64 {
    let lines = match extent {
        Extent::Text { added, deleted } => added + deleted,
        Extent::Binary { old, new } => old.div_ceil(64) + new.div_ceil(64),
    };
    lines.max(1)
}

impl FromIterator<Extent> for Blast {
    fn from_iter<I: IntoIterator<Item = Extent>>(extents: I) -> Self {
        extents.into_iter().fold(Blast::default(), |sum, extent| Blast {
            lines: sum.lines + lines_of(extent),
            files: sum.files + 1,
        })
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
        assert_eq!(lines_of(Extent::Text { added: 3, deleted: 2 }), 5);
        assert_eq!(
            lines_of(Extent::Text { added: 0, deleted: 0 }),
            1,
            "a mode change or an empty file"
        );
        assert_eq!(lines_of(Extent::Binary { old: 0, new: 1 }), 1);
        assert_eq!(lines_of(Extent::Binary { old: 64, new: 65 }), 3);
        assert_eq!(lines_of(Extent::Binary { old: 0, new: 0 }), 1);
    }

    #[test]
    fn lines_come_before_files() {
        assert!(Blast { lines: 3, files: 9 } < Blast { lines: 4, files: 1 });
        assert!(Blast { lines: 3, files: 1 } < Blast { lines: 3, files: 2 });
    }
}
