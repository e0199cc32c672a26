//! The options of one judging, and the terms that follow from them and that a verdict records.
use std::time::Duration;

use crate::config::keys;
use crate::config::value::{Flaky, WarmMode};
use crate::error::Result;
use crate::git::seed::find::Seeds;
use crate::model::base_tests::BaseTests;
use crate::model::declared_source::DeclaredSource;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::rank::Rank;
use crate::model::terms::{CommandSettings, Doubts, JudgeSettings, Terms};
use crate::model::world::WorldKind;
use crate::ops::judge::{installed, worlds};
use crate::ops::session::Session;
use crate::oracle::{self, ResolvedOracle};

/// The options of one judging. The configuration or the base's files decide everything that the
/// options leave open.
#[derive(Clone, Debug, Default)]
pub struct JudgeOptions {
    /// The commands that flags name. If a command is empty, its stage is left out.
    pub flags: Vec<OracleCommand>,
    /// The number of candidates that are judged at the same time; 0 means 1.
    pub jobs: usize,
    /// The time limit of each command; with `None`, it is `oracle.timeout`.
    pub timeout: Option<Duration>,
    /// The number of further tries after a failure; with `None`, it is `oracle.retries`.
    pub retries: Option<u32>,
    /// Pathspecs to restore to the base's version, in addition to those in `oracle.protect`.
    pub protect: Vec<String>,
    /// The ranking of candidates that passed; with `None`, it is `oracle.rank`.
    pub rank: Option<Rank>,
    /// True if the tests of each candidate also run on all other candidates.
    pub cross: bool,
    /// True if judging stops as soon as the recommended candidate cannot change any more.
    pub until_pass: bool,
    /// True if each candidate is judged in its own worktree, not in a checkout.
    pub in_place: bool,
    /// True if cached outcomes are not used.
    pub no_cache: bool,
    /// True if no command runs with the base's build outputs.
    pub cold: bool,
    /// The patterns of the seeds to copy and to link; with `None`, they are `seed.copy` and
    /// `seed.link`.
    pub seeds: Option<(Vec<String>, Vec<String>)>,
}

impl JudgeOptions {
    /// The commands that judge a run with this base. Fails if the program of a command is not
    /// installed, or if a detected command starts a module that is not installed.
    pub fn oracle(&self, session: &Session, base: &Oid) -> Result<ResolvedOracle> {
        let oracle = oracle::resolve(&session.repo, &session.config, &self.flags, base)?;
        oracle.require_programs()?;
        installed::require(session, base, &oracle)?;
        Ok(oracle)
    }

    pub fn seeds(&self, session: &Session, base: &Oid) -> Result<Seeds> {
        match &self.seeds {
            Some((copy, link)) => session.seeds_by(copy, link, base),
            None => session.seeds(base),
        }
    }

    /// Whether trees are judged with the base's build outputs.
    pub fn warm(&self, session: &Session) -> WarmMode {
        if self.cold { WarmMode::Never } else { session.config.get(keys::ORACLE_WARM) }
    }

    /// Sets the number of retries in `commands`, if these options give it.
    pub fn change(&self, commands: &mut CommandSettings) {
        commands.retries = self.retries.unwrap_or(commands.retries);
    }

    /// The time limit of each command.
    pub fn timeout(&self, session: &Session) -> Duration {
        self.timeout.unwrap_or_else(|| session.config.get(keys::ORACLE_TIMEOUT))
    }

    /// The terms for running these commands now, including the world in which they run. Fails if
    /// the configuration requires a world that the system does not allow, or if `oracle.source` has
    /// an invalid pattern.
    pub fn terms_to_run(&self, session: &Session, oracle: &ResolvedOracle) -> Result<Terms> {
        let mut terms = self.terms(session, oracle);
        DeclaredSource::of(&terms.settings.source)?;
        let world =
            if self.in_place { worlds::require_open(session)? } else { worlds::choose(session)? };
        terms.settings.commands.world = world;
        Ok(terms)
    }

    /// The terms to record for these commands. They follow from these options, and from the
    /// configuration where an option is not given.
    pub fn terms(&self, session: &Session, oracle: &ResolvedOracle) -> Terms {
        let config = &session.config;
        let mut protect = config.get(keys::ORACLE_PROTECT);
        for path in &self.protect {
            if !protect.contains(path) {
                protect.push(path.clone());
            }
        }
        let rank = self.rank.unwrap_or_else(|| config.get(keys::ORACLE_RANK));
        let mut settings = JudgeSettings {
            rank,
            cross: self.cross || rank == Rank::Cross,
            ceiling: Some(config.get(keys::SYNTHESIS_CEILING)),
            protect,
            base_tests: config.get(keys::ORACLE_BASE_TESTS),
            source: config.get(keys::ORACLE_SOURCE),
            commands: CommandSettings {
                world: WorldKind::default(),
                retries: config.get(keys::ORACLE_RETRIES),
                refuse_flaky: config.get(keys::ORACLE_FLAKY) == Flaky::Fail,
                trust_exit: config.get(keys::ORACLE_TRUST_EXIT),
                junit: config.get(keys::ORACLE_JUNIT),
            },
            renames: true,
            in_place: self.in_place,
            doubts: Doubts::default(),
            tests_nothing: oracle.tests_nothing(),
        };
        if self.in_place {
            // With `--in-place`, the worktree is judged as it is: no path is restored, and no other
            // tree is judged.
            settings.cross = false;
            settings.base_tests = BaseTests::Never;
            settings.protect.clear();
            settings.source.clear();
        }
        self.change(&mut settings.commands);
        Terms { seeds: None, settings, oracle: oracle.commands.clone() }
    }
}
