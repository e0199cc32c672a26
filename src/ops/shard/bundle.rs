//! Outcomes as files: for machines that may read a repository and move nothing in it.
use std::path::Path;

use crate::error::{IoContext, Result};
use crate::git::refs;
use crate::model::oid::Oid;
use crate::model::part::Part;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::ops::shard::exchange::{Exchange, ExchangeSide};

/// Writes the outcomes of these parts to a bundle, without what everybody has who has the run.
/// Parts without an outcome here are left out; without any, nothing is written.
pub fn write_bundle(session: &Session, run: &Run, parts: &[Part], file: &Path) -> Result<()> {
    let repo = &session.repo;
    let mut names: Vec<RefName> = Vec::new();
    for part in parts {
        let name = refs::result_of(&run.run, part);
        if repo.read_ref(&name)?.is_some() {
            names.push(name);
        }
    }
    if names.is_empty() {
        session.ui.note(format!("no outcome is to be written to '{}'", file.display()));
        return Ok(());
    }
    let record = repo.read_ref(&refs::record(&run.run))?;
    let known: Vec<Oid> = [run.base].into_iter().chain(record).collect();
    repo.write_bundle(file, &names, &known)
}

/// Takes the outcomes of a run from a bundle, and nothing else that is in it.
pub fn take_bundle(session: &Session, run: &Run, file: &Path) -> Result<()> {
    let failed = || format!("could not read '{}'", file.display());
    let place = file.canonicalize().context(failed)?;
    let exchange = Exchange::new(session, &place.to_string_lossy(), &run.run);
    exchange.fetch_outcomes()?;
    let (_lock, run) = session.store.lock_and_read(&run.run)?;
    exchange.take_outcomes(session.store.terms(&run.run)?.as_ref(), ExchangeSide::Here)
}
