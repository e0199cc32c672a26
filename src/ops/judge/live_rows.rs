//! The text of a candidate's row on the terminal after judging.
use crate::model::board::Standing;
use crate::model::outcome::{Outcome, Results};
use crate::model::verdict::Entry;
use crate::ops::board::Ending;
use crate::ui::comparison;
use crate::ui::style::Tone;

/// The row of a candidate whose commands were ended because the verdict does not depend on them any more.
pub fn not_needed() -> Ending {
    let words = "not needed".to_owned();
    Ending { standing: Standing::Waiting, words, elapsed: None }
}

/// The row of a candidate that was judged.
pub fn ending(entry: &Entry) -> Ending {
    let nothing = Results::default();
    let (results, second) = (&entry.results, entry.base_tests.as_ref());
    let base_tests = second.map_or(&nothing, |second| &second.results);
    let (standing, words) = match results.stopped_at().map(comparison::stop) {
        Some((words, Tone::Caution)) => (Standing::Caution, words),
        Some((words, _)) => (Standing::Bad, words),
        None if base_tests.cannot_tell() => {
            (Standing::Caution, "base's tests cannot tell".to_owned())
        }
        None if !base_tests.is_empty() && !base_tests.passed() => {
            (Standing::Caution, "passed only its own tests".to_owned())
        }
        None if results.iter().any(|r| matches!(r.outcome, Outcome::Flaky { .. })) => {
            (Standing::Caution, "flaky".to_owned())
        }
        None => (Standing::Good, "passed".to_owned()),
    };
    let elapsed = results.time() + base_tests.time();
    Ending { standing, words, elapsed: Some(elapsed) }
}

/// The row of a candidate after commands on its tree with test files of others laid over it. The tests may be
/// at fault if these commands fail, so a failure is not shown as bad.
pub fn ending_across(results: &Results) -> Ending {
    let failure = results.stopped_at().map(|result| comparison::stop(result).0);
    let standing = if failure.is_some() { Standing::Caution } else { Standing::Good };
    let words = failure.unwrap_or_else(|| "passed".to_owned());
    Ending { standing, words, elapsed: Some(results.time()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::base_tests::BaseTestsResult;
    use crate::model::candidate::State;
    use crate::model::outcome::{Stage, StageResult};

    fn shown(results: &[Outcome], base_tests: &[Outcome]) -> (Standing, String, u64) {
        let all = |outcomes: &[Outcome]| {
            let result = |outcome: &Outcome| StageResult::new(Stage::Test, 1.0, outcome.clone());
            outcomes.iter().map(result).collect::<Results>()
        };
        let (results, base_tests) = (all(results), all(base_tests));
        let name = "c1".parse().expect("a valid name");
        let second = BaseTestsResult { results: base_tests, ..BaseTestsResult::default() };
        let base_tests = Some(second);
        let entry = Entry { results, base_tests, ..Entry::new(name, 1, State::Open) };
        let ending = ending(&entry);
        (ending.standing, ending.words, ending.elapsed.unwrap_or_default().as_secs())
    }

    #[test]
    fn only_a_pass_without_a_doubt_is_good() {
        use Outcome::{CannotTell, Failed, Flaky, Passed, Skipped};
        assert_eq!(shown(&[Passed, Passed], &[]), (Standing::Good, "passed".into(), 2));
        assert_eq!(
            shown(&[Passed, Failed { code: 2 }, Skipped], &[]),
            (Standing::Bad, "test exit 2".into(), 3)
        );
        assert_eq!(shown(&[CannotTell], &[]), (Standing::Caution, "test cannot tell".into(), 1));
        assert_eq!(shown(&[Flaky { refused: false }], &[]), (Standing::Caution, "flaky".into(), 1));
        assert_eq!(
            shown(&[Passed], &[Failed { code: 1 }]),
            (Standing::Caution, "passed only its own tests".into(), 2)
        );
        assert_eq!(
            shown(&[Passed], &[CannotTell]),
            (Standing::Caution, "base's tests cannot tell".into(), 2)
        );
    }
}
