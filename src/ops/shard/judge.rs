//! Judging some parts of an opened run on its terms, wherever that is.
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::candidate::Capture;
use crate::model::name::Name;
use crate::model::part::{Part, PartOutcome, SharedTerms, TreeToJudge};
use crate::model::run::Run;
use crate::ops::judge::JudgeOptions;
use crate::ops::judge::part_judge::{PartJudge, record_event};
use crate::ops::judge::worlds;
use crate::ops::kept_commits::KeptCommits;
use crate::ops::session::Session;
use crate::ops::shard::bundle::write_bundle;
use crate::ops::shard::exchange::Exchange;
use crate::ops::shard::parts::shelf;
use crate::ops::shard::startable::Startable;
use crate::oracle::programs;
use crate::store::outcomes::NewOutcome;

/// The place that outcomes go to: this repository, if no other is named.
#[derive(Clone, Copy)]
pub struct Sink<'s, 'a> {
    /// The repository that has the run.
    pub remote: Option<&'s Exchange<'a>>,
    /// The file that outcomes are written to instead of being pushed.
    pub bundle: Option<&'s Path>,
}

/// Judges these parts of an opened run, one after another, and stores each outcome before the next
/// part begins: at the remote if there is one, or else here; with a bundle, here and in that file
/// at the end. A part whose outcome is stored is left out.
///
/// Calls `on_part` for each part, with its outcome and with true if that was stored before. Fails
/// at the first part that cannot be judged here or whose outcome cannot be stored.
pub fn judge_parts(
    session: &Session,
    run: &Run,
    terms: &SharedTerms,
    parts: &[Part],
    jobs: usize,
    sink: Sink<'_, '_>,
    mut on_part: impl FnMut(&Part, &PartOutcome, bool) -> Result<()>,
) -> Result<()> {
    let _lock = session.store.share_run(&run.run)?;
    let mut waiting = Vec::new();
    for part in parts {
        if let Part::Candidate(name) = part {
            require_part(terms, name)?;
        }
    }
    let shelf = shelf(session, run, sink.remote);
    for part in terms.parts().filter(|part| parts.contains(part)) {
        match shelf.find(&part, terms)? {
            Some(outcome) => on_part(&part, &outcome, true)?,
            None => waiting.push(part),
        }
    }
    let Sink { remote, bundle } = sink;
    if !waiting.is_empty() {
        let judge = part_judge(session, run, terms, jobs)?;
        let fetch = |parts: &[Part]| {
            let names = parts.iter().filter_map(|part| match part {
                Part::Candidate(name) => Some(name.clone()),
                Part::Base => None,
            });
            remote.map_or(Ok(()), |remote| remote.fetch_captures(&names.collect::<Vec<_>>()))
        };
        fetch(&waiting)?;
        let _kept = KeptCommits::new(session, run);
        let mut startable = Startable::default();
        let candidates: Vec<Part> = terms.parts().filter(|part| *part != Part::Base).collect();
        let judge_other = |part: &Part| {
            fetch(std::slice::from_ref(part))?;
            judge_chunk(&judge, terms, std::slice::from_ref(part))
        };
        for chunk in waiting.chunks(jobs.max(1)) {
            let found = judge_chunk(&judge, terms, chunk)?;
            startable.require(&found, &candidates, judge_other)?;
            for new in found {
                match remote.filter(|_| bundle.is_none()) {
                    Some(exchange) => exchange.share(terms, &new)?,
                    None => session.store.save_outcome(&new)?,
                }
                record_event(session, run, &new.outcome)?;
                on_part(&new.outcome.part(), &new.outcome, false)?;
            }
        }
    }
    bundle.map_or(Ok(()), |file| write_bundle(session, run, parts, file))
}

fn require_part(terms: &SharedTerms, name: &Name) -> Result<()> {
    if terms.tree_of(name).is_some() {
        return Ok(());
    }
    let run = &terms.run;
    Err(match terms.trees.iter().find(|tree| tree.same.contains(name)) {
        Some(first) => Error::fatal(format!("{run}/{name} has the tree of {run}/{}, under whose name it is judged", first.candidate))
            .hint(format!("`git frites shard judge {run}/{}`", first.candidate)),
        None => Error::fatal(format!("{run}/{name} is no part of the judging that was opened"))
            .hint(format!("`git frites shard list {run}` lists what is to be judged; `git frites shard open {run}` opens the run again")),
    })
}

fn judge_chunk(
    judge: &PartJudge<'_>,
    terms: &SharedTerms,
    parts: &[Part],
) -> Result<Vec<NewOutcome>> {
    let PartJudge { session, run, .. } = judge;
    let mut captured = Vec::new();
    for part in parts {
        let Part::Candidate(name) = part else { continue };
        let Some(TreeToJudge { commit, tree, iteration, .. }) = terms.tree_of(name) else {
            continue;
        };
        if !session.repo.is_commit(commit) {
            return Err(Error::fatal(format!("{}/{name}: the capture {commit:.10} that is to be judged is not here", run.run))
                .hint(format!("fetch it: `git fetch REMOTE 'refs/frites/{0}/*:refs/frites/{0}/*'`, or judge with `--remote`", run.run)));
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

/// The judge on these terms, with the world of this machine. Fails if this machine lacks a seed or a
/// program: that is no candidate's fault.
fn part_judge<'a>(
    session: &'a Session,
    run: &'a Run,
    terms: &SharedTerms,
    jobs: usize,
) -> Result<PartJudge<'a>> {
    let SharedTerms { oracle, settings, seeds, .. } = terms;
    programs::require_programs(oracle)?;
    worlds::require(session, settings.commands.world)?;
    let found = session.seeds_by(&seeds.copy, &seeds.link, &run.base)?;
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
        return Err(Error::fatal(format!(
            "the seeds here are not those that run {} was opened with: {what}",
            run.run
        ))
        .hint("put the same untracked files into a clone on this machine, and judge there with `--remote NAME`"));
    }
    Ok(PartJudge {
        session,
        run,
        terms: terms.terms(),
        round: terms.round,
        options: JudgeOptions {
            jobs,
            timeout: Some(Duration::from_millis(terms.timeout_ms)),
            // What an earlier round found is another answer.
            no_cache: true,
            seeds: Some((seeds.copy.clone(), seeds.link.clone())),
            ..JudgeOptions::default()
        },
    })
}
