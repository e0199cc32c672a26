//! Converts clap's errors to git's form: one line and hints.
use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;
use crate::model::nearest::nearest;

/// Options that have become commands: the old command, the option, and the new command.
const MOVED: &[(&str, &str, &str)] = &[
    ("spawn", "--add", "add RUN"),
    ("spawn", "--patch", "add --patch FILE RUN"),
    ("spawn", "--commit", "add --commit REV RUN"),
    ("spawn", "--synthesize", "add --synthesize RUN"),
    ("spawn", "--again", "retry RUN/CAND"),
    ("run", "--again", "retry RUN/CAND"),
    ("spawn", "--repair", "retry RUN/CAND"),
    ("spawn", "--yes", "retry --yes RUN/CAND"),
    ("spawn", "--later", "shard open --attempts"),
    ("spawn", "--resume", "shard run --remote R RUN/CAND"),
    ("spawn", "--remote", "shard open --attempts --remote R"),
    ("judge", "--open", "shard open RUN"),
    ("judge", "--pending", "shard list RUN"),
    ("judge", "--shard", "shard judge RUN K/N"),
    ("judge", "--bundle", "shard judge --bundle FILE RUN K/N"),
    ("judge", "--remote", "shard judge --remote R RUN K/N"),
    ("judge", "--wait", "shard collect --remote R --wait DUR RUN"),
];

/// Converts clap's error `e` to the error that the user sees. `typed` are the words after the
/// program's name; they show which command was meant.
pub fn error(e: &clap::Error, cli: &clap::Command, typed: &[String]) -> Error {
    let argument = text(e, ContextKind::InvalidArg).unwrap_or_default();
    if let Some(own) = e.source().and_then(|source| source.downcast_ref::<Error>()) {
        let error = own.hints.iter().fold(Error::usage(&own.message), |e, hint| e.hint(hint));
        return match argument.split(' ').next() {
            Some(option) if option.starts_with('-') => error.context(option),
            _ => error,
        };
    }
    let (command, verb) = verb(cli, typed);
    let mut error = Error::usage(message(e));
    if let Some(meant) = hint_for_foreign_word(e, verb.as_deref()) {
        error = error.hint(meant);
    } else if let Some(near) = suggestion(e, command) {
        error = error.hint(format!("did you mean '{near}'?"));
    }
    let is_stray_word = e.kind() == ErrorKind::UnknownArgument && !argument.starts_with('-');
    if is_stray_word && let Some(verb) = verb.as_deref() {
        let before = match verb {
            "spawn" | "run" => "",
            "add" => " RUN",
            "exec" | "retry" => " RUN/CAND",
            _ => return error.hint(format!("see `git frites {verb} -h`")),
        };
        error = error.hint(match argument.parse::<u32>() {
            Ok(n @ 1..) if before.is_empty() => {
                format!("for {n} candidates: `git frites {verb} -n {n}`")
            }
            _ => format!("a command comes after `--`: `git frites {verb}{before} -- {argument} …`"),
        });
    }
    match verb {
        Some(verb) => error.hint(format!("see `git frites {verb} -h`")),
        None => error.hint("see `git frites -h`"),
    }
}

/// The command that was typed, and its words, such as `judge` or `shard open`.
fn verb<'c>(cli: &'c clap::Command, typed: &[String]) -> (&'c clap::Command, Option<String>) {
    let mut command = cli;
    let mut verb = Vec::new();
    for word in typed {
        if let Some(found) = command.find_subcommand(word) {
            command = found;
            verb.push(word.as_str());
        }
    }
    (command, (!verb.is_empty()).then(|| verb.join(" ")))
}

