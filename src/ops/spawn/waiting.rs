//! Ends the command of an agent that waits for the network endlessly. Such an agent prints again
//! and again that it waits, so the idle limit alone would not end the command.
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::fs::parallel;
use crate::model::agent_stop::StopPatterns;
use crate::model::outcome::Outcome;
use crate::process::interrupt::{self, Cancel};
use crate::process::{self, End, Follower, Job};

/// The time that an agent may wait if no idle limit is set. It is not zero, because a network
/// failure may be short.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest time between two checks of the output.
const LOOK: Duration = Duration::from_secs(1);

/// Runs a job to its end. If output only says that the agent waits for the network, treats it as
/// silence. After the job's idle limit, or after [`PATIENCE`] without one, the command is ended,
/// and its outcome is a timeout. Calls `tell` once, when the agent begins to wait. `stop` ends the
/// command as well.
pub(super) fn run(
    job: &Job<'_>,
    patterns: &StopPatterns,
    stop: &Cancel,
    tell: &dyn Fn(Duration),
) -> Result<End> {
    if !patterns.can_wait() {
        return process::run_until(job, stop);
    }
    // Remove an old log, so that only the output of this command is read.
    let _ = std::fs::remove_file(job.log);
    let patience = job.limits.idle.unwrap_or(PATIENCE);
    let look = LOOK.min(patience / 4);
    let cancel = Cancel::default();
    let (ended, until) = channel::<()>();
    std::thread::scope(|scope| {
        let running = parallel::start(scope, || {
            let end = process::run_until(job, &cancel);
            drop(ended);
            end
        });
        let mut log = Follower::new(job.log);
        let mut is_told = false;
        let mut waited: Option<Duration> = None;
        let mut before = Instant::now();
        while waited < Some(patience) && until.recv_timeout(look) == Err(RecvTimeoutError::Timeout)
        {
            if stop.is_cancelled() {
                cancel.end_politely();
            }
            // If git-frites was suspended, so was the command. So no more than two intervals are
            // added.
            let passed = before.elapsed().min(2 * look);
            before = Instant::now();
            // A log that cannot be read, or that ends in half a line, counts as a sign of work.
            let new = log.read().unwrap_or_else(|_| b"unreadable".to_vec());
            let new = String::from_utf8_lossy(&new);
            let said: Vec<&str> = new.lines().filter(|line| !line.trim().is_empty()).collect();
            waited = match waited {
                _ if !said.iter().all(|line| patterns.only_waits(line)) => None,
                Some(so_far) => Some(so_far + passed),
                None => (!said.is_empty()).then_some(Duration::ZERO),
            };
            if waited.is_some() && !std::mem::replace(&mut is_told, true) {
                tell(patience);
            }
        }
        let is_ended = waited >= Some(patience);
        if is_ended {
            cancel.cancel();
        }
        let end = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let is_ours = is_ended && end.cancelled && interrupt::signal().is_none();
        Ok(if is_ours { End { outcome: Outcome::TimedOut, cancelled: false, ..end } } else { end })
    })
}
