//! Judges while attempts are at work: first the base, and then each attempt when it has ended.
use parking_lot::{Condvar, Mutex};

use crate::config::keys;
use crate::error::Result;
use crate::integrity::baseline;
use crate::model::candidate::ENOUGH_PASSED;
use crate::model::decision::decide;
use crate::model::name::Name;
use crate::model::outcome::{Stage, StageResult};
use crate::model::ranking::Rules;
use crate::model::repair::{can_be_repaired, enough_passed, is_told};
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::model::world::WorldKind;
use crate::ops::beside::{AttemptsAtWork, Beside, NextAttempt};
use crate::ops::guard;
use crate::ops::judge::RepeatedJudging;
use crate::ops::judge::confirm::{open_claims, stumbled, to_confirm};
use crate::ops::judge::entries;
use crate::ops::judge::next_step::{StepRules, StepsTaken, next_step};
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::record::undecided;
use crate::ops::judge::runner::OracleRunner;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::oracle::ledger::Memory;
use crate::process::interrupt::{self, Cancel};

/// Decides which failed candidates get another round.
pub trait RoundGiver: Sync {
    /// Ends the last rounds of the candidates whose results are in `verdict`, and returns the
    /// rounds that begin now. The caller holds the run's lock.
    fn next(&self, verdict: &Verdict) -> Result<NextRounds>;
}

/// The rounds that begin now.
#[derive(Default)]
pub struct NextRounds {
    /// The commands of the rounds.
    pub begun: Vec<NextAttempt>,
    /// True if a candidate got back its files from before its last round. It then has a new
    /// capture.
    pub took_back: bool,
}

/// Judges a run ahead, while the commands of its attempts run. The outcomes are kept in the memory
/// of this process. The judging that decides afterwards takes them from there, and judges only the
/// missing trees.
///
/// The commands that judge have no watch of their own, because two watches would report each change
/// twice. The watch over the attempts also covers the commands that judge: that watch begins before
/// these commands and ends after them. If it finds a change that affects outcomes, everything is
/// judged again.
pub struct EagerJudge<'a> {
    session: &'a Session,
    options: &'a JudgeOptions,
    memory: &'a Memory,
    run: &'a Run,
    terms: Terms,
    /// True if only the base is judged.
    only_base: bool,
    /// If this many attempts have passed, the others are ended.
    enough: Option<u32>,
    /// Decides which failed candidates get another round while other attempts are at work.
    rounds: &'a dyn RoundGiver,
    ended: Mutex<EndedAttempts>,
    changed: Condvar,
}

/// The attempts that have ended.
struct EndedAttempts {
    names: Vec<Name>,
    /// The number of attempts whose commands run or are still to run.
    at_work: usize,
    /// True if all attempts have ended.
    all: bool,
    /// The number of times that the fields above have changed.
    changes: u64,
}

impl EndedAttempts {
    fn set(&mut self, at_work: usize) {
        self.at_work = at_work;
        self.all = at_work == 0;
        self.changes += 1;
    }
}

impl<'a> RepeatedJudging<'a> {
    /// A judge that works while the attempts in `starting` run. Attempts that are not in `starting`
    /// have ended before, and are judged immediately. `rounds` decides which failed candidates get
    /// another round while other attempts are at work. As soon as `enough` attempts have passed,
    /// the others are ended. Fails if the oracle's commands cannot run as the configuration
    /// requires.
    pub fn beside(
        &'a self,
        run: &'a Run,
        starting: &[Name],
        rounds: &'a dyn RoundGiver,
        enough: Option<u32>,
    ) -> Result<EagerJudge<'a>> {
        let Self { session, options, memory } = self;
        let terms = options.terms_to_run(session, &options.oracle(session, run.root())?)?;
        let only_base = why_late(session, terms.settings.commands.world)?.is_some();
        let before = run.candidates.iter().filter(|name| !starting.contains(name));
        let names = before.cloned().collect();
        let ended = EndedAttempts { names, at_work: starting.len(), all: false, changes: 0 };
        Ok(EagerJudge {
            session,
            options,
            memory,
            run,
            terms,
            only_base,
            enough,
            rounds,
            ended: Mutex::new(ended),
            changed: Condvar::new(),
        })
    }
}

