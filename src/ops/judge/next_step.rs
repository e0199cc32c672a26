//! Chooses the next trees to judge while attempts are at work. Trees without results come first,
//! beginning with that of the attempt that would win if its tree passed. Then the claims on which
//! the recommendation depends are confirmed.
use std::collections::BTreeSet;

use crate::model::oid::Oid;
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::Entry;
use crate::ops::judge::confirm::decisive;
use crate::oracle::sealed::Warmth;
use crate::process::processor_share::ProcessorShare;

/// Some candidates that are judged at the same time and in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// The spawn indices of these candidates.
    pub entries: Vec<u32>,
    /// Whether these candidates are judged with the base's outputs.
    pub warmth: Warmth,
    /// The share of the processor that the commands get.
    pub share: ProcessorShare,
}

/// How candidates are judged while attempts work.
#[derive(Clone, Copy, Debug)]
pub struct StepRules {
    pub ranking: Rules,
    /// Whether candidates are judged with the base's outputs first.
    pub warmth: Warmth,
    /// True if only candidates that can change the recommendation are judged.
    pub until_pass: bool,
    /// True if each claimed pass is confirmed immediately, because only confirmed passes are
    /// counted (`--enough`).
    pub counts_passes: bool,
    /// The largest number of candidates in one step.
    pub jobs: usize,
}

/// The steps that were taken for each tree, so that no step is taken twice for a tree.
#[derive(Debug, Default)]
pub struct StepsTaken(BTreeSet<(Oid, Warmth, ProcessorShare)>);

impl StepsTaken {
    /// Notes a step for the tree of an entry.
    pub fn note(&mut self, entry: &Entry, NextStep { warmth, share, .. }: &NextStep) {
        self.0.extend(entry.judged().map(|tree| (*tree, *warmth, *share)));
    }

    fn contain(&self, entry: &Entry, warmth: Warmth, share: ProcessorShare) -> bool {
        entry.judged().is_none_or(|tree| self.0.contains(&(*tree, warmth, share)))
    }
}

