//! The work of git-frites itself in supervision: starts a supervisor, waits for its report, and ends the
//! whole tree if the supervisor does not.
//!
//! A command can stop or kill its supervisor. So git-frites lets a stopped one go on, and has a
//! time limit of its own.
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

/// The time between two looks at a supervisor that runs.
const TICK: Duration = Duration::from_millis(500);

/// The time for its report that a supervisor has beyond the command's limit and the grace period.
const MARGIN: Duration = Duration::from_secs(2);

/// The time within which the output of a killed supervisor ends, unless another process holds it open.
const DRAIN: Duration = Duration::from_millis(500);

/// The longest report that counts. A command can write to its supervisor's output.
const LONGEST_REPORT: usize = 64 * 1024;

/// A supervisor that was started.
pub(super) struct Supervision {
    handle: Handle,
    pid: Pid,
    output: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when the output has ended.
    ended: Receiver<()>,
}

/// The answer of a supervisor, or the reason why there is none.
pub(super) enum Answer {
    /// Its report.
    Report(SupervisorReport),
    /// The command exceeded its time limit, and the supervisor did not end it. git-frites did.
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
        let mut supervisors = descendants::supervisors();
        let handle = expression.stdout_file(input).start()?;
        let pid = handle.pids().first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("the new process has no id"))?;
        supervisors.insert(pid.as_raw_nonzero().get());
        Ok(Supervision { handle, pid, output, ended })
    }

    /// The supervisor's process.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for the end of the command and of its whole tree. `hard` is the command's time limit.
    pub(super) fn answer(self, hard: Option<Duration>, cancel: &Cancel) -> io::Result<Answer> {
        let (status, overdue) = self.wait(hard, cancel)?;
        descendants::supervisors().remove(&self.pid.as_raw_nonzero().get());
        // A command can write to its supervisor's standard output and then kill it: the report
        // counts only if the supervisor ended by itself.
        if status.success()
            && let Some(report) = self.report()
        {
            return Ok(Answer::Report(report));
        }
        descendants::end_strays();
        Ok(if overdue { Answer::Overdue } else { Answer::Nothing(describe(status)) })
    }

    /// Waits for the supervisor's end. If it is overdue, kills it and gives true.
    fn wait(&self, hard: Option<Duration>, cancel: &Cancel) -> io::Result<(ExitStatus, bool)> {
        // The time during which git-frites itself ran. If a tick took longer than it should, git-frites was
        // stopped (Ctrl-Z) or the machine slept, and the supervisor's clock stood still, too.
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

    /// Lets the supervisor go on if somebody else has stopped it; git-frites itself never does.
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
        // No message is ever sent. This returns at the end of the output, or after `DRAIN` if another
        // process still holds it open.
        let _ = self.ended.recv_timeout(DRAIN);
        serde_json::from_slice(&self.output.lock()).ok()
    }
}

/// Reads the output to its end, and keeps as much as a report can have.
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

/// How a supervisor ended that gave no report.
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) if code != 0 => format!("ended with exit code {code}"),
        _ => "ended".to_owned(),
    }
}
