//! Projects inside of the judged project that its test commands do not enter.
use crate::ecosystems::dependencies::ecosystem_of;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::paths::{directory_of, file_name};
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// The manifest of Go.
const MODULE: &str = "go.mod";

/// Programs that test exactly the sources of one project, each with the word after it, and the name
/// of the project's manifest. Other test programs look for tests in all directories, or run scripts
/// that may enter any directory.
const TESTERS: [(&str, &str, &str); 3] =
    [("go", "test", MODULE), ("cargo", "test", "Cargo.toml"), ("cargo", "nextest", "Cargo.toml")];

/// The ecosystem whose project in the root is all that these commands test; `None` if they may test
/// more, or if none of them is a test.
pub fn only_tested(oracle: &[OracleCommand]) -> Option<&'static Ecosystem> {
    let tests = oracle.iter().filter(|command| command.stage == Stage::Test);
    let mut ecosystems = tests.map(|command| {
        // A line of several commands may enter another directory.
        let line = command.command.shell_line();
        if line.contains([';', '&', '|', '(', '$', '`', '\n']) {
            return None;
        }
        let words = command.command.words();
        let [program, verb, ..] = words.as_slice() else { return None };
        // A path may lead to another project. The patterns `all` and `work` of Go may, too.
        let arguments = line.split_whitespace().skip(1);
        let mut others = arguments.filter(|word| {
            word.contains('/') && *word != "./..." || ["all", "work"].contains(word)
        });
        if others.next().is_some() {
            return None;
        }
        let mut testers = TESTERS.iter();
        let tester = testers.find(|(name, word, _)| name == program && word == verb);
        tester.and_then(|(_, _, manifest)| ecosystem_of(manifest))
    });
    let first = ecosystems.next()??;
    ecosystems.all(|other| other.is_some_and(|other| std::ptr::eq(first, other))).then_some(first)
}

/// The innermost manifest among `files` whose project contains `path`; `None` if there is only that
/// of the root.
pub fn manifest_above<'f>(path: &str, files: impl Iterator<Item = &'f str>) -> Option<&'f str> {
    let manifests = files.filter(|file| {
        let directory = directory_of(file);
        !directory.is_empty()
            && path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
            && ecosystem_of(file_name(file)).is_some_and(|e| e.manifest(file_name(file)).is_some())
    });
    manifests.max_by_key(|file| directory_of(file).len())
}

/// True if the file at `path` belongs to the project in the root, although it is also in the
/// directory of the inner `manifest`. `tested` is the ecosystem of the root's project, and `root`
/// reads Cargo.toml in the root.
pub fn belongs_to_root(
    tested: &Ecosystem,
    path: &str,
    manifest: &str,
    root: impl FnOnce() -> String,
) -> bool {
    let is_same = ecosystem_of(file_name(manifest)).is_some_and(|own| std::ptr::eq(own, tested));
    if !is_same {
        return tested.has_source(path);
    }
    if file_name(manifest) == MODULE {
        // A module ends where the next one begins, even if a go.work joins the two.
        return false;
    }
    let table: toml::Table = root().parse().unwrap_or_default();
    let excluded =
        table.get("workspace").and_then(|workspace| workspace.get("exclude")?.as_array());
    let directory = directory_of(manifest);
    !excluded.into_iter().flatten().filter_map(toml::Value::as_str).any(|excluded| {
        let excluded = excluded.trim_end_matches('/');
        directory
            .strip_prefix(excluded)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
