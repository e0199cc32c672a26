//! Work that is done while the commands of attempts run, such as judging the attempts that have
//! ended.
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
    /// True if the command continues the work that earlier commands left in the worktree.
    pub is_further_round: bool,
}

/// The attempts, as the work beside them sees them. Dropping this opens the gate, so that no
/// attempt waits for work that has ended.
pub struct AttemptsAtWork<'a> {
    /// Shows the state of each attempt.
    pub board: &'a Board,
    /// The attempts that wait for their turn; further rounds can be added.
    pub queue: &'a WorkQueue<NextAttempt>,
    /// The gate that their commands wait for.
    pub gate: &'a StartGate,
    /// Ends the work beside the attempts; used if git-frites itself fails.
    pub cancel: &'a Cancel,
    /// Ends the attempts that are running.
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

    /// Called when all attempts have ended. The work ends early if `cancel` is ordered, because
    /// then nothing may depend on it any more.
    fn all_ended(&self, cancel: &Cancel);
}

/// No work.
impl Beside for () {
    fn work(&self, _: &AttemptsAtWork<'_>) {}
    fn attempt_ended(&self, _: &Name) {}
    fn all_ended(&self, _: &Cancel) {}
}

/// Calls `all_ended` when it is dropped, also after a panic: otherwise the work beside the attempts
/// would wait for ever.
pub(super) struct UntilAllEnded<'a>(pub &'a dyn Beside, pub &'a Cancel);

impl Drop for UntilAllEnded<'_> {
    fn drop(&mut self) {
        self.0.all_ended(self.1);
    }
}
