//! Finds the files that commands run or compare, by the names in commands, recipes and scripts.
//!
//! The texts are not interpreted: a word counts wherever it stands. A variable may have each value
//! that a text gives to it. A path may begin at the root, at the directory of its script, or at any
//! directory that the text names. So a file may count although it never runs. In that case, an
//! honest change is judged once more, but no wrong change is verified.
mod copies;
mod names;
mod programs;
mod recipes;
mod values;

pub use programs::{reads_shell, without_prefixes};
pub use values::{assignment, with_values};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::ecosystems::languages::language_of;
use crate::ecosystems::looking::reads_content;
use crate::ecosystems::paths::{directories_above, file_name, plain};
use crate::ecosystems::run_files::copies::{COMPARERS, COPIERS};
use crate::ecosystems::run_files::values::{as_argument, variables_in};
use crate::error::Result;
use crate::model::shell::{
    SimpleCommand, Word, WordRole, commands_of, is_assignment, script_lines, simple_commands,
    without_substitutions,
};

/// The maximum number of words to which one word is expanded, and of directories at which a path
/// may begin.
const MOST_WORDS: usize = 100;

/// The maximum number of variables that are followed from one to another.
const MOST_LEVELS: usize = 4;

/// The maximum depth of substitutions in substitutions.
const MOST_DEPTH: usize = 50;

/// The maximum number of times that the texts are searched: each time may find names for the next
/// one.
const MOST_ROUNDS: usize = 20;

pub struct TreeFiles<'a> {
    paths: Vec<&'a str>,
    directories: BTreeSet<&'a str>,
    by_name: HashMap<&'a str, Vec<&'a str>>,
    /// The source files, by their name without extension.
    by_stem: HashMap<&'a str, Vec<&'a str>>,
    links: BTreeSet<&'a str>,
    text: &'a dyn Fn(&str) -> Result<Option<String>>,
}

impl<'a> TreeFiles<'a> {
    /// The files at these paths; the flag is true for a symbolic link. `text` reads the file at a
    /// path, even if the path leads through links; it returns `None` if there is no file.
    pub fn of(
        files: impl Iterator<Item = (&'a str, bool)>,
        text: &'a dyn Fn(&str) -> Result<Option<String>>,
    ) -> TreeFiles<'a> {
        let files: Vec<(&str, bool)> = files.collect();
        let links = files.iter().filter(|(_, is_link)| *is_link).map(|(path, _)| *path).collect();
        let paths: Vec<&str> = files.into_iter().map(|(path, _)| path).collect();
        let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut by_stem: HashMap<&str, Vec<&str>> = HashMap::new();
        for path in &paths {
            by_name.entry(file_name(path)).or_default().push(path);
            if let Some((stem, _)) = file_name(path).rsplit_once('.')
                && language_of(path).is_some()
            {
                by_stem.entry(stem).or_default().push(path);
            }
        }
        let directories = paths.iter().flat_map(|path| directories_above(path)).collect();
        TreeFiles { paths, directories, by_name, by_stem, links, text }
    }

    fn has(&self, path: &str) -> bool {
        self.by_name.get(file_name(path)).is_some_and(|paths| paths.contains(&path))
    }

    /// True if a path leads to a file through a link to a directory.
    fn has_by_link(&self, path: &str) -> Result<bool> {
        let is_below_link = directories_above(path).any(|above| self.links.contains(above));
        Ok(is_below_link && (self.text)(path)?.is_some())
    }
}

/// The files that commands name, as paths and as patterns with `*`.
#[derive(Debug, Default)]
pub struct NamedFiles {
    /// The files that the commands run.
    pub run: BTreeSet<String>,
    /// The files that the commands compare with other files, and directories of such files.
    pub compared: BTreeSet<String>,
}

