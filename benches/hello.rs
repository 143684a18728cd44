//! The floor P of the speed figures: a program that reads its arguments with clap, says a word, and ends.

#![expect(clippy::print_stdout, reason = "saying a word is all that it does")]

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
    Check,
    Status,
    Watch,
}

fn main() {
    let arguments = Arguments::parse();
    let is_verb = arguments.verb.is_some();
    println!("{}", if is_verb { "hello, verb" } else { "hello" });
}
