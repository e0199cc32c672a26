//! [`CandidateRef`] names a candidate. It finds the candidate's files, refs and logs, and reads and
//! changes the candidate's record.
use std::fmt;
use std::fs;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::error::{Error, IoContext, Result};
use crate::fs::lock::{self, Lock};
use crate::fs::regular;
use crate::fs::tree::nearest_real;
use crate::git::repo::Commit;
use crate::git::{capture, refs, worktree};
use crate::model::candidate::{Candidate, Capture, State};
use crate::model::layout::CandidateDir;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::{self, Trailer};
use crate::model::usage::UsageSum;
use crate::store::Store;
use crate::store::landed::restore_landing;
use crate::store::records::LOST;

/// A candidate of a run. Nothing is read until a method is called.
#[derive(Clone, Copy)]
pub struct CandidateRef<'a> {
    pub(super) store: &'a Store,
    pub run: &'a Run,
    pub name: &'a Name,
}

impl Store {
    pub fn candidate<'a>(&'a self, run: &'a Run, name: &'a Name) -> CandidateRef<'a> {
        CandidateRef { store: self, run, name }
    }

    /// All candidates of a run, in spawn order.
    pub fn candidates<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = CandidateRef<'a>> {
        run.candidates.iter().map(move |name| self.candidate(run, name))
    }

    /// The usage that the agents of a run have reported. `None` if no agent has reported any in a
    /// known format.
    pub fn usage(&self, run: &Run) -> Result<Option<UsageSum>> {
        let records = self.candidates(run).map(CandidateRef::record);
        let records: Vec<Candidate> = records.collect::<Result<_>>()?;
        Ok(UsageSum::of(records.iter().flat_map(|record| &record.usage)))
    }
}

/// Written as `RUN/CAND`.
impl fmt::Display for CandidateRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run.run, self.name)
    }
}

