//! The plan that `judge --dry-run` prints: the commands, the detected commands that are not used,
//! missing programs, the seeds, the world (how the commands are confined), and the cached outcomes.
//! Making the plan runs no command of the project.
use crate::config::value::WarmMode;
use crate::ecosystems::detect::PassedOver;
use crate::ecosystems::downloads;
use crate::error::Result;
use crate::model::checkup::{CheckedCommand, StartOutputs};
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::model::run::Run;
use crate::model::terms::{JudgeSettings, Terms};
use crate::model::world::WorldKind;
use crate::ops::judge::options::JudgeOptions;
use crate::ops::judge::runner::open_ledger;
use crate::ops::judge::{installed, worlds};
use crate::ops::session::Session;
use crate::oracle::cache::JudgedTree;
use crate::oracle::ledger::{Ledger, Memory};
use crate::oracle::pool::{self, LAYERS};
use crate::oracle::run::OracleOptions;
use crate::oracle::sealed::kept::KeptLayer;
use crate::oracle::{self, ResolvedOracle};

/// The part of the plan that is the same in every world: the commands and the seeds.
pub struct PlannedOracle {
    /// The commands.
    pub oracle: ResolvedOracle,
    /// The detected commands that are not used.
    pub passed_over: Vec<PassedOver>,
    /// The programs and modules that are not installed, each with the stage of the command that
    /// needs it.
    pub missing: Vec<(Stage, String)>,
    /// The files and directories at the top of the checkout that are seeds or contain seeds. The
    /// name of a directory ends in a slash.
    pub seeds: Vec<String>,
}

/// The commands that judging would run on a base.
pub struct OraclePlan {
    /// The commands and the seeds.
    pub planned: PlannedOracle,
    /// The settings, with the world that the commands would run in.
    pub settings: JudgeSettings,
    /// The commands that would download the base's dependencies, if there is no setup command for
    /// that.
    pub downloads: Vec<OracleCommand>,
    /// The cached passes and build outputs; `None` if there is no command, or if the world keeps no
    /// outcomes.
    pub known: Option<KnownPasses>,
}

/// Which trees are known to pass, and the kept build outputs of the base.
pub struct KnownPasses {
    /// True if the base is known to pass.
    pub base: bool,
    /// The kept build outputs from which judging the base would start; `None` if there are none.
    pub start: Option<StartOutputs>,
    /// The number of candidates with a capture, and the number of those whose newest capture is
    /// known to pass.
    pub candidates: (usize, usize),
}

/// The ledger of outcomes for judging this base on these terms, and the kept build outputs to start
/// from.
fn kept_for<'m>(
    session: &'m Session,
    base: &JudgedTree,
    mut terms: Terms,
    options: &JudgeOptions,
    memory: &'m Memory,
) -> Result<(Ledger<'m>, Option<StartOutputs>)> {
    let repo = &session.repo;
    let world = terms.settings.commands.world;
    terms.seeds = Some(session.seeds(&base.commit)?.digest()?);
    let sandbox = worlds::options(session, world);
    let own = OracleOptions { timeout: options.timeout(session), sandbox };
    let ledger = open_ledger(session, &terms, &own, memory)?;
    if world != WorldKind::Sealed {
        return Ok((ledger, None));
    }
    let kept =
        KeptLayer { root: pool::home(repo)?.join(LAYERS), name: ledger.cache.layer_name(base)? };
    let start = kept.start(
        repo,
        &base.commit,
        &ledger.cache.distrusted,
        options.warm(session) != WarmMode::Never,
    )?;
    let start = start.map(|start| StartOutputs { commit: start.commit, is_own: start.is_own });
    Ok((ledger, start))
}

/// The kept build outputs from which judging HEAD in this world would start if no options were
/// given.
pub fn start_at_head(
    session: &Session,
    head: &Oid,
    planned: &PlannedOracle,
    world: WorldKind,
) -> Result<Option<StartOutputs>> {
    if planned.oracle.commands.is_empty() || world != WorldKind::Sealed {
        return Ok(None);
    }
    let options = JudgeOptions::default();
    let mut terms = options.terms(session, &planned.oracle);
    terms.settings.commands.world = world;
    let base = JudgedTree::of(&session.repo, *head)?;
    Ok(kept_for(session, &base, terms, &options, &Memory::default())?.1)
}

impl PlannedOracle {
    /// The commands and seeds with which attempts from this base would be judged.
    pub fn new(session: &Session, base: &Oid, flags: &[OracleCommand]) -> Result<PlannedOracle> {
        let Session { repo, config, .. } = session;
        let oracle = oracle::resolve(repo, config, flags, base)?;
        let passed_over = oracle::passed_over(repo, config, flags, base, &oracle)?;
        let missing = oracle::missing_programs(&oracle.commands).into_iter();
        let mut missing: Vec<_> =
            missing.map(|(command, program)| (command.stage, program)).collect();
        if let Some((command, module)) = installed::missing(session, base, &oracle)? {
            missing.push((command.stage, format!("python3 -m {module}")));
        }
        let seeds = seed_names(session, base)?;
        Ok(PlannedOracle { oracle, passed_over, missing, seeds })
    }

