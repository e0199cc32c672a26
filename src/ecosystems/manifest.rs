//! The decisive part of a manifest: its scripts, lints and tests. A new dependency is no part of
//! it: who adds one does not change the tests.
use serde_json::Value;

/// Returns a text that changes exactly if a manifest's decisive part does; none if the manifest
/// cannot be parsed.
pub type DecisivePart = fn(&str) -> Option<String>;

/// The values of these keys at the top of a JSON document.
pub fn json_values(text: &str, keys: &[&str]) -> Option<String> {
    let document: Value = serde_json::from_str(text).ok()?;
    Some(keys.iter().map(|key| format!("{key}: {}\n", document[*key])).collect())
}

/// A text without each section from `start` to the next `end`, both included.
pub fn without_sections(text: &str, start: &str, end: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(start) {
        kept.push_str(before);
        rest = after.split_once(end).map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The lines of a text for which `keep` is true.
pub fn lines_where(text: &str, keep: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| keep(line)).collect::<Vec<_>>().join("\n")
}
