//! `git frites spawn`: creates candidates, and runs a command in each.
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap_complete::engine::ArgValueCompleter;
use serde_json::json;

use crate::commands::spawn_args::{self, SharedSpawnArgs};
use crate::commands::{limited_hints, notify, resume_hint, values};
use crate::complete;
use crate::config::keys;
use crate::error::{Error, ErrorKind, IoContext, Result, exit};
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::mirror::{self, MirrorUse};
use crate::ops::repair;
use crate::ops::session::Session;
use crate::ops::spawn::add::{self, ChangeSource};
use crate::ops::spawn::attempt::{self, AttemptOptions, AttemptReport};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::synthesis;
use crate::ops::spawn::{self, SpawnedRun, later, on_node};
use crate::process::interrupt;
use crate::store::candidate::CandidateRef;
use crate::store::select::Matching;
use crate::ui::{Ui, json};

// `git frites spawn`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints RUN/CANDIDATE<TAB>PATH for each candidate, without a path if its worktree was removed. The command after -- runs in each \
worktree, never through a shell. {run}, {candidate}, {index}, {worktree}, \
{prompt} and {prompt_file} in its arguments are replaced by their values. The command reads \
the prompt from standard input, unless an argument contains {prompt} or {prompt_file}.\n\n\
Exit status: 0 if at least one candidate is open or usable, 4 if none is."
)]
pub struct SpawnArgs {
    /// The candidates and their commands
    #[command(flatten)]
    pub shared: SharedSpawnArgs,
    /// Run another command in this candidate's worktree; the result is its next iteration
    #[arg(
        long,
        value_name = "RUN/CAND",
        value_parser = values::address,
        add = ArgValueCompleter::new(complete::addresses),
        conflicts_with_all = ["count", "candidates", "run", "base", "from", "task"],
    )]
    pub again: Option<Address>,
    /// With --again, tell the command why the candidate failed when it was judged last
    #[arg(long, requires = "again")]
    pub repair: bool,
    /// With --again, run the same command again without asking
    #[arg(long, requires = "again")]
    pub yes: bool,
    /// Add to the run of --run a candidate made from those that passed
    #[arg(
        long,
        requires = "run",
        conflicts_with_all = [
            "again", "count", "candidates", "base", "from", "task", "prompt", "prompt_file",
        ],
    )]
    pub synthesize: bool,
    /// Add candidates to the run of --run: one, or as many as -n, -c or --agent say
    #[arg(
        long,
        requires = "run",
        conflicts_with_all = ["again", "synthesize", "base", "from", "task"],
    )]
    pub add: bool,
    /// Begin the new candidates of --add with this patch; - reads it from standard input
    #[arg(long, value_name = "FILE", requires = "add", conflicts_with = "commit")]
    pub patch: Option<PathBuf>,
    /// Begin the new candidates of --add with the change of this commit or branch
    #[arg(
        long,
        value_name = "REV",
        requires = "add",
        allow_hyphen_values = true,
        add = ArgValueCompleter::new(complete::revisions),
    )]
    pub commit: Option<String>,
    /// Make the run and start nothing: other machines start its commands with --resume. With
    /// --remote, push it
    #[arg(
        long,
        conflicts_with_all = [
            "again", "synthesize", "add", "resume", "jobs", "timeout", "idle_timeout",
            "auto_checkpoint", "keep",
        ],
        group = "done-with-remote",
    )]
    pub later: bool,
    /// Run the command of one candidate of this run, named by -c, and push its capture
    #[arg(
        long,
        value_name = "RUN",
        value_parser = values::name,
        add = ArgValueCompleter::new(complete::runs),
        requires_all = ["remote", "candidates"],
        conflicts_with_all = [
            "again", "synthesize", "add", "count", "run", "base", "from", "task", "agents", "prompt",
            "prompt_file", "jobs", "command", "json",
        ],
        group = "done-with-remote",
    )]
    pub resume: Option<Name>,
    /// The repository that the run is pushed to, or that has the run and takes the capture
    #[arg(long, value_name = "NAME|URL", requires = "done-with-remote")]
    pub remote: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the run's id
    #[arg(short, long)]
    pub quiet: bool,
}

