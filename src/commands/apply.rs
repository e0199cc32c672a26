//! `git frites apply`: lands a candidate on a fresh branch, merges it, or undoes a landing.
use serde_json::{Value, json};

use crate::commands::capture::paragraph;
use crate::complete;
use crate::config::keys;
use crate::config::value::{MergeStrategy, Tie};
use crate::error::{Error, Result, exit};
use crate::git::landing::overwrite::overwritten_files;
use crate::model::address::Address;
use crate::model::count::{count, some_of};
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::refname::RefName;
use crate::ops::clean;
use crate::ops::hooks;
use crate::ops::land::fresh_branch::{self, FreshBranchOptions, LandedBranch};
use crate::ops::land::merge::{self, MergedCandidate};
use crate::ops::land::newest_wins::choices_as_json;
use crate::ops::land::plan::{LandOptions, Plan};
use crate::ops::land::undo::{self, UndoneLanding};
use crate::ops::session::Session;
use crate::store::select::{Matching, Scope};
use crate::ui::json;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Lands on a fresh branch frites/apply/RUN and switches to it, with the change staged; with \
--merge, merges instead. Prints the branch. Touches nothing before the landed tree is known \
and every check has passed.\n\n\
Exit status: 0; 1 if nothing verified can land, or landing would lose work; 128 if it cannot \
be done."
)]
pub struct ApplyArgs {
    /// Capture to land: the winner of a run, a candidate, or one of its iterations  [default: the
    /// newest run]
    #[arg(value_name = "RUN[/CAND[@N]]", add = complete::address(Scope::Iteration))]
    pub address: Option<Address>,
    /// Branch to create  [default: frites/apply/RUN]
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Commit, with the message of the attempt's own last commit, or the first line of its prompt
    #[arg(long, conflicts_with = "message")]
    pub commit: bool,
    /// Commit with this message; repeat the option for more paragraphs
    #[arg(short, long, value_name = "MSG", value_parser = paragraph)]
    pub message: Vec<String>,
    /// Commit on the branch without touching the checkout
    #[arg(long)]
    pub no_switch: bool,
    /// Skip the pre-commit and commit-msg hooks
    #[arg(long)]
    pub no_verify: bool,
    /// Land the judged state, although the worktree has changed since
    #[arg(long)]
    pub judged: bool,
    /// Land a candidate that is not verified, for example one that did not pass
    #[arg(long)]
    pub allow_unverified: bool,
    /// Do not judge the merged tree again if the base has moved
    #[arg(long)]
    pub no_rejudge: bool,
    /// Leave conflicts on the fresh branch, to resolve them there
    #[arg(long, conflicts_with_all = ["merge", "no_switch", "commit", "message"])]
    pub conflicts: bool,
    /// Merge into the current branch, or into --into, with a merge commit
    #[arg(long, conflicts_with_all = ["branch", "no_switch", "commit"])]
    pub merge: bool,
    /// Merge into this candidate (RUN/CAND, or `parent`: the one that the run was spawned from), or
    /// into this branch, which must not be checked out anywhere
    #[arg(
        hide_short_help = true,
        long,
        value_name = "TARGET",
        requires = "merge",
        add = complete::by(complete::targets),
    )]
    pub into: Option<String>,
    /// Resolve conflicts by taking each file whole from the side that wrote it later  [default:
    /// merge.strategy, or none]
    #[arg(hide_short_help = true, long, value_name = "STRATEGY", requires = "merge")]
    pub strategy: Option<Strategy>,
    /// Remove the run's worktrees and branches after the merge; captures stay
    #[arg(hide_short_help = true, long, requires = "merge")]
    pub clean: bool,
    /// Undo a landing: revert the merge, or delete the fresh branch
    #[arg(
        long,
        conflicts_with_all = [
            "branch", "commit", "message", "no_switch", "judged", "allow_unverified",
            "no_rejudge", "no_verify", "conflicts", "merge", "clean",
        ],
    )]
    pub undo: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the branch
    #[arg(hide_short_help = true, short, long)]
    pub quiet: bool,
}

/// The ways to resolve conflicts of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Strategy {
    /// Conflicts end the merge, and nothing changes
    None,
    /// Each conflicted file comes whole from the side that wrote it later; in a tie, from the
    /// candidate, unless merge.tie says otherwise
    NewestFileWins,
}

/// The side that wins ties, if conflicts are to be resolved by `newest-file-wins`; `None` if they
/// are not to be resolved. The option decides, or else the configuration.
pub fn newest_file_wins(session: &Session, strategy: Option<Strategy>) -> Option<Tie> {
    let config = &session.config;
    let is_wanted = match strategy {
        Some(strategy) => strategy == Strategy::NewestFileWins,
        None => config.get(keys::MERGE_STRATEGY) == MergeStrategy::NewestFileWins,
    };
    is_wanted.then(|| config.get(keys::MERGE_TIE))
}

