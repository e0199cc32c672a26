//! `git frites completions`: the script that makes a shell complete.
use crate::cli::{Completions, Shell};
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::ui::Ui;

/// Runs the command; it needs no repository.
pub fn run(ui: &Ui, args: &Completions) -> Result<u8> {
    let script = match args.shell {
        Shell::Bash => include_bytes!("../../completions/git-frites.bash").to_vec(),
        Shell::Zsh => include_bytes!("../../completions/_git-frites").to_vec(),
        Shell::Fish => include_bytes!("../../completions/git-frites.fish").to_vec(),
        Shell::Elvish => other("elvish")?,
        Shell::Powershell => other("powershell")?,
    };
    ui.answer(script)?;
    Ok(exit::OK)
}

fn other(shell: &str) -> Result<Vec<u8>> {
    complete::registration(shell).ok_or_else(|| {
        Error::fatal(format!("there is no completion for {shell}")).hint("use bash, zsh or fish")
    })
}
