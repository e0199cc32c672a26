//! Every key there is: its type, its default, and what it is for. The one table that every layer, `git
//! frites config`, the starter file and the manual are made from.
use std::marker::PhantomData;
use std::time::Duration;

use toml::Value;

use crate::config::value::{AgentInput, EnvMode, Flaky, Setting, Size, SynthesisMode, Words};
use crate::model::oracle::CommandLine;
use crate::model::ranking::Rank;

/// A key that is read as a `T`. A `*` in its name stands for a name that the user gives.
#[derive(Debug)]
pub struct Key<T> {
    /// Its full name: `section.key`.
    pub name: &'static str,
    /// What counts when it is set nowhere.
    pub otherwise: Otherwise,
    kind: PhantomData<fn() -> T>,
}

// Derived, these would ask for a `T` that is `Copy`.
impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Key<T> {}

/// What counts when a key is set nowhere.
#[derive(Clone, Copy, Debug)]
pub enum Otherwise {
    /// A value, as TOML writes it.
    Is(&'static str),
    /// No value: what happens then, in words, and a value as an example.
    Unset(&'static str, &'static str),
}

/// A key as the layers and the manual see it, whatever its type.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its full name.
    pub name: &'static str,
    /// What counts when it is set nowhere.
    pub otherwise: Otherwise,
    /// What it is for.
    pub about: &'static str,
    /// What it takes, in words.
    pub takes: &'static str,
    /// Whether several lines of git's configuration make one list.
    pub list: bool,
    /// The value that a text of a layer without types stands for.
    pub from_text: fn(&str) -> Option<Value>,
    /// Whether a value can be read as the key's type.
    pub accepts: fn(&Value) -> bool,
}

impl Spec {
    /// Whether this is the key of that name.
    pub fn matches(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((before, after)) => {
                let given = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                given.is_some_and(|given| !given.is_empty() && !given.contains('.'))
            }
        }
    }

    /// Whether `prefix` is a section of it: `agents`, and `agents.claude`, of `agents.*.command`.
    pub fn is_within(&self, prefix: &str) -> bool {
        let mut parts = self.name.split('.');
        prefix.split('.').all(|part| parts.next().is_some_and(|p| p == part || p == "*"))
            && parts.next().is_some()
    }

    /// The environment variable that sets it; none for a key whose name is partly the user's.
    pub fn variable(&self) -> Option<String> {
        (!self.name.contains('*'))
            .then(|| format!("FRITES_{}", self.name.replace(['.', '-'], "_").to_uppercase()))
    }
}

macro_rules! keys {
    ($($constant:ident: $type:ty = $name:literal, $otherwise:expr, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $constant: Key<$type> = Key { name: $name, otherwise: $otherwise, kind: PhantomData };
        )*

        /// All of them, in the order in which people read about them.
        pub const ALL: &[Spec] = &[$(Spec {
            name: $constant.name,
            otherwise: $constant.otherwise,
            about: $about,
            takes: <$type as Setting>::TAKES,
            list: <$type as Setting>::LIST,
            from_text: <$type as Setting>::from_text,
            accepts: |value| <$type as Setting>::read(value).is_some(),
        }),*];
    };
}

use Otherwise::{Is, Unset};

