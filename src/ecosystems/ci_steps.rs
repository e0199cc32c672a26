//! The commands that a project's CI runs, from the files of GitHub, GitLab and Travis.
//!
//! The files can be hostile. A large file is not read. In other files, the parser's budget bounds
//! the expansion of aliases, and the nesting. A file that cannot be parsed yields no commands. The
//! value of an expression (`${{ … }}`) is never guessed.
use std::collections::BTreeSet;

use serde_json::Value;

use crate::ecosystems::paths::file_name;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;
use crate::model::shell::{self, SimpleCommand, is_assignment};

/// The largest file that is read, in bytes.
const LARGEST: usize = 256 << 10;

/// The maximum number of files that are read.
const MOST_FILES: usize = 100;

/// Programs whose arguments are a command, which they run unchanged.
const WRAPPERS: [&str; 8] = ["command", "env", "exec", "npx", "sudo", "time", "uvx", "xvfb-run"];

/// Programs that run a script, which is their first argument. Python is not listed, because it has
/// many names, such as `python3.12`; all begin with `python`.
const SCRIPT_RUNNERS: [&str; 6] = ["bash", "node", "perl", "php", "ruby", "sh"];

/// Pairs of a program and the word after which it runs another program, as in `uv run tox`.
const RUNNERS: &str = "bundle exec|coverage run|hatch run|pdm run|pipx run|poetry run|uv run";

/// Options whose value is the next word. They belong to the programs in `WRAPPERS` and `RUNNERS`.
const WITH_VALUE: [&str; 8] =
    ["--extra", "--group", "--only-group", "--package", "--python", "--spec", "--with", "-p"];

/// Programs for which `CiCommands::runs` compares only the program. If CI calls `tox` in any way,
/// that counts as running our `tox` command.
const TESTERS: [&str; 8] = ["gradle", "gradlew", "mvn", "mvnw", "nox", "prove", "rake", "tox"];

/// One command of a CI job.
#[derive(Clone, Debug)]
pub struct CiCommand {
    file: String,
    /// The number of its job, counted through all files.
    job: usize,
    /// Its words, without the assignments of variables before the program. A word that the shell
    /// expands is empty here.
    words: Vec<String>,
    /// True if the command can be run as CI runs it. It has no expanded words, and no variables
    /// before it. Its output goes neither to a file nor to another program. Its script has no `if`
    /// and no loop.
    is_plain: bool,
}

/// The commands in the CI files of a commit.
#[derive(Debug, Default)]
pub struct CiCommands {
    commands: Vec<CiCommand>,
    /// The actions that steps use: `OWNER/NAME@VERSION`.
    actions: Vec<String>,
    jobs: usize,
    /// The paths of the files.
    pub files: Vec<String>,
}

/// True if a file at this path defines CI jobs.
pub fn is_ci_file(path: &str) -> bool {
    let is_workflow = path.starts_with(".github/workflows/")
        && (path.ends_with(".yml") || path.ends_with(".yaml"));
    is_workflow || matches!(path, ".gitlab-ci.yml" | ".travis.yml")
}

impl CiCommands {
    /// The commands in these files, which are pairs of a path and a text.
    pub fn of(files: impl Iterator<Item = (String, String)>) -> CiCommands {
        let mut found = CiCommands::default();
        for (path, text) in files.filter(|(_, text)| text.len() <= LARGEST).take(MOST_FILES) {
            let Ok(document) = serde_saphyr::from_str::<Value>(&text) else { continue };
            if path.starts_with(".github/") {
                found.add_workflow(&path, &document);
            } else {
                found.add_scripts(&path, &document);
            }
            found.files.push(path);
        }
        found
    }

    /// Adds the steps of a GitHub workflow. Leaves out these steps:
    /// * steps that run on Windows or macOS;
    /// * steps in another directory than the root;
    /// * steps in a shell other than `sh` and `bash`;
    /// * steps in a checkout of another repository.
    fn add_workflow(&mut self, path: &str, workflow: &Value) {
        for job in workflow["jobs"].as_object().into_iter().flat_map(|jobs| jobs.values()) {
            self.jobs += 1;
            let system = job["runs-on"].as_str().unwrap_or_default();
            let is_elsewhere = ["windows", "macos"].iter().any(|name| system.starts_with(name));
            let moved = |part: &Value| !part["working-directory"].is_null();
            let moves_all = moved(&job["defaults"]["run"]) || moved(&workflow["defaults"]["run"]);
            let steps = job["steps"].as_array().into_iter().flatten();
            for step in steps.take_while(|step| !checks_out_another_repository(step)) {
                self.actions.extend(step["uses"].as_str().map(str::to_owned));
                let shell = step["shell"].as_str().unwrap_or("sh");
                let is_shell = shell.split([' ', '/']).any(|word| ["sh", "bash"].contains(&word));
                if !(is_elsewhere || moves_all || moved(step)) && is_shell {
                    self.add_lines(path, step["run"].as_str().unwrap_or_default());
                }
            }
        }
    }

