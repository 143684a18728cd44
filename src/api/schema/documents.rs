//! Answers about templates, prompts and instructions, and answers of `init`, `git`, `sync` and `export`.

use super::queries::{page, shown_plan};
use super::{Answers, Object, count, flag, list, maybe, maybe_text, part, text, word};

pub(super) fn answers() -> Answers {
    vec![
        ("template-list", template_list()),
        ("template", named().field("files", files())),
        ("prompt", prompt()),
        ("rendered-prompt", rendered()),
        ("instructions", Object::new().fields(["topic", "text"], &text()).field("topics", list(text()))),
        ("init", init()),
        ("commit", commit()),
        ("git-setup", git_setup()),
        ("git-resolve", git_resolve()),
        ("git-review", git_review()),
        ("sync", sync()),
        ("sync-init", sync_init()),
        ("export", shown_plan()),
        (
            "export-text",
            Object::new()
                .fields(["plan", "text"], &text())
                .field("form", word(["markdown", "mermaid", "adr", "html"])),
        ),
        (
            "export-site",
            Object::new()
                .field("directory", text())
                .field("form", word(["html"]))
                .field("files", list(text())),
        ),
    ]
}

fn init() -> Object {
    let file = || Object::new().fields(["path", "did"], &text()).field("why", maybe_text()).closed();
    let command = Object::new().fields(["command", "why"], &text());
    Object::new()
        .fields(["undo", "dry_run"], &flag())
        .field("plans", maybe(file()))
        .field("files", list(file()))
        .field("commands", list(command.closed()))
        .field("diff", text())
        .optional("kept", list(part("Kept")))
        .optional("not_recorded", flag())
}

/// `store::commit::CommitReport`.
fn commit() -> Object {
    let file = Object::new().field("path", text()).field("did", word(["added", "changed", "removed"]));
    let why = word(["edited", "staged", "conflict", "submodule", "link", "unreadable"]);
    Object::new()
        .field("dry_run", flag())
        .fields(["commit", "branch", "message"], &maybe_text())
        .field("files", list(file.closed()))
        .field("left", list(Object::new().field("path", text()).field("why", why).closed()))
}

/// `ops::git_setup::GitSetupReport`.
fn git_setup() -> Object {
    let did = word(["made", "changed", "removed", "unchanged"]);
    Object::new()
        .fields(["undo", "dry_run"], &flag())
        .fields(["driver", "attributes"], &did)
        .fields(["diff", "jj"], &text())
        .optional("overridden", Object::new().fields(["path", "merge"], &text()).closed())
}

/// `ops::git_resolve::GitResolveReport`.
fn git_resolve() -> Object {
    let state = word(["resolved", "conflict", "edited", "number-taken", "removed", "restored", "carried"]);
    let file = Object::new().field("path", text()).field("state", state).field("decided", list(text()));
    let file = file.optional("renumbered", text());
    Object::new()
        .field("dry_run", flag())
        .field("files", list(file.closed()))
        .field("diff", text())
        .optional("not_examined_because_of", list(text()))
        .optional("kept", list(part("Kept")))
        .optional("not_recorded", flag())
}

/// `ops::git_review::GitReviewReport`.
fn git_review() -> Object {
    let file = Object::new().field("path", text()).field("state", word(["lost", "differs", "conflict"]));
    let file = file.field("lost", list(text())).field("status", list(text()));
    Object::new().field("merge", text()).field("files", list(file.closed()))
}

/// `ops::sync::SyncReport`.
fn sync() -> Object {
    let claim = Object::new()
        .field("step", text())
        .fields(["state", "claim", "by", "host", "branch", "at"], &maybe_text())
        .fields(["own", "lapsed", "unsettled", "lost", "ended_nowhere"], &flag());
    let what = word(["confirmed", "lost", "restored", "released", "unsettled"]);
    let settled = Object::new().field("step", text()).field("what", what).field("why", maybe_text());
    Object::new()
        .field("dry_run", flag())
        .fields(["remote", "claims_at"], &text())
        .fields(["branch", "listed_at", "error"], &maybe_text())
        .field("claims", list(claim.closed()))
        .field("settled", list(settled.closed()))
        .field("removed", count())
}

/// `ops::sync::init::SyncInitReport`.
fn sync_init() -> Object {
    let refused = Object::new().fields(["claims_at", "why"], &text());
    Object::new()
        .field("dry_run", flag())
        .field("did", word(["made", "joined", "unchanged"]))
        .fields(["id", "remote", "claims_at"], &text())
        .field("branch", maybe_text())
        .field("refused", list(refused.closed()))
        .fields(["path", "diff"], &text())
}

fn named() -> Object {
    Object::new()
        .field("name", text())
        .field("description", maybe_text())
        .field("source", word(["own", "built-in"]))
}

fn template_list() -> Object {
    let item = named()
        .field("files", list(text()))
        .field("of", word(["plan", "prompt"]))
        .optional("problem", maybe_text());
    Object::new().field("templates", list(item.closed())).and(page())
}

fn files() -> serde_json::Value {
    list(Object::new().fields(["name", "path", "text"], &text()).closed())
}

fn prompt() -> Object {
    named().field("files", files()).field("variables", list(text())).field("problem", maybe_text())
}

fn rendered() -> Object {
    Object::new().fields(["name", "text"], &text()).field("notes", list(text()))
}
