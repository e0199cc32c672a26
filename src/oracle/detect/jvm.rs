//! Maven and Gradle, through their wrappers where they are there.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command};

/// `test-compile` and `test`.
pub fn maven(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("pom.xml") {
        return Ok(Vec::new());
    }
    // By sh: a wrapper that lost its mode is still one.
    let (tool, source): (&[&str], &str) = if files.has("mvnw") {
        (&["sh", "./mvnw"], "pom.xml (mvnw)")
    } else {
        (&["mvn"], "pom.xml")
    };
    let with = |goal: &'static str| [tool, &["--batch-mode", goal]].concat();
    Ok(vec![
        command(Stage::Build, &with("test-compile"), source),
        command(Stage::Test, &with("test"), source),
    ])
}

/// `assemble` and `check`, which is tests and whatever else the project checks. No daemon: it would outlive
/// the command.
pub fn gradle(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let scripts = ["settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"];
    let Some(script) = files.first(&scripts) else { return Ok(Vec::new()) };
    let (tool, source): (&[&str], String) = if files.has("gradlew") {
        (&["sh", "./gradlew"], format!("{script} (gradlew)"))
    } else {
        (&["gradle"], script.to_owned())
    };
    let with = |task: &'static str| [tool, &["--no-daemon", task]].concat();
    Ok(vec![
        command(Stage::Build, &with("assemble"), source.clone()),
        command(Stage::Test, &with("check"), source),
    ])
}
