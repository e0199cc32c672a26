//! The target of a merge: the current branch, a branch that is not checked out, or a candidate.
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::fs::lock::Lock;
use crate::git::cli::Git;
use crate::git::landing::intent::{Holder, Intent};
use crate::git::landing::position::{
    Position, position, require_clean, require_unchanged, unfinished,
};
use crate::git::ref_list::head_branch;
use crate::git::{refs, worktree};
use crate::model::address::Address;
use crate::model::candidate::State;
use crate::model::env;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::{Parent, Run};
use crate::ops::land::guards::{refuse_candidates_worktree, refuse_overwrite};
use crate::ops::land::recover::git_of;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::select::{Matching, Scope, Selection};

/// The value of `--into` that means the candidate from which a run was spawned.
pub const PARENT: &str = "parent";

/// The candidate from which the run `landing` was spawned.
fn parent_of(session: &Session, landing: &Run) -> Result<ResolvedTarget> {
    let Some(Parent { run, candidate, .. }) = &landing.parent else {
        return Err(Error::usage(format!(
            "--into parent: run {landing} was not spawned from a candidate"
        ))
        .hint("name a candidate as RUN/CANDIDATE, or a branch: `--into refs/heads/parent`"));
    };
    match session.store.run(run)? {
        Some(parent) if parent.candidates.contains(candidate) => {
            ResolvedTarget::candidate(session, session.store.candidate(&parent, candidate))
        }
        _ => Err(Error::fatal(format!(
            "--into parent: {run}/{candidate}, from which run {landing} was spawned, is forgotten"
        ))
        .hint("merge into a branch instead: `--into BRANCH`")),
    }
}

/// Fails if a command runs in a candidate's worktree, unless this process belongs to that command.
/// `state` is the candidate's state.
fn refuse_running(candidate: CandidateRef<'_>, state: State) -> Result<()> {
    let CandidateRef { run, name, .. } = candidate;
    let inside = [env::RUN, env::CANDIDATE].map(|v| std::env::var(v).unwrap_or_default());
    if state != State::Running || inside == [run.run.to_string(), name.to_string()] {
        return Ok(());
    }
    Err(Error::fatal(format!("{candidate} is still at work"))
        .hint(format!("wait for it to end; `git frites status {run}` shows how far it is")))
}

/// Fails if the branch is checked out somewhere. The files there would stay when the branch moves.
/// They would then look like a change that reverts the landing.
fn refuse_checked_out(session: &Session, branch: &RefName) -> Result<()> {
    let Some(holder) = worktree::holder_of(&session.repo, branch, None)? else { return Ok(()) };
    let what = format!("the branch '{}' is checked out in '{}'", branch.short(), holder.display());
    Err(Error::fatal(what).hint(
        "go there, or name a branch that is checked out nowhere; a candidate is named RUN/CANDIDATE",
    ))
}

/// The branch that a change lands on, and its checkout.
pub struct ResolvedTarget {
    /// The branch; `HEAD` for a landing on a fresh branch.
    pub branch: RefName,
    /// The tip of the branch; if the branch does not exist, the commit at which it will be created.
    pub tip: Oid,
    /// True if the branch exists.
    pub exists: bool,
    /// The candidate that owns the branch, if the target is a candidate; `None` for the user's
    /// branches.
    pub candidate: Option<(Run, Name)>,
    /// The checkout in which the branch is checked out, if any.
    pub checkout: Option<TargetCheckout>,
}

/// A checkout whose files change when its branch moves.
pub struct TargetCheckout {
    /// git in the checkout.
    pub git: Git,
    /// An index that describes the checkout's current files.
    pub index: PathBuf,
    /// The commit that has the checkout's current files: the branch's tip, or a candidate's
    /// capture.
    pub state: Oid,
}

impl ResolvedTarget {
    /// An existing branch of the user.
    fn new(branch: RefName, tip: Oid, checkout: Option<TargetCheckout>) -> ResolvedTarget {
        ResolvedTarget { branch, tip, exists: true, candidate: None, checkout }
    }

    /// A branch that will be created at a commit, without a checkout.
    pub fn fresh(branch: RefName, tip: Oid) -> ResolvedTarget {
        ResolvedTarget { exists: false, ..ResolvedTarget::new(branch, tip, None) }
    }

