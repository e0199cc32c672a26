//! The progress of a run's candidates, for the changing rows on a terminal and for `status`.
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::Result;
use crate::fs::{atomic, parallel, regular};
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

/// The shortest time between two measurements of the changes in a worktree.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// The pause after a measurement, as a multiple of the measurement's duration. So measuring takes
/// at most 5 % of one processor's time.
const REST: u32 = 20;

/// The command that currently runs for a candidate, in any process; `None` if nothing runs.
pub fn running(candidate: CandidateRef<'_>) -> Option<Running> {
    running_in(&candidate.address(), candidate.directory().logs())
}

fn running_in(address: &str, place: LogDir) -> Option<Running> {
    LogDirectory::both(address, place).iter().find_map(LogDirectory::running)
}

/// The kind of work that one part of a command does for a run's candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// The candidates' worktrees are set up.
    Setup,
    /// The candidates' own commands run.
    Attempts,
    /// The candidates are judged.
    Judging,
}

/// How the work on one candidate ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The candidate's state after the work.
    pub standing: Standing,
    /// How the work ended, in words.
    pub words: String,
    /// The time that the candidate's commands took, if it is known.
    pub elapsed: Option<Duration>,
}

/// The state of the candidates while their worktrees are set up, their commands run, or they are
/// judged. The code that works on a candidate reports here when that work begins and ends. The
/// candidate's record has only the state from before the work.
pub struct Board {
    kind: WorkKind,
    jobs: usize,
    began: Instant,
    state: Mutex<BoardState>,
    /// Three values: the file from which other processes read the board; the run; and the
    /// candidates that have rows in the file.
    shared: OnceLock<(PathBuf, Name, Vec<Name>)>,
}

#[derive(Default)]
struct BoardState {
    candidates: BTreeMap<Name, OnBoard>,
    /// The time that the judging of one tree is expected to take.
    each: Option<Duration>,
    /// The candidate that would win if no further result came.
    leader: Option<Name>,
    /// The judging that the verdict still waits for, e.g. `2 to judge, 1 to confirm`.
    missing: String,
}

/// The work on one candidate.
#[derive(Default)]
struct OnBoard {
    /// When the current work on the candidate began; `None` if there is none.
    since: Option<Instant>,
    /// How the last work on the candidate ended, or what the next work waits for.
    ended: Option<Ending>,
    /// True if the work of the board's [`WorkKind`] has ended for the candidate. Judging after an
    /// attempt does not change this.
    is_over: bool,
    /// The numbers of lines that the candidate has added and deleted.
    size: Option<(u64, u64)>,
    /// The stage of the current work that was seen last.
    seen: Option<String>,
}

impl BoardState {
    /// The row of a candidate, without its current stage and last line of output, which are in its
    /// logs.
    fn row(&self, run: &Name, name: &Name) -> Row {
        let nothing = OnBoard::default();
        let known = self.candidates.get(name).unwrap_or(&nothing);
        let (standing, doing, elapsed) = match (&known.ended, known.since) {
            (Some(Ending { standing, words, elapsed }), _) => (*standing, words.as_str(), *elapsed),
            (None, None) => (Standing::Waiting, "waiting", None),
            (None, Some(since)) => {
                let doing = match known.seen.as_deref() {
                    None => "preparing",
                    Some(last) if last == AGENT => "capturing",
                    Some(last) => last,
                };
                (Standing::Running, doing, Some(since.elapsed()))
            }
        };
        Row {
            address: format!("{run}/{name}"),
            standing,
            leads: self.leader.as_ref() == Some(name),
            doing: doing.to_owned(),
            elapsed,
            size: known.size,
            last_line: None,
        }
    }

    /// The number of these candidates for which the work of the board's [`WorkKind`] has ended.
    fn over(&self, names: &[Name]) -> usize {
        names.iter().filter(|name| self.candidates.get(*name).is_some_and(|c| c.is_over)).count()
    }
}

