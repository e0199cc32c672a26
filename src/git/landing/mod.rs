//! Moving the user's checkout, branches and index to a landed commit, and back.
pub mod advance;
pub mod fresh_branch;
pub mod overwrite;
pub mod writer;
