//! The only module that starts a user's commands. Each command runs under a supervisor, and gets
//! its environment from a [`Policy`].
mod capped;
mod descendants;
pub mod environment;
pub mod interrupt;
mod paths;
pub mod ports;
pub mod processor_share;
pub mod protocol;
pub mod running;
mod supervised_tree;
mod supervision;
pub mod supervisor;
pub mod work_queue;
pub mod world_spec;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};

use crate::error::{Cause, Error, IoContext, Result};
use crate::model::env;
use crate::model::outcome::Outcome;
use crate::model::plain;
pub use crate::process::capped::{Follower, last_lines, last_words, lines_from, whole_log};
pub use crate::process::descendants::surrounding_logs;
use crate::process::environment::Policy;
use crate::process::interrupt::{Cancel, Listener};
pub use crate::process::protocol::Limits;
use crate::process::protocol::{SupervisorReport, VERB};
use crate::process::running::{Mark, Role};
use crate::process::supervision::{Answer, Supervision};
use crate::process::work_queue::WorkQueue;
use crate::process::world_spec::Confinement;

/// A user's command, ready to run in a worktree.
pub struct Job<'a> {
    /// The program and its arguments; never empty.
    pub argv: &'a [OsString],
    /// The directory in which the command runs.
    pub dir: &'a Path,
    /// Decides which of our own environment variables the command gets.
    pub policy: &'a Policy,
    /// Variables that are set in addition to those of `policy`.
    pub env: Vec<(String, OsString)>,
    /// Variables that the command must not get, even if `policy` passes them.
    pub hide: &'a [&'a str],
    /// The file for the command's standard input; /dev/null if `None`.
    pub stdin: Option<&'a Path>,
    /// The log file for the command's standard output and standard error. It gets the first and the
    /// last 4 MiB of the output.
    pub log: &'a Path,
    /// The command's time limits, and its share of the processor.
    pub limits: Limits,
    /// The confinement of the command. `None` if the command may do everything that git-frites may
    /// do.
    pub confinement: Option<&'a Confinement>,
}

/// How a command ended.
pub struct End {
    pub outcome: Outcome,
    /// True if the command was ended because git-frites was asked to stop, or because a caller
    /// cancelled it.
    pub cancelled: bool,
    /// True if the command left processes behind. They were ended.
    pub leaky: bool,
    /// The reason why a part of the command's output is not in its log, e.g. because the disk was
    /// full.
    pub lost_output: Option<String>,
    /// The wall-clock time that the command took.
    pub elapsed: Duration,
}

impl End {
    fn new(outcome: Outcome, elapsed: Duration) -> End {
        End { outcome, cancelled: false, leaky: false, lost_output: None, elapsed }
    }

    /// The end of a command that could not be started. `reason` says why.
    pub fn not_started(reason: String) -> End {
        End::new(Outcome::CouldNotStart { reason }, Duration::ZERO)
    }

    /// The end of a command that has no outcome, because it was asked to end.
    fn cancelled(elapsed: Duration) -> End {
        End { cancelled: true, ..End::new(Outcome::Skipped, elapsed) }
    }
}

/// Runs a job until its command and all processes that the command started have ended.
///
/// A command that cannot be started is no error: it has an [`Outcome`]. An error is a failure of
/// git-frites itself. Ctrl-C ends the command; see [`interrupt::signal`].
///
/// If nobody knows how the command ended, fails with [`Cause::EndUnknown`].
pub fn run(job: &Job<'_>) -> Result<End> {
    run_until(job, &Cancel::default())
}

