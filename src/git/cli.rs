//! Runs the git program with a clean environment and fixed settings.
//!
//! GIT-FACTS.md has the measurements behind each fixed setting ("Capture and diff", "Own git
//! calls").
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::{Error, IoContext, Result};
use crate::fs::scratch;
use crate::git::config_key::key_text;
use crate::git::output::{Output, may_be_moving};
use crate::git::overrides::{Overrides, SettingOverrides};
use crate::git::program;
use crate::git::trace_file::TraceFile;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::process;
use crate::process::world_spec::{LAUNCHER_VERB, WorldMessage, WorldSpec};

/// The variables that our own calls of git inherit. They tell where git itself and the user's
/// configuration are. Other variables that begin with `GIT_` are not inherited, except those for
/// tracing (`GIT_TRACE…`).
const KEPT: &str = "GIT_EXEC_PATH GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM
    GIT_ATTR_NOSYSTEM GIT_TEST_ASSUME_DIFFERENT_OWNER";

/// The target of the trace event that is written when a call has ended.
pub const CALLS: &str = "git_frites::git::call";

/// Settings of every call except the user's own commit. git starts no hook, monitor or
/// housekeeping, and its output is the same everywhere. HEAD is a file, because gix finds no
/// repository if HEAD is a link to a branch that is packed.
const QUIET: &str = "core.hooksPath=/dev/null core.fsmonitor=false core.untrackedCache=false
    core.quotePath=true gc.auto=0 maintenance.auto=false diff.suppressBlankEmpty=false
    advice.detachedHead=false submodule.recurse=false core.preferSymlinkRefs=false";

/// Settings of every call, even of the user's own commit and its hooks. They make sure that after a
/// power cut no object, ref or index is without its content. By default git syncs only packs.
pub(super) const DURABLE: [&str; 2] = ["core.fsync=all", "core.fsyncMethod=batch"];

/// Settings of calls on our own worktrees and refs. With them, the user's configuration changes
/// neither trees nor patches.
///
/// `core.autocrlf`, `core.eol` and the user's own attributes belong to the user's checkout. A
/// capture must have the bytes that were written. Also, `* -diff` in the user's attributes must not
/// make every attempt look small. git still obeys a `.gitattributes` in the tree.
pub(super) const EXACT: &str = "core.splitIndex=false core.attributesFile=/dev/null
    core.autocrlf=false core.eol=native core.safecrlf=false core.trustctime=true
    core.checkStat=default core.ignoreStat=false core.logAllRefUpdates=true";

/// The name and the e-mail address of git-frites itself.
pub(super) const OURS: (&str, &str) = ("git-frites", "git-frites@localhost");

/// The commands that compare trees, the index or the checkout.
const COMPARING: [&str; 5] = ["diff", "diff-files", "diff-index", "diff-tree", "status"];

/// The author and committer of captures and records. The user's identity is not used, because the
/// user may have set none.
const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", OURS.0),
    ("GIT_AUTHOR_EMAIL", OURS.1),
    ("GIT_COMMITTER_NAME", OURS.0),
    ("GIT_COMMITTER_EMAIL", OURS.1),
];

/// The pauses in milliseconds before a read or a call is tried again, because another git may just
/// have moved the object. If the object is really missing, they delay the error by a tenth of a
/// second.
pub(super) const PAUSES: [u64; 6] = [1, 2, 5, 10, 20, 50];

/// Does `work`. If `may_change` returns true for the result, does it again after each pause.
pub(super) fn repeat<T>(
    pauses: [u64; 6],
    may_change: impl Fn(&Result<T>) -> bool,
    work: impl Fn() -> Result<T>,
) -> Result<T> {
    for pause in pauses {
        let answer = work();
        if !may_change(&answer) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(pause));
    }
    work()
}

/// The repository that calls of git work on: a git directory, and optionally a work tree and an
/// index. All paths are absolute.
#[derive(Clone, Debug)]
pub struct Git {
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    index: Option<PathBuf>,
    hooks: Option<OsString>,
    overrides: Arc<Overrides>,
    own_overrides: SettingOverrides,
    settings: CallSettings,
    held: Option<Arc<File>>,
    /// The world in which [`Call::confined`] runs git.
    world: Option<Arc<WorldSpec>>,
}

