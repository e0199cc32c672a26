//! JSON documents. Each command prints one, with `"version": 1`. The schema only grows.
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::Error;

/// A document that begins with the version.
pub fn document(fields: Value) -> String {
    let mut document = json!({ "version": crate::model::FORMAT });
    extend(&mut document, fields);
    format!("{document:#}\n")
}

pub fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (object, more) {
        fields.extend(more);
    }
}

/// A record as a part of a document, without the fields that have no value. All keys are converted,
/// so no key of the record may be data, such as the name of a candidate.
pub fn record(record: &impl Serialize) -> Value {
    with_underscores(serde_json::to_value(record).unwrap_or_default())
}

/// An error as the fields of a document.
pub fn error(error: &Error) -> Value {
    json!({
        "error": {
            "message": error.message, "hints": error.hints, "exit_code": error.kind.code(),
        },
    })
}

/// Converts keys as in records (`exit-code`) to keys as in documents (`exit_code`).
fn with_underscores(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.replace('-', "_"), with_underscores(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(with_underscores).collect(),
        other => other,
    }
}

/// Adds a path as the field `key`. If the path is not UTF-8, the field has an approximation, and
/// `key_hex` has the exact bytes.
pub fn put_path(object: &mut Value, key: &str, path: &[u8]) {
    object[key] = json!(String::from_utf8_lossy(path));
    if std::str::from_utf8(path).is_err() {
        object[format!("{key}_hex")] = json!(HEXLOWER.encode(path));
    }
}

/// A path as an object, for lists of paths.
pub fn path(path: &[u8]) -> Value {
    let mut object = json!({});
    put_path(&mut object, "path", path);
    object
}

/// Adds a file system path as [`put_path`] does.
pub fn put_file(object: &mut Value, key: &str, path: &Path) {
    put_path(object, key, path.as_os_str().as_bytes());
}
