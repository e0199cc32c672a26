//! The logs of commands: the newest logs of a candidate, of a base or of landed trees, and the logs
//! of earlier rounds and judgings. Logs of a candidate are kept together with the iteration that
//! they belong to.
//!
//! An attempt can write to these directories. So no link is followed, and no decision depends on a
//! log.
use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::fs::regular;
use crate::model::FORMAT;
use crate::model::layout::{
    AGENT, BASE_TESTS, LANDED_TREES, LogDir, PROMPT, command_of_log, log_name,
};
use crate::model::name::Name;
use crate::model::outcome::Stage;
use crate::process::running::{self, Running};
use crate::store::candidate::CandidateRef;
use crate::store::records::{read_toml, write_toml};
use crate::store::{Store, make_real_directory};

/// The names of all commands that have a log.
const COMMANDS: [&str; 5] = [AGENT, "setup", "build", "lint", "test"];

/// `logs.toml`: the iterations to which the newest logs belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LogRecord {
    version: u32,
    /// The iteration with which the last round ended; 0 if nothing was captured.
    round: Option<u32>,
    /// The iteration that was judged last; `None` if none was judged since the last round.
    judging: Option<u32>,
}

/// The logs of one candidate, of a run's base, or of the trees that a run has landed.
#[derive(Clone, Debug)]
pub struct LogPlace {
    directory: LogDir,
    /// The iterations of the newest logs. `None` if these are not logs of a candidate. Then they
    /// have no iterations.
    iterations: Option<LogRecord>,
}

/// A log of a command.
#[derive(Clone, Debug)]
pub struct KeptLog {
    /// The iteration to which the log belongs; `None` if it is not a candidate's log.
    pub iteration: Option<u32>,
    /// The file of the log.
    pub path: PathBuf,
}

/// The logs of one judging of a tree.
#[derive(Clone, Debug)]
pub struct JudgingLogs {
    place: LogPlace,
    /// The iteration that is judged; `None` if the judged tree belongs to no iteration.
    iteration: Option<u32>,
    /// True for logs of the second judging, with the base's tests.
    second: bool,
}

/// A directory to which commands write their logs, and in which a running command is marked.
#[derive(Clone, Debug)]
pub struct LogDirectory {
    /// The address for which the commands run: `RUN/CAND`, `RUN/@base`, or `RUN` for hooks.
    pub address: String,
    pub directory: LogDir,
    /// True if the logs are those of the second judging, with the base's tests.
    second: bool,
}

impl LogDirectory {
    /// The two directories with logs of one candidate or base: for the first judging, and for the
    /// second.
    pub fn both(address: &str, place: LogDir) -> [LogDirectory; 2] {
        let second = place.base_tests();
        [(place, false), (second, true)].map(|(directory, second)| LogDirectory {
            address: address.to_owned(),
            directory,
            second,
        })
    }

    /// The name for a command whose log is in this directory. For example, `test`, or `base's test`
    /// in the second judging.
    pub fn in_words(&self, command: &str) -> String {
        if self.second { format!("base's {command}") } else { command.to_owned() }
    }

    /// The running command that writes a log to this directory; `None` if none runs.
    pub fn running(&self) -> Option<Running> {
        let running = running::running(self.directory.path())?;
        Some(Running { what: self.in_words(&running.what), ..running })
    }
}

impl Store {
    /// Every directory to which commands of a run write logs, sorted. This includes directories of
    /// candidates that are not in the run's record yet.
    pub fn log_directories(&self, run: &Name) -> Vec<LogDirectory> {
        let own = self.run_dir(run).logs();
        let entries = fs::read_dir(own.path()).into_iter().flatten().flatten();
        let mut entries: Vec<fs::DirEntry> = entries.collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut found =
            vec![LogDirectory { address: run.to_string(), directory: own, second: false }];
        for entry in entries {
            let address = format!("{run}/{}", entry.file_name().display());
            found.extend(LogDirectory::both(&address, LogDir::at(entry.path())));
        }
        found
    }

    /// The logs of the run's base.
    pub fn base_logs(&self, run: &Name) -> LogPlace {
        LogPlace { directory: self.run_dir(run).base(), iterations: None }
    }

