//! The deciding part of a manifest: its scripts, lints and tests. A new dependency is no part of
//! it: who adds one does not change the tests.
use std::ops::Range;

use gix_imara_diff::sources::lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast, parse_to_serde_value};
use toml::Table;

/// Puts the deciding part of a manifest (`own`) back to how the base's text has it. The base has no
/// text if the manifest is new.
///
/// Gives `own` itself if the part is the base's already; `None` if the part cannot be put back by
/// itself.
pub type PutBackPart = fn(base: Option<&str>, own: &str) -> Option<String>;

/// Puts back the members with these keys at the top of a JSON document.
pub fn json_members(base: Option<&str>, own: &str, keys: &[&str]) -> Option<String> {
    // A new manifest belongs to a new package, which had no commands that could change.
    let Some(base) = base else { return Some(own.to_owned()) };
    let mut text = own.to_owned();
    for key in keys {
        text = with_member_of(base, &text, key)?;
    }
    Some(text)
}

/// `own` with the base's member of this key, or without one if the base has none.
fn with_member_of(base: &str, own: &str, key: &str) -> Option<String> {
    let wanted = member(base, key)?.map(|range| &base[range]);
    let found = member(own, key)?;
    match (wanted, found) {
        (None, None) => Some(own.to_owned()),
        (Some(wanted), Some(at)) if json(wanted)? == json(&own[at.clone()])? => {
            Some(own.to_owned())
        }
        (Some(wanted), Some(at)) => Some(replaced(own, at, wanted)),
        (Some(wanted), None) => {
            let start = own.find('{')? + 1;
            let comma = if is_empty_object(own)? { "" } else { "," };
            Some(replaced(own, start..start, &format!("\n  \"{key}\": {wanted}{comma}")))
        }
        (None, Some(at)) => without_member(own, &at),
    }
}

fn json(text: &str) -> Option<serde_json::Value> {
    parse_to_serde_value(text, &ParseOptions::default()).ok()
}

/// Calls `read` with the object that a JSON document is; `None` if it is not one.
fn with_object<T>(text: &str, read: impl FnOnce(&Object<'_>) -> Option<T>) -> Option<T> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    match &parsed.value {
        Some(Value::Object(object)) => read(object),
        _ => None,
    }
}

fn is_empty_object(text: &str) -> Option<bool> {
    with_object(text, |object| Some(object.properties.is_empty()))
}

/// The place of the value of a member at the top; none in it if there is no such member. Two
/// members of one name cannot be told apart.
fn member(text: &str, key: &str) -> Option<Option<Range<usize>>> {
    use jsonc_parser::common::Ranged;
    with_object(text, |object| {
        let mut found = object.properties.iter().filter(|p| p.name.as_str() == key);
        let first = found.next().map(|p| p.value.start()..p.value.end());
        if found.next().is_some() { None } else { Some(first) }
    })
}

/// A JSON document without the member whose value is at this place, and without its comma.
fn without_member(text: &str, value: &Range<usize>) -> Option<String> {
    use jsonc_parser::common::Ranged;
    with_object(text, |object| {
        let all = &object.properties;
        let at = all.iter().position(|p| p.value.start() == value.start)?;
        let range = match (all.get(at + 1), at.checked_sub(1).and_then(|before| all.get(before))) {
            (Some(next), _) => all[at].start()..next.start(),
            (None, Some(before)) => before.end()..all[at].end(),
            (None, None) => all[at].start()..all[at].end(),
        };
        Some(replaced(text, range, ""))
    })
}

/// A text with another text at this place.
pub fn replaced(text: &str, at: Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &text[..at.start], &text[at.end..])
}

/// Puts back the values at these paths of a TOML document. Gives true if any was another.
pub fn toml_values(base: &Table, own: &mut Table, paths: &[&[&str]]) -> Option<bool> {
    let mut changed = false;
    for path in paths {
        let wanted = toml_value(base, path);
        if toml_value(own, path) == wanted {
            continue;
        }
        set_toml_value(own, path, wanted.cloned())?;
        changed = true;
    }
    Some(changed)
}

