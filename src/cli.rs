//! The command line: clap types and help text, nothing else.
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::model::ranking::Rank;
use crate::ui::ColorChoice;

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
    Spawn(Spawn),
    /// Spawn, judge and recommend in one go
    Run(Run),
    /// Show what candidates changed
    Diff(Diff),
    /// Run the project's own commands on each candidate and recommend one
    Judge(Judge),
    /// Land a candidate that passed on a fresh branch
    Apply(Apply),
    /// Remove worktrees and branches of runs; captures are kept
    Clean(Clean),
    /// List runs and candidates
    Status(Status),
    /// Show what happened
    Log(Log),
    /// Print the path of a candidate's worktree
    Path(Path),
    /// Show the configuration that counts, and where it comes from
    Config(Config),
    /// Print the script that makes a shell complete
    Completions(Completions),
    /// Show a page of the manual
    Man(Man),
}

/// What a run is made of: the options that `spawn` and `run` share.
#[derive(Debug, Args)]
pub struct Making {
    /// How many candidates to make, named c1, c2, …  [default: 2]
    #[arg(short = 'n', value_name = "N", conflicts_with = "candidates", value_parser = count)]
    pub count: Option<u32>,
    /// Name the candidates instead
    #[arg(short = 'c', long = "candidate", value_name = "NAME", num_args = 1..)]
    pub candidates: Vec<String>,
    /// Name the run instead of numbering it
    #[arg(long, value_name = "RUN", allow_hyphen_values = true)]
    pub run: Option<String>,
    /// The commit that every candidate starts from  [default: HEAD]
    #[arg(long, value_name = "REV", allow_hyphen_values = true, conflicts_with = "from")]
    pub base: Option<String>,
    /// Start from what this candidate holds now
    #[arg(long, value_name = "RUN/CAND")]
    pub from: Option<String>,
    /// Say what the run is for: an issue's number, say; `status` shows it
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Let an agent work in K worktrees, named NAME-1, NAME-2, …; repeat it to mix agents
    #[arg(long = "agent", value_name = "NAME[=K]", conflicts_with_all = ["count", "candidates", "command"])]
    pub agents: Vec<String>,
    /// What the commands are asked to do; - reads it from standard input
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub prompt: Option<String>,
    /// The same, from a file
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// How many commands run at once  [default: spawn.jobs, or the number of processors]
    #[arg(short, long, value_name = "JOBS", value_parser = count)]
    pub jobs: Option<u32>,
    /// End a command that takes longer, with all it started  [default: spawn.timeout, or 1h]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// End a command that prints nothing for so long  [default: spawn.idle-timeout, or never]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// Capture running candidates so often: each becomes an iteration
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub auto_checkpoint: Option<Duration>,
    /// Keep the worktree of a candidate whose command changed nothing
    #[arg(long)]
    pub keep: bool,
    /// The command to run in each worktree
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `git frites spawn`
#[derive(Debug, Args)]
#[command(
    after_help = "Prints RUN/CANDIDATE<TAB>PATH for each candidate. A command after -- runs in each worktree as it \
stands, never through a shell; {run} {candidate} {index} {worktree} {prompt} {prompt_file} in its arguments are replaced. \
It reads the prompt as its standard input, unless its arguments take it.\n\n\
Exit status: 0 if at least one candidate is open or usable, 4 if none is."
)]
pub struct Spawn {
    /// What to make
    #[command(flatten)]
    pub making: Making,
    /// Run another command in this candidate's worktree: its next iteration
    #[arg(long, value_name = "RUN/CAND", conflicts_with_all = ["count", "candidates", "run", "base", "from", "task"])]
    pub again: Option<String>,
    /// Add a candidate to the run named with --run, to integrate those that passed
    #[arg(long, requires = "run", conflicts_with_all = ["again", "count", "candidates", "base", "from", "task", "prompt", "prompt_file"])]
    pub synthesize: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print the run's id alone
    #[arg(short, long)]
    pub quiet: bool,
}

