//! Judges the merged tree of a landing, and then once more with the tests of the target put back.
use std::path::Path;

use crate::error::{Error, Result};
use crate::git::commit;
use crate::model::base_tests::BaseTestsResult;
use crate::model::missing_tests::{are_compared, contradict_tree};
use crate::model::oid::Oid;
use crate::model::oracle::{OracleCommand, as_options};
use crate::model::outcome::{Outcome, Results, Stage};
use crate::model::rationale::{WITH_OWN_TESTS_ONLY, stopped_in};
use crate::model::terms::Terms;
use crate::model::verdict::{Baseline, Verdict};
use crate::ops::judge::{judge_commit, overrule_results, plan_base_tests};
use crate::ops::land::plan::{LandOptions, Plan};
use crate::ops::land::target::ResolvedTarget;
use crate::ops::session::Session;
use crate::oracle;
use crate::store::logs::JudgingLogs;

/// Warns if the configuration, or the files of the target, name other commands than those that
/// judge the merged tree. Says nothing if options named the commands of the run.
fn warn_of_other_commands(session: &Session, target: &ResolvedTarget, terms: &Terms) {
    let Session { repo, config, ui, .. } = session;
    let checks = |commands: &[OracleCommand]| {
        as_options(commands.iter().filter(|command| command.stage != Stage::Setup))
    };
    // An error in a file of the target is ignored here. The judging of a run that starts from the
    // target reports it.
    if !terms.oracle.iter().any(|command| command.source.starts_with("--"))
        && let Ok(named) = oracle::resolve(repo, config, &[], target.state())
        && let now = checks(&named.commands)
        && now != checks(&terms.oracle)
    {
        ui.warn(format!(
            "{} is judged by other commands now ({}); the commands of the run judge the merged tree",
            target.name(),
            if now.is_empty() { "none" } else { now.trim_start() }
        ));
    }
}