/// Which of the user's settings a call obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallSettings {
    /// Only our fixed settings and our identity. The user's settings are ignored.
    Own,
    /// The settings for the files of the user's checkout, such as `core.autocrlf`. No hook and no
    /// filesystem monitor runs.
    Checkout,
    /// The user's settings for access to other repositories, such as credentials and `url.*`. No
    /// hook runs.
    Transfer,
    /// All settings of the user: hooks, identity, editor.
    User,
}

/// A builder of one call of git.
#[derive(Clone, Debug)]
pub struct Call {
    /// The words that start git in a world (see `src/world`); empty if git runs outside of a world.
    world: Vec<OsString>,
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    /// The directory in which git starts, if it is not the work tree.
    directory: Option<PathBuf>,
    git: Git,
}

impl Git {
    /// git on `git_dir`, without a work tree. Modules outside of `git/` get a `Git` from
    /// [`crate::git::repo::Repo`], which passes its overrides.
    pub(super) fn at(git_dir: &Path, overrides: Arc<Overrides>) -> Self {
        Git {
            git_dir: git_dir.to_owned(),
            work_tree: None,
            index: None,
            hooks: None,
            overrides,
            own_overrides: SettingOverrides::default(),
            settings: CallSettings::Own,
            held: None,
            world: None,
        }
    }

    /// Sets the work tree. Calls run in that directory.
    #[must_use]
    pub fn work_tree(mut self, dir: &Path) -> Self {
        self.work_tree = Some(dir.to_owned());
        self
    }

    pub fn root(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Sets an index other than the git directory's own.
    #[must_use]
    pub fn index(mut self, file: &Path) -> Self {
        self.index = Some(file.to_owned());
        self
    }

    /// Makes calls obey the settings that the user's checkout has for its files (`core.autocrlf`,
    /// …).
    #[must_use]
    pub fn in_checkout(mut self) -> Self {
        self.settings = CallSettings::Checkout;
        self
    }

    /// Makes calls use the user's identity, hooks and configuration, as if the user had typed the
    /// command.
    #[must_use]
    pub fn for_user(mut self) -> Self {
        self.settings = CallSettings::User;
        self
    }

    /// Makes calls reach other repositories as the user would, with the user's credentials. No hook
    /// runs.
    #[must_use]
    pub fn for_transfer(mut self) -> Self {
        self.settings = CallSettings::Transfer;
        self
    }

    /// Sets the directory of hooks, for calls that run hooks.
    #[must_use]
    pub fn hooks(mut self, directory: &OsStr) -> Self {
        self.hooks = Some(directory.to_owned());
        self
    }

    /// Makes this open file the standard input of every call that has no other input. So the git
    /// process holds the file's lock, too.
    #[must_use]
    pub fn holding(mut self, file: Arc<File>) -> Self {
        self.held = Some(file);
        self
    }

    /// Sets the world in which [`Call::confined`] runs git; `None` to run it without a world.
    #[must_use]
    pub fn confined_to(mut self, world: Option<WorldSpec>) -> Self {
        self.world = world.map(Arc::new);
        self
    }

    /// Switches off the filters in the repository's own configuration, because an attempt may have
    /// made the repository.
    pub fn without_own_filters(mut self) -> Result<Self> {
        let list = self.call("config").words("--local -z --name-only --includes");
        let list = list.args(["--get-regexp", "^filter[.]"]);
        for key in nul_separated(&list.output()?.stdout) {
            self.own_overrides.add(&key_text(key), None);
        }
        Ok(self)
    }

    /// The tracked files of the work tree that differ from the index. `submodules` says which
    /// changes of submodules do not count.
    pub fn modified<B: FromIterator<TreePath>>(&self, submodules: &str) -> Result<B> {
        let submodules = format!("--ignore-submodules={submodules}");
        self.call("diff-files").args(["-z", "--name-only", &submodules]).paths()
    }

    /// Corrects the index for files whose times have changed but whose content has not.
    pub fn refresh(&self) -> Result<()> {
        self.call("update-index").args(["-q", "--refresh"]).output().map(drop)
    }

    /// Begins a call with a subcommand or a leading option.
    pub fn call(&self, first: impl AsRef<OsStr>) -> Call {
        let args = vec![first.as_ref().to_owned()];
        Call { world: Vec::new(), args, stdin: None, directory: None, git: self.clone() }
    }
}

impl Call {
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Adds arguments that are given as on a command line, with blanks between them.
    #[must_use]
    pub fn words(self, words: &str) -> Self {
        self.args(words.split(' '))
    }

