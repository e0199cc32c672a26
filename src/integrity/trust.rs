//! Refuses a configuration or a record that the commands of attempts may have changed, until a
//! person has accepted the changes.
use crate::config::FILE;
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::git::{merge, refs};
use crate::integrity::diff::{self, Difference};
use crate::integrity::fingerprint::{Fact, FactKind};
use crate::integrity::quarantine::{self, Suspect};
use crate::integrity::watch::MOST_REPORTED;
use crate::integrity::{IntegrityContext, baseline, fingerprint, watch};
use crate::model::count::and_more;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::store::events::Event;

/// Fails if the run's record was changed while commands ran, and not by git-frites. Such a record
/// may say that a candidate passed although it did not.
pub fn require_own_record(context: IntegrityContext<'_>, run: &Run) -> Result<()> {
    let name = refs::record(&run.run);
    let now = context.repo().read_ref(&name)?;
    let is_that_record = |s: &Suspect| {
        s.fact.kind == FactKind::Ref
            && *s.fact.name == *name
            && s.digest.as_deref() == now.as_ref().map(Oid::as_str)
    };
    match quarantine::suspects(context.store).into_iter().find(is_that_record) {
        None => Ok(()),
        Some(suspect) => Err(Error::no(format!(
            "nothing in run {} is verified: its record is not what its last judging wrote; {}, {}",
            run.run, suspect.moment, suspect.words
        ))
        .hint(format!("judge it again: `git frites judge {}`", run.run))),
    }
}

/// Accepts all changes in quarantine. `run` is the run that will be judged. Its event log lists the
/// changes.
pub fn accept(context: IntegrityContext<'_>, run: &Run) -> Result<()> {
    let suspects = quarantine::suspects(context.store);
    for suspect in &suspects {
        context.ui.note(format!("accepted: {}, {}", suspect.words, suspect.moment));
    }
    quarantine::clear(context.store)?;
    if !suspects.is_empty() {
        let differences = suspects.into_iter().map(|s| s.words).collect();
        context.store.record_event(&run.run, &Event::Trusted { differences })?;
    }
    watch::update_overrides(context)
}

/// Fails if somebody other than the user may have changed our own configuration. Then the commands
/// in it must not run. The hint names `run`. If `run` is `None`, the hint names the run during
/// which the configuration changed.
pub fn require_trust(context: IntegrityContext<'_>, run: Option<&Run>) -> Result<()> {
    refuse_file_of_attempt(context)?;
    watch::compare_again(context)?;
    let mut suspects = quarantine::suspects(context.store);
    suspects.retain(|suspect| suspect.affects_own_config);
    if let Some(first) = suspects.first() {
        let more = and_more(suspects.len() - 1);
        return Err(Error::fatal(format!(
            "the configuration of git-frites changed {}: {}{more}",
            first.moment, first.words
        ))
        .hint("look at it: `git config --show-origin --get-regexp '^(frites|include|includeif)[.]'` and .frites.toml")
        .hint(format!(
            "accept it as it is now: `git frites judge --trust-config {}`",
            run.map_or(&first.moment.run, |run| &run.run)
        )));
    }
    refuse_unreported_changes(context)
}

/// Fails if the checkout is at a commit of an attempt whose `.frites.toml` differs from the one in
/// the base of the attempt's run ([`Run::root`]). Otherwise the attempt's file would choose the
/// commands, the world and the guard.
fn refuse_file_of_attempt(context: IntegrityContext<'_>) -> Result<()> {
    let IntegrityContext { store, home, .. } = context;
    let repo = store.repo();
    let head = match home {
        None => return Ok(()),
        Some(home) if repo.work_tree() == Some(home) => repo.head(),
        Some(home) => Repo::discover(home)?.head(),
    };
    let Some(head) = head else { return Ok(()) };
    let Some((run, name)) = store.maker_of(&head)? else { return Ok(()) };
    let file = TreePath::new(FILE);
    let of = |commit: &Oid| merge::entry(repo, &repo.commit(commit)?.tree, &file);
    let own = of(&head)?;
    if own == of(run.root())? {
        return Ok(());
    }
    // If the commit is a merge, its file may be that of a parent that the user made.
    for parent in repo.commit(&head)?.parents {
        if store.maker_of(&parent)?.is_none() && own == of(&parent)? {
            return Ok(());
        }
    }
    Err(Error::fatal(format!(
        "the checkout is at a commit of {run}/{name}, which has another {FILE} than {}",
        run.root().short()
    ))
    .hint("go to a branch of yours: `git switch BRANCH`")
    .hint(format!("if you trust that {FILE}, make a branch of the commit: `git switch -c NAME`")))
}

/// Fails if our own configuration has changed since the start of watched commands that may still
/// run. Such a change is put into quarantine only when the commands have ended.
fn refuse_unreported_changes(context: IntegrityContext<'_>) -> Result<()> {
    let watched = baseline::all(context.store);
    if watched.is_empty() {
        return Ok(());
    }
    let now = fingerprint::configuration(context);
    let is_ours = |d: &Difference| {
        d.affects_own_config() && matches!(d.fact.kind, FactKind::Config | FactKind::OwnFile)
    };
    for (name, path) in watched {
        let Some((before, commands)) = baseline::read(&path) else { continue };
        if let Some(first) =
            diff::compare(&before, &now, Fact::is_configuration).into_iter().find(is_ours)
        {
            let since = if commands.are_judging() { "judging" } else { "commands" };
            return Err(Error::fatal(format!(
                "the configuration of git-frites has changed since run {name}'s {since} started: {}",
                first.words
            ))
            .hint(format!("wait until they have ended; `git frites status {name}` shows their progress")));
        }
    }
    Ok(())
}

/// Warns of settings and hooks that attempts may have planted, if the user's next commit would use
/// them. Called just before that commit.
pub fn warn_before_commit(context: IntegrityContext<'_>) {
    for suspect in planted_for_commit(context).iter().take(MOST_REPORTED) {
        let Suspect { moment, words, .. } = suspect;
        context.ui.warn(format!("your commit uses settings that changed {moment}: {words}"));
    }
}

/// The settings and hooks in quarantine that are still as the attempts left them. A commit would
/// use them.
pub fn planted_for_commit(context: IntegrityContext<'_>) -> Vec<Suspect> {
    let mut suspects = quarantine::suspects(context.store);
    if !suspects.is_empty() {
        let now = fingerprint::decisive(context);
        suspects.retain(|s| {
            matches!(s.fact.kind, FactKind::Config | FactKind::Hook) && s.is_still_there(&now)
        });
    }
    suspects
}
