//! Searches the lines of a base's files. A search of a large base takes a tenth of a second, and
//! attempts at one change touch mostly the same files. So the lines that a search found are kept,
//! and a later search for some of the same words reads only these lines.
use std::borrow::Cow;
use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;
use parking_lot::Mutex;

use crate::ecosystems::documents;
use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::oid::Oid;

/// The number of bytes at the start of a file that are searched for a NUL. As in git, a file with a
/// NUL there is binary.
const BEGINNING: usize = 8000;

/// Pairs of the path of a file and one of its lines.
pub type FoundLines = Vec<(String, String)>;

/// A search for the lines that contain one of `words`, or one of `pairs` together with one of
/// `beside`.
#[derive(Default)]
pub struct LineSearch {
    /// The search finds each line that contains one of these texts.
    pub words: BTreeSet<String>,
    /// The search finds each line that contains one of these texts and one of `beside`.
    pub pairs: BTreeSet<String>,
    /// Texts that must stand in a line beside a text of `pairs`, e.g. `import` beside the name of a
    /// module.
    pub beside: Vec<&'static str>,
    /// True if the search ignores case.
    pub any_case: bool,
}

impl LineSearch {
    /// The search for lines that have one of these words.
    pub fn of(words: impl IntoIterator<Item = String>) -> LineSearch {
        LineSearch { words: words.into_iter().collect(), ..LineSearch::default() }
    }

    /// True if this search finds every line that `other` finds.
    fn covers(&self, other: &LineSearch) -> bool {
        self.any_case == other.any_case
            && self.words.is_superset(&other.words)
            && self.pairs.is_superset(&other.pairs)
            && (other.pairs.is_empty() || self.beside == other.beside)
    }

    /// Prepares the search for many lines.
    fn matcher(&self) -> Result<Matcher> {
        let folded = |text: &str| if self.any_case { text.to_lowercase() } else { text.to_owned() };
        let of = |texts: &BTreeSet<String>| {
            AhoCorasick::new(texts.iter().map(|text| folded(text)))
                .map_err(|e| Error::fatal(format!("the names to search for are too long: {e}")))
        };
        Ok(Matcher {
            words: of(&self.words)?,
            pairs: of(&self.pairs)?,
            beside: self.beside.iter().map(|text| folded(text)).collect(),
            any_case: self.any_case,
        })
    }
}

/// Finds all words of a search in one pass over a text.
struct Matcher {
    words: AhoCorasick,
    pairs: AhoCorasick,
    beside: Vec<String>,
    any_case: bool,
}

impl Matcher {
    /// Returns the text in lower case if the search ignores case, else unchanged.
    fn folded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.any_case { text.to_lowercase().into() } else { text.into() }
    }

    /// True if a text may have a line that the search finds.
    fn may_be_in(&self, text: &str) -> bool {
        let text = self.folded(text);
        self.words.is_match(&*text) || self.pairs.is_match(&*text)
    }

    /// True if the search finds a line.
    fn finds(&self, line: &str) -> bool {
        let line = self.folded(line);
        self.words.is_match(&*line)
            || self.pairs.is_match(&*line)
                && self.beside.iter().any(|text| line.contains(text.as_str()))
    }
}

/// Searches all files of a base except its documents, and keeps the lines that were found.
pub struct BaseLines<'t> {
    repo: &'t Repo,
    commit: Oid,
    /// The searches that were made, each with the lines that it found. The lock is held during a
    /// search, because another thread may be waiting to search for the same lines.
    searched: Mutex<Vec<(LineSearch, FoundLines)>>,
}

