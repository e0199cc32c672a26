//! Rounds of repair. If a candidate failed, its command runs again in the candidate's worktree. The
//! prompt tells why the candidate failed. If a round made the candidate worse, the files from
//! before the round are restored. The captures of every round stay.
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::git::cli::nul_separated;
use crate::git::index::ScratchIndex;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::protected_text::lines_that_show;
use crate::model::repair::{self, RepairEnd, RepairRound, can_be_repaired, enough_passed};
use crate::model::run::Run;
use crate::model::verdict::{DecisionKind, Entry, Verdict};
use crate::ops::beside::NextAttempt;
use crate::ops::capture::Captured;
use crate::ops::judge::{NextRounds, RepeatedJudging, RoundGiver};
use crate::ops::log_excerpt;
use crate::ops::session::Session;
use crate::ops::spawn::attempts::{AttemptOptions, Attempts};
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::cost_limit::CostLimit;
use crate::ops::spawn::put_back::put_back;
use crate::process::interrupt;
use crate::store::candidate::CandidateRef;

/// A prompt contains at most this many lines of a log.
const LOG_LINES: usize = 60;

/// Longer log lines are cut to this number of characters.
const LONGEST_LINE: usize = 400;

/// Only the first bytes of each protected file, up to this number, are compared with log lines.
const LARGEST_PROTECTED: usize = 1 << 20;

/// The result of all rounds.
pub struct Repaired {
    /// The verdict after all rounds.
    pub verdict: Verdict,
    /// All rounds of all candidates.
    pub rounds: Vec<RepairRound>,
    /// The changes outside of worktrees that were found while the rounds ran, in words.
    pub escaped: Vec<String>,
}

/// The rounds of a run's candidates. As soon as a failure of a candidate needs no further
/// confirmation, the candidate's next round can begin, even while other attempts still run.
pub struct Rounds<'a> {
    session: &'a Session,
    run: &'a Run,
    /// The maximum number of rounds for each candidate.
    max: u32,
    /// True if no further round begins after the verdict is verified.
    until_pass: bool,
    /// If this many candidates have passed, no further round begins.
    enough: Option<u32>,
    state: Mutex<RoundsState>,
    cost_limit: CostLimit,
}

#[derive(Default)]
struct RoundsState {
    /// The rounds that have begun and are not judged yet.
    running: Vec<StartedRound>,
    ended: Vec<RepairRound>,
}

