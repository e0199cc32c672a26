//! Exchanges the captures of attempts that were made on different machines.
use crate::error::{Error, Result};
use crate::git::commit::commit_tree;
use crate::git::refs;
use crate::git::remote::{From, RemoteMove};
use crate::git::repo::Repo;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::shard::exchange::{Exchange, PAUSES_MS, wait_to_push_again};
use crate::store::candidate::CandidateRef;

impl Exchange<'_> {
    /// Fetches the record of the run, and the captures of one candidate if the remote has them.
    pub fn fetch_attempt(&self, name: &Name) -> Result<()> {
        // The pattern also matches other names with the same ending, which is harmless.
        self.fetch_refs([format!("*{name}")])
    }

    /// The newest capture that the remote had of a candidate at the last fetch, and the attempt's
    /// state according to this capture.
    pub fn capture_there(&self, name: &Name) -> Result<Option<(Oid, State)>> {
        let repo = &self.session.repo;
        let Some(tip) = repo.read_ref(&self.fetched(&refs::capture(&self.run, name)))? else {
            return Ok(None);
        };
        Ok(Some((tip, recorded_state(repo, &tip)?)))
    }

    /// Fetches all captures of the run. Takes over the new ones, except those of candidates that
    /// have a worktree here. Warns of captures of candidates that the run's record does not list.
    /// Does nothing if the remote does not have the run yet.
    pub fn take_captures(&self, run: &Run) -> Result<()> {
        if !self.fetch_if_there(["*".to_owned()])? {
            return Ok(());
        }
        for candidate in self.session.store.candidates(run) {
            if !candidate.worktree().is_dir() {
                self.take(&candidate.capture_ref())?;
            }
        }
        let prefix = format!("refs/frites/{}/", self.run);
        for (name, _) in self.remote.fetched_under(&prefix)? {
            let Ok(candidate) = name[prefix.len()..].parse::<Name>() else { continue };
            if !run.candidates.contains(&candidate) {
                self.session.ui.warn(format!(
                    "'{}' has a capture {}/{candidate}, which the record of the run does not list: it is not used",
                    self.place(),
                    self.run
                ));
            }
        }
        Ok(())
    }

    /// Pushes the newest capture of a candidate. If another machine has stored a capture of the
    /// candidate meanwhile, pushes a commit that joins both captures. Fails if the remote has
    /// another run of this name by now.
    pub fn share_capture(&self, candidate: CandidateRef<'_>) -> Result<()> {
        let Exchange { session, remote, .. } = self;
        let repo = &session.repo;
        let name = candidate.capture_ref();
        let fetched = self.fetched(&name);
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            self.fetch_attempt(candidate.name).map_err(|e| self.unstored(e))?;
            let Some(ours) = repo.read_ref(&name)? else { return Ok(()) };
            let theirs = repo.read_ref(&fetched)?;
            let new = match &theirs {
                Some(theirs) if repo.is_ancestor(&ours, theirs)? => return self.take(&name),
                Some(theirs) if !repo.is_ancestor(theirs, &ours)? => self.joined(theirs, &ours)?,
                _ => ours,
            };
            let one = RemoteMove { name: &name, new: &new, from: From::Value(theirs.as_ref()) };
            let Some(reason) = remote.push(&[one]).map_err(|e| self.unstored(e))? else {
                repo.update_ref(&fetched, Some(&new), theirs.as_ref(), "pushed")?;
                if new != ours {
                    repo.update_ref(&name, Some(&new), Some(&ours), "pushed")?;
                    session.ui.warn(format!(
                        "{candidate}: another machine stored its capture first; this one, {ours:.10}, is kept as a parent"
                    ));
                }
                return Ok(());
            };
            if !wait_to_push_again(&mut pauses, &reason) {
                let place = self.place();
                let error = format!("'{place}' did not take the capture of {candidate}: {reason}");
                return Err(self.unstored(Error::fatal(error)));
            }
        }
    }

    /// A commit with both captures as parents. If the attempt in `theirs` has ended, the commit has
    /// the files of `theirs`, otherwise those of `ours`.
    fn joined(&self, theirs: &Oid, ours: &Oid) -> Result<Oid> {
        let repo = &self.session.repo;
        let is_theirs = has_ended(recorded_state(repo, theirs)?);
        let [first, second] = if is_theirs { [theirs, ours] } else { [ours, theirs] };
        let read = repo.commit(first)?;
        commit_tree(repo, &read.tree, [first, second], &read.message)
    }

    fn unstored(&self, error: Error) -> Error {
        let dir = self.session.repo.common_dir().display();
        error.hint(format!(
            "its capture is kept in '{dir}': the same command on this machine pushes it, if '{}' still has this run",
            self.place()
        ))
    }
}

/// The state of the attempt that a capture's message records.
pub fn recorded_state(repo: &Repo, capture: &Oid) -> Result<State> {
    let message = repo.commit(capture)?.message;
    Ok(Trailer::State.find(&message).and_then(|word| word.parse().ok()).unwrap_or(State::Cancelled))
}

/// True if an attempt in this state is finished. An attempt in another state is started again.
pub fn has_ended(state: State) -> bool {
    !matches!(state, State::Running | State::Cancelled | State::Limited)
}
