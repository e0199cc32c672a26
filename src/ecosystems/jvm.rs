//! Java, Kotlin, Groovy and Scala, with Maven and Gradle, through their wrapper scripts if these
//! exist.
use std::collections::BTreeSet;

use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::manifest::{all_but_sections, is_quoted_list, words};
use crate::ecosystems::paths::{directory_of, file_name};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// The languages of the Java virtual machine.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, maven), (Evidence::Settings, gradle)],
    extensions: &["java", "kt", "kts", "groovy", "scala"],
    project_files: &["build.sbt", "settings.gradle", "settings.gradle.kts"],
    lock_files: &["gradle.lockfile"],
    comment: "//",
    block_comment: ("/*", "*/"),
    quotes: &["\"\"\"", "'''", "\"", "'"],
    raw_text,
    test_marks: "@Test|@TestFactory|@TestTemplate|@ParameterizedTest|@RepeatedTest|@Property",
    skip_marks: "@Disabled*|@Ignore*|Assumptions.|assumeTrue(",
    test_words: (&["it", "test"], &["it", "spec", "test"]),
    decisive_files: ".mvn/ build-logic/ buildSrc/ gradle-wrapper.* gradle.properties gradlew mvnw
        testng.xml",
    shadows_tool: |path| {
        let is_script = path.ends_with(".gradle.kts") && file_name(path) != "build.gradle.kts";
        is_script || (path.ends_with(".scala") && path.starts_with("project/"))
    },
    shadows_library: is_in_a_foreign_package,
    manifests: &[(&["pom.xml"], maven_part), (&["build.gradle", "build.gradle.kts"], gradle_part)],
    ..Ecosystem::NOTHING
};

/// The length of a string literal in three quotes. If a backslash stands before the end, the length
/// cannot be told: a backslash is an escape in Java and Groovy, but not in Kotlin and Scala.
/// Further quotes at the end belong to the literal.
fn raw_text(_: &str, rest: &str) -> Option<Option<usize>> {
    let (text, after) = match rest.strip_prefix("\"\"\"")?.split_once("\"\"\"") {
        Some((text, after)) if !text.ends_with('\\') => (text, after),
        _ => return Some(None),
    };
    let more = after.len() - after.trim_start_matches('"').len();
    Some(Some(text.len() + more + 6))
}

/// The keywords before the name of a type in its declaration.
pub const TYPES: [&str; 7] =
    ["@interface", "class", "enum", "interface", "object", "record", "trait"];

/// The names of the types that a text declares.
pub fn declared_types(text: &str) -> BTreeSet<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let declared = words.windows(2).filter(|pair| TYPES.contains(&pair[0])).map(|pair| {
        let end = pair[1].find(|c: char| !c.is_alphanumeric() && c != '_');
        &pair[1][..end.unwrap_or(pair[1].len())]
    });
    declared.filter(|name| !name.is_empty()).collect()
}

/// True if a Java file declares a package that does not fit its directory. A class in such a file
/// may replace a class of a library.
fn is_in_a_foreign_package(path: &str, text: &str) -> bool {
    let mut lines = text.lines().flat_map(|line| line.split(';')).map(str::trim);
    let package = lines.find_map(|line| line.strip_prefix("package ")).map(str::trim);
    path.ends_with(".java")
        && package.is_some_and(|package| {
            !format!("/{}", directory_of(path))
                .ends_with(&format!("/{}", package.replace('.', "/")))
        })
}

/// Builds with `test-compile` and tests with `test`.
fn maven(files: &RootFiles<'_>) -> FoundCommands {
    let Some(project) = files.first(&["pom.xml"]) else { return Ok(Vec::new()) };
    Ok(commands(files, ["mvn", "./mvnw"], project, "--batch-mode", ["test-compile", "test"]))
}

/// Builds with `assemble` and tests with `check`, which runs the tests and every other check of the
/// project. Gradle runs without its daemon, because the daemon would outlive the command.
fn gradle(files: &RootFiles<'_>) -> FoundCommands {
    let scripts = ["settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"];
    let Some(script) = files.first(&scripts) else { return Ok(Vec::new()) };
    Ok(commands(files, ["gradle", "./gradlew"], script, "--no-daemon", ["assemble", "check"]))
}

/// The commands that build and test with a tool, or with its wrapper script if there is one.
fn commands(
    files: &RootFiles<'_>,
    [tool, wrapper]: [&str; 2],
    file: &str,
    option: &str,
    [build, test]: [&str; 2],
) -> Vec<OracleCommand> {
    let script = wrapper.trim_start_matches("./");
    // `sh` also runs a wrapper without an executable bit.
    let (words, source) = match files.has(script) {
        true => (vec!["sh", wrapper], format!("{file} ({script})")),
        false => (vec![tool], file.to_owned()),
    };
    [(Stage::Build, build), (Stage::Test, test)]
        .map(|(stage, goal)| command(stage, &[&words[..], &[option, goal]].concat(), &*source))
        .into()
}

/// Restores the base's pom.xml, but keeps the attempt's names, versions and scopes of dependencies.
fn maven_part(base: Option<&str>, own: &str) -> Option<String> {
    let places = ("<dependencies>", "</dependencies>");
    const PARTS: [&str; 7] =
        ["artifactId", "dependencies", "dependency", "groupId", "optional", "scope", "version"];
    all_but_sections(base, own, places, |line| {
        let mut tags = line.split('<').skip(1).map(|tag| tag.trim_start_matches('/'));
        // A line with the end of a comment is more than a name.
        !line.contains("--")
            && !line.contains("]]")
            && tags.all(|tag| PARTS.contains(&tag.split(['>', '/']).next().unwrap_or_default()))
    })
}

/// Restores the base's build.gradle, but keeps the attempt's lines that only name a dependency. The
/// rest of the file is code.
fn gradle_part(base: Option<&str>, own: &str) -> Option<String> {
    const CONFIGURATIONS: &str = "api compile compileonly implementation runtime runtimeonly
        annotationprocessor testcompile";
    all_but_sections(base, own, ("dependencies {", "}"), |line| {
        let name = line.split([' ', '(']).next().unwrap_or_default();
        let needs = line[name.len()..].trim().replace("platform(", "(").replace("project(", "(");
        let name = name.to_ascii_lowercase();
        line.is_empty()
            || words(CONFIGURATIONS).iter().any(|end| name.ends_with(end)) && is_quoted_list(&needs)
    })
}
