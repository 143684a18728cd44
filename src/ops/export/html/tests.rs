use crate::api::context::Context;
use crate::disk::model::Machine;
use crate::ops::export::{ExportForm, ExportRequest, Site, export};

const TAGS: &[&str] = &[
    "!doctype",
    "a",
    "bdi",
    "blockquote",
    "body",
    "br",
    "circle",
    "code",
    "del",
    "div",
    "em",
    "g",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "img",
    "input",
    "li",
    "line",
    "main",
    "meta",
    "ol",
    "p",
    "path",
    "pre",
    "progress",
    "rect",
    "section",
    "span",
    "strong",
    "style",
    "sup",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
];

const ATTRIBUTES: &[&str] = &[
    "alt",
    "aria-hidden",
    "aria-label",
    "charset",
    "checked",
    "class",
    "content",
    "cx",
    "cy",
    "d",
    "dir",
    "disabled",
    "height",
    "href",
    "html",
    "http-equiv",
    "id",
    "lang",
    "max",
    "name",
    "r",
    "rel",
    "role",
    "rx",
    "scope",
    "src",
    "start",
    "tabindex",
    "target",
    "text-anchor",
    "title",
    "type",
    "value",
    "viewbox",
    "width",
    "x",
    "x1",
    "x2",
    "xmlns",
    "y",
    "y1",
    "y2",
];

/// Reads each tag of a page: its name and its attributes. All text is escaped, so every `<` begins a tag.
fn tags(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let name_end = tag.find([' ', '>', '\n']).expect("the tag ends");
        let mut attributes = Vec::new();
        let name = tag[..name_end].trim_matches('/').to_lowercase();
        let mut inner = tag[name_end..].trim_start();
        while !inner.starts_with('>') {
            let end = inner.find(['=', ' ', '>']).expect("the attribute ends");
            let key = inner[..end].to_lowercase();
            inner = &inner[end..];
            let mut value = "";
            if let Some(quoted) = inner.strip_prefix("=\"") {
                let end = quoted.find('"').expect("the value ends");
                (value, inner) = (&quoted[..end], &quoted[end + 1..]);
            }
            attributes.push((key, value.to_owned()));
            inner = inner.trim_start();
        }
        rest = &inner[1..];
        // The content of a `style` element has no tags.
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").expect("the style sheet ends")..];
        }
        found.push((name, attributes));
    }
    found
}

#[track_caller]
fn assert_harmless(page: &str, hostile: &str) {
    for (name, attributes) in tags(page) {
        assert!(TAGS.contains(&name.as_str()), "{hostile:?} made the element {name}");
        for (key, value) in attributes {
            assert!(ATTRIBUTES.contains(&key.as_str()), "{hostile:?} made {name} {key}={value}");
            let is_harmless = match key.as_str() {
                "href" => ["#", "http://", "https://", "mailto:"]
                    .iter()
                    .any(|it| value.to_lowercase().starts_with(it)),
                "src" => value.starts_with("data:image/"),
                "http-equiv" => value == "Content-Security-Policy",
                _ => true,
            };
            assert!(is_harmless, "{hostile:?} made {name} {key}={value}");
        }
    }
    let shown = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let title = page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0;
    assert!(!title.contains(shown), "{hostile:?} reorders the title");
}

fn page_of(hostile: &str) -> String {
    let text = serde_json::to_string(hostile).unwrap();
    let plan = format!(
        "---\ntitle: {text}\ncategory: {text}\ntags: [{text}]\ngoals: [{text}]\nsuccess_criteria: [{text}]\n\
         notes:\n  - {{by: {text}, text: {text}}}\n---\n\n{hostile}\n"
    );
    let step = format!(
        "---\ntitle: {text}\nstatus: failed\nassignee: {text}\nphase: {text}\ntags: [{text}]\ndepends: [2]\nattempts:\n  \
         - {{at: 2026-01-01T00:00:00Z, by: {text}, outcome: {text}, notes: {text}}}\n---\n\n{hostile}\n\n\
         [x]({hostile})\n\n![x]({hostile})\n\n[x](<{hostile}>)\n\n- [ ] {hostile}\n\n# {hostile}\n\n```{hostile}\nx\n```\n"
    );
    let decision =
        format!("---\ntopic: {text}\nplan: p\nby: {text}\n---\n# {hostile}\n\n## Decision\n\n{hostile}\n");
    let machine = Machine::with(&[
        ("/plans/p/plan.md", &plan),
        ("/plans/p/step-1.md", &step),
        ("/plans/p/step-2.md", "# Two\n"),
        ("/plans/_decisions/2026-01-01T00-00-00.000Z-x.md", &decision),
    ]);
    let request = ExportRequest { plan: "p".to_owned(), form: ExportForm::Html };
    export(&Context::on_model(&machine), &request).unwrap().text
}

