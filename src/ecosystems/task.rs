//! Task: its recipes. Its commands are not detected.
use crate::ecosystems::ecosystem::Ecosystem;

/// Task (taskfile.dev).
pub const ECOSYSTEM: Ecosystem =
    Ecosystem { decisive_files: &["Taskfile.yml"], ..Ecosystem::NOTHING };
