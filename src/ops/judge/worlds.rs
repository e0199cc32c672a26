//! The choice of the worlds that oracle commands run in.
use std::fs;
use std::path::Path;

use crate::config::keys;
use crate::config::value::{ByteSize, LayerKind, SandboxMode};
use crate::error::{Error, Result, describe};
use crate::git::seed::find::Seeds;
use crate::model::oid::Oid;
use crate::model::world::WorldKind;
use crate::ops::session::Session;
use crate::oracle::pool::{self, CheckoutRoom};
use crate::oracle::sealed::SealedCheckouts;
use crate::oracle::sealed::surroundings::{KEYS_AND_TOKENS, SandboxOptions};
use crate::world::probe;

/// The world for the oracle's commands: sealed if the configuration and the system allow it. Fails
/// if the configuration requires one, and the system refuses it.
pub fn choose(session: &Session) -> Result<WorldKind> {
    let mode = session.config.get(keys::SANDBOX_MODE);
    if mode == SandboxMode::Off {
        return Ok(WorldKind::Open);
    }
    let room = CheckoutRoom::sealed(&session.store, &pool::home(&session.repo)?)?;
    match probe::refusal(room.path()) {
        None if session.config.get(keys::WORLD_LAYER) == LayerKind::Reflink => {
            require_reflinks(room.path()).map(|()| WorldKind::Sealed)
        }
        None => Ok(WorldKind::Sealed),
        Some(reason) if mode == SandboxMode::Auto => {
            let line =
                format!("commands run unconfined: no sealed world can be made here ({reason})");
            session.ui.note(line);
            Ok(WorldKind::Open)
        }
        Some(reason) => Err(Error::fatal(format!("no sealed world can be made here: {reason}"))
            .hint("see git-frites-sandbox(7), or judge without one: set `sandbox.mode` to auto")),
    }
}

/// True if later commands may use outcomes from this world.
///
/// In the open world, code under test can write to the cache. Who turns worlds off accepts that; who
/// gets no other does not.
pub fn keeps_outcomes(session: &Session, world: WorldKind) -> bool {
    world != WorldKind::Open || session.config.get(keys::SANDBOX_MODE) == SandboxMode::Off
}

/// Fails if files below a directory cannot share their blocks.
fn require_reflinks(dir: &Path) -> Result<()> {
    let [from, to] = ["reflink-from", "reflink-to"].map(|name| dir.join(name));
    let shared = fs::write(&from, "x").and_then(|()| reflink_copy::reflink(&from, &to));
    shared.map_err(|e| {
        Error::fatal(format!(
            "`world.layer` is reflink, and files in '{}' cannot share blocks: {}",
            dir.display(),
            describe(&e)
        ))
        .hint("use whole copies: `git config frites.world.layer copy`")
        .hint("or none: `git config frites.world.layer overlay`")
    })
}

/// The settings of worlds of this kind; none of the open one.
pub fn options(session: &Session, kind: WorldKind) -> Option<SandboxOptions> {
    let config = &session.config;
    (kind == WorldKind::Sealed).then(|| SandboxOptions {
        network: config.get(keys::SANDBOX_NETWORK),
        write: config.get(keys::SANDBOX_WRITE),
        hide: config
            .get(keys::SANDBOX_HIDE)
            .unwrap_or_else(|| KEYS_AND_TOKENS.map(str::to_owned).to_vec()),
        processes: config.get(keys::SANDBOX_PROCESSES).map(|n| n as u64),
        memory: config.get(keys::SANDBOX_MEMORY).map(|ByteSize(bytes)| bytes),
        layer: config.get(keys::WORLD_LAYER),
        layers: config.get(keys::LIMITS_LAYERS).0,
    })
}

/// The checkouts for a base in worlds with these settings; none in the open one.
pub fn checkouts<'a>(
    session: &'a Session,
    options: Option<&SandboxOptions>,
    base: &Oid,
    seeds: &Seeds,
) -> Result<Option<SealedCheckouts<'a>>> {
    let Some(options) = options else { return Ok(None) };
    let home = session.home.as_deref();
    SealedCheckouts::open(&session.store, home, seeds.clone(), *base, options.clone()).map(Some)
}
