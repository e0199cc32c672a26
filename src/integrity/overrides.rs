//! Overrides planted settings in our own git calls: these see the value from before, or none.
use crate::git::overrides::SettingOverrides;
use crate::integrity::diff::{Difference, compare_only};
use crate::integrity::fact::{Fact, FactKind};
use crate::integrity::{IntegrityContext, baseline, fingerprint, quarantine};

/// Overrides the settings that may be planted now: those in quarantine that still have the planted value,
/// and those that have changed since the watched commands of any run started.
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
            // An override that exists already stays, because `before` may hold a value that another run's
            // attempts planted.
            for Difference { fact, .. } in compare_only(&before, &now, Fact::is_configuration) {
                if fact.kind == FactKind::Config {
                    settings.add(&fact.name, before.effective(&fact));
                }
            }
        }
    }
    context.repo().overrides().set_settings(settings);
}
