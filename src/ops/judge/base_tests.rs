//! The trees of a candidate's second judging: its source alone, with everything else as in the base,
//! and beside each file that is no source by itself.
use std::collections::BTreeMap;

use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::languages::language_of;
use crate::ecosystems::put_back::{PutBack, begins_project, put_back};
use crate::ecosystems::touched::TouchedPath;
use crate::error::Result;
use crate::git::diff;
use crate::git::protect::{self, Restore};
use crate::git::repo::Repo;
use crate::model::base_tests::{BaseTests, BaseTestsResult, TreeBeside};
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Results;
use crate::model::path::TreePath;
use crate::model::terms::Terms;
use crate::ops::judge::changed_file::{ChangedFile, changed_file};

/// The most files beside the source that are judged by themselves.
const MOST_BESIDE: usize = 4;

/// The second judging that a tree needs, without results; none if it needs none. `changes` are
/// those from the base to the tree.
pub fn plan(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    changes: &[ChangedFile],
    project: &BaseProject<'_>,
    mode: BaseTests,
) -> Result<Option<BaseTestsResult>> {
    let choices = choose(changes, project, mode)?;
    let others: Vec<&TreePath> = choices
        .iter()
        .filter(|(_, choice)| **choice == PutBack::Other)
        .map(|(path, _)| path)
        .collect();
    let restore = |keeps: &dyn Fn(&TreePath, &PutBack) -> bool| {
        protect::put_back(repo, base, tree, |change| {
            let path = TreePath::new(change.path);
            match choices.get(&path) {
                Some(choice) if keeps(&path, choice) => Restore::Keep,
                Some(PutBack::Part(text) | PutBack::InnerTests(text)) => {
                    Restore::Text(text.clone().into_bytes())
                }
                Some(PutBack::Inseparable(_) | PutBack::Keep) | None => Restore::Keep,
                Some(_) => Restore::Base,
            }
        })
    };
    let restored = restore(&|_, _| false)?;
    let problem = why_not(&choices, &others);
    if problem.is_none() && restored.tree == *tree {
        return Ok(None);
    }
    let is_only_tests = choices.values().all(|choice| *choice == PutBack::AddedTest);
    // Alone, a file shows by the candidate itself whether it is right.
    let is_alone = others.len() == choices.len() && others.len() == 1;
    let mut alone = Vec::new();
    if problem.is_none() && !is_alone {
        for path in &others {
            let tree = restore(&|kept, _| kept == *path)?.tree;
            alone.push(TreeBeside { path: path.lossy(), tree });
        }
        if let Some(path) = deciders_that_may_be_hidden(&choices) {
            // A build file may list the added tests, and fails without them.
            let keeps =
                |_: &TreePath, choice: &PutBack| choice.decides() || *choice == PutBack::AddedTest;
            alone.push(TreeBeside { path, tree: restore(&keeps)?.tree });
        }
    }
    let names = |paths: &[TreePath]| paths.iter().map(|p| p.lossy()).collect();
    Ok(Some(BaseTestsResult {
        tree: problem.is_none().then_some(restored.tree),
        put_back: names(&restored.put_back),
        taken_out: names(&restored.taken_out),
        no_source: others.iter().map(|path| path.lossy()).collect(),
        alone,
        if_first: mode != BaseTests::Always && is_only_tests && choices.len() < changes.len(),
        problem,
        results: Results::default(),
    }))
}

/// The deciding files, if an edited test or a file that is no source may hide that one of them is broken:
/// where all of these are put back, the base judges its own.
fn deciders_that_may_be_hidden(choices: &BTreeMap<TreePath, PutBack>) -> Option<String> {
    let hides = |c: &PutBack| matches!(c, PutBack::Test | PutBack::InnerTests(_) | PutBack::Other);
    if !choices.values().any(hides) {
        return None;
    }
    let deciding = choices.iter().filter(|(_, choice)| choice.decides());
    let names: Vec<String> = deciding.map(|(path, _)| path.lossy()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The reason why the changes cannot be put back, or not be judged one by one; none if they can.
fn why_not(choices: &BTreeMap<TreePath, PutBack>, others: &[&TreePath]) -> Option<String> {
    let inseparable = choices.iter().find_map(|(path, choice)| match choice {
        PutBack::Inseparable(why) => Some(format!("'{}' is changed, and {why}", path.quoted())),
        _ => None,
    });
    inseparable.or_else(|| {
        let (first, count) = (others.first()?, others.len());
        (count > MOST_BESIDE).then(|| {
            format!(
                "{count} of its changed files are no source ('{}' is the first), and at most \
                 {MOST_BESIDE} are judged one by one",
                first.quoted()
            )
        })
    })
}

/// [`plan`] for a tree whose changes were not read yet: `tree` as compared with the commit `base`.
pub fn plan_for(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    terms: &Terms,
) -> Result<Option<BaseTestsResult>> {
    let files = changed_files(repo, base, tree)?;
    let project = BaseProject::of(repo, base, &terms.oracle, &terms.settings.source)?;
    plan(repo, base, tree, &files, &project, terms.settings.base_tests)
}

/// The files that differ between a commit and a tree.
pub fn changed_files(repo: &Repo, base: &Oid, tree: &Oid) -> Result<Vec<ChangedFile>> {
    let changes = diff::changes(repo, base, base, tree)?;
    Ok(changes.iter().map(|change| changed_file(repo, change)).collect())
}

/// True if the base shows no language that is known: then source cannot be told from other files.
pub fn is_source_unknown(repo: &Repo, base: &Oid, oracle: &[OracleCommand]) -> Result<bool> {
    BaseProject::of(repo, base, oracle, &[])?.is_unknown()
}

/// The thing to do with each path that is not kept.
pub(super) fn choose(
    changes: &[ChangedFile],
    project: &BaseProject<'_>,
    mode: BaseTests,
) -> Result<BTreeMap<TreePath, PutBack>> {
    let mut choices = BTreeMap::new();
    if mode == BaseTests::Never {
        return Ok(choices);
    }
    for file in changes {
        let name = file.path.lossy();
        let touched = TouchedPath {
            path: &name,
            before: file.before.text(),
            after: file.after.text(),
            loses: file.loses,
        };
        choices.insert(file.path.clone(), put_back(touched, project)?);
    }
    // A file that was only moved has its tests with it.
    for gone in changes.iter().filter(|file| file.after.text().is_none()) {
        let was_moved = changes
            .iter()
            .any(|file| file.before.text().is_none() && file.after.text() == gone.before.text());
        if was_moved && matches!(choices.get(&gone.path), Some(PutBack::Inseparable(_))) {
            choices.insert(gone.path.clone(), PutBack::Keep);
        }
    }
    // A manifest makes a directory a project, whose name may also be a marker: source shows which.
    for file in changes.iter().filter(|file| file.before.text().is_none()) {
        let name = file.path.lossy();
        let directory = &name[..name.rfind('/').map_or(0, |slash| slash + 1)];
        let is_source_below = |other: &ChangedFile| {
            let path = other.path.lossy();
            path.starts_with(directory)
                && language_of(&path).is_some()
                && choices.get(&other.path) == Some(&PutBack::Keep)
        };
        if choices.get(&file.path) == Some(&PutBack::Keep)
            && begins_project(&name, project)?
            && !changes.iter().any(is_source_below)
        {
            choices.insert(file.path.clone(), PutBack::Other);
        }
    }
    choices.retain(|_, choice| *choice != PutBack::Keep);
    Ok(choices)
}
