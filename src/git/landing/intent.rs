//! The description of a landing. It is written to a file before the first effect of the landing. It
//! has everything that a recovery needs after a kill.
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::git::landing::position::Position;
use crate::model::candidate::Landing;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// A landing, or the undo of a landing. The intent is stored in `landings/CHECKOUT.toml`, or in
/// `landings/candidates/RUN/CAND.toml` for a candidate's worktree. The file exists from before the
/// first effect until the landing is done or taken back.
///
/// Each checkout has its own file. So a landing in one checkout never removes the intent of
/// another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Intent {
    /// The run of the candidate that lands.
    pub run: Name,
    /// The candidate that lands, or whose landing is undone.
    pub candidate: Name,
    /// The iteration of the candidate that lands.
    pub iteration: u32,
    /// The branch on which the capture lands: the branch that HEAD is on, or a fresh one.
    pub branch: RefName,
    /// The commit or tree whose files the checkout gets. On an existing branch, this is the commit
    /// to which the branch moves.
    #[serde(alias = "tree", alias = "new")]
    pub to: Oid,
    /// True if the oracle commands passed on the tree that lands.
    pub verified: bool,
    /// True if the landing ends with a `git commit` in the user's name, on the fresh branch.
    #[serde(default)]
    pub commit: bool,
    /// True if this is the undo of a landing.
    #[serde(default)]
    pub undoing: bool,
    /// A time at which the process of this landing was still alive. A recovery sets it when it
    /// removes the locks of that process.
    pub killed_after: Option<SystemTime>,
    /// The commit or tree of the files before the landing, if it is not the commit of `from`.
    pub files: Option<Oid>,
    /// The position of the checkout's HEAD before the landing.
    pub from: Position,
    /// The candidate whose worktree is the checkout of this landing; `None` for the user's
    /// checkout.
    pub holder: Option<Holder>,
}

impl Intent {
    /// True if the landing makes its branch.
    pub fn is_fresh(&self) -> bool {
        self.from.branch.as_ref() != Some(&self.branch)
    }

    /// The landing state of the candidate once the landing or its undo is done.
    pub fn landing(&self) -> Landing {
        match (self.undoing, self.is_fresh()) {
            (true, _) => Landing::Undone,
            (false, true) => Landing::Landed,
            (false, false) => Landing::Merged,
        }
    }

    /// The commit or tree of the files before the landing.
    pub fn files(&self) -> &Oid {
        self.files.as_ref().unwrap_or(&self.from.commit)
    }

    /// True if this is the undo of a landing on a fresh branch. The undo deletes that branch.
    pub fn is_deletion(&self) -> bool {
        self.undoing && self.is_fresh()
    }
}

/// A candidate in whose worktree a capture of another candidate lands. The landing moves the
/// holder's branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub run: Name,
    pub candidate: Name,
}
