//! Make: the targets of a Makefile.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{RootFiles, recipe_commands};
use crate::error::Result;
use crate::model::oracle::OracleCommand;

/// Make.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[makefile],
    decisive_files: &["GNUmakefile", "makefile", "Makefile", "*.mk"],
    recipe_files: &MAKEFILES,
    ..Ecosystem::NOTHING
};

/// The names of a Makefile, in the order in which GNU make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The targets that [`recipe_commands`] names.
fn makefile(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    let Some(name) = files.first(&MAKEFILES) else { return Ok(Vec::new()) };
    let text = files.text(name)?.unwrap_or_default();
    Ok(recipe_commands("make", &targets(&text), name))
}

/// The explicit targets of a Makefile.
fn targets(makefile: &str) -> Vec<&str> {
    makefile.lines().filter_map(rule_targets).flat_map(str::split_whitespace).collect()
}

/// The words before a line's colon; none if the line is a recipe, a comment, a special target or an
/// assignment.
fn rule_targets(line: &str) -> Option<&str> {
    let (targets, rest) = line.split_once(':')?;
    let is_assignment = targets.contains('=') || rest.trim_start_matches(':').starts_with('=');
    if line.starts_with(['\t', '#', ' ', '.']) || is_assignment { None } else { Some(targets) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_have_targets() {
        let text = "CC := gcc\nall: test\ntest lint:\n\t@echo a:b\n.PHONY: build\nX = a:b\n\
                    # check: no\ninstall::\nv::=1\n";
        assert_eq!(targets(text), ["all", "test", "lint", "install"]);
    }
}
