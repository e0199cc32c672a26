//! The reasons why an agent could not work, as far as they can be seen without starting it.
use crate::agents::built_in::BuiltInAgent;
use crate::model::agent_stop::AgentFault;
use crate::ops::agent_state::users::UsersState;

/// Whether the user has a login for an agent; `None` if nobody can tell.
pub fn is_logged_in(agent: &'static BuiltInAgent, users: &UsersState) -> Option<bool> {
    let mut files = agent.state.iter().flat_map(|state| users.logins(state)).peekable();
    if agent.login_variables.is_empty() || files.peek().is_none() {
        return None;
    }
    let has_variable = agent.login_variables.iter().any(|name| users.has(name));
    Some(has_variable || files.any(|(file, _)| file.is_file()))
}

/// The faults that the agent's command line meets in this environment.
pub fn faults(agent: &'static BuiltInAgent, users: &UsersState) -> Vec<AgentFault> {
    let mut found = Vec::new();
    let refuses_root = agent.root_variable.is_some_and(|variable| !users.has(variable));
    if refuses_root && rustix::process::geteuid().is_root() {
        found.push(AgentFault::RefusesRoot);
    }
    if is_logged_in(agent, users) == Some(false) {
        found.push(AgentFault::NotLoggedIn);
    }
    found
}
