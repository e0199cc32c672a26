//! Red to green: whether the tests of a candidate fail on the base.
use crate::error::Result;
use crate::git::diff::Change;
use crate::git::repo::Repo;
use crate::model::cross::{Cell, Proof, edited_tests};
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::test_report::TestReport;
use crate::model::verdict::{Baseline, Entry};
use crate::ops::judge::cross::overlay::{TestFiles, lay_over};
use crate::ops::judge::schedule::Work;

/// True if a candidate adds or changes test files.
pub fn has_tests(repo: &Repo, base: &Oid, entry: &Entry) -> Result<bool> {
    let Some(capture) = &entry.tree else { return Ok(false) };
    Ok(!TestFiles::of(repo, base, capture)?.files.is_empty())
}

/// The results on the base of the tests of a candidate that passed; `None` if no test can be moved,
/// or their results cannot be told. `judge` gives the results of a tree.
pub fn proof_of(
    repo: &Repo,
    base: &Oid,
    entry: &Entry,
    baseline: &Baseline,
    judge: impl FnOnce(Work) -> Result<Results>,
) -> Result<Option<Proof>> {
    let Some(capture) = &entry.tree else { return Ok(None) };
    let tests = TestFiles::of(repo, base, capture)?;
    if tests.files.is_empty() {
        return Ok(None);
    }
    let files: Vec<&Change> = tests.files.iter().collect();
    let laid = lay_over(repo, &repo.commit(base)?.tree, &files)?;
    let there = judge(Work::of_cross(None, entry.candidate.as_str(), laid))?;
    let nothing = TestReport::default();
    let before = baseline.results.report().unwrap_or(&nothing);
    let own = entry.results.report();
    let mut names = own.map(|own| own.passing_beyond(before)).unwrap_or_default();
    names.extend(edited_tests(&there, before));
    if !names.is_empty() {
        let cells = names.iter().map(|name| (name.as_str(), Cell::of(&there, name)));
        return Ok(Proof::of(cells));
    }
    let cell = match () {
        // It has no test that the base has not, and none that ends otherwise there.
        () if there.passed() => Cell::Pass,
        () if before.passing.is_empty() && baseline.results.passed() => {
            Cell::of_exit(&there, own.is_some())
        }
        () => return Ok(None),
    };
    Ok(Proof::of([(tests.in_words().as_str(), cell)]))
}
