//! The content of a report, as data without markup.
use crate::model::candidate::Candidate;
use crate::model::changed_file::ChangedFile;
use crate::model::run::Run;
use crate::model::verdict::{Entry, Verdict};
use crate::ui::comparison;

/// The content of a run's report.
pub struct Report {
    pub run: Run,
    /// The first line of the base's message.
    pub base_subject: String,
    /// The prompt of the attempts.
    pub prompt: Option<String>,
    /// The run's verdict; `None` if the run was not judged.
    pub verdict: Option<Verdict>,
    /// The number of candidates that have been judged singly since the verdict, e.g. by
    /// `judge --candidate`.
    pub stored_outcomes: usize,
    pub candidates: Vec<ReportedCandidate>,
    /// The ends of the logs of commands that failed on the base.
    pub base_logs: Vec<LogEnd>,
    /// The agreement of the usable candidates, with one item for each candidate `c`. An item has
    /// the position of `c` in `candidates`. It also has a number (0 to 1) for each usable candidate
    /// `d`: the part of `d`'s change that `c`'s change contains, too.
    pub covers: Vec<(usize, Vec<f64>)>,
    /// The warnings that were printed while commands ran.
    pub warnings: Vec<String>,
}

/// A candidate as a report shows it.
pub struct ReportedCandidate {
    pub record: Candidate,
    /// The agent or the command that made the candidate; `None` if a person did, or if the command
    /// has not started.
    pub made_by: Option<String>,
    /// The iteration whose files are shown: the judged iteration, or else the newest one.
    pub iteration: Option<u32>,
    /// The newest iteration, if an earlier one is shown.
    pub newer: Option<u32>,
    /// The files in which the shown iteration differs from the base.
    pub files: Vec<ChangedFile>,
    pub logs: Vec<LogEnd>,
}

/// The end of a command's output.
pub struct LogEnd {
    /// The name of the command. If the command did not run on the candidate's own tree, also the
    /// tree, e.g. `test with the base's tests`.
    pub command: String,
    /// True if the command failed on the candidate.
    pub failed: bool,
    /// The last lines of the log.
    pub lines: Vec<String>,
    /// The file with the whole log.
    pub path: String,
}

impl Report {
    /// The verdict's entry of a candidate.
    pub fn entry(&self, candidate: &ReportedCandidate) -> Option<&Entry> {
        self.verdict.as_ref()?.entry(&candidate.record.candidate)
    }

    /// The positions of the candidates in `candidates`, the best first. Candidates without a rank
    /// come last.
    pub fn best_first(&self) -> Vec<usize> {
        let ranking = self.verdict.as_ref().map_or(&[][..], |v| v.decision.ranking.as_slice());
        let rank = |at: &usize| {
            let name = &self.candidates[*at].record.candidate;
            ranking.iter().position(|ranked| ranked == name).unwrap_or(usize::MAX)
        };
        let mut places: Vec<usize> = (0..self.candidates.len()).collect();
        places.sort_by_key(rank);
        places
    }

    /// The sign that the candidate has in tables.
    pub fn mark(&self, candidate: &ReportedCandidate) -> &'static str {
        let verdict = self.verdict.as_ref();
        verdict.map_or("", |verdict| comparison::mark(verdict, &candidate.record.candidate))
    }

    pub fn is_recommended(&self, candidate: &ReportedCandidate) -> bool {
        let recommended = self.verdict.as_ref().and_then(|v| v.decision.recommended.as_ref());
        recommended == Some(&candidate.record.candidate)
    }
}
