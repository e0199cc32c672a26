//! Findings about the coding agents on PATH: versions, logins, and faults that would stop them.
use std::ffi::OsStr;

use crate::agents::built_in::{BUILT_IN, BuiltInAgent};
use crate::model::checkup::Finding;
use crate::ops::agent_state::users::{self, UsersState};
use crate::process;

/// One finding for each built-in agent that is installed; if none is installed, one finding that
/// says so.
pub(super) fn findings() -> Vec<Finding> {
    let installed: Vec<&'static BuiltInAgent> =
        BUILT_IN.iter().filter(|agent| process::on_path(OsStr::new(agent.command[0]))).collect();
    if installed.is_empty() {
        let names: Vec<&str> = BUILT_IN.iter().map(|agent| agent.name).collect();
        return vec![Finding::missing(
            "agents",
            format!("none of {} is on PATH", names.join(", ")),
        )];
    }
    let state = UsersState::of_process();
    process::each_in_parallel(installed.len(), &installed, |agent| finding(agent, &state))
}

fn finding(agent: &BuiltInAgent, state: &UsersState) -> Finding {
    let what = format!("agent {}", agent.name);
    let version = process::version_of(agent.command[0]);
    let version = version.unwrap_or_else(|| "its version is unknown".to_owned());
    let faults = users::faults(agent, state);
    if faults.is_empty() {
        let login = match users::is_logged_in(agent, state) {
            Some(_) => "; it has a login",
            None => "",
        };
        return Finding::good(&what, format!("{version}{login}"));
    }
    let words: Vec<String> = faults.iter().map(|fault| format!("it {fault}")).collect();
    let remedies = faults.iter().filter_map(|fault| agent.remedy(*fault));
    let finding = Finding::missing(&what, format!("{version}; {}", words.join(", ")));
    remedies.fold(finding, |finding, remedy| finding.advise(remedy))
}
