//! Finds plans and steps as agents name them: by id or by title.

use crate::api::error::Error;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::search::{self, SearchRequest};
use crate::ops::show::{self, ShowReport, ShowRequest, ShownPlan};
use crate::plan::id;
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::tool::Call;

/// The maximum number of plans or steps that a refusal lists.
const MOST_NAMED: usize = 8;

/// The maximum number of search hits whose titles are compared.
const MOST_SEARCHED: usize = 100;

/// Runs an action on the plan with the id `typed`. If no plan has this id, runs it on the only plan that [`by_title`] finds.
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

/// A plan with its steps. `otherwise` is the hint of the refusal if `typed` names something else, such as a step.
pub(super) fn shown(call: &Call, typed: &str, full: bool, otherwise: &str) -> Result<ShownPlan, Refusal> {
    let request = |id: &str| ShowRequest { id: id.to_owned(), full, graph: None };
    match plan(call, typed, |id| show::show(&call.context, &request(id)))? {
        ShowReport::Plan(shown) => Ok(*shown),
        _ => Err(Refusal::usage(format!("`{typed}` is not a plan"), otherwise)),
    }
}

/// The ids of the plans with the title `typed`. If there are none, and `typed` has more than two bytes, the ids of the plans
/// whose titles contain all words of `typed`. If there are still none, the id of the plan whose id is the slug of `typed`.
/// Archived plans are left out.
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
    let words: Vec<_> = wanted.split_whitespace().collect();
    let has_words = |it: &str| words.iter().all(|word| it.contains(word));
    let found = if same.is_empty() && wanted.len() > 2 { of(&has_words) } else { same };
    if !found.is_empty() || !typed.chars().any(char::is_alphanumeric) {
        return Ok(found);
    }
    // A plan's id is the slug of the title that it was created with, even if the heading in its text differs.
    let made = id::slug(typed, &|_| false);
    Ok(plans.iter().filter(|it| !it.archived && it.id == made).map(|it| it.id.clone()).collect())
}

/// Shows the step with the id `typed`, or the plan, decision or insight with this id. If there is no plan for this id, and
/// `typed` has more than two bytes, shows the only step whose title contains all words of `typed`.
pub(super) fn step(call: &Call, typed: &str) -> Result<ShowReport, Refusal> {
    let show =
        |id: &str| show::show(&call.context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() });
    let missing = match show(typed) {
        Err(error @ Error::NotFound { what: "plan", .. }) if typed.len() > 2 => error,
        done => return Ok(done?),
    };
    let words: Vec<_> = typed.split_whitespace().map(str::to_lowercase).collect();
    // Quotes turn operators of a query into words.
    let query = words.iter().map(|it| format!("\"{}\"", it.replace('"', " "))).collect::<Vec<_>>().join(" ");
    let request = SearchRequest {
        query,
        kind: Some("step".to_owned()),
        limit: MOST_SEARCHED,
        ..SearchRequest::default()
    };
    let hits = search::search(&call.context, &request)?.hits;
    let is_meant = |it: &&search::Hit| {
        let title = it.title.to_lowercase();
        !it.is_archived && words.iter().all(|word| title.contains(word.as_str()))
    };
    match hits.iter().filter(is_meant).collect::<Vec<_>>().as_slice() {
        [] => Err(missing.into()),
        [only] => Ok(show(&only.id)?),
        several => {
            let named = several.iter().take(MOST_NAMED).map(|it| format!("{} ({})", it.id, it.title));
            Err(Refusal::new(
                "which-step",
                format!("several steps have `{typed}` in their title"),
                format!("name one by its id: {}", named.collect::<Vec<_>>().join(", ")),
            ))
        }
    }
}
