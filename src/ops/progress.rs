//! The progress of a run's candidates, for the changing rows on a terminal and for `status`.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::Result;
use crate::fs::{atomic, regular};
use crate::model::board::{Row, SharedBoard, Standing, remaining};
use crate::model::candidate::State;
use crate::model::layout::{AGENT, LogDir};
use crate::model::name::{BASE, Name};
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::process::running::Running;
use crate::process::{self, interrupt};
use crate::store::Store;
use crate::store::candidate::CandidateRef;
use crate::store::logs::LogDirectory;
use crate::ui::live::{View, whole_seconds};

/// The interval between two redraws.
const REDRAW: Duration = Duration::from_millis(200);

/// The shortest time between two looks at the size of the changes in a worktree.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// The time between two looks, as a multiple of the time that one takes: at most 5 % of one processor.
const REST: u32 = 20;

/// The command that currently runs for a candidate, in any process; `None` if nothing runs.
pub fn running(candidate: CandidateRef<'_>) -> Option<Running> {
    running_in(&candidate.address(), candidate.directory().logs())
}

fn running_in(address: &str, place: LogDir) -> Option<Running> {
    LogDirectory::both(address, place).iter().find_map(LogDirectory::running)
}

/// The word of a row before any work on its candidate has begun.
const WAITING: &str = "waiting";

/// The kind of work of a run's candidates in one part of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Their worktrees are set up.
    Setup,
    /// Their own commands run.
    Attempts,
    /// They are judged.
    Judging,
}

/// How the work on one candidate ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How the candidate stands now.
    pub standing: Standing,
    /// The end in words.
    pub words: String,
    /// The time that the commands took.
    pub elapsed: Option<Duration>,
    /// Lines added and deleted; as last seen if `None`.
    pub size: Option<(u64, u64)>,
}

/// The state of the candidates while attempts run or candidates are judged. The code that works on a
/// candidate reports here when it begins and ends; the candidate's record still has the state from
/// before.
pub struct Board {
    kind: WorkKind,
    jobs: usize,
    began: Instant,
    state: Mutex<BoardState>,
    /// The file that other processes read, the run, and the candidates on it.
    shared: OnceLock<(PathBuf, Name, Vec<Name>)>,
}

#[derive(Default)]
struct BoardState {
    at_work: BTreeMap<Name, Instant>,
    ended: BTreeMap<Name, Ending>,
    /// Candidates whose own commands have ended; they may have been judged since.
    over: BTreeSet<Name>,
    sizes: BTreeMap<Name, (u64, u64)>,
    /// The stage that was last seen of those at work.
    seen: BTreeMap<Name, String>,
    /// The time that one tree is expected to take.
    each: Option<Duration>,
    /// The candidate that would win now.
    leader: Option<Name>,
    /// The judging that the verdict waits for, besides the candidates at work.
    missing: String,
}

impl BoardState {
    /// The row of a candidate as far as reports tell: it does not say which command runs.
    fn row(&self, run: &Name, name: &Name) -> Row {
        let ended = self.ended.get(name);
        let standing = match ended {
            Some(ended) => ended.standing,
            None if self.at_work.contains_key(name) => Standing::Running,
            None => Standing::Waiting,
        };
        Row {
            address: format!("{run}/{name}"),
            standing,
            leads: self.leader.as_ref() == Some(name),
            doing: ended.map_or(WAITING, |ended| &ended.words).to_owned(),
            elapsed: ended.and_then(|ended| ended.elapsed),
            size: self.sizes.get(name).copied(),
            last_line: None,
        }
    }
}

impl Board {
    /// An empty board for a part in which so many candidates are worked on at once.
    pub fn new(kind: WorkKind, jobs: usize) -> Board {
        Board {
            kind,
            jobs,
            began: Instant::now(),
            state: Mutex::default(),
            shared: OnceLock::new(),
        }
    }

    /// The number of candidates that are worked on at once.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// Says that work on a candidate begins.
    pub fn began(&self, name: &Name) {
        let mut state = self.state.lock();
        state.at_work.insert(name.clone(), Instant::now());
        state.ended.remove(name);
        state.seen.remove(name);
        self.share(&state);
    }

