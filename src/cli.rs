//! The command line: clap types and help text, nothing else.
use clap::{ColorChoice, Parser, Subcommand};

use crate::commands::apply::ApplyArgs;
use crate::commands::clean::CleanArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::diff::DiffArgs;
use crate::commands::judge::JudgeArgs;
use crate::commands::log::LogArgs;
use crate::commands::man::ManArgs;
use crate::commands::path::PathArgs;
use crate::commands::run::RunArgs;
use crate::commands::spawn::SpawnArgs;
use crate::commands::status::StatusArgs;
use crate::ui::ColorMode;

/// Run competing attempts at one change, each in its own git worktree; let the project's own build,
/// lint and test commands decide which of them work; land the smallest one that does on a fresh branch.
#[derive(Debug, Parser)]
#[command(
    name = "git-frites",
    bin_name = "git frites",
    version,
    max_term_width = 100,
    after_help = "`git frites man tutorial` is a first hour, the first part of it five minutes; `git frites man judge` \
shows a command's page."
)]
pub struct Cli {
    /// When to use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        display_order = 900
    )]
    pub color: ColorChoice,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// When to use colours.
    pub fn color_mode(&self) -> ColorMode {
        match self.color {
            ColorChoice::Auto => ColorMode::Auto,
            ColorChoice::Always => ColorMode::Always,
            ColorChoice::Never => ColorMode::Never,
        }
    }

    /// Whether the verb was asked for its bare answer only.
    pub fn quiet(&self) -> bool {
        match &self.command {
            Command::Spawn(a) => a.quiet,
            Command::Run(a) => a.quiet,
            Command::Judge(a) => a.quiet,
            Command::Apply(a) => a.quiet,
            Command::Clean(a) => a.quiet,
            Command::Diff(_)
            | Command::Status(_)
            | Command::Log(_)
            | Command::Path(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::Man(_) => false,
        }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make candidates, a worktree and a branch each, and run a command in them if given
    Spawn(SpawnArgs),
    /// Spawn, judge and recommend in one go
    Run(RunArgs),
    /// Show what candidates changed
    Diff(DiffArgs),
    /// Run the project's own commands on each candidate and recommend one
    Judge(JudgeArgs),
    /// Land a candidate that passed on a fresh branch
    Apply(ApplyArgs),
    /// Remove worktrees and branches of runs; captures are kept
    Clean(CleanArgs),
    /// List runs and candidates
    Status(StatusArgs),
    /// Show what happened
    Log(LogArgs),
    /// Print the path of a candidate's worktree
    Path(PathArgs),
    /// Show the configuration that counts, and where it comes from
    Config(ConfigArgs),
    /// Print the script that makes a shell complete
    Completions(CompletionsArgs),
    /// Show a page of the manual
    Man(ManArgs),
}
