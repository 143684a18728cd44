//! A little of every plan, for whoever stays and remembers; and which commit of the index it comes from.

use std::cell::RefCell;

use crate::engine::context::{Context, Reading};
use crate::engine::error::Error;
use crate::engine::load;
use crate::index::{Generation, Index, Place};
use crate::plan::model::Plan;

/// Makes something of every plan as the files have it now, without bodies and in no order.
///
/// From the index the plans come one by one, so that they are never all in memory.
pub(crate) fn of_each<T>(context: &Context, make: impl Fn(Plan) -> T) -> Result<Vec<T>, Error> {
    let from_index = || {
        load::ask(context, |index| {
            let made = RefCell::new(Vec::new());
            index.each_plan(&mut |it| made.borrow_mut().push(make(it)))?;
            Ok(made.into_inner())
        })
    };
    match context.reading {
        Reading::Index => from_index(),
        Reading::Files => Ok(load::all(context)?.into_vec().into_iter().map(make).collect()),
    }
}

/// Returns the commit that the kept index shows; none if there is none that can be opened.
pub(crate) fn generation(context: &Context) -> Option<Generation> {
    let directory = context.plans.runtime_dir()?;
    let (mut index, _) = Index::open(Place::Directory(&directory)).ok()?;
    index.snapshot().ok()?.generation().ok()?
}
