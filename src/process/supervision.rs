//! Starts a supervisor, and waits for its report. If the supervisor fails to end its processes,
//! ends them.
//!
//! A command can stop or kill its supervisor. So git-frites continues a stopped supervisor, and has
//! its own time limit for the supervisor.
use std::io::{self, PipeReader, Read};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use duct::{Expression, Handle};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::process::descendants;
use crate::process::interrupt::{self, Cancel};
use crate::process::protocol::SupervisorReport;
use crate::process::supervised_tree::GRACE;

/// The time between two checks of a running supervisor.
const TICK: Duration = Duration::from_millis(500);

/// The time that a supervisor has for its report after the command's time limit and the grace
/// period.
const MARGIN: Duration = Duration::from_secs(2);

/// The longest wait for the end of a supervisor's output after the supervisor has ended. Another
/// process may keep the output open.
const DRAIN: Duration = Duration::from_millis(500);

/// The longest report, in bytes. A command can write to its supervisor's output, so there is a
/// limit.
const LONGEST_REPORT: usize = 64 * 1024;

/// A supervisor that was started.
pub(super) struct Supervision {
    handle: Handle,
    /// The id of the supervisor's process.
    pub(super) pid: Pid,
    output: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when the supervisor's output has ended.
    ended: Receiver<()>,
}

/// The report of a supervisor, or the reason why there is none.
pub(super) enum Answer {
    Report(SupervisorReport),
    /// The command exceeded its time limit, and the supervisor did not end it. So git-frites has
    /// ended both.
    Overdue,
    /// The supervisor ended without a report. The text says how it ended.
    Nothing(String),
}

impl Supervision {
    /// Starts a supervisor, and collects its standard output.
    pub(super) fn start(expression: &Expression) -> io::Result<Supervision> {
        let (report, input) = io::pipe()?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = channel();
        thread::Builder::new().spawn({
            let output = output.clone();
            move || {
                collect(report, &output);
                drop(sender);
            }
        })?;
        let mut supervisors = descendants::SUPERVISORS.lock();
        let handle = expression.stdout_file(input).start()?;
        let pid = handle.pids().first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("the new process has no id"))?;
        supervisors.insert(pid.as_raw_nonzero().get());
        Ok(Supervision { handle, pid, output, ended })
    }

    /// Waits for the end of the command and of its whole tree. `hard` is the command's time limit.
    pub(super) fn answer(self, hard: Option<Duration>, cancel: &Cancel) -> io::Result<Answer> {
        let (status, overdue) = self.wait(hard, cancel)?;
        descendants::SUPERVISORS.lock().remove(&self.pid.as_raw_nonzero().get());
        // A command could write a report to its supervisor's standard output and then kill the
        // supervisor. So a report is used only if the supervisor has ended by itself.
        if status.success()
            && let Some(report) = self.report()
        {
            return Ok(Answer::Report(report));
        }
        descendants::end_strays();
        Ok(if overdue { Answer::Overdue } else { Answer::Nothing(describe(status)) })
    }

    /// Waits until the supervisor ends. If it is overdue, kills it and returns true.
    fn wait(&self, hard: Option<Duration>, cancel: &Cancel) -> io::Result<(ExitStatus, bool)> {
        // The time during which git-frites itself ran. A longer tick counts only as `TICK`:
        // git-frites was stopped (Ctrl-Z) or the machine slept, and the supervisor did not run,
        // either.
        let mut ran = Duration::ZERO;
        let mut ran_before_end = None;
        loop {
            let began = Instant::now();
            if let Some(output) = self.handle.wait_timeout(TICK)? {
                return Ok((output.status, false));
            }
            ran += began.elapsed().min(TICK);
            self.resume_if_stopped();
            if interrupt::signal().is_some() || cancel.is_cancelled() {
                ran_before_end.get_or_insert(ran);
            }
            let ends = hard.into_iter().chain(ran_before_end);
            if ends.min().is_some_and(|end| ran > end + GRACE + MARGIN) {
                tracing::debug!(pid = self.pid.as_raw_nonzero(), "the supervisor is overdue");
                self.handle.kill()?;
                return Ok((self.handle.wait()?.status, true));
            }
        }
    }

    /// Continues the supervisor if it is stopped. git-frites itself never stops it, but a command
    /// can.
    fn resume_if_stopped(&self) {
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if let Ok(Some(status)) = rustix::process::waitid(WaitId::Pid(self.pid), stopped)
            && status.stopped()
        {
            tracing::debug!(pid = self.pid.as_raw_nonzero(), "the supervisor was stopped");
            let _ = rustix::process::kill_process(self.pid, Signal::CONT);
        }
    }

    fn report(&self) -> Option<SupervisorReport> {
        // No message is ever sent. This returns when the output ends, or after `DRAIN` if another
        // process keeps the output open.
        let _ = self.ended.recv_timeout(DRAIN);
        serde_json::from_slice(&self.output.lock()).ok()
    }
}

/// Reads the output to its end. Keeps about as many bytes as the longest report has.
fn collect(mut from: PipeReader, output: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                let mut output = output.lock();
                if output.len() <= LONGEST_REPORT {
                    output.extend_from_slice(&buffer[..n]);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Says how a supervisor without a report has ended.
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) if code != 0 => format!("ended with exit code {code}"),
        _ => "ended".to_owned(),
    }
}
