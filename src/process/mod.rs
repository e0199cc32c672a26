//! The only module that starts a user's commands. Jobs are supervised; a policy sets their environment.
pub mod ancestry;
pub mod background;
mod capped;
mod descendants;
mod disk_watch;
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
pub mod survivors;
pub mod work_queue;
pub mod world_spec;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::error::{Cause, Error, IoContext, Result};
use crate::model::env;
use crate::model::outcome::Outcome;
use crate::model::plain;
pub use crate::process::capped::{Follower, first_line, last_lines, last_words, whole_log};
use crate::process::environment::Policy;
use crate::process::interrupt::{Cancel, Listener};
pub use crate::process::protocol::Limits;
use crate::process::protocol::{SupervisorReport, VERB};
use crate::process::running::Mark;
use crate::process::supervision::{Answer, Supervision};
use crate::process::survivors::Role;
use crate::process::work_queue::WorkQueue;
use crate::process::world_spec::Confinement;

/// A user's command, ready to run in a worktree.
pub struct Job<'a> {
    /// Program and arguments; never empty.
    pub argv: &'a [OsString],
    /// The directory in which the command runs.
    pub dir: &'a Path,
    /// The policy for the variables that the command gets from git-frites.
    pub policy: &'a Policy,
    /// Variables that are set in addition.
    pub env: Vec<(String, OsString)>,
    /// Variables that the command must not get, whatever the policy.
    pub hide: &'a [&'a str],
    /// The file for the command's standard input; /dev/null if `None`.
    pub stdin: Option<&'a Path>,
    /// The file for both output streams of the command: the first and the last 4 MiB of them.
    pub log: &'a Path,
    /// The command's time limits.
    pub limits: Limits,
    /// The confinement of the command; `None` if it can do everything that git-frites can.
    pub confinement: Option<&'a Confinement>,
}

/// The end of a command.
pub struct End {
    /// The command's outcome.
    pub outcome: Outcome,
    /// True if the command was ended because git-frites was asked to stop, or because a caller
    /// cancelled it.
    pub cancelled: bool,
    /// True if the command left processes behind, which were ended.
    pub leaky: bool,
    /// Wall-clock time.
    pub elapsed: Duration,
}

impl End {
    /// The end of a command that could not be started, with the reason.
    pub fn not_started(reason: String) -> End {
        let outcome = Outcome::CouldNotStart { reason };
        End { outcome, cancelled: false, leaky: false, elapsed: Duration::ZERO }
    }

    /// The end of a command whose outcome does not count, because it was asked to end.
    fn cancelled(elapsed: Duration) -> End {
        End { outcome: Outcome::Skipped, cancelled: true, leaky: false, elapsed }
    }
}

/// Runs a job and everything it starts to their end.
///
/// If a command cannot be started, that is an [`Outcome`]; an error is a failure of git-frites itself.
/// Ctrl-C ends the command; see [`interrupt::signal`].
///
/// If it cannot be known how the command ended, that is an error with [`Cause::EndUnknown`], never an
/// outcome.
pub fn run(job: &Job<'_>) -> Result<End> {
    run_until(job, &Cancel::default())
}

/// Runs a job as [`run`] does; `cancel` ends the command as well.
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
    // When this pipe ends, the supervisor takes git-frites for gone. The pipe is close-on-exec, so that no
    // other process holds it open.
    let (orders, pipe) = io::pipe().context(failed)?;
    let words = job.argv.iter().map(|word| word.to_string_lossy().escape_debug().to_string());
    let words = shell_words::join(words.collect::<Vec<_>>());
    tracing::debug!(dir = %job.dir.display(), "starting {words}");
    let supervisor = supervisor(job, &mark, orders).context(failed)?;
    let supervision = Supervision::start(&supervisor).context(failed)?;
    survivors::note(mark.path(), Role::Supervisor, supervision.pid());
    let listener = Listener::add(pipe, supervision.pid());
    cancel.include(&listener);
    let answer = supervision.answer(job.limits.hard, cancel).context(failed)?;
    drop(listener);
    let end = end_of(answer, start.elapsed(), cancel)?;
    let End { outcome, cancelled, leaky, elapsed } = &end;
    tracing::debug!(?outcome, cancelled, leaky, ms = elapsed.as_millis(), "ended {words}");
    Ok(end)
}

/// The supervisor of a job, not started yet. `orders` is the pipe from which it reads its orders.
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

/// The arguments of a supervisor before those of the command. Fails if the confinement cannot be
/// described.
fn supervisor_arguments(job: &Job<'_>, mark: &Mark) -> io::Result<Vec<OsString>> {
    let millis =
        |d: Option<Duration>| d.map_or_else(|| "-".into(), |d| d.as_millis().to_string().into());
    let stdin = job.stdin.unwrap_or(Path::new("/dev/null"));
    let Limits { hard, idle, share } = job.limits;
    let [verb, confinement] = match job.confinement {
        Some(confinement) => confinement.words()?,
        None => ["-".to_owned(), String::new()],
    };
    let places = [VERB.into(), job.log.into(), mark.path().into(), stdin.into()];
    let limits = [millis(hard), millis(idle), share.word().into()];
    Ok(places.into_iter().chain(limits).chain([verb.into(), confinement.into()]).collect())
}

