//! Commits: the user's own, with everything of theirs that has a say in one, and neutral ones of ours.
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::error::{IoContext, Result};
use crate::git::cli::{Git, OURS};
use crate::git::repo::Repo;
use crate::git::worktree;
use crate::model::oid::Oid;

/// What to say in a commit, and how.
#[derive(Clone, Debug)]
pub struct Message {
    /// Each becomes a paragraph, as with `git commit -m`.
    pub paragraphs: Vec<String>,
    /// Lines added at the end, `Key: value`.
    pub trailers: Vec<String>,
    /// Whether the hooks run that `--no-verify` skips.
    pub verify: bool,
}

/// A commit to be made in the user's name.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What it holds.
    pub tree: &'a Oid,
    /// Its first parent.
    pub parent: &'a Oid,
    /// What it merges, if it is a merge.
    pub merged: Option<&'a Oid>,
    /// What it says.
    pub message: &'a Message,
}

/// Commits what is staged as the user would: identity, hooks, signing. `git` is where.
///
/// Gives false when git or a hook refused; they have said why on standard error.
pub fn commit(git: &Git, message: &Message) -> Result<bool> {
    // Housekeeping can wait: killed with us, it would leave its lock behind.
    let quiet = ["maintenance.auto=false", "-c", "gc.auto=0", "commit", "--quiet"];
    let mut call = git.clone().for_user().call("-c").args(quiet);
    if !message.verify {
        call = call.arg("--no-verify");
    }
    for paragraph in &message.paragraphs {
        call = call.arg("-m").arg(paragraph);
    }
    for trailer in &message.trailers {
        call = call.arg("--trailer").arg(trailer);
    }
    Ok(call.interactive()? == 0)
}

/// The directory of the hooks that a commit would run in the user's checkout, if there is any such hook.
fn commit_hooks(repo: &Repo, merging: bool) -> Result<Option<OsString>> {
    let configured = repo.gix().config_snapshot().string("core.hooksPath").is_some();
    let directory = if configured || std::env::var_os("GIT_CONFIG_PARAMETERS").is_some() {
        let git = repo.checkout().for_user();
        git.call("rev-parse").args(["--path-format=absolute", "--git-path", "hooks"]).line()?
    } else {
        repo.common_dir().join("hooks").into_os_string()
    };
    // The last one runs when any ref moves, and may refuse.
    let hooks =
        ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];
    let merge = merging.then_some("pre-merge-commit");
    let any = hooks.into_iter().chain(merge).any(|hook| Path::new(&directory).join(hook).is_file());
    Ok(any.then_some(directory))
}

/// A detached worktree at the first parent, for [`aside`].
pub struct Aside<'a> {
    /// Its administrative entry.
    pub admin: &'a Path,
    /// Its directory.
    pub path: &'a Path,
}

/// Makes the commit with `git commit` in a worktree of its own: the user's checkout is not touched. The
/// files are written only if a hook is there to look at them.
///
/// Gives the commit, or none when git or a hook refused. A hook may have changed its tree.
pub fn aside(repo: &Repo, aside: &Aside<'_>, wanted: &Wanted<'_>) -> Result<Option<Oid>> {
    let mut git = worktree::git(aside.admin, aside.path);
    let hooks = commit_hooks(repo, wanted.merged.is_some())?;
    match &hooks {
        Some(directory) => {
            git.call("read-tree").args(["--reset", "-u", wanted.tree.as_str()]).run()?;
            // A relative `core.hooksPath` would be looked for in the worktree aside.
            git = git.hooks(directory);
        }
        None => git.call("read-tree").arg(wanted.tree.as_str()).run()?,
    }
    if let Some(merged) = wanted.merged {
        // What `git merge --no-ff --no-commit` leaves for `git commit` to go by.
        for (file, text) in
            [("MERGE_HEAD", format!("{merged}\n")), ("MERGE_MODE", "no-ff".to_owned())]
        {
            let path = aside.admin.join(file);
            fs::write(&path, text).context(|| format!("could not write '{}'", path.display()))?;
        }
        if hooks.is_some() && wanted.message.verify && run_hook(&git, "pre-merge-commit", &[])? != 0
        {
            return Ok(None);
        }
    }
    if !commit(&git, wanted.message)? {
        return Ok(None);
    }
    git.call("rev-parse").args(["--verify", "HEAD^{commit}"]).oid().map(Some)
}

/// Runs one of the user's hooks, if there is one; gives its exit code.
pub fn run_hook(git: &Git, hook: &str, args: &[&str]) -> Result<i32> {
    let call = git.clone().for_user().call("hook").args(["run", "--ignore-missing", hook, "--"]);
    call.args(args).interactive()
}

/// A commit of `tree` on `parent` by git-frites that depends on nothing else: equal trees on equal
/// bases give the same commit, so an outcome cannot depend on which candidate made the tree.
pub fn neutral_commit(repo: &Repo, tree: &Oid, parent: &Oid) -> Result<Oid> {
    neutral(repo, tree, parent, "frites: judged tree")
}

/// What the commit of an attempt's index says, where that holds more than files and commits do.
pub const STAGED: &str = "frites: staged";

/// The same with that message.
pub fn neutral(repo: &Repo, tree: &Oid, parent: &Oid, message: &str) -> Result<Oid> {
    let who = format!("{} <{}> {} +0000", OURS.0, OURS.1, repo.commit(parent)?.time);
    let text =
        format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\n{message}\n");
    // It is asked for at each judging, and mostly there already.
    if let Some(there) = repo.has_commit(text.as_bytes())? {
        return Ok(there);
    }
    repo.git().call("hash-object").args(["-t", "commit", "-w", "--stdin"]).stdin(text).oid()
}
