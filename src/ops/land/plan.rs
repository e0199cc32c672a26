//! The plan of a landing: the capture that lands, its verdict, and the tree that the target's
//! branch will have. The plan is complete before any file or ref changes.
use std::time::{Duration, Instant};

use crate::config::value::Tie;
use crate::error::{Error, Result};
use crate::git::commit::{self, CommitMessage, HooksToRun};
use crate::git::diff;
use crate::git::merge::{self, Conflicts, MergeResult};
use crate::git::protect::{Restore, put_back};
use crate::git::refs;
use crate::git::repo::Repo;
use crate::git::trees;
use crate::integrity::trust;
use crate::model::candidate::Capture;
use crate::model::count::some_of;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::run::Run;
use crate::model::trailer::{Trailer, paragraphs_without_trailers};
use crate::model::verdict::{Baseline, Entry, Verdict};
use crate::model::world::WorldKind;
use crate::ops::land::guards;
use crate::ops::land::newest_wins::{self, Choice};
use crate::ops::land::sides::Sides;
use crate::ops::land::target::ResolvedTarget;
use crate::ops::land::unverified::{unverified, why_unverified};
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::records::require_own_format;
use crate::store::select::Selection;
use crate::ui::next_steps::after_no_change;

/// Options of a landing, whether on a fresh branch or by a merge.
#[derive(Clone, Debug, Default)]
pub struct LandOptions {
    /// Land the judged state, even if the worktree has changed since.
    pub judged: bool,
    /// Land even a change that did not pass.
    pub allow_unverified: bool,
    /// Do not judge a merged tree again.
    pub no_rejudge: bool,
    /// Skip hooks, like git's `--no-verify`.
    pub no_verify: bool,
    /// The paragraphs of the user's message; if empty, the attempt's own message is used.
    pub message: Vec<String>,
    /// Resolve conflicts by taking the newer file, or, if both are equally old, the file of the
    /// side that the value names. With `None`, conflicts are not resolved.
    pub newest_file_wins: Option<Tie>,
}

/// A capture that is to land, and what is known about its landing so far.
pub struct Plan {
    /// The candidate's run.
    pub run: Run,
    pub candidate: Name,
    pub capture: Capture,
    /// The state that was judged and lands: the capture without its changes to protected paths.
    pub judged: JudgedState,
    /// True if the tree that lands passed.
    pub verified: bool,
    /// The reason why the landing is not verified; `None` if it is.
    pub reason: Option<String>,
    /// The run's verdict; `None` if the run was not judged.
    pub verdict: Option<Verdict>,
    /// The world in which the landing tree was judged; `None` without a verdict.
    pub world: Option<WorldKind>,
    /// The tree that the branch will have. Until [`Plan::merge_into`] is called, it is the judged
    /// tree.
    pub tree: Oid,
    /// The files that `newest-file-wins` chose.
    pub choices: Vec<Choice>,
    /// The time that `newest-file-wins` took; `None` if there were no conflicts.
    pub resolution: Option<Duration>,
    /// The results of the target as it is; `None` as long as nothing depends on them.
    pub of_target: Option<Baseline>,
}

/// The judged state of a capture.
pub struct JudgedState {
    /// A commit with the tree that was judged.
    pub commit: Oid,
    /// The tree that was judged.
    pub tree: Oid,
}

impl Plan {
    /// Captures the selected candidate and plans its landing. Fails if the candidate did not pass,
    /// unless `options` allow that. Also fails if the configuration of git-frites has changed, and
    /// the change is not accepted yet.
    pub fn new(session: &Session, selection: Selection, options: &LandOptions) -> Result<Plan> {
        let Selection { run, candidate, iteration } = selection;
        // The configuration decides in which world a merged tree is judged, and which commands set
        // up its checkout.
        trust::require_trust(session.integrity(), Some(&run))?;
        if !options.allow_unverified {
            trust::require_own_record(session.integrity(), &run)?;
        }
        let verdict = session.store.verdict(&run.run)?;
        let candidate = choose(&run, candidate, verdict.as_ref(), options)?;
        let address = session.store.candidate(&run, &candidate);
        // The landing will be recorded.
        require_own_format(&address.record()?)?;
        let capture = capture_to_land(session, options, address, iteration, verdict.as_ref())?;
        let tree = *verdict.as_ref().map_or(&capture.tree, |v| v.judged_for(&capture.tree));
        let verified = verdict.as_ref().is_some_and(|v| v.base == run.base && v.tree_passed(&tree));
        let why = || why_unverified(&run, &candidate, Some(&capture.tree), verdict.as_ref());
        if !verified && !options.allow_unverified {
            return Err(unverified(&run, &candidate, iteration, verdict.as_ref(), &why()));
        }
        if let Some(damage) = trees::damage(&session.repo, &run.base, &tree) {
            return Err(Error::no(format!("{run}/{candidate} cannot land: {damage}")).hint(
                format!("choose another candidate: `{}`", session.store.judge_command(&run.run)),
            ));
        }
        guards::require_usable_configuration(session, &run, &candidate, &tree)?;
        let reason = (!verified).then(why);
        let commit = if tree == capture.tree {
            capture.commit
        } else {
            commit::neutral_commit(&session.repo, &tree, &run.base)?
        };
        let judged = JudgedState { commit, tree };
        let choices = Vec::new();
        let world = verdict.as_ref().map(|verdict| verdict.terms.settings.commands.world);
        let plan = Plan {
            run,
            candidate,
            capture,
            judged,
            tree,
            verified,
            reason,
            verdict,
            world,
            choices,
            resolution: None,
            of_target: None,
        };
        plan.say_what_stays(session);
        Ok(plan)
    }

