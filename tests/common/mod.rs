//! A repository of its own for each test, with its own HOME, cache and git configuration.
pub mod cheats;
pub mod edits;
pub mod fixtures;
pub mod processes;
pub mod sealed;
pub mod spread;
pub mod transcript;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use processes::{StartedProcesses, reset_ignored_signals};

/// The settings of the tests' own, by which commands are confined in no way.
pub const OF_THE_TESTS: [&str; 2] = ["FRITES_SANDBOX_MODE", "FRITES_SPAWN_GUARD"];

/// A home directory, and a repository in it at `repo`.
pub struct World {
    /// Ended before their files are deleted.
    _processes: StartedProcesses,
    root: TempDir,
    kept: Option<TempDir>,
    /// The user's checkout.
    pub repo: PathBuf,
    env: Vec<(String, std::ffi::OsString)>,
}

/// A program's exit code and output.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; 128 + n when signal n ended it, as a shell shows it.
    pub code: i32,
    /// Its standard output, as it was.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

impl Answer {
    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Asserts the exit code, showing everything when it is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Answer {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out(), self.stderr);
        self
    }

    /// Asserts a failure in git's form: one `fatal:` or `error:` line with these words, and a hint.
    #[track_caller]
    pub fn refuses(self, code: i32, words: &str) -> Answer {
        let answer = self.expect(code);
        let word = if code == 1 { "error: " } else { "fatal: " };
        let lines: Vec<&str> = answer
            .stderr
            .lines()
            .filter(|l| l.starts_with("fatal: ") || l.starts_with("error: "))
            .collect();
        assert_eq!(lines.len(), 1, "one line says what is wrong:\n{}", answer.stderr);
        assert!(
            lines[0].starts_with(word) && lines[0].contains(words),
            "expected '{word}…{words}…':\n{}",
            answer.stderr
        );
        assert!(
            answer.stderr.lines().any(|l| l.starts_with("hint: ")),
            "no hint:\n{}",
            answer.stderr
        );
        assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
        answer
    }

    /// Standard error without the lines that say which iteration was captured.
    pub fn left_out(&self) -> String {
        let captured = |line: &&str| line.starts_with("captured ");
        self.stderr.lines().filter(|l| !captured(l)).map(|line| format!("{line}\n")).collect()
    }

    /// The warnings of changes to the repository, each from the words after `warning: while `.
    pub fn warnings(&self) -> BTreeSet<String> {
        let lines = self.stderr.lines().filter_map(|line| line.strip_prefix("warning: while "));
        lines.map(str::to_owned).collect()
    }

    /// The changes to the repository that were made while a run's commands ran, as warned of.
    pub fn changes_warned_of(&self) -> BTreeSet<String> {
        let change = |warning: &String| Some(warning.split_once(" ran: ")?.1.to_owned());
        self.warnings().iter().filter_map(change).collect()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| {
            panic!("not JSON ({e}), exit {}:\n{}{}", self.code, self.out(), self.stderr)
        })
    }
}

impl World {
    /// A repository with one commit: `README` and `src/lib.txt`. git makes the first one of each
    /// program; the others are copies.
    pub fn new() -> World {
        static FIRST: LazyLock<FilesOf> = LazyLock::new(|| {
            let world = World::unborn();
            world.write("README", "hello\n");
            world.write("src/lib.txt", "one\ntwo\nthree\n");
            world.commit("base");
            FilesOf::read(&world.repo)
        });
        let world = World::empty("repo");
        FIRST.write(&world.repo);
        // The copies have other times and inodes than the index says.
        world.git(["update-index", "-q", "--refresh"]);
        world
    }

    /// A repository without a commit.
    pub fn unborn() -> World {
        let world = World::empty("repo");
        world.git(["init", "-q", "-b", "main"]);
        world
    }

