//! Perl: its interpreter.
use crate::ecosystems::Ecosystem;

/// Perl.
pub const ECOSYSTEM: Ecosystem = Ecosystem { interpreters: &["perl"], ..Ecosystem::NOTHING };
