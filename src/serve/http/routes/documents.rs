//! Routes for import, export and templates, and those about planwatch itself.

use serde_json::{Value, json};

use super::answers::{any, named};
use super::bodies::RenderBody;
use super::call::{Call, Reply};
use super::read::text;
use super::route::{LOOKING, MAKING, Route, get, post, query, words};
use super::{Problem, pages};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::{instructions, schema};
use crate::ops::create::NewRequest;
use crate::ops::doctor::{self, DoctorRequest};
use crate::ops::export::{self, ExportForm, ExportRequest};
use crate::ops::import::{self, ImportRequest};
use crate::ops::search;
use crate::ops::template::{self, Named};
use crate::serve::hints;
use crate::store::prompt;

pub(crate) fn routes() -> Vec<Route> {
    [documents(), templates(), about()].concat()
}

fn documents() -> Vec<Route> {
    let forms = words(&["json", "markdown", "mermaid", "adr", "html"]);
    vec![
        post("/api/import", "import_plan", "import")
            .about("Make a plan from a Markdown document")
            .body::<ImportRequest>(json!({"text": "# Sign in\n\n- [ ] Design the schema\n- [ ] Write the tests\n", "dry_run": true}))
            .links("id", "/changes/0/id", &["get_plan", "show", "list_steps", "claim_plan"])
            .makes(named("import"), "/api/plans/", import_document),
        get("/api/plans/{id}/export", "export_plan", "export")
            .about("Return a plan as one document")
            .takes([query("format", forms, "The form; markdown if it is left out", "adr")])
            .does(any(["export", "export-text"]), LOOKING, export_plan),
    ]
}

fn templates() -> Vec<Route> {
    vec![
        get("/api/templates", "list_templates", "template")
            .about("List the plan templates and prompts")
            .takes(pages::parameters())
            .links("name", "/templates/0/name", &["get_template", "render_template"])
            .does(named("template-list"), &[], list_templates),
        get("/api/templates/{name}", "get_template", "template")
            .about("Show the source of a template or a prompt")
            .does(any(["template", "prompt"]), LOOKING, show_template),
        post("/api/templates/{name}/render", "render_template", "template")
            .about("Render a template or a prompt; writes nothing")
            .body::<RenderBody>(json!({"title": "Sign in", "description": "With a password."}))
            .does(any(["template", "rendered-prompt"]), MAKING, render_template),
    ]
}

fn about() -> Vec<Route> {
    vec![
        get("/api/instructions", "instructions", "instructions")
            .about("Return instructions for agents")
            .takes([query(
                "topic",
                words(&["overview", "executing", "planning", "claims", "files"]),
                "The topic; overview if it is left out",
                "executing",
            )])
            .does(named("instructions"), &[], instruct),
        get("/api/doctor", "doctor", "doctor")
            .about("Diagnose this setup: index, locks, file system, watching")
            .does(named("doctor"), &[], examine),
        get("/api/sql", "sql", "sql")
            .about("Run a read-only SQL query on the index")
            .takes([query(
                "query",
                schema::text(),
                "One statement",
                "select id, title from steps where status = 'failed'",
            )
            .required()])
            .takes(pages::parameters())
            .does(named("table"), &[], ask),
    ]
}

fn import_document(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = ImportRequest { shown: "plan.md".to_owned(), ..call.body()? };
    let report = import::import(context, &request).map_err(hints::import_again)?;
    let reply = Reply::of("import", report.to_json());
    Ok(Reply { status: if report.change.is_dry_run { 200 } else { 201 }, ..reply })
}

fn export_plan(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let form = match call.text("format").as_deref() {
        Some("json") => ExportForm::Json,
        Some("mermaid") => ExportForm::Mermaid,
        Some("adr") => ExportForm::Adr,
        Some("html") => ExportForm::Html,
        _ => ExportForm::Markdown,
    };
    let plan = call.plan()?;
    Ok(Reply::of("export", export::export(context, &ExportRequest { plan, form })?.to_json()))
}

fn list_templates(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let list = template::list_to_json(&template::list(context), &prompt::list(context));
    pages::page(call, Reply::of("template-list", list), "templates", |it| text(it, "of") + &text(it, "name"))
}

fn show_template(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(match template::named(context, call.name("name"))? {
        Named::Template(it) => Reply::of("template", it.to_json()),
        Named::Prompt(it) => Reply::of("prompt", it.to_json()),
    })
}

fn render_template(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let RenderBody { title, description, by, .. } = call.body()?;
    let name = call.name("name");
    if let Named::Prompt(it) = template::named(context, name)? {
        let rendered = prompt::try_out(context, name, title.as_deref())?;
        return Ok(Reply::of("prompt", rendered.to_json(&it.name)));
    }
    let Some(title) = title else {
        return Err(Error::usage("a plan needs a title", "give the `title` of the plan").into());
    };
    let request =
        NewRequest { title, description, by, template: Some(name.to_owned()), ..NewRequest::default() };
    Ok(Reply::of("template", template::render(context, &request)?.to_json()))
}

fn instruct(_: &Context, call: &Call) -> Result<Reply, Problem> {
    let found = instructions::instructions(call.text("topic").as_deref())?;
    Ok(Reply::of("instructions", found.to_json()))
}

/// The index is not rebuilt here, because the daemon owns it. An interrupted change is not discarded, because a
/// person has to read the journal first.
fn examine(context: &Context, _: &Call) -> Result<Reply, Problem> {
    let request = DoctorRequest::default();
    Ok(Reply::of("doctor", doctor::examine(context, &request)?.to_json()))
}

fn ask(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let answer = search::sql(context, &call.text("query").unwrap_or_default())?;
    // Rows have no identifiers, so a cursor contains only a number of rows.
    pages::page(call, Reply::of("table", search::table_to_json(&answer)), "rows", |_: &Value| String::new())
}
