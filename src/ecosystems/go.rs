//! Go.
use crate::ecosystems::ecosystem::{Ecosystem, PackagesFound};
use crate::ecosystems::manifest::line_hunks;
use crate::ecosystems::paths::{inside, resolved};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, go_module)],
    extensions: &["go"],
    is_source_if_new: |file| file.has_its_language(),
    project_files: &["go.work"],
    lock_files: &["go.sum"],
    finds: PackagesFound::Named,
    found_instead: packages_in_place_of_modules,
    comment: "//",
    block_comment: ("/*", "*/"),
    quotes: &["`", "\"", "'"],
    raw_text: |_, rest| Some(rest.strip_prefix('`')?.find('`').map(|length| length + 2)),
    test_marks: "func Test*|func Benchmark*|func Fuzz*|func Example*",
    // Go finds tests only in files whose names end with `_test`.
    may_run: |_, _| false,
    // A package's own TestMain decides whether the package's tests run at all.
    skip_marks: ".Skip(|.SkipNow(|.Skipf(|//go:build ignore|func TestMain(",
    beside_skip_marks: "\"testing\"",
    // A package can give these names of the language another meaning.
    assertions: ("const func type var", "append bool error false iota len nil panic recover true"),
    decisive_files: "go.work .golangci.* magefile.go",
    manifests: &[(&["go.mod"], go_mod_part)],
    download: Some(("go.sum", &["go", "mod", "download"])),
    ..Ecosystem::NOTHING
};

/// Builds, lints and tests all packages of the modules that go.work uses, or else of the module in
/// the root. Go does not enter other modules from the root by itself.
fn go_module(files: &RootFiles<'_>) -> FoundCommands {
    let (source, packages) = match files.first(&["go.work", "go.mod"]) {
        None => return Ok(Vec::new()),
        Some("go.work") => ("go.work", used_packages(&files.text("go.work")?.unwrap_or_default())),
        Some(module) => (module, vec!["./...".to_owned()]),
    };
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let of = |stage, words: &[&str]| {
        let words: Vec<&str> =
            words.iter().copied().chain(packages.iter().map(String::as_str)).collect();
        command(stage, &words, source)
    };
    let configs = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];
    let lint = match files.first(&configs) {
        Some(config) if source == "go.mod" => {
            command(Stage::Lint, &["golangci-lint", "run"], config)
        }
        _ => of(Stage::Lint, &["go", "vet"]),
    };
    Ok(vec![
        of(Stage::Build, &["go", "build"]),
        lint,
        // Without `-v` the output does not show how many tests ran.
        of(Stage::Test, &["go", "test", "-v"]),
    ])
}

/// The patterns for all packages of the modules that the text of a go.work uses. Modules outside of
/// the project are left out, because the judged tree does not have them.
fn used_packages(text: &str) -> Vec<String> {
    let used = directives(text).into_iter().filter(|(name, _)| *name == "use");
    let directories = used.filter_map(|(_, words)| words.first().copied());
    let resolved = directories.filter_map(|directory| resolved("", directory));
    resolved.map(|directory| format!("./{}", inside(&directory, "..."))).collect()
}

/// Restores the base's go.mod, but keeps the attempt's versions of the modules. A newer version of
/// the language is kept, too, because a module may need it. An older version is not: variables of
/// loops may have another meaning in it, so that tests no longer test each case. Other lines are
/// restored: they replace a module's code, choose the compiler, or change the run time's behaviour
/// (`godebug`).
fn go_mod_part(base: Option<&str>, own: &str) -> Option<String> {
    let names_module = |line: &&str| {
        let code = line.split("//").next().unwrap_or(line);
        let words: Vec<&str> = code.split_whitespace().collect();
        match words[..] {
            [] | [")"] | ["require", "("] | ["go", _] => true,
            ["module", _] => false,
            [_, version] | ["require", _, version] => version
                .strip_prefix('v')
                .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())),
            _ => false,
        }
    };
    let language = |lines: &[&str]| -> Option<Vec<u32>> {
        let version = lines.iter().find_map(|line| line.trim().strip_prefix("go "))?;
        version.trim().split('.').map(|number| number.parse().ok()).collect()
    };
    line_hunks(base, own, |hunk| {
        !hunk.removed.iter().chain(hunk.added).all(names_module)
            || language(hunk.added) < language(hunk.removed)
    })
}

/// The directories in which Go looks for a module that is no longer required. If the main module
/// `a.org/b` no longer requires the module `a.org/b/check`, this is `check`.
fn packages_in_place_of_modules(before: &str, after: &str) -> Vec<String> {
    let (main, kept) = modules(after);
    let (_, required) = modules(before);
    let dropped = required.into_iter().filter(|module| !kept.contains(module));
    let inside = dropped.filter_map(|module| module.strip_prefix(main)?.strip_prefix('/'));
    inside.map(str::to_owned).collect()
}

/// The path of the main module, and the paths of the modules that it requires.
fn modules(text: &str) -> (&str, Vec<&str>) {
    let mut main = "";
    let mut required = Vec::new();
    for (name, words) in directives(text) {
        match (name, &words[..]) {
            ("module", [path]) => main = path,
            ("require", [path, _]) => required.push(*path),
            _ => {}
        }
    }
    (main, required)
}

/// The directives of a go.mod or go.work: the name of each, and the words after it. A block of
/// directives has the name once.
fn directives(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut block = "";
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or(line);
        let words = code.split(|c: char| c.is_whitespace() || "\"`".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        match words[..] {
            [name, "("] => block = name,
            [")"] => block = "",
            [name, ref rest @ ..] if block.is_empty() => found.push((name, rest.to_vec())),
            [_, ..] => found.push((block, words)),
            [] => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_takes_the_place_of_a_module_below_the_main_one() {
        let text = |requires: &str| format!("module a.org/b // main\n\ngo 1.22\n\n{requires}");
        let before = text(
            "require a.org/b/check v1.0.0\nrequire (\n\t\"a.org/b/c/d\" v1.2.3 // indirect\n\tx.org/y v1.0.0\n)\n",
        );
        for (after, expected) in [
            (before.clone(), &[][..]),
            (text(""), &["check", "c/d"]),
            (text("require a.org/b/check v1.1.0\n"), &["c/d"]),
        ] {
            assert_eq!(packages_in_place_of_modules(&before, &after), expected, "{after}");
        }
    }
}
