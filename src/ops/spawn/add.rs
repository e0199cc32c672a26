//! Adds candidates to an existing run: all of them, or none. The new candidates start from the
//! run's base. A change that was made elsewhere (a patch or a commit) can be put into their
//! worktrees first.
use crate::error::{Error, Result};
use crate::git::index::ScratchIndex;
use crate::git::merge::{self, MergeResult};
use crate::integrity::trust;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::{Addition, Run};
use crate::ops::guard;
use crate::ops::session::Session;
use crate::ops::spawn::prepare::Preparation;
use crate::ops::spawn::{NewCandidates, SpawnedRun, limits, make};
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;

/// A change that was made elsewhere and that new candidates start with.
pub enum ChangeSource {
    /// A patch, and its name for messages.
    Patch(Vec<u8>, String),
    /// A revision that names a commit. The change is the difference between this commit and its
    /// merge base with the run's base.
    Commit(String),
}

/// Adds candidates to a run; if they have no prompt, they get that of the run. Each of them starts
/// with the change, if there is one. After an error, no candidate has been added.
///
/// All checks come before the first effect: the limits, the programs, the disk space, and whether
/// the change applies.
pub fn add(
    session: &Session,
    run: &Run,
    mut new: NewCandidates,
    change: Option<ChangeSource>,
) -> Result<SpawnedRun> {
    let _span = tracing::info_span!("add", run = %run.run).entered();
    let Session { repo, store, .. } = session;
    trust::require_trust(session.integrity(), Some(run))?;
    trust::require_own_record(session.integrity(), run)?;
    limits::require_depth(session)?;
    // While this lock is held, no other process can judge the run, add candidates to it, or remove
    // it.
    let (lock, mut run) = store.lock_and_read(&run.run)?;
    refuse_taken(&run, &new.names)?;
    limits::require_room(session, run.candidates.len(), new.names.len())?;
    let shared = run.prompt.as_ref().map(|blob| repo.blob(blob)).transpose()?;
    let prompt = new.prompt.clone();
    new.prompt = new.prompt.or_else(|| shared.map(Into::into));
    let commands = new.commands();
    let NewCandidates { names, agents, limits: given, .. } = new;
    for (_, command) in &commands {
        command.require_prompt()?;
        command.require_program()?;
    }
    if !agents.is_empty() {
        guard::choose(session)?;
    }
    let seed = change.map(|change| change.tree(session, &run)).transpose()?;
    let preparation = Preparation::new(session, &run.base, names.len())?;
    let begins = match seed {
        Some(tree) => tree,
        None => repo.commit(&run.base)?.tree,
    };
    preparation.warn_of_missing_files(session, &begins, &commands)?;

    let prompt = prompt.map(|text| repo.store_blob(text.as_ref())).transpose()?;
    run.candidates.extend(names.iter().cloned());
    run.agents.extend(agents);
    run.added
        .extend(names.iter().map(|name| (name.clone(), Addition { seed, prompt, limits: given })));
    let repository = store.lock_repository()?;
    refuse_stray(session, &run, &names)?;
    let prepared = make(session, &run, &names, repository, &preparation)?;
    session.record_or_warn(&run.run, &Event::Added { candidates: names.clone(), seed });
    preparation.report(session, &run, &names, &prepared);
    if seed.is_some() {
        for name in &names {
            session.print_omissions(&session.capture_or_tell(store.candidate(&run, name))?);
        }
    }
    Ok(SpawnedRun { run, names, commands, prepared, lock })
}

/// Fails if a candidate of the run already has one of these names.
fn refuse_taken(run: &Run, names: &[Name]) -> Result<()> {
    match names.iter().find_map(|name| run.candidates.iter().find(|other| other.collides(name))) {
        Some(twin) => Err(Error::usage(format!("run {run} has a candidate '{twin}' already"))
            .hint("give the new candidate another name with `-c`")),
        None => Ok(()),
    }
}

/// Fails if the branch of a new candidate exists already, for example because it was fetched.
fn refuse_stray(session: &Session, run: &Run, names: &[Name]) -> Result<()> {
    for candidate in names.iter().map(|name| session.store.candidate(run, name)) {
        let CandidateRef { name, .. } = candidate;
        let branch = candidate.branch();
        if session.repo.read_ref(&branch)?.is_some() {
            let branch = branch.short();
            return Err(Error::fatal(format!(
                "the branch '{branch}' has a name that the candidate '{name}' needs"
            ))
            .hint(format!(
                "take another name with `-c`, or delete the branch with `git branch -D {branch}`"
            )));
        }
    }
    Ok(())
}

impl ChangeSource {
    /// The tree of the base after the change is applied to it.
    ///
    /// Fails if the change conflicts with the base, or if it leaves the base unchanged.
    fn tree(&self, session: &Session, run: &Run) -> Result<Oid> {
        let repo = &session.repo;
        let base = repo.commit(&run.base)?.tree;
        let (tree, what) = match self {
            ChangeSource::Patch(bytes, name) => {
                let index = ScratchIndex::from_tree(&repo.git(), &base)?;
                // Without these options, git obeys `apply.whitespace` and `apply.ignoreWhitespace`,
                // which can change lines or refuse the patch.
                let exact = ["--whitespace=nowarn", "--no-ignore-whitespace"];
                let apply = index.git().call("apply").args(exact).args(["--cached", "--3way", "-"]);
                apply.stdin(bytes.as_slice()).run().map_err(|e| {
                    let base = run.base.short();
                    let why = &e.message;
                    Error::no(format!(
                        "the patch {name} does not apply to the base of run {run}: {why}"
                    ))
                    .with_source(e)
                    .hint(format!(
                        "make it on that base: in a checkout with the change, `git diff --binary {base}`"
                    ))
                })?;
                (index.git().call("write-tree").oid()?, format!("the patch {name}"))
            }
            ChangeSource::Commit(revision) => {
                let commit = repo.resolve_commit(revision)?;
                let shared = repo.merge_base(&run.base, &commit)?.ok_or_else(|| {
                    Error::fatal(format!(
                        "'{revision}' shares no history with the base of run {run}"
                    ))
                    .hint("give its change as a patch: `--patch FILE`")
                })?;
                let ours = run.base.as_str();
                let theirs = commit.as_str();
                match merge::merge(&repo.git(), &shared, ours, theirs)? {
                    MergeResult::Clean(tree) => (tree, format!("'{revision}'")),
                    MergeResult::Conflicts(conflicts) => {
                        return Err(Error::no(format!(
                            "'{revision}' conflicts with the base of run {run} in {}",
                            conflicts.in_words()
                        ))
                        .hint(format!("rebase it first: `git rebase {}`", run.base.short())));
                    }
                }
            }
        };
        if tree == base {
            return Err(Error::no(format!("{what} changes nothing on the base of run {run}"))
                .hint("a candidate that changes nothing cannot win"));
        }
        Ok(tree)
    }
}
