use crate::page::markdown::{self, Addresses, Form, NoAddresses, Tasks};

struct Known;

impl Addresses for Known {
    fn link(&self, target: &str) -> Option<String> {
        (target == "step-2.md").then(|| "/plans/p/steps/2?a=1&b=2".to_owned())
    }

    fn image(&self, target: &str) -> Option<String> {
        (target == "a.png").then(|| "data:image/png;base64,AAAA".to_owned())
    }
}

fn form(addresses: &dyn Addresses) -> Form<'_> {
    Form { id_prefix: "doc-", top_heading: 2, tasks: Tasks::Plain, addresses }
}

#[track_caller]
fn check(body: &str, expected: &str) {
    assert_eq!(markdown::render(body, form(&Known)).into_string().trim(), expected, "{body}");
}

#[test]
fn markdown_becomes_html() {
    check("# A\n## B *c*\n", "<h2 id=\"doc-a\">A</h2>\n<h3 id=\"doc-b-c\">B <em>c</em></h3>");
    check(
        "# A\n# A\n# A-1\n",
        "<h2 id=\"doc-a\">A</h2>\n<h2 id=\"doc-a-1\">A</h2>\n<h2 id=\"doc-a-1-1\">A-1</h2>",
    );
    check("[x](step-2.md)", "<p><a href=\"/plans/p/steps/2?a=1&amp;b=2\">x</a></p>");
    check("[x](step-3.md) [a](#b)", "<p>x <a href=\"#doc-b\">a</a></p>");
    check(
        "<https://example.org/?a=1&b>",
        "<p><a href=\"https://example.org/?a=1&amp;b\" rel=\"noopener noreferrer nofollow\" target=\"_blank\" class=\"outside\">https://example.org/?a=1&amp;b</a></p>",
    );
    check("![alt](a.png \"t\")", "<p><img src=\"data:image/png;base64,AAAA\" alt=\"alt\" title=\"t\"></p>");
    check("![alt](b.png) ![](c.png)", "<p>alt image</p>");
    check(
        "![alt](https://example.org/a.png)",
        "<p><a href=\"https://example.org/a.png\" rel=\"noopener noreferrer nofollow\" target=\"_blank\" class=\"outside\">alt</a></p>",
    );
    check("`a\u{202e}b`", "<p><code>a[U+202E]b</code></p>");
    check("```rust,ignore\n<a>\n```", "<pre><code class=\"language-rust\">&lt;a&gt;\n</code></pre>");
    check("```\" onload=x\na\n```", "<pre><code>a\n</code></pre>");
    check(
        "a[^n]\n\n[^n]: note\n",
        "<p>a<sup class=\"footnote-mark\"><a href=\"#doc-fn.1\">1</a></sup></p>\n<div class=\"footnote\" id=\"doc-fn.1\"><sup class=\"footnote-mark\">1</sup>\n<p>note</p>\n</div>",
    );
    check(
        "> [!NOTE]\n> x\n",
        "<blockquote class=\"alert alert-note\"><p class=\"alert-title\">Note</p>\n<p>x</p>\n</blockquote>",
    );
}

#[test]
fn tables_have_classes_for_their_alignment() {
    check(
        "|a|b|\n|:-:|--:|\n|1|2|\n",
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><thead><tr><th class=\"center\">a</th><th class=\"right\">b</th></tr></thead><tbody>\n<tr><td class=\"center\">1</td><td class=\"right\">2</td></tr>\n</tbody></table>\n</div>",
    );
}

#[test]
fn task_boxes_have_a_label_and_their_place() {
    let body = "# T\n\n- [ ] one `x` *y*\n  - [x] two\r\n";
    let form = Form { tasks: Tasks::Located { first_line: 5 }, ..form(&NoAddresses) };
    let html = markdown::render(body, form).into_string();
    let (one, two) = (markdown::line_hash("- [ ] one `x` *y*"), markdown::line_hash("  - [x] two"));
    for expected in [
        format!("type=\"checkbox\" disabled=\"\" aria-label=\"one x y\" data-line=\"7\" data-hash=\"{one}\""),
        format!(
            "type=\"checkbox\" checked=\"\" disabled=\"\" aria-label=\"two\" data-line=\"8\" data-hash=\"{two}\""
        ),
    ] {
        assert!(html.contains(&expected), "{html}");
    }
}
