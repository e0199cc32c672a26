//! Binds runs and candidates to tasks. The task itself lives elsewhere and is never changed.
use crate::error::Result;
use crate::integrity::trust;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::store::events::Event;

/// Binds a run, or one candidate of it, to a task; without a task, takes its binding away. Gives the
/// changed run.
///
/// Fails while another process works on the run.
pub fn bind(
    session: &Session,
    run: &Run,
    candidate: Option<&Name>,
    task: Option<&str>,
) -> Result<Run> {
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
