//! The event log. Each line is one JSON object, which is appended with one write after the event
//! has happened.
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{Error, IfExists, IoContext, Result};
use crate::fs::regular;
use crate::model::candidate::State;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::{Parent, Run};
use crate::model::verdict::DecisionKind;

/// An event, as `schema/` describes it. The log adds the run, the time and the version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run was made.
    Spawned {
        /// The commit that the run starts from.
        base: Oid,
        candidates: Vec<Name>,
        /// The candidate from which the run was spawned, if any.
        parent: Option<Parent>,
        /// The id of the run's task.
        task: Option<String>,
    },
    /// A candidate's command ended, or could not start.
    Ended {
        candidate: Name,
        /// The candidate's state afterwards.
        state: State,
        /// How the command ended.
        #[serde(flatten)]
        how: HowEnded,
    },
    /// An interrupted run goes on.
    Resumed {
        /// The candidates whose commands run again.
        candidates: Vec<Name>,
    },
    /// A further round began: a command was started in a candidate's worktree after an earlier one.
    Round {
        candidate: Name,
        /// The command. Placeholders are not filled in. Bytes that are not UTF-8 are replaced.
        command: Vec<String>,
    },
    /// Candidates were added to an existing run.
    Added {
        candidates: Vec<Name>,
        /// The tree that their worktrees began with; `None` for the tree of the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<Oid>,
    },
    /// A synthesis was added: a candidate that integrates others.
    Synthesis {
        candidate: Name,
        /// The candidates that it integrates.
        drew_on: Vec<Name>,
    },
    /// A new state of a candidate was stored.
    Captured {
        candidate: Name,
        iteration: u32,
        /// The capture's commit.
        commit: Oid,
        /// The capture's tree.
        tree: Oid,
        /// The number of changed lines since the base.
        lines: u64,
        /// The number of changed files since the base.
        files: u64,
        /// The user's message for the capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A verdict was reached.
    Judged {
        /// The rule that decided.
        decision: DecisionKind,
        /// The recommended candidate.
        recommended: Option<Name>,
        /// The reason, as a sentence.
        rationale: String,
        /// The failing tests of each candidate that has failing tests.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        failing_tests: BTreeMap<Name, Vec<String>>,
    },
    /// A candidate was judged alone, without a verdict over the run.
    Outcome {
        candidate: Name,
        /// True if the candidate passed.
        passed: bool,
        /// True if a command could not tell (exit code 125).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        skipped: bool,
    },
    /// A candidate landed on a fresh branch.
    Landed {
        candidate: Name,
        iteration: u32,
        /// The short name of the branch.
        branch: String,
        /// The branch's tree.
        tree: Oid,
        /// The commit that landed; `None` if the change was only staged.
        commit: Option<Oid>,
        /// True if the oracle commands passed on that tree.
        verified: bool,
    },
    /// Conflicts were left on a fresh branch.
    Conflicts {
        candidate: Name,
        iteration: u32,
        /// The short name of the branch.
        branch: String,
    },
    /// A candidate was merged.
    Merged {
        candidate: Name,
        /// The short name of the branch.
        branch: String,
        /// The move of the branch.
        #[serde(flatten)]
        moved: BranchMove,
    },
    /// A merge failed, and changed nothing.
    MergeFailed {
        candidate: Name,
        iteration: u32,
        /// The short name of the branch into which the candidate was to be merged.
        branch: String,
        /// The reason, as the user saw it.
        reason: String,
    },
    /// A landing was taken back: a merge was reverted, or a fresh branch deleted.
    Undone {
        candidate: Name,
        /// The short name of the branch.
        branch: String,
        /// The move of the branch; `None` if the branch was deleted.
        #[serde(flatten)]
        moved: Option<BranchMove>,
    },
    /// A worktree was removed.
    Cleaned {
        candidate: Name,
        /// The disk space that was freed, in bytes.
        bytes: u64,
    },
    /// A candidate was marked as kept for review.
    Kept {
        /// The candidate.
        candidate: Name,
    },
    /// A candidate is no longer marked as kept.
    Released {
        /// The candidate.
        candidate: Name,
    },
    /// A run was removed with all its records and captures.
    Forgotten {
        /// The attempt whose command removed the run, as `RUN/CAND`; `None` if a person removed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A run or a candidate was bound to another task, or to none any more.
    Bound {
        /// The candidate; `None` if the run was bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        candidate: Option<Name>,
        /// The new task; `None` if there is none any more.
        task: Option<String>,
        /// The task before; `None` if there was none.
        before: Option<String>,
    },
    /// Something changed outside the worktrees while commands ran.
    Escaped {
        /// The number of differences.
        count: usize,
        /// True if oracle commands ran; false if commands of candidates ran.
        #[serde(default)]
        judging: bool,
        /// The candidate that was being judged, if that is certain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        candidate: Option<Name>,
        /// The first differences; `count` is the number of all of them.
        differences: Vec<Value>,
    },
    /// A person accepted changes of the configuration.
    Trusted {
        /// The changes, in words.
        differences: Vec<String>,
    },
}

/// How a candidate's command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HowEnded {
    /// The command ran.
    Ran {
        /// The command's exit code.
        exit_code: Option<i32>,
        /// The signal that ended the command.
        signal: Option<i32>,
        /// True if the command left processes behind.
        leaky: bool,
        /// The command's duration, in seconds.
        seconds: f64,
    },
    /// The command never started.
    NotStarted {
        /// The reason.
        reason: String,
    },
}

