//! Shell command lines, as far as they can be read without running them. Finds the programs without
//! which a line cannot exit 0, and the simple commands of a line.
//!
//! If a line cannot be read for certain, no program is returned for it. A program that is missing
//! is then noticed only when the line runs.

use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;

use crate::model::oracle::shell_quoted;

/// A token of a shell command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word that is no redirection.
    Word(Word),
    /// Output goes to this file.
    Output(Word),
    /// Input comes from this file.
    Input(Word),
    /// Input is this text. It is empty for a here document, whose text is not in the line.
    Here(Word),
    /// `&&`, `||`, `|`, `;`, `&` or the end of a line.
    Operator(&'static str),
}

/// The builtins of POSIX shells, and those that bash adds. Any other word is a program.
const BUILTINS: [&str; 48] = [
    ":", "[", "[[", "bg", "builtin", "caller", "cd", "command", "compgen", "declare", "dirs",
    "disown", "echo", "enable", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash",
    "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "set", "shift", "shopt", "test", "times", "trap",
    "true", "type", "ulimit", "umask", "wait",
];

/// The words after which other words may mean something else: they begin a compound command, or
/// change PATH, aliases or functions.
const UNREADABLE: [&str; 20] = [
    ".", "source", "eval", "alias", "unalias", "function", "if", "then", "else", "elif", "fi",
    "for", "while", "until", "do", "done", "case", "esac", "select", "time",
];

/// The programs without which this line cannot exit 0, in their order, each once.
///
/// They are the first words of the simple commands whose failure makes the line fail. Only commands
/// after the last `;` count. If `&&` joins commands, all of them count. Of a pipeline, only the
/// last command counts.
pub fn programs(line: &str) -> Vec<String> {
    let Some(tokens) = tokens(line) else { return Vec::new() };
    let mut needed: Vec<String> = Vec::new();
    // The first word of the simple command that is being read: `None` until the word has been read,
    // `Some(None)` if the word is not a plain program.
    let mut first: Option<Option<String>> = None;
    for token in tokens.into_iter().chain([Token::Operator("&&")]) {
        match token {
            Token::Operator("&&") => {
                let next = first.take().flatten();
                needed.extend(next.filter(|program| !needed.contains(program)));
            }
            // A pipeline has the exit code of its last command.
            Token::Operator("|") => first = None,
            // If a program before the `||` is missing, the command after it may still pass.
            Token::Operator("||") => return Vec::new(),
            Token::Operator(_) => {
                first = None;
                needed.clear();
            }
            Token::Output(_) | Token::Input(_) => {}
            Token::Here(_) => return Vec::new(),
            Token::Word(word) if word.is_expanded => drop(first.get_or_insert(None)),
            // This word may also be an argument: `export PATH=…`.
            Token::Word(word) if word.text.starts_with("PATH=") => return Vec::new(),
            Token::Word(_) if first.is_some() => {}
            Token::Word(Word { text, .. }) => match text.as_str() {
                "!" | "{" | "}" => return Vec::new(),
                word if UNREADABLE.contains(&word) => return Vec::new(),
                word if is_assignment(word) => {}
                word if BUILTINS.contains(&word) => first = Some(None),
                _ => first = Some(Some(text)),
            },
        }
    }
    needed
}

/// The relation of a word to the file that it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordRole {
    /// The word is an argument that names the file.
    #[default]
    Name,
    /// The word stands for a program's output: the name of the file, or what the program made of
    /// it.
    Printed,
    /// The word stands for the file's content.
    Content,
}

/// A word of a command, without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// True if the shell expands the word, so that its value is not `text`.
    pub is_expanded: bool,
    pub role: WordRole,
}

impl Word {
    /// A word that the shell does not expand.
    pub fn plain(text: impl Into<String>) -> Word {
        Word { text: text.into(), ..Word::default() }
    }

