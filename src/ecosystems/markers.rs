//! The names in commands, recipes and scripts. A new path with such a name may change which
//! commands run:
//! * A command may ask whether the path exists.
//! * make may take the new file for a target that is up to date.
//! * A pattern may match one more path.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::ALL;
use crate::ecosystems::looking::looks_only;
use crate::ecosystems::make;
use crate::ecosystems::paths::{below, file_name, inside, is_in_path, place_of_word, plain};
use crate::ecosystems::run_files::{assignment, reads_shell, with_values, without_prefixes};
use crate::model::pattern::matches;
use crate::model::shell::{
    SimpleCommand, Word, commands_of, continued_lines, is_assignment, may_leave_commands_out,
    script_lines, without_substitutions, without_variables,
};

/// The kind of a text. It decides which words of the text can be paths.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Lines for a shell.
    Shell,
    /// A shell script. Another line may use its exit code as a condition.
    Script,
    /// A Makefile, or a file that it includes.
    Make,
    /// A program: only its quoted texts can be paths.
    Program,
}

impl TextKind {
    fn lines(self, text: &str) -> Vec<String> {
        match self {
            TextKind::Shell | TextKind::Script => shell_lines(text),
            TextKind::Make | TextKind::Program => continued_lines(text),
        }
    }
}

/// Programs whose plain arguments are commands of their own, not files: `cargo build`. Programs
/// that run recipes are not listed; their arguments are names of recipes.
const WITH_COMMANDS: [&str; 14] = [
    "bundle", "cargo", "composer", "deno", "dotnet", "git", "go", "mix", "npx", "pip", "poetry",
    "swift", "uv", "zig",
];

/// The words before a directory in which the names in a line are looked up: `cd DIRECTORY`.
const BEFORE_DIRECTORIES: [&str; 6] = ["-C", "--directory", "VPATH", "cd", "pushd", "vpath"];

/// Words in a line of a test, with `|` between them. With such a word, the test asks whether a path,
/// a program or a module exists, or goes on without it.
pub const ASKING: &str = "\
    $(which |-d |-e |-f |-r |-s |-x |.catch(|@include|LookPath|access|class_exists|command -|\
    ensure_loaded|exist|find_spec|forName|has_include|if hash |if type |if which |is_dir|is_file|\
    isdir|isfile|pcall|Stat(|stat(|try {|which(";

/// The words that begin a block or a call whose failure does not end the test.
const TRYING: [&str; 5] = ["begin", "eval", "pcall", "suppress", "try"];

/// True if a test asks whether the file or module that `line` names exists, or goes on without it.
/// The line itself shows this, or a line that opens a block around it. The indentation shows the
/// blocks. `text` is the text of the test.
pub fn goes_on_without(text: &str, line: &str) -> bool {
    if ASKING.split('|').any(|word| line.contains(word)) {
        return true;
    }
    // The blocks around the current line: their indentations, and whether the test goes on after a
    // failure in them.
    let mut around: Vec<(usize, bool)> = Vec::new();
    text.lines().filter(|line| !line.trim().is_empty()).any(|own| {
        let indentation = own.len() - own.trim_start().len();
        while around.pop_if(|(outer, _)| *outer >= indentation).is_some() {}
        let tries = TRYING.iter().any(|word| place_of_word(own, word).is_some());
        around.push((indentation, tries));
        own == line && around.iter().any(|(_, tries)| *tries)
    })
}

/// The options and variables that list directories. Tools look for a file in these directories, one
/// after another.
const SEARCH_PATHS: &str = "
    -I -classpath -cp -sourcepath CLASSPATH NODE_PATH PERL5LIB PERLLIB PYTHONPATH RUBYLIB VPATH
    vpath";

/// The words before the directory in which a command runs, besides those of `BEFORE_DIRECTORIES`.
const BEFORE_PLACES: [&str; 4] = ["--chdir", "-I", "chdir", "cwd"];

/// Texts in lines that list the directories in which an interpreter looks for modules first.
pub const MODULE_PATHS: [&str; 7] =
    ["discover", "load_path", "perl5lib", "pythonpath", "rubylib", "sys.path", "use lib"];

