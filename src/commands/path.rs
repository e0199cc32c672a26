//! `git frites path`: where a candidate's worktree is, for `cd`.
use std::os::unix::ffi::OsStrExt;

use crate::cli;
use crate::commands::parse_address;
use crate::error::{Error, Result, exit};
use crate::ops::session::Session;
use crate::store::select::Matching;

/// Runs the command.
pub fn run(session: &Session, args: &cli::Path) -> Result<u8> {
    let address = parse_address(args.address.as_deref())?;
    let selection = session.store.select(address.as_ref(), Matching::Prefix)?;
    let run = &selection.run;
    let name = match (&selection.candidate, run.candidates.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|n| n.as_str()).collect();
            return Err(Error::usage(format!("run {} has {} candidates", run.run, several.len()))
                .hint(format!(
                    "name one, such as {}/{}: {}",
                    run.run,
                    names[0],
                    names.join(", ")
                )));
        }
    };
    let candidate = session.store.candidate(run, name);
    let path = candidate.worktree();
    if !path.is_dir() {
        return Err(Error::fatal(format!("{candidate} has no worktree any more"))
            .hint(format!("what it changed is kept: `git frites diff {candidate}`")));
    }
    session.ui.answer([path.as_os_str().as_bytes(), b"\n"].concat())?;
    Ok(exit::OK)
}