/// The end of a command, from its supervisor's answer.
fn end_of(answer: Answer, elapsed: Duration, cancel: &Cancel) -> Result<End> {
    let asked_to_end = interrupt::signal().is_some() || cancel.is_cancelled();
    let unknown = match answer {
        Answer::Overdue | Answer::Nothing(_) if asked_to_end => return Ok(End::cancelled(elapsed)),
        Answer::Overdue => {
            let outcome = Outcome::TimedOut;
            return Ok(End { outcome, cancelled: false, leaky: false, elapsed });
        }
        Answer::Nothing(how) => format!("its supervising process {how}"),
        Answer::Report(SupervisorReport { error: Some(error), .. }) => {
            format!("its supervising process failed: {error}")
        }
        Answer::Report(report) => {
            let outcome = report.outcome();
            // A signal that is sent to git-frites and its commands at once may reach a command first.
            let cancelled =
                report.cancelled || interrupt::signal().is_some() && outcome != Outcome::Passed;
            match report.ended_from_outside {
                Some(signal) if !cancelled => {
                    format!("signal {signal} from outside reached it and its supervising process")
                }
                _ => return Ok(End { outcome, cancelled, leaky: report.leaky, elapsed }),
            }
        }
    };
    Err(Error::fatal(format!("{unknown}, so it is not known how the command ended"))
        .because(Cause::EndUnknown))
}

/// Becomes a user's command on this terminal, in this directory and with these variables. Returns only if
/// the command cannot be started.
pub fn replace(
    argv: &[OsString],
    dir: &Path,
    policy: &Policy,
    variables: &[(String, OsString)],
) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    // The variable with the depth stays, so that a process inside of an attempt is known as such.
    let hide: Vec<&str> = env::ALL.into_iter().filter(|name| *name != env::DEPTH).collect();
    let mut command = std::process::Command::new(program);
    command.args(arguments).current_dir(dir).env_clear();
    command.envs(environment_in(dir, policy.environment(&hide, variables)));
    command.exec()
}

/// An environment for a command that runs in this directory.
fn environment_in(
    dir: &Path,
    mut environment: HashMap<OsString, OsString>,
) -> HashMap<OsString, OsString> {
    // git must not climb out of the worktree into the checkout that contains it.
    environment
        .extend(dir.parent().map(|parent| ("GIT_CEILING_DIRECTORIES".into(), parent.into())));
    environment.insert("PWD".into(), dir.into());
    environment
}

/// The file of this program, for starting another process of git-frites.
pub fn myself() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_default();
    // If an upgrade replaced the file while this process runs, Linux still has the old file under this
    // name.
    if path.is_file() { path } else { PathBuf::from("/proc/self/exe") }
}

/// True if `program` can be started: see [`find`].
pub fn on_path(program: &OsStr) -> bool {
    find(program).is_some()
}

/// The executable file of a program: the path itself, or for a bare name the first match on PATH.
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

/// Sends `bytes` to a pager, which is a shell command line as in git. It is no error if the user quits it
/// early.
pub fn page(pager: &str, bytes: &[u8]) -> io::Result<()> {
    let mut expression = duct::cmd!("sh", "-c", pager).stdin_bytes(bytes).unchecked();
    // git's own defaults for less and lv (pager.c).
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            expression = expression.env(name, value);
        }
    }
    expression.run().map(drop)
}

/// Shows a file in a browser: the first in `BROWSER` that works, or else the program with which the system
/// opens files. False if none works.
pub fn show_in_browser(file: &Path) -> bool {
    let configured = std::env::var("BROWSER").unwrap_or_default();
    let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    configured.split(':').chain([system]).any(|line| browse(line, file).unwrap_or_default())
}

/// Starts a browser with the file, which replaces a `%s` in the command line. True if it was successful.
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

/// Shows a file of the manual with `man`, which pages on a terminal. False if that failed.
pub fn show_manual(file: &Path) -> io::Result<bool> {
    Ok(duct::cmd!("man", file).unchecked().run()?.status.success())
}

/// The longest time that a program may take to print its version.
const VERSION_TIME: Duration = Duration::from_secs(10);

/// The first line that a program prints with `--version`; `None` if it prints none in time.
pub fn version_of(program: &str) -> Option<String> {
    let call = duct::cmd!(program, "--version").stdin_null().stderr_null().stdout_capture();
    let handle = call.unchecked().start().ok()?;
    let Some(output) = handle.wait_timeout(VERSION_TIME).ok()? else {
        let _ = handle.kill();
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().map(plain::line).find(|line| !line.trim().is_empty())?;
    output.status.success().then(|| line.trim().to_owned())
}

/// True if there is a process with this id, as far as this process can see others.
pub fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| {
        rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
    })
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    // Asked only once, because the answer is read from files of cgroups.
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}

/// Does `work` on every item in separate threads, at most `jobs` at once; gives the results in the
/// items' order. For commands and whole captures; for many short reads see [`crate::fs::parallel`].
///
/// All items are worked on even if one fails; the error is that of the first item that failed.
pub fn in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    each_in_parallel(jobs, items, work).into_iter().collect()
}

/// Does the same as [`in_parallel`], for parts that succeed or fail independently.
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
        // Each outer item needs two inner ones at once: a barrier shows that neither waits for the
        // other's end.
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
