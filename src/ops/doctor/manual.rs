//! The finding that says whether `man` finds the manual of git-frites, which `git frites --help` needs.
use std::env;
use std::path::PathBuf;

use crate::model::checkup::Finding;

/// The directories in which `man` looks for pages even if no variable names them.
const USUAL: [&str; 2] = ["/usr/local/share/man", "/usr/share/man"];

/// The paths of the program's main page below a directory of manual pages, with all compressions that
/// packages use.
const PAGES: [&str; 5] = [
    "man1/git-frites.1",
    "man1/git-frites.1.gz",
    "man1/git-frites.1.bz2",
    "man1/git-frites.1.xz",
    "man1/git-frites.1.zst",
];

/// The finding about the manual.
pub(super) fn finding() -> Finding {
    match installed() {
        Some(file) => Finding::good("manual", format!("'{}'", file.display())),
        None => Finding::missing("manual", "none in the usual places, so `git frites --help` finds none")
            .advise("`git frites man` shows it all the same; `make install` in a clone of git-frites puts it there"),
    }
}

fn installed() -> Option<PathBuf> {
    let listed = env::var_os("MANPATH").unwrap_or_default();
    let on_path = env::var_os("PATH").unwrap_or_default();
    // For each directory `PREFIX/bin` on PATH, `man` also looks in `PREFIX/share/man` and `PREFIX/man`.
    let beside = env::split_paths(&on_path).collect::<Vec<_>>();
    let beside = beside.iter().filter_map(|bin| bin.parent());
    let beside = beside.flat_map(|prefix| [prefix.join("share/man"), prefix.join("man")]);
    let listed = env::split_paths(&listed).filter(|dir| !dir.as_os_str().is_empty());
    let all = listed.chain(beside).chain(USUAL.map(PathBuf::from));
    let mut files = all.flat_map(|dir| PAGES.map(|page| dir.join(page)));
    files.find(|file| file.is_file())
}
