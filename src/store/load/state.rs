//! Compares the index on disk with the files, and rebuilds it.

use super::refresh::{IndexCheck, Refresh, Wanted, open_index};
use crate::api::context::Context;
use crate::index::{Change, Index, IndexError};

/// Rebuilds the index on disk from the files. Does nothing if the index cannot be opened.
pub(crate) fn reindex(context: &Context) -> Result<(), IndexError> {
    let Some(mut index) = open_index(context) else { return Ok(()) };
    let heads = index.snapshot().and_then(|it| it.heads());
    match heads {
        Ok(heads) => drop(index.write(&mut heads.into_iter().map(|it| Change::Remove(it.key)))?),
        Err(_) => index.reopen()?,
    }
    Refresh::new(Wanted::Nothing, IndexCheck::Scan).run_in(context, Some(index));
    Ok(())
}

/// How the index on disk compared with the files before it was updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexState {
    Current,
    Outdated {
        n_plans: usize,
    },
    Missing,
    /// There is no plan, and so no index.
    Bare,
    Unusable,
}

/// Compares the index with the files, and updates the index. Also returns its length in bytes before the update.
pub(crate) fn index_state(context: &Context) -> (IndexState, Option<u64>) {
    if context.plans.is_bare() {
        return (IndexState::Bare, None);
    }
    let len = context.plans.index_dir().and_then(|it| Index::len_in(&it));
    let found = Refresh::new(Wanted::Nothing, IndexCheck::Scan).run(context);
    let state = match (found.index, len) {
        (None, _) => IndexState::Unusable,
        (Some(_), None) => IndexState::Missing,
        (Some(_), Some(_)) if found.changed.is_empty() => IndexState::Current,
        (Some(_), Some(_)) => IndexState::Outdated { n_plans: found.changed.len() },
    };
    (state, len)
}
