//! The files that a command of the user names.
use std::path::{Path, PathBuf};

use crate::fs::tree::links_and_real;

/// The paths to which the words of `command` lead from the absolute path `dir`, and the links on the way. The
/// words of scripts (`sh -c 'SCRIPT'`) count, and so does the whole text. Most of these paths do not exist.
pub fn named_files(command: &str, dir: &Path) -> Vec<PathBuf> {
    let mut words = vec![command.to_owned()];
    for word in shell_words::split(command).unwrap_or_default() {
        words.extend(shell_words::split(&word).unwrap_or_default());
        words.push(word);
    }
    words.iter().flat_map(|word| links_and_real(&dir.join(word))).collect()
}
