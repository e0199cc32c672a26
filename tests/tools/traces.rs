//! What oracle commands left, where they could write.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Answer, World};

/// The lines that oracle commands wrote to a file in `shared`, sorted.
pub fn shared_lines(world: &World, name: &str) -> Vec<String> {
    let text = fs::read_to_string(world.home().join("shared").join(name)).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The files below a directory, with their contents. What `leaves_out` is true for is left out,
/// with all that is below it.
pub fn files_below(dir: &Path, leaves_out: impl Fn(&Path) -> bool) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        for path in paths.filter(|path| !leaves_out(path)) {
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// Everything below the repository and the home directory but git-frites' own state, with contents.
pub fn user_files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let own = [world.home().join("cache"), world.repo.join(".frites"), world.home().join("shared")];
    // Verdicts are refs, and captures are objects.
    let state =
        ["refs/frites", "objects", "logs", "worktrees", "frites-changing-refs", "frites-packed"];
    files_below(&world.home(), |path| {
        own.iter().any(|own| own == path)
            || state.iter().any(|name| path.ends_with(Path::new(".git").join(name)))
    })
}

/// Fails with the names of files that are not as before.
#[track_caller]
pub fn assert_untouched(world: &World, before: &BTreeMap<PathBuf, Vec<u8>>) {
    let now = user_files(world);
    let names = now.keys().chain(before.keys());
    let changed: BTreeSet<&PathBuf> =
        names.filter(|path| now.get(*path) != before.get(*path)).collect();
    assert!(changed.is_empty(), "{changed:?}");
}

/// `git frites …` as a user without privileges, who owns the repository and the home directory
/// meanwhile.
#[must_use = "check the exit code with `expect` or `refuses`, or read `code`"]
pub fn frites_as_ordinary_user<'a>(
    world: &World,
    args: impl IntoIterator<Item = &'a str>,
) -> Answer {
    let script = r#"test $(id -u) = 0 || exec git frites "$@"
        chown -R 1000:1000 ~
        setpriv --reuid 1000 --regid 1000 --clear-groups git frites "$@"
        code=$?
        chown -R 0:0 ~
        exit $code"#;
    world.run(&world.repo, "sh", ["-uc", script, "sh"].into_iter().chain(args))
}
