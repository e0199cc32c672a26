//! The kinds of worlds in which commands judge. A world protects everything outside of a checkout
//! against the commands.
use serde::{Deserialize, Serialize};

/// How everything outside of a checkout is protected against the commands that judge the checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WorldKind {
    /// No protection: the commands can do everything that the user can. Older records are of this
    /// kind.
    #[default]
    Open,
    /// Landlock: writes are refused except to the checkout and to directories that are thrown away.
    Landlock,
    /// Namespaces: all writes are thrown away, and no process outside can be reached.
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
