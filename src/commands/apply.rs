//! `git frites apply`: the human gate. What passed is what lands, on a fresh branch, or nothing does.
use serde_json::json;

use super::parse_address;
use crate::cli;
use crate::config::keys;
use crate::error::{Error, Result, exit};
use crate::funnel::escape;
use crate::funnel::judging::judge_commit;
use crate::funnel::session::Session;
use crate::git::land::{self, Aside, Merged, Message, Position, Withdrawal};
use crate::git::refs;
use crate::model::candidate::Capture;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::verdict::Verdict;
use crate::oracle::checkout::Room;
use crate::store::heal::LandingIntent;
use crate::store::select::{Matching, Selection};
use crate::ui::json;

/// What is about to land.
struct Plan {
    run: Run,
    candidate: Name,
    capture: Capture,
    /// The judged tree passed, and nobody has to be told otherwise.
    verified: bool,
    verdict: Option<Verdict>,
    /// The new branch, by its full name.
    branch: String,
    from: Position,
    /// What the branch will hold.
    tree: Oid,
}

impl Plan {
    fn intent(&self, args: &cli::Apply) -> LandingIntent {
        LandingIntent {
            run: self.run.run.clone(),
            candidate: self.candidate.clone(),
            iteration: self.capture.iteration,
            branch: self.branch.clone(),
            tree: self.tree.clone(),
            verified: self.verified,
            commit: args.commit || !args.message.is_empty(),
            unlocked: false,
            from: self.from.clone(),
        }
    }
}

/// Runs the command.
pub fn run(session: &Session, args: &cli::Apply) -> Result<u8> {
    let address = parse_address(args.address.as_deref())?;
    let selection = session.store.select(&session.repo, address.as_ref(), Matching::Prefix)?;
    let _landing = session.store.lock_landing()?;
    // The branch first: of several landings at once the later ones find the first one's change staged.
    let branch = fresh_branch(session, args, &selection.run.run)?;
    refuse_candidates_worktree(session)?;
    if !args.no_switch {
        session.repo.need_work_tree().map_err(|e| e.hint("`--no-switch` makes the commit without a checkout"))?;
        land::require_clean(&session.repo)?;
    }
    let plan = plan(session, args, selection, branch)?;
    if !args.no_switch {
        refuse_obstacles(session, &plan)?;
    }
    let commit = land(session, args, &plan)?;
    session.store.record_landing(&session.repo, &plan.intent(args), commit.as_ref())?;
    answer(session, args, &plan, commit.as_ref())?;
    Ok(exit::OK)
}

/// A candidate's worktree is not the user's checkout: its HEAD is not what to land on.
fn refuse_candidates_worktree(session: &Session) -> Result<()> {
    let Some(root) = session.repo.work_tree() else { return Ok(()) };
    let ours = session.repo.head_branch().is_some_and(|b| b.starts_with("refs/heads/frites/run/"));
    if ours || session.store.is_candidates(&session.repo, root)? {
        return Err(Error::fatal("this is a candidate's worktree").hint("go to your own checkout and apply there"));
    }
    Ok(())
}

fn fresh_branch(session: &Session, args: &cli::Apply, run: &Name) -> Result<String> {
    let branch = match &args.branch {
        None => refs::apply_branch(run),
        Some(name) => {
            let full = format!("refs/heads/{name}");
            let valid = session.repo.git().call("check-ref-format").args(["--branch", name]).output()?.code == 0;
            if !valid || name.starts_with("@{") || name.starts_with("frites/run/") {
                return Err(Error::usage(format!("--branch: '{name}' is not a valid branch name"))
                    .hint("see `git help check-ref-format`"));
            }
            full
        }
    };
    if session.repo.read_ref(&branch)?.is_some() {
        let short = refs::short(&branch);
        return Err(Error::fatal(format!("a branch named '{short}' exists"))
            .hint(format!("take another with `--branch NAME`, or delete it with `git branch -D {short}`")));
    }
    // `a` and `a/b` cannot both be branches.
    let above = branch.match_indices('/').map(|(at, _)| &branch[..at]).skip(2);
    let mut blocker = None;
    for name in above {
        blocker = blocker.or(session.repo.read_ref(name)?.map(|_| name.to_owned()));
    }
    let below = session.repo.refs_under(&format!("{branch}/"))?;
    if let Some(blocker) = blocker.or(below.into_iter().next().map(|(name, _)| name)) {
        return Err(Error::fatal(format!(
            "a branch named '{}' is in the way of '{}'",
            refs::short(&blocker),
            refs::short(&branch)
        ))
        .hint("take another with `--branch NAME`"));
    }
    Ok(branch)
}

