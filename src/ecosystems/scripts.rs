//! The files that a project's oracle runs or compares, found in its commands and in the base's
//! recipes.
use std::collections::BTreeSet;

use crate::ecosystems::ALL;
use crate::ecosystems::languages::language_of;
use crate::ecosystems::make;
use crate::ecosystems::markers::{Markers, TextKind};
use crate::ecosystems::paths::file_name;
use crate::ecosystems::project::text_by_links;
use crate::ecosystems::run_files::{NamedFiles, TreeFiles, named_files};
use crate::error::Result;
use crate::git::mode::EntryMode;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;

/// The files that the oracle runs or compares, by its commands and the base's recipes. Missing
/// files count, too, because the commands run them as soon as an attempt adds them.
pub fn files_of_oracle(repo: &Repo, base: &Oid, oracle: &[OracleCommand]) -> Result<NamedFiles> {
    let tree = repo.commit(base)?.tree;
    let paths = repo.paths_and_modes_of(base)?;
    let text = |path: &str| text_by_links(repo, &tree, path);
    let paths = paths.iter().map(|(path, mode)| (path.as_str(), *mode == EntryMode::Link));
    let files = TreeFiles::of(paths, &text);
    named_files(&files, &lines_of(oracle))
}

/// The commands as lines for a shell.
pub fn lines_of(oracle: &[OracleCommand]) -> Vec<String> {
    oracle.iter().map(|command| command.command.shell_line()).collect()
}

/// The names in the commands, in the base's recipes, and in `scripts`, which are the files that the
/// commands run.
pub fn markers(
    repo: &Repo,
    base: &Oid,
    commands: &[String],
    scripts: &BTreeSet<String>,
) -> Result<Markers> {
    let mut texts: Vec<(String, TextKind)> =
        commands.iter().map(|command| (command.clone(), TextKind::Shell)).collect();
    let tree = repo.commit(base)?.tree;
    for ecosystem in ALL {
        for file in ecosystem.recipe_files {
            let Some(text) = text_by_links(repo, &tree, file)? else { continue };
            if make::MAKEFILES.contains(file) {
                texts.push((text, TextKind::Make));
            } else {
                let recipes = (ecosystem.recipes)(&text);
                let lines = recipes.into_iter().flat_map(|recipe| recipe.lines);
                texts.extend(lines.map(|line| (line, TextKind::Shell)));
            }
        }
    }
    for path in scripts {
        let Some(text) = text_by_links(repo, &tree, path)? else { continue };
        let is_program = language_of(path).is_some_and(|language| !language.is_shell());
        let names_shell = text.lines().next().is_some_and(|l| l.trim_end().ends_with("sh"));
        let kind = if make::ECOSYSTEM.manifest(file_name(path)).is_some() {
            TextKind::Make
        } else if is_program || text.starts_with("#!") && !names_shell {
            TextKind::Program
        } else {
            TextKind::Script
        };
        texts.push((text, kind));
    }
    Ok(Markers::of(&texts))
}
