//! Judges some parts of an opened run, on any machine. The terms of the run say how.
use std::path::Path;
use std::time::Duration;

use crate::config::keys;
use crate::error::{Error, Result};
use crate::model::candidate::Capture;
use crate::model::name::Name;
use crate::model::outcome::StageResult;
use crate::model::part::{Part, PartOutcome, SharedTerms, TreeToJudge};
use crate::model::run::Run;
use crate::model::verdict::{Baseline, Entry};
use crate::ops::judge::part_judge::{PartJudge, record_event};
use crate::ops::judge::{JudgeOptions, why_not_working, worlds};
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::ops::shard::exchange::{Exchange, part_storage, write_bundle};
use crate::oracle;
use crate::store::parts::NewOutcome;

/// Judges parts of an opened run. The outcomes are stored in this repository, unless a remote is
/// given.
pub struct ShardJudge<'s, 'a> {
    pub session: &'s Session,
    pub run: &'s Run,
    /// The terms of the run.
    pub terms: &'s SharedTerms,
    /// The number of parts that are judged at the same time.
    pub jobs: usize,
    /// The repository that the outcomes are pushed to; `None` to store them only here.
    pub remote: Option<&'s Exchange<'a>>,
    /// The file that the outcomes are written to instead of being pushed.
    pub bundle: Option<&'s Path>,
}