/// The values that Makefiles give to variables.
type MakeValues = BTreeMap<String, Vec<Word>>;

/// Stands for the value of a variable.
const VALUE: char = '\u{1}';

/// The names in the texts of commands, recipes and scripts.
#[derive(Default)]
pub struct Markers {
    words: BTreeSet<String>,
    /// Names with `*`, which also stands for the value of a variable.
    patterns: BTreeSet<String>,
    /// The patterns in conditions of make that compare the matching paths with another text.
    compared: BTreeSet<String>,
    /// True if a condition in a text decides whether commands run. If so, names are also taken from
    /// a script's commands that only look at files, because such a command may be part of the
    /// condition.
    has_conditions: bool,
    /// The directories in which `words` are looked up.
    directories: BTreeSet<String>,
    /// All lines, each with the kind of its text.
    pub lines: Vec<(TextKind, String)>,
}

impl Markers {
    /// The names in these texts.
    pub fn of(texts: &[(String, TextKind)]) -> Markers {
        let mut found = Markers::default();
        let shell = texts.iter().filter(|(_, kind)| *kind != TextKind::Program);
        found.has_conditions =
            shell.flat_map(|(text, kind)| kind.lines(text)).any(|line| has_condition(&line));
        // Makefiles include each other, so one of them may have the values for another one.
        let makefiles = texts.iter().filter(|(_, kind)| *kind == TextKind::Make);
        let mut values = MakeValues::new();
        for line in makefiles.flat_map(|(text, kind)| kind.lines(text)) {
            for command in commands_of(&make::as_shell_line(&line)) {
                for (name, value) in command.words.iter().filter_map(assignment) {
                    values.entry(name.to_owned()).or_default().push(value);
                }
            }
        }
        for (text, kind) in texts {
            found.add(text, *kind, &values);
        }
        found
    }

    /// The patterns that a line of a test names. A path from a directory that is not known is one of
    /// them.
    pub fn of_line(line: &str) -> Markers {
        let mut found = Markers::default();
        found.add_quoted(line);
        found.words.clear();
        found
    }

    /// Adds the names in a text. `values` are the values of the Makefiles' variables.
    fn add(&mut self, text: &str, kind: TextKind, values: &MakeValues) {
        let lines = kind.lines(text);
        let lists = lines.iter().filter(|line| line.starts_with(".PHONY"));
        let lists: Vec<String> = lists.map(|line| expanded(line, values)).collect();
        let lists = lists.join("\n");
        let phony = make::phony_targets(&lists);
        for line in lines {
            if line.trim_start().starts_with('#') || line.starts_with(".PHONY") {
                continue;
            }
            if kind == TextKind::Make {
                for condition in make::conditions(&line) {
                    self.add_condition(&without_variables(&expanded(condition, values), VALUE));
                }
            }
            if kind == TextKind::Program {
                self.add_quoted(&line);
            } else if kind == TextKind::Make && make::is_rule_or_assignment(&line) {
                self.add_list(&without_make_values(&line), &phony);
                // A name may have several parts, each the value of a variable.
                self.add_list(&without_variables(&expanded(&line, values), VALUE), &phony);
            } else if kind == TextKind::Make {
                // make expands its functions also between single quotes.
                self.add_commands(&without_make_values(&line).replace('\'', "\""), false);
            } else {
                let is_asked = kind == TextKind::Script && self.has_conditions;
                self.add_commands(&without_variables(&line, VALUE), is_asked);
            }
            self.lines.push((kind, line));
        }
    }

    /// Adds the names in a condition of make. The condition may compare the paths that match a
    /// pattern with another text, as in `$(findstring new,$(wildcard *.c))`. Then each further path
    /// may change the result.
    fn add_condition(&mut self, condition: &str) {
        let mut own = Markers::default();
        own.add_list(condition, &BTreeSet::new());
        if own.words.len() + own.patterns.len() > 1 {
            self.compared.extend(own.patterns.iter().cloned());
        }
        self.words.append(&mut own.words);
        self.patterns.append(&mut own.patterns);
    }

