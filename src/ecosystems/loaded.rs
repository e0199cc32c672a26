//! The ways in which code loads a source file by its name. A source file that no code loads is not
//! part of the product, whatever runs it: a check, a plugin of a tool, an example.
use std::collections::BTreeSet;
use std::iter;

use crate::ecosystems::ALL;
use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::languages::{
    Language, have_same_language, is_hidden_or_installed, language_of,
};
use crate::ecosystems::manifest::words;
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{
    FOR_DIRECTORIES, bare_name, below, directories_above, directory_of, file_name, inside,
    is_in_name, is_in_path, is_of_word, place_of_word, resolved, stem_and_extension,
};
use crate::ecosystems::test_names::is_in_test_directory;
use crate::ecosystems::touched::is_test_path;
use crate::model::pattern::matches;

/// A line that loads a module by its name contains one of these words.
pub const BESIDE_MODULES: [&str; 11] = [
    MODULE_OPTIONS[0],
    MODULE_OPTIONS[1],
    MODULE_OPTIONS[2],
    "alias",
    "from",
    "import",
    "load",
    DECLARING,
    "require",
    "run_module",
    "use",
];

/// The option with which an interpreter runs a module: `python -m calc`, `["-m", "calc"]`.
const MODULE_OPTIONS: [&str; 3] = ["-m ", "\"-m\"", "'-m'"];

/// Code that lists the files of a directory contains one of these texts.
const LISTING: [&str; 13] = [
    "Dir.children",
    "Dir.entries",
    "Dir.each_child",
    "Dir[",
    "dir(",
    "dirSync(",
    "find_modules",
    "glob",
    "iter_modules",
    "iterdir",
    "read_dir",
    "scandir",
    "walk",
];

/// In C, a line that begins with `#` and one of these words is no comment.
const DIRECTIVES: [&str; 5] = ["define", "el", "if", "include", "pragma"];

/// Characters after a part of a name to which code adds another part.
const BUILDING: [char; 8] = ['"', '\'', '`', '$', '{', '#', '*', '%'];

/// With these words, code names its own directory.
const OWN_DIRECTORY: [&str; 8] = [
    "BASH_SOURCE",
    "FindBin",
    "__DIR__",
    "__FILE__",
    "__dir__",
    "__dirname",
    "__file__",
    "__path__",
];

/// With these texts, code of Python imports modules of its own package, whose names may follow in
/// other lines.
const OWN_PACKAGES: [&str; 2] = ["from . import (", "from .. import ("];

/// A line that builds a name relative to its own package contains one of these texts.
const RELATIVE: [&str; 7] = ["\"./\"", "'./'", "`./${", "\".\"", "'.'", "\".{", "'.{"];

/// Words before the name of a class or a module.
const DECLARES: [&str; 8] =
    ["class", "defmodule", "defprotocol", "enum", "interface", "module", "namespace", "trait"];

/// The Rust keyword that adds a file to a crate; `use` only names what is already in the crate.
const DECLARING: &str = "mod ";

/// If a line of a test loads a module by its name, the line contains one of these words.
const IMPORTS: &str = "
    alias from import import_module include package require require_relative use using";

/// If a line of the product loads a module by its name, the line contains one of these words.
const LOADS: &str = "
    alias autoload from import import_module include load mod require require_relative use";

/// The names of the files with which a Rust program or library begins.
const ROOTS: [&str; 2] = ["lib", "main"];

/// The names of the files in `src` with which a bundler of JavaScript begins.
const ENTRIES: [&str; 2] = ["index", "main"];

/// The names by which code can load a source file.
pub struct LoadedName<'p> {
    pub path: &'p str,
    language: Language,
    /// The module name: the file name without extension, or the directory's name for files such as
    /// `__init__.py`. It names the file only in a line that also has one of [`BESIDE_MODULES`].
    pub module: &'p str,
    /// The last directory and the file name without extension: `a/b`, `a.b` and `a::b`.
    with_directory: [String; 3],
    /// The name of the class or module that the file defines by convention, in lower case. `None`
    /// if code cannot load the file by this name. A search for it must ignore case.
    pub constant: Option<String>,
}

