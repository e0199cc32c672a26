//! The decision: a pure function from stored outcomes to the recommended candidate.
//!
//! Nothing here reads a clock, a file or a hash map. So the same records always give the same
//! verdict in the same words, in whatever order the commands ended (docs/SCOREBOARD.md, row 27).
use crate::model::agreement;
use crate::model::count::count;
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::model::rank::Rank;
use crate::model::ranking::{
    MakerCounts, Rules, all_passing, combined_lines, is_rejected_synthesis, preferred_synthesis,
    ranked, reached, undecided, within_ceiling,
};
use crate::model::rationale;
use crate::model::verdict::{Baseline, Decision, DecisionKind, Entry, OtherPick};

/// Corrects the decision for a run that has commands. As long as no candidate has an outcome,
/// [`decide`] says that the run has no oracle, although the run is only undecided.
pub fn with_commands(decision: Decision) -> Decision {
    if decision.decision != DecisionKind::NoOracle {
        return decision;
    }
    let count = decision.ranking.len();
    Decision {
        decision: DecisionKind::Undecided,
        rationale: format!("none of {count} has an outcome yet"),
        undecided: decision.ranking.clone(),
        ..decision
    }
}

/// Makes the decision on a run from the outcomes of its candidates.
///
/// `entries` may come in any order. If no usable candidate has any result, there was no oracle. If
/// only some usable candidates have a result, and a missing one could change the recommendation,
/// the run is undecided.
pub fn decide(entries: &[Entry], baseline: Option<&Baseline>, rules: Rules) -> Decision {
    let rules = rules.settled(entries);
    let usable = in_ranking(entries, rules);
    let mut ranking: Vec<Name> = usable.iter().map(|e| e.candidate.clone()).collect();
    let passing: Vec<&Entry> = usable.iter().copied().filter(|e| e.passed()).collect();
    let all_usable: Vec<&Entry> = entries.iter().filter(|e| e.usable()).collect();
    let missing = undecided(entries, rules);
    let case = rationale::DecisionInputs {
        entries,
        usable: &usable,
        passing: &passing,
        missing: &missing,
        baseline,
        rules,
    };
    let (mut decision, winner) = kind_and_winner(&case);
    if decision.verified() && rules.needs_base && baseline.is_none() {
        decision = DecisionKind::Undecided;
    }
    if let Some(at) = winner.and_then(|w| ranking.iter().position(|n| *n == w.candidate)) {
        let name = ranking.remove(at);
        ranking.insert(0, name);
    }
    let names = |wanted: &dyn Fn(&Entry) -> bool| -> Vec<Name> {
        let wanted = rationale::in_spawn_order(&all_usable).filter(|e| wanted(e));
        wanted.map(|e| e.candidate.clone()).collect()
    };
    let rationale = case.sentence(decision, winner);
    let tests_nothing =
        rules.tests_nothing || winner.is_some_and(|w| w.why_untested(baseline).is_some());
    let decision =
        if decision.verified() && tests_nothing { DecisionKind::NoTests } else { decision };
    Decision {
        decision,
        recommended: winner.map(|w| w.candidate.clone()),
        other_picks: match (decision, winner) {
            (DecisionKind::Undecided, _) | (_, None) => Vec::new(),
            (_, Some(winner)) => other_picks(entries, winner, rules),
        },
        rationale,
        ranking,
        passed: names(&Entry::passed),
        own_tests: names(&Entry::passed_own_tests_only),
        failed: names(&|e| !e.passed() && !e.not_run() && !e.skipped()),
        skipped: names(&Entry::skipped),
        not_run: names(&Entry::not_run),
        undecided: if decision == DecisionKind::Undecided {
            missing.iter().map(|e| e.candidate.clone()).collect()
        } else {
            Vec::new()
        },
    }
}

/// The usable candidates, best first, without rejected syntheses ([`is_rejected_synthesis`]). A
/// synthesis is a candidate that was made from other candidates, its originals.
fn in_ranking(entries: &[Entry], rules: Rules) -> Vec<&Entry> {
    let mut usable = ranked(entries, rules);
    usable.retain(|e| !is_rejected_synthesis(e, entries, rules));
    usable
}

/// The kind of the decision, and the candidate that it recommends or shows as the closest one.
fn kind_and_winner<'a>(case: &rationale::DecisionInputs<'a>) -> (DecisionKind, Option<&'a Entry>) {
    let Some(first) = case.usable.first().copied() else { return (DecisionKind::None, None) };
    let mut all_usable = case.entries.iter().filter(|e| e.usable());
    let kind = match preferred_synthesis(case.passing) {
        _ if all_usable.all(|e| e.results.is_empty()) => DecisionKind::NoOracle,
        _ if !case.missing.is_empty() => DecisionKind::Undecided,
        // A candidate whose test report contradicts an exit code of 0 is ranked before every other
        // candidate that did not pass.
        _ if first.is_contradicted() => {
            match first.results.stopped_at().map(|result| &result.outcome) {
                Some(Outcome::MissingTests { .. }) => DecisionKind::MissingTests,
                _ => DecisionKind::ReportedFailures,
            }
        }
        _ if case.baseline.is_some_and(|base| base.fails_like_all(case.usable).is_some()) => {
            DecisionKind::BrokenBase
        }
        // A skipped candidate may be right, so nothing is decided.
        _ if case.passing.is_empty() && case.usable.iter().any(|e| e.skipped()) => {
            DecisionKind::Undecided
        }
        _ if case.passing.is_empty() => DecisionKind::NearMiss,
        // A candidate that passed only with its own tests is ranked behind every other that passed.
        _ if first.passed_own_tests_only() => DecisionKind::OwnTests,
        Some(synthesis) => return (DecisionKind::Synthesis, Some(synthesis)),
        None if case.usable.len() == 1 => DecisionKind::Single,
        None if case.passing.len() == 1 && !case.usable.iter().any(|e| e.not_run()) => {
            DecisionKind::Tests
        }
        None => DecisionKind::Judge,
    };
    (kind, Some(first))
}