    /// The logs of commands on a tree over which test files were laid. The tree belongs to the
    /// candidate `of`, or to the base if `of` is `None`. The test files belong to `author`. `@all`
    /// stands for several authors.
    pub fn cross_logs(&self, run: &Name, of: Option<&Name>, author: &str) -> LogPlace {
        let directory = self.run_dir(run);
        let own = of.map_or(directory.base(), |candidate| directory.candidate(candidate).logs());
        LogPlace { directory: own.cross(author), iterations: None }
    }

    /// The arguments with which `git frites output` shows this log; `None` if it cannot show it.
    pub fn output_of(&self, log: &Path) -> Option<String> {
        let path = log.strip_prefix(self.dir.runs()).ok()?;
        let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        let ([run, place, file] | [run, place, BASE_TESTS, file]) = parts.as_slice() else {
            return None;
        };
        let command = COMMANDS.iter().find(|command| log_name(command) == **file)?;
        (*place != LANDED_TREES).then(|| format!("{run}/{place} {command}"))
    }

    /// The logs of the trees that landings of the run have made and judged.
    pub fn landing_logs(&self, run: &Name) -> LogPlace {
        LogPlace { directory: self.run_dir(run).landed_trees(), iterations: None }
    }

    /// The logs of commands on the targets of landings, before the landings.
    pub fn target_logs(&self, run: &Name) -> LogPlace {
        LogPlace { directory: self.run_dir(run).landed_trees().target(), iterations: None }
    }
}

impl CandidateRef<'_> {
    /// The candidate's logs.
    pub fn logs(self) -> LogPlace {
        let directory = self.directory().logs();
        let iterations = Some(read_toml(&directory.record()).unwrap_or_default());
        LogPlace { directory, iterations }
    }
}

impl LogPlace {
    /// The newest log of a command: `agent`, `setup`, `build`, `lint` or `test`.
    pub fn newest(&self, command: &str) -> PathBuf {
        self.directory.log(command)
    }

    /// The logs of a command, newest first. If an iteration is given, only its logs.
    pub fn all(&self, command: &str, iteration: Option<u32>) -> Vec<KeptLog> {
        let now = self.iterations.as_ref().and_then(|record| match command {
            AGENT => record.round,
            _ => record.judging.or(record.round),
        });
        let mut found = vec![KeptLog { iteration: now, path: self.newest(command) }];
        let here = &self.directory;
        let kinds = match command {
            AGENT => vec![here.rounds()],
            "setup" => vec![here.judgings(), here.rounds()],
            _ => vec![here.judgings()],
        };
        for kind in kinds {
            let mut kept = kept_in(&kind);
            kept.sort_by_key(|(numbers, _)| Reverse(*numbers));
            let numbered = self.iterations.is_some();
            found.extend(kept.into_iter().map(|((number, _), directory)| {
                let iteration = numbered.then_some(number);
                KeptLog { iteration, path: directory.log(command) }
            }));
        }
        found.retain(|log| {
            is_there(&log.path) && iteration.is_none_or(|one| log.iteration == Some(one))
        });
        found
    }