impl<'a> Rounds<'a> {
    /// Gives each candidate of a run at most `max` rounds. If `until_pass` is true, no
    /// further round begins after the verdict is verified. If `enough` is given, no further round
    /// begins after that many candidates have passed.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        max: u32,
        until_pass: bool,
        enough: Option<u32>,
    ) -> Rounds<'a> {
        let cost_limit = CostLimit::default();
        Rounds { session, run, max, until_pass, enough, state: Mutex::default(), cost_limit }
    }

    /// True if no further round begins. This is so if the base is broken, if enough candidates have
    /// passed, or if `until_pass` is set and the verdict is verified.
    fn are_over(&self, verdict: &Verdict) -> bool {
        verdict.decision.decision == DecisionKind::BrokenBase
            || self.until_pass && verdict.verified()
            || enough_passed(self.enough, &verdict.candidates, verdict.baseline.as_ref())
    }

    /// For each candidate whose round has ended and was judged, compares the results with those
    /// from before the round. If a round made its candidate worse, takes the round back, i.e.
    /// restores the candidate's files from before the round. Returns true if any round was taken
    /// back.
    fn end_rounds(&self, state: &mut RoundsState, verdict: &Verdict) -> bool {
        let mut took_back = false;
        for started in std::mem::take(&mut state.running) {
            let Some(entry) = verdict.entry(&started.before.candidate) else {
                state.running.push(started);
                continue;
            };
            let end = self.end_of(&started, entry);
            took_back |= end == RepairEnd::Worse;
            let is_given_up =
                !matches!(end, RepairEnd::Further | RepairEnd::Passed) && started.round < self.max;
            let no_more = if is_given_up { "; no further round follows" } else { "" };
            let StartedRound { before: Entry { candidate, .. }, round, .. } = started;
            let run = &self.run.run;
            self.session.ui.note(format!("{run}/{candidate}: round {round} {end}{no_more}"));
            state.ended.push(RepairRound { round, candidate, iteration: entry.iteration, end });
        }
        took_back
    }

    /// How a round ended, according to the candidate's results `after` the round. If they are worse
    /// than before, takes the round back. If this fails, warns, and returns `NoFurther`.
    fn end_of(&self, started: &StartedRound, after: &Entry) -> RepairEnd {
        let StartedRound { before, record, round, .. } = started;
        let candidate = self.session.store.candidate(self.run, &before.candidate);
        let is_started = candidate.record().is_ok_and(|now| now.started != record.started);
        if !is_started || after.stopped {
            return RepairEnd::NotStarted;
        }
        let end = repair::compare(before, after);
        if end != RepairEnd::Worse {
            return end;
        }
        let base = self.session.repo.commit(&self.run.base).map(|base| base.tree);
        let taken_back = base.and_then(|base| {
            put_back(self.session, candidate, &before.tree.unwrap_or(base), record)
        });
        match taken_back {
            Ok(()) => end,
            Err(error) => {
                self.session.ui.warn(format!(
                    "{candidate}: could not restore the files from before round {round}: {error}"
                ));
                RepairEnd::NoFurther
            }
        }
    }

    /// Prepares and notes the next round of each candidate that fulfils these conditions:
    ///
    /// * It can be repaired, and has a command and a worktree.
    /// * It has rounds left, and none of its rounds is running.
    /// * It got further in its last round, if it had one.
    fn prepare(&self, state: &mut RoundsState, verdict: &Verdict) -> Result<Vec<NextAttempt>> {
        let mut begun = Vec::new();
        for entry in verdict.candidates.iter().filter(|entry| can_be_repaired(entry)) {
            let mut rounds = state.ended.iter().filter(|round| round.candidate == entry.candidate);
            let round = rounds.clone().count() as u32 + 1;
            let goes_on = rounds.next_back().is_none_or(|last| last.end == RepairEnd::Further);
            let is_running = state.running.iter().any(|r| r.before.candidate == entry.candidate);
            if round > self.max || !goes_on || is_running {
                continue;
            }
            let candidate = self.session.store.candidate(self.run, &entry.candidate);
            if !candidate.worktree().is_dir() {
                continue;
            }
            let command = CandidateCommand::recorded(&self.session.repo, candidate)?;
            let Some(command) = command else { continue };
            let command = with_prompt(self.session, candidate, command, verdict, None)?;
            begun.push(NextAttempt {
                candidate: entry.candidate.clone(),
                command,
                is_further_round: true,
            });
            state.running.push(StartedRound {
                round,
                before: entry.clone(),
                record: candidate.record()?,
            });
        }
        Ok(begun)
    }

    /// Tells the user which candidates begin a round.
    fn tell(&self, state: &RoundsState, begun: &[NextAttempt], verdict: &Verdict) {
        let mut by_round: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for StartedRound { round, before: Entry { candidate, .. }, .. } in &state.running {
            if begun.iter().any(|next| next.candidate == *candidate) {
                by_round.entry(*round).or_default().push(candidate.as_str());
            }
        }
        let Rounds { run, max: of, .. } = self;
        let found = repair::passes_in_words(&verdict.candidates);
        let is_all = verdict.candidates.len() == self.run.candidates.len();
        let so_far = if is_all { "" } else { " so far" };
        for (round, names) in by_round {
            let names = names.join(", ");
            self.session
                .ui
                .note(format!("run {run}: {found}{so_far}; round {round} of {of} repairs {names}"));
        }
    }
}

impl RoundGiver for Rounds<'_> {
    fn next(&self, verdict: &Verdict) -> Result<NextRounds> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let took_back = self.end_rounds(state, verdict);
        let mut begun = Vec::new();
        if !self.are_over(verdict) {
            let running = state.running.len();
            begun = self.prepare(state, verdict)?;
            let effect = "so no round of repair begins";
            if !begun.is_empty() && self.cost_limit.is_reached(self.session, self.run, effect)? {
                state.running.truncate(running);
                begun.clear();
            }
        }
        self.tell(state, &begun, verdict);
        Ok(NextRounds { begun, took_back })
    }
}

