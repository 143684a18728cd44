//! A change of several files that was interrupted, and what finishes it.

use serde_json::{Value, json};

use crate::api::context::{Context, Notice};
use crate::api::views::shown_path;

/// A change that the next command that writes finishes, or takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    pub verb: String,
    pub at: String,
    /// With the plans directory's name.
    pub paths: Vec<String>,
}

impl Interrupted {
    pub fn to_json(&self) -> Value {
        json!({"verb": self.verb, "at": self.at, "paths": self.paths})
    }

    pub fn sentence(&self) -> String {
        let Self { verb, at, .. } = self;
        format!(
            "`{verb}` of {at} was interrupted; the next command that writes finishes it or takes it back, `planwatch check --fix` \
             does so at once"
        )
    }
}

/// Looks for one; changes nothing.
pub(crate) fn find(context: &Context) -> Option<Interrupted> {
    let root = context.root_name();
    let found = context.plans.pending()?;
    let shown = |it: &std::path::PathBuf| shown_path(&root, &it.to_string_lossy());
    Some(Interrupted { verb: found.verb, at: found.at, paths: found.paths.iter().map(shown).collect() })
}

/// Reports one beside the answer of a verb that only reads.
pub fn tell(context: &Context) {
    if let Some(found) = find(context) {
        context.notify(Notice::Interrupted { what: found.sentence() });
    }
}
