//! `git frites run`: spawns, captures and judges in one step, and makes a synthesis if it can help.
use std::ffi::OsString;
use std::time::Duration;

use serde_json::json;

use crate::commands::apply::{newest_file_wins, note_cleaned, note_merged, tell_landed};
use crate::commands::judge_args::{SharedJudgeArgs, VerdictOutputArgs};
use crate::commands::preflight::JudgingPlan;
use crate::commands::spawn_args::SharedSpawnArgs;
use crate::commands::verdict::{self, next_steps, tell_proof, write_junit};
use crate::commands::{
    hints, limited_hints, preflight, require_jobs_within_limit, resume_hint, values,
};
use crate::complete;
use crate::config::keys;
use crate::config::value::SynthesisMode;
use crate::error::{Error, Result};
use crate::fs::lock::Lock;
use crate::integrity::quarantine::Suspect;
use crate::integrity::trust;
use crate::model::address::Address;
use crate::model::count::{count, some_of};
use crate::model::flag::{self, Flag};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::quoted;
use crate::model::rationale::and;
use crate::model::refname::RefName;
use crate::model::run::{GivenLimits, Run};
use crate::model::test_comparison::left_out;
use crate::model::verdict::Verdict;
use crate::ops::beside::Beside;
use crate::ops::clean;
use crate::ops::judge::{JudgeOptions, RepeatedJudging, changed_deciders};
use crate::ops::land::guards::ChangedPrograms;
use crate::ops::land::merge::{self, MergedCandidate};
use crate::ops::land::plan::LandOptions;
use crate::ops::land::target::ResolvedTarget;
use crate::ops::repair::{self, Repaired, Rounds};
use crate::ops::session::Session;
use crate::ops::spawn::attempts::{AttemptOptions, AttemptReport, Attempts};
use crate::ops::spawn::command::{self, CandidateCommand, is_exact};
use crate::ops::spawn::recover::lock_recovered;
use crate::ops::spawn::resume;
use crate::ops::spawn::synthesis;
use crate::ops::spawn::{self, SpawnedRun};
use crate::process::interrupt;
use crate::store::select::{Matching, Scope, Selection};
use crate::ui::comparison;

#[derive(Debug, clap::Args)]
#[command(
    args_override_self = true,
    after_help = "Does the work of spawn and judge in one step. If several candidates pass, one more can be \
made from them: see synthesis.mode in git-frites-config(1).\n\n\
Exit status: as for judge: 0 a verified winner, 1 the decision is `near-miss` or the winner was \
not merged, 3 unverified, 4 no usable candidate."
)]
pub struct RunArgs {
    /// The candidates and their commands
    #[command(flatten, next_help_heading = "Attempts")]
    pub shared: SharedSpawnArgs,
    /// The options of judging
    #[command(flatten, next_help_heading = "Judging")]
    pub judging: SharedJudgeArgs,
    /// Number of candidates that are judged at once
    #[arg(help_heading = "Judging", hide_short_help = true, long, value_name = "JOBS", default_value_t = 1, value_parser = values::count)]
    pub oracle_jobs: u32,
    /// Kill a build, lint or test command after this time  [default: oracle.timeout, or 10m]
    #[arg(help_heading = "Judging", hide_short_help = true, long, value_name = "DUR", value_parser = values::duration)]
    pub oracle_timeout: Option<Duration>,
    /// Continue a run that was interrupted
    #[arg(
        help_heading = "Attempts",
        long,
        value_name = "RUN",
        add = complete::address(Scope::Run),
        conflicts_with_all = [
            "count", "candidates", "run", "base", "from", "task", "agents", "prompt",
            "prompt_file", "command",
        ],
    )]
    pub resume: Option<Address>,
    /// Whether one more candidate may be made from those that passed: off or passing-only
    /// [default: synthesis.mode]
    #[arg(help_heading = "Attempts", hide_short_help = true, long, value_name = "MODE", value_parser = values::synthesis)]
    pub synthesis: Option<SynthesisMode>,
    /// Merge a verified winner into the current branch, unless its change affects how the next run
    /// is judged, or it runs fewer tests  [default: run.merge]
    #[arg(help_heading = "Landing", long, overrides_with = "no_merge")]
    pub merge: bool,
    /// Do not merge, even if run.merge is set
    #[arg(help_heading = "Landing", hide_short_help = true, long, overrides_with = "merge")]
    pub no_merge: bool,
    /// Remove the run's worktrees and branches at the end; captures stay. Nothing is removed after
    /// an interruption or a failed merge
    #[arg(help_heading = "Landing", hide_short_help = true, long)]
    pub clean: bool,
    /// If a candidate fails, tell it why, and give it up to K more rounds in its worktree
    #[arg(help_heading = "Attempts", long, value_name = "K", default_value_t = 0, value_parser = values::retries)]
    pub rounds: u32,
    /// End the other attempts once K candidates have passed cold (without the base's build
    /// outputs), both with their own tests and with the base's
    #[arg(help_heading = "Attempts", hide_short_help = true, long, value_name = "K", value_parser = values::count)]
    pub enough: Option<u32>,
    /// The form of the answer
    #[command(flatten, next_help_heading = "Output")]
    pub output: VerdictOutputArgs,
}

