//! The live view of a run while its candidates work or are judged: the rows that fit, and the
//! remaining time.
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `board.json`: how the candidates of a run stand, for other processes that show the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SharedBoard {
    /// The id of the process that works on the run. When that process has ended, the other fields
    /// are out of date.
    pub process: u32,
    /// One row for each candidate that the process works on. The base has no row.
    pub rows: Vec<Row>,
    /// How many candidates are done, in words, e.g. `judging: 2 of 5 done`.
    pub summary: String,
    /// The judging that the verdict still waits for, in words, e.g. `2 to judge, 1 to confirm`.
    pub missing: String,
}

/// How a candidate stands at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// One of the candidate's commands runs.
    Running,
    /// The work on the candidate ended badly: its command or a stage failed.
    Bad,
    /// The work on the candidate ended, and a person should look at the candidate.
    Caution,
    /// The work on the candidate ended well.
    Good,
    /// None of the candidate's commands has started.
    Waiting,
}

impl Standing {
    /// The character in front of the candidate's row.
    pub fn mark(self) -> char {
        match self {
            Standing::Running => '●',
            Standing::Bad => '✗',
            Standing::Caution => '!',
            Standing::Good => '✓',
            Standing::Waiting => '·',
        }
    }
}

/// One candidate, or the base, at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// `RUN/CAND`.
    pub address: String,
    /// Whether it works, waits or is done.
    pub standing: Standing,
    /// True if the candidate would win if no further result came.
    pub leads: bool,
    /// The stage that runs, or how the work on the candidate ended.
    pub doing: String,
    /// Of a running candidate: the time that its stage has taken so far. Of a candidate that is
    /// done: the time that all its commands took.
    pub elapsed: Option<Duration>,
    /// Lines added and deleted so far.
    pub size: Option<(u64, u64)>,
    /// The last line that the candidate's command printed. It is not written to `board.json`,
    /// because other processes read it in the log.
    #[serde(skip)]
    pub last_line: Option<String>,
}

impl Row {
    /// `doing`, and whether the candidate leads.
    pub fn in_words(&self) -> String {
        if self.leads { format!("{}, leads", self.doing) } else { self.doing.clone() }
    }

    /// The character in front of the row: a star for the candidate that would win.
    pub fn mark(&self) -> char {
        if self.leads { '*' } else { self.standing.mark() }
    }
}

/// The rows that fit into `room` lines of a terminal: first the running candidates, then those that
/// are done, then those that wait. If there are more rows, one line of words stands for the last
/// rows: it counts them.
pub fn fold(mut rows: Vec<Row>, room: usize) -> (Vec<Row>, Option<String>) {
    rows.sort_by_key(|row| match row.standing {
        Standing::Running => 0,
        Standing::Waiting => 2,
        _ => 1,
    });
    if rows.len() <= room {
        return (rows, None);
    }
    let rest = rows.split_off(room.saturating_sub(1));
    let words = [
        (Standing::Running, "running"),
        (Standing::Good, "fine"),
        (Standing::Caution, "to check"),
        (Standing::Bad, "failed"),
        (Standing::Waiting, "waiting"),
    ];
    let counts = words.into_iter().filter_map(|(standing, word)| {
        let count = rest.iter().filter(|row| row.standing == standing).count();
        (count > 0).then(|| format!("{count} {word}"))
    });
    let counts: Vec<String> = counts.collect();
    (rows, Some(format!("{} more: {}", rest.len(), counts.join(", "))))
}

/// The time that is still needed to judge some trees.
///
/// * `each`: the time that one tree takes.
/// * `jobs`: the number of trees that are judged at the same time.
/// * `running`: the time that each tree in work has taken so far.
/// * `waiting`: the number of trees whose judging has not begun.
pub fn remaining(each: Duration, jobs: usize, running: &[Duration], waiting: usize) -> Duration {
    let left = running.iter().map(|elapsed| each.saturating_sub(*elapsed));
    let longest = left.clone().max().unwrap_or_default();
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    let jobs = u32::try_from(jobs.max(1)).unwrap_or(u32::MAX);
    let work = left.sum::<Duration>() + each.saturating_mul(waiting);
    longest.max(work / jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Standing::{Bad, Caution, Good, Running, Waiting};

    fn rows(standings: &[Standing]) -> Vec<Row> {
        let row = |(at, standing): (usize, &Standing)| Row {
            address: format!("1/c{}", at + 1),
            standing: *standing,
            leads: false,
            doing: String::new(),
            elapsed: None,
            size: None,
            last_line: None,
        };
        standings.iter().enumerate().map(row).collect()
    }

    fn folded(standings: &[Standing], room: usize) -> (String, Option<String>) {
        let (rows, rest) = fold(rows(standings), room);
        (rows.iter().map(|row| row.address[2..].to_owned()).collect::<Vec<_>>().join(" "), rest)
    }

    #[test]
    fn running_ones_come_first_and_the_others_keep_their_order() {
        let all = [Waiting, Good, Running, Bad, Waiting, Running];
        assert_eq!(folded(&all, 6), ("c3 c6 c2 c4 c1 c5".into(), None));
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let all = [Waiting, Good, Running, Bad, Waiting, Running, Caution];
        assert_eq!(
            folded(&all, 4),
            ("c3 c6 c2".into(), Some("4 more: 1 to check, 1 failed, 2 waiting".into()))
        );
        assert_eq!(
            folded(&all, 1),
            (
                String::new(),
                Some("7 more: 2 running, 1 fine, 1 to check, 1 failed, 2 waiting".into())
            )
        );
        assert_eq!(folded(&all, 0).0, "", "no room at all");
    }

    #[test]
    fn what_remains_is_spread_over_the_jobs_and_takes_as_long_as_its_longest_part() {
        let s = Duration::from_secs;
        assert_eq!(remaining(s(60), 2, &[s(30), s(10)], 2), s(100), "(30 + 50 + 120) / 2");
        assert_eq!(remaining(s(60), 4, &[s(30), s(10)], 0), s(50));
        assert_eq!(remaining(s(60), 1, &[s(90)], 1), s(60), "a tree takes longer than expected");
        assert_eq!(remaining(s(60), 0, &[], 0), s(0));
    }
}