    /// The name of the running command that writes a log here; `None` if none runs.
    pub fn running(&self) -> Option<&'static str> {
        let places = [self.directory.clone(), self.directory.base_tests()];
        let running = places.iter().find_map(|place| running::running(place.path()))?;
        COMMANDS.into_iter().find(|command| *command == running.what)
    }

    /// The command whose log tells how the candidate or the base ended. This is the last command
    /// that ran when it was judged, or else the attempt's own command. If no iteration is given,
    /// kept logs of earlier iterations are used only if there are no newest logs.
    pub fn telling(&self, iteration: Option<u32>) -> Option<&'static str> {
        let judged = self.iterations.is_none_or(|record| record.judging.is_some());
        let choose = |has: &dyn Fn(&str) -> bool| {
            let agent = has(AGENT).then_some(AGENT);
            let stage =
                COMMANDS.into_iter().rev().find(|command| *command != AGENT && has(command));
            match stage {
                // This is the setup of the worktree. It ran before the attempt's command.
                Some("setup") if !judged => agent.or(stage),
                Some(_) => stage,
                None => agent,
            }
        };
        let is_kept = |command: &str| !self.all(command, iteration).is_empty();
        match iteration {
            Some(_) => choose(&is_kept),
            None => choose(&|command| is_there(&self.newest(command))).or(choose(&is_kept)),
        }
    }

    /// The directory with the logs of the last judging of this iteration; `None` if it was not
    /// judged.
    pub fn directory_of_judging(&self, iteration: Option<u32>) -> Option<LogDir> {
        if self.iterations.is_none_or(|now| now.judging == iteration) {
            return Some(self.directory.clone());
        }
        let kept = kept_in(&self.directory.judgings()).into_iter();
        let of_this = kept.filter(|((number, _), _)| Some(*number) == iteration);
        of_this.max_by_key(|(numbers, _)| *numbers).map(|(_, directory)| directory)
    }

    /// The log of a stage's command from the last judging of this iteration, even if a later round
    /// has begun since. If `second` is true, it is the log for the tree with the base's tests.
    /// Otherwise it is the log for the candidate's own tree.
    pub fn of_judging(&self, iteration: Option<u32>, stage: Stage, second: bool) -> PathBuf {
        let directory = self.directory_of_judging(iteration);
        let directory = directory.as_ref().unwrap_or(&self.directory);
        own_or_with_base_tests(directory, second).log(stage.as_str())
    }

    /// The logs for a judging of this iteration.
    pub fn judging(self, iteration: Option<u32>) -> JudgingLogs {
        JudgingLogs { place: self, iteration, second: false }
    }

    /// Moves away the logs and the prompt of the previous round, and the logs of its judging,
    /// because a new round would overwrite them. `anew` is true if the worktree is made and set up
    /// again.
    pub fn begin_round(&self, anew: bool) -> Result<()> {
        let Some(record) = self.iterations else { return Ok(()) };
        if record.judging.is_some() {
            self.keep_judging(&record)?;
        }
        let mut files = vec![log_name(AGENT), PROMPT.to_owned()];
        if anew {
            files.push(log_name(Stage::Setup.as_str()));
        }
        self.keep(&self.directory.rounds(), &files, record.round)?;
        if record.round.is_none() && record.judging.is_none() {
            return Ok(());
        }
        self.record(LogRecord { version: FORMAT, ..LogRecord::default() })
    }

    /// The iteration with which the last round ended. 0 if nothing was captured, `None` if it is
    /// not known.
    pub fn round(&self) -> Option<u32> {
        self.iterations?.round
    }

    /// Records the iteration with which a round ended; `None` if nothing was captured.
    pub fn end_round(&self, iteration: Option<u32>) -> Result<()> {
        let record = self.iterations.unwrap_or_default();
        let round = Some(iteration.unwrap_or_default());
        self.record(LogRecord { version: FORMAT, round, ..record })
    }

    fn record(&self, record: LogRecord) -> Result<()> {
        let file = self.directory.record();
        if read_toml(&file) == Some(record) {
            return Ok(());
        }
        write_toml(&file, &record)
    }

    /// Moves the newest logs of judging to the kept ones.
    fn keep_judging(&self, record: &LogRecord) -> Result<()> {
        let mut files = judging_files(self.directory.path());
        files.push(BASE_TESTS.to_owned());
        self.keep(&self.directory.judgings(), &files, record.judging)
    }

    /// Moves the existing files of `files` to the first free directory for their iteration. `kind`
    /// is the directory of kept rounds or of kept judgings.
    fn keep(&self, kind: &Path, files: &[String], iteration: Option<u32>) -> Result<()> {
        let directory = self.directory.path();
        let here: Vec<&String> =
            files.iter().filter(|name| is_there(&directory.join(name))).collect();
        if here.is_empty() {
            return Ok(());
        }
        make_real_directory(kind)?;
        let is_free =
            |directory: &PathBuf| here.iter().all(|name| !is_there(&directory.join(name)));
        let iteration = self.iterations.map(|_| iteration.unwrap_or_default());
        let numbered = |n: u32| kind.join(directory_name(iteration, n));
        let place = (1..).map(numbered).find(is_free).unwrap_or_else(|| numbered(u32::MAX));
        make_real_directory(&place)?;
        for name in here {
            let from = directory.join(name);
            let to = place.join(name);
            match fs::rename(&from, &to) {
                // Another judging of this candidate has moved the file in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !is_there(&from) => {}
                moved => moved.context(|| {
                    format!("could not move '{}' to '{}'", from.display(), to.display())
                })?,
            }
        }
        Ok(())
    }
}

impl JudgingLogs {
    /// The logs for the second judging of the same candidate or base, with the base's tests.
    #[must_use]
    pub fn with_base_tests(&self) -> JudgingLogs {
        JudgingLogs { second: true, ..self.clone() }
    }

