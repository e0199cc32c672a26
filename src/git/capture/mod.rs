//! Capture: a worktree's files as a tree, whatever the attempt did with git, and that tree as a
//! commit from which everything the attempt committed is reachable.
//!
//! The index used is a private one, copied when the worktree was made. The attempt's own index may
//! carry assume-unchanged bits or half-staged content, and its `.git` file may be gone, so every call
//! gets GIT_DIR, GIT_WORK_TREE and GIT_INDEX_FILE absolutely: `git add` in such a worktree would
//! climb up and stage into the user's index.
pub mod dirty;
pub mod excludes;
pub mod mtimes;
pub mod omitted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode};

use crate::error::{IoContext, Result};
use crate::fs::tree;
use crate::git::capture::excludes::Excludes;
use crate::git::capture::omitted::{Notes, ONLY_ITS_ID};
use crate::git::cli::{Git, nul_separated};
use crate::git::index::{IndexEdits, ScratchIndex};
use crate::git::repo::{Repo, from_oid};
use crate::git::seed::placed::Seeded;
use crate::git::{commit, worktree};
use crate::model::candidate::Capture;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;

/// Where to capture from.
pub struct Subject<'a> {
    /// The worktree's directory.
    pub worktree: &'a Path,
    /// The candidate's branch.
    pub branch: &'a RefName,
    /// The commit that it started from.
    pub base: &'a Oid,
    /// The private index.
    pub index: &'a Path,
    /// The capture before, if any.
    pub previous: Option<&'a Capture>,
    /// `diff.exclude`.
    pub excludes: &'a Excludes,
    /// What the worktree was given before the attempt began.
    pub seeds: &'a Seeded,
}

/// What a worktree holds now.
pub struct Snapshot {
    /// Its files.
    pub tree: Oid,
    /// Commits of the attempt that neither the base nor the previous capture reaches: none of them
    /// is an ancestor of another.
    pub heads: Vec<Oid>,
    /// What the tree does not hold, and why.
    pub notes: Notes,
}

/// Reads the worktree into a tree. Writes objects and the private index, no ref.
pub fn snapshot(repo: &Repo, subject: &Subject<'_>) -> Result<Snapshot> {
    // The caller holds the candidate's lock, so a lock file here was left by a killed capture.
    let _ = fs::remove_file(subject.index.with_extension("lock"));
    let git = repo.git().work_tree(subject.worktree).index(subject.index);
    match trustworthy(repo, subject.index) {
        Some(index) => forget_lookalikes(&git, subject, &index)?,
        None => {
            repo.git().index(subject.index).call("read-tree").arg(subject.base.as_str()).run()?;
        }
    }
    let admin = worktree::admin_of(repo, subject.worktree)?;
    let head = admin.as_deref().and_then(|a| head_of(repo, a));
    let own = admin.as_deref().and_then(|a| open_index(repo, &a.join("index")));
    let mut looked = look(repo, subject, &git, own.as_ref(), head.as_ref())?;
    if looked.staged.iter().chain(&looked.dropped).any(|path| path.file_name() == b".gitattributes")
    {
        // By other attributes a file that nobody touched can be another blob, and git reads touched files only.
        let last = subject.previous.map_or(subject.base, |p| &p.commit);
        repo.git().index(subject.index).call("read-tree").arg(last.as_str()).run()?;
        looked = look(repo, subject, &git, own.as_ref(), head.as_ref())?;
    }
    let Looked { staged, dropped, linked, mut notes } = looked;
    drop_from_index(&git, subject, &dropped)?;
    if !staged.is_empty() {
        let list = TreePath::nul_terminated(&staged);
        let call = sparse_aware(&git).args([
            "update-index",
            "-z",
            "--add",
            "--remove",
            "--replace",
            "--stdin",
        ]);
        call.stdin(list).run()?;
    }
    let mut submodules = IndexEdits::default();
    for (path, id) in &linked {
        submodules.set("160000", id, path);
    }
    edit_index(&git, submodules)?;
    edit_index(&git, other_modes(repo, subject, own.as_ref()))?;
    let tree = git.call("write-tree").oid()?;
    let (base, index) = (repo.index_of(subject.base)?, open_index(repo, subject.index));
    if let Some(index) = &index {
        omitted::note_refused_names(subject, index, &staged, &mut notes);
    }
    omitted::note_worktree(repo, subject, index.as_ref(), &mut notes)?;
    if index.as_ref().is_some_and(|index| omitted::touches_rules(&base, index)) {
        notes.newly_ignored = omitted::newly_ignored(repo, &git, subject)?;
    }
    let staged = staged_apart(repo, subject, admin.as_deref(), own.zip(index), head.as_ref())?;
    let mut heads = new_heads(repo, subject, admin.as_deref(), head)?;
    heads.extend(staged);
    Ok(Snapshot { tree, heads, notes })
}

