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
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::{
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};

use crate::error::describe;
use crate::process::capped::Capped;
use crate::process::descendants::{adopt_orphans, descendants};
use crate::process::disk_watch;
use crate::process::interrupt;
use crate::process::own_program::myself;
use crate::process::protocol::{Limits, SupervisorReport, order};
use crate::process::survivors::{self, Role};
use crate::process::world_spec::{RESTRICT_VERB, WorldMessage};

/// The time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);

/// The time in which processes may end by themselves after their command before they count as left
/// behind: `git commit` leaves its maintenance running for a moment, and most shells a helper or
/// two.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_millis(250);

/// The time between the signals to a command and to git-frites, if both are meant.
const PATIENCE_WITH_SIGNALS: Duration = Duration::from_millis(250);

/// The time between SIGTERM and SIGKILL for processes that were left behind.
const GRACE_FOR_LEFTOVERS: Duration = Duration::from_millis(300);

/// The processes that make a world and start the command there: they end after all others.
const PROCESSES_OF_A_WORLD: usize = 2;

/// Something that happened to the tree, or an order about it.
enum TreeEvent {
    Order(u8),
    /// git-frites is gone.
    Orphaned,
    /// The command has taken more than so many bytes of disk space.
    WroteTooMuch(u64),
    /// The command itself has ended, with this exit code or by this signal.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The command could not be run, with the reason: it, or its world, did not start.
    NotRun(NotRun),
    NoChildren,
    OutputClosed,
}

/// The reason why a command was not run.
enum NotRun {
    /// The system refused to start it.
    NotStarted { reason: String, short_of_resources: bool },
    /// Its world could not be entered, or ended before the command.
    Refused(String),
}

impl NotRun {
    /// The report of a command that did not start. Fails if that was not the command's fault.
    fn report(self) -> io::Result<SupervisorReport> {
        match self {
            NotRun::NotStarted { reason, short_of_resources: false } => {
                Ok(SupervisorReport { reason: Some(reason), ..SupervisorReport::default() })
            }
            NotRun::NotStarted { reason, .. } | NotRun::Refused(reason) => {
                Err(io::Error::other(reason))
            }
        }
    }
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

/// The supervisor's whole life. `arguments` are those after the verb.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [log, mark, stdin, hard, idle, verb, confinement, command @ ..] = arguments else {
        return ExitCode::from(2);
    };
    let limits = Limits { hard: limit(hard), idle: limit(idle) };
    let start = if verb == "-" { None } else { Some([verb, confinement]) };
    let report =
        match supervise([log.as_ref(), mark.as_ref()], stdin.as_ref(), limits, start, command) {
            Ok(Some(report)) => report,
            Ok(None) => return ExitCode::FAILURE,
            Err(e) => SupervisorReport { error: Some(describe(&e)), ..SupervisorReport::default() },
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
    [log, mark]: [&Path; 2],
    stdin: &Path,
    limits: Limits,
    confinement: Option<[&OsString; 2]>,
    words: &[OsString],
) -> io::Result<Option<SupervisorReport>> {
    let asked = outlive_signals()?;
    adopt_orphans()?;
    let mut capped = Capped::create(log)?;
    let (output, input) = io::pipe()?;
    let (mut command, status) = match confinement {
        None => (direct(words)?, None),
        Some(start) => {
            let pipe = io::pipe()?;
            (confined(start, words, &pipe.1)?, Some(pipe))
        }
    };
    command.stdin(File::open(stdin)?).stdout(input.try_clone()?).stderr(input);
    let is_restricted = confinement.is_some_and(|[verb, _]| verb == RESTRICT_VERB);
    // The command gets its own process group, so that a signal to it cannot reach us. A restricted
    // process makes its own session, which the leader of a group cannot.
    if !is_restricted {
        command.process_group(0);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let (reason, short_of_resources) = (describe(&e), is_short_of_resources(&e));
            return not_run(NotRun::NotStarted { reason, short_of_resources }, words, &mut capped);
        }
    };
    drop(command); // and with it our copies of the output's other end
    let mut status = status.map(|(status, _)| status); // and of the status's
    if is_restricted
        && let Some(status) = status.take()
        && let Some(refusal) = refusal_of_restriction(status)
    {
        child.wait()?;
        return not_run(refusal, words, &mut capped);
    }
    let group = Pid::from_child(&child);
    survivors::note(mark, Role::Command, group);
    let last_output = Arc::new(Mutex::new(Instant::now()));
    let (sender, events) = channel();
    thread::spawn({
        let sender = sender.clone();
        move || listen(&sender)
    });
    thread::spawn({
        let sender = sender.clone();
        let command = status.is_none().then_some(group);
        move || reap(command, &sender)
    });
    let is_in_world = status.is_some();
    let disk = match confinement {
        Some([_, description]) => disk_watch::limit_in(description)?,
        None => None,
    };
    if let Some(limit) = disk.clone() {
        let sender = sender.clone();
        thread::spawn(move || sender.send(TreeEvent::WroteTooMuch(disk_watch::wait(&limit))));
    }
    if let Some(status) = status {
        let sender = sender.clone();
        thread::spawn(move || read_status(status, &sender));
    }
    let pump = thread::spawn({
        let last_output = last_output.clone();
        move || pump(output, capped, &last_output, &sender)
    });
    let mut tree = SupervisedTree {
        group,
        events,
        phase: TreePhase::Running,
        stopped_at: None,
        output_open: true,
        orphaned: false,
        last_output,
        hard: limits.hard.map(|d| Instant::now() + d),
        idle: limits.idle,
        is_in_world,
        not_run: None,
        any_children: true,
        report: SupervisorReport::default(),
    };
    tree.follow_to_its_end();
    // A process that still holds the output is out of our reach: it got the descriptor from another
    // process.
    if tree.output_closes_within(Duration::from_millis(500)) {
        let _ = pump.join();
    }
    // A quick command may have ended between two measurements.
    if let (Some(limit), None) = (&disk, tree.report.wrote_more_than) {
        tree.report.wrote_more_than = disk_watch::exceeded(limit);
    }
    tree.look_who_ended_it(&asked);
    tree.take_account_of_a_refusal()?;
    Ok((!tree.orphaned).then_some(tree.report))
}