    /// Says that work on a candidate begins, and what it is while no log tells.
    pub fn began_with(&self, name: &Name, what: &str) {
        self.began(name);
        self.state.lock().seen.insert(name.clone(), what.to_owned());
    }

    /// Says what the work on a candidate waits for.
    pub fn waits(&self, name: &Name, words: String) {
        let mut state = self.state.lock();
        state.at_work.remove(name);
        let waiting = Ending { standing: Standing::Waiting, words, elapsed: None, size: None };
        state.ended.insert(name.clone(), waiting);
        self.share(&state);
    }

    /// Says that a command of the candidate's own begins.
    pub fn attempt_began(&self, name: &Name) {
        self.state.lock().over.remove(name);
        self.began(name);
    }

    /// Says how the work on a candidate ended.
    pub fn ended(&self, name: &Name, ending: Ending) {
        self.saw(name, ending.size);
        let mut state = self.state.lock();
        state.at_work.remove(name);
        state.over.insert(name.clone());
        state.ended.insert(name.clone(), ending);
        self.share(&state);
    }

    /// Says how long one tree is expected to take, as the base did.
    pub fn expect(&self, each: Duration) {
        self.state.lock().each = Some(each).filter(|each| !each.is_zero());
    }

    /// Says who would win now, and what is missing for the verdict.
    pub fn stands(&self, leader: Option<Name>, missing: String) {
        let mut state = self.state.lock();
        (state.leader, state.missing) = (leader, missing);
        self.share(&state);
    }

    /// Writes for other processes how these candidates stand, now and whenever it changes.
    fn share_in(&self, path: PathBuf, run: &Name, names: &[Name]) {
        let _ = self.shared.set((path, run.clone(), names.to_vec()));
        self.share(&self.state.lock());
    }

    /// Writes for other processes how the candidates stand. It is no error that this fails: they see what
    /// runs by its marks.
    fn share(&self, state: &BoardState) {
        let Some((path, run, names)) = self.shared.get() else { return };
        let board = SharedBoard {
            process: std::process::id(),
            rows: names.iter().map(|name| state.row(run, name)).collect(),
            summary: self.done(state, names),
            missing: state.missing.clone(),
        };
        let _ = serde_json::to_vec(&board).map(|bytes| atomic::write_unsynced(path, &bytes));
    }

    /// Says how many lines a candidate has added and deleted, if that is known.
    fn saw(&self, name: &Name, lines: Option<(u64, u64)>) {
        if let Some(lines) = lines {
            self.state.lock().sizes.insert(name.clone(), lines);
        }
    }

    fn view(&self, session: &Session, run: &Run, names: &[Name]) -> View {
        let mut state = self.state.lock();
        let address = format!("{}/{BASE}", run.run);
        let base = running_in(&address, session.store.run_dir(&run.run).base());
        let base = base.map(|running| row_at_work(address, running));
        let rows =
            names.iter().map(|name| self.row(&mut state, session.store.candidate(run, name)));
        let rows: Vec<Row> = base.into_iter().chain(rows).collect();
        View { rows, summary: self.summary(&state, names) }
    }

    fn row(&self, state: &mut BoardState, candidate: CandidateRef<'_>) -> Row {
        let row = state.row(&candidate.run.run, candidate.name);
        let Some(since) = state.at_work.get(candidate.name) else { return row };
        match running(candidate) {
            Some(running) => {
                state.seen.insert(candidate.name.clone(), running.what.clone());
                Row { size: row.size, leads: row.leads, ..row_at_work(row.address, running) }
            }
            None => {
                let doing = match state.seen.get(candidate.name) {
                    None => "preparing",
                    Some(last) if last == AGENT => "capturing",
                    Some(last) => last,
                };
                Row { doing: doing.to_owned(), elapsed: Some(since.elapsed()), ..row }
            }
        }
    }

    /// How many have ended, in words.
    fn done(&self, state: &BoardState, names: &[Name]) -> String {
        let what = match self.kind {
            WorkKind::Setup => "setup",
            WorkKind::Attempts => "attempts",
            WorkKind::Judging => "judging",
        };
        let done = names.iter().filter(|name| state.over.contains(*name)).count();
        format!("{what}: {done} of {} done", names.len())
    }

