//! Code that lists the files of a directory.
use std::collections::BTreeSet;

use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::languages::language_of;
use crate::ecosystems::loading::LoadedName;
use crate::ecosystems::loading::code_lines::{
    OWN_DIRECTORY, extension_after, has_loading_word, is_comment, names_own_directory,
};
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{directory_of, file_name, is_in_name, place_of_word};
use crate::ecosystems::touched::is_test_path;

/// Code that lists the files of a directory contains one of these texts.
pub const LISTING: [&str; 17] = [
    "-type f",
    "Dir.children",
    "Dir.entries",
    "Dir.each_child",
    "Dir[",
    "DirectoryIterator",
    "File::Find",
    "Find.find",
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

impl LoadedName<'_> {
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
}

/// The search for every line that may name the directory of one of these files.
pub fn search_for_listing(files: &[LoadedName<'_>]) -> LineSearch {
    let directories = files.iter().map(|file| file_name(directory_of(file.path)).to_owned());
    LineSearch::of(directories.chain(OWN_DIRECTORY.map(str::to_owned)))
}

/// True if a text of code lists the files of a directory.
pub fn lists_files(text: &str) -> bool {
    text.lines()
        .any(|line| !is_comment(line) && LISTING.iter().any(|listing| line.contains(listing)))
}

/// Calls that ask how a text ends, and how it begins.
const ENDS: [&str; 4] = ["endsWith(", "endswith(", "ends_with(", "end_with?("];
const BEGINS: [&str; 4] = ["startsWith(", "startswith(", "starts_with(", "start_with?("];

/// Patterns for the names of the files that a text selects, if it lists files: `*-hooks.js` for
/// `endsWith("-hooks.js")` and `/-hooks\.js$/`, `*_hooks.*` for `endswith("_hooks")`. Names in lines
/// that load modules are left out.
pub fn selected_names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !is_comment(line));
    let lines = lines.filter(|line| lists_files(line) || !has_loading_word(line));
    let mut found = BTreeSet::new();
    for line in lines {
        let names = line.split(|c: char| !is_in_name(c) && !"-.*+?\\[]^$".contains(c));
        let names = names.filter(|name| name.contains('.')).map(as_pattern);
        found.extend(names.filter(|name| language_of(name).is_some()));
        let parts = quoted_words(line).filter(|word| !word.contains('.') && word.len() > 2);
        for part in parts.filter(|word| word.chars().all(|c| is_in_name(c) || c == '-')) {
            if ENDS.iter().any(|call| line.contains(call)) {
                found.insert(format!("*{part}.*"));
            }
            if BEGINS.iter().any(|call| line.contains(call)) {
                found.insert(format!("*/{part}*"));
            }
        }
    }
    found
}

/// A part of a name, or a regular expression for one, as a pattern with `*`.
fn as_pattern(name: &str) -> String {
    let name = ["[.]", "\\."].iter().fold(name.to_owned(), |name, dot| name.replace(dot, "."));
    let name = name.replace(".*", "*").replace(".+", "*");
    let plain: String = name.chars().filter(|c| !"\\^$".contains(*c)).collect();
    format!("*{}", plain.replace(['[', ']', '+', '?'], "*"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_selects_files_by_the_ends_and_patterns_of_their_names() {
        for (line, expected) in [
            ("f.endsWith('-hooks.js')", &["*-hooks.js"][..]),
            ("/hooks\\.js$/.test(f)", &["*hooks.js"]),
            ("preg_match('/^boot.*\\.php$/', $f)", &["*boot*.php"]),
            ("find lib | grep \"hooks[.]sh$\"", &["*hooks.sh"]),
            ("join(__dirname, d, 'hooks.js')", &["*hooks.js"]),
            ("if m.name.endswith('_hooks'):", &["*_hooks.*"]),
            ("if f.end_with?(\"_hooks\")", &["*_hooks.*"]),
            ("str_starts_with($f, 'boot')", &["*/boot*"]),
            ("require('./hooks.js')", &[]),
            ("x = '_hooks'", &[]),
        ] {
            let found = selected_names(line);
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{line}");
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
}
