//! What lands: which capture, whether it passed, and the tree that it gives where it goes. All of it is
//! known before anything is touched.
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::git::commit::{self, Aside, Message, Wanted};
use crate::git::merge::{self, Conflicts, Merged};
use crate::integrity::watch;
use crate::model::candidate::Capture;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::model::verdict::Verdict;
use crate::ops::judge::judge_commit;
use crate::ops::land::newest_wins::{self, Choice};
use crate::ops::session::Session;
use crate::oracle::pool::CheckoutPool;
use crate::store::candidate::CandidateRef;
use crate::store::select::Selection;

/// What is asked of a landing, whichever way it goes.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Land what was judged, although the worktree has changed since.
    pub judged: bool,
    /// Land what did not pass.
    pub allow_unverified: bool,
    /// Do not judge a merged tree again.
    pub no_rejudge: bool,
    /// Skip hooks, as in git.
    pub no_verify: bool,
    /// The paragraphs of the message; none for one made from the verdict.
    pub message: Vec<String>,
    /// Settle conflicts by the newer file.
    pub newest_file_wins: bool,
}

/// A capture that is to land.
pub struct Plan {
    /// Its run.
    pub run: Run,
    /// Its candidate.
    pub candidate: Name,
    /// Which one.
    pub capture: Capture,
    /// What was judged of it, and lands: without the changes to protected paths.
    pub judged: Judged,
    /// What lands passed, and nobody has to be told otherwise.
    pub verified: bool,
    /// The run's verdict.
    pub verdict: Option<Verdict>,
    /// What the branch will hold; the judged tree until it is merged.
    pub tree: Oid,
    /// How conflicts were settled.
    pub choices: Vec<Choice>,
}

/// A capture as it was judged.
pub struct Judged {
    /// A commit of the tree.
    pub commit: Oid,
    /// The tree.
    pub tree: Oid,
}

/// Where a landing goes to.
pub struct Onto<'a> {
    /// How people call it.
    pub name: &'a str,
    /// Its commit.
    pub tip: &'a Oid,
    /// What it holds: of the commit, or more, where a candidate works on it.
    pub state: &'a Oid,
    /// Whether the user's checkout is there.
    pub is_here: bool,
    /// The candidate that works there.
    pub candidate: Option<(&'a Run, &'a Name)>,
    /// What both come from.
    pub base: &'a Oid,
}

impl Plan {
    /// What `selection` names, captured, and verified unless that is waived.
    pub fn new(session: &Session, selection: Selection, asked: &Asked) -> Result<Plan> {
        let Selection { run, candidate, iteration } = selection;
        if !asked.allow_unverified {
            watch::require_own_record(session, &run)?;
        }
        let verdict = session.store.verdict(&run.run)?;
        let candidate = choose(&run, candidate, verdict.as_ref(), asked)?;
        let capture = capture_to_land(
            session,
            asked,
            session.store.candidate(&run, &candidate),
            iteration,
            verdict.as_ref(),
        )?;
        let tree = *verdict.as_ref().map_or(&capture.tree, |v| v.judged_for(&capture.tree));
        let verified = verdict.as_ref().is_some_and(|v| v.base == run.base && v.tree_passed(&tree));
        if !verified && !asked.allow_unverified {
            return Err(unverified(&run, &candidate, Some(&capture.tree), verdict.as_ref()));
        }
        let commit = if tree == capture.tree {
            capture.commit
        } else {
            commit::neutral_commit(&session.repo, &tree, &run.base)?
        };
        let judged = Judged { commit, tree };
        Ok(Plan { run, candidate, capture, judged, tree, verified, verdict, choices: Vec::new() })
    }

    /// `RUN/CAND`.
    pub fn address(&self) -> String {
        format!("{}/{}", self.run.run, self.candidate)
    }

    /// Merges in memory with what is there, and judges the result if it is another tree than the judged
    /// one. Gives the conflicts that nothing settles.
    pub fn merge(
        &mut self,
        session: &Session,
        onto: &Onto<'_>,
        asked: &Asked,
    ) -> Result<Option<Conflicts>> {
        let repo = &session.repo;
        if onto.state != onto.base {
            match merge::merge(
                &repo.git(),
                onto.base,
                onto.state.as_str(),
                self.judged.commit.as_str(),
            )? {
                Merged::Clean(tree) => self.tree = tree,
                Merged::Conflicts(conflicts) if asked.newest_file_wins => {
                    (self.tree, self.choices) =
                        newest_wins::newest_file_wins(session, self, onto, &conflicts)?;
                }
                Merged::Conflicts(conflicts) => return Ok(Some(conflicts)),
            }
        }
        // A merge that the other side won throughout is worth recording: it says which files lost.
        if self.choices.is_empty() && repo.commit(onto.state)?.tree == self.tree {
            return Err(Error::no(format!(
                "{} changes nothing that {} does not hold already",
                self.address(),
                onto.name
            ))
            .hint("there is nothing to land"));
        }
        self.judge_again(session, onto, asked)?;
        Ok(None)
    }