impl SpawnArgs {
    /// Opens the repository to work in.
    pub fn session(&self, ui: &Ui) -> Result<Session> {
        match (&self.resume, &self.remote) {
            (Some(_), Some(place)) => {
                mirror::session_with(ui.clone(), place, false, MirrorUse::Attempts)
            }
            _ => Session::open(ui.clone()),
        }
    }
}

/// Runs the command.
pub fn run(session: &Session, args: &SpawnArgs) -> Result<u8> {
    if args.later {
        return later(session, args);
    }
    if let (Some(run), Some(place)) = (&args.resume, &args.remote) {
        return resume(session, args, run, place);
    }
    if let Some(address) = &args.again {
        return again(session, args, address);
    }
    // clap lets the options that exclude --again stand for it.
    if args.repair || args.yes {
        return Err(Error::usage("--repair and --yes are for another round of a candidate")
            .hint("name it: `git frites spawn --again RUN/CAND --repair`"));
    }
    if args.synthesize {
        return synthesize(session, args);
    }
    if args.add {
        return add(session, args);
    }
    let options = spawn_args::options(session, &args.shared)?;
    let request = spawn_args::request(session, &args.shared)?;
    let commands = request.commands();
    let SpawnedRun { run, prepared, lock } = spawn::spawn(session, request)?;
    let report = run_commands(session, &run, &commands, &options)?;
    drop(lock);
    answer(session, &run, &run.candidates, args, &report.escaped)?;
    if commands.is_empty() && prepared.iter().any(|p| p.failure.is_none()) {
        return Ok(exit::OK);
    }
    Ok(conclude(session, &run, run.candidates.len(), &report, &resume_hint(&run)))
}

/// Runs the commands of new candidates; none if people work there.
fn run_commands(
    session: &Session,
    run: &Run,
    commands: &[(Name, CandidateCommand)],
    options: &AttemptOptions,
) -> Result<AttemptReport> {
    if commands.is_empty() {
        return Ok(AttemptReport::default());
    }
    attempt::run_attempts(session, run, commands, options, &|_| ())
        .map_err(|e| e.hint(resume_hint(run)))
}

/// Runs another command in one candidate's worktree, or its last one again, perhaps with a new
/// prompt.
fn again(session: &Session, args: &SpawnArgs, address: &Address) -> Result<u8> {
    let (run, name) = spawn_args::existing(session, "--again", address)?;
    let options = spawn_args::options_after(session, &args.shared, run.given_limits(&name))?;
    let candidate = session.store.candidate(&run, &name);
    let command = if args.repair {
        let (command, more) = spawn_args::command_and_prompt(session, &args.shared, candidate)?;
        repair::by_hand(session, candidate, command, more.as_deref())?
    } else {
        let command = spawn_args::command(session, &args.shared, candidate)?;
        require_yes(session, args, candidate, &command)?;
        command
    };
    let report = attempt::rerun(session, candidate, command, &options)?;
    let command = if args.shared.command.is_empty() { "" } else { " -- …" };
    let go_on = format!("continue with another `git frites spawn --again {candidate}{command}`");
    answer(session, &run, std::slice::from_ref(&name), args, &report.escaped)?;
    Ok(conclude(session, &run, 1, &report, &go_on))
}

/// Says which command is about to run again if nobody typed it, and asks unless `--yes` answers.
fn require_yes(
    session: &Session,
    args: &SpawnArgs,
    candidate: CandidateRef<'_>,
    command: &CandidateCommand,
) -> Result<()> {
    if !args.shared.command.is_empty() || !args.shared.agents.is_empty() {
        return Ok(());
    }
    session.ui.note(format!("{candidate} runs this again: {}", command.line()));
    if args.yes {
        return Ok(());
    }
    match session.ui.ask("run it?")? {
        Some(true) => Ok(()),
        Some(false) => Err(Error::no("nothing was run")
            .hint(format!("another command: `git frites spawn --again {candidate} -- CMD`"))),
        None => {
            Err(Error::usage("--again without a command needs --yes where nobody can be asked")
                .hint("run it: add --yes to what you typed")
                .hint(format!("or another: `git frites spawn --again {candidate} -- CMD`")))
        }
    }
}

