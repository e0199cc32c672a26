//! The outcomes that one judging knows already: a tree may be one candidate's, and another's with the
//! base's tests. It is judged once.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::model::oid::Oid;
use crate::model::outcome::Results;

/// The outcome of one tree.
#[derive(Clone)]
pub struct TreeOutcome {
    /// The results of the commands.
    pub results: Results,
    /// The directory of their logs.
    pub logs: PathBuf,
}

/// A place for the outcome of one tree, which is locked while the tree is judged.
type Slot = Arc<Mutex<Option<TreeOutcome>>>;

/// Outcomes by tree.
#[derive(Default)]
pub struct JudgedOnce {
    slots: Mutex<BTreeMap<Oid, Slot>>,
}

impl JudgedOnce {
    /// True if the outcome of a tree is known, or another thread judges it now.
    pub fn knows(&self, tree: &Oid) -> bool {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).contains_key(tree)
    }

    /// The outcome of a tree, if it is known. Waits for a thread that judges it now.
    pub fn get(&self, tree: &Oid) -> Option<TreeOutcome> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(tree)?.clone();
        drop(slots);
        slot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The outcome of a tree, and true if it was known; what `judge` gives otherwise. While one
    /// thread judges a tree, others that need the same one wait.
    pub fn get_or_judge(
        &self,
        tree: &Oid,
        judge: impl FnOnce() -> Result<Option<TreeOutcome>>,
    ) -> Result<Option<(TreeOutcome, bool)>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(*tree).or_default().clone();
        drop(slots);
        let mut known = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = &*known {
            return Ok(Some((outcome.clone(), true)));
        }
        known.clone_from(&judge()?);
        Ok(known.clone().map(|outcome| (outcome, false)))
    }
}
