//! The ranking of a run's candidates, and the candidates that can still change it. A synthesis is a
//! candidate that was made from other candidates, its originals.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::agreement;
use crate::model::blast::Blast;
use crate::model::cross_score;
use crate::model::flag::Flag;
use crate::model::oid::Oid;
use crate::model::rank::Rank;
use crate::model::terms::Terms;
use crate::model::verdict::Entry;

/// The rules of the decision, as the terms of the judging set them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rules {
    /// `synthesis.ceiling`, if the terms record it.
    pub ceiling: Option<f64>,
    /// The ranking of the candidates that passed.
    pub rank: Rank,
    /// True if no command tests the change.
    pub tests_nothing: bool,
    /// True if there is no command to run.
    pub runs_nothing: bool,
    /// True if a pass does not count until it has been compared with the base's results.
    pub needs_base: bool,
    /// The score of [`Rank::Cross`] for a candidate whose own score is unknown.
    pub neutral: f64,
}

impl Rules {
    /// The rules by which a verdict on these terms is decided.
    pub fn of(terms: &Terms) -> Rules {
        Rules {
            ceiling: terms.settings.ceiling,
            rank: terms.settings.rank,
            tests_nothing: terms.settings.tests_nothing,
            runs_nothing: terms.oracle.is_empty(),
            needs_base: terms.settings.needs_base(),
            ..Rules::default()
        }
    }

    /// These rules with the ranking that applies to these candidates: `auto` becomes one of the
    /// other rankings, and `cross` becomes `blast-radius` if no test counts.
    ///
    /// If `auto` does not become `cross`, it becomes `agreement` in two cases: there is no command
    /// to run, or several agents or commands made the candidates. Several agents tend to make
    /// different mistakes, so their agreement says more than the size of a change. Several attempts
    /// by one agent tend to make the same mistakes.
    #[must_use]
    pub fn settled(self, entries: &[Entry]) -> Rules {
        let neutral = cross_score::neutral_score(entries);
        let rank = match (self.rank, neutral) {
            (Rank::Cross, None) => Rank::BlastRadius,
            (Rank::Auto, Some(_)) if cross_score::valid_authors(entries) > 1 => Rank::Cross,
            (Rank::Auto, _) => self.without_tests(entries),
            (rank, _) => rank,
        };
        Rules { rank, neutral: neutral.unwrap_or_default(), ..self }
    }

    /// A synthesis can win only if its size is at most this multiple of the combined size of its
    /// originals that passed.
    pub fn ceiling(&self) -> f64 {
        self.ceiling.unwrap_or(1.5)
    }

    /// The ranking for `auto` if it is not `cross`.
    fn without_tests(self, entries: &[Entry]) -> Rank {
        let attempts = entries.iter().filter(|e| e.usable() && e.drew_on.is_empty());
        let makers: BTreeSet<_> = attempts.map(|entry| &entry.maker).collect();
        let agrees = self.runs_nothing || makers.len() > 1;
        if agrees { Rank::Agreement } else { Rank::BlastRadius }
    }

    fn rank_key(&self, entry: &Entry, counts: &MakerCounts<'_>) -> RankKey {
        let score = self.score(entry).map_or(0, agreement::comparable);
        (Reverse(score), entry.blast, Reverse(counts.makers(entry)), entry.index)
    }

    /// The score that is compared before the size of the change; `None` if the ranking compares no
    /// score.
    pub(super) fn score(&self, entry: &Entry) -> Option<f64> {
        match self.rank {
            Rank::BlastRadius | Rank::Auto => None,
            Rank::Agreement => Some(entry.agreement.unwrap_or_default()),
            Rank::Cross => {
                Some(entry.cross.as_ref().and_then(|cross| cross.score).unwrap_or(self.neutral))
            }
        }
    }

    /// True if `winner` is ranked before `other` only because more attempts made the tree of
    /// `winner`.
    pub(super) fn differ_only_in_makers(
        &self,
        winner: &Entry,
        other: &Entry,
        counts: &MakerCounts<'_>,
    ) -> bool {
        let [(score, size, ..), (other_score, other_size, ..)] =
            [winner, other].map(|e| self.rank_key(e, counts));
        winner.passed_own_tests_only() == other.passed_own_tests_only()
            && self.leaves_out_tests(winner) == self.leaves_out_tests(other)
            && winner.flaky() == other.flaky()
            && (score, size) == (other_score, other_size)
            && counts.makers(winner) > counts.makers(other)
    }