/// Adds candidates to a run that exists, and runs their commands.
fn add(session: &Session, args: &SpawnArgs) -> Result<u8> {
    let options = spawn_args::options(session, &args.shared)?;
    let run = existing_run(session, args)?;
    let change = match (&args.patch, &args.commit) {
        (Some(file), _) => Some(read_patch(file, &args.shared)?),
        (None, commit) => commit.clone().map(ChangeSource::Commit),
    };
    let request = spawn_args::additions(session, &args.shared, &run, change)?;
    let names = request.candidates.clone();
    let commands = request.commands(session, &run)?;
    let SpawnedRun { run, prepared, lock } = add::add(session, &run, request)?;
    let report = run_commands(session, &run, &commands, &options)?;
    drop(lock);
    answer(session, &run, &names, args, &report.escaped)?;
    if commands.is_empty() && prepared.iter().any(|p| p.failure.is_none()) {
        session.ui.hint(format!("decide again with `git frites judge {}`", run.run));
        return Ok(exit::OK);
    }
    Ok(conclude(session, &run, names.len(), &report, &resume_hint(&run)))
}

/// Makes a run that other machines work on.
fn later(session: &Session, args: &SpawnArgs) -> Result<u8> {
    let request = spawn_args::request(session, &args.shared)?;
    let run = later::make(session, request, args.remote.as_deref())?;
    let name = &run.run;
    if args.json || args.quiet {
        answer(session, &run, &run.candidates, args, &[])?;
    } else {
        let lines = run.candidates.iter().map(|candidate| format!("{name}/{candidate}\n"));
        session.ui.answer(lines.collect::<String>())?;
    }
    let is_prepared = session.config.command(keys::SPAWN_SETUP).is_some_and(|(c, _)| !c.is_empty());
    if is_prepared || session.seeds(&run.base)?.paths().next().is_some() {
        session.ui.hint(
            "seeds and spawn.setup are not part of the run: git-frites-spread(7) says where machines get them",
        );
    }
    if args.remote.is_none() {
        session.ui.hint(format!(
            "push it: `git push REMOTE 'refs/frites/{name}/*:refs/frites/{name}/*'`"
        ));
    }
    session.ui.hint(format!(
        "start each candidate where you like: `git frites spawn --resume {name} -c {} --remote URL`",
        run.candidates[0]
    ));
    Ok(exit::OK)
}

/// Makes one attempt of a run of another repository.
fn resume(session: &Session, args: &SpawnArgs, run: &Name, place: &str) -> Result<u8> {
    let [name] = args.shared.candidates.as_slice() else {
        return Err(Error::usage("--resume makes one attempt").hint("name one candidate with -c"));
    };
    let options = spawn_args::options(session, &args.shared)?;
    let stored = on_node::resume(session, place, run, name, &options).map_err(|mut error| {
        // For an engine, 1 to 127 would say that another try is of no use.
        if error.kind == ErrorKind::No {
            error.kind = ErrorKind::Fatal;
        }
        error
    })?;
    if !args.quiet {
        let before = if stored.before { "\tstored before" } else { "" };
        session.ui.answer(format!("{run}/{name}\t{}{before}\n", stored.state))?;
    }
    Ok(exit::OK)
}

/// The run that `--run` names.
fn existing_run(session: &Session, args: &SpawnArgs) -> Result<Run> {
    let word = args.shared.run.clone();
    let address = word.map(|word| Address::Word { word, iteration: None });
    Ok(session.store.select(address.as_ref(), Matching::Exact)?.run)
}

/// Reads the patch of `--patch`.
fn read_patch(file: &Path, shared: &SharedSpawnArgs) -> Result<ChangeSource> {
    if file.as_os_str() != "-" {
        let name = format!("'{}'", file.display());
        let bytes = fs::read(file).context(|| format!("could not read the patch {name}"));
        let bytes =
            bytes.map_err(|e| e.hint("check the file name, or read it with `--patch -`"))?;
        return Ok(ChangeSource::Patch(bytes, name));
    }
    if shared.reads_standard_input() {
        return Err(Error::usage("the patch and the prompt cannot both be standard input")
            .hint("write one of them to a file"));
    }
    let mut bytes = Vec::new();
    io::stdin()
        .read_to_end(&mut bytes)
        .context(|| "could not read the patch from standard input".into())?;
    Ok(ChangeSource::Patch(bytes, "on standard input".into()))
}