    /// Adds the scripts in a file of GitLab or Travis: the scripts at its top level, and the
    /// scripts of each job.
    fn add_scripts(&mut self, path: &str, document: &Value) {
        let jobs = document.as_object().into_iter().flat_map(|jobs| jobs.values());
        for job in std::iter::once(document).chain(jobs.filter(|job| job.is_object())) {
            self.jobs += 1;
            let parts = ["before_script", "install", "script"].map(|name| &job[name]);
            let lines = parts.into_iter().flat_map(|part| match part {
                Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
                line => line.as_str().into_iter().collect::<Vec<_>>(),
            });
            // One shell runs all of these lines.
            self.add_lines(path, &lines.collect::<Vec<_>>().join("\n"));
        }
    }

    fn add_lines(&mut self, path: &str, text: &str) {
        let text = without_expressions(text);
        let mut is_moved = false;
        let compound = ["case", "do", "elif", "else", "for", "function", "if", "then", "while"];
        let is_compound = text.lines().any(|line| {
            line.split_whitespace().next().is_some_and(|word| compound.contains(&word))
        });
        for line in shell::script_lines(&text) {
            for command in shell::simple_commands(&with_quoted_extras(&line)) {
                is_moved |= command.words.first().is_some_and(|word| word.text == "cd");
                if !is_moved {
                    self.commands.push(self.command(path, &command, is_compound));
                }
            }
        }
    }

    fn command(&self, path: &str, command: &SimpleCommand, is_compound: bool) -> CiCommand {
        let is_expanded = command.words.iter().any(|word| word.is_expanded);
        let sets = command.words.first().is_some_and(|word| is_assignment(&word.text));
        let words = command.words.iter().skip_while(|word| is_assignment(&word.text));
        let text = |word: &shell::Word| match word.is_expanded {
            true => String::new(),
            false => word.text.clone(),
        };
        CiCommand {
            file: path.to_owned(),
            job: self.jobs,
            words: words.map(text).collect(),
            is_plain: !(is_expanded || sets || is_compound || command.is_read),
        }
    }

    /// True if CI runs our command `command`, with any options.
    pub fn runs(&self, command: &OracleCommand) -> bool {
        self.like(command).next().is_some()
    }

