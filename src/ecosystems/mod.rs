//! Everything that git-frites knows about languages and build tools, one file for each.
//!
//! An [`Ecosystem`] says how its projects are built, linted and tested, how its tests look, and
//! which of its files decide what is run. A new one is a new file with a `pub const ECOSYSTEM`, its
//! `mod` line, and one line in [`ALL`].
mod ci;
mod dart;
mod deno;
pub mod detect;
mod dotnet;
mod elixir;
pub mod flags;
mod go;
mod javascript;
mod just;
mod jvm;
mod make;
mod manifest;
mod native;
mod perl;
mod php;
mod python;
mod ruby;
mod rust;
pub mod scripts;
mod shell;
mod task;

use crate::ecosystems::detect::Detector;
use crate::ecosystems::manifest::DecisivePart;

/// Every ecosystem. Detection asks them in this order: languages first, then build tools, then a
/// project's own recipes, which often call the others.
const ALL: &[&Ecosystem] = &[
    &javascript::ECOSYSTEM,
    &deno::ECOSYSTEM,
    &rust::ECOSYSTEM,
    &go::ECOSYSTEM,
    &python::ECOSYSTEM,
    &dotnet::ECOSYSTEM,
    &elixir::ECOSYSTEM,
    &jvm::ECOSYSTEM,
    &native::ECOSYSTEM,
    &just::ECOSYSTEM,
    &make::ECOSYSTEM,
    &task::ECOSYSTEM,
    &ruby::ECOSYSTEM,
    &perl::ECOSYSTEM,
    &php::ECOSYSTEM,
    &dart::ECOSYSTEM,
    &shell::ECOSYSTEM,
    &ci::ECOSYSTEM,
];

/// A language or a build tool. A field that does not apply keeps its value from
/// [`Ecosystem::NOTHING`].
struct Ecosystem {
    /// The functions that detect its projects' commands, in the order in which they are asked.
    detectors: &'static [Detector],
    /// The extensions of its source files, without the dot; no two ecosystems share one.
    extensions: &'static [&'static str],
    /// The characters that begin a comment line in a source file.
    comment: &'static str,
    /// The text by which a source line starts a test.
    test_marks: &'static [&'static str],
    /// The text by which a source line makes tests be skipped.
    skip_marks: &'static [&'static str],
    /// Returns the lines of the tests that a source file holds beside the code under test.
    inner_tests: fn(&str) -> Vec<&str>,
    /// True if a file with this stem and this extension is a test by its name.
    is_test_file: fn(&str, &str) -> bool,
    /// Patterns (see [`matches`]) for directories that hold tests or their data.
    test_directories: &'static [&'static str],
    /// Patterns for files that decide what is run, whatever changes in them. One that ends in `/`
    /// stands for all files below such a directory.
    decisive_files: &'static [&'static str],
    /// Returns the reader of a manifest's decisive part, if a file of this name is a manifest.
    decisive_part: fn(&str) -> Option<DecisivePart>,
    /// True if a file at this path is run instead of the tool that a command names.
    shadows_tool: fn(&str) -> bool,
    /// The programs that run a script named by their argument.
    interpreters: &'static [&'static str],
    /// The files in a project's root whose recipes name further scripts.
    recipe_files: &'static [&'static str],
}

impl Ecosystem {
    /// An ecosystem about which nothing is known: the value of every field that is left out.
    const NOTHING: Ecosystem = Ecosystem {
        detectors: &[],
        extensions: &[],
        comment: "",
        test_marks: &[],
        skip_marks: &[],
        inner_tests: |_| Vec::new(),
        is_test_file: |_, _| false,
        test_directories: &[],
        decisive_files: &[],
        decisive_part: |_| None,
        shadows_tool: |_| false,
        interpreters: &[],
        recipe_files: &[],
    };

    /// True if a file at this path is a source file of this ecosystem.
    fn has_source(&self, path: &str) -> bool {
        path.rsplit_once('.').is_some_and(|(_, extension)| self.extensions.contains(&extension))
    }

    /// True if a path belongs to a test or to a test's data, as far as its name shows.
    fn is_test_path(&self, path: &str) -> bool {
        let is_directory =
            |part: &str| self.test_directories.iter().any(|pattern| matches(pattern, part));
        // The last part counts, too: a submodule or a symlink may have a test directory's name.
        path.split('/').any(is_directory)
            || file_name(path)
                .rsplit_once('.')
                .is_some_and(|(stem, extension)| (self.is_test_file)(stem, extension))
    }

    /// True if a file at this path decides what is run, whatever changes in it.
    fn is_decisive(&self, path: &str) -> bool {
        let name = file_name(path);
        (self.shadows_tool)(path)
            || self.decisive_files.iter().any(|pattern| match pattern.strip_suffix('/') {
                Some(_) => path.starts_with(pattern) || path.contains(&format!("/{pattern}")),
                None => matches(pattern, name),
            })
    }
}

/// True if a name matches a pattern, in which one `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ecosystem_file_is_in_the_table() {
        let table = include_str!("mod.rs");
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ecosystems");
        for entry in std::fs::read_dir(directory).expect("the directory of this file") {
            let path = entry.expect("a file of it").path();
            let text = std::fs::read_to_string(&path).expect("source is UTF-8");
            let module = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            assert_eq!(
                text.contains("\npub const ECOSYSTEM: Ecosystem"),
                table.contains(&format!("    &{module}::ECOSYSTEM,\n")),
                "{module} is in the table if, and only if, it defines an ecosystem"
            );
        }
    }

    #[test]
    fn an_extension_belongs_to_one_ecosystem_that_knows_its_tests() {
        let mut owned = std::collections::BTreeSet::new();
        for ecosystem in ALL {
            for extension in ecosystem.extensions {
                assert!(owned.insert(extension), "two ecosystems have .{extension}");
                assert!(!ecosystem.comment.is_empty(), ".{extension} has comments");
                assert!(!ecosystem.test_marks.is_empty(), ".{extension} has tests");
                assert!(!ecosystem.skip_marks.is_empty(), ".{extension} can skip tests");
            }
            assert!(!ecosystem.extensions.is_empty() || ecosystem.test_marks.is_empty());
        }
    }

    #[test]
    fn a_pattern_is_a_name_or_has_one_star() {
        let cases = [
            ("Makefile", "Makefile", true),
            ("Makefile", "Makefile2", false),
            ("*.mk", "a.mk", true),
            ("*.mk", "a.mkd", false),
            ("jest.config.*", "jest.config.ts", true),
            ("jest.config.*", "my.jest.config.ts", false),
            ("a*a", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} and {name}");
        }
    }
}
