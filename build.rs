//! Links the debug build at a fixed address, on Linux with glibc.
//!
//! The tests start it tens of thousands of times. A program that can lie anywhere begins by correcting the
//! addresses in its own data, with a page fault for each page: that was an eighth of the processor time of
//! `make test`. A release can lie anywhere.
use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
