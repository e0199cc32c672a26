//! Starts processes of our own that go on after the command has ended.
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};

use crate::error::{IoContext, Result};

/// The hidden first argument with which git-frites runs as the process that deletes trash.
pub const EMPTY_TRASH: &str = "__empty-trash";

/// Starts git-frites with these arguments in the current directory, and does not wait until it ends. The new
/// process has its own process group, so that Ctrl-C does not end it. Its output goes to `log`.
pub fn start(arguments: &[&str], log: File) -> Result<()> {
    let mut command = Command::new(super::myself());
    let errors = log.try_clone().context(not_started)?;
    begin(command.args(arguments).stdout(log).stderr(errors))
}

/// Starts a process that deletes the trash in `root`, and does not wait until it ends. The process does not
/// keep the caller's current directory in use, or a pipe of the caller open.
pub fn empty_trash(root: &Path) -> Result<()> {
    let mut command = Command::new(super::myself());
    command.arg(EMPTY_TRASH).arg(root).current_dir("/");
    begin(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Makes this process run only when no other process needs the processor. On Linux this also applies to the
/// disk.
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
    // Nobody waits for the new process. It becomes a child of init when this process has ended.
    command.stdin(Stdio::null()).process_group(0).spawn().map(drop).context(not_started)
}

fn not_started() -> String {
    "could not start git-frites in the background".to_owned()
}
