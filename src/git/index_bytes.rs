//! Index files of version 2, read and written in place: gix takes several times longer, because it
//! makes a value of its own for each entry and writes each number by itself.
use std::collections::BTreeMap;

use gix::ObjectId;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};

/// The bytes of an index before the first entry: a signature, the version, the number of entries.
pub(super) const HEADER: usize = 12;

/// The beginning of a header.
const VERSION_2: &[u8] = b"DIRC\0\0\0\x02";

/// The bytes of an entry before its path, where an object id has 20: stat data, id, flags.
const BEFORE_PATH: usize = 62;

/// The bytes of a checksum.
const CHECKSUM: usize = 20;

/// The path length in an entry that stands for this length and every longer one.
const LONG_PATH: usize = 0xfff;

/// The length of an entry: it ends with one NUL to eight, so that it is a multiple of eight.
pub(super) fn entry_length(path: usize) -> usize {
    (BEFORE_PATH + path + 8) & !7
}

/// Puts stat data into an entry. The mode stands between the inode and the user.
pub(super) fn put_stat(stat: &Stat, entry: &mut [u8]) {
    let put = |numbers: &[u32], bytes: &mut [u8]| {
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    };
    let (ctime, mtime) = (&stat.ctime, &stat.mtime);
    let before = [ctime.secs, ctime.nsecs, mtime.secs, mtime.nsecs, stat.dev, stat.ino];
    put(&before, &mut entry[..24]);
    put(&[stat.uid, stat.gid, stat.size], &mut entry[28..40]);
}

/// An index file with these entries and its extension of cached trees, and with no checksum, as
/// with `index.skipHash`. `None` if an entry has a bit or a path that needs another form.
pub(super) fn encode(index: &State) -> Option<Vec<u8>> {
    let entries = index.entries();
    let lengths = entries.iter().map(|entry| entry_length(entry.path(index).len()));
    let mut bytes = Vec::with_capacity(HEADER + lengths.sum::<usize>() + (64 << 10));
    bytes.extend_from_slice(VERSION_2);
    bytes.extend_from_slice(&u32::try_from(entries.len()).ok()?.to_be_bytes());
    for entry in entries {
        let path = entry.path(index);
        let length = u16::try_from(path.len()).ok().filter(|n| usize::from(*n) < LONG_PATH)?;
        if !entry.flags.difference(Flags::PATH_LEN).is_empty() {
            return None;
        }
        let mut beginning = [0; BEFORE_PATH];
        put_stat(&entry.stat, &mut beginning);
        beginning[24..28].copy_from_slice(&entry.mode.bits().to_be_bytes());
        beginning[40..60].copy_from_slice(entry.id.as_slice());
        beginning[60..].copy_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&beginning);
        bytes.extend_from_slice(path);
        let padding = entry_length(path.len()) - BEFORE_PATH - path.len();
        bytes.extend_from_slice(&[0; 8][..padding]);
    }
    if let Some(tree) = index.tree() {
        tree.write_to(&mut bytes).ok()?;
    }
    bytes.extend_from_slice(&[0; CHECKSUM]);
    Some(bytes)
}

/// The mode and the object of a new entry.
pub(super) type NewEntry = (Mode, ObjectId);

/// An index file with the entries of `file`, but for these changes: each path has a new entry,
/// without stat data, or no entry. It has no extensions. `None` if `file` has another form than that of
/// [`encode`].
pub(super) fn change(file: &[u8], changes: BTreeMap<&[u8], Option<NewEntry>>) -> Option<Vec<u8>> {
    let count = file.strip_prefix(VERSION_2)?.get(..4)?;
    let count = u32::from_be_bytes(count.try_into().ok()?);
    let mut bytes = Vec::with_capacity(file.len() + changes.len() * 256);
    bytes.extend_from_slice(&file[..HEADER]);
    let mut written = 0;
    let mut changes = changes.into_iter().peekable();
    // What lies between two changes is copied at once.
    let (mut at, mut copied) = (HEADER, HEADER);
    for _ in 0..count {
        let path = path_of_entry(file.get(at..)?)?;
        let end = at + entry_length(path.len());
        while let Some((changed, new)) = changes.next_if(|(changed, _)| *changed <= path) {
            bytes.extend_from_slice(file.get(copied..at)?);
            copied = at;
            written += put_entry(changed, new, &mut bytes)?;
            if changed == path {
                copied = end;
                written -= 1;
            }
        }
        at = end;
        written += 1;
    }
    bytes.extend_from_slice(file.get(copied..at)?);
    for (path, new) in changes {
        written += put_entry(path, new, &mut bytes)?;
    }
    bytes[HEADER - 4..HEADER].copy_from_slice(&u32::try_from(written).ok()?.to_be_bytes());
    if !has_only_optional_extensions(&file[at..]) {
        return None;
    }
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&bytes);
    bytes.extend_from_slice(hasher.try_finalize().ok()?.as_slice());
    Some(bytes)
}

