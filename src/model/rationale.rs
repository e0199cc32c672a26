//! The rationale of a verdict: a sentence on which a reviewer can act, made from the records alone.
//! A synthesis is a candidate that was made from other candidates, its originals.
use crate::model::agreement;
use crate::model::base_tests::{BaseTestsResult, PART_OF};
use crate::model::candidate::{ENOUGH_PASSED, State};
use crate::model::count::{count, some_of};
use crate::model::cross::ProofKind;
use crate::model::flag::{self, Flag};
use crate::model::name::Name;
use crate::model::outcome::{CANNOT_TELL, Obstacle, Outcome, Stage, StageResult};
use crate::model::rank::Rank;
use crate::model::ranking::{MakerCounts, Rules, all_passing, combined_lines};
use crate::model::test_comparison::{Comparison, left_out};
use crate::model::test_report::some_tests;
use crate::model::verdict::{Baseline, DecisionKind, Entry};

/// The words for a pass that counts less, because the candidate fails with the base's tests or
/// commands.
pub const WITH_OWN_TESTS_ONLY: &str = "only with its own tests or commands";

/// Everything from which a decision is made.
pub(super) struct DecisionInputs<'a> {
    pub entries: &'a [Entry],
    /// The usable candidates, best first.
    pub usable: &'a [&'a Entry],
    /// The usable candidates that passed, best first.
    pub passing: &'a [&'a Entry],
    /// The candidates whose missing result could change the recommendation.
    pub missing: &'a [&'a Entry],
    pub baseline: Option<&'a Baseline>,
    pub rules: Rules,
}

