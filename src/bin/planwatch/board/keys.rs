//! Handles keys, pasted text and the mouse: changes the model, and returns what the rest of the board must do.

use planwatch::plan::transitions::Verb;
use planwatch::text::typed;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::engine::{Action, Request};
use super::model::{Column, Focus, Hit, Model, Severity};
use super::prompt::{Prompt, PromptKind};
use super::questions;

/// The list of keys at the foot of the screen if keys act on a step, the most important first. The foot shows as many as
/// fit.
const STEP_FOOT: [&str; 14] = [
    "? keys",
    "q quit",
    "Tab view",
    "Enter open",
    "d done",
    "s start",
    "c claim",
    "n note",
    "e edit",
    "/ search",
    ": verb",
    "u undo",
    "R run",
    "+ add",
];

/// As above, if keys act on a plan.
const PLAN_FOOT: [&str; 14] = [
    "? keys",
    "q quit",
    "Enter open",
    "/ search",
    "d complete plan",
    "x abandon plan",
    "c claim its next step",
    "+ add step",
    "R run",
    "u undo",
    "n note",
    "e edit",
    "z closed plans",
    ": verb",
];

/// The keys, with what each does to a step. `?` opens this list.
const STEP_KEYS: [(&str, &str); 25] = [
    ("↑↓←→ hjkl", "move"),
    ("g G PgUp", "first, last, a page"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("Tab", "board, list, graph, timeline"),
    ("/", "search"),
    ("e", "edit in $EDITOR"),
    ("c", "claim"),
    ("s", "start"),
    ("d", "done"),
    ("f", "fail, with the reason"),
    ("b", "block, with the reason"),
    ("x", "skip"),
    ("r", "reopen"),
    ("n", "note"),
    ("a", "attempt, as `outcome: notes`"),
    ("+", "add a step after this one"),
    ("y", "confirm"),
    ("R", "run an agent on the plan"),
    ("X", "stop a run, or close output"),
    ("u", "undo the last change"),
    ("z", "show closed plans, too"),
    (":", "any verb of planwatch"),
    ("m", "mouse on or off"),
    ("q", "quit"),
];

/// What keys do to a plan, if that differs from what they do to a step.
const PLAN_KEYS: [(&str, &str); 10] = [
    ("c", "claim its next step"),
    ("s", "activate a draft, after a question"),
    ("d", "complete it, after a question"),
    ("f", "for steps only"),
    ("b", "for steps only"),
    ("x", "abandon it, after a question"),
    ("r", "reopen it, after a question"),
    ("a", "for steps only"),
    ("+", "add a step at its end"),
    ("y", "for steps only"),
];

pub(crate) fn foot(is_plan: bool) -> &'static [&'static str] {
    if is_plan { &PLAN_FOOT } else { &STEP_FOOT }
}

pub(crate) fn keys(is_plan: bool) -> Vec<(&'static str, &'static str)> {
    let of_plan = |key: &str| PLAN_KEYS.iter().find(|it| is_plan && it.0 == key).map(|it| it.1);
    STEP_KEYS.iter().map(|(key, what)| (*key, of_plan(key).unwrap_or(what))).collect()
}

/// What a key requests from the rest of the board.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Quit,
    Suspend,
    Request(Request),
    Edit(String),
    /// A command line without the name of the program.
    Command(Vec<String>),
    StopRun,
    Mouse(bool),
    /// Everything is read again.
    Reload,
}

pub(crate) fn press(model: &mut Model, key: KeyEvent) -> Option<Effect> {
    // Esc and a key that follow each other quickly arrive as one key with Alt. They must act neither as text nor as a
    // command.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('z') if is_control => return Some(Effect::Suspend),
        KeyCode::Char('c') if is_control && model.prompt.is_none() => return Some(Effect::Quit),
        _ => {}
    }
    if model.prompt.is_some() {
        return typed(model, key.code, is_control);
    }
    if let Some(at) = model.help {
        model.help = scrolled(key.code, at);
        return None;
    }
    model.message = None;
    match key.code {
        KeyCode::Char(c) if !is_control => letter(model, c),
        code => {
            moved(model, code);
            None
        }
    }
}

/// Handles a key while the list of keys is open. Returns the line to scroll to, or `None` to close the list. Drawing
/// limits the line to the end of the list.
fn scrolled(code: KeyCode, at: usize) -> Option<usize> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => at.saturating_add(1),
        KeyCode::PageUp => at.saturating_sub(10),
        KeyCode::PageDown | KeyCode::Char(' ') => at.saturating_add(10),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => return None,
    })
}

