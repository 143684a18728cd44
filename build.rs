//! Tells the linker where the program lies.
#![expect(clippy::disallowed_methods, reason = "cargo says by its environment what is built")]

use std::env;

/// A program that may lie anywhere has some 18,000 addresses put right at each start, on pages that are its own from then
/// on: 0.35 of the 3.5 ms that a command takes. What lies where chance puts it makes faults of memory harder to exploit; here
/// libraries, stack and heap still do, and all code but SQLite's is safe Rust's.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|it| it.contains("crt-static"));
    let is_known = is("CARGO_CFG_TARGET_ARCH", "x86_64") || is("CARGO_CFG_TARGET_ARCH", "aarch64");
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && is_known && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
