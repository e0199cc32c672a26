//! Modules of checks. A check is a file that the oracle's commands or tasks run, or that no code
//! loads. A source file that only checks load counts as a part of them: an attempt that edits it
//! could change what the checks look for.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::languages::language_of;
use crate::ecosystems::loading::lines_of_files::lines_of_files;
use crate::ecosystems::loading::settings::{is_setting, names_commands};
use crate::ecosystems::loading::{LoadedName, search_for_loads};
use crate::ecosystems::paths::{bare_name, below, directory_of, file_name};
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;

/// For some source files, the files that load them. Of the source files and their loaders, also
/// the checks.
#[derive(Default)]
pub struct Loaders {
    /// The files that load a file, by the path of the loaded file.
    by_file: BTreeMap<String, BTreeSet<String>>,
    /// The files that commands or tasks run, settings, and the files that no code loads.
    checks: BTreeSet<String>,
}

impl Loaders {
    /// Adds what these lines say about the files at `paths`. `loads` is true if a line of another
    /// file loads a file. `runs` is true for a file that the oracle's commands run.
    ///
    /// Fails if the paths are too long for a search.
    pub fn add(
        &mut self,
        paths: &BTreeSet<String>,
        lines: &[(String, String)],
        loads: impl Fn(&LoadedName<'_>, &str, &str) -> bool,
        runs: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let names: Vec<Option<LoadedName<'_>>> =
            paths.iter().map(|path| LoadedName::of(path)).collect();
        let texts = paths.iter().zip(&names).map(|(path, name)| match name {
            Some(name) => name.texts(),
            None => vec![import_of(path)],
        });
        let lines = lines_of_files(texts, lines)?;
        for ((path, name), lines) in paths.iter().zip(names).zip(lines) {
            let own = self.by_file.entry(path.clone()).or_default();
            for (other, line) in lines.into_iter().filter(|(other, _)| other != path) {
                if own.contains(other) && !names_commands(other) {
                    continue;
                }
                let is_named = name.as_ref().is_some_and(|name| name.is_named_by(other, line));
                let is_loaded = match &name {
                    Some(name) => loads(name, other, line),
                    None => imports_package(other, line, path),
                };
                if is_named && names_commands(other) && (is_of_tasks(other) || runs(other)) {
                    self.checks.insert(path.clone());
                } else if is_loaded || is_named && language_of(other).is_some() {
                    own.insert(other.clone());
                    if is_setting(other) {
                        self.checks.insert(other.clone());
                    }
                }
            }
            self.checks.extend(Some(path.clone()).filter(|path| runs(path)));
            if !own.iter().any(|loader| is_of_product(loader) && !runs(loader)) {
                self.checks.extend(own.iter().filter(|loader| runs(loader)).cloned());
            }
        }
        Ok(())
    }

    /// The files on which it depends whether one of `paths` is a part of a check: these files, and
    /// the files that load them, directly or through others. A file that a test or the product loads
    /// is no part, whatever else loads it, so its other loaders are left out.
    pub fn open(&self, paths: &[&str]) -> BTreeSet<&str> {
        let all = self.by_file.iter().flat_map(|(path, loaders)| loaders.iter().chain([path]));
        let all = all.map(String::as_str);
        let start = all.filter(|path| self.checks.contains(*path) || !is_of_product(path));
        let possible = shrunk(start.collect(), |parts, path| {
            let mut loaders = self.by_file.get(path).into_iter().flatten();
            loaders.all(|loader| parts.contains(loader.as_str()))
        });
        let mut open = BTreeSet::new();
        let asked = paths.iter().filter(|path| possible.contains(**path));
        let asked = asked.filter_map(|path| self.by_file.get_key_value(*path));
        let mut next: Vec<&str> = asked.map(|(path, _)| path.as_str()).collect();
        while let Some(path) = next.pop() {
            if open.insert(path) {
                let loaders = self.by_file.get(path).into_iter().flatten();
                next.extend(loaders.map(String::as_str));
            }
        }
        open
    }

    /// True if the loaders of a file were added.
    pub fn has(&self, path: &str) -> bool {
        self.by_file.contains_key(path)
    }

    /// True for a file that no file loads, as far as the added lines show, and that nothing runs.
    pub fn is_end(&self, path: &str) -> bool {
        self.by_file.get(path).is_some_and(BTreeSet::is_empty) && !self.checks.contains(path)
    }

    /// Counts one more file as a check.
    pub fn add_check(&mut self, path: String) {
        self.checks.insert(path);
    }

    /// The directories of checks.
    pub fn directories(&self) -> BTreeSet<&str> {
        self.checks
            .iter()
            .map(|path| directory_of_check(path))
            .filter(|top| !top.is_empty())
            .collect()
    }

    /// The files that are parts of checks: only parts of checks load them, or they are checks. With
    /// `directories`, a part is in or below one of them.
    pub fn parts_of_checks(&self, directories: Option<&BTreeSet<&str>>) -> BTreeSet<&str> {
        let all = self.by_file.keys().chain(&self.checks).map(String::as_str);
        let start = all.filter(|path| {
            directories.is_none_or(|tops| tops.iter().any(|top| below(path, top).is_some()))
        });
        shrunk(start.collect(), |parts, path| self.is_loaded_only_by(parts, path))
    }

    /// True if all loaders of a file are among `parts`. If the file has no loaders, true if it is a
    /// check.
    fn is_loaded_only_by(&self, parts: &BTreeSet<&str>, path: &str) -> bool {
        let mut loaders = self.by_file.get(path).into_iter().flatten().peekable();
        (loaders.peek().is_some() || self.checks.contains(path))
            && loaders.all(|loader| parts.contains(loader.as_str()))
    }
}

/// The largest part of a set in which `stays` is true for each element.
fn shrunk<'p>(
    mut set: BTreeSet<&'p str>,
    stays: impl Fn(&BTreeSet<&'p str>, &str) -> bool,
) -> BTreeSet<&'p str> {
    loop {
        let next: BTreeSet<&str> =
            set.iter().copied().filter(|element| stays(&set, element)).collect();
        if next.len() == set.len() {
            return set;
        }
        set = next;
    }
}