fn moved(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Up => model.move_by(-1),
        KeyCode::Down => model.move_by(1),
        KeyCode::PageUp => model.move_by(-10),
        KeyCode::PageDown => model.move_by(10),
        KeyCode::Home => model.move_by(isize::MIN / 2),
        KeyCode::End => model.move_by(isize::MAX / 2),
        KeyCode::Left => model.move_sideways(false),
        KeyCode::Right => model.move_sideways(true),
        KeyCode::Tab => model.view = model.view.next(),
        KeyCode::Enter => {
            model.focus = match model.focus {
                Focus::Plans if model.has_steps() => Focus::Steps,
                _ => Focus::Details,
            };
        }
        KeyCode::Esc if !model.search.is_empty() => model.search.clear(),
        KeyCode::Esc => {
            model.focus = if model.focus == Focus::Details && model.step_id.is_some() {
                Focus::Steps
            } else {
                Focus::Plans
            };
        }
        _ => {}
    }
}

fn letter(model: &mut Model, c: char) -> Option<Effect> {
    match c {
        'k' => model.move_by(-1),
        'j' => model.move_by(1),
        'g' => model.move_by(isize::MIN / 2),
        'G' => model.move_by(isize::MAX / 2),
        'h' => model.move_sideways(false),
        'l' => model.move_sideways(true),
        '?' => model.help = Some(0),
        'q' => return Some(Effect::Quit),
        'X' => return Some(Effect::StopRun),
        'u' => {
            let request = Request { action: Action::FindUndo, id: String::new(), text: None, etag: None };
            return Some(Effect::Request(request));
        }
        'z' => {
            model.shows_closed = !model.shows_closed;
            return Some(Effect::Reload);
        }
        'm' => {
            model.is_mouse_on = !model.is_mouse_on;
            return Some(Effect::Mouse(model.is_mouse_on));
        }
        '/' => {
            model.search_in = if model.focus == Focus::Plans { Focus::Plans } else { Focus::Steps };
            model.search("");
            model.prompt = Some(Prompt::new("search", PromptKind::Search));
        }
        ':' => model.prompt = Some(Prompt::new("planwatch", PromptKind::Command)),
        'R' => {
            let plan = model.plan_id.clone().unwrap_or_default();
            let line = format!("run {} --agent claude", typed::shell_word(&plan));
            model.prompt = Some(Prompt::new("planwatch", PromptKind::Command).with_text(line));
        }
        'e' => return target(model).map(|it| Effect::Edit(it.0)),
        'c' => return request(model, Action::Claim).map(Effect::Request),
        's' => return moved_by(model, Verb::Start),
        'd' => return moved_by(model, Verb::Done),
        'x' => return moved_by(model, Verb::Skip),
        'r' => return moved_by(model, Verb::Reopen),
        'y' => return request(model, Action::Confirm).map(Effect::Request),
        'f' => return moved_by(model, Verb::Fail),
        'b' => return moved_by(model, Verb::Block),
        'n' => ask_words(model, Action::Note),
        'a' => ask_words(model, Action::Attempt),
        '+' => ask_words(model, Action::Add),
        _ => {}
    }
    None
}

/// The id and the etag of what keys change: the selected step or the selected plan. `None` if nothing is selected, or if
/// the list of plans has the focus and the search hides the selected plan.
fn target(model: &Model) -> Option<(String, Option<String>)> {
    if !model.is_plan_target() {
        return model.selected().map(|it| (it.id.clone(), it.etag.clone()));
    }
    let is_shown = model.plan_rows().iter().any(|(it, _)| Some(&it.id) == model.plan_id.as_ref());
    let plan = model.selected_plan().filter(|_| model.focus != Focus::Plans || is_shown);
    plan.map(|it| (it.id.clone(), it.etag.clone()))
}

fn request(model: &mut Model, action: Action) -> Option<Request> {
    let Some((id, etag)) = target(model) else {
        model.message = Some((Severity::Error, "nothing is selected".to_owned()));
        return None;
    };
    Some(Request { action, id, text: None, etag })
}

fn moved_by(model: &mut Model, verb: Verb) -> Option<Effect> {
    let request = request(model, Action::Move(verb))?;
    questions::of_move(model, request, verb)
}

fn ask_words(model: &mut Model, action: Action) {
    if let Some(request) = request(model, action) {
        model.ask_words(request);
    }
}

/// Handles a key while a prompt is open.
fn typed(model: &mut Model, code: KeyCode, is_control: bool) -> Option<Effect> {
    let prompt = model.prompt.as_mut()?;
    match code {
        KeyCode::Enter => return entered(model),
        KeyCode::Char('c') if is_control => cancel(model),
        KeyCode::Esc => cancel(model),
        _ => {
            prompt.press(code, is_control);
            searched(model);
        }
    }
    None
}

fn cancel(model: &mut Model) {
    let prompt = model.prompt.take();
    model.message = None;
    if prompt.is_some_and(|it| it.kind == PromptKind::Search) {
        model.search("");
    }
}

