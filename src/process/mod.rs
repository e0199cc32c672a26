//! The only place that starts a user's commands: through duct, supervised, with a scrubbed environment.
mod capped;
pub mod environment;
pub mod interrupt;
pub mod ports;
pub mod progress;
pub mod supervisor;

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::outcome::Outcome;
use crate::process::environment::Policy;
use crate::process::interrupt::{Cancel, Listener};
use crate::process::progress::Mark;
use crate::process::supervisor::{Report, SupervisorOptions};

/// A command of the user's, ready to run in a worktree.
pub struct Job<'a> {
    /// Program and arguments; never empty.
    pub argv: &'a [OsString],
    /// The directory it runs in.
    pub dir: &'a Path,
    /// Which of our variables it sees.
    pub policy: &'a Policy,
    /// Set on top of those.
    pub env: Vec<(String, OsString)>,
    /// Variables that it must not see, whatever the policy.
    pub hide: &'a [&'a str],
    /// The file that it reads as its standard input; /dev/null if none.
    pub stdin: Option<&'a Path>,
    /// Where both its output streams go: the first and the last 4 MiB of them.
    pub log: &'a Path,
    /// How long it may take.
    pub limits: Limits,
}

/// How long a command may take; none is for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// In all.
    pub hard: Option<Duration>,
    /// Without a byte of output.
    pub idle: Option<Duration>,
}

/// How a command ended, and how long it took.
pub struct End {
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it was ended because git-frites was asked to stop, or it was cancelled.
    pub cancelled: bool,
    /// Whether it left processes behind, which were ended.
    pub leaky: bool,
    /// Wall-clock time.
    pub elapsed: Duration,
}

impl End {
    /// The end of a command that never began, and why.
    pub fn not_started(reason: String) -> End {
        let outcome = Outcome::CouldNotStart { reason };
        End { outcome, cancelled: false, leaky: false, elapsed: Duration::ZERO }
    }
}

/// Runs a job and everything it starts to their end.
///
/// A command that cannot be started is an [`Outcome`], not an error; an error is ours. Ctrl-C ends the
/// command and is seen by [`interrupt::signal`].
pub fn run(job: &Job<'_>) -> io::Result<End> {
    run_until(job, &Cancel::default())
}

/// The same; `cancel` ends the command, too.
pub fn run_until(job: &Job<'_>, cancel: &Cancel) -> io::Result<End> {
    interrupt::listen();
    // What a killed supervisor leaves comes to us.
    supervisor::adopt_orphans()?;
    let start = Instant::now();
    if interrupt::signal().is_some() || cancel.is_cancelled() {
        let outcome = Outcome::Skipped;
        return Ok(End { outcome, cancelled: true, leaky: false, elapsed: start.elapsed() });
    }
    let _mark = Mark::put(job.log)?;
    // The end of this pipe tells the supervisor that we are gone; close-on-exec keeps it ours alone.
    let (orders, pipe) = io::pipe()?;
    let assignment = SupervisorOptions {
        log: job.log,
        stdin: job.stdin,
        hard: job.limits.hard,
        idle: job.limits.idle,
    };
    let arguments = assignment.arguments().into_iter().chain(job.argv.iter().cloned());
    let mut environment = job.policy.environment(job.hide, &job.env);
    // git must not climb out of the worktree into the checkout that contains it.
    environment
        .extend(job.dir.parent().map(|parent| ("GIT_CEILING_DIRECTORIES".into(), parent.into())));
    environment.insert("PWD".into(), job.dir.into());
    let expression = duct::cmd(myself(), arguments)
        .dir(job.dir)
        .full_env(environment)
        .stdin_file(orders)
        .stdout_capture()
        .stderr_null()
        .unchecked()
        // Ctrl-C on the terminal is for us; we pass it on.
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        });
    let words = job.argv.iter().map(|word| word.to_string_lossy().escape_debug().to_string());
    let words = shell_words::join(words.collect::<Vec<_>>());
    tracing::debug!(dir = %job.dir.display(), "starting {words}");
    let handle = expression.start()?;
    let listener = Listener::add(pipe);
    cancel.include(&listener);
    let output = handle.into_output()?;
    drop(listener);
    // A command can write to where its supervisor answers, and then kill it: only a whole supervisor is believed.
    let told =
        output.status.success().then(|| serde_json::from_slice(&output.stdout).ok()).flatten();
    let report: Report = told.unwrap_or_else(|| {
        supervisor::end_strays();
        Report { reason: Some("its supervising process was killed".into()), ..Report::default() }
    });
    let outcome = match &report {
        Report { reason: Some(reason), .. } => Outcome::CouldNotStart { reason: reason.clone() },
        Report { timed_out: true, .. } => Outcome::TimedOut,
        Report { code: Some(0), .. } => Outcome::Passed,
        Report { code: Some(code), .. } => Outcome::Failed { code: *code },
        Report { signal, .. } => Outcome::Signalled { signal: signal.unwrap_or_default() },
    };
    let elapsed = start.elapsed();
    let Report { cancelled, leaky, .. } = report;
    tracing::debug!(?outcome, cancelled, leaky, ms = elapsed.as_millis(), "ended {words}");
    Ok(End { outcome, cancelled, leaky, elapsed })
}

/// This program's file, to be started again as a supervisor.
fn myself() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_default();
    // Replaced while it runs (an upgrade): Linux still has it under this name.
    if path.is_file() { path } else { PathBuf::from("/proc/self/exe") }
}

/// Whether `program` can be found: a path that exists, or a name on PATH.
pub fn on_path(program: &OsStr) -> bool {
    find(program).is_some()
}

/// The file of a program: a path that exists, or a name on PATH.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Feeds `bytes` to a pager, a shell command line as git has them.
///
/// A pager that is quit early is no error.
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

/// Shows a file of the manual with `man`, which pages on a terminal; gives whether it could.
pub fn show_manual(file: &Path) -> io::Result<bool> {
    Ok(duct::cmd!("man", file).unchecked().run()?.status.success())
}

/// How many things this machine does at once.
pub fn processors() -> usize {
    // Asked once: the answer costs some reading of cgroups.
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}

/// Many small items in as many parts as this machine does things at once, for [`in_parallel`].
pub fn shares<T>(items: &[T]) -> Vec<&[T]> {
    items.chunks(items.len().div_ceil(processors()).max(1)).collect()
}

/// Does `work` on every item, at most `jobs` at once; gives the results in the items' order.
///
/// All items are worked on even when one fails; the error is that of the first item that failed. Work that is part of
/// such work is not split again: there is nobody left to do it.
pub fn in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    thread_local!(static IS_PART: Cell<bool> = const { Cell::new(false) });
    let jobs = jobs.clamp(1, items.len().max(1));
    if jobs == 1 || IS_PART.get() {
        let done: Vec<Result<R>> = items.iter().map(work).collect();
        return done.into_iter().collect();
    }
    let next = AtomicUsize::new(0);
    let span = tracing::Span::current();
    let done: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                IS_PART.set(true);
                let _span = span.enter();
                while let Some((at, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|at| Some((at, items.get(at)?)))
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
