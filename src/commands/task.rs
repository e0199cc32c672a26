//! `git frites task`: binds runs and candidates to tasks, and shows the bindings.
use serde_json::json;

use crate::commands::values;
use crate::complete;
use crate::error::{Result, exit};
use crate::integrity::trust;
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::store::events::Event;
use crate::store::select::{Matching, Scope, Selection};
use crate::ui::table;

#[derive(Debug, clap::Args)]
#[command(after_help = "Prints RUN<TAB>ID or RUN/CANDIDATE<TAB>ID for each binding.")]
pub struct TaskArgs {
    /// Run or candidate
    #[arg(value_name = "RUN[/CAND]", add = complete::address(Scope::Candidate))]
    pub address: Address,
    /// Task to bind it to, such as an issue number; it replaces an earlier task
    #[arg(value_name = "ID", value_parser = values::task)]
    pub id: Option<String>,
    /// Take the binding away
    #[arg(long, conflicts_with = "id")]
    pub clear: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

pub fn run(session: &Session, args: &TaskArgs) -> Result<u8> {
    let Selection { run, candidate, .. } =
        session.store.select(Some(&args.address), Scope::Candidate, Matching::Prefix)?;
    let run = if args.clear || args.id.is_some() {
        if let Some(id) = &args.id {
            warn_of_others(session, &run, id)?;
        }
        bind(session, &run, candidate.as_ref(), args.id.as_deref())?
    } else {
        run
    };
    let own = run.tasks.iter().filter(|(name, _)| candidate.as_ref().is_none_or(|c| c == *name));
    if args.json {
        let candidates: serde_json::Map<_, _> =
            own.map(|(name, task)| (name.to_string(), json!(task))).collect();
        let document = json!({ "run": run.run, "task": run.task, "candidates": candidates });
        session.ui.answer_json(document);
        return Ok(exit::OK);
    }
    let line = |place: String, task: &str| format!("{place}\t{}\n", table::printable(task));
    let mut text: String = own.map(|(name, task)| line(format!("{run}/{name}"), task)).collect();
    if text.is_empty() || candidate.is_none() {
        let of_run = run.task.as_ref().map(|task| line(run.run.to_string(), task));
        text.insert_str(0, &of_run.unwrap_or_default());
    }
    if text.is_empty() {
        session.ui.note(format!("run {run} is bound to no task"));
    }
    session.ui.answer(text);
    Ok(exit::OK)
}

/// Tells the user if another run is bound to the task, because the task's address means only the
/// newest of its runs.
fn warn_of_others(session: &Session, run: &Run, id: &str) -> Result<()> {
    let bound = session.store.bound_to(id)?;
    if let Some((other, _)) = bound.iter().rev().find(|(other, _)| other.run != run.run) {
        session.ui.note(format!("run {} is bound to this task, too", other.run));
    }
    Ok(())
}

/// Binds a run, or one of its candidates, to a task. Without a task, removes the binding. Returns
/// the changed run.
///
/// Fails while another process works on the run.
fn bind(session: &Session, run: &Run, candidate: Option<&Name>, task: Option<&str>) -> Result<Run> {
    let Session { store, .. } = session;
    trust::require_own_record(session.integrity(), run)?;
    let (_lock, mut run) = store.lock_and_read(&run.run)?;
    let task = task.map(str::to_owned);
    let before = match (candidate, &task) {
        (None, _) => std::mem::replace(&mut run.task, task.clone()),
        (Some(name), Some(task)) => run.tasks.insert(name.clone(), task.clone()),
        (Some(name), None) => run.tasks.remove(name),
    };
    if before != task {
        store.save_record(&run, store.verdict(&run.run)?.as_ref(), &store.judged(&run.run)?)?;
        let event = Event::Bound { candidate: candidate.cloned(), task, before };
        store.record_event(&run.run, &event)?;
    }
    Ok(run)
}