impl<'p> LoadedName<'p> {
    /// The names of the source file at `path`. Returns `None` for a file that is part of the
    /// program even if no code names it. A file in the root is such a file, because it is probably
    /// the program itself. The others are files that the build lists or finds by their directory.
    pub fn of(path: &'p str) -> Option<LoadedName<'p>> {
        let language = language_of(path).filter(|language| language.loads_files_by_name())?;
        let directory = file_name(directory_of(path));
        let stem = bare_name(path);
        // Cargo finds these files by their path.
        if language.declares_modules() && (ROOTS.contains(&stem) || directory == "bin") {
            return None;
        }
        // Bundlers build these files unless they are told others.
        if language.is_bundled()
            && ["", "src"].contains(&directory_of(path))
            && ENTRIES.contains(&stem)
        {
            return None;
        }
        let for_directory = FOR_DIRECTORIES.contains(&stem);
        // A file that stands for the root has no name.
        if for_directory && directory.is_empty() {
            return None;
        }
        let module = if for_directory { directory } else { stem };
        let has_constant = language.loads_files_by_constants()
            || language.names_modules() && module.contains(|c: char| c.is_uppercase());
        let with_directory = ["/", ".", "::"].map(|between| format!("{directory}{between}{stem}"));
        let constant = has_constant.then(|| as_constant(module));
        Some(LoadedName { path, language, module, with_directory, constant })
    }

    /// Search texts: every line that names the file contains at least one of them.
    pub fn searched(&self) -> impl Iterator<Item = String> {
        let directory = directory_of(self.path);
        let above = file_name(directory_of(directory));
        let quoted = ["'", "\""].map(|quote| format!("{quote}{}{quote}", self.module));
        let words = self.words().map(str::to_owned);
        let own = OWN_DIRECTORY.map(str::to_owned);
        // A shell script builds the name of another one with its extension.
        let extension = stem_and_extension(self.path).1;
        let shell = self.language.is_shell().then(|| format!(".{extension}"));
        let paths = self.language.is_bundled().then(|| self.searched_in_javascript());
        let packages = self.language.imports_modules().then_some(OWN_PACKAGES.map(str::to_owned));
        words
            .chain(quoted)
            .chain([format!(" {},", self.module), format!("{above}/{}", file_name(directory))])
            .chain([format!(" {} as ", self.module)])
            .chain(own)
            .chain(shell)
            .chain(paths.into_iter().flatten())
            .chain(packages.into_iter().flatten())
    }

    /// The ends of paths in JavaScript that lead to the file. To the main file of a directory, dots may
    /// lead.
    fn searched_in_javascript(&self) -> impl Iterator<Item = String> {
        let stem = bare_name(self.path);
        let names = [stem, self.module].into_iter();
        let ends = names.flat_map(|name| ["'", "\"", "`", "."].map(|end| format!("/{name}{end}")));
        let dots = ["'.'", "'./'", "'..", "\".\"", "\"./\"", "\".."].map(str::to_owned);
        let dots = (stem == "index").then_some(dots);
        ends.chain(dots.into_iter().flatten())
    }

    /// The texts that name the file in a line, whatever else the line contains.
    fn words(&self) -> impl Iterator<Item = &str> {
        iter::once(file_name(self.path)).chain(self.with_directory.iter().map(String::as_str))
    }

    /// Search texts for lines that build the file's name at run time. Such a line contains one of
    /// these texts and one of [`BESIDE_MODULES`].
    pub fn searched_beside(&self) -> impl Iterator<Item = String> {
        let directory = file_name(directory_of(self.path));
        // The names after `from DIRECTORY import (` are in other lines.
        let package = self.language.imports_modules().then(|| directory.to_owned());
        // Only Perl builds names of modules with colons; in other languages these stand in many lines.
        let built = ["/", ".", "::"].map(|end| format!("{directory}{end}"));
        let built = built.into_iter().take(if self.language.names_modules() { 3 } else { 2 });
        let relative = self.builds_relative_names().then_some(RELATIVE.map(str::to_owned));
        built.chain(package).chain(relative.into_iter().flatten())
    }

    /// True if code of the language may build a name from its own package.
    fn builds_relative_names(&self) -> bool {
        self.language.is_bundled() || self.language.imports_modules()
    }

    /// True if a shell line names the file in a word: by a path that has a directory and ends in
    /// the file's name, or by a pattern with a slash that matches the file's path.
    pub fn is_named_in(&self, line: &str) -> bool {
        let name = file_name(self.path);
        let mut words = line.split(|c: char| c.is_whitespace() || "\"'`();<>|&".contains(c));
        words.any(|word| {
            let pattern = word.trim_start_matches(['.', '/']);
            word == self.path
                || word.strip_suffix(name).is_some_and(|directory| directory.ends_with('/'))
                || pattern.contains('*')
                    && pattern.contains('/')
                    && (matches(pattern, self.path) || matches(&format!("*/{pattern}"), self.path))
        })
    }

    /// True if a line of code other than tests, or of a file of recipes, names the file by its path.
    pub fn is_named_by(&self, other: &str, line: &str) -> bool {
        self.words().any(|word| place_of_word(line, word).is_some())
            && other != self.path
            && !is_comment(line)
            && !is_test_path(other)
    }

    /// True if a line of another file of the base loads the file, or names it as a part of the
    /// product. `is_run` is true if the commands run `other` and `other` is not a test. Such a file
    /// may run the files that it names by path, so a path in it does not count as loading.
    pub fn is_loaded_in(&self, other: &str, line: &str, is_run: bool) -> bool {
        self.is_loaded_by_code(other, line, is_run) && {
            let code = without_comment(line);
            code.len() == line.len() || self.is_loaded_by_code(other, code, is_run)
        }
    }

    /// As [`Self::is_loaded_in`], for a line without a comment at its end.
    fn is_loaded_by_code(&self, other: &str, line: &str, is_run: bool) -> bool {
        // The text of the line decides first, because nearly all pairs of a file and a line end here.
        let is_path_in = self.is_path_in(other, line);
        let is_name_in = self.is_module_in(other, line)
            || self.language.names_modules()
                && quoted_words(line).any(|text| self.is_constant_of(text))
            || self.is_beside_in(other, line)
            || self.is_command_in(other, line)
            || self.is_built_in_shell(other, line);
        let is_in_shell = line.contains(self.module)
            && language_of(other).is_some_and(|language| language.is_shell())
            && self.is_imported_by_shell(line);
        if !(is_path_in || is_name_in || is_in_shell)
            || other == self.path
            || is_comment(line)
            || is_hidden_or_installed(other)
            // A link to a page loads nothing.
            || !is_name_in && line.contains("href=")
        {
            return false;
        }
        let is_test = is_test_path(other);
        if !is_test && names_commands(other) {
            return lists_product(other) && self.words().any(|word| is_value(line, word));
        }
        let language = language_of(other);
        let is_code = language.is_some() || !file_name(other).contains('.');
        let is_same = language.is_none_or(|language| language.is_related_to(self.language));
        is_code && (!is_run && is_path_in || is_same && is_name_in || is_in_shell)
    }

    /// True if a line of another file of the base may be a part of a statement that imports this
    /// module. [`Imports`](crate::ecosystems::imports::Imports) reads the statement.
    pub fn may_be_imported_in(&self, other: &str, line: &str) -> bool {
        let directory = file_name(directory_of(self.path));
        self.language.imports_modules()
            && ([self.module, directory].iter().any(|name| place_of_word(line, name).is_some())
                || OWN_PACKAGES.iter().any(|text| line.contains(text)))
            && self.has_code_in(other)
    }

    /// True if a line of another file of the base has the name of the file's constant.
    /// [`Self::is_meant_in`] tells whether it means this one.
    pub fn may_be_meant_in(&self, other: &str, line: &str) -> bool {
        self.language.loads_files_by_constants()
            && self.is_constant_in(line)
            && !is_comment(line)
            && self.has_code_in(other)
    }

    /// True if code that names the file's constant means this file. `own` is the text of this file,
    /// which must declare the constant. `other` is the text of the code: it may not declare a constant
    /// of this name itself, and must name the module in which this one is.
    pub fn is_meant_in(&self, own: &str, other: &str, line: &str) -> bool {
        let Some(outer) = self.declaration_in(own) else { return false };
        let is_named = match &outer {
            Some(outer) => other.split(|c| !is_in_name(c)).any(|word| word == outer),
            None => true,
        };
        is_named
            && self.declaration_in(other).is_none()
            && self.places_of_constant(line).any(|at| {
                // `Other::Calc` is the constant of another module.
                let before = line[..at].trim_end_matches(['\\', ':', '.', '{', ' ']);
                let module = before.rsplit(|c| !is_in_name(c)).next().unwrap_or_default();
                !line[..at].ends_with(['\\', ':', '.'])
                    || !module.starts_with(char::is_uppercase)
                    || Some(module) == outer.as_deref()
            })
    }

    /// True if another file may load this one by a name, because it is code in a related language.
    fn has_code_in(&self, other: &str) -> bool {
        let is_code = match language_of(other) {
            Some(language) => language.is_related_to(self.language),
            // A file without an extension may be a program.
            None => is_test_path(other) || !file_name(other).contains('.'),
        };
        is_code
            && other != self.path
            && !is_hidden_or_installed(other)
            && (is_test_path(other) || !names_commands(other))
    }

    /// True if a line of a test may load each file of the directory, because it builds the file's
    /// name: `import_module('scenarios.' + name)`.
    pub fn is_one_of_all_in(&self, test: &str, line: &str) -> bool {
        is_test_path(test)
            && self.is_directory_in(test, line)
            && !self.words().any(|word| place_of_word(line, word).is_some())
            && place_of_word(line, self.module).is_none()
    }

    /// True if a line of other code than tests, in a related language, names the file's directory: by a
    /// text with its name, or, in a file of the same directory, as the directory of the code itself.
    pub fn is_directory_named_in(&self, other: &str, line: &str) -> bool {
        let directory = directory_of(self.path);
        let is_of_name =
            |text: &str| text.split(['/', '.', ':']).any(|w| w == file_name(directory));
        let is_named = !is_comment(line) && quoted_words(line).any(is_of_name)
            || directory == directory_of(other) && names_own_directory(line);
        is_named
            && other != self.path
            && language_of(other).is_some_and(|language| language.is_related_to(self.language))
            && !is_test_path(other)
    }

    /// True if a line of settings or of a command names the file in any way: by its path, its module or
    /// its constant.
    pub fn is_named_in_settings(&self, line: &str) -> bool {
        self.words().any(|word| place_of_word(line, word).is_some())
            || place_of_word(line, self.module).is_some()
            || self.is_constant_in(line)
    }

    /// True if the build of the file's language compiles it, and some code in it is in a module: Mix
    /// compiles all files in `lib`.
    pub fn is_compiled(&self, text: &str) -> bool {
        self.language.compiles_libraries()
            && directories_above(self.path).any(|directory| file_name(directory) == "lib")
            && ["defmodule ", "defimpl ", "defprotocol "].iter().any(|word| text.contains(word))
    }

    /// True if one of these texts of a manifest names the file.
    pub fn is_in_texts(&self, texts: &[String]) -> bool {
        texts.iter().any(|text| self.words().any(|word| place_of_word(text, word).is_some()))
    }

    /// The files of Rust that may declare this file as a module: `a.rs` and `a/mod.rs` for `a/b.rs`
    /// and `a/b/mod.rs`, and the root of a crate in the directory.
    pub fn declaring_files(&self) -> [String; 4] {
        let directory = directory_of(self.path);
        let is_directory = bare_name(self.path) == "mod";
        let parent = if is_directory { directory_of(directory) } else { directory };
        let [library, program] = ROOTS.map(|root| inside(parent, &format!("{root}.rs")));
        [format!("{parent}.rs"), inside(parent, "mod.rs"), library, program]
    }

    /// True if a line of one of [`Self::declaring_files`] declares this file as a module.
    pub fn is_declared_in(&self, line: &str) -> bool {
        !is_comment(line) && line.contains(DECLARING) && place_of_word(line, self.module).is_some()
    }

    /// True if a shell line has code that imports the module, as in `python3 -c 'import calc'`, or runs
    /// the module (`python3 -m calc`). An option such as `--import` is no code.
    pub fn is_imported_by_shell(&self, line: &str) -> bool {
        iter::once(self.module).chain(self.with_directory.iter().map(String::as_str)).any(|name| {
            let Some(at) = place_of_word(line, name) else { return false };
            let before = line[..at].trim_end_matches(|c: char| c == ' ' || "('\"./".contains(c));
            let program = before.strip_suffix(" -m").and_then(|rest| rest.rsplit(' ').next());
            program.is_some_and(|program| program.contains("python"))
                || LOADS.split_whitespace().any(|word| {
                    before.strip_suffix(word).is_some_and(|rest| !rest.ends_with(is_in_path))
                })
        })
    }

    /// If `text` declares the constant of the file as a class or a module: the name of the module or
    /// namespace around it, if there is one.
    pub fn declaration_in(&self, text: &str) -> Option<Option<String>> {
        let mut around: Vec<(usize, &str)> = Vec::new();
        for line in text.lines().filter(|line| !is_comment(line)) {
            let code = line.trim_start();
            let indent =
                if code.starts_with("namespace") { 0 } else { 1 + line.len() - code.len() };
            let mut words = code.split(|c: char| c.is_whitespace() || "({;<,".contains(c));
            let is_value =
                code.split_once(" = ").is_some_and(|(name, _)| name.chars().all(is_in_name));
            let Some(name) = (match is_value {
                true => words.next(),
                false => words.find(|word| DECLARES.contains(word)).and_then(|_| words.next()),
            }) else {
                continue;
            };
            let parts: Vec<&str> =
                name.split(|c| !is_in_name(c)).filter(|p| !p.is_empty()).collect();
            let Some((last, outer)) = parts.split_last() else { continue };
            around.retain(|(other, _)| *other < indent);
            if self.is_constant_of(last) {
                let outer = outer.last().copied().or(around.last().map(|(_, name)| *name));
                return Some(outer.map(str::to_owned));
            }
            around.push((indent, last));
        }
        None
    }

    /// True if a word of a line is the constant: `CSRFProtection` for `csrf_protection.ex`.
    pub fn is_constant_in(&self, line: &str) -> bool {
        self.places_of_constant(line).next().is_some()
    }

    /// True if a word is the constant, or if a text in quotes is (`plugin 'Calc'`).
    fn is_constant_of(&self, word: &str) -> bool {
        let Some(constant) = &self.constant else { return false };
        word.starts_with(char::is_uppercase)
            && word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).eq(constant.chars())
    }

