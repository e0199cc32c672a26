//! Work of our own that goes on after the command has ended.
use std::env;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::error::{IoContext, Result};

/// Starts git-frites with these arguments in the current directory, and does not wait for it. It
/// has a process group of its own, so that Ctrl-C does not end it. Its output goes to `log`.
pub fn start(arguments: &[&str], log: File) -> Result<()> {
    let failed = || "could not start git-frites in the background".to_owned();
    let program = env::current_exe().context(failed)?;
    let errors = log.try_clone().context(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    // Nobody waits for it: it is init's child once this process has ended.
    command.spawn().map(drop).context(failed)
}
