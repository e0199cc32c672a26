//! The file system: atomic writes, locks, directory trees, regular files, and when a file was changed.
pub mod atomic;
pub mod lock;
pub mod regular;
pub mod stat;
pub mod tree;