impl<'t> BaseLines<'t> {
    /// Prepares searches in the files of a commit. Nothing is read yet.
    pub fn of(repo: &'t Repo, commit: &Oid) -> BaseLines<'t> {
        BaseLines { repo, commit: *commit, searched: Mutex::default() }
    }

    /// The lines that a search finds. Fails if git fails.
    pub fn find(&self, search: LineSearch) -> Result<FoundLines> {
        if search.words.is_empty() && search.pairs.is_empty() {
            return Ok(FoundLines::new());
        }
        let mut searched = self.searched.lock();
        if let Some((_, lines)) = searched.iter().find(|(earlier, _)| earlier.covers(&search)) {
            let matcher = search.matcher()?;
            return Ok(lines.iter().filter(|(_, line)| matcher.finds(line)).cloned().collect());
        }
        tracing::debug!(commit = %self.commit, "the base is searched");
        let lines = self.search(&search)?;
        searched.push((search, lines.clone()));
        Ok(lines)
    }

    /// Searches the files in process, because `git grep` takes four times as much processor time.
    /// In a partial clone, a blob may be missing. In that case, `git grep` reads all files first,
    /// so that git fetches them.
    fn search(&self, search: &LineSearch) -> Result<FoundLines> {
        self.search_in_process(search).or_else(|_| {
            let git = self.repo.git().call("grep").args(["--count", "-e", ""]);
            git.arg(self.commit.as_str()).output()?;
            self.search_in_process(search)
        })
    }

    fn search_in_process(&self, search: &LineSearch) -> Result<FoundLines> {
        let matcher = search.matcher()?;
        let found = self.repo.map_files(&self.commit, documents::is_searched, |path, bytes| {
            if bytes.iter().take(BEGINNING).any(|byte| *byte == 0) {
                return FoundLines::new();
            }
            let text = String::from_utf8_lossy(bytes);
            if !matcher.may_be_in(&text) {
                return FoundLines::new();
            }
            let lines = text.lines().filter(|line| matcher.finds(line));
            lines.map(|line| (path.to_owned(), line.to_owned())).collect()
        })?;
        Ok(found.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn lines_are_found_in_loose_packed_and_missing_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = |line: &str| {
            let call = duct::cmd("git", line.split(' ')).dir(directory.path());
            call.env("GIT_CONFIG_GLOBAL", "/dev/null").read().expect("git works")
        };
        git("init -q");
        for (path, text) in [
            ("a.py", &b"import b\nb.run()\nsay b\n"[..]),
            ("sub/deep/c.py", b"\n\xffimport b\r\nLOAD B"),
            ("binary", b"import b\0\n"),
            ("late", &[&[b'.'; 8000][..], b"\0\nimport b\n"].concat()),
            ("README.md", b"import b\n"),
            ("docs/x.rst", b"import b\n"),
            ("sub/go.sum", b"import b\n"),
            ("go.sum", b"import b\n"),
            ("empty", b""),
        ] {
            let file = directory.path().join(path);
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            std::fs::write(file, text).expect("written");
        }
        std::os::unix::fs::symlink("import b", directory.path().join("link")).expect("linked");
        git("add -A");
        git("-c user.name=a -c user.email=a@b commit -qm base");
        let commit = Oid::parse(&git("rev-parse HEAD")).expect("a commit");
        git("config uploadpack.allowFilter true");
        for place in ["loose", "packed", "missing"] {
            if place == "packed" {
                git("gc -q");
            }
            let clone = tempfile::tempdir().expect("a directory");
            if place == "missing" {
                let [from, to] = [&directory, &clone].map(|at| at.path().display());
                git(&format!("clone -q --no-checkout --filter=blob:none file://{from} {to}"));
            }
            let at = if place == "missing" { &clone } else { &directory };
            let repo = Repo::discover(at.path()).expect("a repository");
            for (words, pairs, any_case, found) in [
                (&["import b", "run"][..], &[][..], false, 5),
                (&["run"], &["b"], false, 5),
                (&[], &["b"], true, 5),
                (&["nowhere"], &[], false, 0),
            ] {
                let beside = vec!["import", "load"];
                let search = LineSearch { words: set(words), pairs: set(pairs), beside, any_case };
                let lines = BaseLines::of(&repo, &commit);
                let ours = lines.search(&search).expect("searched");
                assert_eq!(ours.len(), found, "{place}: {ours:?}");
            }
        }
    }

    #[test]
    fn a_search_is_answered_by_one_that_looks_for_its_words_too() {
        let wide = LineSearch {
            words: set(&["a.py", "b.py"]),
            pairs: set(&["a", "b"]),
            beside: vec!["import"],
            any_case: false,
        };
        let of = |words: &[&str], pairs: &[&str], beside: &[&'static str], any_case| LineSearch {
            words: set(words),
            pairs: set(pairs),
            beside: beside.to_vec(),
            any_case,
        };
        assert!(wide.covers(&of(&["a.py"], &["b"], &["import"], false)));
        assert!(wide.covers(&of(&["a.py"], &[], &[], false)));
        assert!(!wide.covers(&of(&["c.py"], &[], &[], false)));
        assert!(!wide.covers(&of(&[], &["a"], &["use"], false)));
        assert!(!wide.covers(&of(&["a.py"], &[], &[], true)));
        // Lines that only the wide search asks for are left out.
        let lines = ["open a.py", "open b.py", "import a", "say a", "IMPORT A"];
        let lines: FoundLines = lines.map(|line| ("x".to_owned(), line.to_owned())).into();
        let found = |search: &LineSearch| -> Vec<String> {
            let matcher = search.matcher().expect("short names");
            let found = lines.iter().filter(|(_, line)| matcher.finds(line));
            found.map(|(_, line)| line.clone()).collect()
        };
        let narrow = of(&["a.py"], &["a"], &["import"], false);
        assert_eq!(found(&narrow), ["open a.py", "import a"]);
        let any_case = LineSearch { any_case: true, ..narrow };
        assert_eq!(found(&any_case), ["open a.py", "import a", "IMPORT A"]);
    }
}
