//! What lands, on disk: the intents of landings that are under way, so that the next command can finish
//! or take back what a killed one left, and what is remembered of those that are done.
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::tree;
use crate::git::cli::Git;
use crate::git::landing::advance;
use crate::git::landing::fresh_branch::{self, Interrupted, Position};
use crate::git::repo::Repo;
use crate::git::{refs, worktree};
use crate::model::candidate::{Candidate, Landing};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::trailer::Trailer;
use crate::store::Store;
use crate::store::events::{BranchMove, Event, MoveDetails};
use crate::store::records::{read_toml, write_toml};

/// `landings/CHECKOUT.toml`: a landing in a checkout, from before its first effect until it is done or
/// withdrawn. One for each checkout, so that none forgets another's.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LandingIntent {
    /// What lands.
    pub run: Name,
    /// What of it.
    pub candidate: Name,
    /// Which capture.
    pub iteration: u32,
    /// Where.
    pub branch: RefName,
    /// What the branch will hold.
    pub tree: Oid,
    /// Whether it passed.
    pub verified: bool,
    /// Whether a commit was asked for.
    pub commit: bool,
    /// Whether healing has removed the locks of the killed process.
    #[serde(default)]
    pub unlocked: bool,
    /// Whether it is being taken back.
    #[serde(default)]
    pub undoing: bool,
    /// Where the checkout was.
    pub from: Position,
}

impl LandingIntent {
    /// As git's room takes it.
    pub fn as_landing<'a>(&'a self, keep: &'a RefName) -> fresh_branch::Landing<'a> {
        let LandingIntent { from, branch, tree, commit, .. } = self;
        fresh_branch::Landing { from, branch, tree, commit: *commit, keep }
    }
}

impl Store {
    fn landing_intent(&self) -> PathBuf {
        self.landings().join(format!("{}.toml", self.repo.checkout_key()))
    }

    /// Writes the intent of a landing. The caller holds the landing lock.
    pub fn begin_landing(&self, intent: &LandingIntent) -> Result<()> {
        write_toml(&self.landing_intent(), intent)
    }

    /// The landing is done, or withdrawn.
    pub fn end_landing(&self) -> Result<()> {
        let file = self.landing_intent();
        fs::remove_file(&file).context(|| format!("could not remove '{}'", file.display()))
    }

    /// Notes that a landing is complete. The caller holds the landing lock.
    pub fn record_landing(&self, landing: &LandingIntent, commit: Option<&Oid>) -> Result<()> {
        let mark = refs::landing(&landing.run, &landing.candidate);
        let marked = self.repo.read_ref(&mark)?;
        if marked.as_ref() != commit {
            self.repo.update_ref(&mark, commit, marked.as_ref(), "apply")?;
        }
        write_toml(&self.landed_file(&landing.run, &landing.candidate), landing)?;
        if let Some(run) = self.run(&landing.run)? {
            let _lock = self.lock_candidate(&run.run, &landing.candidate)?;
            let mut candidate = self.candidate(&run, &landing.candidate).record()?;
            candidate.landing = Landing::Landed;
            candidate.landing_commit = commit.cloned();
            candidate.landing_branch = Some(landing.branch.clone());
            candidate.landing_time = Some(Timestamp::now());
            self.save_candidate(&candidate)?;
        }
        let event = Event::Landed {
            candidate: landing.candidate.clone(),
            iteration: landing.iteration,
            branch: landing.branch.short().to_owned(),
            tree: landing.tree,
            commit: commit.copied(),
            verified: landing.verified,
        };
        self.record_event(&landing.run, &event)
    }

    /// How a candidate landed on a fresh branch; none if that is not known any more.
    pub fn landed(&self, candidate: &Candidate) -> Option<LandingIntent> {
        read_toml(&self.landed_file(&candidate.run, &candidate.candidate))
    }

    /// `runs/RUN/CAND/landed.toml`: what the intent of its last landing on a fresh branch said.
    fn landed_file(&self, run: &Name, candidate: &Name) -> PathBuf {
        self.candidate_dir(run, candidate).join("landed.toml")
    }

    /// Notes that a fresh branch was taken back. The caller holds the landing lock.
    pub fn record_withdrawn(&self, landed: &Candidate, branch: &RefName) -> Result<()> {
        let (run, name) = (&landed.run, &landed.candidate);
        let mark = refs::landing(run, name);
        if let Some(marked) = self.repo.read_ref(&mark)? {
            self.repo.update_ref(&mark, None, Some(&marked), "undo")?;
        }
        let _lock = self.lock_candidate(run, name)?;
        let landing_time = Some(Timestamp::now());
        let undone = Candidate {
            landing: Landing::Undone,
            landing_commit: None,
            landing_time,
            ..landed.clone()
        };
        self.save_candidate(&undone)?;
        let event = Event::Undone {
            candidate: name.clone(),
            branch: branch.short().to_owned(),
            moved: None,
        };
        self.record_event(run, &event)
    }

