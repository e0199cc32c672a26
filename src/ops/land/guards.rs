//! Checks that fail if a landing is not allowed.
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::fs::tree::{links_and_real, named_files, nearest_real};
use crate::git::cli::{Git, nul_separated};
use crate::git::commit::hooks_directory;
use crate::git::diff::{self, Change};
use crate::git::landing::overwrite::overwritten_files;
use crate::git::refs;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::ops::session::Session;

/// Fails if the current checkout is a candidate's worktree, because a change lands on the user's
/// HEAD.
pub fn refuse_candidates_worktree(session: &Session) -> Result<()> {
    let Some(root) = session.repo.work_tree() else { return Ok(()) };
    let ours = session.repo.head_branch().is_some_and(|b| b.starts_with(refs::ATTEMPT_BRANCHES));
    if ours || session.store.is_candidates(root)? {
        return Err(Error::fatal("this is a candidate's worktree")
            .hint("go to your own checkout and apply there"));
    }
    Ok(())
}

/// Fails if changing the checkout at `root` from tree `from` to tree `to` would overwrite untracked
/// files. `hint` tells the user how to go on.
pub fn refuse_overwrite(
    session: &Session,
    root: &Path,
    from: &Oid,
    to: &Oid,
    hint: &str,
) -> Result<()> {
    let paths = overwritten_files(&session.repo, root, from, to)?;
    if paths.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = paths.iter().map(TreePath::quoted).collect();
    Err(Error::no(format!(
        "landing would overwrite files that git does not track: {}",
        names.join(", ")
    ))
    .hint(hint))
}

/// A changed git hook: a hook in the user's checkout, or a link to hooks, that differs between the
/// tree `from` and another. git would run the attempt's version with the user's permissions.
///
/// Hooks are in the checkout if `core.hooksPath` leads to a directory in it, or if a hook is a link
/// to a file of the checkout. If that directory is not tracked, a tool such as husky has generated
/// its files, which run hooks in the parent directory. Then the files of the parent directory are
/// compared.
///
/// `changes` compares the trees. It is called only if there are such hooks.
pub fn changed_hook(
    session: &Session,
    from: &Oid,
    changes: impl FnOnce() -> Result<Vec<Change>>,
) -> Result<Option<TreePath>> {
    let Some(root) = session.repo.work_tree().map(nearest_real) else { return Ok(None) };
    let mut ways = links_and_real(Path::new(&hooks_directory(&session.repo)?));
    let hooks = ways.pop().unwrap_or_default();
    for hook in fs::read_dir(&hooks).into_iter().flatten().flatten() {
        ways.extend(links_and_real(&hook.path()));
    }
    let inside = ways.iter().filter_map(|way| way.strip_prefix(&root).ok());
    let mut places: Vec<PathBuf> = inside.map(Path::to_owned).collect();
    if let Ok(inside) = hooks.strip_prefix(&root) {
        let is_tracked = session.repo.has_directory(from, &inside.to_string_lossy())?;
        let above = inside.parent().filter(|above| !is_tracked && *above != Path::new(""));
        places.push(above.unwrap_or(inside).to_owned());
    }
    places.retain(|place| !place.starts_with(".git"));
    if places.is_empty() {
        return Ok(None);
    }
    let mut paths = changes()?.into_iter().map(|change| change.path);
    Ok(paths.find(|path| places.iter().any(|place| path.on_disk(Path::new("")).starts_with(place))))
}

/// A setting of git that names a changed file: the setting's name, and the quoted path of the file.
/// The settings are those that `git` obeys when it commits in the user's name. They include
/// settings that only the user's checkout or this process has (`config.worktree`, `git -c`).
fn changed_setting(
    session: &Session,
    git: &Git,
    changes: &[Change],
) -> Result<Option<[String; 2]>> {
    let common = session.repo.common_dir();
    let root = nearest_real(session.repo.work_tree().unwrap_or(common));
    let git = git.clone().for_user();
    let list = git.call("config").args(["--list", "-z", "--includes"]).bytes()?;
    for setting in nul_separated(&list) {
        let Some(end) = setting.iter().position(|byte| *byte == b'\n') else { continue };
        let key = &setting[..end];
        let value = &setting[end + 1..];
        // git does not run the values of our own settings. Hooks are compared by `changed_hook`.
        if key.starts_with(b"frites.") || key == b"core.hookspath" {
            continue;
        }
        let mut named = named_files(value, &root);
        named.extend(named_files(value, common));
        if let (Some(home), Some(rest)) = (std::env::home_dir(), value.strip_prefix(b"~/")) {
            named.extend(named_files(rest, &home));
        }
        let is_command = value.contains(&b' ');
        let mut paths = changes.iter().map(|change| &change.path);
        if let Some(path) = paths.find(|path| {
            let path = path.on_disk(&root);
            named.contains(&path) || is_command && is_below(&path, &named, &root)
        }) {
            return Ok(Some([String::from_utf8_lossy(key).into_owned(), path.quoted()]));
        }
    }
    Ok(None)
}

