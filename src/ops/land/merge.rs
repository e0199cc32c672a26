//! Merging what passed: into the current branch, into a branch that is checked out nowhere, or into the
//! candidate that it came from. Commits are made first, aside; then one branch moves, with its files.
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::git::cli::Git;
use crate::git::commit::{self, Message, Wanted};
use crate::git::landing::advance::{self, Advance};
use crate::git::landing::fresh_branch;
use crate::git::refs::{self, Move};
use crate::git::worktree;
use crate::integrity::watch;
use crate::model::address::Address;
use crate::model::candidate::{Landing, State};
use crate::model::env;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::ops::land::plan::{self, Asked, Onto, Plan};
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::events::MoveDetails;
use crate::store::landings::{Holder, MoveIntent};
use crate::store::select::{Matching, Selection};

/// Where a merge goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// The branch that the checkout is on.
    Current,
    /// A branch that is checked out nowhere.
    Branch(RefName),
    /// A candidate: its worktree and its branch.
    Candidate(Box<Run>, Name),
}

impl Target {
    /// What `--into` names: a candidate of an existing run, else a branch.
    pub fn parse(session: &Session, text: Option<&str>) -> Result<Target> {
        let Some(text) = text else { return Ok(Target::Current) };
        if let Ok(address @ Address::Pair { iteration: None, .. }) = text.parse::<Address>()
            && let Ok(Selection { run, candidate: Some(name), .. }) =
                session.store.select(Some(&address), Matching::Exact)
        {
            return Ok(Target::Candidate(Box::new(run), name));
        }
        let short = text.strip_prefix("refs/heads/").unwrap_or(text);
        let full = RefName::of_branch(short);
        if refs::is_branch_name(short) && session.repo.read_ref(&full)?.is_some() {
            return Ok(Target::Branch(full));
        }
        Err(Error::fatal(format!("--into: '{text}' is neither a candidate nor a branch"))
            .hint("name a candidate as RUN/CANDIDATE, or a branch; `git branch` lists those"))
    }
}

/// A branch and what of it is checked out.
pub struct Place {
    /// The branch.
    pub branch: RefName,
    /// Where it is.
    pub tip: Oid,
    /// The checkout that is on it, if one is.
    pub checkout: Option<Checkout>,
}

/// A checkout whose files move with its branch.
pub struct Checkout {
    /// git there.
    pub git: Git,
    /// An index of what its files are.
    pub index: PathBuf,
    /// What that is: the tip, or a candidate's capture.
    pub state: Oid,
    /// The candidate, if it is one's.
    pub candidate: Option<(Run, Name)>,
}

impl Place {
    /// Looks where a merge would go, and refuses what it could not go on from.
    pub fn find(session: &Session, target: &Target) -> Result<Place> {
        match target {
            Target::Current => Place::current(session),
            Target::Branch(branch) => Place::branch(session, branch),
            Target::Candidate(run, name) => {
                Place::candidate(session, session.store.candidate(run, name))
            }
        }
    }

    fn current(session: &Session) -> Result<Place> {
        let repo = &session.repo;
        plan::refuse_candidates_worktree(session)?;
        repo.need_work_tree()
            .map_err(|e| e.hint("`--into BRANCH` merges into a branch without a checkout"))?;
        let tip = fresh_branch::position(repo)?.commit;
        let branch = repo.head_branch().ok_or_else(|| {
            Error::fatal("HEAD is detached: there is no current branch to merge into")
                .hint("switch to a branch, or name one with `--into BRANCH`")
        })?;
        fresh_branch::require_clean(repo)?;
        let checkout = Checkout {
            git: repo.checkout(),
            index: repo.git_dir().join("index"),
            state: tip,
            candidate: None,
        };
        Ok(Place { branch, tip, checkout: Some(checkout) })
    }

    /// A branch: the current one, or one that is checked out nowhere.
    pub fn branch(session: &Session, branch: &RefName) -> Result<Place> {
        let repo = &session.repo;
        let short = branch.short();
        if repo.work_tree().is_some() && repo.head_branch().as_ref() == Some(branch) {
            return Place::current(session);
        }
        let tip = repo.read_ref(branch)?.ok_or_else(|| {
            Error::fatal(format!("there is no branch '{short}'"))
                .hint("`git branch` lists the branches")
        })?;
        if let Some(holder) = worktree::holder_of(repo, branch, None)? {
            return Err(Error::fatal(format!("the branch '{short}' is checked out in '{}'", holder.display()))
                .hint("go there, or name a branch that is checked out nowhere; a candidate is named RUN/CANDIDATE"));
        }
        Ok(Place { branch: branch.to_owned(), tip, checkout: None })
    }

