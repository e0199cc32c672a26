//! Ends the command of an agent that waits for the network endlessly. Such an agent prints again and again
//! that it waits, so the idle limit alone would not end the command.
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::fs::parallel;
use crate::model::agent_stop::StopPatterns;
use crate::model::outcome::Outcome;
use crate::process::interrupt::{self, Cancel};
use crate::process::{self, End, Follower, Job};

/// The time that an agent may wait if no idle limit is set. It is not zero, because a network failure may be
/// short.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest time between two checks of the output.
const LOOK: Duration = Duration::from_secs(1);

/// The longest incomplete line that is kept. A longer line says more than that the agent waits.
const LONGEST: usize = 64 << 10;

/// Runs a job to its end. Treats output that only says that the agent waits for the network as silence: after
/// the job's idle limit, or after [`PATIENCE`] without one, the command is ended and its outcome is a
/// timeout. Calls `tell` once, when the agent begins to wait. `stop` ends the command as well.
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
    let cancel = Cancel::default();
    let (ended, until) = channel();
    std::thread::scope(|scope| {
        let running = parallel::start(scope, || {
            let end = process::run_until(job, &cancel);
            drop(ended);
            end
        });
        let patience = job.limits.idle.unwrap_or(PATIENCE);
        let mut watch = WaitWatch { patterns, log: Follower::new(job.log), rest: Vec::new() };
        let pass_on = || {
            if stop.is_cancelled() {
                cancel.end_politely();
            }
        };
        let is_ended = watch.gives_up(patience, &until, tell, &pass_on);
        if is_ended {
            cancel.cancel();
        }
        let end = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let is_ours = is_ended && end.cancelled && interrupt::signal().is_none();
        Ok(if is_ours { End { outcome: Outcome::TimedOut, cancelled: false, ..end } } else { end })
    })
}

/// Reads the output of an agent while the agent runs.
struct WaitWatch<'a> {
    patterns: &'a StopPatterns,
    log: Follower,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
}

/// The agent's state by its output since the last check.
enum Said {
    Nothing,
    Waits,
    Works,
}

impl WaitWatch<'_> {
    /// Checks the output until the command ends or the agent has waited for `patience`. Returns true if the
    /// agent has waited for so long.
    fn gives_up(
        &mut self,
        patience: Duration,
        until: &Receiver<()>,
        tell: &dyn Fn(Duration),
        on_look: &dyn Fn(),
    ) -> bool {
        let look = LOOK.min(patience / 4);
        let mut waits: Option<Duration> = None;
        let mut is_told = false;
        loop {
            let before = Instant::now();
            if until.recv_timeout(look) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
            on_look();
            match self.read_output() {
                Said::Nothing => {}
                Said::Works => waits = None,
                Said::Waits => waits = waits.or(Some(Duration::ZERO)),
            }
            let Some(waited) = &mut waits else { continue };
            if !std::mem::replace(&mut is_told, true) {
                tell(patience);
            }
            // If git-frites was suspended, so was the command. So no more than two intervals are added.
            *waited += before.elapsed().min(2 * look);
            if *waited >= patience {
                return true;
            }
        }
    }

    fn read_output(&mut self) -> Said {
        // If the log cannot be read, assume that the agent works.
        let Ok(new) = self.log.read() else { return Said::Works };
        self.rest.extend(new);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return if self.rest.len() > LONGEST { Said::Works } else { Said::Nothing };
        };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        let lines = String::from_utf8_lossy(&lines);
        let said: Vec<&str> = lines.lines().filter(|line| !line.trim().is_empty()).collect();
        match said.iter().all(|line| self.patterns.only_waits(line)) {
            _ if said.is_empty() => Said::Nothing,
            true => Said::Waits,
            false => Said::Works,
        }
    }
}
