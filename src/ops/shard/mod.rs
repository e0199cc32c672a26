//! Judging one run, and making its attempts, on several machines: the terms that all of them share, the parts that each one
//! judges, and the way of outcomes from one repository to another.
mod captures;
mod decide;
mod exchange;
mod judge;
mod open;
mod open_attempts;
mod run_attempt;

pub use decide::decide;
pub use exchange::{Exchange, current_terms, shelf, take_bundle};
pub use judge::ShardJudge;
pub use open::open;
pub use open_attempts::open_attempts;
pub use run_attempt::run_attempt;
