//! What is different between two fingerprints, in words that a person understands.
use crate::integrity::fingerprint::{Fingerprint, Kind, Subject, UNREADABLE, Value};

/// Sections of git's configuration that say who someone is, where things come from and how git keeps house: people and
/// tests set them all the time, and no file is another one by them.
const HARMLESS: [&str; 9] =
    ["advice.", "branch.", "color.", "gc.", "init.", "maintenance.", "remote.", "safe.", "user."];

/// One thing that is not as it was.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What it is about.
    pub subject: Subject,
    /// What happened, as a clause.
    pub words: String,
    /// The digest now; none if it is gone.
    pub digest: Option<String>,
    /// What it was and is, where that can be told.
    pub texts: (Option<String>, Option<String>),
}

impl Difference {
    /// Whether it changes how git-frites itself is configured, or may do so.
    pub fn configures_us(&self) -> bool {
        match self.subject.kind {
            Kind::OwnFile => true,
            Kind::Config => {
                self.subject.name.starts_with("frites.") || self.subject.name == UNREADABLE
            }
            _ => false,
        }
    }

    /// Whether it may make commands that use git end otherwise than before. Hooks do not, which package managers set
    /// up when they install (husky, lefthook, pre-commit): they run when somebody commits.
    pub fn bends_outcomes(&self) -> bool {
        let Subject { kind, name, .. } = &self.subject;
        let submodules = name.starts_with("submodule.")
            && [".url", ".active"].iter().any(|end| name.ends_with(end));
        match kind {
            Kind::Config if submodules || name == "core.hookspath" => false,
            Kind::Config => !HARMLESS.iter().any(|section| name.starts_with(section)),
            Kind::OwnFile | Kind::Info => true,
            Kind::Hook | Kind::Head | Kind::Ref | Kind::Worktree | Kind::File => false,
        }
    }
}

/// Names every difference, the ones that decide what runs first.
pub fn compare(before: &Fingerprint, after: &Fingerprint) -> Vec<Difference> {
    let mut subjects: Vec<&Subject> = before.0.keys().chain(after.0.keys()).collect();
    subjects.sort();
    subjects.dedup();
    let mut found = Vec::new();
    let broken = |kind: Kind, place: &str| {
        after.0.contains_key(&Subject {
            kind,
            place: place.to_owned(),
            name: UNREADABLE.to_owned(),
        })
    };
    let differs = |subject: &Subject| before.digest(subject) != after.digest(subject);
    for subject in subjects {
        // Of a worktree that came or went, that is all there is to say.
        let all =
            Subject { kind: Kind::Worktree, place: String::new(), name: subject.place.clone() };
        if !subject.place.is_empty() && differs(&all) {
            continue;
        }
        // What cannot be read is not gone; and a configuration that cannot be read breaks everything else.
        let place = if subject.kind == Kind::Config { "" } else { &subject.place };
        let unseen = !after.0.contains_key(subject) && broken(subject.kind, place);
        let consequence =
            subject.name == UNREADABLE && subject.kind != Kind::Config && broken(Kind::Config, "");
        if unseen || consequence {
            continue;
        }
        let (old, new) = (before.0.get(subject), after.0.get(subject));
        if old.map(|v| &v.digest) == new.map(|v| &v.digest) {
            continue;
        }
        let text = |value: Option<&Value>| value.and_then(|v| v.text.clone());
        found.push(Difference {
            subject: subject.clone(),
            words: in_words(subject, old, new),
            digest: new.map(|v| v.digest.clone()),
            texts: if subject.kind == Kind::Config { (None, None) } else { (text(old), text(new)) },
        });
    }
    found
}

/// Names the differences of two fingerprints in what [`crate::integrity::fingerprint::configuration`] holds.
pub fn compare_configuration(before: &Fingerprint, after: &Fingerprint) -> Vec<Difference> {
    compare_only(before, after, |subject| matches!(subject.kind, Kind::Config | Kind::OwnFile))
}

/// The same in what [`crate::integrity::fingerprint::decisive`] holds, but for worktrees.
pub fn compare_decisive(before: &Fingerprint, after: &Fingerprint) -> Vec<Difference> {
    let mut found = compare_only(before, after, Subject::is_decisive);
    found.retain(|difference| difference.subject.kind != Kind::Worktree);
    found
}

