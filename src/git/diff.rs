//! Compares trees. Makes the same patch as git, byte for byte. Counts the changed lines in a way
//! that no attempt can use to look smaller.
use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use gix::objs::Kind;
use gix::worktree::stack::state::attributes::Source;
use strum::Display;

use crate::error::Result;
use crate::git::cli::Call;
use crate::git::mode::EntryMode;
use crate::git::repo::{Repo, TreeEntry, to_oid};
use crate::git::text::{self, TextChange};
use crate::git::trees::{self, TreeDifference, take_record, unknown_answer};
use crate::model::blast::Blast;
use crate::model::oid::Oid;
use crate::model::path::TreePath;

/// The options of every comparison. With them neither a configuration nor an attempt's attributes
/// change the result (GIT-FACTS, "Capture and diff").
const COMPARE: &str = "diff-tree -r --ignore-submodules=none --no-renames --diff-algorithm=myers \
                       --indent-heuristic --no-ext-diff --no-textconv";

/// If more paths than this differ, git compares them.
const MOST_IN_PROCESS: usize = 1000;

/// The options that detect renames regardless of the configuration, and list nothing else.
const DETECT_RENAMES: [&str; 3] = ["--find-renames=50%", "--rename-empty", "--diff-filter=R"];

/// The limit (`-l`) for renames in a comparison. With more files than this, git pairs only files
/// with equal content.
const MOST_COMPARED: u32 = 1000;

/// The largest binary file whose content is put into a patch, in bytes. This is git's default of
/// `core.bigFileThreshold`. To print the content, git must read the whole file, and git fails if
/// the file has 2 GiB or more.
const LARGEST_IN_PATCH: u64 = 512 << 20;

/// The options for a patch that can be applied anywhere, without `--binary`. `--unified` implies
/// `-p`.
const AS_PATCH: [&str; 5] =
    ["--full-index", "--unified=3", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/"];

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: TreePath,
    pub status: ChangeStatus,
    pub old_mode: EntryMode,
    pub mode: EntryMode,
    /// The blob before the change; the null id if there was none.
    pub old: Oid,
    /// The blob after the change; the null id if there is none.
    pub new: Oid,
    /// The numbers of added and deleted lines; `None` if git treats the file as binary.
    pub lines: Option<(u64, u64)>,
}

/// The kind of a difference, displayed as git's letter. A rename counts as a deletion and an
/// addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
pub enum ChangeStatus {
    /// The path is new.
    #[strum(serialize = "A")]
    Added,
    /// The path is gone.
    #[strum(serialize = "D")]
    Deleted,
    /// The content or the executable bit differs.
    #[strum(serialize = "M")]
    Modified,
    /// The type of the path changed, such as from a file to a link.
    #[strum(serialize = "T")]
    TypeChanged,
}

impl Change {
    /// The [`Change`] for a difference between two trees. `lines` are the numbers of added and
    /// deleted lines.
    fn of(difference: TreeDifference, lines: Option<(u64, u64)>) -> Change {
        let TreeDifference { path, old, new } = difference;
        let is_file = |mode| matches!(mode, EntryMode::File | EntryMode::Executable);
        let status = match (old, new) {
            (None, _) => ChangeStatus::Added,
            (_, None) => ChangeStatus::Deleted,
            (Some((old, _)), Some((new, _))) if old == new || (is_file(old) && is_file(new)) => {
                ChangeStatus::Modified
            }
            _ => ChangeStatus::TypeChanged,
        };
        let none = (EntryMode::Absent, ObjectId::null(gix::hash::Kind::Sha1));
        let (old_mode, old) = old.unwrap_or(none);
        let (mode, new) = new.unwrap_or(none);
        Change { path, status, old_mode, mode, old: to_oid(old), new: to_oid(new), lines }
    }
}

