//! The files that a command of the user names.
use std::path::{Path, PathBuf};

use crate::fs::tree::nearest_real;

/// The paths that the words of `command` name, from the directory `dir`, with all links resolved. The words
/// of scripts (`sh -c 'SCRIPT'`) count, and so does the whole text. Most of these paths do not exist.
pub fn named_files(command: &str, dir: &Path) -> Vec<PathBuf> {
    let mut words = vec![command.to_owned()];
    for word in shell_words::split(command).unwrap_or_default() {
        words.extend(shell_words::split(&word).unwrap_or_default());
        words.push(word);
    }
    words.iter().map(|word| nearest_real(&dir.join(word))).collect()
}