/// The move of a branch by a merge, or by a commit that reverts a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BranchMove {
    /// The iteration number of the capture that was merged.
    pub iteration: u32,
    /// The branch's tip before the move.
    pub from: Oid,
    /// The branch's tip after the move.
    pub commit: Oid,
    /// True if the oracle commands passed on the merged tree.
    pub verified: bool,
    /// The details that only the process that moves the branch knows.
    #[serde(flatten)]
    pub details: MoveDetails,
}

/// The details of a move that are lost if its process is killed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MoveDetails {
    /// The conflicts that a strategy has resolved, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Value>,
    /// The strategy that has resolved the conflicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The time that resolving the conflicts took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution_seconds: Option<f64>,
    /// The merge that was reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Oid>,
    /// The landings on the branch after the reverted merge. Reverting the merge does not undo them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Vec<String>>,
}

/// Appends one event, together with the task of its run or candidate. `record` is the record of the
/// run.
///
/// Writers need no lock. Each line is one `write` to a file that is opened for appending. No other
/// writer can write into the middle of it (GIT-FACTS, "Processes").
pub fn append(file: &Path, run: &Name, record: Option<&Run>, event: &Event) -> Result<()> {
    let mut object = match serde_json::to_value(event) {
        Ok(Value::Object(object)) => object,
        Ok(_) => Map::new(),
        Err(e) => return Err(Error::internal(format!("an event cannot be written as JSON: {e}"))),
    };
    object.insert("version".into(), json!(crate::model::FORMAT));
    object.insert("time".into(), json!(jiff::Timestamp::now().to_string()));
    object.insert("run".into(), json!(run));
    let task = record.and_then(|record| {
        let candidate = object.get("candidate").and_then(Value::as_str);
        match candidate.and_then(|name| name.parse().ok()) {
            Some(name) => record.task_of(&name),
            None => record.task.as_deref(),
        }
    });
    if let (Some(task), false) = (task, object.contains_key("task")) {
        object.insert("task".into(), json!(task));
    }
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).could_not("write", file)?;
    }
    let mut log = regular::open_own_to_write(file, true).could_not("write", file)?;
    let mut line = format!("{}\n", Value::Object(object));
    if ends_mid_line(&mut log).could_not("write", file)? {
        // The last line is incomplete, because a writer was killed or the disk was full. So a new
        // line begins.
        line.insert(0, '\n');
    }
    log.write_all(line.as_bytes()).could_not("write", file)
}

/// Reads all events, oldest first. They are not checked, although an attempt can write to the log.
/// Lines that are not JSON objects, such as incomplete lines, are left out.
pub fn read(file: &Path) -> Result<Vec<Map<String, Value>>> {
    let bytes = regular::read(file).if_exists().could_not("read", file)?.unwrap_or_default();
    Ok(bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Reads the events of one run, oldest first. Events that this version does not know are left out.
pub fn read_of(file: &Path, run: &Name) -> Result<Vec<Event>> {
    let mut all = read(file)?;
    all.retain(|event| event.get("run").and_then(Value::as_str) == Some(run.as_str()));
    let events = all.into_iter().map(|event| serde_json::from_value(Value::Object(event)));
    Ok(events.filter_map(std::result::Result::ok).collect())
}

fn ends_mid_line(log: &mut fs::File) -> io::Result<bool> {
    if log.metadata()?.len() == 0 {
        return Ok(false);
    }
    log.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    log.read_exact(&mut last)?;
    Ok(last[0] != b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    #[test]
    fn an_event_without_optional_parts_is_written_as_before() {
        let event = Event::Ended {
            candidate: name("c1"),
            state: State::Failed,
            how: HowEnded::Ran { exit_code: Some(3), signal: None, leaky: false, seconds: 0.5 },
        };
        let value = serde_json::to_value(&event).expect("JSON");
        let expected = json!({
            "event": "ended", "candidate": "c1", "state": "failed",
            "exit_code": 3, "signal": null, "leaky": false, "seconds": 0.5,
        });
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<Event>(value).expect("an event"), event);
        let undone = Event::Undone { candidate: name("c1"), branch: "fix".into(), moved: None };
        let value = serde_json::to_value(&undone).expect("JSON");
        assert_eq!(value, json!({ "event": "undone", "candidate": "c1", "branch": "fix" }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_event_reads_back_whatever_lies_before_it(
            garbage in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(b'[')], 0..40),
            words in prop::collection::vec(any::<String>(), 0..4),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let log = directory.path().join("events.jsonl");
            fs::write(&log, &garbage).expect("a file");
            let run = name("fix");
            let events = [
                Event::Trusted { differences: words.clone() },
                Event::Forgotten { by: words.first().cloned() },
            ];
            for event in &events {
                append(&log, &run, None, event).expect("appended");
            }
            let read = read(&log).expect("readable");
            for (written, read) in events.iter().zip(&read[read.len() - 2..]) {
                prop_assert_eq!(&read["run"], &json!("fix"));
                let read: Event = serde_json::from_value(Value::Object(read.clone())).expect("an event");
                prop_assert_eq!(&read, written);
            }
            prop_assert!(fs::read(&log).expect("readable").starts_with(&garbage), "nothing is overwritten");
        }
    }
}
