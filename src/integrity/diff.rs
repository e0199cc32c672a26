//! Compares two fingerprints, and describes the differences in words for people.
use std::collections::BTreeSet;

use crate::git::config_key::key_bytes;
use crate::integrity::fingerprint::{Fact, FactKind, FactValue, Fingerprint, UNREADABLE};
use crate::model::plain;

/// git's settings whose names begin like this are about identities, remotes, maintenance and the
/// like. People and tests often change such settings. They do not change the content of any file.
const HARMLESS: [&str; 9] =
    ["advice.", "branch.", "color.", "gc.", "init.", "maintenance.", "remote.", "safe.", "user."];

/// A fact that differs between two fingerprints.
#[derive(Clone, Debug)]
pub struct Difference {
    pub fact: Fact,
    /// The change as a clause, e.g. `hook 'pre-commit' was added`.
    pub words: String,
    /// The digest in the second fingerprint. `None` if the fact is gone, or if fingerprints never
    /// have such a fact.
    pub digest: Option<String>,
    /// The texts in the first and the second fingerprint. A text is `None` if it may not be shown
    /// or does not exist.
    pub texts: (Option<String>, Option<String>),
    /// True if git-frites has reverted the change.
    pub reverted: bool,
}

impl Difference {
    /// True if the change may configure git-frites itself.
    pub fn affects_own_config(&self) -> bool {
        match self.fact.kind {
            FactKind::OwnFile => true,
            FactKind::Config => {
                self.fact.name.starts_with("frites.")
                    || self.fact.is_include()
                    || self.fact.name == UNREADABLE && !self.is_readable_again()
            }
            _ => false,
        }
    }

    /// True if the fact says that something could not be read, and now it can be read. Then its
    /// content is compared, too.
    pub fn is_readable_again(&self) -> bool {
        self.fact.name == UNREADABLE && self.digest.is_none()
    }

    /// True if the change may alter the outcome of oracle commands. Hooks do not count: they run at
    /// commits, and package managers often install them (husky, lefthook, pre-commit).
    pub fn affects_outcomes(&self) -> bool {
        let Fact { kind, name, .. } = &self.fact;
        let submodules = name.starts_with("submodule.")
            && [".url", ".active"].iter().any(|end| name.ends_with(end));
        match kind {
            FactKind::Config if submodules || name == "core.hookspath" => false,
            FactKind::Config => !is_harmless(name),
            FactKind::OwnFile | FactKind::Info | FactKind::Surroundings => true,
            FactKind::Hook | FactKind::Outcome | FactKind::Ref | FactKind::Worktree => false,
        }
    }
}

/// True if a setting of git is in one of the sections `HARMLESS`.
pub fn is_harmless(setting: &str) -> bool {
    HARMLESS.iter().any(|section| setting.starts_with(section))
}

/// The differences between two fingerprints in the facts for which `wanted` returns true. They are
/// sorted by [`FactKind`]: changes that decide which programs run come first.
pub fn compare(
    before: &Fingerprint,
    after: &Fingerprint,
    wanted: fn(&Fact) -> bool,
) -> Vec<Difference> {
    let facts: BTreeSet<&Fact> = before.0.keys().chain(after.0.keys()).collect();
    let mut found = Vec::new();
    let broken =
        |kind: FactKind, place: &str| after.0.contains_key(&Fact::new(kind, place, UNREADABLE));
    let differs = |fact: &Fact| before.digest(fact) != after.digest(fact);
    for fact in facts.into_iter().filter(|fact| wanted(fact) && differs(fact)) {
        // If a checkout was added or removed, the facts about it are not reported.
        let checkout = Fact::new(FactKind::Worktree, "", &fact.place);
        if fact.kind == FactKind::Worktree || differs(&checkout) {
            continue;
        }
        // A fact may be missing only because its source cannot be read now, e.g. the configuration.
        // Then the fact is not reported as removed. Without a readable configuration, git can read
        // nothing. Then it is not reported that other sources cannot be read.
        let unseen = !after.0.contains_key(fact)
            && match fact.is_configuration() {
                true => broken(FactKind::Config, ""),
                false => broken(fact.kind, &fact.place),
            };
        let consequence = fact.name == UNREADABLE
            && fact.kind != FactKind::Config
            && broken(FactKind::Config, "");
        if unseen || consequence {
            continue;
        }
        let old = before.0.get(fact);
        let new = after.0.get(fact);
        let text = |value: Option<&FactValue>| value.and_then(FactValue::text).map(str::to_owned);
        found.push(Difference {
            fact: fact.clone(),
            words: in_words(fact, old, new),
            digest: new.map(|v| v.digest.clone()),
            texts: if fact.kind == FactKind::Config {
                (None, None)
            } else {
                (text(old), text(new))
            },
            reverted: false,
        });
    }
    found
}

