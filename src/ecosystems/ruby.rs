//! Ruby: RSpec, minitest and test-unit. Its commands are not detected.
use crate::ecosystems::ecosystem::Ecosystem;

/// Ruby.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    extensions: &["rb"],
    comment: "#",
    test_marks: &["it \"", "it '", "def test_", "describe ", "test \""],
    skip_marks: &["xit ", "xdescribe ", "pending ", "skip "],
    is_test_file: |stem, extension| {
        extension == "rb"
            && (stem.ends_with("_spec") || stem.ends_with("_test") || stem.starts_with("test_"))
    },
    decisive_files: &["Rakefile"],
    interpreters: &["ruby"],
    ..Ecosystem::NOTHING
};
