//! `git frites doctor`: shows what this machine can do, and how a run in this repository would be
//! set up.
use serde_json::{Value, json};

use crate::error::{Result, exit};
use crate::model::checkup::{Checkup, Finding, Health, ProjectCheckup};
use crate::model::count::some_of;
use crate::ops::doctor::check_up;
use crate::ui::Ui;
use crate::ui::style::Tone;
use crate::ui::table::{self, Grid};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is changed. In a repository, it also shows the commands, seeds and kept build outputs that a run \
from HEAD would use.\n\n\
Exit status: 0, even if something optional is missing; 1 if git-frites cannot work here."
)]
pub struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Needs no repository.
pub fn run(ui: &Ui, args: &DoctorArgs) -> Result<u8> {
    let checkup = check_up(ui)?;
    if args.json {
        ui.answer_json(as_json(&checkup));
    } else {
        ui.answer(text(ui, &checkup));
        for Finding { what, advice, .. } in checkup.findings() {
            advice.iter().for_each(|advice| ui.hint(format!("{what}: {advice}")));
        }
    }
    Ok(if checkup.works() { exit::OK } else { exit::NO })
}

fn text(ui: &Ui, checkup: &Checkup) -> String {
    let mut grid = Grid::new(&["", "what", "found"], &[], ui.out);
    for Finding { what, health, found, .. } in checkup.findings() {
        grid.row(vec![state(*health), (what.clone(), Tone::Plain), (found.clone(), Tone::Plain)]);
    }
    for (what, found) in checkup.project.iter().flat_map(of_project) {
        grid.row(vec![state(Health::Good), (what, Tone::Plain), (found, Tone::Plain)]);
    }
    grid.render()
}

/// The rows about a run in this repository.
fn of_project(project: &ProjectCheckup) -> Vec<(String, String)> {
    let commands = project.commands.iter().filter(|checked| checked.missing.is_empty());
    let mut rows: Vec<(String, String)> = commands
        .map(|checked| {
            let command = &checked.command;
            let found = format!("`{}`, from {}", command.command, command.source);
            (command.stage.to_string(), table::printable(&found))
        })
        .collect();
    let seeds = if project.seeds.is_empty() { "none".to_owned() } else { some_of(&project.seeds) };
    rows.push(("seeds".to_owned(), table::printable(&seeds)));
    let (used, limit) = project.layers;
    let layers = format!("{} of at most {}", table::size(used), table::size(limit));
    let layers =
        layers + &project.start.map(|start| format!("; {}", start.in_words())).unwrap_or_default();
    rows.push(("build outputs".to_owned(), layers));
    rows
}

fn state(health: Health) -> (String, Tone) {
    let tone = match health {
        Health::Good => Tone::Good,
        Health::Missing => Tone::Caution,
        Health::Broken => Tone::Bad,
    };
    (health.to_string(), tone)
}

fn as_json(checkup: &Checkup) -> Value {
    let mut document = json!({ "works": checkup.works(), "machine": checkup.machine });
    if let Some(project) = &checkup.project {
        let (bytes, limit) = project.layers;
        document["repository"] = json!({
            "findings": project.findings, "world": project.world,
            "commands": project.commands, "seeds": project.seeds,
            "layers": {
                "bytes": bytes, "limit": limit, "outputs_of": project.start.map(|start| start.commit),
            },
        });
    }
    document
}