/// Parses the words of a command line, beginning with `run`; `None` if they are invalid.
type ParseRun = fn(&[String]) -> Option<RunArgs>;

/// Begins or resumes a run. `parse` reads the options with which an interrupted run was started.
pub fn run(session: &Session, args: &RunArgs, parse: ParseRun) -> Result<u8> {
    match &args.resume {
        None => begin(session, args),
        Some(address) => resume(session, args, address, parse),
    }
}

/// The options of a run, which are checked before its work begins, so that no work is done in vain.
struct PlannedRun<'a> {
    args: &'a RunArgs,
    options: AttemptOptions,
    judging: RepeatedJudging<'a>,
    /// The branch into which a verified winner will be merged; `None` if it will not be merged.
    merge_into: Option<RefName>,
}

fn begin(session: &Session, args: &RunArgs) -> Result<u8> {
    let plan = PlannedRun::new(session, args, GivenLimits::default())?;
    let mut request = args.shared.request(session)?;
    let commands = request.new.commands();
    if commands.is_empty() {
        return Err(Error::usage("there is no command to run")
            .hint("name agents and their task: `git frites run --agent claude=2 -p TEXT`")
            .hint("or give a command: `git frites run -- CMD`; `git frites spawn` creates worktrees to work in by hand"));
    }
    if args.rounds > 0 {
        commands.iter().try_for_each(|(_, command)| command.require_exact())?;
    }
    request.arguments = typed();
    request.merge_into.clone_from(&plan.merge_into);
    plan.check(request.start.root(), &commands)?;
    if !args.output.json
        && let Some(maker) = synthesis::likely_maker(session, &commands, args.synthesis)?
    {
        session.ui.note(format!(
            "synthesis: if several pass, {maker} makes one more attempt from them; `--synthesis off` prevents it"
        ));
    }
    let SpawnedRun { run, lock, .. } = spawn::spawn(session, request)?;
    let candidates = count(run.candidates.len(), "candidate");
    session.ui.note(format!("run {run}: {candidates} from {}", run.base.short()));
    plan.finish(&run, &run.candidates, lock, |beside| {
        Attempts { session, run: &run, options: &plan.options, beside }
            .run(&commands)
            .map_err(|e| e.hint(resume_hint(&run)))
    })
}

