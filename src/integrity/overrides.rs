//! Settings that name programs and were planted while commands ran, or may have been: calls of ours get
//! them as they were before, or as nothing.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{PoisonError, RwLock};

use crate::integrity::diff::compare_configuration;
use crate::integrity::fingerprint::{Fingerprint, Kind, Subject};

/// Settings that this process pins because attempts planted them, or may have: see
/// [`pin_differences`]. One list for the process, for no call may miss it.
static PINS: RwLock<Pins> = RwLock::new(Pins { settings: BTreeMap::new(), offline: false });

/// What every call but the user's own is told on top of its pinned settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Keys and their values.
    pub settings: BTreeMap<String, String>,
    /// Whether git may not fetch objects that are missing.
    pub offline: bool,
}

/// Replaces the pins.
pub fn set(pins: Pins) {
    *PINS.write().unwrap_or_else(PoisonError::into_inner) = pins;
}

/// What a setting is pinned to, if it is.
pub fn pinned(key: &str) -> Option<String> {
    PINS.read().unwrap_or_else(PoisonError::into_inner).settings.get(key).cloned()
}

/// The pins as git reads them: not by `-c`, which cannot name a key with `=` in it.
pub fn in_environment(more: &Pins) -> Vec<(OsString, OsString)> {
    let mut pins = PINS.read().unwrap_or_else(PoisonError::into_inner).clone();
    pins.settings.extend(more.settings.clone());
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for (at, (key, value)) in pins.settings.iter().enumerate() {
        env.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
        env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
    }
    if !env.is_empty() {
        env.push(("GIT_CONFIG_COUNT".into(), pins.settings.len().to_string().into()));
    }
    if pins.offline {
        // The second for git before 2.44, which does not know the first.
        env.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
        env.push(("GIT_ALLOW_PROTOCOL".into(), "none".into()));
    }
    env
}

/// Pins every setting that differs and names a program which a call of ours would start: to what it
/// was, or to nothing.
///
/// What is pinned already stays as it is: `before` may hold what another run's attempts planted.
pub fn pin_differences(before: &Fingerprint, after: &Fingerprint, pins: &mut Pins) {
    for difference in compare_configuration(before, after) {
        pin(&difference.subject, before.effective(&difference.subject), pins);
    }
}

/// Pins one setting, if it is of that kind, to `value`.
pub fn pin(subject: &Subject, value: Option<String>, pins: &mut Pins) {
    if subject.kind == Kind::Config {
        pin_setting(&subject.name, value, pins);
    }
}

/// Pins a setting by its key, if it is of that kind, to `value`, or to nothing.
pub fn pin_setting(key: &str, value: Option<String>, pins: &mut Pins) {
    if fetches(key) {
        pins.offline = true;
    }
    if let Some(nothing) = nothing_for(key) {
        pins.settings
            .entry(key.to_owned())
            .or_insert_with(|| value.unwrap_or_else(|| nothing.to_owned()));
    }
}

/// Whether a setting names a program that calls of ours would start.
pub fn names_a_program(subject: &Subject) -> bool {
    subject.kind == Kind::Config && nothing_for(&subject.name).is_some()
}

/// The value that stands for "no program", for a setting that names one which calls of ours would
/// start. What else names programs is pinned for every call, or never asked for.
///
/// An empty filter passes bytes through; a merge driver that fails is a conflict, never a wrong merge.
fn nothing_for(key: &str) -> Option<&'static str> {
    match split_key(key) {
        ("filter", Some(_), "clean" | "smudge" | "process") => Some(""),
        ("filter", Some(_), "required") => Some("false"),
        ("merge", Some(_), "driver") => Some("false"),
        ("merge", None, "default") => Some("text"),
        ("core", None, "pager") => Some(""),
        _ => None,
    }
}

/// Whether a setting decides what git starts, or whom it asks, to fetch an object that is missing.
fn fetches(key: &str) -> bool {
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

/// `section.subsection.name`; the subsection may hold dots.
fn split_key(key: &str) -> (&str, Option<&str>, &str) {
    let Some((section, rest)) = key.split_once('.') else { return (key, None, "") };
    match rest.rsplit_once('.') {
        Some((sub, name)) => (section, Some(sub), name),
        None => (section, None, rest),
    }
}