/// Returns the files that these shell commands run or compare. The recipes that the commands name,
/// and the shell scripts that they run, are searched, too. These files count as run:
/// * a file that a command names as its program;
/// * a source file or a file without an extension that a command names in any other way, unless the
///   command's program only looks at files (`grep`);
/// * a missing file that is named like this, because commands run it once an attempt adds it.
///
/// A name with `*` stands for all files that it matches. These files do not count as run:
/// * a test file that a script names, but none of `commands`;
/// * a file that a test runs, because it may be the code under test. If the test first checks
///   whether the file exists, and the file is missing, it counts;
/// * a file whose output another command reads, because it may be the code under test, too.
///
/// Comparisons in test files count.
pub fn named_files(files: &TreeFiles<'_>, commands: &[String]) -> Result<NamedFiles> {
    let lines = commands.iter().flat_map(|command| lines_of(command, &None)).collect();
    let commands = Text { lines, is_command: true, ..Text::default() };
    let mut search = Search {
        files,
        texts: vec![Rc::new(commands)],
        read: BTreeSet::new(),
        values: BTreeMap::new(),
        used: BTreeSet::new(),
        recipes: BTreeSet::new(),
        directories: BTreeMap::new(),
        entered: BTreeMap::new(),
        copies: BTreeSet::new(),
        depth: 0,
        found: NamedFiles::default(),
    };
    for _ in 0..MOST_ROUNDS {
        let before = search.size();
        let mut at = 0;
        while at < search.texts.len() {
            search.text(at)?;
            at += 1;
        }
        if search.size() == before {
            search.unused_values()?;
            if search.size() == before {
                break;
            }
        }
    }
    Ok(search.found)
}

/// A text with commands.
#[derive(Default)]
struct Text {
    /// The directory of the file.
    directory: String,
    lines: Vec<Line>,
    /// True for the oracle's commands themselves, not for the files that they run.
    is_command: bool,
    is_test: bool,
}

