//! The terms of the side that decides: outcomes that were found on other terms do not count.
use crate::config::keys;
use crate::config::value::SandboxMode;
use crate::error::{Error, Result};
use crate::git::refs;
use crate::model::oracle::{OracleCommand, as_options};
use crate::model::outcome::Stage;
use crate::model::part::Part;
use crate::model::partial::{Judging, PartOutcome, PartialVerdict};
use crate::model::rank::Rank;
use crate::model::run::Run;
use crate::model::terms::SharedTerms;
use crate::model::verdict::{JudgeSettings, Verdict};
use crate::model::world::WorldKind;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::session::Session;
use crate::oracle::{self, ResolvedOracle};
use crate::process::environment::caller;

/// The commands, settings and seeds of this clone.
pub struct OwnTerms {
    /// The commands.
    pub oracle: Vec<OracleCommand>,
    /// The settings.
    pub settings: JudgeSettings,
    /// The worlds that the configuration allows.
    mode: SandboxMode,
    /// The world of all outcomes that count; none before the first of them.
    world: Option<WorldKind>,
    /// A digest of the seeds; none if nothing was stored that could be compared with it.
    pub seeds: Option<String>,
}

/// The terms on which stored outcomes were found.
struct StoredTerms<'a> {
    oracle: &'a [OracleCommand],
    settings: &'a JudgeSettings,
    seeds: Option<&'a str>,
}

impl OwnTerms {
    /// The terms that options name; else those of the verdict, if it was recorded here; else those
    /// that the configuration and the base's files name.
    pub fn of(
        session: &Session,
        run: &Run,
        options: &JudgeOptions,
        stored: Option<&Verdict>,
        parts: &[PartialVerdict],
    ) -> Result<OwnTerms> {
        let own = stored.filter(|_| was_recorded_here(session, run));
        let resolved = match own {
            // Nothing is resolved, so that nothing in the configuration or the base can fail.
            Some(verdict) if !options.flags.any() => {
                ResolvedOracle { commands: verdict.oracle.clone(), ..ResolvedOracle::default() }
            }
            _ => oracle::resolve(&session.repo, &session.config, &options.flags, &run.base)?,
        };
        let configured = options.settings(session, &resolved);
        let oracle = resolved.commands;
        let settings = match own {
            Some(verdict) => JudgeSettings {
                retries: options.retries.unwrap_or(verdict.settings.retries),
                protect: if options.protect.is_empty() {
                    verdict.settings.protect.clone()
                } else {
                    configured.protect
                },
                ..verdict.settings.clone()
            },
            None => configured,
        };
        let any_seeds =
            parts.iter().map(|part| &part.judging.seeds).chain(stored.map(|v| &v.seeds));
        let seeds = match own.and_then(|verdict| verdict.seeds.clone()) {
            Some(digest) => Some(digest),
            None if any_seeds.flatten().next().is_none() => None,
            None => Some(session.seeds(&run.base)?.digest()?),
        };
        let world = own.map(|verdict| verdict.settings.world);
        Ok(OwnTerms {
            oracle,
            settings,
            mode: session.config.get(keys::SANDBOX_MODE),
            world,
            seeds,
        })
    }

    /// Lets only outcomes from this world count from now on, if others could before: outcomes of
    /// different worlds cannot be compared.
    pub fn settle_on(&mut self, world: WorldKind) {
        self.world.get_or_insert(world);
    }

    /// Refuses outcomes that were found in another world than the others, or in one that the
    /// configuration of this side rules out.
    fn require_world(&self, what: &str, settings: &JudgeSettings) -> Result<()> {
        let theirs = settings.world;
        let difference = match self.world {
            Some(ours) if ours != theirs => {
                format!("and those of other outcomes {}", ours.in_words())
            }
            None if !self.mode.allows(theirs) => format!("and here sandbox.mode is {}", self.mode),
            _ => return Ok(()),
        };
        Err(refusal(what, &format!("its commands ran {}, {difference}", theirs.in_words())))
    }

    /// The terms that `judge --open` wrote. Fails if options name others.
    pub fn opened(
        session: &Session,
        terms: &SharedTerms,
        options: &JudgeOptions,
    ) -> Result<OwnTerms> {
        let SharedTerms { run, base, settings, .. } = terms;
        let own = OwnTerms::of_all(terms);
        let mut named = OwnTerms::of_all(terms);
        if options.flags.any() {
            let resolved = oracle::resolve(&session.repo, &session.config, &options.flags, base)?;
            named.oracle = resolved.commands;
        }
        named.settings.retries = options.retries.unwrap_or(settings.retries);
        let setup = |c: &&OracleCommand| c.stage != Stage::Setup;
        let stored: Vec<OracleCommand> = own.oracle.iter().filter(setup).cloned().collect();
        named.oracle = named.oracle.iter().filter(setup).cloned().collect();
        let differs = named.difference(&StoredTerms { oracle: &stored, settings, seeds: None });
        let more = options.protect.iter().find(|path| !settings.protect.contains(path));
        let differs =
            differs.or_else(|| more.map(|path| format!("'{path}' is no protected path of it")));
        match differs {
            None => Ok(own),
            Some(difference) => Err(Error::fatal(format!(
                "run {run} was opened on other terms than these options name: {difference}"
            ))
            .hint("leave the options out: the terms are those of `judge --open`")
            .hint(format!("or open it again on other terms: `git frites judge --open {run}`"))),
        }
    }

    /// The terms that `judge --open` wrote for all machines.
    fn of_all(terms: &SharedTerms) -> OwnTerms {
        let SharedTerms { oracle, settings, seeds, .. } = terms;
        OwnTerms {
            oracle: oracle.clone(),
            settings: settings.clone(),
            mode: SandboxMode::Auto,
            world: Some(settings.world),
            seeds: Some(seeds.digest.clone()),
        }
    }

