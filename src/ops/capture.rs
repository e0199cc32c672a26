//! Capturing: a candidate's worktree is stored as a commit, and its record is brought up to date.
use crate::error::{Cause, Error, Result};
use crate::fs::atomic;
use crate::fs::lock::Lock;
use crate::fs::tree::is_real_directory;
use crate::git::capture::excludes::HiddenPaths;
use crate::git::capture::mtimes::NewTimes;
use crate::git::capture::omitted::Omissions;
use crate::git::capture::{self, CaptureSource, WorktreeSnapshot};
use crate::git::commit::commit_tree;
use crate::git::diff::{self, Change, ChangeStatus};
use crate::git::merge;
use crate::git::own_dir::{self, OwnGitDir};
use crate::git::refs;
use crate::git::seed::placed::PlacedSeeds;
use crate::git::trees;
use crate::git::worktree;
use crate::model::blast::Blast;
use crate::model::candidate::{Candidate, Capture, State};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::model::trailer::{self, Trailer};
use crate::model::verdict::GONE;
use crate::ops::ignored_source;
use crate::ops::session::Session;
use crate::process;
use crate::store::candidate::CandidateRef;
use crate::store::events::{self, Event};
use crate::store::records::read_toml;
use crate::store::remove;

/// The maximum number of candidates that are captured at the same time. While one capture waits for
/// the disk, others can use the processor. One commit of the file system's journal then covers the
/// files of several captures.
pub const CAPTURED_AT_ONCE: usize = 8;

/// A candidate's record, its newest capture and the changes in it.
pub struct Captured {
    /// The candidate's record.
    pub candidate: Candidate,
    /// The candidate's newest capture; `None` if it never changed anything.
    pub capture: Option<Capture>,
    /// True if `capture` was made just now, and is not an older one.
    pub fresh: bool,
    /// The changes of the capture against the base.
    pub changes: Vec<Change>,
    /// The size of these changes.
    pub blast: Blast,
    /// True if the worktree was removed by hand.
    pub gone: bool,
    /// The parts of the worktree that the capture left out; empty without a worktree.
    pub omissions: Omissions,
    /// The reason why the worktree could not be captured, if that failed. The other fields then
    /// describe the last capture.
    pub problem: Option<String>,
}

impl Captured {
    /// The tree of the newest capture. If there is no capture, returns `base`, which is the base's
    /// tree.
    pub fn tree<'a>(&'a self, base: &'a Oid) -> &'a Oid {
        self.capture.as_ref().map_or(base, |c| &c.tree)
    }

    /// True if the candidate may be judged.
    pub fn usable(&self) -> bool {
        self.problem.is_none() && self.candidate.state.usable(self.blast.files)
    }
}

impl Session {
    /// The record of the seeds in a candidate's worktree. If the record is lost, it is rebuilt from
    /// the seeds that the configuration selects now. A file of the previous capture is no seed.
    fn seeded(
        &self,
        candidate: CandidateRef<'_>,
        previous: Option<&Capture>,
    ) -> Result<PlacedSeeds> {
        if let Some(seeded) = read_toml(&candidate.directory().seeds()) {
            return Ok(seeded);
        }
        let seeds = self.seeds(&candidate.run.base)?;
        let mut rebuilt = seeds.as_if_placed()?;
        if let Some(previous) = previous {
            for path in rebuilt.paths().cloned().collect::<Vec<TreePath>>() {
                if merge::entry(&self.repo, &previous.tree, &path)?.is_some() {
                    rebuilt.forget(&path);
                }
            }
        }
        Ok(rebuilt)
    }

    /// Captures a candidate's worktree if it differs from the last capture. If the candidate's
    /// private index is damaged, deletes the index and tries once more. If the second try fails as
    /// well, its error has the first error as its source.
    pub fn capture(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        self.capture_locked(candidate, None, &candidate.lock()?)
    }

