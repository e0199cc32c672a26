//! Paths in git trees.

/// A path for a message: as it is, or quoted when it holds anything unusual.
pub fn quoted(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().any(|c| c.is_control() || c == '"' || c == '\\' || c == '\u{fffd}') {
        format!("\"{}\"", path.escape_ascii())
    } else {
        text.into_owned()
    }
}
