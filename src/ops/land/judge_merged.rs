//! Judges the merged tree of a landing, and then once more with the tests of the target put back.
use std::path::Path;

use crate::error::{Error, Result};
use crate::git::commit;
use crate::model::oid::Oid;
use crate::model::outcome::Outcome;
use crate::model::rationale::{WITH_OWN_TESTS_ONLY, stopped_in};
use crate::ops::judge::{judge_commit, plan_base_tests};
use crate::ops::land::plan::{LandOptions, Plan};
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;

impl Plan {
    /// Judges the merged tree, and then judges it again with the tests of the target put back. If merging has
    /// not changed the judged tree, does only the second judging, because the target may have other tests
    /// than the base. Does nothing if the plan is unverified anyway, or if the tree lands unchanged on the
    /// run's own base. Fails if a command fails on the merged tree.
    pub(super) fn judge_merged(
        &mut self,
        session: &Session,
        target: &ResolvedTarget,
        options: &LandOptions,
    ) -> Result<()> {
        let Session { repo, store, ui, .. } = session;
        if !self.verified {
            return Ok(());
        }
        if self.tree == self.judged.tree {
            let is_as_judged = *target.state() == self.run.base || options.no_rejudge;
            return if is_as_judged {
                Ok(())
            } else {
                self.judge_with_base_tests(session, target, options)
            };
        }
        let name = target.name();
        if options.no_rejudge {
            self.distrust("the merged tree was not judged");
            ui.warn(format!(
                "{name} has moved since the run started, and the merged tree was not judged: it is \
                 unverified"
            ));
            return Ok(());
        }
        let Some(verdict) = &self.verdict else { return Ok(()) };
        ui.note(format!(
            "{name} has moved since the run started: re-running the checks on the merged tree"
        ));
        let commit = commit::neutral_commit(repo, &self.tree, &target.tip)?;
        let logs = store.landing_logs(&self.run.run).judging(None);
        let who = format!("{} on {name}", self.address());
        let (results, world) = judge_commit(session, &self.run, verdict, &commit, &who, &logs)?;
        self.world = Some(world);
        match results.stopped_at() {
            None => self.judge_with_base_tests(session, target, options),
            Some(doubtful)
                if matches!(
                    doubtful.outcome,
                    Outcome::CannotTell | Outcome::ReportedFailures { .. }
                ) =>
            {
                let reason = format!("merged with {name}, it {}", stopped_in(doubtful));
                self.accept_unverified(session, reason, &logs.directory(), options)
            }
            Some(failed) => Err(Error::no(format!(
                "{} passed on its base, but merged with {name} it failed {} ({}); nothing was changed",
                self.address(),
                failed.stage,
                failed.outcome
            ))
            .hint(format!("the log is '{}'", logs.log(failed.stage).display()))
            .hint(format!("spawn again from {name}"))),
        }
    }

    /// Judges the merged tree once more, with the tests and commands of the target put back. If the tree
    /// fails this judging, it is unverified.
    fn judge_with_base_tests(
        &mut self,
        session: &Session,
        target: &ResolvedTarget,
        options: &LandOptions,
    ) -> Result<()> {
        let Session { repo, store, .. } = session;
        let Some(verdict) = &self.verdict else { return Ok(()) };
        let second = plan_base_tests(session, target.state(), &self.tree, &verdict.terms)?;
        let Some(mut second) = second else { return Ok(()) };
        let logs = store.landing_logs(&self.run.run).judging(None).with_base_tests();
        let name = target.name();
        let trees: Vec<Oid> = second.trees().copied().collect();
        for tree in &trees {
            let commit = commit::neutral_commit(repo, tree, &target.tip)?;
            let who = format!("{} on {name} with the tests of {name}", self.address());
            let (mut results, _) = judge_commit(session, &self.run, verdict, &commit, &who, &logs)?;
            second.results.append(&mut results);
            if !second.passed() {
                break;
            }
        }
        if second.passed() {
            return Ok(());
        }
        let why = match second.results.stopped_at() {
            Some(skipped) if skipped.outcome == Outcome::CannotTell => {
                format!("{} with the tests of {name}", stopped_in(skipped))
            }
            Some(failed) => format!(
                "passes {WITH_OWN_TESTS_ONLY}: with those of {name} it failed {} ({})",
                failed.stage, failed.outcome
            ),
            None => {
                format!("passes {WITH_OWN_TESTS_ONLY}: {}", second.problem.unwrap_or_default())
            }
        };
        let reason = format!("merged with {name}, it {why}");
        self.accept_unverified(session, reason, &logs.directory(), options)
    }

    /// Marks the merged tree as unverified, for this reason. Fails if the user does not allow an unverified
    /// tree to land.
    fn accept_unverified(
        &mut self,
        session: &Session,
        reason: String,
        logs: &Path,
        options: &LandOptions,
    ) -> Result<()> {
        if options.allow_unverified {
            session.ui.warn(format!("{}: {reason}; it is unverified", self.address()));
            self.distrust(reason);
            return Ok(());
        }
        Err(Error::no(format!("{}: {reason}; nothing was changed", self.address()))
            .hint(format!("the logs are in '{}'", logs.display()))
            .hint("to land it all the same, add `--allow-unverified`"))
    }
}