impl Board {
    /// An empty board for work on `jobs` candidates at once.
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
        self.update(name, |candidate| {
            candidate.since = Some(Instant::now());
            candidate.ended = None;
            candidate.seen = None;
        });
    }

    /// Says that work on a candidate begins. The row shows `what` until the first log of this work
    /// exists.
    pub fn began_with(&self, name: &Name, what: &str) {
        self.began(name);
        self.update(name, |candidate| candidate.seen = Some(what.to_owned()));
    }

    /// Says that the work on a candidate waits. `words` say what it waits for.
    pub fn waits(&self, name: &Name, words: String) {
        self.update(name, |candidate| {
            candidate.since = None;
            candidate.ended = Some(Ending { standing: Standing::Waiting, words, elapsed: None });
        });
    }

    /// Says that one of the candidate's own commands begins.
    pub fn attempt_began(&self, name: &Name) {
        self.update(name, |candidate| candidate.is_over = false);
        self.began(name);
    }

    /// Says how the work on a candidate ended.
    pub fn ended(&self, name: &Name, ending: Ending) {
        self.update(name, |candidate| {
            candidate.since = None;
            candidate.is_over = true;
            candidate.ended = Some(ending);
        });
    }

    /// Says how many lines a candidate has added and deleted, if that is known.
    pub fn counted_lines(&self, name: &Name, lines: Option<(u64, u64)>) {
        if lines.is_some() {
            self.state.lock().candidates.entry(name.clone()).or_default().size = lines;
        }
    }

    fn update(&self, name: &Name, change: impl FnOnce(&mut OnBoard)) {
        let mut state = self.state.lock();
        change(state.candidates.entry(name.clone()).or_default());
        self.share(&state);
    }

    /// Says how long the judging of one tree will probably take. The time left is computed from
    /// this.
    pub fn expect(&self, each: Duration) {
        self.state.lock().each = Some(each).filter(|each| !each.is_zero());
    }

    /// Says which candidate would win if no further result came, and which judging the verdict
    /// still waits for.
    pub fn stands(&self, leader: Option<Name>, missing: String) {
        let mut state = self.state.lock();
        (state.leader, state.missing) = (leader, missing);
        self.share(&state);
    }

    /// Writes the state of the candidates for other processes. A failure is ignored, because other
    /// processes can still see from the log directories which commands run.
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

    fn view(&self, session: &Session, run: &Run, names: &[Name]) -> View {
        let mut state = self.state.lock();
        let address = format!("{run}/{BASE}");
        let base = running_in(&address, session.store.run_dir(&run.run).base());
        let mut rows: Vec<Row> =
            base.into_iter().map(|running| row_at_work(address.clone(), running)).collect();
        for name in names {
            let mut row = state.row(&run.run, name);
            if row.standing == Standing::Running
                && let Some(running) = running(session.store.candidate(run, name))
                && let Some(known) = state.candidates.get_mut(name)
            {
                known.seen = Some(running.what.clone());
                let Row { size, leads, address, .. } = row;
                row = Row { size, leads, ..row_at_work(address, running) };
            }
            rows.push(row);
        }
        View { rows, summary: self.summary(&state, names) }
    }

    /// The number of finished candidates, in words, e.g. `judging: 2 of 5 done`.
    fn done(&self, state: &BoardState, names: &[Name]) -> String {
        let what = match self.kind {
            WorkKind::Setup => "setup",
            WorkKind::Attempts => "attempts",
            WorkKind::Judging => "judging",
        };
        format!("{what}: {} of {} done", state.over(names), names.len())
    }

    fn summary(&self, state: &BoardState, names: &[Name]) -> String {
        let elapsed = whole_seconds(self.began.elapsed());
        let mut words = format!("{}, {elapsed}", self.done(state, names));
        if let Some(each) = state.each {
            let at_work = state.candidates.values().filter_map(|candidate| candidate.since);
            let running: Vec<Duration> = at_work.map(|since| since.elapsed()).collect();
            let waiting = names.len().saturating_sub(state.over(names) + running.len());
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

    /// Counts the lines that candidates have changed. While candidates are judged, counts once, in
    /// their captures. Otherwise, counts in the worktrees in which commands run. Returns the pause
    /// before the next look.
    fn look(&self, session: &Session, run: &Run, names: &[Name]) -> Duration {
        if self.kind == WorkKind::Judging {
            for name in names {
                let lines = session.captured_lines(session.store.candidate(run, name));
                self.counted_lines(name, lines);
            }
            return Duration::MAX;
        }
        let began = Instant::now();
        for name in self.changing() {
            let lines = session.peek(session.store.candidate(run, &name));
            // If the attempt ended meanwhile, the count is out of date.
            if self.changing().contains(&name) {
                self.counted_lines(&name, lines);
            }
        }
        BETWEEN_LOOKS.max(began.elapsed() * REST)
    }

    /// The candidates whose own commands run now, and so may change their worktrees.
    fn changing(&self) -> Vec<Name> {
        if self.kind != WorkKind::Attempts {
            return Vec::new();
        }
        let state = self.state.lock();
        let changing = state.candidates.iter().filter(|(_, c)| c.since.is_some() && !c.is_over);
        changing.map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some((path, ..)) = self.shared.get() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Does `work` for some candidates of a run. Meanwhile their progress is shown on a terminal, one
/// row for each candidate, and by `status` in another process.
pub fn live<T>(
    session: &Session,
    run: &Run,
    names: &[Name],
    board: &Board,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let path = session.store.run_dir(&run.run).board();
    let _ = board.shared.set((path, run.run.clone(), names.to_vec()));
    board.share(&board.state.lock());
    if !session.ui.begin_live() {
        return work();
    }
    let draw = || {
        session.ui.show_live(&board.view(session, run, names), interrupt::requests());
        REDRAW
    };
    let look = || board.look(session, run, names);
    let result = parallel::beside(REDRAW, draw, || parallel::beside(Duration::ZERO, look, work));
    session.ui.end_live();
    result
}

/// The work of other processes for a run.
pub struct Elsewhere {
    /// A row for each running command, and a row for each candidate that waits or is done according
    /// to its board. Rows of hooks and of the base come first.
    pub rows: Vec<Row>,
    /// The number of finished candidates, in words; empty if no process works on candidates.
    pub summary: String,
    /// The judging that the verdict still waits for, e.g. `2 to judge, 1 to confirm`.
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
    for shared in board.rows {
        match rows.iter_mut().find(|row| row.address == shared.address) {
            Some(row) => (row.leads, row.size) = (shared.leads, shared.size),
            // The other process works on this candidate, but no command runs that a row could show.
            None if shared.standing == Standing::Running => {}
            None => rows.push(shared),
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
