//! The floor P of the speed figures: a program that reads its arguments with clap, says a word, and ends.
//!
//! With `save` it also replaces a file whose bytes are safe, which is F.

#![expect(clippy::print_stdout, reason = "saying a word is all that it does")]
#![expect(clippy::disallowed_methods, reason = "the floors are what the bans are about")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    List { plan: Option<String> },
    Show { id: String },
    Next { plan: Option<String> },
    Done { ids: Vec<String> },
    Start { ids: Vec<String> },
    Set { id: String, key: String, value: Option<String> },
    New { title: String, steps: Vec<String> },
    Add { plan: String, title: String },
    Note { id: String, text: String },
    Save { path: PathBuf },
    Check,
    Status,
    Watch,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    if let Some(Verb::Save { path }) = &arguments.verb {
        save(path)?;
    }
    println!("{}", if arguments.verb.is_some() { "hello, verb" } else { "hello" });
    Ok(())
}

fn save(path: &Path) -> std::io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(&[b'x'; 1_500])?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}
