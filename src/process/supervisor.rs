//! The supervising process: git-frites starts itself once for each command of the user's. That
//! process starts the command, stores its output, and ends its whole tree.
//!
//! The supervisor is a separate process because on Linux `PR_SET_CHILD_SUBREAPER` gives it every
//! descendant that loses its parent, even after `setsid` and a double fork: it is the only place
//! that can find all of them. Its standard input is a pipe that git-frites holds. End of file means
//! that git-frites is gone, for whatever reason, and then nothing may survive (GIT-FACTS,
//! "Processes"). On other systems only the command's process group is ended: a descendant that left
//! the group with `setsid` escapes.
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

/// The time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);

/// The time in which processes may end by themselves after their command before they count as left
/// behind: `git commit` leaves its maintenance running for a moment, and most shells a helper or
/// two.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_millis(250);

/// The time between SIGTERM and SIGKILL for processes that were left behind.
const GRACE_FOR_LEFTOVERS: Duration = Duration::from_millis(300);

/// The bytes that git-frites sends down the pipe.
pub mod order {
    /// End the tree politely: SIGTERM, and SIGKILL after the grace.
    pub const TERMINATE: u8 = b't';
    /// End the tree now: SIGKILL.
    pub const KILL: u8 = b'k';
    /// Stop the tree and the clocks of its time limits.
    pub const STOP: u8 = b's';
    /// Let the tree and the clocks go on.
    pub const CONTINUE: u8 = b'c';
}

/// The supervisor's arguments: the command to supervise, with its log and its limits.
pub struct SupervisorArguments<'a> {
    /// The file for the command's output.
    pub log: &'a Path,
    /// The command's standard input; nothing if none.
    pub stdin: Option<&'a Path>,
    /// The time limit.
    pub hard: Option<Duration>,
    /// The time limit between two bytes of output.
    pub idle: Option<Duration>,
}

impl SupervisorArguments<'_> {
    /// The arguments before the command's own.
    pub fn words(&self) -> Vec<OsString> {
        let millis = |d: Option<Duration>| {
            d.map_or_else(|| "-".into(), |d| d.as_millis().to_string().into())
        };
        let stdin = self.stdin.unwrap_or(Path::new("/dev/null"));
        vec![VERB.into(), self.log.into(), stdin.into(), millis(self.hard), millis(self.idle)]
    }
}

/// The supervisor's answer on its standard output.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SupervisorReport {
    /// The command's exit code.
    pub code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The reason why the command could not be started.
    pub reason: Option<String>,
    /// True if the command exceeded a time limit.
    pub timed_out: bool,
    /// True if git-frites ordered the command's end.
    pub cancelled: bool,
    /// True if the command left processes behind when it ended by itself.
    pub leaky: bool,
}

/// Something that happened to the tree, or an order about it.
enum TreeEvent {
    Order(u8),
    /// git-frites is gone.
    Orphaned,
    /// The command itself has ended.
    Exited(WaitStatus),
    NoChildren,
    OutputClosed,
}

/// The stages of a tree's life.
#[derive(Clone, Copy)]
enum TreePhase {
    /// The command runs.
    Running,
    /// The command has ended by itself, and its leftovers have until then to end as well.
    Leftovers { until: Instant },
    /// The tree was asked to end, and is killed then.
    Ending { kill_at: Instant },
}

/// The supervisor's whole life. `arguments` are those after [`VERB`].
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [log, stdin, hard, idle, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    let report =
        match supervise(log.as_ref(), stdin.as_ref(), limit(hard), limit(idle), program, rest) {
            Ok(Some(report)) => report,
            Ok(None) => return ExitCode::FAILURE,
            Err(e) => SupervisorReport {
                reason: Some(crate::error::describe(&e)),
                ..SupervisorReport::default()
            },
        };
    let text = serde_json::to_string(&report).unwrap_or_default();
    // If nobody reads the report, git-frites is gone: that is no error.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn limit(text: &OsStr) -> Option<Duration> {
    text.to_str()?.parse().ok().map(Duration::from_millis)
}

/// Runs the command until it and all its descendants have ended. Gives none if git-frites is gone.
fn supervise(
    log: &Path,
    stdin: &Path,
    hard: Option<Duration>,
    idle: Option<Duration>,
    program: &OsStr,
    arguments: &[OsString],
) -> io::Result<Option<SupervisorReport>> {
    adopt_orphans()?;
    let mut log = Capped::create(log)?;
    let (output, input) = io::pipe()?;
    let mut command = Command::new(program);
    // The command gets its own process group, so that a signal to it cannot reach us.
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
    let last_output = Arc::new(Mutex::new(Instant::now()));
    let (sender, events) = channel();
    thread::spawn({
        let sender = sender.clone();
        move || listen(&sender)
    });
    thread::spawn({
        let sender = sender.clone();
        move || reap(group, &sender)
    });
    let pump = thread::spawn({
        let last_output = last_output.clone();
        move || pump(output, log, &last_output, &sender)
    });
    let mut tree = SupervisedTree {
        group,
        events,
        phase: TreePhase::Running,
        stopped_at: None,
        output_open: true,
        orphaned: false,
        last_output,
        hard: hard.map(|d| Instant::now() + d),
        idle,
        report: SupervisorReport::default(),
    };
    tree.follow_to_its_end();
    // A process that still holds the output is out of our reach: it got the descriptor from another
    // process.
    if tree.output_closes_within(Duration::from_millis(500)) {
        let _ = pump.join();
    }
    Ok((!tree.orphaned).then_some(tree.report))
}

