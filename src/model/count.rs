//! Numbers of things in words.
use std::fmt::Display;

/// The maximum number of names in a sentence.
pub const NAMES: usize = 3;

/// A number of things: `1 line`, `3 lines`.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str) -> String {
    let s = if n == N::from(1) { "" } else { "s" };
    format!("{n} {one}{s}")
}

/// The first few names, and how many more there are.
pub fn some_of(names: &[String]) -> String {
    let first = &names[..names.len().min(NAMES)];
    format!("{}{}", first.join(", "), and_more(names.len() - first.len()))
}

/// How many more there are than a sentence has named: ` and 2 more`; nothing if there are no more.
pub fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}
