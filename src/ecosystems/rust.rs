//! Rust: Cargo, with nextest if it is configured.
use std::collections::BTreeSet;

use toml::Table;

use crate::ecosystems::ecosystem::{Ecosystem, PackagesFound};
use crate::ecosystems::manifest::{
    entry_points, toml_as_json, toml_lost_items, toml_text, toml_values, words,
};
use crate::ecosystems::paths::{directory_of, plain, resolved};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command, shell_command};
use crate::ecosystems::rust_tests;
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, cargo)],
    extensions: &["rs"],
    is_source_if_new: |file| file.has_its_language(),
    lock_files: &["Cargo.lock"],
    finds: PackagesFound::Named,
    comment: "//",
    code: Some(rust_tests::code),
    test_marks: "#[test]|::test]|::test(|#[rstest*|proptest!",
    skip_marks: "#[ignore*|cfg(any())|cfg(FALSE)|cfg(false)|#![cfg(",
    // `use fake as assert_eq` also replaces the library's macro. `#[macro_use] extern crate` defines
    // macros whose names are in another crate. All other names are macros of the library.
    assertions: (
        "macro_rules macro macro_use as",
        "assert assert_eq assert_ne concat dbg debug_assert debug_assert_eq debug_assert_ne
        eprintln extern format format_args matches panic println stringify todo unimplemented
        unreachable vec write writeln",
    ),
    inner_tests: Some(rust_tests::parts),
    decisive_files: "clippy.toml .clippy.toml rust-toolchain rust-toolchain.toml nextest.toml
        build.rs .cargo/",
    download: Some(("Cargo.lock", &["cargo", "fetch", "--locked"])),
    manifests: &[(&["Cargo.toml"], cargo_part)],
    entry_points: &[("Cargo.toml", |text, is_task| {
        Some(entry_points(&toml_as_json(text)?, &["bin", "example", "lib"], is_task))
    })],
    ..Ecosystem::NOTHING
};

