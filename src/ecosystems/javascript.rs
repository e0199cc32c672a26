//! JavaScript and TypeScript: package.json with npm, pnpm, yarn or bun.
use globset::{GlobBuilder, GlobSetBuilder};
use serde_json::Value;

use crate::ecosystems::ecosystem::{Ecosystem, InstalledDirectory, PackagesFound};
use crate::ecosystems::manifest::{entry_points, json, json_members, words};
use crate::ecosystems::paths::{file_name, plain};
use crate::ecosystems::project::{
    Evidence, FoundCommands, RootFiles, command, repairs, unreadable,
};
use crate::ecosystems::recipe::Recipe;
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// The manifest of a package.
pub const MANIFEST: &str = "package.json";

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, package_json)],
    installed: &[InstalledDirectory {
        directory: "node_modules",
        manifests: &[MANIFEST],
        is_tied_to_its_place: false,
    }],
    extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
    other_extensions: &["astro", "svelte", "vue"],
    declarations: &["d.ts", "d.mts", "d.cts"],
    // In these places Node finds modules by their exact paths, so a new file replaces no other
    // module.
    is_source_if_new: |file| {
        file.is_in_directory_of_language()
            && !file.is_in_package_root()
            && !file.is_loaded_for_another()
    },
    lock_files: &LOCK_FILES,
    finds: PackagesFound::InstalledAndMembers,
    comment: "//",
    block_comment: ("/*", "*/"),
    quotes: &["`", "\"", "'"],
    // The marks include the quote of the first argument, because functions that are not tests have
    // these names, too.
    test_marks: "\
        it(\"|it('|it(`|it.each|test(\"|test('|test(`|test.each|describe(\"|describe('|describe(`|\
        Deno.test(|QUnit.test(",
    skip_marks: "\
        it.skip*|test.skip*|describe.skip*|suite.skip*|xit(|xtest(|xdescribe(|fit(|fdescribe(|\
        .only(|it.todo|test.todo|Deno.test.ignore|ignore: true|skip: true|this.skip(|t.skip(",
    beside_skip_marks: "describe|before(|beforeEach(|:test|mocha",
    test_extensions: &["snap"],
    test_words: (&[], &["cy", "spec", "test"]),
    test_directories: &["cypress"],
    decisive_files: "*.conf.* *.config.* *.setup.* *.workspace.* .babelrc* .eslintignore
        .eslintrc* .husky/ node_modules/.bin/ .mocharc* .npmrc .pnpmfile.cjs .prettierrc*
        .stylelintrc* .yarnrc* biome.json* bunfig.toml Gruntfile.* __mocks__/ gulpfile.*
        gulpfile.babel.js/ gulpfile.js/
        jest-setup.* lerna.json nx.json pnpm-workspace.yaml setup-jest.* setupTests.* tsconfig.*
        tslint.json turbo.json",
    manifests: &[(&[MANIFEST], package_json_part)],
    entry_points: &[(MANIFEST, |text, is_task| {
        Some(entry_points(&json(text)?, &ENTRY_POINTS, is_task))
    })],
    recipe_files: &[MANIFEST],
    recipe_runners: &["npm", "yarn", "pnpm", "bun", "turbo"],
    recipes: package_recipes,
    ..Ecosystem::NOTHING
};

/// The members of a package.json that name the package's own files. Tools read all others.
const ENTRY_POINTS: [&str; 19] = [
    "bin",
    "browser",
    "directories",
    "exports",
    "files",
    "imports",
    "jsdelivr",
    "jsnext:main",
    "main",
    "man",
    "module",
    "react-native",
    "source",
    "style",
    "svelte",
    "types",
    "typings",
    "unpkg",
    "workspaces",
];

/// The scripts of a package.json.
fn package_recipes(text: &str) -> Vec<Recipe> {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = json["scripts"].as_object().into_iter().flatten();
    let recipes = scripts.map(|(name, line)| Recipe {
        name: name.clone(),
        needs: vec![format!("pre{name}"), format!("post{name}")],
        lines: line.as_str().map(str::to_owned).into_iter().collect(),
    });
    recipes.collect()
}

