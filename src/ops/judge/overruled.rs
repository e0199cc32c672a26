//! Overrules passes that do not count. A pass does not count in these cases:
//! * its report lacks tests of the base;
//! * its report names failing tests that do not fail on the base;
//! * a command rewrote a test of the base, or a file that decides which commands run.
use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::put_back::decides_by_being_there;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::flag::FlagKind;
use crate::model::missing_tests;
use crate::model::oid::Oid;
use crate::model::outcome::{Obstacle, Outcome, Results};
use crate::model::terms::Terms;
use crate::model::verdict::{Baseline, Entry};

/// Overrules the passes that do not count. Returns true if there was one.
pub fn overrule(
    repo: &Repo,
    base: &Oid,
    terms: &Terms,
    entries: &mut [Entry],
    baseline: Option<&Baseline>,
) -> Result<bool> {
    let mut found = false;
    if let Some(baseline) = baseline {
        found = missing_tests::contradict(entries, baseline, &terms.settings);
        // Claims are left alone, because a claim decides nothing before it is confirmed.
        for entry in entries.iter_mut().filter(|entry| !entry.is_claim()) {
            for results in judgings(entry) {
                found |= overrule_results(repo, base, terms, results, baseline)?;
            }
        }
    }
    entries.iter_mut().for_each(flag_rewritten);
    Ok(found)
}

/// Changes the pass in these results to `CannotTell` if a command rewrote one of these files of the
/// commit `base`: a test, or a file that decides which commands run. Ignores a file that was also
/// rewritten when the base was judged. Returns true if the results were changed.
pub fn overrule_results(
    repo: &Repo,
    base: &Oid,
    terms: &Terms,
    results: &mut Results,
    baseline: &Baseline,
) -> Result<bool> {
    let paths: Vec<String> = rewritten(results, baseline).cloned().collect();
    if !terms.settings.needs_base() || !results.passed() || paths.is_empty() {
        return Ok(false);
    }
    let project = BaseProject::of(repo, base, &terms.oracle, &terms.settings.source)?;
    let tree = repo.commit(base)?.tree;
    for file in paths {
        let decides = |text: Vec<u8>| {
            is_test_path(&file) || decides_by_being_there(&file, &text, &project.scripts)
        };
        if repo.file(&tree, &file)?.is_some_and(decides)
            && let Some(last) = results.0.last_mut()
        {
            last.outcome = Outcome::CannotTell;
            last.obstacle = Some(Obstacle::Rewritten { file });
            return Ok(true);
        }
    }
    Ok(false)
}

/// If a pass does not count because a command rewrote a file, flags the entry with that file.
/// Removes an old flag first, because the entry may have been judged again since.
fn flag_rewritten(entry: &mut Entry) {
    let rewritten = judgings(entry).flat_map(|results| results.iter()).find_map(|result| {
        match &result.obstacle {
            Some(Obstacle::Rewritten { file }) => Some(file.clone()),
            _ => None,
        }
    });
    entry.flags.retain(|flag| flag.kind != FlagKind::TestsRewritten);
    entry.flags.extend(rewritten.map(|path| FlagKind::TestsRewritten.at(path)));
    entry.flags.sort();
}

/// The results of an entry's own tree, and those of its second judging, if it has any.
fn judgings(entry: &mut Entry) -> impl Iterator<Item = &mut Results> {
    let second = entry.base_tests.iter_mut().map(|second| &mut second.results);
    [&mut entry.results].into_iter().chain(second)
}

/// The tracked files that commands rewrote on this tree but not on the base. If a file is also
/// rewritten on the base, the project's own build generates it.
fn rewritten<'r>(results: &'r Results, baseline: &'r Baseline) -> impl Iterator<Item = &'r String> {
    let all = results.iter().flat_map(|result| &result.changed);
    all.filter(|path| !baseline.results.iter().any(|result| result.changed.contains(path)))
}
