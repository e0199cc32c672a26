//! Ruby: RSpec, and minitest or test-unit by Rake; through Bundler if there is a Gemfile.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Ruby.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[ruby_project],
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

/// RSpec if it is configured or has a directory, else Rake's `test` task if the Rakefile defines one,
/// else its default task; RuboCop if it is configured. The setup installs the locked gems.
fn ruby_project(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    let bundled: &[&str] = if files.has("Gemfile") { &["bundle", "exec"] } else { &[] };
    let with_bundler = |words: &[&'static str]| [bundled, words].concat();
    let mut found = Vec::new();
    if files.has(".rspec") {
        found.push(command(Stage::Test, &with_bundler(&["rspec"]), ".rspec"));
    } else if files.has("Gemfile") && files.has_directory("spec") {
        found.push(command(Stage::Test, &with_bundler(&["rspec"]), "the spec directory"));
    } else if let Some(rakefile) = files.text("Rakefile")? {
        let tests = ["TestTask", "task :test", "task test:", "task \"test\""];
        let words: &[&str] = if tests.iter().any(|mark| rakefile.contains(mark)) {
            &["rake", "test"]
        } else {
            &["rake"]
        };
        found.push(command(Stage::Test, &with_bundler(words), "Rakefile"));
    }
    if files.has(".rubocop.yml") {
        found.push(command(Stage::Lint, &with_bundler(&["rubocop"]), ".rubocop.yml"));
    }
    if files.has("Gemfile.lock") && !found.is_empty() {
        let words = ["env", "BUNDLE_FROZEN=true", "bundle", "install"];
        found.push(command(Stage::Setup, &words, "Gemfile.lock"));
    }
    Ok(found)
}
