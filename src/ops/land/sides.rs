//! The two sides of a merge whose conflicts are to be resolved.
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::ops::land::target::ResolvedTarget;
use crate::store::candidate::CandidateRef;

/// One side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The change that lands.
    Landing,
    /// The target as it was.
    Target,
}

impl Side {
    /// The other side.
    pub fn other(self) -> Side {
        match self {
            Side::Landing => Side::Target,
            Side::Target => Side::Landing,
        }
    }
}

/// The sides of a merge whose conflicts are to be resolved.
pub struct Sides<'a> {
    /// The candidate that lands.
    pub candidate: CandidateRef<'a>,
    /// The capture that lands.
    pub capture: &'a Capture,
    /// The commit that is merged: the capture, perhaps without changes to protected paths.
    pub landing: &'a Oid,
    /// The target of the merge.
    pub target: &'a ResolvedTarget,
    /// The commit that both sides come from.
    pub base: &'a Oid,
}

impl Sides<'_> {
    /// The commit or tree of a side.
    pub fn tree(&self, side: Side) -> &Oid {
        match side {
            Side::Landing => self.landing,
            Side::Target => self.target.state(),
        }
    }
}
