//! Passes that do not stand: the report lacks tests of the base's, or a command rewrote a test of the
//! base or a file that decides which commands run.
use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::put_back::decides_by_being_there;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::base_tests::BaseTests;
use crate::model::flag::Flag;
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
    let rewrote = match baseline {
        Some(baseline) => overrule_rewritten(repo, base, terms, entries, baseline)?,
        None => false,
    };
    entries.iter_mut().for_each(flag_rewritten);
    Ok(lacks_tests || rewrote)
}

/// Lets no pass stand for which a command rewrote what the verdict rests on.
fn overrule_rewritten(
    repo: &Repo,
    base: &Oid,
    terms: &Terms,
    entries: &mut [Entry],
    baseline: &Baseline,
) -> Result<bool> {
    let mut found = false;
    // A claim decides nothing: it is confirmed first.
    for entry in entries.iter_mut().filter(|entry| !entry.is_claim()) {
        found |= overrule_results(repo, base, terms, counting(entry), baseline)?;
    }
    Ok(found)
}

/// Lets these results be no pass if a command rewrote a test of the commit `base`, or a file of it that
/// decides, and did not where the base was judged; gives true if one did.
pub fn overrule_results(
    repo: &Repo,
    base: &Oid,
    terms: &Terms,
    results: &mut Results,
    baseline: &Baseline,
) -> Result<bool> {
    let is_off = terms.settings.in_place || terms.settings.base_tests == BaseTests::Never;
    let paths: Vec<String> = rewritten(results, baseline).cloned().collect();
    if is_off || !results.passed() || paths.is_empty() {
        return Ok(false);
    }
    let project = BaseProject::of(repo, base, &terms.oracle, &terms.settings.source)?;
    let tree = repo.commit(base)?.tree;
    for file in paths {
        let decides = |text: Vec<u8>| {
            is_test_path(&file) || decides_by_being_there(&file, &text, &project.scripts)
        };
        if repo.file(&tree, &file)?.is_some_and(decides)
            && let Some(last) = results.last_mut()
        {
            last.outcome = Outcome::CannotTell;
            last.obstacle = Some(Obstacle::Rewritten { file });
            return Ok(true);
        }
    }
    Ok(false)
}

/// Flags the file for which a pass does not stand. The entry may have been judged again since.
fn flag_rewritten(entry: &mut Entry) {
    let rewritten = counting(entry).iter().find_map(|result| match &result.obstacle {
        Some(Obstacle::Rewritten { file }) => Some(file.clone()),
        _ => None,
    });
    entry.flags.retain(|flag| !matches!(flag, Flag::TestsRewritten { .. }));
    entry.flags.extend(rewritten.map(|path| Flag::TestsRewritten { path }));
    entry.flags.sort();
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