impl EagerJudge<'_> {
    fn try_work(&self, attempts: &AttemptsAtWork<'_>) -> Result<()> {
        let EagerJudge { session, options, memory, .. } = *self;
        let runner = OracleRunner::new(session, self.run, self.terms.clone(), options, memory)?;
        let _kept = KeptCommits { session, run: self.run };
        baseline::judge_beside(&session.store, &self.run.run, runner.commands)?;
        let on_end = |result: &StageResult| match result.is_unjudgeable() {
            true => attempts.gate.lock(format!(
                "{} does not pass on the base ({})",
                result.stage,
                result.why_not_passed()
            )),
            false => attempts.gate.open(),
        };
        let work = |runner: &OracleRunner<'_>| {
            runner.judge_base_ahead(attempts.cancel, &on_end)?;
            attempts.gate.open();
            if self.enough.is_some() && runner.known_base()?.is_some_and(|b| b.results.passed()) {
                session.ui.note(format!(
                    "run {}: the base passes, so no attempt is stopped: otherwise, the first attempt that \
                     changes nothing of importance would win",
                    self.run.run
                ));
            }
            if self.only_base { Ok(()) } else { self.judge_all(runner, attempts) }
        };
        let runner = runner.covered_by_another_watch()?;
        let judged = work(&runner);
        runner.end(judged).map(drop)
    }

    /// Judges each attempt that has ended, until all attempts have ended.
    fn judge_all(&self, runner: &OracleRunner<'_>, attempts: &AttemptsAtWork<'_>) -> Result<()> {
        let options = self.options;
        let rules = StepRules {
            ranking: Rules::of(&self.terms),
            warmth: runner.warmth(),
            until_pass: options.until_pass,
            counts_passes: self.enough.is_some(),
            jobs: options.jobs,
        };
        let mut taken = StepsTaken::default();
        let mut new: Vec<Entry> = Vec::new();
        let mut read = None;
        let mut seen = None;
        while let Some((names, changes)) = self.next(seen) {
            if read != Some(changes) {
                new = self.entries(runner, &names)?;
                read = Some(changes);
            }
            let mut entries = new.clone();
            runner.fill_in_known(&mut entries)?;
            let base = runner.known_base()?;
            show_standing(&entries, base.as_ref(), &rules, attempts);
            if !attempts.stop.is_cancelled() && enough_passed(self.enough, &entries, base.as_ref())
            {
                let run = &self.run.run;
                self.session.ui.note(format!(
                    "run {run}: enough candidates have passed; the other attempts end"
                ));
                attempts.gate.lock(ENOUGH_PASSED.to_owned());
                attempts.stop.end_politely();
            }
            if self.give_rounds(runner, &entries, base.as_ref(), attempts)? {
                read = None;
                continue;
            }
            seen = None;
            match next_step(&entries, &taken, &rules) {
                None => seen = read,
                Some(step) => {
                    runner.take_step(&entries, &step, attempts.board, attempts.cancel)?;
                    let judged = entries.iter().filter(|e| step.entries.contains(&e.index));
                    judged.for_each(|entry| taken.note(entry, &step));
                }
            }
        }
        Ok(())
    }

    /// While other attempts are at work, begins another round of each candidate whose failure needs
    /// no further confirmation. Returns true if a round began or was taken back.
    fn give_rounds(
        &self,
        runner: &OracleRunner<'_>,
        entries: &[Entry],
        baseline: Option<&Baseline>,
        attempts: &AttemptsAtWork<'_>,
    ) -> Result<bool> {
        if attempts.stop.is_cancelled() || interrupt::signal().is_some() {
            return Ok(false);
        }
        // If no attempt is at work any more, further rounds are decided after the verdict.
        let Some(hold) = attempts.queue.hold() else { return Ok(false) };
        let ranking = Rules::of(&self.terms);
        let open: Vec<u32> = open_claims(entries, ranking).iter().map(|e| e.index).collect();
        let mut candidates = entries.to_vec();
        candidates.retain(|entry| {
            is_told(entry) && !open.contains(&entry.index) && !stumbled(&entry.results)
        });
        let mut failed = candidates.iter().filter(|entry| can_be_repaired(entry));
        failed.try_for_each(|entry| runner.bring_logs(entry))?;
        let decision = decide(entries, baseline, ranking);
        let undecided = undecided(self.run, self.terms.clone(), 0, jiff::Timestamp::now());
        let baseline = baseline.cloned();
        let next = self.rounds.next(&Verdict { decision, baseline, candidates, ..undecided })?;
        let is_changed = next.took_back || !next.begun.is_empty();
        for round in next.begun {
            let mut ended = self.ended.lock();
            ended.names.retain(|name| *name != round.candidate);
            let at_work = ended.at_work + 1;
            ended.set(at_work);
            drop(ended);
            hold.add(round);
        }
        Ok(is_changed)
    }

    /// Waits until the number of changes is not `seen` any more. Returns the attempts that have
    /// ended, and the number of changes. Returns `None` if all attempts have ended.
    fn next(&self, seen: Option<u64>) -> Option<(Vec<Name>, u64)> {
        let mut ended = self.ended.lock();
        self.changed.wait_while(&mut ended, |ended| !ended.all && seen == Some(ended.changes));
        (!ended.all).then(|| (ended.names.clone(), ended.changes))
    }

    fn entries(&self, runner: &OracleRunner<'_>, names: &[Name]) -> Result<Vec<Entry>> {
        let session = self.session;
        let stored = |name| session.stored(session.store.candidate(self.run, name));
        let captured = names.iter().map(stored).collect::<Result<Vec<_>>>()?;
        let entries = entries::from_captured(session, self.run, &runner.terms, &captured)?;
        entries::keep_trees(session, self.run, &runner.terms, &entries)?;
        Ok(entries)
    }
}

