//! Work that is done beside the commands of attempts, such as judging those that have ended.
use crate::model::name::Name;
use crate::ops::board::Board;
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::start_gate::StartGate;
use crate::process::interrupt::Cancel;
use crate::process::work_queue::WorkQueue;

/// A command that is to run in a candidate's worktree.
#[derive(Clone)]
pub struct NextAttempt {
    /// The candidate.
    pub candidate: Name,
    /// Its command.
    pub command: CandidateCommand,
    /// True if the worktree has work of earlier commands, which goes on.
    pub is_further_round: bool,
}

/// The attempts, as work beside them sees them. The gate before them is open at the latest when that work
/// ends.
pub struct AttemptsAtWork<'a> {
    /// Shows how they stand.
    pub board: &'a Board,
    /// The attempts that wait for their turn; further rounds can be added.
    pub queue: &'a WorkQueue<NextAttempt>,
    /// The gate before them.
    pub gate: &'a StartGate,
    /// Ordered if git-frites itself fails: then the work ends.
    pub cancel: &'a Cancel,
    /// Ends those that are at work.
    pub stop: &'a Cancel,
}

impl Drop for AttemptsAtWork<'_> {
    fn drop(&mut self) {
        self.gate.open();
    }
}

/// Work that is done while attempts are at work.
pub trait Beside: Sync {
    /// Does it, until all attempts have ended or it is cancelled.
    fn work(&self, attempts: &AttemptsAtWork<'_>);

    /// Called when an attempt has ended and is captured.
    fn attempt_ended(&self, name: &Name);

    /// Called when all have. `cancel` ends the work: it may be that nothing depends on it any more.
    fn all_ended(&self, cancel: &Cancel);
}

/// No work.
impl Beside for () {
    fn work(&self, _: &AttemptsAtWork<'_>) {}
    fn attempt_ended(&self, _: &Name) {}
    fn all_ended(&self, _: &Cancel) {}
}

/// Tells the work beside attempts that they have ended when this is dropped, also after a panic: otherwise
/// that work would wait for ever.
pub(super) struct UntilAllEnded<'a>(pub &'a dyn Beside, pub &'a Cancel);

impl Drop for UntilAllEnded<'_> {
    fn drop(&mut self) {
        self.0.all_ended(self.1);
    }
}