pub fn run(session: &Session, args: &ApplyArgs) -> Result<u8> {
    let (scope, matching) = match args.undo {
        true => (Scope::Candidate, Matching::Exact),
        false => (Scope::Iteration, Matching::Prefix),
    };
    let selection = session.store.select(args.address.as_ref(), scope, matching)?;
    if args.undo {
        let undone = undo::undo(session, &selection)?;
        print_undone(session, args, &undone);
        return Ok(exit::OK);
    }
    let options = LandOptions {
        judged: args.judged,
        allow_unverified: args.allow_unverified,
        no_rejudge: args.no_rejudge,
        no_verify: args.no_verify,
        message: args.message.clone(),
        newest_file_wins: if args.merge { newest_file_wins(session, args.strategy) } else { None },
    };
    if args.merge {
        let merged = merge::merge(session, selection, &options, args.into.as_deref())?;
        tell_landed(session, &merged.plan, &merged.branch, Some(&merged.commit));
        let cleaned = args.clean.then(|| clean::after_end(session, &merged.plan.run));
        print_merged(session, args, &merged, cleaned.as_deref())?;
        return Ok(exit::OK);
    }
    let fresh = FreshBranchOptions {
        branch: args.branch.clone(),
        commit: args.commit || args.no_switch || !args.message.is_empty(),
        no_switch: args.no_switch,
        conflicts: args.conflicts,
    };
    // If HEAD was detached, git's `-` names a commit, and `git switch` needs `--detach` to go back
    // to it.
    let back = match session.repo.head_branch() {
        Some(_) => "git switch -",
        None => "git switch --detach -",
    };
    let landed = fresh_branch::land(session, selection, &options, &fresh)?;
    if landed.conflicts.is_none() {
        tell_landed(session, &landed.plan, &landed.branch, landed.commit.as_ref());
    }
    print_landed(session, args, &landed, back)?;
    match &landed.conflicts {
        None => Ok(exit::OK),
        Some(conflicts) => Err(Error::no(format!(
            "{} conflicts with HEAD in {}",
            landed.plan.address(),
            conflicts.in_words()
        ))
        .hint("resolve the conflicts, then `git add` and `git commit`; `git status` lists them")
        .hint(format!(
            "or give up: `git checkout -f -` and `git branch -D {}`",
            landed.branch.short()
        ))),
    }
}

/// The fields that every JSON document about a landing has.
fn as_json(plan: &Plan, branch: &RefName, commit: Option<&Oid>) -> Value {
    json!({
        "run": plan.run.run, "candidate": plan.candidate, "iteration": plan.capture.iteration,
        "branch": branch.short(), "base": plan.run.base, "tree": plan.tree, "commit": commit,
        "verified": plan.verified,
    })
}

/// Runs the hook `landed` for a candidate that has landed. `commit` is `None` if the change is only
/// staged.
pub fn tell_landed(session: &Session, plan: &Plan, branch: &RefName, commit: Option<&Oid>) {
    let document = as_json(plan, branch, commit);
    let Plan { run, candidate, .. } = plan;
    hooks::tell(session, keys::HOOKS_LANDED, &run.run, Some(candidate), document);
}

/// Prints the result of a landing on a fresh branch. `back` is the git command that switches back
/// to the previous branch.
fn print_landed(
    session: &Session,
    args: &ApplyArgs,
    landed: &LandedBranch,
    back: &str,
) -> Result<()> {
    let LandedBranch { plan, branch, from, commit, conflicts } = landed;
    if args.json {
        let mut document = as_json(plan, branch, commit.as_ref());
        let pairs = conflicts.iter().flat_map(|c| c.as_pairs());
        document["conflicts"] = pairs
            .map(|(path, kinds)| {
                let mut object = json!({ "kinds": kinds });
                json::put_path(&mut object, "path", path);
                object
            })
            .collect();
        session.ui.answer_json(document);
        return Ok(());
    }
    let branch = branch.short();
    let ui = &session.ui;
    ui.answer(format!("{branch}\n"));
    if conflicts.is_some() {
        return Ok(());
    }
    let committed = commit.as_ref().map(|commit| format!(", committed as {}", commit.short()));
    let committed = committed.unwrap_or_default();
    let (done, rest, next) = match commit {
        None => (
            "is staged",
            "",
            format!(
                "staged on {branch}; review it with `git diff --staged`, commit it with `git commit`"
            ),
        ),
        Some(_) if args.no_switch => (
            "landed",
            "; your checkout is as it was",
            format!("review it with `git show {branch}`; {}", merge_hint(session, landed)?),
        ),
        Some(_) => (
            "landed",
            "",
            format!("review it with `git show`; merge it with `{back}` and `git merge {branch}`"),
        ),
    };
    let change = plan.change_in_words(&session.repo, from)?;
    let iteration = plan.capture.iteration;
    let reservation = reservation(plan);
    let address = plan.address();
    ui.note(format!(
        "{address}@{iteration} {done} on the new branch '{branch}'{reservation}: {change}{committed}{rest}"
    ));
    ui.hint(next);
    ui.hint(format!("take it back with `git frites apply --undo {address}`"));
    Ok(())
}

