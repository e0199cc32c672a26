//! The second judging of a candidate: its change with the base's tests and commands put back.
//!
//! If a candidate changes the tests or commands that judge it, its pass proves little. If it also
//! passes with exactly those changes reverted, that is evidence for it. Suspicious changes alone
//! are no evidence against it.
//!
//! There is no complete list of the files that can switch off tests. So every changed file that is
//! not source is put back, too. But such a file may be data of the product, and its change may be
//! wrong. With the base's version in its place, this fault would be hidden. So the source is also
//! judged with each combination of such files, while the others stay reverted.
use serde::{Deserialize, Serialize};

use crate::model::count::some_of;
use crate::model::flag::{Flag, FlagKind};
use crate::model::oid::Oid;
use crate::model::outcome::Results;
use crate::model::path::quoted;

/// `oracle.base-tests`: the candidates that are judged a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseTests {
    /// These candidates:
    /// * each candidate that changes existing tests, a file that decides which commands run, or
    ///   another file that is not source;
    /// * the candidate that would be recommended, if it adds tests.
    #[default]
    Changed,
    /// The candidates of `Changed`, and all candidates that only add tests. The added tests are
    /// taken out.
    Always,
    /// No candidate.
    Never,
}

/// The words before the path of a file if only its mode is put back.
pub const MODE_OF: &str = "mode of ";

/// The words before the path of a file if only a part of it is put back: the part that decides
/// which commands run.
pub const PART_OF: &str = "deciding part of ";

/// The word before the path of a changed submodule.
pub const SUBMODULE: &str = "submodule ";

/// The second judging of a candidate, with the base's tests and commands put back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct BaseTestsResult {
    /// The first tree that is judged; `None` if it cannot be made.
    pub tree: Option<Oid>,
    /// The paths of the files that are put back to the base's version. [`PART_OF`] is before the
    /// path if only the part that decides which commands run is put back. [`MODE_OF`] is before it
    /// if only the mode is put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// The added paths that are taken out, and `the tests in PATH` for tests that were added to
    /// source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_out: Vec<String>,
    /// The entries of `put_back` and `taken_out` that are of unknown kind: they are not source, and
    /// their names are neither those of tests nor of files that decide which commands run. A
    /// submodule has [`SUBMODULE`] before its path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_source: Vec<String>,
    /// The trees that are judged after the first, in order. Each has the candidate's source, and
    /// some of its other files: files that are not source, or that decide which commands run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<TreeBeside>,
    /// True if the candidate changes only tests, files that decide which commands run, and
    /// documents. If these files are put back, the candidate equals the base, so a pass of the
    /// first tree says nothing about the candidate.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_commands: bool,
    /// True if the candidate only adds tests. It is then judged a second time only if it would be
    /// recommended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub if_first: bool,
    /// The reason why the candidate is not fully compared with the base, and therefore not
    /// verified. If a change is inseparable from others, there is no tree at all. If too many files
    /// would have to be judged beside the source, only the first tree is judged.
    pub problem: Option<String>,
    /// The results of the commands on each of the trees, in order, up to the first tree that did
    /// not pass. Empty if the commands were not run, because the candidate itself failed or was not
    /// run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Results,
}

/// A tree with the source of a candidate, and some of its other files: files that are not source,
/// or that decide which commands run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeBeside {
    /// The files that are added to the source, in words: their paths, separated by `, `. If there
    /// are many, only the first are named.
    pub path: String,
    /// The tree with the source and these files.
    pub tree: Oid,
}

impl BaseTestsResult {
    /// True if every command ran on every tree and exited 0.
    pub fn passed(&self) -> bool {
        self.problem.is_none() && self.results.passed()
    }

    /// True if the second judging was run, and the candidate did not pass it.
    pub fn failed(&self) -> bool {
        !self.results.is_empty() && !self.results.passed()
    }

    /// True if the candidate was not fully compared with the base, and did not fail with the base's
    /// tests.
    pub fn is_not_compared(&self) -> bool {
        self.problem.is_some() && !self.failed()
    }

    /// The files without which the candidate fails, in words. `None` if it does not fail on the
    /// first tree. Also `None` if a file that was put back is a test, or decides which commands
    /// run.
    pub fn needs(&self) -> Option<String> {
        let is_first = self.failed() && self.failed_beside().is_none();
        let mut undone = self.put_back.iter().chain(&self.taken_out);
        let are_others = undone.all(|path| self.no_source.contains(path));
        (is_first && are_others && !self.no_source.is_empty()).then(|| some_of(&self.no_source))
    }

