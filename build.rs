//! Arguments for the linker on Linux.
#![expect(clippy::disallowed_methods, reason = "cargo describes the target in environment variables")]

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is = |name: &str, value: &str| variable(name) == value;
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    let is_known = is("CARGO_CFG_TARGET_ARCH", "x86_64") || is("CARGO_CFG_TARGET_ARCH", "aarch64");
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") || !is_known || is_static {
        return;
    }
    // A position-independent program relocates some 18,000 addresses at each start, and each page that contains one is
    // copied. A command takes 3.5 ms, and this takes 0.35 ms of them. A fixed address makes errors in memory easier to
    // exploit. The addresses of libraries, stack and heap are still random, and planwatch's own code is safe Rust.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    // The rest is for published binaries: it needs a linker that knows linker scripts, and GCC's static libraries. Cargo
    // tells a build script the name of a custom profile only in this path.
    if Path::new(&variable("OUT_DIR")).components().any(|it| it.as_os_str() == "dist") {
        println!("cargo::rerun-if-changed=link-order.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}/link-order.ld", variable("CARGO_MANIFEST_DIR"));
        // Functions with the same code become one, which makes the binary 0.24 MB smaller.
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        // Loading libgcc_s.so at each start takes a tenth of the time of a minimal program (`benches/hello.rs`, the floor of
        // benchmark T4).
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
