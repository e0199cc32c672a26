//! The command line: its global options and the list of commands.
use std::mem::ManuallyDrop;

use clap::error::ErrorKind;
use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    add, apply, capture, clean, completions, config, diff, doctor, exec, explain, judge, log, man,
    output, path, report, retry, run, shard, spawn, status, task,
};

/// Run competing attempts at one change, each in its own git worktree; let the project's own build,
/// lint and test commands decide which of them work; land, on a fresh branch, the smallest one that
/// works.
#[derive(Debug, Parser)]
#[command(
    name = "git-frites",
    bin_name = "git frites",
    version,
    max_term_width = 100,
    after_help = "`git frites man tutorial` is a five-minute start; `git frites man judge` shows the page of \
`git frites judge`. Both work without an installed manual, which `git frites --help` needs."
)]
pub struct Cli {
    /// When to use colours: auto, always or never
    #[arg(
        hide_short_help = true,
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        display_order = 900
    )]
    pub color: ColorChoice,
    /// Show each git command that runs, with its exit code and how long it took
    #[arg(hide_short_help = true, short, long, global = true, display_order = 901)]
    pub verbose: bool,
    /// True if the command prints nothing but its bare answer
    #[arg(skip)]
    pub quiet: bool,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, grouped by their purpose, as `git frites -h` lists them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Start attempts", &["run", "spawn", "add", "retry"]),
    ("Look at them", &["status", "diff", "output", "report", "log", "path", "exec"]),
    ("Decide", &["judge", "explain", "apply", "capture", "shard"]),
    ("Keep house", &["clean", "config", "doctor", "task", "completions", "man"]),
];

/// The kinds of errors by which clap says that help must be printed.
const HELP: [ErrorKind; 2] =
    [ErrorKind::DisplayHelp, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];

/// The command line, whose help lists the commands in groups.
fn with_grouped_help() -> clap::Command {
    let command = Cli::command();
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        let verbs = names.iter().filter_map(|name| command.find_subcommand(name).cloned());
        let mut group = clap::Command::new("group")
            .disable_help_subcommand(true)
            .max_term_width(100)
            .help_template("{subcommands}")
            .subcommands(verbs);
        let list = group.render_help().to_string();
        groups.push_str(&format!("{heading}:\n{}\n\n", list.trim_end()));
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

impl Cli {
    /// Reads the command line of this process. A request for help is an error, too.
    pub fn read() -> Result<Cli, clap::Error> {
        // Dropping the description of the command line would take a tenth of the start-up time.
        let mut command = ManuallyDrop::new(Cli::command());
        let matches = match command.try_get_matches_from_mut(std::env::args_os()) {
            // Building the groups takes a third of the start-up time, and only help needs them.
            Err(e) if HELP.contains(&e.kind()) => with_grouped_help().try_get_matches()?,
            matches => matches?,
        };
        Ok(Cli { quiet: is_quiet(&matches), ..Cli::from_arg_matches(&matches)? })
    }

    /// The arguments of `run`, from the words after the program's name; `None` if these are invalid
    /// or name another command.
    pub fn parse_run(words: &[String]) -> Option<run::RunArgs> {
        let program = "git-frites".to_owned();
        match Cli::try_parse_from([&program].into_iter().chain(words)).ok()?.command {
            Command::Run(args) => Some(*args),
            _ => None,
        }
    }
}

/// True if `-q` is given to the command or to its subcommand.
fn is_quiet(matches: &ArgMatches) -> bool {
    let given = matches.try_get_one("quiet").ok().flatten();
    given == Some(&true) || matches.subcommand().is_some_and(|(_, inner)| is_quiet(inner))
}

// With `defer`, clap builds the arguments of one command only: the command that was typed. It adds
// them after it has set that command's description. A doc comment on the struct of the arguments
// would replace this description, so these structs have none.
/// The commands.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Create candidates, each with a worktree and a branch; run a command in each if one is given
    Spawn(spawn::SpawnArgs),
    /// Add candidates to a run: more attempts, a change that was made elsewhere, or a synthesis
    Add(add::AddArgs),
    /// Give a candidate another round in its worktree
    Retry(retry::RetryArgs),
    /// Spawn and judge in one step, and recommend a candidate
    Run(Box<run::RunArgs>),
    /// Show what candidates changed
    Diff(diff::DiffArgs),
    /// Store the current state of candidates as iterations, with a message if you like
    #[command(alias = "checkpoint")]
    Capture(capture::CaptureArgs),
    /// Run the project's own commands on each candidate, and recommend one
    Judge(judge::JudgeArgs),
    /// Judge a run, or make its attempts, in parts on several machines
    #[command(subcommand)]
    Shard(shard::ShardCommand),
    /// Say why the verdict is as it is, without running anything
    Explain(explain::ExplainArgs),
    /// Land a passing candidate: on a fresh branch, or by a merge
    Apply(apply::ApplyArgs),
    /// Remove the worktrees and branches of runs; captures are kept
    Clean(clean::CleanArgs),
    /// List runs and candidates
    Status(status::StatusArgs),
    /// Bind a run or a candidate to a task, or show what it is bound to
    Task(task::TaskArgs),
    /// Show the event log
    Log(log::LogArgs),
    /// Show the output of an attempt's command, or of a command that judged the attempt
    #[command(alias = "logs")]
    Output(output::OutputArgs),
    /// Write a page that shows a run: its verdict, every change, the ends of the logs
    Report(report::ReportArgs),
    /// Run a command, or your shell, in a candidate's worktree, with its environment
    Exec(exec::ExecArgs),
    /// Print the path of a candidate's worktree
    Path(path::PathArgs),
    /// Show the effective configuration, and where each value comes from
    Config(config::ConfigArgs),
    /// Show which features of git-frites this machine supports, and which a run here would use
    Doctor(doctor::DoctorArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Show a manual page
    Man(man::ManArgs),
}
