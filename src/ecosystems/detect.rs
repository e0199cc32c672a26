//! Detection of the project's own commands in the base's files, if neither options nor the
//! configuration name any.
//!
//! Each detector proposes commands that belong together. Proposals are compared by these
//! properties, in this order:
//! * whether they have a test;
//! * whether the project's CI runs that test;
//! * how good the evidence in files is;
//! * how many source files their language has.
//!
//! The first proposal is taken whole. If a detector cannot parse its file, the file's commands are
//! unknown. That is an error, unless the proposal of an earlier detector is taken.
use std::cmp::Reverse;
use std::fmt;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::languages::is_hidden_or_installed;
use crate::ecosystems::project::{Evidence, RootFiles};
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;
use crate::process;

/// The commands found in a commit's files.
#[derive(Debug, Default)]
pub struct Detected {
    /// The commands to run, in the order of their stages.
    pub commands: Vec<OracleCommand>,
    /// The commands that do not run, with the reasons.
    pub passed_over: Vec<PassedOver>,
}

/// A command that does not run, although it is configured or the base's files show it.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedOver {
    /// The command; `None` if its file could not be read.
    pub command: Option<OracleCommand>,
    /// The reason why it does not run, or [`CI_RUNS`].
    pub reason: String,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        match &self.command {
            Some(c) => {
                write!(f, "passed over: {} `{}`, from {}: {reason}", c.stage, c.command, c.source)
            }
            None => write!(f, "passed over: {reason}"),
        }
    }
}

/// Commands that belong together, and the evidence for them.
struct Proposal {
    commands: Vec<OracleCommand>,
    evidence: Evidence,
    /// True if CI runs the proposal's test.
    is_in_ci: bool,
    /// The number of source files in the language of its detector.
    sources: usize,
    /// The place of its detector among all detectors.
    place: usize,
}

impl Proposal {
    fn command(&self, stage: Stage) -> Option<&OracleCommand> {
        self.commands.iter().find(|command| command.stage == stage)
    }

    fn tests(&self) -> bool {
        self.command(Stage::Test).is_some()
    }

    /// The main command of the proposal: its test, or else its first command that is not a setup.
    fn main_command(&self) -> Option<&OracleCommand> {
        let first = || self.commands.iter().find(|command| command.stage != Stage::Setup);
        self.command(Stage::Test).or_else(first)
    }

    /// The text that says why this proposal comes before `other`. It names the two by their files,
    /// or by their commands if both come from one file.
    fn why_before(&self, other: &Proposal) -> String {
        let why = match self.command(Stage::Test) {
            Some(test) if self.is_in_ci && !other.is_in_ci => {
                format!(", because CI runs a command like `{}`", test.command)
            }
            Some(_) if !other.tests() => ", because it has a test".to_owned(),
            _ => String::new(),
        };
        let (Some(own), Some(other)) = (self.main_command(), other.main_command()) else {
            return format!("another comes first{why}");
        };
        if own.source == other.source {
            format!("`{}` comes before `{}`{why}", own.command, other.command)
        } else {
            format!("{} comes before {}{why}", own.source, other.source)
        }
    }
}

/// Finds the commands in a commit's files: those to run, and those that are passed over. The result
/// is empty if no file shows a command.
pub fn detect(repo: &Repo, commit: &Oid) -> Result<Detected> {
    let files = RootFiles::of_commit(repo, commit)?;
    let mut proposals = Vec::new();
    let mut failures: Vec<(usize, Error)> = Vec::new();
    let detectors = ALL.iter().flat_map(|e| e.detectors.iter().map(move |d| (*e, d)));
    for (place, (ecosystem, (evidence, find))) in detectors.enumerate() {
        match find(&files) {
            Ok(mut commands) => {
                commands.sort_by_key(|c| c.stage);
                if commands.iter().any(|c| c.stage != Stage::Setup) {
                    let test = commands.iter().find(|c| c.stage == Stage::Test);
                    let is_in_ci = test.is_some_and(|test| files.ci().runs(test));
                    let evidence = *evidence;
                    let sources = sources_of(ecosystem, &files);
                    proposals.push(Proposal { commands, evidence, is_in_ci, sources, place });
                }
            }
            Err(error) => failures.push((place, error)),
        }
    }
    proposals.extend(script_of_ci(&files, &proposals));
    proposals
        .sort_by_key(|p| Reverse((p.tests(), p.is_in_ci, p.evidence, p.sources, Reverse(p.place))));
    let first = proposals.first().map(|p| p.place);
    if let Some(at) =
        failures.iter().position(|(place, _)| first.is_none_or(|first| *place < first))
    {
        return Err(failures.swap_remove(at).1);
    }
    let unreadable = failures.into_iter().map(|(_, error)| error.message);
    let mut found = choose(&files, proposals);
    found.passed_over.extend(unreadable.map(|reason| PassedOver { command: None, reason }));
    if !found.commands.iter().any(|command| command.stage == Stage::Test) {
        found.passed_over.extend(files.ci().files.iter().map(|path| PassedOver {
            command: None,
            reason: format!(
                "{path}: git-frites knows no command for tests there; give one: `--test CMD`"
            ),
        }));
    }
    Ok(found)
}

