//! The deciding part of a manifest: everything in it except two parts. These are the names and
//! versions of dependencies, and the description of the manifest's own package. A new dependency
//! does not change the tests, but any setting, script or code in a manifest may.
use std::collections::{BTreeMap, BTreeSet};

use gix_imara_diff::sources::lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast, parse_to_serde_value};
use toml::Table;

/// Restores the base's deciding part in the text of a changed manifest (`own`). `base` is `None` if
/// the manifest is new.
///
/// Returns `own` unchanged if its deciding part is the base's already. Returns `None` if only the
/// whole manifest can be put back.
pub type PutBackPart = fn(base: Option<&str>, own: &str) -> Option<String>;

/// Puts back all members at the top of a JSON document except those with these keys.
pub fn json_members(base: Option<&str>, own: &str, kept: &[&str]) -> Option<String> {
    let base = base.unwrap_or("{}");
    let wanted = document(base)?.properties;
    let wanted = wanted.iter().filter(|member| !kept.contains(&member.name.as_str()));
    let wanted: BTreeMap<&str, &str> =
        wanted.map(|member| (member.name.as_str(), member.value.text(base))).collect();
    let document = document(own)?;
    let start = document.start() + 1;
    let all = &document.properties;
    let stays = |member: &ObjectProp<'_>| {
        kept.contains(&member.name.as_str()) || wanted.contains_key(member.name.as_str())
    };
    let last = all.iter().rposition(stays);
    let keys: BTreeSet<&str> = all.iter().map(|member| member.name.as_str()).collect();
    let lost = wanted.iter().filter(|(key, _)| !keys.contains(**key));
    let lost: Vec<String> = lost.map(|(key, value)| format!("\n  \"{key}\": {value}")).collect();
    let mut text = own[..start].to_owned() + &lost.join(",");
    if !lost.is_empty() && last.is_some() {
        text.push(',');
    }
    text.push_str(&own[start..all.first().map_or(start, Ranged::start)]);
    for (at, member) in all.iter().enumerate().filter(|(_, member)| stays(member)) {
        let value = member.value.text(own);
        text.push_str(&own[member.start()..member.value.start()]);
        text.push_str(match wanted.get(member.name.as_str()) {
            Some(wanted) if json(wanted)? != json(value)? => wanted,
            _ => value,
        });
        if Some(at) != last {
            text.push_str(&own[member.value.end()..all[at + 1].start()]);
        }
    }
    text.push_str(&own[all.last().map_or(start, Ranged::end)..]);
    Some(text)
}

/// A JSON document; `None` if it is not an object, or if two members at its top have the same name.
fn document(text: &str) -> Option<Object<'_>> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let Some(Value::Object(object)) = parsed.value else { return None };
    let keys: BTreeSet<&str> =
        object.properties.iter().map(|member| member.name.as_str()).collect();
    (keys.len() == object.properties.len()).then_some(object)
}

/// A text as JSON, with the comments and trailing commas that some tools allow.
pub fn json(text: &str) -> Option<serde_json::Value> {
    parse_to_serde_value(text, &ParseOptions::default()).ok()
}

/// Returns the texts in a manifest that name parts of the product, such as its programs and its
/// main module. Leaves out the programs and modules that the commands name: those for whose names the
/// function returns true. `None` if the manifest cannot be read.
pub type EntryPoints = fn(text: &str, is_task: &dyn Fn(&str) -> bool) -> Option<Vec<String>>;

/// The texts at these paths of a document, such as `tool.poetry.scripts`, for [`EntryPoints`].
pub fn entry_points(
    document: &serde_json::Value,
    paths: &[&str],
    is_task: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        let keys: Vec<&str> = path.split('.').collect();
        if let Some(value) = keys.iter().try_fold(document, |value, key| value.get(key)) {
            add_texts(value, keys.last().unwrap_or(&""), is_task, &mut found);
        }
    }
    found
}

/// Adds the texts in the value of a key.
fn add_texts(
    value: &serde_json::Value,
    key: &str,
    is_task: &dyn Fn(&str) -> bool,
    found: &mut Vec<String>,
) {
    use serde_json::Value;
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|one| add_texts(one, key, is_task, found)),
        Value::Object(members) => {
            let has_names = matches!(key, "bin" | "exports" | "imports" | "scripts");
            for (name, value) in members {
                if !has_names || !is_task(name) {
                    add_texts(value, name, is_task, found);
                }
            }
        }
        _ => {}
    }
}