/// The path of the entry that begins here. `None` if it has a bit or a path that needs another
/// form.
fn path_of_entry(bytes: &[u8]) -> Option<&[u8]> {
    let flags = u16::from_be_bytes(bytes.get(BEFORE_PATH - 2..BEFORE_PATH)?.try_into().ok()?);
    let length = Some(usize::from(flags)).filter(|length| *length < LONG_PATH)?;
    let path = bytes.get(BEFORE_PATH..BEFORE_PATH + length)?;
    (bytes.get(BEFORE_PATH + length) == Some(&0)).then_some(path)
}

/// Writes an entry without stat data, if there is one. Gives the number of entries.
fn put_entry(path: &[u8], new: Option<NewEntry>, bytes: &mut Vec<u8>) -> Option<i64> {
    let Some((mode, id)) = new else { return Some(0) };
    let length = u16::try_from(path.len()).ok().filter(|n| usize::from(*n) < LONG_PATH)?;
    let end = bytes.len() + entry_length(path.len());
    bytes.extend_from_slice(&[0; 24]);
    bytes.extend_from_slice(&mode.bits().to_be_bytes());
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(<&[u8; 20]>::try_from(id.as_slice()).ok()?);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(path);
    bytes.resize(end, 0);
    Some(1)
}

/// True if an index file certainly has the entries of `index` and no other: the same paths, modes and
/// objects, without a bit but that of unchanged files. Stat data may differ.
pub(super) fn has_entries_of(file: &[u8], index: &State) -> bool {
    entries_end(file, index).is_some_and(|end| has_only_optional_extensions(&file[end..]))
}

/// The end of the entries of an index file, if they are those of `index`.
fn entries_end(file: &[u8], index: &State) -> Option<usize> {
    let count = file.strip_prefix(VERSION_2)?.get(..4)?;
    if u32::from_be_bytes(count.try_into().ok()?) as usize != index.entries().len() {
        return None;
    }
    let mut at = HEADER;
    for entry in index.entries() {
        let path = entry.path(index);
        let (beginning, rest) = file.get(at..)?.split_at_checked(BEFORE_PATH)?;
        let flags = u16::from_be_bytes([beginning[60], beginning[61]]);
        let is_same = usize::from(flags & !ASSUME_VALID) == path.len()
            && path.len() < LONG_PATH
            && beginning[24..28] == entry.mode.bits().to_be_bytes()
            && beginning[40..60] == *entry.id.as_slice()
            && rest.starts_with(path)
            && rest.get(path.len()) == Some(&0);
        if !is_same {
            return None;
        }
        at += entry_length(path.len());
    }
    (at <= file.len()).then_some(at)
}

/// The bit of files that git takes for unchanged: it says nothing of what is staged.
const ASSUME_VALID: u16 = 1 << 15;