/// The hint on how to merge a branch that was created with `--no-switch`. git overwrites ignored
/// files of the checkout when it merges.
fn merge_hint(session: &Session, landed: &LandedBranch) -> Result<String> {
    let LandedBranch { plan, branch, from, .. } = landed;
    let merge = format!("`git merge {}`", branch.short());
    let Some(root) = session.repo.work_tree() else {
        return Ok("merge it in a clone, because a bare repository has no checkout".to_owned());
    };
    let files = overwritten_files(&session.repo, root, from, &plan.tree)?;
    Ok(match files.is_empty() {
        true => format!("merge it with {merge}"),
        false => {
            let files: Vec<String> = files.iter().map(TreePath::quoted).collect();
            format!("move {} away before {merge}, which may overwrite it", some_of(&files))
        }
    })
}

/// The addition to the output about a landed candidate that is not verified; empty if it is
/// verified.
fn reservation(plan: &Plan) -> &'static str {
    if plan.verified { "" } else { ", unverified" }
}

fn print_merged(
    session: &Session,
    args: &ApplyArgs,
    merged: &MergedCandidate,
    cleaned: Option<&[String]>,
) -> Result<()> {
    let MergedCandidate { plan, branch, commit, landed, previous } = merged;
    if args.json {
        let mut document = as_json(plan, branch, Some(commit));
        document["merged"] = json!(landed);
        document["previous"] = json!(previous);
        document["choices"] = choices_as_json(&plan.choices);
        document["strategy"] = json!(plan.strategy());
        document["resolution_seconds"] = json!(plan.resolution.map(|time| time.as_secs_f64()));
        document["cleaned"] = json!(cleaned);
        session.ui.answer_json(document);
        return Ok(());
    }
    session.ui.answer(format!("{}\n", branch.short()));
    note_merged(session, merged)?;
    if let Some(cleaned) = cleaned {
        note_cleaned(session, cleaned);
    }
    Ok(())
}

/// Tells the user what was merged, and how to review or undo that.
pub fn note_merged(session: &Session, merged: &MergedCandidate) -> Result<()> {
    let MergedCandidate { plan, branch, commit, previous, .. } = merged;
    for choice in &plan.choices {
        session.ui.note(choice.in_words());
    }
    let change = plan.change_in_words(&session.repo, previous)?;
    let address = plan.address();
    session.ui.note(format!(
        "{address}@{} is merged into '{}' as {}{}: {change}",
        plan.capture.iteration,
        branch.short(),
        commit.short(),
        reservation(plan)
    ));
    session.ui.hint(format!(
        "review it with `git show {}`; undo it with `git frites apply --undo {address}`",
        commit.short(),
    ));
    Ok(())
}

/// Tells the user what `--clean` has removed.
pub fn note_cleaned(session: &Session, cleaned: &[String]) {
    if !cleaned.is_empty() {
        session.ui.note(format!("removed {}; their captures stay", cleaned.join(", ")));
    }
}

fn print_undone(session: &Session, args: &ApplyArgs, undone: &UndoneLanding) {
    let UndoneLanding { candidate, branch, commit, later } = undone;
    let address = candidate.address();
    if !later.is_empty() {
        let landings = count(later.len(), "landing");
        let stay = if later.len() == 1 { "stays" } else { "stay" };
        session
            .ui
            .warn(format!("{landings} came after {address} and {stay}: {}", later.join(", ")));
    }
    let branch = branch.short();
    if args.json {
        let document = json!({
            "run": candidate.run, "candidate": candidate.candidate, "branch": branch, "commit": commit,
            "undone": candidate.landing, "later": later,
        });
        return session.ui.answer_json(document);
    }
    session.ui.answer(format!("{branch}\n"));
    match commit {
        Some(commit) => session
            .ui
            .hint(format!("{address} is reverted; review it with `git show {}`", commit.short())),
        None => session.ui.hint(format!(
            "the branch is deleted; `git frites diff {address}` still shows the change"
        )),
    }
}