/// True for a test, a manifest, and a file that need not be named by code to be a part of the product.
fn is_of_product(path: &str) -> bool {
    is_test_path(path) || LoadedName::of(path).is_none()
}

/// The search for the lines that [`Loaders::add`] needs.
pub fn search_for_loaders(paths: &BTreeSet<String>) -> [LineSearch; 2] {
    let named: Vec<LoadedName<'_>> = paths.iter().filter_map(|path| LoadedName::of(path)).collect();
    let constants = named.iter().filter_map(|file| file.constant.clone());
    let constants = LineSearch { any_case: true, ..LineSearch::of(constants) };
    let mut loads = search_for_loads(&named);
    loads.words.extend(paths.iter().filter(|path| is_of_package(path)).map(|path| import_of(path)));
    [loads, constants]
}

/// True if a source file belongs to a package that code imports by the name of its directory.
pub fn is_of_package(path: &str) -> bool {
    language_of(path).is_some_and(|language| language.imports_directories())
}

/// The text that stands at the end of a line that imports the package of a file.
fn import_of(path: &str) -> String {
    format!("/{}\"", file_name(directory_of(path)))
}

fn imports_package(other: &str, line: &str, path: &str) -> bool {
    is_of_package(path)
        && is_of_package(other)
        && directory_of(other) != directory_of(path)
        && line.contains(&import_of(path))
}

/// True for a file of tasks that a tool runs by their names: `Rakefile`, `gulpfile.js`. False for
/// other settings files, such as `conftest.py`. They may load the project's own code, so a file
/// that they name need not be a check.
pub fn is_of_tasks(path: &str) -> bool {
    bare_name(path).to_ascii_lowercase().ends_with("file")
}

/// The directory of a check and its modules. In place of `src` or `lib`, it is the directory above,
/// because only its name says what the code is for.
fn directory_of_check(path: &str) -> &str {
    let mut directory = directory_of(path);
    while matches!(file_name(directory), "src" | "lib") {
        directory = directory_of(directory);
    }
    directory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files at `paths` that are parts of checks. `lines` are lines of the base, each with its
    /// file. `run` are the files that commands run.
    fn parts(lines: &[(&str, &str)], run: &[&str], paths: &[&str]) -> Vec<String> {
        let lines: Vec<(String, String)> =
            lines.iter().map(|(path, line)| ((*path).to_owned(), (*line).to_owned())).collect();
        let mut loaders = Loaders::default();
        let mut next: BTreeSet<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        while !next.is_empty() {
            let added = loaders.add(
                &next,
                &lines,
                |file, other, line| {
                    file.is_loaded_in(other, line, false)
                        || file.may_be_imported_in(other, line) && file.has_code_in(other)
                },
                |path| run.contains(&path),
            );
            added.expect("the paths are short");
            let open = loaders.open(paths);
            next = open.into_iter().filter(|path| !loaders.has(path)).map(str::to_owned).collect();
        }
        let found = loaders.parts_of_checks(Some(&loaders.directories()));
        paths.iter().filter(|path| found.contains(**path)).map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn module_of_a_check_is_loaded_by_checks_alone() {
        let check = ("ci/check.py", "from steps import run");
        let cases = [
            (vec![check], "ci/check.py", "ci/steps.py", true),
            (vec![check, ("ci/other.py", "import steps")], "ci/check.py", "ci/steps.py", false),
            (vec![check, ("tests/t.py", "import steps")], "ci/check.py", "ci/steps.py", false),
            (vec![check, ("app/a.py", "import steps")], "ci/check.py", "ci/steps.py", false),
            (vec![check, ("tests/t.py", "import check")], "ci/check.py", "ci/steps.py", false),
            (vec![check, ("conftest.py", "'ci.steps'")], "ci/check.py", "ci/steps.py", false),
            (vec![("check.py", "from ci import steps")], "check.py", "ci/steps.py", false),
            (vec![("src/check.py", "import calc")], "src/check.py", "src/calc.py", false),
            (vec![("ci/check.py", "from app import a")], "ci/check.py", "app/a.py", false),
            (vec![], "ci/check.py", "ci/steps.py", false),
            (
                vec![check, ("ci/steps.py", "from lib.deep import a")],
                "ci/check.py",
                "ci/lib/deep.py",
                true,
            ),
            (vec![("xtask/src/main.rs", "mod a;")], "xtask/src/main.rs", "xtask/src/a.rs", true),
            (vec![("ci/v/main.go", "\t\"x/ci/v/a\"")], "ci/v/main.go", "ci/v/a/a.go", true),
            (
                vec![("ci/v/main.go", "\t\"x/ci/v/a\""), ("cmd/a.go", "import \"x/ci/v/a\"")],
                "ci/v/main.go",
                "ci/v/a/a.go",
                false,
            ),
            (
                vec![("Rakefile", "require_relative 'ci/a'"), ("ci/a.rb", "require_relative 'b'")],
                "",
                "ci/b.rb",
                true,
            ),
        ];
        for (lines, run, path, expected) in cases {
            let found = !parts(&lines, &[run], &[path]).is_empty();
            assert_eq!(found, expected, "{path} with {lines:?}");
        }
    }
}
