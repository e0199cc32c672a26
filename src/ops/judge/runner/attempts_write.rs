//! Finds paths that a run's attempts could write to, and from which the judging commands get files.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fs::tree::nearest_real;
use crate::git::seed::find::Seeds;
use crate::git::seed::placed::PlacedSeeds;
use crate::model::run::Run;
use crate::model::separation::{AttemptAccess, Separation};
use crate::ops::agent_state;
use crate::ops::agent_state::users::UsersState;
use crate::ops::session::Session;
use crate::oracle::pool;
use crate::oracle::sealed::SealedCheckouts;
use crate::oracle::sealed::machine_paths::TEMPORARY;
use crate::store::records::read_toml;

/// The paths that the run's attempts could write to, and that the commands can read or get copies
/// of. The commands get copies of `seeds`. In the world of `sealed`, they see only a part of the
/// machine. With `None`, they run in another world, where they see everything.
pub(super) fn attempts_write(
    session: &Session,
    run: &Run,
    seeds: &Seeds,
    sealed: Option<&SealedCheckouts<'_>>,
) -> Result<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut open = BTreeSet::new();
    let root = nearest_real(&seeds.root);
    let users = UsersState::of(session);
    let mut copied = seeds.sources();
    for candidate in session.store.candidates(run) {
        let Some(access) = candidate.record()?.access else { continue };
        let is_shown =
            |path: &&String| sealed.is_none_or(|sealed| sealed.surroundings.shows(Path::new(path)));
        found.extend(access.writes.iter().filter(is_shown).cloned());
        if sealed.is_some() {
            found.extend(access.temporary.iter().filter(is_shown).cloned());
            // A sealed world shows a login if `sandbox.hide` says so. git-frites writes tokens of
            // the attempt into it.
            let logins = users.refreshed_logins(&agent_state::variables(session, candidate));
            let logins = logins.iter().filter(|file| file.exists()).map(|file| nearest_real(file));
            let logins = logins.map(|file| file.to_string_lossy().into_owned());
            found.extend(logins.filter(|file| is_shown(&file)));
        }
        let opened = writable(&access);
        if opened.iter().any(|path| path.starts_with(&root)) {
            // The attempt may have removed seeds. Outcomes depend on these seeds, too.
            let placed: Option<PlacedSeeds> = read_toml(&candidate.directory().seeds());
            let paths = placed.iter().flat_map(PlacedSeeds::paths);
            copied.extend(paths.map(|path| path.on_disk(&root)));
        }
        open.extend(opened);
    }
    if !open.is_empty() {
        let submodules = pool::submodules(&session.repo, session.home.as_deref(), &run.base)?;
        copied.extend(submodules.into_iter().map(|(path, _)| root.join(path)));
    }
    open.retain(|at| copied.iter().any(|path| is_written(path, at, &root)));
    found.extend(open.iter().map(|path| path.to_string_lossy().into_owned()));
    Ok(found.into_iter().collect())
}

/// The paths outside of its worktree to which an attempt with this access could write, except those
/// in layers of its own.
fn writable(access: &AttemptAccess) -> BTreeSet<PathBuf> {
    let usual: &[&str] = match access.separation {
        Separation::SharedHome | Separation::PrivateHome => &TEMPORARY,
        Separation::Unguarded | Separation::Landlock => &[],
    };
    let usual = usual.iter().map(|path| nearest_real(Path::new(path)));
    access.writes.iter().chain(&access.temporary).map(PathBuf::from).chain(usual).collect()
}

/// True if attempts could write to `path`, or to a file in it, because they could write to `at`.
/// The user's checkout at `root` is read-only even if a directory around it is writable.
fn is_written(path: &Path, at: &Path, root: &Path) -> bool {
    let is_protected = path.starts_with(root) && root.starts_with(at) && root != at;
    path.starts_with(at) && !is_protected || at.starts_with(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_written_through_a_path_in_or_above_it_that_is_not_above_the_checkout() {
        let cases = [
            ("/src/r/deps/x", "/src/r/deps", true),
            ("/src/r/deps", "/src/r/deps/x", true),
            ("/src/r/deps/x", "/src/r/deps/x", true),
            ("/src/r/deps/x", "/src/r", true),
            ("/src/r/deps/x", "/src/r/dep", false),
            ("/src/r/deps/x", "/src", false),
            ("/src/shared/x", "/src", true),
        ];
        for (path, at, expected) in cases {
            let is = is_written(Path::new(path), Path::new(at), Path::new("/src/r"));
            assert_eq!(is, expected, "{path} through {at}");
        }
    }
}