/// The next step; `None` if no step is left. `entries` have the results that are known so far.
///
/// A tree is judged with a small share of the processor first. If the tree does not pass cleanly,
/// the cause may only be a lack of time, so its result stays unknown. When no other tree waits, the
/// tree is judged again with the whole processor.
pub fn next_step(entries: &[Entry], taken: &StepsTaken, rules: &StepRules) -> Option<NextStep> {
    let StepRules { ranking, warmth, until_pass, counts_passes, jobs } = *rules;
    let decisive = decisive(entries, ranking);
    let mut unknown = undecided(entries, ranking);
    if !until_pass {
        let all = entries.iter().filter(|entry| entry.not_run());
        let rest: Vec<&Entry> =
            all.filter(|e| unknown.iter().all(|u| u.index != e.index)).collect();
        unknown.extend(rest);
    }
    let passing: Vec<&Entry> = entries
        .iter()
        .filter(|entry| counts_passes && entry.is_claim() && entry.passed_base_tests_too())
        .collect();
    let not_taken = |entry: &Entry, warmth: Warmth, shares: &[ProcessorShare]| {
        shares.iter().copied().find(|share| !taken.contain(entry, warmth, *share))
    };
    let plainly = |entry: &Entry| {
        // If the tree failed with a small share over outputs, it is not tried with a small share
        // again.
        let is_unknown = entries.iter().any(|e| e.index == entry.index && e.not_run());
        let has_failed = is_unknown && taken.contain(entry, warmth, ProcessorShare::Third);
        let shares = [ProcessorShare::Third, ProcessorShare::Whole];
        not_taken(entry, Warmth::Cold, &shares[usize::from(has_failed)..])
    };
    let step = |of: &[&Entry], warmth: Warmth, way: &dyn Fn(&Entry) -> Option<ProcessorShare>| {
        let share = of.iter().find_map(|entry| way(entry))?;
        let same = of.iter().filter(|entry| way(entry) == Some(share)).take(jobs.max(1));
        Some(NextStep { entries: same.map(|entry| entry.index).collect(), warmth, share })
    };
    step(&passing, Warmth::Cold, &plainly)
        .or_else(|| step(&unknown, warmth, &|e| not_taken(e, warmth, &[ProcessorShare::Third])))
        .or_else(|| step(&decisive, Warmth::Cold, &plainly))
        .or_else(|| step(&unknown, warmth, &|e| not_taken(e, warmth, &[ProcessorShare::Whole])))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::error::Result;
    use crate::model::candidate::State;
    use crate::model::decision::decide;
    use crate::model::outcome::{Outcome, Results};
    use crate::model::verdict::Baseline;
    use crate::ops::judge::confirm::tests::{Ends, Judgeable, Oracle, entry, judgeable};
    use crate::ops::judge::confirm::{
        StaleCause, confirm, must_confirm_base, without_claims, without_results,
    };
    use crate::ops::judge::schedule::{Judge, JudgePhase, Schedule, Scheduler, StopWhen, Work};
    use crate::process::interrupt::Cancel;

    /// A ledger in memory: the outcomes, and the trees on which commands have passed.
    #[derive(Default)]
    struct Known {
        outcomes: BTreeMap<Oid, Results>,
        passed: BTreeSet<(Oid, Warmth)>,
    }

    /// A judge for trees whose outcome the ledger does not have. With a third of the processor, the
    /// first command fails on the trees in `slow`.
    struct Knowing<'k, 't> {
        oracle: Oracle<'t>,
        share: ProcessorShare,
        slow: &'k BTreeSet<Oid>,
        known: &'k Mutex<Known>,
    }

    impl Knowing<'_, '_> {
        fn warmth(&self) -> Warmth {
            if self.oracle.cold { Warmth::Cold } else { Warmth::Warm }
        }

        fn recall(&self, work: &Work) -> Option<Results> {
            let known = self.known.lock();
            let found = known.outcomes.get(&work.tree)?;
            (self.warmth() == Warmth::Warm || !found.is_claim()).then(|| found.clone())
        }

        fn judge_all(&self, entries: &mut [Entry], claims: &[Entry], stop: StopWhen) {
            let scheduler = Scheduler::new(entries, self.schedule(stop, claims));
            scheduler.run(scheduler.workers(1), self);
            scheduler.finish(0).expect("no judge fails");
        }

        fn fill_in(&self, entries: &mut [Entry], claims: &[Entry]) {
            let scheduler = Scheduler::new(entries, self.schedule(StopWhen::AllRan, claims));
            scheduler.fill_in(|work| Ok(self.recall(work))).expect("the ledger can be read");
        }

        fn schedule<'c>(&self, stop: StopWhen, claims: &'c [Entry]) -> Schedule<'c> {
            let phase =
                if self.oracle.cold { JudgePhase::Confirming(claims) } else { JudgePhase::First };
            Schedule::of_candidates(stop, phase)
        }
    }

    impl Judge for Knowing<'_, '_> {
        type Prepared = ();

        fn prepare(&self, _: &Work) -> Result<Option<()>> {
            Ok(Some(()))
        }

        fn judge(&self, work: &Work, (): (), _: &Cancel) -> Result<Option<Results>> {
            if let Some(found) = self.recall(work) {
                return Ok(Some(found));
            }
            let tree = work.tree;
            let results = self.oracle.results_of(work);
            let is_slow = self.share == ProcessorShare::Third && self.slow.contains(&tree);
            if self.share == ProcessorShare::Third && (is_slow || !results.is_clean_pass()) {
                let first = self.oracle.trees[0].clone();
                let failing = Judgeable { over_layers: failing(), cold: failing(), ..first };
                return Ok(Some(self.oracle.results(&failing, 0)));
            }
            let mut known = self.known.lock();
            let is_new = !results.passed() || known.passed.insert((tree, self.warmth()));
            assert!(is_new, "{tree} passed before");
            if !results.passed() {
                // After a failure, an earlier pass of the tree does not count any more.
                known.passed.retain(|(passed, _)| *passed != tree);
            }
            known.outcomes.insert(tree, results.clone());
            Ok(Some(results))
        }
    }

    fn failing() -> [Ends; 2] {
        let ends = [Outcome::Failed { code: 1 }, Outcome::Skipped];
        [ends.clone(), ends]
    }

    /// An event while attempts are at work.
    #[derive(Clone, Copy, Debug)]
    enum Happening {
        /// The next attempt ends.
        Ended,
        /// A further round of an ended attempt makes another tree.
        Round { of: prop::sample::Index, made: prop::sample::Index },
        /// A step of judging is taken.
        Step,
        /// git-frites is killed, and the run is resumed. Of the outcomes, only passes are kept.
        Killed,
    }

    fn happenings() -> impl Strategy<Value = Vec<Happening>> {
        let happening = prop_oneof![
            3 => Just(Happening::Ended),
            2 => any::<[prop::sample::Index; 2]>().prop_map(|[of, made]| Happening::Round { of, made }),
            4 => Just(Happening::Step),
            1 => Just(Happening::Killed),
        ];
        prop::collection::vec(happening, 0..30)
    }

    proptest! {
        /// The recommendation is the same as if the same captures were judged afterwards. Commands
        /// do not run again on a tree that passed. This holds for any order of ended attempts,
        /// further rounds, steps and kills. It also holds if some trees fail only for lack of time.
        #[test]
        fn judging_ahead_never_changes_the_recommendation(
            trees in prop::collection::vec(judgeable(), 1..6),
            made in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
            slow in prop::collection::btree_set(0usize..6, 0..4),
            happenings in happenings(),
            are_stopped in any::<bool>(),
            base in judgeable(),
            [has_outputs, is_warm, until_pass, counts_passes] in any::<[bool; 4]>(),
            jobs in 1usize..3,
        ) {
            let ranking = Rules::default();
            let mut entries: Vec<Entry> = made.iter().zip(1u32..).map(|(which, index)| {
                let number = which.index(trees.len());
                entry(index, number, &trees[number])
            }).collect();
            let slow: BTreeSet<Oid> = slow.iter().filter_map(|n| Oid::parse(&format!("{n:040x}"))).collect();
            let known = Mutex::new(Known::default());
            let warmth = if is_warm { Warmth::Warm } else { Warmth::Cold };
            let knowing = |warmth, share| {
                let oracle = Oracle { trees: &trees, cold: warmth == Warmth::Cold, has_outputs };
                Knowing { oracle, share, slow: &slow, known: &known }
            };
            let rules = StepRules { ranking, warmth, until_pass, counts_passes, jobs };
            let (mut ended, mut taken) = (0, StepsTaken::default());
            for happening in happenings {
                match happening {
                    Happening::Ended => ended = entries.len().min(ended + 1),
                    Happening::Round { of, made } if ended > 0 => {
                        let (of, made) = (of.index(ended), made.index(trees.len()));
                        entries[of] = entry(entries[of].index, made, &trees[made]);
                    }
                    Happening::Round { .. } => {}
                    Happening::Killed => {
                        known.lock().outcomes.retain(|_, results| results.passed());
                        taken = StepsTaken::default();
                    }
                    Happening::Step => {
                        let mut now = entries[..ended].to_vec();
                        knowing(warmth, ProcessorShare::Whole).fill_in(&mut now, &[]);
                        let mut plain = without_claims(&now);
                        knowing(Warmth::Cold, ProcessorShare::Whole).fill_in(&mut plain, &now);
                        for (entry, plain) in now.iter_mut().zip(plain) {
                            if entry.is_claim() && !plain.not_run() {
                                *entry = plain;
                            }
                        }
                        let Some(step) = next_step(&now, &taken, &rules) else { continue };
                        let wanted = now.iter().filter(|e| step.entries.contains(&e.index));
                        let mut judged: Vec<Entry> = wanted.map(without_results).collect();
                        judged.iter().for_each(|entry| taken.note(entry, &step));
                        knowing(step.warmth, step.share).judge_all(&mut judged, &now, StopWhen::AllRan);
                    }
                }
            }
            let mut captures = entries.clone();
            if are_stopped {
                // `--enough` gives this state to the attempts that it ends.
                captures[ended..].iter_mut().for_each(|entry| entry.state = State::Cancelled);
            }
            let cold = Oracle { trees: &trees, cold: true, has_outputs };
            let mut expected = captures.clone();
            cold.judge_all(&mut expected, 1, StopWhen::AllRan).expect("no judge fails");
            let cold_base = Baseline { results: cold.results(&base, 0), inherited: false };
            let expected = decide(&expected, Some(&cold_base), ranking);

            let stop = if until_pass { StopWhen::Decided(ranking) } else { StopWhen::AllRan };
            knowing(warmth, ProcessorShare::Whole).judge_all(&mut captures, &[], stop);
            let causes = captures.iter().map(|e| (e.index, StaleCause::Outputs)).collect();
            confirm(&mut captures, &causes, ranking, |entries, claims, stop| {
                knowing(Warmth::Cold, ProcessorShare::Whole).judge_all(entries, claims, stop);
                Ok(())
            }).expect("no judge fails");
            let over_layers = Oracle { cold: !is_warm, ..cold };
            let claim = Baseline { results: over_layers.results(&base, 0), inherited: has_outputs };
            let confirms = must_confirm_base(&claim.results, claim.inherited, true, &captures);
            let decision = decide(&captures, Some(if confirms { &cold_base } else { &claim }), ranking);
            prop_assert_eq!(&decision.recommended, &expected.recommended);
            prop_assert_eq!(decision.decision.verified(), expected.decision.verified());
        }
    }
}
