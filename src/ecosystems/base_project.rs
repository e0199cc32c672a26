//! Facts in the base about the files that an attempt changes: for example, whether a changed file
//! is source of the product or only data of tests.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter;
use std::slice;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::ecosystems::ALL;
use crate::ecosystems::base_lines::{BaseLines, FoundLines, LineSearch};
use crate::ecosystems::check_modules::{Loaders, is_of_package, is_of_tasks, search_for_loaders};
use crate::ecosystems::dependencies;
use crate::ecosystems::documents;
use crate::ecosystems::imports::{self, Imports};
use crate::ecosystems::javascript;
use crate::ecosystems::jvm;
use crate::ecosystems::languages::{have_same_language, is_hidden_or_installed, language_of};
use crate::ecosystems::loaded::{
    BESIDE_MODULES, LoadedName, is_imported_in, lists_directory, lists_files, loads_test,
    names_commands, names_end_of, search_for_listing, search_for_loads, search_for_tests,
};
use crate::ecosystems::looking::{looks_only, reads_content, searches};
use crate::ecosystems::markers::{
    ASKING, MODULE_PATHS, Markers, TextKind, goes_on_without, is_listed, put_first,
};
use crate::ecosystems::native;
use crate::ecosystems::nested::{self, RootProject};
use crate::ecosystems::new_file::{Include, KnownCode, LOADING, NewModule};
use crate::ecosystems::paths::{
    bare_name, below, directories_above, directory_of, file_name, have_same_extension, inside,
    names_kind, place_of_word, resolved, words_of_kind,
};
use crate::ecosystems::python;
use crate::ecosystems::run_files::NamedFiles;
use crate::ecosystems::scripts::{files_of_oracle, lines_of, markers};
use crate::ecosystems::test_data;
use crate::ecosystems::touched::{is_named, is_test_path, source_of};
use crate::error::Result;
use crate::git::ignored::ignored;
use crate::git::repo::{Repo, follow_links};
use crate::git::seed::find::{SeedPatterns, Seeds};
use crate::model::changed_file::ChangedFile;
use crate::model::declared_source::DeclaredSource;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::path::TreePath;
use crate::model::pattern::matches;
use crate::model::shell::commands_of;

/// The maximum number of files for which one search looks, because a search takes longer the more
/// names it looks for.
const MOST_NAMES: usize = 100;

/// Fewer files than this are read to compare their lengths.
const MOST_MEASURED: usize = 20;

/// The maximum number of files in a chain in which each loads the next one, from a check to its
/// module.
const MOST_LEVELS: usize = 8;