    /// The commands, each with its missing programs.
    pub fn checked(&self) -> Vec<CheckedCommand> {
        let checked = self.oracle.commands.iter().map(|command| {
            let of_this = self.missing.iter().filter(|(stage, _)| *stage == command.stage);
            let missing = of_this.map(|(_, program)| program.clone()).collect();
            CheckedCommand { command: command.clone(), missing }
        });
        checked.collect()
    }
}

impl OraclePlan {
    /// The plan for judging `run`; if it is `None`, for judging candidates from this base. If the
    /// run continues another run, `base` is the base of the first run.
    pub fn new(
        session: &Session,
        base: &Oid,
        run: Option<&Run>,
        options: &JudgeOptions,
    ) -> Result<OraclePlan> {
        let repo = &session.repo;
        let planned = PlannedOracle::new(session, base, &options.flags)?;
        let terms = options.terms_to_run(session, &planned.oracle)?;
        let settings = terms.settings.clone();
        let world = settings.commands.world;
        let known = match planned.oracle.commands.as_slice() {
            [] => None,
            _ if !worlds::keeps_outcomes(session, world) => None,
            _ => {
                let judged = JudgedTree::of(repo, *base)?;
                let memory = Memory::default();
                let (ledger, start) = kept_for(session, &judged, terms, options, &memory)?;
                let mut candidates = (0, 0);
                for candidate in run.into_iter().flat_map(|run| session.store.candidates(run)) {
                    let Some(capture) = candidate.latest()? else { continue };
                    let judged = JudgedTree { tree: capture.tree, commit: capture.commit };
                    candidates.0 += 1;
                    candidates.1 += usize::from(ledger.has_kept(&judged)?);
                }
                let base = ledger.has_kept(&judged)?;
                Some(KnownPasses { base, start, candidates })
            }
        };
        // Only a sealed world keeps downloads, so nothing is downloaded in advance for the other
        // worlds.
        let downloads = match world {
            WorldKind::Sealed => downloads::of_base(repo, base, &planned.oracle.commands)?,
            WorldKind::Landlock | WorldKind::Open => Vec::new(),
        };
        Ok(OraclePlan { planned, settings, downloads, known })
    }

    /// The plan as text for people, one statement per line.
    pub fn lines(&self) -> Vec<String> {
        let PlannedOracle { oracle, passed_over, missing, seeds } = &self.planned;
        let mut lines = Vec::new();
        for stage in [Stage::Setup, Stage::Build, Stage::Lint, Stage::Test] {
            let found = oracle.commands.iter().find(|command| command.stage == stage);
            lines.push(match found {
                Some(found) => format!("{stage}: `{}`, from {}", found.command, found.source),
                None => format!("{stage}: none"),
            });
        }
        let downloads = self.downloads.iter();
        lines.extend(downloads.map(|c| format!("downloads: `{}`, from {}", c.command, c.source)));
        lines.extend(passed_over.iter().map(ToString::to_string));
        for (stage, program) in missing {
            lines.push(format!("missing: '{program}', which the {stage} command needs"));
        }
        let seeds = if seeds.is_empty() { "none".into() } else { seeds.join(", ") };
        lines.push(format!("seeds: {seeds}"));
        lines.extend(self.settings.in_words().map(|words| format!("settings: {words}")));
        lines.push(match self.settings.commands.world {
            WorldKind::Open => "world: open; the commands run with your permissions".into(),
            world => format!("world: {world}; the commands run {}", world.in_words()),
        });
        if let Some(known) = &self.known {
            lines.push(known.in_words());
        }
        if oracle.commands.is_empty() {
            lines.push("nothing was given, configured or detected: nothing can be verified".into());
        } else if oracle.tests_nothing() {
            lines.push("none of these commands is a test: a pass verifies nothing".into());
        }
        lines
    }

    /// True if a candidate that passes these commands would be verified.
    pub fn verifies(&self) -> bool {
        let oracle = &self.planned.oracle;
        !oracle.commands.is_empty() && !oracle.tests_nothing()
    }
}

impl KnownPasses {
    fn in_words(&self) -> String {
        let (captured, passing) = self.candidates;
        let mut words = Vec::new();
        if self.base {
            words.push("the base passes".to_owned());
        }
        if passing > 0 {
            words.push(format!("{passing} of {captured} captured candidates pass"));
        }
        words.extend(self.start.map(|start| start.in_words()));
        match words.as_slice() {
            [] => "cached: nothing".to_owned(),
            words => format!("cached: {}", words.join(", ")),
        }
    }
}

/// The names at the top of the checkout that are seeds or contain seeds, in the order of the seeds.
pub fn seed_names(session: &Session, base: &Oid) -> Result<Vec<String>> {
    let seeds = session.seeds(base)?;
    let mut names: Vec<String> = Vec::new();
    for path in seeds.paths() {
        let text = String::from_utf8_lossy(path).into_owned();
        let name = text.split_once('/').map_or(text.clone(), |(top, _)| format!("{top}/"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}
