//! Intents: files that say what is about to happen, written before the first effect and removed
//! after the last.
//!
//! An intent whose process is gone was left by a killed command; the next command decides by it
//! what to finish and what to take back (`ops/recover.rs`).
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::atomic;
use crate::git::cli::Git;
use crate::git::landing::fresh_branch::{FreshBranch, Position};
use crate::model::candidate::Landing;
use crate::model::layout::{ACTIVE, RUN_RECORD};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::store::records::{read_toml, to_toml, write_toml};
use crate::store::{Store, remove};

/// `landings/CHECKOUT.toml`: a landing on a fresh branch, from before its first effect until it is
/// done or taken back. Each checkout has its own file, so that none forgets another's.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LandingIntent {
    /// The run.
    pub run: Name,
    /// The candidate that lands.
    pub candidate: Name,
    /// The number of its capture.
    pub iteration: u32,
    /// The fresh branch.
    pub branch: RefName,
    /// The tree that the branch will hold.
    pub tree: Oid,
    /// True if that tree passed.
    pub verified: bool,
    /// True if the change is to be committed, not only staged.
    pub commit: bool,
    /// True once recovery has removed the locks of the killed process.
    #[serde(default)]
    pub unlocked: bool,
    /// True if the landing is being undone.
    #[serde(default)]
    pub undoing: bool,
    /// The place of the checkout's HEAD before the landing.
    pub from: Position,
}

impl LandingIntent {
    /// The parts that `git/` needs. `git` is that of the checkout, and `keep` is the ref for versions
    /// that a rollback finds.
    pub fn fresh_branch<'a>(&'a self, git: &'a Git, keep: &'a RefName) -> FreshBranch<'a> {
        let LandingIntent { from, branch, tree, commit, .. } = self;
        FreshBranch { git, from, branch, tree, commit: *commit, keep }
    }
}

/// `landings/CHECKOUT.move.toml`, or `landings/candidates/RUN/CAND.toml` for a candidate's
/// worktree: a branch that is about to move with its files, from before the first effect until it
/// has moved or is back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MoveIntent {
    /// The run.
    pub run: Name,
    /// The candidate that lands, or is undone.
    pub candidate: Name,
    /// The number of its capture.
    pub iteration: u32,
    /// The candidate's state afterwards: merged or undone.
    pub landing: Landing,
    /// The branch.
    pub target: RefName,
    /// The branch's tip before.
    pub old: Oid,
    /// The branch's tip afterwards.
    pub new: Oid,
    /// The commit or tree that the files were at.
    pub files: Oid,
    /// True if what landed passed.
    pub verified: bool,
    /// A time at which its process was still alive, once recovery has removed that process's locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_after: Option<SystemTime>,
    /// The candidate whose worktree the files are in; none for the user's checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// A candidate in whose worktree its own branch moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The candidate's run.
    pub run: Name,
    /// The candidate's name.
    pub candidate: Name,
}

/// The intent of a landing, whichever way it lands. Its fields say which: the files of both are read
/// alike.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Intent {
    /// A landing on a fresh branch, or its undo.
    FreshBranch(LandingIntent),
    /// The move of a branch: a merge, or its undo.
    Move(MoveIntent),
}

impl Intent {
    /// The branch that lands.
    pub fn branch(&self) -> &RefName {
        match self {
            Intent::FreshBranch(landing) => &landing.branch,
            Intent::Move(moved) => &moved.target,
        }
    }
}

/// `runs/RUN/active`: the work that the holder of a run's lock is doing. A file without a holder
/// was left by a killed process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Active {
    /// The kind of work.
    pub phase: Phase,
    /// The names of git's administrative entries before ours were made: a damaged one that is not
    /// among them, and has the name that git would give ours, is ours.
    pub entries: Vec<String>,
}

/// The work that is under way in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Worktrees are being made: until that is done the run does not exist.
    Making,
    /// Worktrees of these candidates are being made: until that is done the run does not have them.
    Adding(Vec<Name>),
    /// Commands run in the worktrees.
    Running,
}

impl Store {
    fn landing_file(&self) -> PathBuf {
        self.dir.landing(&self.repo.checkout_key())
    }

    /// Writes the intent of a landing on a fresh branch. The caller holds the landing lock.
    pub fn begin_landing(&self, intent: &LandingIntent) -> Result<()> {
        write_toml(&self.landing_file(), intent)
    }

    /// Removes the intent of a landing that is done or taken back.
    pub fn end_landing(&self) -> Result<()> {
        delete(&self.landing_file())
    }

    fn move_file(&self, holder: Option<&Holder>) -> PathBuf {
        match holder {
            None => self.dir.checkout_move(&self.repo.checkout_key()),
            Some(Holder { run, candidate }) => self.dir.candidate_move(run, candidate),
        }
    }

