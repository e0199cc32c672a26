//! Copies an attempt's work from its own git directory to the repository. The work is objects, the
//! candidate's branch, the index, and the refs that the attempt made.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::State;
use gix::index::entry::Mode;

use crate::error::{IoContext, Result};
use crate::fs::tree::path_bytes;
use crate::fs::{atomic, regular};
use crate::git::filters::STORE_OF_LFS;
use crate::git::index::{encoded_with_checksum, entries_of, expand};
use crate::git::own_dir::objects::Lost;
use crate::git::own_dir::{BRANCH, OwnGitDir, files, ids_in, lfs, modules, objects, own_refs};
use crate::git::repo::{Repo, to_oid};
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The largest number of an attempt's own refs that are brought back. Each becomes a file, so there
/// is a limit.
const MOST_REFS: usize = 1_000;

/// The file in the worktree's administrative entry that names the objects of the attempt's other
/// worktrees. Because of this file, a capture saves these objects.
const OTHERS: &str = "frites-other-worktrees";

/// The content of an attempt's git directory, read from its files without git.
struct Found {
    /// The files of the worktree's administrative entry, without its index.
    entry: BTreeMap<PathBuf, Vec<u8>>,
    /// The entries of the index; `None` if git-frites cannot read the index.
    index: Option<State>,
    /// All refs except symbolic ones.
    refs: BTreeMap<BString, Oid>,
    /// The refs that the own git directory had when it was made.
    given: BTreeMap<BString, Oid>,
    /// The refs that the attempt made or moved, except the candidate's branch.
    own: BTreeMap<BString, Oid>,
    /// The commits of refs beyond [`MOST_REFS`]. These refs are not brought back.
    left_out: BTreeSet<Oid>,
    /// The reflogs. An own git directory is made without the repository's reflogs, so the attempt
    /// has written all of these.
    logs: BTreeMap<BString, Vec<u8>>,
    /// The other worktrees that the attempt has made with its git directory.
    others: OtherWorktrees,
    /// The files that could not be read, or are too long.
    unread: Vec<PathBuf>,
}

/// The administrative entries of worktrees that the attempt has made.
#[derive(Default)]
struct OtherWorktrees {
    /// Their HEADs, as refs. If a HEAD is detached, perhaps no other ref leads to its commits.
    heads: BTreeMap<BString, Oid>,
    /// The reflogs of the HEADs.
    logs: BTreeMap<BString, Vec<u8>>,
    /// The ids in the other files, such as that of an autostash. Some of the objects may not exist.
    named: BTreeSet<Oid>,
    /// The ids of the files in the indexes.
    staged: BTreeSet<Oid>,
}

impl OtherWorktrees {
    /// The objects that may be named nowhere else: the objects that the files of the entries name,
    /// and the staged files that neither `base` nor a HEAD has. Objects that do not exist are left
    /// out.
    fn objects(&self, repo: &Repo, base: &Oid) -> Result<BTreeSet<Oid>> {
        let mut staged = self.staged.clone();
        let commits = [base].into_iter().chain(self.heads.values());
        for commit in commits.filter(|commit| repo.is_commit(commit)) {
            if staged.is_empty() {
                break;
            }
            for entry in repo.index_of(commit)?.entries() {
                staged.remove(&to_oid(entry.id));
            }
        }
        let all = self.named.union(&staged);
        Ok(all.filter(|oid| repo.has(oid)).copied().collect())
    }
}

impl Found {
    /// The files for the worktree's administrative entry in the repository. They come from the
    /// attempt's copy of the entry, and include the attempt's own refs.
    fn into_entry(mut self, repo: &Repo, branch: &RefName) -> BTreeMap<PathBuf, Vec<u8>> {
        self.entry.retain(|path, _| !own_refs::is_in_place_of_saved(path));
        release_branches(&mut self.entry, branch);
        for (name, oid) in self.own.into_iter().filter(|(_, oid)| repo.has(oid)) {
            let [value, log] = own_refs::saved_files(name.as_bstr(), &self.entry);
            self.entry.insert(value, format!("{oid}\n").into_bytes());
            self.entry.extend(self.logs.remove(&name).map(|bytes| (log, bytes)));
        }
        // The attempt moved these refs and moved them back, or deleted them. The log of the
        // candidate's branch is that of the repository.
        self.logs.remove(BStr::new(branch.as_str()));
        for (name, bytes) in self.logs {
            let [_, log] = own_refs::saved_files(name.as_bstr(), &self.entry);
            self.entry.entry(log).or_insert(bytes);
        }
        self.entry
    }

