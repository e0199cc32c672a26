//! All integration tests in one program: real git, real repositories in temporary directories.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;
use std::path::{Path, PathBuf};

mod architecture;
mod capture;
mod clean;
mod command_line;
mod common;
mod judge;
mod land;
mod process;
mod shard;
mod show;
mod spawn;
mod state;

/// A file that nothing names would never run.
#[test]
fn no_test_file_is_forgotten() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut forgotten = Vec::new();
    for directory in entries(&tests) {
        let Ok(list) = fs::read_to_string(directory.join("mod.rs")) else { continue };
        let files = entries(&directory);
        forgotten.extend(files.into_iter().filter(|file| !names(&list, file)));
        if !names(include_str!("runner.rs"), &directory) {
            forgotten.push(directory);
        }
    }
    assert_eq!(forgotten, Vec::<PathBuf>::new(), "no list of modules names these");
}

/// True if a list of modules names that of a file or directory, or if it is the file of the list
/// itself.
fn names(list: &str, file: &Path) -> bool {
    let module = file.file_stem().unwrap().to_str().unwrap();
    let line = format!("mod {module};");
    module == "mod" || list.lines().any(|l| l.trim_start_matches("pub ") == line)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}
