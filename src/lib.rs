//! git-frites: competing attempts at one change, each in its own git worktree, judged by the project's
//! own commands. The contract is docs/DESIGN.md; this crate is the program's inside, not an interface.
#[cfg(not(unix))]
compile_error!("git-frites needs a Unix: Linux or macOS. Windows is not supported yet.");

mod agents;
mod cli;
mod commands;
mod complete;
mod config;
mod error;
mod funnel;
mod git;
mod manual;
mod model;
mod oracle;
mod process;
mod store;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use error::{Error, Result, exit};
use funnel::session::Session;
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
        Command::Man(args) => commands::man::run(ui, &args),
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
    if e.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let help = Cli::command().render_help().to_string();
        ui.note(help.trim_end());
        return exit::USAGE;
    }
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let mut message = first.to_owned();
    let mut hints = Vec::new();
    let mut usage = String::new();
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if let Some(form) = line.strip_prefix("Usage: ") {
            usage = form.to_owned();
        } else if !line.starts_with("For more information") && usage.is_empty() {
            message = format!("{message} {line}");
        }
    }
    // A wrong value comes without a usage line: then the verb is the one that was typed.
    let typed = std::env::args_os().skip(1).filter_map(|arg| arg.into_string().ok());
    let mut words = usage.split_whitespace().nth(2).map(str::to_owned).into_iter().chain(typed);
    let verb = words.find(|word| Cli::command().find_subcommand(word).is_some()).unwrap_or_default();
    hints.push(format!("see `git frites {verb} -h`").replace("  ", " "));
    let error = hints.into_iter().fold(Error::usage(message), Error::hint);
    ui.error(&error);
    error.kind.code()
}