    /// Finishes or takes back a landing whose process was killed; gives what to tell.
    pub(super) fn heal_landing(&self) -> Result<Option<String>> {
        let file = self.landing_intent();
        if !file.exists() {
            return Ok(None);
        }
        let Some(_lock) = self.try_lock_landing()? else { return Ok(None) };
        let Some(mut intent) = read_toml::<LandingIntent>(&file) else { return Ok(None) };
        if !intent.unlocked {
            let since =
                fs::metadata(&file).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            fresh_branch::remove_locks(&self.repo, &intent.branch, since);
            intent.unlocked = true;
            write_toml(&file, &intent)?;
        }
        let branch = intent.branch.short();
        let keep = refs::withdrawn(&intent.run);
        let said = match fresh_branch::interrupted(&self.repo, &intent.as_landing(&keep))? {
            Interrupted::NotBegun | Interrupted::Withdrawn if intent.undoing => {
                if let Some(run) = self.run(&intent.run)? {
                    let candidate = self.candidate(&run, &intent.candidate).record()?;
                    self.record_withdrawn(&candidate, &intent.branch)?;
                }
                Some(format!("the interrupted undoing of '{branch}' is finished"))
            }
            Interrupted::Done if intent.undoing => None,
            Interrupted::NotBegun => None,
            Interrupted::Done => {
                self.record_landing(&intent, self.repo.head().filter(|_| intent.commit).as_ref())?;
                Some(format!("the interrupted landing on '{branch}' was complete"))
            }
            Interrupted::Unmerged => {
                Some(format!("the interrupted landing on '{branch}' has left its conflicts there"))
            }
            Interrupted::Withdrawn => Some(format!(
                "the interrupted landing on '{branch}' is taken back; your checkout is as it was"
            )),
            Interrupted::Edited(path) => {
                return Ok(Some(format!(
                    "a landing on '{branch}' was interrupted, and '{}' was edited since: put your edits aside and run `git switch -f` to your branch",
                    path.quoted()
                )));
            }
        };
        self.end_landing()?;
        Ok(said)
    }
}

/// `landings/CHECKOUT.move.toml`, or `landings/candidates/RUN/CAND.toml` for a candidate's worktree: a branch
/// that is about to move in a checkout, from before its first effect until it is done or taken back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MoveIntent {
    /// What lands, or is taken back.
    pub run: Name,
    /// What of it.
    pub candidate: Name,
    /// Which capture.
    pub iteration: u32,
    /// What it is when this is done: merged or undone.
    pub landing: Landing,
    /// The branch, by its full name.
    pub target: RefName,
    /// Where it was.
    pub old: Oid,
    /// Where it goes.
    pub new: Oid,
    /// What the files were: a commit or a tree.
    pub files: Oid,
    /// Whether what landed passed.
    pub verified: bool,
    /// When its process was still alive, once healing has removed its locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_after: Option<SystemTime>,
    /// The candidate whose worktree that is; none for the user's checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// A candidate, where the branch is its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its run.
    pub run: Name,
    /// Its name.
    pub candidate: Name,
}

impl Store {
    fn move_file(&self, holder: Option<&Holder>) -> PathBuf {
        match holder {
            None => self.landings().join(format!("{}.move.toml", self.repo.checkout_key())),
            Some(Holder { run, candidate }) => self
                .landings()
                .join("candidates")
                .join(run.as_str())
                .join(format!("{candidate}.toml")),
        }
    }

    /// Writes the intent of a move. The caller holds the landing lock.
    pub fn begin_move(&self, intent: &MoveIntent) -> Result<()> {
        write_toml(&self.move_file(intent.holder.as_ref()), intent)
    }

    /// The move is done, or taken back.
    pub fn end_move(&self, intent: &MoveIntent) -> Result<()> {
        let file = self.move_file(intent.holder.as_ref());
        fs::remove_file(&file).context(|| format!("could not remove '{}'", file.display()))
    }

    /// Notes that a branch has moved. The caller holds the landing lock.
    pub fn record_move(&self, moved: &MoveIntent, details: MoveDetails) -> Result<()> {
        if let Some(run) = self.run(&moved.run)? {
            let _lock = self.lock_candidate(&run.run, &moved.candidate)?;
            // It moves with the branch; but git writes one after the other, and a kill may fall between.
            let mark = refs::landing(&moved.run, &moved.candidate);
            let marked = self.repo.read_ref(&mark)?;
            if marked.as_ref() != Some(&moved.new) {
                self.repo.update_ref(&mark, Some(&moved.new), marked.as_ref(), "apply")?;
            }
            let mut candidate = self.candidate(&run, &moved.candidate).record()?;
            candidate.landing = moved.landing;
            candidate.landing_commit = Some(moved.new);
            candidate.landing_branch = Some(moved.target.clone());
            candidate.landing_time = Some(Timestamp::now());
            self.save_candidate(&candidate)?;
        }
        let candidate = moved.candidate.clone();
        let branch = moved.target.short().to_owned();
        let branch_move = BranchMove {
            iteration: moved.iteration,
            from: moved.old,
            commit: moved.new,
            verified: moved.verified,
            details,
        };
        let event = match moved.landing {
            Landing::Undone => Event::Undone { candidate, branch, moved: Some(branch_move) },
            _ => Event::Merged { candidate, branch, moved: branch_move },
        };
        self.record_event(&moved.run, &event)
    }

