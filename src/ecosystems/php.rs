//! PHP: the scripts of composer.json, and PHPUnit.
use crate::ecosystems::ecosystem::{Ecosystem, InstalledDirectory};
use crate::ecosystems::manifest::{PutBackPart, json_members};
use crate::ecosystems::project::{RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// PHP.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[composer_json],
    other_extensions: &["php", "phtml"],
    lock_files: &["composer.lock"],
    is_test_file: |stem, extension| extension == "php" && stem.ends_with("Test"),
    test_directories: &["Tests"],
    decisive_files: &[
        ".php-cs-fixer*",
        "ecs.php",
        "phpunit.dist.xml",
        "phpunit.xml",
        "phpunit.xml.dist",
        "rector.php",
    ],
    manifest: |name| {
        if name == "composer.json" { Some(composer_part as PutBackPart) } else { None }
    },
    installed: &VENDOR,
    ..Ecosystem::NOTHING
};

const VENDOR: [InstalledDirectory; 1] = [InstalledDirectory {
    directory: "vendor",
    manifests: &["composer.json"],
    is_tied_to_its_place: false,
}];

const PHPUNIT: [&str; 2] = ["phpunit.xml", "phpunit.xml.dist"];

/// The scripts `build`, `lint` and `test`; PHPUnit if it is configured and no script tests. The
/// setup installs the locked packages.
fn composer_json(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    const MANIFEST: &str = "composer.json";
    let Some(package) = files.json(MANIFEST)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for stage in [Stage::Build, Stage::Lint, Stage::Test] {
        if !package["scripts"][stage.as_str()].is_null() {
            found.push(command(stage, &["composer", "run-script", stage.as_str()], MANIFEST));
        }
    }
    if let Some(settings) = files.first(&PHPUNIT)
        && !found.iter().any(|c| c.stage == Stage::Test)
    {
        found.push(command(Stage::Test, &["php", "vendor/bin/phpunit"], settings));
    }
    if files.has("composer.lock") && !found.is_empty() {
        let words = ["composer", "install", "--no-interaction"];
        found.push(command(Stage::Setup, &words, "composer.lock"));
    }
    Ok(found)
}

/// The scripts, the settings, and the code of tests and of other places.
fn composer_part(base: Option<&str>, own: &str) -> Option<String> {
    json_members(base, own, &["scripts", "config", "extra", "autoload-dev", "repositories"])
}