    /// True if the candidate's own tree may run other tests than the base. This is so if tests of
    /// the base are put back. It is also so if a change that may decide which commands run cannot
    /// be put back without other changes. The candidate's `flags` name the files that decide which
    /// commands run.
    pub fn may_drop_tests(&self, flags: &[Flag]) -> bool {
        let deciders = flags.iter().filter(|flag| flag.kind == FlagKind::OracleChanged);
        let deciders: Vec<String> = deciders.map(|flag| quoted(flag.path.as_bytes())).collect();
        let mut tests = self.put_back.iter().filter(|path| {
            !self.no_source.contains(path)
                && !deciders.contains(path)
                && ![PART_OF, MODE_OF].iter().any(|words| path.starts_with(words))
        });
        let is_inseparable = self.problem.is_some() && self.tree.is_none();
        is_inseparable || tests.next().is_some()
    }

    /// The number of trees on which commands ran.
    pub fn judged_trees(&self) -> usize {
        let next = self.results.windows(2).filter(|pair| pair[1].stage <= pair[0].stage).count();
        if self.results.is_empty() { 0 } else { next + 1 }
    }

    /// True if the candidate only adds tests, and its second judging has not been needed so far.
    pub fn is_pending(&self) -> bool {
        self.if_first && self.problem.is_none() && self.results.is_empty()
    }

    /// The trees that are judged, in order.
    pub fn trees(&self) -> impl Iterator<Item = &Oid> {
        self.trees_beside().map(|(tree, _)| tree)
    }

    /// The trees that are judged, in order, each with the files beside the source
    /// ([`TreeBeside::path`]).
    pub fn trees_beside(&self) -> impl Iterator<Item = (&Oid, &str)> {
        let first = self.tree.iter().map(|tree| (tree, ""));
        first.chain(self.alone.iter().map(|beside| (&beside.tree, beside.path.as_str())))
    }

    /// For the tree from which the result at this position comes: the files beside the source
    /// ([`TreeBeside::path`]). `None` for the first tree, which has only the source.
    pub fn beside(&self, result: usize) -> Option<&str> {
        // The results of each tree begin with the first stage again, so the stage rises except
        // between two trees.
        let before = self.results.get(..=result)?.windows(2);
        let tree = before.filter(|pair| pair[1].stage <= pair[0].stage).count().checked_sub(1)?;
        self.alone.get(tree).map(|beside| beside.path.as_str())
    }

    /// The files beside the source ([`TreeBeside::path`]) in the tree that did not pass. `None` if
    /// that was the first tree, which has only the source. Also `None` if every tree passed.
    pub fn failed_beside(&self) -> Option<&str> {
        let failed = self.results.iter().position(|result| !result.outcome.passed())?;
        self.beside(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::{Outcome, Stage, StageResult};

    #[test]
    fn the_file_beside_the_source_where_it_fails_is_known() {
        let beside = |path: &str| TreeBeside {
            path: path.to_owned(),
            tree: Oid::parse(&"a".repeat(40)).expect("an id"),
        };
        let second = |ends: &[bool]| BaseTestsResult {
            alone: vec![beside("a"), beside("b")],
            results: Results(
                ends.iter()
                    .zip([Stage::Build, Stage::Test].iter().cycle())
                    .map(|(passed, stage)| {
                        let outcome =
                            if *passed { Outcome::Passed } else { Outcome::Failed { code: 1 } };
                        StageResult::new(*stage, 0.0, outcome)
                    })
                    .collect(),
            ),
            ..BaseTestsResult::default()
        };
        let cases: [(&[bool], Option<&str>); 5] = [
            (&[true, false], None),
            (&[true, true, false], Some("a")),
            (&[true, true, true, false], Some("a")),
            (&[true, true, true, true, true, false], Some("b")),
            (&[true, true, true, true, true, true], None),
        ];
        for (ends, expected) in cases {
            assert_eq!(second(ends).failed_beside(), expected, "{ends:?}");
        }
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read() {
        let old = "tree = '0123456789012345678901234567890123456789'\nput-back = ['Makefile']\n";
        let second: BaseTestsResult = toml::from_str(old).expect("it is read");
        assert_eq!((second.trees().count(), second.is_pending()), (1, false));
    }
}
