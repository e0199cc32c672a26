//! Addresses as users type them: `RUN`, `RUN/CAND`, `RUN/CAND@ITERATION`, a candidate of the newest
//! run, or `task:ID`.
use std::fmt;
use std::str::FromStr;

use crate::model::name::{InvalidName, Name};

/// A parsed address, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A word without a slash. It means the first of these that exists: the run of this name, the
    /// candidate of this name in the newest run, the run whose name the word abbreviates.
    Word {
        /// The name of a run or of a candidate. A run's name may be abbreviated, except if it is a
        /// number, or if the command removes or undoes something.
        word: Name,
        /// The iteration, if one was given.
        iteration: Option<u32>,
    },
    /// `RUN/CAND`.
    Pair {
        /// The name of the run. It may be abbreviated, with the same exceptions as a word.
        run: Name,
        /// The candidate, in full.
        candidate: Name,
        /// The iteration, if one was given.
        iteration: Option<u32>,
    },
    /// `task:ID`, or `task:ID@ITERATION`: the run or candidate that is bound to this task. An id
    /// may end in `@2`. Only the records of runs show whether `@2` is a part of the id or an
    /// iteration.
    Task(String),
}

/// The beginning of an address that names a task.
pub const TASK_PREFIX: &str = "task:";

/// The maximum length of a task's id, in characters.
const LONGEST_TASK_ID: usize = 200;

/// True if the text can be a task's id: 1 to 200 characters in one line. It is not blank, and has
/// no control characters.
pub fn is_task_id(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= LONGEST_TASK_ID
        && !text.chars().any(char::is_control)
}

/// The parts of `PLACE@ITERATION`; `None` if the text does not end in an iteration.
pub fn split_iteration(text: &str) -> Option<(&str, u32)> {
    let (place, n) = text.rsplit_once('@')?;
    // A number has only one spelling: not `+3` or `03`.
    let number = n.parse().ok().filter(|number: &u32| *number > 0 && number.to_string() == n)?;
    Some((place, number))
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        if let Some(id) = text.strip_prefix(TASK_PREFIX) {
            return is_task_id(id)
                .then(|| Address::Task(id.to_owned()))
                .ok_or_else(|| InvalidAddress::Task(text.escape_debug().to_string()));
        }
        let (place, iteration) = match split_iteration(text) {
            Some((place, iteration)) => (place, Some(iteration)),
            None if text.contains('@') => {
                return Err(InvalidAddress::Iteration(text.escape_debug().to_string()));
            }
            None => (text, None),
        };
        match place.split_once('/') {
            Some((run, candidate)) => {
                Ok(Address::Pair { run: run.parse()?, candidate: candidate.parse()?, iteration })
            }
            None => Ok(Address::Word { word: place.parse()?, iteration }),
        }
    }
}

/// The reason why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// A part is not a name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The text after the `@` is not an iteration.
    #[error("'{0}' does not end in an iteration: after the `@`, write 1 or a higher number")]
    Iteration(String),
    /// The text after `task:` is not a task's id.
    #[error("'{0}' is no valid task: an id is 1 to 200 printable characters, not only blanks")]
    Task(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iteration = match self {
            Address::Word { word, iteration } => {
                write!(f, "{word}")?;
                iteration
            }
            Address::Pair { run, candidate, iteration } => {
                write!(f, "{run}/{candidate}")?;
                iteration
            }
            Address::Task(id) => return write!(f, "{TASK_PREFIX}{id}"),
        };
        iteration.map_or(Ok(()), |n| write!(f, "@{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_form_reads_back_as_written() {
        for text in ["1", "1/c1", "fix/claude-1@3", "c1@2"] {
            assert_eq!(text.parse::<Address>().expect("valid").to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "", "/", "1/", "/c1", "1/c1/x", "1/c1@0", "1/c1@", "1/c1@+3", "1/c1@03", "1/c1@x",
            "-x", "..", "1/../2",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn task_id_is_one_line_of_at_most_200_characters() {
        assert!(is_task_id(&"é".repeat(200)));
        for bad in ["", " ", "two\nlines", &"é".repeat(201)] {
            assert!(!is_task_id(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_valid_address_reads_back_as_written(
            parts in prop::collection::vec( prop::sample::select(vec!["1", "c1", "fix", "task:", "/", "@", "0", "-", ".", "+", "4294967296", "\n", "é"]), 0..7),
        ) {
            let text = parts.concat();
            match text.parse::<Address>() {
                Ok(address) => prop_assert_eq!(address.to_string(), text),
                Err(error) => prop_assert!(!error.to_string().contains(char::is_control), "{error}"),
            }
        }

        #[test]
        fn every_address_reads_back_in_its_form(run in "[a-z0-9]{1,8}", candidate in "[a-z0-9]{1,8}", n in 1u32..) {
            prop_assume!(![&run, &candidate].iter().any(|name| matches!(name.as_str(), "run" | "apply")));
            let (run, candidate): (Name, Name) = (run.parse().expect("a name"), candidate.parse().expect("a name"));
            for iteration in [None, Some(n)] {
                let pair = Address::Pair { run: run.clone(), candidate: candidate.clone(), iteration };
                prop_assert_eq!(pair.to_string().parse::<Address>(), Ok(pair));
                let word = Address::Word { word: run.clone(), iteration };
                prop_assert_eq!(word.to_string().parse::<Address>(), Ok(word));
            }
        }
    }
}
