//! The agents of a run that have reported that they cannot go on, because of their account or of
//! their environment. No further command of these agents is started.
use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::Mutex;

use crate::agents;
use crate::error::Result;
use crate::model::agent_stop::AgentStop;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::run::Run;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::process::{last_lines, last_words};
use crate::store::candidate::CandidateRef;

/// The reason is searched for in this many lines at the end of an agent's output. Earlier lines are
/// about the agent's work, and could match by chance.
const LINES: usize = 20;

/// The agents that cannot go on, each with the reason that its output gave since the commands of
/// the run began.
#[derive(Default)]
pub struct StoppedAgents(Mutex<BTreeMap<Name, AgentStop>>);

impl StoppedAgents {
    /// The reason why an agent cannot go on, if the end of its output gives one. Does not store it.
    pub fn reason_in_log(session: &Session, agent: Option<&Name>, log: &Path) -> Option<AgentStop> {
        let patterns = agents::stop_patterns(&session.config, agent?);
        patterns.find(&last_words(log, LINES)).or_else(|| patterns.find(&last_lines(log, LINES)))
    }

    /// Sets the record's state to `limited`, because the candidate's agent cannot go on. Keeps the
    /// reason, so that the agent is not started for other candidates.
    pub fn mark(&self, agent: Option<&Name>, record: &mut Candidate, stop: &AgentStop) {
        set_limited(record, stop);
        if let Some(agent) = agent {
            let mut all = self.0.lock();
            all.entry(agent.clone()).or_insert_with(|| stop.clone());
        }
    }

    /// If the agent cannot go on, marks the candidate as not started, and returns the candidate.
    /// Returns `None` if the agent can be started.
    pub fn refuse(
        &self,
        session: &Session,
        candidate: CandidateRef<'_>,
        agent: Option<&Name>,
    ) -> Result<Option<Captured>> {
        let all = self.0.lock();
        let Some((agent, stop)) = agent.and_then(|agent| all.get_key_value(agent)) else {
            return Ok(None);
        };
        let record = candidate.update(|record| set_limited(record, stop))?;
        let why = record.why_limited(agent);
        session.ui.note(format!("{candidate}: not started: {why}"));
        session.stored(candidate).map(Some)
    }
}

fn set_limited(record: &mut Candidate, stop: &AgentStop) {
    record.state = State::Limited;
    record.reason = Some(stop.line.clone());
    record.end.resets.clone_from(&stop.resets);
    record.end.fault = stop.fault;
}

/// The reason why an agent could not go on in a run, in words; `None` if no candidate of the run is
/// `limited` because of this agent.
pub fn why_stopped(session: &Session, run: &Run, agent: &Name) -> Result<Option<String>> {
    for candidate in session.store.candidates(run) {
        let assigned = run.agents.get(candidate.name).and_then(|a| a.agent.as_ref());
        let record = candidate.record()?;
        if assigned == Some(agent) && record.state == State::Limited {
            return Ok(Some(record.why_limited(agent)));
        }
    }
    Ok(None)
}
