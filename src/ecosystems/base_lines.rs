//! Searches the lines of a base's files. Attempts at one change touch mostly the same files. So the
//! lines that a search found are kept, and a later search for some of the same words reads only
//! these lines. The texts of the files are kept, too, because reading them takes most of the time
//! of a search.
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::AhoCorasick;
use parking_lot::Mutex;

use crate::ecosystems::documents;
use crate::error::{Error, Result};
use crate::fs::parallel;
use crate::git::repo::Repo;
use crate::model::oid::Oid;

/// The number of bytes at the start of a file that are searched for a NUL. As in git, a file with a
/// NUL there is binary.
const BEGINNING: usize = 8000;

/// The maximum length of all texts that are kept, in bytes. If a base has more, each search reads it.
const MOST_KEPT: usize = 64 << 20;

/// The path of a file, and one of its lines.
pub type FoundLine = (String, String);

/// Lines that a search has found.
pub type FoundLines = Vec<FoundLine>;

/// The path and the text of each file of a base, sorted by path, if they are kept.
type KeptTexts = Option<Vec<(String, String)>>;

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
        Ok(Matcher {
            words: finder_of(self.words.iter().map(|text| folded(text)))?,
            pairs: finder_of(self.pairs.iter().map(|text| folded(text)))?,
            beside: self.beside.iter().map(|text| folded(text)).collect(),
            any_case: self.any_case,
        })
    }
}

/// Prepares a search for all of these texts in one pass. Fails if they are too long together.
pub fn finder_of(texts: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<AhoCorasick> {
    AhoCorasick::new(texts)
        .map_err(|e| Error::fatal(format!("the names to search for are too long: {e}")))
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

    /// The lines of a file that the search finds.
    fn lines_of(&self, path: &str, text: &str) -> FoundLines {
        let folded = self.folded(text);
        if !self.words.is_match(&*folded) && !self.pairs.is_match(&*folded) {
            return FoundLines::new();
        }
        let lines = text.lines().filter(|line| self.finds(line));
        lines.map(|line| (path.to_owned(), line.to_owned())).collect()
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
    /// The lock is held during a search, because another thread may be waiting to search for the same
    /// lines.
    searched: Mutex<Searched>,
}

#[derive(Default)]
struct Searched {
    /// The searches that were made, each with the lines that it found.
    searches: Vec<(LineSearch, FoundLines)>,
    /// The path and the text of each file, if they have been read and are not too long.
    texts: KeptTexts,
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
        let mut searches = searched.searches.iter();
        if let Some((_, lines)) = searches.find(|(earlier, _)| earlier.covers(&search)) {
            let matcher = search.matcher()?;
            return Ok(lines.iter().filter(|(_, line)| matcher.finds(line)).cloned().collect());
        }
        tracing::debug!(commit = %self.commit, "the base is searched");
        let lines = self.search(&search, &mut searched.texts)?;
        searched.searches.push((search, lines.clone()));
        Ok(lines)
    }

    /// The text of a file, if an earlier search has kept it.
    pub fn text_of(&self, path: &str) -> Option<String> {
        let searched = self.searched.lock();
        let texts = searched.texts.as_ref()?;
        let at = texts.binary_search_by(|(other, _)| other.as_str().cmp(path)).ok()?;
        Some(texts[at].1.clone())
    }

    /// Searches the files in process, because `git grep` takes four times as much processor time.
    /// In a partial clone, a blob may be missing. In that case, `git grep` reads all files first,
    /// so that git fetches them.
    fn search(&self, search: &LineSearch, texts: &mut KeptTexts) -> Result<FoundLines> {
        self.search_in_process(search, texts).or_else(|_| {
            let git = self.repo.git().call("grep").args(["--count", "-e", ""]);
            git.arg(self.commit.as_str()).output()?;
            self.search_in_process(search, texts)
        })
    }

    fn search_in_process(&self, search: &LineSearch, kept: &mut KeptTexts) -> Result<FoundLines> {
        let matcher = search.matcher()?;
        if let Some(texts) = kept {
            let found = parallel::map_chunks(texts, |texts| {
                let found = texts.iter().flat_map(|(path, text)| matcher.lines_of(path, text));
                Ok(found.collect::<FoundLines>())
            })?;
            return Ok(found.concat());
        }
        let length = AtomicUsize::new(0);
        let read = self.repo.map_files(&self.commit, documents::is_searched, |path, bytes| {
            if bytes.iter().take(BEGINNING).any(|byte| *byte == 0) {
                return (FoundLines::new(), None);
            }
            let text = String::from_utf8_lossy(bytes);
            let found = matcher.lines_of(path, &text);
            let is_kept = length.fetch_add(text.len(), Ordering::Relaxed) < MOST_KEPT;
            (found, is_kept.then(|| (path.to_owned(), text.into_owned())))
        })?;
        let (found, texts): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        if length.into_inner() < MOST_KEPT {
            *kept = Some(texts.into_iter().flatten().collect());
        }
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
                let mut kept = None;
                // The second search is one of the texts that the first one kept.
                for _ in 0..2 {
                    let ours = lines.search(&search, &mut kept).expect("searched");
                    assert_eq!(ours.len(), found, "{place}: {ours:?}");
                    assert!(kept.is_some(), "{place}");
                }
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
