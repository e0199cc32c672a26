//! Snapshots of git's configuration. A snapshot is a directory that our git calls use in place of
//! the common git directory. It has the configuration, attributes and excludes of one moment.
//!
//! While commands run, one attempt can plant a program in a setting. git could run this program in
//! the capture or the checkout of another attempt. A check of the settings before each call would
//! not prevent that, because the settings can change right after the check.
//!
//! So the directory has copies of the files that decide which programs run, and links to everything
//! else. Our git calls then read no other configuration, not even the user's own files.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::ByteSlice;
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::error::{IoContext, Result};
use crate::fs::{regular, scratch};
use crate::git::overrides::Overrides;
use crate::git::repo::Repo;

/// The name of the snapshot's directory.
const NAME: &str = "git";

/// The entries that are linked even if they do not exist yet. These entries have data and no
/// settings.
const LINKED: [&str; 6] = ["objects", "refs", "packed-refs", "logs", "shallow", "worktrees"];
/// The files that are copied.
const COPIED: [&str; 4] = ["HEAD", "info/exclude", "info/attributes", "info/sparse-checkout"];
/// The entries that are not linked: they are copied, made anew, or left out. Everything else is
/// linked. Filters (e.g. LFS) store data in the git directory, and the data must not be lost with
/// the snapshot.
const NOT_LINKED: [&str; 7] =
    ["HEAD", "config", "config.worktree", "hooks", "index", "info", "commondir"];
/// The linked directory of reflogs. git makes it when needed, but cannot make a directory through a
/// link. So we make it.
const LOGS: &str = "logs";
/// The directory in which Git LFS stores filtered content. LFS makes it when it stores the first
/// file.
const LFS: &str = "lfs";

/// Until this is dropped, our calls on the common git directory use the configuration of the
/// snapshot.
#[derive(Debug)]
pub struct ConfigSnapshot {
    overrides: Arc<Overrides>,
    directory: PathBuf,
}

/// The snapshot that our calls use while an include may be planted, with its directory.
#[derive(Debug, Default)]
pub struct IncludeGuard(Mutex<Option<(ConfigSnapshot, TempDir)>>);

impl IncludeGuard {
    /// From now on, our calls use a snapshot if an include may be planted, and otherwise the
    /// repository's configuration. Takes no snapshot if our calls already use one, as in a watch.
    pub(super) fn set(&self, repo: &Repo, is_planted: bool) -> Result<()> {
        let mut guard = self.0.lock();
        if !is_planted {
            *guard = None;
        } else if !repo.overrides().is_redirected() {
            let directory = scratch::directory()?;
            *guard = Some((take(repo, directory.path())?, directory));
        }
        Ok(())
    }
}

/// Takes a snapshot of the configuration, in a new directory in `parent`. `parent` must not be
/// removed before the snapshot is dropped.
pub fn take(repo: &Repo, parent: &Path) -> Result<ConfigSnapshot> {
    let common = repo.common_dir();
    let dir = parent.join(NAME);
    fs::create_dir(&dir).could_not("write in", &dir)?;
    let list =
        repo.git().call("config").args(["--list", "-z", "--show-scope", "--includes"]).bytes()?;
    fs::write(dir.join("config"), as_file(&list)).could_not("write in", &dir)?;
    fs::create_dir(dir.join("info")).could_not("write in", &dir)?;
    for name in COPIED {
        if let Ok(bytes) = regular::read(&common.join(name)) {
            fs::write(dir.join(name), bytes).could_not("write in", &dir)?;
        }
    }
    let has_lfs = list.split(|b| *b == 0).any(|part| part.starts_with(b"filter.lfs."));
    for name in [LOGS].into_iter().chain(has_lfs.then_some(LFS)) {
        // If this fails, git or the filter reports an error when it needs the directory.
        let _ = fs::create_dir(common.join(name));
    }
    let listing = fs::read_dir(common).could_not("list", common)?;
    let mut linked: BTreeSet<OsString> =
        listing.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    linked.extend(LINKED.map(OsString::from));
    linked.retain(|name| {
        !NOT_LINKED.iter().any(|other| name == other) && !name.as_bytes().ends_with(b".lock")
    });
    for name in linked {
        symlink(common.join(&name), dir.join(&name)).could_not("write in", &dir)?;
    }
    repo.overrides().redirect(common, &dir);
    Ok(ConfigSnapshot { overrides: repo.overrides().clone(), directory: dir })
}