/// Repairs the candidates that failed, round by round, until each of them passes, makes no more
/// progress, or has had all its rounds. `judge` judges the run again. Its argument is true if a
/// command of a round changed something that is outside of the worktrees and can affect outcomes,
/// e.g. git's configuration.
pub fn repair(
    rounds: &Rounds<'_>,
    mut verdict: Verdict,
    options: &AttemptOptions,
    judging: &RepeatedJudging<'_>,
    mut judge: impl FnMut(bool) -> Result<Verdict>,
) -> Result<Repaired> {
    let Rounds { session, run, .. } = *rounds;
    let mut escaped = Vec::new();
    while rounds.max > 0 && interrupt::signal().is_none() {
        let next = {
            let _lock = session.store.lock_run(&run.run)?;
            rounds.next(&verdict)?
        };
        if next.begun.is_empty() {
            if next.took_back {
                verdict = judge(false)?;
            }
            break;
        }
        let starting: Vec<Name> = next.begun.iter().map(|one| one.candidate.clone()).collect();
        let base_failed = verdict.baseline.as_ref().is_some_and(|base| !base.results.passed());
        let enough = if base_failed { rounds.enough } else { None };
        let eager = judging.beside(run, &starting, rounds, enough)?;
        let report = Attempts { session, run, options, beside: &eager }.rerun(next.begun)?;
        escaped.extend(report.escaped);
        if interrupt::signal().is_some() {
            break;
        }
        // The run is judged again only if a round changed its candidate or was taken back.
        if next.took_back || report.results.iter().any(|captured| is_changed(captured, &verdict)) {
            verdict = judge(report.affects_outcomes)?;
        }
    }
    let RoundsState { mut ended, .. } = std::mem::take(&mut *rounds.state.lock());
    ended.sort_by_key(|RepairRound { round, candidate, .. }| {
        (*round, run.candidates.iter().position(|name| name == candidate))
    });
    let repaired = Repaired { verdict, rounds: ended, escaped };
    if rounds.max > 0 && !rounds.cost_limit.is_told() && interrupt::signal().is_none() {
        tell_those_without_rounds(session, run, &repaired);
    }
    Ok(repaired)
}

/// True if a candidate's tree differs from the tree that the verdict judged, or if the candidate is
/// not usable.
fn is_changed(captured: &Captured, verdict: &Verdict) -> bool {
    let before = verdict.entry(&captured.candidate.candidate);
    !captured.usable() || captured.capture.as_ref().map(|c| c.tree) != before.and_then(|b| b.tree)
}

/// Tells the user which candidates did not pass but had no round. Prints one line for each reason.
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
            None if !run.has_command(&entry.candidate) => "no command to run again".to_owned(),
            None if !session.store.candidate(run, &entry.candidate).worktree().is_dir() => {
                "no worktree".to_owned()
            }
            None if repaired.verdict.verified() => "the verdict is verified".to_owned(),
            None => "enough candidates have passed".to_owned(),
        };
        by_reason.entry(why).or_default().push(entry.candidate.as_str());
    }
    for (why, names) in by_reason {
        session.ui.note(format!("run {run}: no round of repair for {}: {why}", names.join(", ")));
    }
}

/// A round that has begun.
struct StartedRound {
    round: u32,
    /// The candidate's results before the round.
    before: Entry,
    /// The candidate's record before the round.
    record: Candidate,
}

