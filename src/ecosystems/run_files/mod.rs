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
mod search;
mod values;

pub use programs::{reads_shell, without_prefixes};
pub use search::{NamedFiles, TreeFiles};
pub use values::{assignment, with_values};

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::ecosystems::languages::language_of;
use crate::ecosystems::looking::reads_content;
use crate::ecosystems::paths::{file_name, plain};
use crate::ecosystems::run_files::copies::{COMPARERS, COPIERS};
use crate::ecosystems::run_files::search::{
    Line, Search, Text, TextContext, WordMeaning, lines_of,
};
use crate::ecosystems::run_files::values::{as_argument, variables_in};
use crate::error::Result;
use crate::model::shell::{
    SimpleCommand, Word, WordRole, commands_of, is_assignment, script_lines, simple_commands,
    without_substitutions,
};

/// The maximum depth of substitutions in substitutions.
const MOST_DEPTH: usize = 50;

/// The maximum number of times that the texts are searched: each time may find names for the next
/// one.
const MOST_ROUNDS: usize = 20;

/// Returns the files that these shell commands run or compare. The recipes that the commands name,
/// and the shell scripts that they run, are searched, too. These files count as run:
/// * a file that a command names as its program;
/// * a source file or a file without an extension that a command names in any other way, unless the
///   command's program only looks at files (`grep`);
/// * a missing file that is named like this, because commands run it as soon as an attempt adds it.
///
/// A name with `*` stands for all files that it matches. These files do not count as run:
/// * a test file that scripts name, but that none of `commands` names;
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
        known_recipes: BTreeSet::new(),
        first_recipes: BTreeSet::new(),
        scripts: None,
        directories: BTreeMap::new(),
        entered: BTreeMap::new(),
        changes_anywhere: BTreeSet::new(),
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

impl Search<'_> {
    /// A number that grows with everything that a search finds.
    fn size(&self) -> usize {
        let values: usize = self.values.values().flat_map(BTreeMap::values).map(Vec::len).sum();
        let directories = self.directories.values().chain(self.entered.values());
        let directories: usize = directories.map(BTreeSet::len).sum();
        let found = self.found.run.len() + self.found.compared.len() + self.copies.len();
        let texts = self.texts.len() + self.changes_anywhere.len();
        texts + self.recipes.len() + values + directories + found
    }

    fn text(&mut self, at: usize) -> Result<()> {
        let text = Rc::clone(&self.texts[at]);
        self.used.extend(text.lines.iter().flat_map(|line| variables_in(&line.text)));
        let mut context = TextContext {
            at,
            directory: text.directory.clone(),
            is_command: text.is_command,
            ..TextContext::default()
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
                context.inputs.extend(words.map(|word| word.in_role(role)));
            }
        }
        context.optional = text.is_test.then_some(optional);
        for line in lines {
            context.may_fail = line.text.contains("||");
            self.line(&line.text, false, &context)?;
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
            let context = TextContext { at, directory, ..TextContext::default() };
            for value in &values {
                self.word(value, WordMeaning::default(), &context)?;
            }
        }
        Ok(())
    }

    /// Searches a line. Returns the words that name the files whose content the line prints, as far
    /// as that is known.
    fn line(&mut self, line: &str, is_read: bool, context: &TextContext) -> Result<Vec<Word>> {
        let (line, inner) = without_substitutions(line);
        let printed_inside = self.substitutions(&inner, context)?;
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
            self.assignments(&words, &printed_inside, context);
            words.append(&mut piped);
            if is_empty {
                // The end of a group or a loop, whose commands print to one place.
                if let Some(output) = &output {
                    self.written(&printed, output, context)?;
                }
                if is_piped {
                    piped = std::mem::take(&mut printed);
                }
                // `$(<F)`, or the text that a loop reads. A file without an extension is more
                // likely data than commands.
                for word in &words {
                    if word.text.contains('\n') || language_of(&word.text).is_some() {
                        self.word(word, WordMeaning::default(), context)?;
                    }
                }
                printed.extend(words.iter().map(|word| word.in_role(WordRole::Content)));
                continue;
            }
            let looked_at = self.command(&words, is_read || by_other, context)?;
            for output in &outputs {
                self.written(&looked_at, output, context)?;
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
    fn substitutions(&mut self, inner: &[String], context: &TextContext) -> Result<Vec<Vec<Word>>> {
        let mut printed_inside = Vec::new();
        self.depth += 1;
        for text in inner {
            let mut printed = Vec::new();
            if self.depth < MOST_DEPTH {
                for line in script_lines(text) {
                    printed.extend(self.line(&line, true, context)?);
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
