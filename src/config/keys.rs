//! The one table of all keys, with their types, defaults and descriptions. All sources of the
//! configuration, `git frites config`, the starter file and the manual use it.
use std::marker::PhantomData;
use std::time::Duration;

use toml::Value;

use crate::config::value::{
    AgentInput, Argv, ByteSize, EnvMode, Flaky, GuardMode, Interval, MergeStrategy, Network,
    NotifyMode, ProofMode, SandboxHome, SandboxMode, Setting, SpawnHome, StateVariables,
    SynthesisMode, Tie, WarmMode,
};
use crate::model::agent_output::UsageFormat;
use crate::model::base_tests::BaseTests;
use crate::model::oracle::CommandLine;
use crate::model::rank::Rank;

/// A key that is read as a `T`. A `*` in its name stands for a name that the user gives.
#[derive(Debug)]
pub struct Key<T> {
    /// The full name: `section.key`.
    pub name: &'static str,
    /// The value if no source sets the key.
    pub default: DefaultValue,
    kind: PhantomData<fn() -> T>,
}

// Derived implementations would require `T: Copy`.
impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Key<T> {}

/// The value of a key that no source sets.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// A value, in TOML.
    Is(&'static str),
    /// No value: the effect in words, and a value as an example.
    Unset(&'static str, &'static str),
}

/// A key without its Rust type, as the sources and the manual use it.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    pub name: &'static str,
    pub default: DefaultValue,
    /// The description, in sentences.
    pub about: &'static str,
    /// The values that the key takes, in words.
    pub takes: &'static str,
    /// True if several lines of git's configuration make one list.
    pub list: bool,
    /// Converts a text from a source without types; `None` if the key has no such value.
    pub from_text: fn(&str) -> Option<Value>,
    /// True if the key's type accepts a value.
    pub accepts: fn(&Value) -> bool,
}

impl KeySpec {
    /// True if the key has this name. A `*` in the key's name stands for any word without a dot.
    pub fn matches(&self, name: &str) -> bool {
        let Some((before, after)) = self.name.split_once('*') else { return self.name == name };
        let given = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        given.is_some_and(|given| !given.is_empty() && !given.contains('.'))
    }

    /// True if the key belongs to this section: `agents.*.command` belongs to `agents` and to
    /// `agents.claude`.
    pub fn is_within(&self, section: &str) -> bool {
        let mut parts = self.name.split('.');
        section.split('.').all(|part| parts.next().is_some_and(|p| p == part || p == "*"))
            && parts.next().is_some()
    }

    /// True if only the user's own configuration may set the key. A file of the repository may not,
    /// because such a file may come from others.
    pub fn is_users_own(&self) -> bool {
        self.is_within("hooks")
    }

    /// The environment variable that sets the key; `None` if the user chooses a part of its name.
    pub fn variable(&self) -> Option<String> {
        let name = || self.name.replace(['.', '-'], "_").to_uppercase();
        (!self.name.contains('*')).then(|| format!("FRITES_{}", name()))
    }
}

macro_rules! keys {
    ($($constant:ident: $type:ty = $name:literal, $default:expr, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $constant: Key<$type> = Key { name: $name, default: $default, kind: PhantomData };
        )*

        /// All keys, in the order of the manual.
        pub const ALL: &[KeySpec] = &[$(KeySpec {
            name: $constant.name,
            default: $constant.default,
            about: $about,
            takes: <$type as Setting>::TAKES,
            list: <$type as Setting>::LIST,
            from_text: <$type as Setting>::from_text,
            accepts: |value| <$type as Setting>::read(value).is_some(),
        }),*];
    };
}

use DefaultValue::{Is, Unset};

