//! The second protection against HTML of the author: removes everything that is not listed here from the rendered HTML.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ammonia::{Builder, UrlRelative};

const TAGS: [&str; 31] = [
    "a",
    "bdi",
    "blockquote",
    "br",
    "code",
    "del",
    "div",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "input",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
    "span",
];

/// The classes that are allowed, besides those of code blocks.
const CLASSES: [&str; 15] = [
    "outside",
    "alert",
    "alert-note",
    "alert-tip",
    "alert-important",
    "alert-warning",
    "alert-caution",
    "alert-title",
    "scroll",
    "left",
    "center",
    "right",
    "footnote",
    "footnote-mark",
    "task",
];

/// Returns the HTML with only the elements, attributes and classes that are listed here. `made` are the addresses that
/// the renderer made itself.
pub(super) fn clean(html: &str, id_prefix: &str, made: HashSet<String>) -> String {
    let attributes: HashMap<&str, HashSet<&str>> = HashMap::from([
        ("a", HashSet::from(["href", "rel", "target", "class", "title"])),
        ("code", HashSet::from(["class"])),
        ("div", HashSet::from(["class", "tabindex", "role", "aria-label", "id"])),
        ("p", HashSet::from(["class"])),
        ("blockquote", HashSet::from(["class"])),
        ("td", HashSet::from(["class"])),
        ("th", HashSet::from(["class"])),
        ("sup", HashSet::from(["class"])),
        ("span", HashSet::from(["class"])),
        ("img", HashSet::from(["src", "alt", "title"])),
        ("ol", HashSet::from(["start"])),
        (
            "input",
            HashSet::from(["type", "checked", "disabled", "aria-label", "data-line", "data-hash", "class"]),
        ),
        ("h1", HashSet::from(["id"])),
        ("h2", HashSet::from(["id"])),
        ("h3", HashSet::from(["id"])),
        ("h4", HashSet::from(["id"])),
        ("h5", HashSet::from(["id"])),
        ("h6", HashSet::from(["id"])),
    ]);
    let prefix = id_prefix.to_owned();
    let filter = move |element: &str, name: &str, value: &str| match (element, name) {
        ("img", "src") => made.contains(value),
        ("a", "href") => is_outside(value) || made.contains(value),
        (_, "id") => value.starts_with(&prefix),
        ("input", "type") => value == "checkbox",
        ("code", "class") => is_language(value),
        (_, "class") => value.split(' ').all(|it| CLASSES.contains(&it)),
        _ => true,
    };
    let mut builder = Builder::empty();
    builder
        .tags(TAGS.into())
        .tag_attributes(attributes)
        .generic_attributes(HashSet::new())
        .url_schemes(HashSet::from(["http", "https", "mailto", "data"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(None)
        .attribute_filter(move |element, name, value| {
            filter(element, name, value).then_some(Cow::Borrowed(value))
        });
    builder.clean(html).to_string()
}

fn is_outside(address: &str) -> bool {
    let folded = address.get(..8).unwrap_or(address).to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|it| folded.starts_with(it))
}

fn is_language(class: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.');
    class.strip_prefix("language-").is_some_and(|it| it.len() <= 30 && it.chars().all(is_usual))
}
