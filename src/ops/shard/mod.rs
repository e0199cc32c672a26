//! Judging one run, and making its attempts, on several machines: the terms that all of them share, the parts that each one
//! judges, and the way of outcomes from one repository to another.
mod bundle;
mod captures;
mod decide;
mod exchange;
mod judge;
mod open;
mod open_attempts;
mod parts;
mod run_attempt;
mod startable;

pub use bundle::take_bundle;
pub use decide::decide;
pub use exchange::Exchange;
pub use judge::{Sink, judge_parts};
pub use open::open;
pub use open_attempts::open_attempts;
pub use parts::{current_terms, shelf};
pub use run_attempt::run_attempt;