/// Runs a job as [`run`] does. `cancel` can also end the command.
pub fn run_until(job: &Job<'_>, cancel: &Cancel) -> Result<End> {
    let failed = || "could not start".to_owned();
    interrupt::listen();
    // The children of a killed supervisor become ours.
    descendants::adopt_orphans().context(failed)?;
    let start = Instant::now();
    if interrupt::signal().is_some() || cancel.is_cancelled() {
        return Ok(End::cancelled(start.elapsed()));
    }
    let mark = Mark::put(job.log).map_err(|e| e.context(failed()))?;
    // If the writing end of this pipe is closed, the supervisor concludes that git-frites is gone.
    // The pipe is close-on-exec, so that no other process keeps it open.
    let (orders, pipe) = io::pipe().context(failed)?;
    let words = job.argv.iter().map(|word| word.to_string_lossy().escape_debug().to_string());
    let words = shell_words::join(words.collect::<Vec<_>>());
    tracing::debug!(dir = %job.dir.display(), "starting {words}");
    let supervisor = supervisor(job, &mark, orders).context(failed)?;
    let supervision = Supervision::start(&supervisor).context(failed)?;
    running::note_process(&mark.path, Role::Supervisor, supervision.pid);
    let listener = Listener::add(pipe, supervision.pid);
    cancel.include(&listener);
    let answer = supervision.answer(job.limits.hard, cancel).context(failed)?;
    drop(listener);
    let end = end_of(answer, start.elapsed(), cancel)?;
    let End { outcome, cancelled, leaky, elapsed, .. } = &end;
    tracing::debug!(?outcome, cancelled, leaky, ms = elapsed.as_millis(), "ended {words}");
    Ok(end)
}

/// The call that starts the supervisor of a job. The supervisor reads its orders from the pipe
/// `orders`.
fn supervisor(job: &Job<'_>, mark: &Mark, orders: io::PipeReader) -> io::Result<duct::Expression> {
    let arguments = supervisor_arguments(job, mark)?.into_iter().chain(job.argv.iter().cloned());
    let confined = job.confinement.map(Confinement::variables).unwrap_or_default();
    let set = [confined, &job.env].concat();
    let environment = environment_in(job.dir, job.policy.environment(job.hide, &set));
    Ok(duct::cmd(myself(), arguments)
        .dir(job.dir)
        .full_env(environment)
        .stdin_file(orders)
        .stderr_null()
        .unchecked()
        // Ctrl-C and Ctrl-Z on the terminal must only reach git-frites, which passes them on.
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        }))
}

/// The arguments of a supervisor. The words of the command come after them. Fails if the
/// confinement cannot be written as JSON.
fn supervisor_arguments(job: &Job<'_>, mark: &Mark) -> io::Result<Vec<OsString>> {
    let millis =
        |d: Option<Duration>| d.map_or_else(|| "-".into(), |d| d.as_millis().to_string().into());
    let stdin = job.stdin.unwrap_or(Path::new("/dev/null"));
    let Limits { hard, idle, share } = job.limits;
    let [verb, confinement] = match job.confinement {
        Some(confinement) => confinement.words()?,
        None => ["-".to_owned(), String::new()],
    };
    let places = [VERB.into(), job.log.into(), mark.path.as_os_str().into(), stdin.into()];
    let limits = [millis(hard), millis(idle), share.niceness().to_string().into()];
    Ok(places.into_iter().chain(limits).chain([verb.into(), confinement.into()]).collect())
}

/// How a command ended, from the answer of its supervisor.
fn end_of(answer: Answer, elapsed: Duration, cancel: &Cancel) -> Result<End> {
    let asked_to_end = interrupt::signal().is_some() || cancel.is_cancelled();
    let unknown = match answer {
        Answer::Overdue | Answer::Nothing(_) if asked_to_end => return Ok(End::cancelled(elapsed)),
        Answer::Overdue => return Ok(End::new(Outcome::TimedOut, elapsed)),
        Answer::Nothing(how) => format!("its supervising process {how}"),
        Answer::Report(SupervisorReport { error: Some(error), .. }) => {
            format!("its supervising process failed: {error}")
        }
        Answer::Report(report) => {
            let outcome = report.outcome();
            // A signal may be sent to git-frites and its commands at once. Then it may end a
            // command before git-frites has ordered the end.
            let cancelled =
                report.cancelled || interrupt::signal().is_some() && outcome != Outcome::Passed;
            match report.ended_from_outside {
                Some(signal) if !cancelled => {
                    format!("signal {signal} from outside reached it and its supervising process")
                }
                _ => {
                    let SupervisorReport { leaky, lost_output, .. } = report;
                    return Ok(End { outcome, cancelled, leaky, lost_output, elapsed });
                }
            }
        }
    };
    Err(Error::fatal(format!("{unknown}, so it is not known how the command ended"))
        .because(Cause::EndUnknown))
}