impl Beside for EagerJudge<'_> {
    /// Judges until all attempts have ended. An error is only a warning, because the judging that
    /// decides afterwards judges the missing trees.
    ///
    /// The commands of attempts start as soon as the setup has passed on the base. But they do not
    /// start if a command ends on the base in a way that would prevent judging any candidate.
    fn work(&self, attempts: &AttemptsAtWork<'_>) {
        match self.terms.oracle.first().map(|command| command.stage) {
            None => return,
            Some(Stage::Setup) => {}
            Some(_) => attempts.gate.open(),
        }
        if let Err(error) = self.try_work(attempts)
            && interrupt::signal().is_none()
            && !attempts.cancel.is_cancelled()
        {
            let ui = &self.session.ui;
            ui.warn(format!("run {}: judging ahead ended: {}", self.run.run, error.message));
        }
    }

    fn attempt_ended(&self, name: &Name) {
        let mut ended = self.ended.lock();
        ended.names.push(name.clone());
        let at_work = ended.at_work.saturating_sub(1);
        ended.set(at_work);
        drop(ended);
        self.changed.notify_all();
    }

    /// Notes that all attempts have ended. If no attempt is usable, cancels the judging, because
    /// the verdict then needs no results, not even the base's.
    fn all_ended(&self, cancel: &Cancel) {
        self.ended.lock().all = true;
        self.changed.notify_all();
        let mut candidates = self.session.store.candidates(self.run);
        if !candidates.any(|c| c.record().map_or(true, |record| record.state.usable(1))) {
            cancel.cancel();
        }
    }
}

/// The reason why no attempt is judged in this world before all attempts have ended; `None` if each
/// attempt can be judged as soon as it ends.
pub fn why_late(session: &Session, world: WorldKind) -> Result<Option<String>> {
    if !session.config.get(keys::RUN_EAGER) {
        return Ok(Some("run.eager is off".to_owned()));
    }
    if world == WorldKind::Open {
        return Ok(Some("nothing confines the commands that judge".to_owned()));
    }
    Ok(match guard::choose(session)? {
        None => Some("attempts are not guarded".to_owned()),
        Some(guard) => guard.why_not_apart().map(str::to_owned),
    })
}

/// Shows on the terminal which candidate leads, and how many candidates the verdict waits for.
fn show_standing(
    entries: &[Entry],
    base: Option<&Baseline>,
    rules: &StepRules,
    attempts: &AttemptsAtWork<'_>,
) {
    let best = decide(entries, base, rules.ranking).recommended;
    let leader = best.filter(|name| entries.iter().any(|e| e.candidate == *name && e.passed()));
    let to_judge = entries.iter().filter(|entry| entry.not_run()).count();
    let to_confirm = to_confirm(entries, rules.ranking).len();
    let words = [(to_judge, "to judge"), (to_confirm, "to confirm")];
    let words = words.iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> = words.map(|(number, what)| format!("{number} {what}")).collect();
    attempts.board.stands(leader, words.join(", "));
}
