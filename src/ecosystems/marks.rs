//! Finds tests, and code that skips tests, by marks in the lines of a source file.
use std::borrow::Cow;

use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::paths::is_in_name;
use crate::ecosystems::touched::{is_test_path, source_of};
use crate::model::changed_file::ChangedFile;

/// The first character of each line of [`code`] that begins inside a comment or a string literal.
const INSIDE: char = '\0';

/// The lines of a source file after [`joined`], with blanks in place of comments and of the content
/// of string literals. Returns `None` if a comment, or a literal that may have several lines, has
/// no end, because the language's tools then read the file in another way.
pub fn code(source: &Ecosystem, text: &str) -> Option<String> {
    code_of_joined(source, &joined(source, text))
}

/// The code, or the whole text if it cannot be read.
pub fn code_or_text(source: &Ecosystem, text: &str) -> String {
    code(source, text).unwrap_or_else(|| text.to_owned())
}

/// Joins each line that ends in a backslash to the next one, if the language does so. Blanks may
/// follow the backslash, as compilers allow.
fn joined<'t>(source: &Ecosystem, text: &'t str) -> Cow<'t, str> {
    if !source.joins_lines {
        return text.into();
    }
    let lines = text.split_inclusive('\n');
    lines.map(|line| line.trim_end().strip_suffix('\\').unwrap_or(line)).collect()
}

fn code_of_joined(source: &Ecosystem, text: &str) -> Option<String> {
    if let Some(code) = source.code {
        return code(text);
    }
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    // The last quote that is not closed on its line, and the end of that line.
    let mut unclosed = ("", 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let quote = source.quotes.iter().copied().find(|quote| rest.starts_with(quote));
        let quote = quote.or((c == '/' && may_begin_pattern(&code)).then_some("/"));
        let (shown, length) = if !source.comment.is_empty() && rest.starts_with(source.comment) {
            (0, rest.find('\n'))
        } else if !source.block_comment.0.is_empty() && rest.starts_with(source.block_comment.0) {
            let (start, end) = source.block_comment;
            (0, Some(start.len() + rest[start.len()..].find(end)? + end.len()))
        } else if let Some(length) = (source.raw_text)(&code, rest) {
            (1, Some(length?))
        } else if let Some(quote) = quote
            && !(quote == unclosed.0 && at < unclosed.1)
            && !(quote == "'" && ends_with_number(&code))
        {
            match length_of_quoted(rest, quote) {
                Some(length) => (quote.len(), Some(length)),
                None if is_in_one_line(quote) => {
                    unclosed = (quote, rest.find('\n').map_or(text.len(), |end| at + end));
                    (c.len_utf8(), Some(c.len_utf8()))
                }
                None => return None,
            }
        } else {
            (c.len_utf8(), Some(c.len_utf8()))
        };
        let length = length.unwrap_or(rest.len());
        let hidden_to = length.saturating_sub(shown).max(shown);
        code.push_str(&rest[..shown]);
        for c in rest[shown..hidden_to].chars() {
            match c {
                '\n' => code.extend(['\n', INSIDE]),
                _ => code.push(' '),
            }
        }
        code.push_str(&rest[hidden_to..length]);
        at += length;
    }
    Some(code)
}

/// True if the code ends with a number, so that a quote after it separates digits (`1'000`).
fn ends_with_number(code: &str) -> bool {
    // No number is longer, and reading more characters would take time at each quote.
    let end = code.chars().rev().take(80);
    let number = end.take_while(|c| is_in_name(*c) || *c == '\'');
    number.last().is_some_and(|c| c.is_ascii_digit())
}

/// True for a quote whose string literal must end on the same line.
fn is_in_one_line(quote: &str) -> bool {
    ["\"", "'", "/"].contains(&quote)
}

/// The length of a text in quotes; `None` if it has no end.
fn length_of_quoted(rest: &str, quote: &str) -> Option<usize> {
    let mut in_class = false;
    let mut at = quote.len();
    loop {
        let text = &rest[at..];
        at += match text.chars().next()? {
            '\\' if quote == "/" && text[1..].starts_with('\n') => return None,
            '\\' => 1 + text[1..].chars().next()?.len_utf8(),
            '\n' if is_in_one_line(quote) => return None,
            _ if text.starts_with(quote) && !in_class => return Some(at + quote.len()),
            c => {
                in_class = quote == "/" && (c == '[' || in_class && c != ']');
                c.len_utf8()
            }
        };
    }
}

/// True if a slash after this code begins a regular expression, and is no division.
fn may_begin_pattern(code: &str) -> bool {
    let code = code.trim_end_matches([' ', '\t']);
    code.ends_with(|c: char| "\n(,=:[!&|?{};".contains(c)) || code.ends_with("return")
}

