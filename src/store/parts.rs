//! Stores the terms on which a run is judged in parts, and the outcomes of the parts. Each outcome
//! is in its own ref. So several processes can judge at the same time without waiting for each
//! other.
use crate::error::{Cause, Error, Result};
use crate::git::commit::commit_tree;
use crate::git::objects::StoredContent;
use crate::git::refs;
use crate::model::FORMAT;
use crate::model::layout::{OUTCOME, TERMS};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::outcome::{Results, StageResult};
use crate::model::part::{Part, PartOutcome, SharedTerms};
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::store::Store;
use crate::store::records::{commit_of, is_newer, message_of, newer, to_toml};

/// After this many tries in which another process moved the ref of an outcome first, the next try
/// is the last.
const MOST_RACES: u32 = 64;

/// An outcome, and the things that are stored together with it.
pub struct NewOutcome {
    pub outcome: PartOutcome,
    /// A commit with the judged tree, which the ref of the outcome keeps alive.
    pub judged: Option<Oid>,
    /// The ends of the logs, each with its file name.
    pub logs: Vec<(String, Vec<u8>)>,
}

impl Store {
    /// The outcomes of a run's candidates, in spawn order. Each has the name of the candidate whose
    /// ref has the outcome.
    pub fn parts<'r>(&self, run: &'r Run) -> Result<Vec<(&'r Name, PartOutcome)>> {
        let mut parts = Vec::new();
        for name in &run.candidates {
            let found = self.outcome(&run.run, &Part::Candidate(name.clone()))?;
            parts.extend(found.map(|found| (name, found)));
        }
        Ok(parts)
    }

    /// The stored outcome of a part; `None` if there is none.
    pub fn outcome(&self, run: &Name, part: &Part) -> Result<Option<PartOutcome>> {
        self.outcome_at(run, &refs::result_of(run, part))
    }

    /// The outcome in the ref `name`; `None` if there is no such ref, or if the outcome is damaged.
    pub fn outcome_at(&self, run: &Name, name: &RefName) -> Result<Option<PartOutcome>> {
        match self.usable_outcome(run, name) {
            Err(error) if error.cause == Cause::Damaged => Ok(None),
            read => read,
        }
    }

    /// The reason why the outcome in the ref `name` cannot be read. `None` if it can be read, or if
    /// there is none.
    pub fn why_unreadable(&self, run: &Name, name: &RefName) -> Option<String> {
        self.usable_outcome(run, name).err().map(|error| error.message)
    }

    /// The outcome in the ref `name`. Fails if it is damaged, or has more results or tries than its
    /// terms allow. A ref from another repository can have any text, and the work on an outcome
    /// grows with its results.
    fn usable_outcome(&self, run: &Name, name: &RefName) -> Result<Option<PartOutcome>> {
        let found = self.stored::<PartOutcome>(run, name, OUTCOME)?;
        match found.as_ref().and_then(PartOutcome::excess) {
            Some(why) => Err(Error::damaged(format!("{OUTCOME} in {name} is damaged: {why}"))),
            None => Ok(found),
        }
    }

    /// The other outcomes of the same part that disagree with the outcome in the ref `name`. The
    /// commit of that outcome names them.
    pub fn disagreeing(&self, name: &RefName) -> Result<Vec<PartOutcome>> {
        let repo = self.repo();
        let Some(commit) = repo.read_ref(name)? else { return Ok(Vec::new()) };
        let message = repo.commit(&commit)?.message;
        let others = message.lines().filter_map(|line| Trailer::Disagrees.value(line));
        let mut found = Vec::new();
        for other in others.filter_map(Oid::parse) {
            let Some(bytes) = repo.file(&repo.commit(&other)?.tree, OUTCOME)? else { continue };
            found.extend(toml::from_str::<PartOutcome>(&String::from_utf8_lossy(&bytes)).ok());
        }
        Ok(found)
    }

    /// Stores an outcome of a part. If two processes judge the part, the later outcome stays.
    pub fn save_outcome(&self, new: &NewOutcome) -> Result<()> {
        let PartOutcome { run, base, .. } = &new.outcome;
        let name = refs::result_of(run, &new.outcome.part());
        self.repeat_races(|| {
            let old = self.repo().read_ref(&name)?;
            self.point(&name, &self.outcome_commit(new, old)?, base, old)
        })
    }

    /// Calls `save`, and calls it again as long as another process moves the ref first.
    pub fn repeat_races<T>(&self, save: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 0..MOST_RACES {
            match self.repo().retry_during_gc(&save) {
                Err(Error { cause: Cause::RefMoved | Cause::Locked, .. }) => {}
                other => return other,
            }
        }
        self.repo().retry_during_gc(save)
    }

    /// Makes the commit of an outcome that replaces the one in `previous`. No ref reaches the new
    /// commit yet.
    pub fn outcome_commit(&self, new: &NewOutcome, previous: Option<Oid>) -> Result<Oid> {
        let NewOutcome { outcome, judged, logs } = new;
        // A verdict may have replaced the earlier outcomes. They are then ancestors of the run's
        // record.
        let previous = match previous {
            Some(previous) => Some(previous),
            None => self.repo().read_ref(&refs::record(&outcome.run))?,
        };
        if let Some(previous) = previous
            && let Some(bytes) = self.repo().file(&self.repo().commit(&previous)?.tree, OUTCOME)?
            && is_newer(&String::from_utf8_lossy(&bytes))
        {
            return Err(newer(&format!("run {}", outcome.run)));
        }
        let text = to_toml(outcome)?;
        let mut files = vec![(OUTCOME.to_owned(), StoredContent::Bytes(text.as_bytes()))];
        files.extend(logs.iter().map(|(log, bytes)| (log.clone(), StoredContent::Bytes(bytes))));
        let known: Vec<&Oid> = [&outcome.base].into_iter().chain(&previous).collect();
        commit_of(self.repo(), &outcome.run, &files, &known, judged.as_slice())
    }

    /// Makes a commit that has the outcome in `first`, and both commits as parents. The outcome in
    /// `first` replaces the one in `second`. If `disagrees` is true, the two outcomes disagree.
    pub fn joined_commit(
        &self,
        run: &Name,
        [first, second]: [&Oid; 2],
        disagrees: bool,
    ) -> Result<Oid> {
        let repo = self.repo();
        let kept = repo.commit(first)?;
        let earlier = kept.message.lines().filter(|line| Trailer::Disagrees.value(line).is_some());
        let mut message = message_of(run, [first, second]);
        let last = disagrees.then(|| Trailer::Disagrees.line(second));
        for line in earlier.map(str::to_owned).chain(last) {
            message.push('\n');
            message.push_str(&line);
        }
        commit_tree(repo, &kept.tree, [first, second], &message)
    }

    /// Moves the ref of an outcome from `old` to the commit of another outcome.
    pub fn point(&self, name: &RefName, commit: &Oid, base: &Oid, old: Option<Oid>) -> Result<()> {
        let known: Vec<&Oid> = [base].into_iter().chain(&old).collect();
        self.repo().set_ref_whole(name, commit, old.as_ref(), &known, "record")
    }

    /// The logs of these results that were stored together with the outcome of `part`.
    pub fn part_logs(
        &self,
        run: &Run,
        part: &Part,
        results: &Results,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let Some(commit) = self.repo().read_ref(&refs::result_of(&run.run, part))? else {
            return Ok(Vec::new());
        };
        let tree = self.repo().commit(&commit)?.tree;
        let mut logs = Vec::new();
        for name in results.iter().flat_map(StageResult::log_names) {
            logs.extend(self.repo().file(&tree, &name)?.map(|bytes| (name, bytes)));
        }
        Ok(logs)
    }

    /// The refs of a run that is judged in parts: the refs of the outcomes, and the ref of the
    /// terms.
    pub(super) fn parts_refs(&self, run: &Run) -> Result<Vec<(RefName, Oid)>> {
        let mut found = self.repo().refs_under(&refs::results(&run.run))?;
        let terms = refs::terms(&run.run);
        found.extend(self.repo().read_ref(&terms)?.map(|oid| (terms, oid)));
        Ok(found)
    }

    /// Removes the outcomes of a run's parts, and the terms. This is called once the whole run was
    /// judged.
    pub fn forget_parts(&self, run: &Run) -> Result<()> {
        for (name, old) in self.parts_refs(run)? {
            self.repo().update_ref(&name, None, Some(&old), "judged")?;
        }
        Ok(())
    }

    /// The terms in the ref `name`; `None` if there is no such ref.
    pub fn terms_at(&self, run: &Name, name: &RefName) -> Result<Option<SharedTerms>> {
        match self.stored::<SharedTerms>(run, name, TERMS)? {
            Some(terms) if terms.version > FORMAT => {
                let what = format!("the terms of run {run} were written by a newer git-frites");
                Err(Error::fatal(what).hint("update git-frites here"))
            }
            found => Ok(found),
        }
    }

    /// The terms on which a run is judged in parts. `None` if there are none, or if the whole run
    /// has been judged since.
    pub fn terms(&self, run: &Name) -> Result<Option<SharedTerms>> {
        let Some(terms) = self.terms_at(run, &refs::terms(run))? else { return Ok(None) };
        let round = self.last_round(run)?;
        Ok(Some(terms).filter(|terms| terms.round >= round))
    }

    /// The round of the last judging of the whole run; 0 if there was none.
    pub fn last_round(&self, run: &Name) -> Result<u32> {
        Ok(self.verdict(run)?.map_or(0, |verdict| verdict.round))
    }

    /// The number of a new round of judging. It is higher than the round of any outcome so far.
    pub fn next_round(&self, run: &Run) -> Result<u32> {
        let last = self.last_round(&run.run)?;
        let parts = self.parts(run)?.into_iter().map(|(_, part)| part.round);
        let opened = self.terms(&run.run)?.map(|terms| terms.round);
        Ok(parts.chain(opened).fold(last, u32::max).saturating_add(1))
    }

    /// Makes the commit of terms that replace the run's earlier terms. No ref reaches the new
    /// commit yet.
    pub fn terms_commit(&self, terms: &SharedTerms) -> Result<Oid> {
        let text = to_toml(terms)?;
        let previous = self.repo().read_ref(&refs::terms(&terms.run))?;
        let files = [(TERMS.to_owned(), StoredContent::Bytes(text.as_bytes()))];
        let known: Vec<&Oid> = [&terms.base].into_iter().chain(&previous).collect();
        commit_of(self.repo(), &terms.run, &files, &known, &[])
    }

    /// Makes the terms in `commit` the terms of the run. The caller holds the run's lock.
    pub fn set_terms(&self, terms: &SharedTerms, commit: &Oid) -> Result<()> {
        let name = refs::terms(&terms.run);
        self.repeat_races(|| {
            let old = self.repo().read_ref(&name)?;
            self.point(&name, commit, &terms.base, old)
        })
    }
}
