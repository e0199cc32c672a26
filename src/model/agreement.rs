//! Agreement: how much an attempt's edit overlaps with the edits of the other attempts
//! (docs/DECIDING.md, "Ranking by agreement").
//!
//! Attempts that solve a task tend to make the same changes, while each wrong attempt is wrong in
//! its own way.
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};

use rustc_hash::FxHashMap;

use crate::model::changed_file::{ChangedFile, FileContent};

/// The length of a run. In this file, a run is a sequence of this many tokens of a file.
const RUN: usize = 4;

/// Runs of tokens, by their hashes. The number says how often an edit adds the run; it is negative
/// if the edit removes the run.
type Runs = FxHashMap<u64, i64>;

/// A text with fewer than [`RUN`] tokens has only one run. This token fills it up.
const NOTHING: u64 = 0;

/// The runs that an attempt adds and removes, for each path: a multiset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    files: BTreeMap<Vec<u8>, Runs>,
    size: u64,
}

impl Edit {
    /// The edit that these changes make.
    pub fn of(files: &[ChangedFile]) -> Edit {
        let mut edit = Edit::default();
        for file in files {
            edit.add(file.path.as_bytes(), &file.before, &file.after);
        }
        edit
    }

    /// Adds the change of one path.
    fn add(&mut self, path: &[u8], before: &FileContent, after: &FileContent) {
        let mut runs = Runs::default();
        let [before_text, after_text] = [before, after].map(FileContent::lossy);
        // A run that begins in a line is completed by the tokens after the line. If a line occurs
        // equally often before and after, with the same next tokens, its runs are neither added nor
        // removed.
        let mut lines: HashMap<&str, (usize, i64)> = HashMap::new();
        for (content, text, step) in [(before, &before_text, -1), (after, &after_text, 1)] {
            match content {
                FileContent::Missing => {}
                FileContent::Binary(id, _) => {
                    *runs.entry(run_of(&[token(id.as_str())])).or_default() += step;
                }
                FileContent::Text(_) => {
                    if let Some(run) = only_run(text) {
                        *runs.entry(run).or_default() += step;
                    } else {
                        for (line, length) in lines_with_rest(text) {
                            lines.entry(line).or_insert((length, 0)).1 += step;
                        }
                    }
                }
            }
        }
        for (line, (length, times)) in lines.into_iter().filter(|(_, (_, times))| *times != 0) {
            let mut tokens: Vec<u64> = Tokens(&line[..length]).map(token).collect();
            let own = tokens.len();
            tokens.extend(Tokens(&line[length..]).map(token));
            for run in tokens.windows(RUN).take(own) {
                *runs.entry(run_of(run)).or_default() += times;
            }
        }
        runs.retain(|_, times| *times != 0);
        self.size += runs.values().map(|times| times.unsigned_abs()).sum::<u64>();
        self.files.insert(path.to_owned(), runs);
    }

    /// How much of another edit this edit covers, from 0 to 1. `shared` is the number of runs that
    /// both have. Runs that this edit lacks weigh twice as much as runs that only this edit has.
    fn cover(&self, other: &Edit, shared: u64) -> f64 {
        if self.size == 0 && other.size == 0 {
            return 1.0;
        }
        let only_here = (self.size - shared) as f64;
        let missing = (other.size - shared) as f64;
        shared as f64 / (shared as f64 + 0.5 * only_here + missing)
    }
}

/// The tokens of a text: words, and other single characters that are not blanks.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        // ASCII is read byte by byte, because almost all the time is spent here.
        let bytes = text.as_bytes();
        let mut length = 0;
        while let Some(byte) = bytes.get(length) {
            if byte.is_ascii() {
                if !byte.is_ascii_alphanumeric() && *byte != b'_' {
                    break;
                }
                length += 1;
            } else {
                let c = text[length..].chars().next().filter(|c| c.is_alphanumeric());
                let Some(c) = c else { break };
                length += c.len_utf8();
            }
        }
        if length == 0 {
            length = text.chars().next()?.len_utf8();
        }
        let (token, rest) = text.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

fn token(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(word.as_bytes());
    hasher.finish()
}

/// The hash of a run. Fewer than [`RUN`] tokens are filled up with [`NOTHING`].
fn run_of(tokens: &[u64]) -> u64 {
    let tokens = tokens.iter().copied().chain(std::iter::repeat(NOTHING)).take(RUN);
    tokens.fold(0, |run: u64, token| run.rotate_left(17) ^ token)
}

/// The run of a text with fewer than [`RUN`] tokens; `None` for a longer text.
fn only_run(text: &str) -> Option<u64> {
    let first: Vec<u64> = Tokens(text).take(RUN).map(token).collect();
    (first.len() < RUN).then(|| run_of(&first))
}

