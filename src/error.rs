//! The program's error type: kind, cause, message, hints and source; and the table of exit codes.
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;

/// The exit codes of DESIGN.md §2, by name. Scripts rely on them.
pub mod exit {
    /// Done; for `judge`, a verified winner.
    pub const OK: u8 = 0;
    /// The verdict is a near-miss, nothing verified can land, work would be lost, or there are
    /// conflicts.
    pub const NO: u8 = 1;
    /// Usage: an invalid option or name.
    pub const USAGE: u8 = 2;
    /// The verdict is not verified, and none of the other codes fits.
    pub const UNVERIFIED: u8 = 3;
    /// No candidate is usable.
    pub const UNUSABLE: u8 = 4;
    /// Fatal, as in git.
    pub const FATAL: u8 = 128;
    /// The reader of standard output went away: 128 + SIGPIPE, as a shell reports it for git.
    pub const PIPE: u8 = 128 + 13;

    /// The meaning of each code, for the manual.
    pub const TABLE: &[(&str, &str)] = &[
        (
            "`0`",
            "Done. `judge`: a verified winner. `spawn`: at least one candidate is open or usable.",
        ),
        (
            "`1`",
            "The decision is `near-miss`, nothing verified can land, work would be lost, there are \
             conflicts, or with `diff --exit-code` there are differences.",
        ),
        ("`2`", "Usage: an invalid option or name."),
        (
            "`3`",
            "Any other verdict that is not verified. For example, there was no command to run.",
        ),
        ("`4`", "No candidate is usable."),
        (
            "`128`",
            "Fatal, as in git: not a repository, an unknown run, local changes on `apply`, and so on.",
        ),
        (
            "`128+`*n*",
            "Ended by signal *n*: 130 after Ctrl-C, 141 if the reader of the output went away.",
        ),
    ];
}

/// The kind of an error. It decides the first word of the message and the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is valid, and the result is negative.
    No,
    /// The command line is invalid.
    Usage,
    /// The command cannot do its work.
    Fatal,
    /// The reader of standard output went away; no message is shown.
    Pipe,
}

impl ErrorKind {
    /// The exit code of this kind.
    pub fn code(self) -> u8 {
        match self {
            ErrorKind::No => exit::NO,
            ErrorKind::Usage => exit::USAGE,
            ErrorKind::Fatal => exit::FATAL,
            ErrorKind::Pipe => exit::PIPE,
        }
    }

    /// The word before the message, as git writes it.
    pub fn word(self) -> &'static str {
        match self {
            ErrorKind::No => "error",
            _ => "fatal",
        }
    }
}

/// The reason for an error, if other code depends on it. Such code tries again, or adds a hint that
/// names the next command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// git failed, and its message names none of the reasons below.
    GitExit,
    /// Another process holds a lock file of git's.
    Locked,
    /// Another process moved a ref first.
    RefMoved,
    /// Git objects or an index are missing or broken.
    Damaged,
    /// No space is left on the disk, or in the user's quota.
    StorageFull,
    /// A signal ended git.
    Interrupted,
    /// A file that should exist does not.
    NotFound,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The repository has no run yet.
    NoRun,
    /// No run has the given name or a similar one.
    UnknownRun,
    /// A new run cannot get this name, because a run has it already.
    RunExists(String),
    /// The commands of this run are still running in another process.
    RunBusy(String),
    /// A worktree has work that cannot be captured, and its removal would lose that work.
    Uncapturable,
    /// A command of the user's ended, but its exit code is not known.
    EndUnknown,
    /// Anything else.
    #[default]
    Other,
}

/// An error as the user reads it: one line of message, then hints that say what to type.
///
/// Messages are lowercase fragments without a full stop.
#[derive(Debug)]
pub struct Error {
    /// Decides the exit code.
    pub kind: ErrorKind,
    /// Decides whether a retry can help, and which hint is added.
    pub cause: Cause,
    /// One line; control characters in it are shown as escapes.
    pub message: String,
    /// Each becomes a `hint:` line.
    pub hints: Vec<String>,
    /// The error that caused this one, in full. The message quotes at most the first line of it.
    source: Option<Box<dyn StdError + Send + Sync>>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` with a `message` and no hint yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Error { kind, cause: Cause::Other, message, hints: Vec::new(), source: None }
    }

    /// Fatal (128): the work cannot be done.
    pub fn fatal(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Fatal, message)
    }

    /// Usage (2): a flag or a name is invalid.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Usage, message)
    }

    /// Error (1): the result is negative.
    pub fn no(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::No, message)
    }

    /// Fatal: an operation of the operating system failed. `what` says which operation.
    pub fn io(what: impl fmt::Display, e: io::Error) -> Self {
        let cause = match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Cause::StorageFull,
            io::ErrorKind::NotFound => Cause::NotFound,
            io::ErrorKind::ReadOnlyFilesystem => Cause::ReadOnly,
            _ => Cause::Other,
        };
        let error = Error::fatal(format!("{what}: {}", describe(&e))).because(cause);
        match advice(&e) {
            Some(hint) => error.hint(hint).with_source(e),
            None => error.with_source(e),
        }
    }

    /// Fatal: an object or a file in the repository is damaged.
    pub fn damaged(message: impl Into<String>) -> Self {
        Error::fatal(message)
            .because(Cause::Damaged)
            .hint("the repository may be damaged: `git fsck` checks it")
    }

    /// Fatal: a bug in git-frites.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::fatal(message)
            .hint("this is a bug in git-frites: please report it, with the commands that led to it")
    }

    /// Adds a `hint:` line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// Sets the error that this one came from.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Puts `what: ` before the message, to say which step failed.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Adds the path or the step to an I/O error.
pub trait IoContext<T>: Sized {
    /// Turns an I/O error into a fatal one that begins with `what`.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;

    /// Turns an I/O error into a fatal one: `could not ACT 'PATH'`.
    fn could_not(self, act: &str, path: &Path) -> Result<T> {
        self.context(|| format!("could not {act} '{}'", path.display()))
    }
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::io(what(), e))
    }
}

/// Accepts that a file does not exist.
pub trait IfExists<T> {
    /// Turns the error that a file does not exist into `None`.
    fn if_exists(self) -> io::Result<Option<T>>;
}

impl<T, E: Into<io::Error>> IfExists<T> for std::result::Result<T, E> {
    fn if_exists(self) -> io::Result<Option<T>> {
        match self.map_err(Into::into) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            done => done.map(Some),
        }
    }
}

/// A hint for an I/O error; `None` for a full disk, whose hint names a command and is added later.
fn advice(e: &io::Error) -> Option<&'static str> {
    use io::ErrorKind::*;
    match e.kind() {
        StorageFull | QuotaExceeded => None,
        ReadOnlyFilesystem => Some("that file system is mounted read-only"),
        PermissionDenied => Some("check the owner and the permissions with `ls -ld`"),
        InvalidData | IsADirectory => {
            Some("another kind of file is in its place: check with `ls -ld`, and move it away")
        }
        NotFound => Some("check its name; if another process has removed it, try again"),
        _ => Some("try again"),
    }
}

/// The text of an I/O error without Rust's `(os error 2)`, as git prints it.
pub fn describe(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_error_keeps_its_cause_and_its_source() {
        let full = Error::io("could not write 'x'", io::Error::from_raw_os_error(28));
        assert_eq!(full.cause, Cause::StorageFull);
        assert_eq!(full.message, "could not write 'x': No space left on device");
        let source = full.source().map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("No space left on device (os error 28)"));
    }
}
