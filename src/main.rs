//! The `git-frites` program: everything lives in the library.
use std::process::ExitCode;

fn main() -> ExitCode {
    git_frites::main()
}
