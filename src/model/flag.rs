//! Flags: changes that a reviewer should look at before trusting that a candidate passed.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::count::some_of;
use crate::model::path::quoted;

/// A change that a reviewer should look at: a change to the commands or tests by which the candidate is
/// judged, or a change that a patch does not show well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "flag", rename_all = "kebab-case")]
pub enum Flag {
    /// The candidate changes a file that decides which commands run, or how.
    OracleChanged {
        /// The file.
        path: String,
    },
    /// The candidate deletes tests.
    TestsDeleted {
        /// The file that held the tests.
        path: String,
    },
    /// The candidate edits existing tests.
    TestsEdited {
        /// The file that holds the tests.
        path: String,
    },
    /// The candidate skips more tests than the base.
    TestsSkipped {
        /// The file that holds the tests.
        path: String,
        /// The text that skips a test, as it is in the file.
        marker: String,
    },
    /// A command rewrote a test, or a file that decides which commands run, but did not do so on the base.
    TestsRewritten {
        /// The file.
        path: String,
    },
    /// The candidate adds files that git ignores, such as build output.
    IgnoredAdded {
        /// The file, or the ignored directory that contains it.
        path: String,
    },
    /// The candidate has a link that leads out of the checkout, to files that are not in the tree
    /// and do not land.
    LinksOutside {
        /// The link.
        path: String,
    },
    /// The candidate adds a file that git counts as binary.
    BinaryAdded {
        /// The file.
        path: String,
    },
    /// The candidate adds a file above [`LARGE`].
    LargeAdded {
        /// The file.
        path: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A manifest or a lock file has gained dependencies.
    NewDependency {
        /// The manifest or lock file.
        path: String,
        /// The names of the dependencies.
        dependencies: Vec<String>,
    },
}

/// The size above which an added file is large.
pub const LARGE: u64 = 1_000_000;

impl Flag {
    /// True for a change that the second judging puts back.
    pub fn is_about_tests(&self) -> bool {
        use Flag::*;
        matches!(
            self,
            OracleChanged { .. } | TestsDeleted { .. } | TestsEdited { .. } | TestsSkipped { .. }
        )
    }

    /// Two words for a table.
    pub fn label(&self) -> &'static str {
        match self {
            Flag::OracleChanged { .. } => "oracle changed",
            Flag::TestsDeleted { .. } => "tests deleted",
            Flag::TestsEdited { .. } => "tests edited",
            Flag::TestsSkipped { .. } => "tests skipped",
            Flag::TestsRewritten { .. } => "tests rewritten",
            Flag::IgnoredAdded { .. } => "ignored added",
            Flag::LinksOutside { .. } => "links outside",
            Flag::BinaryAdded { .. } => "adds a binary",
            Flag::LargeAdded { .. } => "adds a large file",
            Flag::NewDependency { .. } => "new dependency",
        }
    }
}

/// Sorted flags as clauses. All files whose tests are edited share one clause, and so do all files whose
/// tests are deleted: if many tests must expect something else, that is one reason to look at the change.
pub fn in_words(flags: &[Flag]) -> Vec<String> {
    flags.chunk_by(|one, next| one.label() == next.label()).flat_map(clauses).collect()
}

fn clauses(alike: &[Flag]) -> Vec<String> {
    let mut paths = Vec::new();
    for flag in alike {
        if let Flag::TestsDeleted { path } | Flag::TestsEdited { path } = flag {
            paths.push(quoted(path.as_bytes()));
        }
    }
    match alike {
        [Flag::TestsDeleted { .. }, ..] => vec![format!("deletes tests in {}", some_of(&paths))],
        [Flag::TestsEdited { .. }, ..] => vec![format!("edits tests in {}", some_of(&paths))],
        others => others.iter().map(ToString::to_string).collect(),
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Flag::OracleChanged { path }
        | Flag::TestsDeleted { path }
        | Flag::TestsEdited { path }
        | Flag::TestsSkipped { path, .. }
        | Flag::TestsRewritten { path }
        | Flag::IgnoredAdded { path }
        | Flag::LinksOutside { path }
        | Flag::BinaryAdded { path }
        | Flag::LargeAdded { path, .. }
        | Flag::NewDependency { path, .. }) = self;
        let path = quoted(path.as_bytes());
        match self {
            Flag::OracleChanged { .. } => write!(f, "changes {path}, which decides what is run"),
            Flag::TestsDeleted { .. } => write!(f, "deletes tests in {path}"),
            Flag::TestsEdited { .. } => write!(f, "edits tests in {path}"),
            Flag::TestsSkipped { marker, .. } => write!(f, "skips tests in {path} ({marker})"),
            Flag::TestsRewritten { .. } => {
                write!(f, "has a command rewrite {path}, so its pass does not count")
            }
            Flag::IgnoredAdded { .. } => write!(f, "adds {path}, which git ignores"),
            Flag::LinksOutside { .. } => write!(f, "links {path} to a place outside the tree"),
            Flag::BinaryAdded { .. } => write!(f, "adds {path}, a binary file"),
            Flag::LargeAdded { bytes, .. } => {
                write!(f, "adds {path}, a file of {:.1} MB", *bytes as f64 / 1e6)
            }
            Flag::NewDependency { dependencies, .. } => {
                write!(f, "adds dependencies in {path}: {}", some_of(dependencies))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_a_newline_stays_in_its_line() {
        let path = || "a\nb".to_owned();
        let edited = [Flag::TestsEdited { path: path() }];
        assert_eq!(in_words(&edited), ["edits tests in \"a\\nb\""]);
        let adds = Flag::BinaryAdded { path: path() };
        assert_eq!(adds.to_string(), "adds \"a\\nb\", a binary file");
    }

    #[test]
    fn many_edited_tests_are_one_clause() {
        let edited = |path: &str| Flag::TestsEdited { path: path.into() };
        let mut flags: Vec<Flag> = ["a.html", "b.html", "c.html", "d.html"].map(edited).into();
        flags.push(Flag::TestsDeleted { path: "old.rs".into() });
        flags.push(Flag::OracleChanged { path: "Makefile".into() });
        flags.sort();
        assert_eq!(
            in_words(&flags),
            [
                "changes Makefile, which decides what is run",
                "deletes tests in old.rs",
                "edits tests in a.html, b.html, c.html and 1 more",
            ]
        );
    }
}