/// What a worktree holds that its index does not.
struct Looked {
    /// The paths to be read in.
    staged: BTreeSet<TreePath>,
    /// The paths to be taken out.
    dropped: BTreeSet<TreePath>,
    /// The submodules that are not checked out, and are at another commit than the index has.
    linked: BTreeMap<TreePath, ObjectId>,
    /// What cannot be held.
    notes: Notes,
}

fn look(
    repo: &Repo,
    subject: &Subject<'_>,
    git: &Git,
    own: Option<&gix::index::File>,
    head: Option<&Oid>,
) -> Result<Looked> {
    let own = attempts_paths(repo, subject.base, own, head)?;

    let mut notes = Notes::default();
    let mut staged: BTreeSet<TreePath> = BTreeSet::new();
    let mut dropped: BTreeSet<TreePath> = BTreeSet::new();
    let is_seed = |path: &[u8]| subject.seeds.hold(subject.worktree, path);
    let listing = sparse_aware(git)
        .args(["ls-files", "-z", "-t", "-o", "-m", "-d", "--exclude-standard"])
        .bytes()?;
    for record in nul_separated(&listing) {
        let (tag, path) = (record.first().copied(), record.get(2..).unwrap_or_default());
        if tag != Some(b'?') {
            let path = TreePath::new(path);
            if beyond_link(subject.worktree, &path) {
                // A link stands where a directory was: `git update-index` does not look behind it.
                dropped.insert(path);
            } else if let Some(why) = omitted::special(subject.worktree, &path) {
                notes.unholdable.insert(path.clone(), why);
                dropped.insert(path);
            } else {
                staged.insert(path);
            }
        } else if is_seed(path) {
            // The user's, not the attempt's.
        } else if let Some(directory) = path.strip_suffix(b"/") {
            if own.gitlinks.contains_key(directory) {
                staged.insert(TreePath::new(directory));
                notes.unholdable.insert(TreePath::new(directory), ONLY_ITS_ID);
            } else if subject.excludes.hides(path) {
                notes.excluded += 1;
            } else {
                notes.unholdable.insert(TreePath::new(directory), "a nested repository");
            }
        } else if subject.excludes.hides(path) && !own.files.contains(path) {
            notes.excluded += 1;
        } else {
            staged.insert(TreePath::new(path));
        }
    }
    let known = open_index(repo, subject.index);
    if let Some(known) = &known {
        for path in dirty::untouched(subject.worktree, &sparse_aware(git), known, &staged)? {
            staged.remove(&path);
        }
    }
    // What the attempt tracks itself although it is ignored (`git add -f`).
    staged.extend(
        own.files.into_iter().filter(|path| holds_file(subject.worktree, path) && !is_seed(path)),
    );
    // A seed that was edited, captured, and put back.
    for path in tracked_seeds(repo, subject).into_iter().filter(|path| is_seed(path)) {
        staged.remove(&path);
        dropped.insert(path);
    }
    // Where no repository is, an empty directory says nothing: the attempt's own index does.
    let mut linked = own.gitlinks;
    linked.retain(|path, id| {
        let known = known.as_ref().and_then(|index| index.entry_by_path(path.as_bstr()));
        known.is_none_or(|known| known.id != *id) && is_empty_directory(subject.worktree, path)
    });
    Ok(Looked { staged, dropped, linked, notes })
}

