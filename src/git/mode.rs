//! The modes of tree entries.
use gix::objs::tree::EntryKind;
use strum::{Display, EnumString};

/// The kind of an entry in a tree or in an index. It is displayed as six octal digits, like git
/// does, and parsed only from such digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString)]
pub enum EntryMode {
    /// No entry. This is git's mode for a path that one side of a comparison does not have.
    #[strum(serialize = "000000")]
    Absent,
    #[strum(serialize = "040000")]
    Directory,
    /// A file that nobody may execute.
    #[strum(serialize = "100644")]
    File,
    #[strum(serialize = "100755")]
    Executable,
    #[strum(serialize = "120000")]
    Link,
    /// A submodule; the entry is the id of a commit.
    #[strum(serialize = "160000")]
    Submodule,
}

impl From<EntryKind> for EntryMode {
    fn from(kind: EntryKind) -> Self {
        match kind {
            EntryKind::Tree => EntryMode::Directory,
            EntryKind::Blob => EntryMode::File,
            EntryKind::BlobExecutable => EntryMode::Executable,
            EntryKind::Link => EntryMode::Link,
            EntryKind::Commit => EntryMode::Submodule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_keep_their_notation_and_other_text_is_refused() {
        for (mode, text) in [
            (EntryMode::Absent, "000000"),
            (EntryMode::Directory, "040000"),
            (EntryMode::File, "100644"),
            (EntryMode::Executable, "100755"),
            (EntryMode::Link, "120000"),
            (EntryMode::Submodule, "160000"),
        ] {
            assert_eq!(text.parse(), Ok(mode));
            assert_eq!(mode.to_string(), text);
        }
        for text in ["", "0", "644", "100644 ", "0100644", "-00644"] {
            assert!(text.parse::<EntryMode>().is_err(), "{text}");
        }
    }
}
