//! A candidate's command: its arguments with their placeholders, its prompt and its environment.
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::git::repo::Repo;
use crate::model::candidate::Candidate;
use crate::model::env;
use crate::model::name::Name;
use crate::model::run::{Assignment, CODEX_SANDBOX, PROMPT, PROMPT_FILE, Run};
use crate::process;
use crate::store::candidate::CandidateRef;

/// The length of the longest argument that Linux accepts: 128 KiB (MAX_ARG_STRLEN) without the zero
/// byte at the end.
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// The command that runs in one candidate's worktree.
#[derive(Clone, Debug)]
pub struct CandidateCommand {
    /// The agent's name, if the command is an agent.
    pub agent: Option<Name>,
    /// The program and its arguments. Placeholders such as `{prompt}` are not filled in yet.
    pub argv: Vec<OsString>,
    /// True if the command gets the prompt on its standard input.
    pub stdin: bool,
    /// The text that is put before the prompt, e.g. the way in which this candidate is to solve the
    /// task.
    pub framing: Option<String>,
    /// The prompt. Many candidates can share it.
    pub prompt: Option<Arc<[u8]>>,
}

impl CandidateCommand {
    /// The agent's name, or else the command, in the form that [`Run::maker`] returns.
    pub fn maker(&self) -> String {
        match &self.agent {
            Some(agent) => agent.to_string(),
            None => words(&self.argv).join(" "),
        }
    }

    /// The command line, quoted for a shell.
    pub fn line(&self) -> String {
        shell_words::join(words(&self.argv))
    }

    /// A command that the user typed. It gets the prompt on its standard input, unless an argument
    /// has a placeholder for the prompt.
    pub fn typed(argv: &[OsString], prompt: Option<Arc<[u8]>>) -> CandidateCommand {
        let stdin = !argv.iter().any(|arg| holds(arg, PROMPT) || holds(arg, PROMPT_FILE));
        CandidateCommand { agent: None, argv: argv.to_vec(), stdin, framing: None, prompt }
    }

    /// A command that the user typed, in the form in which a record stores it.
    pub fn to_assignment(argv: &[OsString]) -> Assignment {
        let command = words(argv);
        let stdin = CandidateCommand::typed(argv, None).stdin;
        Assignment { agent: None, command, stdin, framing: None }
    }

    /// The command that one candidate's assignment describes.
    pub fn assigned(assignment: &Assignment, prompt: Option<Arc<[u8]>>) -> CandidateCommand {
        let Assignment { agent, command, stdin, framing } = assignment.clone();
        let argv = command.into_iter().map(OsString::from).collect();
        CandidateCommand { agent, argv, stdin, framing, prompt }
    }

    /// The candidate's command according to the run's record; `None` if a person works in the
    /// worktree.
    pub fn recorded(repo: &Repo, candidate: CandidateRef<'_>) -> Result<Option<CandidateCommand>> {
        let CandidateRef { run, name, .. } = candidate;
        let prompt = run.prompt(name).map(|blob| repo.blob(blob)).transpose()?;
        let prompt: Option<Arc<[u8]>> = prompt.map(Into::into);
        if let Some(assignment) = run.agents.get(name) {
            return Ok(Some(CandidateCommand::assigned(assignment, prompt)));
        }
        let argv: Vec<OsString> = run.command.iter().map(OsString::from).collect();
        Ok(run.has_command(name).then(|| CandidateCommand::typed(&argv, prompt)))
    }

    /// Fails if the command needs a prompt and has none. Also fails if the prompt is to be an
    /// argument and cannot be one, e.g. because it is too long.
    pub fn require_prompt(&self) -> Result<()> {
        let Some(prompt) = self.prompt_text() else { return self.require_no_prompt() };
        // The length of the longest argument, including its text around the prompt.
        let values = [(PROMPT.as_bytes(), prompt.as_slice())];
        let lengths = self
            .argv
            .iter()
            .filter(|arg| holds(arg, PROMPT))
            .map(|arg| fill_in(arg, &values).len());
        let Some(length) = lengths.max() else { return Ok(()) };
        let why = if prompt.contains(&0) {
            "it holds a NUL byte".to_owned()
        } else if length > LONGEST_ARGUMENT {
            format!("it would have {length} bytes, and {LONGEST_ARGUMENT} is the limit")
        } else {
            return Ok(());
        };
        Err(Error::fatal(format!("the prompt cannot be an argument: {why}"))
            .hint("let the command read the prompt from {prompt_file} or from its standard input"))
    }