/// What a capture would leave out, found without writing anything: for a removal that is only rehearsed.
pub fn losses(repo: &Repo, subject: &Subject<'_>) -> Result<Notes> {
    let git = repo.git().work_tree(subject.worktree).index(subject.index);
    let admin = worktree::admin_of(repo, subject.worktree)?;
    let head = admin.as_deref().and_then(|a| head_of(repo, a));
    let own = admin.as_deref().and_then(|a| open_index(repo, &a.join("index")));
    let Looked { staged, mut notes, .. } = look(repo, subject, &git, own.as_ref(), head.as_ref())?;
    let (base, index) = (repo.index_of(subject.base)?, open_index(repo, subject.index));
    omitted::note_worktree(repo, subject, index.as_ref(), &mut notes)?;
    let changes_rules = staged.iter().any(|path| omitted::is_rules(path));
    if changes_rules || index.is_some_and(|index| omitted::touches_rules(&base, &index)) {
        notes.newly_ignored = omitted::newly_ignored(repo, &git, subject)?;
    }
    Ok(notes)
}

/// Whether a worktree holds exactly what its last capture does (or the base, if there is none): then there is
/// nothing to capture, and nothing that a capture would leave out.
pub fn is_unchanged(repo: &Repo, subject: &Subject<'_>) -> Result<bool> {
    let tree = match subject.previous {
        Some(capture) => capture.tree,
        None => repo.commit(subject.base)?.tree,
    };
    // Its checksum is not what is in doubt here.
    let Ok(index) =
        gix::index::File::at(subject.index, repo.gix().object_hash(), true, Default::default())
    else {
        return Ok(false);
    };
    if !dirty::files(subject.worktree, &index, &tree)? {
        return Ok(false);
    }
    let admin = worktree::admin_of(repo, subject.worktree)?;
    let head = admin.as_deref().and_then(|a| head_of(repo, a));
    let own = admin.as_deref().and_then(|a| open_index(repo, &a.join("index")));
    if !other_modes(repo, subject, own.as_ref()).is_empty() {
        return Ok(false);
    }
    Ok(staged_apart(repo, subject, admin.as_deref(), own.zip(Some(index)), head.as_ref())?
        .is_none()
        && new_heads(repo, subject, admin.as_deref(), head)?.is_empty())
}

/// What the candidate's branch holds beyond its captures, for a worktree that is gone; none if that
/// is nothing.
pub fn branch_snapshot(repo: &Repo, subject: &Subject<'_>) -> Result<Option<Snapshot>> {
    let Some(tip) = repo.read_ref(subject.branch)? else { return Ok(None) };
    let heads = new_heads(repo, subject, None, None)?;
    if heads.is_empty() {
        return Ok(None);
    }
    let mut tree = repo.commit(&tip)?.tree;
    if !subject.seeds.is_empty() {
        let index = repo.index_of(&tip)?;
        let entries = index.entries().iter().filter(|e| subject.seeds.is(e.path(&index), &e.id));
        let seeds: BTreeSet<TreePath> = entries.map(|e| TreePath::new(e.path(&index))).collect();
        if !seeds.is_empty() {
            let git = repo.git().index(subject.index);
            git.call("read-tree").arg(tree.as_str()).run()?;
            drop_from_index(&git, subject, &seeds)?;
            tree = git.call("write-tree").oid()?;
        }
    }
    Ok(Some(Snapshot { tree, heads, notes: Notes::default() }))
}

/// Takes paths out of an index.
fn drop_from_index(git: &Git, subject: &Subject<'_>, paths: &BTreeSet<TreePath>) -> Result<()> {
    let mut edits = IndexEdits::default();
    for path in paths {
        edits.remove(path, subject.base);
    }
    edit_index(git, edits)
}

/// Edits an index, also outside a sparse checkout's cone.
fn edit_index(git: &Git, edits: IndexEdits) -> Result<()> {
    if edits.is_empty() {
        return Ok(());
    }
    edits.apply(sparse_aware(git).arg("update-index"))
}