fn resume(session: &Session, args: &RunArgs, address: &Address, parse: ParseRun) -> Result<u8> {
    let run = session.store.select(Some(address), Scope::Run, Matching::Prefix)?.run;
    let before = recorded(&run, parse)?;
    let args = before.as_ref().unwrap_or(args);
    let plan = PlannedRun::new(session, args, run.limits)?;
    if let (Some(first), Some(now)) = (&run.merge_into, &plan.merge_into)
        && first != now
    {
        let first = first.short();
        let what =
            format!("run {run} merges into '{first}', where it began, not into '{}'", now.short());
        return Err(Error::fatal(what)
            .hint(format!("`git switch {first}`, and resume it there"))
            .hint(format!(
                "or resume it without a merge: `git frites run --resume {run} --no-merge`"
            )));
    }
    let mut commands: Vec<(Name, CandidateCommand)> = Vec::new();
    for name in &run.candidates {
        let candidate = session.store.candidate(&run, name);
        let Some(command) = CandidateCommand::recorded(&session.repo, candidate)? else { continue };
        commands.push((name.clone(), command));
    }
    if commands.is_empty() {
        return Err(Error::usage(format!("run {run} has no command to resume")).hint(format!(
            "its worktrees are edited by hand; judge them with `git frites judge {run}`"
        )));
    }
    let lock = lock_recovered(&session.store, &session.ui, &run.run)?;
    let starting = resume::to_start(session, &run, &commands)?;
    // With rounds, each command may run again.
    let again = if args.rounds > 0 { &commands } else { &starting };
    again.iter().try_for_each(|(_, command)| command.require_exact())?;
    plan.check(run.root(), &starting)?;
    let starting: Vec<Name> = starting.into_iter().map(|(name, _)| name).collect();
    plan.finish(&run, &starting, lock, |beside| {
        resume::resume(&Attempts { session, run: &run, options: &plan.options, beside }, &commands)
    })
}

/// The words after `run` on the command line. Bytes that are not UTF-8 are replaced, because a
/// record cannot contain them.
fn typed() -> Vec<String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let verb = words.iter().position(|word| word == "run");
    verb.map_or_else(Vec::new, |verb| command::words(&words[verb + 1..]))
}

/// The options with which a run was started, overridden by the options that are typed now; `None`
/// if another command made the run. Fails if these options cannot be read, because the run would
/// then be judged with other options.
fn recorded(run: &Run, parse: ParseRun) -> Result<Option<RunArgs>> {
    let Run { arguments, command, .. } = run;
    if arguments.is_empty() {
        return Ok(None);
    }
    let mut now = typed().into_iter();
    let mut added = Vec::new();
    while let Some(word) = now.next() {
        match word.as_str() {
            "--resume" => drop(now.next()),
            _ if word.starts_with("--resume=") => {}
            _ => added.push(word),
        }
    }
    // The options that are typed now are put after the recorded options, to override them, but
    // before the `--` of the command. A search for this `--` is not enough: a `--` may be a prompt,
    // or have no command after it. So the right place is the one that leaves the command unchanged.
    let words_of_command = command.len() + usize::from(!command.is_empty());
    for after in [words_of_command, 1] {
        let Some(end) = arguments.len().checked_sub(after) else { continue };
        let (before, rest) = arguments.split_at(end);
        let words = [&["run".to_owned()], before, &added, rest].concat();
        let parsed = if words.iter().all(|word| is_exact(word)) { parse(&words) } else { None };
        let has_command =
            |args: &RunArgs| command::words(&args.shared.new.command.command) == *command;
        if parsed.as_ref().is_some_and(has_command) {
            return Ok(parsed);
        }
    }
    let line = shell_words::join(arguments);
    Err(Error::fatal(format!("the options of run {run} cannot be used again: {line}")).hint(
        format!("judge what it has made, with the options that you name: `git frites judge {run}`"),
    ))
}

