//! What every command stands on: the repository, its state, the configuration, the screen.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::value::EnvMode;
use crate::config::{Config, keys};
use crate::error::{Cause, Error, IoContext, Result};
use crate::fs::atomic;
use crate::fs::tree;
use crate::git::capture::excludes::Excludes;
use crate::git::capture::mtimes;
use crate::git::capture::omitted::Omissions;
use crate::git::capture::{self, CaptureSource, WorktreeSnapshot};
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::refs;
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::git::seed::placed::PlacedSeeds;
use crate::integrity::watch;
use crate::model::blast::Blast;
use crate::model::candidate::{Candidate, Capture};
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::recover::recover;
use crate::oracle::pool;
use crate::process;
use crate::process::environment::Policy;
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;
use crate::store::records::read_toml;
use crate::ui::Ui;
use tree::is_real_directory;

/// An opened repository, healed, with its configuration read.
pub struct Session {
    /// The repository.
    pub repo: Arc<Repo>,
    /// Its state.
    pub store: Store,
    /// Its configuration.
    pub config: Config,
    /// The screen.
    pub ui: Ui,
    /// The user's own checkout, if there is one: never a candidate's.
    pub home: Option<PathBuf>,
    /// `diff.exclude`.
    pub excludes: Excludes,
    /// `[env]`.
    pub policy: Policy,
    /// What trees change against bases, as far as several were looked at together.
    counted: Mutex<BTreeMap<(Oid, Oid), Vec<Change>>>,
}

/// A candidate as it is now.
pub struct Captured {
    /// Its record.
    pub candidate: Candidate,
    /// Its newest capture; none if it never changed anything.
    pub capture: Option<Capture>,
    /// Whether that was made just now.
    pub fresh: bool,
    /// What it changes against the base.
    pub changes: Vec<Change>,
    /// How much that is.
    pub blast: Blast,
    /// What was left out; empty when there is no worktree to look at.
    pub omissions: Omissions,
    /// Why its worktree could not be captured, if so: what is told here is its last capture.
    pub problem: Option<String>,
}

impl Captured {
    /// The tree that counts: the newest capture's, or the base's.
    pub fn tree<'a>(&'a self, base: &'a Oid) -> &'a Oid {
        self.capture.as_ref().map_or(base, |c| &c.tree)
    }

    /// Whether it may be judged.
    pub fn usable(&self) -> bool {
        self.problem.is_none() && self.candidate.state.usable(self.blast.files)
    }
}

impl Session {
    /// Opens the repository of the current directory and heals what killed commands left.
    pub fn open(ui: Ui) -> Result<Session> {
        let here =
            std::env::current_dir().context(|| "the current directory cannot be read".into())?;
        let repo = Arc::new(Repo::discover(&here)?);
        let store = Store::of(&repo);
        let home = store.users_checkout()?;
        // Before anything else calls git.
        watch::pin(&repo, &store, home.as_deref(), None)?;
        for line in recover(&store)? {
            ui.warn(line);
        }
        pool::sweep(&repo, &store)?;
        let config = Config::load(home.as_deref(), &repo.settings_of("frites")?)?;
        let excludes = Excludes::new(&config.get(keys::DIFF_EXCLUDE))?;
        let policy = policy(&config)?;
        let session =
            Session { repo, store, config, ui, home, excludes, policy, counted: Mutex::default() };
        watch::recover(&session)?;
        Ok(session)
    }

    /// What the user's own checkout has to seed beside the files of `base`.
    pub fn seeds(&self, base: &Oid) -> Result<Seeds> {
        let Some(home) = &self.home else { return Ok(Seeds::default()) };
        Seeds::find(
            &self.repo,
            home,
            &self.config.get(keys::SEED_COPY),
            &self.config.get(keys::SEED_LINK),
            base,
        )
    }

    /// What a candidate's worktree was given; if that record is lost, what it would be given now.
    fn seeded(&self, candidate: CandidateRef<'_>) -> Result<PlacedSeeds> {
        match read_toml(&candidate.seeds()) {
            Some(seeded) => Ok(seeded),
            None => self.seeds(&candidate.run.base)?.as_if_placed(&candidate.worktree()),
        }
    }

    /// Captures what a candidate's worktree holds, if that differs from its last capture.
    pub fn capture(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        let _span = tracing::info_span!("capture", %candidate).entered();
        let _lock = candidate.lock()?;
        let captured = self.repo.retry_during_gc(|| match self.capture_once(candidate) {
            // A private index that lists lost objects would fail again: start afresh.
            Err(first) if first.cause == Cause::Damaged => {
                let _ = std::fs::remove_file(candidate.index());
                self.capture_once(candidate).map_err(|second| second.with_source(first))
            }
            done => done,
        });
        captured.map_err(|e| e.context(format!("{candidate} could not be captured")))
    }