/// The lines of a text that have tokens. Each line comes with the next tokens, which complete the
/// runs that begin in the line. The number is the length of the line alone.
fn lines_with_rest(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut end = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = end;
        end += line.len();
        Tokens(line).next()?;
        let mut rest = Tokens(&text[end..]);
        rest.by_ref().take(RUN - 1).for_each(drop);
        Some((&text[start..text.len() - rest.0.len()], line.len()))
    })
}

/// For each edit, how much of every edit it covers ([`Edit::cover`]), itself included.
pub fn covers(edits: &[Edit]) -> Vec<Vec<f64>> {
    let shared = shared(edits);
    edits
        .iter()
        .enumerate()
        .map(|(at, edit)| {
            let cover = |(other, shared): (&Edit, &u64)| edit.cover(other, *shared);
            edits.iter().zip(&shared[at]).map(cover).collect()
        })
        .collect()
}

/// The number of runs that each pair of edits shares. To save time, skips paths that only one edit
/// touches. Runs that occur in the same edits, with the same counts, are counted as one group.
fn shared(edits: &[Edit]) -> Vec<Vec<u64>> {
    let mut files: BTreeMap<&[u8], Vec<(usize, &Runs)>> = BTreeMap::new();
    for (at, edit) in edits.iter().enumerate() {
        edit.files.iter().for_each(|(path, runs)| files.entry(path).or_default().push((at, runs)));
    }
    let mut groups: HashMap<Vec<(usize, i64)>, u64> = HashMap::new();
    for runs_of_file in files.into_values().filter(|runs| runs.len() > 1) {
        let mut holders: FxHashMap<u64, Vec<(usize, i64)>> = FxHashMap::default();
        for (at, runs) in runs_of_file {
            for (run, times) in runs {
                holders.entry(*run).or_default().push((at, *times));
            }
        }
        holders.into_values().for_each(|holders| *groups.entry(holders).or_default() += 1);
    }
    let mut shared = vec![vec![0; edits.len()]; edits.len()];
    for (at, edit) in edits.iter().enumerate() {
        shared[at][at] = edit.size;
    }
    for (holders, runs) in groups {
        for (n, (one, own_times)) in holders.iter().enumerate() {
            for (other, times) in &holders[n + 1..] {
                if own_times.signum() == times.signum() {
                    let both = runs * own_times.unsigned_abs().min(times.unsigned_abs());
                    shared[*one][*other] += both;
                    shared[*other][*one] += both;
                }
            }
        }
    }
    shared
}

/// The score of each edit: the mean of [`Edit::cover`] over all other edits, rounded to 1e-9.
/// `None` if there is no other edit. The edits must come from distinct trees.
pub fn scores(edits: &[Edit]) -> Vec<Option<f64>> {
    let score = |(at, mut covers): (usize, Vec<f64>)| {
        covers.remove(at);
        mean(covers).map(rounded)
    };
    covers(edits).into_iter().enumerate().map(score).collect()
}

