//! `git frites shard`: judges a run, or makes its attempts, in parts on several machines.
mod collect;
mod judge;
mod list;
mod open;
mod run;

use crate::error::Result;
use crate::ops::mirror::{self, MirrorUse};
use crate::ops::session::Session;
use crate::ui::Ui;

/// The commands of `git frites shard`.
#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
pub enum ShardCommand {
    /// Settle how a run is judged in parts; with --attempts, make a run whose attempts other
    /// machines make
    Open(Box<open::ShardOpenArgs>),
    /// List the parts of an opened run that have no outcome yet
    List(list::ShardListArgs),
    /// Judge a share of the parts of an opened run, or one part
    Judge(judge::ShardJudgeArgs),
    /// Take the outcomes that machines have stored, and decide
    Collect(collect::ShardCollectArgs),
    /// Make one attempt of a run, and push its capture
    Run(run::ShardRunArgs),
}

impl ShardCommand {
    /// Opens the repository to work in. On a machine that judges or makes attempts without a clone,
    /// this is a mirror.
    pub fn session(&self, ui: &Ui) -> Result<Session> {
        let (remote, here, kind) = match self {
            ShardCommand::Open(_) => (None, true, MirrorUse::Judging),
            ShardCommand::List(args) => (args.remote.as_deref(), true, MirrorUse::Judging),
            ShardCommand::Judge(args) => (args.remote.as_deref(), false, MirrorUse::Judging),
            ShardCommand::Collect(args) => (args.remote.as_deref(), true, MirrorUse::Judging),
            ShardCommand::Run(args) => (Some(args.remote.as_str()), false, MirrorUse::Attempts),
        };
        match remote {
            None => Session::open(ui.clone()),
            Some(place) => mirror::session_with(ui.clone(), place, here, kind),
        }
    }
}

pub fn run(session: &Session, command: &ShardCommand) -> Result<u8> {
    match command {
        ShardCommand::Open(args) => open::run(session, args),
        ShardCommand::List(args) => list::run(session, args),
        ShardCommand::Judge(args) => judge::run(session, args),
        ShardCommand::Collect(args) => collect::run(session, args),
        ShardCommand::Run(args) => run::run(session, args),
    }
}
