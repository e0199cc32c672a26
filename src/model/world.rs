//! The kinds of worlds that judged commands run in.
use serde::{Deserialize, Serialize};

/// The protection of everything outside against the commands that are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WorldKind {
    /// None: the commands can do all that the user can. Older records are of this kind.
    #[default]
    Open,
    /// Landlock: writes outside of the checkout and of directories that are thrown away are refused.
    Landlock,
    /// Namespaces: all writes are thrown away, and no process of the outside can be reached.
    Sealed,
}

impl WorldKind {
    /// Where commands ran, as a phrase.
    pub fn in_words(self) -> &'static str {
        match self {
            WorldKind::Open => "unconfined, in the open world",
            WorldKind::Landlock => "confined by Landlock",
            WorldKind::Sealed => "in sealed worlds",
        }
    }
}
