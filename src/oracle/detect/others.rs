//! Go, .NET and Mix: one way to build, lint and test each.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command, unreadable};

/// All packages of the module.
pub fn go(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("go.mod") {
        return Ok(Vec::new());
    }
    Ok(vec![
        command(Stage::Build, &["go", "build", "./..."], "go.mod"),
        command(Stage::Lint, &["go", "vet", "./..."], "go.mod"),
        command(Stage::Test, &["go", "test", "./..."], "go.mod"),
    ])
}

/// The one solution or project in the root; the formatter where an `.editorconfig` says how.
pub fn dotnet(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let kinds = [".slnx", ".sln", ".csproj", ".fsproj", ".vbproj"];
    let Some(all) = kinds.map(|end| files.ending(end)).into_iter().find(|found| !found.is_empty())
    else {
        return Ok(Vec::new());
    };
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

/// Elixir's; the formatter where it is configured.
pub fn mix(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("mix.exs") {
        return Ok(Vec::new());
    }
    let mut found = vec![
        command(Stage::Build, &["mix", "compile"], "mix.exs"),
        command(Stage::Test, &["mix", "test"], "mix.exs"),
    ];
    if files.has(".formatter.exs") {
        found.push(command(Stage::Lint, &["mix", "format", "--check-formatted"], ".formatter.exs"));
    }
    if files.has("mix.lock") {
        found.push(command(Stage::Setup, &["mix", "deps.get", "--check-locked"], "mix.lock"));
    }
    Ok(found)
}
