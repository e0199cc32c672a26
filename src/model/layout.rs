//! The paths of the state directory (docs/DESIGN.md §4). No other source file writes one of these
//! paths out.
use std::path::{Path, PathBuf};

use crate::model::name::{BASE, Name};

/// The file of a run's record.
pub const RUN_RECORD: &str = "run.toml";

/// The file of a run's verdict.
pub const VERDICT: &str = "verdict.toml";

/// The file of an outcome.
pub const OUTCOME: &str = "outcome.toml";

/// The file of the terms on which a run is judged in parts.
pub const TERMS: &str = "terms.toml";

/// The file of a prompt.
pub const PROMPT: &str = "prompt.md";

/// The name of two things in a candidate's directory: the log of its own command, and the directory
/// in which its agents keep their state.
pub const AGENT: &str = "agent";

/// The file that says which work on a run is under way.
pub const ACTIVE: &str = "active";

/// The directory, beside the logs of a judging, for the logs of the judging with the base's tests.
pub const BASE_TESTS: &str = "base-tests";

/// The directory, beside the logs of a judging, for the logs of the judgings with the test files of
/// other candidates.
const CROSS: &str = "cross";

/// The directory of the logs of landed trees. No candidate can have this name.
pub const LANDED_TREES: &str = "apply";

const DISK: &str = "disk.toml";
const LOG_ENDING: &str = ".log";

/// The files in a run's directory that belong to the run itself. Beside them, each candidate has a
/// directory of its name.
pub const RECORDS: [&str; 4] = [RUN_RECORD, VERDICT, ACTIVE, DISK];

/// The name of a command's log.
pub fn log_name(command: &str) -> String {
    format!("{command}{LOG_ENDING}")
}

/// The name of the log of one try of a command, if another try followed. The tries are numbered
/// from 1.
pub fn log_of_try(command: &str, number: usize) -> String {
    log_name(&format!("{command}.try-{number}"))
}

/// The command whose log, perhaps of an earlier try, has this name; `None` if it is not a log.
pub fn command_of_log(name: &str) -> Option<&str> {
    name.strip_suffix(LOG_ENDING)?.split('.').next()
}

/// The name of the file in the run's record that holds a candidate's own prompt.
pub fn prompt_of(candidate: &Name) -> String {
    format!("prompt-{candidate}.md")
}

