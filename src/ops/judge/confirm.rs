//! Confirms claims. A claim is a result that decides nothing until it is confirmed. There are three
//! kinds:
//! * A warm result: a result with the base's build outputs. A stale output can make a broken tree
//!   pass or a correct tree fail.
//! * A failure in an overlay without build outputs: an overlay can make a correct tree fail.
//! * A pass, if added tests are the only reason for a second judging: the added tests could change
//!   how other tests run.
//!
//! To confirm a claim of the first two kinds, the commands run again in a plain directory without
//! build outputs. To confirm one of the third kind, the candidate is judged without added tests.
//!
//! Before the confirmation, claims only affect which tree is judged first, and which results are
//! shown. Every claim on which the recommendation depends is confirmed, so claims never change the
//! recommendation.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::base_tests::BaseTestsResult;
use crate::model::decision::decide;
use crate::model::outcome::{Obstacle, Results};
use crate::model::ranking::{Rules, undecided};
use crate::model::verdict::Entry;
use crate::ops::judge::entries::share_equal_trees;
use crate::ops::judge::schedule::StopWhen;

/// Confirms the claims on which the recommendation by these rules depends, and the failures that
/// the overlay has probably caused. `judge_cold` takes entries, the claims, and a condition to
/// stop. It judges the entries that have no results, in plain directories. The leader is judged
/// first and alone: if its pass is confirmed, candidates that rank behind it need not be judged
/// again.
pub fn confirm(
    entries: &mut [Entry],
    causes: &StaleCauses,
    rules: Rules,
    mut judge_cold: impl FnMut(&mut [Entry], &[Entry], StopWhen) -> Result<()>,
) -> Result<()> {
    let claims = entries.to_vec();
    let mut confirmed = without_claims(&claims);
    for leader in leaders(&claims, rules) {
        let mut all = confirmed.iter_mut();
        let Some(leader) = all.find(|entry| entry.index == leader.index) else { continue };
        judge_cold(std::slice::from_mut(leader), &claims, StopWhen::AllRan)?;
        if leader.passed_base_tests_too() {
            break;
        }
    }
    judge_cold(&mut confirmed, &claims, StopWhen::Decided(rules))?;
    share_equal_trees(&mut confirmed);
    put_confirmed(entries, confirmed, causes);
    let mut refused = refused(entries, causes);
    if !refused.is_empty() {
        judge_cold(&mut refused, &claims, StopWhen::AllRan)?;
        put_confirmed(entries, refused, causes);
    }
    Ok(())
}

/// The entries whose claims could change the recommendation by these rules if they are confirmed.
/// Claims that are not confirmed decide nothing.
pub fn open_claims(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let mut open = same_among(entries, &undecided(&without_claims(entries), rules));
    open.retain(|entry| entry.is_claim());
    open
}

/// The entries that have to be judged for a recommendation by these rules, if the leader's pass is
/// confirmed. The leader comes first. Then comes each entry that could rank before the leader and
/// has claims or no results.
pub fn decisive(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let leader = leaders(entries, rules).first().copied();
    let mut presumed = without_claims(entries);
    for entry in presumed.iter_mut().filter(|e| leader.is_some_and(|l| l.index == e.index)) {
        leader.into_iter().for_each(|leader| entry.clone_from(leader));
    }
    let open = same_among(entries, &undecided(&presumed, rules));
    leader.into_iter().chain(open).collect()
}

/// The entries with claims among the [`decisive`] ones.
pub fn to_confirm(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let mut open = decisive(entries, rules);
    open.retain(|entry| entry.is_claim());
    open
}

/// The entry that wins by the results confirmed so far, and the entries that could still win
/// instead. `None` if no entry wins so far, or if no other entry could win any more.
pub fn provisional(entries: &[Entry], rules: Rules) -> Option<(&Entry, Vec<&Entry>)> {
    let open = undecided(entries, rules);
    let best = decide(entries, None, rules).recommended?;
    let leader = entries.iter().find(|entry| entry.candidate == best && entry.verified())?;
    (!open.is_empty()).then_some((leader, open))
}

/// The entries whose claims say that they would win, in order: the first would win, the second
/// would win if the first were refuted, and so on.
fn leaders(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let mut leaders = open_claims(entries, rules);
    leaders.retain(|entry| entry.passed_base_tests_too());
    leaders.sort_by_key(|entry| entry.flaky());
    leaders
}