struct Line {
    /// The runner and the name of the recipe; `None` if the line counts no matter which recipes
    /// run.
    recipe: Option<(&'static str, String)>,
    text: String,
}

fn lines_of(script: &str, recipe: &Option<(&'static str, String)>) -> Vec<Line> {
    let lines = script_lines(script).into_iter();
    lines.map(|text| Line { recipe: recipe.clone(), text }).collect()
}

/// The context of a command.
#[derive(Clone, Default)]
struct Place {
    /// The index of the text.
    at: usize,
    /// The directory of the text's file.
    directory: String,
    is_command: bool,
    /// The words of the conditions (`[ -f x ]`) in a test file. They name the files that the test
    /// checks for before it runs them. `None` outside of test files.
    optional: Option<BTreeSet<String>>,
    /// True if the line continues after one of its commands fails.
    may_fail: bool,
    /// The words of the commands whose output another command of the same text reads. A formatter
    /// check compares a file with output that was made from the same file. Such a file is not
    /// expected output.
    inputs: Vec<Word>,
}

/// The meaning of a word of a command.
#[derive(Clone, Copy, Default)]
struct Part {
    /// True if the word can only be a file that is run: then the file counts whatever its name is.
    is_program: bool,
    /// True if the word as a whole may be a path. If it is the path of a directory, it means the
    /// directory's main file.
    is_whole: bool,
    /// True if the file counts even if it is missing.
    takes_missing: bool,
    /// True if a shell runs the file.
    by_shell: bool,
}

struct Search<'a> {
    files: &'a TreeFiles<'a>,
    texts: Vec<Rc<Text>>,
    /// The files whose text was added already.
    read: BTreeSet<String>,
    /// The values of variables, by the name and the index of the text that gives them.
    values: BTreeMap<String, BTreeMap<usize, Vec<Word>>>,
    /// The variables that texts use.
    used: BTreeSet<String>,
    /// The recipes that run, with their runner.
    recipes: BTreeSet<(&'static str, String)>,
    /// The directories at which paths in a text may begin, by the index of the text.
    directories: BTreeMap<usize, BTreeSet<String>>,
    /// The directories to which commands of a text change, by the index of the text: `.` may mean
    /// each of them.
    entered: BTreeMap<usize, BTreeSet<String>>,
    /// Paths or patterns to which files are copied or written, each with that of the originals. The
    /// role is `Name` for an exact copy, and `Content` if a text tool wrote it.
    copies: BTreeSet<(String, String, WordRole)>,
    /// The number of substitutions around the text that is searched.
    depth: usize,
    found: NamedFiles,
}

impl Search<'_> {
    /// A number that grows with everything that a search finds.
    fn size(&self) -> usize {
        let values: usize = self.values.values().flat_map(BTreeMap::values).map(Vec::len).sum();
        let directories = self.directories.values().chain(self.entered.values());
        let directories: usize = directories.map(BTreeSet::len).sum();
        let found = self.found.run.len() + self.found.compared.len() + self.copies.len();
        self.texts.len() + self.recipes.len() + values + directories + found
    }

    fn text(&mut self, at: usize) -> Result<()> {
        let text = Rc::clone(&self.texts[at]);
        self.used.extend(text.lines.iter().flat_map(|line| variables_in(&line.text)));
        let mut place = Place {
            at,
            directory: text.directory.clone(),
            is_command: text.is_command,
            ..Place::default()
        };
        let lines: Vec<&Line> = text
            .lines
            .iter()
            .filter(|line| line.recipe.as_ref().is_none_or(|recipe| self.recipes.contains(recipe)))
            .collect();
        let commands =
            lines.iter().flat_map(|l| simple_commands(&without_substitutions(&l.text).0));
        let mut optional = BTreeSet::new();
        for command in commands {
            let asks = matches!(command.words.first(), Some(w) if ["[", "[[", "test"].contains(&w.text.as_str()));
            if asks {
                optional.extend(command.words.iter().map(|word| plain(&word.text).to_owned()));
            }
            let program = without_prefixes(&command.words).first().map_or("", |word| &word.text);
            if command.is_read && !COMPARERS.contains(&program) {
                let is_text = reads_content(program);
                let role = if is_text { WordRole::Content } else { WordRole::Name };
                let words = command.words.iter().chain(&command.inputs);
                place.inputs.extend(words.map(|word| word.in_role(role)));
            }
        }
        place.optional = text.is_test.then_some(optional);
        for line in lines {
            place.may_fail = line.text.contains("||");
            self.line(&line.text, false, &place)?;
        }
        Ok(())
    }

    /// Searches the values of variables that no text uses: only programs that run can use such a
    /// variable.
    fn unused_values(&mut self) -> Result<()> {
        let unused = self.values.iter().filter(|(variable, _)| !self.used.contains(*variable));
        let unused: Vec<_> = unused.flat_map(|(_, values)| values.clone()).collect();
        for (at, values) in unused {
            let directory = self.texts[at].directory.clone();
            let place = Place { at, directory, ..Place::default() };
            for value in &values {
                self.word(value, Part::default(), &place)?;
            }
        }
        Ok(())
    }

    /// Searches a line. Returns the words that name the files whose content the line prints, as far
    /// as that is known.
    fn line(&mut self, line: &str, is_read: bool, place: &Place) -> Result<Vec<Word>> {
        let (line, inner) = without_substitutions(line);
        let printed_inside = self.substitutions(&inner, place)?;
        let mut printed = Vec::new();
        let mut piped = Vec::new();
        for SimpleCommand { mut words, is_read: by_other, is_piped, inputs, texts, output } in
            commands_of(&line)
        {
            let copies = words.iter().position(|word| word.text == "tee");
            let outputs = copies.map_or(&[][..], |tee| &words[tee + 1..]);
            let outputs: Vec<Word> = outputs.iter().chain(&output).cloned().collect();
            let start = words.iter().take_while(|word| is_assignment(&word.text)).count();
            let is_empty = words.is_empty();
            let last = words.last().cloned();
            words.extend(inputs.into_iter().chain(texts));
            let own = words.len();
            for (at, inside) in printed_inside.iter().enumerate() {
                if words[start..].iter().any(|word| word.holds_substitution(at)) {
                    words.extend(inside.iter().map(as_argument));
                }
            }
            let program = without_prefixes(&words).first().map_or("", |word| file_name(&word.text));
            if words.len() > own && COPIERS.contains(&program) {
                words.extend(last);
            }
            self.assignments(&words, &printed_inside, place);
            words.append(&mut piped);
            if is_empty {
                // The end of a group or a loop, whose commands print to one place.
                if let Some(output) = &output {
                    self.written(&printed, output, place)?;
                }
                if is_piped {
                    piped = std::mem::take(&mut printed);
                }
                // `$(<F)`, or the text that a loop reads. A file without an extension is more
                // likely data than commands.
                for word in &words {
                    if word.text.contains('\n') || language_of(&word.text).is_some() {
                        self.word(word, Part::default(), place)?;
                    }
                }
                printed.extend(words.iter().map(|word| word.in_role(WordRole::Content)));
                continue;
            }
            let looked_at = self.command(&words, is_read || by_other, place)?;
            for output in &outputs {
                self.written(&looked_at, output, place)?;
            }
            if is_piped {
                piped = looked_at;
            } else if output.is_none() {
                printed.extend(looked_at);
            }
        }
        Ok(printed)
    }

    /// Searches the commands of substitutions. Returns the words that each one prints.
    fn substitutions(&mut self, inner: &[String], place: &Place) -> Result<Vec<Vec<Word>>> {
        let mut printed_inside = Vec::new();
        self.depth += 1;
        for text in inner {
            let mut printed = Vec::new();
            if self.depth < MOST_DEPTH {
                for line in script_lines(text) {
                    printed.extend(self.line(&line, true, place)?);
                }
            }
            printed_inside.push(printed);
        }
        self.depth -= 1;
        Ok(printed_inside)
    }
}

#[cfg(test)]
mod tests;