    /// A word that the shell expands.
    pub fn expanded(text: impl Into<String>) -> Word {
        Word { text: text.into(), is_expanded: true, ..Word::default() }
    }

    /// True if the value of the word is certainly this text.
    fn is(&self, text: &str) -> bool {
        !self.is_expanded && self.text == text
    }

    /// A word of this text, which the shell expands if it expands this word.
    pub fn with(&self, text: impl Into<String>) -> Word {
        Word { text: text.into(), ..self.clone() }
    }

    /// The same word in another role.
    pub fn in_role(&self, role: WordRole) -> Word {
        Word { role, ..self.clone() }
    }

    /// True if the word contains the substitution with this index in the list that
    /// [`without_substitutions`] returns.
    pub fn holds_substitution(&self, at: usize) -> bool {
        self.text.contains(&mark(at))
    }
}

/// A substitution is replaced by a text: its index, with this character before and after it.
pub const MARK: char = '\u{1}';

/// The text that stands for the substitution with this index.
fn mark(at: usize) -> String {
    format!("{MARK}{at}{MARK}")
}

/// Replaces each `$(…)` and `<(…)` in a line by a word of unknown value. Returns the new line and
/// the commands of the substitutions.
pub fn without_substitutions(line: &str) -> (String, Vec<String>) {
    let line = with_directory_of_script(line);
    let mut outer = String::new();
    let mut inner: Vec<String> = Vec::new();
    let mut in_single = false;
    let mut in_double = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let is_dollar = (c == '$' || "<>".contains(c) && !in_double) && rest.peek() == Some(&'(');
        if in_single || !(is_dollar || c == '`') {
            in_double ^= c == '"' && !in_single;
            in_single ^= c == '\'' && !in_double;
            outer.push(c);
            if c == '\\' && !in_single {
                outer.extend(rest.next());
            }
            continue;
        }
        let mut depth = 0;
        let is_inside = |c: &char| match c {
            '(' => {
                depth += 1;
                true
            }
            ')' => {
                depth -= 1;
                depth > 0
            }
            c => is_dollar || *c != '`',
        };
        let text: String = rest.by_ref().take_while(is_inside).collect();
        outer.push('$');
        outer.push_str(&mark(inner.len()));
        inner.push(text.strip_prefix('(').unwrap_or(&text).to_owned());
    }
    (outer, inner)
}

/// A program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// True if its output goes to a file or to another program than `tee`.
    pub is_read: bool,
    /// True if its output goes to the command that follows.
    pub is_piped: bool,
    /// The files from which its input comes.
    pub inputs: Vec<Word>,
    /// The texts that it reads as its input: here strings.
    pub texts: Vec<Word>,
    /// The file to which its output goes.
    pub output: Option<Word>,
}

impl SimpleCommand {
    /// False for the end of a group or a loop.
    pub fn has_words_or_input(&self) -> bool {
        !(self.words.is_empty() && self.inputs.is_empty() && self.texts.is_empty())
    }
}

/// The simple commands of a line, including the commands in compound commands and subshells.
/// Commands in `$(…)` are left out. The result is empty if the line cannot be read.
pub fn simple_commands(line: &str) -> Vec<SimpleCommand> {
    let mut found = commands_and_ends(line);
    found.retain(SimpleCommand::has_words_or_input);
    found
}

