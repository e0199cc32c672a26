//! A source file that an attempt adds. The base's code beside it shows whether the file is surely
//! source. If so, no tool loads it because of its name.
use std::collections::BTreeSet;

use crate::ecosystems::paths::{
    directories_above, directory_of, file_name, inside, is_in_name, stem_and_extension,
};

/// The code of a base, as far as its paths show.
#[derive(Default)]
pub struct KnownCode {
    /// The directories, without the root.
    pub directories: BTreeSet<String>,
    /// The paths of all files.
    pub files: BTreeSet<String>,
    /// The names of the tests, without their directories.
    pub test_names: BTreeSet<String>,
    /// Pairs of a directory and the language of a source file directly in it. An extension stands
    /// for a language.
    pub sources: BTreeSet<(String, &'static str)>,
    pub languages: BTreeSet<&'static str>,
    pub submodules: BTreeSet<String>,
    /// The paths of the executable files without an extension.
    pub programs: BTreeSet<String>,
    /// The paths of the symbolic links.
    pub links: BTreeSet<String>,
    /// True if a file shows a known language or kind of project.
    pub is_known: bool,
}

/// The extensions that Node and bundlers try for a module's name.
const MODULES: [&str; 10] = ["cjs", "cts", "js", "json", "jsx", "mjs", "mts", "node", "ts", "tsx"];

impl KnownCode {
    /// True if the base has this directory.
    pub fn has_directory(&self, directory: &str) -> bool {
        directory.is_empty() || self.directories.contains(directory)
    }

