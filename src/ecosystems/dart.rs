//! Dart: its project files, and the names of its tests.
use crate::ecosystems::ecosystem::Ecosystem;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &["dart"],
    project_files: &["pubspec.yaml"],
    lock_files: &["pubspec.lock"],
    ..Ecosystem::NOTHING
};
