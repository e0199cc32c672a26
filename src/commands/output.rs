//! `git frites output`: shows what a command printed.
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use strum::IntoStaticStr;

use crate::commands::{answer_paged, resume_hint, values};
use crate::complete;
use crate::error::{Error, IoContext, Result, exit};
use crate::model::address::Address;
use crate::model::candidate::State;
use crate::model::plain;
use crate::ops::corrected;
use crate::ops::session::ReadSession;
use crate::process::{Follower, running};
use crate::store::logs::{self, LogPlace};
use crate::store::select::{Matching, Scope, Selection};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without a command, the most telling output is shown: that of the last command that judged the candidate, or \
else the attempt's own. For RUN, each candidate's output is shown under a line with its name and file. \
On a terminal the output is paged, and escape sequences are left out; elsewhere it is printed as \
it is."
)]
pub struct OutputArgs {
    /// Candidate, one of its iterations, the base, or a run  [default: the newest run]
    #[arg(
        value_name = "RUN/CAND[@ITERATION]|RUN/@base",
        value_parser = parse_place,
        add = complete::by(complete::outputs),
    )]
    pub place: Option<OutputPlace>,
    /// Command whose output is shown
    #[arg(value_name = "COMMAND")]
    pub command: Option<LoggedCommand>,
    /// Go on showing the output until the command ends
    #[arg(short, long)]
    pub follow: bool,
    /// Show only so many lines at the end
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub tail: Option<u32>,
}

/// The commands that have a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum LoggedCommand {
    /// The attempt's own command
    Agent,
    /// The setup of a worktree or a checkout
    Setup,
    /// The oracle's build
    Build,
    /// The oracle's lint
    Lint,
    /// The oracle's test
    Test,
}

/// The first argument: an address, or the base of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPlace {
    /// A run, a candidate or one of its iterations.
    Address(Address),
    /// The base of this run; with `None`, of the newest run.
    Base(Option<Address>),
}

fn parse_place(text: &str) -> Result<OutputPlace> {
    match text.strip_suffix("@base") {
        Some("") => Ok(OutputPlace::Base(None)),
        Some(run) if run.ends_with('/') => {
            values::address(&run[..run.len() - 1]).map(|run| OutputPlace::Base(Some(run)))
        }
        _ => values::address(text).map(OutputPlace::Address),
    }
}

/// A log to show.
struct Shown {
    /// The place and the command in words, such as `1/c1 test`.
    title: String,
    path: PathBuf,
}

pub fn run(session: &ReadSession, args: &OutputArgs) -> Result<u8> {
    let (place, command) = interpreted_arguments(session, args)?;
    let shown = match place {
        Some(OutputPlace::Base(run)) => {
            let run = session.store.select(run.as_ref(), Scope::Run, Matching::Prefix)?.run;
            let place = session.store.base_logs(&run.run);
            choose(session, &format!("{run}/@base"), &place, None, command)?
        }
        Some(OutputPlace::Address(address)) => of_address(session, Some(&address), command)?,
        None => of_address(session, None, command)?,
    };
    match (args.follow, shown.as_slice()) {
        (false, _) => print(session, &shown, args.tail)?,
        (true, [one]) => follow(session, one, args.tail)?,
        // A command runs on the tree with the base's tests only after it has passed on the
        // candidate's own tree. So only the second log still grows.
        (true, [first, second])
            if logs::with_base_tests(&first.path).as_ref() == Some(&second.path) =>
        {
            follow(session, second, args.tail)?;
        }
        (true, _) => {
            return Err(Error::usage("-f follows the output of one candidate")
                .hint("name it: `git frites output -f RUN/CAND`"));
        }
    }
    Ok(exit::OK)
}

/// The place and the command that the arguments mean. If there is only one word, and it names a
/// command but neither a run nor a candidate, it is the command.
fn interpreted_arguments(
    session: &ReadSession,
    args: &OutputArgs,
) -> Result<(Option<OutputPlace>, Option<&'static str>)> {
    let command = args.command.map(<&str>::from);
    if let (Some(OutputPlace::Address(Address::Word { word, iteration: None })), None) =
        (&args.place, command)
        && let Ok(lone) = LoggedCommand::from_str(word.as_str(), false)
    {
        let runs = session.store.runs()?;
        let is_name = runs.iter().any(|run| run.run == *word)
            || runs.last().is_some_and(|newest| newest.candidates.contains(word));
        if !is_name {
            return Ok((None, Some(lone.into())));
        }
    }
    Ok((args.place.clone(), command))
}

fn of_address(
    session: &ReadSession,
    address: Option<&Address>,
    command: Option<&'static str>,
) -> Result<Vec<Shown>> {
    let Selection { run, candidate, iteration } =
        session.store.select(address, Scope::Iteration, Matching::Prefix)?;
    let one = match (&candidate, run.candidates.as_slice()) {
        (Some(name), _) | (None, [name]) => Some(name),
        _ => None,
    };
    if let Some(name) = one {
        let candidate = session.store.candidate(&run, name);
        corrected::tell(&session.ui, candidate)?;
        let title = candidate.address();
        let shown = choose(session, &title, &candidate.logs(), iteration, command);
        let record = candidate.record()?;
        let is_waiting = matches!(record.state, State::Cancelled | State::Limited);
        return match shown {
            Err(_) if is_waiting && record.started.is_none() => {
                Err(Error::fatal(format!("{title} has no output: its command was not started"))
                    .hint(resume_hint(&run)))
            }
            shown => shown,
        };
    }
    let mut all = Vec::new();
    for candidate in session.store.candidates(&run) {
        let shown = choose(session, &candidate.address(), &candidate.logs(), None, command);
        all.extend(shown.into_iter().flatten());
    }
    if all.is_empty() {
        return Err(no_output_error(&run.run.to_string(), command));
    }
    Ok(all)
}