/// clap's message as one line, without the tips and the usage below it.
fn message(e: &clap::Error) -> String {
    let text = e.render().to_string();
    let below = ["\n\n  tip: ", "\n\nUsage: ", "\n\nFor more information"];
    let end = below.iter().filter_map(|part| text.find(part)).min().unwrap_or(text.len());
    let lines: Vec<&str> = text[..end].lines().map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// The hint for a word that belongs to another tool, to another command or to an older version. The
/// hint names the command or option that git-frites has instead.
fn hint_for_foreign_word(e: &clap::Error, verb: Option<&str>) -> Option<String> {
    if let Some(word) = text(e, ContextKind::InvalidSubcommand) {
        let (what, command) = match word.as_str() {
            "list" | "ls" => ("the runs are listed by", "status"),
            "show" => ("a candidate's patch is shown by", "diff RUN/CAND"),
            "rm" | "remove" | "delete" => ("worktrees and branches are removed by", "clean RUN"),
            "land" => ("a candidate is landed by", "apply RUN/CAND"),
            "undo" | "revert" => ("a landing is undone by", "apply --undo RUN/CAND"),
            "merge" => ("a candidate is merged by", "apply --merge RUN/CAND"),
            "shell" | "cd" => ("a shell in a worktree is started by", "exec RUN/CAND"),
            _ => return None,
        };
        return Some(format!("{what} `git frites {command}`"));
    }
    let argument = text(e, ContextKind::InvalidArg)?;
    let others = listed(e, ContextKind::PriorArg);
    let names = |option: &str| {
        argument.starts_with(option) || others.iter().any(|other| other.starts_with(option))
    };
    match e.kind() {
        ErrorKind::UnknownArgument
            if let Some((.., new)) =
                MOVED.iter().find(|(had, option, _)| verb == Some(had) && argument == *option) =>
        {
            Some(format!("this is a command now: `git frites {new}`"))
        }
        ErrorKind::UnknownArgument if verb == Some("judge") && argument == "--synthesis" => {
            Some("`judge` makes no synthesis: --synthesis is an option of `git frites run`".into())
        }
        ErrorKind::UnknownArgument if argument == "--porcelain" => {
            Some("`--json` prints a document for programs".into())
        }
        ErrorKind::UnknownArgument if verb == Some("judge") && argument == "-c" => {
            Some("one candidate is judged alone by `--candidate CAND`".into())
        }
        ErrorKind::ArgumentConflict if names("--agent") && names("-n") => {
            Some("the number belongs to the agent: `--agent NAME=3`".into())
        }
        _ => None,
    }
}

/// The word that was probably meant: clap's suggestion, or the nearest command below `command`.
fn suggestion(e: &clap::Error, command: &clap::Command) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    if let Some(word) = kinds.into_iter().find_map(|kind| text(e, kind)) {
        return Some(word);
    }
    let typed = text(e, ContextKind::InvalidSubcommand)?;
    let verbs = command.get_subcommands().map(clap::Command::get_name);
    nearest(verbs, &typed).map(str::to_owned)
}

/// The first text that clap has for `kind`.
fn text(e: &clap::Error, kind: ContextKind) -> Option<String> {
    listed(e, kind).into_iter().next()
}

