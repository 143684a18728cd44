//! What keys, pasted text and the mouse do to the model, and what they ask of the rest.

use planwatch::plan::transitions::Verb;
use planwatch::text::typed;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::engine::{Act, Does};
use super::model::{Asked, Column, Focus, Hit, Model, Prompt, Tone};

/// The keys with what they do, for `?` and for the foot of the screen.
pub(crate) const KEYS: [(&str, &str); 25] = [
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
    ("X", "stop the run"),
    ("u", "undo the last change"),
    ("z", "show closed plans, too"),
    (":", "any verb of planwatch"),
    ("m", "mouse on or off"),
    ("q", "quit"),
];

/// What a key asks of the rest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Quit,
    Suspend,
    Act(Act),
    Edit(String),
    /// A command line without the name of the program.
    Command(Vec<String>),
    StopRun,
    Mouse(bool),
    /// Everything is read again.
    Reload,
}

pub(crate) fn press(model: &mut Model, key: KeyEvent) -> Option<Effect> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('z') if is_control => return Some(Effect::Suspend),
        KeyCode::Char('c') if is_control && model.prompt.is_none() => return Some(Effect::Quit),
        _ => {}
    }
    if model.prompt.is_some() {
        return typed(model, key.code, is_control);
    }
    if std::mem::take(&mut model.is_help) {
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

fn moved(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Up => model.step_by(-1),
        KeyCode::Down => model.step_by(1),
        KeyCode::PageUp => model.step_by(-10),
        KeyCode::PageDown => model.step_by(10),
        KeyCode::Home => model.step_by(isize::MIN / 2),
        KeyCode::End => model.step_by(isize::MAX / 2),
        KeyCode::Left => model.aside(false),
        KeyCode::Right => model.aside(true),
        KeyCode::Tab => model.sight = model.sight.next(),
        KeyCode::Enter => {
            model.focus = match model.focus {
                Focus::Plans if model.plan.as_ref().is_some_and(|it| !it.steps.is_empty()) => Focus::Steps,
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
        'k' => model.step_by(-1),
        'j' => model.step_by(1),
        'g' => model.step_by(isize::MIN / 2),
        'G' => model.step_by(isize::MAX / 2),
        'h' => model.aside(false),
        'l' => model.aside(true),
        '?' => model.is_help = true,
        'q' => return Some(Effect::Quit),
        'X' => return Some(Effect::StopRun),
        'u' => {
            return Some(Effect::Act(Act {
                does: Does::FindUndo,
                id: String::new(),
                text: None,
                etag: None,
            }));
        }
        'z' => {
            model.shows_closed = !model.shows_closed;
            return Some(Effect::Reload);
        }
        'm' => {
            model.is_mouse_on = !model.is_mouse_on;
            return Some(Effect::Mouse(model.is_mouse_on));
        }
        '/' => ask(model, "search", Asked::Search),
        ':' => ask(model, "planwatch", Asked::Command),
        'R' => {
            let plan = model.plan_id.clone().unwrap_or_default();
            ask(model, "planwatch", Asked::Command);
            if let Some(prompt) = &mut model.prompt {
                prompt.text = format!("run {} --agent claude", typed::quoted(&plan));
            }
        }
        'e' => return target(model).map(|it| Effect::Edit(it.0)),
        'c' => return act(model, Does::Claim),
        's' => return act(model, Does::Move(Verb::Start)),
        'd' => return act(model, Does::Move(Verb::Done)),
        'x' => return act(model, Does::Move(Verb::Skip)),
        'r' => return act(model, Does::Move(Verb::Reopen)),
        'y' => return act(model, Does::Confirm),
        'f' => words(model, "why does it fail", Does::Move(Verb::Fail), false),
        'b' => words(model, "what blocks it", Does::Move(Verb::Block), false),
        'n' => words(model, "note", Does::Note, true),
        'a' => words(model, "attempt (outcome: notes)", Does::Attempt, true),
        '+' => words(model, "title of the new step", Does::Add, true),
        _ => {}
    }
    None
}

/// The step that is selected, else the plan, and the version that is shown.
fn target(model: &Model) -> Option<(String, Option<String>)> {
    let step = || model.selected().map(|it| (it.id.clone(), it.etag.clone()));
    let plan = || model.selected_plan().map(|it| (it.id.clone(), it.etag.clone()));
    if model.focus == Focus::Plans { plan() } else { step().or_else(plan) }
}

fn act(model: &mut Model, does: Does) -> Option<Effect> {
    let Some((id, etag)) = target(model) else {
        model.message = Some((Tone::Bad, "nothing is selected".to_owned()));
        return None;
    };
    Some(Effect::Act(Act { does, id, text: None, etag }))
}

fn ask(model: &mut Model, label: &str, what: Asked) {
    model.prompt = Some(Prompt { label: label.to_owned(), text: String::new(), what });
}

fn words(model: &mut Model, label: &str, does: Does, is_needed: bool) {
    if let Some(Effect::Act(act)) = act(model, does) {
        let label = format!("{label} · {}", act.id);
        ask(model, &label, if is_needed { Asked::Needed(act) } else { Asked::Words(act) });
    }
}

/// A key while words are asked for.
fn typed(model: &mut Model, code: KeyCode, is_control: bool) -> Option<Effect> {
    let prompt = model.prompt.as_mut()?;
    match code {
        KeyCode::Esc => {
            let is_search = model.prompt.take().is_some_and(|it| it.what == Asked::Search);
            if is_search {
                model.search.clear();
            }
        }
        KeyCode::Char('c') if is_control => model.prompt = None,
        KeyCode::Char('u') if is_control => prompt.text.clear(),
        KeyCode::Char('w') if is_control => {
            let kept = prompt.text.trim_end().rfind(' ').map_or(0, |it| it + 1);
            prompt.text.truncate(kept);
        }
        KeyCode::Char(c) if !is_control => prompt.text.push(c),
        KeyCode::Backspace => drop(prompt.text.pop()),
        KeyCode::Enter => return entered(model),
        _ => {}
    }
    searched(model);
    None
}

/// A search is seen while it is typed.
fn searched(model: &mut Model) {
    if let Some(prompt) = model.prompt.as_ref().filter(|it| it.what == Asked::Search) {
        model.search.clone_from(&prompt.text);
    }
}

fn entered(model: &mut Model) -> Option<Effect> {
    let Prompt { text, what, label } = model.prompt.take()?;
    let text = text.trim().to_owned();
    match what {
        Asked::Words(act) => Some(Effect::Act(Act { text: Some(text).filter(|it| !it.is_empty()), ..act })),
        Asked::Needed(act) if text.is_empty() => {
            model.prompt = Some(Prompt { label, text, what: Asked::Needed(act) });
            None
        }
        Asked::Needed(act) => Some(Effect::Act(Act { text: Some(text), ..act })),
        Asked::Yes(act) => Some(Effect::Act(act)),
        Asked::Search => None,
        Asked::Command if text.is_empty() => None,
        Asked::Command => match typed::words(&text) {
            Some(words) => Some(Effect::Command(words)),
            None => {
                model.message = Some((Tone::Bad, "a quote is not closed".to_owned()));
                model.prompt = Some(Prompt { label, text, what: Asked::Command });
                None
            }
        },
    }
}

/// Pasted text is words and never keys.
pub(crate) fn paste(model: &mut Model, text: &str) {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match &mut model.prompt {
        Some(prompt) => prompt.text.push_str(&line),
        None => model.message = Some((Tone::Bad, "press a key such as n before you paste".to_owned())),
    }
    searched(model);
}

pub(crate) fn mouse(model: &mut Model, event: MouseEvent) -> Option<Effect> {
    let at = Position::new(event.column, event.row);
    let hit = model.hits.iter().rev().find(|(area, _)| area.contains(at)).map(|(_, it)| it.clone());
    match (event.kind, hit) {
        (MouseEventKind::ScrollUp | MouseEventKind::ScrollDown, Some(hit)) => {
            let by = if event.kind == MouseEventKind::ScrollUp { -1 } else { 1 };
            model.focus = focus_of(&hit);
            model.step_by(by);
        }
        (MouseEventKind::Down(MouseButton::Left), Some(hit)) => {
            model.message = None;
            model.focus = focus_of(&hit);
            match hit {
                Hit::Plan(id) => model.select_plan(Some(id)),
                Hit::Step(id) => {
                    model.select_step(Some(id.clone()));
                    model.dragged = Some(id);
                }
                Hit::Column(_) | Hit::Steps | Hit::Details => {}
            }
        }
        (MouseEventKind::Up(MouseButton::Left), hit) => {
            let dragged = model.dragged.take()?;
            let area = model.hits.iter().find(|(area, it)| area.contains(at) && matches!(it, Hit::Column(_)));
            let Some((_, Hit::Column(to))) = area.cloned() else {
                return hit.and(None);
            };
            return dropped(model, &dragged, to);
        }
        _ => {}
    }
    None
}

fn focus_of(hit: &Hit) -> Focus {
    match hit {
        Hit::Plan(_) => Focus::Plans,
        Hit::Step(_) | Hit::Column(_) | Hit::Steps => Focus::Steps,
        Hit::Details => Focus::Details,
    }
}

/// A card that is dropped on a column; the engine decides whether that is possible.
fn dropped(model: &mut Model, id: &str, to: Column) -> Option<Effect> {
    let step = model.steps().iter().find(|it| it.id == id)?;
    if Column::of(step) == to {
        return None;
    }
    match to {
        Column::Waiting | Column::Ready => act(model, Does::Move(Verb::Reopen)),
        Column::Doing => act(model, Does::Move(Verb::Start)),
        Column::Done => act(model, Does::Move(Verb::Done)),
        Column::Stuck => {
            words(model, "what blocks it", Does::Move(Verb::Block), false);
            None
        }
    }
}