/// Everything that can be known and refused before anything is touched.
fn plan(session: &Session, args: &cli::Apply, selection: Selection, branch: String) -> Result<Plan> {
    let Selection { run, candidate, iteration } = selection;
    let verdict = session.store.verdict(&session.repo, &run.run)?;
    let candidate = choose(&run, candidate, verdict.as_ref(), args)?;
    let capture = capture_to_land(session, args, &run, &candidate, iteration, verdict.as_ref())?;
    let verified = verdict.as_ref().is_some_and(|v| v.base == run.base && v.tree_passed(&capture.tree));
    if !verified && !args.allow_unverified {
        return Err(unverified(&run, &candidate, Some(&capture.tree), verdict.as_ref()));
    }
    let from = land::position(&session.repo)?;
    let mut plan = Plan { run, candidate, tree: capture.tree.clone(), capture, verified, verdict, branch, from };
    if plan.from.commit != plan.run.base {
        merge(session, args, &mut plan)?;
    }
    if session.repo.commit(&plan.from.commit)?.tree == plan.tree {
        return Err(Error::no(format!(
            "{}/{} changes nothing that HEAD does not hold already",
            plan.run.run, plan.candidate
        ))
        .hint("there is nothing to land"));
    }
    Ok(plan)
}

/// The named candidate, or the recommended one.
fn choose(run: &Run, named: Option<Name>, verdict: Option<&Verdict>, args: &cli::Apply) -> Result<Name> {
    if let Some(name) = named {
        return Ok(name);
    }
    let Some(verdict) = verdict else {
        return Err(Error::no(format!("run {} was not judged, so nothing is verified to land", run.run))
            .hint(format!("judge it with `git frites judge {}`", run.run))
            .hint(format!(
                "or name a candidate: `git frites apply --allow-unverified {}/{}`",
                run.run, run.candidates[0]
            )));
    };
    let decision = &verdict.decision;
    match &decision.recommended {
        Some(name) if decision.decision.verified() || args.allow_unverified => Ok(name.clone()),
        Some(name) => Err(unverified(run, name, None, Some(verdict))),
        None => Err(Error::no(format!("there is nothing to land: {}", decision.rationale))
            .hint(format!("`git frites status {}` shows each candidate's state", run.run))),
    }
}

/// Why `name` is not verified; `tree` is the state of it that was asked for, if it was one.
fn unverified(run: &Run, name: &Name, tree: Option<&Oid>, verdict: Option<&Verdict>) -> Error {
    let address = format!("{}/{name}", run.run);
    let judged = |v: &Verdict| tree.is_none_or(|tree| v.candidates.iter().any(|e| e.tree.as_ref() == Some(tree)));
    let why = match verdict {
        None => format!("run {} was not judged", run.run),
        Some(v) if !judged(v) => format!("this state of {address} was not judged"),
        Some(v) if v.decision.recommended.as_ref() == Some(name) => v.decision.rationale.clone(),
        Some(v) => match v.entry(name).and_then(|e| e.stopped_at()) {
            Some(result) => format!("{address} failed {} ({})", result.stage, result.outcome),
            None => format!("{address} was not judged"),
        },
    };
    Error::no(format!("nothing verified to land: {why}"))
        .hint(format!("look at it with `git frites diff {address}`; judge with `git frites judge {}`", run.run))
        .hint(format!("to land it all the same: `git frites apply --allow-unverified {address}`"))
}

/// The capture that lands: the iteration that was named, the judged one, or the worktree as it is now,
/// which must be as it was judged.
fn capture_to_land(
    session: &Session,
    args: &cli::Apply,
    run: &Run,
    name: &Name,
    iteration: Option<u32>,
    verdict: Option<&Verdict>,
) -> Result<Capture> {
    if let Some(wanted) = iteration {
        return session.store.iteration(&session.repo, run, name, wanted);
    }
    let judged = verdict.and_then(|v| v.entry(name)).and_then(|e| Some((e.iteration?, e.tree.clone()?)));
    if let (true, Some((iteration, _))) = (args.judged, &judged) {
        return session.store.iteration(&session.repo, run, name, *iteration);
    }
    let captured = session.capture(run, name)?;
    session.tell_notes(&captured);
    let Some(capture) = captured.capture else {
        return Err(Error::no(format!("{}/{name} changed nothing", run.run)).hint("there is nothing to land"));
    };
    match judged {
        Some((_, tree)) if tree != capture.tree && !args.allow_unverified => {
            Err(Error::no(format!("{}/{name} has changed since it was judged", run.run))
                .hint(format!("judge it as it is now: `git frites judge {}`", run.run))
                .hint(format!("or land what was judged: `git frites apply --judged {}/{name}`", run.run)))
        }
        _ => Ok(capture),
    }
}

