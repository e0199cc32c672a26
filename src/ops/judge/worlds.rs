//! Chooses the world in which oracle commands run.
use crate::config::keys;
use crate::config::value::{ByteSize, Network, SandboxHome, SandboxMode};
use crate::error::{Cause, Error, Result};
use crate::fs::tree::free_space;
use crate::integrity::WatchedCommands;
use crate::model::world::WorldKind;
use crate::ops::agent_state::users::UsersState;
use crate::ops::session::Session;
use crate::oracle::pool::{self, CheckoutRoom};
use crate::oracle::run::OracleOptions;
use crate::oracle::sealed::machine_paths::{self, SandboxOptions};
use crate::world::probe;

/// The world of commands that run in the candidates' own worktrees: the open world. Fails if the
/// configuration requires another one.
pub fn require_open(session: &Session) -> Result<WorldKind> {
    match session.config.get(keys::SANDBOX_MODE) {
        SandboxMode::Auto | SandboxMode::Off => Ok(WorldKind::Open),
        _ => Err(Error::fatal("--in-place confines no command, and sandbox.mode requires a world")
            .hint("judge without --in-place")),
    }
}

/// The world for the oracle's commands: the strictest one that the configuration and the system
/// allow. Fails if the configuration requires a world that the system does not allow.
pub fn choose(session: &Session) -> Result<WorldKind> {
    let mode = session.config.get(keys::SANDBOX_MODE);
    if mode == SandboxMode::Off {
        return Ok(WorldKind::Open);
    }
    let mut reasons: Vec<String> = Vec::new();
    if mode != SandboxMode::Landlock {
        match refusal_of_worlds(session)? {
            None => return Ok(WorldKind::Sealed),
            Some(reason) => reasons.push(format!("no sealed world can be made here: {reason}")),
        }
    }
    if mode != SandboxMode::Sealed {
        match probe::landlock() {
            Ok(_) => {
                for reason in reasons {
                    session.ui.note(format!("commands are confined by Landlock alone: {reason}"));
                }
                say_what_landlock_cannot(session);
                return Ok(WorldKind::Landlock);
            }
            Err(reason) => reasons.push(format!("Landlock cannot be used: {reason}")),
        }
    }
    let reasons = reasons.join("; ");
    if mode == SandboxMode::Auto {
        session.ui.note(format!("commands run unconfined: {reasons}"));
        return Ok(WorldKind::Open);
    }
    Err(Error::fatal(reasons)
        .hint("see git-frites-sandbox(7), or accept any world: set `sandbox.mode` to auto"))
}

/// If fewer bytes than this are free, a failed probe of a world does not count.
const FREE_FOR_PROBE: u64 = 1 << 20;

/// The reason why no sealed world can be made on this system; `None` if one can. Fails if the disk
/// of the cache is full: commands must not be confined less strictly because of that.
fn refusal_of_worlds(session: &Session) -> Result<Option<String>> {
    let room = CheckoutRoom::sealed(&session.store, &pool::home(&session.repo)?)?;
    let refusal = probe::refusal(&room.dir);
    if refusal.is_some() && free_space(&room.dir)? < FREE_FOR_PROBE {
        let cache = pool::cache_dir();
        return Err(Error::fatal(format!("the disk of '{}' is full", cache.display()))
            .because(Cause::StorageFull));
    }
    Ok(refusal)
}

/// Warns of settings that Landlock cannot enforce.
fn say_what_landlock_cannot(session: &Session) {
    let config = &session.config;
    let unenforced = [
        (config.get(keys::SANDBOX_NETWORK) != Network::On, keys::SANDBOX_NETWORK.name),
        (config.get(keys::SANDBOX_HIDE).is_some(), keys::SANDBOX_HIDE.name),
        (config.get(keys::SANDBOX_PROCESSES).is_some(), keys::SANDBOX_PROCESSES.name),
    ];
    let names: Vec<&str> = unenforced.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    if !names.is_empty() {
        session.ui.warn(format!("Landlock cannot enforce {}", names.join(", ")));
    }
}

/// Fails if this machine cannot make a world of this kind, which the terms of an opened run
/// require.
pub fn require(session: &Session, kind: WorldKind) -> Result<()> {
    let refusal = match kind {
        WorldKind::Open => None,
        WorldKind::Landlock => probe::landlock().err(),
        WorldKind::Sealed => refusal_of_worlds(session)?,
    };
    let Some(reason) = refusal else { return Ok(()) };
    Err(Error::fatal(format!(
        "the run was opened to be judged {}, which is impossible here: {reason}",
        kind.in_words()
    ))
    .hint(
        "judge on another machine, or open the run again with `git config frites.sandbox.mode off`",
    ))
}

/// True if outcomes from this world are cached for later git-frites commands.
///
/// In the open world, code under test can write to the cache. A user who turned worlds off has
/// accepted that. A user whose system allows no other world has not, so nothing is cached for this
/// user.
pub fn keeps_outcomes(session: &Session, world: WorldKind) -> bool {
    world != WorldKind::Open || session.config.get(keys::SANDBOX_MODE) == SandboxMode::Off
}

/// The settings of worlds of this kind; `None` for the open world.
pub fn options(session: &Session, kind: WorldKind) -> Option<SandboxOptions> {
    let config = &session.config;
    let [hide, cut] = machine_paths::hidden_and_cut(
        config.get(keys::SANDBOX_HIDE),
        UsersState::of(session).login_files(session),
    );
    (kind != WorldKind::Open).then(|| SandboxOptions {
        network: config.get(keys::SANDBOX_NETWORK),
        write: config.get(keys::SANDBOX_WRITE),
        hide,
        cut,
        processes: config.get(keys::SANDBOX_PROCESSES).map(|n| n as u64),
        memory: config.get(keys::SANDBOX_MEMORY).map(|ByteSize(bytes)| bytes),
        disk: config.get(keys::SANDBOX_DISK).0,
        private_home: config.get(keys::SANDBOX_HOME) == SandboxHome::Private,
        layers: config.get(keys::LIMITS_LAYERS).0,
    })
}

/// How a watch has to treat these commands. If `sandbox.write` opens paths, the commands are not
/// treated as sealed: such a path can be a checkout, lead to one, or be the socket of a service
/// that writes to one.
pub fn watched_commands(world: WorldKind, options: &OracleOptions) -> WatchedCommands {
    match (world, &options.sandbox) {
        (WorldKind::Sealed, Some(sandbox)) if sandbox.write.is_empty() => {
            WatchedCommands::SealedOracle
        }
        _ => WatchedCommands::Oracle,
    }
}
