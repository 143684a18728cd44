//! What all pages have in common: the frame, the notice about an action, and the headings of refusals.

use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::session::{Notice, Session};
use super::{assets, forms, links};
use crate::page::text::{isolated, one_line};

/// The entries of the main navigation, and `Elsewhere` for all other pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Plans,
    Decisions,
    Problems,
    Statistics,
    Elsewhere,
}

/// What a request for a page contains, in addition to the page's own parameters.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) session: Session,
    /// The path and query of the page, to which its forms return.
    pub(super) here: String,
    /// Whether the script asks only for the part of the page that changes.
    pub(super) is_part: bool,
    pub(super) notice: Option<Notice>,
}

/// A page before it is put into its frame.
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) place: Place,
    /// The plan that the page is about. The script ignores changes of other plans, unless the page shows what a step waits
    /// for. `None` if the script must not ignore any change.
    pub(super) plan: Option<&'a str>,
    pub(super) main: Markup,
}

const NAVIGATION: [(Place, &str, &str); 5] = [
    (Place::Overview, "/", "Overview"),
    (Place::Plans, "/#plans", "Plans"),
    (Place::Decisions, "/decisions", "Decisions"),
    (Place::Problems, "/problems", "Problems"),
    (Place::Statistics, "/stats", "Statistics"),
];

/// The keyboard shortcuts, as the help lists them. Most of them do the same on the board in the terminal. `m` and `y`, for
/// example, differ.
const KEYS: [(&str, &str); 20] = [
    ("j k ↓ ↑", "next and previous card or row"),
    ("h l ← →", "previous and next column"),
    ("g G", "first and last card or row"),
    ("Enter", "open it"),
    ("/", "search"),
    ("c", "claim"),
    ("s", "start"),
    ("d", "done"),
    ("f", "failed, with the reason"),
    ("b", "blocked, with the reason"),
    ("x", "skip"),
    ("r", "reopen"),
    ("y", "go to the confirmation"),
    ("n", "write a note"),
    ("a", "record an attempt"),
    ("+", "add a step after this one"),
    ("e", "edit the text"),
    ("m", "open its menu"),
    ("u", "undo the last change"),
    ("? Esc", "this list; close it"),
];

impl Visit {
    pub(super) fn is_read_only(&self) -> bool {
        self.session.opener.is_read_only
    }

    /// The user who opened the pages.
    pub(super) fn by(&self) -> &str {
        &self.session.opener.by
    }

    pub(super) fn show(&self, page: &Page<'_>) -> Response {
        let main = html! { main id="main" tabindex="-1" { (page.main) } };
        if self.is_part {
            return html(&main);
        }
        let title = format!("{} · planwatch", one_line(page.title));
        html(&frame(
            &title,
            &html! {
                body data-plan=[page.plan] {
                    a class="skip" href="#main" { "Skip to the content" }
                    (self.top(page.place))
                    p id="live" role="status" {}
                    div id="notice" role="status" { @if let Some(it) = &self.notice { (self.notice(it)) } }
                    (main)
                    (help())
                    @if !self.is_read_only() { (reason()) }
                }
            },
        ))
    }

    fn top(&self, place: Place) -> Markup {
        html! {
            header class="top" {
                a class="brand" href="/" { "planwatch" }
                nav aria-label="Main" {
                    @for (of, path, word) in NAVIGATION {
                        a href=(path) aria-current=[(of == place).then_some("page")] { (word) }
                    }
                }
                form class="find" role="search" action="/search" {
                    input type="search" name="q" aria-label="Search" placeholder="Search" maxlength="500";
                }
                button type="button" class="script keys" data-keys="" aria-label="Keyboard shortcuts" title="Keyboard shortcuts: press ?" { kbd { "?" } }
                details class="menu you" {
                    summary { (isolated(&self.session.opener.by)) }
                    div class="sheet" {
                        @if self.is_read_only() { p { "Read-only" } }
                        @else { a href="/undo" { "Undo changes" } }
                        form method="post" action="/sign-out" {
                            input type="hidden" name="page" value=(self.session.page_token);
                            button { "Sign out" }
                        }
                    }
                }
            }
        }
    }

    /// The notice about an action, with a button that undoes the action if that is possible.
    pub(super) fn notice(&self, notice: &Notice) -> Markup {
        self.notice_before(notice, None)
    }

    /// Like [`Self::notice`]. `to` is the address that the script opens if it leaves the page. The page at that address
    /// shows the notice, too.
    pub(super) fn notice_before(&self, notice: &Notice, to: Option<&str>) -> Markup {
        html! {
            div class="notice" tabindex="-1" data-to=[to] {
                p { (links::in_sentence(&notice.text)) }
                @if let Some(id) = &notice.undo {
                    form method="post" action="/do" data-act="undo" {
                        (forms::hidden(self, "undo", id))
                        button { "Undo" }
                    }
                }
                (close())
            }
        }
    }
}

/// The button that closes a notice. It is shown only with script. Without script, the notice disappears when another page is
/// opened.
pub(super) fn close() -> Markup {
    html! { button type="button" class="script close" data-close="" aria-label="Close" title="Close" { "×" } }
}

fn help() -> Markup {
    html! {
        dialog id="keys" aria-label="Keys" {
            h2 { "Keys" }
            dl { @for (key, word) in KEYS { dt { kbd { (key) } } dd { (word) } } }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// Asks for the reason when a key marks a step as failed or blocked.
fn reason() -> Markup {
    html! {
        dialog id="reason" aria-labelledby="reason-title" {
            form class="stack" method="dialog" {
                h2 id="reason-title" {}
                label for="reason-text" { "Reason " span class="quiet" { "(optional; recorded as an attempt)" } }
                input id="reason-text" name="reason" autocomplete="off";
                div class="buttons" {
                    button class="primary" value="yes" { "Do it" }
                    button value="" formnovalidate { "Cancel" }
                }
            }
        }
    }
}

fn frame(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/style.css";
                script type="module" src=(assets::SCRIPT_ADDRESS.as_str()) {}
            }
            (body)
        }
    }
}

/// A page for requests without a session. It must not show anything about the plans.
pub(super) fn bare(title: &str, main: &Markup) -> Response {
    let body = html! {
        body class="bare" data-still="" {
            header class="top" { a class="brand" href="/" { "planwatch" } }
            p id="live" role="status" {}
            main id="main" { (main) }
        }
    };
    html(&frame(&format!("{title} · planwatch"), &body))
}

pub(super) fn html(markup: &Markup) -> Response {
    document(markup.0.clone())
}

/// A page whose HTML is already complete.
pub(super) fn document(page: String) -> Response {
    (assets::policy(), [(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

/// The answer if a person follows a link on another site. The browser sends no cookie with that request, but it sends
/// the cookie if the person clicks the button on this page.
pub(super) fn stranger(to: &Uri) -> Response {
    let path = to.path_and_query().map_or("/", |it| it.as_str());
    let main = html! {
        h1 { "Open this page" }
        p { "A link on another site leads here. Nothing of the plans is shown until you open the page yourself." }
        p { a class="button primary" href=(super::sign_in::own_path(Some(path.to_owned()))) { "Open" } }
    };
    bare("Open this page", &main)
}

pub(super) fn heading(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is no such page",
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "Not allowed",
        it if it.is_server_error() => "Something failed",
        _ => "Not done",
    }
}
