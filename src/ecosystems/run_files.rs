//! The files that commands run or compare, found through recipes and shell scripts.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::includes::files_of_includes;
use crate::ecosystems::languages::{have_same_language, language_of};
use crate::ecosystems::looking::{collects_tests, looks_only};
use crate::ecosystems::make_values::stem_of;
use crate::ecosystems::paths::{directory_of, file_name, inside, is_in_name, resolved};
use crate::ecosystems::recipe::Recipe;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::model::pattern::matches;
use crate::model::shell::{
    Word, commands_of, is_assignment, script_lines, simple_commands, without_substitutions,
    without_variables,
};

/// Programs that compare the files that their arguments name.
const COMPARERS: [&str; 3] = ["cmp", "diff", "git"];

/// Programs that copy or move files to their last argument.
const COPIERS: [&str; 5] = ["cp", "install", "ln", "mv", "rsync"];

/// Options before the name of a module that is measured, not run.
const BEFORE_MEASURED: [&str; 2] = ["--cov", "--source"];

/// Programs that run the program that their arguments name.
const PREFIXES: [&str; 14] = [
    "bundle", "command", "env", "exec", "hatch", "nice", "nohup", "pdm", "pipenv", "poetry", "run",
    "time", "timeout", "uv",
];

/// The maximum number of words to which one word is expanded.
const MOST_WORDS: usize = 100;

/// The maximum number of recipes and scripts that were followed before a rule with `%` is sought: such rules
/// may need each other without end.
const MOST_FOLLOWED: usize = 5_000;

/// The maximum length of a target for which a rule with `%` is sought.
const LONGEST_TARGET: usize = 60;

/// The kind of entry at a path of a tree.
pub enum InTree {
    /// A file, with its text.
    File(String),
    /// A directory, with the names in it.
    Directory(Vec<String>),
    /// Nothing: the tree has no such path.
    Nothing,
}

/// Reads a path of one tree; the empty path is the tree's root.
pub type ReadPath<'a> = &'a dyn Fn(&str) -> Result<InTree>;

/// The files that commands name, as paths and as patterns with `*`.
#[derive(Debug, Default)]
pub struct NamedFiles {
    /// The files that the commands run.
    pub run: BTreeSet<String>,
    /// The files that the commands compare with other files, and directories of such files.
    pub compared: BTreeSet<String>,
}

/// Searches these shell commands, the recipes that they name, and the shell scripts that they run. Returns
/// the files that they run or compare. A file counts as run if a command names it as its program. A source
/// file, or a file without an extension, also counts if a command names it in any other way, unless the
/// command's program only looks at files (`grep`). A missing file counts, too, because commands run it once
/// an attempt adds it. A name with `*` stands for all files that it matches.
///
/// A test file counts only if one of `commands` names it, not if a script does. Files that a test runs may be
/// the code under test, so they do not count, except a missing file that the test checks for first. For the
/// same reason, a command does not count if another command reads its output. Comparisons in test files
/// count.
pub fn named_files(read: ReadPath<'_>, commands: &[String]) -> Result<NamedFiles> {
    let mut follow = Follow {
        read,
        books: books(read)?,
        done: BTreeSet::new(),
        copies: Vec::new(),
        found: NamedFiles::default(),
    };
    for book in &follow.books {
        follow.found.run.extend(book.includes.iter().cloned());
    }
    for command in commands {
        follow.text(command, &Place { is_command: true, ..Place::default() })?;
    }
    Ok(follow.found)
}

/// The recipes of one file, with the programs that run them.
struct Book {
    /// The path of the file.
    file: String,
    runners: &'static [&'static str],
    recipes: Vec<Recipe>,
    /// The files that it includes, and the files from which make writes them.
    includes: Vec<String>,
}

fn books(read: ReadPath<'_>) -> Result<Vec<Book>> {
    let mut found = Vec::new();
    for ecosystem in ALL.iter().filter(|ecosystem| !ecosystem.recipe_runners.is_empty()) {
        for file in ecosystem.recipe_files {
            if let Some(book) = book(read, ecosystem, file)? {
                found.push(book);
                break;
            }
        }
    }
    Ok(found)
}

/// The recipes of a file, and of all files that it includes; `None` if there is no such file.
fn book(read: ReadPath<'_>, ecosystem: &'static Ecosystem, file: &str) -> Result<Option<Book>> {
    let InTree::File(mut all) = read(file)? else { return Ok(None) };
    let mut files = files_of_includes(ecosystem, &all);
    let mut at = 0;
    while at < files.len().min(MOST_WORDS) {
        let path = files[at].trim_start_matches("*/").to_owned();
        at += 1;
        for path in like(read, &path)? {
            let InTree::File(text) = read(&path)? else { continue };
            let more = files_of_includes(ecosystem, &text);
            let more: Vec<String> = more.into_iter().filter(|file| !files.contains(file)).collect();
            files.extend(more);
            all.extend(["\n", &text]);
        }
    }
    let recipes = (ecosystem.recipes)(&all);
    let runners = ecosystem.recipe_runners;
    Ok(Some(Book { file: file.to_owned(), runners, recipes, includes: files }))
}

/// The paths that a pattern matches, if its directory is known; the path itself if it is no pattern.
fn like(read: ReadPath<'_>, pattern: &str) -> Result<Vec<String>> {
    let directory = directory_of(pattern);
    if !pattern.contains('*') {
        return Ok(vec![pattern.to_owned()]);
    }
    if directory.contains('*') {
        return Ok(Vec::new());
    }
    let InTree::Directory(names) = read(directory)? else { return Ok(Vec::new()) };
    let paths = names.iter().map(|name| inside(directory, name));
    Ok(paths.filter(|path| matches(pattern, path)).take(MOST_WORDS).collect())
}

/// The context of commands. `directory` is the directory in which they run, and `script` is the directory of
/// their script; the empty text is the root.
#[derive(Clone, Default)]
struct Place {
    directory: String,
    script: String,
    /// The variables, with the values that loops and assignments give them.
    values: BTreeMap<String, Vec<Word>>,
    /// The files that a test file checks for before it runs them; `None` outside of test files.
    optional: Option<BTreeSet<String>>,
    /// True in the oracle's commands themselves, not in the files that they run.
    is_command: bool,
    /// True if the line continues after one of its commands fails.
    may_fail: bool,
    /// The words of the commands whose output another command of the same text reads. If a file is compared
    /// with output that was made from the same file (as a formatter check does), the file is not expected
    /// output.
    inputs: Vec<Word>,
}

impl Place {
    /// True if a missing file at this path counts.
    fn takes_missing(&self, path: &str) -> bool {
        self.may_fail || self.optional.as_ref().is_none_or(|files| files.contains(path))
    }
}

/// The meaning of a word of a command.
#[derive(Clone, Copy, Default)]
struct Part {
    /// True if the word can only be a file that is run: then the file counts whatever its name is.
    is_program: bool,
    /// True if the word is a whole path, so that it may name a directory and so mean the directory's main
    /// file.
    is_whole: bool,
    /// True if the file counts even if it is missing.
    takes_missing: bool,
    /// True if a shell runs the file.
    by_shell: bool,
}

struct Follow<'a> {
    read: ReadPath<'a>,
    books: Vec<Book>,
    /// The files and the recipes that were followed already.
    done: BTreeSet<String>,
    /// Pairs of a path to which a file is copied or written, and the path of the original.
    copies: Vec<(String, String)>,
    found: NamedFiles,
}

