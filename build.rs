//! Links the program to fixed addresses on Linux with glibc.
//!
//! A program that can lie anywhere begins by correcting 30,000 addresses in its own data, and by
//! taking a page fault for each page of them: a fifth of the processor time of a short command.
//! Its libraries, stack and memory still lie at random addresses, and nothing here is unsafe code.
//! Whoever sets `-C relocation-model` in RUSTFLAGS decides otherwise.
use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !flags.contains("relocation-model")
        && !flags.contains("crt-static")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
