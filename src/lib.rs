//! git-frites: competing attempts at one change, each in its own git worktree, judged by the
//! project's own commands. The contract is docs/DESIGN.md. This crate is internal to the program,
//! not an API.
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
mod trace;
mod ui;
mod world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory};

use cli::{Cli, Command};
use error::{Error, Result, exit};
use fs::trash;
use ops::clean;
use ops::session::{ReadSession, Session};
use process::{interrupt, protocol, supervisor};
use ui::Ui;

/// The program: reads the command line, runs the command and prints errors. Returns the exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == protocol::VERB
    {
        return supervisor::main(rest);
    }
    if let [verb, root] = &arguments[..]
        && verb == process::EMPTY_TRASH
    {
        process::become_idle();
        return trash::main(root.as_ref());
    }
    if let Some(code) = world::main(&arguments) {
        return code;
    }
    if let Some(code) = complete::answer(Cli::command) {
        return code;
    }
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(e) => return ExitCode::from(refuse(&e)),
    };
    interrupt::keep_exit_codes_of_children();
    let ui = Ui::new(cli.color, cli.quiet, cli.verbose);
    let told = ui.clone();
    interrupt::on_request(move |requests| told.tell_stopping(requests));
    let verbose = cli.verbose;
    let lands = matches!(cli.command, Command::Apply(_));
    let done = trace::start(verbose, &ui).and_then(|()| dispatch(cli, &ui));
    for name in git::ref_list::broken_refs().iter() {
        ui.warn(format!("ignoring broken ref {name}"));
    }
    let done = done.and_then(|code| ui.written().map(|()| code));
    let code = done.map_err(commands::hints::add).unwrap_or_else(|error| {
        tracing::debug!(cause = ?error.cause, error = &error as &dyn std::error::Error, "failed");
        ui.error(&error);
        answer_error(&ui, &error);
        if verbose {
            ui.sources(&error);
        }
        error.kind.code()
    });
    if lands && code == exit::OK {
        // The landing is complete, even if a signal came meanwhile.
        return ExitCode::SUCCESS;
    }
    // A command that was interrupted did not finish its work, even if it ended without an error.
    ExitCode::from(interrupt::signal().and_then(|n| u8::try_from(128 + n).ok()).unwrap_or(code))
}

fn dispatch(cli: Cli, ui: &Ui) -> Result<u8> {
    let session = || Session::open(ui.clone());
    let work_in = |session: Session, command: &dyn Fn(&Session) -> Result<u8>| {
        let done = command(&session);
        clean::start_if_due(&session);
        done
    };
    let work = |command: &dyn Fn(&Session) -> Result<u8>| work_in(session()?, command);
    let read_session = || ReadSession::open(ui.clone());
    match cli.command {
        Command::Spawn(args) => work(&|session| commands::spawn::run(session, &args)),
        Command::Add(args) => work(&|session| commands::add::run(session, &args)),
        Command::Retry(args) => work(&|session| commands::retry::run(session, &args)),
        Command::Run(args) => work(&|session| commands::run::run(session, &args, Cli::parse_run)),
        Command::Diff(args) => work(&|session| commands::diff::run(session, &args)),
        Command::Capture(args) => work(&|session| commands::capture::run(session, &args)),
        Command::Judge(args) => work(&|session| commands::judge::run(session, &args)),
        Command::Shard(command) => {
            work_in(command.session(ui)?, &|session| commands::shard::run(session, &command))
        }
        Command::Apply(args) => work(&|session| commands::apply::run(session, &args)),
        Command::Clean(args) => commands::clean::run(&session()?, &args),
        Command::Status(args) => commands::status::run(&read_session()?, &args),
        Command::Task(args) => commands::task::run(&session()?, &args),
        Command::Log(args) => commands::log::run(&read_session()?, &args),
        Command::Output(args) => commands::output::run(&read_session()?, &args),
        Command::Report(args) => commands::report::run(&session()?, &args),
        Command::Exec(args) => commands::exec::run(&session()?, &args),
        Command::Explain(args) => commands::explain::run(&session()?, &args),
        Command::Path(args) => commands::path::run(&read_session()?, &args),
        Command::Doctor(args) => commands::doctor::run(ui, &args),
        Command::Config(args) => commands::config::run(&session()?, &args),
        Command::Man(args) => commands::man::run(&args, Cli::command()),
        Command::Completions(args) => commands::completions::run(ui, &args),
    }
}

/// Prints an error to stdout, too, if the command line asks for JSON.
fn answer_error(ui: &Ui, error: &Error) {
    let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
    if words.any(|word| word == "--json") {
        ui.error_as_json(error);
    }
}

/// Prints help to stdout, or a usage error as one `fatal:` line and hints. Returns the exit code.
fn refuse(e: &clap::Error) -> u8 {
    let ui = Ui::new(ColorChoice::Auto, false, false);
    if !e.use_stderr() {
        ui.answer(e.render().to_string());
        return match ui.written().map_err(commands::hints::add) {
            Ok(()) => exit::OK,
            Err(error) => {
                ui.error(&error);
                error.kind.code()
            }
        };
    }
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        e.render().to_string().trim_end().lines().for_each(|line| ui.note(line));
        return exit::USAGE;
    }
    let typed: Vec<String> =
        std::env::args_os().skip(1).filter_map(|arg| arg.into_string().ok()).collect();
    let error = commands::usage::error(e, &Cli::command(), &typed);
    ui.error(&error);
    answer_error(&ui, &error);
    error.kind.code()
}
