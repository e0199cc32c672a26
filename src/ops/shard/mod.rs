//! Makes the attempts of one run, and judges them, on several machines: the terms that all machines
//! share, the parts that each of them judges, and the exchange of outcomes between repositories.
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
