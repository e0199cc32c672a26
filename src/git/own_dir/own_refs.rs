//! The refs of an own git directory. Some are the repository's refs, which are copied when the
//! directory is made. The others are the refs that the attempt made.
//!
//! A capture saves the attempt's refs in the repository as refs of the attempt's worktree
//! (gitrepository-layout(5), "refs"). So git does not delete the objects of these refs. Also, they
//! do not collide with refs of other attempts.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice};

use crate::error::Result;
use crate::fs::tree::path_bytes;
use crate::git::own_dir::files;
use crate::git::ref_list::LINK;
use crate::git::repo::Repo;
use crate::model::oid::Oid;

/// The directory for an attempt's own refs, relative to its worktree's administrative entry.
const SAVED: &str = "refs/worktree/attempt";

/// The directory for the reflogs of the attempt's own refs, relative to the administrative entry.
const SAVED_LOGS: &str = "logs/refs/worktree/attempt";

/// The prefixes of refs that each worktree has for itself. In the repository, these refs belong to
/// the main worktree.
const OF_MAIN_WORKTREE: [&str; 3] = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// The repository's refs that an own git directory gets when it is made.
pub(super) struct GivenRefs {
    /// All refs except symbolic ones, as the text of a `packed-refs` file.
    pub packed: String,
    /// The symbolic refs, each with the content of its file.
    links: Vec<(String, String)>,
}

/// The refs of the repository. Two kinds are left out:
///
/// - refs of the main worktree;
/// - refs that collide with a ref of the attempt, which is saved in `admin`. Two refs collide if
///   they have the same name, or if one needs a file where the other needs a directory.
pub(super) fn of_repository(repo: &Repo, admin: &Path) -> Result<GivenRefs> {
    let saved = loose(&admin.join(SAVED), &mut Vec::new());
    let saved: Vec<&Path> = saved.keys().map(|name| Path::new(OsStr::from_bytes(name))).collect();
    let mut given = GivenRefs { packed: String::new(), links: Vec::new() };
    for (name, value) in repo.ref_values("refs/")? {
        let name = name.as_str();
        if OF_MAIN_WORKTREE.iter().any(|prefix| name.starts_with(prefix))
            || saved
                .iter()
                .any(|saved| saved.starts_with(name) || Path::new(name).starts_with(saved))
        {
            continue;
        }
        match value.starts_with(LINK) {
            true => given.links.push((name.to_owned(), format!("{value}\n"))),
            false => given.packed.push_str(&format!("{value} {name}\n")),
        }
    }
    Ok(given)
}

/// Writes the refs of an own git directory into `dir`: `given`, and the refs that are saved in
/// `admin` from earlier commands of the attempt.
pub(super) fn write(given: &GivenRefs, admin: &Path, dir: &Path) -> io::Result<()> {
    fs::write(dir.join("packed-refs"), &given.packed)?;
    for (name, content) in &given.links {
        let file = dir.join(name);
        fs::create_dir_all(file.parent().unwrap_or(dir))?;
        fs::write(file, content)?;
    }
    files::copy(&admin.join(SAVED), &dir.join("refs"), |_| false)?;
    files::copy(&admin.join(SAVED_LOGS), &dir.join("logs/refs"), |_| false)
}

/// The refs in the text of a `packed-refs` file.
pub(super) fn parse_packed(text: &[u8]) -> BTreeMap<BString, Oid> {
    let lines = text.lines().filter_map(|line| line.split_once_str(" "));
    lines.filter_map(|(id, name)| Some((name.into(), Oid::parse(id.to_str().ok()?)?))).collect()
}

/// The refs of a git directory, except symbolic ones. git is not called, so the attempt's settings
/// have no effect. Adds to `unread` the paths of files that cannot be read, or are too long.
pub(super) fn read(dir: &Path, unread: &mut Vec<PathBuf>) -> BTreeMap<BString, Oid> {
    let mut refs = BTreeMap::new();
    for packed in files::read(dir, |path| path != Path::new("packed-refs"), unread).values() {
        refs.extend(parse_packed(packed));
    }
    refs.extend(loose(&dir.join("refs"), unread));
    refs.retain(|name, _| gix::refs::FullName::try_from(name.as_bstr()).is_ok());
    refs
}

/// The loose refs in `dir`, a directory `refs` or one in which such refs are saved.
fn loose(dir: &Path, unread: &mut Vec<PathBuf>) -> BTreeMap<BString, Oid> {
    let read = files::read(dir, |path| path.extension().is_some_and(|end| end == "lock"), unread);
    let refs = read.into_iter().filter_map(|(path, bytes)| {
        let value = Oid::parse(std::str::from_utf8(&bytes).ok()?.trim())?;
        Some(([b"refs/", path_bytes(&path)].concat().into(), value))
    });
    refs.collect()
}

/// The old and new values in a reflog, except the null id. The messages may name objects that never
/// existed.
pub(super) fn logged(log: &[u8]) -> BTreeSet<Oid> {
    let text = String::from_utf8_lossy(log);
    let words = text.lines().flat_map(|line| line.split(' ').take(2));
    words.filter_map(Oid::parse).filter(|id| !id.is_null()).collect()
}

/// A reflog without the entries whose new object is lost. If only the old object of an entry is
/// lost, the null id replaces its id.
pub(super) fn without(log: &[u8], lost: &BTreeSet<Oid>) -> Vec<u8> {
    let mut kept = Vec::new();
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let mut is_lost = || {
            let word = std::str::from_utf8(words.next()?).ok()?;
            Oid::parse(word).map(|id| lost.contains(&id))
        };
        let old = is_lost() == Some(true);
        let new = is_lost() == Some(true);
        if new {
            continue;
        }
        let begins = kept.len();
        kept.extend_from_slice(line);
        if old {
            kept[begins..].iter_mut().take_while(|byte| **byte != b' ').for_each(|b| *b = b'0');
        }
    }
    kept
}

/// True if this is the path of the saved refs or of their reflogs in an administrative entry.
pub(super) fn is_saved(path: &Path) -> bool {
    path == Path::new(SAVED) || path == Path::new(SAVED_LOGS)
}

/// True if a file at this path of an administrative entry takes the place of the saved refs or of
/// their reflogs.
pub(super) fn is_in_place_of_saved(path: &Path) -> bool {
    let mut saved = [SAVED, SAVED_LOGS].map(Path::new).into_iter();
    saved.any(|saved| path.starts_with(saved) || saved.starts_with(path))
}

/// The files in which a ref with this full name is saved: one for its value, and one for its
/// reflog.
///
/// A path cannot be a file and a directory. So if a directory above the path is another ref (in
/// `others`), the name is saved with `+` for each slash. An own git directory can have two such
/// refs, because one may be packed.
pub(super) fn saved_files(name: &BStr, others: &BTreeMap<PathBuf, Vec<u8>>) -> [PathBuf; 2] {
    let mut short = name.strip_prefix(b"refs/").unwrap_or(name).to_vec();
    let value = Path::new(SAVED).join(OsStr::from_bytes(&short));
    if value.ancestors().skip(1).any(|above| others.contains_key(above)) {
        short = short.replace(b"/", b"+");
    }
    [SAVED, SAVED_LOGS].map(|dir| Path::new(dir).join(OsStr::from_bytes(&short)))
}