impl CandidateRef<'_> {
    /// The command that judges the candidate's run again in the same way as last time.
    pub fn judge_command(self) -> String {
        self.store.judge_command(&self.run.run)
    }

    /// `RUN/CAND`.
    pub fn address(self) -> String {
        self.to_string()
    }

    pub fn worktree(self) -> PathBuf {
        self.worktree_root().join(self.run.run.as_str()).join(self.name.as_str())
    }

    /// The directory with the worktrees of the candidate's run, perhaps also with those of other
    /// runs.
    pub fn worktree_root(self) -> PathBuf {
        self.store.worktrees(self.run.worktree_root.as_deref())
    }

    /// The name of the candidate's branch.
    pub fn branch(self) -> RefName {
        refs::branch(&self.run.run, self.name)
    }

    /// The ref of the candidate's newest capture, which reaches all its captures.
    pub fn capture_ref(self) -> RefName {
        refs::capture(&self.run.run, self.name)
    }

    /// `runs/RUN/CAND/`.
    pub fn directory(self) -> CandidateDir {
        self.store.candidate_dir(&self.run.run, self.name)
    }

    /// The candidate's worktree. Fails if the worktree was removed, or was not made yet.
    pub fn require_worktree(self) -> Result<PathBuf> {
        let path = self.worktree();
        if path.is_dir() {
            return Ok(path);
        }
        if self.record()?.was_never_started() {
            return Err(Error::fatal(format!("{self} was not started, so it has no worktree"))
                .hint(format!("start it with `git frites run --resume {}`", self.run.run)));
        }
        let lost = self.has_lost_worktree(&self.record()?);
        let how = if lost { ": it is gone, but git-frites did not remove it" } else { "" };
        let error = Error::fatal(format!("{self} has no worktree any more{how}"));
        Err(match self.latest()? {
            Some(_) => error
                .hint(format!("its last capture is kept: `git frites diff {self}`"))
                .hint(format!("start from what it was: `git frites spawn --from {self}`")),
            None => error.hint(format!(
                "nothing of it was captured; make another: `git frites add {}`",
                self.run.run
            )),
        })
    }

    /// A warning if git in the worktree would use a repository other than this one. Then a command
    /// has replaced the worktree's `.git`, and the settings of the other repository can name
    /// programs.
    pub fn warning_of_git(self) -> Option<String> {
        let worktree = self.worktree();
        let link = worktree.join(".git");
        fs::symlink_metadata(&link).ok()?;
        let entries = self.store.repo.common_dir().join("worktrees");
        let ours = [entries, self.directory().own_git()].map(|dir| nearest_real(&dir));
        let named = worktree::named_by(&worktree).map(|named| nearest_real(&worktree.join(named)));
        let is_ours = named.is_some_and(|named| ours.iter().any(|dir| named.starts_with(dir)));
        let link = link.display();
        (!is_ours).then(|| {
            format!(
                "{self}: a command replaced '{link}', which may make git run other programs: move it away first"
            )
        })
    }

    /// True if something other than git-frites removed the candidate's worktree. Then all work
    /// since the last capture is lost. `record` is the candidate's record.
    pub fn has_lost_worktree(self, record: &Candidate) -> bool {
        let has_one = !record.cleaned && record.state != State::Running && !record.remaking;
        has_one && !self.worktree().is_dir()
    }

    /// Waits for the candidate's lock, which protects its captures and its record.
    pub fn lock(self) -> Result<Lock> {
        self.store.lock_candidate(&self.run.run, self.name)
    }

    /// Keeps the candidate's worktree from being removed while a command of a person runs there.
    /// Fails if it is being removed.
    pub fn lock_for_use(self) -> Result<Lock> {
        let lock = lock::attempt_shared(&self.store.prepare()?.use_lock(&self.run.run, self.name))?;
        lock.ok_or_else(|| Error::no(format!("the worktree of {self} is being removed")))
    }

    /// Keeps commands of a person from being started in the candidate's worktree while it is
    /// removed. Fails if one runs there. `None` if only processes that such a command has left
    /// behind hold the lock, e.g. the daemon of a build tool.
    pub fn lock_against_use(self) -> Result<Option<Lock>> {
        let path = self.store.prepare()?.use_lock(&self.run.run, self.name);
        if let Some(lock) = lock::attempt(&path)? {
            return Ok(Some(lock));
        }
        let holders = regular::read_text(&path).could_not("read", &path)?;
        let mut holders = holders.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
        let Some(process) = holders.find(|id| test_kill_process(*id) != Err(Errno::SRCH)) else {
            return Ok(None);
        };
        let process = process.as_raw_nonzero();
        Err(Error::no(format!("{self} is in use by `git frites exec`, process {process}"))
            .hint("end that command and clean again"))
    }

    /// The candidate's record, read from its file. If the file is lost or damaged, the record is
    /// rebuilt from the candidate's captures.
    pub fn record(self) -> Result<Candidate> {
        let CandidateRef { store, run, name } = self;
        let file = self.directory().record();
        let text = match regular::read_text(&file) {
            Ok(text) => Some(text),
            Err(e) if LOST.contains(&e.kind()) => None,
            Err(e) => return Err(e).could_not("read", &file),
        };
        let read = text.and_then(|t| toml::from_str::<Candidate>(&t).ok());
        let mut record = match read.filter(|c| c.run == run.run && c.candidate == *name) {
            // The command was not started on this machine. If a capture says that it ran, it ran on
            // another machine.
            Some(record) if record.was_never_started() => match self.rebuilt()?.state {
                State::Cancelled => record,
                state => Candidate { state, reason: None, ..record },
            },
            Some(record) => record,
            None => self.rebuilt()?,
        };
        restore_landing(&store.repo, &mut record)?;
        Ok(record)
    }

    /// A record that is rebuilt from the candidate's newest capture, or else from the run's
    /// verdict.
    fn rebuilt(self) -> Result<Candidate> {
        let CandidateRef { store, run, name } = self;
        let state = match store.repo.read_ref(&self.capture_ref())? {
            Some(tip) => state_of(&store.repo.commit(&tip)?),
            // A candidate that changed nothing has no capture, but the verdict may have its state.
            None => store.verdict(&run.run)?.and_then(|v| v.entry(name).map(|e| e.state)),
        };
        let state = match state {
            // The capture was made while the command ran, and nothing says how the command ended.
            Some(State::Running) => State::Cancelled,
            Some(state) => state,
            None if run.has_command(name) => State::Cancelled,
            None => State::Open,
        };
        let index = run.index_of(name).unwrap_or(u32::MAX);
        let mut record = Candidate::new(&run.run, name, index, state);
        record.cleaned = !self.worktree().exists();
        Ok(record)
    }

    /// Changes the candidate's record under the candidate's lock. Returns the new record.
    pub fn update(self, change: impl FnOnce(&mut Candidate)) -> Result<Candidate> {
        let _lock = self.lock()?;
        let mut record = self.record()?;
        change(&mut record);
        self.store.save_candidate(&record)?;
        Ok(record)
    }

    /// The candidate's newest capture; `None` if nothing was ever captured.
    pub fn latest(self) -> Result<Option<Capture>> {
        let repo = &self.store.repo;
        let Some(commit) = repo.read_ref(&self.capture_ref())? else { return Ok(None) };
        Ok(Some(capture_of(commit, &repo.commit(&commit)?)))
    }

    /// The commits of all captures, newest first.
    pub fn captures(self) -> Result<Vec<(Oid, Commit)>> {
        let repo = &self.store.repo;
        let Some(tip) = repo.read_ref(&self.capture_ref())? else { return Ok(Vec::new()) };
        capture::chain(repo, &tip, &self.run.base)
    }

    /// The newest capture whose recorded state lets the candidate be judged, and this state. `None`
    /// if there is none.
    pub fn latest_usable(self) -> Result<Option<(Capture, State)>> {
        Ok(self.captures()?.into_iter().find_map(|(commit, read)| {
            let state = state_of(&read).filter(|state| state.usable(1))?;
            Some((capture_of(commit, &read), state))
        }))
    }

    /// The capture with this iteration number. Fails if there is none.
    pub fn iteration(self, wanted: u32) -> Result<Capture> {
        let chain = self.captures()?;
        let newest =
            chain.first().map_or(0, |(_, commit)| trailer::iteration(&commit.message).unwrap_or(1));
        for (commit, read) in chain {
            if trailer::iteration(&read.message) == Some(wanted) {
                return Ok(Capture { commit, tree: read.tree, iteration: wanted });
            }
        }
        let times = if newest == 1 { "once".to_owned() } else { format!("{newest} times") };
        Err(Error::fatal(format!("{self} has no iteration {wanted}: it was captured {times}"))
            .hint(format!("iterations count from 1; `{self}` is the newest")))
    }
}

/// The state that a capture records.
fn state_of(capture: &Commit) -> Option<State> {
    Trailer::State.find(&capture.message)?.parse().ok()
}

/// The capture in a commit.
fn capture_of(commit: Oid, read: &Commit) -> Capture {
    let iteration = trailer::iteration(&read.message).unwrap_or(1);
    Capture { commit, tree: read.tree, iteration }
}