    /// The directory to which this judging writes its logs.
    pub fn directory(&self) -> PathBuf {
        own_or_with_base_tests(&self.place.directory, self.second).path().to_owned()
    }

    /// The directory in which the logs are now. A later judging may have moved them. `None` if they
    /// no longer exist.
    pub fn directory_now(&self) -> Option<PathBuf> {
        let read = |then| read_toml(&self.place.directory.record()).unwrap_or(then);
        let place = LogPlace { iterations: self.place.iterations.map(read), ..self.place.clone() };
        let directory = place.directory_of_judging(self.iteration)?;
        Some(own_or_with_base_tests(&directory, self.second).path().to_owned())
    }

    /// The log of a stage's command.
    pub fn log(&self, stage: Stage) -> PathBuf {
        own_or_with_base_tests(&self.place.directory, self.second).log(stage.as_str())
    }

    /// Makes the directory for the logs, and moves away the logs that an earlier judging left
    /// there.
    pub fn begin(&self) -> Result<()> {
        let place = &self.place;
        let record = place.iterations.unwrap_or_default();
        let here = &place.directory;
        match (self.second, place.iterations) {
            (true, _) => place.keep(&here.judgings(), &[BASE_TESTS.to_owned()], record.judging)?,
            // No judging has left logs here. So a log of a setup belongs to the setup of the
            // worktree.
            (false, Some(LogRecord { judging: None, round, .. })) => {
                place.keep(&here.rounds(), &judging_files(here.path()), round)?;
            }
            (false, _) => place.keep_judging(&record)?,
        }
        let directory = self.directory();
        fs::create_dir_all(&directory).could_not("make", &directory)?;
        match place.iterations {
            Some(before) => place.record(LogRecord {
                version: FORMAT,
                judging: Some(self.iteration.unwrap_or_default()),
                ..before
            }),
            None => Ok(()),
        }
    }

    /// Copies the logs in the directory `other` to this one, unless the same logs are already here.
    /// It is not an error if a log cannot be copied.
    pub fn copy_from(&self, other: &Path) -> Result<()> {
        let here = self.directory();
        let content = |directory: &Path| -> Vec<(String, Option<Vec<u8>>)> {
            let files = judging_files(directory).into_iter();
            files.map(|name| (name.clone(), regular::read(&directory.join(name)).ok())).collect()
        };
        let is_recorded = self.place.iterations.is_none_or(|now| now.judging == self.iteration);
        if is_recorded && content(&here) == content(other) {
            return Ok(());
        }
        self.begin()?;
        for name in judging_files(other) {
            let _ = reflink_copy::reflink_or_copy(other.join(&name), here.join(&name));
        }
        Ok(())
    }
}

/// The log of a command on the tree with the base's tests. `log` is the log of the same command on
/// the candidate's own tree. `None` if the command did not run with the base's tests.
pub fn with_base_tests(log: &Path) -> Option<PathBuf> {
    let second = LogDir::at(log.parent()?.to_owned()).base_tests();
    let second = second.path().join(log.file_name()?);
    second.is_file().then_some(second)
}

fn own_or_with_base_tests(place: &LogDir, with_base_tests: bool) -> LogDir {
    if with_base_tests { place.base_tests() } else { place.clone() }
}

/// The names of the logs of judging in a directory, sorted, including the logs of earlier tries.
/// Only regular files are included, because copying a FIFO would never end.
pub fn judging_files(directory: &Path) -> Vec<String> {
    let stages = [Stage::Setup, Stage::Build, Stage::Lint, Stage::Test].map(Stage::as_str);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = files
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| command_of_log(name).is_some_and(|command| stages.contains(&command)))
        .collect();
    names.sort();
    names
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The name of the `n`th directory for kept logs of an iteration. Without iterations, the name of
/// the `n`th directory.
fn directory_name(iteration: Option<u32>, n: u32) -> String {
    match iteration {
        Some(iteration) if n == 1 => iteration.to_string(),
        Some(iteration) => format!("{iteration}.{n}"),
        None => n.to_string(),
    }
}

/// The directories with kept logs, each with its iteration and its number within the iteration.
fn kept_in(directory: &Path) -> Vec<((u32, u32), LogDir)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (iteration, n) = name.split_once('.').unwrap_or((&name, "1"));
        Some(((iteration.parse().ok()?, n.parse().ok()?), LogDir::at(entry.path())))
    });
    numbered.collect()
}