    /// The innermost directory of the base that is above a path; empty for the root.
    pub fn nearest_directory<'p>(&self, path: &'p str) -> &'p str {
        let mut nearest = directory_of(path);
        while !self.has_directory(nearest) {
            nearest = directory_of(nearest);
        }
        nearest
    }

    /// The first part of the namespace of a path below a directory `lib`: `Test` for
    /// `lib/Test/Builder.pm`. `None` if the namespace is the base's, because the base has its module:
    /// that of `lib/Calc/Sum.pm` is `lib/Calc.pm`.
    pub fn shared_namespace<'p>(&self, path: &'p str) -> Option<&'p str> {
        let extension = stem_and_extension(path).1;
        let mut above: Vec<&str> = directories_above(path).collect();
        let lib = above.iter().rposition(|directory| file_name(directory) == "lib")?;
        above.drain(..=lib);
        let mut modules = above.iter().map(|directory| format!("{directory}.{extension}"));
        let is_own = modules.any(|module| self.files.contains(&module));
        if is_own { None } else { above.first().map(|first| file_name(first)) }
    }

    /// True if a line of `file` includes another header, of the base or of the system, and a
    /// compiler may find the new header at `path` in its place. The compiler looks for a header
    /// beside the file that includes it, and then in several directories.
    pub fn is_included_for_another(&self, path: &str, file: &str, include: &Include<'_>) -> bool {
        let has_end = |path: &str| {
            let start = path.strip_suffix(include.name);
            start.is_some_and(|start| start.is_empty() || start.ends_with('/'))
        };
        let is_beside = !include.is_for_systems
            && self.files.contains(&inside(directory_of(file), include.name));
        has_end(path)
            && !is_beside
            && (include.is_for_systems && !include.name.contains('/')
                || self.files.iter().any(|file| has_end(file)))
    }

    /// The files of the base that a new file at `path` may replace, because its language finds the
    /// new file first. Python finds a package before a module, and a module before a directory
    /// without `__init__.py`; Node and bundlers try one extension before another; Lua finds a file
    /// before a directory. Type checkers read a declaration in place of its module.
    pub fn replaced_by(&self, path: &str, declared: &[String]) -> Vec<&str> {
        let (stem, extension) = stem_and_extension(path);
        let below = |start: String| {
            let files = self.files.range(start.clone()..).map(String::as_str);
            files.take_while(move |file| file.starts_with(&start))
        };
        let known = |file: &str| self.files.get(file).map(String::as_str);
        match extension {
            _ if !declared.is_empty() => declared.iter().filter_map(|file| known(file)).collect(),
            "py" => {
                let packages = directories_above(path);
                let mut found: Vec<&str> =
                    packages.filter_map(|package| known(&format!("{package}.py"))).collect();
                if known(&format!("{stem}/__init__.py")).is_none() {
                    found.extend(below(format!("{stem}/")).filter(|file| file.ends_with(".py")));
                }
                found
            }
            "lua" => known(&format!("{stem}/init.lua")).into_iter().collect(),
            _ if MODULES.contains(&extension) => below(format!("{stem}."))
                .filter(|file| MODULES.contains(&&file[stem.len() + 1..]))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// A line that includes a header.
pub struct Include<'l> {
    pub name: &'l str,
    /// True for a name in `<>`, as code names headers of libraries.
    pub is_for_systems: bool,
}

impl<'l> Include<'l> {
    /// Reads a line such as `#include "a.h"`; `None` for another line.
    pub fn of(line: &'l str) -> Option<Include<'l>> {
        let directive = line.trim_start().strip_prefix('#')?.trim_start();
        let words = ["include_next", "include", "import"];
        let rest = words.iter().find_map(|word| directive.strip_prefix(word))?.trim_start();
        let is_for_systems = rest.starts_with('<');
        let name = rest.strip_prefix(['<', '"'])?;
        Some(Include { name: name.split(['>', '"']).next()?, is_for_systems })
    }
}

/// A source file that a base does not have.
pub struct NewFile<'f> {
    pub code: &'f KnownCode,
    pub path: &'f str,
    /// The innermost directory of the base that is above the file; empty for the root.
    pub nearest: &'f str,
    /// The extension that stands for the file's language.
    pub language: &'static str,
    /// True if `nearest` is a directory in which commands look for modules by name.
    pub is_looked_up: bool,
}

impl NewFile<'_> {
    /// True if the base has sources of the file's language anywhere. In a language whose tools load
    /// no file because of its name, this shows that the file can only be source.
    pub fn has_its_language(&self) -> bool {
        self.code.languages.contains(self.language)
    }

    /// True if the base has sources of the file's language in the file's own directory.
    pub fn is_beside_its_language(&self) -> bool {
        self.nearest == directory_of(self.path) && self.nearest_has_language()
    }

    /// True if a test of the base has the same file name. In a language that searches several
    /// directories, the new file may replace that test.
    pub fn has_name_of_a_test(&self) -> bool {
        self.code.test_names.contains(file_name(self.path))
    }

    /// True if Node would load the file in place of a test's helper, or in place of a directory of
    /// the base.
    pub fn is_loaded_for_another(&self) -> bool {
        let (stem, extension) = stem_and_extension(self.path);
        let module = stem.strip_suffix("/index").unwrap_or(stem);
        let name = file_name(module);
        let index = format!("{module}/index.");
        let next = self.code.files.range(index.clone()..).next();
        self.code.test_names.contains(&format!("{name}.{extension}"))
            || module == stem && next.is_some_and(|file| file.starts_with(&index))
    }

    /// True if the innermost directory of the base above the file has sources of the file's
    /// language. If tools look for libraries by name in that directory, as in `lib`, the file must
    /// also be in a new directory that is named like a source file beside it.
    pub fn is_inside_known_code(&self) -> bool {
        let is_looked_up = self.is_looked_up || file_name(self.nearest) == "lib";
        self.is_in_directory_of_language()
            && (!is_looked_up || NewModule::of(self.path, self.code).is_part)
    }

    /// True if the innermost directory of the base above the file has sources of its language, and
    /// is not the root.
    pub fn is_in_directory_of_language(&self) -> bool {
        !self.nearest.is_empty() && self.nearest_has_language()
    }

    /// True if the file is in a package of the base, which is a directory with the file `marker`.
    /// False if tools look for modules in that directory, because they may find the file by its
    /// name alone.
    pub fn is_in_package(&self, marker: &str) -> bool {
        !self.nearest.is_empty()
            && !self.is_looked_up
            && self.code.files.contains(&format!("{}/{marker}", self.nearest))
    }

    /// True if the file is in the root, or beside a `package.json`.
    pub fn is_in_package_root(&self) -> bool {
        let directory = directory_of(self.path);
        directory.is_empty() || self.code.files.contains(&format!("{directory}/package.json"))
    }

    fn nearest_has_language(&self) -> bool {
        self.code.sources.contains(&(self.nearest.to_owned(), self.language))
    }
}

/// True if tools read the new parts of a path only as the name of a file. A shell does not take
/// them for code or for several names. A program does not take them for an option or a setting.
/// `known` is the innermost directory of the base above the path.
pub fn is_plain_name(path: &str, known: &str) -> bool {
    let new = path[known.len()..].trim_start_matches('/');
    let (directories, file) = new.rsplit_once('/').unwrap_or(("", new));
    let is_plain = |part: &str| {
        !part.starts_with('-')
            && part.chars().all(|c| {
                c.is_ascii_alphanumeric()
                    || "._-+@".contains(c)
                    || !c.is_ascii() && c.is_alphanumeric()
            })
    };
    // Directories of npm's scopes begin with `@`. The name of a file may not begin with it, because
    // some programs take `@FILE` for a file with further arguments.
    is_plain(file) && !file.starts_with('@') && directories.split('/').all(is_plain)
}

