//! The supervising process. For each user's command, git-frites starts itself again, as a
//! supervisor. The supervisor starts the command, writes its output to a log, and ends the command
//! with all its descendants.
//!
//! The supervisor is a separate process so that it can find all descendants of one command. On
//! Linux, it becomes the parent of every descendant that loses its own parent
//! (`PR_SET_CHILD_SUBREAPER`). This works even after `setsid` and a double fork. On other systems,
//! only the command's process group is ended. A descendant that left the group with `setsid`
//! escapes.
//!
//! The supervisor's standard input is a pipe that git-frites holds. End of file means that
//! git-frites has ended or was killed. Then the supervisor ends everything (GIT-FACTS,
//! "Processes").
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions};
use serde_json::Value;
use signal_hook::consts::{
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};

use crate::error::describe;
use crate::fs::tree;
use crate::process::capped::Capped;
use crate::process::descendants::adopt_orphans;
use crate::process::interrupt::IgnoredSignals;
use crate::process::myself;
use crate::process::protocol::{Limits, RESERVED_SPACE, SupervisorReport, TooMuch};
use crate::process::running::{self, Role};
use crate::process::supervised_tree::{SupervisedTree, TreeEvent, TreePhase};
use crate::process::world_spec::{DiskLimit, RESTRICT_VERB, WorldMessage};

/// The main function of the supervisor. `arguments` are the arguments after
/// [`VERB`](super::protocol::VERB).
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [log, mark, stdin, hard, idle, niceness, verb, confinement, command @ ..] = arguments
    else {
        return ExitCode::from(2);
    };
    let limits = Limits { hard: limit(hard), idle: limit(idle), ..Limits::default() };
    let start = if verb == "-" { None } else { Some([verb, confinement]) };
    // A failure is ignored. A command with too large a share of the processors is better than no
    // command.
    let _ = niceness.to_str().and_then(|n| n.parse().ok()).map(rustix::process::nice);
    let report =
        match supervise([log.as_ref(), mark.as_ref()], stdin.as_ref(), limits, start, command) {
            Ok(Some(report)) => report,
            Ok(None) => return ExitCode::FAILURE,
            Err(e) => SupervisorReport { error: Some(describe(&e)), ..SupervisorReport::default() },
        };
    let text = serde_json::to_string(&report).unwrap_or_default();
    // If nobody reads the report, git-frites has ended or was killed. That is not an error here.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn limit(text: &OsStr) -> Option<Duration> {
    text.to_str()?.parse().ok().map(Duration::from_millis)
}

/// Runs the command until it and all its descendants have ended. Returns `None` if git-frites ended
/// or was killed before that.
fn supervise(
    [log, mark]: [&Path; 2],
    stdin: &Path,
    limits: Limits,
    confinement: Option<[&OsString; 2]>,
    words: &[OsString],
) -> io::Result<Option<SupervisorReport>> {
    let asked = outlive_signals()?;
    adopt_orphans()?;
    let mut log = Capped::create(log)?;
    let (group, output, status) = match start(stdin, confinement, words)? {
        Ok(started) => started,
        Err(message) => {
            let mut report = SupervisorReport::default();
            report.take(message);
            let reason = report.why_not_run().map_or("", String::as_str);
            log.write(not_started_line(words, reason).as_bytes());
            log.finish()?;
            return Ok(Some(report));
        }
    };
    running::note_process(mark, Role::Command, group);
    let log = Arc::new(Mutex::new(Some(log)));
    let last_output = Arc::new(Mutex::new(Instant::now()));
    let is_in_world = status.is_some();
    let disk = match confinement {
        Some([_, description]) => limit_in(description)?,
        None => None,
    };
    let (sender, events) = channel();
    let threads = send_events(&sender, group, disk.clone(), status).and_then(|()| {
        let log = log.clone();
        let last_output = last_output.clone();
        in_thread(move || pump(output, &log, &last_output, &sender))
    });
    if let Err(error) = threads {
        // Without these threads, nobody watches the command. So it is ended.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        return Err(error);
    }
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
        any_children: true,
        report: SupervisorReport::default(),
    };
    tree.follow_to_its_end();
    // If the output is still open, some process that is not our descendant got the descriptor and
    // holds it. We cannot end that process, so we do not wait longer.
    tree.wait_for_output(Duration::from_millis(500));
    // The thread that copies the output stores no more of it once its log is gone.
    let finished = log.lock().take().map_or(Ok(()), Capped::finish);
    tree.report.lost_output = finished.err().map(|e| describe(&e));
    // The command may have exceeded its disk limit after the last measurement.
    if let (Some(limit), None) = (&disk, tree.report.wrote_more_than) {
        tree.report.wrote_more_than = exceeded(limit);
    }
    tree.look_who_ended_it(&asked);
    tree.forget_late_refusal();
    Ok((!tree.orphaned).then_some(tree.report))
}

