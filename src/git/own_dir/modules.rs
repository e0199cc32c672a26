//! Finds commits of submodules that would be lost together with a worktree.
//!
//! git puts the git directories of a worktree's submodules below `modules` of its administrative
//! entry. They stay there if a submodule is removed from the tree, or deinitialised. They are
//! deleted with the entry.
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use gix::index::entry::Mode;

use crate::error::Result;
use crate::fs::{regular, scratch, walk};
use crate::git::own_dir::objects::{ObjectView, lines};
use crate::git::own_dir::{files, ids_in, own_refs, shown};
use crate::git::repo::{Repo, to_oid};
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// At most this many commits of a submodule are named.
const MOST_NAMED: usize = 3;

/// The entries of a git directory that do not name commits of its user: objects, settings, and the
/// git directories of submodules, which are read separately.
const NOT_READ: [&str; 7] = ["objects", "modules", "index", "config", "hooks", "info", "lfs"];

/// A line for each git directory below `modules` with commits that are nowhere else, and for each
/// that cannot be read. Links are not followed. `base` is the base of the worktree's candidate.
pub fn unsaved(repo: &Repo, base: &Oid, modules: &Path) -> Result<Vec<String>> {
    let mut strange = Vec::new();
    let found = git_dirs_in(modules, &mut strange);
    let mut told: Vec<String> =
        shown(&strange).into_iter().map(|path| format!("{path} cannot be read")).collect();
    if found.is_empty() {
        return Ok(told);
    }
    let kept = KeptElsewhere::of(repo, base)?;
    for dir in found {
        told.extend(kept.unsaved_in(repo, &dir)?);
    }
    Ok(told)
}

/// A line if the git directory `dir` of a submodule has commits that are nowhere else, or cannot be
/// read.
pub fn unsaved_in(repo: &Repo, base: &Oid, dir: &Path) -> Result<Option<String>> {
    KeptElsewhere::of(repo, base)?.unsaved_in(repo, dir)
}

