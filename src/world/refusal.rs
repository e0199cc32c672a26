//! The report of a world's processes about a step that the system refused.
use std::io;

use crate::error::describe;
use crate::process::world_spec::WorldMessage;

/// The step of entering a world that failed.
#[derive(Debug)]
pub(super) struct Refusal {
    step: &'static str,
    error: io::Error,
}

/// Says which step of entering a world failed.
pub(super) trait Step<T> {
    /// Names the step.
    fn step(self, step: &'static str) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, Refusal> {
        self.map_err(|error| Refusal { step, error: error.into() })
    }
}

impl Refusal {
    /// The message for the supervisor.
    pub(super) fn message(&self) -> WorldMessage {
        WorldMessage::Refused { reason: format!("{}: {}", self.step, describe(&self.error)) }
    }
}
