//! The content of `status`, as it was read.
use crate::error::Result;
use crate::model::blast::Blast;
use crate::model::candidate::{Candidate, Capture, Landing};
use crate::model::name::Name;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::session::ReadSession;

/// A candidate as it was last captured.
pub struct Member {
    /// Its record.
    pub record: Candidate,
    /// Its newest capture.
    pub capture: Option<Capture>,
    /// The size of its change.
    pub blast: Blast,
    /// True if somebody has removed its worktree by hand.
    pub gone: bool,
}

/// A run, with its records.
pub struct ShownRun {
    /// The run.
    pub run: Run,
    /// The one candidate that is shown, if it was named.
    pub only: Option<Name>,
    /// All of its candidates.
    pub members: Vec<Member>,
}

impl ShownRun {
    /// The members that are shown.
    pub fn shown(&self) -> impl Iterator<Item = &Member> {
        let only = self.only.as_ref();
        self.members.iter().filter(move |member| only.is_none_or(|o| *o == member.record.candidate))
    }
}

/// The branch on which conflicts of a candidate wait to be resolved, if they do.
pub fn conflicts(session: &ReadSession, candidate: &Candidate) -> Result<Option<RefName>> {
    if !matches!(candidate.landing, Landing::Pending | Landing::Discarded) {
        return Ok(None);
    }
    let left = session.store.left_conflicts(&candidate.run, &candidate.candidate)?;
    Ok(left.map(|left| left.branch))
}