/// The newest log of a command in `place`. Without a command, the log of the running command, or
/// else of the command whose log tells most. If the command also ran on the tree with the base's
/// tests, that log is added: the command may have failed only there.
fn choose(
    session: &ReadSession,
    title: &str,
    place: &LogPlace,
    iteration: Option<u32>,
    command: Option<&'static str>,
) -> Result<Vec<Shown>> {
    let asked = command;
    let title = iteration.map_or_else(|| title.to_owned(), |n| format!("{title}@{n}"));
    let command = asked.or_else(|| place.running()).or_else(|| place.telling(iteration));
    let logs = command.map(|command| place.all(command, iteration)).unwrap_or_default();
    let (Some(command), Some(newest)) = (command, logs.first()) else {
        return Err(no_output_error(&title, asked));
    };
    if iteration.is_none()
        && newest.path != place.newest(command)
        && let Some(of) = newest.iteration
    {
        session.ui.note(format!(
            "{command} has not run on the newest state of {title}: this is its output on @{of}"
        ));
    }
    let older: Vec<String> = logs
        .iter()
        .skip(1)
        .filter(|log| log.iteration == newest.iteration && log.iteration.is_some())
        .map(|log| format!("'{}'", log.path.display()))
        .collect();
    if !older.is_empty() {
        session.ui.note(format!("earlier output on the same iteration: {}", older.join(", ")));
    }
    let title = format!("{title} {command}");
    let second = logs::with_base_tests(&newest.path)
        .map(|path| Shown { title: format!("{title}, with the base's tests"), path });
    let first = Shown { title, path: newest.path.clone() };
    Ok([first].into_iter().chain(second).collect())
}

fn no_output_error(title: &str, command: Option<&str>) -> Error {
    let what = command.map_or("no output".to_owned(), |command| format!("no output of {command}"));
    Error::fatal(format!("{title} has {what}"))
        .hint("`git frites status` shows what ran; `git frites judge` runs the oracle's commands")
}

fn print(session: &ReadSession, shown: &[Shown], tail: Option<u32>) -> Result<()> {
    let mut text = Vec::new();
    for one in shown {
        if shown.len() > 1 {
            text.extend(format!("==> {}: {} <==\n", one.title, one.path.display()).bytes());
        }
        let bytes = Follower::new(&one.path).read().context(|| could_not_read(one))?;
        let bytes = last_lines(&bytes, tail);
        text.extend(if session.ui.on_terminal() { plain_text(bytes) } else { bytes.to_vec() });
        if shown.len() > 1 && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    if text.is_empty() {
        shown.iter().for_each(|one| session.ui.note(format!("{} printed nothing", one.title)));
    }
    answer_paged(&session.ui, &session.repo, &text)
}

/// The time between two reads of a log that grows.
const PAUSE: Duration = Duration::from_millis(100);

/// Shows a log until the command that writes it has ended.
fn follow(session: &ReadSession, one: &Shown, tail: Option<u32>) -> Result<()> {
    let mut log = Follower::new(&one.path);
    let mut waiting: Vec<u8> = Vec::new();
    let mut tail = tail;
    loop {
        // Before each read, check whether the command has ended, so that the last read gets
        // everything.
        let is_written = running::is_written(&one.path);
        let new = log.read().context(|| could_not_read(one))?;
        waiting.extend_from_slice(last_lines(&new, tail.take()));
        // On a terminal, show a line only when it is complete: until then, escape sequences and
        // carriage returns may change it.
        let whole = match session.ui.on_terminal() && is_written {
            true => waiting.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            false => waiting.len(),
        };
        let rest = waiting.split_off(whole);
        if !waiting.is_empty() {
            let text =
                if session.ui.on_terminal() { plain_text(&waiting) } else { waiting.clone() };
            session.ui.answer(text);
            session.ui.written()?;
        }
        waiting = rest;
        if !is_written {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

fn could_not_read(one: &Shown) -> String {
    format!("could not read '{}'", one.path.display())
}

/// The last `count` lines of a text; all lines if `count` is `None`.
fn last_lines(text: &[u8], count: Option<u32>) -> &[u8] {
    let Some(count) = count else { return text };
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = ends.map(|(at, _)| at + 1).nth(count as usize - 1).unwrap_or(0);
    &text[start..]
}

/// A text without escape sequences and other control characters.
fn plain_text(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(|line| plain::line(line) + "\n");
    lines.collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_is_named_after_its_run_or_alone() {
        let read = |text| parse_place(text).ok();
        let run = |text: &str| text.parse::<Address>().ok();
        assert_eq!(read("@base"), Some(OutputPlace::Base(None)));
        assert_eq!(read("fix/@base"), Some(OutputPlace::Base(run("fix"))));
        assert_eq!(read("1/c1@2"), run("1/c1@2").map(OutputPlace::Address));
        for bad in ["/@base", "1/c1@base", "1@base", "@bases"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn last_lines_are_counted_with_an_unfinished_one() {
        let cases = [("", ""), ("a", "a"), ("a\nb\n", "b\n"), ("a\nb", "b"), ("a\n\n", "\n")];
        for (text, last) in cases {
            assert_eq!(last_lines(text.as_bytes(), Some(1)), last.as_bytes(), "{text:?}");
        }
        assert_eq!(last_lines(b"a\nb\nc\n", Some(2)), b"b\nc\n");
        assert_eq!(last_lines(b"a\nb", Some(9)), b"a\nb");
        assert_eq!(last_lines(b"a\nb", None), b"a\nb");
    }
}
