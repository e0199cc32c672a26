//! The dependencies that a manifest or a lock file names. A change that adds one adds code that the change
//! itself does not show.
//!
//! Formats differ, but two common properties are enough to read them: TOML and JSON list dependencies under a
//! key that says so, and in any other lock file a line begins with the name of a package.
use std::collections::{BTreeMap, BTreeSet};

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::{Ecosystem, PackagesFound, file_name};

/// The dependencies that a changed file has gained; empty if it is neither a manifest nor a lock file.
pub fn gained(path: &str, before: Option<&str>, after: &str) -> BTreeSet<String> {
    let name = file_name(path);
    let Some(ecosystem) = ecosystem_of(name) else { return BTreeSet::new() };
    let is_lock = ecosystem.lock_files.contains(&name);
    let of = |text: &str| match document(name, text) {
        Some(document) => of_document(&document),
        None if is_lock => text.lines().filter_map(first_name).collect(),
        None => BTreeSet::new(),
    };
    let known = before.map(of).unwrap_or_default();
    of(after).into_iter().filter(|name| !known.contains(name)).collect()
}

/// A document of TOML or JSON; `None` if the text is neither.
fn document(name: &str, text: &str) -> Option<Value> {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json" | "jsonc") => parse_to_serde_value(text, &ParseOptions::default()).ok(),
        _ => toml::from_str(text).ok().or_else(|| serde_json::from_str(text).ok()),
    }
}

fn of_document(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![document];
    while let Some(value) = left.pop() {
        let Value::Object(members) = value else { continue };
        for (key, value) in members {
            if lists_dependencies(key) { add(value, &mut found) } else { left.push(value) }
        }
    }
    found
}

/// True for the keys under which documents list dependencies.
fn lists_dependencies(key: &str) -> bool {
    key.to_ascii_lowercase().contains("dependenc")
        || matches!(
            key,
            "package" | "packages" | "packages-dev" | "require" | "require-dev" | "requires"
        )
}

/// True if a changed manifest or lock file takes a package from a directory of the tree from which it took
/// none before. Such a package is code of the attempt, and may replace one that the tests use. Always false
/// in an ecosystem in which a package finds only the packages that its own manifest names.
///
/// `is_directory` is true of the directories of the tree.
pub fn leads_into_tree(
    path: &str,
    before: Option<&str>,
    after: &str,
    is_directory: &dyn Fn(&str) -> bool,
) -> bool {
    let name = file_name(path);
    let Some(ecosystem) = ecosystem_of(name) else { return false };
    let is_lock = ecosystem.lock_files.contains(&name);
    let places = |text: &str| {
        let mut found = Places { is_directory, all: BTreeSet::new() };
        match document(name, text) {
            Some(document) => found.add_document(&document, "", is_lock),
            None if is_lock => found.add_lines(text),
            None => {}
        }
        found.all
    };
    ecosystem.finds != PackagesFound::Named
        && (!places(after).is_subset(&before.map(places).unwrap_or_default())
            || is_lock && before.is_some_and(|before| moves_package(name, before, after)))
}

/// True if a locked version of a package comes from another place than before.
fn moves_package(name: &str, before: &str, after: &str) -> bool {
    let sources = |text: &str| {
        let mut found = Sources::default();
        match document(name, text) {
            Some(document) => found.add_document(&document, "", &("", "")),
            None => found.add_lines(text),
        }
        found.0
    };
    let old = sources(before);
    sources(after).iter().any(|(package, own)| old.get(package).is_some_and(|old| old != own))
}

/// The places that a lock file names for each version of a package.
#[derive(Default)]
struct Sources(BTreeMap<(String, String), BTreeSet<String>>);

