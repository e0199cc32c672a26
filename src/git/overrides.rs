//! The settings, and the git directory, that our own git calls use in place of the repository's.
//! Overrides are set while commands run, and after a command has changed the repository's
//! configuration.
//!
//! Each repository has one [`Overrides`]. Every [`crate::git::cli::Git`] for the repository shares
//! it, so a change affects the next call. The module `integrity` makes the changes.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::RwLock;

use crate::error::Result;
use crate::fs::regular;
use crate::git::config_key::key_bytes;
use crate::git::filters::ConfinedFilters;

/// The settings, and the git directory, that calls in one repository use instead of the
/// repository's own.
#[derive(Debug, Default)]
pub struct Overrides {
    settings: RwLock<SettingOverrides>,
    stand_in: RwLock<Option<StandIn>>,
    filters: OnceLock<ConfinedFilters>,
}

/// Settings that replace those of the configuration, and whether git may fetch. Calls in the user's
/// name ignore both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingOverrides {
    /// The keys of the settings, with the values that calls use.
    values: BTreeMap<String, String>,
    /// True if git must not fetch missing objects.
    offline: bool,
}

/// The git directory `directory`, which calls use instead of the common git directory `common`.
#[derive(Debug)]
struct StandIn {
    common: PathBuf,
    directory: PathBuf,
}

impl Overrides {
    /// Replaces all overridden settings by these.
    pub fn set_settings(&self, settings: SettingOverrides) {
        *self.settings.write() = settings;
    }

    /// The value that overrides a setting; `None` if calls use the value in the configuration.
    pub fn setting(&self, key: &str) -> Option<String> {
        self.settings.read().values.get(key).cloned()
    }

    /// Makes calls on the common git directory `common` use `directory` from now on.
    pub fn redirect(&self, common: &Path, directory: &Path) {
        let stand_in = StandIn { common: common.to_owned(), directory: directory.to_owned() };
        *self.stand_in.write() = Some(stand_in);
    }

    /// True if calls are redirected to a directory whose `info/exclude` or `info/attributes`
    /// differs from that of the common git directory.
    pub fn has_other_rules(&self) -> bool {
        let stand_in = self.stand_in.read();
        stand_in.as_ref().is_some_and(|StandIn { common, directory }| {
            ["info/exclude", "info/attributes"].iter().any(|name| {
                regular::read(&common.join(name)).ok() != regular::read(&directory.join(name)).ok()
            })
        })
    }

    /// Makes calls use the common git directory itself again. Does nothing if calls no longer use
    /// `directory`.
    pub fn end_redirect(&self, directory: &Path) {
        self.stand_in.write().take_if(|stand_in| stand_in.directory == directory);
    }

    /// The directory with the settings that apply to calls on the common git directory `common`.
    pub(super) fn settings_of(&self, common: &Path) -> PathBuf {
        let stand_in = self.stand_in.read();
        stand_in.as_ref().map_or(common.to_owned(), |stand_in| stand_in.directory.clone())
    }

    /// True while calls are redirected to another directory.
    pub fn is_redirected(&self) -> bool {
        self.stand_in.read().is_some()
    }

    /// From now on, our own calls confine filters in worktrees. Only the first call has an effect.
    pub(super) fn confine_filters(&self, filters: ConfinedFilters) {
        self.filters.get_or_init(|| filters);
    }

    /// True if our own calls confine filters.
    pub(super) fn confines_filters(&self) -> bool {
        self.filters.get().is_some()
    }

    /// The environment variables that pass the settings, and `more`, to git. `-c` is not used,
    /// because it cannot name a key with `=` in it. If filters are confined, `places` are the
    /// worktree and a temporary directory for them.
    pub(super) fn settings_environment(
        &self,
        more: &SettingOverrides,
        places: Option<[&Path; 2]>,
    ) -> Result<Vec<(OsString, OsString)>> {
        let mut all = self.settings.read().clone();
        all.values.extend(more.values.clone());
        if let (Some([dir, temporary]), Some(filters)) = (places, self.filters.get()) {
            filters.confine(&mut all.values, dir, temporary)?;
        }
        let mut env: Vec<(OsString, OsString)> = Vec::new();
        for (at, (key, value)) in all.values.iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{at}").into(), key_bytes(key)));
            env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        if !env.is_empty() {
            env.push(("GIT_CONFIG_COUNT".into(), all.values.len().to_string().into()));
        }
        if all.offline {
            // git before 2.44 knows only the second variable.
            env.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
            env.push(("GIT_ALLOW_PROTOCOL".into(), "none".into()));
        }
        Ok(env)
    }