/// Builds with `cargo build` and tests with `cargo test --no-fail-fast`, both with `--locked` if
/// the lock file is tracked. Lints with clippy and rustfmt, and tests with nextest, if the project
/// configures these tools.
fn cargo(files: &RootFiles<'_>) -> FoundCommands {
    const NEXTEST: &str = ".config/nextest.toml";
    let Some(manifest) = files.toml("Cargo.toml")? else { return Ok(Vec::new()) };
    let workspace = manifest.get("workspace").and_then(toml::Value::as_table);
    let locked = files.has("Cargo.lock").then_some("--locked");
    let mut options: Vec<&str> =
        locked.into_iter().chain(workspace.map(|_| "--workspace")).collect();
    let with_options = |words: &[&'static str]| [words, &options].concat();
    let mut found = vec![command(Stage::Build, &with_options(&["cargo", "build"]), "Cargo.toml")];
    let has_lints =
        manifest.contains_key("lints") || workspace.is_some_and(|w| w.contains_key("lints"));
    let configs = ["clippy.toml", ".clippy.toml"];
    let clippy = files.first(&configs).or(if has_lints { Some("Cargo.toml") } else { None });
    let clippy = clippy.map(|source| (with_options(&["cargo", "clippy"]).join(" "), source));
    let rustfmt = files.first(&["rustfmt.toml", ".rustfmt.toml"]);
    let rustfmt = rustfmt.map(|source| (format_check(files), source));
    match (rustfmt, clippy) {
        (Some((first, source)), Some((second, _))) => {
            found.push(shell_command(Stage::Lint, format!("{first} && {second}"), source));
        }
        (Some((line, source)), None) | (None, Some((line, source))) => {
            found.push(command(Stage::Lint, &line.split(' ').collect::<Vec<_>>(), source));
        }
        (None, None) => {}
    }
    let (runner, source) = match files.toml(NEXTEST)? {
        Some(_) => (&["cargo", "nextest", "run"][..], NEXTEST),
        None => (&["cargo", "test"][..], "Cargo.toml"),
    };
    // Without this option, a run ends at the first failure and shows no results of later tests.
    options.push("--no-fail-fast");
    found.push(command(Stage::Test, &[runner, &options].concat(), source));
    Ok(found)
}

/// The command that checks the format. CI's own command is preferred, because the check may need
/// another toolchain than the tests.
fn format_check(files: &RootFiles<'_>) -> String {
    let of_ci = ["fmt", "+nightly"].iter().find_map(|word| files.ci().plain(["cargo", word]));
    let checks = |words: &Vec<String>| words.iter().any(|word| word == "--check");
    let of_ci = of_ci.filter(checks).map(|words| words.join(" "));
    of_ci.unwrap_or_else(|| "cargo fmt --all --check".to_owned())
}

/// The words that the aliases among `words` stand for. `settings` is the text of Cargo's settings.
pub fn words_of_aliases(settings: &str, words: &[String]) -> Vec<String> {
    let settings: Table = settings.parse().unwrap_or_default();
    let aliases = settings.get("alias").and_then(toml::Value::as_table).into_iter().flatten();
    let named = aliases.filter(|(name, _)| words.contains(name)).map(|(_, alias)| alias);
    let texts = named.flat_map(|alias| match alias {
        toml::Value::Array(words) => words.iter().filter_map(toml::Value::as_str).collect(),
        alias => alias.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>(),
    });
    texts.filter(|word| *word != "--").map(str::to_owned).collect()
}

fn name_of(table: &Table) -> Option<&str> {
    table.get("name").and_then(toml::Value::as_str)
}

/// The possible paths of those programs of a package that the words after `cargo run` select, by
/// the name of the program, of the package or of its manifest. `path` and `text` are those of the
/// manifest.
pub fn programs_named(path: &str, text: &str, words: &[String]) -> Vec<String> {
    let manifest: Table = text.parse().unwrap_or_default();
    let names = words.iter().take_while(|word| *word != "--").map(|word| {
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        plain(value.strip_prefix("-p").unwrap_or(value))
    });
    let names: Vec<&str> = names.collect();
    let package = manifest.get("package").and_then(toml::Value::as_table).and_then(name_of);
    let is_named = names.contains(&path) || package.is_some_and(|name| names.contains(&name));
    let listed = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let listed = listed.filter_map(toml::Value::as_table).filter_map(|program| {
        let name = name_of(program).filter(|name| is_named || names.contains(name))?;
        let own = program.get("path").and_then(toml::Value::as_str).map(str::to_owned);
        Some(own.unwrap_or_else(|| format!("src/bin/{name}.rs")))
    });
    let by_name = names.iter().map(|name| format!("src/bin/{name}.rs"));
    let in_directory = names.iter().map(|name| format!("src/bin/{name}/main.rs"));
    let main = is_named.then(|| "src/main.rs".to_owned());
    let programs = listed.chain(by_name).chain(in_directory).chain(main);
    programs.filter_map(|program| resolved(directory_of(path), &program)).collect()
}

/// Restores the base's Cargo.toml, but keeps the attempt's description of the package, its
/// dependencies, and the features that the base does not have. The base's features, programs and
/// resolver are restored, because they change what its tests are. New programs are dropped, because
/// one may take the place of a program that Cargo finds by its path.
fn cargo_part(base: Option<&str>, own: &str) -> Option<String> {
    const KEPT: &str = "\
        build-dependencies dependencies dev-dependencies
        target.*.build-dependencies target.*.dependencies target.*.dev-dependencies
        workspace.dependencies workspace.members";
    // The edition is restored, because it changes how Cargo finds tests; and `rust-version`,
    // because Clippy checks for that version.
    const DESCRIPTION: &str = "\
        authors categories description documentation exclude homepage include keywords license
        license-file publish readme repository version";
    // A new manifest belongs to a new package, so there is nothing of the base to restore.
    let Some(base) = base else {
        // But a build script of the new package would run before the tests of the other packages.
        let manifest: Table = own.parse().ok()?;
        let script = manifest.get("package").and_then(|package| package.get("build"));
        let is_plain = script.is_none()
            && !switches_features(&Table::new(), &manifest)
            && names_of_toolchain(&manifest).is_empty();
        return is_plain.then(|| own.to_owned());
    };
    let base: Table = base.parse().ok()?;
    let manifest: Table = own.parse().ok()?;
    if switches_features(&base, &manifest)
        || !names_of_toolchain(&manifest).is_subset(&names_of_toolchain(&base))
    {
        return None;
    }
    let of_package =
        |at: &'static str| words(DESCRIPTION).into_iter().map(move |key| format!("{at}.{key}"));
    let described: Vec<String> =
        of_package("package").chain(of_package("workspace.package")).collect();
    let mut kept = words(KEPT);
    kept.extend(described.iter().map(String::as_str));
    let mut put_back = toml_values(&base, &manifest, &kept);
    // Members that the list has lost are restored. A new member removes no test.
    toml_lost_items(&base, &mut put_back, ["workspace", "members"])?;
    keep_new_features(&manifest, &mut put_back)?;
    restore_paths(&base, &mut put_back)?;
    toml_text(own, &manifest, &put_back)
}

/// Adds the attempt's features that `put_back` does not have, except for `default`: that one is on
/// while the base's tests run.
fn keep_new_features(own: &Table, put_back: &mut Table) -> Option<()> {
    let Some(features) = own.get("features") else { return Some(()) };
    let mut kept =
        put_back.get("features").map_or(Some(Table::new()), |old| old.as_table().cloned())?;
    for (name, items) in features.as_table()?.iter().filter(|(name, _)| *name != "default") {
        kept.entry(name).or_insert_with(|| items.clone());
    }
    if !kept.is_empty() {
        put_back.insert("features".to_owned(), kept.into());
    }
    Some(())
}

/// Restores the base's dependencies on directories of the tree. Without such a dependency, a
/// package may no longer be a member of the workspace, and its tests would be lost.
fn restore_paths(base: &Table, put_back: &mut Table) -> Option<()> {
    for (key, value) in base {
        let Some(section) = value.as_table() else { continue };
        let own = put_back.entry(key).or_insert_with(|| Table::new().into()).as_table_mut()?;
        if key.ends_with("dependencies") {
            let local = section.iter().filter(|(_, value)| value.get("path").is_some());
            own.extend(local.map(|(name, value)| (name.clone(), value.clone())));
        } else {
            restore_paths(section, own)?;
        }
    }
    Some(())
}

/// The crates that rustc links without a dependency. `rustc --test` takes its runner of tests from
/// `test`, and a dependency or a library of this name takes its place.
const OF_TOOLCHAIN: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];

