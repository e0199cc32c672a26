//! Paths of modules in JavaScript.
use std::collections::BTreeSet;

use crate::ecosystems::languages::language_of;
use crate::ecosystems::loading::LoadedName;
use crate::ecosystems::loading::code_lines::{has_loading_word, names_own_directory};
use crate::ecosystems::loading::settings::lists_product;
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{
    bare_name, directory_of, file_name, inside, resolved, stem_and_extension,
};

/// Settings of runners, bundlers and compilers by which a package may be another file.
pub const REPLACING_PACKAGES: [&str; 8] = [
    SEARCHED_FOR_PACKAGES[0],
    SEARCHED_FOR_PACKAGES[1],
    SEARCHED_FOR_PACKAGES[2],
    SEARCHED_FOR_PACKAGES[3],
    "\"imports\"",
    "\"paths\"",
    "alias",
    "moduleNameMapper",
];

/// Settings that list directories of packages.
pub const SEARCHED_FOR_PACKAGES: [&str; 4] =
    ["NODE_PATH", "baseUrl", "moduleDirectories", "modulePaths"];

/// The path by which code loads the file at `path`: `src/chai` for `src/chai.js` and
/// `src/chai/index.js`.
pub fn module_path(path: &str) -> &str {
    let stem = stem_and_extension(path).0;
    stem.strip_suffix("/index").unwrap_or(stem)
}

/// The package that a line loads if it loads a module by the end of the path at `path`, as it loads
/// one of a package: `chai` for `src/chai.js`, and `@a/b` for `src/@a/b/c.js`.
pub fn loaded_package<'l>(line: &'l str, path: &str) -> Option<&'l str> {
    let module = module_path(path);
    if !has_loading_word(line) {
        return None;
    }
    let text = quoted_words(line).find(|text| {
        text.starts_with(|first| first != '.')
            && module
                .strip_suffix(text)
                .is_some_and(|above| above.is_empty() || above.ends_with('/'))
    })?;
    let scope = text.strip_prefix('@').and_then(|rest| rest.find('/')).map_or(0, |at| at + 2);
    Some(text[scope..].find('/').map_or(text, |at| &text[..scope + at]))
}

/// True if the text of a lock file of npm, Yarn, pnpm or Bun has a package of this name.
pub fn is_in_lock(lock: &str, package: &str) -> bool {
    lock.match_indices(package).any(|(at, _)| {
        let before = &lock[..at];
        let after = &lock[at + package.len()..];
        let is_name = before.is_empty() || before.ends_with(['/', '"', '\'', '\n', ' ']);
        is_name && !before.ends_with("@types/") && after.starts_with(['@', '"', '\'', ':', '/'])
    })
}

/// The modules that a text of TypeScript declares by their names: compilers read `declare module "a"`
/// in place of the package `a`. Patterns and relative names are left out.
pub fn declared_modules(text: &str) -> BTreeSet<&str> {
    let declarations = text.match_indices("declare").map(|(at, word)| &text[at + word.len()..]);
    let names = declarations.filter_map(|rest| {
        let rest = without_comments_before(rest).strip_prefix("module")?;
        let rest = without_comments_before(rest);
        let quote = rest.chars().next().filter(|first| "\"'".contains(*first))?;
        rest[1..].split(quote).next()
    });
    names.filter(|name| !name.starts_with(['*', '.'])).collect()
}

/// A text without the blanks and comments at its start.
fn without_comments_before(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((comment, end)) = [("/*", "*/"), ("//", "\n")]
        .iter()
        .find_map(|(start, end)| Some((rest.strip_prefix(start)?, end)))
    {
        rest = comment.split_once(end).map_or("", |(_, after)| after).trim_start();
    }
    rest
}