fn in_words(fact: &Fact, old: Option<&FactValue>, new: Option<&FactValue>) -> String {
    let Fact { kind, place, name } = fact;
    let happened = match (old, new) {
        (None, _) => "was added",
        (_, None) => "was removed",
        _ => "was changed",
    };
    let at =
        |what: String| if place.is_empty() { what } else { format!("{what} of {}", quote(place)) };
    if name == UNREADABLE {
        let what = if *kind == FactKind::Config { "the configuration" } else { "git's answer" };
        return match new.and_then(FactValue::text) {
            Some(why) => format!("{} cannot be read: {why}", at(what.to_owned())),
            None => format!("{} can be read again", at(what.to_owned())),
        };
    }
    match kind {
        FactKind::OwnFile if place.is_empty() => format!("'{name}' {happened}"),
        FactKind::OwnFile => format!("'{place}/{name}' {happened}"),
        FactKind::Config => config_in_words(fact, new),
        FactKind::Hook if place.is_empty() => format!("hook '{name}' {happened}"),
        FactKind::Hook => format!("hook '{name}' in {} {happened}", quote(place)),
        FactKind::Info => format!("{} {happened}", at(format!("'{name}'"))),
        FactKind::Ref => {
            move_in_words(name, old.and_then(FactValue::text), new.and_then(FactValue::text))
        }
        // This is never used. Fingerprints have no facts of the first two kinds, and the third is
        // not reported.
        FactKind::Surroundings | FactKind::Outcome | FactKind::Worktree => {
            format!("'{name}' {happened}")
        }
    }
}

fn config_in_words(fact: &Fact, new: Option<&FactValue>) -> String {
    let bytes = key_bytes(&fact.name);
    let name = &bytes.to_string_lossy();
    let setting = match fact.place.as_str() {
        "" => format!("config '{name}'"),
        scope @ ("global" | "system" | "worktree") => format!("{scope} config '{name}'"),
        place => format!("config '{name}' of {}", quote(place)),
    };
    match new.map(|v| v.texts.join("\n")) {
        Some(value) if may_be_shown(name, &value) => {
            format!("{setting} was set to '{}'", shortened(&value))
        }
        Some(_) => format!("{setting} was set"),
        None => format!("{setting} was removed"),
    }
}

/// Describes a move of a ref in words. Each value is an object id, or `ref: ` and the target of a
/// symbolic ref. `None` means that the ref did not exist.
pub fn move_in_words(name: &str, from: Option<&str>, to: Option<&str>) -> String {
    let subject = match name.strip_prefix("refs/heads/") {
        Some(branch) => format!("branch '{branch}'"),
        None => format!("ref '{name}'"),
    };
    match (from, to) {
        (None, Some(to)) => format!("{subject} was added at {}", target(to)),
        (Some(from), None) => format!("{subject} was deleted; it was at {from}"),
        (Some(from), Some(to)) if from != to => {
            format!("{subject} moved from {} to {}", target(from), target(to))
        }
        _ => format!("{subject} was changed"),
    }
}

fn quote(place: &str) -> String {
    if place.contains('\'') { place.to_owned() } else { format!("'{place}'") }
}

/// A short form of a ref's value: the beginning of an object id, or the target of a symbolic ref.
fn target(text: &str) -> String {
    match text.strip_prefix("ref: ") {
        Some(full) => match full.strip_prefix("refs/heads/") {
            Some(branch) => format!("branch '{branch}'"),
            None => full.to_owned(),
        },
        None => text.get(..10).unwrap_or(text).to_owned(),
    }
}

/// True if a setting's value may be shown, because it cannot have a password or token in it.
fn may_be_shown(key: &str, value: &str) -> bool {
    let secret =
        ["header", "token", "pass", "secret", "cookie"].iter().any(|word| key.contains(word));
    let address = value.contains("://") && value.contains('@');
    !secret && !address
}

/// The value on one line, cut after 80 characters.
fn shortened(value: &str) -> String {
    let line = value.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"");
    plain::cut(&line, 80)
}