/// The numbers of lines that the changes add and delete; `None` if git treats a changed file as
/// binary.
pub fn lines_of(changes: &[Change]) -> Option<(u64, u64)> {
    changes.iter().try_fold((0, 0), |sum: (u64, u64), change| {
        let (added, deleted) = change.lines?;
        Some((sum.0 + added, sum.1 + deleted))
    })
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    /// The paths that differ, sorted.
    pub changes: Vec<Change>,
    /// The patch in git's format, never decoded or trimmed.
    pub bytes: Vec<u8>,
}

/// The form in which a comparison is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Patch,
    /// A histogram for people (`--stat`).
    Stat,
    /// Counts of lines for programs (`--numstat`).
    Numstat,
    /// A letter and the path (`--name-status`).
    NameStatus,
    /// The path alone (`--name-only`).
    NameOnly,
}

/// Two trees (or commits) to compare.
///
/// Only the `.gitattributes` of the commit `attributes`, the base, are obeyed. So an attempt cannot
/// declare its own files binary to look small.
#[derive(Clone, Copy)]
pub struct TreeComparison<'a> {
    repo: &'a Repo,
    attributes: &'a Oid,
    from: &'a Oid,
    to: &'a Oid,
}

/// The comparison of a tree with its base.
pub fn since<'a>(repo: &'a Repo, base: &'a Oid, to: &'a Oid) -> TreeComparison<'a> {
    between(repo, base, base, to)
}

/// The comparison of two trees with the attributes of a third one.
pub fn between<'a>(
    repo: &'a Repo,
    attributes: &'a Oid,
    from: &'a Oid,
    to: &'a Oid,
) -> TreeComparison<'a> {
    TreeComparison { repo, attributes, from, to }
}

