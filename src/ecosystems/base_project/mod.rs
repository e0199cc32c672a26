//! Facts in the base about the files that an attempt changes: for example, whether a changed file
//! is source of the product or only data of tests.
mod links;
mod loaders;
mod new_paths;
mod product;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::ecosystems::base_lines::{BaseLines, FoundLines, LineSearch};
use crate::ecosystems::languages::{is_hidden_or_installed, language_of};
use crate::ecosystems::loading::imports::Imports;
use crate::ecosystems::loading::settings::names_commands;
use crate::ecosystems::loading::tests_of_product::search_for_tests;
use crate::ecosystems::looking::{looks_only, reads_content};
use crate::ecosystems::markers::Markers;
use crate::ecosystems::nested::{self, RootProject};
use crate::ecosystems::new_file::KnownCode;
use crate::ecosystems::paths::{below, directory_of, file_name, place_of_word};
use crate::ecosystems::run_files::NamedFiles;
use crate::ecosystems::scripts::{files_of_oracle, lines_of, markers};
use crate::ecosystems::touched::{is_named, is_test_path};
use crate::ecosystems::{documents, jvm, native, python};
use crate::error::Result;
use crate::git::repo::Repo;
use crate::git::seed::find::{SeedPatterns, Seeds};
use crate::model::changed_file::ChangedFile;
use crate::model::declared_source::DeclaredSource;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::model::pattern::matches;
use crate::model::shell::commands_of;

/// The maximum number of files for which one search looks, because a search takes longer the more
/// names it looks for.
const MOST_NAMES: usize = 100;

/// A base, with the files that the oracle's commands run.
pub struct BaseProject<'t> {
    repo: &'t Repo,
    commit: Oid,
    lines: BaseLines<'t>,
    /// The files that the oracle's commands run, as paths or as patterns.
    pub scripts: BTreeSet<String>,
    /// The files and directories that the oracle's commands compare with other files, as paths or
    /// as patterns.
    compared: BTreeSet<String>,
    declared: DeclaredSource,
    commands: Vec<String>,
    /// The commands that lint.
    lints: Vec<String>,
    /// The project in the root, if it is known to be all that the commands test.
    only_tested: Option<RootProject>,
    /// The names in the oracle's commands, and in the files that the commands run.
    markers: OnceLock<Markers>,
    code: OnceLock<KnownCode>,
    /// The patterns of test files in settings of the tests.
    tests: OnceLock<Vec<String>>,
    /// The texts of the files of tasks in the root.
    tasks: OnceLock<Vec<String>>,
    /// The lines of the commands and of the settings in the root and in hidden directories, each with
    /// its file.
    settings: OnceLock<FoundLines>,
    links: OnceLock<Vec<(String, String)>>,
    /// True if programs may be found in directories of the base.
    finds_programs: OnceLock<bool>,
    /// The patterns of the seeds, with the checkout that has the seeds; and the seeds, once they
    /// have been found.
    seeds: (Option<SeedPatterns>, OnceLock<Seeds>),
    /// The source files examined so far, by path. The value is true if the file is part of the
    /// product.
    products: Mutex<BTreeMap<String, bool>>,
    /// The groups of files about which [`BaseProject::loads_none_beside`] was asked for a new file: the
    /// directory and the extension of each. The value is true if no code loads one of the files.
    unloaded_groups: Mutex<BTreeMap<(String, String), bool>>,
    /// The modules examined so far, by path. The value is true if only tests compile the module.
    for_tests: Mutex<BTreeMap<String, bool>>,
    /// The modules that files of Python load, by the path of the file.
    imports: Mutex<BTreeMap<String, Arc<Imports>>>,
    /// The patterns with which tests list files, and the names by which they select files.
    listings: OnceLock<(Markers, BTreeSet<String>)>,
    /// The directories of installed libraries, by the program that lists them; `None` if it fails.
    libraries: Mutex<BTreeMap<&'static str, Option<Vec<String>>>>,
    /// The lines of the base and of the commands that may list directories of modules.
    module_paths: OnceLock<Vec<String>>,
}

