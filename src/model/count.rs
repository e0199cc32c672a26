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
    let more = names.len().saturating_sub(NAMES);
    let first: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    if more == 0 { first.join(", ") } else { format!("{} and {more} more", first.join(", ")) }
}
