//! The deciding part of a manifest: everything but the names and versions of packages, and the
//! description of its own one. Who adds a dependency does not change the tests; a setting, a script or
//! code may, whatever its name is.
use std::collections::BTreeSet;
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

/// Puts back all members at the top of a JSON document but those with these keys.
pub fn json_members(base: Option<&str>, own: &str, kept: &[&str]) -> Option<String> {
    let base = base.unwrap_or("{}");
    let mut text = own.to_owned();
    let keys = keys(base)?.into_iter().chain(keys(own)?).collect::<BTreeSet<_>>();
    for key in keys.iter().filter(|key| !kept.contains(&key.as_str())) {
        text = with_member_of(base, &text, key)?;
    }
    Some(text)
}

/// The keys at the top of a JSON document.
fn keys(text: &str) -> Option<Vec<String>> {
    with_object(text, |object| {
        Some(object.properties.iter().map(|p| p.name.as_str().to_owned()).collect())
    })
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

/// The place of the value of a member at the top: `Some(None)` if there is no such member, `None` if
/// there are two, which cannot be told apart.
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

/// Puts back all of a TOML document but the values at these paths, in which `*` stands for any key.
pub fn toml_values(base: &Table, own: &Table, kept: &[&[&str]]) -> Table {
    let mut table = base.clone();
    for key in base.keys().chain(own.keys()).collect::<BTreeSet<_>>() {
        let inner: Vec<&[&str]> = kept
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(first, _)| **first == "*" || *first == key)
            .map(|(_, rest)| rest)
            .collect();
        let value = if inner.iter().any(|path| path.is_empty()) {
            own.get(key).cloned()
        } else if let (Some(base), Some(own)) = (inner_table(base, key), inner_table(own, key)) {
            let inner = toml_values(&base, &own, &inner);
            (!inner.is_empty()).then_some(inner.into())
        } else {
            continue;
        };
        match value {
            Some(value) => table.insert(key.clone(), value),
            None => table.remove(key),
        };
    }
    table
}

/// The table at a key, which is empty if nothing is there; `None` for something else.
fn inner_table(table: &Table, key: &str) -> Option<Table> {
    table.get(key).map_or(Some(Table::new()), |value| value.as_table().cloned())
}

/// `own` if this is what it says, else this.
pub fn toml_text(own: &str, was: &Table, put_back: &Table) -> Option<String> {
    if was == put_back { Some(own.to_owned()) } else { toml::to_string(put_back).ok() }
}

/// Puts back the items that the list at this path of a TOML document has lost. `None` if something that
/// is no table is in the way.
pub fn toml_lost_items(base: &Table, own: &mut Table, path: [&str; 2]) -> Option<()> {
    let list = |table: &Table| table.get(path[0])?.get(path[1])?.as_array().cloned();
    let mut items = list(own).unwrap_or_default();
    let lost: Vec<_> =
        list(base).unwrap_or_default().into_iter().filter(|item| !items.contains(item)).collect();
    if !lost.is_empty() {
        items.extend(lost);
        let table = own.entry(path[0]).or_insert_with(|| Table::new().into()).as_table_mut()?;
        table.insert(path[1].to_owned(), items.into());
    }
    Some(())
}

/// Puts back everything outside the sections from `start` to the next `end`, and sections with a new
/// line for which `names_package` is false: it may be code.
pub fn all_but_sections(
    base: Option<&str>,
    own: &str,
    (start, end): (&str, &str),
    names_package: fn(&str) -> bool,
) -> Option<String> {
    // A new manifest belongs to a new package.
    let Some(base) = base else { return Some(own.to_owned()) };
    let (wanted, kept) = (sections(base, start, end), sections(own, start, end));
    if wanted.inside.len() != kept.inside.len() {
        return (wanted.outside == kept.outside).then(|| own.to_owned());
    }
    let mut text = String::new();
    for (at, part) in wanted.outside.iter().enumerate() {
        text.push_str(part);
        let (Some(old), Some(new)) = (wanted.inside.get(at), kept.inside.get(at)) else { continue };
        let mut lines = new.lines().filter(|line| !old.lines().any(|other| other == *line));
        text.push_str(if lines.all(|line| names_package(line.trim())) { new } else { old });
    }
    Some(text)
}

