//! Makes and judges the attempts of one run on several machines. All machines share the run's
//! terms. Each machine makes or judges some parts of the run. Their outcomes are exchanged between
//! repositories.
mod captures;
mod decide;
mod exchange;
mod judge;
mod open;
mod open_attempts;
mod run_attempt;

pub use decide::decide;
pub use exchange::{Exchange, current_terms, part_storage, take_bundle};
pub use judge::ShardJudge;
pub use open::open;
pub use open_attempts::open_attempts;
pub use run_attempt::run_attempt;
