//! CMake presets and Bazel.
use serde_json::Value;

use crate::error::Result;
use crate::model::oracle::{CommandLine, OracleCommand};
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command};

/// The first preset that is not hidden configures; the build and test presets of it build and test. Without a
/// preset nothing says where and how the project is built.
pub fn cmake(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    const FILE: &str = "CMakePresets.json";
    let Some(presets) = files.json(FILE)?.filter(|_| files.has("CMakeLists.txt")) else {
        return Ok(Vec::new());
    };
    let list = |kind: &str| presets[kind].as_array().cloned().unwrap_or_default();
    let name = |preset: &Value| preset["name"].as_str().map(str::to_owned);
    let visible = |preset: &&Value| preset["hidden"].as_bool() != Some(true);
    let Some(configure) = list("configurePresets").iter().find(visible).and_then(name) else {
        return Ok(Vec::new());
    };
    let of_it = |kind: &str| {
        let all = list(kind);
        let fits =
            |p: &&Value| visible(p) && p["configurePreset"].as_str() == Some(configure.as_str());
        all.iter().find(fits).and_then(name)
    };
    let quoted = |name: &str| format!("'{}'", name.replace('\'', r"'\''"));
    let mut found = Vec::new();
    if let Some(build) = of_it("buildPresets") {
        // One command: `spawn.setup` must not take the place of configuring.
        let line = format!(
            "cmake --preset {} && cmake --build --preset {}",
            quoted(&configure),
            quoted(&build)
        );
        found.push(OracleCommand {
            stage: Stage::Build,
            command: CommandLine::Shell(line),
            source: FILE.to_owned(),
        });
        if let Some(test) = of_it("testPresets") {
            found.push(command(Stage::Test, &["ctest", "--preset", &test], FILE));
        }
    }
    Ok(found)
}

/// All targets. No server: it would outlive the command.
pub fn bazel(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let Some(name) = files.first(&["MODULE.bazel", "WORKSPACE.bazel", "WORKSPACE"]) else {
        return Ok(Vec::new());
    };
    let all = |verb: &'static str| ["bazel", "--batch", verb, "//..."];
    Ok(vec![command(Stage::Build, &all("build"), name), command(Stage::Test, &all("test"), name)])
}