    /// The best sort key that a candidate can still get. A candidate that was not run counts as a
    /// clean pass. It also counts as a pass with the base's tests, unless it is known to fail with
    /// them.
    fn at_best(&self, entry: &Entry, counts: &MakerCounts<'_>) -> (bool, bool, bool, RankKey) {
        let own_tests_only = entry.own_tests_only_at_best();
        let key = self.rank_key(entry, counts);
        (own_tests_only, self.leaves_out_tests(entry), entry.flaky(), key)
    }

    /// True if there are commands to run, and the candidate can make them pass by leaving out tests
    /// of the base: it deletes or skips some, or it changes nothing but tests and commands.
    pub(super) fn leaves_out_tests(&self, entry: &Entry) -> bool {
        let only_commands = entry.base_tests.as_ref().is_some_and(|second| second.only_commands);
        !self.runs_nothing && (only_commands || entry.flags.iter().any(Flag::leaves_out_tests))
    }
}

/// The last part of a candidate's sort key: score, size, makers of its tree, index. Lower is
/// better.
type RankKey = (Reverse<u64>, Blast, Reverse<usize>, u32);

/// The number of attempts that made each tree. These numbers do not depend on outcomes.
pub(super) struct MakerCounts<'a>(BTreeMap<&'a Oid, usize>);

impl<'a> MakerCounts<'a> {
    /// Counts the usable attempts. A synthesis does not count: it was made from attempts.
    pub(super) fn of(entries: impl IntoIterator<Item = &'a Entry>) -> MakerCounts<'a> {
        let mut counts = BTreeMap::new();
        for entry in entries.into_iter().filter(|e| e.usable() && e.drew_on.is_empty()) {
            if let Some(tree) = entry.judged() {
                *counts.entry(tree).or_insert(0) += 1;
            }
        }
        MakerCounts(counts)
    }

    /// The number of attempts that made the entry's tree.
    pub(super) fn makers(&self, entry: &Entry) -> usize {
        entry.judged().and_then(|tree| self.0.get(tree)).copied().unwrap_or_default()
    }
}

/// The usable candidates, best first:
/// 1. Candidates that passed. They are compared by three questions, in this order: Do they also
///    pass with the base's tests? Do they leave out no tests? Is their pass clean, and not flaky?
/// 2. Candidates whose test report contradicts an exit code of 0.
/// 3. Candidates that were skipped.
/// 4. Candidates that failed. They are compared by how far they got, then by whether they leave out
///    no tests, then by the number of their failing tests.
/// 5. Candidates that were not run.
pub(super) fn ranked(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let counts = MakerCounts::of(entries);
    let rules = rules.settled(entries);
    let rank = if rules.runs_nothing { rules.rank } else { Rank::BlastRadius };
    let without_pass = Rules { rank, ..rules };
    let mut usable: Vec<&Entry> = entries.iter().filter(|e| e.usable()).collect();
    usable.sort_by_key(|e| {
        if e.passed() {
            let (own_tests_only, leaves_out, flaky, key) = rules.at_best(e, &counts);
            return (0, own_tests_only, 0, leaves_out, flaky, 0, key);
        }
        let failing = e.results.failing_tests().map_or(usize::MAX, <[String]>::len);
        let group = match () {
            () if e.is_contradicted() => 1,
            () if e.skipped() => 2,
            () if e.not_run() => 4,
            () => 3,
        };
        let further = usize::MAX - reached(e);
        let leaves_out = !e.not_run() && rules.leaves_out_tests(e);
        (group, false, further, leaves_out, false, failing, without_pass.rank_key(e, &counts))
    });
    usable
}

/// The number of commands that passed before the first command that did not pass.
pub(super) fn reached(entry: &Entry) -> usize {
    entry.results.iter().take_while(|r| r.outcome.passed()).count()
}

/// The first synthesis in the ranking that passed. It is preferred to all candidates that are not
/// syntheses.
pub(super) fn preferred_synthesis<'a>(ranked: &[&'a Entry]) -> Option<&'a Entry> {
    ranked.iter().copied().find(|e| e.passed() && !e.drew_on.is_empty())
}

