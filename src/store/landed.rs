//! Records of finished landings, in files and refs.
use jiff::Timestamp;

use crate::error::Result;
use crate::git::commit::commit_to_ref;
use crate::git::landing::intent::Intent;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::store::Store;
use crate::store::records::{read_toml, write_toml};

impl Store {
    /// Records a landing on a fresh branch in `runs/RUN/CAND/landed.toml`.
    pub fn save_landed(&self, landing: &Intent) -> Result<()> {
        write_toml(&self.candidate_dir(&landing.run, &landing.candidate).landed(), landing)
    }

    /// The intent of a candidate's landing on a fresh branch; `None` if there is no record of such
    /// a landing.
    pub fn landed(&self, candidate: &Candidate) -> Option<Intent> {
        read_toml(&self.candidate_dir(&candidate.run, &candidate.candidate).landed())
    }
}

/// Conflicts that `apply --conflicts` left on a fresh branch. A person must resolve them and commit
/// the result.
pub struct LeftConflicts {
    /// The iteration number of the capture.
    pub iteration: u32,
    /// The fresh branch.
    pub branch: RefName,
    /// The commit at which the branch was made.
    pub from: Oid,
}

impl Store {
    /// Records that a candidate's conflicts are left on a fresh branch.
    pub fn note_conflicts(&self, run: &Name, candidate: &Name, left: &LeftConflicts) -> Result<()> {
        let LeftConflicts { iteration, branch, from } = left;
        let message = format!(
            "frites: conflicts of {run}/{candidate}\n\n{}\n{}",
            Trailer::Run.line(format_args!("{run}/{candidate}@{iteration}")),
            Trailer::Into.line(branch.short())
        );
        let name = refs::conflicts(run, candidate);
        let tree = self.repo.commit(from)?.tree;
        commit_to_ref(&self.repo, &name, &tree, &[from], &message, "apply")
    }

    /// The conflicts that a landing of the candidate left, even if they are resolved by now. `None`
    /// if there are none. Also `None` if the candidate has landed in another way, or was undone
    /// since.
    pub fn left_conflicts(&self, run: &Name, candidate: &Name) -> Result<Option<LeftConflicts>> {
        let Some(tip) = read_whole(&self.repo, &refs::conflicts(run, candidate))? else {
            return Ok(None);
        };
        let read = self.repo.commit(&tip)?;
        let address = Trailer::Run.find(&read.message).and_then(|run| run.rsplit_once('@'));
        let iteration = address.and_then(|(_, iteration)| iteration.parse().ok());
        let branch = Trailer::Into.find(&read.message).map(RefName::of_branch);
        let parts = (iteration, branch, read.parents.first());
        let (Some(iteration), Some(branch), Some(from)) = parts else { return Ok(None) };
        Ok(Some(LeftConflicts { iteration, branch, from: *from }))
    }

    /// Removes the record of [`Store::note_conflicts`], if there is one.
    pub fn forget_conflicts(&self, run: &Name, candidate: &Name) -> Result<()> {
        let name = refs::conflicts(run, candidate);
        let old = self.repo.read_ref(&name)?;
        self.repo.update_ref(&name, None, old.as_ref(), "conflicts settled")
    }

    /// Records a landing state in a ref, because the candidate's file may be lost. This is for
    /// states that no commit of a landing shows. If there is such a commit, it has precedence over
    /// the ref. The ref only moves forward, so that a plain `git push` can push it.
    pub fn note_state(
        &self,
        run: &Run,
        candidate: &Name,
        landing: Landing,
        branch: Option<&RefName>,
    ) -> Result<()> {
        let mut message = format!(
            "frites: {}/{candidate} is {landing}\n\n{}\n{}",
            run.run,
            Trailer::Run.line(&run.run),
            Trailer::Landing.line(landing)
        );
        if let Some(branch) = branch {
            message.push_str(&format!("\n{}", Trailer::Into.line(branch.short())));
        }
        let name = refs::landing_state(&run.run, candidate);
        let tree = self.repo.commit(&run.base)?.tree;
        commit_to_ref(&self.repo, &name, &tree, &[&run.base], &message, &landing.to_string())
    }