/// Puts back the items that the list at this path of a TOML document has lost. Gives true if there
/// were any.
pub fn toml_lost_items(base: &Table, own: &mut Table, path: &[&str]) -> Option<bool> {
    let list = |table: &Table| toml_value(table, path).and_then(|v| v.as_array().cloned());
    let mut items = list(own).unwrap_or_default();
    let lost: Vec<_> =
        list(base).unwrap_or_default().into_iter().filter(|item| !items.contains(item)).collect();
    if lost.is_empty() {
        return Some(false);
    }
    items.extend(lost);
    set_toml_value(own, path, Some(toml::Value::Array(items)))?;
    Some(true)
}

fn toml_value<'t>(table: &'t Table, path: &[&str]) -> Option<&'t toml::Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

/// Sets or removes a value. `None` if something that is no table is in the way.
fn set_toml_value(table: &mut Table, path: &[&str], value: Option<toml::Value>) -> Option<()> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        match value {
            Some(value) => table.insert((*first).to_owned(), value),
            None => table.remove(*first),
        };
        return Some(());
    }
    let removes = value.is_none();
    let inner = table.entry(*first).or_insert_with(|| Table::new().into()).as_table_mut()?;
    set_toml_value(inner, rest, value)?;
    if removes && inner.is_empty() {
        table.remove(*first);
    }
    Some(())
}

/// Puts back everything outside the sections from `start` to the next `end`.
pub fn all_but_sections(base: Option<&str>, own: &str, start: &str, end: &str) -> Option<String> {
    // A new manifest belongs to a new package.
    let Some(base) = base else { return Some(own.to_owned()) };
    let (wanted, kept) = (sections(base, start, end), sections(own, start, end));
    if wanted.outside == kept.outside {
        return Some(own.to_owned());
    }
    if wanted.inside.len() != kept.inside.len() {
        return None;
    }
    let mut text = String::new();
    for (at, part) in wanted.outside.iter().enumerate() {
        text.push_str(part);
        text.push_str(kept.inside.get(at).copied().unwrap_or_default());
    }
    Some(text)
}

/// A text in pieces: what is before, between and after its sections, and the sections.
struct Sections<'t> {
    outside: Vec<&'t str>,
    inside: Vec<&'t str>,
}

fn sections<'t>(text: &'t str, start: &str, end: &str) -> Sections<'t> {
    let mut found = Sections { outside: Vec::new(), inside: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let body = at + start.len();
        let length = rest[body..].find(end).map_or(rest.len() - body, |e| e + end.len());
        found.outside.push(&rest[..at]);
        found.inside.push(&rest[at..body + length]);
        rest = &rest[body + length..];
    }
    found.outside.push(rest);
    found
}

/// Puts back all sections of an INI file but those for which `keep` is true of the name.
pub fn ini_sections(base: Option<&str>, own: &str, keep: fn(&str) -> bool) -> Option<String> {
    let parts = |text: &str, kept: bool| -> Vec<String> {
        let mut parts: Vec<(bool, String)> = vec![(false, String::new())];
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                parts.push((keep(name), String::new()));
            }
            if let Some((_, part)) = parts.last_mut() {
                part.push_str(line.trim_end());
                part.push('\n');
            }
        }
        let wanted = parts.into_iter().filter(|(is, part)| *is == kept && !part.trim().is_empty());
        wanted.map(|(_, part)| part.trim_end().to_owned() + "\n").collect()
    };
    let deciding = parts(base.unwrap_or_default(), false);
    if deciding == parts(own, false) {
        return Some(own.to_owned());
    }
    Some([deciding, parts(own, true)].concat().join("\n"))
}

/// A place at which two texts differ, in lines with their ends.
pub struct LineHunk<'t> {
    /// The line before; empty at the start.
    pub before: &'t str,
    /// The base's lines.
    pub removed: &'t [&'t str],
    /// The lines instead of them.
    pub added: &'t [&'t str],
}

/// The largest product of two texts' lines that are compared: hostile ones would take for ever.
const MOST_LINES: usize = 4_000_000;

