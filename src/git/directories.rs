//! The directories of an index, each with the files and directories directly in it.
use gix::bstr::ByteSlice;
use gix::index::State;

/// A directory in which an index has a file, directly or in a subdirectory.
#[derive(Default)]
pub(super) struct Directory<'a> {
    /// The path; empty for the root.
    pub path: &'a [u8],
    /// The names of the files directly in this directory, sorted. Each has its position in the
    /// index.
    pub files: Vec<(&'a [u8], usize)>,
    /// The names of the directories directly in this directory, sorted. Each has its position in
    /// the list that [`directories`] returns.
    pub directories: Vec<(&'a [u8], usize)>,
}

impl Directory<'_> {
    /// The position of the file with this name in the index.
    pub fn file(&self, name: &[u8]) -> Option<usize> {
        position(&self.files, name)
    }

    /// The position of the subdirectory with this name in the list that [`directories`] returns.
    pub fn directory(&self, name: &[u8]) -> Option<usize> {
        position(&self.directories, name)
    }
}

fn position(sorted: &[(&[u8], usize)], name: &[u8]) -> Option<usize> {
    let found = sorted.binary_search_by(|(known, _)| (*known).cmp(name));
    found.ok().map(|at| sorted[at].1)
}

/// The directories of an index. The root is the first, and each directory comes after its parent.
/// `None` if the index is not sorted.
pub(super) fn directories(index: &State) -> Option<Vec<Directory<'_>>> {
    let mut all = vec![Directory::default()];
    // The directories that contain the current entry, outermost first.
    let mut open = vec![0];
    let mut last: &[u8] = b"";
    for (place, entry) in index.entries().iter().enumerate() {
        let path: &[u8] = entry.path(index);
        if path <= last {
            return None;
        }
        last = path;
        let (directory, name) = path.rsplit_once_str("/").unwrap_or((b"", path));
        while open.last().is_some_and(|at| !is_in(directory, all[*at].path)) {
            open.pop();
        }
        let mut at = *open.last()?;
        while all[at].path.len() < directory.len() {
            let begin = if at == 0 { 0 } else { all[at].path.len() + 1 };
            let end = directory[begin..].find_byte(b'/').map_or(directory.len(), |n| begin + n);
            let new = all.len();
            all[at].directories.push((&directory[begin..end], new));
            all.push(Directory { path: &directory[..end], ..Directory::default() });
            open.push(new);
            at = new;
        }
        all[at].files.push((name, place));
    }
    // The index sorts a directory as if its name ended in a slash. Without slashes, the order
    // differs.
    all.iter_mut().for_each(|directory| directory.directories.sort_unstable());
    Some(all)
}

/// True if a directory is `other` or lies below `other`.
fn is_in(directory: &[u8], other: &[u8]) -> bool {
    other.is_empty()
        || directory.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