impl Sources {
    /// Adds those of a document. `key` leads to the value, which belongs to a version of a package.
    fn add_document(&mut self, value: &Value, key: &str, package: &(&str, &str)) {
        // Keys with addresses of pages about a package: nothing is installed from these.
        const ABOUT: [&str; 6] =
            ["deprecated", "funding", "homepage", "authors", "support", "notification-url"];
        match value {
            Value::Object(members) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str);
                let own = key.rsplit("node_modules/").next().unwrap_or(key);
                let own = text("version").map(|version| (text("name").unwrap_or(own), version));
                if let Some((name, version)) = own {
                    self.0.entry((name.to_owned(), version.to_owned())).or_default();
                }
                for (key, value) in members.iter().filter(|(key, _)| !ABOUT.contains(&key.as_str()))
                {
                    self.add_document(value, key, own.as_ref().unwrap_or(package));
                }
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.add_document(item, "", package));
            }
            Value::String(text) => self.add(package, text),
            _ => {}
        }
    }

    /// Adds those of a text in which a package is named above the lines about it.
    fn add_lines(&mut self, text: &str) {
        let mut package = String::new();
        let mut version = "";
        let mut head = 0;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let depth = line.len() - line.trim_start().len();
            let text = line.trim();
            if text.ends_with(':') && depth <= head.max(2) {
                (package, version, head) = (first_name(text).unwrap_or_default(), text, depth);
            } else if let Some(of_yarn) = text.strip_prefix("version") {
                version = of_yarn;
            }
            for word in text.split(|c: char| c.is_whitespace() || BETWEEN_WORDS.contains(c)) {
                self.add(&(&package, version), word);
            }
        }
    }

    fn add(&mut self, (name, version): &(&str, &str), text: &str) {
        if text.contains("://") || text.starts_with("file:") {
            let package = ((*name).to_owned(), (*version).to_owned());
            self.0.entry(package).or_default().insert(text.to_owned());
        }
    }
}

/// True if a manifest drops a package that is found in a directory of the tree then: code of the attempt
/// takes its place.
pub fn drops_into_tree(
    path: &str,
    before: Option<&str>,
    after: &str,
    is_directory: &dyn Fn(&str) -> bool,
) -> bool {
    let (Some(ecosystem), Some(before)) = (ecosystem_of(file_name(path)), before) else {
        return false;
    };
    let above = &path[..path.len() - file_name(path).len()];
    (ecosystem.found_instead)(before, after).iter().any(|at| is_directory(&format!("{above}{at}")))
}

/// The ecosystem of a manifest, or of a file in which its dependencies are locked, by its name.
pub fn ecosystem_of(name: &str) -> Option<&'static Ecosystem> {
    ALL.iter().copied().find(|e| (e.manifest)(name).is_some() || e.lock_files.contains(&name))
}

/// The characters between the words of a lock file, besides blanks.
const BETWEEN_WORDS: &str = "\"'`,;=()[]{}<>#?&|^*!";

/// The mentions of directories of the tree in a manifest or a lock file.
struct Places<'d> {
    is_directory: &'d dyn Fn(&str) -> bool,
    /// Each with the keys or the lines above it.
    all: BTreeSet<String>,
}

impl Places<'_> {
    /// Adds the mentions in a document. If `counts` is false, only those in its lists of dependencies.
    fn add_document(&mut self, value: &Value, above: &str, counts: bool) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    // These say where something is in the package itself.
                    if !matches!(key.as_str(), "autoload" | "autoload-dev" | "bin" | "extra") {
                        let counts = counts || lists_dependencies(key);
                        self.add_document(value, &format!("{above}\n{key}"), counts);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
                    self.add_document(item, &format!("{above}\n{name}"), counts);
                }
            }
            Value::String(text) if counts => self.add(text, above),
            // With `"link": true`, npm takes the package from the tree, whatever its address looks like.
            Value::Bool(true) if counts && above.ends_with("\nlink") => {
                self.all.insert(above.to_owned());
            }
            _ => {}
        }
    }

    /// Adds those of a text in which deeper lines belong to the line above them.
    fn add_lines(&mut self, text: &str) {
        let mut above: Vec<(usize, &str)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let depth = line.len() - line.trim_start().len();
            while above.pop_if(|(other, _)| *other >= depth).is_some() {}
            let lines: Vec<&str> = above.iter().map(|(_, line)| *line).collect();
            // The keys of pnpm begin with a slash.
            self.add(line.trim_start_matches([' ', '\'', '"', '/']), &lines.join("\n"));
            above.push((depth, line));
        }
    }

    fn add(&mut self, text: &str, above: &str) {
        let mut words = text.split(|c: char| c.is_whitespace() || BETWEEN_WORDS.contains(c));
        if words.any(|word| self.is_place(word)) {
            self.all.insert(format!("{above}\n{text}"));
        }
    }

    /// True if a word names a directory of the tree, or may name one in a way that is not read here: by a
    /// path from the root of the file system, or by an escape.
    fn is_place(&self, word: &str) -> bool {
        let is_local = word.contains("file:");
        if word.contains("://") && !is_local {
            return false;
        }
        word.contains('\\')
            || is_local && word.contains('%')
            || word.split([':', '@']).any(|part| part.starts_with('/') || self.is_inside(part))
    }

    fn is_inside(&self, part: &str) -> bool {
        let steps = part.split('/').filter(|step| !matches!(*step, "" | "." | ".."));
        let inside = steps.collect::<Vec<_>>().join("/");
        if inside.is_empty() { part.contains('.') } else { (self.is_directory)(&inside) }
    }
}