    /// Sets the standard input; by default it is empty.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Starts git in the user's current directory, if that is in the work tree. git never removes
    /// the directory in which it starts.
    #[must_use]
    pub fn keeping_current_directory(mut self) -> Self {
        let here = std::env::current_dir().ok();
        let root = self.git.work_tree.as_deref().and_then(|root| root.canonicalize().ok());
        self.directory =
            here.zip(root).filter(|(here, root)| here.starts_with(root)).map(|(here, _)| here);
        self
    }

    /// Makes [`Call::output`] run git in the world of its [`Git`], if it has one. The standard
    /// output then has the world's messages, and not git's output.
    pub fn confined(mut self) -> Result<Self> {
        if let Some(world) = &self.git.world {
            let words =
                world.words(LAUNCHER_VERB, "1").context(|| "could not start git".to_owned())?;
            self.world = [process::myself().into()].into_iter().chain(words).collect();
        }
        Ok(self)
    }

    /// Runs the call. An exit code other than 0 is not an error.
    ///
    /// Runs the call again if git did not find an object or could not write one. Another git may
    /// just have moved the object into a pack, or removed the directory for the new object.
    pub fn output(self) -> Result<Output> {
        repeat(
            PAUSES,
            |done| {
                done.as_ref().is_ok_and(|output: &Output| output.code != 0 && may_be_moving(output))
            },
            || self.clone().output_once(),
        )
    }

    fn output_once(mut self) -> Result<Output> {
        debug_assert!(
            !COMPARING.contains(&subcommand(&self.args).as_str())
                || self.args.iter().any(|arg| arg.as_bytes().starts_with(b"--ignore-submodules=")),
            "`submodule.NAME.ignore` could hide submodules from a comparison"
        );
        let started = Instant::now();
        let traces = TraceFile::create()?;
        let temporary = self.confines_filters().then(scratch::directory).transpose()?;
        let expression = self.expression(temporary.as_ref().map(TempDir::path))?;
        let expression = traces.iter().fold(expression, |e, file| file.redirect(e));
        let expression = match (self.stdin.take(), self.held()?) {
            (Some(bytes), _) => expression.stdin_bytes(bytes),
            (None, Some(file)) => expression.stdin_file(file),
            (None, None) => expression.stdin_null(),
        };
        let output = expression.stdout_capture().stderr_capture().run();
        if let Some(traces) = traces {
            traces.print();
        }
        let output = output.map_err(|e| self.not_started(e))?;
        let code = match self.world.is_empty() {
            true => code_of(output.status),
            false => code_in_world(&output.stdout)?,
        };
        self.trace(code, started);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Output { code, stdout: output.stdout, stderr })
    }

    /// Runs the call with the terminal attached, so that git can open an editor or ask for a
    /// passphrase. git's standard output goes to our standard error. Returns the exit code.
    pub fn interactive(self) -> Result<i32> {
        let started = Instant::now();
        let expression = self.expression(None)?.stdout_to_stderr();
        let expression = self.held()?.into_iter().fold(expression, |e, file| e.stdin_file(file));
        let output = expression.run().map_err(|e| self.not_started(e))?;
        let code = code_of(output.status);
        self.trace(code, started);
        Ok(code)
    }

    fn held(&self) -> Result<Option<File>> {
        let held = self.git.held.as_ref().map(|file| file.try_clone()).transpose();
        held.map_err(|e| self.not_started(e))
    }

    /// Writes a trace event about the end of this call. It leaves out our settings (`-c`) and our
    /// environment, because they are nearly the same in each call.
    fn trace(&self, code: i32, started: Instant) {
        if !tracing::enabled!(target: CALLS, tracing::Level::DEBUG) {
            return;
        }
        let words: Vec<String> =
            self.args.iter().map(|a| a.to_string_lossy().escape_debug().to_string()).collect();
        let dir = self.directory.as_ref().or(self.git.work_tree.as_ref());
        let dir = dir.unwrap_or(&self.git.git_dir);
        let ms = started.elapsed().as_secs_f64() * 1e3;
        tracing::debug!(
            target: CALLS,
            exit = code,
            ms = format_args!("{ms:.1}"),
            dir = %dir.display(),
            "git {}",
            shell_words::join(&words)
        );
    }