    /// Does the same as [`Session::capture`] for a caller that holds the candidate's lock. With a
    /// message, a candidate that differs from the base gets a new iteration, even if its last
    /// capture has the same files.
    pub fn capture_locked(
        &self,
        candidate: CandidateRef<'_>,
        message: Option<&str>,
        _lock: &Lock,
    ) -> Result<Captured> {
        let _span = tracing::info_span!("capture", %candidate).entered();
        let captured = self.repo.retry_during_gc(|| {
            let record = candidate.record()?;
            let special = self.take_over(candidate, record.state != State::Running)?;
            let captured = match self.capture_once(candidate, &record, message) {
                // The index may list objects that no longer exist. With such an index, the second
                // try would fail as well.
                Err(first) if first.cause == Cause::Damaged => {
                    let _ = std::fs::remove_file(candidate.directory().index());
                    self.capture_once(candidate, &record, message)
                        .map_err(|second| second.with_source(first))
                }
                done => done,
            };
            let mut captured = captured?;
            captured.omissions.special = special;
            self.add_git_dirs(candidate, &mut captured.omissions)?;
            Ok(captured)
        });
        captured.map_err(|e| e.context(format!("{candidate} could not be captured")))
    }

    /// Brings the commits and refs in an attempt's own git directory into the repository. If no
    /// command of the candidate runs any more, also connects the worktree with the repository
    /// again, and deletes the attempt's own git directory. The directory stays if something in it
    /// could not be read. Returns a warning if it has entries that are not files. The caller holds
    /// the candidate's lock.
    pub fn bring_back(&self, candidate: CandidateRef<'_>) -> Result<Option<String>> {
        let has_ended = candidate.record()?.state != State::Running;
        self.take_over(candidate, has_ended)
    }

    /// Does the same as [`Session::bring_back`] after the attempt's command has certainly ended,
    /// whatever its record says. Prints the warning instead of returning it.
    pub fn end_guard(&self, candidate: CandidateRef<'_>) -> Result<()> {
        if let Some(line) = self.take_over(candidate, true)? {
            self.ui.warn(format!("{candidate}: {line}"));
        }
        Ok(())
    }

    /// Connects the worktree with the repository again after a command has ended. Deletes the
    /// attempt's own git directory, unless something in it could not be read.
    fn leave_own_git(&self, candidate: CandidateRef<'_>, own: Option<&OwnGitDir>) -> Result<()> {
        let worktree = candidate.worktree();
        if let Some(admin) = worktree::admin_of(&self.repo, &worktree)?
            && let Some(named) = worktree::connect(&candidate.worktree_root(), &worktree, &admin)?
            && own.is_none_or(|own| own.entry() != named)
        {
            let line = "a command had changed the worktree's .git file, which is repaired";
            self.ui.warn(format!("{candidate}: {line}"));
        }
        let room = candidate.directory().own_git();
        if own.is_none() || own_dir::unread(&room).is_some() {
            return Ok(());
        }
        own_dir::delete(&room)
    }

    fn take_over(&self, candidate: CandidateRef<'_>, has_ended: bool) -> Result<Option<String>> {
        let own = own_git(candidate)?;
        let mut special = None;
        if let Some(own) = &own {
            special = own.special_files();
            let admin = worktree::admin_of(&self.repo, &candidate.worktree())?;
            let base = &candidate.run.base;
            own.bring_back(&self.repo, admin.as_deref(), &candidate.branch(), base)?;
        }
        if has_ended {
            self.leave_own_git(candidate, own.as_ref())?;
        }
        Ok(special)
    }

    /// Captures every candidate of a run, several in parallel. Returns the results in spawn order.
    pub fn capture_all(&self, run: &Run) -> Result<Vec<Captured>> {
        self.capture_each(run, &run.candidates, None)
    }

