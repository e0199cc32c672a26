//! Agreement: how much an attempt's edit overlaps with those of the other attempts (DESIGN.md §3,
//! "judge").
//!
//! Attempts that solve a task tend to make the same changes, while each wrong attempt is wrong in
//! its own way.
use std::collections::{BTreeMap, HashMap};

/// Tokens in a row that make a run.
const RUN: usize = 4;

/// A run of tokens by their numbers; a shorter file's only run ends in [`NOTHING`].
type TokenRun = [u32; RUN];
const NOTHING: u32 = u32::MAX;

/// Numbers for words, the same for all edits that are compared.
#[derive(Debug, Default)]
pub struct Vocabulary(HashMap<String, u32>);

impl Vocabulary {
    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.0.get(word) {
            return *number;
        }
        let number = u32::try_from(self.0.len()).unwrap_or(NOTHING - 1);
        self.0.insert(word.to_owned(), number);
        number
    }

    /// The multiset of runs of a text: a token is a run of word characters or one other non-space
    /// character.
    fn runs(&mut self, text: &str) -> BTreeMap<TokenRun, u32> {
        let mut tokens = Vec::new();
        let mut word: Option<usize> = None;
        for (at, c) in text.char_indices() {
            let is_word = c.is_alphanumeric() || c == '_';
            match (word, is_word) {
                (None, true) => word = Some(at),
                (Some(start), false) => {
                    tokens.push(self.number(&text[start..at]));
                    word = None;
                }
                _ => {}
            }
            if !is_word && !c.is_whitespace() {
                tokens.push(self.number(&text[at..at + c.len_utf8()]));
            }
        }
        if let Some(start) = word {
            tokens.push(self.number(&text[start..]));
        }
        let mut runs = BTreeMap::new();
        if tokens.len() < RUN {
            tokens.resize(RUN, NOTHING);
        }
        for run in tokens.windows(RUN) {
            *runs.entry([run[0], run[1], run[2], run[3]]).or_default() += 1;
        }
        runs
    }
}

/// The content of a path on one side of a change.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// There is no such file.
    Missing,
    /// A text; bytes that are not UTF-8 are replaced.
    Text(&'a [u8]),
    /// A binary file or a submodule, by its object id: one run.
    Binary(&'a str),
}

/// The runs that an attempt adds and removes: a multiset, each run with its path and sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    runs: BTreeMap<(u32, bool, TokenRun), u32>,
    size: u64,
}

impl Edit {
    /// Adds how one path changes.
    pub fn add(
        &mut self,
        words: &mut Vocabulary,
        path: &[u8],
        before: Content<'_>,
        after: Content<'_>,
    ) {
        let path = words.number(&format!("/{}", path.escape_ascii()));
        let mut runs = |content: Content<'_>| match content {
            Content::Missing => BTreeMap::new(),
            Content::Text(bytes) => words.runs(&String::from_utf8_lossy(bytes)),
            Content::Binary(id) => {
                BTreeMap::from([([words.number(id), NOTHING, NOTHING, NOTHING], 1)])
            }
        };
        let before = runs(before);
        let after = runs(after);
        for (gained, these, those) in [(true, &after, &before), (false, &before, &after)] {
            for (run, count) in these {
                let more = count.saturating_sub(those.get(run).copied().unwrap_or_default());
                if more > 0 {
                    *self.runs.entry((path, gained, *run)).or_default() += more;
                    self.size += u64::from(more);
                }
            }
        }
    }

    fn overlap(&self, other: &Edit) -> u64 {
        let (small, large) =
            if self.runs.len() < other.runs.len() { (self, other) } else { (other, self) };
        small.runs.iter().map(|(run, n)| u64::from(*n.min(large.runs.get(run).unwrap_or(&0)))).sum()
    }

    /// The part of another edit that this edit covers, from 0 to 1. Runs that are missing here
    /// weigh twice as much as runs that are only here.
    pub fn cover(&self, other: &Edit) -> f64 {
        if self.size == 0 && other.size == 0 {
            return 1.0;
        }
        let shared = self.overlap(other);
        let only_here = (self.size - shared) as f64;
        let missing = (other.size - shared) as f64;
        shared as f64 / (shared as f64 + 0.5 * only_here + missing)
    }
}

