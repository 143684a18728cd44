//! Translates the hints of the command line for the tools of agents and for the routes of HTTP.
//!
//! The hints of operations name commands and options of the command line. Agents use tools instead, and HTTP clients use
//! routes. A hint consists of parts, which are separated by `, ` or `; `. A part that names a command, an option or a
//! variable is translated. If there is no counterpart, the part is left out. Other parts stay as they are.

use crate::api::error::Error;
use crate::text::typed;

/// A surface other than the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    Tools,
    Routes,
}

/// Phrases of hints, each with its replacements for tools and for routes.
const PHRASES: [(&str, &str, &str); 16] = [
    (
        "finish or skip them, or use --force",
        "finish or skip them, or give `force`",
        "finish or skip them, or send `force` to the route of the verb",
    ),
    // Only tools that have an argument `force` can return the hint above. Most tools have none, so for tools, the following
    // phrases about `--force` are removed.
    (
        ", or use --force, which is recorded",
        "",
        ", or send `force` to the route of the verb, which is recorded",
    ),
    (", or use --force", "", ", or send `force` to the route of the verb"),
    ("--force takes it over, which is recorded", "", "`force` takes it over, which is recorded"),
    ("--force overrides this, which is recorded", "", ""),
    (
        "name the claim with --claim ID",
        "give the id of your claim as `claim`",
        "give the id of your claim as `claim`",
    ),
    ("--after ", "after_step ", "`after` "),
    ("leave --phase out", "leave the phase out", "leave the phase out"),
    ("leave --type out", "leave the type out", "leave `type` out"),
    ("with --because", "as `reasoning`", "as `because`"),
    ("with --supersedes", "with `supersedes`", "with `supersedes`"),
    (
        "use --yes to remove it",
        "delete_plan asks the person before it removes the plan",
        "send `yes` to remove it",
    ),
    ("choose another --as", "choose another title", "choose another `name`"),
    ("--passes must", "`passes` must", "`passes` must"),
    (
        "write a Markdown list of steps, or a JSON array of titles or of objects as `list --json` has them",
        "give a list of titles or of step objects",
        "send a Markdown list of steps, or a JSON array of titles or of step objects",
    ),
    (
        "+=ITEM adds one",
        " is given whole, as a list",
        " is sent whole with `yaml`, or changed with `add` and `take`",
    ),
];

/// If an import was refused because its source had been imported before, returns the error with a hint that names the
/// field `again`.
pub(super) fn import_again(error: Error) -> Error {
    match error {
        Error::Conflict { code: code @ "already-imported", message, .. } => {
            let hint = "change that plan, or give `again` as true to make another one".to_owned();
            Error::Conflict { code, message, hint }
        }
        other => other,
    }
}

/// Verbs that only a person can use, each with its replacements for tools and for routes.
const PERSONS: [(&str, &str, &str); 2] = [
    ("confirm", "confirm_gate asks the person", "a person has to confirm it at a terminal"),
    ("trust", "a person has to trust it at a terminal", "a person has to trust it at a terminal"),
];

/// Verbs, each with two tools that do the same. The first tool is used without an id or with a plan's id, the second with
/// a step's id. An empty text means that there is no such tool.
const TOOLS: [(&str, &str, &str); 19] = [
    ("show", "get_plan", "get_step"),
    ("next", "claim_next_step", "claim_next_step"),
    ("claim", "claim_next_step", "claim_next_step"),
    ("list --all", "list_plans with status `all`", ""),
    ("list", "get_plan", "get_step"),
    ("status", "briefing", ""),
    ("search", "recall", ""),
    ("new", "create_plan", ""),
    ("add", "add_step", "add_step"),
    ("reopen", "update_plan with status `active`", "update_step with status `pending`"),
    ("start", "update_plan with status `active`", "update_step with status `in_progress`"),
    ("done", "update_plan with status `completed`", "update_step with status `completed`"),
    ("release", "update_step with status `pending`", "update_step with status `pending`"),
    ("archive --restore", "update_plan with archived `false`", ""),
    ("note", "add_note", "add_note"),
    ("decide", "get_decisions", ""),
    ("insight", "recall", ""),
    ("squash", "restructure_plan with op `consolidate`", "restructure_plan with op `consolidate`"),
    ("template list", "list_assets with kind `templates`", ""),
];