/// How candidates are judged: the options that `judge` and `run` share.
#[derive(Debug, Args)]
pub struct Judging {
    /// The build command, run by sh -c
    #[arg(long, value_name = "CMD")]
    pub build: Option<String>,
    /// The lint command, run by sh -c
    #[arg(long, value_name = "CMD")]
    pub lint: Option<String>,
    /// The test command, run by sh -c
    #[arg(long, value_name = "CMD")]
    pub test: Option<String>,
    /// Try a command that failed again, up to K times  [default: oracle.retries, or 0]
    #[arg(long, value_name = "K", value_parser = retries)]
    pub retries: Option<u32>,
    /// Put these paths back to the base's version before judging and landing, with those of oracle.protect
    #[arg(long, value_name = "PATHSPEC")]
    pub protect: Vec<String>,
    /// Judge the base, too, to tell what failed there before
    #[arg(long)]
    pub baseline: bool,
    /// Stop as soon as the recommended candidate cannot change any more
    #[arg(long)]
    pub until_pass: bool,
    /// What ranks those that passed  [default: oracle.rank, or blast-radius]
    #[arg(long, value_name = "BY")]
    pub rank: Option<Rank>,
    /// Keep ignored build directories from one candidate to the next
    #[arg(long)]
    pub warm: bool,
    /// Run everything, whatever is known from before
    #[arg(long)]
    pub no_cache: bool,
}

/// `git frites run`
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "Does what spawn and judge do, one after the other, and shows how far it is. What can be made of several \
candidates that passed is tried, too, when an agent or a command with a prompt is at work: see [synthesis].\n\n\
Interrupted, it can go on: --resume starts what has not ended, with the options that the run was started with; more \
options change them.\n\n\
Exit status: that of judge: 0 a verified winner, 1 none passed, 3 nothing to run, 4 no usable candidate."
)]
pub struct Run {
    /// What to make
    #[command(flatten)]
    pub making: Making,
    /// How to judge
    #[command(flatten)]
    pub judging: Judging,
    /// How many candidates are judged at once  [default: 1]
    #[arg(long, value_name = "JOBS", value_parser = count)]
    pub oracle_jobs: Option<u32>,
    /// End a build, lint or test command that takes longer  [default: oracle.timeout, or 10m]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub oracle_timeout: Option<Duration>,
    /// Go on with a run that was interrupted
    #[arg(long, value_name = "RUN", conflicts_with_all = ["count", "candidates", "run", "base", "from", "task", "agents", "prompt", "prompt_file", "command"])]
    pub resume: Option<String>,
    /// Merge a verified winner into the current branch
    #[arg(long)]
    pub merge: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print the winner's address alone, and nothing if there is none
    #[arg(short, long)]
    pub quiet: bool,
}

