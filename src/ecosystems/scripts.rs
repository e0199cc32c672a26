//! The files that a project's oracle runs or compares, found in its commands and in the base's recipes.
use std::collections::BTreeSet;

use crate::ecosystems::ALL;
use crate::ecosystems::just;
use crate::ecosystems::languages::language_of;
use crate::ecosystems::make;
use crate::ecosystems::markers::{Markers, TextKind};
use crate::ecosystems::paths::file_name;
use crate::ecosystems::project::text_by_links;
use crate::ecosystems::run_files::{InTree, NamedFiles, named_files};
use crate::error::Result;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;

/// The files that the oracle runs or compares, by its commands and the base's recipes. Missing files count,
/// too, because the commands run them once an attempt adds them.
pub fn files_of_oracle(repo: &Repo, base: &Oid, oracle: &[OracleCommand]) -> Result<NamedFiles> {
    let mut included = Vec::new();
    // `make test` names no script, but its recipe may.
    let tree = repo.commit(base)?.tree;
    for file in ALL.iter().flat_map(|ecosystem| ecosystem.recipe_files) {
        let text = text_by_links(repo, &tree, file)?.unwrap_or_default();
        included.extend(files_of_includes(file, &text));
    }
    let read = |path: &str| {
        Ok(match text_by_links(repo, &tree, path)? {
            Some(text) => InTree::File(text),
            None => match repo.names_by_links(&tree, path)? {
                Some(names) => InTree::Directory(names),
                None => InTree::Nothing,
            },
        })
    };
    let mut found = named_files(&read, &lines_of(oracle))?;
    found.run.extend(included);
    Ok(found)
}

/// The commands as lines for a shell.
pub fn lines_of(oracle: &[OracleCommand]) -> Vec<String> {
    oracle.iter().map(|command| command.command.shell_line()).collect()
}

/// The names in the commands, in the base's recipes, and in `scripts`: the files that the commands run.
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

/// The files that the recipes in a file of this name include, and the files from which make writes them: a
/// built-in rule of make writes `x` from `x.sh`.
fn files_of_includes(file: &str, recipes: &str) -> Vec<String> {
    if just::ECOSYSTEM.recipe_files.contains(&file) {
        return included_files(recipes, &["import", "import?"]);
    }
    if !make::MAKEFILES.contains(&file) {
        // `"import"` in a package.json is a condition of its exports.
        return Vec::new();
    }
    let mut found = included_files(recipes, &["include", "-include", "sinclude"]);
    found.extend(found.clone().iter().map(|path| format!("{path}.sh")));
    found
}

/// The files in lines that begin with one of the words `including`, as paths or as patterns. Missing files are
/// among them.
fn included_files(recipes: &str, including: &[&str]) -> Vec<String> {
    let is_separator = |c: char| c.is_whitespace() || "\"'`;&|()@".contains(c);
    let mut found = Vec::new();
    for line in recipes.lines() {
        let mut words = line.split(is_separator).filter(|word| !word.is_empty());
        if !words.next().is_some_and(|first| including.contains(&first)) {
            continue;
        }
        for word in words {
            let path = word.strip_prefix("./").unwrap_or(word);
            // Before a leading slash there was a variable that names a directory: `$(DIR)/rules.mk`.
            found.push(if path.starts_with('/') { format!("*{path}") } else { path.to_owned() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_make_and_just_include_files_and_only_make_writes_them_from_scripts() {
        assert_eq!(files_of_includes("Makefile", "include rules\n"), ["rules", "rules.sh"]);
        assert_eq!(files_of_includes("justfile", "import 'ci.just'\n"), ["ci.just"]);
        assert_eq!(files_of_includes("package.json", "\"import\": \"./a.mjs\"\n"), [""; 0]);
    }

    #[test]
    fn recipes_include_files_also_by_wildcards_and_variables() {
        let recipes = "include rules\n-include $(wildcard ci/*.inc) $(TOP)/x.mk\nall: slug.sh\n";
        assert_eq!(
            included_files(recipes, &["include", "-include"]),
            ["rules", "$", "wildcard", "ci/*.inc", "$", "TOP", "*/x.mk"]
        );
    }
}
