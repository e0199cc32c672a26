//! The exchange of a run with another repository. The refs of the run's records and outcomes are
//! fetched under other names, compared with our refs, and then taken over. Outcomes are pushed one
//! at a time. Machines that may not push to the repository write their outcomes to files (bundles).
//!
//! There is no lock that several machines share. Each push of a ref names the value that the ref
//! must still have in the other repository.
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, IoContext, Result};
use crate::git::reflog;
use crate::git::refs;
use crate::git::remote::{From, Remote, RemoteMove, may_succeed_later};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::part::{Part, PartOutcome, SharedTerms};
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::ops::clean;
use crate::ops::judge::part_storage::{PartStorage, answers};
use crate::ops::session::Session;
use crate::store::parts::NewOutcome;

/// The pauses between the tries to push one ref. A try fails if another machine has just pushed the
/// ref.
pub(super) const PAUSES_MS: [u64; 8] = [5, 20, 50, 100, 200, 500, 1000, 2000];

/// One side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeSide {
    /// This repository.
    Here,
    /// The other repository.
    There,
}

/// Which of two outcomes of one part stays.
struct Stays {
    side: ExchangeSide,
    /// True if both outcomes are valid for the present terms (see [`answers`]), but disagree.
    disagrees: bool,
}

/// An exchange of one run between this repository and another.
pub struct Exchange<'a> {
    pub(super) session: &'a Session,
    pub(super) remote: Remote<'a>,
    pub(super) run: Name,
}

