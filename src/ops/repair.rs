//! Rounds of repair: a candidate that failed gets another round in its own worktree, told why it
//! failed. What a round made worse is taken back; the captures of every round stay.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::Result;
use crate::git::cli::nul_separated;
use crate::git::index::ScratchIndex;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::protected_text::lines_that_show;
use crate::model::repair::{self, RepairEnd, RepairRound};
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Entry, Verdict};
use crate::ops::capture::Captured;
use crate::ops::judge::RepeatedJudging;
use crate::ops::log_end;
use crate::ops::session::Session;
use crate::ops::spawn::attempt::{self, AttemptOptions};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::cost_limit;
use crate::ops::spawn::put_back::put_back;
use crate::process::interrupt;
use crate::store::candidate::CandidateRef;

/// The last lines of a log that a prompt holds.
const LINES: usize = 60;

/// The longest of these lines, in characters.
const LONGEST_LINE: usize = 400;

/// The most bytes of one protected file that are looked at.
const LARGEST_PROTECTED: usize = 1 << 20;

/// The result of all rounds.
pub struct Repaired {
    /// The verdict after them.
    pub verdict: Verdict,
    /// Each round of each candidate.
    pub rounds: Vec<RepairRound>,
    /// The changes outside of the worktrees meanwhile, in words.
    pub escaped: Vec<String>,
}

/// The rounds that are wanted.
pub struct RepairOptions<'a> {
    /// The most rounds of each candidate.
    pub rounds: u32,
    /// True to stop as soon as the verdict is verified.
    pub until_pass: bool,
    /// How the commands run.
    pub attempts: &'a AttemptOptions,
    /// Judges ahead while they run.
    pub judging: &'a RepeatedJudging<'a>,
}

/// Repairs the candidates that failed, round by round: until each passes, got no further, or has had
/// its rounds. `judge` judges the run again; it is told if the round has changed what outcomes depend on.
pub fn repair(
    session: &Session,
    run: &Run,
    verdict: Verdict,
    options: &RepairOptions<'_>,
    mut judge: impl FnMut(bool) -> Result<Verdict>,
) -> Result<Repaired> {
    let mut repaired = Repaired { verdict, rounds: Vec::new(), escaped: Vec::new() };
    let mut ended: BTreeSet<Name> = BTreeSet::new();
    for round in 1..=options.rounds {
        let verdict = &repaired.verdict;
        let is_broken = verdict.decision.decision == DecisionKind::BrokenBase;
        if is_broken || options.until_pass && verdict.verified() {
            break;
        }
        let started = to_repair(session, run, verdict, &ended)?;
        if started.is_empty() {
            break;
        }
        if let Some(reached) = cost_limit::reached(session, run)? {
            session.ui.note(format!("run {}: {}: no round of repair", run.run, reached.words));
            session.ui.hint(reached.go_on);
            return Ok(repaired);
        }
        let names: Vec<&str> = started.iter().map(|one| one.before.candidate.as_str()).collect();
        let (of, names) = (options.rounds, names.join(", "));
        let found = repair::passes_in_words(&repaired.verdict);
        session.ui.note(format!("run {}: {found}; round {round} of {of} repairs {names}", run.run));
        let command = |one: &StartedRound| (one.before.candidate.clone(), one.command.clone());
        let commands: Vec<_> = started.iter().map(command).collect();
        let starting: Vec<Name> = commands.iter().map(|(name, _)| name.clone()).collect();
        let eager = options.judging.beside(run, &starting)?;
        let report = attempt::rerun_all(session, run, &commands, options.attempts, &eager)?;
        repaired.escaped.extend(report.escaped);
        if interrupt::signal().is_some() {
            return Ok(repaired);
        }
        // Nothing is judged again if nothing has changed.
        let is_changed = |captured: &Captured, one: &StartedRound| {
            !captured.usable() || captured.capture.as_ref().map(|c| c.tree) != one.before.tree
        };
        let any = report.results.iter().zip(&started).any(|(end, one)| is_changed(end, one));
        let after = if any { judge(report.affects_outcomes)? } else { repaired.verdict.clone() };
        let (ends, took_back) = end_round(session, run, (round, options.rounds), &started, &after);
        let given_up = ends.iter().filter(|ended| !ended.end.goes_on());
        ended.extend(given_up.map(|ended| ended.candidate.clone()));
        repaired.rounds.extend(ends);
        repaired.verdict = if took_back { judge(false)? } else { after };
    }
    if options.rounds > 0 {
        tell_those_without_rounds(session, run, &repaired);
    }
    Ok(repaired)
}

