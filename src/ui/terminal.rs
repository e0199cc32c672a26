//! The abilities and the size of the terminal.
use std::io;

/// True if `TERM` names a terminal that can move its cursor.
pub fn moves_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// The rows and columns of standard output; `COLUMNS` overrides the terminal, as in git.
pub fn window() -> (Option<usize>, Option<usize>) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let some = |n: usize| (n > 0).then_some(n);
    let columns = set.and_then(some).or_else(|| size.and_then(|size| some(size.ws_col.into())));
    (size.and_then(|size| some(size.ws_row.into())), columns)
}