    /// Captures the candidates in `names`, several in parallel. Returns the results in the order of
    /// `names`. With a message, each candidate that differs from the base gets a new iteration,
    /// even if its last capture has the same files. If a capture fails, its result is that of
    /// [`Session::capture_or_tell`].
    pub fn capture_each(
        &self,
        run: &Run,
        names: &[Name],
        message: Option<&str>,
    ) -> Result<Vec<Captured>> {
        process::in_parallel(CAPTURED_AT_ONCE, names, |name| {
            let candidate = self.store.candidate(run, name);
            let lock = candidate.lock();
            let captured = lock.and_then(|lock| self.capture_locked(candidate, message, &lock));
            captured.or_else(|error| self.not_captured(candidate, error))
        })
    }

    /// Captures a candidate. If that fails, returns the last capture together with the problem, so
    /// that the other candidates can still be compared.
    pub fn capture_or_tell(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        self.capture(candidate).or_else(|error| self.not_captured(candidate, error))
    }

    fn not_captured(&self, candidate: CandidateRef<'_>, error: Error) -> Result<Captured> {
        Ok(Captured { problem: Some(error.message), ..self.stored(candidate)? })
    }

    /// A candidate's newest capture; `None` if the worktree may have other files than this capture.
    pub fn unchanged(&self, candidate: CandidateRef<'_>) -> Result<Option<Capture>> {
        let _lock = candidate.lock()?;
        if own_git(candidate)?.is_some() {
            return Ok(None);
        }
        let Some(previous) = candidate.latest()? else { return Ok(None) };
        let record = candidate.record()?;
        let unchanged =
            self.with_source(candidate, &record, Some(&previous), |source, there| {
                Ok(there && capture::is_unchanged(&self.repo, source)?)
            })?;
        Ok(unchanged.then_some(previous))
    }

    /// The numbers of lines added and deleted in a worktree so far. Returns `None` if only a
    /// capture could count them. Writes nothing.
    pub fn peek(&self, candidate: CandidateRef<'_>) -> Option<(u64, u64)> {
        let record = candidate.record().ok()?;
        let previous = candidate.latest().ok()?;
        let peeked = self.with_source(candidate, &record, previous.as_ref(), |source, there| {
            Ok(if there { capture::lines_changed(&self.repo, source) } else { None })
        });
        peeked.ok()?
    }

    /// The numbers of lines that a candidate's newest capture adds and deletes. `None` if there is
    /// no capture, or if git treats a changed file as binary.
    pub fn captured_lines(&self, candidate: CandidateRef<'_>) -> Option<(u64, u64)> {
        let tree = candidate.latest().ok()??.tree;
        let base = &candidate.run.base;
        diff::lines_of(&diff::since(&self.repo, base, &tree).changes().ok()?)
    }

    /// The parts of a worktree that cannot be captured. Writes nothing.
    pub fn uncapturable(&self, candidate: CandidateRef<'_>) -> Result<Omissions> {
        let record = candidate.record()?;
        let previous = candidate.latest()?;
        let mut omissions =
            self.with_source(candidate, &record, previous.as_ref(), |source, there| {
                if there {
                    capture::uncapturable(&self.repo, source)
                } else {
                    Ok(Omissions::default())
                }
            })?;
        self.add_git_dirs(candidate, &mut omissions)?;
        Ok(omissions)
    }

    /// Some git directories are deleted together with the worktree. Adds the commits that only
    /// these directories hold.
    fn add_git_dirs(&self, candidate: CandidateRef<'_>, omissions: &mut Omissions) -> Result<()> {
        omissions.unread = own_dir::unread(&candidate.directory().own_git());
        if let Some(admin) = worktree::admin_of(&self.repo, &candidate.worktree())? {
            let modules = admin.join(own_dir::MODULES);
            omissions.submodules =
                own_dir::modules::unsaved(&self.repo, &candidate.run.base, &modules)?;
        }
        Ok(())
    }

