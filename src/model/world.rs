//! The kinds of worlds that judged commands run in.
use std::fmt;

use serde::{Deserialize, Serialize};

/// The protection of everything outside against the commands that are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorldKind {
    /// None: the commands can do all that the user can. Older records are of this kind.
    #[default]
    Open,
    /// Namespaces: all writes are thrown away, and no process of the outside can be reached.
    Sealed,
}

impl fmt::Display for WorldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WorldKind::Open => "open",
            WorldKind::Sealed => "sealed",
        })
    }
}
