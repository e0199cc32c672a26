//! The state directory and refs: kills, concurrency, and changes by others.
mod archive;
mod changes_by_attempts;
mod concurrency;
mod housekeeping;
mod kills;
mod mishaps;
mod old_state;
mod own_refs;
