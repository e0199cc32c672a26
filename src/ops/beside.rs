//! Work that is done while the commands of attempts run, e.g. judging the attempts that have
//! already ended.
use crate::model::name::Name;
use crate::ops::board::Board;
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::start_gate::StartGate;
use crate::process::interrupt::Cancel;
use crate::process::work_queue::WorkQueue;

/// A command that is to run in a candidate's worktree.
#[derive(Clone)]
pub struct NextAttempt {
    pub candidate: Name,
    pub command: CandidateCommand,
    /// True if the command continues the work that earlier commands left in the worktree.
    pub is_further_round: bool,
}

/// With this, the work beside the attempts sees their state and influences them. When this is
/// dropped, the gate opens, so that no attempt waits for work that has already ended.
pub struct AttemptsAtWork<'a> {
    /// Shows the state of each attempt.
    pub board: &'a Board,
    /// The commands that are not started yet. The work can add further rounds.
    pub queue: &'a WorkQueue<NextAttempt>,
    /// The gate that the commands of the attempts wait for.
    pub gate: &'a StartGate,
    /// Ends the work beside the attempts, if git-frites fails to run the attempts, or if no attempt
    /// is usable.
    pub cancel: &'a Cancel,
    /// Ends the running attempts. The work uses this once enough candidates have passed.
    pub stop: &'a Cancel,
}

impl Drop for AttemptsAtWork<'_> {
    fn drop(&mut self) {
        self.gate.open();
    }
}

/// Work that is done while attempts are at work.
pub trait Beside: Sync {
    /// Does the work, until all attempts have ended or the work is cancelled.
    fn work(&self, attempts: &AttemptsAtWork<'_>);

    /// Called when an attempt has ended and is captured.
    fn attempt_ended(&self, name: &Name);

    /// Called when all attempts have ended. May use `cancel` to end the work early, if nothing
    /// needs the results of the work any more.
    fn all_ended(&self, cancel: &Cancel);
}

/// Nothing is done beside the attempts.
impl Beside for () {
    fn work(&self, _: &AttemptsAtWork<'_>) {}
    fn attempt_ended(&self, _: &Name) {}
    fn all_ended(&self, _: &Cancel) {}
}

/// Calls `all_ended` when it is dropped, even after a panic. Otherwise the work beside the attempts
/// would wait for their end for ever.
pub(super) struct UntilAllEnded<'a>(pub &'a dyn Beside, pub &'a Cancel);

impl Drop for UntilAllEnded<'_> {
    fn drop(&mut self) {
        self.0.all_ended(self.1);
    }
}