impl<'a> Exchange<'a> {
    /// An exchange with the repository at `place`, the name of a remote or a URL.
    pub fn new(session: &'a Session, place: &str, run: &Name) -> Exchange<'a> {
        Exchange { session, remote: Remote::new(&session.repo, place), run: run.clone() }
    }

    /// The name or URL of the other repository, as the user typed it.
    pub fn place(&self) -> &str {
        &self.remote.place
    }

    /// The name under which a ref of the other repository is stored here after a fetch.
    pub fn fetched(&self, name: &RefName) -> RefName {
        self.remote.fetched(name)
    }

    /// Fetches the record, the terms and the outcomes of the run.
    pub fn fetch(&self) -> Result<()> {
        self.fetch_refs(["@results*", "@terms*"].map(str::to_owned))
    }

    /// Fetches the run's record, and those of its refs whose names end in these words. Fails if the
    /// other repository has no such run, or has another run of that name.
    pub(super) fn fetch_refs(&self, ends: impl IntoIterator<Item = String>) -> Result<()> {
        if self.fetch_if_there(ends)? { Ok(()) } else { Err(self.no_run()) }
    }

    /// As [`Exchange::fetch_refs`], but returns false if the other repository has no such run.
    ///
    /// All refs are fetched by this function, so that nothing of another run is taken over. Runs of
    /// different clones can have the same name, and a run can be forgotten and made again. In a
    /// mirror, the run here is then forgotten.
    pub(super) fn fetch_if_there(&self, ends: impl IntoIterator<Item = String>) -> Result<bool> {
        let Exchange { session, remote, run } = self;
        // With a `*`, git does not fail if a pattern matches nothing.
        let ends = ["@record*".to_owned()].into_iter().chain(ends);
        let names: Vec<String> = ends.map(|end| format!("refs/frites/{run}/{end}")).collect();
        remote.fetch(&names)?;
        let store = &session.store;
        let theirs = store.run_at(run, &self.fetched(&refs::record(run)))?;
        let (Some(ours), Some(theirs)) = (store.run(run)?, &theirs) else {
            return Ok(theirs.is_some());
        };
        if ours.created == theirs.created {
            return Ok(true);
        }
        // No other process uses a mirror. So if the run's lock is held there, this process holds
        // it, because it works on the run.
        if session.is_mirror()
            && let Some(_lock) = store.try_lock_run(run)?
        {
            forget_replaced(session, &ours)?;
            return Ok(true);
        }
        for (name, oid) in remote.fetched_under(&format!("refs/frites/{run}/"))? {
            session.repo.update_ref(&self.fetched(&name), None, Some(&oid), "of another run")?;
        }
        let place = self.place();
        let what = format!("the run '{run}' at '{place}' is not the run of that name here");
        let times = format!("made at {}, and here at {}", theirs.created, ours.created);
        let hint = match session.is_mirror() {
            true => "it was replaced while this command worked on it: give the same command again",
            false => {
                "to judge it or to make its attempts here, write the URL after --remote: git-frites then uses a mirror"
            }
        };
        Err(Error::fatal(format!("{what}: it was {times}")).hint(hint))
    }

    fn no_run(&self) -> Error {
        let run = &self.run;
        Error::fatal(format!("there is no run '{run}' at '{}'", self.place())).hint(format!(
            "push it from where it was made: `git frites shard open --remote R {run}`"
        ))
    }

    /// Fetches the captures of these candidates if the remote has them, and takes over the new
    /// ones.
    pub fn fetch_captures(&self, candidates: &[Name]) -> Result<()> {
        if candidates.is_empty() {
            return Ok(());
        }
        // A pattern also matches other names with the same ending, which is harmless.
        self.fetch_refs(candidates.iter().map(|name| format!("*{name}")))?;
        candidates.iter().try_for_each(|name| self.take(&refs::capture(&self.run, name)))
    }

    /// Takes over the run's record if it is newer than the one here. Returns the run.
    pub fn take_run(&self) -> Result<Run> {
        self.take(&refs::record(&self.run))?;
        self.session.store.run(&self.run)?.ok_or_else(|| self.no_run())
    }

    /// The terms of the run at the remote. `None` if this repository has recorded a later judging,
    /// i.e. the whole run was judged here after these terms were written.
    pub fn terms(&self) -> Result<Option<SharedTerms>> {
        let store = &self.session.store;
        let found = store.terms_at(&self.run, &self.fetched(&refs::terms(&self.run)))?;
        let round = store.last_round(&self.run)?;
        Ok(found.filter(|terms| terms.round >= round))
    }

    /// Takes over the terms of the remote, unless the run was opened in this repository. In that
    /// case, warns if the remote's terms differ from the terms here.
    pub fn take_terms(&self) -> Result<()> {
        let repo = &self.session.repo;
        let name = refs::terms(&self.run);
        let ours = repo.read_ref(&name)?;
        let log = reflog::read(repo.common_dir(), &name);
        let is_opened_here = log.last().is_some_and(|last| last.message.ends_with(": open"));
        let theirs = repo.read_ref(&self.fetched(&name))?;
        if ours.is_some() && is_opened_here && !self.session.is_mirror() {
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && !repo.is_ancestor(&theirs, &ours)?
            {
                self.session.ui.warn(format!(
                    "'{}' has other terms for run {} than this repository, whose terms count",
                    self.place(),
                    self.run
                ));
            }
            return Ok(());
        }
        self.take(&name)
    }

    /// Takes over the remote's value of a ref if the ref does not exist here, or if its value here
    /// is an ancestor of the remote's. Otherwise leaves the ref as it is. In a mirror, always takes
    /// the value over.
    pub fn take(&self, name: &RefName) -> Result<()> {
        let repo = &self.session.repo;
        let Some(theirs) = repo.read_ref(&self.fetched(name))? else { return Ok(()) };
        self.session.store.repeat_races(|| {
            let ours = repo.read_ref(name)?;
            let is_newer = match &ours {
                None => true,
                Some(ours) if *ours == theirs => false,
                Some(ours) => self.session.is_mirror() || repo.is_ancestor(ours, &theirs)?,
            };
            if is_newer {
                repo.update_ref(name, Some(&theirs), ours.as_ref(), "fetched")?;
            }
            Ok(())
        })
    }

    /// Takes over the fetched outcomes. An outcome here that is valid for the terms (see
    /// [`answers`]) is not replaced by an outcome that is not. If two valid outcomes disagree, the
    /// outcome of the `first` side stays, and a warning names both. The commit of the other outcome
    /// becomes a parent of the new commit. In an exchange with a remote, `first` is the remote,
    /// because all machines see its outcomes. With a bundle, `first` is this repository, because
    /// bundles can arrive in any order.
    pub fn take_outcomes(&self, terms: Option<&SharedTerms>, first: ExchangeSide) -> Result<()> {
        let Exchange { session, run, .. } = self;
        let (repo, store) = (&session.repo, &session.store);
        for (name, theirs) in self.remote.fetched_under(&refs::results(run))? {
            let Ok(part) = name[refs::results(run).len()..].parse::<Part>() else { continue };
            let Some(ours) = repo.read_ref(&name)? else {
                self.take(&name)?;
                continue;
            };
            if ours == theirs || repo.is_ancestor(&theirs, &ours)? {
                continue;
            }
            if session.is_mirror() {
                self.take(&name)?;
                continue;
            }
            let found = store.outcome_at(run, &self.fetched(&name))?;
            let own = store.outcome_at(run, &name)?;
            let follows = repo.is_ancestor(&ours, &theirs)?;
            let stays = match (&own, &found) {
                (Some(own), Some(found)) => self.which_stays(&part, [own, found], terms, first)?,
                _ if follows && first == ExchangeSide::There => {
                    Stays { side: first, disagrees: false }
                }
                _ => continue,
            };
            let commit = match stays.side {
                ExchangeSide::There if follows => theirs,
                ExchangeSide::There => {
                    store.joined_commit(run, [&theirs, &ours], stays.disagrees)?
                }
                ExchangeSide::Here => {
                    store.joined_commit(run, [&ours, &theirs], stays.disagrees)?
                }
            };
            repo.update_ref(&name, Some(&commit), Some(&ours), "fetched")?;
        }
        Ok(())
    }

    /// Decides which of two outcomes stays. Warns if they disagree, or if the fetched one cannot
    /// replace the one here.
    fn which_stays(
        &self,
        part: &Part,
        [own, found]: [&PartOutcome; 2],
        terms: Option<&SharedTerms>,
        first: ExchangeSide,
    ) -> Result<Stays> {
        let Exchange { session, run, .. } = self;
        let difference = found.terms.first_difference(&own.terms);
        let (own_answers, found_answers) = match terms {
            Some(terms) => (answers(own, terms, part), answers(found, terms, part)),
            None => {
                let round = session.store.last_round(run)?;
                let tree =
                    |outcome: &PartOutcome| outcome.candidate.as_ref().and_then(|entry| entry.tree);
                let asks_the_same = difference.is_none() && tree(found) == tree(own);
                (own.round == round, asks_the_same && found.round == round)
            }
        };
        if own_answers && found_answers && !own.agrees_with(found) {
            session.ui.warn(match first {
                ExchangeSide::Here => own.disagreement(found),
                ExchangeSide::There => found.disagreement(own),
            });
            return Ok(Stays { side: first, disagrees: true });
        }
        if !own_answers || found_answers {
            let is_newer = own.round > found.round && !found_answers;
            let side = if is_newer { ExchangeSide::Here } else { ExchangeSide::There };
            return Ok(Stays { side, disagrees: false });
        }
        let why = difference.map_or_else(
            || "it is of another round or state".to_owned(),
            |difference| format!("it was found on other terms: {difference}"),
        );
        session.ui.warn(format!(
            "{run}/{part}: the outcome from '{}' does not take the place of the one here: {why}",
            self.place()
        ));
        Ok(Stays { side: ExchangeSide::Here, disagrees: false })
    }

    /// Pushes an outcome to the ref of its part, and stores it here. If the remote already has an
    /// outcome on the same terms, that one stays. If both agree, the new one is dropped. Otherwise,
    /// the new one becomes a parent of the pushed commit.
    pub fn share(&self, terms: &SharedTerms, new: &NewOutcome) -> Result<()> {
        let Exchange { session, remote, run, .. } = self;
        let (repo, store) = (&session.repo, &session.store);
        let part = new.outcome.part();
        let name = refs::result_of(run, &part);
        let fetched = remote.fetched(&name);
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let theirs = repo.read_ref(&fetched)?;
            let first = PartStorage { store, run, remote: Some(remote) }.find(&part, terms)?;
            if first.as_ref().is_some_and(|first| first.agrees_with(&new.outcome)) {
                return self.take(&name);
            }
            let commit = store.repeat_races(|| {
                let old = repo.read_ref(&name)?;
                let mut commit = store.outcome_commit(new, theirs)?;
                if let (Some(_), Some(theirs)) = (&first, &theirs) {
                    commit = store.joined_commit(run, [theirs, &commit], true)?;
                }
                store.point(&name, &commit, &terms.base, old)?;
                Ok(commit)
            })?;
            let one = RemoteMove { name: &name, new: &commit, from: From::Value(theirs.as_ref()) };
            let Some(reason) = remote.push(&[one])? else {
                if let Some(first) = &first {
                    session.ui.warn(first.disagreement(&new.outcome));
                }
                return Ok(());
            };
            if !wait_to_push_again(&mut pauses, &reason) {
                return Err(Error::fatal(format!(
                    "'{}' did not take the outcome of {run}/{part}: {reason}",
                    self.place()
                ))
                .hint("it is stored here only; whoever judges must be allowed to move the refs refs/frites/*/@results/* there"));
            }
            self.fetch()?;
        }
    }
}

