//! Projects inside of the judged project that its test commands do not enter.
use crate::ecosystems::dependencies::ecosystem_of;
use crate::ecosystems::paths::{below, directory_of, file_name, inside, plain};
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// The manifest of Go.
const MODULE: &str = "go.mod";

/// Programs that test exactly the sources of one project, each with the word after it, and the name
/// of the project's manifest. Other test programs look for tests in all directories, or run scripts
/// that may enter any directory.
const TESTERS: [(&str, &str, &str); 3] =
    [("go", "test", MODULE), ("cargo", "test", "Cargo.toml"), ("cargo", "nextest", "Cargo.toml")];

/// The project in the root, if commands test nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RootProject {
    /// The manifest by whose name the test program finds projects.
    manifest: &'static str,
    /// True if the commands also test the members of the workspace.
    enters_members: bool,
}

/// The project in the root, if it is all that these commands test; `None` if they may test more, or
/// if none of them is a test.
pub fn only_tested(oracle: &[OracleCommand]) -> Option<RootProject> {
    let tests = oracle.iter().filter(|command| command.stage == Stage::Test);
    let mut projects = tests.map(|command| {
        // A line of several commands may enter another directory.
        let line = command.command.shell_line();
        if line.contains([';', '&', '|', '(', '$', '`', '\n']) {
            return None;
        }
        let words = command.command.words();
        let [program, verb, ..] = words.as_slice() else { return None };
        // A path may lead to another project. The patterns `all` and `work` of Go may, too.
        let arguments = line.split_whitespace().skip(1);
        let mut others = arguments.clone().filter(|word| {
            word.contains('/') && *word != "./..." && !is_value_of_option(word)
                || ["all", "work"].contains(word)
        });
        if others.next().is_some() {
            return None;
        }
        let mut testers = TESTERS.iter();
        let tester = testers.find(|(name, word, _)| name == program && word == verb);
        let members = ["--workspace", "--all", "--package"];
        let mut options = arguments.map(|word| word.split('=').next().unwrap_or(word));
        let enters_members =
            options.any(|option| members.contains(&option) || option.starts_with("-p"));
        tester.map(|(_, _, manifest)| RootProject { manifest, enters_members })
    });
    let first = projects.next()??;
    projects.all(|other| other == Some(first)).then_some(first)
}

/// True for an option with its value, whose path leads to no project (`-coverprofile=out/c`).
fn is_value_of_option(word: &str) -> bool {
    word.starts_with('-') && word.contains('=') && !word.starts_with("--manifest-path")
}

/// The innermost manifest among `files` whose project contains `path`; `None` if there is only that
/// of the root.
pub fn manifest_above<'f>(path: &str, files: impl Iterator<Item = &'f str>) -> Option<&'f str> {
    let manifests = files.filter(|file| {
        let directory = directory_of(file);
        !directory.is_empty()
            && below(path, directory).is_some()
            && ecosystem_of(file_name(file)).is_some_and(|e| e.manifest(file_name(file)).is_some())
    });
    manifests.max_by_key(|file| directory_of(file).len())
}

impl RootProject {
    /// True if the file at `path` belongs to this project, although it is also in the directory of
    /// the inner `manifest`. `text` reads a file of the base.
    pub fn has(self, path: &str, manifest: &str, text: impl Fn(&str) -> String) -> bool {
        let name = file_name(manifest);
        if name != self.manifest {
            return ecosystem_of(self.manifest).is_some_and(|tested| tested.has_source(path));
        }
        if name == MODULE {
            // A module ends where the next one begins, even if a go.work joins the two.
            return false;
        }
        let table = |file: &str| text(file).parse::<toml::Table>().unwrap_or_default();
        let root = table(self.manifest);
        // A package with a workspace of its own is no member of another one.
        let Some(workspace) = root.get("workspace") else { return false };
        if table(manifest).contains_key("workspace") {
            return false;
        }
        let only_root = root.contains_key("package") && workspace.get("default-members").is_none();
        if only_root && !self.enters_members {
            return false;
        }
        let directory = directory_of(manifest);
        let excluded = workspace.get("exclude").and_then(|excluded| excluded.as_array());
        let mut excluded =
            excluded.into_iter().flatten().filter_map(toml::Value::as_str).map(plain);
        !excluded.any(|excluded| {
            !excluded.is_empty() && below(&inside(directory, "x"), excluded).is_some()
        })
    }

    /// True if a line of a manifest only lists a member of a workspace, which needs no test of it.
    pub fn only_lists(self, file: &str, line: &str) -> bool {
        let name = file_name(file);
        name == "go.work" || name == self.manifest && name != MODULE && !line.contains("path")
    }
}
