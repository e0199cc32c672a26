//! git-frites: competing attempts at one change, each in its own git worktree, judged by the project's
//! own commands. The contract is docs/DESIGN.md; this crate is the program's inside, not an interface.
#[cfg(not(unix))]
compile_error!("git-frites needs a Unix: Linux or macOS. Windows is not supported yet.");

mod agents;
mod cli;
mod commands;
mod complete;
mod config;
mod ecosystems;
mod error;
mod fs;
mod git;
mod integrity;
mod manual;
mod model;
mod ops;
mod oracle;
mod process;
mod store;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use error::{Error, Result, exit};
use model::nearest::nearest;
use ops::session::Session;
use process::{interrupt, supervisor};
use ui::{ColorChoice, Ui};

/// The program: reads the command line, runs the command, says what went wrong; gives the exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == supervisor::VERB
    {
        return supervisor::main(rest);
    }
    if let Some(code) = complete::answer() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return ExitCode::from(refuse(&e)),
    };
    let (quiet, color) = (cli.quiet(), cli.color);
    let ui = Ui::new(color, quiet);
    let code = dispatch(cli, &ui).unwrap_or_else(|error| {
        ui.error(&error);
        error.kind.code()
    });
    // Whatever was saved in time, a command that was asked to stop did not do all it was asked to do.
    ExitCode::from(interrupt::signal().and_then(|n| u8::try_from(128 + n).ok()).unwrap_or(code))
}

fn dispatch(cli: Cli, ui: &Ui) -> Result<u8> {
    let session = || Session::open(ui.clone());
    match cli.command {
        Command::Spawn(args) => commands::spawn::run(&session()?, &args),
        Command::Run(args) => commands::run::run(&session()?, &args),
        Command::Diff(args) => commands::diff::run(&session()?, &args),
        Command::Judge(args) => commands::judge::run(&session()?, &args),
        Command::Apply(args) => commands::apply::run(&session()?, &args),
        Command::Clean(args) => commands::clean::run(&session()?, &args),
        Command::Status(args) => commands::status::run(&session()?, &args),
        Command::Log(args) => commands::log::run(&session()?, &args),
        Command::Path(args) => commands::path::run(&session()?, &args),
        Command::Config(args) => commands::config::run(&session()?, &args),
        Command::Man(args) => commands::man::run(&args),
        Command::Completions(args) => commands::completions::run(ui, &args),
    }
}

/// Help goes to stdout; a usage error becomes one `fatal:` line and hints, as everywhere else.
fn refuse(e: &clap::Error) -> u8 {
    let ui = Ui::new(ColorChoice::Auto, false);
    if !e.use_stderr() {
        return ui.answer(e.render().to_string()).map_or_else(
            |error| {
                ui.error(&error);
                error.kind.code()
            },
            |()| exit::OK,
        );
    }
    let text = e.render().to_string();
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let help = Cli::command().render_help().to_string();
        help.trim_end().lines().for_each(|line| ui.note(line));
        return exit::USAGE;
    }
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut message = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let mut usage = "";
    for line in lines {
        if let Some(form) = line.strip_prefix("Usage: ") {
            usage = form;
        } else if usage.is_empty()
            && !line.starts_with("tip: ")
            && !line.starts_with("For more information")
        {
            message = format!("{message} {line}");
        }
    }
    let cli = Cli::command();
    // A wrong value comes without a usage line: then the verb is the one that was typed.
    let typed = std::env::args_os().skip(1).filter_map(|arg| arg.into_string().ok());
    let mut words = usage.split_whitespace().nth(2).map(str::to_owned).into_iter().chain(typed);
    let verb = words.find(|word| cli.find_subcommand(word).is_some()).unwrap_or_default();
    let told = |kind| match e.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) => words.first().cloned(),
        _ => None,
    };
    let similar =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let no_verb = || {
        Some(
            nearest(
                cli.get_subcommands().map(clap::Command::get_name),
                &told(ContextKind::InvalidSubcommand)?,
            )?
            .to_owned(),
        )
    };
    let mut error = Error::usage(message);
    if let Some(near) = similar.into_iter().find_map(told).or_else(no_verb) {
        error = error.hint(format!("did you mean '{near}'?"));
    }
    let stray = told(ContextKind::InvalidArg)
        .filter(|arg| e.kind() == ErrorKind::UnknownArgument && !arg.starts_with('-'));
    if let (Some(program), "spawn" | "run") = (stray, verb.as_str()) {
        error =
            error.hint(format!("a command comes after `--`: `git frites {verb} -- {program} …`"));
    }
    let error = error.hint(format!("see `git frites {verb} -h`").replace("  ", " "));
    ui.error(&error);
    error.kind.code()
}
