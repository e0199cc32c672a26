//! The machine and the programs with which outcomes were found.
use serde::{Deserialize, Serialize};

/// The place where commands ran. It is recorded for people; no decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// The name of the host.
    pub host: String,
    /// The operating system and the processor, such as `linux x86_64`.
    pub platform: String,
    /// The version of git.
    pub git: String,
    /// The version of git-frites.
    pub git_frites: String,
}