/// As [`simple_commands`]. The end of a group or a loop counts as a command without words, if its
/// output goes somewhere.
fn commands_and_ends(line: &str) -> Vec<SimpleCommand> {
    const LEADING: [&str; 11] =
        ["!", "{", "}", "if", "then", "else", "elif", "while", "until", "do", "done"];
    let line = with_directory_of_script(line);
    let tokens = tokens(&line)
        .or_else(|| {
            let is_readable = !line.contains("$(") && !line.contains('`');
            is_readable.then(|| tokens(&line.replace(['(', ')'], " ; "))).flatten()
        })
        .unwrap_or_default();
    let mut found: Vec<SimpleCommand> = vec![SimpleCommand::default()];
    let mut follows_pipe = false;
    for token in tokens {
        let at = found.len() - 1;
        let is_first = found[at].words.is_empty();
        match token {
            Token::Operator(operator) => {
                follows_pipe = operator == "|";
                found[at].is_piped = follows_pipe;
                found.push(SimpleCommand::default());
            }
            Token::Output(file) => {
                found[at].is_read = true;
                found[at].output = Some(file);
            }
            Token::Input(file) => found[at].inputs.push(file),
            Token::Here(text) => found[at].texts.push(text),
            Token::Word(word) if is_first && LEADING.iter().any(|leading| word.is(leading)) => {}
            Token::Word(word) => {
                if is_first && follows_pipe && word.text != "tee" {
                    found[at - 1].is_read = true;
                }
                found[at].words.extend(alternatives(&word));
            }
        }
    }
    found.retain(|c| c.has_words_or_input() || c.is_piped || c.output.is_some());
    found
}

/// The words for which the braces in a word stand: `a.c` and `a.h` for `a.{c,h}`.
fn alternatives(word: &Word) -> Vec<Word> {
    let mut found = vec![word.clone()];
    while found.len() < 100
        && let Some(at) = found.iter().position(|word| braces_in(word).is_some())
    {
        let word = found.remove(at);
        let Some(place) = braces_in(&word) else { break };
        let before = &word.text[..place.start];
        let rest = &word.text[place.end + 1..];
        let inner = &word.text[place.start + 1..place.end];
        // A range: `{1..9}`.
        let inner = if inner.contains(',') { inner } else { "*" };
        for inner in inner.split(',') {
            found.push(word.with(format!("{before}{inner}{rest}")));
        }
    }
    found
}

/// The innermost braces of a word that a shell expands, from `{` to `}`.
fn braces_in(word: &Word) -> Option<Range<usize>> {
    if !word.is_expanded {
        return None;
    }
    word.text.match_indices('{').find_map(|(at, _)| {
        let length = word.text[at + 1..].find(['{', '}'])?;
        let inner = &word.text[at + 1..at + 1 + length];
        let is_list = inner.contains(',') || inner.contains("..");
        let is_closed = word.text[at + 1 + length..].starts_with('}');
        (is_list && is_closed && !word.text[..at].ends_with('$')).then_some(at..at + 1 + length)
    })
}

/// The simple commands of a line, even if a quote ends on another line. The end of a group or a
/// loop counts as a command without words, if its output goes somewhere.
pub fn commands_of(line: &str) -> Vec<SimpleCommand> {
    let found = commands_and_ends(line);
    if found.is_empty() { commands_and_ends(&line.replace(['"', '\'', '`'], " ")) } else { found }
}

/// True if a line may leave out some of its commands, or later commands, and still pass: by a
/// condition, a loop, or an exit. An exit that fails (`|| exit 1`) does not count.
pub fn may_leave_commands_out(line: &str) -> bool {
    const CONDITIONS: [&str; 14] = [
        "if", "elif", "while", "until", "for", "case", "select", "exit", "exec", "return", "break",
        "continue", "trap", "set",
    ];
    let Some(tokens) = tokens(line) else { return true };
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let failure = if *first == Token::Operator("||") { length_of_failure(after) } else { None };
        let is_condition = match first {
            Token::Operator("||") => failure.is_none(),
            Token::Word(word) => CONDITIONS.iter().any(|condition| word.is(condition)),
            _ => false,
        };
        if is_condition {
            return true;
        }
        rest = &after[failure.unwrap_or(0)..];
    }
    false
}

