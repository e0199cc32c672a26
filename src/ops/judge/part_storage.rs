//! Reads the outcomes that machines have stored in the run's refs, in this repository or in another
//! one (as last fetched). They are read to decide, and to find the parts that have no outcome yet.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::git::refs;
use crate::git::remote::Remote;
use crate::model::name::Name;
use crate::model::part::{Machine, Part, PartOutcome, SharedTerms};
use crate::model::refname::RefName;
use crate::store::Store;
use crate::ui::Ui;

/// The stored outcomes of a run's parts.
pub struct PartStorage<'s> {
    /// The store of this repository.
    pub store: &'s Store,
    pub run: &'s Name,
    /// The other repository whose fetched refs are read; `None` to read the refs of this
    /// repository.
    pub remote: Option<&'s Remote<'s>>,
}

impl PartStorage<'_> {
    /// The outcome of a part, if its round, its terms and its tree are those of `terms`; `None`
    /// otherwise.
    pub fn find(&self, part: &Part, terms: &SharedTerms) -> Result<Option<PartOutcome>> {
        let found = self.store.outcome_at(self.run, &self.ref_of(part))?;
        Ok(found.filter(|found| answers(found, terms, part)))
    }

    fn ref_of(&self, part: &Part) -> RefName {
        let own = refs::result_of(self.run, part);
        self.remote.map_or(own.clone(), |remote| remote.fetched(&own))
    }

    /// The parts for which [`PartStorage::find`] returns `None`.
    pub fn pending(&self, terms: &SharedTerms) -> Result<Vec<Part>> {
        let mut pending = Vec::new();
        for part in terms.parts() {
            if self.find(&part, terms)?.is_none() {
                pending.push(part);
            }
        }
        Ok(pending)
    }

    /// Warns of each outcome of these candidates or of the base that cannot be read.
    pub fn name_unreadable(&self, ui: &Ui, candidates: &[Name]) {
        let run = self.run;
        for part in candidates.iter().cloned().map(Part::Candidate).chain([Part::Base]) {
            if let Some(why) = self.store.why_unreadable(run, &self.ref_of(&part)) {
                ui.warn(format!("{run}/{part}: its outcome is not used: {why}"));
            }
        }
    }

    /// Gives up to two warnings:
    /// * an outcome disagrees with a later one of the same part;
    /// * the machines that found the outcomes differ in more than their names.
    pub fn tell_machines(&self, ui: &Ui, used: &[PartOutcome]) -> Result<()> {
        let run = self.run;
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for first in used {
            let part = first.part();
            if let Some(Machine { host, platform, git, git_frites }) = &first.machine {
                let kind = format!("{platform}, git {git}, git-frites {git_frites}");
                kinds.entry(kind).or_default().push(format!("{part} ({host})"));
            }
            for later in self.store.disagreeing(&refs::result_of(run, &part))? {
                ui.warn(first.disagreement(&later));
            }
        }
        if kinds.len() > 1 {
            let kinds = kinds.iter().map(|(kind, parts)| format!("{kind}: {}", parts.join(", ")));
            let kinds = kinds.collect::<Vec<_>>().join("; ");
            ui.warn(format!("the machines that judged run {run} differ: {kinds}"));
        }
        Ok(())
    }
}

/// True if this is an outcome of `part`, and its round, terms and tree are those of `opened`.
pub fn answers(outcome: &PartOutcome, opened: &SharedTerms, part: &Part) -> bool {
    let is_same_tree = outcome.candidate.as_ref().is_none_or(|entry| {
        opened.tree_of(&entry.candidate).map(|tree| &tree.tree) == entry.tree.as_ref()
    });
    outcome.round == opened.round
        && outcome.run == opened.run
        && outcome.base == opened.base
        && outcome.part() == *part
        && is_same_tree
        && outcome.terms.first_difference(&opened.terms()).is_none()
}
