//! Runs and their attempts: worktrees, seeds, agents, rounds.
mod add;
mod agent_state;
mod agents;
mod fan_out;
mod inherit;
mod repair;
mod run;
mod runs;
mod seeds;
mod seeds_that_lead_back;
mod synthesis;
mod usage;
