//! The programs that commands start, and the files that each of them runs.
use crate::ecosystems::ALL;
use crate::ecosystems::looking::{collects_tests, looks_only, reads_content};
use crate::ecosystems::paths::file_name;
use crate::ecosystems::run_files::copies::{COMPARERS, COPIERS, content_of};
use crate::ecosystems::run_files::recipes::INCLUDING;
use crate::ecosystems::run_files::search::{Search, TextContext, WordMeaning};
use crate::ecosystems::run_files::values::{as_argument, assignment};
use crate::ecosystems::rust;
use crate::error::Result;
use crate::model::shell::{Word, WordRole, is_assignment};

/// Programs that run a file of the root that no word names.
const BY_DEFAULT: [(&str, &str); 13] = [
    ("cucumber-js", "cucumber.js"),
    ("doit", "dodo.py"),
    ("duty", "duties.py"),
    ("fab", "fabfile.py"),
    ("fab", "fabfile/__init__.py"),
    ("inv", "tasks.py"),
    ("inv", "tasks/__init__.py"),
    ("invoke", "tasks.py"),
    ("invoke", "tasks/__init__.py"),
    ("jake", "Jakefile.js"),
    ("nps", "package-scripts.js"),
    ("paver", "pavement.py"),
    ("testem", "testem.js"),
];

/// Options of programs that otherwise only look at files. The program runs the file after such an
/// option.
const RUNNING: [&str; 4] = ["config", "exec", "toolexec", "wrapper"];

/// Options before the name of a module that is measured, not run.
const BEFORE_MEASURED: [&str; 2] = ["--cov", "--source"];

/// Programs that run the program that their arguments name.
const PREFIXES: [&str; 14] = [
    "bundle", "command", "env", "exec", "hatch", "nice", "nohup", "pdm", "pipenv", "poetry", "run",
    "time", "timeout", "uv",
];