    /// A home directory and an empty directory called `name` in it, which is no repository.
    pub fn empty(name: impl AsRef<OsStr>) -> World {
        let root = tempfile::Builder::new().prefix("frites-test-").tempdir_in(room()).unwrap();
        let home = root.path().canonicalize().unwrap();
        let repo = home.join(name.as_ref());
        fs::create_dir_all(&repo).unwrap();
        fs::create_dir_all(home.join("cache")).unwrap();
        fs::write(
            home.join(".gitconfig"),
            // A nearly full disk is the subject of its own tests, and must not fail the others.
            "[user]\n\tname = Test User\n\temail = test@example.com\n\
             [frites \"limits\"]\n\tmin-free-disk = 16MiB\n",
        )
        .unwrap();
        let bin = Path::new(env!("CARGO_BIN_EXE_git-frites")).parent().unwrap().to_owned();
        let old = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&old))).unwrap();
        let mut env: Vec<(String, std::ffi::OsString)> = vec![
            ("PATH".into(), path),
            ("HOME".into(), home.clone().into()),
            ("XDG_CACHE_HOME".into(), home.join("cache").into()),
            ("TMPDIR".into(), std::env::temp_dir().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), home.join(".gitconfig").into()),
            ("GIT_AUTHOR_DATE".into(), "2026-01-02T03:04:05Z".into()),
            ("GIT_COMMITTER_DATE".into(), "2026-01-02T03:04:05Z".into()),
            ("LC_ALL".into(), "C".into()),
            ("TZ".into(), "UTC".into()),
            ("TERM".into(), "dumb".into()),
        ];
        // Most tests look at what commands do outside of their checkouts and worktrees.
        env.extend(OF_THE_TESTS.map(|name| (name.to_owned(), "off".into())));
        // FRITES_TEST_GUARD=required runs all attempts of the tests guarded.
        if let Some(guard) = std::env::var_os("FRITES_TEST_GUARD") {
            env.push(("FRITES_SPAWN_GUARD".into(), guard));
            // The tests learn from files in HOME what attempts did.
            env.push(("FRITES_SPAWN_HOME".into(), "shared".into()));
        }
        let world = TestWorld::of_this_test();
        if world != TestWorld::Open {
            env.push(("FRITES_SANDBOX_MODE".into(), world.name().into()));
            // The tests learn from files in HOME what oracle commands did, and how often.
            env.push(("FRITES_SANDBOX_WRITE".into(), home.clone().into()));
            env.push(("FRITES_ORACLE_WARM".into(), "never".into()));
        }
        // Toolchains live outside of HOME; a test that builds a crate needs the user's, offline.
        let real_home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        for (name, directory) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            env.push((
                name.into(),
                std::env::var_os(name).unwrap_or_else(|| real_home.join(directory).into()),
            ));
        }
        reset_ignored_signals();
        World { _processes: StartedProcesses::of(&home), root, kept: None, repo, env }
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// The value of a variable that programs see.
    pub fn env(&self, name: &str) -> std::ffi::OsString {
        self.env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap_or_default()
    }

    /// Sets a variable for every program from now on.
    pub fn set_env(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
    }

    /// Takes a variable away again.
    pub fn unset_env(&mut self, name: &str) {
        self.env.retain(|(n, _)| n != name);
    }

    /// A program in `dir`, with this world's environment and nothing else; not started.
    pub fn command<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        program: &str,
        args: I,
    ) -> Command {
        let mut command = Command::new(find(program, &self.env("PATH")));
        command.args(args).current_dir(dir).env_clear().stdin(Stdio::null());
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// Runs a program in `dir` to its end.
    #[must_use = "check the exit code with `expect` or `refuses`, or read `code`"]
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        program: &str,
        args: I,
    ) -> Answer {
        let output = self.command(dir, program, args).output().unwrap();
        answer(&output)
    }

    /// `git …` in the user's checkout; asserts success and gives its output without the last
    /// newline.
    #[track_caller]
    pub fn git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> String {
        self.git_in(&self.repo.clone(), args)
    }

    /// `git …` in the directory `dir`; see [`World::git`].
    #[track_caller]
    pub fn git_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: I,
    ) -> String {
        let answer = self.run(dir, "git", args).expect(0);
        answer.out().strip_suffix('\n').map(str::to_owned).unwrap_or_else(|| answer.out())
    }

    /// `git frites …` in the user's checkout, through git as a user types it.
    #[must_use = "check the exit code with `expect` or `refuses`, or read `code`"]
    pub fn frites<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Answer {
        self.frites_in(&self.repo.clone(), args)
    }

    /// `git frites …` in the directory `dir`.
    #[must_use = "check the exit code with `expect` or `refuses`, or read `code`"]
    pub fn frites_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: I,
    ) -> Answer {
        let mut words = vec![std::ffi::OsString::from("frites")];
        words.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self.run(dir, "git", words)
    }

    /// A shell script in `dir`, with `set -eu`.
    #[must_use = "check the exit code with `expect` or `refuses`, or read `code`"]
    pub fn sh(&self, dir: &Path, script: &str) -> Answer {
        self.run(dir, "sh", ["-euc", script])
    }

    /// Writes a file of the user's checkout, with its directories.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        write(&self.repo.join(path), bytes);
    }

    /// Puts a hook into the repository: these lines of a shell script.
    pub fn hook(&self, name: &str, script: &str) {
        let path = self.repo.join(".git/hooks").join(name);
        write(&path, format!("#!/bin/sh\nset -eu\n{script}\n"));
        make_executable(&path);
    }

    /// Commits everything in the user's checkout; gives the commit.
    pub fn commit(&self, message: &str) -> String {
        self.git(["add", "-A"]);
        // The maintenance that git would start takes nearly as long as the commit, and finds
        // nothing to do.
        self.git(["-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "-m", message]);
        self.git(["rev-parse", "HEAD"])
    }

    /// `spawn -q` with these arguments; gives the run.
    #[track_caller]
    pub fn spawn<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> String {
        let mut words = vec![std::ffi::OsString::from("spawn"), "-q".into()];
        words.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self.frites(words).expect(0).out().trim().to_owned()
    }

    /// A run of open candidates `c1`, `c2`, …; each script is run in its worktree. Gives the run.
    #[track_caller]
    pub fn attempts(&self, scripts: &[&str]) -> String {
        let run = self.spawn(["-n", &scripts.len().to_string()]);
        for (at, script) in scripts.iter().enumerate() {
            self.sh(&self.worktree(&format!("{run}/c{}", at + 1)), script).expect(0);
        }
        run
    }

    /// A run of [`World::attempts`] that was judged by the command `test`, which one of them
    /// passes.
    #[track_caller]
    pub fn judged(&self, test: &str, scripts: &[&str]) -> String {
        let run = self.attempts(scripts);
        self.frites(["judge", "-q", "--test", test, &run]).expect(0);
        run
    }

    /// All events of all runs, the oldest first.
    #[track_caller]
    pub fn events(&self) -> Vec<serde_json::Value> {
        let text = self.frites(["log", "--json"]).expect(0).out();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The first candidate of a run in `status --json`.
    #[track_caller]
    pub fn first_candidate(&self, run: &str) -> serde_json::Value {
        self.frites(["status", "--json", run]).expect(0).json()["runs"][0]["candidates"][0].take()
    }

    /// A candidate's worktree.
    pub fn worktree(&self, address: &str) -> PathBuf {
        self.repo.join(".frites/worktrees").join(address)
    }

    /// Keeps the whole home as it is now, for [`World::again`]: many cases begin where one world is
    /// costly to make.
    pub fn keep(&mut self) {
        let kept = tempfile::Builder::new().prefix("frites-kept-").tempdir_in(room()).unwrap();
        self.run(&self.home(), "cp", [OsStr::new("-a"), ".".as_ref(), kept.path().as_ref()])
            .expect(0);
        self.kept = Some(kept);
    }

    /// Puts the home back to how it was kept, at the same path.
    pub fn again(&self) {
        for entry in fs::read_dir(self.home()).unwrap().map(Result::unwrap) {
            let remove = if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all
            } else {
                fs::remove_file
            };
            remove(entry.path()).unwrap();
        }
        let kept = self.kept.as_ref().unwrap().path().join(".");
        self.run(Path::new("/"), "cp", [OsStr::new("-a"), kept.as_ref(), self.home().as_ref()])
            .expect(0);
        // The index knows files by their inodes, which are others now.
        self.git(["update-index", "-q", "--refresh"]);
    }

    /// The tree of a ref or commit.
    #[track_caller]
    pub fn tree(&self, revision: &str) -> String {
        self.git(["rev-parse", "--verify", &format!("{revision}^{{tree}}")])
    }

    /// Everything of the user's that a command may not change: HEAD, refs that are not ours, index,
    /// status, configuration, hooks, stash.
    pub fn belongings(&self) -> String {
        let git_dir =
            PathBuf::from(self.git(["rev-parse", "--path-format=absolute", "--git-common-dir"]));
        let refs = self.git(["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs: Vec<&str> = refs.lines().filter(|l| !l.contains("/frites/")).collect();
        let index = self.run(&self.repo, "git", ["ls-files", "--stage", "-v", "-z"]);
        let status = self.run(&self.repo, "git", ["status", "--porcelain=v1", "-z", "--ignored"]);
        let hooks: Vec<_> = fs::read_dir(git_dir.join("hooks"))
            .map(|d| {
                d.flatten()
                    .map(|e| (e.file_name(), e.metadata().unwrap().permissions().mode()))
                    .collect()
            })
            .unwrap_or_default();
        let mut status = status.out().replace("!! .frites/\0", "");
        status.retain(|c| c != '\r');
        format!(
            "{}\n{refs:?}\n{}\n{status}\n{:?}\n{hooks:?}",
            fs::read_to_string(git_dir.join("HEAD")).unwrap(),
            index.out(),
            fs::read_to_string(git_dir.join("config")).unwrap(),
        )
    }

    /// Every file of the user's checkout, as [`World::files_of`] gives them.
    pub fn files(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        World::files_of(&self.repo)
    }

    /// Every file of a checkout with its mode and its bytes (a link's target); `.git` and `.frites`
    /// are left out.
    pub fn files_of(checkout: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let read = |path: PathBuf| {
            let meta = fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            (path.strip_prefix(checkout).unwrap().to_owned(), meta.permissions().mode(), bytes)
        };
        let mine = |path: &PathBuf| {
            !path.starts_with(checkout.join(".git")) && !path.starts_with(checkout.join(".frites"))
        };
        files_below(checkout).into_iter().filter(mine).map(read).collect()
    }

    /// The end-check of SCOREBOARD.md: git finds nothing wrong, and nothing of ours is left lying
    /// about.
    #[track_caller]
    pub fn assert_clean(&self) {
        let git_dir =
            PathBuf::from(self.git(["rev-parse", "--path-format=absolute", "--git-common-dir"]));
        self.run(&self.repo, "git", ["fsck", "--no-dangling", "--no-progress"]).expect(0);
        let locks: Vec<PathBuf> = files_below(&git_dir)
            .into_iter()
            .filter(|p| p.extension() == Some(OsStr::new("lock")))
            .collect();
        assert!(locks.is_empty(), "locks are left: {locks:?}");
        let entries = fs::read_dir(git_dir.join("worktrees")).into_iter().flatten().flatten();
        for entry in entries.map(|e| e.path()) {
            assert!(!entry.join("locked").exists(), "{} is locked", entry.display());
            let gitdir = fs::read_to_string(entry.join("gitdir")).unwrap_or_default();
            assert!(
                Path::new(gitdir.trim()).exists(),
                "{} points nowhere: {gitdir:?}",
                entry.display()
            );
        }
        // Cached outcomes, layers and mirrors are meant to stay.
        let stays = |name: &OsStr| {
            ["outcomes", "layers", "git-frites-remotes"].iter().any(|known| name == *known)
        };
        let known = |path: &PathBuf| path.components().any(|c| stays(c.as_os_str()));
        let cache: Vec<PathBuf> =
            files_below(&self.home().join("cache")).into_iter().filter(|p| !known(p)).collect();
        assert!(cache.is_empty(), "the cache directory holds {cache:?}");
    }
}

/// The files of a directory in memory, with their modes. Empty directories are left out: git needs
/// none.
struct FilesOf(Vec<(PathBuf, fs::Permissions, Vec<u8>)>);

impl FilesOf {
    fn read(directory: &Path) -> FilesOf {
        let file = |path: PathBuf| {
            let mode = fs::metadata(&path).unwrap().permissions();
            let bytes = fs::read(&path).unwrap();
            (path.strip_prefix(directory).unwrap().to_owned(), mode, bytes)
        };
        FilesOf(files_below(directory).into_iter().map(file).collect())
    }

    fn write(&self, directory: &Path) {
        for (path, mode, bytes) in &self.0 {
            let path = directory.join(path);
            write(&path, bytes);
            fs::set_permissions(path, mode.clone()).unwrap();
        }
    }
}

/// The world that oracle commands run in, unless a test asks for another: `FRITES_TEST_WORLD`, or
/// else the best one that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestWorld {
    /// Nothing confines them.
    Open,
    /// Landlock confines them.
    Landlock,
    /// They run in sealed worlds.
    Sealed,
}

thread_local! {
    static IS_ABOUT_THE_OPEN_WORLD: Cell<bool> = const { Cell::new(false) };
}

/// Lets the oracle commands of this test run in the open world, whatever `FRITES_TEST_WORLD` says:
/// the test is about what they do to the world outside of their checkout, or about that checkout
/// itself.
pub fn in_the_open_world() {
    IS_ABOUT_THE_OPEN_WORLD.set(true);
}

/// The best world that `doctor` finds here; tests/worlds.sh tests the others.
static BEST: LazyLock<TestWorld> = LazyLock::new(|| {
    let doctor = Command::new(env!("CARGO_BIN_EXE_git-frites")).arg("doctor").output().unwrap();
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let has = |what: &str| found.lines().any(|line| line.starts_with("ok") && line.contains(what));
    match () {
        () if has(" namespaces ") && has(" overlay ") => TestWorld::Sealed,
        () if has(" Landlock ") => TestWorld::Landlock,
        () => TestWorld::Open,
    }
});

/// The modules whose tests are about what is run and what it decides, and not about where. They
/// judge in the open world, which takes two thirds of the processor time of a sealed one;
/// tests/worlds.sh runs them in all worlds.
const OF_EVERY_WORLD: [&str; 3] = ["judge::detect::", "judge::source::", "shard::"];

/// True if the test that this thread runs, after which the thread is named, is of
/// [`OF_EVERY_WORLD`].
fn is_of_every_world() -> bool {
    let thread = std::thread::current();
    thread.name().is_some_and(|name| OF_EVERY_WORLD.iter().any(|module| name.starts_with(module)))
}

impl TestWorld {
    /// The world of the test that this thread runs.
    pub fn of_this_test() -> TestWorld {
        match std::env::var("FRITES_TEST_WORLD").as_deref() {
            _ if IS_ABOUT_THE_OPEN_WORLD.get() => TestWorld::Open,
            Err(_) if is_of_every_world() => TestWorld::Open,
            Err(_) => *BEST,
            Ok("open") => TestWorld::Open,
            Ok("landlock") => TestWorld::Landlock,
            Ok("sealed") => TestWorld::Sealed,
            Ok(other) => panic!("FRITES_TEST_WORLD is {other}, and no world"),
        }
    }

    /// The world's name: the `sandbox.mode` that gives it, but for the open one.
    pub fn name(self) -> &'static str {
        match self {
            TestWorld::Open => "open",
            TestWorld::Landlock => "landlock",
            TestWorld::Sealed => "sealed",
        }
    }

    /// Where commands ran, as a verdict says it.
    pub fn in_words(self) -> &'static str {
        match self {
            TestWorld::Open => "unconfined, in the open world",
            TestWorld::Landlock => "confined by Landlock",
            TestWorld::Sealed => "in sealed worlds",
        }
    }
}

