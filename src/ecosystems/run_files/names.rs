//! The files that a word of a command stands for.
use std::rc::Rc;

use crate::ecosystems::languages::{have_same_language, language_of};
use crate::ecosystems::paths::{directory_of, file_name, inside, is_in_name, plain};
use crate::ecosystems::run_files::search::{
    MOST_WORDS, Search, Text, TextContext, WordMeaning, lines_of,
};
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::model::pattern::matches;
use crate::model::shell::{Word, script_lines};

impl Search<'_> {
    /// Adds the files that a word of a command names.
    pub(super) fn word(
        &mut self,
        word: &Word,
        meaning: WordMeaning,
        context: &TextContext,
    ) -> Result<()> {
        let values = self.with_values(word, context);
        if values != [word.clone()] {
            for value in &values {
                // A value that uses its own variable is not expanded again.
                for text in value.text.split_whitespace() {
                    let is_program = meaning.is_program && text.contains('/');
                    self.plain_word(
                        &value.with(text),
                        WordMeaning { is_program, ..meaning },
                        context,
                    )?;
                }
            }
            return Ok(());
        }
        self.plain_word(word, meaning, context)
    }

    /// As [`Self::word`], without the values of variables.
    pub(super) fn plain_word(
        &mut self,
        word: &Word,
        meaning: WordMeaning,
        context: &TextContext,
    ) -> Result<()> {
        let text = word.text.as_str();
        if meaning.by_shell && text.contains(char::is_whitespace) {
            for line in script_lines(text) {
                self.line(&line, false, context)?;
            }
            return Ok(());
        }
        let is_name = |c: char| !c.is_whitespace() && !"=,:;!'\"`()<>|&".contains(c);
        if !text.starts_with('-') && text.chars().all(is_name) {
            return self.name(word, meaning, context);
        }
        // In the text of a script, a line that begins with `#` is a comment.
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for piece in lines.flat_map(|line| line.split(|c| !is_name(c))) {
            // A value may directly follow the letter of an option.
            let piece = if piece.starts_with('-') { piece.get(2..).unwrap_or("") } else { piece };
            if piece.contains(['/', '.']) && !piece.contains('*') {
                let meaning = WordMeaning { by_shell: meaning.by_shell, ..WordMeaning::default() };
                self.name(&word.with(piece), meaning, context)?;
            }
        }
        Ok(())
    }

    /// Adds the files that a name may mean. If there is none, adds the missing files that it may
    /// mean.
    pub(super) fn name(
        &mut self,
        word: &Word,
        meaning: WordMeaning,
        context: &TextContext,
    ) -> Result<()> {
        let mut missing = Vec::new();
        let mut is_there = false;
        let possible = self.possible(word, context);
        for path in &possible {
            if path.contains('*') {
                let is_whole = meaning.is_whole || meaning.collects;
                if is_whole && (is_run_by_name(path) || meaning.is_program) {
                    self.like(path, meaning, context)?;
                    missing.push(path.clone());
                }
            } else if self.at(path, meaning, context)? {
                is_there = true;
            } else if meaning.takes_missing {
                missing.push(path.clone());
            }
        }
        if !is_there {
            for path in &possible {
                is_there |= self.copy(path, meaning, context)?;
            }
        }
        missing.retain(|path| {
            let is_wanted = context.may_fail
                || context.optional.as_ref().is_none_or(|files| files.contains(plain(&word.text)));
            // A pattern in a test may stand for the code under test.
            let counts = match path.contains('*') {
                true => context.optional.is_none(),
                false => is_wanted && !is_there,
            };
            counts && !is_test_path(path)
        });
        self.found.run.extend(missing);
        Ok(())
    }

    /// Adds the files that match a pattern. If a test matches, only the interpreter in its first
    /// line counts, because the files that the test runs may be the code under test.
    pub(super) fn like(
        &mut self,
        pattern: &str,
        meaning: WordMeaning,
        context: &TextContext,
    ) -> Result<()> {
        let matching: Vec<&str> =
            self.files.paths.iter().copied().filter(|path| matches(pattern, path)).collect();
        for path in matching.into_iter().take(MOST_WORDS) {
            if is_test_path(path) {
                let text = (self.files.text)(path)?.unwrap_or_default();
                self.interpreter(&text, context)?;
            } else if meaning.is_program || may_be_shell(path) {
                self.file(path, meaning.by_shell, context)?;
            }
        }
        Ok(())
    }

    /// Adds the file at a path, or the main files of the directory there. Returns true if the path
    /// exists.
    pub(super) fn at(
        &mut self,
        path: &str,
        meaning: WordMeaning,
        context: &TextContext,
    ) -> Result<bool> {
        if self.files.has(path) || self.files.has_by_link(path)? {
            if meaning.is_program || is_run_by_name(path) {
                self.file(path, meaning.by_shell, context)?;
            }
        } else if path.is_empty() || self.files.directories.contains(path) {
            if meaning.is_whole {
                self.main_files(path, context)?;
            }
        } else {
            return Ok((meaning.is_whole || path.contains('/'))
                && self.without_extension(path, context)?);
        }
        Ok(true)
    }

    /// Adds the source files whose path without extension is `path`. Returns true if there are any.
    pub(super) fn without_extension(&mut self, path: &str, context: &TextContext) -> Result<bool> {
        let files = self.files.by_stem.get(file_name(path)).into_iter().flatten().copied();
        let files: Vec<&str> =
            files.filter(|file| directory_of(file) == directory_of(path)).collect();
        for file in &files {
            self.file(file, false, context)?;
        }
        Ok(!files.is_empty())
    }

    /// Adds the main files of a directory: they run if a command names the directory.
    pub(super) fn main_files(&mut self, directory: &str, context: &TextContext) -> Result<()> {
        let files = self.files;
        for path in files.paths.iter().filter(|path| directory_of(path) == directory) {
            let name = file_name(path);
            let is_index = name.starts_with("index.") && have_same_language(name, "a.js");
            let is_go = name.ends_with(".go") && !is_test_path(path);
            if name == "package.json" {
                let text = (self.files.text)(path)?.unwrap_or_default();
                let json = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
                if let Some(main) = json["main"].as_str() {
                    let word = Word::plain(inside(directory, main));
                    self.name(
                        &word,
                        WordMeaning { takes_missing: true, ..WordMeaning::default() },
                        context,
                    )?;
                    self.found.run.insert((*path).to_owned());
                }
            } else if name == "__main__.py" || is_index {
                self.file(path, false, context)?;
            } else if is_go
                && let Some(text) = (self.files.text)(path)?
                && text.lines().any(|line| line.trim_end() == "package main")
            {
                self.found.run.insert((*path).to_owned());
            }
        }
        let main = inside(directory, "src/main.rs");
        if self.files.has(&main) {
            self.found.run.insert(main);
        }
        Ok(())
    }

    /// Adds the file of a module of Python: `v/all.py` for `v.all`. Returns false if the tree has
    /// none. The last parts of a word may be names in the module. At least the first `least` parts
    /// belong to the name of the module.
    pub(super) fn module(
        &mut self,
        word: &Word,
        least: usize,
        context: &TextContext,
    ) -> Result<bool> {
        let mut is_there = false;
        for value in self.with_values(word, context) {
            let parts: Vec<&str> = value.text.split(['.', ':']).collect();
            if parts.iter().any(|part| part.is_empty() || !part.chars().all(is_in_name)) {
                continue;
            }
            for count in (least..=parts.len()).rev() {
                let path = parts[..count].join("/");
                let names = [format!("{path}.py"), format!("{path}/__main__.py")];
                let names = names.map(Word::plain);
                let found: Vec<String> =
                    names.iter().flat_map(|name| self.existing(name, context)).collect();
                for path in &found {
                    self.file(path, false, context)?;
                }
                is_there |= !found.is_empty();
                if is_there {
                    break;
                }
            }
        }
        Ok(is_there)
    }

    /// Adds a file, and its text if it is a shell script.
    pub(super) fn file(&mut self, path: &str, by_shell: bool, context: &TextContext) -> Result<()> {
        let is_test = is_test_path(path);
        let is_under_test = context.optional.is_some() && !is_test;
        if is_under_test {
            return Ok(());
        }
        if !is_test || context.is_command {
            self.found.run.insert(path.to_owned());
        }
        if !self.read.insert(path.to_owned()) {
            return Ok(());
        }
        let text = (self.files.text)(path)?.unwrap_or_default();
        let is_shell = self.interpreter(&text, context)?.unwrap_or_else(|| may_be_shell(path));
        if by_shell || is_shell {
            let lines = lines_of(&text, &None);
            let directory = directory_of(path).to_owned();
            self.texts.push(Rc::new(Text { lines, directory, is_test, ..Text::default() }));
        }
        Ok(())
    }

    /// The files of the tree that a word may mean.
    pub(super) fn existing(&self, word: &Word, context: &TextContext) -> Vec<String> {
        let mut found = self.possible(word, context);
        found.retain(|path| self.files.has(path));
        found
    }
}

/// True if a file of this name counts wherever a command names it.
pub(super) fn is_run_by_name(path: &str) -> bool {
    language_of(path).is_some() || !file_name(path).contains('.')
}

/// True if a file of this name may be a shell script.
pub(super) fn may_be_shell(path: &str) -> bool {
    language_of(path).map_or(!file_name(path).contains('.'), |language| language.is_shell())
}
