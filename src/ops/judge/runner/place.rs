//! The place in which the commands on one tree run: the candidate's worktree, a clean checkout, or
//! a checkout in a sealed world. [`OracleRunner::lay`] checks a tree out in such a place, and
//! [`OracleRunner::run_on`] runs the commands there.
use std::path::{Path, PathBuf};

use crate::config::keys;
use crate::config::value::WarmMode;
use crate::error::{Cause, Error, Result};
use crate::fs::parallel;
use crate::git::layers::base::BaseEnd;
use crate::model::missing_tests;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::oracle::shell_word;
use crate::model::outcome::{Obstacle, Outcome, Results, Stage, StageResult};
use crate::model::path::TreePath;
use crate::model::world::WorldKind;
use crate::ops::judge::runner::{OracleRunner, ReportTo};
use crate::ops::log_excerpt;
use crate::oracle::pool::PlainCheckout;
use crate::oracle::run::{self as oracle_run, Downloads, ExecContext, JudgedPlace};
use crate::oracle::sealed::{SealedCheckout, Warmth};
use crate::process::interrupt::Cancel;
use crate::process::processor_share::ProcessorShare;
use crate::process::world_spec::Confinement;
use crate::ui::comparison;

/// A tree that is checked out for its commands.
pub(super) enum LaidTree {
    /// The tree is in the worktree of its candidate.
    Worktree(PathBuf),
    /// The tree is in a clean checkout.
    Plain(PlainCheckout),
    /// The tree is in the checkout of a sealed world. The second value is a commit with this tree.
    Sealed(Box<SealedCheckout>, Oid),
    /// git cannot check the tree out, for this reason. The fault is in the tree itself.
    Refused(String),
}

impl LaidTree {
    /// True if the commands on this tree see build outputs of the base.
    pub(super) fn has_outputs(&self) -> bool {
        matches!(self, LaidTree::Sealed(checkout, _) if checkout.has_outputs)
    }

    /// The reason why the checkout is not complete; `None` if it is.
    fn problem(&self) -> Option<&str> {
        match self {
            LaidTree::Worktree(dir) => (!dir.is_dir()).then_some("its worktree is gone"),
            LaidTree::Plain(checkout) => checkout.problem.as_deref(),
            LaidTree::Sealed(checkout, _) => checkout.problem.as_deref(),
            LaidTree::Refused(_) => None,
        }
    }
}

/// A place for commands that need no downloads in advance.
fn place<'p>(
    dir: &'p Path,
    confinement: &'p dyn Fn(Stage) -> Option<Confinement>,
    changed: &'p dyn Fn() -> Result<Vec<TreePath>>,
) -> JudgedPlace<'p> {
    JudgedPlace { dir, written: dir, confinement, downloads: Downloads::default(), changed }
}

/// Marks which results of commands in a sealed world are claims.
fn note_claims(checkout: &SealedCheckout, results: &mut Results) {
    for result in results.0.iter_mut().filter(|r| r.outcome != Outcome::Skipped) {
        // An overlay can cause a failure that does not happen in a plain directory, but it cannot
        // cause a pass.
        let may_be_refused = checkout.is_overlay && !result.outcome.passed();
        result.warm = checkout.has_outputs || may_be_refused;
    }
}