/// The paths of seeds that the private index holds; the base tracks none of them.
fn tracked_seeds(repo: &Repo, subject: &Subject<'_>) -> Vec<TreePath> {
    if subject.seeds.is_empty() {
        return Vec::new();
    }
    let Some(index) = open_index(repo, subject.index) else { return Vec::new() };
    let held = subject.seeds.paths().filter(|path| index.entry_by_path(path.as_bstr()).is_some());
    held.cloned().collect()
}

/// Stores a snapshot as the next iteration: a commit by git-frites whose first parent is the capture
/// before (or the base) and whose other parents are the attempt's own commits.
///
/// Moves `refname` only from the previous capture, and fails if objects are gone that it refers to.
pub fn store(
    repo: &Repo,
    subject: &Subject<'_>,
    snapshot: &Snapshot,
    refname: &RefName,
    message: &str,
) -> Result<Oid> {
    let parent = subject.previous.map_or(subject.base, |p| &p.commit);
    let mut call =
        repo.git().call("commit-tree").arg(snapshot.tree.as_str()).args(["-p", parent.as_str()]);
    for head in snapshot.heads.iter().filter(|h| *h != parent) {
        call = call.args(["-p", head.as_str()]);
    }
    let commit = call.args(["-F", "-"]).stdin(message).oid()?;
    let previous = subject.previous.map(|p| &p.commit);
    repo.set_ref_whole(refname, &commit, previous, parent, "capture").inspect_err(|_| {
        // The private index may vouch for blobs that are gone: the next try starts afresh.
        let _ = fs::remove_file(subject.index);
    })?;
    Ok(commit)
}

/// An index that can be used as it is: readable, and with no bit that hides an edit. A candidate
/// can write to every file of ours.
fn trustworthy(repo: &Repo, index: &Path) -> Option<gix::index::File> {
    open_index(repo, index)
        .filter(|file| !file.entries().iter().any(|e| e.flags.contains(Flags::ASSUME_VALID)))
}

/// The entries of the private index that the attempt's own has with another mode, with that one, where modes on the
/// disk say nothing.
fn other_modes(repo: &Repo, subject: &Subject<'_>, own: Option<&gix::index::File>) -> IndexEdits {
    let mut edits = IndexEdits::default();
    let Some(own) = own.filter(|_| !repo.trusts_modes()) else { return edits };
    let Some(private) = open_index(repo, subject.index) else { return edits };
    let is_file = |mode: Mode| matches!(mode, Mode::FILE | Mode::FILE_EXECUTABLE);
    for entry in own.entries().iter().filter(|e| is_file(e.mode)) {
        let known = private.entry_by_path(entry.path(own));
        if let Some(known) = known.filter(|known| is_file(known.mode) && known.mode != entry.mode) {
            set_mode(&mut edits, entry.mode, known, &private);
        }
    }
    edits
}

/// Sets an entry of an index again, with this mode.
fn set_mode(
    edits: &mut IndexEdits,
    mode: Mode,
    entry: &gix::index::Entry,
    index: &gix::index::File,
) {
    edits.set(format_args!("{:o}", mode.bits()), entry.id, entry.path(index));
}

/// Has git read the files again that it would take for unchanged by mistake.
fn forget_lookalikes(git: &Git, subject: &Subject<'_>, index: &gix::index::File) -> Result<()> {
    let found = dirty::lookalikes(subject.worktree, index)?;
    let mut edits = IndexEdits::default();
    for entry in &found {
        set_mode(&mut edits, entry.mode, entry, index);
    }
    edit_index(git, edits)
}

pub(super) fn open_index(repo: &Repo, path: &Path) -> Option<gix::index::File> {
    gix::index::File::at(path, repo.gix().object_hash(), false, Default::default()).ok()
}

/// A call that looks at files outside a sparse checkout's cone, too: an entry marked skip-worktree
/// whose file is there is an edit.
fn sparse_aware(git: &Git) -> crate::git::cli::Call {
    git.call("-c").arg("core.sparseCheckout=true")
}

/// What the attempt itself tracks, by its index and its HEAD.
#[derive(Default)]
struct OwnPaths {
    /// Its files that the base does not track.
    files: BTreeSet<TreePath>,
    /// Its submodules.
    gitlinks: BTreeMap<TreePath, ObjectId>,
}