    /// Runs the call, and returns its standard output. Fails if the exit code is not 0.
    pub fn bytes(self) -> Result<Vec<u8>> {
        let what = subcommand(&self.args);
        let output = self.output()?;
        if output.code == 0 { Ok(output.stdout) } else { Err(output.error(&what)) }
    }

    /// Like [`Call::bytes`], but `None` for the exit code 1. Some commands use this code if they
    /// found nothing.
    pub fn bytes_if_any(self) -> Result<Option<Vec<u8>>> {
        let what = subcommand(&self.args);
        let output = self.output()?;
        match output.code {
            0 => Ok(Some(output.stdout)),
            1 => Ok(None),
            _ => Err(output.error(&what)),
        }
    }

    /// Like [`Call::bytes`], for calls without output.
    pub fn run(self) -> Result<()> {
        self.bytes().map(drop)
    }

    /// Like [`Call::bytes`], for calls that answer with one object id.
    pub fn oid(self) -> Result<Oid> {
        let bytes = self.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        Oid::parse(text.trim()).ok_or_else(|| {
            Error::internal(format!("git answered '{}', not an object id", text.trim()))
        })
    }

    /// Like [`Call::bytes`], for calls that answer with paths (`-z`).
    pub fn paths<B: FromIterator<TreePath>>(self) -> Result<B> {
        Ok(nul_separated(&self.bytes()?).map(TreePath::new).collect())
    }

    /// Like [`Call::bytes`], for calls that answer with one line or path.
    pub fn line(self) -> Result<OsString> {
        let mut bytes = self.bytes()?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Ok(OsString::from_vec(bytes))
    }

    /// True if the filters that git starts are confined. They are confined in our own worktrees,
    /// but not in checkouts of the user.
    fn confines_filters(&self) -> bool {
        let Git { settings, work_tree, overrides, .. } = &self.git;
        *settings == CallSettings::Own && work_tree.is_some() && overrides.confines_filters()
    }

    /// The process to start. `temporary` is the directory for temporary files of filters, if
    /// filters are confined.
    fn expression(&self, temporary: Option<&Path>) -> Result<duct::Expression> {
        let settings = self.settings().into_iter().flat_map(|setting| ["-c".into(), setting]);
        let git = self.world.iter().cloned().chain([program::to_start().into()]);
        let mut words = git.chain(settings).chain(self.args.iter().cloned());
        let program = words.next().unwrap_or_default();
        let env = self.environment(temporary)?;
        let mut expression = duct::cmd(program, words).unchecked();
        if let Some(dir) = self.directory.as_ref().or(self.git.work_tree.as_ref()) {
            expression = expression.dir(dir);
        }
        // In duct the removal of a variable wins over a value that is set later.
        for (name, _) in std::env::vars_os() {
            if !env.contains_key(&name) && self.removes(&name) {
                expression = expression.env_remove(name);
            }
        }
        for (name, value) in env {
            expression = expression.env(name, value);
        }
        Ok(expression)
    }

    /// The settings (`-c`) that git is started with.
    fn settings(&self) -> Vec<OsString> {
        let Git { git_dir, hooks, settings, .. } = &self.git;
        let fixed = match settings {
            CallSettings::Own => [QUIET, EXACT],
            CallSettings::Checkout | CallSettings::Transfer => [QUIET, ""],
            CallSettings::User => ["", ""],
        };
        let fixed = fixed.into_iter().flat_map(str::split_whitespace);
        let fixed = DURABLE.into_iter().chain(fixed);
        let mut all: Vec<OsString> = fixed.map(OsString::from).collect();
        // git sets `core.ignoreCase` when it makes a repository. In a repository that was copied
        // from a Mac, the setting may still be true. Then git would treat `a` and `A` as one file.
        if *settings == CallSettings::Own
            && git_dir.join("HEAD").exists()
            && !git_dir.join("hEAD").exists()
        {
            all.push("core.ignoreCase=false".into());
        }
        if let Some(directory) = hooks {
            let mut setting = OsString::from("core.hooksPath=");
            setting.push(directory);
            all.push(setting);
        }
        all
    }

