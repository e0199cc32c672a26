//! Everything that git-frites knows about languages and build tools, one file for each.
//!
//! An [`Ecosystem`] describes how its projects are built, linted and tested, and how its tests are
//! named. It also says which of its files decide what is run. To add an ecosystem, write a file
//! with a `pub const ECOSYSTEM`, its `mod` line, and one line in [`ALL`].
//!
//! [`base_project`] answers questions about the base of an attempt. A source file that no code loads
//! is not source ([`loading`]): whatever runs it, it may be a check.
mod base_lines;
pub mod base_project;
mod ci;
mod ci_steps;
mod dart;
mod deno;
pub mod dependencies;
pub mod detect;
pub mod documents;
mod dotnet;
pub mod downloads;
mod ecosystem;
mod elixir;
pub mod flags;
mod go;
mod javascript;
mod just;
mod jvm;
pub mod languages;
mod loading;
mod looking;
mod make;
mod manifest;
mod markers;
pub mod marks;
mod native;
mod nested;
mod new_file;
mod other_languages;
pub mod paths;
mod perl;
mod php;
mod project;
pub mod put_back;
mod python;
mod recipe;
mod ruby;
mod run_files;
mod rust;
mod rust_tests;
pub mod scripts;
mod shell;
mod swift;
mod templates;
mod test_data;
mod test_names;
pub mod touched;
mod zig;

pub use crate::ecosystems::ecosystem::InstalledDirectory;

use crate::ecosystems::ecosystem::Ecosystem;

/// Every ecosystem. If two proposals for commands are otherwise equal, detection takes the proposal
/// whose ecosystem comes first here.
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
    &ruby::ECOSYSTEM,
    &perl::ECOSYSTEM,
    &php::ECOSYSTEM,
    &dart::ECOSYSTEM,
    &swift::ECOSYSTEM,
    &zig::ECOSYSTEM,
    &shell::ECOSYSTEM,
    &other_languages::ECOSYSTEM,
    &templates::ECOSYSTEM,
    &ci::ECOSYSTEM,
    #[cfg(test)]
    &tests::FAKE,
];

/// The directories into which the tools of all ecosystems install dependencies.
pub fn installed() -> impl Iterator<Item = &'static InstalledDirectory> {
    ALL.iter().flat_map(|ecosystem| ecosystem.installed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecosystems::ecosystem::{TestPart, TestParts};

    /// An ecosystem that is only for tests.
    pub const FAKE: Ecosystem = Ecosystem {
        extensions: &["fake"],
        comment: ";",
        test_marks: "TRY ",
        skip_marks: "TRY LATER",
        inner_tests: Some(|text| {
            let parts = text.find("TESTS\n").map(|at| TestPart {
                range: at..text.len(),
                scope: 0,
                name: String::new(),
                is_test: true,
                is_separable: true,
            });
            Some(TestParts { parts: parts.into_iter().collect(), ..TestParts::default() })
        }),
        test_words: (&[], &["try"]),
        test_directories: &["tries"],
        decisive_files: "fake.* .fake/",
        manifests: &[(&["manifest.fake"], |base, own| {
            Some(format!("{}{}", &base.unwrap_or_default()[..1], &own[1..]))
        })],
        shadows_tool: |path| path == "tool",
        ..Ecosystem::NOTHING
    };

    #[test]
    fn every_ecosystem_file_is_in_the_table() {
        let table = include_str!("mod.rs");
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ecosystems");
        for entry in std::fs::read_dir(directory).expect("the directory of this file") {
            let path = entry.expect("a file of it").path();
            if path.is_dir() {
                continue;
            }
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
            for extension in ecosystem.other_extensions {
                assert!(owned.insert(extension), "two ecosystems have .{extension}");
            }
            assert!(!ecosystem.extensions.is_empty() || ecosystem.test_marks.is_empty());
        }
    }
}
