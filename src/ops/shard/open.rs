//! Opens a run, so that several machines can judge parts of it: decides the terms once, and stores
//! them for all machines.
use crate::config::keys;
use crate::error::{Error, Result};
use crate::git::refs;
use crate::git::remote::{From, Remote, RemoteMove};
use crate::model::FORMAT;
use crate::model::oid::Oid;
use crate::model::part::{SharedSeeds, SharedTerms, TreeToJudge};
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::verdict::Entry;
use crate::ops::judge::JudgeOptions;
use crate::ops::judge::entries;
use crate::ops::session::Session;
use crate::ops::shard::exchange::Exchange;
use crate::oracle::{self, ResolvedOracle};
use crate::store::Store;

/// Captures a run, decides the terms, and stores them in this repository. With a remote, first
/// takes over the remote's captures, and pushes the run and the terms before it stores the terms.
/// If there is no tree to judge, neither pushes nor stores anything.
///
/// Each judging of a run has a number (`round`), and outcomes are valid only for their number. If
/// the new terms differ from the stored ones in nothing that affects outcomes, the number stays the
/// same, so that stored outcomes stay valid. With `options.no_cache`, the number always changes.
pub fn open(
    session: &Session,
    run: &Run,
    options: &JudgeOptions,
    remote: Option<&str>,
    on_oracle: impl Fn(&ResolvedOracle) -> Result<()>,
) -> Result<SharedTerms> {
    let store = &session.store;
    let (_lock, run) = &store.lock_and_read(&run.run)?;
    // Attempts of the run may have been made on other machines.
    if let Some(place) = remote {
        Exchange::new(session, place, &run.run).take_captures(run)?;
    }
    entries::require_captures(session, run)?;
    // This does not check whether the programs are installed, because other machines may judge.
    let oracle = oracle::resolve(&session.repo, &session.config, &options.flags, run.root())?;
    on_oracle(&oracle)?;
    if oracle.commands.is_empty() {
        return Err(Error::fatal(format!(
            "there is nothing to judge run {run} by: no command was named, configured or detected"
        ))
        .hint(format!("name one: `git frites shard open --test CMD {run}`")));
    }
    let judged_on = options.terms_to_run(session, &oracle)?;
    let entries = entries::of_run(session, run, &judged_on)?;
    let mut terms = SharedTerms {
        version: FORMAT,
        run: run.run.clone(),
        base: run.base,
        opened: jiff::Timestamp::now(),
        round: 0,
        timeout_ms: u64::try_from(options.timeout(session).as_millis()).unwrap_or(u64::MAX),
        seeds: seeds(session, run)?,
        settings: judged_on.settings,
        oracle: judged_on.oracle,
        trees: trees(store, run, &entries)?,
    };
    if terms.trees.is_empty() {
        return Ok(terms);
    }
    terms.round = match store.terms(&run.run)? {
        Some(last) if last.ask_the_same_as(&terms) && !options.no_cache => last.round,
        _ => store.next_round(run)?,
    };
    let commit = store.terms_commit(&terms)?;
    // Push the terms before they are stored: if the remote refuses them, they must not be stored.
    if let Some(place) = remote {
        push(session, run, Some(&commit), place)?;
    }
    store.set_terms(&terms, &commit)?;
    Ok(terms)
}

fn seeds(session: &Session, run: &Run) -> Result<SharedSeeds> {
    let found = session.seeds(run.root())?;
    for line in &found.notes {
        session.ui.note(line);
    }
    Ok(SharedSeeds {
        copy: session.config.get(keys::SEED_COPY),
        link: session.config.get(keys::SEED_LINK),
        paths: found.paths().map(|path| String::from_utf8_lossy(path).into_owned()).collect(),
        digest: found.digest()?,
    })
}

/// The distinct trees of usable candidates.
fn trees(store: &Store, run: &Run, entries: &[Entry]) -> Result<Vec<TreeToJudge>> {
    let mut trees: Vec<(Oid, TreeToJudge)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.usable()) {
        let Some(judged) = entry.judged() else { continue };
        if let Some((_, first)) = trees.iter_mut().find(|(tree, _)| tree == judged) {
            first.same.push(entry.candidate.clone());
            continue;
        }
        let Some(capture) = store.candidate(run, &entry.candidate).latest()? else { continue };
        let tree = TreeToJudge {
            candidate: entry.candidate.clone(),
            iteration: capture.iteration,
            commit: capture.commit,
            tree: capture.tree,
            same: Vec::new(),
        };
        trees.push((*judged, tree));
    }
    Ok(trees.into_iter().map(|(_, tree)| tree).collect())
}

/// Pushes the record, the captures and the terms of a run: all of them, or none.
pub fn push(session: &Session, run: &Run, terms: Option<&Oid>, place: &str) -> Result<()> {
    let repo = &session.repo;
    let remote = Remote::new(repo, place);
    let captures = run.candidates.iter().map(|name| refs::capture(&run.run, name));
    let mut tips: Vec<(RefName, Oid)> = Vec::new();
    tips.extend(terms.map(|terms| (refs::terms(&run.run), *terms)));
    for name in [refs::record(&run.run)].into_iter().chain(captures) {
        let tip = repo.read_ref(&name)?;
        // A ref that still has its fetched value is not pushed: there is nothing new, and the
        // remote may have moved the ref since the fetch.
        if tip != repo.read_ref(&remote.fetched(&name))? {
            tips.extend(tip.map(|oid| (name, oid)));
        }
    }
    let moves: Vec<RemoteMove<'_>> =
        tips.iter().map(|(name, new)| RemoteMove { name, new, from: From::Ancestor }).collect();
    match remote.push(&moves)? {
        None => Ok(()),
        Some(reason) => Err(Error::fatal(format!("'{place}' did not take run {run}: {reason}"))
            .hint(format!(
                "if another clone has changed the run there, take that over first: `git fetch {place} 'refs/frites/{0}/*:refs/frites/{0}/*'`",
                run.run
            ))),
    }
}
