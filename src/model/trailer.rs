//! The trailers that git-frites writes into the messages of its commits, and reads back.
use std::fmt;

use strum::IntoStaticStr;

use crate::model::blast::Blast;
use crate::model::plain;

/// A line `KEY: VALUE` at the end of a commit message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(prefix = "Frites-", const_into_str)]
pub enum Trailer {
    /// The run; in the commit of a landing, `RUN/CAND@ITERATION`.
    Run,
    /// The candidate of a capture.
    Candidate,
    /// The candidate's position in its run.
    Index,
    /// The number of a capture.
    Iteration,
    /// The commit that the run starts from.
    Base,
    /// The candidate's state when it was captured.
    State,
    /// The number of changed lines of a capture.
    Lines,
    /// The number of changed files of a capture.
    Files,
    /// The attempt's HEAD when it was captured, if HEAD was not at the base.
    Head,
    /// The tree that was judged.
    Tree,
    /// A command that passed, or `unverified`.
    Oracle,
    /// The kind of world in which the commands passed, i.e. how they were confined.
    World,
    /// The reason why the change is unverified.
    Reason,
    /// The branch into which the candidate was merged.
    Into,
    /// The landing state of a candidate, if no commit of a landing shows it.
    Landing,
    /// The `RUN/CAND@ITERATION` whose merge this commit reverts.
    Undone,
    /// A conflict, and the side that was taken.
    Choice,
    /// A parent of a record's commit. This parent is an earlier commit of the record, not a judged
    /// commit.
    Previous,
    /// A parent that holds another outcome of the same tree, which disagrees with this commit's
    /// outcome.
    Disagrees,
}

impl Trailer {
    /// The key, as it is in a message.
    pub fn key(self) -> &'static str {
        self.into_str()
    }

    /// The line of a message that gives this trailer a value.
    pub fn line(self, value: impl fmt::Display) -> String {
        format!("{}: {value}", self.key())
    }

    /// The value in the last line of a message with this trailer; `None` if there is no such line.
    pub fn find(self, message: &str) -> Option<&str> {
        message.lines().rev().find_map(|line| self.value(line))
    }

    /// The value of one line; `None` if the line is another trailer or text.
    pub fn value(self, line: &str) -> Option<&str> {
        Some(line.strip_prefix(self.key())?.strip_prefix(": ")?.trim())
    }
}

/// The number of the capture that has this message; `None` if the message does not say.
pub fn iteration(message: &str) -> Option<u32> {
    Trailer::Iteration.find(message)?.parse().ok()
}

/// The size of the capture that has this message; `None` if the message does not say.
pub fn blast(message: &str) -> Option<Blast> {
    let number = |trailer: Trailer| trailer.find(message)?.parse().ok();
    Some(Blast { lines: number(Trailer::Lines)?, files: number(Trailer::Files)? })
}

/// The paragraphs between the subject and the trailers of a message; `None` if there are none.
pub fn body(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("\n\n")?;
    let (body, _) = rest.trim_end().rsplit_once("\n\n")?;
    Some(body.trim()).filter(|body| !body.is_empty())
}

/// The paragraphs of a message that git-frites did not write; empty if nothing is left. The
/// trailers, lines that look like our trailers, and control characters are left out.
pub fn paragraphs_without_trailers(message: &str) -> Vec<String> {
    let lines = message.lines().map(plain::line);
    let lines = lines.filter(|line| !line.trim_start().starts_with("Frites-"));
    let text: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    let paragraphs = text.split(String::is_empty).filter(|lines| !lines.is_empty());
    let mut paragraphs: Vec<&[String]> = paragraphs.collect();
    // The first paragraph is the subject, even if it looks like `fix: …`.
    while paragraphs.len() > 1 && paragraphs.last().is_some_and(|lines| are_trailers(lines)) {
        paragraphs.pop();
    }
    paragraphs.into_iter().map(|lines| lines.join("\n")).collect()
}

/// True if each line is a `Key: value`, or continues the line before it.
fn are_trailers(lines: &[String]) -> bool {
    let is_key =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_trailer = |line: &String| line.split_once(": ").is_some_and(|(key, _)| is_key(key));
    lines.first().is_some_and(is_trailer)
        && lines.iter().all(|line| is_trailer(line) || line.starts_with([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_with_several_lines_gives_the_last() {
        let message = format!(
            "title\n\n{}\n{}\nFrites-Runner: x\n",
            Trailer::Run.line("1"),
            Trailer::Run.line("2")
        );
        assert_eq!(Trailer::Run.find(&message), Some("2"));
        assert_eq!(Trailer::Base.find(&message), None);
    }

    #[test]
    fn message_of_others_comes_without_trailers_and_control_characters() {
        let message = "fix: a \u{1b}[31mred\u{1b}[0m bug\u{7}\n\nIt was wrong:\nvery.\nFrites-Oracle: test: true\n\n\
                       Frites-Run: 9\n\nSigned-off-by: A <a@b>\nCo-authored-by: B\n  <b@c>\n";
        assert_eq!(
            paragraphs_without_trailers(message),
            ["fix: a red bug", "It was wrong:\nvery."]
        );
        assert_eq!(paragraphs_without_trailers("fix: one\n"), ["fix: one"]);
        assert_eq!(paragraphs_without_trailers("Frites-Run: 1\n\n\u{202e}\n"), [""; 0]);
    }

    #[test]
    fn body_is_what_lies_between_the_subject_and_the_trailers() {
        assert_eq!(body("title\n\nA: 1\nB: 2\n"), None);
        assert_eq!(body("title\n\none\n\ntwo\n\nA: 1\n"), Some("one\n\ntwo"));
        assert_eq!(body("title"), None);
    }
}
