//! Numbers of things in words.
use std::fmt::Display;

/// A number of things: `1 line`, `3 lines`.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str) -> String {
    let s = if n == N::from(1) { "" } else { "s" };
    format!("{n} {one}{s}")
}