// A new key is one new line: constant, type, name, default, description.
keys! {
    ORACLE_SETUP: Option<CommandLine> = "oracle.setup", Unset("spawn.setup, or else detected with the other commands", "'npm ci --offline'"), "The command that prepares each checkout for judging. Unlike spawn.setup, it does not run in worktrees. If options or the configuration name a build, lint or test command, no setup is detected.";
    ORACLE_BUILD: Option<CommandLine> = "oracle.build", Unset("detected, if no build, lint or test command is named", "'make'"), "The command that builds the project.";
    ORACLE_LINT: Option<CommandLine> = "oracle.lint", Unset("detected, if no build, lint or test command is named", "'make lint'"), "The command that lints the project.";
    ORACLE_TEST: Option<CommandLine> = "oracle.test", Unset("detected, if no build, lint or test command is named", "['make', 'test']"), "The command that runs the tests.";
    ORACLE_DETECT: bool = "oracle.detect", Is("true"), "Whether git-frites detects commands in the base's files if neither options nor the configuration name any.";
    ORACLE_TIMEOUT: Duration = "oracle.timeout", Is("'10m'"), "The time limit of each command that judges.";
    ORACLE_RETRIES: u32 = "oracle.retries", Is("0"), "How many times a failed command is retried.";
    ORACLE_FLAKY: Flaky = "oracle.flaky", Is("'pass'"), "How a pass that needed a retry counts. pass: as a pass, ranked after those of candidates that passed at once. fail: as a failure.";
    ORACLE_TRUST_EXIT: bool = "oracle.trust-exit", Is("false"), "Whether the exit code alone decides, for projects with known failures. An exit code of 0 then counts as a pass even if the report says that tests failed, or that fewer tests ran than on the base.";
    ORACLE_PROTECT: Vec<String> = "oracle.protect", Is("[]"), "Paths, as git pathspecs. Before judging and landing, edited and deleted files below these paths are put back to the base's version. Added files stay, unless they decide which commands run, or how.";
    ORACLE_BASE_TESTS: BaseTests = "oracle.base-tests", Is("'changed'"), "Which candidates get a second judging, after their commands have exited with 0 and reported no failing test. It uses the base's tests and commands, and leaves out added tests. always: all candidates that change anything but source, documents and dependencies. changed: the same, with one exception. If added tests are the only reason, a candidate gets it only if it would be recommended (always with --cold or oracle.warm = 'never'). never: none.";
    ORACLE_SOURCE: Vec<String> = "oracle.source", Is("[]"), "Patterns, from the root, of further files that count as source, such as data/** or locale/*.json. Files of the project's languages count anyway, unless a pattern with ! says that they do not: with !** and src/**, only files below src are source. The last pattern that matches decides. If a candidate changes a file that is neither source, a document nor a list of dependencies, it is judged once more without that change.";
    ORACLE_JUNIT: Option<String> = "oracle.junit", Unset("the reports that git-frites finds or asks for", "'target/nextest/ci/junit.xml'"), "The JUnit file that the tests write, or the directory that contains such files.";
    ORACLE_RANK: Rank = "oracle.rank", Is("'blast-radius'"), "How the candidates that passed are ranked.";
    ORACLE_PROOF: ProofMode = "oracle.proof", Is("'auto'"), "The candidates whose added and changed tests also run on the base, where they should fail. auto: a verified winner, after the verdict. always: every candidate that passed, before the verdict. never: none. With --cross, every value means always. The decision does not depend on the results.";
    ORACLE_WARM: WarmMode = "oracle.warm", Is("'auto'"), "Whether candidates in sealed worlds are first judged warm: with the base's build outputs. auto: if that is expected to save more time than the confirmation without outputs takes. base: always. never: never.";
    SANDBOX_MODE: SandboxMode = "sandbox.mode", Is("'auto'"), "How setup, build, lint and test commands are confined. auto: in a sealed world of their own if the system allows it, else by Landlock, else not at all. required: in a sealed world or else by Landlock. sealed: in a sealed world. landlock: by Landlock. off: not at all. With required, sealed and landlock, nothing runs if the system does not allow such confinement.";
    SANDBOX_HOME: SandboxHome = "sandbox.home", Is("'user'"), "The new home directory of commands that Landlock confines, which is thrown away afterwards. user: it has links to everything in the user's home directory, for reading. private: it is empty. A sealed world always throws away what is written to HOME.";
    SANDBOX_NETWORK: Network = "sandbox.network", Is("true"), "Whether commands in a sealed world can use the network. Without it, they have only the loopback device. With 'setup', only the setup command can use it.";
    SANDBOX_WRITE: Vec<String> = "sandbox.write", Is("[]"), "Further paths that confined commands can write to, and sockets that they can use in a sealed world; ~ is the home directory.";
    SANDBOX_HIDE: Option<Vec<String>> = "sandbox.hide", Unset("keys and tokens", "['~/.ssh', '~/.gnupg']"), "Paths that commands in a sealed world cannot see; ~ is the home directory. They replace the default list (git-frites-sandbox(7)). If every entry begins with !, the entries are taken out of the default list instead: with '!~/.netrc', commands can see that file.";
    SANDBOX_PROCESSES: Option<usize> = "sandbox.processes", Unset("no limit", "512"), "The maximum number of processes of a command in a sealed world; it does not bind root.";
    SANDBOX_MEMORY: Option<ByteSize> = "sandbox.memory", Unset("no limit", "'8GiB'"), "The maximum address space of each process of a confined command.";
    SANDBOX_DISK: ByteSize = "sandbox.disk", Is("'20GiB'"), "The disk space that the commands on one tree may take in a sealed world; a command that exceeds it is ended.";
    SEED_COPY: Vec<String> = "seed.copy", Is("[]"), "Untracked files of your checkout, ignored or not, that are copied into worktrees and checkouts for judging, as patterns in the syntax of .gitignore.";
    SEED_LINK: Vec<String> = "seed.link", Is("[]"), "Untracked files and directories of your checkout, ignored or not, that are copied with all files in them. An entry is a path from the root. If it contains *, ? or [, it is a pattern, as in seed.copy. The files are copied, not linked, despite the name of the key.";
    SPAWN_JOBS: Option<usize> = "spawn.jobs", Unset("16 if agents make all candidates, else the number of processors", "4"), "How many commands of candidates run at once.";
    SPAWN_TIMEOUT: Duration = "spawn.timeout", Is("'1h'"), "The time limit of a candidate's command.";
    SPAWN_IDLE_TIMEOUT: Option<Duration> = "spawn.idle-timeout", Unset("no limit", "'10m'"), "A candidate's command is ended when it prints nothing for this long. If an agent prints only that it waits for the network, that counts as silence. Such an agent is ended after two minutes if no limit is set.";
    SPAWN_AUTO_CHECKPOINT: Option<Duration> = "spawn.auto-checkpoint", Unset("no checkpoints", "'30m'"), "The interval at which the worktree of a candidate is captured while its command runs.";
    SPAWN_SETUP: Option<CommandLine> = "spawn.setup", Unset("nothing in worktrees; for judging, see oracle.setup", "'npm ci --offline'"), "A command that prepares each new worktree and each checkout for judging. If oracle.setup is set, it replaces spawn.setup in checkouts for judging. If both are unset, nothing prepares worktrees. Checkouts for judging are then prepared by a detected setup, such as the install command of a lock file, but only if the build, lint and test commands are detected, too.";
    SPAWN_WORKTREE_ROOT: Option<String> = "spawn.worktree-root", Unset(".frites/worktrees", "'../worktrees'"), "The directory in which worktrees are created; ~ is the home directory, and a relative path begins at your checkout. If this directory is in a checkout, git must ignore it.";
    SPAWN_GUARD: GuardMode = "spawn.guard", Is("'auto'"), "Whether candidates' commands and their setup are guarded. auto: if the system allows it. required: always; if the system does not allow it, nothing runs. off: never. Guarded commands can write only to their own worktree and git directory, the state directory of their agent, HOME (see spawn.home), the directories for temporary files, and the paths in spawn.write.";
    SPAWN_HOME: SpawnHome = "spawn.home", Is("'private'"), "Where a file goes if a guarded command writes it to HOME, or to a tool's directory outside HOME such as CARGO_HOME. private: a directory of the candidate, so your own files do not change. If the system does not allow this, private means the same as shared. shared: your own directories. The candidate's directory is removed with its worktree, and judging never sees it.";
    SPAWN_WRITE: Vec<String> = "spawn.write", Is("[]"), "Further paths that guarded commands can write to; ~ is the home directory, and other relative paths begin at your checkout.";
    DIFF_EXCLUDE: Vec<String> = "diff.exclude", Is("['node_modules', 'dist', '.frites']"), "Patterns, in the syntax of .gitignore, of paths that captures leave out if an attempt adds them, at any depth. It makes no difference whether the attempt commits them. `.frites` is always left out. A directory in which the base tracks something is not left out.";
    ENV_MODE: EnvMode = "env.mode", Is("'inherit'"), "The environment variables that the commands of candidates and of judging get. inherit: all of yours. clean: only those that every program needs.";
    ENV_PASS: Vec<String> = "env.pass", Is("[]"), "Further variables to pass with mode = 'clean'; * matches anything.";
    ENV_DENY: Vec<String> = "env.deny", Is("[]"), "Variables that are never passed; * matches anything.";
    SYNTHESIS_MODE: SynthesisMode = "synthesis.mode", Is("'passing-only'"), "Whether git-frites may let an agent or a command make one more candidate, the synthesis, from those that passed. passing-only: yes. off: no.";
    SYNTHESIS_CEILING: f64 = "synthesis.ceiling", Is("1.5"), "The maximum size of a synthesis that can win. The size is a ratio: the number of lines that the synthesis changes, divided by the sum of the lines that its source candidates change.";
    SYNTHESIS_AGENT: Option<String> = "synthesis.agent", Unset("the agent of the best candidate", "'claude'"), "The agent that makes syntheses. If this key is unset and no agent made the best candidate, the run's own command makes them. But if the run has no prompt, no synthesis is made then.";
    SYNTHESIS_TIMEOUT: Option<Duration> = "synthesis.timeout", Unset("the time limit of the other candidates", "'30m'"), "The time limit of the command that makes a synthesis.";
    SYNTHESIS_PROMPT_LIMIT: ByteSize = "synthesis.prompt-limit", Is("'256KiB'"), "The prompt of a synthesis contains the patches of the other candidates, the smallest first, up to this size in all. For a candidate whose patch does not fit, the prompt lists only the changed files.";
    MERGE_STRATEGY: MergeStrategy = "merge.strategy", Is("'none'"), "How a merge resolves conflicts. none: not at all, so that nothing changes. newest-file-wins: each file in conflict comes whole from the side that wrote it later.";
    MERGE_TIE: Tie = "merge.tie", Is("'child'"), "With merge.strategy newest-file-wins, the side whose file wins if both sides wrote it at the same time. child: the candidate that lands. parent: the target.";
    RUN_MERGE: bool = "run.merge", Is("false"), "Whether `run` merges a verified winner into the current branch.";
    RUN_EAGER: bool = "run.eager", Is("true"), "Whether `run` judges each attempt as soon as it has ended, while the others work. This needs attempts that are guarded by more than Landlock, and confined judging commands. Otherwise judging begins when all attempts have ended.";
    AGENT_COMMAND: Option<Argv> = "agents.*.command", Unset("the command of the built-in agent of this name", "['claude', '-p']"), "The command that starts the agent, without a shell; {prompt} and {prompt_file} are replaced.";
    AGENT_STDIN: Option<AgentInput> = "agents.*.stdin", Unset("the prompt, unless an argument contains it", "'prompt'"), "The agent's standard input.";
    AGENT_FRAMING: Vec<String> = "agents.*.framing", Is("[]"), "Texts that are put before the prompt: the first for the agent's first candidate, and so on; after the last, the first is used again.";
    AGENT_LIMIT: Option<Vec<String>> = "agents.*.limit", Unset("the texts of the built-in agent of this name", "['out of credit']"), "Texts by which the agent says that its account has reached a limit; * matches anything, and case does not matter. If a command failed, timed out or changed nothing, and one of the last 20 lines of its output has such a text, the candidate is limited, and no other candidate of that agent is started in the run.";
    AGENT_USAGE: Option<UsageFormat> = "agents.*.usage", Unset("the format of the built-in agent of this name", "'claude'"), "The format in which the agent reports tokens and dollars: the name of a built-in agent with the same JSON output, or JSON pointers. Pointers are applied to the last object in which at least one of them finds a value. With off, the usage is not read.";
    AGENT_STATE: Option<StateVariables> = "agents.*.state", Unset("the variables of the built-in agent of this name", "'MYAGENT_HOME'"), "The environment variables that tell the agent where its state is. For each variable, each attempt gets a directory of its own, which stays with the run. The name of a built-in agent stands for that agent's variables, logins and settings; off leaves the state where it is.";
    HOOKS_CANDIDATE_ENDED: Option<Argv> = "hooks.candidate-ended", Unset("nothing runs", "['./ended']"), "The command that runs when a candidate's command has ended and its result is captured. Hooks are read from git's configuration and from variables, never from .frites.toml, and run without a shell.";
    HOOKS_VERDICT: Option<Argv> = "hooks.verdict", Unset("nothing runs", "['notify-send', 'There is a verdict']"), "The command that runs when a run has a verdict.";
    HOOKS_LANDED: Option<Argv> = "hooks.landed", Unset("nothing runs", "['./landed']"), "The command that runs when a candidate has landed.";
    HOOKS_BEFORE_CLEAN: Option<Argv> = "hooks.before-clean", Unset("nothing runs", "['./before-clean']"), "The command that runs before a candidate's worktree is removed. If it fails, the worktree stays.";
    HOOKS_TIMEOUT: Duration = "hooks.timeout", Is("'1m'"), "The time limit of each hook.";
    LIMITS_CANDIDATES: usize = "limits.candidates", Is("64"), "The maximum number of candidates of a run.";
    LIMITS_COST: Option<f64> = "limits.cost", Unset("no limit", "5"), "The dollars that a run may cost, by its agents' own reports. When the cost of the run reaches this limit, no further command of a candidate is started; running commands continue to their end.";
    LIMITS_JOBS: usize = "limits.jobs", Is("64"), "The maximum number of commands that one run executes at the same time.";
    LIMITS_NESTING: usize = "limits.nesting", Is("1"), "How deeply runs may be nested. With 1, the command of a candidate cannot start a run of its own; with 2, it can.";
    LIMITS_INHERITANCE: usize = "limits.inheritance", Is("10"), "The maximum length of a chain of runs, each of which continues an attempt of the run before.";
    LIMITS_WORKTREES: usize = "limits.worktrees", Is("128"), "The maximum number of worktrees of all runs.";
    LIMITS_MIN_FREE_DISK: ByteSize = "limits.min-free-disk", Is("'2GiB'"), "The disk space that must remain free after the worktrees are created.";
    LIMITS_LAYERS: ByteSize = "limits.layers", Is("'20GiB'"), "The disk space that all your repositories together may use to keep the build outputs of bases for later judgings; the least recently used are removed first.";
    CLEAN_AUTO: Interval = "clean.auto", Is("'off'"), "The shortest time between two starts of `clean --expired` in the background. Each command of git-frites starts it at its end, unless it was started less than this time ago.";
    UI_NOTIFY: NotifyMode = "ui.notify", Is("'off'"), "How you are told on a terminal that `run`, `judge` or `spawn` has ended. off: not at all. bell: by the bell. auto: by a notification if the terminal is known to show them, else by the bell.";
    RETENTION_LANDED: Duration = "retention.landed", Is("'1h'"), "The age at which `clean --expired` removes the worktree of a candidate that has landed.";
    RETENTION_FAILED: Duration = "retention.failed", Is("'24h'"), "The age at which `clean --expired` removes the worktree of a candidate that failed, timed out or was cancelled.";
    RETENTION_ABANDONED: Duration = "retention.abandoned", Is("'6h'"), "The age, since the last write, at which `clean --expired` removes any other worktree.";
}

/// The value that the text of a [`DefaultValue`] stands for.
pub fn parse(text: &str) -> Value {
    text.parse().expect("a test parses every default of the table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_example_is_of_its_keys_type() {
        for spec in ALL {
            let (Is(text) | Unset(_, text)) = spec.default;
            assert!((spec.accepts)(&parse(text)), "{}: {text}", spec.name);
            assert!(spec.about.ends_with('.'), "{} is described in sentences", spec.name);
            if let Unset(words, _) = spec.default {
                // `config` shows these words in a table, beside the key and the file.
                assert!(words.len() <= 64, "{}: {words}", spec.name);
            }
        }
    }

    #[test]
    fn a_star_stands_for_one_name() {
        let spec = KeySpec { name: "agents.*.command", ..ALL[0] };
        for (prefix, is) in [
            ("agents", true),
            ("agents.claude", true),
            ("agents.claude.command", false),
            ("agent", false),
        ] {
            assert_eq!(spec.is_within(prefix), is, "{prefix}");
        }
        assert!(spec.matches("agents.claude.command"));
        for name in
            ["agents..command", "agents.a.b.command", "agents.command", "agents.claude.stdin"]
        {
            assert!(!spec.matches(name), "{name}");
        }
    }
}
