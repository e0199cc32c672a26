//! `git frites completions`: prints the completion script of a shell.
use clap::ValueEnum;

use crate::complete;
use crate::error::{Error, Result, exit};
use crate::ui::Ui;

// `git frites completions`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`make install` installs the scripts where shells look for them. Otherwise save \
the script as in EXAMPLES, or source it in your startup file (in bash, after git's completion). \
The script completes `git frites` and `git-frites`."
)]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// The shells that have a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

/// Runs the command; it needs no repository.
pub fn run(ui: &Ui, args: &CompletionsArgs) -> Result<u8> {
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
