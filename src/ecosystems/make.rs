//! Make: the targets of a Makefile.
use std::collections::BTreeSet;

use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::looking::is_compiler;
use crate::ecosystems::manifest::{LineHunk, line_hunks};
use crate::ecosystems::paths::{file_name, is_in_name};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, recipe_commands, repairs};
use crate::ecosystems::recipe::{Recipe, indented_recipes};
use crate::ecosystems::test_names::{is_in_test_directory, is_name_of_test};
use crate::model::shell::continued_lines;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Recipe, makefile)],
    manifests: &[(&MAKEFILES, makefile_part), (&["*.mk"], makefile_part)],
    recipe_files: &MAKEFILES,
    recipe_runners: &["make", "gmake"],
    recipes: rules,
    ..Ecosystem::NOTHING
};

/// The names of a Makefile, in the order in which GNU make looks for them.
pub const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Commands for the targets that [`recipe_commands`] looks for. If the Makefile forwards every
/// target to a Makefile in another directory, the targets of that Makefile count, too. A `lint`
/// that repairs files is left out.
fn makefile(files: &RootFiles<'_>) -> FoundCommands {
    let Some(name) = files.first(&MAKEFILES) else { return Ok(Vec::new()) };
    let text = files.text(name)?.unwrap_or_default();
    let mut all = text.clone();
    if let Some(directory) = forwards_to(&text) {
        for name in MAKEFILES {
            all.push_str(&files.text(&format!("{directory}/{name}"))?.unwrap_or_default());
        }
    }
    let rules = rules(&all);
    let mut targets: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    if rules.iter().any(|r| r.name == "lint" && r.lines.iter().any(|line| repairs(line))) {
        targets.retain(|target| *target != "lint");
    }
    Ok(recipe_commands("make", &targets, name))
}

/// The directory in which the catch-all rule (`.DEFAULT` or `%`) runs make; `None` if there is no
/// such rule.
fn forwards_to(makefile: &str) -> Option<String> {
    let lines = continued_lines(makefile);
    let at =
        lines.iter().position(|line| line.starts_with(".DEFAULT:") || line.starts_with("%:"))?;
    let recipe = lines[at + 1..].iter().take_while(|line| line.starts_with('\t'));
    let words: Vec<&str> =
        recipe.flat_map(|line| line.split(&[' ', '\t', ';', '&', '@'][..])).collect();
    let after = words.windows(2).find(|pair| ["cd", "-C"].contains(&pair[0]))?;
    let directory = after[1].trim_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    directory.chars().all(is_plain).then(|| directory.to_owned())
}

/// The targets that `.PHONY` lists: they are not files.
pub fn phony_targets(makefile: &str) -> BTreeSet<&str> {
    let lists =
        makefile.lines().filter_map(|l| l.strip_prefix(".PHONY")?.trim_start().strip_prefix(':'));
    lists.flat_map(str::split_whitespace).collect()
}

/// True if a line has the targets of a rule, assigns a variable or sets `vpath`, and is not part of
/// a recipe.
pub fn is_rule_or_assignment(line: &str) -> bool {
    !line.starts_with('\t') && (line.contains('=') || rule_targets(line).is_some())
        || line.starts_with("vpath")
}

/// The functions whose arguments are conditions. In `$(if C,A,B)`, only `C` is a condition.
const CONDITIONS: [&str; 3] = ["if ", "and ", "or "];

/// The conditions in a line of a Makefile: the texts that a directive compares, and those by which
/// a function decides.
pub fn conditions(line: &str) -> Vec<&str> {
    let directive = line.trim_start();
    let directive = directive.strip_prefix("else ").unwrap_or(directive).trim_start();
    let compared = ["ifeq", "ifneq"].iter().filter_map(|word| directive.strip_prefix(word));
    let mut found: Vec<&str> = compared.collect();
    for (at, _) in line.match_indices(['(', '{']).filter(|(at, _)| line[..*at].ends_with('$')) {
        let rest = &line[at + 1..];
        let Some(function) = CONDITIONS.iter().find(|name| rest.starts_with(**name)) else {
            continue;
        };
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from("({".contains(c)) - i32::from(")}".contains(c));
            depth < 0 || depth == 0 && c == ',' && *function == "if "
        });
        found.push(&rest[function.len()..end.unwrap_or(rest.len())]);
    }
    found
}