    fn like<'a>(&'a self, command: &OracleCommand) -> impl Iterator<Item = &'a CiCommand> {
        let own = essence(&own_words(command));
        self.commands.iter().filter(move |other| {
            let theirs = essence(&other.words);
            let is_same_program = !own.is_empty() && own.first() == theirs.first();
            let verb = own.get(1);
            let is_any = own.first().is_some_and(|program| TESTERS.contains(&program.as_str()));
            is_same_program && (is_any || verb.is_none_or(|verb| theirs[1..].contains(verb)))
        })
    }

    /// True if a command or an action of CI has this program's name.
    pub fn names(&self, program: &str) -> bool {
        let is_run =
            |command: &CiCommand| command.words.iter().any(|word| file_name(word) == program);
        self.commands.iter().any(is_run) || self.actions.iter().any(|name| name.contains(program))
    }

    /// True if CI runs a command of just these words.
    pub fn runs_words(&self, words: &[&str]) -> bool {
        self.first_plain(|own| own == words).is_some()
    }

    /// The words of the first plain command for which `accept` is true.
    fn first_plain(&self, accept: impl Fn(&[String]) -> bool) -> Option<Vec<String>> {
        let mut plain = self.commands.iter().filter(|command| command.is_plain);
        plain.find(|command| accept(&command.words)).map(|command| command.words.clone())
    }

    /// The first plain command that consists of this program, one of these verbs, and options
    /// except `-g`. Such a command installs the project.
    pub fn install(&self, program: &str, verbs: &[&str]) -> Option<Vec<String>> {
        self.first_plain(|words| {
            let [first, verb, rest @ ..] = words else { return false };
            let mut options = rest.iter().map(String::as_str);
            first == program
                && verbs.contains(&verb.as_str())
                && options.all(|word| word.starts_with('-') && !["-g", "--global"].contains(&word))
        })
    }

    /// The arguments of each `pip install` in the jobs that run this module or program.
    pub fn pip_installs(&self, program: &str) -> Vec<Vec<String>> {
        let runs =
            |command: &&CiCommand| essence(&command.words).first().is_some_and(|p| p == program);
        let jobs: BTreeSet<usize> = self.commands.iter().filter(runs).map(|c| c.job).collect();
        let mut found: Vec<Vec<String>> = Vec::new();
        for command in self.commands.iter().filter(|c| c.is_plain && jobs.contains(&c.job)) {
            let words = without_wrappers(&command.words);
            let at = words.iter().position(|word| word == "install");
            let is_pip =
                words.iter().take(at.unwrap_or(0)).any(|word| word == "pip" || word == "pip3");
            if let (true, Some(at)) = (is_pip, at) {
                let packages = words[at + 1..].iter().filter(|word| *word != "--user");
                let packages: Vec<String> = packages.cloned().collect();
                if !found.contains(&packages) {
                    found.push(packages);
                }
            }
        }
        found
    }

    /// The words of the first plain command that runs this module or program, from its name on.
    pub fn words_of(&self, name: &str) -> Option<&[String]> {
        let plain = self.commands.iter().filter(|command| command.is_plain);
        let mut all = plain.map(|command| without_wrappers(&command.words));
        all.find(|words| words.first().is_some_and(|first| file_name(first) == name))
    }

    /// The first plain command that begins with these words, not counting wrappers and options. It
    /// is returned as CI runs it.
    pub fn plain(&self, start: [&str; 2]) -> Option<Vec<String>> {
        self.first_plain(|words| essence(words).get(..2).is_some_and(|words| words == start))
    }

    /// Finds the first command of this program that has words `-D…`, and returns these words.
    pub fn first_defines(&self, program: &str) -> Vec<&str> {
        let of_program = self.commands.iter().filter(|command| {
            without_wrappers(&command.words).first().is_some_and(|w| file_name(w) == program)
        });
        let words = of_program.map(|command| command.words.iter().map(String::as_str));
        let mut defines = words.map(|words| words.filter(|w| w.starts_with("-D")).collect());
        defines.find(|words: &Vec<&str>| !words.is_empty()).unwrap_or_default()
    }

    /// The plain commands that run tests in CI, without duplicates, and without commands that run
    /// the same as `ours`.
    pub fn other_tests(&self, ours: Option<&OracleCommand>) -> Vec<OracleCommand> {
        let same: Vec<&CiCommand> = ours.into_iter().flat_map(|ours| self.like(ours)).collect();
        let mut found: Vec<OracleCommand> = Vec::new();
        for command in self.commands.iter().filter(|c| c.is_plain && is_test(&c.words)) {
            let is_ours = same.iter().any(|other| std::ptr::eq(*other, command));
            let command = OracleCommand {
                stage: Stage::Test,
                command: CommandLine::Argv(command.words.clone()),
                source: command.file.clone(),
            };
            if !is_ours && !found.iter().any(|other| other.command == command.command) {
                found.push(command);
            }
        }
        found
    }
}

/// True if a step puts another repository in place of the project. A repository that an expression
/// names does not count, because it may be the project itself.
fn checks_out_another_repository(step: &Value) -> bool {
    let repository = step["with"]["repository"].as_str().unwrap_or("${{");
    !repository.contains("${{") && step["with"]["path"].is_null()
}

/// Replaces each expression (`${{ … }}`) by a shell variable, whose value is not known either.
fn without_expressions(text: &str) -> String {
    let mut parts = text.split("${{");
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found.push_str("$EXPRESSION");
        found.push_str(part.split_once("}}").map_or("", |(_, rest)| rest));
    }
    found
}

/// Puts the extras of a Python project (`.[test]`) in quotes, so that they are not read as a
/// pattern of file names.
fn with_quoted_extras(line: &str) -> String {
    let quoted = |word: &str| match word.starts_with(".[") && word.ends_with(']') {
        true => format!("'{word}'"),
        false => word.to_owned(),
    };
    line.split(' ').map(quoted).collect::<Vec<_>>().join(" ")
}

fn own_words(command: &OracleCommand) -> Vec<String> {
    match &command.command {
        CommandLine::Argv(words) => words.clone(),
        CommandLine::Shell(text) => {
            let commands = shell::simple_commands(text);
            let last = commands.last().map(|command| command.words.iter());
            last.into_iter().flatten().map(|word| word.text.clone()).collect()
        }
    }
}

