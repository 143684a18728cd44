//! Speed as ratios to floors that are measured in the same run, alternately with what they are floors of.
//!
//! `scripts/bench` builds and runs it. The floors are what this machine can do at all; they are Linux's.

#![expect(clippy::disallowed_methods, reason = "the floors are what the bans are about")]
#![expect(clippy::print_stdout, reason = "the figures are its answer")]

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the floors are of Linux's calls; nothing is measured here");
}
