//! Looking up what a user typed: the newest run, exact names, unique beginnings of named runs.
use super::{Store, events};
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::address::Address;
use crate::model::name::Name;
use crate::model::nearest::nearest;
use crate::model::run::Run;

/// What an address names.
pub struct Selection {
    /// The run.
    pub run: Run,
    /// The candidate, if one was named.
    pub candidate: Option<Name>,
    /// The iteration, if one was named.
    pub iteration: Option<u32>,
}

/// How freely a run may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// A unique beginning of a named run is enough.
    Prefix,
    /// Only the whole name: something is removed or undone.
    Exact,
}

impl Store {
    /// Finds what `address` names; without one, the newest run.
    pub fn select(&self, repo: &Repo, address: Option<&Address>, matching: Matching) -> Result<Selection> {
        let runs = self.runs(repo)?;
        let Some(newest) = runs.last() else {
            return Err(Error::fatal("there is no run yet").hint("start one with `git frites spawn`"));
        };
        let (run, candidate, iteration) = match address {
            None => (newest.clone(), None, None),
            Some(Address::Pair { run, candidate, iteration }) => {
                let found = find_run(&runs, run, matching)?.ok_or_else(|| unknown_run(&runs, run.as_str()))?;
                (found, Some(candidate.clone()), *iteration)
            }
            Some(Address::Word { word, iteration }) => {
                if let Some(run) = runs.iter().find(|r| r.run == *word) {
                    (run.clone(), None, *iteration)
                } else if newest.candidates.contains(word) {
                    (newest.clone(), Some(word.clone()), *iteration)
                } else {
                    let found = find_run(&runs, word, matching)?.ok_or_else(|| unknown_run(&runs, word.as_str()))?;
                    (found, None, *iteration)
                }
            }
        };
        if let Some(name) = &candidate {
            check_candidate(&run, name)?;
        } else if iteration.is_some() {
            return Err(Error::usage(format!("an iteration belongs to a candidate, and '{}' is a run", run.run))
                .hint(format!("write {}/CANDIDATE@ITERATION", run.run)));
        }
        Ok(Selection { run, candidate, iteration })
    }

    /// The number for a new run: 1 + the highest in any ref, record or event. The caller holds the
    /// repository lock.
    pub fn next_number(&self, repo: &Repo) -> Result<Name> {
        let mut highest = 0;
        let mut see = |text: &str| {
            let number = text.parse::<Name>().ok().and_then(|n| n.number());
            highest = highest.max(number.unwrap_or(0));
        };
        for prefix in ["refs/frites/", "refs/heads/frites/run/", "refs/heads/frites/apply/"] {
            for (name, _) in repo.refs_under(prefix)? {
                see(name[prefix.len()..].split('/').next().unwrap_or_default());
            }
        }
        for name in self.run_folders()? {
            see(name.as_str());
        }
        for event in events::read(&self.events())? {
            see(event.get("run").and_then(|r| r.as_str()).unwrap_or_default());
        }
        let next = highest.checked_add(1).map(|n| n.to_string().parse());
        next.and_then(|n| n.ok())
            .ok_or_else(|| Error::fatal("there is no run number left").hint("name the run with `--run NAME`"))
    }

    /// Refuses a name that an existing run has, or has but for case.
    pub fn refuse_taken(&self, repo: &Repo, run: &Name) -> Result<()> {
        let mut names: Vec<Name> = self.runs(repo)?.into_iter().map(|r| r.run).collect();
        names.extend(self.run_folders()?);
        let branches = repo.refs_under("refs/heads/frites/run/")?;
        names.extend(branches.iter().filter_map(|(n, _)| n.split('/').nth(4)?.parse().ok()));
        match names.iter().find(|n| n.collides(run)) {
            Some(taken) => Err(Error::fatal(format!("a run named '{taken}' exists"))
                .hint(format!("take another name, or remove that run with `git frites clean --forget {taken}`"))),
            None => Ok(()),
        }
    }
}

/// Refuses a candidate that the run has not, with the nearest one that it has.
pub fn check_candidate(run: &Run, name: &Name) -> Result<()> {
    if run.candidates.contains(name) {
        return Ok(());
    }
    let names: Vec<&str> = run.candidates.iter().map(Name::as_str).collect();
    let error = Error::fatal(format!("run {} has no candidate '{name}'", run.run));
    Err(match nearest(names.iter().copied(), name.as_str()) {
        Some(near) => error.hint(format!("did you mean '{}/{near}'?", run.run)),
        None => error.hint(format!("it has {}", names.join(", "))),
    })
}

fn find_run(runs: &[Run], word: &Name, matching: Matching) -> Result<Option<Run>> {
    if let Some(run) = runs.iter().find(|r| r.run == *word) {
        return Ok(Some(run.clone()));
    }
    // Numbers match exactly: `1` must not find `10`.
    if matching == Matching::Exact || word.number().is_some() {
        return Ok(None);
    }
    let begins: Vec<&Run> =
        runs.iter().filter(|r| r.run.number().is_none() && r.run.as_str().starts_with(word.as_str())).collect();
    match begins.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => {
            let names: Vec<&str> = several.iter().map(|r| r.run.as_str()).collect();
            Err(Error::fatal(format!("'{word}' begins the names of several runs: {}", names.join(", ")))
                .hint("type more of it"))
        }
    }
}

fn unknown_run(runs: &[Run], word: &str) -> Error {
    let names: Vec<&str> = runs.iter().map(|r| r.run.as_str()).collect();
    let error = Error::fatal(format!("there is no run '{word}'"));
    match nearest(names, word) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("`git frites status` lists the runs"),
    }
}
