//! The file system: atomic writes, locks, directory trees and their deletion, also in the background, regular files,
//! file states, walks, many reads at once, temporary directories, waiting for the disk.
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
