//! `template`: the plans to begin with.

use planwatch::engine::create::NewRequest;
use planwatch::engine::template::{self, Origin, Template};

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
            let shown = looking(session, |context| template::show(context, &name))?;
            print(session, &shown)
        }
        What::Render => {
            let name = named(args.name)?;
            let Some(title) = args.title else {
                let hint = format!("planwatch template render {name} TITLE");
                return Err(Failure::usage("a plan needs a title", hint));
            };
            let description = args.description;
            let request = NewRequest { title, description, template: Some(name), ..NewRequest::default() };
            let rendered = looking(session, |context| template::render(context, &request))?;
            print(session, &rendered)
        }
    }
}

fn named(name: Option<String>) -> Result<String, Failure> {
    name.ok_or_else(|| Failure::usage("which template?", "`planwatch template list` names them"))
}

fn list(session: &Session) -> Result<u8, Failure> {
    let templates = looking(session, template::list)?;
    if session.output.is_json() {
        session.output.json("template-list", template::list_to_json(&templates))?;
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
    session.output.text(&table.draw(session.output.width))?;
    session.output.told("next: planwatch new TITLE --template NAME\n")?;
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