    /// Tells the user which protected paths land as they are in the base.
    fn say_what_stays(&self, session: &Session) {
        let entry = self.verdict.as_ref().and_then(|verdict| verdict.entry(&self.candidate));
        let dropped = entry.map_or(&[][..], |entry| &entry.dropped);
        if self.judged.tree != self.capture.tree && !dropped.is_empty() {
            session.ui.note(format!(
                "as in the base, because they are protected: {}",
                dropped.join(", ")
            ));
        }
    }

    /// Marks the landing as unverified, for this reason.
    pub fn distrust(&mut self, reason: impl Into<String>) {
        self.verified = false;
        self.reason = Some(reason.into());
    }

    /// The strategy that resolved conflicts; `None` if there were no conflicts.
    pub fn strategy(&self) -> Option<&'static str> {
        self.resolution.map(|_| "newest-file-wins")
    }

    /// Describes what the landing changes on a branch whose tip was `before`: the size of the
    /// change, and its files.
    pub fn change_in_words(&self, repo: &Repo, before: &Oid) -> Result<String> {
        let attributes = &self.run.base;
        let (changes, blast) =
            diff::between(repo, attributes, before, &self.tree).changes_and_blast()?;
        if changes.is_empty() {
            return Ok("nothing that was not there already".to_owned());
        }
        let files: Vec<String> = changes.iter().map(|change| change.path.quoted()).collect();
        Ok(format!("{blast} ({})", some_of(&files)))
    }

    /// `RUN/CAND`.
    pub fn address(&self) -> String {
        format!("{}/{}", self.run.run, self.candidate)
    }

    /// The merge base of the change and the target. This is `base`, from which the attempt started,
    /// or a newer commit of the target that the attempt has merged itself.
    ///
    /// An attempt can record a merge but leave out changes of the other side. With the newer commit
    /// as merge base, the landing would then revert these changes. So both merge bases are tried.
    /// The newer commit is used only if both merges have the same result. Files in which the merge
    /// with `base` has conflicts are not compared.
    pub fn merge_base(
        &self,
        session: &Session,
        target: &ResolvedTarget,
        base: &Oid,
    ) -> Result<Oid> {
        let repo = &session.repo;
        // If changes to protected paths were dropped, the judged tree has these paths as in the
        // base. The commit that the attempt merged may have other versions. With that commit as
        // merge base, landing would revert these paths.
        if self.judged.tree != self.capture.tree {
            return Ok(*base);
        }
        let message = repo.commit(&self.capture.commit)?.message;
        let Some(head) = Trailer::Head.find(&message).and_then(Oid::parse) else {
            return Ok(*base);
        };
        let merged = match repo.merge_base(&target.tip, &head)? {
            Some(merged) if merged != *base && repo.is_ancestor(base, &merged)? => merged,
            _ => return Ok(*base),
        };
        let plain = self.merge(session, target, base)?;
        let over_theirs = self.merge(session, target, &merged)?;
        let resolved = |path: &TreePath| match &plain {
            MergeResult::Conflicts(conflicts) if conflicts.stages.contains_key(path) => {
                Restore::Base
            }
            _ => Restore::Keep,
        };
        if put_back(repo, over_theirs.tree(), plain.tree(), resolved)?.tree != *over_theirs.tree() {
            return Ok(*base);
        }
        if let MergeResult::Conflicts(conflicts) = &plain {
            session.ui.note(format!(
                "{} has merged {:.10} itself; read how it resolved the conflicts in {}",
                self.address(),
                merged.as_str(),
                conflicts.in_words()
            ));
        }
        Ok(merged)
    }

    /// Merges the judged state with the target in memory, with `base` as the merge base. Judges the
    /// result with [`Plan::judge_merged`]. If there are conflicts that are not resolved, judges
    /// nothing, and returns the conflicts.
    pub fn merge_into(
        &mut self,
        session: &Session,
        target: &ResolvedTarget,
        base: &Oid,
        options: &LandOptions,
    ) -> Result<Option<Conflicts>> {
        let repo = &session.repo;
        let ours = target.state();
        if ours != base {
            match self.merge(session, target, base)? {
                MergeResult::Clean(tree) => self.tree = tree,
                MergeResult::Conflicts(conflicts) => {
                    let Some(tie) = options.newest_file_wins else { return Ok(Some(conflicts)) };
                    let began = Instant::now();
                    let sides = Sides {
                        session,
                        candidate: session.store.candidate(&self.run, &self.candidate),
                        capture: &self.capture,
                        landing: &self.judged.commit,
                        target,
                        base,
                    };
                    let resolved = newest_wins::resolve(&sides, &conflicts, tie)?;
                    let Some((tree, choices)) = resolved else { return Ok(Some(conflicts)) };
                    (self.tree, self.choices) = (tree, choices);
                    self.resolution = Some(began.elapsed());
                }
            }
        }
        // If the target's side has won every file, the merge changes no file. It is still made,
        // because it records which files lost.
        if self.choices.is_empty() && repo.commit(ours)?.tree == self.tree {
            return Err(Error::no(format!(
                "the whole change of {} is already in {}",
                self.address(),
                target.name()
            ))
            .hint("there is nothing to land"));
        }
        self.judge_merged(session, target, options)?;
        Ok(None)
    }

    /// Merges the judged state with the target. If the landing is on a fresh branch, a person may
    /// have to read the conflict markers. So the markers name HEAD instead of a commit id, and the
    /// newest capture by its ref.
    fn merge(&self, session: &Session, target: &ResolvedTarget, base: &Oid) -> Result<MergeResult> {
        let repo = &session.repo;
        let capture = &self.judged.commit;
        if !target.is_head() {
            return merge::merge(&repo.git(), base, target.state().as_str(), capture.as_str());
        }
        let full = refs::capture(&self.run.run, &self.candidate);
        let is_newest = repo.read_ref(&full)?.as_ref() == Some(capture);
        let theirs = if is_newest { full.trim_start_matches("refs/") } else { capture.as_str() };
        merge::merge(&repo.checkout(), base, "HEAD", theirs)
    }

    /// The error that the change conflicts with the target and cannot land.
    pub fn conflict_error(
        &self,
        target: &ResolvedTarget,
        base: &Oid,
        conflicts: &Conflicts,
        options: &LandOptions,
    ) -> Error {
        let name = target.name();
        let error = Error::no(format!(
            "{} conflicts with {name} in {}; nothing was changed",
            self.address(),
            conflicts.in_words()
        ));
        let error = if target.candidate.is_some() {
            error.hint(format!("spawn again from it: `git frites spawn --from {name}`"))
        } else if target.is_user_checkout() {
            error
                .hint(format!(
                    "spawn again from {name}, or go to the base and apply there: `git switch --detach {}`",
                    base.short()
                ))
                .hint(format!(
                    "or resolve them yourself on a fresh branch: `git frites apply --conflicts {}`",
                    self.address()
                ))
        } else {
            error.hint(format!("spawn again from it: `git frites spawn --base {name}`"))
        };
        error
            .hint(format!(
                "or merge {} in the worktree of {}, resolve the conflicts there, and judge again",
                target.tip.short(),
                self.address()
            ))
            .hint(match options.newest_file_wins {
                Some(_) => newest_wins::WHY_REFUSED,
                None => {
                    "or take each conflicted file whole from the side that wrote it later, which discards the \
                     other side's version: `--merge --strategy newest-file-wins`"
                }
            })
    }

    /// The message of the commit that puts the change on a branch. This is the first of the
    /// following that exists: the user's message, the message of the attempt's last commit, the
    /// first line of the attempt's prompt.
    pub fn commit_message(
        &self,
        session: &Session,
        options: &LandOptions,
    ) -> Result<CommitMessage> {
        let mut trailers = vec![
            Trailer::Run.line(format_args!("{}@{}", self.address(), self.capture.iteration)),
            Trailer::Base.line(self.run.root()),
            Trailer::Tree.line(self.tree),
        ];
        if let (true, Some(verdict)) = (self.verified, &self.verdict) {
            trailers.extend(verdict.terms.oracle.iter().map(|check| {
                let command = check.command.to_string().replace('\n', " ");
                Trailer::Oracle.line(format_args!("{}: {command}", check.stage))
            }));
            let doubt = verdict.doubt_about_attempts().map(|doubt| format!("; {doubt}"));
            let doubt = doubt.unwrap_or_default();
            trailers.extend(
                self.world.map(|world| Trailer::World.line(format_args!("{world}{doubt}"))),
            );
        }
        if !self.verified {
            trailers.push(Trailer::Oracle.line("unverified"));
            let reason = self.reason.iter().map(|reason| reason.replace('\n', " "));
            trailers.extend(reason.map(|reason| Trailer::Reason.line(reason)));
        }
        let mut paragraphs = options.message.clone();
        if paragraphs.is_empty() {
            paragraphs = self.paragraphs_of_the_attempt(session)?;
        }
        if paragraphs.is_empty() {
            paragraphs = self.default_paragraphs("Land");
        }
        let hooks = if options.no_verify { HooksToRun::NoVerify } else { HooksToRun::All };
        Ok(CommitMessage { paragraphs, trailers, hooks })
    }

    fn paragraphs_of_the_attempt(&self, session: &Session) -> Result<Vec<String>> {
        let repo = &session.repo;
        let captured = repo.commit(&self.capture.commit)?.message;
        if let Some(head) = Trailer::Head.find(&captured).and_then(Oid::parse)
            && repo.is_ancestor(&self.run.base, &head)?
        {
            return Ok(paragraphs_without_trailers(&repo.commit(&head)?.message));
        }
        let Some(prompt) = self.run.prompt(&self.candidate) else { return Ok(Vec::new()) };
        let prompt = repo.blob(prompt)?;
        let paragraphs = paragraphs_without_trailers(&String::from_utf8_lossy(&prompt));
        let first = paragraphs.first().and_then(|paragraph| paragraph.lines().next());
        Ok(first.map(|line| line.trim().to_owned()).into_iter().collect())
    }

    /// A title that begins with `verb`. If the verdict recommends this candidate, also a paragraph
    /// with the verdict's reason.
    pub fn default_paragraphs(&self, verb: &str) -> Vec<String> {
        let mut paragraphs = vec![format!("{verb} {}", self.address())];
        if let (true, Some(verdict)) = (self.verified, &self.verdict)
            && verdict.decision.recommended.as_ref() == Some(&self.candidate)
        {
            paragraphs.push(format!("{}.", verdict.decision.rationale));
        }
        paragraphs
    }
}

