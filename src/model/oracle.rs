//! The oracle: the project's own commands that decide which candidates work.
use std::ffi::OsString;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::outcome::Stage;

/// A command as a user writes it: a string runs through `sh -c`, an array as argv.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// A text that `sh -c` runs.
    Shell(String),
    /// Program and arguments.
    Argv(Vec<String>),
}

impl CommandLine {
    /// The program to start and its arguments; never empty.
    pub fn argv(&self) -> Vec<OsString> {
        match self {
            CommandLine::Shell(text) => vec!["sh".into(), "-c".into(), text.into()],
            CommandLine::Argv(words) => words.iter().map(OsString::from).collect(),
        }
    }

    /// The words of the command, without directories, as far as they are known without a shell.
    pub fn words(&self) -> Vec<String> {
        let word = |text: &str| text.rsplit('/').next().unwrap_or(text).to_owned();
        match self {
            CommandLine::Argv(words) => words.iter().map(|text| word(text)).collect(),
            CommandLine::Shell(text) => {
                let parts = text.split([' ', '\t', '\n', ';', '&', '|', '(', ')', '"', '\'']);
                parts.filter(|part| !part.is_empty()).map(word).collect()
            }
        }
    }

    /// The command as a line for a shell.
    pub fn shell_line(&self) -> String {
        match self {
            CommandLine::Shell(text) => text.clone(),
            CommandLine::Argv(words) => shell_line(words),
        }
    }

    /// True for the empty text, which stands for no command.
    pub fn is_empty(&self) -> bool {
        matches!(self, CommandLine::Shell(text) if text.trim().is_empty())
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandLine::Shell(text) => f.write_str(text),
            CommandLine::Argv(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// One command of the oracle, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OracleCommand {
    /// The stage that decides when the command runs.
    pub stage: Stage,
    /// The command itself.
    pub command: CommandLine,
    /// The source of the command: `--test`, `.frites.toml`, `package.json`, ….
    pub source: String,
}

/// The options of `judge` that name these commands, each after a space.
pub fn as_options<'a>(commands: impl Iterator<Item = &'a OracleCommand>) -> String {
    commands.map(|c| format!(" --{} {}", c.stage, shell_quoted(&c.command.to_string()))).collect()
}

/// A line that a shell reads as these words.
pub fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// A word that a shell reads as this text, with quotation marks only if it needs them.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        shell_quoted(text)
    }
}

/// A word in quotation marks that a shell reads as this text.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
