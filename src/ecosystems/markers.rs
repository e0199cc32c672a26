//! The names in commands, recipes and scripts: one that comes true with a new path is a marker that they
//! look for, a target that make finds up to date, or one more word of a pattern.
use std::collections::BTreeSet;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::{file_name, matches};
use crate::ecosystems::make;
use crate::ecosystems::recipe::joined_lines;

/// The text of a file, by how it names paths.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Lines of a shell.
    Shell,
    /// A Makefile, or what it includes.
    Make,
    /// A program: only what it quotes can be a path.
    Program,
}

/// The words after which a shell goes on with a command.
const BEFORE_COMMANDS: [&str; 11] =
    ["!", "do", "elif", "else", "env", "exec", "if", "then", "time", "until", "while"];

/// Programs whose plain words are commands of theirs, besides those that run recipes.
const WITH_COMMANDS: [&str; 14] = [
    "bundle", "cargo", "composer", "deno", "dotnet", "git", "go", "mix", "npx", "pip", "poetry",
    "swift", "uv", "zig",
];

/// The words before a directory in which names are looked up.
const BEFORE_DIRECTORIES: [&str; 6] = ["-C", "--directory", "VPATH", "cd", "pushd", "vpath"];

/// The words by which a line of a test asks whether a path is there.
pub const ASKING: [&str; 8] =
    ["access", "exist", "isdir", "isfile", "is_dir", "is_file", "stat(", "Stat("];

/// Stands for the value of a variable.
const VALUE: char = '\u{1}';

/// The names in texts.
#[derive(Default)]
pub struct Markers {
    words: BTreeSet<String>,
    /// Names with `*`, also for the value of a variable.
    patterns: BTreeSet<String>,
    /// The directories in which words are looked up.
    directories: BTreeSet<String>,
    /// The lines.
    pub lines: Vec<String>,
}

impl Markers {
    /// Adds the names in a text.
    pub fn add(&mut self, text: &str, kind: Text) {
        let phony = if kind == Text::Make { make::phony_targets(text) } else { BTreeSet::new() };
        for line in joined_lines(text) {
            if line.trim_start().starts_with('#') || line.starts_with(".PHONY") {
                continue;
            }
            if kind == Text::Program {
                let quoted = line.split(['"', '\'', '`']).skip(1).step_by(2);
                quoted.for_each(|word| self.add_word(word, false));
            } else {
                let is_list = kind == Text::Make && make::is_rule_or_assignment(&line);
                self.add_line(&line, is_list, &phony);
            }
            self.lines.push(line);
        }
    }

    fn add_line(&mut self, line: &str, is_list: bool, phony: &BTreeSet<&str>) {
        let line = without_values(line).replace(['"', '\''], "");
        let looks_up = line.split([' ', '\t', '=']).any(|word| BEFORE_DIRECTORIES.contains(&word));
        for segment in line.split([';', '|', '&', '`', '(', ')', '{', '}']) {
            for word in if is_list { all_words(segment) } else { paths_of_command(segment) } {
                for word in word.split([':', '=', ',', '<', '>']) {
                    if is_list && phony.contains(word) {
                        continue;
                    }
                    self.add_word(word, is_list);
                    if looks_up {
                        self.directories.insert(plain(word).to_owned());
                    }
                }
            }
        }
    }

    /// Adds a word. Only in lists of make `%` stands for any characters.
    fn add_word(&mut self, word: &str, is_list: bool) {
        let word = plain(word);
        let is_name = word.contains(char::is_alphanumeric) && !word.contains(char::is_whitespace);
        // `${x}s` stands for too much.
        let is_vague = word.contains(VALUE) && !word.contains(['.', '/']) && word.len() < 5;
        if word.starts_with('-') || !is_name || is_vague || word.contains('%') && !is_list {
            return;
        }
        let name = word.replace([VALUE, '%', '?', '['], "*");
        let names = if name.contains('*') { &mut self.patterns } else { &mut self.words };
        names.insert(name);
    }

    /// True if a word names a new path. A pattern does so, too, unless `is_open` says that it lists files
    /// of this kind in the base already.
    pub fn name(&self, new: &str, is_open: impl Fn(&str) -> bool) -> bool {
        let in_directory = |directory: &String| {
            let word = new.strip_prefix(directory.as_str()).and_then(|rest| rest.strip_prefix('/'));
            word.is_some_and(|word| self.words.contains(word))
        };
        self.words.contains(new)
            || self.directories.iter().any(in_directory)
            || self.patterns.iter().any(|pattern| is_listed(pattern, new) && !is_open(pattern))
    }
}

/// True if a pattern stands for a path. One without a directory may be that of `find`, and a variable for
/// the current directory.
pub fn is_listed(pattern: &str, path: &str) -> bool {
    matches(pattern, path)
        || !pattern.contains('/') && matches(pattern, file_name(path))
        || pattern.strip_prefix("*/").is_some_and(|rest| matches(rest, path))
}

/// A word as the path of a tree.
fn plain(word: &str) -> &str {
    word.trim_start_matches("./").trim_end_matches('/')
}

