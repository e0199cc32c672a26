//! The scripts of a project that its oracle runs, found in the commands and in the base's recipes.
use std::collections::BTreeSet;

use crate::ecosystems::ALL;
use crate::ecosystems::make;
use crate::ecosystems::run_files::run_files;
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand, shell_quoted};

/// The files that the oracle runs, as far as its commands and the base's recipes name them.
pub fn scripts_of(repo: &Repo, base: &Oid, oracle: &[OracleCommand]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for command in oracle {
        found.extend(scripts_of_command(&command.command));
    }
    // `make test` names no script: its recipe does.
    let tree = repo.commit(base)?.tree;
    let root: BTreeSet<String> =
        repo.root_entries(&tree)?.into_iter().map(|(name, _)| name).collect();
    for file in ALL.iter().flat_map(|ecosystem| ecosystem.recipe_files) {
        if let Some(bytes) = repo.file(&tree, file)? {
            let text = String::from_utf8_lossy(&bytes);
            found.extend(scripts_of_recipes(&text));
            if make::MAKEFILES.contains(file) {
                found.extend(make::missing_targets(&text, &root));
            }
        }
    }
    let read = |path: &str| {
        let bytes = repo.file(&tree, path)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let lines: Vec<String> = oracle.iter().map(|command| shell_text(&command.command)).collect();
    found.extend(run_files(&read, &lines)?);
    Ok(found)
}

/// A command as a shell reads it.
fn shell_text(command: &CommandLine) -> String {
    match command {
        CommandLine::Shell(text) => text.clone(),
        CommandLine::Argv(words) => {
            words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
        }
    }
}

/// The files that a command runs: `./check`, `sh ci/test.sh`. A command may run the product itself
/// (`sh -n slug.sh`, `./slug.sh Hello | grep hello`), so a script counts only if its name says that
/// it tests or builds, or if it is the whole command.
fn scripts_of_command(command: &CommandLine) -> Vec<String> {
    let text = match command {
        CommandLine::Shell(text) => text.clone(),
        CommandLine::Argv(words) => words.join(" "),
    };
    let mut found = Vec::new();
    let mut starts_command = true;
    let mut follows_interpreter = false;
    for word in text.split_whitespace() {
        let unquoted = word.trim_matches(['"', '\'', '(', ')', ';', '&', '|']);
        let path = unquoted.strip_prefix("./").unwrap_or(unquoted);
        let is_alone = unquoted.contains('/') && text.trim() == word;
        let is_run = (starts_command && unquoted.contains('/')) || follows_interpreter;
        if is_alone || (is_run && says_its_purpose(path)) {
            found.push(path.to_owned());
        }
        let is_option = follows_interpreter && unquoted.starts_with('-');
        follows_interpreter = is_interpreter(unquoted) || is_option;
        starts_command = matches!(word, "&&" | "||" | ";" | "|" | "!") || word.ends_with(';');
    }
    found
}

fn is_interpreter(word: &str) -> bool {
    ALL.iter().any(|ecosystem| ecosystem.interpreters.contains(&word))
}

/// The files that recipes include, and those whose name says that they test or build. Recipes name
/// the product's files, too, so other names do not count; test files are flagged as such.
fn scripts_of_recipes(recipes: &str) -> Vec<String> {
    let is_separator = |c: char| c.is_whitespace() || "\"'`;&|()@".contains(c);
    let mut found = Vec::new();
    for line in recipes.lines() {
        let mut words = line.split(is_separator).filter(|word| !word.is_empty()).peekable();
        let includes =
            matches!(words.peek(), Some(&("include" | "-include" | "sinclude" | "import")));
        for word in words {
            let path = word.strip_prefix("./").unwrap_or(word);
            if includes || (says_its_purpose(path) && !is_test_path(path)) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// True if a word of a path says that it tests or builds: `ci/run`, `greet-test.sh`.
fn says_its_purpose(path: &str) -> bool {
    const PURPOSES: [&str; 15] = [
        "run", "runner", "test", "tests", "testing", "runtests", "unittest", "check", "checks",
        "lint", "build", "verify", "spec", "specs", "ci",
    ];
    path.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| PURPOSES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_the_files_that_it_starts_or_hands_to_an_interpreter() {
        let cases: [(&str, &[&str]); 9] = [
            ("./all", &["all"]),
            ("./slug.sh Hello | grep hello", &[]),
            ("./check", &["check"]),
            ("sh ci/test.sh", &["ci/test.sh"]),
            ("sh -e ci/test.sh", &["ci/test.sh"]),
            ("sh -n slug.sh", &[]),
            ("make && ./ci/run.sh", &["ci/run.sh"]),
            ("cat ci/test.sh", &[]),
            ("(python3 'tests.py'; true)", &["tests.py"]),
        ];
        for (line, expected) in cases {
            let command = CommandLine::Shell(line.to_owned());
            assert_eq!(scripts_of_command(&command), expected, "{line}");
        }
    }

    #[test]
    fn recipes_run_the_files_that_they_include_or_that_say_their_purpose() {
        let recipes = "include rules\nall: slug.sh\n\t@./ci/run slug.sh tests/a.sh\n";
        assert_eq!(scripts_of_recipes(recipes), ["include", "rules", "ci/run"]);
    }
}