impl Search<'_> {
    /// Searches a command. Returns the words that name the files whose content the command may
    /// print.
    pub(super) fn command(
        &mut self,
        words: &[Word],
        is_read: bool,
        context: &TextContext,
    ) -> Result<Vec<Word>> {
        let (prefixes, words) = words.split_at(words.len() - without_prefixes(words).len());
        let Some((program, rest)) = words.split_first() else { return Ok(Vec::new()) };
        if !is_read {
            // The program may run the files in the values of its variables: `BASH_ENV=F sh`.
            self.assigned(prefixes, context)?;
        }
        if looks_only(&program.text, "") {
            return self.plain_command(words, is_read, context);
        }
        let mut printed = Vec::new();
        for program in self.with_values(program, context) {
            let parts = program.text.split_whitespace().map(|part| program.with(part));
            let words: Vec<Word> = parts.chain(rest.iter().cloned()).collect();
            printed.extend(self.plain_command(&words, is_read, context)?);
        }
        Ok(printed)
    }

    /// As [`Self::command`], without the values of the variable that names the program: a value may
    /// use the same variable (`r="env $r"`).
    fn plain_command(
        &mut self,
        words: &[Word],
        is_read: bool,
        context: &TextContext,
    ) -> Result<Vec<Word>> {
        let words = without_prefixes(words);
        let Some((program, rest)) = words.split_first() else { return Ok(Vec::new()) };
        match program.text.as_str() {
            // The operands are texts, which may be the content of files.
            "case" | "[" | "[[" | "test" | "uniq" => {
                let content: Vec<Word> =
                    rest.iter().flat_map(|word| self.contents(word, context)).collect();
                self.compared(&content, context);
                if program.text == "uniq" {
                    return self.program(words, is_read, context);
                }
            }
            "cd" | "pushd" => {
                for value in self.all_values(rest, context) {
                    let entered = self.possible(&value, context).into_iter();
                    let entered =
                        entered.filter(|path| self.files.directories.contains(path.as_str()));
                    let entered: Vec<String> = entered.collect();
                    if entered.is_empty() && value.text.contains(['$', '*']) {
                        self.changes_anywhere.insert(context.at);
                    }
                    self.entered.entry(context.at).or_default().extend(entered);
                }
            }
            "for" | "read" => {
                if let Some((variable, values)) = rest.split_first() {
                    let values = values.iter().skip_while(|word| word.text == "in");
                    let values = values.flat_map(|word| self.with_values(word, context));
                    let values: Vec<Word> = match program.text.as_str() {
                        "read" => values.map(|word| content_of(&word)).collect(),
                        _ => values.collect(),
                    };
                    self.give(&variable.text, values, context);
                }
            }
            "find" => return self.find(rest, is_read, context),
            name if INCLUDING.contains(&name) => self.included(name, rest, context)?,
            name if COPIERS.contains(&file_name(name)) => {
                let operands = rest.iter().filter(|word| !word.text.starts_with('-')).cloned();
                if let Some((to, from)) = operands.collect::<Vec<_>>().split_last() {
                    self.copied(from, to, context);
                }
            }
            _ => return self.program(words, is_read, context),
        }
        Ok(Vec::new())
    }

    /// Searches a command whose program may run the files that its words name. Returns the words
    /// that name the files whose content the command may print.
    pub(super) fn program(
        &mut self,
        words: &[Word],
        is_read: bool,
        context: &TextContext,
    ) -> Result<Vec<Word>> {
        self.program_with_files_of_its_own(words, is_read, context)?;
        let mut meaning = WordMeaning::default();
        for (at, word) in words.iter().enumerate() {
            let name = word.text.as_str();
            let next = words.get(at + 1).map_or("", |word| word.text.as_str());
            if let Some(printed) = self.other_program(word, &words[at + 1..], next, context)? {
                return Ok(printed);
            }
            if is_read {
                continue;
            }
            // In a Makefile, `.PHONY: test` is no command.
            if at == 0 && !name.ends_with(':') {
                self.run_scripts_named(&words[1..], context)?;
            }
            for (_, file) in BY_DEFAULT.iter().filter(|(program, _)| *program == name) {
                self.at(file, WordMeaning { is_program: true, ..WordMeaning::default() }, context)?;
            }
            meaning.collects |= collects_tests(name, next);
            let before = at.checked_sub(1).map_or("", |at| words[at].text.as_str());
            let follows_m = is_option_m(before) && !meaning.by_shell;
            if at > 0 && !BEFORE_MEASURED.contains(&before) {
                let least = if meaning.collects || follows_m { 1 } else { 2 };
                if self.module(word, least, context)? || follows_m {
                    continue;
                }
            }
            self.modules_in_option(word, context)?;
            meaning.is_program = at == 0 && name.contains('/')
                || matches!(before, "." | "source")
                || meaning.by_shell && !before.starts_with('-') && at == 1;
            meaning.is_whole = at > 0 && !meaning.collects || meaning.is_program;
            meaning.takes_missing = meaning.is_program
                || at > 0 && name.contains(['/', '.'])
                || at == 1 && !name.starts_with(|c: char| c.is_ascii_digit() || c == '{');
            if at > 0 || meaning.is_program {
                self.word(word, meaning, context)?;
            }
            meaning.by_shell |= reads_shell(name);
        }
        Ok(Vec::new())
    }

    /// Adds the modules and files that the value of an option names: `-mcalc`, `--settings=a.b`.
    fn modules_in_option(&mut self, word: &Word, context: &TextContext) -> Result<()> {
        let name = word.text.as_str();
        if let Some(module) = name.strip_prefix("-m").filter(|module| !module.is_empty()) {
            self.module(&word.with(module), 1, context)?;
        }
        // Code (`-c 'import x'`) may load what is under test.
        let option = name.split('=').next().unwrap_or_default();
        if name.contains(['=', '-'])
            && !name.contains(char::is_whitespace)
            && !BEFORE_MEASURED.contains(&option)
        {
            self.modules_in(word, context)?;
        }
        // `-rall` loads a file from a directory that `-I` names.
        if let Some(module) = name.strip_prefix("-r").or(name.strip_prefix("-M"))
            && !module.is_empty()
        {
            let module = Word::plain(module.replace("::", "/"));
            let meaning = WordMeaning { is_whole: true, ..WordMeaning::default() };
            self.name(&module, meaning, context)?;
        }
        Ok(())
    }

    /// Searches the files that `export`, `run-parts` or `cargo` uses without naming them one by
    /// one.
    fn program_with_files_of_its_own(
        &mut self,
        words: &[Word],
        is_read: bool,
        context: &TextContext,
    ) -> Result<()> {
        match file_name(&words[0].text) {
            "export" => {
                for variable in &words[1..] {
                    let variable = Word::expanded(format!("${}", variable.text));
                    for value in self.with_values(&variable, context) {
                        self.word(&value, WordMeaning::default(), context)?;
                        self.modules_in(&value, context)?;
                    }
                }
            }
            "run-parts" if !is_read => {
                for word in words[1..].iter().filter(|word| !word.text.starts_with('-')) {
                    let text = format!("{}/*", word.text);
                    let every =
                        WordMeaning { is_program: true, is_whole: true, ..WordMeaning::default() };
                    self.word(&Word::expanded(text), every, context)?;
                }
            }
            "cargo" if !is_read => self.programs_of_cargo(&words[1..], context)?,
            _ => {}
        }
        Ok(())
    }

    /// Adds the programs that `cargo run` starts. Its words, or those of an alias, name packages,
    /// their manifests or programs. The root's main program is not added: it is the product.
    fn programs_of_cargo(&mut self, words: &[Word], context: &TextContext) -> Result<()> {
        let given: Vec<String> =
            self.all_values(words, context).into_iter().map(|word| word.text).collect();
        let settings = (self.files.text)(".cargo/config.toml")?.unwrap_or_default();
        let mut words = rust::words_of_aliases(&settings, &given);
        words.extend(given);
        if !words.iter().any(|word| matches!(word.as_str(), "r" | "run")) {
            return Ok(());
        }
        let files = self.files;
        for path in files.by_name.get("Cargo.toml").into_iter().flatten() {
            let text = (files.text)(path)?.unwrap_or_default();
            for program in rust::programs_named(path, &text, &words) {
                if files.has(&program) && program != "src/main.rs" {
                    self.file(&program, false, context)?;
                }
            }
        }
        Ok(())
    }

    /// Handles a `program` that compares files, runs recipes or only looks at files. Searches the
    /// words after it (`rest`), and returns the words that name the files whose content it may
    /// print. Returns `None` for any other program. `next` is the text of the next word.
    fn other_program(
        &mut self,
        program: &Word,
        rest: &[Word],
        next: &str,
        context: &TextContext,
    ) -> Result<Option<Vec<Word>>> {
        let name = if program.text == "${MAKE}" { "make" } else { program.text.as_str() };
        if COMPARERS.contains(&file_name(name)) {
            // A setting of git may name a program: `git -c diff.external=F diff`.
            let settings = rest.windows(2).filter(|pair| pair[0].text == "-c");
            let set: Vec<Word> = settings.map(|pair| pair[1].clone()).collect();
            self.assigned(&set, context)?;
            let operands = match file_name(name) {
                "git" => rest.splitn(2, |word| word.text == "diff").nth(1),
                _ => Some(rest),
            };
            self.compared(operands.unwrap_or_default(), context);
            // `HEAD:F`, or a pattern of names.
            let files = rest.get(1..).unwrap_or_default().iter().map(file_of_git);
            match next {
                "show" | "cat-file" | "hash-object" => {
                    return Ok(Some(files.map(|word| content_of(&word)).collect()));
                }
                "ls-files" => return Ok(Some(files.collect())),
                _ => {}
            }
        } else if let Some(tool) = ALL.iter().find(|one| one.recipe_runners.contains(&name)) {
            self.assigned(rest, context)?;
            self.run_recipes(tool, rest, context)?;
        } else if looks_only(name, next) && self.existing(program, context).is_empty() {
            self.settings(rest, context)?;
            self.compared_by(name, rest, context);
            let is_text = reads_content(name);
            let printed = rest.iter().map(|word| match word.role {
                WordRole::Name if is_text => word.in_role(WordRole::Content),
                WordRole::Content if is_text || ["echo", "printf"].contains(&name) => word.clone(),
                _ => word.in_role(WordRole::Printed),
            });
            return Ok(Some(printed.collect()));
        } else {
            return Ok(None);
        }
        Ok(Some(Vec::new()))
    }

    /// Searches the first line of an executed file, which is a command:
    /// `#!/usr/bin/env -S python3 F`. Returns true if it names a shell, and `None` if there is no
    /// such line.
    pub(super) fn interpreter(
        &mut self,
        text: &str,
        context: &TextContext,
    ) -> Result<Option<bool>> {
        let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
        let words = first.unwrap_or_default().split_whitespace();
        for word in words.skip_while(|word| word.starts_with('/')) {
            let word = Word::plain(word);
            let meaning =
                WordMeaning { is_program: word.text.contains('/'), ..WordMeaning::default() };
            self.word(&word, meaning, context)?;
        }
        Ok(first.map(|first| first.trim_end().ends_with("sh")))
    }

    /// Adds the files that options of a program name, e.g. its settings: `--config FILE`,
    /// `--plugin=FILE`.
    fn settings(&mut self, words: &[Word], context: &TextContext) -> Result<()> {
        for (at, word) in words.iter().enumerate() {
            let is_value = at > 0 && RUNNING.contains(&words[at - 1].text.trim_start_matches('-'));
            if is_value || word.text.starts_with("--") && word.text.contains('=') {
                self.word(word, WordMeaning::default(), context)?;
            }
        }
        Ok(())
    }

    /// Adds the files that the values of assignments among these words name.
    fn assigned(&mut self, words: &[Word], context: &TextContext) -> Result<()> {
        for (_, value) in words.iter().filter_map(assignment) {
            self.word(&value, WordMeaning::default(), context)?;
            self.modules_in(&value, context)?;
        }
        Ok(())
    }

    /// Adds the modules of Python that a part of a word names: `--settings=proj.ci`,
    /// `-pdevtools.hooks`, or `-p devtools.hooks` as the value of a variable.
    fn modules_in(&mut self, word: &Word, context: &TextContext) -> Result<()> {
        for part in word.text.split(|c: char| c.is_whitespace() || "=,".contains(c)) {
            let is_option = part.starts_with('-') && !part.starts_with("--");
            let part = if is_option { part.get(2..).unwrap_or_default() } else { part };
            self.module(&word.with(part), 2, context)?;
        }
        Ok(())
    }

    /// Searches the command that `find` runs on the files that it finds. Returns words that stand
    /// for these files.
    pub(super) fn find(
        &mut self,
        words: &[Word],
        is_read: bool,
        context: &TextContext,
    ) -> Result<Vec<Word>> {
        let at = words.iter().position(|word| matches!(word.text.as_str(), "-name" | "-path"));
        let name = at.and_then(|at| words.get(at + 1)).map_or("*", |word| word.text.as_str());
        let tops = words.iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
        let found = tops
            .map(|top| Word::expanded(format!("{}/*{name}", top.text)).in_role(WordRole::Printed))
            .collect::<Vec<_>>();
        if let Some(at) = words.iter().position(|word| word.text.starts_with("-exec")) {
            let inner = words[at + 1..].iter();
            let inner = inner.take_while(|word| !matches!(word.text.as_str(), ";" | "+"));
            let mut inner: Vec<Word> = inner.cloned().collect();
            let place_of_files = inner.iter().position(|word| word.text == "{}");
            let at = place_of_files.unwrap_or(inner.len());
            inner.splice(at..(at + 1).min(inner.len()), found.iter().map(as_argument));
            let printed = self.command(&inner, is_read, context)?;
            if !printed.is_empty() {
                return Ok(printed);
            }
        }
        Ok(found)
    }
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

/// The file that a word of `git show` or `git ls-files` names.
fn file_of_git(word: &Word) -> Word {
    let (_, file) = word.text.split_once(':').unwrap_or(("", &word.text));
    Word { is_expanded: word.is_expanded || file.contains('*'), ..word.with(file) }
}
