//! Records: runs and verdicts as commits under `refs/frites/RUN/@record`, candidates as files that
//! their captures can replace.
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::landings::landing_told_by;
use super::{Store, atomic};
use crate::error::{Error, IoContext, Result};
use crate::git::repo::Repo;
use crate::git::{capture, refs};
use crate::model::FORMAT;
use crate::model::candidate::{Candidate, Capture, State};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::verdict::{Part, Verdict};

/// The file of an outcome that stands by itself.
const PART: &str = "outcome.toml";

/// How a file is read that is lost, damaged, or replaced by something else: what it said is rebuilt.
const LOST: [io::ErrorKind; 4] =
    [io::ErrorKind::NotFound, io::ErrorKind::InvalidData, io::ErrorKind::NotADirectory, io::ErrorKind::IsADirectory];

/// Why a record was not saved, in one place.
fn newer(what: &str) -> Error {
    Error::fatal(format!("{what} was written by a newer git-frites: it can be read, not changed"))
        .hint("update git-frites")
}

impl Store {
    /// All runs, oldest first.
    pub fn runs(&self, repo: &Repo) -> Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for name in self.run_names(repo)? {
            runs.extend(self.run(repo, &name)?);
        }
        runs.sort_by(|a, b| (a.created, a.run.number(), &a.run).cmp(&(b.created, b.run.number(), &b.run)));
        Ok(runs)
    }

    /// The names of all runs, sorted as texts. No record is read: with many runs that takes long.
    pub fn run_names(&self, repo: &Repo) -> Result<Vec<Name>> {
        let names = repo.ref_names("refs/frites/")?.into_iter();
        Ok(names.filter_map(|n| n.strip_prefix("refs/frites/")?.strip_suffix("/@record")?.parse().ok()).collect())
    }

    /// A run's record, from its ref; none if there is no such run.
    pub fn run(&self, repo: &Repo, run: &Name) -> Result<Option<Run>> {
        self.recorded(repo, run, "run.toml")
    }

    /// A run's verdict, from its ref; none if it was never judged.
    pub fn verdict(&self, repo: &Repo, run: &Name) -> Result<Option<Verdict>> {
        self.recorded(repo, run, "verdict.toml")
    }

    /// The outcomes of candidates that were judged by themselves, in spawn order.
    pub fn parts(&self, repo: &Repo, run: &Run) -> Result<Vec<Part>> {
        let parts = run.candidates.iter().map(|name| stored(repo, &run.run, &refs::result(&run.run, name), PART));
        Ok(parts.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Stores such an outcome in a ref of its own, so that nobody waits for anybody. `judged` is a commit of
    /// the tree that it speaks of.
    pub fn save_part(&self, repo: &Repo, part: &Part, judged: Option<&Oid>) -> Result<()> {
        let name = refs::result(&part.run, &part.candidate.candidate);
        let old = repo.read_ref(&name)?;
        if stored::<Part>(repo, &part.run, &name, PART)?.is_some_and(|p| p.version > FORMAT) {
            return Err(newer(&format!("run {}", part.run)));
        }
        let parents: Vec<&Oid> = [&part.base].into_iter().chain(judged).collect();
        let commit =
            commit_of(repo, &part.run, &[(PART.to_owned(), repo.store_blob(to_toml(part)?.as_bytes())?)], &parents)?;
        repo.update_ref(&name, Some(&commit), old.as_ref(), "record")
    }

    /// Forgets these outcomes: the whole run was judged since, whenever they say that they are from.
    pub fn forget_parts(&self, repo: &Repo, run: &Run) -> Result<()> {
        for name in run.candidates.iter().map(|name| refs::result(&run.run, name)) {
            if let Some(old) = repo.read_ref(&name)? {
                repo.update_ref(&name, None, Some(&old), "judged")?;
            }
        }
        Ok(())
    }

    fn recorded<T: DeserializeOwned>(&self, repo: &Repo, run: &Name, file: &str) -> Result<Option<T>> {
        stored(repo, run, &refs::record(run), file)
    }

    /// Writes a run's records to its ref, and beside it as files. `judged` are commits of the trees that
    /// the verdict speaks of: the record keeps them alive.
    pub fn save_record(&self, repo: &Repo, run: &Run, verdict: Option<&Verdict>, judged: &[Oid]) -> Result<()> {
        if run.version > FORMAT || self.verdict(repo, &run.run)?.is_some_and(|v| v.version > FORMAT) {
            return Err(newer(&format!("run {}", run.run)));
        }
        let mut files = vec![("run.toml", to_toml(run)?)];
        if let Some(verdict) = verdict {
            files.push(("verdict.toml", to_toml(verdict)?));
        }
        repo.beside_housekeeper(|| {
            let mut blobs = Vec::new();
            for (name, text) in &files {
                blobs.push(((*name).to_owned(), repo.store_blob(text.as_bytes())?));
            }
            let prompts = run.synthesis.iter().map(|(name, s)| (format!("prompt-{name}.md"), &s.prompt));
            let prompts = run.prompt.iter().map(|blob| ("prompt.md".to_owned(), blob)).chain(prompts);
            blobs.extend(prompts.map(|(name, blob)| (name, blob.clone())));
            let parents: Vec<&Oid> = [&run.base].into_iter().chain(judged).collect();
            let commit = commit_of(repo, &run.run, &blobs, &parents)?;
            let name = refs::record(&run.run);
            let old = repo.read_ref(&name)?;
            repo.set_ref_whole(&name, &commit, old.as_ref(), &run.base, "record")
        })?;
        for (name, text) in files {
            atomic::write(&self.run_dir(&run.run).join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// The commits of judged trees that a run's record keeps alive: what [`Store::save_record`] was given.
    pub fn judged(&self, repo: &Repo, run: &Name) -> Result<Vec<Oid>> {
        let Some(record) = repo.read_ref(&refs::record(run))? else { return Ok(Vec::new()) };
        Ok(repo.commit(&record)?.parents.split_off(1))
    }

    /// Writes a run's record as a file alone, before anything of it is made.
    pub fn save_intent(&self, run: &Run) -> Result<()> {
        atomic::write(&self.run_dir(&run.run).join("run.toml"), to_toml(run)?.as_bytes())
    }

    /// A candidate's record: its file, or what its captures tell when that is lost.
    pub fn candidate(&self, repo: &Repo, run: &Run, name: &Name) -> Result<Candidate> {
        let file = self.candidate_dir(&run.run, name).join("candidate.toml");
        let text = match fs::read_to_string(&file) {
            Ok(text) => Some(text),
            Err(e) if LOST.contains(&e.kind()) => None,
            Err(e) => return Err(e).context(|| format!("could not read '{}'", file.display())),
        };
        let read = text.and_then(|t| toml::from_str::<Candidate>(&t).ok());
        if let Some(mut candidate) = read.filter(|c| c.run == run.run && c.candidate == *name) {
            landing_told_by(repo, &mut candidate)?;
            return Ok(candidate);
        }
        let state = match repo.read_ref(&refs::capture(&run.run, name))? {
            Some(tip) => trailer(&repo.commit(&tip)?.message, "Frites-State").and_then(State::parse),
            // Never captured, for it changed nothing: the verdict may know it.
            None => self.verdict(repo, &run.run)?.and_then(|v| v.entry(name).map(|e| e.state)),
        };
        // A checkpoint of a command of which nothing more is known.
        let state = state.map(|state| if state == State::Running { State::Cancelled } else { state });
        let state = state.unwrap_or(if run.has_commands() { State::Cancelled } else { State::Open });
        let mut candidate = Candidate::new(&run.run, name, run.index_of(name).unwrap_or(u32::MAX), state);
        candidate.cleaned = !self.worktree(run, name).exists();
        landing_told_by(repo, &mut candidate)?;
        Ok(candidate)
    }

    /// Writes a candidate's record. The caller holds its lock.
    pub fn save_candidate(&self, candidate: &Candidate) -> Result<()> {
        if candidate.version > FORMAT {
            return Err(newer(&candidate.address()));
        }
        let dir = self.candidate_dir(&candidate.run, &candidate.candidate);
        atomic::write(&dir.join("candidate.toml"), to_toml(candidate)?.as_bytes())
    }

    /// The newest capture; none if nothing was ever captured.
    pub fn latest(&self, repo: &Repo, run: &Name, candidate: &Name) -> Result<Option<Capture>> {
        let Some(commit) = repo.read_ref(&refs::capture(run, candidate))? else { return Ok(None) };
        let read = repo.commit(&commit)?;
        let iteration = trailer(&read.message, "Frites-Iteration").and_then(|n| n.parse().ok()).unwrap_or(1);
        Ok(Some(Capture { commit, tree: read.tree, iteration }))
    }

    /// One iteration of a candidate.
    pub fn iteration(&self, repo: &Repo, run: &Run, candidate: &Name, wanted: u32) -> Result<Capture> {
        let tip = repo.read_ref(&refs::capture(&run.run, candidate))?;
        let chain = tip.map(|tip| capture::chain(repo, &tip, &run.base)).transpose()?.unwrap_or_default();
        let newest = chain.len();
        for (commit, read) in chain {
            if trailer(&read.message, "Frites-Iteration").and_then(|n| n.parse().ok()) == Some(wanted) {
                return Ok(Capture { commit, tree: read.tree, iteration: wanted });
            }
        }
        Err(Error::fatal(format!("{}/{candidate} has no iteration {wanted}: it was captured {newest} times", run.run))
            .hint(format!("iterations count from 1; `{}/{candidate}` is the newest", run.run)))
    }
}

/// A record of ours as a commit.
fn commit_of(repo: &Repo, run: &Name, blobs: &[(String, Oid)], parents: &[&Oid]) -> Result<Oid> {
    let tree: String = blobs.iter().map(|(name, blob)| format!("100644 blob {blob}\t{name}\0")).collect();
    let tree = repo.git().call("mktree").arg("-z").stdin(tree).oid()?;
    let mut call = repo.git().call("commit-tree").arg(tree.as_str());
    for parent in parents {
        call = call.args(["-p", parent.as_str()]);
    }
    call.args(["-m", &format!("frites: record of run {run}\n\nFrites-Run: {run}")]).oid()
}

/// A record in a ref; none if there is none.
fn stored<T: DeserializeOwned>(repo: &Repo, run: &Name, name: &str, file: &str) -> Result<Option<T>> {
    let Some(commit) = repo.read_ref(name)? else { return Ok(None) };
    let Some(bytes) = repo.file(&repo.commit(&commit)?.tree, file)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    toml::from_str(&text).map(Some).map_err(|e| {
        Error::fatal(format!("{file} in {name} is damaged: {}", e.message()))
            .hint(format!("`git frites clean --forget {run}` removes the run with all it holds"))
    })
}

/// The value of a trailer in a commit message of ours.
pub fn trailer<'a>(message: &'a str, key: &str) -> Option<&'a str> {
    message.lines().rev().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).map(str::trim)
}

fn to_toml<T: Serialize>(record: &T) -> Result<String> {
    toml::to_string(record).map_err(|e| Error::internal(format!("a record cannot be written as TOML: {e}")))
}

/// Writes a record of ours that is no part of a ref.
pub fn write_toml<T: Serialize>(path: &Path, record: &T) -> Result<()> {
    atomic::write(path, to_toml(record)?.as_bytes())
}

/// Reads such a record; none if it is missing or damaged.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Option<T> {
    toml::from_str(&fs::read_to_string(path).ok()?).ok()
}
