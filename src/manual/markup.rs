//! Translates the markup in which the hand-written parts of the manual are written to roff.
//!
//! The markup has headings (`# HEADING`), paragraphs with `` `literal` `` and `*placeholder*`,
//! verbatim lines (indented by four spaces), and terms. A term is a line that ends in `::`; the
//! definition of the term follows it.
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

/// Translates a text, and adds it to a page.
pub fn add(roff: &mut Roff, text: &str) {
    let mut lines = text.lines().peekable();
    // True after a heading or a term, where a paragraph needs no macro.
    let mut fresh = true;
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        if let Some(heading) = line.strip_prefix("# ") {
            roff.control("SH", [heading]);
            fresh = true;
        } else if let Some(code) = line.strip_prefix("    ") {
            if !fresh {
                roff.control("PP", []);
            }
            roff.control("RS", ["4"]);
            roff.control("nf", []);
            roff.text([roman(code)]);
            while let Some(code) = lines.next_if(|l| l.starts_with("    ") || l.is_empty()) {
                // An empty line ends the example, unless another example line follows.
                if code.is_empty() && lines.peek().is_none_or(|l| !l.starts_with("    ")) {
                    break;
                }
                roff.text([roman(code.get(4..).unwrap_or_default())]);
            }
            roff.control("fi", []);
            roff.control("RE", []);
            fresh = false;
        } else if let Some(term) = line.strip_suffix("::") {
            roff.control("TP", []);
            roff.text(inlines(term));
            fresh = true;
        } else {
            if !fresh {
                roff.control("PP", []);
            }
            roff.text(inlines(line));
            while let Some(more) =
                lines.next_if(|l| !l.is_empty() && !l.starts_with("    ") && !l.ends_with("::"))
            {
                roff.text(inlines(more));
            }
            fresh = false;
        }
    }
}

/// The parts of a line. Its literals are bold, and its placeholders are italic.
pub fn inlines(line: &str) -> Vec<Inline> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*']) {
        let mark = &rest[at..=at];
        let Some(length) = rest[at + 1..].find(mark).filter(|length| *length > 0) else { break };
        found.push(roman(&rest[..at]));
        let inner = &rest[at + 1..at + 1 + length];
        found.push(if mark == "`" { bold(inner) } else { italic(inner) });
        rest = &rest[at + length + 2..];
    }
    found.push(roman(rest));
    found.retain(|inline| *inline != roman(""));
    found
}

/// Breaks the text lines of a page at 80 bytes and removes trailing space, because mandoc's lint
/// requires both.
pub fn fill(page: &str) -> String {
    let mut filled = String::new();
    let mut as_it_stands = false;
    for line in page.lines().map(str::trim_end) {
        match line {
            ".nf" => as_it_stands = true,
            ".fi" => as_it_stands = false,
            _ => {}
        }
        if as_it_stands || line.starts_with(['.', '\'']) {
            filled.push_str(line);
            filled.push('\n');
            continue;
        }
        let mut width = 0;
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            if width > 0 && width + 1 + source_width(word) > 78 {
                filled.push('\n');
                width = 0;
            }
            if width > 0 {
                filled.push(' ');
            } else if word.starts_with(['.', '\'']) {
                filled.push_str("\\&");
            }
            filled.push_str(word);
            width += 1 + source_width(word);
        }
        filled.push('\n');
    }
    filled
}

/// The width of a word as mandoc counts it. For mandoc, a character beyond ASCII is an escape such
/// as `\[u2026]`.
fn source_width(word: &str) -> usize {
    word.chars()
        .map(|c| if c.is_ascii() { 1 } else { format!("\\[u{:04X}]", u32::from(c)).len() })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> String {
        let mut roff = Roff::new();
        add(&mut roff, text);
        roff.to_roff()
    }

    #[test]
    fn each_form_becomes_its_macro() {
        let text = "# EXAMPLES\nRun `git *x*`\n*RUN*, and so on:\n\n    a  b\n\n    c\n\n`-x`::\nIt is\n.odd.\n\nMore.\n";
        let roff = ".SH EXAMPLES\nRun \\fBgit *x*\\fR\n\\fIRUN\\fR, and so on:\n.PP\n.RS 4\n.nf\na  b\n\nc\n.fi\n.RE\n\
                    .TP\n\\fB\\-x\\fR\nIt is\n\\&.odd.\n.PP\nMore.\n";
        assert_eq!(render(text), roff);
    }

    #[test]
    fn long_lines_are_broken_and_no_word_becomes_a_request() {
        let word = "x".repeat(70);
        let page = format!(".SH A\n{word}  words .git 'quoted'\n.nf\n{word} {word}\n.fi\n");
        let filled = format!(".SH A\n{word} words\n\\&.git 'quoted'\n.nf\n{word} {word}\n.fi\n");
        assert_eq!(fill(&page), filled);
    }

    #[test]
    fn a_line_with_an_ellipsis_is_broken_where_mandoc_counts_80_bytes() {
        let word = "x".repeat(68);
        assert_eq!(fill(&format!("{word} … y\n")), format!("{word} …\ny\n"));
        assert_eq!(fill(&format!("{word} ... y\n")), format!("{word} ... y\n"));
    }

    #[test]
    fn a_mark_that_is_not_closed_is_a_letter() {
        assert_eq!(render("2 * 3 and `x\n"), "2 * 3 and `x\n");
    }
}