    /// Finishes or takes back moves whose process was killed: here, and in candidates' worktrees.
    pub(super) fn heal_moves(&self) -> Result<Vec<String>> {
        let mut files = vec![self.move_file(None)];
        let directories =
            fs::read_dir(self.landings().join("candidates")).into_iter().flatten().flatten();
        let below =
            directories.flat_map(|run| fs::read_dir(run.path()).into_iter().flatten().flatten());
        files.extend(below.map(|e| e.path()));
        files.retain(|file| file.exists());
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let Some(_lock) = self.try_lock_landing()? else { return Ok(Vec::new()) };
        let mut said = Vec::new();
        for file in files {
            let Some(mut intent) = read_toml::<MoveIntent>(&file) else { continue };
            said.push(self.heal_move(&mut intent).unwrap_or_else(|error| {
                let branch = intent.target.short();
                format!(
                    "a landing on '{branch}' was interrupted, and is not put right: {}",
                    error.message
                )
            }));
        }
        Ok(said)
    }

    fn heal_move(&self, intent: &mut MoveIntent) -> Result<String> {
        let target = intent.target.clone();
        let branch = target.short();
        let Some(git) = self.git_of(intent.holder.as_ref())? else {
            self.end_move(intent)?;
            return Ok(format!(
                "an interrupted landing on '{branch}' is forgotten: its worktree is gone"
            ));
        };
        let (git, whose) = match &intent.holder {
            None => (git, "your checkout".to_owned()),
            Some(holder) => (git, format!("the worktree of {}/{}", holder.run, holder.candidate)),
        };
        if intent.killed_after.is_none() {
            let file = self.move_file(intent.holder.as_ref());
            let since =
                fs::metadata(&file).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            advance::remove_locks(&self.repo, &git, &target, since);
            intent.killed_after = Some(since);
            self.begin_move(intent)?;
        }
        let MoveIntent { new, files, .. } = &*intent;
        let since = intent.killed_after.unwrap_or(SystemTime::UNIX_EPOCH);
        let tip = self.repo.read_ref(&target)?;
        let moved = match &tip {
            Some(tip) => self.repo.is_ancestor(new, tip)?,
            None => false,
        };
        let said = if moved {
            if tip.as_ref() == Some(new) {
                advance::finish(&git, new, since)?;
            }
            self.record_move(intent, MoveDetails::default())?;
            format!("the interrupted landing on '{branch}' was complete")
        } else {
            if let Some(path) = advance::take_back(&self.repo, &git, files, new, since)? {
                return Ok(format!(
                    "a landing on '{branch}' was interrupted, and '{}' was edited since: put your edits aside, and the next command takes it back",
                    path.quoted()
                ));
            }
            format!("the interrupted landing on '{branch}' is taken back; {whose} is as it was")
        };
        self.end_move(intent)?;
        Ok(said)
    }

    /// git in the user's checkout, or in a candidate's worktree; none if that is gone.
    pub fn git_of(&self, holder: Option<&Holder>) -> Result<Option<Git>> {
        let Some(holder) = holder else { return Ok(Some(self.repo.checkout())) };
        let Some(run) = self.run(&holder.run)? else { return Ok(None) };
        let path = self.candidate(&run, &holder.candidate).worktree();
        let there = tree::is_real_directory(&self.worktrees(run.worktree_root.as_deref()), &path);
        let admin = worktree::admin_of(&self.repo, &path)?.filter(|_| there);
        Ok(admin.map(|admin| worktree::git(&admin, &path)))
    }
}

/// The fresh branch at a commit: the one that is called as ours are, or one that the user named.
fn fresh_branch_at(repo: &Repo, run: &Name, commit: &Oid) -> Result<Option<RefName>> {
    let own = refs::apply_branch(run);
    let branches = repo.refs_under("refs/heads/")?;
    let at = branches
        .into_iter()
        .filter(|(name, tip)| tip == commit && !name.starts_with("refs/heads/frites/run/"));
    Ok(at.map(|(name, _)| name).min_by_key(|name| *name != own))
}

/// What the commit that a landing ended with tells of it: for records that are lost, or never were here.
pub(super) fn landing_told_by(repo: &Repo, candidate: &mut Candidate) -> Result<()> {
    let Some(commit) = repo.read_ref(&refs::landing(&candidate.run, &candidate.candidate))? else {
        return Ok(());
    };
    if candidate.landing_commit.as_ref() == Some(&commit) {
        return Ok(());
    }
    let read = repo.commit(&commit)?;
    let into = Trailer::Into.find(&read.message).map(RefName::of_branch);
    candidate.landing = match (Trailer::Undone.find(&read.message), &into) {
        (Some(_), _) => Landing::Undone,
        (None, Some(_)) => Landing::Merged,
        (None, None) => Landing::Landed,
    };
    candidate.landing_branch = match into {
        Some(into) => Some(into),
        None => fresh_branch_at(repo, &candidate.run, &commit)?,
    };
    candidate.landing_time = Timestamp::from_second(read.time).ok();
    candidate.landing_commit = Some(commit);
    Ok(())
}
