//! The values of variables, and the paths that a word may mean.
use crate::ecosystems::languages::language_of;
use crate::ecosystems::paths::{directory_of, is_in_name, plain, resolved};
use crate::ecosystems::run_files::search::{MOST_LEVELS, MOST_WORDS, Search, TextContext};
use crate::model::shell::{Word, WordRole, without_variables};

impl Search<'_> {
    /// Records the directories that are named by these words of a command, and the values that the
    /// words give to variables.
    pub(super) fn assignments(
        &mut self,
        words: &[Word],
        printed_inside: &[Vec<Word>],
        context: &TextContext,
    ) {
        for word in words {
            self.directory(word, context);
            let inside = (0..printed_inside.len()).find(|at| word.holds_substitution(*at));
            if let Some((variable, value)) = assignment(word) {
                let values = inside.map_or(vec![value], |at| printed_inside[at].clone());
                self.give(variable, values, context);
            }
            let defaults = word.text.match_indices('$').map(|(at, _)| &word.text[at..]);
            for (variable, value) in defaults.filter_map(default_in) {
                self.give(variable, [word.with(value)], context);
            }
        }
    }

    /// Records that a text gives a variable these values.
    pub(super) fn give(
        &mut self,
        variable: &str,
        values: impl IntoIterator<Item = Word>,
        context: &TextContext,
    ) {
        let given =
            self.values.entry(variable.to_owned()).or_default().entry(context.at).or_default();
        for value in values.into_iter().map(|value| as_argument(&value)) {
            if given.len() < MOST_WORDS && !given.contains(&value) {
                given.push(value);
            }
        }
    }

    /// Records that paths in a text may begin at the directory that a word names.
    fn directory(&mut self, word: &Word, context: &TextContext) {
        let path = plain(word.text.rsplit(['=', '"']).next().unwrap_or_default());
        let path = path.strip_prefix("-C").or(path.strip_prefix("-I")).unwrap_or(path);
        for top in ["", &context.directory] {
            if let Some(directory) = resolved(top, path)
                && self.files.directories.contains(directory.as_str())
            {
                let all = self.directories.entry(context.at).or_default();
                if all.len() < MOST_WORDS {
                    all.insert(directory);
                }
            }
        }
    }

    /// The directories at which a path in a text may begin, the most likely one first.
    pub(super) fn tops(&self, context: &TextContext) -> Vec<String> {
        let mut tops = vec![String::new()];
        let own = std::iter::once(&context.directory);
        for top in own.chain(self.directories.get(&context.at).into_iter().flatten()) {
            if !tops.contains(top) {
                tops.push(top.clone());
            }
        }
        tops
    }

    /// The words for which a word stands, with the values of its variables. If the word's own text
    /// gives values, these are used; otherwise, the values from other texts. `${f%.c}` removes the
    /// end `.c`.
    pub(super) fn with_values(&self, word: &Word, context: &TextContext) -> Vec<Word> {
        let mut words = vec![word.clone()];
        // A value may use other variables.
        for _ in 0..MOST_LEVELS {
            let next = words.iter().flat_map(|word| self.with_first_values(word, context));
            let next: Vec<Word> = next.take(MOST_WORDS).collect();
            if next == words {
                break;
            }
            words = next;
        }
        words.iter_mut().for_each(|value| value.role = value.role.max(word.role));
        words
    }

    /// As [`Self::with_values`], without the variables in the values.
    pub(super) fn with_first_values(&self, word: &Word, context: &TextContext) -> Vec<Word> {
        with_values(word, &|name| {
            let Some(all) = self.values.get(name) else { return Vec::new() };
            match all.get(&context.at) {
                Some(own) => own.clone(),
                None if self.texts[context.at].is_test => Vec::new(),
                None => all.values().flatten().take(MOST_WORDS).cloned().collect(),
            }
        })
    }

    /// The words for which these words stand.
    pub(super) fn all_values(&self, words: &[Word], context: &TextContext) -> Vec<Word> {
        words.iter().flat_map(|word| self.with_values(word, context)).collect()
    }
}

/// The names of the variables that a text uses.
pub(super) fn variables_in(text: &str) -> impl Iterator<Item = String> {
    text.split('$').skip(1).filter_map(|after| {
        let after = after.trim_start_matches(['{', '(']);
        let end = after.find(|c| !is_in_name(c)).unwrap_or(after.len());
        (end > 0).then(|| after[..end].to_owned())
    })
}

/// The variable and the value of a word such as `CC=gcc`.
pub fn assignment(word: &Word) -> Option<(&str, Word)> {
    let (variable, value) = word.text.split_once('=')?;
    Some((variable, word.with(value)))
}

