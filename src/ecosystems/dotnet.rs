//! .NET: C#, F# and Visual Basic.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::manifest::{line_hunks, without_versions};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command, unreadable};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, solution)],
    extensions: &["cs", "fs", "vb"],
    is_source_if_new: |file| file.has_its_language(),
    other_extensions: &["cshtml", "razor", "xaml"],
    project_files: &["global.json"],
    lock_files: &["packages.lock.json"],
    comment: "//",
    block_comment: ("/*", "*/"),
    quotes: &["\"\"\"", "\"", "'"],
    raw_text,
    test_marks: "\
        [Fact|[Theory|[Test|[TestCase|[TestCaseSource|[TestClass|[TestFixture|[TestMethod|<Fact|\
        <Test|<TestClass|<TestMethod",
    skip_marks: "Skip =|Skip=|[Ignore*|[Explicit*",
    decisive_files: "*.runsettings Directory.Build.props Directory.Build.targets global.json",
    manifests: &[(&["*.*proj"], project_part)],
    ..Ecosystem::NOTHING
};

/// The length of a string literal `@"…"`, or of a literal in three or more quotes. In `@"…"`, two
/// quotes in a row stand for one quote. So a quote directly after another one does not begin a
/// literal, but continues the literal before it.
fn raw_text(before: &str, rest: &str) -> Option<Option<usize>> {
    let is_verbatim = before.ends_with(['@', '"']) || before.ends_with("@$");
    let quotes = match rest.len() - rest.trim_start_matches('"').len() {
        1.. if is_verbatim => 1,
        quotes @ 3.. => quotes,
        _ => return None,
    };
    Some(rest[quotes..].find(&rest[..quotes]).map(|length| length + 2 * quotes))
}

/// Builds and tests the only solution or project in the root, or else the only solution one
/// directory below. Lints with the formatter if there is an `.editorconfig`. Fails if there are
/// several solutions or projects.
fn solution(files: &RootFiles<'_>) -> FoundCommands {
    let kinds = [".slnx", ".sln", ".csproj", ".fsproj", ".vbproj"];
    let at_depth = |depth: usize| {
        let of_kind = |end: &str| -> Vec<&str> {
            let is_there = |path: &&str| path.ends_with(end) && path.matches('/').count() == depth;
            files.paths().iter().map(String::as_str).filter(is_there).collect()
        };
        kinds.map(of_kind).into_iter().find(|found| !found.is_empty())
    };
    let below = || at_depth(1).filter(|found| found[0].contains(".sln"));
    let Some(all) = at_depth(0).or_else(below) else { return Ok(Vec::new()) };
    let [name] = all[..] else {
        return Err(unreadable(
            all[0],
            &format!("there is '{}', too, and nothing says which is meant", all[1]),
        ));
    };
    let mut found = vec![
        command(Stage::Build, &["dotnet", "build", name], name),
        command(Stage::Test, &["dotnet", "test", name, "--no-build"], name),
    ];
    if files.has(".editorconfig") {
        let format = ["dotnet", "format", name, "--verify-no-changes", "--no-restore"];
        found.push(command(Stage::Lint, &format, ".editorconfig"));
    }
    Ok(found)
}

/// Restores the base's project file, but keeps the attempt's references to packages and projects.
fn project_part(base: Option<&str>, own: &str) -> Option<String> {
    // All of a new project file may be code, so no part of it can be kept.
    base?;
    let is_reference = |line: &&str| {
        let line = line.trim();
        let starts = ["<PackageReference ", "<ProjectReference ", "<PackageVersion "];
        let refers = starts.iter().any(|start| line.starts_with(start));
        let names = line.split('=').rev().skip(1).filter_map(|part| part.split_whitespace().last());
        let mut names = names.map(|name| name.trim());
        refers
            && line.ends_with("/>")
            && line.matches('<').count() == 1
            && names.all(|name| ["Include", "Version"].contains(&name))
            || ["<ItemGroup>", "</ItemGroup>", ""].contains(&line)
    };
    // A reference with further attributes counts as unchanged if only its version differs.
    let is_in = |line: &str, lines: &[&str]| {
        line.trim().starts_with("<PackageReference ")
            && lines.iter().any(|other| without_versions(other) == without_versions(line))
    };
    line_hunks(base, own, |hunk| {
        let old = hunk.removed;
        let new = hunk.added;
        !(old.iter().all(|line| is_reference(line) || is_in(line, new))
            && new.iter().all(|line| is_reference(line) || is_in(line, old)))
    })
}
