//! Passes that do not stand: the report lacks tests of the base's, or a command rewrote a test of the
//! base or a file that decides which commands run.
use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::put_back::decides_by_being_there;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::base_tests::BaseTests;
use crate::model::missing_tests;
use crate::model::oid::Oid;
use crate::model::outcome::{Obstacle, Outcome, Results};
use crate::model::terms::Terms;
use crate::model::verdict::{Baseline, Entry};

/// Lets no pass stand that something contradicts; gives true if there was one.
pub fn overrule(
    repo: &Repo,
    base: &Oid,
    terms: &Terms,
    entries: &mut [Entry],
    baseline: Option<&Baseline>,
) -> Result<bool> {
    let lacks_tests = missing_tests::contradict(entries, baseline, &terms.settings);
    let is_off = terms.settings.in_place || terms.settings.base_tests == BaseTests::Never;
    let Some(baseline) = baseline else { return Ok(lacks_tests) };
    if is_off || !entries.iter_mut().any(|e| rewritten(counting(e), baseline).next().is_some()) {
        return Ok(lacks_tests);
    }
    let project = BaseProject::of(repo, base, &terms.oracle, &terms.settings.source)?;
    let tree = repo.commit(base)?.tree;
    let mut found = lacks_tests;
    // A claim decides nothing: it is confirmed first.
    for entry in entries.iter_mut().filter(|entry| !entry.is_claim()) {
        let results = counting(entry);
        if !results.passed() {
            continue;
        }
        let mut deciding = None;
        for path in rewritten(results, baseline) {
            let decides = |text: Vec<u8>| {
                is_test_path(path) || decides_by_being_there(path, &text, &project.scripts)
            };
            if repo.file(&tree, path)?.is_some_and(decides) {
                deciding = Some(path.clone());
                break;
            }
        }
        if let (Some(file), Some(last)) = (deciding, results.last_mut()) {
            last.outcome = Outcome::CannotTell;
            last.obstacle = Some(Obstacle::Rewritten { file });
            found = true;
        }
    }
    Ok(found)
}

/// The results by which an entry is verified: those with the base's tests, if it has them.
fn counting(entry: &mut Entry) -> &mut Results {
    match &mut entry.base_tests {
        Some(second) if !second.results.is_empty() => &mut second.results,
        _ => &mut entry.results,
    }
}

/// The tracked files that commands rewrote and those of the base did not. A build that makes them anew
/// on each tree is the project's own way.
fn rewritten<'r>(results: &'r Results, baseline: &'r Baseline) -> impl Iterator<Item = &'r String> {
    let all = results.iter().flat_map(|result| &result.changed);
    all.filter(|path| !baseline.results.iter().any(|result| result.changed.contains(path)))
}
