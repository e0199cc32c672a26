//! Perl: its source files, and its tests.
use crate::ecosystems::ecosystem::Ecosystem;

/// Perl.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &["pl", "pm", "t", "xs"],
    is_test_file: |_, extension| extension == "t",
    test_directories: &["t", "xt"],
    project_files: &["Makefile.PL", "Build.PL", "cpanfile", "dist.ini"],
    ..Ecosystem::NOTHING
};