    fn summary(&self, state: &BoardState, names: &[Name]) -> String {
        let elapsed = whole_seconds(self.began.elapsed());
        let mut words = format!("{}, {elapsed}", self.done(state, names));
        if let Some(each) = state.each {
            let all = names.len();
            let done = names.iter().filter(|name| state.over.contains(*name)).count();
            let running: Vec<Duration> = state.at_work.values().map(Instant::elapsed).collect();
            let waiting = all.saturating_sub(done + running.len());
            let left = remaining(each, self.jobs, &running, waiting);
            if !left.is_zero() {
                words.push_str(&format!(", about {} left", whole_seconds(left)));
            }
        }
        if !state.missing.is_empty() {
            words.push_str(&format!("; {}", state.missing));
        }
        words
    }

    /// The candidates whose worktrees change now.
    fn changing(&self) -> Vec<Name> {
        match self.kind {
            WorkKind::Attempts => {
                let state = self.state.lock();
                state.at_work.keys().filter(|name| !state.over.contains(*name)).cloned().collect()
            }
            WorkKind::Setup | WorkKind::Judging => Vec::new(),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some((path, ..)) = self.shared.get() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Does `work` for some candidates of a run. On a terminal, a row for each of them shows its progress; so
/// does `status` in another process.
pub fn live<T>(
    session: &Session,
    run: &Run,
    names: &[Name],
    board: &Board,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    board.share_in(session.store.run_dir(&run.run).board(), &run.run, names);
    if !session.ui.begin_live() {
        return work();
    }
    let result = thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        let (peeked, looks) = channel::<()>();
        scope.spawn(move || {
            // The loop ends when `done` is dropped.
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(REDRAW) {
                session.ui.show_live(&board.view(session, run, names), interrupt::requests());
            }
        });
        scope.spawn(move || {
            if board.kind == WorkKind::Judging {
                for name in names {
                    let lines = session.captured_lines(session.store.candidate(run, name));
                    board.saw(name, lines);
                }
                return;
            }
            let mut rest = BETWEEN_LOOKS;
            while let Err(RecvTimeoutError::Timeout) = looks.recv_timeout(rest) {
                let began = Instant::now();
                for name in board.changing() {
                    board.saw(&name, session.peek(session.store.candidate(run, &name)));
                }
                rest = BETWEEN_LOOKS.max(began.elapsed() * REST);
            }
        });
        let result = work();
        drop((done, peeked));
        result
    });
    session.ui.end_live();
    result
}

/// The work of other processes for a run.
pub struct Elsewhere {
    /// A row for each command that runs, hooks and the base first, and for each other candidate that they
    /// work on.
    pub rows: Vec<Row>,
    /// How many have ended; empty if no process works on them.
    pub summary: String,
    /// The work that the verdict waits for, apart from the attempts.
    pub missing: String,
}

/// Reads the work of other processes for a run at this moment.
pub fn elsewhere(store: &Store, run: &Run) -> Elsewhere {
    let places = store.log_directories(&run.run).into_iter();
    let mut rows: Vec<Row> = places
        .filter_map(|place| Some(row_at_work(place.address.clone(), place.running()?)))
        .collect();
    let text = regular::read_text(&store.run_dir(&run.run).board());
    let board = text.ok().and_then(|text| serde_json::from_str::<SharedBoard>(&text).ok());
    let board = board.filter(|board| process::is_alive(board.process)).unwrap_or_default();
    for told in board.rows {
        match rows.iter_mut().find(|row| row.address == told.address) {
            Some(row) => (row.leads, row.size) = (told.leads, told.size),
            // Its next command is about to run, or its last one has just ended.
            None if told.standing == Standing::Running => {}
            None => rows.push(told),
        }
    }
    rows.sort_by_key(|row| store.candidates(run).position(|c| c.address() == row.address));
    Elsewhere { rows, summary: board.summary, missing: board.missing }
}

fn row_at_work(address: String, running: Running) -> Row {
    let Running { what, elapsed, last_line } = running;
    let doing = if what == AGENT { State::Running.to_string() } else { what };
    let elapsed = Some(elapsed);
    let standing = Standing::Running;
    let leads = false;
    Row { address, standing, leads, doing, elapsed, size: None, last_line }
}
