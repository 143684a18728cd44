//! Resources: plans, steps, decisions and the briefing as texts that a client can show, attach and follow.
//!
//! The text of a plan or step is the content of its file. The error for a missing resource contains the requested URI.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::decide::{self, DecisionsRequest};
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::status::{self, StatusRequest};
use crate::ops::upsert;
use crate::serve::ipc::event::{Notification, Of, What};
use crate::serve::mcp::result;

const SCHEME: &str = "planwatch:///";

const MARKDOWN: &str = "text/markdown";

/// The maximum number of resources in a page.
const PAGE: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Briefing,
    Plan(String),
    /// A plan, and a step's number.
    Step(String, String),
    Topic(String),
}

impl Named {
    fn read(uri: &str) -> Option<Self> {
        let parts: Vec<String> = uri.strip_prefix(SCHEME)?.split('/').map(decoded).collect::<Option<_>>()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if parts.iter().any(|it| it.is_empty()) {
            return None;
        }
        match parts.as_slice() {
            ["briefing"] => Some(Self::Briefing),
            ["plans", plan] => Some(Self::Plan((*plan).to_owned())),
            ["plans", plan, "steps", number] => Some(Self::Step((*plan).to_owned(), (*number).to_owned())),
            ["decisions", topic] => Some(Self::Topic((*topic).to_owned())),
            _ => None,
        }
    }

    fn uri(&self) -> String {
        match self {
            Self::Briefing => format!("{SCHEME}briefing"),
            Self::Plan(plan) => format!("{SCHEME}plans/{}", encoded(plan)),
            Self::Step(plan, number) => format!("{SCHEME}plans/{}/steps/{}", encoded(plan), encoded(number)),
            Self::Topic(topic) => format!("{SCHEME}decisions/{}", encoded(topic)),
        }
    }

    /// Whether the resource's text may have changed, according to a notification.
    fn is_touched_by(&self, told: &Notification) -> bool {
        match (self, told) {
            (_, Notification::Changed { plan: None }) | (Self::Briefing, _) => true,
            (Self::Topic(_), _) => false,
            (Self::Plan(of) | Self::Step(of, _), Notification::Changed { plan: Some(plan) }) => {
                of == plan.as_str()
            }
            (Self::Plan(of), Notification::Event(event)) => *of == event.plan,
            (Self::Step(plan, number), Notification::Event(event)) => event.id == format!("{plan}:{number}"),
        }
    }
}

/// Percent-encodes a name as a part of a URI's path.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            other => {
                let _ = write!(text, "%{other:02X}");
            }
        }
    }
    text
}

/// Decodes a part of a URI's path. Returns `None` if the result is not UTF-8, or if a `%` lacks its two hexadecimal digits.
fn decoded(part: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), part.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        match (*first, more) {
            (b'%', [high, low, more @ ..]) if high.is_ascii_hexdigit() => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = more;
            }
            (b'%', _) => return None,
            (byte, more) => {
                bytes.push(byte);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a URI has the form of a resource's URI.
pub(super) fn is_uri(uri: &str) -> bool {
    Named::read(uri).is_some()
}

/// The answer to `resources/templates/list`.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |path: &str, name: &str, title: &str| {
        ResourceTemplate::new(format!("{SCHEME}{path}"), name).with_title(title).with_mime_type(MARKDOWN)
    };
    vec![
        template("plans/{plan}", "plan", "A plan's plan.md"),
        template("plans/{plan}/steps/{n}", "step", "A step's file, by its number"),
        template("decisions/{topic}", "decisions", "What was decided about a topic"),
    ]
}

/// Lists the briefing, the plans that are not archived, and the topics of decisions. A cursor is the URI of the last
/// resource of the previous page.
pub(super) fn list(context: &Context, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let all = all(context).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let last = all.iter().position(|it| it.uri == cursor);
            let gone = || ErrorData::invalid_params("the cursor is no longer valid", None);
            last.ok_or_else(gone)? + 1
        }
    };
    let end = (start + PAGE).min(all.len());
    let next = (end < all.len()).then(|| all[end - 1].uri.clone());
    let mut result = ListResourcesResult::with_all_items(all[start..end].to_vec());
    result.next_cursor = next;
    Ok(result)
}