    /// Adds the targets and prerequisites of a rule, or the words in a variable's value.
    fn add_list(&mut self, line: &str, phony: &BTreeSet<&str>) {
        let words = line.split(|c: char| c.is_whitespace() || ":=;|(){},\"'".contains(c));
        let words: Vec<&str> = words.filter(|word| !phony.contains(word)).collect();
        if words.iter().any(|word| BEFORE_DIRECTORIES.contains(word)) {
            self.directories.extend(words.iter().map(|word| plain(word).to_owned()));
        }
        for word in words {
            self.add_word(&word.replace('%', "*"));
        }
    }

    /// Adds the names in the commands of a line. A command that only looks at a file
    /// (`test -e new`) has no effect if no other command depends on the line's commands. So its
    /// words are not added. `is_used` is true if the commands' exit codes or their output matter
    /// outside of the line.
    fn add_commands(&mut self, line: &str, is_used: bool) {
        let (line, inner) = without_substitutions(line);
        let commands = commands_of(&line);
        let switches = is_used
            || may_leave_commands_out(&line)
            || commands.windows(2).any(|pair| pair[0].is_piped && !looks_at_files(&pair[1]))
            || commands.iter().any(|command| {
                command.has_words_or_input() && command.words.iter().all(|w| is_assignment(&w.text))
            });
        for text in inner {
            self.add_commands(&text, switches || !commands.iter().all(looks_at_files));
        }
        for command in commands.iter().filter(|command| switches || !looks_at_files(command)) {
            self.add_command(command);
        }
    }

    /// Adds the words of a command that may be paths. Leaves out the program's plain name, the
    /// names of the program's own commands, and messages.
    fn add_command(&mut self, command: &SimpleCommand) {
        let values = command.words.iter().take_while(|word| is_assignment(&word.text));
        for word in values.chain(&command.inputs).chain(&command.output) {
            self.add_words(&word.text);
        }
        let words = without_prefixes(&command.words);
        let Some(first) = words.first() else { return };
        let program = file_name(first.text.trim_start_matches(['@', '-', '+']));
        if matches!(program, "echo" | "printf") {
            return;
        }
        // The program may be the value of a variable, or a text that a command prints.
        let has_commands = program.chars().all(|c| c == VALUE)
            || program.starts_with('$')
            || WITH_COMMANDS.contains(&program)
            || ALL.iter().any(|ecosystem| ecosystem.recipe_runners.contains(&program));
        let mut by_shell = false;
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let is_spaced = text.contains(char::is_whitespace);
            if is_spaced && by_shell {
                self.add_commands(text, false);
            } else if is_spaced {
                self.add_quoted(text);
            } else if text.contains('/')
                || at > 0 && (!has_commands || text.contains(['.', '*', VALUE]))
            {
                self.add_words(text);
            }
            by_shell |= reads_shell(text);
        }
        if words.iter().any(|word| BEFORE_DIRECTORIES.contains(&word.text.as_str())) {
            self.directories.extend(words.iter().map(|word| plain(&word.text).to_owned()));
        }
    }

    /// Adds the texts in quotes. In a line that asks for a file, and in a text with a pattern, a path
    /// that begins with a slash begins at a directory that is not known: the program adds it to the
    /// path of that directory.
    fn add_quoted(&mut self, line: &str) {
        let asks = ASKING.split('|').any(|word| line.contains(word));
        for word in quoted_words(line) {
            let word = without_interpolations(word);
            let is_pattern = asks || word.contains(['*', VALUE]);
            if is_pattern && word.starts_with('/') && file_name(&word).contains('.') {
                self.add_word(&format!("{VALUE}{word}"));
            } else if is_pattern || !word.contains("../") {
                self.add_word(&word);
            }
        }
    }

    /// Adds the parts of a word: `a` and `b` of `PATH=a:b`.
    fn add_words(&mut self, text: &str) {
        for word in text.split([':', '=', ',']) {
            self.add_word(word);
        }
    }

    fn add_word(&mut self, word: &str) {
        let word = plain(word);
        let is_name = word.contains(char::is_alphanumeric) && !word.contains(char::is_whitespace);
        // A word such as `${x}s` could stand for nearly any word.
        let is_vague = word.contains(VALUE) && !word.contains(['.', '/']) && word.len() < 5;
        if word.starts_with('-') || !is_name || is_vague || word.contains('%') {
            return;
        }
        let name = word.replace([VALUE, '?', '['], "*");
        // The directory that `../` leaves is not known.
        let name = match name.rsplit_once("../") {
            Some((_, rest)) if rest.contains(char::is_alphanumeric) => format!("*/{rest}"),
            _ => name,
        };
        let names = if name.contains('*') { &mut self.patterns } else { &mut self.words };
        names.insert(name);
    }

    /// True if a tool may find the new file before a file of the base. The lines list directories
    /// in which tools look for files. The new file is in one of them, and the base has a file with
    /// the same relative path in another one. `has` is true for the files of the base.
    pub fn searches_before(&self, new: &str, has: impl Fn(&str) -> bool) -> bool {
        let lists = self.lines.iter().filter_map(|(_, line)| {
            let starts = SEARCH_PATHS.split_whitespace().filter_map(|word| line.find(word));
            Some(&line[starts.min()?..])
        });
        let words = lists.flat_map(|list| list.split(|c| !is_in_path(c)));
        let words = words.map(|word| plain(word.strip_prefix("-I").unwrap_or(word)));
        let words = words.filter(|word| !word.is_empty());
        let directories: BTreeSet<&str> =
            words.map(|word| if word == "." { "" } else { word }).collect();
        directories.iter().filter_map(|at| below(new, at)).any(|path| {
            let mut files = directories.iter().map(|at| inside(at, path));
            files.any(|file| file != new && has(&file))
        })
    }

    /// True if a text has this path or pattern as a word.
    pub fn has_word(&self, path: &str) -> bool {
        self.words.contains(path) || self.patterns.contains(path)
    }

    /// True if a word names a new path. A pattern that matches the path names it, too. But if
    /// `is_open` is true for the pattern, the pattern does not count, because it already matches
    /// files of this kind in the base.
    pub fn names(&self, new: &str, is_open: impl Fn(&str) -> bool) -> bool {
        self.words.contains(new)
            || self.directories.iter().any(|directory| {
                below(new, directory).is_some_and(|word| self.words.contains(word))
            })
            || self.compared.iter().any(|pattern| is_listed(pattern, new))
            || self.patterns.iter().any(|pattern| is_listed(pattern, new) && !is_open(pattern))
    }
}

