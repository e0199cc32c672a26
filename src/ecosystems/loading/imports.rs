//! The modules that a file of Python or Ruby loads, named as the interpreter finds them: from the
//! directory of the file, or from a directory of the search path.
use std::collections::BTreeSet;
use std::iter;

use crate::ecosystems::loading::code_lines::{
    has_loading_word, is_comment, names_own_directory, runs_module,
};
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::marks;
use crate::ecosystems::paths::{directory_of, is_in_name, resolved, stem_and_extension};
use crate::ecosystems::{python, ruby};

/// The modules that a file loads.
pub struct Imports {
    /// The names of the modules, with slashes: `calc/sum` for `calc.sum`. A name that begins with a
    /// slash is a path from the root of the base.
    names: BTreeSet<String>,
}

impl Imports {
    /// The modules that the code at `path` loads. `text` is the text of the file.
    pub fn of(path: &str, text: &str) -> Imports {
        let directory = directory_of(path);
        let is_program_in_ruby = text.lines().next().is_some_and(|line| line.contains("ruby"));
        let names = match ruby::ECOSYSTEM.has_source(path) || is_program_in_ruby {
            true => names_in_ruby(directory, text),
            false => names_in_python(directory, text),
        };
        Imports { names }
    }

    /// True if the code loads the file at `path`. `is_searched` is true for a directory of the
    /// search path; the root is the empty path.
    pub fn load(&self, path: &str, is_searched: impl Fn(&str) -> bool) -> bool {
        let stem = stem_and_extension(path).0;
        let module = stem.strip_suffix("/__init__").unwrap_or(stem);
        let below = module.match_indices('/').map(|(at, _)| (&module[..at], &module[at + 1..]));
        self.names.contains(&format!("/{module}"))
            || iter::once(("", module))
                .chain(below)
                .any(|(directory, name)| self.names.contains(name) && is_searched(directory))
    }
}

/// The names of the files that lines of Ruby load.
fn names_in_ruby(directory: &str, text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| !is_comment(line)) {
        let loads = has_loading_word(line);
        let names_own = names_own_directory(line);
        let is_relative = names_own || line.contains("require_relative");
        // `%w[sum mean].each { |name| require_relative name }`
        let list = line.split_once("%w").map_or("", |(_, list)| list);
        let list = list.split([')', ']', '}', '>']).next().unwrap_or_default();
        for word in quoted_words(line).chain(list.split(['(', '[', '{', '<', ' '])) {
            if word.is_empty() || !(loads || names_own || word.starts_with("../")) {
                continue;
            }
            let word = word.strip_suffix(".rb").unwrap_or(word);
            // Programs name paths from the directory in which they start, too.
            let from = match word.starts_with('.') {
                true => vec![directory, ""],
                false if is_relative => vec![directory],
                false => Vec::new(),
            };
            let paths = from.into_iter().filter_map(|from| resolved(from, word));
            names.extend(paths.map(|path| format!("/{path}")));
            names.insert(word.to_owned());
        }
    }
    names
}

/// The modules that code of Python imports. Besides statements, a text in quotes counts: a module
/// with its package (`"calc.sum:add"`), or beside a word that loads modules
/// (`import_module("sum")`).
fn names_in_python(directory: &str, text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let code = marks::code_or_text(&python::ECOSYSTEM, text);
    for name in statements(&code).iter().flat_map(|statement| imported(statement)) {
        let name = place_of(directory, &name);
        // The interpreter loads the packages of a module, too.
        let packages = name.match_indices('/').map(|(at, _)| name[..at].to_owned());
        names.extend(packages.chain([name.clone()]));
    }
    // A package that loads its modules when they are used names them in a table.
    let is_lazy = ["__getattr__", "lazy"].iter().any(|word| code.contains(word));
    for line in lines_without_documents(text) {
        for word in quoted_words(line) {
            names.extend(quoted(directory, word, is_lazy || has_loading_word(line)));
            if runs_module(line) {
                names.insert(format!("{}/__main__", word.replace('.', "/")));
            }
        }
    }
    names
}

