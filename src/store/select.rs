//! Resolves the addresses that users type: exact names, unique prefixes of named runs, and tasks.
//! Without an address, the newest run is used.
use crate::error::{Cause, Error, Result};
use crate::model::address::{Address, split_iteration};
use crate::model::name::{Name, matching_names};
use crate::model::nearest::nearest;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::store::{Store, events};

/// The run, candidate and iteration that an address names.
pub struct Selection {
    /// The run.
    pub run: Run,
    /// The candidate, if one was named.
    pub candidate: Option<Name>,
    /// The iteration, if one was named.
    pub iteration: Option<u32>,
}

/// The smallest part of a run that a command accepts as an address. An address that names a smaller
/// part is refused. So no part of an address is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A run. The task of a candidate stands for the candidate's run.
    Run,
    /// A candidate, or a run.
    Candidate,
    /// An iteration, a candidate, or a run.
    Iteration,
}

/// How exactly a run must be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// A unique prefix of a run's name is enough.
    Prefix,
    /// The run's whole name is needed, because the command removes or undoes something.
    Exact,
}

impl Store {
    /// Resolves `address`. Without an address, selects the newest run. Fails if the address names a
    /// smaller part of the run than `scope` allows.
    pub fn select(
        &self,
        address: Option<&Address>,
        scope: Scope,
        matching: Matching,
    ) -> Result<Selection> {
        let exact = match address {
            Some(Address::Pair { run: name, .. } | Address::Word { word: name, .. }) => {
                self.run(name)?
            }
            _ => None,
        };
        // If the address has the exact name of a run, the records of other runs need not be read.
        let runs = exact.map_or_else(|| self.runs(), |run| Ok(vec![run]))?;
        let Some(newest) = runs.last() else {
            return Err(Error::fatal("there is no run yet").because(Cause::NoRun));
        };
        let (run, mut candidate, iteration) = match address {
            None => (newest.clone(), None, None),
            Some(Address::Pair { run, candidate, iteration }) => {
                let found = find_run(&runs, run, matching)?
                    .ok_or_else(|| unknown_run(names_of(&runs), run))?;
                (found, Some(candidate.clone()), *iteration)
            }
            Some(Address::Word { word, iteration }) => {
                if let Some(run) = runs.iter().find(|r| r.run == *word) {
                    (run.clone(), None, *iteration)
                } else if newest.candidates.contains(word) {
                    (newest.clone(), Some(word.clone()), *iteration)
                } else {
                    let found = find_run(&runs, word, matching)?
                        .ok_or_else(|| unknown_word(&runs, newest, word))?;
                    (found, None, *iteration)
                }
            }
            Some(Address::Task(id)) => by_task(&runs, id, matching)?,
        };
        if let Some(name) = &candidate {
            check_candidate(&run, name)?;
        } else if iteration.is_some() {
            let run = run.run;
            let what = format!("an iteration belongs to a candidate, and '{run}' is a run");
            return Err(Error::usage(what).hint(format!("write {run}/CANDIDATE@ITERATION")));
        }
        if scope == Scope::Run && iteration.is_none() && matches!(address, Some(Address::Task(_))) {
            candidate = None;
        }
        refuse_beyond(scope, &run, candidate.as_ref(), iteration)?;
        Ok(Selection { run, candidate, iteration })
    }

    /// The runs and candidates that are bound to a task, the oldest run first. If a run itself is
    /// bound, it is listed once, with `None` for the candidate.
    pub fn bound_to(&self, task: &str) -> Result<Vec<(Run, Option<Name>)>> {
        let runs = self.runs()?;
        let bound = bound(&runs, task).into_iter();
        Ok(bound.map(|(run, name)| (run.clone(), name.cloned())).collect())
    }