/// The names of directories in which projects of Python keep their modules.
const DIRECTORIES_OF_SOURCES: [&str; 3] = ["lib", "python", "src"];

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
    /// The project in the root, if it is known to be all that the commands test.
    only_tested: Option<RootProject>,
    /// The names in the oracle's commands, and in the files that the commands run.
    markers: OnceLock<Markers>,
    code: OnceLock<KnownCode>,
    /// The patterns of test files in settings of the tests.
    tests: OnceLock<Vec<String>>,
    /// The texts of the files of tasks in the root.
    tasks: OnceLock<Vec<String>>,
    links: OnceLock<Vec<(String, String)>>,
    /// The patterns of the seeds, with the checkout that has the seeds; and the seeds, once they
    /// have been found.
    seeds: (Option<SeedPatterns>, OnceLock<Seeds>),
    /// The source files examined so far, by path. The value is true if the file is part of the
    /// product.
    products: Mutex<BTreeMap<String, bool>>,
    /// The modules examined so far, by path. The value is true if only tests compile the module.
    for_tests: Mutex<BTreeMap<String, bool>>,
    /// The modules that files of Python load, by the path of the file.
    imports: Mutex<BTreeMap<String, Arc<Imports>>>,
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
            only_tested: nested::only_tested(oracle),
            markers: OnceLock::new(),
            code: OnceLock::new(),
            tests: OnceLock::new(),
            tasks: OnceLock::new(),
            links: OnceLock::new(),
            seeds: Default::default(),
            products: Mutex::default(),
            for_tests: Mutex::default(),
            imports: Mutex::default(),
            module_paths: OnceLock::new(),
        })
    }

    /// The same project, in which each tree is judged with these seeds.
    pub fn with_seeds(mut self, patterns: Option<SeedPatterns>) -> BaseProject<'t> {
        self.seeds.0 = patterns;
        self
    }

    /// True if a path that the base does not have takes the place of a seed, or lies in a directory
    /// of seeds.
    pub fn takes_place_of_seed(&self, path: &str) -> Result<bool> {
        let (Some(patterns), found) = &self.seeds else { return Ok(false) };
        let new = TreePath::new(self.new_parts(path)?.next().unwrap_or(path));
        // A cheap check first: finding all seeds takes long, and most new paths do not exist in the
        // checkout.
        if fs::symlink_metadata(new.on_disk(&patterns.root)).is_err() {
            return Ok(false);
        }
        let seeds = once(found, || Seeds::find(self.repo, patterns, &self.commit))?;
        Ok(seeds.hold(&new))
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
        Ok(is_source || is_free && !code.is_known)
    }

    /// True if the base has a shell script that is no test, and that the commands do not run.
    fn is_of_shell(&self) -> Result<bool> {
        Ok(self.code()?.has_sources_like("a.sh", |script| !self.scripts.contains(script)))
    }

    /// True if an interpreter may find a new file by its name alone. This is so if it looks for
    /// modules in the base's innermost directory above the file: commands run in that directory,
    /// put it on a search path, or run a script in it.
    fn is_looked_up(&self, path: &str) -> Result<bool> {
        let directory = self.code()?.nearest_directory(path);
        if directory.is_empty() {
            return Ok(false);
        }
        let markers = self.markers()?;
        let found = self.lines.find(self.search_for_new(iter::once(path))?)?;
        // Code of the product may speak of search paths for other reasons.
        let found = found.iter().filter(|(file, _)| {
            language_of(file).is_none() || is_test_path(file) || self.scripts.contains(file)
        });
        let found = found.map(|(_, line)| line);
        let lines: Vec<&str> =
            markers.lines.iter().map(|(_, line)| line).chain(found).map(String::as_str).collect();
        let runs_script = self.scripts.iter().any(|script| {
            directory_of(script) == directory
                && have_same_extension(script, path)
                && markers.has_word(script)
        });
        Ok(runs_script || put_first(&lines, directory))
    }

    /// True if the path of a new file can change what the base's tools do, whatever the file
    /// contains.
    fn has_effect_by_name(&self, path: &str) -> Result<bool> {
        // A build may write to an ignored path, and the new file would replace the build's output.
        if self.ignores(path)? || self.is_marker(path)? {
            return Ok(true);
        }
        if language_of(path).is_some_and(|l| l.looks_modules_up()) && self.is_loaded(path)? {
            return Ok(true);
        }
        if native::ECOSYSTEM.has_source(path) && self.is_included_for_another(path)? {
            return Ok(true);
        }
        let code = self.code()?;
        // A tool that searches for a file may find the new file before a file of the base.
        if self.markers()?.searches_before(path, |file| code.files.contains(file)) {
            return Ok(true);
        }
        // If no code loads the files beside it, a tool finds them by their directory.
        let mut beside = code.files_beside(path).peekable();
        Ok(LoadedName::of(path).is_some()
            && beside.peek().is_some()
            && beside.all(|file| LoadedName::of(file).is_some())
            && self.loads_none(code.files_beside(path))?)
    }

    /// True if the commands, or the files that they run, name a new or removed file, or a new
    /// directory above it. Also true if a test, or a program that the commands run, asks whether
    /// the file or such a directory exists.
    pub fn is_marker(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        let markers = self.markers()?;
        let lines = self.lines.find(self.search_for_new(iter::once(path))?)?;
        Ok(self.new_parts(path)?.any(|new| {
            let is_marker = markers.names(new, |pattern| {
                !documents::is_document_by_name(path)
                    && code.has_sources_like(path, |p| is_listed(pattern, p))
            });
            is_marker
                || lines.iter().any(|(test, line)| {
                    (is_test_path(test) || self.scripts.contains(test) && is_code(test))
                        && names_end_of(test, line, new)
                        && goes_on_without(&self.text(test), line)
                })
        }))
    }

    /// The text of a file of the base; empty if it cannot be read.
    fn text(&self, path: &str) -> String {
        let bytes = self.repo.bytes_at(&self.commit, path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The paths of the new directories above a new file, then its own path.
    fn new_parts<'p>(
        &self,
        path: &'p str,
    ) -> Result<impl Iterator<Item = &'p str> + use<'_, 'p, 't>> {
        let code = self.code()?;
        let above = directories_above(path);
        Ok(above.filter(|directory| !code.has_directory(directory)).chain([path]))
    }

    /// The search for lines that ask whether one of these new files exists, or that load one.
    fn search_for_new<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<LineSearch> {
        let code = self.code()?;
        // A line counts only if it is in a test or in a script that the commands run.
        if code.test_names.is_empty() && self.scripts.is_empty() {
            return Ok(LineSearch::default());
        }
        let mut names = BTreeSet::new();
        for path in paths {
            for new in self.new_parts(path)? {
                let stem = bare_name(new);
                names.extend([stem.to_owned(), stem.replace('_', "")]);
            }
            let module = NewModule::of(path, code);
            names.extend(module.names().map(str::to_owned));
        }
        names.remove("");
        // A short name occurs in very many lines, so a line must also contain one of these words.
        let beside = ASKING.split('|').chain(LOADING).chain(["include"]).collect();
        let words = MODULE_PATHS.iter().map(|text| (*text).to_owned()).collect();
        Ok(LineSearch { words, pairs: names, beside, any_case: true })
    }

    fn markers(&self) -> Result<&Markers> {
        once(&self.markers, || markers(self.repo, &self.commit, &self.commands, &self.scripts))
    }

    /// True if a test of the base, or a script that the commands run, loads a module that the new
    /// file may replace.
    fn is_loaded(&self, path: &str) -> Result<bool> {
        let module = NewModule::of(path, self.code()?);
        let lines = self.lines.find(self.search_for_new(iter::once(path))?)?;
        Ok(lines.iter().any(|(other, line)| {
            (is_test_path(other) || self.scripts.contains(other)) && module.is_loaded_in(line)
        }))
    }

    /// True if a compiler may find a new header in place of another one that a line of the base
    /// includes.
    fn is_included_for_another(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        let lines = self.lines.find(self.search_for_new(iter::once(path))?)?;
        Ok(lines.iter().any(|(file, line)| {
            let include = Include::of(line);
            include.is_some_and(|include| code.is_included_for_another(path, file, &include))
        }))
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

    /// True if source of the product loads this file of the base, so that only its name is that of
    /// a test.
    pub fn is_test_by_name_alone(&self, path: &str) -> Result<bool> {
        let mut lines = self.lines.find(search_for_tests(iter::once(path)))?;
        lines.retain(|(other, line)| !self.runs(other) && !self.is_for_tests(other, line));
        Ok(loads_test(path, &lines))
    }

    /// Finds out which of these files of the base are part of the product. Data of tests is not
    /// part of it, and neither is a check, which only recipes or settings run.
    fn look_for_uses<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<()> {
        let mut known = self.products.lock();
        let paths: Vec<&str> = paths
            .filter(|path| language_of(path).is_some() && !known.contains_key(*path))
            .filter(|path| !is_test_path(path) && !is_hidden_or_installed(path))
            .collect();
        for paths in paths.chunks(MOST_NAMES) {
            let files: Vec<LoadedName<'_>> =
                paths.iter().filter_map(|path| LoadedName::of(path)).collect();
            // A later search for some of these words reads only the lines that this search finds.
            let mut all = search_for_loads(&files);
            all.words.extend(paths.iter().map(|path| file_name(path).to_owned()));
            self.lines.find(all)?;
            let lines = self.lines.find(LineSearch {
                pairs: files.iter().map(|file| file.module.to_owned()).collect(),
                beside: BESIDE_MODULES.to_vec(),
                ..LineSearch::of(paths.iter().map(|path| file_name(path).to_owned()))
            })?;
            let unloaded = self.unloaded(files, &lines)?;
            let unloaded: BTreeSet<&str> = unloaded.iter().map(|file| file.path).collect();
            let modules = self.modules_of_checks(paths)?;
            for path in paths {
                let is_product = (!unloaded.contains(path) || self.is_found_by_its_class(path)?)
                    && !modules.contains(*path)
                    && !self.is_of_package_for_checks(path)?
                    && !self.is_test_data(path, &lines)?;
                known.insert((*path).to_owned(), is_product);
            }
        }
        Ok(())
    }

    /// True if a framework loads a file of the product when a class of its name is used, so that no
    /// code names it. The file declares such a class, code loads another file in its directory or in
    /// one above, and no file other than code names this one.
    fn is_found_by_its_class(&self, path: &str) -> Result<bool> {
        let Some(file) = LoadedName::of(path) else { return Ok(false) };
        if file.constant.is_none() || file.declaration_in(&self.text(path)).is_none() {
            return Ok(false);
        }
        let lines = self.lines.find(search_for_loads(slice::from_ref(&file)))?;
        // Linters list the files that they leave out, in YAML.
        let is_named = lines.iter().any(|(other, line)| {
            !is_code(other)
                && !other.ends_with(".yml")
                && !documents::is_only_read(other)
                && file.is_named_by(other, line)
        });
        if is_named {
            return Ok(false);
        }
        let code = self.code()?;
        for directory in directories_above(path) {
            if !self.loads_none(code.files_beside(&inside(directory, file_name(path))))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if a JavaScript file belongs to a package of the workspace that only settings and
    /// commands load or run, by the name of the package or of one of its programs. Such a package
    /// configures or runs the checks of the others. It has no tests of its own.
    fn is_of_package_for_checks(&self, path: &str) -> Result<bool> {
        let files = &self.code()?.files;
        let root = || self.text("package.json");
        if !javascript::ECOSYSTEM.has_source(path)
            || !javascript::is_workspace(|file| files.contains(file), root)
        {
            return Ok(false);
        }
        let manifest = nested::manifest_above(path, files.iter().map(String::as_str));
        let Some(manifest) = manifest.filter(|file| file_name(file) == "package.json") else {
            return Ok(false);
        };
        let directory = directory_of(manifest);
        // A package with tests of its own is a product, even if the others use it as a tool.
        if files.iter().any(|file| below(file, directory).is_some() && is_test_path(file)) {
            return Ok(false);
        }
        let names = javascript::names_of_package(&self.text(manifest));
        let mut is_used = false;
        for (other, line) in self.lines.find(LineSearch::of(names.iter().cloned()))? {
            if below(&other, directory).is_some() || self.runs(&other) {
                continue;
            }
            let mut named = names.iter().filter(|name| place_of_word(&line, name).is_some());
            if names_commands(&other) {
                is_used |= named.any(|name| javascript::uses_package(&other, &line, name));
            } else if language_of(&other).is_some() && named.next().is_some() {
                return Ok(false);
            }
        }
        Ok(is_used)
    }

    /// Returns the files among these that are modules of checks, and not source. Neither code of
    /// the product nor a test loads such a file, directly or through other files.
    fn modules_of_checks(&self, paths: &[&str]) -> Result<BTreeSet<String>> {
        let mut loaders = Loaders::default();
        let mut next: BTreeSet<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let tasks = self.texts_of_tasks()?;
        for _ in 0..MOST_LEVELS {
            next.retain(|path| self.may_be_of_check(path, tasks));
            if next.is_empty() || next.len() > MOST_NAMES {
                break;
            }
            let mut lines = FoundLines::new();
            for search in search_for_loaders(&next) {
                lines.extend(self.lines.find(search)?);
            }
            lines.retain(|(other, line)| !self.is_for_tests(other, line));
            next = loaders.add(
                &next,
                &lines,
                |file, other, line| self.loads(file, other, line, false),
                |path| self.runs(path),
            );
        }
        let ends: Vec<LoadedName<'_>> = loaders.ends().filter_map(LoadedName::of).collect();
        let unloaded = self.unloaded(ends, &[])?.into_iter();
        let unloaded: Vec<String> = unloaded.map(|file| file.path.to_owned()).collect();
        for path in unloaded {
            if !self.is_found_by_its_class(&path)? {
                loaders.add_check(path);
            }
        }
        let found = loaders.parts_of_checks(None);
        if !paths.iter().any(|path| found.contains(path)) {
            return Ok(BTreeSet::new());
        }
        let mut tops = loaders.directories();
        for top in tops.clone() {
            if self.has_own_tests(top)? || !self.has_product_outside(top)? {
                tops.remove(top);
            }
        }
        let mut parts = loaders.parts_of_checks(Some(&tops));
        // If the product is elsewhere, a file that only checks load is none, in whatever directory.
        for path in paths.iter().filter(|path| found.contains(**path)) {
            if !parts.contains(path) && self.has_product_besides(&found, path)? {
                parts.insert(path);
            }
        }
        Ok(parts.into_iter().map(str::to_owned).collect())
    }

    /// True if tests load a source file in the language of `path` that is none of `parts`, or if an
    /// entry point names one.
    fn has_product_besides(&self, parts: &BTreeSet<&str>, path: &str) -> Result<bool> {
        let files = self.code()?.files.iter().map(String::as_str).filter(|file| {
            have_same_language(path, file)
                && !is_test_path(file)
                && !is_hidden_or_installed(file)
                && !parts.contains(file)
                && !self.runs(file)
        });
        let files: Vec<LoadedName<'_>> = files.filter_map(LoadedName::of).collect();
        let step = files.len() / MOST_NAMES + 1;
        let files: Vec<LoadedName<'_>> = files.into_iter().step_by(step).collect();
        let lines = self.lines.find(search_for_loads(&files))?;
        Ok(lines.iter().any(|(test, line)| {
            (is_test_path(test) || names_commands(test))
                && files.iter().any(|file| self.loads(file, test, line, false))
        }))
    }

    /// The texts of the files of tasks in the root.
    fn texts_of_tasks(&self) -> Result<&[String]> {
        let texts = once(&self.tasks, || {
            let files = self.code()?.files.iter();
            let tasks = files.filter(|file| !file.contains('/') && is_of_tasks(file));
            Ok(tasks.map(|file| self.text(file)).collect())
        })?;
        Ok(texts)
    }

    /// True if a source file may be a module of a check, as far as can be told without a search. In a
    /// language in which code imports directories, the commands run a file in the same outermost
    /// directory, or a file of tasks names that directory. `tasks` are the texts of the files of
    /// tasks in the root.
    fn may_be_of_check(&self, path: &str, tasks: &[String]) -> bool {
        let is_beside_check = path.split_once('/').is_some_and(|(top, _)| {
            self.scripts.iter().any(|script| below(script, top).is_some())
                || tasks.iter().any(|text| text.contains(&format!("{top}/")))
        });
        !is_test_path(path)
            && (LoadedName::of(path).is_some() || is_of_package(path) && is_beside_check)
    }

    /// True if a directory has tests that need not load what they test, because they are in the
    /// same package.
    fn has_own_tests(&self, directory: &str) -> Result<bool> {
        let is_inside = |file: &str| below(file, directory).is_some();
        let mut files = self.code()?.files.iter().filter(|file| is_inside(file));
        let is_built = files.any(|file| {
            is_of_package(file) || language_of(file).is_some_and(|own| own.declares_modules())
        });
        let marks = ["#[test]", "::test]"].map(str::to_owned);
        Ok(is_built
            && (self.has_tests_beside(&inside(directory, "x"))?
                || self.lines.find(LineSearch::of(marks))?.iter().any(|(file, _)| is_inside(file))))
    }

    /// True if the product has source outside of a directory of checks. The build finds such source
    /// by itself, tests load it, or the checks load it and are not the larger part of the code.
    fn has_product_outside(&self, directory: &str) -> Result<bool> {
        let files = self.code()?.files.iter().map(String::as_str);
        let sources = files.filter(|file| {
            language_of(file).is_some()
                && !is_test_path(file)
                && !is_hidden_or_installed(file)
                && !names_commands(file)
        });
        let (inside, outside): (Vec<&str>, Vec<&str>) =
            sources.partition(|file| below(file, directory).is_some());
        let outside: Vec<&str> = outside.into_iter().filter(|file| !self.runs(file)).collect();
        let some = outside.iter().copied().step_by(outside.len() / MOST_NAMES + 1);
        let search = LineSearch {
            pairs: some.clone().map(|file| bare_name(file).to_owned()).collect(),
            beside: BESIDE_MODULES.to_vec(),
            ..LineSearch::of(some.clone().map(|file| file_name(file).to_owned()))
        };
        let mut lines = self.lines.find(search)?;
        // A few files are compared by their length.
        let length = |files: &[&str]| files.iter().map(|file| self.text(file).len()).sum::<usize>();
        let is_smaller = inside.len() <= outside.len()
            || inside.len() < MOST_MEASURED && length(&inside) <= length(&outside);
        lines.retain(|(other, _)| {
            is_test_path(other) || below(other, directory).is_some() && is_smaller
        });
        Ok(outside.iter().any(|file| LoadedName::of(file).is_none() && file.contains('/'))
            || lines.iter().any(|(other, line)| {
                some.clone().any(|file| {
                    is_imported_in(other, line, file)
                        || LoadedName::of(file).is_some_and(|f| self.loads(&f, other, line, false))
                })
            }))
    }

    /// True if no code of the base loads any of these files.
    fn loads_none<'f>(&self, files: impl Iterator<Item = &'f str>) -> Result<bool> {
        let files: Vec<LoadedName<'_>> =
            files.filter_map(LoadedName::of).take(MOST_NAMES).collect();
        if files.is_empty() {
            return Ok(true);
        }
        // In a directory of the product, one of the first files decides.
        let lines = self.lines.find(search_for_loads(&files))?;
        if files.iter().any(|file| self.is_loaded_by(file, &lines)) {
            return Ok(false);
        }
        let number = files.len();
        Ok(self.unloaded(files, &[])?.len() == number)
    }

    /// True if a line of another file of the base loads `file`, or names it as a part of the
    /// product. A line that is compiled only for tests does not count.
    fn loads(&self, file: &LoadedName<'_>, other: &str, line: &str, is_run: bool) -> bool {
        (file.is_loaded_in(other, line, is_run) && self.is_in_code(other, line)
            || file.may_be_imported_in(other, line) && self.imports(file.path, other)
            || file.may_be_meant_in(other, line)
                && file.is_meant_in(&self.text(file.path), &self.text(other)))
            && !self.is_for_tests(other, line)
            && (file_name(other).contains('.')
                || is_test_path(other)
                || names_commands(other)
                || self.text(other).starts_with("#!"))
            && self.entry_points_in(other).is_none_or(|mut texts| {
                // A text with the path of another file does not mean this one.
                texts.retain(|text| {
                    let path = resolved(directory_of(other), text).unwrap_or_default();
                    path == file.path || self.code().is_ok_and(|code| !code.files.contains(&path))
                });
                file.is_in_texts(&texts)
            })
    }

    /// True if the code of `other` imports the module of Python at `path`.
    fn imports(&self, path: &str, other: &str) -> bool {
        let known = self.imports.lock().get(other).cloned();
        let imports = known.unwrap_or_else(|| {
            let imports = Arc::new(Imports::of(other, &self.text(other)));
            self.imports.lock().insert(other.to_owned(), Arc::clone(&imports));
            imports
        });
        imports.load(path, |directory| {
            directory.is_empty() || self.searches_modules_in(directory, other).unwrap_or(true)
        })
    }

    /// True if Python looks for the modules that `other` imports in `directory`: in a directory above
    /// it or beside a manifest, in the directory of sources of such a one, or in one that a search path
    /// lists. A package is none of them.
    fn searches_modules_in(&self, directory: &str, other: &str) -> Result<bool> {
        let files = &self.code()?.files;
        if files.contains(&inside(directory, python::ECOSYSTEM.package_file)) {
            return Ok(false);
        }
        let has_sources = DIRECTORIES_OF_SOURCES.contains(&file_name(directory));
        let project = if has_sources { directory_of(directory) } else { directory };
        let is_project = below(other, project).is_some()
            || python::MANIFESTS.iter().any(|name| files.contains(&inside(project, name)));
        if is_project {
            return Ok(true);
        }
        let lines = once(&self.module_paths, || {
            let words = MODULE_PATHS.iter().map(|text| (*text).to_owned());
            let found = self.lines.find(LineSearch { any_case: true, ..LineSearch::of(words) })?;
            let found = found.into_iter().map(|(_, line)| line);
            let commands = self.markers()?.lines.iter().map(|(_, line)| line.clone());
            Ok(found.chain(commands).collect())
        })?;
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        Ok(put_first(&lines, directory))
    }

    /// True if a line of `other` is not in a document of Python's code.
    fn is_in_code(&self, other: &str, line: &str) -> bool {
        !python::ECOSYSTEM.has_source(other) || imports::is_in_code(&self.text(other), line)
    }

    /// The texts of a manifest that name parts of the product. `None` for other files, and for
    /// manifests in which any value may name such a part.
    fn entry_points_in(&self, manifest: &str) -> Option<Vec<String>> {
        let name = file_name(manifest);
        let find = ALL.iter().find_map(|ecosystem| ecosystem.entry_points_of(name))?;
        let lines = &self.markers().ok()?.lines;
        let is_task = |name: &str| {
            let words = |line: &str| line.split_whitespace().any(|word| is_name_of(word, name));
            self.commands.iter().any(|line| words(line))
                || lines.iter().any(|(_, line)| words(line))
        };
        find(&self.text(manifest), &is_task)
    }

    /// True if the commands run this file of the base, and the file is not a test.
    pub fn runs(&self, path: &str) -> bool {
        !is_test_path(path) && is_named(path, &self.scripts)
    }

    /// Returns the files of `sought` that no code of the base loads. `lines` are lines of the base
    /// that may load one of them; the others are searched for.
    fn unloaded<'p>(
        &self,
        mut sought: Vec<LoadedName<'p>>,
        lines: &[(String, String)],
    ) -> Result<Vec<LoadedName<'p>>> {
        let drop_found = |sought: &mut Vec<LoadedName<'p>>, lines: &[(String, String)]| {
            sought.retain(|file| !self.is_loaded_by(file, lines));
        };
        drop_found(&mut sought, lines);
        // The next searches are needed only for files that none of `lines` loads.
        if !sought.is_empty() {
            let more = self.lines.find(search_for_loads(&sought))?;
            drop_found(&mut sought, &more);
        }
        let constants = sought.iter().filter_map(|file| file.constant.clone());
        let constants = LineSearch { any_case: true, ..LineSearch::of(constants) };
        drop_found(&mut sought, &self.lines.find(constants)?);
        if !sought.is_empty() {
            // Code may list the files of a directory, and load each of them.
            let lines = self.lines.find(search_for_listing(&sought))?;
            sought.retain(|file| {
                !lines.iter().any(|(other, line)| {
                    file.is_directory_named_in(other, line)
                        && self.is_of_program(other)
                        && lists_directory(&self.text(other), line)
                })
            });
            // A file that a shell line names counts as part of the product. A file that the line
            // also runs never gets here, because it decides which commands run.
            let lines = &self.markers()?.lines;
            let shell = lines.iter().filter(|(kind, _)| *kind != TextKind::Program);
            sought.retain(|file| {
                !shell.clone().any(|(_, line)| {
                    (file.is_named_in(line) || file.is_imported_by_shell(line))
                        && (!only_checks(line) || searches_files(line))
                })
            });
        }
        Ok(sought)
    }

    /// True if one of these lines of the base loads a file.
    fn is_loaded_by(&self, file: &LoadedName<'_>, lines: &[(String, String)]) -> bool {
        lines.iter().any(|(other, line)| {
            (file.is_loaded_in(other, line, false)
                || file.may_be_imported_in(other, line)
                || file.may_be_meant_in(other, line))
                && self.loads(file, other, line, self.runs(other))
                // A test that lists a directory does not show that its files are source.
                && !(file.is_one_of_all_in(other, line) && lists_files(&self.text(other)))
        })
    }

    /// True for a file that the commands do not run, and that is no setting: its code may load parts of
    /// the product.
    fn is_of_program(&self, path: &str) -> bool {
        !self.runs(path) && !names_commands(path)
    }

    /// True if a line of a source file of the base belongs to an item, a module or a file that is
    /// compiled only for tests.
    fn is_for_tests(&self, path: &str, line: &str) -> bool {
        let Some(source) = source_of(path).filter(|source| source.inner_tests.is_some()) else {
            return false;
        };
        source.lines_for_tests(&self.text(path)).contains(line.trim())
            || self.is_module_for_tests(path)
    }

    /// True if each line that declares a file as a module is compiled only for tests: by itself, or
    /// because its whole module is. That module lies in a directory above, or is the main file of
    /// this directory, so the recursion ends at the root of the crate.
    fn is_module_for_tests(&self, path: &str) -> bool {
        if !language_of(path).is_some_and(|language| language.declares_modules()) {
            return false;
        }
        let (Some(file), Ok(code)) = (LoadedName::of(path), self.code()) else { return false };
        if let Some(known) = self.for_tests.lock().get(path) {
            return *known;
        }
        let mut is_declared = false;
        let mut others = file.declaring_files().into_iter();
        let is_for_tests = others.all(|other| {
            let is_there = other != path && code.files.contains(&other);
            let text = if is_there { self.text(&other) } else { String::new() };
            let mut lines = text.lines().filter(|line| file.is_declared_in(line)).peekable();
            is_declared |= lines.peek().is_some();
            lines.all(|line| self.is_for_tests(&other, line))
        });
        self.for_tests.lock().insert(path.to_owned(), is_declared && is_for_tests);
        is_declared && is_for_tests
    }

    /// True if tests read a source file as data, and nothing else in the base uses it. `lines` are
    /// the lines that contain the file's name.
    fn is_test_data(&self, path: &str, lines: &[(String, String)]) -> Result<bool> {
        let is_read = |other: &str, line: &str| {
            line.contains(file_name(path))
                && test_data::is_read_in(other, line, path, self.runs(other))
        };
        let mut tests = lines.iter().filter(|(test, line)| is_read(test, line)).peekable();
        let is_used = |lines: &[(String, String)]| {
            lines.iter().any(|(other, line)| {
                test_data::is_used_in(other, line, path) && !is_read(other, line)
            })
        };
        if tests.peek().is_none() || self.begins_crate(path)? || is_used(lines) {
            return Ok(false);
        }
        let more = self.lines.find(LineSearch::of(test_data::words_of_use(path)))?;
        // A data file of the tests may contain the name although no test reads the file.
        let is_code = tests.all(|(test, _)| test_data::is_data(test))
            && more.iter().any(|(test, line)| is_imported_in(test, line, path));
        Ok(!is_code && !is_used(&more))
    }

    /// True if Cargo compiles a file as the root of a crate, by its place in a package.
    fn begins_crate(&self, path: &str) -> Result<bool> {
        let is_rust = language_of(path).is_some_and(|language| language.declares_modules());
        if !is_rust || LoadedName::of(path).is_some() {
            return Ok(false);
        }
        let directory = directory_of(path);
        let sources = directory.strip_suffix("/bin").unwrap_or(directory);
        let package = sources.strip_suffix("src").filter(|p| p.is_empty() || p.ends_with('/'));
        let code = self.code()?;
        Ok(package.is_some_and(|package| code.files.contains(&format!("{package}Cargo.toml"))))
    }

    /// Returns the other paths that lead to `path` through symbolic links of the base.
    pub fn names_by_links(&self, path: &str) -> Result<Vec<String>> {
        let mut names = vec![path.to_owned()];
        // A link may be in a directory to which another link leads, so each path found is searched
        // for, too. If links form a circle, `MOST_NAMES` ends the search.
        let mut at = 0;
        while at < names.len().min(MOST_NAMES) {
            for (link, target) in self.links()? {
                let Some(rest) = names[at].strip_prefix(target.as_str()) else { continue };
                let name = format!("{link}{rest}");
                if (rest.is_empty() || rest.starts_with('/')) && !names.contains(&name) {
                    names.push(name);
                }
            }
            at += 1;
        }
        names.remove(0);
        Ok(names)
    }

    /// The symbolic links of the base, each with its target in the base.
    fn links(&self) -> Result<&[(String, String)]> {
        let links = &self.code()?.links;
        let found = once(&self.links, || {
            let roots = [self.repo.work_tree(), self.repo.main_worktree()];
            let roots = roots.into_iter().flatten().filter_map(|root| fs::canonicalize(root).ok());
            let mut roots: BTreeSet<String> =
                roots.filter_map(|root| root.into_os_string().into_string().ok()).collect();
            if roots.is_empty() {
                // A bare repository has no work tree.
                roots.insert(String::new());
            }
            let pairs = roots.iter().flat_map(|root| links.iter().map(move |link| (root, link)));
            let found = pairs.filter_map(|(root, link)| {
                let target = self.target_of(link, links, root).transpose()?;
                Some(target.map(|target| (link.clone(), target)))
            });
            found.collect()
        });
        Ok(found?)
    }

    /// True if the base has tests in the directory of this path, or below it.
    pub fn has_tests_beside(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        let mut paths = code.files.iter().chain(&code.submodules);
        Ok(paths.any(|file| below(file, directory_of(path)).is_some() && is_test_path(file)))
    }

    /// True if a file is a document that neither a file of the base nor a command uses. A new
    /// document may have an effect by its name alone, because a test may look for it, or because it
    /// may be a target of make. So a new document does not count if commands or tests look for it,
    /// or if its directory is new and the base names the directory.
    pub fn is_document(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        if !documents::is_document_by_name(path)
            || code.programs.contains(path)
            || !code.files.contains(path) && self.is_marker(path)?
            || !code.has_directory(directory_of(path)) && self.names_new_directory(path)?
        {
            return Ok(false);
        }
        Ok(!self.is_used(path, false)?)
    }

    /// True if no line of the base or of the commands can read a new file:
    /// * No line names the file, its kind, or a directory above it.
    /// * git does not ignore the file.
    /// * No test, link, seed or configured pattern gives the path a meaning.
    ///
    /// A tool may still find such a file by itself, as its settings. But no command reads it as
    /// data.
    pub fn reads_no_new(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        let above = directories_above(path).chain([path]);
        let names: Vec<String> = above.map(file_name).map(str::to_owned).collect();
        let has_own_place = code.test_names.contains(file_name(path))
            || code.is_among_tests(path)
            || !self.names_by_links(path)?.is_empty()
            || self.takes_place_of_seed(path)?
            || self.excludes(path);
        Ok(!has_own_place
            && !self.ignores(path)?
            && !self.is_marker(path)?
            && !self.names_kind_of(path)?
            && !self.any_line(names.clone(), |_, line| {
                names.iter().any(|name| place_of_word(line, name).is_some())
            })?)
    }

    /// True if a line of the base or of the commands names a new directory above a new file. In
    /// code of the product, the name counts only beside a quote or a slash, because comments may
    /// have the same word.
    fn names_new_directory(&self, path: &str) -> Result<bool> {
        let above = self.new_parts(path)?.filter(|part| *part != path);
        let names: Vec<String> = above.map(file_name).map(str::to_owned).collect();
        let beside: &[char] = &['"', '\'', '`', '/'];
        self.any_line(names.clone(), |file, line| {
            let is_product = file.is_some_and(|file| is_code(file) && !is_test_path(file));
            names.iter().any(|name| match is_product {
                false => place_of_word(line, name).is_some(),
                true => line.match_indices(name.as_str()).any(|(at, _)| {
                    line[..at].ends_with(beside) || line[at + name.len()..].starts_with(beside)
                }),
            })
        })
    }

    /// True if a line of the base or of the commands names files by the extension of `path` alone,
    /// as in `*.yml`, `"yml"` or `"{name}.yml"`.
    fn names_kind_of(&self, path: &str) -> Result<bool> {
        self.any_line(words_of_kind(path), |_, line| names_kind(line, path))
    }

    /// True if `is` is true for one of these lines:
    /// * the lines of the base that contain one of these words, except the lines of documents;
    /// * the lines of the commands and of the files that they run. For these, `is` gets no file.
    fn any_line(
        &self,
        words: Vec<String>,
        is: impl Fn(Option<&str>, &str) -> bool,
    ) -> Result<bool> {
        let found = self.lines.find(LineSearch::of(words))?;
        let of_commands = self.markers()?.lines.iter().any(|(_, line)| is(None, line));
        Ok(of_commands
            || found
                .iter()
                .any(|(file, line)| !documents::is_only_read(file) && is(Some(file), line)))
    }

    /// True if a manifest or lock file is only data of tests. Its directory has no source of the
    /// file's ecosystem. Tests, their settings or the commands name the file, or list its
    /// directory.
    pub fn is_manifest_as_data(&self, path: &str) -> Result<bool> {
        let Some(ecosystem) = dependencies::ecosystem_of(file_name(path)) else { return Ok(false) };
        let code = self.code()?;
        let directory = code.nearest_directory(path);
        let is_source =
            |file: &String| below(file, directory).is_some() && ecosystem.has_source(file);
        let has_source = code.files.iter().chain(&code.submodules).any(is_source);
        Ok(!directory.is_empty() && !has_source && self.is_used(path, true)?)
    }

    /// True if a line of the base or of the commands uses the document at `path`. With
    /// `is_manifest`, true if such a line uses the manifest at `path` as data.
    fn is_used(&self, path: &str, is_manifest: bool) -> Result<bool> {
        let words = documents::words_for(path);
        self.any_line(words.clone(), |file, line| {
            // A line of a settings file counts as a line of a test if it contains `test`, e.g. in
            // the name of the tests' directory.
            let tests = file
                .is_none_or(|file| is_test_path(file) || !is_code(file) && line.contains("test"));
            let runs = if is_manifest { tests } else { file.is_none_or(is_code) };
            let checks = file.is_none() && only_checks(line);
            let names_directory = documents::lists(line, path);
            let lists = if tests {
                names_directory || !checks && names_kind(line, path)
            } else {
                // The directory may be in a constant, so any line of the code counts.
                !is_manifest
                    && names_directory
                    && file.is_some_and(|file| is_code(file) && lists_files(&self.text(file)))
            };
            words.iter().any(|word| line.contains(word.as_str()))
                && !(is_manifest && dependencies::are_installed_in(line))
                && (documents::is_use(line, &words, runs) || lists)
        })
    }

    /// The code of the base, as far as its paths show.
    pub fn code(&self) -> Result<&KnownCode> {
        once(&self.code, || {
            let paths = self.repo.paths_and_modes_of(&self.commit)?;
            Ok(KnownCode::of(paths, |path| self.scripts.contains(path)))
        })
    }

    fn ignores(&self, path: &str) -> Result<bool> {
        let path = TreePath::new(path.as_bytes());
        Ok(!ignored(self.repo, &self.commit, iter::once(&path))?.is_empty())
    }

    /// Returns the path to which a symbolic link of the base leads, directly or through other
    /// links. `root` is the absolute path of the base. In a sealed world, this is the path of the
    /// checkout.
    fn target_of(
        &self,
        link: &str,
        links: &BTreeSet<String>,
        root: &str,
    ) -> Result<Option<String>> {
        let below = format!("{root}/");
        follow_links(root, link, |at| match at.strip_prefix(&below) {
            Some(inside) if links.contains(inside) => self.repo.link_at(&self.commit, inside),
            Some(_) => Ok(None),
            None => {
                Ok(fs::read_link(at).ok().and_then(|to| to.into_os_string().into_string().ok()))
            }
        })
    }
}