fn attempts_paths(
    repo: &Repo,
    base: &Oid,
    index: Option<&gix::index::File>,
    head: Option<&Oid>,
) -> Result<OwnPaths> {
    let mut own = OwnPaths::default();
    let known = repo.index_of(base)?;
    if let Some(index) = index {
        for entry in index.entries() {
            let path = TreePath::new(entry.path(index));
            if entry.mode == Mode::COMMIT {
                own.gitlinks.insert(path, entry.id);
            } else if known.entry_by_path(path.as_bstr()).is_none() {
                own.files.insert(path);
            }
        }
    }
    if let Some(head) = head.filter(|h| *h != base) {
        let added = repo
            .git()
            .call("diff-tree")
            .args([
                "-r",
                "-z",
                "--no-renames",
                "--raw",
                "--diff-filter=A",
                base.as_str(),
                head.as_str(),
            ])
            .bytes()?;
        let mut records = nul_separated(&added);
        while let (Some(meta), Some(path)) = (records.next(), records.next()) {
            let mut fields = meta.split(|b| *b == b' ').skip(1);
            match (fields.next(), fields.nth(1).and_then(|id| ObjectId::from_hex(id).ok())) {
                (Some(b"160000"), Some(id)) => {
                    own.gitlinks.entry(TreePath::new(path)).or_insert(id);
                }
                _ => drop(own.files.insert(TreePath::new(path))),
            }
        }
    }
    Ok(own)
}

/// Whether a link lies on the way to a path.
fn beyond_link(worktree: &Path, path: &TreePath) -> bool {
    path.parents().any(|directory| directory.on_disk(worktree).is_symlink())
}