    /// The content of HEAD for the entry in the repository. HEAD is detached unless the attempt is
    /// on the candidate's branch.
    fn head(&self, repo: &Repo, admin: &Path, branch: &RefName) -> Vec<u8> {
        let bytes = self.entry.get(Path::new("HEAD")).map(Vec::as_slice).unwrap_or_default();
        let text = bytes.trim();
        if text.strip_prefix(b"ref: ") == Some(branch.as_bytes()) {
            return bytes.to_vec();
        }
        match commit_at(text, &self.refs).filter(|oid| repo.is_commit(oid)) {
            Some(oid) => format!("{oid}\n").into_bytes(),
            None => regular::read(&admin.join("HEAD")).unwrap_or_default(),
        }
    }
}

impl OwnGitDir {
    /// Brings back everything that the directory has now. The attempt may still be at work. `admin`
    /// is the worktree's administrative entry in the repository, or `None` if it is gone. `branch`
    /// is the candidate's branch, and `base` its base. No other ref of the repository moves.
    ///
    /// Notes in `self.room` the commits and files that cannot be read; see
    /// [`unread`](super::unread).
    ///
    /// The caller holds the candidate's lock.
    pub fn bring_back(
        &self,
        repo: &Repo,
        admin: Option<&Path>,
        branch: &RefName,
        base: &Oid,
    ) -> Result<()> {
        fs::create_dir_all(&self.room).could_not("make", &self.room)?;
        let mut found = self.read(branch);
        self.fetch(repo, branch, base, &mut found)?;
        // If the repository has no store, git-lfs makes one in the attempt's git directory.
        for from in [&self.room, &self.dir] {
            lfs::bring_back(repo, &from.join(STORE_OF_LFS))?;
        }
        if let Some(tip) =
            found.refs.get(BStr::new(branch.as_str())).filter(|tip| repo.is_commit(tip))
            && !self.move_branch(repo, branch, tip, found.given.get(BStr::new(branch.as_str())))?
        {
            found.own.insert(branch.as_str().into(), *tip);
        }
        let Some(admin) = admin else { return Ok(()) };
        let head = found.head(repo, admin, branch);
        // The index is written again without its extensions. git would read the trees that the
        // extensions name, but such a tree may be missing or endless.
        let index = match &found.index {
            Some(index) => Some(encoded_with_checksum(index, None)?),
            None => regular::read(&admin.join("index")).ok(),
        };
        let is_whole = found.unread.is_empty();
        let of_others = found.others.objects(repo, base)?;
        let mut entry = found.into_entry(repo, branch);
        if !of_others.is_empty() {
            entry.insert(OTHERS.into(), objects::lines(&of_others).into_bytes());
        }
        entry.insert("HEAD".into(), head);
        entry.extend(index.map(|bytes| ("index".into(), bytes)));
        // A missing file was deleted by the attempt, or it could not be read.
        let written = match is_whole {
            true => files::replace(admin, &entry),
            false => files::write(admin, &entry),
        };
        written.could_not("write to", admin)
    }