/// A TOML document in the form of JSON; `None` if the text is no TOML.
pub fn toml_as_json(text: &str) -> Option<serde_json::Value> {
    serde_json::to_value(text.parse::<Table>().ok()?).ok()
}

/// The words of a list that is written as one string.
pub fn words(list: &str) -> Vec<&str> {
    list.split_whitespace().collect()
}

/// Puts back all of a TOML document except the values at these paths, such as `tool.*.version`,
/// where `*` matches any key.
pub fn toml_values(base: &Table, own: &Table, kept: &[&str]) -> Table {
    let mut table = base.clone();
    for key in base.keys().chain(own.keys()).collect::<BTreeSet<_>>() {
        let paths = kept.iter().map(|path| path.split_once('.').unwrap_or((path, "")));
        let inside = paths.filter(|(first, _)| *first == "*" || first == key);
        let inner: Vec<&str> = inside.map(|(_, rest)| rest).collect();
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

/// The table at a key, empty if the key is missing; `None` if the value is not a table.
fn inner_table(table: &Table, key: &str) -> Option<Table> {
    table.get(key).map_or(Some(Table::new()), |value| value.as_table().cloned())
}

/// The text of the document `put_back`; `own` itself if the restore changed nothing, i.e. `was`
/// equals `put_back`.
pub fn toml_text(own: &str, was: &Table, put_back: &Table) -> Option<String> {
    if was == put_back { Some(own.to_owned()) } else { toml::to_string(put_back).ok() }
}

/// Puts back the items that the list at this path of a TOML document has lost. `None` if a value on
/// the path is not a table.
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

/// Puts back everything outside the sections. A section goes from `start` to the next `end`, or to
/// its own brace if `end` is a brace. In a section, only versions may differ, and lines for which
/// `names_package` is true. If anything else in it differs, the section is put back, too, because
/// that may be code. Returns `None` for a new manifest, and if the number of sections is not the
/// base's.
pub fn all_but_sections(
    base: Option<&str>,
    own: &str,
    (start, end): (&str, &str),
    names_package: fn(&str) -> bool,
) -> Option<String> {
    let (outside, wanted) = sections(base?, start, end);
    let (_, kept) = sections(own, start, end);
    if wanted.len() != kept.len() {
        return None;
    }
    let code = |section: &str| -> Vec<String> {
        let lines = section.lines().map(str::trim).filter(|line| !names_package(line));
        lines.map(without_versions).collect()
    };
    let mut text = String::new();
    for (at, part) in outside.into_iter().enumerate() {
        text.push_str(part);
        let (Some(old), Some(new)) = (wanted.get(at), kept.get(at)) else { continue };
        text.push_str(if code(old) == code(new) { new } else { old });
    }
    Some(text)
}

/// The line without the versions that it has in quotes.
pub fn without_versions(line: &str) -> String {
    let mut parts: Vec<&str> = line.split('"').collect();
    for part in parts.iter_mut().skip(1).step_by(2) {
        let number = part.trim_start_matches(['^', '~', '<', '>', '=', '!', '[', '(', ' ']);
        let ending = number.rsplit('.').next().unwrap_or_default();
        // `2x.gradle` is a file, not a version.
        if number.starts_with(|c: char| c.is_ascii_digit())
            && !ending.starts_with(|c: char| c.is_alphabetic())
            && !number.contains('/')
        {
            *part = "";
        }
    }
    parts.join("\"")
}

/// True if a text has only punctuation outside its quotes, and only names or versions inside. False
/// if two quotes have nothing between them, because they may begin a text of several lines.
pub fn is_quoted_list(mut text: &str) -> bool {
    let is_sign = |c: char| " ,()[]".contains(c);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,:<>=~!@*+_-/".contains(c);
    while let Some(quoted) = text.trim_start_matches(is_sign).strip_prefix(['"', '\'']) {
        let quote = &text[text.len() - quoted.len() - 1..][..1];
        match quoted.split_once(quote) {
            Some((name, rest)) if !name.is_empty() && name.chars().all(is_plain) => text = rest,
            _ => return false,
        }
    }
    text.chars().all(is_sign)
}

/// A text in pieces: the texts before, between and after its sections, and the sections.
fn sections<'t>(text: &'t str, start: &str, end: &str) -> (Vec<&'t str>, Vec<&'t str>) {
    let mut outside = Vec::new();
    let mut inside = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let body = at + start.len();
        let length = match end {
            "}" => own_brace(&rest[body..]),
            _ => rest[body..].find(end).map(|at| at + end.len()),
        };
        let stop = length.map_or(rest.len(), |length| body + length);
        outside.push(&rest[..at]);
        inside.push(&rest[at..stop]);
        rest = &rest[stop..];
    }
    outside.push(rest);
    (outside, inside)
}