    /// Calls `work` with the source of a capture, and with true if the worktree exists.
    fn with_source<T>(
        &self,
        candidate: CandidateRef<'_>,
        record: &Candidate,
        previous: Option<&Capture>,
        work: impl FnOnce(&CaptureSource<'_>, bool) -> Result<T>,
    ) -> Result<T> {
        let worktree = candidate.worktree();
        let source = CaptureSource {
            worktree: &worktree,
            branch: &candidate.branch(),
            base: &candidate.run.base,
            index: &candidate.directory().index(),
            previous,
            hidden: &HiddenPaths::new(&self.repo, candidate.run.base, &self.excludes),
            seeds: &self.seeded(candidate, previous)?,
            ran_command: record.state != State::Open,
        };
        work(&source, is_real_directory(&candidate.worktree_root(), &worktree))
    }

    fn capture_once(
        &self,
        candidate: CandidateRef<'_>,
        record: &Candidate,
        message: Option<&str>,
    ) -> Result<Captured> {
        let previous = candidate.latest()?;
        self.with_source(candidate, record, previous.as_ref(), |source, there| {
            self.capture_source(candidate, source, there, record.clone(), message)
        })
    }

    fn capture_source(
        &self,
        candidate: CandidateRef<'_>,
        source: &CaptureSource<'_>,
        there: bool,
        mut record: Candidate,
        words: Option<&str>,
    ) -> Result<Captured> {
        let previous = source.previous.cloned();
        let snapshot = if there {
            Some(capture::snapshot(&self.repo, source)?)
        } else {
            capture::branch_snapshot(&self.repo, source)?
        };
        let Some(mut snapshot) = snapshot else {
            return self.captured(candidate.run, record, previous, Omissions::default());
        };
        let WorktreeSnapshot { tree, head, bytes, .. } = snapshot;
        snapshot.omissions.ignored_source =
            ignored_source::left_by_attempt(source, &snapshot.ignored, &snapshot.omissions);
        let base = &candidate.run.base;
        let base_tree = self.repo.commit(base)?.tree;
        let last = previous.as_ref().map_or(&base_tree, |p| &p.tree);
        let is_described = words.is_some() && previous.is_some();
        if tree == *last && snapshot.heads.is_empty() && !is_described {
            let captured = self.captured(candidate.run, record, previous, snapshot.omissions)?;
            return self.captured_again(candidate, captured, head, bytes);
        }
        let comparison = diff::between(&self.repo, base, &base_tree, &tree);
        let patch = comparison.patch()?;
        self.update_record(&mut record, patch.changes.len(), bytes)?;
        let blast = comparison.blast(&patch.changes)?;
        let iteration = previous.as_ref().map_or(1, |p| p.iteration.saturating_add(1));
        let changes = if there { patch.changes.as_slice() } else { &[] };
        let written = changes.iter().filter(|c| c.status != ChangeStatus::Deleted).map(|c| &c.path);
        let refname = refs::mtimes(&candidate.run.run, candidate.name);
        let times = NewTimes::read(&self.repo, refname, source.worktree, &tree, written)?;
        let message = message(candidate.run, &record, iteration, blast, head, words);
        let refname = candidate.capture_ref();
        let times = times.as_ref();
        remove(&candidate.directory().patch())?;
        let commit = capture::store(&self.repo, source, &snapshot, &refname, &message, times)?;
        let capture = Capture { commit, tree, iteration };
        self.store.record_event(&candidate.run.run, &event(candidate, &capture, blast, words))?;
        // The patch is written last. While it is missing, the next capture writes the patch and the
        // event.
        atomic::write(&candidate.directory().patch(), &patch.bytes)?;
        let damage = trees::damage(&self.repo, base, &tree);
        let problem = damage.map(|damage| problem_of(&record, &damage));
        Ok(Captured {
            candidate: record,
            capture: Some(capture),
            fresh: true,
            changes: patch.changes,
            blast,
            gone: false,
            omissions: snapshot.omissions,
            problem,
        })
    }

    /// Updates what is stored about a candidate whose files are those of its last capture. `bytes`
    /// is the size of the files.
    fn captured_again(
        &self,
        candidate: CandidateRef<'_>,
        mut captured: Captured,
        head: Option<Oid>,
        bytes: u64,
    ) -> Result<Captured> {
        self.update_record(&mut captured.candidate, captured.changes.len(), bytes)?;
        self.store_end(candidate, &mut captured, head)?;
        if let Some(capture) = &captured.capture
            && !candidate.directory().patch().exists()
        {
            self.make_up_for(candidate, capture, captured.blast)?;
        }
        Ok(captured)
    }

    /// Completes the record of a capture if git-frites was killed before it had written the event
    /// and the patch.
    fn make_up_for(
        &self,
        candidate: CandidateRef<'_>,
        capture: &Capture,
        blast: Blast,
    ) -> Result<()> {
        let CandidateRef { run, name, .. } = candidate;
        let is_it = |event: &Event| {
            matches!(event, Event::Captured { candidate, iteration, tree, .. }
                if candidate == name && (*iteration, *tree) == (capture.iteration, capture.tree))
        };
        if !events::read_of(&self.store.dir().events(), &run.run)?.iter().any(is_it) {
            let message = self.repo.commit(&capture.commit)?.message;
            let event = event(candidate, capture, blast, trailer::body(&message));
            self.store.record_event(&run.run, &event)?;
        }
        let base_tree = self.repo.commit(&run.base)?.tree;
        let patch = diff::between(&self.repo, &run.base, &base_tree, &capture.tree).patch()?;
        atomic::write(&candidate.directory().patch(), &patch.bytes)
    }

    /// Stores the final state of an attempt, because other clones see only captures. If the newest
    /// capture was made while the attempt ran, or before the attempt was resumed, it has an older
    /// state. Then a new commit is made. It keeps the iteration number, because its files are the
    /// same.
    fn store_end(
        &self,
        candidate: CandidateRef<'_>,
        captured: &mut Captured,
        head: Option<Oid>,
    ) -> Result<()> {
        let Some(last) = &mut captured.capture else { return Ok(()) };
        let last_message = self.repo.commit(&last.commit)?.message;
        let state = captured.candidate.state;
        let is_stored =
            Trailer::State.find(&last_message).is_none_or(|word| word == state.into_str());
        if is_stored || state == State::Running {
            return Ok(());
        }
        let words = trailer::body(&last_message);
        let run = candidate.run;
        let message =
            message(run, &captured.candidate, last.iteration, captured.blast, head, words);
        let commit = commit_tree(&self.repo, &last.tree, [&last.commit], &message)?;
        let name = candidate.capture_ref();
        self.repo.set_ref_whole(&name, &commit, Some(&last.commit), &[&last.commit], "capture")?;
        last.commit = commit;
        Ok(())
    }

    /// Stores the end of an attempt that changed nothing. Other clones see only captures, so this
    /// makes a capture of the unchanged files.
    pub fn store_unchanged(&self, candidate: CandidateRef<'_>) -> Result<()> {
        let _lock = candidate.lock()?;
        if candidate.latest()?.is_some() {
            return Ok(());
        }
        let run = candidate.run;
        let message = message(run, &candidate.record()?, 1, Blast::default(), None, None);
        let tree = self.repo.commit(&run.base)?.tree;
        let commit = commit_tree(&self.repo, &tree, [&run.base], &message)?;
        let name = candidate.capture_ref();
        self.repo.set_ref_whole(&name, &commit, None, &[&run.base], "capture")
    }

    /// Updates a record after a capture. The state becomes `empty` if no file changed, and stops
    /// being `empty` if one did. The recorded disk space is raised to `bytes`, the size of the
    /// captured files.
    fn update_record(&self, candidate: &mut Candidate, files: usize, bytes: u64) -> Result<()> {
        let state = candidate.state.with_files(files as u64);
        if state == candidate.state && bytes <= candidate.bytes {
            return Ok(());
        }
        candidate.state = state;
        candidate.bytes = candidate.bytes.max(bytes);
        self.store.save_candidate(candidate)
    }

    /// A candidate as it was last captured; its worktree is not read.
    pub fn stored(&self, candidate: CandidateRef<'_>) -> Result<Captured> {
        let record = candidate.record()?;
        let capture = candidate.latest()?;
        self.captured(candidate.run, record, capture, Omissions::default())
    }

    /// A candidate in the state of one capture; its worktree is not read.
    pub fn stored_at(&self, candidate: CandidateRef<'_>, capture: Capture) -> Result<Captured> {
        let record = candidate.record()?;
        self.captured(candidate.run, record, Some(capture), Omissions::default())
    }

    fn captured(
        &self,
        run: &Run,
        candidate: Candidate,
        capture: Option<Capture>,
        omissions: Omissions,
    ) -> Result<Captured> {
        let compared = match &capture {
            Some(Capture { tree, .. }) => {
                diff::since(&self.repo, &run.base, tree).of_sound_tree()?
            }
            None => Ok(Default::default()),
        };
        let problem = compared.as_ref().err().map(|damage| problem_of(&candidate, damage));
        let (changes, blast) = compared.unwrap_or_default();
        let gone = self.store.candidate(run, &candidate.candidate).has_lost_worktree(&candidate);
        let fresh = false;
        Ok(Captured { candidate, capture, fresh, changes, blast, gone, omissions, problem })
    }

    /// Prints the parts that a capture left out, or the reason why there is no capture.
    pub fn print_omissions(&self, captured: &Captured) {
        if let Some(problem) = &captured.problem {
            self.ui.warn(problem);
        }
        if captured.gone && matches!(captured.candidate.state, State::Open | State::Succeeded) {
            let address = captured.candidate.address();
            self.ui.warn(match &captured.capture {
                Some(last) => {
                    let iteration = last.iteration;
                    format!("{address}: {GONE}; its last capture counts: {address}@{iteration}")
                }
                None => format!("{address}: {GONE}, and nothing of it was captured"),
            });
        }
        let is_serious = captured.omissions.loses_work() || captured.omissions.special.is_some();
        for line in captured.omissions.lines() {
            let line = format!("{}: {line}", captured.candidate.address());
            if is_serious { self.ui.warn(line) } else { self.ui.note(line) }
        }
        if let Some(hint) = captured.omissions.hint(&captured.candidate.address()) {
            self.ui.hint(hint);
        }
    }
}

/// The problem of a candidate whose newest capture is damaged.
fn problem_of(candidate: &Candidate, damage: &str) -> String {
    format!("{}: {damage}", candidate.address())
}

/// The candidate's own git directory, if it has one.
fn own_git(candidate: CandidateRef<'_>) -> Result<Option<OwnGitDir>> {
    OwnGitDir::at(&candidate.directory().own_git())
}

/// The event of a capture, with the user's words, if any.
fn event(
    candidate: CandidateRef<'_>,
    capture: &Capture,
    blast: Blast,
    words: Option<&str>,
) -> Event {
    Event::Captured {
        candidate: candidate.name.clone(),
        iteration: capture.iteration,
        commit: capture.commit,
        tree: capture.tree,
        lines: blast.lines,
        files: blast.files,
        message: words.map(str::to_owned),
    }
}

/// The commit message of a capture, with the user's words, if any. Its trailers have enough data to
/// rebuild a lost record.
fn message(
    run: &Run,
    candidate: &Candidate,
    iteration: u32,
    blast: Blast,
    head: Option<Oid>,
    words: Option<&str>,
) -> String {
    let mut message = format!("frites: capture {}@{iteration}\n\n", candidate.address());
    if let Some(words) = words {
        message.push_str(words);
        message.push_str("\n\n");
    }
    let own_head = head.filter(|head| *head != run.base);
    let lines = [
        Trailer::Run.line(&run.run),
        Trailer::Candidate.line(&candidate.candidate),
        Trailer::Index.line(candidate.index),
        Trailer::Iteration.line(iteration),
        Trailer::Base.line(run.base),
        Trailer::State.line(candidate.state),
        Trailer::Lines.line(blast.lines),
        Trailer::Files.line(blast.files),
    ];
    let lines = lines.into_iter().chain(own_head.map(|head| Trailer::Head.line(head)));
    message.extend(lines.map(|line| line + "\n"));
    message
}
