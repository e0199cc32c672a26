//! `git frites path`: prints the path of a candidate's worktree, for `cd`.
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use crate::commands::one_candidate;
use crate::complete;
use crate::error::{Result, exit};
use crate::model::address::Address;
use crate::ops::session::ReadSession;
use crate::store::select::{Matching, Scope};
use crate::ui::json;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A shell function that goes there: fcd() { cd \"$(git frites path \"$@\")\"; }"
)]
pub struct PathArgs {
    /// Candidate, or a run with one candidate  [default: the newest run]
    #[arg(value_name = "RUN/CAND", add = complete::address(Scope::Candidate))]
    pub address: Option<Address>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

pub fn run(session: &ReadSession, args: &PathArgs) -> Result<u8> {
    let selection =
        session.store.select(args.address.as_ref(), Scope::Candidate, Matching::Prefix)?;
    let candidate = one_candidate(&session.store, &selection)?;
    let path = candidate.require_worktree()?;
    candidate.warning_of_git().iter().for_each(|line| session.ui.warn(line));
    if args.json {
        let mut document = json!({ "run": selection.run.run, "candidate": candidate.name });
        json::put_file(&mut document, "path", &path);
        session.ui.answer_json(document);
        return Ok(exit::OK);
    }
    session.ui.answer([path.as_os_str().as_bytes(), b"\n"].concat());
    Ok(exit::OK)
}
