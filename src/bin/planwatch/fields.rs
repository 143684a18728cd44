//! `--json=FIELDS`: keeps only the named fields. In an answer that is a list, these are fields of its items; otherwise
//! they are fields of the object itself.
//!
//! The envelope (`schema_version`, `kind`) always stays. A list of known fields is a string of names that are separated
//! by spaces.

use planwatch::api::schema;
use planwatch::plan::words::nearest;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// The fields in the answer of a writing verb. They are checked before the verb runs, so that nothing is written if a
/// field is wrong.
pub(crate) const CHANGE: &str = "verb dry_run changes refused diff not_repointed committed kept not_recorded";

/// The fields in the answer of `claim`, checked beforehand for the same reason.
pub(crate) const CLAIM: &str = "state step why claim dry_run diff kept not_recorded";

pub(crate) const IMPORT: &str =
    "verb dry_run changes refused diff form unmapped problems already kept not_recorded";

/// The fields in the answer of `git commit`.
pub(crate) const COMMIT: &str = "dry_run commit branch message files left";
/// The fields in the answers of the other verbs of `git`.
pub(crate) const GIT_SETUP: &str = "undo dry_run driver attributes diff jj overridden";
pub(crate) const GIT_REVIEW: &str = "merge files";
pub(crate) const GIT_RESOLVE: &str = "dry_run files diff not_examined_because_of kept not_recorded";

/// The fields in the answers of the verbs of `sync`.
pub(crate) const SYNC: &str = "dry_run remote claims_at branch listed_at error claims settled removed";
pub(crate) const SYNC_INIT: &str = "dry_run did id remote claims_at branch refused path diff";

/// The fields in the answer of `script run`.
pub(crate) const SCRIPT_RUN: &str = "id command exit_code";

pub(crate) const INIT: &str = "undo dry_run plans files commands diff kept not_recorded";

/// The fields of all events together; no event has all of them.
pub(crate) const EVENT: &str =
    "event of id plan title path at source verb by host old new attempt plans_total steps_total http";

/// The fields of the answers of `draft`; no object has all of them.
pub(crate) const DRAFT: &str = "event pass passes focus change added removed diff why seconds state plan path incomplete beside \
     steps prompt notes command checked";

/// The fields of all events of a run and of its result together; no object has all of them.
pub(crate) const RUN: &str = "event step title attempt of why log text command outcome status exit_code seconds cost notes closed \
     total plan end attempts next prompt environment untrusted verify_only directory timeout idle \
     max_attempts checked verify worktrees";

/// The fields in the answers of `watch --detach` and `watch --stop`.
pub(crate) const DAEMON: &str = "state pid release since plans steps http";

/// The fields of each check of `doctor`.
pub(crate) const CHECK: &str = "name state value hint";

/// Fields that an object omits in some cases, each after a field of the same objects that is never omitted.
const OMITTED: [(&str, &str); 3] =
    [("depends", "depends_ranges"), ("why_not_ready", "held"), ("plan_kind", "children")];

const ENVELOPE: [&str; 2] = ["schema_version", "kind"];

/// The key of the list in an answer of this kind. `--json=FIELDS` selects fields of its items.
fn list_key(kind: &str) -> Option<&'static str> {
    let key = match kind {
        "plan-list" => "plans",
        "step-list" | "stale-list" => "steps",
        "problem-list" => "problems",
        "undo-list" => "changes",
        "doctor" => "checks",
        "template-list" => "templates",
        "search" => "hits",
        "log" => "events",
        "diff" => "differences",
        "decision-list" => "decisions",
        "insight-list" => "insights",
        "topic-list" => "topics",
        "script-list" => "scripts",
        "trust-list" => "items",
        "trusted-list" => "trusted",
        "table" => "rows",
        _ => return None,
    };
    Some(key)
}

/// Reads the text after `--json=`.
pub(crate) fn read(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Keeps the wanted fields, or all fields if `wanted` is empty. Refuses a field that the object does not have, unless the
/// fields were checked before the verb ran (`are_checked`): then the object may lack some of them.
pub(crate) fn keep(object: Value, wanted: &[String], are_checked: bool) -> Result<Value, Failure> {
    let Value::Object(mut object) = object else { return Ok(object) };
    if wanted.is_empty() {
        return Ok(Value::Object(object));
    }
    let key = object.get("kind").and_then(Value::as_str).and_then(list_key);
    let Some(key) = key else {
        if !are_checked {
            let of_object = fields_of([&object]);
            let own: Vec<_> = of_object.into_iter().filter(|it| !ENVELOPE.contains(it)).collect();
            known(wanted, &own)?;
        }
        object.retain(|key, _| ENVELOPE.contains(&key.as_str()) || wanted.contains(key));
        return Ok(Value::Object(object));
    };
    let mut items = object.remove(key).unwrap_or(Value::Array(Vec::new()));
    let list = items.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let of_items = fields_of(list.iter().filter_map(Value::as_object));
    // A list without items does not show which fields its items have.
    if !are_checked && of_items.is_empty() {
        known_in_schema(wanted, object.get("kind"), key)?;
    } else if !are_checked {
        known(wanted, &of_items)?;
    }
    for item in list.iter_mut().filter_map(Value::as_object_mut) {
        item.retain(|key, _| wanted.contains(key));
    }
    object.retain(|key, _| ENVELOPE.contains(&key.as_str()));
    object.insert(key.to_owned(), items);
    Ok(Value::Object(object))
}

fn fields_of<'a>(objects: impl IntoIterator<Item = &'a Map<String, Value>>) -> Vec<&'a str> {
    let mut fields: Vec<&str> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for key in objects.into_iter().flat_map(Map::keys) {
        if seen.insert(key.as_str()) {
            fields.push(key);
        }
    }
    let omitted = OMITTED.into_iter().filter(|(beside, _)| seen.contains(beside)).map(|(_, field)| field);
    let omitted: Vec<_> = omitted.filter(|it| !seen.contains(it)).collect();
    fields.extend(omitted);
    fields
}

