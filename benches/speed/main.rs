//! Speed as ratios to floors. A floor is the minimal work for an operation on this machine, without planwatch. An operation
//! and its floor are measured alternately in the same run.
//!
//! `scripts/bench` builds and runs this program. The floors use Linux system calls.

#![expect(clippy::disallowed_methods, reason = "the floors call the system directly")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the floors need Linux system calls, so nothing is measured on this system");
}
