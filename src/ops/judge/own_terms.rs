//! The terms of this clone when it decides by stored outcomes. Outcomes that were found on other terms do not
//! count.
use crate::config::keys;
use crate::config::value::SandboxMode;
use crate::error::{Error, Result};
use crate::git::refs;
use crate::model::name::Name;
use crate::model::oracle::as_options;
use crate::model::part::{PartOutcome, SharedTerms};
use crate::model::run::Run;
use crate::model::terms::Terms;
use crate::model::verdict::Verdict;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::session::Session;
use crate::oracle::{self, ResolvedOracle};
use crate::process::environment::caller;

/// The terms of this clone.
pub struct OwnTerms {
    /// The terms. They have no digest of the seeds if no stored outcome has one.
    pub terms: Terms,
    /// The worlds that the configuration allows, until the first outcome decides on one; `None` after that.
    /// Outcomes from different worlds cannot be compared.
    unsettled: Option<SandboxMode>,
}

impl OwnTerms {
    /// The terms that the options name. What the options leave open is taken from the verdict if this clone
    /// recorded it, or else from the configuration and the base's files.
    pub fn of(
        session: &Session,
        run: &Run,
        options: &JudgeOptions,
        stored: Option<&Verdict>,
        parts: &[(&Name, PartOutcome)],
    ) -> Result<OwnTerms> {
        let own = stored.map(|verdict| &verdict.terms);
        let own = if was_recorded_here(session, run) { own } else { None };
        let resolved = match own {
            // The commands are taken from the verdict and not resolved again, so that an error in the
            // configuration or the base cannot prevent a decision.
            Some(own) if !options.flags.any() => {
                ResolvedOracle { commands: own.oracle.clone(), ..ResolvedOracle::default() }
            }
            _ => oracle::resolve(&session.repo, &session.config, &options.flags, run.root())?,
        };
        let mut terms = options.terms(session, &resolved);
        if let Some(own) = own {
            let configured = std::mem::replace(&mut terms.settings, own.settings.clone());
            options.change(&mut terms.settings.commands);
            if !options.protect.is_empty() {
                terms.settings.protect = configured.protect;
            }
        }
        let mut all = parts.iter().map(|(_, part)| &part.terms).chain(stored.map(|v| &v.terms));
        terms.seeds = own.and_then(|own| own.seeds.clone());
        if terms.seeds.is_none() && all.any(|terms| terms.seeds.is_some()) {
            terms.seeds = Some(session.seeds(&run.base)?.digest()?);
        }
        let unsettled = own.is_none().then(|| session.config.get(keys::SANDBOX_MODE));
        Ok(OwnTerms { terms, unsettled })
    }

    /// The terms that `shard open` wrote. Fails if the options say something else.
    pub fn opened(
        session: &Session,
        opened: &SharedTerms,
        options: &JudgeOptions,
    ) -> Result<OwnTerms> {
        let (run, terms) = (&opened.run, opened.terms());
        let mut named = terms.without_setup();
        if options.flags.any() {
            let Session { repo, config, store, .. } = session;
            let run = store.run(run)?;
            let base = run.as_ref().map_or(&opened.base, Run::root);
            named.oracle = oracle::resolve(repo, config, &options.flags, base)?.commands;
        }
        options.change(&mut named.settings.commands);
        let differs = terms.without_setup().first_difference(&named.without_setup());
        let mut more = options.protect.iter().filter(|path| !terms.settings.protect.contains(path));
        let differs =
            differs.or_else(|| Some(format!("'{}' is no protected path of it", more.next()?)));
        match differs {
            None => Ok(OwnTerms { terms, unsettled: None }),
            Some(difference) => Err(Error::fatal(format!(
                "run {run} was opened on other terms than these options name: {difference}"
            ))
            .hint("leave the options out: the terms are those of `git frites shard open`")
            .hint(format!("or open it again on other terms: `git frites shard open {run}`"))),
        }
    }

    /// Fails if `theirs`, the terms of a verdict or of one candidate's outcome, differ from the terms of this
    /// clone. The first call decides on the world: it takes the world of `theirs`, and fails if the
    /// configuration of this clone does not allow that world.
    pub fn require_same(
        &mut self,
        run: &Run,
        candidate: Option<&Name>,
        theirs: &Terms,
    ) -> Result<()> {
        let (what, options) = match candidate {
            Some(name) => (format!("{}/{name}", run.run), format!(" --candidate {name}")),
            None => (format!("run {}", run.run), String::new()),
        };
        let here = self.terms.judge_command(&run.run, &options);
        let refusal = |difference: &str| {
            Error::fatal(format!(
                "{what} was judged on other terms than those given here: {difference}"
            ))
            .hint(format!("judge it here: `{here}`"))
        };
        if let Some(mode) = self.unsettled {
            let world = theirs.settings.commands.world;
            if !mode.allows(world) {
                return Err(refusal(&format!(
                    "its commands ran {}, and here sandbox.mode is {mode}",
                    world.in_words()
                )));
            }
            self.unsettled = None;
            self.terms.settings.commands.world = world;
        }
        match theirs.first_difference(&self.terms) {
            None => Ok(()),
            Some(difference) => Err(refusal(&difference).hint(format!(
                "or decide on its terms: `git{} frites judge --replay {}{}`",
                theirs.settings.as_options(&self.terms.settings),
                run.run,
                as_options(theirs.without_setup().oracle.iter())
            ))),
        }
    }
}

/// True if the run's verdict was recorded in this clone, not fetched.
fn was_recorded_here(session: &Session, run: &Run) -> bool {
    let for_anyone = caller(&session.store.dir().runs()).is_some();
    session.repo.reflog_claims_us(&refs::record(&run.run), for_anyone).unwrap_or(false)
}