/// Options of programs that load the module that follows.
const BEFORE_LOADED: [&str; 6] = ["--config", "--import", "--loader", "--require", "-c", "-r"];

/// The lock files. If a project has several, the first one counts.
const LOCK_FILES: [&str; 6] = [
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "package-lock.json",
    "npm-shrinkwrap.json",
];

/// The package manager that writes a lock file.
fn manager_of(lock: &'static str) -> &'static str {
    if lock == "package-lock.json" { "npm" } else { lock.split(['-', '.']).next().unwrap_or(lock) }
}

/// Runs the scripts `build`, `lint:check` (or else `lint`) and `test` with the package manager that
/// `packageManager` or a lock file names. A script that the root does not have is run in the
/// members of its workspace that have it. A checkout has no `node_modules`, so the setup installs
/// the locked packages. A workspace always gets a setup, because its members may have dependencies
/// even if the project has none.
fn package_json(files: &RootFiles<'_>) -> FoundCommands {
    let Some(text) = files.text(MANIFEST)? else { return Ok(Vec::new()) };
    let package: Value =
        serde_json::from_str(&text).map_err(|e| unreadable(MANIFEST, &e.to_string()))?;
    let declared = package["packageManager"].as_str().and_then(|p| p.split('@').next());
    let mut locks = LOCK_FILES.into_iter().filter(|lock| files.has(lock));
    let locked = locks.find(|lock| declared.is_none_or(|declared| declared == manager_of(lock)));
    let (manager, why) = match (declared, locked) {
        (Some(manager @ ("pnpm" | "yarn" | "bun" | "npm")), _) => {
            (manager, " (packageManager)".to_owned())
        }
        (Some(other), _) => {
            return Err(unreadable(MANIFEST, &format!("unknown packageManager '{other}'")));
        }
        (None, Some(lock)) => (manager_of(lock), format!(" ({} by {lock})", manager_of(lock))),
        (None, None) => {
            let others = ["pnpm", "yarn", "bun"];
            let in_ci = |name: &&str| files.ci().install(name, &["install", "i"]).is_some();
            (others.into_iter().find(in_ci).unwrap_or("npm"), String::new())
        }
    };
    let has_members = is_workspace(|file| files.has(file), || text);
    let members = if has_members { member_manifests(files, &package) } else { Vec::new() };
    let mut found = Vec::new();
    for stage in [Stage::Build, Stage::Lint, Stage::Test] {
        let checking = format!("{stage}:check");
        let names = [checking.as_str(), stage.as_str()];
        let names = if stage == Stage::Lint { &names[..] } else { &names[1..] };
        if let Some(name) = names.iter().copied().find(|name| is_meant(&package, stage, name)) {
            found.push(command(stage, &[manager, "run", name], format!("package.json{why}")));
            continue;
        }
        let is_of_members = |name: &&str| are_meant(&members, stage, name);
        let Some(name) = names.iter().copied().find(is_of_members) else { continue };
        let words = match manager {
            "npm" if !files.has("pnpm-workspace.yaml") => {
                vec!["npm", "run", name, "--workspaces", "--if-present"]
            }
            "pnpm" => vec!["pnpm", "--recursive", "run", name],
            // Other managers have no such command, or fail for a member without the script.
            _ => continue,
        };
        found.push(command(stage, &words, format!("package.json{why}")));
    }
    if has_members || has_dependencies(&package) {
        found.push(match locked {
            Some(lock) => command(Stage::Setup, install_command(manager, files)?, lock),
            None => unlocked_install(manager, files),
        });
    }
    Ok(found)
}

/// True if a package has a script of this name that does the work of the stage.
fn is_meant(package: &Value, stage: Stage, name: &str) -> bool {
    let script = package["scripts"][name].as_str().unwrap_or_default();
    // `npm init` writes a test script with the text "no test specified" into a project without
    // tests.
    let is_none = script.is_empty() || script.contains("no test specified");
    !is_none && (stage != Stage::Lint || !repairs(script))
}

/// True if some packages have a script of this name, and if it does the work of the stage in each
/// of them: in the others, the command for all members would fail or do something else.
fn are_meant(packages: &[Value], stage: Stage, name: &str) -> bool {
    let mut with_script = packages.iter().filter(|own| own["scripts"][name].is_string()).peekable();
    with_script.peek().is_some() && with_script.all(|own| is_meant(own, stage, name))
}

/// True if the project is a workspace of several packages. `has` is true for a file in the root,
/// and `manifest` reads the package.json there.
pub fn is_workspace(has: impl Fn(&str) -> bool, manifest: impl FnOnce() -> String) -> bool {
    ["pnpm-workspace.yaml", "lerna.json"].into_iter().any(has)
        || manifest().contains("\"workspaces\"")
}

/// The manifests of a workspace's members, as far as they can be read. `package` is the manifest in
/// the root. It lists the directories of the members, or pnpm-workspace.yaml does.
fn member_manifests(files: &RootFiles<'_>, package: &Value) -> Vec<Value> {
    let workspaces = &package["workspaces"];
    let listed = workspaces.as_array().or(workspaces["packages"].as_array());
    let listed = listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let yaml = files.text("pnpm-workspace.yaml").ok().flatten().unwrap_or_default();
    let of_pnpm = yaml.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let of_pnpm = of_pnpm.map(|entry| entry.trim_matches([' ', '\'', '"']).to_owned());
    let mut patterns = GlobSetBuilder::new();
    for pattern in listed.chain(of_pnpm) {
        if let Ok(glob) = GlobBuilder::new(plain(&pattern)).literal_separator(true).build() {
            patterns.add(glob);
        }
    }
    let patterns = patterns.build().unwrap_or_default();
    let members = files.paths().iter().filter(|path| {
        path.strip_suffix("/package.json").is_some_and(|directory| patterns.is_match(directory))
    });
    members.filter_map(|path| files.json(path).ok()?).collect()
}

/// The names by which other packages use the package with this manifest: its own name, and those of
/// its programs.
pub fn names_of_package(manifest: &str) -> Vec<String> {
    let package: Value = serde_json::from_str(manifest).unwrap_or_default();
    let name = package["name"].as_str().unwrap_or_default();
    let programs: Vec<&str> = match &package["bin"] {
        Value::Object(programs) => programs.keys().map(String::as_str).collect(),
        Value::String(_) => vec![file_name(name)],
        _ => Vec::new(),
    };
    let names = [name].into_iter().chain(programs);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// True if a line of a file that decides what is run loads the package of this name, or runs its
/// program. The list of a workspace and options that choose packages only name it.
pub fn uses_package(file: &str, line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        let is_quoted =
            before.ends_with(['"', '\'', '`']) && after.starts_with(['"', '\'', '`', '/']);
        let is_loaded = is_quoted
            && (ECOSYSTEM.has_source(file)
                || ["extends", "preset"].iter().any(|word| before.contains(word)));
        let is_word = after.starts_with([' ', '"', '/']) && file_name(file) == MANIFEST;
        let is_program = [":\"", ": \"", "&& ", "; "].iter().any(|start| before.ends_with(start))
            && after.starts_with(' ');
        let word_before = before.trim_end_matches([' ', '=']).rsplit([' ', '"']).next();
        let is_argument = word_before.is_some_and(|word| BEFORE_LOADED.contains(&word))
            && before.ends_with([' ', '=']);
        is_loaded || is_word && (is_program || is_argument)
    })
}