/// The length of the text that follows an opening brace, up to its closing brace.
fn own_brace(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.match_indices(['{', '}']).find_map(|(at, brace)| {
        depth = if brace == "{" { depth + 1 } else { depth - 1 };
        (depth == 0).then_some(at + 1)
    })
}

/// Puts back all entries of an INI file except those for whose section and key `keep` is true. For
/// the heading of a section, `keep` gets an empty key.
pub fn ini_entries(base: Option<&str>, own: &str, keep: fn(&str, &str) -> bool) -> Option<String> {
    let wanted = ini(base.unwrap_or_default())?;
    let own_entries = ini(own)?;
    let is_put_back = |(section, key, _): &&IniEntry| !keep(section, key);
    if wanted.iter().filter(is_put_back).eq(own_entries.iter().filter(is_put_back)) {
        return Some(own.to_owned());
    }
    let headings = wanted.iter().filter(|(_, key, _)| key.is_empty());
    let headings: BTreeSet<&str> = headings.map(|(section, ..)| section.as_str()).collect();
    let of_base = wanted.iter().filter(|entry| entry.1.is_empty() || is_put_back(entry));
    let of_own = own_entries.iter().filter(|entry| !is_put_back(entry));
    let of_own =
        of_own.filter(|(section, key, _)| !key.is_empty() || !headings.contains(section.as_str()));
    let mut found: Vec<&IniEntry> = of_base.chain(of_own).collect();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (section, ..) in &found {
        let next = places.len();
        places.entry(section).or_insert(next);
    }
    found.sort_by_key(|(section, key, _)| (places[section.as_str()], !key.is_empty()));
    Some(found.into_iter().map(|(.., text)| text.as_str()).collect())
}

/// The value of a key in a section of an INI file, with its lines; `None` if the file cannot be read
/// for certain.
pub fn ini_value(text: &str, section: &str, key: &str) -> Option<String> {
    let entry = ini(text)?.into_iter().find(|(in_section, name, _)| {
        in_section.trim().trim_matches(['[', ']']) == section && name == key
    });
    entry.and_then(|(.., lines)| Some(lines.split_once(['=', ':'])?.1.to_owned()))
}

/// An entry of an INI file: its section, its key, and its lines.
type IniEntry = (String, String, String);

/// The entries of an INI file. Indented lines and comments continue an entry. Blank lines are
/// dropped. Returns `None` if a parser of INI files may read entries other than these, because the
/// file has one of the following:
/// * a heading with more than its name;
/// * an indented line that continues no key, such as a heading;
/// * a control character, which may be a blank or end a line.
fn ini(text: &str) -> Option<Vec<IniEntry>> {
    let mut entries: Vec<IniEntry> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (section, last_key) = match entries.last() {
            Some((section, key, _)) => (section.clone(), key.as_str()),
            None => Default::default(),
        };
        if line.trim_start().starts_with(['#', ';']) {
            if entries.is_empty() {
                entries.push(Default::default());
            }
        } else if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end().strip_suffix(']').filter(|name| !name.contains(']'))?;
            entries.push((name.to_owned(), String::new(), String::new()));
        } else if !line.starts_with(char::is_whitespace) {
            let key = line.split(['=', ':']).next().unwrap_or_default().trim();
            entries.push((section, key.to_owned(), String::new()));
        } else if last_key.is_empty() {
            return None;
        }
        if let Some((.., text)) = entries.last_mut() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    let is_strange = |c: char| c.is_control() && !"\n\t".contains(c);
    let is_plain = entries.iter().all(|(.., text)| !text.contains(is_strange));
    is_plain.then_some(entries)
}

/// A difference between two texts, in lines with their line ends.
pub struct LineHunk<'t> {
    /// The candidate's line before the difference; empty at the start of the text.
    pub before: &'t str,
    /// The base's lines that are gone.
    pub removed: &'t [&'t str],
    /// The candidate's lines in place of `removed`.
    pub added: &'t [&'t str],
}