/// `git frites diff`
#[derive(Debug, Args)]
#[command(
    after_help = "RUN/CAND prints the patch, RUN one line for each candidate; with a format option, that format for \
each, after a line `# RUN/CAND`. Two candidates are compared with each other. Candidates are captured first.\n\n\
Exit status: 0; with --exit-code, 1 if there are differences."
)]
pub struct Diff {
    /// What to show: RUN, RUN/CAND, RUN/CAND@ITERATION, or a candidate of the newest run
    #[arg(value_name = "RUN[/CAND[@N]]")]
    pub address: Option<String>,
    /// Another candidate, to compare with the first
    #[arg(value_name = "CAND2")]
    pub other: Option<String>,
    /// Show a histogram of changed lines
    #[arg(long, group = "format")]
    pub stat: bool,
    /// Show counts for programs
    #[arg(long, group = "format")]
    pub numstat: bool,
    /// Show a letter and the path
    #[arg(long, group = "format")]
    pub name_status: bool,
    /// Show the paths alone
    #[arg(long, group = "format")]
    pub name_only: bool,
    /// Show the patch
    #[arg(short, long, group = "format")]
    pub patch: bool,
    /// End records with NUL, and do not quote paths
    #[arg(short = 'z')]
    pub nul: bool,
    /// Show the last capture, whatever the worktree holds now
    #[arg(long)]
    pub no_capture: bool,
    /// Exit with 1 if there are differences
    #[arg(long)]
    pub exit_code: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// `git frites judge`
#[derive(Debug, Args)]
#[command(
    after_help = "Each distinct tree is checked out alone, outside your checkout, and setup, build, lint and test run \
there, stopping at the first that does not exit 0. Commands come from these options, else from configuration, else from \
what the base's files show. Outcomes are known for a day: the same commands do not run again on the same tree.\n\n\
Exit status: 0 a verified winner, 1 none passed, 3 unverified (nothing to run, judged --in-place, or git's \
configuration changed meanwhile), 4 no usable candidate."
)]
pub struct Judge {
    /// The run to judge  [default: the newest]
    #[arg(value_name = "RUN")]
    pub address: Option<String>,
    /// Judge this candidate alone and store its outcomes; --replay decides once all are judged
    #[arg(long = "candidate", value_name = "CAND")]
    pub candidates: Vec<String>,
    /// How to judge
    #[command(flatten)]
    pub judging: Judging,
    /// How many candidates are judged at once
    #[arg(short, long, value_name = "JOBS", default_value_t = 1, value_parser = count)]
    pub jobs: u32,
    /// End a command that takes longer, with all it started  [default: oracle.timeout, or 10m]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Judge in the worktrees themselves: quicker, and never verified
    #[arg(long, conflicts_with_all = ["warm", "baseline", "protect"])]
    pub in_place: bool,
    /// Say which commands are run and why those, and how the ranking comes about
    #[arg(long)]
    pub explain: bool,
    /// Accept the configuration as it is now, whatever changed in it while commands ran
    #[arg(long)]
    pub trust_config: bool,
    /// Decide again from the stored outcomes, without running anything
    #[arg(long, conflicts_with_all = ["build", "lint", "test", "candidates", "retries", "protect", "baseline",
        "until_pass", "in_place", "warm", "no_cache", "timeout"])]
    pub replay: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print the winner's address alone, and nothing if there is none
    #[arg(short, long)]
    pub quiet: bool,
}

/// `git frites apply`
#[derive(Debug, Args)]
#[command(
    after_help = "Lands on a fresh branch frites/apply/RUN and goes there, the change staged; with --merge it merges \
what passed instead. Prints the branch. Nothing is touched before the landed tree is known and every check has passed.\n\n\
Exit status: 0; 1 if nothing verified is there to land, or landing would lose something; 128 if it cannot be done."
)]
pub struct Apply {
    /// What to land: a run's winner, or one candidate or iteration of it  [default: the newest run]
    #[arg(value_name = "RUN[/CAND[@N]]")]
    pub address: Option<String>,
    /// The branch to make  [default: frites/apply/RUN]
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Commit with a message made from the verdict
    #[arg(long, conflicts_with = "message")]
    pub commit: bool,
    /// Commit with this message; repeat it for more paragraphs
    #[arg(short, long, value_name = "MSG")]
    pub message: Vec<String>,
    /// Make the commit on the branch without touching the checkout
    #[arg(long)]
    pub no_switch: bool,
    /// Skip the pre-commit and commit-msg hooks
    #[arg(long)]
    pub no_verify: bool,
    /// Land what was judged, although the worktree has changed since
    #[arg(long)]
    pub judged: bool,
    /// Land what did not pass
    #[arg(long)]
    pub allow_unverified: bool,
    /// Do not judge again a tree that was merged with a base that moved
    #[arg(long)]
    pub no_rejudge: bool,
    /// Leave conflicts on the fresh branch, to be resolved there
    #[arg(long, conflicts_with_all = ["merge", "no_switch", "commit", "message"])]
    pub conflicts: bool,
    /// Merge into the current branch, or where --into says, with a merge commit
    #[arg(long, conflicts_with_all = ["branch", "no_switch", "commit"])]
    pub merge: bool,
    /// Merge into this candidate (RUN/CAND), or into a branch that is checked out nowhere
    #[arg(long, value_name = "TARGET", requires = "merge")]
    pub into: Option<String>,
    /// Settle conflicts: each file whole from the side that wrote it later
    #[arg(long, value_name = "STRATEGY", requires = "merge")]
    pub strategy: Option<Strategy>,
    /// Take a landing back: revert the merge, or delete the fresh branch
    #[arg(long, conflicts_with_all = ["branch", "commit", "message", "no_switch", "judged", "allow_unverified", "no_rejudge", "no_verify", "conflicts", "merge"])]
    pub undo: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print the branch alone
    #[arg(short, long)]
    pub quiet: bool,
}

