//! The output of commands as plain text, so that it cannot control a terminal.

/// True for an invisible character that hides other characters or changes their direction. The
/// zero-width joiner and non-joiner are not among them: they belong to words and emoji.
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

/// A line. If it has more than `most` characters, it is cut.
pub fn cut(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

/// A line as a terminal would finally show it. A carriage return begins the line again, and a tab
/// becomes blanks. Escape sequences, other control characters and hidden characters are left out.
pub fn line(text: &str) -> String {
    let shown = text.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
    let mut plain = String::new();
    // After a tab the column is a multiple of 8, so only the text after the last tab needs to be
    // measured.
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

/// A text that git has colored, for a terminal. Its colors stay. Every other control or hidden
/// character is escaped, so that a changed file cannot control the terminal.
pub fn colored(text: &str) -> String {
    let is_color = |sequence: &str| {
        let inner = sequence.strip_prefix("\x1b[").and_then(|rest| rest.strip_suffix('m'));
        inner.is_some_and(|inner| inner.bytes().all(|b| b.is_ascii_digit() || b == b';'))
    };
    let mut shown = String::new();
    for (piece, is_sequence) in console::AnsiCodeIterator::new(text) {
        if is_sequence && is_color(piece) {
            shown.push_str(piece);
            continue;
        }
        for c in piece.chars() {
            match c {
                '\n' | '\t' => shown.push(c),
                c if is_invisible(c) => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colors_reach_the_terminal() {
        let patch = "\x1b[32m+a\tb\x1b[m\r\n\x1b]0;title\x07\x1b[2J\u{9b}5n\u{202e}é\n";
        let shown = "\x1b[32m+a\tb\x1b[m\\r\n\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{9b}5n\\u{202e}é\n";
        assert_eq!(colored(patch), shown);
    }

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
        // A log may end with a line of this length, so the time must not grow with the square of
        // the tabs.
        assert_eq!(line(&"\t".repeat(1 << 20)).len(), 8 << 20);
        let title = line("\x1b]0;title\x07shown \x1b]52;c;ZXZpbA==\x1b\\\x1bPq#0\x1b\\ \x1bc");
        assert!(title.contains("shown") && !title.contains(char::is_control), "{title:?}");
    }
}
