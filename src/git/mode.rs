//! The modes of tree entries.
use std::fmt;

/// The kind of an entry in a tree or in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMode {
    /// No entry, as git writes it where one side of a comparison lacks the path.
    Absent,
    /// A directory.
    Directory,
    /// A file that nobody may execute.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link.
    Link,
    /// A submodule, held as the id of a commit.
    Submodule,
}

impl EntryMode {
    /// Every mode with its notation in git's lists.
    const ALL: [(EntryMode, &'static str); 6] = [
        (EntryMode::Absent, "000000"),
        (EntryMode::Directory, "040000"),
        (EntryMode::File, "100644"),
        (EntryMode::Executable, "100755"),
        (EntryMode::Link, "120000"),
        (EntryMode::Submodule, "160000"),
    ];

    /// Reads six octal digits as git prints them; `None` for any other text.
    pub fn parse(octal: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text)| *text == octal).map(|(mode, _)| *mode)
    }
}

impl fmt::Display for EntryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Self::ALL.iter().find(|(mode, _)| mode == self).map(|(_, text)| *text);
        f.write_str(text.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_keep_their_notation_and_other_text_is_refused() {
        for (mode, text) in EntryMode::ALL {
            assert_eq!(EntryMode::parse(text), Some(mode));
            assert_eq!(mode.to_string(), text);
        }
        for text in ["", "0", "644", "100644 ", "0100644", "-00644"] {
            assert_eq!(EntryMode::parse(text), None, "{text}");
        }
    }
}