    /// Finds the target of a merge by the value of `--into`. The value is the word `parent`, the
    /// address of a candidate of an existing run, or else a branch. Without a value, the target is
    /// the current branch. `landing` is the run whose candidate lands. Fails if a merge must not
    /// change the target now, e.g. because commands still run in a candidate's worktree.
    pub fn find(session: &Session, into: Option<&str>, landing: &Run) -> Result<ResolvedTarget> {
        let Some(text) = into else { return ResolvedTarget::current(session) };
        if text == PARENT {
            return parent_of(session, landing);
        }
        if let Ok(address @ (Address::Pair { iteration: None, .. } | Address::Task(_))) =
            text.parse::<Address>()
            && let Ok(Selection { run, candidate: Some(name), .. }) =
                session.store.select(Some(&address), Scope::Candidate, Matching::Exact)
        {
            return ResolvedTarget::candidate(session, session.store.candidate(&run, &name));
        }
        let short = text.strip_prefix("refs/heads/").unwrap_or(text);
        let full = RefName::of_branch(short);
        if refs::is_branch_name(short) && session.repo.read_ref(&full)?.is_some() {
            return ResolvedTarget::branch(session, &full);
        }
        Err(Error::fatal(format!("--into: '{text}' is neither a candidate nor a branch")).hint(
            "name a candidate as RUN/CANDIDATE, `parent`, or a branch; `git branch` lists those",
        ))
    }

    /// The user's checkout at a commit, for a landing on a fresh branch.
    pub fn head(session: &Session, commit: Oid) -> ResolvedTarget {
        let checkout = TargetCheckout {
            git: session.repo.checkout(),
            index: session.repo.git_dir().join("index"),
            state: commit,
        };
        ResolvedTarget::new(RefName::new("HEAD"), commit, Some(checkout))
    }

    /// The current branch of the user's checkout.
    pub fn current(session: &Session) -> Result<ResolvedTarget> {
        let repo = &session.repo;
        refuse_candidates_worktree(session)?;
        repo.need_work_tree().map_err(|e| {
            e.hint(
                "`git frites apply --merge --into BRANCH` merges into a branch without a checkout",
            )
        })?;
        let tip = position(repo)?.commit;
        let branch = repo.head_branch().ok_or_else(|| {
            Error::fatal("HEAD is detached: there is no current branch to merge into")
                .hint("switch to a branch, or name one with `--into BRANCH`")
        })?;
        require_clean(repo)?;
        Ok(ResolvedTarget { branch, ..ResolvedTarget::head(session, tip) })
    }

    /// A branch that the user named: the current branch, or one that is not checked out.
    pub fn branch(session: &Session, branch: &RefName) -> Result<ResolvedTarget> {
        let repo = &session.repo;
        let short = branch.short();
        if repo.work_tree().is_some() && repo.head_branch().as_ref() == Some(branch) {
            return ResolvedTarget::current(session);
        }
        let tip = repo.read_ref(branch)?.ok_or_else(|| {
            Error::fatal(format!("there is no branch '{short}'"))
                .hint("`git branch` lists the branches")
        })?;
        refuse_checked_out(session, branch)?;
        Ok(ResolvedTarget::new(branch.clone(), tip, None))
    }

    /// The branch of a candidate that was cleaned. If the branch does not exist any more, the merge
    /// creates it again at the candidate's newest capture.
    fn cleaned(session: &Session, candidate: CandidateRef<'_>) -> Result<ResolvedTarget> {
        let owner = Some((candidate.run.clone(), candidate.name.clone()));
        let branch = candidate.branch();
        if session.repo.read_ref(&branch)?.is_some() {
            // If a person has made a commit on the branch, it becomes an iteration.
            session.capture(candidate)?;
            let target = ResolvedTarget::branch(session, &branch)?;
            return Ok(ResolvedTarget { candidate: owner, ..target });
        }
        let tip = candidate.latest()?.map_or_else(|| candidate.run.base, |c| c.commit);
        Ok(ResolvedTarget { candidate: owner, ..ResolvedTarget::fresh(branch, tip) })
    }