    /// Fails if the command needs a prompt. Without a prompt, an agent would wait for a task, or
    /// invent one.
    fn require_no_prompt(&self) -> Result<()> {
        let placeholder = [PROMPT, PROMPT_FILE]
            .into_iter()
            .find(|key| self.argv.iter().any(|arg| holds(arg, key)));
        let why = match (&self.agent, placeholder) {
            (Some(agent), key) if self.stdin || key.is_some() => {
                format!("the agent '{agent}' needs a prompt")
            }
            (_, Some(key)) => format!("the command has {key} in it, and there is no prompt"),
            _ => return Ok(()),
        };
        Err(Error::usage(why).hint(
            "say what is to be done: `-p TEXT`, `--prompt-file FILE`, or `-p -` to read it from a pipe",
        ))
    }

    /// Fails if the program is not on PATH, because the command would then fail in every worktree.
    pub fn require_program(&self) -> Result<()> {
        let Some(program) = self.argv.first() else { return Ok(()) };
        let bytes = program.as_bytes();
        // With a slash, the program is a path. But a whole shell command line that was typed as one
        // word can contain a slash, too.
        let is_path =
            bytes.contains(&b'/') && (!bytes.contains(&b' ') || Path::new(program).exists());
        if is_path || process::on_path(program) {
            return Ok(());
        }
        let program = program.to_string_lossy();
        Err(match &self.agent {
            None => Error::fatal(format!("'{program}' is not on PATH"))
                .hint("a command after -- is a program and its arguments; for a shell line write `-- sh -c '…'`"),
            Some(agent) => {
                Error::fatal(format!("the agent '{agent}' cannot start: '{program}' is not on PATH")).hint(format!(
                    "install it, or set its command: `git config frites.agents.{agent}.command 'PROGRAM ARGUMENTS'`"
                ))
            }
        })
    }

    /// Fails if the recorded command differs from the typed one, because the typed one is not
    /// UTF-8. A different command would then run.
    pub fn require_exact(&self) -> Result<()> {
        let words = words(&self.argv);
        match words.iter().find(|word| !is_exact(word)) {
            None => Ok(()),
            Some(word) => Err(Error::fatal(format!(
                "'{word}' in the command is not UTF-8, so the command cannot run again"
            ))
            .hint("give it anew: `git frites retry RUN/CAND -- CMD`, or put it into a script")),
        }
    }

    /// The framing, if any, and then the prompt.
    pub fn prompt_text(&self) -> Option<Vec<u8>> {
        let prompt = self.prompt.as_ref()?;
        Some(match &self.framing {
            Some(framing) => [framing.trim_end().as_bytes(), b"\n\n", prompt].concat(),
            None => prompt.to_vec(),
        })
    }
}

/// The words of a command in the form in which a record stores them. Bytes that are not UTF-8 are
/// replaced.
pub fn words(argv: &[OsString]) -> Vec<String> {
    argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// True if a word in a record is the word that was typed, i.e. no byte of it was replaced.
pub fn is_exact(word: &str) -> bool {
    !word.contains(char::REPLACEMENT_CHARACTER)
}

/// The values that a command gets through placeholders in its arguments and through environment
/// variables (git-frites-spawn(1)).
pub struct CommandContext<'a> {
    pub run: &'a Run,
    /// The candidate's record.
    pub candidate: &'a Candidate,
    /// The candidate's worktree.
    pub dir: &'a Path,
    pub prompt: Option<&'a [u8]>,
    /// The file that holds the prompt.
    pub prompt_file: &'a Path,
    /// The number of candidates' commands inside which this process runs; `None` if a person
    /// started the command, not an attempt.
    pub depth: Option<u32>,
    /// True if a guard keeps the command from writing to the repository and to the user's files.
    pub is_guarded: bool,
}