/// True if one of these lines makes an interpreter look for modules in `directory` first. In such a
/// line, commands run there, or the directory is on a search path.
pub fn put_first(lines: &[&str], directory: &str) -> bool {
    let is_end_of = |long: &str, end: &str| {
        long.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let is_directory = |word: &str| {
        let path = word.strip_prefix("-C").or(word.strip_prefix("-I")).unwrap_or(word);
        // The value of a variable before the first slash may be any directory.
        let path = match path.strip_prefix('$') {
            Some(rest) => rest.split_once('/').map_or("", |(_, below)| below),
            None => path,
        };
        let path = plain(path.trim_start_matches('/').trim_start_matches("../"));
        !path.is_empty() && (is_end_of(directory, path) || is_end_of(path, directory))
    };
    // The words of lines such as `DIR = calc` and `for dir in calc`: a variable among them may be
    // the directory.
    let gives = lines.iter().filter(|line| {
        (line.contains('=') || line.contains(" in ")) && path_words(line).any(is_directory)
    });
    let given: BTreeSet<&str> = gives.flat_map(|line| path_words(line)).collect();
    let before = [&BEFORE_DIRECTORIES[..], &BEFORE_PLACES].concat();
    lines.iter().any(|line| {
        // `$(DIR)/calc` becomes one word.
        let parentheses = [("$(", "$"), ("${", "$"), (")/", "/"), ("}/", "/")];
        let line =
            parentheses.iter().fold((*line).to_owned(), |line, (old, new)| line.replace(old, new));
        let listed = module_path_in(&line);
        let mut places: Vec<&str> = path_words(listed).collect();
        let words: Vec<&str> = path_words(&line).collect();
        places.extend(words.windows(2).filter(|p| before.contains(&p[0])).map(|p| p[1]));
        places.extend(words.iter().filter(|word| word.starts_with("-C") || word.starts_with("-I")));
        places.into_iter().any(|word| {
            is_directory(word)
                || word.starts_with('$') && given.contains(word.trim_start_matches('$'))
        })
    })
}

/// The part of a line that lists the directories in which an interpreter looks for modules first;
/// empty if it lists none.
fn module_path_in(line: &str) -> &str {
    let lower = line.to_ascii_lowercase();
    let ends = MODULE_PATHS.iter().filter_map(|text| Some(lower.find(text)? + text.len()));
    let rest = ends.min().map_or("", |end| &line[end..]);
    let rest = rest.split(['&', ';', '|']).next().unwrap_or_default();
    // In `PYTHONPATH=calc python3 …` the list ends with the word.
    match rest.strip_prefix('=') {
        Some(value) => value
            .split_once(' ')
            .filter(|(first, _)| !first.is_empty())
            .map_or(rest, |(first, _)| first),
        None => rest,
    }
}

fn path_words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c| c != '$' && !is_in_path(c));
    words.filter(|word| !word.is_empty())
}