fn has_dependencies(package: &Value) -> bool {
    ["dependencies", "devDependencies"]
        .iter()
        .any(|key| package[key].as_object().is_some_and(|packages| !packages.is_empty()))
}

/// The command that installs packages without a lock file: CI's command, or else `install` without
/// options.
fn unlocked_install(manager: &str, files: &RootFiles<'_>) -> OracleCommand {
    let words = files.ci().install(manager, &["install", "i"]);
    let words = words.unwrap_or_else(|| vec![manager.to_owned(), "install".to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    command(Stage::Setup, &words, "package.json (no lock file)")
}

/// The command that installs exactly the packages of the lock file.
fn install_command(manager: &str, files: &RootFiles<'_>) -> Result<&'static [&'static str]> {
    Ok(match manager {
        "npm" => &["npm", "ci"],
        "yarn" if is_modern_yarn(files)? => &["yarn", "install", "--immutable"],
        "yarn" => &["yarn", "install", "--frozen-lockfile"],
        "pnpm" => &["pnpm", "install", "--frozen-lockfile"],
        _ => &["bun", "install", "--frozen-lockfile"],
    })
}

/// True if the project uses Yarn 2 or later, which has different options. It then has the settings
/// file of that Yarn, or a lock file with metadata.
fn is_modern_yarn(files: &RootFiles<'_>) -> Result<bool> {
    let lock = files.text("yarn.lock")?.unwrap_or_default();
    Ok(files.has(".yarnrc.yml") || lock.lines().any(|line| line == "__metadata:"))
}

/// True if a package.json has all entry points of the base and further ones. A pattern (`./*`) may
/// lead to the same files as a new entry point, so there must be none.
fn only_adds_exports(base: &str, own: &str) -> bool {
    let [base, own] = [base, own].map(|text| {
        let package: Value = serde_json::from_str(text).unwrap_or_default();
        package["exports"].as_object().cloned().unwrap_or_default()
    });
    let mut names = base.keys().chain(own.keys());
    !base.is_empty()
        && names.all(|name| name.starts_with('.') && !name.contains('*'))
        && base.iter().all(|(name, leads_to)| own.get(name) == Some(leads_to))
}

/// Restores the base's package.json, but keeps the attempt's description of the package and its
/// dependencies. Among others, these members are restored:
/// * `name`, because Node finds a package by its own name before it finds an installed one, such as
///   an assertion library;
/// * `exports`, `main` and `module`, because they may lead to files of the tests, or away from
///   them;
/// * the package's programs, because one of them may be named `node`;
/// * `browser`, because it makes a bundler of tests replace files and modules;
/// * `engines` and `browserslist`, because linters check for these versions.
fn package_json_part(base: Option<&str>, own: &str) -> Option<String> {
    const KEPT: &str = "\
        author bugs bundleDependencies bundledDependencies contributors dependencies description
        devDependencies files funding homepage keywords license optionalDependencies
        peerDependencies peerDependenciesMeta repository version";
    let mut kept = words(KEPT);
    // A new package keeps its modules and scripts, but not its programs (`bin`): they would come
    // before those of PATH.
    if base.is_none() {
        kept.extend(words("exports main module name private scripts type types typings"));
    }
    if base.is_some_and(|base| only_adds_exports(base, own)) {
        kept.push("exports");
    }
    json_members(base, own, &kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_may_be_added_and_none_may_be_moved() {
        let package = |exports: &str| format!("{{\"name\": \"x\", \"exports\": {exports}}}");
        for (base, own, is_kept) in [
            (r#"{".": "./a.js"}"#, r#"{".": "./a.js", "./sum": "./sum.js"}"#, true),
            (r#"{".": "./a.js"}"#, r#"{".": "./b.js", "./sum": "./sum.js"}"#, false),
            (r#"{"./*": "./src/*.js"}"#, r#"{"./*": "./src/*.js", "./a": "./b.js"}"#, false),
            (r#"{".": "./a.js"}"#, r#"{".": "./a.js", "./*": "./*"}"#, false),
            (r#"{"import": "./a.js"}"#, r#"{"import": "./a.js", "node": "./b.js"}"#, false),
            (r#""./a.js""#, r#"{".": "./a.js", "./sum": "./sum.js"}"#, false),
        ] {
            let part = package_json_part(Some(&package(base)), &package(own));
            assert_eq!(part == Some(package(own)), is_kept, "{own}: {part:?}");
        }
    }
}
