//! The data of `status`, and its JSON document.
use serde_json::{Value, json};

use crate::error::Result;
use crate::git::diff::ChangeStatus;
use crate::git::repo::Repo;
use crate::model::blast::Blast;
use crate::model::candidate::{Candidate, Capture, Landing};
use crate::model::name::Name;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::usage::UsageSum;
use crate::ops::board;
use crate::ops::history::{self, DiskUse};
use crate::ops::session::ReadSession;
use crate::store::candidate::CandidateRef;
use crate::ui::{comparison, json};

/// A candidate in the state of its last capture.
pub struct Member {
    pub record: Candidate,
    /// The candidate's newest capture.
    pub capture: Option<Capture>,
    /// The blast radius of the capture.
    pub blast: Blast,
    /// True if the candidate's worktree was removed by hand.
    pub gone: bool,
}

/// A run, and the records of its candidates.
pub struct ShownRun {
    pub run: Run,
    /// The only candidate to show, if the user named one.
    pub only: Option<Name>,
    /// All candidates of the run.
    pub members: Vec<Member>,
}

impl ShownRun {
    pub fn shown(&self) -> impl Iterator<Item = &Member> {
        let only = self.only.as_ref();
        self.members.iter().filter(move |member| only.is_none_or(|o| *o == member.record.candidate))
    }
}

/// The branch on which a candidate's landing left conflicts, if they are unresolved.
pub fn conflicts(session: &ReadSession, candidate: &Candidate) -> Result<Option<RefName>> {
    if !matches!(candidate.landing, Landing::Pending | Landing::Discarded) {
        return Ok(None);
    }
    let left = session.store.left_conflicts(&candidate.run, &candidate.candidate)?;
    Ok(left.map(|left| left.branch))
}

/// The JSON object of a run with its candidates.
pub fn run(session: &ReadSession, one: &ShownRun) -> Result<Value> {
    let ShownRun { run, only, members } = one;
    let mut candidates = Vec::new();
    for member in one.shown() {
        let record = &member.record;
        let candidate = session.store.candidate(run, &record.candidate);
        let mut object = json::record(record);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("version");
            fields.remove("run");
            fields.remove("remaking");
        }
        let capture = member.capture.as_ref();
        let doing = board::running(candidate).map(|r| {
            json!({ "stage": r.what, "seconds": r.elapsed.as_secs_f64(), "last_line": r.last_line })
        });
        let more = json!({
            "branch": candidate.branch().short(),
            "conflicts": conflicts(session, record)?.as_ref().map(|branch| branch.short()),
            "iteration": capture.map(|c| c.iteration), "capture": capture.map(|c| c.commit),
            "tree": capture.map(|c| c.tree), "lines": member.blast.lines,
            "files_touched": member.blast.files, "doing": doing, "bytes": record.bytes_now(),
            "kept": record.kept, "gone": member.gone, "task": run.task_of(&record.candidate),
        });
        json::extend(&mut object, more);
        if only.is_some() {
            object["iterations"] = history_as_json(&session.repo, candidate)?;
        }
        if let Some(usage) = UsageSum::of(&record.usage) {
            object["usage"] = json::record(&usage);
            object["usage"]["rounds"] = json::record(&record.usage);
        }
        json::put_file(&mut object, "worktree", &candidate.worktree());
        candidates.push(object);
    }
    let disk = DiskUse::stored(&session.store, run, members.iter().map(|member| &member.record));
    let verdict = session.store.verdict(&run.run)?;
    let usage = UsageSum::of(members.iter().flat_map(|member| &member.record.usage));
    Ok(json!({
        "run": run.run, "base": run.base, "created": run.created, "command": run.command,
        "task": run.task, "parent": json::record(&run.parent), "candidates": candidates,
        "verdict": verdict.as_ref().map(comparison::as_json), "usage": json::record(&usage),
        "disk": {
            "bytes": disk.total(), "worktrees": disk.worktrees, "records": disk.rest.records,
            "objects": disk.rest.objects, "measured": disk.rest.measured,
        },
    }))
}

/// A candidate's captures as JSON, each with the changes since the capture before.
pub fn history_as_json(repo: &Repo, candidate: CandidateRef<'_>) -> Result<Value> {
    let one = |one: history::Iteration| {
        let (insertions, deletions) = one.lines();
        let mut object = json!({
            "iteration": one.capture.iteration, "commit": one.capture.commit, "tree": one.capture.tree,
            "time": jiff::Timestamp::from_second(one.time).ok(), "files_touched": one.changes.len(),
            "insertions": insertions, "deletions": deletions,
        });
        if let Some(message) = &one.message {
            object["message"] = json!(message);
        }
        let kinds: [(&str, &[ChangeStatus]); 3] = [
            ("created", &[ChangeStatus::Added]),
            ("modified", &[ChangeStatus::Modified, ChangeStatus::TypeChanged]),
            ("deleted", &[ChangeStatus::Deleted]),
        ];
        for (key, statuses) in kinds {
            object[key] = one.stepped(statuses).map(json::path).collect();
        }
        object
    };
    Ok(history::iterations(repo, candidate)?.into_iter().map(one).collect())
}