fn compare_only(
    before: &Fingerprint,
    after: &Fingerprint,
    wanted: fn(&Subject) -> bool,
) -> Vec<Difference> {
    let only = |all: &Fingerprint| {
        let kept = all.0.iter().filter(|(subject, _)| wanted(subject));
        Fingerprint(kept.map(|(s, v)| (s.clone(), v.clone())).collect())
    };
    compare(&only(before), &only(after))
}

fn in_words(subject: &Subject, old: Option<&Value>, new: Option<&Value>) -> String {
    let Subject { kind, place, name } = subject;
    let happened = match (old, new) {
        (None, _) => "was added",
        (_, None) => "was removed",
        _ => "was changed",
    };
    let at =
        |what: String| if place.is_empty() { what } else { format!("{what} of {}", quote(place)) };
    if name == UNREADABLE {
        let what = if *kind == Kind::Config { "the configuration" } else { "git's answer" };
        return match new.and_then(|v| v.text.as_deref()) {
            Some(why) => format!("{} cannot be read: {why}", at(what.to_owned())),
            None => format!("{} can be read again", at(what.to_owned())),
        };
    }
    match kind {
        Kind::OwnFile if place.is_empty() => format!("'{name}' {happened}"),
        Kind::OwnFile => format!("'{place}/{name}' {happened}"),
        Kind::Config => {
            let what = match place.as_str() {
                "" => format!("config '{name}'"),
                "global" | "system" | "worktree" => format!("{place} config '{name}'"),
                _ => format!("config '{name}' of {}", quote(place)),
            };
            match new.and_then(|v| v.text.as_deref()) {
                Some(value) if tellable(name, value) => {
                    format!("{what} was set to '{}'", shortened(value))
                }
                Some(_) => format!("{what} was set"),
                None => format!("{what} was removed"),
            }
        }
        Kind::Hook if place.is_empty() => format!("hook '{name}' {happened}"),
        Kind::Hook => format!("hook '{name}' in {} {happened}", quote(place)),
        Kind::Info => format!("{} {happened}", at(format!("'{name}'"))),
        Kind::Head => {
            let text = |v: Option<&Value>| {
                v.and_then(|v| v.text.as_deref()).map_or("nothing".into(), target)
            };
            let of = if place.is_empty() { "your checkout".to_owned() } else { quote(place) };
            format!("HEAD of {of} moved from {} to {}", text(old), text(new))
        }
        Kind::Ref => {
            let what = match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
                (Some(branch), _) => format!("branch '{branch}'"),
                (_, Some(tag)) => format!("tag '{tag}'"),
                _ if name == "refs/stash" => "the stash".to_owned(),
                _ => format!("ref '{name}'"),
            };
            let text = |v: &Value| v.text.as_deref().map(target).unwrap_or_default();
            match (old, new) {
                (None, Some(new)) => format!("{what} was added at {}", text(new)),
                (Some(old), None) => {
                    format!(
                        "{what} was deleted; it was at {}",
                        old.text.as_deref().unwrap_or_default()
                    )
                }
                (Some(old), Some(new)) if old.text != new.text => {
                    format!("{what} moved from {} to {}", text(old), text(new))
                }
                _ => format!("{what} was changed"),
            }
        }
        Kind::Worktree if place == "candidate" => format!("the worktree of {name} {happened}"),
        Kind::Worktree => format!("worktree '{name}' {happened}"),
        Kind::File if place.is_empty() => format!("a file of your checkout was changed: '{name}'"),
        Kind::File => format!("a file of the checkout {} was changed: '{name}'", quote(place)),
    }
}

fn quote(place: &str) -> String {
    if place.contains('\'') { place.to_owned() } else { format!("'{place}'") }
}

/// What a ref or HEAD holds, in few words.
fn target(text: &str) -> String {
    match text.strip_prefix("ref: ") {
        Some(full) => match full.strip_prefix("refs/heads/") {
            Some(branch) => format!("branch '{branch}'"),
            None => full.to_owned(),
        },
        None => text.get(..10).unwrap_or(text).to_owned(),
    }
}

/// Whether a setting's value may be shown: none that is, or may hold, a secret.
fn tellable(key: &str, value: &str) -> bool {
    let secret =
        ["header", "token", "pass", "secret", "cookie"].iter().any(|word| key.contains(word));
    let address = value.contains("://") && value.contains('@');
    !secret && !address
}

/// One line of at most 80 characters.
fn shortened(value: &str) -> String {
    let line = value.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"");
    if line.chars().count() <= 80 {
        line
    } else {
        format!("{}…", line.chars().take(79).collect::<String>())
    }
}
