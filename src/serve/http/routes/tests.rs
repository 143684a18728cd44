use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::document;
use super::{answers, script_api, table};
use crate::api::requests::{NOT_BLANK, PatchRequest, StepText};
use crate::api::schema;

/// The routes of a document, as `get /api/plans`.
fn routes(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    let methods =
        paths.flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |it| format!("{it} {path}")));
    methods.collect()
}

#[test]
fn no_two_routes_have_one_place() {
    assert_eq!(routes(&document(true)).len(), table().len());
}

#[test]
fn no_two_schemas_have_one_name() {
    let parts = schema::parts().into_iter().chain(script_api::parts()).map(|(name, _)| name.to_owned());
    let names: Vec<_> = parts.chain(answers::all().into_iter().map(|(name, _)| name)).collect();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    let document = document(false);
    // The document has these schemas and that of the refusal.
    assert_eq!(document["components"]["schemas"].as_object().unwrap().len(), names.len() + 1);
}

#[test]
fn bodies_are_closed_and_take_their_examples() {
    for it in table().iter().filter(|it| it.handler.is_some()) {
        let Some(body) = &it.body else { continue };
        assert_eq!(body.schema["additionalProperties"], json!(false), "{}", it.name);
        assert!(body.schema["properties"]["dry_run"].is_object(), "{} can be tried", it.name);
        for name in body.example.as_object().unwrap().keys() {
            assert!(body.schema["properties"][name].is_object(), "{}: {name}", it.name);
        }
    }
}

#[test]
fn no_route_records_a_blank_name() {
    let is_closed = |schema: &Value| schema["pattern"] == NOT_BLANK;
    let mut n_checked = 0;
    for it in table().iter().filter(|it| it.name != "log") {
        let in_body =
            it.body.iter().flat_map(|it| ["by", "created_by"].map(|name| &it.schema["properties"][name]));
        let in_query = it.parameters.iter().filter(|it| it.name == "by").map(|it| &it.schema);
        for schema in in_body.filter(|it| it.is_object()).chain(in_query) {
            assert!(is_closed(schema), "{}: {schema}", it.name);
            n_checked += 1;
        }
    }
    assert!(n_checked > 30, "{n_checked}");
    // The routes for scripts read their bodies without the schema.
    for name in ["", " ", "\n"] {
        assert!(serde_json::from_value::<PatchRequest>(json!({"by": name})).is_err());
        let step = json!({"description": "# A", "created_by": name});
        assert!(serde_json::from_value::<StepText>(step).is_err());
    }
}

#[test]
fn every_array_of_the_document_says_what_is_in_it() {
    fn check(at: &str, schema: &Value) {
        match schema {
            Value::Object(words) => {
                let is_array = |it: &Value| {
                    *it == "array" || it.as_array().is_some_and(|of| of.contains(&json!("array")))
                };
                let is_schema = words.get("type").is_some_and(is_array) && !words.contains_key("in");
                assert!(!is_schema || words.contains_key("items"), "{at}");
                words.iter().for_each(|(name, it)| check(&format!("{at}/{name}"), it));
            }
            Value::Array(items) => items.iter().for_each(|it| check(at, it)),
            _ => {}
        }
    }
    check("", &document(true));
}

#[test]
fn links_lead_to_routes_with_that_parameter() {
    let table = table();
    for link in table.iter().flat_map(|it| &it.links) {
        for name in link.to {
            let route = table.iter().find(|it| it.name == *name).unwrap_or_else(|| panic!("no {name}"));
            assert!(route.path_names().any(|it| it == link.parameter), "{name} takes no {}", link.parameter);
        }
    }
}
