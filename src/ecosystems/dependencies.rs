//! The dependencies that a manifest or a lock file names: who adds one adds code that nobody sees in the
//! change.
//!
//! Formats differ, and what they have in common is enough: a document lists dependencies under a key that
//! says so, and in any other lock file a line begins with the name of a package.
use std::collections::BTreeSet;

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use crate::ecosystems::ecosystem::Ecosystem;

/// The dependencies that a changed file has gained; empty if it is neither a manifest nor a lock file.
pub fn gained(
    ecosystems: &[&Ecosystem],
    path: &str,
    before: Option<&str>,
    after: &str,
) -> BTreeSet<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_lock = ecosystems.iter().any(|e| e.lock_files.contains(&name));
    if !is_lock && !ecosystems.iter().any(|e| (e.manifest)(name).is_some()) {
        return BTreeSet::new();
    }
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
        || matches!(key, "package" | "packages" | "require" | "require-dev")
}

/// Adds the names in a list of dependencies, or in groups of them.
fn add(list: &Value, found: &mut BTreeSet<String>) {
    match list {
        // The tables of one package, as `[package]` in a manifest, are no list.
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
    use crate::ecosystems::ALL;

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
            let found = gained(ALL, path, Some(before), after);
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected, "{path}");
            assert!(gained(ALL, path, Some(after), after).is_empty(), "{path}");
        }
    }
}
