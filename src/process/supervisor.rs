//! The supervising process: git-frites starts itself once for each command of the user's, and that
//! process starts the command, keeps its output, and ends its whole tree.
//!
//! A process of its own, because on Linux `PR_SET_CHILD_SUBREAPER` hands it every descendant that loses
//! its parent, also after `setsid` and a double fork: it is the one place from which all of them can be
//! found. Its standard input is a pipe that git-frites holds; end of file means that git-frites is gone,
//! however it went, and then nothing may survive (GIT-FACTS, "Processes"). Elsewhere than on Linux only
//! the command's process group is ended: a descendant that left it with `setsid` escapes.
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use crate::process::capped::Capped;

/// The hidden first argument that makes git-frites a supervisor.
pub const VERB: &str = "__supervise";

/// How long a tree may take to end itself after SIGTERM.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long what a command left behind may take to end by itself before it counts as left behind: `git commit`
/// leaves its maintenance for a moment, and most shells a helper or two.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_millis(250);

/// How long what is still there then may take to end itself after SIGTERM.
const GRACE_FOR_LEFTOVERS: Duration = Duration::from_millis(300);

/// What git-frites sends down the pipe.
pub mod order {
    /// End the tree politely: SIGTERM, and SIGKILL after the grace.
    pub const TERMINATE: u8 = b't';
    /// End it now.
    pub const KILL: u8 = b'k';
}

/// What to supervise, as arguments of the supervisor.
pub struct SupervisorOptions<'a> {
    /// Where the output goes.
    pub log: &'a Path,
    /// What the command reads.
    pub stdin: Option<&'a Path>,
    /// How long the command may take in all.
    pub hard: Option<Duration>,
    /// How long it may be silent.
    pub idle: Option<Duration>,
}

impl SupervisorOptions<'_> {
    /// The arguments before the command's own.
    pub fn arguments(&self) -> Vec<OsString> {
        let millis = |d: Option<Duration>| {
            d.map_or_else(|| "-".into(), |d| d.as_millis().to_string().into())
        };
        let stdin = self.stdin.unwrap_or(Path::new("/dev/null"));
        vec![VERB.into(), self.log.into(), stdin.into(), millis(self.hard), millis(self.idle)]
    }
}

/// What the supervisor answers on its standard output.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The command's exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it could not be started.
    pub reason: Option<String>,
    /// Whether it took, or was silent, too long.
    pub timed_out: bool,
    /// Whether git-frites ordered its end.
    pub cancelled: bool,
    /// Whether it left processes behind when it ended by itself.
    pub leaky: bool,
}

enum Message {
    Order(u8),
    Orphaned,
    Exited(WaitStatus),
    NoChildren,
    OutputClosed,
}

/// The supervisor's whole life. `arguments` are those after [`VERB`].
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [log, stdin, hard, idle, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    let report =
        match supervise(log.as_ref(), stdin.as_ref(), limit(hard), limit(idle), program, rest) {
            Ok(Some(report)) => report,
            Ok(None) => return ExitCode::FAILURE,
            Err(e) => Report { reason: Some(crate::error::describe(&e)), ..Report::default() },
        };
    let text = serde_json::to_string(&report).unwrap_or_default();
    // Nobody to tell is no error: then git-frites is gone.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn limit(text: &OsStr) -> Option<Duration> {
    text.to_str()?.parse().ok().map(Duration::from_millis)
}

