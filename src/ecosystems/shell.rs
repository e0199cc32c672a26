//! Shell scripts, and their tests by bats.
use crate::ecosystems::ecosystem::Ecosystem;

/// Shells.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &["bash", "bats", "fish", "sh", "zsh"],
    is_test_file: |stem, extension| match extension {
        "bats" => true,
        "sh" => stem.starts_with("test") || stem.ends_with("_test") || stem.ends_with("-test"),
        _ => false,
    },
    interpreters: &["sh", "bash", "zsh", "dash"],
    ..Ecosystem::NOTHING
};