    /// The number for a new run: 1 + the highest number in any ref, record or event. The caller
    /// holds the repository lock.
    pub fn next_number(&self) -> Result<Name> {
        let mut highest = 0;
        let mut see = |text: &str| {
            let number = text.parse::<Name>().ok().and_then(|n| n.number());
            highest = highest.max(number.unwrap_or(0));
        };
        for prefix in ["refs/frites/", "refs/heads/frites/run/", "refs/heads/frites/apply/"] {
            for name in self.repo.ref_names(prefix)? {
                see(name[prefix.len()..].split('/').next().unwrap_or_default());
            }
        }
        for name in self.run_directories()? {
            see(name.as_str());
        }
        for event in events::read(&self.dir.events())? {
            see(event.get("run").and_then(|r| r.as_str()).unwrap_or_default());
        }
        let next = highest.checked_add(1).map(|n| n.to_string().parse());
        next.and_then(|n| n.ok()).ok_or_else(|| {
            Error::fatal("there is no run number left").hint("name the run with `--run NAME`")
        })
    }

    /// Fails if an existing run has this name, or a name that differs only in case. Also fails if
    /// branches for a run of this name exist already.
    pub fn refuse_taken(&self, run: &Name) -> Result<()> {
        let mut names = self.run_names()?;
        names.extend(self.run_directories()?);
        if let Some(taken) = names.iter().find(|n| n.collides(run)) {
            return Err(Error::fatal(format!("a run named '{taken}' exists"))
                .because(Cause::RunExists(taken.to_string())));
        }
        // A branch that belongs to no run may be in the way, e.g. a fetched one.
        let is_in_the_way = |branch: &RefName| {
            let of_run = branch.split('/').nth(4).and_then(|name| name.parse::<Name>().ok());
            of_run.is_some_and(|name| name.collides(run))
        };
        let branches = self.repo.ref_names("refs/heads/frites/run/")?;
        let Some(branch) = branches.iter().find(|branch| is_in_the_way(branch)) else {
            return Ok(());
        };
        let branch = branch.short();
        Err(Error::fatal(format!("the branch '{branch}' has a name that run {run} needs"))
            .hint(format!("take another name, or delete the branch with `git branch -D {branch}`")))
    }
}

/// Fails if a candidate or an iteration is named, and `scope` does not allow that.
fn refuse_beyond(
    scope: Scope,
    run: &Run,
    candidate: Option<&Name>,
    iteration: Option<u32>,
) -> Result<()> {
    let Some(name) = candidate else { return Ok(()) };
    let run = &run.run;
    match (scope, iteration) {
        (Scope::Run, _) => Err(Error::usage(format!(
            "'{run}/{name}' is a candidate, and only a whole run can be named here"
        ))
        .hint(format!("name the run: {run}"))),
        (Scope::Candidate, Some(n)) => Err(Error::usage(format!(
            "'{run}/{name}@{n}' is an iteration, and only a whole candidate can be named here"
        ))
        .hint(format!("name the candidate: {run}/{name}"))),
        _ => Ok(()),
    }
}

/// Fails if the run does not have this candidate. The error suggests the nearest name.
pub fn check_candidate(run: &Run, name: &Name) -> Result<()> {
    if run.candidates.contains(name) {
        return Ok(());
    }
    let error = Error::fatal(format!("run {} has no candidate '{name}'", run.run));
    Err(match nearest(run.candidates.iter().map(Name::as_str), name.as_str()) {
        Some(near) => error.hint(format!("did you mean '{}/{near}'?", run.run)),
        None => error.hint(format!("it has {}", listed(run))),
    })
}

/// As [`Store::bound_to`], for runs that are already read.
fn bound<'r>(runs: &'r [Run], task: &str) -> Vec<(&'r Run, Option<&'r Name>)> {
    let mut found = Vec::new();
    for run in runs {
        if run.task.as_deref() == Some(task) {
            found.push((run, None));
            continue;
        }
        let names = run.candidates.iter();
        let bound = names.filter(|name| run.tasks.get(*name).is_some_and(|bound| bound == task));
        found.extend(bound.map(|name| (run, Some(name))));
    }
    found
}