/// Runs the command to its end and the end of all that it started; none if git-frites went away.
fn supervise(
    log: &Path,
    stdin: &Path,
    hard: Option<Duration>,
    idle: Option<Duration>,
    program: &OsStr,
    arguments: &[OsString],
) -> io::Result<Option<Report>> {
    adopt_orphans()?;
    let mut log = Capped::create(log)?;
    let (output, input) = io::pipe()?;
    let mut command = Command::new(program);
    // A group of its own, so that a signal to it cannot reach us.
    command
        .args(arguments)
        .stdin(File::open(stdin)?)
        .stdout(input.try_clone()?)
        .stderr(input)
        .process_group(0);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let line = format!(
                "git-frites: could not start {}: {}\n",
                program.display(),
                crate::error::describe(&e)
            );
            log.write(line.as_bytes())?;
            return Err(e);
        }
    };
    drop(command); // and with it our copies of the pipe's other end
    let group = Pid::from_child(&child);
    let heard = Arc::new(Mutex::new(Instant::now()));
    let (sender, messages) = channel();
    thread::spawn({
        let sender = sender.clone();
        move || listen(&sender)
    });
    thread::spawn({
        let sender = sender.clone();
        move || reap(group, &sender)
    });
    let pump = thread::spawn({
        let heard = heard.clone();
        move || pump(output, log, &heard, &sender)
    });
    let mut watch = Watch {
        group,
        messages,
        heard,
        hard: hard.map(|d| Instant::now() + d),
        idle,
        report: Report::default(),
    };
    let orphaned = watch.until_all_are_gone();
    // Whoever still holds the output is out of our reach (it got the descriptor from another process).
    if watch.output_closes_within(Duration::from_millis(500)) {
        let _ = pump.join();
    }
    Ok((!orphaned).then_some(watch.report))
}

struct Watch {
    group: Pid,
    messages: Receiver<Message>,
    heard: Arc<Mutex<Instant>>,
    hard: Option<Instant>,
    idle: Option<Duration>,
    report: Report,
}

