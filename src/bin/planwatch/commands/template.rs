//! `template`: the plan templates and the prompts.

use planwatch::ops::create::NewRequest;
use planwatch::ops::template::{self, Named, Template};
use planwatch::store::prompt::Origin;
use planwatch::store::prompt::{self, Prompt, Rendered};

use crate::args::import::{self, What};
use crate::commands::new::in_plans_or_empty_dir;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::{escaped, escaped_lines};
use crate::screens::{BOLD, DIM};
use crate::table::{Table, Yields, cell, column, numbers, paint, styled};
use planwatch::text::typed::shell_word;

pub(crate) fn run(session: &Session, args: import::Template) -> Result<u8, Failure> {
    match args.what {
        What::List => list(session),
        What::Show => {
            let name = named(args.name)?;
            match in_plans_or_empty_dir(session, |context| template::named(context, &name))? {
                Named::Template(it) => print(session, &it),
                Named::Prompt(it) => print_prompt(session, &it),
            }
        }
        What::Render => render(session, &named(args.name)?, args.title, args.description),
    }
}

fn render(
    session: &Session,
    name: &str,
    title: Option<String>,
    description: Option<String>,
) -> Result<u8, Failure> {
    if let Named::Prompt(prompt) = in_plans_or_empty_dir(session, |context| template::named(context, name))? {
        let rendered =
            in_plans_or_empty_dir(session, |context| prompt::try_out(context, name, title.as_deref()))?;
        return print_rendered(session, &prompt, &rendered);
    }
    let Some(title) = title else {
        let hint = format!("planwatch template render {name_word} TITLE", name_word = shell_word(&name));
        return Err(Failure::usage("a plan needs a title", hint));
    };
    let template = Some(name.to_owned());
    let request = NewRequest { title, description, template, ..NewRequest::default() };
    let rendered = in_plans_or_empty_dir(session, |context| template::render(context, &request))?;
    print(session, &rendered)
}

fn named(name: Option<String>) -> Result<String, Failure> {
    name.ok_or_else(|| Failure::usage("no template is given", "`planwatch template list` lists them"))
}

fn list(session: &Session) -> Result<u8, Failure> {
    let templates = in_plans_or_empty_dir(session, |context| Ok(template::list(context)))?;
    let prompts = in_plans_or_empty_dir(session, |context| Ok(prompt::list(context)))?;
    if session.output.is_json() {
        session.output.json("template-list", template::list_to_json(&templates, &prompts))?;
        return Ok(0);
    }
    let mut table = Table::new([
        column("template", Yields::Nothing),
        numbers("steps", Yields::Whole),
        column("purpose", Yields::Text),
    ]);
    for it in &templates {
        let steps = it.files.len().saturating_sub(1).to_string();
        let own = match (it.source, &it.problem) {
            (Origin::BuiltIn, _) => "",
            (Origin::Own, None) => " (own)",
            (Origin::Own, Some(_)) => " (own, broken)",
        };
        let what = it.description.as_deref().map(escaped).unwrap_or_default();
        table.row(vec![
            styled(BOLD, escaped(&it.name).into_owned()),
            cell(steps),
            cell(format!("{what}{own}")),
        ]);
    }
    let drawn = table.draw(session.output.width);
    session.output.long(&format!("{drawn}\n{}", prompt_table(session, &prompts)))?;
    for problem in templates.iter().filter_map(|it| it.problem.as_deref()) {
        session.output.hint(problem);
    }
    for complaint in prompts.iter().filter_map(Prompt::complaint) {
        session.output.hint(&format!("{complaint}; the built-in prompt is used"));
    }
    session.output.report("next: planwatch new TITLE --template NAME\n")?;
    Ok(0)
}

fn prompt_table(session: &Session, prompts: &[Prompt]) -> String {
    let mut table = Table::new([column("prompt", Yields::Nothing), column("purpose", Yields::Text)]);
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
    let head = paint(DIM, &format!("==> {} <==", escaped(&prompt.path)));
    let screen = |_| format!("{head}\n{}", escaped_lines(&prompt.text));
    let code = session.answer("prompt", || prompt.to_json(), screen)?;
    if let Some(complaint) = prompt.complaint() {
        session.output.hint(&format!("{complaint}; the built-in prompt is used"));
    }
    Ok(code)
}

fn print_rendered(session: &Session, prompt: &Prompt, rendered: &Rendered) -> Result<u8, Failure> {
    let screen = |_| escaped_lines(&rendered.text).into_owned();
    let code = session.answer("prompt", || rendered.to_json(&prompt.name), screen)?;
    rendered.notes.iter().for_each(|it| session.output.hint(it));
    Ok(code)
}

fn print(session: &Session, template: &Template) -> Result<u8, Failure> {
    let file = |it: &planwatch::ops::template::TemplateFile| {
        format!("{}\n{}", paint(DIM, &format!("==> {} <==", escaped(&it.path))), escaped_lines(&it.text))
    };
    let screen = |_| template.files.iter().map(file).collect::<Vec<_>>().join("\n");
    session.answer("template", || template.to_json(), screen)
}