/// The mean of some numbers; `None` if there are none.
pub(super) fn mean(mut numbers: Vec<f64>) -> Option<f64> {
    // Sorted, so that the order of the candidates cannot change the last bit of the sum.
    numbers.sort_by(f64::total_cmp);
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// A score rounded to 1e-9.
pub(super) fn rounded(score: f64) -> f64 {
    (score * 1e9).round() / 1e9
}

/// Two scores as text, with enough digits to tell them apart.
pub fn told_apart(one: f64, other: f64) -> [String; 2] {
    let texts = |digits: usize| [one, other].map(|score| format!("{score:.digits$}"));
    (3..9).map(texts).find(|[one, other]| one != other).unwrap_or_else(|| texts(3))
}

/// A score as a whole number, which has a total order.
pub fn comparable(score: f64) -> u64 {
    (score.clamp(0.0, 1.0) * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::oid::Oid;
    use proptest::prelude::*;

    fn content(text: &str) -> FileContent {
        FileContent::Text(text.as_bytes().to_vec())
    }

    /// Edits of one file `f` from one text to others.
    fn edits(base: &str, results: &[&str]) -> Vec<Edit> {
        let mut all = vec![Edit::default(); results.len()];
        for (edit, text) in all.iter_mut().zip(results) {
            edit.add(b"f", &content(base), &content(text));
        }
        all
    }

    #[test]
    fn the_definition_worked_out_by_hand() {
        // Runs of `a b c d e`: abcd, bcde. Of `a b c d x`: abcd, bcdx. So E = {+bcdx, -bcde}.
        let all = edits("a b c d e", &["a b c d x", "a b c d y", "a b c d x, z"]);
        assert_eq!(all.iter().map(|e| e.size).collect::<Vec<_>>(), [2, 2, 4]);
        let covers = covers(&all);
        // c1 and c2 share only the removed run: 1 / (1 + ½·1 + 1).
        assert_eq!(covers[0][1], 0.4);
        // c3 has all of c1 and two more: 2 / (2 + ½·2 + 0); c1 lacks two of c3's: 2 / (2 + 0 + 2).
        assert_eq!((covers[2][0], covers[0][2]), (2.0 / 3.0, 0.5));
        assert_eq!(scores(&all[..2]), [Some(0.4), Some(0.4)]);
        assert_eq!(scores(&all)[0], Some(0.45));
        assert_eq!(scores(&all[..1]), [None]);
    }

    #[test]
    fn tokens_are_words_or_single_signs_and_a_short_file_is_one_run() {
        assert_eq!(Tokens("a_b1 +=\n ü; ").collect::<Vec<_>>(), ["a_b1", "+", "=", "ü", ";"]);
        let size = |before, after| {
            let mut edit = Edit::default();
            edit.add(b"f", &before, &after);
            edit.size
        };
        let binary = |digit: &str| {
            FileContent::Binary(Oid::parse(&digit.repeat(40)).expect("an id"), Vec::new())
        };
        assert_eq!(size(FileContent::Missing, content("a_b1 += ü;")), 2);
        assert_eq!(size(FileContent::Missing, content("x y")), 1);
        assert_eq!(size(FileContent::Missing, content("")), 1, "an empty file has one run");
        assert_eq!(size(binary("a"), binary("b")), 2, "one lost, one gained");
        assert_eq!(size(content("x\ny\nz"), content("x y z")), 0, "blanks do not count");
    }

    #[test]
    fn the_same_words_at_another_path_share_nothing() {
        let mut all = vec![Edit::default(); 2];
        all[0].add(b"f", &FileContent::Missing, &content("a b c d"));
        all[1].add(b"g", &FileContent::Missing, &content("a b c d"));
        assert_eq!(covers(&all), [[1.0, 0.0], [0.0, 1.0]]);
    }

    /// The runs of a text, computed directly by the definition.
    fn runs_of(text: &str) -> BTreeMap<[Option<&str>; RUN], i64> {
        let mut tokens: Vec<Option<&str>> = Tokens(text).map(Some).collect();
        tokens.resize(tokens.len().max(RUN), None);
        let mut runs = BTreeMap::new();
        for run in tokens.windows(RUN) {
            *runs.entry([run[0], run[1], run[2], run[3]]).or_default() += 1;
        }
        runs
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "+", "\n", "_x"]), 0..14)
            .prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn lines_that_stay_change_nothing(base in text(), a in text(), b in text()) {
            let difference = |text: &str| -> BTreeMap<[Option<String>; RUN], i64> {
                let mut all: BTreeMap<_, i64> = BTreeMap::new();
                let owned = |run: [Option<&str>; RUN]| run.map(|word| word.map(str::to_owned));
                runs_of(text).into_iter().for_each(|(run, n)| *all.entry(owned(run)).or_default() += n);
                runs_of(&base).into_iter().for_each(|(run, n)| *all.entry(owned(run)).or_default() -= n);
                all.retain(|_, n| *n != 0);
                all
            };
            let (one, other) = (difference(&a), difference(&b));
            let all = edits(&base, &[&a, &b]);
            prop_assert_eq!(all[0].size, one.values().map(|n| n.unsigned_abs()).sum::<u64>());
            let both = one.iter().filter_map(|(run, n)| {
                let m = other.get(run).filter(|m| m.signum() == n.signum())?;
                Some(n.unsigned_abs().min(m.unsigned_abs()))
            });
            prop_assert_eq!(shared(&all)[0][1], both.sum::<u64>());
        }

        #[test]
        fn cover_is_one_for_a_copy_and_never_leaves_its_range(base in text(), a in text(), b in text()) {
            let all = edits(&base, &[&a, &b, &a]);
            let covers = covers(&all);
            prop_assert_eq!(covers[0][2], 1.0);
            let cover = covers[0][1];
            prop_assert!((0.0..=1.0).contains(&cover));
            prop_assert!(cover < 1.0 || all[0] == all[1]);
        }

        #[test]
        fn the_order_of_the_candidates_never_shows(base in text(), mut texts in prop::collection::vec(text(), 1..7), by in 0usize..7) {
            let score = |texts: &[String]| scores(&edits(&base, &texts.iter().map(String::as_str).collect::<Vec<_>>()));
            let before = score(&texts);
            let by = by % texts.len();
            texts.rotate_left(by);
            let mut after = score(&texts);
            after.rotate_right(by);
            prop_assert_eq!(before, after);
        }
    }
}
