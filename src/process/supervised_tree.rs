//! The tree of processes that a supervisor watches: a command and its descendants. Enforces the
//! limits, obeys orders, and ends the tree.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::process::descendants::descendants;
use crate::process::protocol::{SupervisorReport, TooMuch, order};
use crate::process::world_spec::WorldMessage;

/// The time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);

/// Processes that still run this long after their command has ended count as left behind. They get
/// this time because `git commit` leaves its maintenance running for a moment. Also, most shells
/// leave a helper or two.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_millis(250);

/// If one signal is sent to a command and to git-frites, both receive it within this time.
const PATIENCE_WITH_SIGNALS: Duration = Duration::from_millis(250);

/// The time between SIGTERM and SIGKILL for processes that were left behind.
const GRACE_FOR_LEFTOVERS: Duration = Duration::from_millis(300);

/// The number of processes that make a world and start the command in it. They end after all other
/// processes of the tree.
const PROCESSES_OF_A_WORLD: usize = 2;

/// An event that the tree reacts to.
pub(super) enum TreeEvent {
    Order(u8),
    /// git-frites has ended or was killed.
    Orphaned,
    /// The command has taken too much of the disk.
    WroteTooMuch(TooMuch),
    /// The command itself has ended, or was not run.
    Command(WorldMessage),
    NoChildren,
    OutputClosed,
}

/// The phases of a tree.
#[derive(Clone, Copy)]
pub(super) enum TreePhase {
    /// The command runs.
    Running,
    /// The command has ended by itself. Processes that still run have until this time to end.
    Leftovers { until: Instant },
    /// The tree was asked to end, and will be killed at this time.
    Ending { kill_at: Instant },
}

/// A command and its descendants.
pub(super) struct SupervisedTree {
    pub(super) group: Pid,
    pub(super) events: Receiver<TreeEvent>,
    pub(super) phase: TreePhase,
    /// The time at which the tree was stopped (SIGSTOP); `None` if it is not stopped.
    pub(super) stopped_at: Option<Instant>,
    pub(super) output_open: bool,
    /// True if git-frites has ended or was killed.
    pub(super) orphaned: bool,
    pub(super) last_output: Arc<Mutex<Instant>>,
    /// The time at which the hard time limit ends.
    pub(super) hard: Option<Instant>,
    pub(super) idle: Option<Duration>,
    /// True if the command runs in a world.
    pub(super) is_in_world: bool,
    /// False if no descendant is left.
    pub(super) any_children: bool,
    pub(super) report: SupervisorReport,
}