/// True if a file is a test, or source in a language other than the shell's. A shell script is left
/// out, because it runs only if another file calls it.
fn is_code(path: &str) -> bool {
    is_test_path(path) || language_of(path).is_some_and(|language| !language.is_shell())
}

/// True if all commands of a line are formatters, linters and the like, which read no text of a
/// document.
fn only_checks(line: &str) -> bool {
    let commands = commands_of(line);
    let mut programs =
        commands.iter().map(|command| command.words.first().map_or("", |word| &word.text));
    !commands.is_empty()
        && programs.all(|program| looks_only(program, "") && !reads_content(program))
}

/// True if a word of a command is the name of a program or of a part of a package, perhaps as the
/// value of an option: `calc/register` is the part `./register` of the package `calc`.
fn is_name_of(word: &str, name: &str) -> bool {
    let word = word.rsplit('=').next().unwrap_or(word);
    word == name
        || !word.starts_with(['.', '/'])
            && name.strip_prefix('.').is_some_and(|end| end.len() > 1 && word.ends_with(end))
}

/// True if a command of a line searches files for a text.
fn searches_files(line: &str) -> bool {
    let commands = commands_of(line);
    commands.iter().filter_map(|command| command.words.first()).any(|word| searches(&word.text))
}

/// The value of a cell, which the first call sets by `find`.
fn once<T>(cell: &OnceLock<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(found) = cell.get() {
        return Ok(found);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}