fn all(context: &Context) -> Result<Vec<Resource>, Error> {
    let resource = |named: &Named, name: &str, title: &str| {
        Resource::new(named.uri(), name).with_title(title).with_mime_type(MARKDOWN)
    };
    let mut all = vec![resource(&Named::Briefing, "briefing", "What needs attention")];
    let request = ListRequest { all: true, ..ListRequest::default() };
    if let ListReport::Plans { plans, .. } = list::list(context, &request)? {
        let live = plans.iter().filter(|it| !it.archived);
        all.extend(live.map(|it| resource(&Named::Plan(it.id.clone()), &it.id, &it.title)));
    }
    let topics = decide::topics(context).into_iter().map(|it| it.topic);
    all.extend(topics.map(|it| resource(&Named::Topic(it.clone()), &it, &format!("Decisions: {it}"))));
    Ok(all)
}

pub(super) fn read(context: &Context, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = |why: String| ErrorData::invalid_params(why, Some(json!({"uri": uri})));
    let Some(named) = Named::read(uri) else {
        let forms = templates().into_iter().map(|it| it.uri_template).collect::<Vec<_>>().join(", ");
        return Err(missing(format!("there is no such resource; resources are {SCHEME}briefing, {forms}")));
    };
    let text = text(context, &named).map_err(|error| match result::hint(&error) {
        Some(hint) => missing(format!("{error}; {hint}")),
        None => missing(error.to_string()),
    })?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(MARKDOWN)]))
}

fn text(context: &Context, named: &Named) -> Result<String, Error> {
    match named {
        Named::Briefing => briefing(context),
        Named::Plan(plan) => {
            upsert::plan(context, plan).and_then(|(it, _)| file(context, &it.path, it.etag.is_some()))
        }
        Named::Step(plan, number) => upsert::step(context, &format!("{plan}:{number}"))
            .and_then(|(it, _)| file(context, &it.path, it.etag.is_some())),
        Named::Topic(topic) => decisions(context, topic),
    }
}

/// The whole text of a file. `shown` is its path, beginning with the plans directory's name.
fn file(context: &Context, shown: &str, exists: bool) -> Result<String, Error> {
    let relative = shown.strip_prefix(&format!("{}/", context.root_name())).unwrap_or(shown);
    if !exists {
        return Err(Error::NotFound { what: "file", name: relative.to_owned(), nearest: None });
    }
    let bytes = context.plans.read(Path::new(relative))?.bytes;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The decisions on a topic as text, newest first. Superseded decisions are included.
fn decisions(context: &Context, topic: &str) -> Result<String, Error> {
    let request = DecisionsRequest {
        topic: Some(topic.to_owned()),
        plan: None,
        step: None,
        tags: Vec::new(),
        since: None,
        limit: usize::MAX,
    };
    let report = decide::decisions(context, &request)?;
    let nearest = report.near.first().cloned();
    let all = report.to_json()["decisions"].as_array().cloned().unwrap_or_default();
    if all.is_empty() {
        return Err(Error::NotFound { what: "topic", name: topic.to_owned(), nearest });
    }
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let one = |it: &Value| {
        let line = |label: &str, key: &str| match text(it, key) {
            value if value.is_empty() => String::new(),
            value => format!("{label}: {value}\n"),
        };
        format!(
            "\n## {}\n\n{}\n{}\n{}{}{}",
            text(it, "id"),
            text(it, "decision"),
            match text(it, "reasoning") {
                why if why.is_empty() => String::new(),
                why => format!("\n{why}\n"),
            },
            line("Decided", "decided_at"),
            line("By", "by"),
            line("Supersedes", "supersedes"),
        )
    };
    let topic = all.first().map_or_else(|| topic.to_owned(), |it| text(it, "topic"));
    Ok(format!("# Decisions: {topic}\n{}", all.iter().map(one).collect::<String>()))
}

/// The briefing as text. It lists what needs attention, is in progress, is ready or is finished, with at most 20 items in
/// each list.
fn briefing(context: &Context) -> Result<String, Error> {
    const MOST: usize = 20;
    let report = status::status(context, &StatusRequest::default())?.to_json();
    let mut text = "# Briefing\n".to_owned();
    let lists = [
        ("Needs attention", "attention"),
        ("In progress", "in_progress"),
        ("Ready", "ready"),
        ("Finished", "finished"),
    ];
    for (title, key) in lists {
        let none = Vec::new();
        let all = report[key].as_array().unwrap_or(&none);
        if all.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {title}\n\n");
        for it in all.iter().take(MOST) {
            let step = if it["step"].is_object() { &it["step"] } else { it };
            let of = |key: &str| step[key].as_str().unwrap_or_default();
            let reason = it["reason"].as_str().map(|it| format!(" ({it})")).unwrap_or_default();
            let by = it["held"]["by"].as_str().or(step["claim"]["by"].as_str());
            let by = by.map(|it| format!(", {it}")).unwrap_or_default();
            let _ = writeln!(text, "- {}: {}{reason}{by}", of("id"), of("title"));
        }
        if all.len() > MOST {
            let _ = writeln!(text, "- and {} more", all.len() - MOST);
        }
    }
    let problems = &report["problems"];
    let _ = write!(text, "\nProblems: {} errors, {} warnings.\n", problems["errors"], problems["warnings"]);
    Ok(text)
}

/// Stands for the list of resources among the URIs that a client follows. No resource has this URI.
pub(super) const LIST: &str = "";

/// The hash of each resource's text when it was last read, by URI. The hash is `None` if the resource could not be read.
pub(super) type Seen = BTreeMap<String, Option<blake3::Hash>>;

/// Reads resources, and the list of resources if [`LIST`] is among the URIs. The hashes are for a later comparison.
pub(super) fn seen(context: &Context, uris: impl IntoIterator<Item = String>) -> Seen {
    let hash = |uri: &str| {
        let text = match Named::read(uri) {
            None if uri == LIST => serde_json::to_string(&all(context).ok()?).ok(),
            named => text(context, &named?).ok(),
        };
        text.map(|it| blake3::hash(it.as_bytes()))
    };
    uris.into_iter().map(|uri| (uri.clone(), hash(&uri))).collect()
}

/// The followed URIs whose texts may have changed, according to the notifications. The caller has to compare the texts.
pub(super) fn touched<'a>(
    followed: impl IntoIterator<Item = &'a String>,
    told: &[Notification],
) -> BTreeSet<String> {
    let is_touched = |uri: &&String| match Named::read(uri) {
        None => *uri == LIST && changes_list(told),
        Some(named) => told.iter().any(|it| named.is_touched_by(it)),
    };
    followed.into_iter().filter(is_touched).cloned().collect()
}