/// Returns the command with a new prompt. The prompt tells why the candidate failed, and ends with
/// `more`, the words of the user. But if `verdict` has no failure with a log to show, returns the
/// command unchanged.
fn with_prompt(
    session: &Session,
    candidate: CandidateRef<'_>,
    command: CandidateCommand,
    verdict: &Verdict,
    more: Option<&str>,
) -> Result<CandidateCommand> {
    let Some(entry) = verdict.entry(candidate.name) else { return Ok(command) };
    let Some((result, second)) = repair::log_to_show(entry) else { return Ok(command) };
    let log = candidate.logs().of_judging(entry.iteration, result.stage, second);
    let mut log = log_excerpt::of(&log, LOG_LINES);
    let root = candidate.run.root();
    leave_out_protected(session, root, verdict, &mut log)?;
    let task = command.prompt.as_ref().map(|prompt| String::from_utf8_lossy(prompt).into_owned());
    let text = repair::prompt(task.as_deref(), (verdict, root), entry, &log, more);
    let command = CandidateCommand { prompt: Some(text.into_bytes().into()), ..command };
    command.require_prompt()?;
    Ok(command)
}

/// The command of a round that a user asked for (`git frites retry`). Its prompt has three parts:
///
/// * the prompt of `command`. If `command` has none, `more` is used in its place;
/// * the reason why the candidate failed, if it is known;
/// * `more`, the words of the user.
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
            session.ui.note(format!("{candidate}: the new prompt names no failure: {why}"));
            let Some(more) = more else { return Ok(command) };
            let prompt = [task.trim_ascii_end(), b"\n\n", &more].concat();
            Ok(CandidateCommand { prompt: Some(prompt.into()), ..command })
        }
    }
}

/// The last verdict, if it has the reason why the candidate failed, and the candidate's files have
/// not changed since. Otherwise, the inner error has the reason why no failure is known, e.g. "the
/// candidate passed".
fn known_failure(
    session: &Session,
    candidate: CandidateRef<'_>,
) -> Result<std::result::Result<Verdict, String>> {
    let run = &candidate.run.run;
    let captured = session.capture(candidate)?;
    let state = captured.candidate.state;
    if let Some(end) = repair::bad_end(state) {
        let can_be_resumed = matches!(state, State::Cancelled | State::Limited)
            && candidate.run.has_command(candidate.name);
        let way = match can_be_resumed {
            true => format!("; `git frites run --resume {run}` starts it again from the base"),
            false => String::new(),
        };
        return Ok(Err(format!("the candidate was not judged, because {end}{way}")));
    }
    let Some(verdict) = session.store.verdict(run)? else {
        return Ok(Err(format!("run {run} is not judged yet")));
    };
    let entry = verdict.entry(candidate.name);
    let is_same = entry.and_then(|entry| entry.tree) == captured.capture.map(|c| c.tree);
    let why = match entry {
        _ if !is_same => "the candidate has changed since it was judged",
        Some(entry) if can_be_repaired(entry) => return Ok(Ok(verdict)),
        Some(entry) if entry.passed() => "the candidate passed",
        _ => "no command failed on the candidate",
    };
    Ok(Err(why.to_owned()))
}

/// Replaces log lines that show text of a protected file, because attempts must not see such text.
/// Cuts long lines.
fn leave_out_protected(
    session: &Session,
    root: &Oid,
    verdict: &Verdict,
    log: &mut [String],
) -> Result<()> {
    let texts = protected_texts(session, root, verdict)?;
    let shown = lines_that_show(log, texts.iter().map(String::as_str));
    for (line, is_shown) in log.iter_mut().zip(shown) {
        *line = match is_shown {
            true => "[a line of a protected file]".to_owned(),
            false => line.chars().take(LONGEST_LINE).collect(),
        };
    }
    Ok(())
}

/// The texts of the protected files in the commit `root`. Judged trees get their protected files
/// from this commit.
fn protected_texts(session: &Session, root: &Oid, verdict: &Verdict) -> Result<Vec<String>> {
    let protect = &verdict.terms.settings.protect;
    if protect.is_empty() {
        return Ok(Vec::new());
    }
    let repo = &session.repo;
    let tree = repo.commit(root)?.tree;
    let index = ScratchIndex::from_tree(&repo.git(), &tree)?;
    let paths = index.git().call("ls-files").args(["-z", "--"]).args(protect).bytes()?;
    nul_separated(&paths)
        .map(|path| {
            // A link or a submodule has no text.
            let file = repo.file(&tree, path)?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&file[..file.len().min(LARGEST_PROTECTED)]).into_owned())
        })
        .collect()
}