impl DecisionInputs<'_> {
    /// The reason for a decision, as a sentence.
    pub fn sentence(&self, kind: DecisionKind, winner: Option<&Entry>) -> String {
        let Some(winner) = winner else { return no_usable(self.entries) };
        let mut text = match kind {
            DecisionKind::OwnTests => self.own_tests(winner),
            DecisionKind::NoOracle => self.no_oracle(winner),
            DecisionKind::Undecided => self.undecided(winner),
            DecisionKind::ReportedFailures => {
                self.contradicted(winner, "as if a pipe had lost its exit code")
            }
            DecisionKind::MissingTests => {
                self.contradicted(winner, "as if something had ended or skipped tests")
            }
            DecisionKind::BrokenBase => self.broken_base(winner),
            DecisionKind::NearMiss => self.near_miss(winner),
            DecisionKind::Synthesis => self.synthesised(winner),
            DecisionKind::Single => format!(
                "{} is the only usable candidate, and it passed {}: {}",
                winner.candidate,
                stages(winner),
                winner.blast
            ),
            DecisionKind::Tests => self.only_one(winner),
            _ if self.passing.len() == 1 => {
                format!("{} passed {}: {}", winner.candidate, stages(winner), winner.blast)
            }
            _ => self.best_of_several(),
        };
        let is_open = kind == DecisionKind::Undecided;
        if kind != DecisionKind::Synthesis && !is_open {
            text.push_str(&self.why_no_synthesis());
        }
        if !is_open {
            text.push_str(&self.what_was_not_run());
        }
        if kind.verified() && self.rules.tests_nothing {
            let why = "nothing tests the change: no test command was named or detected, so nothing is verified";
            text = format!("{why}; {text}");
        } else if kind.verified()
            && let Some(why) = winner.why_untested(self.baseline)
        {
            text = format!("nothing tests the change: {why}, so nothing is verified; {text}");
        } else if let Some(base) =
            self.baseline.filter(|base| kind.verified() && base.results.passed())
        {
            text.push_str(base_passes_too(base, winner));
        }
        text.push_str(&to_check(kind, winner, self.baseline));
        if kind.verified()
            && let Some(why) = winner.base_tests.as_ref().and_then(why_judged_twice)
        {
            text.push_str(&format!("; {why}"));
        }
        text
    }

    /// The sentence if every candidate that passed did so only with its own tests or commands, or
    /// was not fully compared with the base.
    fn own_tests(&self, best: &Entry) -> String {
        let Entry { candidate, blast, .. } = best;
        let why = without_own_tests(best);
        match self.passing.len() {
            1 if is_not_compared(best) => {
                format!(
                    "{candidate} passes, with {blast}, but is not compared with the base: {why}"
                )
            }
            1 => format!("{candidate} passes {WITH_OWN_TESTS_ONLY}, with {blast}: {why}"),
            several => {
                let not_compared =
                    self.passing.iter().filter(|entry| is_not_compared(entry)).count();
                let only = match not_compared {
                    0 => WITH_OWN_TESTS_ONLY,
                    all if all == several => "without a full comparison with the base",
                    _ => {
                        "only with its own tests or commands, or without a full comparison with the base"
                    }
                };
                format!(
                    "{several} of {} passed, but each {only}; {candidate} is the first of them, with {blast}: {why}",
                    self.usable.len()
                )
            }
        }
    }

    /// The number of candidates that passed, and the names of those among them that passed only
    /// with their own tests, or were not fully compared with the base.
    fn how_many_passed(&self) -> String {
        let mut text = format!("{} of {} passed", self.passing.len(), self.usable.len());
        for (not_compared, only) in
            [(false, WITH_OWN_TESTS_ONLY), (true, "without a full comparison with the base")]
        {
            let own: Vec<&str> = in_spawn_order(self.passing)
                .filter(|e| e.passed_own_tests_only() && is_not_compared(e) == not_compared)
                .map(|e| e.candidate.as_str())
                .collect();
            if !own.is_empty() {
                let each = if own.len() > 1 { "each " } else { "" };
                let link = if text.ends_with("passed") { "but" } else { "and" };
                text.push_str(&format!(", {link} {} {each}{only}", and(&own)));
            }
        }
        text
    }

    /// The reason why each synthesis was not preferred.
    fn why_no_synthesis(&self) -> String {
        let all: Vec<&Entry> = self.entries.iter().collect();
        let syntheses = in_spawn_order(&all).filter(|e| !e.drew_on.is_empty());
        syntheses
            .map(|e| format!("; {} is not preferred: {}", e.candidate, self.against(e)))
            .collect()
    }

    fn against(&self, synthesis: &Entry) -> String {
        let blast = synthesis.blast;
        match (synthesis.state, &synthesis.same_as) {
            _ if synthesis.problem.is_some() => "it could not be captured".into(),
            (State::Failed, _) => "its command failed".into(),
            (State::TimedOut, _) => "its command timed out".into(),
            (State::Cancelled, _) => "its command was interrupted".into(),
            (State::Limited, _) => synthesis.why_limited(),
            (State::Running, _) => "its command still runs".into(),
            _ if blast.files == 0 => "it changed nothing".into(),
            _ if synthesis.not_run() => "it was not run".into(),
            _ if !synthesis.passed() => format!("it {}", failed_at(synthesis)),
            (_, Some(twin)) => format!("it made the same tree as {twin}"),
            _ if synthesis.passed_own_tests_only() => {
                format!("it {}: {}", how_it_passes(synthesis), without_own_tests(synthesis))
            }
            _ => match combined_lines(synthesis, &all_passing(self.entries)) {
                None | Some(0) => "none of the candidates that it drew on passed".into(),
                Some(combined) => format!(
                    "its {} lines are more than {} times the {combined} lines of the candidates that it drew on",
                    blast.lines,
                    self.rules.ceiling()
                ),
            },
        }
    }

    fn what_was_not_run(&self) -> String {
        let left = self.usable.iter().filter(|e| e.not_run()).count();
        if left == 0 || left == self.usable.len() {
            return String::new();
        }
        let skipped = self.usable.iter().filter(|e| e.skipped()).count();
        let failed = self.usable.len() - self.passing.len() - skipped - left;
        let count = |n: usize, end: &str| match n {
            0 => String::new(),
            n => format!("{n} {end}, "),
        };
        let failed = count(failed, "failed") + &count(skipped, "skipped");
        let were = if left == 1 { "was" } else { "were" };
        let none = if left == 1 { "it could not" } else { "none of them could" };
        format!("; {failed}{left} {were} not run, because {none} be recommended instead")
    }

    fn no_oracle(&self, best: &Entry) -> String {
        let usable = self.usable.len();
        let among = match self.rules.score(best) {
            _ if usable == 1 => "is the only usable candidate".into(),
            Some(score) => format!("of {usable} {} ({score:.3})", excels(self.rules.rank)),
            None => format!("is the smallest of {usable}"),
        };
        format!(
            "no build, lint or test command was found, so nothing is verified; {} {among}: {}",
            best.candidate, best.blast
        )
    }

    fn undecided(&self, best: &Entry) -> String {
        if self.missing.is_empty() && self.passing.is_empty() {
            return self.only_skipped(best);
        }
        let ran = self.usable.iter().filter(|e| !e.not_run()).count();
        let lead = if self.passing.is_empty() {
            format!("so far, none of {ran} passed")
        } else {
            let passed = self.passing.len();
            format!(
                "so far, {passed} of {ran} passed; {} is ahead, with {}",
                best.candidate, best.blast
            )
        };
        if self.missing.is_empty() {
            return format!(
                "{lead}; the base has no outcome yet, and each pass must be compared with it"
            );
        }
        let names: Vec<&str> = self.missing.iter().map(|e| e.candidate.as_str()).collect();
        let have = if names.len() == 1 { "has" } else { "have" };
        // The outcome of an original may matter only because it decides whether a synthesis wins.
        let has_synthesis = self.entries.iter().any(|e| !e.drew_on.is_empty());
        let may = if has_synthesis { "change the recommendation" } else { "win" };
        format!("{lead}; {} {have} no outcome yet and could still {may}", and(&names))
    }

    /// The sentence if no candidate passed, and commands could not tell whether some candidates are
    /// right.
    fn only_skipped(&self, best: &Entry) -> String {
        let skipped: Vec<String> =
            in_spawn_order(self.usable).filter(|e| e.skipped()).map(stopped).collect();
        let lead = match self.usable.len() {
            1 => format!("the one usable candidate {}", failed_at(best)),
            usable => format!("none of {usable} passed, and {}", and(&skipped)),
        };
        format!("{lead}, so nothing is verified; {} changes {}", best.candidate, best.blast)
    }

    fn only_one(&self, winner: &Entry) -> String {
        let others = in_spawn_order(self.usable).filter(|e| e.candidate != winner.candidate);
        let others: Vec<String> = others.map(stopped).collect();
        format!(
            "only {} of {} passed {}: {}; {}",
            winner.candidate,
            self.usable.len(),
            stages(winner),
            winner.blast,
            others.join(", ")
        )
    }

    fn best_of_several(&self) -> String {
        let winner = self.passing[0];
        let next = self.passing[1];
        let lead = format!("{}; {}", self.how_many_passed(), winner.candidate);
        if next.passed_own_tests_only() {
            return format!("{lead} is the only other one that passed, with {}", winner.blast);
        }
        let scores = self.rules.score(winner).zip(self.rules.score(next));
        let best = if scores.is_some() { "the best" } else { "the smallest" };
        if self.rules.leaves_out_tests(winner) != self.rules.leaves_out_tests(next) {
            return format!(
                "{lead} is {best} that leaves out no tests, with {}; {} {}",
                winner.blast,
                next.candidate,
                leaves_out(next)
            );
        }
        let lead = self.lead_among_compared(winner, None);
        if winner.flaky() != next.flaky() {
            return format!(
                "{lead} is {best} that passed at once, with {}; {} needed a retry",
                winner.blast, next.candidate
            );
        }
        if let Some((of_winner, of_next)) = scores
            && of_winner != of_next
        {
            let [of_winner, of_next] = agreement::told_apart(of_winner, of_next);
            return format!(
                "{lead} {} ({of_winner}), with {}; next is {} ({of_next}) with {}",
                excels(self.rules.rank),
                winner.blast,
                next.candidate,
                next.blast
            );
        }
        let lead = self.lead_among_compared(winner, scores.map(|(score, _)| score));
        let smaller = [
            (winner.blast.lines != next.blast.lines, "changes the fewest lines"),
            (winner.blast.files != next.blast.files, "touches the fewest files"),
        ];
        if let Some((_, does)) = smaller.iter().find(|(differs, _)| *differs) {
            return format!(
                "{lead} {does}, with {}; next is {} with {}",
                winner.blast, next.candidate, next.blast
            );
        }
        if winner.judged().is_some() && winner.judged() == next.judged() {
            return self.several_made(winner);
        }
        let counts = MakerCounts::of(self.entries);
        let [of_winner, of_next] = [winner, next].map(|e| counts.makers(e));
        let why = if of_winner == of_next {
            format!("{} was spawned first", winner.candidate)
        } else {
            format!("{of_winner} attempts made the tree of {}, not {of_next}", winner.candidate)
        };
        format!("{lead} and {} are the same size, with {}; {why}", next.candidate, winner.blast)
    }

    /// The beginning of a sentence that compares the winner with other candidates. Only candidates
    /// with the winner's score are compared. If the winner leaves out no tests, candidates that
    /// leave out tests are not compared. Other candidates may be smaller, so the sentence names
    /// these conditions.
    fn lead_among_compared(&self, winner: &Entry, score: Option<f64>) -> String {
        let mut condition = String::new();
        if let Some(score) = score
            && self.passing.iter().any(|entry| self.rules.score(entry) != Some(score))
        {
            condition = format!(" with {} {score:.3}", self.rules.rank);
        }
        if !self.rules.leaves_out_tests(winner)
            && self.passing.iter().any(|entry| {
                self.rules.leaves_out_tests(entry)
                    && entry.passed_own_tests_only() == winner.passed_own_tests_only()
            })
        {
            condition.push_str(" that leave out no tests");
        }
        let among = match condition.as_str() {
            "" => String::new(),
            condition => format!("of those{condition}, "),
        };
        format!("{}; {among}{}", self.how_many_passed(), winner.candidate)
    }

    /// The clauses that name every candidate with the winner's tree.
    fn several_made(&self, winner: &Entry) -> String {
        let same = in_spawn_order(self.usable).filter(|e| e.judged() == winner.judged());
        let names: Vec<&str> = same.map(|e| e.candidate.as_str()).collect();
        let mut text = format!(
            "{}; {} made the same tree, with {}; {} was spawned first",
            self.how_many_passed(),
            and(&names),
            winner.blast,
            winner.candidate
        );
        let counts = MakerCounts::of(self.entries);
        let other = self.passing.iter().find(|e| e.judged() != winner.judged());
        if let Some(other) = other
            && self.rules.differ_only_in_makers(winner, other, &counts)
        {
            text.push_str(&format!(
                "; {} is the same size, but fewer attempts made its tree",
                other.candidate
            ));
        }
        text
    }

    fn synthesised(&self, winner: &Entry) -> String {
        let from: Vec<&str> = winner.drew_on.iter().map(Name::as_str).collect();
        let combined = combined_lines(winner, &all_passing(self.entries)).unwrap_or_default();
        format!(
            "{} integrates {} and passed {}: {}, within {} times the {combined} lines of the candidates that it drew on",
            winner.candidate,
            from.join(", "),
            stages(winner),
            winner.blast,
            self.rules.ceiling()
        )
    }

    /// The sentence if no candidate passed, although the command at which `best` stopped exited 0.
    fn contradicted(&self, best: &Entry, as_if: &str) -> String {
        let lead = match self.usable.len() {
            1 => format!("{} is the one usable candidate, and it", best.candidate),
            usable => format!("none of {usable} passed; {} came closest: it", best.candidate),
        };
        format!(
            "{lead} {}, {as_if}, with {}{}",
            failed_at(best),
            best.blast,
            self.compared_with_the_base(best)
        )
    }

    /// The sentence if the base fails in the same way as the candidates. Then the failures say
    /// nothing about the candidates.
    fn broken_base(&self, closest: &Entry) -> String {
        let Some(base) = self.baseline.and_then(|base| base.fails_like_all(self.usable)) else {
            return self.near_miss(closest);
        };
        let Entry { candidate, blast, .. } = closest;
        let (all, best) = match self.usable.len() {
            1 => ("on the one usable candidate".to_owned(), format!("{candidate} changes {blast}")),
            usable => (
                format!("on any of {usable} candidates"),
                format!("{candidate} comes first, with {blast}"),
            ),
        };
        let (stage, why) = (base.stage, base.why_and_lack());
        format!(
            "{stage} does not pass on the base ({why}), nor {all}: nothing can be judged before it passes; {best}"
        )
    }

    fn near_miss(&self, closest: &Entry) -> String {
        let Entry { candidate, blast, .. } = closest;
        let alike = self.baseline.and_then(|base| base.lacks_on_all(self.usable));
        let compared =
            if alike.is_some() { String::new() } else { self.compared_with_the_base(closest) };
        let lead = match (self.usable.len(), alike.map(fails_alike)) {
            (1, None) => format!("{candidate} is the one usable candidate, and it"),
            (1, Some(why)) => {
                format!("the one usable candidate did not pass, and {why}; {candidate}")
            }
            (usable, None) => format!("none of {usable} passed; {candidate} came closest: it"),
            (usable, Some(why)) => {
                format!("none of {usable} passed, and {why}; {candidate} came closest: it")
            }
        };
        let passed = closest.results.iter().take_while(|r| r.outcome.passed());
        let before: Vec<&str> = passed.map(|r| r.stage.as_str()).collect();
        let got = if before.is_empty() {
            String::new()
        } else {
            format!("passed {} and then ", and(&before))
        };
        let second = match &closest.base_tests {
            Some(second) if second.failed() => format!("; {}", without_own_tests(closest)),
            _ => String::new(),
        };
        format!("{lead} {got}{}, with {blast}{compared}{second}", failed_at(closest))
    }

    fn compared_with_the_base(&self, closest: &Entry) -> String {
        let (Some(baseline), Some(stopped)) = (self.baseline, closest.results.stopped_at()) else {
            return String::new();
        };
        let failing = closest.results.failing_tests().unwrap_or_default();
        if let Some(comparison) = Comparison::of(baseline, closest) {
            let kinds = comparison.kinds();
            let kinds = kinds.iter().filter(|(_, tests)| !tests.is_empty());
            let parts: Vec<String> = kinds
                .map(|(what, tests)| {
                    let tests_in_words = some_tests(tests, failing);
                    match tests.len() {
                        1 => format!("1 {what}: {tests_in_words}"),
                        many => format!("{many} (each {what}): {tests_in_words}"),
                    }
                })
                .collect();
            if !parts.is_empty() {
                return format!("; of its failing tests {}", parts.join("; "));
            }
        }
        match baseline.stops_at(stopped.stage) {
            Some(base) if base.outcome == Outcome::CannotTell => {
                format!("; {} cannot tell whether the base passes", stopped.stage)
            }
            Some(base) => {
                format!("; {} fails on the base, too ({})", stopped.stage, end_in_words(base))
            }
            None if baseline.results.passed() => "; the base passes".into(),
            None => String::new(),
        }
    }
}

