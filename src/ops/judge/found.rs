//! The outcomes that earlier judgings of one process have found for a run: a tree that was judged
//! then is not judged again.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::{Entry, Verdict};
use crate::ops::judge::judged_base::{BaseState, JudgedBase};
use crate::ops::session::Session;

/// What is known of a run before it is judged.
///
/// The verdict is that of judging everything at once: an outcome counts again only for the same tree
/// under the same commands, settings and seeds.
#[derive(Clone, Copy, Default)]
pub(super) struct FoundBefore<'a> {
    /// The run's base, if it was judged while the attempts worked.
    pub base: Option<&'a JudgedBase>,
    /// The verdicts so far, the newest last.
    pub verdicts: &'a [Verdict],
}

impl<'a> FoundBefore<'a> {
    /// The verdicts whose outcomes hold on these terms, the newest first: those after the last change
    /// that tainted one.
    pub fn holding(self, terms: &Terms) -> Vec<&'a Verdict> {
        let holds = |before: &&Verdict| {
            let settings = &before.terms.settings;
            !settings.doubts.tainted
                && !settings.in_place
                && before.terms.first_difference(terms).is_none()
        };
        self.verdicts.iter().rev().take_while(holds).collect()
    }

    /// The base for a new verdict on these terms, after those that hold. What the last of them says
    /// of it counts: a claim may have been confirmed.
    pub fn base(self, terms: &Terms, holding: &[&Verdict]) -> BaseState {
        if terms.settings.in_place {
            return BaseState::NotWanted;
        }
        let beside = self.base.filter(|base| base.terms.id() == terms.id());
        let before = holding.first().and_then(|before| {
            let baseline = before.baseline.clone()?;
            let layer =
                beside.filter(|base| base.baseline.results.passed() == baseline.results.passed());
            let layer = layer.and_then(|base| base.layer.clone());
            let ran = before.effort.ran_base;
            Some(JudgedBase { baseline, ran, layer, terms: terms.clone() })
        });
        match before.or_else(|| beside.cloned()) {
            Some(judged) => BaseState::Judged(Box::new(judged)),
            None => BaseState::Unjudged,
        }
    }
}

/// Gives entries the outcomes that verdicts, the newest first, have for their trees, and their
/// candidates the logs. Gives the number of entries that got one.
pub(super) fn take_over(
    session: &Session,
    run: &Run,
    holding: &[&Verdict],
    entries: &mut [Entry],
) -> Result<usize> {
    let mut known: BTreeMap<&Oid, &Entry> = BTreeMap::new();
    for entry in holding.iter().flat_map(|verdict| &verdict.candidates) {
        let judged =
            entry.judged().filter(|_| !entry.results.is_empty() && entry.same_as.is_none());
        if let Some(tree) = judged {
            known.entry(tree).or_insert(entry);
        }
    }
    let mut taken = 0;
    for at in 0..entries.len() {
        let (before, rest) = entries.split_at_mut(at);
        let entry = &mut rest[0];
        let found = entry.judged().filter(|_| entry.not_run()).and_then(|tree| known.get(tree));
        let Some(found) = found.filter(|found| found.second_trees() == entry.second_trees()) else {
            continue;
        };
        entry.results.clone_from(&found.results);
        entry.stale.clone_from(&found.stale);
        if let (Some(to), Some(from)) = (&mut entry.base_tests, &found.base_tests) {
            to.results.clone_from(&from.results);
        }
        let same = |other: &&Entry| other.usable() && other.judged() == entry.judged();
        entry.same_as = before.iter().find(same).map(|other| other.candidate.clone());
        if entry.same_as.is_none() {
            copy_logs(session, run, found, entry)?;
        }
        taken += 1;
    }
    Ok(taken)
}

/// Gives a candidate the logs of a judging, which may be its own of an earlier iteration.
fn copy_logs(session: &Session, run: &Run, from: &Entry, to: &Entry) -> Result<()> {
    let logs = |entry: &Entry| session.store.candidate(run, &entry.candidate).logs();
    let Some(directory) = logs(from)?.directory_of_judging(from.iteration) else { return Ok(()) };
    let place = logs(to)?.judging(to.iteration);
    place.copy_from(directory.path())?;
    match &to.base_tests {
        Some(second) if !second.results.is_empty() => {
            place.with_base_tests().copy_from(directory.base_tests().path())
        }
        _ => Ok(()),
    }
}