impl CommandContext<'_> {
    /// The arguments, with their placeholders filled in.
    pub fn argv(&self, argv: &[OsString]) -> Vec<OsString> {
        let index = self.candidate.index.to_string();
        let sandbox = if self.is_guarded { "danger-full-access" } else { "workspace-write" };
        let mut values: Vec<(&[u8], &[u8])> = vec![
            (CODEX_SANDBOX.as_bytes(), sandbox.as_bytes()),
            (b"{run}", self.run.run.as_str().as_bytes()),
            (b"{candidate}", self.candidate.candidate.as_str().as_bytes()),
            (b"{index}", index.as_bytes()),
            (b"{worktree}", self.dir.as_os_str().as_bytes()),
        ];
        if let Some(prompt) = self.prompt {
            values.push((PROMPT.as_bytes(), prompt));
            values.push((PROMPT_FILE.as_bytes(), self.prompt_file.as_os_str().as_bytes()));
        }
        let mut argv: Vec<OsString> = argv.iter().map(|arg| fill_in(arg, &values)).collect();
        if let Some(program) = argv.first_mut()
            && let Some(file) = users_program(program)
        {
            *program = file.into();
        }
        argv
    }

    /// The environment variables that describe the run and the candidate, e.g. `FRITES_RUN`.
    pub fn variables(&self) -> Vec<(String, OsString)> {
        let mut variables: Vec<(&str, OsString)> = vec![
            (env::RUN, self.run.run.as_str().into()),
            (env::CANDIDATE, self.candidate.candidate.as_str().into()),
            (env::INDEX, self.candidate.index.to_string().into()),
            (env::COUNT, self.run.candidates.len().to_string().into()),
            (env::BASE, self.run.base.as_str().into()),
            (env::WORKTREE, self.dir.into()),
        ];
        if let Some(depth) = self.depth {
            variables.push((env::DEPTH, depth.saturating_add(1).to_string().into()));
        }
        if let Some(port) = self.candidate.port {
            variables.push((env::PORT, port.to_string().into()));
        }
        if self.prompt.is_some() {
            variables.push((env::PROMPT_FILE, self.prompt_file.into()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The program of a command as an absolute path, if it is a path to a file of the user. For
/// example, `./codemod` means the file in the user's current directory. `None` if that file does
/// not exist; then `./codemod` means the file in the worktree.
pub fn users_program(program: &OsStr) -> Option<PathBuf> {
    let is_path = program.as_bytes().contains(&b'/');
    let file = is_path.then(|| std::path::absolute(program).ok()).flatten()?;
    file.is_file().then_some(file)
}

fn holds(arg: &OsStr, key: &str) -> bool {
    arg.as_bytes().windows(key.len()).any(|window| window == key.as_bytes())
}

/// Replaces placeholders in one pass, so that text in a value is not replaced if it looks like a
/// placeholder.
fn fill_in(arg: &OsStr, values: &[(&[u8], &[u8])]) -> OsString {
    let mut rest = arg.as_bytes();
    let mut filled = Vec::new();
    while let Some((&first, tail)) = rest.split_first() {
        match values.iter().find(|(key, _)| rest.starts_with(key)) {
            Some((key, value)) => {
                filled.extend_from_slice(value);
                rest = &rest[key.len()..];
            }
            None => {
                filled.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(argv: &[&str], prompt: Option<&str>) -> CandidateCommand {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        CandidateCommand::typed(&argv, prompt.map(|text| text.as_bytes().into()))
    }

    #[test]
    fn fill_in_replaces_each_placeholder_once() {
        let values: [(&[u8], &[u8]); 2] = [(b"{run}", b"{index}"), (b"{index}", b"2")];
        assert_eq!(fill_in(OsStr::new("a{run}b{index}{other}"), &values), "a{index}b2{other}");
    }

    #[test]
    fn a_typed_command_reads_the_prompt_unless_an_argument_takes_it() {
        assert!(typed(&["cat"], Some("x")).stdin);
        assert!(!typed(&["echo", "say {prompt}"], Some("x")).stdin);
        assert!(!typed(&["cat", "{prompt_file}"], Some("x")).stdin);
    }

    #[test]
    fn require_prompt_refuses_a_placeholder_without_a_prompt() {
        assert!(typed(&["cat"], None).require_prompt().is_ok());
        assert!(typed(&["echo", "{prompt}"], None).require_prompt().is_err());
        let agent = CandidateCommand { agent: "bot".parse().ok(), ..typed(&["bot"], None) };
        assert!(agent.require_prompt().is_err(), "it would wait for a task");
    }

    #[test]
    fn require_prompt_refuses_a_prompt_that_no_argument_can_hold() {
        let fits = "x".repeat(LONGEST_ARGUMENT - 1);
        assert!(typed(&["echo", "-{prompt}"], Some(&fits)).require_prompt().is_ok());
        assert!(typed(&["echo", "--{prompt}"], Some(&fits)).require_prompt().is_err());
        assert!(typed(&["echo", "{prompt}"], Some("a\0b")).require_prompt().is_err());
        assert!(typed(&["cat"], Some("a\0b")).require_prompt().is_ok(), "a pipe can hold it");
    }

    #[test]
    fn the_framing_stands_before_the_prompt() {
        let command = CandidateCommand {
            framing: Some("Be quick.\n".into()),
            ..typed(&["bot"], Some("fix"))
        };
        assert_eq!(command.prompt_text().as_deref(), Some(&b"Be quick.\n\nfix"[..]));
    }
}
