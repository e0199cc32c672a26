//! Which source files of a base are part of the product. Checks and their modules are not, and
//! neither is data of tests.
use std::collections::BTreeSet;
use std::iter;

use crate::ecosystems::base_lines::{FoundLines, LineSearch};
use crate::ecosystems::base_project::{BaseProject, MOST_NAMES, is_code, once};
use crate::ecosystems::languages::{have_same_language, is_hidden_or_installed, language_of};
use crate::ecosystems::loading::check_modules::{
    Loaders, is_of_package, is_of_tasks, search_for_loaders,
};
use crate::ecosystems::loading::lines_of_files::lines_of_files;
use crate::ecosystems::loading::settings::names_commands;
use crate::ecosystems::loading::tests_of_product::{loads_test, search_for_tests};
use crate::ecosystems::loading::{BESIDE_MODULES, LoadedName, is_imported_in, search_for_loads};
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::nested;
use crate::ecosystems::paths::{
    bare_name, below, directories_above, directory_of, file_name, inside, place_of_word,
};
use crate::ecosystems::touched::is_test_path;
use crate::ecosystems::{ALL, documents, javascript};
use crate::error::Result;

/// Fewer files than this are read to compare their lengths.
const MOST_MEASURED: usize = 20;

/// The maximum number of files in a chain in which each loads the next one, from a check to its
/// module.
const MOST_LEVELS: usize = 8;

impl BaseProject<'_> {
    /// True if source of the product loads this file of the base, so that only its name is that of
    /// a test.
    pub fn is_test_by_name_alone(&self, path: &str) -> Result<bool> {
        let mut lines = self.lines.find(search_for_tests(iter::once(path)))?;
        lines.retain(|(other, line)| !self.runs(other) && !self.is_for_tests(other, line));
        Ok(loads_test(path, &lines))
    }

    /// Finds out which of these files of the base are part of the product. Data of tests is not
    /// part of it, and neither is a check, which only recipes or settings run.
    pub(super) fn look_for_uses<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<()> {
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
            let by_class = self.found_by_their_classes(unloaded.iter().copied())?;
            let modules = self.modules_of_checks(paths)?;
            for path in paths {
                let is_product = (!unloaded.contains(path) || by_class.contains(path))
                    && !modules.contains(*path)
                    && !self.is_of_package_for_checks(path)?
                    && !self.is_test_data(path, &lines)?;
                known.insert((*path).to_owned(), is_product);
            }
        }
        Ok(())
    }

    /// Returns the files among these that a framework loads when a class of their name is used, so that
    /// no code names them. Such a file declares the class, or its build compiles all files. Code loads
    /// another file in its directory or in one above, and neither settings nor commands name this one.
    fn found_by_their_classes<'p>(
        &self,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<BTreeSet<&'p str>> {
        let files = paths.filter_map(LoadedName::of).filter(|file| {
            let text = self.text(file.path);
            file.constant.is_some()
                && (file.declaration_in(&text).is_some() || file.is_compiled(&text))
        });
        let files: Vec<LoadedName<'_>> = files.collect();
        // Without such a file, the settings need not be read.
        if files.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lines = self.lines.find(search_for_loads(&files))?;
        let lines = lines_of_files(files.iter().map(LoadedName::texts), &lines)?;
        let settings = self.lines_of_settings()?;
        let settings = lines_of_files(files.iter().map(LoadedName::texts), settings)?;
        let mut found = BTreeSet::new();
        for ((file, lines), settings) in files.iter().zip(lines).zip(settings) {
            // Linters list the files that they leave out, in YAML.
            let is_named = lines.iter().any(|(other, line)| {
                !is_code(other)
                    && !other.ends_with(".yml")
                    && !documents::is_only_read(other)
                    && file.is_named_by(other, line)
            });
            let is_set = settings.iter().any(|(other, line)| match is_code(other) {
                // A task may have the name of the module: `check: ["verify"]` in mix.exs.
                true => quoted_words(line).any(|text| text.rsplit('.').next() == Some(file.module)),
                false => file.is_named_in_settings(line),
            });
            if is_named || is_set {
                continue;
            }
            for directory in directories_above(file.path) {
                if !self.loads_none_beside(&inside(directory, file_name(file.path)))? {
                    found.insert(file.path);
                    break;
                }
            }
        }
        Ok(found)
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
            loaders.add(
                &next,
                &lines,
                |file, other, line| self.loads(file, other, line, false),
                |path| self.runs(path),
            )?;
            let open = loaders.open(paths);
            next = open.into_iter().filter(|path| !loaders.has(path)).map(str::to_owned).collect();
        }
        let open = loaders.open(paths);
        let ends = open.into_iter().filter(|path| loaders.is_end(path));
        let ends: Vec<LoadedName<'_>> = ends.filter_map(LoadedName::of).collect();
        let unloaded = self.unloaded(ends, &[])?;
        let unloaded: Vec<String> = unloaded.iter().map(|file| file.path.to_owned()).collect();
        let by_class = self.found_by_their_classes(unloaded.iter().map(String::as_str))?;
        for path in unloaded.iter().filter(|path| !by_class.contains(path.as_str())) {
            loaders.add_check(path.clone());
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
        let lines = lines_of_files(files.iter().map(LoadedName::texts), &lines)?;
        Ok(files.iter().zip(lines).any(|(file, lines)| {
            lines.iter().any(|(test, line)| {
                (is_test_path(test) || names_commands(test)) && self.loads(file, test, line, false)
            })
        }))
    }

    /// The lines of the settings in the root and in hidden directories, each with its file, and the
    /// lines of the commands, with no file. Code counts only if it decides which commands run. Settings
    /// in YAML and lock files are left out.
    fn lines_of_settings(&self) -> Result<&[(String, String)]> {
        let lines = once(&self.settings, || {
            let settings = self.code()?.files.iter().filter(|file| {
                (!file.contains('/') || file.starts_with('.'))
                    && (names_commands(file) || !is_code(file))
                    && !file.ends_with(".yml")
                    && !ALL.iter().any(|ecosystem| ecosystem.lock_files.contains(&file_name(file)))
                    && !documents::is_only_read(file)
            });
            let commands = self.markers()?.lines.iter();
            let mut lines: FoundLines =
                commands.map(|(_, line)| (String::new(), line.clone())).collect();
            for file in settings {
                let text = self.text(file);
                lines.extend(text.lines().map(|line| (file.clone(), line.to_owned())));
            }
            Ok(lines)
        })?;
        Ok(lines)
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
}
