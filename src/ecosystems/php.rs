//! PHP: PHPUnit's settings.
use crate::ecosystems::ecosystem::Ecosystem;

/// PHP.
pub const ECOSYSTEM: Ecosystem =
    Ecosystem { decisive_files: &["phpunit.xml"], ..Ecosystem::NOTHING };