/// Adds the names in a list of dependencies, or in groups of them.
fn add(list: &Value, found: &mut BTreeSet<String>) {
    match list {
        // An object with a `name` describes one package, such as `[package]` in a manifest: it is not a list.
        Value::Object(members) if members.get("name").is_some_and(Value::is_string) => {
            found.extend(of_document(list));
        }
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Array(_) => add(value, found),
                    _ => found
                        .extend(first_name(name.rsplit("node_modules/").next().unwrap_or(name))),
                }
            }
        }
        Value::Array(items) => found.extend(items.iter().filter_map(|item| match item {
            Value::Object(members) => members.get("name")?.as_str().and_then(first_name),
            item => item.as_str().and_then(first_name),
        })),
        _ => {}
    }
}

/// The name with which a line or a requirement begins, without its version.
fn first_name(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['"', '\'', '/']);
    // A scope begins with `@`.
    let end = text
        .char_indices()
        .skip(1)
        .find(|(_, c)| c.is_whitespace() || "@:;=<>!~^([{,\"'".contains(*c))
        .map_or(text.len(), |(at, _)| at);
    let name = &text[..end];
    name.chars().any(char::is_alphanumeric).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_that_is_new_is_named_and_another_version_is_not() {
        let cases = [
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n",
                "[package]\nname = \"a\"\nlicense = \"MIT\"\n[dependencies]\nb = \"2\"\nc = { version = \"1\" }\n[target.'cfg(unix)'.dev-dependencies]\nd = \"1\"\n",
                "c d",
            ),
            (
                "x/Cargo.lock",
                "[[package]]\nname = \"b\"\nversion = \"1\"\n",
                "[[package]]\nname = \"b\"\nversion = \"2\"\n[[package]]\nname = \"c\"\n",
                "c",
            ),
            (
                "package.json",
                r#"{"dependencies": {"b": "1"}, "scripts": {"test": "x"}}"#,
                r#"{"dependencies": {"b": "2"}, "devDependencies": {"@s/c": "1"}, "scripts": {"e": "x"}}"#,
                "@s/c",
            ),
            (
                "package-lock.json",
                r#"{"packages": {"": {"name": "a"}, "node_modules/b": {"version": "1"}}}"#,
                r#"{"packages": {"": {"name": "a"}, "node_modules/b": {"version": "2"}, "node_modules/b/node_modules/@s/c": {}}}"#,
                "@s/c",
            ),
            (
                "pyproject.toml",
                "[project]\ndependencies = [\"b>=1\"]\n",
                "[project]\ndependencies = [\"b>=2\", \"c[x]==1\"]\n[project.optional-dependencies]\ntest = [\"d\"]\n",
                "c d",
            ),
            ("go.sum", "a.b/c v1.0 h1:x=\n", "a.b/c v1.1 h1:y=\na.b/d v1.0 h1:z=\n", "a.b/d"),
            (
                "yarn.lock",
                "b@^1:\n  version \"1\"\n",
                "b@^2:\n  version \"2\"\n\n\"@s/c@^1\":\n",
                "@s/c",
            ),
            ("src/a.json", "{}", r#"{"dependencies": {"b": "1"}}"#, ""),
        ];
        for (path, before, after, expected) in cases {
            let found = gained(path, Some(before), after);
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected, "{path}");
            assert!(gained(path, Some(after), after).is_empty(), "{path}");
        }
    }

    #[test]
    fn mention_of_a_directory_is_seen_and_another_version_is_none() {
        let npm = |from: &str| {
            format!(
                "{{\"packages\": {{\"node_modules/b\": {from}, \"lib\": {{\"bin\": \"lib\"}}}}}}"
            )
        };
        let pnpm = |from: &str| format!("importers:\n  .:\n    b:\n      version: {from}\n");
        let poetry = |from: &str| format!("[[package]]\nname = \"b\"\n{from}\n");
        let pairs = |before: String, after: [String; 2]| (before, after);
        let cases = [
            (
                "package-lock.json",
                pairs(
                    npm("{\"version\": \"1\", \"resolved\": \"https://x.org/lib/b.tgz\"}"),
                    [
                        npm("{\"version\": \"2\", \"resolved\": \"https://x.org/lib/b-2.tgz\"}"),
                        npm("{\"resolved\": \"l\\u0069b\", \"link\": true}"),
                    ],
                ),
            ),
            (
                "package-lock.json",
                pairs(
                    npm("{}"),
                    [npm("{\"license\": \"MIT\"}"), npm("{\"resolved\": \"file:/x\"}")],
                ),
            ),
            (
                "package-lock.json",
                pairs(
                    npm("{}"),
                    [npm("{\"link\": false}"), npm("{\"resolved\": \"\", \"link\": true}")],
                ),
            ),
            ("pnpm-lock.yaml", pairs(pnpm("1.0.0"), [pnpm("2.0.0"), pnpm("link:lib/b")])),
            (
                "pnpm-lock.yaml",
                pairs(String::new(), ["  /b/1.0.0:\n".to_owned(), "  b: \"l\\x69b\"\n".to_owned()]),
            ),
            (
                "yarn.lock",
                pairs(
                    "b@^1:\n  resolved \"https://x.org/b\"\n".to_owned(),
                    [
                        "b@^2:\n  resolved \"https://x.org/lib\"\n".to_owned(),
                        "b@^1:\n  resolved \"file:.\"\n".to_owned(),
                    ],
                ),
            ),
            (
                "poetry.lock",
                pairs(
                    poetry(""),
                    [poetry("version = \"2\""), poetry("[package.source]\nurl = \"lib\"")],
                ),
            ),
            (
                "pyproject.toml",
                pairs(
                    "[tool.poetry.dependencies]\nb = \"1\"\n".to_owned(),
                    [
                        "[tool.poetry.dependencies]\nb = \"^2\"\n[tool.x]\ny = \"lib\"\n"
                            .to_owned(),
                        "[tool.poetry.dependencies]\nb = { path = \"./lib\" }\n".to_owned(),
                    ],
                ),
            ),
            (
                "package.json",
                pairs(
                    "{\"dependencies\": {\"b\": \"1\"}, \"main\": \"x\"}".to_owned(),
                    [
                        "{\"dependencies\": {\"b\": \"2\"}, \"main\": \"lib\"}".to_owned(),
                        "{\"dependencies\": {\"b\": \"1\", \"c\": \"file:lib\"}}".to_owned(),
                    ],
                ),
            ),
        ];
        let is_directory = |directory: &str| matches!(directory, "" | "lib" | "lib/b");
        for (path, (before, after)) in cases {
            let leads = after.map(|own| leads_into_tree(path, Some(&before), &own, &is_directory));
            assert_eq!(leads, [false, true], "{path}: {before}");
            assert!(!leads_into_tree(path, Some(&before), &before, &is_directory), "{path}");
        }
        let named = "[dependencies]\nb = { path = \"lib\" }\n";
        assert!(!leads_into_tree("Cargo.toml", None, named, &is_directory));
    }
    #[test]
    fn locked_version_from_another_place_is_seen() {
        let npm = |version: &str, url: &str| {
            format!(
                "{{\"packages\": {{\"\": {{}}, \"node_modules/b\": {{\"version\": \"{version}\", \
                 \"resolved\": \"{url}\", \"funding\": {{\"url\": \"https://{version}{url}\"}}}}}}}}"
            )
        };
        let yarn = |version: &str, url: &str| {
            format!(
                "c@1:\n  version \"1\"\n\nb@^1, b@1:\n  version \"{version}\"\n  resolved \"{url}\"\n"
            )
        };
        let pnpm = |version: &str, url: &str| {
            format!(
                "packages:\n\n  b@{version}:\n    resolution: {{integrity: x, tarball: {url}}}\n"
            )
        };
        let poetry = |version: &str, url: &str| {
            format!(
                "[[package]]\nname = \"b\"\nversion = \"{version}\"\n[package.source]\nurl = \"{url}\"\n"
            )
        };
        let composer = |version: &str, url: &str| {
            format!(
                "{{\"packages\": [{{\"name\": \"b\", \"version\": \"{version}\", \"dist\": {{\"url\": \"{url}\"}}}}]}}"
            )
        };
        /// The lock file, and its text with a package of this version from this place.
        type Case<'a> = (&'a str, &'a dyn Fn(&str, &str) -> String);
        let cases: [Case<'_>; 5] = [
            ("package-lock.json", &npm),
            ("yarn.lock", &yarn),
            ("pnpm-lock.yaml", &pnpm),
            ("poetry.lock", &poetry),
            ("composer.lock", &composer),
        ];
        let is_directory = |_: &str| false;
        for (path, lock) in cases {
            let base = lock("1", "https://x.org/b");
            let leads = |own: &str| leads_into_tree(path, Some(&base), own, &is_directory);
            assert!(leads(&lock("1", "https://y.org/b")), "{path}");
            assert!(!leads(&lock("2", "https://x.org/b-2")), "{path}");
            assert!(!leads(&base), "{path}");
        }
    }
}