/// The base has moved: merges in memory, and judges the result if it is another tree.
fn merge(session: &Session, args: &cli::Apply, plan: &mut Plan) -> Result<()> {
    let Session { repo, store, ui, .. } = session;
    let address = format!("{}/{}", plan.run.run, plan.candidate);
    match land::merge(repo, &plan.run.base, &plan.from.commit, &plan.capture.commit)? {
        Merged::Clean(tree) => plan.tree = tree,
        Merged::Conflicts(paths) => {
            let names: Vec<String> = paths.iter().map(|p| land::quoted(p)).collect();
            return Err(Error::no(format!(
                "{address} conflicts with HEAD in {}; nothing was changed",
                names.join(", ")
            ))
            .hint(format!(
                "spawn again from HEAD, or go to the base and apply there: `git switch --detach {}`",
                plan.run.base.short()
            )));
        }
    }
    if plan.tree == plan.capture.tree || !plan.verified {
        return Ok(());
    }
    if args.no_rejudge {
        plan.verified = false;
        ui.warn("HEAD is not the base, and the merged tree was not judged: it is unverified");
        return Ok(());
    }
    let oracle = plan.verdict.as_ref().map(|v| v.oracle.as_slice()).unwrap_or_default();
    ui.note("HEAD is not the base: judging the merged tree");
    let room = Room::open(repo, store)?.seeded(session.seeds(&plan.from.commit)?);
    let commit = land::neutral_commit(repo, &plan.tree, &plan.from.commit)?;
    let logs = store.run_dir(&plan.run.run).join("apply");
    let who = format!("{address} on HEAD");
    let results = judge_commit(session, &room, oracle, session.config.get(keys::ORACLE_TIMEOUT), &commit, &who, &logs)?;
    match results.iter().find(|r| !r.outcome.passed()) {
        None => Ok(()),
        Some(failed) => Err(Error::no(format!(
            "{address} passed on its base, but merged with HEAD it failed {} ({}); nothing was changed",
            failed.stage, failed.outcome
        ))
        .hint(format!("the log is '{}'", logs.join(format!("{}.log", failed.stage)).display()))
        .hint("spawn again from HEAD")),
    }
}

fn refuse_obstacles(session: &Session, plan: &Plan) -> Result<()> {
    let paths = land::obstacles(&session.repo, &plan.from.commit, &plan.tree)?;
    if paths.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = paths.iter().map(|p| land::quoted(p)).collect();
    Err(Error::no(format!("landing would write over files that git does not track: {}", names.join(", ")))
        .hint("move them away, or make the commit without your checkout: `--no-switch -m MSG`"))
}

/// Puts the tree on the branch; gives the commit, if one was asked for.
fn land(session: &Session, args: &cli::Apply, plan: &Plan) -> Result<Option<Oid>> {
    let Session { repo, store, .. } = session;
    let paragraphs = if args.message.is_empty() { vec![default_message(plan)] } else { args.message.clone() };
    let message = Message { paragraphs: &paragraphs, trailers: &trailers(plan), verify: !args.no_verify };
    if args.no_switch || args.commit || !args.message.is_empty() {
        escape::before_commit(session);
    }
    if args.no_switch {
        let room = Room::open(repo, store)?;
        let checkout = room.register(repo, "commit", &plan.from.commit)?;
        let commit =
            land::commit_aside(repo, &Aside { admin: &checkout.admin, path: &checkout.path }, &plan.tree, &message);
        room.discard(&checkout)?;
        let commit = commit?.ok_or_else(|| refused("nothing was changed"))?;
        require_landed_tree(session, plan, &commit, "nothing was changed")?;
        repo.update_ref(&plan.branch, Some(&commit), None, "apply")?;
        return Ok(Some(commit));
    }
    store.begin_landing(repo, &plan.intent(args))?;
    let landed = switch_and_commit(session, args, plan, &message);
    store.end_landing(repo)?;
    landed
}

