//! The `git-frites` program. All of its code is in the library.
use std::process::ExitCode;

fn main() -> ExitCode {
    git_frites::main()
}
