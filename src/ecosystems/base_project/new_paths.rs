//! The effects of the path of a new file, whatever the file contains: tools may find it by its name.
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::iter;
use std::path::Path;

use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::base_project::{BaseProject, is_code, once};
use crate::ecosystems::languages::language_of;
use crate::ecosystems::loading::LoadedName;
use crate::ecosystems::loading::check_modules::is_of_tasks;
use crate::ecosystems::loading::javascript_paths::{
    REPLACING_PACKAGES, SEARCHED_FOR_PACKAGES, is_in_lock, loaded_package, module_path,
};
use crate::ecosystems::loading::listing::{LISTING, selected_names};
use crate::ecosystems::loading::path_ends::names_end_of;
use crate::ecosystems::loading::settings::names_commands;
use crate::ecosystems::markers::{
    ASKING, MODULE_PATHS, Markers, TextKind, goes_on_without, is_listed, put_first, quoted_words,
};
use crate::ecosystems::new_file::{Include, LOADING, NewModule};
use crate::ecosystems::paths::{
    bare_name, directories_above, directory_of, file_name, have_same_extension, is_in_name,
    names_kind, place_of_word, plain, stem_and_extension, words_of_kind,
};
use crate::ecosystems::touched::is_test_path;
use crate::ecosystems::{ALL, documents, javascript, native};
use crate::error::Result;
use crate::git::ignored::ignored;
use crate::git::seed::find::Seeds;
use crate::model::path::TreePath;
use crate::process;

/// The ends of the directories in which Django and Mix find commands by the names of their files.
const DIRECTORIES_OF_COMMANDS: [&str; 2] = ["management/commands", "mix/tasks"];

/// The variable in which systems find programs. The names of other search paths end like it.
const PATH: &str = "PATH";

impl<'t> BaseProject<'t> {
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

