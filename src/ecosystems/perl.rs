//! Perl: its interpreter.
use crate::ecosystems::ecosystem::Ecosystem;

/// Perl.
pub const ECOSYSTEM: Ecosystem = Ecosystem { interpreters: &["perl"], ..Ecosystem::NOTHING };