/// The failure of the base that every candidate shares, as a clause.
fn fails_alike(base: &StageResult) -> String {
    let StageResult { stage, outcome, error, .. } = base;
    let line = error.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
    let why = match &base.obstacle {
        Some(hidden @ Obstacle::Hidden { .. }) => hidden.to_string(),
        _ => "the base or this machine may lack something".to_owned(),
    };
    format!("{stage} fails on the base in the same way ({outcome}{line}): {why}")
}

/// The meaning of the recommended candidate's pass if the base passes, too, as a clause.
pub fn base_passes_too(base: &Baseline, winner: &Entry) -> &'static str {
    match &winner.proof {
        Some(proof) if proof.shows == ProofKind::Change => {
            "; the base passes, too, but not with the candidate's own tests: they show that the change works"
        }
        _ if base.inherited => {
            "; with build outputs of an earlier judging the base passes, too: this alone shows at most that nothing broke"
        }
        _ => "; the base passes, too: this alone shows only that nothing broke",
    }
}

/// The flags of the recommended candidate, as a reason to look at it.
fn to_check(kind: DecisionKind, winner: &Entry, base: Option<&Baseline>) -> String {
    let flags = flag::in_words(&winner.flags);
    let left_out = base.map(|base| left_out(base, winner)).unwrap_or_default();
    let clauses = [flags, left_out].concat();
    if kind == DecisionKind::NoOracle || clauses.is_empty() {
        return String::new();
    }
    let is_put_back = !winner.flags.is_empty() && winner.flags.iter().all(Flag::is_about_tests);
    let mut put_back = winner.base_tests.iter().flat_map(|second| &second.put_back);
    let is_whole = put_back.all(|path| !path.starts_with(PART_OF));
    let evidence = match &winner.base_tests {
        Some(second) if second.passed() && is_put_back && is_whole => {
            "; it also passes with these changes undone"
        }
        Some(second) if second.passed() => "; it also passes with the base's tests and commands",
        _ => "",
    };
    format!("; check {}: it {}{evidence}", winner.candidate, and(&clauses))
}