    /// The environment variables that redirect a call. Empty if the call is not redirected.
    /// `git_dir` is the git directory of the call: the common one, or a worktree's entry in it.
    pub(super) fn redirect_environment(&self, git_dir: &Path) -> Vec<(OsString, OsString)> {
        let stand_in = self.stand_in.read();
        let Some(StandIn { common, directory }) = &*stand_in else { return Vec::new() };
        let variable = match git_dir.parent() {
            _ if git_dir == common => "GIT_DIR",
            Some(entries) if entries == common.join("worktrees") => "GIT_COMMON_DIR",
            _ => return Vec::new(),
        };
        vec![
            (variable.into(), directory.into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
            ("GIT_CONFIG_SYSTEM".into(), "/dev/null".into()),
        ]
    }
}

impl SettingOverrides {
    /// Overrides a setting that names a program. The new value is `value`, or a value that means
    /// "no program" if `value` is `None`. Forbids fetches if the setting decides about fetches.
    /// Ignores other settings, and settings that are overridden already.
    pub fn add(&mut self, key: &str, value: Option<String>) {
        if decides_fetches(key) {
            self.offline = true;
        }
        if let Some(nothing) = no_program(key) {
            self.values
                .entry(key.to_owned())
                .or_insert_with(|| value.unwrap_or_else(|| nothing.to_owned()));
        }
    }
}

/// True if a setting names a program that our calls would start.
pub fn names_a_program(key: &str) -> bool {
    no_program(key).is_some()
}

/// For a setting that names a program which our calls would start, the value that means "no
/// program". `None` for any other setting. Settings for other programs need no such value: all our
/// calls set them already, or they are read only by git commands that we never run.
///
/// With an empty filter, git does not change the bytes. If a merge driver fails (`false`), the
/// result is a conflict and never a wrong merge.
fn no_program(key: &str) -> Option<&'static str> {
    match split_key(key) {
        ("filter", Some(_), "clean" | "smudge" | "process") => Some(""),
        ("filter", Some(_), "required") => Some("false"),
        ("merge", Some(_), "driver") => Some("false"),
        ("merge", None, "default") => Some("text"),
        ("core", None, "pager") => Some(""),
        _ => None,
    }
}

/// True if a setting decides how git fetches a missing object: which program it starts, or which
/// server it asks.
fn decides_fetches(key: &str) -> bool {
    let (section, sub, name) = split_key(key);
    match (section, sub) {
        ("remote", _) => matches!(
            name,
            "url" | "promisor" | "partialclonefilter" | "uploadpack" | "vcs" | "proxy"
        ),
        ("url" | "protocol" | "credential" | "http", _) => true,
        ("extensions", None) => name == "partialclone",
        ("core", None) => matches!(name, "sshcommand" | "gitproxy" | "askpass"),
        _ => false,
    }
}

/// Splits `section.subsection.name`. The subsection may be missing, and it may have dots in it.
fn split_key(key: &str) -> (&str, Option<&str>, &str) {
    let Some((section, rest)) = key.split_once('.') else { return (key, None, "") };
    match rest.rsplit_once('.') {
        Some((sub, name)) => (section, Some(sub), name),
        None => (section, None, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::Repo;

    fn repository(directory: &Path) -> Repo {
        duct::cmd!("git", "init", "-q", directory).run().expect("git is there");
        Repo::discover(directory).expect("a repository")
    }

    /// The value of `filter.x.clean` that a call for the repository uses.
    fn filter(repo: &Repo) -> String {
        let call = repo.git().call("config").args(["--get", "filter.x.clean"]);
        String::from_utf8_lossy(&call.output().expect("git runs").stdout).trim().to_owned()
    }

    #[test]
    fn overrides_of_two_repositories_in_one_process_are_apart() {
        let first = tempfile::tempdir().expect("a directory");
        let second = tempfile::tempdir().expect("a directory");
        let one = repository(first.path());
        let other = repository(second.path());
        let mut settings = SettingOverrides::default();
        settings.add("filter.x.clean", Some("first".into()));
        one.overrides().set_settings(settings);
        let mut settings = SettingOverrides::default();
        settings.add("filter.x.clean", Some("second".into()));
        other.overrides().set_settings(settings);
        assert_eq!(filter(&one), "first");
        assert_eq!(filter(&other), "second");
        one.overrides().set_settings(SettingOverrides::default());
        assert_eq!(filter(&one), "");
        assert_eq!(filter(&other), "second");

        let stand_in = tempfile::tempdir().expect("a directory");
        one.overrides().redirect(one.common_dir(), stand_in.path());
        let redirected = one.overrides().redirect_environment(one.common_dir());
        assert_eq!(redirected[0], ("GIT_DIR".into(), stand_in.path().into()));
        assert!(other.overrides().redirect_environment(other.common_dir()).is_empty());
        assert!(one.overrides().redirect_environment(other.common_dir()).is_empty());
    }

    #[test]
    fn only_settings_that_start_programs_or_fetch_are_overridden() {
        let mut settings = SettingOverrides::default();
        settings.add("user.name", Some("x".into()));
        assert_eq!(settings, SettingOverrides::default());
        settings.add("filter.lfs.clean", None);
        settings.add("filter.lfs.clean", Some("later".into()));
        assert_eq!(settings.values["filter.lfs.clean"], "", "the first one stays");
        assert!(!settings.offline);
        settings.add("remote.origin.url", None);
        assert!(settings.offline);
    }
}
