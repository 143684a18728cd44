//! Plans and steps as agents name them: by id, or a plan by its title.

use crate::engine::error::Error;
use crate::engine::list::{self, ListReport, ListRequest};
use crate::engine::show::{self, ShowReport, ShowRequest, ShownPlan};
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::tool::Call;

/// The most titles that a refusal names.
const MOST_NAMED: usize = 8;

/// Does something with a plan; if there is none of that id, with the one that has this title, or has it in its title.
pub(super) fn plan<T>(
    call: &Call,
    typed: &str,
    act: impl Fn(&str) -> Result<T, Error>,
) -> Result<T, Refusal> {
    let typed = typed.trim();
    match act(typed) {
        Err(Error::NotFound { what: "plan", name, nearest }) if name == typed => {
            let found = by_title(call, typed)?;
            match found.as_slice() {
                [only] => Ok(act(only)?),
                [] => Err(Error::NotFound { what: "plan", name, nearest }.into()),
                several => {
                    let named = several.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
                    Err(Refusal::new(
                        "which-plan",
                        format!("several plans have `{typed}` in their title"),
                        format!("name one by its id: {named}"),
                    ))
                }
            }
        }
        done => Ok(done?),
    }
}

/// A plan with its steps; `otherwise` is what to do with the name of something else.
pub(super) fn shown(call: &Call, typed: &str, full: bool, otherwise: &str) -> Result<ShownPlan, Refusal> {
    let request = |id: &str| ShowRequest { id: id.to_owned(), full, graph: None };
    match plan(call, typed, |id| show::show(&call.context, &request(id)))? {
        ShowReport::Plan(shown) => Ok(*shown),
        _ => Err(Refusal::usage(format!("`{typed}` is no plan"), otherwise)),
    }
}

/// The ids of the plans that are called so, else of those that have it in their title.
fn by_title(call: &Call, typed: &str) -> Result<Vec<String>, Refusal> {
    let request = ListRequest { all: true, ..ListRequest::default() };
    let ListReport::Plans { plans, .. } = list::list(&call.context, &request)? else { return Ok(Vec::new()) };
    let wanted = typed.to_lowercase();
    let of = |is_it: &dyn Fn(&str) -> bool| -> Vec<String> {
        plans
            .iter()
            .filter(|it| !it.archived && is_it(&it.title.to_lowercase()))
            .map(|it| it.id.clone())
            .collect()
    };
    let same = of(&|it| it == wanted);
    Ok(if same.is_empty() && wanted.len() > 2 { of(&|it| it.contains(&wanted)) } else { same })
}