/// The score of each edit among the edits of distinct trees: the mean of its cover of each other
/// edit, rounded to 1e-9. None if there is no other edit.
pub fn scores(edits: &[Edit]) -> Vec<Option<f64>> {
    let score = |at: usize| {
        // Sorted, so that the order of the candidates cannot change the last bit of the sum.
        let others = edits.iter().enumerate().filter(|(other, _)| *other != at);
        let mut covers: Vec<f64> = others.map(|(_, other)| edits[at].cover(other)).collect();
        covers.sort_by(f64::total_cmp);
        let mean = covers.iter().sum::<f64>() / covers.len() as f64;
        (!covers.is_empty()).then(|| (mean * 1e9).round() / 1e9)
    };
    (0..edits.len()).map(score).collect()
}

/// A score as a whole number, which has a total order.
pub fn comparable(score: Option<f64>) -> u64 {
    score.map_or(0, |s| (s.clamp(0.0, 1.0) * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Edits of one file `f` from one text to others.
    fn edits(base: &str, results: &[&str]) -> Vec<Edit> {
        let mut words = Vocabulary::default();
        let mut edit = |text: &&str| {
            let mut edit = Edit::default();
            edit.add(
                &mut words,
                b"f",
                Content::Text(base.as_bytes()),
                Content::Text(text.as_bytes()),
            );
            edit
        };
        results.iter().map(&mut edit).collect()
    }

    #[test]
    fn the_definition_worked_out_by_hand() {
        // Runs of `a b c d e`: abcd, bcde. Of `a b c d x`: abcd, bcdx. So E = {+bcdx, -bcde}.
        let all = edits("a b c d e", &["a b c d x", "a b c d y", "a b c d x, z"]);
        assert_eq!(all.iter().map(|e| e.size).collect::<Vec<_>>(), [2, 2, 4]);
        // Of c1 and c2 only the loss is shared: 1 / (1 + ½·1 + 1).
        assert_eq!(all[0].cover(&all[1]), 0.4);
        // c3 has all of c1 and two more: 2 / (2 + ½·2 + 0); c1 lacks two of c3's: 2 / (2 + 0 + 2).
        assert_eq!((all[2].cover(&all[0]), all[0].cover(&all[2])), (2.0 / 3.0, 0.5));
        assert_eq!(scores(&all[..2]), [Some(0.4), Some(0.4)]);
        assert_eq!(scores(&all)[0], Some(0.45));
        assert_eq!(scores(&all[..1]), [None]);
    }

    #[test]
    fn tokens_are_words_or_single_signs_and_a_short_file_is_one_run() {
        let mut words = Vocabulary::default();
        assert_eq!(words.runs("a_b1 += ü;").len(), 2, "a_b1 + = ü ;");
        assert_eq!(words.runs("x y").values().sum::<u32>(), 1);
        assert_eq!(words.runs("").values().sum::<u32>(), 1, "an empty file is there");
        let mut edit = Edit::default();
        edit.add(&mut words, b"new", Content::Missing, Content::Text(b""));
        assert_eq!(edit.size, 1);
        edit.add(&mut words, b"bin", Content::Binary("aa"), Content::Binary("bb"));
        assert_eq!(edit.size, 3, "one run lost, one gained");
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "+", "\n", "_x"]), 0..14)
            .prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn cover_is_one_for_a_copy_and_never_leaves_its_range(base in text(), a in text(), b in text()) {
            let all = edits(&base, &[&a, &b, &a]);
            prop_assert_eq!(all[0].cover(&all[2]), 1.0);
            let cover = all[0].cover(&all[1]);
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
