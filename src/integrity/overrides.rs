//! Makes our own git calls ignore planted settings: for such a setting, our calls use the value from before
//! the commands, or no value.
use crate::error::Result;
use crate::git::overrides::SettingOverrides;
use crate::integrity::diff::{Difference, compare};
use crate::integrity::fact::{Fact, FactKind};
use crate::integrity::{IntegrityContext, baseline, fingerprint, quarantine};

/// Replaces the overridden settings by those that may be planted now: settings in quarantine that still have
/// the planted value, and settings that have changed since the watched commands of any run started.
///
/// An include can be active in one worktree alone (`onbranch`), so its settings have no names that could be
/// overridden. While one may be planted, our calls use a snapshot of the configuration, which has no includes.
pub fn update(context: IntegrityContext<'_>) -> Result<()> {
    let suspects = quarantine::suspects(context.store);
    let watched = baseline::all(context.store);
    let mut settings = SettingOverrides::default();
    let mut has_include = false;
    if !suspects.is_empty() || !watched.is_empty() {
        let now = fingerprint::configuration(context);
        let mut befores = Vec::new();
        for suspect in suspects.into_iter().filter(|s| s.is_still_there(&now)) {
            befores.extend(suspect.configuration_before());
            if suspect.fact.kind == FactKind::Config {
                settings.add(&suspect.fact.name, suspect.before);
            }
        }
        befores.extend(watched.iter().filter_map(|(_, path)| Some(baseline::read(path)?.0)));
        for before in befores {
            // `add` ignores a setting that is overridden already. That is right, because `before` may have a
            // value that an attempt of another run planted.
            for Difference { fact, .. } in compare(&before, &now, Fact::is_configuration) {
                has_include |= fact.is_include();
                if fact.kind == FactKind::Config {
                    settings.add(&fact.name, before.effective(&fact));
                }
            }
        }
    }
    let repo = context.repo();
    repo.overrides().set_settings(settings);
    context.includes.set(repo, has_include)
}