/// For a candidate that passed but is not verified with the base's tests: the words that say how it
/// passes, as a clause without its subject.
pub fn how_it_passes(entry: &Entry) -> String {
    match is_not_compared(entry) {
        true => "passes, but is not compared with the base".to_owned(),
        false => format!("passes {WITH_OWN_TESTS_ONLY}"),
    }
}

/// The words for a candidate that may leave out tests of the base.
pub(super) fn leaves_out(entry: &Entry) -> &'static str {
    match entry.flags.iter().any(Flag::leaves_out_tests) {
        true => "deletes or skips some",
        false => "changes only tests, or what runs them",
    }
}

/// True if the candidate was not fully compared with the base, and did not fail in the comparison.
pub fn is_not_compared(entry: &Entry) -> bool {
    entry.base_tests.as_ref().is_some_and(BaseTestsResult::is_not_compared)
}

/// How a candidate ended in its second judging, with the base's tests and commands, as a clause.
pub fn without_own_tests(entry: &Entry) -> String {
    let Some(second) = &entry.base_tests else { return String::new() };
    if let Some(problem) = &second.problem
        && !second.failed()
    {
        let end = "; with all of them as in the base, it passes";
        return format!("{problem}{}", if second.results.is_empty() { "" } else { end });
    }
    let stopped = second.results.stopped_at();
    let end = stopped.map_or("was not judged".into(), stopped_in);
    let report = stopped.and_then(|result| result.tests.as_ref());
    let failing = report.filter(|report| !report.failing.is_empty());
    let failing = failing.map(|report| some_tests(&report.failing, &report.failing));
    let what = failing.or_else(|| stopped?.error.clone());
    let failing = what.map_or(String::new(), |what| format!(": {what}"));
    let why = why_judged_twice(second).map_or(String::new(), |why| format!("; {why}"));
    format!("{} it {end}{failing}{why}", what_was_put_back(second))
}