/// How a merge settles conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Strategy {
    /// Each conflicted file, whole, from the side that wrote it later; from the candidate if neither did
    NewestFileWins,
}

/// `git frites clean`
#[derive(Debug, Args)]
#[command(
    after_help = "Unsaved work is captured first; what cannot be captured is never removed without --discard. \
Captures stay under refs/frites/ until --forget.\n\n\
Exit status: 0; 1 if something was left because it would have been lost."
)]
pub struct Clean {
    /// The runs or candidates to remove  [default: the newest run]
    #[arg(value_name = "RUN[/CAND]")]
    pub addresses: Vec<String>,
    /// Remove all runs
    #[arg(long, conflicts_with = "addresses")]
    pub all: bool,
    /// Remove only what is older than [retention] says: landed, failed or abandoned; of all runs unless some are named
    #[arg(long, conflicts_with_all = ["all", "discard", "forget"])]
    pub expired: bool,
    /// Mark for review, and remove nothing: what is kept never expires
    #[arg(long, conflicts_with_all = ["all", "expired", "discard", "forget"])]
    pub keep: bool,
    /// Take that mark away
    #[arg(long, conflicts_with_all = ["keep", "all", "expired", "discard", "forget"])]
    pub no_keep: bool,
    /// Remove worktrees with the work in them that is not captured
    #[arg(long)]
    pub discard: bool,
    /// Remove captures and records, too: the run is gone for good
    #[arg(long)]
    pub forget: bool,
    /// Show what would be removed
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but problems
    #[arg(short, long)]
    pub quiet: bool,
}

/// `git frites status`
#[derive(Debug, Args)]
pub struct Status {
    /// One run or candidate  [default: all runs]
    #[arg(value_name = "RUN[/CAND]")]
    pub address: Option<String>,
    /// Look again every second until nothing runs any more; where it cannot be drawn over, print what changes
    #[arg(short, long, conflicts_with = "json")]
    pub watch: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `git frites log`
#[derive(Debug, Args)]
pub struct Log {
    /// One run's events  [default: all]
    #[arg(value_name = "RUN")]
    pub address: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `git frites path`
#[derive(Debug, Args)]
#[command(after_help = "For a shell function: fcd() { cd \"$(git frites path \"$@\")\"; }")]
pub struct Path {
    /// The candidate; a run with one candidate is enough
    #[arg(value_name = "RUN/CAND")]
    pub address: Option<String>,
}

/// `git frites config`
#[derive(Debug, Args)]
#[command(
    after_help = "Shows every key with its value and where that comes from: .frites.toml at the root of your \
checkout, git's configuration (`git config frites.KEY VALUE`), or a variable such as FRITES_ORACLE_TEST; a later one of \
these wins.\n\n\
Exit status: 0; 1 if KEY is set nowhere and has no default."
)]
pub struct Config {
    /// Print the value of this key alone
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
    /// Write a .frites.toml that shows every key, unless there is one
    #[arg(long, conflicts_with_all = ["key", "json"])]
    pub init: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `git frites completions`
#[derive(Debug, Args)]
#[command(
    after_help = "`make install` puts them where shells look. By hand: source the script in your shell's \
startup file, for bash after git's own completion. It completes `git frites` and `git-frites`."
)]
pub struct Completions {
    /// Your shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `git frites man`
#[derive(Debug, Args)]
pub struct Man {
    /// A command, or `tutorial`  [default: the page about all]
    #[arg(value_name = "PAGE")]
    pub page: Option<String>,
    /// Write all pages to this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    pub write: Option<PathBuf>,
}

/// The shells that can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

fn count(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|n| *n > 0).ok_or("it takes a whole number from 1")
}

fn retries(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|n| *n <= 100).ok_or("it takes a whole number from 0 to 100")
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    crate::config::value::parse_duration(text).ok_or("a duration is written 90s, 10m or 1h30m")
}
