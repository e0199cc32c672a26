//! Overrides planted settings in our own git calls: these see the value from before, or none.
use crate::git::overrides::SettingOverrides;
use crate::integrity::baseline::{self, WatchDir};
use crate::integrity::diff::compare_only;
use crate::integrity::fact::{Fact, FactKind};
use crate::integrity::fingerprint::{self, Fingerprint};
use crate::integrity::{IntegrityContext, quarantine};

/// Overrides the settings that may be planted now: those in quarantine that still have the planted value,
/// and those that have changed since the commands of any run started.
///
/// `own` is a watch of this process. Its fingerprint in memory is used, because an attempt could have
/// edited the file. Gives the current configuration, if it had to be read.
pub fn update(
    context: IntegrityContext<'_>,
    own: Option<(&WatchDir, &Fingerprint)>,
) -> Option<Fingerprint> {
    let suspects = quarantine::suspects(context.store);
    let watched = baseline::all(context.store);
    let mut settings = SettingOverrides::default();
    let is_needed = own.is_some() || !suspects.is_empty() || !watched.is_empty();
    let now = is_needed.then(|| fingerprint::configuration(context));
    if let Some(now) = &now {
        for suspect in suspects.into_iter().filter(|s| s.is_still_there(now)) {
            if suspect.fact.kind == FactKind::Config {
                settings.add(&suspect.fact.name, suspect.before);
            }
        }
        for (_, path) in watched {
            if own.is_some_and(|(dir, _)| dir.path() == path) {
                continue;
            }
            if let Some((before, _)) = baseline::read(&path) {
                override_differences(&before, now, &mut settings);
            }
        }
        if let Some((_, before)) = own {
            override_differences(before, now, &mut settings);
        }
    }
    context.repo().overrides().set_settings(settings);
    now
}

/// Adds the settings that differ, each with its value in `before`. An override that exists already stays,
/// because `before` may hold a value that another run's attempts planted.
fn override_differences(
    before: &Fingerprint,
    after: &Fingerprint,
    settings: &mut SettingOverrides,
) {
    for difference in compare_only(before, after, Fact::is_configuration) {
        let fact = &difference.fact;
        if fact.kind == FactKind::Config {
            settings.add(&fact.name, before.effective(fact));
        }
    }
}