/// Whether the list of resources may have changed, according to the notifications.
fn changes_list(told: &[Notification]) -> bool {
    told.iter().any(|it| match it {
        Notification::Changed { plan } => plan.is_none(),
        Notification::Event(event) => {
            event.of == Of::Plan && matches!(event.what, What::Added { .. } | What::Removed { .. })
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::disk::model::Machine;
    use crate::plan::id::PlanId;
    use crate::serve::mcp::tests::call;

    #[track_caller]
    fn check_uri(uri: &str, named: &Named) {
        assert_eq!(Named::read(uri).as_ref(), Some(named));
        assert_eq!(named.uri(), uri);
    }

    #[test]
    fn uris_are_exact() {
        check_uri("planwatch:///briefing", &Named::Briefing);
        check_uri("planwatch:///plans/auth", &Named::Plan("auth".into()));
        check_uri("planwatch:///plans/auth/steps/2.5", &Named::Step("auth".into(), "2.5".into()));
        check_uri("planwatch:///plans/Pr%C3%BCfung%201", &Named::Plan("Prüfung 1".into()));
        check_uri("planwatch:///decisions/api%20design", &Named::Topic("api design".into()));
        for uri in [
            "planwatch:///",
            "planwatch:///plans/",
            "planwatch:///plans/a/steps",
            "planwatch:///plans/a/b/c",
            "planwatch://plans/a",
            "file:///etc/passwd",
            "planwatch:///plans/%2",
            "planwatch:///plans/a%+F",
            "planwatch:///plans/%FF",
        ] {
            assert_eq!(Named::read(uri), None, "{uri}");
        }
    }

    fn machine() -> Arc<Machine> {
        Arc::new(Machine::with(&[
            ("/plans/auth/plan.md", "---\nstatus: active # kept\n---\n# Sign in\n"),
            ("/plans/auth/step-1.md", "# Schema\r\n\r\nTables.\r\n"),
            (
                "/plans/_decisions/0001-store.md",
                "---\ntopic: store\ndecided_at: 2026-11-20T09:00:00Z\nby: ann\n---\nUse Redis.\n",
            ),
        ]))
    }

    fn text(uri: &str) -> Result<String, ErrorData> {
        let call = call(&machine());
        read(&call.context, uri).map(|it| {
            let told = serde_json::to_value(&it.contents[0]).unwrap();
            assert_eq!((&told["uri"], &told["mimeType"]), (&json!(uri), &json!("text/markdown")));
            told["text"].as_str().unwrap().to_owned()
        })
    }

    #[test]
    fn a_resource_is_the_file_byte_by_byte() {
        assert_eq!(text("planwatch:///plans/auth").unwrap(), "---\nstatus: active # kept\n---\n# Sign in\n");
        assert_eq!(text("planwatch:///plans/auth/steps/1").unwrap(), "# Schema\r\n\r\nTables.\r\n");
        assert!(text("planwatch:///briefing").unwrap().contains("## Ready\n\n- auth:1: Schema"));
    }

    #[test]
    fn errors_for_missing_resources_contain_the_uri() {
        for uri in [
            "planwatch:///plans/other",
            "planwatch:///plans/auth/steps/7",
            "planwatch:///decisions/none",
            "planwatch:///plans/..",
            "planwatch:///plans/..%2F..",
            "planwatch:///x",
        ] {
            let error = text(uri).unwrap_err();
            assert_eq!((error.code.0, error.data), (-32602, Some(json!({"uri": uri}))), "{uri}");
        }
    }

    #[test]
    fn the_pages_of_the_list_contain_each_resource_once() {
        let files: Vec<_> =
            (0..250).map(|n| (format!("/plans/p{n:03}/plan.md"), format!("# Plan {n}\n"))).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let call = call(&Arc::new(Machine::with(&files)));
        let (mut uris, mut cursor) = (BTreeSet::new(), None);
        loop {
            let page = list(&call.context, cursor.as_deref()).unwrap();
            assert!(page.resources.len() <= PAGE);
            uris.extend(page.resources.into_iter().map(|it| it.uri));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(uris.len(), 251);
        assert!(uris.contains("planwatch:///briefing") && uris.contains("planwatch:///plans/p249"));
        assert!(list(&call.context, Some("planwatch:///plans/gone")).is_err());
    }

    #[test]
    fn only_resources_with_another_text_count_as_changed() {
        const STEP: (&str, &str) = ("/plans/auth/step-1.md", "# Schema\n\nTables.\n");
        let uris = || {
            ["planwatch:///briefing", "planwatch:///plans/auth", "planwatch:///plans/auth/steps/1", LIST]
                .map(str::to_owned)
        };
        let look = |files: &[(&str, &str)]| {
            let files = [&[("/plans/auth/plan.md", "---\nstatus: active\n---\n# Sign in\n")], files].concat();
            seen(&call(&Arc::new(Machine::with(&files))).context, uris())
        };
        let first = look(&[STEP]);
        assert!(first == look(&[STEP]) && first.values().all(Option::is_some));
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            let now = look(files);
            let changed: Vec<_> = uris().into_iter().filter(|it| now[it] != first[it]).collect();
            assert_eq!(changed, expected);
        };
        check(&[(STEP.0, "# Schema\n\nAll tables.\n")], &["planwatch:///plans/auth/steps/1"]);
        check(&[STEP, ("/plans/new/plan.md", "---\nstatus: draft\n---\n# New\n")], &[LIST]);
        let gone = look(&[]);
        assert_eq!(gone["planwatch:///plans/auth/steps/1"], None);
    }

    #[test]
    fn a_change_affects_the_resources_that_show_it() {
        let followed: BTreeSet<String> = [
            "planwatch:///briefing",
            "planwatch:///plans/a",
            "planwatch:///plans/a/steps/1",
            "planwatch:///plans/b",
            "planwatch:///decisions/x",
        ]
        .map(str::to_owned)
        .into();
        let of = |plan: Option<&str>| Notification::Changed { plan: plan.map(PlanId::new) };
        let touched = |told: &[Notification]| Vec::from_iter(touched(&followed, told));
        assert_eq!(
            touched(&[of(Some("a"))]),
            ["planwatch:///briefing", "planwatch:///plans/a", "planwatch:///plans/a/steps/1"]
        );
        assert_eq!(touched(&[of(None)]).len(), 5);
        assert!(touched(&[]).is_empty());
        assert!(changes_list(&[of(None)]) && !changes_list(&[of(Some("a"))]));
    }
}