/// A test among the code.
pub struct LooseTest {
    /// The text, from the attributes before the marked line on.
    pub text: String,
    /// The number of lines with a mark.
    marks: usize,
}

/// The tests among the code. A test is a marked line, with the attributes before it and the lines
/// that belong to it. Lines belong to it by their indentation, or because they are in a string
/// literal or in brackets. A test inside another one is part of that one. So no line is kept twice,
/// however deep a file nests its marks.
pub fn loose_tests(source: &Ecosystem, text: &str) -> Vec<LooseTest> {
    let text = &*joined(source, text);
    let all_code = code_of_joined(source, text).unwrap_or_else(|| text.to_owned());
    let mut found: Vec<(LooseTest, String)> = Vec::new();
    // The least indentation of a mark in the current test; `usize::MAX` before its first mark.
    // `None` if the previous line belongs to no test.
    let mut outermost = None;
    // True in attributes, which stand before the item that they mark, with the same indentation.
    let mut in_head = false;
    // The number of brackets that are open in the test, and in its last attribute.
    let mut open = 0;
    let mut open_in_head = 0;
    for (line, (line_code, rest)) in text.lines().zip(lines(&all_code)) {
        let is_inside = open > 0 || line_code.starts_with(INSIDE);
        let code = line_code.trim_start_matches(is_blank);
        let indentation = line.len() - line.trim_start().len();
        let is_marked = has_mark(rest, source.test_marks);
        let is_attribute = ["@", "[", "#["].iter().any(|mark| code.starts_with(mark));
        let goes_on = in_head && (is_attribute || code.is_empty() || open_in_head > 0);
        outermost = outermost.filter(|mark| match *mark {
            usize::MAX => goes_on || is_marked,
            _ if in_head || is_inside || line.is_empty() => true,
            mark => indentation > mark || code.starts_with(['}', ')']),
        });
        if outermost.is_none() {
            (open, open_in_head) = (0, 0);
            if is_marked || is_attribute {
                found.push((LooseTest { text: String::new(), marks: 0 }, String::new()));
                outermost = Some(usize::MAX);
            }
        }
        in_head = outermost.is_some() && (goes_on || is_attribute && open == 0);
        if let Some(mark) = &mut outermost
            && let Some((test, test_code)) = found.last_mut()
        {
            test.text.extend([line.trim_end(), "\n"]);
            test_code.extend([code, "\n"]);
            if is_marked {
                test.marks += 1;
                *mark = indentation.min(*mark);
            }
            let still_open = |before: usize, opening: &[char], closing: &[char]| {
                (before + code.matches(opening).count())
                    .saturating_sub(code.matches(closing).count())
            };
            open = still_open(open, &['(', '[', '{'], &[')', ']', '}']);
            open_in_head =
                if in_head { still_open(open_in_head, &['(', '['], &[')', ']']) } else { 0 };
        }
    }
    found.retain(|(test, test_code)| test.marks > 0 && (source.may_run)(&all_code, test_code));
    found.iter_mut().for_each(|(test, _)| test.text.truncate(test.text.trim_end().len()));
    found.into_iter().map(|(test, _)| test).collect()
}

/// Each line of code, with the code from its start on.
fn lines(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = code;
    code.split_inclusive('\n').map(move |line| {
        let from = rest;
        rest = &rest[line.len()..];
        (line, from)
    })
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == INSIDE
}

/// True if a source file has fewer tests than before.
pub fn has_fewer_tests(
    source: &Ecosystem,
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> bool {
    count_tests(source, path, after) < count_tests(source, path, before)
}

/// True if a source file that is not a test by its name has more tests than before.
pub fn adds_inner_tests(file: &ChangedFile, path: &str) -> bool {
    let before = file.before.text();
    let after = file.after.text();
    source_of(path)
        .is_some_and(|source| has_fewer_tests(source, path, after.as_deref(), before.as_deref()))
}

/// The number of marked lines in a source file, as far as a runner may find tests there.
fn count_tests(source: &Ecosystem, path: &str, text: Option<&str>) -> usize {
    let text = text.unwrap_or_default();
    if source.inner_tests.is_some() || is_test_path(path) {
        count_marked(&code_or_text(source, text), source.test_marks)
    } else {
        loose_tests(source, text).iter().map(|test| test.marks).sum()
    }
}

/// The first skip mark that is on more lines of the file than before. `is_test` is true if the file
/// is a test by its name.
pub fn new_skip_mark(
    source: &Ecosystem,
    is_test: bool,
    before: Option<&str>,
    after: Option<&str>,
) -> Option<&'static str> {
    let [before, after] = [before, after].map(Option::unwrap_or_default);
    let [old, new] = [before, after].map(|text| code_or_text(source, text));
    let mut beside = source.beside_skip_marks.split_terminator('|').peekable();
    if !is_test
        && beside.peek().is_some()
        && !beside.any(|text| after.contains(text))
        && count_marked(&new, source.test_marks) == 0
    {
        return None;
    }
    let mark = source.skip_marks.split_terminator('|').find(|mark| {
        // Some marks are comments.
        let is_comment = mark.starts_with(source.comment);
        let [old, new] = if is_comment { [before, after] } else { [old.as_str(), new.as_str()] };
        count_marked(new, mark) > count_marked(old, mark)
    });
    mark.map(|mark| mark.trim_end_matches('*'))
}

