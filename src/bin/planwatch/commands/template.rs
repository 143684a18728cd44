//! `template`: the plans to begin with, and the prompts.

use planwatch::engine::context::Context;
use planwatch::engine::create::NewRequest;
use planwatch::engine::error::Error;
use planwatch::engine::prompt::{self, Prompt, Rendered};
use planwatch::engine::template::{self, Origin, Template};
use planwatch::plan::words::nearest;
use serde_json::json;

use crate::args::bring::{self, What};
use crate::commands::new::looking;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::{escaped, escaped_lines};
use crate::screens::{BOLD, DIM};
use crate::table::{Table, Yields, cell, column, numbers, paint, styled};

pub(crate) fn run(session: &Session, args: bring::Template) -> Result<u8, Failure> {
    match args.what {
        What::List => list(session),
        What::Show => {
            let name = named(args.name)?;
            match looking(session, |context| found(context, &name))? {
                Found::Template(it) => print(session, &it),
                Found::Prompt(it) => print_prompt(session, &it),
            }
        }
        What::Render => render(session, &named(args.name)?, args.title, args.description),
    }
}

/// What a name means; a template goes before a prompt.
enum Found {
    Template(Template),
    Prompt(Prompt),
}

fn found(context: &Context, name: &str) -> Result<Found, Error> {
    match template::show(context, name) {
        Ok(it) => Ok(Found::Template(it)),
        Err(Error::NotFound { what, name, nearest: near }) => match prompt::show(context, &name) {
            Some(it) => Ok(Found::Prompt(it)),
            None => {
                let nearest = near.or_else(|| nearest(&name, prompt::names()));
                Err(Error::NotFound { what, name, nearest })
            }
        },
        Err(error) => Err(error),
    }
}

fn render(
    session: &Session,
    name: &str,
    title: Option<String>,
    description: Option<String>,
) -> Result<u8, Failure> {
    if let Found::Prompt(prompt) = looking(session, |context| found(context, name))? {
        let rendered = looking(session, |context| prompt::try_out(context, name, title.as_deref()))?;
        return print_rendered(session, &prompt, &rendered);
    }
    let Some(title) = title else {
        let hint = format!("planwatch template render {name} TITLE");
        return Err(Failure::usage("a plan needs a title", hint));
    };
    let template = Some(name.to_owned());
    let request = NewRequest { title, description, template, ..NewRequest::default() };
    let rendered = looking(session, |context| template::render(context, &request))?;
    print(session, &rendered)
}

fn named(name: Option<String>) -> Result<String, Failure> {
    name.ok_or_else(|| Failure::usage("which template?", "`planwatch template list` names them"))
}

fn list(session: &Session) -> Result<u8, Failure> {
    let templates = looking(session, template::list)?;
    let prompts = looking(session, |context| Ok(prompt::list(context)))?;
    if session.output.is_json() {
        session.output.json("template-list", list_to_json(&templates, &prompts))?;
        return Ok(0);
    }
    let mut table = Table::new([
        column("template", Yields::Nothing),
        numbers("steps", Yields::Whole),
        column("what for", Yields::Text),
    ]);
    for it in &templates {
        let steps = it.files.len().saturating_sub(1).to_string();
        let own = if it.source == Origin::Own { " (own)" } else { "" };
        let what = it.description.as_deref().map(escaped).unwrap_or_default();
        table.row(vec![
            styled(BOLD, escaped(&it.name).into_owned()),
            cell(steps),
            cell(format!("{what}{own}")),
        ]);
    }
    let templates = table.draw(session.output.width);
    session.output.text(&format!("{templates}\n{}", prompt_table(session, &prompts)))?;
    for complaint in prompts.iter().filter_map(Prompt::complaint) {
        session.output.hint(&format!("{complaint}; the built-in prompt is used"));
    }
    session.output.told("next: planwatch new TITLE --template NAME\n")?;
    Ok(0)
}

/// One list, in which `of` tells plans from prompts.
fn list_to_json(templates: &[Template], prompts: &[Prompt]) -> serde_json::Value {
    let mut all = template::list_to_json(templates);
    let items = all.get_mut("templates").and_then(serde_json::Value::as_array_mut);
    let Some(items) = items else { return all };
    for item in items.iter_mut().filter_map(serde_json::Value::as_object_mut) {
        item.insert("of".to_owned(), "plan".into());
    }
    items.extend(prompts.iter().map(|it| {
        let file = format!("{}.pmt", it.name);
        json!({
            "name": it.name, "description": it.description, "source": it.source, "files": [file],
            "of": "prompt", "problem": it.complaint(),
        })
    }));
    all
}

fn prompt_table(session: &Session, prompts: &[Prompt]) -> String {
    let mut table = Table::new([column("prompt", Yields::Nothing), column("what for", Yields::Text)]);
    for it in prompts {
        let state = match (it.source, &it.problem) {
            (Origin::BuiltIn, _) => "",
            (Origin::Own, None) => " (own)",
            (Origin::Own, Some(_)) => " (own, broken)",
        };
        let what = it.description.as_deref().map(escaped).unwrap_or_default();
        table.row(vec![styled(BOLD, escaped(&it.name).into_owned()), cell(format!("{what}{state}"))]);
    }
    table.draw(session.output.width)
}

fn print_prompt(session: &Session, prompt: &Prompt) -> Result<u8, Failure> {
    if session.output.is_json() {
        session.output.json("prompt", prompt.to_json())?;
        return Ok(0);
    }
    let head = paint(DIM, &format!("==> {} <==", escaped(&prompt.path)));
    session.output.text(&format!("{head}\n{}", escaped_lines(&prompt.text)))?;
    if let Some(complaint) = prompt.complaint() {
        session.output.hint(&format!("{complaint}; the built-in prompt is used"));
    }
    Ok(0)
}

fn print_rendered(session: &Session, prompt: &Prompt, rendered: &Rendered) -> Result<u8, Failure> {
    if session.output.is_json() {
        let report = json!({"name": prompt.name, "text": rendered.text, "notes": rendered.notes});
        session.output.json("prompt", report)?;
        return Ok(0);
    }
    session.output.text(&escaped_lines(&rendered.text))?;
    rendered.notes.iter().for_each(|it| session.output.hint(it));
    Ok(0)
}

fn print(session: &Session, template: &Template) -> Result<u8, Failure> {
    if session.output.is_json() {
        session.output.json("template", template.to_json())?;
        return Ok(0);
    }
    let file = |it: &planwatch::engine::template::TemplateFile| {
        format!("{}\n{}", paint(DIM, &format!("==> {} <==", escaped(&it.path))), escaped_lines(&it.text))
    };
    let files: Vec<_> = template.files.iter().map(file).collect();
    session.output.text(&files.join("\n"))?;
    Ok(0)
}