impl Follow<'_> {
    /// Follows the commands of a shell script or of a recipe's line.
    fn text(&mut self, text: &str, place: &Place) -> Result<()> {
        let mut place = place.clone();
        let lines = script_lines(text);
        let commands =
            lines.iter().flat_map(|line| simple_commands(&without_substitutions(line).0));
        place.inputs = commands.filter(|c| c.is_read).flat_map(|c| c.words).collect();
        for line in &lines {
            place.may_fail = line.contains("||");
            self.line(line, false, &mut place)?;
        }
        Ok(())
    }

    /// Follows a line. Returns the words that name the files whose content the line prints, as far as that is
    /// known.
    fn line(&mut self, line: &str, is_read: bool, place: &mut Place) -> Result<Vec<Word>> {
        let (line, inner) = without_substitutions(line);
        let mut printed_inside = Vec::new();
        for text in &inner {
            let mut printed = Vec::new();
            for line in script_lines(text) {
                printed.extend(self.line(&line, true, place)?);
            }
            printed_inside.push(printed);
        }
        let mut printed = Vec::new();
        let mut piped = Vec::new();
        for command in commands_of(&line) {
            let mut words = command.words;
            let copies = words.iter().position(|word| word.text == "tee");
            let outputs = copies.map_or(&[][..], |tee| &words[tee + 1..]);
            let outputs: Vec<Word> = outputs.iter().chain(&command.output).cloned().collect();
            let start = words.iter().take_while(|word| is_assignment(&word.text)).count();
            let is_empty = words.is_empty();
            words.extend(command.inputs.into_iter().chain(command.texts));
            for (at, inside) in printed_inside.iter().enumerate() {
                if words[start..].iter().any(|word| word.holds_substitution(at)) {
                    words.extend(inside.iter().cloned());
                }
            }
            for word in &words[..start] {
                let inside = (0..inner.len()).find(|at| word.holds_substitution(*at));
                let Some((variable, value)) = assignment(word) else { continue };
                let values = inside.map_or(vec![value], |at| printed_inside[at].clone());
                // Of `$(pwd)` nothing is known, so the variable may stand for any directory.
                if values.is_empty() {
                    place.values.remove(variable);
                } else {
                    place.values.insert(variable.to_owned(), values);
                }
            }
            for word in &words {
                if word.text.contains('=')
                    && let Some((variable, value)) = default_in(&word.text)
                {
                    let word = Word { text: value.to_owned(), is_expanded: word.is_expanded };
                    place.values.entry(variable.to_owned()).or_default().push(word);
                }
            }
            words.append(&mut piped);
            if is_empty {
                // `$(<F)`, or the text that a loop reads.
                for text in words.iter().filter(|word| word.text.contains('\n')) {
                    self.word(text, Part::default(), place)?;
                }
                printed.extend(words);
                continue;
            }
            let looked_at = self.command(&words, is_read || command.is_read, place)?;
            for output in &outputs {
                self.written(&looked_at, output, place)?;
            }
            if command.is_piped {
                piped = looked_at;
            } else if command.output.is_none() {
                printed.extend(looked_at);
            }
        }
        Ok(printed)
    }

    /// Follows a command. Returns the words that name the files whose content the command may print.
    fn command(&mut self, words: &[Word], is_read: bool, place: &mut Place) -> Result<Vec<Word>> {
        let (prefixes, words) = words.split_at(words.len() - without_prefixes(words).len());
        let Some((program, rest)) = words.split_first() else { return Ok(Vec::new()) };
        if !is_read {
            // The program may run the files in the values of its variables: `BASH_ENV=F sh`.
            self.values(prefixes, place)?;
        }
        match program.text.as_str() {
            "cd" | "pushd" => {
                if let Some(to) = rest.first() {
                    place.directory = directory_to(to, place);
                }
            }
            "[" | "[[" | "test" => {
                let sought = Place { directory: place.directory.clone(), ..Place::default() };
                if let Some(optional) = &mut place.optional {
                    optional.extend(rest.iter().flat_map(|word| places_of(word, &sought)));
                }
            }
            "for" | "read" => {
                if let Some((variable, values)) = rest.split_first() {
                    let values = values.iter().skip_while(|word| word.text == "in");
                    let values = values.flat_map(|word| with_values(word, &place.values)).collect();
                    place.values.insert(variable.text.clone(), values);
                }
            }
            "find" => return self.find(rest, is_read, place),
            name if COPIERS.contains(&file_name(name)) => {
                let operands = rest.iter().filter(|word| !word.text.starts_with('-')).cloned();
                if let Some((to, from)) = operands.collect::<Vec<_>>().split_last() {
                    self.copied(from, to, place);
                }
            }
            _ => return self.program(words, is_read, place),
        }
        Ok(Vec::new())
    }

    /// Follows a command whose program may run the files that its words name. Returns the words that name the
    /// files whose content the command may print.
    fn program(&mut self, words: &[Word], is_read: bool, place: &Place) -> Result<Vec<Word>> {
        if words[0].text == "export" {
            for value in words.iter().filter_map(|word| place.values.get(&word.text)).flatten() {
                self.word(value, Part::default(), place)?;
            }
        }
        if file_name(&words[0].text) == "run-parts" && !is_read {
            for word in words[1..].iter().filter(|word| !word.text.starts_with('-')) {
                let text = format!("{}/*", word.text);
                let every = Part { is_program: true, is_whole: true, ..Part::default() };
                self.word(&Word { text, is_expanded: true }, every, place)?;
            }
        }
        let mut part = Part::default();
        let mut collects = false;
        for (at, word) in words.iter().enumerate() {
            let name = word.text.as_str();
            let next = words.get(at + 1).map_or("", |word| word.text.as_str());
            if let Some(printed) = self.other_program(word, &words[at + 1..], next, place)? {
                return Ok(printed);
            }
            if is_read {
                continue;
            }
            collects |= collects_tests(name, next);
            let before = at.checked_sub(1).map_or("", |at| words[at].text.as_str());
            let follows_m = is_option_m(before) && !part.by_shell;
            if at > 0 && !BEFORE_MEASURED.contains(&before) {
                let least = if collects || follows_m { 1 } else { 2 };
                if self.module(word, least, place)? || follows_m {
                    continue;
                }
            }
            if let Some(module) = name.strip_prefix("-m").filter(|module| !module.is_empty()) {
                let module = Word { text: module.to_owned(), is_expanded: word.is_expanded };
                self.module(&module, 1, place)?;
            }
            if let Some(module) = name.strip_prefix("-r").or(name.strip_prefix("-M")) {
                self.required(module, words, place)?;
            }
            let is_variable = place.values.contains_key(variable_of(word));
            part.is_program = at == 0 && (name.contains('/') || is_variable)
                || matches!(before, "." | "source")
                || part.by_shell && !before.starts_with('-') && at == 1;
            part.is_whole = at > 0 && !collects || part.is_program;
            part.takes_missing = part.is_program
                || at > 0 && name.contains(['/', '.'])
                || at == 1 && !name.starts_with(|c: char| c.is_ascii_digit() || c == '{');
            if at > 0 || part.is_program {
                self.word(word, part, place)?;
            }
            part.by_shell |= reads_shell(name);
        }
        Ok(Vec::new())
    }

    /// Follows the words after a word that is a program of a known kind: one that compares files, runs recipes or
    /// only looks at files. Returns the words that name the files whose content it may print; `None` for any other
    /// word. `next` is the text of the next word.
    fn other_program(
        &mut self,
        program: &Word,
        rest: &[Word],
        next: &str,
        place: &Place,
    ) -> Result<Option<Vec<Word>>> {
        let name = program.text.as_str();
        if COMPARERS.contains(&file_name(name)) {
            // A setting of git may name a program: `git -c diff.external=F diff`.
            let set = rest.windows(2).filter(|pair| pair[0].text == "-c");
            self.values(set.map(|pair| &pair[1]), place)?;
            self.compared(program, rest, place);
            if matches!(next, "show" | "cat-file" | "ls-files") {
                // `HEAD:F`, or a pattern of names.
                return Ok(Some(rest[1..].iter().map(file_of_git).collect()));
            }
        } else if let Some(book) = self.book_of(program, rest, place)? {
            self.values(rest, place)?;
            // Make runs this recipe for a target that has none.
            self.recipe(book, ".DEFAULT")?;
            for name in self.recipes_of(book, rest) {
                self.recipe(book, &name)?;
            }
        } else if looks_only(name, next) && !self.is_file(program, place)? {
            self.settings(rest, place)?;
            return Ok(Some(rest.to_vec()));
        } else {
            return Ok(None);
        }
        Ok(Some(Vec::new()))
    }

    /// Adds the files that a word of a command names.
    fn word(&mut self, word: &Word, part: Part, place: &Place) -> Result<()> {
        let values = with_values(word, &place.values);
        if values != [word.clone()] {
            let place = Place { values: BTreeMap::new(), ..place.clone() };
            for value in &values {
                self.word(value, part, &place)?;
            }
            return Ok(());
        }
        let text = word.text.as_str();
        if part.by_shell && text.contains(char::is_whitespace) {
            return self.text(text, place);
        }
        let is_name = |c: char| !c.is_whitespace() && !"=,:;!'\"`()<>|&".contains(c);
        if !text.starts_with('-') && text.chars().all(is_name) {
            return self.name(word, part, place);
        }
        // In the text of a script, a line that begins with `#` is a comment.
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for piece in lines.flat_map(|line| line.split(|c| !is_name(c))) {
            // A value may directly follow the letter of an option.
            let piece = if piece.starts_with('-') { piece.get(2..).unwrap_or("") } else { piece };
            if piece.contains(['/', '.']) && !piece.contains('*') {
                let word = Word { text: piece.to_owned(), is_expanded: word.is_expanded };
                self.name(&word, Part { by_shell: part.by_shell, ..Part::default() }, place)?;
            }
        }
        Ok(())
    }

    /// Adds the first file that a name may mean. If there is none, adds the missing files that it may mean.
    fn name(&mut self, word: &Word, part: Part, place: &Place) -> Result<()> {
        let mut missing = Vec::new();
        for path in places_of(word, place) {
            if path.contains('*') {
                if part.is_whole && (is_run_by_name(&path) || part.is_program) {
                    self.like(&path, part, place)?;
                    missing.push(path);
                }
            } else if self.path(&path, part, place)? {
                missing.clear();
                break;
            } else if part.takes_missing {
                missing.push(path);
            }
        }
        missing.retain(|path| {
            !is_test_path(path) && (path.contains('*') || place.takes_missing(path))
        });
        self.found.run.extend(missing);
        Ok(())
    }

    /// Follows the files that match a pattern, if their directory is known. Of the tests among them only the
    /// interpreters count: the files that such a test runs may be the code under test.
    fn like(&mut self, pattern: &str, part: Part, place: &Place) -> Result<()> {
        for path in like(self.read, pattern)? {
            let InTree::File(text) = (self.read)(&path)? else { continue };
            if is_test_path(&path) {
                self.interpreter(&text, place)?;
            } else if part.is_program || may_be_shell(&path) {
                self.file(&path, &text, part.by_shell, place)?;
            }
        }
        Ok(())
    }

    /// Follows the first line of an executed file, which is a command: `#!/usr/bin/env -S python3 F`.
    fn interpreter(&mut self, text: &str, place: &Place) -> Result<()> {
        let first =
            text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or_default();
        let mut words = first.split_whitespace().skip_while(|word| word.starts_with('/'));
        words.try_for_each(|word| {
            let word = Word { text: word.to_owned(), is_expanded: false };
            self.word(&word, Part { is_program: word.text.contains('/'), ..Part::default() }, place)
        })
    }

    /// Adds the file at a path. If there is none, adds the original of a copy at that path, or the file at a
    /// path without its first directories: `out/verify/all.js` may be a copy of `verify/all.js`. Returns true
    /// if it found a file.
    fn path(&mut self, path: &str, part: Part, place: &Place) -> Result<bool> {
        if self.at(path, part, place)? {
            return Ok(true);
        }
        let mut is_copy = false;
        for (to, from) in self.copies.clone() {
            let rest = if to.is_empty() { Some(path) } else { path.strip_prefix(to.as_str()) };
            let Some(rest) = rest else { continue };
            let inside = rest.trim_start_matches('/').strip_prefix(file_name(&from));
            for rest in [Some(rest), inside].into_iter().flatten() {
                is_copy |= self.at(&format!("{from}{rest}"), part, place)?;
            }
        }
        for (at, _) in path.match_indices('/') {
            if is_copy {
                break;
            }
            is_copy = self.at(&path[at + 1..], part, place)?;
        }
        Ok(is_copy)
    }

    /// Adds the file at a path, or the main files of the directory there. Returns true if the path exists.
    fn at(&mut self, path: &str, part: Part, place: &Place) -> Result<bool> {
        match (self.read)(path)? {
            InTree::File(text) => {
                if part.is_program || is_run_by_name(path) {
                    self.file(path, &text, part.by_shell, place)?;
                }
            }
            InTree::Directory(names) => {
                if part.is_whole {
                    self.main_files(path, &names, place)?;
                }
            }
            InTree::Nothing if part.is_whole || path.contains('/') => {
                return self.without_extension(path, place);
            }
            InTree::Nothing => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the source files whose path without extension is `path`. Returns true if there are any.
    fn without_extension(&mut self, path: &str, place: &Place) -> Result<bool> {
        let InTree::Directory(names) = (self.read)(directory_of(path))? else { return Ok(false) };
        let mut is_there = false;
        for name in &names {
            let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
            if stem == file_name(path) && language_of(name).is_some() {
                is_there |= self.file_at(&inside(directory_of(path), name), place)?;
            }
        }
        Ok(is_there)
    }

    /// Adds the main files of a directory: they run if a command names the directory.
    fn main_files(&mut self, directory: &str, names: &[String], place: &Place) -> Result<()> {
        for name in names {
            let path = inside(directory, name);
            let is_index = name.starts_with("index.") && have_same_language(name, "a.js");
            if name == "package.json"
                && let InTree::File(text) = (self.read)(&path)?
                && let json = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default()
                && let Some(main) = json["main"].as_str()
            {
                let place = Place { directory: directory.to_owned(), ..place.clone() };
                let word = Word { text: main.to_owned(), is_expanded: false };
                self.name(&word, Part { takes_missing: true, ..Part::default() }, &place)?;
                self.found.run.insert(path);
            } else if name == "__main__.py" || is_index {
                self.file_at(&path, place)?;
            } else if name.ends_with(".go")
                && let InTree::File(text) = (self.read)(&path)?
                && text.lines().any(|line| line.trim_end() == "package main")
            {
                self.file(&path, "", false, place)?;
            } else if name == "src" {
                self.file_at(&format!("{path}/main.rs"), place)?;
            }
        }
        Ok(())
    }

    /// Adds the file of a module of Python: `v/all.py` for `v.all`. Returns false if the tree has none. The
    /// last parts of a word may be names in the module; at least the number `least` of parts are not.
    fn module(&mut self, word: &Word, least: usize, place: &Place) -> Result<bool> {
        let values = with_values(word, &place.values);
        if values != [word.clone()] {
            let place = Place { values: BTreeMap::new(), ..place.clone() };
            let mut is_there = false;
            for value in &values {
                is_there |= self.module(value, least, &place)?;
            }
            return Ok(is_there);
        }
        let parts: Vec<&str> = word.text.split(['.', ':']).collect();
        if parts.iter().any(|part| part.is_empty() || !part.chars().all(is_in_name)) {
            return Ok(false);
        }
        for count in (least..=parts.len()).rev() {
            let path = parts[..count].join("/");
            for name in [format!("{path}.py"), format!("{path}/__main__.py")] {
                for path in places_of(&Word { text: name, is_expanded: false }, place) {
                    if self.file_at(&path, place)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Adds the file of a module that an interpreter of Ruby or Perl loads (`-r`, `-M`) from the directories
    /// that `-I` names.
    fn required(&mut self, module: &str, words: &[Word], place: &Place) -> Result<()> {
        if module.is_empty() {
            return Ok(());
        }
        for directory in words.iter().filter_map(|word| word.text.strip_prefix("-I")) {
            let text = format!("{directory}/{}", module.replace("::", "/"));
            for path in places_of(&Word { text, is_expanded: false }, place) {
                self.without_extension(&path, place)?;
            }
        }
        Ok(())
    }

    /// Adds the files that the values of assignments among these words name.
    fn values<'w>(
        &mut self,
        words: impl IntoIterator<Item = &'w Word>,
        place: &Place,
    ) -> Result<()> {
        for (_, value) in words.into_iter().filter_map(assignment) {
            self.word(&value, Part::default(), place)?;
        }
        Ok(())
    }

    /// Adds the files that options of a program name, e.g. its settings: `--config FILE`, `--plugin=FILE`.
    fn settings(&mut self, words: &[Word], place: &Place) -> Result<()> {
        for (at, word) in words.iter().enumerate() {
            let is_value = at > 0 && words[at - 1].text == "--config";
            if is_value || word.text.starts_with("--") && word.text.contains('=') {
                self.word(word, Part::default(), place)?;
            }
        }
        Ok(())
    }

    /// True if a word is the name of a file in the tree.
    fn is_file(&self, word: &Word, place: &Place) -> Result<bool> {
        for path in places_of(word, place) {
            if matches!((self.read)(&path)?, InTree::File(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the file at a path. Returns false if there is none.
    fn file_at(&mut self, path: &str, place: &Place) -> Result<bool> {
        let InTree::File(text) = (self.read)(path)? else { return Ok(false) };
        self.file(path, &text, false, place)?;
        Ok(true)
    }

    /// Adds a file, and follows it if it is a shell script.
    fn file(&mut self, path: &str, text: &str, by_shell: bool, place: &Place) -> Result<()> {
        let is_test = is_test_path(path);
        let is_under_test = place.optional.is_some() && !is_test;
        if is_under_test || !self.done.insert(path.to_owned()) {
            return Ok(());
        }
        let first = text.lines().next().unwrap_or_default();
        let is_shell = match first.strip_prefix("#!") {
            Some(interpreter) => interpreter.trim_end().ends_with("sh"),
            None => may_be_shell(path),
        };
        if !is_test || place.is_command {
            self.found.run.insert(path.to_owned());
        }
        self.interpreter(text, place)?;
        if by_shell || is_shell {
            let directory = place.directory.clone();
            let script = directory_of(path).to_owned();
            let optional = is_test.then(BTreeSet::new);
            self.text(text, &Place { directory, script, optional, ..Place::default() })?;
        }
        Ok(())
    }

    /// Follows texts that a command writes to a file, as the commands of a script. If the file's name is
    /// not that of a script, a text of several lines is data, but a path in it still names a file. Files
    /// among `words` count as copied.
    fn written(&mut self, words: &[Word], output: &Word, place: &Place) -> Result<()> {
        self.copied(words, output, place);
        let is_script = language_of(&output.text).is_some_and(|language| language.is_shell());
        let part = Part { by_shell: may_be_shell(&output.text), ..Part::default() };
        for word in words {
            if word.text.contains('\n') || is_script && word.text.contains(' ') {
                self.word(word, part, place)?;
            }
        }
        Ok(())
    }

    /// Records that files are copied or written to a place.
    fn copied(&mut self, from: &[Word], to: &Word, place: &Place) {
        for to in places_of(to, place) {
            for from in from.iter().flat_map(|word| places_of(word, place)) {
                let from = if from.contains('*') { directory_of(&from) } else { &from };
                self.copies.push((to.clone(), from.to_owned()));
            }
        }
    }

    /// Follows the command that `find` runs on the files that it finds. Returns words that stand for these
    /// files.
    fn find(&mut self, words: &[Word], is_read: bool, place: &mut Place) -> Result<Vec<Word>> {
        let at = words.iter().position(|word| matches!(word.text.as_str(), "-name" | "-path"));
        let name = at.and_then(|at| words.get(at + 1)).map_or("*", |word| word.text.as_str());
        let tops = words.iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
        let found = tops
            .map(|top| Word { text: format!("{}/*{name}", top.text), is_expanded: true })
            .collect::<Vec<_>>();
        if let Some(at) = words.iter().position(|word| word.text.starts_with("-exec")) {
            let inner = words[at + 1..].iter();
            let inner = inner.take_while(|word| !matches!(word.text.as_str(), ";" | "+"));
            let inner = inner.filter(|word| word.text != "{}").chain(&found);
            self.command(&inner.cloned().collect::<Vec<_>>(), is_read, place)?;
        }
        Ok(found)
    }

    /// Adds the files that a command compares. `words` are the words after the program.
    fn compared(&mut self, program: &Word, words: &[Word], place: &Place) {
        let operands = match file_name(&program.text) {
            "git" => words.iter().position(|word| word.text == "diff").map(|at| &words[at + 1..]),
            _ => Some(words),
        };
        for word in operands.unwrap_or_default() {
            if word.text.starts_with('-') || place.inputs.contains(word) {
                continue;
            }
            let words = match place.values.get(variable_of(word)) {
                Some(values) if word.is_expanded => values,
                _ => std::slice::from_ref(word),
            };
            self.found.compared.extend(words.iter().flat_map(|word| places_of(word, place)));
        }
    }

    /// The recipes that a program runs: those of the file that an option names (`make -f F`), else those of the
    /// file that it finds.
    fn book_of(&mut self, program: &Word, rest: &[Word], place: &Place) -> Result<Option<usize>> {
        let name = if program.text == "$(MAKE)" { "make" } else { &program.text };
        let at = rest
            .iter()
            .position(|word| matches!(word.text.as_str(), "-f" | "--file" | "--makefile"));
        let file = at.and_then(|at| rest.get(at + 1)).map(|word| word.text.as_str());
        let joined = rest
            .iter()
            .find_map(|word| word.text.strip_prefix("--file=").or(word.text.strip_prefix("-f")));
        let file = file.or(joined).and_then(|file| resolved(&place.directory, file));
        let Some(ecosystem) = ALL.iter().find(|one| one.recipe_runners.contains(&name)) else {
            return Ok(None);
        };
        // Other runners pass these options on to the script.
        if matches!(ecosystem.recipe_runners.first(), Some(&("make" | "just")))
            && let Some(file) = file
        {
            if !self.books.iter().any(|book| book.file == file)
                && let Some(book) = book(self.read, ecosystem, &file)?
            {
                self.found.run.extend(book.includes.iter().chain([&file]).cloned());
                self.books.push(book);
            }
            if let Some(at) = self.books.iter().position(|book| book.file == file) {
                return Ok(Some(at));
            }
        }
        Ok(self.books.iter().position(|book| book.runners.contains(&name)))
    }

    /// Returns the words, which may be names of recipes. If none of them is, adds the name of the first
    /// recipe.
    fn recipes_of(&self, book: usize, words: &[Word]) -> Vec<String> {
        let recipes = &self.books[book].recipes;
        let mut names: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        if !recipes.iter().any(|recipe| names.contains(&recipe.name)) {
            // An included file may have the first recipe.
            let most = if self.books[book].includes.is_empty() { 1 } else { usize::MAX };
            let first = recipes.iter().filter(|recipe| !recipe.name.starts_with('.')).take(most);
            names.extend(first.map(|recipe| recipe.name.clone()));
        }
        names
    }

    /// Follows the recipes that a recipe needs, and then its own lines.
    fn recipe(&mut self, book: usize, name: &str) -> Result<()> {
        if !self.done.insert(format!("{book}:{name}")) {
            return Ok(());
        }
        let all = self.books[book].recipes.iter();
        let mut recipes: Vec<Recipe> =
            all.clone().filter(|recipe| recipe.name == name).cloned().collect();
        // All lines of a recipe run in one shell, so that `cd` counts for the next lines.
        let in_one = all.clone().any(|recipe| recipe.name == ".ONESHELL");
        let has_lines = recipes.iter().any(|recipe| !recipe.lines.concat().is_empty());
        if !has_lines && name.len() < LONGEST_TARGET && self.done.len() < MOST_FOLLOWED {
            recipes.extend(all.filter_map(|recipe| {
                let stem = stem_of(name, &recipe.name)?;
                let needs = recipe.needs.iter().map(|need| need.replace('%', stem)).collect();
                let lines = recipe.lines.iter().map(|line| line.replace('%', stem)).collect();
                Some(Recipe { name: name.to_owned(), needs, lines })
            }));
        }
        for recipe in recipes {
            for needed in &recipe.needs {
                self.recipe(book, needed)?;
            }
            let texts = if in_one { vec![recipe.lines.join("\n")] } else { recipe.lines };
            for text in &texts {
                self.text(text, &Place::default())?;
            }
        }
        Ok(())
    }
}

/// True if a file of this name counts wherever a command names it.
fn is_run_by_name(path: &str) -> bool {
    language_of(path).is_some() || !file_name(path).contains('.')
}

/// True if a file of this name may be a shell script.
fn may_be_shell(path: &str) -> bool {
    language_of(path).map_or(!file_name(path).contains('.'), |language| language.is_shell())
}

/// True for the option `-m`, also after other letters: `-Bm`.
fn is_option_m(word: &str) -> bool {
    word.ends_with('m') && word.starts_with('-') && !word.starts_with("--")
}

/// True if a program of this name runs its arguments as shell code or as shell scripts.
pub fn reads_shell(name: &str) -> bool {
    name == "eval" || name.ends_with("sh") && !name.contains('.')
}

/// The words from the program on, without assignments, `env`, `timeout 60` and the like.
pub fn without_prefixes(words: &[Word]) -> &[Word] {
    let mut rest = words;
    let mut follows_prefix = false;
    while let Some((word, more)) = rest.split_first() {
        let text = word.text.as_str();
        // `ci/run` is a script of the project.
        let name = if text.starts_with('/') { file_name(text) } else { text };
        let is_prefix = PREFIXES.contains(&name);
        let is_argument = text.starts_with('-') || text.starts_with(|c: char| c.is_ascii_digit());
        if !(is_prefix || is_assignment(text) || (follows_prefix && is_argument)) {
            break;
        }
        follows_prefix |= is_prefix;
        rest = more;
    }
    rest
}

/// The directory to which `cd` leads. An expanded word is resolved from the script's directory.
fn directory_to(word: &Word, place: &Place) -> String {
    let (top, path) = match word.text.split_once('/') {
        _ if !word.is_expanded => (&place.directory, word.text.as_str()),
        Some((_, rest)) => (&place.script, rest),
        None => (&place.script, "."),
    };
    resolved(top, path).unwrap_or_default()
}

/// The variable and the value of a word such as `CC=gcc`.
fn assignment(word: &Word) -> Option<(&str, Word)> {
    let (variable, value) = word.text.split_once('=')?;
    Some((variable, Word { text: value.to_owned(), is_expanded: word.is_expanded }))
}

/// The name of the variable that a word consists of: `f` for `$f`, `./$f` and `${f}`.
fn variable_of(word: &Word) -> &str {
    word.text.trim_start_matches("./").trim_start_matches(['$', '{']).trim_end_matches('}')
}

/// The file that a word of `git show` or `git ls-files` names.
fn file_of_git(word: &Word) -> Word {
    let (_, file) = word.text.split_once(':').unwrap_or(("", &word.text));
    Word { text: file.to_owned(), is_expanded: word.is_expanded || file.contains('*') }
}

/// The name and the default of the variable with which a text begins, if it has a default: `${X:-F}`, `${X:=F}`.
fn default_in(text: &str) -> Option<(&str, &str)> {
    let (inner, _) = text.strip_prefix("${")?.split_once('}')?;
    let (name, value) = inner.split_at(inner.find(|c| !is_in_name(c))?);
    let value = value.strip_prefix(':').unwrap_or(value);
    let value = value.strip_prefix(['-', '=', '+'])?;
    (!value.is_empty()).then_some((name, value))
}

/// The paths that a word may mean, the most likely one first; the empty path is the root. The script's own
/// directory comes first for a variable as in `$DIR/lib.sh`, because that is often its value.
fn places_of(word: &Word, place: &Place) -> Vec<String> {
    let text = word.text.trim_start_matches('/');
    if !word.is_expanded {
        return resolved(&place.directory, text).into_iter().collect();
    }
    // An unknown beginning stands for any directory, with its slash (`${R}lib/F`) or without.
    let plain = without_variables(text, '$');
    let (first, rest) = plain.split_once('/').unwrap_or((&plain, ""));
    if first.contains('$') {
        if rest.is_empty() || rest.contains('$') {
            return Vec::new();
        }
        let with_slash = if first == "$" { None } else { plain.strip_prefix('$') };
        return [&place.script, &place.directory, ""]
            .iter()
            .flat_map(|top| [Some(rest), with_slash].map(|rest| resolved(top, rest?)))
            .flatten()
            .collect();
    }
    // A name with unknown variables stands for all files that match it, if its directory and its language
    // are known.
    let pattern = as_pattern(text);
    let is_vague = directory_of(&pattern).contains('*') || language_of(&pattern).is_none();
    // In a text, `[NAME...]` is no pattern of names. As a pattern it would stand for one character.
    let is_bracket = pattern.chars().all(|c| c == '*') && text.contains('[');
    if is_bracket || text.contains('$') && is_vague {
        return Vec::new();
    }
    resolved(&place.directory, &pattern).into_iter().collect()
}

/// A word as a pattern: with `*` for `?`, `[a-z]` and the variables that are not known.
fn as_pattern(text: &str) -> String {
    let text = without_variables(text, '*').replace('?', "*");
    let mut parts = text.split('[');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found.extend(["*", part.split_once(']').map_or(part, |(_, rest)| rest)]);
    }
    found
}

/// The words for which a word stands, with the known values of its variables. `${f%.c}` takes an end off.
fn with_values(word: &Word, known: &BTreeMap<String, Vec<Word>>) -> Vec<Word> {
    if !word.is_expanded {
        return vec![word.clone()];
    }
    if let Some(values) = known.get(variable_of(word)) {
        return values.clone();
    }
    for (at, _) in word.text.match_indices('$') {
        let after = &word.text[at + 1..];
        let name = after.trim_start_matches('{');
        let name = &name[..name.find(|c| !is_in_name(c)).unwrap_or(name.len())];
        let mut values = known.get(name).cloned().unwrap_or_default();
        if let Some((_, value)) = default_in(&word.text[at..]) {
            values.push(Word { text: value.to_owned(), is_expanded: true });
        }
        if values.is_empty() {
            continue;
        }
        let end = if after.starts_with('{') { after.find('}').map(|end| end + 1) } else { None };
        let (inner, rest) = after.split_at(end.unwrap_or(name.len()));
        let ending = inner.split_once('%').map_or("", |(_, end)| end.trim_matches(['%', '}']));
        let parts = values.iter().flat_map(|value| value.text.split_whitespace());
        let rest = with_values(&Word { text: rest.to_owned(), is_expanded: true }, known);
        let texts = parts.flat_map(|part| {
            let part = part.strip_suffix(ending).unwrap_or(part);
            let text = format!("{}{part}", &word.text[..at]);
            rest.iter().map(move |rest| format!("{text}{}", rest.text))
        });
        let words = texts.map(|text| Word { text, is_expanded: true });
        return words.take(MOST_WORDS).collect();
    }
    vec![word.clone()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The files of a project that a command runs.
    fn of(files: &[(&str, &str)], command: &str) -> Vec<String> {
        named(files, command).run.into_iter().collect()
    }

    /// The files of a project that a command runs or compares.
    fn named(files: &[(&str, &str)], command: &str) -> NamedFiles {
        let read = |path: &str| {
            let is_directory = files.iter().any(|(name, _)| name.starts_with(&format!("{path}/")));
            Ok(match files.iter().find(|(name, _)| *name == path) {
                Some((_, text)) => InTree::File((*text).to_owned()),
                None if is_directory || path.is_empty() => InTree::Directory(names_in(files, path)),
                None => InTree::Nothing,
            })
        };
        named_files(&read, &[command.to_owned()]).expect("nothing fails to be read")
    }

    /// The names in a directory of a project.
    fn names_in(files: &[(&str, &str)], directory: &str) -> Vec<String> {
        let top = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let below = files.iter().filter_map(|(name, _)| name.strip_prefix(&top));
        below.map(|rest| rest.split('/').next().unwrap_or(rest).to_owned()).collect()
    }

    #[test]
    fn source_that_a_program_names_in_any_way_is_run() {
        let files = [
            ("src/a.c", ""),
            ("src/index.js", ""),
            ("src/lib.rs", ""),
            ("src/calc.py", ""),
            ("v/all.js", ""),
            ("v/all.py", ""),
            ("v/sub/__main__.py", ""),
            ("v/js/index.js", ""),
            ("v/js/data.json", ""),
            ("cmd/run.go", "package main\n"),
            ("x/src/main.rs", ""),
            ("package.json", "{\"main\": \"v/all\"}"),
        ];
        let js = &["v/all.js"][..];
        let py = &["v/all.py"][..];
        let none = &[][..];
        let cases = [
            ("new-program v/all.js", js),
            ("new-program --check=v/all.js", js),
            ("new-program -rv/all.js x.json", js),
            ("python3 <v/all.py", py),
            ("python3 - <./v/all.py >log; cat log", none),
            ("cat v/all.py | sed s/a/b/ | python3", py),
            ("eval \"$(cat v/all.js)\"", js),
            ("X=$(date) node v/all.js", js),
            ("sh -c '\nnode v/all.js\n'", js),
            ("t=v/all.js; node $t", js),
            ("t=$(cat v/all.js); eval \"$t\"", js),
            ("t=$(cat src/a.c); test \"$t\" = good", none),
            ("node \"$PWD/v/all.js\"", js),
            ("node $(pwd)/v/all.js", js),
            ("cd v && node all", &["v/all.js", "v/all.py"]),
            ("node v/all", &["v/all.js", "v/all.py"]),
            ("node -e \"require('./v/all.js')\"", js),
            ("ruby -e 'load %q(v/all.js)'", js),
            ("ls v/*.js | while read f; do node $f; done", &["v/*.js"]),
            ("ls v/*.js | parallel node", &["v/*.js"]),
            ("python3 v/sub", &["v/sub/__main__.py"]),
            ("python3 -m v.sub", &["v/sub/__main__.py"]),
            ("node v/js", &["v/js/index.js"]),
            ("node .", &["package.json", "v/all.js", "v/all.py"]),
            ("go run ./cmd", &["cmd/run.go"]),
            ("cargo run -p x", &["x/src/main.rs"]),
            ("pytest v/all.py", py),
            ("cp -r src v out/ && node out/v/all.js", js),
            ("cp v/all.js t.js && node t.js", js),
            ("cat src/a.c v/all.js > t.js; node t.js", &["src/a.c", "v/all.js"]),
            ("eslint --rules=v/all.js src", js),
            // A program in front only looks at the file.
            ("gcc -c src/a.c", none),
            ("$CC -o a src/a.c", none),
            ("mypy src", none),
            ("eslint src/index.js", none),
            ("npx eslint src/index.js", none),
            ("python3 -m mypy src/calc.py", none),
            ("python -m compileall src", none),
            ("coverage run --source=src -m pytest", none),
            ("ruff check .", none),
            ("rustfmt src/lib.rs", none),
            ("terser src/index.js -o out.js", none),
            ("tsc src/index.js", none),
            ("pytest src", none),
            ("jest src", none),
            ("python3 -c 'import v.all'", none),
            ("python3 -c 'import src'", none),
            ("grep -rn foo src/a.c | sort | head", none),
            ("test \"$(cat src/a.c)\" = good", none),
            ("if [ -e src/a.c ]; then echo src/a.c; fi", none),
            ("cp src/index.js dist/", none),
            ("cat src/index.js > dist/all.js", none),
            ("new-program v/js/data.json", none),
            // The text of a here document is commands if a shell may read it, else data that names paths.
            ("cat >t.c <<E\nx = sizeof(void *) <= 1;\nE\ncc t.c", none),
            ("cat >a.c <<'E' && cat >$b.c <<-F\nvoid *\nE\nvoid *\n\tF\nnode v/all.js", js),
            ("cat >t.js <<E\nrequire('./v/all.js')\nE\nnode t.js", js),
            ("cat >t.c <<E\n#include \"src/a.c\"\nE", none),
            ("cat >t.sh <<E\nnode v/*.js\nE\nsh t.sh", &["v/*.js"]),
            ("sh <<\\E\nnode v/*.js\nE", &["v/*.js"]),
            ("cat <<E | sh\nnode v/*.js\nE", &["v/*.js"]),
            ("tee t.sh <<E\nnode v/*.js\nE\nsh t.sh", &["v/*.js"]),
            ("echo 'node v/all.js' >t.sh; sh t.sh", js),
            ("python3 - <<E\na = b * c\nE", none),
            ("cat <<E\nusage: a * b\nE", none),
            ("while read f; do node $f; done <<E\nv/all.js\nE", js),
            ("sh <(cat v/all.js)", js),
            (". <(cat v/all.js)", js),
            ("bash <<<\"$(<v/all.js)\"", js),
            ("for f in v/{all,x}.js; do node $f; done", js),
            ("node v/al[kl].js", &["v/al*.js"]),
            ("node $'v/all.js'", js),
            ("t() { node v/$1.js; }; t all", &["v/*.js"]),
            ("f=v/all.c; node ${f%.c}.js", js),
            ("node ${X:-v/all.js}", js),
            ("node ${R:-}/v/all.js", js),
            ("X=${X:-v/all.js}; node $X", js),
            (": \"${X:=v/all.js}\"; node $X", js),
            ("R=$(pwd); node \"$R/v/all.js\"", js),
            ("R=$(cd \"$(dirname \"$0\")\" && pwd); node \"$R/v/all.js\"", js),
            (". \"${BASH_SOURCE%/*}/v/all.js\"", js),
            ("bash -c 'pushd v && node all.js'", js),
            ("git show HEAD:v/all.js | node", js),
            ("git ls-files 'v/*.js' | xargs node", &["v/*.js"]),
            ("for f in $(git ls-files 'v/*.js'); do node $f; done", &["v/*.js"]),
            ("python3 -mv.all", py),
            ("for m in all; do python3 -m v.$m; done", py),
            ("M=v.all; python3 -m $M", py),
            ("python3 -m v.${X:-all}", py),
            ("d=v; for f in all; do node ./$d/$f.js; done", js),
            ("new-program $DIR/$NAME $x", none),
            // The path in the value of an assignment.
            ("BASH_ENV=v/all.js bash", js),
            ("env NODE_OPTIONS='--require ./v/all.js' bash", js),
            ("export RUBYOPT=-r./v/all; bash", &["v/all.js", "v/all.py"]),
            ("t=v/all.js; export t", js),
            ("git -c 'alias.v=!v/all.js' v", js),
            ("SRC=src/a.c; cc $SRC", none),
            // A module of Python, and a file in a directory of `-I`.
            ("python3 -Bm v.all", py),
            ("python3 -m trace --module v.all", py),
            ("python3 -m unittest v.all.Case", py),
            ("pytest --cov=src.calc --cov src.calc", none),
            ("ruby -Iv -rall -e 1", &["v/all.js", "v/all.py"]),
            ("x=$((1<<2))\nnode v/all.js\nE", js),
            ("# don't\nnode v/all.js\necho 'a\nb'", js),
            // A quoted text of several lines is one word.
            ("awk '{\n  x = a * b\n}' log", none),
            ("sh -c \"\nnode v/all.js\n\"", js),
        ];
        for (command, expected) in cases {
            let found: Vec<String> = of(&files, command);
            let found: Vec<&str> = found
                .iter()
                .map(String::as_str)
                .filter(|path| path.contains('*') || files.iter().any(|(name, _)| name == path))
                .collect();
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn recipe_of_make_names_files_by_variables_functions_and_patterns() {
        let js = &["v/all.js"][..];
        let cases = [
            ("t:\n\t$(foreach t,v/all.js,node $(t) &&) true\n", js),
            ("t:\n\tnode $(CURDIR)/v/all.js\n", js),
            ("t:\n\teval \"$$(cat v/all.js)\"\n", js),
            ("t:\n\t$(CC) -c $(wildcard src/*.c)\n", &[][..]),
            ("define R\n\t@node v/all.js\nendef\nt:\n\t$(R)\n", js),
            ("r = node v/$(1).js\nt:\n\t$(call r,all)\n", js),
            ("T = all\nt:\n\tnode $(patsubst %,v/%.js,$(T))\n", js),
            ("include x.mk\n", js),
            ("t: u\n.DEFAULT:\n\tnode v/all.js\n", js),
            (".ONESHELL:\nt:\n\tcd v\n\tnode all.js\n", js),
            ("R := $(dir $(lastword $(MAKEFILE_LIST)))\nt:\n\tnode $(R)v/all.js\n", js),
            ("T != echo v/all.js\nt:\n\tnode $(T)\n", js),
            ("t:\n\tnode $(join v/,all.js)\n", js),
            ("t:\n\t$(MAKE) -f x.mk t\n", &["v/all.js", "x.mk"]),
            ("T += all\nt:\n\tnode $(addprefix v/,$(addsuffix .js,$(T)))\n", js),
            ("T := v/all.c\nt:\n\tnode $(T:.c=.js)\n", js),
            ("t: r-all\nr-%: v/%.js\n\tnode $<\n", js),
            ("t: r-all\nr-%:\n\tnode v/$*.js\n", js),
            ("t r: t: v/all.js\n\tnode $^\n", js),
            ("define R\nt: v/$(1).js\n\tnode $$<\nendef\n$(eval $(call R,all))\n", js),
            ("t:\nifdef X\n\tcc src/a.c\nelse\n\tnode v/all.js\nendif\n", js),
            ("export BASH_ENV := v/all.js\nt:\n\tbash\n", js),
            ("BASH_ENV = v/all.js\nSRC = src/a.c\nexport\nt:\n\tcc $(SRC)\n", js),
            ("define B\n\tcc $(SRC)\nendef\nSRC = src/a.c\nexport\nt:\n\t$(B)\n", &[]),
            ("t: export BASH_ENV := v/all.js\nt:\n\tbash\n", js),
            ("SHELL = v/all.js\nt:\n\tcc src/a.c\n", js),
            ("t:\n\t$(MAKE) CC=v/all.js a\n", js),
            (
                "r = $(if $(1),$(call r,$(wordlist 2,9,$(1)))) $(1)\nt:\n\t@echo $(call r,a b)\n\tnode v/all.js\n",
                js,
            ),
            ("A = $(A)$(B)$(B)\nB = $(A)\nt: t%\n\t$(A) ; node v/all.js\n%: a% b%\n", js),
        ];
        for (make, expected) in cases {
            let more = ("x.mk", "t:\n\tnode v/all.js\n");
            let files = [("Makefile", make), ("v/all.js", ""), ("src/a.c", ""), more];
            let found: Vec<String> = of(&files, "make t");
            let found: Vec<&String> = found
                .iter()
                .filter(|path| !make.contains("include") || path.contains("v/"))
                .collect();
            assert_eq!(found, expected, "{make}");
        }
    }

    #[test]
    fn files_in_the_place_of_a_program_are_run_and_others_are_data() {
        let mut files =
            ["gate", "gate.py", "ci/t.sh", "main.c", "test_a.py"].map(|name| (name, "")).to_vec();
        files.push(("ci/run", "#!/bin/sh\nset -e\ncheck main.c\n"));
        files.push(("by_gate.t", "#!gate.py\n1\n"));
        files.push(("tests/all.t", "#!/usr/bin/env -S python3 gate.py\n1\n"));
        files.push(("tests/all.sh", "python3 gate.py\n"));
        let cases: [(&str, &[&str]); 51] = [
            ("cat <<E\nhelp [NAME...]\n[NAME] sh\nE\nsh gate [NAME...]", &["gate"]),
            ("sh gate", &["gate"]),
            ("./gate", &["gate"]),
            ("./gate || exit 1", &["gate"]),
            ("./ci/run", &["ci/run", "main.c"]),
            ("run-parts --exit-on-error ci", &["ci/*", "ci/run", "ci/t.sh", "main.c"]),
            ("./by_gate.t", &["by_gate.t", "gate.py"]),
            ("for t in tests/*.t; do ./$t; done", &["gate.py"]),
            ("sh tests/all.sh", &["tests/all.sh"]),
            ("gate", &[]),
            ("/usr/bin/env -i A=1 python3.12 -u ./gate.py main.c", &["gate.py", "main.c"]),
            ("if ! timeout -k 5 60 sh gate; then exit 1; fi", &["gate"]),
            ("for x in 1 2; do sh gate $x; done", &["gate"]),
            ("(cd ci && sh ../gate >&2)", &["gate"]),
            ("cd ci; bash -eo pipefail t.sh", &["ci/t.sh"]),
            ("sh -c 'sh ci/t.sh && python gate.py'", &["ci/t.sh", "gate.py"]),
            ("uv run --offline python gate.py", &["gate.py"]),
            ("python3 -m gate", &["gate.py"]),
            ("python3 -m pytest gate.py", &["gate.py"]),
            ("for f in ci/*.sh; do $f || exit 1; done", &["ci/*.sh", "ci/t.sh"]),
            ("ls ci/*.sh | xargs -n 1 -P 4 sh -e", &["ci/*.sh", "ci/t.sh"]),
            ("find ci -name '*.sh' -exec sh {} \\;", &["ci/**.sh", "ci/t.sh"]),
            ("find . -type f | xargs sh -n", &[]),
            ("ls *.py | xargs wc", &[]),
            ("node -r ./gate ci/t.sh", &["ci/t.sh", "gate"]),
            (". ./gate", &["gate"]),
            ("sh gate >/dev/null 2>&1", &["gate"]),
            ("sh gate | tee log", &["gate"]),
            ("true | sh gate", &["gate"]),
            ("\"$top/ci/t.sh\"", &["ci/t.sh"]),
            // The code under test, whose output is compared.
            ("./gate | grep -qx hello", &[]),
            ("./gate > out; diff out expected", &[]),
            ("test \"$(./gate)\" = hello", &[]),
            // The code under test is only looked at.
            ("sh -n gate", &[]),
            ("node --check gate", &[]),
            ("python3 -m py_compile gate.py", &[]),
            ("perl -c gate", &[]),
            ("cc -o gate main.c", &[]),
            ("cat gate", &[]),
            ("echo sh gate", &[]),
            // If an attempt adds such a file, it runs.
            ("sh absent gate", &["absent", "gate"]),
            ("[ -f more.sh ] && . ./more.sh", &["more.sh"]),
            ("if [ -e x.py ]; then python3 x.py; fi", &["x.py"]),
            ("test -x ci/more && ci/more", &["ci/more"]),
            ("sh ci", &[]),
            ("for f in d/*.sh; do . \"$f\"; done", &["d/*.sh"]),
            ("for f in gate more; do sh ./$f; done", &["gate", "more"]),
            (". ./d/*.sh", &["d/*.sh"]),
            ("for t in tests/*.sh; do . $t; done", &[]),
            ("python3 test_a.py", &["test_a.py"]),
            ("sh ../gate", &[]),
        ];
        for (command, expected) in cases {
            assert_eq!(of(&files, command), expected, "{command}");
        }
    }

    #[test]
    fn operands_of_comparisons_are_compared() {
        let files = [
            ("Makefile", "test: out\n\tcmp out d/a.html\nother:\n\tdiff x y\n"),
            ("tests/all.sh", "cd ..\nfor f in d/*.js; do\n  ./gen | diff -u - \"$f\"\ndone\n"),
            ("d/a.html", ""),
        ];
        let cases: [(&str, &[&str]); 10] = [
            ("make test", &["out", "d/a.html"]),
            ("cd tests && sh all.sh", &["d/*.js"]),
            ("cd d && cmp a.html ../b.html", &["d/a.html", "b.html"]),
            ("git diff --no-index a.html d", &["a.html", "d"]),
            ("git add d/a.html", &[]),
            // A formatter check compares a file with its own formatted text.
            ("for f in *.c; do clang-format $f | diff - $f; done", &[]),
            ("fmt a.c > out; diff out a.c", &["out"]),
            ("cat d/a.html", &[]),
            ("if ! diff -q a b >/dev/null; then exit 1; fi", &["a", "b"]),
            ("sh d/a.html", &[]),
        ];
        for (command, expected) in cases {
            let expected: BTreeSet<String> = expected.iter().map(|p| (*p).to_owned()).collect();
            assert_eq!(named(&files, command).compared, expected, "{command}");
        }
    }

    #[test]
    fn file_that_a_test_can_do_without_runs_as_soon_as_it_is_there() {
        let cases: [(&str, &[&str]); 6] = [
            ("[ -f ./more.sh ] && . ./more.sh\n", &["more.sh"]),
            ("test -e more.sh\nif [ $? = 0 ]; then\n  sh more.sh\nfi\n", &["more.sh"]),
            (". ./more.sh 2>/dev/null || :\n", &["more.sh"]),
            // A missing file that the test does not check for is the code that is to be written.
            (". ./more.sh\nsh main.sh\n", &[]),
            ("[ -f main.sh ] && . ./main.sh\n", &[]),
            ("sh tests/inner.sh", &["deep.sh"]),
        ];
        for (test, expected) in cases {
            let inner = "[ -x ./deep.sh ] && ./deep.sh\n";
            let files = [("test.sh", test), ("main.sh", ""), ("tests/inner.sh", inner)];
            assert_eq!(
                of(&files, "cd . && sh test.sh"),
                [expected, &["test.sh"]].concat(),
                "{test}"
            );
        }
    }

    #[test]
    fn recipes_and_shell_scripts_are_followed() {
        let files = [
            (
                "Makefile",
                "SHELL = bash\nPY ?= python3\n.PHONY: test\nall: x\n\tcc -o x main.c\n\
                 test: all prepare\n\t@$(SHELL) gate.sh \\\n\t  main.c\n\t-${PY} gate.py\n\t$(MAKE) more\n\
                 more: more.sh ; sh $<\nprepare: ; ./prepare\nrun:\n\tsh main.sh\n",
            ),
            (
                "package.json",
                r#"{"scripts": {"start": "node app.js", "test": "npm run a", "a": "node a.js", "prea": "sh gate.sh"}}"#,
            ),
            (
                "justfile",
                "top := '.'\n\nlint: (one 'x')\n    sh gate.sh\none name:\n    @./prepare {{name}}\nrun:\n    sh main.sh\n",
            ),
            (
                "gate.sh",
                "set -e\n. \"$(dirname \"$0\")/lib.sh\"\nf() {\n  sh deep.sh; }\nf\nx=$(sh main.sh)\n",
            ),
            ("lib.sh", "sh gate.sh\n"),
            ("deep.sh", "if sh deep/er.sh; then :; fi\n"),
            ("deep/er.sh", "cd \"$(dirname \"$0\")/..\" && ./up\n"),
            ("up", ""),
            ("tests/all.sh", ". ./main.sh\n"),
            ("prepare", "#!/bin/sh\nsh tests/all.sh\n"),
            ("gate.py", ""),
            ("more.sh", ""),
            ("main.c", ""),
            ("main.sh", ""),
            ("a.js", ""),
            ("app.js", ""),
        ];
        let gate = ["deep.sh", "deep/er.sh", "gate.sh", "lib.sh", "up"];
        let with = |more: &[&'static str]| -> Vec<&str> {
            let all: BTreeSet<&str> = gate.iter().chain(more).copied().collect();
            all.into_iter().collect()
        };
        assert_eq!(of(&files, "make -j2 test"), with(&["gate.py", "main.c", "more.sh", "prepare"]));
        assert_eq!(of(&files, "make"), [""; 0]);
        assert_eq!(of(&files, "npm test"), with(&["a.js"]));
        assert_eq!(of(&files, "npm ci"), [""; 0]);
        assert_eq!(of(&files, "just lint"), with(&["prepare"]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_text_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "<(", "$(", "(", ")", "{", "}", "<", ">", "<<E", "<<<", "|", "&", ";", "!", "\n", "\n\t", "\n  ", " ", "'", "\"", "\\", "\\\n", "`", "#", "=", ":=", ":", "$", "${", "$@", "é",
            "cd", "if", "fi", "for", "a", "A=1", "make", "test:", "-C", "include", "define A", "endef", "python3", "-m", "-c", "git diff", "sh", ".", "./a.sh", "xargs", "[ -f a ] && ", "tee", "*.sh",
        ]), 0..14)) {
            let text = parts.concat();
            let files = ["a.sh", "Makefile", "justfile", "Taskfile.yml", "package.json", "tox.ini", "a.py"].map(|name| (name, text.as_str()));
            for command in ["sh a.sh", "make test", "just test", "task test", "npm test", "tox", "python3 -m a", &text] {
                named(&files, command);
            }
        }
    }
}
