//! What a project wrote itself: the targets of a Makefile, the recipes of a justfile.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command};

/// Which names stand for which command, the first that is there.
const NAMES: [(Stage, &[&str]); 3] = [
    (Stage::Build, &["build", "all"]),
    (Stage::Lint, &["lint"]),
    (Stage::Test, &["test", "check"]),
];

fn pick(tool: &str, there: &[&str], source: &str) -> Vec<OracleCommand> {
    let one = |(stage, names): (Stage, &[&str])| {
        let name = names.iter().find(|n| there.contains(n))?;
        Some(command(stage, &[tool, name], source))
    };
    NAMES.into_iter().filter_map(one).collect()
}

/// Targets `build` (or `all`), `lint` and `test` (or `check`).
pub fn makefile(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    // In the order in which GNU make looks.
    let Some(name) = files.first(&["GNUmakefile", "makefile", "Makefile"]) else {
        return Ok(Vec::new());
    };
    let text = files.text(name)?.unwrap_or_default();
    Ok(pick("make", &targets(&text), name))
}

/// The same of a justfile: recipes that need no arguments, and aliases.
pub fn justfile(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let Some(name) = files.first(&["justfile", "Justfile", ".justfile"]) else {
        return Ok(Vec::new());
    };
    let text = files.text(name)?.unwrap_or_default();
    Ok(pick("just", &recipes(&text), name))
}

/// The explicit targets of a Makefile: words before a colon that begins no assignment.
fn targets(makefile: &str) -> Vec<&str> {
    let rule = |line: &'_ str| -> Option<(usize, bool)> {
        let colon = line.find(':')?;
        let rest = line[colon..].trim_start_matches(':');
        Some((
            colon,
            line.starts_with(['\t', '#', ' ', '.'])
                || rest.starts_with('=')
                || line[..colon].contains('='),
        ))
    };
    makefile
        .lines()
        .filter_map(|line| rule(line).filter(|(_, other)| !other).map(|(colon, _)| &line[..colon]))
        .flat_map(str::split_whitespace)
        .collect()
}

/// The recipes of a justfile that can be called by their name alone.
fn recipes(justfile: &str) -> Vec<&str> {
    justfile
        .lines()
        .filter(|line| !line.starts_with(char::is_whitespace) && !line.starts_with(['#', '[']))
        .filter_map(|line| {
            if let Some(alias) = line.strip_prefix("alias ") {
                return alias.split(":=").next().map(str::trim);
            }
            let (head, rest) = line.split_once(':')?;
            let mut words = head.trim_start_matches('@').split_whitespace();
            let name = words.next()?;
            // A parameter without a default, or one that takes at least one value.
            let needs = words.any(|w| !w.contains('=') && !w.starts_with('*'));
            (!rest.starts_with('=') && !needs).then_some(name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_are_targets() {
        let text = "CC := gcc\nall: test\ntest lint:\n\t@echo a:b\n.PHONY: build\nX = a:b\n# check: no\ninstall::\nv::=1\n";
        assert_eq!(targets(text), ["all", "test", "lint", "install"]);
    }

    #[test]
    fn only_recipes_that_need_nothing_are_called() {
        let text = "set shell := ['sh', '-c']\nversion := 'a:b'\n[private]\n@build: lint\n  echo a:b\nlint flags='': \n\
                    test name:\ncheck *args:\n# all: no\nalias t := check\nmany +names:\n";
        assert_eq!(recipes(text), ["build", "lint", "check", "t"]);
    }
}
