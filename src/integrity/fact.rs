//! Facts. A fingerprint is a set of facts, each about one thing such as a setting, a hook or a ref.
use serde::{Deserialize, Serialize};

/// The kind of thing that a fact is about. Differences are reported in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactKind {
    /// The file `.frites.toml` of a checkout.
    OwnFile,
    /// A setting of git.
    Config,
    /// A hook.
    Hook,
    /// A file of a git directory that decides which files and objects git sees: `info/exclude`, alternates,
    /// ….
    Info,
    /// A file or directory in a directory above the judge checkouts, where build tools look for settings.
    Surroundings,
    /// A cached outcome.
    Outcome,
    /// A ref of ours.
    Ref,
    /// A checkout that git-frites did not make. Such a fact is never reported; it shows that a checkout was
    /// added or removed.
    Worktree,
}

/// Names a fact, without its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fact {
    /// The fact's kind.
    pub kind: FactKind,
    /// The place of the thing: a scope of configuration, a checkout or a directory; empty for the usual
    /// place.
    pub place: String,
    /// The name of the thing: a key, a ref or a path.
    pub name: String,
}

/// The value of a fact at one time. Values are compared by their digests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FactValue {
    pub(super) digest: String,
    /// The value itself, or a message about it; empty if the digest is enough. A setting has all its values in
    /// their order. If a setting may be a secret, its texts are never written to a file.
    #[serde(default)]
    pub(super) texts: Vec<String>,
}

impl FactValue {
    /// The text; of several values of a setting the last one, because git uses that one if it needs one value.
    pub(super) fn text(&self) -> Option<&str> {
        self.texts.last().map(String::as_str)
    }
}

/// The name of the fact that something could not be read. The text of this fact is the error.
pub(super) const UNREADABLE: &str = "(unreadable)";

impl Fact {
    /// The fact about `name` at `place`.
    pub fn new(kind: FactKind, place: &str, name: &str) -> Fact {
        Fact { kind, place: place.to_owned(), name: name.to_owned() }
    }

    /// True for a setting that includes another file. It can bring any setting later: once the file exists, or
    /// once the condition of an `includeIf` is true.
    pub fn is_include(&self) -> bool {
        let sections = ["include.", "includeif."];
        self.kind == FactKind::Config && sections.iter().any(|s| self.name.starts_with(s))
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
