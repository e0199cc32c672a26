//! The files that commands copy, write and compare.
use std::collections::BTreeSet;

use crate::ecosystems::languages::language_of;
use crate::ecosystems::looking::compares;
use crate::ecosystems::paths::{below, directory_of, file_name, resolved};
use crate::ecosystems::run_files::names::{is_run_by_name, may_be_shell};
use crate::ecosystems::run_files::search::{MOST_LEVELS, Search, TextContext, WordMeaning};
use crate::ecosystems::run_files::values::{forms_of, variables_in};
use crate::error::Result;
use crate::model::pattern::matches;
use crate::model::shell::{MARK, Word, WordRole};

/// Programs that compare the files that their arguments name.
pub(super) const COMPARERS: [&str; 3] = ["cmp", "diff", "git"];

/// Programs that copy or move files to their last argument.
pub(super) const COPIERS: [&str; 5] = ["cp", "install", "ln", "mv", "rsync"];

/// The maximum number of copies that are recorded.
const MOST_COPIES: usize = 1_000;

impl Search<'_> {
    /// Adds the original of the copy at this path. If no copy is known, leaves out the first
    /// directories of the path: `out/verify/all.js` may be a copy of `verify/all.js`. Returns true
    /// if it found a file.
    pub(super) fn copy(
        &mut self,
        path: &str,
        meaning: WordMeaning,
        context: &TextContext,
    ) -> Result<bool> {
        let mut is_copy = false;
        for (original, _) in self.originals(path) {
            if !original.contains('*') {
                is_copy |= self.at(&original, meaning, context)?;
            } else if is_run_by_name(&original)
                && context.optional.is_none()
                && self.files.paths.iter().any(|path| matches(&original, path))
            {
                self.like(&original, meaning, context)?;
                self.found.run.insert(original);
            }
        }
        for (at, _) in path.match_indices('/') {
            if is_copy || path.contains('*') {
                break;
            }
            is_copy = self.at(&path[at + 1..], meaning, context)?;
        }
        Ok(is_copy)
    }

    /// Searches the texts that a command writes to a file. If the file may be a shell script, the
    /// texts are commands. Otherwise a text of several lines is data, in which a path still names a
    /// file. The files that `words` name count as copied to the output.
    pub(super) fn written(
        &mut self,
        words: &[Word],
        output: &Word,
        context: &TextContext,
    ) -> Result<()> {
        self.copied(words, output, context);
        let is_script = language_of(&output.text).is_some_and(|language| language.is_shell());
        let meaning =
            WordMeaning { by_shell: may_be_shell(&output.text), ..WordMeaning::default() };
        for word in words {
            if word.text.contains('\n') || is_script && word.text.contains(' ') {
                self.word(word, meaning, context)?;
            }
        }
        Ok(())
    }

    /// Records that files are copied or written to a place. The target of a relative link begins at
    /// the link's directory.
    pub(super) fn copied(&mut self, from: &[Word], to: &Word, context: &TextContext) {
        let mut from = self.all_values(from, context);
        from.retain(|word| !word.text.starts_with('-'));
        // The name of the copy is unknown: `out/$(basename $f)`.
        let to = if to.text.contains(MARK) { &to.with(directory_of(&to.text)) } else { to };
        let places = self.with_values(to, context).into_iter();
        for to in places.flat_map(|to| self.possible(&to, context)).collect::<Vec<_>>() {
            for word in &from {
                let links = [to.as_str(), directory_of(&to)].map(|top| resolved(top, &word.text));
                let mut originals = self.possible(word, context);
                if word.text.starts_with("../") {
                    originals.extend(links.into_iter().flatten());
                }
                for from in originals {
                    if self.copies.len() < MOST_COPIES && from != to {
                        self.copies.insert((to.clone(), from, word.role));
                    }
                }
            }
        }
    }

    /// The paths and patterns of the files that may have been copied to this path, each with the
    /// role in which it was copied. The path may be a pattern, too.
    pub(super) fn originals(&self, path: &str) -> Vec<(String, WordRole)> {
        let mut found = Vec::new();
        for (to, from, role) in &self.copies {
            let is_pattern = to.contains('*') || from.contains('*');
            let top = if to.contains('*') { directory_of(to) } else { to };
            let directory = if is_pattern { directory_of(from) } else { from };
            let rest = if path == top { Some("") } else { below(path, top) };
            let Some(rest) = rest else { continue };
            if is_pattern && (path == to || path.contains('*') || matches(to, path)) {
                found.push((from.clone(), *role));
            }
            let inner = rest.strip_prefix(file_name(from)).map(|rest| format!("{from}{rest}"));
            let same = format!("{directory}/{rest}").trim_matches('/').to_owned();
            let others = inner.into_iter().chain([same]).filter(|original| original != path);
            found.extend(others.map(|original| (original, *role)));
        }
        found
    }

    /// Adds the files that are compared by a program that otherwise only looks at files. Two files
    /// are compared by `grep -f F G`, and a file with a text by `grep "$(cat F)" G`.
    pub(super) fn compared_by(&mut self, program: &str, words: &[Word], context: &TextContext) {
        if compares(program, words) {
            return self.compared(words, context);
        }
        let is_content = |word: &Word| word.role == WordRole::Content;
        let has_text = words.iter().any(|word| word.text.contains(MARK))
            || words
                .iter()
                .any(|word| !is_content(word) && !self.contents(word, context).is_empty());
        if file_name(program).ends_with("grep") && has_text {
            let content: Vec<Word> =
                words.iter().flat_map(|word| self.contents(word, context)).collect();
            self.compared(&content, context);
        }
    }

    /// The words for the content of files, among the word itself and the values of its variables. A
    /// variable may stand beside other text (`"x$want"`).
    pub(super) fn contents(&self, word: &Word, context: &TextContext) -> Vec<Word> {
        let variables = variables_in(&word.text).map(|name| Word::expanded(format!("${name}")));
        let mut found: Vec<Word> =
            variables.flat_map(|variable| self.with_values(&variable, context)).collect();
        found.push(word.clone());
        found.retain(|value| value.role == WordRole::Content);
        found
    }

    /// Adds the files that a command compares. A copy stands for its original. If a file is
    /// compared with a text that was made from the file itself, it is left out: such a check asks
    /// whether a tool would change the file.
    pub(super) fn compared(&mut self, words: &[Word], context: &TextContext) {
        let mut named = BTreeSet::new();
        let mut made = BTreeSet::new();
        for word in words {
            let is_input = |role| context.inputs.contains(&word.in_role(role));
            let is_left_out = match word.role {
                WordRole::Name => is_input(WordRole::Name),
                WordRole::Printed => is_input(WordRole::Name) || is_input(WordRole::Content),
                WordRole::Content => false,
            };
            if is_left_out || word.text.starts_with('-') {
                continue;
            }
            for value in
                self.with_values(word, context).into_iter().chain(self.contents(word, context))
            {
                let is_made = value.role == WordRole::Content;
                let paths = if is_made { &mut made } else { &mut named };
                paths.extend(self.possible(&value, context));
            }
        }
        let mut originals = BTreeSet::new();
        let mut copies: Vec<String> = named.union(&made).cloned().collect();
        for _ in 0..MOST_LEVELS {
            let next: Vec<_> = copies.iter().flat_map(|path| self.originals(path)).collect();
            copies.clear();
            for (path, role) in next.into_iter().filter(|(_, role)| *role != WordRole::Printed) {
                let paths = if role == WordRole::Content { &mut made } else { &mut originals };
                if paths.insert(path.clone()) {
                    copies.push(path);
                }
            }
        }
        self.found.compared.extend(originals);
        self.found.compared.extend(named.symmetric_difference(&made).cloned());
    }

    /// The paths that a word may mean; the empty path is the root. An unknown beginning, as in
    /// `$DIR/lib.sh`, stands for any directory.
    pub(super) fn possible(&self, word: &Word, context: &TextContext) -> Vec<String> {
        let (forms, is_anywhere) = forms_of(word);
        let mut found = Vec::new();
        let mut tops = self.tops(context);
        if forms.iter().any(|form| form == "." || form == "*") {
            tops.truncate(1);
            tops.extend(self.entered.get(&context.at).into_iter().flatten().cloned());
        }
        for form in &forms {
            for top in &tops {
                let is_inside = top.is_empty() || below(form, top).is_none();
                let path = resolved(top, form).filter(|path| is_inside || self.files.has(path));
                found.extend(path.filter(|path| !found.contains(path)));
            }
            let end = format!("/{}", form.trim_start_matches("../"));
            let is_anywhere =
                is_anywhere || form.contains('/') && self.changes_anywhere.contains(&context.at);
            let named = self.files.by_name.get(file_name(form)).into_iter().flatten();
            for path in named.filter(|path| is_anywhere && path.ends_with(&end)) {
                if !found.iter().any(|other| other == path) {
                    found.push((*path).to_owned());
                }
            }
        }
        found
    }
}

/// The content of the file that an argument names.
pub(super) fn content_of(word: &Word) -> Word {
    if word.role == WordRole::Name { word.in_role(WordRole::Content) } else { word.clone() }
}