    /// The positions of the constant in a line.
    fn places_of_constant<'l>(&self, line: &'l str) -> impl Iterator<Item = usize> + use<'_, 'l> {
        let words = self.constant.iter().flat_map(|_| line.split(|c| !is_in_name(c)));
        let words = words.filter(|word| self.is_constant_of(word));
        words.map(|word| word.as_ptr().addr() - line.as_ptr().addr())
    }

    /// True if a line names the file by its path: by its name, perhaps with the directory. In
    /// JavaScript, a text in quotes has the path.
    fn is_path_in(&self, other: &str, line: &str) -> bool {
        if self.language.is_bundled() {
            let joined = joined_texts(line);
            let loads =
                has_loading_word(line) || names_own_directory(line) || line.contains("<script");
            return quoted_words(line)
                .chain(quoted_words(&joined))
                .any(|text| self.is_path_of_javascript(other, text, loads));
        }
        // Names of modules are read in `imports.rs`.
        let is_imported = self.language.imports_modules()
            && language_of(other).is_some()
            && self.has_code_in(other);
        let number = if is_imported { 1 } else { usize::MAX };
        self.words().take(number).any(|word| match word == file_name(self.path) {
            true => self.is_named_here(line, word),
            false => place_of_word(line, word).is_some(),
        })
    }

    /// True if a line has this word, and not below another directory: `vendor/calc.py` and
    /// `vendor.calc` are other files than `lib/calc.py`.
    fn is_named_here(&self, line: &str, word: &str) -> bool {
        let Some(at) = place_of_word(line, word) else { return false };
        let Some(before) = line[..at].strip_suffix(['/', '.']) else {
            // A message may have the name of a file among its words.
            return !self.language.imports_modules()
                || !quoted_words(line)
                    .any(|text| text.contains(' ') && place_of_word(text, word).is_some());
        };
        let above = before.rsplit(|c| !is_of_word(c)).next().unwrap_or_default();
        let is_variable = before[..before.len() - above.len()].ends_with(['$', '{', '%']);
        is_variable || above.is_empty() || above == self.directory()
    }

    /// The name of the file's directory, or of the one above for a file that stands for its directory.
    fn directory(&self) -> &str {
        let directory = directory_of(self.path);
        match self.module == file_name(directory) {
            true => file_name(directory_of(directory)),
            false => file_name(directory),
        }
    }

    /// True if a text in a line of `other` is the path of this file of JavaScript: from the directory
    /// of `other`, from the root, or, without a dot at its start, from a directory that tools choose
    /// (`@/calc/sum`). `loads` is true if the line loads modules, or names its own directory. In another
    /// line, only the whole path means the file, from the root or from the directory of `other`.
    fn is_path_of_javascript(&self, other: &str, text: &str, loads: bool) -> bool {
        let own = stem_and_extension(self.path).0;
        let own = if bare_name(own) == "index" { [own, directory_of(own)] } else { [own; 2] };
        let (stem, extension) = stem_and_extension(text);
        let is_code = language_of(text).is_some_and(|language| language.is_bundled());
        let text = if is_code && !extension.is_empty() { stem } else { text };
        if text.starts_with('.') {
            let paths = [directory_of(other), ""].map(|from| resolved(from, text));
            return paths.iter().flatten().any(|path| own.contains(&path.as_str()));
        }
        let own = own.iter().filter(|own| !own.is_empty());
        own.into_iter().any(|own| {
            let is_end = |end: &str| own.strip_suffix(end).is_some_and(ends_directory);
            match text.split_once('/') {
                _ if !loads => {
                    [directory_of(other), ""].iter().any(|from| inside(from, text) == **own)
                        && (is_code || lists_product(other))
                }
                Some(("", _)) => is_code && is_end(&text[1..]),
                // A name for a directory stands before the slash: `@/calc/sum`, `@app/sum`.
                Some((name, rest)) => {
                    let name = name.trim_start_matches(|c: char| !c.is_alphanumeric());
                    let is_above =
                        name.is_empty() || directory_of(own).split('/').any(|d| d == name);
                    is_end(text) || is_end(rest) && (rest.contains('/') || is_above)
                }
                None => is_code && file_name(own) == text,
            }
        })
    }

    /// True if a line of `other` builds file names from the directory's name, and perhaps from the
    /// beginning of the file's: `"./rules/" + name`, `f"app.commands.cmd_{name}"`.
    fn is_directory_in(&self, other: &str, line: &str) -> bool {
        let path = directory_of(self.path);
        let directory = file_name(path);
        !directory.is_empty()
            && line.match_indices(directory).any(|(at, _)| {
                let rest = &line[at + directory.len()..];
                let rest = rest.strip_prefix("::").or(rest.strip_prefix(['/', '.']));
                let above = line[..at].rsplit(|c| !is_in_path(c)).next().unwrap_or_default();
                let is_here = !above.starts_with('.')
                    || resolved(directory_of(other), &format!("{above}{directory}"))
                        .is_none_or(|from| from == path);
                let begins_word = !line[..at].ends_with(is_in_name);
                begins_word && is_here && rest.is_some_and(|rest| self.is_built_by(rest))
            })
    }

    /// True if a name is built by code, and may be that of the file: `cmd_{name}`, `" + name`. If the
    /// name ends in an extension, it is the file's (`" + name + ".js"`).
    fn is_built_by(&self, text: &str) -> bool {
        let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
        let (begin, rest) = text.split_at(end);
        bare_name(self.path).starts_with(begin)
            && rest.starts_with(BUILDING)
            && extension_after(rest)
                .is_none_or(|extension| extension == stem_and_extension(self.path).1)
    }

    /// True if a line of `other` loads the file from its own directory, by a name that the line builds,
    /// or by the file's: `__dirname + "/app-" + name`.
    fn is_beside_in(&self, other: &str, line: &str) -> bool {
        let is_beside = directory_of(self.path) == directory_of(other);
        // `import_module("." + name, "app.rules")` names the package beside the name.
        let package = file_name(directory_of(self.path));
        let mut packages = quoted_words(line).filter_map(|text| text.rsplit('.').next());
        self.builds_relative_names()
            && (is_beside || line.contains(package) && packages.any(|name| name == package))
            && self.is_relative_in(line)
            || is_beside
                && names_own_directory(line)
                && (quoted_words(line)
                    .any(|text| text.trim_start_matches(['.', '/']) == self.module)
                    || line.match_indices('/').any(|(at, _)| self.is_built_by(&line[at + 1..])))
    }

    /// True if a line loads a module by a name that it builds from its own package:
    /// `import_module("." + name, __package__)`, `require("./" + name)`.
    fn is_relative_in(&self, line: &str) -> bool {
        has_loading_word(line)
            && line.match_indices(['"', '\'', '`']).any(|(at, _)| {
                let text = line[at + 1..].strip_prefix('.');
                text.is_some_and(|text| self.is_built_by(text.trim_start_matches('/')))
            })
    }

    /// True if a line of a test names a file of a directory `commands` as a command, as in Django's
    /// `call_command("total")`: programs find such files by the names of their commands.
    fn is_command_in(&self, test: &str, line: &str) -> bool {
        file_name(directory_of(self.path)) == "commands"
            && quoted_words(line).any(|text| text == self.module)
            && is_test_path(test)
    }

    /// True if a line of a shell script loads or runs each file of a directory, or files whose names
    /// it builds: `. "$here/commands/$name.sh"`, `for f in "$LIB"/*.sh`.
    fn is_built_in_shell(&self, other: &str, line: &str) -> bool {
        self.language.is_shell()
            && (self.is_directory_in(other, line)
                || line.match_indices('/').any(|(at, _)| {
                    let before = line[..at].trim_end_matches('"');
                    let of_variable = before.trim_end_matches(is_in_name);
                    let name = &line[at + 1..];
                    of_variable.ends_with(['$', '{'])
                        && self.is_built_by(name)
                        && name.contains(&format!(".{}", stem_and_extension(self.path).1))
                }))
    }

    /// True if a line loads the module by its name.
    fn is_module_in(&self, other: &str, line: &str) -> bool {
        // Most lines end here: to look for the name takes less time than to look for loading words.
        if !(self.language.names_modules() && self.is_named_here(line, self.module)
            || self.is_directory_in(other, line))
        {
            return false;
        }
        if self.language.declares_modules() {
            return line.contains(DECLARING);
        }
        has_loading_word(line)
            || line.trim().trim_end_matches([',', ')', '}']).split(" as ").next()
                == Some(self.module)
    }
}