/// Applies a search while it is typed.
fn searched(model: &mut Model) {
    let prompt = model.prompt.as_ref().filter(|it| it.kind == PromptKind::Search);
    if let Some(text) = prompt.map(|it| it.text().to_owned()) {
        model.search(&text);
    }
}

fn entered(model: &mut Model) -> Option<Effect> {
    let prompt = model.prompt.take()?;
    model.message = None;
    let text = prompt.text().trim().to_owned();
    match prompt.kind {
        PromptKind::Needed(_) if text.is_empty() => {
            model.prompt = Some(prompt);
            None
        }
        PromptKind::Words(request) | PromptKind::Needed(request) => {
            let text = Some(text).filter(|it| !it.is_empty());
            Some(Effect::Request(Request { text, ..request }))
        }
        PromptKind::Yes(request) => Some(Effect::Request(request)),
        PromptKind::Search => None,
        PromptKind::Command => match typed::words(&text) {
            Some(words) if words.is_empty() => None,
            Some(words) if ["q", "quit"].contains(&words[0].as_str()) => Some(Effect::Quit),
            Some(words) => Some(Effect::Command(words)),
            None => {
                model.message = Some((Severity::Error, "a quote is not closed".to_owned()));
                model.prompt = Some(prompt);
                None
            }
        },
    }
}

/// Inserts pasted text into the prompt. Pasted text never acts as keys.
pub(crate) fn paste(model: &mut Model, text: &str) {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match &mut model.prompt {
        Some(prompt) => prompt.insert(&line),
        None => {
            let text = "press a key such as n before you paste".to_owned();
            model.message = Some((Severity::Error, text));
        }
    }
    searched(model);
}

pub(crate) fn mouse(model: &mut Model, event: MouseEvent) -> Option<Effect> {
    if let Some(at) = model.help {
        model.help = match event.kind {
            MouseEventKind::ScrollUp => Some(at.saturating_sub(1)),
            MouseEventKind::ScrollDown => Some(at.saturating_add(1)),
            MouseEventKind::Down(_) => None,
            _ => Some(at),
        };
        return None;
    }
    let at = Position::new(event.column, event.row);
    let hit = model.hits.iter().rev().find(|(area, _)| area.contains(at)).map(|(_, it)| it.clone());
    match event.kind {
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            model.focus = focus_of(&hit?);
            model.move_by(if event.kind == MouseEventKind::ScrollUp { -1 } else { 1 });
        }
        MouseEventKind::Down(MouseButton::Left) => {
            model.message = None;
            let hit = hit?;
            model.focus = focus_of(&hit);
            match hit {
                Hit::Plan(id) => model.select_plan(Some(id)),
                Hit::Step(id) => {
                    model.select_step(Some(id.clone()));
                    model.dragged = Some((id, None));
                }
                Hit::Column(_) | Hit::Steps | Hit::Details => {}
            }
        }
        MouseEventKind::Drag(MouseButton::Left) => {
            let below = column_at(model, at);
            if let Some((_, to)) = &mut model.dragged {
                *to = below;
            }
        }
        MouseEventKind::Up(MouseButton::Left) => {
            let (id, _) = model.dragged.take()?;
            return dropped(model, &id, column_at(model, at)?);
        }
        _ => {}
    }
    None
}

fn column_at(model: &Model, at: Position) -> Option<Column> {
    model.hits.iter().find_map(|(area, hit)| match hit {
        Hit::Column(column) if area.contains(at) => Some(*column),
        _ => None,
    })
}

fn focus_of(hit: &Hit) -> Focus {
    match hit {
        Hit::Plan(_) => Focus::Plans,
        Hit::Step(_) | Hit::Column(_) | Hit::Steps => Focus::Steps,
        Hit::Details => Focus::Details,
    }
}

/// Requests the change of status for a card that was dropped on a column. The operation decides whether the change is
/// possible. For `Column::Stuck`, the board checks this first and asks for the reason.
fn dropped(model: &mut Model, id: &str, to: Column) -> Option<Effect> {
    let step = model.steps().iter().find(|it| it.id == id).filter(|it| Column::of(it) != to)?;
    let request = |action| Request { action, id: id.to_owned(), text: None, etag: step.etag.clone() };
    let action = match to {
        // A step in progress that is moved back is released, not reopened.
        Column::Waiting | Column::Ready if Column::of(step) == Column::Doing => Action::Release,
        Column::Waiting | Column::Ready => Action::Move(Verb::Reopen),
        Column::Doing => Action::Move(Verb::Start),
        Column::Done => Action::Move(Verb::Done),
        Column::Stuck => {
            let request = request(Action::Move(Verb::Block));
            return questions::of_move(model, request, Verb::Block);
        }
    };
    Some(Effect::Request(request(action)))
}
