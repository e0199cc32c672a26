//! The languages of a base: where its source files are, and whether a new file can only be source.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::native;
use crate::ecosystems::new_file::{KnownCode, NewFile};
use crate::ecosystems::paths::{
    FOR_DIRECTORIES, directories_above, directory_of, file_name, have_same_extension, inside,
};
use crate::ecosystems::touched::is_test_path;
use crate::ecosystems::{ALL, installed};
use crate::git::mode::EntryMode;

/// The language of a source file.
#[derive(Clone, Copy)]
pub struct Language {
    ecosystem: &'static Ecosystem,
    /// The extension that identifies the language.
    name: &'static str,
}

impl Language {
    /// True if the language looks for a module by its name in several directories.
    pub fn looks_modules_up(self) -> bool {
        matches!(self.name, "py" | "rb" | "pm")
    }

    /// The program that prints the directories of installed libraries, and its arguments. `None` if
    /// libraries of the language do not share the first part of a module's name, as `Test::More` and
    /// `Test::Deep` do.
    pub fn lists_libraries(self) -> Option<(&'static str, [&'static str; 2])> {
        match self.name {
            "pm" => Some(("perl", ["-e", "print map { qq($_\\n) } @INC"])),
            "rb" => Some((
                "ruby",
                ["-e", "puts $:, Gem.path.flat_map { |path| Dir[path + '/gems/*/lib'] }"],
            )),
            _ => None,
        }
    }

    /// True if both languages belong to one ecosystem, so that each can load files of the other.
    pub fn is_related_to(self, other: Language) -> bool {
        std::ptr::eq(self.ecosystem, other.ecosystem)
    }

    /// True if a source file of the language is part of a program only if code names the file. In
    /// other languages the build finds all source files by itself.
    pub fn loads_files_by_name(self) -> bool {
        self.is_shell()
            || matches!(self.name, "ex" | "js" | "lua" | "php" | "pl" | "pm" | "py" | "rb" | "rs")
    }

    /// True if a file is part of a program only if another file declares it as a module.
    pub fn declares_modules(self) -> bool {
        self.name == "rs"
    }

    /// True if code imports modules by names that tell the paths of files (`loading/imports.rs`).
    pub fn imports_modules(self) -> bool {
        matches!(self.name, "py" | "rb")
    }

    /// True if code loads a module by the name of its file, wherever the file is.
    pub fn names_modules(self) -> bool {
        self.is_shell() || matches!(self.name, "lua" | "pl" | "pm" | "rs")
    }

    /// True if programs in this language are usually bundled from the one file with which they begin.
    pub fn is_bundled(self) -> bool {
        self.name == "js"
    }

    /// True if code imports a directory by its path, with all source files directly in it.
    pub fn imports_directories(self) -> bool {
        self.name == "go"
    }

    /// True if code can load a file by the name of the constant or class that the file defines.
    pub fn loads_files_by_constants(self) -> bool {
        matches!(self.name, "ex" | "php" | "rb")
    }

    /// True if the build compiles all files in directories `lib`, whatever code names.
    pub fn compiles_libraries(self) -> bool {
        self.name == "ex"
    }

    pub fn is_shell(self) -> bool {
        self.ecosystem.other_extensions.contains(&"sh")
    }
}

/// The language of a file by its name; `None` if it is not a source file of a known language.
pub fn language_of(path: &str) -> Option<Language> {
    let (_, own) = file_name(path).rsplit_once('.')?;
    ALL.iter().find_map(|ecosystem| {
        let of_family = if ecosystem.extensions.contains(&own) {
            ecosystem.extensions.first()
        } else {
            ecosystem.other_extensions.iter().find(|extension| **extension == own)
        };
        of_family.map(|name| Language { ecosystem, name })
    })
}

/// True if both files are source in the same language.
pub fn have_same_language(one: &str, other: &str) -> bool {
    language_of(one).zip(language_of(other)).is_some_and(|(one, other)| one.name == other.name)
}

/// The extension that identifies the language of a source file; `None` for other files, and for
/// files that are hidden or in a directory of installed dependencies.
pub fn source_extension(path: &str) -> Option<&'static str> {
    language_of(path).filter(|_| !is_hidden_or_installed(path)).map(|language| language.name)
}

/// The names of files that set a test runner up. The directory of such a file contains only tests
/// and helpers of tests.
const SET_UP: [&str; 4] =
    ["rails_helper.rb", "spec_helper.rb", "test_helper.exs", "test_helper.rb"];

