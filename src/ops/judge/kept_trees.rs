//! Keeping the trees of all entries before they are judged.
use crate::error::Result;
use crate::git::commit::neutral_commit;
use crate::model::base_tests::BaseTestsResult;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::Entry;
use crate::ops::judge::entries;
use crate::ops::judge::keep::{keep, keep_tree};
use crate::ops::session::Session;

/// Keeps the trees of these entries, and those of their second judging, until judging ends.
pub fn keep_trees(session: &Session, run: &Run, terms: &Terms, entries: &[Entry]) -> Result<()> {
    let Session { repo, store, .. } = session;
    let recorded = store.judged(&run.run)?;
    let mut new = Vec::new();
    for tree in entries.iter().flat_map(judged_trees) {
        let commit = neutral_commit(repo, tree, &run.base)?;
        if !recorded.contains(&commit) {
            new.push(commit);
        }
    }
    if keep(session, run, &new, &run.base).is_ok() {
        return Ok(());
    }
    // One by one: a collection deletes what was made before the ref is there.
    for entry in entries {
        let mut is_first_try = true;
        repo.retry_during_gc(|| {
            if let (false, Some(captured)) = (is_first_try, &entry.tree) {
                // The tree itself may be lost, if it is not the captured one.
                entries::make_trees_again(repo, &run.base, captured, terms)?;
            }
            is_first_try = false;
            judged_trees(entry).try_for_each(|tree| keep_tree(session, run, tree).map(drop))
        })?;
    }
    Ok(())
}

/// The trees that are judged for an entry.
fn judged_trees(entry: &Entry) -> impl Iterator<Item = &Oid> {
    let second = entry.base_tests.iter().flat_map(BaseTestsResult::trees);
    entry.judged().into_iter().chain(second)
}