/// If the tokens begin with an exit that fails (`exit 1`), the number of its tokens. The exit may
/// be in a group in braces; then the number of the group's tokens.
fn length_of_failure(tokens: &[Token]) -> Option<usize> {
    let is_word = |token: &Token, text: &str| matches!(token, Token::Word(word) if word.is(text));
    let end = match tokens.first() {
        Some(first) if is_word(first, "{") => tokens.iter().position(|t| is_word(t, "}"))?,
        _ => 2,
    };
    let ends = tokens.get(..end)?.windows(2).any(|pair| {
        matches!(pair, [end, Token::Word(code)]
            if (is_word(end, "exit") || is_word(end, "return"))
                && code.text.parse().is_ok_and(|code: u8| code > 0))
    });
    ends.then_some(end)
}

/// At most this many lines of a script become one line. If a quoted text is longer, its first quote
/// counts as an ordinary character.
const MOST_JOINED_LINES: usize = 500;

/// The lines of a shell script, each joined with its continuation lines: after a backslash, and in
/// a quoted text. The text of a here document becomes a here string: `cat <<E` becomes `cat
/// <<<'…'`.
pub fn script_lines(text: &str) -> Vec<String> {
    joined_lines(text, MOST_JOINED_LINES, read_line)
}

/// The lines of a Makefile, a justfile or a program, each joined with its continuation lines after
/// a backslash.
pub fn continued_lines(text: &str) -> Vec<String> {
    joined_lines(text, usize::MAX, |line| LineRead {
        goes_on: line.ends_with('\\'),
        ..LineRead::default()
    })
}

/// The lines of a text, each joined with its continuation lines, which `read_line` finds. At most
/// `most` lines become one.
fn joined_lines(text: &str, most: usize, read_line: fn(&str) -> LineRead) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = lines.get(at) {
        let mut line = (*first).to_owned();
        let mut next = at + 1;
        let mut read = read_line(&line);
        while read.goes_on && next < lines.len().min(at.saturating_add(most)) {
            if line.ends_with('\\') {
                line.pop();
                line.extend([" ", lines[next].trim_start()]);
            } else {
                line.extend(["\n", lines[next]]);
            }
            // Reading a long text again for each of its lines would take too long.
            let stays_open = read.quote.is_some_and(|quote| !lines[next].contains(quote));
            next += 1;
            if !stays_open {
                read = read_line(&line);
            }
        }
        if read.goes_on && line.ends_with('\\') {
            line.pop();
        } else if read.goes_on {
            line = (*first).to_owned();
            next = at + 1;
            read = LineRead::default();
        }
        // Several here documents follow one another. The last one is inserted first, so that the
        // other places stay right.
        let mut documents = Vec::new();
        for (place, word) in read.documents {
            let end = lines[next..].iter().position(|line| line.trim_start_matches('\t') == word);
            // A `<<` without an end begins no here document: `$((1<<n))`.
            let Some(length) = end else { continue };
            documents.push((place, format!("{}\n", lines[next..next + length].join("\n"))));
            next += length + 1;
        }
        for (place, text) in documents.into_iter().rev() {
            line.replace_range(place, &format!("<<<{}", shell_quoted(&text)));
        }
        found.push(line);
        at = next;
    }
    found
}

/// How a line of a script continues.
#[derive(Default)]
struct LineRead {
    /// True if the next line belongs to this one.
    goes_on: bool,
    /// The quote that is open at the end of the line.
    quote: Option<char>,
    /// The here documents: the place of `<<WORD` in the line, and the word.
    documents: Vec<(Range<usize>, String)>,
}

fn read_line(line: &str) -> LineRead {
    let mut read = LineRead::default();
    let mut quote = None;
    let mut before = ' ';
    let mut rest = line.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => read.goes_on = rest.next().is_none(),
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '#') if " \t\n;&|(".contains(before) => {
                while rest.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            (None, '<') if line[at..].starts_with("<<<") => drop(rest.nth(1)),
            (None, '<') if line[at..].starts_with("<<") => {
                let after = &line[at + 2..];
                let word = after.trim_start_matches(['-', ' ']);
                let length = word.find(|c| " \t\n;&|<>)".contains(c)).unwrap_or(word.len());
                let end = line.len() - word.len() + length;
                read.documents.push((at..end, word[..length].replace(['\'', '"', '\\'], "")));
                rest.next();
            }
            _ => {}
        }
        before = c;
    }
    read.goes_on |= quote.is_some();
    read.quote = quote;
    read
}

