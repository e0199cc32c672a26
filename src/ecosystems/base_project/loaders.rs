//! Which files of a base load a source file.
use std::sync::Arc;

use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::base_project::{BaseProject, MOST_NAMES, is_code, once, only_checks};
use crate::ecosystems::languages::{is_hidden_or_installed, language_of};
use crate::ecosystems::loading::imports::{self, Imports};
use crate::ecosystems::loading::lines_of_files::lines_of_files;
use crate::ecosystems::loading::listing::{lists_directory, lists_files, search_for_listing};
use crate::ecosystems::loading::settings::{lists_product, names_commands};
use crate::ecosystems::loading::{LoadedName, search_for_loads};
use crate::ecosystems::looking::{reads_content, searches};
use crate::ecosystems::markers::{MODULE_PATHS, TextKind, put_first};
use crate::ecosystems::paths::{
    below, directory_of, file_name, inside, resolved, stem_and_extension,
};
use crate::ecosystems::touched::{is_test_path, source_of};
use crate::ecosystems::{ALL, python};
use crate::error::Result;
use crate::model::shell::commands_of;

/// The names of directories in which projects of Python keep their modules.
const DIRECTORIES_OF_SOURCES: [&str; 3] = ["lib", "python", "src"];

impl BaseProject<'_> {
    /// True if no code of the base loads any of the other files that are in the directory of `path` and
    /// have its extension.
    pub(super) fn loads_none_beside(&self, path: &str) -> Result<bool> {
        let files_beside = self.code()?.files_beside(path);
        // A file of the base is none of the others, so its group is not that of a new file.
        if self.code()?.files.contains(path) {
            return self.loads_none(files_beside);
        }
        let group = (directory_of(path).to_owned(), stem_and_extension(path).1.to_owned());
        let known = self.unloaded_groups.lock().get(&group).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let is_unloaded = self.loads_none(files_beside)?;
        self.unloaded_groups.lock().insert(group, is_unloaded);
        Ok(is_unloaded)
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
        let lines = lines_of_files(files.iter().map(LoadedName::texts), &lines)?;
        if files.iter().zip(&lines).any(|(file, lines)| self.is_loaded_by(file, lines)) {
            return Ok(false);
        }
        let number = files.len();
        Ok(self.unloaded(files, &[])?.len() == number)
    }

    /// True if a line of another file of the base loads `file`, or names it as a part of the
    /// product. A line that is compiled only for tests does not count.
    pub(super) fn loads(
        &self,
        file: &LoadedName<'_>,
        other: &str,
        line: &str,
        is_run: bool,
    ) -> bool {
        (file.is_loaded_in(other, line, is_run) && self.is_in_code(other, line)
            || file.may_be_imported_in(other, line)
                && self.imports(file.path, other)
                && file.has_code_in(other)
            || file.may_be_meant_in(other, line)
                && file.is_meant_in(&self.text(file.path), &self.text(other), line))
            && !self.is_for_tests(other, line)
            && (file_name(other).contains('.')
                || is_test_path(other)
                || names_commands(other)
                || self.is_program(other))
            && self.entry_points_in(other).is_none_or(|mut texts| {
                // A text with the path of another file does not mean this one.
                texts.retain(|text| {
                    let path = resolved(directory_of(other), text).unwrap_or_default();
                    path == file.path || self.code().is_ok_and(|code| !code.files.contains(&path))
                });
                file.is_in_texts(&texts)
            })
    }

    /// True for a program without an extension that a test, a manifest or other code names. A program
    /// that nothing names may be a check, which developers run.
    fn is_program(&self, path: &str) -> bool {
        if !self.text(path).starts_with("#!") {
            return false;
        }
        let name = file_name(path);
        let named = [format!("/{name}"), format!("\"{name}\""), format!("'{name}'")];
        // A manifest may name the directory of all programs.
        let directory = file_name(directory_of(path));
        let listed = [format!("{directory}/"), format!("\"{directory}\"")];
        let listed = if directory.is_empty() { Vec::new() } else { listed.to_vec() };
        let lines = self.lines.find(LineSearch::of(named.iter().chain(&listed).cloned()));
        let has = |line: &str, texts: &[String]| texts.iter().any(|text| line.contains(text));
        lines.is_ok_and(|lines| {
            lines.iter().any(|(other, line)| {
                if other == path || is_hidden_or_installed(other) {
                    return false;
                }
                if !names_commands(other) {
                    return is_code(other) && has(line, &named);
                }
                lists_product(other)
                    && match self.entry_points_in(other) {
                        Some(texts) => texts.iter().any(|text| file_name(text) == name),
                        None => has(line, &named) || has(line, &listed),
                    }
            })
        })
    }

    /// True if the code of `other` imports the module of Python or Ruby at `path`.
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

    /// True if an interpreter looks for the modules that `other` imports in `directory`: in a directory
    /// above it or beside a manifest, in the directory of sources of such a one, or in one that a search
    /// path lists. A package of Python is none of them.
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

    /// Returns the files of `sought` that no code of the base loads. `lines` are lines of the base
    /// that may load one of them; the others are searched for.
    pub(super) fn unloaded<'p>(
        &self,
        mut sought: Vec<LoadedName<'p>>,
        lines: &[(String, String)],
    ) -> Result<Vec<LoadedName<'p>>> {
        sought = self.not_loaded_by(sought, lines)?;
        // The next searches are needed only for files that none of `lines` loads.
        if !sought.is_empty() {
            let more = self.lines.find(search_for_loads(&sought))?;
            sought = self.not_loaded_by(sought, &more)?;
        }
        let constants = sought.iter().filter_map(|file| file.constant.clone());
        let constants = LineSearch { any_case: true, ..LineSearch::of(constants) };
        sought = self.not_loaded_by(sought, &self.lines.find(constants)?)?;
        if !sought.is_empty() {
            // Code may list the files of a directory, and load each of them.
            let lines = self.lines.find(search_for_listing(&sought))?;
            sought.retain(|file| {
                !lines.iter().any(|(other, line)| {
                    file.is_directory_named_in(other, line)
                        && self.is_of_program(other)
                        && lists_directory(&self.text(other), line, stem_and_extension(file.path).1)
                })
            });
            // A file that a shell line names counts as part of the product. A file that the line
            // also runs never gets here, because it decides which commands run.
            let lines = &self.markers()?.lines;
            let shell = lines
                .iter()
                .filter(|(kind, line)| *kind != TextKind::Program && !self.lints.contains(line));
            sought.retain(|file| {
                !shell.clone().any(|(kind, line)| {
                    file.is_imported_by_shell(line)
                        || file.is_named_in(line) && uses_files(*kind, line)
                })
            });
        }
        Ok(sought)
    }

    /// The files among these that none of these lines of the base loads.
    fn not_loaded_by<'p>(
        &self,
        files: Vec<LoadedName<'p>>,
        lines: &[(String, String)],
    ) -> Result<Vec<LoadedName<'p>>> {
        let lines = lines_of_files(files.iter().map(LoadedName::texts), lines)?;
        let pairs = files.into_iter().zip(lines);
        let unloaded = pairs.filter(|(file, lines)| !self.is_loaded_by(file, lines));
        Ok(unloaded.map(|(file, _)| file).collect())
    }

    /// True if one of these lines of the base loads a file.
    fn is_loaded_by(&self, file: &LoadedName<'_>, lines: &[&(String, String)]) -> bool {
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
    pub(super) fn is_for_tests(&self, path: &str, line: &str) -> bool {
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
}

/// True if a word of a command is the name of a program or of a part of a package, perhaps as the
/// value of an option: `calc/register` is the part `./register` of the package `calc`.
fn is_name_of(word: &str, name: &str) -> bool {
    let word = word.rsplit('=').next().unwrap_or(word);
    word == name
        || !word.starts_with(['.', '/'])
            && name.strip_prefix('.').is_some_and(|end| end.len() > 1 && word.ends_with(end))
}

/// True if a line of commands shows that the files that it names are used, and not only checked. In
/// recipes, which may have goals of many kinds, a command must search the files or write their
/// content to another file.
fn uses_files(kind: TextKind, line: &str) -> bool {
    let commands = commands_of(line);
    let mut programs = commands.iter().filter_map(|command| command.words.first());
    match kind {
        TextKind::Make => programs
            .any(|word| searches(&word.text) || reads_content(&word.text) && line.contains('>')),
        _ => !only_checks(line) || programs.any(|word| searches(&word.text)),
    }
}
