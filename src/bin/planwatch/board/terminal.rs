//! Sets up the terminal at the beginning. Restores it at the end, for another program, at Ctrl-Z and after a panic.

use std::io::{self, Stdout, Write};
use std::sync::mpsc::Sender;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::event_loop::Input;

pub(crate) type Screen = Terminal<CrosstermBackend<NamedColours>>;

/// Sets up the terminal. After a panic in any thread, it is restored and the board ends.
pub(crate) fn take(inbox: Sender<Input>) -> io::Result<Screen> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave();
        before(panic);
        inbox.send(Input::Panic).ok();
    }));
    enter(true)?;
    Terminal::new(CrosstermBackend::new(NamedColours { stdout: io::stdout(), bytes: Vec::new() }))
}

/// Writes the sixteen named colours as sequences that every terminal understands. crossterm writes them as sequences
/// for 256 colours; a terminal with 16 colours reads a part of such a sequence as blinking.
pub(crate) struct NamedColours {
    stdout: Stdout,
    /// A sequence may arrive in several pieces, so the bytes are collected until `flush`.
    bytes: Vec<u8>,
}

impl Write for NamedColours {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.stdout.write_all(named_colours(&String::from_utf8_lossy(&bytes)).as_bytes())?;
        self.stdout.flush()
    }
}

/// Replaces sequences such as `ESC [ 38;5;6 m` by `ESC [ 36 m`. Text on the screen contains no ESC, so it is unchanged.
pub(crate) fn named_colours(screen: &str) -> String {
    let mut pieces = screen.split("\u{1b}[");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| c != ';' && !c.is_ascii_digit()).unwrap_or(piece.len());
        let (codes, rest) = piece.split_at(end);
        shown.push_str("\u{1b}[");
        let mut codes = codes.split(';');
        let mut named = Vec::new();
        while let Some(code) = codes.next() {
            let mut ahead = codes.clone();
            let index = match (code, ahead.next(), ahead.next().and_then(|it| it.parse::<u8>().ok())) {
                ("38" | "48", Some("5"), Some(index @ 0..16)) if rest.starts_with('m') => index,
                _ => {
                    named.push(code.to_owned());
                    continue;
                }
            };
            codes = ahead;
            let first = if index < 8 { 30 + index } else { 82 + index };
            named.push((first + if code == "48" { 10 } else { 0 }).to_string());
        }
        shown.extend([named.join(";").as_str(), rest]);
    }
    shown
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

/// Restores the terminal. Errors are ignored, because the terminal may be gone.
pub(crate) fn leave() {
    execute!(io::stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen).ok();
    disable_raw_mode().ok();
    execute!(io::stdout(), ratatui::crossterm::cursor::Show).ok();
}