    /// If a landing state of the candidate is recorded in a ref, records there that the candidate
    /// is made again.
    pub fn note_fresh_start(&self, run: &Run, candidate: &Name) -> Result<()> {
        match self.repo.read_ref(&refs::landing_state(&run.run, candidate))? {
            Some(_) => self.note_state(run, candidate, Landing::Pending, None),
            None => Ok(()),
        }
    }
}

/// Completes a candidate's record from the trailers of the commit that its landing made. The record
/// may lack the landing, because its file was lost or because the landing was fetched.
pub(super) fn restore_landing(repo: &Repo, candidate: &mut Candidate) -> Result<()> {
    let Some(commit) = repo.read_ref(&refs::landing(&candidate.run, &candidate.candidate))? else {
        return restore_state(repo, candidate);
    };
    if candidate.landing_commit.as_ref() == Some(&commit) {
        return Ok(());
    }
    let read = repo.commit(&commit)?;
    let into = Trailer::Into.find(&read.message).map(RefName::of_branch);
    candidate.landing = match (Trailer::Undone.find(&read.message), &into) {
        (Some(_), _) => Landing::Undone,
        (None, Some(_)) => Landing::Merged,
        (None, None) => Landing::Landed,
    };
    candidate.landing_branch = match into {
        Some(into) => Some(into),
        None => branch_at(repo, &candidate.run, &commit)?,
    };
    candidate.landing_time = Timestamp::from_second(read.time).ok();
    candidate.landing_commit = Some(commit);
    Ok(())
}

/// The commit at which a ref is; `None` if there is no such ref. If the commit no longer exists,
/// removes the ref, because git collects no garbage as long as the ref exists.
fn read_whole(repo: &Repo, name: &RefName) -> Result<Option<Oid>> {
    let Some(noted) = repo.read_ref(name)? else { return Ok(None) };
    // git may be moving the commit into a pack at this moment.
    match repo.retry_during_gc(|| repo.commit(&noted)) {
        Err(_) if !repo.is_commit(&noted) => {
            // An error is ignored. A command that only reads may not be allowed to write.
            let _ = repo.update_ref(name, None, Some(&noted), "its commit is gone");
            Ok(None)
        }
        read => read.map(|_| Some(noted)),
    }
}

/// Completes the record of a candidate that has no landing commit, from the ref of
/// [`Store::note_state`].
fn restore_state(repo: &Repo, candidate: &mut Candidate) -> Result<()> {
    if candidate.landing != Landing::Pending {
        return Ok(());
    }
    let noted = read_whole(repo, &refs::landing_state(&candidate.run, &candidate.candidate))?;
    let Some(commit) = noted else { return Ok(()) };
    let read = repo.commit(&commit)?;
    let landing = Trailer::Landing.find(&read.message).and_then(|word| word.parse().ok());
    // Other states need no change of the record. A merge has a commit, and the record already says
    // that the candidate is pending.
    let Some(landing @ (Landing::Landed | Landing::Undone | Landing::Discarded)) = landing else {
        return Ok(());
    };
    candidate.landing = landing;
    if let Some(branch) = Trailer::Into.find(&read.message) {
        candidate.landing_branch = Some(RefName::of_branch(branch));
        candidate.landing_time = Timestamp::from_second(read.time).ok();
    }
    Ok(())
}

/// The fresh branch at a commit. This is the branch with the default name if it is at the commit,
/// or else one with another name.
fn branch_at(repo: &Repo, run: &Name, commit: &Oid) -> Result<Option<RefName>> {
    let default = refs::apply_branch(run);
    let mut branches = repo.refs_under("refs/heads/")?;
    branches.retain(|(name, tip)| tip == commit && !name.starts_with(refs::ATTEMPT_BRANCHES));
    Ok(branches.into_iter().map(|(name, _)| name).min_by_key(|name| *name != default))
}