/// Verbs, each with three routes that do the same: one without an id, one with a plan's id, and one with a step's id. An
/// empty text means that there is no such route.
const ROUTES: [(&str, &str, &str, &str); 25] = [
    ("show", "", "GET /api/show/{}", "GET /api/show/{}"),
    ("next", "GET /api/next", "POST /api/plans/{}/claim", ""),
    ("claim", "POST /api/claim", "POST /api/plans/{}/claim", "POST /api/steps/{}/claim"),
    ("list --all", "GET /api/list", "GET /api/list", ""),
    ("list", "", "GET /api/list/{}", ""),
    ("status", "GET /api/status", "", ""),
    ("check --fix", "POST /api/problems/fix", "", ""),
    ("check", "GET /api/problems", "", ""),
    ("new", "POST /api/new", "", ""),
    ("add", "", "POST /api/plans/{}/add", ""),
    ("attempt", "", "", "POST /api/steps/{}/attempts"),
    ("reopen", "", "POST /api/plans/{}/reopen", "POST /api/steps/{}/reopen"),
    ("start", "", "POST /api/plans/{}/start", "POST /api/steps/{}/start"),
    ("done", "", "POST /api/plans/{}/done", "POST /api/steps/{}/done"),
    ("release", "", "", "POST /api/steps/{}/release"),
    ("archive --restore", "", "POST /api/plans/{}/restore", ""),
    ("remove", "", "DELETE /api/plans/{}", "DELETE /api/steps/{}"),
    ("squash", "", "POST /api/plans/{}/squash", ""),
    ("undo --list", "GET /api/undo", "", ""),
    ("undo", "POST /api/undo", "POST /api/undo", ""),
    ("decide", "GET /api/decisions", "GET /api/decisions", ""),
    ("insight", "GET /api/insights", "GET /api/insights", ""),
    ("template list", "GET /api/templates", "", ""),
    ("script show", "GET /api/scripts", "GET /api/scripts/{}", ""),
    ("doctor", "GET /api/doctor", "", ""),
];

/// Verbs of the command line. Before one of these words, `planwatch` begins a command. Before any other word, it is the
/// name of the program.
const VERBS: &str = " add archive attempt block board browser check claim completions confirm decide diff doctor \
                     done draft edit export fail git help hook import init insight instructions list log lsp man mcp \
                     move new next note recall release remove reopen replace restore run script search set show skip \
                     split sql squash stale start stats status steps steps-list sync template tick token trust undo \
                     unset watch ";

/// Translates a hint for a surface; `None` if nothing is left, or if the whole hint is a command without a counterpart.
pub(super) fn for_surface(hint: &str, surface: Surface) -> Option<String> {
    if let Some(command) = hint.strip_prefix("planwatch ") {
        return counterpart(command, surface);
    }
    let hint = PHRASES.iter().fold(hint.to_owned(), |text, (from, tools, routes)| {
        text.replace(from, if surface == Surface::Tools { tools } else { routes })
    });
    left(&hint, |part| {
        let part = translated(part, surface);
        (!is_of_command_line(&part)).then_some(part)
    })
}

/// Returns a hint for the pages: leaves out the parts that name commands, options or variables.
pub(super) fn on_page(hint: &str) -> Option<String> {
    let is_typed = |part: &str| part.contains("planwatch ") || is_of_command_line(part);
    left(hint, |part| (!is_typed(part)).then(|| part.to_owned()))
}

/// Leaves out the parts of a hint that name an unavailable tool. `all` lists all tools; `has` says which are available. A
/// tool whose name has no underscore is not recognized.
pub(super) fn with_tools(hint: &str, all: &[&str], has: impl Fn(&str) -> bool) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    left(hint, |part| {
        let words = part.match_indices(is_word).map(|(at, _)| at);
        let starts = words.filter(|at| *at == 0 || !part[..*at].ends_with(is_word));
        let is_missing = |at: usize| {
            let word = part[at..].split(|c| !is_word(c)).next().unwrap_or_default();
            // The word after `action` is a value of that argument, not a tool.
            let is_value = part[..at].ends_with("action `");
            word.contains('_') && all.contains(&word) && !has(word) && !is_value
        };
        let has_missing = starts.into_iter().any(is_missing);
        (!has_missing).then(|| part.to_owned())
    })
}

/// Joins the parts of a hint that `keep` returns, with the separators between them.
fn left(hint: &str, keep: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut told = String::new();
    let mut was_left_out = false;
    for (between, part) in parts(hint) {
        // A part that only explains the previous one is removed with it.
        let is_addition = part.starts_with("which ");
        let kept =
            if was_left_out && is_addition { None } else { keep(part).filter(|it| !it.trim().is_empty()) };
        was_left_out = kept.is_none();
        let Some(kept) = kept else { continue };
        if told.is_empty() {
            let words = ["or ", "else ", "then ", "and "].iter().find_map(|it| kept.strip_prefix(it));
            told.push_str(words.unwrap_or(&kept).trim_start());
        } else {
            told.extend([between, kept.as_str()]);
        }
    }
    (!told.is_empty()).then_some(told)
}