impl<'a> PlannedRun<'a> {
    /// Fails if the result could not be judged or merged.
    fn new(session: &'a Session, args: &'a RunArgs, limits: GivenLimits) -> Result<PlannedRun<'a>> {
        require_jobs_within_limit(session, args.oracle_jobs as usize, "--oracle-jobs")?;
        preflight::require_writable(session, "--junit", args.output.junit.as_deref())?;
        synthesis::configured_agent(session)?;
        let is_to_merge = args.merge || (!args.no_merge && session.config.get(keys::RUN_MERGE));
        let merge_into = match is_to_merge {
            true => Some(ResolvedTarget::current(session)?.branch),
            false => None,
        };
        let options = args.shared.attempts.options(session, args.shared.jobs, limits)?;
        let judging = RepeatedJudging::new(session, judge_options(args));
        Ok(PlannedRun { args, options, judging, merge_into })
    }

    /// Resolves and shows everything that a run from `base` needs. Fails if judging with these
    /// options is not possible here.
    fn check(&self, base: &Oid, commands: &[(Name, CandidateCommand)]) -> Result<()> {
        let session = self.judging.session;
        let judging = judge_options(self.args);
        let plan = JudgingPlan::check(session, base, commands, &judging)?;
        if !self.args.output.json && !session.ui.is_quiet() {
            plan.show(session, commands, &self.options, &judging)?;
        }
        match plan.late {
            Some(why) if self.args.enough.is_some() => {
                Err(Error::fatal(format!("--enough cannot end attempts here: {why}"))
                    .hint("leave --enough out: the run is judged when all attempts have ended"))
            }
            _ => Ok(()),
        }
    }

    /// Lets `attempts` run the commands of the candidates in `starting`, and judges them meanwhile.
    /// Then concludes the run. `lock` is the run's lock.
    fn finish(
        &self,
        run: &Run,
        starting: &[Name],
        lock: Lock,
        attempts: impl FnOnce(&dyn Beside) -> Result<AttemptReport>,
    ) -> Result<u8> {
        let PlannedRun { args, judging, .. } = self;
        let until_pass = args.judging.decision.until_pass;
        let rounds = Rounds::new(judging.session, run, args.rounds, until_pass, args.enough);
        let eager = judging.beside(run, starting, &rounds, args.enough)?;
        let report = attempts(&eager)?;
        drop(lock);
        self.conclude(&rounds, run, &report)
    }

    /// Judges the candidates, makes a synthesis if that can help, and prints the verdict. `rounds`
    /// decides which candidates get further rounds. Merges a verified winner if that is planned.
    fn conclude(&self, rounds: &Rounds<'_>, run: &Run, report: &AttemptReport) -> Result<u8> {
        let PlannedRun { args, options, judging, merge_into } = self;
        let session = judging.session;
        stop_if_interrupted(run)?;
        let first = judge(judging, run, report.affects_outcomes)?;
        let mut repaired = repair::repair(rounds, first, options, judging, |affected| {
            judge(judging, run, affected)
        })?;
        stop_if_interrupted(run)?;
        let integrated = integrate(judging, args.synthesis, run, options, &mut repaired)?;
        let Repaired { mut verdict, rounds, escaped: more } = repaired;
        let escaped = [report.escaped.clone(), more].concat();
        // After an interrupt, nothing lands.
        stop_if_interrupted(run)?;
        let run = integrated.as_ref().unwrap_or(run);
        // After a failed merge the winner stays pending. The error is shown after the comparison.
        let merged = merge_into.as_ref().zip(verdict.winner()).map(|(branch, winner)| {
            refuse_unread(session, run, &verdict, winner)?;
            merge(session, run, branch)
        });
        let is_to_clean = args.clean && !matches!(merged, Some(Err(_)));
        let cleaned = is_to_clean.then(|| clean::after_end(session, run));
        if args.output.json {
            tell_proof(session, &judge_options(args), &mut verdict);
        }
        let commit = merged.as_ref().and_then(|merged| merged.as_ref().ok()).map(|m| &m.commit);
        let mut more = json!({ "escaped": escaped, "cleaned": cleaned, "commit": commit });
        if !rounds.is_empty() {
            more["repairs"] = json!(rounds);
        }
        let mut hints = match merged {
            None => next_steps(session, run, &verdict, None)?,
            Some(_) => Vec::new(),
        };
        hints.extend(limited_hints(session, run));
        verdict::show(session, &verdict, &args.output, more, &hints);
        write_junit(session, run, &verdict, args.output.junit.as_deref())?;
        if let Some(merged) = merged.transpose()? {
            if !args.output.json {
                note_merged(session, &merged)?;
            }
            tell_landed(session, &merged.plan, &merged.branch, Some(&merged.commit));
        }
        if let (Some(cleaned), false) = (cleaned, args.output.json) {
            note_cleaned(session, &cleaned);
        }
        if !args.output.json {
            tell_proof(session, &judge_options(args), &mut verdict);
        }
        Ok(comparison::exit_code(&verdict))
    }
}