/// True if nothing but signs stands outside of the quotes of a text, which hold a name or versions.
pub fn is_quoted_list(text: &str) -> bool {
    let is_sign = |c: char| " ,()[]".contains(c);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,:<>=~!@*+_-/".contains(c);
    let mut parts = text.split(['"', '\'']).enumerate();
    text.split(['"', '\'']).count() % 2 == 1
        && parts.all(|(at, part)| {
            part.chars().all(|c| if at % 2 == 0 { is_sign(c) } else { is_plain(c) })
        })
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

/// Puts back all entries of an INI file but those for which `keep` is true of the section and the key.
/// The key of a section's heading is empty.
pub fn ini_entries(base: Option<&str>, own: &str, keep: fn(&str, &str) -> bool) -> Option<String> {
    let wanted = ini(base.unwrap_or_default());
    let own_entries = ini(own);
    let is_put_back = |(section, key, _): &&IniEntry| !keep(section, key);
    if wanted.iter().filter(is_put_back).eq(own_entries.iter().filter(is_put_back)) {
        return Some(own.to_owned());
    }
    let mut found: Vec<&IniEntry> = wanted.iter().filter(is_put_back).collect();
    for entry in own_entries.iter().filter(|entry| !is_put_back(entry)) {
        let behind = found.iter().rposition(|(section, ..)| *section == entry.0);
        found.insert(behind.map_or(found.len(), |at| at + 1), entry);
    }
    Some(found.into_iter().map(|(.., text)| text.as_str()).collect())
}

/// An entry of an INI file: its section, its key, and its lines.
type IniEntry = (String, String, String);

/// The entries of an INI file. Indented lines go on, and so do blank lines and comments.
fn ini(text: &str) -> Vec<IniEntry> {
    let mut entries: Vec<IniEntry> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let section = entries.last().map(|(section, ..)| section.clone()).unwrap_or_default();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            entries.push((name.to_owned(), String::new(), String::new()));
        } else if !line.starts_with([' ', '\t', '#', ';']) || entries.is_empty() {
            let key = line.split(['=', ':']).next().unwrap_or_default().trim();
            entries.push((section, key.to_owned(), String::new()));
        }
        if let Some((.., text)) = entries.last_mut() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    entries
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

/// Puts back the places for which `decides` is true; `None` if the texts are too long to compare.
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
    fn members_of_json_are_put_back_and_those_that_are_named_stay() {
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
            assert_eq!(json_members(Some(base), own, &["a", "b"]).as_deref(), expected, "{own}");
        }
    }

    #[test]
    fn values_of_toml_are_put_back_and_those_at_named_paths_stay() {
        let base = "a = 1\n[s]\nx = 1\n[t.one.d]\nx = 1\n";
        let own = "a = 2\nb = 2\n[s]\nx = 2\ny = 2\n[t.one]\nc = 2\nd = 2\n[t.two]\nc = 2\nd = 2\n";
        let expected = "b = 2\n[s]\nx = 1\ny = 2\n[t.one]\nd = 2\n[t.two]\nd = 2\n";
        let table = |text: &str| text.parse::<Table>().expect("it is TOML");
        let kept: [&[&str]; 4] = [&["a"], &["b"], &["s", "y"], &["t", "*", "d"]];
        let put_back = toml_values(&table(base), &table(own), &kept);
        assert_eq!(put_back, table(&format!("a = 2\n{expected}")));
        assert_eq!(toml_values(&table("s = 1"), &table("[s]\ny = 1"), &kept), table("s = 1"));
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
        let put_back =
            |base, own| all_but_sections(Some(base), own, ("<d>", "</d>"), |line| line != "code");
        assert_eq!(put_back("a<d>1</d>b", "a<d>2</d>b").as_deref(), Some("a<d>2</d>b"));
        assert_eq!(put_back("a<d>1</d>b", "x<d>2</d>y").as_deref(), Some("a<d>2</d>b"));
        assert_eq!(put_back("a<d>1</d>b", "a<d>\ncode\n</d>b").as_deref(), Some("a<d>1</d>b"));
        assert_eq!(put_back("ab", "x<d>2</d>y"), None);
        let ini = |base, own| {
            ini_entries(base, own, |section, key| section == "options" && key == "requires")
        };
        let own =
            "[options]\nrequires =\n  a\n  b\nscripts = x\n\n[tool:pytest]\naddopts = -k no\n";
        let base = "[tool:pytest]\nx = 1\n[options]\nrequires = a\n";
        assert_eq!(
            ini(Some(base), own).as_deref(),
            Some("[tool:pytest]\nx = 1\n[options]\nrequires =\n  a\n  b\n")
        );
        let plain = "[tool:pytest]\nx = 1\n\n[options]\nrequires = b\n";
        assert_eq!(ini(Some(base), plain).as_deref(), Some(plain));
        for (text, is) in
            [("'x', \"~> 1.0\"", true), ("'x', exit", false), ("'x', '#{exit}'", false)]
        {
            assert_eq!(is_quoted_list(text), is, "{text}");
        }
    }
}