    /// The variables that git is started with. For `temporary`, see [`Call::expression`].
    fn environment(&self, temporary: Option<&Path>) -> Result<BTreeMap<OsString, OsString>> {
        let Git { git_dir, work_tree, index, overrides, own_overrides, settings, .. } = &self.git;
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.insert("GIT_DIR".into(), git_dir.into());
        env.extend(work_tree.as_ref().map(|dir| ("GIT_WORK_TREE".into(), dir.into())));
        env.extend(index.as_ref().map(|file| ("GIT_INDEX_FILE".into(), file.into())));
        if *settings == CallSettings::User {
            return Ok(env);
        }
        if *settings == CallSettings::Own {
            env.extend(overrides.redirect_environment(git_dir));
        }
        env.insert("LC_ALL".into(), "C".into());
        if *settings != CallSettings::Transfer {
            let fixed = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
            // An attempt can write replace refs and grafts, but git must see the real objects.
            let history = [("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_GRAFT_FILE", "/dev/null")];
            let fixed = fixed.into_iter().chain(history).chain(IDENTITY);
            env.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        }
        // A setting that an attempt planted must decide neither where a transfer goes nor which
        // program makes it.
        let places = work_tree.as_deref().zip(temporary).map(|(dir, temporary)| [dir, temporary]);
        env.extend(overrides.settings_environment(own_overrides, places)?);
        Ok(env)
    }

    fn not_started(&self, e: io::Error) -> Error {
        // If the start fails, the system does not tell whether the program or the directory is
        // missing.
        if let Some(dir) = self.git.work_tree.as_ref().filter(|dir| !dir.is_dir()) {
            return Error::io(format!("could not start git in '{}'", dir.display()), e);
        }
        match e.kind() {
            io::ErrorKind::NotFound => {
                Error::fatal("could not start git: it is not installed").hint("git must be on PATH")
            }
            _ => Error::io("could not start git", e),
        }
    }

    /// True if git does not inherit this variable.
    fn removes(&self, name: &OsStr) -> bool {
        let Some(rest) = name.as_bytes().strip_prefix(b"GIT_") else { return false };
        if [CallSettings::User, CallSettings::Transfer].contains(&self.git.settings) {
            // The user's `git -c …` settings, editor and identity are kept.
            return process::environment::LOCAL_ENV_VARS.split_whitespace().any(|v| name == v)
                && !rest.starts_with(b"CONFIG");
        }
        !rest.starts_with(b"TRACE") && !KEPT.split_whitespace().any(|kept| name == kept)
    }
}

/// The first word that is neither an option nor a setting (`-c`). If there is none, the first
/// argument.
fn subcommand(args: &[OsString]) -> String {
    let mut words = args.iter().map(|a| a.to_string_lossy());
    while let Some(word) = words.next() {
        if word == "-c" {
            words.next();
        } else if !word.starts_with('-') {
            return word.into_owned();
        }
    }
    args.first().map(|a| a.to_string_lossy().into_owned()).unwrap_or_default()
}

fn code_of(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// The exit code of a git that ran in a world, from the world's message about its end.
fn code_in_world(messages: &[u8]) -> Result<i32> {
    match serde_json::from_slice(messages) {
        Ok(WorldMessage::Exited { code: Some(code), .. }) => Ok(code),
        Ok(WorldMessage::Refused { reason } | WorldMessage::NotStarted { reason, .. }) => {
            Err(Error::fatal(format!("could not start git in a world: {reason}")))
        }
        _ => Err(Error::fatal("a git in a world was killed")),
    }
}

/// The paths of a list that git wrote with `-z`.
pub fn nul_separated(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == 0).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_tree_that_is_gone_is_not_taken_for_a_missing_git() {
        let dir = tempfile::tempdir().expect("a directory");
        let gone = dir.path().join("gone");
        let git = Git::at(dir.path(), Arc::default()).work_tree(&gone);
        let error = git.call("version").output().expect_err("no such directory");
        let start = format!("could not start git in '{}'", gone.display());
        assert!(error.message.starts_with(&start), "{}", error.message);
    }

    #[test]
    fn subcommand_is_the_first_word_after_settings() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(subcommand(&words("-c a=b --literal-pathspecs add -A")), "add");
        assert_eq!(subcommand(&words("--version")), "--version");
    }
}