/// A statement that loads a module begins with one of these words.
pub const LOADING: [&str; 4] = ["use", "require", "import", "from"];

/// The module that a new file defines.
pub struct NewModule<'p> {
    /// The path, without its extension.
    path: &'p str,
    /// The first part of the path that the base does not have.
    first: &'p str,
    /// True if `first` is a directory with the name of a source file of the base beside it:
    /// `lib/a/` beside `lib/a.rb`. Then a line that names only `first` names the base's file.
    is_part: bool,
}

impl<'p> NewModule<'p> {
    /// The module that the file at `path` defines.
    pub fn of(path: &'p str, code: &KnownCode) -> NewModule<'p> {
        let known = code.nearest_directory(path);
        let (path, extension) = stem_and_extension(path);
        let new = path[known.len()..].trim_start_matches('/');
        let (first, is_directory) =
            new.split_once('/').map_or((new, false), |(first, _)| (first, true));
        let first_path = &path[..path.len() - new.len() + first.len()];
        let is_part = is_directory && code.files.contains(&format!("{first_path}.{extension}"));
        NewModule { path, first, is_part }
    }

    /// The names of the module: a line that loads it contains one of them.
    pub fn names(&self) -> [&'p str; 2] {
        [self.first, file_name(self.path)]
    }

    /// True if a line of a test loads a module that this one may replace. The line loads a name of
    /// one of these kinds:
    /// * The name begins with the first new part of this module's path. If the base has a module of
    ///   that name, the loaded name must have further parts.
    /// * The name has several parts, and the path of this module ends with them.
    /// * The name is the whole path, and the line is indented: the test may go on without the
    ///   module.
    pub fn is_loaded_in(&self, line: &str) -> bool {
        line.split(';').any(|statement| {
            let mut words = statement.split(|c| !is_in_name(c)).filter(|word| !word.is_empty());
            let Some(keyword) = words.next().filter(|word| LOADING.contains(word)) else {
                return false;
            };
            let names = statement.trim_start()[keyword.len()..].split(',');
            let names = names.take(if keyword == "import" { usize::MAX } else { 1 });
            names.map(|name| name.trim().trim_start_matches(['(', '"', '\''])).any(|name| {
                let end = name.find(|c| !is_in_name(c) && !":./".contains(c)).unwrap_or(name.len());
                let parts: Vec<&str> =
                    name[..end].split(|c| !is_in_name(c)).filter(|part| !part.is_empty()).collect();
                let all = format!("/{}", parts.join("/"));
                !name.starts_with('.')
                    && (parts.first() == Some(&self.first) && !(self.is_part && parts.len() == 1)
                        || parts.len() > 1 && self.path.ends_with(&all)
                        || line.starts_with(char::is_whitespace) && all[1..] == *self.path)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecosystems::languages::modules_declared_by;

    #[test]
    fn name_that_a_program_may_take_for_something_else_is_not_plain() {
        let cases = [
            ("src/a-b_c+d@2x.1.c", true),
            ("src/gr\u{f6}\u{df}e.c", true),
            ("src/@scope/a.c", true),
            ("[old]/new/a.c", true),
            ("src/[new]/a.c", false),
            ("src/z.c;rm${IFS}x.c", false),
            ("src/-Wl,-em.c", false),
            ("src/-em.c", false),
            ("src/-x/a.c", false),
            ("src/@options.c", false),
            ("MAKEFLAGS=n.c", false),
            ("src/a b.c", false),
            ("src/a\nb.c", false),
            ("src/a\u{a0}b.c", false),
        ];
        for (path, expected) in cases {
            let known = path.split('/').next().filter(|part| ["src", "[old]"].contains(part));
            assert_eq!(is_plain_name(path, known.unwrap_or_default()), expected, "{path}");
        }
    }

    #[test]
    fn namespace_belongs_to_the_base_if_it_has_the_module() {
        let files = ["lib/Calc.pm", "lib/Test/Calc.pm", "gem/lib/calc/core.rb"].map(str::to_owned);
        let code = KnownCode { files: files.into(), ..KnownCode::default() };
        for (path, expected) in [
            ("lib/Calc/Sum.pm", None),
            ("lib/Calc/Sum/Deep.pm", None),
            ("lib/Test/Calc/Sum.pm", None),
            ("lib/Test/Builder.pm", Some("Test")),
            ("gem/lib/calc/core/sum.rb", None),
            ("gem/lib/calc/sum.rb", Some("calc")),
            ("lib/sum.rb", None),
            ("app/models/sum.rb", None),
        ] {
            assert_eq!(code.shared_namespace(path), expected, "{path}");
        }
    }

    #[test]
    fn new_file_that_is_found_before_one_of_the_base_is_known() {
        let files = [
            "a/checks.py",
            "a/space/one.py",
            "a/pack/__init__.py",
            "a/x.json",
            "a/y.ts",
            "a/y.test.ts",
            "a/z/index.js",
            "a/l/init.lua",
            "a/index.js",
        ];
        let files = files.map(str::to_owned).into();
        let code = KnownCode { files, ..KnownCode::default() };
        let cases: [(&str, &[&str]); 18] = [
            ("a/checks/__init__.py", &["a/checks.py"]),
            ("a/checks/more/b.py", &["a/checks.py"]),
            ("a/space.py", &["a/space/one.py"]),
            ("a/pack.py", &[]),
            ("a/other.py", &[]),
            ("a/x.js", &["a/x.json"]),
            ("a/y.js", &["a/y.ts"]),
            ("a/y.d.ts", &["a/y.ts"]),
            ("a/index.d.ts", &["a/index.js"]),
            ("a/z.d.mts", &["a/z/index.js"]),
            ("a/other.d.ts", &[]),
            ("a/checks.pyi", &["a/checks.py"]),
            ("a/checks/__init__.pyi", &["a/checks.py"]),
            ("a/other.pyi", &[]),
            ("a/x/index.js", &[]),
            ("a/l.lua", &["a/l/init.lua"]),
            ("a/x.rb", &[]),
            ("a/y.css", &[]),
        ];
        for (path, expected) in cases {
            assert_eq!(code.replaced_by(path, &modules_declared_by(path)), expected, "{path}");
        }
    }

    #[test]
    fn new_header_is_found_for_another_only_by_a_search() {
        let files = ["third/unit/unit.h", "src/a/types.h", "src/a/types.c", "src/lib/own.h"];
        let files = files.map(str::to_owned).into();
        let code = KnownCode { files, ..KnownCode::default() };
        let cases = [
            ("#include \"unit.h\"", "tests/t.c", "src/unit.h", true),
            ("# include \"unit/unit.h\"", "tests/t.c", "src/unit/unit.h", true),
            ("#include <check.h> // c", "tests/t.c", "src/check.h", true),
            ("#include <lib/own.h>", "tests/t.c", "new/lib/own.h", true),
            ("#include \"types.h\"", "src/a/types.c", "src/b/types.h", false),
            ("#include \"new.h\"", "tests/t.c", "src/new.h", false),
            ("#include <lib/new.h>", "tests/t.c", "src/lib/new.h", false),
            ("#include <checks.h>", "tests/t.c", "src/check.h", false),
            ("#include HEADER", "tests/t.c", "src/check.h", false),
        ];
        for (line, file, path, expected) in cases {
            let include = Include::of(line);
            let is_found = include.is_some_and(|i| code.is_included_for_another(path, file, &i));
            assert_eq!(is_found, expected, "{line}: {path}");
        }
    }

    #[test]
    fn module_that_a_test_loads_is_found_by_its_name() {
        let cases = [
            ("use Calc; use Test::More tests => 1;", "src/Test/More.pm", true),
            ("use Test::More;", "src/Test/Builder.pm", true),
            ("use Test::More;", "src/lib/Test/More.pm", true),
            ("use Test::More;", "src/More.pm", false),
            ("use Calc::Sum;", "src/Sum.pm", false),
            ("require \"minitest/autorun\"", "src/minitest/autorun.rb", true),
            ("require('json')", "src/json.rb", true),
            ("require_relative \"sum\"", "src/sum.rb", false),
            ("import sys, unittest", "src/unittest.py", true),
            ("from unittest import mock", "src/unittest.py", true),
            ("from calc import sum", "src/sum.py", false),
            ("from .sum import a", "src/sum.py", false),
            ("# I use sum", "src/sum.py", false),
            ("    from src.local import A", "src/local.py", true),
            ("from src.local import A", "src/local.py", false),
            ("use Own;", "src/Own/Sum.pm", false),
            ("use Own::Sum;", "src/Own/Sum.pm", true),
            ("use Own::Calc;", "src/Own/Sum.pm", true),
            ("require \"Own\"", "src/Own/sum.rb", true),
            // The dot is in the name of the directory.
            ("import calc", ".ci/scripts/run", false),
        ];
        let files = ["src/Own.pm".to_owned()].into();
        let directories = ["src", ".ci", ".ci/scripts"].map(str::to_owned).into();
        let code = KnownCode { files, directories, ..KnownCode::default() };
        for (line, path, expected) in cases {
            let module = NewModule::of(path, &code);
            assert_eq!(module.is_loaded_in(line), expected, "{line}: {path}");
        }
    }
}
