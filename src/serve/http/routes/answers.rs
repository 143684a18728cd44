//! The schemas of answers, as routes refer to them.

use serde_json::{Value, json};

use crate::api::schema::{PLACE, answers};

/// The name that an answer's schema has in the OpenAPI document, for example `PlanListAnswer` for `plan-list`.
pub(crate) fn name(answer: &str) -> String {
    let words = answer.split('-').map(|word| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_uppercase() + rest
    });
    words.collect::<String>() + "Answer"
}

pub(crate) fn named(answer: &str) -> Value {
    json!({"$ref": format!("{PLACE}{}", name(answer))})
}

/// The schema of an answer that is one of several kinds.
pub(crate) fn any<const N: usize>(of: [&str; N]) -> Value {
    json!({"anyOf": of.map(named).to_vec()})
}

/// All schemas of answers, with the names that they have in the document.
pub(crate) fn all() -> Vec<(String, Value)> {
    answers().into_iter().map(|it| (name(it.name), it.schema)).collect()
}