    fn judge_again(&mut self, session: &Session, onto: &Onto<'_>, asked: &Asked) -> Result<()> {
        let Session { repo, store, ui, .. } = session;
        if self.tree == self.judged.tree || !self.verified {
            return Ok(());
        }
        let name = onto.name;
        if asked.no_rejudge {
            self.verified = false;
            ui.warn(format!(
                "{name} is not the base, and the merged tree was not judged: it is unverified"
            ));
            return Ok(());
        }
        let Some(verdict) = &self.verdict else { return Ok(()) };
        ui.note(format!("{name} is not the base: judging the merged tree"));
        let commit = commit::neutral_commit(repo, &self.tree, onto.tip)?;
        let logs = store.run_dir(&self.run.run).join("apply");
        let who = format!("{} on {name}", self.address());
        let results = judge_commit(session, &self.run, verdict, &commit, &who, &logs)?;
        match results.iter().find(|r| !r.outcome.passed()) {
            None => Ok(()),
            Some(failed) => Err(Error::no(format!(
                "{} passed on its base, but merged with {name} it failed {} ({}); nothing was changed",
                self.address(),
                failed.stage,
                failed.outcome
            ))
            .hint(format!("the log is '{}'", logs.join(format!("{}.log", failed.stage)).display()))
            .hint(format!("spawn again from {name}"))),
        }
    }

    /// That nothing was landed, and why.
    pub fn conflict(&self, onto: &Onto<'_>, conflicts: &Conflicts) -> Error {
        let error = Error::no(format!(
            "{} conflicts with {} in {}; nothing was changed",
            self.address(),
            onto.name,
            conflicts.in_words()
        ));
        let error = match onto.candidate {
            _ if onto.is_here => error
                .hint(format!(
                    "spawn again from {}, or go to the base and apply there: `git switch --detach {}`",
                    onto.name,
                    onto.base.short()
                ))
                .hint(format!(
                    "or resolve them yourself on a fresh branch: `git frites apply --conflicts {}`",
                    self.address()
                )),
            Some(_) => error.hint(format!("spawn again from it: `git frites spawn --from {}`", onto.name)),
            None => error.hint(format!("spawn again from it: `git frites spawn --base {}`", onto.name)),
        };
        error.hint("or let the newer of both files win: `--merge --strategy newest-file-wins`")
    }

    /// The message of the commit that puts it on a branch.
    pub fn message(&self, asked: &Asked) -> Message {
        let mut trailers = vec![
            Trailer::Run.line(format_args!("{}@{}", self.address(), self.capture.iteration)),
            Trailer::Base.line(self.run.root()),
            Trailer::Tree.line(self.tree),
        ];
        let oracle = self
            .verdict
            .as_ref()
            .filter(|_| self.verified)
            .map(|v| v.oracle.as_slice())
            .unwrap_or_default();
        trailers.extend(oracle.iter().map(|c| {
            Trailer::Oracle.line(format_args!(
                "{}: {}",
                c.stage,
                c.command.to_string().replace('\n', " ")
            ))
        }));
        if !self.verified {
            trailers.push(Trailer::Oracle.line("unverified"));
        }
        let mut paragraphs = asked.message.clone();
        if paragraphs.is_empty() {
            paragraphs = self.default_paragraphs("Land");
        }
        Message { paragraphs, trailers, verify: !asked.no_verify }
    }

    /// A title that begins with `verb`, and the verdict's reason if this is what it recommends.
    pub fn default_paragraphs(&self, verb: &str) -> Vec<String> {
        let verdict = self
            .verdict
            .as_ref()
            .filter(|v| self.verified && v.decision.recommended.as_ref() == Some(&self.candidate));
        let reason = verdict.map(|v| format!("{}.", v.decision.rationale));
        [format!("{verb} {}", self.address())].into_iter().chain(reason).collect()
    }

    /// The choices, for documents and the event log.
    pub fn choices_as_json(&self) -> Value {
        json!(self.choices.iter().map(Choice::as_json).collect::<Vec<_>>())
    }
}

/// The named candidate, or the recommended one.
fn choose(
    run: &Run,
    named: Option<Name>,
    verdict: Option<&Verdict>,
    asked: &Asked,
) -> Result<Name> {
    if let Some(name) = named {
        return Ok(name);
    }
    let Some(verdict) = verdict else {
        return Err(Error::no(format!(
            "run {} was not judged, so nothing is verified to land",
            run.run
        ))
        .hint(format!("judge it with `git frites judge {}`", run.run))
        .hint(format!(
            "or name a candidate: `git frites apply --allow-unverified {}/{}`",
            run.run, run.candidates[0]
        )));
    };
    let decision = &verdict.decision;
    match &decision.recommended {
        Some(name) if verdict.verified() || asked.allow_unverified => Ok(name.clone()),
        Some(name) => Err(unverified(run, name, None, Some(verdict))),
        None => Err(Error::no(format!("there is nothing to land: {}", decision.rationale))
            .hint(format!("`git frites status {}` shows each candidate's state", run.run))),
    }
}