impl TreeComparison<'_> {
    /// The patch, with the paths and the counts.
    pub fn patch(self) -> Result<Patch> {
        match self.in_process(true) {
            Some(patch) => Ok(patch),
            None => self.by_git(&self.as_patch(LARGEST_IN_PATCH)?),
        }
    }

    /// The paths that differ, with counts but without a patch.
    pub fn changes(self) -> Result<Vec<Change>> {
        match self.in_process(false) {
            Some(patch) => Ok(patch.changes),
            None => Ok(self.by_git(&[])?.changes),
        }
    }

    /// The paths that differ, and their blast radius. If the second tree is damaged
    /// ([`trees::damage`]), the inner result is an error with the reason. A tree that can be
    /// compared in process is not damaged.
    pub fn of_sound_tree(self) -> Result<std::result::Result<(Vec<Change>, Blast), String>> {
        let patch = match self.in_process(false) {
            Some(patch) => patch,
            None => match trees::damage(self.repo, self.from, self.to) {
                Some(damage) => return Ok(Err(damage)),
                None => self.by_git(&[])?,
            },
        };
        let blast = self.blast(&patch.changes)?;
        Ok(Ok((patch.changes, blast)))
    }

    /// The paths that differ, and their blast radius.
    pub fn changes_and_blast(self) -> Result<(Vec<Change>, Blast)> {
        let changes = self.changes()?;
        let blast = self.blast(&changes)?;
        Ok((changes, blast))
    }

    /// The blast radius of `changes`, the difference. A renamed file counts as one file. Its lines
    /// are those that differ between its old and its new content.
    pub fn blast(self, changes: &[Change]) -> Result<Blast> {
        let has = |status| changes.iter().any(|change| change.status == status);
        let renames = if has(ChangeStatus::Added) && has(ChangeStatus::Deleted) {
            self.renames()?
        } else {
            Vec::new()
        };
        let renamed: BTreeSet<&TreePath> =
            renames.iter().flat_map(|rename| [&rename.from, &rename.change.path]).collect();
        let others = changes.iter().filter(|change| !renamed.contains(&change.path));
        let all = others.chain(renames.iter().map(|rename| &rename.change));
        Ok(all.fold(Blast::default(), |sum, change| {
            sum.and(change.lines, || [change.old, change.new].map(|blob| self.repo.size(&blob)))
        }))
    }

    /// The files that were renamed.
    pub fn renames(self) -> Result<Vec<Rename>> {
        let call = self.counting().args(DETECT_RENAMES).arg(format!("-l{MOST_COMPARED}"));
        parse_renames(&self.answer(call)?).ok_or_else(unknown_answer)
    }

    /// The output of git for the comparison in this format, for the screen.
    pub fn render(self, format: Format, nul: bool, color: bool) -> Result<Vec<u8>> {
        let format: &[&str] = match format {
            Format::Patch => &self.as_patch(LARGEST_IN_PATCH)?,
            Format::Stat => &["--stat"],
            Format::Numstat => &["--numstat"],
            Format::NameStatus => &["--name-status"],
            Format::NameOnly => &["--name-only"],
        };
        let nul = nul.then_some("-z");
        let color = if color { "--color=always" } else { "--no-color" };
        self.answer(self.call().args(format).args(nul).arg(color))
    }

    fn by_git(self, form: &[&str]) -> Result<Patch> {
        parse(&self.answer(self.counting().args(form))?).ok_or_else(unknown_answer)
    }

    /// A call that compares. [`TreeComparison::answer`] adds the two trees.
    fn call(self) -> Call {
        self.repo.git().call(format!("--attr-source={}", self.attributes)).words(COMPARE)
    }

    /// A call that prints the paths and counts.
    fn counting(self) -> Call {
        self.call().args(["--raw", "--numstat", "-z", "--no-color"])
    }

    fn answer(self, call: Call) -> Result<Vec<u8>> {
        call.args([self.from.as_str(), self.to.as_str()]).bytes()
    }

    /// The options for a patch. If a file has more than `largest` bytes, the patch leaves out the
    /// contents of binary files.
    fn as_patch(self, largest: u64) -> Result<Vec<&'static str>> {
        let differences = trees::changed_paths(self.repo, self.from, self.to)?;
        let has_large = differences.iter().any(|difference| {
            let sides = [difference.old, difference.new].into_iter().flatten();
            sides.map(|(_, id)| self.repo.size(&to_oid(id))).any(|size| size > largest)
        });
        let binary = if has_large { None } else { Some("--binary") };
        Ok(AS_PATCH.into_iter().chain(binary).collect())
    }

    /// Compares without git. Returns `None` if git might answer differently, e.g. for a link, a
    /// submodule, or an attribute about comparisons. Without `with_patch`, the patch is empty.
    fn in_process(self, with_patch: bool) -> Option<Patch> {
        let TreeComparison { repo, attributes, from, to } = self;
        let differences = trees::differences(repo, from, to)?;
        if differences.len() > MOST_IN_PROCESS {
            return None;
        }
        let paths = differences.iter().map(|difference| &difference.path);
        if !attributes_leave_comparison(repo, attributes, paths)? {
            return None;
        }
        let gix = repo.gix();
        let mut patch = Patch::default();
        for difference in differences {
            let mut modes = difference.old.iter().chain(&difference.new).map(|(mode, _)| mode);
            if (with_patch && !text::is_plain_path(&difference.path))
                || !modes.all(|mode| matches!(mode, EntryMode::File | EntryMode::Executable))
            {
                return None;
            }
            let read = |entry: Option<TreeEntry>| {
                let Some((_, id)) = entry else { return Some(Vec::new()) };
                let bytes = match repo.loose_object(&id, Kind::Blob) {
                    Some(bytes) => bytes,
                    None if repo.size(&to_oid(id)) > text::LARGEST as u64 => return None,
                    None => repo.any_object(&gix, &id, Kind::Blob)?,
                };
                (bytes.len() <= text::LARGEST).then_some(bytes)
            };
            let before = read(difference.old)?;
            let after = read(difference.new)?;
            let text = TextChange::new(&before, &after)?;
            let lines = Some(text.lines());
            if with_patch {
                text::write_patch(&mut patch.bytes, &difference, text)?;
            }
            patch.changes.push(Change::of(difference, lines));
        }
        Some(patch)
    }
}