/// The words for a candidate that was judged more than once, because it changes files that are not
/// known to be source. `None` if it changes no such file.
pub fn why_judged_twice(second: &BaseTestsResult) -> Option<String> {
    let are = if second.no_source.len() == 1 { "is" } else { "are" };
    let files = Some(&second.no_source).filter(|files| !files.is_empty())?;
    let times = match second.judged_trees() {
        0 => return None,
        1 => "twice".to_owned(),
        more => format!("{} times", more + 1),
    };
    Some(format!("judged {times}: {} {are} not known to be source", some_of(files)))
}

/// The words that say how the second judging differed from the first: `with the base's check.sh`.
fn what_was_put_back(second: &BaseTestsResult) -> String {
    if let Some(path) = second.failed_beside() {
        return format!("with its source and {path} alone");
    }
    let mut terms = Vec::new();
    if !second.put_back.is_empty() {
        terms.push(format!("with the base's {}", some_of(&second.put_back)));
    }
    if !second.taken_out.is_empty() {
        terms.push(format!("without {}", some_of(&second.taken_out)));
    }
    terms.join(" and ")
}

/// The words that say why a candidate is the best one by this rule.
fn excels(rank: Rank) -> &'static str {
    match rank {
        Rank::Agreement => "covers most of what the others do",
        Rank::Cross => "passes most of the others' tests",
        Rank::BlastRadius | Rank::Auto => "is the smallest",
    }
}