/// Compares the candidates of a round (`round` of `of`) with what they were before it. Takes back what
/// made one worse; gives the ends, and true if anything was taken back.
fn end_round(
    session: &Session,
    run: &Run,
    (round, of): (u32, u32),
    started: &[StartedRound],
    after: &Verdict,
) -> (Vec<RepairRound>, bool) {
    let mut ends = Vec::new();
    let mut took_back = false;
    for StartedRound { before, record, .. } in started {
        let Some(entry) = after.entry(&before.candidate) else { continue };
        let candidate = session.store.candidate(run, &before.candidate);
        let mut end = repair::compare(before, entry);
        let is_started = candidate.record().is_ok_and(|now| now.started != record.started);
        if end == RepairEnd::Worse {
            match take_back(session, candidate, before, record) {
                Ok(()) => took_back = true,
                Err(error) => {
                    session.ui.warn(format!(
                        "{candidate}: round {round} is not taken back: {}",
                        error.message
                    ));
                    end = RepairEnd::NoFurther;
                }
            }
        }
        if !is_started {
            end = RepairEnd::NotStarted;
        }
        let is_given_up = !end.goes_on() && end != RepairEnd::Passed && round < of;
        let no_more = if is_given_up { "; it gets no further round" } else { "" };
        session.ui.note(format!("{candidate}: round {round} {}{no_more}", end.in_words()));
        let (candidate, iteration) = (before.candidate.clone(), entry.iteration);
        ends.push(RepairRound { round, candidate, iteration, end });
    }
    (ends, took_back)
}

/// Says which candidates that did not pass had no round: a line for each reason.
fn tell_those_without_rounds(session: &Session, run: &Run, repaired: &Repaired) {
    let had_one =
        |entry: &Entry| repaired.rounds.iter().any(|round| round.candidate == entry.candidate);
    let entries = repaired.verdict.candidates.iter();
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for entry in entries.filter(|entry| !entry.passed_base_tests_too() && !had_one(entry)) {
        let why = match repair::why_no_round(entry) {
            Some(why) => why,
            None if repaired.verdict.decision.decision == DecisionKind::BrokenBase => {
                "the base fails, too".to_owned()
            }
            None if !run.has_command(&entry.candidate) => "no command made it".to_owned(),
            None if !session.store.candidate(run, &entry.candidate).worktree().is_dir() => {
                "no worktree".to_owned()
            }
            None => "the verdict is verified".to_owned(),
        };
        by_reason.entry(why).or_default().push(entry.candidate.as_str());
    }
    for (why, names) in by_reason {
        session.ui.note(format!(
            "run {}: no round of repair for {}: {why}",
            run.run,
            names.join(", ")
        ));
    }
}

/// A candidate that gets another round.
struct StartedRound {
    /// Its judging before the round.
    before: Entry,
    /// Its record before the round.
    record: Candidate,
    command: CandidateCommand,
}

/// The candidates that get another round: those that failed, have a command and a worktree, and have
/// not `ended`.
fn to_repair(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    ended: &BTreeSet<Name>,
) -> Result<Vec<StartedRound>> {
    let mut found = Vec::new();
    let failed = verdict.candidates.iter().filter(|entry| repair::can_be_repaired(entry));
    for entry in failed.filter(|entry| !ended.contains(&entry.candidate)) {
        let candidate = session.store.candidate(run, &entry.candidate);
        let command = CandidateCommand::recorded(&session.repo, candidate)?;
        if let Some(command) = command.filter(|_| candidate.worktree().is_dir()) {
            let command = with_prompt(session, candidate, command, verdict, None)?;
            found.push(StartedRound {
                before: entry.clone(),
                record: candidate.record()?,
                command,
            });
        }
    }
    Ok(found)
}

/// A command whose prompt tells why the candidate failed, and says `more`.
fn with_prompt(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: CandidateCommand,
    verdict: &Verdict,
    more: Option<&str>,
) -> Result<CandidateCommand> {
    let Some(entry) = verdict.entry(candidate.name) else { return Ok(command) };
    let Some((result, second)) = repair::log_to_show(entry) else { return Ok(command) };
    let log = candidate.logs()?.of_judging(entry.iteration, result.stage, second);
    let mut log = log_end::excerpt(&log, LINES);
    leave_out_protected(session, verdict, &mut log)?;
    let task = command.prompt.as_ref().map(|prompt| String::from_utf8_lossy(prompt).into_owned());
    let text = repair::prompt(task.as_deref(), verdict, entry, &log, more);
    let command = CandidateCommand { prompt: Some(text.into_bytes().into()), ..command };
    command.require_prompt()?;
    Ok(command)
}