/// The report of a command that was not run, which the log gets as well.
fn not_run(
    not_run: NotRun,
    words: &[OsString],
    log: &mut Capped,
) -> io::Result<Option<SupervisorReport>> {
    let (NotRun::NotStarted { reason, .. } | NotRun::Refused(reason)) = &not_run;
    log.write(not_started_line(words, reason).as_bytes())?;
    not_run.report().map(Some)
}

/// A command that is our own child.
fn direct(words: &[OsString]) -> io::Result<Command> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// The process that confines the command and starts it, or becomes it. It tells on the pipe what it
/// cannot do, and how a command ended that it started.
fn confined(
    [verb, confinement]: [&OsString; 2],
    words: &[OsString],
    status: &io::PipeWriter,
) -> io::Result<Command> {
    // The new process inherits the descriptor and finds it by its number.
    rustix::io::fcntl_setfd(status, FdFlags::empty())?;
    let number = status.as_raw_fd().to_string();
    let mut command = Command::new(myself());
    command.arg(verb).arg(&number).arg(confinement).args(words);
    Ok(command)
}

/// The line of the log about a command that could not be started.
pub fn not_started_line(words: &[OsString], reason: &str) -> String {
    let program = words.first().map(|word| word.display().to_string()).unwrap_or_default();
    format!("git-frites: could not start {program}: {reason}\n")
}

/// Lets this process live on when it gets a signal that asks it to end: its orders come down its
/// pipe, and it has to tell how the command ended. The returned number is the last such signal, 0
/// before the first.
///
/// A handler, unlike an ignored signal, is not inherited: the command has the default actions. A
/// signal that is ignored already stays ignored, here and in the command (`nohup`).
pub fn outlive_signals() -> io::Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU] {
        if !interrupt::is_ignored(signal) {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, asked.clone(), number)?;
        }
    }
    Ok(asked)
}