/// Fails if a signal asked git-frites to end.
fn stop_if_interrupted(run: &Run) -> Result<()> {
    match interrupt::signal() {
        Some(_) => {
            Err(Error::no("interrupted; the work of the candidates is kept").hint(resume_hint(run)))
        }
        None => Ok(()),
    }
}

/// Judges a run as it is now. If `affects_outcomes` is true, commands of its attempts may have
/// changed something on which outcomes depend, so no earlier outcome is used.
fn judge(judging: &RepeatedJudging<'_>, run: &Run, affects_outcomes: bool) -> Result<Verdict> {
    trust::require_trust(judging.session.integrity(), Some(run))?;
    if affects_outcomes {
        judging.forget(run)?;
    }
    judging.judge(run, |_| Ok(())).map_err(|error| match interrupt::signal() {
        Some(_) => error.hint(resume_hint(run)),
        None => error,
    })
}

/// If a synthesis can help, makes one, and judges the run again for a new verdict. Returns the run
/// with the new candidate; `None` if no synthesis was made.
fn integrate(
    judging: &RepeatedJudging<'_>,
    mode: Option<SynthesisMode>,
    run: &Run,
    options: &AttemptOptions,
    Repaired { verdict, escaped, .. }: &mut Repaired,
) -> Result<Option<Run>> {
    let session = judging.session;
    let assignment = match synthesis::maker(session, run, verdict, mode)? {
        Ok(assignment) => assignment,
        Err(reason) => return skip_synthesis(session, run, verdict, reason).map(|()| None),
    };
    let why = "several candidates passed; one more is made from them";
    session.ui.note(format!("run {run}: {why}"));
    let options = synthesis::options(session, options);
    let integrated = synthesis::add(session, run, assignment).and_then(|made| {
        let attempts = Attempts { session, run: &made.run, options: &options, beside: &() };
        let report = attempts.run(&made.commands)?;
        Ok((made.run, report))
    });
    match integrated {
        Ok((run, report)) => {
            escaped.extend(report.escaped);
            stop_if_interrupted(&run)?;
            *verdict = judge(judging, &run, report.affects_outcomes)?;
            Ok(Some(run))
        }
        Err(error) => {
            stop_if_interrupted(run)?;
            session.ui.warn(format!("run {run}: the synthesis failed: {error}"));
            let reason = format!("it failed: {error}");
            hints::add(error).hints.iter().for_each(|hint| session.ui.hint(hint));
            // The verdict from before the synthesis stays.
            synthesis::explain_skip(session, verdict, reason).map(|()| None)
        }
    }
}

/// Records why no synthesis is made. The user may expect a synthesis if the run has several
/// candidates, and a prompt or `synthesis.agent`. In this case, also tells the user why.
fn skip_synthesis(
    session: &Session,
    run: &Run,
    verdict: &mut Verdict,
    reason: String,
) -> Result<()> {
    if !run.synthesis.is_empty() {
        return Ok(());
    }
    let can_have_one = run.prompt.is_some() || session.config.get(keys::SYNTHESIS_AGENT).is_some();
    if can_have_one && run.candidates.len() > 1 {
        session.ui.note(format!("run {run}: no synthesis: {reason}"));
    }
    synthesis::explain_skip(session, verdict, reason)
}