impl SupervisedTree {
    pub(super) fn follow_to_its_end(&mut self) {
        loop {
            let event = if self.stopped_at.is_some() {
                self.events.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                let now = Instant::now();
                self.enforce_limits(now);
                self.events.recv_timeout(self.next_deadline(now).saturating_duration_since(now))
            };
            match event {
                Ok(TreeEvent::Order(order)) => self.obey(order),
                Ok(TreeEvent::Orphaned) => {
                    self.orphaned = true;
                    self.obey(order::KILL);
                }
                Ok(TreeEvent::WroteTooMuch(too_much)) => {
                    self.report.wrote_more_than.get_or_insert(too_much);
                    self.kill();
                }
                Ok(TreeEvent::Command(message)) => {
                    self.report.take(message);
                    if self.has_exited() && matches!(self.phase, TreePhase::Running) {
                        let until = Instant::now() + PATIENCE_WITH_LEFTOVERS;
                        self.phase = TreePhase::Leftovers { until };
                    }
                }
                // Only on Linux do orphans become our children. On other systems, the process group
                // shows whether processes are left.
                Ok(TreeEvent::NoChildren) => {
                    self.any_children = !cfg!(target_os = "linux") && self.any_left();
                }
                Ok(TreeEvent::OutputClosed) => self.output_open = false,
                Err(RecvTimeoutError::Timeout) if self.has_exited() && !self.any_left() => return,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // If the command ran in a world, the message about its end and the end of our children
            // are separate events. This waits for both.
            if !self.any_children && (self.has_exited() || self.report.why_not_run().is_some()) {
                return;
            }
        }
    }

    fn has_exited(&self) -> bool {
        self.report.code.is_some() || self.report.signal.is_some()
    }

    /// Forgets the reason why the command was not run, if the command was asked to end, or has
    /// ended.
    pub(super) fn forget_late_refusal(&mut self) {
        let was_ended =
            self.report.timed_out || self.report.cancelled || self.report.wrote_more_than.is_some();
        if self.has_exited() || was_ended || self.orphaned {
            (self.report.reason, self.report.error) = (None, None);
        }
    }

    /// Ends the tree if a time limit is over, and ends leftovers if their time is over.
    fn enforce_limits(&mut self, now: Instant) {
        match self.phase {
            TreePhase::Running if self.end_of_limits().is_some_and(|end| end <= now) => {
                self.report.timed_out = true;
                self.terminate(now + GRACE);
            }
            TreePhase::Leftovers { until } if until <= now && self.any_leftovers() => {
                self.report.leaky = true;
                self.terminate(now + GRACE_FOR_LEFTOVERS);
            }
            TreePhase::Ending { kill_at } if kill_at <= now => self.signal_all(Signal::KILL),
            _ => {}
        }
    }

    fn terminate(&mut self, kill_at: Instant) {
        self.signal_all(Signal::TERM);
        self.phase = TreePhase::Ending { kill_at };
    }

    fn obey(&mut self, order: u8) {
        match order {
            order::STOP => return self.stop(),
            order::CONTINUE => return self.resume(),
            _ => {}
        }
        self.report.cancelled |= !self.has_exited();
        let now = Instant::now();
        if order == order::KILL {
            return self.kill();
        }
        if !matches!(self.phase, TreePhase::Ending { .. }) {
            self.terminate(now + GRACE);
        }
        // A stopped process handles SIGTERM only when it is continued.
        self.resume();
    }

    /// Kills the tree, even if it is stopped.
    fn kill(&mut self) {
        self.phase = TreePhase::Ending { kill_at: Instant::now() };
        self.resume();
    }

    /// Stops all processes of the tree, as Ctrl-Z stops a job of a shell. Also stops the clocks of
    /// the time limits.
    fn stop(&mut self) {
        if self.stopped_at.is_some() {
            return;
        }
        self.stopped_at = Some(Instant::now());
        // A process may fork before it is stopped. So this is repeated until the number of
        // processes no longer grows.
        let mut stopped = 0;
        loop {
            self.signal_all(Signal::STOP);
            let living = descendants().len();
            if living <= stopped {
                return;
            }
            stopped = living;
        }
    }

    /// Continues a stopped tree. The time during which it was stopped does not count for time
    /// limits.
    fn resume(&mut self) {
        let Some(since) = self.stopped_at.take() else { return };
        let pause = since.elapsed();
        self.hard = self.hard.map(|at| at + pause);
        *self.last_output.lock() += pause;
        match &mut self.phase {
            TreePhase::Running => {}
            TreePhase::Leftovers { until: at } | TreePhase::Ending { kill_at: at } => *at += pause,
        }
        self.signal_all(Signal::CONT);
    }

    /// Finds out who ended a command that a signal has ended. If e.g. a whole batch job gets a
    /// signal, the command may end before this process receives it. So this waits a moment. Either
    /// the handler stores the same signal in `asked`, or git-frites receives the signal and sends
    /// an order.
    pub(super) fn look_who_ended_it(&mut self, asked: &AtomicUsize) {
        let signal = self
            .report
            .signal
            .or(self.report.code.map(|code| code - 128))
            .filter(|signal| [SIGTERM, SIGINT, SIGHUP, SIGQUIT].contains(signal));
        let Some(signal) = signal else { return };
        let until = Instant::now() + PATIENCE_WITH_SIGNALS;
        while !self.report.cancelled && !self.report.timed_out && Instant::now() < until {
            if usize::try_from(signal) == Ok(asked.load(Ordering::SeqCst)) {
                self.report.ended_from_outside = Some(signal);
                return;
            }
            match self.events.recv_timeout(Duration::from_millis(10)) {
                Ok(TreeEvent::Order(order::TERMINATE | order::KILL)) => {
                    self.report.cancelled = true;
                }
                Ok(TreeEvent::Orphaned) => self.orphaned = true,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits until all output is copied, but not longer than this.
    pub(super) fn wait_for_output(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut open = self.output_open;
        while open {
            let event = self.events.recv_timeout(end.saturating_duration_since(Instant::now()));
            open = !matches!(event, Ok(TreeEvent::OutputClosed) | Err(_));
        }
    }

    /// The time at which the command exceeds a limit if it prints nothing; `None` if there is no
    /// limit.
    fn end_of_limits(&self) -> Option<Instant> {
        let last = *self.last_output.lock();
        self.hard.into_iter().chain(self.idle.map(|idle| last + idle)).min()
    }

    /// The next time at which something must be done even without an event.
    fn next_deadline(&self, now: Instant) -> Instant {
        match self.phase {
            // Killing is repeated every 20 ms. A process may fork before it is killed.
            TreePhase::Leftovers { until: at } | TreePhase::Ending { kill_at: at } => {
                at.max(now + Duration::from_millis(20))
            }
            TreePhase::Running => self.end_of_limits().unwrap_or(now + Duration::from_secs(3600)),
        }
    }

    /// Sends a signal to the command's process group and to every descendant.
    fn signal_all(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.group, signal);
        for pid in descendants() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// True if processes of the command are left. The processes that make a world do not count.
    fn any_leftovers(&self) -> bool {
        if self.is_in_world { descendants().len() > PROCESSES_OF_A_WORLD } else { self.any_left() }
    }

    fn any_left(&self) -> bool {
        if cfg!(target_os = "linux") {
            !descendants().is_empty()
        } else {
            rustix::process::test_kill_process_group(self.group).is_ok()
        }
    }
}
