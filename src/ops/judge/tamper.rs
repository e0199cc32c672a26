//! The tamper watch over oracle commands. It finds changes that happen outside of the checkouts
//! while the commands run, and decides which outcomes may be cached.

use parking_lot::Mutex;

use crate::error::Result;
use crate::integrity::WatchedCommands;
use crate::integrity::surroundings::WatchedSurroundings;
use crate::integrity::watch::{self, IntegrityWatch};
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::oracle::cache::JudgedTree;

/// Watches a run's oracle commands from the first to the last.
pub struct TamperWatch<'a> {
    session: &'a Session,
    run: &'a Run,
    commands: WatchedCommands,
    /// The surroundings of the checkouts.
    surroundings: WatchedSurroundings,
    /// True if another watch covers these commands; then this watch does nothing.
    pub is_covered: bool,
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    /// The watch; `None` before the first command.
    watch: Option<IntegrityWatch>,
    /// The number of trees on which the oracle ran. A base that was judged before all other trees
    /// is not counted.
    trees: usize,
    /// True if the base was judged before all other trees.
    base_came_first: bool,
    /// True if the base came first, and its commands made a change that affects outcomes. All
    /// candidates are then judged under the same, changed conditions, so they can be compared, but
    /// their outcomes must not be cached.
    base_made_changes: bool,
    /// True if an oracle command may have run after a change that affects outcomes.
    tainted: bool,
    /// The trees whose outcomes were cached.
    cached: Vec<JudgedTree>,
}

/// The changes that were found at the end of a watch.
pub struct WatchEnd {
    /// True if outcomes cannot be compared: some commands ran before a change that affects
    /// outcomes, some after it.
    pub tainted: bool,
    /// The trees whose cached outcomes may be wrong.
    pub doubtful: Vec<JudgedTree>,
}

impl<'a> TamperWatch<'a> {
    /// A watch over these commands and the surroundings of their checkouts. [`TamperWatch::begin`]
    /// begins it.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        commands: WatchedCommands,
        surroundings: WatchedSurroundings,
    ) -> TamperWatch<'a> {
        let state = Mutex::new(WatchState::default());
        TamperWatch { session, run, commands, surroundings, is_covered: false, state }
    }

    /// Counts `trees` more trees, on which the oracle ran before this watch began, under the same
    /// conditions.
    pub fn found_before(&self, trees: usize) {
        self.state.lock().trees += trees;
    }

    /// Begins the watch, unless it has begun.
    pub fn begin(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.watch.is_none() && !self.is_covered {
            let context = self.session.integrity();
            let surroundings = Some(self.surroundings.clone());
            state.watch = Some(watch::begin(context, self.run, self.commands, surroundings)?);
        }
        Ok(())
    }

    /// Looks for changes after the oracle has run on one tree. `candidate` is given if only the
    /// commands on its tree can have made the changes. If no change has affected outcomes so far,
    /// calls `cache`, which stores the outcome of this tree.
    ///
    /// `is_first_base` is true for a base that is judged before all candidates: a change by its
    /// commands then affects every candidate in the same way.
    pub fn check(
        &self,
        is_first_base: bool,
        candidate: Option<&Name>,
        cache: impl FnOnce() -> Result<Option<JudgedTree>>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        if is_first_base {
            state.base_came_first = true;
        } else {
            state.trees += 1;
        }
        let WatchState { watch, tainted, cached, base_made_changes, .. } = &mut *state;
        let Some(watch) = watch else {
            // The other watch will find out at its end whether the outcome may be wrong.
            return if self.is_covered { cache().map(drop) } else { Ok(()) };
        };
        *tainted |= !is_first_base && watch.report.affects_outcomes;
        watch.look_again(self.session.integrity(), candidate)?;
        if is_first_base {
            *base_made_changes = watch.report.affects_outcomes;
            // All later commands run with the changes so far.
            watch.report.affects_outcomes = false;
        }
        if !watch.report.affects_outcomes && !*base_made_changes {
            cached.extend(cache()?);
        }
        Ok(())
    }

    /// Ends the watch after the last command.
    pub fn end(self) -> Result<WatchEnd> {
        let state = self.state.into_inner();
        let mut end = WatchEnd { tainted: state.tainted, doubtful: Vec::new() };
        let Some(watch) = state.watch else { return Ok(end) };
        let found_before = watch.report.affects_outcomes;
        let report = watch.end(self.session.integrity(), self.run)?;
        // Only the last look has found the change. If there were several trees, some may have been
        // judged before the change and some after it.
        if report.affects_outcomes && !found_before {
            end.tainted |= state.trees > 1;
            if state.trees + usize::from(state.base_came_first) > 1 {
                end.doubtful = state.cached;
            }
        }
        Ok(end)
    }
}