/// True if a path is in or below one of the directories `named` in the checkout `root`. A command
/// may go to a directory first: `sh -c "cd tools && ./sign"`, `make -C tools sign`.
fn is_below(path: &Path, named: &[PathBuf], root: &Path) -> bool {
    named.iter().any(|named| named != root && named.starts_with(root) && path.starts_with(named))
}

/// Fails if a setting of git names a file that differs between `tree` and the commit of the user's
/// checkout. `tree` is to be committed in the user's name with `git`, beside the checkout. Hooks
/// then see the files of `tree`, so git would start the programs of an attempt.
pub fn refuse_changed_settings(session: &Session, git: &Git, tree: &Oid) -> Result<()> {
    let Some(head) = session.repo.head() else { return Ok(()) };
    let changes = diff::since(&session.repo, &head, tree).changes()?;
    let Some([key, path]) = changed_setting(session, git, &changes)? else { return Ok(()) };
    Err(Error::no(format!(
        "the commit's version of '{path}', which git's setting {key} names, differs from your checkout's"
    ))
    .hint("read that file, and make the commit yourself; `git frites apply` without `-m` stages a change"))
}

/// The changes between the trees `from` and `to` because of which git would run an attempt's
/// version of a program in the user's checkout.
pub struct ChangedPrograms {
    /// A sentence about a changed file that a setting of git names.
    pub setting: Option<String>,
    /// A sentence about a changed hook.
    pub hook: Option<String>,
}

impl ChangedPrograms {
    /// Finds the changes of the capture with this `address`.
    ///
    /// git may run a file that a setting names (`gpg.program`, a filter), or read it as
    /// configuration (`include.path`). Every setting that names a changed file counts, because only
    /// git knows which of them it runs.
    pub fn find(session: &Session, from: &Oid, to: &Oid, address: &str) -> Result<ChangedPrograms> {
        let changes = diff::since(&session.repo, from, to).changes()?;
        let git = session.repo.checkout();
        let setting = changed_setting(session, &git, &changes)?.map(|[key, path]| {
            format!("{address} changes '{path}', which git's setting {key} names")
        });
        let hook = changed_hook(session, from, || Ok(changes))?.map(|hook| {
            format!("{address} changes '{}', a hook that git would run", hook.quoted())
        });
        Ok(ChangedPrograms { setting, hook })
    }

    /// Fails if a commit in the user's checkout would run such a program. `runs_hooks` is false if
    /// the commit runs no hook. `address` is that of [`ChangedPrograms::find`].
    pub fn refuse(&self, runs_hooks: bool, address: &str) -> Result<()> {
        let hook = if runs_hooks { self.hook.as_ref() } else { None };
        let Some(reason) = self.setting.as_ref().or(hook) else { return Ok(()) };
        let land = match self.setting {
            Some(_) => "then land without `-m`, and make the commit yourself",
            None => {
                "then land without hooks (`--no-verify`), or with those in your checkout (`--no-switch`)"
            }
        };
        let look = format!("look at it with `git frites diff {address}`");
        Err(Error::no(reason.clone()).hint(look).hint(land))
    }
}

/// Fails if the candidate has changed `.frites.toml` to a file that git-frites cannot read. On a
/// branch with this file, every command would fail, even `apply --undo`.
pub fn require_usable_configuration(
    session: &Session,
    run: &Run,
    candidate: &Name,
    tree: &Oid,
) -> Result<()> {
    let Some(text) = session.repo.file(tree, config::FILE)? else { return Ok(()) };
    if session.repo.file(&run.base, config::FILE)?.as_ref() == Some(&text) {
        return Ok(());
    }
    Config::check_file(&text).map_err(|e| {
        let what = format!("{run}/{candidate} would land a configuration that cannot be used");
        Error::fatal(format!("{what}: {e}")).hint(format!(
            "correct {} in `git frites path {run}/{candidate}`, and judge again",
            config::FILE
        ))
    })
}