/// The maximum number of lines of two compared texts together. Longer texts would take too long,
/// and a hostile attempt could write such a text.
const MOST_LINES: usize = 200_000;

/// Puts back the differences for which `decides` is true. Returns a new manifest unchanged, and
/// `None` if the texts are too long to compare.
pub fn line_hunks(
    base: Option<&str>,
    own: &str,
    decides: impl Fn(&LineHunk<'_>) -> bool,
) -> Option<String> {
    // A new manifest belongs to a new package, so there is nothing to put back.
    let Some(base) = base else { return Some(own.to_owned()) };
    let old: Vec<&str> = lines(base).collect();
    let new: Vec<&str> = lines(own).collect();
    if old.len() + new.len() > MOST_LINES {
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
    fn manifest_made_to_take_long_is_read_all_the_same() {
        let lines = |line: fn(usize) -> String| (0..50_000).map(line).collect::<Vec<_>>();
        let json = format!("{{{}}}", lines(|n| format!("\"x{n}\": {n}")).join(", "));
        assert_eq!(json_members(Some("{}"), &json, &[]).as_deref(), Some("{}"));
        let ini = format!("[a]\nx = 1\n{}\n", lines(|n| format!("[b{n}]\ny = 1")).join("\n"));
        let put_back = ini_entries(Some(""), &ini, |section, _| section != "a");
        assert!(put_back.is_some_and(|text| text.starts_with("[b0]\ny = 1\n[b1]\n")));
    }

    #[test]
    fn values_of_toml_are_put_back_and_those_at_named_paths_stay() {
        let base = "a = 1\n[s]\nx = 1\n[t.one.d]\nx = 1\n";
        let own = "a = 2\nb = 2\n[s]\nx = 2\ny = 2\n[t.one]\nc = 2\nd = 2\n[t.two]\nc = 2\nd = 2\n";
        let expected = "b = 2\n[s]\nx = 1\ny = 2\n[t.one]\nd = 2\n[t.two]\nd = 2\n";
        let table = |text: &str| text.parse::<Table>().expect("it is TOML");
        let kept = ["a", "b", "s.y", "t.*.d"];
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
        let [long, longer, too_long] = [9_000, 9_001, 200_000].map(|count| "a\n".repeat(count));
        assert_eq!(put_back(&long, &longer).as_ref(), Some(&longer));
        assert_eq!(put_back("b\n", &too_long), None);
    }

    #[test]
    fn sections_stay_and_the_rest_is_put_back() {
        let put_back =
            |base, own| all_but_sections(Some(base), own, ("<d>", "</d>"), |line| line != "code");
        assert_eq!(put_back("a<d>1</d>b", "a<d>2</d>b").as_deref(), Some("a<d>2</d>b"));
        assert_eq!(put_back("a<d>1</d>b", "x<d>2</d>y").as_deref(), Some("a<d>2</d>b"));
        assert_eq!(put_back("a<d>1</d>b", "a<d>\ncode\n</d>b").as_deref(), Some("a<d>1</d>b"));
        assert_eq!(put_back("a<d>\ncode\n</d>", "a<d>\n</d>").as_deref(), Some("a<d>\ncode\n</d>"));
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
        for unclear in [
            "[a]\n  [options]\n",
            "# a\n  [options]\n",
            "[a\n",
            "[a]]\n",
            "a = 1\r[options]\n",
            "[a]\n\u{1f}[options]\n",
        ] {
            assert_eq!(ini(Some(""), unclear), None, "{unclear:?}");
        }
        // A heading stays before the restored lines below it.
        let put_back = ini_entries(
            Some("[options]\nx = 1\nrequires = a\n[c]\n"),
            "[options]\nrequires = b\nx = 2\n[c]\n",
            |section, key| section == "options" && ["", "requires"].contains(&key),
        );
        assert_eq!(put_back.as_deref(), Some("[options]\nx = 1\nrequires = b\n[c]\n"));
        let plain = "[tool:pytest]\nx = 1\n\n[options]\nrequires = b\n";
        assert_eq!(ini(Some(base), plain).as_deref(), Some(plain));
        for (text, is) in [
            ("'x', \"~> 1.0\"", true),
            ("'x', exit", false),
            ("'x', '#{exit}'", false),
            ("\"\"\" 'x'", false),
        ] {
            assert_eq!(is_quoted_list(text), is, "{text}");
        }
    }
}
