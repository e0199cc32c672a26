//! Passes that do not stand: the report lacks tests of the base's, or a command rewrote a file of the
//! base that decides which commands run.
use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::put_back::decides_by_being_there;
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
    if is_off || !entries.iter().any(|entry| rewritten(entry, baseline).next().is_some()) {
        return Ok(lacks_tests);
    }
    let project = BaseProject::of(repo, base, &terms.oracle, &terms.settings.source)?;
    let tree = repo.commit(base)?.tree;
    let mut found = lacks_tests;
    // A claim decides nothing: it is confirmed first.
    for entry in entries.iter_mut().filter(|entry| !entry.is_claim()) {
        let mut deciding = None;
        for path in rewritten(entry, baseline) {
            let text = repo.file(&tree, path)?;
            if text.is_some_and(|text| decides_by_being_there(path, &text, &project.scripts)) {
                deciding = Some(path.clone());
                break;
            }
        }
        found |= deciding.is_some_and(|file| cannot_tell(entry, &file));
    }
    Ok(found)
}

/// The results by which an entry is verified: those with the base's tests, if it has them.
fn counting(entry: &Entry) -> &Results {
    match &entry.base_tests {
        Some(second) if !second.results.is_empty() => &second.results,
        _ => &entry.results,
    }
}

/// The tracked files that commands of an entry rewrote and those of the base did not. A build that
/// makes them anew on each tree is the project's own way.
fn rewritten<'e>(entry: &'e Entry, baseline: &'e Baseline) -> impl Iterator<Item = &'e String> {
    let of_base = |path: &&String| baseline.results.iter().any(|r| r.changed.contains(path));
    let all = counting(entry).iter().flat_map(|result| &result.changed);
    all.filter(move |path| !of_base(path))
}

/// Makes a pass an outcome that tells nothing, because a command rewrote `file`; false if it is none.
fn cannot_tell(entry: &mut Entry, file: &str) -> bool {
    let results = match &mut entry.base_tests {
        Some(second) if !second.results.is_empty() => &mut second.results,
        _ => &mut entry.results,
    };
    if !results.passed() {
        return false;
    }
    let Some(last) = results.iter_mut().last() else { return false };
    last.outcome = Outcome::CannotTell;
    last.obstacle = Some(Obstacle::Rewritten { file: file.to_owned() });
    true
}
