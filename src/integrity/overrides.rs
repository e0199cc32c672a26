//! Makes our own git calls ignore planted settings: for such a setting, our calls use the value from before
//! the commands, or no value.
use crate::git::overrides::SettingOverrides;
use crate::integrity::diff::{Difference, compare_only};
use crate::integrity::fact::{Fact, FactKind};
use crate::integrity::{IntegrityContext, baseline, fingerprint, quarantine};

/// Replaces the overridden settings by those that may be planted now: settings in quarantine that still have
/// the planted value, and settings that have changed since the watched commands of any run started.
pub fn update(context: IntegrityContext<'_>) {
    let suspects = quarantine::suspects(context.store);
    let watched = baseline::all(context.store);
    let mut settings = SettingOverrides::default();
    if !suspects.is_empty() || !watched.is_empty() {
        let now = fingerprint::configuration(context);
        for suspect in suspects.into_iter().filter(|s| s.is_still_there(&now)) {
            if suspect.fact.kind == FactKind::Config {
                settings.add(&suspect.fact.name, suspect.before);
            }
        }
        for (_, path) in watched {
            let Some((before, _)) = baseline::read(&path) else { continue };
            // `add` ignores a setting that is overridden already. That is right, because `before` may have a
            // value that an attempt of another run planted.
            for Difference { fact, .. } in compare_only(&before, &now, Fact::is_configuration) {
                if fact.kind == FactKind::Config {
                    settings.add(&fact.name, before.effective(&fact));
                }
            }
        }
    }
    context.repo().overrides().set_settings(settings);
}
