//! Judging one run on several machines: the terms that all of them share, the parts that each one
//! judges, and the way of outcomes from one repository to another.
mod bundle;
mod captures;
mod decide;
mod exchange;
mod open;
mod parts;
mod shard;
mod startable;

pub use bundle::take_bundle;
pub use captures::{has_ended, told_state};
pub use decide::{Decided, decide};
pub use exchange::Exchange;
pub use open::{open, push};
pub use parts::{current_terms, name_unreadable, pending};
pub use shard::{Sink, judge_parts};
