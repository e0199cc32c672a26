//! Judges another commit as a run's candidates were judged, e.g. the merged tree of a landing.
use crate::config::keys;
use crate::error::{Error, Result};
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::run::Run;
use crate::model::terms::{ATTEMPTS_WRITE_HINT, LEADS_BACK_HINT};
use crate::model::verdict::Verdict;
use crate::model::world::WorldKind;
use crate::ops::judge::runner::attempts_write::attempts_write;
use crate::ops::judge::runner::{OracleRunner, ReportTo, back_leads};
use crate::ops::judge::worlds;
use crate::ops::kept_commits;
use crate::ops::session::Session;
use crate::oracle::ledger::Memory;
use crate::store::logs::JudgingLogs;

/// Runs the oracle of a verdict, with the verdict's settings, on another commit in a clean checkout.
///
/// Messages call the commit `name`. Returns the results, and the world in which the commands ran.
pub fn judge_commit(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    commit: &Oid,
    (name, logs): (&str, &JudgingLogs),
) -> Result<(Results, WorldKind)> {
    // The commit gets the seeds of the user's checkout. The HEAD of this checkout is the commit's first
    // parent.
    let parents = session.repo.commit(commit)?.parents;
    let known = parents.first().unwrap_or(&run.base);
    let seeds = session.seeds(known)?;
    // The commit is judged in a world that this machine allows, even if the candidates were judged on another
    // machine.
    let world = worlds::choose(session)?;
    let mut terms = verdict.terms.clone();
    (terms.settings.commands.world, terms.settings.in_place) = (world, false);
    let leads = back_leads(session, &terms.settings, &seeds, known)?;
    // If the candidates, too, were judged with seeds that lead back to a checkout, the landing is unverified
    // anyway, and the user has been told.
    if verdict.terms.settings.doubts.leads_back.is_empty()
        && let Some(lead) = leads.first_in_words()
    {
        return Err(
            Error::no(format!("the merged tree cannot be verified: {lead}")).hint(LEADS_BACK_HINT)
        );
    }
    let timeout = session.config.get(keys::ORACLE_TIMEOUT);
    let memory = Memory::default();
    let base = (commit, seeds.clone());
    let runner = OracleRunner::with_memory(session, run, base, terms, timeout, &memory)?;
    // The seeds may be others than those of the candidates.
    if verdict.terms.settings.doubts.attempts_write.is_empty()
        && let Some(path) = attempts_write(session, run, &seeds, runner.layered.as_ref())?.first()
    {
        return Err(Error::no(format!(
            "the merged tree cannot be verified: the commands can read '{path}', which attempts may write"
        ))
        .hint(ATTEMPTS_WRITE_HINT));
    }
    let report = ReportTo::new(name.to_owned(), logs.clone());
    let results = kept_commits::keep(session, run, &[*commit], known)
        .and_then(|()| runner.require_space(commit, 1))
        .and_then(|()| runner.finish_on_commit(commit, &report));
    let (results, _) = runner.end(results)?;
    Ok((results, world))
}
