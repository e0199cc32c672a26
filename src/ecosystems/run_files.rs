//! The files that commands run or compare, followed through recipes and shell scripts.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::{Ecosystem, file_name};
use crate::ecosystems::recipe::{Recipe, joined_lines};
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::model::shell::{SimpleCommand, Word, is_assignment, simple_commands};

/// Programs that compare the files that their arguments name.
const COMPARERS: [&str; 3] = ["cmp", "diff", "git"];

/// Programs that run the program that their arguments name.
const PREFIXES: [&str; 14] = [
    "bundle", "command", "env", "exec", "hatch", "nice", "nohup", "pdm", "pipenv", "poetry", "run",
    "time", "timeout", "uv",
];

/// The thing at a path of a tree.
pub enum InTree {
    /// A file, with its text.
    File(String),
    /// A directory.
    Directory,
    /// Nothing.
    Nothing,
}

/// A reader of the paths of one tree.
pub type ReadPath<'a> = &'a dyn Fn(&str) -> Result<InTree>;

/// The files that commands name, as paths and as patterns with `*`.
#[derive(Debug, Default)]
pub struct NamedFiles {
    /// The files that they run.
    pub run: BTreeSet<String>,
    /// The files that they compare with others, and directories of such files.
    pub compared: BTreeSet<String>,
}

/// The files that these shell commands run: those in the place of a program, after an interpreter,
/// and after `.` or `source`, in the commands themselves, in the recipes that they name, and in the
/// shell scripts among these files. A file that is not there is one of them, too: commands may run it
/// as soon as somebody adds it. A name with `*` stands for all files of such names.
///
/// A test file is none of them, unless a command names it itself, and what it runs may be the code under test: of that only files count
/// that are not there, and that it can do without. For the same reason, a command whose output another
/// one reads does not count. Also the files that they compare, there and in test files.
pub fn named_files(read: ReadPath<'_>, commands: &[String]) -> Result<NamedFiles> {
    let mut follow =
        Follow { read, books: books(read)?, done: BTreeSet::new(), found: NamedFiles::default() };
    for command in commands {
        follow.text(command, &Place { is_command: true, ..Place::default() })?;
    }
    Ok(follow.found)
}

/// The recipes of one file, with the programs that run them.
struct Book {
    runners: &'static [&'static str],
    recipes: Vec<Recipe>,
}

fn books(read: ReadPath<'_>) -> Result<Vec<Book>> {
    let mut found = Vec::new();
    for ecosystem in ALL.iter().filter(|ecosystem| !ecosystem.recipe_runners.is_empty()) {
        for file in ecosystem.recipe_files {
            if let InTree::File(text) = read(file)? {
                let recipes = (ecosystem.recipes)(&text);
                found.push(Book { runners: ecosystem.recipe_runners, recipes });
                break;
            }
        }
    }
    Ok(found)
}

/// Where commands run, and where the script is that holds them; both end in `/`, or are empty.
#[derive(Clone, Default)]
struct Place {
    directory: String,
    script: String,
    /// The words of loops, by the variable that takes their values.
    loops: BTreeMap<String, Vec<Word>>,
    /// In a test file, the files that it looks for before it runs them.
    optional: Option<BTreeSet<String>>,
    /// True in the commands themselves, not in what they run.
    is_command: bool,
    /// True if the line goes on when one of its commands fails.
    may_fail: bool,
    /// The words of commands whose output is read there: what is made from a file and compared with it
    /// checks the file, as a formatter does.
    inputs: Vec<Word>,
    /// The files that the line lists, which `xargs` or `find -exec` runs.
    listed: Vec<Word>,
}

impl Place {
    /// True if a file counts that is missing here.
    fn takes_missing(&self, path: &str) -> bool {
        self.may_fail || self.optional.as_ref().is_none_or(|files| files.contains(path))
    }
}

struct Follow<'a> {
    read: ReadPath<'a>,
    books: Vec<Book>,
    /// The files and the recipes that were followed.
    done: BTreeSet<String>,
    found: NamedFiles,
}

