//! The tamper watch over oracle commands: what they change outside their checkouts, and which
//! outcomes may be cached.

use parking_lot::Mutex;

use crate::error::Result;
use crate::integrity::surroundings::WatchedSurroundings;
use crate::integrity::watch::{self, IntegrityWatch};
use crate::integrity::watched_commands::WatchedCommands;
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::session::Session;
use crate::oracle::cache::JudgedTree;

/// Watches a run's oracle commands from the first one on.
pub struct TamperWatch<'a> {
    session: &'a Session,
    run: &'a Run,
    commands: WatchedCommands,
    /// The surroundings of the checkouts.
    surroundings: WatchedSurroundings,
    /// True if another watch covers these commands: then this one does nothing.
    is_covered: bool,
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    /// `None` before the first command.
    watch: Option<IntegrityWatch>,
    /// The number of trees that the oracle ran on, without a base that came before all others.
    trees: usize,
    /// True if the base came before all others.
    base_came_first: bool,
    /// True if the commands of such a base made a change that affects outcomes: all candidates are
    /// judged under the same conditions, but these are not the ones that a cached outcome needs.
    base_made_changes: bool,
    /// Set once any oracle command may have run after a change that affects outcomes.
    tainted: bool,
    /// The outcomes that were cached.
    cached: Vec<JudgedTree>,
}

/// The end of a watch.
pub struct WatchEnd {
    /// True if outcomes cannot be compared: some commands ran before a change that affects
    /// outcomes, some after it.
    pub tainted: bool,
    /// The cached outcomes that may be wrong.
    pub doubtful: Vec<JudgedTree>,
}

impl<'a> TamperWatch<'a> {
    /// A watch that has not begun, over these commands and the surroundings of their checkouts.
    pub fn new(
        session: &'a Session,
        run: &'a Run,
        commands: WatchedCommands,
        surroundings: WatchedSurroundings,
    ) -> TamperWatch<'a> {
        let state = Mutex::new(WatchState::default());
        TamperWatch { session, run, commands, surroundings, is_covered: false, state }
    }

    /// Leaves the commands to another watch, which began before them and ends after them.
    pub fn leave_to_another(&mut self) {
        self.is_covered = true;
    }

    /// Counts trees that the oracle ran on before, under the same conditions.
    pub fn found_before(&self, trees: usize) {
        self.state.lock().trees += trees;
    }

    /// Begins, unless the watch has begun.
    pub fn begin(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.watch.is_none() && !self.is_covered {
            let context = self.session.integrity();
            let surroundings = Some(self.surroundings.clone());
            state.watch = Some(watch::begin(context, self.run, self.commands, surroundings)?);
        }
        Ok(())
    }

    /// Looks for changes after the oracle has run on one tree. `candidate` is the only one whose
    /// commands can have made them. If nothing has affected outcomes so far, `cache` stores this
    /// one.
    ///
    /// If the tree is that of the base, before it runs on any candidate, a change by its commands holds for
    /// every candidate.
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
            // The other watch tells at its end whether the outcome may be wrong.
            return if self.is_covered { cache().map(drop) } else { Ok(()) };
        };
        *tainted |= !is_first_base && watch.affects_outcomes();
        watch.look_again(self.session.integrity(), candidate)?;
        if is_first_base {
            *base_made_changes = watch.affects_outcomes();
            watch.accept_conditions();
        }
        if !watch.affects_outcomes() && !*base_made_changes {
            cached.extend(cache()?);
        }
        Ok(())
    }

    /// Ends the watch after the last command.
    pub fn end(self) -> Result<WatchEnd> {
        let state = self.state.into_inner();
        let mut end = WatchEnd { tainted: state.tainted, doubtful: Vec::new() };
        let Some(watch) = state.watch else { return Ok(end) };
        let found_before = watch.affects_outcomes();
        let report = watch.end(self.session.integrity(), self.run)?;
        // Nobody knows before which of several trees the change was made.
        if report.affects_outcomes && !found_before {
            end.tainted |= state.trees > 1;
            if state.trees + usize::from(state.base_came_first) > 1 {
                end.doubtful = state.cached;
            }
        }
        Ok(end)
    }
}