/// True if a synthesis that passes can win: it is in none of the cases of
/// [`is_rejected_synthesis`]. `drawn` has the originals that count for its ceiling.
pub(super) fn within_ceiling(synthesis: &Entry, drawn: &[&Entry], rules: Rules) -> bool {
    if synthesis.same_as.is_some()
        || synthesis.own_tests_only_at_best()
        || rules.leaves_out_tests(synthesis)
    {
        return false;
    }
    combined_lines(synthesis, drawn)
        .is_some_and(|lines| synthesis.blast.lines as f64 <= rules.ceiling() * lines as f64)
}

/// All candidates that passed, including syntheses that are out of the ranking.
pub(super) fn all_passing(entries: &[Entry]) -> Vec<&Entry> {
    entries.iter().filter(|e| e.passed()).collect()
}

/// True for a synthesis that passed and is out of the ranking. The verdict is then made as if there
/// were only the originals. A synthesis is out of the ranking in these cases:
/// * it is above its ceiling;
/// * it made the same tree as another candidate;
/// * it passes only with its own tests;
/// * it leaves out tests of the base ([`Rules::leaves_out_tests`]).
pub(super) fn is_rejected_synthesis(entry: &Entry, entries: &[Entry], rules: Rules) -> bool {
    let passing = all_passing(entries);
    !entry.drew_on.is_empty() && entry.passed() && !within_ceiling(entry, &passing, rules)
}

/// The combined size, in changed lines, of the originals of `entry` that are in `candidates`.
/// `None` if `entry` is not a synthesis.
pub(super) fn combined_lines(entry: &Entry, candidates: &[&Entry]) -> Option<u64> {
    if entry.drew_on.is_empty() {
        return None;
    }
    let drawn = candidates.iter().filter(|p| entry.drew_on.contains(&p.candidate));
    // Anybody may have written a record, so its numbers can be of any size.
    Some(drawn.fold(0, |sum, p| sum.saturating_add(p.blast.lines)))
}

/// The candidates that were not run and can still change the recommendation, in the order in which
/// to run them. If there are none, running all candidates would not change the recommendation.
pub fn undecided(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let counts = MakerCounts::of(entries);
    let rules = rules.settled(entries);
    let at_best = |e: &Entry| rules.at_best(e, &counts);
    let passing = all_passing(entries);
    let mut open: Vec<&Entry> = entries.iter().filter(|e| e.not_run()).collect();
    open.sort_by_key(|e| at_best(e));
    let may_pass: Vec<&Entry> = passing.iter().chain(&open).copied().collect();
    // The ceiling of a synthesis depends only on its originals that passed, so each further pass
    // can only raise the ceiling.
    let certain =
        passing.iter().filter(|e| within_ceiling(e, &passing, rules)).map(|e| at_best(e)).min();
    let contenders = may_pass.iter().filter(|e| {
        let is_certain = e.passed() && within_ceiling(e, &passing, rules);
        let better = certain.as_ref().is_none_or(|best| at_best(e) < *best);
        !is_certain && better && within_ceiling(e, &may_pass, rules)
    });
    let mut needed: Vec<&Entry> = Vec::new();
    for contender in contenders {
        let own = [*contender];
        let drawn =
            open.iter().filter(|e| contender.passed() && contender.drew_on.contains(&e.candidate));
        needed.extend(own.iter().filter(|e| e.not_run()).chain(drawn));
    }
    if certain.is_none() {
        let originals = passing.iter().filter(|e| e.drew_on.is_empty());
        let best = originals.map(|e| at_best(e)).min();
        needed.extend(open.iter().filter(|e| match &best {
            // If no candidate passes, the outcomes of all candidates decide which one came closest.
            None => true,
            Some(best) => {
                let may_rank = e.drew_on.is_empty() || within_ceiling(e, &may_pass, rules);
                may_rank && at_best(e) < *best
            }
        }));
    }
    let mut seen = BTreeSet::new();
    needed.retain(|e| seen.insert(e.index));
    needed
}