    /// True if an interpreter may find a new file by its name alone. This is so if it looks for
    /// modules in the base's innermost directory above the file: commands run in that directory,
    /// put it on a search path, or run a script in it.
    pub(super) fn is_looked_up(&self, path: &str) -> Result<bool> {
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

    /// True if a system may find a new file in place of a program or a library of the system: a line of
    /// the base or of the commands sets a search path (`PATH=$PWD/bin:$PATH`, `LD_LIBRARY_PATH=lib`), or
    /// the user's own path leads into the checkout. The names of programs are many, so each name
    /// counts that has no extension, or one of which the base has no file.
    pub(super) fn is_found_as_program(&self, path: &str) -> Result<bool> {
        let name = file_name(path);
        let files = &self.code()?.files;
        let is_of_known_kind = language_of(path).is_some()
            || name.contains('.') && files.iter().any(|file| have_same_extension(file, path));
        if is_of_known_kind {
            return Ok(false);
        }
        Ok(*once(&self.finds_programs, || {
            let lines = self.lines.find(LineSearch::of([PATH.to_owned()]))?;
            let commands = self.markers()?.lines.iter().map(|(_, line)| line);
            let mut lines = lines.iter().map(|(_, line)| line).chain(commands);
            Ok(lines.any(|line| sets_search_path(line)) || self.is_on_users_path())
        })?)
    }

    /// True if the user's search path has a directory in the checkout, or a relative one.
    fn is_on_users_path(&self) -> bool {
        let roots = [self.repo.work_tree(), self.repo.main_worktree()];
        let roots: Vec<&Path> = roots.into_iter().flatten().collect();
        let users = env::var_os(PATH).unwrap_or_default();
        env::split_paths(&users)
            .any(|place| place.is_relative() || roots.iter().any(|root| place.starts_with(root)))
    }

    /// True if the path of a new file can change what the base's tools do, whatever the file
    /// contains.
    pub(super) fn has_effect_by_name(&self, path: &str) -> Result<bool> {
        // A build may write to an ignored path, and the new file would replace the build's output.
        if self.ignores(path)? || self.is_marker(path)? {
            return Ok(true);
        }
        if language_of(path).is_some_and(|l| l.looks_modules_up()) && self.is_loaded(path)? {
            return Ok(true);
        }
        if self.is_in_namespace_of_others(path)?
            || self.is_found_as_package(path)?
            || self.is_found_as_command(path)?
        {
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
            && self.loads_none_beside(path)?)
    }

    /// True if the commands, or the files that they run, name a new or removed file, or a new
    /// directory above it. Also true if a test, or a program that the commands run, asks whether
    /// the file or such a directory exists, or lists it by a pattern.
    pub fn is_marker(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        let markers = self.markers()?;
        let lines = self.lines.find(self.search_for_new(iter::once(path))?)?;
        let is_open = |pattern: &str| {
            !documents::is_document_by_name(path)
                && code.has_sources_like(path, |file| is_listed(pattern, file))
        };
        let (listings, selected) = self.listings_of_tests()?;
        Ok(self.new_parts(path)?.any(|new| {
            markers.names(new, is_open)
                || listings.names(new, is_open)
                || selected.iter().any(|pattern| is_listed(pattern, new) && !is_open(pattern))
                || lines.iter().any(|(test, line)| {
                    self.is_test_or_run(test)
                        && (names_end_of(test, line, new)
                            || Markers::of_line(line).names(new, is_open))
                        && goes_on_without(&self.text(test), line)
                })
        }))
    }

    /// The patterns in the lines with which tests, settings in code, and programs that the commands
    /// run list files; and the names by which these texts select files.
    fn listings_of_tests(&self) -> Result<&(Markers, BTreeSet<String>)> {
        once(&self.listings, || {
            let lines = self.lines.find(LineSearch::of(LISTING.map(str::to_owned)))?.into_iter();
            let lines = lines.filter(|(file, _)| {
                let is_code = language_of(file).is_some() || is_of_tasks(file);
                self.is_test_or_run(file) || names_commands(file) && is_code
            });
            let (files, lines): (BTreeSet<String>, Vec<_>) =
                lines.map(|(file, line)| (file, (line, TextKind::Program))).unzip();
            let selected = files.iter().flat_map(|file| selected_names(&self.text(file)));
            Ok((Markers::of(&lines), selected.collect()))
        })
    }

    /// True for a test, and for a program that the commands run.
    fn is_test_or_run(&self, path: &str) -> bool {
        is_test_path(path) || self.scripts.contains(path) && is_code(path)
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
    pub(super) fn search_for_new<'p>(
        &self,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<LineSearch> {
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

    /// True if a test of the base, or a script that the commands run, loads a module that the new
    /// file may replace.
    fn is_loaded(&self, path: &str) -> Result<bool> {
        let module = NewModule::of(path, self.code()?);
        let lines = self.lines.find(self.search_for_new(iter::once(path))?)?;
        Ok(lines.iter().any(|(other, line)| {
            (is_test_path(other) || self.scripts.contains(other)) && module.is_loaded_in(line)
        }))
    }

    /// True if a new file of JavaScript may be found in place of a package, because settings say where
    /// packages are: a test loads a package of its name, or its directory is such a place, and another
    /// package may load one of its name. If there is a lock file, it must have the package.
    fn is_found_as_package(&self, path: &str) -> Result<bool> {
        if !javascript::ECOSYSTEM.has_source(path) {
            return Ok(false);
        }
        let places = self.lines.find(LineSearch::of(REPLACING_PACKAGES.map(str::to_owned)))?;
        let mut settings =
            places.iter().filter(|(file, _)| names_commands(file) || !is_code(file)).peekable();
        if settings.peek().is_none() {
            return Ok(false);
        }
        let lines = self.lines.find(self.search_for_new(iter::once(path))?)?;
        let lines = lines.iter().filter(|(test, _)| self.is_test_or_run(test));
        let mut packages: BTreeSet<&str> =
            lines.filter_map(|(_, line)| loaded_package(line, path)).collect();
        let module = module_path(path);
        let directory = file_name(directory_of(module));
        let is_place = settings.any(|(file, line)| {
            let text = self.text(file);
            let list = text.split_once(line.as_str()).map_or("", |(_, after)| after);
            let list = format!("{line}\n{}", list.split([']', '}']).next().unwrap_or_default());
            !directory.is_empty()
                && SEARCHED_FOR_PACKAGES.iter().any(|setting| line.contains(setting))
                && quoted_words(&list).any(|word| file_name(plain(word)) == directory)
        });
        packages.extend(is_place.then(|| file_name(module)));
        let locks = javascript::ECOSYSTEM.lock_files;
        let files = self.code()?.files.iter();
        let mut locks = files.filter(|file| locks.contains(&file_name(file))).peekable();
        Ok(!packages.is_empty()
            && (locks.peek().is_none()
                || locks.any(|lock| {
                    let text = self.text(lock);
                    packages.iter().any(|package| is_in_lock(&text, package))
                })))
    }

    /// True if a new file is in a namespace that other libraries share, so that it may be found in place
    /// of one of their modules: `lib/Test/Builder.pm` beside `lib/Test/Calc.pm`. Either such a library
    /// is installed, or a lock file has its name. If the interpreter does not say what is installed,
    /// the namespace counts as shared.
    fn is_in_namespace_of_others(&self, path: &str) -> Result<bool> {
        let Some(language) = language_of(path) else { return Ok(false) };
        let Some((program, arguments)) = language.lists_libraries() else { return Ok(false) };
        let Some(first) = self.code()?.shared_namespace(path) else { return Ok(false) };
        let mut libraries = self.libraries.lock();
        let installed = libraries
            .entry(program)
            .or_insert_with(|| process::lines_of(program, &arguments))
            .as_ref();
        Ok(installed
            .is_none_or(|places| places.iter().any(|at| Path::new(at).join(first).is_dir()))
            || self.may_be_locked(first)?)
    }

    /// True if a lock file of the base has this name of a library.
    fn may_be_locked(&self, name: &str) -> Result<bool> {
        let mut files = self.code()?.files.iter().filter(|file| {
            ALL.iter().any(|ecosystem| ecosystem.lock_files.contains(&file_name(file)))
        });
        Ok(files.any(|lock| place_of_word(&self.text(lock), name).is_some()))
    }

    /// True if a framework finds a new file by the name of a command, in place of a command of its own:
    /// `shop/management/commands/check.py` for `manage.py check`.
    fn is_found_as_command(&self, path: &str) -> Result<bool> {
        let name = file_name(stem_and_extension(path).0);
        let mut lines = self.markers()?.lines.iter();
        Ok(DIRECTORIES_OF_COMMANDS.iter().any(|end| directory_of(path).ends_with(end))
            && lines.any(|(_, line)| place_of_word(line, name).is_some()))
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
    pub(super) fn names_new_directory(&self, path: &str) -> Result<bool> {
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

    fn ignores(&self, path: &str) -> Result<bool> {
        let path = TreePath::new(path.as_bytes());
        Ok(!ignored(self.repo, &self.commit, iter::once(&path))?.is_empty())
    }
}

/// True if a line may set a search path, and not only read one: the name of a variable that ends in
/// `PATH` stands without a sign that takes its value.
fn sets_search_path(line: &str) -> bool {
    line.match_indices(PATH).any(|(at, _)| {
        let before = line[..at].trim_end_matches(is_in_name);
        let is_value = ["$", "${", "$("].iter().any(|sign| before.ends_with(sign));
        !is_value && !line[at + PATH.len()..].starts_with(is_in_name)
    })
}