/// Replaces this process by a user's command (`exec`), in this directory and with these variables.
/// Returns only if the command cannot be started.
pub fn replace(
    argv: &[OsString],
    dir: &Path,
    policy: &Policy,
    variables: &[(String, OsString)],
) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    // If the depth variable is set, it is kept. If the command starts git-frites, that process sees
    // from the variable that it runs inside of an attempt.
    let hide: Vec<&str> = env::ALL.into_iter().filter(|name| *name != env::DEPTH).collect();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).env_clear();
    command.envs(environment_in(dir, policy.environment(&hide, variables)));
    command.exec()
}

/// Adds the variables for a command that runs in this directory.
fn environment_in(
    dir: &Path,
    mut environment: HashMap<OsString, OsString>,
) -> HashMap<OsString, OsString> {
    // If the worktree has no `.git`, git must not use the repository around it.
    environment
        .extend(dir.parent().map(|parent| ("GIT_CEILING_DIRECTORIES".into(), parent.into())));
    environment.insert("PWD".into(), dir.into());
    environment
}

/// The path of the running git-frites program, with which another process of it can be started.
pub fn myself() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_default();
    // An upgrade may have replaced the file while this process runs. Linux still has the old file
    // as `/proc/self/exe`.
    if path.is_file() { path } else { PathBuf::from("/proc/self/exe") }
}

/// True if `program` can be started: see [`find`].
pub fn on_path(program: &OsStr) -> bool {
    find(program).is_some()
}

/// The executable file of a program. This is `program` itself if it has a slash in it, or else the
/// first match on PATH. `None` if there is no such file.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return is_executable(path).then(|| path.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Sends `bytes` to a pager. `pager` is a shell command line, as in git. It is no error if the user
/// quits the pager early.
pub fn page(pager: &str, bytes: &[u8]) -> io::Result<()> {
    let mut expression = duct::cmd!("sh", "-c", pager).stdin_bytes(bytes).unchecked();
    // These are git's own defaults for less and lv (pager.c).
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            expression = expression.env(name, value);
        }
    }
    expression.run().map(drop)
}

/// Shows a file in a browser. Tries the browsers in `BROWSER`, and then the system's program for
/// opening files. Returns false if none of them works.
pub fn show_in_browser(file: &Path) -> bool {
    let configured = std::env::var("BROWSER").unwrap_or_default();
    let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    configured.split(':').chain([system]).any(|line| browse(line, file).unwrap_or_default())
}

/// Starts a browser. In `line`, its command line, the file replaces `%s`. Without `%s`, the file is
/// the last argument. Returns true if the browser succeeded.
fn browse(line: &str, file: &Path) -> io::Result<bool> {
    let Some(mut words) = shell_words::split(line).ok().filter(|words| !words.is_empty()) else {
        return Ok(false);
    };
    let name = file.to_string_lossy();
    if !line.contains("%s") {
        words.push("%s".to_owned());
    }
    let words: Vec<String> = words.iter().map(|word| word.replace("%s", &name)).collect();
    let output = duct::cmd(&words[0], &words[1..]).stdout_to_stderr().unchecked().run()?;
    Ok(output.status.success())
}

/// Shows a file of the manual with `man`, which uses a pager on a terminal. Returns false if `man`
/// failed.
pub fn show_manual(file: &Path) -> io::Result<bool> {
    Ok(duct::cmd!("man", file).unchecked().run()?.status.success())
}

/// The longest time that a program may take to answer a question about itself.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);