/// True if a line has a condition, and a command that does more than look at files. The condition
/// may decide whether that command runs.
fn has_condition(line: &str) -> bool {
    let (line, _) = without_substitutions(line);
    may_leave_commands_out(&line) && !commands_of(&line).iter().all(looks_at_files)
}

/// True if a command only looks at the files that it names, asks whether they are there, or does
/// nothing.
fn looks_at_files(command: &SimpleCommand) -> bool {
    let words = without_prefixes(&command.words);
    let program = words.first().map_or("", |word| word.text.as_str());
    !command.has_words_or_input()
        || matches!(program, "[" | "[[" | "test" | "exit" | "return" | "false" | "true")
        || looks_only(program, "")
}

/// True if a pattern may stand for a path. A pattern without a slash stands for files in any
/// directory, as for `find`. A pattern that begins with `*/` also stands for files in the root,
/// because the `*` may be a variable that names the current directory.
pub fn is_listed(pattern: &str, path: &str) -> bool {
    matches(pattern, path)
        || !pattern.contains('/') && matches(pattern, file_name(path))
        || pattern.strip_prefix("*/").is_some_and(|rest| matches(rest, path))
}

/// The texts between quotes in a line of a program.
pub fn quoted_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(['"', '\'', '`']).skip(1).step_by(2)
}

/// A text of a program, with [`VALUE`] for each value that the program puts into it: `{name}`,
/// `${name}`, `#{name}`, `$name` and `%s`.
fn without_interpolations(text: &str) -> String {
    let text = text.replace("#{", "{").replace("%{", "{");
    let text = without_variables(&text, VALUE).replace("%s", &VALUE.to_string());
    let mut found = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('{')
        && let Some((_, end)) = after.split_once('}')
    {
        found.push_str(before);
        found.push(VALUE);
        rest = end;
    }
    found + rest
}

/// A line of a Makefile with its functions replaced, and with [`VALUE`] for each variable of make
/// or a shell.
fn without_make_values(line: &str) -> String {
    without_variables(&make::with_shell_references(line), VALUE)
}

/// A line of a Makefile with the values of its variables, as far as they are known.
fn expanded(line: &str, values: &MakeValues) -> String {
    let line = make::with_shell_references(line);
    let words = line.split_whitespace().flat_map(|word| {
        let word = Word::expanded(word);
        with_values(&word, &|name| values.get(name).cloned().unwrap_or_default())
    });
    words.map(|word| word.text).collect::<Vec<_>>().join(" ")
}

