//! Perl: its source files, and its tests by prove, make or Module::Build.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command, shell_command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Names, prove), (Evidence::Names, installation)],
    other_extensions: &["pl", "pm", "t", "xs"],
    test_extensions: &["t"],
    test_words: (&[], &[]),
    test_directories: &["t", "xt"],
    project_files: &PROJECT_FILES,
    ..Ecosystem::NOTHING
};

const PROJECT_FILES: [&str; 4] = ["Makefile.PL", "Build.PL", "cpanfile", "dist.ini"];

/// True if a file has a path with this beginning and this end.
fn has(files: &RootFiles<'_>, start: &str, end: &str) -> bool {
    files.paths().iter().any(|path| path.starts_with(start) && path.ends_with(end))
}

/// Runs the tests below `t` with the modules in `lib`, if they need no compiler.
fn prove(files: &RootFiles<'_>) -> FoundCommands {
    let is_enough = has(files, "t/", ".t") && !has(files, "", ".xs");
    let finds_modules = has(files, "lib/", ".pm") || builder(files).is_none();
    let source = files.first(&PROJECT_FILES).filter(|_| is_enough && finds_modules);
    let test = source.map(|source| command(Stage::Test, &["prove", "-lr", "t"], source));
    Ok(test.into_iter().collect())
}

/// Builds and tests as an installation from CPAN does.
fn installation(files: &RootFiles<'_>) -> FoundCommands {
    Ok(match builder(files) {
        Some((script, build)) if has(files, "t/", ".t") => vec![
            shell_command(Stage::Build, format!("perl {script} && {build}"), script),
            command(Stage::Test, &[build, "test"], script),
        ],
        _ => Vec::new(),
    })
}

/// The script that configures the project, and the program that then builds it.
fn builder(files: &RootFiles<'_>) -> Option<(&'static str, &'static str)> {
    let builders = [("Makefile.PL", "make"), ("Build.PL", "./Build")];
    builders.into_iter().find(|(script, _)| files.has(script))
}
