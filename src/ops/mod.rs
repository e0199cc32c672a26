//! The operations that the commands are made of, each used by more than one of them: opening a
//! session, capturing, spawning, judging, landing and cleaning.
pub mod agent_state;
pub mod attempt_times;
pub mod auto_clean;
pub mod capture;
pub mod clean;
pub mod corrected;
pub mod doctor;
pub mod history;
pub mod hooks;
pub mod judge;
mod kept_commits;
pub mod land;
pub mod log_end;
pub mod mirror;
pub mod progress;
pub mod proposed_seeds;
pub mod rebuild;
pub mod recover;
pub mod repair;
pub mod report;
pub mod session;
pub mod shard;
pub mod spawn;
pub mod task;
pub mod trash;