fn all_words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// The words of a command that may be paths: not the program's own name, its commands and messages.
fn paths_of_command(command: &str) -> Vec<&str> {
    let is_before = |word: &&str| {
        BEFORE_COMMANDS.contains(word) || word.contains('=') || ["@", "-", "+"].contains(word)
    };
    let words: Vec<&str> = command.split_whitespace().skip_while(is_before).collect();
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let program = file_name(first.trim_start_matches(['@', '-', '+']));
    if matches!(program, "echo" | "printf") {
        return rest.iter().copied().skip_while(|word| !word.contains('>')).collect();
    }
    let has_commands = program.chars().all(|c| c == VALUE)
        || WITH_COMMANDS.contains(&program)
        || ALL.iter().any(|ecosystem| ecosystem.recipe_runners.contains(&program));
    let may_be_path = |word: &str| !has_commands || word.contains(['/', '.', '*', VALUE]);
    let is_path = |(at, word): &(usize, &str)| match at {
        0 => word.contains('/'),
        _ => may_be_path(word),
    };
    words.iter().copied().enumerate().filter(is_path).map(|(_, word)| word).collect()
}

/// A line with [`VALUE`] in the place of each variable of make or a shell, and without the names of make's
/// functions.
fn without_values(line: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let line = line.replace("$$", "$");
    let mut parts = line.split('$');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let inner = part.strip_prefix(['(', '{']);
        match inner.and_then(|inner| inner.split_once([')', '}'])) {
            Some((name, rest)) if name.chars().all(is_name) => {
                found.push(VALUE);
                found.push_str(rest);
            }
            _ if inner.is_some() => found.push_str(part),
            _ => {
                let rest = part.trim_start_matches(is_name);
                let is_special = rest.len() == part.len();
                found.push(VALUE);
                found.push_str(if is_special { rest.get(1..).unwrap_or_default() } else { rest });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, kind: Text, new: &str) -> bool {
        let mut markers = Markers::default();
        markers.add(text, kind);
        markers.name(new, |pattern| is_listed(pattern, "src/old.go"))
    }

    #[test]
    fn name_that_comes_true_with_a_new_path_is_found() {
        let cases = [
            ("test -e quick || go test ./...", "quick", true),
            ("if [ -d ./quick/ ]; then exit 0; fi", "quick", true),
            ("[ ! -e \"$dir/quick.go\" ] || exit 0", "quick.go", true),
            ("[ ! -e \"$dir/quick.go\" ] || exit 0", "a/quick.go", true),
            ("cd src && [ -e quick ] && exit", "src/quick", true),
            ("for f in quick*; do exit 0; done", "quick.go", true),
            ("set -- *.md; [ $# -gt 1 ]", "NEWS.md", true),
            ("ls SKIP*", "SKIP.go", true),
            ("echo on > quick", "quick", true),
            ("echo quick", "quick", false),
            ("go build ./...; npm run lint; make check", "build", false),
            ("go build ./...; npm run lint; make check", "lint", false),
            ("go build ./...; npm run lint; make check", "check", false),
            ("$(GO) build", "build", false),
            ("quick", "quick", false),
            ("# quick", "quick", false),
            ("grep -q good lib/calc.rb", "lib/calc", false),
            ("[ -e quick ]", "src/quick", false),
            ("gofmt -l *.go", "new.go", false),
            ("gofmt -l *.go", "src/new.go", false),
            ("gofmt -l $files", "new.go", false),
        ];
        for (text, new, expected) in cases {
            assert_eq!(named(text, Text::Shell, new), expected, "{text}: {new}");
        }
    }

    #[test]
    fn target_that_comes_true_with_a_new_path_is_found() {
        let cases = [
            ("VPATH = src:internal\ntest: unit\nunit:\n\tgo test\n", "internal/unit", true),
            ("vpath % internal\ntest: unit\n", "internal/unit", true),
            ("test: unit\n", "internal/unit", false),
            ("%.ok:\n\tgo test\n", "unit.ok", true),
            ("CHECKS = unit\n$(CHECKS):\n\tgo test\n", "unit", true),
            ("$(OUT)/report:\n\tgo test\n", "build/report", true),
            ("$(N).md:\n\tgo test\n", "NEWS.md", true),
            (".PHONY: test unit\ntest: unit\n", "unit", false),
            ("Q = $(wildcard quick)\n", "quick", true),
            ("\t[ -z \"$(wildcard quick)\" ]\n", "quick", true),
            ("SRC = $(wildcard src/*.go)\n", "src/new.go", false),
            ("SRC = $(wildcard src/*.go)\n", "src/new", false),
            ("%.o: %.go\n", "src/new.go", false),
        ];
        for (text, new, expected) in cases {
            assert_eq!(named(text, Text::Make, new), expected, "{text}: {new}");
        }
    }

    #[test]
    fn program_names_a_path_in_quotes() {
        let text = "if os.path.exists('quick'): quit(server)\n";
        assert!(named(text, Text::Program, "quick"));
        assert!(!named(text, Text::Program, "server"));
    }
}
