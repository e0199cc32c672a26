//! Finds the files that commands run or compare, by the names in commands, recipes and scripts.
//!
//! The texts are not interpreted: a word counts wherever it stands. A variable may have each value
//! that a text gives to it. A path may begin at the root, at the directory of its script, or at any
//! directory that the text names. So a file may count although it never runs. In that case, an
//! honest change is judged once more, but no wrong change is verified.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::languages::{have_same_language, language_of};
use crate::ecosystems::looking::{collects_tests, compares, looks_only, reads_content};
use crate::ecosystems::paths::{
    below, directories_above, directory_of, file_name, inside, is_in_name, plain, resolved,
};
use crate::ecosystems::rust;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::model::pattern::matches;
use crate::model::shell::{
    MARK, SimpleCommand, Word, WordRole, commands_of, is_assignment, script_lines, simple_commands,
    without_substitutions, without_variables,
};

/// Programs that compare the files that their arguments name.
const COMPARERS: [&str; 3] = ["cmp", "diff", "git"];

/// Programs that copy or move files to their last argument.
const COPIERS: [&str; 5] = ["cp", "install", "ln", "mv", "rsync"];

/// Programs that run a file of the root that no word names.
const BY_DEFAULT: [(&str, &str); 8] = [
    ("cucumber-js", "cucumber.js"),
    ("doit", "dodo.py"),
    ("fab", "fabfile.py"),
    ("inv", "tasks.py"),
    ("invoke", "tasks.py"),
    ("jake", "Jakefile.js"),
    ("paver", "pavement.py"),
    ("testem", "testem.js"),
];

/// Words before the files that a file of recipes includes.
const INCLUDING: [&str; 5] = ["include", "-include", "sinclude", "import", "import?"];

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

/// The maximum number of words to which one word is expanded, and of directories at which a path
/// may begin.
const MOST_WORDS: usize = 100;

/// The maximum number of variables that are followed from one to another.
const MOST_LEVELS: usize = 4;

/// The maximum depth of substitutions in substitutions.
const MOST_DEPTH: usize = 50;