/// Replaces each variable of a shell in a text (`$x`, `${x}`, `$1`) by this character.
pub fn without_variables(text: &str, by: char) -> String {
    let mut parts = text.split('$');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = part.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(part.len());
        let end = match part.chars().next() {
            // `$(…)` is not a variable.
            Some('(') => {
                found.extend(["$", part]);
                continue;
            }
            Some('{') => part.find('}').map_or(1, |end| end + 1),
            // `$?` and the like.
            Some(special) if name == 0 => special.len_utf8(),
            _ => name,
        };
        found.push(by);
        found.push_str(&part[end..]);
    }
    found
}

/// The ways in which scripts spell their own directory.
const DIRECTORY_OF_SCRIPT: [&str; 6] = [
    "$(dirname \"$0\")",
    "$(dirname -- \"$0\")",
    "$(dirname $0)",
    "${0%/*}",
    "$(dirname \"${BASH_SOURCE[0]}\")",
    "$(git rev-parse --show-toplevel)",
];

fn with_directory_of_script(line: &str) -> String {
    DIRECTORY_OF_SCRIPT.iter().fold(line.to_owned(), |line, from| line.replace(from, "$0"))
}

/// True if a word before a program sets a variable: `CC=gcc`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// The tokens of a line; `None` if it has a subshell, a function, a command substitution, or a
/// quote that does not end.
fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut is_of_errors = false;
    let line = line.trim();
    let plain = line.trim_end_matches([';', '\n', ' ']);
    // `find -exec` ends with an escaped semicolon.
    let mut rest = if plain.ends_with('\\') { line } else { plain }.chars().peekable();
    while let Some(&c) = rest.peek() {
        match c {
            ' ' | '\t' => drop(rest.next()),
            '\n' | ';' => {
                rest.next();
                found.push(Token::Operator(";"));
            }
            '&' | '|' => {
                rest.next();
                let doubled = rest.next_if_eq(&c).is_some();
                found.push(Token::Operator(match (c, doubled) {
                    ('&', true) => "&&",
                    ('|', true) => "||",
                    ('|', false) => "|",
                    _ => ";",
                }));
            }
            '(' | ')' => return None,
            '#' => drop(rest.by_ref().take_while(|c| *c != '\n').last()),
            '<' | '>' => {
                let redirection = redirection(&mut rest)?;
                found.extend(
                    redirection.filter(|token| !is_of_errors || matches!(token, Token::Here(_))),
                );
                is_of_errors = false;
            }
            _ => {
                let word = word(&mut rest)?;
                // The digit of `2>` belongs to the redirection.
                let is_descriptor = word.text.chars().all(|c| c.is_ascii_digit())
                    && matches!(rest.peek(), Some('<' | '>'));
                if is_descriptor {
                    is_of_errors = word.text == "2";
                } else {
                    found.push(Token::Word(word));
                }
            }
        }
    }
    Some(found)
}

/// The redirection at the start of `rest`. `Some(None)` if it goes to a descriptor or to
/// `/dev/null`, and `None` if it cannot be read.
fn redirection(rest: &mut Peekable<Chars<'_>>) -> Option<Option<Token>> {
    let is_output = rest.next() == Some('>');
    if !is_output && rest.next_if_eq(&'<').is_some() {
        let is_string = rest.next_if_eq(&'<').is_some();
        while rest.next_if(|c| matches!(c, '-' | ' ')).is_some() {}
        let mut text = word(rest)?;
        if !is_string {
            text.text.clear();
        }
        return Some(Some(Token::Here(text)));
    }
    let kind = rest.next_if(|c| matches!(c, '>' | '&' | '|'));
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let file = word(rest)?;
    let is_file = kind != Some('&') && file.text != "/dev/null";
    let token = if is_output { Token::Output(file) } else { Token::Input(file) };
    Some(is_file.then_some(token))
}