/// The words before a line's colon; `None` if the line is a recipe, a comment, a special target or
/// an assignment.
fn rule_targets(line: &str) -> Option<&str> {
    let (targets, rest) = line.split_once(':')?;
    let is_assignment = targets.contains('=') || rest.trim_start_matches(':').starts_with('=');
    if line.starts_with(['\t', '#', ' ', '.']) || is_assignment { None } else { Some(targets) }
}

/// A line that begins with one of these words names no files.
const DIRECTIVES: [&str; 9] =
    ["define", "else", "endef", "endif", "ifdef", "ifeq", "ifndef", "ifneq", "undefine"];

/// The rules of a Makefile, with lines in the form of a shell. The first rule has no name: it has
/// the lines that belong to no rule, such as those that set variables.
fn rules(makefile: &str) -> Vec<Recipe> {
    let mut others = Recipe::default();
    let mut rest = Vec::new();
    let mut is_value = false;
    for line in continued_lines(makefile) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let begins_value = !line.starts_with('\t') && words.iter().take(3).any(|w| *w == "define");
        is_value = begins_value || is_value && words.first() != Some(&"endef");
        if words.first().is_some_and(|word| DIRECTIVES.contains(word)) {
            continue;
        }
        if is_value || !line.starts_with(['\t', ' ', '#']) && targets_of(&line).is_none() {
            others.lines.push(as_shell_line(&line));
        } else {
            // A target may have a variable of its own: `t: export X = Y`.
            others.lines.extend(
                line.split_once(':')
                    .filter(|(_, own)| own.contains('='))
                    .map(|(_, own)| as_shell_line(own)),
            );
            rest.push(line);
        }
    }
    let mut found = indented_recipes(&rest, |line| {
        let targets = targets_of(line)?;
        Some((targets, line[targets.len()..].trim_start_matches(':')))
    });
    for recipe in &mut found {
        // A static pattern: `a b: %: lib/%.sh`.
        if let Some(at) = recipe.needs.iter().position(|need| need.ends_with(':')) {
            recipe.needs.drain(..=at);
        }
        recipe.needs.retain(|need| need != "%");
        let all = recipe.needs.join(" ").replace('%', "*");
        for line in &mut recipe.lines {
            let text =
                ["$<", "$^", "$+", "$?"].iter().fold(line.clone(), |t, own| t.replace(own, &all));
            let text = text.replace("$@", &recipe.name.replace('%', "*"));
            *line = with_shell_references(text.trim_start_matches(['\t', '@', '-', '+']));
        }
        recipe.needs = with_shell_references(&all).split_whitespace().map(str::to_owned).collect();
    }
    found.insert(0, others);
    found
}

/// The targets of a rule, including the rule for targets without a rule (`.DEFAULT`).
fn targets_of(line: &str) -> Option<&str> {
    // `.DEFAULT_GOAL` is a variable.
    if line.split([' ', ':']).next() == Some(".DEFAULT") {
        return Some(".DEFAULT");
    }
    rule_targets(line)
}

/// Converts a line of a Makefile that is in no recipe to a line of a shell. A variable becomes
/// `${X}`, and the output of a command becomes `$(C)`. Other functions become their arguments.
pub fn as_shell_line(line: &str) -> String {
    let text = with_shell_references(line);
    let Some((left, value)) = text.split_once('=') else { return text };
    let operator = left.trim_end_matches([':', '?', '+', '!', ' ']);
    let (before, name) = operator.rsplit_once([' ', '\t']).unwrap_or(("", operator));
    // The name of a variable may have hyphens and dots.
    let is_name = !name.is_empty() && name.chars().all(|c| is_in_name(c) || "-.".contains(c));
    if !is_name
        || !before.split_whitespace().all(|word| ["export", "override", "private"].contains(&word))
    {
        return text;
    }
    let export = if before.contains("export") { "export " } else { "" };
    let value = value.split(" #").next().unwrap_or_default().trim().replace('"', "");
    let name = name.replace(['-', '.'], "_");
    match left.ends_with('!') {
        true => format!("{export}{name}=\"$({value})\""),
        false => format!("{export}{name}=\"{value}\""),
    }
}

/// The maximum depth of references in references.
const MOST_DEPTH: usize = 50;

/// A text with the references of a shell in place of those of make.
pub fn with_shell_references(text: &str) -> String {
    nested_references(text, 0)
}

fn nested_references(text: &str, depth: usize) -> String {
    if depth > MOST_DEPTH {
        return text.to_owned();
    }
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        found.push_str(before);
        let Some(open) = after.chars().next() else { break };
        rest = &after[open.len_utf8()..];
        if open == '$' {
            found.push('$');
        } else if let '(' | '{' = open {
            let end = end_of_reference(rest, open);
            found.push_str(&shell_reference(&rest[..end], depth + 1));
            rest = rest.get(end + 1..).unwrap_or_default();
        } else {
            found.extend(["${", &open.to_string(), "}"].map(str::to_owned));
        }
    }
    found + rest
}