/// The words from the wrapped program on: `tox run` for `uv run --group dev tox run`.
fn without_wrappers(words: &[String]) -> &[String] {
    let Some(first) = words.first() else { return words };
    let program = file_name(first);
    let rest = &words[1..];
    if WRAPPERS.contains(&program) || is_assignment(first) {
        return without_wrappers(after_options(rest));
    }
    let runs_script = SCRIPT_RUNNERS.contains(&program) || program.starts_with("python");
    if runs_script && rest.first().is_some_and(|word| !word.starts_with('-')) {
        return without_wrappers(rest);
    }
    if program.starts_with("python") && rest.first().is_some_and(|word| word == "-m") {
        return without_wrappers(&rest[1..]);
    }
    let next = rest.first().map_or("", String::as_str);
    if RUNNERS.split('|').any(|runner| runner.split_once(' ') == Some((program, next))) {
        return without_wrappers(after_options(&rest[1..]));
    }
    words
}

/// Drops the leading options of `words`: they belong to the program that runs another one.
fn after_options(mut words: &[String]) -> &[String] {
    while let [first, rest @ ..] = words
        && first.starts_with('-')
    {
        let takes_next = WITH_VALUE.contains(&first.as_str()) && !rest.is_empty();
        words = if takes_next { &rest[1..] } else { rest };
    }
    words
}

/// The program without its directory, and its words without options and without `run`:
/// `npm run test` is the same as `npm test`.
fn essence(words: &[String]) -> Vec<String> {
    let words = without_wrappers(words);
    let program = words.first().map(|word| file_name(word).to_owned());
    let is_said =
        |word: &&String| !word.starts_with('-') && !["run", "run-script"].contains(&word.as_str());
    program.into_iter().chain(words.iter().skip(1).filter(is_said).cloned()).collect()
}

