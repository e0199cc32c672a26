//! Access to the file system, without git: reading and writing files, walking and deleting trees,
//! locks, and waiting for the disk.
pub mod atomic;
mod delete;
pub mod directory;
pub mod disk;
pub mod lock;
pub mod parallel;
pub mod regular;
pub mod removals;
pub mod scratch;
pub mod trash;
pub mod tree;
pub mod walk;