/// True if the system could not start a command for want of processes, memory or descriptors,
/// whatever the command is.
pub fn is_short_of_resources(e: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = e.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE))
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
    /// True if the command runs in a world of its own.
    is_in_world: bool,
    /// The reason why the command was not run, if it was not.
    not_run: Option<NotRun>,
    /// False once no descendant is left.
    any_children: bool,
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
                Ok(TreeEvent::WroteTooMuch(bytes)) => {
                    self.report.wrote_more_than.get_or_insert(bytes);
                    self.kill();
                }
                Ok(TreeEvent::Exited { code, signal }) => {
                    (self.report.code, self.report.signal) = (code, signal);
                    if let TreePhase::Running = self.phase {
                        let until = Instant::now() + PATIENCE_WITH_LEFTOVERS;
                        self.phase = TreePhase::Leftovers { until };
                    }
                }
                Ok(TreeEvent::NotRun(reason)) => self.not_run = Some(reason),
                // Orphans are our children on Linux alone: elsewhere the group counts.
                Ok(TreeEvent::NoChildren) => {
                    self.any_children = !cfg!(target_os = "linux") && self.any_left();
                }
                Ok(TreeEvent::OutputClosed) => self.output_open = false,
                Err(RecvTimeoutError::Timeout) if self.has_exited() && !self.any_left() => return,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // From a world, the end of the command arrives on another way than that of its
            // processes.
            if !self.any_children && (self.has_exited() || self.not_run.is_some()) {
                return;
            }
        }
    }

    fn has_exited(&self) -> bool {
        self.report.code.is_some() || self.report.signal.is_some()
    }

    /// Completes the report if the command was not run, and nobody had asked it to end.
    fn take_account_of_a_refusal(&mut self) -> io::Result<()> {
        let was_ended =
            self.report.timed_out || self.report.cancelled || self.report.wrote_more_than.is_some();
        if self.has_exited() || was_ended || self.orphaned {
            return Ok(());
        }
        if let Some(not_run) = self.not_run.take() {
            self.report.reason = not_run.report()?.reason;
        }
        Ok(())
    }

    /// Ends what has run out of time.
    fn enforce_limits(&mut self, now: Instant) {
        match self.phase {
            TreePhase::Running if self.is_overdue(now) => {
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
        // A stopped process does not see SIGTERM before it goes on.
        self.resume();
    }

    /// Ends the tree at once, stopped or not.
    fn kill(&mut self) {
        self.phase = TreePhase::Ending { kill_at: Instant::now() };
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

    /// After a signal to a whole job or service, the command may be the first to end: waits a
    /// moment for the same signal here, or for the order that follows from it.
    fn look_who_ended_it(&mut self, asked: &AtomicUsize) {
        let asks = |signal: &i32| [SIGTERM, SIGINT, SIGHUP, SIGQUIT].contains(signal);
        let signal = self.report.signal.or(self.report.code.map(|code| code - 128)).filter(asks);
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

    /// True if processes of the command are left, which are others than those of its world.
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

/// Passes on the orders of git-frites. The end of the pipe means that git-frites is gone.
fn listen(sender: &Sender<TreeEvent>) {
    let mut byte = [0];
    while io::stdin().lock().read_exact(&mut byte).is_ok() {
        let _ = sender.send(TreeEvent::Order(byte[0]));
    }
    let _ = sender.send(TreeEvent::Orphaned);
}

/// Waits for every child, adopted ones included, until there is none. `command` is the command
/// itself, if it is a child.
fn reap(command: Option<Pid>, sender: &Sender<TreeEvent>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == command => {
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                drop(sender.send(TreeEvent::Exited { code, signal }));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(TreeEvent::NoChildren);
}

/// The reason why a restricted process did not become the command; none once it did, because that
/// closes the pipe.
fn refusal_of_restriction(status: io::PipeReader) -> Option<NotRun> {
    match read_message(status)? {
        WorldMessage::NotStarted { reason, short_of_resources } => {
            Some(NotRun::NotStarted { reason, short_of_resources })
        }
        WorldMessage::Refused { reason } => {
            Some(NotRun::Refused(format!("it could not be confined: {reason}")))
        }
        WorldMessage::Exited { .. } => None,
    }
}

/// The message of a process that confines a command; none if it sends none.
fn read_message(status: io::PipeReader) -> Option<WorldMessage> {
    let mut line = String::new();
    let _ = io::BufReader::new(status).read_line(&mut line);
    serde_json::from_str(&line).ok()
}

/// Passes on how the command in a world ended.
fn read_status(status: io::PipeReader, sender: &Sender<TreeEvent>) {
    let event = match read_message(status) {
        Some(WorldMessage::Exited { code, signal }) => TreeEvent::Exited { code, signal },
        Some(WorldMessage::NotStarted { reason, short_of_resources }) => {
            TreeEvent::NotRun(NotRun::NotStarted { reason, short_of_resources })
        }
        Some(WorldMessage::Refused { reason }) => {
            TreeEvent::NotRun(NotRun::Refused(format!("its world could not be entered: {reason}")))
        }
        None => TreeEvent::NotRun(NotRun::Refused("its world ended before the command".to_owned())),
    };
    let _ = sender.send(event);
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