    /// Reads the files and refs that the directory has now.
    fn read(&self, branch: &RefName) -> Found {
        let mut unread = Vec::new();
        // The index is read before the objects are fetched. So the objects that the index lists
        // still exist when they are fetched: objects are never removed from an own git directory.
        let mut entry = match files::is_directory(&self.dir.join("worktrees")) {
            true => files::read(&self.entry, files::is_of_the_repository, &mut unread),
            false => BTreeMap::new(),
        };
        let index = entry.remove(Path::new("index"));
        let index = index.and_then(|bytes| entries_of(&bytes, &self.entry));
        entry.retain(|path, _| !files::is_of_an_index(path));
        let refs = own_refs::read(&self.dir, &mut unread);
        let given = regular::read(&self.room.join("refs")).unwrap_or_default();
        let given = own_refs::parse_packed(&given);
        let mut own = refs.clone();
        own.retain(|name, oid| name != branch.as_str() && given.get(name) != Some(oid));
        let mut others = self.other_worktrees(&refs, &mut unread);
        own.extend(others.heads.clone());
        let left_out = own.keys().nth(MOST_REFS).cloned();
        let left_out = left_out.map(|first| own.split_off(&first)).unwrap_or_default();
        let left_out = left_out.into_values().collect();
        let logs = files::read(&self.dir.join("logs"), |_| false, &mut unread).into_iter();
        let named = logs.map(|(path, log)| (path_bytes(&path).into(), log));
        let logs = named.chain(std::mem::take(&mut others.logs)).collect();
        unread.sort();
        Found { entry, index, refs, given, own, left_out, logs, others, unread }
    }

    /// Reads the administrative entries of the other worktrees that the attempt has made. `refs`
    /// are the refs of the directory.
    fn other_worktrees(
        &self,
        refs: &BTreeMap<BString, Oid>,
        unread: &mut Vec<PathBuf>,
    ) -> OtherWorktrees {
        let mut found = OtherWorktrees::default();
        let entries = self.dir.join("worktrees");
        let is_left_out = |path: &Path| {
            let mut parts = path.iter();
            parts.next() == self.entry.file_name() || files::is_of_the_repository(parts.as_path())
        };
        for (path, bytes) in files::read(&entries, is_left_out, unread) {
            let mut parts = path.iter();
            let Some(worktree) = parts.next() else { continue };
            let file = parts.as_path();
            if files::is_of_an_index(file) {
                let index = entries_of(&bytes, &entries.join(worktree));
                found.staged.extend(index.iter().flat_map(ids_of_files));
                continue;
            }
            let name: BString = [b"refs/worktree-heads/", worktree.as_bytes()].concat().into();
            let is_name = gix::refs::FullName::try_from(name.as_bstr()).is_ok();
            match file.to_str() {
                Some("HEAD") if is_name => {
                    let head = commit_at(bytes.trim(), refs);
                    found.heads.extend(head.map(|oid| (name, oid)));
                }
                Some("logs/HEAD") if is_name => drop(found.logs.insert(name, bytes)),
                _ => found.named.extend(ids_in(&bytes)),
            }
        }
        found
    }

    /// Fetches the objects that the files and refs name. Removes refs, reflog entries and index
    /// entries whose objects are lost.
    fn fetch(&self, repo: &Repo, branch: &RefName, base: &Oid, found: &mut Found) -> Result<()> {
        let tip = found.refs.get(BStr::new(branch.as_str()));
        let mut commits: BTreeSet<Oid> = found.own.values().chain(tip).copied().collect();
        commits.extend(found.logs.values().flat_map(|log| own_refs::logged(log)));
        commits.extend(ids_of_heads(&found.entry));
        let mut named: BTreeSet<Oid> = found.entry.values().flat_map(|file| ids_in(file)).collect();
        named.extend(&found.others.named);
        let mut wanted = &commits | &named;
        wanted.extend(found.index.iter().flat_map(ids_of_files));
        wanted.extend(&found.others.staged);
        let Lost { lost, damaged } =
            objects::fetch(repo, &self.dir.join("objects"), &self.room, wanted)?;
        // Files other than HEAD, the refs and the reflogs can name an object that git has deleted,
        // or that never existed.
        commits.retain(|oid| lost.contains(oid));
        named.retain(|oid| damaged.contains(oid));
        let mut submodules = Vec::new();
        for modules in self.modules() {
            submodules.extend(modules::unsaved(repo, base, &modules)?);
        }
        let lost_ids = &commits | &named;
        self.note_unread(lost_ids.union(&found.left_out), &found.unread, submodules)?;
        forget(&mut found.entry, &lost);
        if let Some(mut index) = found.index.take() {
            index.remove_entries(|_, _, entry| lost.contains(&to_oid(entry.id)));
            found.index = expand(&repo.gix(), index);
        }
        found.logs.values_mut().for_each(|log| *log = own_refs::without(log, &lost));
        Ok(())
    }