/// The first line that a program prints with `--version`. `None` if the program fails, prints
/// nothing, or takes too long.
pub fn version_of(program: &str) -> Option<String> {
    let lines = lines_of(program, &["--version"])?;
    lines.into_iter().find(|line| !line.is_empty())
}

/// The lines that a program prints with these arguments, without control characters, and without
/// blanks around them. `None` if the program fails or takes too long.
pub fn lines_of(program: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let call = duct::cmd(program, arguments).stdin_null().stderr_null().stdout_capture();
    let handle = call.unchecked().start().ok()?;
    let Some(output) = handle.wait_timeout(TIME_TO_ANSWER).ok()? else {
        let _ = handle.kill();
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| plain::line(line).trim().to_owned());
    output.status.success().then(|| lines.collect())
}

/// True if this process can see a process with this id.
pub fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| {
        rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
    })
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    // This is computed only once, because the standard library reads files of cgroups for it.
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}

/// Calls `work` for every item, in separate threads, at most `jobs` at once. Returns the results in
/// the order of the items. This is for commands and whole captures. For many short reads, see
/// [`crate::fs::parallel`].
///
/// If an item fails, goes on with the others, and returns the error of the first item that failed.
pub fn in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    each_in_parallel(jobs, items, work).into_iter().collect()
}

/// Does the same as [`in_parallel`], but returns the result of each item even if it is an error.
pub fn each_in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let jobs = jobs.clamp(1, items.len().max(1));
    if jobs == 1 {
        return items.iter().map(work).collect();
    }
    WorkQueue::new(items).work_on(jobs, work)
}

/// The hidden first argument with which git-frites runs as the process that deletes trash.
pub const EMPTY_TRASH: &str = "__empty-trash";

/// Starts git-frites with these arguments in the current directory, and does not wait until it
/// ends. The new process has its own process group, so that Ctrl-C does not end it. Its output goes
/// to `log`.
pub fn start_in_background(arguments: &[&str], log: File) -> Result<()> {
    let mut command = Command::new(myself());
    let errors = log.try_clone().context(not_started)?;
    begin(command.args(arguments).stdout(log).stderr(errors))
}

/// Starts a process that deletes the trash in `root`, and does not wait until it ends. The process
/// keeps neither the caller's current directory in use nor a pipe of the caller open.
pub fn empty_trash(root: &Path) -> Result<()> {
    let mut command = Command::new(myself());
    command.arg(EMPTY_TRASH).arg(root).current_dir("/");
    begin(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Makes this process run only when no other process needs the processor. On Linux, this also
/// applies to the disk.
pub fn become_idle() {
    #[cfg(target_os = "linux")]
    let _ = thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        ThreadPriority::Min,
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle),
    );
    #[cfg(not(target_os = "linux"))]
    let _ = rustix::process::setpriority_process(None, 19);
}

fn begin(command: &mut Command) -> Result<()> {
    // Nobody waits for the new process. It becomes a child of init when the current process has
    // ended.
    command.stdin(Stdio::null()).process_group(0).spawn().map(drop).context(not_started)
}

fn not_started() -> String {
    "could not start git-frites in the background".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn program_without_execute_permission_is_not_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("tool");
        fs::write(&file, "#!/bin/sh\n").expect("written");
        let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
        set_mode(0o644).expect("a mode");
        assert_eq!(find(file.as_os_str()), None);
        set_mode(0o755).expect("a mode");
        assert_eq!(find(file.as_os_str()), Some(file.clone()));
        assert_eq!(find(dir.path().as_os_str()), None, "a directory");
    }

    #[test]
    fn nested_work_in_parallel_has_threads_of_its_own() {
        // The two inner items of an outer item wait for each other at a barrier. This would hang if
        // they did not run at the same time.
        let done = in_parallel(2, &[1, 2], |outer| {
            let barrier = std::sync::Barrier::new(2);
            in_parallel(2, &[10, 20], |inner| {
                barrier.wait();
                Ok(outer + inner)
            })
        });
        assert_eq!(done.expect("no item fails"), [[11, 21], [12, 22]]);
    }
}
