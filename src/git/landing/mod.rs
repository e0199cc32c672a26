//! Moves a checkout's files, branch and index to a landed commit, and back.
pub mod advance;
pub mod intent;
pub mod overwrite;
pub mod position;
pub mod recovery;
