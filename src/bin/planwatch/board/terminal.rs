//! The terminal: taken at the beginning, given back at the end, for an editor, at Ctrl-Z and after a panic.

use std::io;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::event_loop::Input;
use std::sync::mpsc::Sender;

/// Takes the terminal. After a panic, of any thread, it is whole again and the board ends.
pub(crate) fn take(inbox: Sender<Input>) -> io::Result<DefaultTerminal> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave();
        before(panic);
        inbox.send(Input::Panic).ok();
    }));
    enter(true)?;
    ratatui::Terminal::new(ratatui::backend::CrosstermBackend::new(io::stdout()))
}

pub(crate) fn enter(with_mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    mouse(with_mouse)
}

pub(crate) fn mouse(is_on: bool) -> io::Result<()> {
    if is_on {
        execute!(io::stdout(), EnableMouseCapture)
    } else {
        execute!(io::stdout(), DisableMouseCapture)
    }
}

/// Gives the terminal back. Errors are ignored: it may be gone.
pub(crate) fn leave() {
    execute!(io::stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen).ok();
    disable_raw_mode().ok();
    execute!(io::stdout(), ratatui::crossterm::cursor::Show).ok();
}
