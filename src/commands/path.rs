//! `git frites path`: prints the path of a candidate's worktree, for `cd`.
use std::os::unix::ffi::OsStrExt;

use clap_complete::engine::ArgValueCompleter;

use crate::commands::values;
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::model::address::Address;
use crate::ops::session::ReadSession;
use crate::store::select::Matching;

/// `git frites path`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A shell function that goes there: fcd() { cd \"$(git frites path \"$@\")\"; }"
)]
pub struct PathArgs {
    /// Candidate, or a run with one candidate  [default: the newest run]
    #[arg(
        value_name = "RUN/CAND",
        value_parser = values::address,
        add = ArgValueCompleter::new(complete::addresses),
    )]
    pub address: Option<Address>,
}

/// Runs the command.
pub fn run(session: &ReadSession, args: &PathArgs) -> Result<u8> {
    let selection = session.store.select(args.address.as_ref(), Matching::Prefix)?;
    let run = &selection.run;
    let name = match (&selection.candidate, run.candidates.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|n| n.as_str()).collect();
            return Err(Error::usage(format!("run {} has {} candidates", run.run, several.len()))
                .hint(format!(
                    "name one of them, such as {}/{}: {}",
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
            .hint(format!("its changes are kept: `git frites diff {candidate}`")));
    }
    session.ui.answer([path.as_os_str().as_bytes(), b"\n"].concat())?;
    Ok(exit::OK)
}