/// For each entry of `some`, the entry of the same candidate in `entries`, in the order of `some`.
fn same_among<'e>(entries: &'e [Entry], some: &[&Entry]) -> Vec<&'e Entry> {
    some.iter().filter_map(|some| entries.iter().find(|e| e.index == some.index)).collect()
}

/// A copy of the entries in which the entries with claims have no results, as if they were not run.
/// The results of a second judging stay unless they are claims. If it failed, the candidate can
/// still pass with its own tests, but not with the base's.
pub fn without_claims(entries: &[Entry]) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    for entry in entries.iter_mut().filter(|entry| entry.is_claim()) {
        entry.results.0.clear();
        let second = entry.base_tests.iter_mut();
        second.filter(|s| s.results.is_claim()).for_each(|second| second.results.0.clear());
    }
    entries
}

/// A copy of the entry without results, as if it was not run.
pub fn without_results(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    entry.results.0.clear();
    if let Some(second) = &mut entry.base_tests {
        second.results.0.clear();
    }
    entry
}

/// True if any result is a claim.
pub fn any_claims(entries: &[Entry]) -> bool {
    entries.iter().any(Entry::is_claim)
}

/// If a recommendation by these rules would depend on claims, removes all claims.
pub fn drop_decisive_claims(entries: &mut Vec<Entry>, rules: Rules) {
    let without = without_claims(entries);
    if any_claims(entries) && !undecided(&without, rules).is_empty() {
        *entries = without;
    }
}

/// The reason why a result over the base's layers can differ from the result without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleCause {
    /// The base's build outputs.
    Outputs,
    /// The overlay alone, without outputs.
    Overlay,
    /// The overlay: the output of the command says that it could not rename a directory of the
    /// base.
    Rename,
}

/// True if the output of the failed command says that a rename was refused. The overlay refuses to
/// rename directories of the base.
pub fn stumbled(results: &Results) -> bool {
    let failure = results.stopped_at().filter(|result| result.warm);
    failure.is_some_and(|result| result.obstacle == Some(Obstacle::Rename))
}

/// True if the base has to be judged again without layers. `inherited` is true if the layers have
/// outputs of an earlier judging. `said` is true if the output of a failed command says that the
/// overlay refused a rename.
///
/// A failure of the base always matters, because the candidates' failures are compared with it. A
/// pass matters only if no candidate passes.
pub fn must_confirm_base(
    results: &Results,
    inherited: bool,
    said: bool,
    entries: &[Entry],
) -> bool {
    let passed = results.passed();
    let is_doubtful = said || entries.iter().any(|e| e.stale.is_some() && e.passed());
    let is_inherited = inherited && !(passed && entries.iter().any(Entry::passed));
    results.is_claim() && (is_inherited || !passed && is_doubtful)
}

/// The causes of the entries' claims, by spawn index.
pub type StaleCauses = BTreeMap<u32, StaleCause>;

/// The entries that probably failed because of the overlay, without their results. Either the
/// output of their commands says so, or another entry failed over the overlay and passed in a plain
/// directory.
fn refused(entries: &[Entry], causes: &StaleCauses) -> Vec<Entry> {
    let cause = |entry: &Entry| causes.get(&entry.index).copied().unwrap_or(StaleCause::Outputs);
    let by_overlay = |entry: &Entry| cause(entry) != StaleCause::Outputs;
    let is_shown = entries.iter().any(|e| e.stale.is_some() && e.passed() && by_overlay(e));
    let is_refused = |entry: &&Entry| {
        let is_suspect = cause(entry) == StaleCause::Rename || is_shown && by_overlay(entry);
        entry.is_claim() && !entry.passed() && is_suspect
    };
    entries.iter().filter(is_refused).map(without_results).collect()
}

/// Replaces claims by confirmed results, and records where they differ. Also fills in results of
/// candidates that were not run before: some candidates matter only after a claim was refuted.
fn put_confirmed(entries: &mut [Entry], confirmed: Vec<Entry>, causes: &StaleCauses) {
    for confirmed in confirmed {
        let mut open = entries.iter_mut().filter(|e| e.is_claim() || e.not_run());
        let Some(entry) = open.find(|e| e.index == confirmed.index) else { continue };
        let confirmed = with_claimed_pass(&confirmed, entry);
        if confirmed.not_run() {
            continue;
        }
        let cause = causes.get(&confirmed.index).filter(|_| entry.is_claim());
        let stale = cause.and_then(|cause| contradiction(entry, &confirmed, *cause));
        let stale = stale.or(entry.stale.take());
        // A pass that is not a claim stays as this judging has found it. The confirmation only has
        // a copy of it from the cache.
        let is_final = entry.results.passed()
            && !entry.results.is_claim()
            && (confirmed.results.passed() || !entry.is_pending());
        let results = if is_final { entry.results.clone() } else { confirmed.results };
        *entry = Entry { stale, results, ..confirmed };
    }
}