    /// Moves the candidate's branch to `tip`. Returns false if somebody else has moved or deleted
    /// the branch. `given` is the commit that the branch had when the own git directory was made.
    fn move_branch(
        &self,
        repo: &Repo,
        branch: &RefName,
        tip: &Oid,
        given: Option<&Oid>,
    ) -> Result<bool> {
        let note = self.room.join(BRANCH);
        let noted = regular::read_text(&note).unwrap_or_default();
        let noted: Vec<Oid> = noted.lines().filter_map(Oid::parse).collect();
        let Some(now) = repo.read_ref(branch)? else { return Ok(false) };
        if now == *tip {
            return Ok(true);
        }
        if !(noted.contains(&now) || noted.is_empty() && given == Some(&now)) {
            return Ok(false);
        }
        let write =
            |text: String| atomic::write_unsynced(&note, text.as_bytes()).could_not("write", &note);
        // If this process is killed after the next line, the branch may have either commit.
        write(format!("{now}\n{tip}\n"))?;
        repo.update_ref(branch, Some(tip), Some(&now), "attempt")?;
        write(format!("{tip}\n"))?;
        Ok(true)
    }
}

/// The object id to which the text of a HEAD leads, by these refs.
fn commit_at(head: &[u8], refs: &BTreeMap<BString, Oid>) -> Option<Oid> {
    match head.strip_prefix(b"ref: ") {
        Some(branch) => refs.get(branch.as_bstr()).copied(),
        None => head.to_str().ok().and_then(Oid::parse),
    }
}

/// The ids of the files in an index, without submodules.
fn ids_of_files(index: &State) -> impl Iterator<Item = Oid> {
    index.entries().iter().filter(|e| e.mode != Mode::COMMIT).map(|e| to_oid(e.id))
}

/// Removes refs and reflog entries whose objects are lost, because git would report them as damage.
fn forget(entry: &mut BTreeMap<PathBuf, Vec<u8>>, lost: &BTreeSet<Oid>) {
    entry.retain(|path, bytes| {
        if path.starts_with("logs") {
            *bytes = own_refs::without(bytes, lost);
        }
        let id = std::str::from_utf8(bytes).ok().and_then(|text| Oid::parse(text.trim()));
        !(path.starts_with("refs") && id.is_some_and(|id| lost.contains(&id)))
    });
}

/// Edits the files of a rebase or bisection in the attempt's entry, so that they name no branch
/// except the candidate's. Otherwise git would refuse to switch to the named branch in any other
/// worktree (`prepare_checked_out_branches` in git's branch.c).
fn release_branches(entry: &mut BTreeMap<PathBuf, Vec<u8>>, branch: &RefName) {
    for (file, released) in [
        ("rebase-merge/head-name", Some("detached HEAD\n")),
        ("rebase-apply/head-name", Some("detached HEAD\n")),
        ("rebase-merge/update-refs", None),
        ("BISECT_START", None),
    ] {
        let Some(bytes) = entry.get(Path::new(file)) else { continue };
        let named = String::from_utf8_lossy(bytes);
        let named = named.trim().trim_start_matches("refs/heads/");
        if named == branch.trim_start_matches("refs/heads/") || Oid::parse(named).is_some() {
            continue;
        }
        match released {
            Some(text) => entry.insert(file.into(), text.into()),
            None => entry.remove(Path::new(file)),
        };
    }
}

/// The object ids in HEAD, the refs and the reflogs of an administrative entry. git does not delete
/// objects that these files name.
fn ids_of_heads(entry: &BTreeMap<PathBuf, Vec<u8>>) -> BTreeSet<Oid> {
    let ids = entry.iter().flat_map(|(path, bytes)| match path.iter().next() {
        Some(first) if first == "logs" => own_refs::logged(bytes),
        Some(first) if first == "refs" || first == "HEAD" => ids_in(bytes),
        _ => BTreeSet::new(),
    });
    ids.collect()
}