/// Adds a candidate that is made from those that passed.
fn synthesize(session: &Session, args: &SpawnArgs) -> Result<u8> {
    let options = spawn_args::options(session, &args.shared)?;
    let options = match args.shared.timeout {
        Some(_) => options,
        None => synthesis::options(session, &options),
    };
    let run = existing_run(session, args)?;
    let typed = !args.shared.agents.is_empty() || !args.shared.command.is_empty();
    let configured = if typed { None } else { synthesis::configured_agent(session)? };
    let assignment = match configured {
        Some(assignment) => assignment,
        None => spawn_args::assignment(session, &args.shared)?,
    };
    let (run, report) = synthesis::synthesize(session, &run, assignment, &options)?;
    answer(session, &run, &run.candidates[run.candidates.len() - 1..], args, &report.escaped)?;
    Ok(conclude(session, &run, 1, &report, &resume_hint(&run)))
}

/// Prints a hint about what to type next, and gives the exit code. `in_round` is the number of
/// candidates whose commands were to run, and `go_on` the hint after an interrupt.
fn conclude(
    session: &Session,
    run: &Run,
    in_round: usize,
    report: &AttemptReport,
    go_on: &str,
) -> u8 {
    let ui = &session.ui;
    let limited = limited_hints(session, run);
    let others = run.candidates.len() > in_round;
    let run = &run.run;
    let count = report.results.iter().filter(|captured| captured.usable()).count();
    let usable = count > 0;
    notify(session, &format!("run {run}: {count} of {} usable", report.results.len()));
    if !usable {
        ui.warn(match others {
            true => "no candidate of this round is usable",
            false => "no candidate is usable",
        });
    }
    for hint in limited {
        ui.hint(hint);
    }
    if interrupt::signal().is_some() {
        ui.hint(format!("the work so far is kept; {go_on}"));
    } else if usable {
        ui.hint(format!(
            "compare with `git frites diff {run}`, decide with `git frites judge {run}`"
        ));
    } else {
        ui.hint(format!(
            "`git frites status {run}` shows why; `git frites output {run}` shows what they printed"
        ));
    }
    if usable { exit::OK } else { exit::UNUSABLE }
}

fn answer(
    session: &Session,
    run: &Run,
    names: &[Name],
    args: &SpawnArgs,
    escaped: &[String],
) -> Result<()> {
    if args.json {
        let mut candidates = Vec::new();
        for name in names {
            let candidate = session.store.candidate(run, name);
            let record = candidate.record()?;
            let mut object = json!({
                "candidate": name, "index": record.index, "state": record.state,
                "branch": candidate.branch().short(),
                "agent": run.agents.get(name).and_then(|a| a.agent.as_ref()), "port": record.port,
                "exit_code": record.exit_code, "signal": record.signal, "cleaned": record.cleaned,
            });
            if spawn_args::auto_checkpoint(session, &args.shared).is_some() {
                object["checkpoints"] =
                    crate::commands::status::history_as_json(&session.repo, candidate)?;
            }
            json::put_file(&mut object, "worktree", &candidate.worktree());
            candidates.push(object);
        }
        let document = json!({
            "run": run.run, "base": run.base, "task": run.task, "parent": run.parent, "candidates": candidates,
            "escaped": escaped,
        });
        return session.ui.answer(json::document(document));
    }
    if args.quiet {
        return session.ui.answer(format!("{}\n", run.run));
    }
    for name in names {
        let candidate = session.store.candidate(run, name);
        let path = candidate.worktree();
        // That of an attempt that changed nothing is gone.
        let path = if path.exists() { path.as_os_str().as_bytes() } else { b"" };
        session.ui.answer([format!("{candidate}\t").as_bytes(), path, b"\n"].concat())?;
    }
    Ok(())
}