impl Plan {
    /// Judges the merged tree, and then judges it again with the tests of the target put back. If
    /// merging has not changed the judged tree, does only the second judging, because the target
    /// may have other tests than the base. Fails if a command fails on the merged tree.
    ///
    /// Does nothing if the plan is unverified anyway. Also does nothing if merging has not changed
    /// the tree, and the target is the run's base or root.
    pub(super) fn judge_merged(
        &mut self,
        session: &Session,
        target: &ResolvedTarget,
        options: &LandOptions,
    ) -> Result<()> {
        let Session { store, ui, .. } = session;
        let is_merged = self.tree != self.judged.tree;
        let is_own_base = [self.run.root(), &self.run.base].contains(&target.state());
        let is_as_judged = !is_merged && (is_own_base || options.no_rejudge);
        if !self.verified || is_as_judged {
            return Ok(());
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
        let second = plan_base_tests(session, target.state(), &self.tree, &verdict.terms)?;
        if is_merged {
            ui.note(format!(
                "{name} has moved since the run started: re-running the checks on the merged tree"
            ));
            warn_of_other_commands(session, target, &verdict.terms);
            let logs = store.landing_logs(&self.run.run).judging(None);
            let who = format!("{} on {name}", self.address());
            let tree = self.tree;
            // `second` is planned for the target, which may already have the candidate's change to
            // its tests. So `second` decides whether the tree changes tests of the target.
            let flags = verdict.entry(&self.candidate).map(|entry| entry.flags.as_slice());
            let flags = flags.unwrap_or_default();
            let changes_tests = second.as_ref().is_some_and(|second| second.may_drop_tests(flags));
            let results =
                self.judge_on_target(session, target, &tree, (&who, &logs), changes_tests)?;
            if results.cannot_tell() || results.is_contradicted() {
                let why = results.stopped_at().map(stopped_in).unwrap_or_default();
                let reason = format!("merged with {name}, it {why}");
                return self.accept_unverified(session, reason, &logs.directory(), options);
            }
            if let Some(failed) = results.stopped_at() {
                return Err(Error::no(format!(
                    "{} passed on its base, but merged with {name} it failed {} ({}); nothing was changed",
                    self.address(),
                    failed.stage,
                    failed.outcome
                ))
                .hint(format!("the log is '{}'", logs.log(failed.stage).display()))
                .hint(format!("spawn again from {name}")));
            }
        }
        match second {
            Some(second) => self.judge_with_base_tests(session, target, options, second),
            None => Ok(()),
        }
    }

    /// Judges a tree that may land on the target, and overrules a pass that does not count.
    /// `changes_tests` is true if the candidate changes tests and the tree is judged once more,
    /// with the target's tests.
    ///
    /// The run's base may not have the same tests as the target. There are two signs:
    /// * The target has changed more than source since the base. It may have more tests.
    /// * Tests of the base are missing in the results. The target may have dropped them.
    ///
    /// In both cases the target is judged, too. If its results have a report, its tests count in
    /// place of the base's.
    fn judge_on_target(
        &mut self,
        session: &Session,
        target: &ResolvedTarget,
        tree: &Oid,
        named_logs: (&str, &JudgingLogs),
        changes_tests: bool,
    ) -> Result<Results> {
        let Session { repo, store, ui, .. } = session;
        let Plan { run, verdict: Some(verdict), world, of_target, .. } = self else {
            return Ok(Results::default());
        };
        let commit = commit::neutral_commit(repo, tree, &target.tip)?;
        let (mut results, its_world) = judge_commit(session, run, verdict, &commit, named_logs)?;
        *world = Some(its_world);
        let Verdict { baseline: Some(base), terms, .. } = &*verdict else { return Ok(results) };
        let settings = &terms.settings;
        let target_tree = repo.commit(target.state())?.tree;
        // Only a pass is compared.
        let has_other_tests = results.passed()
            && are_compared(settings)
            && (of_target.is_some()
                || plan_base_tests(session, run.root(), &target_tree, terms)?.is_some());
        if has_other_tests || contradict_tree(&mut results.clone(), base, settings, changes_tests) {
            if of_target.is_none() {
                let name = target.name();
                ui.note(format!("{}: its tests are compared with those of {name}", named_logs.0));
                let commit = commit::neutral_commit(repo, &target_tree, &target.tip)?;
                let logs = store.target_logs(&run.run).judging(None);
                let (results, _) = judge_commit(session, run, verdict, &commit, (&name, &logs))?;
                *of_target = Some(Baseline { results, inherited: false });
            }
            let of_target = of_target.as_ref().filter(|base| base.results.report().is_some());
            contradict_tree(&mut results, of_target.unwrap_or(base), settings, changes_tests);
        }
        let compared = of_target.as_ref().unwrap_or(base);
        overrule_results(repo, &target.tip, terms, &mut results, compared)?;
        Ok(results)
    }

    /// Judges the merged tree once more, with the tests and commands of the target put back. If the
    /// tree fails this judging, it is unverified.
    fn judge_with_base_tests(
        &mut self,
        session: &Session,
        target: &ResolvedTarget,
        options: &LandOptions,
        mut second: BaseTestsResult,
    ) -> Result<()> {
        let logs = session.store.landing_logs(&self.run.run).judging(None).with_base_tests();
        let name = target.name();
        let who = format!("{} on {name} with the tests of {name}", self.address());
        let trees: Vec<Oid> = second.trees().copied().collect();
        for tree in &trees {
            let mut results = self.judge_on_target(session, target, tree, (&who, &logs), false)?;
            second.results.0.append(&mut results.0);
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
                format!("is not compared with {name}: {}", second.problem.unwrap_or_default())
            }
        };
        let reason = format!("merged with {name}, it {why}");
        self.accept_unverified(session, reason, &logs.directory(), options)
    }

    /// Marks the merged tree as unverified, for this reason. Fails if the user does not allow an
    /// unverified tree to land.
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