/// Resolves an address that names a task. This gives the newest run that is bound to the task, or
/// the only bound candidate of that run. With [`Matching::Exact`], fails if several runs are bound
/// to the task.
fn by_task(runs: &[Run], id: &str, matching: Matching) -> Result<(Run, Option<Name>, Option<u32>)> {
    let all = bound(runs, id);
    let (Some((newest, _)), Some((oldest, _))) = (all.last(), all.first()) else {
        return match split_iteration(id) {
            Some((id, iteration)) if !bound(runs, id).is_empty() => {
                let (run, candidate, _) = by_task(runs, id, matching)?;
                Ok((run, candidate, Some(iteration)))
            }
            _ => Err(Error::fatal(format!("nothing is bound to the task '{id}'"))
                .hint(format!("bind a run or a candidate: `git frites task RUN '{id}'`"))),
        };
    };
    let of_newest: Vec<_> = all.iter().filter(|(run, _)| run.run == newest.run).collect();
    let is_ambiguous = matching == Matching::Exact && newest.run != oldest.run;
    match of_newest.as_slice() {
        [(run, name)] if !is_ambiguous => Ok(((*run).clone(), name.cloned(), None)),
        _ => {
            let places = all.iter().map(|(run, name)| match name {
                Some(name) => format!("{}/{name}", run.run),
                None => run.run.to_string(),
            });
            let places = places.collect::<Vec<_>>().join(", ");
            Err(Error::fatal(format!(
                "several runs or candidates are bound to the task '{id}': {places}"
            ))
            .hint("name one of them"))
        }
    }
}

fn find_run(runs: &[Run], word: &Name, matching: Matching) -> Result<Option<Run>> {
    let names = matching_names(names_of(runs), word);
    let found = match names.as_slice() {
        [exact] if *exact == word => exact,
        _ if matching == Matching::Exact => return Ok(None),
        [] => return Ok(None),
        [one] => one,
        several => return Err(several_runs(word, several)),
    };
    Ok(runs.iter().find(|run| run.run == **found).cloned())
}

/// The error for a word with which the names of several runs begin.
pub fn several_runs(word: &Name, names: &[&Name]) -> Error {
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    Error::fatal(format!("'{word}' begins the names of several runs: {}", names.join(", ")))
        .hint("type more of it")
}

/// The error for an unknown run `word`. It suggests the nearest of `names`.
pub fn unknown_run<'a>(names: impl IntoIterator<Item = &'a Name>, word: &Name) -> Error {
    let error = Error::fatal(format!("there is no run '{word}'"));
    match nearest(names.into_iter().map(Name::as_str), word.as_str()) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.because(Cause::UnknownRun),
    }
}

/// The error for a word without a slash that names neither a run nor a candidate of the newest run.
/// It suggests the candidate of this name in an older run, or the nearest name.
fn unknown_word(runs: &[Run], newest: &Run, word: &Name) -> Error {
    if word.number().is_some() {
        return unknown_run(names_of(runs), word);
    }
    let names = names_of(runs).chain(&newest.candidates).map(Name::as_str);
    let run = &newest.run;
    let what = format!("there is no run '{word}', and run {run} has no candidate '{word}'");
    let error = Error::fatal(what);
    if let Some(older) = runs.iter().rev().find(|run| run.candidates.contains(word)) {
        return error.hint(format!("did you mean '{}/{word}'?", older.run));
    }
    match nearest(names, word.as_str()) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error
            .hint(format!("run {} has {}", newest.run, listed(newest)))
            .because(Cause::UnknownRun),
    }
}

fn names_of(runs: &[Run]) -> impl Iterator<Item = &Name> + Clone {
    runs.iter().map(|run| &run.run)
}

fn listed(run: &Run) -> String {
    run.candidates.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}