/// Whether an empty directory lies at a path, with no link on the way to it.
fn is_empty_directory(worktree: &Path, path: &TreePath) -> bool {
    let full = path.on_disk(worktree);
    tree::is_real_directory(worktree, &full)
        && fs::read_dir(full).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a file or a link lies at a path, with no link on the way to it.
fn holds_file(worktree: &Path, path: &TreePath) -> bool {
    let full = path.on_disk(worktree);
    let directory_is_real = full.parent().is_some_and(|p| tree::is_real_directory(worktree, p));
    directory_is_real && fs::symlink_metadata(&full).is_ok_and(|m| m.is_file() || m.is_symlink())
}

/// The commit at the HEAD of a worktree, read from its administrative entry.
fn head_of(repo: &Repo, admin: &Path) -> Option<Oid> {
    let text = fs::read_to_string(admin.join("HEAD")).ok()?;
    match text.trim().strip_prefix("ref: ") {
        Some(full) => repo.read_ref(&RefName::new(full)).ok().flatten(),
        None => Oid::parse(text.trim()),
    }
}

/// The attempt's commits that are not safe yet: HEAD, its branch, and all that their reflogs saw
/// (amended, reset or detached work), reduced to those that no other one reaches.
fn new_heads(
    repo: &Repo,
    subject: &Subject<'_>,
    admin: Option<&Path>,
    head: Option<Oid>,
) -> Result<Vec<Oid>> {
    let mut seen: BTreeSet<Oid> = head.into_iter().collect();
    seen.extend(repo.read_ref(subject.branch)?);
    let logs = [
        admin.map(|a| a.join("logs/HEAD")),
        Some(repo.common_dir().join("logs").join(subject.branch.as_str())),
    ];
    for log in logs.into_iter().flatten() {
        seen.extend(reflog(&log));
    }
    seen.remove(subject.base);
    let gix = repo.gix();
    seen.retain(|oid| from_oid(oid).is_ok_and(|id| gix.find_commit(id).is_ok()));
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let safe = subject.previous.map_or(subject.base, |p| &p.commit);
    let call = repo.git().call("rev-list").args(["--parents", "--stdin"]);
    let mut list: Vec<u8> = seen.iter().flat_map(|o| format!("{o}\n").into_bytes()).collect();
    list.extend(format!("^{safe}\n^{}\n", subject.base).into_bytes());
    let answer = call.stdin(list).bytes()?;
    let mut commits = BTreeSet::new();
    let mut parents = BTreeSet::new();
    for line in String::from_utf8_lossy(&answer).lines() {
        let mut ids = line.split(' ').filter_map(Oid::parse);
        commits.extend(ids.next());
        parents.extend(ids);
    }
    Ok(commits.difference(&parents).cloned().collect())
}

/// A commit of what the attempt has staged, where a version of a file is in no worktree and no commit; none where the
/// capture before reaches it. `indexes` are the attempt's own and the private one.
fn staged_apart(
    repo: &Repo,
    subject: &Subject<'_>,
    admin: Option<&Path>,
    indexes: Option<(gix::index::File, gix::index::File)>,
    head: Option<&Oid>,
) -> Result<Option<Oid>> {
    let (Some(admin), Some((own, captured))) = (admin, indexes) else { return Ok(None) };
    // Mostly nothing is staged, or all that is there.
    let equals = |other: &gix::index::File| {
        let mut both = own.entries().iter().zip(other.entries());
        own.entries().len() == other.entries().len()
            && both.all(|(one, two)| one.id == two.id && one.path(&own) == two.path(other))
    };
    let base = repo.index_of(subject.base)?;
    // In the middle of a merge there is no tree.
    if equals(&base)
        || equals(&captured)
        || own.entries().iter().any(|e| e.flags.intersects(Flags::STAGE_MASK))
    {
        return Ok(None);
    }
    let apart = own.entries().iter().any(|e| {
        let path = e.path(&own);
        let known = |index: &gix::index::File| {
            index.entry_by_path(path).is_some_and(|known| known.id == e.id)
        };
        let work = e.mode != Mode::COMMIT && !e.flags.contains(Flags::INTENT_TO_ADD);
        let committed = || head.is_some_and(|head| repo.id_at(head, path) == Some(e.id));
        work && !known(&captured) && !known(&base) && !committed() && !subject.seeds.is(path, &e.id)
    });
    if !apart {
        return Ok(None);
    }
    let scratch = ScratchIndex::empty(&repo.git())?;
    keep_index(&admin.join("index"), scratch.file())?;
    let seeds = own.entries().iter().filter(|e| subject.seeds.is(e.path(&own), &e.id));
    let seeds: BTreeSet<TreePath> = seeds.map(|e| TreePath::new(e.path(&own))).collect();
    // An index that is damaged holds nothing that could be kept.
    let tree = drop_from_index(scratch.git(), subject, &seeds).and_then(|()| scratch.write_tree());
    let Ok(tree) = tree else { return Ok(None) };
    let commit = commit::neutral(repo, &tree, subject.base, commit::STAGED)?;
    let known =
        subject.previous.map(|previous| repo.is_ancestor(&commit, &previous.commit)).transpose()?;
    Ok((known != Some(true)).then_some(commit))
}

/// Every id that a reflog file names; nothing if it cannot be read.
fn reflog(file: &Path) -> BTreeSet<Oid> {
    let bytes = fs::read(file).unwrap_or_default();
    bytes
        .lines()
        .flat_map(|line| line.split(|b| *b == b' ').take(2).map(<[u8]>::to_vec).collect::<Vec<_>>())
        .filter_map(|id| Oid::parse(std::str::from_utf8(&id).ok()?))
        .filter(|oid| !oid.is_null())
        .collect()
}

/// Copies an index: that of a freshly checked out worktree, to be the private one.
pub fn keep_index(index: &Path, copy: &Path) -> Result<()> {
    fs::copy(index, copy).map(drop).context(|| format!("could not copy '{}'", index.display()))
}

/// The trees of a chain of captures, newest first, as far as `base`.
pub fn chain(repo: &Repo, tip: &Oid, base: &Oid) -> Result<Vec<(Oid, crate::git::repo::Commit)>> {
    let mut found = Vec::new();
    let mut at = *tip;
    while at != *base {
        let commit = repo.commit(&at)?;
        let first = commit.parents.first().cloned();
        found.push((at, commit));
        match first {
            Some(parent) => at = parent,
            None => break,
        }
    }
    Ok(found)
}