/// The word at the start of `rest`; `None` if it contains a command substitution, or a quote that
/// does not end.
fn word(rest: &mut Peekable<Chars<'_>>) -> Option<Word> {
    let mut text = String::new();
    let mut is_expanded = false;
    let mut is_pattern = false;
    while let Some(c) = rest.next_if(|c| !" \t\n;&|()<>".contains(*c)) {
        match c {
            '\\' => text.push(rest.next()?),
            '\'' => loop {
                match rest.next()? {
                    '\'' => break,
                    inner => text.push(inner),
                }
            },
            '"' => loop {
                match rest.next()? {
                    '"' => break,
                    '\\' => text.push(rest.next()?),
                    '`' => return None,
                    '$' if rest.peek() == Some(&'(') => return None,
                    inner => {
                        is_expanded |= inner == '$';
                        text.push(inner);
                    }
                }
            },
            '`' => return None,
            '$' if rest.peek() == Some(&'(') => return None,
            '$' if matches!(rest.peek(), Some('\'' | '"')) => {}
            '$' => {
                is_expanded = true;
                text.push('$');
            }
            other => {
                is_pattern |= "*?[{~".contains(other);
                text.push(other);
            }
        }
    }
    let is_expanded = is_expanded || (is_pattern && !["[", "[[", "{"].contains(&text.as_str()));
    Some(Word { text, is_expanded, ..Word::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_over_quotes_and_backslashes_and_take_their_documents() {
        let cases: [(&str, &[&str]); 6] = [
            ("a \\\n  b\nc \\", &["a  b", "c "]),
            ("echo 'a\nb \"\nc'\nd", &["echo 'a\nb \"\nc'", "d"]),
            ("echo \"a\n\\\"\nb\"", &["echo \"a\n\\\"\nb\""]),
            ("# it's\nb", &["# it's", "b"]),
            ("it's\nb", &["it's", "b"]),
            ("sh <<E | cat\nb\nE\nc", &["sh <<<'b\n' | cat", "c"]),
        ];
        for (text, expected) in cases {
            assert_eq!(script_lines(text), expected, "{text}");
        }
        assert_eq!(continued_lines("it's \\\n\tb\nc"), ["it's  b", "c"]);
    }

    #[test]
    fn programs_are_the_first_words_whose_failure_is_the_lines() {
        let cases: [(&str, &[&str]); 25] = [
            ("pytest -q", &["pytest"]),
            ("cmake -B build && cmake --build build", &["cmake"]),
            ("make -j2 && ./check", &["make", "./check"]),
            ("cd sub && CC=gcc make test", &["make"]),
            ("'my tool' a", &["my tool"]),
            ("foo | tee log", &["tee"]),
            ("foo 2>/dev/null && bar >out 2>&1", &["foo", "bar"]),
            ("foo; bar", &["bar"]),
            ("set -e\nfoo\nbar\n", &["bar"]),
            ("foo;", &["foo"]),
            ("foo # a comment; bar", &["foo"]),
            ("[ -e x ] && test -f y && foo", &["foo"]),
            // The following lines cannot be read for certain.
            ("foo || bar", &[]),
            ("! foo", &[]),
            ("if foo; then bar; fi", &[]),
            ("(foo)", &[]),
            ("{ foo; }", &[]),
            ("f() { true; }; f", &[]),
            (". venv/bin/activate && pytest", &[]),
            ("PATH=bin:$PATH foo", &[]),
            ("export PATH=bin && foo", &[]),
            ("$(MAKE) check", &[]),
            ("$MAKE check", &[]),
            ("cat <<EOF", &[]),
            ("echo 'x", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(programs(line), expected, "{line}");
        }
    }
}
