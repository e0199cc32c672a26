//! Generates git-frites-json(5) from the schema. The page lists every field of every JSON document.
use serde_json::Value;

const SCHEMA: &str = include_str!("../../schema/git-frites.schema.json");

/// The text of the page, in the markup of `markup`.
pub fn text() -> String {
    let schema: Value = serde_json::from_str(SCHEMA).expect("a test reads it");
    let mut text = String::from(INTRODUCTION);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        // Definitions that do not name a command are parts of documents, and their fields are
        // listed with the documents.
        let about = description(definition);
        if !about.contains("git frites") {
            continue;
        }
        text.push_str(&format!("# {}\n{about}.\n\n", name.to_uppercase()));
        let events = definition["oneOf"].as_array();
        for event in events.into_iter().flatten() {
            let name = event["properties"]["event"]["const"].as_str().unwrap_or_default();
            text.push_str(&format!("`{name}`::\n{}\n\n", description(event)));
        }
        for event in events.into_iter().flatten() {
            let event_name = event["properties"]["event"]["const"].as_str().unwrap_or_default();
            fields(&schema, event, &format!("{event_name}: "), &mut text);
        }
        fields(&schema, definition, "", &mut text);
    }
    text
}

const INTRODUCTION: &str = "\
# DESCRIPTION
With `--json`, a command prints one document; `git frites log --json` prints one object per line. `version` is 1. Fields \
may be added; they are never removed, and their meaning never changes. Programs must ignore unknown fields.

A field whose name ends in `?` below is optional; one whose name ends in `[]` is a list. A path that is not UTF-8 is \
approximated, and a field whose name ends in `_hex` has its bytes. Times are in UTC, sizes in bytes, durations in seconds.

The JSON schema is installed as `share/git-frites/git-frites.schema.json`. `#/$defs/judge` describes `git frites judge \
--json`, and so on.

";

fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// Adds one term to `text` for each field of `of`, followed by the terms of the field's own fields.
fn fields(schema: &Value, of: &Value, prefix: &str, text: &mut String) {
    let required: Vec<&str> =
        of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in of["properties"].as_object().into_iter().flatten() {
        if matches!(name.as_str(), "version" | "event")
            || name.ends_with("_hex")
            || description(field).is_empty()
        {
            continue;
        }
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let list = if field["type"] == "array" { "[]" } else { "" };
        let place = format!("{prefix}{name}{list}");
        text.push_str(&format!(
            "`{place}{optional}`::\n{}{}\n\n",
            description(field),
            words(field)
        ));
        let inner = if list.is_empty() { field } else { &field["items"] };
        fields(schema, referred(schema, inner), &format!("{place}."), text);
    }
}

/// The definition that a field refers to: follows its `$ref`, or else the `$ref` of the part of its
/// `anyOf` that is not null.
fn referred<'a>(schema: &'a Value, field: &'a Value) -> &'a Value {
    let one = match field["anyOf"].as_array() {
        Some(several) => several.iter().find(|one| one["type"] != "null").unwrap_or(field),
        None => field,
    };
    match one["$ref"].as_str() {
        Some(target) => schema.pointer(target.trim_start_matches('#')).unwrap_or(one),
        None => one,
    }
}

/// A sentence that lists the permitted values of a field; empty if the schema does not list them.
fn words(field: &Value) -> String {
    let words: Vec<String> = field["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|w| format!("`{}`", w.as_str().unwrap_or_default()))
        .collect();
    if words.is_empty() { String::new() } else { format!(" One of {}.", words.join(", ")) }
}
