//! Confines the filters of our own git calls.
//!
//! git starts a filter (`filter.NAME.clean`, gitattributes(5)) in the root of the worktree whose
//! files it reads or writes. In an attempt's files, a filter may run code of the attempt. For
//! example, `python3 -m x` first looks for modules in its current directory. So a filter can write
//! only to a temporary directory, and to the stores of git-lfs and git-annex.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::git::config_key::key_text;
use crate::process;
use crate::process::world_spec::{Confinement, Mount, Restriction, WorldSpec};

/// The settings of a filter that name commands.
const COMMANDS: [&str; 3] = ["clean", "smudge", "process"];

/// The directory in a git directory in which git-lfs keeps contents and temporary files.
pub const STORE_OF_LFS: &str = "lfs";

/// The directory in a git directory in which git-annex keeps contents.
const STORE_OF_ANNEX: &str = "annex";

/// The ways to confine a filter.
#[derive(Clone, Copy, Debug)]
pub enum FilterConfinement {
    /// By Landlock, which takes a third of the time that a world takes.
    Landlock,
    /// In a world.
    World,
}

/// The filters of a repository's configuration, and how they are confined.
#[derive(Debug)]
pub(super) struct ConfinedFilters {
    /// The commands by the keys of their settings.
    commands: BTreeMap<String, String>,
    /// The directories to which all filters can write.
    stores: [PathBuf; 2],
    confinement: FilterConfinement,
}

/// The stores to which the filters of git-lfs and git-annex write. `common` is the common git
/// directory.
pub(super) fn stores(gix: &gix::Repository, common: &Path) -> [PathBuf; 2] {
    let configured = gix.config_snapshot().string("lfs.storage").unwrap_or_default().to_string();
    let lfs = if configured.is_empty() { STORE_OF_LFS } else { &configured };
    [lfs, STORE_OF_ANNEX].map(|store| common.join(store))
}

impl ConfinedFilters {
    /// The filters that the configuration of a repository names. `None` if it names none, or if
    /// `choose` finds no confinement. `choose` is called only if there are filters. `common` is the
    /// common git directory.
    pub(super) fn of(
        gix: &gix::Repository,
        common: &Path,
        choose: impl FnOnce() -> Option<FilterConfinement>,
    ) -> Option<ConfinedFilters> {
        let snapshot = gix.config_snapshot();
        let mut commands = BTreeMap::new();
        for section in snapshot.plumbing().sections_by_name("filter").into_iter().flatten() {
            let Some(name) = section.header().subsection_name() else { continue };
            for setting in COMMANDS {
                if let Some(command) = section.value(setting) {
                    let key = [&b"filter."[..], name.as_ref(), b".", setting.as_bytes()].concat();
                    commands.insert(key_text(&key), command.to_string());
                }
            }
        }
        if commands.is_empty() {
            return None;
        }
        let confinement = choose()?;
        let stores = stores(gix, common);
        if commands.keys().any(|key| key.starts_with("filter.lfs.")) {
            // If this fails, the filter reports an error when it needs the directory.
            let _ = fs::create_dir(&stores[0]);
        }
        Some(ConfinedFilters { commands, stores, confinement })
    }

    /// Confines the filters in `settings`, the settings that a call passes to git. Adds the
    /// confined filters of the configuration. git runs in the worktree `dir`. Filters can write to
    /// `temporary`.
    pub(super) fn confine(
        &self,
        settings: &mut BTreeMap<String, String>,
        dir: &Path,
        temporary: &Path,
    ) -> Result<()> {
        for (key, command) in &self.commands {
            settings.entry(key.clone()).or_insert_with(|| command.clone());
        }
        let confinement = self.confinement(dir, temporary);
        let [verb, description] =
            confinement.words().context(|| "could not confine filters".into())?;
        let program = process::myself().to_string_lossy().into_owned();
        let temporary = format!("TMPDIR={}", shell_words::quote(&temporary.to_string_lossy()));
        // Messages about a confinement that fails go to the standard error (2).
        let start = shell_words::join([&program, &verb, "2", &description]);
        let start = format!("{temporary} {start} sh -c");
        for (key, command) in settings.iter_mut().filter(|(_, command)| !command.is_empty()) {
            match key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) {
                // git replaces `%f` by the quoted path of the file, and `%%` by `%`, but not in
                // `process`.
                Some((_, "clean" | "smudge")) => {
                    let start = start.replace('%', "%%");
                    let inner = shell_words::quote(&with_first_argument(command)).into_owned();
                    *command = format!("{start} {inner} sh %f");
                }
                Some((_, "process")) => {
                    *command = format!("{start} {}", shell_words::quote(command));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn confinement(&self, dir: &Path, temporary: &Path) -> Confinement {
        let stores = self.stores.iter().filter(|store| store.is_dir()).cloned();
        let writable = stores.chain([temporary.to_owned()]);
        match self.confinement {
            FilterConfinement::Landlock => Confinement::Landlock(Restriction {
                writable: writable.collect(),
                temporary: temporary.to_owned(),
                ..Restriction::default()
            }),
            FilterConfinement::World => {
                let writable = writable.map(|at| Mount::Writable { at });
                let mounts = [Mount::Devices].into_iter().chain(writable).collect();
                let dir = dir.to_owned();
                let spec = WorldSpec { dir, mounts, network: true, ..WorldSpec::default() };
                Confinement::Sealed(spec)
            }
        }
    }
}

/// The command of a filter with `"$1"` in place of `%f`. So the inner shell gets the path as an
/// argument, and does not read it as code.
fn with_first_argument(command: &str) -> String {
    let mut rest = command;
    let mut text = String::new();
    while let Some(at) = rest.find('%') {
        let (before, found) = rest.split_at(at);
        let length = found.chars().take(2).map(char::len_utf8).sum();
        text.push_str(before);
        text.push_str(if found.starts_with("%f") { "\"$1\"" } else { &found[..length] });
        rest = &found[length..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_filter_is_an_argument_and_no_code() {
        for (command, expected) in [
            ("git-lfs clean -- %f", "git-lfs clean -- \"$1\""),
            ("date +%%F %f%f", "date +%%F \"$1\"\"$1\""),
            ("x %", "x %"),
            ("x %é", "x %é"),
            ("cat", "cat"),
        ] {
            assert_eq!(with_first_argument(command), expected);
        }
    }
}