/// Where repositories are made: in memory where there is room for them and programs may run, for a
/// disk makes git wait for each of its fsyncs. `TMPDIR` has the first word.
fn room() -> PathBuf {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    let memory = PathBuf::from("/dev/shm");
    let fits = statvfs(&memory).is_ok_and(|s| {
        s.f_bavail * s.f_frsize > 8 << 30 && !s.f_flag.contains(StatVfsMountFlags::NOEXEC)
    });
    if fits && std::env::var_os("TMPDIR").is_none() { memory } else { std::env::temp_dir() }
}

/// The directory of git-frites' own source.
pub fn source() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A verdict's sentence, the last line of what `judge` prints.
pub fn sentence(out: &str) -> &str {
    out.lines().last().unwrap_or_default()
}

/// Writes a file with its directories.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Makes a file executable.
pub fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// All files below a directory, links not followed.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Longer than anything here takes on a loaded machine, and far shorter than the commands that must
/// be killed.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until `done` gives a value, and gives it; panics when it takes [`LONG`]. `what` completes
/// "waited in vain until …".
#[track_caller]
pub fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(start.elapsed() < LONG, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `ready` is true, as [`until`] does.
#[track_caller]
pub fn poll(mut ready: impl FnMut() -> bool) {
    until("it is ready", || ready().then_some(()));
}

/// Sends a signal by the shell's own `kill`: a machine with Rust and git alone may lack the
/// program. True if all processes are there.
pub fn kill<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill \"$@\"", "sh"]).args(words).stderr(Stdio::null());
    shell.status().unwrap().success()
}

/// A finished program's answer.
pub fn answer(output: &std::process::Output) -> Answer {
    use std::os::unix::process::ExitStatusExt;
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap());
    Answer {
        code,
        stdout: output.stdout.clone(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn find(program: &str, path: &OsStr) -> PathBuf {
    std::env::split_paths(path)
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
        .unwrap_or_else(|| program.into())
}