/// Forgets a run in a mirror, because another run has its name by now. Fails if a candidate's work
/// was not pushed. The caller holds the run's lock.
fn forget_replaced(session: &Session, run: &Run) -> Result<()> {
    for candidate in session.store.candidates(run) {
        // A candidate is cleaned once its capture is pushed.
        if !candidate.record()?.cleaned {
            let dir = session.repo.common_dir().display();
            return Err(Error::fatal(format!(
                "'{dir}' has work of {candidate} in an earlier run '{run}', which was not pushed"
            ))
            .hint(format!("once you do not need it: `git -C {dir} frites clean --forget {run}`")));
        }
    }
    clean::forget(session, run)
}

/// Waits before the next try to push a ref. Returns false if no try is left, or if a further try
/// would be refused for the same `reason`.
pub(super) fn wait_to_push_again(pauses: &mut impl Iterator<Item = u64>, reason: &str) -> bool {
    if !may_succeed_later(reason) {
        return false;
    }
    let Some(pause) = pauses.next() else { return false };
    std::thread::sleep(Duration::from_millis(pause));
    true
}

/// The terms of an opened run: with an `exchange`, the terms at the remote, else the terms here.
pub fn current_terms(
    session: &Session,
    run: &Run,
    exchange: Option<&Exchange<'_>>,
) -> Result<SharedTerms> {
    let found = match exchange {
        Some(exchange) => exchange.terms()?,
        None => session.store.terms(&run.run)?,
    };
    found.ok_or_else(|| {
        let (place, option) = match exchange {
            Some(exchange) => (format!(" at '{}'", exchange.place()), " --remote R"),
            None => (String::new(), ""),
        };
        Error::fatal(format!("run {run} was not opened for judging in parts{place}"))
            .hint(format!("open it where its worktrees are: `git frites shard open{option} {run}`"))
    })
}

