//! Prepares texts for a report.
use crate::model::plain;
use crate::ui::style::Tone;

pub fn class(tone: Tone) -> &'static str {
    tone.into()
}

/// A text in which control characters are replaced by Unicode's pictures of them, and hidden
/// characters by their numbers. Tabs and line feeds stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' | '\n' => shown.push(c),
            // Unicode's pictures of control characters have the same order as the characters.
            '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            c if plain::is_invisible(c) => {
                shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_stands_by_its_number() {
        let shown = visible(
            "a\tb\n\0\x1b[31m\u{7f}\u{9b}\u{202e}\u{2028}\u{200b}\u{ad}\u{e0041}é 日本 👩\u{200d}👩",
        );
        assert_eq!(
            shown,
            "a\tb\n␀␛[31m⟨U+007F⟩⟨U+009B⟩⟨U+202E⟩⟨U+2028⟩⟨U+200B⟩⟨U+00AD⟩⟨U+E0041⟩é 日本 👩\u{200d}👩"
        );
    }
}