impl LoadedName<'_> {
    /// The ends of paths in JavaScript that lead to the file. To the main file of a directory, dots may
    /// lead.
    pub(super) fn searched_in_javascript(&self) -> impl Iterator<Item = String> {
        let stem = bare_name(self.path);
        let names = [stem, self.module].into_iter();
        let ends = names.flat_map(|name| ["'", "\"", "`", "."].map(|end| format!("/{name}{end}")));
        let dots = ["'.'", "'./'", "'..", "\".\"", "\"./\"", "\".."].map(str::to_owned);
        let dots = (stem == "index").then_some(dots);
        ends.chain(dots.into_iter().flatten())
    }

    /// True if a text in quotes is the path of the file, or if some texts together are.
    pub(super) fn is_path_in_javascript(&self, other: &str, line: &str) -> bool {
        let joined = joined_texts(line);
        let loads = has_loading_word(line) || names_own_directory(line) || line.contains("<script");
        quoted_words(line)
            .chain(quoted_words(&joined))
            .any(|text| self.is_path_of_javascript(other, text, loads))
    }

    /// True if a text in a line of `other` is the path of this file of JavaScript: from the directory
    /// of `other`, from the root, or, without a dot at its start, from a directory that tools choose
    /// (`@/calc/sum`). `loads` is true if the line loads modules, or names its own directory. In another
    /// line, only the whole path means the file, from the root or from the directory of `other`.
    fn is_path_of_javascript(&self, other: &str, text: &str, loads: bool) -> bool {
        let own = stem_and_extension(self.path).0;
        let own = if bare_name(own) == "index" { [own, directory_of(own)] } else { [own; 2] };
        let (stem, extension) = stem_and_extension(text);
        let is_code = language_of(text).is_some_and(|language| language.is_bundled());
        let text = if is_code && !extension.is_empty() { stem } else { text };
        if text.starts_with('.') {
            let paths = [directory_of(other), ""].map(|from| resolved(from, text));
            return paths.iter().flatten().any(|path| own.contains(&path.as_str()));
        }
        let own = own.iter().filter(|own| !own.is_empty());
        own.into_iter().any(|own| {
            let is_end = |end: &str| own.strip_suffix(end).is_some_and(ends_directory);
            match text.split_once('/') {
                _ if !loads => {
                    [directory_of(other), ""].iter().any(|from| inside(from, text) == **own)
                        && (is_code || lists_product(other))
                }
                Some(("", _)) => is_code && is_end(&text[1..]),
                // A name for a directory stands before the slash: `@/calc/sum`, `@app/sum`.
                Some((name, rest)) => {
                    let name = name.trim_start_matches(|c: char| !c.is_alphanumeric());
                    let is_above =
                        name.is_empty() || directory_of(own).split('/').any(|d| d == name);
                    is_end(text) || is_end(rest) && (rest.contains('/') || is_above)
                }
                None => is_code && file_name(own) == text,
            }
        })
    }
}

/// True for the empty path, and for a path that ends in a slash.
fn ends_directory(path: &str) -> bool {
    path.is_empty() || path.ends_with('/')
}

/// A line of code with the parts of a path as one text: `'src/setup'` for `'src', 'setup'`.
fn joined_texts(line: &str) -> String {
    let mut joined = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(',') {
        let next = after.trim_start();
        let quote = before.chars().next_back().filter(|c| "\"'`".contains(*c));
        match quote.filter(|quote| next.starts_with(*quote)) {
            Some(_) => {
                joined.push_str(&before[..before.len() - 1]);
                joined.push('/');
                rest = &next[1..];
            }
            None => {
                joined.extend([before, ","]);
                rest = after;
            }
        }
    }
    joined + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_is_loaded_by_its_name() {
        for (line, expected) in [
            ("const { expect } = require('chai')", Some("chai")),
            ("import { expect } from \"chai\";", Some("chai")),
            ("import { expect } from './chai'", None),
            ("import x from 'chai-http'", None),
            ("import x from 'ai'", None),
            ("it('chai', f)", None),
        ] {
            assert_eq!(loaded_package(line, "src/chai/index.ts"), expected, "{line}");
        }
        assert_eq!(loaded_package("require('@a/b/c')", "lib/@a/b/c.js"), Some("@a/b"));
        assert_eq!(loaded_package("require('parts/sum')", "src/parts/sum.js"), Some("parts"));
        for (lock, expected) in [
            ("    \"node_modules/chai\": {", true),
            ("\nchai@^4.0.0:\n", true),
            ("\n  /chai@4.3.7:\n", true),
            ("\n  chai: 4.3.7\n", true),
            ("\"node_modules/chai-http\": {", false),
            ("\"node_modules/@types/chai\": {", false),
        ] {
            assert_eq!(is_in_lock(lock, "chai"), expected, "{lock}");
        }
        let text = "declare module 'a' {\n}\n  declare module /* b */\n\"@b/c\";\n\"module\": 'x'\n\
                    declare module '*.svg';\n";
        assert_eq!(declared_modules(text), ["@b/c", "a"].into());
    }
}