    /// A candidate's branch and worktree. The candidate is captured first, so that nothing in its
    /// worktree is lost when the merge changes files.
    pub fn candidate(session: &Session, candidate: CandidateRef<'_>) -> Result<ResolvedTarget> {
        let Session { repo, store, .. } = session;
        let address = candidate.address();
        let branch = candidate.branch();
        let holder = Holder { run: candidate.run.run.clone(), candidate: candidate.name.clone() };
        let Some(git) = git_of(store, Some(&holder))? else {
            return ResolvedTarget::cleaned(session, candidate);
        };
        let tip = repo.read_ref(&branch)?.ok_or_else(|| {
            Error::fatal(format!("the worktree of {address} has lost its branch"))
                .hint("merge into a branch instead: `--into BRANCH`")
        })?;
        if head_branch(git.git_dir()).as_ref() != Some(&branch) {
            return Err(Error::fatal(format!(
                "the worktree of {address} is not on its branch '{}'",
                branch.short()
            ))
            .hint(format!(
                "go there and switch: `cd \"$(git frites path {address})\" && git switch {}`",
                branch.short()
            )));
        }
        if let Some((what, _)) = unfinished(git.git_dir()) {
            return Err(Error::fatal(format!(
                "{what} is in progress in the worktree of {address}"
            ))
            .hint("finish it there, or stop it"));
        }
        let captured = session.capture(candidate)?;
        session.print_omissions(&captured);
        refuse_running(candidate, captured.candidate.state)?;
        let state = captured.capture.map_or_else(|| candidate.run.base, |c| c.commit);
        let staged = worktree::staged_only(&git, &tip, &state)?;
        if let Some(path) = staged.first() {
            return Err(Error::no(format!(
                "{address} has staged a version of '{}' that is in no file and no commit",
                path.quoted()
            ))
            .hint(format!("commit or unstage it there: `cd \"$(git frites path {address})\"`")));
        }
        let index = candidate.directory().index();
        let checkout = TargetCheckout { git, index, state };
        let owner = Some((candidate.run.clone(), candidate.name.clone()));
        let target = ResolvedTarget::new(branch, tip, Some(checkout));
        Ok(ResolvedTarget { candidate: owner, ..target })
    }

    /// Fails if the target has changed since it was found, e.g. while the merged tree was judged.
    /// Its checkout may have changed, a command may have started in it, or a branch without a
    /// checkout may have got one. Until the result is dropped, no command starts in the worktree of
    /// a candidate.
    pub fn require_unchanged(&self, session: &Session, from: &Position) -> Result<Option<Lock>> {
        let owner = self.candidate.as_ref();
        let owner = owner.map(|(run, name)| session.store.candidate(run, name));
        let Some(TargetCheckout { git, state, .. }) = &self.checkout else {
            let lock = owner.map(CandidateRef::lock).transpose()?;
            refuse_checked_out(session, &self.branch)?;
            return Ok(lock);
        };
        let Some(candidate) = owner else {
            require_unchanged(&session.repo, from)?;
            return Ok(None);
        };
        let captured = session.capture(candidate)?;
        let lock = candidate.lock()?;
        refuse_running(candidate, candidate.record()?.state)?;
        let is_on_branch = head_branch(git.git_dir()).as_ref() == Some(&self.branch);
        let is_idle = is_on_branch && unfinished(git.git_dir()).is_none();
        if !is_idle || captured.capture.map_or(candidate.run.base, |c| c.commit) != *state {
            return Err(Error::fatal(format!("{candidate} has changed meanwhile"))
                .hint(format!("look at it with `git frites diff {candidate}`, then merge again")));
        }
        Ok(Some(lock))
    }

    /// The name that people use: `RUN/CAND`, or the branch's short name.
    pub fn name(&self) -> String {
        match &self.candidate {
            Some((run, name)) => format!("{run}/{name}"),
            None => self.branch.short().to_owned(),
        }
    }

    /// The commit that has the target's current files.
    pub fn state(&self) -> &Oid {
        self.checkout.as_ref().map_or(&self.tip, |checkout| &checkout.state)
    }

    /// True if the target is HEAD, from which a fresh branch is made.
    pub fn is_head(&self) -> bool {
        self.branch.as_str() == "HEAD"
    }

    /// True if the target is the user's checkout.
    pub fn is_user_checkout(&self) -> bool {
        self.checkout.is_some() && self.candidate.is_none()
    }

    /// Fails if landing `tree` would overwrite untracked files in the target's checkout. `hint`
    /// tells the user how to go on.
    pub fn refuse_overwrite(&self, session: &Session, tree: &Oid, hint: &str) -> Result<()> {
        let Some(checkout) = &self.checkout else { return Ok(()) };
        let root = checkout.git.root().unwrap_or(session.repo.common_dir());
        refuse_overwrite(session, root, &checkout.state, tree, hint)
    }

    /// The intent to land a capture of a candidate by moving the target to `to`. The intent says
    /// that the capture is unverified; the caller may change that.
    pub fn intent(&self, candidate: CandidateRef<'_>, iteration: u32, to: Oid) -> Intent {
        let holder = match (&self.candidate, &self.checkout) {
            (Some((run, name)), Some(_)) => {
                Some(Holder { run: run.run.clone(), candidate: name.clone() })
            }
            _ => None,
        };
        Intent {
            run: candidate.run.run.clone(),
            candidate: candidate.name.clone(),
            iteration,
            branch: self.branch.clone(),
            to,
            verified: false,
            commit: false,
            undoing: false,
            killed_after: None,
            files: Some(*self.state()),
            from: Position { branch: Some(self.branch.clone()), commit: self.tip },
            holder,
        }
    }
}