    /// Refuses a verdict that was reached on other terms.
    pub fn require_same_in_verdict(&self, run: &Run, verdict: &Verdict) -> Result<()> {
        let Verdict { oracle, settings, seeds, .. } = verdict;
        let stored = StoredTerms { oracle, settings, seeds: seeds.as_deref() };
        let what = format!("run {}", run.run);
        let here = format!("judge it here: `git frites judge {}`", run.run);
        self.require_world(&what, settings).map_err(|e| e.hint(here.clone()))?;
        let Some(difference) = self.difference(&stored) else { return Ok(()) };
        Err(refusal(&what, &difference).hint(here).hint(by_their_commands(run, oracle)))
    }

    /// Refuses a partial verdict that was reached on other terms.
    pub fn require_same_in_part(&self, run: &Run, part: &PartialVerdict) -> Result<()> {
        let judging = &part.judging;
        let name = &part.candidate.candidate;
        let what = format!("{}/{name}", run.run);
        let here = format!("judge it here: `git frites judge {} --candidate {name}`", run.run);
        self.require_world(&what, &judging.settings).map_err(|e| e.hint(here.clone()))?;
        let Some(difference) = self.difference_of(judging) else { return Ok(()) };
        Err(refusal(&what, &difference).hint(here).hint(by_their_commands(run, &judging.oracle)))
    }

    /// The first difference between the terms of an outcome and these, as a clause about the
    /// outcome.
    pub fn difference_of(&self, judging: &Judging) -> Option<String> {
        let Judging { oracle, settings, seeds, .. } = judging;
        self.difference(&StoredTerms { oracle, settings, seeds: seeds.as_deref() })
    }

    /// The first difference between stored terms and these, as a clause about the stored ones.
    fn difference(&self, stored: &StoredTerms<'_>) -> Option<String> {
        for stage in [Stage::Setup, Stage::Build, Stage::Lint, Stage::Test] {
            let [theirs, ours] = [stored.oracle, &self.oracle]
                .map(|oracle| oracle.iter().find(|c| c.stage == stage).map(|c| &c.command));
            match (theirs, ours) {
                (Some(theirs), Some(ours)) if theirs != ours => {
                    return Some(format!("its {stage} command is `{theirs}`, and here `{ours}`"));
                }
                (Some(theirs), None) => {
                    return Some(format!(
                        "its {stage} command is `{theirs}`, and here there is none"
                    ));
                }
                (None, Some(ours)) => {
                    return Some(format!("it has no {stage} command, and here it is `{ours}`"));
                }
                _ => {}
            }
        }
        let [theirs, mut ours] = [stored.settings, &self.settings].map(comparable);
        if stored.settings.in_place {
            // In place nothing can be put back.
            ours.protect = Vec::new();
            ours.base_tests = theirs.base_tests;
            ours.source = Vec::new();
        }
        if theirs.protect != ours.protect {
            let listed = |paths: &[String]| {
                if paths.is_empty() { "none".to_owned() } else { paths.join(", ") }
            };
            return Some(format!(
                "its protected paths are: {}; and here: {}",
                listed(&theirs.protect),
                listed(&ours.protect)
            ));
        }
        if theirs.retries != ours.retries {
            return Some(format!("it has {} retries, and here {}", theirs.retries, ours.retries));
        }
        if theirs != ours {
            return Some("its settings differ from those under [oracle] here".into());
        }
        let differ = stored.seeds.zip(self.seeds.as_deref()).is_some_and(|(a, b)| a != b);
        differ.then(|| "its seeds differ from this side's".into())
    }
}

/// True if this clone recorded the run's verdict, and did not fetch it.
fn was_recorded_here(session: &Session, run: &Run) -> bool {
    let for_anyone = caller(&session.store.runs_dir()).is_some();
    session.repo.reflog_claims_us(&refs::record(&run.run), for_anyone).unwrap_or(false)
}

/// Settings without those that need not be equal: the decision makes up for them, or remembers
/// them.
fn comparable(settings: &JudgeSettings) -> JudgeSettings {
    JudgeSettings {
        rank: Rank::default(),
        ceiling: None,
        // The sizes are counted here.
        renames: false,
        in_place: false,
        // Compared by itself.
        world: WorldKind::default(),
        tainted: false,
        leads_back: Vec::new(),
        attempts_write: Vec::new(),
        ..settings.clone()
    }
}

fn refusal(what: &str, difference: &str) -> Error {
    Error::fatal(format!("{what} was judged on other terms than this side's: {difference}"))
}

/// The hint that decides by the commands of stored outcomes.
fn by_their_commands(run: &Run, oracle: &[OracleCommand]) -> String {
    let options = as_options(oracle.iter().filter(|c| c.stage != Stage::Setup));
    format!("or decide on its terms: `git frites judge --replay {}{options}`", run.run)
}

/// True if an outcome is one of this round, on these terms, of the tree that they name.
pub fn answers(outcome: &PartOutcome, terms: &SharedTerms, part: &Part) -> bool {
    let judging = outcome.judging();
    let is_same_tree = match part {
        Part::Base => true,
        Part::Candidate(name) => terms.tree_of(name).map(|tree| &tree.tree) == outcome.captured(),
    };
    judging.round == terms.round
        && judging.run == terms.run
        && judging.base == terms.base
        && outcome.part() == *part
        && is_same_tree
        && judging.settings.world == terms.settings.world
        && OwnTerms::of_all(terms).difference_of(judging).is_none()
}