/// Refuses a field that no item of the list `key` has, by the schema of the answer. Some answers have no schema, and the rows
/// of a table have fields that the schema does not name; then no field is refused.
fn known_in_schema(wanted: &[String], kind: Option<&Value>, key: &str) -> Result<(), Failure> {
    let (answers, parts) = (schema::answers(), schema::parts());
    let Some(answer) = answers.iter().find(|it| kind.is_some_and(|kind| *kind == it.kind)) else {
        return Ok(());
    };
    let items = &answer.schema["properties"][key]["items"];
    let name = items["$ref"].as_str().and_then(|it| it.strip_prefix(schema::PLACE));
    let part = name.and_then(|name| parts.iter().find(|it| it.0 == name));
    match part.map_or(items, |it| &it.1)["properties"].as_object() {
        Some(properties) => known(wanted, &properties.keys().map(String::as_str).collect::<Vec<_>>()),
        None => Ok(()),
    }
}

/// Refuses a field that is not among the known ones.
pub(crate) fn known(wanted: &[String], known: &[&str]) -> Result<(), Failure> {
    let is_known = |it: &&String| known.contains(&it.as_str()) || ENVELOPE.contains(&it.as_str());
    let Some(unknown) = wanted.iter().find(|it| !is_known(it)) else { return Ok(()) };
    let all = format!("the fields are {}", known.join(", "));
    let hint = match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {all}"),
        None => all,
    };
    Err(Failure::usage(format!("there is no field `{unknown}`"), hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(object: Value, wanted: &str, expected: &Value) {
        assert_eq!(keep(object, &read(wanted), false).unwrap(), *expected);
    }

    #[test]
    fn items_of_a_list_keep_what_was_asked_for() {
        let list = json!({"schema_version": 1, "kind": "plan-list", "plans": [{"id": "a", "kind": "plan", "title": "A"}], "hidden": 0});
        let kinds = json!({"schema_version": 1, "kind": "plan-list", "plans": [{"kind": "plan"}]});
        check(list.clone(), "kind", &kinds);
        check(list.clone(), "id", &json!({"schema_version": 1, "kind": "plan-list", "plans": [{"id": "a"}]}));
        check(list.clone(), "", &list);
    }

    /// Every field in an answer can be asked for.
    #[test]
    fn the_fields_of_writing_verbs_are_those_of_their_schemas() {
        let answers = planwatch::api::schema::answers();
        for (name, fields) in [
            ("change", CHANGE),
            ("claim", CLAIM),
            ("init", INIT),
            ("git-setup", GIT_SETUP),
            ("git-resolve", GIT_RESOLVE),
        ] {
            let answer = answers.iter().find(|it| it.name == name).unwrap();
            let properties = answer.schema["properties"].as_object().unwrap().keys();
            let mut expected: Vec<_> = properties.filter(|it| !ENVELOPE.contains(&it.as_str())).collect();
            let mut fields: Vec<_> = fields.split(' ').collect();
            expected.sort_unstable();
            fields.sort_unstable();
            assert_eq!(fields, expected, "{name}");
        }
    }

    #[test]
    fn any_other_object_keeps_its_own_fields() {
        let next = json!({"schema_version": 1, "kind": "next", "state": "empty", "why": "no steps"});
        check(next, " state ,", &json!({"schema_version": 1, "kind": "next", "state": "empty"}));
    }

    #[test]
    fn an_unknown_field_names_the_known_ones() {
        let step = json!({"schema_version": 1, "kind": "step", "title": "A", "status": "pending"});
        let failure = keep(step, &read("titel"), false).unwrap_err();
        assert_eq!(failure.exit, 2);
        assert_eq!(failure.hint.unwrap(), "did you mean `title`? the fields are title, status");
    }

    #[test]
    fn a_field_that_a_step_omits_because_it_is_empty_can_be_asked_for() {
        let list = json!({"schema_version": 1, "kind": "step-list", "steps": [{"id": "a:1", "depends": []}]});
        let kept = json!({"schema_version": 1, "kind": "step-list", "steps": [{"id": "a:1"}]});
        check(list, "id,depends_ranges", &kept);
    }

    #[test]
    fn an_event_need_not_have_every_field_of_events() {
        let event = json!({"schema_version": 1, "kind": "event", "event": "attempt", "id": "a:1"});
        let kept = keep(event, &read("id,new"), true).unwrap();
        assert_eq!(kept, json!({"schema_version": 1, "kind": "event", "id": "a:1"}));
    }

    #[test]
    fn an_empty_list_refuses_fields_that_its_items_never_have() {
        for (kind, key, known) in [
            ("plan-list", "plans", "id,custom,steps_ready"),
            ("step-list", "steps", "id,depends_ranges"),
            ("search", "hits", "id,snippet"),
            ("decision-list", "decisions", "topic,step"),
            ("insight-list", "insights", "title"),
        ] {
            let list = json!({"schema_version": 1, "kind": kind, key: []});
            check(list.clone(), known, &list);
            assert_eq!(keep(list, &read("foo"), false).unwrap_err().exit, 2, "{kind}");
        }
        let table = json!({"schema_version": 1, "kind": "table", "rows": []});
        check(table.clone(), "anything", &table);
    }
}