/// The beginning of a hint to land a change by a merge.
const BY_MERGE: &str = "land it yourself: `git frites apply --merge";

/// Fails if a person has to read the winner's change, or a setting, before the change is merged.
fn refuse_unread(session: &Session, run: &Run, verdict: &Verdict, winner: &Name) -> Result<()> {
    let Some((entry, tree)) = verdict.entry(winner).and_then(|e| Some((e, e.judged()?))) else {
        return Ok(());
    };
    let address = format!("{run}/{winner}");
    let refuse = |reason: String, land: &str| {
        Err(Error::no(reason)
            .hint(format!("read the change, `git frites diff {address}`"))
            .hint(format!("then {land} {address}`")))
    };
    // The change may decide how the next run is judged.
    let changed = changed_deciders(session, run, &verdict.terms, tree)?;
    if !changed.is_empty() {
        let files: Vec<String> = changed.iter().map(|path| quoted(path.as_bytes())).collect();
        let files = some_of(&files);
        let what = "it changes files that decide how the next run is judged";
        return refuse(format!("{address} was not merged, because {what}: {files}"), BY_MERGE);
    }
    // A merge may change the programs that git runs.
    let programs = ChangedPrograms::find(session, run.root(), tree, &address)?;
    if let Some(reason) = programs.setting {
        // `apply --merge` would be refused, too.
        let land = "land it uncommitted, and commit it yourself: `git frites apply";
        return refuse(format!("{reason}, so it was not merged"), land);
    }
    if let Some(reason) = programs.hook {
        return refuse(format!("{reason}, so it was not merged"), BY_MERGE);
    }
    // The winner passed with the base's tests, but its own tests may leave out some of them.
    let mut flags = entry.flags.clone();
    flags.retain(Flag::leaves_out_tests);
    let left_out = verdict.baseline.as_ref().map(|base| left_out(base, entry));
    let clauses = [flag::in_words(&flags), left_out.unwrap_or_default()].concat();
    if !clauses.is_empty() {
        let clauses = and(&clauses);
        return refuse(format!("{address} was not merged, because it {clauses}"), BY_MERGE);
    }
    // The commit may obey a hook or a setting that an attempt has changed, and nobody would read a
    // warning in time.
    let planted = trust::planted_for_commit(session.integrity());
    match planted.iter().find(|suspect| !suspect.is_harmless()) {
        Some(Suspect { moment, words, .. }) => Err(Error::no(format!(
            "{address} was not merged, because its commit would use settings that changed {moment}: {words}"
        ))
        .hint("undo that change if it is not yours; `git frites log` shows all")
        .hint(format!("then {BY_MERGE} {address}`"))),
        None => Ok(()),
    }
}

/// Merges the winner into `branch`, which was checked out when the run began. Fails if the checkout
/// is on another branch now.
fn merge(session: &Session, run: &Run, branch: &RefName) -> Result<MergedCandidate> {
    if session.repo.head_branch().as_ref() != Some(branch) {
        let branch = branch.short();
        return Err(Error::no(format!(
            "your checkout is no longer on '{branch}', so nothing was merged"
        ))
        .hint(format!(
            "merge into '{branch}' all the same: `git frites apply --merge --into {branch} {run}`"
        )));
    }
    let selection = Selection { run: run.clone(), candidate: None, iteration: None };
    let newest_file_wins = newest_file_wins(session, None);
    let options = LandOptions { newest_file_wins, ..LandOptions::default() };
    merge::merge(session, selection, &options, None)
}

fn judge_options(args: &RunArgs) -> JudgeOptions {
    let jobs = args.oracle_jobs as usize;
    JudgeOptions { jobs, timeout: args.oracle_timeout, ..args.judging.options() }
}