/// True if a line of Python runs a module: by an option of the interpreter, or by `runpy`.
pub fn runs_module(line: &str) -> bool {
    line.contains("run_module") || MODULE_OPTIONS.iter().any(|option| line.contains(option))
}

/// The extension at the end of a name that code builds: `json` for `" + name + ".json"`.
fn extension_after(text: &str) -> Option<&str> {
    const QUOTES: [char; 3] = ['"', '\'', '`'];
    // After a comma follows the next argument.
    let (before, rest) = text.split(',').next()?.split_once('.')?;
    let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    let is_name =
        before.ends_with(|c: char| QUOTES.contains(&c) || is_in_name(c) || "}])".contains(c));
    let is_end = is_name && rest[end..].starts_with(QUOTES) || before.ends_with('*');
    (is_end && end > 0).then_some(&rest[..end])
}

/// True for the empty path, and for a path that ends in a slash.
fn ends_directory(path: &str) -> bool {
    path.is_empty() || path.ends_with('/')
}

/// True if a line of code names the directory of its own file.
pub fn names_own_directory(line: &str) -> bool {
    OWN_DIRECTORY.iter().any(|word| line.contains(word))
}

/// The search for every line that may name the directory of one of these files.
pub fn search_for_listing(files: &[LoadedName<'_>]) -> LineSearch {
    let directories = files.iter().map(|file| file_name(directory_of(file.path)).to_owned());
    LineSearch::of(directories.chain(OWN_DIRECTORY.map(str::to_owned)))
}

/// The search for every line that may load one of these files.
pub fn search_for_loads(files: &[LoadedName<'_>]) -> LineSearch {
    let modules = files.iter().map(|file| file.module.to_owned());
    LineSearch {
        pairs: files.iter().flat_map(LoadedName::searched_beside).chain(modules).collect(),
        beside: BESIDE_MODULES.to_vec(),
        ..LineSearch::of(files.iter().flat_map(LoadedName::searched))
    }
}

/// True if a line of a test in the file's language imports the file's module, by the name of the
/// file. In some languages, a directory is a module. There, the line may also name the file's
/// directory.
pub fn is_imported_in(test: &str, line: &str, path: &str) -> bool {
    let loads_by_name = language_of(path).is_some_and(|own| own.loads_files_by_name());
    let module = LoadedName::of(path).map_or(bare_name(path), |file| file.module);
    let directory = file_name(directory_of(path));
    is_test_path(test)
        && have_same_language(path, test)
        && !is_comment(line)
        && IMPORTS.split_whitespace().any(|word| place_of_word(line, word).is_some())
        && (place_of_word(line, module).is_some()
            || !loads_by_name && place_of_word(line, directory).is_some())
}

/// The paths of those parts of `path` whose names mean tests: `app/testing` and
/// `app/testing/test_sum` for `app/testing/test_sum.py`.
fn parts_named_as_tests(path: &str) -> impl Iterator<Item = &str> {
    let directories = directories_above(path);
    let directories =
        directories.filter(|part| is_in_test_directory(&format!("{}/x", file_name(part))));
    // `twice.expected` is no module, so `#include "twice.h"` does not load it.
    let is_module = language_of(path).is_some() && is_test_path(file_name(path));
    directories.chain(is_module.then_some(stem_and_extension(path).0))
}

/// The search for lines that load one of these files, whose names mean tests.
pub fn search_for_tests<'p>(paths: impl Iterator<Item = &'p str>) -> LineSearch {
    let names: BTreeSet<String> =
        paths.flat_map(parts_named_as_tests).map(|part| file_name(part).to_owned()).collect();
    let (types, modules) = names.into_iter().partition(|name| name.starts_with(char::is_uppercase));
    LineSearch { words: types, pairs: modules, beside: words(LOADS), ..LineSearch::default() }
}

/// True if these lines of the product load the file at `path`. Each part of the path whose name
/// means tests must be loaded: by the name of its type (`TestResult`), or as a module. For example,
/// `from calc.testing import close` loads `calc/testing`.
pub fn loads_test(path: &str, lines: &[(String, String)]) -> bool {
    let own = language_of(path);
    let is_product = |other: &str| {
        let is_related = language_of(other)
            .is_some_and(|language| own.is_none_or(|own| language.is_related_to(own)));
        is_related
            && !is_test_path(other)
            && !is_hidden_or_installed(other)
            && !names_commands(other)
    };
    let lines: Vec<&(String, String)> =
        lines.iter().filter(|(other, line)| is_product(other) && !is_comment(line)).collect();
    let mut parts = parts_named_as_tests(path).peekable();
    parts.peek().is_some()
        && parts.all(|part| lines.iter().any(|(other, line)| loads_part(part, other, line)))
}

/// True if a line of `other` loads the module at the path `part`, whose name means tests. A usual
/// name such as `tests` does not identify a module. So either the line must also name the directory
/// above, or `other` must be in or below that directory.
fn loads_part(part: &str, other: &str, line: &str) -> bool {
    let name = file_name(part);
    let above = directory_of(part);
    if name.starts_with(char::is_uppercase) {
        return place_of_word(line, name).is_some();
    }
    let Some(at) = place_of_word(line, name) else { return false };
    if !LOADS.split_whitespace().any(|word| place_of_word(line, word).is_some()) {
        return false;
    }
    let before = line[..at].trim_end_matches(['/', '.', ':']);
    let before = if before.len() == at { "" } else { before };
    let before = before.rsplit(|c| !is_of_word(c)).next().unwrap_or_default();
    !is_in_test_directory(name)
        || before == file_name(above)
        || matches!(before, "" | "crate" | "self" | "super")
            && (below(other, above).is_some() || place_of_word(line, file_name(above)).is_some())
}

/// A line of code with the parts of a path as one text: `'src/setup'` for `'src', 'setup'`.
pub fn joined_texts(line: &str) -> String {
    let mut joined = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(',') {
        let next = after.trim_start();
        let quote = before.chars().next_back().filter(|c| "\"'`".contains(*c));
        match quote.filter(|quote| next.starts_with(*quote)) {
            Some(_) => {
                joined.push_str(&before[..before.len() - 1]);
                joined.push('/');
                rest = &next[1..];
            }
            None => {
                joined.extend([before, ","]);
                rest = after;
            }
        }
    }
    joined + rest
}

/// True if a text of code lists the files of a directory.
pub fn lists_files(text: &str) -> bool {
    text.lines()
        .any(|line| !is_comment(line) && LISTING.iter().any(|listing| line.contains(listing)))
}

/// True if code may list the directory that one of its lines names: that line lists files, has the
/// directory as an argument of a function, or gives it to a variable that another line lists. If the
/// listing has a pattern with an extension, this is `extension`.
pub fn lists_directory(text: &str, line: &str, extension: &str) -> bool {
    let lines = text.lines().filter(|line| !is_comment(line)).filter(|line| {
        let listed = line.find('*').and_then(|at| extension_after(&line[at..]));
        listed.is_none_or(|listed| listed == extension)
    });
    let lines: Vec<&str> = lines.collect();
    let lists = || lines.iter().any(|line| lists_files(line));
    if lists_files(line) || names_own_directory(line) {
        return lists();
    }
    let Some(variable) = assigned(line) else { return line.contains('(') && lists() };
    let mut variables = BTreeSet::from([variable]);
    let has_variable = |variables: &BTreeSet<&str>, text: &str| {
        variables.iter().any(|variable| place_of_word(text, variable).is_some())
    };
    loop {
        let number = variables.len();
        for line in &lines {
            if let Some(next) = assigned(line)
                && has_variable(&variables, line.split_once('=').map_or("", |(_, value)| value))
            {
                variables.insert(next);
            }
        }
        if variables.len() == number {
            break;
        }
    }
    lines.iter().flat_map(|line| listed_in(line)).any(|listed| has_variable(&variables, listed))
}

/// The name of the variable or function to which a line gives a value.
fn assigned(line: &str) -> Option<&str> {
    let (before, _) = line.split_once('=')?;
    before.split(|c| !is_in_name(c)).rfind(|word| !word.is_empty())
}

/// The texts in a line that say which directory a call lists: its arguments, and the object whose
/// method it is.
fn listed_in(line: &str) -> impl Iterator<Item = &str> {
    let calls = LISTING.iter().flat_map(move |call| line.match_indices(call));
    calls.flat_map(move |(at, call)| {
        let object = line[..at].trim_end_matches(|c: char| c == '.' || is_in_name(c)).len();
        let start = at + call.len();
        let end = line[start..].find([')', ']']).map_or(line.len(), |end| start + end);
        [&line[object..at], &line[start..end]]
    })
}

/// True if a line has a word with which code loads a module.
pub fn has_loading_word(line: &str) -> bool {
    const BEGINNINGS: [&str; 6] = ["autoload", "import", "include", "load", "require", "run_path"];
    const WORDS: [&str; 6] = ["__import__", "alias", "from", "mod", "use", "using"];
    runs_module(line)
        || line.split(|c| !is_in_name(c)).any(|word| {
            WORDS.contains(&word) || BEGINNINGS.iter().any(|begin| is_word_or_longer(word, begin))
        })
}

/// True for `load`, `load_file` and `loadFile` if `begin` is `load`, but not for `loading`.
fn is_word_or_longer(word: &str, begin: &str) -> bool {
    word.strip_prefix(begin).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(|c: char| c == '_' || c.is_uppercase())
    })
}

