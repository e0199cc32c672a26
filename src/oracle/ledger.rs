//! The ledger of outcomes: the results of the oracle's commands on trees. A tree is judged only
//! once on the same terms, because its outcome is looked up before commands run.
//!
//! All outcomes are kept in the memory of this process. Passes are also stored in the cache
//! directory, for later processes. Only this file asks the cache for outcomes. Another kind of
//! storage would be one more field of [`Ledger`], which `open_ledger` in `ops/judge/runner/` makes.
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::model::oid::Oid;
use crate::model::outcome::{Outcome, Results, Stage};
use crate::model::run_costs::RunCosts;
use crate::model::verdict::Effort;
use crate::oracle::cache::{Cache, JudgedTree};
use crate::oracle::sealed::{BaseInUse, Warmth};
use crate::process::processor_share::ProcessorShare;
use crate::store::logs::JudgingLogs;

/// The outcome of the oracle's commands on one tree.
#[derive(Clone, Debug)]
pub struct TreeOutcome {
    pub results: Results,
    /// The place of the commands' logs.
    pub logs: JudgingLogs,
    /// True if the commands ran in an earlier judging of this process.
    pub is_remembered: bool,
    /// True for a base that was judged with build outputs of an earlier judging, and was not judged
    /// again without them.
    pub inherited: bool,
    /// If these results replaced a claim ([`Results::is_claim`]) and differ from it: the difference
    /// and its cause, in words. Otherwise `None`.
    pub stale: Option<String>,
}

impl TreeOutcome {
    /// The outcome of commands that have just run.
    pub fn new(results: Results, logs: JudgingLogs) -> TreeOutcome {
        TreeOutcome { results, logs, is_remembered: false, inherited: false, stale: None }
    }
}

/// The outcomes that one process remembers while it judges one run, perhaps several times.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// The outcomes, each by the id of its terms and by its tree.
    outcomes: BTreeMap<(String, Oid), TreeOutcome>,
    /// How many commands ran for these outcomes, and how many did not have to run.
    effort: Effort,
    /// How long the commands took with and without build outputs, by the share of the processor and
    /// the last command that ran.
    costs: BTreeMap<(ProcessorShare, Stage), RunCosts>,
    /// The layers with the outputs of the base's commands, and the id of the terms on which the
    /// commands ran.
    base_layer: Option<(String, Arc<BaseInUse>)>,
}

impl Memory {
    /// Forgets everything. This is called after a change that affects outcomes.
    pub fn forget_all(&self) {
        *self.0.lock() = Remembered::default();
    }

    /// How long judging took with this share of the processor. Only the judgings that ended at the
    /// latest stage are used.
    pub fn costs(&self, share: ProcessorShare) -> RunCosts {
        let memory = self.0.lock();
        let furthest = memory.costs.iter().rfind(|((of, _), _)| *of == share);
        furthest.map(|(_, costs)| *costs).unwrap_or_default()
    }

    /// Begins another judging. The outcomes so far then belong to an earlier judging.
    pub fn begin_judging(&self) {
        for outcome in self.0.lock().outcomes.values_mut() {
            outcome.is_remembered = true;
        }
    }
}

/// The ledger for the terms of one judging.
pub struct Ledger<'m> {
    pub id: String,
    /// The outcomes that this process remembers.
    pub memory: &'m Memory,
    /// The passes on disk, where later processes find them, too.
    pub cache: Cache<'m>,
    /// True if the cache is used only to remove passes from it.
    pub only_forgets: bool,
}

impl<'m> Ledger<'m> {
    /// The remembered outcome of a tree. With [`Warmth::Cold`], `None` if the outcome is a claim.
    pub fn recall(&self, tree: &Oid, warmth: Warmth) -> Option<TreeOutcome> {
        let memory = self.memory.0.lock();
        let found = memory.outcomes.get(&(self.id.clone(), *tree))?;
        let serves = warmth == Warmth::Warm || !found.results.is_claim();
        serves.then(|| found.clone())
    }

