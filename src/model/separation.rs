//! How an attempt was kept apart from the files that judging reads.
use std::path::Path;

use serde::{Deserialize, Serialize};

/// How well the commands of an attempt were kept apart from the files outside of its worktree. The
/// weakest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Separation {
    /// The commands ran with the user's permissions.
    Unguarded,
    /// The commands were guarded, and wrote to the user's HOME.
    SharedHome,
    /// Landlock confined the commands, and they wrote to a HOME that was removed afterwards.
    Landlock,
    /// The commands were guarded, and wrote to a private HOME.
    PrivateHome,
}

impl Separation {
    /// The words of a verdict for attempts that may have influenced judging; `None` if the attempts
    /// could not.
    pub fn in_words(self) -> Option<&'static str> {
        match self {
            Separation::Unguarded => Some("attempts unguarded"),
            Separation::SharedHome => Some("attempts share HOME"),
            Separation::Landlock | Separation::PrivateHome => None,
        }
    }
}

/// The access that the commands of an attempt had outside of its worktree, in all rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttemptAccess {
    /// The weakest separation of all rounds.
    pub separation: Separation,
    /// The paths that the configuration opened, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The directories for temporary files that the attempt's environment named, sorted. Commands
    /// that judge see an empty directory in place of such a directory, but only if their own
    /// environment names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temporary: Vec<String>,
}

impl AttemptAccess {
    /// True if no command could change anything in this directory. Landlock is not enough, because
    /// it does not restrict changes of modes and times.
    pub fn keeps_out_of(&self, directory: &Path) -> bool {
        let directory = directory.to_string_lossy().into_owned();
        matches!(self.separation, Separation::SharedHome | Separation::PrivateHome)
            && !self.writes.iter().any(|path| Path::new(path).starts_with(&directory))
    }

    /// True if commands wrote to layers over the user's directories.
    pub fn has_layers(&self) -> bool {
        self.separation == Separation::PrivateHome
    }

    /// True if no command could write to the user's files that judging reads.
    pub fn is_apart(&self) -> bool {
        self.separation >= Separation::Landlock && self.writes.is_empty()
    }

    /// The access of two rounds together: one with this access, the other with `other`.
    pub fn with(mut self, other: &AttemptAccess) -> AttemptAccess {
        self.separation = self.separation.min(other.separation);
        for (all, more) in
            [(&mut self.writes, &other.writes), (&mut self.temporary, &other.temporary)]
        {
            all.extend(more.iter().cloned());
            all.sort();
            all.dedup();
        }
        self
    }
}