/// A line without the comment at its end. A mark in an open quote begins none.
fn without_comment(line: &str) -> &str {
    let mut is_quoted = false;
    let mut has_code = false;
    for (at, c) in line.char_indices() {
        let rest = &line[at + c.len_utf8()..];
        let is_mark = rest.starts_with('#') || rest.starts_with("//");
        if c.is_whitespace() && has_code && !is_quoted && is_mark {
            return &line[..at];
        }
        is_quoted ^= "\"'`".contains(c);
        has_code |= !c.is_whitespace();
    }
    line
}

/// True for a comment, but not for an attribute of Rust or an include of C.
pub fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.strip_prefix('#');
    ["//", "/*", "*", "-- "].iter().any(|start| line.starts_with(start))
        || rest.is_some_and(|rest| {
            let is_directive = rest.starts_with(['[', '!'])
                || DIRECTIVES.iter().any(|word| rest.starts_with(word));
            !is_directive
        })
}

/// True for a manifest, a file of recipes, or another file that decides which commands run. If such
/// a file names a source file, the source file need not be part of the product, because a command
/// may run it.
pub fn names_commands(path: &str) -> bool {
    lists_product(path)
        || ALL.iter().any(|ecosystem| {
            ecosystem.is_decisive(path) || ecosystem.recipe_files.contains(&file_name(path))
        })
}

