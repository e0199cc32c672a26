//! The finding that says whether the user's shell has a completion script for git-frites.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::model::checkup::Finding;

/// The places of one shell's completion script: its usual paths below a data directory and below
/// HOME, and the startup file that may source it.
struct ShellPlaces {
    name: &'static str,
    in_data: &'static [&'static str],
    in_home: &'static [&'static str],
    startup: &'static str,
}

const SHELLS: [ShellPlaces; 3] = [
    ShellPlaces {
        name: "bash",
        in_data: &["bash-completion/completions/git-frites"],
        in_home: &[".local/share/bash-completion/completions/git-frites"],
        startup: ".bashrc",
    },
    ShellPlaces {
        name: "zsh",
        in_data: &["zsh/site-functions/_git-frites", "zsh/vendor-completions/_git-frites"],
        in_home: &[".zfunc/_git-frites"],
        startup: ".zshrc",
    },
    ShellPlaces {
        name: "fish",
        // fish 3.6.0 reads the script only from the first path of each list (`vendor_conf.d`,
        // `conf.d`). All other versions also read it from the second path.
        in_data: &[
            "fish/vendor_conf.d/git-frites.fish",
            "fish/vendor_completions.d/git-frites.fish",
        ],
        in_home: &[
            ".config/fish/conf.d/git-frites.fish",
            ".config/fish/completions/git-frites.fish",
        ],
        startup: ".config/fish/config.fish",
    },
];

/// A startup file that contains these words sources the script.
const SOURCED: &str = "frites completions";

/// The name of the shell that SHELL names.
pub fn users_shell() -> String {
    let shell = env::var_os("SHELL").map(PathBuf::from).unwrap_or_default();
    shell.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The file below HOME where a shell looks for the completion script; `None` if git-frites has no
/// script for the shell.
pub fn place_in_home(shell: &str) -> Option<PathBuf> {
    let places = SHELLS.iter().find(|places| places.name == shell)?;
    Some(PathBuf::from(env::var_os("HOME")?).join(places.in_home[0]))
}

/// The finding about the shell that SHELL names.
pub(super) fn finding() -> Finding {
    let what = "completion";
    let name = users_shell();
    let Some(places) = SHELLS.iter().find(|places| places.name == name) else {
        return Finding::missing(what, "SHELL names neither bash nor zsh nor fish");
    };
    match installed(places) {
        Some(file) => Finding::good(what, format!("for {name}, in '{}'", file.display())),
        None => Finding::missing(what, format!("none for {name} in the usual places"))
            .advise(format!("`git frites completions --install {name}` puts it there")),
    }
}

fn installed(places: &ShellPlaces) -> Option<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let own = env::current_exe().ok();
    // If the program is `PREFIX/bin/git-frites`, `PREFIX/share` is a data directory, too.
    let beside = own.as_deref().and_then(Path::parent).and_then(Path::parent);
    let data = env::var_os("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let data = env::split_paths(&data).chain(beside.map(|prefix| prefix.join("share")));
    let in_data = data.flat_map(|dir| places.in_data.iter().map(move |file| dir.join(file)));
    let mut files = in_data.chain(places.in_home.iter().map(|file| home.join(file)));
    let startup = home.join(places.startup);
    let sources = fs::read_to_string(&startup).is_ok_and(|text| text.contains(SOURCED));
    files.find(|file| file.is_file()).or_else(|| sources.then_some(startup))
}