impl<'t> BaseProject<'t> {
    /// The project of `base`, which the commands of `oracle` judge. `source` are the patterns of
    /// the key `oracle.source`.
    ///
    /// Fails if one of these patterns is not valid.
    pub fn of(
        repo: &'t Repo,
        base: &Oid,
        oracle: &[OracleCommand],
        source: &[String],
    ) -> Result<BaseProject<'t>> {
        let NamedFiles { run, compared } = files_of_oracle(repo, base, oracle)?;
        Ok(BaseProject {
            repo,
            commit: *base,
            lines: BaseLines::of(repo, base),
            scripts: run,
            compared,
            declared: DeclaredSource::of(source)?,
            commands: lines_of(oracle),
            lints: oracle
                .iter()
                .filter(|command| command.stage == Stage::Lint)
                .map(|command| command.command.shell_line())
                .collect(),
            only_tested: nested::only_tested(oracle),
            markers: OnceLock::new(),
            code: OnceLock::new(),
            tests: OnceLock::new(),
            tasks: OnceLock::new(),
            settings: OnceLock::new(),
            links: OnceLock::new(),
            finds_programs: OnceLock::new(),
            seeds: Default::default(),
            products: Mutex::default(),
            unloaded_groups: Mutex::default(),
            for_tests: Mutex::default(),
            imports: Mutex::default(),
            listings: OnceLock::new(),
            libraries: Mutex::default(),
            module_paths: OnceLock::new(),
        })
    }

    /// The same project, in which each tree is judged with these seeds.
    pub fn with_seeds(mut self, patterns: Option<SeedPatterns>) -> BaseProject<'t> {
        self.seeds.0 = patterns;
        self
    }

    /// The manifest of the nested project of a changed file, if the test commands do not enter that
    /// project and nothing outside of it names its directory.
    pub fn untested_project(&self, path: &str) -> Result<Option<String>> {
        let Some(tested) = self.only_tested else { return Ok(None) };
        let files = &self.code()?.files;
        let Some(manifest) = nested::manifest_above(path, files.iter().map(String::as_str)) else {
            return Ok(None);
        };
        let directory = directory_of(manifest);
        if tested.has(path, manifest, |file| self.text(file)) {
            return Ok(None);
        }
        let name = file_name(directory);
        let words = ["{}/", "\"{}\"", "'{}'", "/{}\"", "/{}'", "./{}"];
        let words = words.map(|word| word.replace("{}", name));
        let lines = self.lines.find(LineSearch::of(words))?;
        let is_named = lines.iter().any(|(file, line)| {
            (language_of(file).is_some() || names_commands(file))
                && !tested.only_lists(file, line)
                && place_of_word(line, name).is_some()
                && !is_hidden_or_installed(file)
                && below(file, directory).is_none()
        });
        Ok((!is_named).then(|| manifest.to_owned()))
    }

    /// True if the source file at `path` is in C, and tests of the base in C call a function by one of
    /// these names. A macro of this name would take the place of the function. The names of constants
    /// do not count: tests may have been written before them.
    pub fn tests_call_one_of(&self, path: &str, names: &BTreeSet<String>) -> Result<bool> {
        let source = &native::ECOSYSTEM;
        let names = names.iter().filter(|name| name.contains(char::is_lowercase));
        let names: Vec<String> = names.cloned().collect();
        if names.is_empty() || !source.has_source(path) {
            return Ok(false);
        }
        let lines = self.lines.find(LineSearch::of(names.iter().cloned()))?;
        Ok(lines.iter().any(|(file, line)| {
            is_test_path(file)
                && source.has_source(file)
                && names.iter().any(|name| {
                    place_of_word(line, name)
                        .is_some_and(|at| line[at + name.len()..].trim_start().starts_with('('))
                })
        }))
    }

    /// True if settings of the tests say that a source file is a test.
    fn is_test_by_settings(&self, path: &str) -> bool {
        let patterns = self.tests.get_or_init(|| python::patterns_of_tests(|file| self.text(file)));
        python::ECOSYSTEM.has_source(path) && patterns.iter().any(|pattern| matches(pattern, path))
    }

    /// True if the key `oracle.source` says that a path is not source. Such a path counts neither
    /// as a document nor as a list of dependencies.
    pub fn excludes(&self, path: &str) -> bool {
        self.declared.is_source(path) == Some(false)
    }

    /// True if a changed file is source. A new file is not source if its name alone has an effect.
    /// Call this only for files that do not decide which commands run.
    pub fn is_source(&self, path: &str, is_new: bool) -> Result<bool> {
        if let Some(is_source) = self.declared.is_source(path) {
            return Ok(is_source);
        }
        let language = language_of(path);
        if is_hidden_or_installed(path)
            || self.code()?.is_among_tests(path)
            || self.is_test_by_settings(path)
            || (language.is_some() || self.is_of_shell()?) && is_named(path, &self.compared)
        {
            return Ok(false);
        }
        if language.is_some() && !is_new {
            self.look_for_uses([path].into_iter())?;
            return Ok(self.products.lock().get(path) != Some(&false));
        }
        if is_new && self.has_effect_by_name(path)? {
            return Ok(false);
        }
        let code = self.code()?;
        let is_source = match language {
            Some(language) => {
                let by_name = language.looks_modules_up() && self.is_looked_up(path)?;
                code.is_source_if_new(path, language, by_name)
            }
            None => false,
        };
        let is_free = !is_new || !code.test_names.contains(file_name(path));
        // In a project of shell scripts, a document that something uses does not count as source.
        if !code.is_known && documents::is_document_by_name(path) && self.is_of_shell()? {
            return self.is_document(path);
        }
        let is_source = is_source || is_free && !code.is_known;
        Ok(is_source && !(is_new && self.is_found_as_program(path)?))
    }

    /// True if the base has a shell script that is no test, and that the commands do not run.
    fn is_of_shell(&self) -> Result<bool> {
        Ok(self.code()?.has_sources_like("a.sh", |script| !self.scripts.contains(script)))
    }

    /// The text of a file of the base; empty if it cannot be read.
    fn text(&self, path: &str) -> String {
        if let Some(text) = self.lines.text_of(path) {
            return text;
        }
        let bytes = self.repo.bytes_at(&self.commit, path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn markers(&self) -> Result<&Markers> {
        once(&self.markers, || markers(self.repo, &self.commit, &self.commands, &self.scripts))
    }

    /// True if a change of JVM source adds a type that a test of the base declares, too. The order
    /// of the class path decides which of the two types is loaded, whatever their files are called.
    pub fn declares_type_of_a_test(&self, file: &ChangedFile, path: &str) -> Result<bool> {
        if !jvm::ECOSYSTEM.has_source(path) {
            return Ok(false);
        }
        let before = file.before.text();
        let after = file.after.text();
        let mut types = jvm::declared_types(after.as_deref().unwrap_or_default());
        for old in jvm::declared_types(before.as_deref().unwrap_or_default()) {
            types.remove(old);
        }
        if types.is_empty() {
            return Ok(false);
        }
        let pairs = types.iter().map(|name| (*name).to_owned()).collect();
        let beside = jvm::TYPES.to_vec();
        let lines = self.lines.find(LineSearch { pairs, beside, ..LineSearch::default() })?;
        Ok(lines.iter().any(|(test, line)| {
            is_test_path(test)
                && jvm::ECOSYSTEM.has_source(test)
                && !line.starts_with(char::is_whitespace)
                && !jvm::declared_types(line).is_disjoint(&types)
        }))
    }

    /// Searches the base for all of these changed paths at once. Later questions about a path then
    /// need no search of their own. The flag is true for a path that only one tree has.
    pub fn look_for(&self, paths: impl Iterator<Item = (String, bool)>) -> Result<()> {
        let code = self.code()?;
        let (tests, paths): (BTreeMap<_, _>, BTreeMap<_, _>) =
            paths.partition(|(path, _)| is_test_path(path));
        let tests = tests.keys().map(String::as_str).filter(|path| code.files.contains(*path));
        for tests in tests.collect::<Vec<_>>().chunks(MOST_NAMES) {
            self.lines.find(search_for_tests(tests.iter().copied()))?;
        }
        self.look_for_uses(
            paths.keys().map(String::as_str).filter(|path| code.files.contains(*path)),
        )?;
        let in_one_tree = paths.iter().filter(|(_, is_in_one)| **is_in_one);
        let in_one_tree: Vec<&str> = in_one_tree.map(|(path, _)| path.as_str()).collect();
        for paths in in_one_tree.chunks(MOST_NAMES) {
            self.lines.find(self.search_for_new(paths.iter().copied())?)?;
        }
        Ok(())
    }

    /// True if the commands run this file of the base, and the file is not a test.
    pub fn runs(&self, path: &str) -> bool {
        !is_test_path(path) && is_named(path, &self.scripts)
    }

    /// True if the base has tests in the directory of this path, or below it.
    pub fn has_tests_beside(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        let mut paths = code.files.iter().chain(&code.submodules);
        Ok(paths.any(|file| below(file, directory_of(path)).is_some() && is_test_path(file)))
    }

    /// The code of the base, as far as its paths show.
    pub fn code(&self) -> Result<&KnownCode> {
        once(&self.code, || {
            let paths = self.repo.paths_and_modes_of(&self.commit)?;
            Ok(KnownCode::of(paths, |path| self.scripts.contains(path)))
        })
    }
}

/// True if a file is a test, or source in a language other than the shell's. A shell script is left
/// out, because it runs only if another file calls it.
fn is_code(path: &str) -> bool {
    is_test_path(path) || language_of(path).is_some_and(|language| !language.is_shell())
}

/// True if all commands of a line are formatters, linters, compilers and the like, which read no
/// text of a document.
fn only_checks(line: &str) -> bool {
    let commands = commands_of(line);
    !commands.is_empty()
        && commands.iter().all(|command| {
            let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
            // `python3 -m py_compile` runs the module.
            let words = if words.get(1) == Some(&"-m") { &words[2..] } else { &words[..] };
            let [program, next] = [0, 1].map(|at| words.get(at).copied().unwrap_or_default());
            looks_only(program, next) && !reads_content(program)
        })
}

/// The value of a cell, which the first call sets by `find`.
fn once<T>(cell: &OnceLock<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(found) = cell.get() {
        return Ok(found);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}
