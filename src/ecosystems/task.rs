//! Task: only its file, which decides what is run. Its recipes are not read.
use crate::ecosystems::ecosystem::Ecosystem;

/// Task (taskfile.dev).
pub const ECOSYSTEM: Ecosystem =
    Ecosystem { decisive_files: &["Taskfile.*", "taskfile.*"], ..Ecosystem::NOTHING };
