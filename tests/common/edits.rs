//! Edits of `src/lib.txt` in [`super::World::new`]'s repository, as shell commands, from few lines
//! to many.

/// Changes its second line: two lines of a diff.
pub const SMALL: &str = TWO;
/// Changes its second line, and adds a fourth: three lines.
pub const MIDDLE: &str = "printf 'one\\nTWO\\nthree\\nfour\\n' > src/lib.txt";
/// Changes its first and its second line: four lines.
pub const LARGE: &str = "printf 'ONE\\nTWO\\nthree\\n' > src/lib.txt";

/// Changes its second line to `TWO`.
pub const TWO: &str = "printf 'one\\nTWO\\nthree\\n' > src/lib.txt";