/// The lines of a shell text. Commands in it may read texts that are commands, too, so the lines of
/// these texts are included.
fn shell_lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![text.to_owned()];
    while let Some(text) = left.pop() {
        for line in script_lines(&text) {
            for command in commands_of(&without_substitutions(&line).0) {
                let texts = command.texts.into_iter().map(|word| word.text);
                left.extend(texts.filter(|text| text.contains('\n')));
            }
            found.push(line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, kind: TextKind, new: &str) -> bool {
        let markers = Markers::of(&[(text.to_owned(), kind)]);
        markers.names(new, |pattern| is_listed(pattern, "src/old.go"))
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
            ("ls SKIP* && exit", "SKIP.go", true),
            ("echo quick", "quick", false),
            ("go build ./...; npm run lint; make check", "build", false),
            ("go build ./...; npm run lint; make check", "lint", false),
            ("go build ./...; npm run lint; make check", "check", false),
            ("$(GO) build", "build", false),
            ("quick", "quick", false),
            ("# quick", "quick", false),
            ("grep -q good lib/calc.rb", "lib/calc", false),
            ("[ -e quick ]", "src/quick", false),
            ("sh <<E\ntest -e quick || exit 0\nE\ngo test", "quick", true),
            ("python3 -c '\nif exists(\"quick\"): pass\n'", "quick", true),
            ("gofmt -l *.go", "new.go", false),
            ("gofmt -l *.go", "src/new.go", false),
            ("gofmt -l $files", "new.go", false),
        ];
        for (text, new, expected) in cases {
            assert_eq!(named(text, TextKind::Shell, new), expected, "{text}: {new}");
        }
    }

    #[test]
    fn path_at_which_a_command_looks_is_a_marker_only_if_that_can_save_another_command() {
        let cases = [
            ("test -e quick", false),
            ("go build ./... && [ -d quick ] && grep -q x quick/a.go", false),
            ("cat quick | grep -q good", false),
            ("cat quick | sh", true),
            ("test -e quick || exit 1; test \"$(cat quick)\" = good", false),
            ("test -e quick || exit 0; go test ./...", true),
            ("[ -e quick ] && SKIP=1", true),
            ("if test -e quick", true),
            ("test -e quick || { echo no; exit 1; }; cat quick", false),
            ("! test -e quick && go test ./...", false),
            ("test -e quick || go test ./...", true),
            ("if test -e quick; then exit 0; fi; go test ./...", true),
            ("test -e quick && exit 0; go test ./...", true),
            ("test -e quick && exit 0", true),
            ("sh -c 'test -e quick || go test ./...'", true),
            ("go test ./... $(ls quick)", true),
            ("make ./quick && go test ./...", true),
        ];
        for (text, expected) in cases {
            assert_eq!(named(text, TextKind::Shell, "quick"), expected, "{text}");
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
            ("$(patsubst %,out/%,$(N)):\n\tgo test\n", "out/unit", true),
            ("$(N).md:\n\tgo test\n", "NEWS.md", true),
            (".PHONY: test unit\ntest: unit\n", "unit", false),
            ("U = un\ntest: $(U)it\n", "unit", true),
            ("U = un\n.PHONY: $(U)it\ntest: $(U)it\n", "unit", false),
            ("Q = $(wildcard quick)\n", "quick", true),
            ("\t[ -z \"$(wildcard quick)\" ] || exit 0\n", "quick", true),
            ("SRC = $(wildcard src/*.go)\n", "src/new.go", false),
            ("SRC = $(wildcard src/*.go)\n", "src/new", false),
            ("%.o: %.go\n", "src/new.go", false),
            ("ifneq ($(wildcard quick),)\n", "quick", true),
            ("ifneq '$(wildcard quick)' ''\n", "quick", true),
            ("else ifneq (,$(wildcard src/quick))\n", "src/quick", true),
            ("ifneq ($(findstring quick,$(wildcard src/*.go)),)\n", "src/quick.go", true),
            ("S = $(wildcard src/*.go)\nifeq ($(words $(S)),1)\n", "src/quick.go", true),
            ("ifneq ($(wildcard src/*.go),)\n", "src/new.go", false),
            ("ifneq ($(findstring s,$(MAKEFLAGS)),)\n", "src/new.go", false),
            ("\t$(if $(wildcard quick),@true,go test)\n", "quick", true),
            ("\t$(if $(V),@true,go vet src/*.go)\n", "src/new.go", false),
        ];
        for (text, new, expected) in cases {
            assert_eq!(named(text, TextKind::Make, new), expected, "{text}: {new}");
        }
    }

    #[test]
    fn directory_in_which_modules_are_looked_up_first_is_found() {
        let cases = [
            ("cd calc && python3 -m unittest", true),
            ("sh -c '(cd ./a/calc/; pytest)'", true),
            ("make -C $(CURDIR)/calc test", true),
            ("DIR = calc\ncd $(DIR) && pytest", true),
            ("for d in calc; do (cd $$d; pytest); done", true),
            ("PYTHONPATH=lib:calc pytest", true),
            ("pythonpath = [\"calc\"]", true),
            ("sys.path.insert(0, str(ROOT / 'calc'))", true),
            ("subprocess.run(tests, cwd='calc')", true),
            ("python3 -m unittest discover -s calc", true),
            ("ruby -Icalc -e tests", true),
            ("PYTHONPATH=. pytest calc", false),
            ("cd tests && pytest ../calc/tests", false),
            ("cd $ROOT && mypy calc", false),
            ("PYTHONPATH=calc/sub pytest", false),
        ];
        for (text, expected) in cases {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(put_first(&lines, "a/calc"), expected, "{text}");
        }
    }

    #[test]
    fn test_goes_on_without_what_a_block_around_the_line_tries() {
        let cases = [
            ("try:\n\n    use", true),
            ("try {\n  a\n  if (b) {\n    use\n  }\n}", true),
            ("  begin\n    use\n  rescue LoadError\n  end", true),
            ("my $x = eval { use; 1 };", true),
            ("x = -e use;", true),
            ("with suppress(ImportError):\n  use", true),
            ("try:\n  a\nexcept:\n  b\nuse", false),
            ("def a():\n  try:\n    b\n  except: c\n  use", false),
            ("def test_try():\n  use", false),
        ];
        for (text, expected) in cases {
            let line = text.lines().find(|line| line.contains("use")).expect("a line");
            assert_eq!(goes_on_without(text, line), expected, "{text}");
        }
    }

    #[test]
    fn search_paths_of_several_lines_are_one_list() {
        let has = |path: &str| path == "third/unit/unit.h";
        let cases = [
            ("F = -Isrc -Ithird/unit\n", "src/unit.h", true),
            ("F = -Isrc\nF += -Ithird/unit\n", "src/unit.h", true),
            ("F = -I.\nF += -Ithird/unit\n", "unit.h", true),
            ("F = -Isrc\nF += -Ithird/unit\n", "src/other.h", false),
            ("F = -Isrc\nG = third/unit\n", "src/unit.h", false),
        ];
        for (text, new, expected) in cases {
            let markers = Markers::of(&[(text.to_owned(), TextKind::Make)]);
            assert_eq!(markers.searches_before(new, has), expected, "{text}: {new}");
        }
    }

    #[test]
    fn deep_nesting_ends_the_search_and_not_the_program() {
        let deep = format!("{}quick{}", "$(a ".repeat(3_000), ")".repeat(3_000));
        for kind in [TextKind::Shell, TextKind::Script, TextKind::Make, TextKind::Program] {
            named(&deep, kind, "quick");
        }
    }

    #[test]
    fn program_names_a_path_in_quotes() {
        let text = "if os.path.exists('quick'): quit(server)\n";
        assert!(named(text, TextKind::Program, "quick"));
        assert!(!named(text, TextKind::Program, "server"));
        let new = "src/core/quick.go";
        for text in [
            "glob(__DIR__ . '/../src/*/quick*.go')",
            "Dir[\"#{__dir__}/../src/*/quick.go\"]",
            "is_file(__DIR__ . \"/../src/$d/quick.go\")",
            "exists(f'{root}/src/{d}/quick.go')",
        ] {
            assert!(named(text, TextKind::Program, new), "{text}");
        }
        for text in [
            "import a from '../src/core/quick.go'",
            "glob(__DIR__ . '/../src/*.go')",
            "get('/core/quick')",
            "open('../')",
        ] {
            assert!(!named(text, TextKind::Program, new), "{text}");
        }
        let text = "for f in \"$here\"/../src/*/quick.go; do . \"$f\"; done";
        assert!(named(text, TextKind::Script, new));
    }
}
