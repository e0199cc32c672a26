//! `git frites completions`: prints the completion script of a shell.
use std::os::unix::ffi::OsStrExt;

use clap_complete::Shell;

use crate::complete;
use crate::error::{Error, IoContext, Result, exit};
use crate::fs::atomic;
use crate::ops::doctor::completion;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "`make install` installs the scripts where shells look for them. Otherwise --install \
does, or save the script as in EXAMPLES, or source it in your startup file (in bash, after git's completion). \
The script completes `git frites` and `git-frites`."
)]
pub struct CompletionsArgs {
    /// Shell  [default: with --install, that of SHELL]
    #[arg(value_name = "SHELL", required_unless_present = "install")]
    pub shell: Option<Shell>,
    /// Put the script where your shell looks for it, below HOME, instead of printing it
    #[arg(long)]
    pub install: bool,
}

/// Needs no repository.
pub fn run(ui: &Ui, args: &CompletionsArgs) -> Result<u8> {
    match args.shell {
        _ if args.install => install(ui, args.shell)?,
        Some(shell) => ui.answer(script(shell)?),
        None => {}
    }
    Ok(exit::OK)
}

/// Writes the completion script to the place where the shell looks for it, and prints the path.
fn install(ui: &Ui, shell: Option<Shell>) -> Result<()> {
    let name = shell.map_or_else(completion::users_shell, |shell| shell.to_string());
    let Some(file) = completion::place_in_home(&name) else {
        return Err(Error::fatal(format!("there is no known place for a completion of '{name}'"))
            .hint("name the shell: `git frites completions --install bash`, zsh or fish")
            .hint("or save what `git frites completions SHELL` prints"));
    };
    let shell: Shell = name.parse().map_err(Error::internal)?;
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)
            .context(|| format!("could not make '{}'", directory.display()))?;
    }
    atomic::write(&file, &script(shell)?)?;
    ui.answer([file.as_os_str().as_bytes(), b"\n"].concat());
    match shell {
        Shell::Zsh => ui.hint(
            "zsh finds it if ~/.zshrc has `fpath=(~/.zfunc $fpath)` before `autoload -Uz compinit && compinit`",
        ),
        _ => ui.hint("the next shell that you start completes git-frites"),
    }
    Ok(())
}

fn script(shell: Shell) -> Result<Vec<u8>> {
    Ok(match shell {
        Shell::Bash => include_bytes!("../../completions/git-frites.bash").to_vec(),
        Shell::Zsh => include_bytes!("../../completions/_git-frites").to_vec(),
        Shell::Fish => include_bytes!("../../completions/git-frites.fish").to_vec(),
        other => complete::registration(&other.to_string()).ok_or_else(|| {
            Error::fatal(format!("there is no completion for {other}"))
                .hint("use bash, zsh or fish")
        })?,
    })
}