impl OracleRunner<'_> {
    /// The worktree of a candidate that is judged in place.
    pub(super) fn lay_in_place(&self, candidate: &Name) -> Result<LaidTree> {
        self.tamper.begin()?;
        Ok(LaidTree::Worktree(self.session.store.candidate(self.run, candidate).worktree()))
    }

    /// Checks out the tree of a commit for its commands.
    pub(super) fn lay(&self, commit: &Oid, warmth: Warmth) -> Result<LaidTree> {
        match self.lay_by_git(commit, warmth) {
            // The tree is at fault: e.g. a name is too long for this file system, or a filter fails
            // on a file.
            Err(error) if error.cause == Cause::GitExit && commit != self.run.root() => {
                Ok(LaidTree::Refused(error.message))
            }
            laid => laid,
        }
    }

    fn lay_by_git(&self, commit: &Oid, warmth: Warmth) -> Result<LaidTree> {
        if let Some(sealed) = &self.layered {
            self.tamper.begin()?;
            return Ok(LaidTree::Sealed(Box::new(sealed.acquire(commit, warmth)?), *commit));
        }
        // Beginning the watch takes about as long as a checkout, so do both at the same time.
        let (watch, checkout) = std::thread::scope(|scope| {
            let watch = parallel::start(scope, || self.tamper.begin());
            let checkout = self.checkouts.acquire(commit);
            (watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), checkout)
        });
        let checkout = checkout?;
        watch?;
        Ok(LaidTree::Plain(checkout))
    }

    /// Runs the oracle on a tree. If the tree is the base in a sealed world, keeps the build
    /// outputs for the candidates. Returns `None` if it was cancelled.
    pub(super) fn run_on(
        &self,
        laid: &LaidTree,
        report: &ReportTo<'_>,
        share: ProcessorShare,
        cancel: &Cancel,
    ) -> Result<Option<Results>> {
        let not_started = |reason: &str| {
            self.session.ui.warn(format!("{}: {reason}", report.name));
            Ok(Some(oracle_run::not_started(&self.terms.oracle, reason)))
        };
        if let Some(reason) = laid.problem() {
            return not_started(reason);
        }
        match laid {
            LaidTree::Refused(reason) => not_started(reason),
            LaidTree::Worktree(dir) => {
                let place = place(dir, &|_| None, &|| Ok(Vec::new()));
                self.execute(&place, report, share, cancel)
            }
            LaidTree::Plain(checkout) => {
                let dir = checkout.path();
                // Commands that Landlock confines get temporary directories of their own.
                let own = self.restrictions.as_ref().map(|all| all.directories(dir)).transpose()?;
                let confinement = |_| {
                    let (restrictions, own) = self.restrictions.as_ref().zip(own.as_ref())?;
                    Some(Confinement::Landlock(restrictions.of(dir, own)))
                };
                let changed = || checkout.changed();
                self.execute(&place(dir, &confinement, &changed), report, share, cancel)
            }
            LaidTree::Sealed(checkout, commit) => {
                let written = checkout.writes_dir();
                let confinement = |stage| Some(Confinement::Sealed(checkout.world(stage)));
                let changed = || checkout.changed(&self.session.repo);
                let downloads = Downloads {
                    commands: checkout.downloads.clone(),
                    are_needed: commit != self.run.root(),
                    ..Downloads::default()
                };
                let place = place(checkout.dir(), &confinement, &changed);
                let place = JudgedPlace { written: &written, downloads, ..place };
                let mut end = self.execute(&place, report, share, cancel)?;
                if let Some(results) = &mut end {
                    if self.warm == WarmMode::Auto {
                        self.ledger.note_cost(share, checkout.has_outputs, results);
                    }
                    note_claims(checkout, results);
                    if commit == self.run.root() {
                        self.keep_outputs(checkout, results, !place.downloads.have_failed.get());
                    }
                }
                Ok(end)
            }
        }
    }

    /// Keeps the build outputs of the base's commands. `downloaded` is true if no download failed.
    fn keep_outputs(&self, checkout: &SealedCheckout, results: &Results, downloaded: bool) {
        let passed = results.passed();
        let ran_all = results.iter().all(|result| result.outcome != Outcome::Skipped);
        let is_cold = !checkout.has_outputs && ran_all;
        let cold = is_cold.then(|| (results.time().as_secs_f64(), results.reported_tests()));
        // A failure is not an error: without these outputs, judging the candidates only takes
        // longer.
        if let Some(sealed) = &self.layered
            && let Err(error) = sealed.keep_outputs(checkout, BaseEnd { passed, downloaded, cold })
        {
            tracing::debug!(error = error.message, "the base's outputs are not kept");
        }
    }

    /// If a command could not write to a directory or to a full disk, or could not see a hidden
    /// file, prints a hint how to change that. Prints only one hint per path.
    fn hint_at_obstacle(&self, result: &StageResult) {
        let cache = self.checkouts.dir.display().to_string();
        let (path, hint) = match &result.obstacle {
            Some(Obstacle::FullDisk) => {
                let room = "make room, for example with `git frites clean --cache`";
                (&cache, format!("the disk of '{cache}' is full: {room}"))
            }
            Some(Obstacle::Write { directory }) => {
                let who = match self.world() {
                    WorldKind::Landlock => "Landlock",
                    WorldKind::Sealed | WorldKind::Open => "the sealed world",
                };
                let name = keys::SANDBOX_WRITE.name;
                let word = shell_word(directory);
                let hint = format!(
                    "{who} refused a write to {directory}: `git config --add frites.{name} {word}`"
                );
                (directory, hint)
            }
            Some(Obstacle::Hidden { file }) => {
                let hint = format!(
                    "the sealed world hides {file}: keep it where commands see it, such as in your home \
                     directory or in the repository (`git frites man sandbox`)"
                );
                (file, hint)
            }
            _ => return,
        };
        if self.printed.lock().insert(path.clone()) {
            self.session.ui.hint(hint);
        }
    }

    /// After a failed setup command, tells the user once which credentials the command could not
    /// see.
    fn tell_hidden_credentials(&self, result: &StageResult) {
        let Some(sealed) = &self.layered else { return };
        if result.stage != Stage::Setup {
            return;
        }
        let hidden = sealed.hidden_credentials();
        let mut printed = self.printed.lock();
        if let Some(first) = hidden.first()
            && printed.insert("credentials".to_owned())
        {
            let name = keys::SANDBOX_HIDE.name;
            self.session.ui.hint(format!(
                "commands do not see the credentials in {}: to show a file whole, `git config \
                 --add frites.{name} {}`",
                hidden.join(", "),
                shell_word(&format!("!{first}"))
            ));
        }
    }

    /// Runs the oracle on one commit. This cannot be cancelled.
    pub(super) fn finish_on_commit(&self, commit: &Oid, report: &ReportTo<'_>) -> Result<Results> {
        let laid = self.lay(commit, Warmth::Cold)?;
        let end = self.run_on(&laid, report, ProcessorShare::Whole, &Cancel::default())?;
        end.ok_or_else(|| Error::internal(format!("{}: judging ended too early", report.name)))
    }

    /// True if no further command runs after this one.
    fn is_end(&self, result: &StageResult) -> bool {
        let last = self.terms.oracle.last();
        !result.outcome.passed() || last.is_some_and(|last| last.stage == result.stage)
    }

    /// If a passing result lacks tests of the base, returns a copy of the result with an outcome
    /// that says so. Returns `None` if it lacks none, or if the base's report is not known yet.
    fn short_of_base(&self, result: &StageResult) -> Option<StageResult> {
        let base = self.known_base().ok()??;
        let outcome = missing_tests::contradicted(&base, result, &self.terms.settings)?;
        Some(StageResult { outcome, ..result.clone() })
    }

    fn execute(
        &self,
        place: &JudgedPlace<'_>,
        report: &ReportTo<'_>,
        share: ProcessorShare,
        cancel: &Cancel,
    ) -> Result<Option<Results>> {
        report.logs.begin()?;
        let logs = &report.logs.directory();
        let policy = &self.session.policy;
        let on_end = &|result: &StageResult| {
            (report.on_end)(result);
            let short = self.short_of_base(result);
            let line = comparison::stage_line(&report.name, short.as_ref().unwrap_or(result));
            match result.outcome.passed() || report.failure_is_a_finding {
                true if report.failure_is_a_finding && !self.is_end(result) => {}
                true => self.session.ui.note(line),
                false if share == ProcessorShare::Third => {
                    self.session
                        .ui
                        .note(format!("{line}; attempts ran beside it, so it runs again"));
                }
                false => {
                    log_excerpt::note(self.session, &line, &report.logs.log(result.stage));
                    self.hint_at_obstacle(result);
                    self.tell_hidden_credentials(result);
                }
            }
        };
        let settings = &self.terms.settings.commands;
        let timeout = self.options.timeout;
        let context = ExecContext { place, settings, timeout, logs, policy, cancel, share, on_end };
        oracle_run::run(&self.terms.oracle, &context).map_err(|e| match e.cause {
            Cause::EndUnknown => e.context(&report.name),
            _ => e,
        })
    }
}
