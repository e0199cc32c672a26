//! Prepares new worktrees: places seeds and runs `spawn.setup`.
use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use crate::config::keys;
use crate::error::{Error, Result};
use crate::fs::parallel;
use crate::git::file_times::FileTimes;
use crate::git::landing::position::uncommitted_in_words;
use crate::git::seed::find::{self, Seeds};
use crate::git::seed::leads_back;
use crate::git::seed::placed::{PlacedSeeds, SeedContents};
use crate::model::board::Standing;
use crate::model::candidate::State;
use crate::model::count::count;
use crate::model::env;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::ops::board::{self, Board, Ending, WorkKind};
use crate::ops::disk_space;
use crate::ops::guard::{self, Guard};
use crate::ops::ignored_source;
use crate::ops::log_excerpt;
use crate::ops::session::Session;
use crate::ops::spawn::command::{CandidateCommand, users_program};
use crate::oracle;
use crate::process::world_spec::Confinement;
use crate::process::{self, Job, Limits};
use crate::store::candidate::CandidateRef;
use crate::store::events::{Event, HowEnded};
use crate::store::records::write_toml;
use crate::ui::table;

/// The seeds and the setup command of a run, found before any worktree is made.
pub struct Preparation {
    seeds: Seeds,
    known: SeedContents,
    /// `spawn.setup`.
    setup: Option<OracleCommand>,
    /// The guard for the setup command.
    guard: Option<Guard>,
}

/// A seed that was last written at least this long ago is certainly older than the files of a
/// worktree that is made now. Some file systems round times to two seconds.
const SEED_AGE: Duration = Duration::from_secs(4);

/// The result of preparing one worktree.
#[derive(Default)]
pub struct Prepared {
    /// The reason why the candidate's setup failed.
    pub failure: Option<String>,
    /// A file of the base that the setup changed; `None` if it changed none.
    pub changed: Option<TreePath>,
    /// True if the worktree may have files that the base does not have.
    pub has_more: bool,
}

impl Preparation {
    /// Finds the seeds and the setup command for this number of worktrees. Fails if the disk is too
    /// full for the worktrees, or if the program of the setup command is missing.
    pub fn new(session: &Session, base: &Oid, worktrees: usize) -> Result<Preparation> {
        let root = session.config.get(keys::SPAWN_WORKTREE_ROOT);
        let root = session.store.worktrees(root.as_deref());
        disk_space::require_space(session, &root, base, worktrees, "worktrees")?;
        let setup = session
            .config
            .command(keys::SPAWN_SETUP)
            .filter(|(command, _)| !command.is_empty())
            .map(|(command, source)| OracleCommand { stage: Stage::Setup, command, source });
        oracle::require_programs(setup.as_slice(), keys::SPAWN_SETUP.name)?;
        let guard = setup.as_ref().map_or(Ok(None), |_| guard::choose_for(session, base))?;
        let seeds = session.seeds(base)?;
        for note in &seeds.notes {
            session.ui.warn(note);
        }
        let leads = leads_back::find(&session.repo, &seeds, base)?;
        for line in leads.warnings("the attempt's") {
            session.ui.warn(line);
        }
        Ok(Preparation { known: seeds.contents()?, seeds, setup, guard })
    }

    /// Warns if an argument of the commands names a file in the user's checkout that no worktree
    /// will have. This is a file that is neither in `tree`, from which the worktrees start, nor a
    /// seed.
    pub fn warn_of_missing_files(
        &self,
        session: &Session,
        tree: &Oid,
        commands: &[(Name, CandidateCommand)],
    ) -> Result<()> {
        let Some(home) = &session.home else { return Ok(()) };
        let words = commands.iter().flat_map(|(_, command)| {
            let own = command.argv.first().and_then(|program| users_program(program));
            command.argv.iter().skip(usize::from(own.is_some()))
        });
        let paths: BTreeSet<&str> = words
            .filter_map(|word| word.to_str())
            .map(|word| word.strip_prefix("./").unwrap_or(word))
            .filter(|path| {
                !path.is_empty()
                    && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
            })
            .filter(|path| home.join(path).is_file())
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        for path in paths {
            if session.repo.file(tree, path)?.is_none() && !self.seeds.hold(&TreePath::new(path)) {
                session.ui.warn(format!("'{path}' is not committed, so no worktree has it"));
                session.ui.hint("commit it, give its absolute path, or add it to `seed.copy`");
            }
        }
        Ok(())
    }

    /// Does `work`. Meanwhile, tells the user if the checkout has uncommitted changes, because
    /// attempts from `base` do not have them. With `--quiet`, does not look for such changes.
    pub fn beside_look_at_checkout<T>(
        session: &Session,
        base: &Oid,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Session { repo, home, ui, .. } = session;
        let is_elsewhere = home.is_none() || home.as_deref() != repo.work_tree();
        if ui.is_quiet() || is_elsewhere || repo.head() != Some(*base) {
            return work();
        }
        let span = tracing::Span::current();
        std::thread::scope(|scope| {
            parallel::start(scope, move || span.in_scope(|| note_changes(session)));
            work()
        })
    }

    /// Calls `work`, which prepares worktrees and reports to a board. If there is a setup command,
    /// shows the board on the terminal meanwhile.
    pub fn show<T>(
        &self,
        session: &Session,
        run: &Run,
        names: &[Name],
        work: impl FnOnce(&Board) -> Result<T>,
    ) -> Result<T> {
        let board = Board::new(WorkKind::Setup, process::processors());
        let Some(setup) = &self.setup else { return work(&board) };
        let worktrees = count(names.len(), "worktree");
        session.ui.note(format!("run {run}: setup of {worktrees} with `{}`", setup.command));
        board::live(session, run, names, &board, || work(&board))
    }

