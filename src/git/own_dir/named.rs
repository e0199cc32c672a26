//! The objects that the files of a worktree's administrative entry name. git deletes these files together with
//! the worktree, and they may be the only ones that name an object: an autostash, a ref of a bisection, or a
//! commit that was amended. The index is read elsewhere.
use std::collections::BTreeSet;
use std::path::Path;

use gix::bstr::ByteSlice;

use crate::git::own_dir::files;
use crate::model::oid::Oid;

/// The mark in FETCH_HEAD of a branch that `git fetch` updated without being asked for it.
const ONLY_FETCHED: &str = "\tnot-for-merge\t";

/// Every object id in the files of the administrative entry `admin`, without its index. Some of these objects
/// may not exist. All files count, because each version of git has files of its own.
pub fn named(admin: &Path) -> BTreeSet<Oid> {
    let is_left_out =
        |path: &Path| files::is_of_the_repository(path) || files::is_of_an_index(path);
    let found = files::read(admin, is_left_out, &mut Vec::new());
    found.values().flat_map(|bytes| ids_in(bytes)).collect()
}

/// Every object id in these bytes, except the null id and the ids of branches that were only fetched.
pub fn ids_in(bytes: &[u8]) -> BTreeSet<Oid> {
    let lines = bytes.lines().filter(|line| !line.contains_str(ONLY_FETCHED));
    let words = lines.flat_map(|line| line.split(|byte| !byte.is_ascii_hexdigit()));
    let ids = words.filter_map(|word| Oid::parse(std::str::from_utf8(word).ok()?));
    ids.filter(|id| !id.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_wherever_they_stand_except_those_of_fetched_branches() {
        let id = |digit: &str| Oid::parse(&digit.repeat(40)).expect("an id");
        let [a, b, c] = ["a", "b", "c"].map(id);
        for text in [
            format!("{a}\n"),
            format!("{} {a} A <a@b> 1 +0000\tcommit: x\n", a.null()),
            format!("pick {a} # x\nupdate refs/heads/{a}f\n"),
            format!("{a}\t\tbranch 'x' of .\n{b}\tnot-for-merge\tbranch 'y' of .\n"),
            format!("\u{1}\u{ff}{a}\0{b}{c}{c}"),
        ] {
            assert_eq!(ids_in(text.as_bytes()), [a].into(), "{text:?}");
        }
    }
}