/// The name of a module in code of `directory`, as in [`Imports`]. Each dot before the name but the
/// first leads one directory up.
fn place_of(directory: &str, name: &str) -> String {
    let own = name.trim_start_matches('.');
    let path = own.replace('.', "/");
    let dots = name.len() - own.len();
    if dots == 0 {
        return path;
    }
    let above = iter::successors(Some(directory), |directory| Some(directory_of(directory)));
    let from = above.take(dots).last().unwrap_or_default();
    format!("/{from}/{path}").replace("//", "/").trim_end_matches('/').to_owned()
}

/// The statements of code that import modules, each as one line.
fn statements(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = code.split(['\n', ';']);
    while let Some(line) = lines.next() {
        let line = line.trim().trim_start_matches(">>> ");
        // `try: import calc` has a statement after the colon.
        let statement = line.rsplit(": ").next().unwrap_or(line);
        if !["import ", "from ", "cimport "].iter().any(|word| statement.starts_with(word)) {
            continue;
        }
        let mut statement = statement.to_owned();
        while statement.contains('(') && !statement.contains(')') || statement.ends_with('\\') {
            let Some(next) = lines.next() else { break };
            statement = format!("{} {}", statement.trim_end_matches('\\'), next.trim());
        }
        found.push(statement);
    }
    found
}

/// The modules that a statement may import: `calc` and `calc.sum` for `from calc import sum`.
fn imported(statement: &str) -> Vec<String> {
    let (from, names) = match statement.strip_prefix("from ") {
        Some(rest) => rest.split_once("import").unwrap_or((rest, "")),
        None => ("", statement.split_once(' ').map_or("", |(_, names)| names)),
    };
    // Cython writes `cimport`.
    let from = from.trim().trim_end_matches(" c");
    let names = names.split(|c| ",()".contains(c)).map(|name| name.trim());
    let names = names.filter_map(|name| name.split_whitespace().next());
    let between = if from.is_empty() || from.ends_with('.') { "" } else { "." };
    let names = names.map(|name| format!("{from}{between}{name}"));
    iter::once(from.to_owned()).filter(|from| !from.is_empty()).chain(names).collect()
}

/// The modules that a text in quotes may name: itself, or, if it names something in a module, the
/// module. A name without a package counts only if `loads`; then it may also be a module of the same
/// package.
fn quoted(directory: &str, text: &str, loads: bool) -> Vec<String> {
    let name = text.split(':').next().unwrap_or(text);
    let own = name.trim_start_matches('.');
    let is_name = own.starts_with(is_in_name) && own.chars().all(|c| c == '.' || is_in_name(c));
    match own.rsplit_once('.') {
        _ if !is_name => Vec::new(),
        Some(_) => {
            let above = name.rsplit_once('.').map_or("", |(above, _)| above);
            [name, above].map(|name| place_of(directory, name)).into()
        }
        None if loads => vec![place_of(directory, name), place_of(directory, &format!(".{own}"))],
        None => Vec::new(),
    }
}

/// True if a line of code is outside of documents of modules, classes and functions.
pub fn is_in_code(text: &str, line: &str) -> bool {
    lines_without_documents(text).any(|other| other == line)
}

