//! The value parsers of the command line, which convert typed words into values.
//!
//! An [`Error`] from a parser is shown unchanged after the option's name. Other errors are shown in
//! clap's sentence: `invalid value 'x' for '-n <N>': …`.
use std::time::Duration;

use clap::builder::ValueParserFactory;

use crate::config::value::{Setting, SynthesisMode, parse_duration};
use crate::error::{Error, Result};
use crate::model::address::{Address, InvalidAddress, is_task_id};
use crate::model::layout::RECORDS;
use crate::model::name::{BASE, InvalidName, Name, RULE};
use crate::model::part::Part;
use crate::model::shard::Shard;

// With these implementations, arguments of the types `Name` and `Address` need not name their
// parsers.
impl ValueParserFactory for Name {
    type Parser = fn(&str) -> Result<Name>;

    fn value_parser() -> Self::Parser {
        name
    }
}

impl ValueParserFactory for Address {
    type Parser = fn(&str) -> Result<Address>;

    fn value_parser() -> Self::Parser {
        address
    }
}

/// A run's or candidate's name.
pub fn name(text: &str) -> Result<Name> {
    text.parse().map_err(|e: InvalidName| Error::usage(e.to_string()).hint(RULE))
}

/// A value of `synthesis.mode`.
pub fn synthesis(text: &str) -> std::result::Result<SynthesisMode, &'static str> {
    SynthesisMode::read(&text.into()).ok_or("it is off or passing-only")
}

/// The name of a new candidate. Fails for the names of a run's records.
pub fn new_candidate(text: &str) -> Result<Name> {
    let name = name(text).map_err(|error| match text.contains(',') {
        true => error.hint("put spaces between names: `-c one two`"),
        false => error,
    })?;
    if RECORDS.iter().any(|record| record.eq_ignore_ascii_case(name.as_str())) {
        return Err(Error::usage(format!("'{name}' is the name of a run's record"))
            .hint("give the candidate another name"));
    }
    Ok(name)
}

/// Reads the name of a candidate to be judged singly. Fails for `@base` and for `RUN/CAND`.
pub fn candidate_alone(text: &str) -> Result<Name> {
    match text.split_once('/') {
        Some((run, part)) => {
            let name = part.split('@').next().unwrap_or(part);
            Err(Error::usage(format!("'{text}' is not the name of a candidate"))
                .hint(format!("write `git frites judge {run} --candidate {name}`"))
                .hint(format!(
                    "in a run that is judged in parts: `git frites shard judge {run}/{name}`"
                )))
        }
        None if text == BASE => Err(Error::usage(format!("'{BASE}' is not a candidate")).hint(
            format!("in a run that is judged in parts: `git frites shard judge RUN/{BASE}`"),
        )),
        None => name(text),
    }
}

/// A run, or one of its parts: a candidate or the base.
pub fn run_or_part(text: &str) -> Result<(Name, Option<Part>)> {
    let Some((run, part)) = text.split_once('/') else { return Ok((name(text)?, None)) };
    let part = part.parse().map_err(|e: InvalidName| {
        Error::usage(e.to_string()).hint(format!("{RULE}; {BASE} stands for the base"))
    })?;
    Ok((name(run)?, Some(part)))
}

/// `K/N`, `auto` or `auto/N`.
pub fn shard(text: &str) -> std::result::Result<Shard, &'static str> {
    text.parse()
}

/// `RUN`, `RUN/CANDIDATE` or `RUN/CANDIDATE@ITERATION`, or a candidate of the newest run.
pub fn address(text: &str) -> Result<Address> {
    text.parse().map_err(|e: InvalidAddress| {
        let error = Error::usage(e.to_string())
            .hint("an address is RUN, RUN/CANDIDATE, RUN/CANDIDATE@ITERATION or task:ID");
        match e {
            InvalidAddress::Name(_) => error.hint(RULE),
            InvalidAddress::Iteration(_) | InvalidAddress::Task(_) => error,
        }
    })
}

/// A task's id, which `status` shows in one line.
pub fn task(text: &str) -> Result<String> {
    if !is_task_id(text) {
        return Err(Error::usage("a task's id is 1 to 200 printable characters, not only blanks")
            .hint("write the task's id, such as GH-17"));
    }
    Ok(text.to_owned())
}

/// A whole number, at least 1.
pub fn count(text: &str) -> std::result::Result<u32, &'static str> {
    text.parse().ok().filter(|n| *n > 0).ok_or("it takes a whole number from 1")
}

/// A number of retries, 0 to 100.
pub fn retries(text: &str) -> std::result::Result<u32, &'static str> {
    text.parse().ok().filter(|n| *n <= 100).ok_or("it takes a whole number from 0 to 100")
}

/// A duration such as `90s`, `10m` or `1h30m`.
pub fn duration(text: &str) -> std::result::Result<Duration, &'static str> {
    parse_duration(text).ok_or("a duration is written 90s, 10m or 1h30m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_begins_at_one_and_retries_at_zero() {
        assert_eq!((count("1"), count("0").is_err(), count("-1").is_err()), (Ok(1), true, true));
        assert_eq!((retries("0"), retries("100"), retries("101").is_err()), (Ok(0), Ok(100), true));
    }

    #[test]
    fn address_error_tells_the_rule_that_is_broken() {
        let hints = |text: &str| address(text).expect_err("it is invalid").hints;
        assert!(hints("a/b/c").contains(&RULE.to_owned()));
        assert!(!hints("1/c1@0").contains(&RULE.to_owned()));
    }
}