/// The group of a process that was started, the pipe with its output, and the status pipe. A world
/// reports over the status pipe how the command ended.
type Started = (Pid, io::PipeReader, Option<io::PipeReader>);

/// Starts the command, or the process that confines it.
fn start(
    stdin: &Path,
    confinement: Option<[&OsString; 2]>,
    words: &[OsString],
) -> io::Result<Result<Started, WorldMessage>> {
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
    // The command gets its own process group, so that a signal to that group cannot reach us. A
    // restricted process begins its own session instead. It could not do that if it led a group
    // already.
    if !is_restricted {
        command.process_group(0);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => return Ok(Err(WorldMessage::not_started(&e))),
    };
    // This closes our copies of the writing ends of the output pipe and the status pipe.
    drop(command);
    let mut status = status.map(|(status, _)| status);
    if is_restricted
        && let Some(status) = status.take()
        // A process that becomes the command closes the pipe without a message.
        && let Some(refusal) = read_message(status, "it could not be confined")
    {
        child.wait()?;
        return Ok(Err(refusal));
    }
    Ok(Ok((Pid::from_child(&child), output, status)))
}

/// Starts the threads that send events about the command and its tree. A world reports over the
/// pipe `status` how the command ended.
fn send_events(
    sender: &Sender<TreeEvent>,
    group: Pid,
    disk: Option<DiskLimit>,
    status: Option<io::PipeReader>,
) -> io::Result<()> {
    let [to_listen, to_reap, to_measure, to_read] = std::array::from_fn(|_| sender.clone());
    in_thread(move || listen(&to_listen))?;
    let command = status.is_none().then_some(group);
    in_thread(move || reap(command, &to_reap))?;
    if let Some(limit) = disk {
        in_thread(move || to_measure.send(TreeEvent::WroteTooMuch(wait_until_exceeded(&limit))))?;
    }
    match status {
        Some(status) => in_thread(move || read_status(status, &to_read)),
        None => Ok(()),
    }
}

/// Does this work in a new thread. Fails if the system allows no more threads.
fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<()> {
    Builder::new().spawn(work).map(drop)
}

/// The command as our own child.
fn direct(words: &[OsString]) -> io::Result<Command> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// The process that confines the command, and then starts it or becomes it. It writes a message to
/// the pipe `status` if it fails, or if a command that it started has ended.
fn confined(
    [verb, confinement]: [&OsString; 2],
    words: &[OsString],
    status: &io::PipeWriter,
) -> io::Result<Command> {
    // The new process inherits the descriptor, and gets its number as an argument.
    rustix::io::fcntl_setfd(status, FdFlags::empty())?;
    let number = status.as_raw_fd().to_string();
    let mut command = Command::new(myself());
    command.arg(verb).arg(&number).arg(confinement).args(words);
    Ok(command)
}

/// The line in the log about a command that could not be started.
pub fn not_started_line(words: &[OsString], reason: &str) -> String {
    let program = words.first().map(|word| word.display().to_string()).unwrap_or_default();
    format!("git-frites: could not start {program}: {reason}\n")
}

/// Makes this process survive signals that ask it to end. (Batch systems signal every process of a
/// job.) A supervisor takes orders only from its pipe, and must report how the command ended. The
/// returned number is the last such signal that was received, or 0 if there was none.
///
/// The signals are handled and not ignored, because handlers are not inherited. So the command has
/// the default actions. If this process ignores a signal from its start (`nohup`), the signal stays
/// ignored, here and in the command.
pub fn outlive_signals() -> io::Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    let ignored = IgnoredSignals::now();
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU] {
        if !ignored.contain(signal) {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, asked.clone(), number)?;
        }
    }
    Ok(asked)
}

/// Passes on the orders of git-frites as events. The end of the pipe means that git-frites has
/// ended or was killed.
fn listen(sender: &Sender<TreeEvent>) {
    let mut byte = [0];
    while io::stdin().lock().read_exact(&mut byte).is_ok() {
        let _ = sender.send(TreeEvent::Order(byte[0]));
    }
    let _ = sender.send(TreeEvent::Orphaned);
}

