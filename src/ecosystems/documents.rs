//! Documents: files for people, which nothing runs or loads.
use std::iter;

use crate::ecosystems::paths::{file_name, place_of_word, words_of_kind};
use crate::model::pattern::matches;

/// The endings of texts that are written for people.
const TEXTS: [&str; 7] = [".adoc", ".asciidoc", ".markdown", ".md", ".pod", ".rdoc", ".rst"];

/// Files with these endings are documents only in a directory such as `docs`.
const BESIDE: [&str; 8] = [".gif", ".ico", ".jpeg", ".jpg", ".png", ".svg", ".txt", ".webp"];

/// Patterns for the names of documents without an extension, or with `.txt`.
const NAMES: &str = "AUTHORS* CHANGELOG* CHANGES* CONTRIBUTING* CONTRIBUTORS* COPYING* HISTORY*
    LICENCE* LICENSE* NEWS* README* UNLICENSE*";

/// Further patterns like those in [`NAMES`]. A search for uses of a file reads the files with these
/// names, too, because a program may have such a name (`INSTALL.sh`).
const MORE_NAMES: &str = "CITATION.cff CREDITS* INSTALL* MAINTAINERS* NOTICE* SECURITY* THANKS*
    TODO*";

/// Files that name documents only to pack them or to leave them out. Such a file does not use the
/// text of a document.
const PACKING: &str = "*.gemspec .dockerignore .gitattributes .github/* .gitignore .npmignore
    CITATION.cff MANIFEST.in *.lock package-lock.json pnpm-lock.yaml go.sum";

pub fn is_document_by_name(path: &str) -> bool {
    let name = file_name(path);
    let has_ending = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    has_ending(&TEXTS) || (is_in_docs(path) && has_ending(&BESIDE)) || has_name_of_document(name)
}

/// True if no line of a file counts as a use of other files. The file is a document by its name, or
/// a page beside documents. Such a page only mentions the files that it names.
pub fn is_only_read(path: &str) -> bool {
    is_in_docs(path) && path.ends_with(".html") || is_document_by_name(path)
}

fn is_in_docs(path: &str) -> bool {
    directories(path).any(|part| matches!(part, "doc" | "docs" | "documentation"))
}

/// True for names such as `LICENSE`, `README.txt` and `Changes`.
fn has_name_of_document(name: &str) -> bool {
    let is_plain = !name.contains('.') || name.ends_with(".txt");
    let is_title = is_plain && name.starts_with(|c: char| c.is_ascii_uppercase());
    let upper = name.trim_end_matches(".txt").to_ascii_uppercase();
    let mut names = NAMES.split_ascii_whitespace().chain(MORE_NAMES.split_ascii_whitespace());
    names.any(|pattern| pattern == name || is_title && matches(pattern, &upper))
}

/// True if a search for uses of other files reads this file: it matches none of [`TEXTS`],
/// [`NAMES`] and [`PACKING`].
pub fn is_searched(path: &str) -> bool {
    !TEXTS.iter().any(|ending| path.ends_with(ending))
        && !PACKING
            .split_ascii_whitespace()
            .chain(NAMES.split_ascii_whitespace())
            .any(|pattern| matches(pattern, path))
}

/// A line that uses a document contains one of these texts: the document's name, its extension, the
/// names of the directories above it, or pytest's option for documents, which may get any pattern.
pub fn words_for(path: &str) -> Vec<String> {
    let name = iter::once(file_name(path).to_owned());
    let above = directories(path).map(str::to_owned);
    name.chain(words_of_kind(path)).chain(above).chain(["doctest-glob".to_owned()]).collect()
}

fn directories(path: &str) -> impl Iterator<Item = &str> {
    path.rsplit_once('/').into_iter().flat_map(|(above, _)| above.split('/'))
}

/// True if a line names a directory above the document, and so may list files in it.
pub fn lists(line: &str, path: &str) -> bool {
    directories(path).any(|name| place_of_word(line, name).is_some())
}

/// True if a line with one of these words uses the document. The line uses it in these cases:
/// * The line names the document, and is in a file that runs (`runs`).
/// * The line runs the examples in documents as tests (`doctest`).
pub fn is_use(line: &str, words: &[String], runs: bool) -> bool {
    let names_it = words.first().is_some_and(|name| line.contains(name.as_str()));
    (runs && names_it) || line.contains("doctest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_known_by_their_names() {
        let cases = [
            ("README.md", true),
            ("sub/README", true),
            ("docs/a/b.txt", true),
            ("docs/logo.svg", true),
            ("LICENSE-MIT", true),
            ("Changes", true),
            ("TODO.txt", true),
            ("CITATION.cff", true),
            ("lib/A.pod", true),
            ("todo.txt", false),
            ("install", false),
            ("INSTALL.sh", false),
            (".changeset/quick-fox.md", true),
            ("notes.txt", false),
            ("requirements.txt", false),
            ("docs/conf.py", false),
            ("docs/data.json", false),
            ("changes.py", false),
            ("CHANGES.py", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_document_by_name(path), expected, "{path}");
        }
    }

    #[test]
    fn document_is_listed_by_its_directory() {
        let cases = [
            ("os.listdir('docs')", "docs/a.md", true),
            ("doccheck docs", "docs/deep/a.md", true),
            ("testpaths = docs", "docs/a.md", true),
            ("docs_of(x)", "docs/a.md", false),
            ("# md files", "a.md", false),
            ("os.listdir('docs')", "README.md", false),
        ];
        for (line, path, expected) in cases {
            assert_eq!(lists(line, path), expected, "{line}: {path}");
        }
    }

    #[test]
    fn a_document_is_used_by_what_runs_and_names_it_and_by_doctests() {
        let words = words_for("docs/usage.md");
        assert!(is_use("open('docs/usage.md')", &words, true));
        assert!(!is_use("prettier --check '*.md'", &words, true));
        assert!(!is_use("readme = \"docs/usage.md\"", &words, false));
        assert!(is_use("addopts = --doctest-glob='*.md'", &words, false));
    }
}