    /// The outcome that another process has stored for a tree. Copies the outcome's logs to `logs`.
    /// `judged` returns the tree with its commit; it is called only if there may be an outcome.
    pub fn find_kept(
        &self,
        judged: impl FnOnce() -> Result<JudgedTree>,
        logs: &JudgingLogs,
        warmth: Warmth,
    ) -> Result<Option<TreeOutcome>> {
        if self.only_forgets {
            return Ok(None);
        }
        let judged = judged()?;
        let found = self.cache.find(&judged, logs, warmth == Warmth::Warm)?;
        let found = found.map(|results| TreeOutcome::new(results, logs.clone()));
        if let Some(found) = &found {
            self.remember(&judged.tree, found.clone());
        }
        Ok(found)
    }

    /// True if a pass of a tree is stored for later processes, even if it is a claim.
    pub fn has_kept(&self, judged: &JudgedTree) -> Result<bool> {
        Ok(!self.only_forgets && self.cache.has(judged)?)
    }

    /// Remembers an outcome, which replaces an earlier outcome of the tree.
    pub fn remember(&self, tree: &Oid, outcome: TreeOutcome) {
        self.memory.0.lock().outcomes.insert((self.id.clone(), *tree), outcome);
    }

    /// Notes how the confirmed outcome of a tree differs from the claim before it.
    pub fn note_stale(&self, tree: &Oid, stale: &str) {
        if let Some(known) = self.memory.0.lock().outcomes.get_mut(&(self.id.clone(), *tree)) {
            known.stale = Some(stale.to_owned());
        }
    }

    /// Stores a pass for later processes, unless the cache is used only to remove passes. If the
    /// outcome is a failure, removes an earlier pass.
    pub fn keep(&self, judged: &JudgedTree, outcome: &TreeOutcome) -> Result<()> {
        if self.only_forgets && outcome.results.is_lasting_pass() {
            return Ok(());
        }
        self.cache.keep(judged, &outcome.results, &outcome.logs.directory())
    }

    /// Forgets everything in memory, and removes the outcomes of the same trees from the cache.
    /// `judged` returns a tree with its commit.
    pub fn forget_all(&self, judged: impl Fn(Oid) -> Result<JudgedTree>) -> Result<()> {
        let known: Vec<Oid> = self.memory.0.lock().outcomes.keys().map(|(_, tree)| *tree).collect();
        for tree in known {
            self.cache.forget(&judged(tree)?)?;
        }
        self.memory.forget_all();
        Ok(())
    }

    /// How many commands ran for the remembered outcomes, and how many did not have to run.
    pub fn effort(&self) -> Effort {
        self.memory.0.lock().effort
    }

    /// Counts commands that ran, or did not have to run.
    pub fn count(&self, more: Effort) {
        self.memory.0.lock().effort.add(more);
    }

    /// Notes how long commands took with this share of the processor. Only judgings that ended at
    /// the same command are compared. If the base did not reach a command, there are no outputs
    /// that could save time for it.
    pub fn note_cost(&self, share: ProcessorShare, is_warm: bool, results: &Results) {
        if let Some(last) = results.iter().rfind(|result| result.outcome != Outcome::Skipped) {
            self.note_seconds((share, last.stage), is_warm, results.time().as_secs_f64());
        }
    }

    /// Notes the time of a judging, in seconds, by the share of the processor and the command at
    /// which the judging ended.
    pub fn note_seconds(&self, of: (ProcessorShare, Stage), is_warm: bool, seconds: f64) {
        self.memory.0.lock().costs.entry(of).or_default().note(is_warm, seconds);
    }

    /// The base's layers that an earlier judging in this process has left.
    pub fn base_layer(&self) -> Option<Arc<BaseInUse>> {
        let memory = self.memory.0.lock();
        let (id, layer) = memory.base_layer.as_ref()?;
        (*id == self.id).then(|| layer.clone())
    }

    /// Keeps the base's layers for a later judging in this process. With `None`, drops them.
    pub fn keep_base_layer(&self, layer: Option<Arc<BaseInUse>>) {
        self.memory.0.lock().base_layer = layer.map(|layer| (self.id.clone(), layer));
    }
}
