//! How the index that is kept stands to the files, and a new one in its place.

use super::refresh::{Wanted, fresh_in, kept_index, looked};
use crate::api::context::Context;
use crate::index::{Change, Index, IndexError};

/// Makes the kept index anew from the files; in memory there is none to make.
pub(crate) fn reindex(context: &Context) -> Result<(), IndexError> {
    let Some(mut index) = kept_index(context) else { return Ok(()) };
    let heads = index.snapshot().and_then(|it| it.heads());
    match heads {
        Ok(heads) => drop(index.write(&mut heads.into_iter().map(|it| Change::Remove(it.key)))?),
        Err(_) => index.reopen()?,
    }
    fresh_in(context, Some(index), Wanted::Nothing);
    Ok(())
}

/// How the kept index stood to the files; it is brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexState {
    Current,
    Behind {
        n_plans: usize,
    },
    Missing,
    /// There is no plan, and so no index.
    Bare,
    Unusable,
}

/// Looks at the kept index and its length.
pub(crate) fn index_state(context: &Context) -> (IndexState, Option<u64>) {
    if context.plans.is_bare() {
        return (IndexState::Bare, None);
    }
    let len = context.plans.index_dir().and_then(|it| Index::len_in(&it));
    let found = looked(context, Wanted::Nothing);
    let state = match (found.index, len) {
        (None, _) => IndexState::Unusable,
        (Some(_), None) => IndexState::Missing,
        (Some(_), Some(_)) if found.changed.is_empty() => IndexState::Current,
        (Some(_), Some(_)) => IndexState::Behind { n_plans: found.changed.len() },
    };
    (state, len)
}