/// Waits for all children, including adopted ones, until there are none. `command` is the process
/// of the command, if that is our child.
fn reap(command: Option<Pid>, sender: &Sender<TreeEvent>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == command => {
                let _ = sender.send(TreeEvent::Command(WorldMessage::exited(status)));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(TreeEvent::NoChildren);
}

/// Waits for the message of a process that confines a command. If the message is a refusal,
/// `refused` says what failed. `None` if the process sent no valid message.
fn read_message(status: io::PipeReader, refused: &str) -> Option<WorldMessage> {
    let mut line = String::new();
    let _ = io::BufReader::new(status).read_line(&mut line);
    Some(match serde_json::from_str(&line).ok()? {
        WorldMessage::Refused { reason } => {
            WorldMessage::Refused { reason: format!("{refused}: {reason}") }
        }
        message => message,
    })
}

/// Waits for the message about the command in a world. Then sends the event that the command has
/// ended or was not run.
fn read_status(status: io::PipeReader, sender: &Sender<TreeEvent>) {
    let message = read_message(status, "its world could not be entered");
    let ended_early =
        || WorldMessage::Refused { reason: "its world ended before the command".to_owned() };
    let _ = sender.send(TreeEvent::Command(message.unwrap_or_else(ended_early)));
}

/// Copies the output to the log until no process holds the pipe open. If the disk is full, the
/// command goes on. Output that cannot be stored is lost.
fn pump(
    mut output: io::PipeReader,
    log: &Mutex<Option<Capped>>,
    last_output: &Mutex<Instant>,
    sender: &Sender<TreeEvent>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                *last_output.lock() = Instant::now();
                log.lock().iter_mut().for_each(|log| log.write(&buffer[..n]));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(TreeEvent::OutputClosed);
}

/// The shortest pause between two measurements.
const PAUSE: Duration = Duration::from_millis(200);

/// The pause between two looks at how many files the disk can take. One look takes a microsecond.
const GLANCE: Duration = Duration::from_millis(20);

/// Each pause is this many times as long as the measurement before it. So measuring takes little of
/// the time.
const SHARE: u32 = 20;

/// If the disk has room for fewer files than this, a command that has made more files than this is
/// ended. The disk limit alone would not do, because empty files take no space. On a small disk,
/// the number is a fifth of all files that the disk can have.
const RESERVED_FILES: u64 = 50_000;

/// The disk limit in the JSON description of a confinement; `None` if the confinement has no disk
/// limit.
fn limit_in(description: &OsStr) -> io::Result<Option<DiskLimit>> {
    let mut fields: Value = serde_json::from_str(&description.to_string_lossy())?;
    Ok(serde_json::from_value(fields["disk"].take())?)
}

/// Returns the limit that the command has exceeded. If the disk is nearly full, returns how much
/// the command has taken. `None` if the command has not taken too much.
fn exceeded(limit: &DiskLimit) -> Option<TooMuch> {
    let [bytes, files] = tree::disk_usage_and_files(&limit.dir);
    let bytes = bytes.saturating_sub(limit.before[0]);
    let files = files.saturating_sub(limit.before[1]);
    if bytes > limit.bytes {
        return Some(TooMuch { bytes: limit.bytes, files: None });
    }
    if bytes > RESERVED_SPACE
        && tree::free_space(&limit.dir).is_ok_and(|free| free < RESERVED_SPACE)
    {
        return Some(TooMuch { bytes, files: None });
    }
    let is_full = files_are_short(limit).is_some_and(|reserve| files > reserve);
    is_full.then_some(TooMuch { bytes, files: Some(files) })
}

/// The number of files for which room is reserved on the disk, if there is room for fewer.
/// Otherwise `None`.
fn files_are_short(limit: &DiskLimit) -> Option<u64> {
    let disk = rustix::fs::statvfs(&limit.dir).ok()?;
    // File systems without a limit, such as Btrfs, say 0.
    let reserve = RESERVED_FILES.min(disk.f_files / 5);
    (disk.f_favail < reserve).then_some(reserve)
}

/// Waits until [`exceeded`] returns a size, and returns it. This may take for ever. Begins with a
/// pause, because the space is measured anyway when the command has ended.
///
/// If the disk gets short of files, measures at once, because a command can make many files in a
/// moment.
fn wait_until_exceeded(limit: &DiskLimit) -> TooMuch {
    let mut pause = PAUSE;
    loop {
        let begin = Instant::now();
        let was_short = files_are_short(limit).is_some();
        while begin.elapsed() < pause && (was_short || files_are_short(limit).is_none()) {
            thread::sleep(GLANCE);
        }
        let start = Instant::now();
        if let Some(too_much) = exceeded(limit) {
            return too_much;
        }
        pause = PAUSE.max(start.elapsed() * SHARE);
    }
}