/// All texts that clap has for `kind`.
fn listed(e: &clap::Error, kind: ContextKind) -> Vec<String> {
    match e.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    /// The message and the hints of the error for this command line.
    fn refused(line: &str) -> (String, Vec<String>) {
        let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let words = ["git-frites".to_owned()].into_iter().chain(typed.iter().cloned());
        let e = Cli::try_parse_from(words).expect_err("it is refused");
        let error = error(&e, &Cli::command(), &typed);
        (error.message, error.hints)
    }

    #[test]
    fn each_kind_of_error_is_one_line_that_names_the_argument() {
        let cases = [
            ("spwan", "unrecognized subcommand 'spwan'"),
            ("spawn --nosuch", "unexpected argument '--nosuch' found"),
            ("spawn -n", "a value is required for '-n <N>' but none was supplied"),
            ("spawn -n 0", "invalid value '0' for '-n <N>': it takes a whole number from 1"),
            ("spawn --run a/b", "--run: 'a/b' is not a valid name"),
            ("path a/b/c", "'b/c' is not a valid name"),
            (
                "spawn -n 1 -c a",
                "the argument '-n <N>' cannot be used with '--candidate <NAME>...'",
            ),
            ("spawn -n 1 -n 2", "the argument '-n <N>' cannot be used multiple times"),
            ("completions", "the following required arguments were not provided: <SHELL>"),
            ("spawn --json=x", "unexpected value 'x' for '--json' found; no more were expected"),
            (
                "judge --rank x",
                "invalid value 'x' for '--rank <BY>' [possible values: blast-radius, agreement, cross, auto]",
            ),
        ];
        for (line, message) in cases {
            assert_eq!(refused(line).0, message, "{line}");
        }
    }

    #[test]
    fn hints_name_the_nearest_word_and_the_help_of_the_command() {
        let cases = [
            ("spwan", vec!["did you mean 'spawn'?", "see `git frites -h`"]),
            ("ls", vec!["the runs are listed by `git frites status`", "see `git frites -h`"]),
            (
                "show 1/c1",
                vec![
                    "a candidate's patch is shown by `git frites diff RUN/CAND`",
                    "see `git frites -h`",
                ],
            ),
            (
                "undo 2",
                vec![
                    "a landing is undone by `git frites apply --undo RUN/CAND`",
                    "see `git frites -h`",
                ],
            ),
            (
                "shell c1",
                vec![
                    "a shell in a worktree is started by `git frites exec RUN/CAND`",
                    "see `git frites -h`",
                ],
            ),
            (
                "spawn 3",
                vec!["for 3 candidates: `git frites spawn -n 3`", "see `git frites spawn -h`"],
            ),
            (
                "run --again 1/c1",
                vec![
                    "this is a command now: `git frites retry RUN/CAND`",
                    "see `git frites run -h`",
                ],
            ),
            (
                "shard open --tset x",
                vec!["did you mean '--test'?", "see `git frites shard open -h`"],
            ),
            (
                "status --porcelain",
                vec!["`--json` prints a document for programs", "see `git frites status -h`"],
            ),
            (
                "judge -c c1",
                vec![
                    "one candidate is judged alone by `--candidate CAND`",
                    "see `git frites judge -h`",
                ],
            ),
            (
                "run --agent claude -n 3",
                vec![
                    "the number belongs to the agent: `--agent NAME=3`",
                    "see `git frites run -h`",
                ],
            ),
            (
                "judge --synthesis off",
                vec![
                    "`judge` makes no synthesis: --synthesis is an option of `git frites run`",
                    "see `git frites judge -h`",
                ],
            ),
            ("judge --tset x", vec!["did you mean '--test'?", "see `git frites judge -h`"]),
            (
                "run make",
                vec![
                    "a command comes after `--`: `git frites run -- make …`",
                    "see `git frites run -h`",
                ],
            ),
            (
                "exec 1/c1 ls",
                vec![
                    "a command comes after `--`: `git frites exec RUN/CAND -- ls …`",
                    "see `git frites exec -h`",
                ],
            ),
            ("shard status", vec!["see `git frites shard -h`"]),
            ("shard jugde", vec!["did you mean 'judge'?", "see `git frites shard -h`"]),
            ("judge --retries 101", vec!["see `git frites judge -h`"]),
        ];
        for (line, hints) in cases {
            assert_eq!(refused(line).1, hints, "{line}");
        }
    }

    #[test]
    fn option_that_has_become_a_command_is_unknown_and_its_command_can_be_typed() {
        for (verb, option, new) in MOVED {
            let (message, hints) = refused(&format!("{verb} {option}"));
            assert_eq!(message, format!("unexpected argument '{option}' found"));
            assert_eq!(hints[0], format!("this is a command now: `git frites {new}`"));
            let words = new.split(' ').map(|word| match word {
                "RUN" | "FILE" | "REV" | "R" => "1",
                "RUN/CAND" => "1/c1",
                "K/N" => "1/1",
                "DUR" => "1m",
                other => other,
            });
            Cli::try_parse_from(["git-frites"].into_iter().chain(words))
                .unwrap_or_else(|e| panic!("{new}: {e}"));
        }
    }
}