    /// Captures every candidate of a run, several at once; in spawn order.
    pub fn capture_all(&self, run: &Run) -> Result<Vec<Captured>> {
        self.remember_changes(run)?;
        process::in_parallel(process::processors(), &run.candidates, |name| {
            self.capture_or_tell(self.store.candidate(run, name))
        })
    }

    /// Captures a candidate; one that cannot be captured is told of with its problem, for it must not
    /// keep the others from being compared.
    pub fn capture_or_tell(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        self.capture(candidate).or_else(|error| {
            let stored = self.stored(candidate)?;
            Ok(Captured { problem: Some(error.message), ..stored })
        })
    }

    /// A candidate's newest capture, if its worktree certainly holds nothing else. None says nothing.
    pub fn unchanged(&self, candidate: CandidateRef<'_>) -> Result<Option<Capture>> {
        let _lock = candidate.lock()?;
        let Some(previous) = candidate.latest()? else {
            return Ok(None);
        };
        let unchanged = self.with_source(candidate, Some(&previous), |source, there| {
            Ok(there && capture::is_unchanged(&self.repo, source)?)
        })?;
        Ok(unchanged.then_some(previous))
    }

    /// What a capture of a candidate would leave out; nothing is written.
    pub fn uncapturable(&self, candidate: CandidateRef<'_>) -> Result<Omissions> {
        let previous = candidate.latest()?;
        self.with_source(candidate, previous.as_ref(), |source, there| {
            if there { capture::uncapturable(&self.repo, source) } else { Ok(Omissions::default()) }
        })
    }

