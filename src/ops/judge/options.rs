//! The options of one judging, and the terms that a verdict records from them.
use std::time::Duration;

use crate::config::keys;
use crate::config::value::{Flaky, WarmMode};
use crate::error::Result;
use crate::git::seed::find::Seeds;
use crate::model::base_tests::BaseTests;
use crate::model::declared_source::DeclaredSource;
use crate::model::oid::Oid;
use crate::model::rank::Rank;
use crate::model::terms::{CommandSettings, Doubts, JudgeSettings, Terms};
use crate::model::world::WorldKind;
use crate::ops::judge::{modules, worlds};
use crate::ops::session::Session;
use crate::oracle::{self, OracleFlags, ResolvedOracle};

/// The options of one judging. The configuration and the base's files complete them.
#[derive(Clone, Debug, Default)]
pub struct JudgeOptions {
    /// The commands that flags name.
    pub flags: OracleFlags,
    /// The number of candidates that are judged at the same time; 0 counts as 1.
    pub jobs: usize,
    /// The time limit of each command; `oracle.timeout` if `None`.
    pub timeout: Option<Duration>,
    /// The number of further tries after a failure; `oracle.retries` if `None`.
    pub retries: Option<u32>,
    /// Pathspecs to restore to the base's version, in addition to those in `oracle.protect`.
    pub protect: Vec<String>,
    /// The ranking of candidates that passed; `oracle.rank` if `None`.
    pub rank: Option<Rank>,
    /// True to judge the tests of each candidate on the others.
    pub cross: bool,
    /// True to stop as soon as the recommended candidate cannot change.
    pub until_pass: bool,
    /// True to judge in the worktrees themselves.
    pub in_place: bool,
    /// True to run everything, even if its outcome is cached.
    pub no_cache: bool,
    /// True to run no command with the base's build outputs.
    pub cold: bool,
    /// The patterns of the seeds, `seed.copy` and `seed.link`; those of the configuration if `None`.
    pub seeds: Option<(Vec<String>, Vec<String>)>,
}

impl JudgeOptions {
    /// The commands to run for a run with this base. Fails if the program of a command is not
    /// installed, or the module that a detected command starts.
    pub fn oracle(&self, session: &Session, base: &Oid) -> Result<ResolvedOracle> {
        let oracle = oracle::resolve(&session.repo, &session.config, &self.flags, base)?;
        oracle.require_programs()?;
        modules::require(session, base, &oracle)?;
        Ok(oracle)
    }

    /// The seeds for a base.
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

    /// Applies these options to the settings.
    pub fn change(&self, commands: &mut CommandSettings) {
        commands.retries = self.retries.unwrap_or(commands.retries);
    }

    /// The time limit of each command.
    pub fn timeout(&self, session: &Session) -> Duration {
        self.timeout.unwrap_or_else(|| session.config.get(keys::ORACLE_TIMEOUT))
    }

    /// The terms for running these commands now, with the world in which they run. Fails if the
    /// configuration requires sealed worlds and the system refuses them, or if `oracle.source` has an
    /// invalid pattern.
    pub fn terms_to_run(&self, session: &Session, oracle: &ResolvedOracle) -> Result<Terms> {
        let mut terms = self.terms(session, oracle);
        DeclaredSource::of(&terms.settings.source)?;
        let world = if self.in_place { WorldKind::Open } else { worlds::choose(session)? };
        terms.settings.commands.world = world;
        Ok(terms)
    }

    /// The terms to record for these commands: these options, completed by the configuration.
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
            // In place, the worktree is judged unchanged: no path is restored, and no other tree is
            // made.
            settings.cross = false;
            settings.base_tests = BaseTests::Never;
            settings.protect.clear();
            settings.source.clear();
        }
        self.change(&mut settings.commands);
        Terms { seeds: None, settings, oracle: oracle.commands.clone() }
    }
}
