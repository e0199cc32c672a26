//! Flags: changes that a reviewer should look at before trusting that a candidate passed.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::count::some_of;
use crate::model::path::quoted;

/// A change that a reviewer should look at, for one of these reasons:
/// * It changes the commands or tests by which the candidate is judged.
/// * One easily overlooks it in a patch, for example because it adds a binary file.
/// * The candidate now needs something outside of its tree: a dependency, or the target of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flag {
    /// The kind of change.
    #[serde(flatten)]
    pub kind: FlagKind,
    /// The changed file.
    pub path: String,
}

/// The kind of change that a flag is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "flag", rename_all = "kebab-case")]
pub enum FlagKind {
    /// The candidate changes a file that decides which commands run, or how.
    OracleChanged,
    /// The candidate deletes tests in the file.
    TestsDeleted,
    /// The candidate edits existing tests in the file.
    TestsEdited,
    /// The candidate skips more tests in the file than the base.
    TestsSkipped {
        /// The text that skips a test, as it is in the file.
        marker: String,
    },
    /// A command rewrote a test, or a file that decides which commands run, but did not do so on
    /// the base.
    TestsRewritten,
    /// The candidate adds a file that git ignores, such as build output, or an ignored directory.
    IgnoredAdded,
    /// The candidate has a link that leads out of the checkout. The files there are not in the tree
    /// and do not land.
    LinksOutside,
    /// The candidate adds a file that git counts as binary.
    BinaryAdded,
    /// The candidate adds a file above [`LARGE`].
    LargeAdded {
        /// Its size in bytes.
        bytes: u64,
    },
    /// A manifest or a lock file has gained dependencies.
    NewDependency {
        /// The names of the dependencies.
        dependencies: Vec<String>,
    },
}

impl FlagKind {
    /// The flag of this kind about a file.
    pub fn at(self, path: impl Into<String>) -> Flag {
        Flag { kind: self, path: path.into() }
    }

    /// A clause about these files.
    fn in_words(&self, files: &str) -> String {
        match self {
            FlagKind::OracleChanged => format!("changes {files} (which can decide what is run)"),
            FlagKind::TestsDeleted => format!("deletes tests in {files}"),
            FlagKind::TestsEdited => format!("edits tests in {files}"),
            FlagKind::TestsSkipped { marker } => {
                format!("skips tests in {files} ({})", marker.trim_end_matches('('))
            }
            FlagKind::TestsRewritten => {
                format!("makes a command rewrite {files}, so its pass does not count")
            }
            FlagKind::IgnoredAdded => format!("adds {files}, which git ignores"),
            FlagKind::LinksOutside => format!("links {files} to a place outside the tree"),
            FlagKind::BinaryAdded => format!("adds binary {files}"),
            FlagKind::LargeAdded { bytes } => {
                format!("adds {files}, a file of {:.1} MB", *bytes as f64 / 1e6)
            }
            FlagKind::NewDependency { dependencies } => {
                format!("adds dependencies in {files}: {}", some_of(dependencies))
            }
        }
    }
}

/// The size above which an added file is large.
pub const LARGE: u64 = 1_000_000;

impl Flag {
    /// True for a change that is put back in the second judging, which uses the base's tests and
    /// commands.
    pub fn is_about_tests(&self) -> bool {
        use FlagKind::*;
        matches!(self.kind, OracleChanged | TestsDeleted | TestsEdited | TestsSkipped { .. })
    }

    /// True if the candidate runs fewer of the base's tests.
    pub fn leaves_out_tests(&self) -> bool {
        matches!(self.kind, FlagKind::TestsDeleted | FlagKind::TestsSkipped { .. })
    }

    /// A few words for a table.
    pub fn label(&self) -> &'static str {
        match self.kind {
            FlagKind::OracleChanged => "oracle changed",
            FlagKind::TestsDeleted => "tests deleted",
            FlagKind::TestsEdited => "tests edited",
            FlagKind::TestsSkipped { .. } => "tests skipped",
            FlagKind::TestsRewritten => "tests rewritten",
            FlagKind::IgnoredAdded => "ignored added",
            FlagKind::LinksOutside => "links outside",
            FlagKind::BinaryAdded => "adds a binary",
            FlagKind::LargeAdded { .. } => "adds a large file",
            FlagKind::NewDependency { .. } => "new dependency",
        }
    }
}

/// Sorted flags as clauses. Some kinds of flags share one clause for all their files: edited tests,
/// deleted tests, binary files, and files that can decide which commands run. A change of behaviour can require
/// edits in many tests. It is still only one reason to look at the change.
pub fn in_words(flags: &[Flag]) -> Vec<String> {
    flags.chunk_by(|one, next| one.label() == next.label()).flat_map(clauses).collect()
}

fn clauses(alike: &[Flag]) -> Vec<String> {
    use FlagKind::*;
    let paths: Vec<String> = alike.iter().map(|flag| quoted(flag.path.as_bytes())).collect();
    match (alike.first().map(|flag| &flag.kind), paths.as_slice()) {
        (Some(kind @ OracleChanged), [one, two]) => {
            vec![kind.in_words(&format!("{one} and {two}"))]
        }
        (Some(kind @ (OracleChanged | TestsDeleted | TestsEdited | BinaryAdded)), paths) => {
            vec![kind.in_words(&some_of(paths))]
        }
        _ => alike.iter().map(ToString::to_string).collect(),
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.in_words(&quoted(self.path.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_a_newline_stays_in_its_line() {
        let path = "a\nb";
        let edited = [FlagKind::TestsEdited.at(path)];
        assert_eq!(in_words(&edited), ["edits tests in \"a\\nb\""]);
        let adds = FlagKind::BinaryAdded.at(path);
        assert_eq!(adds.to_string(), "adds binary \"a\\nb\"");
    }

    #[test]
    fn many_edited_tests_are_one_clause() {
        let edited = |path: &str| FlagKind::TestsEdited.at(path);
        let mut flags: Vec<Flag> = ["a.html", "b.html", "c.html", "d.html"].map(edited).into();
        flags.push(FlagKind::TestsDeleted.at("old.rs"));
        flags.extend(["Makefile", "ci.sh"].map(|path| FlagKind::OracleChanged.at(path)));
        flags.sort();
        assert_eq!(
            in_words(&flags),
            [
                "changes Makefile and ci.sh (which can decide what is run)",
                "deletes tests in old.rs",
                "edits tests in a.html, b.html, c.html and 1 more",
            ]
        );
    }
}
