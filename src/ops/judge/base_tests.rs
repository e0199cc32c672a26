//! The tree of a candidate's second judging: its change with the base's tests and commands put
//! back.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::put_back::{PutBack, put_back};
use crate::ecosystems::scripts::scripts_of;
use crate::ecosystems::touched::TouchedPath;
use crate::error::Result;
use crate::git::diff;
use crate::git::protect::{self, Restore};
use crate::git::repo::Repo;
use crate::model::base_tests::{BaseTests, BaseTestsResult};
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::path::TreePath;
use crate::ops::judge::changed_file::{ChangedFile, changed_file};

/// The second judging that a tree needs, without results; none if it needs none. `changes` are
/// those from the base to the tree.
pub fn plan(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    changes: &[ChangedFile],
    scripts: &BTreeSet<String>,
    mode: BaseTests,
) -> Result<Option<BaseTestsResult>> {
    let choices = choose(changes, scripts, mode);
    let problem = choices.iter().find_map(|(path, choice)| match choice {
        PutBack::Inseparable(why) => Some(format!("'{}' is changed, and {why}", path.quoted())),
        _ => None,
    });
    let restored = protect::put_back(repo, base, tree, |change| {
        match choices.get(&TreePath::new(change.path)) {
            Some(PutBack::Test | PutBack::Deciding | PutBack::AddedTest) => Restore::Base,
            Some(PutBack::Part(text)) => Restore::Text(text.clone().into_bytes()),
            Some(PutBack::Inseparable(_) | PutBack::Keep) | None => Restore::Keep,
        }
    })?;
    if problem.is_none() && restored.tree == *tree {
        return Ok(None);
    }
    let names = |paths: &[TreePath]| paths.iter().map(|p| p.lossy()).collect();
    Ok(Some(BaseTestsResult {
        tree: problem.is_none().then_some(restored.tree),
        put_back: names(&restored.put_back),
        taken_out: names(&restored.taken_out),
        problem,
        results: Vec::new(),
    }))
}

/// [`plan`] for a tree whose changes were not read yet: `tree` as compared with the commit `base`.
pub fn plan_for(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    oracle: &[OracleCommand],
    mode: BaseTests,
) -> Result<Option<BaseTestsResult>> {
    let changes = diff::changes(repo, base, base, tree)?;
    let files: Vec<ChangedFile> = changes.iter().map(|c| changed_file(repo, c)).collect();
    plan(repo, base, tree, &files, &scripts_of(repo, base, oracle)?, mode)
}

/// The thing to do with each path that is not kept.
fn choose(
    changes: &[ChangedFile],
    scripts: &BTreeSet<String>,
    mode: BaseTests,
) -> BTreeMap<TreePath, PutBack> {
    if mode == BaseTests::Never {
        return BTreeMap::new();
    }
    let mut choices: BTreeMap<TreePath, PutBack> = changes
        .iter()
        .map(|file| {
            let name = file.path.lossy();
            let touched = TouchedPath {
                path: &name,
                before: file.before.text(),
                after: file.after.text(),
                loses: file.loses,
            };
            (file.path.clone(), put_back(touched, scripts))
        })
        .collect();
    // A file that was only moved has its tests with it.
    for gone in changes.iter().filter(|file| file.after.text().is_none()) {
        let was_moved = changes
            .iter()
            .any(|file| file.before.text().is_none() && file.after.text() == gone.before.text());
        if was_moved && matches!(choices.get(&gone.path), Some(PutBack::Inseparable(_))) {
            choices.insert(gone.path.clone(), PutBack::Keep);
        }
    }
    let is_put_back = |choice: &PutBack| !matches!(choice, PutBack::Keep | PutBack::AddedTest);
    // Tests alone make nothing pass that fails on the base, unless they bend the others.
    let only_tests = !choices.is_empty() && choices.values().all(|c| *c == PutBack::AddedTest);
    let any_is = only_tests || choices.values().any(is_put_back);
    choices.retain(|_, choice| match choice {
        PutBack::Keep => false,
        PutBack::AddedTest => any_is || mode == BaseTests::Always,
        _ => true,
    });
    choices
}
