//! The program of floor P (CONTRIBUTING.md defines the floors): it reads its arguments with clap, prints a line, and exits.
//!
//! With `save` it also replaces a file and syncs its bytes, which is floor F.

#![expect(clippy::print_stdout, reason = "a program that prints is the floor")]
#![expect(clippy::disallowed_methods, reason = "the floors call the system directly")]

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
