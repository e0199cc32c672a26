//! Ruby: RSpec, and minitest or test-unit by Rake; through Bundler if there is a Gemfile.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::manifest::{PutBackPart, line_hunks};
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Ruby.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[ruby_project],
    extensions: &["rb"],
    other_extensions: &["erb"],
    project_files: &["Gemfile"],
    lock_files: &["Gemfile.lock"],
    comment: "#",
    test_marks: &["it \"", "it '", "def test_", "describe ", "test \""],
    skip_marks: &["xit ", "xdescribe ", "pending ", "skip "],
    is_test_file: |stem, extension| {
        extension == "rb"
            && (stem.ends_with("_spec") || stem.ends_with("_test") || stem.starts_with("test_"))
    },
    decisive_files: &["Guardfile", "Rakefile"],
    shadows_tool: |path| path.ends_with("config/environments/test.rb"),
    manifest: |name| {
        let is_manifest = name == "Gemfile" || name.ends_with(".gemspec");
        if is_manifest { Some(gems_part as PutBackPart) } else { None }
    },
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

/// Everything but lines that name a gem and its versions: the rest is code that Bundler runs.
fn gems_part(base: Option<&str>, own: &str) -> Option<String> {
    let names_gem = |line: &&str| {
        let line = line.trim();
        let starts = ["gem \"", "gem '"].iter().any(|start| line.starts_with(start));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,'\"()<>=~-_/".contains(c);
        line.is_empty() || (starts || line.contains("dependency")) && line.chars().all(is_plain)
    };
    line_hunks(base, own, |hunk| !hunk.removed.iter().chain(hunk.added).all(names_gem))
}
