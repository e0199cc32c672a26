//! The outcomes that earlier judgings of one process have found for a run: a tree that was judged
//! then is not judged again.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::verdict::{Entry, JudgeSettings, Verdict};
use crate::ops::judge::base::BaseOfAttempts;
use crate::ops::judge::judged_base::{BaseState, JudgedBase};
use crate::ops::session::Session;
use crate::store::logs::BASE_TESTS;

/// What is known of a run before it is judged.
///
/// The verdict is that of judging everything at once: an outcome counts again only for the same tree
/// under the same commands, settings and seeds.
#[derive(Clone, Copy, Default)]
pub(super) struct FoundBefore<'a> {
    /// The run's base, if it was judged while the attempts worked.
    pub base: Option<&'a BaseOfAttempts>,
    /// The verdicts so far, the newest last.
    pub verdicts: &'a [Verdict],
}

impl<'a> FoundBefore<'a> {
    /// The verdicts whose outcomes hold for a new one and these seeds, the newest first: those after
    /// the last change that tainted one.
    pub fn holding(self, verdict: &Verdict, seeds: Option<&str>) -> Vec<&'a Verdict> {
        let terms = |settings: &JudgeSettings| JudgeSettings {
            tainted: false,
            leads_back: Vec::new(),
            attempts_write: Vec::new(),
            ..settings.clone()
        };
        let wanted = terms(&verdict.settings);
        let holds = |before: &&Verdict| {
            !before.settings.tainted
                && !before.settings.in_place
                && before.oracle == verdict.oracle
                && terms(&before.settings) == wanted
                && before.seeds.as_deref() == seeds
        };
        self.verdicts.iter().rev().take_while(holds).collect()
    }

    /// The base for a new verdict with these seeds, after those that hold. What the last of them says
    /// of it counts: a claim may have been confirmed.
    pub fn base(self, verdict: &Verdict, seeds: Option<&str>, holding: &[&Verdict]) -> BaseState {
        if verdict.settings.in_place {
            return BaseState::NotWanted;
        }
        let beside =
            self.base.and_then(|base| base.under(&verdict.oracle, &verdict.settings, seeds));
        let before = holding.first().and_then(|before| {
            let baseline = before.baseline.clone()?;
            let layer = beside.filter(|base| base.baseline.passed() == baseline.passed());
            let layer = layer.and_then(|base| base.layer.clone());
            let (ran, seeds) = (before.effort.ran_base, before.seeds.clone());
            Some(JudgedBase { baseline, ran, layer, seeds })
        });
        match before.or_else(|| beside.cloned()) {
            Some(judged) => BaseState::Judged(judged),
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
    place.copy_from(&directory)?;
    match &to.base_tests {
        Some(second) if !second.results.is_empty() => {
            place.with_base_tests().copy_from(&directory.join(BASE_TESTS))
        }
        _ => Ok(()),
    }
}