/// The name of the variable that a word consists of: `f` for `$f`, `./$f` and `${f}`.
fn variable_of(word: &Word) -> &str {
    word.text.trim_start_matches("./").trim_start_matches(['$', '{']).trim_end_matches('}')
}

/// The name and the default of the variable with which a text begins, if it has a default:
/// `${X:-F}`, `${X:=F}`.
fn default_in(text: &str) -> Option<(&str, &str)> {
    let (inner, _) = text.strip_prefix("${")?.split_once('}')?;
    let (name, value) = inner.split_at(inner.find(|c| !is_in_name(c))?);
    let value = value.strip_prefix(':').unwrap_or(value);
    let value = value.strip_prefix(['-', '=', '+'])?;
    (!value.is_empty()).then_some((name, value))
}

/// The paths that a word may mean, relative to the directories at which they may begin. The flag is
/// true if the word begins with an unknown variable, which stands for any directory. The value of
/// the variable may end with a slash (`${R}lib/F`).
pub(super) fn forms_of(word: &Word) -> (Vec<String>, bool) {
    let text = plain(word.text.trim_start_matches('/')).trim_start_matches('/');
    if !word.is_expanded {
        return (if text.is_empty() { Vec::new() } else { vec![text.to_owned()] }, false);
    }
    let unknown = without_variables(text, '$');
    let (first, rest) = unknown.split_once('/').unwrap_or((&unknown, ""));
    // All files of an unknown directory (`$D/*`) may be any files, so they are left out.
    if first.contains('$') && !rest.is_empty() && rest != "*" && !rest.contains('$') {
        let with_slash = if first == "$" { None } else { unknown.strip_prefix('$') };
        return ([Some(rest), with_slash].into_iter().flatten().map(str::to_owned).collect(), true);
    }
    // A name with unknown variables stands for all files that match it. Its directory and its
    // language must be known.
    let pattern = as_pattern(text);
    let is_vague = directory_of(&pattern).contains('*') || language_of(&pattern).is_none();
    // In a text, `[NAME...]` is no pattern of names. As a pattern it would stand for one character.
    let is_bracket = pattern.chars().all(|c| c == '*') && text.contains('[');
    let is_unknown = first.contains('$') || is_bracket || text.contains('$') && is_vague;
    (if is_unknown { Vec::new() } else { vec![pattern] }, false)
}

/// A word as a pattern: with `*` for `?`, `[a-z]` and the variables that are not known.
fn as_pattern(text: &str) -> String {
    let text = without_variables(text, '*').replace('?', "*");
    let mut parts = text.split('[');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found.extend(["*", part.split_once(']').map_or(part, |(_, rest)| rest)]);
    }
    found
}

/// The words for which a word stands, with the known values of its variables. `${f%.c}` takes an
/// end off.
pub fn with_values(word: &Word, values_of: &dyn Fn(&str) -> Vec<Word>) -> Vec<Word> {
    if !word.is_expanded {
        return vec![word.clone()];
    }
    let values = values_of(variable_of(word));
    if !values.is_empty() {
        return values;
    }
    for (at, _) in word.text.match_indices('$') {
        let after = &word.text[at + 1..];
        let name = after.trim_start_matches('{');
        let name = &name[..name.find(|c| !is_in_name(c)).unwrap_or(name.len())];
        let mut values = values_of(name);
        if let Some((_, value)) = default_in(&word.text[at..]) {
            values.push(Word::expanded(value));
        }
        if values.is_empty() {
            continue;
        }
        let end = if after.starts_with('{') { after.find('}').map(|end| end + 1) } else { None };
        let (inner, rest) = after.split_at(end.unwrap_or(name.len()));
        let ending = inner.split_once('%').map_or("", |(_, end)| end.trim_matches(['%', '}']));
        let parts = values.iter().flat_map(|value| value.text.split_whitespace());
        let rest = with_values(&Word::expanded(rest), values_of);
        let texts = parts.flat_map(|part| {
            let part = part.strip_suffix(ending).unwrap_or(part);
            let text = format!("{}{part}", &word.text[..at]);
            rest.iter().map(move |rest| format!("{text}{}", rest.text))
        });
        return texts.map(Word::expanded).take(MOST_WORDS).collect();
    }
    vec![word.clone()]
}

/// A word that a program printed, as an argument of another one.
pub(super) fn as_argument(word: &Word) -> Word {
    if word.role == WordRole::Printed { word.in_role(WordRole::Name) } else { word.clone() }
}