/// The lines of code, without the documents of its modules, classes and functions.
fn lines_without_documents(text: &str) -> impl Iterator<Item = &str> {
    let mut is_value = false;
    let mut open = None;
    text.lines().filter(move |line| {
        let line = line.trim();
        if let Some(quote) = open {
            if line.contains(quote) {
                open = None;
            }
            return false;
        }
        let start = line.trim_start_matches(['r', 'R']);
        let quote = ["\"\"\"", "'''"].into_iter().find(|quote| start.starts_with(quote));
        let is_document = quote.is_some() && !is_value;
        // A text after an open bracket or an operator is a value.
        if !line.is_empty() {
            is_value = line.ends_with(['(', '[', '{', ',', '=', '+', '\\']);
        }
        if is_document {
            open = quote.filter(|quote| !start[quote.len()..].contains(quote));
        }
        !is_document
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_loads_the_modules_that_its_interpreter_finds() {
        let cases = [
            ("tests/t.py", "from lib import calc", "lib/calc.py", true),
            ("tests/t.py", "from lib import (", "lib/calc.py", false),
            ("tests/t.py", "from lib import (\n    add,\n    calc as c,\n)", "lib/calc.py", true),
            ("tests/t.py", "from lib import add, \\\n    calc", "lib/calc.py", true),
            ("tests/t.py", "from lib.calc import add", "lib/calc/__init__.py", true),
            ("tests/t.py", "import lib.calc.sum", "lib/calc/__init__.py", true),
            ("tests/t.py", "import os, lib.calc as c", "lib/calc.py", true),
            ("tests/t.py", "try: import lib.calc", "lib/calc.py", true),
            ("tests/t.py", "import calc", "lib/calc.py", false),
            ("tests/t.py", "import calc", "src/calc.py", true),
            ("tests/t.py", ">>> import calc", "src/calc.py", true),
            ("lib/b.py", "    from .calc import add", "lib/calc.py", true),
            ("lib/b.py", "from . import calc", "lib/calc.py", true),
            ("lib/a/b.py", "from .. import calc", "lib/calc.py", true),
            ("lib/a/b.py", "from ..calc import add", "lib/calc.py", true),
            ("lib/a/b.py", "from .calc import add", "lib/calc.py", false),
            ("lib/b.pyx", "from .calc cimport add", "lib/calc.pxd", true),
            ("lib/b.py", "importlib.import_module('lib.calc')", "lib/calc.py", true),
            ("lib/b.py", "importlib.import_module('.calc', __name__)", "lib/calc.py", true),
            ("lib/b.py", "load_plugin('calc')", "lib/calc.py", true),
            ("tests/t.py", "run([python, \"-m\", \"lib\"])", "lib/__main__.py", true),
            ("tests/t.py", "runpy.run_module('lib')", "lib/__main__.py", true),
            ("tests/t.py", "import lib", "lib/__main__.py", false),
            ("lib/b.py", "KEYS = ['calc', 'name']", "lib/calc.py", false),
            ("lib/__init__.py", "t = {'calc': ['A']}\ndef __getattr__(n):", "lib/calc.py", true),
            ("tests/t.py", "patch('lib.calc.add')", "lib/calc.py", true),
            ("lib/b.py", "'lib.calc:Calc'", "lib/calc.py", true),
            ("lib/b.py", "# import lib.calc", "lib/calc.py", false),
            ("lib/b.py", "\"\"\"\nimport lib.calc\n\"\"\"", "lib/calc.py", false),
            ("lib/b.py", "def f():\n    'See lib.calc.'\n", "lib/calc.py", false),
            ("lib/b.py", "\"\"\"Runs 'lib.calc'.\"\"\"", "lib/calc.py", false),
            ("lib/b.py", "x = a.calc", "a/calc.py", false),
            ("lib/b.py", "import json", "tools/json.py", false),
            ("lib/b.py", "from a import b as calc", "lib/calc.py", false),
            ("lib/b.py", "from lib.calc import report", "lib/hooks/report.py", false),
            ("test/t.rb", "require 'calc/sum'", "src/calc/sum.rb", true),
            ("test/t.rb", "require 'calc/sum'", "tools/calc/sum.rb", false),
            ("test/t.rb", "require_relative '../src/calc'", "src/calc.rb", true),
            ("test/t.rb", "require './src/calc.rb'", "src/calc.rb", true),
            ("src/a.rb", "autoload :Sum, 'calc/sum'", "src/calc/sum.rb", true),
            ("src/a.rb", "%w[sum mean].each { |f| require_relative f }", "src/sum.rb", true),
            ("src/a.rb", "load File.expand_path('../calc/sum.rb', __FILE__)", "calc/sum.rb", true),
            ("src/a.rb", "require 'logger'", "tools/logger.rb", false),
            ("src/a.rb", "# require 'calc'", "src/calc.rb", false),
            ("src/a.rb", "get '/calc'", "src/calc.rb", false),
            ("exe/a", "#!/usr/bin/env ruby\nrequire 'calc'", "src/calc.rb", true),
            ("bin/a", "#!/usr/bin/python3\nimport calc", "src/calc.py", true),
        ];
        for (other, text, path, expected) in cases {
            let loads = Imports::of(other, text).load(path, |at| ["", "src"].contains(&at));
            assert_eq!(loads, expected, "{path} in {other}: {text}");
        }
    }
}