/// A shell's form of `$(inner)`.
fn shell_reference(inner: &str, depth: usize) -> String {
    if let Some((function, arguments)) = inner.split_once([' ', '\t']) {
        let arguments = nested_references(arguments, depth);
        return match function {
            "shell" => format!("$({arguments})"),
            "call" => match arguments.split_once(',') {
                Some((own, arguments)) => format!("${{{}}} {arguments}", own.trim()),
                None => format!("${{{}}}", arguments.trim()),
            },
            // In the arguments of other functions, `%` stands for any text.
            _ => {
                let words = arguments.split([',', ' ']).filter(|word| *word != "%");
                words.collect::<Vec<_>>().join(" ").replace('%', "*")
            }
        };
    }
    let name = |name: &str| name.replace(['-', '.'], "_");
    match inner.split_once(':').and_then(|(own, change)| Some((own, change.split_once('=')?))) {
        // `$(X:.c=.js)`, `$(X:%.c=v/%.js)`
        Some((own, (from, to))) => {
            let (before, after) = to.split_once('%').unwrap_or(("", to));
            format!("{before}${{{}%{}}}{after}", name(own), from.trim_start_matches('%'))
        }
        None if inner.contains('$') => nested_references(inner, depth),
        None => format!("${{{}}}", name(inner)),
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

/// Restores the base's Makefile, but keeps source and object files that the attempt adds to a list
/// of such files. Returns `None` for a new Makefile, because every line of it may decide what is
/// run.
fn makefile_part(base: Option<&str>, own: &str) -> Option<String> {
    let is_list = !leaves_files_out(base?);
    line_hunks(base, own, |hunk| !(is_list && only_adds_sources(hunk)))
}

/// True if a build file may contain a list of files that are left out. A test that is added to such
/// a list is switched off.
pub(super) fn leaves_files_out(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["disable", "exclude", "filter-out", "ignore", "omit", "remove", "skip", "xfail"]
        .iter()
        .any(|word| text.contains(word))
}

/// True if the only change is that source and object files were added after other such files.
fn only_adds_sources(hunk: &LineHunk<'_>) -> bool {
    let continues = |line: Option<&&str>| line.is_some_and(|l| l.trim_end().ends_with('\\'));
    let goes_on_before = continues(hunk.removed.last().or(Some(&hunk.before)));
    if continues(hunk.added.last()) != goes_on_before {
        return false;
    }
    let mut removed = logical_lines(hunk.removed);
    let added = logical_lines(hunk.added);
    if removed.is_empty() && goes_on_before {
        removed.push(String::new());
    }
    // The changed lines continue a list of sources that the line before them begins.
    let starts_in_list = continues(Some(&hunk.before)) && ends_with_source(hunk.before);
    removed.len() == added.len()
        && removed.iter().zip(&added).enumerate().all(|(at, (old, new))| {
            let continues_list = at == 0 && starts_in_list;
            let same_kind = old.starts_with('\t') == new.starts_with('\t') || starts_in_list;
            let may_grow = continues_list || !old.starts_with('\t') || compiles(old);
            let sets_for_targets = old
                .split_once(':')
                .is_some_and(|(_, rest)| rest.contains('=') && !rest.starts_with(['=', ':']));
            same_kind && may_grow && !sets_for_targets && is_longer_list(old, new, continues_list)
        })
}

/// True if a line of a recipe is one command, of a compiler, a linker or an archiver. Other
/// commands do not count: a check may pass because it gets one more file (`grep -q F FILES`).
fn compiles(line: &str) -> bool {
    let program = line.trim_start().trim_start_matches(['@', '-']).split_whitespace().next();
    program.is_some_and(|name| is_compiler(name.trim_matches(['$', '(', ')'])))
        && !line.contains([';', '|', '&', '`', '<', '>'])
}

/// True if the last word of a line is a source file.
pub(super) fn ends_with_source(line: &str) -> bool {
    line.trim_end().trim_end_matches('\\').split_whitespace().last().is_some_and(is_source)
}

/// The lines of a difference, each joined with its continuation lines.
fn logical_lines(lines: &[&str]) -> Vec<String> {
    let text: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    continued_lines(&text)
}

/// True if `new` has the words of `old` in their order. Every further word must be a source file
/// that follows a source file.
pub(super) fn is_longer_list(old: &str, new: &str, mut follows_source: bool) -> bool {
    let mut old = old.split_whitespace().peekable();
    for word in new.split_whitespace() {
        if old.next_if_eq(&word).is_none() && !(follows_source && is_source(word)) {
            return false;
        }
        follows_source = is_source(word);
    }
    old.next().is_none()
}

/// The words with which the names of C's tests begin and end: `test_list.c`, `testlist.c`.
pub const TEST_WORDS: (&[&str], &[&str]) = (&["test…", "tst"], &["test"]);

/// True for the plain name of a source or object file that is not a test.
fn is_source(word: &str) -> bool {
    const EXTENSIONS: [&str; 9] = ["c", "cc", "cpp", "cxx", "h", "hpp", "o", "s", "S"];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let parts = word.rsplit_once('.').filter(|(_, extension)| EXTENSIONS.contains(extension));
    parts.is_some_and(|(stem, _)| !is_name_of_test(file_name(stem), TEST_WORDS))
        && !is_in_test_directory(word)
        && !word.starts_with('-')
        && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_list_of_sources_stays_and_the_rest_is_put_back() {
        let cases = [
            ("OBJS = a.o\n", "OBJS = a.o b.o\n", true),
            ("a: a.o\n\tcc -o a a.o\n", "a: a.o b.o\n\tcc -o a a.o b.o\n", true),
            ("OBJS = a.o \\\n  c.o\nt:\n", "OBJS = a.o \\\n  b.o \\\n  c.o\nt:\n", true),
            ("OBJS = a.o \\\n\tc.o\nt:\n", "OBJS = a.o \\\n\tc.o \\\n\td.o\nt:\n", true),
            ("OBJS = a.o\nt: x\n", "OBJS = a.o \\\nt: x\n", false),
            ("OBJS = a.o b.o\n", "OBJS = a.o\n", false),
            ("t:\n\tsh a.c\n", "t:\n\tsh b.c a.c\n", false),
            ("t:\n\tsh check\n", "t:\n\tsh check x.c\n", false),
            ("t:\n\tsh check\n", "t:\n\ttrue\n", false),
            ("t: a.o\n", "t: a.o\nSHELL = true\n", false),
            ("T = a.py\n", "T = a.py b.py\n", false),
            ("SKIP = a.c\n", "SKIP = a.c b.c\n", false),
            (
                "T = $(filter-out a.c,$(A))\nA = a.c\n",
                "T = $(filter-out a.c,$(A))\nA = a.c b.c\n",
                false,
            ),
            ("OBJS = a.o\n", "OBJS = a.o tests/b.o\n", false),
            ("t:\n\t$(CC) -o t a.o\n", "t:\n\t$(CC) -o t a.o b.o\n", true),
            ("t:\n\tgrep -q X a.h\n", "t:\n\tgrep -q X a.h b.h\n", false),
            ("t:\n\tcc a.c; grep -q X a.h\n", "t:\n\tcc a.c; grep -q X a.h b.h\n", false),
            ("a.o: CFLAGS += -g\n", "a.o b.o: CFLAGS += -g\n", false),
            ("SRCS = a.c\n", "SRCS = a.c b_test.c\n", false),
        ];
        for (base, own, stays) in cases {
            let expected = if stays { own } else { base };
            assert_eq!(makefile_part(Some(base), own).as_deref(), Some(expected), "{own}");
        }
        assert_eq!(makefile_part(None, "t:\n"), None);
    }

    #[test]
    fn condition_is_what_a_directive_compares_and_what_a_function_asks_for() {
        let cases: [(&str, &[&str]); 6] = [
            ("ifneq ($(X),)", &[" ($(X),)"]),
            ("  else ifeq 'a' 'b'", &[" 'a' 'b'"]),
            ("\t$(if $(filter a,$(X)),b,c) d", &["$(filter a,$(X))"]),
            ("\t${if $(or a,b),c}", &["$(or a,b)", "a,b"]),
            ("\tif a; then b; fi; (if c; then d; fi)", &[]),
            ("X = a", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(conditions(line), expected, "{line}");
        }
    }

    #[test]
    fn only_rules_have_targets() {
        let text = "CC := gcc\nall: test\ntest lint:\n\t@echo a:b\n.PHONY: build\nX = a:b\n\
                    # check: no\ninstall::\nv::=1\n";
        let targets: Vec<String> = rules(text).into_iter().skip(1).map(|rule| rule.name).collect();
        assert_eq!(targets, ["all", "test", "lint", "install"]);
    }
}