/// True if no extension changes what the entries mean, as that of a split index does. Those that a
/// reader may ignore have a capital first.
fn has_only_optional_extensions(mut bytes: &[u8]) -> bool {
    while bytes.len() > CHECKSUM {
        let Some((head, rest)) = bytes.split_at_checked(8) else { return false };
        let size = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        match rest.get(size..) {
            Some(next) if head[0].is_ascii_uppercase() => bytes = next,
            _ => return false,
        }
    }
    bytes.len() == CHECKSUM
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::git::index::read_index;
    use crate::git::index::tests::git;

    /// A repository with some files in its index.
    fn place() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("sub")).expect("a directory");
        for name in ["a", "a-b", "1234567", "sub/12345678", "sub/x"] {
            std::fs::write(directory.path().join(name), name).expect("a file");
        }
        git(directory.path(), "init -q");
        git(directory.path(), "add -A");
        directory
    }

    fn read(place: &Path) -> (Vec<u8>, gix::index::File) {
        let file = place.join(".git/index");
        (std::fs::read(&file).expect("readable"), read_index(&file).expect("an index"))
    }

    #[test]
    fn encoded_index_is_the_one_that_git_wrote() {
        let place = place();
        git(place.path(), "write-tree");
        let (bytes, index) = read(place.path());
        let ours = encode(&index).expect("usual");
        assert!(index.tree().is_some());
        let end = bytes.len() - CHECKSUM;
        assert_eq!((&ours[..end], &ours[end..]), (&bytes[..end], &[0; CHECKSUM][..]));
        std::fs::write(place.path().join(".git/index"), ours).expect("written");
        git(place.path(), "diff-files --exit-code");
        git(place.path(), "fsck --strict");
        for hidden in ["--assume-unchanged a", "--skip-worktree a"] {
            git(place.path(), &format!("update-index {hidden}"));
            assert!(encode(&read(place.path()).1).is_none(), "{hidden}");
        }
    }

    #[test]
    fn changed_index_lists_what_git_would_list() {
        let place = place();
        git(place.path(), "update-index --index-version 2");
        let index = place.path().join(".git/index");
        let list = || {
            let call = duct::cmd!("git", "ls-files", "-s", "-z").dir(place.path());
            call.read().expect("git reads it")
        };
        let empty = duct::cmd!("git", "hash-object", "-w", "/dev/null").dir(place.path()).read();
        let id = ObjectId::from_hex(empty.expect("written").as_bytes()).expect("an id");
        let paths =
            ["0", "1234567", "a", "a-b", "a-c", "sub", "sub/12345678", "sub/x", "sub/y", "z"];
        let random = &mut fastrand::Rng::with_seed(3);
        let original = std::fs::read(&index).expect("readable");
        for round in 0..60 {
            std::fs::write(&index, &original).expect("written");
            let mut changes = BTreeMap::new();
            for path in paths {
                if random.u8(..3) == 0 {
                    let mode =
                        [Mode::FILE, Mode::FILE_EXECUTABLE, Mode::SYMLINK][random.usize(..3)];
                    changes.insert(path.as_bytes(), random.bool().then_some((mode, id)));
                }
            }
            // A file and a directory cannot have the same name.
            changes.insert(b"sub", None);
            let changed = change(&original, changes.clone()).expect("usual");
            for (path, new) in changes {
                let path = std::str::from_utf8(path).expect("text");
                match new {
                    Some((mode, _)) => {
                        let entry = format!("{:o},{id},{path}", mode.bits());
                        git(place.path(), &format!("update-index --add --cacheinfo {entry}"));
                    }
                    None => git(place.path(), &format!("update-index --force-remove {path}")),
                }
            }
            let wanted = list();
            std::fs::write(&index, changed).expect("written");
            assert_eq!(list(), wanted, "round {round}");
            git(place.path(), "fsck --strict");
        }
        git(place.path(), "update-index --index-version 4");
        assert!(change(&std::fs::read(&index).expect("readable"), BTreeMap::new()).is_none());
    }

    #[test]
    fn only_the_same_entries_count_as_those_of_another_index() {
        let place = place();
        let (bytes, index) = read(place.path());
        assert!(has_entries_of(&bytes, &index));
        for same in ["write-tree", "update-index --assume-unchanged a"] {
            git(place.path(), same);
            assert!(has_entries_of(&read(place.path()).0, &index), "{same}");
        }
        for length in 0..bytes.len() {
            assert!(!has_entries_of(&bytes[..length], &index), "{length}");
        }
        for other in [
            "update-index --chmod=+x a",
            "update-index --chmod=-x a",
            "rm -q --cached sub/x",
            "add -N sub/x",
            "add sub/x",
            "update-index --skip-worktree a",
            "update-index --no-skip-worktree a",
            "update-index --index-version 4",
            "update-index --index-version 2",
            "update-index --split-index",
            "update-index --no-split-index",
        ] {
            git(place.path(), other);
            let undoes = ["-x", "add sub", "no-", "version 2"].iter().any(|s| other.contains(s));
            assert_eq!(has_entries_of(&read(place.path()).0, &index), undoes, "{other}");
        }
        std::fs::write(place.path().join("a-b"), "b").expect("written");
        git(place.path(), "add a-b");
        assert!(!has_entries_of(&read(place.path()).0, &index), "another blob");
    }
}
