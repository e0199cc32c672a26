//! The result of a git command, and the cause of its failure.
use crate::error::{Cause, Error};

/// The result of a call.
#[derive(Debug)]
pub struct Output {
    /// The exit code; 128 + n if the signal n ended git.
    pub code: i32,
    /// git's standard output, unchanged.
    pub stdout: Vec<u8>,
    /// git's standard error, for messages.
    pub stderr: String,
}

impl Output {
    /// Makes an error of the result. `what` is the git subcommand that the error names.
    pub fn error(&self, what: &str) -> Error {
        let stderr = self.stderr.trim();
        let mut lines = stderr.lines().filter(|l| !l.starts_with("hint:"));
        // Remarks, e.g. on progress, may come before the error.
        let mut errors =
            lines.clone().filter(|l| l.starts_with("error: ") || l.starts_with("fatal: "));
        let told = errors.next().or_else(|| lines.next());
        let signal = format!("it was ended by signal {}", self.code - 128);
        let without_words = if self.code > 129 { &signal } else { "no message" };
        let first = told.unwrap_or(without_words);
        let first = first.trim_start_matches("fatal: ").trim_start_matches("error: ");
        let failure =
            GitFailure { command: what.to_owned(), code: self.code, stderr: stderr.to_owned() };
        let error = Error::fatal(format!("git {what} failed: {first}"))
            .because(cause_of(self.code, stderr))
            .with_source(failure);
        // 129 is git's usage error: an option that this git does not know.
        match self.code {
            129 => error.hint("git-frites needs git 2.41 or newer; see `git --version`"),
            _ if first == signal => error.hint("nothing is damaged; try again"),
            _ if first == "no message" => {
                error.hint("try again; `git fsck` checks whether the repository is damaged")
            }
            _ if matches!(error.cause, Cause::Locked | Cause::RefMoved) => error.hint(
                "another git process is at work, or has moved the ref: try again; if that process \
                 was killed, remove its `.lock` file",
            ),
            _ => error.hint(format!(
                "the message is git's own; see `git help {}`",
                what.split(' ').next().unwrap_or(what)
            )),
        }
    }
}

/// True if a call did not find an object or could not write one. If another git is collecting
/// garbage, the same call may succeed a moment later.
pub(super) fn may_be_moving(output: &Output) -> bool {
    cause_of(output.code, &output.stderr) == Cause::Damaged
        || output.stderr.lines().any(|line| {
            line.ends_with("No such file or directory")
                && ["unable to write", "unable to create temporary file", "unable to open"]
                    .iter()
                    .any(|phrase| says(line, phrase))
        })
}

/// A git command that failed, with all that it printed to standard error.
#[derive(Debug, thiserror::Error)]
#[error("`git {command}` exited with {code}: {stderr}")]
struct GitFailure {
    command: String,
    code: i32,
    stderr: String,
}

/// Phrases in git's messages that tell the cause of a failure, with `|` between them. Our own calls
/// run with `LC_ALL=C`. The first cause that matches is used, because a full disk can also leave
/// unreadable objects behind.
///
/// `ID` stands for an object id. Without `ID`, the phrase `Could not read` would also match
/// `Could not read from remote repository`. git prints that if the remote is offline during a lazy
/// fetch.
const CAUSES: [(Cause, &str); 4] = [
    (Cause::StorageFull, "No space left on device|Disk quota exceeded"),
    (Cause::RefMoved, "but expected|reference already exists|unable to resolve reference"),
    (Cause::Locked, ".lock': File exists"),
    (
        Cause::Damaged,
        "\
            invalid object|bad object|bad tree object|bad signature|corrupt loose object|\
            corrupt tree file|Could not read ID|could not parse|failed to unpack tree object|\
            index file corrupt|index file smaller than expected|is corrupt|loose object|\
            missing blob|missing tree|missing commit|not a valid object|unable to find ID|\
            unable to read ID|unable to read blob|unable to read sha1 file|unable to read tree|\
            unable to unpack",
    ),
];

/// The cause of a failed call, from its exit code and git's messages.
fn cause_of(code: i32, stderr: &str) -> Cause {
    // These are 128 + SIGINT, SIGKILL and SIGTERM. 128 + SIGHUP (129) is not listed, because git
    // also exits with 129 after a usage error.
    if matches!(code, 130 | 137 | 143) {
        return Cause::Interrupted;
    }
    let messages: Vec<&str> = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")))
        .collect();
    let named = CAUSES.iter().find(|(_, phrases)| {
        phrases.split('|').any(|phrase| messages.iter().any(|message| says(message, phrase)))
    });
    named.map_or(Cause::GitExit, |(cause, _)| cause.clone())
}

/// True if a message has this phrase outside of quotation marks. git puts names in quotation marks.
fn says(message: &str, phrase: &str) -> bool {
    let before_id = phrase.strip_suffix("ID");
    let phrase = before_id.unwrap_or(phrase);
    message.match_indices(phrase).any(|(at, _)| {
        let is_quoted = !phrase.contains('\'') && message[..at].matches('\'').count() % 2 == 1;
        let rest = message[at + phrase.len()..].bytes();
        let digits = rest.take_while(u8::is_ascii_hexdigit).count();
        !is_quoted && (before_id.is_none() || [40, 64].contains(&digits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_of_a_failed_call_is_what_git_names() {
        let cases = [
            (
                128,
                "error: invalid object 100644 7898 for 'a'\nfatal: git-write-tree: error building trees",
                Cause::Damaged,
            ),
            (128, "fatal: missing blob object '7898'", Cause::Damaged),
            (128, "fatal: .git/index: index file smaller than expected", Cause::Damaged),
            (128, "fatal: Unable to create '/r/.git/index.lock': File exists.", Cause::Locked),
            (
                128,
                "fatal: cannot lock ref 'refs/heads/x': is at b92b but expected 1111",
                Cause::RefMoved,
            ),
            (
                128,
                "fatal: cannot lock ref 'refs/heads/x': reference already exists",
                Cause::RefMoved,
            ),
            (
                128,
                "fatal: unable to write loose object file: No space left on device",
                Cause::StorageFull,
            ),
            (128, "fatal: unable to find 7898192261cfa3b8ec0a0b1a2f9c3e3c6f8e2b4d", Cause::Damaged),
            (128, "error: Could not read 7898192261cfa3b8ec0a0b1a2f9c3e3c6f8e2b4d", Cause::Damaged),
            (128, "fatal: index file corrupt", Cause::Damaged),
            (128, "fatal: Could not read from remote repository.", Cause::GitExit),
            (128, "fatal: unable to find remote helper for 'frob'", Cause::GitExit),
            (128, "error: open(\"src/corrupt.rs\"): Permission denied", Cause::GitExit),
            (128, "fatal: pathspec 'what is corrupt' did not match any files", Cause::GitExit),
            (128, "warning: bad object", Cause::GitExit),
            (130, "", Cause::Interrupted),
            (137, "", Cause::Interrupted),
            (129, "usage: git frob", Cause::GitExit),
            (1, "fatal: something new", Cause::GitExit),
        ];
        for (code, stderr, cause) in cases {
            assert_eq!(cause_of(code, stderr), cause, "{stderr}");
        }
    }

    #[test]
    fn error_of_a_call_keeps_all_that_git_printed() {
        let stderr = "error: bad object\nfatal: gone".to_owned();
        let error = Output { code: 128, stdout: Vec::new(), stderr }.error("read-tree");
        assert_eq!(error.message, "git read-tree failed: bad object");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let all = "`git read-tree` exited with 128: error: bad object\nfatal: gone";
        assert_eq!(source.as_deref(), Some(all));
    }
}
