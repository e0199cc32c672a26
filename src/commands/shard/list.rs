//! `git frites shard list`: lists the parts of an opened run that have no outcome yet.

use crate::commands::opened::find;
use crate::complete;
use crate::error::{Result, exit};
use crate::model::name::Name;
use crate::ops::session::Session;
use crate::ops::shard;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints RUN/CANDIDATE or RUN/@base for each part, as `git frites shard judge` takes it.\n\n\
Exit status: 0, even if there is none."
)]
pub struct ShardListArgs {
    /// Run that was opened
    #[arg(value_name = "RUN", add = complete::by(complete::runs))]
    pub run: Name,
    /// The repository that has the run
    #[arg(long, value_name = "NAME|URL")]
    pub remote: Option<String>,
}

pub fn run(session: &Session, args: &ShardListArgs) -> Result<u8> {
    let (run, exchange) = find(session, &args.run, args.remote.as_deref())?;
    let terms = shard::current_terms(session, &run, exchange.as_ref())?;
    let storage = shard::part_storage(session, &run, exchange.as_ref());
    storage.name_unreadable(&session.ui, &run.candidates);
    let pending = storage.pending(&terms)?;
    let lines = pending.iter().map(|part| format!("{run}/{part}\n"));
    session.ui.answer(lines.collect::<String>());
    Ok(exit::OK)
}