// A new key is a new line here: its constant, its type, its name, its default, what it is for.
keys! {
    ORACLE_BUILD: Option<CommandLine> = "oracle.build", Unset("found in the base's files", "'make'"), "The command that builds the project.";
    ORACLE_LINT: Option<CommandLine> = "oracle.lint", Unset("found in the base's files", "'make lint'"), "The command that checks the style.";
    ORACLE_TEST: Option<CommandLine> = "oracle.test", Unset("found in the base's files", "['make', 'test']"), "The command that runs the tests.";
    ORACLE_DETECT: bool = "oracle.detect", Is("true"), "Whether commands are looked for in the base's files when none is named.";
    ORACLE_TIMEOUT: Duration = "oracle.timeout", Is("'10m'"), "How long each of these commands may take.";
    ORACLE_RETRIES: u32 = "oracle.retries", Is("0"), "How often a command that failed is tried again.";
    ORACLE_FLAKY: Flaky = "oracle.flaky", Is("'pass'"), "Whether a pass after a failure counts: as a pass that is ranked after clean ones, or as a failure.";
    ORACLE_PROTECT: Vec<String> = "oracle.protect", Is("[]"), "Paths, as git's pathspecs, that are put back to the base's version before judging and landing.";
    ORACLE_JUNIT: Option<String> = "oracle.junit", Unset("no per-test results", "'target/nextest/ci/junit.xml'"), "The JUnit file, or the directory of such files, that the tests leave.";
    ORACLE_RANK: Rank = "oracle.rank", Is("'blast-radius'"), "What ranks the candidates that passed.";
    SEED_COPY: Vec<String> = "seed.copy", Is("[]"), "Untracked or ignored files of your checkout to copy into worktrees and judged checkouts, as a .gitignore names them.";
    SEED_LINK: Vec<String> = "seed.link", Is("[]"), "More files and directories to copy, each with all it holds, by their names from the root. They were links once; now no command can write through them to your own files.";
    SPAWN_JOBS: Option<usize> = "spawn.jobs", Unset("the number of processors", "4"), "How many candidates' commands run at once.";
    SPAWN_TIMEOUT: Duration = "spawn.timeout", Is("'1h'"), "How long a candidate's command may take.";
    SPAWN_IDLE_TIMEOUT: Option<Duration> = "spawn.idle-timeout", Unset("no limit", "'10m'"), "How long it may print nothing.";
    SPAWN_SETUP: Option<CommandLine> = "spawn.setup", Unset("for judging, what a lock file asks for", "'npm ci --offline'"), "A command that prepares each new worktree and each judged checkout.";
    SPAWN_WORKTREE_ROOT: Option<String> = "spawn.worktree-root", Unset(".frites/worktrees", "'../worktrees'"), "Where worktrees are made; it may lie outside the repository.";
    DIFF_EXCLUDE: Vec<String> = "diff.exclude", Is("['node_modules', 'dist', '.frites']"), "Untracked paths to leave out of captures, at any depth, as a .gitignore names them.";
    ENV_MODE: EnvMode = "env.mode", Is("'inherit'"), "Which of your variables candidates' and oracle commands see: all, or the few that every program needs.";
    ENV_PASS: Vec<String> = "env.pass", Is("[]"), "More variables to pass with mode = 'clean'; * stands for anything.";
    ENV_DENY: Vec<String> = "env.deny", Is("[]"), "Variables that are never passed; * stands for anything.";
    SYNTHESIS_MODE: SynthesisMode = "synthesis.mode", Is("'passing-only'"), "Whether a candidate may be synthesised from those that passed.";
    SYNTHESIS_CEILING: f64 = "synthesis.ceiling", Is("1.5"), "How large a synthesised winner may be, as a multiple of the combined size of those it drew on.";
    AGENT_COMMAND: Option<Words> = "agents.*.command", Unset("that of the agent of this name that is built in", "['claude', '-p']"), "What an agent is started as, never through a shell; {prompt} and {prompt_file} are replaced.";
    AGENT_STDIN: Option<AgentInput> = "agents.*.stdin", Unset("the prompt, unless its arguments take it", "'prompt'"), "What it reads as its standard input.";
    AGENT_FRAMING: Vec<String> = "agents.*.framing", Is("[]"), "Words put before the prompt: the first for its first candidate, and so on, round and round.";
    LIMITS_CANDIDATES: usize = "limits.candidates", Is("64"), "How many candidates one run may have.";
    LIMITS_JOBS: usize = "limits.jobs", Is("64"), "How many commands of one run may run at once.";
    LIMITS_NESTING: usize = "limits.nesting", Is("1"), "How deep a candidate's command may start runs of its own.";
    LIMITS_INHERITANCE: usize = "limits.inheritance", Is("10"), "How long a chain of runs may be that each start from a candidate of another.";
    LIMITS_WORKTREES: usize = "limits.worktrees", Is("128"), "How many worktrees all runs may have.";
    LIMITS_MIN_FREE_DISK: Size = "limits.min-free-disk", Is("'2GiB'"), "What a spawn leaves free on the disk, beyond the worktrees themselves.";
    RETENTION_LANDED: Duration = "retention.landed", Is("'1h'"), "How long `clean --expired` leaves a worktree after what it holds has landed.";
    RETENTION_FAILED: Duration = "retention.failed", Is("'24h'"), "How long it leaves one whose command failed, timed out or was cancelled.";
    RETENTION_ABANDONED: Duration = "retention.abandoned", Is("'6h'"), "How long it leaves any other one after the last work in it.";
}

/// A default as a value.
pub fn parse(text: &str) -> Value {
    text.parse().expect("a test reads every default of the table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_example_is_of_its_keys_type() {
        for spec in ALL {
            let (Is(text) | Unset(_, text)) = spec.otherwise;
            assert!((spec.accepts)(&parse(text)), "{}: {text}", spec.name);
            assert!(spec.about.ends_with('.'), "{} is told of in sentences", spec.name);
        }
    }

    #[test]
    fn a_star_stands_for_one_name() {
        let spec = Spec { name: "agents.*.command", ..ALL[0] };
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