/// Puts back the places for which `decides` is true; none if the texts are too long to compare.
pub fn line_hunks(
    base: Option<&str>,
    own: &str,
    decides: impl Fn(&LineHunk<'_>) -> bool,
) -> Option<String> {
    // A new manifest belongs to a new package.
    let Some(base) = base else { return Some(own.to_owned()) };
    let old: Vec<&str> = lines(base).collect();
    let new: Vec<&str> = lines(own).collect();
    if old.len().saturating_mul(new.len()) > MOST_LINES {
        return None;
    }
    let input = InternedInput::new(lines(base), lines(own));
    let mut text = String::new();
    let mut kept = 0;
    for change in Diff::compute(Algorithm::Myers, &input).hunks() {
        let removed = &old[change.before.start as usize..change.before.end as usize];
        let start = change.after.start as usize;
        text.push_str(&new[kept..start].concat());
        let before = start.checked_sub(1).map_or("", |at| new[at]);
        let end = change.after.end as usize;
        let hunk = LineHunk { before, removed, added: &new[start..end] };
        let side = if decides(&hunk) { hunk.removed } else { hunk.added };
        text.push_str(&side.concat());
        kept = end;
    }
    text.push_str(&new[kept..].concat());
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_json_are_put_back_and_the_rest_stays_as_it_is() {
        /// The base, the candidate's text, the result.
        type Case<'a> = (&'a str, &'a str, Option<&'a str>);
        let cases: [Case<'_>; 8] = [
            (
                r#"{"b": 1, "s": {"t": "x"}}"#,
                r#"{"s":{"t":"x"}, "b": 2}"#,
                Some(r#"{"s":{"t":"x"}, "b": 2}"#),
            ),
            (
                r#"{"s": {"t": "x"}}"#,
                r#"{"a": 1, "s": {}, "b": 2}"#,
                Some(r#"{"a": 1, "s": {"t": "x"}, "b": 2}"#),
            ),
            (r#"{"a": 1}"#, r#"{"a": 1, "s": {}, "b": 2}"#, Some(r#"{"a": 1, "b": 2}"#)),
            (r#"{"a": 1}"#, r#"{"a": 1, "s": {}}"#, Some(r#"{"a": 1}"#)),
            (r#"{}"#, r#"{"s": {}}"#, Some("{}")),
            (r#"{"s": 1}"#, r#"{"a": 1}"#, Some("{\n  \"s\": 1,\"a\": 1}")),
            (r#"{"s": 1}"#, r#"{"s": 1, "s": 2}"#, None),
            (r#"{"s": 1}"#, "{", None),
        ];
        for (base, own, expected) in cases {
            assert_eq!(json_members(Some(base), own, &["s"]).as_deref(), expected, "{own}");
        }
    }

    #[test]
    fn hunks_are_put_back_one_by_one() {
        let put_back = |base, own| {
            line_hunks(Some(base), own, |hunk| {
                hunk.removed.iter().chain(hunk.added).any(|line| line.contains("test"))
            })
        };
        let cases = [
            ("a\ntest b\nc\n", "x\na\ntest z\nc\ny\n", "x\na\ntest b\nc\ny\n"),
            ("a\ntest b\n", "a\n", "a\ntest b\n"),
            ("a\n", "a\ntest b\nc\n", "a\n"),
            ("a\n", "a\nb", "a\nb"),
        ];
        for (base, own, expected) in cases {
            assert_eq!(put_back(base, own).as_deref(), Some(expected), "{own:?}");
        }
    }

    #[test]
    fn sections_stay_and_the_rest_is_put_back() {
        let put_back = |base, own| all_but_sections(Some(base), own, "<d>", "</d>");
        assert_eq!(put_back("a<d>1</d>b", "a<d>2</d>b").as_deref(), Some("a<d>2</d>b"));
        assert_eq!(put_back("a<d>1</d>b", "x<d>2</d>y").as_deref(), Some("a<d>2</d>b"));
        assert_eq!(put_back("ab", "x<d>2</d>y"), None);
        let ini = |base, own| ini_sections(base, own, |name| name == "metadata");
        let own = "[metadata]\nversion = 2\n\n[tool:pytest]\naddopts = -k no\n";
        assert_eq!(ini(None, own).as_deref(), Some("[metadata]\nversion = 2\n"));
        let base = "[tool:pytest]\nx = 1\n[metadata]\nversion = 1\n";
        assert_eq!(
            ini(Some(base), own).as_deref(),
            Some("[tool:pytest]\nx = 1\n\n[metadata]\nversion = 2\n")
        );
    }
}
