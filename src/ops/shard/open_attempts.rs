//! Makes a run whose commands are started later, mostly on other machines. Such a run has records,
//! but neither worktrees nor branches.
use crate::error::{Error, Result};
use crate::integrity::trust;
use crate::model::candidate::{Candidate, FOR_LATER, State};
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::ops::shard::open::push;
use crate::ops::spawn::{Request, draft, limits, record_spawned, recover, refuse_blocked_refs};

/// Makes a run without worktrees. If a remote is given, pushes the run. After an error, nothing is
/// left of the run here.
///
/// Fails if a candidate has no command, or if a record cannot hold a command.
pub fn open_attempts(session: &Session, request: Request, remote: Option<&str>) -> Result<Run> {
    let _span = tracing::info_span!("spawn").entered();
    limits::require_depth(session)?;
    limits::require_candidates(session, 0, request.new.names.len())?;
    if request.new.commands().len() < request.new.names.len() {
        return Err(Error::usage("there is no command to run later").hint(
            "name agents and their task: `--agent claude=2 -p TEXT`, or give a command: `-- CMD`",
        ));
    }
    if let Some(word) = request.new.command.iter().find(|word| word.to_str().is_none()) {
        return Err(Error::usage(format!("'{}' is not UTF-8", word.display()))
            .hint("a run that starts later is a record, which holds UTF-8 alone"));
    }
    trust::require_trust(session.integrity(), None)?;
    refuse_blocked_refs(session)?;
    let store = &session.store;
    let repository = store.lock_repository()?;
    let (run, _lock) = draft(session, request)?;
    // Each machine uses its own directory for worktrees.
    let run = Run { worktree_root: None, ..run };
    // If this process dies, the next command takes the run back, because of this intent.
    store.save_intent(&run)?;
    drop(repository);
    if let Err(error) = store_and_push(session, &run, remote) {
        let undone = store.save_intent(&run).and_then(|()| recover::roll_back(store, &run));
        return Err(match undone {
            Ok(()) => error.hint("nothing was made"),
            Err(second) => error.hint(format!("it was not taken back: {second}")),
        });
    }
    record_spawned(session, &run);
    Ok(run)
}

fn store_and_push(session: &Session, run: &Run, remote: Option<&str>) -> Result<()> {
    let store = &session.store;
    store.save_record(run, None, &[])?;
    for name in &run.candidates {
        let _lock = store.lock_candidate(&run.run, name)?;
        let index = run.index_of(name).unwrap_or_default();
        let mut record = Candidate::new(&run.run, name, index, State::Cancelled);
        record.reason = Some(FOR_LATER.into());
        record.cleaned = true;
        store.save_candidate(&record)?;
    }
    // Here the run is complete. If this process dies from now on, the run stays: the remote may
    // have taken it, and then other machines make its attempts.
    store.clear_active(&run.run)?;
    remote.map_or(Ok(()), |place| push(session, run, None, place))
}