/// The command of a round by hand. If it has a prompt, that also tells why the candidate failed, as
/// far as it is known, and ends with the words in `more`.
pub fn by_hand(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: CandidateCommand,
    more: Option<Arc<[u8]>>,
) -> Result<CandidateCommand> {
    candidate.require_worktree()?;
    let (task, more) = match (&command.prompt, more) {
        (None, more) => (more, None),
        (Some(task), more) => (Some(task.clone()), more),
    };
    let command = CandidateCommand { prompt: task.clone(), ..command };
    command.require_prompt()?;
    let Some(task) = task else { return Ok(command) };
    let more_text = more.as_ref().map(|more| String::from_utf8_lossy(more));
    match known_failure(session, candidate)? {
        Ok(verdict) => with_prompt(session, candidate, command, &verdict, more_text.as_deref()),
        Err(why) => {
            session.ui.note(format!("{candidate}: the prompt tells of no failure: {why}"));
            let Some(more) = more else { return Ok(command) };
            let prompt = [task.trim_ascii_end(), b"\n\n", &more].concat();
            Ok(CandidateCommand { prompt: Some(prompt.into()), ..command })
        }
    }
}

/// The last verdict, if it tells why the candidate failed in its present state; else the reason why
/// nothing does.
fn known_failure(
    session: &Session,
    candidate: CandidateRef<'_>,
) -> Result<std::result::Result<Verdict, String>> {
    let run = &candidate.run.run;
    let captured = session.capture(candidate)?;
    let state = captured.candidate.state;
    if let Some(end) = repair::bad_end(state) {
        let is_resumed = matches!(state, State::Cancelled | State::Limited)
            && candidate.run.has_command(candidate.name);
        let way = match is_resumed {
            true => format!("; `git frites run --resume {run}` starts it again from the base"),
            false => String::new(),
        };
        return Ok(Err(format!("it was not judged, because {end}{way}")));
    }
    let Some(verdict) = session.store.verdict(run)? else {
        return Ok(Err(format!("run {run} is not judged yet")));
    };
    let entry = verdict.entry(candidate.name);
    let is_same = entry.and_then(|entry| entry.tree) == captured.capture.map(|c| c.tree);
    let why = match entry {
        _ if !is_same => "it has changed since it was judged",
        Some(entry) if repair::can_be_repaired(entry) => return Ok(Ok(verdict)),
        Some(entry) if entry.passed() => "it passed",
        _ => "no command failed on it",
    };
    Ok(Err(why.to_owned()))
}

/// Replaces the lines of a log that show text of a protected file, which is not for the attempt, and
/// cuts long lines.
fn leave_out_protected(session: &Session, verdict: &Verdict, log: &mut [String]) -> Result<()> {
    let texts = protected_texts(session, verdict)?;
    let shown = lines_that_show(log, texts.iter().map(String::as_str));
    for (line, is_shown) in log.iter_mut().zip(shown) {
        *line = match is_shown {
            true => "[a line of a protected file]".to_owned(),
            false => line.chars().take(LONGEST_LINE).collect(),
        };
    }
    Ok(())
}

/// The texts of the protected files of the base.
fn protected_texts(session: &Session, verdict: &Verdict) -> Result<Vec<String>> {
    let protect = &verdict.terms.settings.protect;
    if protect.is_empty() {
        return Ok(Vec::new());
    }
    let repo = &session.repo;
    let tree = repo.commit(&verdict.base)?.tree;
    let index = ScratchIndex::from_tree(&repo.git(), &tree)?;
    let paths = index.git().call("ls-files").args(["-z", "--"]).args(protect).bytes()?;
    let text = |path: &[u8]| {
        let file = repo.file(&tree, &String::from_utf8_lossy(path))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&file[..file.len().min(LARGEST_PROTECTED)]).into_owned())
    };
    nul_separated(&paths).map(text).collect()
}

/// Puts the files of a worktree back to what they were before a round that made them worse, and the
/// state of its attempt. Refuses if something would be overwritten that no capture holds.
fn take_back(
    session: &Session,
    candidate: CandidateRef<'_>,
    before: &Entry,
    record: &Candidate,
) -> Result<()> {
    let _lock = session.store.lock_run(&candidate.run.run)?;
    let base = session.repo.commit(&candidate.run.base)?.tree;
    put_back(session, candidate, &before.tree.unwrap_or(base), record)
}