/// The names among these that a manifest gives to its package, its library or a dependency.
fn names_of_toolchain(manifest: &Table) -> BTreeSet<String> {
    let sections = ["package", "lib"].iter().filter_map(|key| manifest.get(*key)?.as_table());
    let names = dependencies(manifest).into_iter().map(|(name, _)| name);
    let names = names.chain(sections.filter_map(name_of)).map(|name| name.replace('-', "_"));
    names.filter(|name| OF_TOOLCHAIN.contains(&name.as_str())).collect()
}

/// True if `before` has a dependency of the same name with the same values of `keys`; `None` if
/// `before` has no dependency of that name.
fn is_as_before(before: &[Dependency<'_>], own: &Dependency<'_>, keys: &[&str]) -> Option<bool> {
    let (name, value) = own;
    let mut of_base = before.iter().filter(|(other, _)| other == name).peekable();
    of_base.peek()?;
    Some(of_base.any(|(_, old)| keys.iter().all(|key| old.get(key) == value.get(key))))
}

/// True if a manifest changes which features of a package in the tree are on. Cargo may then build
/// that package with other features for all packages that use it. A package of the registry may be
/// in the tree, too, by `[patch]`.
fn switches_features(base: &Table, own: &Table) -> bool {
    const KEYS: [&str; 3] = ["features", "default-features", "default_features"];
    let before = dependencies(base);
    let patches = base.get("patch").and_then(toml::Value::as_table).into_iter().flatten();
    let patched: Vec<&toml::Value> = patches.map(|(_, packages)| packages).collect();
    let old = items_of_features(base);
    let new = items_of_features(own);
    dependencies(own).iter().any(|dependency| {
        let (name, value) = dependency;
        let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
        let is_in_tree = value.get("path").or(value.get("workspace")).is_some()
            || patched.iter().any(|packages| packages.get(package).is_some());
        let mut packages = new.difference(&old).filter_map(|item| item.split_once('/'));
        let is_unchanged = is_as_before(&before, dependency, &KEYS)
            .unwrap_or_else(|| KEYS.iter().all(|key| value.get(key).is_none()));
        is_in_tree
            && (!is_unchanged
                || packages.any(|(package, _)| package.trim_end_matches('?') == *name))
    })
}

/// Everything that the package's features turn on.
fn items_of_features(table: &Table) -> BTreeSet<String> {
    let features = table.get("features").and_then(toml::Value::as_table).into_iter().flatten();
    let items = features.filter_map(|(_, list)| list.as_array()).flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A dependency: its name, and its requirement.
type Dependency<'t> = (&'t str, &'t toml::Value);

/// The entries of all sections that list dependencies, including the sections for a platform.
fn dependencies(table: &Table) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(section) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            found.extend(section.iter().map(|(name, value)| (name.as_str(), value)));
        } else {
            found.extend(dependencies(section));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_keeps_its_dependencies_and_new_members() {
        let base = "[package]\nname = 'a'\n[workspace]\nmembers = ['b']\n";
        let cases = [
            ("[package]\nname = 'a'\n[workspace]\nmembers = ['b', 'c']\n", true),
            (
                "[package]\nname = 'a'\n[workspace]\nmembers = ['b']\n[dependencies]\nx = '1'\n",
                true,
            ),
            ("[package]\nname = 'a'\n[workspace]\nmembers = []\n", false),
            ("[package]\nname = 'a'\nautotests = false\n[workspace]\nmembers = ['b']\n", false),
            ("[package]\nname = 'a'\n[workspace]\nmembers = ['b']\n[lib]\ntest = false\n", false),
            ("[package]\nname = 'a'\n[workspace]\nmembers = ['b']\n[profile.test]\nx = 1\n", false),
            ("[package]\nname = 'a'\n[workspace]\nmembers = ['b']\n[patch.a]\nx = 1\n", false),
            ("[package]\nname = 'x'\n[workspace]\nmembers = ['b']\n", false),
            ("[package]\nname = 'a'\n[workspace]\nmembers = ['b']\nresolver = '1'\n", false),
        ];
        let feature = |more: &str| format!("[dependencies]\nx = {{ path = 'x'{more} }}\n");
        let workspace = feature(", features = ['off']").replace("path = 'x'", "workspace = true");
        let by_name = format!("{}[features]\ndefault = ['x/off']\n", feature(""));
        let switched = [
            feature(", features = ['off']"),
            feature(", default-features = false"),
            feature(", default_features = false"),
            workspace,
            by_name,
        ];
        for own in &switched {
            for base in [None, Some(""), Some(feature("").as_str())] {
                assert!(cargo_part(base, own).is_none(), "{base:?}: {own}");
            }
            assert!(cargo_part(Some(own), own).is_some(), "{own}");
            let published = own.replace("path = 'x'", "version = '1'");
            let published = published.replace("workspace = true", "version = '1'");
            assert!(cargo_part(None, &published).is_some(), "{published}");
        }
        for name in [
            "[dependencies]\ntest = { path = 'x' }\n",
            "[dev-dependencies]\nproc-macro = '1'\n",
            "[package]\nname = 'test'\n",
            "[package]\nname = 'b'\n[lib]\nname = 'test'\n",
        ] {
            assert!(cargo_part(None, name).is_none() && cargo_part(Some(""), name).is_none());
            assert!(cargo_part(Some(name), name).is_some(), "{name}");
        }
        let patched = "[dependencies]\nx = '1'\n[patch.crates-io]\nx = { path = 'x' }\n";
        let off = patched.replace("'1'", "{ version = '1', default-features = false }");
        assert!(cargo_part(Some(patched), &off).is_none());
        for (own, kept) in cases {
            let result = cargo_part(Some(base), own).expect("it can be put back");
            assert_eq!(result == own, kept, "{own}");
            let result: Table = result.parse().expect("it is TOML");
            let expected: Table = if kept { own } else { base }.parse().expect("it is TOML");
            assert_eq!(result, expected, "{own}");
        }
    }

    #[test]
    fn package_that_is_a_member_by_its_path_stays() {
        let base = "[dependencies]\na = { path = 'a' }\nb = '1'\n[workspace]\n\
                    [target.x.dev-dependencies]\nc = { path = 'c' }\n";
        let own = "[dependencies]\nb = '2'\nd = '1'\n[workspace]\n";
        let result = cargo_part(Some(base), own).expect("it can be put back");
        let expected = base.replace("b = '1'", "b = '2'\nd = '1'");
        let [result, expected] =
            [result, expected].map(|text| text.parse::<Table>().expect("it is TOML"));
        assert_eq!(result, expected);
    }

    #[test]
    fn features_and_programs_of_the_base_stay_as_they_are() {
        let base = "[features]\ndefault = ['strict']\nfull = ['strict']\nlax = []\nstrict = []\n\
                    [[bin]]\nname = 'verify'\npath = 'tests/verify.rs'\n";
        let cases = [
            base.replace("default = ['strict']", "default = ['lax']"),
            base.replace("full = ['strict']", "full = []"),
            base.replace("tests/verify.rs", "src/nothing.rs"),
            base.replace("path = 'tests/verify.rs'\n", "test = false\n"),
            // It may take the place of `src/main.rs`, whose tests would be gone.
            format!("{base}[[bin]]\nname = 'calc'\npath = 'src/other.rs'\n"),
            base.replace("[[bin]]", "[[example]]\nname = 'calc'\ntest = true\n[[bin]]"),
        ];
        for own in cases {
            let result = cargo_part(Some(base), &own).expect("it can be put back");
            let [result, expected] =
                [result.as_str(), base].map(|text| text.parse::<Table>().expect("it is TOML"));
            assert_eq!(result, expected, "{own}");
        }
        let new = base.replace("lax = []", "lax = []\nnew = ['strict']");
        assert_eq!(cargo_part(Some(base), &new).as_deref(), Some(new.as_str()));
        let first = "[features]\ndefault = ['a']\na = []\n";
        let result: Table =
            cargo_part(Some(""), first).expect("it can be put back").parse().expect("it is TOML");
        assert_eq!(result, "[features]\na = []\n".parse().expect("it is TOML"));
    }
}