/// True if a command's program or first word shows that the command runs tests.
fn is_test(words: &[String]) -> bool {
    let path = without_wrappers(words).first().map_or("", String::as_str);
    let words = essence(words);
    let Some(program) = words.first() else { return false };
    // These are the shell's own tests of a file or a number.
    if ["test", "["].contains(&path) {
        return false;
    }
    let tests = ["test", "tests", "check", "spec"];
    let is_tester = ["test", "spec", "phpunit", "bats"].iter().any(|part| path.contains(part));
    let verb = words.get(1).map(|word| word.split([':', '-', '.']).next().unwrap_or_default());
    is_tester
        || ["nox", "prove", "tox"].contains(&program.as_str())
        || verb.is_some_and(|verb| tests.contains(&verb))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ecosystems::project::command;

    fn workflow(text: &str) -> CiCommands {
        CiCommands::of([(".github/workflows/ci.yml".to_owned(), text.to_owned())].into_iter())
    }

    /// The steps of one job on Linux.
    fn steps(lines: &[&str]) -> CiCommands {
        let steps: String =
            lines.iter().map(|line| format!("      - run: |\n          {line}\n")).collect();
        workflow(&format!("on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n{steps}"))
    }

    fn test(words: &str) -> OracleCommand {
        command(Stage::Test, &words.split(' ').collect::<Vec<_>>(), "")
    }

    #[test]
    fn line_with_only_a_redirection_runs_nothing() {
        assert!(!steps(&["< log"]).runs(&test("log")));
    }

    #[test]
    fn steps_in_a_checkout_of_another_repository_are_of_that_one() {
        let tests = |repository: &str| {
            let found = workflow(&format!(
                "jobs:\n  a:\n    steps:\n      - run: make check\n      - uses: actions/checkout@v4\n        \
                 with: {{{repository}}}\n      - run: phpunit\n"
            ));
            found.other_tests(None).len()
        };
        assert_eq!(tests("repository: other/project"), 1);
        assert_eq!(tests("repository: other/project, path: client"), 2);
        assert_eq!(tests("repository: '${{ github.repository }}'"), 2);
        assert_eq!(tests("fetch-depth: 0"), 2);
    }

    #[test]
    fn a_command_of_ci_is_known_through_what_runs_it() {
        for (line, ours, expected) in [
            ("cargo test --verbose", "cargo test --workspace", true),
            ("cargo build", "cargo test --workspace", false),
            ("npm run test", "npm run test", true),
            ("npm test", "npm run test", true),
            ("npm run test-ci", "npm run test", false),
            ("uv run --locked --group dev tox run", "tox run -e py", true),
            ("pipx run nox -s tests", "nox -s tests", true),
            ("python -m pytest -v", ".venv/bin/python -m pytest", true),
            ("CI=1 sudo xvfb-run bundle exec rake", "bundle exec rake test", true),
            ("./gradlew build", "sh ./gradlew --no-daemon check", true),
            ("vendor/bin/phpunit --verbose", "php vendor/bin/phpunit", true),
            ("tox run -e ${{ matrix.env }}", "tox run -e py", true),
            ("${{ matrix.tool }} test", "cargo test", false),
            ("cargo ${{ matrix.verb }}", "cargo test", false),
            ("cd sub && make test", "make test", false),
            ("make all && make test", "make test", true),
        ] {
            assert_eq!(steps(&[line]).runs(&test(ours)), expected, "{line} and {ours}");
        }
    }

    #[test]
    fn only_jobs_that_may_run_on_linux_and_in_the_root_count() {
        let job = |system: &str, more: &str| {
            let text = format!(
                "jobs:\n  a:\n    runs-on: {system}\n    steps:\n      - run: make test\n{more}"
            );
            workflow(&text).runs(&test("make test"))
        };
        assert!(
            job("ubuntu-latest", "") && job("${{ matrix.os }}", "") && job("[self-hosted]", "")
        );
        assert!(!job("windows-latest", "") && !job("macos-14", ""));
        assert!(!job("ubuntu-latest", "        working-directory: sub\n"));
        assert!(!job("ubuntu-latest", "        shell: pwsh\n"));
        assert!(job("ubuntu-latest", "        shell: bash -el {0}\n"));
        let of = |path: &str, text: &str| {
            CiCommands::of([(path.to_owned(), text.to_owned())].into_iter())
                .runs(&test("make test"))
        };
        assert!(of(".travis.yml", "install: true\nscript:\n  - make\n  - make test\n"));
        assert!(!of(".travis.yml", "script:\n  - cd build\n  - make test\n"), "one shell");
        assert!(of(".gitlab-ci.yml", "stages: [a]\nunit:\n  script: make test\n"));
    }

    #[test]
    fn only_plain_commands_are_shown_and_installed_from() {
        let ci = steps(&[
            "npm install -g npm@latest",
            "npm install --ignore-scripts",
            "npm run test:${{ matrix.part }}",
            "npm run test-ci",
            "if true; then npm run test-never; fi",
            "npm test > log",
            "python3 ./scripts/run-tests.py",
            "python3 setup.py build",
            "test -s manual.1",
            "[ -s manual.1 ]",
        ]);
        let shown: Vec<String> = ci
            .other_tests(Some(&test("npm run test")))
            .iter()
            .map(|c| c.command.to_string())
            .collect();
        assert_eq!(shown, ["npm run test-ci", "python3 ./scripts/run-tests.py"]);
        assert_eq!(
            ci.install("npm", &["install"]).unwrap_or_default(),
            ["npm", "install", "--ignore-scripts"]
        );
        let ci = steps(&["pip install --user -e .[dev]", "pytest -q"]);
        assert_eq!(ci.pip_installs("pytest"), [["-e", ".[dev]"]]);
        assert!(ci.pip_installs("tox").is_empty());
    }

    #[test]
    fn hostile_files_show_nothing_and_end_soon() {
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..40 {
            bomb.push_str(&format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1));
        }
        let deep = format!("jobs: {}", "[".repeat(100_000));
        let steps = "jobs:\n  a:\n    runs-on: ubuntu\n    steps:\n      - run: make test\n";
        let large = format!("{steps}#{}\n", "x".repeat(LARGEST));
        for text in
            [format!("{bomb}{steps}"), deep, large, "jobs: [\n".to_owned(), "a: b: c".to_owned()]
        {
            assert!(workflow(&text).commands.is_empty(), "{}", &text[..30.min(text.len())]);
        }
        assert!(workflow(steps).runs(&test("make test")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        /// Some parts of a step are only a redirection, such as `<(gofmt -d .)` in
        /// `diff -u <(echo -n) <(gofmt -d .)`.
        #[test]
        fn no_line_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "<(", "$(", "(", ")", "{", "}", "<", ">", "<<E", "<<<", "|", "&", ";", "!", "\n          ", " ", "'", "\"", "\\", "`", "#", "=", "$", "${{", "}}", "é",
            "cd", "if", "fi", "for", "a", "A=1", "make", "test", "pip", "install", "python3", "-m", "sudo", "npm", "run", "tee",
        ]), 0..12)) {
            let ci = steps(&[&parts.concat(), "make test"]);
            let own = test("make test");
            ci.runs(&own);
            ci.other_tests(Some(&own));
            ci.install("npm", &["install"]);
            ci.pip_installs("python3");
        }
    }
}