/// The maximum number of copies that are recorded.
const MOST_COPIES: usize = 1_000;

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

    /// Records the directories that these words of a command name, and the values that they give to
    /// variables.
    fn assignments(&mut self, words: &[Word], printed_inside: &[Vec<Word>], place: &Place) {
        for word in words {
            self.directory(word, place);
            let inside = (0..printed_inside.len()).find(|at| word.holds_substitution(*at));
            if let Some((variable, value)) = assignment(word) {
                let values = inside.map_or(vec![value], |at| printed_inside[at].clone());
                self.give(variable, values, place);
            }
            let defaults = word.text.match_indices('$').map(|(at, _)| &word.text[at..]);
            for (variable, value) in defaults.filter_map(default_in) {
                self.give(variable, [word.with(value)], place);
            }
        }
    }

    /// Records that a text gives a variable these values.
    fn give(&mut self, variable: &str, values: impl IntoIterator<Item = Word>, place: &Place) {
        let given =
            self.values.entry(variable.to_owned()).or_default().entry(place.at).or_default();
        for value in values.into_iter().map(|value| as_argument(&value)) {
            if given.len() < MOST_WORDS && !given.contains(&value) {
                given.push(value);
            }
        }
    }

    /// Records that paths in a text may begin at the directory that a word names.
    fn directory(&mut self, word: &Word, place: &Place) {
        let path = plain(word.text.rsplit(['=', '"']).next().unwrap_or_default());
        let path = path.strip_prefix("-C").or(path.strip_prefix("-I")).unwrap_or(path);
        for top in ["", &place.directory] {
            if let Some(directory) = resolved(top, path)
                && self.files.directories.contains(directory.as_str())
            {
                let all = self.directories.entry(place.at).or_default();
                if all.len() < MOST_WORDS {
                    all.insert(directory);
                }
            }
        }
    }

    /// The directories at which a path in a text may begin, the most likely one first.
    fn tops(&self, place: &Place) -> Vec<String> {
        let mut tops = vec![String::new()];
        let own = std::iter::once(&place.directory);
        for top in own.chain(self.directories.get(&place.at).into_iter().flatten()) {
            if !tops.contains(top) {
                tops.push(top.clone());
            }
        }
        tops
    }

    /// The words for which a word stands, with the values of its variables. If the word's own text
    /// gives values, these are used; otherwise, the values from other texts. `${f%.c}` removes the
    /// end `.c`.
    fn with_values(&self, word: &Word, place: &Place) -> Vec<Word> {
        let mut words = vec![word.clone()];
        // A value may use other variables.
        for _ in 0..MOST_LEVELS {
            let next = words.iter().flat_map(|word| self.with_first_values(word, place));
            let next: Vec<Word> = next.take(MOST_WORDS).collect();
            if next == words {
                break;
            }
            words = next;
        }
        words.iter_mut().for_each(|value| value.role = value.role.max(word.role));
        words
    }

    /// As [`Self::with_values`], for the variables of the word itself.
    fn with_first_values(&self, word: &Word, place: &Place) -> Vec<Word> {
        with_values(word, &|name| {
            let Some(all) = self.values.get(name) else { return Vec::new() };
            match all.get(&place.at) {
                Some(own) => own.clone(),
                None if self.texts[place.at].is_test => Vec::new(),
                None => all.values().flatten().take(MOST_WORDS).cloned().collect(),
            }
        })
    }

    /// The words for which these words stand.
    fn all_values(&self, words: &[Word], place: &Place) -> Vec<Word> {
        words.iter().flat_map(|word| self.with_values(word, place)).collect()
    }

    /// Searches a command. Returns the words that name the files whose content the command may
    /// print.
    fn command(&mut self, words: &[Word], is_read: bool, place: &Place) -> Result<Vec<Word>> {
        let (prefixes, words) = words.split_at(words.len() - without_prefixes(words).len());
        let Some((program, rest)) = words.split_first() else { return Ok(Vec::new()) };
        if !is_read {
            // The program may run the files in the values of its variables: `BASH_ENV=F sh`.
            self.assigned(prefixes, place)?;
        }
        if looks_only(&program.text, "") {
            return self.plain_command(words, is_read, place);
        }
        let mut printed = Vec::new();
        for program in self.with_values(program, place) {
            let parts = program.text.split_whitespace().map(|part| program.with(part));
            let words: Vec<Word> = parts.chain(rest.iter().cloned()).collect();
            printed.extend(self.plain_command(&words, is_read, place)?);
        }
        Ok(printed)
    }

    /// As [`Self::command`], without the values of the variable that names the program: a value may
    /// use the same variable (`r="env $r"`).
    fn plain_command(&mut self, words: &[Word], is_read: bool, place: &Place) -> Result<Vec<Word>> {
        let words = without_prefixes(words);
        let Some((program, rest)) = words.split_first() else { return Ok(Vec::new()) };
        match program.text.as_str() {
            // The operands are texts, which may be the content of files.
            "case" | "[" | "[[" | "test" | "uniq" => {
                let content: Vec<Word> =
                    rest.iter().flat_map(|word| self.contents(word, place)).collect();
                self.compared(&content, place);
                if program.text == "uniq" {
                    return self.program(words, is_read, place);
                }
            }
            "cd" | "pushd" => {
                for word in rest {
                    let entered = self.possible(word, place).into_iter();
                    let entered =
                        entered.filter(|path| self.files.directories.contains(path.as_str()));
                    let entered: Vec<String> = entered.collect();
                    self.entered.entry(place.at).or_default().extend(entered);
                }
            }
            "for" | "read" => {
                if let Some((variable, values)) = rest.split_first() {
                    let values = values.iter().skip_while(|word| word.text == "in");
                    let values = values.flat_map(|word| self.with_values(word, place));
                    let values: Vec<Word> = match program.text.as_str() {
                        "read" => values.map(|word| content_of(&word)).collect(),
                        _ => values.collect(),
                    };
                    self.give(&variable.text, values, place);
                }
            }
            "find" => return self.find(rest, is_read, place),
            name if INCLUDING.contains(&name) => self.included(name, rest, place)?,
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

    /// Searches a command whose program may run the files that its words name. Returns the words
    /// that name the files whose content the command may print.
    fn program(&mut self, words: &[Word], is_read: bool, place: &Place) -> Result<Vec<Word>> {
        self.program_with_files_of_its_own(words, is_read, place)?;
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
            if let Some((_, file)) = BY_DEFAULT.iter().find(|(program, _)| *program == name) {
                self.at(file, Part { is_program: true, ..Part::default() }, place)?;
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
                self.module(&word.with(module), 1, place)?;
            }
            // `-rall` loads a file from a directory that `-I` names.
            if let Some(module) = name.strip_prefix("-r").or(name.strip_prefix("-M"))
                && !module.is_empty()
            {
                let module = Word::plain(module.replace("::", "/"));
                self.name(&module, Part { is_whole: true, ..Part::default() }, place)?;
            }
            part.is_program = at == 0 && name.contains('/')
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

    /// Searches the files that `export`, `run-parts` or `cargo` uses without naming them one by one.
    fn program_with_files_of_its_own(
        &mut self,
        words: &[Word],
        is_read: bool,
        place: &Place,
    ) -> Result<()> {
        match file_name(&words[0].text) {
            "export" => {
                for variable in &words[1..] {
                    let variable = Word::expanded(format!("${}", variable.text));
                    for value in self.with_values(&variable, place) {
                        self.word(&value, Part::default(), place)?;
                    }
                }
            }
            "run-parts" if !is_read => {
                for word in words[1..].iter().filter(|word| !word.text.starts_with('-')) {
                    let text = format!("{}/*", word.text);
                    let every = Part { is_program: true, is_whole: true, ..Part::default() };
                    self.word(&Word::expanded(text), every, place)?;
                }
            }
            "cargo" if !is_read => self.programs_of_cargo(&words[1..], place)?,
            _ => {}
        }
        Ok(())
    }

    /// Adds the programs that `cargo run` starts. Its words, or those of an alias, name packages,
    /// their manifests or programs. The root's main program is not added: it is the product.
    fn programs_of_cargo(&mut self, words: &[Word], place: &Place) -> Result<()> {
        let given: Vec<String> =
            self.all_values(words, place).into_iter().map(|word| word.text).collect();
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
                    self.file(&program, false, place)?;
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
        place: &Place,
    ) -> Result<Option<Vec<Word>>> {
        let name = if program.text == "${MAKE}" { "make" } else { program.text.as_str() };
        if COMPARERS.contains(&file_name(name)) {
            // A setting of git may name a program: `git -c diff.external=F diff`.
            let settings = rest.windows(2).filter(|pair| pair[0].text == "-c");
            let set: Vec<Word> = settings.map(|pair| pair[1].clone()).collect();
            self.assigned(&set, place)?;
            let operands = match file_name(name) {
                "git" => rest.splitn(2, |word| word.text == "diff").nth(1),
                _ => Some(rest),
            };
            self.compared(operands.unwrap_or_default(), place);
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
            self.assigned(rest, place)?;
            self.run_recipes(tool, rest, place)?;
        } else if looks_only(name, next) && self.existing(program, place).is_empty() {
            self.settings(rest, place)?;
            self.compared_by(name, rest, place);
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

    /// Adds the recipes that these words of a runner name, and the files of recipes. The files may
    /// be in the root, or in a directory that a word names (`make -C D`). A word may also name a
    /// file (`make -f F`).
    fn run_recipes(
        &mut self,
        tool: &'static Ecosystem,
        rest: &[Word],
        place: &Place,
    ) -> Result<()> {
        let runner = tool.recipe_runners[0];
        let words = self.all_values(rest, place);
        for (at, word) in words.iter().enumerate() {
            self.recipes.insert((runner, word.text.clone()));
            let is_file =
                at > 0 && ["-f", "--file", "--makefile"].contains(&words[at - 1].text.as_str());
            let joined = word.text.strip_prefix("--file=").or(word.text.strip_prefix("-f"));
            // npm passes these options on to the script.
            if runner != "npm" && (is_file || joined.is_some()) {
                for path in self.existing(&word.with(joined.unwrap_or(&word.text)), place) {
                    self.found.run.insert(path.clone());
                    self.recipe_file(tool, &path)?;
                }
            }
        }
        for top in self.tops(place) {
            let file = tool.recipe_files.iter().map(|name| inside(&top, name));
            if let Some(file) = file.clone().find(|file| self.files.has(file)) {
                if !top.is_empty() && runner != "npm" {
                    self.found.run.insert(file.clone());
                }
                self.recipe_file(tool, &file)?;
            }
        }
        Ok(())
    }

    /// Adds the text of a file of recipes.
    fn recipe_file(&mut self, tool: &'static Ecosystem, path: &str) -> Result<()> {
        let runner = tool.recipe_runners[0];
        if !self.read.insert(path.to_owned()) {
            return Ok(());
        }
        let Some(text) = (self.files.text)(path)? else { return Ok(()) };
        // A recipe that does not run uses its variables all the same.
        self.used.extend(variables_in(&text));
        let mut lines = Vec::new();
        // A runner that gets no name runs the first recipe. npm runs none.
        let mut is_first = runner != "npm";
        for recipe in (tool.recipes)(&text) {
            let is_plain = !recipe.name.is_empty() && !recipe.name.starts_with('.');
            let counts = !is_plain || recipe.name.contains(['$', '%']) || is_first;
            is_first &= !is_plain;
            let name = if counts { None } else { Some((runner, recipe.name)) };
            let needs = [runner.to_owned()].into_iter().chain(recipe.needs);
            let needs = needs.collect::<Vec<_>>().join(" ");
            let texts = recipe.lines.into_iter().chain([needs]);
            lines.extend(texts.flat_map(|text| lines_of(&text, &name)));
        }
        // make runs in the root, or in the directory that an option names.
        let directory = directory_of(path).to_owned();
        self.texts.push(Rc::new(Text { lines, directory, ..Text::default() }));
        Ok(())
    }

    /// Adds the files that a file of recipes includes. Also adds the files from which make can make
    /// them: a built-in rule writes `x` from `x.sh`. Missing files count.
    fn included(&mut self, word: &str, files: &[Word], place: &Place) -> Result<()> {
        let runner = if word.starts_with("import") { "just" } else { "make" };
        let Some(tool) = ALL.iter().find(|one| one.recipe_runners.contains(&runner)) else {
            return Ok(());
        };
        for file in self.all_values(files, place) {
            for path in self.possible(&file, place) {
                let matching: Vec<&str> = match path.contains('*') {
                    true => {
                        self.files.paths.iter().copied().filter(|p| matches(&path, p)).collect()
                    }
                    false => vec![&path],
                };
                for path in matching {
                    self.recipe_file(tool, path)?;
                }
                self.found.run.extend([format!("{path}.sh"), path]);
            }
        }
        Ok(())
    }

    /// Adds the files that a word of a command names.
    fn word(&mut self, word: &Word, part: Part, place: &Place) -> Result<()> {
        let values = self.with_values(word, place);
        if values != [word.clone()] {
            for value in &values {
                // A value that uses its own variable is not expanded again.
                for text in value.text.split_whitespace() {
                    let is_program = part.is_program && text.contains('/');
                    self.plain_word(&value.with(text), Part { is_program, ..part }, place)?;
                }
            }
            return Ok(());
        }
        self.plain_word(word, part, place)
    }

    /// As [`Self::word`], without the values of variables.
    fn plain_word(&mut self, word: &Word, part: Part, place: &Place) -> Result<()> {
        let text = word.text.as_str();
        if part.by_shell && text.contains(char::is_whitespace) {
            for line in script_lines(text) {
                self.line(&line, false, place)?;
            }
            return Ok(());
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
                let part = Part { by_shell: part.by_shell, ..Part::default() };
                self.name(&word.with(piece), part, place)?;
            }
        }
        Ok(())
    }

    /// Adds the files that a name may mean. If there is none, adds the missing files that it may
    /// mean.
    fn name(&mut self, word: &Word, part: Part, place: &Place) -> Result<()> {
        let mut missing = Vec::new();
        let mut is_there = false;
        let possible = self.possible(word, place);
        for path in &possible {
            if path.contains('*') {
                if part.is_whole && (is_run_by_name(path) || part.is_program) {
                    self.like(path, part, place)?;
                    missing.push(path.clone());
                }
            } else if self.at(path, part, place)? {
                is_there = true;
            } else if part.takes_missing {
                missing.push(path.clone());
            }
        }
        if !is_there {
            for path in &possible {
                is_there |= self.copy(path, part, place)?;
            }
        }
        missing.retain(|path| {
            let is_wanted = place.may_fail
                || place.optional.as_ref().is_none_or(|files| files.contains(plain(&word.text)));
            // A pattern in a test may stand for the code under test.
            let counts = match path.contains('*') {
                true => place.optional.is_none(),
                false => is_wanted && !is_there,
            };
            counts && !is_test_path(path)
        });
        self.found.run.extend(missing);
        Ok(())
    }

    /// Adds the files that match a pattern. If a test matches, only the interpreter in its first
    /// line counts, because the files that the test runs may be the code under test.
    fn like(&mut self, pattern: &str, part: Part, place: &Place) -> Result<()> {
        let matching: Vec<&str> =
            self.files.paths.iter().copied().filter(|path| matches(pattern, path)).collect();
        for path in matching.into_iter().take(MOST_WORDS) {
            if is_test_path(path) {
                let text = (self.files.text)(path)?.unwrap_or_default();
                self.interpreter(&text, place)?;
            } else if part.is_program || may_be_shell(path) {
                self.file(path, part.by_shell, place)?;
            }
        }
        Ok(())
    }

    /// Searches the first line of an executed file, which is a command:
    /// `#!/usr/bin/env -S python3 F`. Returns true if it names a shell, and `None` if there is no
    /// such line.
    fn interpreter(&mut self, text: &str, place: &Place) -> Result<Option<bool>> {
        let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
        let words = first.unwrap_or_default().split_whitespace();
        for word in words.skip_while(|word| word.starts_with('/')) {
            let word = Word::plain(word);
            let part = Part { is_program: word.text.contains('/'), ..Part::default() };
            self.word(&word, part, place)?;
        }
        Ok(first.map(|first| first.trim_end().ends_with("sh")))
    }

    /// Adds the file of which a copy is at this path. If no copy is known, leaves out the first
    /// directories of the path: `out/verify/all.js` may be a copy of `verify/all.js`. Returns true
    /// if it found a file.
    fn copy(&mut self, path: &str, part: Part, place: &Place) -> Result<bool> {
        let mut is_copy = false;
        for (original, _) in self.originals(path) {
            if !original.contains('*') {
                is_copy |= self.at(&original, part, place)?;
            } else if is_run_by_name(&original)
                && place.optional.is_none()
                && self.files.paths.iter().any(|path| matches(&original, path))
            {
                self.like(&original, part, place)?;
                self.found.run.insert(original);
            }
        }
        for (at, _) in path.match_indices('/') {
            if is_copy || path.contains('*') {
                break;
            }
            is_copy = self.at(&path[at + 1..], part, place)?;
        }
        Ok(is_copy)
    }

    /// Adds the file at a path, or the main files of the directory there. Returns true if the path
    /// exists.
    fn at(&mut self, path: &str, part: Part, place: &Place) -> Result<bool> {
        if self.files.has(path) || self.files.has_by_link(path)? {
            if part.is_program || is_run_by_name(path) {
                self.file(path, part.by_shell, place)?;
            }
        } else if path.is_empty() || self.files.directories.contains(path) {
            if part.is_whole {
                self.main_files(path, place)?;
            }
        } else {
            return Ok(
                (part.is_whole || path.contains('/')) && self.without_extension(path, place)?
            );
        }
        Ok(true)
    }

    /// Adds the source files whose path without extension is `path`. Returns true if there are any.
    fn without_extension(&mut self, path: &str, place: &Place) -> Result<bool> {
        let files = self.files.by_stem.get(file_name(path)).into_iter().flatten().copied();
        let files: Vec<&str> =
            files.filter(|file| directory_of(file) == directory_of(path)).collect();
        for file in &files {
            self.file(file, false, place)?;
        }
        Ok(!files.is_empty())
    }

    /// Adds the main files of a directory: they run if a command names the directory.
    fn main_files(&mut self, directory: &str, place: &Place) -> Result<()> {
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
                    self.name(&word, Part { takes_missing: true, ..Part::default() }, place)?;
                    self.found.run.insert((*path).to_owned());
                }
            } else if name == "__main__.py" || is_index {
                self.file(path, false, place)?;
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
    fn module(&mut self, word: &Word, least: usize, place: &Place) -> Result<bool> {
        let mut is_there = false;
        for value in self.with_values(word, place) {
            let parts: Vec<&str> = value.text.split(['.', ':']).collect();
            if parts.iter().any(|part| part.is_empty() || !part.chars().all(is_in_name)) {
                continue;
            }
            for count in (least..=parts.len()).rev() {
                let path = parts[..count].join("/");
                let names = [format!("{path}.py"), format!("{path}/__main__.py")];
                let names = names.map(Word::plain);
                let found: Vec<String> =
                    names.iter().flat_map(|name| self.existing(name, place)).collect();
                for path in &found {
                    self.file(path, false, place)?;
                }
                is_there |= !found.is_empty();
                if is_there {
                    break;
                }
            }
        }
        Ok(is_there)
    }

    /// Adds the files that the values of assignments among these words name.
    fn assigned(&mut self, words: &[Word], place: &Place) -> Result<()> {
        for (_, value) in words.iter().filter_map(assignment) {
            self.word(&value, Part::default(), place)?;
        }
        Ok(())
    }

    /// Adds the files that options of a program name, e.g. its settings: `--config FILE`,
    /// `--plugin=FILE`.
    fn settings(&mut self, words: &[Word], place: &Place) -> Result<()> {
        for (at, word) in words.iter().enumerate() {
            let is_value = at > 0 && RUNNING.contains(&words[at - 1].text.trim_start_matches('-'));
            if is_value || word.text.starts_with("--") && word.text.contains('=') {
                self.word(word, Part::default(), place)?;
            }
        }
        Ok(())
    }

    /// Adds a file, and its text if it is a shell script.
    fn file(&mut self, path: &str, by_shell: bool, place: &Place) -> Result<()> {
        let is_test = is_test_path(path);
        let is_under_test = place.optional.is_some() && !is_test;
        if is_under_test {
            return Ok(());
        }
        if !is_test || place.is_command {
            self.found.run.insert(path.to_owned());
        }
        if !self.read.insert(path.to_owned()) {
            return Ok(());
        }
        let text = (self.files.text)(path)?.unwrap_or_default();
        let is_shell = self.interpreter(&text, place)?.unwrap_or_else(|| may_be_shell(path));
        if by_shell || is_shell {
            let lines = lines_of(&text, &None);
            let directory = directory_of(path).to_owned();
            self.texts.push(Rc::new(Text { lines, directory, is_test, ..Text::default() }));
        }
        Ok(())
    }

    /// Searches the texts that a command writes to a file. If the file may be a shell script, the
    /// texts are commands. Otherwise a text of several lines is data, in which a path still names a
    /// file. The files that `words` name count as copied to the output.
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

    /// Records that files are copied or written to a place. A relative link begins at its own
    /// directory.
    fn copied(&mut self, from: &[Word], to: &Word, place: &Place) {
        let mut from = self.all_values(from, place);
        from.retain(|word| !word.text.starts_with('-'));
        // The name of the copy is unknown: `out/$(basename $f)`.
        let to = if to.text.contains(MARK) { &to.with(directory_of(&to.text)) } else { to };
        let places = self.with_values(to, place).into_iter();
        for to in places.flat_map(|to| self.possible(&to, place)).collect::<Vec<_>>() {
            for word in &from {
                let links = [to.as_str(), directory_of(&to)].map(|top| resolved(top, &word.text));
                let mut originals = self.possible(word, place);
                if word.text.starts_with("../") {
                    originals.extend(links.into_iter().flatten());
                }
                for from in originals {
                    if self.copies.len() < MOST_COPIES && from != to {
                        self.copies.insert((to.clone(), from, word.role));
                    }
                }
            }
        }
    }

    /// The paths and patterns of the files of which a copy may be at this path, which may be a
    /// pattern, too. The roles are those of the copies.
    fn originals(&self, path: &str) -> Vec<(String, WordRole)> {
        let mut found = Vec::new();
        for (to, from, role) in &self.copies {
            let is_pattern = to.contains('*') || from.contains('*');
            let top = if to.contains('*') { directory_of(to) } else { to };
            let directory = if is_pattern { directory_of(from) } else { from };
            let rest = if path == top { Some("") } else { below(path, top) };
            let Some(rest) = rest else { continue };
            if is_pattern && (path == to || path.contains('*') || matches(to, path)) {
                found.push((from.clone(), *role));
            }
            let inner = rest.strip_prefix(file_name(from)).map(|rest| format!("{from}{rest}"));
            let same = format!("{directory}/{rest}").trim_matches('/').to_owned();
            let others = inner.into_iter().chain([same]).filter(|original| original != path);
            found.extend(others.map(|original| (original, *role)));
        }
        found
    }

    /// Searches the command that `find` runs on the files that it finds. Returns words that stand
    /// for these files.
    fn find(&mut self, words: &[Word], is_read: bool, place: &Place) -> Result<Vec<Word>> {
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
            let printed = self.command(&inner, is_read, place)?;
            if !printed.is_empty() {
                return Ok(printed);
            }
        }
        Ok(found)
    }

    /// Adds the files that a program compares which otherwise only looks at files. `grep -f F G`
    /// compares two files, and `grep "$(cat F)" G` a file with a text.
    fn compared_by(&mut self, program: &str, words: &[Word], place: &Place) {
        if compares(program, words) {
            return self.compared(words, place);
        }
        let is_content = |word: &Word| word.role == WordRole::Content;
        let has_text = words.iter().any(|word| word.text.contains(MARK))
            || words.iter().any(|word| !is_content(word) && !self.contents(word, place).is_empty());
        if file_name(program).ends_with("grep") && has_text {
            let content: Vec<Word> =
                words.iter().flat_map(|word| self.contents(word, place)).collect();
            self.compared(&content, place);
        }
    }

    /// The words for the content of files: the word itself, or those of its variables, which may
    /// stand beside other text (`"x$want"`).
    fn contents(&self, word: &Word, place: &Place) -> Vec<Word> {
        let variables = variables_in(&word.text).map(|name| Word::expanded(format!("${name}")));
        let mut found: Vec<Word> =
            variables.flat_map(|variable| self.with_values(&variable, place)).collect();
        found.push(word.clone());
        found.retain(|value| value.role == WordRole::Content);
        found
    }

    /// Adds the files that a command compares. A copy stands for its original. A file that is
    /// compared with a text that was made from the file itself is left out: such a check asks
    /// whether a tool would change the file.
    fn compared(&mut self, words: &[Word], place: &Place) {
        let mut named = BTreeSet::new();
        let mut made = BTreeSet::new();
        for word in words {
            let is_input = |role| place.inputs.contains(&word.in_role(role));
            let is_left_out = match word.role {
                WordRole::Name => is_input(WordRole::Name),
                WordRole::Printed => is_input(WordRole::Name) || is_input(WordRole::Content),
                WordRole::Content => false,
            };
            if is_left_out || word.text.starts_with('-') {
                continue;
            }
            for value in self.with_values(word, place).into_iter().chain(self.contents(word, place))
            {
                let is_made = value.role == WordRole::Content;
                let paths = if is_made { &mut made } else { &mut named };
                paths.extend(self.possible(&value, place));
            }
        }
        let mut originals = BTreeSet::new();
        let mut copies: Vec<String> = named.union(&made).cloned().collect();
        for _ in 0..MOST_LEVELS {
            let next: Vec<_> = copies.iter().flat_map(|path| self.originals(path)).collect();
            copies.clear();
            for (path, role) in next.into_iter().filter(|(_, role)| *role != WordRole::Printed) {
                let paths = if role == WordRole::Content { &mut made } else { &mut originals };
                if paths.insert(path.clone()) {
                    copies.push(path);
                }
            }
        }
        self.found.compared.extend(originals);
        self.found.compared.extend(named.symmetric_difference(&made).cloned());
    }

    /// The paths that a word may mean; the empty path is the root. An unknown beginning, as in
    /// `$DIR/lib.sh`, stands for any directory.
    fn possible(&self, word: &Word, place: &Place) -> Vec<String> {
        let (forms, is_anywhere) = forms_of(word);
        let mut found = Vec::new();
        let mut tops = self.tops(place);
        if forms.iter().any(|form| form == "." || form == "*") {
            tops.truncate(1);
            tops.extend(self.entered.get(&place.at).into_iter().flatten().cloned());
        }
        for form in &forms {
            for top in &tops {
                let is_inside = top.is_empty() || below(form, top).is_none();
                let path = resolved(top, form).filter(|path| is_inside || self.files.has(path));
                found.extend(path.filter(|path| !found.contains(path)));
            }
            let end = format!("/{}", form.trim_start_matches("../"));
            let named = self.files.by_name.get(file_name(form)).into_iter().flatten();
            for path in named.filter(|path| is_anywhere && path.ends_with(&end)) {
                if !found.iter().any(|other| other == path) {
                    found.push((*path).to_owned());
                }
            }
        }
        found
    }

    /// The files of the tree that a word may mean.
    fn existing(&self, word: &Word, place: &Place) -> Vec<String> {
        let mut found = self.possible(word, place);
        found.retain(|path| self.files.has(path));
        found
    }
}

/// The names of the variables that a text uses.
fn variables_in(text: &str) -> impl Iterator<Item = String> {
    text.split('$').skip(1).filter_map(|after| {
        let after = after.trim_start_matches(['{', '(']);
        let end = after.find(|c| !is_in_name(c)).unwrap_or(after.len());
        (end > 0).then(|| after[..end].to_owned())
    })
}

/// A word that a program printed, as an argument of another one.
fn as_argument(word: &Word) -> Word {
    if word.role == WordRole::Printed { word.in_role(WordRole::Name) } else { word.clone() }
}

/// The content of the file that an argument names.
fn content_of(word: &Word) -> Word {
    if word.role == WordRole::Name { word.in_role(WordRole::Content) } else { word.clone() }
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

/// The variable and the value of a word such as `CC=gcc`.
pub fn assignment(word: &Word) -> Option<(&str, Word)> {
    let (variable, value) = word.text.split_once('=')?;
    Some((variable, word.with(value)))
}

/// The name of the variable that a word consists of: `f` for `$f`, `./$f` and `${f}`.
fn variable_of(word: &Word) -> &str {
    word.text.trim_start_matches("./").trim_start_matches(['$', '{']).trim_end_matches('}')
}

/// The file that a word of `git show` or `git ls-files` names.
fn file_of_git(word: &Word) -> Word {
    let (_, file) = word.text.split_once(':').unwrap_or(("", &word.text));
    Word { is_expanded: word.is_expanded || file.contains('*'), ..word.with(file) }
}

/// The name and the default of the variable with which a text begins, if it has a default:
/// `${X:-F}`, `${X:=F}`.
fn default_in(text: &str) -> Option<(&str, &str)> {
    let (inner, _) = text.strip_prefix("${")?.split_once('}')?;
    let (name, value) = inner.split_at(inner.find(|c| !is_in_name(c))?);
    let value = value.strip_prefix(':').unwrap_or(value);
    let value = value.strip_prefix(['-', '=', '+'])?;
    (!value.is_empty()).then_some((name, value))
}

/// The paths that a word may mean, relative to the directories at which they may begin. The flag is
/// true if the word begins with an unknown variable, which stands for any directory. The value of
/// the variable may end with a slash (`${R}lib/F`).
fn forms_of(word: &Word) -> (Vec<String>, bool) {
    let text = plain(word.text.trim_start_matches('/')).trim_start_matches('/');
    if !word.is_expanded {
        return (if text.is_empty() { Vec::new() } else { vec![text.to_owned()] }, false);
    }
    let unknown = without_variables(text, '$');
    let (first, rest) = unknown.split_once('/').unwrap_or((&unknown, ""));
    // All files of an unknown directory (`$D/*`) may be any files, so they are left out.
    if first.contains('$') && !rest.is_empty() && rest != "*" && !rest.contains('$') {
        let with_slash = if first == "$" { None } else { unknown.strip_prefix('$') };
        return ([Some(rest), with_slash].into_iter().flatten().map(str::to_owned).collect(), true);
    }
    // A name with unknown variables stands for all files that match it. Its directory and its
    // language must be known.
    let pattern = as_pattern(text);
    let is_vague = directory_of(&pattern).contains('*') || language_of(&pattern).is_none();
    // In a text, `[NAME...]` is no pattern of names. As a pattern it would stand for one character.
    let is_bracket = pattern.chars().all(|c| c == '*') && text.contains('[');
    let is_unknown = first.contains('$') || is_bracket || text.contains('$') && is_vague;
    (if is_unknown { Vec::new() } else { vec![pattern] }, false)
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

/// The words for which a word stands, with the known values of its variables. `${f%.c}` takes an
/// end off.
pub fn with_values(word: &Word, values_of: &dyn Fn(&str) -> Vec<Word>) -> Vec<Word> {
    if !word.is_expanded {
        return vec![word.clone()];
    }
    let values = values_of(variable_of(word));
    if !values.is_empty() {
        return values;
    }
    for (at, _) in word.text.match_indices('$') {
        let after = &word.text[at + 1..];
        let name = after.trim_start_matches('{');
        let name = &name[..name.find(|c| !is_in_name(c)).unwrap_or(name.len())];
        let mut values = values_of(name);
        if let Some((_, value)) = default_in(&word.text[at..]) {
            values.push(Word::expanded(value));
        }
        if values.is_empty() {
            continue;
        }
        let end = if after.starts_with('{') { after.find('}').map(|end| end + 1) } else { None };
        let (inner, rest) = after.split_at(end.unwrap_or(name.len()));
        let ending = inner.split_once('%').map_or("", |(_, end)| end.trim_matches(['%', '}']));
        let parts = values.iter().flat_map(|value| value.text.split_whitespace());
        let rest = with_values(&Word::expanded(rest), values_of);
        let texts = parts.flat_map(|part| {
            let part = part.strip_suffix(ending).unwrap_or(part);
            let text = format!("{}{part}", &word.text[..at]);
            rest.iter().map(move |rest| format!("{text}{}", rest.text))
        });
        return texts.map(Word::expanded).take(MOST_WORDS).collect();
    }
    vec![word.clone()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ecosystems::touched::is_named;

    /// The files of a project that a command runs.
    fn of(files: &[(&str, &str)], command: &str) -> Vec<String> {
        named(files, command).run.into_iter().collect()
    }

    /// The files of a project that a command runs or compares.
    fn named(files: &[(&str, &str)], command: &str) -> NamedFiles {
        let text = |path: &str| {
            let file = files.iter().find(|(name, _)| *name == path);
            Ok(file.map(|(_, text)| (*text).to_owned()))
        };
        let tree = TreeFiles::of(files.iter().map(|(path, _)| (*path, false)), &text);
        named_files(&tree, &[command.to_owned()]).expect("nothing fails to be read")
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
            ("tasks.py", ""),
            ("x/Cargo.toml", "[package]\nname = 'calc-verify'\n"),
            ("src/bin/ci.rs", ""),
            ("v/ci.rs", ""),
            ("Cargo.toml", "[package]\nname = 'calc'\n[[bin]]\nname = 'check'\npath = 'v/ci.rs'\n"),
            (".cargo/config.toml", "[alias]\nverify = 'run -p calc-verify'\n"),
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
            ("cargo run -q --bin ci -- all", &["src/bin/ci.rs"]),
            ("cargo run --bin=check", &["v/ci.rs"]),
            ("cargo +nightly r -pcalc-verify", &["x/src/main.rs"]),
            ("cargo run --manifest-path ./x/Cargo.toml", &["x/src/main.rs"]),
            ("cargo verify -- all", &["x/src/main.rs"]),
            ("cargo run", none),
            ("uv run inv test", &["tasks.py"]),
            ("cargo run -p calc", &["v/ci.rs"]),
            ("cargo build --bin ci", none),
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
            // The program before the file only looks at it.
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
            // Copies by a pattern or in a loop, relative links, and joined files.
            ("cp v/*.js out; node out/all.js", js),
            ("cp v/*.js out; for f in out/*.js; do node $f; done", &["out/*.js", "v/*.js"]),
            (
                "cp -r v/js out; for f in out/*.js; do node $f; done",
                &["out/*.js", "v/js/*.js", "v/js/out/*.js"],
            ),
            ("for f in v/*.js; do cp $f out/; done; node out/all.js", js),
            ("ln -s ../v/all.js out/t.js; node out/t.js", js),
            ("cd out && ln -s ../v/all.js t.js; node t.js", js),
            ("cat v/*.js >t.js; node t.js", &["v/*.js"]),
            ("for f in v/*.js; do cat $f >>t.js; done; node t.js", &["v/*.js"]),
            ("for f in v/*.js; do cat $f; done >t.js; node t.js", &["v/*.js"]),
            ("(echo 1; cat v/all.js) >t.js; node t.js", js),
            ("{ echo 1; cat v/all.js; } >t.js && node t.js", js),
            ("(echo 1; cat v/all.js) | node", js),
            ("cat src/*.c >t.c; cc t.c; node v/all.js", js),
            ("cp src/*.js dist; node v/all.js", js),
            ("find v -name '*.js' -exec cp {} out \\;; node out/all.js", js),
            ("for f in $(ls v/*.js); do cp $f out/$(basename $f); done; node out/all.js", js),
            ("cat src/index.js > dist/all.js", none),
            ("new-program v/js/data.json", none),
            // The text of a here document is commands if a shell may read it, else data that names
            // paths.
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
            ("while read -r l; do eval \"$l\"; done <v/all.js", js),
            ("cd v/js && node .", &["package.json", "v/all.js", "v/all.py", "v/js/index.js"]),
            ("go test -exec v/all.js ./...", js),
            ("node .//v/all.js", js),
            ("new-program $DIR/* && . $DIR/*", none),
            // A command that puts another one before itself.
            ("r='node v/all.js'; r=\"env $r\"; $r", js),
            ("r=\"nice $r\"; X=v/all.js $r", js),
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
            ("t:\n\t@X=1 node v/all.js\n", js),
            ("I = /usr/bin/install\nP = $(I)\nt:\n\t$(P) v/all.js out/\n", &[]),
            ("t: out/all.js\n\tnode $<\nout/%.js: v/%.js\n\tcp $< $@\n", js),
            ("t: out/all\n\t./out/all\nout/all: v/all.js\n\tsed s/a/b/ $< >$@\n", js),
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
            let mut found = named(&files, "make t").run;
            // Patterns stand for the files that they match.
            found = files
                .iter()
                .map(|(path, _)| (*path).to_owned())
                .filter(|path| is_named(path, &found))
                .collect();
            if !expected.contains(&"x.mk") {
                found.remove("x.mk");
            }
            let found: Vec<&String> = found.iter().collect();
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
        let cases: [(&str, &[&str]); 52] = [
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
            ("x=$(cat a.py); gate check-$x", &["check-a.py"]),
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
        let cases: [(&str, &[&str]); 47] = [
            ("make test", &["out", "d/a.html"]),
            ("cd tests && sh all.sh", &["d/*.js", "tests/d/*.js"]),
            ("cd d && cmp a.html ../b.html", &["a.html", "d/a.html", "b.html"]),
            ("git diff --no-index a.html d", &["a.html", "d", "d/a.html", "d/d"]),
            ("git add d/a.html", &[]),
            // A formatter check compares a file with its own formatted text.
            ("for f in *.c; do clang-format $f | diff - $f; done", &[]),
            ("fmt a.c > out; diff out a.c", &["out"]),
            ("sed s/x/y/ d/a.html | diff - d/a.html", &[]),
            ("for f in *.c; do tr -d x <$f >$f.x; diff $f.x $f; done", &["*.c.x"]),
            ("cat src/a.scss | sass --stdin | diff - d/a.html", &["d/a.html"]),
            ("sass src/a.scss >a.html; diff a.html d/a.html", &["a.html", "d/a.html"]),
            ("test -z \"$(gofmt -l src/a.go)\"", &[]),
            ("test \"$(ls src/*.py | wc -l)\" = 3", &[]),
            ("test -z \"$(find src -name '*.py' | sort)\"", &[]),
            ("if grep -q x src/a.py; then exit 1; fi", &[]),
            ("head -1 src/a.py | grep -q python", &[]),
            ("cat src/*.js | terser >app.js", &[]),
            ("cat src/*.js >app.js", &[]),
            ("VERSION=$(sed -n 1p src/a.py); echo $VERSION", &[]),
            // Texts that are made from expected output are compared.
            ("cat d/a.html | diff - b", &["b", "d/a.html"]),
            ("diff b - <d/a.html", &["b", "d/a.html"]),
            ("sort <d/a.html | head -5 | cmp b", &["b", "d/a.html"]),
            ("diff a.html b | head; wc -l <a.html | tail -1", &["a.html", "b"]),
            ("cp d/a.html b; ./fix b; diff b d/a.html", &["b", "d/a.html"]),
            ("test -z \"$(prettier d/a.html | diff - b)\"", &["b", "d/a.html"]),
            ("sed s/x/y/ a.c >b; diff b a.c", &["b"]),
            ("diff b d/a.html | head; cat d/a.html | head", &["b", "d/a.html"]),
            ("cp d/a.html want; diff b want", &["b", "d/a.html", "want"]),
            ("cp d/a.html c; cp c want; cmp b want", &["b", "c", "d/a.html", "want"]),
            ("tr -d x <d/a.html >want; tr -d x <b | diff - want", &["b", "d/a.html", "want"]),
            ("comm -3 d/a.html b", &["b", "d/a.html"]),
            ("sort d/a.html b | uniq -u", &["b", "d/a.html"]),
            ("grep -qxFf d/a.html b", &["b", "d/a.html"]),
            ("grep -qF \"$(cat d/a.html)\" b", &["d/a.html"]),
            ("x=$(cat d/a.html); grep -qF \"$x\" b", &["d/a.html"]),
            ("[ \"$(cat d/a.html)\" = \"$(./gen)\" ]", &["d/a.html"]),
            ("x=$(cat d/a.html); [ \"$(./gen)\" = \"$x\" ]", &["d/a.html"]),
            ("x=$(cat d/a.html); [ \"y$(./gen)\" = \"y$x\" ]", &["d/a.html"]),
            ("read x <d/a.html; test \"$x\" = y", &["d/a.html"]),
            ("test \"`sha256sum <d/a.html`\" = \"`sha256sum <b`\"", &["b", "d/a.html"]),
            ("test \"$(git hash-object d/a.html)\" = \"$(git hash-object b)\"", &["b", "d/a.html"]),
            ("sha256sum -c d/a.html", &["d/a.html"]),
            ("for f in d/*.html; do cat $f | diff - b; done", &["b", "d/*.html"]),
            ("find d -name '*.html' -exec cat {} + | diff - b", &["b", "d/**.html", "d/b"]),
            ("cat d/a.html", &[]),
            ("if ! diff -q a b >/dev/null; then exit 1; fi", &["a", "b"]),
            ("sh d/a.html", &[]),
        ];
        for (command, expected) in cases {
            let expected: BTreeSet<String> = expected.iter().map(|p| (*p).to_owned()).collect();
            let mut found = named(&files, command).compared;
            // Arguments of text tools that are no files.
            found.retain(|path| !["s/x/y", "x", "1p", "5"].contains(&path.as_str()));
            assert_eq!(found, expected, "{command}");
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

    #[test]
    fn deep_nesting_ends_the_search_and_not_the_program() {
        for (open, close) in [("$(a ", ")"), ("$(", ")"), ("${a", "}"), ("$(shell ", ")")] {
            let deep = format!("{}node v/all.js{}", open.repeat(3_000), close.repeat(3_000));
            let make = format!("X = {deep}\nt:\n\t{deep}\n");
            named(&[("Makefile", &make), ("a.sh", &deep)], "make; sh a.sh");
            named(&[], &deep);
        }
    }

    #[test]
    fn names_and_places_that_another_text_gives_are_known() {
        let cases: [(&[(&str, &str)], &str); 9] = [
            (&[("env.sh", "X=v/all.js\n")], ". ./env.sh; node $X"),
            (&[("env.sh", "D=v\n")], ". ./env.sh; cd v; node $D/all.js"),
            (&[("env.sh", "export D=v\n")], ". ./env.sh; (cd v && node all.js)"),
            // No text uses the variable, so it can only be for a program.
            (&[("env.sh", "BASH_ENV=v/all.js\n")], "set -a; . ./env.sh; bash"),
            (&[("Makefile", "VPATH = v\nt: all.js\n\tnode $<\n")], "make t"),
            (
                &[
                    ("Makefile", "t:\n\t$(MAKE) -C sub\n"),
                    ("sub/Makefile", "u:\n\tnode ../v/all.js\n"),
                ],
                "make t",
            ),
            (&[("sub/Makefile", "u:\n\tnode ../v/all.js\n")], "cd sub && make u"),
            (&[("justfile", "x := 'v/all.js'\nt:\n    node {{x}}\n")], "just t"),
            (
                &[("justfile", "import 'more.just'\n"), ("more.just", "t:\n    node v/all.js\n")],
                "just t",
            ),
        ];
        for (more, command) in cases {
            let files = [more, &[("v/all.js", "")]].concat();
            assert!(named(&files, command).run.contains("v/all.js"), "{more:?}: {command}");
        }
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
