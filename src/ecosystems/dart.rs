//! Dart: its project files, and the names of its tests.
use crate::ecosystems::ecosystem::Ecosystem;

/// Dart.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &["dart"],
    project_files: &["pubspec.yaml"],
    lock_files: &["pubspec.lock"],
    is_test_file: |stem, extension| {
        extension == "dart" && (stem.ends_with("_test") || stem.ends_with("_tests"))
    },
    ..Ecosystem::NOTHING
};