/// The number of lines with one of these marks.
fn count_marked(code: &str, marks: &str) -> usize {
    lines(code).filter(|(_, rest)| has_mark(rest, marks)).count()
}

/// True if the first line of the code has one of these marks as a word. A mark that ends in `*`
/// also begins longer words. A method of another object (`pattern.test(`) is no mark, and neither
/// is the definition of a function with the name of a mark.
fn has_mark(rest: &str, marks: &str) -> bool {
    let line = rest.split('\n').next().unwrap_or_default();
    let continues = |before: &str, mark: &str| {
        before.ends_with(|c: char| is_in_name(c) || c == '$' || (c == '.' && mark.contains('(')))
            || ["def ", "define ", "function "].iter().any(|word| before.ends_with(word))
    };
    marks.split_terminator('|').any(|mark| {
        let start = mark.trim_end_matches('*');
        let is_whole = start.len() == mark.len() && start.ends_with(is_in_name);
        let (name, arguments) = start.split_once('(').unwrap_or((start, ""));
        line.match_indices(name).any(|(at, _)| {
            let is_longer = start.starts_with(is_in_name) && continues(&line[..at], start)
                || is_whole && line[at + start.len()..].starts_with(is_in_name);
            !is_longer && (name == start || begins_with(&rest[at + name.len()..], arguments))
        })
    })
}

/// True if the code goes on with an opening bracket and these arguments. Blanks and line breaks may
/// be around the bracket.
fn begins_with(rest: &str, arguments: &str) -> bool {
    let inner = rest.trim_start_matches(is_blank).strip_prefix('(');
    inner.is_some_and(|inner| inner.trim_start_matches(is_blank).starts_with(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecosystems::{dotnet, go, javascript, jvm, native, python};

    #[test]
    fn code_has_blanks_for_comments_and_texts() {
        for (source, text, expected) in [
            (&javascript::ECOSYSTEM, "a('b', /'[/`]/g); // c", "a(' ', /     /g);     "),
            (
                &javascript::ECOSYSTEM,
                "a / b / `c\n${d}`; /* e\n */",
                "a / b / ` \n\0    `;     \n\0   ",
            ),
            (&javascript::ECOSYSTEM, "don't\n'it\\'s'", "don't\n'     '"),
            (&go::ECOSYSTEM, "a(`\\`); b(`c`)", "a(` `); b(` `)"),
            (&native::ECOSYSTEM, "R\"b(\\\")\" /*)b\" LR\"d\"", "R\"           \" LR\" \""),
            (&native::ECOSYSTEM, "a\\\nb // c \\ \r\nd\ne", "ab       \ne"),
            (
                &dotnet::ECOSYSTEM,
                r#"@"\" + @"a""\" + $"\"" + @"";"#,
                r#"@" " + @" "" " + $"  " + @"";"#,
            ),
            (&dotnet::ECOSYSTEM, r#""""" a""" \"""" + "\"""#, r#""             " + "  ""#),
            (&jvm::ECOSYSTEM, r#""""\a"""" + "\"""#, r#""       " + "  ""#),
            (&python::ECOSYSTEM, "a = \"\"\"\nb\n\"\"\" # c", "a = \"\"\"\n\0 \n\0\"\"\"    "),
        ] {
            assert_eq!(code(source, text).as_deref(), Some(expected), "{text}");
        }
        let number = "a = 0x1'fff + '/*'; #";
        assert_eq!(code(&native::ECOSYSTEM, number), Some(number.replace("/*", "  ")));
        for (source, text) in
            [(&javascript::ECOSYSTEM, "a /* b"), (&jvm::ECOSYSTEM, r#""""a\""" + """b""""#)]
        {
            assert_eq!(code(source, text), None, "{text}");
        }
        // Each quote without an end is looked for once on its line.
        code(&javascript::ECOSYSTEM, &"'\\".repeat(200_000));
    }
}