impl<'s> ShardJudge<'s, '_> {
    /// Judges these parts, `jobs` at a time, and stores the outcomes of each group before the next
    /// group begins: at the remote if there is one, else here. With a bundle, stores the outcomes
    /// here, and writes the bundle at the end. Parts whose outcome is already stored are not
    /// judged.
    ///
    /// Calls `on_part` for each part, with its outcome, and with true if the outcome was already
    /// stored. Fails at the first part that cannot be judged here or whose outcome cannot be
    /// stored.
    pub fn judge(
        &self,
        parts: &[Part],
        mut on_part: impl FnMut(&Part, &PartOutcome, bool),
    ) -> Result<()> {
        let ShardJudge { session, run, terms, remote, bundle, .. } = *self;
        let _lock = session.store.share_run(&run.run)?;
        for part in parts {
            if let Part::Candidate(name) = part {
                self.require_part(name)?;
            }
        }
        let storage = part_storage(session, run, remote);
        let mut waiting = Vec::new();
        for part in terms.parts().filter(|part| parts.contains(part)) {
            match storage.find(&part, terms)? {
                Some(outcome) => on_part(&part, &outcome, true),
                None => waiting.push(part),
            }
        }
        if !waiting.is_empty() {
            let judge = self.part_judge()?;
            self.fetch_captures(&waiting)?;
            let _kept = KeptCommits { session, run };
            let mut known: Vec<PartOutcome> = Vec::new();
            for chunk in waiting.chunks(self.jobs.max(1)) {
                let found = self.judge_chunk(&judge, chunk)?;
                self.require_startable(&judge, &found, &mut known)?;
                for new in found {
                    match (remote, bundle) {
                        (Some(exchange), None) => exchange.share(terms, &new)?,
                        _ => session.store.save_outcome(&new)?,
                    }
                    record_event(session, run, &new.outcome)?;
                    on_part(&new.outcome.part(), &new.outcome, false);
                }
            }
        }
        bundle.map_or(Ok(()), |file| write_bundle(session, run, parts, file))
    }

    fn require_part(&self, name: &Name) -> Result<()> {
        if self.terms.tree_of(name).is_some() {
            return Ok(());
        }
        let run = &self.terms.run;
        Err(match self.terms.trees.iter().find(|tree| tree.same.contains(name)) {
            Some(first) => Error::fatal(format!(
                "{run}/{name} has the same tree as {run}/{}, and is judged under that name",
                first.candidate
            ))
            .hint(format!("`git frites shard judge {run}/{}`", first.candidate)),
            None => Error::fatal(format!(
                "{run}/{name} is not part of the judging that was opened"
            ))
            .hint(format!(
                "`git frites shard list {run}` lists what is to be judged; `git frites shard open {run}` opens the run again"
            )),
        })
    }

    /// If there is a remote, fetches the captures of these parts.
    fn fetch_captures(&self, parts: &[Part]) -> Result<()> {
        let names = parts.iter().filter_map(|part| match part {
            Part::Candidate(name) => Some(name.clone()),
            Part::Base => None,
        });
        let names: Vec<Name> = names.collect();
        self.remote.map_or(Ok(()), |remote| remote.fetch_captures(&names))
    }

    fn judge_chunk(&self, judge: &PartJudge<'_>, parts: &[Part]) -> Result<Vec<NewOutcome>> {
        let ShardJudge { session, run, terms, remote, .. } = *self;
        let mut captured = Vec::new();
        for part in parts {
            let Part::Candidate(name) = part else { continue };
            let Some(TreeToJudge { commit, tree, iteration, .. }) = terms.tree_of(name) else {
                continue;
            };
            if !session.repo.is_commit(commit) {
                let refs = format!("'refs/frites/{run}/*:refs/frites/{run}/*'");
                let hint = match remote {
                    Some(_) => format!("push it from where it was made: `git push REMOTE {refs}`"),
                    None => {
                        format!("fetch it: `git fetch REMOTE {refs}`, or judge with `--remote`")
                    }
                };
                return Err(Error::fatal(format!(
                    "{run}/{name}: the capture {commit:.10} that is to be judged is not here"
                ))
                .hint(hint));
            }
            let capture = Capture { commit: *commit, tree: *tree, iteration: *iteration };
            captured.push(session.stored_at(session.store.candidate(run, name), capture)?);
        }
        let mut outcomes = Vec::new();
        if !captured.is_empty() {
            outcomes = judge.judge_captured(&captured)?;
        }
        if parts.contains(&Part::Base) {
            outcomes.push(judge.judge_base()?);
        }
        Ok(outcomes)
    }

    /// Fails if a command starts neither on the base nor on any candidate. Then the `found`
    /// outcomes must not be stored: they say nothing about a candidate, and another machine may
    /// have the missing program. `known` collects the outcomes that were found on this machine.
    ///
    /// A shell reports a missing program only by its exit code, but a candidate may also have
    /// caused this code. So the base is judged, too. If the command does not start on the base
    /// either, the candidates are judged one after another until the command starts on one.
    fn require_startable(
        &self,
        judge: &PartJudge<'_>,
        found: &[NewOutcome],
        known: &mut Vec<PartOutcome>,
    ) -> Result<()> {
        known.extend(found.iter().map(|new| new.outcome.clone()));
        let could_not_start = |result: &StageResult| result.outcome.could_not_start();
        if !found.iter().any(|new| new.outcome.all_results().any(could_not_start)) {
            return Ok(());
        }
        let candidates = self.terms.parts().filter(|part| *part != Part::Base);
        for part in [Part::Base].into_iter().chain(candidates) {
            if part != Part::Base && started_nowhere(known).is_none() {
                return Ok(());
            }
            if known.iter().all(|outcome| outcome.part() != part) {
                self.fetch_captures(std::slice::from_ref(&part))?;
                let judged = self.judge_chunk(judge, &[part])?;
                known.extend(judged.into_iter().map(|new| new.outcome));
            }
        }
        match started_nowhere(known) {
            None => Ok(()),
            Some(result) => Err(why_not_working(&judge.terms.oracle, &result).hint(
                "install on this machine what it needs, and judge again: no outcome was stored",
            )),
        }
    }

    /// The judge for the run's terms on this machine. Fails if this machine lacks a seed, a program
    /// or the kind of world, because no candidate is to blame for that.
    fn part_judge(&self) -> Result<PartJudge<'s>> {
        let ShardJudge { session, run, terms, jobs, .. } = *self;
        let SharedTerms { oracle, settings, seeds, .. } = terms;
        oracle::require_programs(oracle, keys::ORACLE_SETUP.name)?;
        worlds::require(session, settings.commands.world)?;
        let found = session.seeds_by(&seeds.copy, &seeds.link, run.root())?;
        if found.digest()? != seeds.digest {
            let here: Vec<String> =
                found.paths().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            let missing = seeds.paths.iter().find(|path| !here.contains(path));
            let more = here.iter().find(|path| !seeds.paths.contains(path));
            let what = match (missing, more) {
                (Some(path), _) => format!("'{path}' is missing"),
                (None, Some(path)) => format!("'{path}' is here, and was not there"),
                (None, None) => "their contents differ".to_owned(),
            };
            let why =
                format!("the seeds here are not those that run {run} was opened with: {what}");
            let hint = "put the same untracked files into a clone on this machine, and judge there with \
                        `--remote NAME`";
            return Err(Error::fatal(why).hint(hint));
        }
        Ok(PartJudge {
            session,
            run,
            terms: terms.terms(),
            round: terms.round,
            options: JudgeOptions {
                jobs,
                timeout: Some(Duration::from_millis(terms.timeout_ms)),
                // The cache may have outcomes of earlier judgings, which are not valid for this
                // `round`.
                no_cache: true,
                seeds: Some((seeds.copy.clone(), seeds.link.clone())),
                ..JudgeOptions::default()
            },
        })
    }
}

/// The result of a command that started neither on the base nor on any candidate in `known`; `None`
/// if there is no such command.
fn started_nowhere(known: &[PartOutcome]) -> Option<StageResult> {
    let results = known.iter().find(|outcome| outcome.candidate.is_none())?.on_base.clone();
    let base = Baseline { results, inherited: false };
    let candidates: Vec<Entry> = known.iter().filter_map(|one| one.candidate.clone()).collect();
    match base.results.stopped_at().filter(|result| result.outcome.could_not_start()) {
        // No candidate has been judged yet, so only the base counts.
        Some(result) if candidates.is_empty() => Some(result.clone()),
        _ => base.starts_nowhere(&candidates).cloned(),
    }
}
