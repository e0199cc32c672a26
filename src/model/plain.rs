//! The output of commands as plain text, so that it cannot control a terminal.

/// True for an invisible character that hides other characters or changes their direction. The zero-width
/// joiner and non-joiner are not among them: they belong to words and emoji.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// True for a character that a reader cannot see: a control character, or a hidden one.
pub fn is_invisible(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

/// A line as a terminal would finally show it. A carriage return begins the line again, a tab becomes
/// blanks, and escape sequences, other control characters and hidden characters are left out.
pub fn line(text: &str) -> String {
    let shown = text.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
    let mut plain = String::new();
    // After a tab the column is a multiple of 8, so only the text after the last tab needs to be measured.
    let mut after_tab = 0;
    for c in console::strip_ansi_codes(shown).chars() {
        match c {
            '\t' => {
                let blanks = 8 - console::measure_text_width(&plain[after_tab..]) % 8;
                plain.extend(std::iter::repeat_n(' ', blanks));
                after_tab = plain.len();
            }
            c if is_invisible(c) => {}
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_left() {
        let cases = [
            ("plain é 日本", "plain é 日本"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("10%\r100%\r", "100%"),
            ("a\tb", "a       b"),
            ("a\t\t日本\tb", "a               日本    b"),
            ("\u{9b}31mred \u{7}\u{8}end\u{202e}", "red end"),
            ("a\u{200b}b\u{2066}c\u{61c}d\u{feff} 👩\u{200d}👩", "abcd 👩\u{200d}👩"),
        ];
        for (text, shown) in cases {
            assert_eq!(line(text), shown, "{text:?}");
        }
        // A log may end with a line of this length, so the time must not grow with the square of the tabs.
        assert_eq!(line(&"\t".repeat(1 << 20)).len(), 8 << 20);
        let title = line("\x1b]0;title\x07shown \x1b]52;c;ZXZpbA==\x1b\\\x1bPq#0\x1b\\ \x1bc");
        assert!(title.contains("shown") && !title.contains(char::is_control), "{title:?}");
    }
}
