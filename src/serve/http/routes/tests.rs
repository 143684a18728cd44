use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::document;
use super::{answers, seed, table};
use crate::engine::schema;
use crate::serve::http::api;

fn known() -> Value {
    serde_json::to_value(api().1).unwrap()
}

/// The routes of a document, as `get /api/plans`.
fn routes(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    let methods =
        paths.flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |it| format!("{it} {path}")));
    methods.collect()
}

#[test]
fn what_is_answered_elsewhere_is_described_and_nothing_else() {
    let described: BTreeSet<_> =
        seed::routes().iter().map(|it| format!("{} {}", it.verb.word(), it.path)).collect();
    assert_eq!(routes(&known()), described);
    let whole = document(&known(), true);
    assert!(described.is_subset(&routes(&whole)));
    assert_eq!(routes(&whole).len(), table().len(), "no two routes have one place");
    for it in seed::routes().iter().filter(|it| it.body.is_some()) {
        let body =
            &whole["paths"][it.path][it.verb.word()]["requestBody"]["content"]["application/json"]["schema"];
        let name = body["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let schema = &whole["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"], json!(false), "{name} is closed");
    }
}

#[test]
fn no_two_schemas_have_one_name() {
    let parts = schema::parts().into_iter().chain(seed::parts()).map(|(name, _)| name.to_owned());
    let names: Vec<_> = parts.chain(answers::all().into_iter().map(|(name, _)| name)).collect();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    let document = document(&known(), false);
    // Those, the refusal's, and the bodies of the routes that are answered elsewhere.
    assert_eq!(document["components"]["schemas"].as_object().unwrap().len(), names.len() + 4);
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
fn links_lead_to_routes_with_that_parameter() {
    let table = table();
    for link in table.iter().flat_map(|it| &it.links) {
        for name in link.to {
            let route = table.iter().find(|it| it.name == *name).unwrap_or_else(|| panic!("no {name}"));
            assert!(route.path_names().any(|it| it == link.parameter), "{name} takes no {}", link.parameter);
        }
    }
}