impl Follow<'_> {
    /// Follows the commands of a shell script or of a recipe's line.
    fn text(&mut self, text: &str, place: &Place) -> Result<()> {
        let mut place = place.clone();
        let lines = joined_lines(text);
        let commands = lines.iter().flat_map(|line| simple_commands(line));
        place.inputs = commands.filter(|c| c.is_read).flat_map(|c| c.words).collect();
        for line in &lines {
            place.may_fail = line.contains("||");
            let commands = simple_commands(line);
            place.listed = commands.iter().flat_map(|command| listed(&command.words)).collect();
            for command in &commands {
                self.command(command, &mut place)?;
            }
        }
        Ok(())
    }

    fn command(&mut self, command: &SimpleCommand, place: &mut Place) -> Result<()> {
        let words = without_prefixes(&command.words);
        let Some((program, rest)) = words.split_first() else { return Ok(()) };
        if let Some(book) = self.book_of(program) {
            return self.recipes(book, rest);
        }
        if program.text == "cd" {
            if let Some(to) = rest.first() {
                place.directory = directory_of(to, place);
            }
            return Ok(());
        }
        if let Some(optional) = &mut place.optional
            && matches!(program.text.as_str(), "[" | "[[" | "test")
        {
            let sought = Place { directory: place.directory.clone(), ..Place::default() };
            optional.extend(rest.iter().flat_map(|word| places_of(word, &sought)));
        }
        if program.text == "for" {
            if let [variable, _, values @ ..] = rest {
                place.loops.insert(variable.text.clone(), values.to_vec());
            }
            return Ok(());
        }
        if COMPARERS.contains(&file_name(&program.text)) {
            self.compared(program, rest, place);
            return Ok(());
        }
        if command.is_read {
            return Ok(());
        }
        if let Some(inner) = run_on_each(program, rest) {
            for file in std::mem::take(&mut place.listed) {
                let words = inner.iter().filter(|word| word.text != "{}").cloned();
                let words = words.chain([file]).collect();
                self.command(&SimpleCommand { words, is_read: false }, place)?;
            }
            return Ok(());
        }
        if matches!(program.text.as_str(), "." | "source") {
            return match rest.first() {
                Some(word) => self.file(word, place, true).map(drop),
                None => Ok(()),
            };
        }
        match interpreter(&program.text) {
            Some(ecosystem) => self.interpreted(ecosystem, rest, place),
            None if program.text.contains('/')
                || place.loops.contains_key(variable_of(program)) =>
            {
                self.file(program, place, false).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Follows the script among the arguments of an interpreter, if it is run and not only checked.
    fn interpreted(&mut self, of: &Ecosystem, words: &[Word], place: &Place) -> Result<()> {
        let is_shell = of.extensions.is_empty() && of.interpreters.contains(&"sh");
        let mut after_option = false;
        for (at, word) in words.iter().enumerate() {
            let option = word.text.strip_prefix('-');
            let is_short = option.is_some_and(|option| !option.starts_with('-'));
            match option {
                Some("m") if !is_shell => return self.module(words.get(at + 1), place),
                Some("-check" | "l" | "m") => return Ok(()),
                Some(letters) if is_short && letters.ends_with('c') => {
                    return match words.get(at + 1) {
                        Some(text) if is_shell => self.text(&text.text, place),
                        _ => Ok(()),
                    };
                }
                Some(letters) if is_short && is_shell && letters.contains('n') => return Ok(()),
                Some(_) => after_option = true,
                None if after_option && self.is_value(word, place)? => after_option = false,
                None => {
                    let loads = at > 0
                        && matches!(words[at - 1].text.as_str(), "-r" | "--require" | "--import");
                    let is_file = self.file(word, place, is_shell)?;
                    if !loads && (is_file || !after_option) {
                        return Ok(());
                    }
                    after_option = false;
                }
            }
        }
        Ok(())
    }

    /// Takes the files of a module that an interpreter runs, if they are in the tree.
    fn module(&mut self, module: Option<&Word>, place: &Place) -> Result<()> {
        let Some(module) = module else { return Ok(()) };
        let path = module.text.replace('.', "/");
        for name in [format!("{path}.py"), format!("{path}/__main__.py")] {
            let word = Word { text: name, is_expanded: false };
            for path in places_of(&word, place) {
                if matches!((self.read)(&path)?, InTree::File(_)) {
                    self.file(&word, place, false)?;
                }
            }
        }
        Ok(())
    }

    /// True if a word after an option is rather its value, as in `-o pipefail`, than a missing file.
    fn is_value(&self, word: &Word, place: &Place) -> Result<bool> {
        if word.text.contains(['/', '.', '$']) {
            return Ok(false);
        }
        for path in places_of(word, place) {
            if matches!((self.read)(&path)?, InTree::File(_)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the file that a word names, and follows it if it is a shell script. True if it is there.
    fn file(&mut self, word: &Word, place: &Place, by_shell: bool) -> Result<bool> {
        if word.is_expanded
            && let Some(values) = place.loops.get(variable_of(word))
        {
            let place = Place { loops: BTreeMap::new(), ..place.clone() };
            for value in values {
                self.file(value, &place, by_shell)?;
            }
            return Ok(true);
        }
        let mut named = None;
        let mut missing = Vec::new();
        for path in places_of(word, place) {
            match (self.read)(&path)? {
                InTree::File(text) => {
                    named = Some((path, text));
                    break;
                }
                InTree::Directory => return Ok(false),
                InTree::Nothing => missing.push(path),
            }
        }
        let Some((path, text)) = named else {
            missing.retain(|path| !is_test_path(path) && place.takes_missing(path));
            self.found.run.extend(missing);
            return Ok(false);
        };
        let is_test = is_test_path(&path);
        let is_under_test = place.optional.is_some() && !is_test;
        if is_under_test || !self.done.insert(path.clone()) {
            return Ok(true);
        }
        let first = text.lines().next().unwrap_or_default();
        let names_shell = first.starts_with("#!") && first.trim_end().ends_with("sh");
        let script = path.rsplit_once('/').map_or(String::new(), |(top, _)| format!("{top}/"));
        if !is_test || place.is_command {
            self.found.run.insert(path);
        }
        if by_shell || names_shell {
            let directory = place.directory.clone();
            let optional = is_test.then(BTreeSet::new);
            self.text(&text, &Place { directory, script, optional, ..Place::default() })?;
        }
        Ok(true)
    }

    /// Takes the files that a command compares, by the words after it.
    fn compared(&mut self, program: &Word, words: &[Word], place: &Place) {
        let operands = match file_name(&program.text) {
            "git" => words.iter().position(|word| word.text == "diff").map(|at| &words[at + 1..]),
            _ => Some(words),
        };
        for word in operands.unwrap_or_default() {
            if word.text.starts_with('-') || place.inputs.contains(word) {
                continue;
            }
            let words = match place.loops.get(variable_of(word)) {
                Some(values) if word.is_expanded => values,
                _ => std::slice::from_ref(word),
            };
            self.found.compared.extend(words.iter().flat_map(|word| places_of(word, place)));
        }
    }

    fn book_of(&self, program: &Word) -> Option<usize> {
        let is_make = |book: &Book| program.text == "$(MAKE)" && book.runners.contains(&"make");
        self.books.iter().position(|b| is_make(b) || b.runners.contains(&program.text.as_str()))
    }

    /// Follows the recipes that these words name, and those that they need; without any, the first.
    fn recipes(&mut self, book: usize, words: &[Word]) -> Result<()> {
        let recipes = self.books[book].recipes.clone();
        let mut names: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if !recipes.iter().any(|recipe| names.contains(&recipe.name.as_str())) {
            names.extend(recipes.first().map(|recipe| recipe.name.as_str()));
        }
        while let Some(name) = names.pop() {
            if !self.done.insert(format!("{book}:{name}")) {
                continue;
            }
            for recipe in recipes.iter().filter(|recipe| recipe.name == name) {
                names.extend(recipe.needs.iter().map(String::as_str));
                for line in &recipe.lines {
                    self.text(line, &Place::default())?;
                }
            }
        }
        Ok(())
    }
}

/// The files that a command lists for another one: its words, or where `find` looks for names.
fn listed(words: &[Word]) -> Vec<Word> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    if program.text != "find" {
        return rest.iter().filter(|word| !word.text.starts_with('-')).cloned().collect();
    }
    let at = rest.iter().position(|word| matches!(word.text.as_str(), "-name" | "-path"));
    let name = at.and_then(|at| rest.get(at + 1)).map_or("*", |word| word.text.as_str());
    let tops = rest.iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
    tops.map(|top| Word { text: format!("{}/*{name}", top.text), is_expanded: true }).collect()
}

/// The command that `xargs` or `find` runs on each file that is listed.
fn run_on_each<'w>(program: &Word, words: &'w [Word]) -> Option<&'w [Word]> {
    match program.text.as_str() {
        "find" => {
            let start = words.iter().position(|word| word.text.starts_with("-exec"))? + 1;
            let inner = &words[start..];
            let end = inner.iter().position(|word| matches!(word.text.as_str(), ";" | "+"));
            Some(&inner[..end.unwrap_or(inner.len())])
        }
        "xargs" => {
            // Values of options, such as the 4 of `-P 4`, are no programs.
            let is_no_program = |c: char| c == '-' || c == '{' || c.is_ascii_digit();
            let start = words.iter().position(|word| !word.text.starts_with(is_no_program))?;
            Some(&words[start..])
        }
        _ => None,
    }
}

/// The words from the program on: without assignments, `env`, `timeout 60` and the like.
fn without_prefixes(words: &[Word]) -> &[Word] {
    let mut rest = words;
    let mut follows_prefix = false;
    while let Some((word, more)) = rest.split_first() {
        let text = word.text.as_str();
        let is_prefix = PREFIXES.contains(&file_name(text));
        let is_argument = text.starts_with('-') || text.starts_with(|c: char| c.is_ascii_digit());
        if !(is_prefix || is_assignment(text) || (follows_prefix && is_argument)) {
            break;
        }
        follows_prefix |= is_prefix;
        rest = more;
    }
    rest
}

/// The ecosystem of an interpreter: `/bin/sh`, `python3.12`.
fn interpreter(program: &str) -> Option<&'static Ecosystem> {
    let name = file_name(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    ALL.iter().copied().find(|e| e.interpreters.contains(&name) || e.interpreters.contains(&plain))
}

/// The directory to which `cd` leads: for an expanded word, one from that of the script.
fn directory_of(word: &Word, place: &Place) -> String {
    let (top, path) = match word.text.split_once('/') {
        _ if !word.is_expanded => (&place.directory, word.text.as_str()),
        Some((_, rest)) => (&place.script, rest),
        None => (&place.script, "."),
    };
    resolved(top, path).map_or(String::new(), |path| format!("{path}/"))
}

/// The name of the variable that a word consists of: of `$f`, `./$f` and `${f}` it is `f`.
fn variable_of(word: &Word) -> &str {
    word.text.trim_start_matches("./").trim_start_matches(['$', '{']).trim_end_matches('}')
}

/// The paths that a word may stand for, first the most likely one. The value of `$DIR/lib.sh` is
/// often the directory of the script itself.
fn places_of(word: &Word, place: &Place) -> Vec<String> {
    if !word.is_expanded || !word.text.contains('$') {
        return resolved(&place.directory, &word.text).into_iter().collect();
    }
    let rest = word.text.split_once('/').map_or("", |(_, rest)| rest);
    [&place.script, &place.directory, ""].iter().filter_map(|top| resolved(top, rest)).collect()
}

/// A path from a directory, without `.` and `..`; `None` if it is empty or leads out of the tree.
pub fn resolved(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that a command runs among those of a project.
    fn of(files: &[(&str, &str)], command: &str) -> Vec<String> {
        named(files, command).run.into_iter().collect()
    }

    /// The files that a command names among those of a project.
    fn named(files: &[(&str, &str)], command: &str) -> NamedFiles {
        let read = |path: &str| {
            let is_directory = files.iter().any(|(name, _)| name.starts_with(&format!("{path}/")));
            Ok(match files.iter().find(|(name, _)| *name == path) {
                Some((_, text)) => InTree::File((*text).to_owned()),
                None if is_directory => InTree::Directory,
                None => InTree::Nothing,
            })
        };
        named_files(&read, &[command.to_owned()]).expect("nothing fails to be read")
    }

    #[test]
    fn files_in_the_place_of_a_program_are_run_and_others_are_data() {
        let files = ["gate", "gate.py", "ci/t.sh", "main.c", "test_a.py"].map(|name| (name, ""));
        let cases: [(&str, &[&str]); 45] = [
            ("sh gate", &["gate"]),
            ("./gate", &["gate"]),
            ("./gate || exit 1", &["gate"]),
            ("gate", &[]),
            ("/usr/bin/env -i A=1 python3.12 -u ./gate.py main.c", &["gate.py"]),
            ("if ! timeout -k 5 60 sh gate; then exit 1; fi", &["gate"]),
            ("for x in 1 2; do sh gate $x; done", &["gate"]),
            ("(cd ci && sh ../gate >&2)", &["gate"]),
            ("cd ci; bash -eo pipefail t.sh", &["ci/t.sh"]),
            ("sh -c 'sh ci/t.sh && python gate.py'", &["ci/t.sh", "gate.py"]),
            ("uv run --offline python gate.py", &["gate.py"]),
            ("python3 -m gate", &["gate.py"]),
            ("python3 -m pytest gate.py", &[]),
            ("for f in ci/*.sh; do $f || exit 1; done", &["ci/*.sh"]),
            ("ls ci/*.sh | xargs -n 1 -P 4 sh -e", &["ci/*.sh"]),
            ("find ci -name '*.sh' -exec sh {} \\;", &["ci/**.sh"]),
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
            // Who adds such a file has it run.
            ("sh absent gate", &["absent"]),
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
            // The formatting of a file.
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
            // The code that is to be written.
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
        assert_eq!(of(&files, "make -j2 test"), with(&["gate.py", "more.sh", "prepare"]));
        assert_eq!(of(&files, "make"), [""; 0]);
        assert_eq!(of(&files, "npm test"), with(&["a.js"]));
        assert_eq!(of(&files, "npm ci"), [""; 0]);
        assert_eq!(of(&files, "just lint"), with(&["prepare"]));
    }
}
