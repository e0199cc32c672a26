//! The ways in which code loads a source file by its name. A source file that no code loads is not
//! part of the product, whatever runs it: a check, a plugin of a tool, an example.
//!
//! [`imports`] reads the names of modules as the interpreters of Python and Ruby do. A module that
//! only checks load is not part of the product, either ([`check_modules`]).
mod built_names;
pub mod check_modules;
mod code_lines;
mod constants;
pub mod imports;
pub mod javascript_paths;
pub mod lines_of_files;
pub mod listing;
pub mod path_ends;
pub mod settings;
pub mod tests_of_product;

use std::iter;

use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::languages::{
    Language, have_same_language, is_hidden_or_installed, language_of,
};
use crate::ecosystems::loading::code_lines::{
    DECLARING, LOADS, MODULE_OPTIONS, OWN_DIRECTORY, as_constant, has_loading_word, is_comment,
    without_comment,
};
use crate::ecosystems::loading::settings::{is_value, lists_product, names_commands};
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{
    FOR_DIRECTORIES, bare_name, directory_of, file_name, inside, is_in_path, is_of_word,
    place_of_word, stem_and_extension,
};
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

/// With these texts, code of Python imports modules of its own package, whose names may follow in
/// other lines.
const OWN_PACKAGES: [&str; 2] = ["from . import (", "from .. import ("];

/// A line that builds a name relative to its own package contains one of these texts.
const RELATIVE: [&str; 7] = ["\"./\"", "'./'", "`./${", "\".\"", "'.'", "\".{", "'.{"];

/// If a line of a test loads a module by its name, the line contains one of these words.
const IMPORTS: &str = "
    alias from import import_module include package require require_relative use using";

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
    /// module. [`Imports`](imports::Imports) reads the statement.
    pub fn may_be_imported_in(&self, other: &str, line: &str) -> bool {
        let directory = file_name(directory_of(self.path));
        self.language.imports_modules()
            && ([self.module, directory].iter().any(|name| place_of_word(line, name).is_some())
                || OWN_PACKAGES.iter().any(|text| line.contains(text)))
            && self.is_code_beside(other)
    }

    /// True if another file is code in a related language, or may be.
    fn is_code_beside(&self, other: &str) -> bool {
        match language_of(other) {
            Some(language) => language.is_related_to(self.language),
            // A file without an extension may be a program.
            None => is_test_path(other) || !file_name(other).contains('.'),
        }
    }

    /// True if another file may load this one by a name, because it is code in a related language that
    /// is no setting.
    pub fn has_code_in(&self, other: &str) -> bool {
        self.is_code_beside(other)
            && other != self.path
            && !is_hidden_or_installed(other)
            && (is_test_path(other) || !names_commands(other))
    }

    /// True if a line of settings or of a command names the file in any way: by its path, its module or
    /// its constant.
    pub fn is_named_in_settings(&self, line: &str) -> bool {
        self.words().any(|word| place_of_word(line, word).is_some())
            || place_of_word(line, self.module).is_some()
            || self.is_constant_in(line)
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

    /// True if a line names the file by its path: by its name, perhaps with the directory. In
    /// JavaScript, a text in quotes has the path.
    fn is_path_in(&self, other: &str, line: &str) -> bool {
        if self.language.is_bundled() {
            return self.is_path_in_javascript(other, line);
        }
        self.is_named_here(line, file_name(self.path))
            || self.with_directory.iter().any(|name| place_of_word(line, name).is_some())
                // `imports` reads the names of modules.
                && !(self.language.imports_modules()
                    && language_of(other).is_some()
                    && self.has_code_in(other))
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

    /// True if a line of a test names a file of a directory `commands` as a command, as in Django's
    /// `call_command("total")`: programs find such files by the names of their commands.
    fn is_command_in(&self, test: &str, line: &str) -> bool {
        file_name(directory_of(self.path)) == "commands"
            && quoted_words(line).any(|text| text == self.module)
            && is_test_path(test)
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