    /// Writes the intent of a move. The caller holds the landing lock.
    pub fn begin_move(&self, intent: &MoveIntent) -> Result<()> {
        write_toml(&self.move_file(intent.holder.as_ref()), intent)
    }

    /// Removes the intent of a move that is done or taken back.
    pub fn end_move(&self, intent: &MoveIntent) -> Result<()> {
        delete(&self.move_file(intent.holder.as_ref()))
    }

    /// The files with intents of landings: in this checkout and in candidates' worktrees.
    pub fn landing_files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.landing_file(), self.move_file(None)];
        for run in fs::read_dir(self.dir.candidate_moves()).into_iter().flatten().flatten() {
            let moves = fs::read_dir(run.path()).into_iter().flatten().flatten();
            files.extend(moves.map(|entry| entry.path()));
        }
        // A process that was killed while it wrote one leaves a temporary file: nothing had begun.
        let is_intent = |file: &Path| file.extension().is_some_and(|extension| extension == "toml");
        files.retain(|file| is_intent(file) && file.exists());
        files
    }

    /// Reads one of [`Store::landing_files`], with the time when it was written; none if it is
    /// damaged.
    pub fn landing_intent(&self, file: &Path) -> Option<(Intent, SystemTime)> {
        Some((read_toml(file)?, written(file)))
    }

    /// Writes a run's record to its file only, and that the run is being made, before its worktrees
    /// are made. The caller holds the run's lock.
    pub fn save_intent(&self, run: &Run, active: &Active) -> Result<()> {
        let (active, record) = (to_toml(active)?, to_toml(run)?);
        let files = [(ACTIVE, active.as_str()), (RUN_RECORD, record.as_str())];
        let files = files.map(|(name, text)| (OsStr::new(name), text.as_bytes()));
        atomic::write_all(self.run_dir(&run.run).path(), &files)
    }

    /// Writes which work on a run begins. The caller holds the run's lock.
    pub fn set_active(&self, run: &Name, active: &Active) -> Result<()> {
        write_toml(&self.run_dir(run).active(), active)
    }

    /// Removes the file of [`Store::set_active`]. An attempt may have removed it, or its whole
    /// directory.
    pub fn clear_active(&self, run: &Name) -> Result<()> {
        remove(&self.run_dir(run).active())
    }

    /// True if work on a run is under way, or was killed.
    pub fn is_active(&self, run: &Name) -> bool {
        self.run_dir(run).active().exists()
    }

    /// The work that is under way in a run, or was killed; none if there is none, or its file is
    /// damaged.
    pub fn active(&self, run: &Name) -> Option<Active> {
        read_toml(&self.run_dir(run).active())
    }

    /// The run that was about to be made; none if its file was never whole.
    pub fn run_intent(&self, run: &Name) -> Option<Run> {
        read_toml(&self.run_dir(run).record())
    }
}

fn delete(file: &Path) -> Result<()> {
    fs::remove_file(file).context(|| format!("could not remove '{}'", file.display()))
}

/// The time of a file's last change; the earliest time there is if it cannot be read.
fn written(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As versions wrote them that read each kind by its file's name.
    #[test]
    fn an_intent_says_by_its_fields_how_it_lands() {
        let fresh = format!(
            "run = \"1\"\ncandidate = \"c1\"\niteration = 2\nbranch = \"refs/heads/new\"\ntree = \"{0}\"\n\
             verified = true\ncommit = true\nunlocked = true\nundoing = true\n\n\
             [from]\nbranch = \"refs/heads/main\"\ncommit = \"{0}\"\n",
            "1".repeat(40)
        );
        let Intent::FreshBranch(read) = toml::from_str(&fresh).expect("an intent") else {
            panic!("a fresh branch")
        };
        assert_eq!(to_toml(&read).expect("text"), fresh);

        let moved = MoveIntent {
            run: "1".parse().expect("a name"),
            candidate: "c1".parse().expect("a name"),
            iteration: 2,
            landing: Landing::Undone,
            target: RefName::new("refs/heads/main"),
            old: Oid::parse(&"1".repeat(40)).expect("full"),
            new: Oid::parse(&"2".repeat(40)).expect("full"),
            files: Oid::parse(&"3".repeat(40)).expect("full"),
            verified: false,
            killed_after: Some(SystemTime::UNIX_EPOCH),
            holder: Some(Holder {
                run: "2".parse().expect("a name"),
                candidate: "c2".parse().expect("a name"),
            }),
        };
        let text = to_toml(&moved).expect("text");
        let Intent::Move(read) = toml::from_str(&text).expect("an intent") else {
            panic!("a move")
        };
        assert_eq!(to_toml(&read).expect("text"), text);
    }
}
