//! Reads and writes records. The records of a run and of its verdict are in a commit under
//! `refs/frites/RUN/@record`. The record of a candidate is a file, which can be rebuilt from the
//! candidate's captures.
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Cause, Error, Result};
use crate::fs::{atomic, regular};
use crate::git::objects::StoredContent;
use crate::git::refs;
use crate::git::repo::Repo;
use crate::model::FORMAT;
use crate::model::candidate::Candidate;
use crate::model::layout::{PROMPT, RUN_RECORD, VERDICT, prompt_of};
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::model::trailer::Trailer;
use crate::model::verdict::Verdict;
use crate::store::Store;

/// The errors that mean that a file is lost, damaged, or replaced by something else. The file's
/// content is then rebuilt.
pub(super) const LOST: [ErrorKind; 4] = [
    ErrorKind::NotFound,
    ErrorKind::InvalidData,
    ErrorKind::NotADirectory,
    ErrorKind::IsADirectory,
];

/// The error for a record that a newer version wrote. This version cannot change it.
pub(super) fn newer(what: &str) -> Error {
    Error::fatal(format!("{what} was written by a newer git-frites: it can be read, not changed"))
        .hint("update git-frites")
}

impl Store {
    /// All runs, oldest first.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for name in self.run_names()? {
            runs.extend(self.run(&name)?);
        }
        runs.sort_by(|a, b| {
            (a.created, a.run.number(), &a.run).cmp(&(b.created, b.run.number(), &b.run))
        });
        Ok(runs)
    }

    /// The attempt that made this commit or a commit in its history; `None` if there is no such
    /// attempt. A commit does not count as an attempt's in two cases:
    ///
    /// - A branch, tag or remote-tracking branch of the user reaches it.
    /// - It is in the history of the root of a run (see [`Run::root`]).
    ///
    /// Other refs of the user have no effect. For example, the stash reaches the commit on which it
    /// was made.
    pub fn maker_of(&self, commit: &Oid) -> Result<Option<(Run, Name)>> {
        let repo = self.repo();
        if repo.head() == Some(*commit)
            && repo.head_branch().is_some_and(|name| !name.starts_with(refs::ATTEMPT_BRANCHES))
        {
            return Ok(None);
        }
        // A record that cannot be read is left out, so that commands on other runs do not fail.
        let runs = self.run_names()?.into_iter().filter_map(|name| self.run(&name).ok().flatten());
        let runs: Vec<Run> = runs.collect();
        let Some(first) = repo.first_of_attempts(commit, runs.iter().map(Run::root))? else {
            return Ok(None);
        };
        let mut names = repo.refs_that_contain(&first, "refs/frites/")?;
        names.extend(repo.refs_that_contain(&first, refs::ATTEMPT_BRANCHES)?);
        let makers = names.iter().filter_map(|name| {
            let (run, candidate) = refs::attempt_of(name)?;
            Some((runs.iter().find(|other| other.run == run)?.clone(), candidate))
        });
        // Refs of the attempt's children reach its commits, too. The run of the attempt itself has
        // the smallest depth.
        Ok(makers.min_by_key(|(run, _)| run.depth()))
    }

    /// The names of all runs, sorted as texts. No record is read for this. That would be slow with
    /// many runs.
    pub fn run_names(&self) -> Result<Vec<Name>> {
        Ok(run_names(&self.repo.ref_names("refs/frites/")?))
    }

    /// A run's record, read from its ref; `None` if there is no such run.
    pub fn run(&self, run: &Name) -> Result<Option<Run>> {
        self.run_at(run, &refs::record(run))
    }

    /// The record of a run in the ref `name`; `None` if there is no such ref.
    pub fn run_at(&self, run: &Name, name: &RefName) -> Result<Option<Run>> {
        self.stored(run, name, RUN_RECORD)
    }

    /// A run's verdict, read from its ref; `None` if the run was never judged.
    pub fn verdict(&self, run: &Name) -> Result<Option<Verdict>> {
        self.stored(run, &refs::record(run), VERDICT)
    }

    /// The command that judges a run again in the same way as last time.
    pub fn judge_command(&self, run: &Name) -> String {
        let verdict = self.verdict(run).ok().flatten();
        verdict.map(|verdict| verdict.terms).unwrap_or_default().judge_command(run, "")
    }

    /// The record in the file `file` of the ref's tree. `None` if the ref or the file does not
    /// exist.
    pub(super) fn stored<T: DeserializeOwned>(
        &self,
        run: &Name,
        name: &RefName,
        file: &str,
    ) -> Result<Option<T>> {
        let Some(commit) = self.repo.read_ref(name)? else { return Ok(None) };
        let Some(blob) = self.files_of(commit)?.get(file).copied() else { return Ok(None) };
        let bytes = self.repo.blob(&blob)?;
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map(Some).map_err(|e| {
            if is_newer(&text) {
                let what = format!("{file} in {name} was written by a newer git-frites");
                return Error::fatal(what).because(Cause::Damaged).hint("update git-frites here");
            }
            Error::fatal(format!("{file} in {name} is damaged: {}", e.message()))
                .because(Cause::Damaged)
                .hint(format!(
                    "`git update-ref -d {name}` deletes it; the next command rebuilds run {run} from its files and captures"
                ))
        })
    }

    /// The files in the commit of a record. The list is remembered, because each git-frites command
    /// asks for several files, some of which do not exist.
    fn files_of(&self, commit: Oid) -> Result<Arc<BTreeMap<String, Oid>>> {
        let known = || self.record_files.lock();
        if let Some(files) = known().get(&commit) {
            return Ok(files.clone());
        }
        let files = Arc::new(self.repo.root_files(&commit)?);
        known().insert(commit, files.clone());
        Ok(files)
    }

    /// Writes a run's record and verdict to the run's ref, and to files. `judged` are commits with
    /// the judged trees. The ref keeps them alive.
    pub fn save_record(&self, run: &Run, verdict: Option<&Verdict>, judged: &[Oid]) -> Result<()> {
        if run.version > FORMAT || self.verdict(&run.run)?.is_some_and(|v| v.version > FORMAT) {
            return Err(newer(&format!("run {}", run.run)));
        }
        let mut files = vec![(RUN_RECORD, to_toml(run)?)];
        if let Some(verdict) = verdict {
            files.push((VERDICT, to_toml(verdict)?));
        }
        self.repo.retry_during_gc(|| {
            let texts = files
                .iter()
                .map(|(name, text)| ((*name).to_owned(), StoredContent::Bytes(text.as_bytes())));
            let mut stored: Vec<_> = texts.collect();
            let prompts = run.own_prompts().map(|(name, blob)| (prompt_of(name), blob));
            let prompts = run.prompt.iter().map(|blob| (PROMPT.to_owned(), blob)).chain(prompts);
            stored.extend(prompts.map(|(name, blob)| (name, StoredContent::Stored(*blob))));
            let name = refs::record(&run.run);
            let old = self.repo.read_ref(&name)?;
            let parts = self.parts_refs(run)?;
            let mut known: Vec<&Oid> = [&run.base].into_iter().chain(&old).collect();
            known.extend(parts.iter().map(|(_, oid)| oid));
            let commit = commit_of(&self.repo, &run.run, &stored, &known, judged)?;
            self.repo.set_ref_whole(&name, &commit, old.as_ref(), &known, "record")
        })?;
        for (name, text) in files {
            let file = self.run_dir(&run.run).file(name);
            // `save_intent` has already written the file of a new run.
            if !regular::read(&file).is_ok_and(|there| there == text.as_bytes()) {
                atomic::write(&file, text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// The commits with judged trees that the run's ref keeps alive (`judged` in
    /// [`Store::save_record`]).
    pub fn judged(&self, run: &Name) -> Result<Vec<Oid>> {
        let Some(record) = self.repo.read_ref(&refs::record(run))? else { return Ok(Vec::new()) };
        let record = self.repo.commit(&record)?;
        let lines = record.message.lines();
        let previous: Vec<&str> = lines.filter_map(|line| Trailer::Previous.value(line)).collect();
        // The first parent is the base. A record that was fetched, or made by hand, may have no
        // parents.
        let others = record.parents.iter().skip(1);
        Ok(others.filter(|parent| !previous.contains(&parent.as_str())).copied().collect())
    }

    /// Writes a candidate's record. The caller holds the candidate's lock.
    pub fn save_candidate(&self, candidate: &Candidate) -> Result<()> {
        require_own_format(candidate)?;
        write_toml(&self.candidate_dir(&candidate.run, &candidate.candidate).record(), candidate)
    }
}

/// Fails if a newer version wrote this record, so that it cannot be changed.
pub fn require_own_format(candidate: &Candidate) -> Result<()> {
    match candidate.version > FORMAT {
        true => Err(newer(&candidate.address())),
        false => Ok(()),
    }
}

/// True if a newer version wrote this record.
pub(super) fn is_newer(record: &str) -> bool {
    let table = toml::from_str::<toml::Table>(record).unwrap_or_default();
    table.get("version").and_then(toml::Value::as_integer) > Some(i64::from(FORMAT))
}

/// The names of the runs that have a record among these refs.
pub fn run_names(refs: &[RefName]) -> Vec<Name> {
    let name =
        |full: &RefName| full.strip_prefix("refs/frites/")?.strip_suffix("/@record")?.parse().ok();
    refs.iter().filter_map(name).collect()
}

/// The message of a record's commit, which replaces the commits `previous`.
pub(super) fn message_of<'a>(run: &Name, previous: impl IntoIterator<Item = &'a Oid>) -> String {
    let previous = previous.into_iter().map(|oid| format!("\n{}", Trailer::Previous.line(oid)));
    let previous: String = previous.collect();
    format!("frites: record of run {run}\n\n{}{previous}", Trailer::Run.line(run))
}

/// Stores the files of a record as a commit. `judged` are commits of judged trees. `known` are the
/// parents that refs reach already: the run's base, and the records and outcomes that the new
/// commit replaces. Because they are parents, refs only move forward, and a plain `git push` can
/// push them.
pub(super) fn commit_of(
    repo: &Repo,
    run: &Name,
    files: &[(String, StoredContent<'_>)],
    known: &[&Oid],
    judged: &[Oid],
) -> Result<Oid> {
    let message = message_of(run, known.iter().skip(1).copied());
    let judged: Vec<&Oid> = judged.iter().collect();
    let parents = [&known[..1], &judged, &known[1..]].concat();
    repo.store(|objects| objects.add_files(files, parents.iter().copied(), &message))
}

pub(super) fn to_toml<T: Serialize>(record: &T) -> Result<String> {
    toml::to_string(record)
        .map_err(|e| Error::internal(format!("a record cannot be written as TOML: {e}")))
}

/// Writes a record to a TOML file.
pub fn write_toml<T: Serialize>(path: &Path, record: &T) -> Result<()> {
    atomic::write(path, to_toml(record)?.as_bytes())
}

/// Reads a record from a TOML file; `None` if the file does not exist or is damaged.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Option<T> {
    toml::from_str(&regular::read_text(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::agent_stop::AgentFault;
    use crate::model::base_tests::BaseTestsResult;
    use crate::model::blast::Blast;
    use crate::model::candidate::{CommandEnd, State};
    use crate::model::cross::{CrossResult, CrossTest, Proof, ProofKind};
    use crate::model::flag::FlagKind;
    use crate::model::oracle::{CommandLine, OracleCommand};
    use crate::model::outcome::{Outcome, Results, Stage, StageResult};
    use crate::model::rank::Rank;
    use crate::model::run::{Addition, GivenLimits, Parent};
    use crate::model::separation::Separation;
    use crate::model::terms::{CommandSettings, JudgeSettings, Terms};
    use crate::model::test_report::TestReport;
    use crate::model::usage::{Usage, UsageSum};
    use crate::model::verdict::{Decision, DecisionKind, Effort, Entry, OtherPick};
    use jiff::Timestamp;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    fn oid() -> impl Strategy<Value = Oid> {
        "[0-9a-f]{40}".prop_map(|hex| Oid::parse(&hex).expect("full"))
    }

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn time() -> impl Strategy<Value = Timestamp> {
        (Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond())
            .prop_map(|n| Timestamp::from_nanosecond(n).expect("in range"))
    }

    fn run() -> impl Strategy<Value = Run> {
        let texts =
            (vec(any::<String>(), 0..3), option::of(any::<String>()), option::of(any::<String>()));
        (oid(), time(), texts, option::of((oid(), any::<u32>(), any::<Option<u32>>()))).prop_map(
            |(base, created, (command, task, worktree_root), parent)| Run {
                version: FORMAT,
                run: name("fix"),
                base,
                created,
                candidates: vec![name("c1"), name("c2")],
                limits: GivenLimits { timeout: Some(5400), idle_timeout: None },
                arguments: command.clone(),
                merge_into: Some(RefName::new("refs/heads/main")),
                command,
                prompt: None,
                task,
                worktree_root,
                parent: parent.map(|(root, depth, iteration)| Parent {
                    run: name("1"),
                    candidate: name("c1"),
                    iteration,
                    root,
                    depth,
                }),
                agents: Default::default(),
                synthesis: Default::default(),
                added: [(
                    name("c2"),
                    Addition { seed: Some(base), prompt: None, limits: Default::default() },
                )]
                .into(),
                tasks: [(name("c2"), "GH-1".to_owned())].into(),
            },
        )
    }

    fn candidate() -> impl Strategy<Value = Candidate> {
        let words = (option::of(any::<String>()), option::of(any::<String>()), option::of(oid()));
        let ends =
            (any::<Option<i32>>(), any::<Option<i32>>(), option::of(time()), option::of(time()));
        (any::<u32>(), any::<Option<u16>>(), any::<bool>(), words, ends).prop_map(
            |(
                index,
                port,
                flag,
                (reason, landing_branch, landing_commit),
                (exit_code, signal, started, ended),
            )| {
                let fresh = Candidate::new(&name("fix"), &name("c1"), index, State::Failed);
                let (kept, leaky, again, remaking, cleaned) = (flag, flag, flag, flag, flag);
                let ends = Candidate {
                    end: CommandEnd { exit_code, signal, ..CommandEnd::default() },
                    started,
                    ended,
                    landing_time: ended,
                    reason,
                    ..fresh
                };
                Candidate {
                    port,
                    kept,
                    leaky,
                    again,
                    remaking,
                    cleaned,
                    landing_branch: landing_branch.map(RefName::new),
                    landing_commit,
                    ..ends
                }
            },
        )
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let words = (option::of(any::<String>()), vec(any::<String>(), 0..3), any::<String>());
        // TOML has no integers larger than `i64::MAX`.
        let numbers = (0..=i64::MAX as u64, any::<u32>(), 0.0..1e300f64, any::<i32>());
        (option::of(oid()), words, numbers).prop_map(
            |(tree, (problem, names, reason), (lines, index, seconds, code))| {
                let report = TestReport {
                    total: lines,
                    failing: names.clone(),
                    problem: problem.clone(),
                    ..TestReport::default()
                };
                let failed = StageResult::new(Stage::Build, seconds, Outcome::Failed { code });
                let failed = StageResult { tests: Some(report), changed: names.clone(), ..failed };
                let ended = StageResult::new(
                    Stage::Test,
                    0.0,
                    Outcome::CouldNotStart { reason: reason.clone() },
                );
                Entry {
                    candidate: name("c1"),
                    index,
                    state: State::Open,
                    maker: problem.clone(),
                    end: CommandEnd {
                        exit_code: Some(code),
                        signal: Some(code),
                        resets: problem.clone(),
                        fault: problem.as_ref().map(|_| AgentFault::NoNetwork),
                    },
                    not_started: code < 0,
                    stopped: code < 0,
                    iteration: Some(index),
                    judged_tree: tree,
                    tree,
                    blast: Blast { lines, files: lines },
                    agreement: Some(seconds),
                    problem,
                    same_as: None,
                    untested: Some(reason.clone()),
                    drew_on: vec![name("c2")],
                    dropped: names,
                    flags: vec![FlagKind::TestsSkipped { marker: reason.clone() }.at(reason)],
                    results: Results(vec![failed, ended.clone()]),
                    stale: None,
                    base_tests: Some(BaseTestsResult {
                        tree,
                        results: Results(vec![ended]),
                        ..BaseTestsResult::default()
                    }),
                    usage: Some(UsageSum {
                        known: Usage {
                            tokens_in: Some(lines),
                            tokens_out: None,
                            cost: Some(seconds),
                        },
                        unknown_tokens: index,
                        unknown_cost: 0,
                    }),
                    separation: Some(Separation::SharedHome),
                    cross: Some(CrossResult {
                        score: Some(seconds),
                        tests: vec![CrossTest { passes: vec![name("c2")], ..CrossTest::default() }],
                        ..CrossResult::default()
                    }),
                    proof: Some(Proof { shows: ProofKind::Change, tests: vec!["a".to_owned()] }),
                }
            },
        )
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        (oid(), time(), any::<String>(), vec(any::<String>(), 0..3), vec(entry(), 0..3)).prop_map(
            |(base, judged, rationale, argv, candidates)| Verdict {
                version: FORMAT,
                run: name("fix"),
                base,
                judged,
                round: 3,
                decision: Decision {
                    decision: DecisionKind::NearMiss,
                    recommended: None,
                    ranking: vec![name("c1")],
                    passed: Vec::new(),
                    own_tests: Vec::new(),
                    failed: vec![name("c1")],
                    skipped: Vec::new(),
                    not_run: Vec::new(),
                    undecided: vec![name("c2")],
                    other_picks: vec![OtherPick {
                        rank: Rank::Agreement,
                        candidate: name("c3"),
                        figures: rationale.clone(),
                    }],
                    rationale: rationale.clone(),
                },
                no_synthesis: Some(rationale.clone()),
                effort: Effort::default(),
                costs: None,
                terms: Terms {
                    seeds: Some(rationale.clone()),
                    settings: JudgeSettings {
                        protect: argv.clone(),
                        commands: CommandSettings {
                            junit: Some(rationale.clone()),
                            ..CommandSettings::default()
                        },
                        ..JudgeSettings::default()
                    },
                    oracle: vec![
                        OracleCommand {
                            stage: Stage::Build,
                            command: CommandLine::Argv(argv),
                            source: rationale.clone(),
                        },
                        OracleCommand {
                            stage: Stage::Test,
                            command: CommandLine::Shell(rationale),
                            source: String::new(),
                        },
                    ],
                },
                baseline: None,
                candidates,
            },
        )
    }

    /// Asserts that a record reads back unchanged. Also asserts that a damaged text either cannot
    /// be read, or is another record that reads back unchanged.
    fn reads_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        record: &T,
        (at, cut, new): (prop::sample::Index, usize, String),
    ) -> std::result::Result<(), TestCaseError> {
        let text = to_toml(record).expect("written");
        let read = toml::from_str::<T>(&text);
        prop_assert_eq!(read.as_ref(), Ok(record));
        let mut damaged: Vec<char> = text.chars().collect();
        let at = at.index(damaged.len());
        let end = (at + cut).min(damaged.len());
        damaged.splice(at..end, new.chars());
        if let Ok(read) = toml::from_str::<T>(&String::from_iter(damaged)) {
            let again = to_toml(&read).expect("written");
            prop_assert_eq!(
                to_toml(&toml::from_str::<T>(&again).expect("read")).expect("written"),
                again
            );
        }
        Ok(())
    }

    fn damage() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
        (any::<prop::sample::Index>(), 0usize..5, "[0-9a-f\"'=\\[\\]\n\u{0}é.-]{0,3}")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn a_run_reads_back(record in run(), damage in damage()) {
            reads_back(&record, damage)?;
        }

        #[test]
        fn a_candidate_reads_back(record in candidate(), damage in damage()) {
            reads_back(&record, damage)?;
        }

        #[test]
        fn a_verdict_reads_back(record in verdict(), damage in damage()) {
            reads_back(&record, damage)?;
        }
    }
}
