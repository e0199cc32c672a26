//! Manifests, recipes and settings: files that decide which commands run.
use crate::ecosystems::ALL;
use crate::ecosystems::paths::{file_name, is_in_path, place_of_word};

/// True for a manifest, a file of recipes, or another file that decides which commands run. If such
/// a file names a source file, the source file need not be part of the product, because a command
/// may run it.
pub fn names_commands(path: &str) -> bool {
    lists_product(path)
        || ALL.iter().any(|ecosystem| {
            ecosystem.is_decisive(path) || ecosystem.recipe_files.contains(&file_name(path))
        })
}

/// True for a file of recipes or settings, which lists no files of the product.
pub fn is_setting(path: &str) -> bool {
    names_commands(path) && !lists_product(path)
}

/// True for a manifest or project file, which may list files of the product.
pub fn lists_product(path: &str) -> bool {
    let name = file_name(path);
    ALL.iter().any(|e| e.manifest(name).is_some() || e.project_files.contains(&name))
}

/// True if the word is the first word of a manifest value. A later word is an argument of a
/// command.
pub(super) fn is_value(line: &str, word: &str) -> bool {
    let Some(at) = place_of_word(line, word) else { return false };
    let before = line[..at].trim_end_matches(is_in_path);
    let before = before.trim_end_matches(['"', '\'']).trim_end();
    before.is_empty() || before.ends_with(['=', ':', '[', '{'])
}