/// Why `name` is not verified; `tree` is the state of it that was asked for, if it was one.
fn unverified(run: &Run, name: &Name, tree: Option<&Oid>, verdict: Option<&Verdict>) -> Error {
    let address = format!("{}/{name}", run.run);
    let judged = |v: &Verdict| {
        tree.is_none_or(|tree| v.candidates.iter().any(|e| e.tree.as_ref() == Some(tree)))
    };
    let why = match verdict {
        None => format!("run {} was not judged", run.run),
        Some(v) if !judged(v) => format!("this state of {address} was not judged"),
        Some(v) if v.settings.tainted => {
            format!(
                "what git goes by changed while run {} was judged, so not all were judged alike",
                run.run
            )
        }
        Some(v) if v.decision.recommended.as_ref() == Some(name) => v.decision.rationale.clone(),
        Some(v) => match v.entry(name).and_then(|e| e.stopped_at()) {
            Some(result) => format!("{address} failed {} ({})", result.stage, result.outcome),
            None => format!("{address} was not judged"),
        },
    };
    Error::no(format!("nothing verified to land: {why}"))
        .hint(format!(
            "look at it with `git frites diff {address}`; judge with `git frites judge {}`",
            run.run
        ))
        .hint(format!("to land it all the same: `git frites apply --allow-unverified {address}`"))
}

/// The capture that lands: the iteration that was named, the judged one, or the worktree as it is now,
/// which must be as it was judged.
fn capture_to_land(
    session: &Session,
    asked: &Asked,
    candidate: CandidateRef<'_>,
    iteration: Option<u32>,
    verdict: Option<&Verdict>,
) -> Result<Capture> {
    if let Some(wanted) = iteration {
        return candidate.iteration(wanted);
    }
    let judged =
        verdict.and_then(|v| v.entry(candidate.name)).and_then(|e| Some((e.iteration?, e.tree?)));
    if let (true, Some((iteration, _))) = (asked.judged, &judged) {
        return candidate.iteration(*iteration);
    }
    let capture = match session.unchanged(candidate)? {
        Some(capture) => Some(capture),
        None => {
            let captured = session.capture(candidate)?;
            session.tell_notes(&captured);
            captured.capture
        }
    };
    let Some(capture) = capture else {
        return Err(
            Error::no(format!("{candidate} changed nothing")).hint("there is nothing to land")
        );
    };
    match judged {
        Some((_, tree)) if tree != capture.tree && !asked.allow_unverified => {
            Err(Error::no(format!("{candidate} has changed since it was judged"))
                .hint(format!("judge it as it is now: `git frites judge {}`", candidate.run.run))
                .hint(format!("or land what was judged: `git frites apply --judged {candidate}`")))
        }
        _ => Ok(capture),
    }
}

/// Makes a commit in the user's name without touching a checkout, and proves that it holds what was asked
/// for: a hook may rewrite files, and then it is not what passed.
pub fn make_commit(session: &Session, wanted: &Wanted<'_>) -> Result<Oid> {
    let Session { repo, store, .. } = session;
    let pool = CheckoutPool::open(repo, store)?;
    let checkout = pool.register(repo, wanted.parent)?;
    let made = commit::aside(repo, &Aside { admin: &checkout.admin, path: &checkout.path }, wanted);
    pool.discard(&checkout)?;
    let commit = made?.ok_or_else(|| refused("nothing was changed"))?;
    require_tree(session, wanted.tree, &commit, "nothing was changed")?;
    Ok(commit)
}

/// That git made no commit; `state` is what that means.
pub fn refused(state: &str) -> Error {
    Error::no(format!("git did not make the commit; {state}")).hint(
        "see its message above: a hook, a signature or an identity; `--no-verify` skips hooks",
    )
}

/// Refuses a commit that holds another tree than was asked for.
pub fn require_tree(session: &Session, tree: &Oid, commit: &Oid, state: &str) -> Result<()> {
    if session.repo.commit(commit)?.tree == *tree {
        return Ok(());
    }
    Err(Error::no(format!(
        "a hook changed what was to be committed, so it is not what passed; {state}"
    ))
    .hint(
        "let the attempt run the same formatter and judge again, or skip hooks with `--no-verify`",
    ))
}

/// A candidate's worktree is not the user's checkout: its HEAD is not what to land on.
pub fn refuse_candidates_worktree(session: &Session) -> Result<()> {
    let Some(root) = session.repo.work_tree() else { return Ok(()) };
    let ours = session.repo.head_branch().is_some_and(|b| b.starts_with("refs/heads/frites/run/"));
    if ours || session.store.is_candidates(root)? {
        return Err(Error::fatal("this is a candidate's worktree")
            .hint("go to your own checkout and apply there"));
    }
    Ok(())
}

/// Refuses to write over files that git does not track, in the checkout at `root`.
pub fn refuse_obstacles(
    session: &Session,
    root: &std::path::Path,
    from: &Oid,
    to: &Oid,
    hint: &str,
) -> Result<()> {
    let paths = crate::git::landing::overwrite::obstacles(&session.repo, root, from, to)?;
    if paths.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = paths.iter().map(|p| p.quoted()).collect();
    Err(Error::no(format!(
        "landing would write over files that git does not track: {}",
        names.join(", ")
    ))
    .hint(hint))
}