    /// A candidate, captured: whatever is in its worktree is safe before anything moves.
    pub fn candidate(session: &Session, candidate: CandidateRef<'_>) -> Result<Place> {
        let Session { repo, store, .. } = session;
        let address = candidate.address();
        let branch = candidate.branch();
        let holder = Holder { run: candidate.run.run.clone(), candidate: candidate.name.clone() };
        let gone = || {
            Error::fatal(format!("{address} has no worktree any more"))
                .hint("merge into a branch instead: `--into BRANCH`")
        };
        let git = store.git_of(Some(&holder))?.ok_or_else(gone)?;
        let tip = repo.read_ref(&branch)?.ok_or_else(gone)?;
        if worktree::head_branch(git.git_dir()).as_ref() != Some(&branch) {
            return Err(Error::fatal(format!(
                "the worktree of {address} is not on its branch '{}'",
                branch.short()
            ))
            .hint(format!(
                "go there and switch: `cd \"$(git frites path {address})\" && git switch {}`",
                branch.short()
            )));
        }
        if let Some((what, _)) = fresh_branch::unfinished(git.git_dir()) {
            return Err(Error::fatal(format!(
                "{what} is in progress in the worktree of {address}"
            ))
            .hint("finish it there, or stop it"));
        }
        let captured = session.capture(candidate)?;
        session.tell_notes(&captured);
        let inside = [env::RUN, env::CANDIDATE].map(|v| std::env::var(v).unwrap_or_default());
        if captured.candidate.state == State::Running
            && inside != [candidate.run.run.to_string(), candidate.name.to_string()]
        {
            return Err(Error::fatal(format!("{address} is still at work")).hint(format!(
                "wait for it to end; `git frites status {}` shows how far it is",
                candidate.run.run
            )));
        }
        let state = captured.capture.map_or_else(|| candidate.run.base, |c| c.commit);
        let staged = worktree::staged_apart(&git, &tip, &state)?;
        if let Some(path) = staged.first() {
            return Err(Error::no(format!(
                "{address} has staged '{}' in a version that is in no file and no commit",
                path.quoted()
            ))
            .hint(format!("commit or unstage it there: `cd \"$(git frites path {address})\"`")));
        }
        let index = candidate.index();
        let checkout = Checkout {
            git,
            index,
            state,
            candidate: Some((candidate.run.clone(), candidate.name.clone())),
        };
        Ok(Place { branch, tip, checkout: Some(checkout) })
    }

    /// How people call it.
    pub fn name(&self) -> String {
        match self.checkout.as_ref().and_then(|c| c.candidate.as_ref()) {
            Some((run, name)) => format!("{}/{name}", run.run),
            None => self.branch.short().to_owned(),
        }
    }

    /// What it holds.
    pub fn state(&self) -> &Oid {
        self.checkout.as_ref().map_or(&self.tip, |c| &c.state)
    }
}

/// A merge that is done.
pub struct Merged {
    /// What was merged.
    pub plan: Plan,
    /// The branch.
    pub branch: RefName,
    /// The merge commit.
    pub commit: Oid,
    /// Its second parent: what passed, as one commit.
    pub landed: Oid,
    /// Where the branch was.
    pub previous: Oid,
}

impl Merged {
    /// What to type after it.
    pub fn hint(&self) -> String {
        let (commit, address) = (self.commit.short(), self.plan.address());
        format!(
            "review it with `git show {commit}`; take it back with `git frites apply --undo {address}`"
        )
    }
}

