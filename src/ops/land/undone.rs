//! The result of undoing a landing, whichever way it had landed.
use crate::model::candidate::Candidate;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// A landing that has been undone.
pub struct UndoneLanding {
    /// The candidate that had landed.
    pub candidate: Candidate,
    /// The branch.
    pub branch: RefName,
    /// The commit that reverts the merge; none if the branch was deleted.
    pub commit: Option<Oid>,
    /// The addresses of what landed on the branch afterwards, newest first.
    pub later: Vec<String>,
}
