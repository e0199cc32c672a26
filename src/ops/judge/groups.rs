//! The groups of entries that have one tree, which is judged once for all of them.
use std::collections::BTreeMap;

use crate::model::verdict::{Effort, Entry};
use crate::ops::judge::entry_outcome::EntryOutcome;

/// The group of each entry without results, by the entry's spawn index.
///
/// A group's key is the position of its first entry, which is the one that is judged.
#[derive(Clone, Debug)]
pub struct Groups(BTreeMap<u32, usize>);

impl Groups {
    /// The groups of the entries that have no results yet. Judged in place, candidates share
    /// nothing: then each one is a group by itself.
    pub fn new(entries: &[Entry], in_place: bool) -> Groups {
        let same_group = |a: &Entry, b: &Entry| {
            let same_tree = a.judged().is_some() && a.judged() == b.judged();
            a.candidate == b.candidate || (same_tree && !in_place)
        };
        let mut groups = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, e)| e.not_run()) {
            let first = entries[..at].iter().position(|e| e.not_run() && same_group(e, entry));
            groups.insert(entry.index, first.unwrap_or(at));
        }
        Groups(groups)
    }

    /// The groups of these entries in the entries' order, each once.
    pub fn of<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) -> Vec<usize> {
        let mut groups = Vec::new();
        for group in entries.into_iter().filter_map(|e| self.0.get(&e.index)) {
            if !groups.contains(group) {
                groups.push(*group);
            }
        }
        groups
    }

    /// Gives an outcome to every entry of a group, and the number of commands that were run and saved
    /// for them.
    pub fn set_outcome(
        &self,
        entries: &mut [Entry],
        group: usize,
        outcome: &EntryOutcome,
    ) -> Effort {
        let mut effort = outcome.effort;
        let first = entries[group].candidate.clone();
        for (at, entry) in entries.iter_mut().enumerate() {
            if self.0.get(&entry.index) != Some(&group) {
                continue;
            }
            entry.results.clone_from(&outcome.results);
            if let Some(second) = &mut entry.base_tests {
                second.results.clone_from(&outcome.base_tests);
            }
            if at != group {
                entry.same_as = Some(first.clone());
                effort.saved_equal += outcome.commands_run();
            }
        }
        effort
    }
}
