//! The description of a landing: written to a file before its first effect, and all that a recovery after
//! a kill needs.
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::git::landing::position::Position;
use crate::model::candidate::Landing;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// `landings/CHECKOUT.toml`, or `landings/candidates/RUN/CAND.toml` for a candidate's worktree: a landing
/// or the undo of one, from before its first effect until it is done or taken back. Each checkout has its
/// own file, so that a landing in one never removes the intent of another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Intent {
    /// The run.
    pub run: Name,
    /// The candidate that lands, or is undone.
    pub candidate: Name,
    /// The number of its capture.
    pub iteration: u32,
    /// The branch that lands: the one that HEAD is on, or a fresh one.
    pub branch: RefName,
    /// The commit or tree that the files are to become. A landing on an existing branch moves it to this
    /// commit.
    #[serde(alias = "tree", alias = "new")]
    pub to: Oid,
    /// True if the landing tree passed.
    pub verified: bool,
    /// True if the user's git is to commit the change on the fresh branch afterwards.
    #[serde(default)]
    pub commit: bool,
    /// True if a landing is being undone.
    #[serde(default)]
    pub undoing: bool,
    /// Set when recovery removes the locks of the killed process: a time at which it was still alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_after: Option<SystemTime>,
    /// The commit or tree of the files before, if it is not that of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Oid>,
    /// The position of the checkout's HEAD before the landing.
    pub from: Position,
    /// The candidate in whose worktree the files are; `None` for the user's checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

impl Intent {
    /// True if the branch is made for the landing.
    pub fn is_fresh(&self) -> bool {
        self.from.branch.as_ref() != Some(&self.branch)
    }

    /// The candidate's state once this is done.
    pub fn landing(&self) -> Landing {
        match (self.undoing, self.is_fresh()) {
            (true, _) => Landing::Undone,
            (false, true) => Landing::Landed,
            (false, false) => Landing::Merged,
        }
    }

    /// The commit or tree of the files before.
    pub fn files(&self) -> &Oid {
        self.files.as_ref().unwrap_or(&self.from.commit)
    }

    /// True if a landing on a fresh branch is being undone, which deletes that branch.
    pub fn is_deletion(&self) -> bool {
        self.undoing && self.is_fresh()
    }
}

/// A candidate whose own branch moves, in its worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The candidate's run.
    pub run: Name,
    /// The candidate's name.
    pub candidate: Name,
}
