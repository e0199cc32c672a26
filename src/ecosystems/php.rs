//! PHP: the scripts of composer.json, and PHPUnit.
use crate::ecosystems::ecosystem::{Ecosystem, InstalledDirectory};
use crate::ecosystems::manifest::{entry_points, json, json_members, words};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command, repairs};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, composer_json)],
    other_extensions: &["php", "phtml"],
    lock_files: &["composer.lock"],
    test_words: (&[], &["cest", "test"]),
    decisive_files: ".php-cs-fixer* ecs.php phpunit.dist.xml phpunit.xml phpunit.xml.dist
        rector.php",
    manifests: &[(&["composer.json"], composer_part)],
    entry_points: &[("composer.json", |text, is_task| {
        Some(entry_points(&json(text)?, &["autoload", "bin"], is_task))
    })],
    installed: &VENDOR,
    ..Ecosystem::NOTHING
};

const VENDOR: [InstalledDirectory; 1] = [InstalledDirectory {
    directory: "vendor",
    manifests: &["composer.json"],
    is_tied_to_its_place: false,
}];

const PHPUNIT: [&str; 3] = ["phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist"];

/// The scripts `build`, `lint` and `test`; PHPUnit if it is configured and there is no script
/// `test`. The setup installs the packages, the locked ones if there is a lock file.
fn composer_json(files: &RootFiles<'_>) -> FoundCommands {
    const MANIFEST: &str = "composer.json";
    let Some(package) = files.json(MANIFEST)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for stage in [Stage::Build, Stage::Lint, Stage::Test] {
        let script = &package["scripts"][stage.as_str()];
        let is_meant = stage != Stage::Lint || !repairs(&script.to_string().replace('"', " "));
        if !script.is_null() && is_meant {
            found.push(command(stage, &["composer", "run-script", stage.as_str()], MANIFEST));
        }
    }
    if let Some(settings) = files.first(&PHPUNIT)
        && !found.iter().any(|c| c.stage == Stage::Test)
    {
        found.push(command(Stage::Test, phpunit(&package), settings));
    }
    let needs = ["require", "require-dev"].iter().any(|key| package[*key].is_object());
    let is_locked = files.has("composer.lock");
    if !found.is_empty() && (is_locked || needs) {
        let words = ["composer", "install", "--no-interaction"];
        let source = if is_locked { "composer.lock" } else { "composer.json (no lock file)" };
        found.push(command(Stage::Setup, &words, source));
    }
    Ok(found)
}

/// PHPUnit from the project's own packages. A project that has development packages without PHPUnit
/// may be part of a larger project. For such a project, PHPUnit from PATH.
fn phpunit(package: &serde_json::Value) -> &'static [&'static str] {
    let requires = |name: &str| !package["require-dev"][name].is_null();
    if requires("symfony/phpunit-bridge") {
        &["php", "vendor/bin/simple-phpunit"]
    } else if requires("phpunit/phpunit") || !package["require-dev"].is_object() {
        &["php", "vendor/bin/phpunit"]
    } else {
        &["phpunit"]
    }
}

/// Restores the base's composer.json, but keeps the attempt's description of the package and its
/// dependencies.
fn composer_part(base: Option<&str>, own: &str) -> Option<String> {
    const KEPT: &str = "\
        authors description funding homepage keywords license name readme require require-dev
        suggest support version";
    let mut kept = words(KEPT);
    if base.is_none() {
        // A new package may name the directories of its source.
        kept.push("autoload");
    }
    json_members(base, own, &kept)
}