/// The figures by which these rules rank two candidates.
pub(super) fn figures(one: &Entry, other: &Entry, rules: Rules) -> [String; 2] {
    match (rules.score(one), rules.score(other)) {
        (Some(score), Some(others)) => agreement::told_apart(score, others),
        _ => [one, other].map(|entry| entry.blast.to_string()),
    }
}

fn no_usable(entries: &[Entry]) -> String {
    let all: Vec<&Entry> = entries.iter().collect();
    let why: Vec<String> = in_spawn_order(&all).map(why_unusable).collect();
    format!("no usable candidate: {}", why.join(", "))
}

/// The reason why a candidate cannot be recommended, whatever its results are.
pub fn why_unusable(e: &Entry) -> String {
    match e.state {
        _ if e.is_gone() => format!("the worktree of {} is gone", e.candidate),
        _ if e.problem.is_some() => format!("{} could not be captured", e.candidate),
        State::Open | State::Succeeded if !e.dropped.is_empty() => {
            format!("{} changed only protected paths", e.candidate)
        }
        State::Open | State::Succeeded if e.passed() => {
            // This is a synthesis that is not ranked: every other candidate that passed is ranked.
            format!("{} is a synthesis of candidates that did not pass", e.candidate)
        }
        State::Open | State::Succeeded => format!("{} changed nothing", e.candidate),
        State::Running => format!("{} is still running", e.candidate),
        State::Empty => format!("{} changed nothing", e.candidate),
        State::Failed => e.with_cause(&format!("{} failed", e.candidate)),
        State::TimedOut => format!("{} timed out", e.candidate),
        State::Cancelled if e.stopped => format!("{} was stopped: {ENOUGH_PASSED}", e.candidate),
        State::Cancelled if e.not_started => format!("{} was not started", e.candidate),
        State::Cancelled => format!("{} was cancelled", e.candidate),
        State::Limited => match e.end.fault {
            Some(fault) => format!("the agent of {} {fault}", e.candidate),
            None => e.with_cause(&format!("{} is at the limit of its agent", e.candidate)),
        },
    }
}

