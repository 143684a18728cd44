//! The command line `planwatch`: arguments in, a report out. Contains arguments and screens, but no rules about plans.

mod args;
mod board;
mod commands;
mod completing;
mod context;
mod failure;
mod fields;
mod help;
mod named_text;
mod output;
mod screens;
mod signals;
mod spinner;
mod table;
mod typed;

fn main() -> std::process::ExitCode {
    let typed: Vec<_> = std::env::args_os().collect();
    signals::survive_file_size_limits();
    if let Some(shell) = context::completing_shell() {
        return completing::answer(&shell, &typed).into();
    }
    commands::run(&typed).into()
}
