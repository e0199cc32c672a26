//! Flags: what a reviewer should look at before trusting that a candidate passed.
use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a candidate does to what it is judged by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "flag", rename_all = "kebab-case")]
pub enum Flag {
    /// It changes a file that decides what is run, or how.
    OracleChanged {
        /// The file.
        path: String,
    },
    /// It removes tests.
    TestsDeleted {
        /// Where from.
        path: String,
    },
    /// It changes tests that were there.
    TestsEdited {
        /// Where.
        path: String,
    },
    /// It has more tests left out than before.
    TestsSkipped {
        /// Where.
        path: String,
        /// What says so, as it is written there.
        marker: String,
    },
    /// It has a link that leads out of the checkout: what it passed with is not in the tree.
    LinksOutside {
        /// The link.
        path: String,
    },
}

impl Flag {
    /// Two words for a table.
    pub fn label(&self) -> &'static str {
        match self {
            Flag::OracleChanged { .. } => "oracle changed",
            Flag::TestsDeleted { .. } => "tests deleted",
            Flag::TestsEdited { .. } => "tests edited",
            Flag::TestsSkipped { .. } => "tests skipped",
            Flag::LinksOutside { .. } => "links outside",
        }
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flag::OracleChanged { path } => write!(f, "changes {path}, which decides what is run"),
            Flag::TestsDeleted { path } => write!(f, "deletes tests in {path}"),
            Flag::TestsEdited { path } => write!(f, "edits tests in {path}"),
            Flag::TestsSkipped { path, marker } => write!(f, "skips tests in {path} ({marker})"),
            Flag::LinksOutside { path } => write!(f, "links {path} to what is not in the tree"),
        }
    }
}