#[test]
fn hostile_texts_are_shown_and_do_nothing() {
    let list = include_str!("hostile.txt");
    let texts: Vec<String> =
        list.lines().map(|it| serde_json::from_str(it).expect("it is a JSON text")).collect();
    assert!(texts.len() >= 100, "there are {}", texts.len());
    for hostile in texts {
        assert_harmless(&page_of(&hostile), &hostile);
    }
}

#[test]
fn the_check_finds_active_content() {
    for planted in [
        "<script>",
        "<p onclick=\"x\">",
        "<a href=\"javascript:x\">",
        "<img src=\"https://example.org/x\">",
        "<p style=\"x\">",
        "<meta http-equiv=\"refresh\">",
        "<bdi>\u{202e}</bdi>",
    ] {
        let page = format!("<h1>{planted}</h1>");
        assert!(std::panic::catch_unwind(|| assert_harmless(&page, planted)).is_err(), "{planted}");
    }
}

#[test]
fn images_of_the_plans_directory_are_in_the_page_and_others_are_links() {
    let body = "# P\n\n![a](a.gif) ![b](../q/b.gif) ![c](none.gif) ![d](plan.md) ![e](https://example.org/e.png) ![f](../../x.gif)\n";
    let machine = Machine::with(&[
        ("/plans/p/plan.md", body),
        ("/plans/p/step-1.md", "# One\n"),
        ("/plans/p/a.gif", "GIF89a"),
        ("/plans/q/b.gif", "GIF87a"),
        ("/x.gif", "GIF89a"),
    ]);
    let request = ExportRequest { plan: "p".to_owned(), form: ExportForm::Html };
    let page = export(&Context::on_model(&machine), &request).unwrap().text;
    let text = page.split_once("<div class=\"text\">").unwrap().1.split_once("</div>").unwrap().0;
    let images: Vec<_> = tags(text).into_iter().filter(|it| it.0 == "img").collect();
    assert_eq!(images.len(), 2, "{text}");
    assert!(
        text.contains("data:image/gif;base64,R0lGODlh") && text.contains("data:image/gif;base64,R0lGODdh")
    );
    assert!(text.contains("href=\"https://example.org/e.png\""), "{text}");
}

#[test]
fn a_site_has_a_page_for_each_plan_and_links_between_them_and_the_same_bytes_each_time() {
    let files = [
        (
            "/plans/a b/plan.md",
            "---\nstatus: active\nprogram: top\ngoals: ['[x] fast', plain]\n---\n# A\n\n[other](../c/step-1.md) and [gone](../d/plan.md)\n",
        ),
        ("/plans/a b/step-1.md", "---\ndepends: [c:1]\n---\n# One\n"),
        ("/plans/c/plan.md", "---\nstatus: completed\n---\n# C\n"),
        ("/plans/c/step-1.md", "---\nstatus: completed\n---\n# Done\n"),
        ("/plans/top/plan.md", "---\nstatus: active\nkind: program\n---\n# Top\n"),
        ("/plans/_archive/d/plan.md", "# D\n"),
        (
            "/plans/_decisions/2026-01-01T00-00-00.000Z-x.md",
            "---\ntopic: x\nplan: c\n---\n# x\n\n## Decision\n\nIn [A](../a%20b/plan.md).\n",
        ),
        ("/plans/_insights/2026-01-02T00-00-00.000Z-y.md", "---\nplan: c\n---\n# Learned\n\nText.\n"),
    ];
    let site = || {
        let context = Context::on_model(&Machine::with(&files));
        let site = Site::of(&context).unwrap();
        let pages = site.pages(&context).map(Result::unwrap);
        site.files().zip(pages).collect::<Vec<_>>()
    };
    let made = site();
    assert_eq!(made, site());
    let names: Vec<_> = made.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names, ["index.html", "plans/a b.html", "plans/top.html", "plans/c.html"]);
    let has = |nth: usize, text: &str| {
        assert!(made[nth].1.contains(text), "{}: {text}: {}", made[nth].0, made[nth].1);
    };
    has(0, "<a href=\"plans/a%20b.html\"><bdi>A</bdi></a>");
    has(0, "On <a href=\"plans/c.html\">");
    has(0, "In <a href=\"plans/a%20b.html\">A</a>.");
    has(0, "<h3><bdi>Learned</bdi></h3>");
    has(1, "<a href=\"../index.html\">");
    has(1, "<a href=\"c.html#step-1\">other</a> and gone");
    has(1, "after <a href=\"c.html#step-1\">");
    has(1, "Part of <a href=\"top.html\">");
    has(1, "checked disabled aria-label=\"fast\"");
    has(2, "<a href=\"a%20b.html\"><bdi>A</bdi></a>");
    has(3, "<h3><bdi>Learned</bdi></h3>");
    has(3, "<h3><bdi>x</bdi></h3>");
}