impl Watch {
    /// Follows the tree to its end; gives whether git-frites went away in between.
    fn until_all_are_gone(&mut self) -> bool {
        let mut orphaned = false;
        let mut exited = false;
        let mut output_open = true;
        // Once the command has ended and left something behind: when that is ended, too.
        let mut leave_at: Option<Instant> = None;
        // Once the end is ordered: when to stop asking and kill.
        let mut kill_at: Option<Instant> = None;
        loop {
            let now = Instant::now();
            if kill_at.is_some_and(|at| at <= now) {
                self.signal_all(Signal::KILL);
            } else if kill_at.is_none() && leave_at.is_some_and(|at| at <= now) && self.any_left() {
                self.report.leaky = true;
                self.signal_all(Signal::TERM);
                kill_at = Some(now + GRACE_FOR_LEFTOVERS);
            } else if kill_at.is_none() && !exited && self.is_overdue(now) {
                self.report.timed_out = true;
                self.signal_all(Signal::TERM);
                kill_at = Some(now + GRACE);
            }
            match self.messages.recv_timeout(self.patience(now, kill_at, leave_at)) {
                Ok(Message::Order(order)) => {
                    self.report.cancelled = !exited || self.report.cancelled;
                    if order == order::KILL {
                        kill_at = Some(now);
                    } else if kill_at.is_none() {
                        self.signal_all(Signal::TERM);
                        kill_at = Some(now + GRACE);
                    }
                }
                Ok(Message::Orphaned) => {
                    orphaned = true;
                    kill_at = Some(now);
                }
                Ok(Message::Exited(status)) => {
                    exited = true;
                    (self.report.code, self.report.signal) =
                        (status.exit_status(), status.terminating_signal());
                    leave_at = Some(Instant::now() + PATIENCE_WITH_LEFTOVERS);
                }
                Ok(Message::NoChildren) => {
                    // Elsewhere than on Linux orphans are not our children: the group tells.
                    if cfg!(target_os = "linux") || !self.any_left() {
                        self.remember_output(output_open);
                        return orphaned;
                    }
                }
                Ok(Message::OutputClosed) => output_open = false,
                Err(RecvTimeoutError::Timeout) => {
                    if exited && !self.any_left() {
                        self.remember_output(output_open);
                        return orphaned;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return orphaned,
            }
        }
    }

    /// Once the output is closed there is no message to wait for any more.
    fn remember_output(&mut self, open: bool) {
        if !open {
            let (sender, messages) = channel();
            let _ = sender.send(Message::OutputClosed);
            self.messages = messages;
        }
    }

    fn output_closes_within(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            match self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Message::OutputClosed) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    fn last_heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_overdue(&self, now: Instant) -> bool {
        self.hard.is_some_and(|at| at <= now)
            || self.idle.is_some_and(|idle| self.last_heard() + idle <= now)
    }

    /// How long nothing needs to be looked at.
    fn patience(
        &self,
        now: Instant,
        kill_at: Option<Instant>,
        leave_at: Option<Instant>,
    ) -> Duration {
        let next = match (kill_at, leave_at) {
            // Killing is repeated: a tree may fork while it is being killed.
            (Some(at), _) | (None, Some(at)) => at.max(now + Duration::from_millis(20)),
            (None, None) => {
                let idle = self.idle.map(|idle| self.last_heard() + idle);
                [self.hard, idle]
                    .into_iter()
                    .flatten()
                    .min()
                    .unwrap_or(now + Duration::from_secs(3600))
            }
        };
        next.saturating_duration_since(now)
    }

    /// Signals the command's group and every descendant.
    fn signal_all(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.group, signal);
        for pid in descendants() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn any_left(&self) -> bool {
        if cfg!(target_os = "linux") {
            !descendants().is_empty()
        } else {
            rustix::process::test_kill_process_group(self.group).is_ok()
        }
    }
}

/// Passes git-frites' orders on; the end of the pipe is the last.
fn listen(sender: &Sender<Message>) {
    let mut byte = [0];
    while io::stdin().lock().read_exact(&mut byte).is_ok() {
        let _ = sender.send(Message::Order(byte[0]));
    }
    let _ = sender.send(Message::Orphaned);
}

/// Waits for every child, adopted ones included, until there is none.
fn reap(command: Pid, sender: &Sender<Message>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => drop(sender.send(Message::Exited(status))),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(Message::NoChildren);
}

/// Moves the output into the log until nobody holds the pipe any more.
fn pump(
    mut output: io::PipeReader,
    mut log: Capped,
    heard: &Mutex<Instant>,
    sender: &Sender<Message>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                // A full disk must not stop the command: what cannot be kept is read and dropped.
                let _ = log.write(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = log.finish();
    let _ = sender.send(Message::OutputClosed);
}

/// Makes this process the parent of every descendant that loses its own. Linux alone has that.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Elsewhere orphans are nobody's that we know.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// A living process: its id, its parent's, its group's.
struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

/// Every living process, by `/proc`; none where there is no such thing.
fn processes() -> Vec<Process> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything, also `)`: the fields begin after the last one.
        let after = stat.iter().rposition(|b| *b == b')').map_or(0, |at| at + 1);
        let fields = String::from_utf8_lossy(&stat[after..]).into_owned();
        let mut fields = fields.split_whitespace();
        let state = fields.next();
        let mut number = || fields.next().and_then(|n| n.parse().ok());
        if let (Some(state), Some(parent), Some(group)) = (state, number(), number())
            && !matches!(state, "Z" | "X")
        {
            found.push(Process { id, parent, group });
        }
    }
    found
}

/// The living descendants of a process.
fn below(processes: &[Process], ancestor: i32) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut wanted = vec![ancestor];
    while let Some(parent) = wanted.pop() {
        for process in processes.iter().filter(|p| p.parent == parent) {
            wanted.push(process.id);
            found.extend(Pid::from_raw(process.id));
        }
    }
    found
}

/// Every living descendant of this process, by `/proc`; none where there is no such thing.
fn descendants() -> Vec<Pid> {
    below(&processes(), rustix::process::getpid().as_raw_nonzero().get())
}

/// Kills what a supervisor that was killed has left: children of ours that are in a group of their own, and neither
/// supervisors nor about to become one. They are ours since [`adopt_orphans`].
pub fn end_strays() {
    let own = std::fs::read_link("/proc/self/exe").ok();
    let (us, group) = (rustix::process::getpid(), rustix::process::getpgrp());
    let raw = |pid: Pid| pid.as_raw_nonzero().get();
    // A tree may fork while it is being killed.
    for _ in 0..100 {
        let all = processes();
        let strays = all.iter().filter(|p| p.parent == raw(us) && p.group != raw(group));
        let strays: Vec<i32> = strays
            .map(|p| p.id)
            .filter(|id| std::fs::read_link(format!("/proc/{id}/exe")).ok() != own)
            .collect();
        if strays.is_empty() {
            return;
        }
        for pid in
            strays.iter().flat_map(|id| below(&all, *id).into_iter().chain(Pid::from_raw(*id)))
        {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(10));
    }
}