/// The candidates that other rules would recommend instead of `winner`.
fn other_picks(entries: &[Entry], winner: &Entry, rules: Rules) -> Vec<OtherPick> {
    let mut found = Vec::new();
    for rank in [Rank::BlastRadius, Rank::Agreement, Rank::Cross] {
        let other = Rules { rank, ..rules }.settled(entries);
        if rank == rules.rank || rank != other.rank {
            continue;
        }
        let usable = in_ranking(entries, other);
        let passing: Vec<&Entry> = usable.iter().copied().filter(|e| e.passed()).collect();
        let pick = preferred_synthesis(&passing).or(usable.first().copied());
        if let Some(pick) = pick.filter(|pick| pick.candidate != winner.candidate) {
            let [its, winners] = rationale::figures(pick, winner, other);
            found.push(OtherPick {
                rank,
                candidate: pick.candidate.clone(),
                figures: format!("{its}; {} has {winners}", winner.candidate),
            });
        }
    }
    found
}

/// The steps of the ranking, one line each.
pub fn steps(entries: &[Entry], rules: Rules) -> Vec<String> {
    let asked = rules.rank;
    let rules = rules.settled(entries);
    let usable = in_ranking(entries, rules);
    let passing = all_passing(entries);
    let mut lines: Vec<String> = Vec::new();
    if rules.rank != asked {
        lines.push(format!("ranked by {}, which `{asked}` stands for here", rules.rank));
    }
    for synthesis in passing.iter().filter(|e| !e.drew_on.is_empty()) {
        let fits = within_ceiling(synthesis, &passing, rules);
        let which = match &synthesis.same_as {
            Some(twin) => format!("with the same tree as {twin}"),
            None if synthesis.passed_own_tests_only() => {
                format!("that {}", rationale::how_it_passes(synthesis))
            }
            None if rules.leaves_out_tests(synthesis) => "that leaves out tests".to_owned(),
            None => format!(
                "of {} lines, {} {} times the {} lines of the candidates that it drew on",
                synthesis.blast.lines,
                if fits { "at most" } else { "more than" },
                rules.ceiling(),
                combined_lines(synthesis, &passing).unwrap_or_default(),
            ),
        };
        let place = if fits { "comes first" } else { "is not ranked" };
        lines.push(format!("{}: a synthesis {which}: it {place}", synthesis.candidate));
    }
    let counts = MakerCounts::of(entries);
    for pair in usable.windows(2) {
        let [a, b] = pair else { continue };
        lines.push(step(a, b, rules, &counts));
    }
    lines
}

/// The reason why the recommended candidate comes before another one. `None` if one of them is not
/// ranked. Also `None` if the recommended one is a synthesis that is ranked behind the other one:
/// then only the rationale of the decision says why it is recommended.
pub fn why_before(
    entries: &[Entry],
    decision: &Decision,
    other: &Name,
    rules: Rules,
) -> Option<String> {
    let usable = ranked(entries, rules);
    let place = |name: &Name| usable.iter().position(|entry| entry.candidate == *name);
    let first = place(decision.recommended.as_ref()?)?;
    let second = place(other)?;
    let counts = MakerCounts::of(entries);
    (first < second).then(|| step(usable[first], usable[second], rules, &counts))
}

fn step(a: &Entry, b: &Entry, rules: Rules, counts: &MakerCounts<'_>) -> String {
    format!("{} before {}: {}", a.candidate, b.candidate, difference(a, b, rules, counts))
}

/// The reason why `a` is ranked before `b`.
fn difference(a: &Entry, b: &Entry, rules: Rules, counts: &MakerCounts<'_>) -> String {
    match (a.passed(), b.passed()) {
        (true, false) if b.not_run() => return "it passed, the other was not run".into(),
        (true, false) => return format!("it passed, the other {}", rationale::failed_at(b)),
        (false, false) if b.not_run() && !a.not_run() => {
            return "it was run, the other was not".into();
        }
        (false, false)
            if (a.is_contradicted(), a.skipped(), reached(a))
                != (b.is_contradicted(), b.skipped(), reached(b)) =>
        {
            return format!(
                "it {}, the other {}",
                rationale::failed_at(a),
                rationale::failed_at(b)
            );
        }
        _ => {}
    }
    if a.passed() && a.passed_own_tests_only() != b.passed_own_tests_only() {
        return format!("{} {}", b.candidate, rationale::how_it_passes(b));
    }
    if a.passed() && rules.leaves_out_tests(a) != rules.leaves_out_tests(b) {
        return format!("it leaves out no tests, the other {}", rationale::leaves_out(b));
    }
    if a.passed() && a.flaky() != b.flaky() {
        return "it passed at once, the other on a retry".into();
    }
    if !a.passed()
        && let Some(nearer) = nearer(a, b, rules)
    {
        return nearer;
    }
    let scores = rules.score(a).zip(rules.score(b));
    if let Some((own, others)) = scores
        && (a.passed() || rules.runs_nothing)
        && agreement::comparable(own) != agreement::comparable(others)
    {
        let [own, others] = agreement::told_apart(own, others);
        return format!("{} {own}, not {others}", rules.rank);
    }
    if a.blast.lines != b.blast.lines {
        return format!("{}, not {}", count(a.blast.lines, "changed line"), b.blast.lines);
    }
    if a.blast.files != b.blast.files {
        return format!("{}, not {}", count(a.blast.files, "file"), b.blast.files);
    }
    let [of_a, of_b] = [a, b].map(|e| counts.makers(e));
    if of_a != of_b {
        return format!("{} made its tree, not {of_b}", count(of_a, "attempt"));
    }
    "it was spawned first".into()
}