    /// Does `work` with what is to be captured, and whether there is a worktree.
    fn with_source<T>(
        &self,
        candidate: CandidateRef<'_>,
        previous: Option<&Capture>,
        work: impl FnOnce(&CaptureSource<'_>, bool) -> Result<T>,
    ) -> Result<T> {
        let worktree = candidate.worktree();
        let source = CaptureSource {
            worktree: &worktree,
            branch: &candidate.branch(),
            base: &candidate.run.base,
            index: &candidate.index(),
            previous,
            excludes: &self.excludes,
            seeds: &self.seeded(candidate)?,
        };
        work(&source, is_real_directory(&candidate.worktree_root(), &worktree))
    }

    fn capture_once(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        let previous = candidate.latest()?;
        self.with_source(candidate, previous.as_ref(), |source, there| {
            self.capture_source(candidate, source, there)
        })
    }

    fn capture_source(
        &self,
        candidate: CandidateRef<'_>,
        source: &CaptureSource<'_>,
        there: bool,
    ) -> Result<Captured> {
        let mut record = candidate.record()?;
        let previous = source.previous.cloned();
        if there && capture::is_unchanged(&self.repo, source)? {
            let mut captured =
                self.captured(candidate.run, record, previous, Omissions::default())?;
            self.settle(&mut captured.candidate, captured.changes.len())?;
            return Ok(captured);
        }
        let snapshot = if there {
            Some(capture::snapshot(&self.repo, source)?)
        } else {
            capture::branch_snapshot(&self.repo, source)?
        };
        let Some(WorktreeSnapshot { tree, heads, omissions }) = snapshot else {
            return self.captured(candidate.run, record, previous, Omissions::default());
        };
        let base_tree = self.repo.commit(&candidate.run.base)?.tree;
        let last = previous.as_ref().map_or(&base_tree, |p| &p.tree);
        let changed = tree != *last || !heads.is_empty();
        let patch = diff::compare(&self.repo, &candidate.run.base, &base_tree, &tree)?;
        self.settle(&mut record, patch.changes.len())?;
        let blast = diff::blast(&self.repo, &patch.changes);
        if !changed {
            return Ok(Captured {
                candidate: record,
                capture: previous,
                fresh: false,
                changes: patch.changes,
                blast,
                omissions,
                problem: None,
            });
        }
        let iteration = previous.as_ref().map_or(1, |p| p.iteration.saturating_add(1));
        if there {
            let written =
                patch.changes.iter().filter(|c| c.status != ChangeStatus::Deleted).map(|c| &c.path);
            let refname = refs::mtimes(&candidate.run.run, candidate.name);
            let base = &candidate.run.base;
            mtimes::store(&self.repo, &refname, source.worktree, &tree, base, written)?;
        }
        let message = message(candidate.run, &record, iteration);
        let snapshot = WorktreeSnapshot { tree, heads, omissions };
        let refname = candidate.capture_ref();
        let commit = capture::store(&self.repo, source, &snapshot, &refname, &message)?;
        let WorktreeSnapshot { tree, omissions, .. } = snapshot;
        atomic::write(&candidate.patch(), &patch.bytes)?;
        let capture = Capture { commit, tree, iteration };
        let event = Event::Captured {
            candidate: candidate.name.clone(),
            iteration,
            commit,
            tree,
            lines: blast.lines,
            files: blast.files,
        };
        self.store.record_event(&candidate.run.run, &event)?;
        Ok(Captured {
            candidate: record,
            capture: Some(capture),
            fresh: true,
            changes: patch.changes,
            blast,
            omissions,
            problem: None,
        })
    }

    /// Keeps what a capture has shown of whether a candidate is empty.
    fn settle(&self, candidate: &mut Candidate, files: usize) -> Result<()> {
        let state = candidate.state.with_files(files as u64);
        if state == candidate.state {
            return Ok(());
        }
        candidate.state = state;
        self.store.save_candidate(candidate)
    }

    /// What a captured tree changes against its run's base.
    fn changes(&self, run: &Run, tree: &Oid) -> Result<Vec<Change>> {
        let key = (run.base, *tree);
        let known = self.counted.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.map_or_else(|| diff::changes(&self.repo, &run.base, &run.base, tree), Ok)
    }

    /// Finds out at once what all captures of a run change: one git process, not one for each candidate.
    fn remember_changes(&self, run: &Run) -> Result<()> {
        let mut trees = Vec::new();
        for candidate in self.store.candidates(run) {
            // What cannot be read is told of where it is captured.
            trees.extend(candidate.latest().ok().flatten().map(|c| c.tree));
        }
        trees.sort();
        trees.dedup();
        if trees.len() < 2 {
            return Ok(());
        }
        let base = self.repo.commit(&run.base)?.tree;
        let Ok(all) = diff::changes_of(&self.repo, &run.base, &base, &trees) else { return Ok(()) };
        let mut known = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(trees.into_iter().zip(all).map(|(tree, changes)| ((run.base, tree), changes)));
        Ok(())
    }

    /// A candidate as last captured, without looking at its worktree.
    pub fn stored(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        let record = candidate.record()?;
        let capture = candidate.latest()?;
        self.captured(candidate.run, record, capture, Omissions::default())
    }

    fn captured(
        &self,
        run: &Run,
        candidate: Candidate,
        capture: Option<Capture>,
        omissions: Omissions,
    ) -> Result<Captured> {
        let changes = match &capture {
            Some(capture) => self.changes(run, &capture.tree)?,
            None => Vec::new(),
        };
        let blast = diff::blast(&self.repo, &changes);
        Ok(Captured { candidate, capture, fresh: false, changes, blast, omissions, problem: None })
    }

    /// Tells what a capture left out, or why there is none.
    pub fn tell_notes(&self, captured: &Captured) {
        if let Some(problem) = &captured.problem {
            self.ui.warn(problem);
        }
        for line in captured.omissions.lines() {
            let line = format!("{}: {line}", captured.candidate.address());
            if captured.omissions.loses_work() { self.ui.warn(line) } else { self.ui.note(line) }
        }
    }
}

fn policy(config: &Config) -> Result<Policy> {
    let (pass, deny) = (config.get(keys::ENV_PASS), config.get(keys::ENV_DENY));
    Policy::new(config.get(keys::ENV_MODE) == EnvMode::Clean, &pass, &deny).map_err(
        |(pattern, e)| {
            Error::fatal(format!("[env]: '{pattern}' is no pattern: {}", e.kind()))
                .hint("a pattern is a variable's name, in which * stands for anything")
        },
    )
}

/// The message of a capture: its trailers are enough to rebuild the records from.
fn message(run: &Run, candidate: &Candidate, iteration: u32) -> String {
    let mut message = format!("frites: capture {}@{iteration}\n\n", candidate.address());
    for line in [
        Trailer::Run.line(&run.run),
        Trailer::Candidate.line(&candidate.candidate),
        Trailer::Index.line(candidate.index),
        Trailer::Iteration.line(iteration),
        Trailer::Base.line(run.base),
        Trailer::State.line(candidate.state),
    ] {
        message.push_str(&line);
        message.push('\n');
    }
    message
}