/// A command and its descendants.
struct SupervisedTree {
    group: Pid,
    events: Receiver<TreeEvent>,
    phase: TreePhase,
    /// The time since which the tree is stopped; none if it runs.
    stopped_at: Option<Instant>,
    output_open: bool,
    /// True once git-frites is gone.
    orphaned: bool,
    last_output: Arc<Mutex<Instant>>,
    /// The end of the time limit.
    hard: Option<Instant>,
    idle: Option<Duration>,
    report: SupervisorReport,
}

impl SupervisedTree {
    fn follow_to_its_end(&mut self) {
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
                Ok(TreeEvent::Exited(status)) => {
                    self.report.code = status.exit_status();
                    self.report.signal = status.terminating_signal();
                    if let TreePhase::Running = self.phase {
                        let until = Instant::now() + PATIENCE_WITH_LEFTOVERS;
                        self.phase = TreePhase::Leftovers { until };
                    }
                }
                // Orphans are our children on Linux alone: elsewhere the group counts.
                Ok(TreeEvent::NoChildren) if cfg!(target_os = "linux") || !self.any_left() => {
                    return;
                }
                Ok(TreeEvent::NoChildren) => {}
                Ok(TreeEvent::OutputClosed) => self.output_open = false,
                Err(RecvTimeoutError::Timeout) if self.has_exited() && !self.any_left() => return,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn has_exited(&self) -> bool {
        self.report.code.is_some() || self.report.signal.is_some()
    }

    /// Ends what has run out of time.
    fn enforce_limits(&mut self, now: Instant) {
        match self.phase {
            TreePhase::Running if self.is_overdue(now) => {
                self.report.timed_out = true;
                self.terminate(now + GRACE);
            }
            TreePhase::Leftovers { until } if until <= now && self.any_left() => {
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
            self.phase = TreePhase::Ending { kill_at: now };
        } else if !matches!(self.phase, TreePhase::Ending { .. }) {
            self.terminate(now + GRACE);
        }
        // A stopped process does not see SIGTERM before it goes on.
        self.resume();
    }

    /// Stops the tree, as Ctrl-Z does with a shell's job, and the clocks of its limits.
    fn stop(&mut self) {
        if self.stopped_at.is_some() {
            return;
        }
        self.stopped_at = Some(Instant::now());
        // A tree may fork while it is being stopped.
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

    /// Lets a stopped tree go on. The time during which it was stopped counts for no limit.
    fn resume(&mut self) {
        let Some(since) = self.stopped_at.take() else { return };
        let pause = since.elapsed();
        self.hard = self.hard.map(|at| at + pause);
        *self.last_output.lock().unwrap_or_else(PoisonError::into_inner) += pause;
        match &mut self.phase {
            TreePhase::Running => {}
            TreePhase::Leftovers { until: at } | TreePhase::Ending { kill_at: at } => *at += pause,
        }
        self.signal_all(Signal::CONT);
    }

    fn output_closes_within(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut open = self.output_open;
        while open {
            match self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(TreeEvent::OutputClosed) => open = false,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// The time at which the command will have printed nothing for too long; none without such a
    /// limit.
    fn idle_end(&self) -> Option<Instant> {
        let last = *self.last_output.lock().unwrap_or_else(PoisonError::into_inner);
        self.idle.map(|idle| last + idle)
    }

    fn is_overdue(&self, now: Instant) -> bool {
        self.hard.into_iter().chain(self.idle_end()).any(|at| at <= now)
    }

    /// The time until which only an event matters.
    fn next_deadline(&self, now: Instant) -> Instant {
        match self.phase {
            // Killing is repeated: a tree may fork while it is being killed.
            TreePhase::Leftovers { until: at } | TreePhase::Ending { kill_at: at } => {
                at.max(now + Duration::from_millis(20))
            }
            TreePhase::Running => {
                let limits = self.hard.into_iter().chain(self.idle_end());
                limits.min().unwrap_or(now + Duration::from_secs(3600))
            }
        }
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

/// Passes on the orders of git-frites. The end of the pipe means that git-frites is gone.
fn listen(sender: &Sender<TreeEvent>) {
    let mut byte = [0];
    while io::stdin().lock().read_exact(&mut byte).is_ok() {
        let _ = sender.send(TreeEvent::Order(byte[0]));
    }
    let _ = sender.send(TreeEvent::Orphaned);
}

/// Waits for every child, adopted ones included, until there is none.
fn reap(command: Pid, sender: &Sender<TreeEvent>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                drop(sender.send(TreeEvent::Exited(status)));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(TreeEvent::NoChildren);
}

/// Moves the output into the log until no process holds the pipe any more.
fn pump(
    mut output: io::PipeReader,
    mut log: Capped,
    last_output: &Mutex<Instant>,
    sender: &Sender<TreeEvent>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                *last_output.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                // A full disk must not stop the command: output that cannot be stored is dropped.
                let _ = log.write(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = log.finish();
    let _ = sender.send(TreeEvent::OutputClosed);
}

/// Makes this process the parent of every descendant that loses its own parent. Only Linux can do
/// that.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Does nothing: other systems give orphans to the init process.
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

/// Every living process, from `/proc`; none on systems without it.
fn processes() -> Vec<Process> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        // The name in parentheses may itself hold a `)`: the fields begin after the last one.
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

/// Every living descendant of this process, from `/proc`; none on systems without it.
fn descendants() -> Vec<Pid> {
    below(&processes(), rustix::process::getpid().as_raw_nonzero().get())
}

/// Kills the processes that a killed supervisor left behind: since [`adopt_orphans`] they are our
/// children. They are in a group of their own, and are no supervisors, nor about to become one.
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