/// Entries in spawn order.
pub(super) fn in_spawn_order<'a>(
    entries: &[&'a Entry],
) -> impl Iterator<Item = &'a Entry> + use<'a> {
    let mut sorted = entries.to_vec();
    sorted.sort_by_key(|e| e.index);
    sorted.into_iter()
}

fn stopped(entry: &Entry) -> String {
    format!("{} {}", entry.candidate, failed_at(entry))
}

/// The failure of a candidate, as a clause without its subject.
pub fn failed_at(entry: &Entry) -> String {
    match (entry.results.stopped_at(), entry.skipped_with_base_tests(), &entry.base_tests) {
        (None, Some(result), Some(second)) => {
            format!("{} {}", stopped_in(result), what_was_put_back(second))
        }
        (stopped, ..) => stopped.map_or("was not judged".into(), stopped_in),
    }
}

/// The end of a command that did not pass, as a clause without its subject.
pub fn stopped_in(result: &StageResult) -> String {
    let StageResult { stage, outcome, .. } = result;
    match &result.tests {
        _ if matches!(outcome, Outcome::ReportedFailures { .. }) => {
            format!("failed {stage} ({outcome})")
        }
        _ if *outcome == Outcome::TimedOut => format!("timed out in {stage}"),
        _ if *outcome == Outcome::CannotTell => match &result.obstacle {
            Some(obstacle) => format!("was skipped by {stage} (cannot tell: {obstacle})"),
            None => format!("was skipped by {stage} (exit {CANNOT_TELL}: cannot tell)"),
        },
        Some(report) if !report.failing.is_empty() => {
            let failing = report.failing.len();
            let tests = match report.total {
                0 => count(failing, "test"),
                total => format!("{failing} of {}", count(total, "test")),
            };
            format!("failed {stage} ({outcome}; {tests})")
        }
        _ => format!("failed {stage} ({})", end_in_words(result)),
    }
}

/// The end of a command, and the tests' report if it contradicts the end.
fn end_in_words(result: &StageResult) -> String {
    match result.tests_without_failure() {
        Some(tests) => format!("{}; {}", result.outcome, no_failure(tests)),
        None => result.outcome.to_string(),
    }
}

/// The words for a command that failed although none of its tests failed.
pub fn no_failure(tests: u64) -> String {
    format!("no failure in {}", count(tests, "test"))
}

/// The stages of the oracle that were run, in words: `build, lint and test`.
fn stages(entry: &Entry) -> String {
    let of_oracle = entry.results.iter().filter(|r| r.stage != Stage::Setup);
    and(&of_oracle.map(|r| r.stage.as_str()).collect::<Vec<_>>())
}

pub fn and<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [init @ .., last] => {
            let init: Vec<&str> = init.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", init.join(", "), last.as_ref())
        }
    }
}
