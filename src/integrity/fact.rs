//! Facts: the single things that a fingerprint records, such as a setting, a hook or a ref.
use serde::{Deserialize, Serialize};

/// The kind of thing that a fact is about. The order decides what is reported first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactKind {
    /// `.frites.toml` of a checkout.
    OwnFile,
    /// A setting of git.
    Config,
    /// A hook.
    Hook,
    /// A file of the git directory that changes which files and objects git sees: `info/exclude`,
    /// alternates, ….
    Info,
    /// A file or directory above the judge's checkouts, where build tools look for settings.
    Surroundings,
    /// A cached outcome.
    Outcome,
    /// A ref of ours.
    Ref,
    /// A checkout that is not ours. It is never reported.
    Worktree,
}

/// The subject of a fact: its kind, the place where it was found (empty for the usual place), and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fact {
    /// The fact's kind.
    pub kind: FactKind,
    /// A scope of configuration, a checkout or a directory.
    pub place: String,
    /// A key, a ref, a path.
    pub name: String,
}

/// The value of a fact at one time. Two values are equal if their digests are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FactValue {
    pub(super) digest: String,
    /// The value in words or in full, if that is of use. It is never stored for settings that may be
    /// secrets.
    pub(super) text: Option<String>,
}

/// The name of a fact about a part that git refuses to read.
pub(super) const UNREADABLE: &str = "(unreadable)";

impl Fact {
    /// A fact about `name` at `place`.
    pub fn new(kind: FactKind, place: &str, name: &str) -> Fact {
        Fact { kind, place: place.to_owned(), name: name.to_owned() }
    }

    /// True if the fact is part of [`super::fingerprint::configuration`].
    pub fn is_configuration(&self) -> bool {
        matches!(self.kind, FactKind::Config | FactKind::OwnFile | FactKind::Worktree)
    }

    /// True if the fact is part of [`super::fingerprint::decisive`].
    pub fn is_decisive(&self) -> bool {
        !matches!(self.kind, FactKind::Surroundings | FactKind::Outcome | FactKind::Ref)
    }
}