/// The confirmed entry. If only its second judging was done again, the claimed results of its own
/// tree are filled in.
fn with_claimed_pass(confirmed: &Entry, claim: &Entry) -> Entry {
    let mut confirmed = confirmed.clone();
    let second = confirmed.base_tests.as_ref();
    if confirmed.not_run() && second.is_some_and(|second| !second.results.is_empty()) {
        confirmed.results.clone_from(&claim.results);
    }
    confirmed
}

/// The difference between a claim and the confirmed results, in words; `None` if both end alike.
pub fn contradiction(claim: &Entry, confirmed: &Entry, cause: StaleCause) -> Option<String> {
    let confirmed = &with_claimed_pass(confirmed, claim);
    // A candidate whose claim is pending was not judged without its added tests before, so there is
    // nothing to compare with.
    let is_compared = |second: &&BaseTestsResult| !claim.is_pending() && !second.results.is_empty();
    let end = |entry: &Entry| {
        let second = entry.base_tests.as_ref().filter(is_compared);
        let (before, results) = match second {
            Some(second) if entry.results.passed() => {
                ("passed, but with the base's tests it ", &second.results)
            }
            _ => ("", &entry.results),
        };
        match results.stopped_at() {
            None => "passed".to_owned(),
            Some(result) => format!("{before}ended at {}: {}", result.stage, result.outcome),
        }
    };
    let end_of = |entry: &Entry| (entry.passed(), entry.passed_own_tests_only());
    let passed_both = [claim, confirmed].iter().all(|entry| entry.results.passed());
    if end_of(claim) == end_of(confirmed) || (claim.is_pending() && passed_both) {
        return None;
    }
    let (first, second) = (end(claim), end(confirmed));
    Some(match cause {
        // The candidate is correct, but its commands cannot run twice in one place. For example,
        // `ln -s` fails if the link exists.
        StaleCause::Outputs if confirmed.passed() => format!(
            "no second build in one place: with the base's outputs it {first}, without them it {second}"
        ),
        StaleCause::Outputs => format!(
            "stale build output: with the base's outputs it {first}, without them it {second}"
        ),
        StaleCause::Overlay => format!(
            "failed over the overlay: with the base's outputs it {first}, in a plain directory it \
             {second}"
        ),
        StaleCause::Rename => format!(
            "overlay refused a rename: with the base's outputs it {first}, in a plain directory it \
             {second}"
        ),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::cmp::Ordering;

    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::model::blast::Blast;
    use crate::model::cross::CrossResult;
    use crate::model::flag::FlagKind;
    use crate::model::oid::Oid;
    use crate::model::outcome::{Outcome, Stage, StageResult};
    use crate::model::rank::Rank;
    use crate::model::verdict::Baseline;
    use crate::ops::judge::schedule::{Judge, JudgePhase, Schedule, Scheduler, Work};
    use crate::process::interrupt::Cancel;

    /// The outcomes of two commands.
    pub type Ends = [Outcome; 2];

    /// A tree that can be judged. `over_layers` and `cold` have two items each. The first has the
    /// outcomes of the commands on the tree itself. The second has those on the tree with the
    /// base's tests put back.
    #[derive(Clone, Debug)]
    pub struct Judgeable {
        pub lines: u64,
        pub second: Option<Second>,
        pub over_layers: [Ends; 2],
        pub cold: [Ends; 2],
    }

    /// When a tree has a second judging: in any case, or only if the recommendation depends on it
    /// (`if_first`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Second {
        Always,
        IfFirst,
    }

    fn ends() -> impl Strategy<Value = Ends> {
        let end = prop_oneof![
            4 => Just(Outcome::Passed),
            1 => any::<bool>().prop_map(|refused| Outcome::Flaky { refused }),
            1 => Just(Outcome::Failed { code: 1 }),
            1 => Just(Outcome::CannotTell),
            1 => (1u64..9).prop_map(|failed| Outcome::ReportedFailures { failed }),
        ];
        [end.clone(), end].prop_map(|[first, second]| {
            let second = if first.passed() { second } else { Outcome::Skipped };
            [first, second]
        })
    }

    pub fn judgeable() -> impl Strategy<Value = Judgeable> {
        let second = prop::sample::select(vec![None, Some(Second::Always), Some(Second::IfFirst)]);
        let parts = (0u64..5, second, [ends(), ends()], [ends(), ends()]);
        parts.prop_map(|(lines, second, over_layers, cold)| Judgeable {
            lines,
            second,
            over_layers,
            cold,
        })
    }

    /// A judge that runs no commands. It returns the results that `trees` lists: if `cold`, the
    /// cold ones, otherwise the ones over layers with or without outputs.
    #[derive(Clone, Copy)]
    pub struct Oracle<'t> {
        pub trees: &'t [Judgeable],
        pub cold: bool,
        pub has_outputs: bool,
    }

    impl Oracle<'_> {
        pub fn results(&self, tree: &Judgeable, which: usize) -> Results {
            let over_layers = &tree.over_layers[which];
            // Without outputs, a pass over the overlay is also a pass in a plain directory.
            let passed_without = !self.has_outputs && over_layers.iter().all(Outcome::passed);
            let is_cold = self.cold && !passed_without;
            let ends = if is_cold { &tree.cold[which] } else { over_layers };
            let result = |end: &Outcome| {
                let counts = *end != Outcome::Skipped && (self.has_outputs || !end.passed());
                let warm = !self.cold && counts;
                StageResult { warm, ..StageResult::new(Stage::Test, 0.0, end.clone()) }
            };
            Results(ends.iter().map(result).collect())
        }

        /// Judges the entries without results.
        pub fn judge_all(&self, entries: &mut [Entry], jobs: usize, stop: StopWhen) -> Result<()> {
            let phase = if self.cold { JudgePhase::Confirming(&[]) } else { JudgePhase::First };
            judge_by(self, entries, (phase, stop), jobs)
        }
    }

    fn judge_by(
        judge: &impl Judge,
        entries: &mut [Entry],
        (phase, stop): (JudgePhase<'_>, StopWhen),
        jobs: usize,
    ) -> Result<()> {
        let scheduler = Scheduler::new(entries, Schedule::of_candidates(stop, phase));
        scheduler.run(scheduler.workers(jobs), judge);
        scheduler.finish(0).map(drop)
    }

    /// A judge that returns the results of `oracle`, and records each judged tree.
    struct Counting<'t> {
        oracle: Oracle<'t>,
        judged: Mutex<Vec<Oid>>,
    }

    impl Judge for Counting<'_> {
        type Prepared = ();

        fn prepare(&self, _: &Work) -> Result<Option<()>> {
            Ok(Some(()))
        }

        fn judge(&self, work: &Work, (): (), _: &Cancel) -> Result<Option<Results>> {
            let tree = work.tree;
            let mut judged = self.judged.lock();
            if !judged.contains(&tree) {
                judged.push(tree);
            }
            Ok(Some(self.oracle.results_of(work)))
        }
    }

    impl Judge for Oracle<'_> {
        type Prepared = ();

        fn prepare(&self, _: &Work) -> Result<Option<()>> {
            Ok(Some(()))
        }

        fn judge(&self, work: &Work, (): (), _: &Cancel) -> Result<Option<Results>> {
            Ok(Some(self.results_of(work)))
        }
    }

    impl Oracle<'_> {
        /// The results of the tree of `work`.
        pub fn results_of(&self, work: &Work) -> Results {
            let tree = work.tree.to_string();
            let number = usize::from_str_radix(&tree, 16).expect("a small number");
            self.results(&self.trees[number % SECOND], number / SECOND)
        }
    }

    /// In its second judging, the tree with the number `n` has the number `SECOND + n`.
    const SECOND: usize = 1000;

    fn tree(number: usize) -> Option<Oid> {
        Oid::parse(&format!("{number:040x}"))
    }

    /// An entry without results.
    pub fn entry(index: u32, number: usize, tree: &Judgeable) -> Entry {
        Entry {
            candidate: format!("c{index}").parse().expect("a valid name"),
            index,
            iteration: Some(1),
            tree: self::tree(number),
            blast: Blast { lines: tree.lines, files: 1 },
            base_tests: tree.second.map(|second| BaseTestsResult {
                tree: self::tree(number + SECOND),
                if_first: second == Second::IfFirst,
                ..BaseTestsResult::default()
            }),
            ..Entry::default()
        }
    }

    #[test]
    fn a_confirmation_counts_for_all_candidates_with_the_tree() {
        let ends = || [Outcome::Passed, Outcome::Passed];
        let both = || [ends(), ends()];
        let trees = [Judgeable { lines: 1, second: None, over_layers: both(), cold: both() }];
        let mut entries = [1, 2].map(|index| entry(index, 0, &trees[0]));
        let warm = Oracle { trees: &trees, cold: false, has_outputs: true };
        warm.judge_all(&mut entries, 1, StopWhen::AllRan).expect("no judge fails");
        let cold = Oracle { cold: true, ..warm };
        confirm(&mut entries, &StaleCauses::new(), Rules::default(), |entries, claims, stop| {
            judge_by(&cold, entries, (JudgePhase::Confirming(claims), stop), 1)
        })
        .expect("no judge fails");
        assert!(entries.iter().all(|entry| entry.passed() && !entry.is_claim()), "{entries:?}");
    }

    #[test]
    fn a_contradiction_tells_the_second_judging_from_the_first() {
        let [passed, failed] = [Outcome::Passed, Outcome::Failed { code: 1 }];
        let ends = |first: &Outcome, second: &Outcome| {
            [first, second].map(|end| [end.clone(), Outcome::Skipped])
        };
        let judged = |ends: [Ends; 2]| {
            let second = Some(Second::Always);
            let over_layers = ends.clone();
            let mut entry =
                entry(1, 0, &Judgeable { lines: 1, second, over_layers, cold: ends.clone() });
            let [own, with_base_tests] =
                ends.map(|[end, _]| Results(vec![StageResult::new(Stage::Test, 0.0, end)]));
            entry.results = own;
            if entry.results.passed() {
                let second = entry.base_tests.as_mut().expect("a second judging");
                second.results = with_base_tests;
            }
            entry
        };
        let tree = |over_layers, cold| {
            let cause = StaleCause::Outputs;
            contradiction(&judged(over_layers), &judged(cold), cause).unwrap_or_default()
        };
        assert_eq!(
            tree(ends(&failed, &passed), ends(&passed, &failed)),
            "no second build in one place: with the base's outputs it ended at test: exit 1, without \
             them it passed, but with the base's tests it ended at test: exit 1"
        );
        assert_eq!(
            tree(ends(&passed, &failed), ends(&failed, &passed)),
            "stale build output: with the base's outputs it passed, but with the base's tests it ended \
             at test: exit 1, without them it ended at test: exit 1"
        );
    }

    proptest! {
        /// The recommendation is the same as if everything were judged without layers and without
        /// added tests. It does not depend on:
        /// * outcomes over the base's layers;
        /// * outcomes of a base over its ancestor's layers;
        /// * candidates that pass only with their added tests.
        #[test]
        fn claims_never_change_the_recommendation(
            trees in prop::collection::vec(judgeable(), 1..6),
            made in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<bool>(), 8)), 1..8),
            base in judgeable(),
            has_outputs in any::<bool>(),
            said in any::<bool>(),
            until_pass in any::<bool>(),
            jobs in 1usize..3,
            ceiling in prop::sample::select(vec![0.5, 1.0, 1.5]),
            rank in prop::sample::select(vec![Rank::BlastRadius, Rank::Cross]),
            scores in prop::collection::vec(prop::sample::select(vec![None, Some(0.0), Some(0.5), Some(1.0)]), 5),
        ) {
            let rules = Rules { ceiling: Some(ceiling), rank, ..Rules::default() };
            let mut entries: Vec<Entry> = Vec::new();
            for ((which, drawn), index) in made.iter().zip(1u32..) {
                let number = which.index(trees.len());
                let mut new = entry(index, number, &trees[number]);
                new.cross = Some(CrossResult { score: scores[number], ..CrossResult::default() });
                if number % 4 == 1 {
                    new.flags = vec![FlagKind::TestsDeleted.at("test")];
                }
                // Every third candidate is a synthesis of some earlier candidates.
                if index % 3 == 0 {
                    let of = entries.iter().zip(drawn).filter(|(_, is)| **is);
                    new.drew_on = of.map(|(e, _)| e.candidate.clone()).collect();
                }
                entries.push(new);
            }
            let mut all_cold = entries.clone();
            let cold = Oracle { trees: &trees, cold: true, has_outputs };
            cold.judge_all(&mut all_cold, 1, StopWhen::AllRan).expect("no judge fails");
            let cold_base = Baseline { results: cold.results(&base, 0), inherited: false };
            let expected = decide(&all_cold, Some(&cold_base), rules);

            let over_layers = Oracle { cold: false, ..cold };
            let stop = if until_pass { StopWhen::Decided(rules) } else { StopWhen::AllRan };
            over_layers.judge_all(&mut entries, jobs, stop).expect("no judge fails");
            let cause = match (has_outputs, said) {
                (_, true) => StaleCause::Rename,
                (true, false) => StaleCause::Outputs,
                (false, false) => StaleCause::Overlay,
            };
            let causes = entries.iter().map(|e| (e.index, cause)).collect();
            confirm(&mut entries, &causes, rules, |entries, claims, stop| {
                judge_by(&cold, entries, (JudgePhase::Confirming(claims), stop), jobs)
            }).expect("no judge fails");
            let claim = Baseline { results: over_layers.results(&base, 0), inherited: has_outputs };
            let confirms = must_confirm_base(&claim.results, claim.inherited, said, &entries);
            let decision = decide(&entries, Some(if confirms { &cold_base } else { &claim }), rules);
            prop_assert_eq!(&decision.recommended, &expected.recommended);
            prop_assert_eq!(decision.decision.verified(), expected.decision.verified());
            let recommended = entries.iter().find(|e| Some(&e.candidate) == decision.recommended.as_ref());
            prop_assert!(recommended.is_none_or(|e| !e.is_claim()));
        }

        /// If all claims are true and a candidate is verified, only these trees are judged cold:
        /// all trees of the winner, and for each smaller candidate one tree that fails.
        #[test]
        fn true_claims_cost_no_more_than_the_proof_of_the_winner(
            trees in prop::collection::vec(judgeable(), 1..6),
            jobs in 1usize..3,
        ) {
            // There are no flaky passes here: only a run shows that a pass is flaky, and then other
            // candidates may rank before the flaky one.
            let certain = |end: &Outcome| match end {
                Outcome::Flaky { .. } => Outcome::Passed,
                end => end.clone(),
            };
            let ends = |tree: &Judgeable| tree.over_layers.each_ref().map(|ends| ends.each_ref().map(certain));
            let trees = trees.iter().map(|tree| Judgeable { over_layers: ends(tree), cold: ends(tree), ..tree.clone() });
            let trees: Vec<Judgeable> = trees.collect();
            let mut entries: Vec<Entry> =
                (1u32..).zip(trees.iter().enumerate()).map(|(index, (number, tree))| entry(index, number, tree)).collect();
            let oracle = Oracle { trees: &trees, cold: false, has_outputs: true };
            oracle.judge_all(&mut entries, jobs, StopWhen::AllRan).expect("no judge fails");
            let rules = Rules::default();
            let causes = StaleCauses::new();
            let counting = Counting { oracle: Oracle { cold: true, ..oracle }, judged: Mutex::default() };
            let foretold: Vec<u32> = to_confirm(&entries, rules).iter().map(|entry| entry.index).collect();
            confirm(&mut entries, &causes, rules, |entries, claims, stop| {
                judge_by(&counting, entries, (JudgePhase::Confirming(claims), stop), jobs)
            }).expect("no judge fails");
            let decision = decide(&entries, None, rules);
            let winner = entries.iter().find(|e| Some(&e.candidate) == decision.recommended.as_ref()).expect("one");
            if !decision.decision.verified() {
                return Ok(());
            }
            let rank = |entry: &Entry| (entry.blast, entry.index);
            // With added tests, a claimed pass may be refuted by the second judging, so it cannot
            // be foretold which trees are judged.
            let is_foretold = trees.iter().all(|tree| tree.second != Some(Second::IfFirst));
            let judged = counting.judged.into_inner();
            for (entry, number) in entries.iter().zip(0..) {
                let of_it = [tree(number), tree(number + SECOND)].into_iter().flatten();
                let count = of_it.filter(|tree| judged.contains(tree)).count();
                let all = 1 + usize::from(entry.base_tests.is_some());
                let expected = match rank(entry).cmp(&rank(winner)) {
                    Ordering::Equal => all..=all,
                    Ordering::Less => 1..=1,
                    Ordering::Greater => 0..=0,
                };
                prop_assert!(expected.contains(&count), "{count} of {}", entry.candidate);
                prop_assert!(!is_foretold || foretold.contains(&entry.index) == (count > 0), "{foretold:?}");
            }
        }
    }
}
