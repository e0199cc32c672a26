//! Ruby: RSpec, and minitest or test-unit by Rake; through Bundler if there is a Gemfile.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::manifest::{is_quoted_list, line_hunks};
use crate::ecosystems::paths::is_in_name;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, configured), (Evidence::Names, spec_directory)],
    extensions: &["rb"],
    other_extensions: &["erb"],
    project_files: &["Gemfile"],
    lock_files: &["Gemfile.lock"],
    comment: "#",
    block_comment: ("\n=begin", "\n=end"),
    test_marks: "\
        it \"|it '|it(\"|it('|it {|it do|specify \"|specify '|specify {|specify do|def test_*|\
        describe |describe(|RSpec.describe|shared_examples*|test \"|test '|test(\"",
    // A method `test_x` is a test only in a class of a library for tests.
    may_run: |code, part| {
        let words = ["Minitest", "TestCase", "Test::Unit", "assert", "expect", "must_"];
        !part.starts_with("def test_") || words.iter().any(|word| code.contains(word))
    },
    skip_marks: "xit |xdescribe |pending |skip ",
    beside_skip_marks: "Minitest|minitest|RSpec|rspec|TestCase|Test::Unit|test/unit",
    test_words: (&["test"], &["spec", "test"]),
    decisive_files: "Guardfile Rakefile",
    shadows_tool: |path| path.ends_with("config/environments/test.rb") || is_plugin_by_name(path),
    manifests: &[(&["Gemfile", "*.gemspec"], gems_part)],
    ..Ecosystem::NOTHING
};

/// True if minitest or RubyGems loads a file of this name from any directory of libraries.
fn is_plugin_by_name(path: &str) -> bool {
    path.ends_with("rubygems_plugin.rb")
        || path.ends_with("_plugin.rb") && path.rsplit('/').nth(1) == Some("minitest")
}

/// RSpec if it is configured. Otherwise, Rake's `test` task if the Rakefile defines one. Otherwise,
/// Rake's default task if there is no directory of specs.
fn configured(files: &RootFiles<'_>) -> FoundCommands {
    let rakefile = files.text("Rakefile")?;
    let tests = ["TestTask", "task :test", "task test:", "task \"test\""];
    let (test, source): (&[&str], _) = match rakefile {
        _ if files.has(".rspec") => (&["rspec"], ".rspec"),
        Some(text) if tests.iter().any(|mark| text.contains(mark)) => {
            (&["rake", "test"], "Rakefile")
        }
        Some(_) if !has_specs(files) => (&["rake"], "Rakefile"),
        _ => (&[], "Rakefile"),
    };
    Ok(with_gems(files, test, source))
}

/// RSpec, if there is a directory of specs.
fn spec_directory(files: &RootFiles<'_>) -> FoundCommands {
    Ok(if has_specs(files) {
        with_gems(files, &["rspec"], "the spec directory")
    } else {
        Vec::new()
    })
}

fn has_specs(files: &RootFiles<'_>) -> bool {
    files.has("Gemfile") && files.has_directory("spec")
}

/// The commands for a project: the test, unless `test` is empty; RuboCop, if it is configured; and
/// a setup that installs the gems. If there is a lock file, the setup installs exactly the locked
/// gems. If CI runs the test without Bundler, these commands do not use Bundler either.
fn with_gems(files: &RootFiles<'_>, test: &[&'static str], source: &str) -> Vec<OracleCommand> {
    let bundles =
        files.has("Gemfile") && (files.ci().names("bundle") || !files.ci().runs_words(test));
    let bundled: &[&str] = if bundles { &["bundle", "exec"] } else { &[] };
    let mut found = Vec::new();
    if !test.is_empty() {
        found.push(command(Stage::Test, &[bundled, test].concat(), source));
    }
    if files.has(".rubocop.yml") {
        found.push(command(Stage::Lint, &[bundled, &["rubocop"]].concat(), ".rubocop.yml"));
    }
    let install: &[&str] = &["bundle", "install"];
    if !bundles || found.is_empty() {
        return found;
    }
    if files.has("Gemfile.lock") {
        let words = [&["env", "BUNDLE_FROZEN=true"], install].concat();
        found.push(command(Stage::Setup, &words, "Gemfile.lock"));
    } else {
        found.push(command(Stage::Setup, install, "Gemfile (no lock file)"));
    }
    found
}

/// Restores the base's Gemfile or gemspec, but keeps the attempt's lines that name a gem and its
/// versions. The rest of the file is code, which Bundler runs.
fn gems_part(base: Option<&str>, own: &str) -> Option<String> {
    // All of a new file may be code, so no part of it can be kept.
    base?;
    let names_gem = |line: &&str| {
        let line = line.trim();
        // In a gemspec: `s.add_development_dependency "rspec", "~> 3"`.
        let of_spec = line.split_once(".add_");
        let of_spec = of_spec.filter(|(variable, _)| variable.chars().all(is_in_name));
        let added = of_spec.and_then(|(_, rest)| rest.split_once("dependency"));
        let added = added.filter(|(kind, _)| ["", "development_", "runtime_"].contains(kind));
        let arguments = line.strip_prefix("gem ").or(added.map(|(_, arguments)| arguments));
        line.is_empty() || arguments.is_some_and(is_quoted_list)
    };
    line_hunks(base, own, |hunk| !hunk.removed.iter().chain(hunk.added).all(names_gem))
}
