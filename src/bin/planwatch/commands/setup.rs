//! `completions` and `man`: made from the same definition as the command line itself.

use crate::args;
use crate::args::setup::{Completions, Man};
use crate::context::Session;
use crate::failure::Failure;

pub(crate) fn completions(session: &Session, args: &Completions) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "planwatch", &mut script);
    session.output.bytes(&script)?;
    Ok(0)
}

pub(crate) fn man(session: &Session, args: &Man) -> Result<u8, Failure> {
    let directory = &args.into;
    let failed = |error: std::io::Error| {
        Failure::failed("io-error", format!("`{}` cannot be written: {error}", directory.display()))
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(args::command(), directory).map_err(failed)?;
    session.output.hint(&format!("man -l {}", directory.join("planwatch.1").display()));
    Ok(0)
}