/// Merges what `selection` names, one landing at a time. Conflicts, failures and refusals change nothing.
pub fn merge(
    session: &Session,
    selection: Selection,
    asked: &Asked,
    target: &Target,
) -> Result<Merged> {
    let repo = &session.repo;
    let _landing = session.store.lock_landing()?;
    let place = Place::find(session, target)?;
    let mut plan = Plan::new(session, selection, asked)?;
    let root = *plan.run.root();
    // Into a candidate goes what this run did; the parent's own change is there already.
    let base = if matches!(target, Target::Candidate(..)) { plan.run.base } else { root };
    let name = place.name();
    let candidate =
        place.checkout.as_ref().and_then(|c| c.candidate.as_ref()).map(|(run, name)| (run, name));
    let is_here = place.checkout.as_ref().is_some_and(|c| c.candidate.is_none());
    let onto = Onto {
        name: &name,
        tip: &place.tip,
        state: place.state(),
        is_here,
        candidate,
        base: &base,
    };
    if let Some(conflicts) = plan.merge(session, &onto, asked)? {
        return Err(plan.conflict(&onto, &conflicts));
    }
    if let Some(checkout) = &place.checkout {
        let dir = checkout.git.root().unwrap_or(repo.common_dir());
        plan::refuse_obstacles(
            session,
            dir,
            &checkout.state,
            &plan.tree,
            "move them away and merge again",
        )?;
    }
    watch::before_commit(session);
    let message = plan.message(asked);
    let landed_tree = &plan.judged.tree;
    let own = Message { trailers: own_trailers(&message, landed_tree), ..message.clone() };
    let landed = plan::make_commit(
        session,
        &Wanted { tree: landed_tree, parent: &root, merged: None, message: &own },
    )?;
    let first = committed_state(session, &place)?;
    let wanted = Wanted {
        tree: &plan.tree,
        parent: &first,
        merged: Some(&landed),
        message: &merge_message(&plan, asked, &place, message),
    };
    let commit = plan::make_commit(session, &wanted)?;
    let intent = MoveIntent {
        run: plan.run.run.clone(),
        candidate: plan.candidate.clone(),
        iteration: plan.capture.iteration,
        landing: Landing::Merged,
        target: place.branch.clone(),
        old: place.tip,
        new: commit,
        files: *place.state(),
        verified: plan.verified,
        killed_after: None,
        holder: holder(&place),
    };
    go(session, &place, &intent, &format!("merge {}: Merge made by git-frites.", plan.address()))?;
    let choices = Some(plan.choices_as_json());
    session.store.record_move(&intent, MoveDetails { choices, ..MoveDetails::default() })?;
    if let Some(git) = place.checkout.as_ref().filter(|c| c.candidate.is_none()).map(|c| &c.git) {
        // As `git merge` does; it cannot undo anything any more.
        let _ = commit::run_hook(git, "post-merge", &["0"])?;
    }
    Ok(Merged { plan, branch: place.branch, commit, landed, previous: place.tip })
}

/// The trailers of the commit that is merged: its own tree is the judged one.
fn own_trailers(message: &Message, tree: &Oid) -> Vec<String> {
    let own = |line: &String| {
        if Trailer::Tree.value(line).is_some() { Trailer::Tree.line(tree) } else { line.clone() }
    };
    message.trailers.iter().map(own).collect()
}

fn merge_message(plan: &Plan, asked: &Asked, place: &Place, landed: Message) -> Message {
    let mut message = landed;
    if asked.message.is_empty() {
        message.paragraphs = plan.default_paragraphs("Merge");
    }
    message.trailers.push(Trailer::Into.line(place.branch.short()));
    message
        .trailers
        .extend(plan.choices.iter().map(|choice| Trailer::Choice.line(choice.in_words())));
    message
}

/// What the merge is made on: the tip, or a commit with what its candidate has not committed.
pub fn committed_state(session: &Session, place: &Place) -> Result<Oid> {
    let repo = &session.repo;
    let tree = repo.commit(place.state())?.tree;
    if repo.commit(&place.tip)?.tree == tree {
        return Ok(place.tip);
    }
    let message = Message {
        paragraphs: vec![format!("Work of {} so far", place.name())],
        trailers: Vec::new(),
        verify: false,
    };
    plan::make_commit(
        session,
        &Wanted { tree: &tree, parent: &place.tip, merged: None, message: &message },
    )
}

/// The candidate in whose worktree a place is.
pub fn holder(place: &Place) -> Option<Holder> {
    let (run, name) = place.checkout.as_ref()?.candidate.as_ref()?;
    Some(Holder { run: run.run.clone(), candidate: name.clone() })
}

/// Moves the branch, with files and index where it is checked out: from its old tip, or not at all.
pub fn go(session: &Session, place: &Place, intent: &MoveIntent, why: &str) -> Result<()> {
    let Session { repo, store, .. } = session;
    let mark = refs::landing(&intent.run, &intent.candidate);
    let marked = repo.read_ref(&mark)?;
    let refs = [
        Move { name: &intent.target, old: Some(&intent.old), new: &intent.new },
        Move { name: &mark, old: marked.as_ref(), new: &intent.new },
    ];
    let Some(checkout) = &place.checkout else { return repo.move_refs(&repo.git(), &refs, why) };
    if checkout.candidate.is_none() {
        // Once more: judging a merged tree may have taken long.
        let again = Place::current(session)?;
        if again.branch != place.branch || again.tip != place.tip {
            return Err(Error::fatal("your checkout has changed meanwhile").hint("apply again"));
        }
    }
    store.begin_move(intent)?;
    let Checkout { git, index, .. } = checkout;
    let moved = advance::advance(
        repo,
        &Advance { git, index, from: &intent.files, to: &intent.new, refs: &refs, why },
    );
    // Where files were edited meanwhile, the lock stays: the next command looks at it again.
    if moved.is_ok() || !advance::is_locked(git) {
        store.end_move(intent)?;
    }
    moved
}
