//! The agents of a run that told that they may do no more for a while: no further command of theirs is
//! started.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::agents;
use crate::error::Result;
use crate::model::candidate::{Candidate, State};
use crate::model::limit::{self, AgentLimit};
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::process::{last_lines, last_words};
use crate::store::candidate::CandidateRef;

/// The last lines of an agent's output in which its limit is sought: what it wrote before is its work.
const LINES: usize = 20;

/// The limits that agents have told since the commands of a run began.
#[derive(Default)]
pub struct AgentLimits(Mutex<BTreeMap<Name, AgentLimit>>);

impl AgentLimits {
    /// The limit that an agent told at the end of its output, if it did. Nothing is remembered.
    pub fn told(session: &Session, agent: Option<&Name>, log: &Path) -> Option<AgentLimit> {
        let patterns = agents::limit_patterns(&session.config, agent?);
        limit::find(&last_words(log, LINES), &patterns)
            .or_else(|| limit::find(&last_lines(log, LINES), &patterns))
    }

    /// Marks a candidate whose agent came to its limit, so that no other of that agent is started.
    pub fn mark(&self, agent: Option<&Name>, record: &mut Candidate, told: &AgentLimit) {
        set_limited(record, told);
        if let Some(agent) = agent {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(agent.clone()).or_insert_with(|| told.clone());
        }
    }

    /// Marks a candidate that is not to be started, because its agent is at its limit; none if it can
    /// be started.
    pub fn refuse(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
        agent: Option<&Name>,
    ) -> Result<Option<Captured>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((agent, told)) = agent.and_then(|agent| all.get_key_value(agent)) else {
            return Ok(None);
        };
        candidate.update(|record| set_limited(record, told))?;
        session.ui.note(format!("{candidate}: not started: the agent '{agent}' is at its limit"));
        session.stored(candidate).map(Some)
    }
}

fn set_limited(record: &mut Candidate, told: &AgentLimit) {
    record.state = State::Limited;
    record.reason = Some(told.line.clone());
    record.resets.clone_from(&told.resets);
}

/// True if an agent came to its limit in a run, and was not started again since.
pub fn is_limited(session: &Session, run: &Run, agent: &Name) -> Result<bool> {
    for candidate in session.store.candidates(run) {
        let assigned = run.agents.get(candidate.name).and_then(|a| a.agent.as_ref());
        if assigned == Some(agent) && candidate.record()?.state == State::Limited {
            return Ok(true);
        }
    }
    Ok(false)
}