/// The candidate that the user named, or else the recommended one.
fn choose(
    run: &Run,
    named: Option<Name>,
    verdict: Option<&Verdict>,
    options: &LandOptions,
) -> Result<Name> {
    if let Some(name) = named {
        return Ok(name);
    }
    let Some(verdict) = verdict else {
        return Err(Error::no(format!("run {run} was not judged, so nothing is verified to land"))
            .hint(format!("judge it with `git frites judge {run}`"))
            .hint(format!(
                "or name a candidate: `git frites apply --allow-unverified {run}/{}`",
                run.candidates[0]
            )));
    };
    let decision = &verdict.decision;
    match &decision.recommended {
        Some(name) if verdict.verified() || options.allow_unverified => Ok(name.clone()),
        Some(name) => {
            let why = why_unverified(run, name, None, Some(verdict));
            Err(unverified(run, name, None, Some(verdict), &why))
        }
        None => Err(Error::no(format!("there is nothing to land: {}", decision.rationale))
            .hint(format!("`git frites status {run}` shows each candidate's state"))),
    }
}

/// The capture that lands: the iteration that the user named; or with `--judged` the judged
/// capture; or else a capture of the worktree as it is now. Fails if the worktree has changed since
/// it was judged, unless an unverified change may land.
fn capture_to_land(
    session: &Session,
    options: &LandOptions,
    candidate: CandidateRef<'_>,
    iteration: Option<u32>,
    verdict: Option<&Verdict>,
) -> Result<Capture> {
    if let Some(wanted) = iteration {
        return candidate.iteration(wanted);
    }
    let entry = verdict.and_then(|verdict| verdict.entry(candidate.name));
    let judged = entry.and_then(|entry| Some((entry.iteration?, entry.tree?)));
    if let (true, Some((iteration, _))) = (options.judged, judged) {
        return candidate.iteration(iteration);
    }
    let capture = match session.unchanged(candidate)? {
        Some(capture) => Some(capture),
        None => {
            let captured = session.capture(candidate)?;
            session.print_omissions(&captured);
            captured.capture
        }
    };
    let Some(capture) = capture else {
        return Err(Error::no(format!("{candidate} changed nothing, so there is nothing to land"))
            .hint(after_no_change(&candidate.address(), candidate.record()?.state)));
    };
    match judged {
        Some((_, tree)) if tree != capture.tree && !options.allow_unverified => {
            let changed =
                Error::no(format!("{candidate} has changed since it was judged")).hint(format!(
                    "judge it as it is now: `{}`",
                    session.store.judge_command(&candidate.run.run)
                ));
            Err(match entry.is_some_and(Entry::verified) {
                true => changed.hint(format!(
                    "or land what was judged: `git frites apply --judged {candidate}`"
                )),
                false => changed,
            })
        }
        _ => Ok(capture),
    }
}