fn switch_and_commit(session: &Session, args: &cli::Apply, plan: &Plan, message: &Message<'_>) -> Result<Option<Oid>> {
    let repo = &session.repo;
    let commit = args.commit || !args.message.is_empty();
    let keep = refs::withdrawn(&plan.run.run);
    let landing = land::Landing { from: &plan.from, branch: &plan.branch, tree: &plan.tree, commit, keep: &keep };
    land::switch_to(repo, &landing)?;
    if !commit {
        return Ok(None);
    }
    let made = land::commit(&repo.checkout(), message).and_then(|made| {
        if !made {
            return Err(refused("your checkout is as it was"));
        }
        let commit = repo.read_ref(&plan.branch)?.ok_or_else(|| refused("your checkout is as it was"))?;
        require_landed_tree(session, plan, &commit, "your checkout is as it was")?;
        Ok(commit)
    });
    match made {
        Ok(commit) => Ok(Some(commit)),
        Err(error) => {
            let found = land::withdraw(repo, &landing)?;
            Err(tell_withdrawal(error, plan, &found))
        }
    }
}

/// What a hook did besides refusing.
fn tell_withdrawal(error: Error, plan: &Plan, found: &Withdrawal) -> Error {
    let error = match &found.kept {
        Some(commit) => error.hint(format!("what the hook made of it is kept: `git diff {} {commit}`", plan.tree)),
        None => error,
    };
    if found.modified.is_empty() {
        return error;
    }
    let names: Vec<String> = found.modified.iter().map(|p| land::quoted(p)).collect();
    error.hint(format!("modified meanwhile, and left so: {}", names.join(", ")))
}

fn refused(state: &str) -> Error {
    Error::no(format!("git did not make the commit; {state}"))
        .hint("see its message above: a hook, a signature or an identity; `--no-verify` skips hooks")
}

/// A hook may have rewritten files: then what was committed is not what passed.
fn require_landed_tree(session: &Session, plan: &Plan, commit: &Oid, state: &str) -> Result<()> {
    if session.repo.commit(commit)?.tree == plan.tree {
        return Ok(());
    }
    Err(Error::no(format!("a hook changed what was to be committed, so it is not what passed; {state}"))
        .hint("let the attempt run the same formatter and judge again, or skip hooks with `--no-verify`"))
}

fn default_message(plan: &Plan) -> String {
    let verdict =
        plan.verdict.as_ref().filter(|v| plan.verified && v.decision.recommended.as_ref() == Some(&plan.candidate));
    let subject = format!("Land {}/{}", plan.run.run, plan.candidate);
    match verdict {
        Some(v) => format!("{subject}\n\n{}.", v.decision.rationale),
        None => subject,
    }
}

fn trailers(plan: &Plan) -> Vec<String> {
    let mut lines = vec![
        format!("Frites-Run: {}/{}@{}", plan.run.run, plan.candidate, plan.capture.iteration),
        format!("Frites-Base: {}", plan.run.base),
        format!("Frites-Tree: {}", plan.tree),
    ];
    let oracle = plan.verdict.as_ref().filter(|_| plan.verified).map(|v| v.oracle.as_slice()).unwrap_or_default();
    lines.extend(
        oracle.iter().map(|c| format!("Frites-Oracle: {}: {}", c.stage, c.command.to_string().replace('\n', " "))),
    );
    if !plan.verified {
        lines.push("Frites-Oracle: unverified".into());
    }
    lines
}

fn answer(session: &Session, args: &cli::Apply, plan: &Plan, commit: Option<&Oid>) -> Result<()> {
    let branch = refs::short(&plan.branch);
    if args.json {
        return session.ui.answer(json::document(json!({
            "run": plan.run.run, "candidate": plan.candidate, "iteration": plan.capture.iteration, "branch": branch,
            "base": plan.run.base, "tree": plan.tree, "commit": commit, "verified": plan.verified,
        })));
    }
    session.ui.answer(format!("{branch}\n"))?;
    if !args.quiet {
        match (commit, args.no_switch) {
            (None, _) => session.ui.hint("the change is staged; review it with `git diff --staged`, then `git commit`"),
            (Some(_), false) => session.ui.hint("you are on that branch now; review it with `git show`"),
            (Some(_), true) => session.ui.hint(format!("review it with `git show {branch}`")),
        }
    }
    Ok(())
}