/// Splits a hint into its parts, each with the separator before it. Separators between backticks do not count.
fn parts(hint: &str) -> Vec<(&str, &str)> {
    let (mut parts, mut from, mut between) = (Vec::new(), 0, "");
    let mut is_code = false;
    for (at, c) in hint.char_indices() {
        is_code ^= c == '`';
        let is_end = matches!(c, ';' | ',') && hint[at + 1..].starts_with(' ');
        if is_end && !is_code {
            parts.push((between, &hint[from..at]));
            (between, from) = (&hint[at..at + 2], at + 2);
        }
    }
    parts.push((between, &hint[from..]));
    parts
}

/// Replaces the commands between backticks in a part with tools or routes. A part with a verb that only a person can use
/// is replaced as a whole.
fn translated(part: &str, surface: Surface) -> String {
    for (verb, tools, routes) in PERSONS {
        if part.contains(&format!("`planwatch {verb} ")) || part.contains(&format!("`planwatch {verb}`")) {
            return if surface == Surface::Tools { tools } else { routes }.to_owned();
        }
    }
    let mut told = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once("`planwatch ") {
        let Some((command, behind)) = after.split_once('`') else { break };
        told.push_str(before);
        match counterpart(command, surface) {
            Some(it) if surface == Surface::Routes => told.extend(["`", &it, "`"]),
            Some(it) => told.push_str(&it),
            None => told.extend(["`planwatch ", command, "`"]),
        }
        rest = behind;
    }
    told + rest
}

/// The tool or route that does what a command does.
fn counterpart(command: &str, surface: Surface) -> Option<String> {
    let words = typed::words(command)?;
    let is_option = |it: &&String| it.starts_with("--");
    let verb = words.first()?.as_str();
    let options: Vec<_> = words.iter().filter(is_option).map(String::as_str).collect();
    let mut rest = words.iter().skip(1).filter(|it| !is_option(it)).map(String::as_str);
    let is_group = matches!(verb, "template" | "script");
    let second = if is_group { rest.next() } else { options.first().copied() };
    if options.len() > usize::from(!is_group) {
        return None;
    }
    let whole = second.map_or_else(|| verb.to_owned(), |it| format!("{verb} {it}"));
    // Upper-case words are placeholders that the reader fills in.
    let id = rest.next().filter(|it| it.chars().any(char::is_lowercase) || it.contains('{'));
    let id = id.map(typed::without_dot);
    let whole = if whole == "list" && id.is_none() { "list --all".to_owned() } else { whole };
    let is_step = id.is_some_and(|it| it.contains(':'));
    match surface {
        Surface::Tools => {
            let (_, plan, step) = TOOLS.iter().find(|(it, ..)| *it == whole)?;
            let tool = if is_step { step } else { plan };
            let (name, with) = tool.split_at(tool.find(' ').unwrap_or(tool.len()));
            let named = id.map_or_else(String::new, |it| format!(" `{it}`"));
            (!tool.is_empty()).then(|| format!("{name}{named}{with}"))
        }
        Surface::Routes => {
            let (_, none, plan, step) = ROUTES.iter().find(|(it, ..)| *it == whole)?;
            let route = match id {
                None => none,
                Some(_) if is_step => step,
                Some(_) => plan,
            };
            (!route.is_empty()).then(|| route.replace("{}", &in_path(id.unwrap_or_default())))
        }
    }
}

/// An id, percent-encoded for the path of a request.
fn in_path(id: &str) -> String {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.~:{}".contains(&it);
    id.bytes()
        .map(|it| if is_plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") })
        .collect()
}

/// Whether a text names commands, options or variables of the command line.
pub(super) fn is_of_command_line(text: &str) -> bool {
    let has_option = text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let is_begun = before.is_none_or(|it| !it.is_alphanumeric() && it != '-');
        is_begun && text[at + 2..].starts_with(|it: char| it.is_ascii_lowercase())
    });
    let has_command = text.match_indices("planwatch ").any(|(at, name)| {
        let word = text[at + name.len()..].split(|it: char| !it.is_ascii_alphanumeric()).next();
        word.is_some_and(|it| !it.is_empty() && VERBS.contains(&format!(" {it} ")))
    });
    has_option || has_command || ["PLANWATCH_", "PLANS_DIR", "=ITEM"].iter().any(|it| text.contains(it))
}

#[cfg(test)]
mod tests;
