//! Deno. [`javascript`](crate::ecosystems::javascript) recognises its tests.
use crate::ecosystems::ecosystem::{Ecosystem, PackagesFound};
use crate::ecosystems::manifest::{json, json_members};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, deno)],
    lock_files: &["deno.lock"],
    finds: PackagesFound::Named,
    manifests: &[(&MANIFESTS, deno_part)],
    // With `--node-modules-dir=none`, deno runs no package's script.
    download: Some(("deno.lock", &["deno", "install", "--frozen", "--node-modules-dir=none"])),
    ..Ecosystem::NOTHING
};

const MANIFESTS: [&str; 2] = ["deno.json", "deno.jsonc"];

/// The project's tasks `build`, `lint` and `test`. In place of a task that is missing, Deno's own
/// command.
fn deno(files: &RootFiles<'_>) -> FoundCommands {
    let Some(name) = files.first(&MANIFESTS) else { return Ok(Vec::new()) };
    let Some(settings) = files.json(name)? else { return Ok(Vec::new()) };
    let defaults: [(Stage, &[&str]); 3] = [
        (Stage::Build, &["deno", "check", "."]),
        (Stage::Lint, &["deno", "lint"]),
        (Stage::Test, &["deno", "test"]),
    ];
    let found = defaults.map(|(stage, default)| match settings["tasks"].get(stage.as_str()) {
        Some(_) => command(stage, &["deno", "task", stage.as_str()], format!("{name} (tasks)")),
        None => command(stage, default, name),
    });
    Ok(found.into())
}

/// Restores the base's settings file, but keeps the attempt's description of the package and its
/// dependencies. A new dependency may be a file of the tree, which could replace a package that the
/// tests use. In that case, the dependencies are restored, too.
fn deno_part(base: Option<&str>, own: &str) -> Option<String> {
    const KEPT: [&str; 5] = ["description", "imports", "license", "name", "version"];
    let before = base.and_then(imports).unwrap_or_default();
    let mut new = imports(own).unwrap_or_default().into_iter();
    let keeps_imports =
        new.all(|(name, value)| before.get(&name) == Some(&value) || is_published(&value));
    let kept = KEPT.into_iter().filter(|key| keeps_imports || *key != "imports");
    let kept = kept.chain(base.is_none().then_some("exports"));
    json_members(base, own, &kept.collect::<Vec<_>>())
}

/// The member `imports`: the names that modules may import, with their targets.
fn imports(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    json(text)?["imports"].as_object().cloned()
}

fn is_published(place: &serde_json::Value) -> bool {
    let starts = ["jsr:", "npm:", "https:"];
    place.as_str().is_some_and(|place| starts.iter().any(|start| place.starts_with(start)))
}