    /// The modification times for the files of the worktrees. A seed may be a build output. If the
    /// worktree's files looked older than this output, build tools would not build it again
    /// (GIT-FACTS, "Not safe for build tools"). So if a seed is younger than [`SEED_AGE`], the
    /// files keep the times at which they are written.
    pub fn file_times(&self) -> FileTimes {
        let last = SystemTime::now().checked_sub(SEED_AGE).unwrap_or(SystemTime::UNIX_EPOCH);
        if self.known.are_older_than(last) { FileTimes::LastSecond } else { FileTimes::Current }
    }

    /// Prepares a worktree whose files are checked out. Records the seeds and the untracked files
    /// that the setup made, so that captures do not take them for work of the attempt.
    pub fn worktree(&self, session: &Session, candidate: CandidateRef<'_>) -> Result<Prepared> {
        let dir = candidate.worktree();
        let mut given = self.seeds.place(&dir)?;
        let mut prepared = Prepared::default();
        if let Some(setup) = &self.setup {
            let world =
                self.guard.as_ref().map(|guard| guard.world(session, candidate)).transpose()?;
            let log = candidate.directory().logs().log("setup");
            prepared.failure = run_setup(
                session,
                setup,
                &dir,
                &log,
                world.as_ref().map(|world| &world.confinement),
            )?;
            session.end_guard(candidate)?;
            let git = session.repo.git().work_tree(&dir).index(&candidate.directory().index());
            let left = find::changes_by_setup(&git)?;
            let source = ignored_source::find(&dir, &candidate.directory().index(), &left.ignored);
            given.extend(source.into_values().flatten());
            given.extend(left.untracked.into_iter().filter(|path| !session.excludes.matches(path)));
            prepared.changed = left.changed;
        }
        prepared.has_more = self.setup.is_some() || !given.is_empty();
        // An empty record is written, too, and replaces the record of an earlier worktree. If there
        // were no record, it would count as lost. Captures would then take the seeds that the
        // configuration selects at that time.
        let files = given.into_iter().map(|path| (path.clone(), path.on_disk(&dir)));
        let placed = PlacedSeeds::read(files, &self.known)?;
        write_toml(&candidate.directory().seeds(), &placed)?;
        Ok(prepared)
    }

    /// Prints how the setup of a worktree ended, and how long the setup took.
    pub fn tell_end(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
        prepared: &Prepared,
        seconds: f64,
    ) {
        if self.setup.is_none() {
            return;
        }
        match &prepared.failure {
            None => {
                session.ui.note(format!("{candidate}: set up in {}", table::duration(seconds)));
            }
            Some(failure) => log_excerpt::warn(
                session,
                &format!("{candidate}: failed ({failure})"),
                &candidate.directory().logs().log("setup"),
            ),
        }
    }

    /// Records in the event log which candidates' setup failed, and warns of tracked files that the
    /// setup changed.
    pub fn report(&self, session: &Session, run: &Run, names: &[Name], prepared: &[Prepared]) {
        for (name, prepared) in names.iter().zip(prepared) {
            let Some(failure) = &prepared.failure else { continue };
            let event = Event::Ended {
                candidate: name.clone(),
                state: State::Failed,
                how: HowEnded::NotStarted { reason: failure.clone() },
            };
            session.record_or_warn(&run.run, &event);
        }
        if let Some(path) = prepared.iter().find_map(|p| p.changed.as_ref()) {
            session.ui.warn(format!(
                "setup changes files that git tracks, such as '{}': every candidate carries that change",
                path.quoted()
            ));
        }
    }
}

impl Prepared {
    /// How the preparation ended, in the form for the candidate's row on the terminal.
    pub fn ending(&self) -> Ending {
        let (standing, words) = match &self.failure {
            Some(failure) => (Standing::Bad, format!("failed ({failure})")),
            None => (Standing::Good, "set up".to_owned()),
        };
        Ending { standing, words, elapsed: None }
    }
}

/// Tells the user about uncommitted changes in the checkout. If git-frites cannot look for them,
/// says nothing, because the attempts can start all the same.
fn note_changes(session: &Session) {
    if let Ok(Some(files)) = uncommitted_in_words(&session.repo) {
        session.ui.note(format!(
            "your checkout has changes that are not committed ({files}); attempts begin without them"
        ));
    }
}

/// Runs the setup command as judging runs it: with the oracle's time limit, and without the
/// candidate's variables. Returns the reason if the command failed.
fn run_setup(
    session: &Session,
    setup: &OracleCommand,
    dir: &Path,
    log: &Path,
    confinement: Option<&Confinement>,
) -> Result<Option<String>> {
    let limits =
        Limits { hard: Some(session.config.get(keys::ORACLE_TIMEOUT)), ..Limits::default() };
    let job = Job {
        argv: &setup.command.argv(),
        dir,
        policy: &session.policy,
        env: Vec::new(),
        hide: &env::ALL,
        stdin: None,
        log,
        limits,
        confinement,
    };
    let end = process::run(&job).map_err(|e| e.context("could not run the setup command"))?;
    if end.cancelled {
        return Err(Error::no("interrupted while the worktrees were set up"));
    }
    Ok((!end.outcome.passed()).then(|| format!("{}: {}", setup.stage, end.outcome)))
}
