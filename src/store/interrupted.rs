//! Finds and reports an interrupted change of several files.

use serde::Serialize;

use crate::api::context::{Context, Notice};
use crate::api::views::shown_path;

/// A change that the next writing command completes or undoes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupted {
    pub verb: String,
    pub at: String,
    /// Each path begins with the plans directory's name.
    pub paths: Vec<String>,
}

impl Interrupted {
    pub fn sentence(&self) -> String {
        let Self { verb, at, .. } = self;
        format!(
            "`{verb}` of {at} was interrupted; the next writing command completes or undoes this change; `planwatch check \
             --fix` does this at once"
        )
    }
}

/// Finds an interrupted change; changes nothing.
pub(crate) fn find(context: &Context) -> Option<Interrupted> {
    let root = context.root_name();
    let found = context.plans.pending()?;
    let shown = |it: &std::path::PathBuf| shown_path(&root, &it.to_string_lossy());
    Some(Interrupted { verb: found.verb, at: found.at, paths: found.paths.iter().map(shown).collect() })
}

/// Reports an interrupted change along with the answer of a verb that only reads.
pub fn report(context: &Context) {
    if let Some(found) = find(context) {
        context.notify(Notice::Interrupted { what: found.sentence() });
    }
}
