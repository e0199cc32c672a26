//! The findings of `git frites doctor`: about this machine, and about a run in this repository.
mod agents;
pub mod completion;
mod machine;
mod project;

use crate::error::{Cause, Result};
use crate::git::repo::Repo;
use crate::model::checkup::{Checkup, Finding, Health, ProjectCheckup};
use crate::ops::session::Session;
use crate::ui::Ui;

/// Checks the machine, and the repository of the current directory if there is one. A problem of
/// either becomes a finding, not an error.
pub fn check_up(ui: &Ui) -> Result<Checkup> {
    let machine = machine::findings()?;
    let here = std::env::current_dir().unwrap_or_default();
    let outside = Repo::discover(&here).is_err_and(|error| error.cause == Cause::NotFound);
    // A broken machine has no working git or no cache directory, and the checks of the repository
    // need both.
    if outside || machine.iter().any(|finding| finding.health == Health::Broken) {
        return Ok(Checkup { machine, project: None });
    }
    let project = Session::open(ui.clone()).and_then(|session| project::check(&session));
    let project = project.unwrap_or_else(|error| {
        let finding = Finding::broken("repository", error.message.clone());
        let finding = error.hints.iter().fold(finding, |finding, hint| finding.advise(hint));
        ProjectCheckup { findings: vec![finding], ..ProjectCheckup::default() }
    });
    Ok(Checkup { machine, project: Some(project) })
}