/// True for a file of recipes or settings, which lists no files of the product.
pub fn is_setting(path: &str) -> bool {
    names_commands(path) && !lists_product(path)
}

/// True for a manifest or project file, which may list files of the product.
pub fn lists_product(path: &str) -> bool {
    let name = file_name(path);
    ALL.iter().any(|e| e.manifest(name).is_some() || e.project_files.contains(&name))
}

/// True if the word is the first word of a manifest value. A later word is an argument of a
/// command.
fn is_value(line: &str, word: &str) -> bool {
    let Some(at) = place_of_word(line, word) else { return false };
    let before = line[..at].trim_end_matches(is_in_path);
    let before = before.trim_end_matches(['"', '\'']).trim_end();
    before.is_empty() || before.ends_with(['=', ':', '[', '{'])
}

/// Writes `json_parser` and `JSONParser` as `jsonparser`.
fn as_constant(name: &str) -> String {
    name.replace(['_', '-'], "").to_lowercase()
}

/// True if a line of a test has the end of a path as a word. The word may begin with `../`, and may
/// lack the extension. It may also be a module: `calc.local` and `Calc::Local` for
/// `lib/calc/local.ex`, or `from calc import local`.
pub fn names_end_of(test: &str, line: &str, path: &str) -> bool {
    let directory = path.len() - file_name(path).len();
    let stem = path[directory..].rfind('.').map_or(path, |dot| &path[..directory + dot]);
    let ends = [format!("/{}", as_constant(path)), format!("/{}", as_constant(stem))];
    let line = line.replace("::", "/");
    let imported = imported_names(&line);
    let words = line.split(|c| !is_in_path(c));
    // A word without dot and slash may be an identifier, so it counts only in quotes.
    let words = words.filter(|word| word.contains(['.', '/'])).chain(quoted_words(&line));
    let mut words = words.chain(imported.iter().map(String::as_str));
    words.any(|word| {
        let is_relative = word.starts_with('.') && below(test, directory_of(path)).is_some();
        let word = word.trim_start_matches(['.', '/']);
        // A file name without a directory may mean a file in another directory. In `__has_include`
        // such a name counts, because a compiler looks for the file in several directories.
        let is_name = !word.contains('/') && (word == file_name(path) || !word.contains('.'));
        if is_name && path.contains('/') && !is_relative && !line.contains("has_include") {
            return false;
        }
        let word = as_constant(word);
        let own = [format!("/{word}"), format!("/{}", word.replace('.', "/"))];
        !word.is_empty() && own.iter().any(|own| ends.iter().any(|end| end.ends_with(own)))
    })
}