/// The reason why `a` is ranked before `b` by their tests. Neither has passed, and both got equally
/// far in the commands. `None` if their tests do not decide.
fn nearer(a: &Entry, b: &Entry, rules: Rules) -> Option<String> {
    if !a.not_run() && !b.not_run() && rules.leaves_out_tests(a) != rules.leaves_out_tests(b) {
        return Some(format!("it leaves out no tests, the other {}", rationale::leaves_out(b)));
    }
    let failing = |e: &Entry| e.results.failing_tests().map(<[String]>::len);
    let tests = count(failing(a)?, "test");
    match failing(b) {
        Some(others) if failing(a) == Some(others) => None,
        Some(others) => Some(format!("{tests} failing, not {others}")),
        None if b.results.report().is_some() => {
            Some(format!("{tests} failing, the other's test report is not complete"))
        }
        None => Some(format!("{tests} failing, the other has no test report")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::base_tests::BaseTestsResult;
    use crate::model::blast::Blast;
    use crate::model::candidate::State;
    use crate::model::flag::FlagKind;
    use crate::model::oid::Oid;
    use crate::model::outcome::{Results, Stage, StageResult};
    use crate::model::test_report::TestReport;
    use proptest::prelude::*;

    fn entry(name: &str, index: u32, lines: u64, files: u64, outcomes: &[Outcome]) -> Entry {
        let stages = [Stage::Build, Stage::Lint, Stage::Test];
        Entry {
            candidate: name.parse().expect("valid name"),
            index,
            iteration: Some(1),
            blast: Blast { lines, files },
            results: Results(
                stages
                    .into_iter()
                    .zip(outcomes)
                    .map(|(stage, outcome)| StageResult::new(stage, 0.0, outcome.clone()))
                    .collect(),
            ),
            ..Entry::default()
        }
    }

    const PASS: [Outcome; 3] = [Outcome::Passed, Outcome::Passed, Outcome::Passed];
    const FAIL_BUILD: [Outcome; 3] =
        [Outcome::Failed { code: 101 }, Outcome::Skipped, Outcome::Skipped];
    const FAIL_TEST: [Outcome; 3] = [Outcome::Passed, Outcome::Passed, Outcome::Failed { code: 1 }];

    fn decided(entries: &[Entry]) -> (DecisionKind, String, String) {
        let d = decide(entries, None, Rules::default());
        (d.decision, d.recommended.map(|name| name.to_string()).unwrap_or_default(), d.rationale)
    }

    #[test]
    fn each_row_of_the_table() {
        use DecisionKind::*;
        let cases: [(&[Entry], DecisionKind, &str, &str); 7] = [
            (
                &[entry("c1", 1, 4, 1, &PASS)],
                Single,
                "c1",
                "c1 is the only usable candidate, and it passed build, lint and test: 4 lines in 1 file",
            ),
            (
                &[
                    entry("c1", 1, 4, 1, &FAIL_BUILD),
                    entry("c2", 2, 9, 2, &PASS),
                    entry("c3", 3, 1, 1, &FAIL_TEST),
                ],
                Tests,
                "c2",
                "only c2 of 3 passed build, lint and test: 9 lines in 2 files; c1 failed build (exit 101), c3 failed test (exit 1)",
            ),
            (
                &[
                    entry("c1", 1, 9, 1, &PASS),
                    entry("c2", 2, 4, 2, &PASS),
                    entry("c3", 3, 1, 1, &FAIL_TEST),
                ],
                Judge,
                "c2",
                "2 of 3 passed; c2 changes the fewest lines, with 4 lines in 2 files; next is c1 with 9 lines in 1 file",
            ),
            (
                &[entry("c1", 1, 1, 1, &FAIL_BUILD), entry("c2", 2, 7, 1, &FAIL_TEST)],
                NearMiss,
                "c2",
                "none of 2 passed; c2 came closest: it passed build and lint and then failed test (exit 1), with 7 lines in 1 file",
            ),
            (
                &[entry("c1", 1, 9, 1, &[]), entry("c2", 2, 7, 1, &[])],
                NoOracle,
                "c2",
                "no build, lint or test command was found, so nothing is verified; c2 is the smallest of 2: 7 lines in 1 file",
            ),
            (&[entry("c1", 1, 0, 0, &[])], None, "", "no usable candidate: c1 changed nothing"),
            (&[], None, "", "no usable candidate: "),
        ];
        for (entries, kind, recommended, rationale) in cases {
            assert_eq!(decided(entries), (kind, recommended.to_owned(), rationale.to_owned()));
        }
    }

    #[test]
    fn a_missing_outcome_that_could_win_leaves_it_undecided() {
        let open = |name: &str, index, lines| entry(name, index, lines, 1, &[]);
        let undecided = |entries: &[Entry]| {
            let d = decide(entries, None, Rules::default());
            let missing: Vec<String> =
                d.undecided.into_iter().map(|name| name.to_string()).collect();
            assert_eq!(d.decision.verified(), missing.is_empty());
            (d.decision, missing.join(" "), d.rationale)
        };
        assert_eq!(
            undecided(&[
                entry("a", 1, 4, 1, &PASS),
                open("b", 2, 3),
                open("c", 3, 9),
                open("d", 4, 2)
            ]),
            (
                DecisionKind::Undecided,
                "d b".into(),
                "so far, 1 of 1 passed; a is ahead, with 4 lines in 1 file; d and b have no outcome \
                 yet and could still win"
                    .into()
            )
        );
        let (kind, _, why) = undecided(&[entry("a", 1, 4, 1, &FAIL_TEST), open("b", 2, 30)]);
        assert_eq!(
            (kind, why.as_str()),
            (
                DecisionKind::Undecided,
                "so far, none of 1 passed; b has no outcome yet and could still win"
            )
        );
        let (kind, missing, why) = undecided(&[entry("a", 1, 4, 1, &PASS), open("b", 2, 30)]);
        assert_eq!((kind, missing.as_str()), (DecisionKind::Judge, ""));
        assert!(why.ends_with("1 was not run, because it could not be recommended instead"));
        // If an original that was not run passes, it can raise the ceiling of a synthesis that
        // passed.
        let mut synthesis = entry("s", 3, 12, 1, &PASS);
        synthesis.drew_on = vec!["a".parse().expect("valid"), "b".parse().expect("valid")];
        let (kind, missing, why) =
            undecided(&[entry("a", 1, 4, 1, &PASS), open("b", 2, 5), synthesis]);
        assert_eq!((kind, missing.as_str()), (DecisionKind::Undecided, "b"));
        assert!(why.ends_with("yet and could still change the recommendation"), "{why}");
    }

    #[test]
    fn a_candidate_of_which_the_commands_cannot_tell_neither_passes_nor_fails() {
        const SKIPPED: [Outcome; 3] = [Outcome::Passed, Outcome::CannotTell, Outcome::Skipped];
        let of = |entries: &[Entry]| {
            let d = decide(entries, None, Rules::default());
            let names = |names: &[Name]| -> String {
                names.iter().map(Name::as_str).collect::<Vec<_>>().join(" ")
            };
            (d.decision, names(&d.ranking), names(&d.failed), names(&d.skipped), d.rationale)
        };
        let passed = entry("a", 1, 90, 1, &PASS);
        let failed = entry("b", 2, 1, 1, &FAIL_TEST);
        let skipped = entry("c", 3, 2, 1, &SKIPPED);
        // If one candidate passed, it is recommended.
        let all = [passed.clone(), failed.clone(), skipped.clone()];
        assert_eq!(
            of(&all),
            (
                DecisionKind::Tests,
                "a c b".into(),
                "b".into(),
                "c".into(),
                "only a of 3 passed build, lint and test: 90 lines in 1 file; b failed test (exit 1), \
                 c was skipped by lint (exit 125: cannot tell)"
                    .into()
            )
        );
        assert_eq!(
            steps(&all, Rules::default()),
            [
                "a before c: it passed, the other was skipped by lint (exit 125: cannot tell)",
                "c before b: it was skipped by lint (exit 125: cannot tell), the other failed test \
                 (exit 1)"
            ]
        );
        // If all other candidates failed, nothing is decided.
        assert_eq!(
            of(&all[1..]),
            (
                DecisionKind::Undecided,
                "c b".into(),
                "b".into(),
                "c".into(),
                "none of 2 passed, and c was skipped by lint (exit 125: cannot tell), so nothing is \
                 verified; c changes 2 lines in 1 file"
                    .into()
            )
        );
        let (kind, .., why) = of(&all[2..]);
        assert_eq!(kind, DecisionKind::Undecided);
        assert_eq!(
            why,
            "the one usable candidate was skipped by lint (exit 125: cannot tell), so nothing is \
             verified; c changes 2 lines in 1 file"
        );
        // This candidate passed with its own tests, but the commands cannot tell whether it passes
        // with the base's tests.
        let second = BaseTestsResult {
            put_back: vec!["check.sh".into()],
            results: skipped.results.clone(),
            ..BaseTestsResult::default()
        };
        let doubtful = Entry { base_tests: Some(second), ..entry("d", 4, 1, 1, &PASS) };
        let own = BaseTestsResult { results: failed.results.clone(), ..BaseTestsResult::default() };
        let own = Entry { base_tests: Some(own), ..entry("e", 5, 1, 1, &PASS) };
        assert_eq!(
            of(&[failed.clone(), doubtful.clone()]),
            (
                DecisionKind::Undecided,
                "d b".into(),
                "b".into(),
                "d".into(),
                "none of 2 passed, and d was skipped by lint (exit 125: cannot tell) with the base's \
                 check.sh, so nothing is verified; d changes 1 line in 1 file"
                    .into()
            )
        );
        let (kind, ranking, ..) = of(&[doubtful.clone(), own]);
        assert_eq!((kind, ranking.as_str()), (DecisionKind::OwnTests, "e d"));
        assert_eq!(of(&[doubtful, passed]).0, DecisionKind::Tests);
        // If the commands cannot tell whether the base passes, the base has not failed.
        let baseline =
            Baseline { results: entry("base", 0, 0, 0, &SKIPPED).results, inherited: false };
        let failed_there = entry("b", 2, 1, 1, &[Outcome::Passed, Outcome::Failed { code: 1 }]);
        let why = decide(&[failed_there], Some(&baseline), Rules::default()).rationale;
        assert!(why.ends_with("; lint cannot tell whether the base passes"), "{why}");
    }

    #[test]
    fn the_tests_of_the_base_that_fail_are_named() {
        let mut results = entry("o", 1, 1, 1, &FAIL_TEST).results;
        let failing = ["a", "b", "c", "d"].map(String::from).into();
        results.0[2].tests = Some(TestReport { total: 9, failing, ..TestReport::default() });
        let put_back = vec!["t.py".into()];
        let second = BaseTestsResult { put_back, results, ..BaseTestsResult::default() };
        let own = Entry { base_tests: Some(second), ..entry("o", 1, 1, 1, &PASS) };
        assert_eq!(
            decide(&[own], None, Rules::default()).rationale,
            "o passes only with its own tests or commands, with 1 line in 1 file: with the base's \
             t.py it failed test (exit 1; 4 of 9 tests): a, b, c and 1 more"
        );
    }

    #[test]
    fn a_candidate_whose_tests_report_failures_is_behind_all_that_passed_and_before_all_that_failed()
     {
        const REPORTED: [Outcome; 3] =
            [Outcome::Passed, Outcome::Passed, Outcome::ReportedFailures { failed: 2 }];
        const SKIPPED: [Outcome; 3] = [Outcome::Passed, Outcome::CannotTell, Outcome::Skipped];
        let reported = entry("r", 1, 1, 1, &REPORTED);
        let failed = entry("f", 2, 1, 1, &FAIL_TEST);
        let skipped = entry("s", 3, 1, 1, &SKIPPED);
        let own = BaseTestsResult { results: failed.results.clone(), ..BaseTestsResult::default() };
        let own = Entry { base_tests: Some(own), ..entry("o", 4, 9, 1, &PASS) };
        let passed = entry("p", 5, 90, 1, &PASS);
        let all = [failed, skipped, reported, own, passed];
        let of = |entries: &[Entry]| {
            let decision = decide(entries, None, Rules::default());
            let ranking: Vec<&str> = decision.ranking.iter().map(Name::as_str).collect();
            (decision.decision, ranking.concat(), decision.rationale)
        };
        let (kind, ranking, _) = of(&all);
        assert_eq!((kind, ranking.as_str()), (DecisionKind::Judge, "porsf"));
        assert_eq!(of(&all[..4]).0, DecisionKind::OwnTests);
        let (kind, ranking, why) = of(&all[..3]);
        assert_eq!((kind, ranking.as_str()), (DecisionKind::ReportedFailures, "rsf"));
        assert!(!kind.verified());
        assert_eq!(
            why,
            "none of 3 passed; r came closest: it failed test (exit 0 although 2 tests failed), as if a \
             pipe had lost its exit code, with 1 line in 1 file"
        );
        assert_eq!(
            steps(&all[..3], Rules::default())[0],
            "r before s: it failed test (exit 0 although 2 tests failed), the other was skipped by \
             lint (exit 125: cannot tell)"
        );
        let (kind, _, why) = of(&all[2..3]);
        assert_eq!(kind, DecisionKind::ReportedFailures);
        assert!(
            why.starts_with("r is the one usable candidate, and it failed test (exit 0"),
            "{why}"
        );
        // A candidate that was not run may pass.
        let open = entry("n", 6, 100, 1, &[]);
        assert_eq!(of(&[all[2].clone(), open]).0, DecisionKind::Undecided);
    }

    #[test]
    fn a_pass_without_any_test_is_not_verified_and_says_so() {
        let built = [Outcome::Passed, Outcome::Passed];
        let entries = [entry("c1", 1, 4, 1, &built), entry("c2", 2, 9, 1, &FAIL_BUILD[..2])];
        let rules = Rules { tests_nothing: true, ..Rules::default() };
        let decision = decide(&entries, None, rules);
        assert_eq!(
            (decision.decision, decision.decision.verified()),
            (DecisionKind::NoTests, false)
        );
        assert_eq!(
            decision.rationale,
            "nothing tests the change: no test command was named or detected, so nothing is verified; \
             only c1 of 2 passed build and lint: 4 lines in 1 file; c2 failed build (exit 101)"
        );
        // A test command may find no test to run.
        let mut empty = entry("c1", 1, 4, 1, &PASS);
        let test = empty.results.0.last_mut().expect("the test");
        test.tests = Some(TestReport::default());
        assert!(empty.why_untested(None).is_some());
        let decision = decide(&[empty], None, Rules::default());
        assert_eq!(decision.decision, DecisionKind::NoTests);
        assert!(decision.rationale.contains("the test command ran no test"));
        // Without a test command, a candidate that failed is a failure all the same.
        let decision = decide(&entries[1..], None, rules);
        assert_eq!(decision.decision, DecisionKind::NearMiss);
    }

    #[test]
    fn the_rationale_without_a_usable_candidate_names_each_reason() {
        let states =
            [State::Open, State::Failed, State::TimedOut, State::Cancelled, State::Running];
        let mut entries: Vec<Entry> = Vec::new();
        for (index, state) in (1..).zip(states) {
            entries.push(Entry { state, ..entry(&format!("c{index}"), index, 0, 0, &[]) });
        }
        entries[0].dropped.push("tests/a".into());
        entries[1].end.exit_code = Some(3);
        let (kind, _, why) = decided(&entries);
        assert_eq!(kind, DecisionKind::None);
        assert_eq!(
            why,
            "no usable candidate: c1 changed only protected paths, c2 failed (exit 3), c3 timed out, \
             c4 was cancelled, c5 is still running"
        );
    }

    #[test]
    fn ties_fall_back_to_files_and_then_spawn_order() {
        let (_, winner, why) = decided(&[entry("a", 1, 4, 3, &PASS), entry("b", 2, 4, 1, &PASS)]);
        assert_eq!((winner.as_str(), why.contains("touches the fewest files")), ("b", true));
        let (_, winner, why) = decided(&[entry("b", 2, 4, 1, &PASS), entry("a", 1, 4, 1, &PASS)]);
        assert_eq!((winner.as_str(), why.contains("a was spawned first")), ("a", true));
    }

    /// An entry with this tree. Entries with the same character for `tree` have the same tree.
    fn of_tree(name: &str, index: u32, lines: u64, tree: char) -> Entry {
        let tree = Oid::parse(&tree.to_string().repeat(40));
        Entry { tree, ..entry(name, index, lines, 1, &PASS) }
    }

    #[test]
    fn among_trees_of_one_size_the_one_that_more_attempts_made_wins() {
        let same = [of_tree("a", 1, 4, '1'), of_tree("b", 2, 4, '2'), of_tree("c", 3, 4, '2')];
        let (_, winner, why) = decided(&same);
        assert_eq!(winner, "b");
        assert_eq!(
            why,
            "3 of 3 passed; b and c made the same tree, with 4 lines in 1 file; b was spawned \
             first; a is the same size, but fewer attempts made its tree"
        );
        assert_eq!(
            steps(&same, Rules::default()),
            ["b before c: it was spawned first", "c before a: 2 attempts made its tree, not 1"]
        );
        // The size counts first.
        let smaller = [of_tree("a", 1, 3, '1'), of_tree("b", 2, 4, '2'), of_tree("c", 3, 4, '2')];
        assert_eq!(decided(&smaller).1, "a");
        // An attempt whose command failed does not count as one that made the tree, and neither
        // does a synthesis.
        let mut others = same.clone();
        others[2].state = State::Failed;
        assert_eq!(decided(&others).1, "a");
        let mut others = same.clone();
        others[2].drew_on = vec!["a".parse().expect("valid")];
        others[2].same_as = Some("b".parse().expect("valid"));
        assert_eq!(decided(&others).1, "a");
    }

    #[test]
    fn the_reason_names_all_that_made_the_same_tree() {
        let all = [
            of_tree("a", 1, 4, '1'),
            of_tree("b", 2, 9, '2'),
            of_tree("c", 3, 4, '1'),
            of_tree("d", 4, 4, '1'),
        ];
        assert_eq!(
            decided(&all).2,
            "4 of 4 passed; a, c and d made the same tree, with 4 lines in 1 file; a was spawned first"
        );
    }

    #[test]
    fn a_flaky_pass_ranks_behind_a_clean_one() {
        let flaky = [Outcome::Passed, Outcome::Passed, Outcome::Flaky { refused: false }];
        let (kind, winner, _) =
            decided(&[entry("a", 1, 1, 1, &flaky), entry("b", 2, 50, 1, &PASS)]);
        assert_eq!((kind, winner.as_str()), (DecisionKind::Judge, "b"));
    }

    #[test]
    fn a_synthesis_wins_only_within_its_ceiling() {
        let with_size = |lines| {
            let mut synthesis = entry("synthesis-1", 3, lines, 2, &PASS);
            synthesis.drew_on = vec!["a".parse().expect("valid"), "b".parse().expect("valid")];
            decided(&[entry("a", 1, 4, 1, &PASS), entry("b", 2, 6, 1, &PASS), synthesis])
        };
        assert_eq!(with_size(15).0, DecisionKind::Synthesis);
        assert_eq!(with_size(15).1, "synthesis-1");
        assert_eq!((with_size(16).0, with_size(16).1.as_str()), (DecisionKind::Judge, "a"));
    }

    #[test]
    fn a_synthesis_above_its_ceiling_is_not_ranked() {
        let flaky = [Outcome::Passed, Outcome::Passed, Outcome::Flaky { refused: false }];
        let synthesis = |lines| {
            let mut synthesis = entry("synthesis-1", 3, lines, 2, &PASS);
            synthesis.drew_on = vec!["a".parse().expect("valid"), "b".parse().expect("valid")];
            synthesis.agreement = Some(1.0);
            synthesis
        };
        let reason = "; synthesis-1 is not preferred: its 305 lines are more than 1.5 times the 11 \
                      lines of the candidates that it drew on";
        // Without its ceiling, the synthesis would come first: its pass is clean and the other two
        // are flaky, or its agreement is the highest.
        for (ends, rank) in [(&flaky, Rank::BlastRadius), (&PASS, Rank::Agreement)] {
            let entries = [entry("a", 1, 5, 1, ends), entry("b", 2, 6, 1, ends), synthesis(305)];
            let rules = Rules { rank, ..Rules::default() };
            let decision = decide(&entries, None, rules);
            assert_eq!(decision.recommended.as_ref().map(Name::as_str), Some("a"));
            assert_eq!(decision.ranking.len(), 2, "{:?}", decision.ranking);
            assert_eq!(decision.passed.len(), 3, "{:?}", decision.passed);
            let why = decision.rationale;
            assert!(why.starts_with("2 of 2 passed") && why.ends_with(reason), "{why}");
            assert!(steps(&entries, rules)[0].ends_with("it is not ranked"));
        }
        // If the synthesis is small enough, its size is not named as the reason.
        let mut equal = [entry("a", 1, 5, 1, &PASS), entry("b", 2, 6, 1, &PASS), synthesis(5)];
        equal[2].same_as = Some("a".parse().expect("valid"));
        let step = "synthesis-1: a synthesis with the same tree as a: it is not ranked";
        assert_eq!(steps(&equal, Rules::default())[0], step);
        // A low ceiling refuses even a synthesis that is smaller than each original.
        let entries = [entry("a", 1, 5, 1, &PASS), entry("b", 2, 6, 1, &PASS), synthesis(4)];
        let decision = decide(&entries, None, Rules { ceiling: Some(0.1), ..Rules::default() });
        assert_eq!(decision.recommended.as_ref().map(Name::as_str), Some("a"));
        // The verdict is made from the originals, even if none of them passed.
        let entries = [entry("a", 1, 5, 1, &FAIL_TEST), synthesis(4)];
        let (kind, winner, why) = decided(&entries);
        assert_eq!((kind, winner.as_str()), (DecisionKind::NearMiss, "a"));
        let reason = "synthesis-1 is not preferred: none of the candidates that it drew on passed";
        assert!(why.ends_with(reason), "{why}");
        let (kind, _, why) = decided(&[synthesis(4)]);
        assert_eq!(kind, DecisionKind::None);
        assert_eq!(
            why,
            "no usable candidate: synthesis-1 is a synthesis of candidates that did not pass"
        );
    }

    #[test]
    fn a_candidate_that_failed_or_timed_out_is_never_recommended() {
        for state in
            [State::Failed, State::TimedOut, State::Cancelled, State::Empty, State::Running]
        {
            let mut e = entry("c1", 1, 4, 1, &PASS);
            e.state = state;
            assert_eq!(decided(&[e]).0, DecisionKind::None, "{state}");
        }
    }

    #[test]
    fn a_near_miss_with_fewer_failing_tests_is_closer() {
        let failing = |name: &str, index, lines, tests: &[&str]| {
            let mut e = entry(name, index, lines, 1, &FAIL_TEST);
            let failing = tests.iter().map(|t| (*t).to_owned()).collect();
            e.results.0[2].tests = Some(TestReport { total: 9, failing, ..TestReport::default() });
            e
        };
        let entries = [
            failing("a", 1, 1, &["t::x", "t::y"]),
            failing("b", 2, 50, &["t::x"]),
            entry("c", 3, 1, 1, &FAIL_TEST),
            entry("d", 4, 1, 1, &FAIL_BUILD),
        ];
        let ranking = decide(&entries, None, Rules::default()).ranking;
        assert_eq!(ranking.iter().map(Name::as_str).collect::<Vec<_>>(), ["b", "a", "c", "d"]);
        assert_eq!(
            steps(&entries, Rules::default()),
            [
                "b before a: 1 test failing, not 2",
                "a before c: 2 tests failing, the other has no test report",
                "c before d: it failed test (exit 1), the other failed build (exit 101)"
            ]
        );
        // Among candidates that passed, one that deletes tests comes behind larger ones that leave
        // out no tests.
        let mut skips = entry("s", 1, 1, 1, &PASS);
        skips.flags = vec![FlagKind::TestsDeleted.at("test.rs")];
        let passing = [skips, entry("t", 2, 9, 1, &PASS), entry("u", 3, 10, 1, &PASS)];
        let decision = decide(&passing, None, Rules::default());
        assert_eq!(decision.ranking.iter().map(Name::as_str).collect::<Vec<_>>(), ["t", "u", "s"]);
        assert!(
            decision.rationale.contains(
                "of those that leave out no tests, t changes the fewest lines, with 9 lines"
            ),
            "{}",
            decision.rationale
        );
        let mut synthesis = entry("y", 4, 1, 1, &PASS);
        synthesis.drew_on = vec!["t".parse().expect("a name"), "s".parse().expect("a name")];
        synthesis.flags.clone_from(&passing[0].flags);
        let with_synthesis = [&passing[..], &[synthesis]].concat();
        let decision = decide(&with_synthesis, None, Rules::default());
        assert_eq!(decision.recommended.as_ref().map(Name::as_str), Some("t"));
        assert_eq!(
            steps(&with_synthesis, Rules::default())[0],
            "y: a synthesis that leaves out tests: it is not ranked"
        );
        let two = decide(&passing[..2], None, Rules::default()).rationale;
        assert!(
            two.contains(
                "t is the smallest that leaves out no tests, with 9 lines in 1 file; s deletes"
            ),
            "{two}"
        );
        assert_eq!(
            steps(&passing, Rules::default())[1],
            "u before s: it leaves out no tests, the other deletes or skips some"
        );
        let mut without_x = failing("e", 5, 1, &[]);
        without_x.flags = vec![FlagKind::TestsDeleted.at("test.rs")];
        let last = [&entries[1..3], &[without_x]].concat();
        assert_eq!(
            steps(&last, Rules::default())[1],
            "c before e: it leaves out no tests, the other deletes or skips some"
        );
        let report = |failing: &[&str], passing: &[&str]| {
            let list = |names: &[&str]| names.iter().map(|t| (*t).to_owned()).collect();
            Some(TestReport {
                total: 9,
                failing: list(failing),
                passing: list(passing),
                ..TestReport::default()
            })
        };
        let mut base = entry("base", 0, 1, 1, &FAIL_TEST).results;
        base.0[2].tests = report(&["t::y"], &["t::x"]);
        let baseline = Baseline { results: base, inherited: false };
        let why = decide(&entries[..1], Some(&baseline), Rules::default()).rationale;
        assert!(
            why.ends_with(
                "of its failing tests 1 passes on the base: t::x; 1 fails on the base, too: t::y"
            ),
            "{why}"
        );
    }

    #[test]
    fn a_test_that_times_out_everywhere_may_lack_something() {
        let ends = [Outcome::Passed, Outcome::Passed, Outcome::TimedOut];
        let base = Baseline { results: entry("base", 0, 1, 1, &ends).results, inherited: false };
        let entries = [entry("a", 1, 1, 1, &ends), entry("b", 2, 2, 1, &ends)];
        let why = decide(&entries, Some(&base), Rules::default()).rationale;
        let lead = "none of 2 passed, and test fails on the base in the same way (timed out): the base or this machine \
                    may lack something; a came closest";
        assert!(why.starts_with(lead), "{why}");
        let passed = [entry("a", 1, 1, 1, &ends), entry("b", 2, 2, 1, &PASS)];
        let why = decide(&passed, Some(&base), Rules::default()).rationale;
        assert!(!why.contains("may lack"), "{why}");
    }

    #[test]
    fn agreement_ranks_before_size_when_it_is_asked_for() {
        let with = |name: &str, index, lines, agreement| {
            let mut e = entry(name, index, lines, 1, &PASS);
            e.agreement = Some(agreement);
            e
        };
        let entries = [with("a", 1, 1, 0.25), with("b", 2, 9, 0.5), with("c", 3, 4, 0.5)];
        let rules = Rules { rank: Rank::Agreement, ..Rules::default() };
        let decision = decide(&entries, None, rules);
        assert_eq!(decision.ranking.iter().map(Name::as_str).collect::<Vec<_>>(), ["c", "b", "a"]);
        assert_eq!(
            decision.rationale,
            "3 of 3 passed; of those with agreement 0.500, c changes the fewest lines, with 4 lines in 1 file; next is b with 9 lines in 1 file"
        );
        let decision = decide(&entries[..2], None, rules);
        assert_eq!(
            decision.rationale,
            "2 of 2 passed; b covers most of what the others do (0.500), with 9 lines in 1 file; next is a (0.250) with 1 line in 1 file"
        );
        assert_eq!(
            steps(&entries, rules),
            ["c before b: 4 changed lines, not 9", "b before a: agreement 0.500, not 0.250"]
        );
        assert_eq!(decided(&entries).1, "a");
    }

    #[test]
    fn auto_ranks_by_agreement_only_what_several_made_or_nothing_tests() {
        let made = |name: &str, index, agreement, maker: Option<&str>| Entry {
            agreement: Some(agreement),
            maker: maker.map(str::to_owned),
            ..entry(name, index, u64::from(index), 1, &PASS)
        };
        let auto = Rules { rank: Rank::Auto, ..Rules::default() };
        let winner = |makers: [Option<&str>; 3], rules| {
            let mut entries = [
                made("a", 1, 0.25, makers[0]),
                made("b", 2, 0.5, makers[1]),
                made("s", 3, 0.0, makers[2]),
            ];
            entries[2].drew_on = vec!["a".parse().expect("valid")];
            entries[2].blast.lines = 900;
            let decision = decide(&entries, None, rules);
            let picks: Vec<String> = decision.other_picks.iter().map(ToString::to_string).collect();
            (decision.recommended.expect("one").to_string(), picks.join("; "))
        };
        let (one, other) = (Some("claude"), Some("codex"));
        let by_size =
            ("a".into(), "--rank agreement would recommend b (0.500; a has 0.250)".into());
        let by_agreement = (
            "b".into(),
            "--rank blast-radius would recommend a (1 line in 1 file; b has 2 lines in 1 file)"
                .into(),
        );
        assert_eq!(winner([one, one, None], auto), by_size);
        // A synthesis does not count, because it was made from attempts.
        assert_eq!(winner([one, one, other], auto), by_size);
        assert_eq!(winner([None, None, None], auto), by_size);
        assert_eq!(winner([one, other, None], auto), by_agreement);
        assert_eq!(winner([one, None, None], auto), by_agreement);
        assert_eq!(winner([one, other, None], Rules::default()), by_size);
        let mut entries = [made("a", 1, 0.25, one), made("b", 2, 0.5, one)];
        entries.iter_mut().for_each(|entry| entry.results.0.clear());
        let nothing = Rules { runs_nothing: true, ..auto };
        let decision = decide(&entries, None, nothing);
        assert_eq!(
            decision.rationale,
            "no build, lint or test command was found, so nothing is verified; b of 2 covers most of \
             what the others do (0.500): 2 lines in 1 file"
        );
        assert_eq!(
            steps(&entries, nothing),
            [
                "ranked by agreement, which `auto` stands for here",
                "b before a: agreement 0.500, not 0.250"
            ]
        );
        // If there is no command to run, a candidate gains nothing by deleting a test, so the
        // ranking does not compare deleted tests.
        entries[1].flags = vec![FlagKind::TestsDeleted.at("test.rs")];
        assert_eq!(decide(&entries, None, nothing).rationale, decision.rationale);
    }

    fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
        let end = prop_oneof![
            4 => Just(Outcome::Passed),
            1 => any::<bool>().prop_map(|refused| Outcome::Flaky { refused }),
            1 => Just(Outcome::Failed { code: 1 }),
            1 => Just(Outcome::TimedOut),
            1 => Just(Outcome::CannotTell),
            1 => (1u64..9).prop_map(|failed| Outcome::ReportedFailures { failed }),
        ];
        prop::collection::vec(end, 3).prop_map(|mut ends| {
            if let Some(at) = ends.iter().position(|o| !o.passed()) {
                ends[at + 1..].fill(Outcome::Skipped);
            }
            ends
        })
    }

    /// A tree for an entry of this size. Another `which` gives another tree. Another size does,
    /// too, so entries with the same tree have the same size.
    fn tree_of(lines: u64, files: u64, which: u64) -> Option<Oid> {
        Oid::parse(&format!("{:040x}", lines * 100 + files * 10 + which))
    }

    /// A second judging that passed or failed, or none.
    fn base_tests() -> impl Strategy<Value = Option<BaseTestsResult>> {
        let second = outcomes().prop_map(|ends| {
            let results = entry("c", 1, 1, 1, &ends).results;
            BaseTestsResult { results, ..BaseTestsResult::default() }
        });
        prop::option::of(second)
    }

    proptest! {
        #[test]
        fn the_order_of_the_records_never_matters(
            raw in prop::collection::vec((0u64..3, 0u64..3, outcomes(), 0u64..3, base_tests()), 0..8),
            seed in any::<prop::sample::Index>(),
        ) {
            let entries: Vec<Entry> = raw
                .iter()
                .zip(1u32..)
                .map(|((lines, files, ends, tree, second), i)| {
                    let tree = tree_of(*lines, *files, *tree);
                    let base_tests = second.clone();
                    Entry { tree, base_tests, ..entry(&format!("c{i}"), i, *lines, *files, ends) }
                })
                .collect();
            let expected = decide(&entries, None, Rules::default());
            let mut shuffled = entries.clone();
            if !shuffled.is_empty() {
                let by = seed.index(shuffled.len());
                shuffled.rotate_left(by);
                shuffled.reverse();
            }
            prop_assert_eq!(&decide(&shuffled, None, Rules::default()), &expected);

            // A naive reading of the contract finds the same winner.
            let others = |e: &Entry| entries.iter().filter(|o| o.usable() && o.tree != e.tree).count();
            let best = entries
                .iter()
                .filter(|e| e.passed())
                .min_by_key(|e| (!e.verified(), e.flaky(), e.blast.lines, e.blast.files, others(e), e.index));
            if let Some(best) = best {
                prop_assert_eq!(expected.recommended.as_ref(), Some(&best.candidate));
                prop_assert_eq!(expected.decision.verified(), best.verified());
            } else {
                prop_assert!(!expected.decision.verified());
                let is_reported = entries.iter().any(Entry::is_contradicted);
                prop_assert_eq!(
                    expected.decision == DecisionKind::ReportedFailures,
                    is_reported
                );
            }
        }

        /// A candidate that `undecided` leaves out could not have been recommended. The order in
        /// which the commands end, and how many run at once, make no difference.
        #[test]
        fn stopping_early_recommends_what_a_full_run_does(
            raw in prop::collection::vec(
                (0u64..6, 0u64..3, outcomes(), 0u64..4, prop::collection::vec(any::<bool>(), 8), (0u64..3, base_tests())),
                1..9,
            ),
            jobs in 1usize..4,
            rank in prop::sample::select(Rank::ALL.to_vec()),
            makers in prop::collection::vec(any::<bool>(), 8),
            ceiling in prop::sample::select(vec![0.5, 1.0, 1.5]),
            order in prop::collection::vec(any::<prop::sample::Index>(), 16),
        ) {
            let rules = Rules { ceiling: Some(ceiling), rank, ..Rules::default() };
            let mut full: Vec<Entry> = Vec::new();
            for ((lines, files, ends, agreement, drawn, (tree, second)), i) in raw.iter().zip(1u32..) {
                let mut e = entry(&format!("c{i}"), i, *lines, *files, ends);
                e.tree = tree_of(*lines, *files, *tree);
                e.base_tests.clone_from(second);
                e.agreement = Some(*agreement as f64 / 4.0);
                e.maker = makers[i as usize % 8].then(|| "make".to_owned());
                if (lines + files) % 3 == 1 {
                    e.flags = vec![FlagKind::TestsDeleted.at("test")];
                }
                // Every third entry is a synthesis of some of the entries before it.
                if i % 3 == 0 {
                    e.drew_on = full.iter().zip(drawn).filter(|(_, d)| **d).map(|(e, _)| e.candidate.clone()).collect();
                }
                full.push(e);
            }
            let mut known: Vec<Entry> = full.iter().map(|e| Entry { results: Default::default(), base_tests: None, ..e.clone() }).collect();
            let mut running: Vec<u32> = Vec::new();
            let mut ran = 0;
            let mut order = order.iter().cycle();
            loop {
                let wanted: Vec<u32> = undecided(&known, rules).iter().map(|e| e.index).collect();
                running.retain(|i| wanted.contains(i));
                let more: Vec<u32> = wanted.into_iter().filter(|i| !running.contains(i)).collect();
                running.extend(more.into_iter().take(jobs - running.len().min(jobs)));
                if running.is_empty() {
                    break;
                }
                let done = running.swap_remove(order.next().expect("it never ends").index(running.len())) as usize - 1;
                known[done].clone_from(&full[done]);
                ran += 1;
            }
            let early = decide(&known, None, rules);
            let late = decide(&full, None, rules);
            prop_assert_eq!(&early.recommended, &late.recommended);
            prop_assert_eq!(early.decision.verified(), late.decision.verified());
            let judged = early.passed.len() + early.failed.len() + early.skipped.len();
            prop_assert_eq!(early.not_run.len() + ran, judged + early.not_run.len());
            // If no candidate in the ranking passes, all candidates run, and the two decisions are
            // equal. If one passes only with its own tests, a synthesis that could not be ranked
            // need not run.
            if !late.decision.verified() && late.decision != DecisionKind::OwnTests {
                prop_assert_eq!(early, late);
            }
        }
    }
}