/// The stored outcomes of a run: with an `exchange`, the outcomes at the remote, else the outcomes
/// here.
pub fn part_storage<'s>(
    session: &'s Session,
    run: &'s Run,
    exchange: Option<&'s Exchange<'_>>,
) -> PartStorage<'s> {
    let remote = exchange.map(|exchange| &exchange.remote);
    PartStorage { store: &session.store, run: &run.run, remote }
}

/// Writes the outcomes of these parts to a bundle. Leaves out the objects that each clone with the
/// run already has. Leaves out parts that have no outcome here. Writes no file if no part has one.
pub(super) fn write_bundle(
    session: &Session,
    run: &Run,
    parts: &[Part],
    file: &Path,
) -> Result<()> {
    let repo = &session.repo;
    let mut names: Vec<RefName> = Vec::new();
    for part in parts {
        let name = refs::result_of(&run.run, part);
        if repo.read_ref(&name)?.is_some() {
            names.push(name);
        }
    }
    if names.is_empty() {
        session.ui.note(format!("there is no outcome to write to '{}'", file.display()));
        return Ok(());
    }
    let record = repo.read_ref(&refs::record(&run.run))?;
    let known: Vec<Oid> = [run.base].into_iter().chain(record).collect();
    repo.write_bundle(file, &names, &known)
}

/// Takes over the outcomes of a run from a bundle. Ignores other refs in the bundle.
pub fn take_bundle(session: &Session, run: &Run, file: &Path) -> Result<()> {
    let failed = || format!("could not read '{}'", file.display());
    let place = file.canonicalize().context(failed)?;
    let exchange = Exchange::new(session, &place.to_string_lossy(), &run.run);
    // The fetched refs of all bundles have the same names, so another process must not fetch
    // meanwhile.
    let (_lock, run) = session.store.lock_and_read(&run.run)?;
    exchange.remote.fetch(&[format!("{}*", refs::results(&run.run))])?;
    exchange.take_outcomes(session.store.terms(&run.run)?.as_ref(), ExchangeSide::Here)
}