/// True if the attributes of the commit `base` say nothing about how to compare any of these paths.
/// `None` if the attributes cannot be read.
fn attributes_leave_comparison<'a>(
    repo: &Repo,
    base: &Oid,
    paths: impl Iterator<Item = &'a TreePath>,
) -> Option<bool> {
    if repo.common_dir().join("info/attributes").exists() {
        return Some(false);
    }
    let index = repo.index_of(base).ok()?;
    let has_rules = index.entries().iter().any(|e| e.path(&index).ends_with(b".gitattributes"));
    if !has_rules {
        return Some(true);
    }
    let gix = repo.gix();
    let mut stack = gix.attributes_only(&index, Source::IdMapping).ok()?;
    let mut found = stack.selected_attribute_matches(["diff"]);
    for path in paths {
        let place = stack.at_entry(path.as_bstr(), Some(Mode::FILE)).ok()?;
        place.matching_attributes(&mut found);
        if !found.iter_selected().all(|attribute| attribute.assignment.state.is_unspecified()) {
            return Some(false);
        }
    }
    Some(true)
}

/// A renamed file.
pub struct Rename {
    /// The old name.
    pub from: TreePath,
    /// The new name, and the difference between the old and the new file.
    pub change: Change,
}

/// Parses git's `--raw --numstat -z` output for renames. Each raw record and each pair of counts is
/// followed by the old and the new name.
fn parse_renames(answer: &[u8]) -> Option<Vec<Rename>> {
    let mut rest = answer;
    let mut renames = Vec::new();
    while rest.first() == Some(&b':') {
        let mut change = Change::of(TreeDifference::take(&mut rest)?, Some((0, 0)));
        let path = TreePath::new(take_record(&mut rest)?);
        let from = std::mem::replace(&mut change.path, path);
        renames.push(Rename { from, change });
    }
    while !rest.is_empty() {
        let counts: Vec<&[u8]> = take_record(&mut rest)?.split(|b| *b == b'\t').collect();
        let [added, deleted, ..] = counts[..] else { return None };
        let from = take_record(&mut rest)?;
        take_record(&mut rest)?;
        let rename = renames.iter_mut().find(|rename| *rename.from == *from)?;
        // git prints no counts for a binary file, even if its content is unchanged. If it is
        // unchanged, the counts stay 0.
        if rename.change.old != rename.change.new {
            rename.change.lines = number(added).zip(number(deleted));
        }
    }
    Some(renames)
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Parses git's `--raw --numstat -p -z` output: raw records, counts, an empty record, and the
/// patch.
fn parse(answer: &[u8]) -> Option<Patch> {
    let mut rest = answer;
    let mut changes = Vec::new();
    while rest.first() == Some(&b':') {
        changes.push(Change::of(TreeDifference::take(&mut rest)?, Some((0, 0))));
    }
    // The counts are in the order of the raw records, but not every path has counts.
    let mut at = 0;
    while !rest.is_empty() && !rest.starts_with(b"\0") {
        let fields: Vec<&[u8]> = take_record(&mut rest)?.splitn(3, |b| *b == b'\t').collect();
        let [added, deleted, path] = fields[..] else { return None };
        at += changes.get(at..)?.iter().position(|c| *c.path == *path)?;
        changes[at].lines = number(added).zip(number(deleted));
    }
    Some(Patch { changes, bytes: rest.strip_prefix(b"\0").unwrap_or(rest).to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gix::objs::tree::{Entry, EntryKind};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn oid() -> impl Strategy<Value = Oid> {
        "[0-9a-f]{40}".prop_map(|hex| Oid::parse(&hex).expect("full"))
    }

    /// Differences at paths of any bytes except NUL.
    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let path = vec(prop_oneof![1u8.., Just(b'\t'), Just(b'\n'), Just(b':')], 1..9);
        let null = Oid::parse(&"0".repeat(40)).expect("full");
        let modes = prop::sample::select(vec![
            (ChangeStatus::Added, EntryMode::Absent, EntryMode::File),
            (ChangeStatus::Deleted, EntryMode::Link, EntryMode::Absent),
            (ChangeStatus::Modified, EntryMode::Executable, EntryMode::File),
            (ChangeStatus::Modified, EntryMode::Submodule, EntryMode::Submodule),
            (ChangeStatus::TypeChanged, EntryMode::File, EntryMode::Link),
        ]);
        let rest = (modes, oid(), oid(), any::<Option<(u64, u64)>>());
        btree_map(path, rest, 0..5).prop_map(move |all| {
            let change = |(path, ((status, old_mode, mode), old, new, lines))| Change {
                path: TreePath::new(path),
                status,
                old_mode,
                mode,
                old: if old_mode == EntryMode::Absent { null } else { old },
                new: if mode == EntryMode::Absent { null } else { new },
                lines,
            };
            all.into_iter().map(change).collect()
        })
    }

    /// The output that git would print for these changes.
    fn answer(changes: &[Change], patch: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Change { path, status, old_mode, mode, old, new, .. } in changes {
            bytes.extend(format!(":{old_mode} {mode} {old} {new} {status}\0").into_bytes());
            bytes.extend([path, &b"\0"[..]].concat());
        }
        for Change { path, lines, .. } in changes {
            let counts =
                lines.map_or("-\t-\t".into(), |(added, deleted)| format!("{added}\t{deleted}\t"));
            bytes.extend([counts.as_bytes(), path, b"\0"].concat());
        }
        bytes.extend([b"\0", patch].concat());
        bytes
    }

    /// A text of lines that occur often in programs.
    fn random_text(random: &mut fastrand::Rng) -> Vec<u8> {
        const LINES: [&str; 14] = [
            "",
            "}",
            "    }",
            "{",
            "fn one() {",
            "struct Two;",
            "    let a = 1;",
            "    let b = 2;",
            "        return a;",
            "\tb",
            "// comment",
            "_private",
            "$x \u{e9}",
            "a\rb ",
        ];
        let mut text = Vec::new();
        let longest = if random.usize(..20) == 0 { 3000 } else { 60 };
        for _ in 0..random.usize(..longest) {
            let line = match random.usize(..4) {
                0 => format!("line {}", random.usize(..200)),
                _ => LINES[random.usize(..LINES.len())].to_owned(),
            };
            text.extend(format!("{line}\n").into_bytes());
        }
        if random.usize(..8) == 0 {
            text.pop();
        }
        text
    }

    /// A text after a few edits of lines.
    fn edited(text: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> =
            text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        for _ in 0..random.usize(1..6) * (1 + lines.len() / 100) {
            let at = random.usize(..=lines.len());
            let end = (at + random.usize(..4)).min(lines.len());
            let other = random_text(random);
            let new = other.split_inclusive(|b| *b == b'\n').take(random.usize(..7));
            lines.splice(at..end, new.map(<[u8]>::to_vec));
        }
        lines.concat()
    }

    /// `FRITES_TEST_ROUNDS` sets the number of trees.
    #[test]
    fn comparison_in_process_is_that_of_git_byte_for_byte() {
        let rounds = std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok());
        let mut random = fastrand::Rng::new();
        let seed = random.get_seed();
        let directory = tempfile::tempdir().expect("a directory");
        duct::cmd!("git", "init", "-q", directory.path()).run().expect("git is there");
        let repo = Repo::discover(directory.path()).expect("a repository");
        let entry = |kind: EntryKind, oid, name: &str| Entry {
            mode: kind.into(),
            oid,
            filename: name.into(),
        };
        let kinds = [EntryKind::Blob, EntryKind::Blob, EntryKind::BlobExecutable];
        for _ in 0..rounds.unwrap_or(4) {
            let (mut old, mut new) = (repo.new_objects(), repo.new_objects());
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for at in 0..100 {
                let name = format!("f{at}.{}", ["c", "py", "txt"][at % 3]);
                let text = random_text(&mut random);
                let blob = |text: &[u8], objects: &mut crate::git::objects::NewObjects| {
                    objects.add(Kind::Blob, text).expect("written")
                };
                if random.usize(..12) > 0 {
                    let id = blob(&text, &mut old);
                    before.push(entry(kinds[random.usize(..3)], id, &name));
                }
                if random.usize(..12) > 0 {
                    let id = blob(&edited(&text, &mut random), &mut new);
                    after.push(entry(kinds[random.usize(..3)], id, &name));
                }
            }
            let tree = |objects: &mut crate::git::objects::NewObjects, mut entries: Vec<Entry>| {
                entries.sort();
                to_oid(objects.add_tree(&gix::objs::Tree { entries }).expect("written"))
            };
            let from = tree(&mut old, before);
            let to = tree(&mut new, after);
            old.keep().and_then(|()| new.keep()).expect("stored");
            let base = repo.store(|objects| objects.add_commit(&from, [], "base"));
            let base = base.expect("stored");
            let ours = since(&repo, &base, &to).in_process(true).expect("all are plain");
            let theirs = between(&repo, &base, &from, &to).by_git(&AS_PATCH).expect("git compares");
            assert_eq!(ours.changes, theirs.changes, "seed {seed}");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(text(&ours.bytes), text(&theirs.bytes), "seed {seed}");
            assert_eq!(ours.bytes, theirs.bytes);
        }
    }

    #[test]
    fn patch_with_a_very_large_file_does_not_have_its_content() {
        let directory = tempfile::tempdir().expect("a directory");
        duct::cmd!("git", "init", "-q", directory.path()).run().expect("git is there");
        let repo = Repo::discover(directory.path()).expect("a repository");
        let tree = |text: &[u8]| {
            let mut objects = repo.new_objects();
            let oid = objects.add(Kind::Blob, text).expect("written");
            let entry = Entry { mode: EntryKind::Blob.into(), oid, filename: "a".into() };
            let tree = gix::objs::Tree { entries: vec![entry] };
            let tree = to_oid(objects.add_tree(&tree).expect("written"));
            objects.keep().expect("stored");
            repo.store(|objects| objects.add_commit(&tree, [], "a")).expect("stored")
        };
        let (from, to) = (tree(b"one\n"), tree(b"two\0\n"));
        for (largest, expected) in
            [(5, "GIT binary patch\n"), (4, "Binary files a/a and b/a differ\n")]
        {
            let comparison = since(&repo, &from, &to);
            let form = comparison.as_patch(largest).expect("sizes are known");
            let patch = comparison.by_git(&form).expect("git compares");
            let text = String::from_utf8_lossy(&patch.bytes);
            assert!(text.contains(expected), "{text}");
            assert_eq!(patch.changes[0].lines, None);
        }
    }

    proptest! {
        #[test]
        fn answer_of_git_reads_back_for_any_paths(changes in changes(), patch in vec(any::<u8>(), 0..20)) {
            let read = parse(&answer(&changes, &patch)).expect("understood");
            prop_assert_eq!(read.changes, changes);
            prop_assert_eq!(read.bytes, patch);
        }

        #[test]
        fn damaged_answer_is_refused_or_has_paths_without_nul(
            changes in changes(), at in any::<prop::sample::Index>(), cut in 0usize..9, new in vec(any::<u8>(), 0..4),
        ) {
            let mut bytes = answer(&changes, b"");
            let at = at.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, new);
            if let Some(read) = parse(&bytes) {
                prop_assert!(read.changes.iter().all(|c| !c.path.contains(&0)));
            }
        }
    }
}