/// Gives a type these functions: one for its own path, and one for each file or directory in it.
macro_rules! paths {
    ($owner:ident: $($(#[$doc:meta])* $name:ident: $file:expr;)*) => {
        impl $owner {
            /// The directory itself.
            pub fn path(&self) -> &Path {
                &self.0
            }
            $($(#[$doc])* pub fn $name(&self) -> PathBuf {
                self.0.join($file)
            })*
        }
    };
}

/// The state directory of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

/// `runs/RUN/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir(PathBuf);

/// `runs/RUN/CAND/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateDir(PathBuf);

/// A directory of logs: of a candidate, a base or landed trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDir(PathBuf);

paths! { StateDir:
    /// The file that hides the directory from git.
    ignore: ".gitignore";

    /// The event log.
    events: "events.jsonl";

    /// The list of the user's login files into which git-frites wrote tokens that attempts had
    /// refreshed: one path in each line.
    refreshed_logins: "refreshed-logins";

    /// The record of the last git program that was found new enough.
    git_program: "git-program";

    /// The output of the last cleaning that `clean.auto` started.
    auto_clean_log: "auto-clean.log";

    /// The changes of the configuration that attempts may have made, until the user accepts them.
    untrusted: "untrusted.json";

    /// The directory of fingerprints. They were taken before the start of the commands that run
    /// now.
    watches: "watches";

    /// The directory in which git-frites tries whether the system allows layers over the user's
    /// directories.
    probe: "probe";

    /// The directory of the temporary files of commands that run now.
    scratch: "scratch";

    /// The directory of worktrees, unless the configuration names another.
    worktrees: "worktrees";

    /// The directory of all locks.
    locks: "locks";

    /// The lock of the repository.
    repository_lock: "locks/repository";

    /// The lock of landings.
    landing_lock: "locks/landing";

    /// The lock under which a cleaning is started in the background.
    auto_clean_lock: "locks/auto-clean";

    /// The directory of the intents of landings. An intent says what a landing is about to do.
    landings: "landings";

    /// The directory of all runs.
    runs: "runs";
}

impl StateDir {
    /// The state of the repository with this common git directory: `X/.frites` if the git directory
    /// is `X/.git`, otherwise `COMMON_DIR/.frites`.
    pub fn of(common_dir: &Path) -> StateDir {
        let home = match common_dir.parent() {
            Some(parent) if common_dir.file_name().is_some_and(|n| n == ".git") => parent,
            _ => common_dir,
        };
        StateDir(home.join(".frites"))
    }

    /// The lock of a run.
    pub fn run_lock(&self, run: &Name) -> PathBuf {
        self.0.join("locks/run").join(run.as_str())
    }

    /// The lock of a candidate.
    pub fn candidate_lock(&self, run: &Name, candidate: &Name) -> PathBuf {
        self.0.join("locks/candidate").join(run.as_str()).join(candidate.as_str())
    }

    /// The lock that is held while a person runs a command in a candidate's worktree.
    pub fn use_lock(&self, run: &Name, candidate: &Name) -> PathBuf {
        self.0.join("locks/use").join(run.as_str()).join(candidate.as_str())
    }

    /// The intent of a landing in the checkout with this key.
    pub fn landing(&self, checkout: &str) -> PathBuf {
        self.landings().join(format!("{checkout}.toml"))
    }

    /// The intent of a landing on an existing branch, as older versions wrote it.
    pub fn old_move(&self, checkout: &str) -> PathBuf {
        self.landings().join(format!("{checkout}.move.toml"))
    }

    /// The directory of the intents of landings in candidates' worktrees. It has a directory for
    /// each run.
    pub fn candidate_landings(&self) -> PathBuf {
        self.landings().join("candidates")
    }

    /// The directory of the intents of landings in the worktrees of one run.
    pub fn landings_of_run(&self, run: &Name) -> PathBuf {
        self.candidate_landings().join(run.as_str())
    }

    /// The intent of a landing in a candidate's worktree.
    pub fn candidate_landing(&self, run: &Name, candidate: &Name) -> PathBuf {
        self.landings_of_run(run).join(format!("{candidate}.toml"))
    }

    /// The directory of a run.
    pub fn run(&self, run: &Name) -> RunDir {
        RunDir(self.runs().join(run.as_str()))
    }
}

paths! { RunDir:
    /// The run's record.
    record: RUN_RECORD;

    /// The file that says which work on the run is under way.
    active: ACTIVE;

    /// How the candidates stand, as the process that works on the run shows it.
    board: "board.json";

    /// The size of the run's records and objects, as last measured.
    disk: DISK;

    /// The page that `report` writes.
    report: "report.html";
}

impl RunDir {
    /// The path of one of [`RECORDS`].
    pub fn file(&self, record: &str) -> PathBuf {
        self.0.join(record)
    }

    /// The document that a hook gets about the run or a candidate.
    pub fn hook_input(&self, hook: &str, candidate: Option<&Name>) -> PathBuf {
        self.0.join(format!("{}.json", hook_name(hook, candidate)))
    }

    /// The log of a hook.
    pub fn hook_log(&self, hook: &str, candidate: Option<&Name>) -> PathBuf {
        self.0.join(log_name(&hook_name(hook, candidate)))
    }

    /// The logs of the run's hooks.
    pub fn logs(&self) -> LogDir {
        LogDir(self.0.clone())
    }

    /// The logs of the base.
    pub fn base(&self) -> LogDir {
        LogDir(self.0.join(BASE))
    }

    /// The logs of trees that a landing made and judged.
    pub fn landed_trees(&self) -> LogDir {
        LogDir(self.0.join(LANDED_TREES))
    }

    /// The directory of a candidate.
    pub fn candidate(&self, candidate: &Name) -> CandidateDir {
        CandidateDir(self.0.join(candidate.as_str()))
    }
}

/// The name, without its ending, of a hook's files for a run or a candidate.
fn hook_name(hook: &str, candidate: Option<&Name>) -> String {
    match candidate {
        Some(candidate) => format!("hook-{hook}-{candidate}"),
        None => format!("hook-{hook}"),
    }
}

paths! { CandidateDir:
    /// The candidate's record.
    record: "candidate.toml";

    /// The private index with which captures compare the worktree.
    index: "index";

    /// The git directory that guarded commands see in place of the repository's.
    own_git: "own";

    /// The directory in which the candidate's agents keep their state.
    agent_state: AGENT;

    /// The record of the contents of [`CandidateDir::agent_state`].
    agent_record: "agent.toml";

    /// The layers to which guarded commands write instead of the user's directories.
    own_home: "home";

    /// The record of the files that the worktree was given before the attempt began.
    seeds: "seeds.toml";

    /// The prompt of the candidate's command.
    prompt: PROMPT;

    /// The candidate's patch, as last captured.
    patch: "candidate.diff";

    /// The intent of the candidate's last landing on a fresh branch.
    landed: "landed.toml";
}

impl CandidateDir {
    /// The candidate's logs.
    pub fn logs(&self) -> LogDir {
        LogDir(self.0.clone())
    }
}

paths! { LogDir:
    /// The record of the iterations to which the newest logs belong.
    record: "logs.toml";

    /// The directory of the logs of earlier rounds of a candidate's command, by iteration.
    rounds: "rounds";

    /// The directory of the logs of earlier judgings: named by iteration for a candidate, otherwise
    /// numbered.
    judgings: "judgings";
}

impl LogDir {
    /// A directory that is known to hold logs.
    pub fn at(path: PathBuf) -> LogDir {
        LogDir(path)
    }

    /// The log of a command: `agent`, `setup`, `build`, `lint` or `test`.
    pub fn log(&self, command: &str) -> PathBuf {
        self.0.join(log_name(command))
    }

    /// The logs of the second judging, with the base's tests.
    pub fn base_tests(&self) -> LogDir {
        LogDir(self.0.join(BASE_TESTS))
    }

    /// The logs of judging the target of a landing.
    pub fn target(&self) -> LogDir {
        LogDir(self.0.join("target"))
    }

    /// The logs of judging with the test files of an author, or of `@all`.
    pub fn cross(&self, author: &str) -> LogDir {
        LogDir(self.0.join(CROSS).join(author))
    }
}