/// The git directories of submodules below `modules`, and those of the submodules in them. Adds to
/// `strange` the paths that are neither directories nor part of a git directory, and the
/// directories that cannot be read.
fn git_dirs_in(modules: &Path, strange: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![modules.to_owned()];
    while let Some(dir) = waiting.pop() {
        let Ok(meta) = fs::symlink_metadata(&dir) else { continue };
        // The name of a submodule may have slashes, so a directory may have git directories in it.
        let has = |name: &str| fs::symlink_metadata(dir.join(name)).is_ok();
        if !meta.is_dir() {
            strange.push(dir);
        } else if dir != modules && (has("HEAD") || has("objects")) {
            waiting.push(dir.join("modules"));
            found.push(dir);
        } else {
            let listed = fs::read_dir(&dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            match listed {
                Ok(entries) => waiting.extend(entries.iter().map(fs::DirEntry::path)),
                Err(_) => strange.push(dir),
            }
        }
    }
    found.sort();
    found
}

/// The objects that the git directory of a submodule names.
#[derive(Default)]
struct Named {
    /// The objects that HEAD, the refs and the reflogs name. If one of them is missing, the
    /// directory is damaged.
    required: BTreeSet<Oid>,
    /// The objects that other files name, such as `ORIG_HEAD`. They need not exist.
    others: BTreeSet<Oid>,
    /// The commits of remote-tracking branches. They are in the remote, too.
    published: BTreeSet<Oid>,
    /// The paths that cannot be read.
    unread: Vec<PathBuf>,
}

impl Named {
    /// Reads the files of a git directory. git is not called, so its settings have no effect.
    fn read(dir: &Path) -> Named {
        let mut named = Named { unread: files::special(dir).collect(), ..Named::default() };
        walk::list_readable(&dir.join("objects"), |_| false, &mut named.unread);
        let is_left_out = |path: &Path| {
            NOT_READ.iter().any(|name| path == Path::new(name))
                || path == Path::new("logs/refs/remotes")
                || path.extension().is_some_and(|extension| extension == "lock")
        };
        for (path, bytes) in files::read(dir, is_left_out, &mut named.unread) {
            let ids = ids_in(&bytes);
            if path == Path::new("packed-refs") {
                // `git clone` packs the tags of the remote. A tag that somebody made here is loose.
                for (name, oid) in own_refs::parse_packed(&bytes) {
                    if name.starts_with(b"refs/remotes/") {
                        named.published.insert(oid);
                    } else if !name.starts_with(b"refs/tags/") {
                        named.required.insert(oid);
                    }
                }
            } else if path.starts_with("refs/remotes") {
                named.published.extend(ids);
            } else if path == Path::new("HEAD") || path.starts_with("refs") {
                if ids.is_empty() && !bytes.starts_with(b"ref: ") {
                    named.unread.push(dir.join(&path));
                }
                named.required.extend(ids);
            } else if path.starts_with("logs") {
                // git keeps the new object of each entry, but perhaps not the first entry's old
                // object.
                let new = bytes.lines().filter_map(|line| line.split(|b| *b == b' ').nth(1));
                named.required.extend(new.flat_map(ids_in));
                named.others.extend(own_refs::logged(&bytes));
            } else {
                named.others.extend(ids);
            }
        }
        if fs::symlink_metadata(dir.join("HEAD")).is_err() {
            named.unread.push(dir.join("HEAD"));
        }
        named
    }
}

/// The submodule commits that stay if a worktree is removed.
struct KeptElsewhere {
    /// The commits that the base's tree names, and those of the user's own submodules.
    commits: BTreeSet<Oid>,
    /// The git directories of the user's own submodules.
    dirs: Vec<PathBuf>,
}

impl KeptElsewhere {
    fn of(repo: &Repo, base: &Oid) -> Result<KeptElsewhere> {
        let index = repo.index_of(base)?;
        let links = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        let mut dirs = git_dirs_in(&repo.common_dir().join("modules"), &mut Vec::new());
        let mut commits = BTreeSet::new();
        for link in links {
            commits.insert(to_oid(link.id));
            // In old checkouts, the git directory of a submodule is in the submodule.
            if let Some(main) = repo.main_worktree() {
                let dir = TreePath::new(link.path(&index)).on_disk(main).join(".git");
                dirs.extend(files::is_directory(&dir).then_some(dir));
            }
        }
        for dir in &dirs {
            commits.extend(own_refs::read(dir, &mut Vec::new()).into_values());
            commits.extend(ids_in(&regular::read(&dir.join("HEAD")).unwrap_or_default()));
        }
        Ok(KeptElsewhere { commits, dirs })
    }

    fn unsaved_in(&self, repo: &Repo, dir: &Path) -> Result<Option<String>> {
        let named = Named::read(dir);
        let place = shown(&[dir.to_owned()]).concat();
        if !named.unread.is_empty() {
            let paths = some_of(&shown(&named.unread));
            return Ok(Some(format!("the submodule in {place} cannot be read: {paths}")));
        }
        let room = scratch::directory()?;
        let view = ObjectView::make(repo, &dir.join("objects"), room.path(), &self.dirs)?;
        if let Ok(shallow) = regular::read(&dir.join("shallow")) {
            view.set_shallow(&shallow)?;
        }
        let kept = view.present(repo, &(&self.commits | &named.published))?;
        let present = view.present(repo, &(&named.required | &named.others))?;
        let missing: Vec<String> =
            named.required.difference(&present).map(Oid::to_string).collect();
        if !missing.is_empty() {
            let missing = some_of(&missing);
            return Ok(Some(format!("the submodule in {place} is damaged: it lacks {missing}")));
        }
        if present.is_empty() {
            return Ok(None);
        }
        let wanted =
            lines(&present) + &kept.iter().map(|oid| format!("^{oid}\n")).collect::<String>();
        let most = format!("--max-count={MOST_NAMED}");
        let call = view.git(repo).call("rev-list").args(["--stdin", &most]).stdin(wanted);
        let found = call.output()?;
        if found.code != 0 {
            return Ok(Some(format!("the commits of the submodule in {place} cannot be listed")));
        }
        let found: Vec<String> = found.stdout.to_str_lossy().lines().map(str::to_owned).collect();
        Ok(found.first().map(|newest| {
            let all = some_of(&found);
            format!(
                "commits of a submodule that are nowhere else: {all}; push them, or run this in \
                 your own submodule: `git fetch --upload-pack 'git --work-tree=. upload-pack' \
                 {} {newest}:refs/heads/kept-{}`",
                shell_words::quote(&dir.to_string_lossy()),
                newest.get(..7).unwrap_or_default()
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn sh(dir: &Path, script: &str) {
        let who =
            "GIT_AUTHOR_NAME=U GIT_AUTHOR_EMAIL=u@e GIT_COMMITTER_NAME=U GIT_COMMITTER_EMAIL=u@e";
        let script = format!("set -e; export HOME=/nowhere GIT_CONFIG_NOSYSTEM=1 {who}; {script}");
        let mut command = Command::new("sh");
        let ran = command.args(["-c", &script]).current_dir(dir).status().expect("a shell");
        assert!(ran.success(), "{script}");
    }

    /// Makes a user's repository `main` with a submodule, and a clone `m/a/b` of the submodule, as
    /// in an attempt's entry. Returns what is said of `m` after the script ran in `m/a/b`.
    fn said_after(script: &str) -> String {
        let place = tempfile::tempdir().expect("a directory");
        sh(
            place.path(),
            "git init -q lib; cd lib
             git commit -q --allow-empty -m one; git tag one; git commit -q --allow-empty -m two; cd ..
             git init -q main; cd main
             git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub
             cd ..; cd lib; git commit -q --allow-empty -m off; git tag off; git reset -q --hard HEAD~; cd ..
             mkdir -p m/a; git clone -q --bare lib m/a/b; cd m/a/b
             git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'; git fetch -q
             git pack-refs --all; git config core.logAllRefUpdates true",
        );
        let dir = place.path().join("m/a/b");
        sh(
            &dir,
            &format!(
                "new() {{ git commit-tree -p HEAD -m new HEAD^{{tree}}; }}; main=$PWD/../../../main; {script}"
            ),
        );
        let repo = Repo::open(&place.path().join("main/.git")).expect("a repository");
        let base = repo.head().expect("a commit");
        unsaved(&repo, &base, &place.path().join("m")).expect("an answer").join("\n")
    }

    #[test]
    fn commits_that_only_a_submodule_of_a_worktree_names_are_found() {
        for script in [
            "git update-ref refs/heads/x $(new)",
            "c=$(new); echo $c > HEAD",
            "git update-ref ORIG_HEAD $(new)",
            "git tag loose $(new)",
            "git tag -a -m loose loose $(new)",
            "git update-ref refs/stash $(new)",
            "old=$(git rev-parse HEAD); git update-ref HEAD $(new); git update-ref HEAD $old",
            "git update-ref refs/heads/x $(new); git pack-refs --all; git gc -q",
            "mkdir modules; git clone -q --bare . modules/in; cd modules/in; git update-ref refs/heads/x $(new)",
            "git update-ref refs/heads/x $(new); git rev-parse one > shallow",
        ] {
            let said = said_after(script);
            assert!(
                said.contains("commits of a submodule that are nowhere else: "),
                "{script}: {said}"
            );
        }
        for script in [
            "true",
            "git update-ref refs/heads/x one",
            "git update-ref refs/remotes/origin/x $(new); git update-ref refs/heads/x refs/remotes/origin/x",
            "git update-ref refs/heads/x $(new)
             git -C $main/sub fetch -q $PWD x:kept; git update-ref refs/heads/y x",
            "rm -rf ../b",
        ] {
            assert_eq!(said_after(script), "", "{script}");
        }
    }

    #[test]
    fn damaged_git_directories_of_submodules_count_as_work() {
        for script in [
            "rm HEAD",
            "echo x > HEAD",
            "mkfifo refs/heads/x",
            "ln -s /etc refs/heads/x",
            ": > refs/heads/x",
            "c=$(new); echo $c > HEAD; rm -rf objects",
            "c=$(new); echo $c > HEAD; rm -rf objects/*",
            "mv objects ..; ln -s ../objects objects",
            "rm -rf *; echo x > x",
            "rm -rf *; ln -s /etc/passwd x",
            "ln -s / modules",
        ] {
            assert_ne!(said_after(script), "", "{script}");
        }
    }
}