/// `calc.local` for `from calc import local`, and `..local` for `from .. import local`.
fn imported_names(line: &str) -> Vec<String> {
    let rest = line.split_once("from ").and_then(|(_, rest)| rest.split_once(" import "));
    let Some((module, names)) = rest else { return Vec::new() };
    let names = names.split(|c: char| c.is_whitespace() || ",()".contains(c));
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| format!("{}.{name}", module.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_loads_a_file_by_its_module_and_names_it_by_its_path() {
        let cases = [
            ("lib/calc.py", "tests/t.sh", "python3 lib/calc.py", true),
            ("lib/calc.py", "tests/t.py", "run(['python3', 'lib/calc.py'])", true),
            ("lib/calc.py", "tests/t.py", "run(['python3', '/lib/calc'])", false),
            ("lib/calc.py", "lib/b.rb", "require 'calc'", false),
            ("lib/calc.py", "Makefile", "\tpython3 lib/calc.py", false),
            ("lib/calc.py", "verify.toml", "run = 'lib/calc.py'", false),
            ("lib/calc.py", "lib/calc.py", "import calc", false),
            ("lib/calc.js", "lib/a.vue", "import add from './calc'", true),
            ("lib/calc.js", "package.json", "\"bin\": {\"calc\": \"./lib/calc.js\"},", true),
            ("lib/calc.js", "package.json", "\"files\": [\"lib/calc.js\"],", true),
            ("lib/calc.js", "package.json", "\"test\": \"node lib/calc.js\",", false),
            ("lib/calc.py", "pyproject.toml", "calc = 'lib.calc:main'", true),
            ("lib/calc.py", "pyproject.toml", "addopts = '-p lib.calc'", false),
            ("lib/calc.py", "setup.py", "    'F = lib.calc:Calc',", true),
            ("lib/My/Calc.pm", "t/a.t", "plugin 'Calc';", true),
            ("lib/rules/calc.js", "lib/a.js", "require('./rules/' + name)", true),
            ("lib/rules/calc.js", "lib/a.js", "require(`./rules/${name}`)", true),
            ("lib/rules/calc.py", "lib/a.py", "import_module(f'lib.rules.{name}')", true),
            ("lib/rules/calc.py", "lib/a.py", "from lib.rules import b", false),
            ("app/rules/fix_a.py", "app/b.py", "import_module('app.rules.fix_' + name)", true),
            ("app/rules/fix_a.py", "app/b.py", "import_module('app.rules.add_' + name)", false),
            ("bin/app-add.js", "bin/app.js", "fork(__dirname + `/app-${name}.js`)", true),
            ("lib/a/index.js", "lib/a/test/t.js", "require('..')", true),
            ("lib/de.js", "lib/index.js", "require(`./${name}`)", true),
            ("lib/de.js", "lib/index.js", "require('./' + name)", true),
            ("lib/de.js", "lib/index.js", "read(`./${name}`)", false),
            ("lib/de.js", "lib/index.js", "fs.readFile(__dirname + '/' + n + '.html')", false),
            ("lib/de.py", "lib/a.py", "import_module(f'.{name}', __package__)", true),
            ("lib/de.py", "lib/a.py", "import_module('.' + name, __package__)", true),
            ("app/rules/de.py", "app/a.py", "import_module('.' + n, __name__ + '.rules')", true),
            ("lib/de.py", "lib/a.py", "log('loading lib/%s', name)", false),
            ("lib/de.py", "lib/a.py", "raise OSError('no de.py in lib')", false),
            ("lib/de.py", "tests/t.py", "sh('python3 lib/de.py 1')", true),
            ("inc/Calc.pm", "lib/A.pm", "load_file(\"inc/$_[0].txt\")", false),
            ("lib/de.py", "lib/a.py", "load_config(f'lib/{name}.json')", false),
            ("lib/Rule/Add.pm", "lib/A.pm", "require \"Rule::$name\";", true),
            ("tools/setup.js", "src/a.js", "x = ['tools', 'setup']", false),
            ("tools/setup.js", "src/a.js", "new Worker('tools/setup.js')", true),
            ("tools/setup.js", "src/a.js", "x = 'setup.js'", false),
            ("tools/setup.js", "tests/mocharc.json", "{\"require\": \"./tools/setup.js\"}", false),
            ("lib/b/index.js", "lib/a/test/t.js", "require('..')", false),
            ("app/commands/add.py", "tests/t.py", "call_command(\"add\")", true),
            ("app/commands/add.py", "app/b.py", "call(\"add\")", false),
            ("rules/add.sh", "bin/app.sh", ". \"$here/rules/$1.sh\"", true),
            ("rules/add.sh", "bin/app.sh", "for f in \"$LIB\"/*.sh; do", true),
            ("rules/add.sh", "bin/app.sh", "for f in \"$LIB\"/*.txt; do", false),
            ("tools/env.js", "src/a.js", "require('./env')", false),
            ("tools/env.js", "src/a.js", "require('../tools/env.js')", true),
            ("tools/env.js", "src/a.js", "import '@/tools/env'", true),
            ("src/tools/env.js", "src/a.js", "import '@tools/env'", true),
            ("src/tools/env.js", "src/a.js", "import 'tools/env'", true),
            ("src/tools/env.js", "src/a.js", "import 'dotenv/env'", false),
            ("src/tools/env.js", "src/a.js", "app.get('/tools/env')", false),
            ("src/main/env.js", "a.html", "<script src=\"/src/main/env.js\">", true),
            ("tools/env.js", "src/a.js", "require('../tools/' + name + '.json')", false),
            (
                "tools/env.js",
                "t.test.js",
                "const f = n => require(\"./tools/\" + n + \".json\")",
                false,
            ),
            ("app/__main__.py", "tests/t.sh", "[ \"$(python3 -m app 1 2)\" = 3 ]", true),
            ("tools/env.js", "src/a.js", "require(`../tools/${name}.js`)", true),
            ("tools/path.js", "src/a.js", "require('path')", false),
            ("tools/env.js", "src/a.js", "if (tools.env === 'x') use(tools)", false),
            ("tools/setup.py", "app/a.py", "the setup of the user", false),
            ("tools/setup.py", "app/a.py", "#from tools import setup", false),
            ("build/calc.php", "tests/t.php", "require 'vendor/calc.php'", false),
            ("src/calc.rs", "src/lib.rs", "pub mod calc;", true),
            ("src/calc.rs", "src/a.rs", "use crate::calc;", false),
            ("src/calc.rs", "Cargo.toml", "path = \"src/calc.rs\"", true),
            ("src/calc.rs", "src/lib.rs", "#[path = \"calc.rs\"]", true),
        ];
        for (path, other, line, expected) in cases {
            let file = LoadedName::of(path).expect("only code loads it");
            assert_eq!(
                file.is_loaded_in(other, line, false),
                expected,
                "{path} in {other}: {line}"
            );
        }
        for path in [
            "__init__.py",
            "main.js",
            "src/main.rs",
            "src/bin/calc.rs",
            "src/calc.c",
            "src/calc.go",
        ] {
            assert!(LoadedName::of(path).is_none(), "{path}");
        }
    }

    #[test]
    fn code_means_the_class_of_a_file_by_its_name_and_namespace() {
        let php = "<?php\nnamespace App\\Rules;\n\nfinal class Calc\n{\n";
        let ruby = "module App\n  class JSONCalc < Base\n";
        let cases = [
            ("src/Rules/Calc.php", php, "use App\\Rules\\Calc;\nnew Calc();", true),
            ("src/Rules/Calc.php", php, "namespace App\\Rules;\nnew Calc();", true),
            ("src/Rules/Calc.php", php, "namespace App;\nnew Calc();", false),
            ("src/Calc.php", "<?php\nclass Calc {}\n", "new Calc();", true),
            ("src/Calc.php", "<?php\nclass Calc {}\n", "class Calc {}\nnew Calc();", false),
            ("src/Calc.php", "<?php\n", "new Calc();", false),
            ("lib/app/json_calc.rb", ruby, "App::JSONCalc.new", true),
            ("lib/app/json_calc.rb", ruby, "module App\n  JSONCalc.new", true),
            ("lib/app/json_calc.rb", ruby, "JSONCalc.new", false),
            ("lib/calc.rb", "Calc = Struct.new(:a)\n", "Calc.new(1)", true),
            ("lib/calc.rb", "class Calc\n", "Other::Calc.new(1)", false),
            ("lib/calc.rb", "class Calc\n", "::Calc.new(1)", true),
            ("lib/calc.ex", "defmodule Calc do\n", "assert Calc.add(1, 2) == 3", true),
            ("lib/app/calc.ex", "defmodule App.Calc do\n", "alias App.{Calc, Sum}", true),
            ("lib/app/calc.ex", "defmodule App.Calc do\n", "alias Other.Calc", false),
        ];
        for (path, own, other, expected) in cases {
            let file = LoadedName::of(path).expect("only code loads it");
            let extension = stem_and_extension(path).1;
            let mut lines = other.lines();
            let is_meant = lines.any(|line| file.may_be_meant_in(&format!("a.{extension}"), line))
                && other.lines().any(|line| file.is_meant_in(own, other, line));
            assert_eq!(is_meant, expected, "{path} with {own} in {other}");
        }
    }

    #[test]
    fn code_lists_the_directory_that_it_names() {
        let cases = [
            ("const files = readdirSync(join(__dirname, 'rules'))", true),
            ("const dir = 'rules'\nreaddirSync(dir)", true),
            ("RULES = 'rules'\nfor p in RULES.iterdir():", true),
            ("RULES = 'rules'\nat = join(here, RULES)\nfor p in os.listdir(at):", true),
            ("load('rules')\ndef load(at):\n    for p in at.glob('*'):", true),
            ("const ignored = ['rules', 'x']\nreaddirSync(d).filter(f => !ignored.has(f))", false),
            ("keys = {'rules': 1}\nos.listdir('.')", false),
            ("  'rules',\nos.listdir('.')", false),
            ("dir = 'rules'", false),
            ("dir = 'rules'\nfor p in dir.glob('*.sql'):", false),
            ("dir = 'rules'\nfor p in dir.glob('*.py'):", true),
        ];
        for (text, expected) in cases {
            let line = text.lines().next().expect("a line");
            assert_eq!(lists_directory(text, line, "py"), expected, "{text}");
        }
    }

    #[test]
    fn test_imports_a_module() {
        let cases = [
            ("tests/a.py", "from app.calc import add", "app/calc.py", true),
            ("tests/a.py", "calc = json.load(f)", "app/calc.py", false),
            ("tests/a.py", "import app", "app/calc.py", false),
            ("tests/a.py", "import app", "app/__init__.py", true),
            ("tests/a.txt", "from app.calc import add", "app/calc.py", false),
            ("tests/a.sh", "from app.calc import add", "app/calc.py", false),
            ("app/b.py", "from app.calc import add", "app/calc.py", false),
            ("test/a.js", "const x = require('../lib/calc')", "lib/calc.js", true),
            ("calc/a_test.go", "package calc_test", "calc/add.go", false),
            ("calc/a_test.go", "package calc", "calc/add.go", true),
            ("tests/a.c", "#include \"../src/calc.h\"", "src/calc.c", true),
        ];
        for (test, line, path, expected) in cases {
            assert_eq!(is_imported_in(test, line, path), expected, "{test}: {line}");
        }
    }

    #[test]
    fn product_loads_files_whose_names_mean_tests() {
        let cases = [
            ("calc/testing/a.py", "calc/b.py", "from calc.testing import close", true),
            ("calc/testing/a.py", "calc/b.py", "from .testing import close", true),
            ("calc/testing/a.json", "app.py", "from calc import testing", true),
            ("calc/testing/a.py", "app.py", "from numpy.testing import close", false),
            ("calc/testing/tests/a.py", "calc/b.py", "from calc.testing import close", false),
            ("calc/test_utils.py", "app.py", "from calc.test_utils import close", true),
            ("calc/test_utils.py", "app.py", "test_utils = 1", false),
            ("twice.expected", "twice.c", "#include \"twice.h\"", false),
            ("calc/test_utils.py", "calc/test_a.py", "from .test_utils import close", false),
            ("app/models/test.rb", "app/main.rb", "require_relative \"models/test\"", true),
            ("test/helper.rb", "app/main.rb", "require \"minitest/test\"", false),
            ("app/test-utils/index.js", "app/a.js", "const a = require('./test-utils')", true),
            ("src/TestResult.java", "src/A.java", "TestResult last;", true),
            ("src/test/java/A.java", "src/main/java/A.java", "package com.test;", false),
        ];
        for (path, other, line, expected) in cases {
            let lines = [(other.to_owned(), line.to_owned())];
            assert_eq!(loads_test(path, &lines), expected, "{path} in {other}: {line}");
        }
    }

    #[test]
    fn line_names_the_end_of_a_path() {
        let cases = [
            ("os.path.exists('src/quick.py')", "src/quick.py", true),
            ("exists('../src/quick')", "src/quick", true),
            ("find_spec(\"calc.local\")", "lib/calc/local.py", true),
            ("try { require('../src/local') } catch {}", "src/local.js", true),
            ("#if __has_include(\"local.h\")", "src/local.h", true),
            ("Code.ensure_loaded?(Calc.LocalPart)", "lib/calc/local_part.ex", true),
            ("exists('quicker')", "src/quick.py", false),
            ("exists(tmp / 'quick.py')", "src/quick.py", false),
            ("exists('quick')", "quick", true),
            ("exists('other/quick.py')", "src/quick.py", false),
            ("from calc import add, local as l", "calc/local.py", true),
            ("from lib.calc import (local)", "lib/calc/local.py", true),
            ("from calc.core import local", "calc/local.py", false),
            ("eval { require Calc::Local; 1 }", "lib/Calc/Local.pm", true),
            ("from .. import quick", "src/quick.py", true),
            ("import('./quick.js').catch(f)", "src/quick.js", true),
            ("from .. import quick", "other/quick.py", false),
        ];
        for (line, path, expected) in cases {
            assert_eq!(names_end_of("src/tests/t", line, path), expected, "{path}: {line}");
        }
    }

    #[test]
    fn file_that_runs_loads_modules_and_names_what_runs() {
        let file = LoadedName::of("verify/all.rb").expect("only code loads it");
        assert!(file.is_loaded_in("checks.rb", "require_relative 'verify/all'", true));
        assert!(!file.is_loaded_in("checks.rb", "run('verify/all.rb')", true));
    }

    #[test]
    fn code_in_a_shell_line_imports_a_module() {
        let file = LoadedName::of("calc/sum.py").expect("only code loads it");
        for (line, expected) in [
            ("python3 -c 'import sum; sum.check()'", true),
            ("python3 -c 'from calc.sum import add'", true),
            ("node -e \"require('./sum')\"", true),
            ("node --import ./sum", false),
            ("python3 -m pytest sum", false),
            ("\"$python\" -m calc.sum 1 2", true),
        ] {
            assert_eq!(file.is_imported_by_shell(line), expected, "{line}");
        }
    }

    #[test]
    fn command_names_a_file_by_its_path() {
        let file = LoadedName::of("src/app.py").expect("only code loads it");
        for (line, expected) in [
            ("grep -q good src/app.py", true),
            ("test \"$(python3 ./app.py)\" = 3", true),
            ("CHECKS = app.py", false),
            ("python3 src/my-app.py", false),
        ] {
            assert_eq!(file.is_named_in(line), expected, "{line}");
        }
    }
}