impl KnownCode {
    /// Finds the code among the paths of a base. `is_run` is true for files that the oracle's
    /// commands run: such a file does not count as source of its language.
    pub fn of(paths: Vec<(String, EntryMode)>, is_run: impl Fn(&str) -> bool) -> KnownCode {
        let mut code = KnownCode::default();
        for (path, mode) in paths {
            let directory = directory_of(&path);
            let mut above = directory;
            while !above.is_empty() && !code.directories.contains(above) {
                code.directories.insert(above.to_owned());
                above = directory_of(above);
            }
            if mode == EntryMode::Submodule {
                code.submodules.insert(path);
                continue;
            }
            if mode == EntryMode::Link {
                code.links.insert(path.clone());
            }
            if mode == EntryMode::Executable && !file_name(&path).contains('.') {
                code.programs.insert(path.clone());
            }
            let is_decisive = || ALL.iter().any(|ecosystem| ecosystem.is_decisive(&path));
            code.is_known |= shows_project(file_name(&path));
            let is_test = is_test_path(&path);
            if is_test {
                code.test_names.insert(file_name(&path).to_owned());
            }
            if let Some(language) = language_of(&path)
                && !is_run(&path)
                && !is_decisive()
            {
                // Shell scripts do not show the language of a project, because any project may have
                // some.
                code.is_known |= !language.is_shell();
                if !is_test {
                    code.languages.insert(language.name);
                    code.sources.insert((directory.to_owned(), language.name));
                }
            }
            code.files.insert(path);
        }
        code
    }

    /// The other source files of the base that are in the directory of `path` and have its
    /// extension.
    pub fn files_beside<'s>(&'s self, path: &'s str) -> impl Iterator<Item = &'s str> {
        let directory = directory_of(path);
        let start = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let files = self.files.range(start.clone()..).map(String::as_str);
        let below = files.take_while(move |file| file.starts_with(&start));
        below.filter(move |file| {
            *file != path
                && directory_of(file) == directory
                && have_same_extension(file, path)
                && !is_test_path(file)
        })
    }

    /// True if `is` is true for a source file of the base that has the extension of `path`.
    pub fn has_sources_like(&self, path: &str, is: impl Fn(&str) -> bool) -> bool {
        let mut files = self.files.iter();
        files.any(|file| have_same_extension(file, path) && !is_test_path(file) && is(file))
    }

    /// True if a directory above a path has a file of [`SET_UP`], or is named `features` and has a
    /// `.feature` file. All files below that directory are tests or helpers of tests. The search
    /// ends at a directory named `src` or `lib`, because the files in it may be part of the
    /// product.
    pub fn is_among_tests(&self, path: &str) -> bool {
        let mut above = directories_above(path)
            .take_while(|directory| !matches!(file_name(directory), "src" | "lib"));
        above.any(|directory| {
            let start = format!("{directory}/");
            let mut below = self.files.range(start.clone()..).take_while(|f| f.starts_with(&start));
            SET_UP.iter().any(|name| self.files.contains(&format!("{start}{name}")))
                || file_name(directory) == "features" && below.any(|f| f.ends_with(".feature"))
        })
    }

    /// True if a new file can only be source. `is_looked_up` is true if commands look for modules
    /// by name in the nearest directory of the base.
    pub fn is_source_if_new(&self, path: &str, language: Language, is_looked_up: bool) -> bool {
        let nearest = self.nearest_directory(path);
        let language_name = language.name;
        let file = NewFile { code: self, path, nearest, language: language_name, is_looked_up };
        (language.ecosystem.is_source_if_new)(&file)
    }
}

/// True if a file of this name shows a known kind of project. A Makefile shows none.
fn shows_project(name: &str) -> bool {
    ALL.iter().filter(|ecosystem| !ecosystem.recipe_runners.contains(&"make")).any(|ecosystem| {
        ecosystem.project_files.contains(&name) || ecosystem.manifest(name).is_some()
    })
}

/// The directories in the root in which projects of C keep code of other projects: their names in
/// lower case, without `-`, `_` and a final `s`. The names are from the list in GitHub's linguist
/// (`vendor.yml`), and from Meson.
const COPIED: [&str; 7] =
    ["3rdparty", "dep", "extern", "external", "subproject", "thirdparty", "vendor"];

/// True if a path is hidden, or in a directory of dependencies that are installed or copied into
/// the repository. Such a path is never source: it may be a test framework.
pub fn is_hidden_or_installed(path: &str) -> bool {
    let is_installed = |part: &str| installed().any(|place| place.directory == part);
    let outermost = path.split_once('/').map_or("", |(outermost, _)| outermost);
    let outermost = outermost.to_lowercase().replace(['-', '_'], "");
    path.split('/').any(|part| part.starts_with('.') || is_installed(part))
        || native::ECOSYSTEM.has_source(path) && COPIED.contains(&outermost.trim_end_matches('s'))
}

/// The source files in whose place type checkers may read the declaration at `path`; none for a
/// file that is no declaration.
pub fn modules_declared_by(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for ecosystem in ALL {
        let mut stems = ecosystem.declarations.iter().filter_map(|end| path.strip_suffix(end));
        let Some(stem) = stems.find_map(|stem| stem.strip_suffix('.')) else { continue };
        let is_for_directory = FOR_DIRECTORIES.contains(&file_name(stem));
        let module = if is_for_directory { directory_of(stem) } else { stem };
        let inner = FOR_DIRECTORIES.iter().map(|name| inside(module, name));
        for module in inner.chain([module.to_owned()]) {
            found.extend(ecosystem.extensions.iter().map(|own| format!("{module}.{own}")));
        }
    }
    found
}