/// The number of source files of an ecosystem, without hidden and installed files.
fn sources_of(ecosystem: &Ecosystem, files: &RootFiles<'_>) -> usize {
    let all = [ecosystem.extensions, ecosystem.other_extensions].concat();
    let is_source = |path: &str| path.rsplit_once('.').is_some_and(|(_, end)| all.contains(&end));
    let is_own = |path: &&String| is_source(path) && !is_hidden_or_installed(path);
    files.paths().iter().filter(is_own).count()
}

/// A proposal with the first script of the project that runs tests in CI; `None` if a proposal has
/// a test.
fn script_of_ci(files: &RootFiles<'_>, proposals: &[Proposal]) -> Option<Proposal> {
    if proposals.iter().any(Proposal::tests) {
        return None;
    }
    let is_tracked = |command: &OracleCommand| match &command.command {
        CommandLine::Argv(words) => words.first().is_some_and(|program| {
            let path = program.strip_prefix("./").unwrap_or(program);
            program.contains('/') && files.paths().iter().any(|tracked| tracked == path)
        }),
        CommandLine::Shell(_) => false,
    };
    let script = files.ci().other_tests(None).into_iter().find(is_tracked)?;
    let mut commands: Vec<OracleCommand> =
        proposals.first().map(|proposal| proposal.commands.clone()).unwrap_or_default();
    commands.push(script);
    let evidence = Evidence::Recipe;
    Some(Proposal { commands, evidence, is_in_ci: true, sources: 0, place: usize::MAX })
}

/// Takes the first proposal. If it has no lint, adds the first lint that another proposal found in
/// a recipe.
fn choose(files: &RootFiles<'_>, proposals: Vec<Proposal>) -> Detected {
    let mut found = Detected::default();
    let mut rest = proposals.into_iter();
    let Some(first) = rest.next() else { return found };
    let others: Vec<Proposal> = rest.collect();
    found.commands = first.commands.clone();
    let recipes = others.iter().filter(|other| other.evidence == Evidence::Recipe);
    let lint = recipes.filter_map(|other| other.command(Stage::Lint)).next();
    if first.command(Stage::Lint).is_none()
        && let Some(lint) = lint
    {
        found.commands.push(lint.clone());
        found.commands.sort_by_key(|c| c.stage);
    }
    let is_missing = |command: &OracleCommand| {
        let program = command.command.argv().first().cloned().unwrap_or_default();
        let name = program.to_string_lossy();
        command.stage == Stage::Lint && !process::on_path(&program) && !files.ci().names(&name)
    };
    let (missing, commands): (Vec<_>, Vec<_>) = found.commands.into_iter().partition(is_missing);
    found.commands = commands;
    found.passed_over.extend(missing.into_iter().map(|command| PassedOver {
        command: Some(command),
        reason: "it is not installed, and no CI file names it".to_owned(),
    }));
    for other in &others {
        let why = first.why_before(other);
        for command in other.commands.iter().filter(|c| !found.commands.contains(c)) {
            // One setup may belong to several tests, and is listed with each of them. A build or a
            // lint is listed once.
            let belongs = matches!(command.stage, Stage::Setup | Stage::Test);
            let is_told = found.passed_over.iter().any(|p| p.command.as_ref() == Some(command));
            if belongs || !is_told {
                // A setup may come from another file than its test, so its reason names the test.
                let reason = match (command.stage, other.main_command()) {
                    (Stage::Setup, Some(main)) => {
                        format!("it is for `{}`, which is passed over", main.command)
                    }
                    _ => why.clone(),
                };
                found.passed_over.push(PassedOver { command: Some(command.clone()), reason });
            }
        }
    }
    let test = first.command(Stage::Test);
    let of_ci = files.ci().other_tests(test).into_iter();
    let of_ci = of_ci.filter(|command| !found.commands.contains(command));
    found.passed_over.extend(
        of_ci.map(|command| PassedOver { command: Some(command), reason: CI_RUNS.to_owned() }),
    );
    found
}

/// The remark on a command that CI runs and git-frites does not.
pub const CI_RUNS: &str = "CI runs it, too, but git-frites runs only one test command";
