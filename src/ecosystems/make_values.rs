//! The variables of a Makefile, and the texts that make puts in their place.
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::paths::file_name;
use crate::model::oracle::shell_quoted;

/// The maximum number of references that are expanded for one text, because a value may use another value
/// several times.
const MOST_REFERENCES: usize = 5_000;

/// The maximum length of a text, in bytes, because a recursive function can double its text at each level.
const LONGEST: usize = 1 << 14;

/// The maximum depth of references.
const MOST_DEPTH: usize = 50;

/// The variables that name the programs that make itself runs.
const PROGRAMS: [&str; 12] =
    ["SHELL", "AR", "AS", "CC", "CPP", "CXX", "FC", "LD", "LEX", "LINT", "PC", "YACC"];

/// The variables of a Makefile.
#[derive(Debug, Default)]
pub struct MakeValues {
    values: BTreeMap<String, String>,
    /// The variables that the programs of recipes get.
    exported: BTreeSet<String>,
    /// The number of references that are expanded so far.
    references: Cell<usize>,
}

impl MakeValues {
    /// The variables that these lines of a Makefile define. Takes the lines of `define` out.
    pub fn take(lines: &mut Vec<String>) -> MakeValues {
        let mut found = MakeValues::default();
        found.bind("SHELL", "sh");
        found.bind("MAKE", "make");
        // The files of recipes that are read are in the root.
        found.bind("MAKEFILE_LIST", "Makefile");
        found.exported.extend(PROGRAMS.map(str::to_owned));
        let mut exports_all = false;
        let mut rest = Vec::new();
        let mut all = std::mem::take(lines).into_iter();
        while let Some(line) = all.next() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let define = words.iter().take(3).position(|word| *word == "define");
            if !line.starts_with('\t')
                && let Some(name) = define.and_then(|at| words.get(at + 1))
            {
                let body = all.by_ref().take_while(|line| line.trim() != "endef");
                found.bind(name, &body.collect::<Vec<_>>().join("\n"));
                continue;
            }
            exports_all |= words == ["export"] || line.starts_with(".EXPORT_ALL_VARIABLES");
            if !line.starts_with(['\t', '#']) {
                found.read(&line, &words);
            }
            rest.push(line);
        }
        if exports_all {
            // A variable that make itself does not use can only be for the programs.
            let values: Vec<String> = found.values.values().cloned().collect();
            let text = [rest.as_slice(), &values].concat().join("\n");
            for name in found.values.keys() {
                if !text.contains(&format!("({name}")) && !text.contains(&format!("{{{name}")) {
                    found.exported.insert(name.clone());
                }
            }
        }
        *lines = rest;
        found
    }

    /// Reads a line that may define or export a variable.
    fn read(&mut self, line: &str, words: &[&str]) {
        let Some((left, value)) = line.split_once('=') else {
            if words.first() == Some(&"export") {
                self.exported.extend(words[1..].iter().map(|name| (*name).to_owned()));
            }
            return;
        };
        let operator = left.trim_end_matches(char::is_whitespace);
        let left = operator.trim_end_matches([':', '?', '+', '!']).trim_end();
        let mut names = left.split([' ', '\t', ':']);
        let name = names.next_back().unwrap_or_default().to_owned();
        if names.any(|word| word == "export") {
            self.exported.insert(name.clone());
        }
        let value = value.split(" #").next().unwrap_or_default().trim();
        if operator.ends_with('!') {
            self.values.insert(name, format!("$(shell {value})"));
        } else if operator.ends_with('+') {
            let old = self.values.entry(name).or_default();
            *old = format!("{old} {value}");
        } else if operator.ends_with('?') {
            self.values.entry(name).or_insert_with(|| value.to_owned());
        } else {
            self.values.insert(name, value.to_owned());
        }
    }

    /// Gives a variable a value.
    pub fn bind(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// The exported variables as lines of a shell.
    pub fn exports(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, value) in &self.values {
            if self.exported.contains(name) {
                let setting = format!("{name}={}", self.expand(value));
                lines.push(format!("export {}", shell_quoted(&setting)));
            }
        }
        lines
    }

    /// A line with the targets of a rule, with its variables replaced. Recipes and assignments stay.
    pub fn expand_rule(&self, line: &str) -> String {
        let (left, _) = line.split_once('=').unwrap_or_default();
        let is_assignment = !left.is_empty() && !left.contains(['(', '{']);
        if is_assignment || line.starts_with(['\t', '#']) {
            line.to_owned()
        } else {
            self.expand(line)
        }
    }

    /// A text with its variables and functions replaced as make replaces them. An unknown variable becomes a
    /// variable of the shell, and a function that is not known becomes its arguments.
    pub fn expand(&self, text: &str) -> String {
        self.references.set(0);
        self.expanded(text, 0)
    }

    fn expanded(&self, text: &str, depth: usize) -> String {
        let mut found = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            found.push_str(before);
            rest = after;
            let Some(c) = after.chars().next() else { break };
            rest = &after[c.len_utf8()..];
            self.references.set(self.references.get() + 1);
            if c == '$' || depth > MOST_DEPTH || self.references.get() > MOST_REFERENCES {
                found.push('$');
                rest = if c == '$' { rest } else { after };
            } else if let '(' | '{' = c {
                let end = end_of_reference(rest, c);
                let value = self.reference(&rest[..end], depth + 1);
                if found.len() + value.len() > LONGEST {
                    // The rest stays as it is, as after too many references.
                    self.references.set(MOST_REFERENCES);
                    found.push('$');
                    rest = after;
                    continue;
                }
                found.push_str(&value);
                rest = rest.get(end + 1..).unwrap_or_default();
            } else {
                found.push_str(&self.value(&c.to_string(), depth).unwrap_or(format!("${c}")));
            }
        }
        found + rest
    }

    fn value(&self, name: &str, depth: usize) -> Option<String> {
        self.values.get(name).map(|value| self.expanded(value, depth + 1))
    }

    /// The text for `$(inner)`.
    fn reference(&self, inner: &str, depth: usize) -> String {
        if let Some((function, arguments)) = inner.split_once([' ', '\t']) {
            return self.function(function, &arguments_in(arguments), depth);
        }
        let inner = self.expanded(inner, depth);
        if let Some((name, change)) = inner.split_once(':')
            && let Some((from, to)) = change.split_once('=')
        {
            let value = self.value(name, depth).unwrap_or_else(|| format!("${{{name}}}"));
            let is_pattern = from.contains('%');
            let [from, to] =
                [from, to].map(|end| format!("{}{end}", if is_pattern { "" } else { "%" }));
            return each_word(&value, |word| with_pattern(word, &from, &to));
        }
        self.value(&inner, depth).unwrap_or_else(|| format!("${{{inner}}}"))
    }

    fn function(&self, name: &str, arguments: &[&str], depth: usize) -> String {
        let expanded: Vec<String> = match name {
            "foreach" => arguments.iter().take(2).map(|text| self.expanded(text, depth)).collect(),
            _ => arguments.iter().map(|text| self.expanded(text, depth)).collect(),
        };
        let get = |at: usize| expanded.get(at).map_or("", String::as_str);
        match name {
            "call" => {
                let Some(value) = self.values.get(get(0).trim()) else {
                    return expanded.join(" ");
                };
                let numbers = (1..expanded.len()).map(|at| (at.to_string(), get(at)));
                self.expanded_with(numbers, value, depth)
            }
            "foreach" => {
                let mut texts = Vec::new();
                for word in get(1).split_whitespace() {
                    let own = [(get(0).trim().to_owned(), word)].into_iter();
                    texts.push(self.expanded_with(own, arguments.get(2).unwrap_or(&""), depth));
                }
                let has_lines = texts.iter().any(|text| text.contains('\n'));
                texts.join(if has_lines { "\n" } else { " " })
            }
            "patsubst" => each_word(get(2), |word| with_pattern(word, get(0), get(1))),
            "subst" if !get(0).is_empty() => get(2).replace(get(0), get(1)),
            "addprefix" => each_word(get(1), |word| format!("{}{word}", get(0))),
            "addsuffix" => each_word(get(1), |word| format!("{word}{}", get(0))),
            "basename" => each_word(get(0), |word| {
                word.rsplit_once('.').map_or(word, |(stem, _)| stem).to_owned()
            }),
            "dir" => each_word(get(0), |word| {
                word.rsplit_once('/')
                    .map_or("./".to_owned(), |(directory, _)| format!("{directory}/"))
            }),
            "join" => {
                let pairs = get(0).split_whitespace().zip(get(1).split_whitespace());
                pairs.map(|(start, end)| format!("{start}{end}")).collect::<Vec<_>>().join(" ")
            }
            "notdir" => each_word(get(0), |word| file_name(word).to_owned()),
            "info" | "warning" | "error" => String::new(),
            "shell" => format!("$({})", expanded.join(",")),
            _ => expanded.join(" "),
        }
    }

    /// A text with these variables, and some more, replaced.
    fn expanded_with<'v>(
        &self,
        more: impl Iterator<Item = (String, &'v str)>,
        text: &str,
        depth: usize,
    ) -> String {
        let mut values = self.values.clone();
        values.extend(more.map(|(name, value)| (name, value.to_owned())));
        // A copy costs as much as many references. Those that it expands count here, too.
        let references = Cell::new(self.references.get() + 1 + values.len() / 10);
        let copy = MakeValues { values, exported: BTreeSet::new(), references };
        let found = copy.expanded(text, depth);
        self.references.set(copy.references.get());
        found
    }
}

/// The index of the parenthesis that closes a reference.
fn end_of_reference(text: &str, open: char) -> usize {
    let close = if open == '(' { ')' } else { '}' };
    let mut depth = 0;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == open) - i32::from(*c == close);
        depth < 0
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// The arguments of a function: commas inside of parentheses belong to an argument.
fn arguments_in(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.trim_start()
        .split(|c: char| {
            depth += i32::from("({".contains(c)) - i32::from(")}".contains(c));
            c == ',' && depth == 0
        })
        .collect()
}

fn each_word(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split_whitespace().map(change).collect::<Vec<_>>().join(" ")
}

/// A word that matches a pattern with `%`, changed to another pattern; else the word itself.
pub fn with_pattern(word: &str, from: &str, to: &str) -> String {
    match stem_of(word, from) {
        Some(stem) => to.replacen('%', stem, 1),
        None if word == from => to.to_owned(),
        None => word.to_owned(),
    }
}

/// The part of a name for which the `%` of a pattern stands; `None` if the pattern does not match.
pub fn stem_of<'n>(name: &'n str, pattern: &str) -> Option<&'n str> {
    let (before, after) = pattern.split_once('%')?;
    name.strip_prefix(before)?.strip_suffix(after)
}