impl Drop for ConfigSnapshot {
    fn drop(&mut self) {
        self.overrides.end_redirect(&self.directory);
    }
}

/// Converts the output of `git config --list -z --show-scope` to one configuration file without
/// includes.
fn as_file(list: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut fields = list.split(|b| *b == 0);
    while let (Some(scope), Some(record)) = (fields.next(), fields.next()) {
        let (key, value) = match record.split_once_str(b"\n") {
            Some((key, value)) => (key, Some(value)),
            None => (record, None),
        };
        let Some((section, rest)) = key.split_once_str(b".") else { continue };
        // Settings with the scope `command` were passed by the call itself, e.g. by `-c`. Includes
        // are left out, because the included settings are in the list.
        if scope == b"command"
            || matches!(section, b"include" | b"includeif")
            || key == b"core.worktree"
        {
            continue;
        }
        file.extend([b"[", section].concat());
        let name = match rest.rsplit_once_str(b".") {
            Some((subsection, name)) => {
                file.extend(b" \"");
                quote(subsection, &mut file);
                file.extend(b"\"");
                name
            }
            None => rest,
        };
        file.extend([b"]\n", name].concat());
        if let Some(value) = value {
            file.extend(b" = \"");
            quote(value, &mut file);
            file.extend(b"\"");
        }
        file.push(b'\n');
    }
    file
}

fn quote(bytes: &[u8], file: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\n' => file.extend(b"\\n"),
            b'\\' | b'"' => file.extend([b'\\', *byte]),
            other => file.push(*other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::model::oid::Oid;

    #[test]
    fn git_makes_reflogs_behind_the_links_of_a_stand_in() {
        let directory = tempfile::tempdir().expect("a directory");
        let repo = Repo::make_bare(&directory.path().join("repo.git")).expect("a repository");
        let bytes = repo.git().call("commit-tree").args(["-m", "x", EMPTY_TREE]).bytes();
        let commit = String::from_utf8(bytes.expect("a commit")).expect("text");
        let commit = Oid::parse(commit.trim()).expect("an object");
        let log_all = ["core.logAllRefUpdates", "always"];
        repo.git().call("config").args(log_all).run().expect("set");
        let _snapshot = take(&repo, directory.path()).expect("taken");
        let update = ["refs/heads/x", commit.as_str()];
        repo.git().call("update-ref").args(update).run().expect("a ref with a log");
    }

    const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    /// A setting as `git config --list -z` writes it. git allows no newline in a subsection, and no
    /// NUL anywhere.
    fn setting() -> impl Strategy<Value = Vec<u8>> {
        let byte = || prop_oneof![1u8.., prop::sample::select(b" \"\\\n\r\t#;.=[]".to_vec())];
        let below = prop::option::of(vec(byte().prop_filter("a newline", |b| *b != b'\n'), 0..6));
        ("[a-z]{1,4}", below, "[a-z][a-z0-9-]{0,4}", prop::option::of(vec(byte(), 0..9))).prop_map(
            |(section, below, name, value)| {
                let below = below.map_or(Vec::new(), |below| [b".", &below[..]].concat());
                let value = value.map_or(Vec::new(), |value| [b"\n", &value[..]].concat());
                [section.as_bytes(), &below, b".", name.as_bytes(), &value].concat()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn git_reads_every_setting_back_from_the_copy(settings in vec(setting(), 1..8)) {
            let list: Vec<u8> = settings.iter().flat_map(|s| [b"local\0", &s[..], b"\0"].concat()).collect();
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join("config");
            fs::write(&file, as_file(&list)).expect("written");
            let read = duct::cmd!("git", "config", "--file", &file, "--list", "-z").stdout_capture().run().expect("read");
            let expected: Vec<u8> = settings.iter().flat_map(|s| [&s[..], b"\0"].concat()).collect();
            prop_assert_eq!(read.stdout, expected);
        }
    }
}
