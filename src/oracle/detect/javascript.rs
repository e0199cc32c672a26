//! package.json by npm, pnpm, yarn and bun; Deno.
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;
use crate::oracle::detect::{Files, command, unreadable};

/// Lock files, and whose they are.
const LOCKS: [(&str, &str); 6] = [
    ("pnpm", "pnpm-lock.yaml"),
    ("yarn", "yarn.lock"),
    ("bun", "bun.lock"),
    ("bun", "bun.lockb"),
    ("npm", "package-lock.json"),
    ("npm", "npm-shrinkwrap.json"),
];

/// Scripts `build`, `lint` and `test`, by the package manager that `packageManager` or a lock file names. A
/// checkout has no `node_modules`, so what the lock file names is installed first.
pub fn package_json(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let Some(text) = files.text("package.json")? else { return Ok(Vec::new()) };
    let package: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| unreadable("package.json", &e.to_string()))?;
    let declared = package["packageManager"].as_str().and_then(|p| p.split('@').next());
    let locked = LOCKS
        .iter()
        .find(|(manager, lock)| files.has(lock) && declared.is_none_or(|d| d == *manager));
    let (manager, why) = match (declared, locked) {
        (Some(known @ ("pnpm" | "yarn" | "bun" | "npm")), _) => {
            (known, " (packageManager)".to_owned())
        }
        (Some(other), _) => {
            return Err(unreadable("package.json", &format!("unknown packageManager '{other}'")));
        }
        (None, Some((manager, lock))) => (*manager, format!(" ({manager} by {lock})")),
        (None, None) => ("npm", String::new()),
    };
    let mut found = Vec::new();
    for stage in [Stage::Build, Stage::Lint, Stage::Test] {
        let Some(script) = package["scripts"][stage.as_str()].as_str() else { continue };
        // What `npm init` writes when there is no test.
        if !script.contains("no test specified") {
            found.push(command(
                stage,
                &[manager, "run", stage.as_str()],
                format!("package.json{why}"),
            ));
        }
    }
    let needs = ["dependencies", "devDependencies"]
        .iter()
        .any(|k| package[k].as_object().is_some_and(|d| !d.is_empty()));
    if let Some((_, lock)) = locked.filter(|_| needs) {
        let install: &[&str] = match manager {
            "npm" => &["npm", "ci"],
            "yarn" if is_modern_yarn(files)? => &["yarn", "install", "--immutable"],
            "yarn" => &["yarn", "install", "--frozen-lockfile"],
            "pnpm" => &["pnpm", "install", "--frozen-lockfile"],
            _ => &["bun", "install", "--frozen-lockfile"],
        };
        found.push(command(Stage::Setup, install, *lock));
    }
    Ok(found)
}

/// Yarn since 2, whose options are others: it has settings of its own, or says so in the lock file.
fn is_modern_yarn(files: &Files<'_>) -> Result<bool> {
    let locked =
        files.text("yarn.lock")?.is_some_and(|lock| lock.lines().any(|line| line == "__metadata:"));
    Ok(locked || files.has(".yarnrc.yml"))
}

/// Tasks `build`, `lint` and `test`; where there is no such task, what Deno does by itself.
pub fn deno(files: &Files<'_>) -> Result<Vec<OracleCommand>> {
    let Some(name) = files.first(&["deno.json", "deno.jsonc"]) else { return Ok(Vec::new()) };
    let Some(settings) = files.json(name)? else { return Ok(Vec::new()) };
    let own: [(Stage, &[&str]); 3] = [
        (Stage::Build, &["deno", "check", "."]),
        (Stage::Lint, &["deno", "lint"]),
        (Stage::Test, &["deno", "test"]),
    ];
    let pick = |(stage, otherwise): (Stage, &[&str])| match settings["tasks"].get(stage.as_str()) {
        Some(_) => command(stage, &["deno", "task", stage.as_str()], format!("{name} (tasks)")),
        None => command(stage, otherwise, name),
    };
    Ok(own.into_iter().map(pick).collect())
}
