//! The report in GitHub's Markdown, as text for a pull request.
use std::fmt::Write;

use crate::model::verdict::Verdict;
use crate::ui::comparison::{self, places};
use crate::ui::report::content::Report;
use crate::ui::report::wording::visible;

/// The verdict, its reason, the comparison and remarks for a reviewer, as Markdown. Text that
/// attempts wrote is escaped, so that it makes no markup, mentions no user, and refers to no issue
/// or commit.
pub fn markdown(report: &Report) -> String {
    let run = &report.run;
    let Some(verdict) = &report.verdict else {
        return format!("Run {run} of git-frites, from {}, is not judged.\n", run.base.short());
    };
    let mut text = String::new();
    let recommended = verdict.decision.recommended.as_ref();
    let name = recommended.map_or("no candidate".to_owned(), |name| code(name.as_str()));
    let word = if verdict.verified() { "verified" } else { "not verified" };
    let _ = write!(text, "**{name}: {word}** ({})\n\n", verdict.decision.decision);
    let _ = write!(text, "{}\n\n", escaped(&verdict.decision.rationale));
    table(&mut text, verdict);
    commands(&mut text, verdict);
    remarks(&mut text, report, verdict);
    let _ = writeln!(
        text,
        "<sub>Run {} of git-frites, from {}, judged {}.</sub>",
        escaped(run.run.as_str()),
        run.base.short(),
        verdict.judged.strftime("%Y-%m-%d %H:%M UTC")
    );
    text
}

fn table(text: &mut String, verdict: &Verdict) {
    let table = comparison::of_verdict(verdict);
    let headings = table.headings.join(" | ");
    let _ = writeln!(text, "| | candidate | outcome | {headings} | flags |");
    let lines = "---:|".repeat(table.headings.len());
    let _ = writeln!(text, "|---|---|---|{lines}---|");
    for row in &table.rows {
        let mark = match row.mark {
            "*" => "**→**".to_owned(),
            other => escaped(other),
        };
        let cells = [&row.outcome.0].into_iter().chain(&row.figures);
        let cells: Vec<String> = cells.map(|cell| escaped(cell)).collect();
        let cells = cells.join(" | ");
        let remarks = escaped(&row.remarks.join(", "));
        let _ = writeln!(
            text,
            "| {mark} | {} | {cells} | {remarks} |",
            code(&row.name).replace('|', "\\|")
        );
    }
    text.push('\n');
}

fn commands(text: &mut String, verdict: &Verdict) {
    for command in &verdict.terms.oracle {
        let _ = writeln!(text, "* {}: {}", command.stage, code(&command.command.to_string()));
    }
    if !verdict.terms.oracle.is_empty() {
        let _ = write!(
            text,
            "\nThe commands ran {}.\n\n",
            places(&verdict.terms.settings, verdict.doubt_about_attempts())
        );
    }
}

/// Adds remarks that a reviewer should read before the change lands.
fn remarks(text: &mut String, report: &Report, verdict: &Verdict) {
    let mut lines: Vec<String> = Vec::new();
    let recommended = verdict.decision.recommended.as_ref();
    if let Some(entry) = recommended.and_then(|name| verdict.entry(name)) {
        let name = &entry.candidate;
        lines.extend(entry.flags.iter().map(|flag| format!("{name} {flag}")));
        let dropped = entry.dropped.iter();
        lines.extend(dropped.map(|path| format!("{name}'s change to {path} was undone")));
    }
    lines.extend(comparison::remarks(verdict));
    lines.extend(report.warnings.iter().cloned());
    for line in &lines {
        let _ = writeln!(text, "* {}", escaped(line));
    }
    if !lines.is_empty() {
        text.push('\n');
    }
}

/// An invisible comment. GitHub does not read the characters before and after it as one word.
const BREAK: &str = "<!-- -->";

/// GitHub links a word of at least this many hexadecimal digits to a commit.
const SHORTEST_ID: usize = 7;

/// True if the text ends with `GH`. A following `-1` would refer to an issue (`GH-1`).
fn ends_with_gh(text: &str) -> bool {
    text.len() >= 2 && text.as_bytes()[text.len() - 2..].eq_ignore_ascii_case(b"gh")
}

/// A text as one line, escaped so that Markdown shows it unchanged.
fn escaped(text: &str) -> String {
    let mut shown = String::new();
    let text = visible(text);
    // The number of hexadecimal digits directly before this character, since the last break.
    let mut digits = 0;
    for (at, c) in text.char_indices() {
        digits = if c.is_ascii_hexdigit() { digits + 1 } else { 0 };
        if digits == SHORTEST_ID {
            shown.push_str(BREAK);
            digits = 1;
        }
        match c {
            '\n' => shown.push(' '),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            // GitHub finds users and issues after these characters, even if a backslash is before
            // them.
            '@' | '#' => shown.extend([&c.to_string(), BREAK]),
            '-' if ends_with_gh(&text[..at]) => {
                shown.extend(["-", BREAK]);
            }
            // These characters have no meaning within a line.
            ',' | ';' | '-' | '\'' | '"' | '(' | ')' | '%' | '=' | '?' => shown.push(c),
            c if c.is_ascii_punctuation() => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown
}

/// A text as code. In a table, the caller has to escape `|`, which would end the cell even in code.
fn code(text: &str) -> String {
    let text = visible(text).replace('\n', " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_makes_markup_mentions_or_references() {
        assert_eq!(
            escaped("*a* <b> @me #1 [x](y)\n`z`|\u{202e}"),
            "\\*a\\* &lt;b&gt; @<!-- -->me #<!-- -->1 \\[x\\](y) \\`z\\`\\|⟨U\\+202E⟩"
        );
        assert_eq!(escaped("http://www.x.y"), "http\\:\\/\\/www\\.x\\.y");
        assert_eq!(escaped("GH-1 gh-2 a-3 é-4"), "GH-<!-- -->1 gh-<!-- -->2 a-3 é-4");
        let id = "0123456789abcdef0123456789abcdef01234567";
        let shown = escaped(&format!("fix {id}, abc123 z"));
        assert_eq!(shown.replace(BREAK, ""), format!("fix {id}, abc123 z"));
        assert!(shown.split(|c: char| !c.is_ascii_hexdigit()).all(|run| run.len() < 7), "{shown}");
        assert!(shown.ends_with(", abc123 z"), "{shown}");
        assert_eq!(code("a`` b|c\nd"), "``` a`` b|c d ```");
    }
}
