//! The findings about a run in a repository: its world, commands, seeds and layers.
use crate::config::keys;
use crate::error::Result;
use crate::model::checkup::{CheckedCommand, Finding, ProjectCheckup};
use crate::ops::doctor::machine::{reflinks, scratch_in};
use crate::ops::guard;
use crate::ops::judge::plan::{PlannedOracle, start_at_head};
use crate::ops::judge::{installed, worlds};
use crate::ops::session::Session;
use crate::oracle::cache::UserCache;

/// Checks what would happen in this repository if a run started from HEAD now.
pub(super) fn check(session: &Session) -> Result<ProjectCheckup> {
    let mut checkup = ProjectCheckup::default();
    match worlds::choose(session) {
        Ok(world) => {
            let found = format!("commands would run {}", world.in_words());
            checkup.findings.push(Finding::good("world", found));
            checkup.world = Some(world);
        }
        Err(error) => checkup.findings.push(
            Finding::broken("world", error.message)
                .advise("let sandbox.mode be auto: `git config frites.sandbox.mode auto`"),
        ),
    }
    checkup.findings.push(guard_of_attempts(session));
    commands(session, &mut checkup)?;
    let limit = session.config.get(keys::LIMITS_LAYERS).0;
    checkup.layers = (UserCache::of_all(&session.repo)?.layers(), limit);
    let place = session.store.dir().path();
    let place = if place.is_dir() { place } else { session.repo.common_dir() };
    checkup.findings.push(match scratch_in(place) {
        Ok(room) => reflinks("reflinks in the repository", room.path()),
        Err(error) => Finding::broken(
            "repository",
            format!("'{}' cannot be written to: {error}", place.display()),
        ),
    });
    Ok(checkup)
}

/// The finding that says whether the candidates' commands would be guarded.
fn guard_of_attempts(session: &Session) -> Finding {
    match guard::choose(session) {
        Ok(Some(guard)) => Finding::good("guard", guard.in_words()),
        Ok(None) => Finding::missing("guard", "attempts would run with your permissions")
            .advise("git-frites-sandbox(7), ATTEMPTS, says where they can be guarded"),
        Err(error) => Finding::broken("guard", error.message)
            .advise("let spawn.guard be auto: `git config frites.spawn.guard auto`"),
    }
}

/// Adds the commands that would judge, and the seeds that each judge checkout would get.
fn commands(session: &Session, checkup: &mut ProjectCheckup) -> Result<()> {
    let Some(base) = session.repo.head() else {
        checkup.findings.push(
            Finding::broken("commit", "HEAD has none, so nothing can be spawned")
                .advise("make a first commit"),
        );
        return Ok(());
    };
    let planned = PlannedOracle::new(session, &base, &[])?;
    if planned.oracle.commands.is_empty() {
        checkup.findings.push(
            Finding::missing(
                "commands",
                "none is configured or detected: nothing would be verified",
            )
            .advise("name a test: `git config frites.oracle.test CMD`"),
        );
    } else if planned.oracle.tests_nothing() {
        checkup.findings.push(
            Finding::missing("commands", "none of those detected is a test")
                .advise("name a test: `git config frites.oracle.test CMD`"),
        );
    }
    if let Some(world) = checkup.world {
        checkup.start = start_at_head(session, &base, &planned, world)?;
    }
    checkup.commands = planned.checked();
    for CheckedCommand { command, missing } in &checkup.commands {
        if !missing.is_empty() {
            let found = format!("{} is not installed", missing.join(", "));
            let stage = command.stage;
            let finding = Finding::broken(stage.as_str(), found).advise(format!(
                "install it, or name another command: `git config frites.oracle.{stage} CMD` (this one is from {})",
                command.source
            ));
            checkup.findings.push(match installed::of_another_python(command) {
                Some(line) => finding.advise(format!(
                    "the program on PATH belongs to another Python; if that Python has the packages that \
                     the project needs, use it: `git config frites.oracle.{stage} {line}`"
                )),
                None => finding,
            });
        }
    }
    checkup.seeds = planned.seeds;
    Ok(())
}
